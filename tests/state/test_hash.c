/* SPDX-License-Identifier: Apache-2.0 */
/* The hash is part of the checkpoint format: its values are pinned. Beyond that: every bit of the
 * key and its length count, and the parts that the table takes out of it are even. */
#include "fixture.h"

#include "state/segment.h"

static void test_hash_of_known_keys_never_changes(void **state)
{
    (void)state;
    const struct {
        const char *key;
        uint64_t hash;
    } known[] = {
        {"", UINT64_C(0x5a2dc9e0481681c7)},
        {"a", UINT64_C(0xd14b5be69f5d900f)},
        {"ab", UINT64_C(0x9acd2f68388a6743)},
        {"card", UINT64_C(0x56b63d921f013e2a)},
        {"1234567", UINT64_C(0x71d45f02f4bc3d83)},
        {"4111111111111111", UINT64_C(0x36c292f15210adcd)},
        {"4111111111111111:merchant", UINT64_C(0x5fae6a394e7f9fe6)},
        {"a key that is longer than two steps of the loop", UINT64_C(0x79f867170ce3637f)},
    };
    for (size_t index = 0; index < COUNT_OF(known); index++) {
        const struct span key = {(const uint8_t *)known[index].key, strlen(known[index].key)};
        assert_int_equal(hash_bytes(key), known[index].hash);
    }
}

static void test_every_flipped_bit_and_every_length_changes_about_half_the_hash(void **state)
{
    (void)state;
    uint8_t bytes[70];
    for (uint32_t length = 1; length <= 64; length++) {
        memset(bytes, 0x5a, sizeof(bytes));
        const uint64_t hash = hash_bytes((struct span){bytes, length});
        assert_true(hash != hash_bytes((struct span){bytes, length + 1}));
        uint32_t changed = 0;
        for (uint32_t bit = 0; bit < length * 8; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
            const uint64_t other = hash_bytes((struct span){bytes, length});
            assert_true(other != hash);
            changed += (uint32_t)__builtin_popcountll(hash ^ other);
            bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        }
        assert_in_range(changed, length * 8 * 26, length * 8 * 38);
    }
}

static void test_spots_of_numbered_keys_are_even_in_every_part(void **state)
{
    (void)state;
    uint32_t shards[256] = {0};
    uint32_t tags[256] = {0};
    uint32_t indexes[1024] = {0};
    uint32_t parts[7] = {0};
    uint32_t rests[16] = {0};
    const uint32_t count = 1U << 18;
    for (uint32_t number = 0; number < count; number++) {
        char key[17];
        (void)snprintf(key, sizeof(key), "%016u", number);
        const uint64_t hash = hash_bytes((struct span){(const uint8_t *)key, 16});
        const struct segment_spot spot = segment_spot_of(hash, 256);
        assert_int_equal(spot.shard, hash_shard(hash, 256));
        shards[spot.shard]++;
        tags[spot.tag]++;
        indexes[spot.index % 1024]++;
        parts[spot.shard % 4 == 3 ? spot.part : 0] += spot.shard % 4 == 3;
        rests[spot.rest >> 12]++;
    }
    assert_int_equal(tags[0], 0);
    for (uint32_t shard = 0; shard < 256; shard++) {
        assert_in_range(shards[shard], 1024 - 200, 1024 + 200);
    }
    for (uint32_t index = 0; index < 1024; index++) {
        assert_in_range(indexes[index], 256 - 100, 256 + 100);
    }
    for (uint32_t part = 0; part < 7; part++) {
        assert_in_range(parts[part], count / 28 - 600, count / 28 + 600);
    }
    for (uint32_t rest = 0; rest < 16; rest++) {
        assert_in_range(rests[rest], count / 16 - 900, count / 16 + 900);
    }
}

/* Keys of words * 8 bytes, alike in one word and unlike in all others, must have unlike hashes. */
static void check_held(uint32_t words, uint32_t held, uint64_t value)
{
    uint64_t hashes[64];
    for (uint64_t i = 0; i < 64; i++) {
        uint64_t key[6] = {i, i, i, i, i, i};
        key[held] = value;
        hashes[i] = hash_bytes((struct span){(const uint8_t *)key, words * UINT64_C(8)});
        for (uint64_t k = 0; k < i; k++) {
            assert_true(hashes[i] != hashes[k]);
        }
    }
}

/* GROUP BY a, b with one column at a constant of the function must not put all of the other into
 * one place: each word in turn, in a first, middle and last step. */
static void test_one_word_held_at_a_constant_does_not_make_keys_collide(void **state)
{
    (void)state;
    static const uint64_t factors[] = {UINT64_C(0xe7037ed1a0b428db), UINT64_C(0xa0761d6478bd642f),
                                       UINT64_C(0x8ebc6af09c88c6e3)};
    for (uint32_t words = 2; words <= 6; words++) {
        for (uint32_t held = 0; held < words; held++) {
            check_held(words, held, factors[0]);
            check_held(words, held, factors[1]);
            check_held(words, held, factors[2]);
            /* What the running number starts at for this length: the second word can cancel it. */
            check_held(words, held, factors[1] ^ (words * UINT64_C(8) * factors[2]));
        }
    }
}

/* All keys behind the skipped bytes have one shard; the rest of the hash tells them apart. */
static void test_hash_behind_when_bytes_are_skipped_then_the_rest_decides_the_shard(void **state)
{
    (void)state;
    const uint64_t low = (UINT64_C(1) << HASH_SHARD_SHIFT) - 1;
    for (uint64_t end = 0; end < 100; end++) {
        uint8_t bytes[8 + 5];
        memcpy(bytes, &end, sizeof(end));
        memcpy(bytes + 8, "key 1", 5);
        const struct span pane = {.data = bytes, .bytes = sizeof(bytes)};
        const uint64_t key_hash = hash_bytes((struct span){.data = bytes + 8, .bytes = 5});
        const uint64_t hash = hash_behind(pane, 8);
        assert_int_equal(hash & ~low, key_hash & ~low);
        assert_int_equal(hash & low, hash_bytes(pane) & low);
        assert_int_equal(hash_behind(pane, 0), hash_bytes(pane));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash_of_known_keys_never_changes),
        cmocka_unit_test(test_every_flipped_bit_and_every_length_changes_about_half_the_hash),
        cmocka_unit_test(test_spots_of_numbered_keys_are_even_in_every_part),
        cmocka_unit_test(test_one_word_held_at_a_constant_does_not_make_keys_collide),
        cmocka_unit_test(test_hash_behind_when_bytes_are_skipped_then_the_rest_decides_the_shard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
