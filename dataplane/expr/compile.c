/* SPDX-License-Identifier: Apache-2.0 */
/* Making of programs, in two steps. First the trees become a graph of nodes, one for each different
 * expression, so that what stands twice is computed once; each call node finds its kernel. Then
 * instructions are emitted under selections: a node that is safe (nothing in it can fail or is
 * dear) is computed for all rows, others only for the rows of their branch. A node that is wanted
 * in two branches of which none contains the other is computed in each. */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/expr/program_internal.h"

#define LITERAL_ALIGNMENT 64
#define NO_NODE           UINT32_MAX

/* Where a node's value was computed. */
struct place {
    uint32_t node;
    uint16_t selection;
    uint16_t out;
};

struct node {
    const struct expr *expr;
    uint64_t hash;
    uint32_t first_child; /* into children */
    bool safe;
    struct kernel_choice choice; /* calls but the branching ones */
};

struct compiler {
    struct program *program;
    const char *time_zone;
    struct error *error;
    struct node *nodes;
    uint32_t node_count, node_room;
    uint32_t *children;
    uint32_t child_count, child_room;
    struct place *places;
    uint32_t place_count, place_room;
    uint16_t *parents; /* of selections */
    uint32_t parent_room;
    uint32_t instruction_room, register_room, argument_room;
    int result; /* the first failure; everything stops at it */
};

uint32_t vector_value_bytes(const struct type *type)
{
    ASSERT(type->kind <= TYPE_ROW);
    if (type_is_text(type)) {
        return sizeof(struct span);
    }
    return type->kind == TYPE_FLOAT ? 4 : 8 * type_slot_count(type);
}

/* Makes room for one more element of an array.
 * returns  false when memory is out or the array would pass its bound */
static bool grow(struct compiler *compiler, void *array_pointer, uint32_t count, uint32_t *room,
                 size_t element_bytes)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(room != NULL);
    void *array;
    memcpy(&array, array_pointer, sizeof(array));
    if (count < *room) {
        return true;
    }
    const uint32_t wanted = *room == 0 ? 32 : *room * 2;
    void *larger = realloc(array, wanted * element_bytes);
    if (larger == NULL) {
        compiler->result = error_set(compiler->error, -ENOMEM, "out of memory for an expression");
        return false;
    }
    memset((uint8_t *)larger + *room * element_bytes, 0, (wanted - *room) * element_bytes);
    memcpy(array_pointer, &larger, sizeof(larger));
    *room = wanted;
    return true;
}

static bool too_large(struct compiler *compiler)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    if (compiler->result == 0) {
        compiler->result =
            error_set(compiler->error, -ENOTSUP, "the expressions of one operator are too large");
    }
    return false;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash ^= value + UINT64_C(0x9e3779b97f4a7c15) + (hash << 6) + (hash >> 2);
    return hash * UINT64_C(0xbf58476d1ce4e5b9);
}

static uint64_t hash_literal(const struct expr *expr)
{
    ASSERT(expr->kind <= EXPR_CALL);
    uint64_t hash = expr->literal.is_null;
    if (expr->literal.is_null) {
        return hash;
    }
    if (!type_is_text(&expr->type)) {
        uint64_t words[2] = {0, 0};
        memcpy(words, &expr->literal.i64, vector_value_bytes(&expr->type));
        return mix(mix(hash, words[0]), words[1]);
    }
    for (size_t i = 0; i < expr->literal.text.bytes; i++) {
        hash = mix(hash, expr->literal.text.data[i]);
    }
    return hash;
}

static bool literals_equal(const struct expr *a, const struct expr *b)
{
    ASSERT(a->kind <= EXPR_CALL);
    if (a->literal.is_null || b->literal.is_null) {
        return a->literal.is_null == b->literal.is_null;
    }
    if (!type_is_text(&a->type)) {
        return memcmp(&a->literal.i64, &b->literal.i64, vector_value_bytes(&a->type)) == 0;
    }
    return a->literal.text.bytes == b->literal.text.bytes &&
           (a->literal.text.bytes == 0 ||
            memcmp(a->literal.text.data, b->literal.text.data, a->literal.text.bytes) == 0);
}

