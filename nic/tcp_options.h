/* SPDX-License-Identifier: Apache-2.0 */
/* TCP's options, read and written. Lengths are checked against the header before anything is
 * believed; a malformed list condemns the segment, an unknown kind is skipped. */
#pragma once

#include "base.h"

#define TCP_SACK_BLOCKS_MAX  4
#define TCP_OPTION_BYTES_MAX 40
#define TCP_SCALE_MAX        14
#define TCP_TIMESTAMP_BYTES  12 /* with its two bytes of padding */

struct tcp_sack_block {
    uint32_t start;
    uint32_t end;
};

struct tcp_options {
    bool has_mss;
    bool has_scale;
    bool has_sack_permitted;
    bool has_timestamp;
    uint16_t mss_bytes;
    uint8_t scale;
    uint32_t timestamp;
    uint32_t timestamp_echo;
    uint32_t sack_count;
    struct tcp_sack_block sack[TCP_SACK_BLOCKS_MAX];
};

/* Reads the options of one header.
 * bytes    of the option area, at most TCP_OPTION_BYTES_MAX
 * returns  false when an option runs past the area or has an impossible length
 * threads  any
 * source   RFC 9293 §3.1, RFC 7323, RFC 2018 */
bool tcp_options_parse(const uint8_t *area, size_t bytes, struct tcp_options *options);

/* Writes options in the usual order, padded to a multiple of four.
 * area     TCP_OPTION_BYTES_MAX bytes of room
 * options  has_* say which; as many SACK blocks as fit are written
 * returns  bytes written
 * threads  any */
size_t tcp_options_write(uint8_t *area, const struct tcp_options *options);
