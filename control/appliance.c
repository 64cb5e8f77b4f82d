/* SPDX-License-Identifier: Apache-2.0 */
/* Start and stop of the box as a table of steps, run in order and undone from the failing one; in
 * between, the control loop (supervise.c). See appliance.h. */
#include "control/appliance.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "control/appliance_internal.h"

const char run_help[] =
    "usage: penstock run APPLIANCE.yaml JOB.sql [--from ID | --fresh] [--drop-state NAME]…\n"
    "  APPLIANCE.yaml   this box: cores, memory, NIC, Kafka; keys in configs/REFERENCE.md\n"
    "  JOB.sql          a Flink SQL script; SQL.md says what runs\n"
    "  --from ID        go on from this checkpoint, not from the newest (penstock ckpt list)\n"
    "  --fresh          begin empty, whatever checkpoints are there\n"
    "  --drop-state N   forget a state of the checkpoint that the script no longer has\n"
    "Ends when bounded input does. SIGTERM and SIGINT: stop reading, answer what was read, "
    "commit,\n"
    "end; a second one ends at once. SIGUSR1: the ledger now.\n"
    "exit codes: 0 done, 1 Kafka, network or a lane failed, 2 arguments, a file or a device,\n"
    "3 the script is refused, 4 the job failed on its data, 130 ended by a second signal\n";

const char check_help[] =
    "usage: penstock check APPLIANCE.yaml JOB.sql\n"
    "       penstock check --config-reference\n"
    "Validates both files and prints plan, lanes, cores and memory; starts nothing, needs no "
    "root.\n"
    "--config-reference prints every key of the appliance file (configs/REFERENCE.md).\n"
    "exit codes: 0 fine, 2 arguments, a file or a key, 3 the script is refused\n";

int appliance_fail(struct appliance *appliance, int code)
{
    appliance->exit_code = code;
    return -1;
}

static int load_config(struct appliance *appliance)
{
    ASSERT(appliance != NULL);
    if (config_load(appliance->config_path, &appliance->config, &appliance->error) != 0) {
        return appliance_fail(appliance, EXIT_USAGE);
    }
    const uint32_t cores = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
    if (config_check(&appliance->config, cores, &appliance->error) != 0) {
        (void)snprintf(appliance->error.place, sizeof(appliance->error.place), "%s",
                       appliance->config_path);
        return appliance_fail(appliance, EXIT_USAGE);
    }
    return 0;
}

static void unload_config(struct appliance *appliance)
{
    config_free(&appliance->config);
}

static int load_script(struct appliance *appliance)
{
    ASSERT(appliance != NULL);
    const int status =
        job_file_load(appliance->script_path, &appliance->script, stderr, &appliance->error);
    if (status != 0) {
        const bool refused = status == -EINVAL || status == -ENOTSUP || status == -E2BIG;
        return appliance_fail(appliance, refused ? EXIT_REFUSED : EXIT_USAGE);
    }
    return 0;
}

static void unload_script(struct appliance *appliance)
{
    job_file_unload(&appliance->script);
}

static int lay_box(struct appliance *appliance)
{
    ASSERT(appliance != NULL);
    const int status =
        box_init(&appliance->box, &appliance->config, appliance->script.plan, &appliance->error);
    return status == 0 ? 0 : appliance_fail(appliance, EXIT_USAGE);
}

/* Snapshots lie in the lanes' memory. */
static void clear_box(struct appliance *appliance)
{
    storage_drop_lanes(appliance->storage);
    box_fini(&appliance->box);
    ASSERT(appliance->box.lane_count == 0);
}

/* A topic is the script's matter, a broker that does not answer is the appliance file's.
 * read     grows by the partitions of it that the first lane reads, as many as any; NULL: written
 * */
