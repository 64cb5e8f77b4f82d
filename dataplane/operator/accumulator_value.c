/* SPDX-License-Identifier: Apache-2.0 */
/* FIRST_VALUE, LAST_VALUE, LAG and LISTAGG: functions that keep values as they are. NULLs are left
 * out but by LAG. Where rows can leave again, the values stand in a list in their order of arrival;
 * retraction out of order takes the first equal one, as Flink does, by a walk through the list. */
#include "dataplane/operator/accumulator_internal.h"

struct single_fixed {
    uint64_t seen;
    uint64_t words[2];
};

/* The list of values, and the number that the next one gets. */
struct value_list {
    _Alignas(8) uint8_t head[LIST_HEAD_BYTES(0)];
    int64_t next;
};

static struct list_head *head_of(struct value_list *values)
{
    return (struct list_head *)(void *)values->head;
}

static const struct list_head *head_in(const struct value_list *values)
{
    return (const struct list_head *)(const void *)values->head;
}

/* The newest value of a sliding frame: when it leaves, all older ones have left. */
struct newest {
    uint64_t blob;
    uint64_t seen;
    int64_t order;
    uint64_t words[2];
};

static bool keeps_first(const struct accumulator *self)
{
    ASSERT_SLOW(self->ops != NULL);
    return self->call->function == AGGREGATE_FIRST_VALUE;
}

static bool single_add(const struct accumulator *self, const struct accumulator_state *state,
                       void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    struct single_fixed *single = at;
    if (single->seen == 0 || !keeps_first(self)) {
        single->seen = 1;
        memcpy(single->words, datum, self->datum_bytes);
    }
    return true;
}

static bool single_merge(const struct accumulator *self, const struct accumulator_state *state,
                         void *at, const void *from)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(from != at);
    const struct single_fixed *other = from;
    return other->seen == 0 || single_add(self, state, at, other->words);
}

static bool single_result(const struct accumulator *self, const struct accumulator_state *state,
                          const void *at, struct value *out)
{
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(at != NULL);
    const struct single_fixed *single = at;
    out->is_null = single->seen == 0;
    memcpy(&out->i64, single->words, sizeof(single->words));
    return true;
}

static const struct accumulator_ops single_ops = {
    .bytes = sizeof(struct single_fixed),
    .add = single_add,
    .merge = single_merge,
    .result = single_result,
};

static bool single_text_add(const struct accumulator *self, const struct accumulator_state *state,
                            void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    uint64_t *blob = at;
    return (*blob != 0 && keeps_first(self)) ||
           accumulator_blob_set(state, blob, *(const struct span *)datum);
}

static bool single_text_merge(const struct accumulator *self, const struct accumulator_state *state,
                              void *at, const void *from)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(from != at);
    const uint64_t other = *(const uint64_t *)from;
    struct span text;
    return other == 0 ||
           (accumulator_blob(self, state, other, &text) && single_text_add(self, state, at, &text));
}

static bool single_text_result(const struct accumulator *self,
                               const struct accumulator_state *state, const void *at,
                               struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    const uint64_t blob = *(const uint64_t *)at;
    out->is_null = blob == 0;
    return out->is_null || accumulator_blob(self, state, blob, &out->text);
}

static const struct accumulator_ops single_text_ops = {
    .bytes = sizeof(uint64_t),
    .head_kind = TABLE_HEAD_BLOB_REF,
    .add = single_text_add,
    .merge = single_text_merge,
    .result = single_text_result,
};

static bool newest_add(const struct accumulator *self, const struct accumulator_state *state,
                       void *at, const void *datum)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    struct newest *newest = at;
    if (newest->seen != 0 && newest->order > state->order) {
        return true; /* out of order: a later row holds the answer */
    }
    newest->seen = 1;
    newest->order = state->order;
    if (self->datum_bytes == 0) {
        return accumulator_blob_set(state, &newest->blob, *(const struct span *)datum);
    }
    memcpy(newest->words, datum, self->datum_bytes);
    return true;
}

static bool newest_retract(const struct accumulator *self, const struct accumulator_state *state,
                           void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    struct newest *newest = at;
    if (newest->seen != 0 && newest->order <= state->order) {
        newest->seen = 0;
    }
    return true;
}

static bool newest_result(const struct accumulator *self, const struct accumulator_state *state,
                          const void *at, struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(at != NULL);
    const struct newest *newest = at;
    out->is_null = newest->seen == 0;
    if (out->is_null) {
        return true;
    }
    if (self->datum_bytes == 0) {
        return accumulator_blob(self, state, newest->blob, &out->text);
    }
    memcpy(&out->i64, newest->words, sizeof(newest->words));
    return true;
}

