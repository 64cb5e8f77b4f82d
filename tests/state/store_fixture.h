/* SPDX-License-Identifier: Apache-2.0 */
/* A store on a simulated disk, and a model kept outside: every attempt at a checkpoint has a number
 * (its plan_fingerprint), from which the bytes of its extents follow. What a store lists and reads
 * back is compared with the model byte by byte.
 *
 * What became of an attempt, as the process under test knew it, decides what may be found later:
 * DURABLE must be found as long as it is retained, FAILED and GONE must never be found. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "state/store_internal.h"
#include "tests/sim/disk_sim.h"

#define FIXTURE_ATTEMPTS_MAX 512U
#define FIXTURE_EXTENTS_MAX  16U
#define FIXTURE_STORE_ID     UINT64_C(0x51075)
#define FIXTURE_IDENTITY     UINT64_C(0xd15c)
#define FIXTURE_HOST         UINT64_C(0x4057)
#define FIXTURE_LANES        2U

enum attempt_fate {
    ATTEMPT_OPEN = 0, /* not told: a crash came first */
    ATTEMPT_DURABLE,
    ATTEMPT_FAILED,
    ATTEMPT_GONE, /* an opening passed it over */
};

struct attempt {
    uint64_t id;
    uint64_t base; /* number of the attempt that it builds on; 0: full */
    uint32_t extent_count;
    enum attempt_fate fate;
};

struct store_fixture {
    struct disk_sim *sim;
    struct store *store;
    uint32_t keep_count;
    uint32_t attempt_count; /* numbers are from 1 */
    struct attempt attempts[FIXTURE_ATTEMPTS_MAX];
    uint64_t random;
    uint32_t full_every;
    uint32_t piece_extents_max;
    uint64_t durable_number; /* the newest DURABLE */
    uint64_t requests;       /* of all runs, for the figures */
    uint8_t *buffers;        /* FIXTURE_EXTENTS_MAX extents */
};

/* The next number of the seeded source. */
static inline uint64_t fixture_random(struct store_fixture *fixture)
{
    /* xorshift64*, Vigna 2016 */
    fixture->random ^= fixture->random >> 12;
    fixture->random ^= fixture->random << 25;
    fixture->random ^= fixture->random >> 27;
    return fixture->random * UINT64_C(0x2545f4914f6cdd1d);
}

/* A number below bound, evenly enough. */
static inline uint32_t fixture_below(struct store_fixture *fixture, uint32_t bound)
{
    return (uint32_t)(fixture_random(fixture) >> 33) % bound;
}

/* A disk of slot_count slots. */
static inline struct disk_sim *fixture_disk(uint32_t slot_count, uint64_t seed)
{
    const struct disk_sim_config config = {
        .bytes = (uint64_t)slot_count * EXTENT_BYTES,
        .identity = FIXTURE_IDENTITY,
        .depth_max = 16,
        .sector_bytes = seed % 2 == 0 ? 512 : 4096,
        .plan = {.seed = seed},
    };
    return disk_sim_create(&config);
}

/* Formats as all tests do. */
static inline int fixture_format(struct disk_sim *sim, bool force, struct error *error)
{
    const struct store_format format = {
        .host_identity = FIXTURE_HOST, .store_id = FIXTURE_STORE_ID, .force = force};
    return store_format(disk_sim_disk(sim), &format, NULL, NULL, error);
}

/* Takes over sim. */
static inline void fixture_init(struct store_fixture *fixture, struct disk_sim *sim, uint64_t seed)
{
    memset(fixture, 0, sizeof(*fixture));
    fixture->sim = sim;
    fixture->keep_count = STORE_KEEP_MIN;
    fixture->full_every = 3;
    fixture->piece_extents_max = 2;
    fixture->random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    fixture->buffers = aligned_alloc(4096, (size_t)FIXTURE_EXTENTS_MAX * EXTENT_BYTES);
    assert_non_null(fixture->buffers);
}

/* Closes the store and frees the disk. */
static inline void fixture_fini(struct store_fixture *fixture)
{
    store_close(fixture->store);
    disk_sim_destroy(fixture->sim);
    free(fixture->buffers);
}

