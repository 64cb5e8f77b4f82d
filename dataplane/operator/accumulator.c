/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of aggregate calls: laying out their states, the loops over calls, and DISTINCT, which is a
 * map from value to count in front of any function. The kernels stand in accumulator_number.c,
 * accumulator_extreme.c and accumulator_value.c. */
#include "dataplane/operator/accumulator.h"

#include <errno.h>
#include <stdlib.h>

#include "dataplane/operator/accumulator_internal.h"
#include "dataplane/operator/expiry.h"
#include "state/trash.h"

/* What a DISTINCT map keeps of a value. Without lifetime only the count is there. */
struct distinct_entry {
    int64_t count; /* how often the value is there; with a lifetime and rows that only come: 1 */
    int64_t written_ms;
};

#define DISTINCT_ENDS_MAX 2 /* values given back at each of two places, for a new one */

/* The head of that map. */
#define DISTINCT_BYTES ((uint32_t)sizeof(struct ordered_head))

const char *aggregate_function_name(enum aggregate_function function)
{
    static const char *const names[AGGREGATE_FUNCTION_COUNT] = {
        [AGGREGATE_COUNT] = "COUNT",
        [AGGREGATE_SUM] = "SUM",
        [AGGREGATE_MIN] = "MIN",
        [AGGREGATE_MAX] = "MAX",
        [AGGREGATE_AVG] = "AVG",
        [AGGREGATE_FIRST_VALUE] = "FIRST_VALUE",
        [AGGREGATE_LAST_VALUE] = "LAST_VALUE",
        [AGGREGATE_STDDEV_POP] = "STDDEV_POP",
        [AGGREGATE_STDDEV_SAMP] = "STDDEV_SAMP",
        [AGGREGATE_VAR_POP] = "VAR_POP",
        [AGGREGATE_VAR_SAMP] = "VAR_SAMP",
        [AGGREGATE_LISTAGG] = "LISTAGG",
        [AGGREGATE_ROW_NUMBER] = "ROW_NUMBER",
        [AGGREGATE_RANK] = "RANK",
        [AGGREGATE_DENSE_RANK] = "DENSE_RANK",
        [AGGREGATE_LAG] = "LAG",
    };
    ASSERT(function < AGGREGATE_FUNCTION_COUNT && names[function] != NULL);
    return names[function];
}

static const struct accumulator_ops *ops_find(const struct aggregate_call *call,
                                              const struct accumulator_config *config)
{
    ASSERT_SLOW(call != NULL);
    switch (call->function) {
    case AGGREGATE_MIN:
    case AGGREGATE_MAX:
        return accumulator_extreme_ops(call, config->mode);
    case AGGREGATE_FIRST_VALUE:
    case AGGREGATE_LAST_VALUE:
    case AGGREGATE_LAG:
    case AGGREGATE_LISTAGG:
        return accumulator_value_ops(call, config->mode);
    default:
        return accumulator_number_ops(call, config->is_over);
    }
}

/* MIN and MAX do not change by doubles, so their DISTINCT needs no map. */
static bool needs_distinct(const struct aggregate_call *call)
{
    return call->distinct && call->function != AGGREGATE_MIN && call->function != AGGREGATE_MAX;
}

/* Whether two calls keep the same state: AVG in OVER is SUM divided by its count. */
static bool state_equal(const struct aggregate_call *a, const struct aggregate_call *b,
                        bool is_over)
{
    const bool sums = is_over && (a->function == AGGREGATE_SUM || a->function == AGGREGATE_AVG) &&
                      (b->function == AGGREGATE_SUM || b->function == AGGREGATE_AVG);
    return (sums || (a->function == b->function && a->function != AGGREGATE_LAG)) &&
           a->argument == b->argument && a->filter == b->filter && a->distinct == b->distinct;
}

/* Lets a call use the state of an earlier one with the same arguments. */
static bool state_share(struct accumulator_set *set, struct accumulator *self)
{
    ASSERT_SLOW(self->ops != NULL);
    for (struct accumulator *other = set->calls; other != self; other++) {
        if (state_equal(other->call, self->call, self->is_over)) {
            self->offset = other->offset;
            self->distinct_offset = other->distinct_offset;
            self->is_shared = true;
            return true;
        }
    }
    return false;
}

