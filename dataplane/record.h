/* SPDX-License-Identifier: Apache-2.0 */
/* Kafka records at the edges of the appliance, and the two seams there: a source that yields
 * records of partitions, and a sink that takes them. The Kafka client is one body of each, files
 * (replay) are another. Everything is borrowed: nothing here copies a byte. */
#pragma once

#include "base.h"

enum record_timestamp_type {
    RECORD_CREATE_TIME = 0,
    RECORD_LOG_APPEND_TIME,
    RECORD_NO_TIMESTAMP,
};

struct record_header {
    struct span name;
    struct span value;
    bool value_is_null;
};

struct record {
    int64_t offset;
    int64_t timestamp_ms;
    int32_t leader_epoch; /* -1 unknown */
    uint8_t timestamp_type;
    bool key_is_null;
    bool value_is_null;
    struct span key;
    struct span value;
    const struct record_header *headers; /* header_count of them */
    uint32_t header_count;
    bool headers_are_cut; /* it has more than are shown here */
    uint64_t arrival_ns;  /* when the port delivered the last byte of it */
};

/* Records of one partition, in offset order. */
struct record_batch_view {
    uint32_t topic;     /* index that the source's creator gave */
    uint32_t partition; /* Kafka's number */
    uint32_t record_count;
    const struct record *records;
    bool caught_up; /* nothing more is there now: the partition is idle after these */
    bool ended;     /* the bounded end is reached after these */
};

struct facts_writer; /* facts.h */
struct record_source;

/* A partition that a source reads on this lane. */
struct record_partition {
    uint32_t topic;
    uint32_t partition;
};

#define RECORD_PARTITION_OTHERS UINT32_MAX /* all partitions of a topic that are not named */

/* Where a partition stands, or is to be started. */
struct record_position {
    uint32_t topic;
    uint32_t partition;
    int64_t next_offset;  /* -1: not known; to be started as the table says */
    int64_t end_offset;   /* bounded: where it ends; -1: none, or not known */
    int32_t leader_epoch; /* of the record before it; -1 unknown */
    bool has_ended;       /* its bounded end was reached: nothing is to come */
};

struct record_source_ops {
    bool (*poll)(struct record_source *source, uint64_t now_ns, struct record_batch_view *out);
    void (*release)(struct record_source *source);
    void (*pause)(struct record_source *source, uint32_t topic, uint32_t partition, bool paused);
    /* Lists the partitions of this lane, as many as are known. NULL: the creator of the table
     * source tells it.
     * complete  set when none will come on top
     * returns   how many there are; at most max of them are filled in */
    uint32_t (*partitions)(struct record_source *source, struct record_partition *into,
                           uint32_t max, bool *complete);
    /* Makes the source show a partition again from this offset on. NULL: a batch stays whole until
     * it is released, however long that takes. */
    void (*rewind)(struct record_source *source, uint32_t topic, uint32_t partition,
                   int64_t offset);
    /* Tells where a partition stands: the offset that the next batch of it begins at or behind,
     * while no batch is held. NULL: never known.
     * returns  false when it is not known (yet) */
    bool (*position)(struct record_source *source, uint32_t topic, uint32_t partition,
                     struct record_position *out);
    /* Starts at given places, before the first poll. What is not among them is new and begins at
     * its first record. NULL: it cannot.
     * positions  count of them, those of other lanes too; copied
     * returns    0 or -errno */
    int (*start_at)(struct record_source *source, const struct record_position *positions,
                    uint32_t count, struct error *error);
};

/* A body embeds this first. */
struct record_source {
    const struct record_source_ops *ops;
};

/* Does one bounded step and hands up at most one batch.
 * out      filled when true is returned; all it points to is borrowed until record_source_release
 * returns  whether there is a batch (record_count may be 0 when caught_up or ended is news)
 * threads  owning lane only */
static inline bool record_source_poll(struct record_source *source, uint64_t now_ns,
                                      struct record_batch_view *out)
{
    return source->ops->poll(source, now_ns, out);
}

/* Gives the last batch back.
 * threads  owning lane only */
static inline void record_source_release(struct record_source *source)
{
    source->ops->release(source);
}

/* Stops or resumes reading one partition; what is on its way still arrives.
 * threads  owning lane only */
