/* SPDX-License-Identifier: Apache-2.0 */
/* See network.h. A device that looks like a PCI address is probed on the bus; anything else is a
 * DPDK virtual device with its arguments, as on DPDK's command line. */
#include "control/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "nic/ether.h"
#include "nic/hand_off.h"
#include "nic/port_dpdk.h"

#define FRAME_TAIL_BYTES 8 /* a VLAN tag, and a check sequence that a device may leave */

struct network {
    bool has_eal;
    struct port *port;
    struct hand_off *hand_off; /* NULL with one queue */
    struct stack *stacks[NETWORK_QUEUES_MAX];
    uint32_t stack_count;
};

/* "0000:3b:00.0" or "3b:00.0". */
static bool is_pci(const char *device)
{
    unsigned domain = 0;
    unsigned bus = 0;
    unsigned slot = 0;
    unsigned function = 0;
    return sscanf(device, "%x:%x:%x.%x", &domain, &bus, &slot, &function) == 4 ||
           sscanf(device, "%x:%x.%x", &bus, &slot, &function) == 3;
}

static int name_key(struct error *error, const char *key)
{
    if (error != NULL && error->place[0] == '\0') {
        (void)snprintf(error->place, sizeof(error->place), "%s", key);
    }
    return -EINVAL;
}

/* The key that a setting of the NIC comes from. */
static const char *key_of_setting(const char *setting)
{
    static const char *const keys[][2] = {
        {"address_ip4", "nic.address"},
        {"prefix_bits", "nic.address"},
        {"mtu_bytes", "nic.mtu"},
        {"queue_count", "cores"},
        {"receive_bytes_max", "nic.connection_receive_kib"},
        {"send_bytes_max", "nic.connection_send_kib"},
    };
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        if (strcmp(keys[i][0], setting) == 0) {
            return keys[i][1];
        }
    }
    return "nic";
}

static bool is_near(const struct nic_config *nic, uint32_t ip4)
{
    ASSERT(nic->prefix_bits <= 32);
    const uint32_t mask = nic->prefix_bits == 0 ? 0 : UINT32_MAX << (32 - nic->prefix_bits);
    return (ip4 & mask) == (nic->address_ip4 & mask);
}

static int check_gateway(const struct appliance_config *config, const struct nic_config *nic,
                         struct error *error)
{
    if (nic->gateway_ip4 != 0 &&
        (!is_near(nic, nic->gateway_ip4) || nic->gateway_ip4 == nic->address_ip4)) {
        (void)error_set(error, -EINVAL, "found %s, want another address of nic.address's net %s",
                        config->nic.gateway, config->nic.address);
        return name_key(error, "nic.gateway");
    }
    return 0;
}

static int parse_box_address(const struct appliance_config *config, struct nic_config *nic,
                             struct error *error)
{
    ASSERT(config != NULL);
    char host[32];
    unsigned prefix = 0;
    char rest = 0;
    if (sscanf(config->nic.address, "%31[0-9.]/%u%c", host, &prefix, &rest) != 2 || prefix > 32 ||
        nic_ip4_parse(host, &nic->address_ip4) != 0) {
        (void)error_set(error, -EINVAL, "found %s, want an IPv4 address and prefix, a.b.c.d/n",
                        config->nic.address);
        return name_key(error, "nic.address");
    }
    nic->prefix_bits = prefix;
    nic->gateway_ip4 = 0;
    if (config->nic.gateway[0] != '\0' &&
        nic_ip4_parse(config->nic.gateway, &nic->gateway_ip4) != 0) {
        (void)error_set(error, -EINVAL, "found %s, want an IPv4 address", config->nic.gateway);
        return name_key(error, "nic.gateway");
    }
    return 0;
}

