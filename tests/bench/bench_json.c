/* SPDX-License-Identifier: Apache-2.0 */
/* How fast one core decodes JSON into rows and encodes rows as JSON, in process. The payments are
 * those of `penstock load payments --wide` (some 300 bytes, 15 members), of which the table reads
 * eight; the records lie one behind the other in a block larger than the caches, as fetched
 * batches do. The bids are Nexmark's, through nested ROW columns.
 *
 * Each figure is the best of several passes over the same block, in time on the processor: what
 * others take of a shared core does not count, though their use of its other thread shows. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "dataplane/format/decoder.h"
#include "dataplane/format/encoder.h"
#include "tests/dataplane/format/table.h"
#include "tools/generator.h"

#define RECORDS      100000
#define PASSES       7
#define PARCEL_BYTES 8192

struct block {
    uint8_t *bytes;
    struct span *records;
    size_t used;
};

/* Of this thread, on the processor. */
static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void block_init(struct block *block)
{
    block->bytes = malloc((size_t)RECORDS * 1024);
    block->records = calloc(RECORDS, sizeof(*block->records));
    block->used = 0;
    if (block->bytes == NULL || block->records == NULL) {
        abort();
    }
}

static void block_add(struct block *block, uint32_t index, size_t bytes)
{
    block->records[index] = (struct span){block->bytes + block->used, bytes};
    block->used += bytes;
}

static void block_fini(struct block *block)
{
    free(block->bytes);
    free(block->records);
}

static void fill_payments(struct block *block)
{
    struct generator_payments *generator;
    const struct generator_payments_config config = {
        .seed = 1, .cards = 100000, .rate = 10000, .start_ms = 1700000000000, .wide = true};
    if (generator_payments_create(&config, &generator) != 0) {
        abort();
    }
    for (uint32_t i = 0; i < RECORDS; i++) {
        block_add(block, i, generator_payments_line(generator, NULL, block->bytes + block->used));
    }
    generator_payments_destroy(generator);
}

static void fill_bids(struct block *block)
{
    struct generator_nexmark *generator;
    const struct generator_nexmark_config config = {
        .seed = 1, .rate = 10000, .start_ms = 1700000000000};
    if (generator_nexmark_create(&config, &generator) != 0) {
        abort();
    }
    uint64_t n = 2;
    for (uint32_t i = 0; i < RECORDS; i++, n++) {
        n += n % 50 < 4 ? 4 - n % 50 : 0;
        block_add(block, i, generator_nexmark_line(generator, n, block->bytes + block->used));
    }
    generator_nexmark_destroy(generator);
}

/* Decodes all records into parcels, over and over; returns the rows of one pass. */
static uint64_t decode_pass(struct decoder *decoder, const struct block *block)
{
    uint64_t parcel[PARCEL_BYTES / 8];
    uint64_t rows = 0;
    size_t used = 0;
    for (uint32_t i = 0; i < RECORDS; i++) {
        const struct record record = {.value = block->records[i], .key_is_null = true};
        enum decoder_verdict verdict = decoder_begin(decoder, &record, 0, 0);
        while (verdict == DECODER_OK || verdict == DECODER_ROW || verdict == DECODER_FULL) {
            used = verdict == DECODER_FULL ? 0 : used;
            const struct span_mut into = {(uint8_t *)parcel + used, PARCEL_BYTES - used};
            verdict = decoder_next(decoder, into);
            if (verdict == DECODER_ROW) {
                used += ((const struct row *)(const void *)into.data)->bytes;
                rows++;
            }
        }
        if (verdict == DECODER_BAD) {
            (void)fprintf(stderr, "%s\n", decoder_reason(decoder));
            abort();
        }
    }
    return rows;
}

static void report(const char *name, double best, size_t bytes)
{
    (void)printf("%-44s %6.2f M records/s %8.0f MB/s %6.0f ns\n", name, RECORDS / best / 1e6,
                 (double)bytes / best / 1e6, best / RECORDS * 1e9);
}

