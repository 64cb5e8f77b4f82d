/* SPDX-License-Identifier: Apache-2.0 */
/* Filter, then project. The condition runs over all rows of a parcel, the outputs only over those
 * that passed: `WHERE i <> 0` guards `100 / i`. Outputs that are plain columns are copied, not
 * computed; a Calc that only filters copies whole rows.
 *
 * Row kinds pass through. Where an edge carries no -U (upsert), an updated row that no longer
 * qualifies goes out as -D, so that what it replaced disappears, and a -D always passes. */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/expr/program.h"
#include "dataplane/operator/operator_internal.h"

#define COMPUTED_NONE UINT32_MAX

struct calc {
    struct operator base;
    struct operator_context *context;
    const struct plan_node *node;
    const struct row_layout *input;
    struct program *condition;
    struct program_state *condition_state;
    struct program *outputs; /* of what is not a plain column */
    struct program_state *outputs_state;
    const struct expr **computed; /* the programs' expressions */
    uint32_t *computed_index;     /* per output: its number in the program, or COMPUTED_NONE */
    bool copies_rows;             /* outputs are the input as it is */
    int64_t watermark_ms;
    const struct row *rows[PARCEL_ROWS_MAX]; /* of the parcel; then those that passed */
    bool gone[PARCEL_ROWS_MAX];              /* passed as -D only */
};

static void calc_close(struct operator* base)
{
    struct calc *self = (struct calc *)base;
    program_state_destroy(self->condition_state);
    program_state_destroy(self->outputs_state);
    program_destroy(self->condition);
    program_destroy(self->outputs);
    free(self->computed);
    free(self->computed_index);
    free(self);
}

static int program_make(const struct calc *self, const struct expr *const *outputs, uint32_t count,
                        struct program **program, struct program_state **state, struct error *error)
{
    const struct program_config config = {
        .layout = self->input,
        .outputs = outputs,
        .output_count = count,
        .time_zone = self->context->time_zone,
    };
    const int result = program_compile(&config, program, error);
    return result != 0 ? result : program_state_create(*program, state, error);
}

/* Tells outputs that are computed from those that are copied. */
static uint32_t outputs_sort(struct calc *self)
{
    ASSERT_SLOW(self->node != NULL);
    const struct plan_calc *plan = &self->node->calc;
    uint32_t count = 0;
    self->copies_rows = true;
    for (uint32_t i = 0; i < self->node->layout.column_count; i++) {
        const struct expr *output = plan->outputs[i];
        self->computed_index[i] = COMPUTED_NONE;
        if (output->kind != EXPR_COLUMN) {
            self->computed_index[i] = count;
            self->computed[count++] = output;
        }
        self->copies_rows &= output->kind == EXPR_COLUMN && output->column == i;
    }
    self->copies_rows &= self->node->layout.column_count == self->input->column_count;
    return count;
}

static int programs_make(struct calc *self, struct error *error)
{
    ASSERT_SLOW(self != NULL);
    const struct plan_calc *plan = &self->node->calc;
    int result = 0;
    self->copies_rows = plan->outputs == NULL;
    if (plan->condition != NULL) {
        result = program_make(self, &plan->condition, 1, &self->condition, &self->condition_state,
                              error);
    }
    if (result != 0 || plan->outputs == NULL) {
        return result;
    }
    const size_t columns = (size_t)self->node->layout.column_count + 1;
    self->computed = calloc(columns, sizeof(self->computed[0]));
    self->computed_index = calloc(columns, sizeof(self->computed_index[0]));
    if (self->computed == NULL || self->computed_index == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    const uint32_t count = outputs_sort(self);
    if (count == 0) {
        return 0;
    }
    return program_make(self, self->computed, count, &self->outputs, &self->outputs_state, error);
}

static int calc_open(const struct plan_node *node, const struct row_layout *const *inputs,
                     struct operator_context *context, struct operator** out, struct error *error)
{
    ASSERT(node != NULL);
    ASSERT(context != NULL);
    ASSERT(node->operator== PLAN_CALC);
    struct calc *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    self->base.ops = &calc_ops;
    self->context = context;
    self->node = node;
    self->input = inputs[0];
    self->watermark_ms = WATERMARK_MIN;
    const int result = programs_make(self, error);
    if (result != 0) {
        calc_close(&self->base);
        return result;
    }
    *out = &self->base;
    return 0;
}

/* Runs a program over as many of the rows as its scratch memory holds, halving until it fits.
 * returns  how many rows, 0 when the job fails */
static uint32_t run(struct calc *self, struct program_state *state,
                    const struct program_context *context, const struct row *const *rows,
                    uint32_t count)
{
    ASSERT_SLOW(state != NULL);
    ASSERT(count != 0);
    ASSERT(count <= PARCEL_ROWS_MAX);
    for (;;) {
        const enum program_verdict verdict = program_run(state, context, rows, count);
        if (verdict == PROGRAM_OK) {
            return count;
        }
        if (verdict == PROGRAM_FAILED) {
            char reason[PROGRAM_REASON_BYTES];
            (void)program_failure(state, reason);
            (void)operator_fail(self->context, "%s", reason);
            return 0;
        }
        if (count == 1) {
            (void)operator_fail(self->context, "the text that one row makes is too large");
            return 0;
        }
        count /= 2;
    }
}

/* What becomes of a row that does not qualify: on an upsert edge it takes its predecessor along. */
static bool leaves_as_delete(const struct calc *self, const struct row *row)
{
    ASSERT_SLOW(self->node != NULL);
    return self->node->changelog == PLAN_UPSERT &&
           (row->kind == ROW_UPDATE_AFTER || row->kind == ROW_DELETE);
}

/* Keeps the rows that pass, in place.
 * returns  how many; UINT32_MAX when the job fails */
static uint32_t filter(struct calc *self, const struct program_context *context, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t first = 0; first < count;) {
        const uint32_t ran =
            run(self, self->condition_state, context, self->rows + first, count - first);
        if (ran == 0) {
            return UINT32_MAX;
        }
        const struct vector *passes = program_result(self->condition_state, 0);
        for (uint32_t i = 0; i < ran; i++) {
            const struct row *row = self->rows[first + i];
            const bool passed = passes->null[i] == VECTOR_VALUE && passes->i64[i] != 0;
            if (passed || leaves_as_delete(self, row)) {
                self->gone[kept] = !passed;
                self->rows[kept++] = row;
            }
        }
        first += ran;
    }
    self->context->counters[OPERATOR_FILTERED_ROWS] += count - kept;
    return kept;
}

