/* SPDX-License-Identifier: Apache-2.0 */
/* The stack against the reference peer over a bad wire, thousands of times. Each seed draws a
 * wire, a peer, buffer sizes, applications that read and write in fits, and an ending; then virtual
 * time runs until both are done. Checked: every byte both ways, the stream's end state, the
 * stack's counter balance, no leaked frame, no packet storm, no stand-still.
 *
 *     sim_tcp --seeds 1500 [--first N]     many; the first failing seed is printed
 *     sim_tcp --seed N [--verbose]         that one alone */
#include <stdio.h>
#include <stdlib.h>

#include "nic/stack_internal.h"
#include "tests/sim/peer.h"
#include "tests/sim/seed_watch.h"
#include "tests/sim/wire.h"
#include "tests/sim/wire_sim.h"

#define MS              UINT64_C(1000000)
#define RUN_NS_MAX      (7200 * NANOSECONDS_PER_S)
#define FRAME_COUNT_MAX 400000
#define QUIET_NS        (5 * NANOSECONDS_PER_S)

enum ending {
    ENDING_ORDERLY = 0,
    ENDING_REFUSED,
    ENDING_RESET,
    ENDING_SILENT,
    ENDING_FORGOT,
    ENDING_ABORT,
    ENDING_RELEASE, /* the stack's owner walks off in the middle */
};

enum closing {
    CLOSE_EARLY = 0, /* once all is written */
    CLOSE_LAST,      /* once all is written and read */
    CLOSE_ANSWER,    /* once the peer has closed */
};

struct run {
    uint64_t seed;
    struct wire_random random;
    struct wire *wire;
    struct peer *peer;
    struct port *port;
    struct stack *stack;
    struct stream *stream;
    struct nic_config config;
    enum ending ending;
    enum closing closing;
    uint64_t now_ns;
    uint64_t write_bytes;
    uint64_t read_bytes;
    uint64_t written;
    uint64_t checked;
    uint64_t stop_at; /* of bytes written, for ABORT and RELEASE */
    uint64_t next_write_ns;
    uint64_t next_read_ns;
    uint64_t pause_ns;
    uint32_t chunk_bytes;
    bool asked_close;
    const char *failure;
};

static uint64_t draw(struct run *run, uint64_t bound)
{
    return wire_random_below(&run->random, bound);
}

static bool chance(struct run *run, uint32_t percent)
{
    return draw(run, 100) < percent;
}

static void fail(struct run *run, const char *text)
{
    run->failure = run->failure == NULL ? text : run->failure;
}

/* ---- Drawing a run -------------------------------------------------------------------------- */

static void wire_draw(struct run *run, struct wire_config *config)
{
    bool bad = chance(run, 75);
    *config = (struct wire_config){
        .seed = run->seed,
        .loss_ppm = bad ? (uint32_t)draw(run, 80000) : 0,
        .duplicate_ppm = bad && chance(run, 50) ? (uint32_t)draw(run, 100000) : 0,
        .damage_ppm = bad && chance(run, 50) ? (uint32_t)draw(run, 50000) : 0,
        .delay_ppm = chance(run, 60) ? (uint32_t)draw(run, 500000) : 0,
        .delay_ns_min = 1000 + draw(run, chance(run, 30) ? 20 * MS : 200000),
        .delay_ns_max = draw(run, chance(run, 20) ? 300 * MS : 2 * MS),
    };
}

static enum ending ending_draw(struct run *run)
{
    uint64_t number = draw(run, 100);
    if (number < 70) {
        return ENDING_ORDERLY;
    }
    return (enum ending)(1 + (number - 70) / 5);
}

static uint64_t point_draw(struct run *run, enum ending wanted)
{
    return run->ending == wanted ? draw(run, run->write_bytes + 1) : UINT64_MAX;
}

