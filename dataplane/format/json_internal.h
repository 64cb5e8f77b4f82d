/* SPDX-License-Identifier: Apache-2.0 */
/* What the JSON files of this folder share: the schema tree that the plan's fields make, the two
 * walkers over a document, and the conversions of one scalar.
 *
 * The quick walker (json_quick.c) follows the schema over well-formed documents whose values fit;
 * at anything odd it gives up without an answer, and the exact walker (json_exact.c), which
 * repeats token by token what Flink's converters do with Jackson's tokens, starts anew. Whatever
 * the quick walker answers, the exact one answers too: the fuzzer holds them together. */
#pragma once

#include "base.h"
#include "dataplane/format/json_lexer.h"
#include "dataplane/format/json_text.h"
#include "dataplane/plan.h"

#define JSON_PATH_MAX    32 /* nesting of ROW in a schema */
#define JSON_SHAPE_MAX   64 /* members of an object whose order is remembered */
#define JSON_SHAPE_BYTES 32 /* quotes and colon included */
#define JSON_COLUMN_NONE UINT32_MAX

enum json_outcome {
    JSON_VALUE = 0,
    JSON_VALUE_NULL, /* read as NULL without error: a DECIMAL past its precision */
    JSON_VALUE_BAD,
};

struct json_object;

/* A member that the schema knows: a column, a nested ROW, or neither when nothing reads it. */
struct json_member {
    const char *name;
    uint32_t name_bytes;
    uint32_t column;            /* of the decoded row, JSON_COLUMN_NONE: value is only skipped */
    uint32_t word;              /* the column's first slot in the row's words */
    struct type type;           /* of the column */
    struct json_object *object; /* ROW: its members; NULL else */
    uint64_t seen;              /* the last row that had it */
};

/* What stood at a place of the last object: its name as raw bytes, and whose it was. */
struct json_shape {
    uint8_t text[JSON_SHAPE_BYTES];
    uint32_t bytes;             /* 0: nothing remembered */
    struct json_member *member; /* NULL: unknown to the schema */
};

struct json_object {
    struct json_member *members;
    uint32_t member_count;
    uint32_t bucket_mask;
    uint16_t *buckets; /* member index + 1, 0 empty */
    struct json_shape shapes[JSON_SHAPE_MAX];
};

/* Text columns are written when the row is complete, since a later member of one name replaces. */
struct json_pending {
    bool is_set;
    struct json_token token;
};

struct json_decoder {
    struct json_object *root;
    const struct row_layout *layout;
    bool ignore_errors;
    bool fail_on_missing;
    bool iso_timestamps;
    bool exact_decimals; /* the schema has a DECIMAL: trees keep decimal numbers */
    bool quick_only;     /* tests: give up instead of the exact walk */
    bool exact_only;     /* tests */
    uint64_t row_number;
    struct json_pending *pending; /* one a column */
    struct span_mut scratch;      /* unescaped text of one value */
    /* The document being read. */
    struct span document;
    struct json_lexer lexer;
    struct json_lexer row_start; /* to read a row again */
    bool in_array;
    bool done;
    const char *reason;
    const struct json_member *reason_member;
    struct json_token reason_token;
};

enum json_step {
    JSON_STEP_ROW = 0,
    JSON_STEP_END,
    JSON_STEP_FULL,
    JSON_STEP_BAD,
    JSON_STEP_GIVE_UP, /* the quick walker only */
};

/* ---- json_schema.c ---- */

/* Builds the tree of the fields of one origin (value or key).
 * out      freed by json_schema_destroy, also after failure
 * returns  0, -ENOMEM, -EINVAL (a path too deep, or used twice)
 * threads  control */
int json_schema_create(const struct plan_source *source, enum plan_field_origin origin,
                       struct json_object **out, struct error *error);

/* Frees a tree; NULL is nothing.
 * threads  control */
void json_schema_destroy(struct json_object *object);

/* Finds a member by its exact name.
 * returns  NULL when the schema does not know it
 * threads  owning lane */
struct json_member *json_schema_find(const struct json_object *object, struct span name);

/* ---- json_value.c ---- */

/* Reads a TIMESTAMP or, with a final Z, a TIMESTAMP_LTZ in the SQL or the ISO-8601 form.
 * threads  any */
bool json_value_stamp(struct span text, bool iso, bool with_zone, struct timestamp *out);

/* Converts one scalar for a column that is neither text nor bytes.
 * text     decoded (see json_text_decode); of a container its opening bracket
 * threads  owning lane */
enum json_outcome json_value_convert(const struct type *type, bool iso, enum json_kind kind,
                                     struct span text, struct value *out);

/* ---- json_tree.c ---- */

/* Writes the container that the lexer stands on as Jackson prints it anew (for STRING columns),
 * and steps to its closing bracket.
 * into        NULL: only step; capacity in bytes
 * returns     bytes of the text; SIZE_MAX when it is broken; more than capacity: it did not fit
 * threads     any */
size_t json_tree_print(struct json_lexer *lexer, bool exact_decimals, struct span_mut into);

/* ---- json_quick.c, json_exact.c ---- */

/* Reads a document that is one object straight into a row.
 * writer   begun
 * returns  JSON_STEP_ROW, JSON_STEP_FULL, or JSON_STEP_GIVE_UP: nothing said, begin the row anew
 * threads  owning lane */
enum json_step json_quick_row(struct json_decoder *decoder, struct row_writer *writer);

/* Reads the next row where the lexer stands.
 * writer   begun
 * returns  any step but JSON_STEP_GIVE_UP
 * threads  owning lane */
enum json_step json_exact_row(struct json_decoder *decoder, struct row_writer *writer);

/* ---- json_decode.c ---- */

/* Prepares decoding of the value or the key of a source's records.
 * record_bytes_max  longer documents are not given to it
 * out               freed by json_decoder_destroy
 * returns           0 or -errno
 * threads           control */
int json_decoder_create(const struct plan_source *source, enum plan_field_origin origin,
                        size_t record_bytes_max, struct json_decoder **out, struct error *error);

/* Frees it; NULL is nothing.
 * threads  control */
void json_decoder_destroy(struct json_decoder *decoder);

/* Starts a document.
 * document  borrowed until the last row was read; at least 1 byte
 * threads   owning lane */
void json_decoder_begin(struct json_decoder *decoder, struct span document);

/* Reads the next row of the document; columns of other origins stay NULL.
 * into     8-byte aligned
 * from     as row_begin
 * returns  JSON_STEP_ROW, JSON_STEP_END, JSON_STEP_FULL (again with a larger buffer) or
 *          JSON_STEP_BAD (decoder->reason)
 * threads  owning lane */
enum json_step json_decoder_next(struct json_decoder *decoder, struct span_mut into,
                                 const struct row *from, struct row_writer *writer);

/* Goes back to the start of the row read last.
 * threads  owning lane */
void json_decoder_again(struct json_decoder *decoder);
