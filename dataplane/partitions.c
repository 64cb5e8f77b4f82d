/* SPDX-License-Identifier: Apache-2.0 */
/* A lane has few partitions and batches come one partition at a time, so a search from the last one
 * found is enough. */
#include "dataplane/partitions.h"

#include <errno.h>
#include <stdlib.h>

int partitions_init(struct partitions *partitions, uint32_t count_max, struct error *error)
{
    ASSERT(partitions != NULL);
    ASSERT(count_max > 0);
    *partitions = (struct partitions){.count_max = count_max};
    partitions->places = calloc(count_max, sizeof(*partitions->places));
    partitions->listed = calloc(count_max, sizeof(*partitions->listed));
    struct watermark_sender *senders = calloc(count_max, sizeof(*senders));
    watermark_init(&partitions->watermark, senders, senders == NULL ? 0 : count_max);
    if (partitions->places == NULL || partitions->listed == NULL || senders == NULL) {
        return error_set(error, -ENOMEM, "out of memory for the partitions of a table");
    }
    return 0;
}

void partitions_fini(struct partitions *partitions)
{
    ASSERT(partitions->count <= partitions->count_max);
    ASSERT(partitions->ended_count <= partitions->count);
    free(partitions->places);
    free(partitions->listed);
    free(partitions->watermark.senders);
    free(partitions->recalled);
    *partitions = (struct partitions){0};
}

static bool is_at(const struct partitions *partitions, uint32_t number, uint32_t topic,
                  uint32_t partition)
{
    ASSERT_SLOW(number < partitions->count);
    const struct partition_place *place = &partitions->places[number];
    return place->topic == topic && place->partition == partition;
}

/* Whether the first of two facts of one partition is the newer: it was written by the lane that
 * read on, the other by one that only carried it. */
static bool is_further(const struct facts_partition *a, const struct facts_partition *b)
{
    return a->next_offset > b->next_offset ||
           (a->next_offset == b->next_offset && a->resume_rows > b->resume_rows);
}

void partitions_recall(struct partitions *partitions, struct partition_recalled *recalled,
                       uint32_t recalled_count)
{
    ASSERT(partitions->count == 0 && partitions->recalled == NULL);
    ASSERT(recalled != NULL || recalled_count == 0);
    partitions->recalled = recalled;
    partitions->recalled_count = recalled_count;
}

/* Sets a partition that has just been found to where the checkpoint left it. */
static void apply_recalled(struct partitions *partitions, uint32_t number)
{
    ASSERT(number < partitions->count);
    struct partition_place *place = &partitions->places[number];
    const struct facts_partition *best = NULL;
    for (uint32_t i = 0; i < partitions->recalled_count; i++) {
        struct partition_recalled *one = &partitions->recalled[i];
        if (one->topic != place->topic || one->facts.partition != place->partition) {
            continue;
        }
        one->is_taken = true;
        best = best == NULL || is_further(&one->facts, best) ? &one->facts : best;
    }
    if (best == NULL) {
        return;
    }
    place->resume_offset = best->next_offset;
    place->resume_rows = best->resume_rows;
    place->next_offset = best->next_offset;
    place->leader_epoch = best->leader_epoch;
    place->has_ended = best->has_ended != 0;
    partitions->ended_count += place->has_ended;
    partitions->watermark.senders[number].value_ms =
        place->has_ended ? WATERMARK_MAX : best->watermark_ms;
}

uint32_t partitions_find(struct partitions *partitions, uint32_t topic, uint32_t partition)
{
    ASSERT_SLOW(partitions->ended_count <= partitions->count);
    ASSERT(partitions->count <= partitions->count_max);
    for (uint32_t i = 0; i < partitions->count; i++) {
        uint32_t number = partitions->last + i;
        number = number < partitions->count ? number : number - partitions->count;
        if (is_at(partitions, number, topic, partition)) {
            partitions->last = number;
            return number;
        }
    }
    if (partitions->count == partitions->count_max) {
        return UINT32_MAX;
    }
    const uint32_t number = partitions->count++;
    partitions->places[number] = (struct partition_place){
        .topic = topic,
        .partition = partition,
        .resume_offset = -1,
        .leader_epoch = -1,
        .next_offset = -1,
    };
    const uint32_t sender = watermark_add(&partitions->watermark);
    ASSERT(sender == number);
    apply_recalled(partitions, number);
    partitions->last = number;
    return number;
}

bool partitions_end(struct partitions *partitions, uint32_t number)
{
    ASSERT_SLOW(partitions->count <= partitions->count_max);
    ASSERT(number < partitions->count);
    struct partition_place *place = &partitions->places[number];
    if (place->has_ended) {
        return false;
    }
    place->has_ended = true;
    partitions->ended_count++;
    return watermark_move(&partitions->watermark, number, WATERMARK_MAX);
}

bool partitions_list(struct partitions *partitions, struct record_source *source)
{
    ASSERT_SLOW(source != NULL);
    if (source->ops->partitions == NULL) {
        return true;
    }
    bool complete = false;
    uint32_t count =
        source->ops->partitions(source, partitions->listed, partitions->count_max, &complete);
    count = count < partitions->count_max ? count : partitions->count_max;
    for (uint32_t i = 0; i < count; i++) {
        (void)partitions_find(partitions, partitions->listed[i].topic,
                              partitions->listed[i].partition);
    }
    return complete;
}
