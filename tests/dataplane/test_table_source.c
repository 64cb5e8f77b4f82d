/* SPDX-License-Identifier: Apache-2.0 */
/* The table source on one lane, with scripted records: watermarks per partition in every way of
 * emission, idle and ended partitions, bad records by policy, rows and batches that have to wait.
 */
#include "tests/dataplane/fake_job.h"

#include "dataplane/table_source.h"

#define BATCHES_MAX 64
#define RECORDS_MAX 64
#define LOG_BYTES   65536

struct scripted {
    uint32_t partition;
    const char *values[RECORDS_MAX];
    uint32_t count;
    int64_t first_offset;
    int64_t first_time_ms;
    bool caught_up;
    bool ended;
};

/* A record source that plays batches; with rewind it plays records again from an offset. */
struct player {
    struct record_source base;
    struct scripted batches[BATCHES_MAX];
    uint32_t batch_count;
    uint32_t batch_next;
    struct record records[RECORDS_MAX];
    struct record_partition partitions[8];
    uint32_t partition_count;
    uint32_t rewinds;
    uint32_t releases;
    bool is_incomplete;                /* more partitions may come */
    struct record_position started[8]; /* what start_at was told */
    uint32_t started_count;
    char *log; /* of the fixture, for the recorder */
};

struct letters {
    struct record_sink base;
    char text[LOG_BYTES];
    uint32_t refusals; /* how often it says FULL first */
};

struct fixture {
    struct fake_plan plan;
    struct plan_field fields[3];
    struct type decoded_types[3];
    uint16_t decoded_slots[3];
    struct type out_types[3];
    uint16_t out_slots[3];
    uint32_t picks[3];
    struct expr exprs[8];
    const struct expr *arguments[8];
    const struct expr *computed[1];
    struct player player;
    struct letters letters;
    struct table_source_environment environment;
    struct fake_memory memory;
    struct fake_world world;
    struct job_config config;
    struct job *job;
    char log[LOG_BYTES];
};

static void say(char *log, const char *what, int64_t value)
{
    const size_t used = strlen(log);
    (void)snprintf(log + used, LOG_BYTES - used, "%s%lld", what, (long long)value);
}

/* An operator that writes down what it is given: "3@500" is a row, "w500" a watermark. */
struct recorder {
    struct operator base;
    struct operator_context *context;
    const struct row_layout *layout;
    char *log; /* of the fixture */
};

static enum operator_verdict recorder_process(struct operator* base, uint32_t input,
                                              const struct parcel *parcel)
{
    const struct recorder *self = (const struct recorder *)base;
    const struct row *rows[PARCEL_ROWS_MAX];
    for (uint32_t i = 0; i < parcel_rows(parcel, rows); i++) {
        assert_true(row_check(self->layout, rows[i], rows[i]->bytes));
        say(self->log, " ", row_i64(self->layout, rows[i], 0));
        if (rows[i]->time_ms != ROW_TIME_NONE) {
            say(self->log, "@", rows[i]->time_ms);
        }
    }
    return OPERATOR_DONE;
}

static enum operator_verdict recorder_advance(struct operator* base, int64_t watermark_ms)
{
    const struct recorder *self = (const struct recorder *)base;
    if (watermark_ms == WATERMARK_MAX) {
        strcat(self->log, " wMAX");
    } else {
        say(self->log, " w", watermark_ms);
    }
    return OPERATOR_DONE;
}

static void recorder_close(struct operator* base)
{
    free(base);
}

static int recorder_open(const struct plan_node *node, const struct row_layout *const *inputs,
                         struct operator_context *context, struct operator** out,
                         struct error *error)
{
    static const struct operator_ops ops = {
        .name = "Recorder",
        .process = recorder_process,
        .advance = recorder_advance,
        .close = recorder_close,
    };
    struct recorder *self = calloc(1, sizeof(*self));
    self->base.ops = &ops;
    self->context = context;
    self->layout = inputs[0];
    /* The node is the second of its fixture's plan. */
    const uint8_t *plan = (const uint8_t *)(node - 1) - offsetof(struct fake_plan, nodes);
    const struct fixture *fixture =
        (const struct fixture *)(const void *)(plan - offsetof(struct fixture, plan));
    self->log = fixture->player.log;
    *out = &self->base;
    return 0;
}

static const struct operator_ops *find_recorder(enum plan_operator operator)
{
    static const struct operator_ops opening = {.name = "Recorder", .open = recorder_open};
    return &opening;
}

