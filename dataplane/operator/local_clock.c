/* SPDX-License-Identifier: Apache-2.0 */
/* Reads TZif files (RFC 8536): the second, 64-bit block. All transitions are kept as instants with
 * the offsets before and behind; a lookup is a binary search. */
#include "dataplane/operator/local_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ZONE_FOLDER         "/usr/share/zoneinfo"
#define ZONE_FILE_BYTES_MAX (UINT32_C(64) << 10)
#define HOUR_MS             INT64_C(3600000)
#define CYCLE_MS            (INT64_C(10227) * 86400000) /* 28 years */
#define TRANSITIONS_MAX     4096

struct transition {
    int64_t at_ms;
    int64_t offset_ms; /* from here on */
};

struct local_clock {
    int64_t first_offset_ms; /* in front of all transitions */
    uint32_t count;
    struct transition transitions[];
};

/* One block of the file: its header's counts and where its parts stand. */
struct zone_block {
    uint32_t time_count;
    uint32_t type_count;
    uint32_t char_count;
    uint32_t leap_count;
    uint32_t standard_count;
    uint32_t ut_count;
};

#define ZONE_HEADER_BYTES 44

static bool block_read(const uint8_t *bytes, size_t count, struct zone_block *block)
{
    if (count < ZONE_HEADER_BYTES || memcmp(bytes, "TZif", 4) != 0 || bytes[4] < '2') {
        return false;
    }
    *block = (struct zone_block){
        .ut_count = load_be32(bytes + 20),
        .standard_count = load_be32(bytes + 24),
        .leap_count = load_be32(bytes + 28),
        .time_count = load_be32(bytes + 32),
        .type_count = load_be32(bytes + 36),
        .char_count = load_be32(bytes + 40),
    };
    return block->time_count <= TRANSITIONS_MAX && block->type_count >= 1 &&
           block->type_count <= 256 && block->char_count <= 4096 && block->leap_count <= 256 &&
           block->standard_count <= 256 && block->ut_count <= 256;
}

static size_t block_bytes(const struct zone_block *block, size_t time_bytes)
{
    return ZONE_HEADER_BYTES + block->time_count * (time_bytes + 1) +
           block->type_count * (size_t)6 + block->char_count +
           block->leap_count * (time_bytes + 4) + block->standard_count + block->ut_count;
}

static struct local_clock *clock_parse(const uint8_t *bytes, size_t count)
{
    struct zone_block block;
    if (!block_read(bytes, count, &block)) {
        return NULL;
    }
    const size_t first = block_bytes(&block, 4);
    if (first > count || !block_read(bytes + first, count - first, &block) ||
        block_bytes(&block, 8) > count - first) {
        return NULL;
    }
    const uint8_t *times = bytes + first + ZONE_HEADER_BYTES;
    const uint8_t *indices = times + 8 * (size_t)block.time_count;
    const uint8_t *types = indices + block.time_count;
    struct local_clock *clock =
        calloc(1, sizeof(*clock) + block.time_count * sizeof(clock->transitions[0]));
    if (clock == NULL) {
        return NULL;
    }
    clock->first_offset_ms = (int64_t)(int32_t)load_be32(types) * 1000;
    clock->count = block.time_count;
    for (uint32_t i = 0; i < block.time_count; i++) {
        const uint32_t type = indices[i] < block.type_count ? indices[i] : 0;
        clock->transitions[i] = (struct transition){
            .at_ms = (int64_t)load_be64(times + 8 * (size_t)i) * 1000,
            .offset_ms = (int64_t)(int32_t)load_be32(types + 6 * (size_t)type) * 1000,
        };
    }
    return clock;
}

/* UTC, GMT+05:30, UTC-8, +02:00, Z: a zone of one offset. */
static bool offset_parse(const char *zone, int64_t *offset_ms)
{
    if (strncmp(zone, "UTC", 3) == 0 || strncmp(zone, "GMT", 3) == 0) {
        zone += 3;
    }
    *offset_ms = 0;
    if (*zone == '\0' || strcmp(zone, "Z") == 0) {
        return true;
    }
    int hours = 0;
    int minutes = 0;
    int used = 0;
    const char sign = zone[0];
    if ((sign != '+' && sign != '-') || sscanf(zone + 1, "%2d%n", &hours, &used) != 1) {
        return false;
    }
    const char *rest = zone + 1 + used;
    if (*rest == ':' && (sscanf(rest, ":%2d%n", &minutes, &used) != 1 || rest[used] != '\0')) {
        return false;
    }
    if ((*rest != ':' && *rest != '\0') || hours < 0 || hours > 18 || minutes < 0 || minutes > 59) {
        return false;
    }
    *offset_ms = (hours * HOUR_MS + minutes * INT64_C(60000)) * (sign == '-' ? -1 : 1);
    return true;
}

