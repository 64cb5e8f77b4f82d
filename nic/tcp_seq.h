/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on 32-bit sequence numbers that wrap (RFC 9293 §3.4): a comparison is right as long
 * as the two are less than 2^31 apart, which the window limits guarantee. */
#pragma once

#include "base.h"

/* Tells whether a comes before b.
 * threads  any */
static inline bool seq_lt(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

/* Tells whether a comes before b or is b.
 * threads  any */
static inline bool seq_le(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) <= 0;
}

/* The later of two.
 * threads  any */
static inline uint32_t seq_max(uint32_t a, uint32_t b)
{
    return seq_lt(a, b) ? b : a;
}
