/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbours: the cache from IPv4 address to MAC address, and the packets that fill it.
 *
 *     FREE ─use─▶ INCOMPLETE ─reply─▶ REACHABLE ─age─▶ PROBE ─reply or TCP progress─▶ REACHABLE
 *                     │ no answer          ▲              │ no answer: ask by broadcast again
 *                     ▼                    └──────────────┴──▶ INCOMPLETE
 *                   FAILED ─a second later─▶ FREE
 *
 * Only addresses that this host uses are learnt; what others say about them updates the entry at
 * once (gateway fail-over). A frame for an unresolved neighbour waits in its entry, at most
 * ARP_PENDING_MAX of them, the oldest goes first. Limit: one address and one subnet a stack. */
#pragma once

#include "base.h"
#include "nic/port.h"

#define ARP_PENDING_MAX   4
#define ARP_INDEX_NONE    UINT32_MAX
#define ARP_FAILED_NS     NANOSECONDS_PER_S
#define ARP_UNICAST_TRIES 3

enum arp_state {
    ARP_FREE = 0,
    ARP_INCOMPLETE,
    ARP_REACHABLE,
    ARP_PROBE, /* old: still used, being asked again by unicast */
    ARP_FAILED,
};

struct arp_entry {
    uint32_t ip4;
    enum arp_state state;
    uint8_t mac[MAC_BYTES];
    uint16_t tries;
    uint64_t used_ns;
    uint64_t deadline_ns; /* next retry, end of reachability, or end of the failed state */
    uint32_t pending_count;
    struct port_frame pending[ARP_PENDING_MAX];
};

struct arp {
    struct arp_entry *entries;
    uint32_t entry_count;
    uint64_t deadline_ns; /* no entry is due before */
    bool announced;
};

struct stack;

/* Reserves the cache.
 * returns  0 or -ENOMEM
 * threads  control path */
int arp_init(struct arp *arp, uint32_t entry_count);

/* Frees the cache; pending frames must be gone (arp_drain).
 * threads  control path */
void arp_fini(struct arp *arp);

/* Gives back all pending frames.
 * threads  control path, after the lane has stopped */
void arp_drain(struct stack *stack);

/* Finds or makes the entry of a neighbour, and starts asking for it if it is new.
 * returns  its index, or ARP_INDEX_NONE when all entries are busy
 * threads  owning lane only */
uint32_t arp_resolve(struct stack *stack, uint32_t ip4);

/* Checks an index that a connection keeps, and resolves again when the entry serves another
 * neighbour by now or has failed.
 * returns  an index that is right now, or ARP_INDEX_NONE
 * threads  owning lane only */
uint32_t arp_refresh(struct stack *stack, uint32_t index, uint32_t ip4);

/* Sends a frame to the neighbour at index, or keeps it until the neighbour answers; ownership
 * moves. The Ethernet header is filled in here.
 * threads  owning lane only */
void arp_send(struct stack *stack, uint32_t index, struct port_frame *frame);

/* Tells that the neighbour answers: it made transport progress.
 * index    of ip4, possibly out of date
 * threads  owning lane only
 * source   RFC 4861 §7.3.1, applied to ARP */
void arp_confirm(struct stack *stack, uint32_t index, uint32_t ip4);

/* Reads one ARP packet.
 * packet   the frame without its Ethernet header
 * returns  whether it made sense and concerned this host
 * threads  owning lane only
 * source   RFC 826, RFC 5227 §2.4 */
bool arp_input(struct stack *stack, struct span packet);

/* Runs retries and timeouts that are due, and announces this host's address once.
 * threads  owning lane only */
void arp_poll(struct stack *stack);
