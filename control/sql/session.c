/* SPDX-License-Identifier: Apache-2.0 */
/* Small things that all steps of planning need; see session.h. */
#include "control/sql/session.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define NEAREST_BYTES_MAX 128

int sql_fail(struct session *session, int code, struct place at, const char *format, ...)
{
    ASSERT(session->memory != NULL);
    ASSERT(code < 0);
    if (session->error == NULL) {
        return code;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(session->error->text, sizeof(session->error->text), format, arguments);
    va_end(arguments);
    session->error->line = at.line;
    session->error->column = at.column;
    return code;
}

void sql_note(struct session *session, struct place at, const char *format, ...)
{
    ASSERT(session->memory != NULL);
    ASSERT(format != NULL);
    char text[ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    struct sql_note *note = sql_allocate(session->memory, sizeof(*note));
    note->line = at.line;
    note->column = at.column;
    note->text = sql_copy_text(session->memory, text, strlen(text));
    ast_append(session->memory, &session->notes, note);
}

/* Edit distance, whatever the case; texts are short. */
static uint32_t distance(const char *a, const char *b)
{
    ASSERT(a != NULL);
    uint32_t row[NEAREST_BYTES_MAX + 1];
    const size_t width = strlen(b);
    ASSERT(width <= NEAREST_BYTES_MAX);
    for (size_t k = 0; k <= width; k++) {
        row[k] = (uint32_t)k;
    }
    for (size_t i = 0; a[i] != 0; i++) {
        uint32_t diagonal = row[0];
        row[0] = (uint32_t)i + 1;
        for (size_t k = 1; k <= width; k++) {
            const bool equal = tolower((unsigned char)a[i]) == tolower((unsigned char)b[k - 1]);
            uint32_t best = diagonal + (equal ? 0 : 1);
            best = row[k] + 1 < best ? row[k] + 1 : best;
            best = row[k - 1] + 1 < best ? row[k - 1] + 1 : best;
            diagonal = row[k];
            row[k] = best;
        }
    }
    return row[width];
}

const char *sql_nearest(const char *word, const char *const *known, uint32_t count)
{
    ASSERT(word != NULL);
    const size_t bytes = strlen(word);
    const char *nearest = NULL;
    uint32_t best = (uint32_t)(bytes / 3) + 1;
    for (uint32_t i = 0; i < count && bytes <= NEAREST_BYTES_MAX; i++) {
        if (strlen(known[i]) > NEAREST_BYTES_MAX) {
            continue;
        }
        const uint32_t far = distance(word, known[i]);
        if (far < bytes && far <= best && (nearest == NULL || far < best)) {
            best = far;
            nearest = known[i];
        }
    }
    return nearest;
}

struct unit {
    const char *name;
    uint64_t ms;
};

static const struct unit units[] = {
    {"", 1},
    {"ms", 1},
    {"milli", 1},
    {"millis", 1},
    {"millisecond", 1},
    {"milliseconds", 1},
    {"s", 1000},
    {"sec", 1000},
    {"secs", 1000},
    {"second", 1000},
    {"seconds", 1000},
    {"m", 60000},
    {"min", 60000},
    {"mins", 60000},
    {"minute", 60000},
    {"minutes", 60000},
    {"h", 3600000},
    {"hour", 3600000},
    {"hours", 3600000},
    {"d", 86400000},
    {"day", 86400000},
    {"days", 86400000},
};

/* One number of an ISO-8601 duration and its letter; letters are taken in their order, each once.
 * returns  where the rest begins, NULL when it is none */
static const char *iso_part(const char *text, const char **letters, uint64_t *sum_ms)
{
    ASSERT(text != NULL);
    ASSERT(letters != NULL && sum_ms != NULL);
    char *end = NULL;
    errno = 0;
    const unsigned long long number = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
    if (end == NULL || errno != 0 || *end == 0) {
        return NULL;
    }
    const char *letter = strchr(*letters, toupper((unsigned char)*end));
    if (letter == NULL) {
        return NULL;
    }
    *letters = letter + 1;
    const uint64_t unit_ms = *letter == 'D'   ? 86400000
                             : *letter == 'H' ? 3600000
                             : *letter == 'M' ? 60000
                                              : 1000;
    uint64_t part_ms = 0;
    const bool fits = !__builtin_mul_overflow(number, unit_ms, &part_ms) &&
                      !__builtin_add_overflow(*sum_ms, part_ms, sum_ms);
    return fits ? end + 1 : NULL;
}

/* P1D, PT1H30M: what Flink takes besides; whole numbers only. */
static bool iso_duration(const char *text, uint64_t *out_ms)
{
    ASSERT(toupper((unsigned char)*text) == 'P');
    ASSERT(out_ms != NULL);
    const char *letters = "D";
    uint64_t sum_ms = 0;
    bool has_part = false;
    text++;
    while (text != NULL && *text != 0) {
        if (toupper((unsigned char)*text) == 'T' && letters[0] != 'H' && text[1] != 0) {
            letters = "HMS";
            text++;
        }
        text = iso_part(text, &letters, &sum_ms);
        has_part = true;
    }
    *out_ms = sum_ms;
    return text != NULL && has_part;
}

bool sql_duration(const char *text, uint64_t *out_ms)
{
    ASSERT(text != NULL && out_ms != NULL);
    while (isspace((unsigned char)*text)) {
        text++;
    }
    if (toupper((unsigned char)*text) == 'P') {
        return iso_duration(text, out_ms);
    }
    if (!isdigit((unsigned char)*text)) {
        return false;
    }
    char *end = NULL;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    while (isspace((unsigned char)*end)) {
        end++;
    }
    size_t bytes = strlen(end);
    while (bytes != 0 && isspace((unsigned char)end[bytes - 1])) {
        bytes--;
    }
    for (uint32_t i = 0; i < COUNT_OF(units); i++) {
        if (strlen(units[i].name) == bytes && strncasecmp(units[i].name, end, bytes) == 0) {
            return errno == 0 && !__builtin_mul_overflow(number, units[i].ms, out_ms);
        }
    }
    return false;
}

void sql_duration_print(int64_t ms, char into[static 32])
{
    ASSERT(into != NULL);
    static const struct {
        int64_t ms;
        const char *unit;
    } steps[] = {{86400000, "d"}, {3600000, "h"}, {60000, "min"}, {1000, "s"}, {1, "ms"}};
    for (uint32_t i = 0; i < COUNT_OF(steps); i++) {
        if (ms % steps[i].ms == 0 || steps[i].ms == 1) {
            (void)snprintf(into, 32, "%lld %s", (long long)(ms / steps[i].ms), steps[i].unit);
            return;
        }
    }
}
