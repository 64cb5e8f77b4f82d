/* SPDX-License-Identifier: Apache-2.0 */
/* MIN and MAX, three ways:
 *
 *  - APPEND: one value, replaced by plain < and >: a NaN that came first stays for ever, a later
 * one is passed over, of 0.0 and -0.0 the first wins. Text compares by its bytes.
 *  - RETRACT: an ordered map from value to count, by Java's compareTo: NaN highest, -0.0 below 0.0.
 *  - SLIDING: rows leave in the order in which they came, so a value that a later one beats can
 *    never be the answer again: a list of candidates, best in front, O(1) a row over time. Order as
 *    in RETRACT.
 */
#include "dataplane/operator/accumulator_internal.h"

#define KEY_BYTES 16 /* of a fixed value, order-preserving */

struct extreme_fixed {
    uint64_t seen;
    uint64_t words[2];
};

/* What a comparison answers beside below, equal and above: with NaN nothing holds. */
enum comparison {
    COMPARE_BELOW = -1,
    COMPARE_EQUAL = 0,
    COMPARE_ABOVE = 1,
    COMPARE_NONE = 2,
};

#define COMPARE(a, b)                                                                              \
    ((a) < (b) ? COMPARE_BELOW                                                                     \
               : ((a) > (b) ? COMPARE_ABOVE : ((a) == (b) ? COMPARE_EQUAL : COMPARE_NONE)))

static enum comparison compare_i128(const void *a, const void *b)
{
    const __int128 left = load_i128(a);
    const __int128 right = load_i128(b);
    return COMPARE(left, right);
}

/* By milliseconds, then nanoseconds of the millisecond. */
static enum comparison compare_timestamp(const void *a, const void *b)
{
    struct timestamp left;
    struct timestamp right;
    memcpy(&left, a, sizeof(left));
    memcpy(&right, b, sizeof(right));
    return left.ms != right.ms ? COMPARE(left.ms, right.ms) : COMPARE(left.ns, right.ns);
}

static enum comparison compare_plain(const struct accumulator *self, const void *a, const void *b)
{
    ASSERT_SLOW(self->ops != NULL);
    switch (self->call->argument_type.kind) {
    case TYPE_DOUBLE:
        return COMPARE(load_f64(a), load_f64(b));
    case TYPE_FLOAT:
        return COMPARE(load_f32(a), load_f32(b));
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ:
        return compare_timestamp(a, b);
    default:
        return self->datum_bytes == 16 ? compare_i128(a, b) : COMPARE(load_i64(a), load_i64(b));
    }
}

static bool wants_max(const struct accumulator *self)
{
    ASSERT_SLOW(self->ops != NULL);
    return self->call->function == AGGREGATE_MAX;
}

static bool beats(const struct accumulator *self, const void *a, const void *b)
{
    ASSERT_SLOW(self->ops != NULL);
    return compare_plain(self, a, b) == (wants_max(self) ? COMPARE_ABOVE : COMPARE_BELOW);
}

static bool append_add(const struct accumulator *self, const struct accumulator_state *state,
                       void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    struct extreme_fixed *best = at;
    if (best->seen == 0 || beats(self, datum, best->words)) {
        best->seen = 1;
        memcpy(best->words, datum, self->datum_bytes);
    }
    return true;
}

static bool append_merge(const struct accumulator *self, const struct accumulator_state *state,
                         void *at, const void *from)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(from != at);
    const struct extreme_fixed *other = from;
    return other->seen == 0 || append_add(self, state, at, other->words);
}

static bool append_result(const struct accumulator *self, const struct accumulator_state *state,
                          const void *at, struct value *out)
{
    ASSERT_SLOW(out != NULL);
    ASSERT_SLOW(at != NULL);
    const struct extreme_fixed *best = at;
    out->is_null = best->seen == 0;
    memcpy(&out->i64, best->words, sizeof(best->words));
    return true;
}

static const struct accumulator_ops append_ops = {
    .bytes = sizeof(struct extreme_fixed),
    .add = append_add,
    .merge = append_merge,
    .result = append_result,
};

