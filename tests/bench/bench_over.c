/* SPDX-License-Identifier: Apache-2.0 */
/* The fraud job's three stacked OVER windows (60 s, 1 h, 24 h by card: COUNT, SUM, MAX and AVG of a
 * DECIMAL) over payments in order, on one core in process, answered on arrival and by watermark as
 * Flink does; as the planner runs them, fused into one operator, and beside it level on level.
 * Parcels go from operator to operator as in a lane; the last one's rows are counted and dropped.
 * Of several passes the best is printed.
 *
 *     bench_over [PAYMENT_COUNT [CARD_COUNT [PAYMENTS_PER_SECOND [WAY [PASS_COUNT]]]]]
 *     default    2,000,000      100,000     1,000                all  3
 *     WAY: fused-arrival, fused-watermark, stack-arrival, stack-watermark */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "dataplane/operator/operator.h"
#include "state/arena.h"
#include "state/heap.h"

#define LEVELS       3
#define BASE_COLUMNS 7
#define CALLS        4
#define COLUMNS_MAX  (BASE_COLUMNS + LEVELS * CALLS)
#define ARENA_BYTES  (UINT64_C(512) << 20)
#define PARCEL_DATA  (PARCEL_BYTES_DEFAULT - sizeof(struct parcel))
#define START_MS     INT64_C(1772366400000)

struct chain;

struct way {
    const char *name;
    bool is_fused;
    bool on_arrival;
};

/* Rows of one level on their way to the next. */
struct output {
    struct chain *chain;
    uint32_t level; /* that consumes them */
    const struct row_layout *layout;
    struct parcel *parcel;
};

struct level {
    struct plan_node node;
    struct type types[COLUMNS_MAX];
    uint16_t slots[COLUMNS_MAX];
    struct operator_context context;
    struct operator* operator;
    struct output output;
    uint64_t counters[OPERATOR_COUNTER_COUNT];
};

struct chain {
    struct arena *arena;
    struct heap *heap;
    struct type types[BASE_COLUMNS];
    uint16_t slots[BASE_COLUMNS];
    struct row_layout layout;
    struct output input; /* to level 0 */
    struct level levels[LEVELS];
    uint32_t level_count; /* LEVELS, or 1 when they are fused */
    struct plan_over_frame frames[LEVELS];
    struct aggregate_call frame_calls[LEVELS][CALLS];
    uint64_t answered;
    uint64_t check; /* of the answers, so that two ways can be compared */
};

static const uint32_t card_column[] = {1};

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_over: %s\n", what);
    exit(1);
}

/* Time of this thread on its core, so that a shared machine does not blur the figure. */
static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * NANOSECONDS_PER_S + (uint64_t)now.tv_nsec;
}

static void sum_up(struct chain *chain, const struct parcel *parcel,
                   const struct row_layout *layout)
{
    const struct row *row = parcel_first(parcel);
    for (uint32_t i = 0; i < parcel->row_count; i++, row = parcel_next(row)) {
        for (uint32_t level = 0; level < LEVELS; level++) {
            const uint32_t first = BASE_COLUMNS + level * CALLS;
            chain->check += (uint64_t)row_i64(layout, row, first) * 31 +
                            (uint64_t)row_i64(layout, row, first + 1) * 7 +
                            (uint64_t)row_i64(layout, row, first + 2) +
                            (uint64_t)row_i64(layout, row, first + 3) * 3;
        }
    }
    chain->answered += parcel->row_count;
}

static void output_flush(struct output *output)
{
    struct chain *chain = output->chain;
    struct parcel *parcel = output->parcel;
    if (parcel->row_count == 0) {
        return;
    }
    if (output->level == chain->level_count) {
        sum_up(chain, parcel, output->layout);
    } else {
        struct operator* operator= chain->levels[output->level].operator;
        enum operator_verdict verdict = OPERATOR_AGAIN;
        while (verdict == OPERATOR_AGAIN) { /* it works in bounded steps */
            verdict = operator->ops->process(operator, 0, parcel);
        }
        if (verdict != OPERATOR_DONE) {
            die(chain->levels[output->level].context.failure.text);
        }
        output_flush(&chain->levels[output->level].output);
    }
    parcel->row_count = 0;
    parcel->bytes_used = 0;
}

