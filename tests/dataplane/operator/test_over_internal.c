/* SPDX-License-Identifier: Apache-2.0 */
/* The fused OVER against what it stands for: random stacks of OVER nodes over random rows (late
 * ones, ties, no time, times before 1970, several watermark patterns, an output with little room)
 * answer every row alike, level on level and fused. The stack's own answers are Flink's, by
 * test_over.c and test_over_event.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dataplane/operator/operator.h"
#include "state/arena.h"
#include "state/heap.h"

#define LEVELS_MAX   4
#define CALLS_MAX    3
#define BASE_COLUMNS 6
#define COLUMNS_MAX  (BASE_COLUMNS + LEVELS_MAX * CALLS_MAX)
#define ROWS_MAX     160
#define ARENA_BYTES  (UINT32_C(4) << 20)
#define PARCEL_BYTES (UINT32_C(1) << 20)
#define NONE         AGGREGATE_COLUMN_NONE

enum {
    ID,
    KEY,
    NUMBER,
    TEXT,
    FLAG,
    REAL
};

/* A small generator, so that a failing seed can be run alone. */
struct dice {
    uint64_t state;
};

static uint32_t roll(struct dice *dice, uint32_t below)
{
    dice->state = dice->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(dice->state >> 33) % below;
}

struct frame_case {
    struct plan_over_frame frame;
    struct aggregate_call calls[CALLS_MAX];
};

struct row_case {
    int64_t time_ms;
    int64_t watermark_ms; /* after it; WATERMARK_MIN: none */
    int64_t number;
    uint8_t key;
    uint8_t flag; /* 2: NULL */
    bool no_number;
    bool no_text;
    char text[1600];
};

struct scenario {
    struct frame_case frames[LEVELS_MAX];
    uint32_t frame_count;
    bool on_arrival;
    bool only_end;
    struct row_case rows[ROWS_MAX];
    uint32_t row_count;
};

/* What an operator writes into: rows of one layout, and how many may come before it says no. */
struct output {
    struct row_layout layout;
    struct type types[COLUMNS_MAX];
    uint16_t slots[COLUMNS_MAX];
    struct parcel *parcel;
    uint32_t room;
};

struct level {
    struct plan_node node;
    struct operator_context context;
    struct operator* operator;
    struct output output;
    uint64_t counters[OPERATOR_COUNTER_COUNT];
};

struct chain {
    struct arena *arena;
    struct heap *heap;
    void *memory;
    struct output input;
    struct level levels[LEVELS_MAX];
    uint32_t level_count;
    struct row *answers[ROWS_MAX]; /* by id */
    uint32_t answer_count;
};

static struct parcel *parcel_make(void)
{
    struct parcel *parcel = aligned_alloc(CACHE_LINE_BYTES, PARCEL_BYTES);
    assert_non_null(parcel);
    memset(parcel, 0, sizeof(*parcel));
    parcel->bytes_max = PARCEL_BYTES - (uint32_t)sizeof(*parcel);
    return parcel;
}

bool output_row_begin(struct output *output, struct row_writer *writer, const struct row *from)
{
    struct parcel *parcel = output->parcel;
    return row_begin(writer, &output->layout, parcel->data + parcel->bytes_used,
                     parcel->bytes_max - parcel->bytes_used, from);
}

bool output_row_grow(struct output *output, struct row_writer *writer, uint32_t tail_bytes)
{
    fail_msg("the parcel holds all rows");
    return false;
}

void output_row_end(struct output *output, struct row_writer *writer)
{
    output->parcel->bytes_used += row_end(writer);
    output->parcel->row_count++;
    output->room--;
}

bool output_row_copy(struct output *output, const struct row *row)
{
    fail_msg("OVER copies no row");
    return false;
}

bool output_has_room(const struct output *output)
{
    return output->room != 0;
}

static void output_reset(struct output *output)
{
    output->parcel->row_count = 0;
    output->parcel->bytes_used = 0;
    output->room = 3;
}

static struct type nullable(enum type_kind kind)
{
    return (struct type){.kind = kind, .nullable = true, .length = TYPE_LENGTH_MAX};
}

static void output_init(struct output *output, const struct output *below,
                        const struct plan_over_frame *frames, uint32_t frame_count)
{
    const uint32_t before = below == NULL ? 0 : below->layout.column_count;
    uint32_t count = before;
    for (uint32_t i = 0; i < before; i++) {
        output->types[i] = below->types[i];
    }
    for (uint32_t f = 0; f < frame_count; f++) {
        for (uint32_t i = 0; i < frames[f].call_count; i++) {
            output->types[count++] = frames[f].calls[i].result_type;
        }
    }
    row_layout_init(&output->layout, output->types, count, output->slots);
    output->parcel = parcel_make();
    output_reset(output);
}

