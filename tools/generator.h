/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of made-up records, the same bytes for the same arguments: payments for the fraud job,
 * and the Nexmark suite's events. One event is one JSON object; the next one is made straight into
 * the caller's buffer, so that a generator can outrun a broker. */
#pragma once

#include "base.h"

#define GENERATOR_LINE_BYTES_MAX 4096

/* The nested records of the Nexmark suite; the reference in words and Python is the case suite's
 * nexmark/gen.py, whose output these are byte for byte. */
struct generator_nexmark;

struct generator_nexmark_config {
    uint64_t seed;
    uint64_t rate; /* events per second of event time, at least 1 */
    int64_t start_ms;
    uint32_t disorder_ms; /* events say they happened up to this much earlier */
};

/* Prepares the tables and texts that all events share (some 2 MiB).
 * out      freed by generator_nexmark_destroy
 * returns  0 or -ENOMEM
 * threads  any; then one at a time */
int generator_nexmark_create(const struct generator_nexmark_config *config,
                             struct generator_nexmark **out);

/* Frees it; NULL is nothing.
 * threads  any */
void generator_nexmark_destroy(struct generator_nexmark *generator);

/* Writes event n, without a newline.
 * n        at least 2; any order
 * into     GENERATOR_LINE_BYTES_MAX bytes
 * returns  its bytes
 * threads  one at a time */
size_t generator_nexmark_line(struct generator_nexmark *generator, uint64_t n, uint8_t *into);

/* Card payments. Some cards are busy (a tenth of them makes half of the payments), some pay once in
 * days. Times rise per card without ties unless disorder or ties are asked for. */
struct generator_payments;

struct generator_payments_config {
    uint64_t seed;
    uint64_t first_id;     /* payments are numbered from here */
    uint32_t cards;        /* at least 1 */
    double rate;           /* payments per second of event time, above 0 */
    int64_t start_ms;      /* of the first payment */
    uint32_t disorder_ms;  /* payments say they happened up to this much earlier */
    uint32_t ties_percent; /* share of payments that repeat their card's last time */
    uint32_t idle_percent; /* share of cards that are idle nearly always */
    bool wide;             /* some 300 bytes a payment instead of 150 */
};

/* A payment, for those who want its parts. */
struct generator_payment {
    uint64_t id;
    uint32_t card; /* number below config.cards */
    int64_t time_ms;
};

/* Prepares a generator.
 * out      freed by generator_payments_destroy
 * returns  0 or -ENOMEM
 * threads  any; then one at a time */
int generator_payments_create(const struct generator_payments_config *config,
                              struct generator_payments **out);

/* Frees it; NULL is nothing.
 * threads  any */
void generator_payments_destroy(struct generator_payments *generator);

/* Writes the next payment, without a newline.
 * payment  set; may be NULL
 * into     GENERATOR_LINE_BYTES_MAX bytes
 * returns  its bytes
 * threads  one at a time */
size_t generator_payments_line(struct generator_payments *generator,
                               struct generator_payment *payment, uint8_t *into);
