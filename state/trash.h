/* SPDX-License-Identifier: Apache-2.0 */
/* Collections whose owner is gone. A list or map may hold millions of items, and its key leaves in
 * one call: what is short is freed there and then, the rest of a long one goes on its shard's queue
 * of trash, from which heap_poll frees a chunk or node a step. The queue lies in the heap's pages,
 * so a checkpoint holds it too and a restore goes on freeing; a copy of state leaves it behind. */
#pragma once

#include "state/list.h"
#include "state/ordered.h"

/* Empties a list that its owner will not use again, at once or in steps of heap_poll.
 * head     may lie outside of the arena; empty afterwards
 * threads  owning lane only */
void trash_list(struct heap *heap, struct list_head *head);

/* As trash_list, an ordered map. */
void trash_ordered(struct heap *heap, struct ordered_head *head);
