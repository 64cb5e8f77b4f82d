/* SPDX-License-Identifier: Apache-2.0 */
/* LZ4 frames over whole buffers: a walker that decodes block by block straight into the output,
 * and a writer of independent 64 KiB blocks. The library's own frame decoder allocates per frame,
 * which a lane may not.
 *
 *   | magic 184D2204 | FLG BD [content size] [dictionary id] HC | blocks | 0 | [content checksum] |
 *   block: | i32 size, top bit = stored | bytes | [checksum] |
 *
 * Checked: header checksum, block checksums where flagged, content checksum where flagged.
 * Source: LZ4 frame format 1.6.1; KIP-57. */
#pragma once

#include "base.h"
#include "dataplane/kafka/codec.h"

#define LZ4_FRAME_BLOCK_BYTES 65536

/* Decodes one or more concatenated frames.
 * in       whole frames
 * into     the output; its size is the cap
 * out      how many bytes were decoded
 * threads  any */
enum kafka_codec_verdict lz4_frame_decompress(struct span in, struct span_mut into, size_t *out);

/* Encodes one frame.
 * state    LZ4_sizeofState() bytes, 8-byte aligned
 * returns  the frame's bytes, 0 when it does not fit
 * threads  owner of state */
size_t lz4_frame_compress(void *state, struct span in, struct span_mut into);

/* Says how large a frame can get.
 * threads  any */
size_t lz4_frame_bytes_max(size_t in_bytes);

/* Computes xxHash-32 with seed 0, the checksum of LZ4 frames.
 * threads  any
 * source   xxHash specification 0.1.1, XXH32 */
uint32_t lz4_frame_xxh32(struct span in);
