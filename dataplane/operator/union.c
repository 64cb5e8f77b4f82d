/* SPDX-License-Identifier: Apache-2.0 */
/* UNION ALL: rows of every input go out as they come. Their layouts are equal; the planner has put
 * a Calc under an input that needs a cast. Watermarks are merged by the runtime. */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/operator/operator_internal.h"

struct union_all {
    struct operator base;
    struct operator_context *context;
};

static int union_open(const struct plan_node *node, const struct row_layout *const *inputs,
                      struct operator_context *context, struct operator** out, struct error *error)
{
    ASSERT(node != NULL);
    ASSERT(node->operator== PLAN_UNION);
    struct union_all *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    self->base.ops = &union_ops;
    self->context = context;
    *out = &self->base;
    return 0;
}

static enum operator_verdict union_process(struct operator* base, uint32_t input,
                                           const struct parcel *parcel)
{
    ASSERT(parcel->row_count <= PARCEL_ROWS_MAX);
    struct union_all *self = (struct union_all *)base;
    ASSERT(parcel->kind == PARCEL_ROWS);
    const struct row *row = parcel_first(parcel);
    for (uint32_t i = 0; i < parcel->row_count; i++, row = parcel_next(row)) {
        if (!output_row_copy(self->context->output, row)) {
            return operator_fail_row(self->context);
        }
    }
    self->context->counters[OPERATOR_ROWS_IN] += parcel->row_count;
    self->context->counters[OPERATOR_ROWS_OUT] += parcel->row_count;
    return OPERATOR_DONE;
}

static void union_close(struct operator* base)
{
    free(base);
}

const struct operator_ops union_ops = {
    .name = "Union",
    .open = union_open,
    .process = union_process,
    .close = union_close,
};
