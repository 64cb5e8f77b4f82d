/* SPDX-License-Identifier: Apache-2.0 */
/* Multiply-and-fold hash in the manner of wyhash: 16 bytes a step, the tail read as an overlapping
 * last step, so no byte is copied. The constants are odd 64-bit numbers of about half ones. */
#include "state/hash.h"

#define HASH_A UINT64_C(0xa0761d6478bd642f)
#define HASH_B UINT64_C(0xe7037ed1a0b428db)
#define HASH_C UINT64_C(0x8ebc6af09c88c6e3)

static uint64_t load_le64(const uint8_t *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

static uint64_t load_le32(const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

uint64_t hash_bytes(struct span key)
{
    ASSERT(key.bytes == 0 || key.data != NULL);
    const uint8_t *at = key.data;
    size_t left = key.bytes;
    uint64_t hash = HASH_A ^ (left * HASH_C);
    uint64_t low = 0;
    uint64_t high = 0;
    for (; left > 16; left -= 16, at += 16) {
        hash = hash_fold_any(load_le64(at) ^ HASH_B, load_le64(at + 8) ^ hash);
    }
    if (left >= 8) {
        low = load_le64(at);
        high = load_le64(at + left - 8);
    } else if (left >= 4) {
        low = load_le32(at);
        high = load_le32(at + left - 4);
    } else if (left > 0) {
        low = (uint64_t)at[0] << 16 | (uint64_t)at[left / 2] << 8 | at[left - 1];
    }
    return hash_fold(hash_fold_any(low ^ HASH_B, high ^ hash) ^ HASH_A, HASH_C);
}