static void peer_draw(struct run *run, struct peer_config *config)
{
    static const uint16_t sizes[] = {0, 1460, 1460, 1460, 536, 1200, 300, 88, 20};
    bool answer = run->closing == CLOSE_ANSWER;
    *config = (struct peer_config){
        .seed = run->seed,
        .isn = chance(run, 40) ? UINT32_MAX - (uint32_t)draw(run, 100000)
                               : (uint32_t)wire_random_next(&run->random),
        .mss_bytes = sizes[draw(run, COUNT_OF(sizes))],
        .scale = chance(run, 70) ? (int)draw(run, 10) : -1,
        .timestamps = chance(run, 70),
        .sack = chance(run, 70),
        .delays_acks = chance(run, 50),
        .refuses = run->ending == ENDING_REFUSED,
        .opens_too = run->ending == ENDING_ORDERLY && chance(run, 10),
        .closes_first = answer || chance(run, 30),
        .fin_early = chance(run, 20),
        .buffer_bytes = 64 + (uint32_t)draw(run, chance(run, 30) ? 3000 : 100000),
        .send_bytes = run->read_bytes,
        .receive_bytes = run->write_bytes,
        .silent_at = point_draw(run, ENDING_SILENT),
        .reset_at = point_draw(run, ENDING_RESET),
        .forget_at = point_draw(run, ENDING_FORGOT),
        .read_pause_ns = chance(run, 30) ? 400 * MS : 1 * MS,
        .read_bytes = 1 + (uint32_t)draw(run, 60000),
        .attack_ppm = chance(run, 40) ? 100000 : 0,
    };
    /* A window that the scale rounds to nothing never opens. */
    while (config->scale > 0 && config->buffer_bytes >> config->scale < 4) {
        config->scale--;
    }
}

static uint32_t power_draw(struct run *run, uint32_t least, uint32_t doublings)
{
    return least << draw(run, doublings + 1);
}

static void config_draw(struct run *run)
{
    struct nic_config *config = &run->config;
    nic_config_defaults(config);
    config->address_ip4 = UINT32_C(0xc6120002);
    config->prefix_bits = 15;
    config->connection_count_max = 1 + (uint32_t)draw(run, 2);
    config->time_wait_count_max = 16;
    config->receive_bytes_max = power_draw(run, 65536, 2);
    config->send_bytes_max = power_draw(run, 65536, 1);
    config->segment_count_max = power_draw(run, 64, 4);
    config->rto_ms_min = 50 + (uint32_t)draw(run, 200);
    config->rto_ms_max = 10000;
    config->arp_retry_count_max = 32;
    config->connect_timeout_ms = 300000;
    config->user_timeout_ms = run->ending == ENDING_SILENT ? 20000 : 1200000;
    config->keepalive_idle_ms = 10000;
    config->keepalive_interval_ms = 1000;
    config->keepalive_count_max = 20;
    config->burst_count = 1 + (uint32_t)draw(run, 64);
    config->linger_ms = 600000;
}

static uint64_t stream_bytes_draw(struct run *run)
{
    switch (draw(run, 4)) {
    case 0:
        return draw(run, 4);
    case 1:
        return draw(run, 3000);
    default:
        return draw(run, 150000);
    }
}

static void run_draw(struct run *run)
{
    run->ending = ending_draw(run);
    run->closing = (enum closing)draw(run, 3);
    run->write_bytes = stream_bytes_draw(run);
    run->read_bytes = stream_bytes_draw(run);
    run->stop_at = draw(run, run->write_bytes + 1);
    run->pause_ns = chance(run, 30) ? 300 * MS : MS / 2;
    run->chunk_bytes = 1 + (uint32_t)draw(run, 30000);
    run->now_ns = draw(run, UINT64_C(1) << 50);
}

