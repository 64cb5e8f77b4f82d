/* SPDX-License-Identifier: Apache-2.0 */
/* Where `penstock load` puts its records: one header, two bodies (file, broker). */
#pragma once

#include "base.h"

struct load_target;

struct load_record {
    struct span value;
    struct span key; /* data NULL: none */
    int32_t partition;
};

struct load_target_ops {
    int (*put)(struct load_target *target, const struct load_record *record);
    int (*finish)(struct load_target *target, struct error *error);
};

/* A body embeds this first. put returns 0 or -errno; finish flushes, frees, and says what went
 * wrong since the start. */
struct load_target {
    const struct load_target_ops *ops;
};

/* Writes lines to a file, envelopes when its name ends in .records; "-" is standard output.
 * out      freed by its finish
 * returns  0 or -errno
 * threads  main */
int load_file_open(const char *path, struct load_target **out, struct error *error);

/* Sends to a topic with librdkafka.
 * partitions  0: the client's partitioner chooses
 * out         freed by its finish
 * returns     0 or -errno
 * threads     main */
int load_broker_open(const char *brokers, const char *topic, struct load_target **out,
                     struct error *error);
