/* SPDX-License-Identifier: Apache-2.0 */
/* Running of programs: one instruction at a time over all chosen rows. See program_internal.h for
 * the instructions and compile.c for how they come about. */
#include "dataplane/expr/program.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/expr/program_internal.h"

#define ALIGNMENT 64

/* Rows chosen for a branch. */
struct selection {
    uint32_t count;
    bool dense; /* all rows of the run: index is not used */
    uint16_t index[PARCEL_ROWS_MAX];
};

struct program_state {
    const struct program *program;
    struct vector *vectors; /* one a register */
    bool *has_null;         /* one a register: some flag may be set */
    struct selection *selections;
    uint8_t *values;
    uint8_t *nulls;
    uint8_t *memory; /* of kernels */
    struct scratch scratch;
    struct kernel_failure failure;
    uint16_t without_null[PARCEL_ROWS_MAX];
    const struct vector *in[KERNEL_ARGUMENTS_MAX];
};

void kernel_fail(struct kernel_run *run, uint32_t row, const char *format, ...)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(run->count <= PARCEL_ROWS_MAX);
    if (run->failure->failed || run->failure->scratch_full) {
        return;
    }
    run->failure->failed = true;
    run->failure->row = row;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(run->failure->reason, sizeof(run->failure->reason), format, arguments);
    va_end(arguments);
}

uint8_t *kernel_text(struct kernel_run *run, size_t bytes)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    struct scratch *scratch = run->scratch;
    if (bytes > scratch->bytes - scratch->used) {
        run->failure->scratch_full = true;
        return NULL;
    }
    uint8_t *out = scratch->data + scratch->used;
    scratch->used += (uint32_t)bytes;
    return out;
}

void program_state_destroy(struct program_state *state)
{
    if (state == NULL) {
        return;
    }
    const struct program *program = state->program;
    for (uint32_t i = 0; i < program->instruction_count && state->memory != NULL; i++) {
        const struct instruction *instruction = &program->instructions[i];
        if (instruction->choice.memory_fini != NULL) {
            instruction->choice.memory_fini(state->memory + instruction->memory);
        }
    }
    free(state->vectors);
    free(state->has_null);
    free(state->selections);
    free(state->values);
    free(state->nulls);
    free(state->memory);
    free(state->scratch.data);
    free(state);
}

static void *make_zeroed(size_t bytes)
{
    const size_t rounded = (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    void *memory = aligned_alloc(ALIGNMENT, rounded);
    if (memory != NULL) {
        memset(memory, 0, rounded);
    }
    return memory;
}

/* Points each register's vector at its values and flags. */
static void lay_vectors(struct program_state *state)
{
    ASSERT_SLOW(state->program != NULL);
    ASSERT_SLOW(state->scratch.used <= state->scratch.bytes);
    const struct program *program = state->program;
    for (uint32_t i = 0; i < program->register_count; i++) {
        const struct program_register *from = &program->registers[i];
        struct vector *vector = &state->vectors[i];
        vector->type = from->type;
        vector->null = state->nulls + (size_t)i * PARCEL_ROWS_MAX;
        vector->i64 = (int64_t *)(void *)(state->values + from->offset);
        if (!from->literal) {
            continue;
        }
        vector->i64 = (int64_t *)(void *)(program->literals + from->offset);
        if (from->null_literal) {
            memset(vector->null, VECTOR_NULL, PARCEL_ROWS_MAX);
            state->has_null[i] = true;
        }
    }
}

static int init_kernels(struct program_state *state, struct error *error)
{
    ASSERT_SLOW(state != NULL);
    const struct program *program = state->program;
    for (uint32_t i = 0; i < program->instruction_count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        const struct kernel_choice *choice = &instruction->choice;
        if (choice->memory_init != NULL &&
            choice->memory_init(choice->constant, state->memory + instruction->memory) != 0) {
            return error_set(error, -ENOMEM, "out of memory for an expression's state");
        }
    }
    return 0;
}

int program_state_create(const struct program *program, struct program_state **out,
                         struct error *error)
{
    ASSERT(program != NULL && out != NULL);
    *out = NULL;
    struct program_state *state = calloc(1, sizeof(*state));
    if (state == NULL) {
        return error_set(error, -ENOMEM, "out of memory for an expression's state");
    }
    state->program = program;
    state->vectors = calloc(program->register_count + 1, sizeof(*state->vectors));
    state->has_null = calloc(program->register_count + 1, sizeof(*state->has_null));
    state->selections = calloc(program->selection_count, sizeof(*state->selections));
    state->values = make_zeroed(program->value_bytes);
    state->nulls = make_zeroed((size_t)program->register_count * PARCEL_ROWS_MAX);
    state->memory = make_zeroed(program->memory_bytes);
    state->scratch.bytes = program->scratch_bytes;
    state->scratch.data = make_zeroed(program->scratch_bytes);
    int result = 0;
    if (state->vectors == NULL || state->has_null == NULL || state->selections == NULL ||
        state->values == NULL || state->nulls == NULL || state->memory == NULL ||
        state->scratch.data == NULL) {
        result = error_set(error, -ENOMEM, "out of memory for an expression's state");
    } else {
        lay_vectors(state);
        result = init_kernels(state, error);
    }
    if (result != 0) {
        program_state_destroy(state);
        return result;
    }
    *out = state;
    return 0;
}

/* Reads a column's null flags.
 * returns  whether any is set */
static bool load_nulls(const struct row *const *rows, uint32_t count, uint32_t column,
                       uint8_t *restrict null)
{
    const uint32_t word = column >> 6;
    const uint32_t bit = column & 63;
    uint8_t any = 0;
    for (uint32_t i = 0; i < count; i++) {
        null[i] = (uint8_t)(rows[i]->words[word] >> bit & 1);
        any |= null[i];
    }
    return any != 0;
}

static void load_words(const struct row *const *rows, uint32_t count, uint32_t slot,
                       uint64_t *restrict out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] = rows[i]->words[slot];
    }
}