static int check_topic(struct appliance *appliance, const struct plan_node *node, const char *topic,
                       uint32_t *read)
{
    uint32_t partitions = 0;
    struct error *error = &appliance->error;
    const uint32_t lanes = appliance->config.cores.receive.count;
    if (topic == NULL) {
        return 0;
    }
    int status = metadata_topic(appliance->metadata, topic, &partitions, error);
    if (read != NULL) {
        *read += (partitions + lanes - 1) / lanes;
    }
    if (status == 0 && partitions > SINK_KAFKA_PARTITIONS_MAX) {
        status = error_set(error, -E2BIG, "topic %s has %u partitions, there is room for %d", topic,
                           partitions, SINK_KAFKA_PARTITIONS_MAX);
    } else if (status == 0 && read != NULL && *read > SOURCE_KAFKA_PARTITIONS_MAX) {
        status = error_set(error, -E2BIG,
                           "with topic %s a table has %u partitions on one core, there is room for "
                           "%d: give it more cores.receive",
                           topic, *read, SOURCE_KAFKA_PARTITIONS_MAX);
    }
    if (status == -ETIMEDOUT) {
        (void)snprintf(error->place, sizeof(error->place), "kafka.control_bootstrap");
    } else if (status != 0) {
        (void)snprintf(error->place, sizeof(error->place), "%s", appliance->script_path);
        error->line = node->line;
        error->column = node->column_in_line;
    }
    return status;
}

/* Every topic that is read or written must exist. */
static int check_topics(struct appliance *appliance)
{
    ASSERT(appliance != NULL);
    const struct plan *plan = appliance->script.plan;
    int status = 0;
    for (uint32_t i = 0; i < plan->node_count && status == 0; i++) {
        const struct plan_node *node = plan->nodes[i];
        uint32_t read = 0; /* a table has a client of its own */
        if (node->operator== PLAN_SINK) {
            status = check_topic(appliance, node, node->sink.topic, NULL);
        } else if (node->operator== PLAN_SOURCE) {
            status = check_topic(appliance, node, node->source.dead_letter_topic, NULL);
        }
        for (uint32_t t = 0;
             node->operator== PLAN_SOURCE && t<node->source.topic_count && status == 0; t++) {
            status = check_topic(appliance, node, node->source.topics[t], &read);
        }
    }
    return status;
}

static int check_network(struct appliance *appliance, bool resolves)
{
    const int status =
        network_check(&appliance->config, appliance->script.plan, resolves, &appliance->error);
    return status == 0 ? 0 : appliance_fail(appliance, EXIT_USAGE);
}

/* Without asking the resolver: what runs elsewhere can be checked here. */
static int check_addresses(struct appliance *appliance)
{
    return check_network(appliance, false);
}

static int find_addresses(struct appliance *appliance)
{
    return check_network(appliance, true);
}

/* A ledger that cannot be written is better known before the run than after. */
static int check_ledger_file(struct appliance *appliance)
{
    const char *path = appliance->config.run.ledger_json;
    FILE *file = path[0] == '\0' ? NULL : fopen(path, "ae");
    if (path[0] != '\0' && file == NULL) {
        (void)snprintf(appliance->error.place, sizeof(appliance->error.place), "run.ledger_json");
        (void)error_set(&appliance->error, -errno, "cannot write %s: %s", path, strerror(errno));
        return appliance_fail(appliance, EXIT_USAGE);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return 0;
}

/* Threads that are made from here on inherit the core; lanes then take their own. */
static int take_control_core(struct appliance *appliance)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(appliance->config.cores.control, &cores);
    if (sched_setaffinity(0, sizeof(cores), &cores) != 0) {
        (void)snprintf(appliance->error.place, sizeof(appliance->error.place), "cores.control");
        (void)error_set(&appliance->error, -errno, "core %u cannot be used by this process: %s",
                        appliance->config.cores.control, strerror(errno));
        return appliance_fail(appliance, EXIT_USAGE);
    }
    return 0;
}

static const char *group_of(const struct plan *plan)
{
    ASSERT(plan->node_count <= PLAN_NODES_MAX);
    for (uint32_t i = 0; i < plan->node_count; i++) {
        if (plan->nodes[i]->operator== PLAN_SOURCE && plan->nodes[i]->source.group_id != NULL) {
            return plan->nodes[i]->source.group_id;
        }
    }
    return NULL;
}

static bool needs_group(const struct plan *plan)
{
    ASSERT(plan->node_count <= PLAN_NODES_MAX);
    for (uint32_t i = 0; i < plan->node_count; i++) {
        if (plan->nodes[i]->operator== PLAN_SOURCE && plan->nodes[i]->source.startup ==
            PLAN_STARTUP_GROUP_OFFSETS) {
            return true;
        }
    }
    return false;
}

