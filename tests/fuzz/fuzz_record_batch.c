/* SPDX-License-Identifier: Apache-2.0 */
/* Record batches and codecs from arbitrary bytes: the header, the records (decompressed by the
 * codec that the attributes name, and by the one that the first byte picks), record headers, and
 * the control marker. Nothing may be read outside the input or written outside the buffer. */
#include <stdlib.h>

#include "dataplane/kafka/batch.h"
#include "dataplane/kafka/codec.h"

#define DECODED_BYTES_MAX (1 << 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_records(const struct kafka_batch *batch, struct span records)
{
    struct kafka_reader reader = kafka_reader_of(records);
    struct kafka_batch_record record;
    for (int32_t i = 0; i < batch->record_count; i++) {
        if (!kafka_batch_record_next(batch, &reader, &record)) {
            ASSERT(reader.bad);
            return;
        }
        struct span rest = record.headers;
        uint32_t left = record.header_count;
        struct kafka_header header;
        uint32_t count = 0;
        while (kafka_header_next(&rest, &left, &header)) {
            count++;
        }
        ASSERT(count == record.header_count && rest.bytes == 0);
    }
}

static void expand(struct kafka_codec *codec, uint8_t kind, struct span in,
                   const struct kafka_batch *batch)
{
    uint8_t *into = malloc(DECODED_BYTES_MAX);
    size_t made = 0;
    struct span_mut room = {.data = into, .bytes = DECODED_BYTES_MAX};
    if (kafka_codec_decompress(codec, kind, in, room, &made) == KAFKA_CODEC_OK) {
        ASSERT(made <= DECODED_BYTES_MAX);
        read_records(batch, (struct span){.data = into, .bytes = made});
    }
    free(into);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    uint8_t *memory = aligned_alloc(64, kafka_codec_bytes());
    struct kafka_codec *codec = kafka_codec_init(memory);
    struct span in = {.data = data + 1, .bytes = size - 1};
    struct kafka_batch batch;
    const struct kafka_batch any = {.last_offset_delta = INT32_MAX, .record_count = INT32_MAX};
    expand(codec, data[0] & 7, in, &any);
    while (kafka_batch_parse(in, &batch) == KAFKA_BATCH_OK) {
        ASSERT(batch.total_bytes <= in.bytes);
        (void)kafka_batch_crc_is_good((struct span){.data = in.data, .bytes = batch.total_bytes});
        if (batch.is_control) {
            (void)kafka_batch_control(&batch);
        }
        expand(codec, batch.codec, batch.records, &batch);
        in.data += batch.total_bytes;
        in.bytes -= batch.total_bytes;
    }
    free(memory);
    return 0;
}
