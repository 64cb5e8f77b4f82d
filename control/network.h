/* SPDX-License-Identifier: Apache-2.0 */
/* The box's side of the network, made from the appliance file: DPDK, the port, one TCP/IP stack a
 * queue, and the settings of Kafka clients that connect over them. Everything is made before lanes
 * run; a stack then belongs to its lane. Control thread only, but for network_connect. */
#pragma once

#include <stdio.h>

#include "base.h"
#include "control/config.h"
#include "dataplane/kafka/client.h"
#include "dataplane/plan.h"
#include "nic/stack.h"

#define NETWORK_QUEUES_MAX CONFIG_CORES_MAX

struct network;

/* Checks what the appliance file says about the network, without touching it: addresses, device,
 * address map, and each table's brokers. What a broker's name means is asked of the resolver only
 * when resolves is set.
 * returns  0, or -errno with the key's name in error->place */
int network_check(const struct appliance_config *config, const struct plan *plan, bool resolves,
                  struct error *error);

/* Brings up DPDK, the device and its stacks.
 * config       borrowed for the call
 * queue_count  lanes that talk to the network, 1 to NETWORK_QUEUES_MAX
 * out          closed by network_close, also after a failure */
int network_open(const struct appliance_config *config, uint32_t queue_count, uint64_t now_ns,
                 struct network **out, struct error *error);

/* Takes everything down again. NULL is fine; no lane runs any more. */
void network_close(struct network *network);

/* The stack of a queue.
 * returns  borrowed; used by the queue's lane only */
struct stack *network_stack(struct network *network, uint32_t queue);

/* Feeds the queue's stack what other queues received for it; a lane does this before stack_poll.
 * returns  frames fed
 * threads  the queue's lane only */
uint32_t network_take_over(struct network *network, uint32_t queue, uint64_t now_ns);

/* Prints every counter of the stacks that is not zero, summed over the queues. */
void network_print(const struct network *network, FILE *into);

/* Fills in the settings of a Kafka client: addresses, sizes and times of the appliance file.
 * servers  the script's properties.bootstrap.servers; the file's kafka.bootstrap goes before it
 * out      a client's config, to be refined by the caller
 * returns  0, -EINVAL for an address that is none (error names the key), -ENOENT for a host name
 *          that neither kafka.addresses nor the resolver knows */
int network_kafka_config(const struct appliance_config *config, const char *servers,
                         struct kafka_config *out, struct error *error);

/* A kafka_connector's connect over a stack (the context).
 * threads  the stack's lane only */
struct stream *network_connect(void *stack, uint32_t ip4, uint16_t port, uint64_t now_ns);

/* Splits "host:port".
 * returns  0 or -EINVAL */
int network_parse_address(const char *text, size_t bytes, struct kafka_address *out);
