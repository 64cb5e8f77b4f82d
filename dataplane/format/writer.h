/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded sink of bytes: writers of values append to it without looking, and whoever owns the
 * space asks once at the end whether all of it fitted. */
#pragma once

#include "base.h"

/* Bytes go in while they fit; used counts on. */
struct writer {
    uint8_t *data;
    size_t used;
    size_t capacity;
};

/* Appends bytes.
 * threads  any */
static inline void writer_put(struct writer *writer, const void *bytes, size_t count)
{
    if (count != 0 && writer->used + count <= writer->capacity) {
        memcpy(writer->data + writer->used, bytes, count);
    }
    writer->used += count;
}

/* Appends one byte.
 * threads  any */
static inline void writer_put_byte(struct writer *writer, uint8_t byte)
{
    if (writer->used < writer->capacity) {
        writer->data[writer->used] = byte;
    }
    writer->used++;
}