static int open_metadata(struct appliance *appliance)
{
    ASSERT(appliance != NULL);
    const struct appliance_config *config = &appliance->config;
    const struct plan *plan = appliance->script.plan;
    if (config->kafka.control_bootstrap[0] == '\0') {
        if (!needs_group(plan)) {
            return 0;
        }
        (void)error_set(&appliance->error, -EINVAL,
                        "the script starts at group offsets, which are read over the kernel: set "
                        "kafka.control_bootstrap, or 'scan.startup.mode' in the script");
        return appliance_fail(appliance, EXIT_USAGE);
    }
    if (metadata_open(config->kafka.control_bootstrap, config->kafka.client_id, group_of(plan),
                      &appliance->metadata, &appliance->error) != 0 ||
        check_topics(appliance) != 0) {
        return appliance_fail(appliance, EXIT_RUN_FAILED);
    }
    return 0;
}

static void close_metadata(struct appliance *appliance)
{
    /* Closing waits for commits that a broker which hangs does not answer: a run that did not end
     * in order leaves the client to the end of the process. */
    if (appliance->exit_code == EXIT_DONE) {
        metadata_close(appliance->metadata);
    }
}

static int make_memory(struct appliance *appliance)
{
    return box_make_memory(&appliance->box, &appliance->error) == 0
               ? 0
               : appliance_fail(appliance, EXIT_USAGE);
}

static int open_network(struct appliance *appliance)
{
    ASSERT(appliance != NULL);
    const int status = network_open(&appliance->config, box_queue_count(&appliance->box),
                                    box_clock(NULL), &appliance->box.network, &appliance->error);
    return status == 0 ? 0 : appliance_fail(appliance, EXIT_USAGE);
}

static void close_network(struct appliance *appliance)
{
    network_close(appliance->box.network);
    appliance->box.network = NULL;
}

static int make_job(struct appliance *appliance)
{
    struct error *error = &appliance->error;
    if (box_make_edges(&appliance->box, appliance->metadata, error) != 0) {
        return appliance_fail(appliance, EXIT_USAGE);
    }
    const int status = box_make_job(&appliance->box, error);
    if (status == -ENOMEM) {
        /* State was mapped before: what is left to be had is the parcels. */
        (void)snprintf(error->place, sizeof(error->place), "memory.parcels_mib");
    }
    return status == 0 ? 0 : appliance_fail(appliance, EXIT_USAGE);
}

static int open_storage(struct appliance *appliance)
{
    ASSERT(appliance != NULL);
    if (appliance->config.checkpoint.path[0] == '\0') {
        return 0;
    }
    const int status =
        storage_open(&appliance->config, stderr, &appliance->storage, &appliance->error);
    return status == 0 ? 0 : appliance_fail(appliance, EXIT_USAGE);
}

static void close_storage(struct appliance *appliance)
{
    storage_close(appliance->storage);
    appliance->storage = NULL;
}

static int make_snapshots(struct appliance *appliance)
{
    if (appliance->storage == NULL) {
        return 0;
    }
    const int status = storage_make_lanes(appliance->storage, &appliance->box, &appliance->error);
    return status == 0 ? 0 : appliance_fail(appliance, EXIT_USAGE);
}

/* A state that does not fit is the script's matter: it was changed. */
static int resume(struct appliance *appliance)
{
    if (appliance->storage == NULL) {
        return 0;
    }
    const int status = storage_resume(appliance->storage, &appliance->box, &appliance->resume,
                                      stderr, &appliance->error);
    return status == 0 ? 0
                       : appliance_fail(appliance, status == -ENOTSUP ? EXIT_REFUSED : EXIT_USAGE);
}

static int start_storage(struct appliance *appliance)
{
    if (appliance->storage == NULL) {
        return 0;
    }
    const int status = storage_start(appliance->storage, &appliance->box, appliance->script_path,
                                     &appliance->error);
    return status == 0 ? 0 : appliance_fail(appliance, EXIT_USAGE);
}

static void stop_storage(struct appliance *appliance)
{
    storage_stop(appliance->storage);
}

