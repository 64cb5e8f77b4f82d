/* SPDX-License-Identifier: Apache-2.0 */
/* See rig.h. */
#include "tests/box/rig.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "nic/port_dpdk.h"
#include "tools/generator.h"

#define PAYMENT_BYTES_MAX 512

static void give_up(const char *what, const struct error *error)
{
    (void)fprintf(stderr, "%s: ", what);
    error_print(stderr, error);
    exit(1);
}

static void make_payments(struct rig *rig)
{
    const struct generator_payments_config config = {
        .seed = 1,
        .first_id = 1,
        .cards = 20000,
        .rate = 100000,
        .start_ms = 1700000000000,
        .wide = true,
    };
    struct generator_payments *generator = NULL;
    const uint32_t count = rig->config.payment_count;
    rig->payments = calloc(count, sizeof(*rig->payments));
    rig->payment_bytes = malloc((size_t)count * PAYMENT_BYTES_MAX + GENERATOR_LINE_BYTES_MAX);
    ASSERT(rig->payments != NULL && rig->payment_bytes != NULL);
    const int code = generator_payments_create(&config, &generator);
    ASSERT(code == 0);
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        ASSERT(used <= (size_t)count * PAYMENT_BYTES_MAX);
        const size_t length = generator_payments_line(generator, NULL, rig->payment_bytes + used);
        rig->payments[i] = (struct span){.data = rig->payment_bytes + used, .bytes = length};
        used += length;
    }
    generator_payments_destroy(generator);
}

static void read_config(struct rig *rig)
{
    struct error error = {0};
    char text[2048];
    (void)snprintf(
        text, sizeof(text),
        "cores: {%s, control: 0, idle: %s}\n"
        "memory: {hugepages: false, state_mib: 256, parcels_mib: 32, packets_mib: 256}\n"
        "nic:\n"
        "  device: \"net_memif0,role=server,id=0,socket=/tmp/penstock-rig-%d,rsize=11\"\n"
        "  address: 198.18.0.2/15\n"
        "kafka:\n"
        "  addresses: [\"kafka:9092=198.18.0.1:9092\", \"node-1:9092=198.18.0.1:9092\"]\n"
        "  fetch_wait_ms: 500\n",
        rig->config.cores, rig->config.idle, (int)getpid());
    if (config_parse("rig", text, strlen(text), &rig->appliance, &error) != 0) {
        give_up("config", &error);
    }
    const uint32_t cores = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    if (rig->config.broker_core >= cores || config_check(&rig->appliance, cores, &error) != 0) {
        (void)fprintf(stderr, "skipped: needs two cores\n");
        exit(77);
    }
}

/* The far end comes up by itself once both ends exist. */
static void open_far_port(struct rig *rig)
{
    struct nic_config nic;
    struct error error = {0};
    nic_config_defaults(&nic);
    nic.queue_count = box_queue_count(&rig->box);
    (void)snprintf(nic.device, sizeof(nic.device), "net_memif1");
    (void)snprintf(nic.vdev, sizeof(nic.vdev),
                   "net_memif1,role=client,id=0,socket=/tmp/penstock-rig-%d,rsize=11",
                   (int)getpid());
    if (port_create(&nic, &rig->far_port, &error) != 0) {
        give_up("far port", &error);
    }
    for (uint32_t i = 0; i < 500 && !port_link_is_up(rig->far_port); i++) {
        (void)usleep(10000);
    }
    char path[64];
    (void)snprintf(path, sizeof(path), "/tmp/penstock-rig-%d", (int)getpid());
    (void)unlink(path); /* both ends hold it: nothing stays behind, however the process ends */
    if (!port_link_is_up(rig->far_port)) {
        (void)fprintf(stderr, "the memif pair does not come up\n");
        exit(1);
    }
}

static void *run_broker(void *context)
{
    struct rig *rig = context;
    bool begun = false;
    /* Acquire and release pair with the control thread's; the numbers stand for themselves. */
    while (!__atomic_load_n(&rig->broker_stops, __ATOMIC_ACQUIRE)) {
        if (!begun && __atomic_load_n(&rig->begins, __ATOMIC_ACQUIRE)) {
            cluster_begin(rig->cluster, box_clock(NULL));
            begun = true;
        }
        cluster_poll(rig->cluster, box_clock(NULL));
        __atomic_store_n(&rig->done_count, rig->cluster->answered_count, __ATOMIC_RELEASE);
        if (rig->appliance.cores.idle == CONFIG_IDLE_YIELD) {
            (void)sched_yield();
        }
    }
    return NULL;
}

static void start_broker(struct rig *rig)
{
    const struct cluster_config config = {
        .port = rig->far_port,
        .payments = rig->payments,
        .payment_count = rig->config.payment_count,
        .warm_count = rig->config.warm_count,
        .rate = rig->config.rate,
        .misroute_ppm = rig->config.misroute_ppm,
        .partitions = rig->config.partitions,
        .topics = rig->config.topics,
    };
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(rig->config.broker_core, &cores);
    rig->cluster = cluster_create(&config);
    const int code = pthread_create(&rig->broker_thread, NULL, run_broker, rig);
    ASSERT(code == 0);
    rig->broker_runs = true;
    (void)pthread_setaffinity_np(rig->broker_thread, sizeof(cores), &cores);
}

