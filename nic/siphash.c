/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-2-4 as in its paper, little-endian words, no tuning: it runs once per connect, over
 * twelve bytes. DPDK has no keyed hash that is safe against a chosen-input observer. */
#include "nic/siphash.h"

struct sip_state {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate(uint64_t value, unsigned bits)
{
    return (value << bits) | (value >> (64 - bits));
}

static void sip_rounds(struct sip_state *s, unsigned count)
{
    ASSERT(s != NULL);
    ASSERT(count == 2 || count == 4);
    for (unsigned i = 0; i < count; i++) {
        s->v0 += s->v1;
        s->v1 = rotate(s->v1, 13) ^ s->v0;
        s->v0 = rotate(s->v0, 32);
        s->v2 += s->v3;
        s->v3 = rotate(s->v3, 16) ^ s->v2;
        s->v0 += s->v3;
        s->v3 = rotate(s->v3, 21) ^ s->v0;
        s->v2 += s->v1;
        s->v1 = rotate(s->v1, 17) ^ s->v2;
        s->v2 = rotate(s->v2, 32);
    }
}

static uint64_t load_le64(const uint8_t *from)
{
    ASSERT(from != NULL);
    uint64_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

uint64_t siphash(const uint8_t *key, const uint8_t *data, size_t bytes)
{
    ASSERT(key != NULL);
    ASSERT(data != NULL || bytes == 0);
    uint64_t k0 = load_le64(key), k1 = load_le64(key + 8);
    struct sip_state s = {
        .v0 = k0 ^ UINT64_C(0x736f6d6570736575),
        .v1 = k1 ^ UINT64_C(0x646f72616e646f6d),
        .v2 = k0 ^ UINT64_C(0x6c7967656e657261),
        .v3 = k1 ^ UINT64_C(0x7465646279746573),
    };
    uint64_t last = (uint64_t)bytes << 56;
    for (; bytes >= 8; bytes -= 8, data += 8) {
        uint64_t word = load_le64(data);
        s.v3 ^= word;
        sip_rounds(&s, 2);
        s.v0 ^= word;
    }
    for (size_t i = 0; i < bytes; i++) {
        last |= (uint64_t)data[i] << (8 * i);
    }
    s.v3 ^= last;
    sip_rounds(&s, 2);
    s.v0 ^= last;
    s.v2 ^= 0xff;
    sip_rounds(&s, 4);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
