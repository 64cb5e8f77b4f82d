/* SPDX-License-Identifier: Apache-2.0 */
/* Only this host's own connects add entries, so a stranger cannot crowd a chain; a plain mixing
 * hash is enough. */
#include "nic/tcp_table.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t tuple_hash(const struct flow_tuple *tuple)
{
    ASSERT(tuple != NULL);
    uint64_t word =
        (uint64_t)tuple->remote_ip4 << 32 | (uint32_t)tuple->remote_port << 16 | tuple->local_port;
    word ^= (uint64_t)tuple->local_ip4 << 7;
    word ^= word >> 33;
    word *= UINT64_C(0xff51afd7ed558ccd);
    word ^= word >> 33;
    word *= UINT64_C(0xc4ceb9fe1a85ec53);
    return (uint32_t)(word ^ (word >> 33));
}

static bool tuple_is_equal(const struct flow_tuple *a, const struct flow_tuple *b)
{
    ASSERT(a != NULL);
    ASSERT(b != NULL);
    return a->local_port == b->local_port && a->remote_port == b->remote_port &&
           a->remote_ip4 == b->remote_ip4 && a->local_ip4 == b->local_ip4;
}

int tcp_table_init(struct tcp_table *table, uint32_t count_max)
{
    ASSERT(table != NULL);
    ASSERT(count_max > 0 && count_max < (UINT32_C(1) << 30));
    uint32_t slot_count = 16;
    while (slot_count < 2 * count_max) {
        slot_count *= 2;
    }
    *table = (struct tcp_table){.mask = slot_count - 1, .count_max = count_max};
    table->slots = malloc(slot_count * sizeof(*table->slots));
    if (table->slots == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < slot_count; i++) {
        table->slots[i] = (struct tcp_table_slot){.value = TCP_TABLE_NONE};
    }
    return 0;
}

void tcp_table_fini(struct tcp_table *table)
{
    ASSERT(table != NULL);
    free(table->slots);
    *table = (struct tcp_table){0};
}

/* The slot of the tuple, or the free one where it belongs. */
static uint32_t slot_find(const struct tcp_table *table, const struct flow_tuple *tuple)
{
    ASSERT(table != NULL);
    ASSERT(tuple != NULL);
    uint32_t at = tuple_hash(tuple) & table->mask;
    while (table->slots[at].value != TCP_TABLE_NONE &&
           !tuple_is_equal(&table->slots[at].tuple, tuple)) {
        at = (at + 1) & table->mask;
    }
    return at;
}

uint32_t tcp_table_find(const struct tcp_table *table, const struct flow_tuple *tuple)
{
    ASSERT(table != NULL && tuple != NULL);
    return table->slots[slot_find(table, tuple)].value;
}

void tcp_table_put(struct tcp_table *table, const struct flow_tuple *tuple, uint32_t value)
{
    ASSERT(value != TCP_TABLE_NONE);
    struct tcp_table_slot *slot = &table->slots[slot_find(table, tuple)];
    if (slot->value == TCP_TABLE_NONE) {
        ASSERT(table->count < table->count_max);
        table->count++;
        slot->tuple = *tuple;
    }
    slot->value = value;
}

void tcp_table_remove(struct tcp_table *table, const struct flow_tuple *tuple)
{
    uint32_t hole = slot_find(table, tuple);
    ASSERT(table->slots[hole].value != TCP_TABLE_NONE);
    ASSERT(table->count > 0);
    table->count--;
    for (uint32_t at = (hole + 1) & table->mask; table->slots[at].value != TCP_TABLE_NONE;
         at = (at + 1) & table->mask) {
        uint32_t home = tuple_hash(&table->slots[at].tuple) & table->mask;
        /* May move back unless its home lies after the hole. */
        if (((at - home) & table->mask) >= ((at - hole) & table->mask)) {
            table->slots[hole] = table->slots[at];
            hole = at;
        }
    }
    table->slots[hole].value = TCP_TABLE_NONE;
}
