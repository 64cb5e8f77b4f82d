/* SPDX-License-Identifier: Apache-2.0 */
/* Where a table source stands, as facts, and going on from there. A partition's place may be in the
 * middle of a record of which some rows have gone out: the record is read again and those rows are
 * passed over. */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/table_source_internal.h"

/* Where a partition is to be gone on with. Of the batch at hand that is in its middle; behind other
 * batches the record source knows best, for not every offset holds a record. */
static void fill_place(const struct table_source *self, uint32_t number,
                       struct facts_partition *out)
{
    ASSERT(number < self->partitions.count);
    const struct partition_place *place = &self->partitions.places[number];
    struct record_source *records = self->edge.records;
    struct record_position position;
    out->leader_epoch = place->leader_epoch;
    out->end_offset = -1;
    const bool is_known =
        records->ops->position != NULL &&
        records->ops->position(records, place->topic, place->partition, &position);
    if (is_known) {
        out->end_offset = position.end_offset;
    }
    if (self->has_batch && self->number == number && self->batch.record_count > 0) {
        const uint32_t record = table_source_resume_point(self, &out->resume_rows);
        ASSERT(record < self->batch.record_count);
        out->next_offset = self->batch.records[record].offset;
        out->leader_epoch =
            record > 0 ? self->batch.records[record - 1].leader_epoch : place->leader_epoch;
    } else if (place->resume_offset >= 0) {
        out->next_offset = place->resume_offset;
        out->resume_rows = place->resume_rows;
    } else if (is_known) {
        out->next_offset = position.next_offset;
        out->leader_epoch = position.leader_epoch >= 0 ? position.leader_epoch : out->leader_epoch;
    } else {
        out->next_offset = place->next_offset;
    }
}

static void put_partition(const struct table_source *self, uint32_t number,
                          struct facts_writer *facts)
{
    ASSERT(number < self->partitions.count);
    const struct partition_place *place = &self->partitions.places[number];
    struct facts_item item = {.kind = FACTS_PARTITION};
    item.partition = (struct facts_partition){
        .identity = self->context->node->identity,
        .partition = place->partition,
        .watermark_ms = self->partitions.watermark.senders[number].value_ms,
        .has_ended = place->has_ended,
    };
    fill_place(self, number, &item.partition);
    const char *topic = self->plan->topics[place->topic];
    const size_t bytes = strnlen(topic, FACTS_TOPIC_BYTES);
    memcpy(item.partition.topic, topic, bytes);
    facts_put(facts, &item);
}

/* Until all partitions are known, what was recalled of others is carried on: whichever lane they
 * are on may not have seen them either. */
static void put_recalled(const struct table_source *self, struct facts_writer *facts)
{
    ASSERT(!self->is_complete);
    for (uint32_t i = 0; i < self->partitions.recalled_count; i++) {
        const struct partition_recalled *recalled = &self->partitions.recalled[i];
        if (!recalled->is_taken) {
            const struct facts_item item = {.kind = FACTS_PARTITION, .partition = recalled->facts};
            facts_put(facts, &item);
        }
    }
}

/* A lane that has no partitions knows nothing of time: its saying would hold the others back. */
void table_source_snapshot(struct source *source, struct facts_writer *facts)
{
    const struct table_source *self = (const struct table_source *)source;
    for (uint32_t i = 0; i < self->partitions.count; i++) {
        put_partition(self, i, facts);
    }
    if (!self->is_complete) {
        put_recalled(self, facts);
    }
    if (self->is_complete && self->partitions.count == 0) {
        return;
    }
    const struct facts_item item = {
        .kind = FACTS_SOURCE,
        .source =
            {
                .identity = self->context->node->identity,
                .watermark_ms = self->watermark_sent_ms,
                .next_emit_ms = self->next_emit_ms,
                .processing_ms = self->processing_ms,
                .is_incomplete = !self->is_complete,
            },
    };
    facts_put(facts, &item);
}

/* Lists a partition's position, unless another lane's saying of it is there: then the one that is
 * further on stays. */