static bool append_text_add(const struct accumulator *self, const struct accumulator_state *state,
                            void *at, const void *datum)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    uint64_t *blob = at;
    const struct span text = *(const struct span *)datum;
    if (*blob != 0) {
        const int order = heap_blob_compare(state->heap, *blob, text); /* held against new */
        if (wants_max(self) ? order >= 0 : order <= 0) {
            return true;
        }
    }
    return accumulator_blob_set(state, blob, text);
}

static bool append_text_merge(const struct accumulator *self, const struct accumulator_state *state,
                              void *at, const void *from)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(from != at);
    const uint64_t other = *(const uint64_t *)from;
    struct span text;
    if (other == 0) {
        return true;
    }
    return accumulator_blob(self, state, other, &text) && append_text_add(self, state, at, &text);
}

static bool append_text_result(const struct accumulator *self,
                               const struct accumulator_state *state, const void *at,
                               struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    const uint64_t blob = *(const uint64_t *)at;
    out->is_null = blob == 0;
    return out->is_null || accumulator_blob(self, state, blob, &out->text);
}

static const struct accumulator_ops append_text_ops = {
    .bytes = sizeof(uint64_t),
    .head_kind = TABLE_HEAD_BLOB_REF,
    .add = append_text_add,
    .merge = append_text_merge,
    .result = append_text_result,
};

#define SIGN_BIT (UINT64_C(1) << 63)

/* Doubles in the order of Double.compare: all NaNs alike and highest. */
static uint64_t real_key(double value)
{
    uint64_t bits = UINT64_C(0x7ff8000000000000);
    if (value == value) {
        memcpy(&bits, &value, sizeof(bits));
    }
    return (bits & SIGN_BIT) != 0 ? ~bits : bits | SIGN_BIT;
}

static double real_of_key(uint64_t key)
{
    const uint64_t bits = (key & SIGN_BIT) != 0 ? key ^ SIGN_BIT : ~key;
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Bytes whose memcmp order is the value's order. FLOAT travels as DOUBLE, which is exact. */
static struct span key_of(const struct accumulator *self, const void *datum,
                          uint8_t into[static KEY_BYTES])
{
    ASSERT_SLOW(self->ops != NULL);
    const struct type *type = &self->call->argument_type;
    if (self->datum_bytes == 0) {
        return *(const struct span *)datum;
    }
    if (type->kind == TYPE_DOUBLE || type->kind == TYPE_FLOAT) {
        store_be64(into, real_key(type->kind == TYPE_FLOAT ? load_f32(datum) : load_f64(datum)));
    } else if (type->kind == TYPE_DECIMAL && self->datum_bytes == 16) {
        const unsigned __int128 bits = (unsigned __int128)load_i128(datum);
        store_be64(into, (uint64_t)(bits >> 64) ^ SIGN_BIT);
        store_be64(into + 8, (uint64_t)bits);
    } else {
        store_be64(into, (uint64_t)load_i64(datum) ^ SIGN_BIT);
        if (self->datum_bytes == 16) { /* timestamps: the nanoseconds are never negative */
            store_be64(into + 8, (uint64_t)load_i64((const uint8_t *)datum + 8));
        }
    }
    return (struct span){.data = into, .bytes = self->datum_bytes};
}

static void value_of_key(const struct accumulator *self, struct span key, struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(key.data != NULL || key.bytes == 0);
    const struct type *type = &self->call->argument_type;
    if (self->datum_bytes == 0) {
        out->text = key;
        return;
    }
    ASSERT(key.bytes == self->datum_bytes);
    const uint64_t high = load_be64(key.data);
    const uint64_t low = self->datum_bytes == 16 ? load_be64(key.data + 8) : 0;
    if (type->kind == TYPE_DOUBLE) {
        out->f64 = real_of_key(high);
    } else if (type->kind == TYPE_FLOAT) {
        out->i64 = 0;
        out->f32 = (float)real_of_key(high);
    } else if (type->kind == TYPE_DECIMAL && self->datum_bytes == 16) {
        const unsigned __int128 bits = ((unsigned __int128)(high ^ SIGN_BIT) << 64) | low;
        out->i128 = (__int128)bits;
    } else {
        const uint64_t words[2] = {high ^ SIGN_BIT, low};
        memcpy(&out->i64, words, self->datum_bytes);
    }
}

static void retract_init(const struct accumulator_state *state, void *at)
{
    ASSERT_SLOW(at != NULL);
    ordered_init(at, state->shard, sizeof(int64_t));
}

static bool retract_count(const struct accumulator_state *state, struct ordered_head *head,
                          struct span key, int64_t step)
{
    ASSERT_SLOW(state->value != NULL);
    ASSERT_SLOW(head != NULL);
    ASSERT_SLOW(key.data != NULL || key.bytes == 0);
    bool created = false;
    int64_t *count = ordered_insert(state->heap, head, key, &created);
    if (count == NULL) {
        return false;
    }
    *count += step;
    if (*count == 0) {
        (void)ordered_remove(state->heap, head, key);
    }
    return true;
}

static bool retract_add(const struct accumulator *self, const struct accumulator_state *state,
                        void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    uint8_t key[KEY_BYTES];
    return retract_count(state, at, key_of(self, datum, key), 1);
}

static bool retract_retract(const struct accumulator *self, const struct accumulator_state *state,
                            void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    uint8_t key[KEY_BYTES];
    return retract_count(state, at, key_of(self, datum, key), -1);
}

static bool retract_merge(const struct accumulator *self, const struct accumulator_state *state,
                          void *at, const void *from)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(from != at);
    const struct ordered_head *other = from;
    struct ordered_cursor cursor;
    bool more = ordered_first(state->heap, other, &cursor);
    for (; more; more = ordered_next(state->heap, &cursor)) {
        const struct ordered_entry entry = ordered_entry(state->heap, other, &cursor);
        struct span key = entry.key;
        if (entry.key_blob != 0 && !accumulator_blob(self, state, entry.key_blob, &key)) {
            return false;
        }
        if (!retract_count(state, at, key, load_i64(entry.value))) {
            return false;
        }
    }
    return true;
}

