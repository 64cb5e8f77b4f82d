/* SPDX-License-Identifier: Apache-2.0 */
/* See source_kafka.h. The client pulls all records of one batch; here they get their headers and
 * the news of their partition (caught up, ended), which also goes up alone when there are no
 * records.
 *
 *     lane 0 of 3:  partitions 0, 3, 6 ...      lane 1:  1, 4, 7 ...      lane 2:  2, 5, 8 ...
 *
 * Every lane computes the same split on its own, so there is no group coordinator and nothing to
 * rebalance while lanes run; the number of receive lanes is fixed at start. */
#include "dataplane/source_kafka.h"

#include <errno.h>
#include <stdlib.h>

/* A partition that this lane reads. */
struct partition {
    uint32_t topic;
    uint32_t number;
    uint32_t client_index;
    bool told_caught_up;
    bool told_ended;
    bool is_paused;
};

struct source_kafka {
    struct record_source records; /* first: the runtime sees this */
    struct kafka_client *client;
    const struct plan_source *plan;
    uint32_t lane_index;
    uint32_t lane_count;
    const struct source_kafka_position *positions;
    uint32_t position_count;
    struct record_position *restored; /* restored_count, of all lanes; NULL: begun anew */
    uint32_t restored_count;
    enum kafka_reset restored_reset; /* where the broker no longer has a restored offset */
    uint32_t *topic_indexes;         /* of the client, by topic of the plan */
    uint32_t *topic_partitions;      /* assigned so far; 0: not known yet */
    uint32_t topics_left;
    struct partition *partitions; /* SOURCE_KAFKA_PARTITIONS_MAX */
    uint32_t partition_count;
    uint32_t *partition_of_source; /* by the client's source index */
    uint32_t turn;                 /* where the search for news goes on */
    uint32_t asked;                /* the partition that was asked for last */
    bool told_none;                /* said that this lane has no partition */
    struct kafka_record pulled[SOURCE_KAFKA_RECORDS];
    struct record shown[SOURCE_KAFKA_RECORDS];
    struct record_header *headers; /* SOURCE_KAFKA_HEADERS; NULL: nobody looks at them */
};

/* Where the table bounds a partition. */
static enum kafka_end end_of(const struct source_kafka *source, uint32_t partition, int64_t *value)
{
    ASSERT(source->partition_count <= SOURCE_KAFKA_PARTITIONS_MAX);
    const struct plan_source *plan = source->plan;
    switch (plan->bounded) {
    case PLAN_BOUNDED_LATEST:
        return KAFKA_END_LATEST;
    case PLAN_BOUNDED_TIMESTAMP:
        *value = plan->bounded_timestamp_ms;
        return KAFKA_END_TIMESTAMP;
    case PLAN_BOUNDED_SPECIFIC:
        for (uint32_t i = 0; i < plan->bounded_offset_count; i++) {
            if (plan->bounded_offsets[i].partition == partition) {
                *value = plan->bounded_offsets[i].offset;
                return KAFKA_END_OFFSET;
            }
        }
        /* As in Flink a partition that is not named ends where it starts. */
        *value = 0;
        return KAFKA_END_OFFSET;
    default:
        return KAFKA_END_NONE;
    }
}

/* A partition without a committed offset starts where auto.offset.reset says; without one of these
 * no job starts. */
static enum kafka_start start_at_group(const struct source_kafka *source, uint32_t topic,
                                       uint32_t partition, int64_t *value)
{
    ASSERT(source->partition_count <= SOURCE_KAFKA_PARTITIONS_MAX);
    for (uint32_t i = 0; i < source->position_count; i++) {
        if (source->positions[i].topic == topic && source->positions[i].partition == partition) {
            *value = source->positions[i].offset;
            return KAFKA_START_OFFSET;
        }
    }
    return source->plan->group_reset == PLAN_GROUP_RESET_LATEST ? KAFKA_START_LATEST
                                                                : KAFKA_START_EARLIEST;
}

/* Partitions that a table with specific offsets does not list are read from the beginning. */
static enum kafka_start start_of(const struct source_kafka *source, uint32_t topic,
                                 uint32_t partition, int64_t *value)
{
    ASSERT(source->partition_count <= SOURCE_KAFKA_PARTITIONS_MAX);
    const struct plan_source *plan = source->plan;
    switch (plan->startup) {
    case PLAN_STARTUP_LATEST:
        return KAFKA_START_LATEST;
    case PLAN_STARTUP_TIMESTAMP:
        *value = plan->startup_timestamp_ms;
        return KAFKA_START_TIMESTAMP;
    case PLAN_STARTUP_SPECIFIC:
        for (uint32_t i = 0; i < plan->startup_offset_count; i++) {
            if (plan->startup_offsets[i].partition == partition) {
                *value = plan->startup_offsets[i].offset;
                return KAFKA_START_OFFSET;
            }
        }
        return KAFKA_START_EARLIEST;
    case PLAN_STARTUP_GROUP_OFFSETS:
        return start_at_group(source, topic, partition, value);
    default:
        return KAFKA_START_EARLIEST;
    }
}

