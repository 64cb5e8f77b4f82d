/* SPDX-License-Identifier: Apache-2.0 */
/* The LZ4 frame walker and writer. Linked blocks are read too (their dictionary is the output that
 * stands before them), although Kafka's Java client writes and reads independent ones only. */
#include "dataplane/kafka/lz4_frame.h"

#include <lz4.h>

#define FRAME_MAGIC          UINT32_C(0x184D2204)
#define SKIPPABLE_MAGIC      UINT32_C(0x184D2A50)
#define SKIPPABLE_MASK       UINT32_C(0xFFFFFFF0)
#define STORED_BIT           UINT32_C(0x80000000)
#define FLAG_VERSION         0xC0
#define FLAG_INDEPENDENT     0x20
#define FLAG_BLOCK_CHECKSUM  0x10
#define FLAG_CONTENT_SIZE    0x08
#define FLAG_CONTENT_CHECK   0x04
#define FLAG_DICTIONARY      0x01
#define WRITE_HEADER_BYTES   7
#define HEADER_BYTES_MIN     7
#define BLOCK_SIZE_BYTES     4
#define DICTIONARY_BYTES_MAX 65536

static uint32_t load_le32(const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

static void store_le32(uint8_t *into, uint32_t value)
{
    memcpy(into, &value, sizeof(value));
}

static uint32_t rotate(uint32_t value, int by)
{
    return (value << by) | (value >> (32 - by));
}

#define PRIME_1 UINT32_C(0x9E3779B1)
#define PRIME_2 UINT32_C(0x85EBCA77)
#define PRIME_3 UINT32_C(0xC2B2AE3D)
#define PRIME_4 UINT32_C(0x27D4EB2F)
#define PRIME_5 UINT32_C(0x165667B1)

static uint32_t xxh32_stripes(const uint8_t **at, const uint8_t *end)
{
    ASSERT_SLOW(at != NULL);
    uint32_t lanes[4] = {PRIME_1 + PRIME_2, PRIME_2, 0, 0U - PRIME_1};
    for (; end - *at >= 16; *at += 16) {
        for (int i = 0; i < 4; i++) {
            lanes[i] = rotate(lanes[i] + load_le32(*at + i * 4) * PRIME_2, 13) * PRIME_1;
        }
    }
    return rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18);
}

uint32_t lz4_frame_xxh32(struct span in)
{
    ASSERT(in.data != NULL || in.bytes == 0);
    const uint8_t *at = in.data;
    const uint8_t *end = in.data + in.bytes;
    uint32_t hash = in.bytes >= 16 ? xxh32_stripes(&at, end) : PRIME_5;
    hash += (uint32_t)in.bytes;
    for (; end - at >= 4; at += 4) {
        hash = rotate(hash + load_le32(at) * PRIME_3, 17) * PRIME_4;
    }
    for (; at < end; at++) {
        hash = rotate(hash + at[0] * PRIME_5, 11) * PRIME_1;
    }
    hash = (hash ^ (hash >> 15)) * PRIME_2;
    hash = (hash ^ (hash >> 13)) * PRIME_3;
    return hash ^ (hash >> 16);
}

/* One frame being decoded. */
struct frame {
    const uint8_t *at;
    const uint8_t *end;
    struct span_mut into;
    size_t start; /* where this frame's output begins in into */
    size_t filled;
    size_t block_bytes_max;
    uint8_t flags;
};

static bool read_frame_header(struct frame *frame)
{
    ASSERT_SLOW(frame->filled <= frame->into.bytes);
    ASSERT(frame->at <= frame->end);
    if (frame->end - frame->at < HEADER_BYTES_MIN) {
        return false;
    }
    const uint8_t *descriptor = frame->at + 4;
    frame->flags = descriptor[0];
    uint32_t block_size_id = (descriptor[1] >> 4) & 7;
    size_t bytes = 2 + (frame->flags & FLAG_CONTENT_SIZE ? 8 : 0);
    if ((frame->flags & FLAG_VERSION) != 0x40 || (frame->flags & FLAG_DICTIONARY) != 0 ||
        block_size_id < 4 || (size_t)(frame->end - descriptor) < bytes + 1) {
        return false;
    }
    uint32_t hash = lz4_frame_xxh32((struct span){.data = descriptor, .bytes = bytes});
    if (descriptor[bytes] != ((hash >> 8) & 0xff)) {
        return false;
    }
    frame->block_bytes_max = (size_t)1 << (8 + 2 * block_size_id);
    frame->at = descriptor + bytes + 1;
    frame->start = frame->filled;
    return true;
}

