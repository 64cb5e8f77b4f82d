/* SPDX-License-Identifier: Apache-2.0 */
/* The client TCP of one stack (RFC 9293): connections, what each holds, and the calls between the
 * files that make it up.
 *
 *     tcp.c        create, connect, find, end      tcp_in.c    segments, states
 *     tcp_stream.c the stream interface            tcp_ack.c   what an acknowledgment changes
 *     tcp_out.c    what goes out, and when         tcp_expire.c timers that came up
 *
 * Sequence space of a connection, sending side (bytes are numbered from 0 as tx offsets):
 *
 *     iss   iss+1 = byte 0          snd_una = byte tx_acked        snd_nxt       tx_committed
 *      SYN    |── acknowledged ─────────|── in the scoreboard ────────|── unsent ────| FIN
 *
 * Receiving side: rcv_nxt = byte rx_delivered; the buffer holds [rx_consumed, rx_delivered) for
 * the reader and, beyond it, early bytes at their places. The window is the free rest, so its
 * right edge never moves left. */
#pragma once

#include "base.h"
#include "nic/flow.h"
#include "nic/ip4.h"
#include "nic/mirror.h"
#include "nic/stream.h"
#include "nic/tcp_congestion.h"
#include "nic/tcp_options.h"
#include "nic/tcp_reassembly.h"
#include "nic/tcp_rtt.h"
#include "nic/tcp_scoreboard.h"
#include "nic/tcp_table.h"
#include "nic/tcp_timer.h"

enum tcp_state {
    TCP_CLOSED = 0,
    TCP_SYN_SENT,
    TCP_SYN_RECEIVED, /* simultaneous open only */
    TCP_ESTABLISHED,
    TCP_FIN_WAIT_1,
    TCP_FIN_WAIT_2,
    TCP_CLOSE_WAIT,
    TCP_CLOSING,
    TCP_LAST_ACK,
    TCP_TIME_WAIT,
};

enum tcp_retransmit_kind {
    TCP_TIMER_OFF = 0,
    TCP_TIMER_RTO,
    TCP_TIMER_PROBE,   /* tail loss probe */
    TCP_TIMER_PERSIST, /* window too small to send */
};

enum tcp_ack_need {
    TCP_ACK_NONE = 0,
    TCP_ACK_LATER, /* with the next data, or at the end of the next turn */
    TCP_ACK_NOW,
};

struct tcp_connection {
    struct stream stream; /* first: the handle is this address */
    struct stack *stack;
    uint32_t index;
    enum tcp_state state;
    bool is_used;
    bool is_released; /* the stream's owner is gone: closes on its own */
    bool is_queued;   /* in tcp.output */
    bool close_asked;
    bool fin_sent;
    bool fin_received;
    bool fin_known; /* an early FIN, at fin_offset */
    bool cwnd_limited;
    bool timestamps;
    bool sack;

    struct flow_tuple tuple;
    uint32_t hop_ip4;
    uint32_t neighbour_index;

    /* Sending. */
    uint32_t iss;
    uint32_t snd_una;
    uint32_t snd_nxt;
    uint32_t snd_wnd_bytes;
    uint32_t snd_wnd_bytes_max;
    uint32_t snd_wl1;
    uint32_t snd_wl2;
    uint8_t snd_scale;
    uint8_t rcv_scale;
    uint32_t mss_bytes; /* payload of a full segment, timestamps taken off */
    uint32_t duplicate_acks;
    uint64_t tx_acked;
    uint64_t tx_committed;
    struct mirror tx;
    struct tcp_scoreboard board;
    struct tcp_congestion congestion;
    struct tcp_rtt rtt;

    /* Receiving. */
    uint32_t irs;
    uint32_t rcv_nxt;
    uint32_t rcv_advertised; /* right edge that the peer knows */
    uint64_t rx_delivered;
    uint64_t rx_consumed;
    uint64_t fin_offset;
    struct mirror rx;
    struct tcp_reassembly reassembly;
    enum tcp_ack_need ack_need;
    uint64_t ack_turn; /* of the stack, when ack_need left NONE */
    bool duplicate_told;
    struct tcp_sack_block duplicate; /* to report as D-SACK */

