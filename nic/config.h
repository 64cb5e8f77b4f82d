/* SPDX-License-Identifier: Apache-2.0 */
/* Every limit and choice of the nic folder, in one struct that is constant after start. One table
 * names each field with its bounds, its default and its meaning: it fills the defaults, parses
 * values, checks them and prints the reference. */
#pragma once

#include "base.h"

#define NIC_CONFIG_TEXT_BYTES 128

struct nic_config {
    /* The port. */
    char device[NIC_CONFIG_TEXT_BYTES];
    char vdev[NIC_CONFIG_TEXT_BYTES];
    uint32_t queue_count;
    uint32_t rx_descriptor_count;
    uint32_t tx_descriptor_count;
    uint32_t rx_frame_count;
    uint32_t tx_frame_count;
    uint32_t mtu_bytes;
    uint32_t checksum_offload;
    uint32_t segmentation_offload;
    uint32_t huge_pages;

    /* The network. */
    uint32_t address_ip4;
    uint32_t prefix_bits;
    uint32_t gateway_ip4;
    uint32_t burst_count;

    /* Neighbours. */
    uint32_t neighbour_count_max;
    uint32_t arp_retry_ms;
    uint32_t arp_retry_count_max;
    uint32_t arp_reachable_ms;

    /* TCP. */
    uint32_t connection_count_max;
    uint32_t time_wait_count_max;
    uint32_t receive_bytes_max;
    uint32_t send_bytes_max;
    uint32_t segment_count_max;
    uint32_t local_port_min;
    uint32_t local_port_max;
    uint32_t connect_timeout_ms;
    uint32_t user_timeout_ms;
    uint32_t rto_ms_min;
    uint32_t rto_ms_max;
    uint32_t rto_initial_ms;
    uint32_t keepalive_idle_ms;
    uint32_t keepalive_interval_ms;
    uint32_t keepalive_count_max;
    uint32_t time_wait_ms;
    uint32_t linger_ms;
    uint32_t initial_window_segments;
    uint32_t mss_bytes_min;
    uint32_t challenge_ack_count_max;
};

enum nic_config_type {
    NIC_CONFIG_U32 = 0,
    NIC_CONFIG_BOOL,
    NIC_CONFIG_POWER_OF_TWO, /* a U32 that must be a power of two */
    NIC_CONFIG_IP4,          /* dotted quad, or empty for none */
    NIC_CONFIG_TEXT,
};

struct nic_config_key {
    const char *key;
    size_t offset;
    enum nic_config_type type;
    uint32_t min;
    uint32_t max;
    uint32_t number_default;
    const char *text_default;
    const char *doc;
};

/* The table, for printing help and for parsers of configuration files.
 * returns  rows that live as long as the program; their number in *count
 * threads  any */
const struct nic_config_key *nic_config_keys(size_t *count);

/* Sets every field to its default.
 * threads  control path */
void nic_config_defaults(struct nic_config *config);

/* Sets one field from text.
 * key      as in the table
 * returns  0, -ENOENT for an unknown key, -EINVAL for a bad value, with words in error
 * threads  control path */
int nic_config_set(struct nic_config *config, const char *key, const char *value,
                   struct error *error);

/* Checks every field against its bounds and the fields against each other.
 * returns  0 or -EINVAL; error->place is the key
 * threads  control path */
int nic_config_check(const struct nic_config *config, struct error *error);

/* Parses a dotted quad.
 * returns  0 or -EINVAL
 * threads  any */
int nic_ip4_parse(const char *text, uint32_t *ip4);
