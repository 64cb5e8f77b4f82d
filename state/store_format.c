/* SPDX-License-Identifier: Apache-2.0 */
/* Formatting: what a disk holds already, and writing every slot once.
 *
 * First all superblocks say "formatting", then all else is zeroed, then an empty root is written,
 * and last the superblocks: after a crash at any point the disk is either a store or one whose
 * formatting was interrupted, which may be formatted again without force. */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "state/store_internal.h"

#define ZERO_BYTES (UINT32_C(1) << 20)
#define BATCH      16U

static bool is_zero(const uint8_t *data, size_t bytes)
{
    ASSERT(bytes != 0);
    return data[0] == 0 && memcmp(data, data + 1, bytes - 1) == 0;
}

/* Counts the superblocks that agree with one. */
static uint32_t count_agreeing(const struct store_superblock *blocks, const bool *is_whole,
                               const struct store_superblock *one)
{
    ASSERT(one->store_id != 0);
    uint32_t count = 0;
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        const struct store_superblock *other = &blocks[zone];
        count += is_whole[zone] && other->store_id == one->store_id && other->stage == one->stage &&
                 other->bytes == one->bytes && other->identity == one->identity;
    }
    return count;
}

/* Two groups of two can stand side by side only after a crash while the superblocks were written
 * over: then the one that is formatted, and of two such the one of zone 0 on, is as good. */
static void choose_superblock(struct store_probe *probe, const struct store_layout *layout)
{
    struct store_superblock blocks[STORE_ZONES];
    bool is_whole[STORE_ZONES] = {false};
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        if (probe->zones[zone] == NULL) {
            continue;
        }
        is_whole[zone] = store_superblock_check(probe->zones[zone], zone, &blocks[zone]);
        if (!is_whole[zone]) {
            const struct store_superblock *block = &blocks[zone];
            if (block->magic == STORE_MAGIC_SUPERBLOCK && block->version != STORE_VERSION) {
                probe->other_version = block->version;
            }
            continue;
        }
        probe->whole++;
        probe->formatting += blocks[zone].stage == STORE_STAGE_FORMATTING;
        if (blocks[zone].bytes != layout->bytes) {
            probe->other_bytes = blocks[zone].bytes;
        }
    }
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        if (!is_whole[zone] || blocks[zone].stage != STORE_STAGE_FORMATTED) {
            continue;
        }
        const uint32_t copies = count_agreeing(blocks, is_whole, &blocks[zone]);
        if (copies >= STORE_AGREE && copies > probe->copies) {
            probe->copies = copies;
            probe->superblock = blocks[zone];
        }
    }
}

int store_probe_read(struct disk *disk, const struct store_layout *layout, struct store_probe *out,
                     struct error *error)
{
    ASSERT(disk->bytes >= layout->bytes);
    *out = (struct store_probe){.memory = store_io_buffer((size_t)STORE_ZONES * EXTENT_BYTES)};
    if (out->memory == NULL) {
        return error_set(error, -ENOMEM, "no memory to read the checkpoint disk");
    }
    /* A predecessor that crashed may have left what is readable and not durable. */
    int status = store_io_flush(disk, error);
    if (status != 0) {
        free(out->memory);
        return status;
    }
    struct disk_request requests[STORE_ZONES];
    int64_t results[STORE_ZONES];
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        requests[zone] =
            (struct disk_request){.operation = DISK_READ,
                                  .bytes = EXTENT_BYTES,
                                  .offset = store_layout_slot(layout->zone_slots[zone]),
                                  .buffer = out->memory + (size_t)zone * EXTENT_BYTES};
    }
    store_io_run(disk, requests, results, STORE_ZONES);
    out->is_zero = true;
    uint32_t readable = 0;
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        const bool is_whole = results[zone] == EXTENT_BYTES;
        out->zones[zone] = is_whole ? requests[zone].buffer : NULL;
        readable += is_whole;
        out->is_zero = out->is_zero && is_whole && is_zero(requests[zone].buffer, EXTENT_BYTES);
    }
    out->is_unreadable = readable < STORE_AGREE;
    choose_superblock(out, layout);
    return 0;
}

/* Refuses to write over what is not ours. */
static int refuse_foreign(struct disk *disk, const struct store_layout *layout, struct error *error)
{
    struct store_probe probe;
    int status = store_probe_read(disk, layout, &probe, error);
    if (status != 0) {
        return status;
    }
    if (probe.is_unreadable || (probe.zones[0] == NULL && probe.whole == 0)) {
        status = error_set(error, -EIO, "the disk cannot be read, so it is not formatted");
    } else if (probe.other_version != 0) {
        status = error_set(error, -EEXIST,
                           "the disk holds checkpoints of format version %u; formatting would "
                           "destroy them (force it to do so)",
                           probe.other_version);
    } else if (!probe.is_zero && probe.whole == 0) {
        const char *name = store_foreign_name(probe.zones[0]);
        status = error_set(error, -EEXIST,
                           "the disk holds %s; formatting would destroy it (force it to do so)",
                           name != NULL ? name : "data of something else");
    }
    free(probe.memory);
    return status;
}

