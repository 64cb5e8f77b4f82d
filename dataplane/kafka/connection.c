/* SPDX-License-Identifier: Apache-2.0 */
/* The connection's state machine. ApiVersions goes out as v3 and falls back to v0: on error 35
 * within the connection (without reading on: some peers break the v0 body there), and on a
 * connection that ends before the answer, at the next dial.
 *
 *     request:   size i32 | api i16, version i16, correlation i32, client id, [tags] | body
 *     response:  size i32 | correlation i32, [tags] | body
 *
 * A request is a list of segments: pieces of this connection's scratch for headers and small
 * fields, and between them record batches where they lie. The scratch is reused once all
 * segments are sent.
 *
 *     segments:  [scratch piece][batch of sink A][scratch piece][batch of sink B][scratch piece]
 *                     segment_index, segment_sent: the first byte that the stream has not taken */
#include "dataplane/kafka/connection.h"

#define SIZE_BYTES            4
#define RESPONSE_BYTES_MIN    4 /* the correlation id */
#define COPY_BYTES_MAX        1024
#define NANOSECONDS_PER_MS    UINT64_C(1000000)
#define SCRATCH_BYTES_MIN     2048
#define API_VERSIONS_OLD      0
#define API_VERSIONS_NEW      3
#define ERROR_UNSUPPORTED     35
#define SOFTWARE_NAME         "penstock"
#define SOFTWARE_VERSION      "0.1.0"
#define API_VERSIONS_ROW_MIN  6
#define API_VERSIONS_ROW_FLEX 7

void kafka_connection_init(struct kafka_connection *connection,
                           const struct kafka_connection_setup *setup)
{
    ASSERT(setup->scratch.bytes >= SCRATCH_BYTES_MIN);
    ASSERT(setup->config != NULL && setup->connector != NULL);
    *connection = (struct kafka_connection){
        .config = setup->config,
        .connector = setup->connector,
        .counters = setup->counters,
        .assembly = setup->assembly,
        .scratch = setup->scratch,
    };
}

/* Everything that belongs to one dial. The scratch may be overwritten now: nothing of it can be
 * on its way any more. */
static void clear(struct kafka_connection *connection)
{
    ASSERT(connection != NULL);
    if (connection->stream != NULL) {
        stream_release(connection->stream);
        connection->stream = NULL;
    }
    if (connection->assembly->owner == connection) {
        connection->assembly->owner = NULL;
        connection->assembly->filled = 0;
    }
    connection->queue_count = 0;
    connection->segment_count = 0;
    connection->segment_index = 0;
    connection->segment_sent = 0;
    connection->scratch_used = 0;
    connection->tx_queued = 0;
    connection->tx_sent = 0;
    connection->held_bytes = 0;
    connection->frame_bytes = 0;
    connection->is_assembled = false;
    connection->throttle_until_ns = 0;
    connection->draft_segments = 0;
}

/* Only notes the failure: the callers further up still hold pointers into the response. The next
 * poll returns LOST, and the client cleans up in one place. */
void kafka_connection_fail(struct kafka_connection *connection, const char *reason)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(reason != NULL);
    if (connection->state == KAFKA_CONNECTION_LOST) {
        return;
    }
    /* A peer that closes on ApiVersions v3 may know only v0: the next dial asks in v0, and the
     * one after that in v3 again, in case the cut had another reason. */
    connection->versions_are_old =
        connection->state == KAFKA_CONNECTION_NEGOTIATING && !connection->versions_are_old;
    connection->state = KAFKA_CONNECTION_LOST;
    connection->lost_reason = reason;
}

/* Up to a fifth of jitter, so that the lanes of a box do not dial a returning broker in step. */
static uint64_t back_off(struct kafka_connection *connection, uint64_t jitter)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->tx_sent <= connection->tx_queued);
    ASSERT(connection->scratch_used <= connection->scratch.bytes);
    const struct kafka_config *config = connection->config;
    uint32_t wait_ms = connection->backoff_ms;
    if (wait_ms < config->reconnect_backoff_ms) {
        wait_ms = config->reconnect_backoff_ms;
    }
    connection->backoff_ms = wait_ms * 2 < config->reconnect_backoff_ms_max
                                 ? wait_ms * 2
                                 : config->reconnect_backoff_ms_max;
    uint64_t wait_ns = wait_ms * NANOSECONDS_PER_MS;
    return wait_ns + jitter % (wait_ns / 5 + 1);
}