static bool player_poll(struct record_source *base, uint64_t now_ns, struct record_batch_view *out)
{
    struct player *self = (struct player *)base;
    if (self->batch_next == self->batch_count) {
        return false;
    }
    const struct scripted *batch = &self->batches[self->batch_next++];
    for (uint32_t i = 0; i < batch->count; i++) {
        const char *value = batch->values[i];
        self->records[i] = (struct record){
            .offset = batch->first_offset + i,
            .timestamp_ms = batch->first_time_ms + i,
            .key_is_null = true,
            .value_is_null = value == NULL,
            .value = {.data = (const uint8_t *)value, .bytes = value == NULL ? 0 : strlen(value)},
            .arrival_ns = 1,
        };
    }
    *out = (struct record_batch_view){
        .partition = batch->partition,
        .record_count = batch->count,
        .records = self->records,
        .caught_up = batch->caught_up,
        .ended = batch->ended,
    };
    return true;
}

static void player_release(struct record_source *base)
{
    struct player *self = (struct player *)base;
    self->releases++;
    /* What a network source's buffers hold after the next poll. */
    memset(self->records, 0xdd, sizeof(self->records));
}

static void player_pause(struct record_source *base, uint32_t topic, uint32_t partition, bool on)
{
}

static uint32_t player_partitions(struct record_source *base, struct record_partition *into,
                                  uint32_t max, bool *complete)
{
    struct player *self = (struct player *)base;
    memcpy(into, self->partitions, self->partition_count * sizeof(*into));
    *complete = !self->is_incomplete;
    return self->partition_count;
}

static void player_rewind(struct record_source *base, uint32_t topic, uint32_t partition,
                          int64_t offset)
{
    struct player *self = (struct player *)base;
    struct scripted *batch = &self->batches[--self->batch_next];
    assert_int_equal(batch->partition, partition);
    const uint32_t skip = (uint32_t)(offset - batch->first_offset);
    assert_true(skip < batch->count);
    memmove(batch->values, batch->values + skip, (batch->count - skip) * sizeof(*batch->values));
    batch->count -= skip;
    batch->first_offset += skip;
    batch->first_time_ms += skip;
    self->rewinds++;
}

static int player_start_at(struct record_source *base, const struct record_position *positions,
                           uint32_t count, struct error *error)
{
    struct player *self = (struct player *)base;
    assert_true(count <= COUNT_OF(self->started));
    memcpy(self->started, positions, count * sizeof(*positions));
    self->started_count = count;
    return 0;
}

static const struct record_source_ops player_ops = {
    .start_at = player_start_at,
    .poll = player_poll,
    .release = player_release,
    .pause = player_pause,
    .partitions = player_partitions,
};

static const struct record_source_ops rewinding_ops = {
    .start_at = player_start_at,
    .poll = player_poll,
    .release = player_release,
    .pause = player_pause,
    .partitions = player_partitions,
    .rewind = player_rewind,
};

static enum record_sink_verdict letters_append(struct record_sink *base, uint32_t topic,
                                               int32_t partition, const struct record *record)
{
    struct letters *self = (struct letters *)base;
    if (self->refusals > 0) {
        self->refusals--;
        return RECORD_SINK_FULL;
    }
    const size_t used = strlen(self->text);
    (void)snprintf(self->text + used, sizeof(self->text) - used, "[%u %.*s", topic,
                   (int)record->value.bytes, (const char *)record->value.data);
    for (uint32_t i = 0; i < record->header_count; i++) {
        const size_t at = strlen(self->text);
        (void)snprintf(
            self->text + at, sizeof(self->text) - at, "|%.*s=%.*s",
            (int)record->headers[i].name.bytes, (const char *)record->headers[i].name.data,
            (int)record->headers[i].value.bytes, (const char *)record->headers[i].value.data);
    }
    strcat(self->text, "]");
    return RECORD_SINK_OK;
}

static const struct record_sink_ops letters_ops = {.append = letters_append};

static int find_edge(void *context, const struct plan_node *node, uint32_t lane,
                     struct table_source_edge *out, struct error *error)
{
    struct fixture *f = context;
    *out = (struct table_source_edge){
        .records = &f->player.base,
        .dead_letters = &f->letters.base,
        .dead_letter_topic = 9,
    };
    return 0;
}

static const char *const path_k[] = {"k"};
static const char *const path_ts[] = {"ts"};
static const char *const topics[] = {"payments"};

