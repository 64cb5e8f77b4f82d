/* SPDX-License-Identifier: Apache-2.0 */
/* The real disk on a real file: bytes there and back, threads in turn, two processes, and paths
 * that cannot be a disk. Skips where the system refuses io_uring or O_DIRECT. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "state/disk_uring.h"
#include "state/store.h"

#define FILE_BYTES (UINT64_C(16) << 20)
#define DEPTH      8U

struct place {
    char folder[64];
    char path[96];
};

static void make_place(struct place *place)
{
    (void)snprintf(place->folder, sizeof(place->folder), "disk_uring.XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    (void)snprintf(place->path, sizeof(place->path), "%s/checkpoints", place->folder);
}

static void remove_place(struct place *place)
{
    (void)unlink(place->path);
    assert_int_equal(rmdir(place->folder), 0);
}

static int open_disk(const char *path, uint64_t bytes, struct disk **out, struct error *error)
{
    const struct disk_uring_config config = {.path = path, .bytes = bytes, .depth_max = DEPTH};
    return disk_uring_open(&config, out, error);
}

/* Waits for one completion. */
static int64_t run(struct disk *disk, enum disk_operation operation, uint64_t offset,
                   uint8_t *buffer, uint32_t bytes)
{
    const struct disk_request request = {.operation = operation,
                                         .offset = offset,
                                         .bytes = bytes,
                                         .buffer = buffer,
                                         .tag = offset + operation};
    assert_true(disk_submit(disk, &request));
    struct disk_completion done = {.tag = 0};
    while (disk_reap(disk, &done, 1, NANOSECONDS_PER_S) == 0) {
    }
    assert_int_equal(done.tag, offset + operation);
    assert_int_equal(disk->in_flight, 0);
    return done.result;
}

