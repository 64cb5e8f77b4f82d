/* SPDX-License-Identifier: Apache-2.0 */
/* See ckpt.h. A table of verbs; each gets the opened store. Export is in ckpt_export.c. */
#include "control/ckpt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "control/appliance.h"
#include "control/ckpt_internal.h"
#include "control/job_file.h"
#include "control/storage.h"
#include "dataplane/facts.h"
#include "state/disk_uring.h"
#include "state/restore.h"

#define MIB_BYTES (UINT64_C(1) << 20)

static const char usage[] =
    "usage: penstock ckpt VERB PATH …       PATH: the checkpoint file or block device\n"
    "  format PATH [--size-mib N] [--force]   make it ready; --force writes over what is there\n"
    "  list PATH                              complete checkpoints, newest first\n"
    "  show PATH ID                           where its sources stand, event times, transactions\n"
    "  verify PATH [ID]                       read all of it and check every checksum\n"
    "  adopt PATH                             accept a copy from another device as this one's\n"
    "  prune PATH ID                          drop it and those that build on it\n"
    "  export PATH ID [STATE]                 list its states, or print one as JSON lines\n"
    "exit codes: 0 done, 1 damaged or not there, 2 arguments or the file\n";

static bool read_id(const char *text, uint64_t *out)
{
    char *end = NULL;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    *out = value;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && value > 0;
}

static void print_time(uint64_t ms)
{
    const time_t seconds = (time_t)(ms / 1000);
    char text[32];
    struct tm parts;
    (void)gmtime_r(&seconds, &parts);
    (void)strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
    (void)printf("%s.%03u", text, (unsigned)(ms % 1000));
}

static void print_checkpoint(const struct store_checkpoint *one)
{
    char base[24] = "full";
    if (one->base_id != 0) {
        (void)snprintf(base, sizeof(base), "%" PRIu64, one->base_id);
    }
    (void)printf("%10" PRIu64 " %10s  ", one->id, base);
    print_time(one->began_ms);
    (void)printf(" %9.1f %9.2f %6u  %s%s\n", (double)one->bytes / (double)MIB_BYTES,
                 (double)one->duration_ns / 1e6, one->lane_count, one->label,
                 one->is_savepoint ? " (savepoint)" : "");
}

static void print_head(void)
{
    (void)printf("%10s %10s  %-23s %9s %9s %6s  %s\n", "id", "base", "begun (UTC)", "MiB", "ms",
                 "lanes", "job");
}

static int tell_damage(const struct store *store)
{
    struct error reason = {0};
    const uint32_t count = store_damaged(store, &reason);
    if (count != 0) {
        (void)printf("%u damaged: %s\n", count, reason.text);
    }
    return count == 0 ? EXIT_DONE : EXIT_RUN_FAILED;
}

static int list_all(const struct ckpt *ckpt, struct error *error)
{
    struct store_checkpoint all[STORE_CHECKPOINTS_MAX];
    const uint32_t count = store_list(ckpt->store, all, STORE_CHECKPOINTS_MAX);
    (void)error;
    print_head();
    for (uint32_t i = 0; i < count && i < STORE_CHECKPOINTS_MAX; i++) {
        print_checkpoint(&all[i]);
    }
    (void)printf("%" PRIu64 " of %" PRIu64 " MiB free\n",
                 store_free_slots(ckpt->store) * EXTENT_BYTES / MIB_BYTES,
                 ckpt->disk->bytes / MIB_BYTES);
    return tell_damage(ckpt->store);
}

static void print_time_or_none(int64_t ms)
{
    if (ms == INT64_MIN) {
        (void)printf("none");
    } else if (ms == INT64_MAX) {
        (void)printf("end");
    } else if (ms < 0) {
        (void)printf("%" PRId64 " ms", ms);
    } else {
        print_time((uint64_t)ms);
    }
}