void kafka_connection_reset(struct kafka_connection *connection, uint64_t jitter, uint64_t now_ns)
{
    ASSERT(connection->state == KAFKA_CONNECTION_LOST);
    clear(connection);
    connection->state = KAFKA_CONNECTION_BACKOFF;
    connection->deadline_ns = now_ns + back_off(connection, jitter);
    ASSERT(connection->stream == NULL);
}

void kafka_connection_close(struct kafka_connection *connection)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    if (connection->stream != NULL) {
        stream_close(connection->stream);
    }
    clear(connection);
    connection->state = KAFKA_CONNECTION_IDLE;
    ASSERT(connection->queue_count == 0);
}

bool kafka_connection_open(struct kafka_connection *connection, uint32_t ip4, uint16_t port,
                           uint64_t now_ns)
{
    ASSERT(connection != NULL);
    if (connection->state != KAFKA_CONNECTION_IDLE) {
        return false;
    }
    ASSERT(connection->stream == NULL);
    connection->stream =
        connection->connector->connect(connection->connector->context, ip4, port, now_ns);
    if (connection->stream == NULL) {
        connection->state = KAFKA_CONNECTION_BACKOFF;
        connection->deadline_ns = now_ns + back_off(connection, now_ns);
        return false;
    }
    connection->state = KAFKA_CONNECTION_CONNECTING;
    connection->deadline_ns = now_ns + connection->config->connect_timeout_ms * NANOSECONDS_PER_MS;
    connection->used_ns = now_ns;
    connection->correlation = 0;
    return true;
}

/* Hands queued bytes to the stream as far as it takes them. Invariant 2: bytes go out strictly
 * in order, as far as the stream has room; what is left goes on at the next poll. */
static bool send_queued(struct kafka_connection *connection)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->scratch_used <= connection->scratch.bytes);
    ASSERT(connection->segment_index <= connection->segment_count);
    uint64_t before = connection->tx_sent;
    while (connection->segment_index < connection->segment_count) {
        struct kafka_segment *segment = &connection->segments[connection->segment_index];
        struct span_mut room = stream_writable(connection->stream);
        if (room.bytes == 0) {
            break;
        }
        size_t left = segment->bytes - connection->segment_sent;
        size_t bytes = left < room.bytes ? left : room.bytes;
        memcpy(room.data, segment->data + connection->segment_sent, bytes);
        stream_commit(connection->stream, bytes);
        connection->segment_sent += bytes;
        connection->tx_sent += bytes;
        if (connection->segment_sent == segment->bytes) {
            connection->segment_index++;
            connection->segment_sent = 0;
        }
    }
    /* Only between requests: a draft has pointers into the scratch. */
    if (connection->segment_index == connection->segment_count && connection->draft_segments == 0) {
        connection->segment_index = 0;
        connection->segment_count = 0;
        connection->scratch_used = 0;
    }
    ASSERT(connection->tx_sent <= connection->tx_queued);
    connection->counters->bytes_sent += connection->tx_sent - before;
    return connection->tx_sent != before;
}

/* Half of the scratch and half of the segments stay free for the request that may be begun now,
 * so that a begun request of legal size always fits. */
bool kafka_connection_can_send(const struct kafka_connection *connection, uint64_t now_ns)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->tx_sent <= connection->tx_queued);
    return connection->state == KAFKA_CONNECTION_READY &&
           connection->queue_count < KAFKA_IN_FLIGHT_MAX &&
           connection->throttle_until_ns <= now_ns &&
           connection->segment_count < KAFKA_SEGMENTS_MAX / 2 &&
           connection->scratch_used <= connection->scratch.bytes / 2;
}

bool kafka_connection_speaks(const struct kafka_connection *connection, enum kafka_api api,
                             int16_t version)
{
    ASSERT((size_t)api < KAFKA_API_KEYS_MAX);
    return version >= connection->version_min[api] && version <= connection->version_max[api];
}

