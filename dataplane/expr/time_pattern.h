/* SPDX-License-Identifier: Apache-2.0 */
/* Java's patterns of dates and times (DateTimeFormatter, locale US), compiled once: printing, and
 * the two ways of reading that Flink uses: java.time's, which is exact, and SimpleDateFormat's,
 * where fields roll over, blanks before fields are skipped and text behind the end is ignored. */
#pragma once

#include "base.h"
#include "dataplane/type.h"

#define TIME_PATTERN_ITEMS_MAX 64
#define TIME_PATTERN_TEXT_MAX  256

/* A field (letter, count of it) or literal text (letter 0). */
struct time_pattern_item {
    char letter;
    uint8_t count;
    uint16_t text; /* first byte in text[] */
    uint16_t bytes;
};

struct time_pattern {
    uint32_t item_count;
    struct time_pattern_item items[TIME_PATTERN_ITEMS_MAX];
    char text[TIME_PATTERN_TEXT_MAX];
};

/* Compiles a pattern.
 * returns  NULL, or why it is refused: a letter that is not known or not built
 * threads  any */
const char *time_pattern_compile(struct span pattern, struct time_pattern *out);

/* Writes a wall clock time.
 * plus     a + before years of five digits, as DateTimeFormatter has (SimpleDateFormat has none)
 * into     bytes of room
 * returns  bytes written, or SIZE_MAX when the room is short
 * threads  any */
size_t time_pattern_print(const struct time_pattern *pattern, struct timestamp value, bool plus,
                          uint8_t *into, size_t bytes);

/* Reads as java.time does: the whole text, exact widths; a day past its month's end is the last.
 * threads  any */
bool time_pattern_read(const struct time_pattern *pattern, struct span text, struct timestamp *out);

/* Reads as SimpleDateFormat does, to milliseconds.
 * threads  any */
bool time_pattern_read_lenient(const struct time_pattern *pattern, struct span text, int64_t *ms);
