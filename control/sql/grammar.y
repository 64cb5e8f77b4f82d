/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of the Flink SQL that Penstock reads. What is Flink SQL but not built is met by a
 * rule whose only action is to refuse it by name; so no valid script ends in a syntax error. */
%require "3.8"
%define api.pure full
%define api.prefix {sql_grammar_}
%define parse.error custom
%locations
%expect 0
%lex-param {void *scanner}
%parse-param {void *scanner} {struct parse *parse}
%code requires {
#include "control/sql/parse.h"
}
%code {
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "control/sql/grammar_actions.h"

#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define sql_grammar_lex sql_lexer_lex
int sql_lexer_lex(SQL_GRAMMAR_STYPE *value, SQL_GRAMMAR_LTYPE *at, void *scanner);
void sql_grammar_error(const SQL_GRAMMAR_LTYPE *at, void *scanner, struct parse *parse,
                       const char *message);

#define YYMAXDEPTH 8000
#define YYMALLOC   malloc
#define YYFREE     free
#define M          parse->memory
#define PLACE(at)  ((struct place){(uint32_t)(at).first_line, (uint32_t)(at).first_column})
#define REFUSE(at, ...)                                                                           \
    do {                                                                                           \
        (void)parse_fail(parse, -ENOTSUP, PLACE(at), __VA_ARGS__);                                 \
        YYABORT;                                                                                   \
    } while (0)
#define FAIL(at, ...)                                                                              \
    do {                                                                                           \
        (void)parse_fail(parse, -EINVAL, PLACE(at), __VA_ARGS__);                                  \
        YYABORT;                                                                                   \
    } while (0)
#define DEPTH(node)                                                                                \
    do {                                                                                           \
        if (!grammar_depth_ok(parse, (node))) YYABORT;                                             \
    } while (0)
#define NEST(type)                                                                                 \
    do {                                                                                           \
        if (!grammar_type_depth(parse, (type))) YYABORT;                                           \
    } while (0)
#define TYPE(at, name) grammar_type(parse, PLACE(at), (name))
#define FUNCTION_CALL(at, name, list) grammar_function(parse, PLACE(at), (name), (list))
#define LITERAL(kind, at, name) ast_expr(M, (kind), PLACE(at), (name).text, strlen((name).text))
#define CALL(out, at, name, ...)                                                                   \
    do {                                                                                           \
        (out) = grammar_call(parse, PLACE(at), (name), (struct ast_expr *[4]){__VA_ARGS__});       \
        DEPTH(out);                                                                                \
    } while (0)
}

%union {
    struct ast_name name;
    struct ast_list list;
    struct ast_expr *expr;
    struct ast_window *window;
    struct ast_type *type;
    struct ast_item *item;
    struct ast_from *from;
    struct ast_select *select;
    struct ast_query *query;
    struct ast_column *column;
    struct ast_statement *statement;
    struct ast_table_argument *argument;
    struct ast_order *order;
    struct { enum ast_bound bound; struct ast_expr *value; } bound;
    enum ast_conflict conflict;
    uint32_t number;
    bool flag;
}

%token <name> NAME "a name" QUOTED_NAME "a name in back-ticks" STRING_LITERAL "a text"
%token <name> UNICODE_LITERAL BYTES_LITERAL NUMBER "a number" INTEGER_NUMBER "a whole number"
%token <name> FUNCTION_WORD NILADIC RESERVED STATEMENT_WORD TYPE_WORD UNIT JSON_SPECIAL ASC CATALOG
%token <name> COMMENT COMPILE CONFLICT DATABASE DEDUPLICATE DESC DESCRIPTOR DISTRIBUTED DO ENFORCED
%token <name> ERROR_ FOLLOWING FUNCTION IF IGNORE JSON KEY LOAD MAP METADATA NOTHING NULLS OVERWRITE
%token <name> PARTITIONED PLACING PRECEDING RESPECT RETURNING SETS STATEMENT TEMPORARY TRY_CAST
%token <name> UNBOUNDED USE VIEW VIRTUAL ZONE ALL "ALL" AND "AND" ARRAY AS "AS" ASYMMETRIC BEGIN_
%token <name> BETWEEN BOTH BY "BY" CASE CAST CEIL CONCAT CONSTRAINT CREATE "CREATE" CROSS CUBE
%token <name> CURRENT DATE DEFAULT DISTINCT DOUBLE ELSE END_ "END" ESCAPE EXCEPT HINT_END "*/"
%token <name> EXECUTE "EXECUTE" EXISTS EXTRACT FALSE_ FETCH FILTER FLOOR FOR FROM "FROM" FULL
%token <name> GROUP "GROUP" GROUPING HAVING "HAVING" HINT "/*+" IN INNER INSERT "INSERT" INTERSECT
%token <name> INTERVAL INTO "INTO" IS JOIN LATERAL LEADING LEFT LIKE LIMIT LOCAL MATCH_RECOGNIZE
%token <name> MINUS_ MULTISET NATURAL NOT NOT_INFIX NULL_ OF OFFSET ON OR ORDER "ORDER" OUTER OVER
%token <name> OVERLAY PARTITION "PARTITION" POSITION PRECISION PRIMARY QUALIFY RANGE RIGHT ROLLUP
%token <name> ROW ROWS SELECT "SELECT" SET "SET" SIMILAR SUBSTRING SYMMETRIC TABLE "TABLE"
%token <name> TABLESAMPLE THEN "THEN" TIME TIMESTAMP TIMESTAMP_LTZ TO TRAILING TRIM TRUE_ UESCAPE
%token <name> UNION "UNION" UNIQUE UNKNOWN UNNEST USING VALUES VARYING WATERMARK WHEN WHERE "WHERE"
%token <name> WINDOW "WINDOW" WITH "WITH" WITHIN WITHOUT NOT_EQUAL "<>" LESS_EQUAL "<="
%token <name> GREATER_EQUAL ">=" ARROW "=>"

%precedence LOW
%precedence IGNORE RESPECT TO
%left OR
%left AND
%precedence NOT
%left IS
%left '=' NOT_EQUAL '<' '>' LESS_EQUAL GREATER_EQUAL
%precedence BETWEEN IN LIKE SIMILAR NOT_INFIX
%left '+' '-'
%left '*' '/' '%' CONCAT
%precedence UNARY

