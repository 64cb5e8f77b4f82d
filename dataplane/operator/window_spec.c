/* SPDX-License-Identifier: Apache-2.0 */
/* Setting up window specs and writing window columns. */
#include "dataplane/operator/window_spec.h"

#include <errno.h>

int window_spec_init(struct window_spec *spec, const struct plan_window_spec *plan,
                     struct error *error)
{
    ASSERT(plan->size_ms > 0);
    ASSERT(plan->slide_ms > 0);
    *spec = (struct window_spec){.plan = *plan};
    if (plan->kind == PLAN_WINDOW_TUMBLE) {
        spec->plan.slide_ms = plan->size_ms;
    }
    spec->pane_ms = spec->plan.slide_ms;
    if (plan->kind == PLAN_WINDOW_HOP) {
        for (int64_t rest = plan->size_ms % spec->pane_ms; rest != 0;) {
            const int64_t by = spec->pane_ms;
            spec->pane_ms = rest;
            rest = by % rest;
        }
    }
    if (!plan->local_clock || strcmp(plan->time_zone, "UTC") == 0) {
        return 0;
    }
    spec->zone = zone_open(plan->time_zone);
    return spec->zone != NULL
               ? 0
               : error_set(error, -EINVAL, "time zone '%s' is unknown", plan->time_zone);
}

void window_spec_fini(struct window_spec *spec)
{
    zone_destroy(spec->zone);
    spec->zone = NULL;
}

void window_column_set(const struct window_spec *spec, enum plan_window_column which,
                       int64_t start_ms, int64_t end_ms, struct row_writer *writer, uint32_t column)
{
    ASSERT(column < writer->layout->column_count);
    struct timestamp value = {.ms = end_ms};
    if (which == PLAN_WINDOW_START) {
        value.ms = start_ms;
    } else if (which == PLAN_WINDOW_TIME) {
        value.ms = window_time_ms(spec, end_ms);
    }
    row_set(writer, column, &value);
}