static int write_superblocks(struct disk *disk, const struct store_layout *layout,
                             const struct store_superblock *fields, uint8_t *buffer,
                             struct error *error)
{
    ASSERT(fields->stage != 0);
    struct disk_request requests[STORE_ZONES];
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        uint8_t *block = buffer + (size_t)zone * STORE_BLOCK_BYTES;
        store_superblock_fill(block, fields, zone);
        requests[zone] =
            (struct disk_request){.operation = DISK_WRITE,
                                  .bytes = STORE_BLOCK_BYTES,
                                  .offset = store_layout_slot(layout->zone_slots[zone]),
                                  .buffer = block};
    }
    const int status = store_io_all(disk, requests, STORE_ZONES, error);
    return status != 0 ? status : store_io_flush(disk, error);
}

/* The bytes from offset on that may be zeroed in one request, past a superblock that starts there.
 */
static uint32_t zero_span(const struct store_layout *layout, uint64_t *offset)
{
    uint64_t end = *offset + ZERO_BYTES < layout->bytes ? *offset + ZERO_BYTES : layout->bytes;
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        const uint64_t start = store_layout_slot(layout->zone_slots[zone]);
        if (start == *offset) {
            *offset += STORE_BLOCK_BYTES;
        } else if (start > *offset && start < end) {
            end = start;
        }
    }
    ASSERT(end > *offset && end - *offset <= ZERO_BYTES);
    return (uint32_t)(end - *offset);
}

/* Everything but the superblocks. */
static int zero_slots(struct disk *disk, const struct store_layout *layout, uint8_t *zeros,
                      void (*progress)(void *context, double share), void *context,
                      struct error *error)
{
    memset(zeros, 0, ZERO_BYTES);
    struct disk_request requests[BATCH];
    uint64_t offset = 0;
    while (offset < layout->bytes) {
        uint32_t count = 0;
        while (count < BATCH && offset < layout->bytes) {
            const uint32_t bytes = zero_span(layout, &offset);
            requests[count++] = (struct disk_request){
                .operation = DISK_WRITE, .bytes = bytes, .offset = offset, .buffer = zeros};
            offset += bytes;
        }
        const int status = store_io_all(disk, requests, count, error);
        if (status != 0) {
            return status;
        }
        if (progress != NULL) {
            progress(context, (double)offset / (double)layout->bytes);
        }
    }
    ASSERT(offset == layout->bytes);
    return store_io_flush(disk, error);
}

static int write_first_root(struct disk *disk, const struct store_layout *layout, uint64_t store_id,
                            uint8_t *buffer, struct error *error)
{
    struct store_root *root = (struct store_root *)(void *)buffer;
    memset(buffer, 0, STORE_ROOT_BYTES_MAX);
    root->store_id = store_id;
    root->generation = 1;
    const uint32_t bytes = store_root_seal(root);
    struct disk_request requests[STORE_ZONES];
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        requests[zone] = (struct disk_request){.operation = DISK_WRITE,
                                               .bytes = bytes,
                                               .offset = store_layout_root(layout, zone, 1),
                                               .buffer = buffer};
    }
    const int status = store_io_all(disk, requests, STORE_ZONES, error);
    return status != 0 ? status : store_io_flush(disk, error);
}

static uint64_t draw_id(void)
{
    uint64_t id = 0;
    while (id == 0 && getrandom(&id, sizeof(id), 0) == (ssize_t)sizeof(id)) {
    }
    return id != 0 ? id : 1;
}

int store_format(struct disk *disk, const struct store_format *format,
                 void (*progress)(void *context, double share), void *context, struct error *error)
{
    ASSERT(disk != NULL && format != NULL);
    struct store_layout layout;
    if (!store_layout_init(&layout, disk->bytes)) {
        return error_set(error, -EINVAL, "a disk of %llu bytes is %s for checkpoints (least: %llu)",
                         (unsigned long long)disk->bytes,
                         disk->bytes < STORE_SLOTS_MIN * (uint64_t)EXTENT_BYTES ? "too small"
                                                                                : "too big",
                         (unsigned long long)STORE_SLOTS_MIN * EXTENT_BYTES);
    }
    int status = format->force ? 0 : refuse_foreign(disk, &layout, error);
    if (status != 0) {
        return status;
    }
    uint8_t *buffer = store_io_buffer(ZERO_BYTES);
    if (buffer == NULL) {
        return error_set(error, -ENOMEM, "no memory to format the disk");
    }
    struct store_superblock fields = {
        .store_id = format->store_id != 0 ? format->store_id : draw_id(),
        .bytes = layout.bytes,
        .identity = disk->identity,
        .host_identity = format->host_identity,
        .stage = STORE_STAGE_FORMATTING,
    };
    status = write_superblocks(disk, &layout, &fields, buffer, error);
    status = status != 0 ? status : zero_slots(disk, &layout, buffer, progress, context, error);
    status = status != 0 ? status : write_first_root(disk, &layout, fields.store_id, buffer, error);
    fields.stage = STORE_STAGE_FORMATTED;
    status = status != 0 ? status : write_superblocks(disk, &layout, &fields, buffer, error);
    free(buffer);
    return status;
}