    /* Timestamps (RFC 7323). */
    uint32_t timestamp_offset;
    uint32_t timestamp_recent;
    uint64_t timestamp_recent_ns;
    uint32_t last_ack_sent;

    /* Timers; UINT64_MAX is off. */
    enum tcp_retransmit_kind retransmit_kind;
    uint64_t retransmit_ns;
    uint64_t reorder_ns;
    uint64_t keepalive_ns;
    uint64_t linger_ns;   /* connect, FIN-WAIT-2 and released connections */
    uint64_t progress_ns; /* last sign that the peer lives while something was outstanding */
    uint64_t heard_ns;
    uint64_t sent_ns;
    uint32_t keepalive_count;
    uint32_t persist_backoff;
    uint32_t black_hole_count; /* timeouts of full segments in a row */
    bool probe_out;            /* a tail loss probe is in flight */
    bool probe_is_repeat;
    uint32_t probe_end;

    /* Undo of a timeout that was not needed (RFC 3522). */
    bool undo_armed;
    uint32_t undo_timestamp;
    uint32_t undo_cwnd_bytes;
    uint32_t undo_ssthresh_bytes;

    uint64_t challenge_second;
    uint32_t challenge_count;
};

/* A connection that is closed on both sides; its tuple is not used again before it ends. */
struct tcp_time_wait {
    struct flow_tuple tuple;
    uint64_t end_ns;
    uint32_t snd_nxt;
    uint32_t rcv_nxt;
    uint32_t timestamp_recent;
    uint32_t timestamp_offset;
    uint64_t challenge_second;
    uint32_t challenge_count;
    bool timestamps;
};

struct tcp {
    struct tcp_connection *connections;
    uint32_t connection_count_max;
    uint32_t connection_count;
    uint32_t free_hint;
    struct tcp_segment *segments;    /* of all connections */
    struct tcp_time_wait *time_wait; /* a ring: all wait equally long, the oldest at head */
    uint32_t time_wait_count_max;
    uint32_t time_wait_head;
    uint32_t time_wait_count;
    struct tcp_table table;
    struct tcp_timers timers;
    uint32_t *output; /* a ring of connections that have something to say */
    uint32_t output_head;
    uint32_t output_count;
    uint64_t turn;
    uint8_t secret[16];
    uint64_t random_count;
};

struct tcp_header {
    uint16_t source_port;
    uint16_t target_port;
    uint32_t seq;
    uint32_t ack;
    uint8_t flags;
    uint32_t window; /* not scaled */
    struct tcp_options options;
    struct span payload;
};

struct tcp_icmp_error {
    struct flow_tuple tuple;
    uint32_t sequence;
    uint8_t code;
    uint16_t next_mtu_bytes;
};

struct stack_options;

/* In tcp.c. Reserves everything TCP needs.
 * threads  control path */
int tcp_init(struct stack *stack, const struct stack_options *options, struct error *error);
/* In tcp.c. Frees it.
 * threads  control path */
void tcp_fini(struct stack *stack);
/* In tcp.c. Ends a connection otherwise than in order; the stream shows failure.
 * threads  owning lane only */
void tcp_fail(struct tcp_connection *connection, enum stream_failure failure);
/* In tcp.c. Ends a connection in order; remember keeps the tuple in TIME-WAIT.
 * threads  owning lane only */
void tcp_finish(struct tcp_connection *connection, bool remember);
/* In tcp.c. Gives the slot back once ended and released.
 * threads  owning lane only */
void tcp_reclaim(struct tcp_connection *connection);
/* In tcp.c. Fails connections that wait for this neighbour to come up.
 * threads  owning lane only */
void tcp_neighbour_failed(struct stack *stack, uint32_t ip4);
/* In tcp.c. Lowers the segment size; bytes is the largest IP packet.
 * threads  owning lane only */
void tcp_path_mtu(struct tcp_connection *connection, uint32_t bytes);
/* In tcp.c. Takes a proven ICMP error; false when it proves nothing.
 * threads  owning lane only */
