/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a checkpoint, one step a poll.
 *
 *     EXTENTS -> PAYLOAD -> PAYLOAD_FLUSH -> ROOT -> ROOT_FLUSH -> durable
 *        |          |             |           |          |
 *        +----------+-------------+           +----------+-> REVOKE -> REVOKE_FLUSH
 *                   failed: slots are free                 failed: slots are held
 *
 * Once a copy of the root has been handed to the disk, a failure leaves open whether the checkpoint
 * exists; so a newer root without it is written before the failure is told (invariant 6). */
#include <errno.h>

#include "state/store_internal.h"

static struct store_piece *piece_now(const struct store_writer *writer)
{
    return (struct store_piece *)(void *)writer->pieces[writer->piece_number % STORE_PIECES];
}

static void start_piece(struct store *store)
{
    struct store_writer *writer = &store->writer;
    ASSERT(!writer->piece_is_busy[writer->piece_number % STORE_PIECES]);
    writer->piece_slot = store_slots_pop(&store->slots, &store->free);
    ASSERT(writer->piece_slot != STORE_SLOT_NONE);
    store_slots_push(&store->slots, &writer->pending.slots, writer->piece_slot);
    *piece_now(writer) = (struct store_piece){.store_id = store->superblock.store_id,
                                              .checkpoint = writer->pending.entry.about.id,
                                              .number = writer->piece_number,
                                              .previous = writer->previous};
}

static int check_base(struct store *store, const struct store_checkpoint *checkpoint,
                      struct error *error)
{
    const unsigned long long base_id = checkpoint->base_id;
    if (base_id != 0 && store_catalog_find(store, base_id) == NULL) {
        return error_set(error, -ENOENT, "checkpoint %llu, to build on, is not retained", base_id);
    }
    if (base_id != 0 && store_catalog_chain(store, base_id) >= STORE_CHAIN_MAX) {
        return error_set(error, -EMLINK, "checkpoint %llu has %u below it already: take a full one",
                         base_id, STORE_CHAIN_MAX);
    }
    return 0;
}

int store_begin(struct store *store, const struct store_checkpoint *checkpoint, struct error *error)
{
    struct store_writer *writer = &store->writer;
    if (writer->phase != STORE_PHASE_IDLE) {
        return error_set(error, -EBUSY, "another checkpoint is being written");
    }
    if (store->is_read_only) {
        return error_set(error, -EROFS, "the store was opened for reading only");
    }
    if (checkpoint->id <= store->id_max || checkpoint->base_id >= checkpoint->id) {
        return error_set(error, -EINVAL, "checkpoint %llu is not above %llu",
                         (unsigned long long)checkpoint->id, (unsigned long long)store->id_max);
    }
    int status = check_base(store, checkpoint, error);
    if (status != 0) {
        return status;
    }
    const struct store_entry entry = {.about = *checkpoint};
    if (store_catalog_retain(store, &entry) > STORE_CHECKPOINTS_MAX) {
        return error_set(error, -ENOSPC, "%u checkpoints are kept already: prune savepoints",
                         store->kept_count);
    }
    if (store->free.count < 2) { /* a piece of the manifest and one extent */
        return error_set(error, -ENOSPC, "no free slots on the disk: %llu of %u are free",
                         (unsigned long long)store->free.count, store->layout.slot_count);
    }
    ASSERT(writer->in_flight == 0 && writer->pending.slots.count == 0);
    writer->phase = STORE_PHASE_EXTENTS;
    writer->is_failed = false;
    writer->is_revoke_failed = false;
    writer->failure = (struct error){.text = ""};
    writer->pending.entry = entry;
    writer->pending.entry.about.bytes = 0;
    writer->pending.entry.about.extent_count = 0;
    writer->pending.entry.about.label[STORE_LABEL_BYTES - 1] = '\0';
    writer->piece_number = 0;
    writer->previous = (struct store_ref){.slot = STORE_SLOT_NONE};
    start_piece(store);
    return 0;
}

