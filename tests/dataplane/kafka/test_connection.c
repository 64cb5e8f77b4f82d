/* SPDX-License-Identifier: Apache-2.0 */
/* One connection over a stream whose bytes the test writes by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "dataplane/kafka/connection.h"
#include "tests/sim/broker.h"

#define MS UINT64_C(1000000)

struct fixture {
    struct stream stream;
    struct bytes in;  /* what the client may read */
    struct bytes out; /* what it has sent */
    size_t room;      /* of one commit */
    uint8_t tx[1 << 16];
    uint32_t releases;
    struct kafka_config config;
    struct kafka_connector connector;
    struct kafka_counters counters;
    struct kafka_assembly assembly;
    struct kafka_connection connection;
    uint8_t scratch[8192];
    uint8_t assembled[20000];
};

static struct span body_readable(struct stream *stream)
{
    struct fixture *self = (struct fixture *)stream;
    return (struct span){self->in.data, self->in.count};
}

static void body_consume(struct stream *stream, size_t bytes)
{
    struct fixture *self = (struct fixture *)stream;
    assert_true(bytes <= self->in.count);
    self->in.count -= bytes;
    memmove(self->in.data, self->in.data + bytes, self->in.count);
}

static struct span_mut body_writable(struct stream *stream)
{
    struct fixture *self = (struct fixture *)stream;
    return (struct span_mut){self->tx, self->room};
}

static void body_commit(struct stream *stream, size_t bytes)
{
    struct fixture *self = (struct fixture *)stream;
    bytes_put(&self->out, self->tx, bytes);
    self->room -= bytes;
}

static void body_end(struct stream *stream)
{
    stream->state = STREAM_FAILED;
}

static void body_release(struct stream *stream)
{
    ((struct fixture *)stream)->releases++;
}

static const struct stream_ops body = {
    .readable = body_readable,
    .consume = body_consume,
    .writable = body_writable,
    .commit = body_commit,
    .close = body_end,
    .abort = body_end,
    .release = body_release,
};

static struct stream *connect_fixture(void *context, uint32_t ip4, uint16_t port, uint64_t now_ns)
{
    struct fixture *self = context;
    assert_int_equal(ip4, 0xC6120001);
    assert_int_equal(port, 9092);
    self->stream.ops = &body;
    self->stream.state = STREAM_CONNECTING;
    return &self->stream;
}

static int setup(void **state)
{
    struct fixture *self = calloc(1, sizeof(*self));
    kafka_config_init(&self->config);
    self->config.stream_receive_bytes = 1000;
    self->config.response_bytes_max = sizeof(self->assembled);
    self->config.request_timeout_ms = 100;
    self->connector = (struct kafka_connector){connect_fixture, self};
    self->assembly =
        (struct kafka_assembly){.data = self->assembled, .capacity = sizeof(self->assembled)};
    struct kafka_connection_setup made = {&self->config,
                                          &self->connector,
                                          &self->counters,
                                          &self->assembly,
                                          {self->scratch, sizeof(self->scratch)}};
    kafka_connection_init(&self->connection, &made);
    self->room = sizeof(self->tx);
    assert_true(kafka_connection_open(&self->connection, 0xC6120001, 9092, 0));
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *self = *state;
    bytes_free(&self->in);
    bytes_free(&self->out);
    free(self);
    return 0;
}

static enum kafka_connection_step poll_at(struct fixture *self, uint64_t ms)
{
    return kafka_connection_poll(&self->connection, ms * MS);
}

static void put_response(struct fixture *self, int32_t correlation, const void *rest, size_t bytes)
{
    bytes_i32(&self->in, (int32_t)(4 + bytes));
    bytes_i32(&self->in, correlation);
    bytes_put(&self->in, rest, bytes);
}

static void put_versions_v0(struct fixture *self, int32_t correlation)
{
    /* No error; Fetch 4 to 11; throttle is absent in v0. */
    static const uint8_t rest[] = {0, 0, 0, 0, 0, 1, 0, 1, 0, 4, 0, 11};
    put_response(self, correlation, rest, sizeof(rest));
}

/* As far as READY, through the fall-back from v3 to v0. */
static void make_ready(struct fixture *self)
{
    self->stream.state = STREAM_OPEN;
    if (self->out.count == 0) {
        assert_int_equal(poll_at(self, 1), KAFKA_STEP_WORK);
    }
    static const uint8_t refused[] = {0, 35, 1};
    put_response(self, 0, refused, sizeof(refused));
    assert_int_equal(poll_at(self, 2), KAFKA_STEP_WORK);
    put_versions_v0(self, 1);
    assert_int_equal(poll_at(self, 3), KAFKA_STEP_READY);
    self->out.count = 0;
}

