/* SPDX-License-Identifier: Apache-2.0 */
/* The latency meter: sends payments at a fixed rate to one topic and looks for the answer with the
 * same id in another. Latency counts from the moment when a payment was due, not from when it went
 * out (no coordinated omission); answers that never come and answers that come twice are counted.
 *
 *     sender (main thread)  due_ns[i] = start + i / rate ─▶ in topic ─▶ the job ─▶ out topic
 *     receiver (thread)     now - due_ns[id - first_id]  ◀──────────────────────────┘
 *
 * It uses librdkafka on purpose: the meter shares no code with what it measures. */
#include "tools/lat.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>

#include "base.h"
#include "dataplane/histogram.h"
#include "tools/generator.h"

#define CALL_TIMEOUT_MS  10000
#define VALUE_BYTES_MAX  4096
#define SHOW_MAX         100
#define PROGRESS_NS      (NANOSECONDS_PER_S / 4)
#define SPIN_NS          UINT64_C(100000) /* closer to a due time than this, do not sleep */
#define PARTITIONS_MAX   1024
#define BAR_COLUMNS      50
#define HISTOGRAM_LINES  16
#define PERCENTILE_COUNT 6

struct lat_options {
    const char *bootstrap;
    const char *in;
    const char *out;
    const char *json; /* file, or NULL */
    uint64_t rate;    /* a second */
    uint64_t seconds;
    uint64_t warmup_seconds;
    uint64_t drain_ms; /* how long answers may still come after the last send */
    uint64_t cards;
    uint32_t fetch_wait_ms;
    uint32_t show;
};

/* One payment: when it was due and how often it was answered. */
struct lat_slot {
    _Atomic uint64_t due_ns;
    _Atomic uint32_t answers;
};

struct lat {
    struct lat_options options;
    uint64_t count;
    uint64_t counted_from; /* index of the first payment after the warm-up */
    int64_t first_id;
    struct lat_slot *slots;      /* count */
    struct histogram *histogram; /* written by the receiver */
    rd_kafka_t *producer;
    rd_kafka_t *consumer;
    int32_t in_partitions;
    uint64_t kept; /* answers that went through lines; receiver only */
    char *lines[SHOW_MAX];
    _Atomic uint64_t sent;
    _Atomic uint64_t answered; /* distinct ids */
    _Atomic uint64_t doubled;
    _Atomic uint64_t foreign; /* answers to nobody's question */
    _Atomic uint64_t failed;  /* sends that the broker refused */
    _Atomic bool stop;
};

static const double percentiles[PERCENTILE_COUNT] = {0.5, 0.9, 0.99, 0.999, 0.9999, 1.0};
static const char *const percentile_names[PERCENTILE_COUNT] = {"p50",   "p90",    "p99",
                                                               "p99.9", "p99.99", "max"};

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NANOSECONDS_PER_S + (uint64_t)now.tv_nsec;
}

static int fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "penstock lat: %s: %s\n", what, why);
    return 2;
}

static void usage(FILE *into)
{
    (void)fputs(
        "penstock lat --bootstrap HOST:PORT --in TOPIC --out TOPIC [options]\n"
        "Sends payments at a fixed rate and measures until the job answers each id.\n"
        "  --rate N          payments a second (1000)\n"
        "  --seconds N       how long to measure (10)\n"
        "  --warmup N        seconds sent before, not counted (2)\n"
        "  --drain-ms N      how long answers may come after the last send (5000)\n"
        "  --cards N         distinct cards (100000)\n"
        "  --fetch-wait-ms N long poll of the meter's own consumer (100; use 1 with a mock)\n"
        "  --show N          print the last N answers, up to 100\n"
        "  --json FILE       write the figures as JSON too\n"
        "Exit code: 0 all answered once, 1 some lost or doubled, 2 usage or broker error.\n",
        into);
}

static bool parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    char *end = NULL;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    *out = value;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && value >= min &&
           value <= max;
}