/* Hands one request to the disk and notes it.
 * op  copied */
static void submit(struct store *store, enum disk_operation operation, const struct store_op *op,
                   const uint8_t *buffer)
{
    struct store_writer *writer = &store->writer;
    uint32_t index = 0;
    while (writer->ops[index].kind != 0) {
        index++;
        ASSERT(index < STORE_IN_FLIGHT_MAX);
    }
    const struct disk_request request = {
        .operation = operation,
        .bytes = op->bytes,
        .offset = op->offset,
        .buffer = (uint8_t *)(uintptr_t)buffer,
        .tag = index,
    };
    const bool is_taken = disk_submit(store->disk, &request);
    ASSERT(is_taken); /* room was looked for */
    writer->ops[index] = *op;
    writer->in_flight++;
}

static bool has_room(const struct store *store, uint32_t count)
{
    const uint32_t most =
        store->disk->depth_max < STORE_IN_FLIGHT_MAX ? store->disk->depth_max : STORE_IN_FLIGHT_MAX;
    ASSERT(store->writer.in_flight == store->disk->in_flight);
    return store->writer.in_flight + count <= most;
}

/* Writes the piece that is full, or the last one. */
static void close_piece(struct store *store)
{
    struct store_writer *writer = &store->writer;
    const uint32_t buffer = writer->piece_number % STORE_PIECES;
    struct store_piece *piece = piece_now(writer);
    const uint32_t bytes = store_piece_seal(piece);
    writer->previous = (struct store_ref){
        .sum = checksum_of(piece, bytes), .slot = writer->piece_slot, .bytes = bytes};
    ASSERT(store_layout_ref_check(&store->layout, &writer->previous));
    writer->piece_is_busy[buffer] = true;
    const struct store_op op = {.kind = STORE_OP_PIECE,
                                .bytes = bytes,
                                .slot = writer->piece_slot,
                                .piece = buffer,
                                .offset = store_layout_slot(writer->piece_slot)};
    submit(store, DISK_WRITE, &op, writer->pieces[buffer]);
}

/* Makes place for one more line in the manifest, and for its extent. */
static int reserve(struct store *store)
{
    struct store_writer *writer = &store->writer;
    if (!has_room(store, 2)) {
        return -EAGAIN;
    }
    if (piece_now(writer)->extent_count < store->piece_extents_max) {
        return store->free.count >= 1 ? 0 : -ENOSPC;
    }
    if (store->free.count < 2) {
        return -ENOSPC;
    }
    if (writer->piece_is_busy[(writer->piece_number + 1) % STORE_PIECES]) {
        return -EAGAIN;
    }
    close_piece(store);
    writer->piece_number++;
    start_piece(store);
    return 0;
}

int store_append(struct store *store, const uint8_t *extent, uint64_t tag)
{
    struct store_writer *writer = &store->writer;
    ASSERT(writer->phase == STORE_PHASE_EXTENTS);
    if (writer->is_failed) {
        return -EIO;
    }
    const int status = reserve(store);
    if (status != 0) {
        return status;
    }
    const uint32_t bytes = extent_bytes(extent);
    ASSERT(extent_check(extent, bytes));
    struct extent_header head;
    memcpy(&head, extent, sizeof(head));
    ASSERT(head.checkpoint == writer->pending.entry.about.id);
    const uint32_t slot = store_slots_pop(&store->slots, &store->free); /* invariant 1 */
    ASSERT(store_layout_is_data(&store->layout, slot));
    store_slots_push(&store->slots, &writer->pending.slots, slot);
    struct store_piece *piece = piece_now(writer);
    piece->extents[piece->extent_count++] = (struct store_extent){
        .ref = {.sum = checksum_of(extent, bytes), .slot = slot, .bytes = bytes},
        .lane = head.lane,
        .kind = head.kind};
    writer->pending.entry.about.extent_count++;
    writer->pending.entry.about.bytes += bytes;
    const struct store_op op = {.kind = STORE_OP_EXTENT,
                                .bytes = bytes,
                                .slot = slot,
                                .offset = store_layout_slot(slot),
                                .tag = tag};
    submit(store, DISK_WRITE, &op, extent);
    return 0;
}