static bool send_request(struct fixture *self, uint64_t token, uint64_t ms)
{
    struct kafka_writer writer = kafka_connection_begin(&self->connection, KAFKA_API_FETCH, 11);
    kafka_write_i32(&writer, 0x01020304);
    return kafka_connection_submit(&self->connection, &writer, token, 100, ms * MS);
}

static void test_versions_when_v3_is_refused_then_v0_on_the_same_connection(void **state)
{
    struct fixture *self = *state;
    self->stream.state = STREAM_OPEN;
    (void)poll_at(self, 1);
    assert_int_equal(load_be16(self->out.data + 4), 18);
    assert_int_equal(load_be16(self->out.data + 6), 3);
    assert_int_equal(load_be32(self->out.data), self->out.count - 4);
    make_ready(self);
    assert_true(kafka_connection_speaks(&self->connection, KAFKA_API_FETCH, 11));
    assert_false(kafka_connection_speaks(&self->connection, KAFKA_API_FETCH, 12));
    assert_false(kafka_connection_speaks(&self->connection, KAFKA_API_PRODUCE, 7));
}

static void test_versions_when_v3_closes_then_v0_at_the_next_dial(void **state)
{
    struct fixture *self = *state;
    self->stream.state = STREAM_OPEN;
    (void)poll_at(self, 1);
    self->stream.state = STREAM_FAILED;
    assert_int_equal(poll_at(self, 2), KAFKA_STEP_LOST);
    kafka_connection_reset(&self->connection, 0, 2 * MS);
    assert_int_equal(self->releases, 1);
    assert_int_equal(poll_at(self, 10000), KAFKA_STEP_WORK);
    self->out.count = 0;
    assert_true(kafka_connection_open(&self->connection, 0xC6120001, 9092, 10000 * MS));
    self->stream.state = STREAM_OPEN;
    (void)poll_at(self, 10001);
    assert_int_equal(load_be16(self->out.data + 6), 0);
}

static void test_response_when_byte_by_byte_then_one_frame_at_the_last(void **state)
{
    struct fixture *self = *state;
    make_ready(self);
    assert_true(send_request(self, 77, 5));
    struct bytes whole = {0};
    bytes_i32(&whole, 4 + 3);
    bytes_i32(&whole, 2);
    bytes_put(&whole, "abc", 3);
    for (size_t i = 0; i < whole.count; i++) {
        assert_int_equal(poll_at(self, 6), KAFKA_STEP_NOTHING);
        bytes_put(&self->in, whole.data + i, 1);
    }
    assert_int_equal(poll_at(self, 6), KAFKA_STEP_FRAME);
    assert_int_equal(self->connection.held.token, 77);
    struct span got = kafka_connection_body(&self->connection);
    assert_int_equal(got.bytes, 3);
    assert_memory_equal(got.data, "abc", 3);
    assert_int_equal(poll_at(self, 7), KAFKA_STEP_NOTHING); /* held: once only */
    kafka_connection_done(&self->connection, 7 * MS);
    assert_int_equal(self->in.count, 0);
    bytes_free(&whole);
}

static void test_response_when_correlation_or_size_is_wrong_then_lost(void **state)
{
    static const struct {
        int32_t size;
        int32_t correlation;
    } rows[] = {{7, 3}, {7, 1}, {3, 2}, {-1, 2}, {19998, 2}, {INT32_MAX, 2}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        (void)teardown(state);
        (void)setup(state);
        struct fixture *self = *state;
        make_ready(self);
        assert_true(send_request(self, 0, 5));
        bytes_i32(&self->in, rows[i].size);
        bytes_i32(&self->in, rows[i].correlation);
        bytes_put(&self->in, "abc", 3);
        assert_int_equal(poll_at(self, 6), KAFKA_STEP_LOST);
    }
}

static void test_response_when_nothing_was_asked_or_not_all_sent_then_lost(void **state)
{
    struct fixture *self = *state;
    make_ready(self);
    self->room = 5; /* the request's tail is still here when the answer comes */
    assert_true(send_request(self, 0, 5));
    put_response(self, 2, "abc", 3);
    assert_int_equal(poll_at(self, 6), KAFKA_STEP_LOST);
}