static int open_positions(struct appliance *appliance)
{
    ASSERT(appliance != NULL);
    if (appliance->metadata == NULL || group_of(appliance->script.plan) == NULL) {
        return 0;
    }
    if (positions_create(&appliance->box, appliance->metadata, &appliance->positions,
                         &appliance->error) != 0) {
        return appliance_fail(appliance, EXIT_USAGE);
    }
    return 0;
}

static void close_positions(struct appliance *appliance)
{
    positions_destroy(appliance->positions);
}

static int start_lanes(struct appliance *appliance)
{
    return box_start(&appliance->box, &appliance->error) == 0
               ? 0
               : appliance_fail(appliance, EXIT_USAGE);
}

static void stop_lanes(struct appliance *appliance)
{
    box_stop(&appliance->box);
}

static int open_socket(struct appliance *appliance)
{
    ASSERT(appliance != NULL);
    const char *path = appliance->config.run.control_socket;
    if (path[0] == '\0' || control_socket_open(path, &appliance->socket, &appliance->error) == 0) {
        return 0;
    }
    (void)snprintf(appliance->error.place, sizeof(appliance->error.place), "run.control_socket");
    return appliance_fail(appliance, EXIT_USAGE);
}

static void close_socket(struct appliance *appliance)
{
    control_socket_close(appliance->socket);
}

struct step {
    const char *name;
    int (*init)(struct appliance *appliance);
    void (*fini)(struct appliance *appliance); /* also called when its own init failed */
};

/* Lanes hold streams of the network's stacks: clear_box runs before close_network, and again, doing
 * nothing, for the step that laid the lanes; so it is right from whichever step a failure comes. */
static const struct step steps[] = {
    {"appliance file", load_config, unload_config},
    {"script", load_script, unload_script},
    {"lanes", lay_box, clear_box},
    {"addresses", find_addresses, NULL},
    {"ledger file", check_ledger_file, NULL},
    {"control socket", open_socket, close_socket},
    {"control core", take_control_core, NULL},
    {"checkpoint store", open_storage, close_storage},
    {"topics", open_metadata, close_metadata},
    {"memory", make_memory, NULL},
    {"network", open_network, close_network},
    {"snapshots", make_snapshots, NULL},
    {"job", make_job, clear_box},
    {"resume", resume, NULL},
    {"positions", open_positions, close_positions},
    {"storage thread", start_storage, stop_storage},
    {"threads", start_lanes, stop_lanes},
};

static void undo(struct appliance *appliance, size_t from)
{
    ASSERT(appliance != NULL);
    for (size_t i = from + 1; i-- > 0;) {
        if (steps[i].fini != NULL) {
            steps[i].fini(appliance);
        }
    }
}

static int run_box(struct appliance *appliance, const sigset_t *signals)
{
    ASSERT(appliance != NULL);
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        if (steps[i].init(appliance) != 0) {
            error_print(stderr, &appliance->error);
            undo(appliance, i);
            return appliance->exit_code;
        }
    }
    (void)fprintf(stderr, "penstock: running %s on %u lanes\n", appliance->script_path,
                  appliance->box.lane_count);
    if (appliance->box.transactional_id_prefix != NULL) {
        (void)fprintf(stderr,
                      "penstock: tables written exactly-once share a lane's transactions, named "
                      "%s-LANE-…\n",
                      appliance->box.transactional_id_prefix);
    }
    supervise(appliance, signals);
    const bool is_orderly = appliance->exit_code == EXIT_DONE;
    box_stop(&appliance->box);
    supervise_finish(appliance);
    if (is_orderly && appliance->positions != NULL) {
        positions_commit_final(appliance->positions);
    }
    report_print(appliance);
    if (appliance->exit_code != EXIT_DONE && appliance->exit_code != EXIT_KILLED) {
        (void)fprintf(stderr, "penstock: stopped: ");
        error_print(stderr, &appliance->error);
    }
    undo(appliance, COUNT_OF(steps) - 1);
    return appliance->exit_code;
}

