/* SPDX-License-Identifier: Apache-2.0 */
/* The table sink: values and keys, tombstones, not-null enforcement, a full record sink, times. */
#include "tests/dataplane/fake_job.h"

#include "dataplane/table_sink.h"

#define LOG_BYTES 65536

struct taker {
    struct record_sink base;
    char text[LOG_BYTES];
    uint32_t refuse_every; /* every n-th append is refused once */
    uint32_t calls;
    bool too_large;
    int32_t partition; /* asked for last */
};

struct fixture {
    struct type types[2];
    uint16_t slots[2];
    struct row_layout layout;
    struct plan_sink_field fields[2];
    struct plan_sink_field key_fields[1];
    uint32_t not_null[1];
    struct plan_node node;
    struct taker taker;
    struct table_sink_environment environment;
    struct sink_context context;
    uint64_t counters[OPERATOR_COUNTER_COUNT];
    struct sink *sink;
    uint64_t parcel_memory[2048];
};

static enum record_sink_verdict take(struct record_sink *base, uint32_t topic, int32_t partition,
                                     const struct record *record)
{
    struct taker *self = (struct taker *)base;
    self->calls++;
    self->partition = partition;
    if (self->too_large) {
        return RECORD_SINK_TOO_LARGE;
    }
    if (self->refuse_every != 0 && self->calls % self->refuse_every == 0) {
        return RECORD_SINK_FULL;
    }
    const size_t used = strlen(self->text);
    (void)snprintf(self->text + used, sizeof(self->text) - used, "%.*s%s%.*s@%lld\n",
                   record->key_is_null ? 1 : (int)record->key.bytes,
                   record->key_is_null ? "-" : (const char *)record->key.data, " ",
                   record->value_is_null ? 4 : (int)record->value.bytes,
                   record->value_is_null ? "null" : (const char *)record->value.data,
                   (long long)record->timestamp_ms);
    return RECORD_SINK_OK;
}

static bool taker_flushed(struct record_sink *base)
{
    return ((struct taker *)base)->calls % 2 == 0;
}

static const struct record_sink_ops taker_ops = {.append = take, .flushed = taker_flushed};

static int find_edge(void *context, const struct plan_node *node, uint32_t lane,
                     struct table_sink_edge *out, struct error *error)
{
    *out =
        (struct table_sink_edge){.records = context, .value_bytes_max = 256, .key_bytes_max = 64};
    return 0;
}

/* A table of id BIGINT, name STRING. */
static void begin(struct fixture *f, enum plan_connector connector)
{
    memset(f, 0, sizeof(*f));
    f->types[0] = (struct type){.kind = TYPE_BIGINT, .nullable = true};
    f->types[1] = (struct type){.kind = TYPE_VARCHAR, .nullable = true, .length = TYPE_LENGTH_MAX};
    row_layout_init(&f->layout, f->types, 2, f->slots);
    f->fields[0] = (struct plan_sink_field){.name = "id", .column = 0, .type = f->types[0]};
    f->fields[1] = (struct plan_sink_field){.name = "name", .column = 1, .type = f->types[1]};
    f->key_fields[0] = f->fields[0];
    f->node = (struct plan_node){.operator= PLAN_SINK, .layout = f->layout};
    f->node.sink = (struct plan_sink){
        .table = "scores",
        .connector = connector,
        .value_format = {.format = PLAN_FORMAT_JSON},
        .value_fields = f->fields,
        .value_field_count = 2,
        .timestamp_column = UINT32_MAX,
        .not_null_columns = f->not_null,
    };
    if (connector == PLAN_CONNECTOR_UPSERT_KAFKA) {
        f->node.sink.key_format.format = PLAN_FORMAT_JSON;
        f->node.sink.key_fields = f->key_fields;
        f->node.sink.key_field_count = 1;
        f->node.sink.drop_update_before = true;
    }
    f->taker.base.ops = &taker_ops;
    f->environment = (struct table_sink_environment){.find = find_edge, .context = &f->taker.base};
    f->context = (struct sink_context){
        .node = &f->node,
        .input = &f->layout,
        .time_zone = "UTC",
        .environment = &f->environment,
        .counters = f->counters,
    };
}

static void open_sink(struct fixture *f)
{
    struct error error = {0};
    if (table_sink_ops.open(&f->context, &f->sink, &error) != 0) {
        fail_msg("%s", error.text);
    }
}

static struct parcel *parcel_of(struct fixture *f)
{
    struct parcel *parcel = (struct parcel *)f->parcel_memory;
    if (parcel->bytes_max == 0) {
        parcel->bytes_max = (uint32_t)(sizeof(f->parcel_memory) - sizeof(*parcel));
        parcel->processing_ms = 1234;
    }
    return parcel;
}

