/* SPDX-License-Identifier: Apache-2.0 */
/* A stream over a kernel socket, for checks against real brokers on loopback; the dataplane never
 * links it. */
#pragma once

#include "base.h"
#include "nic/stream.h"

#define KERNEL_STREAMS_MAX     64
#define KERNEL_STREAM_RX_BYTES (4 << 20)
#define KERNEL_STREAM_TX_BYTES (1 << 20)

struct kernel_stream;

struct kernel_streams {
    struct kernel_stream *list[KERNEL_STREAMS_MAX];
    uint32_t count;
};

/* Connects; a kafka_connector's connect, whose context is a struct kernel_streams.
 * threads  one */
struct stream *kernel_stream_connect(void *context, uint32_t ip4, uint16_t port, uint64_t now_ns);

/* Moves bytes both ways on all streams.
 * returns  how many bytes moved
 * threads  one */
size_t kernel_streams_poll(struct kernel_streams *streams, uint64_t now_ns);

/* Frees what was released.
 * threads  one */
void kernel_streams_free(struct kernel_streams *streams);
