/* SPDX-License-Identifier: Apache-2.0 */
/* Sending rows along an edge. Rows for other lanes are gathered per link until the end of the
 * sender's turn, so that a ring carries batches; the copy also frees the sender's parcel at once.
 */
#include "dataplane/exchange.h"

#include "state/hash.h"

uint32_t exchange_shard(const struct row_layout *layout, const struct row *row,
                        const struct key_columns *key, uint8_t *scratch)
{
    ASSERT_SLOW(layout->column_count <= ROW_COLUMNS_MAX);
    const uint32_t bytes = key_encode(layout, row, key, scratch, KEY_BYTES_MAX);
    if (bytes == UINT32_MAX) {
        return 0;
    }
    const uint64_t hash = hash_bytes((struct span){.data = scratch, .bytes = bytes});
    return hash_shard(hash, EXCHANGE_SHARD_COUNT);
}

/* Queues an item: into the ring when nothing waits before it, else behind what waits. */
static void link_push(struct exchange_link *link, struct item item)
{
    ASSERT_SLOW(link != NULL);
    if (link->ring != NULL && queue_is_empty(link->queue) && ring_push(link->ring, item)) {
        return;
    }
    queue_push(link->queue, item);
}

static void link_close_parcel(struct exchange_link *link)
{
    ASSERT_SLOW(link != NULL);
    if (link->filling != NULL) {
        struct parcel *parcel = link->filling;
        link->filling = NULL;
        ASSERT(parcel->row_count > 0);
        link_push(link, item_rows(parcel));
    }
}

static void copy_stamps(struct parcel *into, const struct parcel *from)
{
    ASSERT_SLOW(from->row_count <= PARCEL_ROWS_MAX);
    into->processing_ms = from->processing_ms;
    into->decoded_ns = from->decoded_ns;
    into->routed_ns = from->routed_ns;
}

/* Makes room for a row in the link's parcel; false when the pool is dry. */
static bool link_reserve(struct exchange *exchange, struct exchange_link *link,
                         const struct parcel *from, uint32_t bytes)
{
    ASSERT_SLOW(exchange->links != NULL);
    ASSERT_SLOW(exchange->link_count > 0);
    ASSERT_SLOW(link != NULL);
    struct parcel *filling = link->filling;
    if (filling != NULL && (filling->row_count >= exchange->parcel_rows_max ||
                            filling->bytes_max - filling->bytes_used < bytes ||
                            filling->processing_ms != from->processing_ms)) {
        link_close_parcel(link);
    }
    if (link->filling == NULL) {
        link->filling = parcel_acquire(exchange->pool, bytes);
        if (link->filling == NULL) {
            return false;
        }
        copy_stamps(link->filling, from);
    }
    return true;
}

static bool send_by_hash(struct exchange *exchange, const struct parcel *parcel)
{
    ASSERT_SLOW(exchange->links != NULL);
    ASSERT_SLOW(exchange->link_count > 0);
    const struct row *row = parcel_first(parcel);
    for (uint32_t i = 0; i < parcel->row_count; i++) {
        const uint32_t shard =
            exchange_shard(exchange->layout, row, &exchange->key, exchange->key_scratch);
        ASSERT_SLOW(exchange->link_of_shard[shard] < exchange->link_count);
        struct exchange_link *link = &exchange->links[exchange->link_of_shard[shard]];
        if (!link_reserve(exchange, link, parcel, row->bytes)) {
            return false;
        }
        struct parcel *into = link->filling;
        memcpy(into->data + into->bytes_used, row, row->bytes);
        into->bytes_used += row->bytes;
        into->row_count++;
        row = parcel_next(row);
    }
    exchange->copied_rows += parcel->row_count;
    return true;
}

static bool send_whole(struct exchange *exchange, struct parcel *parcel, bool give)
{
    ASSERT_SLOW(exchange->links != NULL);
    ASSERT(exchange->link_count == 1);
    if (give) {
        ASSERT(parcel->holders == 1);
        link_push(exchange->links, item_rows(parcel));
        return true;
    }
    struct parcel *copy = parcel_acquire(exchange->pool, parcel->bytes_used);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy->data, parcel->data, parcel->bytes_used);
    copy->bytes_used = parcel->bytes_used;
    copy->row_count = parcel->row_count;
    copy_stamps(copy, parcel);
    exchange->copied_rows += parcel->row_count;
    link_push(exchange->links, item_rows(copy));
    return true;
}

bool exchange_send(struct exchange *exchange, struct parcel *parcel, bool give)
{
    ASSERT_SLOW(exchange->links != NULL);
    ASSERT(parcel->row_count > 0);
    ASSERT(!give || exchange->kind == EXCHANGE_LANE);
    switch (exchange->kind) {
    case EXCHANGE_DIRECT:
        parcel->holders++;
        queue_push(exchange->links->queue, item_rows(parcel));
        return true;
    case EXCHANGE_LANE:
        return send_whole(exchange, parcel, give);
    default:
        return send_by_hash(exchange, parcel);
    }
}

static uint32_t drain_backlog(struct exchange_link *link)
{
    uint32_t count = 0;
    while (link->ring != NULL && !queue_is_empty(link->queue) && !ring_is_full(link->ring)) {
        /* Popped first: once it is in the ring, the parcel is the other lane's. */
        const bool pushed = ring_push(link->ring, queue_pop(link->queue));
        ASSERT(pushed);
        count++;
    }
    return count;
}

uint32_t exchange_flush(struct exchange *exchange)
{
    ASSERT_SLOW(exchange->links != NULL);
    ASSERT_SLOW(exchange->link_count > 0);
    uint32_t count = 0;
    for (uint32_t i = 0; i < exchange->link_count; i++) {
        count += drain_backlog(&exchange->links[i]);
        link_close_parcel(&exchange->links[i]);
    }
    return count;
}

void exchange_control(struct exchange *exchange, struct item item)
{
    ASSERT_SLOW(exchange->links != NULL);
    ASSERT(item_kind(item) != PARCEL_ROWS);
    for (uint32_t i = 0; i < exchange->link_count; i++) {
        link_close_parcel(&exchange->links[i]);
        link_push(&exchange->links[i], item);
    }
}

uint32_t exchange_backlog_rows(const struct exchange *exchange)
{
    ASSERT_SLOW(exchange->links != NULL);
    ASSERT_SLOW(exchange->link_count > 0);
    uint32_t rows = 0;
    for (uint32_t i = 0; i < exchange->link_count; i++) {
        rows += exchange->links[i].ring != NULL ? exchange->links[i].queue->row_count : 0;
        rows += exchange->links[i].filling != NULL ? exchange->links[i].filling->row_count : 0;
    }
    return rows;
}

uint32_t exchange_waiting_rows(const struct exchange *exchange)
{
    ASSERT_SLOW(exchange->links != NULL);
    ASSERT_SLOW(exchange->link_count > 0);
    uint32_t rows = 0;
    for (uint32_t i = 0; i < exchange->link_count; i++) {
        rows += exchange->links[i].queue->row_count;
        rows += exchange->links[i].filling != NULL ? exchange->links[i].filling->row_count : 0;
    }
    return rows;
}

bool exchange_has_backlog(const struct exchange *exchange)
{
    ASSERT_SLOW(exchange->links != NULL);
    ASSERT_SLOW(exchange->link_count > 0);
    for (uint32_t i = 0; i < exchange->link_count; i++) {
        const struct exchange_link *link = &exchange->links[i];
        if (link->filling != NULL || (link->ring != NULL && !queue_is_empty(link->queue))) {
            return true;
        }
    }
    return false;
}
