/* SPDX-License-Identifier: Apache-2.0 */
/* The quick walker: one pass over a document that is one well-formed object, driven by the schema,
 * straight into the row's slots. Members are expected in the order of the last record: a match of
 * the remembered bytes skips reading the name and the colon. It never says that something is
 * wrong; it gives up, and the exact walker decides. It gives up at: a top-level array, a member
 * met twice, a value that does not convert, a container where a scalar is due, any broken byte.
 *
 * Every read is checked against the end, so nothing need be readable behind a record. */
#include "dataplane/format/json_internal.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define SKIP_DEPTH_MAX   64 /* of a container that nothing reads; deeper goes the exact way */
#define QUICK_DIGITS_MAX 18

struct quick {
    struct json_decoder *decoder;
    struct row_writer *writer;
    const uint8_t *end;
    bool full;
};

static const int64_t POWERS_OF_TEN[QUICK_DIGITS_MAX + 1] = {
    1,
    10,
    100,
    1000,
    10000,
    100000,
    1000000,
    10000000,
    100000000,
    1000000000,
    10000000000,
    100000000000,
    1000000000000,
    10000000000000,
    100000000000000,
    1000000000000000,
    10000000000000000,
    100000000000000000,
    1000000000000000000,
};

static inline const uint8_t *skip_space(const uint8_t *at, const uint8_t *end)
{
    ASSERT_SLOW(at <= end);
    while (at < end && *at <= ' ' && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) {
        at++;
    }
    return at;
}

static inline bool starts_with(const uint8_t *at, const uint8_t *end, const char *word,
                               size_t bytes)
{
    ASSERT_SLOW(at <= end);
    return (size_t)(end - at) >= bytes && memcmp(at, word, bytes) == 0;
}

/* Compares what stands at a place with what stood there in the last record. */
static inline bool shape_matches(const struct json_shape *shape, const uint8_t *at,
                                 const uint8_t *end)
{
    ASSERT_SLOW(shape->bytes <= JSON_SHAPE_BYTES);
    ASSERT_SLOW(at <= end);
    if ((size_t)(end - at) < JSON_SHAPE_BYTES) {
        return shape->bytes != 0 && (size_t)(end - at) >= shape->bytes &&
               memcmp(shape->text, at, shape->bytes) == 0;
    }
#ifdef __SSE2__
    const __m128i *ours = (const __m128i *)(const void *)shape->text;
    const __m128i *theirs = (const __m128i *)(const void *)at;
    const __m128i low = _mm_cmpeq_epi8(_mm_loadu_si128(ours), _mm_loadu_si128(theirs));
    const uint32_t low_equal = (uint32_t)_mm_movemask_epi8(low);
    if (shape->bytes <= 16) {
        const uint32_t wanted = (UINT32_C(1) << shape->bytes) - 1;
        return shape->bytes != 0 && (low_equal & wanted) == wanted;
    }
    const __m128i high = _mm_cmpeq_epi8(_mm_loadu_si128(ours + 1), _mm_loadu_si128(theirs + 1));
    const uint32_t high_equal = (uint32_t)_mm_movemask_epi8(high);
    const uint32_t wanted = (uint32_t)((UINT64_C(1) << (shape->bytes - 16)) - 1);
    return low_equal == 0xffff && (high_equal & wanted) == wanted;
#else
    return shape->bytes != 0 && memcmp(shape->text, at, shape->bytes) == 0;
#endif
}

/* Keeps the name that stands at a place, for the next record. */
static void remember(struct json_object *object, uint32_t place, const uint8_t *start,
                     const uint8_t *behind, struct json_member *member)
{
    ASSERT_SLOW(start < behind);
    ASSERT_SLOW(place == 0 || object->member_count <= ROW_COLUMNS_MAX);
    const size_t bytes = (size_t)(behind - start);
    if (place < JSON_SHAPE_MAX && bytes <= JSON_SHAPE_BYTES) {
        struct json_shape *shape = &object->shapes[place];
        memcpy(shape->text, start, bytes);
        shape->bytes = (uint32_t)bytes;
        shape->member = member;
    }
}

