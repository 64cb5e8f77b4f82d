/* SPDX-License-Identifier: Apache-2.0 */
/* One network stack, owned by one lane and bound to one queue of a port: ARP, IPv4, ICMP and a
 * client TCP. It reads no clock and holds no global; two stacks in one process share nothing but
 * the port's constant description. All memory is reserved and touched in stack_create.
 *
 * A lane's turn:   stack_poll(now)  frames in, timers, data out; spans of the streams grow
 *                  … the code above reads, consumes, commits …
 *                  stack_flush(now) optional: what was committed leaves now, and the ACK of what
 *                                   was read rides on it instead of going alone */
#pragma once

#include "base.h"
#include "nic/config.h"
#include "nic/port.h"
#include "nic/stream.h"

/* Every counter: name and meaning. Each received frame adds to exactly one of the rx_ lines below
 * rx_frames; each payload byte to exactly one of the tcp_bytes_ lines below tcp_bytes_in, or is
 * held. */
#define STACK_COUNTERS(X)                                                                          \
    X(rx_frames, "frames taken from the port")                                                     \
    X(rx_arp, "ARP packets taken")                                                                 \
    X(rx_icmp, "ICMP messages taken")                                                              \
    X(rx_tcp, "TCP segments that belong to a connection")                                          \
    X(rx_handed_off, "frames given to another lane")                                               \
    X(rx_drop_short, "frames shorter than their headers")                                          \
    X(rx_drop_other, "frames for another address or of another protocol")                          \
    X(rx_drop_arp, "ARP packets that make no sense or do not concern this host")                   \
    X(rx_drop_ip_header, "bad IPv4 header or header checksum")                                     \
    X(rx_drop_fragment, "IPv4 fragments")                                                          \
    X(rx_drop_icmp, "ICMP messages that are malformed, unproven or not wanted")                    \
    X(rx_drop_tcp_header, "bad TCP header or options")                                             \
    X(rx_drop_tcp_checksum, "bad TCP checksum")                                                    \
    X(rx_drop_tcp_unknown, "TCP segments of no connection")                                        \
    X(tx_frames, "frames given to the port")                                                       \
    X(tx_no_frame, "sends put off because the frame pool was empty")                               \
    X(tx_full, "sends put off because the port's ring was full")                                   \
    X(tx_drop_neighbour, "frames dropped while their neighbour was unknown")                       \
    X(arp_requests, "ARP requests sent")                                                           \
    X(arp_replies, "ARP replies sent")                                                             \
    X(arp_failures, "neighbours that did not answer")                                              \
    X(arp_conflicts, "ARP packets of others that use this host's address")                         \
    X(arp_updates, "neighbours that changed their MAC address")                                    \
    X(icmp_echo_replies, "echo replies sent")                                                      \
    X(icmp_errors_taken, "ICMP errors that matched bytes in flight")                               \
    X(path_mtu_changes, "connections whose segment size was lowered")                              \
    X(tcp_connects, "connections started")                                                         \
    X(tcp_established, "connections that came up")                                                 \
    X(tcp_connect_failures, "connections that did not come up")                                    \
    X(tcp_resets_in, "connections reset by the peer")                                              \
    X(tcp_resets_out, "resets sent")                                                               \
    X(tcp_timeouts, "connections given up for lack of progress")                                   \
    X(tcp_time_wait_recycled, "TIME-WAIT entries dropped early for room")                          \
    X(tcp_segments_out, "segments sent")                                                           \
    X(tcp_bytes_out, "payload bytes sent, retransmissions included")                               \
    X(tcp_bytes_retransmitted, "payload bytes sent again")                                         \
    X(tcp_retransmits, "segments sent again")                                                      \
    X(tcp_fast_recoveries, "losses found by acknowledgments")                                      \
    X(tcp_rto_expiries, "retransmission timeouts")                                                 \
    X(tcp_loss_probes, "tail loss probes sent")                                                    \
    X(tcp_window_probes, "zero or small window probes sent")                                       \
    X(tcp_keepalive_probes, "keepalive probes sent")                                               \
    X(tcp_challenge_acks, "challenge ACKs sent")                                                   \
    X(tcp_challenge_suppressed, "challenge ACKs over the connection's budget")                     \
    X(tcp_drop_paws, "segments with an old timestamp")                                             \
    X(tcp_drop_no_timestamp, "segments without the agreed timestamp")                              \
    X(tcp_drop_window, "segments outside the receive window")                                      \
    X(tcp_drop_ack, "segments whose acknowledgment makes no sense")                                \
    X(tcp_drop_flags, "segments whose flags make no sense in their state")                         \
    X(tcp_sack_invalid, "SACK blocks outside the bytes in flight")                                 \
    X(tcp_sack_reneged, "peers that dropped bytes they had acknowledged selectively")              \
    X(tcp_out_of_order, "segments that arrived early")                                             \
    X(tcp_bytes_in, "payload bytes of segments that belong to a connection")                       \
    X(tcp_bytes_delivered, "payload bytes put into streams, in order")                             \
    X(tcp_bytes_duplicate, "payload bytes that were there already")                                \
    X(tcp_bytes_outside, "payload bytes outside the window")                                       \
    X(tcp_bytes_unqueued, "payload bytes that arrived early and did not fit the queue")            \
    X(tcp_bytes_refused, "payload bytes of dropped segments or for closed streams")