struct lat_number {
    const char *name;
    size_t offset;
    uint64_t min;
    uint64_t max;
};

static int parse_options(int argc, char **argv, struct lat_options *out)
{
    enum {
        TEXT_COUNT = 4,
        NUMBER_COUNT = 7
    };
    const char **texts[TEXT_COUNT] = {&out->bootstrap, &out->in, &out->out, &out->json};
    uint64_t fetch_wait_ms = 100;
    uint64_t show = 0;
    uint64_t *const numbers[NUMBER_COUNT] = {&out->rate,     &out->seconds, &out->warmup_seconds,
                                             &out->drain_ms, &out->cards,   &fetch_wait_ms,
                                             &show};
    static const uint64_t bounds[NUMBER_COUNT][2] = {{1, 10000000}, {1, 86400},     {0, 3600},
                                                     {0, 600000},   {1, 100000000}, {1, 60000},
                                                     {0, SHOW_MAX}};
    static const struct option names[] = {{"bootstrap", required_argument, NULL, 0},
                                          {"in", required_argument, NULL, 1},
                                          {"out", required_argument, NULL, 2},
                                          {"json", required_argument, NULL, 3},
                                          {"rate", required_argument, NULL, 4},
                                          {"seconds", required_argument, NULL, 5},
                                          {"warmup", required_argument, NULL, 6},
                                          {"drain-ms", required_argument, NULL, 7},
                                          {"cards", required_argument, NULL, 8},
                                          {"fetch-wait-ms", required_argument, NULL, 9},
                                          {"show", required_argument, NULL, 10},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    optind = 1;
    for (int c = 0; (c = getopt_long(argc, argv, "h", names, NULL)) != -1;) {
        if (c == 'h' || c == '?') {
            usage(c == 'h' ? stdout : stderr);
            return c == 'h' ? 1 : -EINVAL;
        }
        if (c < TEXT_COUNT) {
            *texts[c] = optarg;
            continue;
        }
        const int n = c - TEXT_COUNT;
        ASSERT(n < NUMBER_COUNT);
        if (!parse_u64(optarg, bounds[n][0], bounds[n][1], numbers[n])) {
            return fail(names[c].name, "not a number in its bounds"), -EINVAL;
        }
    }
    out->fetch_wait_ms = (uint32_t)fetch_wait_ms;
    out->show = (uint32_t)show;
    if (out->bootstrap == NULL || out->in == NULL || out->out == NULL || optind != argc) {
        usage(stderr);
        return -EINVAL;
    }
    return 0;
}

static rd_kafka_t *open_client(const struct lat *lat, rd_kafka_type_t type)
{
    char text[512] = "";
    char wait[16];
    (void)snprintf(wait, sizeof(wait), "%u", lat->options.fetch_wait_ms);
    const char *const common[][2] = {{"bootstrap.servers", lat->options.bootstrap},
                                     {"log_level", "0"},
                                     {"socket.nagle.disable", "true"}};
    const char *const producer[][2] = {{"linger.ms", "0"},
                                       {"enable.idempotence", "true"},
                                       {"queue.buffering.max.messages", "1000000"}};
    const char *const consumer[][2] = {{"group.id", "penstock-lat"},
                                       {"enable.auto.commit", "false"},
                                       {"fetch.wait.max.ms", wait},
                                       {"fetch.error.backoff.ms", "1"}};
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_res_t status = RD_KAFKA_CONF_OK;
    for (size_t i = 0; i < COUNT_OF(common) && status == RD_KAFKA_CONF_OK; i++) {
        status = rd_kafka_conf_set(conf, common[i][0], common[i][1], text, sizeof(text));
    }
    const bool sends = type == RD_KAFKA_PRODUCER;
    const size_t rows = sends ? COUNT_OF(producer) : COUNT_OF(consumer);
    for (size_t i = 0; i < rows && status == RD_KAFKA_CONF_OK; i++) {
        const char *const *row = sends ? producer[i] : consumer[i];
        status = rd_kafka_conf_set(conf, row[0], row[1], text, sizeof(text));
    }
    rd_kafka_t *client =
        status == RD_KAFKA_CONF_OK ? rd_kafka_new(type, conf, text, sizeof(text)) : NULL;
    if (client == NULL) {
        (void)fail("librdkafka", text);
    }
    return client;
}

static int32_t partition_count(rd_kafka_t *client, const char *topic)
{
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);
    int32_t count = 0;
    if (handle != NULL && rd_kafka_metadata(client, 0, handle, &metadata, CALL_TIMEOUT_MS) ==
                              RD_KAFKA_RESP_ERR_NO_ERROR) {
        count = metadata->topic_cnt == 1 ? metadata->topics[0].partition_cnt : 0;
        rd_kafka_metadata_destroy(metadata);
    }
    if (handle != NULL) {
        rd_kafka_topic_destroy(handle);
    }
    return count <= PARTITIONS_MAX ? count : 0;
}

