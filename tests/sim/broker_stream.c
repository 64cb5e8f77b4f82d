/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of the scripted cluster: an in-memory pipe whose readable bytes move to new memory at
 * every step, so that a client that keeps a pointer is caught, and which opens, fragments, resets
 * and ends by chance. */
#include "tests/sim/broker.h"

#include <stdlib.h>

#define NS_PER_MS UINT64_C(1000000)

/* Of what a client that is gone has sent this alone is not worked on late: an old InitProducerId
 * behind its own repetition and a whole transaction would fence that, with any client and broker.
 * A broker's queue is in order, so only a stuck handler could do it. */
#define KEY_INIT_PRODUCER_ID 22

struct broker_stream {
    struct stream stream;
    struct broker *broker;
    struct broker_stream *next;
    uint32_t node;
    uint64_t opens_ns; /* 0: never */
    bool is_released;
    uint64_t linger_until_ns; /* set when it is released */
    bool is_stalled;
    bool finishes; /* FIN once the outbox is delivered */
    bool breaks;   /* reset once the outbox is delivered */
    uint8_t *send_buffer;
    size_t send_count;    /* committed and not yet taken */
    struct bytes inbox;   /* taken, not yet worked on */
    struct bytes outbox;  /* answers, not yet delivered */
    struct bytes arrived; /* delivered, not yet consumed */
    uint64_t ready_ns;    /* of the request at the head of the inbox, 0 none */
    uint64_t wait_until_ns;
};

static struct broker_stream *of(struct stream *stream)
{
    return (struct broker_stream *)stream;
}

static struct span body_readable(struct stream *stream)
{
    struct broker_stream *self = of(stream);
    return (struct span){.data = self->arrived.data, .bytes = self->arrived.count};
}

static void drop_front(struct bytes *bytes, size_t count)
{
    ASSERT(count <= bytes->count);
    bytes->count -= count;
    if (bytes->count > 0) {
        memmove(bytes->data, bytes->data + count, bytes->count);
    }
}

static void body_consume(struct stream *stream, size_t count)
{
    drop_front(&of(stream)->arrived, count);
}

static struct span_mut body_writable(struct stream *stream)
{
    struct broker_stream *self = of(stream);
    if (stream->state != STREAM_OPEN && stream->state != STREAM_HALF_CLOSED) {
        return (struct span_mut){0};
    }
    return (struct span_mut){.data = self->send_buffer + self->send_count,
                             .bytes = self->broker->config.send_bytes_max - self->send_count};
}

static void body_commit(struct stream *stream, size_t count)
{
    struct broker_stream *self = of(stream);
    self->send_count += count;
    ASSERT(self->send_count <= self->broker->config.send_bytes_max);
}

static void body_close(struct stream *stream)
{
    stream->state = STREAM_CLOSING;
}

static void body_abort(struct stream *stream)
{
    stream->state = STREAM_FAILED;
    stream->failure = STREAM_FAILURE_RESET;
}

static void body_release(struct stream *stream)
{
    struct broker_stream *self = of(stream);
    ASSERT(!self->is_released);
    self->is_released = true;
    self->linger_until_ns = self->broker->now_ns + self->broker->config.linger_ms * NS_PER_MS;
}

static const struct stream_ops body = {
    .readable = body_readable,
    .consume = body_consume,
    .writable = body_writable,
    .commit = body_commit,
    .close = body_close,
    .abort = body_abort,
    .release = body_release,
};

static void free_stream(struct broker_stream *self)
{
    free(self->send_buffer);
    bytes_free(&self->inbox);
    bytes_free(&self->outbox);
    bytes_free(&self->arrived);
    free(self);
}

struct stream *broker_connect(void *context, uint32_t ip4, uint16_t port, uint64_t now_ns)
{
    struct broker *broker = context;
    ASSERT(ip4 >= BROKER_IP4 && ip4 < BROKER_IP4 + broker->config.nodes);
    ASSERT(port == BROKER_PORT);
    if (broker_chance(broker, broker->config.faults.refuse / 4)) {
        return NULL;
    }
    struct broker_stream *self = calloc(1, sizeof(*self));
    self->stream.ops = &body;
    self->broker = broker;
    self->node = ip4 - BROKER_IP4;
    self->send_buffer = malloc(broker->config.send_bytes_max);
    self->opens_ns = now_ns + broker_random(broker) % (2 * NS_PER_MS) + 1;
    if (broker_chance(broker, broker->config.faults.hang)) {
        self->opens_ns = 0;
    }
    self->next = broker->streams;
    broker->streams = self;
    return &self->stream;
}

