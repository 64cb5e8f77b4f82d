/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of the hand-made plans; see fake_job.h. */
#include "tests/dataplane/fake_job.h"

uint64_t fake_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static int fake_source_open(struct source_context *context, struct source **out,
                            struct error *error)
{
    struct fake_source *self = calloc(1, sizeof(*self));
    self->base.ops = &fake_source_ops;
    self->context = context;
    *out = &self->base;
    return 0;
}

static void fake_source_end(struct fake_source *self, bool with_watermark)
{
    struct output *output = self->context->output;
    if (with_watermark) {
        output_control(output, PARCEL_WATERMARK, WATERMARK_MAX);
    }
    output_control(output, PARCEL_END, 0);
    self->base.ended = true;
}

static enum operator_verdict fake_source_poll(struct source *base, uint64_t now_ns,
                                              uint32_t records_max, uint32_t *work)
{
    struct fake_source *self = (struct fake_source *)base;
    struct fake_world *world = self->context->environment;
    struct output *output = self->context->output;
    struct parcel stamps = {.decoded_ns = now_ns};
    output_stamp(output, &stamps);
    if (self->context->wants_ticks && (int64_t)(now_ns / 1000000) > self->tick_ms) {
        self->tick_ms = (int64_t)(now_ns / 1000000);
        output_control(output, PARCEL_TICK, self->tick_ms);
    }
    if (self->draining) {
        fake_source_end(self, false);
        return OPERATOR_DONE;
    }
    for (uint32_t i = 0; i < records_max && self->made < world->rows_a_source; i++) {
        if (!output_room(output, 1)) {
            return OPERATOR_AGAIN;
        }
        const int64_t number = self->made * world->lane_count + self->context->lane;
        const struct row head = {.kind = ROW_INSERT, .time_ms = number, .arrival_ns = 1};
        struct row_writer writer;
        assert_true(output_row_begin(output, &writer, &head));
        row_set_i64(&writer, 0, number % world->key_count);
        row_set_i64(&writer, 1, number);
        output_row_end(output, &writer);
        self->made++;
        (*work)++;
        if (world->watermark_every != 0 && self->made % world->watermark_every == 0) {
            output_control(output, PARCEL_WATERMARK, number);
        }
    }
    if (self->made == world->rows_a_source) {
        fake_source_end(self, true);
    }
    return OPERATOR_DONE;
}

static void fake_source_drain(struct source *base, bool fires)
{
    (void)fires;
    ((struct fake_source *)base)->draining = true;
}

static void fake_source_snapshot(struct source *base, struct facts_writer *facts)
{
    const struct fake_source *self = (const struct fake_source *)base;
    struct facts_item item = {.kind = FACTS_PARTITION};
    item.partition = (struct facts_partition){
        .identity = self->context->node->identity,
        .partition = self->context->lane,
        .next_offset = self->made,
        .leader_epoch = -1,
        .topic = "fake",
    };
    facts_put(facts, &item);
}

static int fake_source_restore(struct source *base, const struct source_facts *facts,
                               struct error *error)
{
    struct fake_source *self = (struct fake_source *)base;
    for (uint32_t i = 0; i < facts->partition_count; i++) {
        if (facts->partitions[i].partition == self->context->lane) {
            self->made = facts->partitions[i].next_offset;
        }
    }
    return 0;
}

static void fake_source_close(struct source *base)
{
    free(base);
}

int fake_operator_open(const struct plan_node *node, const struct row_layout *const *inputs,
                       struct operator_context *context, struct operator** out, struct error *error)
{
    struct fake_operator *self = calloc(1, sizeof(*self));
    self->base.ops = &fake_operator_ops;
    self->context = context;
    self->kind = (enum fake_kind)node->line;
    self->layout = &node->layout;
    self->watermark_ms = WATERMARK_MIN;
    *out = &self->base;
    return 0;
}

static void fake_hold(struct fake_operator *self, const struct row *row)
{
    if (self->held_count == self->held_capacity) {
        self->held_capacity = self->held_capacity * 2 + 64;
        self->held = realloc(self->held, self->held_capacity * sizeof(*self->held));
    }
    self->held[self->held_count++] = (struct fake_row){
        .key = row_i64(self->layout, row, 0),
        .number = row_i64(self->layout, row, 1),
        .time_ms = row->time_ms,
    };
}