/* Reads the output topic from its end of now on. */
static int assign_output(struct lat *lat)
{
    const int32_t count = partition_count(lat->consumer, lat->options.out);
    if (count == 0) {
        return fail(lat->options.out, "no such topic, or no answer from the broker");
    }
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count);
    int status = 0;
    for (int32_t i = 0; i < count && status == 0; i++) {
        int64_t low = 0;
        int64_t high = 0;
        if (rd_kafka_query_watermark_offsets(lat->consumer, lat->options.out, i, &low, &high,
                                             CALL_TIMEOUT_MS) != RD_KAFKA_RESP_ERR_NO_ERROR) {
            status = fail(lat->options.out, "its end offsets are not to be had");
        }
        rd_kafka_topic_partition_list_add(list, lat->options.out, i)->offset = high;
    }
    if (status == 0) {
        (void)rd_kafka_assign(lat->consumer, list);
    }
    rd_kafka_topic_partition_list_destroy(list);
    return status;
}

/* Finds the number behind "id": at the top of a JSON value; -1 when there is none. */
static int64_t find_id(const char *value, size_t bytes)
{
    static const char name[] = "\"id\":";
    const char *at = memmem(value, bytes, name, sizeof(name) - 1);
    if (at == NULL) {
        return -1;
    }
    int64_t id = 0;
    for (at += sizeof(name) - 1; at < value + bytes && *at >= '0' && *at <= '9'; at++) {
        id = id * 10 + (*at - '0');
    }
    return id;
}

/* Keeps the last answers: by then keys have a history. */
static void keep_line(struct lat *lat, const rd_kafka_message_t *message)
{
    if (lat->options.show == 0) {
        return;
    }
    char **line = &lat->lines[lat->kept++ % lat->options.show];
    free(*line);
    *line = strndup(message->payload, message->len);
}

static void take_answer(struct lat *lat, const rd_kafka_message_t *message)
{
    const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    const int64_t id = message->payload == NULL ? -1 : find_id(message->payload, message->len);
    const uint64_t index = (uint64_t)(id - lat->first_id);
    if (id < lat->first_id || index >= lat->count) {
        (void)atomic_fetch_add_explicit(&lat->foreign, 1, memory_order_relaxed);
        return;
    }
    struct lat_slot *slot = &lat->slots[index];
    if (atomic_fetch_add_explicit(&slot->answers, 1, memory_order_relaxed) != 0) {
        (void)atomic_fetch_add_explicit(&lat->doubled, 1, memory_order_relaxed);
        return;
    }
    (void)atomic_fetch_add_explicit(&lat->answered, 1, memory_order_relaxed);
    /* Acquire pairs with the sender's release: the due time is there before the payment leaves. */
    const uint64_t due_ns = atomic_load_explicit(&slot->due_ns, memory_order_acquire);
    if (index >= lat->counted_from) {
        histogram_record(lat->histogram, now_ns > due_ns ? now_ns - due_ns : 0, 1);
        keep_line(lat, message);
    }
}