static void fail(struct broker_stream *self, enum stream_failure failure)
{
    self->stream.state = STREAM_FAILED;
    self->stream.failure = failure;
    self->outbox.count = 0;
}

static void try_open(struct broker_stream *self)
{
    struct broker *broker = self->broker;
    if (self->opens_ns == 0 || broker->now_ns < self->opens_ns) {
        return;
    }
    if (broker->now_ns < broker->away_until_ns[self->node]) {
        fail(self, STREAM_FAILURE_REFUSED);
        return;
    }
    if (broker_chance(broker, broker->config.faults.refuse)) {
        fail(self, STREAM_FAILURE_REFUSED);
        return;
    }
    self->stream.state = STREAM_OPEN;
}

static size_t fragment(struct broker *broker, size_t most)
{
    size_t limit = broker->config.fragment_bytes_max;
    size_t bytes = broker_random(broker) % limit + 1;
    return bytes < most ? bytes : most;
}

static void take_sent(struct broker_stream *self)
{
    if (self->send_count == 0) {
        return;
    }
    size_t bytes = fragment(self->broker, self->send_count);
    bytes_put(&self->inbox, self->send_buffer, bytes);
    self->send_count -= bytes;
    memmove(self->send_buffer, self->send_buffer + bytes, self->send_count);
    self->stream.sent_bytes += bytes;
}

static void deliver(struct broker_stream *self)
{
    size_t room = self->broker->config.receive_bytes_max - self->arrived.count;
    size_t most = self->outbox.count < room ? self->outbox.count : room;
    if (most == 0) {
        return;
    }
    size_t bytes = fragment(self->broker, most);
    bytes_put(&self->arrived, self->outbox.data, bytes);
    drop_front(&self->outbox, bytes);
    self->stream.arrival_ns = self->broker->now_ns;
}

/* Whoever kept a pointer into the old place reads freed memory now. */
static void move_arrived(struct broker_stream *self)
{
    struct bytes fresh = {0};
    bytes_put(&fresh, self->arrived.data, self->arrived.count);
    if (self->arrived.data != NULL) {
        memset(self->arrived.data, 0xDD, self->arrived.capacity);
    }
    bytes_free(&self->arrived);
    self->arrived = fresh;
}

static void mangle(struct broker_stream *self, struct bytes *answer)
{
    struct broker *broker = self->broker;
    switch (broker_random(broker) % 5) {
    case 0: /* another correlation id */
        answer->data[3] ^= 0x40;
        break;
    case 1: /* cut off */
        answer->count = 4 + broker_random(broker) % (answer->count - 3);
        break;
    case 2: /* too long */
        bytes_i32(answer, (int32_t)broker_random(broker));
        break;
    case 3: /* noise */
        for (size_t i = 4; i < answer->count; i++) {
            answer->data[i] = (uint8_t)broker_random(broker);
        }
        break;
    default:
        answer->data[0] |= 0x80;
    }
    self->breaks = true;
}

static void send_answer(struct broker_stream *self, struct bytes *answer)
{
    struct broker *broker = self->broker;
    int32_t size = (int32_t)answer->count;
    if (broker_chance(broker, broker->config.faults.garbage)) {
        mangle(self, answer);
        size = (int32_t)answer->count;
        if (broker_chance(broker, BROKER_ODDS_ONE / 4)) {
            size = (int32_t)broker_random(broker);
        }
    }
    bytes_i32(&self->outbox, size);
    bytes_put(&self->outbox, answer->data, answer->count);
}

/* Draws when the request at the head will be answered. */
static void schedule(struct broker_stream *self, struct span request)
{
    struct broker *broker = self->broker;
    uint64_t delay_ns = broker_random(broker) % (NS_PER_MS / 2) + 1;
    if (broker_chance(broker, broker->config.faults.slow)) {
        delay_ns += broker_random(broker) % (400 * NS_PER_MS);
    }
    self->is_stalled = broker_chance(broker, broker->config.faults.stall);
    self->ready_ns = broker->now_ns + delay_ns;
    self->wait_until_ns = self->ready_ns + broker_fetch_wait_ms(request) * NS_PER_MS;
}