static void bench_decode(const char *name, const struct block *block, const char *columns)
{
    struct table table;
    struct decoder *decoder;
    double best = 1e9;
    table_init(&table, columns);
    const struct decoder_config config = {.source = &table.source, .record_bytes_max = 65536};
    if (decoder_create(&config, &decoder, NULL) != 0) {
        abort();
    }
    for (uint32_t pass = 0; pass < PASSES; pass++) {
        const double start = seconds();
        if (decode_pass(decoder, block) != RECORDS) {
            abort();
        }
        const double took = seconds() - start;
        best = took < best ? took : best;
    }
    report(name, best, block->used);
    decoder_destroy(decoder);
    table_fini(&table);
}

/* Encodes one decoded row again and again, as all cost is in the row's own bytes. */
static void bench_encode(const struct block *block, const char *columns)
{
    struct table table;
    struct decoder *decoder;
    struct encoder *encoder;
    uint64_t row[512];
    uint8_t text[2048];
    struct plan_sink_field fields[TABLE_FIELDS_MAX];
    double best = 1e9;
    size_t bytes = 0;
    table_init(&table, columns);
    const struct decoder_config config = {.source = &table.source, .record_bytes_max = 65536};
    for (uint32_t i = 0; i < table.source.field_count; i++) {
        fields[i] = (struct plan_sink_field){
            .name = table.paths[i][0], .column = i, .type = table.types[i]};
    }
    const struct plan_sink sink = {
        .value_format = {.format = PLAN_FORMAT_JSON, .decimal_as_plain_number = true},
        .value_fields = fields,
        .value_field_count = table.source.field_count,
    };
    const struct record record = {.value = block->records[0]};
    if (decoder_create(&config, &decoder, NULL) != 0 ||
        encoder_create(&sink, &table.source.decoded, &encoder, NULL) != 0 ||
        decoder_begin(decoder, &record, 0, 0) != DECODER_OK ||
        decoder_next(decoder, (struct span_mut){(uint8_t *)row, sizeof(row)}) != DECODER_ROW) {
        abort();
    }
    for (uint32_t pass = 0; pass < PASSES; pass++) {
        const double start = seconds();
        for (uint32_t i = 0; i < RECORDS; i++) {
            const struct span_mut into = {text, sizeof(text)};
            if (encoder_value(encoder, (const struct row *)row, into, &bytes) != ENCODER_OK) {
                abort();
            }
        }
        const double took = seconds() - start;
        best = took < best ? took : best;
    }
    report("encode payment, 8 columns", best, bytes * RECORDS);
    encoder_destroy(encoder);
    decoder_destroy(decoder);
    table_fini(&table);
}

int main(void)
{
    static const char EIGHT[] = "id BIGINT, card STRING, merchant STRING, amount DECIMAL(12,2), "
                                "country STRING, device STRING, ts TIMESTAMP, mcc INT";
    struct block block;
    block_init(&block);
    fill_payments(&block);
    (void)printf("payments of %.0f bytes\n", (double)block.used / RECORDS);
    bench_decode("decode payment, 8 of 15 members", &block, EIGHT);
    bench_decode("decode payment, 2 of 15 members", &block,
                 "id BIGINT, -card STRING, -merchant STRING, amount DECIMAL(12,2)");
    bench_encode(&block, EIGHT);
    block.used = 0;
    fill_bids(&block);
    bench_decode("decode Nexmark bid, 5 of 7 nested members", &block,
                 "event_type INT, bid.auction BIGINT, bid.bidder BIGINT, bid.price BIGINT, "
                 "bid.channel STRING, -bid.url STRING, bid.dateTime TIMESTAMP, -bid.extra STRING, "
                 "-person.id BIGINT, -auction.id BIGINT");
    block_fini(&block);
    return 0;
}
