/* SPDX-License-Identifier: Apache-2.0 */
/* The connection table, addresses, and the policy of metadata refresh: at once when something
 * pointed at old knowledge (with a back-off in between), else every metadata_age_ms_max.
 *
 * Connections stand in one table, broker by broker, a role each, so that a long poll, a slow
 * produce and a question never wait behind each other:
 *
 *     connections[broker * KAFKA_ROLE_COUNT + role]    role: control, fetch, produce */
#include "dataplane/kafka/core.h"

#include "dataplane/kafka/error_code.h"

#define ALIGN_BYTES         64
#define SCRATCH_BYTES_BASE  8192
#define SCRATCH_TOPIC_BYTES (KAFKA_TOPIC_BYTES + 16)
#define SCRATCH_ENTRY_BYTES 40
#define RETRY_DOUBLINGS_MAX 6
#define RETRY_MS_MAX        1000

/* With base NULL it only counts: measuring and laying out are the same code and cannot disagree. */
void *kafka_arena_take(struct kafka_arena *arena, size_t count, size_t bytes_each)
{
    ASSERT(bytes_each > 0);
    ASSERT(count <= SIZE_MAX / 2 / bytes_each);
    size_t bytes = (count * bytes_each + ALIGN_BYTES - 1) & ~(size_t)(ALIGN_BYTES - 1);
    uint8_t *at = arena->base == NULL ? NULL : arena->base + arena->used;
    arena->used += bytes;
    return at;
}

/* Twice the largest request without its batches, since half of it may still be going out. */
static size_t scratch_bytes(const struct kafka_config *config)
{
    ASSERT(config != NULL);
    size_t entries =
        config->sources_max > config->sinks_max ? config->sources_max : config->sinks_max;
    return 2 * (SCRATCH_BYTES_BASE + config->topics_max * SCRATCH_TOPIC_BYTES +
                entries * SCRATCH_ENTRY_BYTES);
}

/* Leaders of all partitions are laid out up front; a topic that grows needs no memory. */
static void layout_topics(struct kafka_core *core, const struct kafka_config *config,
                          struct kafka_arena *arena)
{
    ASSERT(config != NULL);
    struct kafka_topic *topics =
        kafka_arena_take(arena, config->topics_max, sizeof(struct kafka_topic));
    for (uint32_t i = 0; i < config->topics_max; i++) {
        struct kafka_leader *leaders =
            kafka_arena_take(arena, config->topic_partitions_max, sizeof(struct kafka_leader));
        if (core != NULL) {
            topics[i].leaders = leaders;
        }
    }
    if (core != NULL) {
        core->metadata.topics = topics;
        core->metadata.topics_max = config->topics_max;
        core->metadata.topic_partitions_max = config->topic_partitions_max;
    }
}

static void layout_connections(struct kafka_core *core, const struct kafka_config *config,
                               struct kafka_arena *arena)
{
    ASSERT(config != NULL);
    uint32_t count = config->brokers_max * KAFKA_ROLE_COUNT;
    struct kafka_connection *connections =
        kafka_arena_take(arena, count, sizeof(struct kafka_connection));
    for (uint32_t i = 0; i < count; i++) {
        size_t bytes = scratch_bytes(config);
        uint8_t *scratch = kafka_arena_take(arena, bytes, 1);
        if (core == NULL) {
            continue;
        }
        struct kafka_connection_setup setup = {
            .config = &core->config,
            .connector = &core->connector,
            .counters = &core->counters,
            .assembly = &core->assembly,
            .scratch = {.data = scratch, .bytes = bytes},
        };
        kafka_connection_init(&connections[i], &setup);
    }
    if (core != NULL) {
        core->connections = connections;
    }
}

