/* SPDX-License-Identifier: Apache-2.0 */
/* The command: arguments, the open loop, the closing line on standard error. Records are made a
 * few hundred at a time between two looks at the clock. */
#include "tools/load.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tools/generator.h"
#include "tools/load_internal.h"

#define BURST_RECORDS 256
#define KEY_BYTES     16

struct options {
    bool nexmark;
    uint64_t events;
    uint64_t seed;
    double rate;
    int64_t start_ms;
    uint64_t first;
    uint64_t disorder_ms;
    uint64_t cards;
    uint64_t ties_percent;
    uint64_t idle_percent;
    bool wide;
    bool keyed;
    uint64_t partitions;
    double send_rate;
    const char *file;
    const char *brokers;
    const char *topic;
};

struct load {
    const struct options *options;
    struct generator_nexmark *nexmark;
    struct generator_payments *payments;
    struct load_target *target;
    uint64_t sent_count;
    uint64_t sent_bytes;
    uint64_t lag_ns_max;
};

static void print_usage(FILE *out)
{
    ASSERT(out != NULL);
    (void)fputs(
        "usage: penstock load payments|nexmark --events N [options]\n"
        "\n"
        "where to\n"
        "  --to-file PATH       lines; envelopes when PATH ends in .records; - is standard output\n"
        "  --brokers HOST:PORT  a Kafka cluster, with\n"
        "  --topic NAME         the topic\n"
        "  --partitions P       record n goes to partition n % P (default: 1, or by key)\n"
        "  --send-rate R        records per second of wall clock (default: as fast as it goes)\n"
        "both streams\n"
        "  --events N           how many; for payments 0 goes on until stopped\n"
        "  --seed S             (default 1)\n"
        "  --rate R             events per second of event time (default 10000)\n"
        "  --start-ms MS|now    event time of the first (default 1700000000000)\n"
        "  --disorder MS        events say they happened up to MS earlier (default 0)\n"
        "nexmark\n"
        "  --from ID            id of the first event (default 2)\n"
        "payments\n"
        "  --cards N            (default 100000)\n"
        "  --ties PERCENT       payments that repeat their card's last time (default 0)\n"
        "  --idle PERCENT       cards that are idle nearly always (default 20)\n"
        "  --wide               some 300 bytes a payment instead of 170\n"
        "  --keyed              the card is the record's key\n",
        out);
}

static bool read_unsigned(const char *text, uint64_t max, uint64_t *out)
{
    ASSERT(text != NULL && out != NULL);
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == 0 && errno == 0 && *out <= max;
}

static bool read_rate(const char *text, double *out)
{
    ASSERT(text != NULL && out != NULL);
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == 0 && isfinite(*out) && *out > 0;
}

static int64_t wall_clock_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool read_start(const char *text, int64_t *out)
{
    ASSERT(text != NULL && out != NULL);
    char *end;
    if (strcmp(text, "now") == 0) {
        *out = wall_clock_ms();
        return true;
    }
    errno = 0;
    *out = strtoll(text, &end, 10);
    return end != text && *end == 0 && errno == 0;
}

enum option_key {
    OPTION_EVENTS = 1,
    OPTION_SEED,
    OPTION_RATE,
    OPTION_START,
    OPTION_FROM,
    OPTION_DISORDER,
    OPTION_CARDS,
    OPTION_TIES,
    OPTION_IDLE,
    OPTION_WIDE,
    OPTION_KEYED,
    OPTION_PARTITIONS,
    OPTION_SEND_RATE,
    OPTION_FILE,
    OPTION_BROKERS,
    OPTION_TOPIC,
    OPTION_HELP,
};

static const struct option LONG_OPTIONS[] = {
    {"events", required_argument, NULL, OPTION_EVENTS},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"rate", required_argument, NULL, OPTION_RATE},
    {"start-ms", required_argument, NULL, OPTION_START},
    {"from", required_argument, NULL, OPTION_FROM},
    {"disorder", required_argument, NULL, OPTION_DISORDER},
    {"cards", required_argument, NULL, OPTION_CARDS},
    {"ties", required_argument, NULL, OPTION_TIES},
    {"idle", required_argument, NULL, OPTION_IDLE},
    {"wide", no_argument, NULL, OPTION_WIDE},
    {"keyed", no_argument, NULL, OPTION_KEYED},
    {"partitions", required_argument, NULL, OPTION_PARTITIONS},
    {"send-rate", required_argument, NULL, OPTION_SEND_RATE},
    {"to-file", required_argument, NULL, OPTION_FILE},
    {"brokers", required_argument, NULL, OPTION_BROKERS},
    {"topic", required_argument, NULL, OPTION_TOPIC},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