/* Reads a name that is not where it was; `at` is its opening quote. */
static const uint8_t *read_name(const struct quick *quick, struct json_object *object,
                                uint32_t place, const uint8_t *at, struct json_member **member)
{
    ASSERT_SLOW(at <= quick->end);
    ASSERT_SLOW(*member == NULL);
    bool plain;
    const uint8_t *const start = at;
    if (at == quick->end || *at != '"') {
        return NULL;
    }
    const uint8_t *const close = json_text_end(at + 1, quick->end, &plain);
    if (close == NULL || !plain) {
        return NULL;
    }
    const struct span name = {.data = at + 1, .bytes = (size_t)(close - at) - 1};
    at = skip_space(close + 1, quick->end);
    if (at == quick->end || *at != ':') {
        return NULL;
    }
    *member = json_schema_find(object, name);
    remember(object, place, start, at + 1, *member);
    return at + 1;
}

/* Over a text that nothing reads; `at` is behind its opening quote. */
static const uint8_t *skip_text(const uint8_t *at, const uint8_t *end)
{
    ASSERT_SLOW(at <= end);
    bool plain;
    const uint8_t *const close = json_text_end(at, end, &plain);
    if (close == NULL) {
        return NULL;
    }
    if (!plain && json_text_fault((struct span){at, (size_t)(close - at)}) != NULL) {
        return NULL;
    }
    return close + 1;
}

/* Over a text, a number or a word. */
static const uint8_t *skip_scalar(const uint8_t *at, const uint8_t *end)
{
    ASSERT_SLOW(at < end);
    enum json_kind kind;
    switch (*at) {
    case '"':
        return skip_text(at + 1, end);
    case 't':
        return starts_with(at, end, "true", 4) ? at + 4 : NULL;
    case 'f':
        return starts_with(at, end, "false", 5) ? at + 5 : NULL;
    case 'n':
        return starts_with(at, end, "null", 4) ? at + 4 : NULL;
    default:
        return json_lexer_number(at, end, &kind);
    }
}

/* Reads `"name" :` inside a container that nothing reads. */
static const uint8_t *skip_name(const uint8_t *at, const uint8_t *end)
{
    ASSERT_SLOW(at <= end);
    at = at < end && *at == '"' ? skip_text(at + 1, end) : NULL;
    at = at == NULL ? NULL : skip_space(at, end);
    return at != NULL && at < end && *at == ':' ? skip_space(at + 1, end) : NULL;
}

/* Steps behind a complete item: over closing brackets, to the next item or behind it all. */
static const uint8_t *skip_closers(const uint8_t *at, const uint8_t *end, uint64_t objects,
                                   uint32_t *depth)
{
    ASSERT_SLOW(at <= end);
    ASSERT_SLOW(*depth >= 1 && *depth <= SKIP_DEPTH_MAX);
    for (at = skip_space(at, end); at < end && *depth != 0; at = skip_space(at, end)) {
        const bool object = objects >> (*depth - 1) & 1;
        if (*at == ',') {
            at = skip_space(at + 1, end);
            return object ? skip_name(at, end) : at;
        }
        if (*at != (object ? '}' : ']')) {
            return NULL;
        }
        at++;
        (*depth)--;
        if (*depth == 0) {
            return at;
        }
    }
    return NULL;
}

/* Over an object or array that nothing reads, to behind its closing bracket. */
static const uint8_t *skip_container(const uint8_t *at, const uint8_t *end)
{
    ASSERT_SLOW(at < end);
    uint64_t objects = 0; /* bit d - 1: the container at depth d is an object */
    uint32_t depth = 0;
    do {
        if (at == NULL || at >= end) {
            return NULL;
        }
        if (*at != '{' && *at != '[') {
            at = skip_scalar(at, end);
        } else {
            const bool object = *at == '{';
            if (depth == SKIP_DEPTH_MAX) {
                return NULL;
            }
            objects = (objects & ~(UINT64_C(1) << depth)) | (uint64_t)object << depth;
            depth++;
            at = skip_space(at + 1, end);
            if (at < end && *at != (object ? '}' : ']')) {
                at = object ? skip_name(at, end) : at;
                continue;
            }
        }
        at = at == NULL ? NULL : skip_closers(at, end, objects, &depth);
    } while (depth != 0);
    return at;
}

static const uint8_t *skip_value(const uint8_t *at, const uint8_t *end)
{
    ASSERT_SLOW(at < end);
    return *at == '{' || *at == '[' ? skip_container(at, end) : skip_scalar(at, end);
}

