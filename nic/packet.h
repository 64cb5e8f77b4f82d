/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and offsets of the headers that this folder reads and writes: Ethernet II, ARP, IPv4, ICMP
 * and TCP. Bytes of the wire go through load_be and store_be of base.h; no struct is laid over
 * them, so alignment and padding cannot matter. Addresses and ports are in host order everywhere
 * except inside a frame. */
#pragma once

#include "base.h"

#define ETHER_HEADER_BYTES 14
#define ETHER_FRAME_MIN    60
#define ETHER_TYPE_IP4     0x0800
#define ETHER_TYPE_ARP     0x0806
#define ETHER_TYPE_VLAN    0x8100
#define MAC_BYTES          6

#define ARP_BYTES      28
#define ARP_OP_REQUEST 1
#define ARP_OP_REPLY   2

#define IP4_HEADER_BYTES   20
#define IP4_PROTOCOL_ICMP  1
#define IP4_PROTOCOL_TCP   6
#define IP4_FLAG_DF        0x4000
#define IP4_FRAGMENT_MASK  0x3fff /* more-fragments bit and offset; not DF */
#define IP4_TTL            64
#define IP4_BROADCAST      UINT32_C(0xffffffff)
#define IP4_PATH_MTU_FLOOR 552

#define ICMP_HEADER_BYTES        8
#define ICMP_ECHO_REPLY          0
#define ICMP_UNREACHABLE         3
#define ICMP_ECHO_REQUEST        8
#define ICMP_CODE_NET            0
#define ICMP_CODE_HOST           1
#define ICMP_CODE_PROTOCOL       2
#define ICMP_CODE_PORT           3
#define ICMP_CODE_TOO_BIG        4
#define ICMP_CODE_ADMINISTRATIVE 13

#define TCP_HEADER_BYTES     20
#define TCP_HEADER_BYTES_MAX 60
#define TCP_FIN              0x01
#define TCP_SYN              0x02
#define TCP_RST              0x04
#define TCP_PSH              0x08
#define TCP_ACK              0x10

/* Everything in front of a TCP payload, at most. */
#define PACKET_HEADER_BYTES_MAX (ETHER_HEADER_BYTES + IP4_HEADER_BYTES + TCP_HEADER_BYTES_MAX)