static bool print_fact(void *context, const struct facts_item *item)
{
    (void)context;
    switch (item->kind) {
    case FACTS_PARTITION: {
        const struct facts_partition *partition = &item->partition;
        (void)printf("  %-24s partition %-5u next offset %-12" PRId64 " watermark ",
                     partition->topic, partition->partition, partition->next_offset);
        print_time_or_none(partition->watermark_ms);
        (void)printf("%s\n", partition->has_ended ? ", ended" : "");
        break;
    }
    case FACTS_NODE:
        (void)printf("  node %016" PRIx64 "  watermark ", item->node.identity);
        print_time_or_none(item->node.watermark_ms);
        (void)printf("\n");
        break;
    case FACTS_TRANSACTION:
        (void)printf("  transaction %s, producer %" PRId64 " epoch %d, %s\n",
                     item->transaction.transactional_id, item->transaction.producer_id,
                     item->transaction.producer_epoch,
                     item->transaction.state == FACTS_TRANSACTION_PREPARED
                         ? "to be committed"
                         : "to be aborted if open");
        break;
    case FACTS_SOURCE:
        break;
    }
    return true;
}

static int print_facts(void *context, uint32_t lane, struct span facts)
{
    (void)printf("lane %u, %zu bytes of facts\n", lane, facts.bytes);
    return facts_read(facts, print_fact, NULL, context);
}

static int no_such(const struct ckpt *ckpt, struct error *error)
{
    (void)error_set(error, -ENOENT,
                    "no whole checkpoint %" PRIu64 " is there: see `penstock ckpt list`", ckpt->id);
    return EXIT_RUN_FAILED;
}

static int show_one(const struct ckpt *ckpt, struct error *error)
{
    struct store_checkpoint one;
    if (!store_find(ckpt->store, ckpt->id, &one)) {
        return no_such(ckpt, error);
    }
    print_head();
    print_checkpoint(&one);
    (void)printf("plan %016" PRIx64 ", host %016" PRIx64 ", %u extents, %u shards\n",
                 one.plan_fingerprint, one.host_identity, one.extent_count, one.shard_count);
    const int status = restore_facts(ckpt->store, ckpt->id, print_facts, error, error);
    return status == 0 ? EXIT_DONE : EXIT_RUN_FAILED;
}

static int count_extent(void *context, const struct store_checkpoint *checkpoint,
                        const uint8_t *extent)
{
    (void)checkpoint;
    *(uint64_t *)context += extent_bytes(extent);
    return 0;
}

static int verify_one(const struct ckpt *ckpt, uint64_t id, struct error *error)
{
    uint64_t bytes = 0;
    const int status = store_read(ckpt->store, id, UINT32_MAX, 0, count_extent, &bytes, error);
    if (status != 0) {
        (void)printf("%10" PRIu64 "  damaged: %s\n", id, error->text);
        return EXIT_RUN_FAILED;
    }
    (void)printf("%10" PRIu64 "  whole, %.1f MiB with what it builds on\n", id,
                 (double)bytes / (double)MIB_BYTES);
    return EXIT_DONE;
}

static int verify_all(const struct ckpt *ckpt, struct error *error)
{
    struct store_checkpoint all[STORE_CHECKPOINTS_MAX];
    if (ckpt->id != 0) {
        return store_find(ckpt->store, ckpt->id, &all[0]) ? verify_one(ckpt, ckpt->id, error)
                                                          : no_such(ckpt, error);
    }
    int code = tell_damage(ckpt->store);
    const uint32_t count = store_list(ckpt->store, all, STORE_CHECKPOINTS_MAX);
    for (uint32_t i = 0; i < count && i < STORE_CHECKPOINTS_MAX; i++) {
        const int one = verify_one(ckpt, all[i].id, error);
        code = one != EXIT_DONE ? one : code;
    }
    error->text[0] = '\0'; /* told already, a line each */
    return code;
}

static int prune_one(const struct ckpt *ckpt, struct error *error)
{
    struct store_checkpoint one;
    if (!store_find(ckpt->store, ckpt->id, &one)) {
        return no_such(ckpt, error);
    }
    return store_prune(ckpt->store, ckpt->id, error) == 0 ? EXIT_DONE : EXIT_RUN_FAILED;
}

static int export_one(const struct ckpt *ckpt, struct error *error)
{
    struct store_checkpoint one;
    if (!store_find(ckpt->store, ckpt->id, &one)) {
        return no_such(ckpt, error);
    }
    return ckpt_export(ckpt, stdout, error) == 0 ? EXIT_DONE : EXIT_RUN_FAILED;
}

