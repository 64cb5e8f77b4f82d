/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operators and what they share. */
#include "dataplane/operator/operator.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/operator/operator_internal.h"
#include "state/arena.h"

#define SCRATCH_TOUCHED_BYTES (UINT32_C(64) << 10)
#define KEYER_BYTES           (KEY_BYTES_MAX + (UINT32_C(64) << 10))

const struct operator_ops *operator_find(enum plan_operator operator)
{
    static const struct operator_ops *const bodies[] = {
        [PLAN_CALC] = &calc_ops,
        [PLAN_UNION] = &union_ops,
        [PLAN_GROUP] = &group_ops,
        [PLAN_WINDOW] = &window_ops,
        [PLAN_WINDOW_ROWS] = &window_rows_ops,
        [PLAN_OVER] = &over_ops,
    };
    ASSERT((size_t) operator<COUNT_OF(bodies));
    ASSERT(bodies[operator] != NULL);
    return bodies[operator];
}

enum operator_verdict operator_fail(struct operator_context *context, const char *format, ...)
{
    ASSERT(context != NULL);
    ASSERT(format != NULL);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(context->failure.text, sizeof(context->failure.text), format, arguments);
    va_end(arguments);
    return OPERATOR_FAILED;
}

enum operator_verdict operator_fail_full(struct operator_context *context)
{
    ASSERT(context != NULL);
    const uint64_t bytes = (uint64_t)context->arena->page_count * ARENA_PAGE_BYTES;
    return operator_fail(context,
                         "state is full: this lane's %llu KiB have no free page; raise "
                         "memory.state_mib (--state-mib in a replay) or use more operate lanes",
                         (unsigned long long)(bytes >> 10));
}

enum operator_verdict operator_fail_row(struct operator_context *context)
{
    return operator_fail(context, "a row is larger than the largest parcel");
}

void *operator_scratch(size_t bytes)
{
    ASSERT(bytes % CACHE_LINE_BYTES == 0);
    void *memory = aligned_alloc(CACHE_LINE_BYTES, bytes);
    if (memory != NULL) {
        /* What rows of ordinary size use is there before the lane starts. */
        memset(memory, 0, bytes < SCRATCH_TOUCHED_BYTES ? bytes : SCRATCH_TOUCHED_BYTES);
    }
    return memory;
}

struct keyer *keyer_create(const struct row_layout *layout, const struct key_columns *columns)
{
    ASSERT(layout != NULL);
    ASSERT(columns != NULL);
    ASSERT(columns->count <= KEY_COLUMNS_MAX);
    struct keyer *keyer = operator_scratch((sizeof(*keyer) + CACHE_LINE_BYTES - 1) /
                                           CACHE_LINE_BYTES * CACHE_LINE_BYTES);
    if (keyer == NULL) {
        return NULL;
    }
    keyer->layout = layout;
    keyer->columns = *columns;
    keyer->bytes = operator_scratch(KEYER_BYTES);
    if (keyer->bytes == NULL) {
        free(keyer);
        return NULL;
    }
    return keyer;
}

void keyer_destroy(struct keyer *keyer)
{
    if (keyer != NULL) {
        free(keyer->bytes);
        free(keyer);
    }
}

/* Without columns every row has the same key of one byte. */
static uint32_t keyer_encode(struct keyer *keyer, const struct row *row, uint32_t used)
{
    ASSERT_SLOW(keyer != NULL);
    if (keyer->columns.count == 0) {
        if (used == KEYER_BYTES) {
            return UINT32_MAX;
        }
        keyer->bytes[used] = 0;
        return 1;
    }
    return key_encode(keyer->layout, row, &keyer->columns, keyer->bytes + used, KEYER_BYTES - used);
}

uint32_t keyer_fill_prefixed(struct keyer *keyer, const struct table *table,
                             const struct row *const *rows, uint32_t count, const int64_t *prefixes)
{
    ASSERT(count >= 1);
    ASSERT(count <= PARCEL_ROWS_MAX);
    const uint32_t prefix_bytes = prefixes == NULL ? 0 : sizeof(prefixes[0]);
    uint32_t used = 0;
    uint32_t filled = 0;
    for (; filled < count && KEYER_BYTES - used > prefix_bytes; filled++) {
        const uint32_t bytes = keyer_encode(keyer, rows[filled], used + prefix_bytes);
        if (bytes == UINT32_MAX || bytes > KEY_BYTES_MAX) {
            break;
        }
        if (prefixes != NULL) {
            memcpy(keyer->bytes + used, &prefixes[filled], prefix_bytes);
        }
        const struct span key = {.data = keyer->bytes + used, .bytes = prefix_bytes + bytes};
        keyer->keys[filled] = key;
        keyer->hashes[filled] = hash_behind(key, prefix_bytes);
        used += prefix_bytes + bytes;
    }
    if (table != NULL && filled > 1) {
        table_prefetch(table, keyer->hashes, filled);
    }
    return filled;
}

