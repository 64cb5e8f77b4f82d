/* SPDX-License-Identifier: Apache-2.0 */
/* Lines into files through one buffer a topic. The first failed write is remembered, what follows
 * is dropped, and sink_file_destroy reports it: a replay with a full disk must not look whole. */
#include "dataplane/sink_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dataplane/expr/text_number.h"
#include "dataplane/format/json_encode.h"
#include "dataplane/format/json_text.h"

#define BUFFER_BYTES (UINT32_C(1) << 18)

struct topic {
    int file;
    bool envelopes;
    char path[512];
    uint8_t *buffer; /* capacity bytes */
    size_t capacity;
    size_t used;
    uint64_t written;   /* bytes in the file; used more are behind them */
    uint64_t cut;       /* bytes in front of the cut made last */
    uint64_t committed; /* bytes in front of the newest durable checkpoint's cut */
};

struct sink_file {
    struct record_sink base;
    struct topic *topics;
    uint32_t topic_count;
    uint64_t cut_id;
    int failure; /* the first -errno */
    uint32_t failed_topic;
};

static struct sink_file *from_base(struct record_sink *sink)
{
    ASSERT(sink != NULL);
    return (struct sink_file *)(void *)sink;
}

static void flush_topic(struct sink_file *sink, struct topic *topic)
{
    ASSERT(topic->used <= topic->capacity);
    ASSERT(topic->file >= 0 || topic->used == 0);
    size_t at = 0;
    while (at < topic->used && sink->failure == 0) {
        const ssize_t written = write(topic->file, topic->buffer + at, topic->used - at);
        if (written < 0 && errno != EINTR) {
            sink->failure = -errno;
            sink->failed_topic = (uint32_t)(topic - sink->topics);
        }
        at += written > 0 ? (size_t)written : 0;
    }
    topic->written += at;
    topic->used = 0;
}

static void put_name(struct writer *writer, const char *name)
{
    ASSERT(writer->used > 0 && name != NULL);
    writer_put_byte(writer, writer->data[writer->used - 1] == '{' ? ' ' : ',');
    writer_put(writer, name, strlen(name));
}

/* Text where the bytes are UTF-8, base64 under the other name where not. */
static void put_bytes(struct writer *writer, const char *text_name, const char *base64_name,
                      struct span bytes)
{
    ASSERT_SLOW(bytes.data != NULL || bytes.bytes == 0);
    ASSERT(text_name != NULL && base64_name != NULL);
    if (json_text_is_utf8(bytes)) {
        put_name(writer, text_name);
        json_encode_text(bytes, writer);
        return;
    }
    put_name(writer, base64_name);
    writer_put_byte(writer, '"');
    json_encode_base64(bytes, writer);
    writer_put_byte(writer, '"');
}

static void put_number(struct writer *writer, const char *name, int64_t number)
{
    char text[INTEGER_TEXT_BYTES];
    put_name(writer, name);
    writer_put(writer, text, integer_print(number, text));
}

static void put_headers(struct writer *writer, const struct record *record)
{
    ASSERT_SLOW(record != NULL);
    ASSERT(record->header_count > 0);
    put_name(writer, "\"h\":{");
    for (uint32_t i = 0; i < record->header_count; i++) {
        writer_put(writer, ",", i == 0 ? 0 : 1);
        json_encode_text(record->headers[i].name, writer);
        writer_put_byte(writer, ':');
        if (record->headers[i].value_is_null) {
            writer_put(writer, "null", 4);
        } else {
            json_encode_text(record->headers[i].value, writer);
        }
    }
    writer_put_byte(writer, '}');
}

static void put_envelope(struct writer *writer, int32_t partition, const struct record *record)
{
    ASSERT(record != NULL);
    writer_put_byte(writer, '{');
    if (partition >= 0) {
        put_number(writer, "\"p\":", partition);
    }
    put_number(writer, "\"t\":", record->timestamp_ms);
    if (!record->key_is_null) {
        put_bytes(writer, "\"k\":", "\"k64\":", record->key);
    }
    if (record->header_count != 0) {
        put_headers(writer, record);
    }
    if (!record->value_is_null) {
        put_bytes(writer, "\"v\":", "\"b64\":", record->value);
    }
    writer_put(writer, "}\n", 2);
}

static void put_line(struct writer *writer, const struct record *record)
{
    ASSERT(record != NULL);
    if (record->value_is_null) {
        writer_put(writer, "null", 4);
    } else {
        writer_put(writer, record->value.data, record->value.bytes);
    }
    writer_put_byte(writer, '\n');
}

/* At most what an envelope needs: six bytes for each byte of text, and its names. */
static size_t bytes_max(const struct record *record)
{
    ASSERT_SLOW(record != NULL);
    ASSERT(record->headers != NULL || record->header_count == 0);
    size_t bytes = record->key.bytes + record->value.bytes;
    for (uint32_t i = 0; i < record->header_count; i++) {
        bytes += record->headers[i].name.bytes + record->headers[i].value.bytes + 2;
    }
    return 6 * bytes + 128;
}

static bool make_room(struct sink_file *sink, struct topic *topic, size_t bytes)
{
    ASSERT(topic != NULL);
    ASSERT(topic->buffer != NULL);
    if (bytes <= topic->capacity - topic->used) {
        return true;
    }
    flush_topic(sink, topic);
    if (bytes <= topic->capacity) {
        return true;
    }
    uint8_t *buffer = realloc(topic->buffer, bytes);
    if (buffer == NULL) {
        return false;
    }
    topic->buffer = buffer;
    topic->capacity = bytes;
    return true;
}

