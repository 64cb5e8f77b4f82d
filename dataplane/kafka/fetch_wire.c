/* SPDX-License-Identifier: Apache-2.0 */
/* Fetch v11 response:
 *   throttle i32, error i16, session i32, [topic: name, [partition: index i32, error i16, high
 *   watermark i64, last stable i64, log start i64, [aborted: producer i64, first offset i64],
 *   preferred replica i32, records]] */
#include "dataplane/kafka/fetch_wire.h"

#define PARTITION_BYTES_MIN 42

struct kafka_fetch_cursor kafka_fetch_cursor_of(struct span body)
{
    ASSERT_SLOW(body.data != NULL || body.bytes == 0);
    struct kafka_reader reader = kafka_reader_of(body);
    struct kafka_fetch_cursor cursor = {0};
    cursor.throttle_ms = kafka_read_i32(&reader);
    cursor.error_code = kafka_read_i16(&reader);
    (void)kafka_read_i32(&reader); /* session: none is asked for */
    cursor.topics_left = kafka_read_array(&reader, KAFKA_FETCH_TOPIC_BYTES_MIN);
    cursor.at = reader.at;
    cursor.bad = reader.bad;
    ASSERT(cursor.at <= body.bytes);
    return cursor;
}

static bool next_topic(struct kafka_fetch_cursor *cursor, struct kafka_reader *reader)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    while (cursor->partitions_left == 0) {
        if (cursor->topics_left == 0) {
            return false;
        }
        cursor->topics_left--;
        struct span name = kafka_read_string(reader);
        cursor->partitions_left = kafka_read_array(reader, PARTITION_BYTES_MIN);
        if (reader->bad || name.data == NULL) {
            reader->bad = true;
            return false;
        }
        cursor->topic_at = (size_t)(name.data - reader->data);
        cursor->topic_bytes = name.bytes;
    }
    return true;
}

static void read_entry(struct kafka_reader *reader, struct kafka_fetch_entry *out)
{
    ASSERT_SLOW(reader->at <= reader->bytes);
    ASSERT_SLOW(out != NULL);
    out->partition = kafka_read_i32(reader);
    out->error_code = kafka_read_i16(reader);
    out->high_watermark = kafka_read_i64(reader);
    out->last_stable_offset = kafka_read_i64(reader);
    (void)kafka_read_i64(reader); /* log start */
    out->aborted_count = kafka_read_array(reader, KAFKA_ABORTED_ENTRY_BYTES);
    out->aborted_at = reader->at;
    (void)kafka_read_raw(reader, (size_t)out->aborted_count * KAFKA_ABORTED_ENTRY_BYTES);
    (void)kafka_read_i32(reader); /* preferred replica: no rack is sent, so none is due */
    struct span records = kafka_read_bytes(reader);
    out->records_bytes = records.bytes;
    out->records_at = reader->at - records.bytes;
}

bool kafka_fetch_cursor_next(struct kafka_fetch_cursor *cursor, struct span body,
                             struct kafka_fetch_entry *out)
{
    ASSERT_SLOW(cursor != NULL);
    ASSERT_SLOW(body.data != NULL || body.bytes == 0);
    ASSERT(cursor->at <= body.bytes);
    if (cursor->bad) {
        return false;
    }
    struct kafka_reader reader = {.data = body.data, .bytes = body.bytes, .at = cursor->at};
    bool has_one = next_topic(cursor, &reader);
    if (has_one) {
        cursor->partitions_left--;
        read_entry(&reader, out);
        out->topic =
            (struct span){.data = body.data + cursor->topic_at, .bytes = cursor->topic_bytes};
    }
    cursor->at = reader.at;
    cursor->bad = reader.bad;
    return has_one && !reader.bad;
}

bool kafka_fetch_is_well_formed(struct span body)
{
    ASSERT_SLOW(body.data != NULL || body.bytes == 0);
    struct kafka_fetch_cursor cursor = kafka_fetch_cursor_of(body);
    struct kafka_fetch_entry entry;
    while (kafka_fetch_cursor_next(&cursor, body, &entry)) {
        ASSERT(entry.records_at + entry.records_bytes <= body.bytes);
    }
    return !cursor.bad && cursor.at == body.bytes;
}