void kafka_core_layout(struct kafka_core *core, const struct kafka_config *config,
                       struct kafka_arena *arena)
{
    ASSERT(config != NULL);
    ASSERT(arena != NULL);
    ASSERT((core == NULL) == (arena->base == NULL));
    struct kafka_broker *brokers =
        kafka_arena_take(arena, config->brokers_max, sizeof(struct kafka_broker));
    uint8_t *assembly = kafka_arena_take(arena, config->response_bytes_max, 1);
    uint8_t *codec = kafka_arena_take(arena, kafka_codec_bytes(), 1);
    if (core != NULL) {
        core->metadata.brokers = brokers;
        core->metadata.brokers_max = config->brokers_max;
        core->assembly =
            (struct kafka_assembly){.data = assembly, .capacity = config->response_bytes_max};
        core->codec = kafka_codec_init(codec);
    }
    layout_topics(core, config, arena);
    layout_connections(core, config, arena);
}

/* Bootstrap addresses are brokers with negative ids. They are asked for metadata only, and their
 * real entries come with the first answer. */
void kafka_core_init(struct kafka_core *core)
{
    ASSERT(core != NULL);
    struct kafka_metadata *metadata = &core->metadata;
    ASSERT(core->config.bootstrap_count > 0);
    ASSERT(core->config.bootstrap_count < metadata->brokers_max);
    for (uint32_t i = 0; i < core->config.bootstrap_count; i++) {
        metadata->brokers[i].node_id = -1 - (int32_t)i;
        metadata->brokers[i].address = core->config.bootstrap[i];
    }
    metadata->broker_count = core->config.bootstrap_count;
    core->metadata_connection = KAFKA_NO_CONNECTION;
    core->metadata_is_wanted = true;
    core->random = core->config.seed | 1;
}

/* xorshift64: jitter needs no more, and a seed makes simulations repeat. */
uint64_t kafka_core_random(struct kafka_core *core)
{
    ASSERT(core->random != 0);
    core->random ^= core->random << 13;
    core->random ^= core->random >> 7;
    core->random ^= core->random << 17;
    return core->random;
}

/* Doubles per failure in a row up to RETRY_MS_MAX, and up to a fifth more. */
uint64_t kafka_core_retry_at(struct kafka_core *core, uint32_t try_count, uint64_t now_ns)
{
    ASSERT(try_count > 0);
    uint32_t doublings = try_count - 1 < RETRY_DOUBLINGS_MAX ? try_count - 1 : RETRY_DOUBLINGS_MAX;
    uint64_t base_ms = core->config.retry_backoff_ms;
    uint64_t wait_ms = base_ms << doublings;
    if (wait_ms > RETRY_MS_MAX && wait_ms > base_ms) {
        wait_ms = base_ms > RETRY_MS_MAX ? base_ms : RETRY_MS_MAX;
    }
    uint64_t wait_ns = wait_ms * KAFKA_NANOSECONDS_PER_MS;
    return now_ns + wait_ns + kafka_core_random(core) % (wait_ns / 5 + 1);
}

/* Not inet_pton: nothing here may depend on the C library's idea of the network, and there is no
 * resolver on this side. */
static bool read_dotted(const char *text, uint32_t *out)
{
    ASSERT(out != NULL);
    uint32_t value = 0;
    for (int part = 0; part < 4; part++) {
        uint32_t number = 0;
        int digits = 0;
        for (; *text >= '0' && *text <= '9' && digits < 4; text++, digits++) {
            number = number * 10 + (uint32_t)(*text - '0');
        }
        if (digits == 0 || digits > 3 || number > 255) {
            return false;
        }
        value = value << 8 | number;
        if (*text != (part < 3 ? '.' : '\0')) {
            return false;
        }
        text++;
    }
    *out = value;
    return true;
}

/* Brokers advertise names; a lane cannot ask DNS. The map of the configuration is the only other
 * source. */
bool kafka_core_resolve(const struct kafka_core *core, const struct kafka_address *address,
                        uint32_t *ip4, uint16_t *port)
{
    ASSERT(core->metadata.topic_count <= core->metadata.topics_max);
    ASSERT(core->config.address_map_count <= KAFKA_ADDRESS_MAP_MAX);
    for (uint32_t i = 0; i < core->config.address_map_count; i++) {
        const struct kafka_address_map *row = &core->config.address_map[i];
        bool port_fits = row->advertised.port == 0 || row->advertised.port == address->port;
        if (port_fits && strcmp(row->advertised.host, address->host) == 0) {
            *ip4 = row->ip4;
            *port = row->advertised.port == 0 ? address->port : row->port;
            return true;
        }
    }
    *port = address->port;
    return read_dotted(address->host, ip4);
}

