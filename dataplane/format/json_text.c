/* SPDX-License-Identifier: Apache-2.0 */
/* The text between two quotes: where it ends, what it decodes to, base64. Decoding copies
 * Jackson's: lead bytes choose the length, continuation bytes are checked, overlong forms and
 * surrogates are not. Flink's text is UTF-16; a surrogate without partner has no UTF-8, so it is
 * kept in the three bytes that its number would have, and a partner that follows joins it. */
#include "dataplane/format/json_text.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define BASE64_BAD     (-1)
#define BASE64_PADDING (-2)

/* Plain reference of the 16-byte steps below; also does the last bytes. */
static const uint8_t *text_end_tail(const uint8_t *at, const uint8_t *end, bool *plain)
{
    ASSERT_SLOW(at <= end + 1);
    ASSERT_SLOW(plain != NULL);
    for (; at < end; at++) {
        if (*at == '"') {
            return at;
        }
        if (*at >= 0x80) {
            *plain = false;
        } else if (*at == '\\') {
            *plain = false;
            at++;
        }
    }
    return NULL;
}

const uint8_t *json_text_end(const uint8_t *at, const uint8_t *end, bool *plain)
{
    ASSERT_SLOW(plain != NULL);
    ASSERT_SLOW(at <= end);
    *plain = true;
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i escape = _mm_set1_epi8('\\');
    while (end - at >= 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        const uint32_t quotes = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, quote));
        const uint32_t escapes = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, escape));
        const uint32_t wide = (uint32_t)_mm_movemask_epi8(bytes);
        const uint32_t stops = quotes | escapes;
        if (LIKELY(stops != 0)) {
            const uint32_t before = stops & (0 - stops);
            *plain = *plain && (wide & (before - 1)) == 0;
            at += __builtin_ctz(stops);
            if ((quotes & before) != 0) {
                return at;
            }
            *plain = false;
            if (end - at < 2) {
                return NULL;
            }
            at += 2;
        } else {
            *plain = *plain && wide == 0;
            at += 16;
        }
    }
#endif
    return text_end_tail(at, end, plain);
}

bool json_text_is_utf8(struct span text)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    const uint8_t *at = text.data;
    const uint8_t *const end = at + text.bytes;
    while (at < end) {
        const uint8_t lead = *at++;
        if (lead < 0x80) {
            continue;
        }
        const uint32_t more = lead >= 0xf0 ? 3 : (lead >= 0xe0 ? 2 : 1);
        if (lead < 0xc2 || lead > 0xf4 || (size_t)(end - at) < more) {
            return false;
        }
        const uint8_t low = lead == 0xe0 ? 0xa0 : (lead == 0xf0 ? 0x90 : 0x80);
        const uint8_t high = lead == 0xed ? 0x9f : (lead == 0xf4 ? 0x8f : 0xbf);
        if (at[0] < low || at[0] > high || (more > 1 && (at[1] & 0xc0) != 0x80) ||
            (more > 2 && (at[2] & 0xc0) != 0x80)) {
            return false;
        }
        at += more;
    }
    return true;
}

/* Writes one UTF-16 unit; a low surrogate behind a high one becomes their character. */
static size_t put_unit(uint8_t *into, size_t used, uint32_t unit)
{
    ASSERT_SLOW(into != NULL);
    ASSERT_SLOW(unit <= 0xffff);
    if (unit < 0x80) {
        into[used] = (uint8_t)unit;
        return used + 1;
    }
    if (unit < 0x800) {
        into[used] = (uint8_t)(0xc0 | unit >> 6);
        into[used + 1] = (uint8_t)(0x80 | (unit & 0x3f));
        return used + 2;
    }
    if ((unit & 0xfc00) == 0xdc00 && used >= 3 && into[used - 3] == 0xed &&
        (into[used - 2] & 0xf0) == 0xa0) {
        const uint32_t high = (uint32_t)(into[used - 2] & 0x0f) << 6 | (into[used - 1] & 0x3f);
        const uint32_t point = 0x10000 + (high << 10) + (unit & 0x3ff);
        into[used - 3] = (uint8_t)(0xf0 | point >> 18);
        into[used - 2] = (uint8_t)(0x80 | (point >> 12 & 0x3f));
        into[used - 1] = (uint8_t)(0x80 | (point >> 6 & 0x3f));
        into[used] = (uint8_t)(0x80 | (point & 0x3f));
        return used + 1;
    }
    into[used] = (uint8_t)(0xe0 | unit >> 12);
    into[used + 1] = (uint8_t)(0x80 | (unit >> 6 & 0x3f));
    into[used + 2] = (uint8_t)(0x80 | (unit & 0x3f));
    return used + 3;
}