static enum kafka_codec_verdict store_block(struct frame *frame, const uint8_t *from, size_t bytes)
{
    ASSERT_SLOW(frame->at <= frame->end);
    ASSERT_SLOW(frame->filled <= frame->into.bytes);
    if (bytes > frame->into.bytes - frame->filled) {
        return KAFKA_CODEC_TOO_LARGE;
    }
    memcpy(frame->into.data + frame->filled, from, bytes);
    frame->filled += bytes;
    return KAFKA_CODEC_OK;
}

static enum kafka_codec_verdict expand_block(struct frame *frame, const uint8_t *from, size_t bytes)
{
    ASSERT_SLOW(frame->at <= frame->end);
    ASSERT_SLOW(frame->filled <= frame->into.bytes);
    ASSERT(frame->start <= frame->filled);
    size_t room = frame->into.bytes - frame->filled;
    bool is_capped = room < frame->block_bytes_max;
    int capacity = (int)(is_capped ? room : frame->block_bytes_max);
    size_t before = frame->flags & FLAG_INDEPENDENT ? 0 : frame->filled - frame->start;
    if (before > DICTIONARY_BYTES_MAX) {
        before = DICTIONARY_BYTES_MAX;
    }
    uint8_t *into = frame->into.data + frame->filled;
    int made = LZ4_decompress_safe_usingDict((const char *)from, (char *)into, (int)bytes, capacity,
                                             (const char *)(into - before), (int)before);
    if (made < 0) {
        return is_capped ? KAFKA_CODEC_TOO_LARGE : KAFKA_CODEC_BAD;
    }
    frame->filled += (size_t)made;
    return KAFKA_CODEC_OK;
}

/* Decodes one block; *is_last is set at the end mark. */
static enum kafka_codec_verdict read_block(struct frame *frame, bool *is_last)
{
    ASSERT_SLOW(frame->at <= frame->end);
    ASSERT_SLOW(frame->filled <= frame->into.bytes);
    if (frame->end - frame->at < BLOCK_SIZE_BYTES) {
        return KAFKA_CODEC_BAD;
    }
    uint32_t word = load_le32(frame->at);
    size_t bytes = word & ~STORED_BIT;
    frame->at += BLOCK_SIZE_BYTES;
    *is_last = word == 0;
    if (*is_last) {
        return KAFKA_CODEC_OK;
    }
    size_t check_bytes = frame->flags & FLAG_BLOCK_CHECKSUM ? 4 : 0;
    if (bytes > frame->block_bytes_max || (size_t)(frame->end - frame->at) < bytes + check_bytes) {
        return KAFKA_CODEC_BAD;
    }
    const uint8_t *from = frame->at;
    frame->at += bytes + check_bytes;
    if (check_bytes > 0 &&
        load_le32(from + bytes) != lz4_frame_xxh32((struct span){.data = from, .bytes = bytes})) {
        return KAFKA_CODEC_BAD;
    }
    return word & STORED_BIT ? store_block(frame, from, bytes) : expand_block(frame, from, bytes);
}

static enum kafka_codec_verdict read_content_check(struct frame *frame)
{
    ASSERT(frame->at <= frame->end);
    ASSERT(frame->filled <= frame->into.bytes);
    if ((frame->flags & FLAG_CONTENT_CHECK) == 0) {
        return KAFKA_CODEC_OK;
    }
    if (frame->end - frame->at < 4) {
        return KAFKA_CODEC_BAD;
    }
    uint32_t wanted = load_le32(frame->at);
    frame->at += 4;
    struct span content = {.data = frame->into.data + frame->start,
                           .bytes = frame->filled - frame->start};
    return wanted == lz4_frame_xxh32(content) ? KAFKA_CODEC_OK : KAFKA_CODEC_BAD;
}

static enum kafka_codec_verdict read_frame(struct frame *frame)
{
    if (!read_frame_header(frame)) {
        return KAFKA_CODEC_BAD;
    }
    bool is_last = false;
    while (!is_last) {
        enum kafka_codec_verdict verdict = read_block(frame, &is_last);
        if (verdict != KAFKA_CODEC_OK) {
            return verdict;
        }
    }
    return read_content_check(frame);
}