/* Table: k BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS COALESCE(ts, ts). */
static void begin(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    f->player.log = f->log;
    f->player.base.ops = &player_ops;
    f->letters.base.ops = &letters_ops;
    const struct type number = {.kind = TYPE_BIGINT, .nullable = true};
    const struct type time = {.kind = TYPE_TIMESTAMP, .nullable = true, .precision = 3};
    fake_plan_init(&f->plan);
    (void)fake_node(&f->plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    (void)fake_node(&f->plan, PLAN_OVER, 0, PLAN_FORWARD, FAKE_INPUTS(0));
    f->fields[0] =
        (struct plan_field){.path = path_k, .path_count = 1, .needed = true, .type = number};
    f->fields[1] =
        (struct plan_field){.path = path_ts, .path_count = 1, .needed = true, .type = time};
    f->decoded_types[0] = number;
    f->decoded_types[1] = time;
    f->exprs[0] = (struct expr){.kind = EXPR_COLUMN, .type = time, .column = 1};
    f->arguments[0] = &f->exprs[0];
    f->arguments[1] = &f->exprs[0];
    f->exprs[2] = (struct expr){.kind = EXPR_CALL,
                                .type = time,
                                .function = EXPR_COALESCE,
                                .argument_count = 2,
                                .arguments = f->arguments};
    f->picks[1] = 1;
    struct plan_node *node = &f->plan.nodes[0];
    node->time_column = 1;
    node->source = (struct plan_source){
        .table = "t",
        .topics = topics,
        .topic_count = 1,
        .value_format = {.format = PLAN_FORMAT_JSON},
        .fields = f->fields,
        .field_count = 2,
        .column_picks = f->picks,
        .watermark = &f->exprs[2],
        .watermark_on_event = true,
        .watermark_interval_ms = 200,
        .bounded = PLAN_BOUNDED_LATEST,
    };
    row_layout_init(&node->source.decoded, f->decoded_types, 2, f->decoded_slots);
    f->out_types[0] = number;
    f->out_types[1] = time;
    row_layout_init(&node->layout, f->out_types, 2, f->out_slots);
    f->environment = (struct table_source_environment){.find = find_edge, .context = f};
    f->config = fake_config(&f->plan, 1, &f->world, &f->memory);
    f->config.source_ops = &table_source_ops;
    f->config.find_operator = find_recorder;
    f->config.lanes[0].source_environment = &f->environment;
}

static struct scripted *add_batch(struct fixture *f, uint32_t partition)
{
    struct scripted *batch = &f->player.batches[f->player.batch_count++];
    *batch = (struct scripted){.partition = partition, .first_time_ms = 1000};
    return batch;
}

static void add_partition(struct fixture *f, uint32_t partition)
{
    f->player.partitions[f->player.partition_count++].partition = partition;
}

static void start(struct fixture *f)
{
    struct error error = {0};
    if (job_create(&f->config, &f->job, &error) != 0) {
        fail_msg("%s", error.text);
    }
}

static void turns(struct fixture *f, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        (void)job_lane_poll(f->job, 0, 1000000 * (uint64_t)i);
    }
}

static void end(struct fixture *f)
{
    job_destroy(f->job);
    fake_memory_free(&f->memory);
}

#define ROW(k, second) "{\"k\":" #k ",\"ts\":\"1970-01-01 00:00:" #second "\"}"

static void test_on_event_watermark_follows_each_row_that_moves_it(void **state)
{
    struct fixture f;
    begin(&f);
    add_partition(&f, 0);
    struct scripted *batch = add_batch(&f, 0);
    batch->values[0] = ROW(1, 10);
    batch->values[1] = ROW(2, 09.5);
    batch->values[2] = ROW(3, 12.0019);
    batch->count = 3;
    batch->ended = true;
    start(&f);
    turns(&f, 3);
    assert_string_equal(f.log, " 1@10000 w10000 2@9500 3@12001 w12001 wMAX");
    assert_int_equal(job_lane_state(f.job, 0), JOB_ENDED);
    end(&f);
}

