/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of the four transaction requests and their responses.
 *
 *   FindCoordinator v2     key string, type i8 (1 transaction)
 *                       -> throttle i32, error i16, message string, node i32, host string, port i32
 *   InitProducerId v3      id compact, timeout i32, producer i64, epoch i16, tags
 *                       -> throttle i32, error i16, producer i64, epoch i16, tags
 *   AddPartitionsToTxn v1  id, producer i64, epoch i16, [topic: name, [partition i32]]
 *                       -> throttle i32, [topic: name, [partition i32, error i16]]
 *   EndTxn v1              id, producer i64, epoch i16, commit i8
 *                       -> throttle i32, error i16
 *
 * Source: Kafka's message schemas of these versions. */
#include "dataplane/kafka/error_code.h"
#include "dataplane/kafka/transaction.h"

#define KEY_IS_TRANSACTION  1
#define TOPIC_BYTES_MIN     6
#define PARTITION_BYTES_MIN 6

void kafka_write_find_coordinator(struct kafka_writer *writer, const char *id)
{
    ASSERT(id[0] != 0);
    kafka_write_string(writer, kafka_span_of(id));
    kafka_write_i8(writer, KEY_IS_TRANSACTION);
}

/* -1 and -1 ask for whatever comes next: the epoch kept here may be older than the coordinator's,
 * and fencing the holder of the newest one is the purpose. */
void kafka_write_init_transaction(struct kafka_writer *writer, const char *id, uint32_t timeout_ms)
{
    ASSERT(id[0] != 0);
    kafka_write_compact_string(writer, kafka_span_of(id));
    kafka_write_i32(writer, (int32_t)timeout_ms);
    kafka_write_i64(writer, -1);
    kafka_write_i16(writer, -1);
    kafka_write_uvarint(writer, 0);
}

static void write_producer(struct kafka_writer *writer, const struct kafka_transaction *transaction)
{
    ASSERT(transaction->id[0] != 0);
    kafka_write_string(writer, kafka_span_of(transaction->id));
    kafka_write_i64(writer, transaction->producer_id);
    kafka_write_i16(writer, transaction->producer_epoch);
}

static bool is_wanted(const struct kafka_sink *sink, uint32_t topic_index)
{
    return sink->topic_index == topic_index && kafka_produce_wants_adding(sink);
}

static void write_topic(struct kafka_writer *writer, const struct kafka_produce *produce,
                        uint32_t topic_index, uint32_t partition_count)
{
    const struct kafka_topic *topic = &produce->core->metadata.topics[topic_index];
    kafka_write_string(
        writer, (struct span){.data = (const uint8_t *)topic->name, .bytes = topic->name_bytes});
    kafka_write_i32(writer, (int32_t)partition_count);
    for (uint32_t i = 0; i < produce->sink_count; i++) {
        if (is_wanted(&produce->sinks[i], topic_index)) {
            kafka_write_i32(writer, produce->sinks[i].partition);
        }
    }
}

void kafka_write_add_partitions(struct kafka_writer *writer,
                                const struct kafka_transaction *transaction)
{
    const struct kafka_produce *produce = transaction->produce;
    uint32_t *want = produce->topic_want;
    uint32_t topics = 0;
    memset(want, 0, produce->core->metadata.topic_count * sizeof(*want));
    for (uint32_t i = 0; i < produce->sink_count; i++) {
        const struct kafka_sink *sink = &produce->sinks[i];
        if (kafka_produce_wants_adding(sink)) {
            topics += want[sink->topic_index]++ == 0;
        }
    }
    ASSERT(topics > 0);
    write_producer(writer, transaction);
    kafka_write_i32(writer, (int32_t)topics);
    for (uint32_t i = 0; i < produce->core->metadata.topic_count; i++) {
        if (want[i] > 0) {
            write_topic(writer, produce, i, want[i]);
        }
    }
}

void kafka_write_end_transaction(struct kafka_writer *writer,
                                 const struct kafka_transaction *transaction, bool is_commit)
{
    ASSERT(transaction->producer_id >= 0);
    write_producer(writer, transaction);
    kafka_write_i8(writer, is_commit);
}

/* A code that says why outranks one that says only "because of another". */
static void note_code(struct kafka_transaction_answer *answer, int16_t code)
{
    ASSERT_SLOW(answer != NULL);
    if (answer->code == 0 || answer->code == KAFKA_ERROR_OPERATION_NOT_ATTEMPTED) {
        answer->code = code == 0 ? answer->code : code;
    }
}

/* Walked twice: to learn whether all were added, and to mark them. */
static void read_partitions(struct kafka_produce *produce, struct kafka_reader *reader, bool mark,
                            struct kafka_transaction_answer *out)
{
    const uint32_t topic_count = kafka_read_array(reader, TOPIC_BYTES_MIN);
    for (uint32_t i = 0; i < topic_count && !reader->bad; i++) {
        const struct span topic = kafka_read_string(reader);
        const uint32_t count = kafka_read_array(reader, PARTITION_BYTES_MIN);
        for (uint32_t k = 0; k < count && !reader->bad; k++) {
            const int32_t partition = kafka_read_i32(reader);
            note_code(out, kafka_read_i16(reader));
            if (mark && !reader->bad) {
                kafka_produce_mark_added(produce, topic, partition);
            }
        }
    }
}

bool kafka_read_transaction_answer(struct kafka_produce *produce, enum kafka_api api,
                                   struct span body, struct kafka_transaction_answer *out)
{
    struct kafka_reader reader = kafka_reader_of(body);
    *out = (struct kafka_transaction_answer){.throttle_ms = kafka_read_i32(&reader),
                                             .node_id = -1,
                                             .producer_id = -1,
                                             .producer_epoch = -1};
    if (api == KAFKA_API_ADD_PARTITIONS_TO_TXN) {
        struct kafka_reader again = reader;
        read_partitions(produce, &reader, false, out);
        if (!reader.bad && reader.at == reader.bytes && out->code == 0) {
            read_partitions(produce, &again, true, out);
        }
        return !reader.bad && reader.at == reader.bytes;
    }
    out->code = kafka_read_i16(&reader);
    if (api == KAFKA_API_FIND_COORDINATOR) {
        (void)kafka_read_string(&reader);
        out->node_id = kafka_read_i32(&reader);
        (void)kafka_read_string(&reader);
        (void)kafka_read_i32(&reader);
        reader.bad |= out->code == 0 && out->node_id < 0;
    } else if (api == KAFKA_API_INIT_PRODUCER_ID) {
        out->producer_id = kafka_read_i64(&reader);
        out->producer_epoch = kafka_read_i16(&reader);
        kafka_read_tags(&reader);
        reader.bad |= out->code == 0 && (out->producer_id < 0 || out->producer_epoch < 0);
    } else {
        ASSERT(api == KAFKA_API_END_TXN);
    }
    return !reader.bad && reader.at == reader.bytes;
}
