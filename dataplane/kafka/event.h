/* SPDX-License-Identifier: Apache-2.0 */
/* What the client tells the control plane: a bounded ring of events (code, place, text) and named
 * counters. A full ring drops the newest event and counts it, so that the first cause of trouble
 * stays readable. Nothing here allocates or reads a clock. */
#pragma once

#include "base.h"

#define KAFKA_EVENT_TEXT_BYTES 192
#define KAFKA_EVENTS_MAX       256

enum kafka_event_code {
    KAFKA_EVENT_CONNECTED = 0,      /* a connection finished its handshake */
    KAFKA_EVENT_DISCONNECTED,       /* a connection was lost; it is dialled again */
    KAFKA_EVENT_UNREACHABLE,        /* dialling a broker failed */
    KAFKA_EVENT_UNMAPPED_ADDRESS,   /* a broker advertises a host that nothing maps to an address */
    KAFKA_EVENT_UNSUPPORTED_BROKER, /* a broker lacks an API version that the client speaks */
    KAFKA_EVENT_BAD_RESPONSE,       /* bytes that the protocol does not allow; connection closed */
    KAFKA_EVENT_RESPONSE_TOO_LARGE, /* a response above response_bytes_max; connection closed */
    KAFKA_EVENT_TOPIC_MISSING,      /* the cluster does not know the topic */
    KAFKA_EVENT_TOPIC_DENIED,       /* authorization failed for the topic */
    KAFKA_EVENT_TOPIC_TOO_WIDE,     /* more partitions than the client has room for: none is used */
    KAFKA_EVENT_TOPIC_CHANGED,      /* the partition count changed */
    KAFKA_EVENT_LEADER_MOVED,       /* a partition went to another broker */
    KAFKA_EVENT_OFFSET_RESET,       /* offset out of range; the reset policy moved the position */
    KAFKA_EVENT_PARTITION_FAILED,   /* a partition is read no further: the text says why */
    KAFKA_EVENT_PARTITION_ENDED,    /* the bounded end is reached */
    KAFKA_EVENT_CORRUPT_BATCH,      /* a batch failed its checks and is fetched again */
    KAFKA_EVENT_PRODUCE_RECORD_LOST, /* the broker refuses a record: it is dropped and counted */
    KAFKA_EVENT_PRODUCE_FAILED,      /* a produce partition takes no more records */
    KAFKA_EVENT_PRODUCER_EPOCH,      /* the producer id or epoch changed */
    KAFKA_EVENT_PRODUCE_REPEATED,    /* records may be in the log twice: the text says how many */
    KAFKA_EVENT_REQUEST_REFUSED,     /* a request-level error code */
    KAFKA_EVENT_TRANSACTION_LOST,    /* one that a checkpoint counts on cannot be committed */
    KAFKA_EVENT_TRANSACTION_FAILED,  /* fenced or refused: its client writes no more */
};

/* One event. topic_index and partition are -1 where they do not apply. */
struct kafka_event {
    enum kafka_event_code code;
    int32_t topic_index;
    int32_t partition;
    int16_t error_code; /* the Kafka error code behind it, 0 when none */
    uint64_t at_ns;
    char text[KAFKA_EVENT_TEXT_BYTES];
};

struct kafka_events {
    struct kafka_event ring[KAFKA_EVENTS_MAX];
    uint64_t head; /* next to pop */
    uint64_t tail; /* next to push */
    uint64_t lost;
};

/* Every counter with its name, in one place. */
#define KAFKA_COUNTERS(X)                                                                          \
    X(requests_sent)                                                                               \
    X(responses_received)                                                                          \
    X(bytes_received)                                                                              \
    X(bytes_sent)                                                                                  \
    X(connections_opened)                                                                          \
    X(connections_lost)                                                                            \
    X(request_timeouts)                                                                            \
    X(bad_responses)                                                                               \
    X(throttled)                                                                                   \
    X(metadata_refreshes)                                                                          \
    X(leader_moves)                                                                                \
    X(fetch_responses)                                                                             \
    X(fetch_empty)                                                                                 \
    X(fetch_errors)                                                                                \
    X(fetch_discarded_bytes)                                                                       \
    X(batches_read)                                                                                \
    X(batches_control)                                                                             \
    X(batches_aborted)                                                                             \
    X(batches_corrupt)                                                                             \
    X(records_read)                                                                                \
    X(record_bytes_read)                                                                           \
    X(offset_resets)                                                                               \
    X(offsets_skipped)                                                                             \
    X(partitions_failed)                                                                           \
    X(records_appended)                                                                            \
    X(record_bytes_appended)                                                                       \
    X(append_full)                                                                                 \
    X(batches_sent)                                                                                \
    X(batches_resent)                                                                              \
    X(batches_split)                                                                               \
    X(batches_maybe_repeated)                                                                      \
    X(records_acked)                                                                               \
    X(records_lost)                                                                                \
    X(produce_errors)                                                                              \
    X(producer_epoch_bumps)                                                                        \
    X(transactions_begun)                                                                          \
    X(transactions_committed)                                                                      \
    X(transactions_aborted)                                                                        \
    X(transactions_resolved)                                                                       \
    X(transaction_errors)                                                                          \
    X(events_lost)

struct kafka_counters {
#define KAFKA_COUNTER_FIELD(name) uint64_t name;
    KAFKA_COUNTERS(KAFKA_COUNTER_FIELD)
#undef KAFKA_COUNTER_FIELD
};

#define KAFKA_COUNTERS_COUNT (sizeof(struct kafka_counters) / sizeof(uint64_t))

/* Names the counter at a place of struct kafka_counters read as an array of uint64_t.
 * index    below KAFKA_COUNTERS_COUNT
 * returns  a static string
 * threads  any */
const char *kafka_counter_name(size_t index);

/* Appends an event, its text made by printf rules and cut to KAFKA_EVENT_TEXT_BYTES.
 * event    code, place, error code and time; its text is ignored
 * threads  owning lane only */
void kafka_events_push(struct kafka_events *events, const struct kafka_event *event,
                       const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Takes the oldest event.
 * returns  false when there is none
 * threads  owning lane only */
bool kafka_events_pop(struct kafka_events *events, struct kafka_event *out);