/* The size field is written by submit, when it is known. */
struct kafka_writer kafka_connection_begin(struct kafka_connection *connection, enum kafka_api api,
                                           int16_t version)
{
    ASSERT(connection != NULL);
    ASSERT(connection->queue_count < KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->draft_segments == 0);
    connection->draft = (struct kafka_request){
        .api = api, .version = version, .correlation = connection->correlation};
    connection->draft_bytes = 0;
    connection->draft_start = connection->scratch_used;
    connection->draft_segments = 1;
    struct kafka_writer writer = kafka_writer_of((struct span_mut){
        .data = connection->scratch.data + connection->scratch_used,
        .bytes = connection->scratch.bytes - connection->scratch_used,
    });
    struct kafka_request_header header = {
        .api = api,
        .version = version,
        .correlation = connection->correlation,
        .client_id = kafka_span_of(connection->config->client_id),
    };
    kafka_write_request_header(&writer, &header);
    return writer;
}

/* Where the draft's n-th segment is; the open piece is the last. */
static struct kafka_segment *draft_segment(struct kafka_connection *connection, uint32_t index)
{
    ASSERT(connection->segment_count + index < KAFKA_SEGMENTS_MAX);
    return &connection->segments[connection->segment_count + index];
}

/* Closes the open piece of scratch as a segment. The next piece starts where this one ends: the
 * writer goes on in the same memory, with the batch between them only in the segment list. */
static void close_piece(struct kafka_connection *connection, const struct kafka_writer *writer)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    struct kafka_segment *piece = draft_segment(connection, connection->draft_segments - 1);
    size_t end = (size_t)(writer->data - connection->scratch.data) + writer->at;
    ASSERT(end >= connection->draft_start);
    piece->data = connection->scratch.data + connection->draft_start;
    piece->bytes = end - connection->draft_start;
    connection->draft_bytes += piece->bytes;
    connection->draft_start = end;
}

/* Below COPY_BYTES_MAX a copy is cheaper than two more segments. */
bool kafka_connection_splice(struct kafka_connection *connection, struct kafka_writer *writer,
                             struct span from)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->tx_sent <= connection->tx_queued);
    ASSERT(connection->draft_segments > 0);
    if (from.bytes <= COPY_BYTES_MAX) {
        kafka_write_span(writer, from);
        return !writer->overflow;
    }
    if (writer->overflow ||
        connection->segment_count + connection->draft_segments + 2 > KAFKA_SEGMENTS_MAX) {
        return false;
    }
    close_piece(connection, writer);
    struct kafka_segment *batch = draft_segment(connection, connection->draft_segments);
    batch->data = from.data;
    batch->bytes = from.bytes;
    connection->draft_bytes += from.bytes;
    connection->draft_segments += 2;
    return true;
}

void kafka_connection_drop(struct kafka_connection *connection)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    connection->draft_segments = 0;
}

static struct kafka_request *queue_at(struct kafka_connection *connection, uint32_t index)
{
    ASSERT(index < KAFKA_IN_FLIGHT_MAX);
    return &connection->queue[(connection->queue_head + index) % KAFKA_IN_FLIGHT_MAX];
}

/* The deadline counts from here although bytes may wait for the window: a broker that does not
 * read is as good as one that does not answer. */
bool kafka_connection_submit(struct kafka_connection *connection, struct kafka_writer *writer,
                             uint64_t token, uint64_t timeout_ms, uint64_t now_ns)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->tx_sent <= connection->tx_queued);
    ASSERT(connection->draft_segments > 0);
    if (writer->overflow) {
        kafka_connection_drop(connection);
        return false;
    }
    close_piece(connection, writer);
    /* The first piece starts with the request's size field, in the scratch. */
    size_t first = (size_t)(draft_segment(connection, 0)->data - connection->scratch.data);
    ASSERT(connection->draft_bytes <= INT32_MAX);
    store_be32(connection->scratch.data + first, (uint32_t)(connection->draft_bytes - SIZE_BYTES));
    connection->segment_count += connection->draft_segments;
    connection->scratch_used = connection->draft_start;
    connection->tx_queued += connection->draft_bytes;
    connection->draft_segments = 0;
    struct kafka_request *request = queue_at(connection, connection->queue_count++);
    *request = connection->draft;
    request->token = token;
    request->tx_end = connection->tx_queued;
    request->deadline_ns = now_ns + timeout_ms * NANOSECONDS_PER_MS;
    connection->correlation = (int32_t)(((uint32_t)connection->correlation + 1) & INT32_MAX);
    connection->used_ns = now_ns;
    connection->counters->requests_sent++;
    (void)send_queued(connection);
    return true;
}