static bool node_is(const struct compiler *compiler, const struct node *node,
                    const struct expr *expr, const uint32_t *children)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(node != NULL);
    const struct expr *other = node->expr;
    if (other->kind != expr->kind || !type_equal(&other->type, &expr->type)) {
        return false;
    }
    switch (expr->kind) {
    case EXPR_COLUMN:
        return other->column == expr->column;
    case EXPR_LITERAL:
        return literals_equal(other, expr);
    case EXPR_CALL:
        return other->function == expr->function && other->argument_count == expr->argument_count &&
               (expr->argument_count == 0 ||
                memcmp(compiler->children + node->first_child, children,
                       expr->argument_count * sizeof(*children)) == 0);
    }
    return false;
}

static bool is_branching(enum expr_function function)
{
    return function == EXPR_AND || function == EXPR_OR || function == EXPR_CASE ||
           function == EXPR_COALESCE;
}

static int find_kernel(struct compiler *compiler, const struct expr *expr,
                       struct kernel_choice *out)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(out != NULL);
    typedef int finder(const struct kernel_call *, struct kernel_choice *, struct error *);
    static finder *const finders[] = {
        logic_kernel,       compare_kernel,      time_kernel, time_part_kernel, decimal_kernel,
        number_kernel,      number_round_kernel, math_kernel, cast_kernel,      text_kernel,
        text_edit_kernel,   text_code_kernel,    like_kernel, regex_kernel,     time_format_kernel,
        text_digest_kernel, text_url_kernel};
    const struct kernel_call call = {.expr = expr, .time_zone = compiler->time_zone};
    for (size_t i = 0; i < COUNT_OF(finders); i++) {
        const int result = finders[i](&call, out, compiler->error);
        if (result != -ENOENT) {
            return result;
        }
    }
    char types[2][TYPE_PRINT_BYTES] = {"", ""};
    for (uint32_t i = 0; i < expr->argument_count && i < 2; i++) {
        (void)type_print(&expr->arguments[i]->type, types[i]);
    }
    return error_set(
        compiler->error, -ENOTSUP, "%s(%s%s%s) giving a type like its own is not built",
        expr_function_name(expr->function), types[0], types[1][0] == '\0' ? "" : ", ", types[1]);
}

static bool children_safe(const struct compiler *compiler, const struct node *node)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    for (uint32_t i = 0; i < node->expr->argument_count; i++) {
        if (!compiler->nodes[compiler->children[node->first_child + i]].safe) {
            return false;
        }
    }
    return true;
}

/* Keeps a kernel's constant where program_destroy finds it: in the node's choice until the program
 * takes it over. */
static void settle_call(struct compiler *compiler, struct node *node)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(node != NULL);
    const struct expr *expr = node->expr;
    if (!is_branching(expr->function)) {
        const int result = find_kernel(compiler, expr, &node->choice);
        if (result != 0) {
            compiler->result = result;
            if (compiler->error != NULL && compiler->error->line == 0) {
                compiler->error->line = expr->line;
                compiler->error->column = expr->column_in_line;
            }
            return;
        }
    }
    const bool cheap =
        is_branching(expr->function) || node->choice.eager || node->choice.mode == KERNEL_TOTAL;
    node->safe = cheap && children_safe(compiler, node);
}

static uint32_t add_node(struct compiler *compiler, const struct expr *expr, uint64_t hash,
                         const uint32_t *children)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(compiler->place_count <= compiler->place_room);
    if (!grow(compiler, &compiler->nodes, compiler->node_count, &compiler->node_room,
              sizeof(struct node))) {
        return NO_NODE;
    }
    const uint32_t index = compiler->node_count;
    struct node *node = &compiler->nodes[index];
    *node = (struct node){
        .expr = expr, .hash = hash, .first_child = compiler->child_count, .safe = true};
    if (expr->kind == EXPR_CALL) {
        for (uint32_t i = 0; i < expr->argument_count; i++) {
            if (!grow(compiler, &compiler->children, compiler->child_count, &compiler->child_room,
                      sizeof(uint32_t))) {
                return NO_NODE;
            }
            compiler->children[compiler->child_count++] = children[i];
        }
        settle_call(compiler, node);
    }
    compiler->node_count++;
    return compiler->result == 0 ? index : NO_NODE;
}