/* Values taken out more often than put in are there with a count below 0 and do not count. */
static bool retract_result(const struct accumulator *self, const struct accumulator_state *state,
                           const void *at, struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    const struct ordered_head *head = at;
    const bool max = wants_max(self);
    struct ordered_cursor cursor;
    bool more =
        max ? ordered_last(state->heap, head, &cursor) : ordered_first(state->heap, head, &cursor);
    while (more) {
        const struct ordered_entry entry = ordered_entry(state->heap, head, &cursor);
        if (load_i64(entry.value) > 0) {
            struct span key = entry.key;
            if (entry.key_blob != 0 && !accumulator_blob(self, state, entry.key_blob, &key)) {
                return false;
            }
            out->is_null = false;
            value_of_key(self, key, out);
            return true;
        }
        more = max ? ordered_prev(state->heap, &cursor) : ordered_next(state->heap, &cursor);
    }
    out->is_null = true;
    return true;
}

static const struct accumulator_ops retract_ops = {
    .bytes = sizeof(struct ordered_head),
    .head_kind = TABLE_HEAD_ORDERED,
    .init = retract_init,
    .add = retract_add,
    .retract = retract_retract,
    .merge = retract_merge,
    .result = retract_result,
};

static void sliding_init(const struct accumulator_state *state, void *at)
{
    ASSERT_SLOW(at != NULL);
    list_init(at, state->shard, 0);
}

/* How a candidate stands to a text: positive when it is the better answer. */
static int text_compare(const struct accumulator *self, const struct accumulator_state *state,
                        const struct list_item *item, struct span text)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(item != NULL);
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    int order;
    if (item->data == NULL && item->bytes != 0) {
        order = heap_blob_compare(state->heap, item->blob, text);
    } else {
        const size_t common = item->bytes < text.bytes ? item->bytes : text.bytes;
        order = common == 0 ? 0 : memcmp(item->data, text.data, common);
        if (order == 0) {
            order = item->bytes < text.bytes ? -1 : item->bytes > text.bytes;
        }
    }
    return wants_max(self) ? order : -order;
}

