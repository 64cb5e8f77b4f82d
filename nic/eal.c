/* SPDX-License-Identifier: Apache-2.0 */
/* DPDK's environment layer, brought up from a struct instead of a command line. What DPDK would
 * report in the middle of its log (no hugepages, above all) is looked at before it runs, so that
 * the user gets one sentence. */
#include "nic/port_dpdk.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>

#define EAL_ARGUMENT_COUNT_MAX 48
#define EAL_TEXT_BYTES         (EAL_ARGUMENT_COUNT_MAX * 160)

struct eal_arguments {
    char *values[EAL_ARGUMENT_COUNT_MAX + 1];
    int count;
    char text[EAL_TEXT_BYTES];
    size_t text_bytes;
};

/* DPDK sorts its argument vector, so it gets copies that may be moved and written. */
static void argument_add(struct eal_arguments *arguments, const char *value)
{
    size_t bytes = strlen(value) + 1;
    ASSERT(arguments->count < EAL_ARGUMENT_COUNT_MAX);
    ASSERT(arguments->text_bytes + bytes <= EAL_TEXT_BYTES);
    char *at = arguments->text + arguments->text_bytes;
    memcpy(at, value, bytes);
    arguments->text_bytes += bytes;
    arguments->values[arguments->count++] = at;
}

static void argument_pair(struct eal_arguments *arguments, const char *name, const char *value)
{
    ASSERT(arguments != NULL);
    ASSERT(name != NULL);
    if (value != NULL) {
        argument_add(arguments, name);
        argument_add(arguments, value);
    }
}

static void arguments_fill(struct eal_arguments *arguments, const struct port_eal_config *config)
{
    ASSERT(arguments != NULL);
    ASSERT(config != NULL);
    argument_add(arguments, config->program != NULL ? config->program : "penstock");
    argument_add(arguments, "--no-telemetry");
    argument_add(arguments, "--no-shconf");
    argument_pair(arguments, "-l", config->cores);
    argument_pair(arguments, "--file-prefix", config->file_prefix);
    if (config->memory_mb > 0) {
        char megabytes[16];
        (void)snprintf(megabytes, sizeof(megabytes), "%u", config->memory_mb);
        argument_pair(arguments, "-m", megabytes);
    }
    if (!config->huge_pages) {
        argument_add(arguments, "--no-huge");
    } else if (config->in_memory) {
        argument_add(arguments, "--in-memory");
    }
    if (!config->pci) {
        argument_add(arguments, "--no-pci");
    } else {
        argument_pair(arguments, "-a", config->pci_allow);
    }
    if (!config->verbose) {
        argument_pair(arguments, "--log-level", "*:error");
    }
    for (size_t i = 0; i < PORT_EAL_VDEV_MAX && config->vdevs[i] != NULL; i++) {
        argument_pair(arguments, "--vdev", config->vdevs[i]);
    }
    for (uint32_t i = 0; i < config->extra_count; i++) {
        ASSERT(strlen(config->extra[i]) < PORT_EAL_EXTRA_BYTES);
        argument_add(arguments, config->extra[i]);
    }
}

/* The free hugepages of all sizes, in bytes; 0 where the kernel has none. */
static uint64_t huge_bytes_free(void)
{
    uint64_t total = 0;
    DIR *folder = opendir("/sys/kernel/mm/hugepages");
    if (folder == NULL) {
        return 0;
    }
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        unsigned long long kilobytes = 0, pages = 0;
        char path[320];
        if (sscanf(entry->d_name, "hugepages-%llukB", &kilobytes) != 1) {
            continue;
        }
        (void)snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/%s/free_hugepages",
                       entry->d_name);
        FILE *file = fopen(path, "re");
        if (file != NULL && fscanf(file, "%llu", &pages) == 1) {
            total += pages * kilobytes * 1024;
        }
        if (file != NULL) {
            (void)fclose(file);
        }
    }
    (void)closedir(folder);
    return total;
}

int port_eal_init(const struct port_eal_config *config, struct error *error)
{
    ASSERT(config != NULL);
    ASSERT(config->extra_count <= PORT_EAL_EXTRA_MAX);
    if (config->huge_pages) {
        uint64_t free_bytes = huge_bytes_free();
        uint64_t wanted = (uint64_t)(config->memory_mb > 0 ? config->memory_mb : 2) << 20;
        if (free_bytes < wanted) {
            return error_set(error, -ENOMEM,
                             "%llu MiB of hugepages are free and %llu MiB are needed: reserve them "
                             "in /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages, or turn "
                             "huge pages off for a virtual device",
                             (unsigned long long)(free_bytes >> 20),
                             (unsigned long long)(wanted >> 20));
        }
    }
    struct eal_arguments *arguments = calloc(1, sizeof(*arguments));
    if (arguments == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    arguments_fill(arguments, config);
    /* DPDK copies what it keeps of its arguments. */
    int status = rte_eal_init(arguments->count, arguments->values);
    free(arguments);
    /* Nothing is ever kept in DPDK's folder of this process (--no-shconf), and a process that is
     * killed cannot remove it: so it goes at once. */
    (void)rmdir(rte_eal_get_runtime_dir());
    if (status < 0) {
        int code = rte_errno > 0 ? rte_errno : EIO;
        return error_set(error, -code, "DPDK does not start: %s%s", rte_strerror(code),
                         config->vdevs[0] != NULL ? " (virtual devices need CAP_NET_ADMIN)" : "");
    }
    return 0;
}

struct port_log {
    FILE *stream;
    char text[PORT_LOG_BYTES];
};

struct port_log *port_log_keep(void)
{
    struct port_log *log = calloc(1, sizeof(*log));
    if (log == NULL) {
        return NULL;
    }
    /* One byte stays zero, whatever is written. */
    log->stream = fmemopen(log->text, sizeof(log->text) - 1, "w");
    if (log->stream == NULL) {
        free(log);
        return NULL;
    }
    setbuf(log->stream, NULL);
    (void)rte_openlog_stream(log->stream);
    return log;
}

void port_log_end(struct port_log *log, int status, struct error *error)
{
    if (log == NULL) {
        return;
    }
    (void)rte_openlog_stream(NULL);
    (void)fclose(log->stream);
    const size_t bytes = strcspn(log->text, "\n");
    if (status != 0 && status != -ENOMEM && error != NULL && bytes > 0) {
        const size_t used = strlen(error->text);
        (void)snprintf(error->text + used, sizeof(error->text) - used, "; DPDK says: %.*s",
                       (int)bytes, log->text);
    }
    if (status == 0) {
        /* net_tap reports what it can do without (multiq, rte_flow, other processes) as errors. */
        (void)rte_log_set_level_pattern("pmd.net.tap", RTE_LOG_CRIT);
    }
    free(log);
}

void port_eal_fini(void)
{
    (void)rte_eal_cleanup();
}
