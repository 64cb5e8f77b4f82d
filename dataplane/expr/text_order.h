/* SPDX-License-Identifier: Apache-2.0 */
/* The two orders of text in Flink: values compare by UTF-16 unit, rows that went through an
 * exchange by UTF-8 byte. They differ only for characters beyond the basic plane, which sort before
 * U+E000 to U+FFFF in the first. */
#pragma once

#include "base.h"

/* Compares two texts by UTF-8 bytes.
 * returns  < 0, 0, > 0
 * threads  any */
static inline int text_compare_bytes(struct span a, struct span b)
{
    ASSERT_SLOW(a.data != NULL || a.bytes == 0);
    ASSERT_SLOW(b.data != NULL || b.bytes == 0);
    const size_t common = a.bytes < b.bytes ? a.bytes : b.bytes;
    const int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    return order != 0 ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

/* Compares two texts by UTF-16 units.
 * returns  < 0, 0, > 0
 * threads  any */
static inline int text_compare(struct span a, struct span b)
{
    ASSERT_SLOW(a.data != NULL || a.bytes == 0);
    ASSERT_SLOW(b.data != NULL || b.bytes == 0);
    const size_t common = a.bytes < b.bytes ? a.bytes : b.bytes;
    const int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    if (order == 0) {
        return (a.bytes > b.bytes) - (a.bytes < b.bytes);
    }
    size_t at = 0;
    while (a.data[at] == b.data[at]) {
        at++;
    }
    /* Only lead bytes are this large: 0xee and 0xef start U+E000 to U+FFFF. */
    const uint8_t left = a.data[at];
    const uint8_t right = b.data[at];
    if (left >= 0xee && right >= 0xee && (left < 0xf0) != (right < 0xf0)) {
        return left < 0xf0 ? 1 : -1;
    }
    return order;
}

/* Tells whether two texts are equal.
 * threads  any */
static inline bool text_equal(struct span a, struct span b)
{
    ASSERT_SLOW(a.data != NULL || a.bytes == 0);
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}
