/* SPDX-License-Identifier: Apache-2.0 */
/* The physical plan: the one contract between control/, which makes it from SQL and prints it, and
 * the dataplane, which runs it. A plan is a directed acyclic graph of nodes; a node's inputs have
 * smaller ids than itself; several nodes may read one (a source shared by three INSERTs, a view
 * used twice: computed once). Everything here is const after planning, is allocated in one
 * plan memory and lives until plan_destroy.
 *
 *   Source -> Calc -> (exchange by hash) -> Over -> Calc -> (exchange) -> Over … -> Sink
 *
 * An edge is direct (same lane) or an exchange: each node says how its input rows must be
 * distributed over lanes. Operators never see that. */
#pragma once

#include "base.h"
#include "dataplane/expr/expr.h"
#include "dataplane/key.h"
#include "dataplane/operator/aggregate.h"
#include "dataplane/row.h"

#define PLAN_NODES_MAX  1024
#define PLAN_INPUTS_MAX 64
#define PLAN_NAME_BYTES 128

enum plan_operator {
    PLAN_SOURCE = 0,  /* reads a table: decode, metadata, computed columns, watermark */
    PLAN_CALC,        /* filter, then project */
    PLAN_UNION,       /* UNION ALL: inputs with equal layouts */
    PLAN_GROUP,       /* GROUP BY without window: updating */
    PLAN_WINDOW,      /* GROUP BY over a window: append-only, by watermark */
    PLAN_WINDOW_ROWS, /* a window table function without aggregate: adds window columns */
    PLAN_OVER,
    PLAN_SINK,
};

/* What an edge may carry; the planner derives it per node. */
enum plan_changelog {
    PLAN_APPEND = 0, /* +I only */
    PLAN_UPSERT,     /* +I, +U, -D by upsert key; no -U */
    PLAN_RETRACT,    /* all four kinds */
};

/* How rows must be spread over the lanes that run a node. */
enum plan_distribution {
    PLAN_FORWARD = 0, /* as the input is: same lane */
    PLAN_HASH,        /* by node->distribution_key of the input row */
    PLAN_SINGLE,      /* all rows to one lane */
};

enum plan_on_error {
    PLAN_ON_ERROR_FAIL = 0, /* Flink's way: the job fails */
    PLAN_ON_ERROR_SKIP,
    PLAN_ON_ERROR_DEAD_LETTER,
};

enum plan_format {
    PLAN_FORMAT_NONE = 0, /* no key format */
    PLAN_FORMAT_JSON,
    PLAN_FORMAT_RAW,
};

enum plan_timestamp_format {
    PLAN_TIMESTAMP_SQL = 0,
    PLAN_TIMESTAMP_ISO_8601,
};

/* Options of one format, as Flink names them. */
struct plan_format_options {
    enum plan_format format;
    bool fail_on_missing_field;                  /* json.fail-on-missing-field */
    bool ignore_parse_errors;                    /* json.ignore-parse-errors */
    bool decimal_as_plain_number;                /* json.encode.decimal-as-plain-number */
    bool ignore_null_fields;                     /* json.encode.ignore-null-fields */
    enum plan_timestamp_format timestamp_format; /* json.timestamp-format.standard */
    bool little_endian;                          /* raw.endianness */
};

enum plan_metadata {
    PLAN_METADATA_TOPIC = 0,      /* STRING NOT NULL */
    PLAN_METADATA_PARTITION,      /* INT NOT NULL */
    PLAN_METADATA_OFFSET,         /* BIGINT NOT NULL */
    PLAN_METADATA_TIMESTAMP,      /* TIMESTAMP_LTZ(3) NOT NULL */
    PLAN_METADATA_TIMESTAMP_TYPE, /* STRING NOT NULL */
    PLAN_METADATA_LEADER_EPOCH,   /* INT */
};

enum plan_field_origin {
    PLAN_FIELD_VALUE = 0, /* a member of the record's value */
    PLAN_FIELD_KEY,       /* a member of the record's key */
    PLAN_FIELD_METADATA,
};

/* One column of the decoded row and where it comes from. A ROW is taken apart: each leaf that the
 * plan reads is a field with a path (`bid`, `price`); ROW columns never travel whole. */
struct plan_field {
    enum plan_field_origin origin;
    const char *const *path; /* member names from the outside in; path_count >= 1 */
    uint32_t path_count;
    enum plan_metadata metadata;
    bool needed;      /* false: no expression reads it; the decoder may leave it NULL */
    struct type type; /* of the leaf */
};

enum plan_startup {
    PLAN_STARTUP_GROUP_OFFSETS = 0, /* Flink's default */
    PLAN_STARTUP_EARLIEST,
    PLAN_STARTUP_LATEST,
    PLAN_STARTUP_TIMESTAMP,
    PLAN_STARTUP_SPECIFIC,
};

