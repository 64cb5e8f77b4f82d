/* SPDX-License-Identifier: Apache-2.0 */
/* Picks the codec and walks what several of them wrap around their blocks: concatenated gzip
 * members, xerial's snappy container, concatenated zstd frames. */
#include "dataplane/kafka/codec.h"

#include <isa-l/igzip_lib.h>
#include <lz4.h>
#include <snappy-c.h>
/* The static contexts are in the library's stable binary interface but behind this name. */
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

#include "dataplane/kafka/lz4_frame.h"

#define GZIP_BYTES_MIN       18
#define XERIAL_HEADER_BYTES  16
#define XERIAL_MAGIC_BYTES   8
#define ZSTD_MAGIC           UINT32_C(0xFD2FB528)
#define ZSTD_SKIPPABLE_MAGIC UINT32_C(0x184D2A50)
#define ZSTD_SKIPPABLE_MASK  UINT32_C(0xFFFFFFF0)
#define ROUND_UP_64(bytes)   (((bytes) + 63) & ~(size_t)63)

struct kafka_codec {
    struct inflate_state inflate;
    ZSTD_DCtx *zstd;
    uint8_t *lz4_state;
};

size_t kafka_codec_bytes(void)
{
    return ROUND_UP_64(sizeof(struct kafka_codec)) + ROUND_UP_64(ZSTD_estimateDCtxSize()) +
           ROUND_UP_64((size_t)LZ4_sizeofState());
}

struct kafka_codec *kafka_codec_init(uint8_t *memory)
{
    ASSERT(memory != NULL);
    ASSERT((uintptr_t)memory % 64 == 0);
    struct kafka_codec *codec = (struct kafka_codec *)(void *)memory;
    uint8_t *at = memory + ROUND_UP_64(sizeof(*codec));
    codec->zstd = ZSTD_initStaticDCtx(at, ROUND_UP_64(ZSTD_estimateDCtxSize()));
    ASSERT(codec->zstd != NULL);
    codec->lz4_state = at + ROUND_UP_64(ZSTD_estimateDCtxSize());
    return codec;
}

static enum kafka_codec_verdict copy_plain(struct span in, struct span_mut into, size_t *out)
{
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(in.data != NULL || in.bytes == 0);
    if (in.bytes > into.bytes) {
        return KAFKA_CODEC_TOO_LARGE;
    }
    if (in.bytes > 0) {
        memcpy(into.data, in.data, in.bytes);
    }
    *out = in.bytes;
    return KAFKA_CODEC_OK;
}

/* Decodes one gzip member and moves *in and *into past it. */
static enum kafka_codec_verdict read_member(struct kafka_codec *codec, struct span *in,
                                            struct span_mut *into)
{
    ASSERT_SLOW(codec != NULL);
    ASSERT_SLOW(in != NULL);
    ASSERT_SLOW(into != NULL);
    ASSERT(in->bytes <= UINT32_MAX && into->bytes <= UINT32_MAX);
    struct inflate_state *state = &codec->inflate;
    /* The library's prototype lacks a const; it only reads. */
    union {
        const uint8_t *data;
        uint8_t *mutable_data;
    } from = {.data = in->data};
    isal_inflate_init(state);
    state->crc_flag = ISAL_GZIP;
    state->next_in = from.mutable_data;
    state->avail_in = (uint32_t)in->bytes;
    state->next_out = into->data;
    state->avail_out = (uint32_t)into->bytes;
    int code = isal_inflate_stateless(state);
    if (code == ISAL_OUT_OVERFLOW) {
        return KAFKA_CODEC_TOO_LARGE;
    }
    if (code != ISAL_DECOMP_OK || state->avail_in >= in->bytes) {
        return KAFKA_CODEC_BAD;
    }
    in->data += in->bytes - state->avail_in;
    in->bytes = state->avail_in;
    into->data += into->bytes - state->avail_out;
    into->bytes = state->avail_out;
    return KAFKA_CODEC_OK;
}

static enum kafka_codec_verdict read_gzip(struct kafka_codec *codec, struct span in,
                                          struct span_mut into, size_t *out)
{
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(in.data != NULL || in.bytes == 0);
    struct span_mut rest = into;
    do {
        if (in.bytes < GZIP_BYTES_MIN) {
            return KAFKA_CODEC_BAD;
        }
        enum kafka_codec_verdict verdict = read_member(codec, &in, &rest);
        if (verdict != KAFKA_CODEC_OK) {
            return verdict;
        }
    } while (in.bytes > 0);
    ASSERT(rest.bytes <= into.bytes);
    *out = into.bytes - rest.bytes;
    return KAFKA_CODEC_OK;
}