static enum record_sink_verdict append(struct record_sink *base, uint32_t topic_index,
                                       int32_t partition, const struct record *record)
{
    ASSERT(partition >= RECORD_PARTITION_NEXT);
    struct sink_file *sink = from_base(base);
    ASSERT(topic_index < sink->topic_count && record != NULL);
    struct topic *topic = &sink->topics[topic_index];
    if (!make_room(sink, topic, bytes_max(record))) {
        return RECORD_SINK_TOO_LARGE;
    }
    struct writer writer = {
        .data = topic->buffer,
        .used = topic->used,
        .capacity = topic->capacity,
    };
    if (topic->envelopes) {
        put_envelope(&writer, partition, record);
    } else {
        put_line(&writer, record);
    }
    ASSERT(writer.used <= writer.capacity);
    topic->used = writer.used;
    return RECORD_SINK_OK;
}

static uint32_t poll(struct record_sink *base, uint64_t now_ns)
{
    struct sink_file *sink = from_base(base);
    ASSERT(sink->topics != NULL);
    uint32_t work = 0;
    (void)now_ns;
    for (uint32_t i = 0; i < sink->topic_count; i++) {
        if (sink->topics[i].used > BUFFER_BYTES / 2) {
            flush_topic(sink, &sink->topics[i]);
            work++;
        }
    }
    return work;
}

/* A file acknowledges at once; what is buffered is this process's own. */
static bool flushed(struct record_sink *base)
{
    (void)base;
    return true;
}

static void cut(struct record_sink *base, uint64_t id, struct facts_writer *facts)
{
    struct sink_file *sink = from_base(base);
    ASSERT(id > sink->cut_id);
    (void)facts;
    sink->cut_id = id;
    for (uint32_t i = 0; i < sink->topic_count; i++) {
        sink->topics[i].cut = sink->topics[i].written + sink->topics[i].used;
    }
}

static void complete(struct record_sink *base, uint64_t id)
{
    struct sink_file *sink = from_base(base);
    ASSERT(id == sink->cut_id);
    (void)id;
    for (uint32_t i = 0; i < sink->topic_count; i++) {
        sink->topics[i].committed = sink->topics[i].cut;
    }
}

void sink_file_rewind(struct record_sink *base)
{
    struct sink_file *sink = from_base(base);
    for (uint32_t i = 0; i < sink->topic_count; i++) {
        struct topic *topic = &sink->topics[i];
        ASSERT(topic->committed <= topic->written + topic->used);
        if (topic->committed >= topic->written) {
            topic->used = topic->committed - topic->written;
            continue;
        }
        topic->used = 0;
        topic->written = topic->committed;
        if ((ftruncate(topic->file, (off_t)topic->committed) != 0 ||
             lseek(topic->file, (off_t)topic->committed, SEEK_SET) < 0) &&
            sink->failure == 0) {
            sink->failure = -errno;
            sink->failed_topic = i;
        }
    }
}

static int open_topic(struct topic *topic, const struct sink_file_config *config, uint32_t index,
                      struct error *error)
{
    ASSERT(topic != NULL);
    ASSERT(index < config->topic_count);
    ASSERT(config->topics[index].name != NULL);
    const struct sink_file_topic *wanted = &config->topics[index];
    const char *suffix = wanted->envelopes ? "records" : "jsonl";
    const int length = snprintf(topic->path, sizeof(topic->path), "%s/%s.%s", config->directory,
                                wanted->name, suffix);
    topic->file = -1;
    if (length < 0 || (size_t)length >= sizeof(topic->path)) {
        return error_set(error, -ENAMETOOLONG, "the path of topic '%s' is too long", wanted->name);
    }
    topic->envelopes = wanted->envelopes;
    topic->capacity = BUFFER_BYTES;
    topic->buffer = malloc(topic->capacity);
    topic->file = open(topic->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (topic->file < 0) {
        const int code = -errno;
        return error_set(error, code, "cannot write %s: %s", topic->path, strerror(-code));
    }
    return topic->buffer == NULL ? error_set(error, -ENOMEM, "no memory to write %s", topic->path)
                                 : 0;
}

int sink_file_create(const struct sink_file_config *config, struct record_sink **out,
                     struct error *error)
{
    static const struct record_sink_ops OPS = {
        .append = append,
        .poll = poll,
        .flushed = flushed,
        .cut = cut,
        .complete = complete,
    };
    ASSERT(config != NULL && config->directory != NULL && out != NULL);
    struct sink_file *sink = calloc(1, sizeof(*sink));
    *out = NULL;
    if (sink == NULL) {
        return error_set(error, -ENOMEM, "no memory to write to %s", config->directory);
    }
    sink->base.ops = &OPS;
    sink->topics = calloc(config->topic_count + 1, sizeof(*sink->topics));
    int result = sink->topics == NULL ? -ENOMEM : 0;
    for (uint32_t i = 0; result == 0 && i < config->topic_count; i++) {
        sink->topic_count++;
        result = open_topic(&sink->topics[i], config, i, error);
    }
    if (result != 0) {
        (void)sink_file_destroy(&sink->base, NULL);
        return result;
    }
    *out = &sink->base;
    return 0;
}

int sink_file_destroy(struct record_sink *base, struct error *error)
{
    if (base == NULL) {
        return 0;
    }
    struct sink_file *sink = from_base(base);
    for (uint32_t i = 0; i < sink->topic_count; i++) {
        struct topic *topic = &sink->topics[i];
        flush_topic(sink, topic);
        if (topic->file >= 0 && close(topic->file) != 0 && sink->failure == 0) {
            sink->failure = -errno;
            sink->failed_topic = i;
        }
        free(topic->buffer);
    }
    const int result = sink->failure;
    if (result != 0) {
        (void)error_set(error, result, "cannot write %s: %s", sink->topics[sink->failed_topic].path,
                        strerror(-result));
    }
    free(sink->topics);
    free(sink);
    return result;
}
