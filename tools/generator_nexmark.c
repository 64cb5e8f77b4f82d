/* SPDX-License-Identifier: Apache-2.0 */
/* Nexmark events. Event n depends on the arguments and n only; draws are taken in the order in
 * which the reference takes them, and products that it widens to 128 bits are widened here. What
 * many events share is made once: prices' factors, channels with their URLs, padding. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/generator.h"
#include "tools/generator_internal.h"

#define PAD_BYTES      (UINT32_C(1) << 20)
#define NAMED_CHANNELS 10000
#define HOT_CHANNELS   4
#define URL_BYTES      96
#define CHANNEL_BYTES  16

enum label {
    LABEL_EVENT = 1,
    LABEL_NAMED,
    LABEL_HOT,
    LABEL_SHIFT,
    LABEL_PAD,
    LABEL_COUNT,
};

struct channel {
    uint8_t name_bytes;
    uint8_t url_bytes;
    char name[CHANNEL_BYTES];
    char url[URL_BYTES];
};

struct generator_nexmark {
    struct generator_nexmark_config config;
    uint64_t origins[LABEL_COUNT];
    uint64_t powers[4][256];
    struct channel hot[HOT_CHANNELS];
    struct channel named[NAMED_CHANNELS];
    struct time_cache time;
    uint8_t pad[PAD_BYTES];
};

static const char *const FIRST[] = {"Peter", "Paul",  "Luke",  "John",   "Saul",  "Vicky",
                                    "Kate",  "Julie", "Sarah", "Deiter", "Walter"};
static const char *const LAST[] = {"Shultz", "Abrams", "Spencer", "White", "Bartels",
                                   "Walton", "Smith",  "Jones",   "Noris"};
static const char *const CITY[] = {"Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland",
                                   "Bend",    "Redmond",     "Seattle",       "Kent",  "Cheyenne"};
static const char *const STATE[] = {"AZ", "CA", "ID", "OR", "WA", "WY"};
static const char *const HOT[HOT_CHANNELS] = {"Google", "Facebook", "Baidu", "Apple"};

/* floor(sqrt(value)) by Newton's iteration from above. */
static uint64_t root_of(unsigned __int128 value)
{
    ASSERT(value >> 127 == 0);
    if (value == 0) {
        return 0;
    }
    unsigned __int128 root = (unsigned __int128)1 << 64;
    for (;;) {
        const unsigned __int128 next = (root + value / root) / 2;
        if (next >= root) {
            return (uint64_t)root;
        }
        root = next;
    }
}

static uint64_t multiply_shift(uint64_t a, uint64_t b)
{
    return (uint64_t)(((unsigned __int128)a * b) >> 32);
}

/* Tables of 10^(6 u / 2^32) by the bytes of u. */
static void make_powers(struct generator_nexmark *generator)
{
    ASSERT(generator != NULL);
    uint64_t factors[32];
    factors[0] = UINT64_C(1000) << 32;
    for (uint32_t i = 1; i < 32; i++) {
        factors[i] = root_of((unsigned __int128)factors[i - 1] << 32);
    }
    for (uint32_t k = 0; k < 4; k++) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint64_t power = UINT64_C(1) << 32;
            for (uint32_t i = 0; i < 8; i++) {
                if ((byte & (128u >> i)) != 0) {
                    power = multiply_shift(power, factors[8 * k + i]);
                }
            }
            generator->powers[k][byte] = power;
        }
    }
}

static uint64_t draw_price(const struct generator_nexmark *generator, struct draw *draw)
{
    ASSERT_SLOW(draw != NULL);
    const uint32_t u = (uint32_t)(draw_next(draw) >> 32);
    uint64_t p = multiply_shift(generator->powers[0][u >> 24], generator->powers[1][u >> 16 & 255]);
    p = multiply_shift(p, generator->powers[2][u >> 8 & 255]);
    p = multiply_shift(p, generator->powers[3][u & 255]);
    return (uint64_t)(((unsigned __int128)100 * p + (UINT64_C(1) << 31)) >> 32);
}

