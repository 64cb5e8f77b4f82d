/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as Jackson's byte writer prints Flink's rows, and its two building blocks: quoted text and
 * base64. */
#pragma once

#include "base.h"
#include "dataplane/format/writer.h"
#include "dataplane/plan.h"

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
