/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed-width numbers in both byte orders, text and bytes as they are. A BOOLEAN is one byte, true
 * when it is not 0. */
#include "dataplane/format/raw.h"

/* 0: any width */
static size_t width_of(const struct type *type)
{
    ASSERT(type != NULL);
    switch (type->kind) {
    case TYPE_BOOLEAN:
    case TYPE_TINYINT:
        return 1;
    case TYPE_SMALLINT:
        return 2;
    case TYPE_INT:
    case TYPE_FLOAT:
        return 4;
    case TYPE_BIGINT:
    case TYPE_DOUBLE:
        return 8;
    default:
        return 0;
    }
}

/* Loads up to 8 bytes, in their order, as an unsigned number. */
static uint64_t load(struct span bytes, bool little_endian)
{
    ASSERT(bytes.bytes <= 8);
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.bytes; i++) {
        const size_t from = little_endian ? bytes.bytes - 1 - i : i;
        value = value << 8 | bytes.data[from];
    }
    return value;
}

bool raw_decode(const struct type *type, bool little_endian, struct span bytes, struct value *out)
{
    ASSERT(type != NULL && out != NULL);
    const size_t width = width_of(type);
    *out = (struct value){.is_null = false};
    if (width == 0) {
        out->text = bytes;
        return true;
    }
    if (bytes.bytes != width) {
        return false;
    }
    const uint64_t bits = load(bytes, little_endian);
    const uint32_t unused = 64 - 8 * (uint32_t)width;
    switch (type->kind) {
    case TYPE_BOOLEAN:
        out->i64 = bits != 0;
        break;
    case TYPE_FLOAT:
    case TYPE_DOUBLE:
        out->i64 = (int64_t)bits; /* a float's bits lie in the low four bytes */
        break;
    default:
        out->i64 = (int64_t)(bits << unused) >> unused;
        break;
    }
    return true;
}

size_t raw_encode(const struct type *type, bool little_endian, const struct value *value,
                  struct span_mut into)
{
    ASSERT(type != NULL && into.data != NULL);
    ASSERT(!value->is_null);
    ASSERT(into.bytes >= 8);
    const size_t width = width_of(type);
    if (width == 0) {
        if (value->text.bytes != 0 && value->text.bytes <= into.bytes) {
            memcpy(into.data, value->text.data, value->text.bytes);
        }
        return value->text.bytes;
    }
    const uint64_t bits = (uint64_t)value->i64;
    for (size_t i = 0; i < width; i++) {
        const size_t shift = 8 * (little_endian ? i : width - 1 - i);
        into.data[i] = (uint8_t)(bits >> shift);
    }
    return width;
}
