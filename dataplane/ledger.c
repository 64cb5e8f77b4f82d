/* SPDX-License-Identifier: Apache-2.0 */
/* Entering stamps and printing them. Per row only its arrival differs; the other stamps are the
 * parcel's, so they are entered once with the number of rows. */
#include "dataplane/ledger.h"

#include <errno.h>
#include <stdlib.h>

static const char *const stage_names[LEDGER_STAGE_COUNT] = {
    [LEDGER_DECODED] = "NIC in -> decoded",    [LEDGER_ROUTED] = "decoded -> routed",
    [LEDGER_OPERATED] = "routed -> operated",  [LEDGER_ENCODED] = "operated -> encoded",
    [LEDGER_PROCESSED] = "decoded -> encoded", [LEDGER_SENT] = "encoded -> NIC out",
    [LEDGER_STAY] = "NIC in -> NIC out",
};

static const char *const stage_keys[LEDGER_STAGE_COUNT] = {
    [LEDGER_DECODED] = "sourceQueuingLatency",
    [LEDGER_ROUTED] = "routed",
    [LEDGER_OPERATED] = "operated",
    [LEDGER_ENCODED] = "encoded",
    [LEDGER_PROCESSED] = "processingLatency",
    [LEDGER_SENT] = "sent",
    [LEDGER_STAY] = "e2eLatency",
};

static const double percentiles[] = {0.5, 0.9, 0.99, 0.999, 0.9999};
static const char *const percentile_keys[] = {"p50", "p90", "p99", "p99.9", "p99.99"};

static struct histogram *make_histogram(void)
{
    struct histogram *histogram = malloc(sizeof(*histogram));
    if (histogram != NULL) {
        histogram_init(histogram);
    }
    return histogram;
}

int ledger_create(const char *const *names, uint32_t sink_count, struct ledger **out,
                  struct error *error)
{
    ASSERT(out != NULL);
    ASSERT(sink_count <= LEDGER_SINKS_MAX);
    struct ledger *ledger = calloc(1, sizeof(*ledger));
    bool is_whole = ledger != NULL;
    for (uint32_t i = 0; is_whole && i < LEDGER_STAGE_COUNT; i++) {
        ledger->stages[i] = make_histogram();
        is_whole = ledger->stages[i] != NULL;
    }
    for (uint32_t i = 0; is_whole && i < sink_count; i++) {
        ledger->sinks[i] = (struct ledger_sink){
            .name = names[i], .processed = make_histogram(), .stay = make_histogram()};
        ledger->sink_count = i + 1;
        is_whole = ledger->sinks[i].processed != NULL && ledger->sinks[i].stay != NULL;
    }
    if (!is_whole) {
        ledger_destroy(ledger);
        return error_set(error, -ENOMEM, "out of memory for a ledger");
    }
    *out = ledger;
    return 0;
}

void ledger_destroy(struct ledger *ledger)
{
    if (ledger == NULL) {
        return;
    }
    for (uint32_t i = 0; i < LEDGER_STAGE_COUNT; i++) {
        free(ledger->stages[i]);
    }
    for (uint32_t i = 0; i < ledger->sink_count; i++) {
        free(ledger->sinks[i].processed);
        free(ledger->sinks[i].stay);
    }
    free(ledger);
}

