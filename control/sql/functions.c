/* SPDX-License-Identifier: Apache-2.0 */
/* Binding of scalar calls: finds the name, types the call by its table entry, puts casts round the
 * arguments, and computes what has only literals at once. The tables stand in functions_*.c. */
#include "control/sql/functions.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "control/sql/functions_internal.h"
#include "dataplane/expr/program.h"

#define FOLD_SCRATCH_BYTES 65536
#define NAME_DISTANCE_MAX  3 /* of a suggestion */
#define NAME_BYTES_MAX     48

static const struct function_entry *const tables[] = {
    functions_logic, functions_number, functions_text, functions_time, functions_cast,
};

/* Flink's functions that have no place here yet. */
static const char *const missing[] = {
    "ARRAY",
    "ARRAY_APPEND",
    "ARRAY_CONCAT",
    "ARRAY_CONTAINS",
    "ARRAY_DISTINCT",
    "ARRAY_EXCEPT",
    "ARRAY_INTERSECT",
    "ARRAY_JOIN",
    "ARRAY_MAX",
    "ARRAY_MIN",
    "ARRAY_POSITION",
    "ARRAY_PREPEND",
    "ARRAY_REMOVE",
    "ARRAY_REVERSE",
    "ARRAY_SLICE",
    "ARRAY_SORT",
    "ARRAY_UNION",
    "CARDINALITY",
    "DECODE",
    "DECRYPT",
    "ELEMENT",
    "ENCODE",
    "ENCRYPT",
    "GROUPING",
    "GROUPING_ID",
    "IS JSON",
    "ITEM",
    "JSON",
    "JSON_ARRAY",
    "JSON_EXISTS",
    "JSON_LENGTH",
    "JSON_OBJECT",
    "JSON_QUERY",
    "JSON_QUOTE",
    "JSON_STRING",
    "JSON_UNQUOTE",
    "JSON_VALUE",
    "MAP",
    "MAP_ENTRIES",
    "MAP_FROM_ARRAYS",
    "MAP_KEYS",
    "MAP_UNION",
    "MAP_VALUES",
    "PARSE_JSON",
    "PERCENTILE",
    "PRINTF",
    "RAND",
    "RAND_INTEGER",
    "REGEXP_EXTRACT_ALL",
    "ROW",
    "SPLIT",
    "STR_TO_MAP",
    "TRY_PARSE_JSON",
    "UUID",
};

int binding_fail(const struct binding *binding, int code, const char *format, ...)
{
    ASSERT(binding->call != NULL);
    ASSERT(code < 0);
    if (binding->error == NULL) {
        return code;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(binding->error->text, sizeof(binding->error->text), format, arguments);
    va_end(arguments);
    binding->error->line = binding->call->line;
    binding->error->column = binding->call->column;
    return code;
}

int binding_mismatch(const struct binding *binding)
{
    ASSERT(binding->call != NULL);
    char types[ERROR_TEXT_BYTES / 2] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < binding->count; i++) {
        char one[TYPE_PRINT_BYTES];
        const int wrote = snprintf(types + used, sizeof(types) - used, "%s%s", i == 0 ? "" : ", ",
                                   type_print(&binding->arguments[i]->type, one));
        used += (size_t)wrote;
        if (used >= sizeof(types)) {
            break;
        }
    }
    return binding_fail(binding, -EINVAL, "Invalid function call: %s(%s)", binding->call->name,
                        types);
}

bool binding_nullable(const struct binding *binding)
{
    ASSERT(binding->call != NULL);
    for (uint32_t i = 0; i < binding->count; i++) {
        if (binding->arguments[i]->type.nullable) {
            return true;
        }
    }
    return false;
}