static ssize_t file_read(const char *zone, uint8_t *into)
{
    char path[512];
    const int bytes = snprintf(path, sizeof(path), "%s/%s", ZONE_FOLDER, zone);
    if (bytes < 0 || (size_t)bytes >= sizeof(path) || strstr(zone, "..") != NULL) {
        return -1;
    }
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return -1;
    }
    const ssize_t got = read(file, into, ZONE_FILE_BYTES_MAX);
    (void)close(file);
    return got;
}

int local_clock_create(const char *zone, struct local_clock **out, struct error *error)
{
    ASSERT(zone != NULL);
    int64_t offset_ms;
    if (offset_parse(zone, &offset_ms)) {
        *out = calloc(1, sizeof(**out));
        if (*out == NULL) {
            return error_set(error, -ENOMEM, "out of memory");
        }
        (*out)->first_offset_ms = offset_ms;
        return 0;
    }
    uint8_t *bytes = malloc(ZONE_FILE_BYTES_MAX);
    if (bytes == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    const ssize_t got = file_read(zone, bytes);
    *out = got <= 0 ? NULL : clock_parse(bytes, (size_t)got);
    free(bytes);
    return *out != NULL ? 0 : error_set(error, -EINVAL, "time zone '%s' is unknown", zone);
}

void local_clock_destroy(struct local_clock *clock)
{
    free(clock);
}

/* Offset behind the last transition at or before an instant; index 0 is in front of all. */
static int64_t offset_behind(const struct local_clock *clock, uint32_t index)
{
    return index == 0 ? clock->first_offset_ms : clock->transitions[index - 1].offset_ms;
}

/* How many transitions lie at or before an instant. */
static uint32_t transitions_before(const struct local_clock *clock, int64_t epoch_ms)
{
    uint32_t low = 0;
    uint32_t high = clock->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (clock->transitions[middle].at_ms <= epoch_ms) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* What to take off so that a time lies in front of the last transition, by whole cycles. */
static int64_t cycle_shift(const struct local_clock *clock, int64_t ms)
{
    if (clock->count < 2) {
        return 0;
    }
    const int64_t last = clock->transitions[clock->count - 1].at_ms - 2 * 24 * HOUR_MS;
    /* Zones without clock changes end long ago: their last offset holds. */
    const int64_t year_2030_ms = INT64_C(1893456000000);
    if (ms <= last || last < year_2030_ms) {
        return 0;
    }
    return ((ms - last) / CYCLE_MS + 1) * CYCLE_MS;
}

int64_t local_clock_local(const struct local_clock *clock, int64_t epoch_ms)
{
    const int64_t shift = cycle_shift(clock, epoch_ms);
    return epoch_ms + offset_behind(clock, transitions_before(clock, epoch_ms - shift));
}

int64_t local_clock_epoch(const struct local_clock *clock, int64_t local_ms)
{
    const int64_t shift = cycle_shift(clock, local_ms);
    const int64_t local = local_ms - shift;
    /* Offsets are below 19 hours, so no transition before this instant is in question. */
    uint32_t index = transitions_before(clock, local - 24 * HOUR_MS);
    for (; index < clock->count; index++) {
        const int64_t before = offset_behind(clock, index);
        const int64_t behind = offset_behind(clock, index + 1);
        const int64_t wall = clock->transitions[index].at_ms + (before > behind ? before : behind);
        if (local < wall) {
            break;
        }
    }
    return local_ms - offset_behind(clock, index);
}

int64_t local_clock_epoch_last(const struct local_clock *clock, int64_t local_ms)
{
    const int64_t first = local_clock_epoch(clock, local_ms);
    const int64_t behind = local_clock_epoch(clock, local_ms + HOUR_MS);
    return behind - first > HOUR_MS ? first + HOUR_MS : first;
}
