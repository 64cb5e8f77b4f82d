/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes between two quotes of a JSON document: where they end, what they decode to, base64.
 * Nothing reads past the end that it is given, except where a closing quote is promised. */
#pragma once

#include "base.h"

/* Finds the quote that closes a text.
 * at       behind the opening quote
 * plain    set to whether there is no backslash and no byte past 0x7f
 * returns  the closing quote, or NULL when the input ends first
 * threads  any */
const uint8_t *json_text_end(const uint8_t *at, const uint8_t *end, bool *plain);

/* Tells whether bytes are UTF-8 as the Unicode standard has it.
 * threads  any */
bool json_text_is_utf8(struct span text);

/* Decodes a text's escapes and its UTF-8 as Jackson does: no check for overlong forms, surrogates
 * allowed. A surrogate without partner is written in three bytes.
 * into     at least raw.bytes * 3 / 2 + 4 bytes; may not overlap raw
 * returns  bytes written, or SIZE_MAX when the text is broken
 * threads  any */
size_t json_text_decode(struct span raw, uint8_t *into);

/* Looks for what json_text_decode cannot decode.
 * raw      followed by the closing quote, which may be the faulty byte
 * returns  NULL when all is well, or the place behind the byte at which Jackson gives up
 * threads  any */
const uint8_t *json_text_fault(struct span raw);

/* Decodes padded base64; blanks may stand between groups of four.
 * raw      followed by the closing quote
 * into     at least raw.bytes bytes
 * fault    when it is broken: the place behind the byte at which Jackson gives up
 * returns  bytes written, or SIZE_MAX
 * threads  any */
size_t json_text_base64(struct span raw, uint8_t *into, const uint8_t **fault);
