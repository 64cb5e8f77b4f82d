/* SPDX-License-Identifier: Apache-2.0 */
/* Every key of the appliance file: the one table that drives reading, errors, help and reference.
 * Order here is the order in configs/REFERENCE.md. */
#include <stddef.h>

#include "control/config_internal.h"

#define AT(member) offsetof(struct appliance_config, member)

/* Words of choices, in the order of their enums. */
static const char *const idle_choices[] = {"spin", "yield", NULL};
static const char *const full_choices[] = {"stop", "pause", NULL};
static const char *const failing_choices[] = {"stop", "run", NULL};
static const char *const gone_choices[] = {"fail", "earliest", "latest", NULL};

const struct config_key config_keys[] = {
    {"cores", "receive", AT(cores.receive), KEY_CORES, 0, 1023, "[0]",
     "Cores that poll the NIC, read Kafka and decode. One lane a core.", NULL},
    {"cores", "operate", AT(cores.operate), KEY_CORES, 0, 1023, "[0]",
     "Cores that run the operators; state is spread over them by key.", NULL},
    {"cores", "transmit", AT(cores.transmit), KEY_CORES, 0, 1023, "[0]",
     "Cores that encode and write to Kafka. The same core may stand in several roles.", NULL},
    {"cores", "control", AT(cores.control), KEY_CORE, 0, 1023, "0",
     "Core of the control thread and of librdkafka's threads.", NULL},
    {"cores", "idle", AT(cores.idle), KEY_CHOICE, 0, 0, "spin",
     "What a lane does when it finds no work: spin (isolated cores) or yield (shared machines).",
     idle_choices},
    {"memory", "hugepages", AT(memory.hugepages), KEY_BOOL, 0, 0, "true",
     "Keep state, parcels and packets in hugepages. false is for development only.", NULL},
    {"memory", "state_mib", AT(memory.state_mib), KEY_NUMBER, 1, UINT64_C(1) << 24, "256",
     "State of one operate lane, MiB; reserved and touched at start.", NULL},
    {"memory", "parcels_mib", AT(memory.parcels_mib), KEY_NUMBER, 1, 4096, "32",
     "Parcels of one lane, MiB.", NULL},
    {"memory", "packets_mib", AT(memory.packets_mib), KEY_NUMBER, 16, UINT64_C(1) << 20, "128",
     "DPDK's own memory when hugepages is false, MiB.", NULL},
    {"memory", "warn_percent", AT(memory.warn_percent), KEY_NUMBER, 1, 99, "80",
     "Share of a lane's state memory in use from which on a warning is given.", NULL},
    {"memory", "when_full", AT(memory.when_full), KEY_CHOICE, 0, 0, "stop",
     "What happens when state needs more: stop (checkpoint, then exit 1) or pause (stop reading, "
     "go "
     "on answering nothing until somebody stops it).",
     full_choices},
    {"nic", "device", AT(nic.device), KEY_TEXT, 0, 0, "net_tap0,iface=penstock0",
     "A PCI address bound to vfio-pci, or a DPDK virtual device with its arguments.", NULL},
    {"nic", "address", AT(nic.address), KEY_TEXT, 0, 0, "198.18.0.2/15",
     "The box's own IPv4 address and prefix length.", NULL},
    {"nic", "gateway", AT(nic.gateway), KEY_TEXT, 0, 0, "",
     "IPv4 address of the gateway for brokers outside of the prefix.", NULL},
    {"nic", "mtu", AT(nic.mtu), KEY_NUMBER, 576, 9000, "1500", "Largest IP packet, bytes.", NULL},
    {"nic", "connection_receive_kib", AT(nic.connection_receive_kib), KEY_NUMBER, 64,
     UINT64_C(1) << 20, "4096",
     "Receive buffer of one connection, KiB, a power of two; holds a whole response.", NULL},
    {"nic", "connection_send_kib", AT(nic.connection_send_kib), KEY_NUMBER, 64, UINT64_C(1) << 20,
     "2048", "Send buffer of one connection, KiB, a power of two; holds a whole request.", NULL},
    {"nic", "eal", AT(nic.eal), KEY_LIST, 0, 0, "[]", "More arguments for DPDK's EAL.", NULL},
    {"kafka", "bootstrap", AT(kafka.bootstrap), KEY_LIST, 0, 0, "[]",
     "Brokers (host:port) in place of the script's properties.bootstrap.servers.", NULL},
    {"kafka", "addresses", AT(kafka.addresses), KEY_LIST, 0, 0, "[]",
     "Address map: items `host:port=a.b.c.d:port`, as brokers advertise = as the box dials.", NULL},
    {"kafka", "control_bootstrap", AT(kafka.control_bootstrap), KEY_TEXT, 0, 0, "",
     "Brokers as librdkafka reaches them through the kernel; empty: no group commits.", NULL},
    {"kafka", "client_id", AT(kafka.client_id), KEY_TEXT, 0, 0, "penstock",
     "client.id of every request.", NULL},
    {"kafka", "fetch_max_kib", AT(kafka.fetch_max_kib), KEY_NUMBER, 16, 32768, "1024",
     "Largest Fetch response asked for, KiB; one record batch may exceed it.", NULL},
    {"kafka", "fetch_wait_ms", AT(kafka.fetch_wait_ms), KEY_NUMBER, 1, 60000, "5000",
     "How long a broker may hold an empty Fetch, ms; data always wakes it.", NULL},
    {"kafka", "request_timeout_ms", AT(kafka.request_timeout_ms), KEY_NUMBER, 100, 600000, "10000",
     "How long an answer may take beyond that before the connection is given up, ms.", NULL},
    {"kafka", "start_timeout_ms", AT(kafka.start_timeout_ms), KEY_NUMBER, 100, 3600000, "30000",
     "How long the first answer of a broker may take after the start before the run fails, ms.",
     NULL},
    {"kafka", "produce_batch_kib", AT(kafka.produce_batch_kib), KEY_NUMBER, 4, 16384, "256",
     "Largest record batch written, KiB.", NULL},
    {"kafka", "produce_in_flight", AT(kafka.produce_in_flight), KEY_NUMBER, 1, 5, "5",
     "Produce requests on their way to one broker; of one partition there is one record batch "
     "among "
     "them, which a restarted broker still recognises when it is sent again.",
     NULL},
    {"kafka", "produce_lz4", AT(kafka.produce_lz4), KEY_BOOL, 0, 0, "false",
     "Compress written batches with lz4.", NULL},
    {"kafka", "commit_interval_ms", AT(kafka.commit_interval_ms), KEY_NUMBER, 10, 3600000, "1000",
     "How often positions are committed to the group for outside monitoring, ms.", NULL},
    {"kafka", "transactions", AT(kafka.transactions), KEY_NUMBER, 3, 8, "4",
     "Transactions of one lane under way at once, where tables are written exactly-once; each has "
     "a "
     "connection of its own to every broker that is written to.",
     NULL},
    {"kafka", "transaction_timeout_ms", AT(kafka.transaction_timeout_ms), KEY_NUMBER, 1000, 900000,
     "600000",
     "How long the brokers wait for the end of a transaction, ms, at most their "
     "transaction.max.timeout.ms: a box that is down for longer loses what waited for its commit.",
     NULL},
    {"checkpoint", "path", AT(checkpoint.path), KEY_TEXT, 0, 0, "",
     "File or raw block device that checkpoints go to; empty: none are made.", NULL},
    {"checkpoint", "size_mib", AT(checkpoint.size_mib), KEY_NUMBER, 8, UINT64_C(1) << 30, "4096",
     "Size of the file when it does not exist yet, MiB: three times the state in use is ample.",
     NULL},
    {"checkpoint", "core", AT(checkpoint.core), KEY_CORE, 0, 1023, "0",
     "Core of the storage thread; best one of its own, else that of cores.control.", NULL},
    {"checkpoint", "interval_ms", AT(checkpoint.interval_ms), KEY_NUMBER, 10, 86400000, "1000",
     "From the beginning of one checkpoint to that of the next, ms.", NULL},
    {"checkpoint", "pause_ms", AT(checkpoint.pause_ms), KEY_NUMBER, 0, 86400000, "0",
     "Least time between the end of one and the beginning of the next, ms.", NULL},
    {"checkpoint", "timeout_ms", AT(checkpoint.timeout_ms), KEY_NUMBER, 100, 86400000, "60000",
     "A checkpoint that takes longer has failed, ms.", NULL},
    {"checkpoint", "full_every", AT(checkpoint.full_every), KEY_NUMBER, 1, 64, "16",
     "Every so many-th checkpoint holds all pages, those between only what has changed.", NULL},
    {"checkpoint", "keep", AT(checkpoint.keep), KEY_NUMBER, 2, 64, "2",
     "Complete checkpoints kept, besides those that they build on.", NULL},
    {"checkpoint", "failures", AT(checkpoint.failures), KEY_NUMBER, 1, 1000000, "10",
     "Failed checkpoints in a row before checkpoint.when_failing acts.", NULL},
    {"checkpoint", "when_failing", AT(checkpoint.when_failing), KEY_CHOICE, 0, 0, "stop",
     "What happens then: stop (exit 1) or run (go on without, warning each time).",
     failing_choices},
    {"checkpoint", "staging_mib", AT(checkpoint.staging_mib), KEY_NUMBER, 2, 65536, "32",
     "Staging buffers of one lane, MiB: pages wait there for the disk; when short, Fetch pauses.",
     NULL},
    {"checkpoint", "pages_a_turn", AT(checkpoint.pages_a_turn), KEY_NUMBER, 1, 4096, "8",
     "Pages that a busy lane copies in one turn.", NULL},
    {"checkpoint", "when_offset_is_gone", AT(checkpoint.when_offset_is_gone), KEY_CHOICE, 0, 0,
     "fail",
     "What happens when the broker no longer has the offset that a checkpoint goes on from: fail, "
     "or go on at the earliest or latest it has (records are lost then, and counted).",
     gone_choices},
    {"run", "ledger_json", AT(run.ledger_json), KEY_TEXT, 0, 0, "",
     "File that the ledger is written to as JSON, at exit and on SIGUSR1.", NULL},
    {"run", "drain_timeout_ms", AT(run.drain_timeout_ms), KEY_NUMBER, 1, 3600000, "30000",
     "How long a stop may take to flush what was read, ms.", NULL},
    {"run", "control_socket", AT(run.control_socket), KEY_TEXT, 0, 0, "",
     "Unix socket that `penstock ctl` talks to; empty: none.", NULL},
};

const size_t config_key_count = COUNT_OF(config_keys);
