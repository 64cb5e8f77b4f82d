/* SPDX-License-Identifier: Apache-2.0 */
/* The Internet checksum of RFC 1071: the one's complement sum of 16-bit big-endian words. Partial
 * sums are 64 bits wide and folded once at the end; they add in any order, as long as every part
 * but the last has an even length. */
#pragma once

#include "base.h"

/* Adds bytes to a running sum; an odd last byte counts as the high half of a word.
 * sum      0, or the result of an earlier call over an even number of bytes
 * threads  any
 * source   RFC 1071 */
uint64_t checksum_add(uint64_t sum, const uint8_t *data, size_t bytes);

/* Folds a running sum to 16 bits, not complemented.
 * threads  any */
uint16_t checksum_fold(uint64_t sum);

/* Starts the sum of a TCP or UDP segment with the IPv4 pseudo header.
 * l4_bytes header and payload together
 * threads  any
 * source   RFC 9293 §3.1 */
uint64_t checksum_pseudo_ip4(uint32_t source_ip4, uint32_t target_ip4, uint8_t protocol,
                             uint32_t l4_bytes);

/* Folds and complements: the value to store in a header whose checksum field was zero.
 * returns  0 when the sum runs over a packet that holds its own right checksum
 * threads  any */
static inline uint16_t checksum_finish(uint64_t sum)
{
    return (uint16_t)~checksum_fold(sum);
}
