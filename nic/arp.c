/* SPDX-License-Identifier: Apache-2.0 */
/* The cache is an array of a few dozen entries, scanned on a new connect and on ARP packets only:
 * connections keep the index of their next hop, so a segment finds its MAC address in O(1). */
#include "nic/arp.h"

#include <errno.h>
#include <stdlib.h>

#include "nic/ether.h"
#include "nic/ip4.h"
#include "nic/stack_internal.h"

static const uint8_t mac_broadcast[MAC_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t mac_none[MAC_BYTES];

int arp_init(struct arp *arp, uint32_t entry_count)
{
    ASSERT(arp != NULL);
    ASSERT(entry_count > 0);
    *arp = (struct arp){.entry_count = entry_count, .deadline_ns = UINT64_MAX};
    arp->entries = calloc(entry_count, sizeof(*arp->entries));
    return arp->entries == NULL ? -ENOMEM : 0;
}

void arp_fini(struct arp *arp)
{
    ASSERT(arp != NULL);
    free(arp->entries);
    *arp = (struct arp){0};
}

/* Whoever sent them has a timer; a drop here costs time, never bytes. */
static void pending_drop(struct stack *stack, struct arp_entry *entry)
{
    ASSERT(stack != NULL);
    ASSERT(entry->pending_count <= ARP_PENDING_MAX);
    for (uint32_t i = 0; i < entry->pending_count; i++) {
        stack->counters.tx_drop_neighbour++;
        stack_frame_drop(stack, &entry->pending[i]);
    }
    entry->pending_count = 0;
}

void arp_drain(struct stack *stack)
{
    ASSERT(stack != NULL);
    for (uint32_t i = 0; stack->arp.entries != NULL && i < stack->arp.entry_count; i++) {
        pending_drop(stack, &stack->arp.entries[i]);
    }
}

struct arp_packet {
    uint16_t operation;
    const uint8_t *frame_target; /* Ethernet destination */
    const uint8_t *target_mac;
    uint32_t sender_ip4;
    uint32_t target_ip4;
};

/* Returns false when no frame is free: the caller's retry timer is the remedy. */
static bool packet_send(struct stack *stack, const struct arp_packet *packet)
{
    ASSERT(stack != NULL);
    struct port_frame frame;
    ASSERT(packet->operation == ARP_OP_REQUEST || packet->operation == ARP_OP_REPLY);
    if (stack->tx_count == STACK_TX_MAX ||
        !port_tx_alloc(stack->port, stack->queue, ETHER_FRAME_MIN, &frame)) {
        stack->counters.tx_no_frame++;
        return false;
    }
    memset(frame.data, 0, ETHER_FRAME_MIN);
    ether_header_write(frame.data, packet->frame_target, stack->info->mac, ETHER_TYPE_ARP);
    uint8_t *arp = frame.data + ETHER_HEADER_BYTES;
    store_be16(arp, 1);
    store_be16(arp + 2, ETHER_TYPE_IP4);
    arp[4] = MAC_BYTES;
    arp[5] = 4;
    store_be16(arp + 6, packet->operation);
    memcpy(arp + 8, stack->info->mac, MAC_BYTES);
    store_be32(arp + 14, packet->sender_ip4);
    memcpy(arp + 18, packet->target_mac, MAC_BYTES);
    store_be32(arp + 24, packet->target_ip4);
    stack_frame_push(stack, &frame);
    return true;
}

static void request_send(struct stack *stack, const struct arp_entry *entry)
{
    ASSERT(stack != NULL);
    ASSERT(entry != NULL);
    bool unicast = entry->state == ARP_PROBE;
    struct arp_packet packet = {
        .operation = ARP_OP_REQUEST,
        .frame_target = unicast ? entry->mac : mac_broadcast,
        .target_mac = unicast ? entry->mac : mac_none,
        .sender_ip4 = stack->config.address_ip4,
        .target_ip4 = entry->ip4,
    };
    if (packet_send(stack, &packet)) {
        stack->counters.arp_requests++;
    }
}

/* The cache keeps only the earliest deadline; a later scan finds the others. */
static void deadline_set(struct stack *stack, struct arp_entry *entry, uint64_t delay_ms)
{
    ASSERT(stack != NULL);
    ASSERT(entry != NULL);
    entry->deadline_ns = stack->now_ns + delay_ms * 1000000;
    if (entry->deadline_ns < stack->arp.deadline_ns) {
        stack->arp.deadline_ns = entry->deadline_ns;
    }
}

static uint32_t entry_find(const struct arp *arp, uint32_t ip4)
{
    ASSERT(arp != NULL);
    for (uint32_t i = 0; i < arp->entry_count; i++) {
        if (arp->entries[i].state != ARP_FREE && arp->entries[i].ip4 == ip4) {
            return i;
        }
    }
    return ARP_INDEX_NONE;
}

/* A free entry, or the one that was not used for longest and holds nothing. */
static uint32_t entry_take(struct stack *stack)
{
    ASSERT(stack != NULL);
    const struct arp *arp = &stack->arp;
    uint32_t best = ARP_INDEX_NONE;
    for (uint32_t i = 0; i < arp->entry_count; i++) {
        const struct arp_entry *entry = &arp->entries[i];
        if (entry->state == ARP_FREE) {
            return i;
        }
        bool idle = entry->state != ARP_INCOMPLETE;
        if (idle && (best == ARP_INDEX_NONE || entry->used_ns < arp->entries[best].used_ns)) {
            best = i;
        }
    }
    return best;
}

/* The first question leaves at once, the others by arp_poll. */
static void entry_ask(struct stack *stack, struct arp_entry *entry, enum arp_state state)
{
    ASSERT(stack != NULL);
    ASSERT(state == ARP_INCOMPLETE || state == ARP_PROBE);
    entry->state = state;
    entry->tries = 1;
    deadline_set(stack, entry, stack->config.arp_retry_ms);
    request_send(stack, entry);
}

uint32_t arp_resolve(struct stack *stack, uint32_t ip4)
{
    ASSERT(stack != NULL);
    ASSERT(ip4 != 0);
    uint32_t index = entry_find(&stack->arp, ip4);
    if (index == ARP_INDEX_NONE) {
        index = entry_take(stack);
        if (index == ARP_INDEX_NONE) {
            return index;
        }
        ASSERT(stack->arp.entries[index].pending_count == 0);
        stack->arp.entries[index] = (struct arp_entry){.ip4 = ip4};
        entry_ask(stack, &stack->arp.entries[index], ARP_INCOMPLETE);
    } else if (stack->arp.entries[index].state == ARP_FAILED) {
        entry_ask(stack, &stack->arp.entries[index], ARP_INCOMPLETE);
    }
    stack->arp.entries[index].used_ns = stack->now_ns;
    return index;
}

uint32_t arp_refresh(struct stack *stack, uint32_t index, uint32_t ip4)
{
    ASSERT(stack != NULL);
    if (LIKELY(index < stack->arp.entry_count)) {
        const struct arp_entry *entry = &stack->arp.entries[index];
        if (entry->ip4 == ip4 && entry->state != ARP_FREE && entry->state != ARP_FAILED) {
            return index;
        }
    }
    return arp_resolve(stack, ip4);
}

static bool has_mac(const struct arp_entry *entry)
{
    ASSERT(entry != NULL);
    return entry->state == ARP_REACHABLE || entry->state == ARP_PROBE;
}

void arp_send(struct stack *stack, uint32_t index, struct port_frame *frame)
{
    ASSERT(stack != NULL);
    ASSERT(index < stack->arp.entry_count);
    struct arp_entry *entry = &stack->arp.entries[index];
    entry->used_ns = stack->now_ns;
    if (LIKELY(has_mac(entry))) {
        ether_header_write(frame->data, entry->mac, stack->info->mac, ETHER_TYPE_IP4);
        stack_frame_push(stack, frame);
        return;
    }
    if (entry->state != ARP_INCOMPLETE) {
        stack->counters.tx_drop_neighbour++;
        stack_frame_drop(stack, frame);
        return;
    }
    if (entry->pending_count == ARP_PENDING_MAX) {
        stack->counters.tx_drop_neighbour++;
        stack_frame_drop(stack, &entry->pending[0]);
        entry->pending_count--;
        memmove(entry->pending, entry->pending + 1, sizeof(*frame) * entry->pending_count);
    }
    entry->pending[entry->pending_count++] = *frame;
}

static void entry_reachable(struct stack *stack, struct arp_entry *entry)
{
    ASSERT(stack != NULL);
    ASSERT(entry != NULL);
    entry->state = ARP_REACHABLE;
    entry->tries = 0;
    deadline_set(stack, entry, stack->config.arp_reachable_ms);
}

void arp_confirm(struct stack *stack, uint32_t index, uint32_t ip4)
{
    ASSERT(stack != NULL);
    if (index >= stack->arp.entry_count) {
        return;
    }
    struct arp_entry *entry = &stack->arp.entries[index];
    if (entry->ip4 == ip4 && has_mac(entry)) {
        entry_reachable(stack, entry);
    }
}

/* The burst may be full already: a frame that finds no place is dropped like any unsent one. */
static void pending_send(struct stack *stack, struct arp_entry *entry)
{
    ASSERT(stack != NULL);
    ASSERT(has_mac(entry));
    for (uint32_t i = 0; i < entry->pending_count; i++) {
        struct port_frame *frame = &entry->pending[i];
        ether_header_write(frame->data, entry->mac, stack->info->mac, ETHER_TYPE_IP4);
        if (stack->tx_count == STACK_TX_MAX) {
            stack->counters.tx_drop_neighbour++;
            stack_frame_drop(stack, frame);
        } else {
            stack_frame_push(stack, frame);
        }
    }
    entry->pending_count = 0;
}

/* A changed address counts as an update only where one was in use before. */
static void entry_learn(struct stack *stack, struct arp_entry *entry, const uint8_t *mac)
{
    ASSERT(stack != NULL);
    ASSERT(entry != NULL);
    bool changed = memcmp(entry->mac, mac, MAC_BYTES) != 0;
    if (changed && has_mac(entry)) {
        stack->counters.arp_updates++;
    }
    memcpy(entry->mac, mac, MAC_BYTES);
    entry_reachable(stack, entry);
    pending_send(stack, entry);
}

/* Ethernet and IPv4 only, and no group address as a sender. */
static bool packet_is_valid(const struct stack *stack, struct span packet)
{
    ASSERT(stack != NULL);
    const uint8_t *arp = packet.data;
    return packet.bytes >= ARP_BYTES && load_be16(arp) == 1 &&
           load_be16(arp + 2) == ETHER_TYPE_IP4 && arp[4] == MAC_BYTES && arp[5] == 4 &&
           (arp[8] & 1) == 0 && stack->config.address_ip4 != 0;
}

bool arp_input(struct stack *stack, struct span packet)
{
    ASSERT(stack != NULL);
    if (!packet_is_valid(stack, packet)) {
        return false;
    }
    const uint8_t *sender_mac = packet.data + 8;
    uint16_t operation = load_be16(packet.data + 6);
    uint32_t sender_ip4 = load_be32(packet.data + 14);
    uint32_t target_ip4 = load_be32(packet.data + 24);
    uint32_t own_ip4 = stack->config.address_ip4;
    bool used = false;
    if (sender_ip4 == own_ip4 && memcmp(sender_mac, stack->info->mac, MAC_BYTES) != 0) {
        stack->counters.arp_conflicts++;
        return true;
    }
    uint32_t index = entry_find(&stack->arp, sender_ip4);
    if (index != ARP_INDEX_NONE && sender_ip4 != 0) {
        entry_learn(stack, &stack->arp.entries[index], sender_mac);
        used = true;
    }
    if (operation == ARP_OP_REQUEST && target_ip4 == own_ip4) {
        struct arp_packet reply = {
            .operation = ARP_OP_REPLY,
            .frame_target = sender_mac,
            .target_mac = sender_mac,
            .sender_ip4 = own_ip4,
            .target_ip4 = sender_ip4,
        };
        /* Every lane sees a shared request; the lane of queue 0 answers for all. */
        if (stack->queue == 0 && packet_send(stack, &reply)) {
            stack->counters.arp_replies++;
        }
        used = true;
    }
    return used;
}

/* Negative for a moment: a burst of connects to a dead host asks once a second, not once each. */
static void entry_fail(struct stack *stack, struct arp_entry *entry)
{
    ASSERT(stack != NULL);
    ASSERT(entry != NULL);
    entry->state = ARP_FAILED;
    stack->counters.arp_failures++;
    pending_drop(stack, entry);
    deadline_set(stack, entry, ARP_FAILED_NS / 1000000);
    tcp_neighbour_failed(stack, entry->ip4);
}

static void entry_expire(struct stack *stack, struct arp_entry *entry)
{
    ASSERT(stack != NULL);
    switch (entry->state) {
    case ARP_REACHABLE:
        entry_ask(stack, entry, ARP_PROBE);
        break;
    case ARP_PROBE:
        if (entry->tries >= ARP_UNICAST_TRIES) {
            entry_ask(stack, entry, ARP_INCOMPLETE);
            break;
        }
        entry->tries++;
        deadline_set(stack, entry, stack->config.arp_retry_ms);
        request_send(stack, entry);
        break;
    case ARP_INCOMPLETE:
        if (entry->tries >= stack->config.arp_retry_count_max) {
            entry_fail(stack, entry);
            break;
        }
        entry->tries++;
        deadline_set(stack, entry, stack->config.arp_retry_ms);
        request_send(stack, entry);
        break;
    case ARP_FAILED:
        ASSERT(entry->pending_count == 0);
        entry->state = ARP_FREE;
        break;
    case ARP_FREE:
        break;
    }
}

/* RFC 5227 §2.3: tells the subnet, and its switches, where this address is. */
static void announce(struct stack *stack)
{
    ASSERT(stack != NULL);
    struct arp_packet packet = {
        .operation = ARP_OP_REQUEST,
        .frame_target = mac_broadcast,
        .target_mac = mac_none,
        .sender_ip4 = stack->config.address_ip4,
        .target_ip4 = stack->config.address_ip4,
    };
    stack->arp.announced = stack->queue != 0 || packet_send(stack, &packet);
}

void arp_poll(struct stack *stack)
{
    ASSERT(stack != NULL);
    struct arp *arp = &stack->arp;
    if (UNLIKELY(!arp->announced)) {
        announce(stack);
    }
    if (LIKELY(stack->now_ns < arp->deadline_ns)) {
        return;
    }
    for (uint32_t i = 0; i < arp->entry_count; i++) {
        struct arp_entry *entry = &arp->entries[i];
        if (entry->state != ARP_FREE && entry->deadline_ns <= stack->now_ns) {
            entry_expire(stack, entry);
        }
    }
    arp->deadline_ns = UINT64_MAX;
    for (uint32_t i = 0; i < arp->entry_count; i++) {
        const struct arp_entry *entry = &arp->entries[i];
        if (entry->state != ARP_FREE && entry->deadline_ns < arp->deadline_ns) {
            arp->deadline_ns = entry->deadline_ns;
        }
    }
}
