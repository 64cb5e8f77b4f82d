/* SPDX-License-Identifier: Apache-2.0 */
/* How values of each type compare, for the kernels that need more than one comparison. */
#pragma once

#include "base.h"
#include "dataplane/expr/program.h"

/* Types that lie and compare alike. */
enum compare_class {
    CLASS_NONE = 0,
    CLASS_I64,
    CLASS_F32,
    CLASS_F64,
    CLASS_I128,
    CLASS_TIMESTAMP,
    CLASS_TEXT,
    CLASS_BYTES,
};

/* Tells how values of a type compare; CLASS_NONE for collections. */
enum compare_class compare_class_of(const struct type *type);

/* Compares row i of two vectors of one kind; NaN is equal to everything here.
 * returns  -1 or less, 0, 1 or more */
int compare_order(const struct vector *a, const struct vector *b, uint32_t i);