/* Finds or makes the node of an expression. */
static uint32_t analyse(struct compiler *compiler, const struct expr *expr, uint32_t depth)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(compiler->place_count <= compiler->place_room);
    uint32_t children[EXPR_ARGUMENTS_MAX];
    uint64_t hash = mix(expr->kind, expr->type.kind);
    if (depth == EXPR_DEPTH_MAX ||
        (expr->kind == EXPR_CALL && expr->argument_count > EXPR_ARGUMENTS_MAX)) {
        (void)too_large(compiler);
        return NO_NODE;
    }
    if (expr->kind == EXPR_COLUMN) {
        ASSERT(expr->column < compiler->program->layout->column_count);
        hash = mix(hash, expr->column);
    } else if (expr->kind == EXPR_LITERAL) {
        hash = mix(hash, hash_literal(expr));
    } else {
        hash = mix(hash, expr->function);
        for (uint32_t i = 0; i < expr->argument_count; i++) {
            children[i] = analyse(compiler, expr->arguments[i], depth + 1);
            if (children[i] == NO_NODE) {
                return NO_NODE;
            }
            hash = mix(hash, children[i]);
        }
    }
    for (uint32_t i = 0; i < compiler->node_count; i++) {
        if (compiler->nodes[i].hash == hash &&
            node_is(compiler, &compiler->nodes[i], expr, children)) {
            return i;
        }
    }
    return add_node(compiler, expr, hash, children);
}

static uint16_t add_register(struct compiler *compiler, const struct type *type)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(compiler->place_count <= compiler->place_room);
    struct program *program = compiler->program;
    if (program->register_count == UINT16_MAX) {
        (void)too_large(compiler);
        return 0;
    }
    if (!grow(compiler, &program->registers, program->register_count, &compiler->register_room,
              sizeof(*program->registers))) {
        return 0;
    }
    const uint32_t bytes = vector_value_bytes(type);
    program->registers[program->register_count] = (struct program_register){
        .type = *type, .value_bytes = (uint8_t)bytes, .offset = program->value_bytes};
    program->value_bytes += (size_t)bytes * PARCEL_ROWS_MAX;
    return (uint16_t)program->register_count++;
}

/* Adds an instruction with its arguments.
 * returns  the instruction, to be completed; NULL after a failure */
static struct instruction *add_instruction(struct compiler *compiler, enum operation operation,
                                           uint16_t selection, uint16_t out,
                                           const uint16_t *arguments, uint32_t argument_count)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(compiler->place_count <= compiler->place_room);
    struct program *program = compiler->program;
    if (compiler->result != 0 || program->instruction_count == INSTRUCTIONS_MAX) {
        (void)too_large(compiler);
        return NULL;
    }
    if (!grow(compiler, &program->instructions, program->instruction_count,
              &compiler->instruction_room, sizeof(*program->instructions))) {
        return NULL;
    }
    const uint32_t first = program->argument_count;
    for (uint32_t i = 0; i < argument_count; i++) {
        if (!grow(compiler, &program->arguments, program->argument_count, &compiler->argument_room,
                  sizeof(*program->arguments))) {
            return NULL;
        }
        program->arguments[program->argument_count++] = arguments[i];
    }
    struct instruction *instruction = &program->instructions[program->instruction_count++];
    *instruction = (struct instruction){
        .operation = operation,
        .selection = selection,
        .out = out,
        .argument_count = (uint16_t)argument_count,
        .arguments = first,
        .bytes = program->registers[out].value_bytes,
    };
    return instruction;
}

static uint16_t add_selection(struct compiler *compiler, uint16_t parent, enum select_rule rule,
                              uint16_t by)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(compiler->place_count <= compiler->place_room);
    struct program *program = compiler->program;
    if (program->selection_count == SELECTION_NOTHING) {
        (void)too_large(compiler);
        return 0;
    }
    if (!grow(compiler, &compiler->parents, program->selection_count, &compiler->parent_room,
              sizeof(uint16_t))) {
        return 0;
    }
    const uint16_t into = (uint16_t)program->selection_count++;
    compiler->parents[into] = parent;
    struct instruction *select = add_instruction(compiler, OPERATION_SELECT, parent, by, &by, 1);
    if (select != NULL) {
        select->rule = rule;
        select->select_into = into;
    }
    return into;
}

static bool is_within(const struct compiler *compiler, uint16_t selection, uint16_t ancestor)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    while (selection != ancestor && selection != SELECTION_ALL) {
        selection = compiler->parents[selection];
    }
    return selection == ancestor;
}

static uint16_t emit(struct compiler *compiler, uint32_t node_index, uint16_t selection);

static void move(struct compiler *compiler, uint16_t selection, uint16_t from, uint16_t into)
{
    ASSERT(compiler->program != NULL);
    (void)add_instruction(compiler, OPERATION_MOVE, selection, into, &from, 1);
}