/* What a checkpoint says of a partition.
 * is_known  set when it says anything of the topic: then a partition that it lacks is new */
static const struct record_position *restored_at(const struct source_kafka *source, uint32_t topic,
                                                 uint32_t number, bool *is_known)
{
    *is_known = false;
    for (uint32_t i = 0; i < source->restored_count; i++) {
        const struct record_position *position = &source->restored[i];
        if (position->topic == topic && position->partition == RECORD_PARTITION_OTHERS) {
            *is_known = false;
            return NULL; /* the last of a topic's: it was not named before */
        }
        *is_known = *is_known || position->topic == topic;
        if (position->topic == topic && position->partition == number) {
            return position;
        }
    }
    return NULL;
}

/* Where reading begins: where the checkpoint stood, at the first record of a partition that the
 * topic grew since, else as the table says. A partition whose end was reached ends at once. */
static void place_assignment(const struct source_kafka *source, uint32_t topic, uint32_t number,
                             bool is_new, struct kafka_assignment *out)
{
    bool is_known = false;
    const struct record_position *position = restored_at(source, topic, number, &is_known);
    out->end = end_of(source, number, &out->end_value);
    if (position != NULL && position->next_offset >= 0) {
        out->start = KAFKA_START_OFFSET;
        out->start_value = position->next_offset;
        out->reset = source->restored_reset;
        if (position->has_ended) {
            out->end = KAFKA_END_OFFSET;
            out->end_value = position->next_offset;
        } else if (out->end != KAFKA_END_NONE && position->end_offset >= 0) {
            /* Found out when the job began: the topic's end has moved on since. */
            out->end = KAFKA_END_OFFSET;
            out->end_value = position->end_offset;
        }
    } else if (!is_new && (position != NULL || !is_known)) {
        out->start = start_of(source, topic, number, &out->start_value);
    }
    /* Else as in Flink: a partition that the topic grew while running is read whole. */
}

static void assign_partition(struct source_kafka *source, uint32_t topic, uint32_t number,
                             bool is_new)
{
    ASSERT(source->partition_count <= SOURCE_KAFKA_PARTITIONS_MAX);
    if (source->partition_count == SOURCE_KAFKA_PARTITIONS_MAX) {
        return; /* the client has no room either, and has said so */
    }
    struct partition *partition = &source->partitions[source->partition_count];
    *partition = (struct partition){.topic = topic, .number = number};
    struct kafka_assignment assignment = {
        .topic_index = source->topic_indexes[topic],
        .partition = (int32_t)number,
        .reset = KAFKA_RESET_FAIL,
    };
    place_assignment(source, topic, number, is_new, &assignment);
    if (kafka_client_assign(source->client, &assignment, &partition->client_index)) {
        ASSERT(partition->client_index < SOURCE_KAFKA_PARTITIONS_MAX);
        source->partition_of_source[partition->client_index] = source->partition_count;
        source->partition_count++;
    }
}

/* Partition counts come with metadata, topic by topic. One that grows adds partitions behind those
 * that are there, which stay with their lanes; a bounded table reads those that it began with. */
static void assign_topics(struct source_kafka *source)
{
    ASSERT(source->partition_count <= SOURCE_KAFKA_PARTITIONS_MAX);
    for (uint32_t i = 0; i < source->plan->topic_count; i++) {
        const int32_t count =
            kafka_client_partition_count(source->client, source->topic_indexes[i]);
        const uint32_t known = source->topic_partitions[i];
        const bool grows = source->plan->bounded == PLAN_UNBOUNDED;
        if (count <= 0 || (uint32_t)count <= known || (known != 0 && !grows)) {
            continue;
        }
        source->topic_partitions[i] = (uint32_t)count;
        source->topics_left -= known == 0 ? 1 : 0;
        for (uint32_t p = source->lane_index; p < (uint32_t)count; p += source->lane_count) {
            if (p >= known) {
                assign_partition(source, i, p, known != 0);
            }
        }
    }
}

