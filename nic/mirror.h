/* SPDX-License-Identifier: Apache-2.0 */
/* A byte ring whose memory is mapped twice, back to back, so that every span of up to its size is
 * contiguous wherever it starts: a Kafka frame that wraps is still one span.
 *
 *     | page 0 … page n-1 | page 0 … page n-1 |
 *
 * The other way, sliding the rest of the buffer to its front, copies every byte that waits for
 * the end of its frame once more and moves up to the whole buffer in one poll turn; the second
 * mapping costs address space and start-up time only. All pages are touched at init. */
#pragma once

#include "base.h"

#define MIRROR_HUGE_BYTES (UINT64_C(2) << 20)

struct mirror {
    uint8_t *data; /* bytes * 2 of address space; data[i] and data[i + bytes] are one byte */
    size_t bytes;  /* a power of two */
};

/* Maps and touches a ring.
 * bytes      a power of two, at least one page (of the huge size when huge_pages is set)
 * huge_pages take 2 MiB pages; fails with a reason when none are free
 * returns    0 or -errno with out->text
 * threads    control path */
int mirror_init(struct mirror *mirror, size_t bytes, bool huge_pages, struct error *error);

/* Unmaps; harmless on a zeroed struct.
 * threads  control path */
void mirror_fini(struct mirror *mirror);

/* The place of a running byte offset; bytes at and after it are contiguous for mirror->bytes.
 * offset   counts from the stream's first byte and never wraps
 * threads  owning lane only */
static inline uint8_t *mirror_at(const struct mirror *mirror, uint64_t offset)
{
    return mirror->data + (offset & (mirror->bytes - 1));
}
