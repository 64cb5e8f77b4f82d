/* SPDX-License-Identifier: Apache-2.0 */
/* Group commits for outside monitoring: asks the receive lanes how far they are, and commits that
 * over librdkafka. While the job runs a commit may be ahead of the output by what is in flight; the
 * last one, after an orderly stop, is exact. Control thread only. */
#pragma once

#include "control/box.h"

struct positions;

/* Makes it.
 * box, metadata  borrowed
 * out            freed by positions_destroy */
int positions_create(struct box *box, struct metadata *metadata, struct positions **out,
                     struct error *error);

/* Frees it. NULL is fine. */
void positions_destroy(struct positions *positions);

/* Asks the lanes when it is time (kafka.commit_interval_ms), and commits what they have answered.
 */
void positions_poll(struct positions *positions, uint64_t now_ns);

/* Commits where the lanes have stopped, and waits for the broker; they no longer run. */
void positions_commit_final(struct positions *positions);