static void test_partitions_minimum_waits_for_all_but_the_ended_ones(void **state)
{
    struct fixture f;
    begin(&f);
    add_partition(&f, 0);
    add_partition(&f, 1);
    add_partition(&f, 2);
    struct scripted *batch = add_batch(&f, 2); /* empty: ends at once */
    batch->ended = true;
    batch = add_batch(&f, 0);
    batch->values[0] = ROW(1, 10);
    batch->values[1] = ROW(2, 20);
    batch->count = 2;
    batch = add_batch(&f, 1);
    batch->values[0] = ROW(3, 05);
    batch->values[1] = ROW(4, 30);
    batch->count = 2;
    batch->ended = true;
    batch = add_batch(&f, 0);
    batch->first_offset = 2;
    batch->values[0] = ROW(5, 25);
    batch->count = 1;
    batch->ended = true;
    start(&f);
    turns(&f, 6);
    assert_string_equal(f.log, " 1@10000 2@20000 3@5000 w5000 4@30000 w20000 5@25000 w25000 wMAX");
    end(&f);
}

static void test_periodic_watermark_when_live_then_comes_once_a_turn(void **state)
{
    struct fixture f;
    begin(&f);
    f.plan.nodes[0].source.watermark_on_event = false;
    add_partition(&f, 0);
    struct scripted *batch = add_batch(&f, 0);
    batch->values[0] = ROW(1, 10);
    batch->values[1] = ROW(2, 20);
    batch->count = 2;
    start(&f);
    turns(&f, 2);
    assert_string_equal(f.log, " 1@10000 2@20000 w20000");
    end(&f);
}

static void test_periodic_watermark_in_replay_goes_by_record_time(void **state)
{
    for (uint32_t rows = 1; rows <= 8; rows *= 2) {
        struct fixture f;
        begin(&f);
        f.plan.nodes[0].source.watermark_on_event = false;
        f.config.is_replay = true;
        f.config.settle = true;
        f.config.parcel_rows_max = rows;
        add_partition(&f, 0);
        for (uint32_t i = 0; i < 3; i++) {
            struct scripted *batch = add_batch(&f, 0);
            batch->first_offset = 2 * i;
            batch->first_time_ms = 1000 + 150 * (int64_t)i;
            batch->values[0] = i == 0 ? ROW(1, 10) : (i == 1 ? ROW(3, 30) : ROW(5, 50));
            batch->values[1] = i == 0 ? ROW(2, 20) : (i == 1 ? ROW(4, 40) : ROW(6, 59));
            batch->count = 2;
            batch->ended = i == 2;
        }
        start(&f);
        turns(&f, 8);
        assert_string_equal(f.log, " 1@10000 2@20000 3@30000 4@40000 w40000 5@50000 6@59000 wMAX");
        end(&f);
    }
}

static void test_idle_partition_does_not_hold_back_until_it_speaks(void **state)
{
    struct fixture f;
    begin(&f);
    f.plan.nodes[0].source.bounded = PLAN_UNBOUNDED;
    add_partition(&f, 0);
    add_partition(&f, 1);
    struct scripted *batch = add_batch(&f, 0);
    batch->values[0] = ROW(1, 10);
    batch->count = 1;
    batch = add_batch(&f, 1);
    batch->caught_up = true;
    batch = add_batch(&f, 1);
    batch->values[0] = ROW(2, 05);
    batch->count = 1;
    batch = add_batch(&f, 0);
    batch->first_offset = 1;
    batch->values[0] = ROW(3, 20);
    batch->count = 1;
    batch = add_batch(&f, 0);
    batch->caught_up = true;
    batch = add_batch(&f, 1);
    batch->caught_up = true;
    start(&f);
    turns(&f, 8);
    assert_string_equal(f.log, " 1@10000 w10000 2@5000 3@20000");
    assert_true(job_stage(f.job, 0, 1)->said_idle);
    assert_int_equal(job_lane_state(f.job, 0), JOB_RUNNING);
    end(&f);
}

static void test_source_without_partitions_is_idle_or_at_its_end(void **state)
{
    struct fixture f;
    begin(&f);
    f.plan.nodes[0].source.bounded = PLAN_UNBOUNDED;
    start(&f);
    turns(&f, 3);
    assert_true(job_stage(f.job, 0, 1)->said_idle);
    assert_string_equal(f.log, "");
    end(&f);
    begin(&f);
    start(&f);
    turns(&f, 3);
    assert_string_equal(f.log, " wMAX");
    assert_int_equal(job_lane_state(f.job, 0), JOB_ENDED);
    end(&f);
}