static bool run_start(struct run *run)
{
    struct wire_config wire_config;
    struct peer_config peer_config;
    struct error error = {0};
    run_draw(run);
    wire_draw(run, &wire_config);
    peer_draw(run, &peer_config);
    config_draw(run);
    bool short_of = chance(run, 20);
    struct port_sim_config port_config = {
        .wire = run->wire,
        .seed = run->seed,
        .mtu_bytes = 1500,
        .alloc_failure_ppm = short_of ? 50000 : 0,
        .tx_short_ppm = short_of ? 200000 : 0,
        .segments = chance(run, 60),
        .checksum_offload = chance(run, 30),
    };
    wire_reset(run->wire, &wire_config);
    peer_reset(run->peer, &peer_config, run->now_ns);
    port_sim_reset(run->port, &port_config);
    struct stack_options options = {
        .config = &run->config, .port = run->port, .now_ns = run->now_ns};
    store_be64(options.secret, run->seed);
    int status = stack_create(&options, &run->stack, &error);
    if (status == 0) {
        status = stack_connect(run->stack, UINT32_C(0xc6120001), 9092, run->now_ns, &run->stream);
    }
    if (status != 0) {
        fail(run, "cannot start");
        return false;
    }
    if (chance(run, 50)) {
        struct tcp_connection *connection = (struct tcp_connection *)(void *)run->stream;
        connection->iss = UINT32_MAX - (uint32_t)draw(run, run->write_bytes + 2);
        connection->snd_una = connection->snd_nxt = connection->iss;
    }
    return true;
}

/* ---- The stack's application ---------------------------------------------------------------- */

static void application_write(struct run *run)
{
    struct span_mut room = stream_writable(run->stream);
    uint64_t left = run->write_bytes - run->written;
    uint64_t bytes = 1 + draw(run, run->chunk_bytes);
    bytes = bytes < left ? bytes : left;
    bytes = bytes < room.bytes ? bytes : room.bytes;
    for (uint64_t i = 0; i < bytes; i++) {
        room.data[i] = peer_pattern(run->seed ^ 1, run->written + i);
    }
    stream_commit(run->stream, bytes);
    run->written += bytes;
    run->next_write_ns = run->now_ns + draw(run, run->pause_ns);
}

static void application_read(struct run *run)
{
    struct span in = stream_readable(run->stream);
    uint64_t bytes = 1 + draw(run, run->chunk_bytes);
    bytes = bytes < in.bytes ? bytes : in.bytes;
    for (uint64_t i = 0; i < bytes; i++) {
        if (in.data[i] != peer_pattern(run->seed, run->checked + i)) {
            fail(run, "read a wrong byte");
            return;
        }
    }
    stream_consume(run->stream, bytes);
    run->checked += bytes;
    run->next_read_ns = run->now_ns + draw(run, run->pause_ns);
}

static bool wants_close(const struct run *run)
{
    if (run->asked_close || run->written < run->write_bytes ||
        run->stream->state > STREAM_HALF_CLOSED) {
        return false;
    }
    switch (run->closing) {
    case CLOSE_EARLY:
        return run->stream->state != STREAM_CONNECTING;
    case CLOSE_LAST:
        return run->checked == run->read_bytes && run->stream->state != STREAM_CONNECTING;
    default:
        return run->stream->state == STREAM_HALF_CLOSED && run->checked == run->read_bytes;
    }
}

static void application_step(struct run *run)
{
    enum stream_state state = run->stream->state;
    bool may_write = state == STREAM_OPEN || state == STREAM_HALF_CLOSED;
    if (may_write && run->written < run->write_bytes && run->now_ns >= run->next_write_ns) {
        application_write(run);
    }
    if (run->now_ns >= run->next_read_ns && stream_readable(run->stream).bytes > 0) {
        application_read(run);
    }
    if (wants_close(run)) {
        run->asked_close = true;
        stream_close(run->stream);
    }
    if (run->ending == ENDING_ABORT && may_write && run->written >= run->stop_at) {
        stream_abort(run->stream);
    }
}

static uint64_t application_next_ns(const struct run *run)
{
    uint64_t next = UINT64_MAX;
    if (run->stream == NULL) {
        return next;
    }
    enum stream_state state = run->stream->state;
    bool may_write = state == STREAM_OPEN || state == STREAM_HALF_CLOSED;
    if (may_write && run->written < run->write_bytes && stream_writable(run->stream).bytes > 0) {
        next = run->next_write_ns;
    }
    if (stream_readable(run->stream).bytes > 0 && run->next_read_ns < next) {
        next = run->next_read_ns;
    }
    return next;
}

/* ---- Running and judging -------------------------------------------------------------------- */

