/* SPDX-License-Identifier: Apache-2.0 */
/* Lines into a file through a large buffer. An envelope carries the partition; its time is left to
 * the reader, who counts lines. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/generator.h"
#include "tools/load_internal.h"

#define BUFFER_BYTES       (UINT32_C(1) << 20)
#define ENVELOPE_BYTES_MAX (6 * GENERATOR_LINE_BYTES_MAX + 64)

struct load_file {
    struct load_target base;
    FILE *file;
    const char *path;
    bool envelopes;
    char buffer[BUFFER_BYTES];
};

static struct load_file *from_base(struct load_target *target)
{
    ASSERT(target != NULL);
    return (struct load_file *)(void *)target;
}

/* Generators write no control characters, so quotes and backslashes are all there is to escape. */
static char *put_escaped(char *into, struct span text)
{
    ASSERT(into != NULL);
    for (size_t i = 0; i < text.bytes; i++) {
        const uint8_t byte = text.data[i];
        ASSERT_SLOW(byte >= ' ');
        if (byte == '"' || byte == '\\') {
            *into++ = '\\';
        }
        *into++ = (char)byte;
    }
    return into;
}

static int put_envelope(struct load_file *file, const struct load_record *record)
{
    ASSERT(file->envelopes);
    char line[ENVELOPE_BYTES_MAX];
    ASSERT(record->value.bytes + record->key.bytes <= 2 * GENERATOR_LINE_BYTES_MAX);
    char *at = line + sprintf(line, "{\"p\":%d,", record->partition < 0 ? 0 : record->partition);
    if (record->key.data != NULL) {
        at = put_escaped(at + sprintf(at, "\"k\":\""), record->key);
        at += sprintf(at, "\",");
    }
    at = put_escaped(at + sprintf(at, "\"v\":\""), record->value);
    at += sprintf(at, "\"}\n");
    const size_t bytes = (size_t)(at - line);
    return fwrite(line, 1, bytes, file->file) == bytes ? 0 : -errno;
}

static int put(struct load_target *target, const struct load_record *record)
{
    ASSERT(record->value.data != NULL);
    struct load_file *file = from_base(target);
    if (file->envelopes) {
        return put_envelope(file, record);
    }
    const size_t written = fwrite(record->value.data, 1, record->value.bytes, file->file);
    return written == record->value.bytes && putc('\n', file->file) != EOF ? 0 : -errno;
}

static int finish(struct load_target *target, struct error *error)
{
    struct load_file *file = from_base(target);
    ASSERT(file->file != NULL);
    int result = fflush(file->file) != 0 || ferror(file->file) != 0 ? -EIO : 0;
    if (file->file != stdout && fclose(file->file) != 0) {
        result = -errno;
    }
    if (result != 0) {
        (void)error_set(error, result, "cannot write %s: %s", file->path, strerror(-result));
    }
    if (file->file != stdout) {
        free(file);
    }
    return result;
}

int load_file_open(const char *path, struct load_target **out, struct error *error)
{
    static const struct load_target_ops OPS = {put, finish};
    ASSERT(path != NULL && out != NULL);
    struct load_file *file = calloc(1, sizeof(*file));
    *out = NULL;
    if (file == NULL) {
        return error_set(error, -ENOMEM, "no memory for a buffer");
    }
    file->base.ops = &OPS;
    file->path = path;
    const size_t bytes = strlen(path);
    file->envelopes = bytes > 8 && strcmp(path + bytes - 8, ".records") == 0;
    file->file = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    if (file->file == NULL) {
        const int code = -errno;
        free(file);
        return error_set(error, code, "cannot write %s: %s", path, strerror(-code));
    }
    (void)setvbuf(file->file, file->buffer, _IOFBF, sizeof(file->buffer));
    *out = &file->base;
    return 0;
}
