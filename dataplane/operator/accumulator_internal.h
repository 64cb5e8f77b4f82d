/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the aggregate functions. Each function and type has a table of kernels over
 * the bytes of its state. A kernel never sees NULL and FILTER: the set's loops have settled them
 * (LAG alone gets NULL, as no datum). A datum points to the argument's slot words, or for text to a
 * struct span. */
#pragma once

#include "dataplane/operator/accumulator.h"
#include "state/list.h"
#include "state/ordered.h"

#define ACCUMULATOR_NONE UINT32_MAX

struct accumulator;

struct accumulator_ops {
    uint32_t bytes;     /* of the state; a multiple of 8 */
    uint32_t head_kind; /* enum table_head_kind of what stands at its start, 0: plain bytes */
    void (*init)(const struct accumulator_state *state, void *at); /* NULL: zeros are fine */
    bool (*add)(const struct accumulator *self, const struct accumulator_state *state, void *at,
                const void *datum);
    bool (*retract)(const struct accumulator *self, const struct accumulator_state *state, void *at,
                    const void *datum);
    bool (*merge)(const struct accumulator *self, const struct accumulator_state *state, void *at,
                  const void *from);
    bool (*result)(const struct accumulator *self, const struct accumulator_state *state,
                   const void *at, struct value *out);
};

/* One call, resolved against the layout of its rows. */
struct accumulator {
    const struct accumulator_ops *ops;
    const struct aggregate_call *call;
    uint32_t offset;          /* of its state in the value */
    uint32_t distinct_offset; /* of its map of values, or ACCUMULATOR_NONE */
    uint32_t column;          /* of the argument, or ACCUMULATOR_NONE */
    uint32_t word;
    uint32_t filter; /* column, or ACCUMULATOR_NONE */
    uint32_t filter_word;
    uint32_t datum_bytes;  /* 8 or 16; 0 for text */
    uint32_t result_words; /* 1 or 2; 0 for text */
    enum accumulator_mode mode;
    bool is_over;
    bool is_shared;              /* an earlier call keeps this state */
    const struct expiry *expiry; /* of DISTINCT's values; NULL: they stay */
    uint8_t *scratch;            /* ACCUMULATOR_TEXT_BYTES_MAX, shared by the set */
};

struct accumulator_set {
    uint32_t call_count;
    uint32_t bytes;
    uint8_t *scratch;
    uint32_t list_count; /* of the states that begin with a list */
    uint32_t lists[ACCUMULATOR_HEADS_MAX];
    struct accumulator calls[];
};

/* Finds the kernels of COUNT, SUM, AVG, STDDEV, VAR and the numbering functions.
 * returns  NULL for types they do not take
 * threads  control */
const struct accumulator_ops *accumulator_number_ops(const struct aggregate_call *call,
                                                     bool is_over);

/* As accumulator_number_ops, MIN and MAX. */
const struct accumulator_ops *accumulator_extreme_ops(const struct aggregate_call *call,
                                                      enum accumulator_mode mode);

/* As accumulator_number_ops, FIRST_VALUE, LAST_VALUE, LAG and LISTAGG. */
const struct accumulator_ops *accumulator_value_ops(const struct aggregate_call *call,
                                                    enum accumulator_mode mode);

/* Shows a datum as bytes: the slot words, or the text.
 * threads  any */
static inline struct span accumulator_span(const struct accumulator *self, const void *datum)
{
    ASSERT_SLOW(self->ops != NULL);
    if (self->datum_bytes == 0) {
        return *(const struct span *)datum;
    }
    return (struct span){.data = datum, .bytes = self->datum_bytes};
}

/* Reads a value back from the bytes that accumulator_span gave.
 * threads  any */
static inline void accumulator_value(const struct accumulator *self, struct span bytes,
                                     struct value *out)
{
    ASSERT_SLOW(self->ops != NULL);
    out->is_null = false;
    if (self->datum_bytes == 0) {
        out->text = bytes;
    } else {
        ASSERT(bytes.bytes == self->datum_bytes);
        memcpy(&out->i64, bytes.data, self->datum_bytes);
    }
}

/* Makes the bytes of a list item or blob contiguous: long ones are read into the scratch.
 * returns  false when they are longer than the scratch
 * threads  owning lane only */
bool accumulator_item(const struct accumulator *self, const struct accumulator_state *state,
                      const struct list_item *item, struct span *out);

/* As accumulator_item, a blob. */
bool accumulator_blob(const struct accumulator *self, const struct accumulator_state *state,
                      uint64_t blob, struct span *out);

/* Replaces a blob reference by one to new content.
 * returns  false when the arena is exhausted
 * threads  owning lane only */
bool accumulator_blob_set(const struct accumulator_state *state, uint64_t *blob,
                          struct span content);

/* Load values from state and rows, which are 8-byte aligned only.
 * threads  any */
static inline int64_t load_i64(const void *from)
{
    int64_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

/* As load_i64. */
static inline double load_f64(const void *from)
{
    double value;
    memcpy(&value, from, sizeof(value));
    return value;
}

/* As load_i64. */
static inline float load_f32(const void *from)
{
    float value;
    memcpy(&value, from, sizeof(value));
    return value;
}

/* As load_i64; __int128 wants more alignment than there is. */
static inline __int128 load_i128(const void *from)
{
    __int128 value;
    memcpy(&value, from, sizeof(value));
    return value;
}