%type <name> name unit any_unit function_name niladic alias as_opt watermark_name option_text
%type <name> metadata_from
%type <list> names name_path path_in_parens expressions call_arguments items table_elements options
%type <list> option_list columns_opt
%type <list> with_list group_list named_windows window_list order_list partition_opt order_opt
%type <list> table_arguments table_path when_list type_fields
%type <list> hint_opt hints hint_options
%type <expr> expr arith primary literal call_argument interval item_expr where_opt having_opt
%type <expr> else_opt filter_opt
%type <window> window_body over_opt frame_opt
%type <type> type type_base type_kind
%type <item> item
%type <from> from_opt table_factor table_ref
%type <select> select_core
%type <query> query query_body query_term
%type <column> column
%type <statement> statement create_table create_view insert set
%type <argument> table_argument table_argument_value
%type <order> order_item
%type <bound> bound
%type <conflict> conflict_opt conflict_action
%type <flag> distinct_opt temporary if_not_exists virtual descending frame_unit symmetric not_infix

%start script

%%

script: statements | statements statement { ast_append(M, &parse->statements, $2); };

statements:
    %empty
    | statements ';'
    | statements statement ';' { ast_append(M, &parse->statements, $2); }
    | statements set_begin
    | statements END_ { if (!grammar_set_edge(parse, AST_END_SET, PLACE(@2))) YYABORT; } ';'
    | statements unsupported
    ;

set_begin:
    EXECUTE STATEMENT SET BEGIN_
    { if (!grammar_set_edge(parse, AST_BEGIN_SET, PLACE(@1))) YYABORT; }
    | BEGIN_ STATEMENT SET ';' { if (!grammar_set_edge(parse, AST_BEGIN_SET, PLACE(@1))) YYABORT; }
    ;

unsupported:
    STATEMENT_WORD
    {
        REFUSE(@1, "the statement %s is not supported: a job is made of SET, CREATE TABLE, CREATE "
            "VIEW and INSERT INTO", $1.text);
    }
    | USE { REFUSE(@1, "USE is not supported: there is one catalog and one database"); }
    | LOAD { REFUSE(@1, "LOAD MODULE is not supported"); }
    | COMPILE { REFUSE(@1, "COMPILE PLAN is not supported"); }
    | SELECT
    {
        REFUSE(@1, "a SELECT by itself has nowhere to go: write INSERT INTO a table of connector "
            "'print'");
    }
    | VALUES { REFUSE(@1, "VALUES by itself has nowhere to go"); }
    | WITH { REFUSE(@1, "a query by itself has nowhere to go: write INSERT INTO … WITH …"); }
    | CREATE FUNCTION { REFUSE(@1, "CREATE FUNCTION (user-defined functions) is not supported"); }
    | CREATE TEMPORARY FUNCTION { REFUSE(@1, "CREATE TEMPORARY FUNCTION is not supported"); }
    | CREATE CATALOG { REFUSE(@1, "CREATE CATALOG is not supported"); }
    | CREATE DATABASE { REFUSE(@1, "CREATE DATABASE is not supported"); }
    | CREATE NAME { REFUSE(@1, "CREATE %s is not supported", $2.text); }
    | CREATE OR { REFUSE(@1, "CREATE OR REPLACE is not supported"); }
    | EXECUTE INSERT { REFUSE(@1, "EXECUTE INSERT is not supported: write INSERT INTO"); }
    | EXECUTE NAME { REFUSE(@1, "EXECUTE %s is not supported", $2.text); }
    | NAME
    { FAIL(@1, "'%s' begins no statement: expected SET, CREATE, INSERT or EXECUTE", $1.text); }
    ;

statement: set | create_table | create_view | insert;

set:
    SET STRING_LITERAL '=' STRING_LITERAL
    { $$ = grammar_statement(parse, AST_SET, PLACE(@1)); $$->option = (struct ast_option){$2, $4}; }
    | SET NAME { FAIL(@2, "SET takes both key and value as texts: SET 'key' = 'value'"); }
    ;

/* ---- tables ---- */

create_table:
    CREATE temporary TABLE if_not_exists name_path
    {
        parse->table = grammar_statement(parse, AST_CREATE_TABLE, PLACE(@1));
        if (!grammar_object(parse, parse->table, &$5)) YYABORT;
        parse->table->if_not_exists = $4;
    }
    '(' table_elements ')' comment_opt table_tail { $$ = parse->table; $$->columns = $8; }
    | CREATE temporary TABLE if_not_exists name_path LIKE
    { REFUSE(@6, "CREATE TABLE … LIKE is not supported yet"); }
    | CREATE temporary TABLE if_not_exists name_path AS
    { REFUSE(@6, "CREATE TABLE … AS SELECT is not supported yet"); }
    | CREATE temporary TABLE if_not_exists name_path WITH
    { FAIL(@6, "the table has no columns: they stand before WITH"); }
    ;

temporary: %empty { $$ = false; } | TEMPORARY { $$ = true; };

if_not_exists: %empty { $$ = false; } | IF NOT EXISTS { $$ = true; };

comment_opt: %empty | COMMENT STRING_LITERAL;

table_tail:
    %empty
    {
        FAIL(@$, "table %s has no WITH (…): which connector is it?",
            parse->table->name.text);
    }
    | WITH '(' options ')' { parse->table->options = $3; }
    | WITH '(' options ')' LIKE { REFUSE(@5, "CREATE TABLE … LIKE is not supported yet"); }
    | WITH '(' options ')' AS { REFUSE(@5, "CREATE TABLE … AS SELECT is not supported yet"); }
    | PARTITIONED
    { REFUSE(@1, "PARTITIONED BY is not supported: no connector here has partitions of its own"); }
    | DISTRIBUTED { REFUSE(@1, "DISTRIBUTED BY is not supported"); }
    ;

options: %empty { $$ = (struct ast_list){0}; } | option_list;

option_list:
    option_text '=' option_text { $$ = (struct ast_list){0}; grammar_option(parse, &$$, $1, $3); }
    | option_list ',' option_text '=' option_text { $$ = $1; grammar_option(parse, &$$, $3, $5); }
    ;

option_text: STRING_LITERAL;

table_elements:
    column { $$ = (struct ast_list){0}; ast_append(M, &$$, $1); }
    | constraint { $$ = (struct ast_list){0}; }
    | table_elements ',' column { $$ = $1; ast_append(M, &$$, $3); }
    | table_elements ',' constraint { $$ = $1; }
    ;

