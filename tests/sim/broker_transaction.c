/* SPDX-License-Identifier: Apache-2.0 */
/* The scripted cluster's transaction coordinators, protocol version 1, as Kafka's own are: an id's
 * state outlives its coordinator, InitProducerId fences and aborts what is open, EndTxn answers
 * once it is prepared, and markers follow partition by partition, late by chance.
 *
 *     EMPTY -AddPartitions-> ONGOING -EndTxn-> PREPARE_x -all markers-> COMPLETE_x -> ONGOING
 *                               | InitProducerId or timeout: epoch + 1, PREPARE_ABORT
 *
 * Source: KIP-98, KIP-360. */
#include <stdlib.h>

#include "tests/sim/broker_feed.h"
#include "tests/sim/broker_in.h"

#define NS_PER_MS             UINT64_C(1000000)
#define ATTRIBUTE_TXN         0x10
#define ATTRIBUTE_CONTROL     0x20
#define CODE_NOT_COORDINATOR  16
#define CODE_LOADING          14
#define CODE_NOT_AVAILABLE    15
#define CODE_EPOCH            47
#define CODE_TXN_STATE        48
#define CODE_ID_MAPPING       49
#define CODE_CONCURRENT       51
#define MARKER_BYTES_OF_VALUE 6

static bool is_prepared(const struct broker_transaction *transaction)
{
    return transaction->state == BROKER_TXN_PREPARE_COMMIT ||
           transaction->state == BROKER_TXN_PREPARE_ABORT;
}

static struct broker_transaction *find(struct broker *broker, struct span id)
{
    for (uint32_t i = 0; i < broker->transaction_count; i++) {
        struct broker_transaction *transaction = &broker->transactions[i];
        if (strlen(transaction->id) == id.bytes &&
            memcmp(transaction->id, id.data, id.bytes) == 0) {
            return transaction;
        }
    }
    return NULL;
}

/* An id has a coordinator before anybody asks for a producer. */
static struct broker_transaction *find_or_add(struct broker *broker, struct span id)
{
    struct broker_transaction *transaction = find(broker, id);
    if (transaction == NULL) {
        ASSERT(broker->transaction_count < BROKER_IDS_MAX);
        ASSERT(id.bytes > 0 && id.bytes < BROKER_ID_BYTES);
        transaction = &broker->transactions[broker->transaction_count++];
        *transaction = (struct broker_transaction){
            .producer_id = -1,
            .epoch = -1,
            .coordinator = (uint32_t)(broker_random(broker) % broker->config.nodes),
        };
        memcpy(transaction->id, id.data, id.bytes);
    }
    return transaction;
}

static void update_stable(struct broker_partition *partition)
{
    partition->stable_offset = -1;
    for (uint32_t i = 0; i < partition->open_count; i++) {
        const int64_t first = partition->open[i].first_offset;
        if (partition->stable_offset < 0 || first < partition->stable_offset) {
            partition->stable_offset = first;
        }
    }
}

static void store_marker(struct broker_partition *partition,
                         const struct broker_transaction *transaction, int64_t *offset)
{
    const uint8_t value[MARKER_BYTES_OF_VALUE] = {0};
    struct bytes records = {0};
    struct bytes batch = {0};
    bytes_varint(&records, 1 + 1 + 1 + 1 + 4 + 1 + MARKER_BYTES_OF_VALUE + 1);
    bytes_i8(&records, 0);
    bytes_varint(&records, 0);
    bytes_varint(&records, 0);
    bytes_varint(&records, 4);
    bytes_i16(&records, 0);
    bytes_i16(&records, transaction->state == BROKER_TXN_PREPARE_COMMIT ? 1 : 0);
    bytes_varint(&records, MARKER_BYTES_OF_VALUE);
    bytes_put(&records, value, MARKER_BYTES_OF_VALUE);
    bytes_varint(&records, 0);
    const struct feed_header header = {.attributes = ATTRIBUTE_CONTROL | ATTRIBUTE_TXN,
                                       .producer_id = transaction->producer_id,
                                       .producer_epoch = transaction->epoch,
                                       .base_sequence = -1,
                                       .record_count = 1};
    feed_build(&header, (struct span){records.data, records.count}, &batch);
    *offset = broker_log_append(partition, (struct span){batch.data, batch.count}, 0)->base_offset;
    bytes_free(&records);
    bytes_free(&batch);
}

