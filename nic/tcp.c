/* SPDX-License-Identifier: Apache-2.0 */
/* Life and death of connections. A slot's buffers and scoreboard ring stay with the slot for ever;
 * connect and release only reset numbers.
 *
 * Ports (RFC 6056): a random start, then upward through the range, taking the first port whose
 * reply lands on this stack's queue and whose tuple is not in use. The flow table knows every
 * live and waiting tuple, which is the per-destination bitmap in less memory. */
#include "nic/tcp_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "nic/siphash.h"
#include "nic/stack_internal.h"
#include "nic/tcp_seq.h"

#define MS UINT64_C(1000000)

/* A hugepage is the least that can be mapped twice. */
static size_t buffer_bytes(const struct nic_config *config, uint32_t wanted)
{
    ASSERT(wanted > 0);
    bool small = config->huge_pages != 0 && wanted < MIRROR_HUGE_BYTES;
    return small ? MIRROR_HUGE_BYTES : wanted;
}

static int buffers_create(struct stack *stack, struct error *error)
{
    ASSERT(stack != NULL);
    struct tcp *tcp = &stack->tcp;
    const struct nic_config *config = &stack->config;
    bool huge = config->huge_pages != 0;
    for (uint32_t i = 0; i < tcp->connection_count_max; i++) {
        struct tcp_connection *connection = &tcp->connections[i];
        connection->stack = stack;
        connection->index = i;
        int status = mirror_init(&connection->rx, buffer_bytes(config, config->receive_bytes_max),
                                 huge, error);
        if (status == 0) {
            status = mirror_init(&connection->tx, buffer_bytes(config, config->send_bytes_max),
                                 huge, error);
        }
        if (status != 0) {
            return status;
        }
    }
    return 0;
}

int tcp_init(struct stack *stack, const struct stack_options *options, struct error *error)
{
    ASSERT(stack != NULL && options != NULL);
    struct tcp *tcp = &stack->tcp;
    uint32_t count = stack->config.connection_count_max;
    uint32_t waiting = stack->config.time_wait_count_max;
    tcp->connection_count_max = count;
    tcp->time_wait_count_max = waiting;
    tcp->turn = 1;
    memcpy(tcp->secret, options->secret, sizeof(tcp->secret));
    tcp->connections = calloc(count, sizeof(*tcp->connections));
    tcp->time_wait = calloc(waiting, sizeof(*tcp->time_wait));
    tcp->output = calloc(count, sizeof(*tcp->output));
    size_t segment_count = (size_t)count * stack->config.segment_count_max;
    tcp->segments = malloc(segment_count * sizeof(*tcp->segments));
    if (tcp->connections == NULL || tcp->time_wait == NULL || tcp->output == NULL ||
        tcp->segments == NULL || tcp_table_init(&tcp->table, count + waiting) != 0 ||
        tcp_timers_init(&tcp->timers, count) != 0) {
        return error_set(error, -ENOMEM, "out of memory for %u connections", count);
    }
    memset(tcp->segments, 0, segment_count * sizeof(*tcp->segments));
    return buffers_create(stack, error);
}

void tcp_fini(struct stack *stack)
{
    ASSERT(stack != NULL);
    struct tcp *tcp = &stack->tcp;
    for (uint32_t i = 0; tcp->connections != NULL && i < tcp->connection_count_max; i++) {
        mirror_fini(&tcp->connections[i].rx);
        mirror_fini(&tcp->connections[i].tx);
    }
    tcp_timers_fini(&tcp->timers);
    tcp_table_fini(&tcp->table);
    free(tcp->segments);
    free(tcp->output);
    free(tcp->time_wait);
    free(tcp->connections);
    *tcp = (struct tcp){0};
}

/* A keyed hash of a counter: unpredictable from outside, and the same in every replay of a seed. */
static uint64_t random_next(struct tcp *tcp)
{
    ASSERT(tcp != NULL);
    uint64_t count = ++tcp->random_count;
    return siphash(tcp->secret, (const uint8_t *)&count, sizeof(count));
}