static void *receive(void *argument)
{
    struct lat *lat = argument;
    while (!atomic_load_explicit(&lat->stop, memory_order_relaxed)) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(lat->consumer, 50);
        if (message == NULL) {
            continue;
        }
        if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            take_answer(lat, message);
        }
        rd_kafka_message_destroy(message);
    }
    return NULL;
}

static void wait_until(uint64_t due_ns)
{
    for (;;) {
        const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        if (now_ns >= due_ns) {
            return;
        }
        if (due_ns - now_ns > SPIN_NS) {
            const uint64_t rest_ns = due_ns - now_ns - SPIN_NS / 2;
            const struct timespec rest = {.tv_sec = (time_t)(rest_ns / NANOSECONDS_PER_S),
                                          .tv_nsec = (long)(rest_ns % NANOSECONDS_PER_S)};
            (void)nanosleep(&rest, NULL);
        } else {
            (void)sched_yield();
        }
    }
}

/* A live line on a terminal; elsewhere only its last state. */
static void progress(const struct lat *lat, bool last)
{
    if (!last && isatty(STDERR_FILENO) == 0) {
        return;
    }
    const uint64_t sent = atomic_load_explicit(&lat->sent, memory_order_relaxed);
    const uint64_t answered = atomic_load_explicit(&lat->answered, memory_order_relaxed);
    (void)fprintf(stderr,
                  "%s%3.0f %%  sent %" PRIu64 "  answered %" PRIu64 "  p50 %.0f us  p99 %.0f us "
                  "  %s",
                  last ? (isatty(STDERR_FILENO) == 0 ? "" : "\r") : "\r… ",
                  100.0 * (double)sent / (double)lat->count, sent, answered,
                  (double)histogram_percentile(lat->histogram, 0.5) / 1e3,
                  (double)histogram_percentile(lat->histogram, 0.99) / 1e3, last ? "\n" : "");
}

static void send_one(struct lat *lat, struct generator_payments *generator, uint64_t index)
{
    uint8_t value[GENERATOR_LINE_BYTES_MAX];
    struct generator_payment payment;
    const size_t bytes = generator_payments_line(generator, &payment, value);
    ASSERT((int64_t)payment.id == lat->first_id + (int64_t)index);
    const int32_t partition = (int32_t)(index % (uint64_t)lat->in_partitions);
    for (;;) {
        const rd_kafka_resp_err_t code =
            rd_kafka_producev(lat->producer, RD_KAFKA_V_TOPIC(lat->options.in),
                              RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_VALUE(value, bytes),
                              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
        if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
                (void)atomic_fetch_add_explicit(&lat->failed, 1, memory_order_relaxed);
            }
            break;
        }
        (void)rd_kafka_poll(lat->producer, 1);
    }
    (void)atomic_fetch_add_explicit(&lat->sent, 1, memory_order_relaxed);
}

static void send_all(struct lat *lat, struct generator_payments *generator)
{
    const uint64_t start_ns = clock_ns(CLOCK_MONOTONIC) + NANOSECONDS_PER_S / 20;
    uint64_t progress_ns = start_ns;
    for (uint64_t i = 0; i < lat->count && !atomic_load(&lat->stop); i++) {
        const uint64_t due_ns = start_ns + i * NANOSECONDS_PER_S / lat->options.rate;
        wait_until(due_ns);
        /* Release pairs with the receiver's acquire. */
        atomic_store_explicit(&lat->slots[i].due_ns, due_ns, memory_order_release);
        send_one(lat, generator, i);
        (void)rd_kafka_poll(lat->producer, 0);
        if (due_ns >= progress_ns) {
            progress(lat, false);
            progress_ns = due_ns + PROGRESS_NS;
        }
    }
    (void)rd_kafka_flush(lat->producer, CALL_TIMEOUT_MS);
}

