/* SPDX-License-Identifier: Apache-2.0 */
/* The lane's side: orders in, the cut, scan slices and the pre-image hook. The scan goes up the
 * page numbers; what it has passed is staged, so the hook leaves those pages alone (invariant 1).
 * Groups of pages that nobody has touched since the base are skipped as a whole (invariant 2).
 *
 *     epochs   … base_epoch | changed since the base … cut_epoch | changed after the cut
 *                           \__________ staged _____________/ */
#include "state/snapshot.h"

#include <errno.h>

#include "state/shape.h"
#include "state/snapshot_inner.h"
#include "state/snapshot_ring.h"

#define IDLE_FACTOR      2U  /* a lane without work looks at so many times pages_a_turn */
#define UNITS_PER_IMAGE  32U /* what copying a page costs, in looks at a page's metadata */
#define FACTS_STEP_BYTES (16U * 1024U)
#define GROUP_PAGES      (1U << ARENA_GROUP_SHIFT)

static uint32_t power_of_two(uint32_t least)
{
    ASSERT(least != 0 && least < UINT32_C(1) << 30);
    uint32_t power = 2;
    while (power < least) {
        power *= 2;
    }
    return power;
}

static size_t line_up(size_t bytes)
{
    return (bytes + CACHE_LINE_BYTES - 1U) & ~(size_t)(CACHE_LINE_BYTES - 1U);
}

/* Where things lie behind the buffers. */
struct layout {
    size_t list;
    size_t free;
    size_t orders;
    size_t empties;
    size_t news;
    size_t end;
    uint32_t empties_items;
    uint32_t news_items;
};

static struct layout layout_of(uint32_t buffer_count)
{
    ASSERT(buffer_count != 0);
    struct layout layout = {.empties_items = power_of_two(buffer_count + 1U),
                            .news_items = power_of_two(buffer_count + SNAPSHOT_RING_SPARE)};
    layout.list = (size_t)buffer_count * EXTENT_BYTES + line_up(sizeof(struct snapshot));
    layout.free = layout.list + line_up(sizeof(struct shape_list_head) +
                                        ARENA_OBJECT_COUNT_MAX * sizeof(struct shape_description));
    layout.orders = layout.free + line_up(buffer_count * sizeof(uint32_t));
    layout.empties =
        layout.orders + snapshot_ring_bytes(sizeof(struct snapshot_order), SNAPSHOT_RING_SPARE);
    layout.news = layout.empties + snapshot_ring_bytes(sizeof(uint32_t), layout.empties_items);
    layout.end = layout.news + snapshot_ring_bytes(sizeof(struct snapshot_news), layout.news_items);
    layout.end = (layout.end + ARENA_PAGE_BYTES - 1U) & ~(size_t)(ARENA_PAGE_BYTES - 1U);
    return layout;
}

size_t snapshot_memory_bytes(const struct snapshot_config *config)
{
    ASSERT(config != NULL && config->buffer_count != 0);
    return layout_of(config->buffer_count).end;
}

/* The arena's hook: stages the old image of a page that the scan has not reached. */
static void preimage(void *context, const struct arena_page_view *view);

