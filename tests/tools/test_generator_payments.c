/* SPDX-License-Identifier: Apache-2.0 */
/* Payments keep what they promise: the order per card, ties and disorder only when asked for, the
 * size, one line of JSON that the decoder reads. */
#include "tools/generator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dataplane/format/decoder.h"
#include "tests/dataplane/format/table.h"

#define PAYMENTS 20000
#define CARDS    500

struct counts {
    uint32_t ties;
    uint32_t backward;
    uint32_t idle_payments;
    uint64_t bytes;
    uint32_t of_card[CARDS];
};

static void run(const struct generator_payments_config *config, struct counts *counts)
{
    uint8_t line[GENERATOR_LINE_BYTES_MAX];
    int64_t last_ms[CARDS];
    struct generator_payments *generator;
    memset(counts, 0, sizeof(*counts));
    memset(last_ms, 0, sizeof(last_ms));
    assert_int_equal(generator_payments_create(config, &generator), 0);
    for (uint64_t i = 0; i < PAYMENTS; i++) {
        struct generator_payment payment;
        counts->bytes += generator_payments_line(generator, &payment, line);
        assert_int_equal(payment.id, i);
        assert_true(payment.card < config->cards);
        counts->ties +=
            counts->of_card[payment.card] != 0 && payment.time_ms == last_ms[payment.card];
        counts->backward += payment.time_ms < last_ms[payment.card];
        counts->of_card[payment.card]++;
        counts->idle_payments +=
            payment.card >= config->cards - config->cards * config->idle_percent / 100;
        last_ms[payment.card] = payment.time_ms;
    }
    generator_payments_destroy(generator);
}

static void test_line_when_default_then_times_rise_per_card(void **state)
{
    (void)state;
    struct counts counts;
    const struct generator_payments_config config = {
        .seed = 5, .cards = CARDS, .rate = 50000, .start_ms = 1000, .idle_percent = 20};
    run(&config, &counts);
    assert_int_equal(counts.ties, 0);
    assert_int_equal(counts.backward, 0);
    assert_in_range(counts.idle_payments, 1, PAYMENTS / 500);
    uint32_t busy = 0;
    for (uint32_t i = 0; i < CARDS * 8 / 100; i++) {
        busy += counts.of_card[i];
    }
    assert_in_range(busy, PAYMENTS * 45 / 100, PAYMENTS * 65 / 100);
}

static void test_line_when_asked_then_ties_and_disorder(void **state)
{
    (void)state;
    struct counts counts;
    struct generator_payments_config config = {
        .seed = 5, .cards = CARDS, .rate = 100, .start_ms = 1000, .ties_percent = 10};
    run(&config, &counts);
    assert_in_range(counts.ties, PAYMENTS * 8 / 100, PAYMENTS * 12 / 100);
    assert_int_equal(counts.backward, 0);
    config.ties_percent = 0;
    config.disorder_ms = 60000;
    run(&config, &counts);
    assert_true(counts.backward > PAYMENTS / 20);
}

static void test_line_when_wide_then_some_300_bytes(void **state)
{
    (void)state;
    struct counts counts;
    const struct generator_payments_config config = {
        .seed = 1, .cards = CARDS, .rate = 1000, .start_ms = 1700000000000, .wide = true};
    run(&config, &counts);
    assert_in_range(counts.bytes / PAYMENTS, 290, 310);
}

static void test_line_when_decoded_then_every_column_is_there(void **state)
{
    (void)state;
    uint8_t line[GENERATOR_LINE_BYTES_MAX];
    uint64_t row[512];
    struct table table;
    struct decoder *decoder;
    struct generator_payments *generator;
    table_init(&table, "id BIGINT, card STRING, merchant STRING, amount DECIMAL(12,2), "
                       "country STRING, device STRING, ts TIMESTAMP");
    const struct decoder_config decoder_config = {.source = &table.source,
                                                  .record_bytes_max = 65536};
    const struct generator_payments_config config = {
        .seed = 9, .cards = CARDS, .rate = 0.01, .start_ms = 1700000000000, .wide = true};
    assert_int_equal(decoder_create(&decoder_config, &decoder, NULL), 0);
    assert_int_equal(generator_payments_create(&config, &generator), 0);
    for (uint32_t i = 0; i < 1000; i++) {
        struct generator_payment payment;
        const size_t bytes = generator_payments_line(generator, &payment, line);
        const struct record record = {.value = {line, bytes}, .key_is_null = true};
        assert_int_equal(decoder_begin(decoder, &record, 0, 0), DECODER_OK);
        assert_int_equal(decoder_next(decoder, (struct span_mut){(uint8_t *)row, sizeof(row)}),
                         DECODER_ROW);
        const struct row *decoded = (const struct row *)row;
        for (uint32_t column = 0; column < 7; column++) {
            assert_false(row_is_null(decoded, column));
        }
        assert_int_equal(row_i64(&table.source.decoded, decoded, 0), payment.id);
        assert_int_equal(row_value(&table.source.decoded, decoded, 6).timestamp.ms,
                         payment.time_ms);
    }
    generator_payments_destroy(generator);
    decoder_destroy(decoder);
    table_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_when_default_then_times_rise_per_card),
        cmocka_unit_test(test_line_when_asked_then_ties_and_disorder),
        cmocka_unit_test(test_line_when_wide_then_some_300_bytes),
        cmocka_unit_test(test_line_when_decoded_then_every_column_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