static void test_response_when_above_the_stream_then_assembled(void **state)
{
    struct fixture *self = *state;
    make_ready(self);
    assert_true(send_request(self, 0, 5));
    bytes_i32(&self->in, 4 + 5000);
    bytes_i32(&self->in, 2);
    uint8_t part[500];
    for (uint8_t i = 0; i < 10; i++) {
        assert_int_equal(poll_at(self, 6), KAFKA_STEP_NOTHING);
        memset(part, i, sizeof(part));
        bytes_put(&self->in, part, sizeof(part));
    }
    assert_int_equal(poll_at(self, 6), KAFKA_STEP_FRAME);
    struct span got = kafka_connection_body(&self->connection);
    assert_int_equal(got.bytes, 5000);
    assert_int_equal(got.data[4999], 9);
    assert_ptr_equal(self->assembly.owner, &self->connection);
    kafka_connection_done(&self->connection, 6 * MS);
    assert_null(self->assembly.owner);
}

static void test_request_when_no_answer_then_lost_and_back_off_doubles(void **state)
{
    struct fixture *self = *state;
    make_ready(self);
    assert_true(send_request(self, 0, 5));
    assert_int_equal(poll_at(self, 104), KAFKA_STEP_NOTHING);
    assert_int_equal(poll_at(self, 105), KAFKA_STEP_LOST);
    assert_int_equal(self->counters.request_timeouts, 1);
    uint64_t waits[3];
    for (int i = 0; i < 3; i++) {
        kafka_connection_reset(&self->connection, 0, 1000 * MS);
        waits[i] = self->connection.deadline_ns - 1000 * MS;
        self->connection.state = KAFKA_CONNECTION_LOST;
    }
    assert_int_equal(waits[0], 50 * MS);
    assert_int_equal(waits[1], 100 * MS);
    assert_int_equal(waits[2], 200 * MS);
}

static void test_request_when_stream_takes_little_then_sent_in_pieces(void **state)
{
    struct fixture *self = *state;
    uint8_t batch[5000];
    memset(batch, 'b', sizeof(batch));
    make_ready(self);
    self->room = 0;
    struct kafka_writer writer = kafka_connection_begin(&self->connection, KAFKA_API_FETCH, 11);
    kafka_write_i32(&writer, 1);
    assert_true(
        kafka_connection_splice(&self->connection, &writer, (struct span){batch, sizeof(batch)}));
    kafka_write_i32(&writer, 2);
    assert_true(kafka_connection_submit(&self->connection, &writer, 0, 100, 5 * MS));
    for (int i = 0; i < 1000 && self->connection.tx_sent < self->connection.tx_queued; i++) {
        self->room = 17;
        (void)poll_at(self, 6);
    }
    assert_int_equal(load_be32(self->out.data), self->out.count - 4);
    assert_int_equal(load_be32(self->out.data + self->out.count - 4), 2);
    assert_int_equal(load_be32(self->out.data + self->out.count - 5008), 1);
    assert_memory_equal(self->out.data + self->out.count - 5004, batch, sizeof(batch));
}

static void test_throttle_when_told_then_nothing_is_sent_until(void **state)
{
    struct fixture *self = *state;
    make_ready(self);
    assert_true(kafka_connection_can_send(&self->connection, 5 * MS));
    kafka_connection_throttle(&self->connection, 30, 5 * MS);
    assert_false(kafka_connection_can_send(&self->connection, 34 * MS));
    assert_true(kafka_connection_can_send(&self->connection, 35 * MS));
    kafka_connection_throttle(&self->connection, -5, 40 * MS);
    assert_true(kafka_connection_can_send(&self->connection, 40 * MS));
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_versions_when_v3_is_refused_then_v0_on_the_same_connection),
        WITH_FIXTURE(test_versions_when_v3_closes_then_v0_at_the_next_dial),
        WITH_FIXTURE(test_response_when_byte_by_byte_then_one_frame_at_the_last),
        WITH_FIXTURE(test_response_when_correlation_or_size_is_wrong_then_lost),
        WITH_FIXTURE(test_response_when_nothing_was_asked_or_not_all_sent_then_lost),
        WITH_FIXTURE(test_response_when_above_the_stream_then_assembled),
        WITH_FIXTURE(test_request_when_no_answer_then_lost_and_back_off_doubles),
        WITH_FIXTURE(test_request_when_stream_takes_little_then_sent_in_pieces),
        WITH_FIXTURE(test_throttle_when_told_then_nothing_is_sent_until),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