int snapshot_create(const struct snapshot_config *config, struct snapshot **out,
                    struct error *error)
{
    ASSERT(config != NULL && out != NULL);
    if (config->memory == NULL || (uintptr_t)config->memory % ARENA_PAGE_BYTES != 0 ||
        config->buffer_count < SNAPSHOT_BUFFERS_MIN || config->pages_a_turn == 0 ||
        config->buffer_count > SNAPSHOT_BUFFERS_MAX) {
        return error_set(error, -EINVAL,
                         "staging needs aligned memory, %u to %u buffers, and pages a turn",
                         SNAPSHOT_BUFFERS_MIN, SNAPSHOT_BUFFERS_MAX);
    }
    const struct layout layout = layout_of(config->buffer_count);
    uint8_t *base = config->memory;
    struct snapshot *snapshot = (void *)(base + (size_t)config->buffer_count * EXTENT_BYTES);
    *snapshot = (struct snapshot){
        .config = *config,
        .reserve = config->buffer_count / 2U,
        .low = config->buffer_count / 4U,
        .list = base + layout.list,
        .free = (uint32_t *)(void *)(base + layout.free),
        .pages_open.buffer = SNAPSHOT_BUFFER_NONE,
        .bytes_open.buffer = SNAPSHOT_BUFFER_NONE,
    };
    snapshot->orders = snapshot_ring_init(base + layout.orders, sizeof(struct snapshot_order),
                                          SNAPSHOT_RING_SPARE);
    snapshot->empties =
        snapshot_ring_init(base + layout.empties, sizeof(uint32_t), layout.empties_items);
    snapshot->news =
        snapshot_ring_init(base + layout.news, sizeof(struct snapshot_news), layout.news_items);
    for (uint32_t buffer = 0; buffer < config->buffer_count; buffer++) {
        snapshot->free[snapshot->free_count++] = buffer;
    }
    if (config->arena != NULL) {
        arena_preimage_set(config->arena, preimage, snapshot);
    }
    *out = snapshot;
    return 0;
}

void snapshot_destroy(struct snapshot *snapshot)
{
    if (snapshot != NULL && snapshot->config.arena != NULL) {
        ASSERT(snapshot->config.arena->preimage_context == snapshot);
        arena_preimage_set(snapshot->config.arena, NULL, NULL);
    }
}

struct span_mut snapshot_buffers(struct snapshot *snapshot)
{
    ASSERT(snapshot != NULL);
    return (struct span_mut){snapshot->config.memory,
                             (size_t)snapshot->config.buffer_count * EXTENT_BYTES};
}

const struct snapshot_counters *snapshot_counters(const struct snapshot *snapshot)
{
    ASSERT(snapshot != NULL);
    return &snapshot->counters;
}

bool snapshot_is_open(const struct snapshot *snapshot)
{
    return snapshot->phase == SNAPSHOT_STAGING || snapshot->phase == SNAPSHOT_SETTLING;
}

bool snapshot_is_low(const struct snapshot *snapshot)
{
    ASSERT_SLOW(snapshot->low != 0);
    return snapshot->phase == SNAPSHOT_STAGING && snapshot->free_count < snapshot->low;
}

static void give_up(struct snapshot *snapshot)
{
    ASSERT(snapshot->phase != SNAPSHOT_IDLE);
    snapshot_discard(snapshot);
    snapshot->phase = SNAPSHOT_IDLE;
    snapshot->counters.given_up++;
    snapshot_say(snapshot, &(struct snapshot_news){.kind = SNAPSHOT_NEWS_GIVEN_UP,
                                                   .id = snapshot->id,
                                                   .at_ns = snapshot->now_ns});
}

/* Whether a page's image at the cut belongs to the snapshot and is still to be staged. */
static inline bool is_due(const struct snapshot *snapshot, uint32_t page, uint32_t epoch)
{
    return epoch > snapshot->base_epoch && epoch <= snapshot->cut_epoch && page >= snapshot->page;
}

static void preimage(void *context, const struct arena_page_view *view)
{
    struct snapshot *snapshot = context;
    if (snapshot->phase != SNAPSHOT_STAGING || !is_due(snapshot, view->page, view->epoch)) {
        return;
    }
    if (view->kind == ARENA_PAGE_FREE) {
        if (snapshot->base_id == 0) {
            return; /* what a full checkpoint does not name is free */
        }
        snapshot->counters.freed_pages++;
    } else {
        snapshot->counters.preimages++;
    }
    if (UNLIKELY(!snapshot_stage_page(snapshot, view, 0))) {
        give_up(snapshot); /* invariant 3 */
    }
}

