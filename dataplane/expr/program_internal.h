/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled form of expressions, shared by program.c (running) and compile.c (making).
 *
 * A program is a flat list of instructions over registers, each a vector of PARCEL_ROWS_MAX values.
 * Every instruction runs under a selection: selection 0 is all rows, the others are lists of rows
 * made by SELECT instructions for the branches of AND, OR, CASE and COALESCE.
 *
 *  1. A register is written by one instruction, except that MOVEs of one CASE share theirs; under
 *     the selection of its instruction every row of it is then defined.
 *  2. A selection is a subset of its parent; parents have lower numbers.
 *  3. Values computed under a selection may be read under it and under its descendants only. */
#pragma once

#include "base.h"
#include "dataplane/expr/kernel_internal.h"

#define SELECTION_ALL     0
#define INSTRUCTIONS_MAX  UINT16_MAX
#define SELECTION_NOTHING UINT16_MAX

enum operation {
    OPERATION_LOAD = 0, /* a column of the rows into out */
    OPERATION_KERNEL,
    OPERATION_SELECT,     /* rows of selection by their flag in arguments[0], into select_into */
    OPERATION_MOVE,       /* arguments[0] to out, under selection */
    OPERATION_AND_MERGE,  /* out = out AND arguments[0], under selection */
    OPERATION_OR_MERGE,   /* out = out OR arguments[0], under selection */
    OPERATION_BLEND,      /* out = arguments[0] is TRUE ? arguments[1] : out, all rows */
    OPERATION_BLEND_NULL, /* out = out is NULL ? arguments[0] : out, all rows */
};

enum select_rule {
    SELECT_TRUE = 0,
    SELECT_NOT_TRUE,  /* FALSE or NULL */
    SELECT_NOT_FALSE, /* TRUE or NULL */
    SELECT_NULL,
};

struct instruction {
    enum operation operation;
    enum select_rule rule;
    uint16_t selection;
    uint16_t select_into;
    uint16_t out;
    uint16_t argument_count;
    uint32_t arguments; /* first index into program->arguments, registers */
    uint32_t memory;    /* offset of the kernel's memory in the state */
    uint32_t column;    /* LOAD */
    bool text;          /* LOAD: a text column */
    uint8_t bytes;      /* of a value in out */
    struct kernel_choice choice;
};

struct program_register {
    struct type type;
    uint8_t value_bytes;
    bool literal; /* values stand in the program, the same for every row */
    bool null_literal;
    size_t offset; /* of the values: in the state, or in literals */
};

/* What a kernel prepared at compile time. */
struct program_constant {
    void *constant;
    void (*destroy)(void *constant);
};

struct program {
    const struct row_layout *layout;
    struct instruction *instructions;
    struct program_register *registers;
    uint16_t *arguments;
    uint16_t *outputs; /* registers, output_count of them */
    uint8_t *literals; /* values, then null flags, of literal registers */
    struct program_constant *constants;
    uint32_t constant_count;
    uint32_t instruction_count;
    uint32_t register_count;
    uint32_t selection_count;
    uint32_t output_count;
    uint32_t argument_count;
    uint32_t scratch_bytes;
    uint32_t memory_bytes;
    size_t value_bytes; /* of all registers that are not literals */
    size_t literal_bytes;
};

/* Tells how many bytes a value of the type takes in a vector: 4, 8 or 16. */
uint32_t vector_value_bytes(const struct type *type);