static int call_prepare(struct accumulator_set *set, struct accumulator *self,
                        const struct accumulator_config *config, struct error *error)
{
    ASSERT(set != NULL);
    const struct aggregate_call *call = self->call;
    const struct row_layout *layout = config->layout;
    self->ops = ops_find(call, config);
    if (self->ops == NULL) {
        char printed[TYPE_PRINT_BYTES];
        return error_set(error, -ENOTSUP, "%s over %s is not supported",
                         aggregate_function_name(call->function),
                         type_print(&call->argument_type, printed));
    }
    ASSERT((self->ops->bytes & 7) == 0);
    self->result_words = type_is_text(&call->result_type) ? 0 : type_slot_count(&call->result_type);
    self->column = ACCUMULATOR_NONE;
    if (call->argument != AGGREGATE_COLUMN_NONE) {
        ASSERT(call->argument < layout->column_count);
        self->column = call->argument;
        self->word = layout->slots[call->argument];
        const struct type *type = &layout->types[call->argument];
        self->datum_bytes = type_is_text(type) ? 0 : 8 * type_slot_count(type);
    }
    self->filter = ACCUMULATOR_NONE;
    if (call->filter != AGGREGATE_COLUMN_NONE) {
        ASSERT(call->filter < layout->column_count);
        self->filter = call->filter;
        self->filter_word = layout->slots[call->filter];
    }
    self->distinct_offset = ACCUMULATOR_NONE;
    if (state_share(set, self)) {
        return 0;
    }
    if (needs_distinct(call)) {
        self->distinct_offset = set->bytes;
        set->bytes += DISTINCT_BYTES;
    }
    self->offset = set->bytes;
    set->bytes += self->ops->bytes;
    if (self->ops->head_kind == TABLE_HEAD_LIST && set->list_count < ACCUMULATOR_HEADS_MAX) {
        set->lists[set->list_count++] = self->offset;
    }
    return 0;
}

static int limits_check(const struct accumulator_set *set, struct error *error)
{
    ASSERT(set->list_count <= ACCUMULATOR_HEADS_MAX);
    uint32_t heads = 0;
    for (uint32_t i = 0; i < set->call_count; i++) {
        heads += set->calls[i].is_shared ? 0
                                         : (set->calls[i].ops->head_kind != 0) +
                                               (set->calls[i].distinct_offset != ACCUMULATOR_NONE);
    }
    if (set->bytes > TABLE_VALUE_BYTES_MAX || heads > ACCUMULATOR_HEADS_MAX) {
        return error_set(error, -ENOTSUP,
                         "the aggregate calls of one query block need %u bytes and %u collections "
                         "of state a key, more than %u and %u",
                         set->bytes, heads, TABLE_VALUE_BYTES_MAX, ACCUMULATOR_HEADS_MAX);
    }
    return 0;
}

int accumulators_create(const struct accumulator_config *config, struct accumulator_set **out,
                        struct error *error)
{
    ASSERT(config != NULL);
    ASSERT(out != NULL);
    ASSERT(config->call_count <= AGGREGATE_CALLS_MAX);
    ASSERT((config->base_bytes & 7) == 0);
    struct accumulator_set *set =
        calloc(1, sizeof(*set) + config->call_count * sizeof(set->calls[0]));
    if (set == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    set->scratch = aligned_alloc(CACHE_LINE_BYTES, ACCUMULATOR_TEXT_BYTES_MAX);
    set->call_count = config->call_count;
    set->bytes = config->base_bytes;
    int result = set->scratch == NULL ? error_set(error, -ENOMEM, "out of memory") : 0;
    for (uint32_t i = 0; i < config->call_count && result == 0; i++) {
        struct accumulator *self = &set->calls[i];
        self->call = &config->calls[i];
        self->mode = config->mode;
        self->is_over = config->is_over;
        self->expiry =
            config->expiry != NULL && config->expiry->ttl_ms != 0 ? config->expiry : NULL;
        self->scratch = set->scratch;
        result = call_prepare(set, self, config, error);
    }
    if (result == 0) {
        result = limits_check(set, error);
    }
    if (result != 0) {
        accumulators_destroy(set);
        return result;
    }
    *out = set;
    return 0;
}

void accumulators_destroy(struct accumulator_set *set)
{
    if (set != NULL) {
        free(set->scratch);
        free(set);
    }
}

uint32_t accumulators_bytes(const struct accumulator_set *set)
{
    ASSERT((set->bytes & 7) == 0);
    return set->bytes;
}

uint32_t accumulators_heads(const struct accumulator_set *set, struct table_head *heads)
{
    ASSERT_SLOW(set->list_count <= ACCUMULATOR_HEADS_MAX);
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->call_count; i++) {
        const struct accumulator *self = &set->calls[i];
        if (self->is_shared) {
            continue;
        }
        if (self->distinct_offset != ACCUMULATOR_NONE) {
            heads[count++] = (struct table_head){
                .offset = (uint16_t)self->distinct_offset,
                .kind = TABLE_HEAD_ORDERED,
            };
        }
        if (self->ops->head_kind != 0) {
            heads[count++] = (struct table_head){
                .offset = (uint16_t)self->offset,
                .kind = (uint16_t)self->ops->head_kind,
            };
        }
    }
    ASSERT(count <= ACCUMULATOR_HEADS_MAX);
    return count;
}

