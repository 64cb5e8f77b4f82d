/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds: 0 end, 1 padding, 2 segment size, 3 window scale, 4 SACK permitted, 5 SACK, 8 timestamps.
 * Offered to a SYN they take 20 bytes, on other segments 12 and 8 for each SACK block. */
#include "nic/tcp_options.h"

enum option_kind {
    OPTION_END = 0,
    OPTION_PADDING = 1,
    OPTION_MSS = 2,
    OPTION_SCALE = 3,
    OPTION_SACK_PERMITTED = 4,
    OPTION_SACK = 5,
    OPTION_TIMESTAMP = 8,
};

static bool sack_read(const uint8_t *body, size_t bytes, struct tcp_options *options)
{
    ASSERT(body != NULL);
    ASSERT(options != NULL);
    if (bytes == 0 || bytes % 8 != 0 || bytes / 8 > TCP_SACK_BLOCKS_MAX) {
        return false;
    }
    options->sack_count = (uint32_t)(bytes / 8);
    for (uint32_t i = 0; i < options->sack_count; i++) {
        options->sack[i].start = load_be32(body + 8 * i);
        options->sack[i].end = load_be32(body + 8 * i + 4);
    }
    return true;
}

/* body and bytes leave out kind and length. */
static bool option_read(uint8_t kind, const uint8_t *body, size_t bytes,
                        struct tcp_options *options)
{
    ASSERT(body != NULL);
    ASSERT(options != NULL);
    switch (kind) {
    case OPTION_MSS:
        options->has_mss = true;
        options->mss_bytes = bytes == 2 ? load_be16(body) : 0;
        return bytes == 2;
    case OPTION_SCALE:
        options->has_scale = true;
        options->scale = bytes == 1 ? body[0] : 0;
        /* RFC 7323 §2.3: a larger shift is taken as 14. */
        options->scale = options->scale > TCP_SCALE_MAX ? TCP_SCALE_MAX : options->scale;
        return bytes == 1;
    case OPTION_SACK_PERMITTED:
        options->has_sack_permitted = true;
        return bytes == 0;
    case OPTION_SACK:
        return sack_read(body, bytes, options);
    case OPTION_TIMESTAMP:
        if (bytes != 8) {
            return false;
        }
        options->has_timestamp = true;
        options->timestamp = load_be32(body);
        options->timestamp_echo = load_be32(body + 4);
        return true;
    default:
        return true;
    }
}

bool tcp_options_parse(const uint8_t *area, size_t bytes, struct tcp_options *options)
{
    ASSERT(area != NULL && options != NULL);
    ASSERT(bytes <= TCP_OPTION_BYTES_MAX);
    memset(options, 0, sizeof(*options));
    /* Nearly every segment of an open connection: two paddings and the timestamps. */
    if (LIKELY(bytes == TCP_TIMESTAMP_BYTES && load_be32(area) == 0x0101080a)) {
        options->has_timestamp = true;
        options->timestamp = load_be32(area + 4);
        options->timestamp_echo = load_be32(area + 8);
        return true;
    }
    size_t at = 0;
    while (at < bytes && area[at] != OPTION_END) {
        if (area[at] == OPTION_PADDING) {
            at++;
            continue;
        }
        if (bytes - at < 2 || area[at + 1] < 2 || area[at + 1] > bytes - at) {
            return false;
        }
        if (!option_read(area[at], area + at + 2, area[at + 1] - 2u, options)) {
            return false;
        }
        at += area[at + 1];
    }
    return true;
}

static size_t syn_options_write(uint8_t *area, const struct tcp_options *options)
{
    ASSERT(area != NULL);
    ASSERT(options != NULL);
    size_t at = 0;
    if (options->has_mss) {
        area[at] = OPTION_MSS;
        area[at + 1] = 4;
        store_be16(area + at + 2, options->mss_bytes);
        at += 4;
    }
    if (options->has_scale) {
        area[at] = OPTION_PADDING;
        area[at + 1] = OPTION_SCALE;
        area[at + 2] = 3;
        area[at + 3] = options->scale;
        at += 4;
    }
    if (options->has_sack_permitted) {
        area[at] = OPTION_PADDING;
        area[at + 1] = OPTION_PADDING;
        area[at + 2] = OPTION_SACK_PERMITTED;
        area[at + 3] = 2;
        at += 4;
    }
    return at;
}

size_t tcp_options_write(uint8_t *area, const struct tcp_options *options)
{
    ASSERT(area != NULL && options != NULL);
    ASSERT(options->sack_count <= TCP_SACK_BLOCKS_MAX);
    size_t at = syn_options_write(area, options);
    if (options->has_timestamp) {
        store_be32(area + at, 0x0101080a);
        store_be32(area + at + 4, options->timestamp);
        store_be32(area + at + 8, options->timestamp_echo);
        at += TCP_TIMESTAMP_BYTES;
    }
    size_t room = (TCP_OPTION_BYTES_MAX - at - (at + 4 <= TCP_OPTION_BYTES_MAX ? 4 : 0)) / 8;
    size_t blocks = options->sack_count < room ? options->sack_count : room;
    if (blocks > 0) {
        area[at] = OPTION_PADDING;
        area[at + 1] = OPTION_PADDING;
        area[at + 2] = OPTION_SACK;
        area[at + 3] = (uint8_t)(2 + 8 * blocks);
        at += 4;
    }
    for (size_t i = 0; i < blocks; i++, at += 8) {
        store_be32(area + at, options->sack[i].start);
        store_be32(area + at + 4, options->sack[i].end);
    }
    ASSERT(at <= TCP_OPTION_BYTES_MAX && at % 4 == 0);
    return at;
}