enum plan_bounded {
    PLAN_UNBOUNDED = 0,
    PLAN_BOUNDED_LATEST,
    PLAN_BOUNDED_GROUP_OFFSETS,
    PLAN_BOUNDED_TIMESTAMP,
    PLAN_BOUNDED_SPECIFIC,
};

struct plan_partition_offset {
    uint32_t partition;
    int64_t offset;
};

/* Where a partition starts for which the group has no offset: auto.offset.reset. */
enum plan_group_reset {
    PLAN_GROUP_RESET_NONE = 0, /* Flink's default: the job does not start */
    PLAN_GROUP_RESET_EARLIEST,
    PLAN_GROUP_RESET_LATEST,
};

struct plan_source {
    const char *table;
    const char *const *topics;
    uint32_t topic_count;
    const char *bootstrap_servers;
    const char *group_id; /* NULL: none */
    enum plan_group_reset group_reset;
    bool read_committed; /* isolation.level */
    struct plan_format_options value_format;
    struct plan_format_options key_format;
    /* Decoded row: fields in order. Then computed columns, which see the decoded row. The node's
     * layout is picked from both: output i is column_picks[i], counted over fields, then computed.
     */
    const struct plan_field *fields;
    uint32_t field_count;
    struct row_layout decoded;          /* of fields */
    const struct expr *const *computed; /* over decoded */
    uint32_t computed_count;
    const uint32_t *column_picks;   /* node->layout.column_count of them */
    const struct expr *watermark;   /* over the node's layout; NULL: none */
    bool watermark_on_event;        /* 'scan.watermark.emit.strategy' = 'on-event' */
    uint64_t watermark_interval_ms; /* pipeline.auto-watermark-interval, for replay */
    enum plan_startup startup;
    int64_t startup_timestamp_ms;
    const struct plan_partition_offset *startup_offsets;
    uint32_t startup_offset_count;
    enum plan_bounded bounded;
    int64_t bounded_timestamp_ms;
    const struct plan_partition_offset *bounded_offsets;
    uint32_t bounded_offset_count;
    enum plan_on_error on_error;
    const char *dead_letter_topic; /* PLAN_ON_ERROR_DEAD_LETTER */
};

struct plan_calc {
    const struct expr *condition;      /* BOOLEAN over the input; NULL: all rows */
    const struct expr *const *outputs; /* node->layout.column_count of them; NULL: rows as is */
};

struct plan_group {
    struct key_columns key;             /* of the input; count 0: the global group */
    const struct aggregate_call *calls; /* output: key columns, then one column a call */
    uint32_t call_count;
    bool send_update_before; /* the consumer wants -U */
    bool input_updates;      /* the input is not append-only: accumulators must retract */
    uint64_t ttl_ms;         /* a group ends so long after its last write; 0: never */
};

enum plan_window_kind {
    PLAN_WINDOW_TUMBLE = 0,
    PLAN_WINDOW_HOP,
    PLAN_WINDOW_CUMULATE,
};

/* [start, end) with start = floor((t - offset) / slide) * slide + offset, on the local clock when
 * the time attribute is TIMESTAMP_LTZ. */
struct plan_window_spec {
    enum plan_window_kind kind;
    int64_t size_ms;
    int64_t slide_ms; /* HOP's slide, CUMULATE's step, TUMBLE's size */
    int64_t offset_ms;
    bool local_clock;      /* TIMESTAMP_LTZ: cut in time_zone */
    const char *time_zone; /* of the session */
};

enum plan_window_column {
    PLAN_WINDOW_START = 0,
    PLAN_WINDOW_END,
    PLAN_WINDOW_TIME, /* end - 1 ms, again a time attribute */
};

/* Output of PLAN_WINDOW: key columns, calls, then the window columns listed. The row's time_ms is
 * window_time. Output of PLAN_WINDOW_ROWS: input columns, then window start, end, time. */
struct plan_window {
    struct plan_window_spec window;
    struct key_columns key;
    const struct aggregate_call *calls;
    uint32_t call_count;
    const enum plan_window_column *columns;
    uint32_t column_count;
    /* Cascaded: the input already has window columns (a window aggregate over a window
     * aggregate): rows belong to exactly the window that ends at this column. NONE: assign. */
    uint32_t window_end_column;
    bool input_updates;
    /* Windows that end before 1970 are answered. Flink's windows by table function lose them (its
     * local phase does not flush so early); GROUP BY TUMBLE(…) and ONE_PHASE keep them. */
    bool keeps_before_epoch;
};

#define PLAN_WINDOW_END_NONE UINT32_MAX

