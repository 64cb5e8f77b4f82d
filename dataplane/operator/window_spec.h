/* SPDX-License-Identifier: Apache-2.0 */
/* Which windows a time belongs to, and when they are over. Windows are [start, end) on the clock of
 * the time attribute: for TIMESTAMP_LTZ that is the wall clock of the session's zone. A slice is
 * the part of a window that all its rows share the windows of; it is named by its end. */
#pragma once

#include "base.h"
#include "dataplane/expr/zone.h"
#include "dataplane/plan.h"

struct window_spec {
    struct plan_window_spec plan;
    int64_t pane_ms;       /* width of a slice: CUMULATE's step, HOP's greatest common divisor */
    struct zone *zone;     /* NULL: times are used as they are */
    bool zone_changes;     /* the zone's clock still changes over the year */
    int64_t hand_on_by_ms; /* the grid of window_hand_on_ms */
};

/* Prepares a spec.
 * returns  0, or -EINVAL for an unknown time zone; emptied by window_spec_fini
 * threads  control */
int window_spec_init(struct window_spec *spec, const struct plan_window_spec *plan,
                     struct error *error);

/* Frees what window_spec_init took. */
void window_spec_fini(struct window_spec *spec);

/* The largest multiple of `by` (plus offset) that is not above value.
 * threads  any */
static inline int64_t window_floor(int64_t value, int64_t by, int64_t offset)
{
    int64_t rest = (value - offset) % by;
    rest += rest < 0 ? by : 0;
    return value - rest;
}

/* An event time on the clock that windows are cut on.
 * threads  any */
static inline int64_t window_local(const struct window_spec *spec, int64_t time_ms)
{
    ASSERT_SLOW(spec->pane_ms > 0);
    return spec->zone == NULL ? time_ms : zone_local(spec->zone, time_ms);
}

/* The end of the slice that holds a local time.
 * threads  any */
static inline int64_t window_slice_end(const struct window_spec *spec, int64_t local_ms)
{
    ASSERT_SLOW(spec->pane_ms > 0);
    const struct plan_window_spec *plan = &spec->plan;
    if (plan->kind == PLAN_WINDOW_CUMULATE) {
        const int64_t start = window_floor(local_ms, plan->size_ms, plan->offset_ms);
        return start + ((local_ms - start) / plan->slide_ms + 1) * plan->slide_ms;
    }
    return window_floor(local_ms, spec->pane_ms, plan->offset_ms) + spec->pane_ms;
}

/* The end of the first window that holds a slice; above window_last_end when the slice lies in a
 * gap between windows.
 * threads  any */
static inline int64_t window_first_end(const struct window_spec *spec, int64_t slice_end)
{
    ASSERT_SLOW(spec->pane_ms > 0);
    const struct plan_window_spec *plan = &spec->plan;
    if (plan->kind != PLAN_WINDOW_HOP) {
        return slice_end;
    }
    const int64_t before = slice_end - plan->size_ms - 1;
    return window_floor(before, plan->slide_ms, plan->offset_ms) + plan->slide_ms + plan->size_ms;
}

/* The end of the last window that holds a slice.
 * threads  any */
static inline int64_t window_last_end(const struct window_spec *spec, int64_t slice_end)
{
    ASSERT_SLOW(spec->pane_ms > 0);
    const struct plan_window_spec *plan = &spec->plan;
    switch (plan->kind) {
    case PLAN_WINDOW_HOP:
        return window_floor(slice_end - spec->pane_ms, plan->slide_ms, plan->offset_ms) +
               plan->size_ms;
    case PLAN_WINDOW_CUMULATE:
        return window_floor(slice_end - 1, plan->size_ms, plan->offset_ms) + plan->size_ms;
    default:
        return slice_end;
    }
}

/* The start of the window with an end.
 * threads  any */
static inline int64_t window_start(const struct window_spec *spec, int64_t end_ms)
{
    ASSERT_SLOW(spec->pane_ms > 0);
    const struct plan_window_spec *plan = &spec->plan;
    return plan->kind == PLAN_WINDOW_CUMULATE
               ? window_floor(end_ms - 1, plan->size_ms, plan->offset_ms)
               : end_ms - plan->size_ms;
}

/* The instant that a watermark must have reached for the window to be over. In an hour that comes
 * twice it is the second pass, as Flink's TimeWindowUtil.toEpochMillsForTimer has it.
 * threads  any */
static inline int64_t window_fire_ms(const struct window_spec *spec, int64_t end_ms)
{
    ASSERT_SLOW(spec->pane_ms > 0);
    const int64_t hour_ms = 3600000;
    if (spec->zone == NULL) {
        return end_ms - 1;
    }
    const int64_t first = zone_utc(spec->zone, end_ms - 1);
    const int64_t behind = zone_utc(spec->zone, end_ms - 1 + hour_ms);
    return behind - first > hour_ms ? first + hour_ms : first;
}

/* When Flink's first phase hands its rows on next, after it has seen a watermark: at the end of the
 * pane that holds the watermark, which in a zone without clock changes is one of UTC's.
 * threads  any
 * source   Flink's TimeWindowUtil.getNextTriggerWatermark */
int64_t window_hand_on_ms(const struct window_spec *spec, int64_t watermark_ms);

/* window_time as an instant.
 * threads  any */
static inline int64_t window_time_ms(const struct window_spec *spec, int64_t end_ms)
{
    ASSERT_SLOW(spec->pane_ms > 0);
    return spec->zone == NULL ? end_ms - 1 : zone_utc(spec->zone, end_ms - 1);
}

/* Sets one of the window columns of a row.
 * threads  any */
void window_column_set(const struct window_spec *spec, enum plan_window_column which,
                       int64_t start_ms, int64_t end_ms, struct row_writer *writer,
                       uint32_t column);