static void ask_versions(struct kafka_connection *connection, uint64_t now_ns)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->tx_sent <= connection->tx_queued);
    int16_t version = connection->versions_are_old ? API_VERSIONS_OLD : API_VERSIONS_NEW;
    struct kafka_writer writer =
        kafka_connection_begin(connection, KAFKA_API_API_VERSIONS, version);
    if (version == API_VERSIONS_NEW) {
        kafka_write_compact_string(&writer, kafka_span_of(SOFTWARE_NAME));
        kafka_write_compact_string(&writer, kafka_span_of(SOFTWARE_VERSION));
        kafka_write_uvarint(&writer, 0);
    }
    bool is_sent = kafka_connection_submit(connection, &writer, 0,
                                           connection->config->request_timeout_ms, now_ns);
    ASSERT(is_sent);
}

/* Keys of APIs that this client does not use fall outside of the table. */
static void note_version(struct kafka_connection *connection, int16_t key, int16_t low,
                         int16_t high)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->tx_sent <= connection->tx_queued);
    if (key >= 0 && key < KAFKA_API_KEYS_MAX) {
        connection->version_min[key] = low;
        connection->version_max[key] = high;
    }
}

/* Ranges of an earlier dial are void: the broker may have been replaced. */
static bool read_versions(struct kafka_connection *connection, struct kafka_reader *reader,
                          bool is_flexible)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->tx_sent <= connection->tx_queued);
    ASSERT(connection->scratch_used <= connection->scratch.bytes);
    for (int i = 0; i < KAFKA_API_KEYS_MAX; i++) {
        connection->version_min[i] = 0;
        connection->version_max[i] = -1;
    }
    uint32_t count = is_flexible ? kafka_read_compact_array(reader, API_VERSIONS_ROW_FLEX)
                                 : kafka_read_array(reader, API_VERSIONS_ROW_MIN);
    for (uint32_t i = 0; i < count && !reader->bad; i++) {
        int16_t key = kafka_read_i16(reader);
        int16_t low = kafka_read_i16(reader);
        int16_t high = kafka_read_i16(reader);
        if (is_flexible) {
            kafka_read_tags(reader);
        }
        note_version(connection, key, low, high);
    }
    return !reader->bad && count > 0;
}

/* Error 35 comes in the v0 layout whatever was asked; nothing behind the code is read. */
static enum kafka_connection_step take_versions(struct kafka_connection *connection,
                                                uint64_t now_ns)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->tx_sent <= connection->tx_queued);
    ASSERT(connection->state == KAFKA_CONNECTION_NEGOTIATING);
    struct kafka_reader reader = kafka_reader_of(kafka_connection_body(connection));
    bool is_flexible = connection->held.version >= API_VERSIONS_NEW;
    int16_t code = kafka_read_i16(&reader);
    if (code == ERROR_UNSUPPORTED && is_flexible) {
        kafka_connection_done(connection, now_ns);
        connection->versions_are_old = true;
        ask_versions(connection, now_ns);
        return KAFKA_STEP_WORK;
    }
    if (code != 0 || !read_versions(connection, &reader, is_flexible)) {
        kafka_connection_fail(connection, "the answer to ApiVersions cannot be read");
        return KAFKA_STEP_LOST;
    }
    kafka_connection_done(connection, now_ns);
    connection->state = KAFKA_CONNECTION_READY;
    connection->backoff_ms = 0;
    return KAFKA_STEP_READY;
}

/* Moves arrived bytes of a frame that is larger than the stream's buffer; true once it is whole.
 * The buffer is shared by all connections of the client: large responses are rare and one at a
 * time will do. Others wait with their bytes in the stream, which closes the window on their
 * broker. */
static bool assemble(struct kafka_connection *connection)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->tx_sent <= connection->tx_queued);
    struct kafka_assembly *assembly = connection->assembly;
    if (assembly->owner != connection) {
        if (assembly->owner != NULL) {
            return false;
        }
        assembly->owner = connection;
        assembly->filled = 0;
    }
    struct span in = stream_readable(connection->stream);
    size_t left = connection->frame_bytes - assembly->filled;
    size_t bytes = in.bytes < left ? in.bytes : left;
    if (bytes > 0) {
        memcpy(assembly->data + assembly->filled, in.data, bytes);
        stream_consume(connection->stream, bytes);
        assembly->filled += bytes;
    }
    ASSERT(assembly->filled <= assembly->capacity);
    return assembly->filled == connection->frame_bytes;
}

