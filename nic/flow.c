/* SPDX-License-Identifier: Apache-2.0 */
/* Receive-side steering in software, by rte_softrss over the inbound tuple. An exact rte_flow rule
 * would be firmer where a device has it; ENA, virtio, vmxnet3, gve and all virtual devices do not,
 * so the port search is what always exists. */
#include "nic/flow.h"

#include <rte_thash.h>

/* The key of Microsoft's RSS verification suite, which most devices start with. */
static const uint8_t default_key[40] = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

#define DEFAULT_RETA_COUNT 128

void flow_defaults(struct port_info *info)
{
    ASSERT(info != NULL);
    ASSERT(info->queue_count > 0);
    if (info->rss_key_bytes >= sizeof(default_key) && info->reta_count > 0) {
        return;
    }
    memcpy(info->rss_key, default_key, sizeof(default_key));
    info->rss_key_bytes = sizeof(default_key);
    info->reta_count = DEFAULT_RETA_COUNT;
    for (uint32_t i = 0; i < DEFAULT_RETA_COUNT; i++) {
        info->reta[i] = (uint16_t)(i % info->queue_count);
    }
}

uint16_t flow_queue(const struct port_info *info, const struct flow_tuple *tuple)
{
    ASSERT(info != NULL && tuple != NULL);
    if (info->queue_count == 1) {
        return 0;
    }
    ASSERT(info->reta_count > 0);
    uint32_t words[3] = {
        tuple->remote_ip4,
        tuple->local_ip4,
        (uint32_t)tuple->remote_port << 16 | tuple->local_port,
    };
    uint32_t hash = rte_softrss(words, COUNT_OF(words), info->rss_key);
    uint16_t queue = info->reta[hash & (info->reta_count - 1)];
    return queue < info->queue_count ? queue : 0;
}
