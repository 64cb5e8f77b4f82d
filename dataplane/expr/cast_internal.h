/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of CAST: numbers (cast.c), to text (cast_to_text.c), from text (cast_from_text.c) and
 * times (cast_time.c). Each finder takes a pair of types. A cast whose input is bad fails the job,
 * or gives NULL under TRY_CAST; a number out of a DECIMAL's range is NULL under both. */
#pragma once

#include "base.h"
#include "dataplane/expr/kernel_internal.h"

/* Finds the kernel of a cast between numbers or truth values; out->function is NULL without one. */
void cast_number_find(const struct type *from, const struct type *to, struct kernel_choice *out);

/* As cast_number_find, of casts to text and bytes. */
void cast_to_text_find(const struct kernel_call *call, struct kernel_choice *out);

/* As cast_number_find, of casts from text to numbers and truth values. */
void cast_from_text_find(const struct kernel_call *call, struct kernel_choice *out);

/* As cast_number_find, of casts between times and from text to times.
 * returns  0; -ENOENT when there is none; -ENOMEM or -EINVAL with error */
int cast_time_find(const struct kernel_call *call, struct kernel_choice *out, struct error *error);

/* Notes a bad input: NULL under TRY_CAST, else a failure of the job. The run's constant is the flag
 * that cast_mode made. */
void cast_bad(struct kernel_run *run, uint32_t row, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The constant of a text cast: whether TRY_CAST was written. */
const void *cast_mode(enum expr_function function);
