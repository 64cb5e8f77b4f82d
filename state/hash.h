/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of keys. It decides the shard, so it is part of the checkpoint format and of the
 * exchange between lanes: the same bytes give the same number on every machine and in every
 * version. Multiply and fold of 128 bits, 16 bytes a step; the known values in the test pin it.
 *
 * Limits: not keyed. Keys that share all bits cannot be had by holding one word at a known constant
 * (hash_fold_any), but somebody who does the algebra can still choose them. The table stays correct
 * then: they stand in one chain of pages, about 80 entries each, that every lookup of such a key
 * walks. Measured, 12,800 of them cost 30 us a lookup and 51,200 cost 150 us; other keys, also of
 * the same shard, cost what they did. So the harm is bounded by how many such keys state holds:
 * table_counters.overflows counts the pages, and a lifetime or a frame lets them go. */
#pragma once

#include "base.h"

#define HASH_SHARD_SHIFT 48U

/* Multiplies to 128 bits and folds the halves together.
 * threads  any */
static inline uint64_t hash_fold(uint64_t left, uint64_t right)
{
    const unsigned __int128 product = (unsigned __int128)left * right;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* As hash_fold, but of 0 and anything it is not 0: words of a key come in here, and one that makes
 * a factor 0 would let the other be whatever it likes.
 * threads  any */
static inline uint64_t hash_fold_any(uint64_t left, uint64_t right)
{
    const uint64_t folded = hash_fold(left, right);
    if (__builtin_expect(folded == 0, 0)) {
        return (left + right) * UINT64_C(0x9e3779b97f4a7c15) + 1U;
    }
    return folded;
}

/* Hashes a key of any length.
 * threads  any */
uint64_t hash_bytes(struct span key);

/* Hashes a key of which the first bytes do not decide the shard: the top 16 bits are those of the
 * rest, the others of all of it.
 * skip_bytes  0: as hash_bytes; else fewer than the key has
 * threads     any */
static inline uint64_t hash_behind(struct span key, uint32_t skip_bytes)
{
    const uint64_t whole = hash_bytes(key);
    if (skip_bytes == 0) {
        return whole;
    }
    ASSERT(key.bytes > skip_bytes);
    const struct span rest = {.data = key.data + skip_bytes, .bytes = key.bytes - skip_bytes};
    const uint64_t low = (UINT64_C(1) << HASH_SHARD_SHIFT) - 1;
    return (hash_bytes(rest) & ~low) | (whole & low);
}

/* The shard of a hash: its top 16 bits scaled to shard_count.
 * shard_count  1..65536
 * threads  any */
static inline uint32_t hash_shard(uint64_t hash, uint32_t shard_count)
{
    return (uint32_t)(((hash >> HASH_SHARD_SHIFT) * shard_count) >> 16);
}
