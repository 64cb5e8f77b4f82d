/* SPDX-License-Identifier: Apache-2.0 */
/* The body of checksum.h: libxxhash, compiled into this file so that nothing needs its shared
 * library at run time. */
#include "state/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

struct checksum checksum_of(const void *data, size_t bytes)
{
    ASSERT(data != NULL || bytes == 0);
    const XXH128_hash_t sum = XXH3_128bits(data, bytes);
    return (struct checksum){.low = sum.low64, .high = sum.high64};
}