static void write_marker(struct broker_partition *partition,
                         const struct broker_transaction *transaction)
{
    int64_t marker;
    store_marker(partition, transaction, &marker);
    broker_log_marked(partition, transaction->producer_id, transaction->epoch);
    for (uint32_t i = 0; i < partition->open_count; i++) {
        const struct broker_open open = partition->open[i];
        if (open.producer_id != transaction->producer_id) {
            continue;
        }
        partition->open[i] = partition->open[--partition->open_count];
        if (transaction->state == BROKER_TXN_PREPARE_ABORT) {
            partition->aborted = realloc(partition->aborted, (partition->aborted_count + 1) *
                                                                 sizeof(struct broker_aborted));
            partition->aborted[partition->aborted_count++] =
                (struct broker_aborted){transaction->producer_id, open.first_offset, marker};
        }
        break;
    }
    update_stable(partition);
}

static void move_on(struct broker *broker, struct broker_transaction *transaction)
{
    bool is_waiting = false;
    for (uint32_t t = 0; t < broker->topic_count; t++) {
        for (uint32_t p = 0; p < broker->topics[t].partition_count; p++) {
            if (!transaction->is_added[t][p]) {
                continue;
            }
            if (broker_chance(broker, broker->config.faults.marker)) {
                is_waiting = true;
                continue;
            }
            write_marker(&broker->topics[t].partitions[p], transaction);
            transaction->is_added[t][p] = false;
        }
    }
    if (!is_waiting) {
        transaction->state = transaction->state == BROKER_TXN_PREPARE_COMMIT
                                 ? BROKER_TXN_COMPLETE_COMMIT
                                 : BROKER_TXN_COMPLETE_ABORT;
    }
}

/* The holder of the old epoch can do no more; what it has open is aborted under the new one. */
static void fence(struct broker_transaction *transaction)
{
    ASSERT(transaction->state == BROKER_TXN_ONGOING);
    transaction->epoch++;
    transaction->state = BROKER_TXN_PREPARE_ABORT;
}

void broker_transactions_step(struct broker *broker)
{
    for (uint32_t i = 0; i < broker->transaction_count; i++) {
        struct broker_transaction *transaction = &broker->transactions[i];
        if (broker_chance(broker, broker->config.faults.coordinator)) {
            transaction->coordinator = (uint32_t)(broker_random(broker) % broker->config.nodes);
        }
        if (transaction->state == BROKER_TXN_ONGOING &&
            broker->now_ns > transaction->began_ns + transaction->timeout_ns) {
            broker->expired_count++;
            fence(transaction);
        }
        if (is_prepared(transaction)) {
            move_on(broker, transaction);
        }
    }
}

int16_t broker_transaction_check(struct broker *broker, const struct broker_partition *partition,
                                 struct span batch)
{
    if (batch.bytes < 61 || (batch.data[22] & ATTRIBUTE_TXN) == 0) {
        return 0;
    }
    const int64_t producer_id = (int64_t)load_be64(batch.data + 43);
    const int16_t epoch = (int16_t)load_be16(batch.data + 51);
    for (uint32_t i = 0; i < broker->transaction_count; i++) {
        const struct broker_transaction *transaction = &broker->transactions[i];
        if (transaction->producer_id != producer_id) {
            continue;
        }
        for (uint32_t t = 0; t < broker->topic_count; t++) {
            const struct broker_partition *first = broker->topics[t].partitions;
            const bool is_here =
                partition >= first && partition < first + broker->topics[t].partition_count;
            if (is_here && transaction->is_added[t][partition - first]) {
                return 0;
            }
        }
        /* One that was fenced may come late; it finds the marker there, and its epoch too low. */
        if (epoch == transaction->epoch && transaction->state == BROKER_TXN_ONGOING) {
            broker->malformed_count++;
        }
        return epoch < transaction->epoch ? CODE_EPOCH : CODE_TXN_STATE;
    }
    broker->malformed_count++;
    return CODE_ID_MAPPING;
}

