/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: which stamps enter which histogram, merging, and the two printed forms. */
#include "tests/dataplane/fake_job.h"

#include "dataplane/ledger.h"

static struct ledger *make(void)
{
    static const char *const names[] = {"scores", "odd \"name\"\n"};
    struct ledger *ledger = NULL;
    struct error error = {0};
    assert_int_equal(ledger_create(names, 2, &ledger, &error), 0);
    return ledger;
}

/* A parcel of three rows: two that arrived at 1,000 and 2,000 ns, and one that nothing caused. */
static void fill(uint64_t *memory, struct parcel **out)
{
    struct parcel *parcel = (struct parcel *)memory;
    *parcel = (struct parcel){.row_count = 3,
                              .decoded_ns = 5000,
                              .routed_ns = 6000,
                              .operated_ns = 9000,
                              .encoded_ns = 10000};
    for (uint32_t i = 0; i < 3; i++) {
        struct row *row = (struct row *)(void *)(parcel->data + parcel->bytes_used);
        *row = (struct row){.bytes = sizeof(*row), .arrival_ns = i == 2 ? 0 : 1000 * (i + 1)};
        parcel->bytes_used += row->bytes;
    }
    *out = parcel;
}

static void test_parcel_enters_each_stage_once_a_row(void **state)
{
    struct ledger *ledger = make();
    uint64_t memory[64] = {0};
    struct parcel *parcel;
    fill(memory, &parcel);
    ledger_parcel(ledger, 0, parcel);
    assert_int_equal(ledger->stages[LEDGER_DECODED]->total, 2);
    assert_int_equal(ledger->stages[LEDGER_DECODED]->min, 3000);
    assert_int_equal(ledger->stages[LEDGER_DECODED]->max, 4000);
    assert_int_equal(ledger->stages[LEDGER_ROUTED]->total, 3);
    assert_int_equal(ledger->stages[LEDGER_ROUTED]->max, 1000);
    assert_int_equal(ledger->stages[LEDGER_OPERATED]->max, 3000);
    assert_int_equal(ledger->stages[LEDGER_ENCODED]->max, 1000);
    assert_int_equal(ledger->stages[LEDGER_PROCESSED]->max, 5000);
    assert_int_equal(ledger->sinks[0].processed->max, 9000);
    assert_int_equal(ledger->sinks[1].processed->total, 0);
    ledger_destroy(ledger);
}

static void test_parcel_without_exchange_takes_no_time_there(void **state)
{
    struct ledger *ledger = make();
    uint64_t memory[64] = {0};
    struct parcel *parcel;
    fill(memory, &parcel);
    parcel->routed_ns = 0;
    ledger_parcel(ledger, 1, parcel);
    assert_int_equal(ledger->stages[LEDGER_ROUTED]->max, 0);
    assert_int_equal(ledger->stages[LEDGER_OPERATED]->max, 4000);
    parcel->decoded_ns = 0;
    ledger_parcel(ledger, 1, parcel);
    assert_int_equal(ledger->stages[LEDGER_PROCESSED]->total, 3);
    ledger_destroy(ledger);
}

static void test_sent_enters_the_whole_stay(void **state)
{
    struct ledger *ledger = make();
    ledger_sent(ledger, 1, 1000, 4000, 9500);
    ledger_sent(ledger, 1, 1000, 0, 500); /* clocks that disagree: no time, not a huge one */
    ledger_sent(ledger, 1, 0, 4000, 9500);
    assert_int_equal(ledger->stages[LEDGER_SENT]->total, 2);
    assert_int_equal(ledger->stages[LEDGER_SENT]->max, 5500);
    assert_int_equal(ledger->stages[LEDGER_STAY]->total, 2);
    assert_int_equal(ledger->stages[LEDGER_STAY]->max, 8500);
    assert_int_equal(ledger->stages[LEDGER_STAY]->min, 0);
    assert_int_equal(ledger->sinks[1].stay->total, 2);
    ledger_destroy(ledger);
}

static char *print(const struct ledger *ledger, bool as_json)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *into = open_memstream(&text, &bytes);
    if (as_json) {
        ledger_print_json(ledger, into);
    } else {
        ledger_print(ledger, into);
    }
    (void)fclose(into);
    return text;
}

static void test_print_shows_merged_lanes(void **state)
{
    struct ledger *one = make();
    struct ledger *two = make();
    for (uint64_t i = 1; i <= 1000; i++) {
        ledger_sent(i % 2 == 0 ? one : two, 0, 1, 0, 1 + i * 1000);
    }
    ledger_skipped(one, 0);
    ledger_skipped(two, 0);
    ledger_merge(one, two);
    char *text = print(one, false);
    assert_non_null(strstr(text, "scores: in -> out leaves out 2 records: too many were"));
    assert_non_null(strstr(text, "NIC in -> NIC out                        1000      500.2"));
    assert_non_null(strstr(text, "scores: in -> out"));
    assert_null(strstr(text, "decoded -> routed"));
    free(text);
    text = print(one, true);
    assert_non_null(
        strstr(text, "\"e2eLatency\":{\"count\":1000,\"mean\":500500.0,\"p50\":500223,"));
    assert_non_null(strstr(text, "\"odd \\\"name\\\"\\u000a\":{\"processed\":{\"count\":0,"));
    assert_non_null(strstr(text, "\"skipped\":2}"));
    assert_int_equal(text[strlen(text) - 1], '\n');
    free(text);
    ledger_destroy(one);
    ledger_destroy(two);
}

static uint64_t tick(void *context)
{
    return *(uint64_t *)context += 100;
}

static void test_job_keeps_a_ledger_with_its_clock(void **state)
{
    struct fake_plan plan;
    struct fake_world world;
    struct fake_memory memory = {0};
    uint64_t clock = 1000;
    fake_plan_init(&plan);
    fake_world_init(&world, 0, 1);
    world.rows_a_source = 50;
    (void)fake_node(&plan, PLAN_SOURCE, 0, PLAN_FORWARD, 0, (uint32_t[]){0});
    (void)fake_node(&plan, PLAN_OVER, FAKE_COPY, PLAN_HASH, FAKE_INPUTS(0));
    (void)fake_node(&plan, PLAN_SINK, 0, PLAN_FORWARD, FAKE_INPUTS(1));
    struct job_config config = fake_config(&plan, 1, &world, &memory);
    config.keeps_ledger = true;
    config.hooks = (struct stage_hooks){.clock = tick, .context = &clock};
    struct job *job = NULL;
    struct error error = {0};
    assert_int_equal(job_create(&config, &job, &error), 0);
    fake_run(job, 1, 100);
    const struct ledger *ledger = job_lane_ledger(job, 0);
    assert_int_equal(ledger->sinks[0].processed->total, 50);
    assert_int_equal(ledger->stages[LEDGER_OPERATED]->total, 50);
    assert_true(ledger->stages[LEDGER_ENCODED]->min == 100);
    job_destroy(job);
    fake_memory_free(&memory);
    fake_world_free(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parcel_enters_each_stage_once_a_row),
        cmocka_unit_test(test_parcel_without_exchange_takes_no_time_there),
        cmocka_unit_test(test_sent_enters_the_whole_stay),
        cmocka_unit_test(test_print_shows_merged_lanes),
        cmocka_unit_test(test_job_keeps_a_ledger_with_its_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
