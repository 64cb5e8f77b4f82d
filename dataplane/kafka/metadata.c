/* SPDX-License-Identifier: Apache-2.0 */
/* Merges Metadata responses into the tables. A broker's index is stable for the client's life;
 * a node that comes back at another address keeps its index.
 *
 *     response v2..v7: [throttle i32 from v3], brokers [node i32, host, port i32, rack],
 *                      cluster id, controller i32, topics [error i16, name, internal i8,
 *                      partitions [error i16, index i32, leader i32, epoch i32 from v7,
 *                      replicas, in-sync replicas, offline replicas from v5]]
 *
 * The numbers below are those of the invariants in metadata.h. */
#include "dataplane/kafka/metadata.h"

#include "dataplane/kafka/error_code.h"

#define BROKER_BYTES_MIN    12
#define TOPIC_BYTES_MIN     9
#define PARTITION_BYTES_MIN 18
#define REPLICA_BYTES       4

/* A linear search: a client has a handful of topics, and only answers come by name. */
int32_t kafka_metadata_find_topic(const struct kafka_metadata *metadata, struct span name)
{
    ASSERT(metadata->broker_count <= metadata->brokers_max);
    ASSERT(metadata->topic_count <= metadata->topics_max);
    for (uint32_t i = 0; i < metadata->topic_count; i++) {
        const struct kafka_topic *topic = &metadata->topics[i];
        if (topic->name_bytes == name.bytes && memcmp(topic->name, name.data, name.bytes) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

/* The table of leaders belongs to the slot and is kept. */
int32_t kafka_metadata_add_topic(struct kafka_metadata *metadata, struct span name)
{
    ASSERT(metadata->broker_count <= metadata->brokers_max);
    ASSERT(name.bytes > 0 && name.bytes < KAFKA_TOPIC_BYTES);
    int32_t found = kafka_metadata_find_topic(metadata, name);
    if (found >= 0 || metadata->topic_count == metadata->topics_max) {
        return found;
    }
    struct kafka_topic *topic = &metadata->topics[metadata->topic_count];
    struct kafka_leader *leaders = topic->leaders;
    ASSERT(leaders != NULL);
    *topic = (struct kafka_topic){.leaders = leaders, .name_bytes = (uint32_t)name.bytes};
    memcpy(topic->name, name.data, name.bytes);
    for (uint32_t i = 0; i < metadata->topic_partitions_max; i++) {
        leaders[i] = (struct kafka_leader){.broker_index = -1, .epoch = -1};
    }
    return (int32_t)metadata->topic_count++;
}

/* The table has entries beyond partition_count, which belong to nobody yet. */
const struct kafka_leader *kafka_metadata_leader(const struct kafka_metadata *metadata,
                                                 uint32_t topic_index, int32_t partition)
{
    ASSERT(metadata->broker_count <= metadata->brokers_max);
    ASSERT(topic_index < metadata->topic_count);
    const struct kafka_topic *topic = &metadata->topics[topic_index];
    if (partition < 0 || partition >= topic->partition_count ||
        topic->leaders[partition].broker_index < 0) {
        return NULL;
    }
    return &topic->leaders[partition];
}

/* Asks for the client's own topics only: a cluster may have ten thousand. */
void kafka_metadata_write(const struct kafka_metadata *metadata, int16_t version,
                          struct kafka_writer *writer)
{
    ASSERT(metadata->broker_count <= metadata->brokers_max);
    ASSERT(metadata->topic_count <= metadata->topics_max);
    ASSERT(version >= KAFKA_METADATA_VERSION_MIN && version <= KAFKA_METADATA_VERSION_MAX);
    kafka_write_i32(writer, (int32_t)metadata->topic_count);
    for (uint32_t i = 0; i < metadata->topic_count; i++) {
        const struct kafka_topic *topic = &metadata->topics[i];
        kafka_write_string(writer, (struct span){.data = (const uint8_t *)topic->name,
                                                 .bytes = topic->name_bytes});
    }
    if (version >= 4) {
        kafka_write_i8(writer, 0); /* a reader does not create topics */
    }
}

static int32_t broker_of_node(const struct kafka_metadata *metadata, int32_t node_id)
{
    ASSERT(metadata->broker_count <= metadata->brokers_max);
    ASSERT(metadata->topic_count <= metadata->topics_max);
    for (uint32_t i = 0; i < metadata->broker_count; i++) {
        if (metadata->brokers[i].node_id == node_id) {
            return (int32_t)i;
        }
    }
    return -1;
}

static void set_address(struct kafka_broker *broker, struct span host, int32_t port)
{
    ASSERT(broker != NULL);
    ASSERT(host.bytes < KAFKA_HOST_BYTES);
    memset(broker->address.host, 0, sizeof(broker->address.host));
    memcpy(broker->address.host, host.data, host.bytes);
    broker->address.port = (uint16_t)port;
    broker->is_complained_about = false;
}

static bool has_address(const struct kafka_broker *broker, struct span host, int32_t port)
{
    return broker->address.port == (uint16_t)port && strlen(broker->address.host) == host.bytes &&
           memcmp(broker->address.host, host.data, host.bytes) == 0;
}

/* Entries are never removed: a broker that is down comes back, and its index may stand in
 * sources and sinks. */
static void merge_broker(struct kafka_metadata *metadata, int32_t node_id, struct span host,
                         int32_t port, struct kafka_metadata_news *news)
{
    ASSERT(metadata->broker_count <= metadata->brokers_max);
    ASSERT(metadata->topic_count <= metadata->topics_max);
    ASSERT_SLOW(host.data != NULL || host.bytes == 0);
    if (node_id < 0 || port <= 0 || port > UINT16_MAX || host.bytes == 0 ||
        host.bytes >= KAFKA_HOST_BYTES) {
        return;
    }
    int32_t index = broker_of_node(metadata, node_id);
    if (index < 0) {
        if (metadata->broker_count == metadata->brokers_max) {
            news->is_incomplete = true;
            return;
        }
        struct kafka_broker *broker = &metadata->brokers[metadata->broker_count++];
        *broker = (struct kafka_broker){.node_id = node_id};
        set_address(broker, host, port);
        metadata->change_count++;
        return;
    }
    struct kafka_broker *broker = &metadata->brokers[index];
    if (!has_address(broker, host, port)) {
        set_address(broker, host, port);
        broker->has_moved = true;
        news->brokers_moved = true;
    }
}

static void read_brokers(struct kafka_metadata *metadata, struct kafka_reader *reader,
                         struct kafka_metadata_news *news)
{
    ASSERT(metadata->broker_count <= metadata->brokers_max);
    ASSERT(metadata->topic_count <= metadata->topics_max);
    ASSERT(reader->at <= reader->bytes);
    uint32_t count = kafka_read_array(reader, BROKER_BYTES_MIN);
    for (uint32_t i = 0; i < count; i++) {
        int32_t node_id = kafka_read_i32(reader);
        struct span host = kafka_read_string(reader);
        int32_t port = kafka_read_i32(reader);
        (void)kafka_read_string(reader); /* rack */
        if (reader->bad) {
            return;
        }
        merge_broker(metadata, node_id, host, port, news);
    }
}

/* One partition as an answer tells it. */
struct partition_entry {
    int16_t error_code;
    int32_t index;
    int32_t leader;
    int32_t epoch;
};

/* The lengths are outside input; read_array has checked them against the bytes left. */
static void skip_nodes(struct kafka_reader *reader)
{
    ASSERT(reader->at <= reader->bytes);
    uint32_t count = kafka_read_array(reader, REPLICA_BYTES);
    (void)kafka_read_raw(reader, (size_t)count * REPLICA_BYTES);
}

static bool read_partition(struct kafka_reader *reader, int16_t version,
                           struct partition_entry *out)
{
    ASSERT(reader->at <= reader->bytes);
    ASSERT(out != NULL);
    out->error_code = kafka_read_i16(reader);
    out->index = kafka_read_i32(reader);
    out->leader = kafka_read_i32(reader);
    out->epoch = version >= 7 ? kafka_read_i32(reader) : -1;
    skip_nodes(reader);
    skip_nodes(reader);
    if (version >= 5) {
        skip_nodes(reader);
    }
    return !reader->bad;
}

/* Invariant 2. */
static bool epoch_is_acceptable(struct kafka_leader *leader, int32_t epoch)
{
    if (epoch < 0 || epoch >= leader->epoch || leader->stale_count >= KAFKA_METADATA_MISSES) {
        leader->stale_count = 0;
        return true;
    }
    leader->stale_count++;
    return false;
}

/* A leader that is not among the brokers of the same answer cannot be dialled: keep the old one
 * and ask again. */
static void merge_leader(struct kafka_metadata *metadata, struct kafka_topic *topic,
                         const struct partition_entry *entry, struct kafka_metadata_news *news)
{
    ASSERT(metadata->broker_count <= metadata->brokers_max);
    ASSERT(metadata->topic_count <= metadata->topics_max);
    ASSERT(entry != NULL);
    if (entry->index < 0 || (uint32_t)entry->index >= metadata->topic_partitions_max) {
        return;
    }
    struct kafka_leader *leader = &topic->leaders[entry->index];
    int32_t broker_index = entry->leader < 0 ? -1 : broker_of_node(metadata, entry->leader);
    if (broker_index < 0) {
        news->is_incomplete = true;
        return;
    }
    if (!epoch_is_acceptable(leader, entry->epoch)) {
        news->is_incomplete = true;
        return;
    }
    if (leader->broker_index != broker_index) {
        if (leader->broker_index >= 0) {
            news->leader_moves++;
            struct kafka_event event = {.code = KAFKA_EVENT_LEADER_MOVED,
                                        .topic_index = (int32_t)(topic - metadata->topics),
                                        .partition = entry->index,
                                        .at_ns = news->now_ns};
            kafka_events_push(news->events, &event, "%s-%d is now led by broker %d", topic->name,
                              entry->index, entry->leader);
        }
        metadata->change_count++;
    }
    leader->broker_index = broker_index;
    leader->epoch = entry->epoch >= 0 ? entry->epoch : leader->epoch;
}

/* One event until the topic is well again. */
static void report_topic(const struct kafka_metadata *metadata, struct kafka_topic *topic,
                         int16_t code, struct kafka_metadata_news *news)
{
    ASSERT(metadata->broker_count <= metadata->brokers_max);
    ASSERT(metadata->topic_count <= metadata->topics_max);
    ASSERT(topic != NULL);
    if (topic->is_reported) {
        return;
    }
    topic->is_reported = true;
    struct kafka_event event = {.code = code == KAFKA_ERROR_TOPIC_AUTHORIZATION_FAILED
                                            ? KAFKA_EVENT_TOPIC_DENIED
                                            : KAFKA_EVENT_TOPIC_MISSING,
                                .topic_index = (int32_t)(topic - metadata->topics),
                                .partition = -1,
                                .error_code = code,
                                .at_ns = news->now_ns};
    kafka_events_push(news->events, &event, "topic %s: the cluster answers %s", topic->name,
                      kafka_error_name(code));
}

/* Invariant 1: an error about a topic that is known must be repeated to count. */
static void note_topic_error(const struct kafka_metadata *metadata, struct kafka_topic *topic,
                             int16_t code, struct kafka_metadata_news *news)
{
    ASSERT(metadata->broker_count <= metadata->brokers_max);
    ASSERT(metadata->topic_count <= metadata->topics_max);
    ASSERT(topic != NULL);
    news->is_incomplete = true;
    topic->error_code = code;
    if (code != KAFKA_ERROR_UNKNOWN_TOPIC_OR_PARTITION && code != KAFKA_ERROR_INVALID_TOPIC &&
        code != KAFKA_ERROR_TOPIC_AUTHORIZATION_FAILED) {
        return;
    }
    topic->miss_count++;
    if (topic->partition_count == 0 || topic->miss_count >= KAFKA_METADATA_MISSES) {
        topic->is_missing = true;
        report_topic(metadata, topic, code, news);
    }
}

/* Part of a topic is never used: keys would be written to other partitions than by everyone else,
 * and records of the rest would not be read. */
static void report_width(const struct kafka_metadata *metadata, struct kafka_topic *topic,
                         uint32_t count, struct kafka_metadata_news *news)
{
    ASSERT(count > metadata->topic_partitions_max);
    ASSERT(news->events != NULL);
    if (topic->is_too_wide) {
        return;
    }
    topic->is_too_wide = true;
    struct kafka_event event = {.code = KAFKA_EVENT_TOPIC_TOO_WIDE,
                                .topic_index = (int32_t)(topic - metadata->topics),
                                .partition = -1,
                                .at_ns = news->now_ns};
    kafka_events_push(news->events, &event, "topic %.100s has %u partitions, there is room for %u",
                      topic->name, count, metadata->topic_partitions_max);
}

/* Topics only grow; a smaller count is an answer of a broker that lags behind. */
static void note_partition_count(struct kafka_metadata *metadata, struct kafka_topic *topic,
                                 uint32_t count, struct kafka_metadata_news *news)
{
    ASSERT(metadata->broker_count <= metadata->brokers_max);
    ASSERT(metadata->topic_count <= metadata->topics_max);
    ASSERT(topic != NULL);
    if (count > metadata->topic_partitions_max) {
        report_width(metadata, topic, count, news);
        return;
    }
    if ((int32_t)count <= topic->partition_count) {
        return;
    }
    if (topic->partition_count > 0) {
        struct kafka_event event = {.code = KAFKA_EVENT_TOPIC_CHANGED,
                                    .topic_index = (int32_t)(topic - metadata->topics),
                                    .partition = -1,
                                    .at_ns = news->now_ns};
        kafka_events_push(news->events, &event, "topic %s grew from %d to %u partitions",
                          topic->name, topic->partition_count, count);
    }
    topic->partition_count = (int32_t)count;
    metadata->change_count++;
}

static void merge_topic(struct kafka_metadata *metadata, struct kafka_topic *topic, int16_t code,
                        uint32_t partition_count, struct kafka_metadata_news *news)
{
    ASSERT(metadata->broker_count <= metadata->brokers_max);
    ASSERT(metadata->topic_count <= metadata->topics_max);
    if (code != 0) {
        note_topic_error(metadata, topic, code, news);
        return;
    }
    topic->error_code = 0;
    topic->miss_count = 0;
    topic->is_missing = false;
    topic->is_reported = false;
    note_partition_count(metadata, topic, partition_count, news);
}

/* A topic that was not asked for is read over: its bytes must be consumed all the same. */
static bool read_topic(struct kafka_metadata *metadata, int16_t version,
                       struct kafka_reader *reader, struct kafka_metadata_news *news)
{
    ASSERT(metadata->broker_count <= metadata->brokers_max);
    ASSERT(metadata->topic_count <= metadata->topics_max);
    ASSERT(reader->at <= reader->bytes);
    int16_t code = kafka_read_i16(reader);
    struct span name = kafka_read_string(reader);
    (void)kafka_read_i8(reader); /* is internal */
    uint32_t count = kafka_read_array(reader, PARTITION_BYTES_MIN);
    if (reader->bad || name.data == NULL) {
        return false;
    }
    int32_t index = kafka_metadata_find_topic(metadata, name);
    struct kafka_topic *topic = index < 0 ? NULL : &metadata->topics[index];
    if (topic != NULL) {
        merge_topic(metadata, topic, code, count, news);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct partition_entry entry;
        if (!read_partition(reader, version, &entry)) {
            return false;
        }
        if (topic != NULL && code == 0) {
            merge_leader(metadata, topic, &entry, news);
        }
    }
    return true;
}

int kafka_metadata_read(struct kafka_metadata *metadata, int16_t version, struct span body,
                        struct kafka_metadata_news *news)
{
    ASSERT(metadata->broker_count <= metadata->brokers_max);
    ASSERT(version >= KAFKA_METADATA_VERSION_MIN && version <= KAFKA_METADATA_VERSION_MAX);
    ASSERT(news->events != NULL);
    struct kafka_reader reader = kafka_reader_of(body);
    if (version >= 3) {
        (void)kafka_read_i32(&reader); /* throttle: Metadata is not throttled by quota */
    }
    read_brokers(metadata, &reader, news);
    (void)kafka_read_string(&reader); /* cluster id */
    (void)kafka_read_i32(&reader);    /* controller */
    uint32_t count = kafka_read_array(&reader, TOPIC_BYTES_MIN);
    for (uint32_t i = 0; i < count; i++) {
        if (!read_topic(metadata, version, &reader, news)) {
            return -1;
        }
    }
    return reader.bad ? -1 : 0;
}
