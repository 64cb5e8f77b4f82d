/* SPDX-License-Identifier: Apache-2.0 */
/* An embedded broker for the quick start and the tests: librdkafka's mock cluster, which listens on
 * 127.0.0.1 only, and a relay from an address that the user-space stack can reach.
 *
 *     mock-broker RELAY_ADDRESS:PORT TOPIC[:PARTITIONS]…
 *
 * A topic of 0 partitions is one that the cluster does not know (others are made when asked for).
 * Prints one line, "127.0.0.1:PORT", the bootstrap address of the mock as kernel clients reach it
 * and as it advertises itself; runs until SIGTERM or SIGINT. One thread, an epoll loop; at most
 * RELAYS_MAX connections, of RELAY_BYTES in flight each way. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "base.h"

#define RELAYS_MAX  256
#define RELAY_BYTES 65536

/* One direction of a connection: bytes read from one socket that wait for the other. */
struct pipe_half {
    int from;
    int into;
    size_t start;
    size_t end;
    bool ended;
    uint8_t bytes[RELAY_BYTES];
};

struct relay {
    bool used;
    struct pipe_half up;   /* client to broker */
    struct pipe_half down; /* broker to client */
};

struct broker {
    int epoll;
    int listener;
    int signals;
    struct sockaddr_in target;
    struct relay *relays; /* RELAYS_MAX */
    rd_kafka_t *client;
    rd_kafka_mock_cluster_t *cluster;
};

static bool parse_address(const char *text, struct sockaddr_in *out)
{
    char host[64];
    unsigned port = 0;
    if (sscanf(text, "%63[^:]:%u", host, &port) != 2 || port == 0 || port > 65535) {
        return false;
    }
    *out = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    return inet_pton(AF_INET, host, &out->sin_addr) == 1;
}

static void no_delay(int socket)
{
    const int on = 1;
    (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void watch(const struct broker *broker, int socket, uint64_t tag)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u64 = tag};
    ASSERT(epoll_ctl(broker->epoll, EPOLL_CTL_ADD, socket, &event) == 0);
}

static struct relay *find_free(const struct broker *broker)
{
    for (uint32_t i = 0; i < RELAYS_MAX; i++) {
        if (!broker->relays[i].used) {
            return &broker->relays[i];
        }
    }
    return NULL;
}

static void accept_one(struct broker *broker, int client)
{
    struct relay *relay = find_free(broker);
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (relay == NULL || server < 0) {
        (void)close(client);
        (void)close(server);
        return;
    }
    no_delay(client);
    no_delay(server);
    (void)connect(server, (const struct sockaddr *)&broker->target, sizeof(broker->target));
    relay->used = true;
    relay->up = (struct pipe_half){.from = client, .into = server};
    relay->down = (struct pipe_half){.from = server, .into = client};
    const uint64_t tag = (uint64_t)(relay - broker->relays) + 2;
    watch(broker, client, tag);
    watch(broker, server, tag);
}

/* Moves what can be moved one way; false when this direction is over. */
static bool pump(struct pipe_half *half)
{
    for (;;) {
        if (half->start < half->end) {
            const ssize_t sent =
                send(half->into, half->bytes + half->start, half->end - half->start, MSG_NOSIGNAL);
            if (sent < 0) {
                return errno == EAGAIN || errno == ENOTCONN;
            }
            half->start += (size_t)sent;
            continue;
        }
        half->start = 0;
        half->end = 0;
        const ssize_t got = recv(half->from, half->bytes, RELAY_BYTES, 0);
        if (got < 0) {
            return errno == EAGAIN || errno == ENOTCONN;
        }
        if (got == 0) {
            return false;
        }
        half->end = (size_t)got;
    }
}

static void serve(struct broker *broker, uint64_t tag)
{
    struct relay *relay = &broker->relays[tag - 2];
    if (!relay->used || (pump(&relay->up) && pump(&relay->down))) {
        return;
    }
    (void)close(relay->up.from);
    (void)close(relay->up.into);
    relay->used = false;
}

static void loop(struct broker *broker)
{
    struct epoll_event events[64];
    for (;;) {
        const int count = epoll_wait(broker->epoll, events, COUNT_OF(events), 1000);
        for (int i = 0; i < count; i++) {
            if (events[i].data.u64 == 0) {
                return; /* a signal */
            }
            if (events[i].data.u64 > 1) {
                serve(broker, events[i].data.u64);
                continue;
            }
            int client = -1;
            while ((client = accept4(broker->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >=
                   0) {
                accept_one(broker, client);
            }
        }
    }
}

static bool make_topic(struct broker *broker, const char *name, int partitions)
{
    if (partitions == 0) {
        rd_kafka_mock_topic_set_error(broker->cluster, name,
                                      RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        return true;
    }
    return partitions > 0 && rd_kafka_mock_topic_create(broker->cluster, name, partitions, 1) ==
                                 RD_KAFKA_RESP_ERR_NO_ERROR;
}

static bool open_mock(struct broker *broker, int topic_count, char **topics)
{
    char text[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    (void)rd_kafka_conf_set(conf, "log_level", "3", NULL, 0); /* errors only */
    broker->client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    if (broker->client == NULL) {
        (void)fprintf(stderr, "mock-broker: %s\n", text);
        return false;
    }
    broker->cluster = rd_kafka_mock_cluster_new(broker->client, 1);
    for (int i = 0; i < topic_count; i++) {
        char name[256];
        int partitions = 1;
        if (sscanf(topics[i], "%255[^:]:%d", name, &partitions) < 1 ||
            !make_topic(broker, name, partitions)) {
            (void)fprintf(stderr, "mock-broker: topic %s cannot be made\n", topics[i]);
            return false;
        }
    }
    return parse_address(rd_kafka_mock_cluster_bootstraps(broker->cluster), &broker->target);
}

static bool open_relay(struct broker *broker, const char *address)
{
    struct sockaddr_in at;
    const int on = 1;
    if (!parse_address(address, &at)) {
        (void)fprintf(stderr, "mock-broker: %s is no a.b.c.d:port\n", address);
        return false;
    }
    broker->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)setsockopt(broker->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    /* The address may belong to a TAP that the engine has yet to make. */
    (void)setsockopt(broker->listener, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));
    if (bind(broker->listener, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        listen(broker->listener, 64) != 0) {
        (void)fprintf(stderr, "mock-broker: %s: %s\n", address, strerror(errno));
        return false;
    }
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    broker->signals = signalfd(-1, &set, SFD_CLOEXEC);
    broker->epoll = epoll_create1(EPOLL_CLOEXEC);
    broker->relays = calloc(RELAYS_MAX, sizeof(*broker->relays));
    if (broker->relays == NULL || broker->epoll < 0 || broker->signals < 0) {
        return false;
    }
    watch(broker, broker->signals, 0);
    watch(broker, broker->listener, 1);
    return true;
}

int main(int argc, char **argv)
{
    struct broker broker = {0};
    if (argc < 3) {
        (void)fprintf(stderr, "usage: mock-broker RELAY_ADDRESS:PORT TOPIC[:PARTITIONS]...\n");
        return 2;
    }
    if (!open_relay(&broker, argv[1]) || !open_mock(&broker, argc - 2, argv + 2)) {
        return 1;
    }
    (void)printf("%s\n", rd_kafka_mock_cluster_bootstraps(broker.cluster));
    (void)fflush(stdout);
    loop(&broker);
    rd_kafka_mock_cluster_destroy(broker.cluster);
    rd_kafka_destroy(broker.client);
    free(broker.relays);
    return 0;
}