/* As text_compare, any datum. */
static int candidate_compare(const struct accumulator *self, const struct accumulator_state *state,
                             const struct list_item *item, const void *datum)
{
    ASSERT_SLOW(self->ops != NULL);
    const enum type_kind kind = self->call->argument_type.kind;
    if (self->datum_bytes == 0) {
        return text_compare(self, state, item, *(const struct span *)datum);
    }
    if (kind != TYPE_DOUBLE && kind != TYPE_FLOAT) {
        const int order = compare_plain(self, item->data, datum);
        return wants_max(self) ? order : -order;
    }
    uint8_t held[KEY_BYTES];
    uint8_t fresh[KEY_BYTES];
    (void)key_of(self, item->data, held);
    (void)key_of(self, datum, fresh);
    const int order = memcmp(held, fresh, sizeof(uint64_t));
    return wants_max(self) ? order : -order;
}

/* A row that comes out of order (on-arrival OVER): it is a candidate unless a later one is as good,
 * and it beats those in front of it. */
static bool candidate_insert(const struct accumulator *self, const struct accumulator_state *state,
                             struct list_head *head, const void *datum)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(state->value != NULL);
    ASSERT_SLOW(head != NULL);
    ASSERT_SLOW(datum != NULL);
    struct list_cursor cursor;
    if (list_seek(state->heap, head, state->order + 1, &cursor)) {
        const struct list_item later = list_item(state->heap, &cursor);
        if (candidate_compare(self, state, &later, datum) >= 0) {
            return true;
        }
    }
    for (;;) {
        const bool found = list_seek(state->heap, head, state->order + 1, &cursor)
                               ? list_prev(state->heap, &cursor)
                               : list_last(state->heap, head, &cursor);
        if (!found) {
            break;
        }
        const struct list_item earlier = list_item(state->heap, &cursor);
        if (candidate_compare(self, state, &earlier, datum) >= 0) {
            break;
        }
        list_remove(state->heap, head, &cursor);
    }
    return list_insert(state->heap, head, state->order, accumulator_span(self, datum));
}

/* In order, the newcomer goes to the end and removes the candidates that it beats. */
static bool sliding_add(const struct accumulator *self, const struct accumulator_state *state,
                        void *at, const void *datum)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    struct list_head *head = at;
    struct list_cursor cursor;
    while (list_last(state->heap, head, &cursor)) {
        const struct list_item item = list_item(state->heap, &cursor);
        if (item.order > state->order) {
            return candidate_insert(self, state, head, datum);
        }
        if (candidate_compare(self, state, &item, datum) >= 0) {
            break;
        }
        list_remove(state->heap, head, &cursor);
    }
    return list_insert(state->heap, head, state->order, accumulator_span(self, datum));
}

/* Drops the candidates up to the leaving row's place; the beaten ones have gone before. */
static bool sliding_retract(const struct accumulator *self, const struct accumulator_state *state,
                            void *at, const void *datum)
{
    ASSERT_SLOW(at != NULL);
    ASSERT_SLOW(datum != NULL);
    struct list_head *head = at;
    struct list_cursor cursor;
    while (list_first(state->heap, head, &cursor) &&
           list_item(state->heap, &cursor).order <= state->order) {
        list_drop_first(state->heap, head);
    }
    return true;
}