bool output_row_begin(struct output *output, struct row_writer *writer, const struct row *from)
{
    struct parcel *parcel = output->parcel;
    if (parcel->row_count == PARCEL_ROWS_MAX || PARCEL_DATA - parcel->bytes_used < 1024) {
        output_flush(output);
    }
    return row_begin(writer, output->layout, parcel->data + parcel->bytes_used,
                     (uint32_t)PARCEL_DATA - parcel->bytes_used, from);
}

bool output_row_grow(struct output *output, struct row_writer *writer, uint32_t tail_bytes)
{
    return false; /* rows of this bench always fit */
}

void output_row_end(struct output *output, struct row_writer *writer)
{
    output->parcel->bytes_used += row_end(writer);
    output->parcel->row_count++;
}

bool output_row_copy(struct output *output, const struct row *row)
{
    return false;
}

bool output_has_room(const struct output *output)
{
    return true;
}

static struct parcel *parcel_make(void)
{
    struct parcel *parcel = aligned_alloc(CACHE_LINE_BYTES, PARCEL_BYTES_DEFAULT);
    if (parcel == NULL) {
        die("out of memory");
    }
    memset(parcel, 0, PARCEL_BYTES_DEFAULT);
    return parcel;
}

static void types_fill(struct type *types)
{
    const struct type text = {.kind = TYPE_VARCHAR, .nullable = true, .length = TYPE_LENGTH_MAX};
    types[0] = (struct type){.kind = TYPE_BIGINT, .nullable = true};
    types[1] = text;
    types[2] = text;
    types[3] = (struct type){.kind = TYPE_DECIMAL, .nullable = true, .precision = 12, .scale = 2};
    types[4] = text;
    types[5] = text;
    types[6] = (struct type){.kind = TYPE_TIMESTAMP, .nullable = true, .precision = 3};
}

static struct aggregate_call call_make(enum aggregate_function function, const struct type *amount,
                                       struct type result)
{
    return (struct aggregate_call){
        .function = function,
        .argument = function == AGGREGATE_COUNT ? AGGREGATE_COLUMN_NONE : 3,
        .filter = AGGREGATE_COLUMN_NONE,
        .argument_type = *amount,
        .result_type = result,
    };
}

static const int64_t frames_ms[LEVELS] = {60000, 3600000, 86400000};

static void calls_fill(struct aggregate_call *calls, const struct type *amount)
{
    const struct type sum = {.kind = TYPE_DECIMAL, .nullable = true, .precision = 38, .scale = 2};
    const struct type average = {
        .kind = TYPE_DECIMAL, .nullable = true, .precision = 38, .scale = 6};
    const struct type count = {.kind = TYPE_BIGINT};
    calls[0] = call_make(AGGREGATE_COUNT, amount, count);
    calls[1] = call_make(AGGREGATE_SUM, amount, sum);
    calls[2] = call_make(AGGREGATE_MAX, amount, *amount);
    calls[3] = call_make(AGGREGATE_AVG, amount, average);
}

static void level_open(struct chain *chain, uint32_t index, const struct plan_over *over)
{
    struct level *level = &chain->levels[index];
    const struct row_layout *input =
        index == 0 ? &chain->layout : &chain->levels[index - 1].node.layout;
    uint32_t columns = input->column_count;
    memcpy(level->types, input->types, columns * sizeof(level->types[0]));
    for (uint32_t i = 0; i < (over->frame_count == 0 ? 1 : over->frame_count) * CALLS; i++) {
        level->types[columns++] = chain->frame_calls[0][i % CALLS].result_type;
    }
    level->node = (struct plan_node){
        .operator= PLAN_OVER, .id = index + 1, .identity = index + 1, .over = *over};
    row_layout_init(&level->node.layout, level->types, columns, level->slots);
    level->output = (struct output){
        .chain = chain,
        .level = index + 1,
        .layout = &level->node.layout,
        .parcel = parcel_make(),
    };
    level->context = (struct operator_context){
        .arena = chain->arena,
        .heap = chain->heap,
        .output = &level->output,
        .time_zone = "UTC",
        .counters = level->counters,
    };
    struct error error = {0};
    if (operator_find(PLAN_OVER)->open(&level->node, &input, &level->context,
                                       &level->operator, & error) != 0) {
        die(error.text);
    }
}