static void input_init(struct output *input)
{
    static const enum type_kind kinds[BASE_COLUMNS] = {TYPE_INT,     TYPE_INT,     TYPE_INT,
                                                       TYPE_VARCHAR, TYPE_BOOLEAN, TYPE_DOUBLE};
    for (uint32_t i = 0; i < BASE_COLUMNS; i++) {
        input->types[i] = nullable(kinds[i]);
    }
    row_layout_init(&input->layout, input->types, BASE_COLUMNS, input->slots);
    input->parcel = parcel_make();
    output_reset(input);
}

static void chain_init(struct chain *chain)
{
    struct error error = {0};
    chain->memory = aligned_alloc(ARENA_PAGE_BYTES, ARENA_BYTES);
    assert_non_null(chain->memory);
    memset(chain->memory, 0, ARENA_BYTES);
    const struct arena_config config = {
        .memory = chain->memory, .bytes = ARENA_BYTES, .shard_count = 4};
    assert_int_equal(0, arena_create(&config, &chain->arena, &error));
    assert_int_equal(0, heap_create(chain->arena, &chain->heap, &error));
    input_init(&chain->input);
}

/* Puts one OVER node on top: fused, or of a single frame.
 * returns  whether it opened */
static bool level_push(struct chain *chain, const struct plan_over *over,
                       const struct plan_over_frame *frames, uint32_t frame_count)
{
    struct level *level = &chain->levels[chain->level_count];
    struct output *below =
        chain->level_count == 0 ? &chain->input : &chain->levels[chain->level_count - 1].output;
    output_init(&level->output, below, frames, frame_count);
    level->node = (struct plan_node){
        .operator= PLAN_OVER,
        .id = chain->level_count + 1,
        .identity = chain->level_count + 1,
        .over = *over,
        .layout = level->output.layout,
    };
    level->context = (struct operator_context){
        .arena = chain->arena,
        .heap = chain->heap,
        .output = &level->output,
        .time_zone = "UTC",
        .counters = level->counters,
    };
    struct error error = {0};
    const struct row_layout *input = &below->layout;
    const int verdict = operator_find(PLAN_OVER)->open(&level->node, &input, &level->context,
                                                       &level->operator, & error);
    if (verdict != 0) {
        assert_int_equal(-ENOTSUP, verdict);
        free(level->output.parcel);
        return false;
    }
    chain->level_count++;
    return true;
}

static void chain_destroy(struct chain *chain)
{
    for (uint32_t i = 0; i < chain->level_count; i++) {
        chain->levels[i].operator->ops->close(chain->levels[i].operator);
        free(chain->levels[i].output.parcel);
    }
    for (uint32_t i = 0; i < ROWS_MAX; i++) {
        free(chain->answers[i]);
    }
    heap_check(chain->heap);
    heap_destroy(chain->heap);
    free(chain->input.parcel);
    free(chain->memory);
    free(chain);
}

static void answers_keep(struct chain *chain, struct output *output)
{
    const struct row *row = parcel_first(output->parcel);
    for (uint32_t i = 0; i < output->parcel->row_count; i++, row = parcel_next(row)) {
        const int64_t id = row_i64(&output->layout, row, ID);
        assert_null(chain->answers[id]);
        chain->answers[id] = malloc(row->bytes);
        assert_non_null(chain->answers[id]);
        memcpy(chain->answers[id], row, row->bytes);
        chain->answer_count++;
    }
    output_reset(output);
}

/* Gives what a level has put out to the next one, or keeps it. */
static void pass_up(struct chain *chain, uint32_t from)
{
    for (uint32_t i = from; i <= chain->level_count; i++) {
        struct output *output = i == 0 ? &chain->input : &chain->levels[i - 1].output;
        if (i == chain->level_count) {
            answers_keep(chain, output);
            return;
        }
        struct operator* operator= chain->levels[i].operator;
        enum operator_verdict verdict = OPERATOR_DONE;
        do {
            verdict =
                output->parcel->row_count == 0 ? OPERATOR_DONE :
                                               operator->ops->process(operator, 0, output->parcel);
        } while (verdict == OPERATOR_AGAIN);
        assert_int_equal(OPERATOR_DONE, verdict);
        output_reset(output);
    }
}

