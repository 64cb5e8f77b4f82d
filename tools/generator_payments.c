/* SPDX-License-Identifier: Apache-2.0 */
/* Payments for the fraud job. A card has a home country, a device and an amount that is usual for
 * it, all drawn from its number, so only its last time is kept. Out of 1,000 payments some come
 * from abroad, from another device, or in bursts at large amounts: there is something to find. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "tools/generator.h"
#include "tools/generator_internal.h"

#define LABEL_PAYMENT    1
#define LABEL_CARD       2
#define MERCHANTS        5000
#define IDLE_ONE_IN      2000 /* payments that come from an idle card */
#define ABROAD_ONE_IN    40
#define DEVICE_ONE_IN    60
#define LARGE_ONE_IN     200
#define BURST_ONE_IN     400
#define BURST_LENGTH_MAX 6

struct generator_payments {
    struct generator_payments_config config;
    uint64_t payment_origin;
    uint64_t card_origin;
    uint64_t next_id;
    uint32_t idle_cards; /* the last numbers */
    uint32_t busy_cards; /* the first numbers */
    uint32_t burst_card;
    uint32_t burst_left;
    double interval_ms;
    struct time_cache time;
    int64_t *last_ms; /* one a card; INT64_MIN: none yet */
};

static const char *const COUNTRIES[] = {"DE", "FR", "GB", "US", "ES", "IT", "PL", "NL",
                                        "SE", "AT", "CH", "BE", "PT", "IE", "DK", "FI"};

int generator_payments_create(const struct generator_payments_config *config,
                              struct generator_payments **out)
{
    ASSERT(config->idle_percent <= 100 && config->ties_percent <= 100);
    ASSERT(config != NULL && config->cards >= 1 && config->rate > 0 && out != NULL);
    struct generator_payments *generator = calloc(1, sizeof(*generator));
    *out = NULL;
    if (generator == NULL) {
        return -ENOMEM;
    }
    generator->config = *config;
    generator->payment_origin = generator_mix(config->seed + LABEL_PAYMENT * GENERATOR_GAMMA);
    generator->card_origin = generator_mix(config->seed + LABEL_CARD * GENERATOR_GAMMA);
    generator->idle_cards = (uint32_t)((uint64_t)config->cards * config->idle_percent / 100);
    const uint32_t active = config->cards - generator->idle_cards;
    generator->busy_cards = active < 10 ? active : active / 10;
    generator->interval_ms = 1000.0 / config->rate;
    generator->last_ms = malloc(config->cards * sizeof(*generator->last_ms));
    if (generator->last_ms == NULL) {
        free(generator);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < config->cards; i++) {
        generator->last_ms[i] = INT64_MIN;
    }
    *out = generator;
    return 0;
}

void generator_payments_destroy(struct generator_payments *generator)
{
    if (generator != NULL) {
        free(generator->last_ms);
        free(generator);
    }
}

/* Half of the payments come from the busy cards; bursts repeat one card. */
static uint32_t draw_card(struct generator_payments *generator, struct draw *draw)
{
    ASSERT(generator->idle_cards <= generator->config.cards);
    ASSERT(generator->busy_cards <= generator->config.cards);
    const uint32_t active = generator->config.cards - generator->idle_cards;
    const bool idle = draw_below(draw, IDLE_ONE_IN) == 0;
    if (generator->burst_left != 0) {
        generator->burst_left--;
        return generator->burst_card;
    }
    if (active == 0 || (idle && generator->idle_cards != 0)) {
        return active + (uint32_t)draw_below(draw, generator->idle_cards);
    }
    const bool busy = draw_below(draw, 2) == 0 && generator->busy_cards != 0;
    const uint32_t card = (uint32_t)draw_below(draw, busy ? generator->busy_cards : active);
    if (draw_below(draw, BURST_ONE_IN) == 0) {
        generator->burst_card = card;
        generator->burst_left = 1 + (uint32_t)draw_below(draw, BURST_LENGTH_MAX);
    }
    return card;
}

/* Later than the card's last payment, except where disorder or a tie is asked for. */
static int64_t draw_time(struct generator_payments *generator, struct draw *draw, uint32_t card)
{
    const struct generator_payments_config *config = &generator->config;
    ASSERT(card < generator->config.cards);
    int64_t *last = &generator->last_ms[card];
    int64_t ms =
        config->start_ms + (int64_t)floor((double)generator->next_id * generator->interval_ms);
    if (config->ties_percent != 0 && draw_below(draw, 100) < config->ties_percent &&
        *last != INT64_MIN) {
        return *last;
    }
    if (config->disorder_ms != 0) {
        ms -= (int64_t)draw_below(draw, (uint64_t)config->disorder_ms + 1);
    } else if (*last != INT64_MIN && ms <= *last) {
        ms = *last + 1;
    }
    *last = ms;
    return ms;
}

