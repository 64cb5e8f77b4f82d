/* SPDX-License-Identifier: Apache-2.0 */
/* The scripted cluster's own reader of requests: it shares nothing with the client's. Past the end
 * everything reads as 0 and bad is set. */
#pragma once

#include "tests/sim/broker.h"

struct in {
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
};

/* Takes count bytes; NULL and bad when they are not there. */
static inline const uint8_t *in_raw(struct in *in, size_t count)
{
    if ((size_t)(in->end - in->at) < count) {
        in->bad = true;
        return NULL;
    }
    const uint8_t *at = in->at;
    in->at += count;
    return at;
}

/* Takes a big-endian integer with its sign. */
static inline int64_t in_int(struct in *in, size_t count)
{
    const uint8_t *at = in_raw(in, count);
    int64_t value = at != NULL && (at[0] & 0x80) ? -1 : 0;
    for (size_t i = 0; at != NULL && i < count; i++) {
        value = (int64_t)((uint64_t)value << 8 | at[i]);
    }
    return value;
}

/* Takes bytes of a length that was read before; negative is null. */
static inline struct span in_sized(struct in *in, int64_t count)
{
    if (count < 0) {
        return (struct span){0};
    }
    const uint8_t *at = in_raw(in, (size_t)count);
    return (struct span){.data = at, .bytes = at == NULL ? 0 : (size_t)count};
}

/* Takes an i16 string. */
static inline struct span in_string(struct in *in)
{
    return in_sized(in, in_int(in, 2));
}