static void chain_advance(struct chain *chain, int64_t watermark_ms)
{
    for (uint32_t i = 0; i < chain->level_count; i++) {
        struct operator* operator= chain->levels[i].operator;
        enum operator_verdict verdict = OPERATOR_AGAIN;
        while (verdict == OPERATOR_AGAIN) {
            verdict = operator->ops->advance(operator, watermark_ms);
            pass_up(chain, i + 1);
        }
        assert_int_equal(OPERATOR_DONE, verdict);
    }
}

static void chain_row(struct chain *chain, uint32_t id, const struct row_case *from)
{
    const struct row header = {.time_ms = from->time_ms};
    struct row_writer writer;
    assert_true(output_row_begin(&chain->input, &writer, &header));
    row_set_i64(&writer, ID, id);
    row_set_i64(&writer, KEY, from->key);
    if (!from->no_number) {
        const double real = (double)from->number / 3;
        row_set_i64(&writer, NUMBER, from->number);
        row_set(&writer, REAL, &real);
    }
    if (!from->no_text) {
        const struct span text = {(const uint8_t *)from->text, strlen(from->text)};
        assert_true(row_set_text(&writer, TEXT, text));
    }
    if (from->flag != 2) {
        row_set_i64(&writer, FLAG, from->flag);
    }
    output_row_end(&chain->input, &writer);
}

static void chain_run(struct chain *chain, const struct scenario *scenario)
{
    for (uint32_t i = 0; i < scenario->row_count; i++) {
        const struct row_case *row = &scenario->rows[i];
        chain_row(chain, i, row);
        if (row->watermark_ms != WATERMARK_MIN || i + 1 == scenario->row_count) {
            pass_up(chain, 0);
        }
        if (row->watermark_ms != WATERMARK_MIN) {
            chain_advance(chain, row->watermark_ms);
        }
    }
    chain_advance(chain, WATERMARK_MAX);
}

static void call_draw(struct dice *dice, const struct plan_over_frame *frame, bool on_arrival,
                      struct aggregate_call *call)
{
    static const enum aggregate_function any[] = {
        AGGREGATE_COUNT, AGGREGATE_SUM,         AGGREGATE_MIN,        AGGREGATE_MAX,
        AGGREGATE_AVG,   AGGREGATE_FIRST_VALUE, AGGREGATE_LAST_VALUE, AGGREGATE_LISTAGG,
        AGGREGATE_LAG,   AGGREGATE_ROW_NUMBER,  AGGREGATE_RANK,       AGGREGATE_DENSE_RANK,
    };
    /* LAG and the ranks stand over unbounded frames only. */
    enum aggregate_function function = any[roll(dice, frame->unbounded ? 12 : 8)];
    if (function >= AGGREGATE_ROW_NUMBER && function <= AGGREGATE_DENSE_RANK) {
        function = frame->is_rows ? AGGREGATE_ROW_NUMBER : function;
        function = !frame->is_rows && function == AGGREGATE_ROW_NUMBER ? AGGREGATE_RANK : function;
    }
    const bool sums = function == AGGREGATE_SUM || function == AGGREGATE_AVG;
    const bool drifts = on_arrival && !frame->is_rows && !frame->unbounded;
    uint32_t column = roll(dice, 2) == 0 ? NUMBER : TEXT;
    column = sums ? (roll(dice, 3) == 0 && !drifts ? REAL : NUMBER) : column;
    column = function == AGGREGATE_LISTAGG ? TEXT : column;
    const bool counts_rows = function >= AGGREGATE_ROW_NUMBER && function != AGGREGATE_LAG;
    const enum type_kind kinds[] = {
        [NUMBER] = TYPE_INT, [TEXT] = TYPE_VARCHAR, [REAL] = TYPE_DOUBLE};
    *call = (struct aggregate_call){
        .function = function,
        .argument =
            counts_rows || (function == AGGREGATE_COUNT && roll(dice, 2) == 0) ? NONE : column,
        .filter = function == AGGREGATE_LAG || counts_rows || roll(dice, 4) != 0 ? NONE : FLAG,
        .argument_type = nullable(kinds[column]),
        .result_type = nullable(kinds[column]),
        .lag_offset = 1 + roll(dice, 3),
        .lag_default = {.is_null = true},
        .separator = {.data = (const uint8_t *)",", .bytes = 1},
    };
    call->distinct = call->argument != NONE && call->argument != REAL && roll(dice, 3) == 0 &&
                     (sums || function == AGGREGATE_COUNT || function == AGGREGATE_MAX);
    if (function == AGGREGATE_COUNT || counts_rows) {
        call->result_type = nullable(TYPE_BIGINT);
    }
}