/* Opening with is_moved has done it. */
static int adopt(const struct ckpt *ckpt, struct error *error)
{
    (void)error;
    (void)printf("%s\n", store_damaged(ckpt->store, NULL) == 0
                             ? "it is this device's now"
                             : "it is this device's now, in part");
    return tell_damage(ckpt->store);
}

static void tell_progress(void *context, double share)
{
    (void)context;
    (void)fprintf(stderr, "\rformatting %3.0f %%%s", 100 * share, share >= 1 ? "\n" : "");
}

struct verb {
    const char *name;
    int least; /* arguments behind the verb */
    int most;
    bool writes;
    int (*run)(const struct ckpt *ckpt, struct error *error);
};

static const struct verb verbs[] = {
    {"list", 1, 1, false, list_all},     {"show", 2, 2, false, show_one},
    {"verify", 1, 2, false, verify_all}, {"prune", 2, 2, true, prune_one},
    {"export", 2, 3, false, export_one}, {"adopt", 1, 1, true, adopt},
};

static int finish(struct ckpt *ckpt, int code, struct error *error)
{
    if (code != EXIT_DONE && error->text[0] != '\0') {
        error_print(stderr, error);
    }
    store_close(ckpt->store);
    disk_close(ckpt->disk);
    return code;
}

/* A store without a disk of its own kind says why: another version, another device, damaged. */
static int open_store(struct ckpt *ckpt, const char *path, struct error *error)
{
    const struct disk_uring_config disk = {.path = path, .depth_max = STORE_IN_FLIGHT_MAX};
    int status = disk_uring_open(&disk, &ckpt->disk, error);
    if (status == 0) {
        const struct store_config store = {
            .disk = ckpt->disk,
            .keep_count = STORE_KEEP_MAX,
            .is_read_only = !ckpt->writes,
            .is_moved = ckpt->is_moved,
        };
        status = store_open(&store, &ckpt->store, NULL, error);
    }
    return status;
}

static int run_verb(const struct verb *verb, int argc, char **argv)
{
    struct ckpt ckpt = {
        .state = argc == 5 ? argv[4] : NULL,
        .writes = verb->writes,
        .is_moved = verb->run == adopt,
    };
    struct error error = {0};
    if (argc - 2 < verb->least || argc - 2 > verb->most ||
        (argc > 3 && !read_id(argv[3], &ckpt.id))) {
        (void)fputs(usage, stderr);
        return EXIT_USAGE;
    }
    const int code =
        open_store(&ckpt, argv[2], &error) != 0 ? EXIT_USAGE : verb->run(&ckpt, &error);
    return finish(&ckpt, code, &error);
}

static int run_format(int argc, char **argv)
{
    struct ckpt ckpt = {0};
    struct error error = {0};
    struct store_format format = {.host_identity = storage_host_identity()};
    uint64_t mib = 0;
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--force") == 0) {
            format.force = true;
        } else if (strcmp(argv[i], "--size-mib") != 0 || i + 1 == argc ||
                   !read_id(argv[++i], &mib) || mib > UINT64_C(1) << 30) {
            (void)fputs(usage, stderr);
            return EXIT_USAGE;
        }
    }
    const struct disk_uring_config disk = {
        .path = argv[2], .bytes = mib * MIB_BYTES, .depth_max = STORE_IN_FLIGHT_MAX};
    int status = disk_uring_open(&disk, &ckpt.disk, &error);
    if (status == 0) {
        status = store_format(ckpt.disk, &format, tell_progress, NULL, &error);
    }
    return finish(&ckpt, status == 0 ? EXIT_DONE : EXIT_USAGE, &error);
}

int ckpt_command(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        (void)fputs(usage, stdout);
        return EXIT_DONE;
    }
    if (argc >= 3 && strcmp(argv[1], "format") == 0) {
        return run_format(argc, argv);
    }
    for (size_t i = 0; argc >= 3 && i < COUNT_OF(verbs); i++) {
        if (strcmp(argv[1], verbs[i].name) == 0) {
            return run_verb(&verbs[i], argc, argv);
        }
    }
    (void)fputs(usage, stderr);
    return EXIT_USAGE;
}