constraint:
    WATERMARK FOR watermark_path AS expr { if (!grammar_watermark(parse, PLACE(@1), $5)) YYABORT; }
    | primary_key not_enforced
    | CONSTRAINT name primary_key not_enforced
    | UNIQUE { REFUSE(@1, "UNIQUE is not supported: Flink has PRIMARY KEY … NOT ENFORCED only"); }
    ;

watermark_path:
    watermark_name
    {
        parse->table->watermark = (struct ast_list){0};
        grammar_add_name(parse, &parse->table->watermark, $1);
    }
    | watermark_path '.' name { grammar_add_name(parse, &parse->table->watermark, $3); }
    ;

watermark_name: name;

primary_key: PRIMARY KEY path_in_parens
    { if (!grammar_primary_key(parse, PLACE(@1), $3)) YYABORT; } ;

not_enforced:
    NOT ENFORCED
    | %empty { FAIL(@$, "PRIMARY KEY needs NOT ENFORCED: Flink does not own the data"); }
    | ENFORCED
    {
        FAIL(@1, "PRIMARY KEY … ENFORCED is not possible: Flink does not own the data; write NOT "
            "ENFORCED");
    }
    ;

column:
    name type comment_opt { $$ = grammar_column(parse, AST_COLUMN_PHYSICAL, $1); $$->type = $2; }
    | name type PRIMARY KEY not_enforced comment_opt
    {
        $$ = grammar_column(parse, AST_COLUMN_PHYSICAL, $1);
        $$->type = $2;
        $$->is_primary_key = true;
    }
    | name AS expr comment_opt
    { $$ = grammar_column(parse, AST_COLUMN_COMPUTED, $1); $$->expr = $3; }
    | name type METADATA metadata_from virtual comment_opt
    {
        $$ = grammar_column(parse, AST_COLUMN_METADATA, $1);
        $$->type = $2;
        $$->metadata = $4;
        $$->is_virtual = $5;
    }
    ;

metadata_from: %empty { $$ = (struct ast_name){0}; } | FROM STRING_LITERAL { $$ = $2; };

virtual: %empty { $$ = false; } | VIRTUAL { $$ = true; };

/* ---- types ---- */

type:
    type_base
    | type_base NOT NULL_ { $$ = $1; $$->not_null = true; }
    | type_base NULL_ { $$ = $1; }
    ;

type_base:
    type_kind
    | type_base ARRAY { $$ = TYPE(@2, "ARRAY"); $$->element = $1; NEST($$); }
    | type_base MULTISET { $$ = TYPE(@2, "MULTISET"); $$->element = $1; NEST($$); }
    ;

type_kind:
    TYPE_WORD { $$ = TYPE(@1, $1.text); }
    | TYPE_WORD VARYING
    { $$ = TYPE(@1, "VARCHAR"); $$->parameters[0] = 1; $$->parameter_count = 1; }
    | TYPE_WORD VARYING '(' INTEGER_NUMBER ')'
    { $$ = TYPE(@1, "VARCHAR"); if (!grammar_type_number(parse, $$, $4)) YYABORT; }
    | TYPE_WORD '(' INTEGER_NUMBER ')'
    { $$ = TYPE(@1, $1.text); if (!grammar_type_number(parse, $$, $3)) YYABORT; }
    | TYPE_WORD '(' INTEGER_NUMBER ',' INTEGER_NUMBER ')'
    {
        $$ = TYPE(@1, $1.text);
        if (!grammar_type_number(parse, $$, $3) || !grammar_type_number(parse, $$, $5)) YYABORT;
    }
    | DOUBLE { $$ = TYPE(@1, "DOUBLE"); }
    | DOUBLE PRECISION { $$ = TYPE(@1, "DOUBLE"); }
    | DATE { $$ = TYPE(@1, "DATE"); }
    | TIME precision_opt without_zone
    { $$ = grammar_time_type(parse, PLACE(@1), "TIME"); if ($$ == NULL) YYABORT; }
    | TIMESTAMP precision_opt without_zone
    { $$ = grammar_time_type(parse, PLACE(@1), "TIMESTAMP"); if ($$ == NULL) YYABORT; }
    | TIMESTAMP precision_opt WITH LOCAL TIME ZONE
    { $$ = grammar_time_type(parse, PLACE(@1), "TIMESTAMP_LTZ"); if ($$ == NULL) YYABORT; }
    | TIMESTAMP precision_opt WITH TIME ZONE
    {
        REFUSE(@1, "TIMESTAMP WITH TIME ZONE is not supported, by Flink neither: use "
            "TIMESTAMP_LTZ");
    }
    | TIMESTAMP_LTZ precision_opt
    { $$ = grammar_time_type(parse, PLACE(@1), "TIMESTAMP_LTZ"); if ($$ == NULL) YYABORT; }
    | INTERVAL any_unit { $$ = TYPE(@1, grammar_interval_type($2.text)); }
    | INTERVAL any_unit TO any_unit { $$ = TYPE(@1, grammar_interval_type($2.text)); }
    | ARRAY '<' type '>' { $$ = TYPE(@1, "ARRAY"); $$->element = $3; NEST($$); }
    | MULTISET '<' type '>' { $$ = TYPE(@1, "MULTISET"); $$->element = $3; NEST($$); }
    | MAP '<' type ',' type '>' { $$ = TYPE(@1, "MAP"); $$->key = $3; $$->element = $5; NEST($$); }
    | ROW '<' type_fields '>' { $$ = TYPE(@1, "ROW"); $$->fields = $3; NEST($$); }
    | ROW '(' type_fields ')' { $$ = TYPE(@1, "ROW"); $$->fields = $3; NEST($$); }
    | NAME { FAIL(@1, "'%s' is not a type", $1.text); }
    ;

precision_opt:
    %empty { grammar_precision(parse, NULL); }
    | '(' INTEGER_NUMBER ')' { grammar_precision(parse, &$2); }
    ;

without_zone: %empty | WITHOUT TIME ZONE;

type_fields:
    name type comment_opt { $$ = (struct ast_list){0}; grammar_type_field(parse, &$$, $1, $2); }
    | type_fields ',' name type comment_opt { $$ = $1; grammar_type_field(parse, &$$, $3, $4); }
    ;

/* ---- views and inserts ---- */

create_view:
    CREATE temporary VIEW if_not_exists name_path columns_opt comment_opt AS query
    {
        $$ = grammar_statement(parse, AST_CREATE_VIEW, PLACE(@1));
        if (!grammar_object(parse, $$, &$5)) YYABORT;
        $$->if_not_exists = $4;
        $$->columns = $6;
        $$->query = $9;
    }
    ;

