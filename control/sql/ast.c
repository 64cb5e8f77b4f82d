/* SPDX-License-Identifier: Apache-2.0 */
/* Makers of syntax nodes; see ast.h. Depth is kept up to date here, so that the parser can refuse
 * what is too deep before anyone recurses into it. */
#include "control/sql/ast.h"

#define LIST_CAPACITY_MIN 4

void ast_append(struct sql_memory *memory, struct ast_list *list, void *item)
{
    ASSERT(memory != NULL);
    ASSERT(item != NULL);
    ASSERT(list->count <= list->capacity);
    if (list->count == list->capacity) {
        const uint32_t capacity = list->capacity == 0 ? LIST_CAPACITY_MIN : 2 * list->capacity;
        void **items = sql_allocate(memory, capacity * sizeof(*items));
        if (list->count != 0) {
            memcpy(items, list->items, list->count * sizeof(*items));
        }
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = item;
}

struct ast_expr *ast_expr(struct sql_memory *memory, enum ast_kind kind, struct place at,
                          const char *text, size_t bytes)
{
    ASSERT(memory != NULL);
    ASSERT(bytes <= UINT32_MAX);
    struct ast_expr *node = sql_allocate(memory, sizeof(*node));
    node->kind = kind;
    node->at = at;
    node->text = text;
    node->bytes = (uint32_t)bytes;
    node->depth = 1;
    return node;
}

struct ast_expr *ast_call_list(struct sql_memory *memory, struct place at, const char *name,
                               const struct ast_list *arguments)
{
    ASSERT(memory != NULL);
    ASSERT(name != NULL);
    struct ast_expr *node = ast_expr(memory, AST_CALL, at, name, strlen(name));
    node->argument_count = arguments->count;
    node->arguments = sql_allocate(memory, arguments->count * sizeof(struct ast_expr *));
    for (uint32_t i = 0; i < arguments->count; i++) {
        node->arguments[i] = arguments->items[i];
        if (node->arguments[i]->depth >= node->depth) {
            node->depth = node->arguments[i]->depth + 1;
        }
    }
    ASSERT(node->depth >= 1);
    return node;
}

struct ast_expr *ast_call(struct sql_memory *memory, struct place at, const char *name,
                          struct ast_expr *const arguments[4])
{
    ASSERT(memory != NULL);
    struct ast_list list = {0};
    for (uint32_t i = 0; i < 4 && arguments[i] != NULL; i++) {
        ast_append(memory, &list, arguments[i]);
    }
    return ast_call_list(memory, at, name, &list);
}
