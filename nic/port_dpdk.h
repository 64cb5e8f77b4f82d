/* SPDX-License-Identifier: Apache-2.0 */
/* Start-up of the DPDK body of port.h: the environment layer once a process, then one port a
 * device. Both fail with one sentence that says what is missing and what to do. */
#pragma once

#include "base.h"
#include "nic/config.h"
#include "nic/port.h"

#define PORT_EAL_VDEV_MAX    8
#define PORT_EAL_EXTRA_MAX   8
#define PORT_EAL_EXTRA_BYTES 128  /* of one such argument, with its end */
#define PORT_LOG_BYTES       4096 /* of DPDK's messages; the cause comes first */

struct port_eal_config {
    const char *program;     /* argv[0] for DPDK's messages; "penstock" when NULL */
    const char *cores;       /* -l, such as "2,3"; NULL leaves the affinity as it is */
    const char *file_prefix; /* NULL for none */
    const char *pci_allow;   /* one PCI address to probe; NULL with pci set probes all */
    const char *vdevs[PORT_EAL_VDEV_MAX]; /* up to the first NULL */
    const char *const *extra;             /* arguments passed on as they are */
    uint32_t extra_count;                 /* at most PORT_EAL_EXTRA_MAX */
    uint32_t memory_mb;                   /* -m; 0 leaves it to DPDK */
    bool huge_pages;                      /* false: --no-huge (virtual devices only) */
    bool in_memory;                       /* --in-memory, with huge pages only */
    bool pci;                             /* false: --no-pci */
    bool verbose;                         /* DPDK's own log from level info on */
};

/* Brings up DPDK's environment layer; once a process.
 * returns  0 or -errno with error->text: no hugepages, a bad core list, a refused vdev
 * threads  control path, before any lane starts */
int port_eal_init(const struct port_eal_config *config, struct error *error);

/* Takes the environment layer down again; ports must be destroyed before.
 * threads  control path */
void port_eal_fini(void);

struct port_log;

/* Keeps DPDK's messages instead of printing them, until port_log_end.
 * returns  NULL without memory: then they are printed
 * threads  control path, one at a time */
struct port_log *port_log_keep(void);

/* Prints messages again and forgets the kept ones; after a failure the first of them, which names
 * the cause, is appended to the error.
 * log      freed; NULL is fine
 * status   of what was tried since port_log_keep
 * threads  control path */
void port_log_end(struct port_log *log, int status, struct error *error);

/* Finds, configures and starts a device.
 * config   device, vdev, queue_count, descriptor and frame counts, mtu_bytes, offloads
 * out      owned by the caller until port_destroy
 * returns  0, -ENODEV (error names the devices that are there), -ENOTSUP, -ENOMEM or the driver's
 * threads  control path */
int port_create(const struct nic_config *config, struct port **out, struct error *error);

/* Stops and frees a port; NULL is fine.
 * threads  control path, after its lanes have stopped */
void port_destroy(struct port *port);

/* Frames that the device or this body dropped. */
struct port_drops {
    uint64_t missed_count;   /* no descriptor was free */
    uint64_t no_frame_count; /* no buffer was free */
    uint64_t error_count;    /* the device reports them broken */
    uint64_t chained_count;  /* chains too long to flatten */
    uint64_t refused_count;  /* sends that the driver can never take */
};

/* Reads the drops since the start, for the counters page.
 * threads  control path */
void port_drops_get(const struct port *port, struct port_drops *out);