static inline void set_null_bit(struct row *row, uint32_t column, bool is_null)
{
    ASSERT_SLOW(column < ROW_COLUMNS_MAX);
    const uint64_t bit = UINT64_C(1) << (column & 63);
    row->words[column >> 6] = (row->words[column >> 6] & ~bit) | (is_null ? bit : 0);
}

static inline void set_slot(const struct quick *quick, const struct json_member *member,
                            int64_t value)
{
    ASSERT_SLOW(member->column < quick->writer->layout->column_count);
    ASSERT_SLOW(member->word == quick->writer->layout->slots[member->column]);
    struct row *row = quick->writer->row;
    row->words[member->word] = (uint64_t)value;
    set_null_bit(row, member->column, false);
}

static const uint8_t *put_text(struct quick *quick, const struct json_member *member,
                               struct span text, const uint8_t *behind)
{
    ASSERT_SLOW(type_is_text(&member->type));
    ASSERT_SLOW(behind <= quick->end);
    if (!row_set_text(quick->writer, member->column, text)) {
        quick->full = true;
        return NULL;
    }
    return behind;
}

/* A scalar for a STRING column: text decoded, all else as it was sent. */
static const uint8_t *read_text(struct quick *quick, const struct json_member *member,
                                const uint8_t *at)
{
    ASSERT_SLOW(at < quick->end);
    ASSERT_SLOW(member->object == NULL);
    if (*at != '"') {
        const uint8_t *const behind = skip_scalar(at, quick->end);
        return behind == NULL
                   ? NULL
                   : put_text(quick, member, (struct span){at, (size_t)(behind - at)}, behind);
    }
    bool plain;
    const uint8_t *const close = json_text_end(at + 1, quick->end, &plain);
    if (close == NULL) {
        return NULL;
    }
    struct span text = {.data = at + 1, .bytes = (size_t)(close - at) - 1};
    if (!plain && (memchr(text.data, '\\', text.bytes) != NULL || !json_text_is_utf8(text))) {
        const size_t bytes = json_text_decode(text, quick->decoder->scratch.data);
        if (bytes == SIZE_MAX) {
            return NULL;
        }
        text = (struct span){quick->decoder->scratch.data, bytes};
    }
    return put_text(quick, member, text, close + 1);
}

/* Digits of a plain number that 18 digits can hold: its value without the point, and how many
 * digits stand behind the point. NULL: longer, with an exponent, or no number. */
static inline const uint8_t *read_digits(const uint8_t *at, const uint8_t *end, int64_t *value,
                                         uint32_t *fraction)
{
    ASSERT_SLOW(at <= end);
    const bool negative = at < end && *at == '-';
    at += negative;
    const uint8_t *const start = at;
    uint64_t sum = 0;
    while (at < end && (uint8_t)(*at - '0') <= 9) {
        sum = sum * 10 + (uint8_t)(*at - '0');
        at++;
    }
    size_t digits = (size_t)(at - start);
    if (digits == 0 || (digits > 1 && *start == '0')) {
        return NULL;
    }
    *fraction = 0;
    if (at < end && *at == '.') {
        const uint8_t *const point = at++;
        while (at < end && (uint8_t)(*at - '0') <= 9) {
            sum = sum * 10 + (uint8_t)(*at - '0');
            at++;
        }
        *fraction = (uint32_t)(at - point) - 1;
        digits += *fraction;
        if (*fraction == 0) {
            return NULL;
        }
    }
    *value = (int64_t)(negative ? 0 - sum : sum);
    return digits > QUICK_DIGITS_MAX || (at < end && (*at | 0x20) == 'e') ? NULL : at;
}