struct stack_counters {
#define STACK_COUNTER_FIELD(name, doc) uint64_t name;
    STACK_COUNTERS(STACK_COUNTER_FIELD)
#undef STACK_COUNTER_FIELD
};

struct stack_counter_name {
    const char *name;
    const char *doc;
};

enum stack_foreign {
    STACK_FOREIGN_FLOW = 0, /* a TCP segment of another lane's flow: give it to that lane */
    STACK_FOREIGN_SHARED,   /* ARP: give a copy to every other lane, this one has read it too */
};

struct stack;

struct stack_options {
    const struct nic_config *config; /* copied */
    struct port *port;               /* borrowed as long as the stack lives */
    uint16_t queue;
    uint64_t now_ns;
    uint8_t secret[16]; /* random bytes: sequence numbers, ports, timestamps follow from them */

    /* With several queues: takes a copy of a frame for other lanes, which feed it to their stack
     * by stack_input. Returns false when it could not. NULL with one queue. */
    bool (*hand_off)(void *context, enum stack_foreign kind, uint16_t owner_queue,
                     const struct port_frame *frame);
    void *hand_off_context;
};

/* Builds a stack and reserves all its memory.
 * returns  0 or -errno with error->text; *out is the caller's until stack_destroy
 * threads  control path */
int stack_create(const struct stack_options *options, struct stack **out, struct error *error);

/* Frees a stack; its streams are dead after, without a word to their peers. NULL is fine.
 * threads  control path, after the lane has stopped */
void stack_destroy(struct stack *stack);

/* Does one bounded turn: a burst of frames in, due timers, output.
 * now_ns   of a clock that never goes back
 * returns  frames received plus frames sent: 0 means that there was nothing to do
 * threads  owning lane only */
uint32_t stack_poll(struct stack *stack, uint64_t now_ns);

/* Sends what the streams have to say now: committed bytes, window updates, ACKs that were put off.
 * returns  frames sent
 * threads  owning lane only */
uint32_t stack_flush(struct stack *stack, uint64_t now_ns);

/* Feeds one frame that another lane received, or a test made; copies what it keeps.
 * frame    borrowed for the call
 * threads  owning lane only */
void stack_input(struct stack *stack, const struct port_frame *frame, uint64_t now_ns);

/* Tells when the stack wants to be polled next even if no frame arrives.
 * returns  a time, the past when output waits, UINT64_MAX for never
 * threads  owning lane only */
uint64_t stack_deadline_ns(const struct stack *stack);

/* Starts a connection; it comes up, or fails, during later polls.
 * out      owned by the caller until stream_release; set to NULL on failure
 * returns  0, -ENETUNREACH (no route), -EADDRNOTAVAIL (no free local port), -EMFILE (as many
 *          connections as connection_count_max)
 * threads  owning lane only; reserves nothing */
int stack_connect(struct stack *stack, uint32_t remote_ip4, uint16_t remote_port, uint64_t now_ns,
                  struct stream **out);

/* Shows the counters.
 * returns  borrowed; a reader on another thread may see single lines from different moments
 * threads  any */
const struct stack_counters *stack_counters_get(const struct stack *stack);

/* Lists name and meaning of each counter, in the order of struct stack_counters.
 * threads  any */
const struct stack_counter_name *stack_counter_names(size_t *count);

/* Checks that every frame and every payload byte that came in is accounted for.
 * returns  whether input = output + held + drops holds, for frames and for bytes
 * threads  owning lane only */
bool stack_is_balanced(const struct stack *stack);
