/* SPDX-License-Identifier: Apache-2.0 */
/* Typing of text functions: lengths of CHAR and VARCHAR results as Flink derives them. */
#include <errno.h>

#include "control/sql/functions_internal.h"

static int need_text(struct binding *binding)
{
    ASSERT(binding->call != NULL);
    const struct type string = type_varchar(TYPE_LENGTH_MAX, true);
    for (uint32_t i = 0; i < binding->count; i++) {
        const struct expr *argument = binding->arguments[i];
        if (argument->type.kind == TYPE_NULL) {
            binding->arguments[i] = make_cast(binding, argument, &string);
        } else if (!type_is_characters(&argument->type)) {
            return binding_mismatch(binding);
        }
    }
    return 0;
}

static uint32_t add_lengths(uint32_t a, uint32_t b)
{
    return a > TYPE_LENGTH_MAX - b ? TYPE_LENGTH_MAX : a + b;
}

/* ||: CHAR of the sum when all are CHAR, else VARCHAR. */
static int bind_concat_operator(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    const int result = need_text(binding);
    if (result != 0 || binding->count < 2) {
        return result != 0 ? result : binding_mismatch(binding);
    }
    struct type type = binding->arguments[0]->type;
    for (uint32_t i = 1; i < binding->count; i++) {
        const struct type *next = &binding->arguments[i]->type;
        type.length = add_lengths(type.length, next->length);
        type.kind = next->kind == TYPE_VARCHAR ? TYPE_VARCHAR : type.kind;
    }
    if (type.length == TYPE_LENGTH_MAX) {
        type.kind = TYPE_VARCHAR;
    }
    type.nullable = binding_nullable(binding);
    *out = make_call(binding, EXPR_CONCAT, type);
    return 0;
}

/* TRIM and its one-sided forms; the characters default to a blank. */
static int bind_trim(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    const struct expr *parts[3];
    const char *side = "BOTH";
    const bool is_trim = strcmp(binding->entry->name, "TRIM") == 0;
    if (strcmp(binding->entry->name, "LTRIM") == 0) {
        side = "LEADING";
    } else if (strcmp(binding->entry->name, "RTRIM") == 0) {
        side = "TRAILING";
    }
    const int result = need_text(binding);
    if (result != 0) {
        return result;
    }
    if (is_trim && binding->count == 3) {
        memcpy(parts, binding->arguments, sizeof(parts));
    } else if (binding->count == 1 || (!is_trim && binding->count == 2)) {
        parts[0] = make_text(binding, side);
        parts[1] = binding->count == 2 ? binding->arguments[1] : make_text(binding, " ");
        parts[2] = binding->arguments[0];
    } else {
        return binding_mismatch(binding);
    }
    const struct type type =
        type_varchar(parts[2]->type.length, parts[1]->type.nullable || parts[2]->type.nullable);
    *out = make_call_of(binding, EXPR_TRIM, type, parts, 3);
    return 0;
}

/* UPPER, LOWER, INITCAP keep the type, CHAR too. */
static int bind_case_mapping(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    const int result = need_text(binding);
    if (result != 0 || binding->count != 1) {
        return result != 0 ? result : binding_mismatch(binding);
    }
    *out = make_call(binding, binding->entry->function, binding->arguments[0]->type);
    return 0;
}

static int bind_overlay(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    if (binding->count < 3 || binding->count > 4 ||
        !type_is_characters(&binding->arguments[0]->type) ||
        !type_is_characters(&binding->arguments[1]->type)) {
        return binding_mismatch(binding);
    }
    const struct type to = type_of_kind(TYPE_INT, true);
    for (uint32_t i = 2; i < binding->count; i++) {
        if (!type_is_integer(&binding->arguments[i]->type)) {
            return binding_mismatch(binding);
        }
        binding->arguments[i] = make_cast(binding, binding->arguments[i], &to);
    }
    const uint32_t length =
        add_lengths(binding->arguments[0]->type.length, binding->arguments[1]->type.length);
    *out = make_call(binding, EXPR_OVERLAY, type_varchar(length, binding_nullable(binding)));
    return 0;
}