static bool sliding_result(const struct accumulator *self, const struct accumulator_state *state,
                           const void *at, struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    ASSERT_SLOW(state->value != NULL);
    ASSERT_SLOW(at != NULL);
    struct list_cursor cursor;
    out->is_null = !list_first(state->heap, at, &cursor);
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

static const struct accumulator_ops sliding_ops = {
    .bytes = LIST_HEAD_BYTES(0),
    .head_kind = TABLE_HEAD_LIST,
    .init = sliding_init,
    .add = sliding_add,
    .retract = sliding_retract,
    .result = sliding_result,
};

/* SLIDING over values of one slot. The first candidates lie in the state itself, so that a frame of
 * ordinary data touches no other memory; what is more stands in the list behind them. No two have
 * one order: of values that leave together only the best can be an answer. */
#define HELD_MAX 4

struct held {
    int64_t order;
    uint64_t word;
};

struct sliding_fixed {
    struct list_head more; /* candidates behind those held; empty while there is room */
    uint64_t count;        /* of held */
    struct held held[HELD_MAX];
};

/* As candidate_compare, a candidate held in the state. */
static int held_compare(const struct accumulator *self, const struct accumulator_state *state,
                        const struct held *held, const void *datum)
{
    const struct list_item item = {
        .order = held->order,
        .data = (const uint8_t *)&held->word,
        .bytes = sizeof(held->word),
    };
    return candidate_compare(self, state, &item, datum);
}

/* Puts a candidate at a place among those held; there is room. */
static void held_put(struct sliding_fixed *sliding, uint64_t at, int64_t order, const void *datum)
{
    ASSERT(at <= sliding->count);
    ASSERT(sliding->count < HELD_MAX);
    memmove(&sliding->held[at + 1], &sliding->held[at],
            (sliding->count - at) * sizeof(sliding->held[0]));
    sliding->held[at].order = order;
    memcpy(&sliding->held[at].word, datum, sizeof(sliding->held[at].word));
    sliding->count++;
}

/* Removes candidates behind which the newcomer beats, from the end of those held. */
static void held_trim(const struct accumulator *self, const struct accumulator_state *state,
                      struct sliding_fixed *sliding, const void *datum)
{
    while (sliding->count != 0 &&
           held_compare(self, state, &sliding->held[sliding->count - 1], datum) < 0) {
        sliding->count--;
    }
}

/* A row that comes out of order, and room in the state: as candidate_insert. */
static void held_insert(const struct accumulator *self, const struct accumulator_state *state,
                        struct sliding_fixed *sliding, const void *datum)
{
    uint64_t at = sliding->count;
    while (at != 0 && sliding->held[at - 1].order > state->order) {
        at--;
    }
    if (at < sliding->count && held_compare(self, state, &sliding->held[at], datum) >= 0) {
        return;
    }
    uint64_t keep = at;
    while (keep != 0 && held_compare(self, state, &sliding->held[keep - 1], datum) < 0) {
        keep--;
    }
    if (keep != 0 && sliding->held[keep - 1].order == state->order) {
        return;
    }
    memmove(&sliding->held[keep], &sliding->held[at],
            (sliding->count - at) * sizeof(sliding->held[0]));
    sliding->count -= at - keep;
    held_put(sliding, keep, state->order, datum);
}

/* Out of order without room: all candidates go to the list, which finds the place. */
static bool spilled_insert(const struct accumulator *self, const struct accumulator_state *state,
                           struct sliding_fixed *sliding, const void *datum)
{
    for (; sliding->count != 0; sliding->count--) {
        const struct held *last = &sliding->held[sliding->count - 1];
        const struct span word = {(const uint8_t *)&last->word, sizeof(last->word)};
        if (!list_insert(state->heap, &sliding->more, last->order, word)) {
            return false;
        }
    }
    return candidate_insert(self, state, &sliding->more, datum);
}

/* Keeps the best in the state. */
static void held_refill(const struct accumulator_state *state, struct sliding_fixed *sliding)
{
    struct list_cursor cursor;
    while (sliding->count < HELD_MAX && sliding->more.count != 0) {
        (void)list_first(state->heap, &sliding->more, &cursor);
        const struct list_item item = list_item(state->heap, &cursor);
        held_put(sliding, sliding->count, item.order, item.data);
        list_drop_first(state->heap, &sliding->more);
    }
}

/* In order, with candidates in the list: as sliding_add; the list may run empty.
 * done     set to whether the value has found its place
 * returns  false when the arena is exhausted */
static bool listed_add(const struct accumulator *self, const struct accumulator_state *state,
                       struct sliding_fixed *sliding, const void *datum, bool *done)
{
    struct list_cursor cursor;
    *done = true;
    while (list_last(state->heap, &sliding->more, &cursor)) {
        const struct list_item item = list_item(state->heap, &cursor);
        if (item.order > state->order) {
            const bool fine = spilled_insert(self, state, sliding, datum);
            held_refill(state, sliding);
            return fine;
        }
        if (candidate_compare(self, state, &item, datum) >= 0) {
            return item.order == state->order ||
                   list_insert(state->heap, &sliding->more, state->order,
                               accumulator_span(self, datum));
        }
        list_remove(state->heap, &sliding->more, &cursor);
    }
    *done = false;
    return true;
}

static bool fixed_add(const struct accumulator *self, const struct accumulator_state *state,
                      void *at, const void *datum)
{
    ASSERT_SLOW(datum != NULL);
    struct sliding_fixed *sliding = at;
    if (sliding->more.count != 0) {
        bool done;
        if (!listed_add(self, state, sliding, datum, &done)) {
            return false;
        }
        if (done) {
            return true;
        }
    }
    const uint64_t count = sliding->count;
    if (count != 0 && sliding->held[count - 1].order > state->order) {
        if (count < HELD_MAX) {
            held_insert(self, state, sliding, datum);
            return true;
        }
        const bool fine = spilled_insert(self, state, sliding, datum);
        held_refill(state, sliding);
        return fine;
    }
    held_trim(self, state, sliding, datum);
    if (sliding->count != 0 && sliding->held[sliding->count - 1].order == state->order) {
        return true;
    }
    if (sliding->count < HELD_MAX) {
        held_put(sliding, sliding->count, state->order, datum);
        return true;
    }
    return list_insert(state->heap, &sliding->more, state->order, accumulator_span(self, datum));
}

static bool fixed_retract(const struct accumulator *self, const struct accumulator_state *state,
                          void *at, const void *datum)
{
    ASSERT_SLOW(datum != NULL);
    struct sliding_fixed *sliding = at;
    while (sliding->count != 0 && sliding->held[0].order <= state->order) {
        sliding->count--;
        memmove(&sliding->held[0], &sliding->held[1], sliding->count * sizeof(sliding->held[0]));
        if (sliding->more.count != 0) {
            held_refill(state, sliding);
        }
    }
    return true;
}

static bool fixed_result(const struct accumulator *self, const struct accumulator_state *state,
                         const void *at, struct value *out)
{
    const struct sliding_fixed *sliding = at;
    ASSERT_SLOW(sliding->count != 0 || sliding->more.count == 0);
    out->is_null = sliding->count == 0;
    memcpy(&out->i64, &sliding->held[0].word, sizeof(sliding->held[0].word));
    return true;
}

static const struct accumulator_ops sliding_fixed_ops = {
    .bytes = sizeof(struct sliding_fixed),
    .head_kind = TABLE_HEAD_LIST,
    .init = sliding_init,
    .add = fixed_add,
    .retract = fixed_retract,
    .result = fixed_result,
};

const struct accumulator_ops *accumulator_extreme_ops(const struct aggregate_call *call,
                                                      enum accumulator_mode mode)
{
    ASSERT_SLOW(call != NULL);
    ASSERT(call->function == AGGREGATE_MIN || call->function == AGGREGATE_MAX);
    const enum type_kind kind = call->argument_type.kind;
    if (kind == TYPE_NULL || kind >= TYPE_ARRAY) {
        return NULL;
    }
    if (mode == ACCUMULATOR_RETRACT) {
        return &retract_ops;
    }
    if (mode == ACCUMULATOR_SLIDING) {
        const bool is_fixed =
            !type_is_text(&call->argument_type) && type_slot_count(&call->argument_type) == 1;
        return is_fixed ? &sliding_fixed_ops : &sliding_ops;
    }
    return type_is_text(&call->argument_type) ? &append_text_ops : &append_ops;
}
