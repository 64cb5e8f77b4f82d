/* SPDX-License-Identifier: Apache-2.0 */
/* Facts: what is written comes back, and every damaged byte string is refused, not trusted. */
#include "dataplane/facts.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define ITEMS_MAX 16

struct seen {
    struct facts_item items[ITEMS_MAX];
    uint32_t count;
    uint32_t refuse_at; /* 0: none */
};

static bool see(void *context, const struct facts_item *item)
{
    struct seen *seen = context;
    assert_true(seen->count < ITEMS_MAX);
    seen->items[seen->count++] = *item;
    return seen->count != seen->refuse_at;
}

static struct facts_item partition_item(void)
{
    struct facts_item item = {.kind = FACTS_PARTITION};
    item.partition = (struct facts_partition){
        .identity = UINT64_C(0x0123456789abcdef),
        .next_offset = 77,
        .end_offset = 99,
        .watermark_ms = -5,
        .partition = 3,
        .resume_rows = 2,
        .leader_epoch = 9,
        .has_ended = 1,
        .topic = "payments",
    };
    return item;
}

static struct facts_item transaction_item(void)
{
    struct facts_item item = {.kind = FACTS_TRANSACTION};
    item.transaction = (struct facts_transaction){
        .transactional_id = "scores-0-1",
        .producer_id = 4000,
        .producer_epoch = 12,
        .state = FACTS_TRANSACTION_PREPARED,
    };
    return item;
}

/* One item of each kind. */
static struct span write_all(uint8_t *memory, size_t bytes)
{
    struct facts_writer writer;
    facts_begin(&writer, (struct span_mut){.data = memory, .bytes = bytes});
    const struct facts_item partition = partition_item();
    const struct facts_item transaction = transaction_item();
    const struct facts_item source = {.kind = FACTS_SOURCE,
                                      .source = {.identity = 1,
                                                 .watermark_ms = INT64_MIN,
                                                 .next_emit_ms = 5,
                                                 .processing_ms = INT64_MAX}};
    const struct facts_item node = {.kind = FACTS_NODE,
                                    .node = {.identity = 2, .watermark_ms = 100, .tick_ms = 200}};
    facts_put(&writer, &partition);
    facts_put(&writer, &source);
    facts_put(&writer, &node);
    facts_put(&writer, &transaction);
    assert_false(writer.is_full);
    return facts_written(&writer);
}

static void test_facts_read_when_written_then_the_same(void **state)
{
    (void)state;
    _Alignas(8) uint8_t memory[1024];
    struct seen seen = {0};
    const struct span bytes = write_all(memory, sizeof(memory));
    assert_int_equal(facts_read(bytes, see, &seen, NULL), 0);
    assert_int_equal(seen.count, 4);
    const struct facts_item partition = partition_item();
    const struct facts_item transaction = transaction_item();
    assert_memory_equal(&seen.items[0].partition, &partition.partition,
                        sizeof(partition.partition));
    assert_int_equal(seen.items[1].source.watermark_ms, INT64_MIN);
    assert_int_equal(seen.items[1].source.processing_ms, INT64_MAX);
    assert_int_equal(seen.items[2].node.identity, 2);
    assert_int_equal(seen.items[2].node.tick_ms, 200);
    assert_memory_equal(&seen.items[3].transaction, &transaction.transaction,
                        sizeof(transaction.transaction));
}

static void test_facts_put_when_room_ends_then_full_and_whole(void **state)
{
    (void)state;
    _Alignas(8) uint8_t memory[1024];
    const size_t all = write_all(memory, sizeof(memory)).bytes;
    for (size_t room = 0; room < all; room += 8) {
        struct facts_writer writer;
        facts_begin(&writer, (struct span_mut){.data = memory, .bytes = room});
        const struct facts_item partition = partition_item();
        const struct facts_item transaction = transaction_item();
        facts_put(&writer, &partition);
        facts_put(&writer, &partition);
        facts_put(&writer, &transaction);
        facts_put(&writer, &transaction);
        assert_true(writer.is_full);
        assert_true(facts_written(&writer).bytes <= room);
    }
}

static void test_facts_read_when_cut_short_then_refused_or_fewer(void **state)
{
    (void)state;
    _Alignas(8) uint8_t memory[1024];
    const struct span bytes = write_all(memory, sizeof(memory));
    uint32_t whole = 0;
    for (size_t i = 0; i < bytes.bytes; i++) {
        struct seen seen = {0};
        struct error error = {0};
        const int code =
            facts_read((struct span){.data = bytes.data, .bytes = i}, see, &seen, &error);
        whole += code == 0;
        assert_true(code == 0 || (code == -EBADMSG && error.text[0] != 0));
    }
    /* Only the ends of items are good: none, one, two and three of them. */
    assert_int_equal(whole, 4);
}

/* Each byte takes each of some values: reading ends in peace, and a head is never passed over. */
static void test_facts_read_when_any_byte_is_damaged_then_no_harm(void **state)
{
    (void)state;
    _Alignas(8) uint8_t memory[1024];
    const struct span bytes = write_all(memory, sizeof(memory));
    static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    for (size_t i = 0; i < bytes.bytes; i++) {
        for (size_t v = 0; v < COUNT_OF(values); v++) {
            uint8_t *at = &memory[i];
            const uint8_t before = *at;
            struct seen seen = {0};
            *at = values[v];
            const int code = facts_read(bytes, see, &seen, NULL);
            assert_true(code == 0 || code == -EBADMSG);
            assert_true(i >= 16 || code == -EBADMSG || values[v] == before);
            *at = before;
        }
    }
}

static void put_u32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof(value));
}

/* The first item stands at 8: kind at 8, zero at 10, length at 12, body from 16. */
static void test_facts_read_when_a_field_lies_then_refused(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint32_t value;
    } lies[] = {
        {0, 0},
        {4, 2},
        {8, 0},
        {8, 5},
        {12, 40},
        {12, 0},
        {12, 48},
        {12, 305},
        {12, UINT32_MAX},
        {12, 304},
        {24 + 4, 1U << 31},
        {16 + 44, 2},
        {24 + 12, 1U << 31},
    };
    for (size_t i = 0; i < COUNT_OF(lies); i++) {
        _Alignas(8) uint8_t memory[1024];
        const struct span bytes = write_all(memory, sizeof(memory));
        struct seen seen = {0};
        put_u32(memory + lies[i].at, lies[i].value);
        if (facts_read(bytes, see, &seen, NULL) != -EBADMSG) {
            fail_msg("lie %zu was believed", i);
        }
    }
}

static void test_facts_read_when_visitor_refuses_then_canceled(void **state)
{
    (void)state;
    _Alignas(8) uint8_t memory[1024];
    struct seen seen = {.refuse_at = 2};
    assert_int_equal(facts_read(write_all(memory, sizeof(memory)), see, &seen, NULL), -ECANCELED);
    assert_int_equal(seen.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts_read_when_written_then_the_same),
        cmocka_unit_test(test_facts_put_when_room_ends_then_full_and_whole),
        cmocka_unit_test(test_facts_read_when_cut_short_then_refused_or_fewer),
        cmocka_unit_test(test_facts_read_when_any_byte_is_damaged_then_no_harm),
        cmocka_unit_test(test_facts_read_when_a_field_lies_then_refused),
        cmocka_unit_test(test_facts_read_when_visitor_refuses_then_canceled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