static void wait_for_answers(struct lat *lat)
{
    const uint64_t deadline_ns =
        clock_ns(CLOCK_MONOTONIC) + lat->options.drain_ms * (NANOSECONDS_PER_S / 1000);
    const struct timespec pause = {.tv_nsec = 20000000};
    while (atomic_load(&lat->answered) < atomic_load(&lat->sent) &&
           clock_ns(CLOCK_MONOTONIC) < deadline_ns) {
        (void)nanosleep(&pause, NULL);
    }
    /* A double comes right after its first: give it a moment. */
    (void)nanosleep(&pause, NULL);
    progress(lat, true);
}

static void print_bars(const struct histogram *histogram)
{
    uint64_t counts[HISTOGRAM_LINES] = {0};
    uint64_t most = 0;
    uint64_t top = 8192; /* the first line's upper bound in ns; each next one doubles */
    uint32_t line = 0;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (histogram->counts[i] == 0) {
            continue;
        }
        const uint64_t value =
            i < HISTOGRAM_SUB_BUCKETS
                ? i
                : ((uint64_t)HISTOGRAM_SUB_BUCKETS / 2 +
                   (i - HISTOGRAM_SUB_BUCKETS) % (HISTOGRAM_SUB_BUCKETS / 2))
                      << ((i - HISTOGRAM_SUB_BUCKETS) / (HISTOGRAM_SUB_BUCKETS / 2) + 1);
        while (value >= top && line + 1 < HISTOGRAM_LINES) {
            top *= 2;
            line++;
        }
        counts[line] += histogram->counts[i];
        most = counts[line] > most ? counts[line] : most;
    }
    top = 8192;
    for (uint32_t i = 0; i <= line; i++, top *= 2) {
        const int columns = (int)((counts[i] * BAR_COLUMNS + most - 1) / (most == 0 ? 1 : most));
        (void)printf("%9.0f us |%-*.*s| %" PRIu64 "\n", (double)top / 1e3, BAR_COLUMNS, columns,
                     "##################################################", counts[i]);
    }
}

static void print_report(const struct lat *lat, uint64_t lost)
{
    const uint32_t show = lat->options.show;
    for (uint64_t i = lat->kept > show ? lat->kept - show : 0; i < lat->kept; i++) {
        (void)printf("%s\n", lat->lines[i % show]);
    }
    (void)printf("\nend to end, from when a payment was due to its answer, microseconds\n");
    for (int i = 0; i < PERCENTILE_COUNT; i++) {
        (void)printf("%10s", percentile_names[i]);
    }
    (void)printf("\n");
    for (int i = 0; i < PERCENTILE_COUNT; i++) {
        (void)printf("%10.1f", (double)histogram_percentile(lat->histogram, percentiles[i]) / 1e3);
    }
    (void)printf("\n\n");
    print_bars(lat->histogram);
    (void)printf("\nsent %" PRIu64 ", answered %" PRIu64 ", lost %" PRIu64 ", doubled %" PRIu64
                 ", refused %" PRIu64 ", of others %" PRIu64 "\n",
                 atomic_load(&lat->sent), atomic_load(&lat->answered), lost,
                 atomic_load(&lat->doubled), atomic_load(&lat->failed), atomic_load(&lat->foreign));
}

static int write_json(const struct lat *lat, uint64_t lost)
{
    FILE *file = fopen(lat->options.json, "we");
    if (file == NULL) {
        return fail(lat->options.json, strerror(errno));
    }
    (void)fprintf(file,
                  "{\"rate\":%" PRIu64 ",\"sent\":%" PRIu64 ",\"answered\":%" PRIu64
                  ",\"lost\":%" PRIu64 ",\"doubled\":%" PRIu64,
                  lat->options.rate, atomic_load(&lat->sent), atomic_load(&lat->answered), lost,
                  atomic_load(&lat->doubled));
    for (int i = 0; i < PERCENTILE_COUNT; i++) {
        (void)fprintf(file, ",\"%s_ns\":%" PRIu64, percentile_names[i],
                      histogram_percentile(lat->histogram, percentiles[i]));
    }
    (void)fprintf(file, "}\n");
    return fclose(file) == 0 ? 0 : fail(lat->options.json, strerror(errno));
}

