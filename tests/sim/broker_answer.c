/* SPDX-License-Identifier: Apache-2.0 */
/* The scripted cluster's answers: parses requests with its own small reader and writes responses,
 * with error codes, gaps and lies by chance. */
#include "tests/sim/broker_in.h"

/* The codes that a broker might answer a fetch or a query with, and some that it never should. */
static int16_t random_code(struct broker *broker)
{
    static const int16_t codes[] = {-1, 3,  5,  6,  7,  9,  13, 14, 15, 16, 41,  51,  56,  70, 71,
                                    72, 74, 75, 78, 80, 83, 84, 88, 89, 99, 100, 103, 106, 999};
    return codes[broker_random(broker) % COUNT_OF(codes)];
}

static int32_t throttle(struct broker *broker)
{
    if (!broker_chance(broker, broker->config.faults.throttle)) {
        return 0;
    }
    return (int32_t)(broker_random(broker) % 30);
}

static struct broker_partition *partition_of(struct broker_topic *topic, int64_t index)
{
    if (topic == NULL || index < 0 || index >= topic->partition_count) {
        return NULL;
    }
    return &topic->partitions[index];
}

/* The code that a node gives for a partition before looking at the request's contents. */
static int16_t leader_code(const struct broker_partition *partition, uint32_t node, int64_t epoch)
{
    if (partition == NULL) {
        return 3;
    }
    if (partition->leader != node) {
        return 6;
    }
    if (epoch >= 0 && epoch < partition->epoch) {
        return 74;
    }
    return epoch > partition->epoch ? 75 : 0;
}

static void put_versions(struct broker *broker, struct bytes *out, bool is_flexible)
{
    const int16_t rows[][3] = {
        {0, 3, 12}, {1, 4, 17}, {2, 1, 10}, {3, 0, broker->config.metadata_version_max},
        {10, 0, 4}, {18, 0, 4}, {22, 0, 5}, {24, 0, 3},
        {26, 0, 3}, {99, 0, 1},
    };
    if (is_flexible) {
        bytes_i8(out, (int8_t)(COUNT_OF(rows) + 1));
    } else {
        bytes_i32(out, (int32_t)COUNT_OF(rows));
    }
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (int k = 0; k < 3; k++) {
            bytes_i16(out, rows[i][k]);
        }
        if (is_flexible) {
            bytes_i8(out, 0);
        }
    }
    bytes_i32(out, 0);
    if (is_flexible) {
        /* One tagged field, of a tag that nobody knows. */
        const uint8_t tags[] = {1, 77, 2, 0xAA, 0xBB};
        bytes_put(out, tags, sizeof(tags));
    }
}

static int answer_versions(struct broker *broker, int16_t version, struct bytes *out)
{
    if (version >= 3 && broker->config.versions == BROKER_VERSIONS_CLOSE) {
        return -1;
    }
    if (version >= 3 && broker->config.versions == BROKER_VERSIONS_BROKEN) {
        bytes_i16(out, 35);
        bytes_i8(out, 1);
        return 0;
    }
    if (version >= 3 && broker->config.versions == BROKER_VERSIONS_OLD) {
        bytes_i16(out, 35);
        bytes_i32(out, 1);
        bytes_i16(out, 18);
        bytes_i16(out, 0);
        bytes_i16(out, 2);
        return 0;
    }
    bytes_i16(out, 0);
    put_versions(broker, out, version >= 3);
    return 0;
}

static void put_nodes(struct bytes *out, uint32_t node)
{
    bytes_i32(out, 1);
    bytes_i32(out, (int32_t)node);
}

static void put_partition(struct broker *broker, struct bytes *out, int16_t version,
                          const struct broker_partition *partition, uint32_t index)
{
    bool forgets = broker_chance(broker, broker->config.faults.forget);
    bytes_i16(out, forgets ? 5 : 0);
    bytes_i32(out, (int32_t)index);
    bytes_i32(out, forgets ? -1 : (int32_t)partition->leader + 1);
    if (version >= 7) {
        bytes_i32(out, partition->epoch);
    }
    put_nodes(out, partition->leader + 1);
    put_nodes(out, partition->leader + 1);
    if (version >= 5) {
        bytes_i32(out, 0);
    }
}

