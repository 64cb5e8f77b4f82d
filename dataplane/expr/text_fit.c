/* SPDX-License-Identifier: Apache-2.0 */
/* Characters in UTF-8 and fitting of text to CHAR(n), VARCHAR(n), BINARY(n) and VARBINARY(n). */
#include "dataplane/expr/text_internal.h"

#define CHARACTER_MAX 0x10ffff

uint32_t text_decode(const uint8_t *data, size_t bytes, size_t *step)
{
    ASSERT_SLOW(data != NULL);
    ASSERT_SLOW(step != NULL);
    ASSERT(bytes > 0);
    static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    const uint8_t lead = data[0];
    const size_t wanted = text_step(data, bytes);
    *step = 1;
    uint32_t character = lead & masks[wanted];
    for (size_t i = 1; i < wanted; i++) {
        if (!text_is_rest(data[i])) {
            return lead;
        }
        character = character << 6 | (data[i] & 0x3fU);
    }
    if (wanted == 1 || character > CHARACTER_MAX) {
        return lead;
    }
    *step = wanted;
    return character;
}

size_t text_encode(uint32_t character, uint8_t *into)
{
    ASSERT(character <= CHARACTER_MAX);
    if (character < 0x80) {
        into[0] = (uint8_t)character;
        return 1;
    }
    if (character < 0x800) {
        into[0] = (uint8_t)(0xc0 | character >> 6);
        into[1] = (uint8_t)(0x80 | (character & 0x3f));
        return 2;
    }
    if (character < 0x10000) {
        into[0] = (uint8_t)(0xe0 | character >> 12);
        into[1] = (uint8_t)(0x80 | (character >> 6 & 0x3f));
        into[2] = (uint8_t)(0x80 | (character & 0x3f));
        return 3;
    }
    into[0] = (uint8_t)(0xf0 | character >> 18);
    into[1] = (uint8_t)(0x80 | (character >> 12 & 0x3f));
    into[2] = (uint8_t)(0x80 | (character >> 6 & 0x3f));
    into[3] = (uint8_t)(0x80 | (character & 0x3f));
    return 4;
}

bool text_copy(struct kernel_run *run, const void *bytes, size_t count, struct span *out)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(out != NULL);
    uint8_t *into = kernel_text(run, count);
    if (into == NULL) {
        return false;
    }
    if (count != 0) {
        memcpy(into, bytes, count);
    }
    *out = (struct span){.data = into, .bytes = count};
    return true;
}

bool text_fit(struct kernel_run *run, struct span text, const struct type *type, struct span *out)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(out != NULL);
    ASSERT(type_is_text(type));
    const bool binary = type->kind == TYPE_BINARY || type->kind == TYPE_VARBINARY;
    const bool pads = type->kind == TYPE_CHAR || type->kind == TYPE_BINARY;
    /* Bytes are at least characters: the usual text is short enough at a glance. */
    if (text.bytes <= type->length && !pads) {
        *out = text;
        return true;
    }
    const uint32_t count = binary ? (uint32_t)text.bytes : text_count(text);
    if (count >= type->length) {
        *out = text;
        out->bytes = binary ? type->length : text_offset(text, type->length);
        return true;
    }
    if (!pads) {
        *out = text;
        return true;
    }
    const size_t padding = type->length - count;
    uint8_t *into = kernel_text(run, text.bytes + padding);
    if (into == NULL) {
        return false;
    }
    if (text.bytes != 0) {
        memcpy(into, text.data, text.bytes);
    }
    memset(into + text.bytes, binary ? 0 : ' ', padding);
    *out = (struct span){.data = into, .bytes = text.bytes + padding};
    return true;
}