static uint32_t distinct_bytes(const struct accumulator *self)
{
    ASSERT_SLOW(self->distinct_offset != ACCUMULATOR_NONE);
    return self->expiry == NULL ? (uint32_t)offsetof(struct distinct_entry, written_ms)
                                : (uint32_t)sizeof(struct distinct_entry);
}

void accumulators_init(const struct accumulator_set *set, const struct accumulator_state *state)
{
    ASSERT(set != NULL);
    ASSERT(state != NULL);
    ASSERT(((uintptr_t)state->value & 7) == 0);
    for (uint32_t i = 0; i < set->call_count; i++) {
        const struct accumulator *self = &set->calls[i];
        if (self->is_shared) {
            continue;
        }
        if (self->distinct_offset != ACCUMULATOR_NONE) {
            ordered_init((struct ordered_head *)(state->value + self->distinct_offset),
                         state->shard, distinct_bytes(self));
        }
        if (self->ops->init != NULL) {
            self->ops->init(state, state->value + self->offset);
        }
    }
}

/* Whether the call counts this row; NULL arguments are left out but by LAG. */
static inline bool wants(const struct accumulator *self, const struct row *row)
{
    ASSERT_SLOW(self->ops != NULL);
    if (self->filter != ACCUMULATOR_NONE && row->words[self->filter_word] != 1) {
        return false; /* FALSE, or NULL, whose slot is 0 */
    }
    return self->column == ACCUMULATOR_NONE || !row_is_null(row, self->column) ||
           self->call->function == AGGREGATE_LAG;
}

/* Points to the row's argument; text is a span that the caller keeps. */
static inline const void *argument(const struct accumulator *self, const struct row *row,
                                   struct span *text)
{
    ASSERT_SLOW(self->ops != NULL);
    if (self->column == ACCUMULATOR_NONE || row_is_null(row, self->column)) {
        return NULL;
    }
    if (self->datum_bytes != 0) {
        return &row->words[self->word];
    }
    const uint64_t slot = row->words[self->word];
    text->data = (const uint8_t *)row + (uint32_t)slot;
    text->bytes = slot >> 32;
    return text;
}

/* All NaNs are one value; 0.0 and -0.0 are two. */
static struct span distinct_key(const struct accumulator *self, const void *datum,
                                uint64_t canonical[static 1])
{
    ASSERT_SLOW(self->ops != NULL);
    const struct span bytes = accumulator_span(self, datum);
    const enum type_kind kind = self->call->argument_type.kind;
    if ((kind == TYPE_DOUBLE && load_f64(datum) != load_f64(datum)) ||
        (kind == TYPE_FLOAT && load_f32(datum) != load_f32(datum))) {
        canonical[0] = kind == TYPE_DOUBLE ? UINT64_C(0x7ff8000000000000) : UINT64_C(0x7fc00000);
        return (struct span){.data = (const uint8_t *)canonical, .bytes = 8};
    }
    return bytes;
}

