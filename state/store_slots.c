/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of slots over one array of links. */
#include "state/store_slots.h"

#include <errno.h>
#include <stdlib.h>

int store_slots_init(struct store_slots *slots, uint32_t slot_count)
{
    ASSERT(slot_count != 0 && slot_count < STORE_SLOTS_LOOSE);
    slots->next = malloc((size_t)slot_count * sizeof(*slots->next));
    if (slots->next == NULL) {
        return -ENOMEM;
    }
    slots->count = slot_count;
    memset(slots->next, 0xFF, (size_t)slot_count * sizeof(*slots->next));
    return 0;
}

void store_slots_fini(struct store_slots *slots)
{
    free(slots->next);
    *slots = (struct store_slots){.next = NULL};
}

bool store_slots_is_loose(const struct store_slots *slots, uint32_t slot)
{
    ASSERT(slot != 0 && slot < slots->count);
    return slots->next[slot] == STORE_SLOTS_LOOSE;
}

void store_slots_push(struct store_slots *slots, struct slot_list *list, uint32_t slot)
{
    ASSERT(store_slots_is_loose(slots, slot));
    slots->next[slot] = 0;
    if (list->head == 0) {
        list->head = slot;
    } else {
        ASSERT(slots->next[list->tail] == 0);
        slots->next[list->tail] = slot;
    }
    list->tail = slot;
    list->count++;
}

uint32_t store_slots_pop(struct store_slots *slots, struct slot_list *list)
{
    const uint32_t slot = list->head;
    if (slot == 0) {
        ASSERT(list->count == 0);
        return 0;
    }
    ASSERT(list->count != 0);
    list->head = slots->next[slot];
    list->tail = list->head == 0 ? 0 : list->tail;
    list->count--;
    slots->next[slot] = STORE_SLOTS_LOOSE;
    return slot;
}

void store_slots_splice(struct store_slots *slots, struct slot_list *into, struct slot_list *from)
{
    ASSERT(into != from);
    if (from->head == 0) {
        return;
    }
    if (into->head == 0) {
        into->head = from->head;
    } else {
        ASSERT(slots->next[into->tail] == 0);
        slots->next[into->tail] = from->head;
    }
    into->tail = from->tail;
    into->count += from->count;
    *from = (struct slot_list){.head = 0};
}

bool store_slots_remove(struct store_slots *slots, struct slot_list *list, uint32_t slot)
{
    ASSERT(slot != 0 && slot < slots->count);
    uint32_t before = 0;
    for (uint32_t at = list->head; at != 0 && at != slot; at = slots->next[at]) {
        before = at;
    }
    const uint32_t found = before == 0 ? list->head : slots->next[before];
    if (found != slot) {
        return false;
    }
    if (before == 0) {
        list->head = slots->next[slot];
    } else {
        slots->next[before] = slots->next[slot];
    }
    list->tail = list->tail == slot ? before : list->tail;
    list->count--;
    slots->next[slot] = STORE_SLOTS_LOOSE;
    return true;
}