/* A word of letters and `special`, blanks cut at both ends; returns its bytes. */
static uint32_t draw_word(struct draw *draw, uint32_t limit, uint8_t special, uint8_t *into)
{
    ASSERT(limit > 3);
    ASSERT_SLOW(into != NULL);
    uint8_t drawn[128];
    const uint32_t length = 3 + (uint32_t)draw_below(draw, limit - 3);
    ASSERT(length < sizeof(drawn));
    for (uint32_t i = 0; i < length; i++) {
        const uint64_t x = draw_next(draw);
        const bool is_special = ((x >> 32) * 13) >> 32 == 0;
        const uint8_t letter = (uint8_t)('a' + (((x & UINT32_MAX) * 26) >> 32));
        drawn[i] = is_special ? special : letter;
    }
    uint32_t start = 0;
    uint32_t end = length;
    while (start < end && drawn[start] == ' ') {
        start++;
    }
    while (start < end && drawn[end - 1] == ' ') {
        end--;
    }
    memcpy(into, drawn + start, end - start);
    return end - start;
}

static uint8_t draw_url(struct draw *draw, char into[static URL_BYTES])
{
    ASSERT(draw != NULL);
    uint8_t *at = PUT_LITERAL((uint8_t *)into, "https://www.nexmark.com/");
    for (uint32_t i = 0; i < 3; i++) {
        at += draw_word(draw, 5, '_', at);
        *at++ = '/';
    }
    at = PUT_LITERAL(at, "item.htm?query=1");
    ASSERT(at <= (uint8_t *)into + URL_BYTES);
    return (uint8_t)(at - (uint8_t *)into);
}

/* The absolute value of a number's 32 bits read backwards, as Java has it. */
static uint8_t *put_channel_id(uint8_t *into, uint32_t number)
{
    ASSERT(number < NAMED_CHANNELS);
    uint32_t back = 0;
    for (uint32_t i = 0; i < 32; i++) {
        back = back << 1 | (number >> i & 1);
    }
    if (back == UINT32_C(1) << 31) {
        return PUT_LITERAL(into, "-2147483648");
    }
    return put_unsigned(into, back < UINT32_C(1) << 31 ? back : (uint32_t)(0 - back));
}

/* Names and URLs of all channels, made once. */
static void make_channels(struct generator_nexmark *generator)
{
    ASSERT(generator->origins[LABEL_NAMED] != 0);
    for (uint32_t i = 0; i < HOT_CHANNELS; i++) {
        struct channel *channel = &generator->hot[i];
        struct draw draw = draw_start(generator->origins[LABEL_HOT], i);
        channel->name_bytes = (uint8_t)strlen(HOT[i]);
        memcpy(channel->name, HOT[i], channel->name_bytes);
        channel->url_bytes = draw_url(&draw, channel->url);
    }
    for (uint32_t i = 0; i < NAMED_CHANNELS; i++) {
        struct channel *channel = &generator->named[i];
        struct draw draw = draw_start(generator->origins[LABEL_NAMED], i);
        uint8_t *const name = (uint8_t *)channel->name;
        channel->name_bytes = (uint8_t)(put_unsigned(PUT_LITERAL(name, "channel-"), i) - name);
        channel->url_bytes = draw_url(&draw, channel->url);
        if (draw_below(&draw, 10) > 0) {
            uint8_t *at = (uint8_t *)channel->url + channel->url_bytes;
            at = put_channel_id(PUT_LITERAL(at, "&channel_id="), i);
            channel->url_bytes = (uint8_t)(at - (uint8_t *)channel->url);
            ASSERT(channel->url_bytes <= URL_BYTES);
        }
    }
}