/* Removes the entry at a cursor if its lifetime has passed.
 * returns  whether it did */
static bool distinct_end(const struct accumulator *self, const struct accumulator_state *state,
                         struct ordered_head *head, const struct ordered_cursor *cursor)
{
    const struct ordered_entry entry = ordered_entry(state->heap, head, cursor);
    const struct distinct_entry *value = entry.value;
    ASSERT_SLOW(self->expiry != NULL);
    if (!expiry_is_over(self->expiry, value->written_ms)) {
        return false;
    }
    uint32_t bytes = (uint32_t)entry.key.bytes;
    if (entry.key_blob != 0) {
        bytes = heap_blob_bytes(state->heap, entry.key_blob);
        if (bytes > ACCUMULATOR_TEXT_BYTES_MAX) {
            return false;
        }
        heap_blob_read(state->heap, entry.key_blob, 0, bytes, self->scratch);
    } else if (bytes != 0) {
        memcpy(self->scratch, entry.key.data, bytes);
    }
    return ordered_remove(state->heap, head, (struct span){self->scratch, bytes});
}

/* In a group that lives on, values that have ended are given back by the new ones that come: each
 * looks at those next to it, which finds all in time where values are spread, and at the lowest,
 * which finds them where values rise. */
static void distinct_sweep(const struct accumulator *self, const struct accumulator_state *state,
                           struct ordered_head *head, struct span key)
{
    struct ordered_cursor cursor;
    ASSERT_SLOW(self->mode != ACCUMULATOR_SLIDING);
    for (uint32_t i = 0; i < DISTINCT_ENDS_MAX; i++) {
        if (!ordered_seek(state->heap, head, key, &cursor) || !ordered_next(state->heap, &cursor) ||
            !distinct_end(self, state, head, &cursor)) {
            break;
        }
    }
    for (uint32_t i = 0; i < DISTINCT_ENDS_MAX; i++) {
        if (!ordered_first(state->heap, head, &cursor) ||
            !distinct_end(self, state, head, &cursor)) {
            break;
        }
    }
}

/* Counts a value in or out of the map; *first tells whether the function must see it. */
static bool distinct_count(const struct accumulator *self, const struct accumulator_state *state,
                           const void *datum, int64_t step, bool *first)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(state->value != NULL);
    struct ordered_head *head = (struct ordered_head *)(state->value + self->distinct_offset);
    uint64_t canonical[1];
    const struct span key = distinct_key(self, datum, canonical);
    bool created = false;
    struct distinct_entry *entry = ordered_insert(state->heap, head, key, &created);
    if (entry == NULL) {
        return false;
    }
    if (self->expiry != NULL && !created && expiry_is_over(self->expiry, entry->written_ms)) {
        entry->count = 0; /* reads as absent */
    }
    const int64_t before = entry->count;
    *first = (before == 0 && step > 0) || (before == 1 && step < 0);
    if (self->expiry != NULL && self->mode == ACCUMULATOR_APPEND && before != 0) {
        return true; /* Flink writes a value it knows only where rows may be taken back */
    }
    entry->count = before + step;
    if (self->expiry != NULL) {
        entry->written_ms = self->expiry->now_ms;
    }
    if (self->expiry != NULL && created && entry->count != 0) {
        distinct_sweep(self, state, head, key);
        return true;
    }
    if (entry->count == 0) {
        (void)ordered_remove(state->heap, head, key);
    }
    return true;
}

static bool distinct_add(const struct accumulator *self, const struct accumulator_state *state,
                         const void *datum, int64_t step)
{
    ASSERT_SLOW(self->ops != NULL);
    bool first = false;
    if (!distinct_count(self, state, datum, step, &first)) {
        return false;
    }
    if (!first) {
        return true;
    }
    uint8_t *at = state->value + self->offset;
    return step > 0 ? self->ops->add(self, state, at, datum)
                    : self->ops->retract(self, state, at, datum);
}

