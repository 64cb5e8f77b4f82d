/* SPDX-License-Identifier: Apache-2.0 */
/* The stack against a real kernel: a net_tap port in a network namespace of this process's own, an
 * echo server on a kernel socket in a thread, 8 MiB there and back, an orderly close and a refused
 * connect. Skips (77) without root or the driver; nothing is left behind, since the namespace and
 * its interface go with the process. */
#include "nic/stack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "nic/port_dpdk.h"

#define TRANSFER_BYTES (UINT64_C(8) << 20)
#define ECHO_PORT      9092
#define EXIT_SKIP      77
#define LIMIT_NS       (30 * NANOSECONDS_PER_S)

static uint64_t clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NANOSECONDS_PER_S + (uint64_t)now.tv_nsec;
}

static uint8_t pattern(uint64_t offset)
{
    return (uint8_t)(offset * 131 + (offset >> 8) * 31 + (offset >> 16));
}

static void *echo_serve(void *argument)
{
    int listener = *(int *)argument;
    int peer = accept(listener, NULL, NULL);
    char buffer[65536];
    for (ssize_t got = read(peer, buffer, sizeof(buffer)); got > 0;
         got = read(peer, buffer, sizeof(buffer))) {
        for (ssize_t done = 0; done < got;) {
            ssize_t wrote = write(peer, buffer + done, (size_t)(got - done));
            if (wrote <= 0) {
                break;
            }
            done += wrote;
        }
    }
    (void)close(peer);
    return NULL;
}

/* Gives the kernel side of the interface its address. */
static bool interface_up(const char *name)
{
    struct ifreq request = {0};
    struct sockaddr_in *address = (struct sockaddr_in *)(void *)&request.ifr_addr;
    int handle = socket(AF_INET, SOCK_DGRAM, 0);
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = inet_addr("198.18.0.1");
    bool good = ioctl(handle, SIOCSIFADDR, &request) == 0;
    address->sin_addr.s_addr = inet_addr("255.254.0.0");
    good = good && ioctl(handle, SIOCSIFNETMASK, &request) == 0;
    good = good && ioctl(handle, SIOCGIFFLAGS, &request) == 0;
    request.ifr_flags |= IFF_UP;
    good = good && ioctl(handle, SIOCSIFFLAGS, &request) == 0;
    (void)close(handle);
    return good;
}

static int listener_open(void)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(ECHO_PORT),
        .sin_addr.s_addr = inet_addr("198.18.0.1"),
    };
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, 4) != 0) {
        perror("listen");
        exit(1);
    }
    return listener;
}

struct transfer {
    uint64_t written;
    uint64_t checked;
    bool wrong;
};

static void transfer_step(struct stream *stream, struct transfer *transfer)
{
    struct span_mut out = stream_writable(stream);
    uint64_t left = TRANSFER_BYTES - transfer->written;
    size_t bytes = out.bytes < left ? out.bytes : left;
    for (size_t i = 0; i < bytes; i++) {
        out.data[i] = pattern(transfer->written + i);
    }
    stream_commit(stream, bytes);
    transfer->written += bytes;
    struct span in = stream_readable(stream);
    for (size_t i = 0; i < in.bytes; i++) {
        transfer->wrong = transfer->wrong || in.data[i] != pattern(transfer->checked + i);
    }
    stream_consume(stream, in.bytes);
    transfer->checked += in.bytes;
}