static void submit_last_piece(struct store *store)
{
    struct store_writer *writer = &store->writer;
    close_piece(store);
    writer->pending.entry.manifest = writer->previous;
    writer->pending.entry.piece_count = writer->piece_number + 1;
    ASSERT(writer->pending.slots.count ==
           writer->pending.entry.about.extent_count + writer->pending.entry.piece_count);
}

void store_commit(struct store *store, uint64_t duration_ns)
{
    struct store_writer *writer = &store->writer;
    ASSERT(writer->phase == STORE_PHASE_EXTENTS);
    writer->pending.entry.about.duration_ns = duration_ns;
    writer->phase = STORE_PHASE_PAYLOAD;
    if (!writer->is_failed && has_room(store, 1)) {
        submit_last_piece(store);
    }
}

void store_abort(struct store *store)
{
    struct store_writer *writer = &store->writer;
    if (writer->phase == STORE_PHASE_IDLE || writer->is_failed) {
        return;
    }
    ASSERT(writer->phase < STORE_PHASE_REVOKE);
    writer->is_failed = true;
    (void)error_set(&writer->failure, 0, "checkpoint %llu was given up",
                    (unsigned long long)writer->pending.entry.about.id);
}

const struct error *store_failure(const struct store *store)
{
    ASSERT(store != NULL);
    return &store->writer.failure;
}

/* Reads the result of one request: invariant 4. */
static void complete(struct store *store, const struct store_op *op, int64_t result)
{
    struct store_writer *writer = &store->writer;
    if (op->kind == STORE_OP_PIECE) {
        writer->piece_is_busy[op->piece] = false;
    }
    if (result == (int64_t)op->bytes) {
        return;
    }
    const bool is_flush = op->kind == STORE_OP_FLUSH;
    if (!writer->is_failed) {
        (void)store_io_explain(&writer->failure, is_flush ? DISK_FLUSH : DISK_WRITE, op->offset,
                               op->bytes, result);
    }
    writer->is_failed = true;
    writer->is_revoke_failed |= writer->phase >= STORE_PHASE_REVOKE;
    if (op->kind == STORE_OP_EXTENT || op->kind == STORE_OP_PIECE) {
        const bool is_ours = store_slots_remove(&store->slots, &writer->pending.slots, op->slot);
        ASSERT(is_ours);
        store_slots_push(&store->slots, &store->retired, op->slot);
    }
}

static void submit_flush(struct store *store, enum store_phase phase)
{
    ASSERT(store->writer.in_flight == 0); /* a flush covers what was reaped before it */
    const struct store_op op = {.kind = STORE_OP_FLUSH};
    submit(store, DISK_FLUSH, &op, NULL);
    store->writer.phase = phase;
}

static void submit_root(struct store *store, const struct store_entry *pending,
                        enum store_phase phase)
{
    (void)store_catalog_retain(store, pending);
    struct disk_request requests[STORE_ZONES];
    store_catalog_root_requests(store, store_catalog_root(store, pending), requests);
    for (uint32_t zone = 0; zone < STORE_ZONES; zone++) {
        const struct store_op op = {
            .kind = STORE_OP_ROOT, .bytes = requests[zone].bytes, .offset = requests[zone].offset};
        submit(store, DISK_WRITE, &op, requests[zone].buffer);
    }
    store->writer.phase = phase;
}

/* Ends a failed checkpoint. Where its root may stand on the disk, its slots must wait. */
static enum store_state end_failed(struct store *store, bool has_root)
{
    struct store_writer *writer = &store->writer;
    ASSERT(writer->in_flight == 0 && writer->is_failed);
    store_slots_splice(&store->slots, has_root ? &store->held : &store->free,
                       &writer->pending.slots);
    writer->phase = STORE_PHASE_IDLE;
    return STORE_FAILED;
}