static void add_row(struct fixture *f, enum row_kind kind, int64_t id, const char *name)
{
    struct parcel *parcel = parcel_of(f);
    const struct row head = {.kind = (uint8_t)kind};
    struct row_writer writer;
    assert_true(row_begin(&writer, &f->layout, parcel->data + parcel->bytes_used,
                          parcel->bytes_max - parcel->bytes_used, &head));
    row_set_i64(&writer, 0, id);
    if (name != NULL) {
        const struct span text = {.data = (const uint8_t *)name, .bytes = strlen(name)};
        assert_true(row_set_text(&writer, 1, text));
    }
    parcel->bytes_used += row_end(&writer);
    parcel->row_count++;
}

static enum operator_verdict process(struct fixture *f)
{
    return f->sink->ops->process(f->sink, parcel_of(f));
}

static void test_append_sink_writes_values_with_processing_time(void **state)
{
    struct fixture f;
    begin(&f, PLAN_CONNECTOR_KAFKA);
    open_sink(&f);
    add_row(&f, ROW_INSERT, 1, "a");
    add_row(&f, ROW_INSERT, 2, NULL);
    assert_int_equal(process(&f), OPERATOR_DONE);
    assert_string_equal(f.taker.text, "- {\"id\":1,\"name\":\"a\"}@1234\n"
                                      "- {\"id\":2,\"name\":null}@1234\n");
    assert_int_equal(table_sink_counters(f.sink)->records, 2);
    assert_true(f.sink->ops->flushed(f.sink));
    f.sink->ops->close(f.sink);
}

static void test_partitioner_says_which_partition_is_asked_for(void **state)
{
    const enum plan_partitioner partitioners[] = {
        PLAN_PARTITIONER_DEFAULT, PLAN_PARTITIONER_ROUND_ROBIN, PLAN_PARTITIONER_FIXED};
    const int32_t expected[] = {RECORD_PARTITION_DEFAULT, RECORD_PARTITION_NEXT, 3};
    for (size_t i = 0; i < COUNT_OF(partitioners); i++) {
        struct fixture f;
        begin(&f, PLAN_CONNECTOR_KAFKA);
        f.node.sink.partitioner = partitioners[i];
        f.context.lane = 3;
        open_sink(&f);
        add_row(&f, ROW_INSERT, 1, "a");
        assert_int_equal(process(&f), OPERATOR_DONE);
        assert_int_equal(f.taker.partition, expected[i]);
        f.sink->ops->close(f.sink);
    }
}

static void test_upsert_sink_writes_keys_and_tombstones(void **state)
{
    struct fixture f;
    begin(&f, PLAN_CONNECTOR_UPSERT_KAFKA);
    open_sink(&f);
    add_row(&f, ROW_INSERT, 1, "a");
    add_row(&f, ROW_UPDATE_BEFORE, 1, "a");
    add_row(&f, ROW_UPDATE_AFTER, 1, "b");
    add_row(&f, ROW_DELETE, 1, "b");
    assert_int_equal(process(&f), OPERATOR_DONE);
    assert_string_equal(f.taker.text, "{\"id\":1} {\"id\":1,\"name\":\"a\"}@1234\n"
                                      "{\"id\":1} {\"id\":1,\"name\":\"b\"}@1234\n"
                                      "{\"id\":1} null@1234\n");
    assert_int_equal(table_sink_counters(f.sink)->update_before_rows, 1);
    assert_int_equal(table_sink_counters(f.sink)->tombstones, 1);
    f.sink->ops->close(f.sink);
}

static void test_upsert_sink_writes_update_before_when_nothing_follows_it(void **state)
{
    struct fixture f;
    begin(&f, PLAN_CONNECTOR_UPSERT_KAFKA);
    f.node.sink.drop_update_before = false;
    open_sink(&f);
    add_row(&f, ROW_UPDATE_BEFORE, 1, "a");
    assert_int_equal(process(&f), OPERATOR_DONE);
    assert_string_equal(f.taker.text, "{\"id\":1} null@1234\n");
    f.sink->ops->close(f.sink);
}

static void test_not_null_column_fails_or_drops(void **state)
{
    struct fixture f;
    begin(&f, PLAN_CONNECTOR_KAFKA);
    f.not_null[0] = 1;
    f.node.sink.not_null_count = 1;
    open_sink(&f);
    add_row(&f, ROW_INSERT, 1, NULL);
    assert_int_equal(process(&f), OPERATOR_FAILED);
    assert_non_null(strstr(f.context.failure.text, "table scores: "));
    assert_non_null(strstr(f.context.failure.text, "name"));
    f.sink->ops->close(f.sink);
    begin(&f, PLAN_CONNECTOR_KAFKA);
    f.not_null[0] = 1;
    f.node.sink.not_null_count = 1;
    f.node.sink.not_null_drop = true;
    open_sink(&f);
    add_row(&f, ROW_INSERT, 1, NULL);
    add_row(&f, ROW_INSERT, 2, "b");
    assert_int_equal(process(&f), OPERATOR_DONE);
    assert_string_equal(f.taker.text, "- {\"id\":2,\"name\":\"b\"}@1234\n");
    assert_int_equal(table_sink_counters(f.sink)->null_rows_dropped, 1);
    f.sink->ops->close(f.sink);
}