/* Takes an outcome over: a durable one is the base of the next, a failed one is dropped. */
static void outcome_take(struct snapshot *snapshot, const struct snapshot_order *order)
{
    ASSERT(order->is_outcome && snapshot->outcome_count < SNAPSHOT_OUTCOMES_MAX);
    struct arena *arena = snapshot->config.arena;
    if (order->is_durable && arena != NULL) {
        ASSERT(order->id == snapshot->cut_id);
        arena->base_id = order->id;
        arena->base_epoch = snapshot->cut_epoch;
    }
    if (!order->is_durable && order->id == snapshot->id && snapshot->phase != SNAPSHOT_IDLE) {
        snapshot_discard(snapshot);
        snapshot->phase = SNAPSHOT_IDLE;
    }
    const uint32_t place = snapshot->outcome_first + snapshot->outcome_count++;
    snapshot->outcomes[place % SNAPSHOT_OUTCOMES_MAX] =
        (struct snapshot_outcome){.id = order->id, .is_durable = order->is_durable};
}

static void orders_take(struct snapshot *snapshot)
{
    struct snapshot_order order;
    while (snapshot->outcome_count < SNAPSHOT_OUTCOMES_MAX &&
           snapshot_ring_pop(snapshot->orders, &order, sizeof(order))) {
        if (order.is_outcome) {
            outcome_take(snapshot, &order);
            continue;
        }
        ASSERT(snapshot->phase == SNAPSHOT_IDLE && order.id != 0); /* invariant 4 */
        snapshot->id = order.id;
        snapshot->base_id = order.base_id;
        snapshot->is_told = false;
        snapshot->phase = SNAPSHOT_ORDERED;
    }
}

bool snapshot_ordered(struct snapshot *snapshot, uint64_t *id)
{
    ASSERT(id != NULL);
    orders_take(snapshot);
    if (snapshot->phase != SNAPSHOT_ORDERED || snapshot->is_told) {
        return false;
    }
    snapshot->is_told = true;
    *id = snapshot->id;
    return true;
}

bool snapshot_outcome(struct snapshot *snapshot, struct snapshot_outcome *out)
{
    ASSERT(out != NULL);
    orders_take(snapshot);
    if (snapshot->outcome_count == 0) {
        return false;
    }
    *out = snapshot->outcomes[snapshot->outcome_first];
    snapshot->outcome_first = (snapshot->outcome_first + 1U) % SNAPSHOT_OUTCOMES_MAX;
    snapshot->outcome_count--;
    return true;
}

/* Sets the range of pages that is to be scanned, and the epochs.
 * returns  false when the arena knows nothing of the base */
static bool scan_begin(struct snapshot *snapshot)
{
    struct arena *arena = snapshot->config.arena;
    ASSERT(arena != NULL && arena->page_fresh <= arena->page_count);
    snapshot->cut_epoch = arena_epoch_advance(arena);
    snapshot->cut_id = snapshot->id;
    snapshot->page = 1;
    snapshot->page_end = arena->page_fresh;
    snapshot->base_epoch = 0;
    if (snapshot->base_id == 0) {
        snapshot->states.bytes = (uint32_t)shape_list_bytes(arena);
        shape_list_write(arena, snapshot->list);
        return true;
    }
    snapshot->base_epoch = arena->base_epoch;
    return snapshot->base_id == arena->base_id;
}

void snapshot_cut(struct snapshot *snapshot, uint64_t id, struct span facts, uint64_t now_ns)
{
    ASSERT(facts.bytes <= UINT32_MAX && (facts.bytes == 0 || facts.data != NULL));
    snapshot->now_ns = now_ns;
    if (snapshot->phase != SNAPSHOT_ORDERED || snapshot->id != id) {
        return; /* it has failed meanwhile */
    }
    memset(snapshot->numbers, 0, sizeof(snapshot->numbers));
    snapshot->phase = SNAPSHOT_STAGING;
    snapshot->is_settled = false;
    snapshot->page = 0;
    snapshot->page_end = 0;
    snapshot->facts = (struct snapshot_bytes){
        .data = facts.data, .bytes = (uint32_t)facts.bytes, .kind = EXTENT_FACTS};
    snapshot->states = (struct snapshot_bytes){.data = snapshot->list, .kind = EXTENT_STATES};
    snapshot->counters.cuts++;
    snapshot->cut_preimages = snapshot->counters.preimages;
    snapshot_say(snapshot,
                 &(struct snapshot_news){.kind = SNAPSHOT_NEWS_CUT, .id = id, .at_ns = now_ns});
    snapshot_refill(snapshot);
    if (snapshot->config.arena != NULL && !scan_begin(snapshot)) {
        give_up(snapshot);
    }
}

