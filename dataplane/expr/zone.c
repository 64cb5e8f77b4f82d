/* SPDX-License-Identifier: Apache-2.0 */
/* Reads TZif files (RFC 8536): the 64-bit block's transitions, then those that the footer's POSIX
 * rule gives up to TABLE_YEAR_END. Files come from the system but are checked like any input. */
#include "dataplane/expr/zone.h"

#include <stdio.h>
#include <stdlib.h>

#include "dataplane/expr/text_time.h"

#define FOLDER          "/usr/share/zoneinfo/"
#define FILE_BYTES_MAX  (1 << 20)
#define HEADER_BYTES    44
#define TRANSITIONS_MAX 4096
#define TABLE_YEAR_END  2501
#define CYCLE_MS        (INT64_C(146097) * MS_PER_DAY)
#define OFFSET_S_MAX    (26 * 3600)

struct transition {
    int64_t utc_ms;
    int32_t before_s; /* offsets from UTC */
    int32_t after_s;
};

struct zone {
    int32_t first_s; /* offset before the first transition */
    uint32_t count;
    int64_t cycles_from_ms; /* past this the last 400 years repeat; INT64_MAX: they do not */
    struct transition transitions[];
};

/* A date of a yearly rule: the week-th weekday of a month, at a second of that day. */
struct rule_date {
    int32_t month, week, weekday;
    int64_t seconds;
};

/* The footer's rule. */
struct rule {
    bool has_summer;
    int32_t standard_s, summer_s;
    struct rule_date summer_from, summer_to;
};

static uint64_t be(const uint8_t *from, uint32_t bytes)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        value = value << 8 | from[i];
    }
    return value;
}

/* The counts of a TZif header, in file order. */
struct header {
    uint32_t is_utc, is_standard, leap, time, type, character;
};

static bool read_header(const uint8_t *data, size_t bytes, struct header *out)
{
    if (bytes < HEADER_BYTES || memcmp(data, "TZif", 4) != 0) {
        return false;
    }
    uint32_t *const counts[] = {&out->is_utc, &out->is_standard, &out->leap,
                                &out->time,   &out->type,        &out->character};
    for (uint32_t i = 0; i < COUNT_OF(counts); i++) {
        *counts[i] = (uint32_t)be(data + 20 + 4 * (size_t)i, 4);
        if (*counts[i] > TRANSITIONS_MAX) {
            return false;
        }
    }
    return out->type > 0;
}

static size_t block_bytes(const struct header *header, uint32_t time_bytes)
{
    ASSERT(header != NULL);
    return (size_t)header->time * time_bytes + header->time + (size_t)header->type * 6 +
           header->character + (size_t)header->leap * (time_bytes + 4) + header->is_standard +
           header->is_utc;
}

static void add(struct zone *zone, int64_t utc_s, int32_t after_s)
{
    ASSERT(zone != NULL);
    const int32_t before =
        zone->count == 0 ? zone->first_s : zone->transitions[zone->count - 1].after_s;
    if (after_s == before || zone->count == TRANSITIONS_MAX) {
        return;
    }
    zone->transitions[zone->count++] = (struct transition){
        .utc_ms = utc_s * MS_PER_SECOND, .before_s = before, .after_s = after_s};
}

static bool read_transitions(const uint8_t *block, const struct header *header, struct zone *zone)
{
    ASSERT(header != NULL);
    const uint8_t *indexes = block + (size_t)header->time * 8;
    const uint8_t *types = indexes + header->time;
    for (uint32_t i = 0; i < header->type; i++) {
        const int32_t offset = (int32_t)be(types + 6 * (size_t)i, 4);
        if (offset < -OFFSET_S_MAX || offset > OFFSET_S_MAX) {
            return false;
        }
    }
    zone->first_s = (int32_t)be(types, 4);
    for (uint32_t i = 0; i < header->time; i++) {
        const int64_t at = (int64_t)be(block + 8 * (size_t)i, 8);
        if (indexes[i] >= header->type) {
            return false;
        }
        if (at > -(INT64_C(1) << 40)) {
            add(zone, at, (int32_t)be(types + 6 * (size_t)indexes[i], 4));
        }
    }
    return true;
}

static void skip_name(const char **at)
{
    if (**at == '<') {
        while (**at != '\0' && **at != '>') {
            (*at)++;
        }
        *at += **at == '>' ? 1 : 0;
        return;
    }
    while ((**at >= 'A' && **at <= 'Z') || (**at >= 'a' && **at <= 'z')) {
        (*at)++;
    }
}

static int64_t read_count(const char **at)
{
    int64_t value = 0;
    while (**at >= '0' && **at <= '9') {
        value = value < 100000 ? value * 10 + (**at - '0') : value;
        (*at)++;
    }
    return value;
}