static bool read_hex(const uint8_t *at, uint32_t *unit)
{
    ASSERT_SLOW(at != NULL);
    *unit = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const uint8_t byte = at[i];
        const uint8_t letter = byte | 0x20;
        if (byte >= '0' && byte <= '9') {
            *unit = *unit << 4 | (uint32_t)(byte - '0');
        } else if (letter >= 'a' && letter <= 'f') {
            *unit = *unit << 4 | (uint32_t)(letter - 'a' + 10);
        } else {
            return false;
        }
    }
    return true;
}

/* Reads what follows a backslash; returns the bytes taken, 0 when it is no escape. */
static size_t read_escape(const uint8_t *at, const uint8_t *end, uint32_t *unit)
{
    ASSERT_SLOW(at <= end);
    static const char FROM[] = "\"\\/bfnrt";
    static const char INTO[] = "\"\\/\b\f\n\r\t";
    if (at == end) {
        return 0;
    }
    if (*at == 'u') {
        return end - at >= 5 && read_hex(at + 1, unit) ? 5 : 0;
    }
    const char *found = *at == 0 ? NULL : strchr(FROM, *at);
    if (found == NULL) {
        return 0;
    }
    *unit = (uint8_t)INTO[found - FROM];
    return 1;
}

/* Reads a lead byte past 0x7f and what belongs to it; returns the bytes taken, 0 when broken. */
static size_t read_wide(const uint8_t *at, const uint8_t *end, uint32_t *bits)
{
    ASSERT_SLOW(at < end);
    ASSERT_SLOW(*at >= 0x80);
    const uint8_t lead = *at;
    size_t bytes;
    if ((lead & 0xe0) == 0xc0) {
        bytes = 2;
        *bits = lead & 0x1f;
    } else if ((lead & 0xf0) == 0xe0) {
        bytes = 3;
        *bits = lead & 0x0f;
    } else if ((lead & 0xf8) == 0xf0) {
        bytes = 4;
        *bits = lead & 0x07;
    } else {
        return 0;
    }
    if ((size_t)(end - at) < bytes) {
        return 0;
    }
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
        *bits = *bits << 6 | (at[i] & 0x3f);
    }
    return bytes;
}

/* Four bytes are two units, also where the arithmetic leaves the range of characters. */
static size_t put_pair(uint8_t *into, size_t used, uint32_t bits)
{
    ASSERT_SLOW(bits <= 0x1fffff);
    const int32_t point = (int32_t)bits - 0x10000;
    used = put_unit(into, used, (uint16_t)(0xd800 | point >> 10));
    return put_unit(into, used, (uint16_t)(0xdc00 | (point & 0x3ff)));
}

size_t json_text_decode(struct span raw, uint8_t *into)
{
    ASSERT(into != NULL || raw.bytes == 0);
    const uint8_t *at = raw.data;
    const uint8_t *const end = at + raw.bytes;
    size_t used = 0;
    while (at < end) {
        uint32_t unit = *at;
        size_t taken = 1;
        if (unit == '\\') {
            taken = read_escape(at + 1, end, &unit);
            at += taken != 0;
        } else if (unit >= 0x80) {
            taken = read_wide(at, end, &unit);
        }
        if (taken == 0) {
            return SIZE_MAX;
        }
        at += taken;
        if (taken == 4) {
            used = put_pair(into, used, unit);
        } else {
            used = put_unit(into, used, unit);
        }
    }
    return used;
}

/* The byte that breaks what starts at a lead byte or behind a backslash; at most the quote that
 * closes the text, which is neither a continuation nor a hexadecimal digit. */
static const uint8_t *faulty_byte(const uint8_t *at, const uint8_t *end)
{
    ASSERT_SLOW(at < end);
    const bool escape = *at == '\\';
    if (!escape && ((*at & 0xc0) == 0x80 || *at >= 0xf8)) {
        return at;
    }
    at++;
    if (escape) {
        if (at == end || *at != 'u') {
            return at;
        }
        uint32_t unit;
        uint8_t digits[4] = {'0', '0', '0', '0'};
        for (uint32_t i = 0; i < 4; i++) {
            digits[i] = ++at < end ? *at : '"';
            if (!read_hex(digits, &unit)) {
                return at;
            }
        }
    }
    while (at < end && (*at & 0xc0) == 0x80) {
        at++;
    }
    return at;
}

