// SPDX-License-Identifier: Apache-2.0
// Reading of doubles and floats by Java's grammar. The digits go to std::from_chars, which rounds
// once and knows no locale; what Java adds to its grammar or takes from it is checked before.
#include <charconv>
#include <limits>

#include "dataplane/expr/text_number.h"

namespace
{

bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// The shape of an unsigned number: where it ends, and how large it is when from_chars cannot say.
struct shape {
    const char *end;
    bool huge; // out of range means Infinity rather than 0
};

const char *skip_exponent(const char *at, const char *end, long *value)
{
    bool negative = false;
    if (at != end && (*at == '+' || *at == '-')) {
        negative = *at++ == '-';
    }
    if (at == end || !is_digit(*at)) {
        return nullptr;
    }
    long exponent = 0;
    for (; at != end && is_digit(*at); at++) {
        exponent = exponent < 100000000 ? exponent * 10 + (*at - '0') : exponent;
    }
    *value = negative ? -exponent : exponent;
    return at;
}

// Checks mantissa and exponent: base 10 with e (optional) or base 16 with p (required).
bool scan(const char *at, const char *end, bool hex, shape *out)
{
    long magnitude = 0; // digits before the point, without leading zeros; negative: zeros after it
    bool any = false, point = false, leading = true;
    for (; at != end; at++) {
        if (*at == '.' && !point) {
            point = true;
            continue;
        }
        if (!(hex ? is_hex(*at) : is_digit(*at))) {
            break;
        }
        any = true;
        leading = leading && *at == '0';
        magnitude += leading ? (point ? -1 : 0) : (point ? 0 : 1);
    }
    if (!any) {
        return false;
    }
    long exponent = 0;
    const bool marked = at != end && (hex ? (*at | 32) == 'p' : (*at | 32) == 'e');
    if (marked) {
        at = skip_exponent(at + 1, end, &exponent);
    }
    if (at == nullptr || (hex && !marked)) {
        return false;
    }
    out->end = at;
    out->huge = magnitude * (hex ? 4 : 1) + exponent > 0;
    return true;
}

bool equals(const char *at, const char *end, const char *word)
{
    const size_t bytes = strlen(word);
    return static_cast<size_t>(end - at) == bytes && memcmp(at, word, bytes) == 0;
}

template <typename T> bool parse(struct span text, T *out)
{
    const char *at = reinterpret_cast<const char *>(text.data);
    const char *end = at + text.bytes;
    while (at != end && static_cast<unsigned char>(*at) <= ' ') {
        at++;
    }
    while (at != end && static_cast<unsigned char>(end[-1]) <= ' ') {
        end--;
    }
    bool negative = false;
    if (at != end && (*at == '+' || *at == '-')) {
        negative = *at++ == '-';
    }
    T value = 0;
    if (equals(at, end, "NaN")) {
        *out = std::numeric_limits<T>::quiet_NaN();
        return true;
    }
    if (equals(at, end, "Infinity")) {
        value = std::numeric_limits<T>::infinity();
        *out = negative ? -value : value;
        return true;
    }
    const bool hex = end - at > 2 && at[0] == '0' && (at[1] | 32) == 'x';
    at += hex ? 2 : 0;
    shape number = {nullptr, false};
    if (!scan(at, end, hex, &number)) {
        return false;
    }
    const char *rest = number.end;
    if (rest != end && ((*rest | 32) == 'f' || (*rest | 32) == 'd')) {
        rest++;
    }
    if (rest != end) {
        return false;
    }
    const auto format = hex ? std::chars_format::hex : std::chars_format::general;
    const auto result = std::from_chars(at, number.end, value, format);
    if (result.ec == std::errc::result_out_of_range) {
        value = number.huge ? std::numeric_limits<T>::infinity() : 0;
    } else if (result.ec != std::errc()) {
        return false;
    }
    *out = negative ? -value : value;
    return true;
}

} // namespace

bool double_parse(struct span text, double *out)
{
    return parse(text, out);
}

bool float_parse(struct span text, float *out)
{
    return parse(text, out);
}
