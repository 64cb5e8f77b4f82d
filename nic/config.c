/* SPDX-License-Identifier: Apache-2.0 */
/* One row a field. Defaults suit one broker connection pair a lane on a 10 Gbit/s LAN; a large
 * fetch needs receive_bytes_max of at least its biggest frame, since frames are read in one
 * span. */
#include "nic/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#define NUMBER(name, low, high, preset, words)                                                     \
    {                                                                                              \
        .key = #name, .offset = offsetof(struct nic_config, name), .type = NIC_CONFIG_U32,         \
        .min = (low), .max = (high), .number_default = (preset), .doc = (words)                    \
    }
#define POWER(name, low, high, preset, words)                                                      \
    {                                                                                              \
        .key = #name, .offset = offsetof(struct nic_config, name),                                 \
        .type = NIC_CONFIG_POWER_OF_TWO, .min = (low), .max = (high), .number_default = (preset),  \
        .doc = (words)                                                                             \
    }
#define SWITCH(name, preset, words)                                                                \
    {                                                                                              \
        .key = #name, .offset = offsetof(struct nic_config, name), .type = NIC_CONFIG_BOOL,        \
        .max = 1, .number_default = (preset), .doc = (words)                                       \
    }
#define ADDRESS(name, words)                                                                       \
    {                                                                                              \
        .key = #name, .offset = offsetof(struct nic_config, name), .type = NIC_CONFIG_IP4,         \
        .max = UINT32_MAX, .doc = (words)                                                          \
    }
#define TEXT(name, preset, words)                                                                  \
    {                                                                                              \
        .key = #name, .offset = offsetof(struct nic_config, name), .type = NIC_CONFIG_TEXT,        \
        .max = NIC_CONFIG_TEXT_BYTES - 1, .text_default = (preset), .doc = (words)                 \
    }

static const struct nic_config_key config_keys[] = {
    TEXT(device, "", "ethdev by name or PCI address; empty takes the vdev's, or the only port"),
    TEXT(vdev, "", "virtual device to create, such as net_tap0,iface=pen0"),
    NUMBER(queue_count, 1, 64, 1, "receive and transmit queue pairs, one a lane"),
    POWER(rx_descriptor_count, 64, 8192, 1024, "descriptors of each receive ring"),
    POWER(tx_descriptor_count, 64, 8192, 1024, "descriptors of each transmit ring"),
    NUMBER(rx_frame_count, 256, 1048576, 4095, "frame buffers for receiving, a queue"),
    NUMBER(tx_frame_count, 256, 1048576, 4095, "frame buffers for sending, a queue"),
    NUMBER(mtu_bytes, 576, 9000, 1500, "largest IP packet"),
    SWITCH(checksum_offload, 1, "let the port do checksums where it can"),
    SWITCH(segmentation_offload, 0, "let the port cut sends above 8 KiB where it can (TSO)"),
    SWITCH(huge_pages, 0, "stream buffers in 2 MiB hugepages"),
    ADDRESS(address_ip4, "this host's IPv4 address"),
    NUMBER(prefix_bits, 1, 32, 24, "length of the subnet prefix"),
    ADDRESS(gateway_ip4, "next hop outside the subnet; empty for none"),
    NUMBER(burst_count, 1, 64, 32, "frames taken from the port in one poll"),
    NUMBER(neighbour_count_max, 1, 256, 32, "entries of the ARP cache"),
    NUMBER(arp_retry_ms, 10, 10000, 250, "time between ARP requests"),
    NUMBER(arp_retry_count_max, 1, 32, 5, "ARP requests without answer before giving up"),
    NUMBER(arp_reachable_ms, 1000, 3600000, 30000, "age at which an entry is asked again"),
    NUMBER(connection_count_max, 1, 4096, 16, "TCP connections of one stack"),
    NUMBER(time_wait_count_max, 16, 65536, 1024, "closed connections remembered by one stack"),
    POWER(receive_bytes_max, 65536, 1u << 30, 4u << 20, "receive buffer of a connection"),
    POWER(send_bytes_max, 65536, 1u << 30, 1u << 20, "send buffer of a connection"),
    POWER(segment_count_max, 64, 65536, 1024, "segments in flight of a connection"),
    NUMBER(local_port_min, 1024, 65535, 32768, "first local port"),
    NUMBER(local_port_max, 1024, 65535, 60999, "last local port"),
    NUMBER(connect_timeout_ms, 10, 600000, 10000, "time for a connection to come up"),
    NUMBER(user_timeout_ms, 100, 3600000, 30000, "time without progress before giving up"),
    NUMBER(rto_ms_min, 50, 10000, 200, "least retransmission timeout"),
    NUMBER(rto_ms_max, 1000, 600000, 60000, "greatest retransmission timeout"),
    NUMBER(rto_initial_ms, 50, 10000, 1000, "retransmission timeout before the first sample"),
    NUMBER(keepalive_idle_ms, 0, 7200000, 60000, "idle time before a probe; 0 for no probes"),
    NUMBER(keepalive_interval_ms, 10, 600000, 5000, "time between unanswered probes"),
    NUMBER(keepalive_count_max, 1, 32, 6, "unanswered probes before giving up"),
    NUMBER(time_wait_ms, 1, 240000, 60000, "time in TIME-WAIT"),
    NUMBER(linger_ms, 1, 600000, 60000, "time for a released connection to close in order"),
    NUMBER(initial_window_segments, 1, 64, 10, "initial congestion window (RFC 6928)"),
    NUMBER(mss_bytes_min, 48, 1220, 88, "least segment size taken from a peer"),
    NUMBER(challenge_ack_count_max, 1, 1000, 10, "challenge ACKs of a connection in a second"),
};

