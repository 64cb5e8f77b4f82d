/* SPDX-License-Identifier: Apache-2.0 */
/* Facts as bytes and back; see facts.h for what they are. An item's body is the struct as it lies
 * in memory, for none of them has padding; of a partition only as much of the topic's name as there
 * is, since a lane may read thousands.
 *
 * Reading trusts nothing: each length is checked against what is left and against its kind, each
 * name for its end, each enumeration for its values. */
#include "dataplane/facts.h"

#include <errno.h>

#define HEAD_BYTES      8U
#define ITEM_HEAD_BYTES 8U

struct item_head {
    uint16_t kind; /* enum facts_kind */
    uint16_t zero;
    uint32_t bytes; /* of the body, its padding to 8 apart */
};

static_assert(sizeof(struct item_head) == ITEM_HEAD_BYTES, "part of the checkpoint format");
static_assert(sizeof(struct facts_partition) == 304, "part of the checkpoint format");
static_assert(sizeof(struct facts_source) == 40, "part of the checkpoint format");
static_assert(sizeof(struct facts_node) == 32, "part of the checkpoint format");
static_assert(sizeof(struct facts_transaction) == 272, "part of the checkpoint format");

#define PARTITION_FIXED_BYTES offsetof(struct facts_partition, topic)

static size_t padded(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

void facts_begin(struct facts_writer *writer, struct span_mut into)
{
    ASSERT(into.data != NULL);
    ASSERT((uintptr_t)into.data % 8 == 0);
    *writer = (struct facts_writer){.into = into};
    if (into.bytes < HEAD_BYTES) {
        writer->is_full = true;
        return;
    }
    const uint32_t head[2] = {FACTS_MAGIC, FACTS_VERSION};
    memcpy(into.data, head, sizeof(head));
    writer->bytes = HEAD_BYTES;
}

/* How much of an item goes to disk. */
static uint32_t body_bytes(const struct facts_item *item)
{
    switch (item->kind) {
    case FACTS_PARTITION: {
        const size_t name = strnlen(item->partition.topic, sizeof(item->partition.topic));
        ASSERT(name != 0 && name <= FACTS_TOPIC_BYTES);
        return (uint32_t)(PARTITION_FIXED_BYTES + name + 1);
    }
    case FACTS_SOURCE:
        return sizeof(item->source);
    case FACTS_NODE:
        return sizeof(item->node);
    default:
        ASSERT(item->kind == FACTS_TRANSACTION);
        return sizeof(item->transaction);
    }
}

void facts_put(struct facts_writer *writer, const struct facts_item *item)
{
    ASSERT(writer->bytes <= writer->into.bytes);
    ASSERT(writer->bytes % 8 == 0);
    const struct item_head head = {.kind = (uint16_t)item->kind, .bytes = body_bytes(item)};
    const size_t body = padded(head.bytes);
    const size_t limit =
        writer->into.bytes < FACTS_BYTES_MAX ? writer->into.bytes : FACTS_BYTES_MAX;
    if (writer->is_full || ITEM_HEAD_BYTES + body > limit - writer->bytes) {
        writer->is_full = true;
        return;
    }
    uint8_t *at = writer->into.data + writer->bytes;
    memcpy(at, &head, sizeof(head));
    memcpy(at + ITEM_HEAD_BYTES, &item->partition, head.bytes);
    memset(at + ITEM_HEAD_BYTES + head.bytes, 0, body - head.bytes);
    writer->bytes += ITEM_HEAD_BYTES + body;
}

struct span facts_written(const struct facts_writer *writer)
{
    ASSERT(writer->bytes <= writer->into.bytes);
    ASSERT(writer->bytes <= FACTS_BYTES_MAX);
    return (struct span){.data = writer->into.data, .bytes = writer->bytes};
}

/* A name fills its bytes up to one NUL at the end, and is not empty. */
static bool is_name(const char *name, size_t bytes)
{
    return bytes > 1 && strnlen(name, bytes) == bytes - 1;
}

static bool check_partition(const struct facts_partition *partition, uint32_t bytes)
{
    ASSERT(bytes > PARTITION_FIXED_BYTES);
    ASSERT(bytes <= sizeof(*partition));
    return is_name(partition->topic, bytes - PARTITION_FIXED_BYTES) &&
           bytes - PARTITION_FIXED_BYTES <= FACTS_TOPIC_BYTES + 1 && partition->next_offset >= -1 &&
           partition->end_offset >= -1 && partition->leader_epoch >= -1 &&
           partition->has_ended <= 1 &&
           (partition->resume_rows == 0 || partition->next_offset >= 0);
}

static bool check_transaction(const struct facts_transaction *transaction)
{
    const size_t name =
        strnlen(transaction->transactional_id, sizeof(transaction->transactional_id));
    return name != 0 && name < sizeof(transaction->transactional_id) &&
           transaction->reserved == 0 && transaction->state >= FACTS_TRANSACTION_PREPARED &&
           transaction->state <= FACTS_TRANSACTION_POOLED;
}

/* The lengths that a kind may have. */
static bool check_bytes(uint16_t kind, uint32_t bytes)
{
    switch (kind) {
    case FACTS_PARTITION:
        return bytes > PARTITION_FIXED_BYTES && bytes <= sizeof(struct facts_partition);
    case FACTS_SOURCE:
        return bytes == sizeof(struct facts_source);
    case FACTS_NODE:
        return bytes == sizeof(struct facts_node);
    case FACTS_TRANSACTION:
        return bytes == sizeof(struct facts_transaction);
    default:
        return false;
    }
}

/* Reads the item at the start of rest.
 * returns  its bytes with head and padding, 0 when it is none */
static size_t read_item(struct span rest, struct facts_item *out)
{
    struct item_head head;
    if (rest.bytes < ITEM_HEAD_BYTES) {
        return 0;
    }
    memcpy(&head, rest.data, sizeof(head));
    if (head.zero != 0 || !check_bytes(head.kind, head.bytes) ||
        padded(head.bytes) > rest.bytes - ITEM_HEAD_BYTES) {
        return 0;
    }
    memset(out, 0, sizeof(*out));
    out->kind = (enum facts_kind)head.kind;
    memcpy(&out->partition, rest.data + ITEM_HEAD_BYTES, head.bytes);
    const bool is_good =
        (out->kind != FACTS_PARTITION || check_partition(&out->partition, head.bytes)) &&
        (out->kind != FACTS_SOURCE ||
         (out->source.is_incomplete <= 1 && out->source.reserved == 0)) &&
        (out->kind != FACTS_TRANSACTION || check_transaction(&out->transaction));
    return is_good ? ITEM_HEAD_BYTES + padded(head.bytes) : 0;
}

int facts_read(struct span bytes, bool (*visit)(void *context, const struct facts_item *item),
               void *context, struct error *error)
{
    ASSERT(visit != NULL);
    ASSERT(bytes.data != NULL || bytes.bytes == 0);
    uint32_t head[2];
    if (bytes.bytes < HEAD_BYTES || bytes.bytes > FACTS_BYTES_MAX) {
        return error_set(error, -EBADMSG, "a lane's facts have %zu bytes", bytes.bytes);
    }
    memcpy(head, bytes.data, sizeof(head));
    if (head[0] != FACTS_MAGIC || head[1] != FACTS_VERSION) {
        return error_set(error, -EBADMSG, "a lane's facts are of version %u, not %u", head[1],
                         FACTS_VERSION);
    }
    size_t at = HEAD_BYTES;
    while (at < bytes.bytes) {
        struct facts_item item;
        const size_t taken =
            read_item((struct span){.data = bytes.data + at, .bytes = bytes.bytes - at}, &item);
        if (taken == 0) {
            return error_set(error, -EBADMSG, "a lane's facts are damaged at byte %zu", at);
        }
        if (!visit(context, &item)) {
            return error_set(error, -ECANCELED, "a fact at byte %zu was refused", at);
        }
        at += taken;
    }
    return 0;
}