static void put_position(struct record_position *positions, uint32_t *count,
                         const struct record_position *position)
{
    for (uint32_t i = 0; i < *count; i++) {
        struct record_position *known = &positions[i];
        if (known->topic == position->topic && known->partition == position->partition) {
            if (position->next_offset > known->next_offset) {
                *known = *position;
            }
            return;
        }
    }
    positions[(*count)++] = *position;
}

/* Keeps the facts of topics that the table still reads, and lists the positions in them.
 * returns  how many facts */
static uint32_t recall_partitions(const struct table_source *self, const struct source_facts *facts,
                                  struct partition_recalled *recalled,
                                  struct record_position *positions, uint32_t *position_count)
{
    uint32_t count = 0;
    *position_count = 0;
    for (uint32_t i = 0; i < facts->partition_count; i++) {
        const struct facts_partition *partition = &facts->partitions[i];
        uint32_t topic = 0;
        while (topic < self->plan->topic_count &&
               strcmp(self->plan->topics[topic], partition->topic) != 0) {
            topic++;
        }
        if (topic == self->plan->topic_count) {
            continue;
        }
        recalled[count++] = (struct partition_recalled){.topic = topic, .facts = *partition};
        const struct record_position position = {
            .topic = topic,
            .partition = partition->partition,
            .next_offset = partition->next_offset,
            .end_offset = partition->end_offset,
            .leader_epoch = partition->leader_epoch,
            .has_ended = partition->has_ended != 0,
        };
        put_position(positions, position_count, &position);
    }
    return count;
}

/* Where not all partitions were known to every lane, those that none has named are not new. */
static void put_others(const struct table_source *self, struct record_position *positions,
                       uint32_t *count)
{
    for (uint32_t topic = 0; topic < self->plan->topic_count; topic++) {
        positions[(*count)++] = (struct record_position){
            .topic = topic,
            .partition = RECORD_PARTITION_OTHERS,
            .next_offset = -1,
            .end_offset = -1,
            .leader_epoch = -1,
        };
    }
}

/* Consumers hear again what they had been told: in front of them no lane may stand lower. */
static void recall_times(struct table_source *self, const struct facts_source *facts)
{
    struct output *output = self->context->output;
    self->watermark_sent_ms = facts->watermark_ms;
    self->partitions.watermark.value_ms = facts->watermark_ms;
    self->next_emit_ms = facts->next_emit_ms;
    self->processing_ms = facts->processing_ms;
    if (facts->watermark_ms != WATERMARK_MIN) {
        output_control(output, PARCEL_WATERMARK, facts->watermark_ms);
    }
    if (self->context->wants_ticks && facts->processing_ms > 0) {
        output_control(output, PARCEL_TICK, facts->processing_ms);
    }
}

int table_source_restore(struct source *source, const struct source_facts *facts,
                         struct error *error)
{
    struct table_source *self = (struct table_source *)source;
    ASSERT(self->partitions.count == 0 && !self->has_batch);
    struct record_source *records = self->edge.records;
    if (records->ops->start_at == NULL) {
        return error_set(error, -ENOTSUP, "table %s cannot start at given offsets",
                         self->plan->table);
    }
    const size_t room = (size_t)facts->partition_count + self->plan->topic_count + 1;
    struct partition_recalled *recalled = calloc(room, sizeof(*recalled));
    struct record_position *positions = calloc(room, sizeof(*positions));
    int code = recalled == NULL || positions == NULL
                   ? error_set(error, -ENOMEM, "out of memory for positions")
                   : 0;
    if (code == 0) {
        uint32_t position_count;
        const uint32_t count = recall_partitions(self, facts, recalled, positions, &position_count);
        partitions_recall(&self->partitions, recalled, count);
        if (facts->source.is_incomplete != 0) {
            put_others(self, positions, &position_count);
        }
        code = records->ops->start_at(records, positions, position_count, error);
        recall_times(self, &facts->source);
    } else {
        free(recalled);
    }
    free(positions);
    return code;
}
