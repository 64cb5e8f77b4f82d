/* SPDX-License-Identifier: Apache-2.0 */
/* The output body of the tests and the printing of rows. */
#include "tests/dataplane/operator/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "state/arena.h"
#include "state/heap.h"

#define PARCEL_BYTES (UINT32_C(1) << 20)
#define ROW_ROOM     (UINT32_C(64) << 10)

struct output {
    struct harness *harness;
    uint32_t room;
    uint32_t room_left;
    uint32_t small_bytes; /* rows begin with this much room, so that growing is tested */
    _Alignas(8) uint8_t row[ROW_ROOM];
};

struct type type_of(enum type_kind kind)
{
    struct type type = {.kind = kind, .nullable = true};
    if (kind == TYPE_VARCHAR) {
        type.length = TYPE_LENGTH_MAX;
    }
    return type;
}

struct type type_decimal(uint8_t precision, uint8_t scale)
{
    return (struct type){
        .kind = TYPE_DECIMAL,
        .nullable = true,
        .precision = precision,
        .scale = scale,
    };
}

struct value v_null(void)
{
    return (struct value){.is_null = true};
}

struct value v_int(int64_t value)
{
    return (struct value){.i64 = value};
}

struct value v_double(double value)
{
    return (struct value){.f64 = value};
}

struct value v_float(float value)
{
    struct value out = {.i64 = 0};
    out.f32 = value;
    return out;
}

struct value v_text(const char *text)
{
    return (struct value){.text = {.data = (const uint8_t *)text, .bytes = strlen(text)}};
}

struct value v_time(int64_t ms)
{
    return (struct value){.timestamp = {.ms = ms}};
}

struct value v_wide(int64_t value)
{
    return (struct value){.i128 = value};
}

struct aggregate_call call_of(enum aggregate_function function, uint32_t argument,
                              struct type argument_type, struct type result_type)
{
    return (struct aggregate_call){
        .function = function,
        .argument = argument,
        .filter = AGGREGATE_COLUMN_NONE,
        .argument_type = argument_type,
        .result_type = result_type,
        .lag_offset = 1,
        .lag_default = {.is_null = true},
        .separator = {.data = (const uint8_t *)",", .bytes = 1},
    };
}

struct harness *harness_create(const struct type *input, uint32_t input_count,
                               const struct type *output, uint32_t output_count, size_t arena_bytes)
{
    struct harness *harness = calloc(1, sizeof(*harness));
    assert_non_null(harness);
    memcpy(harness->input_types, input, input_count * sizeof(*input));
    memcpy(harness->output_types, output, output_count * sizeof(*output));
    row_layout_init(&harness->input, harness->input_types, input_count, harness->input_slots);
    row_layout_init(&harness->node.layout, harness->output_types, output_count,
                    harness->output_slots);
    harness->memory = aligned_alloc(ARENA_PAGE_BYTES, arena_bytes);
    const struct arena_config config = {
        .memory = harness->memory,
        .bytes = arena_bytes,
        .shard_count = 4,
    };
    struct error error = {0};
    assert_int_equal(0, arena_create(&config, &harness->context.arena, &error));
    assert_int_equal(0, heap_create(harness->context.arena, &harness->context.heap, &error));
    harness->context.output = calloc(1, sizeof(*harness->context.output));
    harness->context.output->harness = harness;
    harness->context.output->room = UINT32_MAX;
    harness->context.output->room_left = UINT32_MAX;
    harness->context.time_zone = "UTC";
    harness->context.counters = harness->counters;
    harness->parcel = aligned_alloc(64, PARCEL_BYTES + 1024);
    memset(harness->parcel, 0, sizeof(struct parcel));
    harness->lines = calloc(HARNESS_LINES_MAX, sizeof(harness->lines[0]));
    harness->times = calloc(HARNESS_LINES_MAX, sizeof(harness->times[0]));
    return harness;
}

void harness_open(struct harness *harness)
{
    const struct row_layout *inputs[1] = {&harness->input};
    struct error error = {0};
    const struct operator_ops *ops = operator_find(harness->node.operator);
    const int result =
        ops->open(&harness->node, inputs, &harness->context, &harness->operator, & error);
    if (result != 0) {
        fail_msg("open: %s", error.text);
    }
}