/* Decodes one raw snappy block. */
static enum kafka_codec_verdict read_snappy_block(struct span in, struct span_mut into, size_t *out)
{
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(in.data != NULL || in.bytes == 0);
    size_t bytes = 0;
    if (snappy_uncompressed_length((const char *)in.data, in.bytes, &bytes) != SNAPPY_OK) {
        return KAFKA_CODEC_BAD;
    }
    if (bytes > into.bytes) {
        return KAFKA_CODEC_TOO_LARGE;
    }
    *out = bytes;
    snappy_status status =
        snappy_uncompress((const char *)in.data, in.bytes, (char *)into.data, out);
    return status == SNAPPY_OK && *out == bytes ? KAFKA_CODEC_OK : KAFKA_CODEC_BAD;
}

/* Java wraps raw blocks in the xerial container; everybody else writes one bare block. Only the
 * magic tells: its version numbers have been seen in both byte orders. */
static bool is_xerial(struct span in)
{
    ASSERT_SLOW(in.data != NULL || in.bytes == 0);
    static const uint8_t magic[XERIAL_MAGIC_BYTES] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};
    return in.bytes >= XERIAL_HEADER_BYTES && memcmp(in.data, magic, sizeof(magic)) == 0;
}

static enum kafka_codec_verdict read_snappy(struct span in, struct span_mut into, size_t *out)
{
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(in.data != NULL || in.bytes == 0);
    if (!is_xerial(in)) {
        return read_snappy_block(in, into, out);
    }
    struct kafka_reader reader = kafka_reader_of(in);
    (void)kafka_read_raw(&reader, XERIAL_HEADER_BYTES);
    size_t filled = 0;
    while (kafka_reader_left(&reader) > 0) {
        struct span block = kafka_read_bytes(&reader);
        if (reader.bad || block.data == NULL) {
            return KAFKA_CODEC_BAD;
        }
        size_t made = 0;
        struct span_mut rest = {.data = into.data + filled, .bytes = into.bytes - filled};
        enum kafka_codec_verdict verdict = read_snappy_block(block, rest, &made);
        if (verdict != KAFKA_CODEC_OK) {
            return verdict;
        }
        filled += made;
        ASSERT(filled <= into.bytes);
    }
    *out = filled;
    return KAFKA_CODEC_OK;
}

static bool zstd_magic_is_known(struct span in)
{
    ASSERT_SLOW(in.data != NULL || in.bytes == 0);
    uint32_t magic = 0;
    if (in.bytes < sizeof(magic)) {
        return false;
    }
    memcpy(&magic, in.data, sizeof(magic));
    return magic == ZSTD_MAGIC || (magic & ZSTD_SKIPPABLE_MASK) == ZSTD_SKIPPABLE_MAGIC;
}

static enum kafka_codec_verdict zstd_verdict(size_t code)
{
    ASSERT(ZSTD_isError(code));
    return ZSTD_getErrorCode(code) == ZSTD_error_dstSize_tooSmall ? KAFKA_CODEC_TOO_LARGE
                                                                  : KAFKA_CODEC_BAD;
}

static enum kafka_codec_verdict read_zstd(struct kafka_codec *codec, struct span in,
                                          struct span_mut into, size_t *out)
{
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(in.data != NULL || in.bytes == 0);
    size_t filled = 0;
    do {
        if (!zstd_magic_is_known(in)) {
            return KAFKA_CODEC_BAD;
        }
        size_t frame_bytes = ZSTD_findFrameCompressedSize(in.data, in.bytes);
        if (ZSTD_isError(frame_bytes) || frame_bytes > in.bytes) {
            return KAFKA_CODEC_BAD;
        }
        size_t made = ZSTD_decompressDCtx(codec->zstd, into.data + filled, into.bytes - filled,
                                          in.data, frame_bytes);
        if (ZSTD_isError(made)) {
            return zstd_verdict(made);
        }
        filled += made;
        ASSERT(filled <= into.bytes);
        in.data += frame_bytes;
        in.bytes -= frame_bytes;
    } while (in.bytes > 0);
    *out = filled;
    return KAFKA_CODEC_OK;
}

enum kafka_codec_verdict kafka_codec_decompress(struct kafka_codec *codec, uint8_t kind,
                                                struct span in, struct span_mut into, size_t *out)
{
    ASSERT_SLOW(in.data != NULL || in.bytes == 0);
    ASSERT(codec != NULL);
    ASSERT(into.data != NULL && out != NULL);
    *out = 0;
    switch (kind) {
    case KAFKA_CODEC_NONE:
        return copy_plain(in, into, out);
    case KAFKA_CODEC_GZIP:
        return read_gzip(codec, in, into, out);
    case KAFKA_CODEC_SNAPPY:
        return read_snappy(in, into, out);
    case KAFKA_CODEC_LZ4:
        return lz4_frame_decompress(in, into, out);
    case KAFKA_CODEC_ZSTD:
        return read_zstd(codec, in, into, out);
    default:
        return KAFKA_CODEC_UNKNOWN;
    }
}

size_t kafka_codec_lz4_compress(struct kafka_codec *codec, struct span in, struct span_mut into)
{
    ASSERT(codec != NULL);
    return lz4_frame_compress(codec->lz4_state, in, into);
}

size_t kafka_codec_lz4_bytes_max(size_t in_bytes)
{
    return lz4_frame_bytes_max(in_bytes);
}
