/* SPDX-License-Identifier: Apache-2.0 */
/* A window table function without aggregate: each row goes out once a window that it belongs to,
 * with window_start, window_end and window_time behind its columns. Nothing waits and nothing is
 * late here. A row without time is dropped and counted. */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/operator/operator_internal.h"
#include "dataplane/operator/window_spec.h"

struct window_rows {
    struct operator base;
    struct operator_context *context;
    const struct row_layout *input;
    struct window_spec spec;
    struct widener widener;
    /* Where to go on after OPERATOR_AGAIN. */
    uint32_t next_row;
    uint64_t next_window;
};

static void window_rows_close(struct operator* base)
{
    struct window_rows *self = (struct window_rows *)base;
    window_spec_fini(&self->spec);
    widener_fini(&self->widener);
    free(self);
}

static int window_rows_open(const struct plan_node *node, const struct row_layout *const *inputs,
                            struct operator_context *context, struct operator** out,
                            struct error *error)
{
    ASSERT(node != NULL);
    ASSERT(node->operator== PLAN_WINDOW_ROWS);
    ASSERT(node->layout.column_count == inputs[0]->column_count + 3);
    struct window_rows *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    self->base.ops = &window_rows_ops;
    self->context = context;
    self->input = inputs[0];
    int result = widener_init(&self->widener, inputs[0]);
    if (result == 0) {
        result = window_spec_init(&self->spec, &node->window.window, error);
    } else {
        error_set(error, result, "out of memory");
    }
    if (result != 0) {
        window_rows_close(&self->base);
        return result;
    }
    *out = &self->base;
    return 0;
}

static bool window_emit(struct window_rows *self, const struct row *row, int64_t start_ms,
                        int64_t end_ms)
{
    ASSERT_SLOW(self != NULL);
    struct row_writer writer;
    if (!widener_begin(&self->widener, self->context->output, &writer, row)) {
        return false;
    }
    const uint32_t first = self->input->column_count;
    window_column_set(&self->spec, PLAN_WINDOW_START, start_ms, end_ms, &writer, first);
    window_column_set(&self->spec, PLAN_WINDOW_END, start_ms, end_ms, &writer, first + 1);
    window_column_set(&self->spec, PLAN_WINDOW_TIME, start_ms, end_ms, &writer, first + 2);
    writer.row->time_ms = window_time_ms(&self->spec, end_ms);
    output_row_end(self->context->output, &writer);
    self->context->counters[OPERATOR_ROWS_OUT]++;
    return true;
}

/* The index-th window of a local time; HOP counts back from the latest, CUMULATE up from the
 * shortest. Returns false when there are no more. */
static bool window_nth(const struct window_spec *spec, int64_t local_ms, uint64_t index,
                       int64_t *start_ms, int64_t *end_ms)
{
    ASSERT_SLOW(spec->pane_ms > 0);
    const struct plan_window_spec *plan = &spec->plan;
    if (plan->kind == PLAN_WINDOW_CUMULATE) {
        *start_ms = window_floor(local_ms, plan->size_ms, plan->offset_ms);
        *end_ms = window_slice_end(spec, local_ms) + (int64_t)index * plan->slide_ms;
        return *end_ms <= *start_ms + plan->size_ms;
    }
    *start_ms =
        window_floor(local_ms, plan->slide_ms, plan->offset_ms) - (int64_t)index * plan->slide_ms;
    *end_ms = *start_ms + plan->size_ms;
    return *end_ms > local_ms;
}

static enum operator_verdict row_expand(struct window_rows *self, const struct row *row)
{
    if (row->time_ms == ROW_TIME_NONE) {
        self->context->counters[OPERATOR_NULL_TIME_DROPPED]++;
        return OPERATOR_DONE;
    }
    const int64_t local_ms = window_local(&self->spec, row->time_ms);
    int64_t start_ms;
    int64_t end_ms;
    while (window_nth(&self->spec, local_ms, self->next_window, &start_ms, &end_ms)) {
        if (!output_has_room(self->context->output)) {
            return OPERATOR_AGAIN;
        }
        if (!window_emit(self, row, start_ms, end_ms)) {
            return operator_fail_row(self->context);
        }
        self->next_window++;
    }
    return OPERATOR_DONE;
}

static enum operator_verdict window_rows_process(struct operator* base, uint32_t input,
                                                 const struct parcel *parcel)
{
    struct window_rows *self = (struct window_rows *)base;
    ASSERT(input == 0);
    const struct row *rows[PARCEL_ROWS_MAX];
    const uint32_t count = parcel_rows(parcel, rows);
    for (; self->next_row < count; self->next_row++) {
        const enum operator_verdict verdict = row_expand(self, rows[self->next_row]);
        if (verdict != OPERATOR_DONE) {
            return verdict;
        }
        self->next_window = 0;
        self->context->counters[OPERATOR_ROWS_IN]++;
    }
    self->next_row = 0;
    return OPERATOR_DONE;
}

const struct operator_ops window_rows_ops = {
    .name = "WindowRows",
    .open = window_rows_open,
    .process = window_rows_process,
    .close = window_rows_close,
};