/* INSTR(text, find) is LOCATE with its arguments turned. */
static int bind_instr(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    const int result = need_text(binding);
    if (result != 0 || binding->count != 2) {
        return result != 0 ? result : binding_mismatch(binding);
    }
    const struct expr *parts[2] = {binding->arguments[1], binding->arguments[0]};
    *out = make_call_of(binding, EXPR_POSITION, type_of_kind(TYPE_INT, binding_nullable(binding)),
                        parts, 2);
    return 0;
}

/* SPLIT_INDEX(text, separator, index): a number as separator is a character's code. */
static int bind_split_index(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    if (binding->count != 3 || !type_is_integer(&binding->arguments[2]->type) ||
        !type_is_characters(&binding->arguments[0]->type)) {
        return binding_mismatch(binding);
    }
    const struct type *separator = &binding->arguments[1]->type;
    const struct type to = type_of_kind(TYPE_INT, true);
    if (type_is_integer(separator)) {
        struct binding chr = *binding;
        chr.count = 1;
        chr.arguments[0] = make_cast(binding, binding->arguments[1], &to);
        binding->arguments[1] = make_call(&chr, EXPR_CHR, type_varchar(1, separator->nullable));
    } else if (!type_is_characters(separator)) {
        return binding_mismatch(binding);
    }
    binding->arguments[2] = make_cast(binding, binding->arguments[2], &to);
    *out = make_call(binding, EXPR_SPLIT_INDEX, type_varchar(TYPE_LENGTH_MAX, true));
    return 0;
}

/* Digests are CHAR of their hexadecimal length. */
static int bind_digest(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    static const struct {
        enum expr_function function;
        int64_t bits;
        uint32_t length;
    } digests[] = {{EXPR_MD5, 0, 32},      {EXPR_SHA1, 0, 40},     {EXPR_SHA224, 224, 56},
                   {EXPR_SHA256, 256, 64}, {EXPR_SHA384, 384, 96}, {EXPR_SHA512, 512, 128}};
    enum expr_function function = binding->entry->function;
    int64_t bits = 0;
    const bool sha2 = strcmp(binding->entry->name, "SHA2") == 0;
    if (binding->count != (sha2 ? 2 : 1) || !type_is_characters(&binding->arguments[0]->type) ||
        (sha2 && !binding_constant(binding, 1, &bits))) {
        return binding_mismatch(binding);
    }
    for (size_t i = 0; i < COUNT_OF(digests); i++) {
        if (sha2 ? digests[i].bits == bits : digests[i].function == function) {
            const struct type type = {.kind = sha2 ? TYPE_VARCHAR : TYPE_CHAR,
                                      .length = sha2 ? 128 : digests[i].length,
                                      .nullable = binding->arguments[0]->type.nullable};
            *out = make_call_of(binding, digests[i].function, type, binding->arguments, 1);
            return 0;
        }
    }
    return binding_mismatch(binding);
}

/* HEX of a number shows 64 bits, of text its bytes. */
static int bind_hex(struct binding *binding, const struct expr **out)
{
    ASSERT(binding->call != NULL);
    ASSERT(out != NULL);
    if (binding->count != 1) {
        return binding_mismatch(binding);
    }
    const struct type *type = &binding->arguments[0]->type;
    if (!type_is_integer(type) && !type_is_characters(type)) {
        return binding_mismatch(binding);
    }
    *out = make_call(binding, EXPR_HEX, type_varchar(TYPE_LENGTH_MAX, type->nullable));
    return 0;
}