static inline void record_source_pause(struct record_source *source, uint32_t topic,
                                       uint32_t partition, bool paused)
{
    source->ops->pause(source, topic, partition, paused);
}

enum record_sink_verdict {
    RECORD_SINK_OK = 0,
    RECORD_SINK_FULL,      /* try again after a poll */
    RECORD_SINK_TOO_LARGE, /* this record can never be written */
};

#define RECORD_PARTITION_DEFAULT (-1) /* by key, without key sticky */
#define RECORD_PARTITION_NEXT    (-2) /* one after another, record by record */

struct record_sink;

struct record_sink_ops {
    enum record_sink_verdict (*append)(struct record_sink *sink, uint32_t topic, int32_t partition,
                                       const struct record *record);
    uint32_t (*poll)(struct record_sink *sink, uint64_t now_ns);
    bool (*flushed)(struct record_sink *sink);
    /* The checkpoint `id` is cut: everything appended so far belongs before it, what is appended
     * from now on behind it. Facts that a restore needs (transactions) are added to facts; those of
     * earlier cuts that are not complete yet once more. NULL: nothing to mark. */
    void (*cut)(struct record_sink *sink, uint64_t id, struct facts_writer *facts);
    /* Tells whether everything before that cut has arrived, so that the checkpoint may become
     * durable. NULL: as flushed. */
    bool (*is_settled)(struct record_sink *sink, uint64_t id);
    /* That checkpoint is durable: what was written before its cut, and earlier ones', becomes
     * visible. The next complete one stands for a checkpoint that failed. NULL: nothing to do. */
    void (*complete)(struct record_sink *sink, uint64_t id);
    /* That checkpoint will never be complete: what was cut off by it belongs to the next one. It
     * may be told before the cut. NULL: nothing to do. */
    void (*failed)(struct record_sink *sink, uint64_t id);
};

/* A body embeds this first. */
struct record_sink {
    const struct record_sink_ops *ops;
};

/* Copies a record into the sink's next batch.
 * partition  taken modulo the topic's count, or RECORD_PARTITION_DEFAULT: the sink chooses (by key
 *            hash as Kafka's default partitioner, without key by sticky round robin), or
 *            RECORD_PARTITION_NEXT
 * record     offset, leader_epoch and arrival_ns are not used but for the ledger
 * threads    owning lane only */
static inline enum record_sink_verdict record_sink_append(struct record_sink *sink, uint32_t topic,
                                                          int32_t partition,
                                                          const struct record *record)
{
    return sink->ops->append(sink, topic, partition, record);
}

/* Does one bounded step of sending.
 * returns  work done, 0 when idle
 * threads  owning lane only */
static inline uint32_t record_sink_poll(struct record_sink *sink, uint64_t now_ns)
{
    return sink->ops->poll(sink, now_ns);
}

/* Tells whether everything appended was acknowledged.
 * threads  owning lane only */
static inline bool record_sink_flushed(struct record_sink *sink)
{
    return sink->ops->flushed(sink);
}

/* Draws the line of a checkpoint behind everything appended so far.
 * id       growing from cut to cut
 * facts    where what a restore needs is added
 * threads  owning lane only */
static inline void record_sink_cut(struct record_sink *sink, uint64_t id,
                                   struct facts_writer *facts)
{
    if (sink->ops->cut != NULL) {
        sink->ops->cut(sink, id, facts);
    }
}

/* Tells whether everything before a cut has arrived.
 * threads  owning lane only */
static inline bool record_sink_is_settled(struct record_sink *sink, uint64_t id)
{
    return sink->ops->is_settled != NULL ? sink->ops->is_settled(sink, id)
                                         : sink->ops->flushed(sink);
}

/* Says that a checkpoint is durable.
 * threads  owning lane only */
static inline void record_sink_complete(struct record_sink *sink, uint64_t id)
{
    if (sink->ops->complete != NULL) {
        sink->ops->complete(sink, id);
    }
}

/* Says that a checkpoint will never be complete.
 * threads  owning lane only */
static inline void record_sink_failed(struct record_sink *sink, uint64_t id)
{
    if (sink->ops->failed != NULL) {
        sink->ops->failed(sink, id);
    }
}