/* Reads the options behind the two files; false when one is wrong. */
static bool read_resume(int argc, char **argv, struct storage_resume *out)
{
    const char **names = (const char **)calloc((size_t)argc, sizeof(*names));
    if (names == NULL) {
        return false;
    }
    out->drop_states = names;
    for (int i = 3; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        char *end = NULL;
        if (strcmp(argv[i], "--fresh") == 0) {
            out->is_fresh = true;
        } else if (strcmp(argv[i], "--from") == 0) {
            out->from_id = value[0] >= '0' && value[0] <= '9' ? strtoull(value, &end, 10) : 0;
            if (out->from_id == 0 || *end != '\0') {
                return false;
            }
            i++;
        } else if (strcmp(argv[i], "--drop-state") == 0 && value[0] != '\0') {
            names[out->drop_count++] = value;
            i++;
        } else {
            return false;
        }
    }
    return !(out->is_fresh && out->from_id != 0);
}

static void free_appliance(struct appliance *appliance)
{
    free((void *)(uintptr_t)appliance->resume.drop_states);
    free(appliance);
}

int run_command(int argc, char **argv)
{
    struct storage_resume resume = {0};
    if (argc < 3 || !read_resume(argc, argv, &resume)) {
        (void)fputs(run_help, stderr);
        free((void *)(uintptr_t)resume.drop_states);
        return EXIT_USAGE;
    }
    struct appliance *appliance = calloc(1, sizeof(*appliance));
    sigset_t signals;
    if (appliance == NULL) {
        return EXIT_USAGE;
    }
    appliance->config_path = argv[1];
    appliance->script_path = argv[2];
    appliance->resume = resume;
    /* Blocked before any thread starts, so that only this one takes them. */
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGUSR1);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    const int code = run_box(appliance, &signals);
    free_appliance(appliance);
    return code;
}

static void print_lanes(const struct box *box)
{
    ASSERT(box->lane_count <= PLACEMENT_LANES_MAX);
    ASSERT(box->config != NULL);
    (void)printf("\nlanes\n");
    for (uint32_t i = 0; i < box->lane_count; i++) {
        const struct box_lane *lane = &box->lanes[i];
        (void)printf("  core %-3u %s%s%s\n", lane->core, lane->receive ? "receive " : "",
                     lane->operate ? "operate " : "", lane->transmit ? "transmit" : "");
    }
}

static void print_memory(const struct appliance *appliance)
{
    ASSERT(appliance != NULL);
    const struct appliance_config *config = &appliance->config;
    const uint64_t lanes = appliance->box.lane_count;
    const uint64_t state = config->cores.operate.count * config->memory.state_mib;
    const uint64_t parcels = lanes * config->memory.parcels_mib;
    (void)printf("\nmemory, MiB%s\n", config->memory.hugepages ? " in hugepages" : "");
    (void)printf("  state    %8" PRIu64 "  %u operate lanes, memory.state_mib each\n", state,
                 config->cores.operate.count);
    (void)printf("  parcels  %8" PRIu64 "  %" PRIu64 " lanes, memory.parcels_mib each\n", parcels,
                 lanes);
    (void)printf("  and the buffers of Kafka clients, connections and packets\n");
}

int check_command(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--config-reference") == 0) {
        config_print_reference(stdout);
        return EXIT_DONE;
    }
    if (argc != 3) {
        (void)fputs(check_help, stderr);
        return EXIT_USAGE;
    }
    static const struct step checked[] = {
        {"appliance file", load_config, unload_config},
        {"script", load_script, unload_script},
        {"lanes", lay_box, clear_box},
        {"addresses", check_addresses, NULL},
    };
    struct appliance *appliance = calloc(1, sizeof(*appliance));
    if (appliance == NULL) {
        return EXIT_USAGE;
    }
    appliance->config_path = argv[1];
    appliance->script_path = argv[2];
    size_t done = 0;
    while (done < COUNT_OF(checked) && checked[done].init(appliance) == 0) {
        done++;
    }
    if (done == COUNT_OF(checked)) {
        plan_explain(appliance->script.plan, stdout);
        print_lanes(&appliance->box);
        print_memory(appliance);
    } else {
        error_print(stderr, &appliance->error);
    }
    const int code = appliance->exit_code;
    for (size_t i = done < COUNT_OF(checked) ? done + 1 : done; i-- > 0;) {
        if (checked[i].fini != NULL) {
            checked[i].fini(appliance);
        }
    }
    free(appliance);
    return code;
}