/* Opens the store. */
static inline int fixture_open(struct store_fixture *fixture, enum store_fault *fault,
                               struct error *error)
{
    const struct store_config config = {.disk = disk_sim_disk(fixture->sim),
                                        .keep_count = fixture->keep_count};
    const int status = store_open(&config, &fixture->store, fault, error);
    if (status == 0) {
        fixture->store->piece_extents_max = fixture->piece_extents_max;
    }
    return status;
}

/* The bytes of extent number of an attempt: every third is facts. Its length follows as well. */
static inline uint32_t fixture_extent(uint64_t attempt, uint64_t id, uint32_t number, uint8_t *into)
{
    uint64_t word = attempt * 1000 + number;
    const uint32_t images = number % 3 == 2 ? 0 : (uint32_t)(word % 3);
    struct extent_header head = {.magic = EXTENT_MAGIC,
                                 .version = EXTENT_VERSION,
                                 .kind = number % 3 == 2 ? EXTENT_FACTS : EXTENT_PAGES,
                                 .checkpoint = id,
                                 .lane = number % FIXTURE_LANES,
                                 .number = number};
    const uint32_t payload = number % 3 == 2 ? 100 + number : images * ARENA_PAGE_BYTES;
    memset(into, 0, EXTENT_HEAD_BYTES + ARENA_PAGE_BYTES);
    if (head.kind == EXTENT_FACTS) {
        head.facts_bytes = payload;
    } else {
        head.image_count = images;
        head.item_count = images + 1;
    }
    memcpy(into, &head, sizeof(head));
    for (uint32_t item = 0; item < head.item_count; item++) {
        const struct extent_page page = {.page = number * 10 + item + 1,
                                         .shard = (uint16_t)(item % 7),
                                         .kind = item < images ? ARENA_PAGE_HEAP : ARENA_PAGE_FREE};
        memcpy(into + sizeof(head) + item * sizeof(page), &page, sizeof(page));
    }
    for (uint32_t at = 0; at + 8 <= payload; at += 8) {
        word = (word + 1) * UINT64_C(0x9e3779b97f4a7c15);
        memcpy(into + EXTENT_HEAD_BYTES + at, &word, sizeof(word));
    }
    return extent_bytes(into);
}

/* Begins an attempt; base 0: full.
 * returns  its number, 0 when it was refused */
static inline uint64_t fixture_begin(struct store_fixture *fixture, uint64_t base,
                                     uint32_t extent_count, struct error *error)
{
    assert_true(fixture->attempt_count + 1 < FIXTURE_ATTEMPTS_MAX);
    const uint64_t number = fixture->attempt_count + 1;
    struct attempt *attempt = &fixture->attempts[number];
    *attempt = (struct attempt){
        .id = store_next_id(fixture->store), .base = base, .extent_count = extent_count};
    const struct store_checkpoint about = {.id = attempt->id,
                                           .base_id = fixture->attempts[base].id,
                                           .lane_count = FIXTURE_LANES,
                                           .plan_fingerprint = number,
                                           .label = "model"};
    if (store_begin(fixture->store, &about, error) != 0) {
        return 0;
    }
    fixture->attempt_count++;
    return number;
}

/* Polls until the checkpoint has ended. */
static inline enum store_state fixture_end(struct store_fixture *fixture)
{
    uint64_t tags[4];
    uint32_t count;
    enum store_state state;
    do {
        state = store_poll(fixture->store, tags, 4, &count, NANOSECONDS_PER_S);
    } while (state == STORE_WRITING || state == STORE_COMMITTING);
    return state;
}

/* Appends the extents of an attempt.
 * returns  0 or what store_append refused with; failures that polling tells are not waited for */
static inline int fixture_append(struct store_fixture *fixture, uint64_t number)
{
    const struct attempt *attempt = &fixture->attempts[number];
    uint64_t tags[FIXTURE_EXTENTS_MAX];
    uint32_t count;
    for (uint32_t index = 0; index < attempt->extent_count; index++) {
        uint8_t *extent = fixture->buffers + (size_t)index * EXTENT_BYTES;
        (void)fixture_extent(number, attempt->id, index, extent);
        int status;
        while ((status = store_append(fixture->store, extent, index)) == -EAGAIN) {
            const enum store_state state =
                store_poll(fixture->store, tags, FIXTURE_EXTENTS_MAX, &count, NANOSECONDS_PER_S);
            if (state == STORE_FAILED) {
                return -ECANCELED;
            }
        }
        if (status != 0) {
            return status;
        }
    }
    return 0;
}