bool tcp_icmp_error(struct stack *stack, const struct tcp_icmp_error *report);
/* In tcp.c. The first TIME-WAIT entry that may end.
 * threads  owning lane only */
void tcp_time_wait_expire(struct stack *stack);
/* In tcp.c. The millisecond clock of this connection's timestamps.
 * threads  owning lane only */
uint32_t tcp_timestamp(const struct tcp_connection *connection);

/* In tcp_stream.c. The body of the streams.
 * threads  owning lane only */
const struct stream_ops *tcp_stream_ops(void);

/* In tcp_in.c. Reads one segment; adds to exactly one rx_ counter.
 * threads  owning lane only */
void tcp_input(struct stack *stack, const struct ip4_packet *packet);

/* In tcp_ack.c. What an acceptable acknowledgment changes; false when it was nonsense.
 * threads  owning lane only */
bool tcp_ack_input(struct tcp_connection *connection, const struct tcp_header *header);
/* In tcp_ack.c. Losses that only time has proven.
 * threads  owning lane only */
void tcp_ack_detect(struct tcp_connection *connection);

/* In tcp_out.c. Puts the connection on the list of those with something to say.
 * threads  owning lane only */
void tcp_output_ask(struct tcp_connection *connection);
/* In tcp_out.c. Asks for an acknowledgment.
 * threads  owning lane only */
void tcp_ack_ask(struct tcp_connection *connection, enum tcp_ack_need need);
/* In tcp_out.c. Runs the list; last: ACKs that could wait go too.
 * threads  owning lane only */
void tcp_output_run(struct stack *stack, bool last);
/* In tcp_out.c. An ACK within the connection's budget (RFC 5961).
 * threads  owning lane only */
void tcp_challenge_ack(struct tcp_connection *connection);
/* In tcp_out.c. Sends a SYN or SYN-ACK.
 * threads  owning lane only */
void tcp_send_syn(struct tcp_connection *connection);
/* In tcp_out.c. Sends an empty segment before the window, which the peer must answer.
 * threads  owning lane only */
bool tcp_send_probe(struct tcp_connection *connection);
/* In tcp_out.c. Sends one segment again at once.
 * threads  owning lane only */
bool tcp_send_again(struct tcp_connection *connection, struct tcp_segment *segment);
/* In tcp_out.c. Sends new data although the window or good manners say wait; bytes at most.
 * threads  owning lane only */
bool tcp_send_new(struct tcp_connection *connection, uint32_t bytes_max);
/* In tcp_out.c. Resets a connection's peer.
 * threads  owning lane only */
void tcp_send_reset(struct tcp_connection *connection);
/* In tcp_out.c. Answers a segment of no connection.
 * threads  owning lane only */
void tcp_refuse(struct stack *stack, const struct ip4_packet *packet,
                const struct tcp_header *header);
/* In tcp_out.c. An ACK for a connection in TIME-WAIT.
 * threads  owning lane only */
void tcp_time_wait_ack(struct stack *stack, const struct ip4_packet *packet,
                       struct tcp_time_wait *entry);
/* In tcp_out.c. Free bytes of the receive buffer, which is the window.
 * threads  owning lane only */
uint32_t tcp_receive_window(const struct tcp_connection *connection);
/* In tcp_out.c. Sets the retransmission timer to what the flight needs.
 * threads  owning lane only */
void tcp_timer_restart(struct tcp_connection *connection);
/* In tcp_out.c. Bytes in flight that are not known to have left the network.
 * threads  owning lane only */
uint32_t tcp_pipe_bytes(const struct tcp_connection *connection);
/* In tcp_out.c. Committed bytes not sent yet.
 * threads  owning lane only */
uint64_t tcp_unsent_bytes(const struct tcp_connection *connection);

/* In tcp_expire.c. Runs what is due.
 * threads  owning lane only */
void tcp_poll(struct stack *stack);
/* In tcp_expire.c. Tells the heap the connection's next deadline.
 * threads  owning lane only */
void tcp_deadline_update(struct tcp_connection *connection);

/* Whether both sides have agreed on sequence numbers. */
static inline bool tcp_is_synchronized(const struct tcp_connection *connection)
{
    return connection->state >= TCP_ESTABLISHED;
}
