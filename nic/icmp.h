/* SPDX-License-Identifier: Apache-2.0 */
/* ICMP: answers echo requests (a bounded number a turn) and reads destination-unreachable
 * messages. An error counts only when it quotes a TCP segment that is in flight on one of this
 * stack's connections; hard errors end connections that are still coming up and never an
 * established one. */
#pragma once

#include "base.h"
#include "nic/ip4.h"

/* Reads one ICMP message; adds to exactly one rx_ counter.
 * threads  owning lane only
 * source   RFC 792, RFC 5927 §4, RFC 1191 §4 */
void icmp_input(struct stack *stack, const struct ip4_packet *packet);