/* Cents: about the card's own, at times much more. */
static uint64_t draw_cents(struct draw *draw, uint64_t traits)
{
    ASSERT_SLOW(draw != NULL);
    const uint64_t usual = 300 + (traits >> 8 & 0x1fff);
    const uint64_t cents = usual / 2 + draw_below(draw, usual);
    return draw_below(draw, LARGE_ONE_IN) == 0 ? cents * (5 + draw_below(draw, 40)) : cents;
}

static uint8_t *put_card(uint8_t *into, uint32_t card)
{
    into = PUT_LITERAL(into, "4000-0");
    into = put_padded(into, card / 10000000, 3);
    ASSERT_SLOW(into != NULL);
    *into++ = '-';
    into = put_padded(into, card / 1000 % 10000, 4);
    *into++ = '-';
    return PUT_LITERAL(put_padded(into, card % 1000, 3), "7");
}

static uint8_t *put_hex(uint8_t *into, uint64_t value, uint32_t digits)
{
    ASSERT(digits <= 16);
    static const char HEX[] = "0123456789abcdef";
    for (uint32_t i = digits; i-- > 0;) {
        into[i] = (uint8_t)HEX[value & 15];
        value >>= 4;
    }
    return into + digits;
}

/* What a payment carries besides the columns of the job. */
static uint8_t *put_wide_members(uint8_t *into, uint64_t drawn, uint64_t traits)
{
    static const char *const ENTRY[] = {"chip", "contactless", "stripe", "online"};
    const char *entry = ENTRY[drawn >> 62];
    into = put_hex(PUT_LITERAL(into, ",\"terminal\":\"T-"), drawn, 8);
    into = put_padded(PUT_LITERAL(into, "\",\"mcc\":"), 1000 + (uint32_t)(drawn >> 20 & 0xfff), 4);
    into = PUT_LITERAL(into, ",\"currency\":\"EUR\",\"entry\":\"");
    into = put_span(into, entry, strlen(entry));
    into = put_unsigned(PUT_LITERAL(into, "\",\"ip\":\"198.18."), drawn >> 32 & 255);
    into = put_unsigned(PUT_LITERAL(into, "."), drawn >> 40 & 255);
    into = put_hex(PUT_LITERAL(into, "\",\"auth\":\""), drawn ^ traits, 12);
    ASSERT_SLOW(into != NULL);
    return PUT_LITERAL(into, "\",\"recurring\":false,\"installments\":null");
}

size_t generator_payments_line(struct generator_payments *generator,
                               struct generator_payment *payment, uint8_t *into)
{
    ASSERT(generator != NULL && into != NULL);
    uint8_t *at = into;
    struct draw draw = draw_start(generator->payment_origin, generator->next_id);
    const uint32_t card = draw_card(generator, &draw);
    const uint64_t traits = generator_mix(generator->card_origin + card);
    const int64_t ms = draw_time(generator, &draw, card);
    const uint64_t id = generator->config.first_id + generator->next_id++;
    const uint64_t cents = draw_cents(&draw, traits);
    const bool abroad = draw_below(&draw, ABROAD_ONE_IN) == 0;
    const bool other_device = draw_below(&draw, DEVICE_ONE_IN) == 0;
    const uint64_t drawn = draw_next(&draw);
    const uint64_t country = (abroad ? drawn : traits) >> 4 & 15;
    at = put_unsigned(PUT_LITERAL(at, "{\"id\":"), id);
    at = put_card(PUT_LITERAL(at, ",\"card\":\""), card);
    at = put_padded(PUT_LITERAL(at, "\",\"merchant\":\"m-"), (uint32_t)draw_below(&draw, MERCHANTS),
                    5);
    at = put_unsigned(PUT_LITERAL(at, "\",\"amount\":"), cents / 100);
    *at++ = '.';
    at = put_padded(at, (uint32_t)(cents % 100), 2);
    at = put_span(PUT_LITERAL(at, ",\"country\":\""), COUNTRIES[country], 2);
    at = put_hex(PUT_LITERAL(at, "\",\"device\":\"d-"), other_device ? drawn : traits, 12);
    at = put_time(&generator->time, ms, PUT_LITERAL(at, "\",\"ts\":\""));
    *at++ = '"';
    if (generator->config.wide) {
        at = put_wide_members(at, drawn, traits);
    }
    *at++ = '}';
    ASSERT((size_t)(at - into) <= GENERATOR_LINE_BYTES_MAX);
    if (payment != NULL) {
        *payment = (struct generator_payment){.id = id, .card = card, .time_ms = ms};
    }
    return (size_t)(at - into);
}