void harness_destroy(struct harness *harness)
{
    harness->operator->ops->close(harness->operator);
    heap_check(harness->context.heap);
    arena_check(harness->context.arena);
    heap_destroy(harness->context.heap);
    harness_forget(harness);
    free(harness->lines);
    free(harness->times);
    free(harness->parcel);
    free(harness->context.output);
    free(harness->memory);
    free(harness);
}

void harness_row(struct harness *harness, enum row_kind kind, int64_t time_ms,
                 const struct value *values)
{
    struct parcel *parcel = harness->parcel;
    if (parcel->row_count == PARCEL_ROWS_MAX || parcel->bytes_used > PARCEL_BYTES / 2) {
        assert_int_equal(OPERATOR_DONE, harness_process(harness));
    }
    struct row_writer writer;
    assert_true(row_begin(&writer, &harness->input, parcel->data + parcel->bytes_used,
                          PARCEL_BYTES - parcel->bytes_used, NULL));
    writer.row->kind = kind;
    writer.row->time_ms = time_ms;
    for (uint32_t i = 0; i < harness->input.column_count; i++) {
        assert_true(row_set_value(&writer, i, &values[i]));
    }
    parcel->bytes_used += row_end(&writer);
    parcel->row_count++;
}

static void room_renew(struct harness *harness)
{
    harness->context.output->room_left = harness->context.output->room;
}

enum operator_verdict harness_process(struct harness *harness)
{
    enum operator_verdict verdict = OPERATOR_DONE;
    if (harness->parcel->row_count != 0) {
        do {
            room_renew(harness);
            verdict = harness->operator->ops->process(harness->operator, 0, harness->parcel);
        } while (verdict == OPERATOR_AGAIN);
    }
    harness->parcel->row_count = 0;
    harness->parcel->bytes_used = 0;
    return verdict;
}

enum operator_verdict harness_advance(struct harness *harness, int64_t watermark_ms)
{
    enum operator_verdict verdict = harness_process(harness);
    if (verdict != OPERATOR_DONE || harness->operator->ops->advance == NULL) {
        return verdict;
    }
    do {
        room_renew(harness);
        verdict = harness->operator->ops->advance(harness->operator, watermark_ms);
    } while (verdict == OPERATOR_AGAIN);
    return verdict;
}

enum operator_verdict harness_tick(struct harness *harness, int64_t processing_ms)
{
    enum operator_verdict verdict = harness_process(harness);
    if (verdict != OPERATOR_DONE) {
        return verdict;
    }
    assert_true(harness->operator->ops->wants_ticks(&harness->node));
    do {
        room_renew(harness);
        verdict = harness->operator->ops->tick(harness->operator, processing_ms);
    } while (verdict == OPERATOR_AGAIN);
    return verdict;
}

void harness_room(struct harness *harness, uint32_t row_count)
{
    harness->context.output->room = row_count;
}

static void decimal_print(char *into, size_t bytes, const struct type *type, __int128 value)
{
    char digits[48];
    size_t used = 0;
    const bool negative = value < 0;
    unsigned __int128 rest = negative ? -(unsigned __int128)value : (unsigned __int128)value;
    while (rest != 0 || used <= type->scale) {
        if (used == type->scale && type->scale != 0) {
            digits[sizeof(digits) - ++used - 1] = '.';
            if (rest == 0) {
                digits[sizeof(digits) - ++used - 1] = '0';
                break;
            }
            continue;
        }
        /* One more than the scale once the point is in. */
        digits[sizeof(digits) - ++used - 1] = (char)('0' + (int)(rest % 10));
        rest /= 10;
        if (rest == 0 && used > type->scale) {
            break;
        }
    }
    (void)snprintf(into, bytes, "%s%.*s", negative ? "-" : "", (int)used,
                   digits + sizeof(digits) - used - 1);
}

static void real_print(char *into, size_t bytes, double value, bool single)
{
    for (int digits = 1; digits <= 17; digits++) {
        (void)snprintf(into, bytes, "%.*g", digits, value);
        const double back = strtod(into, NULL);
        if (back == value || (single && (float)back == (float)value) || value != value) {
            return;
        }
    }
}