static uint32_t child_of(const struct compiler *compiler, uint32_t node_index, uint32_t child)
{
    ASSERT(compiler->program != NULL);
    return compiler->children[compiler->nodes[node_index].first_child + child];
}

static uint16_t emit_kernel(struct compiler *compiler, uint32_t node_index, uint16_t selection)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(compiler->place_count <= compiler->place_room);
    uint16_t arguments[EXPR_ARGUMENTS_MAX];
    const struct expr *expr = compiler->nodes[node_index].expr;
    for (uint32_t i = 0; i < expr->argument_count; i++) {
        arguments[i] = emit(compiler, child_of(compiler, node_index, i), selection);
    }
    const uint16_t out = add_register(compiler, &expr->type);
    struct instruction *instruction = add_instruction(compiler, OPERATION_KERNEL, selection, out,
                                                      arguments, expr->argument_count);
    if (instruction != NULL) {
        instruction->choice = compiler->nodes[node_index].choice;
        instruction->memory = compiler->program->memory_bytes;
        compiler->program->memory_bytes += (instruction->choice.memory_bytes + 63) / 64 * 64;
    }
    return out;
}

/* AND or OR whose operands are all computed already, without branches. */
static uint16_t emit_logic_dense(struct compiler *compiler, enum expr_function function,
                                 const struct type *type, const uint16_t *operands, uint32_t count)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(compiler->place_count <= compiler->place_room);
    if (count == 1) {
        return operands[0];
    }
    const uint16_t out = add_register(compiler, type);
    struct instruction *instruction =
        add_instruction(compiler, OPERATION_KERNEL, SELECTION_ALL, out, operands, count);
    if (instruction != NULL) {
        instruction->choice = (struct kernel_choice){
            .function = function == EXPR_AND ? logic_and : logic_or, .mode = KERNEL_RAW};
    }
    return out;
}

/* Operands from the left: those that are safe up to the first that is not are merged for all rows,
 * the others are computed where the outcome is still open. */
static uint16_t emit_logic(struct compiler *compiler, uint32_t node_index, uint16_t selection)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(compiler->place_count <= compiler->place_room);
    uint16_t operands[EXPR_ARGUMENTS_MAX];
    const struct expr *expr = compiler->nodes[node_index].expr;
    const bool is_and = expr->function == EXPR_AND;
    uint32_t safe = 0;
    while (safe < expr->argument_count &&
           compiler->nodes[child_of(compiler, node_index, safe)].safe) {
        operands[safe] = emit(compiler, child_of(compiler, node_index, safe), SELECTION_ALL);
        safe++;
    }
    if (safe == expr->argument_count) {
        return emit_logic_dense(compiler, expr->function, &expr->type, operands, safe);
    }
    const uint16_t out = add_register(compiler, &expr->type);
    uint32_t next = safe;
    if (safe > 0) {
        move(compiler, selection,
             emit_logic_dense(compiler, expr->function, &expr->type, operands, safe), out);
    } else {
        move(compiler, selection, emit(compiler, child_of(compiler, node_index, next++), selection),
             out);
    }
    for (; next < expr->argument_count; next++) {
        selection =
            add_selection(compiler, selection, is_and ? SELECT_NOT_FALSE : SELECT_NOT_TRUE, out);
        const uint16_t operand = emit(compiler, child_of(compiler, node_index, next), selection);
        (void)add_instruction(compiler, is_and ? OPERATION_AND_MERGE : OPERATION_OR_MERGE,
                              selection, out, &operand, 1);
    }
    return out;
}

static uint16_t emit_case_dense(struct compiler *compiler, uint32_t node_index)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(compiler->place_count <= compiler->place_room);
    const struct expr *expr = compiler->nodes[node_index].expr;
    const uint32_t last = expr->argument_count - 1;
    const uint16_t otherwise = emit(compiler, child_of(compiler, node_index, last), SELECTION_ALL);
    uint16_t pairs[EXPR_ARGUMENTS_MAX];
    for (uint32_t i = 0; i < last; i++) {
        pairs[i] = emit(compiler, child_of(compiler, node_index, i), SELECTION_ALL);
    }
    const uint16_t out = add_register(compiler, &expr->type);
    move(compiler, SELECTION_ALL, otherwise, out);
    for (uint32_t i = last; i >= 2; i -= 2) {
        (void)add_instruction(compiler, OPERATION_BLEND, SELECTION_ALL, out, &pairs[i - 2], 2);
    }
    return out;
}