/* Converts a value by the general rules. */
static const uint8_t *read_general(struct quick *quick, const struct json_member *member,
                                   const uint8_t *at)
{
    ASSERT_SLOW(at < quick->end);
    ASSERT_SLOW(!type_is_text(&member->type));
    struct json_decoder *decoder = quick->decoder;
    const uint8_t *const behind = skip_scalar(at, quick->end);
    if (behind == NULL) {
        return NULL;
    }
    enum json_kind kind = *at == 't' ? JSON_TRUE : JSON_FALSE;
    struct span text = {.data = at, .bytes = (size_t)(behind - at)};
    if (*at == '"') {
        bool plain;
        (void)json_text_end(at + 1, quick->end, &plain);
        kind = JSON_STRING;
        text = (struct span){.data = at + 1, .bytes = text.bytes - 2};
        if (!plain) {
            text.bytes = json_text_decode(text, decoder->scratch.data);
            text.data = decoder->scratch.data;
        }
    } else if (*at != 't' && *at != 'f') {
        (void)json_lexer_number(at, quick->end, &kind);
    }
    struct value value;
    const enum json_outcome outcome =
        json_value_convert(&member->type, decoder->iso_timestamps, kind, text, &value);
    if (outcome == JSON_VALUE_BAD) {
        return NULL;
    }
    value.is_null = outcome == JSON_VALUE_NULL;
    if (!row_set_value(quick->writer, member->column, &value)) {
        quick->full = true;
        return NULL;
    }
    return behind;
}

static bool fits_integer(enum type_kind kind, int64_t value)
{
    ASSERT_SLOW(kind >= TYPE_TINYINT && kind <= TYPE_BIGINT);
    switch (kind) {
    case TYPE_TINYINT:
        return value == (int8_t)value;
    case TYPE_SMALLINT:
        return value == (int16_t)value;
    case TYPE_INT:
        return value == (int32_t)value;
    default:
        return true;
    }
}

static const uint8_t *read_integer(struct quick *quick, const struct json_member *member,
                                   const uint8_t *at)
{
    ASSERT_SLOW(type_is_integer(&member->type));
    ASSERT_SLOW(at < quick->end);
    int64_t value;
    uint32_t fraction;
    const uint8_t *const behind = read_digits(at, quick->end, &value, &fraction);
    if (behind == NULL || fraction != 0 || !fits_integer(member->type.kind, value)) {
        return read_general(quick, member, at);
    }
    set_slot(quick, member, value);
    return behind;
}

static const uint8_t *read_decimal(struct quick *quick, const struct json_member *member,
                                   const uint8_t *at)
{
    int64_t value;
    uint32_t fraction;
    const struct type *type = &member->type;
    ASSERT_SLOW(type->kind == TYPE_DECIMAL);
    ASSERT_SLOW(at < quick->end);
    const uint8_t *const behind = read_digits(at, quick->end, &value, &fraction);
    if (behind == NULL || fraction > type->scale || type->precision > QUICK_DIGITS_MAX) {
        return read_general(quick, member, at);
    }
    const int64_t limit = POWERS_OF_TEN[type->precision - type->scale + fraction];
    if (value >= limit || value <= -limit) {
        return read_general(quick, member, at);
    }
    set_slot(quick, member, value * POWERS_OF_TEN[type->scale - fraction]);
    return behind;
}

static const uint8_t *read_stamp(struct quick *quick, const struct json_member *member,
                                 const uint8_t *at)
{
    ASSERT_SLOW(type_slot_count(&member->type) == 2);
    ASSERT_SLOW(at < quick->end);
    bool plain;
    const uint8_t *const close = *at == '"' ? json_text_end(at + 1, quick->end, &plain) : NULL;
    struct timestamp stamp;
    if (close == NULL || !plain ||
        !json_value_stamp((struct span){at + 1, (size_t)(close - at) - 1},
                          quick->decoder->iso_timestamps, member->type.kind == TYPE_TIMESTAMP_LTZ,
                          &stamp)) {
        return NULL;
    }
    row_set(quick->writer, member->column, &stamp);
    return close + 1;
}

static const uint8_t *read_bytes(struct quick *quick, const struct json_member *member,
                                 const uint8_t *at)
{
    ASSERT_SLOW(at < quick->end);
    bool plain;
    const uint8_t *fault;
    const uint8_t *const close = *at == '"' ? json_text_end(at + 1, quick->end, &plain) : NULL;
    if (close == NULL) {
        return NULL;
    }
    const struct span raw = {at + 1, (size_t)(close - at) - 1};
    uint8_t *into = quick->decoder->scratch.data;
    const size_t bytes = json_text_base64(raw, into, &fault);
    return bytes == SIZE_MAX ? NULL
                             : put_text(quick, member, (struct span){into, bytes}, close + 1);
}