/* [+-]h[:m[:s]] in seconds. */
static int64_t read_clock(const char **at)
{
    ASSERT(at != NULL);
    const bool negative = **at == '-';
    *at += negative || **at == '+' ? 1 : 0;
    int64_t seconds = 0;
    for (int64_t unit = 3600; unit >= 1; unit /= 60) {
        seconds += read_count(at) * unit;
        if (**at != ':') {
            break;
        }
        (*at)++;
    }
    return negative ? -seconds : seconds;
}

/* Mm.w.d[/time]; the other two forms are used by no zone of the database. */
static bool read_rule_date(const char **at, struct rule_date *out)
{
    if (**at != 'M') {
        return false;
    }
    (*at)++;
    out->month = (int32_t)read_count(at);
    *at += **at == '.' ? 1 : 0;
    out->week = (int32_t)read_count(at);
    *at += **at == '.' ? 1 : 0;
    out->weekday = (int32_t)read_count(at);
    out->seconds = 7200;
    if (**at == '/') {
        (*at)++;
        out->seconds = read_clock(at);
    }
    return out->month >= 1 && out->month <= 12 && out->week >= 1 && out->week <= 5 &&
           out->weekday <= 6;
}

static bool read_rule(const char *at, struct rule *out)
{
    ASSERT(at != NULL);
    ASSERT(out != NULL);
    skip_name(&at);
    out->standard_s = (int32_t)-read_clock(&at);
    out->has_summer = *at != '\0';
    if (!out->has_summer) {
        return true;
    }
    skip_name(&at);
    out->summer_s = out->standard_s + 3600;
    if (*at != ',') {
        out->summer_s = (int32_t)-read_clock(&at);
    }
    if (*at != ',') {
        return false;
    }
    at++;
    if (!read_rule_date(&at, &out->summer_from) || *at != ',') {
        return false;
    }
    at++;
    return read_rule_date(&at, &out->summer_to) && *at == '\0';
}

/* Seconds since 1970 of a rule's date on the wall clock. */
static int64_t rule_seconds(const struct rule_date *date, int64_t year)
{
    ASSERT(date != NULL);
    const int64_t first = civil_days(year, date->month, 1);
    const int64_t weekday = floor_modulo(first + 4, 7);
    int64_t day = floor_modulo(date->weekday - weekday, 7) + 7 * (date->week - 1);
    while (day >= civil_month_days(year, date->month)) {
        day -= 7;
    }
    return (first + day) * 86400 + date->seconds;
}

static void add_rule(struct zone *zone, const struct rule *rule)
{
    ASSERT(zone != NULL);
    const int64_t last_ms =
        zone->count == 0 ? INT64_MIN : zone->transitions[zone->count - 1].utc_ms;
    const int64_t from_year =
        zone->count == 0 ? 1970 : civil_from_days(floor_divide(last_ms, MS_PER_DAY)).year;
    for (int64_t year = from_year; year < TABLE_YEAR_END; year++) {
        const int64_t on = rule_seconds(&rule->summer_from, year) - rule->standard_s;
        const int64_t off = rule_seconds(&rule->summer_to, year) - rule->summer_s;
        const int64_t first = on < off ? on : off;
        const int64_t second = on < off ? off : on;
        if (first * MS_PER_SECOND > last_ms) {
            add(zone, first, on < off ? rule->summer_s : rule->standard_s);
        }
        if (second * MS_PER_SECOND > last_ms) {
            add(zone, second, on < off ? rule->standard_s : rule->summer_s);
        }
    }
    zone->cycles_from_ms = civil_days(TABLE_YEAR_END - 1, 1, 1) * MS_PER_DAY;
}

static struct zone *make(uint32_t transitions)
{
    struct zone *zone = calloc(1, sizeof(*zone) + (transitions + 1) * sizeof(struct transition));
    if (zone != NULL) {
        zone->cycles_from_ms = INT64_MAX;
    }
    return zone;
}

static bool parse(const uint8_t *data, size_t bytes, struct zone *zone)
{
    struct header header;
    if (!read_header(data, bytes, &header) || data[4] < '2') {
        return false;
    }
    const size_t second = HEADER_BYTES + block_bytes(&header, 4);
    if (second > bytes || !read_header(data + second, bytes - second, &header)) {
        return false;
    }
    const size_t block = second + HEADER_BYTES;
    const size_t footer = block + block_bytes(&header, 8);
    if (footer >= bytes || data[footer] != '\n' || data[bytes - 1] != '\n') {
        return false;
    }
    if (!read_transitions(data + block, &header, zone)) {
        return false;
    }
    char text[128];
    const size_t length = bytes - footer - 2;
    if (footer + 2 > bytes || length >= sizeof(text)) {
        return false;
    }
    memcpy(text, data + footer + 1, length);
    text[length] = '\0';
    struct rule rule;
    if (length == 0) {
        return true;
    }
    if (!read_rule(text, &rule)) {
        return false;
    }
    if (rule.has_summer) {
        add_rule(zone, &rule);
    }
    return true;
}

