/* SPDX-License-Identifier: Apache-2.0 */
/* The appliance file: what this box is (cores, memory, NIC, Kafka addresses). One table in config.c
 * names every key with its type, bounds, default and meaning; it drives reading, the errors, the
 * help of `penstock check --config-help` and configs/REFERENCE.md. Values are const after
 * config_load. Control thread only. */
#pragma once

#include <stdio.h>

#include "base.h"

#define CONFIG_CORES_MAX      64 /* lanes of one role */
#define CONFIG_LIST_MAX       64 /* items of any other list */
#define CONFIG_FILE_BYTES_MAX (UINT32_C(1) << 20)

/* What a lane does when a turn found no work. */
enum config_idle {
    CONFIG_IDLE_SPIN = 0, /* on isolated cores */
    CONFIG_IDLE_YIELD,    /* on shared machines: lets others run */
};

/* What a lane does when its state memory is used up. */
enum config_full {
    CONFIG_FULL_STOP = 0, /* checkpoint, then exit */
    CONFIG_FULL_PAUSE,    /* read nothing more */
};

/* What happens after checkpoint.failures failed ones in a row. */
enum config_failing {
    CONFIG_FAILING_STOP = 0,
    CONFIG_FAILING_RUN,
};

/* Where reading goes on when a restored offset is gone from the broker. */
enum config_gone {
    CONFIG_GONE_FAIL = 0,
    CONFIG_GONE_EARLIEST,
    CONFIG_GONE_LATEST,
};

struct config_cores {
    uint32_t ids[CONFIG_CORES_MAX];
    uint32_t count;
};

struct config_list {
    char *items[CONFIG_LIST_MAX]; /* owned */
    uint32_t count;
};

struct appliance_config {
    struct {
        struct config_cores receive;
        struct config_cores operate;
        struct config_cores transmit;
        uint32_t control;
        enum config_idle idle;
    } cores;
    struct {
        bool hugepages;
        uint64_t state_mib;
        uint64_t parcels_mib;
        uint64_t packets_mib;
        uint64_t warn_percent;
        enum config_full when_full;
    } memory;
    struct {
        char *device;  /* owned, as are all texts here */
        char *address; /* a.b.c.d/prefix */
        char *gateway; /* "" none */
        uint64_t mtu;
        uint64_t connection_receive_kib;
        uint64_t connection_send_kib;
        struct config_list eal;
    } nic;
    struct {
        struct config_list bootstrap; /* empty: the script's properties.bootstrap.servers */
        struct config_list addresses; /* "advertised host:port=address:port to dial" */
        char *control_bootstrap;      /* for librdkafka, over the kernel; "" none */
        char *client_id;
        uint64_t fetch_max_kib;
        uint64_t fetch_wait_ms;
        uint64_t request_timeout_ms;
        uint64_t start_timeout_ms;
        uint64_t produce_batch_kib;
        uint64_t produce_in_flight;
        bool produce_lz4;
        uint64_t commit_interval_ms;
        uint64_t transactions;
        uint64_t transaction_timeout_ms;
    } kafka;
    struct {
        char *path; /* "" no checkpoints */
        uint64_t size_mib;
        uint32_t core;
        uint64_t interval_ms;
        uint64_t pause_ms;
        uint64_t timeout_ms;
        uint64_t full_every;
        uint64_t keep;
        uint64_t failures;
        enum config_failing when_failing;
        uint64_t staging_mib;
        uint64_t pages_a_turn;
        enum config_gone when_offset_is_gone;
    } checkpoint;
    struct {
        char *ledger_json; /* "" none: where the ledger is written at exit and on SIGUSR1 */
        uint64_t drain_timeout_ms;
        char *control_socket; /* "" none */
    } run;
};

/* Reads an appliance file: defaults, then the file's values.
 * path     of the YAML file
 * out      freed with config_free, also after a failure
 * returns  0, or -errno with the key, line and column in error
 * source   YAML 1.1 as libyaml reads it */
int config_load(const char *path, struct appliance_config *out, struct error *error);

/* As config_load, from text in memory; name stands for the path in errors. */
int config_parse(const char *name, const char *text, size_t bytes, struct appliance_config *out,
                 struct error *error);

/* Frees what config_load took. */
void config_free(struct appliance_config *config);

/* Checks what no single key shows: cores given twice in one role, cores that this machine does not
 * have.
 * core_count  of this machine */
int config_check(const struct appliance_config *config, uint32_t core_count, struct error *error);

/* Prints every key with type, bounds, default and meaning, as a Markdown table. */
void config_print_reference(FILE *out);