static enum store_state end_durable(struct store *store)
{
    ASSERT(!store->writer.is_failed && store->writer.in_flight == 0);
    store_catalog_root_done(store, true);
    store_catalog_apply(store, &store->writer.pending);
    store->writer.phase = STORE_PHASE_IDLE;
    return STORE_DURABLE;
}

/* The root that takes a failed checkpoint back is durable, or is not either. */
static enum store_state end_revoked(struct store *store, bool is_revoked)
{
    store_catalog_root_done(store, is_revoked);
    if (is_revoked) {
        store_catalog_apply(store, NULL);
    } else {
        store->is_uncertain = true;
    }
    return end_failed(store, !is_revoked);
}

/* Goes on where nothing is in flight any more. */
static enum store_state step(struct store *store)
{
    struct store_writer *writer = &store->writer;
    const bool is_failed = writer->is_failed;
    ASSERT(writer->in_flight == 0);
    switch (writer->phase) {
    case STORE_PHASE_IDLE:
        return STORE_IDLE;
    case STORE_PHASE_EXTENTS:
        return is_failed ? end_failed(store, false) : STORE_WRITING;
    case STORE_PHASE_PAYLOAD:
        if (is_failed) {
            return end_failed(store, false);
        }
        if (writer->pending.entry.piece_count == 0) {
            submit_last_piece(store);
        } else {
            submit_flush(store, STORE_PHASE_PAYLOAD_FLUSH);
        }
        break;
    case STORE_PHASE_PAYLOAD_FLUSH:
        if (is_failed) {
            return end_failed(store, false);
        }
        submit_root(store, &writer->pending.entry, STORE_PHASE_ROOT); /* invariant 2 */
        break;
    case STORE_PHASE_ROOT:
    case STORE_PHASE_ROOT_FLUSH:
        if (is_failed) {
            store_catalog_root_done(store, false);
            submit_root(store, NULL, STORE_PHASE_REVOKE);
        } else if (writer->phase == STORE_PHASE_ROOT) {
            submit_flush(store, STORE_PHASE_ROOT_FLUSH);
        } else {
            return end_durable(store);
        }
        break;
    case STORE_PHASE_REVOKE:
        if (writer->is_revoke_failed) {
            return end_revoked(store, false);
        }
        submit_flush(store, STORE_PHASE_REVOKE_FLUSH);
        break;
    case STORE_PHASE_REVOKE_FLUSH:
        return end_revoked(store, !writer->is_revoke_failed);
    }
    return STORE_COMMITTING;
}

enum store_state store_poll(struct store *store, uint64_t *tags, uint32_t tag_max,
                            uint32_t *tag_count, uint64_t wait_ns)
{
    ASSERT(tags != NULL && tag_max != 0 && tag_count != NULL);
    struct store_writer *writer = &store->writer;
    struct disk_completion done[STORE_IN_FLIGHT_MAX];
    uint32_t got = 0;
    *tag_count = 0;
    if (writer->in_flight != 0) {
        const uint32_t most = tag_max < STORE_IN_FLIGHT_MAX ? tag_max : STORE_IN_FLIGHT_MAX;
        got = disk_reap(store->disk, done, most, wait_ns);
    }
    for (uint32_t index = 0; index < got; index++) {
        ASSERT(done[index].tag < STORE_IN_FLIGHT_MAX);
        struct store_op *op = &writer->ops[done[index].tag];
        ASSERT(op->kind != 0);
        if (op->kind == STORE_OP_EXTENT) {
            tags[(*tag_count)++] = op->tag;
        }
        complete(store, op, done[index].result);
        op->kind = 0;
        writer->in_flight--;
    }
    if (writer->in_flight == 0) {
        return step(store);
    }
    return writer->phase == STORE_PHASE_EXTENTS ? STORE_WRITING : STORE_COMMITTING;
}