/* A record's own headers in order, at most SOURCE_KAFKA_RECORD_HEADERS of them: there is room. */
static uint32_t show_headers(struct source_kafka *source, const struct kafka_record *from,
                             uint32_t used, struct record *into)
{
    ASSERT(source->headers != NULL);
    ASSERT(from != NULL);
    ASSERT(into != NULL);
    struct span rest = from->headers;
    uint32_t left = from->header_count;
    struct kafka_header header;
    const uint32_t first = used;
    while (used - first < SOURCE_KAFKA_RECORD_HEADERS && kafka_header_next(&rest, &left, &header)) {
        ASSERT(used < SOURCE_KAFKA_HEADERS);
        source->headers[used++] = (struct record_header){
            .name = header.key,
            .value = header.value,
            .value_is_null = !header.has_value,
        };
    }
    into->headers = source->headers + first;
    into->header_count = used - first;
    into->headers_are_cut = from->header_count > SOURCE_KAFKA_RECORD_HEADERS;
    return used;
}

/* Spans stay where the client has them: valid until the next poll or pull. Headers are for dead
 * letters only.
 * returns  how many records are shown: those whose headers have room in the table */
static uint32_t show_records(struct source_kafka *source, uint32_t count)
{
    ASSERT(source->partition_count <= SOURCE_KAFKA_PARTITIONS_MAX);
    ASSERT(count <= SOURCE_KAFKA_RECORDS);
    uint32_t headers = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct kafka_record *from = &source->pulled[i];
        struct record *into = &source->shown[i];
        const uint32_t wanted = from->header_count < SOURCE_KAFKA_RECORD_HEADERS
                                    ? from->header_count
                                    : SOURCE_KAFKA_RECORD_HEADERS;
        if (source->headers != NULL && headers + wanted > SOURCE_KAFKA_HEADERS) {
            return i;
        }
        *into = (struct record){
            .offset = from->offset,
            .timestamp_ms = from->timestamp_ms,
            .leader_epoch = from->leader_epoch,
            .timestamp_type = (uint8_t)from->timestamp_type,
            .key_is_null = !from->has_key,
            .value_is_null = !from->has_value,
            .key = from->key,
            .value = from->value,
            .arrival_ns = from->arrival_ns,
        };
        if (from->header_count != 0 && source->headers != NULL) {
            headers = show_headers(source, from, headers, into);
        }
    }
    return count;
}

/* Adds what is new about a partition; true when there is news. */
static bool add_news(struct source_kafka *source, struct partition *partition,
                     struct record_batch_view *out)
{
    ASSERT(source->partition_count <= SOURCE_KAFKA_PARTITIONS_MAX);
    ASSERT(partition != NULL);
    struct kafka_source_status status;
    kafka_client_source_status(source->client, partition->client_index, &status);
    const bool ended = status.state == KAFKA_SOURCE_ENDED;
    out->caught_up = status.is_caught_up && !partition->told_caught_up;
    out->ended = ended && !partition->told_ended;
    partition->told_caught_up = status.is_caught_up;
    partition->told_ended = partition->told_ended || ended;
    return out->caught_up || out->ended;
}

/* Turns, so that a partition with steady news does not hide the others. */
static bool poll_news(struct source_kafka *source, struct record_batch_view *out)
{
    ASSERT(source->partition_count <= SOURCE_KAFKA_PARTITIONS_MAX);
    for (uint32_t i = 0; i < source->partition_count; i++) {
        const uint32_t at = (source->turn + i) % source->partition_count;
        struct partition *partition = &source->partitions[at];
        if (add_news(source, partition, out)) {
            source->turn = at + 1;
            out->topic = partition->topic;
            out->partition = partition->number;
            out->record_count = 0;
            return true;
        }
    }
    return false;
}

/* A lane without partitions says so once, for the watermark: nothing will ever come from here. */
static bool tell_none(struct source_kafka *source, struct record_batch_view *out)
{
    ASSERT(source->partition_count <= SOURCE_KAFKA_PARTITIONS_MAX);
    ASSERT(out != NULL);
    if (source->told_none || source->topics_left != 0 || source->partition_count != 0) {
        return false;
    }
    source->told_none = true;
    *out = (struct record_batch_view){
        .partition = UINT32_MAX,
        .caught_up = true,
        .ended = source->plan->bounded != PLAN_UNBOUNDED,
    };
    return true;
}