/* Reads the size of the next frame; false when it is not there yet or not possible. The cap is
 * checked before a byte of the body is waited for: a peer cannot make the client hold more than
 * it was configured for. */
static bool find_size(struct kafka_connection *connection)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->tx_sent <= connection->tx_queued);
    ASSERT(connection->scratch_used <= connection->scratch.bytes);
    if (connection->frame_bytes > 0) {
        return true;
    }
    struct span in = stream_readable(connection->stream);
    if (in.bytes < SIZE_BYTES) {
        return false;
    }
    int32_t size = (int32_t)load_be32(in.data);
    if (size < RESPONSE_BYTES_MIN) {
        kafka_connection_fail(connection, "a response of impossible size");
        return false;
    }
    connection->frame_bytes = (size_t)size + SIZE_BYTES;
    if (connection->frame_bytes > connection->config->response_bytes_max) {
        kafka_connection_fail(connection, "a response above response_bytes_max");
        return false;
    }
    connection->is_assembled = connection->frame_bytes > connection->config->stream_receive_bytes;
    return true;
}

static struct span frame_bytes(struct kafka_connection *connection)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    if (connection->is_assembled) {
        ASSERT(connection->assembly->owner == connection);
        return (struct span){.data = connection->assembly->data,
                             .bytes = connection->assembly->filled};
    }
    return stream_readable(connection->stream);
}

/* Checks invariant 1 on a whole frame and holds it. tx_end: an answer to a request that is not
 * wholly sent cannot be an answer. */
static bool hold(struct kafka_connection *connection, uint64_t now_ns)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->tx_sent <= connection->tx_queued);
    struct span frame = frame_bytes(connection);
    ASSERT(frame.bytes >= connection->frame_bytes);
    struct kafka_request *head = queue_at(connection, 0);
    if (connection->queue_count == 0 || head->tx_end > connection->tx_sent ||
        (int32_t)load_be32(frame.data + SIZE_BYTES) != head->correlation) {
        kafka_connection_fail(connection, "a response that answers no request");
        return false;
    }
    connection->held = *head;
    connection->queue_head = (connection->queue_head + 1) % KAFKA_IN_FLIGHT_MAX;
    connection->queue_count--;
    connection->held_bytes = connection->frame_bytes;
    connection->held_arrival_ns = connection->stream->arrival_ns;
    connection->used_ns = now_ns;
    connection->counters->responses_received++;
    connection->counters->bytes_received += connection->frame_bytes;
    return true;
}

/* Invariant 3: nothing is looked at behind a held response. */
static bool find_frame(struct kafka_connection *connection, uint64_t now_ns)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->tx_sent <= connection->tx_queued);
    if (connection->held_bytes > 0 || !find_size(connection)) {
        return false;
    }
    bool is_whole = connection->is_assembled
                        ? assemble(connection)
                        : stream_readable(connection->stream).bytes >= connection->frame_bytes;
    return is_whole && hold(connection, now_ns);
}

struct span kafka_connection_body(struct kafka_connection *connection)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->held_bytes > 0);
    struct span frame = frame_bytes(connection);
    ASSERT(frame.bytes >= connection->held_bytes);
    size_t skip = SIZE_BYTES + RESPONSE_BYTES_MIN;
    struct kafka_reader reader = {.data = frame.data + skip,
                                  .bytes = connection->held_bytes - skip};
    /* The answer to ApiVersions has the old header for ever, whatever the version of its body. */
    if (connection->held.api != KAFKA_API_API_VERSIONS &&
        kafka_api_is_flexible(connection->held.api, connection->held.version)) {
        kafka_read_tags(&reader);
    }
    return (struct span){.data = reader.data + reader.at, .bytes = kafka_reader_left(&reader)};
}

/* The bytes leave the stream only now: until here every span of the response pointed into its
 * buffer. */
void kafka_connection_done(struct kafka_connection *connection, uint64_t now_ns)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->held_bytes > 0);
    if (connection->is_assembled) {
        ASSERT(connection->assembly->owner == connection);
        connection->assembly->owner = NULL;
        connection->assembly->filled = 0;
    } else {
        stream_consume(connection->stream, connection->held_bytes);
    }
    connection->held_bytes = 0;
    connection->frame_bytes = 0;
    connection->is_assembled = false;
    if (connection->queue_count > 0) {
        /* The next answer may have waited behind the held one; that is not the broker's delay. */
        struct kafka_request *head = queue_at(connection, 0);
        uint64_t deadline_ns = now_ns + connection->config->request_timeout_ms * NANOSECONDS_PER_MS;
        head->deadline_ns = head->deadline_ns > deadline_ns ? head->deadline_ns : deadline_ns;
    }
}

