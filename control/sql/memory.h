/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of one script: everything that parsing, binding and planning make is taken from here and
 * freed at once with it. Nothing in it is freed singly. Control thread only. */
#pragma once

#include <stdarg.h>

#include "base.h"

struct sql_memory;

/* Makes an empty memory.
 * returns  NULL when the process is out of memory */
struct sql_memory *sql_memory_create(void);

/* Frees all that was taken from it. NULL is fine. */
void sql_memory_destroy(struct sql_memory *memory);

/* Takes zeroed bytes, aligned for any type; ends the process when there is no more (control path
 * only, before any lane runs).
 * returns  never NULL; lives as long as the memory */
void *sql_allocate(struct sql_memory *memory, size_t bytes);

/* Copies bytes and puts a 0 behind them. */
char *sql_copy_text(struct sql_memory *memory, const char *text, size_t bytes);

/* Formats by printf rules into new memory. */
char *sql_format(struct sql_memory *memory, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
