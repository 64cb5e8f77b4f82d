/* SPDX-License-Identifier: Apache-2.0 */
/* What the writers of values share: a sink of bytes that remembers that it overflowed, the JSON
 * object writer, and the print connector's line. */
#pragma once

#include "base.h"
#include "dataplane/plan.h"

/* Bytes go in while they fit; used counts on. */
struct writer {
    uint8_t *data;
    size_t used;
    size_t capacity;
};

/* Appends bytes.
 * threads  any */
static inline void writer_put(struct writer *writer, const void *bytes, size_t count)
{
    if (count != 0 && writer->used + count <= writer->capacity) {
        memcpy(writer->data + writer->used, bytes, count);
    }
    writer->used += count;
}

/* Appends one byte.
 * threads  any */
static inline void writer_put_byte(struct writer *writer, uint8_t byte)
{
    if (writer->used < writer->capacity) {
        writer->data[writer->used] = byte;
    }
    writer->used++;
}

/* A member to write: `,"name":` ready made. */
struct json_encode_field {
    const char *prefix;
    uint32_t prefix_bytes;
    uint32_t column;
    struct type type;
};

struct json_encode_options {
    bool decimal_plain;
    bool ignore_nulls;
    bool iso_timestamps;
};

/* Makes the prefix of a member.
 * returns  freed by the caller; NULL without memory
 * threads  control */
char *json_encode_prefix(const char *name);

/* Writes a row as one JSON object.
 * threads  owning lane */
void json_encode_row(const struct json_encode_field *fields, uint32_t field_count,
                     const struct json_encode_options *options, const struct row_layout *layout,
                     const struct row *row, struct writer *writer);

/* Writes a text with its quotes, escaped as Jackson's byte writer does.
 * text     UTF-8; other bytes become U+FFFD; a surrogate in three bytes becomes its escape
 * threads  any */
void json_encode_text(struct span text, struct writer *writer);

/* Writes padded base64 without quotes.
 * threads  any */
void json_encode_base64(struct span bytes, struct writer *writer);

/* Writes a row as the print connector does: +I[1, a, null].
 * identifier  goes in front, NULL: none
 * threads     owning lane */
void print_encode_row(const char *identifier, const struct plan_sink_field *fields,
                      uint32_t field_count, const struct row_layout *layout, const struct row *row,
                      struct writer *writer);