static void orderly_check(struct run *run)
{
    if (run->stream->state != STREAM_CLOSED) {
        fail(run, "an orderly run ended in failure");
    } else if (run->checked != run->read_bytes) {
        fail(run, "bytes from the peer are missing");
    } else if (run->written != run->write_bytes || run->peer->received != run->write_bytes) {
        fail(run, "bytes to the peer are missing");
    }
}

static void ending_check(struct run *run)
{
    enum stream_failure failure = run->stream->failure;
    bool orderly = run->stream->state == STREAM_CLOSED;
    switch (run->ending) {
    case ENDING_ORDERLY:
        orderly_check(run);
        return;
    case ENDING_REFUSED:
        if (orderly || failure != STREAM_FAILURE_REFUSED) {
            fail(run, "a refused connect was not told as such");
        }
        return;
    case ENDING_RESET:
    case ENDING_FORGOT:
        if (!orderly && failure != STREAM_FAILURE_RESET) {
            fail(run, "a reset was not told as such");
        }
        return;
    case ENDING_SILENT:
        if (!orderly && failure != STREAM_FAILURE_TIMEOUT) {
            fail(run, "a silent peer was not told as a timeout");
        }
        return;
    case ENDING_ABORT:
        if (!orderly && failure != STREAM_FAILURE_RESET) {
            fail(run, "an abort was not told as such");
        }
        return;
    case ENDING_RELEASE:
        return;
    }
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void turn(struct run *run)
{
    port_sim_time(run->port, run->now_ns);
    (void)stack_poll(run->stack, run->now_ns);
    if (run->stream != NULL) {
        application_step(run);
    }
    if (chance(run, 50)) {
        (void)stack_flush(run->stack, run->now_ns);
    }
    peer_poll(run->peer, run->now_ns);
    if (run->peer->complaint != NULL) {
        fail(run, run->peer->complaint);
    }
    if (run->wire->sent_count > FRAME_COUNT_MAX) {
        fail(run, "packet storm");
    }
}

static bool time_advance(struct run *run)
{
    uint64_t next = earliest(stack_deadline_ns(run->stack), wire_next_ns(run->wire));
    next = earliest(next, earliest(peer_next_ns(run->peer), application_next_ns(run)));
    if (next == UINT64_MAX) {
        return false;
    }
    run->now_ns = next > run->now_ns + 1000 ? next : run->now_ns + 1000;
    return true;
}

static bool is_over(const struct run *run)
{
    enum stream_state state = run->stream->state;
    bool drained = stream_readable(run->stream).bytes == 0 || state == STREAM_FAILED;
    return state >= STREAM_CLOSED && drained;
}

static bool walks_off(const struct run *run)
{
    return run->ending == ENDING_RELEASE && run->written >= run->stop_at &&
           run->stream->state != STREAM_CONNECTING;
}

/* After the end the two must fall silent, and the connection's slot must come back. */
static void aftermath(struct run *run)
{
    uint64_t end_ns = run->now_ns + 700 * NANOSECONDS_PER_S;
    stream_release(run->stream);
    run->stream = NULL;
    while (run->failure == NULL && run->now_ns < end_ns && time_advance(run)) {
        turn(run);
    }
    if (run->failure == NULL && run->stack->tcp.connection_count != 0) {
        fail(run, "the connection's slot did not come back");
    }
    bool alive = run->peer->state == PEER_OPEN;
    if (run->failure == NULL && run->ending == ENDING_ORDERLY && alive) {
        fail(run, "the peer never saw the end");
    }
}

static void run_loop(struct run *run)
{
    uint64_t end_ns = run->now_ns + RUN_NS_MAX;
    while (run->failure == NULL && !is_over(run) && !walks_off(run)) {
        turn(run);
        if (run->now_ns > end_ns) {
            fail(run, "not done in two hours of virtual time");
        } else if (!is_over(run) && !time_advance(run)) {
            fail(run, "stand-still: nothing will ever happen");
        }
    }
    if (run->failure == NULL) {
        ending_check(run);
    }
    if (run->failure == NULL) {
        aftermath(run);
    }
    if (!stack_is_balanced(run->stack)) {
        fail(run, "the stack's counters do not balance");
    }
}

static void describe(const struct run *run)
{
    const struct peer_config *peer = &run->peer->config;
    const struct wire_config *wire = &run->wire->config;
    printf("  ending %d closing %d write %llu/%llu read %llu/%llu chunk %u pause %.1f ms\n",
           (int)run->ending, (int)run->closing, (unsigned long long)run->written,
           (unsigned long long)run->write_bytes, (unsigned long long)run->checked,
           (unsigned long long)run->read_bytes, run->chunk_bytes, (double)run->pause_ns / 1e6);
    printf("  wire loss %u dup %u damage %u late %u ppm, delay %.3f + %.3f ms, %llu frames\n",
           wire->loss_ppm, wire->duplicate_ppm, wire->damage_ppm, wire->delay_ppm,
           (double)wire->delay_ns_min / 1e6, (double)wire->delay_ns_max / 1e6,
           (unsigned long long)run->wire->sent_count);
    printf("  peer mss %u scale %d ts %d sack %d delack %d buffer %u first %d early %d too %d "
           "state %d received %llu sent %llu acked %llu fin %d/%d\n",
           peer->mss_bytes, peer->scale, peer->timestamps, peer->sack, peer->delays_acks,
           peer->buffer_bytes, peer->closes_first, peer->fin_early, peer->opens_too,
           (int)run->peer->state, (unsigned long long)run->peer->received,
           (unsigned long long)run->peer->sent, (unsigned long long)run->peer->acked,
           run->peer->fin_sent, run->peer->fin_received);
    size_t count;
    const struct stack_counter_name *names = stack_counter_names(&count);
    const uint64_t *values = (const uint64_t *)stack_counters_get(run->stack);
    for (size_t i = 0; i < count; i++) {
        if (values[i] != 0) {
            printf("    %-26s %llu\n", names[i].name, (unsigned long long)values[i]);
        }
    }
}

struct world {
    struct wire wire;
    struct peer peer;
    struct port *port;
};

static bool seed_run(struct world *world, uint64_t seed, bool verbose)
{
    struct run run = {
        .seed = seed,
        .random = {seed * 7919 + 1},
        .wire = &world->wire,
        .peer = &world->peer,
        .port = world->port,
    };
    uint64_t start_ns = 0;
    if (run_start(&run)) {
        start_ns = run.now_ns;
        run_loop(&run);
    }
    if (run.failure != NULL || verbose) {
        printf("seed %llu: %s after %.3f s\n", (unsigned long long)seed,
               run.failure != NULL ? run.failure : "good", (double)(run.now_ns - start_ns) / 1e9);
        if (run.stack != NULL) {
            describe(&run);
        }
    }
    stack_destroy(run.stack);
    if (port_sim_buffers_out(run.port) != 0) {
        printf("seed %llu: %u frames leaked\n", (unsigned long long)seed,
               port_sim_buffers_out(run.port));
        return false;
    }
    return run.failure == NULL;
}

int main(int argc, char **argv)
{
    uint64_t first = 1, count = 100;
    bool verbose = false, single = false;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "0";
        if (strcmp(argv[i], "--seeds") == 0) {
            count = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--first") == 0) {
            first = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--seed") == 0) {
            first = strtoull(value, NULL, 10);
            single = true;
        } else if (strcmp(argv[i], "--verbose") == 0) {
            verbose = true;
            continue;
        } else {
            fprintf(stderr, "usage: sim_tcp [--seeds N] [--first N] [--seed N] [--verbose]\n");
            return 2;
        }
        i++;
    }
    struct world world;
    struct port_sim_config config = {.mtu_bytes = 1500};
    wire_init(&world.wire);
    peer_init(&world.peer, &world.wire);
    world.port = port_sim_create(&config);
    uint64_t failed = 0;
    count = single ? 1 : count;
    for (uint64_t seed = first; seed < first + count && failed < 5; seed++) {
        seed_watch(seed);
        failed += seed_run(&world, seed, verbose) ? 0 : 1;
    }
    port_sim_destroy(world.port);
    peer_fini(&world.peer);
    wire_fini(&world.wire);
    printf("%llu seeds from %llu, %llu failed\n", (unsigned long long)count,
           (unsigned long long)first, (unsigned long long)failed);
    return failed == 0 ? 0 : 1;
}