bool accumulators_add(const struct accumulator_set *set, const struct accumulator_state *state,
                      const struct row *row)
{
    ASSERT_SLOW(set->list_count <= ACCUMULATOR_HEADS_MAX);
    ASSERT_SLOW(state->value != NULL);
    for (uint32_t i = 0; i < set->call_count; i++) {
        const struct accumulator *self = &set->calls[i];
        if (self->is_shared || !wants(self, row)) {
            continue;
        }
        struct span text;
        const void *datum = argument(self, row, &text);
        const bool fine = self->distinct_offset != ACCUMULATOR_NONE
                              ? distinct_add(self, state, datum, 1)
                              : self->ops->add(self, state, state->value + self->offset, datum);
        if (!fine) {
            return false;
        }
    }
    return true;
}

bool accumulators_retract(const struct accumulator_set *set, const struct accumulator_state *state,
                          const struct row *row)
{
    ASSERT_SLOW(set->list_count <= ACCUMULATOR_HEADS_MAX);
    ASSERT_SLOW(state->value != NULL);
    for (uint32_t i = 0; i < set->call_count; i++) {
        const struct accumulator *self = &set->calls[i];
        if (self->is_shared || !wants(self, row)) {
            continue;
        }
        ASSERT(self->ops->retract != NULL);
        struct span text;
        const void *datum = argument(self, row, &text);
        const bool fine = self->distinct_offset != ACCUMULATOR_NONE
                              ? distinct_add(self, state, datum, -1)
                              : self->ops->retract(self, state, state->value + self->offset, datum);
        if (!fine) {
            return false;
        }
    }
    return true;
}

/* Values of the other map go through the function as if they came one by one. */
static bool distinct_merge(const struct accumulator *self, const struct accumulator_state *state,
                           const struct accumulator_state *from)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(from->value != NULL);
    const struct ordered_head *other =
        (const struct ordered_head *)(from->value + self->distinct_offset);
    struct ordered_cursor cursor;
    bool more = ordered_first(from->heap, other, &cursor);
    for (; more; more = ordered_next(from->heap, &cursor)) {
        const struct ordered_entry entry = ordered_entry(from->heap, other, &cursor);
        struct span bytes = entry.key;
        if (entry.key_blob != 0 && !accumulator_blob(self, from, entry.key_blob, &bytes)) {
            return false;
        }
        const void *datum = self->datum_bytes == 0 ? (const void *)&bytes : bytes.data;
        bool first = false;
        if (!distinct_count(self, state, datum, load_i64(entry.value), &first)) {
            return false;
        }
        if (first && !self->ops->add(self, state, state->value + self->offset, datum)) {
            return false;
        }
    }
    return true;
}

bool accumulators_merge(struct accumulator_set *set, const struct accumulator_state *state,
                        const struct accumulator_state *from)
{
    ASSERT_SLOW(set->list_count <= ACCUMULATOR_HEADS_MAX);
    ASSERT(state->value != from->value);
    for (uint32_t i = 0; i < set->call_count; i++) {
        const struct accumulator *self = &set->calls[i];
        if (self->is_shared) {
            continue;
        }
        ASSERT(self->ops->merge != NULL);
        const bool fine = self->distinct_offset != ACCUMULATOR_NONE
                              ? distinct_merge(self, state, from)
                              : self->ops->merge(self, state, state->value + self->offset,
                                                 from->value + self->offset);
        if (!fine) {
            return false;
        }
    }
    return true;
}

static void head_clear(const struct accumulator_state *state, uint32_t kind, void *at)
{
    if (kind == TABLE_HEAD_LIST) {
        trash_list(state->heap, at);
    } else if (kind == TABLE_HEAD_ORDERED) {
        trash_ordered(state->heap, at);
    } else if (kind == TABLE_HEAD_BLOB_REF && *(uint64_t *)at != 0) {
        heap_blob_release(state->heap, *(uint64_t *)at);
    }
}

void accumulators_clear(const struct accumulator_set *set, const struct accumulator_state *state)
{
    ASSERT_SLOW(set != NULL);
    for (uint32_t i = 0; i < set->call_count; i++) {
        const struct accumulator *self = &set->calls[i];
        if (self->is_shared) {
            continue;
        }
        if (self->distinct_offset != ACCUMULATOR_NONE) {
            head_clear(state, TABLE_HEAD_ORDERED, state->value + self->distinct_offset);
            memset(state->value + self->distinct_offset, 0, DISTINCT_BYTES);
        }
        head_clear(state, self->ops->head_kind, state->value + self->offset);
        memset(state->value + self->offset, 0, self->ops->bytes);
    }
}