static void test_null_time_leaves_the_watermark_where_it_is(void **state)
{
    struct fixture f;
    begin(&f);
    add_partition(&f, 0);
    struct scripted *batch = add_batch(&f, 0);
    batch->values[0] = ROW(1, 10);
    batch->values[1] = "{\"k\":2}";
    batch->values[2] = NULL; /* a tombstone gives no row */
    batch->count = 3;
    start(&f);
    turns(&f, 2);
    assert_string_equal(f.log, " 1@10000 w10000 2");
    assert_int_equal(table_source_counters(job_stage(f.job, 0, 0)->source)->records, 3);
    assert_int_equal(table_source_counters(job_stage(f.job, 0, 0)->source)->rows, 2);
    end(&f);
}

/* Columns (k + 1, ts), the first one computed: the watermark's column is picked through. */
static void use_computed_column(struct fixture *f, enum expr_function function, int64_t number)
{
    const struct type type = {.kind = TYPE_BIGINT, .nullable = true};
    f->exprs[3] = (struct expr){.kind = EXPR_COLUMN, .type = type, .column = 0};
    f->exprs[4] = (struct expr){
        .kind = EXPR_LITERAL, .type = {.kind = TYPE_BIGINT}, .literal = {.i64 = number}};
    f->arguments[2] = &f->exprs[function == EXPR_DIVIDE ? 4 : 3];
    f->arguments[3] = &f->exprs[function == EXPR_DIVIDE ? 3 : 4];
    f->exprs[5] = (struct expr){.kind = EXPR_CALL,
                                .type = type,
                                .function = function,
                                .argument_count = 2,
                                .arguments = &f->arguments[2]};
    f->computed[0] = &f->exprs[5];
    f->plan.nodes[0].source.computed = f->computed;
    f->plan.nodes[0].source.computed_count = 1;
    f->picks[0] = 2;
}

static void test_computed_columns_are_picked_into_the_row(void **state)
{
    struct fixture f;
    begin(&f);
    use_computed_column(&f, EXPR_PLUS, 100);
    add_partition(&f, 0);
    struct scripted *batch = add_batch(&f, 0);
    batch->values[0] = ROW(1, 10);
    batch->values[1] = ROW(2, 20);
    batch->count = 2;
    batch->ended = true;
    start(&f);
    turns(&f, 2);
    assert_string_equal(f.log, " 101@10000 w10000 102@20000 w20000 wMAX");
    end(&f);
}

static void test_computed_column_when_it_fails_then_the_job_fails_at_that_record(void **state)
{
    struct fixture f;
    begin(&f);
    use_computed_column(&f, EXPR_DIVIDE, 100);
    add_partition(&f, 3);
    struct scripted *batch = add_batch(&f, 3);
    batch->first_offset = 40;
    batch->values[0] = ROW(1, 10);
    batch->values[1] = ROW(0, 20);
    batch->count = 2;
    start(&f);
    turns(&f, 2);
    assert_int_equal(job_lane_state(f.job, 0), JOB_FAILED);
    assert_non_null(strstr(job_lane_failure(f.job, 0)->text,
                           "table t, topic payments, partition 3, offset 41: "));
    end(&f);
}

static void script_bad_record(struct fixture *f, uint32_t partition)
{
    add_partition(f, partition);
    struct scripted *batch = add_batch(f, partition);
    batch->first_offset = 70;
    batch->values[0] = ROW(1, 10);
    batch->values[1] = "{\"k\":1,";
    batch->values[2] = ROW(3, 20);
    batch->count = 3;
    batch->ended = true;
}

static void test_bad_record_when_policy_is_fail_then_names_its_place(void **state)
{
    struct fixture f;
    begin(&f);
    script_bad_record(&f, 5);
    start(&f);
    turns(&f, 2);
    assert_int_equal(job_lane_state(f.job, 0), JOB_FAILED);
    assert_non_null(strstr(job_lane_failure(f.job, 0)->text,
                           "table t, topic payments, partition 5, offset 71: "));
    end(&f);
}

static void test_bad_record_when_policy_is_skip_then_is_counted(void **state)
{
    struct fixture f;
    begin(&f);
    f.plan.nodes[0].source.on_error = PLAN_ON_ERROR_SKIP;
    script_bad_record(&f, 5);
    start(&f);
    turns(&f, 3);
    assert_string_equal(f.log, " 1@10000 w10000 3@20000 w20000 wMAX");
    const struct table_source_counters *counters =
        table_source_counters(job_stage(f.job, 0, 0)->source);
    assert_int_equal(counters->bad, 1);
    assert_int_equal(counters->records, 3);
    assert_int_equal(counters->dead_letters, 0);
    end(&f);
}