static void load_floats(const struct row *const *rows, uint32_t count, uint32_t slot,
                        uint32_t *restrict out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] = (uint32_t)rows[i]->words[slot];
    }
}

static void load_pairs(const struct row *const *rows, uint32_t count, uint32_t slot,
                       uint64_t *restrict out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[2 * i] = rows[i]->words[slot];
        out[2 * i + 1] = rows[i]->words[slot + 1];
    }
}

static void load_texts(const struct row *const *rows, uint32_t count, uint32_t slot,
                       struct span *restrict out)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t word = rows[i]->words[slot];
        out[i] =
            (struct span){.data = (const uint8_t *)rows[i] + (uint32_t)word, .bytes = word >> 32};
    }
}

static void run_load(struct program_state *state, const struct instruction *instruction,
                     const struct row *const *rows, uint32_t count)
{
    ASSERT(state != NULL);
    ASSERT(instruction != NULL);
    const struct vector *out = &state->vectors[instruction->out];
    const uint32_t slot = state->program->layout->slots[instruction->column];
    if (load_nulls(rows, count, instruction->column, out->null)) {
        state->has_null[instruction->out] = true;
    }
    if (instruction->text) {
        load_texts(rows, count, slot, out->text);
    } else if (instruction->bytes == 16) {
        load_pairs(rows, count, slot, (uint64_t *)(void *)out->i64);
    } else if (instruction->bytes == 8) {
        load_words(rows, count, slot, (uint64_t *)(void *)out->i64);
    } else {
        load_floats(rows, count, slot, (uint32_t *)(void *)out->f32);
    }
}

/* Merges null flags of an argument into the result's. */
static void merge_nulls(const uint8_t *restrict in, uint8_t *restrict out, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] |= in[i];
    }
}

/* A NULL that IS NULL sees hides the hidden one; elsewhere than in decimals all are seen. */
static void settle_nulls(uint8_t *null, uint32_t count, bool keep_hidden)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t seen = keep_hidden ? null[i] & VECTOR_NULL : null[i] != 0;
        null[i] = seen ? VECTOR_NULL : null[i];
    }
}

/* Sets out's flags from its arguments'. Rows that are not chosen get flags too, which is harmless:
 * nobody reads them before they are written (invariants 1 and 3).
 * returns  whether any argument may be NULL */