void broker_transaction_stored(struct broker_partition *partition, int64_t producer_id,
                               int64_t base_offset)
{
    for (uint32_t i = 0; i < partition->open_count; i++) {
        if (partition->open[i].producer_id == producer_id) {
            return;
        }
    }
    ASSERT(partition->open_count < BROKER_IDS_MAX);
    partition->open[partition->open_count++] = (struct broker_open){producer_id, base_offset};
    update_stable(partition);
}

bool broker_is_committed(const struct broker_partition *partition, uint32_t batch_index)
{
    ASSERT(batch_index < partition->batch_count);
    const uint64_t producer = load_be64(partition->batches[batch_index].data + 43);
    for (uint32_t i = batch_index + 1; i < partition->batch_count; i++) {
        const struct broker_batch *batch = &partition->batches[i];
        if ((batch->data[22] & ATTRIBUTE_CONTROL) != 0 && load_be64(batch->data + 43) == producer) {
            /* Behind the header and length, attributes, two deltas and the key's length. */
            return load_be16(batch->data + 61 + 1 + 1 + 1 + 1 + 1 + 2) == 1;
        }
    }
    return false;
}

/* ---- Requests ---- */

static int16_t coordinator_code(struct broker *broker, const struct broker_transaction *transaction,
                                uint32_t node)
{
    static const int16_t codes[] = {CODE_LOADING, CODE_NOT_AVAILABLE, CODE_CONCURRENT, 7, -1, 999};
    if (transaction->coordinator != node) {
        return CODE_NOT_COORDINATOR;
    }
    if (broker_chance(broker, broker->config.faults.error)) {
        return codes[broker_random(broker) % COUNT_OF(codes)];
    }
    return 0;
}

static void answer_find(struct broker *broker, struct in *in, struct bytes *out)
{
    const struct span id = in_string(in);
    if (in_int(in, 1) != 1) {
        in->bad = true;
        return;
    }
    const struct broker_transaction *transaction = find_or_add(broker, id);
    const bool is_away = broker->now_ns < broker->away_until_ns[transaction->coordinator] ||
                         broker_chance(broker, broker->config.faults.error);
    char host[16] = "node-";
    host[5] = (char)('1' + transaction->coordinator);
    bytes_i32(out, 0);
    bytes_i16(out, is_away ? CODE_NOT_AVAILABLE : 0);
    bytes_i16(out, -1);
    bytes_i32(out, is_away ? -1 : (int32_t)transaction->coordinator + 1);
    bytes_string(out, is_away ? "" : host);
    bytes_i32(out, is_away ? -1 : BROKER_PORT);
}

static int16_t init(struct broker *broker, struct broker_transaction *transaction,
                    int32_t timeout_ms)
{
    if (is_prepared(transaction)) {
        return CODE_CONCURRENT;
    }
    if (transaction->state == BROKER_TXN_ONGOING) {
        fence(transaction);
        return CODE_CONCURRENT;
    }
    if (transaction->producer_id < 0) {
        transaction->producer_id = broker->next_producer_id++;
    }
    transaction->epoch++;
    transaction->state = BROKER_TXN_EMPTY;
    transaction->timeout_ns = (uint64_t)timeout_ms * NS_PER_MS;
    return 0;
}

static void answer_init(struct broker *broker, uint32_t node, struct in *in, struct bytes *out)
{
    const int64_t bytes = in_int(in, 1) - 1; /* compact: short ids only */
    const struct span id = in_sized(in, bytes);
    const int32_t timeout_ms = (int32_t)in_int(in, 4);
    const int64_t producer_id = in_int(in, 8);
    const int64_t epoch = in_int(in, 2);
    if (in->bad || producer_id != -1 || epoch != -1) {
        in->bad = true;
        return;
    }
    struct broker_transaction *transaction = find_or_add(broker, id);
    int16_t code = coordinator_code(broker, transaction, node);
    code = code == 0 ? init(broker, transaction, timeout_ms) : code;
    bytes_i8(out, 0); /* the flexible response header's tags */
    bytes_i32(out, 0);
    bytes_i16(out, code);
    bytes_i64(out, code == 0 ? transaction->producer_id : -1);
    bytes_i16(out, code == 0 ? transaction->epoch : -1);
    bytes_i8(out, 0);
}