static const struct accumulator_ops newest_ops = {
    .bytes = sizeof(struct newest),
    .head_kind = TABLE_HEAD_BLOB_REF,
    .add = newest_add,
    .retract = newest_retract,
    .result = newest_result,
};

static void values_init(const struct accumulator_state *state, void *at)
{
    ASSERT_SLOW(at != NULL);
    list_init(at, state->shard, 0);
}

static bool values_add(const struct accumulator *self, const struct accumulator_state *state,
                       void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    struct value_list *values = at;
    const int64_t order = self->mode == ACCUMULATOR_SLIDING ? state->order : values->next;
    values->next++;
    return list_insert(state->heap, head_of(values), order, accumulator_span(self, datum));
}

/* Compares an item with a value; long items are read through the scratch. */
static bool item_equals(const struct accumulator *self, const struct accumulator_state *state,
                        const struct list_item *item, struct span with)
{
    ASSERT_SLOW(item != NULL);
    ASSERT_SLOW(with.data != NULL || with.bytes == 0);
    if (item->bytes != with.bytes) {
        return false;
    }
    if (item->data == NULL && item->bytes != 0) {
        return heap_blob_compare(state->heap, item->blob, with) == 0;
    }
    return memcmp(item->data, with.data, with.bytes) == 0;
}

static bool values_retract(const struct accumulator *self, const struct accumulator_state *state,
                           void *at, const void *datum)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    struct value_list *values = at;
    const struct span value = accumulator_span(self, datum);
    struct list_cursor cursor;
    bool more = list_first(state->heap, head_of(values), &cursor);
    for (; more; more = list_next(state->heap, &cursor)) {
        const struct list_item item = list_item(state->heap, &cursor);
        if (item_equals(self, state, &item, value)) {
            list_remove(state->heap, head_of(values), &cursor);
            return true;
        }
    }
    return true;
}

static bool values_merge(const struct accumulator *self, const struct accumulator_state *state,
                         void *at, const void *from)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(from != at);
    const struct value_list *other = from;
    struct list_cursor cursor;
    bool more = list_first(state->heap, head_in(other), &cursor);
    for (; more; more = list_next(state->heap, &cursor)) {
        const struct list_item item = list_item(state->heap, &cursor);
        struct span bytes;
        if (!accumulator_item(self, state, &item, &bytes)) {
            return false;
        }
        const void *datum = self->datum_bytes == 0 ? (const void *)&bytes : bytes.data;
        if (!values_add(self, state, at, datum)) {
            return false;
        }
    }
    return true;
}

static bool values_end(const struct accumulator *self, const struct accumulator_state *state,
                       const void *at, struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(at != NULL);
    const struct value_list *values = at;
    struct list_cursor cursor;
    out->is_null = !(keeps_first(self) ? list_first(state->heap, head_in(values), &cursor)
                                       : list_last(state->heap, head_in(values), &cursor));
    if (out->is_null) {
        return true;
    }
    const struct list_item item = list_item(state->heap, &cursor);
    struct span bytes;
    if (!accumulator_item(self, state, &item, &bytes)) {
        return false;
    }
    accumulator_value(self, bytes, out);
    return true;
}

static const struct accumulator_ops values_ops = {
    .bytes = sizeof(struct value_list),
    .head_kind = TABLE_HEAD_LIST,
    .init = values_init,
    .add = values_add,
    .retract = values_retract,
    .merge = values_merge,
    .result = values_end,
};

/* Appends to the text in the scratch; false when it is full. */
static bool text_put(const struct accumulator *self, uint32_t *used, struct span piece)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(used != NULL);
    if (piece.bytes > ACCUMULATOR_TEXT_BYTES_MAX - *used) {
        return false;
    }
    if (piece.bytes != 0) {
        memcpy(self->scratch + *used, piece.data, piece.bytes);
        *used += (uint32_t)piece.bytes;
    }
    return true;
}

static bool text_put_item(const struct accumulator *self, const struct accumulator_state *state,
                          uint32_t *used, const struct list_item *item)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(item != NULL);
    if (item->data != NULL || item->bytes == 0) {
        return text_put(self, used, (struct span){.data = item->data, .bytes = item->bytes});
    }
    if (item->bytes > ACCUMULATOR_TEXT_BYTES_MAX - *used) {
        return false;
    }
    heap_blob_read(state->heap, item->blob, 0, item->bytes, self->scratch + *used);
    *used += item->bytes;
    return true;
}