static void test_full_record_sink_stops_at_the_row_and_goes_on_there(void **state)
{
    struct fixture f;
    begin(&f, PLAN_CONNECTOR_KAFKA);
    f.taker.refuse_every = 3;
    open_sink(&f);
    for (int64_t i = 0; i < 20; i++) {
        add_row(&f, ROW_INSERT, i, "x");
    }
    uint32_t turns = 1;
    while (process(&f) == OPERATOR_AGAIN) {
        turns++;
    }
    assert_int_equal(turns, 10);
    const char *at = f.taker.text;
    for (int64_t i = 0; i < 20; i++) {
        char line[64];
        (void)snprintf(line, sizeof(line), "- {\"id\":%lld,\"name\":\"x\"}@1234\n", (long long)i);
        assert_int_equal(strncmp(at, line, strlen(line)), 0);
        at += strlen(line);
    }
    assert_int_equal(*at, 0);
    f.sink->ops->close(f.sink);
}

static void test_record_when_too_large_then_the_job_fails(void **state)
{
    struct fixture f;
    begin(&f, PLAN_CONNECTOR_KAFKA);
    open_sink(&f);
    char name[400];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    add_row(&f, ROW_INSERT, 1, name);
    assert_int_equal(process(&f), OPERATOR_FAILED);
    assert_string_equal(f.context.failure.text, "table scores: a record is too large");
    f.sink->ops->close(f.sink);
    begin(&f, PLAN_CONNECTOR_KAFKA);
    f.taker.too_large = true;
    open_sink(&f);
    add_row(&f, ROW_INSERT, 1, "x");
    assert_int_equal(process(&f), OPERATOR_FAILED);
    assert_non_null(strstr(f.context.failure.text, "larger than the topic takes"));
    f.sink->ops->close(f.sink);
}

static void test_timestamp_column_is_written_and_where_it_is_null_processing_time(void **state)
{
    struct fixture f;
    begin(&f, PLAN_CONNECTOR_KAFKA);
    f.types[0] = (struct type){.kind = TYPE_TIMESTAMP, .precision = 3, .nullable = true};
    row_layout_init(&f.layout, f.types, 2, f.slots);
    f.node.layout = f.layout;
    f.node.sink.value_fields = &f.fields[1];
    f.node.sink.value_field_count = 1;
    f.node.sink.timestamp_column = 0;
    open_sink(&f);
    struct parcel *parcel = parcel_of(&f);
    for (int i = 0; i < 2; i++) {
        const struct row head = {.kind = ROW_INSERT};
        struct row_writer writer;
        assert_true(row_begin(&writer, &f.layout, parcel->data + parcel->bytes_used,
                              parcel->bytes_max - parcel->bytes_used, &head));
        if (i == 0) {
            const struct timestamp time = {.ms = 1700000000000};
            row_set(&writer, 0, &time);
        }
        parcel->bytes_used += row_end(&writer);
        parcel->row_count++;
    }
    assert_int_equal(process(&f), OPERATOR_DONE);
    assert_string_equal(f.taker.text, "- {\"name\":null}@1700000000000\n"
                                      "- {\"name\":null}@1234\n");
    f.sink->ops->close(f.sink);
}

static void test_blackhole_takes_everything(void **state)
{
    struct fixture f;
    begin(&f, PLAN_CONNECTOR_BLACKHOLE);
    open_sink(&f);
    add_row(&f, ROW_INSERT, 1, "a");
    assert_int_equal(process(&f), OPERATOR_DONE);
    assert_int_equal(table_sink_counters(f.sink)->rows, 1);
    assert_int_equal(f.taker.calls, 0);
    assert_true(f.sink->ops->flushed(f.sink));
    f.sink->ops->close(f.sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append_sink_writes_values_with_processing_time),
        cmocka_unit_test(test_partitioner_says_which_partition_is_asked_for),
        cmocka_unit_test(test_upsert_sink_writes_keys_and_tombstones),
        cmocka_unit_test(test_upsert_sink_writes_update_before_when_nothing_follows_it),
        cmocka_unit_test(test_not_null_column_fails_or_drops),
        cmocka_unit_test(test_full_record_sink_stops_at_the_row_and_goes_on_there),
        cmocka_unit_test(test_record_when_too_large_then_the_job_fails),
        cmocka_unit_test(test_timestamp_column_is_written_and_where_it_is_null_processing_time),
        cmocka_unit_test(test_blackhole_takes_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
