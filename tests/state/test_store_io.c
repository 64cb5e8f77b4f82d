/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait: more than the disk takes at once, and failures in words. */
#include "store_fixture.h"

#define COUNT 40U

static void test_run_when_more_than_depth_then_each_result_is_its_own(void **state)
{
    (void)state;
    struct disk_sim *sim = fixture_disk(STORE_SLOTS_MIN, 3);
    const struct disk_sim_plan plan = {
        .seed = 3, .latency_ns_max = 1000, .fault_at = 7, .fault = DISK_SIM_SHORT};
    uint8_t *buffer = store_io_buffer(COUNT * 8192);
    struct disk_request requests[COUNT];
    int64_t results[COUNT];
    disk_sim_restart(sim, &plan);
    for (uint32_t index = 0; index < COUNT; index++) {
        memset(buffer + index * 8192, (int)index + 1, 8192);
        requests[index] = (struct disk_request){.operation = DISK_WRITE,
                                                .bytes = 8192,
                                                .offset = index * 8192,
                                                .buffer = buffer + index * 8192};
    }
    store_io_run(disk_sim_disk(sim), requests, results, COUNT);
    for (uint32_t index = 0; index < COUNT; index++) {
        assert_true((results[index] == 8192) == (index != 6));
    }
    assert_int_equal(store_io_flush(disk_sim_disk(sim), NULL), 0);
    uint8_t byte;
    disk_sim_peek(sim, 39 * 8192 + 8191, &byte, 1);
    assert_int_equal(byte, 40);
    free(buffer);
    disk_sim_destroy(sim);
}

static void test_explain_when_short_or_failed_then_in_words(void **state)
{
    (void)state;
    struct error error = {0};
    assert_int_equal(store_io_explain(&error, DISK_WRITE, 8192, 4096, 512), -EIO);
    assert_string_equal(error.text, "the disk did 512 of 4096 bytes of a write at offset 8192");
    assert_int_equal(store_io_explain(&error, DISK_READ, 8192, 4096, -ENODEV), -EIO);
    assert_string_equal(error.text,
                        "the disk failed to read 4096 bytes at offset 8192: No such device");
    assert_int_equal(store_io_explain(&error, DISK_FLUSH, 0, 0, -EIO), -EIO);
    assert_non_null(strstr(error.text, "durable"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_when_more_than_depth_then_each_result_is_its_own),
        cmocka_unit_test(test_explain_when_short_or_failed_then_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