static int open_all(struct lat *lat)
{
    const struct lat_options *options = &lat->options;
    lat->count = options->rate * (options->seconds + options->warmup_seconds);
    lat->counted_from = options->rate * options->warmup_seconds;
    /* Ids of different runs on one topic differ: seconds of the day's clock, times a million. */
    lat->first_id = (int64_t)(clock_ns(CLOCK_REALTIME) / NANOSECONDS_PER_S % 1000000000) * 1000000;
    lat->slots = calloc(lat->count, sizeof(*lat->slots));
    lat->histogram = malloc(sizeof(*lat->histogram));
    if (lat->slots == NULL || lat->histogram == NULL) {
        return fail("memory", "too many payments for this machine");
    }
    histogram_init(lat->histogram);
    lat->producer = open_client(lat, RD_KAFKA_PRODUCER);
    lat->consumer = open_client(lat, RD_KAFKA_CONSUMER);
    if (lat->producer == NULL || lat->consumer == NULL) {
        return 2;
    }
    lat->in_partitions = partition_count(lat->producer, options->in);
    if (lat->in_partitions == 0) {
        return fail(options->in, "no such topic, or no answer from the broker");
    }
    (void)rd_kafka_poll_set_consumer(lat->consumer);
    return assign_output(lat);
}

static void close_all(struct lat *lat)
{
    if (lat->consumer != NULL) {
        (void)rd_kafka_consumer_close(lat->consumer);
        rd_kafka_destroy(lat->consumer);
    }
    if (lat->producer != NULL) {
        rd_kafka_destroy(lat->producer);
    }
    for (uint32_t i = 0; i < SHOW_MAX; i++) {
        free(lat->lines[i]);
    }
    free(lat->histogram);
    free(lat->slots);
}

static int measure(struct lat *lat)
{
    struct generator_payments *generator = NULL;
    /* Event time runs with the wall clock. */
    const struct generator_payments_config config = {
        .seed = 1,
        .cards = (uint32_t)lat->options.cards,
        .rate = (double)lat->options.rate,
        .start_ms = (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000),
        .first_id = (uint64_t)lat->first_id,
        .wide = true,
    };
    pthread_t receiver;
    if (generator_payments_create(&config, &generator) != 0) {
        return fail("memory", "no room for the generator");
    }
    if (pthread_create(&receiver, NULL, receive, lat) != 0) {
        generator_payments_destroy(generator);
        return fail("thread", "cannot be started");
    }
    send_all(lat, generator);
    wait_for_answers(lat);
    atomic_store(&lat->stop, true);
    (void)pthread_join(receiver, NULL);
    generator_payments_destroy(generator);
    const uint64_t lost = atomic_load(&lat->sent) - atomic_load(&lat->answered);
    print_report(lat, lost);
    if (lat->options.json != NULL && write_json(lat, lost) != 0) {
        return 2;
    }
    return lost == 0 && atomic_load(&lat->doubled) == 0 ? 0 : 1;
}

int lat_command(int argc, char **argv)
{
    struct lat lat = {
        .options = {
            .rate = 1000, .seconds = 10, .warmup_seconds = 2, .drain_ms = 5000, .cards = 100000}};
    const int parsed = parse_options(argc, argv, &lat.options);
    if (parsed != 0) {
        return parsed > 0 ? 0 : 2;
    }
    int status = open_all(&lat);
    if (status == 0) {
        status = measure(&lat);
    }
    close_all(&lat);
    return status;
}