const uint8_t *json_text_fault(struct span raw)
{
    ASSERT(raw.data != NULL || raw.bytes == 0);
    const uint8_t *at = raw.data;
    const uint8_t *const end = at + raw.bytes;
    while (at < end) {
        uint32_t unit = *at;
        size_t taken = 1;
        if (unit == '\\') {
            taken = read_escape(at + 1, end, &unit);
            taken += taken != 0;
        } else if (unit >= 0x80) {
            taken = read_wide(at, end, &unit);
        }
        if (taken == 0) {
            return faulty_byte(at, end) + 1;
        }
        at += taken;
    }
    return NULL;
}

static int32_t base64_bits(uint8_t byte)
{
    if (byte >= 'A' && byte <= 'Z') {
        return byte - 'A';
    }
    if (byte >= 'a' && byte <= 'z') {
        return byte - 'a' + 26;
    }
    if (byte >= '0' && byte <= '9') {
        return byte - '0' + 52;
    }
    if (byte == '+' || byte == '/') {
        return byte == '+' ? 62 : 63;
    }
    return byte == '=' ? BASE64_PADDING : BASE64_BAD;
}

/* Reads one character for base64, an escape decoded; returns what base64_bits says of it. At the
 * end it is the closing quote. */
static int32_t base64_next(const uint8_t **at, const uint8_t *end, uint32_t *unit)
{
    ASSERT_SLOW(*at <= end);
    *unit = '"';
    if (*at == end) {
        return BASE64_BAD;
    }
    *unit = **at;
    if (*unit != '\\') {
        (*at)++;
        return base64_bits((uint8_t)*unit);
    }
    const size_t taken = read_escape(*at + 1, end, unit);
    if (taken == 0) {
        *unit = UINT32_MAX;
        *at = faulty_byte(*at, end) + 1;
        return BASE64_BAD;
    }
    *at += taken + 1;
    return *unit < 0x80 ? base64_bits((uint8_t)*unit) : BASE64_BAD;
}

/* Reads the characters behind the first of a group; returns the bytes written, 0 when broken. */
static size_t base64_group(const uint8_t **at, const uint8_t *end, int32_t first, uint8_t *into)
{
    ASSERT_SLOW(first >= 0 && first < 64);
    ASSERT_SLOW(*at <= end);
    uint32_t unit;
    const bool empty = *at == end;
    const int32_t second = base64_next(at, end, &unit);
    if (second < 0) {
        *at += empty; /* the closing quote counts as read here, and only here */
        return 0;
    }
    into[0] = (uint8_t)(first << 2 | second >> 4);
    const int32_t third = base64_next(at, end, &unit);
    if (third == BASE64_PADDING) {
        const bool short_of_one = *at == end;
        const int32_t last = base64_next(at, end, &unit);
        *at += short_of_one;
        return last == BASE64_PADDING ? 1 : 0;
    }
    const int32_t fourth = third < 0 ? BASE64_BAD : base64_next(at, end, &unit);
    if (fourth == BASE64_BAD) {
        return 0;
    }
    into[1] = (uint8_t)((second & 15) << 4 | third >> 2);
    if (fourth == BASE64_PADDING) {
        return 2;
    }
    into[2] = (uint8_t)((third & 3) << 6 | fourth);
    return 3;
}

size_t json_text_base64(struct span raw, uint8_t *into, const uint8_t **fault)
{
    ASSERT(fault != NULL);
    ASSERT(into != NULL || raw.bytes == 0);
    const uint8_t *at = raw.data;
    const uint8_t *const end = at + raw.bytes;
    size_t used = 0;
    while (at < end) {
        uint32_t unit;
        const int32_t first = base64_next(&at, end, &unit);
        if (first == BASE64_BAD && unit <= ' ') {
            continue;
        }
        const size_t written = first < 0 ? 0 : base64_group(&at, end, first, into + used);
        if (written == 0) {
            *fault = at;
            return SIZE_MAX;
        }
        used += written;
    }
    return used;
}