columns_opt: %empty { $$ = (struct ast_list){0}; } | path_in_parens;

insert:
    INSERT INTO name_path query conflict_opt
    {
        $$ = grammar_statement(parse, AST_INSERT, PLACE(@1));
        if (!grammar_object(parse, $$, &$3)) YYABORT;
        $$->query = $4;
        $$->conflict = $5;
        $$->conflict_at = PLACE(@5);
    }
    | INSERT INTO name_path path_in_parens query conflict_opt
    {
        $$ = grammar_statement(parse, AST_INSERT, PLACE(@1));
        if (!grammar_object(parse, $$, &$3)) YYABORT;
        $$->columns = $4;
        $$->query = $5;
        $$->conflict = $6;
        $$->conflict_at = PLACE(@6);
    }
    | INSERT INTO name_path HINT { REFUSE(@4, "hints (/*+ … */) are not supported yet"); }
    | INSERT INTO name_path PARTITION
    {
        REFUSE(@4, "INSERT … PARTITION is not supported: no connector here has partitions of its "
            "own");
    }
    | INSERT OVERWRITE { REFUSE(@2, "INSERT OVERWRITE is not supported"); }
    ;

conflict_opt:
    %empty { $$ = AST_CONFLICT_NONE; }
    | ON CONFLICT DO conflict_action { $$ = $4; }
    ;

conflict_action:
    DEDUPLICATE { $$ = AST_CONFLICT_DEDUPLICATE; }
    | NOTHING { $$ = AST_CONFLICT_NOTHING; }
    | ERROR_ { $$ = AST_CONFLICT_ERROR; }
    ;

/* ---- queries ---- */

query:
    query_body order_limit
    | WITH with_list query_body order_limit { $$ = $3; grammar_with(parse, &$$, $2); }
    ;

order_limit:
    %empty
    | ORDER { REFUSE(@1, "ORDER BY of a query is not supported yet"); }
    | LIMIT { REFUSE(@1, "LIMIT is not supported yet"); }
    | OFFSET { REFUSE(@1, "OFFSET is not supported yet"); }
    | FETCH { REFUSE(@1, "FETCH is not supported yet"); }
    ;

with_list:
    name columns_opt AS '(' query ')'
    { $$ = (struct ast_list){0}; grammar_add_with(parse, &$$, $1, $2, $5); }
    | with_list ',' name columns_opt AS '(' query ')'
    { $$ = $1; grammar_add_with(parse, &$$, $3, $4, $7); }
    ;

query_body:
    query_term
    | query_body UNION ALL query_term
    { $$ = grammar_union(parse, $1, $4); if ($$ == NULL) YYABORT; }
    | query_body UNION DISTINCT { REFUSE(@2, "UNION without ALL is not supported yet"); }
    | query_body UNION SELECT { REFUSE(@2, "UNION without ALL is not supported yet"); }
    | query_body UNION '(' { REFUSE(@2, "UNION without ALL is not supported yet"); }
    | query_body INTERSECT { REFUSE(@2, "INTERSECT is not supported yet"); }
    | query_body EXCEPT { REFUSE(@2, "EXCEPT is not supported yet"); }
    | query_body MINUS_ { REFUSE(@2, "MINUS is not supported yet"); }
    ;

query_term:
    select_core { $$ = grammar_query(parse, $1); if ($$ == NULL) YYABORT; }
    | '(' query ')' { $$ = $2; }
    | VALUES { REFUSE(@1, "VALUES is not supported yet"); }
    | TABLE name_path { REFUSE(@1, "TABLE t as a query is not supported: write SELECT * FROM t"); }
    ;

select_core:
SELECT hint_opt distinct_opt items from_opt where_opt group_opt having_opt named_windows qualify_opt
    {
        $$ = grammar_select(parse, PLACE(@1));
        $$->hints = $2;
        $$->distinct = $3;
        $$->items = $4;
        $$->from = $5;
        $$->where = $6;
        $$->having = $8;
        $$->windows = $9;
    }
    ;

hint_opt: %empty { $$ = (struct ast_list){0}; } | HINT hints HINT_END { $$ = $2; };

hints:
    name hint_options { $$ = (struct ast_list){0}; grammar_hint(parse, &$$, $1, $2); }
    | hints ',' name hint_options { $$ = $1; grammar_hint(parse, &$$, $3, $4); };

hint_options: %empty { $$ = (struct ast_list){0}; } | '(' options ')' { $$ = $2; };

distinct_opt: %empty { $$ = false; } | ALL { $$ = false; } | DISTINCT { $$ = true; };

items:
    item { $$ = (struct ast_list){0}; ast_append(M, &$$, $1); }
    | items ',' item { $$ = $1; ast_append(M, &$$, $3); }
    ;

item:
    item_expr { $$ = grammar_item(parse, $1, (struct ast_name){0}); }
    | item_expr AS name { $$ = grammar_item(parse, $1, $3); }
    | item_expr name { $$ = grammar_item(parse, $1, $2); }
    | item_expr AS RESERVED
    { FAIL(@3, "%s is a reserved word: as a name it needs back-ticks, `%s`", $3.text, $3.text); }
    ;

item_expr:
    expr
    | '*' { $$ = ast_expr(M, AST_STAR, PLACE(@1), "*", 1); }
    | name_path '.' '*' { $$ = grammar_name(parse, AST_STAR, PLACE(@1), &$1); }
    ;

from_opt: %empty { $$ = NULL; } | FROM table_ref { $$ = $2; };

table_ref:
    table_factor
    | table_factor ',' table_factor
    { REFUSE(@2, "a second table in FROM (a join) is not supported yet"); }
    | table_factor join table_factor { REFUSE(@2, "JOIN is not supported yet"); }
    | table_factor MATCH_RECOGNIZE { REFUSE(@2, "MATCH_RECOGNIZE is not supported yet"); }
    ;

/* What stands behind is read first: UNNEST and FOR SYSTEM_TIME are refused by their names. */
join: JOIN | join_kind JOIN | NATURAL JOIN | NATURAL join_kind JOIN;
join_kind: INNER | CROSS | join_side | join_side OUTER;
join_side: LEFT | RIGHT | FULL;