static bool skip_frame(struct frame *frame)
{
    ASSERT_SLOW(frame->at <= frame->end);
    ASSERT_SLOW(frame->filled <= frame->into.bytes);
    ASSERT(frame->end - frame->at >= 4);
    if (frame->end - frame->at < 8) {
        return false;
    }
    uint32_t bytes = load_le32(frame->at + 4);
    if ((size_t)(frame->end - frame->at) - 8 < bytes) {
        return false;
    }
    frame->at += 8 + bytes;
    return true;
}

enum kafka_codec_verdict lz4_frame_decompress(struct span in, struct span_mut into, size_t *out)
{
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(in.data != NULL || in.bytes == 0);
    ASSERT(into.data != NULL);
    struct frame frame = {.at = in.data, .end = in.data + in.bytes, .into = into};
    *out = 0;
    while (frame.end - frame.at >= 4) {
        uint32_t magic = load_le32(frame.at);
        enum kafka_codec_verdict verdict = KAFKA_CODEC_BAD;
        if (magic == FRAME_MAGIC) {
            verdict = read_frame(&frame);
        } else if ((magic & SKIPPABLE_MASK) == SKIPPABLE_MAGIC && skip_frame(&frame)) {
            verdict = KAFKA_CODEC_OK;
        }
        if (verdict != KAFKA_CODEC_OK) {
            return verdict;
        }
    }
    *out = frame.filled;
    return frame.at == frame.end ? KAFKA_CODEC_OK : KAFKA_CODEC_BAD;
}

size_t lz4_frame_bytes_max(size_t in_bytes)
{
    size_t blocks = in_bytes / LZ4_FRAME_BLOCK_BYTES + 1;
    return WRITE_HEADER_BYTES + in_bytes + (blocks + 1) * BLOCK_SIZE_BYTES;
}

/* Writes one block, stored when it does not shrink; returns its bytes, 0 when it does not fit. */
static size_t write_block(void *state, struct span in, struct span_mut into)
{
    ASSERT_SLOW(in.data != NULL || in.bytes == 0);
    ASSERT(in.bytes > 0 && in.bytes <= LZ4_FRAME_BLOCK_BYTES);
    if (into.bytes < BLOCK_SIZE_BYTES + in.bytes) {
        return 0;
    }
    int made = LZ4_compress_fast_extState(state, (const char *)in.data,
                                          (char *)into.data + BLOCK_SIZE_BYTES, (int)in.bytes,
                                          (int)in.bytes - 1, 1);
    if (made > 0) {
        store_le32(into.data, (uint32_t)made);
        return BLOCK_SIZE_BYTES + (size_t)made;
    }
    store_le32(into.data, (uint32_t)in.bytes | STORED_BIT);
    memcpy(into.data + BLOCK_SIZE_BYTES, in.data, in.bytes);
    return BLOCK_SIZE_BYTES + in.bytes;
}

size_t lz4_frame_compress(void *state, struct span in, struct span_mut into)
{
    ASSERT_SLOW(in.data != NULL || in.bytes == 0);
    /* Version 1, independent blocks of 64 KiB, no checksums; the last byte is the checksum of the
     * two before it. */
    static const uint8_t header[WRITE_HEADER_BYTES] = {0x04, 0x22, 0x4D, 0x18, 0x60, 0x40, 0x82};
    ASSERT(state != NULL);
    if (into.bytes < sizeof(header) + BLOCK_SIZE_BYTES) {
        return 0;
    }
    memcpy(into.data, header, sizeof(header));
    size_t at = sizeof(header);
    for (size_t from = 0; from < in.bytes; from += LZ4_FRAME_BLOCK_BYTES) {
        size_t bytes = in.bytes - from;
        bytes = bytes < LZ4_FRAME_BLOCK_BYTES ? bytes : LZ4_FRAME_BLOCK_BYTES;
        struct span_mut rest = {.data = into.data + at,
                                .bytes = into.bytes - at - BLOCK_SIZE_BYTES};
        size_t made = write_block(state, (struct span){in.data + from, bytes}, rest);
        if (made == 0) {
            return 0;
        }
        at += made;
        ASSERT(at + BLOCK_SIZE_BYTES <= into.bytes);
    }
    store_le32(into.data + at, 0);
    return at + BLOCK_SIZE_BYTES;
}