static int nic_settings(const struct appliance_config *config, uint32_t queue_count,
                        struct nic_config *nic, struct error *error)
{
    ASSERT(config != NULL);
    nic_config_defaults(nic);
    const int status = parse_box_address(config, nic, error);
    if (status != 0) {
        return status;
    }
    const char *device = config->nic.device;
    const size_t name_bytes = strcspn(device, ",");
    if (name_bytes == 0 || name_bytes >= sizeof(nic->device) ||
        strlen(device) >= sizeof(nic->vdev)) {
        (void)error_set(error, -EINVAL, "found %s, want a PCI address or a virtual device", device);
        return name_key(error, "nic.device");
    }
    (void)snprintf(nic->device, sizeof(nic->device), "%.*s", (int)name_bytes, device);
    (void)snprintf(nic->vdev, sizeof(nic->vdev), "%s", is_pci(device) ? "" : device);
    nic->queue_count = queue_count;
    nic->mtu_bytes = (uint32_t)config->nic.mtu;
    nic->huge_pages = config->memory.hugepages;
    nic->receive_bytes_max = (uint32_t)(config->nic.connection_receive_kib << 10);
    nic->send_bytes_max = (uint32_t)(config->nic.connection_send_kib << 10);
    const int refused = nic_config_check(nic, error);
    if (refused != 0) {
        (void)snprintf(error->place, sizeof(error->place), "%s", key_of_setting(error->place));
        return refused;
    }
    return check_gateway(config, nic, error);
}

static int check_eal(const struct config_list *eal, struct error *error)
{
    bool is_long = false;
    for (uint32_t i = 0; i < eal->count; i++) {
        is_long |= strlen(eal->items[i]) >= PORT_EAL_EXTRA_BYTES;
    }
    if (!is_long && eal->count <= PORT_EAL_EXTRA_MAX) {
        return 0;
    }
    (void)error_set(error, -E2BIG, "want at most %d arguments of at most %d characters",
                    PORT_EAL_EXTRA_MAX, PORT_EAL_EXTRA_BYTES - 1);
    return name_key(error, "nic.eal");
}

/* DPDK's drivers say little about the kernel's interfaces that they make or use. */
static int check_interface(const char *device, struct error *error)
{
    static const char argument[] = ",iface=";
    char name[IF_NAMESIZE];
    const bool makes = strncmp(device, "net_tap", strlen("net_tap")) == 0;
    const bool uses = strncmp(device, "net_af_packet", strlen("net_af_packet")) == 0;
    const char *at = strstr(device, argument);
    if (at == NULL || (!makes && !uses)) {
        return 0;
    }
    at += strlen(argument);
    const size_t bytes = strcspn(at, ",");
    if (bytes == 0 || bytes >= sizeof(name)) {
        (void)error_set(error, -EINVAL, "found %s, want an interface name of 1 to %d characters",
                        device, IF_NAMESIZE - 1);
        return name_key(error, "nic.device");
    }
    (void)snprintf(name, sizeof(name), "%.*s", (int)bytes, at);
    const bool exists = if_nametoindex(name) != 0;
    if (exists == uses) {
        return 0;
    }
    (void)error_set(error, -EEXIST,
                    makes ? "interface %s exists already: another program holds it, or choose "
                            "another name"
                          : "interface %s does not exist: see `ip link`",
                    name);
    return name_key(error, "nic.device");
}

static int open_eal(struct network *network, const struct appliance_config *config,
                    struct error *error)
{
    ASSERT(network != NULL);
    ASSERT(config != NULL);
    const bool pci = is_pci(config->nic.device);
    char prefix[32];
    (void)snprintf(prefix, sizeof(prefix), "penstock-%d", (int)getpid());
    const struct port_eal_config eal = {
        .program = "penstock",
        .file_prefix = prefix,
        .pci = pci,
        .pci_allow = pci ? config->nic.device : NULL,
        .vdevs = {pci ? NULL : config->nic.device},
        .memory_mb = config->memory.hugepages ? 0 : (uint32_t)config->memory.packets_mib,
        .huge_pages = config->memory.hugepages,
        .in_memory = config->memory.hugepages,
        .extra = (const char *const *)config->nic.eal.items,
        .extra_count = config->nic.eal.count,
    };
    const int status = port_eal_init(&eal, error);
    network->has_eal = status == 0;
    return status;
}

static int open_hand_off(struct network *network, const struct nic_config *nic, struct error *error)
{
    if (nic->queue_count == 1) {
        return 0;
    }
    return hand_off_create(nic->queue_count, HAND_OFF_SLOTS_DEFAULT,
                           nic->mtu_bytes + ETHER_HEADER_BYTES + FRAME_TAIL_BYTES,
                           &network->hand_off, error);
}

