/* SPDX-License-Identifier: Apache-2.0 */
/* A script from text to plan: statements in order, then one plan of all INSERTs. Flink runs
 * INSERTs that stand by themselves as jobs of their own; here they are one job either way. */
#include <errno.h>
#include <stdio.h>

#include "control/sql/bind.h"
#include "control/sql/parse.h"
#include "control/sql/plan_internal.h"
#include "control/sql/script.h"
#include "control/sql/sql.h"

#define WATERMARK_INTERVAL_MS 200

/* The plan with the memory that it lives in. */
struct plan_holder {
    struct plan plan;
    struct sql_memory *memory;
};

static int create_view(struct session *session, const struct ast_statement *statement)
{
    ASSERT(session != NULL);
    ASSERT(statement != NULL);
    const char *name = statement->name.text;
    if (catalog_table(session, name) != NULL || catalog_view(session, name) != NULL) {
        return statement->if_not_exists
                   ? 0
                   : sql_fail(session, -EINVAL, statement->name.at, "`%s` exists already", name);
    }
    session->has_query = true;
    struct view *view = sql_allocate(session->memory, sizeof(*view));
    view->name = statement->name;
    int verdict = bind_query(session, statement->query, NULL, &view->relation);
    if (verdict == 0) {
        verdict = bind_rename(session, &statement->columns, statement->name.at, &view->relation);
    }
    for (uint32_t i = 0; i < view->relation.field_count && verdict == 0; i++) {
        for (uint32_t k = 0; k < i && verdict == 0; k++) {
            if (strcmp(view->relation.fields[i].name, view->relation.fields[k].name) == 0) {
                verdict = sql_fail(session, -EINVAL, statement->name.at,
                                   "view `%s` has two columns named `%s`", name,
                                   view->relation.fields[i].name);
            }
        }
    }
    if (verdict == 0) {
        ast_append(session->memory, &session->views, view);
    }
    return verdict;
}

static int run_statement(struct session *session, const struct ast_statement *statement)
{
    ASSERT(session != NULL);
    ASSERT(statement != NULL);
    switch (statement->kind) {
    case AST_SET:
        return settings_apply(session, &statement->option);
    case AST_CREATE_TABLE:
        return bind_table(session, statement);
    case AST_CREATE_VIEW:
        return create_view(session, statement);
    case AST_INSERT:
        return bind_insert(session, statement);
    case AST_BEGIN_SET:
    case AST_END_SET:
        return 0;
    }
    ASSERT(false);
    return -EINVAL;
}

/* A table setting that no source took is a mistake: a typo in the name, or a table that is not
 * read. */
static int check_table_settings(struct session *session)
{
    ASSERT(session != NULL);
    for (uint32_t i = 0; i < session->table_settings.count; i++) {
        const struct table_setting *setting = session->table_settings.items[i];
        if (setting->used) {
            continue;
        }
        if (catalog_table(session, setting->table) != NULL) {
            sql_note(session, setting->at,
                     "'penstock.table.%s.%s' has no effect: the table is not read", setting->table,
                     setting->key);
            continue;
        }
        const char **names =
            sql_allocate(session->memory, (session->tables.count + 1) * sizeof(*names));
        for (uint32_t k = 0; k < session->tables.count; k++) {
            names[k] = ((const struct table *)session->tables.items[k])->name.text;
        }
        const char *nearest = sql_nearest(setting->table, names, session->tables.count);
        return sql_fail(session, -EINVAL, setting->at,
                        "'penstock.table.%s.%s': there is no table `%s`%s%s", setting->table,
                        setting->key, setting->table, nearest == NULL ? "" : "; did you mean ",
                        nearest == NULL ? "" : nearest);
    }
    return 0;
}

static int plan_script(struct session *session, const struct sql_input *input, struct plan *out)
{
    ASSERT(input != NULL);
    ASSERT(session != NULL);
    ASSERT(out != NULL);
    struct ast_list statements = {0};
    int verdict =
        parse_script(session->memory, input->text, input->bytes, &statements, session->error);
    for (uint32_t i = 0; i < statements.count && verdict == 0; i++) {
        verdict = run_statement(session, statements.items[i]);
    }
    if (verdict == 0 && session->inserts.count == 0) {
        verdict = sql_fail(session, -EINVAL, (struct place){0},
                           "the script has no INSERT INTO: nothing would run");
    }
    if (verdict == 0) {
        verdict = plan_build(session, out);
    }
    if (verdict == 0) {
        verdict = check_table_settings(session);
    }
    return verdict;
}

static void give_notes(const struct session *session, struct sql_notes *out)
{
    ASSERT(out != NULL);
    ASSERT(session != NULL);
    struct sql_note *notes =
        sql_allocate(session->memory, (session->notes.count + 1) * sizeof(*notes));
    for (uint32_t i = 0; i < session->notes.count; i++) {
        notes[i] = *(const struct sql_note *)session->notes.items[i];
    }
    *out = (struct sql_notes){.notes = notes, .count = session->notes.count};
}

int sql_plan(const struct sql_input *input, struct plan **out, struct sql_notes *out_notes,
             struct error *error)
{
    ASSERT(input != NULL && out != NULL);
    struct sql_memory *memory = sql_memory_create();
    if (memory == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    struct error own = {0};
    struct session session = {
        .memory = memory,
        .file_name = input->file_name,
        .error = &own,
        .settings = {.time_zone = "UTC", .watermark_interval_ms = WATERMARK_INTERVAL_MS},
    };
    struct plan_holder *holder = sql_allocate(memory, sizeof(*holder));
    holder->memory = memory;
    const int verdict = plan_script(&session, input, &holder->plan);
    if (verdict != 0) {
        if (error != NULL) {
            *error = own;
            (void)snprintf(error->place, sizeof(error->place), "%s",
                           input->file_name == NULL ? "" : input->file_name);
        }
        sql_memory_destroy(memory);
        return verdict;
    }
    if (out_notes != NULL) {
        give_notes(&session, out_notes);
    }
    *out = &holder->plan;
    return 0;
}

void plan_destroy(struct plan *plan)
{
    if (plan == NULL) {
        return;
    }
    /* The plan is the holder's first member. */
    struct plan_holder *holder = (struct plan_holder *)plan;
    ASSERT(holder->memory != NULL);
    sql_memory_destroy(holder->memory);
}