static void value_print(char *into, size_t bytes, const struct type *type,
                        const struct value *value)
{
    if (value->is_null) {
        (void)snprintf(into, bytes, "NULL");
    } else if (type_is_text(type) && value->text.bytes > 100) {
        (void)snprintf(into, bytes, "%zu bytes", value->text.bytes);
    } else if (type_is_text(type)) {
        (void)snprintf(into, bytes, "'%.*s'", (int)value->text.bytes,
                       (const char *)value->text.data);
    } else if (type->kind == TYPE_DECIMAL) {
        decimal_print(into, bytes, type,
                      type_slot_count(type) == 2 ? value->i128 : (__int128)value->i64);
    } else if (type->kind == TYPE_DOUBLE || type->kind == TYPE_FLOAT) {
        real_print(into, bytes, type->kind == TYPE_FLOAT ? value->f32 : value->f64,
                   type->kind == TYPE_FLOAT);
    } else {
        (void)snprintf(into, bytes, "%lld", (long long)value->i64);
    }
}

static void row_print(const struct row_layout *layout, const struct row *row, char *into)
{
    static const char *const kinds[] = {"+I", "-U", "+U", "-D"};
    size_t used = (size_t)snprintf(into, HARNESS_LINE_BYTES, "%s(", kinds[row->kind]);
    for (uint32_t i = 0; i < layout->column_count; i++) {
        char text[HARNESS_LINE_BYTES / 2];
        const struct value value = row_value(layout, row, i);
        value_print(text, sizeof(text), &layout->types[i], &value);
        used += (size_t)snprintf(into + used, HARNESS_LINE_BYTES - used, "%s%s", i == 0 ? "" : ", ",
                                 text);
        assert_true(used < HARNESS_LINE_BYTES - 2);
    }
    (void)snprintf(into + used, HARNESS_LINE_BYTES - used, ")");
}

static void line_add(struct harness *harness, const struct row *row)
{
    char line[HARNESS_LINE_BYTES];
    assert_true(row_check(&harness->node.layout, row, row->bytes));
    assert_true(harness->line_count < HARNESS_LINES_MAX);
    row_print(&harness->node.layout, row, line);
    harness->times[harness->line_count] = row->time_ms;
    harness->lines[harness->line_count++] = strdup(line);
    struct output *output = harness->context.output;
    output->room_left -= output->room_left != 0;
}

bool output_row_begin(struct output *output, struct row_writer *writer, const struct row *from)
{
    const struct row_layout *layout = &output->harness->node.layout;
    return row_begin(writer, layout, output->row, row_bytes_fixed(layout), from);
}

bool output_row_grow(struct output *output, struct row_writer *writer, uint32_t tail_bytes)
{
    if (tail_bytes > ROW_ROOM - writer->used) {
        return false;
    }
    writer->capacity = writer->used + tail_bytes;
    return true;
}

void output_row_end(struct output *output, struct row_writer *writer)
{
    (void)row_end(writer);
    line_add(output->harness, writer->row);
}

bool output_row_copy(struct output *output, const struct row *row)
{
    line_add(output->harness, row);
    return true;
}

bool output_has_room(const struct output *output)
{
    return output->room_left != 0;
}

void harness_forget(struct harness *harness)
{
    for (uint32_t i = 0; i < harness->line_count; i++) {
        free(harness->lines[i]);
    }
    harness->line_count = 0;
}

void harness_expect(struct harness *harness, const char *const *lines, uint32_t count)
{
    assert_int_equal(OPERATOR_DONE, harness_process(harness));
    for (uint32_t i = 0; i < count && i < harness->line_count; i++) {
        assert_string_equal(harness->lines[i], lines[i]);
    }
    assert_int_equal(harness->line_count, count);
    harness_forget(harness);
}

static int line_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void harness_expect_sorted(struct harness *harness, const char *const *lines, uint32_t count)
{
    const char **sorted = calloc(count + 1, sizeof(sorted[0]));
    memcpy(sorted, lines, count * sizeof(sorted[0]));
    qsort(sorted, count, sizeof(sorted[0]), line_compare);
    assert_int_equal(OPERATOR_DONE, harness_process(harness));
    qsort(harness->lines, harness->line_count, sizeof(harness->lines[0]), line_compare);
    harness_expect(harness, sorted, count);
    free(sorted);
}
