/* SPDX-License-Identifier: Apache-2.0 */
/* A single-producer, single-consumer ring of bytes. Each line is a 4-byte length, whose top bit
 * says which stream it is for, and its bytes; positions run on and wrap by mask. */
#include "dataplane/sink_print.h"

#include <errno.h>
#include <stdlib.h>

#define LINE_ERRORS (UINT32_C(1) << 31)

struct sink_print {
    struct record_sink base;
    uint32_t capacity;
    uint8_t *bytes;
    _Alignas(CACHE_LINE_BYTES) uint64_t written; /* by the lane */
    _Alignas(CACHE_LINE_BYTES) uint64_t drained; /* by control */
};

static void copy_in(struct sink_print *self, uint64_t at, const void *from, uint32_t bytes)
{
    ASSERT(self != NULL);
    const uint32_t place = (uint32_t)at & (self->capacity - 1);
    const uint32_t first = bytes < self->capacity - place ? bytes : self->capacity - place;
    if (bytes == 0) {
        return;
    }
    memcpy(self->bytes + place, from, first);
    memcpy(self->bytes, (const uint8_t *)from + first, bytes - first);
}

static void copy_out(const struct sink_print *self, uint64_t at, void *into, uint32_t bytes)
{
    ASSERT(self != NULL);
    const uint32_t place = (uint32_t)at & (self->capacity - 1);
    const uint32_t first = bytes < self->capacity - place ? bytes : self->capacity - place;
    memcpy(into, self->bytes + place, first);
    memcpy((uint8_t *)into + first, self->bytes, bytes - first);
}

static enum record_sink_verdict sink_print_append(struct record_sink *sink, uint32_t topic,
                                                  int32_t partition, const struct record *record)
{
    ASSERT(record != NULL);
    struct sink_print *self = (struct sink_print *)sink;
    if (record->value.bytes + sizeof(uint32_t) > self->capacity / 2) {
        return RECORD_SINK_TOO_LARGE;
    }
    const uint32_t bytes = (uint32_t)record->value.bytes;
    /* Acquire: the bytes below were read before they are overwritten; pairs with drain's release.
     */
    const uint64_t drained = __atomic_load_n(&self->drained, __ATOMIC_ACQUIRE);
    if (self->written - drained + sizeof(uint32_t) + bytes > self->capacity) {
        return RECORD_SINK_FULL;
    }
    const uint32_t head = bytes | (topic != 0 ? LINE_ERRORS : 0);
    copy_in(self, self->written, &head, sizeof(head));
    copy_in(self, self->written + sizeof(head), record->value.data, bytes);
    /* Release: the bytes are there before the position says so; pairs with drain's acquire. */
    __atomic_store_n(&self->written, self->written + sizeof(head) + bytes, __ATOMIC_RELEASE);
    return RECORD_SINK_OK;
}

static uint32_t sink_print_poll(struct record_sink *sink, uint64_t now_ns)
{
    return 0;
}

/* Lines are as good as written: control drains them before it ends. */
static bool sink_print_flushed(struct record_sink *sink)
{
    return true;
}

static const struct record_sink_ops sink_print_ops = {
    .append = sink_print_append,
    .poll = sink_print_poll,
    .flushed = sink_print_flushed,
};

int sink_print_create(uint32_t ring_bytes, struct record_sink **out, struct error *error)
{
    ASSERT(out != NULL);
    ASSERT(ring_bytes >= 64 && (ring_bytes & (ring_bytes - 1)) == 0);
    struct sink_print *self = aligned_alloc(CACHE_LINE_BYTES, sizeof(*self));
    uint8_t *bytes = calloc(1, ring_bytes);
    if (self == NULL || bytes == NULL) {
        free(self);
        free(bytes);
        return error_set(error, -ENOMEM, "out of memory for printed lines");
    }
    *self = (struct sink_print){
        .base = {.ops = &sink_print_ops},
        .capacity = ring_bytes,
        .bytes = bytes,
    };
    *out = &self->base;
    return 0;
}

void sink_print_destroy(struct record_sink *sink)
{
    struct sink_print *self = (struct sink_print *)sink;
    if (self != NULL) {
        free(self->bytes);
        free(self);
    }
}

uint32_t sink_print_drain(struct record_sink *sink, FILE *normal, FILE *errors)
{
    struct sink_print *self = (struct sink_print *)sink;
    const uint64_t written = __atomic_load_n(&self->written, __ATOMIC_ACQUIRE);
    uint64_t at = self->drained;
    uint32_t lines = 0;
    while (at != written) {
        uint32_t head;
        copy_out(self, at, &head, sizeof(head));
        at += sizeof(head);
        FILE *into = (head & LINE_ERRORS) != 0 ? errors : normal;
        uint32_t left = head & ~LINE_ERRORS;
        while (left > 0) {
            uint8_t part[4096];
            const uint32_t bytes = left < sizeof(part) ? left : (uint32_t)sizeof(part);
            copy_out(self, at, part, bytes);
            (void)fwrite(part, 1, bytes, into);
            at += bytes;
            left -= bytes;
        }
        (void)fputc('\n', into);
        lines++;
    }
    __atomic_store_n(&self->drained, at, __ATOMIC_RELEASE);
    return lines;
}