static int open_stacks(struct network *network, const struct nic_config *nic, uint64_t now_ns,
                       struct error *error)
{
    ASSERT(nic != NULL);
    for (uint32_t i = 0; i < nic->queue_count; i++) {
        struct stack_options options = {
            .config = nic,
            .port = network->port,
            .queue = (uint16_t)i,
            .now_ns = now_ns,
        };
        if (network->hand_off != NULL) {
            options.hand_off = hand_off_push;
            options.hand_off_context = hand_off_lane(network->hand_off, (uint16_t)i);
        }
        if (getrandom(options.secret, sizeof(options.secret), 0) != sizeof(options.secret)) {
            return error_set(error, -EIO, "no random bytes: %s", strerror(errno));
        }
        const int status = stack_create(&options, &network->stacks[i], error);
        if (status != 0) {
            return status;
        }
        network->stack_count++;
    }
    return 0;
}

int network_open(const struct appliance_config *config, uint32_t queue_count, uint64_t now_ns,
                 struct network **out, struct error *error)
{
    ASSERT(config != NULL);
    ASSERT(out != NULL);
    ASSERT(queue_count > 0 && queue_count <= NETWORK_QUEUES_MAX);
    struct nic_config nic;
    struct network *network = calloc(1, sizeof(*network));
    *out = network;
    if (network == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    int status = nic_settings(config, queue_count, &nic, error);
    if (status == 0) {
        status = check_interface(config->nic.device, error);
    }
    if (status != 0) {
        return status;
    }
    struct port_log *log = port_log_keep();
    status = open_eal(network, config, error);
    if (status == 0) {
        status = port_create(&nic, &network->port, error);
    }
    port_log_end(log, status, error);
    if (status != 0) {
        const char *memory = config->memory.hugepages ? "memory.hugepages" : "memory.packets_mib";
        (void)name_key(error, status == -ENOMEM ? memory : "nic.device");
        return status;
    }
    status = open_hand_off(network, &nic, error);
    return status == 0 ? open_stacks(network, &nic, now_ns, error) : status;
}

void network_close(struct network *network)
{
    if (network == NULL) {
        return;
    }
    for (uint32_t i = 0; i < network->stack_count; i++) {
        stack_destroy(network->stacks[i]);
    }
    hand_off_destroy(network->hand_off);
    port_destroy(network->port);
    if (network->has_eal) {
        port_eal_fini();
    }
    free(network);
}

struct stack *network_stack(struct network *network, uint32_t queue)
{
    ASSERT(queue < network->stack_count);
    return network->stacks[queue];
}

uint32_t network_take_over(struct network *network, uint32_t queue, uint64_t now_ns)
{
    ASSERT(queue < network->stack_count);
    if (network->hand_off == NULL) {
        return 0;
    }
    return hand_off_poll(hand_off_lane(network->hand_off, (uint16_t)queue), network->stacks[queue],
                         now_ns);
}

static void print_counter(const char *name, uint64_t value, uint32_t *printed, FILE *into)
{
    if (value != 0) {
        fprintf(into, "%s %s %lu", *printed % 4 == 0 ? "\nnetwork " : ",", name,
                (unsigned long)value);
        (*printed)++;
    }
}

void network_print(const struct network *network, FILE *into)
{
    size_t count = 0;
    const struct stack_counter_name *names = stack_counter_names(&count);
    uint32_t printed = 0;
    uint64_t dropped = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t sum = 0;
        for (uint32_t queue = 0; queue < network->stack_count; queue++) {
            const struct stack_counters *counters = stack_counters_get(network->stacks[queue]);
            sum += ((const uint64_t *)(const void *)counters)[i];
        }
        print_counter(names[i].name, sum, &printed, into);
    }
    for (uint32_t queue = 0; network->hand_off != NULL && queue < network->stack_count; queue++) {
        const struct hand_off_counters *counters =
            hand_off_counters_get(hand_off_lane(network->hand_off, (uint16_t)queue));
        dropped += counters->drop_full + counters->drop_length;
    }
    print_counter("hand_off_drops", dropped, &printed, into);
    fputs("\n\n", into);
}

struct stream *network_connect(void *stack, uint32_t ip4, uint16_t port, uint64_t now_ns)
{
    struct stream *stream = NULL;
    return stack_connect(stack, ip4, port, now_ns, &stream) == 0 ? stream : NULL;
}