static uint32_t *number_at(struct nic_config *config, const struct nic_config_key *row)
{
    ASSERT(row->type != NIC_CONFIG_TEXT);
    ASSERT(row->offset + sizeof(uint32_t) <= sizeof(*config));
    return (uint32_t *)(void *)((uint8_t *)config + row->offset);
}

static uint32_t number_get(const struct nic_config *config, const struct nic_config_key *row)
{
    ASSERT(config != NULL);
    ASSERT(row->type != NIC_CONFIG_TEXT);
    uint32_t value;
    memcpy(&value, (const uint8_t *)config + row->offset, sizeof(value));
    return value;
}

static void place_set(struct error *error, const char *key)
{
    if (error != NULL) {
        strncpy(error->place, key, ERROR_PLACE_BYTES - 1);
        error->place[ERROR_PLACE_BYTES - 1] = '\0';
    }
}

const struct nic_config_key *nic_config_keys(size_t *count)
{
    ASSERT(count != NULL);
    *count = COUNT_OF(config_keys);
    return config_keys;
}

void nic_config_defaults(struct nic_config *config)
{
    ASSERT(config != NULL);
    memset(config, 0, sizeof(*config));
    for (size_t i = 0; i < COUNT_OF(config_keys); i++) {
        const struct nic_config_key *row = &config_keys[i];
        if (row->type == NIC_CONFIG_TEXT) {
            char *text = (char *)config + row->offset;
            strncpy(text, row->text_default, NIC_CONFIG_TEXT_BYTES - 1);
        } else {
            *number_at(config, row) = row->number_default;
        }
    }
}

int nic_ip4_parse(const char *text, uint32_t *ip4)
{
    ASSERT(text != NULL && ip4 != NULL);
    struct in_addr address;
    if (inet_pton(AF_INET, text, &address) != 1) {
        return -EINVAL;
    }
    *ip4 = ntohl(address.s_addr);
    return 0;
}

