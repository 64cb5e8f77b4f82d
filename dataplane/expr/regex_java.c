/* SPDX-License-Identifier: Apache-2.0 */
/* Rewriting of patterns; see regex_java.h. What the two languages share passes through. */
#include "dataplane/expr/regex_java.h"

#define WORD         "[\\p{L}\\p{N}\\p{M}_]"
#define BOUNDARY     "(?:(?<=" WORD ")(?!" WORD ")|(?<!" WORD ")(?=" WORD "))"
#define NOT_BOUNDARY "(?:(?<=" WORD ")(?=" WORD ")|(?<!" WORD ")(?!" WORD "))"
#define NAME_BYTES   24

struct rewrite {
    struct span from;
    size_t at;
    char *into;
    size_t used;
    bool in_class;
    const char *why;
};

static void put(struct rewrite *out, const char *text, size_t bytes)
{
    ASSERT_SLOW(out != NULL);
    if (bytes > REGEX_TEXT_MAX - out->used) {
        out->why = "the pattern is too long";
        return;
    }
    memcpy(out->into + out->used, text, bytes);
    out->used += bytes;
}

static void put_text(struct rewrite *out, const char *text)
{
    put(out, text, strlen(text));
}

static uint8_t peek(const struct rewrite *in, size_t ahead)
{
    ASSERT_SLOW(in->at <= in->from.bytes);
    return in->at + ahead < in->from.bytes ? in->from.data[in->at + ahead] : 0;
}

/* \p{Name}: Java's ASCII classes are POSIX classes of PCRE2, Is and script= are no part of a name.
 */
static void put_property(struct rewrite *out)
{
    ASSERT_SLOW(out != NULL);
    static const char *const names[][2] = {
        {"Lower", "lower"}, {"Upper", "upper"}, {"Alpha", "alpha"},   {"Digit", "digit"},
        {"Alnum", "alnum"}, {"Punct", "punct"}, {"Graph", "graph"},   {"Print", "print"},
        {"Blank", "blank"}, {"Cntrl", "cntrl"}, {"XDigit", "xdigit"}, {"Space", "space"},
    };
    const bool negative = peek(out, 1) == 'P';
    char name[NAME_BYTES];
    size_t bytes = 0;
    size_t end = out->at + 3;
    while (end < out->from.bytes && out->from.data[end] != '}' && bytes < NAME_BYTES - 1) {
        name[bytes++] = (char)out->from.data[end++];
    }
    name[bytes] = '\0';
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(name, names[i][0]) != 0) {
            continue;
        }
        put_text(out, out->in_class ? "[:" : "[[:");
        put_text(out, negative ? "^" : "");
        put_text(out, names[i][1]);
        put_text(out, out->in_class ? ":]" : ":]]");
        out->at = end + 1;
        return;
    }
    const bool is = strncmp(name, "Is", 2) == 0;
    put_text(out, negative ? "\\P{" : "\\p{");
    put_text(out, strcmp(name, "IsAlphabetic") == 0 ? "L" : is ? name + 2 : name);
    put_text(out, "}");
    out->at = end + 1;
}

/* A backslash and what follows it. */
static void put_escape(struct rewrite *out)
{
    const uint8_t next = peek(out, 1);
    if ((next == 'b' || next == 'B') && !out->in_class) {
        put_text(out, next == 'b' ? BOUNDARY : NOT_BOUNDARY);
        out->at += 2;
    } else if ((next == 'p' || next == 'P') && peek(out, 2) == '{') {
        put_property(out);
    } else if (next == 'u' && out->at + 6 <= out->from.bytes) {
        put_text(out, "\\x{");
        put(out, (const char *)out->from.data + out->at + 2, 4);
        put_text(out, "}");
        out->at += 6;
    } else {
        const size_t bytes = out->at + 2 <= out->from.bytes ? 2 : 1;
        put(out, (const char *)out->from.data + out->at, bytes);
        out->at += bytes;
    }
}

static size_t finish(const struct rewrite *out, const char **why)
{
    *why = out->why;
    return out->why == NULL ? out->used : 0;
}

size_t regex_from_java(struct span pattern, char *into, const char **why)
{
    ASSERT_SLOW(pattern.data != NULL || pattern.bytes == 0);
    ASSERT(into != NULL && why != NULL);
    struct rewrite out = {.from = pattern, .into = into};
    while (out.at < pattern.bytes && out.why == NULL) {
        const uint8_t c = pattern.data[out.at];
        if (c == '\\') {
            put_escape(&out);
            continue;
        }
        if (out.in_class && (c == '[' || (c == '&' && peek(&out, 1) == '&'))) {
            out.why = "unions and intersections of character classes are not built";
            break;
        }
        if (c == '[') {
            out.in_class = true;
        } else if (c == ']') {
            out.in_class = false;
        }
        put(&out, (const char *)pattern.data + out.at++, 1);
    }
    return finish(&out, why);
}

/* Takes what an escape character protects. */
static void put_protected(struct rewrite *out, uint8_t escape)
{
    static const char specials[] = "[]()|^-+*_%?{}";
    const uint8_t next = peek(out, 1);
    if (next == 0 || (strchr(specials, next) == NULL && next != escape)) {
        out->why = "invalid escape sequence";
        return;
    }
    const char text[2] = {'\\', (char)next};
    put(out, text, 2);
    out->at += 2;
}

/* [:ALPHA:] and the like, in capitals or not. */
static void put_class_name(struct rewrite *out)
{
    ASSERT_SLOW(out != NULL);
    while (out->at < out->from.bytes && peek(out, 0) != ']') {
        const uint8_t c = peek(out, 0);
        const char lower = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
        put(out, &lower, 1);
        out->at++;
    }
    put_text(out, "]");
    out->at++;
}

static void put_similar(struct rewrite *out, uint8_t c)
{
    ASSERT_SLOW(out != NULL);
    switch (c) {
    case '_':
        put_text(out, out->in_class ? "_" : ".");
        break;
    case '%':
        put_text(out, out->in_class ? "%" : "(?s:.*)");
        break;
    case '\\':
        put_text(out, "\\\\");
        break;
    case '$':
        put_text(out, "\\$");
        break;
    default:
        out->in_class = c == '[' || (out->in_class && c != ']');
        put(out, (const char *)&c, 1);
        break;
    }
    out->at++;
}

size_t regex_from_similar(struct span pattern, uint8_t escape, char *into, const char **why)
{
    ASSERT_SLOW(pattern.data != NULL || pattern.bytes == 0);
    ASSERT(into != NULL && why != NULL);
    struct rewrite out = {.from = pattern, .into = into};
    put_text(&out, "(?:");
    while (out.at < pattern.bytes && out.why == NULL) {
        const uint8_t c = pattern.data[out.at];
        if (escape != 0 && c == escape) {
            put_protected(&out, escape);
        } else if (out.in_class && c == '[' && peek(&out, 1) == ':') {
            put_class_name(&out);
        } else {
            put_similar(&out, c);
        }
    }
    put_text(&out, ")");
    return finish(&out, why);
}
