/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a state of a checkpoint as JSON lines, one a key:
 *
 *     {"lane":0,"shard":17,"key":"…","value":"…","lists":[{"at":16,"items":[["order","…"],…]}]}
 *
 * Bytes are hexadecimal: what they mean is the job's matter (key.h, row.h). A key that has text in
 * it is also given as text, for people to search for. Without a state's name the states are listed,
 * with entries and bytes of their values. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "control/ckpt_internal.h"
#include "control/mapping.h"
#include "state/list.h"
#include "state/ordered.h"
#include "state/restore.h"
#include "state/shape.h"
#include "state/table.h"
#include "state/timers.h"

#define TEXT_BYTES_LEAST 3 /* shorter runs of letters are chance */

struct export
{
    const struct ckpt *ckpt;
    FILE *into;
    const struct restore_view *view;
    const struct shape_description *state;
    uint64_t entries;
    bool is_found;
};

static void print_hex(FILE *into, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        (void)fputc(digits[bytes[i] >> 4], into);
        (void)fputc(digits[bytes[i] & 15], into);
    }
}

/* The runs of plain characters in a key, joined by blanks. */
static void print_text(FILE *into, struct span key)
{
    bool has_text = false;
    for (size_t i = 0; i < key.bytes;) {
        size_t end = i;
        while (end < key.bytes && key.data[end] < 0x7f && isprint(key.data[end]) &&
               key.data[end] != '"' && key.data[end] != '\\') {
            end++;
        }
        if (end - i >= TEXT_BYTES_LEAST) {
            (void)fprintf(into, "%s%.*s", has_text ? " " : ",\"text\":\"", (int)(end - i),
                          (const char *)key.data + i);
            has_text = true;
        }
        i = end + 1;
    }
    (void)fputs(has_text ? "\"" : "", into);
}

static void print_blob(const struct export *export, uint64_t ref)
{
    const struct heap *heap = export->view->heap;
    uint32_t at = 0;
    while (at < heap_blob_bytes(heap, ref)) {
        const struct span piece = heap_blob_piece(heap, ref, at);
        print_hex(export->into, piece.data, piece.bytes);
        at += (uint32_t)piece.bytes;
    }
}

static void print_list(const struct export *export, const struct list_head *head)
{
    const struct heap *heap = export->view->heap;
    struct list_cursor cursor;
    bool has_more = list_first(heap, head, &cursor);
    const char *separator = "";
    while (has_more) {
        const struct list_item item = list_item(heap, &cursor);
        (void)fprintf(export->into, "%s[%" PRId64 ",\"", separator, item.order);
        if (item.data != NULL) {
            print_hex(export->into, item.data, item.bytes);
        } else {
            print_blob(export, item.blob);
        }
        (void)fputs("\"]", export->into);
        separator = ",";
        has_more = list_next(heap, &cursor);
    }
}

static void print_ordered(const struct export *export, const struct ordered_head *head)
{
    const struct heap *heap = export->view->heap;
    struct ordered_cursor cursor;
    bool has_more = ordered_first(heap, head, &cursor);
    const char *separator = "";
    while (has_more) {
        const struct ordered_entry entry = ordered_entry(heap, head, &cursor);
        (void)fprintf(export->into, "%s[\"", separator);
        if (entry.key_blob == 0) {
            print_hex(export->into, entry.key.data, entry.key.bytes);
        } else {
            print_blob(export, entry.key_blob);
        }
        (void)fputs("\",\"", export->into);
        print_hex(export->into, entry.value, head->value_bytes);
        (void)fputs("\"]", export->into);
        separator = ",";
        has_more = ordered_next(heap, &cursor);
    }
}

/* Lists and ordered maps that the value holds. */
static void print_heads(const struct export *export, const uint8_t *value)
{
    const struct shape_description *state = export->state;
    for (uint32_t i = 0; i < state->head_count; i++) {
        const uint8_t *head = value + state->heads[i].offset;
        if (state->heads[i].kind == TABLE_HEAD_LIST) {
            (void)fprintf(export->into, ",\"list_%u\":[", state->heads[i].offset);
            print_list(export, (const struct list_head *)(const void *)head);
        } else if (state->heads[i].kind == TABLE_HEAD_ORDERED) {
            (void)fprintf(export->into, ",\"map_%u\":[", state->heads[i].offset);
            print_ordered(export, (const struct ordered_head *)(const void *)head);
        } else {
            continue;
        }
        (void)fputs("]", export->into);
    }
}

static enum table_visit print_entry(void *context, const struct table_entry *entry)
{
    struct export *export = context;
    FILE *into = export->into;
    (void)fprintf(into, "{\"lane\":%u,\"shard\":%u,\"key\":\"", export->view->lane, entry->shard);
    if (entry->key_blob == 0) {
        print_hex(into, entry->key.data, entry->key.bytes);
    } else {
        print_blob(export, entry->key_blob);
    }
    (void)fputs("\"", into);
    if (entry->key_blob == 0) {
        print_text(into, entry->key);
    }
    (void)fputs(",\"value\":\"", into);
    print_hex(into, entry->value, export->state->value_bytes);
    (void)fputs("\"", into);
    print_heads(export, entry->value);
    (void)fputs("}\n", into);
    export->entries++;
    return TABLE_KEEP;
}

static enum table_visit count_entry(void *context, const struct table_entry *entry)
{
    (void)entry;
    ((struct export *)context)->entries++;
    return TABLE_KEEP;
}

static void scan(struct export *export, struct table *table, table_visit_fn *visit)
{
    struct table_cursor cursor = {0};
    export->entries = 0;
    while (table_scan(table, &cursor, visit, export)) {
    }
}

static int list_states(struct export *export)
{
    for (uint32_t i = 1; i < export->view->state_count; i++) {
        struct table *table = export->view->tables[i];
        export->state = shape_list_at(export->view->list, i);
        if (table != NULL) {
            scan(export, table, count_entry);
            (void)fprintf(export->into,
                          "lane %-3u %-56s table  %12" PRIu64 " keys, %u bytes each\n",
                          export->view->lane, export->state->name, export->entries,
                          export->state->value_bytes);
        } else {
            (void)fprintf(export->into, "lane %-3u %-56s timers %12" PRIu64 "\n",
                          export->view->lane, export->state->name,
                          timers_count(export->view->timers[i]));
        }
    }
    return 0;
}

static int show_lane(void *context, const struct restore_view *view)
{
    struct export *export = context;
    export->view = view;
    if (export->ckpt->state == NULL) {
        export->is_found = true;
        return list_states(export);
    }
    for (uint32_t i = 1; i < view->state_count; i++) {
        export->state = shape_list_at(view->list, i);
        if (strcmp(export->state->name, export->ckpt->state) == 0 && view->tables[i] != NULL) {
            export->is_found = true;
            scan(export, view->tables[i], print_entry);
        }
    }
    return 0;
}

int ckpt_export(const struct ckpt *ckpt, FILE *into, struct error *error)
{
    struct export export = {.ckpt = ckpt, .into = into};
    const struct restore_config config = {
        .store = ckpt->store,
        .id = ckpt->id,
        .map = mapping_scratch,
        .unmap = mapping_scratch_free,
    };
    const int status = restore_look(&config, show_lane, &export, error);
    if (status == 0 && !export.is_found) {
        return error_set(error, -ENOENT,
                         "there is no table of the name %s: export without a name "
                         "lists them",
                         ckpt->state == NULL ? "(none)" : ckpt->state);
    }
    return status;
}