static enum operator_verdict fake_operator_process(struct operator* base, uint32_t input,
                                                   const struct parcel *parcel)
{
    struct fake_operator *self = (struct fake_operator *)base;
    const struct row *rows[PARCEL_ROWS_MAX];
    const uint32_t count = parcel_rows(parcel, rows);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(row_check(self->layout, rows[i], rows[i]->bytes));
        if (self->kind == FAKE_HOLD) {
            assert_true(rows[i]->time_ms > self->watermark_ms);
            fake_hold(self, rows[i]);
            continue;
        }
        assert_true(output_row_copy(self->context->output, rows[i]));
        if (self->kind == FAKE_DOUBLE) {
            assert_true(output_row_copy(self->context->output, rows[i]));
        }
    }
    return OPERATOR_DONE;
}

static int fake_compare(const void *a, const void *b)
{
    const struct fake_row *left = a;
    const struct fake_row *right = b;
    return (left->time_ms > right->time_ms) - (left->time_ms < right->time_ms);
}

static enum operator_verdict fake_operator_advance(struct operator* base, int64_t watermark_ms)
{
    struct fake_operator *self = (struct fake_operator *)base;
    assert_true(watermark_ms >= self->watermark_ms);
    if (watermark_ms != self->watermark_ms) {
        self->watermark_ms = watermark_ms;
        if (self->held_count > 0) {
            qsort(self->held, self->held_count, sizeof(*self->held), fake_compare);
        }
    }
    while (self->given < self->held_count && self->held[self->given].time_ms <= watermark_ms) {
        if (!output_has_room(self->context->output)) {
            return OPERATOR_AGAIN;
        }
        const struct fake_row *row = &self->held[self->given++];
        const struct row head = {.kind = ROW_INSERT, .time_ms = row->time_ms};
        struct row_writer writer;
        assert_true(output_row_begin(self->context->output, &writer, &head));
        row_set_i64(&writer, 0, row->key);
        row_set_i64(&writer, 1, row->number);
        output_row_end(self->context->output, &writer);
    }
    self->held_count -= self->given;
    if (self->held_count > 0) {
        memmove(self->held, self->held + self->given, self->held_count * sizeof(*self->held));
    }
    self->given = 0;
    return OPERATOR_DONE;
}

void fake_operator_close(struct operator* base)
{
    free(((struct fake_operator *)base)->held);
    free(base);
}

static int fake_sink_open(struct sink_context *context, struct sink **out, struct error *error)
{
    struct fake_sink *self = calloc(1, sizeof(*self));
    self->base.ops = &fake_sink_ops;
    self->context = context;
    *out = &self->base;
    return 0;
}

static enum operator_verdict fake_sink_process(struct sink *base, const struct parcel *parcel)
{
    struct fake_sink *self = (struct fake_sink *)base;
    struct fake_world *world = self->context->environment;
    struct fake_sink_log *log = &world->logs[self->context->node->id];
    if (fake_random(&world->random) % 16 < world->refuse_of_16) {
        return OPERATOR_AGAIN;
    }
    const struct row *rows[PARCEL_ROWS_MAX];
    const uint32_t count = parcel_rows(parcel, rows);
    for (uint32_t i = 0; i < count; i++) {
        if (log->count == log->capacity) {
            log->capacity = log->capacity * 2 + 256;
            log->rows = realloc(log->rows, log->capacity * sizeof(*log->rows));
        }
        log->rows[log->count++] = (struct fake_row){
            .key = row_i64(self->context->input, rows[i], 0),
            .number = row_i64(self->context->input, rows[i], 1),
            .time_ms = rows[i]->time_ms,
        };
    }
    return OPERATOR_DONE;
}

static bool fake_sink_flushed(struct sink *base)
{
    return true;
}

static void fake_sink_close(struct sink *base)
{
    free(base);
}

const struct source_ops fake_source_ops = {
    .open = fake_source_open,
    .poll = fake_source_poll,
    .drain = fake_source_drain,
    .snapshot = fake_source_snapshot,
    .restore = fake_source_restore,
    .close = fake_source_close,
};
const struct operator_ops fake_operator_ops = {
    .name = "Fake",
    .open = fake_operator_open,
    .process = fake_operator_process,
    .advance = fake_operator_advance,
    .close = fake_operator_close,
};
const struct sink_ops fake_sink_ops = {
    .open = fake_sink_open,
    .process = fake_sink_process,
    .flushed = fake_sink_flushed,
    .close = fake_sink_close,
};

