/* SPDX-License-Identifier: Apache-2.0 */
/* The DPDK body of port.h, for any ethdev: vfio devices, net_tap, net_af_packet, net_ring,
 * net_memif. Buffers are sized so that a whole frame of the MTU fits one mbuf; scatter is switched
 * on where a device insists on chaining, and a chain is flattened before it is shown.
 *
 * Checksums: GOOD and BAD are believed, NONE and UNKNOWN are not and get no flag, so the stack
 * checks in software. Receive pools, send pools and caches are one per queue, so no lane shares a
 * line with another. */
#include "nic/port_dpdk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "nic/flow.h"

#define POOL_CACHE_COUNT  128
#define TSO_PAYLOAD_BYTES 32768
#define MBUF_HEADROOM     RTE_PKTMBUF_HEADROOM

struct port_queue {
    struct rte_mempool *rx_pool;
    struct rte_mempool *tx_pool;
    struct rte_mempool *tso_pool; /* NULL without segmentation offload */
    uint64_t chained_count;
    uint64_t refused_count;
} __attribute__((aligned(CACHE_LINE_BYTES)));

struct port {
    struct port_info info;
    uint16_t id;
    bool started;
    bool owns_vdev;
    char vdev_name[PORT_NAME_BYTES];
    uint32_t frame_bytes_max;
    struct rte_eth_dev_info device;
    struct port_queue *queues;
};

const struct port_info *port_info(const struct port *port)
{
    ASSERT(port != NULL);
    return &port->info;
}