static bool listagg_result(const struct accumulator *self, const struct accumulator_state *state,
                           const void *at, struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(state->value != NULL);
    ASSERT_SLOW(at != NULL);
    const struct value_list *values = at;
    struct list_cursor cursor;
    bool more = list_first(state->heap, head_in(values), &cursor);
    out->is_null = !more;
    uint32_t used = 0;
    for (bool first = true; more; more = list_next(state->heap, &cursor), first = false) {
        const struct list_item item = list_item(state->heap, &cursor);
        if ((!first && !text_put(self, &used, self->call->separator)) ||
            !text_put_item(self, state, &used, &item)) {
            return false;
        }
    }
    out->text = (struct span){.data = self->scratch, .bytes = used};
    return true;
}

static const struct accumulator_ops listagg_ops = {
    .bytes = sizeof(struct value_list),
    .head_kind = TABLE_HEAD_LIST,
    .init = values_init,
    .add = values_add,
    .retract = values_retract,
    .merge = values_merge,
    .result = listagg_result,
};

/* LAG keeps the last offset + 1 values; an item is one byte 1 and the value, or one byte 0. */
static bool lag_put(const struct accumulator *self, const struct accumulator_state *state,
                    struct value_list *values, struct span item)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(state->value != NULL);
    if (!list_insert(state->heap, head_of(values), values->next++, item)) {
        return false;
    }
    while (head_in(values)->count > (uint64_t)self->call->lag_offset + 1) {
        list_drop_first(state->heap, head_of(values));
    }
    return true;
}

static bool lag_add(const struct accumulator *self, const struct accumulator_state *state, void *at,
                    const void *datum)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    const struct span value = datum == NULL ? (struct span){0} : accumulator_span(self, datum);
    if (value.bytes >= ACCUMULATOR_TEXT_BYTES_MAX) {
        return false;
    }
    self->scratch[0] = datum != NULL;
    if (value.bytes != 0) {
        memcpy(self->scratch + 1, value.data, value.bytes);
    }
    return lag_put(self, state, at, (struct span){self->scratch, 1 + value.bytes});
}

/* The default also stands in for a NULL that is found. */
static bool lag_result(const struct accumulator *self, const struct accumulator_state *state,
                       const void *at, struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    const struct value_list *values = at;
    struct list_cursor cursor;
    *out = self->call->lag_default;
    if (head_in(values)->count <= self->call->lag_offset ||
        !list_first(state->heap, head_in(values), &cursor)) {
        return true;
    }
    const struct list_item item = list_item(state->heap, &cursor);
    struct span bytes;
    if (!accumulator_item(self, state, &item, &bytes)) {
        return false;
    }
    ASSERT(bytes.bytes >= 1);
    if (bytes.data[0] != 0) {
        const struct span value = {.data = bytes.data + 1, .bytes = bytes.bytes - 1};
        accumulator_value(self, value, out);
    }
    return true;
}

static bool lag_merge(const struct accumulator *self, const struct accumulator_state *state,
                      void *at, const void *from)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(from != at);
    const struct value_list *other = from;
    struct list_cursor cursor;
    bool more = list_first(state->heap, head_in(other), &cursor);
    for (; more; more = list_next(state->heap, &cursor)) {
        const struct list_item item = list_item(state->heap, &cursor);
        struct span bytes;
        if (!accumulator_item(self, state, &item, &bytes) || !lag_put(self, state, at, bytes)) {
            return false;
        }
    }
    return true;
}

static const struct accumulator_ops lag_ops = {
    .bytes = sizeof(struct value_list),
    .head_kind = TABLE_HEAD_LIST,
    .init = values_init,
    .add = lag_add,
    .merge = lag_merge,
    .result = lag_result,
};

const struct accumulator_ops *accumulator_value_ops(const struct aggregate_call *call,
                                                    enum accumulator_mode mode)
{
    ASSERT_SLOW(call != NULL);
    const enum type_kind kind = call->argument_type.kind;
    const bool is_text = type_is_text(&call->argument_type);
    if (kind == TYPE_NULL || kind >= TYPE_ARRAY) {
        return NULL;
    }
    switch (call->function) {
    case AGGREGATE_LISTAGG:
        return is_text ? &listagg_ops : NULL;
    case AGGREGATE_LAG:
        return mode == ACCUMULATOR_APPEND ? &lag_ops : NULL;
    case AGGREGATE_LAST_VALUE:
        if (mode == ACCUMULATOR_SLIDING) {
            return &newest_ops;
        }
        break;
    case AGGREGATE_FIRST_VALUE:
        break;
    default:
        ASSERT(false);
    }
    if (mode == ACCUMULATOR_APPEND) {
        return is_text ? &single_text_ops : &single_ops;
    }
    return &values_ops;
}
