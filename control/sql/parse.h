/* SPDX-License-Identifier: Apache-2.0 */
/* From text to statements: the lexer (lexer.l) and the grammar (grammar.y) with what they share.
 * Limits: SQL_BYTES_MAX of text, AST_DEPTH_MAX of nesting. What Flink has and Penstock has not is
 * refused by the grammar, by name, at its first word. */
#pragma once

#include "base.h"
#include "control/sql/ast.h"

#define SQL_BYTES_MAX (UINT32_C(4) << 20)

/* What the lexer and the grammar work on. */
struct parse {
    struct sql_memory *memory;
    struct error *error;
    bool failed;
    int code;                    /* of the failure */
    struct ast_list statements;  /* struct ast_statement */
    struct ast_statement *table; /* the CREATE TABLE being read */
    struct ast_list group;       /* GROUP BY of the SELECT read last */
    bool has_group;
    const char *side;          /* BOTH, LEADING or TRAILING read last */
    struct ast_name precision; /* of the time type read last; text NULL: none */
    bool in_set;               /* inside of EXECUTE STATEMENT SET */
    struct place at;           /* of the next byte */
    struct place start;        /* of the token read last */
    struct place comment_at;   /* of the comment being skipped */
    const char *token;         /* its text, for messages; borrowed until the next token */
    uint32_t token_bytes;
};

/* Reads a whole script.
 * text     bytes of it; need not end in 0
 * out      struct ast_statement each, in order; lives in memory
 * returns  0, -EINVAL (syntax; error has text, line and column), -ENOTSUP (refused by name),
 *          -E2BIG
 * threads  control */
int parse_script(struct sql_memory *memory, const char *text, size_t bytes, struct ast_list *out,
                 struct error *error);

/* Sets the error at a place, once: the first one stays.
 * returns  code
 * threads  control */
int parse_fail(struct parse *parse, int code, struct place at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