static void test_bad_record_goes_to_the_dead_letter_topic_with_its_place(void **state)
{
    for (uint32_t rewinding = 0; rewinding < 2; rewinding++) {
        struct fixture f;
        begin(&f);
        f.plan.nodes[0].source.on_error = PLAN_ON_ERROR_DEAD_LETTER;
        f.player.base.ops = rewinding != 0 ? &rewinding_ops : &player_ops;
        f.letters.refusals = 3;
        script_bad_record(&f, 5);
        start(&f);
        turns(&f, 12);
        assert_string_equal(f.log, " 1@10000 w10000 3@20000 w20000 wMAX");
        assert_int_equal(table_source_counters(job_stage(f.job, 0, 0)->source)->dead_letters, 1);
        const char *expected = "[9 {\"k\":1,|penstock.topic=payments|penstock.partition=5|"
                               "penstock.offset=71|penstock.reason=";
        assert_int_equal(strncmp(f.letters.text, expected, strlen(expected)), 0);
        assert_null(strchr(f.letters.text + 1, '['));
        assert_int_equal(f.player.rewinds > 0, rewinding);
        end(&f);
    }
}

/* Checks that the log's rows count from 1 to `cycle` again and again. */
static void check_cycles(const char *log, long cycle, uint32_t rows)
{
    uint32_t seen = 0;
    for (const char *at = strchr(log, ' '); at != NULL; at = strchr(at + 1, ' ')) {
        if (at[1] != 'w') {
            assert_int_equal(strtol(at + 1, NULL, 10), 1 + seen % cycle);
            seen++;
        }
    }
    assert_int_equal(seen, rows);
}

/* A pool so small that the rows of one batch do not fit: the rest waits, or is shown again; arrays
 * give several rows a record, so a record can be cut in the middle. */
static void test_batch_when_room_is_short_then_nothing_is_lost_or_doubled(void **state)
{
    for (uint32_t rewinding = 0; rewinding < 2; rewinding++) {
        struct fixture f;
        begin(&f);
        f.player.base.ops = rewinding != 0 ? &rewinding_ops : &player_ops;
        f.config.parcel_rows_max = 1;
        f.config.queue_rows_max = 1000;
        f.config.classes[0] = (struct parcel_class){.bytes = 1024, .count = 262};
        add_partition(&f, 0);
        static const char array[] = "[" ROW(1, 10) "," ROW(2, 10) "," ROW(3, 10) "," ROW(
            4, 10) "," ROW(5, 10) "," ROW(6, 10) "," ROW(7, 10) "]";
        for (uint32_t b = 0; b < 2; b++) {
            struct scripted *batch = add_batch(&f, 0);
            batch->first_offset = 60 * (int64_t)b;
            batch->count = 60;
            batch->ended = b == 1;
            for (uint32_t i = 0; i < 60; i++) {
                batch->values[i] = array;
            }
        }
        start(&f);
        turns(&f, 400);
        check_cycles(f.log, 7, 2 * 60 * 7);
        const struct table_source_counters *counters =
            table_source_counters(job_stage(f.job, 0, 0)->source);
        assert_int_equal(counters->rows, 2 * 60 * 7);
        assert_int_equal(job_stage(f.job, 0, 1)->stage_counters[STAGE_ROWS_IN], 2 * 60 * 7);
        assert_int_equal(job_lane_state(f.job, 0), JOB_ENDED);
        assert_int_equal(f.player.rewinds > 0, rewinding);
        end(&f);
    }
}

/* ---- Checkpoints ---- */

struct noted {
    _Alignas(8) uint8_t bytes[4096];
    struct facts_partition partitions[8];
    uint32_t partition_count;
    struct facts_source source;
    uint32_t source_count;
};

static bool note(void *context, const struct facts_item *item)
{
    struct noted *noted = context;
    if (item->kind == FACTS_PARTITION) {
        noted->partitions[noted->partition_count++] = item->partition;
    } else {
        assert_int_equal(item->kind, FACTS_SOURCE);
        noted->source = item->source;
        noted->source_count++;
    }
    return true;
}

static struct source *source_of(struct fixture *f)
{
    return job_stage(f->job, 0, 0)->source;
}

static void snapshot(struct fixture *f, struct noted *noted)
{
    struct facts_writer writer;
    memset(noted, 0, sizeof(*noted));
    facts_begin(&writer, (struct span_mut){.data = noted->bytes, .bytes = sizeof(noted->bytes)});
    source_of(f)->ops->snapshot(source_of(f), &writer);
    assert_int_equal(facts_read(facts_written(&writer), note, noted, NULL), 0);
}

