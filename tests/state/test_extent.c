/* SPDX-License-Identifier: Apache-2.0 */
/* Structure checks of extents: each field out of bounds is refused, lengths are what is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "state/extent.h"

struct sample {
    _Alignas(8) uint8_t bytes[EXTENT_BYTES];
};

static struct extent_header *head_of(struct sample *sample)
{
    return (struct extent_header *)(void *)sample->bytes;
}

static void set_item(struct sample *sample, uint32_t index, struct extent_page item)
{
    memcpy(sample->bytes + sizeof(struct extent_header) + index * sizeof(item), &item,
           sizeof(item));
}

/* Two pages and a freed one. */
static void make_pages(struct sample *sample)
{
    memset(sample, 0, sizeof(*sample));
    *head_of(sample) = (struct extent_header){.magic = EXTENT_MAGIC,
                                              .version = EXTENT_VERSION,
                                              .kind = EXTENT_PAGES,
                                              .checkpoint = 7,
                                              .item_count = 3,
                                              .image_count = 2};
    set_item(sample, 0, (struct extent_page){.page = 1, .kind = ARENA_PAGE_HEAP});
    set_item(sample, 1, (struct extent_page){.page = 9, .kind = ARENA_PAGE_FREE});
    set_item(sample, 2,
             (struct extent_page){.page = UINT32_MAX, .shard = 4095, .kind = ARENA_PAGE_BLOB});
}

static void make_facts(struct sample *sample, uint32_t bytes)
{
    memset(sample, 0, sizeof(*sample));
    *head_of(sample) = (struct extent_header){.magic = EXTENT_MAGIC,
                                              .version = EXTENT_VERSION,
                                              .kind = EXTENT_FACTS,
                                              .checkpoint = 7,
                                              .facts_bytes = bytes};
}

static struct sample sample;

static void test_check_when_pages_then_images_must_fit(void **state)
{
    (void)state;
    make_pages(&sample);
    assert_int_equal(extent_bytes(sample.bytes), 3 * 4096);
    assert_true(extent_check(sample.bytes, 3 * 4096));
    assert_true(extent_check(sample.bytes, EXTENT_BYTES));
    assert_false(extent_check(sample.bytes, 3 * 4096 - 1));
    assert_false(extent_check(sample.bytes, 4095));
    assert_false(extent_check(sample.bytes, 0));
}

static void test_check_when_facts_then_bytes_must_fit(void **state)
{
    (void)state;
    make_facts(&sample, 1);
    assert_int_equal(extent_bytes(sample.bytes), 8192);
    assert_true(extent_check(sample.bytes, 4097));
    assert_false(extent_check(sample.bytes, 4096));
    make_facts(&sample, 0);
    assert_int_equal(extent_bytes(sample.bytes), 4096);
    make_facts(&sample, EXTENT_FACTS_MAX);
    assert_int_equal(extent_bytes(sample.bytes), EXTENT_BYTES);
    assert_true(extent_check(sample.bytes, EXTENT_BYTES));
    make_facts(&sample, EXTENT_FACTS_MAX + 1);
    assert_false(extent_check(sample.bytes, EXTENT_BYTES));
    make_facts(&sample, 8);
    head_of(&sample)->item_count = 1;
    assert_false(extent_check(sample.bytes, EXTENT_BYTES));
}

/* One field of the header at a time. */
static void test_check_when_a_header_field_is_wrong_then_refused(void **state)
{
    (void)state;
    for (uint32_t field = 0; field < 9; field++) {
        make_pages(&sample);
        struct extent_header *head = head_of(&sample);
        head->magic += field == 0;
        head->version += field == 1;
        head->kind = field == 2 ? 0 : field == 3 ? 3 : head->kind;
        head->checkpoint = field == 4 ? 0 : head->checkpoint;
        head->image_count += field == 5 ? 1 : field == 6 ? UINT32_MAX : 0;
        head->item_count = field == 7 ? EXTENT_ITEMS_MAX + 1 : head->item_count;
        head->facts_bytes = field == 8;
        assert_false(extent_check(sample.bytes, EXTENT_BYTES));
    }
    make_pages(&sample);
    assert_true(extent_check(sample.bytes, EXTENT_BYTES));
}

static void test_check_when_an_item_is_wrong_then_refused(void **state)
{
    (void)state;
    static const struct extent_page wrong[] = {
        {.page = 0, .kind = ARENA_PAGE_HEAP},
        {.page = 1, .kind = ARENA_PAGE_KIND_COUNT},
        {.page = 1, .kind = ARENA_PAGE_HEAP, .shard = ARENA_SHARD_COUNT_MAX},
        {.page = 1, .kind = ARENA_PAGE_FREE}, /* one image less than it says */
    };
    for (size_t index = 0; index < COUNT_OF(wrong); index++) {
        make_pages(&sample);
        set_item(&sample, 2, wrong[index]);
        assert_false(extent_check(sample.bytes, EXTENT_BYTES));
    }
}

static void test_check_when_full_of_freed_pages_then_fine(void **state)
{
    (void)state;
    make_pages(&sample);
    head_of(&sample)->item_count = EXTENT_ITEMS_MAX;
    head_of(&sample)->image_count = 0;
    for (uint32_t index = 0; index < EXTENT_ITEMS_MAX; index++) {
        set_item(&sample, index, (struct extent_page){.page = index + 1});
    }
    assert_true(extent_check(sample.bytes, EXTENT_HEAD_BYTES));
    assert_int_equal(extent_bytes(sample.bytes), EXTENT_HEAD_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_when_pages_then_images_must_fit),
        cmocka_unit_test(test_check_when_facts_then_bytes_must_fit),
        cmocka_unit_test(test_check_when_a_header_field_is_wrong_then_refused),
        cmocka_unit_test(test_check_when_an_item_is_wrong_then_refused),
        cmocka_unit_test(test_check_when_full_of_freed_pages_then_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