static bool propagate_nulls(struct program_state *state, const struct instruction *instruction,
                            uint32_t row_count)
{
    ASSERT_SLOW(state->program != NULL);
    ASSERT_SLOW(state->scratch.used <= state->scratch.bytes);
    ASSERT_SLOW(instruction != NULL);
    const uint16_t *arguments = state->program->arguments + instruction->arguments;
    uint8_t *out = state->vectors[instruction->out].null;
    bool any = false;
    for (uint32_t i = 0; i < instruction->argument_count; i++) {
        if (state->has_null[arguments[i]]) {
            merge_nulls(state->vectors[arguments[i]].null, out, row_count);
            any = true;
        }
    }
    if (any) {
        settle_nulls(out, row_count, instruction->choice.hides_null);
        state->has_null[instruction->out] = true;
    }
    return any;
}

/* Lists the chosen rows whose result is not NULL yet.
 * returns  how many */
static uint32_t choose_values(const struct selection *from, const uint8_t *null, uint16_t *into)
{
    ASSERT_SLOW(from != NULL);
    uint32_t count = 0;
    for (uint32_t k = 0; k < from->count; k++) {
        const uint16_t i = from->dense ? (uint16_t)k : from->index[k];
        into[count] = i;
        count += null[i] == 0 ? 1 : 0;
    }
    return count;
}

static void run_kernel(struct program_state *state, const struct instruction *instruction,
                       const struct program_context *context, uint32_t row_count)
{
    ASSERT(state->program != NULL);
    ASSERT(state->scratch.used <= state->scratch.bytes);
    ASSERT(instruction != NULL);
    const struct selection *selection = &state->selections[instruction->selection];
    const uint16_t *arguments = state->program->arguments + instruction->arguments;
    for (uint32_t i = 0; i < instruction->argument_count; i++) {
        state->in[i] = &state->vectors[arguments[i]];
    }
    struct kernel_run run = {
        .in = state->in,
        .in_count = instruction->argument_count,
        .out = &state->vectors[instruction->out],
        .index = selection->dense ? NULL : selection->index,
        .count = selection->count,
        .constant = instruction->choice.constant,
        .memory = state->memory + instruction->memory,
        .context = context,
        .scratch = &state->scratch,
        .failure = &state->failure,
    };
    if (instruction->choice.mode != KERNEL_RAW && propagate_nulls(state, instruction, row_count) &&
        instruction->choice.mode == KERNEL_STRICT) {
        run.count = choose_values(selection, run.out->null, state->without_null);
        run.index = state->without_null;
    }
    if (run.count != 0) {
        instruction->choice.function(&run);
    }
    if (run.out_null) {
        state->has_null[instruction->out] = true;
    }
}

static bool rule_holds(enum select_rule rule, int64_t value, uint8_t null)
{
    switch (rule) {
    case SELECT_TRUE:
        return null == 0 && value != 0;
    case SELECT_NOT_TRUE:
        return null != 0 || value == 0;
    case SELECT_NOT_FALSE:
        return null != 0 || value != 0;
    case SELECT_NULL:
        return null != 0;
    }
    return false;
}

static void run_select(struct program_state *state, const struct instruction *instruction,
                       uint32_t row_count)
{
    ASSERT_SLOW(state->program != NULL);
    ASSERT_SLOW(state->scratch.used <= state->scratch.bytes);
    ASSERT_SLOW(instruction != NULL);
    const struct selection *from = &state->selections[instruction->selection];
    struct selection *into = &state->selections[instruction->select_into];
    const struct vector *by = &state->vectors[state->program->arguments[instruction->arguments]];
    const bool by_null = instruction->rule == SELECT_NULL;
    uint32_t count = 0;
    for (uint32_t k = 0; k < from->count; k++) {
        const uint16_t i = from->dense ? (uint16_t)k : from->index[k];
        into->index[count] = i;
        count += rule_holds(instruction->rule, by_null ? 0 : by->i64[i], by->null[i]) ? 1 : 0;
    }
    into->count = count;
    into->dense = count == row_count;
}

static void copy_value(const struct vector *from, struct vector *into, uint32_t i, uint8_t bytes)
{
    if (bytes == 8) {
        into->i64[i] = from->i64[i];
    } else if (bytes == 16) {
        into->i128[i] = from->i128[i];
    } else {
        into->f32[i] = from->f32[i];
    }
}