/* RFC 9293 §3.4.1: a 4 µs clock plus a keyed hash of the tuple. */
static uint32_t initial_sequence(const struct tcp *tcp, const struct flow_tuple *tuple,
                                 uint64_t now_ns, uint32_t *timestamp_offset)
{
    ASSERT(tcp != NULL);
    ASSERT(tuple != NULL);
    uint8_t bytes[12];
    store_be32(bytes, tuple->local_ip4);
    store_be32(bytes + 4, tuple->remote_ip4);
    store_be16(bytes + 8, tuple->local_port);
    store_be16(bytes + 10, tuple->remote_port);
    uint64_t hash = siphash(tcp->secret, bytes, sizeof(bytes));
    *timestamp_offset = (uint32_t)(hash >> 32);
    return (uint32_t)hash + (uint32_t)(now_ns / 4000);
}

static bool port_choose(struct stack *stack, struct flow_tuple *tuple)
{
    ASSERT(stack != NULL);
    ASSERT(tuple != NULL);
    uint32_t first = stack->config.local_port_min;
    uint32_t count = stack->config.local_port_max - first + 1;
    uint32_t start = (uint32_t)(random_next(&stack->tcp) % count);
    for (uint32_t i = 0; i < count; i++) {
        tuple->local_port = (uint16_t)(first + (start + i) % count);
        if (flow_queue(stack->info, tuple) == stack->queue &&
            tcp_table_find(&stack->tcp.table, tuple) == TCP_TABLE_NONE) {
            return true;
        }
    }
    return false;
}

/* Slots are taken in turn, so a slot rests longest before it is used again. */
static struct tcp_connection *slot_take(struct tcp *tcp)
{
    ASSERT(tcp != NULL);
    for (uint32_t i = 0; i < tcp->connection_count_max; i++) {
        uint32_t at = (tcp->free_hint + i) % tcp->connection_count_max;
        if (!tcp->connections[at].is_used) {
            tcp->free_hint = (at + 1) % tcp->connection_count_max;
            return &tcp->connections[at];
        }
    }
    return NULL;
}

/* The least shift that can tell the whole buffer, so that the granularity stays fine. */
static uint8_t scale_for(uint32_t bytes)
{
    uint8_t scale = 0;
    while (scale < TCP_SCALE_MAX && bytes >> scale > UINT16_MAX) {
        scale++;
    }
    return scale;
}

/* Resets a slot; its memory stays. */
static void connection_reset(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    struct stack *stack = connection->stack;
    const struct nic_config *config = &stack->config;
    struct tcp_connection fresh = {
        .stream = {.ops = tcp_stream_ops(), .state = STREAM_CONNECTING},
        .stack = stack,
        .index = connection->index,
        .is_used = true,
        .tx = connection->tx,
        .rx = connection->rx,
        .rcv_scale = scale_for((uint32_t)connection->rx.bytes),
        .neighbour_index = ARP_INDEX_NONE,
        .retransmit_ns = UINT64_MAX,
        .reorder_ns = UINT64_MAX,
        .keepalive_ns = UINT64_MAX,
        .linger_ns = stack->now_ns + config->connect_timeout_ms * MS,
        .progress_ns = stack->now_ns,
        .heard_ns = stack->now_ns,
        .sent_ns = stack->now_ns,
    };
    *connection = fresh;
    tcp_scoreboard_init(&connection->board,
                        stack->tcp.segments + (size_t)connection->index * config->segment_count_max,
                        config->segment_count_max);
    tcp_rtt_init(&connection->rtt, config->rto_initial_ms * MS, config->rto_ms_min * MS,
                 config->rto_ms_max * MS);
    connection->mss_bytes = stack->info->mtu_bytes - IP4_HEADER_BYTES - TCP_HEADER_BYTES;
    tcp_congestion_init(&connection->congestion, connection->mss_bytes,
                        config->initial_window_segments);
}