/* Writes one output; false when the row is full, which *lacks then measures. */
static bool column_put(const struct calc *self, struct row_writer *writer, uint32_t column,
                       const struct row *row, uint32_t index, uint32_t *lacks)
{
    ASSERT_SLOW(column < writer->layout->column_count);
    ASSERT_SLOW(self->node != NULL);
    ASSERT_SLOW(column < self->node->layout.column_count);
    const uint32_t computed = self->computed_index[column];
    if (computed == COMPUTED_NONE) {
        const uint32_t from = self->node->calc.outputs[column]->column;
        *lacks = type_is_text(&self->input->types[from])
                     ? (uint32_t)row_text(self->input, row, from).bytes
                     : 0;
        return row_copy_column(writer, column, self->input, row, from);
    }
    const struct vector *vector = program_result(self->outputs_state, computed);
    *lacks = type_is_text(&vector->type) && vector->null[index] == VECTOR_VALUE
                 ? (uint32_t)vector->text[index].bytes
                 : 0;
    return program_store(vector, index, writer, column);
}

static bool row_project(struct calc *self, const struct row *row, uint32_t index, bool gone)
{
    ASSERT_SLOW(self->node != NULL);
    struct output *output = self->context->output;
    struct row_writer writer;
    if (!output_row_begin(output, &writer, row)) {
        return false;
    }
    for (uint32_t i = 0; i < self->node->layout.column_count; i++) {
        uint32_t lacks;
        while (!column_put(self, &writer, i, row, index, &lacks)) {
            if (!output_row_grow(output, &writer, lacks)) {
                return false;
            }
        }
    }
    writer.row->kind = gone ? ROW_DELETE : row->kind;
    output_row_end(output, &writer);
    return true;
}

/* Rows that go on as they are, but for the kind of those that leave. */
static bool row_pass(struct calc *self, const struct row *row, bool gone)
{
    if (!gone) {
        return output_row_copy(self->context->output, row);
    }
    struct row_writer writer;
    struct output *output = self->context->output;
    if (!output_row_begin(output, &writer, row)) {
        return false;
    }
    writer.row->kind = ROW_DELETE;
    for (uint32_t i = 0; i < self->input->column_count; i++) {
        while (!row_copy_column(&writer, i, self->input, row, i)) {
            if (!output_row_grow(output, &writer, (uint32_t)row_text(self->input, row, i).bytes)) {
                return false;
            }
        }
    }
    output_row_end(output, &writer);
    return true;
}

static enum operator_verdict project(struct calc *self, const struct program_context *context,
                                     uint32_t count)
{
    for (uint32_t first = 0; first < count;) {
        uint32_t ran = count - first;
        if (self->outputs != NULL) {
            ran = run(self, self->outputs_state, context, self->rows + first, ran);
            if (ran == 0) {
                return OPERATOR_FAILED;
            }
        }
        for (uint32_t i = 0; i < ran; i++) {
            const bool gone = self->condition != NULL && self->gone[first + i];
            if (!row_project(self, self->rows[first + i], i, gone)) {
                return operator_fail_row(self->context);
            }
        }
        first += ran;
    }
    return OPERATOR_DONE;
}

static enum operator_verdict calc_process(struct operator* base, uint32_t input,
                                          const struct parcel *parcel)
{
    struct calc *self = (struct calc *)base;
    ASSERT(input == 0);
    const struct program_context context = {
        .watermark_ms = self->watermark_ms,
        .processing_ms = parcel->processing_ms,
    };
    uint32_t count = parcel_rows(parcel, self->rows);
    self->context->counters[OPERATOR_ROWS_IN] += count;
    if (self->condition != NULL && count != 0) {
        count = filter(self, &context, count);
        if (count == UINT32_MAX) {
            return OPERATOR_FAILED;
        }
    }
    self->context->counters[OPERATOR_ROWS_OUT] += count;
    if (!self->copies_rows) {
        return project(self, &context, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!row_pass(self, self->rows[i], self->condition != NULL && self->gone[i])) {
            return operator_fail_row(self->context);
        }
    }
    return OPERATOR_DONE;
}

static enum operator_verdict calc_advance(struct operator* base, int64_t watermark_ms)
{
    struct calc *self = (struct calc *)base;
    ASSERT(watermark_ms >= self->watermark_ms);
    self->watermark_ms = watermark_ms;
    return OPERATOR_DONE;
}

const struct operator_ops calc_ops = {
    .name = "Calc",
    .open = calc_open,
    .process = calc_process,
    .advance = calc_advance,
    .close = calc_close,
};