static uint8_t *map(size_t bytes)
{
    uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

static void check_there_and_back(struct disk *disk, uint8_t *memory, uint8_t seed)
{
    for (uint32_t at = 0; at < 65536; at++) {
        memory[at] = (uint8_t)(at * 7 + seed);
    }
    assert_int_equal(run(disk, DISK_WRITE, 1 << 20, memory, 65536), 65536);
    assert_int_equal(run(disk, DISK_FLUSH, 0, NULL, 0), 0);
    assert_int_equal(run(disk, DISK_READ, 1 << 20, memory + 65536, 65536), 65536);
    assert_memory_equal(memory, memory + 65536, 65536);
}

static void test_write_when_flushed_then_reads_back(void **state)
{
    (void)state;
    struct place place;
    make_place(&place);
    struct disk *disk;
    struct error error = {0};
    assert_int_equal(open_disk(place.path, FILE_BYTES, &disk, &error), 0);
    assert_int_equal(disk->bytes, FILE_BYTES);
    assert_true(disk->identity != 0);
    uint8_t *memory = map(131072);
    check_there_and_back(disk, memory, 1);
    uint32_t flags, buffers;
    assert_int_equal(disk_register_memory(disk, memory, 131072), 0);
    check_there_and_back(disk, memory, 2);
    disk_uring_features(disk, &flags, &buffers);
    assert_int_equal(buffers, 1);
    const uint64_t identity = disk->identity;
    disk_close(disk);
    assert_int_equal(open_disk(place.path, 0, &disk, &error), 0);
    assert_int_equal(disk->identity, identity);
    assert_int_equal(run(disk, DISK_READ, 1 << 20, memory + 65536, 65536), 65536);
    assert_memory_equal(memory, memory + 65536, 65536);
    disk_close(disk);
    munmap(memory, 131072);
    remove_place(&place);
}

static void test_submit_when_depth_is_reached_then_refused(void **state)
{
    (void)state;
    struct place place;
    make_place(&place);
    struct disk *disk;
    assert_int_equal(open_disk(place.path, FILE_BYTES, &disk, NULL), 0);
    uint8_t *memory = map((size_t)DEPTH * 4096);
    uint32_t seen = 0, count = 0;
    for (uint32_t index = 0; index < DEPTH + 1; index++) {
        const struct disk_request request = {.operation = DISK_WRITE,
                                             .bytes = 4096,
                                             .offset = index * 4096,
                                             .buffer = memory + index % DEPTH * 4096,
                                             .tag = index};
        assert_true(disk_submit(disk, &request) == (index < DEPTH));
    }
    while (count < DEPTH) {
        struct disk_completion done[3];
        const uint32_t got = disk_reap(disk, done, 3, 1000000);
        assert_true(got <= 3);
        for (uint32_t index = 0; index < got; index++) {
            assert_int_equal(done[index].result, 4096);
            seen |= 1U << done[index].tag;
        }
        count += got;
    }
    assert_int_equal(seen, (1U << DEPTH) - 1);
    struct disk_completion none;
    assert_int_equal(disk_reap(disk, &none, 1, 0), 0);
    disk_close(disk);
    munmap(memory, (size_t)DEPTH * 4096);
    remove_place(&place);
}

struct turn {
    struct disk *disk;
    uint8_t *memory;
};

static void *take_turn(void *context)
{
    const struct turn *turn = context;
    check_there_and_back(turn->disk, turn->memory, 3);
    return NULL;
}

static void test_disk_when_threads_take_turns_then_each_has_a_ring(void **state)
{
    (void)state;
    struct place place;
    make_place(&place);
    struct turn turn = {.memory = map(131072)};
    assert_int_equal(open_disk(place.path, FILE_BYTES, &turn.disk, NULL), 0);
    assert_int_equal(disk_register_memory(turn.disk, turn.memory, 131072), 0);
    check_there_and_back(turn.disk, turn.memory, 1);
    for (uint32_t round = 0; round < 3; round++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, take_turn, &turn), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    check_there_and_back(turn.disk, turn.memory, 4);
    uint32_t flags, buffers;
    disk_uring_features(turn.disk, &flags, &buffers);
    assert_int_equal(buffers, 1); /* registered anew with each ring */
    disk_close(turn.disk);
    munmap(turn.memory, 131072);
    remove_place(&place);
}

static void test_open_when_another_process_has_it_then_busy(void **state)
{
    (void)state;
    struct place place;
    make_place(&place);
    struct disk *disk;
    assert_int_equal(open_disk(place.path, FILE_BYTES, &disk, NULL), 0);
    const pid_t child = fork();
    if (child == 0) {
        struct disk *other;
        struct error error = {0};
        const int status = open_disk(place.path, FILE_BYTES, &other, &error);
        _exit(status == -EBUSY && strstr(error.text, "another process") != NULL ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    disk_close(disk);
    remove_place(&place);
}

/* A process that is killed with requests on their way: their ring, and with it the lock, goes a
 * little later, which opening waits for. */
static void test_open_when_its_user_was_killed_then_waits_for_the_lock(void **state)
{
    (void)state;
    struct place place;
    make_place(&place);
    for (uint32_t round = 0; round < 10; round++) {
        int ready[2];
        assert_int_equal(pipe(ready), 0);
        const pid_t child = fork();
        if (child == 0) {
            struct disk *disk;
            uint8_t *memory = map(1 << 20);
            if (open_disk(place.path, FILE_BYTES, &disk, NULL) != 0) {
                _exit(1);
            }
            for (uint32_t index = 0; index < DEPTH; index++) {
                const struct disk_request request = {.operation = DISK_WRITE,
                                                     .bytes = 1 << 20,
                                                     .offset = (uint64_t)index << 20,
                                                     .buffer = memory};
                (void)disk_submit(disk, &request);
            }
            (void)!write(ready[1], "x", 1);
            (void)pause();
        }
        char byte;
        assert_int_equal(close(ready[1]), 0);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        assert_int_equal(close(ready[0]), 0);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        struct disk *disk;
        assert_int_equal(open_disk(place.path, 0, &disk, NULL), 0);
        disk_close(disk);
    }
    remove_place(&place);
}

static void test_store_when_on_a_file_then_formats_writes_and_reopens(void **state)
{
    (void)state;
    struct place place;
    make_place(&place);
    struct disk *disk;
    struct store *store;
    struct error error = {0};
    assert_int_equal(open_disk(place.path, FILE_BYTES, &disk, &error), 0);
    const struct store_format format = {.host_identity = 1};
    assert_int_equal(store_format(disk, &format, NULL, NULL, &error), 0);
    const struct store_config config = {.disk = disk, .keep_count = 2};
    assert_int_equal(store_open(&config, &store, NULL, &error), 0);
    const struct store_checkpoint about = {.id = 1};
    assert_int_equal(store_begin(store, &about, &error), 0);
    store_commit(store, 0);
    uint64_t tag;
    uint32_t count;
    enum store_state now;
    while ((now = store_poll(store, &tag, 1, &count, NANOSECONDS_PER_S)) == STORE_COMMITTING) {
    }
    assert_int_equal(now, STORE_DURABLE);
    store_close(store);
    disk_close(disk);
    assert_int_equal(open_disk(place.path, 0, &disk, &error), 0);
    const struct store_config again = {.disk = disk, .keep_count = 2};
    assert_int_equal(store_open(&again, &store, NULL, &error), 0);
    assert_int_equal(store_list(store, NULL, 0), 1);
    store_close(store);
    disk_close(disk);
    remove_place(&place);
}

/* 77 where this system has no io_uring or the folder no O_DIRECT. */
static int probe(void)
{
    struct place place;
    make_place(&place);
    struct disk *disk = NULL;
    struct error error = {0};
    const int status = open_disk(place.path, FILE_BYTES, &disk, &error);
    if (status == 0) {
        disk_close(disk);
    }
    remove_place(&place);
    if (status == -EPERM || status == -ENOSYS || status == -EINVAL) {
        (void)printf("skipped: %s\n", error.text);
        return 77;
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_when_flushed_then_reads_back),
        cmocka_unit_test(test_submit_when_depth_is_reached_then_refused),
        cmocka_unit_test(test_disk_when_threads_take_turns_then_each_has_a_ring),
        cmocka_unit_test(test_open_when_another_process_has_it_then_busy),
        cmocka_unit_test(test_open_when_its_user_was_killed_then_waits_for_the_lock),
        cmocka_unit_test(test_store_when_on_a_file_then_formats_writes_and_reopens),
    };
    const int status = probe();
    return status != 0 ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