/* Takes one option; false when its value is wrong. */
static bool take_option(struct options *options, int key, const char *value)
{
    ASSERT(options != NULL);
    switch (key) {
    case OPTION_EVENTS:
        return read_unsigned(value, UINT64_C(1) << 53, &options->events);
    case OPTION_SEED:
        return read_unsigned(value, UINT64_MAX, &options->seed);
    case OPTION_RATE:
        return read_rate(value, &options->rate);
    case OPTION_START:
        return read_start(value, &options->start_ms);
    case OPTION_FROM:
        return read_unsigned(value, UINT64_C(1) << 53, &options->first) && options->first >= 2;
    case OPTION_DISORDER:
        return read_unsigned(value, INT32_MAX, &options->disorder_ms);
    case OPTION_CARDS:
        return read_unsigned(value, 100000000, &options->cards) && options->cards >= 1;
    case OPTION_TIES:
        return read_unsigned(value, 100, &options->ties_percent);
    case OPTION_IDLE:
        return read_unsigned(value, 99, &options->idle_percent);
    case OPTION_WIDE:
        options->wide = true;
        return true;
    case OPTION_KEYED:
        options->keyed = true;
        return true;
    case OPTION_PARTITIONS:
        return read_unsigned(value, 100000, &options->partitions) && options->partitions >= 1;
    case OPTION_SEND_RATE:
        return read_rate(value, &options->send_rate);
    case OPTION_FILE:
        options->file = value;
        return true;
    case OPTION_BROKERS:
        options->brokers = value;
        return true;
    case OPTION_TOPIC:
        options->topic = value;
        return true;
    default:
        return false;
    }
}

/* Returns 0 to go on, or an exit code plus one. */
static int check_options(const struct options *options, bool events_given)
{
    ASSERT(options != NULL);
    if (!events_given || (options->nexmark && options->rate != floor(options->rate))) {
        (void)fprintf(stderr, "penstock load: %s\n",
                      events_given ? "--rate of nexmark must be a whole number"
                                   : "--events is missing");
        return 3;
    }
    if ((options->file != NULL) == (options->brokers != NULL) ||
        (options->brokers != NULL) != (options->topic != NULL)) {
        (void)fprintf(stderr, "penstock load: give either --to-file, or --brokers and --topic\n");
        return 3;
    }
    return 0;
}

static int parse_options(int argc, char **argv, struct options *options)
{
    ASSERT(options != NULL);
    bool events_given = false;
    optind = 1;
    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        print_usage(argc < 2 ? stderr : stdout);
        return argc < 2 ? 3 : 1;
    }
    options->nexmark = strcmp(argv[1], "nexmark") == 0;
    if (!options->nexmark && strcmp(argv[1], "payments") != 0) {
        (void)fprintf(stderr, "penstock load: '%s' is neither payments nor nexmark\n", argv[1]);
        return 3;
    }
    for (;;) {
        int index = 0;
        const int key = getopt_long(argc - 1, argv + 1, "", LONG_OPTIONS, &index);
        if (key == -1) {
            break;
        }
        if (key == OPTION_HELP) {
            print_usage(stdout);
            return 1;
        }
        if (key == '?' || !take_option(options, key, optarg)) {
            if (key != '?') {
                (void)fprintf(stderr, "penstock load: --%s cannot be '%s'\n",
                              LONG_OPTIONS[index].name, optarg);
            }
            return 3;
        }
        events_given = events_given || key == OPTION_EVENTS;
    }
    if (optind != argc - 1) {
        (void)fprintf(stderr, "penstock load: unexpected '%s'\n", argv[1 + optind]);
        return 3;
    }
    return check_options(options, events_given);
}

/* The stream that the options name. */
static int create_generator(struct load *load)
{
    const struct options *options = load->options;
    ASSERT(load->options->rate > 0);
    if (options->nexmark) {
        const struct generator_nexmark_config config = {
            .seed = options->seed,
            .rate = (uint64_t)options->rate,
            .start_ms = options->start_ms,
            .disorder_ms = (uint32_t)options->disorder_ms,
        };
        return generator_nexmark_create(&config, &load->nexmark);
    }
    const struct generator_payments_config config = {
        .seed = options->seed,
        .cards = (uint32_t)options->cards,
        .rate = options->rate,
        .start_ms = options->start_ms,
        .disorder_ms = (uint32_t)options->disorder_ms,
        .ties_percent = (uint32_t)options->ties_percent,
        .idle_percent = (uint32_t)options->idle_percent,
        .wide = options->wide,
    };
    return generator_payments_create(&config, &load->payments);
}

static uint64_t monotonic_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NANOSECONDS_PER_S + (uint64_t)now.tv_nsec;
}