static uint16_t emit_case(struct compiler *compiler, uint32_t node_index, uint16_t selection)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    const struct expr *expr = compiler->nodes[node_index].expr;
    ASSERT(expr->argument_count % 2 == 1);
    if (compiler->nodes[node_index].safe) {
        return emit_case_dense(compiler, node_index);
    }
    const uint16_t out = add_register(compiler, &expr->type);
    const uint32_t last = expr->argument_count - 1;
    for (uint32_t i = 0; i < last; i += 2) {
        const uint16_t condition = emit(compiler, child_of(compiler, node_index, i), selection);
        const uint16_t then = add_selection(compiler, selection, SELECT_TRUE, condition);
        move(compiler, then, emit(compiler, child_of(compiler, node_index, i + 1), then), out);
        selection = add_selection(compiler, selection, SELECT_NOT_TRUE, condition);
    }
    move(compiler, selection, emit(compiler, child_of(compiler, node_index, last), selection), out);
    return out;
}

static uint16_t emit_coalesce(struct compiler *compiler, uint32_t node_index, uint16_t selection)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(compiler->place_count <= compiler->place_room);
    const struct expr *expr = compiler->nodes[node_index].expr;
    const bool safe = compiler->nodes[node_index].safe;
    const uint16_t out = add_register(compiler, &expr->type);
    move(compiler, selection, emit(compiler, child_of(compiler, node_index, 0), selection), out);
    for (uint32_t i = 1; i < expr->argument_count; i++) {
        if (safe) {
            const uint16_t next = emit(compiler, child_of(compiler, node_index, i), SELECTION_ALL);
            (void)add_instruction(compiler, OPERATION_BLEND_NULL, SELECTION_ALL, out, &next, 1);
            continue;
        }
        selection = add_selection(compiler, selection, SELECT_NULL, out);
        move(compiler, selection, emit(compiler, child_of(compiler, node_index, i), selection),
             out);
    }
    return out;
}

static uint16_t emit_literal(struct compiler *compiler, const struct expr *expr)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(compiler->place_count <= compiler->place_room);
    ASSERT(expr->kind <= EXPR_CALL);
    struct program *program = compiler->program;
    const size_t values = program->value_bytes;
    const uint16_t out = add_register(compiler, &expr->type);
    if (compiler->result != 0) {
        return 0;
    }
    struct program_register *into = &program->registers[out];
    program->value_bytes = values; /* it stands in the program, not in states */
    into->literal = true;
    into->null_literal = expr->literal.is_null;
    into->offset = program->literal_bytes;
    const size_t bytes = (size_t)into->value_bytes * PARCEL_ROWS_MAX;
    const size_t total = program->literal_bytes + bytes;
    uint8_t *literals = aligned_alloc(LITERAL_ALIGNMENT, (total + 63) / 64 * 64);
    if (literals == NULL) {
        compiler->result = error_set(compiler->error, -ENOMEM, "out of memory for an expression");
        return 0;
    }
    if (program->literal_bytes != 0) {
        memcpy(literals, program->literals, program->literal_bytes);
    }
    free(program->literals);
    for (uint32_t i = 0; i < PARCEL_ROWS_MAX; i++) {
        uint8_t *value = literals + into->offset + (size_t)i * into->value_bytes;
        memset(value, 0, into->value_bytes);
        if (!expr->literal.is_null) {
            memcpy(value, &expr->literal.i64, into->value_bytes);
        }
    }
    program->literals = literals;
    program->literal_bytes = total;
    return out;
}

static uint16_t emit_new(struct compiler *compiler, uint32_t node_index, uint16_t selection)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(compiler->place_count <= compiler->place_room);
    const struct expr *expr = compiler->nodes[node_index].expr;
    if (expr->kind == EXPR_LITERAL) {
        return emit_literal(compiler, expr);
    }
    if (expr->kind == EXPR_COLUMN) {
        const uint16_t out = add_register(compiler, &expr->type);
        struct instruction *load =
            add_instruction(compiler, OPERATION_LOAD, SELECTION_ALL, out, NULL, 0);
        if (load != NULL) {
            load->column = expr->column;
            load->text = type_is_text(&expr->type);
        }
        return out;
    }
    switch (expr->function) {
    case EXPR_AND:
    case EXPR_OR:
        return emit_logic(compiler, node_index, selection);
    case EXPR_CASE:
        return emit_case(compiler, node_index, selection);
    case EXPR_COALESCE:
        return emit_coalesce(compiler, node_index, selection);
    default:
        return emit_kernel(compiler, node_index, selection);
    }
}