static int restore(struct fixture *f, const struct noted *noted)
{
    const struct source_facts facts = {
        .partitions = noted->partitions,
        .partition_count = noted->partition_count,
        .source = noted->source,
    };
    return source_of(f)->ops->restore(source_of(f), &facts, NULL);
}

static void script_two_partitions(struct fixture *f)
{
    add_partition(f, 0);
    add_partition(f, 1);
    struct scripted *one = add_batch(f, 0);
    one->values[one->count++] = "{\"k\": 1, \"ts\": \"1970-01-01 00:00:05\"}";
    one->values[one->count++] = "{\"k\": 2, \"ts\": \"1970-01-01 00:00:09\"}";
    one->first_offset = 100;
    struct scripted *two = add_batch(f, 1);
    two->values[two->count++] = "{\"k\": 3, \"ts\": \"1970-01-01 00:00:07\"}";
    two->first_offset = 40;
    two->ended = true;
}

static void test_snapshot_when_batches_are_done_then_behind_them(void **state)
{
    static struct fixture f;
    static struct noted noted;
    begin(&f);
    script_two_partitions(&f);
    start(&f);
    turns(&f, 3);
    snapshot(&f, &noted);
    assert_int_equal(noted.partition_count, 2);
    assert_int_equal(noted.partitions[0].identity, f.plan.nodes[0].identity);
    assert_string_equal(noted.partitions[0].topic, "payments");
    assert_int_equal(noted.partitions[0].next_offset, 102);
    assert_int_equal(noted.partitions[0].resume_rows, 0);
    assert_int_equal(noted.partitions[0].watermark_ms, 9000);
    assert_int_equal(noted.partitions[0].has_ended, 0);
    assert_int_equal(noted.partitions[1].partition, 1);
    assert_int_equal(noted.partitions[1].next_offset, 41);
    assert_int_equal(noted.partitions[1].has_ended, 1);
    assert_int_equal(noted.source_count, 1);
    assert_int_equal(noted.source.watermark_ms, 9000);
    end(&f);
}

static void test_snapshot_when_nothing_was_read_then_offsets_are_unknown(void **state)
{
    static struct fixture f;
    static struct noted noted;
    begin(&f);
    start(&f);
    snapshot(&f, &noted);
    assert_int_equal(noted.partition_count, 0);
    assert_int_equal(noted.source.is_incomplete, 1);
    add_partition(&f, 5);
    turns(&f, 1);
    snapshot(&f, &noted);
    assert_int_equal(noted.partition_count, 1);
    assert_int_equal(noted.source.is_incomplete, 0);
    assert_int_equal(noted.partitions[0].next_offset, -1);
    end(&f);
}

/* What consumers had been told comes first, and the ended partition holds nothing back. */
static void test_restore_when_snapshot_was_made_then_goes_on_from_there(void **state)
{
    static struct fixture f;
    static struct noted noted;
    begin(&f);
    script_two_partitions(&f);
    start(&f);
    turns(&f, 3);
    snapshot(&f, &noted);
    end(&f);
    begin(&f);
    f.player.is_incomplete = true;
    start(&f);
    assert_int_equal(restore(&f, &noted), 0);
    assert_int_equal(f.player.started_count, 2);
    assert_int_equal(f.player.started[0].next_offset, 102);
    assert_true(f.player.started[1].has_ended);
    turns(&f, 1);
    assert_string_equal(f.log, " w9000");
    /* Nothing is known of the second partition yet: its place is carried on. */
    add_partition(&f, 0);
    turns(&f, 1);
    static struct noted again;
    snapshot(&f, &again);
    assert_int_equal(again.partition_count, 2);
    assert_int_equal(again.partitions[1].next_offset, 41);
    assert_int_equal(again.partitions[1].has_ended, 1);
    assert_int_equal(again.source.watermark_ms, 9000);
    f.player.is_incomplete = false;
    add_partition(&f, 1);
    struct scripted *batch = add_batch(&f, 0);
    batch->values[batch->count++] = "{\"k\": 4, \"ts\": \"1970-01-01 00:00:11\"}";
    batch->first_offset = 102;
    turns(&f, 2);
    assert_string_equal(f.log, " w9000 4@11000 w11000");
    end(&f);
}