/* Makes the next record and hands it to the target. */
static int put_next(struct load *load)
{
    ASSERT(load->target != NULL);
    uint8_t line[GENERATOR_LINE_BYTES_MAX];
    char key[KEY_BYTES];
    const struct options *options = load->options;
    const uint64_t number = load->sent_count + (options->nexmark ? options->first : 0);
    struct generator_payment payment = {.id = 0};
    struct load_record record = {.value = {.data = line}, .partition = -1};
    record.value.bytes = options->nexmark ? generator_nexmark_line(load->nexmark, number, line)
                                          : generator_payments_line(load->payments, &payment, line);
    if (options->partitions != 0) {
        record.partition = (int32_t)(number % options->partitions);
    }
    if (options->keyed && !options->nexmark) {
        const int bytes = snprintf(key, sizeof(key), "c%u", payment.card);
        record.key = (struct span){.data = (const uint8_t *)key, .bytes = (size_t)bytes};
    }
    load->sent_count++;
    load->sent_bytes += record.value.bytes;
    return load->target->ops->put(load->target, &record);
}

/* How many records are due now, at least one: waits when none is. */
static uint64_t wait_for_due(struct load *load, uint64_t start_ns)
{
    ASSERT(load->options != NULL);
    const double rate = load->options->send_rate;
    if (rate == 0) {
        return BURST_RECORDS;
    }
    const uint64_t due_ns =
        start_ns + (uint64_t)((double)load->sent_count * (double)NANOSECONDS_PER_S / rate);
    uint64_t now_ns = monotonic_ns();
    if (now_ns < due_ns) {
        const struct timespec due = {
            .tv_sec = (time_t)(due_ns / NANOSECONDS_PER_S),
            .tv_nsec = (long)(due_ns % NANOSECONDS_PER_S),
        };
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        now_ns = monotonic_ns();
    }
    const uint64_t lag_ns = now_ns > due_ns ? now_ns - due_ns : 0;
    load->lag_ns_max = lag_ns > load->lag_ns_max ? lag_ns : load->lag_ns_max;
    const uint64_t due = 1 + (uint64_t)((double)lag_ns * rate / (double)NANOSECONDS_PER_S);
    return due > BURST_RECORDS ? BURST_RECORDS : due;
}

/* SIGINT and SIGTERM end the stream after the burst at hand; they are blocked and looked for. */
static bool is_stopped(const sigset_t *signals)
{
    ASSERT(signals != NULL);
    static const struct timespec NOW;
    return sigtimedwait(signals, NULL, &NOW) > 0;
}

/* The open loop, then the closing line. */
static int run(struct load *load)
{
    ASSERT(load->target != NULL);
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    const bool endless = load->options->events == 0 && !load->options->nexmark;
    const uint64_t start_ns = monotonic_ns();
    int result = 0;
    while (result == 0 && (endless || load->sent_count < load->options->events) &&
           !is_stopped(&signals)) {
        const uint64_t left = load->options->events - load->sent_count;
        uint64_t due = wait_for_due(load, start_ns);
        due = endless || due < left ? due : left;
        for (uint64_t i = 0; i < due && result == 0; i++) {
            result = put_next(load);
        }
    }
    struct error error = {.line = 0};
    const int finished = load->target->ops->finish(load->target, &error);
    const double seconds = (double)(monotonic_ns() - start_ns) / (double)NANOSECONDS_PER_S;
    (void)sigprocmask(SIG_UNBLOCK, &signals, NULL);
    if (finished != 0) {
        (void)fprintf(stderr, "penstock load: %s\n", error.text);
    }
    (void)fprintf(stderr, "%llu records, %.1f MB in %.2f s: %.0f records/s, largest lag %.3f ms\n",
                  (unsigned long long)load->sent_count, (double)load->sent_bytes / 1e6, seconds,
                  (double)load->sent_count / seconds, (double)load->lag_ns_max / 1e6);
    return result != 0 || finished != 0 ? 1 : 0;
}

int load_command(int argc, char **argv)
{
    ASSERT(argc >= 1 && argv != NULL);
    struct options options = {
        .seed = 1,
        .rate = 10000,
        .start_ms = INT64_C(1700000000000),
        .first = 2,
        .cards = 100000,
        .idle_percent = 20,
    };
    const int parsed = parse_options(argc, argv, &options);
    if (parsed != 0) {
        return parsed - 1;
    }
    struct error error = {.line = 0};
    struct load load = {.options = &options};
    int result = options.file != NULL
                     ? load_file_open(options.file, &load.target, &error)
                     : load_broker_open(options.brokers, options.topic, &load.target, &error);
    if (result == 0 && create_generator(&load) != 0) {
        result = error_set(&error, -ENOMEM, "no memory for a generator");
        (void)load.target->ops->finish(load.target, NULL);
    }
    if (result != 0) {
        (void)fprintf(stderr, "penstock load: %s\n", error.text);
        return 1;
    }
    result = run(&load);
    generator_nexmark_destroy(load.nexmark);
    generator_payments_destroy(load.payments);
    return result;
}