static void frame_draw(struct dice *dice, bool on_arrival, struct frame_case *out)
{
    static const int64_t ranges[] = {0, 4, 10, 33, 90};
    static const int64_t rows[] = {0, 1, 3, 7};
    struct plan_over_frame *frame = &out->frame;
    frame->is_rows = roll(dice, 3) == 0;
    frame->unbounded = roll(dice, 4) == 0;
    frame->preceding = frame->is_rows ? rows[roll(dice, 4)] : ranges[roll(dice, 5)];
    frame->call_count = 1 + roll(dice, CALLS_MAX);
    frame->calls = out->calls;
    for (uint32_t i = 0; i < frame->call_count; i++) {
        call_draw(dice, frame, on_arrival, &out->calls[i]);
    }
}

/* Rows wander forward with jumps back; the watermark follows by a delay, or comes only at the end.
 */
static void rows_draw(struct dice *dice, struct scenario *scenario)
{
    const int64_t start = roll(dice, 4) == 0 ? -30 : 1000;
    const uint32_t jitter = roll(dice, 3) == 0 ? 1 : 1 + roll(dice, 60);
    const uint32_t stride = 1 + roll(dice, 12);
    const uint32_t every = 1 + roll(dice, 6);
    const int64_t delay = roll(dice, 40);
    int64_t highest = INT64_MIN;
    int64_t now = start;
    scenario->row_count = 20 + roll(dice, ROWS_MAX - 20);
    const bool is_wild = roll(dice, 3) == 0;
    for (uint32_t i = 0; i < scenario->row_count; i++) {
        struct row_case *row = &scenario->rows[i];
        now += roll(dice, 3) == 0 ? 0 : roll(dice, stride);
        now += roll(dice, 25) == 0 ? 150 : 0;
        row->time_ms = roll(dice, 60) == 0 ? ROW_TIME_NONE : now - roll(dice, jitter);
        if (is_wild && roll(dice, 4) == 0) {
            row->time_ms = now + (int64_t)roll(dice, 500) - 200; /* far ahead, far behind */
        }
        row->key = (uint8_t)roll(dice, 3);
        row->number = (int64_t)roll(dice, 9) - 4;
        row->flag = (uint8_t)roll(dice, 3);
        row->no_number = roll(dice, 7) == 0;
        row->no_text = roll(dice, 7) == 0;
        const int width = roll(dice, 50) == 0 ? 1500 : 1;
        (void)snprintf(row->text, sizeof(row->text), "%0*u", width, roll(dice, 12));
        if (row->time_ms != ROW_TIME_NONE && row->time_ms > highest) {
            highest = row->time_ms;
        }
        const bool moves = !scenario->only_end && roll(dice, every) == 0 && highest != INT64_MIN;
        row->watermark_ms = moves ? highest - delay : WATERMARK_MIN;
    }
}