static void run_move(struct program_state *state, const struct instruction *instruction)
{
    ASSERT_SLOW(state->program != NULL);
    ASSERT_SLOW(state->scratch.used <= state->scratch.bytes);
    ASSERT_SLOW(instruction != NULL);
    const struct selection *selection = &state->selections[instruction->selection];
    const uint16_t from_register = state->program->arguments[instruction->arguments];
    const struct vector *from = &state->vectors[from_register];
    struct vector *into = &state->vectors[instruction->out];
    for (uint32_t k = 0; k < selection->count; k++) {
        const uint32_t i = selection->dense ? k : selection->index[k];
        into->null[i] = from->null[i];
        copy_value(from, into, i, instruction->bytes);
    }
    state->has_null[instruction->out] |= state->has_null[from_register];
}

/* Merges one more operand of AND or OR into out. `wins` is the value that decides: FALSE for AND,
 * TRUE for OR. Out has not been decided where the selection runs. */
static void run_logic_merge(struct program_state *state, const struct instruction *instruction,
                            bool wins)
{
    ASSERT_SLOW(state->program != NULL);
    ASSERT_SLOW(state->scratch.used <= state->scratch.bytes);
    ASSERT_SLOW(instruction != NULL);
    const struct selection *selection = &state->selections[instruction->selection];
    const uint16_t from_register = state->program->arguments[instruction->arguments];
    const struct vector *from = &state->vectors[from_register];
    struct vector *into = &state->vectors[instruction->out];
    for (uint32_t k = 0; k < selection->count; k++) {
        const uint32_t i = selection->dense ? k : selection->index[k];
        const bool decided = from->null[i] == 0 && (from->i64[i] != 0) == wins;
        into->null[i] = decided ? 0 : (into->null[i] | from->null[i]) != 0;
        into->i64[i] = decided ? wins : !wins;
    }
    state->has_null[instruction->out] |= state->has_null[from_register];
}

static void blend_words(const int64_t *restrict condition, const uint8_t *restrict null,
                        const int64_t *restrict from, int64_t *restrict into, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const bool chosen = (condition[i] != 0) & (null[i] == 0);
        into[i] = chosen ? from[i] : into[i];
    }
}

static void blend_flags(const int64_t *restrict condition, const uint8_t *restrict null,
                        const uint8_t *restrict from, uint8_t *restrict into, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const bool chosen = (condition[i] != 0) & (null[i] == 0);
        into[i] = chosen ? from[i] : into[i];
    }
}

static void run_blend(struct program_state *state, const struct instruction *instruction,
                      uint32_t row_count)
{
    ASSERT_SLOW(state->program != NULL);
    ASSERT_SLOW(state->scratch.used <= state->scratch.bytes);
    ASSERT_SLOW(instruction != NULL);
    const uint16_t *arguments = state->program->arguments + instruction->arguments;
    const struct vector *condition = &state->vectors[arguments[0]];
    const struct vector *from = &state->vectors[arguments[1]];
    struct vector *into = &state->vectors[instruction->out];
    if (instruction->bytes == 8) {
        blend_words(condition->i64, condition->null, from->i64, into->i64, row_count);
    } else {
        for (uint32_t i = 0; i < row_count; i++) {
            if (condition->null[i] == 0 && condition->i64[i] != 0) {
                copy_value(from, into, i, instruction->bytes);
            }
        }
    }
    bool *has_null = state->has_null;
    if (has_null[instruction->out] || has_null[arguments[1]]) {
        blend_flags(condition->i64, condition->null, from->null, into->null, row_count);
        has_null[instruction->out] = true;
    }
}

static void run_blend_null(struct program_state *state, const struct instruction *instruction,
                           uint32_t row_count)
{
    ASSERT_SLOW(state->program != NULL);
    ASSERT_SLOW(state->scratch.used <= state->scratch.bytes);
    ASSERT_SLOW(instruction != NULL);
    if (!state->has_null[instruction->out]) {
        return;
    }
    const uint16_t from_register = state->program->arguments[instruction->arguments];
    const struct vector *from = &state->vectors[from_register];
    struct vector *into = &state->vectors[instruction->out];
    for (uint32_t i = 0; i < row_count; i++) {
        if (into->null[i] != 0) {
            into->null[i] = from->null[i];
            copy_value(from, into, i, instruction->bytes);
        }
    }
}