table_factor:
    name_path alias { $$ = grammar_from(parse, AST_FROM_TABLE, PLACE(@1), $2); $$->path = $1; }
    | name_path as_opt path_in_parens
    { $$ = grammar_from(parse, AST_FROM_TABLE, PLACE(@1), $2); $$->path = $1; $$->columns = $3; }
    | name_path HINT { REFUSE(@2, "hints (/*+ … */) are not supported yet"); }
    | name_path FOR { REFUSE(@2, "FOR SYSTEM_TIME AS OF (a temporal join) is not supported yet"); }
    | name_path TABLESAMPLE { REFUSE(@2, "TABLESAMPLE is not supported"); }
    | '(' query ')' alias
    { $$ = grammar_from(parse, AST_FROM_QUERY, PLACE(@1), $4); $$->query = $2; }
    | '(' query ')' as_opt path_in_parens
    { $$ = grammar_from(parse, AST_FROM_QUERY, PLACE(@1), $4); $$->query = $2; $$->columns = $5; }
    | TABLE '(' function_name '(' table_arguments ')' ')' alias
    {
        $$ = grammar_from(parse, AST_FROM_FUNCTION, PLACE(@3), $8);
        $$->function = $3;
        $$->arguments = $5;
    }
    | function_name '('
    { REFUSE(@1, "%s(…) in FROM: table functions stand in TABLE(…)", $1.text); }
    | LATERAL { REFUSE(@1, "LATERAL is not supported yet"); }
    | UNNEST { REFUSE(@1, "UNNEST is not supported yet"); }
    | RESERVED
    { FAIL(@1, "%s is a reserved word: as a name it needs back-ticks, `%s`", $1.text, $1.text); }
    ;

alias: %empty { $$ = (struct ast_name){0}; } | as_opt;

as_opt: AS name { $$ = $2; } | name;

table_arguments:
    table_argument { $$ = (struct ast_list){0}; ast_append(M, &$$, $1); }
    | table_arguments ',' table_argument { $$ = $1; ast_append(M, &$$, $3); }
    ;

table_argument:
    table_argument_value
    | name ARROW table_argument_value { $$ = $3; $$->label = $1; }
    | OFFSET ARROW table_argument_value { $$ = $3; $$->label = $1; }
    ;

table_argument_value:
    TABLE table_path { $$ = grammar_table_argument(parse, PLACE(@1)); $$->table = $2; }
    | TABLE '(' query ')' { $$ = grammar_table_argument(parse, PLACE(@1)); $$->query = $3; }
    | '(' query ')' { $$ = grammar_table_argument(parse, PLACE(@1)); $$->query = $2; }
    | TABLE table_path PARTITION
    { REFUSE(@3, "PARTITION BY behind TABLE (of a SESSION window) is not supported yet"); }
    | TABLE table_path ORDER { REFUSE(@3, "ORDER BY behind TABLE is not supported yet"); }
    | DESCRIPTOR path_in_parens
    { $$ = grammar_table_argument(parse, PLACE(@1)); $$->descriptor = $2; }
    | interval { $$ = grammar_table_argument(parse, PLACE(@1)); $$->expr = $1; }
    | STRING_LITERAL
    { FAIL(@1, "a text stands where a table, a DESCRIPTOR or an INTERVAL is expected"); }
    | INTEGER_NUMBER
    { FAIL(@1, "a number stands where a table, a DESCRIPTOR or an INTERVAL is expected"); }
    ;

table_path: name_path;

where_opt: %empty { $$ = NULL; } | WHERE expr { $$ = $2; };

having_opt: %empty { $$ = NULL; } | HAVING expr { $$ = $2; };

qualify_opt: %empty | QUALIFY { REFUSE(@1, "QUALIFY is not supported yet"); };

group_opt:
    %empty { grammar_group(parse, NULL); }
    | GROUP BY group_list { grammar_group(parse, &$3); }
    ;

group_list:
    group_item { $$ = (struct ast_list){0}; }
    | expr { $$ = (struct ast_list){0}; ast_append(M, &$$, $1); }
    | group_list ',' group_item
    | group_list ',' expr { $$ = $1; ast_append(M, &$$, $3); }
    ;

group_item:
    GROUPING SETS { REFUSE(@1, "GROUPING SETS is not supported yet"); }
    | CUBE { REFUSE(@1, "CUBE is not supported yet"); }
    | ROLLUP { REFUSE(@1, "ROLLUP is not supported yet"); }
    | '(' ')' { REFUSE(@1, "GROUP BY () is not supported yet"); }
    ;

named_windows: %empty { $$ = (struct ast_list){0}; } | WINDOW window_list { $$ = $2; };

window_list:
    name AS '(' window_body ')'
    { $$ = (struct ast_list){0}; grammar_add_window(parse, &$$, $1, $4); }
    | window_list ',' name AS '(' window_body ')'
    { $$ = $1; grammar_add_window(parse, &$$, $3, $6); }
    ;

window_body:
    partition_opt order_opt frame_opt
    { $$ = $3; $$->partition = $1; $$->order = $2; $$->at = PLACE(@$); }
    | name partition_opt order_opt frame_opt
    { $$ = $4; $$->base = $1; $$->partition = $2; $$->order = $3; $$->at = PLACE(@1); }
    ;

partition_opt:
    %empty { $$ = (struct ast_list){0}; }
    | PARTITION BY expressions { $$ = $3; }
    ;

order_opt:
    %empty { $$ = (struct ast_list){0}; }
    | ORDER BY order_list { $$ = $3; }
    ;

order_list:
    order_item { $$ = (struct ast_list){0}; ast_append(M, &$$, $1); }
    | order_list ',' order_item { $$ = $1; ast_append(M, &$$, $3); }
    ;

order_item: expr descending nulls_opt { $$ = grammar_order(parse, $1, $2, PLACE(@1)); };

descending: %empty { $$ = false; } | ASC { $$ = false; } | DESC { $$ = true; };

nulls_opt: %empty | NULLS { REFUSE(@1, "NULLS FIRST and NULLS LAST are not supported yet"); };

frame_opt:
    %empty { $$ = grammar_frame(parse, false, AST_BOUND_NONE, AST_BOUND_NONE); }
    | frame_unit BETWEEN bound AND bound
    {
        $$ = grammar_frame(parse, $1, $3.bound, $5.bound);
        $$->from_value = $3.value;
        $$->to_value = $5.value;
    }
    | frame_unit bound
    { $$ = grammar_frame(parse, $1, $2.bound, AST_CURRENT_ROW); $$->from_value = $2.value; }
    ;