/* The text that padding is cut from. */
static void make_pad(struct generator_nexmark *generator)
{
    ASSERT(PAD_BYTES % 4 == 0);
    struct draw draw = draw_start(generator->origins[LABEL_PAD], 0);
    for (uint32_t i = 0; i < PAD_BYTES; i += 4) {
        const uint64_t x = draw_next(&draw);
        for (uint32_t j = 0; j < 4; j++) {
            const uint32_t number = (uint32_t)(((x >> (16 * j) & 0xffff) * 52) >> 16);
            generator->pad[i + j] = (uint8_t)(number < 26 ? 97 + number : 97 - (number - 26));
        }
    }
}

int generator_nexmark_create(const struct generator_nexmark_config *config,
                             struct generator_nexmark **out)
{
    ASSERT(config != NULL && config->rate >= 1 && out != NULL);
    ASSERT(config->disorder_ms <= INT32_MAX);
    struct generator_nexmark *generator = calloc(1, sizeof(*generator));
    *out = generator;
    if (generator == NULL) {
        return -ENOMEM;
    }
    generator->config = *config;
    for (uint64_t label = 0; label < LABEL_COUNT; label++) {
        generator->origins[label] = generator_mix(config->seed + label * GENERATOR_GAMMA);
    }
    make_powers(generator);
    make_channels(generator);
    make_pad(generator);
    return 0;
}

void generator_nexmark_destroy(struct generator_nexmark *generator)
{
    free(generator);
}

/* Pads a record to its average size, give or take a fifth; backslashes count once and are written
 * twice. */
static uint8_t *put_extra(const struct generator_nexmark *generator, struct draw *draw,
                          uint32_t size, uint32_t average, uint8_t *into)
{
    ASSERT(average <= GENERATOR_LINE_BYTES_MAX / 4);
    ASSERT_SLOW(into != NULL);
    if (size > average) {
        return into;
    }
    const uint32_t rest = average - size;
    const uint32_t delta = (2 * rest + 5) / 10;
    const uint32_t length = rest - delta + (delta != 0 ? (uint32_t)draw_below(draw, 2 * delta) : 0);
    const uint8_t *at = generator->pad + draw_below(draw, PAD_BYTES - length);
    const uint8_t *const end = at + length;
    while (at < end) {
        const uint8_t *slash = memchr(at, '\\', (size_t)(end - at));
        const uint8_t *const stop = slash == NULL ? end : slash + 1;
        into = put_span(into, at, (size_t)(stop - at));
        if (slash != NULL) {
            *into++ = '\\';
        }
        at = stop;
    }
    return into;
}

/* A person of the last thousand, or one of the next ten. */
static uint64_t draw_someone(struct draw *draw, uint64_t newest)
{
    ASSERT_SLOW(draw != NULL);
    const uint64_t active = newest + 1 < 1000 ? newest + 1 : 1000;
    return newest + 1 - active + draw_below(draw, active + 10);
}

static uint8_t *put_word(uint8_t *into, const char *word)
{
    ASSERT_SLOW(word != NULL);
    return put_span(into, word, strlen(word));
}

