/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels of several nouns need of whole numbers. */
#pragma once

#include "base.h"
#include "dataplane/type.h"

/* Cuts a value to the width of a whole-number type, as Java's narrowing does. */
int64_t integer_wrap(enum type_kind kind, int64_t value);