static bool echo_run(struct stack *stack)
{
    struct stream *stream = NULL;
    struct transfer transfer = {0};
    uint64_t start_ns = clock_ns();
    int status = stack_connect(stack, ntohl(inet_addr("198.18.0.1")), ECHO_PORT, start_ns, &stream);
    if (status != 0) {
        fprintf(stderr, "connect: %s\n", strerror(-status));
        return false;
    }
    bool closed = false;
    while (clock_ns() - start_ns < LIMIT_NS && stream->state < STREAM_CLOSED) {
        (void)stack_poll(stack, clock_ns());
        if (stream->state == STREAM_OPEN) {
            transfer_step(stream, &transfer);
            (void)stack_flush(stack, clock_ns());
        }
        if (!closed && transfer.checked == TRANSFER_BYTES) {
            stream_close(stream);
            closed = true;
        }
    }
    printf("%llu bytes there and back in %.1f ms, state %d, failure %d\n",
           (unsigned long long)transfer.checked, (double)(clock_ns() - start_ns) / 1e6,
           (int)stream->state, (int)stream->failure);
    bool good =
        transfer.checked == TRANSFER_BYTES && !transfer.wrong && stream->state == STREAM_CLOSED;
    stream_release(stream);
    return good;
}

static bool refused_run(struct stack *stack)
{
    struct stream *stream = NULL;
    uint64_t start_ns = clock_ns();
    if (stack_connect(stack, ntohl(inet_addr("198.18.0.1")), 9, start_ns, &stream) != 0) {
        return false;
    }
    while (clock_ns() - start_ns < LIMIT_NS && stream->state == STREAM_CONNECTING) {
        (void)stack_poll(stack, clock_ns());
    }
    bool good = stream->state == STREAM_FAILED && stream->failure == STREAM_FAILURE_REFUSED;
    stream_release(stream);
    return good;
}

static void counters_print(const struct stack *stack)
{
    size_t count;
    const struct stack_counter_name *names = stack_counter_names(&count);
    const uint64_t *values = (const uint64_t *)stack_counters_get(stack);
    for (size_t i = 0; i < count; i++) {
        if (values[i] != 0) {
            printf("  %-28s %llu\n", names[i].name, (unsigned long long)values[i]);
        }
    }
}

static int run(struct port *port, const struct nic_config *config)
{
    struct error error = {0};
    struct stack *stack = NULL;
    struct stack_options options = {
        .config = config, .port = port, .now_ns = clock_ns(), .secret = "tap test secret"};
    if (!interface_up("pentest0")) {
        fprintf(stderr, "cannot configure the interface: %s\n", strerror(errno));
        return 1;
    }
    if (stack_create(&options, &stack, &error) != 0) {
        fprintf(stderr, "stack: %s\n", error.text);
        return 1;
    }
    int listener = listener_open();
    pthread_t server;
    (void)pthread_create(&server, NULL, echo_serve, &listener);
    bool echoed = echo_run(stack);
    bool refused = echoed && refused_run(stack);
    bool balanced = stack_is_balanced(stack);
    counters_print(stack);
    if (echoed) {
        (void)pthread_join(server, NULL);
    }
    (void)close(listener);
    stack_destroy(stack);
    printf("echo %d, refused %d, balanced %d\n", echoed, refused, balanced);
    return echoed && refused && balanced ? 0 : 1;
}

int main(void)
{
    struct error error = {0};
    if (geteuid() != 0 || access("/dev/net/tun", R_OK | W_OK) != 0 || unshare(CLONE_NEWNET) != 0) {
        printf("needs root and /dev/net/tun: skipped\n");
        return EXIT_SKIP;
    }
    struct port_eal_config eal = {.file_prefix = "test_tap", .memory_mb = 64};
    if (port_eal_init(&eal, &error) != 0) {
        printf("%s: skipped\n", error.text);
        return EXIT_SKIP;
    }
    struct nic_config config;
    nic_config_defaults(&config);
    strncpy(config.vdev, "net_tap0,iface=pentest0", sizeof(config.vdev) - 1);
    (void)nic_ip4_parse("198.18.0.2", &config.address_ip4);
    config.prefix_bits = 15;
    config.connection_count_max = 4;
    struct port *port = NULL;
    if (port_create(&config, &port, &error) != 0) {
        printf("%s: skipped\n", error.text);
        port_eal_fini();
        return EXIT_SKIP;
    }
    int status = run(port, &config);
    port_destroy(port);
    port_eal_fini();
    return status;
}