/* Partition 1 was slower and shows itself later: the watermark waits for it. */
static void test_restore_when_partitions_show_one_by_one_then_the_slowest_holds(void **state)
{
    static struct fixture f;
    static struct noted noted;
    memset(&noted, 0, sizeof(noted));
    begin(&f);
    for (uint32_t i = 0; i < 2; i++) {
        noted.partitions[i] = (struct facts_partition){.identity = f.plan.nodes[0].identity,
                                                       .partition = i,
                                                       .next_offset = 10,
                                                       .watermark_ms = i == 0 ? 8000 : 3000,
                                                       .leader_epoch = -1,
                                                       .topic = "payments"};
    }
    noted.partition_count = 2;
    noted.source = (struct facts_source){.watermark_ms = 2000, .next_emit_ms = INT64_MIN};
    f.player.is_incomplete = true;
    start(&f);
    assert_int_equal(restore(&f, &noted), 0);
    add_partition(&f, 0);
    struct scripted *batch = add_batch(&f, 0);
    batch->values[batch->count++] = "{\"k\": 1, \"ts\": \"1970-01-01 00:00:09\"}";
    batch->first_offset = 10;
    turns(&f, 2);
    add_partition(&f, 1);
    f.player.is_incomplete = false;
    turns(&f, 2);
    assert_string_equal(f.log, " w2000 1@9000 w3000");
    end(&f);
}

static void test_restore_when_the_table_lost_a_topic_then_its_places_are_left_out(void **state)
{
    static struct fixture f;
    static struct noted noted;
    memset(&noted, 0, sizeof(noted));
    begin(&f);
    noted.partitions[0] = (struct facts_partition){.next_offset = 10, .topic = "elsewhere"};
    noted.partition_count = 1;
    noted.source = (struct facts_source){.watermark_ms = WATERMARK_MIN};
    start(&f);
    assert_int_equal(restore(&f, &noted), 0);
    assert_int_equal(f.player.started_count, 0);
    end(&f);
}

/* Cut before a lane had heard of its partitions: those are not new when they show themselves. */
static void test_restore_when_a_lane_knew_too_little_then_the_others_are_not_new(void **state)
{
    static struct fixture f;
    static struct noted noted;
    begin(&f);
    f.player.is_incomplete = true;
    start(&f);
    turns(&f, 2);
    snapshot(&f, &noted);
    assert_int_equal(noted.source_count, 1);
    assert_int_equal(noted.source.is_incomplete, 1);
    end(&f);
    begin(&f);
    start(&f);
    assert_int_equal(restore(&f, &noted), 0);
    assert_int_equal(f.player.started_count, 1);
    assert_int_equal(f.player.started[0].partition, RECORD_PARTITION_OTHERS);
    assert_int_equal(f.player.started[0].next_offset, -1);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_event_watermark_follows_each_row_that_moves_it),
        cmocka_unit_test(test_partitions_minimum_waits_for_all_but_the_ended_ones),
        cmocka_unit_test(test_periodic_watermark_when_live_then_comes_once_a_turn),
        cmocka_unit_test(test_periodic_watermark_in_replay_goes_by_record_time),
        cmocka_unit_test(test_idle_partition_does_not_hold_back_until_it_speaks),
        cmocka_unit_test(test_source_without_partitions_is_idle_or_at_its_end),
        cmocka_unit_test(test_null_time_leaves_the_watermark_where_it_is),
        cmocka_unit_test(test_computed_columns_are_picked_into_the_row),
        cmocka_unit_test(test_computed_column_when_it_fails_then_the_job_fails_at_that_record),
        cmocka_unit_test(test_bad_record_when_policy_is_fail_then_names_its_place),
        cmocka_unit_test(test_bad_record_when_policy_is_skip_then_is_counted),
        cmocka_unit_test(test_bad_record_goes_to_the_dead_letter_topic_with_its_place),
        cmocka_unit_test(test_batch_when_room_is_short_then_nothing_is_lost_or_doubled),
        cmocka_unit_test(test_snapshot_when_batches_are_done_then_behind_them),
        cmocka_unit_test(test_snapshot_when_nothing_was_read_then_offsets_are_unknown),
        cmocka_unit_test(test_restore_when_snapshot_was_made_then_goes_on_from_there),
        cmocka_unit_test(test_restore_when_partitions_show_one_by_one_then_the_slowest_holds),
        cmocka_unit_test(test_restore_when_the_table_lost_a_topic_then_its_places_are_left_out),
        cmocka_unit_test(test_restore_when_a_lane_knew_too_little_then_the_others_are_not_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
