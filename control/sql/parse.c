/* SPDX-License-Identifier: Apache-2.0 */
/* Runs lexer and grammar over a script; see parse.h. Errors are set once, by whoever meets the
 * trouble first. */
#include "control/sql/parse.h"

#include <errno.h>
#include <stdio.h>

#include "control/sql/grammar_actions.h"

struct yy_buffer_state;
int sql_lexer_lex_init_extra(struct parse *parse, void **scanner);
int sql_lexer_lex_destroy(void *scanner);
struct yy_buffer_state *sql_lexer__scan_bytes(const char *bytes, int count, void *scanner);
int sql_grammar_parse(void *scanner, struct parse *parse);

int parse_fail(struct parse *parse, int code, struct place at, const char *format, ...)
{
    ASSERT(parse->memory != NULL);
    ASSERT(code < 0);
    if (parse->failed) {
        return code;
    }
    parse->failed = true;
    parse->code = code;
    if (parse->error == NULL) {
        return code;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(parse->error->text, sizeof(parse->error->text), format, arguments);
    va_end(arguments);
    parse->error->line = at.line;
    parse->error->column = at.column;
    return code;
}

void grammar_syntax_error(struct parse *parse, struct place at, bool at_end, bool is_reserved,
                          const char *list)
{
    ASSERT(parse != NULL);
    ASSERT(list != NULL);
    const char *joint = list[0] == 0 ? "" : ",";
    if (at_end) {
        (void)parse_fail(parse, -EINVAL, at,
                         "the script ends in the middle of a statement%s%s (a ';' missing?)", joint,
                         list);
        return;
    }
    const int shown = parse->token_bytes > 60 ? 60 : (int)parse->token_bytes;
    (void)parse_fail(parse, -EINVAL, at, "'%.*s' is not expected here%s%s%s", shown, parse->token,
                     joint, list,
                     is_reserved ? " (it is a reserved word: as a name it needs back-ticks)" : "");
}

int parse_script(struct sql_memory *memory, const char *text, size_t bytes, struct ast_list *out,
                 struct error *error)
{
    ASSERT(out != NULL);
    ASSERT(memory != NULL);
    ASSERT(text != NULL || bytes == 0);
    struct parse parse = {.memory = memory, .error = error, .at = {1, 1}};
    if (bytes > SQL_BYTES_MAX) {
        return parse_fail(&parse, -E2BIG, (struct place){0}, "the script is larger than %u bytes",
                          SQL_BYTES_MAX);
    }
    void *scanner = NULL;
    if (sql_lexer_lex_init_extra(&parse, &scanner) != 0) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    (void)sql_lexer__scan_bytes(bytes == 0 ? "" : text, (int)bytes, scanner);
    const int verdict = sql_grammar_parse(scanner, &parse);
    (void)sql_lexer_lex_destroy(scanner);
    if (verdict == 0 && parse.in_set) {
        (void)parse_fail(&parse, -EINVAL, parse.at, "the statement set has no END;");
    }
    if (parse.failed) {
        return parse.code;
    }
    ASSERT(verdict == 0);
    *out = parse.statements;
    return 0;
}