static void levels_open(struct chain *chain, const struct way *way)
{
    const struct key_columns key = {.columns = card_column, .count = 1};
    for (uint32_t i = 0; i < LEVELS; i++) {
        calls_fill(chain->frame_calls[i], &chain->types[3]);
        chain->frames[i] = (struct plan_over_frame){
            .preceding = frames_ms[i], .calls = chain->frame_calls[i], .call_count = CALLS};
    }
    const struct plan_over fused = {
        .key = key,
        .on_arrival = way->on_arrival,
        .frames = chain->frames,
        .frame_count = LEVELS,
    };
    chain->level_count = way->is_fused ? 1 : LEVELS;
    for (uint32_t i = 0; i < chain->level_count; i++) {
        const struct plan_over single = {
            .key = key,
            .on_arrival = way->on_arrival,
            .preceding = frames_ms[i],
            .calls = chain->frame_calls[i],
            .call_count = CALLS,
        };
        level_open(chain, i, way->is_fused ? &fused : &single);
    }
}

static struct chain *chain_create(void *memory, const struct way *way)
{
    struct chain *chain = calloc(1, sizeof(*chain));
    if (chain == NULL) {
        die("out of memory");
    }
    const struct arena_config config = {
        .memory = memory,
        .bytes = ARENA_BYTES,
        .shard_count = 256,
    };
    struct error error = {0};
    if (arena_create(&config, &chain->arena, &error) != 0 ||
        heap_create(chain->arena, &chain->heap, &error) != 0) {
        die(error.text);
    }
    types_fill(chain->types);
    row_layout_init(&chain->layout, chain->types, BASE_COLUMNS, chain->slots);
    chain->input = (struct output){
        .chain = chain,
        .layout = &chain->layout,
        .parcel = parcel_make(),
    };
    levels_open(chain, way);
    return chain;
}

static void chain_destroy(struct chain *chain)
{
    for (uint32_t i = 0; i < chain->level_count; i++) {
        chain->levels[i].operator->ops->close(chain->levels[i].operator);
        free(chain->levels[i].output.parcel);
    }
    heap_destroy(chain->heap);
    free(chain->input.parcel);
    free(chain);
}

static void advance(struct chain *chain, int64_t watermark_ms)
{
    for (uint32_t i = 0; i < chain->level_count; i++) {
        struct operator* operator= chain->levels[i].operator;
        enum operator_verdict verdict = OPERATOR_AGAIN;
        while (verdict == OPERATOR_AGAIN) {
            verdict = operator->ops->advance(operator, watermark_ms);
        }
        if (verdict != OPERATOR_DONE) {
            die(chain->levels[i].context.failure.text);
        }
        output_flush(&chain->levels[i].output);
    }
}

/* One payment; a tenth of the cards make half of the payments. */
static void payment_put(struct chain *chain, uint64_t id, uint64_t card_count, int64_t time_ms,
                        uint64_t *random)
{
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    const uint64_t draw = *random * UINT64_C(0x2545f4914f6cdd1d) >> 16;
    const uint64_t card =
        (draw & 1) != 0 ? (draw >> 1) % (card_count / 10 + 1) : (draw >> 1) % card_count;
    char text[32];
    const struct row header = {.time_ms = time_ms};
    struct row_writer writer;
    (void)output_row_begin(&chain->input, &writer, &header);
    row_set_i64(&writer, 0, (int64_t)id);
    int bytes = snprintf(text, sizeof(text), "%016llu", (unsigned long long)card);
    (void)row_set_text(&writer, 1, (struct span){(const uint8_t *)text, (size_t)bytes});
    bytes = snprintf(text, sizeof(text), "merchant-%05llu", (unsigned long long)(draw % 20000));
    (void)row_set_text(&writer, 2, (struct span){(const uint8_t *)text, (size_t)bytes});
    row_set_i64(&writer, 3, (int64_t)(draw >> 20) % 100000);
    (void)row_set_text(&writer, 4, (struct span){(const uint8_t *)"DE", 2});
    (void)row_set_text(&writer, 5, (struct span){(const uint8_t *)"device-0123456", 14});
    const struct timestamp time = {.ms = time_ms};
    row_set(&writer, 6, &time);
    output_row_end(&chain->input, &writer);
}