static void work(struct broker_stream *self)
{
    struct broker *broker = self->broker;
    if (self->inbox.count < 4 || self->finishes || self->breaks) {
        return;
    }
    size_t size = load_be32(self->inbox.data);
    if (self->inbox.count < 4 + size) {
        return;
    }
    struct span request = {.data = self->inbox.data + 4, .bytes = size};
    if (self->is_released && load_be16(request.data) == KEY_INIT_PRODUCER_ID) {
        drop_front(&self->inbox, 4 + size);
        return;
    }
    if (self->ready_ns == 0) {
        schedule(self, request);
    }
    if (broker->now_ns < self->ready_ns || self->is_stalled) {
        return;
    }
    struct bytes answer = {0};
    bool may_wait = broker->now_ns < self->wait_until_ns;
    int status = broker_answer(broker, self->node, request, may_wait, &answer);
    if (status == 0) {
        send_answer(self, &answer);
    } else if (status < 0) {
        self->breaks = true;
    }
    bytes_free(&answer);
    if (status <= 0) {
        drop_front(&self->inbox, 4 + size);
        self->ready_ns = 0;
        broker->request_count++;
    }
}

static void misbehave(struct broker_stream *self)
{
    struct broker *broker = self->broker;
    const struct broker_faults *faults = &broker->config.faults;
    if (broker_chance(broker, faults->reset)) {
        fail(self, STREAM_FAILURE_RESET);
    } else if (broker_chance(broker, faults->finish)) {
        self->finishes = true;
    }
    if (self->outbox.count == 0 && self->breaks) {
        fail(self, STREAM_FAILURE_RESET);
    } else if (self->outbox.count == 0 && self->finishes) {
        self->stream.state = STREAM_HALF_CLOSED;
    }
}

static void step_stream(struct broker_stream *self)
{
    if (self->stream.state == STREAM_CONNECTING) {
        try_open(self);
        return;
    }
    if (self->stream.state != STREAM_OPEN) {
        return;
    }
    take_sent(self);
    work(self);
    deliver(self);
    move_arrived(self);
    misbehave(self);
}

/* Connections break with what was not worked on, and the node knows its producers by their last
 * batches only when it is back. */
static void restart(struct broker *broker, uint32_t node)
{
    broker->restart_count++;
    broker->away_until_ns[node] = broker->now_ns + broker_random(broker) % (300 * NS_PER_MS);
    for (struct broker_stream *self = broker->streams; self != NULL; self = self->next) {
        if (self->node == node) {
            fail(self, STREAM_FAILURE_RESET);
            self->inbox.count = 0;
            self->send_count = 0;
        }
    }
    for (uint32_t i = 0; i < broker->topic_count; i++) {
        for (uint32_t p = 0; p < broker->topics[i].partition_count; p++) {
            if (broker->topics[i].partitions[p].leader == node) {
                broker_log_shorten(&broker->topics[i].partitions[p]);
            }
        }
    }
}

void broker_step(struct broker *broker, uint64_t now_ns)
{
    ASSERT(now_ns >= broker->now_ns);
    broker->now_ns = now_ns;
    struct broker_stream **link = &broker->streams;
    while (*link != NULL) {
        struct broker_stream *self = *link;
        if (self->is_released && now_ns < self->linger_until_ns) {
            take_sent(self);
            work(self);
            link = &self->next;
            continue;
        }
        if (self->is_released) {
            *link = self->next;
            free_stream(self);
            continue;
        }
        step_stream(self);
        link = &self->next;
    }
    broker_transactions_step(broker);
    if (broker_chance(broker, broker->config.faults.restart)) {
        restart(broker, (uint32_t)(broker_random(broker) % broker->config.nodes));
    }
    if (broker->topic_count > 0 && broker_chance(broker, broker->config.faults.move)) {
        struct broker_topic *topic = &broker->topics[broker_random(broker) % broker->topic_count];
        struct broker_partition *partition =
            &topic->partitions[broker_random(broker) % topic->partition_count];
        partition->leader = (uint32_t)(broker_random(broker) % broker->config.nodes);
        partition->epoch++;
    }
}

void broker_calm(struct broker *broker)
{
    broker->config.faults = (struct broker_faults){0};
    /* Byte by byte, a large answer takes longer than any timeout. */
    broker->config.fragment_bytes_max |= 8192;
    for (struct broker_stream *self = broker->streams; self != NULL; self = self->next) {
        if (self->stream.state == STREAM_CONNECTING && self->opens_ns == 0) {
            self->opens_ns = broker->now_ns;
        }
    }
}

void broker_destroy(struct broker *broker)
{
    while (broker->streams != NULL) {
        struct broker_stream *next = broker->streams->next;
        free_stream(broker->streams);
        broker->streams = next;
    }
    for (uint32_t i = 0; i < broker->topic_count; i++) {
        for (uint32_t p = 0; p < broker->topics[i].partition_count; p++) {
            struct broker_partition *partition = &broker->topics[i].partitions[p];
            for (uint32_t k = 0; k < partition->batch_count; k++) {
                free(partition->batches[k].data);
            }
            free(partition->batches);
            free(partition->aborted);
        }
    }
    free(broker);
}
