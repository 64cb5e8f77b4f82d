/* SPDX-License-Identifier: Apache-2.0 */
/* Records that could not be decoded, on their way to a dead-letter topic: key, value, time and
 * headers as they came, and four headers on top that say from where and why. */
#pragma once

#include "base.h"
#include "dataplane/record.h"

#define DEAD_LETTER_HEADERS_MAX  1024 /* of the record itself */
#define DEAD_LETTER_TOPIC        "penstock.topic"
#define DEAD_LETTER_PARTITION    "penstock.partition"
#define DEAD_LETTER_OFFSET       "penstock.offset"
#define DEAD_LETTER_REASON       "penstock.reason"
#define DEAD_LETTER_NUMBER_BYTES 24

/* Scratch for one dead letter; the record points into it. */
struct dead_letter {
    struct record record;
    struct record_header headers[DEAD_LETTER_HEADERS_MAX + 4];
    char partition[DEAD_LETTER_NUMBER_BYTES];
    char offset[DEAD_LETTER_NUMBER_BYTES];
};

/* Fills a letter from a record.
 * record   borrowed while the letter is used, as are topic and reason
 * returns  false when the record has more headers than a letter: it must not be sent in part
 * threads  any */
bool dead_letter_fill(struct dead_letter *letter, const struct record *record, const char *topic,
                      uint32_t partition, const char *reason);