static void scenario_draw(uint64_t seed, bool on_arrival, struct scenario *scenario)
{
    struct dice dice = {.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
    *scenario = (struct scenario){.on_arrival = on_arrival, .only_end = roll(&dice, 5) == 0};
    scenario->frame_count = 2 + roll(&dice, LEVELS_MAX - 1);
    for (uint32_t i = 0; i < scenario->frame_count; i++) {
        frame_draw(&dice, on_arrival, &scenario->frames[i]);
    }
    rows_draw(&dice, scenario);
}

/* Level on level, or all in one.
 * returns  NULL when the state of a key would be too large */
static struct chain *scenario_run(const struct scenario *scenario, bool is_fused)
{
    static const uint32_t key_column[] = {KEY};
    struct plan_over_frame frames[LEVELS_MAX];
    struct chain *chain = calloc(1, sizeof(*chain));
    assert_non_null(chain);
    chain_init(chain);
    bool opened = true;
    for (uint32_t i = 0; i < scenario->frame_count; i++) {
        frames[i] = scenario->frames[i].frame;
        const struct plan_over single = {
            .key = {.columns = key_column, .count = 1},
            .is_rows = frames[i].is_rows,
            .unbounded = frames[i].unbounded,
            .preceding = frames[i].preceding,
            .on_arrival = scenario->on_arrival,
            .calls = frames[i].calls,
            .call_count = frames[i].call_count,
        };
        opened = opened && (is_fused || level_push(chain, &single, &frames[i], 1));
    }
    const struct plan_over all = {
        .key = {.columns = key_column, .count = 1},
        .on_arrival = scenario->on_arrival,
        .frames = frames,
        .frame_count = scenario->frame_count,
    };
    if (is_fused) {
        opened = level_push(chain, &all, frames, scenario->frame_count);
    }
    if (!opened) {
        chain_destroy(chain);
        return NULL;
    }
    chain_run(chain, scenario);
    return chain;
}

static bool values_equal(const struct type *type, const struct value *a, const struct value *b)
{
    if (a->is_null || b->is_null) {
        return a->is_null == b->is_null;
    }
    if (type_is_text(type)) {
        return a->text.bytes == b->text.bytes &&
               (a->text.bytes == 0 || memcmp(a->text.data, b->text.data, a->text.bytes) == 0);
    }
    return a->i64 == b->i64;
}

static void rows_compare(uint64_t seed, uint32_t id, const struct row_layout *layout,
                         const struct row *stacked, const struct row *fused)
{
    if (stacked == NULL || fused == NULL) {
        if (stacked != fused) {
            fail_msg("seed %llu, row %u: %s by the stack, %s fused", (unsigned long long)seed, id,
                     stacked == NULL ? "lost" : "answered", fused == NULL ? "lost" : "answered");
        }
        return;
    }
    assert_true(stacked->time_ms == fused->time_ms);
    for (uint32_t i = 0; i < layout->column_count; i++) {
        const struct value a = row_value(layout, stacked, i);
        const struct value b = row_value(layout, fused, i);
        if (!values_equal(&layout->types[i], &a, &b)) {
            fail_msg("seed %llu, row %u, column %u: %lld by the stack, %lld fused",
                     (unsigned long long)seed, id, i, a.is_null ? -999 : (long long)a.i64,
                     b.is_null ? -999 : (long long)b.i64);
        }
    }
}

/* On arrival, rows behind the watermark may see more when fused: only that they are answered holds
 * for them. */
static bool is_in_time(const struct scenario *scenario, uint32_t id)
{
    const struct row_case *row = &scenario->rows[id];
    int64_t watermark_ms = WATERMARK_MIN;
    for (uint32_t i = 0; i < id; i++) {
        if (scenario->rows[i].watermark_ms > watermark_ms) {
            watermark_ms = scenario->rows[i].watermark_ms;
        }
    }
    return (row->time_ms == ROW_TIME_NONE ? 0 : row->time_ms) > watermark_ms;
}

static uint32_t seeds_run(uint64_t first, uint64_t count, bool on_arrival)
{
    uint32_t answered = 0;
    struct scenario *scenario = malloc(sizeof(*scenario));
    assert_non_null(scenario);
    for (uint64_t seed = first; seed < first + count; seed++) {
        scenario_draw(seed, on_arrival, scenario);
        struct chain *fused = scenario_run(scenario, true);
        if (fused == NULL) {
            continue; /* the planner does not fuse what does not fit */
        }
        struct chain *stacked = scenario_run(scenario, false);
        assert_non_null(stacked);
        const struct level *top = &stacked->levels[stacked->level_count - 1];
        for (uint32_t i = 0; i < scenario->row_count; i++) {
            if (!on_arrival || is_in_time(scenario, i)) {
                rows_compare(seed, i, &top->output.layout, stacked->answers[i], fused->answers[i]);
            }
        }
        assert_int_equal(stacked->answer_count, fused->answer_count);
        answered += fused->answer_count;
        chain_destroy(stacked);
        chain_destroy(fused);
    }
    free(scenario);
    return answered;
}

static uint64_t seed_first(void)
{
    const char *text = getenv("OVER_SEED");
    return text == NULL ? 1 : strtoull(text, NULL, 10);
}

static uint64_t seed_count(void)
{
    const char *text = getenv("OVER_SEEDS");
    return text == NULL ? 200 : strtoull(text, NULL, 10);
}

static void test_fused_answers_as_the_stack_when_by_watermark(void **context)
{
    assert_true(seeds_run(seed_first(), seed_count(), false) > 100);
}

static void test_fused_answers_as_the_stack_when_on_arrival(void **context)
{
    assert_true(seeds_run(seed_first(), seed_count(), true) > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fused_answers_as_the_stack_when_by_watermark),
        cmocka_unit_test(test_fused_answers_as_the_stack_when_on_arrival),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