const struct operator_ops *fake_find(enum plan_operator operator)
{
    return &fake_operator_ops;
}

void fake_plan_init(struct fake_plan *plan)
{
    memset(plan, 0, sizeof(*plan));
    plan->types[0] = (struct type){.kind = TYPE_BIGINT};
    plan->types[1] = (struct type){.kind = TYPE_BIGINT};
    plan->plan.nodes = plan->pointers;
    plan->plan.time_zone = "UTC";
}

/* Adds a node and returns its id; the kind of a fake operator rides in the node's line. */
uint32_t fake_node(struct fake_plan *plan, enum plan_operator operator, enum fake_kind kind,
                   enum plan_distribution distribution, uint32_t input_count,
                   const uint32_t *inputs)
{
    const uint32_t id = plan->plan.node_count++;
    assert_true(id < FAKE_NODES_MAX && input_count <= 4);
    struct plan_node *node = &plan->nodes[id];
    node->operator= operator;
    node->id = id;
    node->identity = 1000 + id;
    node->line = (uint32_t)kind;
    (void)snprintf(node->name, sizeof(node->name), "node %u", id);
    memcpy(plan->inputs[id], inputs, input_count * sizeof(*inputs));
    node->input_count = input_count;
    node->inputs = plan->inputs[id];
    row_layout_init(&node->layout, plan->types, 2, plan->slots);
    node->distribution = distribution;
    node->distribution_key = (struct key_columns){.columns = &plan->key_column, .count = 1};
    if (operator== PLAN_SINK) {
        node->sink.table = node->name;
    }
    plan->pointers[id] = node;
    return id;
}

void *fake_allocate(void *context, uint32_t lane, size_t bytes)
{
    struct fake_memory *memory = context;
    const size_t rounded = (bytes + CACHE_LINE_BYTES - 1) & ~(size_t)(CACHE_LINE_BYTES - 1);
    void *block = aligned_alloc(CACHE_LINE_BYTES, rounded);
    assert_non_null(block);
    assert_true(memory->count < FAKE_BLOCKS_MAX);
    memset(block, 0, rounded);
    memory->blocks[memory->count++] = block;
    return block;
}

void fake_memory_free(struct fake_memory *memory)
{
    for (uint32_t i = 0; i < memory->count; i++) {
        free(memory->blocks[i]);
    }
    memory->count = 0;
}

void fake_world_init(struct fake_world *world, uint32_t lane, uint32_t lane_count)
{
    *world = (struct fake_world){
        .lane_count = lane_count,
        .key_count = 17,
        .rows_a_source = 1000,
        .random = lane + 1,
    };
}

void fake_world_free(struct fake_world *world)
{
    for (uint32_t i = 0; i < FAKE_NODES_MAX; i++) {
        free(world->logs[i].rows);
    }
}

/* A configuration of lanes that have every role; the worlds stand one a lane. */
struct job_config fake_config(const struct fake_plan *plan, uint32_t lane_count,
                              struct fake_world *worlds, struct fake_memory *memory)
{
    struct job_config config = {
        .plan = &plan->plan,
        .lane_count = lane_count,
        .allocate = fake_allocate,
        .allocate_context = memory,
        .classes = {{.bytes = 1024, .count = 512}},
        .class_count = 1,
        .parcel_rows_max = 8,
        .ring_items = 16,
        .queue_rows_max = 256,
        .records_a_turn = 32,
        .find_operator = fake_find,
        .source_ops = &fake_source_ops,
        .sink_ops = &fake_sink_ops,
    };
    for (uint32_t i = 0; i < lane_count; i++) {
        config.lanes[i] = (struct job_lane_config){
            .receive = true,
            .operate = true,
            .transmit = true,
            .source_environment = &worlds[i],
            .sink_environment = &worlds[i],
        };
    }
    return config;
}

/* Polls all lanes in turn until all have ended; fails after turns_max. */
void fake_run(struct job *job, uint32_t lane_count, uint32_t turns_max)
{
    for (uint32_t turn = 0; turn < turns_max; turn++) {
        bool ended = true;
        for (uint32_t lane = 0; lane < lane_count; lane++) {
            (void)job_lane_poll(job, lane, turn + 1);
            assert_int_not_equal(job_lane_state(job, lane), JOB_FAILED);
            ended = ended && job_lane_state(job, lane) == JOB_ENDED;
        }
        if (ended) {
            return;
        }
    }
    fail_msg("the job has not ended after %u turns", turns_max);
}