static uint8_t *put_person(struct generator_nexmark *generator, struct draw *draw, uint64_t number,
                           int64_t ms, uint8_t *into)
{
    const uint8_t *mark;
    uint32_t size = 8;
    into = put_unsigned(PUT_LITERAL(into, "{\"event_type\":0,\"person\":{\"id\":"), 1000 + number);
    into = PUT_LITERAL(into, ",\"name\":\"");
    ASSERT(into != NULL);
    mark = into;
    into = put_word(into, FIRST[draw_below(draw, COUNT_OF(FIRST))]);
    *into++ = ' ';
    into = put_word(into, LAST[draw_below(draw, COUNT_OF(LAST))]);
    size += (uint32_t)(into - mark);
    into = PUT_LITERAL(into, "\",\"emailAddress\":\"");
    mark = into;
    into += draw_word(draw, 7, ' ', into);
    *into++ = '@';
    into += draw_word(draw, 5, ' ', into);
    into = PUT_LITERAL(into, ".com");
    size += (uint32_t)(into - mark);
    into = PUT_LITERAL(into, "\",\"creditCard\":\"");
    mark = into;
    for (uint32_t i = 0; i < 4; i++) {
        into = PUT_LITERAL(put_padded(into, (uint32_t)draw_below(draw, 10000), 4), " ");
    }
    into--;
    size += (uint32_t)(into - mark);
    const char *city = CITY[draw_below(draw, COUNT_OF(CITY))];
    const char *state = STATE[draw_below(draw, COUNT_OF(STATE))];
    size += (uint32_t)(strlen(city) + strlen(state));
    into = put_word(PUT_LITERAL(into, "\",\"city\":\""), city);
    into = put_word(PUT_LITERAL(into, "\",\"state\":\""), state);
    into = put_time(&generator->time, ms, PUT_LITERAL(into, "\",\"dateTime\":\""));
    into = PUT_LITERAL(into, "\",\"extra\":\"");
    into = put_extra(generator, draw, size, 200, into);
    return PUT_LITERAL(into, "\"},\"auction\":null,\"bid\":null}");
}

struct auction {
    uint64_t number;
    uint64_t seller;
    uint64_t category;
    uint64_t initial;
    uint64_t reserve;
    int64_t ms;
    int64_t expires_ms;
    uint32_t name_bytes;
    uint32_t description_bytes;
    uint8_t name[32];
    uint8_t description[112];
};

static void draw_auction(const struct generator_nexmark *generator, struct draw *draw, uint64_t n,
                         uint64_t newest_person, struct auction *out)
{
    ASSERT(n >= 2);
    ASSERT(out != NULL);
    const uint64_t rate = generator->config.rate;
    const bool hot = draw_below(draw, 4) > 0;
    out->seller = 1000 + (hot ? newest_person / 100 * 100 : draw_someone(draw, newest_person));
    out->category = 10 + draw_below(draw, 5);
    out->initial = draw_price(generator, draw);
    const uint64_t horizon = (n + 1665) * 1000 / rate - (n - 1) * 1000 / rate;
    out->expires_ms = out->ms + 1 + (int64_t)draw_below(draw, horizon == 0 ? 1 : 2 * horizon);
    out->name_bytes = draw_word(draw, 20, ' ', out->name);
    out->description_bytes = draw_word(draw, 100, ' ', out->description);
    out->reserve = out->initial + draw_price(generator, draw);
}

static uint8_t *put_auction(struct generator_nexmark *generator, struct draw *draw,
                            const struct auction *auction, uint8_t *into)
{
    into = PUT_LITERAL(into, "{\"event_type\":1,\"person\":null,\"auction\":{\"id\":");
    into = put_unsigned(into, 1000 + auction->number);
    into = PUT_LITERAL(into, ",\"itemName\":\"");
    into = put_span(into, auction->name, auction->name_bytes);
    into = PUT_LITERAL(into, "\",\"description\":\"");
    into = put_span(into, auction->description, auction->description_bytes);
    into = put_unsigned(PUT_LITERAL(into, "\",\"initialBid\":"), auction->initial);
    into = put_unsigned(PUT_LITERAL(into, ",\"reserve\":"), auction->reserve);
    into = put_time(&generator->time, auction->ms, PUT_LITERAL(into, ",\"dateTime\":\""));
    into = put_time(&generator->time, auction->expires_ms, PUT_LITERAL(into, "\",\"expires\":\""));
    into = put_unsigned(PUT_LITERAL(into, "\",\"seller\":"), auction->seller);
    into = put_unsigned(PUT_LITERAL(into, ",\"category\":"), auction->category);
    into = PUT_LITERAL(into, ",\"extra\":\"");
    const uint32_t size = 48 + auction->name_bytes + auction->description_bytes;
    into = put_extra(generator, draw, size, 500, into);
    ASSERT(auction->reserve >= auction->initial);
    ASSERT(into != NULL);
    return PUT_LITERAL(into, "\"},\"bid\":null}");
}