/* Names that lead out of the folder, or to no zone, are refused before a file is opened. */
static bool is_name(const char *name)
{
    const size_t bytes = strlen(name);
    for (size_t i = 0; i < bytes; i++) {
        const char c = name[i];
        const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        const bool other = (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '+' || c == '/';
        if (!letter && !(other && i > 0)) {
            return false;
        }
    }
    return bytes > 0 && bytes < 64;
}

static struct zone *read_file(const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s%s", FOLDER, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    struct zone *zone = NULL;
    uint8_t *data = malloc(FILE_BYTES_MAX);
    if (data != NULL) {
        const size_t bytes = fread(data, 1, FILE_BYTES_MAX, file);
        zone = make(TRANSITIONS_MAX);
        if (zone != NULL && !parse(data, bytes, zone)) {
            free(zone);
            zone = NULL;
        }
    }
    free(data);
    (void)fclose(file);
    return zone;
}

/* [+-]h, hh, hh:mm or hhmm.
 * returns  false when the text is no offset */
static bool read_offset(const char *text, int32_t *seconds)
{
    ASSERT(text != NULL);
    if (*text != '+' && *text != '-') {
        return false;
    }
    const int32_t sign = *text++ == '-' ? -1 : 1;
    int32_t digits[4] = {0, 0, 0, 0};
    uint32_t count = 0;
    for (; *text != '\0'; text++) {
        if (*text == ':' && (count == 1 || count == 2)) {
            continue;
        }
        if (*text < '0' || *text > '9' || count == 4) {
            return false;
        }
        digits[count++] = *text - '0';
    }
    int32_t minutes = 0;
    switch (count) {
    case 1:
        minutes = digits[0] * 60;
        break;
    case 2:
        minutes = (digits[0] * 10 + digits[1]) * 60;
        break;
    case 4:
        minutes = (digits[0] * 10 + digits[1]) * 60 + digits[2] * 10 + digits[3];
        break;
    default:
        return false;
    }
    *seconds = sign * minutes * 60;
    return minutes <= 18 * 60;
}

static bool is_fixed(const char *name, int32_t *seconds)
{
    ASSERT(seconds != NULL);
    static const char *const names[] = {"UTC", "GMT", "UT", "Z"};
    *seconds = 0;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const size_t bytes = strlen(names[i]);
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
        if (i < 3 && strncmp(name, names[i], bytes) == 0 && read_offset(name + bytes, seconds)) {
            return true;
        }
    }
    return read_offset(name, seconds);
}

struct zone *zone_open(const char *name)
{
    ASSERT(name != NULL);
    int32_t seconds;
    if (is_fixed(name, &seconds)) {
        struct zone *zone = make(0);
        if (zone != NULL) {
            zone->first_s = seconds;
        }
        return zone;
    }
    return is_name(name) ? read_file(name) : NULL;
}

void zone_destroy(void *zone)
{
    free(zone);
}

/* Brings a time past the table's end into its last 400 years.
 * cut      what was taken off */
static int64_t fold_cycles(const struct zone *zone, int64_t ms, int64_t *cut)
{
    ASSERT(zone != NULL);
    ASSERT(cut != NULL);
    *cut = 0;
    if (ms >= zone->cycles_from_ms) {
        *cut = ((ms - zone->cycles_from_ms) / CYCLE_MS + 1) * CYCLE_MS;
    }
    return ms - *cut;
}

int64_t zone_local(const struct zone *zone, int64_t utc_ms)
{
    ASSERT(zone != NULL);
    int64_t cut;
    const int64_t at = fold_cycles(zone, utc_ms, &cut);
    uint32_t low = 0;
    uint32_t high = zone->count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (zone->transitions[middle].utc_ms <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const int32_t offset = low == 0 ? zone->first_s : zone->transitions[low - 1].after_s;
    return utc_ms + offset * MS_PER_SECOND;
}

int64_t zone_utc(const struct zone *zone, int64_t local_ms)
{
    ASSERT(zone != NULL);
    int64_t cut;
    const int64_t at = fold_cycles(zone, local_ms, &cut);
    /* The first transition whose old offset puts the wall clock before it: the old offset holds,
     * which for a time that comes twice is the first. In a gap the old offset moves it forward. */
    uint32_t low = 0;
    uint32_t high = zone->count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        const struct transition *transition = &zone->transitions[middle];
        const int32_t later =
            transition->before_s > transition->after_s ? transition->before_s : transition->after_s;
        if (transition->utc_ms + later * MS_PER_SECOND <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const int32_t offset = low == 0 ? zone->first_s : zone->transitions[low - 1].after_s;
    return local_ms - offset * MS_PER_SECOND;
}
