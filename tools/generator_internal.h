/* SPDX-License-Identifier: Apache-2.0 */
/* What both generators are made of: the splitmix64 draws that gen.py describes, and the writing of
 * texts, numbers and times. */
#pragma once

#include "base.h"

#define GENERATOR_GAMMA UINT64_C(0x9E3779B97F4A7C15)

/* Scrambles 64 bits.
 * threads  any */
static inline uint64_t generator_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* The draws of one event. */
struct draw {
    uint64_t state;
};

/* Starts the stream of a label (mixed with the seed) and a number.
 * threads  any */
static inline struct draw draw_start(uint64_t origin, uint64_t n)
{
    return (struct draw){generator_mix(origin + n)};
}

/* Draws 64 bits.
 * threads  any */
static inline uint64_t draw_next(struct draw *draw)
{
    draw->state += GENERATOR_GAMMA;
    return generator_mix(draw->state);
}

/* Draws from 0 to k - 1; k below 2^32.
 * threads  any */
static inline uint64_t draw_below(struct draw *draw, uint64_t k)
{
    return ((draw_next(draw) >> 32) * k) >> 32;
}

/* Copies text and returns behind it.
 * threads  any */
static inline uint8_t *put_span(uint8_t *into, const void *text, size_t bytes)
{
    memcpy(into, text, bytes);
    return into + bytes;
}

#define PUT_LITERAL(into, text) put_span(into, text, sizeof(text) - 1)

/* Writes a number in decimal and returns behind it.
 * threads  any */
static inline uint8_t *put_unsigned(uint8_t *into, uint64_t value)
{
    uint8_t digits[20];
    uint32_t count = 0;
    do {
        digits[count++] = (uint8_t)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    while (count != 0) {
        *into++ = digits[--count];
    }
    return into;
}

/* Writes a number with leading zeros and returns behind it.
 * threads  any */
static inline uint8_t *put_padded(uint8_t *into, uint32_t value, uint32_t digits)
{
    for (uint32_t i = digits; i-- > 0;) {
        into[i] = (uint8_t)('0' + value % 10);
        value /= 10;
    }
    return into + digits;
}

/* The second written last, as text: most events share it with their neighbour. */
struct time_cache {
    int64_t second;
    bool is_set;
    uint8_t text[19];
};

/* Writes "2023-11-14 22:13:20.1": a fraction without trailing zeros, none when it is zero.
 * threads  any */
uint8_t *put_time(struct time_cache *cache, int64_t ms, uint8_t *into);