struct result {
    uint64_t busy_ns;
    uint64_t state_mib;
    uint64_t check;
};

static struct result run(void *memory, const struct way *way, uint64_t payment_count,
                         uint64_t card_count, uint64_t per_second)
{
    struct chain *chain = chain_create(memory, way);
    uint64_t random = 88172645463325252U;
    uint64_t busy_ns = 0;
    for (uint64_t id = 0; id < payment_count;) {
        /* Payments are made outside of the measured time, a parcel at a time. */
        struct parcel *parcel = chain->input.parcel;
        int64_t time_ms = 0;
        while (id < payment_count && PARCEL_DATA - parcel->bytes_used >= 1024) {
            time_ms = START_MS + (int64_t)(id * 1000 / per_second);
            payment_put(chain, id++, card_count, time_ms, &random);
        }
        const uint64_t begun = now_ns();
        output_flush(&chain->input);
        advance(chain, time_ms - 1);
        busy_ns += now_ns() - begun;
    }
    const uint64_t begun = now_ns();
    advance(chain, WATERMARK_MAX);
    busy_ns += now_ns() - begun;
    if (chain->answered != payment_count) {
        die("not every payment was answered");
    }
    const struct result result = {
        .busy_ns = busy_ns,
        .state_mib = chain->arena->counters.pages_used_max * 4 / 1024,
        .check = chain->check,
    };
    chain_destroy(chain);
    return result;
}

int main(int count, char **arguments)
{
    static const struct way ways[] = {
        {"fused-arrival", true, true},
        {"fused-watermark", true, false},
        {"stack-arrival", false, true},
        {"stack-watermark", false, false},
    };
    const uint64_t payment_count = count > 1 ? strtoull(arguments[1], NULL, 10) : 2000000;
    const uint64_t card_count = count > 2 ? strtoull(arguments[2], NULL, 10) : 100000;
    const uint64_t per_second = count > 3 ? strtoull(arguments[3], NULL, 10) : 1000;
    const char *only = count > 4 ? arguments[4] : "all";
    const uint64_t pass_count = count > 5 ? strtoull(arguments[5], NULL, 10) : 3;
    void *memory =
        mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        die("no memory for the arena");
    }
    (void)madvise(memory, ARENA_BYTES, MADV_HUGEPAGE);
    memset(memory, 0, ARENA_BYTES); /* a lane has its pages before it starts */
    (void)printf("%-16s %12s %10s %14s %12s %12s %16s\n", "way", "payments", "cards", "payments/s",
                 "ns each", "state MiB", "check");
    for (uint32_t i = 0; i < COUNT_OF(ways); i++) {
        if (strcmp(only, "all") != 0 && strcmp(only, ways[i].name) != 0) {
            continue;
        }
        struct result best = {.busy_ns = UINT64_MAX};
        for (uint64_t pass = 0; pass < pass_count; pass++) {
            const struct result result =
                run(memory, &ways[i], payment_count, card_count, per_second);
            best = result.busy_ns < best.busy_ns ? result : best;
        }
        (void)printf("%-16s %12llu %10llu %14.0f %12.0f %12llu %016llx\n", ways[i].name,
                     (unsigned long long)payment_count, (unsigned long long)card_count,
                     (double)payment_count * 1e9 / (double)best.busy_ns,
                     (double)best.busy_ns / (double)payment_count,
                     (unsigned long long)best.state_mib, (unsigned long long)best.check);
    }
    return 0;
}
