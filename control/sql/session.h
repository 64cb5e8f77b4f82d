/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of planning one script share: memory, settings, catalog, relations. One per
 * sql_plan call; control thread. */
#pragma once

#include "base.h"
#include "control/sql/ast.h"
#include "control/sql/memory.h"
#include "control/sql/sql.h"
#include "dataplane/plan.h"

/* Expressions bound in one script, counted by node: CASE x WHEN … repeats its operand, so text
 * that is short can mean a tree that is not. */
#define SESSION_EXPRESSIONS_MAX 500000

/* penstock.table.NAME.KEY = value. */
struct table_setting {
    const char *table;
    const char *key;
    const char *value;
    struct place at;
    bool used;
};

/* SET keys that decide something. */
struct settings {
    const char *time_zone;
    bool not_null_drop;
    bool trim_pad;
    bool one_phase; /* table.optimizer.agg-phase-strategy = ONE_PHASE */
    bool over_on_arrival;
    bool over_apart; /* stacked OVER nodes are not fused: to compare the two */
    uint64_t watermark_interval_ms;
    uint64_t state_ttl_ms; /* table.exec.state.ttl; 0: state never expires */
};

struct session {
    struct sql_memory *memory;
    const char *file_name;
    struct error *error;
    struct settings settings;
    struct ast_list table_settings; /* struct table_setting */
    struct ast_list tables;         /* struct table */
    struct ast_list views;          /* struct view */
    struct ast_list inserts;        /* struct rel: sinks, in the order of the script */
    struct ast_list notes;          /* struct sql_note */
    struct ast_list rels;           /* struct rel, by id */
    uint32_t expression_count;
    bool has_query; /* settings that decide answers are fixed from now on */
};

/* Fills in the error at a place.
 * returns  code
 * threads  control */
int sql_fail(struct session *session, int code, struct place at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Adds a note for the user.
 * threads  control */
void sql_note(struct session *session, struct place at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Finds the known word nearest to a mistyped one.
 * returns  NULL when none is near
 * threads  any */
const char *sql_nearest(const char *word, const char *const *known, uint32_t count);

/* Reads a duration as Flink writes it: 10 s, 1 min, 500ms, 2 d; a bare number is milliseconds.
 * returns  false when it is none
 * threads  any */
bool sql_duration(const char *text, uint64_t *out_ms);

/* Prints a duration for people: in the largest unit that divides it.
 * threads  any */
void sql_duration_print(int64_t ms, char into[static 32]);

/* Applies one SET.
 * threads  control */
int settings_apply(struct session *session, const struct ast_option *option);

/* Finds penstock.table.NAME.KEY.
 * returns  NULL when it is not set
 * threads  control */
struct table_setting *settings_of_table(struct session *session, const char *table,
                                        const char *key);
