/* SPDX-License-Identifier: Apache-2.0 */
/* Manifest pieces: structure, chains of full-sized ones, and what contradicts itself. */
#include <malloc.h>

#include "store_fixture.h"

static void make_piece(struct store_piece *piece, uint32_t extent_count)
{
    memset(piece, 0, EXTENT_BYTES);
    *piece = (struct store_piece){.store_id = 5,
                                  .checkpoint = 6,
                                  .number = 1,
                                  .extent_count = extent_count,
                                  .previous = {.slot = 2, .bytes = 4096}};
    for (uint32_t index = 0; index < extent_count; index++) {
        piece->extents[index] =
            (struct store_extent){.ref = {.slot = 3, .bytes = 8192}, .kind = EXTENT_FACTS};
    }
}

static void test_piece_when_a_field_is_wrong_then_refused(void **state)
{
    (void)state;
    struct store_layout layout;
    const struct store_piece_place place = {.store_id = 5, .checkpoint = 6, .number = 1};
    struct store_piece *piece = aligned_alloc(4096, EXTENT_BYTES);
    assert_true(store_layout_init(&layout, 20 * (uint64_t)EXTENT_BYTES));
    for (uint32_t field = 0; field <= 10; field++) {
        make_piece(piece, 3);
        const uint32_t bytes = store_piece_seal(piece);
        piece->magic += field == 1;
        piece->version += field == 2;
        piece->store_id += field == 3;
        piece->checkpoint += field == 4;
        piece->number += field == 5;
        piece->extent_count = field == 6 ? 127 : piece->extent_count;
        piece->previous.slot = field == 7 ? 0 : piece->previous.slot;
        piece->extents[2].kind = field == 8 ? 99 : piece->extents[2].kind;
        piece->extents[2].ref.slot = field == 9 ? 19 : piece->extents[2].ref.slot;
        piece->extents[2].ref.bytes = field == 10 ? 1 : piece->extents[2].ref.bytes;
        assert_int_equal(bytes, 4096);
        assert_true(store_piece_check(&layout, (uint8_t *)piece, bytes, &place) == (field == 0));
    }
    free(piece);
}

static void test_seal_when_full_then_a_whole_slot(void **state)
{
    (void)state;
    struct store_piece *piece = aligned_alloc(4096, EXTENT_BYTES);
    make_piece(piece, STORE_PIECE_EXTENTS_MAX);
    assert_int_equal(store_piece_seal(piece), EXTENT_BYTES);
    assert_int_equal(STORE_PIECE_EXTENTS_MAX, 8190);
    free(piece);
}

/* Freed pages only: an extent of one block. */
static void make_extent(uint8_t *into, uint64_t id, uint32_t number)
{
    const struct extent_header head = {.magic = EXTENT_MAGIC,
                                       .version = EXTENT_VERSION,
                                       .kind = EXTENT_PAGES,
                                       .checkpoint = id,
                                       .number = number};
    memset(into, 0, EXTENT_HEAD_BYTES);
    memcpy(into, &head, sizeof(head));
}

struct numbers {
    uint8_t seen[10000];
    uint32_t count;
};

static int note_number(void *context, const struct store_checkpoint *about, const uint8_t *extent)
{
    struct numbers *numbers = context;
    struct extent_header head;
    memcpy(&head, extent, sizeof(head));
    assert_int_equal(about->id, 1);
    assert_true(head.number < sizeof(numbers->seen));
    assert_int_equal(numbers->seen[head.number]++, 0);
    numbers->count++;
    return 0;
}

