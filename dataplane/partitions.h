/* SPDX-License-Identifier: Apache-2.0 */
/* The partitions of one table on one lane: which there are, which have ended, and the watermark
 * over them. A partition that is behind holds the watermark; an idle or ended one does not. */
#pragma once

#include "base.h"
#include "dataplane/facts.h"
#include "dataplane/record.h"
#include "dataplane/watermark.h"

struct partition_place {
    uint32_t topic;
    uint32_t partition;
    bool has_ended;
    int64_t resume_offset; /* a record of which resume_rows rows have gone out already; -1: none */
    uint32_t resume_rows;
    int32_t leader_epoch; /* of the last record that has been read, -1 unknown */
    int64_t next_offset;  /* behind the last record that has been read; -1: none has */
};

/* What a checkpoint said of a partition that has not shown itself on this lane. */
struct partition_recalled {
    uint32_t topic;
    bool is_taken; /* it has */
    struct facts_partition facts;
};

struct partitions {
    struct partition_place *places; /* the watermark's senders by the same number */
    uint32_t count;
    uint32_t count_max;
    uint32_t ended_count;
    uint32_t last; /* found last */
    struct watermark watermark;
    struct record_partition *listed;     /* scratch for the record source's list */
    struct partition_recalled *recalled; /* recalled_count; NULL: no checkpoint */
    uint32_t recalled_count;
};

/* Makes room for count_max partitions.
 * returns  0 or -ENOMEM; partitions_fini frees in both cases
 * threads  control */
int partitions_init(struct partitions *partitions, uint32_t count_max, struct error *error);

/* Frees it.
 * threads  control */
void partitions_fini(struct partitions *partitions);

/* Finds a partition, and adds it when it is new.
 * returns  its number, UINT32_MAX when there are too many
 * threads  owning lane only */
uint32_t partitions_find(struct partitions *partitions, uint32_t topic, uint32_t partition);

/* Remembers what a checkpoint said of partitions, for those that will be found; of two sayings
 * about one the one that is further on counts.
 * recalled  recalled_count of them, of this lane or not; made by malloc, partitions_fini frees it
 * threads   control, before any partition is found */
void partitions_recall(struct partitions *partitions, struct partition_recalled *recalled,
                       uint32_t recalled_count);

/* Marks one as ended: it does not hold the watermark any more.
 * returns  whether the watermark moved
 * threads  owning lane only */
bool partitions_end(struct partitions *partitions, uint32_t number);

/* Adds what the record source lists and is not known yet.
 * returns  whether the list is complete
 * threads  owning lane only */
bool partitions_list(struct partitions *partitions, struct record_source *source);