frame_unit: ROWS { $$ = true; } | RANGE { $$ = false; };

bound:
    UNBOUNDED PRECEDING { $$.bound = AST_UNBOUNDED_PRECEDING; $$.value = NULL; }
    | UNBOUNDED FOLLOWING { $$.bound = AST_UNBOUNDED_FOLLOWING; $$.value = NULL; }
    | CURRENT ROW { $$.bound = AST_CURRENT_ROW; $$.value = NULL; }
    | primary PRECEDING { $$.bound = AST_PRECEDING; $$.value = $1; }
    | primary FOLLOWING { $$.bound = AST_FOLLOWING; $$.value = $1; }
    ;

/* ---- expressions ---- */

expressions:
    expr { $$ = (struct ast_list){0}; ast_append(M, &$$, $1); }
    | expressions ',' expr { $$ = $1; ast_append(M, &$$, $3); }
    ;

expr:
    arith
    | expr OR expr { CALL($$, @2, "OR", $1, $3); }
    | expr AND expr { CALL($$, @2, "AND", $1, $3); }
    | NOT expr { CALL($$, @1, "NOT", $2); }
    | expr '=' expr { CALL($$, @2, "=", $1, $3); }
    | expr NOT_EQUAL expr { CALL($$, @2, "<>", $1, $3); }
    | expr '<' expr { CALL($$, @2, "<", $1, $3); }
    | expr '>' expr { CALL($$, @2, ">", $1, $3); }
    | expr LESS_EQUAL expr { CALL($$, @2, "<=", $1, $3); }
    | expr GREATER_EQUAL expr { CALL($$, @2, ">=", $1, $3); }
    | expr IS NULL_ { CALL($$, @2, "IS NULL", $1); }
    | expr IS NOT NULL_ { CALL($$, @2, "IS NOT NULL", $1); }
    | expr IS TRUE_ { CALL($$, @2, "IS TRUE", $1); }
    | expr IS NOT TRUE_ { CALL($$, @2, "IS NOT TRUE", $1); }
    | expr IS FALSE_ { CALL($$, @2, "IS FALSE", $1); }
    | expr IS NOT FALSE_ { CALL($$, @2, "IS NOT FALSE", $1); }
    | expr IS UNKNOWN { CALL($$, @2, "IS UNKNOWN", $1); }
    | expr IS NOT UNKNOWN { CALL($$, @2, "IS NOT UNKNOWN", $1); }
    | expr IS DISTINCT FROM expr %prec IS { CALL($$, @2, "IS DISTINCT FROM", $1, $5); }
    | expr IS NOT DISTINCT FROM expr %prec IS { CALL($$, @2, "IS NOT DISTINCT FROM", $1, $6); }
    | expr IS JSON { REFUSE(@2, "IS JSON is not supported yet"); }
    | expr IS NOT JSON { REFUSE(@2, "IS NOT JSON is not supported yet"); }
    | expr BETWEEN symmetric arith AND arith %prec BETWEEN
    {
        if (!grammar_between(parse, PLACE(@2), $3, (struct ast_expr *[3]){$1, $4, $6}, &$$))
            YYABORT;
        DEPTH($$);
    }
    | expr not_infix BETWEEN symmetric arith AND arith %prec BETWEEN
    {
        if (!grammar_between(parse, PLACE(@3), $4, (struct ast_expr *[3]){$1, $5, $7}, &$$))
            YYABORT;
        CALL($$, @2, "NOT", $$);
    }
    | expr IN '(' expressions ')' { $$ = grammar_in(parse, PLACE(@2), $1, &$4); DEPTH($$); }
    | expr not_infix IN '(' expressions ')'
    { $$ = grammar_in(parse, PLACE(@3), $1, &$5); CALL($$, @2, "NOT", $$); }
    | expr IN '(' subquery_start { REFUSE(@2, "IN (a sub-query) is not supported yet"); }
    | expr not_infix IN '(' subquery_start
    { REFUSE(@2, "NOT IN (a sub-query) is not supported yet"); }
    | expr LIKE arith %prec LIKE { CALL($$, @2, "LIKE", $1, $3); }
    | expr LIKE arith ESCAPE arith %prec LIKE { CALL($$, @2, "LIKE", $1, $3, $5); }
    | expr not_infix LIKE arith %prec LIKE
    { CALL($$, @3, "LIKE", $1, $4); CALL($$, @2, "NOT", $$); }
    | expr not_infix LIKE arith ESCAPE arith %prec LIKE
    { CALL($$, @3, "LIKE", $1, $4, $6); CALL($$, @2, "NOT", $$); }
    | expr SIMILAR TO arith %prec LIKE { CALL($$, @2, "SIMILAR TO", $1, $4); }
    | expr SIMILAR TO arith ESCAPE arith %prec LIKE { CALL($$, @2, "SIMILAR TO", $1, $4, $6); }
    | expr not_infix SIMILAR TO arith %prec LIKE
    { CALL($$, @3, "SIMILAR TO", $1, $5); CALL($$, @2, "NOT", $$); }
    | EXISTS { REFUSE(@1, "EXISTS is not supported yet"); }
    ;

not_infix: NOT_INFIX { $$ = true; };

symmetric: %empty { $$ = false; } | SYMMETRIC { $$ = true; } | ASYMMETRIC { $$ = false; };

subquery_start: SELECT | WITH | VALUES;

arith:
    primary
    | arith '+' arith { CALL($$, @2, "+", $1, $3); }
    | arith '-' arith { CALL($$, @2, "-", $1, $3); }
    | arith '*' arith { CALL($$, @2, "*", $1, $3); }
    | arith '/' arith { CALL($$, @2, "/", $1, $3); }
    | arith '%' arith { CALL($$, @2, "%", $1, $3); }
    | arith CONCAT arith { CALL($$, @2, "||", $1, $3); }
    | '-' arith %prec UNARY { $$ = grammar_negate(parse, PLACE(@1), $2); DEPTH($$); }
    | '+' arith %prec UNARY { $$ = $2; }
    ;

