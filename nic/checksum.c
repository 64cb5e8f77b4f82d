/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 1071 over native little-endian words: the sum is byte-order independent, so words are added
 * as loaded and the folded result is swapped once. Eight bytes a step; the carries of 64-bit adds
 * are added back at once. */
#include "nic/checksum.h"

static inline uint64_t add_carry(uint64_t sum, uint64_t value)
{
    uint64_t result;
    bool carry = __builtin_add_overflow(sum, value, &result);
    return result + (carry ? 1 : 0);
}

uint64_t checksum_add(uint64_t sum, const uint8_t *data, size_t bytes)
{
    ASSERT(data != NULL || bytes == 0);
    while (bytes >= sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, data, sizeof(word));
        sum = add_carry(sum, word);
        data += sizeof(word);
        bytes -= sizeof(word);
    }
    if (bytes > 0) {
        uint64_t word = 0;
        memcpy(&word, data, bytes);
        sum = add_carry(sum, word);
    }
    return sum;
}

uint16_t checksum_fold(uint64_t sum)
{
    sum = (sum & UINT32_MAX) + (sum >> 32);
    sum = (sum & UINT32_MAX) + (sum >> 32);
    sum = (sum & UINT16_MAX) + (sum >> 16);
    sum = (sum & UINT16_MAX) + (sum >> 16);
    ASSERT(sum <= UINT16_MAX);
    return __builtin_bswap16((uint16_t)sum);
}

uint64_t checksum_pseudo_ip4(uint32_t source_ip4, uint32_t target_ip4, uint8_t protocol,
                             uint32_t l4_bytes)
{
    ASSERT(l4_bytes <= UINT16_MAX);
    uint8_t pseudo[12];
    store_be32(pseudo, source_ip4);
    store_be32(pseudo + 4, target_ip4);
    pseudo[8] = 0;
    pseudo[9] = protocol;
    store_be16(pseudo + 10, (uint16_t)l4_bytes);
    return checksum_add(0, pseudo, sizeof(pseudo));
}