int network_parse_address(const char *text, size_t bytes, struct kafka_address *out)
{
    const char *colon = memrchr(text, ':', bytes);
    if (colon == NULL || colon == text || (size_t)(colon - text) >= sizeof(out->host)) {
        return -EINVAL;
    }
    uint32_t port = 0;
    for (const char *at = colon + 1; at < text + bytes; at++) {
        if (*at < '0' || *at > '9' || port > 65535) {
            return -EINVAL;
        }
        port = port * 10 + (uint32_t)(*at - '0');
    }
    if (port == 0 || port > 65535) {
        return -EINVAL;
    }
    memset(out, 0, sizeof(*out));
    memcpy(out->host, text, (size_t)(colon - text));
    out->port = (uint16_t)port;
    return 0;
}

static int check_dialled(const char *item, uint32_t ip4, const struct nic_config *nic,
                         struct error *error)
{
    const char *why = NULL;
    if (ip4 == nic->address_ip4) {
        why = "is the box's own address (nic.address)";
    } else if (!is_near(nic, ip4) && nic->gateway_ip4 == 0) {
        why = "lies outside of nic.address's net, and there is no nic.gateway";
    }
    if (why == NULL) {
        return 0;
    }
    (void)error_set(error, -EINVAL, "%s: the address to dial %s", item, why);
    return name_key(error, "kafka.addresses");
}

static int add_map_row(const char *item, struct kafka_config *out, struct error *error)
{
    ASSERT(out != NULL);
    const char *equals = strchr(item, '=');
    struct kafka_address dialled;
    struct kafka_address_map *row = &out->address_map[out->address_map_count];
    if (equals == NULL || out->address_map_count == KAFKA_ADDRESS_MAP_MAX ||
        network_parse_address(item, (size_t)(equals - item), &row->advertised) != 0 ||
        network_parse_address(equals + 1, strlen(equals + 1), &dialled) != 0 ||
        nic_ip4_parse(dialled.host, &row->ip4) != 0) {
        (void)error_set(error, -EINVAL, "found %s, want host:port=a.b.c.d:port", item);
        return name_key(error, "kafka.addresses");
    }
    row->port = dialled.port;
    out->address_map_count++;
    return 0;
}

static bool is_mapped(const struct kafka_config *config, const struct kafka_address *address)
{
    ASSERT(address != NULL);
    uint32_t ip4 = 0;
    if (nic_ip4_parse(address->host, &ip4) == 0) {
        return true;
    }
    for (uint32_t i = 0; i < config->address_map_count; i++) {
        const struct kafka_address *row = &config->address_map[i].advertised;
        if (strcmp(row->host, address->host) == 0 &&
            (row->port == 0 || row->port == address->port)) {
            return true;
        }
    }
    return false;
}

/* Asks the system's resolver for a host that the map does not know, and adds what it says. */
static int resolve(const struct kafka_address *address, struct kafka_config *out,
                   struct error *error)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (is_mapped(out, address)) {
        return 0;
    }
    if (out->address_map_count == KAFKA_ADDRESS_MAP_MAX ||
        getaddrinfo(address->host, NULL, &hints, &found) != 0) {
        return error_set(error, -ENOENT,
                         "host %s is not known: give its address in the appliance file, "
                         "kafka.addresses: [\"%s:%u=a.b.c.d:%u\"]",
                         address->host, address->host, address->port, address->port);
    }
    struct sockaddr_in first;
    memcpy(&first, found->ai_addr, sizeof(first));
    freeaddrinfo(found);
    out->address_map[out->address_map_count++] = (struct kafka_address_map){
        .advertised = *address,
        .ip4 = ntohl(first.sin_addr.s_addr),
        .port = address->port,
    };
    return 0;
}

static int add_bootstrap(const char *text, size_t bytes, const char *key, struct kafka_config *out,
                         struct error *error)
{
    struct kafka_address address;
    if (network_parse_address(text, bytes, &address) != 0) {
        (void)error_set(error, -EINVAL, "found '%.*s', want host:port", (int)bytes, text);
        return name_key(error, key);
    }
    if (out->bootstrap_count == KAFKA_BOOTSTRAP_MAX) {
        (void)error_set(error, -E2BIG, "more than %d addresses; a few brokers tell of all others",
                        KAFKA_BOOTSTRAP_MAX);
        return name_key(error, key);
    }
    out->bootstrap[out->bootstrap_count++] = address;
    return 0;
}

