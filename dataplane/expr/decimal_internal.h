/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal arithmetic on unscaled 128-bit values of up to 38 digits, exact with 256 bits between and
 * rounded half away from zero, as Java's BigDecimal does for Flink. */
#pragma once

#include "base.h"
#include "dataplane/expr/program.h"
#include "dataplane/expr/text_number.h"

/* Reads row i of a decimal vector, narrow or wide. */
static inline __int128 decimal_load(const struct vector *vector, uint32_t i)
{
    return vector->type.precision > TYPE_DECIMAL_NARROW_MAX ? vector->i128[i] : vector->i64[i];
}

/* Writes row i of a decimal vector. */
static inline void decimal_store(struct vector *vector, uint32_t i, __int128 value)
{
    if (vector->type.precision > TYPE_DECIMAL_NARROW_MAX) {
        vector->i128[i] = value;
    } else {
        vector->i64[i] = (int64_t)value;
    }
}

/* A decimal type's digits. */
struct decimal_shape {
    uint8_t precision;
    uint8_t scale;
};

/* Compares two decimals by value.
 * returns  -1, 0, 1 */
int decimal_compare(__int128 a, uint8_t a_scale, __int128 b, uint8_t b_scale);

/* Brings a value from one scale to another, rounding half away from zero.
 * returns  false when it has more digits than to.precision */
bool decimal_rescale(__int128 value, uint8_t from_scale, struct decimal_shape to, __int128 *out);

/* Adds two decimals of any scales, then rescales.
 * returns  false when the result does not fit `to` */
bool decimal_add(__int128 a, uint8_t a_scale, __int128 b, uint8_t b_scale, struct decimal_shape to,
                 __int128 *out);

/* As decimal_add. */
bool decimal_multiply(__int128 a, uint8_t a_scale, __int128 b, uint8_t b_scale,
                      struct decimal_shape to, __int128 *out);

/* Divides to 38 significant digits, then rescales; b is not 0.
 * returns  as decimal_add */
bool decimal_divide(__int128 a, uint8_t a_scale, __int128 b, uint8_t b_scale,
                    struct decimal_shape to, __int128 *out);

/* The rest of the division cut towards zero; b is not 0.
 * returns  as decimal_add */
bool decimal_remainder(__int128 a, uint8_t a_scale, __int128 b, uint8_t b_scale,
                       struct decimal_shape to, __int128 *out);
