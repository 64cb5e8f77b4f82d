/* SPDX-License-Identifier: Apache-2.0 */
/* Which slots are free, and whose the others are: every data slot is in at most one list, linked
 * through one array of numbers, so that giving a whole checkpoint's slots back costs O(1) and the
 * longest free one is taken next. Lists keep the order in which slots were pushed.
 *
 * Limits: no allocation after store_slots_init; 4 bytes a slot. */
#pragma once

#include "base.h"

struct slot_list {
    uint32_t head; /* 0: empty */
    uint32_t tail;
    uint32_t count;
};

struct store_slots {
    uint32_t *next; /* 0: the last of its list; STORE_SLOTS_LOOSE: in none */
    uint32_t count;
};

#define STORE_SLOTS_LOOSE UINT32_MAX

/* Makes the links of slot_count slots, all in no list.
 * returns  0 or -ENOMEM; undone by store_slots_fini
 * threads  control */
int store_slots_init(struct store_slots *slots, uint32_t slot_count);

/* Frees the links.
 * threads  control */
void store_slots_fini(struct store_slots *slots);

/* Whether a slot is in no list.
 * threads  the store's owner */
bool store_slots_is_loose(const struct store_slots *slots, uint32_t slot);

/* Puts a loose slot at the end of a list.
 * threads  the store's owner */
void store_slots_push(struct store_slots *slots, struct slot_list *list, uint32_t slot);

/* Takes the first slot of a list, which is loose then.
 * returns  0 when the list is empty
 * threads  the store's owner */
uint32_t store_slots_pop(struct store_slots *slots, struct slot_list *list);

/* Moves all of from to the end of into; from is empty then.
 * threads  the store's owner */
void store_slots_splice(struct store_slots *slots, struct slot_list *into, struct slot_list *from);

/* Takes one slot out of the middle of a list, in O(list); the slot is loose then.
 * returns  false when it is not in the list
 * threads  the store's owner */
bool store_slots_remove(struct store_slots *slots, struct slot_list *list, uint32_t slot);
