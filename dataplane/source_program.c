/* SPDX-License-Identifier: Apache-2.0 */
/* Restating the watermark expression over the decoded row and compiling the lot. */
#include "dataplane/source_program.h"

#include <errno.h>
#include <stdlib.h>

struct source_program {
    struct program *program;
    struct program_state *state;
    const struct expr **outputs;
    struct memory_block *blocks; /* of the restated expression */
};

struct memory_block {
    struct memory_block *next;
    max_align_t data[];
};

static void *take(struct source_program *program, size_t bytes)
{
    struct memory_block *block = calloc(1, sizeof(*block) + bytes);
    if (block == NULL) {
        return NULL;
    }
    block->next = program->blocks;
    program->blocks = block;
    return block->data;
}

/* Rewrites one tree; NULL when memory is short or the tree is deeper than the binder allows. */
static const struct expr *restate(struct source_program *program, const struct plan_source *source,
                                  const struct expr *from, uint32_t depth)
{
    if (depth > EXPR_DEPTH_MAX || from->kind == EXPR_LITERAL) {
        return depth > EXPR_DEPTH_MAX ? NULL : from;
    }
    if (from->kind == EXPR_COLUMN) {
        const uint32_t pick = source->column_picks[from->column];
        if (pick >= source->field_count) {
            ASSERT(pick - source->field_count < source->computed_count);
            return source->computed[pick - source->field_count];
        }
        struct expr *column = take(program, sizeof(*column));
        if (column != NULL) {
            *column = *from;
            column->column = pick;
        }
        return column;
    }
    struct expr *call = take(program, sizeof(*call));
    const struct expr **arguments = take(program, (from->argument_count + 1) * sizeof(*arguments));
    if (call == NULL || arguments == NULL) {
        return NULL;
    }
    *call = *from;
    call->arguments = arguments;
    for (uint32_t i = 0; i < from->argument_count; i++) {
        arguments[i] = restate(program, source, from->arguments[i], depth + 1);
        if (arguments[i] == NULL) {
            return NULL;
        }
    }
    return call;
}

static int fill_outputs(struct source_program *program, const struct plan_source *source,
                        uint32_t count, struct error *error)
{
    ASSERT(program != NULL);
    program->outputs = calloc(count, sizeof(*program->outputs));
    if (program->outputs == NULL) {
        return error_set(error, -ENOMEM, "out of memory for a source's expressions");
    }
    for (uint32_t i = 0; i < source->computed_count; i++) {
        program->outputs[i] = source->computed[i];
    }
    if (source->watermark != NULL) {
        program->outputs[count - 1] = restate(program, source, source->watermark, 0);
        if (program->outputs[count - 1] == NULL) {
            return error_set(error, -ENOMEM, "out of memory for a watermark expression");
        }
    }
    return 0;
}

int source_program_create(const struct plan_node *node, const char *time_zone,
                          struct source_program **out, struct error *error)
{
    ASSERT(node != NULL);
    ASSERT(out != NULL);
    ASSERT(node->operator== PLAN_SOURCE);
    const struct plan_source *source = &node->source;
    const uint32_t count = source->computed_count + (source->watermark != NULL ? 1 : 0);
    *out = NULL;
    if (count == 0) {
        return 0;
    }
    struct source_program *program = calloc(1, sizeof(*program));
    if (program == NULL) {
        return error_set(error, -ENOMEM, "out of memory for a source's expressions");
    }
    int code = fill_outputs(program, source, count, error);
    if (code == 0) {
        const struct program_config config = {
            .layout = &source->decoded,
            .outputs = program->outputs,
            .output_count = count,
            .time_zone = time_zone,
        };
        code = program_compile(&config, &program->program, error);
    }
    if (code == 0) {
        code = program_state_create(program->program, &program->state, error);
    }
    if (code != 0) {
        source_program_destroy(program);
        return code;
    }
    *out = program;
    return 0;
}

void source_program_destroy(struct source_program *program)
{
    if (program == NULL) {
        return;
    }
    program_state_destroy(program->state);
    program_destroy(program->program);
    while (program->blocks != NULL) {
        struct memory_block *block = program->blocks;
        program->blocks = block->next;
        free(block);
    }
    free(program->outputs);
    free(program);
}

struct program_state *source_program_state(struct source_program *program)
{
    return program->state;
}