int stack_connect(struct stack *stack, uint32_t remote_ip4, uint16_t remote_port, uint64_t now_ns,
                  struct stream **out)
{
    ASSERT(stack != NULL && out != NULL);
    ASSERT(now_ns >= stack->now_ns);
    *out = NULL;
    stack->now_ns = now_ns;
    tcp_time_wait_expire(stack);
    struct flow_tuple tuple = {
        .local_ip4 = stack->config.address_ip4,
        .remote_ip4 = remote_ip4,
        .remote_port = remote_port,
    };
    uint32_t hop = ip4_next_hop(stack, remote_ip4);
    if (hop == 0) {
        return -ENETUNREACH;
    }
    struct tcp_connection *connection = slot_take(&stack->tcp);
    if (connection == NULL) {
        return -EMFILE;
    }
    if (!port_choose(stack, &tuple)) {
        return -EADDRNOTAVAIL;
    }
    connection_reset(connection);
    connection->tuple = tuple;
    connection->hop_ip4 = hop;
    connection->iss = initial_sequence(&stack->tcp, &tuple, now_ns, &connection->timestamp_offset);
    connection->snd_una = connection->iss;
    connection->snd_nxt = connection->iss;
    connection->state = TCP_SYN_SENT;
    tcp_table_put(&stack->tcp.table, &tuple, connection->index);
    stack->tcp.connection_count++;
    stack->counters.tcp_connects++;
    tcp_output_ask(connection);
    tcp_deadline_update(connection);
    *out = &connection->stream;
    return 0;
}

uint32_t tcp_timestamp(const struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    return (uint32_t)(connection->stack->now_ns / MS) + connection->timestamp_offset;
}

static void timers_stop(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    connection->retransmit_kind = TCP_TIMER_OFF;
    connection->retransmit_ns = UINT64_MAX;
    connection->reorder_ns = UINT64_MAX;
    connection->keepalive_ns = UINT64_MAX;
    connection->linger_ns = UINT64_MAX;
    tcp_timers_cancel(&connection->stack->tcp.timers, connection->index);
}

/* Bytes that waited for a gap to fill are given up: they stay accounted for. */
static void held_refuse(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    connection->stack->counters.tcp_bytes_refused +=
        tcp_reassembly_held_bytes(&connection->reassembly);
    connection->reassembly.count = 0;
}

void tcp_fail(struct tcp_connection *connection, enum stream_failure failure)
{
    ASSERT(connection->is_used);
    ASSERT(connection->state != TCP_CLOSED);
    struct stack *stack = connection->stack;
    if (connection->state == TCP_SYN_SENT || connection->state == TCP_SYN_RECEIVED) {
        stack->counters.tcp_connect_failures++;
    }
    if (failure == STREAM_FAILURE_TIMEOUT) {
        stack->counters.tcp_timeouts++;
    }
    connection->state = TCP_CLOSED;
    connection->stream.state = STREAM_FAILED;
    connection->stream.failure = failure;
    timers_stop(connection);
    held_refuse(connection);
    tcp_table_remove(&stack->tcp.table, &connection->tuple);
    if (connection->is_released) {
        tcp_reclaim(connection);
    }
}

static void time_wait_drop_oldest(struct tcp *tcp)
{
    ASSERT(tcp != NULL);
    ASSERT(tcp->time_wait_count > 0);
    tcp_table_remove(&tcp->table, &tcp->time_wait[tcp->time_wait_head].tuple);
    tcp->time_wait_head = (tcp->time_wait_head + 1) % tcp->time_wait_count_max;
    tcp->time_wait_count--;
}

void tcp_time_wait_expire(struct stack *stack)
{
    ASSERT(stack != NULL);
    struct tcp *tcp = &stack->tcp;
    while (tcp->time_wait_count > 0 &&
           tcp->time_wait[tcp->time_wait_head].end_ns <= stack->now_ns) {
        time_wait_drop_oldest(tcp);
    }
}

/* An entry is a few words: buffers go back at once, only numbers and the tuple wait. */
static void time_wait_add(struct tcp_connection *connection)
{
    ASSERT(connection != NULL);
    struct stack *stack = connection->stack;
    struct tcp *tcp = &stack->tcp;
    if (tcp->time_wait_count == tcp->time_wait_count_max) {
        stack->counters.tcp_time_wait_recycled++;
        time_wait_drop_oldest(tcp);
    }
    uint32_t at = (tcp->time_wait_head + tcp->time_wait_count) % tcp->time_wait_count_max;
    tcp->time_wait_count++;
    tcp->time_wait[at] = (struct tcp_time_wait){
        .tuple = connection->tuple,
        .end_ns = stack->now_ns + stack->config.time_wait_ms * MS,
        .snd_nxt = connection->snd_nxt,
        .rcv_nxt = connection->rcv_nxt,
        .timestamp_recent = connection->timestamp_recent,
        .timestamp_offset = connection->timestamp_offset,
        .timestamps = connection->timestamps,
    };
    tcp_table_put(&tcp->table, &connection->tuple, tcp->connection_count_max + at);
}

