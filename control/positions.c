/* SPDX-License-Identifier: Apache-2.0 */
/* See positions.h. A lane answers by filling its own slot and marking it; one question at a time is
 * under way per lane. */
#include "control/positions.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum slot_state {
    SLOT_FREE = 0,
    SLOT_ASKED,
    SLOT_ANSWERED,
};

/* What one source table of one lane has answered. */
struct slot {
    struct box_source *source;
    struct lane *lane;
    _Atomic int state; /* enum slot_state */
    uint32_t count;
    struct source_kafka_progress progress[SOURCE_KAFKA_PARTITIONS_MAX];
};

struct positions {
    struct metadata *metadata;
    uint64_t interval_ns;
    uint64_t asked_ns;
    struct slot *slots;
    uint32_t slot_count;
    struct metadata_offset offsets[SOURCE_KAFKA_PARTITIONS_MAX];
};

int positions_create(struct box *box, struct metadata *metadata, struct positions **out,
                     struct error *error)
{
    ASSERT(box != NULL);
    ASSERT(out != NULL);
    ASSERT(metadata != NULL);
    struct positions *positions = calloc(1, sizeof(*positions));
    uint32_t slots = 0;
    for (uint32_t i = 0; i < box->lane_count; i++) {
        slots += box->lanes[i].source_count;
    }
    *out = positions;
    if (positions != NULL) {
        positions->slots = calloc(slots == 0 ? 1 : slots, sizeof(*positions->slots));
    }
    if (positions == NULL || positions->slots == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    positions->metadata = metadata;
    positions->interval_ns = box->config->kafka.commit_interval_ms * UINT64_C(1000000);
    for (uint32_t i = 0; i < box->lane_count; i++) {
        for (uint32_t s = 0; s < box->lanes[i].source_count; s++) {
            struct slot *slot = &positions->slots[positions->slot_count++];
            slot->source = &box->lanes[i].sources[s];
            slot->lane = box->lanes[i].lane;
        }
    }
    return 0;
}

void positions_destroy(struct positions *positions)
{
    if (positions == NULL) {
        return;
    }
    free(positions->slots);
    free(positions);
}

/* Runs on the lane. */
static void answer(void *context, int64_t value)
{
    struct slot *slot = context;
    (void)value;
    slot->count =
        source_kafka_progress(slot->source->source, slot->progress, SOURCE_KAFKA_PARTITIONS_MAX);
    /* Release pairs with commit_answered's acquire: the figures are there before the mark. */
    atomic_store_explicit(&slot->state, SLOT_ANSWERED, memory_order_release);
}

static void commit(struct positions *positions, const struct slot *slot, bool wait)
{
    ASSERT(positions->slots != NULL || positions->slot_count == 0);
    ASSERT(slot != NULL);
    struct error error = {0};
    for (uint32_t i = 0; i < slot->count; i++) {
        const struct source_kafka_progress *progress = &slot->progress[i];
        positions->offsets[i] = (struct metadata_offset){
            .topic = slot->source->node->source.topics[progress->topic],
            .partition = (int32_t)progress->partition,
            .offset = progress->position,
        };
    }
    if (metadata_commit(positions->metadata, positions->offsets, slot->count, wait, &error) != 0) {
        (void)fprintf(stderr, "penstock: group positions were not committed: %s\n", error.text);
    }
}

void positions_poll(struct positions *positions, uint64_t now_ns)
{
    ASSERT(positions->slots != NULL || positions->slot_count == 0);
    const bool ask = now_ns - positions->asked_ns >= positions->interval_ns;
    for (uint32_t i = 0; i < positions->slot_count; i++) {
        struct slot *slot = &positions->slots[i];
        const int state = atomic_load_explicit(&slot->state, memory_order_acquire);
        const struct lane_command question = {
            .kind = LANE_COMMAND_CALL, .call = answer, .context = slot};
        if (state == SLOT_ANSWERED) {
            commit(positions, slot, false);
            atomic_store_explicit(&slot->state, SLOT_FREE, memory_order_relaxed);
        } else if (state == SLOT_FREE && ask) {
            atomic_store_explicit(&slot->state, SLOT_ASKED, memory_order_relaxed);
            if (!lane_command(slot->lane, &question)) {
                atomic_store_explicit(&slot->state, SLOT_FREE, memory_order_relaxed);
            }
        }
    }
    positions->asked_ns = ask ? now_ns : positions->asked_ns;
}

void positions_commit_final(struct positions *positions)
{
    ASSERT(positions->slots != NULL || positions->slot_count == 0);
    for (uint32_t i = 0; i < positions->slot_count; i++) {
        answer(&positions->slots[i], 0);
        commit(positions, &positions->slots[i], true);
    }
}