static int number_check(const struct nic_config_key *row, uint64_t value, struct error *error)
{
    ASSERT(row != NULL);
    if (value < row->min || value > row->max) {
        return error_set(error, -EINVAL, "%s is %llu: it must lie between %u and %u", row->key,
                         (unsigned long long)value, row->min, row->max);
    }
    if (row->type == NIC_CONFIG_POWER_OF_TWO && (value & (value - 1)) != 0) {
        return error_set(error, -EINVAL, "%s is %llu: it must be a power of two", row->key,
                         (unsigned long long)value);
    }
    return 0;
}

/* strtoull takes signs and spaces; a first character that is no digit is refused before it. */
static int number_parse(const struct nic_config_key *row, const char *value, uint32_t *out,
                        struct error *error)
{
    ASSERT(row != NULL);
    ASSERT(value != NULL);
    if (row->type == NIC_CONFIG_BOOL) {
        bool yes = strcasecmp(value, "true") == 0 || strcmp(value, "1") == 0;
        bool no = strcasecmp(value, "false") == 0 || strcmp(value, "0") == 0;
        *out = yes ? 1 : 0;
        return yes || no
                   ? 0
                   : error_set(error, -EINVAL, "%s is '%s': write true or false", row->key, value);
    }
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0) {
        return error_set(error, -EINVAL, "%s is '%s': write a whole number", row->key, value);
    }
    *out = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
    return number_check(row, number, error);
}

static int row_set(struct nic_config *config, const struct nic_config_key *row, const char *value,
                   struct error *error)
{
    ASSERT(config != NULL);
    ASSERT(row != NULL);
    if (row->type == NIC_CONFIG_TEXT) {
        if (strlen(value) > row->max) {
            return error_set(error, -EINVAL, "%s is longer than %u bytes", row->key, row->max);
        }
        char *text = (char *)config + row->offset;
        memset(text, 0, NIC_CONFIG_TEXT_BYTES);
        memcpy(text, value, strlen(value));
        return 0;
    }
    uint32_t number = 0;
    int status = 0;
    if (row->type != NIC_CONFIG_IP4) {
        status = number_parse(row, value, &number, error);
    } else if (value[0] != '\0' && nic_ip4_parse(value, &number) != 0) {
        status = error_set(error, -EINVAL, "%s is '%s': write an IPv4 address such as 198.18.0.2",
                           row->key, value);
    }
    if (status == 0) {
        *number_at(config, row) = number;
    }
    return status;
}

int nic_config_set(struct nic_config *config, const char *key, const char *value,
                   struct error *error)
{
    ASSERT(config != NULL);
    ASSERT(key != NULL && value != NULL);
    place_set(error, key);
    for (size_t i = 0; i < COUNT_OF(config_keys); i++) {
        if (strcmp(config_keys[i].key, key) == 0) {
            return row_set(config, &config_keys[i], value, error);
        }
    }
    return error_set(error, -ENOENT, "unknown key '%s'", key);
}

int nic_config_check(const struct nic_config *config, struct error *error)
{
    ASSERT(config != NULL);
    for (size_t i = 0; i < COUNT_OF(config_keys); i++) {
        const struct nic_config_key *row = &config_keys[i];
        if (row->type == NIC_CONFIG_TEXT) {
            continue;
        }
        int status = number_check(row, number_get(config, row), error);
        if (status != 0) {
            place_set(error, row->key);
            return status;
        }
    }
    if (config->address_ip4 == 0) {
        place_set(error, "address_ip4");
        return error_set(error, -EINVAL, "address_ip4 is missing");
    }
    if (config->local_port_min > config->local_port_max) {
        place_set(error, "local_port_min");
        return error_set(error, -EINVAL, "local_port_min is above local_port_max");
    }
    if (config->rto_ms_min > config->rto_ms_max) {
        place_set(error, "rto_ms_min");
        return error_set(error, -EINVAL, "rto_ms_min is above rto_ms_max");
    }
    return 0;
}
