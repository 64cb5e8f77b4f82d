/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 helpers of the text kernels. Text is UTF-8; a byte that starts no valid sequence counts as
 * one character of one byte. */
#pragma once

#include "base.h"
#include "dataplane/expr/kernel_internal.h"

/* Tells how many bytes the character at data takes, at most `bytes`. */
static inline size_t text_step(const uint8_t *data, size_t bytes)
{
    const uint8_t lead = data[0];
    const size_t step = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    return step <= bytes ? step : bytes;
}

/* Tells whether a byte continues a character. */
static inline bool text_is_rest(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

/* Counts characters (code points). */
static inline uint32_t text_count(struct span text)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    uint32_t count = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        count += text_is_rest(text.data[i]) ? 0 : 1;
    }
    return count;
}

/* Finds the byte offset of character `index`, or text.bytes when there are fewer. */
static inline size_t text_offset(struct span text, uint64_t index)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    size_t at = 0;
    while (index > 0 && at < text.bytes) {
        at += text_step(text.data + at, text.bytes - at);
        index--;
    }
    return at;
}

/* Reads the character at data; a byte that begins none comes as it is, with a step of 1.
 * step     its bytes */
uint32_t text_decode(const uint8_t *data, size_t bytes, size_t *step);

/* Writes a character.
 * into     4 bytes
 * returns  its bytes */
size_t text_encode(uint32_t character, uint8_t *into);

/* Cuts a text to a type's length, and pads it with blanks for CHAR, by characters; BINARY and
 * VARBINARY by bytes, with zeros.
 * returns  false when the scratch is full */
bool text_fit(struct kernel_run *run, struct span text, const struct type *type, struct span *out);

/* Copies bytes into the run's scratch.
 * returns  false when it is full */
bool text_copy(struct kernel_run *run, const void *bytes, size_t count, struct span *out);

/* UPPER; KERNEL_STRICT. */
void text_upper(struct kernel_run *run);

/* LOWER; KERNEL_STRICT. */
void text_lower(struct kernel_run *run);

/* INITCAP; KERNEL_STRICT. */
void text_initcap(struct kernel_run *run);