void accumulators_prefetch(const struct accumulator_set *set, const struct accumulator_state *state,
                           uint32_t step)
{
    ASSERT_SLOW(set->list_count <= ACCUMULATOR_HEADS_MAX);
    for (uint32_t i = 0; i < set->list_count; i++) {
        const struct list_head *head =
            (const struct list_head *)(const void *)(state->value + set->lists[i]);
        if (step == 0) {
            list_prefetch(state->heap, head);
        } else {
            list_prefetch_items(state->heap, head);
        }
    }
}

bool accumulators_result(struct accumulator_set *set, uint32_t call,
                         const struct accumulator_state *state, struct value *out)
{
    ASSERT_SLOW(set->list_count <= ACCUMULATOR_HEADS_MAX);
    ASSERT(call < set->call_count);
    const struct accumulator *self = &set->calls[call];
    out->is_null = true;
    return self->ops->result(self, state, state->value + self->offset, out);
}

/* Sets a column that is no text, without looking at its type again. */
static inline void words_set(struct row_writer *writer, uint32_t column, const struct value *value,
                             uint32_t words)
{
    ASSERT_SLOW(column < writer->layout->column_count);
    ASSERT_SLOW(words == type_slot_count(&writer->layout->types[column]));
    uint64_t *slot = &writer->row->words[writer->layout->slots[column]];
    memcpy(slot, &value->i64, sizeof(*slot));
    if (words == 2) {
        memcpy(slot + 1, (const uint8_t *)&value->i64 + sizeof(*slot), sizeof(*slot));
    }
    writer->row->words[column >> 6] &= ~(UINT64_C(1) << (column & 63));
}

uint32_t accumulators_store(struct accumulator_set *set, const struct accumulator_state *state,
                            struct row_writer *writer, uint32_t first_column, uint32_t *next)
{
    ASSERT_SLOW(set->list_count <= ACCUMULATOR_HEADS_MAX);
    ASSERT_SLOW(writer->used <= writer->capacity);
    ASSERT(first_column + set->call_count <= writer->layout->column_count);
    for (; *next < set->call_count; (*next)++) {
        const struct accumulator *self = &set->calls[*next];
        struct value value = {.is_null = true};
        if (!self->ops->result(self, state, state->value + self->offset, &value)) {
            return UINT32_MAX;
        }
        if (value.is_null) {
            continue;
        }
        if (self->result_words != 0) {
            words_set(writer, first_column + *next, &value, self->result_words);
        } else if (!row_set_text(writer, first_column + *next, value.text)) {
            return (uint32_t)value.text.bytes;
        }
    }
    return 0;
}

bool accumulator_blob(const struct accumulator *self, const struct accumulator_state *state,
                      uint64_t blob, struct span *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(state->value != NULL);
    ASSERT(blob != 0);
    const uint32_t bytes = heap_blob_bytes(state->heap, blob);
    *out = heap_blob_piece(state->heap, blob, 0);
    if (out->bytes == bytes) {
        return true;
    }
    if (bytes > ACCUMULATOR_TEXT_BYTES_MAX) {
        return false;
    }
    heap_blob_read(state->heap, blob, 0, bytes, self->scratch);
    *out = (struct span){.data = self->scratch, .bytes = bytes};
    return true;
}

bool accumulator_item(const struct accumulator *self, const struct accumulator_state *state,
                      const struct list_item *item, struct span *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(item != NULL);
    if (item->data == NULL && item->bytes != 0) {
        return accumulator_blob(self, state, item->blob, out);
    }
    *out = (struct span){.data = item->data, .bytes = item->bytes};
    return true;
}

bool accumulator_blob_set(const struct accumulator_state *state, uint64_t *blob,
                          struct span content)
{
    ASSERT_SLOW(state->value != NULL);
    ASSERT_SLOW(content.data != NULL || content.bytes == 0);
    const uint64_t fresh = heap_blob_store(state->heap, state->shard, content);
    if (fresh == 0) {
        return false;
    }
    if (*blob != 0) {
        heap_blob_release(state->heap, *blob);
    }
    *blob = fresh;
    return true;
}
