/* SPDX-License-Identifier: Apache-2.0 */
/* The network path of the box alone: reads a topic through the user-space stack and writes every
 * value to another, nothing parsed. The integration tests check with it that stack, client and
 * record seams carry every record once; the benches use it as the floor of what the box can do.
 *
 *     box_echo APPLIANCE.yaml SERVERS IN OUT [COUNT]     ends after COUNT records, or on SIGTERM
 */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "control/network.h"
#include "dataplane/sink_kafka.h"
#include "dataplane/source_kafka.h"

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
    stopped = signal;
}

static uint64_t clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NANOSECONDS_PER_S + (uint64_t)now.tv_nsec;
}

static void print_events(struct kafka_client *client)
{
    struct kafka_event event;
    while (kafka_client_event(client, &event)) {
        (void)fprintf(stderr, "kafka: %s\n", event.text);
    }
}

struct echo {
    struct stack *stack;
    struct kafka_client *reader;
    struct kafka_client *writer;
    struct record_source *source;
    struct record_sink *sink;
    struct record_batch_view batch;
    uint32_t at; /* next record of the batch */
    uint64_t copied;
};

/* Writes what is left of the batch; false when the sink is full. */
static bool write_batch(struct echo *echo)
{
    for (; echo->at < echo->batch.record_count; echo->at++) {
        const struct record *record = &echo->batch.records[echo->at];
        if (record_sink_append(echo->sink, 0, (int32_t)echo->batch.partition, record) !=
            RECORD_SINK_OK) {
            return false;
        }
        echo->copied++;
    }
    return true;
}

static uint32_t turn(struct echo *echo)
{
    const uint64_t now_ns = clock_ns();
    uint32_t work = stack_poll(echo->stack, now_ns);
    /* A batch that is not written yet must not be given back: the reader is left alone. */
    if (write_batch(echo) && record_source_poll(echo->source, now_ns, &echo->batch)) {
        echo->at = 0;
        work++;
        (void)write_batch(echo);
    }
    work += record_sink_poll(echo->sink, now_ns);
    work += stack_flush(echo->stack, now_ns);
    return work;
}

static void run(struct echo *echo, uint64_t count)
{
    uint64_t idle = 0;
    while (stopped == 0 && (echo->copied < count || !record_sink_flushed(echo->sink))) {
        if (turn(echo) == 0) {
            (void)sched_yield();
        }
        if (++idle % 100000 == 0) {
            print_events(echo->reader);
            print_events(echo->writer);
        }
    }
}

int main(int argc, char **argv)
{
    struct appliance_config config;
    struct network *network = NULL;
    struct kafka_config kafka;
    struct error error = {0};
    struct echo echo = {0};
    struct source_kafka *source = NULL;
    struct sink_kafka *sink = NULL;
    if (argc < 5) {
        (void)fprintf(stderr, "usage: box_echo APPLIANCE.yaml SERVERS IN OUT [COUNT]\n");
        return 2;
    }
    const char *const in[] = {argv[3]};
    const struct sink_kafka_topic out = {.name = argv[4]};
    const struct plan_source plan = {
        .topics = in, .topic_count = 1, .startup = PLAN_STARTUP_EARLIEST};
    (void)signal(SIGTERM, stop);
    (void)signal(SIGINT, stop);
    if (config_load(argv[1], &config, &error) != 0 ||
        network_open(&config, 1, clock_ns(), &network, &error) != 0 ||
        network_kafka_config(&config, argv[2], &kafka, &error) != 0) {
        (void)fprintf(stderr, "box_echo: %s: %s\n", error.place, error.text);
        return 1;
    }
    echo.stack = network_stack(network, 0);
    const struct kafka_connector connector = {.connect = network_connect, .context = echo.stack};
    if (kafka_client_create(&kafka, &connector, &echo.reader, &error) != 0 ||
        kafka_client_create(&kafka, &connector, &echo.writer, &error) != 0 ||
        source_kafka_create(
            &(struct source_kafka_config){.client = echo.reader, .source = &plan, .lane_count = 1},
            &source, &error) != 0 ||
        sink_kafka_create(
            &(struct sink_kafka_config){.client = echo.writer, .topics = &out, .topic_count = 1},
            &sink, &error) != 0) {
        (void)fprintf(stderr, "box_echo: %s\n", error.text);
        return 1;
    }
    echo.source = source_kafka_records(source);
    echo.sink = sink_kafka_records(sink);
    const uint64_t began_ns = clock_ns();
    run(&echo, argc > 5 ? strtoull(argv[5], NULL, 10) : UINT64_MAX);
    (void)fprintf(stderr, "box_echo: %" PRIu64 " records in %.3f s\n", echo.copied,
                  (double)(clock_ns() - began_ns) / 1e9);
    print_events(echo.reader);
    print_events(echo.writer);
    source_kafka_destroy(source);
    sink_kafka_destroy(sink);
    kafka_client_destroy(echo.reader);
    kafka_client_destroy(echo.writer);
    network_close(network);
    config_free(&config);
    return 0;
}
