/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait, for formatting, opening, reading and pruning. */
#include <errno.h>
#include <stdlib.h>

#include "state/store_internal.h"

#define REAP_MAX 64U

uint8_t *store_io_buffer(size_t bytes)
{
    ASSERT(bytes != 0 && bytes % DISK_ALIGN_BYTES == 0);
    return aligned_alloc(DISK_ALIGN_BYTES, bytes);
}

void store_io_run(struct disk *disk, const struct disk_request *requests, int64_t *results,
                  uint32_t count)
{
    ASSERT(disk->in_flight == 0);
    struct disk_completion done[REAP_MAX];
    uint32_t submitted = 0, finished = 0;
    while (finished < count) {
        while (submitted < count) {
            struct disk_request request = requests[submitted];
            request.tag = submitted;
            if (!disk_submit(disk, &request)) {
                break;
            }
            submitted++;
        }
        const uint32_t got = disk_reap(disk, done, REAP_MAX, NANOSECONDS_PER_S);
        for (uint32_t index = 0; index < got; index++) {
            ASSERT(done[index].tag < submitted);
            results[done[index].tag] = done[index].result;
        }
        finished += got;
    }
    ASSERT(disk->in_flight == 0);
}

int store_io_explain(struct error *error, uint32_t operation, uint64_t offset, uint32_t bytes,
                     int64_t result)
{
    ASSERT(operation >= DISK_READ && operation <= DISK_FLUSH);
    if (operation == DISK_FLUSH) {
        return error_set(error, -EIO, "the disk failed to make its writes durable: %s",
                         strerror((int)-result));
    }
    const char *verb = operation == DISK_READ ? "read" : "write";
    if (result < 0) {
        return error_set(error, -EIO, "the disk failed to %s %u bytes at offset %llu: %s", verb,
                         bytes, (unsigned long long)offset, strerror((int)-result));
    }
    return error_set(error, -EIO, "the disk did %lld of %u bytes of a %s at offset %llu",
                     (long long)result, bytes, verb, (unsigned long long)offset);
}

int store_io_all(struct disk *disk, const struct disk_request *requests, uint32_t count,
                 struct error *error)
{
    ASSERT(count != 0 && count <= REAP_MAX);
    int64_t results[REAP_MAX];
    store_io_run(disk, requests, results, count);
    for (uint32_t index = 0; index < count; index++) {
        const struct disk_request *request = &requests[index];
        if (results[index] != (int64_t)request->bytes) {
            return store_io_explain(error, request->operation, request->offset, request->bytes,
                                    results[index]);
        }
    }
    return 0;
}

int store_io_flush(struct disk *disk, struct error *error)
{
    ASSERT(disk != NULL);
    const struct disk_request flush = {.operation = DISK_FLUSH};
    return store_io_all(disk, &flush, 1, error);
}
