/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text and back, in the forms that Flink on JDK 17 writes and reads. Used by casts and
 * by the JSON and CSV formats. Nothing here allocates, looks at the locale or keeps state. */
#pragma once

#include "base.h"

#ifdef __cplusplus
extern "C" {
#define NUMBER_TEXT(bytes) *into
#else
#define NUMBER_TEXT(bytes) into[static bytes]
#endif

#define DOUBLE_TEXT_BYTES  32
#define INTEGER_TEXT_BYTES 24
#define DECIMAL_TEXT_BYTES 64

/* Writes a double as Java's Double.toString does: 1.0, 1.0E7, 9.999E-4, -0.0, NaN, Infinity. The
 * digits are those of JDK 17, which are not always the shortest that read back.
 * into     not ended by 0
 * returns  its bytes
 * threads  any */
uint32_t double_print(double value, char NUMBER_TEXT(DOUBLE_TEXT_BYTES));

/* As double_print, for Float.toString.
 * threads  any */
uint32_t float_print(float value, char NUMBER_TEXT(DOUBLE_TEXT_BYTES));

/* Writes a whole number in decimal.
 * into     not ended by 0
 * returns  its bytes
 * threads  any */
uint32_t integer_print(int64_t value, char NUMBER_TEXT(INTEGER_TEXT_BYTES));

/* Reads a double by the grammar of Java's Double.parseDouble: blanks and control characters round
 * it, a sign, NaN, Infinity, exponents, a trailing f or d, hexadecimal with p. Past the range it is
 * Infinity or 0.
 * returns  false when the text is no number
 * threads  any */
bool double_parse(struct span text, double *out);

/* As double_parse, rounding once to float.
 * threads  any */
bool float_parse(struct span text, float *out);

enum decimal_verdict {
    DECIMAL_OK = 0,
    DECIMAL_BAD,      /* the text is no number */
    DECIMAL_OVERFLOW, /* more digits than the precision: NULL in Flink */
};

/* Reads a decimal, exponent allowed, rounding half away from zero to the scale.
 * text     no blanks round it
 * out      unscaled: value times 10^scale; not written unless DECIMAL_OK
 * threads  any */
enum decimal_verdict decimal_parse(struct span text, uint8_t precision, uint8_t scale,
                                   __int128 *out);

/* Writes a decimal with all digits of its scale, as CAST to STRING does: 10.00.
 * into     not ended by 0
 * returns  its bytes
 * threads  any */
uint32_t decimal_print(__int128 unscaled, uint8_t scale, char NUMBER_TEXT(DECIMAL_TEXT_BYTES));

/* Writes a decimal without trailing zeros and with an exponent where BigDecimal.toString has one,
 * as the JSON sink does: 1E+1, 0.1, 1E-18.
 * into     not ended by 0
 * returns  its bytes
 * threads  any */
uint32_t decimal_print_stripped(__int128 unscaled, uint8_t scale,
                                char NUMBER_TEXT(DECIMAL_TEXT_BYTES));

/* 10^exponent for exponents 0 to 38.
 * threads  any */
__int128 decimal_power(uint32_t exponent);

#ifdef __cplusplus
}
#endif
