/* SPDX-License-Identifier: Apache-2.0 */
/* Frames for other lanes. A port spreads what it receives by its own rules, and a lane may find a
 * segment of a connection that another lane owns: net_tap returns the first answer of a connection
 * on any queue, a NIC may hash otherwise than it says. Such a frame is copied into a ring towards
 * its owner; ARP, which concerns every stack, is copied to all.
 *
 *     lane i: stack_poll -> hand_off_push -> ring (i, j) -> hand_off_poll -> stack_input: lane j
 *
 * One ring a pair of lanes, one producer and one consumer each, its slots reserved and touched at
 * create: a push copies a frame into its slot, a poll reads it there. A full ring drops the frame,
 * counted: TCP and ARP send again. */
#pragma once

#include "base.h"
#include "nic/stack.h"

#define HAND_OFF_QUEUES_MAX    64
#define HAND_OFF_SLOTS_DEFAULT 256 /* one less than this many frames wait in a ring */

/* Written by the lane that hands off, read by anybody. */
struct hand_off_counters {
    uint64_t given;       /* frames copied into a ring */
    uint64_t drop_full;   /* frames for which the ring had no room */
    uint64_t drop_length; /* frames longer than a slot, or for a queue that does not exist */
};

struct hand_off;
struct hand_off_lane;

/* Makes the rings between the lanes of a port.
 * queue_count      2 to HAND_OFF_QUEUES_MAX
 * slot_count       of one ring, a power of two
 * frame_bytes_max  longest frame that the port delivers
 * out              destroyed with hand_off_destroy
 * returns          0 or -ENOMEM
 * threads          control path */
int hand_off_create(uint32_t queue_count, uint32_t slot_count, uint32_t frame_bytes_max,
                    struct hand_off **out, struct error *error);

/* Frees the rings; no lane uses them any more. NULL is fine.
 * threads  control path */
void hand_off_destroy(struct hand_off *hand_off);

/* A lane's side: what its stack gets as hand_off_context.
 * returns  borrowed, valid as long as hand_off
 * threads  any */
struct hand_off_lane *hand_off_lane(struct hand_off *hand_off, uint16_t queue);

/* Copies a frame to its owner, or to all other lanes: struct stack_options' hand_off.
 * context  the lane's struct hand_off_lane
 * frame    borrowed for the call
 * returns  false when no lane got it; counted
 * threads  the lane's own */
bool hand_off_push(void *context, enum stack_foreign kind, uint16_t owner_queue,
                   const struct port_frame *frame);

/* Feeds the frames that other lanes left for this one to its stack, a bounded number of them.
 * stack    the lane's
 * returns  frames fed
 * threads  the lane's own */
uint32_t hand_off_poll(struct hand_off_lane *lane, struct stack *stack, uint64_t now_ns);

/* Shows what a lane handed off.
 * threads  any */
const struct hand_off_counters *hand_off_counters_get(const struct hand_off_lane *lane);