/* A batch of the view is of one partition, which is what the client's pull gives. */
static bool source_kafka_poll(struct record_source *self, uint64_t now_ns,
                              struct record_batch_view *out)
{
    ASSERT(out != NULL);
    struct source_kafka *source = (struct source_kafka *)self;
    (void)kafka_client_poll(source->client, now_ns);
    *out = (struct record_batch_view){.records = source->shown};
    assign_topics(source);
    const uint32_t count = kafka_client_pull(source->client, source->pulled, SOURCE_KAFKA_RECORDS);
    if (count == 0) {
        return poll_news(source, out) || tell_none(source, out);
    }
    ASSERT(count <= SOURCE_KAFKA_RECORDS);
    struct partition *partition =
        &source->partitions[source->partition_of_source[source->pulled[0].source_index]];
    partition->told_caught_up = false;
    const uint32_t shown = show_records(source, count);
    if (shown < count) { /* the others come again: their headers had no room */
        kafka_client_seek(source->client, partition->client_index, source->pulled[shown].offset);
    }
    (void)add_news(source, partition, out);
    out->topic = partition->topic;
    out->partition = partition->number;
    out->record_count = shown;
    return true;
}

static void source_kafka_release(struct record_source *self)
{
    /* The client's next pull or poll takes the spans back by itself. */
    ASSERT(self != NULL);
}

/* A cut asks for all partitions in turn, others for one again and again: each is found at once.
 * returns  NULL when it is not read here */
static struct partition *find_partition(struct source_kafka *source, uint32_t topic,
                                        uint32_t number)
{
    ASSERT_SLOW(source->asked <= source->partition_count);
    for (uint32_t i = 0; i < source->partition_count; i++) {
        const uint32_t at = (source->asked + i) % source->partition_count;
        struct partition *partition = &source->partitions[at];
        if (partition->topic == topic && partition->number == number) {
            source->asked = at;
            return partition;
        }
    }
    return NULL;
}

static void source_kafka_pause(struct record_source *self, uint32_t topic, uint32_t number,
                               bool paused)
{
    struct source_kafka *source = (struct source_kafka *)self;
    struct partition *partition = find_partition(source, topic, number);
    if (partition == NULL || partition->is_paused == paused) {
        return;
    }
    partition->is_paused = paused;
    if (paused) {
        kafka_client_pause(source->client, partition->client_index);
    } else {
        kafka_client_resume(source->client, partition->client_index);
    }
}

static uint32_t source_kafka_partitions(struct record_source *self, struct record_partition *into,
                                        uint32_t max, bool *complete)
{
    ASSERT(complete != NULL);
    const struct source_kafka *source = (const struct source_kafka *)self;
    for (uint32_t i = 0; i < source->partition_count && i < max; i++) {
        into[i] = (struct record_partition){
            .topic = source->partitions[i].topic,
            .partition = source->partitions[i].number,
        };
    }
    *complete = source->topics_left == 0;
    return source->partition_count;
}

/* The news is void as well: it was about what comes again. */
static void source_kafka_rewind(struct record_source *self, uint32_t topic, uint32_t number,
                                int64_t offset)
{
    struct source_kafka *source = (struct source_kafka *)self;
    struct partition *partition = find_partition(source, topic, number);
    if (partition != NULL) {
        kafka_client_seek(source->client, partition->client_index, offset);
        partition->told_caught_up = false;
        partition->told_ended = false;
    }
}

static bool source_kafka_position(struct record_source *self, uint32_t topic, uint32_t number,
                                  struct record_position *out)
{
    struct source_kafka *source = (struct source_kafka *)self;
    const struct partition *partition = find_partition(source, topic, number);
    struct kafka_source_status status;
    if (partition == NULL) {
        return false;
    }
    kafka_client_source_status(source->client, partition->client_index, &status);
    *out = (struct record_position){
        .topic = topic,
        .partition = number,
        .next_offset = status.position,
        .end_offset = status.end_offset,
        .leader_epoch = status.leader_epoch,
        .has_ended = status.state == KAFKA_SOURCE_ENDED,
    };
    return status.position >= 0;
}

static int source_kafka_start_at(struct record_source *self,
                                 const struct record_position *positions, uint32_t count,
                                 struct error *error)
{
    struct source_kafka *source = (struct source_kafka *)self;
    ASSERT(source->restored == NULL && source->partition_count == 0);
    source->restored = calloc((size_t)count + 1, sizeof(*source->restored));
    if (source->restored == NULL) {
        return error_set(error, -ENOMEM, "out of memory for positions");
    }
    if (count != 0) {
        memcpy(source->restored, positions, count * sizeof(*positions));
    }
    source->restored_count = count;
    return 0;
}