uint32_t keyer_fill(struct keyer *keyer, const struct table *table, const struct row *const *rows,
                    uint32_t count)
{
    return keyer_fill_prefixed(keyer, table, rows, count, NULL);
}

int widener_init(struct widener *widener, const struct row_layout *from)
{
    ASSERT(widener != NULL);
    ASSERT(from != NULL);
    *widener = (struct widener){.from = from};
    widener->text_words = calloc(from->column_count + 1, sizeof(widener->text_words[0]));
    if (widener->text_words == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < from->column_count; i++) {
        if (type_is_text(&from->types[i])) {
            widener->text_words[widener->text_count++] =
                (uint16_t)(from->slots[i] - from->bitmap_words);
        }
    }
    return 0;
}

void widener_fini(struct widener *widener)
{
    free(widener->text_words);
    widener->text_words = NULL;
}

/* Where the row's tail ends, its padding apart. */
static uint32_t tail_end(const struct widener *widener, const struct row *row)
{
    const uint64_t *slots = row->words + widener->from->bitmap_words;
    uint32_t end = row_bytes_fixed(widener->from);
    for (uint32_t i = 0; i < widener->text_count; i++) {
        const uint64_t slot = slots[widener->text_words[i]];
        const uint32_t text_end = (uint32_t)slot + (uint32_t)(slot >> 32);
        end = text_end > end ? text_end : end;
    }
    ASSERT(end <= row->bytes);
    return end;
}

/* NULL bits of the input's columns; those behind stay set. */
static void bitmap_copy(const struct row_layout *from, const struct row *row, struct row *into)
{
    ASSERT_SLOW(from->column_count <= ROW_COLUMNS_MAX);
    for (uint32_t i = 0; i < from->bitmap_words; i++) {
        const uint32_t columns = from->column_count - 64 * i;
        const uint64_t behind = columns >= 64 ? 0 : ~UINT64_C(0) << columns;
        into->words[i] = row->words[i] | behind;
    }
}

bool widener_begin(const struct widener *widener, struct output *output, struct row_writer *writer,
                   const struct row *row)
{
    ASSERT_SLOW(widener != NULL);
    ASSERT_SLOW(output != NULL);
    ASSERT_SLOW(row->bytes >= row_bytes_fixed(widener->from));
    const struct row_layout *from = widener->from;
    if (!output_row_begin(output, writer, row)) {
        return false;
    }
    ASSERT(writer->layout->column_count >= from->column_count);
    const uint32_t fixed = row_bytes_fixed(from);
    const uint32_t tail = tail_end(widener, row) - fixed;
    if (tail > writer->capacity - writer->used && !output_row_grow(output, writer, tail)) {
        return false;
    }
    struct row *into = writer->row;
    uint64_t *slots = into->words + writer->layout->bitmap_words;
    bitmap_copy(from, row, into);
    memcpy(slots, row->words + from->bitmap_words, 8 * (size_t)from->slot_count);
    const uint32_t shift = writer->used - fixed;
    for (uint32_t i = 0; i < widener->text_count; i++) {
        uint64_t *slot = &slots[widener->text_words[i]];
        /* A NULL text has slot 0 and keeps it. */
        *slot += *slot == 0 ? 0 : shift;
    }
    memcpy((uint8_t *)into + writer->used, (const uint8_t *)row + fixed, tail);
    writer->used += tail;
    return true;
}

bool results_store(struct accumulator_set *set, const struct accumulator_state *state,
                   struct output *output, struct row_writer *writer, uint32_t first_column)
{
    ASSERT_SLOW(writer->used <= writer->capacity);
    uint32_t next = 0;
    for (;;) {
        const uint32_t lacks = accumulators_store(set, state, writer, first_column, &next);
        if (lacks == 0) {
            return true;
        }
        if (lacks == UINT32_MAX || !output_row_grow(output, writer, lacks)) {
            return false;
        }
    }
}

const char *state_name(char into[static OPERATOR_NAME_BYTES], const char *kind,
                       const struct plan_node *node)
{
    ASSERT_SLOW(node->input_count <= PLAN_INPUTS_MAX);
    (void)snprintf(into, OPERATOR_NAME_BYTES, "%s.%016" PRIx64, kind, node->identity);
    return into;
}

bool state_identity(const char *name, uint64_t *identity)
{
    ASSERT(name != NULL);
    const char *dot = strrchr(name, '.');
    char *end = NULL;
    if (dot == NULL || strlen(dot + 1) != 16) {
        return false;
    }
    *identity = strtoull(dot + 1, &end, 16);
    return *end == 0;
}
