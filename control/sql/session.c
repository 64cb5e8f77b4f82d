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

bool sql_duration(const char *text, uint64_t *out_ms)
{
    ASSERT(text != NULL && out_ms != NULL);
    while (isspace((unsigned char)*text)) {
        text++;
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