/* One frame of an OVER node that stands for a stack of them. */
struct plan_over_frame {
    bool is_rows;      /* ROWS, else RANGE */
    bool unbounded;    /* UNBOUNDED PRECEDING */
    int64_t preceding; /* rows, or milliseconds */
    const struct aggregate_call *calls;
    uint32_t call_count;
};

#define PLAN_OVER_FRAMES_MAX 16

/* Rows of the key up to the current one, by event time. Output: input columns, then the calls. A
 * fused node has frames in place of calls and of a frame of its own: it answers as if they stood on
 * each other as nodes, frames[0] lowest, all calls over the columns of the node's input. */
struct plan_over {
    struct key_columns key; /* PARTITION BY */
    const struct plan_over_frame *frames;
    uint32_t frame_count; /* 0: not fused, the fields below hold; else at least 2 */
    bool is_rows;         /* ROWS, else RANGE */
    bool unbounded;       /* UNBOUNDED PRECEDING */
    int64_t preceding;    /* rows, or milliseconds */
    bool on_arrival;      /* penstock.over.emit = on-arrival */
    uint64_t ttl_ms;      /* not of bounded RANGE: a key ends 1 to 1.5 of it after its last row */
    const struct aggregate_call *calls;
    uint32_t call_count;
};

/* The one frame of an OVER node that is not fused.
 * threads  any */
static inline struct plan_over_frame plan_over_own_frame(const struct plan_over *over)
{
    ASSERT(over->frame_count == 0);
    return (struct plan_over_frame){
        .is_rows = over->is_rows,
        .unbounded = over->unbounded,
        .preceding = over->preceding,
        .calls = over->calls,
        .call_count = over->call_count,
    };
}

enum plan_connector {
    PLAN_CONNECTOR_KAFKA = 0,
    PLAN_CONNECTOR_UPSERT_KAFKA,
    PLAN_CONNECTOR_PRINT,
    PLAN_CONNECTOR_BLACKHOLE,
};

/* Which partition a written record goes to. */
enum plan_partitioner {
    PLAN_PARTITIONER_DEFAULT = 0, /* by key where there is one, else the client's choice */
    PLAN_PARTITIONER_FIXED,       /* one partition per lane */
    PLAN_PARTITIONER_ROUND_ROBIN,
};

/* One member of what a sink writes. */
struct plan_sink_field {
    const char *name;
    uint32_t column; /* of the input */
    struct type type;
};

/* Ids are the prefix with a lane's and a slot's number, and stay below 256 bytes in checkpoints. */
#define PLAN_TRANSACTIONAL_PREFIX_BYTES_MAX 200

struct plan_sink {
    const char *table;
    enum plan_connector connector;
    const char *topic;
    const char *bootstrap_servers;
    struct plan_format_options value_format;
    struct plan_format_options key_format;
    const struct plan_sink_field *value_fields;
    uint32_t value_field_count;
    const struct plan_sink_field *key_fields;
    uint32_t key_field_count;
    uint32_t timestamp_column;        /* written METADATA 'timestamp', UINT32_MAX: none */
    const uint32_t *not_null_columns; /* enforced */
    uint32_t not_null_count;
    bool not_null_drop; /* table.exec.sink.not-null-enforcer = DROP */
    enum plan_partitioner partitioner;
    bool exactly_once;                   /* 'sink.delivery-guarantee', of kafka and upsert-kafka */
    const char *transactional_id_prefix; /* never NULL where exactly_once; else what is given */
    /* An upsert sink whose input carries -U: true when each -U is followed by the +U of its key,
     * so that -U need not be written; false: -U is a deletion (a row left a filter). */
    bool drop_update_before;
    const char *print_identifier; /* print: print-identifier, or NULL */
    bool print_to_stderr;
};

struct plan_node {
    enum plan_operator operator;
    uint32_t id;
    uint64_t identity;          /* names its state and facts in checkpoints (identity.h) */
    char name[PLAN_NAME_BYTES]; /* for people: "Over[card, 60 s]" */
    uint32_t line;              /* where the script asks for it */
    uint32_t column_in_line;
    uint32_t input_count;
    const uint32_t *inputs;   /* node ids, smaller than id */
    struct row_layout layout; /* of the output; a sink's is its input's */
    const char *const *column_names;
    int32_t time_column;           /* the time attribute among the columns, -1: none */
    enum plan_changelog changelog; /* of the output */
    enum plan_distribution distribution;
    struct key_columns distribution_key; /* PLAN_HASH: columns of the input */
    union {
        struct plan_source source;
        struct plan_calc calc;
        struct plan_group group;
        struct plan_window window;
        struct plan_over over;
        struct plan_sink sink;
    };
};

struct plan {
    const struct plan_node *const *nodes; /* node_count; nodes[i]->id == i */
    uint32_t node_count;
    const char *time_zone; /* table.local-time-zone */
    uint64_t fingerprint;  /* of everything that decides answers and state */
};