uint32_t kafka_core_index(const struct kafka_core *core, const struct kafka_connection *connection)
{
    ASSERT(connection >= core->connections);
    uint32_t index = (uint32_t)(connection - core->connections);
    ASSERT(index < core->config.brokers_max * KAFKA_ROLE_COUNT);
    return index;
}

/* Once a broker, since every poll would come here. */
static void complain_unmapped(struct kafka_core *core, struct kafka_broker *broker, uint64_t now_ns)
{
    ASSERT(core->connections != NULL);
    ASSERT(core->metadata.topic_count <= core->metadata.topics_max);
    ASSERT(broker != NULL);
    if (broker->is_complained_about) {
        return;
    }
    broker->is_complained_about = true;
    struct kafka_event event = {
        .code = KAFKA_EVENT_UNMAPPED_ADDRESS, .topic_index = -1, .partition = -1, .at_ns = now_ns};
    kafka_events_push(&core->events, &event,
                      "broker %d advertises %.120s:%u, which is no IPv4 address and not in the "
                      "address map",
                      broker->node_id, broker->address.host, broker->address.port);
}

/* Dials on first use: a client has no connection to a broker that leads none of its partitions. */
struct kafka_connection *kafka_core_ready(struct kafka_core *core, uint32_t broker_index,
                                          enum kafka_role role, uint64_t now_ns)
{
    ASSERT(core->connections != NULL);
    ASSERT(core->metadata.topic_count <= core->metadata.topics_max);
    ASSERT(broker_index < core->metadata.broker_count);
    struct kafka_connection *connection =
        &core->connections[broker_index * KAFKA_ROLE_COUNT + role];
    if (connection->state == KAFKA_CONNECTION_IDLE) {
        struct kafka_broker *broker = &core->metadata.brokers[broker_index];
        uint32_t ip4;
        uint16_t port;
        if (!kafka_core_resolve(core, &broker->address, &ip4, &port)) {
            complain_unmapped(core, broker, now_ns);
            return NULL;
        }
        (void)kafka_connection_open(connection, ip4, port, now_ns);
    }
    return kafka_connection_can_send(connection, now_ns) ? connection : NULL;
}

void kafka_core_want_metadata(struct kafka_core *core)
{
    ASSERT(core->connections != NULL);
    core->metadata_is_wanted = true;
}

/* The newest that both speak; below 2 the answer has no cluster id, above 7 nothing that is needed.
 */
static int16_t metadata_version(const struct kafka_connection *connection)
{
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    ASSERT(connection->tx_sent <= connection->tx_queued);
    for (int16_t version = KAFKA_METADATA_VERSION_MAX; version >= KAFKA_METADATA_VERSION_MIN;
         version--) {
        if (kafka_connection_speaks(connection, KAFKA_API_METADATA, version)) {
            return version;
        }
    }
    return -1;
}

/* The wish is cleared when the question is sent: what is learnt to be stale from then on asks
 * again. */
static bool send_metadata(struct kafka_core *core, struct kafka_connection *connection,
                          uint64_t now_ns)
{
    ASSERT(core->connections != NULL);
    ASSERT(core->metadata.topic_count <= core->metadata.topics_max);
    ASSERT(connection->queue_count <= KAFKA_IN_FLIGHT_MAX);
    int16_t version = metadata_version(connection);
    if (version < 0) {
        kafka_connection_fail(connection, "the broker speaks no Metadata version from 2 to 7");
        return false;
    }
    struct kafka_writer writer = kafka_connection_begin(connection, KAFKA_API_METADATA, version);
    kafka_metadata_write(&core->metadata, version, &writer);
    if (!kafka_connection_submit(connection, &writer, 0, core->config.request_timeout_ms, now_ns)) {
        return false;
    }
    core->metadata_connection = kafka_core_index(core, connection);
    core->metadata_is_wanted = false;
    return true;
}

