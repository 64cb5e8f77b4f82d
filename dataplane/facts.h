/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane adds to a checkpoint besides pages of state: where its sources stand, event time at
 * each node, transactions of its sinks. A lane writes its facts at the cut into one buffer; state/
 * carries them as bytes. On a restore the facts of all lanes are read together, so that another
 * number of lanes finds what it needs: everything is named by a node's identity, never by a lane.
 *
 *     u32 magic, u32 version, then items: u16 kind, u16 zero, u32 bytes, bytes (padded to 8)
 *
 * Bytes come from a disk: reading checks every length; what is not known is refused, not skipped.
 */
#pragma once

#include "base.h"

#define FACTS_MAGIC       UINT32_C(0x46535450)
#define FACTS_VERSION     1U
#define FACTS_BYTES_MAX   (UINT32_C(4) << 20) /* of one lane */
#define FACTS_TOPIC_BYTES 250
#define FACTS_ID_BYTES    256

enum facts_kind {
    FACTS_PARTITION = 1,
    FACTS_SOURCE,
    FACTS_NODE,
    FACTS_TRANSACTION,
};

/* A partition that a source node reads: everything before it has been counted, nothing behind. */
struct facts_partition {
    uint64_t identity;   /* of the source node */
    int64_t next_offset; /* -1: not known yet, begun as the table says */
    int64_t end_offset;  /* bounded: where it ends, found out at the start; -1: none, or not yet */
    int64_t watermark_ms;
    uint32_t partition;
    uint32_t resume_rows; /* rows of the record at next_offset that have gone out already */
    int32_t leader_epoch; /* -1 unknown */
    uint32_t has_ended;
    char topic[FACTS_TOPIC_BYTES + 6]; /* NUL-terminated */
};

/* A source node as a whole. */
struct facts_source {
    uint64_t identity;
    int64_t watermark_ms;  /* what consumers were told */
    int64_t next_emit_ms;  /* replay: record time of the next periodic watermark */
    int64_t processing_ms; /* the last tick */
    /* The lane had not learned of all partitions: those that no lane names are not new. */
    uint32_t is_incomplete;
    uint32_t reserved; /* 0 */
};

/* Event and processing time as a node's body has seen them. */
struct facts_node {
    uint64_t identity;
    int64_t watermark_ms;
    int64_t tick_ms;
    int64_t mark_ms; /* what its operator says (operator_ops.mark), else 0 */
};

enum facts_transaction_state {
    FACTS_TRANSACTION_PREPARED = 1, /* belongs to the checkpoint: to be committed */
    FACTS_TRANSACTION_POOLED,       /* an id that may have one open: to be aborted */
};

struct facts_transaction {
    char transactional_id[FACTS_ID_BYTES]; /* NUL-terminated */
    int64_t producer_id;
    int16_t producer_epoch;
    uint16_t reserved;
    uint32_t state; /* enum facts_transaction_state */
};

/* Where a lane's facts are written. */
struct facts_writer {
    struct span_mut into; /* borrowed */
    size_t bytes;
    bool is_full; /* something did not fit: the checkpoint cannot be made */
};

/* One fact as read. */
struct facts_item {
    enum facts_kind kind;
    union {
        struct facts_partition partition;
        struct facts_source source;
        struct facts_node node;
        struct facts_transaction transaction;
    };
};

/* Starts an empty list.
 * into     8-byte aligned
 * threads  owning lane only */
void facts_begin(struct facts_writer *writer, struct span_mut into);

/* Adds one fact; what does not fit sets is_full.
 * threads  owning lane only */
void facts_put(struct facts_writer *writer, const struct facts_item *item);

/* The bytes written so far.
 * threads  owning lane only */
struct span facts_written(const struct facts_writer *writer);

/* Reads a list.
 * bytes    of one lane, from a checkpoint
 * visit    called for each fact; false ends the reading with -ECANCELED
 * returns  0, or -EBADMSG with the reason
 * threads  control */
int facts_read(struct span bytes, bool (*visit)(void *context, const struct facts_item *item),
               void *context, struct error *error);