bool binding_symbol(const struct binding *binding, uint32_t index, char into[static 32])
{
    ASSERT(binding->call != NULL);
    if (index >= binding->count) {
        return false;
    }
    const struct expr *argument = binding->arguments[index];
    if (argument->kind != EXPR_LITERAL || !type_is_characters(&argument->type) ||
        argument->literal.is_null || argument->literal.text.bytes >= 32) {
        return false;
    }
    const struct span text = argument->literal.text;
    for (size_t i = 0; i < text.bytes; i++) {
        const char c = (char)text.data[i];
        into[i] = c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
    }
    into[text.bytes] = '\0';
    return true;
}

bool binding_constant(const struct binding *binding, uint32_t index, int64_t *value)
{
    ASSERT(binding->call != NULL);
    if (index >= binding->count) {
        return false;
    }
    const struct expr *argument = binding->arguments[index];
    if (argument->kind != EXPR_LITERAL || argument->literal.is_null ||
        !type_is_integer(&argument->type)) {
        return false;
    }
    *value = argument->literal.i64;
    return true;
}

static bool same_literal(const struct expr *a, const struct expr *b)
{
    ASSERT(a->kind <= EXPR_CALL);
    if (a->literal.is_null || b->literal.is_null) {
        return a->literal.is_null == b->literal.is_null;
    }
    if (type_is_text(&a->type)) {
        const struct span x = a->literal.text;
        const struct span y = b->literal.text;
        return x.bytes == y.bytes && (x.bytes == 0 || memcmp(x.data, y.data, x.bytes) == 0);
    }
    const size_t bytes = a->type.kind == TYPE_FLOAT ? 4 : 8 * (size_t)type_slot_count(&a->type);
    return memcmp(&a->literal.i64, &b->literal.i64, bytes) == 0;
}

static bool same_at(const struct expr *a, const struct expr *b, uint32_t depth)
{
    if (a == b) {
        return true;
    }
    if (depth == EXPR_DEPTH_MAX || a->kind != b->kind || !type_equal(&a->type, &b->type)) {
        return false;
    }
    if (a->kind == EXPR_COLUMN) {
        return a->column == b->column;
    }
    if (a->kind == EXPR_LITERAL) {
        return same_literal(a, b);
    }
    bool same = a->function == b->function && a->argument_count == b->argument_count;
    for (uint32_t i = 0; same && i < a->argument_count; i++) {
        same = same_at(a->arguments[i], b->arguments[i], depth + 1);
    }
    return same;
}

bool expr_same(const struct expr *a, const struct expr *b)
{
    return same_at(a, b, 0);
}

static struct expr *new_expr(const struct binding *binding, enum expr_kind kind, struct type type)
{
    ASSERT(binding->call != NULL);
    struct expr *expr = sql_allocate(binding->memory, sizeof(*expr));
    expr->kind = kind;
    expr->type = type;
    expr->line = binding->call->line;
    expr->column_in_line = binding->call->column;
    return expr;
}

const struct expr *make_literal(const struct binding *binding, struct type type, struct value value)
{
    ASSERT(binding != NULL);
    struct expr *expr = new_expr(binding, EXPR_LITERAL, type);
    expr->literal = value;
    expr->type.nullable = value.is_null;
    return expr;
}

const struct expr *make_text(const struct binding *binding, const char *text)
{
    const struct type type = {.kind = TYPE_CHAR, .length = (uint32_t)strlen(text)};
    return make_literal(binding, type, (struct value){.text = TEXT_OF(text)});
}

/* Tells whether the answer depends on more than the arguments: the session's zone, the clock. */
static bool stays_open(const struct expr *expr)
{
    ASSERT(expr != NULL);
    switch (expr->function) {
    case EXPR_CURRENT_WATERMARK:
    case EXPR_PROCTIME:
    case EXPR_UNIX_TIMESTAMP:
    case EXPR_FROM_UNIXTIME:
    case EXPR_TO_TIMESTAMP_LTZ:
        return true;
    default:
        break;
    }
    bool open = expr->type.kind == TYPE_TIMESTAMP_LTZ;
    for (uint32_t i = 0; i < expr->argument_count; i++) {
        open = open || expr->arguments[i]->kind != EXPR_LITERAL ||
               expr->arguments[i]->type.kind == TYPE_TIMESTAMP_LTZ;
    }
    return open;
}