static void run_instruction(struct program_state *state, const struct instruction *instruction,
                            const struct program_context *context, const struct row *const *rows,
                            uint32_t row_count)
{
    ASSERT_SLOW(state->program != NULL);
    ASSERT_SLOW(state->scratch.used <= state->scratch.bytes);
    ASSERT_SLOW(instruction != NULL);
    switch (instruction->operation) {
    case OPERATION_LOAD:
        run_load(state, instruction, rows, row_count);
        break;
    case OPERATION_KERNEL:
        run_kernel(state, instruction, context, row_count);
        break;
    case OPERATION_SELECT:
        run_select(state, instruction, row_count);
        break;
    case OPERATION_MOVE:
        run_move(state, instruction);
        break;
    case OPERATION_AND_MERGE:
        run_logic_merge(state, instruction, false);
        break;
    case OPERATION_OR_MERGE:
        run_logic_merge(state, instruction, true);
        break;
    case OPERATION_BLEND:
        run_blend(state, instruction, row_count);
        break;
    case OPERATION_BLEND_NULL:
        run_blend_null(state, instruction, row_count);
        break;
    }
}

static void begin(struct program_state *state, uint32_t row_count)
{
    ASSERT_SLOW(state != NULL);
    const struct program *program = state->program;
    for (uint32_t i = 0; i < program->register_count; i++) {
        if (state->has_null[i] && !program->registers[i].literal) {
            memset(state->vectors[i].null, 0, PARCEL_ROWS_MAX);
            state->has_null[i] = false;
        }
    }
    state->selections[SELECTION_ALL].count = row_count;
    state->selections[SELECTION_ALL].dense = true;
    state->scratch.used = 0;
    state->failure.failed = false;
    state->failure.scratch_full = false;
}

enum program_verdict program_run(struct program_state *state, const struct program_context *context,
                                 const struct row *const *rows, uint32_t row_count)
{
    ASSERT_SLOW(state->program != NULL);
    ASSERT(row_count <= PARCEL_ROWS_MAX);
    ASSERT(rows != NULL || row_count == 0);
    const struct program *program = state->program;
    begin(state, row_count);
    for (uint32_t i = 0; i < program->instruction_count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        if (state->selections[instruction->selection].count == 0) {
            if (instruction->operation == OPERATION_SELECT) {
                state->selections[instruction->select_into].count = 0;
                state->selections[instruction->select_into].dense = false;
            }
            continue;
        }
        run_instruction(state, instruction, context, rows, row_count);
        if (UNLIKELY(state->failure.failed || state->failure.scratch_full)) {
            return state->failure.scratch_full ? PROGRAM_SCRATCH_FULL : PROGRAM_FAILED;
        }
    }
    return PROGRAM_OK;
}

const struct vector *program_result(const struct program_state *state, uint32_t output)
{
    ASSERT(output < state->program->output_count);
    return &state->vectors[state->program->outputs[output]];
}

uint32_t program_failure(const struct program_state *state,
                         char reason[static PROGRAM_REASON_BYTES])
{
    ASSERT(state->failure.failed);
    memcpy(reason, state->failure.reason, PROGRAM_REASON_BYTES);
    return state->failure.row;
}

bool program_store(const struct vector *vector, uint32_t index, struct row_writer *writer,
                   uint32_t column)
{
    ASSERT_SLOW(column < writer->layout->column_count);
    ASSERT_SLOW(writer->used <= writer->capacity);
    ASSERT(index < PARCEL_ROWS_MAX);
    if (vector->null[index] != VECTOR_VALUE) {
        return true;
    }
    if (type_is_text(&vector->type)) {
        return row_set_text(writer, column, vector->text[index]);
    }
    if (vector->type.kind == TYPE_FLOAT) {
        uint64_t slot = 0;
        memcpy(&slot, &vector->f32[index], sizeof(float));
        row_set(writer, column, &slot);
        return true;
    }
    if (vector_value_bytes(&vector->type) == 16) {
        row_set(writer, column, &vector->i128[index]);
    } else {
        row_set(writer, column, &vector->i64[index]);
    }
    return true;
}