static void test_manifest_when_a_piece_is_full_then_reads_back(void **state)
{
    (void)state;
    const uint32_t extent_count = STORE_PIECE_EXTENTS_MAX + 5;
    struct store_fixture fixture;
    fixture_init(&fixture, fixture_disk(extent_count + 20, 1), 1);
    fixture.piece_extents_max = STORE_PIECE_EXTENTS_MAX;
    assert_int_equal(fixture_format(fixture.sim, false, NULL), 0);
    assert_int_equal(fixture_open(&fixture, NULL, NULL), 0);
    const struct store_checkpoint about = {.id = 1};
    assert_int_equal(store_begin(fixture.store, &about, NULL), 0);
    uint64_t tags[16];
    uint32_t count;
    for (uint32_t number = 0; number < extent_count;) {
        uint8_t *extent = fixture.buffers;
        make_extent(extent, 1, number);
        const int status = store_append(fixture.store, extent, number);
        number += status == 0;
        do { /* one buffer for all */
            assert_int_equal(store_poll(fixture.store, tags, 16, &count, NANOSECONDS_PER_S),
                             STORE_WRITING);
        } while (fixture.store->writer.in_flight != 0);
    }
    store_commit(fixture.store, 0);
    assert_int_equal(fixture_end(&fixture), STORE_DURABLE);
    assert_int_equal(store_catalog_find(fixture.store, 1)->entry.piece_count, 2);
    fixture_close(&fixture);
    assert_int_equal(fixture_open(&fixture, NULL, NULL), 0);
    assert_int_equal(store_free_slots(fixture.store), 20 - STORE_ZONES - 2);
    struct numbers *numbers = calloc(1, sizeof(*numbers));
    assert_int_equal(store_read(fixture.store, 1, UINT32_MAX, 0, note_number, numbers, NULL), 0);
    assert_int_equal(numbers->count, extent_count);
    free(numbers);
    fixture_fini(&fixture);
}

/* Changes a manifest and makes its checksum in the root right again: a contradiction that only the
 * structure shows. */
static void forge(struct store_fixture *fixture, uint32_t what)
{
    const struct store_kept *first = store_catalog_find(fixture->store, 1);
    struct store_kept *second = &fixture->store->kept[1];
    assert_int_equal(second->entry.about.id, 2);
    const uint64_t offset = store_layout_slot(second->entry.manifest.slot);
    uint8_t *bytes = aligned_alloc(4096, EXTENT_BYTES);
    struct store_piece *piece = (struct store_piece *)(void *)bytes;
    disk_sim_peek(fixture->sim, offset, bytes, second->entry.manifest.bytes);
    if (what == 0) { /* a slot of another checkpoint */
        piece->extents[0].ref.slot = first->slots.head;
    } else if (what == 1) { /* the same slot twice */
        piece->extents[1].ref.slot = piece->extents[0].ref.slot;
    } else if (what == 2) { /* one less than the root says */
        piece->extent_count--;
    } else { /* a piece that names itself as the one before */
        piece->previous = second->entry.manifest;
    }
    second->entry.manifest.sum = checksum_of(bytes, second->entry.manifest.bytes);
    disk_sim_poke(fixture->sim, offset, bytes, second->entry.manifest.bytes);
    second->entry.piece_count += what == 3;
    assert_int_equal(store_catalog_sync(fixture->store, NULL), 0);
    free(bytes);
}

static void test_claim_when_a_manifest_contradicts_itself_then_left_out(void **state)
{
    (void)state;
    static const char *const words[] = {"belongs to another", "belongs to another", "lists",
                                        "is not piece 1"};
    for (uint32_t what = 0; what < COUNT_OF(words); what++) {
        struct store_fixture fixture;
        fixture_init(&fixture, fixture_disk(40, 1), 1);
        fixture.piece_extents_max = 100;
        assert_int_equal(fixture_format(fixture.sim, false, NULL), 0);
        assert_int_equal(fixture_open(&fixture, NULL, NULL), 0);
        assert_int_equal(fixture_write(&fixture, 0, 4), STORE_DURABLE);
        const uint64_t free_slots = store_free_slots(fixture.store);
        assert_int_equal(fixture_write(&fixture, 0, 4), STORE_DURABLE);
        forge(&fixture, what);
        fixture_close(&fixture);
        assert_int_equal(fixture_open(&fixture, NULL, NULL), 0);
        struct error reason;
        assert_int_equal(store_damaged(fixture.store, &reason), 1);
        if (strstr(reason.text, words[what]) == NULL) {
            fail_msg("'%s' does not say '%s'", reason.text, words[what]);
        }
        assert_int_equal(store_list(fixture.store, NULL, 0), 1);
        assert_int_equal(store_free_slots(fixture.store), free_slots);
        fixture_fini(&fixture);
    }
}

int main(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 30); /* mapping copies anew is most of the time */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_piece_when_a_field_is_wrong_then_refused),
        cmocka_unit_test(test_seal_when_full_then_a_whole_slot),
        cmocka_unit_test(test_manifest_when_a_piece_is_full_then_reads_back),
        cmocka_unit_test(test_claim_when_a_manifest_contradicts_itself_then_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