const struct function_entry functions_text[] = {
    {"||", EXPR_CONCAT, NULL, NULL, bind_concat_operator},
    {"CONCAT", EXPR_CONCAT, "s*", "S", NULL},
    {"CONCAT_WS", EXPR_CONCAT_WS, "s*", "S", NULL},
    {"CHAR_LENGTH", EXPR_CHAR_LENGTH, "s", "I", NULL},
    {"CHARACTER_LENGTH", EXPR_CHAR_LENGTH, "s", "I", NULL},
    {"UPPER", EXPR_UPPER, NULL, NULL, bind_case_mapping},
    {"LOWER", EXPR_LOWER, NULL, NULL, bind_case_mapping},
    {"INITCAP", EXPR_INITCAP, NULL, NULL, bind_case_mapping},
    {"REVERSE", EXPR_REVERSE, "s", "S", NULL},
    {"SUBSTRING", EXPR_SUBSTRING, "si?i", "V", NULL},
    {"SUBSTR", EXPR_SUBSTRING, "si?i", "V", NULL},
    {"LEFT", EXPR_LEFT, "si", "V", NULL},
    {"RIGHT", EXPR_RIGHT, "si", "V", NULL},
    {"TRIM", EXPR_TRIM, NULL, NULL, bind_trim},
    {"BTRIM", EXPR_TRIM, NULL, NULL, bind_trim},
    {"LTRIM", EXPR_TRIM, NULL, NULL, bind_trim},
    {"RTRIM", EXPR_TRIM, NULL, NULL, bind_trim},
    {"LPAD", EXPR_LPAD, "sis", "S?", NULL},
    {"RPAD", EXPR_RPAD, "sis", "S?", NULL},
    {"REPEAT", EXPR_REPEAT, "si", "S", NULL},
    {"REPLACE", EXPR_REPLACE, "sss", "S", NULL},
    {"TRANSLATE", EXPR_TRANSLATE, "sss", "S?", NULL},
    {"OVERLAY", EXPR_OVERLAY, NULL, NULL, bind_overlay},
    {"POSITION", EXPR_POSITION, "ss", "I", NULL},
    {"LOCATE", EXPR_LOCATE, "ss?i", "I", NULL},
    {"INSTR", EXPR_POSITION, NULL, NULL, bind_instr},
    {"ASCII", EXPR_ASCII, "s", "I", NULL},
    {"CHR", EXPR_CHR, "l", "S", NULL},
    {"ELT", EXPR_ELT, "is*", "S?", NULL},
    {"SPLIT_INDEX", EXPR_SPLIT_INDEX, NULL, NULL, bind_split_index},
    {"STARTSWITH", EXPR_STARTSWITH, "ss", "B", NULL},
    {"ENDSWITH", EXPR_ENDSWITH, "ss", "B", NULL},
    {"IS_ALPHA", EXPR_IS_ALPHA, "s", "B!", NULL},
    {"IS_DIGIT", EXPR_IS_DIGIT, "s", "B!", NULL},
    {"IS_DECIMAL", EXPR_IS_DECIMAL, "a", "B!", NULL},
    {"TO_BASE64", EXPR_TO_BASE64, "s", "S", NULL},
    {"FROM_BASE64", EXPR_FROM_BASE64, "s", "S?", NULL},
    {"BIN", EXPR_BIN, "l", "S", NULL},
    {"HEX", EXPR_HEX, NULL, NULL, bind_hex},
    {"UNHEX", EXPR_UNHEX, "s", "Y?", NULL},
    {"MD5", EXPR_MD5, NULL, NULL, bind_digest},
    {"SHA1", EXPR_SHA1, NULL, NULL, bind_digest},
    {"SHA224", EXPR_SHA224, NULL, NULL, bind_digest},
    {"SHA256", EXPR_SHA256, NULL, NULL, bind_digest},
    {"SHA384", EXPR_SHA384, NULL, NULL, bind_digest},
    {"SHA512", EXPR_SHA512, NULL, NULL, bind_digest},
    {"SHA2", EXPR_SHA256, NULL, NULL, bind_digest},
    {"URL_ENCODE", EXPR_URL_ENCODE, "s", "S?", NULL},
    {"URL_DECODE", EXPR_URL_DECODE, "s", "S?", NULL},
    {"PARSE_URL", EXPR_PARSE_URL, "ss?s", "S?", NULL},
    {"LIKE", EXPR_LIKE, "ss?s", "B", NULL},
    {"SIMILAR TO", EXPR_SIMILAR, "ss?s", "B", NULL},
    {"REGEXP", EXPR_REGEXP, "ss", "B", NULL},
    {"SIMILAR", EXPR_SIMILAR, "ss?s", "B", NULL},
    {"REGEXP_EXTRACT", EXPR_REGEXP_EXTRACT, "ss?i", "S?", NULL},
    {"REGEXP_REPLACE", EXPR_REGEXP_REPLACE, "sss", "S?", NULL},
    {"REGEXP_COUNT", EXPR_REGEXP_COUNT, "ss", "I?", NULL},
    {"REGEXP_INSTR", EXPR_REGEXP_INSTR, "ss", "I?", NULL},
    {"REGEXP_SUBSTR", EXPR_REGEXP_SUBSTR, "ss", "S?", NULL},
    {.name = NULL},
};