void kafka_connection_throttle(struct kafka_connection *connection, int32_t throttle_ms,
                               uint64_t now_ns)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->tx_sent <= connection->tx_queued);
    if (throttle_ms > 0) {
        connection->throttle_until_ns = now_ns + (uint64_t)throttle_ms * NANOSECONDS_PER_MS;
        connection->counters->throttled++;
    }
}

/* The stream resolves ARP and retransmits on its own; this deadline is the sum of all of it. */
static enum kafka_connection_step poll_connecting(struct kafka_connection *connection,
                                                  uint64_t now_ns)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->tx_sent <= connection->tx_queued);
    ASSERT(connection->scratch_used <= connection->scratch.bytes);
    if (connection->stream->state == STREAM_OPEN) {
        connection->state = KAFKA_CONNECTION_NEGOTIATING;
        connection->counters->connections_opened++;
        ask_versions(connection, now_ns);
        return KAFKA_STEP_WORK;
    }
    if (connection->stream->state != STREAM_CONNECTING) {
        kafka_connection_fail(connection, "no connection");
        return KAFKA_STEP_LOST;
    }
    if (now_ns >= connection->deadline_ns) {
        kafka_connection_fail(connection, "no connection within connect_timeout_ms");
        return KAFKA_STEP_LOST;
    }
    return KAFKA_STEP_NOTHING;
}

static bool stream_is_usable(const struct stream *stream)
{
    return stream->state == STREAM_OPEN || stream->state == STREAM_HALF_CLOSED;
}

/* Answers that have arrived are taken before the state of the stream is judged: a broker may
 * answer and close at once. */
static enum kafka_connection_step poll_open(struct kafka_connection *connection, uint64_t now_ns)
{
    ASSERT(connection != NULL);
    if (!stream_is_usable(connection->stream)) {
        kafka_connection_fail(connection, "the connection was cut");
        return KAFKA_STEP_LOST;
    }
    bool has_sent = send_queued(connection);
    if (find_frame(connection, now_ns)) {
        return connection->state == KAFKA_CONNECTION_NEGOTIATING ? take_versions(connection, now_ns)
                                                                 : KAFKA_STEP_FRAME;
    }
    if (connection->state == KAFKA_CONNECTION_LOST) {
        return KAFKA_STEP_LOST;
    }
    if (connection->held_bytes == 0 && connection->stream->state == STREAM_HALF_CLOSED) {
        kafka_connection_fail(connection, "the broker closed the connection");
        return KAFKA_STEP_LOST;
    }
    if (connection->held_bytes == 0 && connection->queue_count > 0 &&
        now_ns >= queue_at(connection, 0)->deadline_ns) {
        connection->counters->request_timeouts++;
        kafka_connection_fail(connection, "no answer within the request's timeout");
        return KAFKA_STEP_LOST;
    }
    return has_sent ? KAFKA_STEP_WORK : KAFKA_STEP_NOTHING;
}

/* BACKOFF only ends in IDLE: whether anybody still wants this connection, the next open shows. */
enum kafka_connection_step kafka_connection_poll(struct kafka_connection *connection,
                                                 uint64_t now_ns)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->tx_sent <= connection->tx_queued);
    switch (connection->state) {
    case KAFKA_CONNECTION_IDLE:
        return KAFKA_STEP_NOTHING;
    case KAFKA_CONNECTION_BACKOFF:
        if (now_ns < connection->deadline_ns) {
            return KAFKA_STEP_NOTHING;
        }
        connection->state = KAFKA_CONNECTION_IDLE;
        return KAFKA_STEP_WORK;
    case KAFKA_CONNECTION_CONNECTING:
        return poll_connecting(connection, now_ns);
    case KAFKA_CONNECTION_NEGOTIATING:
    case KAFKA_CONNECTION_READY:
        return poll_open(connection, now_ns);
    case KAFKA_CONNECTION_LOST:
        return KAFKA_STEP_LOST;
    }
    ASSERT(false);
}
