/* SPDX-License-Identifier: Apache-2.0 */
/* SQL types as Flink names them, and how a value of each lies in memory. A type is a plain const
 * struct; nested ones (ROW fields, ARRAY elements) point to others that live as long as the plan.
 *
 *   kinds                                   in a slot (8 bytes)
 *   BOOLEAN, TINYINT … BIGINT               int64_t, sign-extended
 *   FLOAT                                   float in the low 4 bytes
 *   DOUBLE                                  double
 *   DECIMAL, precision <= 18                int64_t, unscaled
 *   DECIMAL, precision > 18                 __int128, unscaled; two slots
 *   CHAR, VARCHAR, BINARY, VARBINARY        offset from the row's start, length: uint32_t each
 *   DATE                                    int64_t days since 1970-01-01
 *   TIME                                    int64_t milliseconds of the day
 *   TIMESTAMP, TIMESTAMP_LTZ                struct timestamp; two slots
 *   INTERVAL_YEAR_MONTH, _DAY_TIME          int64_t months, int64_t milliseconds
 *
 * TIMESTAMP keeps all nine fraction digits whatever its precision says, as Flink does; years 0001
 * and 9999 are ordinary values, so nanoseconds since 1970 would not fit. */
#pragma once

#include "base.h"

enum type_kind {
    TYPE_NULL = 0, /* of the literal NULL before a cast gives it a type */
    TYPE_BOOLEAN,
    TYPE_TINYINT,
    TYPE_SMALLINT,
    TYPE_INT,
    TYPE_BIGINT,
    TYPE_FLOAT,
    TYPE_DOUBLE,
    TYPE_DECIMAL,
    TYPE_CHAR,
    TYPE_VARCHAR,
    TYPE_BINARY,
    TYPE_VARBINARY,
    TYPE_DATE,
    TYPE_TIME,
    TYPE_TIMESTAMP,
    TYPE_TIMESTAMP_LTZ,
    TYPE_INTERVAL_YEAR_MONTH,
    TYPE_INTERVAL_DAY_TIME,
    TYPE_ARRAY,
    TYPE_MAP,
    TYPE_MULTISET,
    TYPE_ROW,
};

#define TYPE_LENGTH_MAX            INT32_MAX /* STRING is VARCHAR, BYTES is VARBINARY of this */
#define TYPE_DECIMAL_PRECISION_MAX 38
#define TYPE_DECIMAL_NARROW_MAX    18 /* unscaled values up to this precision fit one slot */
#define TYPE_PRINT_BYTES           256

struct type_field;

struct type {
    enum type_kind kind;
    bool nullable;
    uint8_t precision; /* DECIMAL digits; fraction digits of TIME, TIMESTAMP, TIMESTAMP_LTZ */
    uint8_t scale;     /* DECIMAL */
    uint32_t length;   /* CHAR, VARCHAR, BINARY, VARBINARY */
    const struct type *element;      /* ARRAY, MULTISET; the value of a MAP */
    const struct type *key;          /* MAP */
    const struct type_field *fields; /* ROW: field_count of them */
    uint32_t field_count;
};

struct type_field {
    const char *name;
    struct type type;
};

/* Milliseconds since 1970-01-01 00:00:00 (of the zone-less clock for TIMESTAMP, UTC for
 * TIMESTAMP_LTZ), rounded down, and the nanoseconds of that millisecond, 0 to 999,999. */
struct timestamp {
    int64_t ms;
    int32_t ns;
    int32_t reserved; /* 0: values compare and hash as bytes */
};

_Static_assert(sizeof(struct timestamp) == 16, "two slots");

/* One value outside of a row: a literal of the plan, an argument of a test. */
struct value {
    bool is_null;
    union {
        int64_t i64;
        float f32;
        double f64;
        __int128 i128;
        struct timestamp timestamp;
        struct span text; /* CHAR, VARCHAR, BINARY, VARBINARY; borrowed */
    };
};

/* Tells how many 8-byte slots a value takes in a row: 1 or 2.
 * threads  any */
static inline uint32_t type_slot_count(const struct type *type)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    switch (type->kind) {
    case TYPE_DECIMAL:
        return type->precision > TYPE_DECIMAL_NARROW_MAX ? 2 : 1;
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ:
        return 2;
    default:
        return 1;
    }
}

/* Tells whether values of the type are bytes in the row's tail.
 * threads  any */
static inline bool type_is_text(const struct type *type)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    return type->kind >= TYPE_CHAR && type->kind <= TYPE_VARBINARY;
}

/* Tells whether the type is TINYINT, SMALLINT, INT or BIGINT.
 * threads  any */
static inline bool type_is_integer(const struct type *type)
{
    ASSERT_SLOW(type->kind <= TYPE_ROW);
    return type->kind >= TYPE_TINYINT && type->kind <= TYPE_BIGINT;
}

/* Compares two types, nullability apart.
 * threads  any */
bool type_equal(const struct type *a, const struct type *b);

/* Writes the type as Flink prints it, e.g. DECIMAL(12, 2) NOT NULL, VARCHAR(2147483647) as STRING.
 * into     TYPE_PRINT_BYTES; cut when the type is longer
 * returns  into
 * threads  any */
const char *type_print(const struct type *type, char into[static TYPE_PRINT_BYTES]);