/* Clocks of two lanes may disagree by a few ticks: a negative time is no time. */
static uint64_t between(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

static void enter_rows(struct ledger *ledger, uint32_t sink, const struct parcel *parcel)
{
    ASSERT_SLOW(ledger->sink_count <= LEDGER_SINKS_MAX);
    ASSERT_SLOW(parcel->row_count <= PARCEL_ROWS_MAX);
    const struct row *row = parcel_first(parcel);
    for (uint32_t i = 0; i < parcel->row_count; i++) {
        if (row->arrival_ns != 0) {
            histogram_record(ledger->stages[LEDGER_DECODED],
                             between(row->arrival_ns, parcel->decoded_ns), 1);
            histogram_record(ledger->sinks[sink].processed,
                             between(row->arrival_ns, parcel->encoded_ns), 1);
        }
        row = i + 1 < parcel->row_count ? parcel_next(row) : row;
    }
}

void ledger_parcel(struct ledger *ledger, uint32_t sink, const struct parcel *parcel)
{
    ASSERT_SLOW(ledger->sink_count <= LEDGER_SINKS_MAX);
    ASSERT(sink < ledger->sink_count);
    ASSERT(parcel->row_count > 0);
    if (parcel->decoded_ns == 0) {
        return;
    }
    const uint64_t count = parcel->row_count;
    const uint64_t decoded = parcel->decoded_ns;
    const uint64_t routed = parcel->routed_ns == 0 ? decoded : parcel->routed_ns;
    const uint64_t operated = parcel->operated_ns;
    const uint64_t encoded = parcel->encoded_ns;
    enter_rows(ledger, sink, parcel);
    histogram_record(ledger->stages[LEDGER_ROUTED], between(decoded, routed), count);
    histogram_record(ledger->stages[LEDGER_OPERATED], between(routed, operated), count);
    histogram_record(ledger->stages[LEDGER_ENCODED], between(operated, encoded), count);
    histogram_record(ledger->stages[LEDGER_PROCESSED], between(decoded, encoded), count);
}

void ledger_sent(struct ledger *ledger, uint32_t sink, uint64_t arrival_ns, uint64_t encoded_ns,
                 uint64_t now_ns)
{
    ASSERT_SLOW(ledger->sink_count <= LEDGER_SINKS_MAX);
    ASSERT(sink < ledger->sink_count);
    if (encoded_ns != 0) {
        histogram_record(ledger->stages[LEDGER_SENT], between(encoded_ns, now_ns), 1);
    }
    if (arrival_ns != 0) {
        histogram_record(ledger->stages[LEDGER_STAY], between(arrival_ns, now_ns), 1);
        histogram_record(ledger->sinks[sink].stay, between(arrival_ns, now_ns), 1);
    }
}

void ledger_skipped(struct ledger *ledger, uint32_t sink)
{
    ASSERT_SLOW(ledger->sink_count <= LEDGER_SINKS_MAX);
    ASSERT(sink < ledger->sink_count);
    ledger->sinks[sink].skipped++;
}

void ledger_merge(struct ledger *into, const struct ledger *from)
{
    ASSERT_SLOW(from->sink_count <= LEDGER_SINKS_MAX);
    ASSERT(into->sink_count == from->sink_count);
    for (uint32_t i = 0; i < LEDGER_STAGE_COUNT; i++) {
        histogram_merge(into->stages[i], from->stages[i]);
    }
    for (uint32_t i = 0; i < into->sink_count; i++) {
        histogram_merge(into->sinks[i].processed, from->sinks[i].processed);
        histogram_merge(into->sinks[i].stay, from->sinks[i].stay);
        into->sinks[i].skipped += from->sinks[i].skipped;
    }
}

static void print_line(const char *name, const char *suffix, const struct histogram *histogram,
                       FILE *into)
{
    ASSERT_SLOW(histogram != NULL);
    if (histogram->total == 0) {
        return;
    }
    char label[64];
    (void)snprintf(label, sizeof(label), "%s%s", name, suffix);
    fprintf(into, "%-32s %12lu", label, (unsigned long)histogram->total);
    for (uint32_t i = 0; i < COUNT_OF(percentiles); i++) {
        fprintf(into, " %10.1f", (double)histogram_percentile(histogram, percentiles[i]) / 1e3);
    }
    fprintf(into, " %10.1f\n", (double)histogram->max / 1e3);
}

void ledger_print(const struct ledger *ledger, FILE *into)
{
    ASSERT(ledger->sink_count <= LEDGER_SINKS_MAX);
    fprintf(into, "%-32s %12s", "stay, in microseconds", "records");
    for (uint32_t i = 0; i < COUNT_OF(percentile_keys); i++) {
        fprintf(into, " %10s", percentile_keys[i]);
    }
    fprintf(into, " %10s\n", "max");
    for (uint32_t i = 0; i < LEDGER_STAGE_COUNT; i++) {
        print_line(stage_names[i], "", ledger->stages[i], into);
    }
    for (uint32_t i = 0; i < ledger->sink_count; i++) {
        print_line(ledger->sinks[i].name, ": in -> encoded", ledger->sinks[i].processed, into);
        print_line(ledger->sinks[i].name, ": in -> out", ledger->sinks[i].stay, into);
        if (ledger->sinks[i].skipped != 0) {
            fprintf(into, "%s: in -> out leaves out %lu records: too many were on their way\n",
                    ledger->sinks[i].name, (unsigned long)ledger->sinks[i].skipped);
        }
    }
}

static void print_json_histogram(const char *key, const struct histogram *histogram, FILE *into)
{
    ASSERT_SLOW(histogram != NULL);
    fprintf(into, "\"%s\":{\"count\":%lu,\"mean\":%.1f", key, (unsigned long)histogram->total,
            histogram_mean(histogram));
    for (uint32_t i = 0; i < COUNT_OF(percentiles); i++) {
        fprintf(into, ",\"%s\":%lu", percentile_keys[i],
                (unsigned long)histogram_percentile(histogram, percentiles[i]));
    }
    fprintf(into, ",\"max\":%lu}", (unsigned long)histogram->max);
}

/* Table names are SQL identifiers: anything may stand in them. */
static void print_json_text(const char *text, FILE *into)
{
    fputc('"', into);
    for (const char *at = text; *at != 0; at++) {
        if (*at == '"' || *at == '\\') {
            fprintf(into, "\\%c", *at);
        } else if ((unsigned char)*at < 0x20) {
            fprintf(into, "\\u%04x", (unsigned char)*at);
        } else {
            fputc(*at, into);
        }
    }
    fputc('"', into);
}

void ledger_print_json(const struct ledger *ledger, FILE *into)
{
    ASSERT_SLOW(ledger->sink_count <= LEDGER_SINKS_MAX);
    fputs("{\"unit\":\"ns\",\"stages\":{", into);
    for (uint32_t i = 0; i < LEDGER_STAGE_COUNT; i++) {
        fputs(i == 0 ? "" : ",", into);
        print_json_histogram(stage_keys[i], ledger->stages[i], into);
    }
    fputs("},\"sinks\":{", into);
    for (uint32_t i = 0; i < ledger->sink_count; i++) {
        fputs(i == 0 ? "" : ",", into);
        print_json_text(ledger->sinks[i].name, into);
        fputs(":{", into);
        print_json_histogram("processed", ledger->sinks[i].processed, into);
        fputc(',', into);
        print_json_histogram("stay", ledger->sinks[i].stay, into);
        fprintf(into, ",\"skipped\":%lu}", (unsigned long)ledger->sinks[i].skipped);
    }
    fputs("}}\n", into);
}
