/* SPDX-License-Identifier: Apache-2.0 */
/* A lane's pool of parcels. One block of memory holds the pool, a return ring for each other lane,
 * and the buffers, class behind class. Free lists are last in, first out: a lane with little to do
 * keeps using the few buffers that its cache holds.
 *
 * Invariant: a return ring has more slots than the pool has parcels, so a return never fails. */
#include "dataplane/parcel.h"

#include "dataplane/ring.h"

struct parcel_pool {
    struct parcel *free[PARCEL_CLASSES_MAX];
    uint32_t free_count[PARCEL_CLASSES_MAX];
    uint32_t free_total;
    uint32_t class_bytes[PARCEL_CLASSES_MAX];
    uint32_t class_count;
    uint32_t total;
    uint32_t lane;
    uint32_t lane_count;
    struct rte_ring *returns[]; /* lane_count; from that lane; NULL for the own one */
};

static size_t align_line(size_t bytes)
{
    return (bytes + CACHE_LINE_BYTES - 1) & ~(size_t)(CACHE_LINE_BYTES - 1);
}

static size_t head_bytes(const struct parcel_pool_config *config)
{
    return align_line(sizeof(struct parcel_pool) + config->lane_count * sizeof(struct rte_ring *));
}

static uint32_t count_parcels(const struct parcel_pool_config *config)
{
    ASSERT_SLOW(config != NULL);
    uint32_t total = 0;
    for (uint32_t i = 0; i < config->class_count; i++) {
        total += config->classes[i].count;
    }
    return total;
}

static uint32_t return_ring_items(const struct parcel_pool_config *config)
{
    uint32_t items = 2;
    while (items <= count_parcels(config) + 1) {
        items *= 2;
    }
    return items;
}

size_t parcel_pool_bytes(const struct parcel_pool_config *config)
{
    ASSERT(config->class_count >= 1 && config->class_count <= PARCEL_CLASSES_MAX);
    ASSERT(config->lane < config->lane_count);
    size_t bytes = head_bytes(config);
    bytes += (config->lane_count - 1) * align_line(ring_bytes(return_ring_items(config)));
    for (uint32_t i = 0; i < config->class_count; i++) {
        ASSERT(config->classes[i].bytes % CACHE_LINE_BYTES == 0);
        bytes += (size_t)config->classes[i].bytes * config->classes[i].count;
    }
    return bytes;
}

static void put_free(struct parcel_pool *pool, struct parcel *parcel)
{
    ASSERT_SLOW(pool->class_count <= PARCEL_CLASSES_MAX);
    ASSERT_SLOW(parcel->home == pool);
    const uint32_t size_class = parcel->size_class;
    parcel->next = pool->free[size_class];
    pool->free[size_class] = parcel;
    pool->free_count[size_class]++;
    pool->free_total++;
}

/* Cuts one class's buffers out of memory; returns what is behind them. */
static uint8_t *fill_class(struct parcel_pool *pool, const struct parcel_class *from,
                           uint32_t size_class, uint8_t *memory)
{
    ASSERT_SLOW(from != NULL);
    ASSERT(from->bytes > sizeof(struct parcel));
    for (uint32_t i = 0; i < from->count; i++) {
        struct parcel *parcel = (struct parcel *)(void *)(memory + (size_t)from->bytes * i);
        *parcel = (struct parcel){
            .home = pool,
            .kind = PARCEL_ROWS,
            .size_class = (uint8_t)size_class,
            .bytes_max = from->bytes - (uint32_t)sizeof(struct parcel),
        };
        put_free(pool, parcel);
    }
    return memory + (size_t)from->bytes * from->count;
}

struct parcel_pool *parcel_pool_init(const struct parcel_pool_config *config, void *memory)
{
    ASSERT(((uintptr_t)memory & (CACHE_LINE_BYTES - 1)) == 0);
    struct parcel_pool *pool = memory;
    memset(pool, 0, head_bytes(config));
    pool->class_count = config->class_count;
    pool->total = count_parcels(config);
    pool->lane = config->lane;
    pool->lane_count = config->lane_count;
    uint8_t *at = (uint8_t *)memory + head_bytes(config);
    const uint32_t items = return_ring_items(config);
    for (uint32_t i = 0; i < config->lane_count; i++) {
        if (i != config->lane) {
            pool->returns[i] = ring_init(at, items);
            at += align_line(ring_bytes(items));
        }
    }
    for (uint32_t i = 0; i < config->class_count; i++) {
        ASSERT(i == 0 || config->classes[i].bytes > config->classes[i - 1].bytes);
        pool->class_bytes[i] = config->classes[i].bytes;
        at = fill_class(pool, &config->classes[i], i, at);
    }
    ASSERT(at == (uint8_t *)memory + parcel_pool_bytes(config));
    return pool;
}

struct parcel *parcel_acquire(struct parcel_pool *pool, uint32_t data_bytes)
{
    ASSERT_SLOW(pool->class_count <= PARCEL_CLASSES_MAX);
    ASSERT_SLOW(pool->free_total <= pool->total);
    for (uint32_t i = 0; i < pool->class_count; i++) {
        struct parcel *parcel = pool->free[i];
        if (parcel == NULL || parcel->bytes_max < data_bytes) {
            continue;
        }
        pool->free[i] = parcel->next;
        pool->free_count[i]--;
        pool->free_total--;
        parcel->next = NULL;
        parcel->holders = 1;
        parcel->row_count = 0;
        parcel->bytes_used = 0;
        parcel->processing_ms = 0;
        parcel->decoded_ns = 0;
        parcel->routed_ns = 0;
        parcel->operated_ns = 0;
        parcel->encoded_ns = 0;
        return parcel;
    }
    return NULL;
}

void parcel_release(struct parcel *parcel, struct parcel_pool *here)
{
    ASSERT_SLOW(parcel->row_count <= PARCEL_ROWS_MAX);
    ASSERT(parcel->holders >= 1);
    if (--parcel->holders != 0) {
        return;
    }
    struct parcel_pool *home = parcel->home;
    if (home == here) {
        put_free(home, parcel);
        return;
    }
    const bool pushed = ring_push(home->returns[here->lane], item_rows(parcel));
    ASSERT(pushed);
}

uint32_t parcel_pool_collect(struct parcel_pool *pool)
{
    ASSERT_SLOW(pool->class_count <= PARCEL_CLASSES_MAX);
    uint32_t count = 0;
    for (uint32_t i = 0; i < pool->lane_count; i++) {
        struct item item;
        while (pool->returns[i] != NULL && ring_pop(pool->returns[i], &item)) {
            ASSERT(item_parcel(item)->holders == 0);
            put_free(pool, item_parcel(item));
            count++;
        }
    }
    ASSERT(pool->free_total <= pool->total);
    return count;
}

uint32_t parcel_pool_free(const struct parcel_pool *pool)
{
    ASSERT_SLOW(pool->class_count <= PARCEL_CLASSES_MAX);
    return pool->free_total;
}

uint32_t parcel_pool_total(const struct parcel_pool *pool)
{
    ASSERT_SLOW(pool->class_count <= PARCEL_CLASSES_MAX);
    return pool->total;
}

uint32_t parcel_pool_data_bytes(const struct parcel_pool *pool, bool largest)
{
    ASSERT_SLOW(pool->class_count <= PARCEL_CLASSES_MAX);
    const uint32_t size_class = largest ? pool->class_count - 1 : 0;
    return pool->class_bytes[size_class] - (uint32_t)sizeof(struct parcel);
}