/* Writes a whole checkpoint of extent_count extents.
 * returns  DURABLE or FAILED; the model knows */
static inline enum store_state fixture_write(struct store_fixture *fixture, uint64_t base,
                                             uint32_t extent_count)
{
    struct error error = {0};
    const uint64_t number = fixture_begin(fixture, base, extent_count, &error);
    if (number == 0) {
        return STORE_IDLE;
    }
    const int status = fixture_append(fixture, number);
    enum store_state state = STORE_FAILED;
    if (status == 0) {
        store_commit(fixture->store, 1000);
    } else if (status != -ECANCELED) {
        store_abort(fixture->store);
    }
    if (status != -ECANCELED) {
        state = fixture_end(fixture);
    }
    assert_true(state == STORE_DURABLE || state == STORE_FAILED);
    struct attempt *attempt = &fixture->attempts[number];
    if (state == STORE_DURABLE) {
        attempt->fate = ATTEMPT_DURABLE;
        fixture->durable_number = number;
    } else {
        assert_true(store_failure(fixture->store)->text[0] != '\0');
        /* A dead disk or an uncertain store leave it open. */
        attempt->fate = store_is_uncertain(fixture->store) ? ATTEMPT_OPEN : ATTEMPT_FAILED;
    }
    return state;
}

/* One more checkpoint of random size, full at every full_every-th. */
static inline enum store_state fixture_write_next(struct store_fixture *fixture)
{
    uint64_t base = fixture->durable_number;
    if (base != 0 &&
        (store_catalog_find(fixture->store, fixture->attempts[base].id) == NULL ||
         store_catalog_chain(fixture->store, fixture->attempts[base].id) >= fixture->full_every)) {
        base = 0;
    }
    return fixture_write(fixture, base, 1 + fixture_below(fixture, 4));
}

struct fixture_reading {
    const struct store_fixture *fixture;
    uint8_t *expected;
    uint64_t last_id;
    uint32_t seen[STORE_CHECKPOINTS_MAX]; /* a bit an extent, by place in the chain */
    uint32_t place;
    uint32_t chain_count;
};

/* Holds one extent that was read against the model. */
static inline int fixture_visit(void *context, const struct store_checkpoint *about,
                                const uint8_t *extent)
{
    struct fixture_reading *reading = context;
    struct extent_header head;
    memcpy(&head, extent, sizeof(head));
    if (about->id != reading->last_id) { /* bases first */
        assert_true(about->id > reading->last_id);
        reading->place += reading->last_id != 0;
        reading->last_id = about->id;
    }
    const uint64_t number = about->plan_fingerprint;
    assert_in_range(number, 1, reading->fixture->attempt_count);
    assert_int_equal(reading->fixture->attempts[number].id, about->id);
    assert_true(head.number < reading->fixture->attempts[number].extent_count);
    const uint32_t bytes = fixture_extent(number, about->id, head.number, reading->expected);
    assert_int_equal(extent_bytes(extent), bytes);
    assert_memory_equal(extent, reading->expected, bytes);
    assert_int_equal(reading->seen[reading->place] >> head.number & 1, 0);
    reading->seen[reading->place] |= 1U << head.number;
    return 0;
}

/* Reads a checkpoint and compares it with the model.
 * returns  what store_read returned; anything read has been compared */
static inline int fixture_read(struct store_fixture *fixture, const struct store_checkpoint *about)
{
    struct fixture_reading reading = {.fixture = fixture,
                                      .expected = aligned_alloc(4096, EXTENT_BYTES)};
    struct error error = {0};
    const int status =
        store_read(fixture->store, about->id, UINT32_MAX, 0, fixture_visit, &reading, &error);
    free(reading.expected);
    if (status != 0) {
        assert_true(error.text[0] != '\0');
        return status;
    }
    uint64_t number = about->plan_fingerprint;
    for (uint32_t place = reading.place + 1; place > 0;
         place--) { /* the chain as the model has it */
        assert_int_equal(reading.seen[place - 1],
                         (1U << fixture->attempts[number].extent_count) - 1);
        number = fixture->attempts[number].base;
    }
    assert_int_equal(number, 0);
    return 0;
}