static inline const uint8_t *read_value(struct quick *quick, const struct json_member *member,
                                        const uint8_t *at)
{
    ASSERT_SLOW(at < quick->end);
    ASSERT_SLOW(member->column < quick->writer->layout->column_count);
    if (*at == 'n') {
        return starts_with(at, quick->end, "null", 4) ? at + 4 : NULL;
    }
    if (*at == '{' || *at == '[') {
        return NULL;
    }
    switch (member->type.kind) {
    case TYPE_CHAR:
    case TYPE_VARCHAR:
        return read_text(quick, member, at);
    case TYPE_BINARY:
    case TYPE_VARBINARY:
        return read_bytes(quick, member, at);
    case TYPE_TINYINT:
    case TYPE_SMALLINT:
    case TYPE_INT:
    case TYPE_BIGINT:
        return read_integer(quick, member, at);
    case TYPE_DECIMAL:
        return read_decimal(quick, member, at);
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ:
        return read_stamp(quick, member, at);
    default:
        return read_general(quick, member, at);
    }
}

static const uint8_t *read_object(struct quick *quick, struct json_object *object,
                                  const uint8_t *at, uint32_t depth);

/* Reads a member's value where the schema says what it is. */
static const uint8_t *read_member(struct quick *quick, struct json_member *member,
                                  const uint8_t *at, uint32_t depth)
{
    ASSERT_SLOW(at < quick->end);
    ASSERT_SLOW(depth <= JSON_PATH_MAX);
    if (member == NULL) {
        return skip_value(at, quick->end);
    }
    if (member->seen == quick->decoder->row_number) {
        return NULL;
    }
    member->seen = quick->decoder->row_number;
    if (member->object != NULL) {
        if (*at == '{') {
            return read_object(quick, member->object, at + 1, depth + 1);
        }
        return starts_with(at, quick->end, "null", 4) ? at + 4 : NULL;
    }
    if (member->column == JSON_COLUMN_NONE) {
        return skip_value(at, quick->end);
    }
    return read_value(quick, member, at);
}

/* Reads the members of an object behind its opening bracket; returns behind the closing one. */
static const uint8_t *read_object(struct quick *quick, struct json_object *object,
                                  const uint8_t *at, uint32_t depth)
{
    ASSERT(depth <= JSON_PATH_MAX);
    const uint8_t *const end = quick->end;
    ASSERT_SLOW(at <= end);
    uint32_t known = 0;
    at = skip_space(at, end);
    if (at < end && *at == '}') {
        return quick->decoder->fail_on_missing && object->member_count != 0 ? NULL : at + 1;
    }
    for (uint32_t place = 0;; place++) {
        struct json_member *member = NULL;
        if (place < JSON_SHAPE_MAX && shape_matches(&object->shapes[place], at, end)) {
            member = object->shapes[place].member;
            at += object->shapes[place].bytes;
        } else {
            at = read_name(quick, object, place, at, &member);
        }
        at = at == NULL ? NULL : skip_space(at, end);
        if (at == NULL || at == end) {
            return NULL;
        }
        known += member != NULL;
        at = read_member(quick, member, at, depth);
        at = at == NULL ? NULL : skip_space(at, end);
        if (at == NULL || at == end || (*at != ',' && *at != '}')) {
            return NULL;
        }
        if (*at++ == '}') {
            break;
        }
        at = skip_space(at, end);
    }
    return quick->decoder->fail_on_missing && known < object->member_count ? NULL : at;
}

enum json_step json_quick_row(struct json_decoder *decoder, struct row_writer *writer)
{
    ASSERT(decoder->document.bytes > 0);
    ASSERT(writer->row != NULL);
    struct quick quick = {
        .decoder = decoder,
        .writer = writer,
        .end = decoder->document.data + decoder->document.bytes,
    };
    const uint8_t *const start = skip_space(decoder->document.data, quick.end);
    if (start == quick.end || *start != '{') {
        return JSON_STEP_GIVE_UP;
    }
    decoder->row_number++;
    if (read_object(&quick, decoder->root, start + 1, 0) == NULL) {
        return quick.full ? JSON_STEP_FULL : JSON_STEP_GIVE_UP;
    }
    return JSON_STEP_ROW;
}
