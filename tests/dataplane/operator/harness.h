/* SPDX-License-Identifier: Apache-2.0 */
/* What operator tests share: one operator over an arena of its own, rows in by values, rows out as
 * lines of text, sorted or in order. It supplies the bodies of output_*: the library's are not
 * linked. Rows print as "+I(1, 'abc', 2.50, NULL)"; times are milliseconds. */
#pragma once

#include "base.h"
#include "dataplane/operator/operator.h"

#define HARNESS_COLUMNS_MAX 32
#define HARNESS_LINES_MAX   200000
#define HARNESS_LINE_BYTES  512

struct harness {
    struct operator_context context;
    struct operator* operator;
    struct plan_node node;
    struct type input_types[HARNESS_COLUMNS_MAX];
    uint16_t input_slots[HARNESS_COLUMNS_MAX];
    struct row_layout input;
    struct type output_types[HARNESS_COLUMNS_MAX];
    uint16_t output_slots[HARNESS_COLUMNS_MAX];
    void *memory;
    uint64_t counters[OPERATOR_COUNTER_COUNT];
    /* Rows waiting to be given in one parcel. */
    struct parcel *parcel;
    /* Lines of the output so far. */
    char **lines;
    int64_t *times;
    uint32_t line_count;
};

/* Makes a nullable type; text is of any length. */
struct type type_of(enum type_kind kind);

/* Makes a nullable DECIMAL. */
struct type type_decimal(uint8_t precision, uint8_t scale);

/* A NULL. */
struct value v_null(void);
/* A value that is an int64_t in its slot. */
struct value v_int(int64_t value);
/* A DOUBLE. */
struct value v_double(double value);
/* A FLOAT. */
struct value v_float(float value);
/* Text, borrowed. */
struct value v_text(const char *text);
/* A TIMESTAMP by its milliseconds. */
struct value v_time(int64_t ms);
/* A DECIMAL of more than 18 digits, unscaled. */
struct value v_wide(int64_t value);

/* Makes a call; argument AGGREGATE_COLUMN_NONE for COUNT(*). */
struct aggregate_call call_of(enum aggregate_function function, uint32_t argument,
                              struct type argument_type, struct type result_type);

/* Sets the layouts and opens nothing yet: node is to be filled. */
struct harness *harness_create(const struct type *input, uint32_t input_count,
                               const struct type *output, uint32_t output_count,
                               size_t arena_bytes);

/* Opens the operator of harness->node; the test fails when that fails. */
void harness_open(struct harness *harness);
/* Closes it, checks the arena and frees all. */
void harness_destroy(struct harness *harness);

/* Adds a row to the parcel being filled. */
void harness_row(struct harness *harness, enum row_kind kind, int64_t time_ms,
                 const struct value *values);

/* Gives the rows gathered to the operator, repeating while it answers AGAIN. */
enum operator_verdict harness_process(struct harness *harness);

/* Gathered rows, then the watermark, repeating while it answers AGAIN. */
enum operator_verdict harness_advance(struct harness *harness, int64_t watermark_ms);

/* Gathered rows, then processing time. */
enum operator_verdict harness_tick(struct harness *harness, int64_t processing_ms);

/* How many rows the output takes before it says no; UINT32_MAX at first. */
void harness_room(struct harness *harness, uint32_t row_count);

/* Compares the lines so far with the expected ones, then forgets them. */
void harness_expect(struct harness *harness, const char *const *lines, uint32_t count);

/* As harness_expect, without regard to order. */
void harness_expect_sorted(struct harness *harness, const char *const *lines, uint32_t count);

/* Forgets the lines so far. */
void harness_forget(struct harness *harness);

#define EXPECT(harness, ...)                                                                       \
    do {                                                                                           \
        static const char *const expected_[] = {__VA_ARGS__};                                      \
        harness_expect(harness, expected_, COUNT_OF(expected_));                                   \
    } while (0)

#define EXPECT_SORTED(harness, ...)                                                                \
    do {                                                                                           \
        static const char *const expected_[] = {__VA_ARGS__};                                      \
        harness_expect_sorted(harness, expected_, COUNT_OF(expected_));                            \
    } while (0)

#define ROW(harness, time_ms, ...)                                                                 \
    harness_row(harness, ROW_INSERT, time_ms, (const struct value[]){__VA_ARGS__})