static struct value copy_result(struct sql_memory *memory, const struct vector *vector)
{
    ASSERT(memory != NULL);
    struct value value = {.is_null = vector->null[0] != 0};
    if (value.is_null) {
        return value;
    }
    if (type_is_text(&vector->type)) {
        const struct span text = vector->text[0];
        value.text = (struct span){
            .data = (const uint8_t *)sql_copy_text(memory, (const char *)text.data, text.bytes),
            .bytes = text.bytes};
    } else if (vector->type.kind == TYPE_FLOAT) {
        value.f32 = vector->f32[0];
    } else {
        memcpy(&value.i64, type_slot_count(&vector->type) == 2 ? (void *)vector->i128 : vector->i64,
               8 * (size_t)type_slot_count(&vector->type));
    }
    return value;
}

/* Computes a call of literals by the very program that would run it.
 * returns  NULL when it must run with the job: it fails, or is not built */
static const struct expr *fold(const struct binding *binding, const struct expr *expr)
{
    ASSERT(binding->call != NULL);
    static const struct row_layout no_columns = {.column_count = 0};
    const struct program_config config = {.layout = &no_columns,
                                          .outputs = &expr,
                                          .output_count = 1,
                                          .time_zone = "UTC",
                                          .scratch_bytes = FOLD_SCRATCH_BYTES};
    struct program *program = NULL;
    struct program_state *state = NULL;
    const struct expr *out = NULL;
    if (program_compile(&config, &program, NULL) == 0 &&
        program_state_create(program, &state, NULL) == 0) {
        struct row row = {.bytes = sizeof(row)};
        const struct row *rows[] = {&row};
        const struct program_context context = {.watermark_ms = WATERMARK_MIN};
        if (program_run(state, &context, rows, 1) == PROGRAM_OK &&
            program_result(state, 0)->null[0] != VECTOR_NULL_HIDDEN) {
            const bool nullable = expr->type.nullable;
            struct expr *literal = new_expr(binding, EXPR_LITERAL, expr->type);
            literal->literal = copy_result(binding->memory, program_result(state, 0));
            literal->type.nullable = nullable || literal->literal.is_null;
            out = literal;
        }
    }
    program_state_destroy(state);
    program_destroy(program);
    return out;
}

const struct expr *make_call_of(const struct binding *binding, enum expr_function function,
                                struct type type, const struct expr *const *arguments,
                                uint32_t count)
{
    ASSERT(binding != NULL);
    ASSERT(count <= EXPR_ARGUMENTS_MAX);
    struct expr *expr = new_expr(binding, EXPR_CALL, type);
    const struct expr **copy = sql_allocate(binding->memory, (count + 1) * sizeof(struct expr *));
    for (uint32_t i = 0; i < count; i++) {
        copy[i] = arguments[i];
    }
    expr->function = function;
    expr->arguments = copy;
    expr->argument_count = count;
    if (count > 0 && !stays_open(expr)) {
        const struct expr *folded = fold(binding, expr);
        return folded != NULL ? folded : expr;
    }
    return expr;
}

const struct expr *make_call(const struct binding *binding, enum expr_function function,
                             struct type type)
{
    return make_call_of(binding, function, type, binding->arguments, binding->count);
}

const struct expr *make_cast(const struct binding *binding, const struct expr *from,
                             const struct type *to)
{
    ASSERT(binding != NULL);
    ASSERT(from != NULL);
    ASSERT(to != NULL);
    struct type type = *to;
    type.nullable = from->type.nullable;
    if (from->type.kind == TYPE_NULL) {
        return make_literal(binding, type, (struct value){.is_null = true});
    }
    if (type_equal(&from->type, to)) {
        return from;
    }
    /* A DECIMAL may turn NULL; Flink keeps the type's nullability all the same. */
    return make_call_of(binding, EXPR_CAST, type, &from, 1);
}