/* What every request that names a producer is asked first. */
static int16_t check_producer(struct broker *broker, struct broker_transaction *transaction,
                              uint32_t node, struct in *in)
{
    const int64_t producer_id = in_int(in, 8);
    const int16_t epoch = (int16_t)in_int(in, 2);
    if (transaction == NULL) {
        return CODE_ID_MAPPING;
    }
    const int16_t code = coordinator_code(broker, transaction, node);
    if (code != 0) {
        return code;
    }
    if (transaction->producer_id != producer_id) {
        return CODE_ID_MAPPING;
    }
    return transaction->epoch == epoch ? 0 : CODE_EPOCH;
}

static void add_partition(struct broker *broker, struct broker_transaction *transaction,
                          struct broker_topic *topic, int64_t partition)
{
    ASSERT(topic != NULL && partition >= 0 && partition < topic->partition_count);
    if (transaction->state != BROKER_TXN_ONGOING) {
        transaction->state = BROKER_TXN_ONGOING;
        transaction->began_ns = broker->now_ns;
    }
    transaction->is_added[topic - broker->topics][partition] = true;
}

static void answer_add(struct broker *broker, uint32_t node, struct in *in, struct bytes *out)
{
    struct broker_transaction *transaction = find(broker, in_string(in));
    int16_t code = check_producer(broker, transaction, node, in);
    if (code == 0 && is_prepared(transaction)) {
        code = CODE_CONCURRENT;
    }
    const int64_t topics = in_int(in, 4);
    bytes_i32(out, 0);
    bytes_i32(out, (int32_t)topics);
    for (int64_t i = 0; i < topics && !in->bad; i++) {
        const struct span name = in_string(in);
        const int64_t count = in_int(in, 4);
        bytes_i16(out, (int16_t)name.bytes);
        bytes_put(out, name.data, name.bytes);
        bytes_i32(out, (int32_t)count);
        for (int64_t k = 0; k < count && !in->bad; k++) {
            const int64_t partition = in_int(in, 4);
            if (code == 0) {
                add_partition(broker, transaction, broker_find_topic(broker, name), partition);
            }
            bytes_i32(out, (int32_t)partition);
            bytes_i16(out, code);
        }
    }
}

static int16_t end(struct broker_transaction *transaction, bool is_commit)
{
    switch (transaction->state) {
    case BROKER_TXN_ONGOING:
        transaction->state = is_commit ? BROKER_TXN_PREPARE_COMMIT : BROKER_TXN_PREPARE_ABORT;
        return 0;
    case BROKER_TXN_PREPARE_COMMIT:
        return is_commit ? CODE_CONCURRENT : CODE_TXN_STATE;
    case BROKER_TXN_PREPARE_ABORT:
        return is_commit ? CODE_TXN_STATE : CODE_CONCURRENT;
    case BROKER_TXN_COMPLETE_COMMIT:
        return is_commit ? 0 : CODE_TXN_STATE;
    case BROKER_TXN_COMPLETE_ABORT:
        return is_commit ? CODE_TXN_STATE : 0;
    default:
        return CODE_TXN_STATE;
    }
}

static void answer_end(struct broker *broker, uint32_t node, struct in *in, struct bytes *out)
{
    struct broker_transaction *transaction = find(broker, in_string(in));
    int16_t code = check_producer(broker, transaction, node, in);
    const bool is_commit = in_int(in, 1) != 0;
    if (code == 0 && !in->bad) {
        code = end(transaction, is_commit);
    }
    bytes_i32(out, 0);
    bytes_i16(out, code);
}

int broker_answer_transaction(struct broker *broker, uint32_t node, int64_t key, struct span body,
                              struct bytes *out)
{
    struct in in = {.at = body.data, .end = body.data + body.bytes};
    switch (key) {
    case 10:
        answer_find(broker, &in, out);
        break;
    case 22:
        answer_init(broker, node, &in, out);
        (void)in_int(&in, 1); /* no tags */
        break;
    case 24:
        answer_add(broker, node, &in, out);
        break;
    default:
        ASSERT(key == 26);
        answer_end(broker, node, &in, out);
    }
    if (in.bad || in.at != in.end) {
        broker->malformed_count++;
        return -1;
    }
    return key != 10 && broker_chance(broker, broker->config.faults.lose_answer) ? -1 : 0;
}