bool port_link_is_up(const struct port *port)
{
    ASSERT(port != NULL);
    struct rte_eth_link link = {0};
    return rte_eth_link_get_nowait(port->id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

/* GOOD and BAD are believed; NONE and UNKNOWN become no flag, which means check in software. */
static uint16_t flags_of(uint64_t offload)
{
    uint16_t flags = 0;
    uint64_t ip = offload & RTE_MBUF_F_RX_IP_CKSUM_MASK;
    uint64_t l4 = offload & RTE_MBUF_F_RX_L4_CKSUM_MASK;
    if (ip == RTE_MBUF_F_RX_IP_CKSUM_GOOD || ip == RTE_MBUF_F_RX_IP_CKSUM_BAD) {
        flags |= ip == RTE_MBUF_F_RX_IP_CKSUM_GOOD ? PORT_RX_IP_GOOD : PORT_RX_IP_BAD;
    }
    if (l4 == RTE_MBUF_F_RX_L4_CKSUM_GOOD || l4 == RTE_MBUF_F_RX_L4_CKSUM_BAD) {
        flags |= l4 == RTE_MBUF_F_RX_L4_CKSUM_GOOD ? PORT_RX_L4_GOOD : PORT_RX_L4_BAD;
    }
    return flags;
}

uint32_t port_rx(struct port *port, uint16_t queue, struct port_frame *frames, uint32_t count)
{
    ASSERT(count <= PORT_BURST_MAX);
    ASSERT(queue < port->info.queue_count);
    struct rte_mbuf *burst[PORT_BURST_MAX];
    uint16_t received = rte_eth_rx_burst(port->id, queue, burst, (uint16_t)count);
    for (uint16_t i = 0; i < received; i++) {
        rte_prefetch0(rte_pktmbuf_mtod(burst[i], void *));
    }
    uint32_t kept = 0;
    for (uint16_t i = 0; i < received; i++) {
        struct rte_mbuf *mbuf = burst[i];
        if (UNLIKELY(mbuf->nb_segs > 1) && rte_pktmbuf_linearize(mbuf) != 0) {
            port->queues[queue].chained_count++;
            rte_pktmbuf_free(mbuf);
            continue;
        }
        frames[kept++] = (struct port_frame){
            .data = rte_pktmbuf_mtod(mbuf, uint8_t *),
            .bytes = mbuf->data_len,
            .flags = flags_of(mbuf->ol_flags),
            .cookie = mbuf,
        };
    }
    return kept;
}

void port_release(struct port *port, uint16_t queue, struct port_frame *frames, uint32_t count)
{
    ASSERT(frames != NULL);
    ASSERT(port != NULL);
    (void)queue;
    for (uint32_t i = 0; i < count; i++) {
        rte_pktmbuf_free(frames[i].cookie);
        frames[i].cookie = NULL;
    }
}

bool port_tx_alloc(struct port *port, uint16_t queue, uint32_t bytes, struct port_frame *frame)
{
    ASSERT(queue < port->info.queue_count);
    const struct port_queue *own = &port->queues[queue];
    bool large = bytes > port->frame_bytes_max;
    ASSERT(!large || own->tso_pool != NULL);
    struct rte_mbuf *mbuf = rte_pktmbuf_alloc(large ? own->tso_pool : own->tx_pool);
    if (UNLIKELY(mbuf == NULL)) {
        return false;
    }
    ASSERT(rte_pktmbuf_tailroom(mbuf) >= bytes);
    *frame = (struct port_frame){
        .data = rte_pktmbuf_mtod(mbuf, uint8_t *), .bytes = bytes, .cookie = mbuf};
    return true;
}

/* Header lengths are what drivers need to find the fields that they fill in. */
static void mbuf_prepare(struct rte_mbuf *mbuf, const struct port_frame *frame)
{
    ASSERT(mbuf != NULL);
    ASSERT(frame != NULL);
    mbuf->data_len = (uint16_t)frame->bytes;
    mbuf->pkt_len = frame->bytes;
    mbuf->l2_len = ETHER_HEADER_BYTES;
    mbuf->l3_len = IP4_HEADER_BYTES;
    mbuf->l4_len = frame->l4_header_bytes & 0xff;
    uint64_t offload = 0;
    if ((frame->flags & PORT_TX_IP_SUM) != 0) {
        offload |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
    }
    if ((frame->flags & PORT_TX_TCP_SUM) != 0) {
        offload |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_TCP_CKSUM;
    }
    if ((frame->flags & PORT_TX_SEGMENT) != 0) {
        offload |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_TCP_SEG;
        mbuf->tso_segsz = frame->mss_bytes;
    }
    mbuf->ol_flags = offload;
}

uint32_t port_tx(struct port *port, uint16_t queue, struct port_frame *frames, uint32_t count)
{
    ASSERT(port != NULL);
    ASSERT(count <= PORT_BURST_MAX);
    struct rte_mbuf *burst[PORT_BURST_MAX];
    for (uint32_t i = 0; i < count; i++) {
        burst[i] = frames[i].cookie;
        mbuf_prepare(burst[i], &frames[i]);
    }
    uint16_t ready = (uint16_t)count;
    if (port->info.tx_tcp_sum || port->info.tso_bytes_max > 0) {
        ready = rte_eth_tx_prepare(port->id, queue, burst, (uint16_t)count);
    }
    if (UNLIKELY(ready == 0 && count > 0)) {
        /* The first one will never do: it must not stand in front of the others for ever. */
        port->queues[queue].refused_count++;
        rte_pktmbuf_free(burst[0]);
        return 1;
    }
    return rte_eth_tx_burst(port->id, queue, burst, ready);
}

/* ---- Creation ------------------------------------------------------------------------------ */

static void names_list(char *into, size_t bytes)
{
    ASSERT(into != NULL);
    uint16_t id;
    size_t used = 0;
    into[0] = '\0';
    RTE_ETH_FOREACH_DEV(id)
    {
        char name[RTE_ETH_NAME_MAX_LEN];
        if (rte_eth_dev_get_name_by_port(id, name) == 0 && used < bytes) {
            int wrote = snprintf(into + used, bytes - used, "%s%s", used > 0 ? ", " : "", name);
            used += wrote > 0 ? (size_t)wrote : 0;
        }
    }
}

/* A device of this name may exist already, from the EAL arguments; then it is used as it is. */
static int vdev_add(struct port *port, const char *vdev, struct error *error)
{
    ASSERT(port != NULL);
    ASSERT(vdev != NULL);
    size_t bytes = strcspn(vdev, ",");
    if (bytes == 0 || bytes >= sizeof(port->vdev_name)) {
        return error_set(error, -EINVAL, "vdev '%s' has no device name", vdev);
    }
    memcpy(port->vdev_name, vdev, bytes);
    port->vdev_name[bytes] = '\0';
    const char *arguments = vdev[bytes] == ',' ? vdev + bytes + 1 : "";
    uint16_t id;
    if (rte_eth_dev_get_port_by_name(port->vdev_name, &id) == 0) {
        return 0;
    }
    int status = rte_eal_hotplug_add("vdev", port->vdev_name, arguments);
    if (status != 0) {
        return error_set(error, status,
                         "cannot create the virtual device '%s' (net_tap and net_af_packet need "
                         "CAP_NET_ADMIN or CAP_NET_RAW)",
                         vdev);
    }
    port->owns_vdev = true;
    return 0;
}

static int device_find(struct port *port, const struct nic_config *config, struct error *error)
{
    ASSERT(port != NULL);
    ASSERT(config != NULL);
    const char *name = config->device;
    if (config->vdev[0] != '\0') {
        int status = vdev_add(port, config->vdev, error);
        if (status != 0) {
            return status;
        }
        name = name[0] == '\0' ? port->vdev_name : name;
    }
    if (name[0] == '\0' && rte_eth_dev_count_avail() == 1) {
        port->id = (uint16_t)rte_eth_find_next(0);
        return 0;
    }
    if (name[0] != '\0' && rte_eth_dev_get_port_by_name(name, &port->id) == 0) {
        return 0;
    }
    char names[ERROR_TEXT_BYTES / 2];
    names_list(names, sizeof(names));
    return error_set(error, -ENODEV,
                     "no port '%s'; DPDK sees: %s. A physical port must be bound to vfio-pci", name,
                     names[0] != '\0' ? names : "none");
}

static struct rte_mempool *pool_create(const struct port *port, const char *use, uint16_t queue,
                                       uint32_t count, uint32_t frame_bytes)
{
    ASSERT(port != NULL);
    ASSERT(use != NULL);
    char name[RTE_MEMPOOL_NAMESIZE];
    (void)snprintf(name, sizeof(name), "%s_%u_%u", use, port->id, queue);
    uint32_t room = RTE_ALIGN_CEIL(frame_bytes, 128) + MBUF_HEADROOM;
    room = room < RTE_MBUF_DEFAULT_BUF_SIZE ? RTE_MBUF_DEFAULT_BUF_SIZE : room;
    return rte_pktmbuf_pool_create(name, count, POOL_CACHE_COUNT, 0, (uint16_t)room,
                                   rte_eth_dev_socket_id(port->id));
}

/* One pool for each direction: a flood of received frames cannot starve the sends that answer
 * it. */
static int pools_create(struct port *port, const struct nic_config *config, struct error *error)
{
    ASSERT(port != NULL);
    ASSERT(config != NULL);
    for (uint16_t queue = 0; queue < port->info.queue_count; queue++) {
        struct port_queue *own = &port->queues[queue];
        own->rx_pool =
            pool_create(port, "rx", queue, config->rx_frame_count, port->frame_bytes_max);
        own->tx_pool =
            pool_create(port, "tx", queue, config->tx_frame_count, port->frame_bytes_max);
        bool segment = port->info.tso_bytes_max > 0;
        if (segment) {
            own->tso_pool = pool_create(port, "tso", queue, config->tx_frame_count / 16 + 64,
                                        TSO_PAYLOAD_BYTES + PACKET_HEADER_BYTES_MAX);
        }
        if (own->rx_pool == NULL || own->tx_pool == NULL || (segment && own->tso_pool == NULL)) {
            return error_set(error, -ENOMEM,
                             "not enough DPDK memory for %u receive and %u send frames in each of "
                             "%u queues: give it more",
                             config->rx_frame_count, config->tx_frame_count,
                             port->info.queue_count);
        }
    }
    return 0;
}

/* Only what the device offers and the configuration allows; the rest is done in software. */
static uint64_t tx_offloads(struct port *port, const struct nic_config *config)
{
    ASSERT(port != NULL);
    ASSERT(config != NULL);
    uint64_t can = port->device.tx_offload_capa, use = 0;
    if (config->checksum_offload != 0) {
        use |= can & (RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM);
    }
    uint64_t segment =
        RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
    /* net_tap cuts in software, and refuses for ever what exceeds its MTU with the headers. */
    bool in_hardware = strcmp(port->device.driver_name, "net_tap") != 0;
    if (config->segmentation_offload != 0 && in_hardware && (can & segment) == segment) {
        use |= segment | (can & RTE_ETH_TX_OFFLOAD_MULTI_SEGS);
        port->info.tso_bytes_max = TSO_PAYLOAD_BYTES;
    }
    port->info.tx_ip_sum = (use & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0;
    port->info.tx_tcp_sum = (use & RTE_ETH_TX_OFFLOAD_TCP_CKSUM) != 0;
    return use;
}

/* The device keeps its own key; rss_read asks for it afterwards. */
static void rss_request(struct port *port, struct rte_eth_conf *conf)
{
    ASSERT(port != NULL);
    ASSERT(conf != NULL);
    uint64_t wanted = RTE_ETH_RSS_NONFRAG_IPV4_TCP & port->device.flow_type_rss_offloads;
    if (port->info.queue_count < 2 || wanted == 0) {
        return;
    }
    conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf->rx_adv_conf.rss_conf.rss_hf = wanted;
}

static int device_configure(struct port *port, const struct nic_config *config, struct error *error)
{
    ASSERT(port != NULL);
    ASSERT(config != NULL);
    struct rte_eth_conf conf = {.rxmode = {.mq_mode = RTE_ETH_MQ_RX_NONE}};
    uint64_t rx_can = port->device.rx_offload_capa;
    if (config->checksum_offload != 0) {
        conf.rxmode.offloads |=
            rx_can & (RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM);
    }
    conf.rxmode.offloads |= rx_can & RTE_ETH_RX_OFFLOAD_SCATTER;
    conf.txmode.offloads = tx_offloads(port, config);
    rss_request(port, &conf);
    int status =
        rte_eth_dev_configure(port->id, port->info.queue_count, port->info.queue_count, &conf);
    if (status != 0) {
        return error_set(error, status, "port %s refuses %u queues: %s", port->info.name,
                         port->info.queue_count, strerror(-status));
    }
    uint16_t mtu = 0;
    status = rte_eth_dev_set_mtu(port->id, (uint16_t)config->mtu_bytes);
    bool same = rte_eth_dev_get_mtu(port->id, &mtu) == 0 && mtu == config->mtu_bytes;
    /* net_memif and net_ring know no MTU; the standard one always fits their frames. */
    if (status != 0 && !same && config->mtu_bytes > 1500) {
        return error_set(error, status, "port %s refuses an MTU of %u: %s", port->info.name,
                         config->mtu_bytes, strerror(-status));
    }
    return 0;
}

static int queues_setup(struct port *port, const struct nic_config *config, struct error *error)
{
    ASSERT(port != NULL);
    ASSERT(config != NULL);
    uint16_t rx = (uint16_t)config->rx_descriptor_count, tx = (uint16_t)config->tx_descriptor_count;
    int socket = rte_eth_dev_socket_id(port->id);
    int status = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rx, &tx);
    for (uint16_t queue = 0; status == 0 && queue < port->info.queue_count; queue++) {
        status = rte_eth_rx_queue_setup(port->id, queue, rx, (unsigned)socket, NULL,
                                        port->queues[queue].rx_pool);
        if (status == 0) {
            status = rte_eth_tx_queue_setup(port->id, queue, tx, (unsigned)socket, NULL);
        }
    }
    if (status != 0) {
        return error_set(error, status, "port %s refuses its rings of %u and %u descriptors: %s",
                         port->info.name, rx, tx, strerror(-status));
    }
    return 0;
}

/* Reads back what the device really uses: drivers may ignore the key and table they were given. */
static void rss_read(struct port *port)
{
    ASSERT(port != NULL);
    struct port_info *info = &port->info;
    struct rte_eth_rss_conf conf = {.rss_key = info->rss_key, .rss_key_len = PORT_RSS_KEY_MAX};
    uint32_t key_bytes = port->device.hash_key_size;
    uint32_t reta_count = port->device.reta_size;
    if (info->queue_count < 2 || key_bytes == 0 || key_bytes > PORT_RSS_KEY_MAX ||
        reta_count == 0 || reta_count > PORT_RETA_MAX || (reta_count & (reta_count - 1)) != 0) {
        return;
    }
    conf.rss_key_len = (uint8_t)key_bytes;
    struct rte_eth_rss_reta_entry64 reta[PORT_RETA_MAX / RTE_ETH_RETA_GROUP_SIZE];
    memset(reta, 0, sizeof(reta));
    for (uint32_t i = 0; i < reta_count; i++) {
        reta[i / RTE_ETH_RETA_GROUP_SIZE].mask |= UINT64_C(1) << (i % RTE_ETH_RETA_GROUP_SIZE);
    }
    if (rte_eth_dev_rss_hash_conf_get(port->id, &conf) != 0 ||
        rte_eth_dev_rss_reta_query(port->id, reta, (uint16_t)reta_count) != 0) {
        return;
    }
    info->rss_key_bytes = key_bytes;
    info->reta_count = reta_count;
    for (uint32_t i = 0; i < reta_count; i++) {
        info->reta[i] = reta[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE];
    }
}

/* The frame size follows from the MTU: header, a VLAN tag and the check sequence on top. */
static int identity_read(struct port *port, const struct nic_config *config, struct error *error)
{
    ASSERT(port != NULL);
    ASSERT(config != NULL);
    char name[RTE_ETH_NAME_MAX_LEN] = "";
    struct rte_ether_addr mac;
    int status = rte_eth_dev_info_get(port->id, &port->device);
    if (status == 0) {
        status = rte_eth_macaddr_get(port->id, &mac);
    }
    if (status != 0) {
        return error_set(error, status, "cannot read the port's properties: %s", strerror(-status));
    }
    (void)rte_eth_dev_get_name_by_port(port->id, name);
    (void)snprintf(port->info.name, sizeof(port->info.name), "%.*s", PORT_NAME_BYTES - 1, name);
    memcpy(port->info.mac, mac.addr_bytes, MAC_BYTES);
    uint16_t most = RTE_MIN(port->device.max_rx_queues, port->device.max_tx_queues);
    if (config->queue_count > most) {
        return error_set(error, -ENOTSUP, "port %s has %u queue pairs and %u are asked for",
                         port->info.name, most, config->queue_count);
    }
    port->info.queue_count = (uint16_t)config->queue_count;
    port->info.mtu_bytes = config->mtu_bytes;
    port->frame_bytes_max = config->mtu_bytes + ETHER_HEADER_BYTES + RTE_ETHER_CRC_LEN + 4;
    return 0;
}

static int port_start(struct port *port, const struct nic_config *config, struct error *error)
{
    ASSERT(port != NULL);
    ASSERT(config != NULL);
    int status = device_find(port, config, error);
    if (status == 0) {
        status = identity_read(port, config, error);
    }
    if (status != 0) {
        return status;
    }
    port->queues = aligned_alloc(CACHE_LINE_BYTES, sizeof(*port->queues) * config->queue_count);
    if (port->queues == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    memset(port->queues, 0, sizeof(*port->queues) * config->queue_count);
    if ((status = device_configure(port, config, error)) != 0 ||
        (status = pools_create(port, config, error)) != 0 ||
        (status = queues_setup(port, config, error)) != 0) {
        return status;
    }
    status = rte_eth_dev_start(port->id);
    if (status != 0) {
        return error_set(error, status, "port %s does not start: %s", port->info.name,
                         strerror(-status));
    }
    port->started = true;
    (void)rte_eth_promiscuous_disable(port->id);
    rss_read(port);
    flow_defaults(&port->info);
    return 0;
}

int port_create(const struct nic_config *config, struct port **out, struct error *error)
{
    ASSERT(config != NULL && out != NULL);
    *out = NULL;
    struct port *port = calloc(1, sizeof(*port));
    if (port == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    port->id = RTE_MAX_ETHPORTS;
    int status = port_start(port, config, error);
    if (status != 0) {
        port_destroy(port);
        return status;
    }
    *out = port;
    return 0;
}

void port_destroy(struct port *port)
{
    if (port == NULL) {
        return;
    }
    if (port->started) {
        (void)rte_eth_dev_stop(port->id);
    }
    if (port->id != RTE_MAX_ETHPORTS) {
        (void)rte_eth_dev_close(port->id);
    }
    if (port->owns_vdev) {
        (void)rte_eal_hotplug_remove("vdev", port->vdev_name);
    }
    for (uint16_t queue = 0; port->queues != NULL && queue < port->info.queue_count; queue++) {
        rte_mempool_free(port->queues[queue].rx_pool);
        rte_mempool_free(port->queues[queue].tx_pool);
        rte_mempool_free(port->queues[queue].tso_pool);
    }
    free(port->queues);
    free(port);
}

void port_drops_get(const struct port *port, struct port_drops *out)
{
    ASSERT(port != NULL && out != NULL);
    *out = (struct port_drops){0};
    struct rte_eth_stats stats;
    if (rte_eth_stats_get(port->id, &stats) == 0) {
        out->missed_count = stats.imissed;
        out->no_frame_count = stats.rx_nombuf;
        out->error_count = stats.ierrors;
    }
    for (uint16_t queue = 0; queue < port->info.queue_count; queue++) {
        out->chained_count += port->queues[queue].chained_count;
        out->refused_count += port->queues[queue].refused_count;
    }
}