int binding_unify(struct binding *binding, uint32_t first, uint32_t step, struct type *out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    struct type types[EXPR_ARGUMENTS_MAX];
    uint32_t count = 0;
    for (uint32_t i = first; i < binding->count; i += step) {
        types[count++] = binding->arguments[i]->type;
    }
    if (count == 0 || type_common(types, count, out) != 0) {
        return binding_mismatch(binding);
    }
    if (out->kind == TYPE_NULL) {
        return binding_fail(binding, -EINVAL, "Illegal use of 'NULL' in %s", binding->call->name);
    }
    for (uint32_t i = first; i < binding->count; i += step) {
        binding->arguments[i] = make_cast(binding, binding->arguments[i], out);
    }
    return 0;
}

/* Casts argument `index` as a letter of the signature asks.
 * returns  false when it cannot be */
static bool accept(struct binding *binding, uint32_t index, char letter)
{
    ASSERT(binding->call != NULL);
    const struct expr *argument = binding->arguments[index];
    const struct type *from = &argument->type;
    struct type to = type_of_kind(TYPE_NULL, true);
    const bool null = from->kind == TYPE_NULL;
    switch (letter) {
    case 's':
        to = type_varchar(TYPE_LENGTH_MAX, true);
        if (!null) {
            return type_is_characters(from);
        }
        break;
    case 'y':
        return type_is_text(from);
    case 'i':
        to = type_of_kind(TYPE_INT, true);
        if (!null && !type_is_integer(from)) {
            return false;
        }
        break;
    case 'l':
        to = type_of_kind(TYPE_BIGINT, true);
        if (!null && !type_is_integer(from)) {
            return false;
        }
        break;
    case 'd':
        to = type_of_kind(TYPE_DOUBLE, true);
        if (!null && !type_is_number(from)) {
            return false;
        }
        break;
    case 'n':
        return type_is_number(from);
    case 'b':
        to = type_of_kind(TYPE_BOOLEAN, true);
        if (!null && from->kind != TYPE_BOOLEAN) {
            return false;
        }
        break;
    case 't':
        return from->kind == TYPE_TIMESTAMP || from->kind == TYPE_TIMESTAMP_LTZ;
    default:
        ASSERT(letter == 'a');
        return true;
    }
    binding->arguments[index] = make_cast(binding, argument, &to);
    return true;
}

/* Goes along the signature. */
static int accept_all(struct binding *binding, const char *signature)
{
    ASSERT(binding->call != NULL);
    bool optional = false;
    char letter = '\0';
    uint32_t index = 0;
    for (const char *at = signature; *at != '\0'; at++) {
        if (*at == '?') {
            optional = true;
            continue;
        }
        const bool repeats = *at == '*';
        letter = repeats ? letter : *at;
        do {
            if (index == binding->count) {
                return optional || repeats ? 0 : binding_mismatch(binding);
            }
            if (!accept(binding, index, letter)) {
                return binding_mismatch(binding);
            }
            index++;
        } while (repeats && index < binding->count);
    }
    return index == binding->count ? 0 : binding_mismatch(binding);
}

static struct type result_type(const struct binding *binding, const char *result)
{
    ASSERT(binding->call != NULL);
    ASSERT(result != NULL);
    const struct type *first = binding->count > 0 ? &binding->arguments[0]->type : NULL;
    const bool nullable = result[1] == '?' || (result[1] != '!' && binding_nullable(binding));
    switch (result[0]) {
    case 'S':
        return type_varchar(TYPE_LENGTH_MAX, nullable);
    case 'V':
        return type_varchar(first->length, nullable);
    case 'Y':
        return (struct type){
            .kind = TYPE_VARBINARY, .nullable = nullable, .length = TYPE_LENGTH_MAX};
    case 'I':
        return type_of_kind(TYPE_INT, nullable);
    case 'L':
        return type_of_kind(TYPE_BIGINT, nullable);
    case 'D':
        return type_of_kind(TYPE_DOUBLE, nullable);
    case 'B':
        return type_of_kind(TYPE_BOOLEAN, nullable);
    default: {
        ASSERT(result[0] == '0' && first != NULL);
        struct type same = *first;
        same.nullable = nullable;
        return same;
    }
    }
}

