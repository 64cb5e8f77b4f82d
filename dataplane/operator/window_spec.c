/* SPDX-License-Identifier: Apache-2.0 */
/* Setting up window specs and writing window columns. */
#include "dataplane/operator/window_spec.h"

#include <errno.h>

#include "dataplane/parcel.h"

#define MONTH_MS     INT64_C(2592000000)
#define YEAR_2030_MS INT64_C(1893456000000)

/* Whether the zone's clock changes over a year to come. */
static bool zone_changes(const struct zone *zone)
{
    const int64_t offset = zone_local(zone, YEAR_2030_MS) - YEAR_2030_MS;
    for (int64_t month = 1; month < 12; month++) {
        const int64_t at = YEAR_2030_MS + month * MONTH_MS;
        if (zone_local(zone, at) - at != offset) {
            return true;
        }
    }
    return false;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    ASSERT(a > 0);
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

int window_spec_init(struct window_spec *spec, const struct plan_window_spec *plan,
                     struct error *error)
{
    ASSERT(spec != NULL);
    ASSERT(plan->size_ms > 0);
    ASSERT(plan->slide_ms > 0);
    *spec = (struct window_spec){.plan = *plan};
    if (plan->kind == PLAN_WINDOW_TUMBLE) {
        spec->plan.slide_ms = plan->size_ms;
    }
    spec->pane_ms = spec->plan.slide_ms;
    if (plan->kind == PLAN_WINDOW_HOP) {
        spec->pane_ms = common_divisor(plan->size_ms, plan->slide_ms);
    }
    const int64_t offset_ms = plan->offset_ms < 0 ? -plan->offset_ms : plan->offset_ms;
    spec->hand_on_by_ms = common_divisor(spec->pane_ms, offset_ms);
    if (!plan->local_clock || strcmp(plan->time_zone, "UTC") == 0) {
        return 0;
    }
    spec->zone = zone_open(plan->time_zone);
    if (spec->zone == NULL) {
        return error_set(error, -EINVAL, "time zone '%s' is unknown", plan->time_zone);
    }
    spec->zone_changes = zone_changes(spec->zone);
    return 0;
}

int64_t window_hand_on_ms(const struct window_spec *spec, int64_t watermark_ms)
{
    const int64_t by = spec->hand_on_by_ms;
    int64_t at;
    if (watermark_ms == WATERMARK_MAX) {
        return WATERMARK_MAX;
    }
    if (spec->zone_changes) {
        at = window_fire_ms(spec, window_floor(window_local(spec, watermark_ms), by, 0) + by);
    } else {
        at = window_floor(watermark_ms, by, 0) + by - 1;
    }
    return at > watermark_ms ? at : at + by;
}

void window_spec_fini(struct window_spec *spec)
{
    ASSERT(spec->pane_ms > 0);
    zone_destroy(spec->zone);
    spec->zone = NULL;
}

void window_column_set(const struct window_spec *spec, enum plan_window_column which,
                       int64_t start_ms, int64_t end_ms, struct row_writer *writer, uint32_t column)
{
    ASSERT_SLOW(writer->used <= writer->capacity);
    ASSERT(column < writer->layout->column_count);
    struct timestamp value = {.ms = end_ms};
    if (which == PLAN_WINDOW_START) {
        value.ms = start_ms;
    } else if (which == PLAN_WINDOW_TIME) {
        value.ms = window_time_ms(spec, end_ms);
    }
    row_set(writer, column, &value);
}
