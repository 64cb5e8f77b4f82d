/* SPDX-License-Identifier: Apache-2.0 */
/* The checksum of the checkpoint format: XXH3, 128 bits, seed 0, over whole ranges. It finds what
 * disks do by accident; it is no defence against somebody who forges. */
#pragma once

#include "base.h"

struct checksum {
    uint64_t low;
    uint64_t high;
};
static_assert(sizeof(struct checksum) == 16, "part of the checkpoint format");

/* Sums bytes.
 * data     bytes of them, any alignment
 * threads  any
 * source   xxHash specification, XXH3_128bits */
struct checksum checksum_of(const void *data, size_t bytes);

/* Whether two sums are the same.
 * threads  any */
static inline bool checksum_is_equal(struct checksum one, struct checksum other)
{
    return one.low == other.low && one.high == other.high;
}