static void put_topic(struct broker *broker, struct bytes *out, int16_t version, struct span name)
{
    struct broker_topic *topic = broker_find_topic(broker, name);
    bool forgets = broker_chance(broker, broker->config.faults.forget);
    if (topic == NULL || forgets) {
        bytes_i16(out, 3);
        bytes_i16(out, (int16_t)name.bytes);
        bytes_put(out, name.data, name.bytes);
        bytes_i8(out, 0);
        bytes_i32(out, 0);
        return;
    }
    bytes_i16(out, 0);
    bytes_string(out, topic->name);
    bytes_i8(out, 0);
    uint32_t count = topic->partition_count;
    if (broker_chance(broker, broker->config.faults.forget)) {
        count -= 1;
    }
    bytes_i32(out, (int32_t)count);
    for (uint32_t i = 0; i < count; i++) {
        put_partition(broker, out, version, &topic->partitions[i], i);
    }
}

static int answer_metadata(struct broker *broker, int16_t version, struct in *in, struct bytes *out)
{
    ASSERT(version >= 2 && version <= broker->config.metadata_version_max);
    if (version >= 3) {
        bytes_i32(out, 0);
    }
    uint32_t nodes = broker->config.nodes;
    if (broker_chance(broker, broker->config.faults.forget)) {
        nodes = 0;
    }
    bytes_i32(out, (int32_t)nodes);
    for (uint32_t i = 0; i < nodes; i++) {
        char host[16] = "node-";
        host[5] = (char)('1' + i);
        bytes_i32(out, (int32_t)i + 1);
        bytes_string(out, host);
        bytes_i32(out, BROKER_PORT);
        bytes_i16(out, -1);
    }
    bytes_string(out, "cluster");
    bytes_i32(out, 1);
    int64_t count = in_int(in, 4);
    bytes_i32(out, (int32_t)count);
    for (int64_t i = 0; i < count && !in->bad; i++) {
        struct span name = in_string(in);
        put_topic(broker, out, version, name);
    }
    return in->bad ? -1 : 0;
}

static int64_t find_offset(const struct broker_partition *partition, int64_t timestamp,
                           bool committed)
{
    if (timestamp == -1) {
        return committed && partition->stable_offset >= 0 ? partition->stable_offset
                                                          : partition->next_offset;
    }
    if (timestamp == -2) {
        return partition->start_offset;
    }
    for (uint32_t i = 0; i < partition->batch_count; i++) {
        if (partition->batches[i].max_timestamp >= timestamp) {
            return partition->batches[i].base_offset;
        }
    }
    return -1;
}

static int answer_offsets(struct broker *broker, uint32_t node, struct in *in, struct bytes *out)
{
    (void)in_int(in, 4);
    bool committed = in_int(in, 1) != 0;
    int64_t topics = in_int(in, 4);
    bytes_i32(out, throttle(broker));
    bytes_i32(out, (int32_t)topics);
    for (int64_t i = 0; i < topics && !in->bad; i++) {
        struct span name = in_string(in);
        struct broker_topic *topic = broker_find_topic(broker, name);
        bytes_i16(out, (int16_t)name.bytes);
        bytes_put(out, name.data, name.bytes);
        int64_t count = in_int(in, 4);
        bytes_i32(out, (int32_t)count);
        for (int64_t k = 0; k < count && !in->bad; k++) {
            int64_t index = in_int(in, 4);
            int64_t timestamp = in_int(in, 8);
            struct broker_partition *partition = partition_of(topic, index);
            int16_t code = leader_code(partition, node, -1);
            if (code == 0 && broker_chance(broker, broker->config.faults.error)) {
                code = random_code(broker);
            }
            bytes_i32(out, (int32_t)index);
            bytes_i16(out, code);
            bytes_i64(out, -1);
            bytes_i64(out, code == 0 ? find_offset(partition, timestamp, committed) : -1);
        }
    }
    return in->bad ? -1 : 0;
}