struct rig *rig_start(const struct rig_config *config)
{
    struct error error = {0};
    struct rig *rig = calloc(1, sizeof(*rig));
    ASSERT(rig != NULL);
    rig->config = *config;
    read_config(rig);
    make_payments(rig);
    if (job_file_load(config->script_path, &rig->script, stderr, &error) != 0) {
        give_up(config->script_path, &error);
    }
    struct box *box = &rig->box;
    if (box_init(box, &rig->appliance, rig->script.plan, &error) != 0 ||
        box_make_memory(box, &error) != 0 ||
        network_open(&rig->appliance, box_queue_count(box), box_clock(NULL), &box->network,
                     &error) != 0) {
        give_up("box", &error);
    }
    open_far_port(rig);
    if (box_make_edges(box, NULL, &error) != 0 || box_make_job(box, &error) != 0) {
        give_up("job", &error);
    }
    start_broker(rig);
    if (box_start(box, &error) != 0) {
        give_up("lanes", &error);
    }
    return rig;
}

void rig_begin(struct rig *rig)
{
    __atomic_store_n(&rig->begins, true, __ATOMIC_RELEASE);
}

/* Prints what lanes and clients say; true when a lane failed. */
static bool take_news(struct rig *rig)
{
    bool failed = false;
    for (uint32_t i = 0; i < rig->box.lane_count; i++) {
        struct box_lane *lane = &rig->box.lanes[i];
        struct kafka_event news;
        struct lane_event event;
        while (news_pop(lane->news, &news)) {
            (void)fprintf(stderr, "kafka: %s\n", news.text);
        }
        while (lane_event(lane->lane, &event)) {
            if (event.kind == LANE_EVENT_FAILED) {
                error_print(stderr, lane_failure(lane->lane));
                failed = true;
            }
        }
    }
    return failed;
}

bool rig_wait(struct rig *rig, uint32_t count, uint32_t patience_s)
{
    uint32_t before = 0;
    uint32_t quiet = 0;
    for (;;) {
        const uint32_t done = __atomic_load_n(&rig->done_count, __ATOMIC_ACQUIRE);
        quiet = done == before ? quiet + 1 : 0;
        before = done;
        if (take_news(rig) || done >= count || quiet > patience_s * 50) {
            return done >= count;
        }
        (void)usleep(20000);
    }
}

bool rig_run(struct rig *rig, uint32_t patience_s)
{
    rig_begin(rig);
    return rig_wait(rig, rig->config.payment_count, patience_s);
}

struct called {
    void (*call)(void *context, int64_t value);
    void *context;
    bool done; /* atomic: release by the lane, acquire by control */
};

static void run_call(void *context, int64_t value)
{
    struct called *called = context;
    called->call(called->context, value);
    __atomic_store_n(&called->done, true, __ATOMIC_RELEASE);
}

void rig_call(struct rig *rig, uint32_t lane, void (*call)(void *context, int64_t value),
              void *context)
{
    struct called called = {.call = call, .context = context};
    const struct lane_command command = {
        .kind = LANE_COMMAND_CALL, .call = run_call, .context = &called, .value = lane};
    while (!lane_command(rig->box.lanes[lane].lane, &command)) {
        (void)usleep(1000);
    }
    while (!__atomic_load_n(&called.done, __ATOMIC_ACQUIRE)) {
        (void)usleep(1000);
    }
}

struct ledger *rig_ledger(struct rig *rig)
{
    const char *names[LEDGER_SINKS_MAX];
    const struct ledger *first = job_lane_ledger(rig->box.job, 0);
    struct error error = {0};
    for (uint32_t i = 0; i < first->sink_count; i++) {
        names[i] = first->sinks[i].name;
    }
    ledger_destroy(rig->ledger);
    if (ledger_create(names, first->sink_count, &rig->ledger, &error) != 0) {
        give_up("ledger", &error);
    }
    for (uint32_t i = 0; i < rig->box.lane_count; i++) {
        ledger_merge(rig->ledger, job_lane_ledger(rig->box.job, i));
    }
    return rig->ledger;
}

void rig_stop(struct rig *rig)
{
    box_stop(&rig->box);
    __atomic_store_n(&rig->broker_stops, true, __ATOMIC_RELEASE);
    if (rig->broker_runs) {
        (void)pthread_join(rig->broker_thread, NULL);
        rig->broker_runs = false;
    }
}

void rig_destroy(struct rig *rig)
{
    box_fini(&rig->box);
    cluster_destroy(rig->cluster);
    port_destroy(rig->far_port);
    network_close(rig->box.network);
    ledger_destroy(rig->ledger);
    job_file_unload(&rig->script);
    config_free(&rig->appliance);
    free(rig->payments);
    free(rig->payment_bytes);
    free(rig);
}