/* Picks a broker to ask: one that is connected, else the next in turn is dialled. */
static struct kafka_connection *metadata_target(struct kafka_core *core, uint64_t now_ns)
{
    ASSERT(core->connections != NULL);
    ASSERT(core->metadata.topic_count <= core->metadata.topics_max);
    uint32_t count = core->metadata.broker_count;
    bool is_dialling = false;
    for (uint32_t i = 0; i < count; i++) {
        struct kafka_connection *connection = &core->connections[i * KAFKA_ROLE_COUNT];
        if (kafka_connection_can_send(connection, now_ns)) {
            return connection;
        }
        is_dialling |= connection->state == KAFKA_CONNECTION_CONNECTING ||
                       connection->state == KAFKA_CONNECTION_NEGOTIATING;
    }
    if (!is_dialling && count > 0) {
        core->metadata_cursor = (core->metadata_cursor + 1) % count;
        return kafka_core_ready(core, core->metadata_cursor, KAFKA_ROLE_CONTROL, now_ns);
    }
    return NULL;
}

uint32_t kafka_core_poll_metadata(struct kafka_core *core, uint64_t now_ns)
{
    ASSERT(core->connections != NULL);
    ASSERT(core->metadata.topic_count <= core->metadata.topics_max);
    if (now_ns >= core->metadata_stale_ns) {
        core->metadata_is_wanted = true;
    }
    if (!core->metadata_is_wanted || core->metadata_connection != KAFKA_NO_CONNECTION ||
        now_ns < core->metadata_next_ns) {
        return 0;
    }
    struct kafka_connection *connection = metadata_target(core, now_ns);
    return connection != NULL && send_metadata(core, connection, now_ns) ? 1 : 0;
}

/* Ends the connections to brokers that answer at another address now. The connections were to
 * the old address. Their batches and fetches come home as after any loss. */
static void close_moved(struct kafka_core *core)
{
    ASSERT(core->connections != NULL);
    ASSERT(core->metadata.topic_count <= core->metadata.topics_max);
    for (uint32_t i = 0; i < core->metadata.broker_count; i++) {
        if (!core->metadata.brokers[i].has_moved) {
            continue;
        }
        core->metadata.brokers[i].has_moved = false;
        for (uint32_t role = 0; role < KAFKA_ROLE_COUNT; role++) {
            struct kafka_connection *connection = &core->connections[i * KAFKA_ROLE_COUNT + role];
            if (connection->state >= KAFKA_CONNECTION_CONNECTING) {
                kafka_connection_fail(connection, "the broker has another address now");
            }
        }
    }
}

bool kafka_core_take_metadata(struct kafka_core *core, struct kafka_connection *connection,
                              uint64_t now_ns)
{
    ASSERT(core->connections != NULL);
    ASSERT(core->metadata.topic_count <= core->metadata.topics_max);
    ASSERT(connection->held.api == KAFKA_API_METADATA);
    struct kafka_metadata_news news = {.events = &core->events, .now_ns = now_ns};
    int status = kafka_metadata_read(&core->metadata, connection->held.version,
                                     kafka_connection_body(connection), &news);
    core->metadata_connection = KAFKA_NO_CONNECTION;
    core->metadata_next_ns = now_ns + core->config.retry_backoff_ms * KAFKA_NANOSECONDS_PER_MS;
    core->metadata_stale_ns = now_ns + core->config.metadata_age_ms_max * KAFKA_NANOSECONDS_PER_MS;
    core->metadata_is_wanted |= news.is_incomplete || status != 0;
    core->counters.metadata_refreshes++;
    core->counters.leader_moves += news.leader_moves;
    if (status != 0) {
        kafka_connection_fail(connection, "a Metadata response that cannot be read");
        return false;
    }
    kafka_connection_done(connection, now_ns);
    if (news.brokers_moved) {
        close_moved(core);
    }
    return true;
}
