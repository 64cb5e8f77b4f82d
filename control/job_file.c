/* SPDX-License-Identifier: Apache-2.0 */
/* See job_file.h. */
#include "control/job_file.h"

#include <errno.h>
#include <stdlib.h>

static int cannot_read(struct error *error, const char *path, int code)
{
    (void)snprintf(error->place, sizeof(error->place), "%s", path);
    return error_set(error, -code, "cannot read it: %s", strerror(code));
}

static int read_file(const char *path, char **text, size_t *bytes, struct error *error)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return cannot_read(error, path, errno);
    }
    *text = malloc(SCRIPT_BYTES_MAX + 1);
    if (*text == NULL) {
        (void)fclose(file);
        return cannot_read(error, path, ENOMEM);
    }
    *bytes = fread(*text, 1, SCRIPT_BYTES_MAX + 1, file);
    const int code =
        ferror(file) != 0 ? (errno != 0 ? errno : EIO) : (*bytes > SCRIPT_BYTES_MAX ? EFBIG : 0);
    (void)fclose(file);
    return code == 0 ? 0 : cannot_read(error, path, code);
}

int job_file_load(const char *path, struct job_file *out, FILE *messages, struct error *error)
{
    ASSERT(out != NULL);
    ASSERT(path != NULL);
    size_t bytes = 0;
    *out = (struct job_file){0};
    int status = read_file(path, &out->text, &bytes, error);
    if (status != 0) {
        return status;
    }
    const struct sql_input input = {.text = out->text, .bytes = bytes, .file_name = path};
    status = sql_plan(&input, &out->plan, &out->notes, error);
    if (status != 0) {
        return status;
    }
    for (uint32_t i = 0; i < out->notes.count && messages != NULL; i++) {
        const struct sql_note *note = &out->notes.notes[i];
        (void)fprintf(messages, "%s:%u:%u: note: %s\n", path, note->line, note->column, note->text);
    }
    return 0;
}

void job_file_unload(struct job_file *script)
{
    ASSERT(script != NULL);
    plan_destroy(script->plan);
    free(script->text);
    *script = (struct job_file){0};
}

/* Errors quote what they found, and that may be a terminal's escape sequences. */
static void print_plain(FILE *into, const char *text)
{
    ASSERT(text != NULL);
    for (; *text != '\0'; text++) {
        const bool is_control = (unsigned char)*text < ' ' || *text == 0x7f;
        (void)fputc(is_control ? '?' : *text, into);
    }
}

void error_print(FILE *into, const struct error *error)
{
    if (error->place[0] != '\0') {
        (void)fprintf(into, "%s:", error->place);
    }
    if (error->line != 0) {
        (void)fprintf(into, "%u:%u:", error->line, error->column);
    }
    (void)fputs(error->place[0] != '\0' || error->line != 0 ? " " : "", into);
    print_plain(into, error->text);
    (void)fputc('\n', into);
}
