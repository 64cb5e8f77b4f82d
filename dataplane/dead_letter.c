/* SPDX-License-Identifier: Apache-2.0 */
/* Filling a dead letter; see dead_letter.h. */
#include "dataplane/dead_letter.h"

#include <inttypes.h>
#include <stdio.h>

static struct span text_span(const char *text)
{
    return (struct span){.data = (const uint8_t *)text, .bytes = strlen(text)};
}

static struct record_header text_header(const char *name, const char *value)
{
    return (struct record_header){.name = text_span(name), .value = text_span(value)};
}

bool dead_letter_fill(struct dead_letter *letter, const struct record *record, const char *topic,
                      uint32_t partition, const char *reason)
{
    ASSERT(letter != NULL);
    ASSERT(topic != NULL && reason != NULL);
    const uint32_t own = record->header_count;
    uint32_t count = 0;
    if (record->headers_are_cut || own > DEAD_LETTER_HEADERS_MAX) {
        return false;
    }
    (void)snprintf(letter->partition, sizeof(letter->partition), "%" PRIu32, partition);
    (void)snprintf(letter->offset, sizeof(letter->offset), "%" PRId64, record->offset);
    letter->headers[count++] = text_header(DEAD_LETTER_TOPIC, topic);
    letter->headers[count++] = text_header(DEAD_LETTER_PARTITION, letter->partition);
    letter->headers[count++] = text_header(DEAD_LETTER_OFFSET, letter->offset);
    letter->headers[count++] = text_header(DEAD_LETTER_REASON, reason);
    for (uint32_t i = 0; i < own; i++) {
        letter->headers[count++] = record->headers[i];
    }
    ASSERT(count <= COUNT_OF(letter->headers));
    letter->record = *record;
    letter->record.headers = letter->headers;
    letter->record.header_count = count;
    return true;
}