void tcp_finish(struct tcp_connection *connection, bool remember)
{
    ASSERT(connection->is_used);
    ASSERT(connection->state != TCP_CLOSED);
    timers_stop(connection);
    held_refuse(connection);
    connection->state = TCP_CLOSED;
    connection->stream.state = STREAM_CLOSED;
    if (remember) {
        time_wait_add(connection);
    } else {
        tcp_table_remove(&connection->stack->tcp.table, &connection->tuple);
    }
    if (connection->is_released) {
        tcp_reclaim(connection);
    }
}

void tcp_reclaim(struct tcp_connection *connection)
{
    ASSERT(connection->is_released);
    ASSERT(connection->state == TCP_CLOSED);
    /* While it stands in the output list the slot stays; tcp_output_run comes back here. */
    if (!connection->is_queued && connection->is_used) {
        connection->is_used = false;
        ASSERT(connection->stack->tcp.connection_count > 0);
        connection->stack->tcp.connection_count--;
    }
}

void tcp_neighbour_failed(struct stack *stack, uint32_t ip4)
{
    ASSERT(stack != NULL);
    for (uint32_t i = 0; i < stack->tcp.connection_count_max; i++) {
        struct tcp_connection *connection = &stack->tcp.connections[i];
        bool opening = connection->state == TCP_SYN_SENT || connection->state == TCP_SYN_RECEIVED;
        if (connection->is_used && opening && connection->hop_ip4 == ip4) {
            tcp_fail(connection, STREAM_FAILURE_UNREACHABLE);
        }
    }
}

void tcp_path_mtu(struct tcp_connection *connection, uint32_t bytes)
{
    ASSERT(connection != NULL);
    bytes = bytes < IP4_PATH_MTU_FLOOR ? IP4_PATH_MTU_FLOOR : bytes;
    uint32_t headers =
        IP4_HEADER_BYTES + TCP_HEADER_BYTES + (connection->timestamps ? TCP_TIMESTAMP_BYTES : 0u);
    if (bytes - headers >= connection->mss_bytes) {
        return;
    }
    connection->mss_bytes = bytes - headers;
    connection->stack->counters.path_mtu_changes++;
    tcp_congestion_mss(&connection->congestion, connection->mss_bytes);
    ASSERT(connection->mss_bytes > 0);
}

static bool icmp_too_big(struct tcp_connection *connection, const struct tcp_icmp_error *report)
{
    ASSERT(connection != NULL);
    ASSERT(report != NULL);
    if (!tcp_is_synchronized(connection)) {
        return false;
    }
    uint32_t before = connection->mss_bytes;
    /* Routers from before RFC 1191 leave the field empty. */
    uint32_t bytes = report->next_mtu_bytes == 0 ? IP4_PATH_MTU_FLOOR : report->next_mtu_bytes;
    tcp_path_mtu(connection, bytes);
    if (connection->mss_bytes < before) {
        /* What was too big is lost for sure: it goes out again, cut smaller. */
        (void)tcp_scoreboard_lose_all(&connection->board);
        tcp_output_ask(connection);
    }
    return true;
}

bool tcp_icmp_error(struct stack *stack, const struct tcp_icmp_error *report)
{
    ASSERT(stack != NULL);
    ASSERT(report != NULL);
    uint32_t value = tcp_table_find(&stack->tcp.table, &report->tuple);
    if (value == TCP_TABLE_NONE || value >= stack->tcp.connection_count_max) {
        return false;
    }
    struct tcp_connection *connection = &stack->tcp.connections[value];
    bool in_flight = seq_le(connection->snd_una, report->sequence) &&
                     seq_lt(report->sequence, connection->snd_nxt);
    if (!in_flight) {
        return false;
    }
    stack->counters.icmp_errors_taken++;
    if (report->code == ICMP_CODE_TOO_BIG) {
        return icmp_too_big(connection, report);
    }
    bool hard = report->code <= ICMP_CODE_PORT || report->code >= 9;
    if (hard && connection->state == TCP_SYN_SENT) {
        tcp_fail(connection, STREAM_FAILURE_UNREACHABLE);
    }
    return true;
}