/* Edits that turn one name into another, up to a bound. */
static uint32_t distance(const char *a, const char *b)
{
    uint32_t row[NAME_BYTES_MAX + 1];
    const size_t a_bytes = strlen(a);
    const size_t b_bytes = strlen(b);
    if (a_bytes > NAME_BYTES_MAX || b_bytes > NAME_BYTES_MAX) {
        return UINT32_MAX;
    }
    for (uint32_t j = 0; j <= b_bytes; j++) {
        row[j] = j;
    }
    for (uint32_t i = 1; i <= a_bytes; i++) {
        uint32_t diagonal = row[0];
        row[0] = i;
        for (uint32_t j = 1; j <= b_bytes; j++) {
            const char c = a[i - 1] >= 'a' && a[i - 1] <= 'z' ? (char)(a[i - 1] - 32) : a[i - 1];
            const uint32_t change = diagonal + (c == b[j - 1] ? 0 : 1);
            const uint32_t step = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            diagonal = row[j];
            row[j] = change < step ? change : step;
        }
    }
    return row[b_bytes];
}

static int unknown(const struct binding *binding)
{
    ASSERT(binding->call != NULL);
    const char *name = binding->call->name;
    for (size_t i = 0; i < COUNT_OF(missing); i++) {
        if (strcasecmp(missing[i], name) == 0) {
            return binding_fail(binding, -ENOTSUP, "the function %s is not built yet", missing[i]);
        }
    }
    const char *nearest = NULL;
    uint32_t least = NAME_DISTANCE_MAX + 1;
    for (size_t t = 0; t < COUNT_OF(tables); t++) {
        for (const struct function_entry *entry = tables[t]; entry->name != NULL; entry++) {
            const uint32_t edits = distance(name, entry->name);
            nearest = edits < least ? entry->name : nearest;
            least = edits < least ? edits : least;
        }
    }
    return binding_fail(binding, -EINVAL, "No match found for function signature %s%s%s%s", name,
                        nearest == NULL ? "" : "; did you mean ", nearest == NULL ? "" : nearest,
                        nearest == NULL ? "" : "?");
}

static const struct function_entry *find_entry(const char *name)
{
    for (size_t t = 0; t < COUNT_OF(tables); t++) {
        for (const struct function_entry *entry = tables[t]; entry->name != NULL; entry++) {
            if (strcasecmp(entry->name, name) == 0) {
                return entry;
            }
        }
    }
    return NULL;
}

int function_bind(struct sql_memory *memory, const struct function_call *call,
                  const struct expr **out, struct error *error)
{
    ASSERT(memory != NULL && call != NULL);
    ASSERT(call->name != NULL && out != NULL);
    struct binding binding = {.memory = memory, .call = call, .error = error};
    binding.entry = find_entry(call->name);
    if (call->argument_count > EXPR_ARGUMENTS_MAX) {
        return binding_fail(&binding, -EINVAL, "%s has more than %d arguments", call->name,
                            EXPR_ARGUMENTS_MAX);
    }
    binding.count = call->argument_count;
    for (uint32_t i = 0; i < binding.count; i++) {
        binding.arguments[i] = call->arguments[i];
    }
    if (binding.entry == NULL) {
        return unknown(&binding);
    }
    if (binding.entry->handler != NULL) {
        return binding.entry->handler(&binding, out);
    }
    const int result = accept_all(&binding, binding.entry->arguments);
    if (result == 0) {
        *out = make_call(&binding, binding.entry->function,
                         result_type(&binding, binding.entry->result));
    }
    return result;
}
