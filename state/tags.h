/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the 16 bytes of a table's tag group with one tag at once. The plain C version is the
 * reference that the others are tested against, and what other machines run. */
#pragma once

#include "base.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define TAGS_BYTES 16U

/* Bit i of the result is set where group[i] == tag.
 * group    16 readable bytes
 * threads  any */
static inline uint32_t tags_match_reference(const uint8_t *group, uint8_t tag)
{
    uint32_t found = 0;
    for (uint32_t lane = 0; lane < TAGS_BYTES; lane++) {
        found |= (uint32_t)(group[lane] == tag) << lane;
    }
    return found;
}

/* As tags_match_reference, in a few instructions where the machine has them. */
static inline uint32_t tags_match(const uint8_t *group, uint8_t tag)
{
#if defined(__SSE2__)
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)group);
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)tag)));
#elif defined(__aarch64__)
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t hits = vandq_u8(vceqq_u8(vld1q_u8(group), vdupq_n_u8(tag)), vld1q_u8(bits));
    return vaddv_u8(vget_low_u8(hits)) | (uint32_t)vaddv_u8(vget_high_u8(hits)) << 8;
#else
    return tags_match_reference(group, tag);
#endif
}