/* Whether faults that no completion told have happened: then anything may be missing, but nothing
 * may be wrong. */
static inline bool fixture_is_silent(const struct store_fixture *fixture)
{
    const uint64_t *faults = disk_sim_counters(fixture->sim)->faults;
    return faults[DISK_SIM_FLIP] + faults[DISK_SIM_MISDIRECT] + faults[DISK_SIM_LOST] != 0;
}

/* Holds the list of an open store against the model, and brings the model up to date: what the
 * list has was committed, what it has not is gone for good. */
static inline void fixture_note(struct store_fixture *fixture)
{
    const bool is_strict = !fixture_is_silent(fixture);
    const bool is_whole = is_strict && store_damaged(fixture->store, NULL) == 0;
    struct store_checkpoint list[STORE_CHECKPOINTS_MAX];
    bool is_found[FIXTURE_ATTEMPTS_MAX] = {false};
    const uint32_t count = store_list(fixture->store, list, STORE_CHECKPOINTS_MAX);
    for (uint32_t index = 0; index < count; index++) {
        const uint64_t number = list[index].plan_fingerprint;
        assert_in_range(number, 1, fixture->attempt_count);
        struct attempt *attempt = &fixture->attempts[number];
        assert_int_equal(attempt->id, list[index].id);
        assert_int_equal(attempt->extent_count, list[index].extent_count);
        if (is_strict) {
            assert_true(attempt->fate != ATTEMPT_FAILED && attempt->fate != ATTEMPT_GONE);
        }
        is_found[number] = true;
        attempt->fate = ATTEMPT_DURABLE;
    }
    const uint64_t newest = count != 0 ? list[0].plan_fingerprint : 0;
    if (is_whole) {
        assert_true(newest >= fixture->durable_number);
    }
    fixture->durable_number = newest;
    for (uint64_t number = 1; number <= fixture->attempt_count; number++) {
        if (!is_found[number] && !store_is_uncertain(fixture->store)) {
            fixture->attempts[number].fate = ATTEMPT_GONE;
        }
    }
}

/* Reads all that an open store lists on a disk without faults, and holds it against the model.
 * may_be_damaged  damage that is found is no fault of the store's */
static inline void fixture_check(struct store_fixture *fixture, bool may_be_damaged)
{
    struct store_checkpoint list[STORE_CHECKPOINTS_MAX];
    const uint32_t count = store_list(fixture->store, list, STORE_CHECKPOINTS_MAX);
    for (uint32_t index = 0; index < count; index++) {
        if (store_catalog_find(fixture->store, list[index].id) == NULL) {
            assert_true(may_be_damaged); /* left out with one that it builds on */
            continue;
        }
        const int status = fixture_read(fixture, &list[index]);
        assert_true(status == 0 || (may_be_damaged && status == -EBADMSG));
    }
    assert_true(may_be_damaged || store_damaged(fixture->store, NULL) == 0);
    fixture_note(fixture);
}

/* Writes up to count checkpoints, until the disk dies.
 * returns  how many failed */
static inline uint32_t fixture_work(struct store_fixture *fixture, uint32_t count)
{
    uint32_t failed = 0;
    for (uint32_t index = 0; index < count && !disk_sim_is_dead(fixture->sim); index++) {
        failed += fixture_write_next(fixture) != STORE_DURABLE;
    }
    return failed;
}

/* Closes the store, or frees one whose disk is dead. */
static inline void fixture_close(struct store_fixture *fixture)
{
    store_close(fixture->store);
    fixture->store = NULL;
    fixture->requests += disk_sim_counters(fixture->sim)->requests;
}

/* After a power failure or a stop: comes back on another plan and opens. */
static inline int fixture_reopen(struct store_fixture *fixture, const struct disk_sim_plan *plan,
                                 enum store_fault *fault, struct error *error)
{
    fixture_close(fixture);
    disk_sim_restart(fixture->sim, plan);
    return fixture_open(fixture, fault, error);
}

/* As fixture_reopen, after the process was killed and the disk was not. */
static inline int fixture_resume(struct store_fixture *fixture, const struct disk_sim_plan *plan,
                                 enum store_fault *fault, struct error *error)
{
    fixture_close(fixture);
    disk_sim_resume(fixture->sim, plan);
    return fixture_open(fixture, fault, error);
}