static uint8_t *put_bid(struct generator_nexmark *generator, struct draw *draw,
                        uint64_t newest_person, uint64_t newest_auction, int64_t ms, uint8_t *into)
{
    ASSERT(into != NULL);
    uint64_t auction = newest_auction / 100 * 100;
    if (draw_below(draw, 2) == 0) {
        const uint64_t oldest = newest_auction > 100 ? newest_auction - 100 : 0;
        auction = oldest + draw_below(draw, newest_auction - oldest + 11);
    }
    const bool hot_bidder = draw_below(draw, 4) > 0;
    const uint64_t bidder =
        hot_bidder ? newest_person / 100 * 100 + 1 : draw_someone(draw, newest_person);
    const uint64_t price = draw_price(generator, draw);
    const bool hot = draw_below(draw, 2) > 0;
    const struct channel *channel = hot ? &generator->hot[draw_below(draw, HOT_CHANNELS)]
                                        : &generator->named[draw_below(draw, NAMED_CHANNELS)];
    into = PUT_LITERAL(into,
                       "{\"event_type\":2,\"person\":null,\"auction\":null,\"bid\":{\"auction\":");
    into = put_unsigned(into, 1000 + auction);
    into = put_unsigned(PUT_LITERAL(into, ",\"bidder\":"), 2000 + bidder);
    into = put_unsigned(PUT_LITERAL(into, ",\"price\":"), price);
    into = PUT_LITERAL(into, ",\"channel\":\"");
    into = put_span(into, channel->name, channel->name_bytes);
    into = PUT_LITERAL(into, "\",\"url\":\"");
    into = put_span(into, channel->url, channel->url_bytes);
    into = put_time(&generator->time, ms, PUT_LITERAL(into, "\",\"dateTime\":\""));
    into = PUT_LITERAL(into, "\",\"extra\":\"");
    into = put_extra(generator, draw, 32, 100, into);
    return PUT_LITERAL(into, "\"}}");
}

/* The event's own time, shifted back when disorder is asked for. */
static int64_t time_of(const struct generator_nexmark *generator, uint64_t n)
{
    ASSERT(n >= 1);
    const struct generator_nexmark_config *config = &generator->config;
    const int64_t ms = config->start_ms + (int64_t)((n - 1) * 1000 / config->rate);
    if (config->disorder_ms == 0) {
        return ms;
    }
    struct draw draw = draw_start(generator->origins[LABEL_SHIFT], n);
    return ms - (int64_t)draw_below(&draw, (uint64_t)config->disorder_ms + 1);
}

size_t generator_nexmark_line(struct generator_nexmark *generator, uint64_t n, uint8_t *into)
{
    ASSERT(into != NULL);
    ASSERT(n >= 2);
    const uint64_t epoch = n / 50;
    const uint64_t slot = n % 50;
    const uint64_t newest_auction = 3 * epoch + (slot < 3 ? slot : 3) - 1;
    const int64_t ms = time_of(generator, n);
    struct draw draw = draw_start(generator->origins[LABEL_EVENT], n);
    const uint8_t *end;
    if (slot == 0) {
        end = put_person(generator, &draw, epoch, ms, into);
    } else if (slot < 4) {
        struct auction auction = {.number = newest_auction, .ms = ms};
        draw_auction(generator, &draw, n, epoch, &auction);
        end = put_auction(generator, &draw, &auction, into);
    } else {
        end = put_bid(generator, &draw, epoch, newest_auction, ms, into);
    }
    ASSERT((size_t)(end - into) <= GENERATOR_LINE_BYTES_MAX);
    return (size_t)(end - into);
}
