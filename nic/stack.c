/* SPDX-License-Identifier: Apache-2.0 */
/* One stack: its turn, its frames on the way out, and its counters. Frames are finished into a
 * small array and handed to the port once a turn, or when the array is full; what the port does
 * not take stays in front, in order, and holds back further sends. */
#include "nic/stack.h"

#include <errno.h>
#include <stdlib.h>

#include "nic/ether.h"
#include "nic/stack_internal.h"

int stack_create(const struct stack_options *options, struct stack **out, struct error *error)
{
    ASSERT(options != NULL && out != NULL);
    ASSERT(options->config != NULL && options->port != NULL);
    *out = NULL;
    int status = nic_config_check(options->config, error);
    if (status != 0) {
        return status;
    }
    const struct port_info *info = port_info(options->port);
    if (options->queue >= info->queue_count) {
        return error_set(error, -EINVAL, "port %s has no queue %u", info->name, options->queue);
    }
    struct stack *stack = calloc(1, sizeof(*stack));
    if (stack == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    stack->config = *options->config;
    stack->port = options->port;
    stack->info = info;
    stack->queue = options->queue;
    stack->now_ns = options->now_ns;
    stack->hand_off = options->hand_off;
    stack->hand_off_context = options->hand_off_context;
    stack->reply_budget = STACK_REPLY_COUNT_MAX;
    status = arp_init(&stack->arp, stack->config.neighbour_count_max);
    if (status == 0) {
        status = tcp_init(stack, options, error);
    }
    if (status != 0) {
        stack_destroy(stack);
        return status;
    }
    *out = stack;
    return 0;
}

void stack_destroy(struct stack *stack)
{
    if (stack == NULL) {
        return;
    }
    arp_drain(stack);
    port_release(stack->port, stack->queue, stack->tx, stack->tx_count);
    tcp_fini(stack);
    arp_fini(&stack->arp);
    free(stack);
}

void stack_frames_flush(struct stack *stack)
{
    if (stack->tx_count == 0) {
        return;
    }
    ASSERT(stack->tx_count <= STACK_TX_MAX);
    uint32_t sent = port_tx(stack->port, stack->queue, stack->tx, stack->tx_count);
    ASSERT(sent <= stack->tx_count);
    stack->counters.tx_frames += sent;
    stack->sent_count += sent;
    stack->tx_count -= sent;
    memmove(stack->tx, stack->tx + sent, sizeof(stack->tx[0]) * stack->tx_count);
}

bool stack_frame_take(struct stack *stack, uint32_t l4_bytes, struct port_frame *frame)
{
    ASSERT(stack != NULL && frame != NULL);
    if (UNLIKELY(stack->tx_count == STACK_TX_MAX)) {
        stack_frames_flush(stack);
        if (stack->tx_count == STACK_TX_MAX) {
            stack->counters.tx_full++;
            return false;
        }
    }
    uint32_t bytes = ETHER_HEADER_BYTES + IP4_HEADER_BYTES + l4_bytes;
    if (UNLIKELY(!port_tx_alloc(stack->port, stack->queue, bytes, frame))) {
        stack->counters.tx_no_frame++;
        return false;
    }
    ASSERT(frame->bytes == bytes);
    return true;
}

void stack_frame_push(struct stack *stack, const struct port_frame *frame)
{
    ASSERT(stack != NULL);
    ASSERT(stack->tx_count < STACK_TX_MAX);
    stack->tx[stack->tx_count++] = *frame;
}

void stack_frame_drop(struct stack *stack, struct port_frame *frame)
{
    ASSERT(stack != NULL);
    ASSERT(frame->cookie != NULL || frame->data != NULL);
    port_release(stack->port, stack->queue, frame, 1);
}

/* Time never goes back: every deadline rests on it. */
static void time_set(struct stack *stack, uint64_t now_ns)
{
    ASSERT(stack != NULL);
    ASSERT(now_ns >= stack->now_ns);
    stack->now_ns = now_ns;
}

uint32_t stack_poll(struct stack *stack, uint64_t now_ns)
{
    ASSERT(stack != NULL);
    struct port_frame frames[PORT_BURST_MAX];
    time_set(stack, now_ns);
    stack->sent_count = 0;
    stack->reply_budget = STACK_REPLY_COUNT_MAX;
    stack->tcp.turn++;
    uint32_t count = port_rx(stack->port, stack->queue, frames, stack->config.burst_count);
    for (uint32_t i = 0; i < count; i++) {
        ether_input(stack, &frames[i], true);
    }
    port_release(stack->port, stack->queue, frames, count);
    arp_poll(stack);
    tcp_poll(stack);
    tcp_output_run(stack, false);
    stack_frames_flush(stack);
    return count + stack->sent_count;
}

uint32_t stack_flush(struct stack *stack, uint64_t now_ns)
{
    ASSERT(stack != NULL);
    time_set(stack, now_ns);
    stack->sent_count = 0;
    tcp_output_run(stack, true);
    stack_frames_flush(stack);
    return stack->sent_count;
}

void stack_input(struct stack *stack, const struct port_frame *frame, uint64_t now_ns)
{
    ASSERT(stack != NULL && frame != NULL);
    time_set(stack, now_ns);
    ether_input(stack, frame, false);
}

uint64_t stack_deadline_ns(const struct stack *stack)
{
    ASSERT(stack != NULL);
    if (stack->tcp.output_count > 0 || stack->tx_count > 0 || !stack->arp.announced) {
        return stack->now_ns;
    }
    uint64_t tcp_ns = tcp_timers_next_ns(&stack->tcp.timers);
    return tcp_ns < stack->arp.deadline_ns ? tcp_ns : stack->arp.deadline_ns;
}

const struct stack_counters *stack_counters_get(const struct stack *stack)
{
    ASSERT(stack != NULL);
    return &stack->counters;
}

static const struct stack_counter_name counter_names[] = {
#define STACK_COUNTER_NAME(name, doc) {#name, doc},
    STACK_COUNTERS(STACK_COUNTER_NAME)
#undef STACK_COUNTER_NAME
};

static_assert(sizeof(counter_names) / sizeof(counter_names[0]) ==
                  sizeof(struct stack_counters) / sizeof(uint64_t),
              "one name a counter");

const struct stack_counter_name *stack_counter_names(size_t *count)
{
    ASSERT(count != NULL);
    *count = COUNT_OF(counter_names);
    return counter_names;
}

bool stack_is_balanced(const struct stack *stack)
{
    ASSERT(stack != NULL);
    const struct stack_counters *c = &stack->counters;
    uint64_t frames = c->rx_arp + c->rx_icmp + c->rx_tcp + c->rx_handed_off + c->rx_drop_short +
                      c->rx_drop_other + c->rx_drop_arp + c->rx_drop_ip_header +
                      c->rx_drop_fragment + c->rx_drop_icmp + c->rx_drop_tcp_header +
                      c->rx_drop_tcp_checksum + c->rx_drop_tcp_unknown;
    uint64_t held = 0;
    for (uint32_t i = 0; i < stack->tcp.connection_count_max; i++) {
        held += tcp_reassembly_held_bytes(&stack->tcp.connections[i].reassembly);
    }
    uint64_t bytes = c->tcp_bytes_delivered + held + c->tcp_bytes_duplicate + c->tcp_bytes_outside +
                     c->tcp_bytes_unqueued + c->tcp_bytes_refused;
    return frames == c->rx_frames && bytes == c->tcp_bytes_in;
}