/* Emits what computes a node for the rows of a selection, unless that was done.
 * returns  its register; anything after a failure */
static uint16_t emit(struct compiler *compiler, uint32_t node_index, uint16_t selection)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(compiler->place_count <= compiler->place_room);
    if (compiler->result != 0) {
        return 0;
    }
    if (compiler->nodes[node_index].safe) {
        selection = SELECTION_ALL;
    }
    for (uint32_t i = 0; i < compiler->place_count; i++) {
        const struct place *place = &compiler->places[i];
        if (place->node == node_index && is_within(compiler, selection, place->selection)) {
            return place->out;
        }
    }
    const uint16_t out = emit_new(compiler, node_index, selection);
    if (compiler->result == 0 && grow(compiler, &compiler->places, compiler->place_count,
                                      &compiler->place_room, sizeof(struct place))) {
        compiler->places[compiler->place_count++] =
            (struct place){.node = node_index, .selection = selection, .out = out};
    }
    return out;
}

static void compile_outputs(struct compiler *compiler, const struct program_config *config)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(config != NULL);
    struct program *program = compiler->program;
    program->outputs = calloc(config->output_count + 1, sizeof(*program->outputs));
    if (program->outputs == NULL ||
        !grow(compiler, &compiler->parents, 0, &compiler->parent_room, sizeof(uint16_t))) {
        compiler->result = error_set(compiler->error, -ENOMEM, "out of memory for an expression");
        return;
    }
    program->selection_count = 1;
    program->output_count = config->output_count;
    for (uint32_t i = 0; i < config->output_count && compiler->result == 0; i++) {
        const uint32_t node = analyse(compiler, config->outputs[i], 0);
        if (node != NO_NODE) {
            program->outputs[i] = emit(compiler, node, SELECTION_ALL);
        }
    }
}

/* Hands the kernels' constants over to the program, or frees them after a failure. */
static int take_constants(struct compiler *compiler)
{
    ASSERT(compiler->program != NULL);
    ASSERT(compiler->node_count <= compiler->node_room);
    ASSERT(compiler->place_count <= compiler->place_room);
    struct program *program = compiler->program;
    program->constants = calloc(compiler->node_count + 1, sizeof(*program->constants));
    for (uint32_t i = 0; i < compiler->node_count; i++) {
        const struct kernel_choice *choice = &compiler->nodes[i].choice;
        if (choice->constant == NULL || choice->constant_destroy == NULL) {
            continue;
        }
        if (program->constants == NULL) {
            choice->constant_destroy(choice->constant);
        } else {
            program->constants[program->constant_count++] = (struct program_constant){
                .constant = choice->constant, .destroy = choice->constant_destroy};
        }
    }
    return program->constants == NULL ? -ENOMEM : 0;
}

int program_compile(const struct program_config *config, struct program **out, struct error *error)
{
    ASSERT(config != NULL && out != NULL);
    ASSERT(config->output_count == 0 || config->outputs != NULL);
    *out = NULL;
    struct program *program = calloc(1, sizeof(*program));
    if (program == NULL) {
        return error_set(error, -ENOMEM, "out of memory for an expression");
    }
    program->layout = config->layout;
    program->scratch_bytes =
        config->scratch_bytes != 0 ? config->scratch_bytes : PROGRAM_SCRATCH_BYTES_DEFAULT;
    struct compiler compiler = {.program = program, .time_zone = config->time_zone, .error = error};
    compile_outputs(&compiler, config);
    if (take_constants(&compiler) != 0 && compiler.result == 0) {
        compiler.result = error_set(error, -ENOMEM, "out of memory for an expression");
    }
    free(compiler.nodes);
    free(compiler.children);
    free(compiler.places);
    free(compiler.parents);
    if (compiler.result != 0) {
        program_destroy(program);
        return compiler.result;
    }
    *out = program;
    return 0;
}

void program_destroy(struct program *program)
{
    if (program == NULL) {
        return;
    }
    for (uint32_t i = 0; i < program->constant_count; i++) {
        program->constants[i].destroy(program->constants[i].constant);
    }
    free(program->constants);
    free(program->instructions);
    free(program->registers);
    free(program->arguments);
    free(program->outputs);
    free(program->literals);
    free(program);
}