static const struct record_source_ops source_kafka_ops = {
    .poll = source_kafka_poll,
    .release = source_kafka_release,
    .pause = source_kafka_pause,
    .partitions = source_kafka_partitions,
    .rewind = source_kafka_rewind,
    .position = source_kafka_position,
    .start_at = source_kafka_start_at,
};

static int name_topics(struct source_kafka *source, struct error *error)
{
    ASSERT(source->partition_count <= SOURCE_KAFKA_PARTITIONS_MAX);
    for (uint32_t i = 0; i < source->plan->topic_count; i++) {
        if (!kafka_client_topic(source->client, source->plan->topics[i],
                                &source->topic_indexes[i])) {
            return error_set(error, -EINVAL, "%s is no legal topic name, or there are too many",
                             source->plan->topics[i]);
        }
    }
    return 0;
}

int source_kafka_create(const struct source_kafka_config *config, struct source_kafka **out,
                        struct error *error)
{
    ASSERT(config != NULL);
    ASSERT(out != NULL);
    ASSERT(config->client != NULL && config->source != NULL);
    ASSERT(config->lane_index < config->lane_count);
    ASSERT(kafka_client_config(config->client)->sources_max <= SOURCE_KAFKA_PARTITIONS_MAX);
    const uint32_t topics = config->source->topic_count;
    struct source_kafka *source = calloc(1, sizeof(*source));
    *out = source;
    if (source == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    source->records.ops = &source_kafka_ops;
    source->client = config->client;
    source->plan = config->source;
    source->lane_index = config->lane_index;
    source->lane_count = config->lane_count;
    source->positions = config->positions;
    source->position_count = config->position_count;
    source->restored_reset = config->restored_reset;
    source->topics_left = topics;
    source->topic_indexes = calloc(topics, sizeof(*source->topic_indexes));
    source->topic_partitions = calloc(topics, sizeof(*source->topic_partitions));
    source->partitions = calloc(SOURCE_KAFKA_PARTITIONS_MAX, sizeof(*source->partitions));
    source->partition_of_source =
        calloc(SOURCE_KAFKA_PARTITIONS_MAX, sizeof(*source->partition_of_source));
    const bool has_headers = config->source->on_error == PLAN_ON_ERROR_DEAD_LETTER;
    source->headers = has_headers ? calloc(SOURCE_KAFKA_HEADERS, sizeof(*source->headers)) : NULL;
    int status = 0;
    if ((has_headers && source->headers == NULL) || source->topic_indexes == NULL ||
        source->topic_partitions == NULL || source->partitions == NULL ||
        source->partition_of_source == NULL) {
        status = error_set(error, -ENOMEM, "out of memory");
    } else {
        status = name_topics(source, error);
    }
    if (status != 0) {
        source_kafka_destroy(source);
        *out = NULL;
    }
    return status;
}

void source_kafka_destroy(struct source_kafka *source)
{
    if (source == NULL) {
        return;
    }
    free(source->restored);
    free(source->topic_indexes);
    free(source->topic_partitions);
    free(source->partitions);
    free(source->partition_of_source);
    free(source->headers);
    free(source);
}

struct record_source *source_kafka_records(struct source_kafka *source)
{
    ASSERT(source->partition_count <= SOURCE_KAFKA_PARTITIONS_MAX);
    return &source->records;
}

bool source_kafka_has_failed(const struct source_kafka *source, int16_t *error_code)
{
    ASSERT(source->partition_count <= SOURCE_KAFKA_PARTITIONS_MAX);
    for (uint32_t i = 0; i < source->partition_count; i++) {
        struct kafka_source_status status;
        kafka_client_source_status(source->client, source->partitions[i].client_index, &status);
        if (status.state == KAFKA_SOURCE_FAILED) {
            *error_code = status.error_code;
            return true;
        }
    }
    return false;
}

uint32_t source_kafka_progress(const struct source_kafka *source,
                               struct source_kafka_progress *into, uint32_t max)
{
    ASSERT(source->partition_count <= SOURCE_KAFKA_PARTITIONS_MAX);
    uint32_t count = 0;
    for (; count < source->partition_count && count < max; count++) {
        const struct partition *partition = &source->partitions[count];
        struct kafka_source_status status;
        kafka_client_source_status(source->client, partition->client_index, &status);
        into[count] = (struct source_kafka_progress){
            .topic = partition->topic,
            .partition = partition->number,
            .position = status.position,
            .high_watermark = status.high_watermark,
        };
    }
    return count;
}