void snapshot_settle(struct snapshot *snapshot)
{
    if (snapshot_is_open(snapshot)) {
        ASSERT(!snapshot->is_settled);
        snapshot->is_settled = true;
    }
}

/* Looks at one page of the scan.
 * returns  units spent, 0 when there is no buffer for its image */
static uint32_t page_scan(struct snapshot *snapshot)
{
    const struct arena_page_view view = arena_page_view(snapshot->config.arena, snapshot->page);
    const bool is_free = view.kind == ARENA_PAGE_FREE;
    if (!is_due(snapshot, view.page, view.epoch) || (is_free && snapshot->base_id == 0)) {
        snapshot->page++;
        return 1;
    }
    if (!snapshot_stage_page(snapshot, &view, snapshot->reserve)) {
        return 0;
    }
    snapshot->counters.freed_pages += is_free;
    snapshot->counters.scanned_pages += !is_free;
    snapshot->page++; /* from here on the hook leaves it alone (invariant 1) */
    return is_free ? 1U : UNITS_PER_IMAGE;
}

static uint32_t pages_scan(struct snapshot *snapshot, uint32_t units_max)
{
    ASSERT_SLOW(snapshot->config.arena != NULL);
    const uint32_t *groups = snapshot->config.arena->groups;
    uint32_t units = 0;
    while (snapshot->page < snapshot->page_end && units < units_max) {
        uint32_t spent = 1;
        if (groups[snapshot->page >> ARENA_GROUP_SHIFT] <= snapshot->base_epoch) {
            snapshot->page = (snapshot->page & ~(GROUP_PAGES - 1U)) + GROUP_PAGES;
        } else {
            spent = page_scan(snapshot);
        }
        if (spent == 0) {
            break;
        }
        units += spent;
    }
    return units;
}

/* Stages states, facts, then pages.
 * returns  work done */
static uint32_t slice(struct snapshot *snapshot, uint32_t pages_max)
{
    ASSERT(snapshot->phase == SNAPSHOT_STAGING);
    struct snapshot_bytes *bytes = &snapshot->states;
    bytes = bytes->done == bytes->bytes ? &snapshot->facts : bytes;
    if (bytes->done != bytes->bytes) {
        return snapshot_stage_bytes(snapshot, bytes, FACTS_STEP_BYTES);
    }
    const uint32_t work =
        snapshot->page < snapshot->page_end ? pages_scan(snapshot, pages_max * UNITS_PER_IMAGE) : 1;
    if (snapshot->page >= snapshot->page_end) {
        snapshot_close_pages(snapshot);
        snapshot->phase = SNAPSHOT_SETTLING;
    }
    return work;
}

uint32_t snapshot_poll(struct snapshot *snapshot, uint64_t now_ns, bool is_busy)
{
    snapshot->now_ns = now_ns;
    orders_take(snapshot);
    uint32_t work = 0;
    if (snapshot->phase == SNAPSHOT_STAGING) {
        snapshot_refill(snapshot);
        const uint32_t factor = is_busy ? 1U : IDLE_FACTOR;
        work = slice(snapshot, snapshot->config.pages_a_turn * factor);
        snapshot->counters.low_turns += snapshot_is_low(snapshot);
    }
    if (snapshot->phase == SNAPSHOT_SETTLING && snapshot->is_settled) {
        snapshot->phase = SNAPSHOT_IDLE;
        snapshot_say(snapshot, &(struct snapshot_news){.kind = SNAPSHOT_NEWS_STAGED,
                                                       .id = snapshot->id,
                                                       .at_ns = now_ns,
                                                       .preimages = snapshot->counters.preimages -
                                                                    snapshot->cut_preimages});
        work++;
    }
    return work;
}