primary:
    literal
    | name_path { $$ = grammar_name(parse, AST_NAME, PLACE(@1), &$1); }
    | '(' expr ')' { $$ = $2; }
    | '(' expr ',' { REFUSE(@1, "a row value (a, b, …) is not supported yet"); }
    | '(' subquery_start { REFUSE(@1, "a scalar sub-query is not supported yet"); }
    | function_name '(' distinct_opt call_arguments ')' filter_opt over_opt
    {
        $$ = grammar_function(parse, PLACE(@1), $1, &$4);
        $$->distinct = $3;
        $$->filter = $6;
        $$->over = $7;
        DEPTH($$);
    }
    | function_name '(' ')' filter_opt over_opt
    {
        struct ast_list none = {0};
        $$ = grammar_function(parse, PLACE(@1), $1, &none);
        $$->filter = $4;
        $$->over = $5;
    }
    | function_name '(' '*' ')' filter_opt over_opt
    {
        struct ast_list none = {0};
        $$ = grammar_function(parse, PLACE(@1), $1, &none);
        $$->star = true;
        $$->filter = $5;
        $$->over = $6;
    }
    | function_name '(' distinct_opt call_arguments json_option
    {
        REFUSE(@5, "options of %s (RETURNING, ON EMPTY, ON ERROR, NULLS) are not supported yet",
            $1.text);
    }
    | niladic { struct ast_list none = {0}; $$ = grammar_function(parse, PLACE(@1), $1, &none); }
    | JSON_SPECIAL { REFUSE(@1, "%s is not supported yet", $1.text); }
    | GROUPING { REFUSE(@1, "GROUPING is not supported yet"); }
    | CASE when_list else_opt END_
    { if (!grammar_case(parse, PLACE(@1), NULL, &$2, $3, &$$)) YYABORT; DEPTH($$); }
    | CASE expr when_list else_opt END_
    { if (!grammar_case(parse, PLACE(@1), $2, &$3, $4, &$$)) YYABORT; DEPTH($$); }
    | CAST '(' expr AS type ')' { CALL($$, @1, "CAST", $3); $$->target = $5; }
    | TRY_CAST '(' expr AS type ')' { CALL($$, @1, "TRY_CAST", $3); $$->target = $5; }
    | EXTRACT '(' any_unit FROM expr ')' { CALL($$, @1, "EXTRACT", grammar_symbol(parse, $3), $5); }
    | FLOOR '(' expr ')' { CALL($$, @1, "FLOOR", $3); }
    | FLOOR '(' expr TO any_unit ')' { CALL($$, @1, "FLOOR", $3, grammar_symbol(parse, $5)); }
    | CEIL '(' expr ')' { CALL($$, @1, "CEIL", $3); }
    | CEIL '(' expr TO any_unit ')' { CALL($$, @1, "CEIL", $3, grammar_symbol(parse, $5)); }
    | TRIM '(' expr ')'
    {
        CALL($$, @1, "TRIM", grammar_word(parse, PLACE(@1), "BOTH"), grammar_text(parse, PLACE(@1),
            " "), $3);
    }
    | TRIM '(' expr FROM expr ')'
    { CALL($$, @1, "TRIM", grammar_word(parse, PLACE(@1), "BOTH"), $3, $5); }
    | TRIM '(' trim_side FROM expr ')'
    {
        CALL($$, @1, "TRIM", grammar_word(parse, PLACE(@1), grammar_side(parse)),
            grammar_text(parse, PLACE(@1), " "), $5);
    }
    | TRIM '(' trim_side expr FROM expr ')'
    { CALL($$, @1, "TRIM", grammar_word(parse, PLACE(@1), grammar_side(parse)), $4, $6); }
    | SUBSTRING '(' expr FROM expr ')' { CALL($$, @1, "SUBSTRING", $3, $5); }
    | SUBSTRING '(' expr FROM expr FOR expr ')' { CALL($$, @1, "SUBSTRING", $3, $5, $7); }
    | SUBSTRING '(' expr ',' expr ')' { CALL($$, @1, "SUBSTRING", $3, $5); }
    | SUBSTRING '(' expr ',' expr ',' expr ')' { CALL($$, @1, "SUBSTRING", $3, $5, $7); }
    | POSITION '(' arith IN arith ')' { CALL($$, @1, "POSITION", $3, $5); }
    | OVERLAY '(' expr PLACING expr FROM expr ')' { CALL($$, @1, "OVERLAY", $3, $5, $7); }
    | OVERLAY '(' expr PLACING expr FROM expr FOR expr ')'
    { CALL($$, @1, "OVERLAY", $3, $5, $7, $9); }
    | ARRAY '[' { REFUSE(@1, "ARRAY[…] is not supported yet"); }
    | MULTISET '[' { REFUSE(@1, "MULTISET[…] is not supported yet"); }
    | ROW '(' { REFUSE(@1, "ROW(…) is not supported yet"); }
    | primary '[' { REFUSE(@2, "%s is not supported yet", grammar_subscript($1)); }
    | '(' expr ')' '.' { REFUSE(@4, "field access on an expression is not supported yet"); }
    | RESERVED
    { FAIL(@1, "%s is a reserved word: as a name it needs back-ticks, `%s`", $1.text, $1.text); }
    ;

json_option: RETURNING | NULL_ | DEFAULT | ERROR_ | IGNORE | RESPECT | ON | WITH | WITHOUT | ORDER;

trim_side: BOTH { grammar_set_side(parse, "BOTH"); }
    | LEADING { grammar_set_side(parse, "LEADING"); }
    | TRAILING { grammar_set_side(parse, "TRAILING"); };

filter_opt:
    %empty %prec LOW { $$ = NULL; }
    | FILTER '(' WHERE expr ')' { $$ = $4; }
    | WITHIN { REFUSE(@1, "WITHIN GROUP is not supported yet"); }
    | IGNORE { REFUSE(@1, "IGNORE NULLS is not supported"); }
    | RESPECT { REFUSE(@1, "RESPECT NULLS is not supported"); }
    ;

over_opt:
    %empty { $$ = NULL; }
    | OVER '(' window_body ')' { $$ = $3; $$->at = PLACE(@1); }
    | OVER name { $$ = grammar_over_name(parse, $2, PLACE(@1)); }
    ;

call_arguments:
    call_argument { $$ = (struct ast_list){0}; ast_append(M, &$$, $1); }
    | call_arguments ',' call_argument { $$ = $1; ast_append(M, &$$, $3); }
    ;

call_argument:
    expr
    | UNIT { $$ = grammar_symbol(parse, $1); }
    | name ARROW
    { REFUSE(@1, "named arguments (%s => …) of functions are not supported yet", $1.text); }
    ;

when_list:
    WHEN expressions THEN expr
    { $$ = (struct ast_list){0}; if (!grammar_when(parse, &$$, &$2, $4)) YYABORT; }
    | when_list WHEN expressions THEN expr
    { $$ = $1; if (!grammar_when(parse, &$$, &$3, $5)) YYABORT; }
    ;