static int answer_producer_id(struct broker *broker, struct in *in, struct bytes *out)
{
    (void)in_int(in, 1); /* transactional id: null */
    (void)in_int(in, 4);
    int64_t id = in_int(in, 8);
    int64_t epoch = in_int(in, 2);
    int16_t code = 0;
    if (broker_chance(broker, broker->config.faults.error)) {
        code = broker_random(broker) % 2 ? 14 : 15;
    }
    bool is_bump = id >= 0 && epoch < 32766;
    bytes_i8(out, 0); /* the flexible response header's tags */
    bytes_i32(out, throttle(broker));
    bytes_i16(out, code);
    bytes_i64(out, code != 0 ? -1 : is_bump ? id : broker->next_producer_id++);
    bytes_i16(out, code != 0 ? -1 : is_bump ? (int16_t)(epoch + 1) : 0);
    bytes_i8(out, 0);
    return in->bad ? -1 : 0;
}

/* The first batch that reaches an offset: batches lie in order. */
static uint32_t find_batch(const struct broker_partition *partition, int64_t offset)
{
    uint32_t low = 0;
    uint32_t high = partition->batch_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (partition->batches[middle].last_offset < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The bytes of batches from an offset on, as a broker cuts them. */
static void put_records(struct broker *broker, const struct broker_partition *partition,
                        int64_t offset, int64_t end, size_t limit, bool is_first, struct bytes *out)
{
    for (uint32_t i = find_batch(partition, offset); i < partition->batch_count; i++) {
        const struct broker_batch *batch = &partition->batches[i];
        if (batch->base_offset >= end || out->count >= limit) {
            break;
        }
        size_t bytes = batch->bytes;
        bool is_whole_first = is_first && out->count == 0;
        if (!is_whole_first && out->count + bytes > limit) {
            bytes = limit - out->count;
        }
        size_t at = out->count;
        bytes_put(out, batch->data, bytes);
        if (bytes > 62 && broker_chance(broker, broker->config.faults.flip)) {
            out->data[at + 21 + broker_random(broker) % (bytes - 21)] ^= 1;
        }
    }
}

struct fetch {
    bool committed;
    bool has_error;
    size_t total;
    size_t bytes_max;
};

static void put_aborted(const struct broker_partition *partition, int64_t offset, struct bytes *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < partition->aborted_count; i++) {
        count += partition->aborted[i].last_offset >= offset;
    }
    bytes_i32(out, (int32_t)count);
    for (uint32_t i = partition->aborted_count; i-- > 0;) { /* unsorted, as some brokers do */
        if (partition->aborted[i].last_offset >= offset) {
            bytes_i64(out, partition->aborted[i].producer_id);
            bytes_i64(out, partition->aborted[i].first_offset);
        }
    }
}

static void fetch_partition(struct broker *broker, uint32_t node, struct broker_topic *topic,
                            struct in *in, struct fetch *fetch, struct bytes *out)
{
    int64_t index = in_int(in, 4);
    int64_t epoch = in_int(in, 4);
    int64_t offset = in_int(in, 8);
    (void)in_int(in, 8);
    size_t limit = (size_t)in_int(in, 4);
    struct broker_partition *partition = partition_of(topic, index);
    int16_t code = leader_code(partition, node, epoch);
    if (code == 0 && (offset < partition->start_offset || offset > partition->next_offset)) {
        code = 1;
    }
    if (code == 0 && broker_chance(broker, broker->config.faults.error)) {
        code = random_code(broker);
    }
    bytes_i32(out, (int32_t)index);
    bytes_i16(out, code);
    if (code != 0) {
        fetch->has_error = true;
        bytes_i64(out, -1);
        bytes_i64(out, -1);
        bytes_i64(out, -1);
        bytes_i32(out, -1);
        bytes_i32(out, -1);
        bytes_i32(out, -1);
        return;
    }
    int64_t stable =
        partition->stable_offset < 0 ? partition->next_offset : partition->stable_offset;
    int64_t end = fetch->committed ? stable : partition->next_offset;
    struct bytes records = {0};
    if (fetch->total < fetch->bytes_max) {
        put_records(broker, partition, offset, end, limit, fetch->total == 0, &records);
    }
    fetch->total += records.count;
    bytes_i64(out, partition->next_offset);
    bytes_i64(out, stable);
    bytes_i64(out, partition->start_offset);
    if (fetch->committed && records.count > 0) {
        put_aborted(partition, offset, out);
    } else {
        bytes_i32(out, -1);
    }
    bytes_i32(out, -1);
    bytes_i32(out, (int32_t)records.count);
    bytes_put(out, records.data, records.count);
    bytes_free(&records);
}

uint32_t broker_fetch_wait_ms(struct span request)
{
    struct in in = {.at = request.data, .end = request.data + request.bytes};
    if (in_int(&in, 2) != 1) {
        return 0;
    }
    (void)in_int(&in, 6);
    (void)in_string(&in);
    (void)in_int(&in, 4);
    return (uint32_t)in_int(&in, 4);
}

int broker_answer_fetch(struct broker *broker, uint32_t node, struct span body, bool may_wait,
                        struct bytes *out)
{
    struct in in = {.at = body.data, .end = body.data + body.bytes};
    (void)in_int(&in, 12);
    struct fetch fetch = {.bytes_max = (size_t)in_int(&in, 4)};
    fetch.committed = in_int(&in, 1) != 0;
    (void)in_int(&in, 8);
    size_t start = out->count;
    int32_t throttle_ms = throttle(broker);
    bytes_i32(out, throttle_ms);
    bytes_i16(out, 0);
    bytes_i32(out, 0);
    int64_t topics = in_int(&in, 4);
    if (throttle_ms > 0) { /* a throttled full fetch is empty */
        bytes_i32(out, 0);
        return 0;
    }
    bytes_i32(out, (int32_t)topics);
    for (int64_t i = 0; i < topics && !in.bad; i++) {
        struct span name = in_string(&in);
        bytes_i16(out, (int16_t)name.bytes);
        bytes_put(out, name.data, name.bytes);
        int64_t count = in_int(&in, 4);
        bytes_i32(out, (int32_t)count);
        for (int64_t k = 0; k < count && !in.bad; k++) {
            fetch_partition(broker, node, broker_find_topic(broker, name), &in, &fetch, out);
        }
    }
    if (in_int(&in, 4) != 0 || in_string(&in).bytes != 0 || in.bad || in.at != in.end) {
        broker->malformed_count++;
        return -1;
    }
    if (fetch.total == 0 && !fetch.has_error && may_wait) {
        out->count = start;
        return 1;
    }
    return 0;
}

/* Codes before the append, and codes after it, as brokers do. */
static int16_t produce_partition(struct broker *broker, uint32_t node,
                                 struct broker_partition *partition, struct span batch,
                                 int64_t *base_offset)
{
    static const int16_t before[] = {2, 3, 5, 6, 19, 74, 75, 89};
    static const int16_t after[] = {7, 20, 13, -1, 9, 56, 14, 999};
    int16_t code = leader_code(partition, node, -1);
    if (code == 0 && broker_chance(broker, broker->config.faults.sequence)) {
        static const int16_t sequence[] = {45, 59, 47};
        return sequence[broker_random(broker) % COUNT_OF(sequence)];
    }
    bool has_error = broker_chance(broker, broker->config.faults.error);
    if (code == 0 && has_error && broker_random(broker) % 2) {
        code = before[broker_random(broker) % COUNT_OF(before)];
    }
    if (code != 0) {
        return code;
    }
    if (broker_chance(broker, broker->config.faults.expire)) {
        partition->producer_count = 0; /* as a restarted broker does with producers of old times */
    }
    if (broker_chance(broker, broker->config.faults.shorten)) {
        broker_log_shorten(partition);
    }
    code = broker_transaction_check(broker, partition, batch);
    if (code != 0) {
        return code;
    }
    code = broker_log_produce(broker, partition, batch, base_offset);
    if (code == 0 && has_error) {
        code = after[broker_random(broker) % COUNT_OF(after)];
    }
    return code;
}

int broker_answer_produce(struct broker *broker, uint32_t node, struct span body, struct bytes *out)
{
    struct in in = {.at = body.data, .end = body.data + body.bytes};
    (void)in_string(&in); /* the transactional id: batches say whose they are */
    if (in_int(&in, 2) != -1) {
        broker->malformed_count++;
    }
    (void)in_int(&in, 4);
    int64_t topics = in_int(&in, 4);
    bytes_i32(out, (int32_t)topics);
    for (int64_t i = 0; i < topics && !in.bad; i++) {
        struct span name = in_string(&in);
        struct broker_topic *topic = broker_find_topic(broker, name);
        bytes_i16(out, (int16_t)name.bytes);
        bytes_put(out, name.data, name.bytes);
        int64_t count = in_int(&in, 4);
        bytes_i32(out, (int32_t)count);
        for (int64_t k = 0; k < count && !in.bad; k++) {
            int64_t index = in_int(&in, 4);
            struct span batch = in_sized(&in, in_int(&in, 4));
            int64_t base_offset = -1;
            int16_t code = in.bad ? 0
                                  : produce_partition(broker, node, partition_of(topic, index),
                                                      batch, &base_offset);
            bytes_i32(out, (int32_t)index);
            bytes_i16(out, code);
            bytes_i64(out, code == 0 ? base_offset : -1);
            bytes_i64(out, -1);
            bytes_i64(out, 0);
        }
    }
    bytes_i32(out, throttle(broker));
    if (in.bad || in.at != in.end) {
        broker->malformed_count++;
        return -1;
    }
    return broker_chance(broker, broker->config.faults.lose_answer) ? -1 : 0;
}

int broker_answer(struct broker *broker, uint32_t node, struct span request, bool may_wait,
                  struct bytes *out)
{
    struct in in = {.at = request.data, .end = request.data + request.bytes};
    int64_t key = in_int(&in, 2);
    int16_t version = (int16_t)in_int(&in, 2);
    bytes_i32(out, (int32_t)in_int(&in, 4));
    (void)in_string(&in);
    if (key == 22 || (key == 18 && version >= 3)) {
        (void)in_int(&in, 1); /* no tags */
    }
    ASSERT(!in.bad);
    struct span rest = {.data = in.at, .bytes = (size_t)(in.end - in.at)};
    switch (key) {
    case 0:
        ASSERT(version == 7);
        return broker_answer_produce(broker, node, rest, out);
    case 1:
        ASSERT(version == 11);
        return broker_answer_fetch(broker, node, rest, may_wait, out);
    case 2:
        ASSERT(version == 2);
        return answer_offsets(broker, node, &in, out);
    case 3:
        return answer_metadata(broker, version, &in, out);
    case 18:
        return answer_versions(broker, version, out);
    case 22:
        ASSERT(version == 3);
        if (rest.bytes > 0 && rest.data[0] != 0) { /* a transactional id */
            return broker_answer_transaction(broker, node, key, rest, out);
        }
        return answer_producer_id(broker, &in, out);
    case 10:
        ASSERT(version == 2);
        return broker_answer_transaction(broker, node, key, rest, out);
    case 24:
    case 26:
        ASSERT(version == 1);
        return broker_answer_transaction(broker, node, key, rest, out);
    default:
        broker->malformed_count++;
        return -1;
    }
}
