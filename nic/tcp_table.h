/* SPDX-License-Identifier: Apache-2.0 */
/* From a flow to who owns it: open addressing, linear probing, and deletion that shifts back, so
 * there are no tombstones and a lookup stays short for ever. Values are small numbers that the
 * owner gives a meaning (connections and TIME-WAIT entries). Twice as many slots as entries. */
#pragma once

#include "base.h"
#include "nic/flow.h"

#define TCP_TABLE_NONE UINT32_MAX

struct tcp_table_slot {
    struct flow_tuple tuple;
    uint32_t value; /* TCP_TABLE_NONE: free */
};

struct tcp_table {
    struct tcp_table_slot *slots;
    uint32_t mask;
    uint32_t count;
    uint32_t count_max;
};

/* Reserves room for count_max flows.
 * returns  0 or -ENOMEM
 * threads  control path */
int tcp_table_init(struct tcp_table *table, uint32_t count_max);

/* Frees the table.
 * threads  control path */
void tcp_table_fini(struct tcp_table *table);

/* Looks a flow up.
 * returns  its value or TCP_TABLE_NONE
 * threads  owning lane only */
uint32_t tcp_table_find(const struct tcp_table *table, const struct flow_tuple *tuple);

/* Adds a flow that is not there, or gives one that is there another value.
 * threads  owning lane only */
void tcp_table_put(struct tcp_table *table, const struct flow_tuple *tuple, uint32_t value);

/* Removes a flow that is there.
 * threads  owning lane only */
void tcp_table_remove(struct tcp_table *table, const struct flow_tuple *tuple);