else_opt: %empty { $$ = NULL; } | ELSE expr { $$ = $2; };

literal:
    NUMBER { $$ = LITERAL(AST_NUMBER, @1, $1); }
    | INTEGER_NUMBER { $$ = LITERAL(AST_NUMBER, @1, $1); }
    | STRING_LITERAL { $$ = LITERAL(AST_TEXT, @1, $1); }
    | UNICODE_LITERAL { $$ = grammar_unicode(parse, $1, NULL); if ($$ == NULL) YYABORT; }
    | UNICODE_LITERAL UESCAPE STRING_LITERAL
    { $$ = grammar_unicode(parse, $1, &$3); if ($$ == NULL) YYABORT; }
    | BYTES_LITERAL { $$ = LITERAL(AST_BYTES, @1, $1); }
    | TRUE_ { $$ = ast_expr(M, AST_TRUE, PLACE(@1), "TRUE", 4); }
    | FALSE_ { $$ = ast_expr(M, AST_FALSE, PLACE(@1), "FALSE", 5); }
    | UNKNOWN { $$ = ast_expr(M, AST_UNKNOWN, PLACE(@1), "UNKNOWN", 7); }
    | NULL_ { $$ = ast_expr(M, AST_NULL, PLACE(@1), "NULL", 4); }
    | DATE STRING_LITERAL { $$ = LITERAL(AST_DATE, @1, $2); }
    | TIME STRING_LITERAL { $$ = LITERAL(AST_TIME, @1, $2); }
    | TIMESTAMP STRING_LITERAL { $$ = LITERAL(AST_TIMESTAMP, @1, $2); }
    | interval
    ;

interval:
    INTERVAL STRING_LITERAL any_unit interval_precision %prec LOW
    { $$ = grammar_interval(parse, PLACE(@1), $2, $3, NULL, false); }
    | INTERVAL STRING_LITERAL any_unit interval_precision TO any_unit interval_precision
    { $$ = grammar_interval(parse, PLACE(@1), $2, $3, &$6, false); }
    | INTERVAL '-' STRING_LITERAL any_unit interval_precision %prec LOW
    { $$ = grammar_interval(parse, PLACE(@1), $3, $4, NULL, true); }
    | INTERVAL '-' STRING_LITERAL any_unit interval_precision TO any_unit interval_precision
    { $$ = grammar_interval(parse, PLACE(@1), $3, $4, &$7, true); }
    | INTERVAL '+' STRING_LITERAL any_unit interval_precision
    { $$ = grammar_interval(parse, PLACE(@1), $3, $4, NULL, false); }
    | INTERVAL INTEGER_NUMBER
    { FAIL(@2, "the number of an INTERVAL stands in quotes: INTERVAL '%s' …", $2.text); }
    ;

interval_precision: %empty | '(' INTEGER_NUMBER ')' | '(' INTEGER_NUMBER ',' INTEGER_NUMBER ')';

/* ---- names ---- */

function_name:
    name | FUNCTION_WORD | UNIT | LEFT | RIGHT | IF;

niladic: NILADIC;

unit: UNIT;

any_unit: unit | NAME;

name_path:
    name { $$ = (struct ast_list){0}; grammar_add_name(parse, &$$, $1); }
    | name_path '.' name { $$ = $1; grammar_add_name(parse, &$$, $3); }
    ;

path_in_parens: '(' names ')' { $$ = $2; };

names:
    name { $$ = (struct ast_list){0}; grammar_add_name(parse, &$$, $1); }
    | names ',' name { $$ = $1; grammar_add_name(parse, &$$, $3); }
    ;

name:
    NAME
    | QUOTED_NAME
    | ASC
    | CATALOG
    | COMMENT
    | COMPILE
    | CONFLICT
    | DATABASE
    | DEDUPLICATE
    | DESC
    | DESCRIPTOR
    | DISTRIBUTED
    | DO
    | ENFORCED
    | ERROR_
    | FOLLOWING
    | FUNCTION
    | IGNORE
    | JSON
    | KEY
    | LOAD
    | MAP
    | METADATA
    | NOTHING
    | NULLS | OVERWRITE | PARTITIONED | PLACING | PRECEDING | RESPECT | RETURNING | SETS | STATEMENT
    | TEMPORARY | USE | VIEW | VIRTUAL | ZONE
    ;

%%

/* Shows a token as the user wrote it, or names its kind. */
static const char *expected_name(yysymbol_kind_t kind, char into[static 64])
{
    const char *name = yysymbol_name(kind);
    if (name[0] == '"') {
        (void)snprintf(into, 64, "%.*s", (int)strlen(name) - 2, name + 1);
        return into;
    }
    (void)snprintf(into, 64, "%s", name);
    const size_t length = strlen(into);
    if (length > 1 && into[length - 1] == '_') {
        into[length - 1] = 0;
    }
    return into;
}

#define EXPECTED_MAX 6

/* "expected A, B or C, found X": only when few tokens are possible. */
static int yyreport_syntax_error(const yypcontext_t *context, void *scanner, struct parse *parse)
{
    (void)scanner;
    yysymbol_kind_t kinds[EXPECTED_MAX + 1];
    const int count = yypcontext_expected_tokens(context, kinds, EXPECTED_MAX + 1);
    char list[256] = "";
    char name[64];
    for (int i = 0; i < count && count <= EXPECTED_MAX; i++) {
        const size_t used = strlen(list);
        const char *joint = i == 0 ? " expected " : i + 1 == count ? " or " : ", ";
        (void)snprintf(list + used, sizeof(list) - used, "%s%s", joint,
                       expected_name(kinds[i], name));
    }
    grammar_syntax_error(parse, PLACE(*yypcontext_location(context)),
                         yypcontext_token(context) == YYSYMBOL_YYEOF,
                         yypcontext_token(context) == YYSYMBOL_RESERVED ||
                             yypcontext_token(context) == YYSYMBOL_FUNCTION_WORD,
                         list);
    return 0;
}

/* Bison calls this only when its stack is full or memory is short. */
void sql_grammar_error(const SQL_GRAMMAR_LTYPE *at, void *scanner, struct parse *parse,
                       const char *message)
{
    (void)scanner;
    (void)message;
    (void)parse_fail(parse, -E2BIG, PLACE(*at), "the script is nested too deeply here");
}
