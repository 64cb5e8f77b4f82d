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
    *partitions = (struct partitions){0};
}

static bool is_at(const struct partitions *partitions, uint32_t number, uint32_t topic,
                  uint32_t partition)
{
    ASSERT_SLOW(number < partitions->count);
    const struct partition_place *place = &partitions->places[number];
    return place->topic == topic && place->partition == partition;
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
    };
    const uint32_t sender = watermark_add(&partitions->watermark);
    ASSERT(sender == number);
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
