/* SPDX-License-Identifier: Apache-2.0 */
/* The minimum over several senders of event time: partitions in a source, channels in front of an
 * operator. An idle sender does not hold the minimum back; one that ended keeps its last value
 * (a bounded source says WATERMARK_MAX before it ends). When every sender is idle the watermark
 * stays where it is, as Flink has it. It never moves back.
 *
 * Limits: senders are numbered from 0; adding one while running is fine: it holds the watermark
 * where it is until it has caught up. */
#pragma once

#include "base.h"
#include "dataplane/parcel.h"

struct watermark_sender {
    int64_t value_ms;
    bool idle;
};

struct watermark {
    struct watermark_sender *senders; /* storage of the creator */
    uint32_t sender_count;
    uint32_t sender_count_max;
    uint32_t idle_count;
    int64_t value_ms; /* of all, what consumers have been told */
};

/* Starts without senders, at WATERMARK_MIN.
 * storage  sender_count_max of them; outlives the watermark
 * threads  control */
void watermark_init(struct watermark *watermark, struct watermark_sender *storage,
                    uint32_t sender_count_max);

/* Adds a sender at WATERMARK_MIN, active.
 * returns  its number
 * threads  owning lane only */
uint32_t watermark_add(struct watermark *watermark);

/* Takes a sender's new value; a smaller one than before changes nothing. The sender becomes
 * active.
 * returns  whether the minimum moved: watermark->value_ms is new
 * threads  owning lane only */
bool watermark_move(struct watermark *watermark, uint32_t sender, int64_t value_ms);

/* Takes the minimum anew, when what the senders said so far does not count: not all were known.
 * told_ms  what consumers have been told: it does not fall below
 * threads  owning lane only */
void watermark_recount(struct watermark *watermark, int64_t told_ms);

/* Marks a sender idle or active.
 * returns  as watermark_move
 * threads  owning lane only */
bool watermark_idle(struct watermark *watermark, uint32_t sender, bool idle);

/* Tells whether all senders are idle.
 * threads  owning lane only */
static inline bool watermark_is_idle(const struct watermark *watermark)
{
    ASSERT_SLOW(watermark->sender_count <= watermark->sender_count_max);
    return watermark->idle_count == watermark->sender_count;
}