static int add_servers(const char *servers, struct kafka_config *out, struct error *error)
{
    int status = 0;
    while (servers != NULL && *servers != '\0' && status == 0) {
        const size_t bytes = strcspn(servers, ",");
        status = add_bootstrap(servers, bytes, "properties.bootstrap.servers", out, error);
        servers += bytes + (servers[bytes] == ',' ? 1 : 0);
    }
    return status;
}

static void set_sizes(const struct appliance_config *config, struct kafka_config *out)
{
    ASSERT(config != NULL);
    ASSERT(out != NULL);
    (void)snprintf(out->client_id, sizeof(out->client_id), "%s", config->kafka.client_id);
    out->stream_receive_bytes = (uint32_t)(config->nic.connection_receive_kib << 10);
    out->fetch_bytes_max = (uint32_t)(config->kafka.fetch_max_kib << 10);
    out->fetch_partition_bytes_max = out->fetch_bytes_max;
    out->fetch_wait_ms = (uint32_t)config->kafka.fetch_wait_ms;
    out->request_timeout_ms = (uint32_t)config->kafka.request_timeout_ms;
    out->produce_batch_bytes = (uint32_t)(config->kafka.produce_batch_kib << 10);
    /* A broker that restarts remembers the last batch of each producer and partition only: with
     * one of a partition on its way, whatever has to be sent again is that, and is recognised. */
    out->produce_in_flight_max = (uint32_t)config->kafka.produce_in_flight;
    out->produce_partition_in_flight_max = 1;
    out->produce_codec = config->kafka.produce_lz4 ? KAFKA_CODEC_LZ4 : KAFKA_CODEC_NONE;
}

/* All but the resolver's part. */
static int fill_kafka_config(const struct appliance_config *config, const char *servers,
                             struct kafka_config *out, struct error *error)
{
    ASSERT(config != NULL);
    kafka_config_init(out);
    set_sizes(config, out);
    int status = 0;
    for (uint32_t i = 0; i < config->kafka.addresses.count && status == 0; i++) {
        status = add_map_row(config->kafka.addresses.items[i], out, error);
    }
    for (uint32_t i = 0; i < config->kafka.bootstrap.count && status == 0; i++) {
        const char *item = config->kafka.bootstrap.items[i];
        status = add_bootstrap(item, strlen(item), "kafka.bootstrap", out, error);
    }
    if (status == 0 && config->kafka.bootstrap.count == 0) {
        status = add_servers(servers, out, error);
    }
    if (status == 0 && out->bootstrap_count == 0) {
        (void)error_set(error, -EINVAL, "no broker is given, here or in the script");
        return name_key(error, "kafka.bootstrap");
    }
    return status;
}

int network_kafka_config(const struct appliance_config *config, const char *servers,
                         struct kafka_config *out, struct error *error)
{
    int status = fill_kafka_config(config, servers, out, error);
    const uint32_t count = out->bootstrap_count;
    for (uint32_t i = 0; i < count && status == 0; i++) {
        status = resolve(&out->bootstrap[i], out, error);
    }
    return status;
}

static int check_brokers(const struct appliance_config *config, const struct nic_config *nic,
                         const char *servers, bool resolves, struct error *error)
{
    struct kafka_config *kafka = malloc(sizeof(*kafka));
    if (kafka == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    int status = resolves ? network_kafka_config(config, servers, kafka, error)
                          : fill_kafka_config(config, servers, kafka, error);
    for (uint32_t i = 0; i < kafka->address_map_count && status == 0; i++) {
        status = check_dialled(kafka->address_map[i].advertised.host, kafka->address_map[i].ip4,
                               nic, error);
    }
    free(kafka);
    return status;
}

/* NULL for a node that talks to no broker. */
static const char *servers_of(const struct plan_node *node)
{
    if (node->operator== PLAN_SOURCE) {
        return node->source.bootstrap_servers;
    }
    return node->operator== PLAN_SINK ? node->sink.bootstrap_servers : NULL;
}

int network_check(const struct appliance_config *config, const struct plan *plan, bool resolves,
                  struct error *error)
{
    ASSERT(config != NULL && plan != NULL);
    struct nic_config nic;
    int status = nic_settings(config, 1, &nic, error);
    if (status == 0) {
        status = check_eal(&config->nic.eal, error);
    }
    for (uint32_t i = 0; i < plan->node_count && status == 0; i++) {
        const char *servers = servers_of(plan->nodes[i]);
        if (servers != NULL) {
            status = check_brokers(config, &nic, servers, resolves, error);
        }
    }
    return status;
}
