/* SPDX-License-Identifier: Apache-2.0 */
/* The codecs of record batches: none, gzip, snappy, lz4, zstd for reading, lz4 for writing.
 * Everything is decoded in one go into a buffer of the caller, whose size is the cap against
 * decompression bombs.
 *
 * No allocation after create, codec by codec: gzip is ISA-L's stateless inflate, whose state is a
 * plain struct; snappy's raw decoder works on the stack; an LZ4 frame is walked here and its
 * blocks go through LZ4_decompress_safe_usingDict, which has no state; zstd has one static context
 * and, since the output is one contiguous buffer, needs no window of its own. zstd's legacy
 * formats would allocate and are refused by their magic. */
#pragma once

#include "base.h"
#include "dataplane/kafka/batch.h"

enum kafka_codec_verdict {
    KAFKA_CODEC_OK = 0,
    KAFKA_CODEC_BAD,       /* not what the codec writes, or a checksum is wrong */
    KAFKA_CODEC_TOO_LARGE, /* does not fit into the buffer */
    KAFKA_CODEC_UNKNOWN,   /* no such codec */
};

struct kafka_codec;

/* Says how much memory the contexts take.
 * threads  any */
size_t kafka_codec_bytes(void);

/* Sets the contexts up.
 * memory   kafka_codec_bytes bytes, 64-byte aligned; the codec lives in it
 * threads  control */
struct kafka_codec *kafka_codec_init(uint8_t *memory);

/* Decodes a whole blob.
 * in       the records of a batch as stored
 * into     the buffer; its size is the cap
 * out      how many bytes were decoded
 * threads  owning lane only */
enum kafka_codec_verdict kafka_codec_decompress(struct kafka_codec *codec, uint8_t kind,
                                                struct span in, struct span_mut into, size_t *out);

/* Encodes a blob as one LZ4 frame of independent blocks of 64 KiB, the form that every client
 * reads.
 * into     may be smaller than kafka_codec_lz4_bytes_max: then it may not fit
 * returns  the frame's bytes, 0 when it does not fit
 * threads  owning lane only */
size_t kafka_codec_lz4_compress(struct kafka_codec *codec, struct span in, struct span_mut into);

/* Says how large a frame can get.
 * threads  any */
size_t kafka_codec_lz4_bytes_max(size_t in_bytes);
