/* SPDX-License-Identifier: Apache-2.0 */
/* Puts hostile records into a topic, and compares what a job made of them. Used by
 * test_bad_records.
 *
 *     bad_records BOOTSTRAP put TOPIC           every record of the list below, then a good one
 *     bad_records BOOTSTRAP file PATH           the same as a recording, for penstock replay
 *     bad_records BOOTSTRAP compare TOPIC DEAD  each dead letter has the bytes of the record that
 *                                               its headers name, and a reason
 *
 * Prints how many records it put or compared. Exit code 0, or 1 with the reason on stderr. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <librdkafka/rdkafka.h>

#include "base.h"

#define WAIT_MS     20000
#define MIB         ((size_t)1 << 20)
#define RECORDS_MAX 256

/* A record made of a head, a middle repeated, and a tail. */
struct recipe {
    const char *head;
    const char *middle;
    uint32_t times;
    const char *tail;
    uint32_t key_bytes;
    uint32_t headers;
};

static const struct recipe recipes[] = {
    {"", "", 0, "", 0, 0},
    {" ", "", 0, "", 0, 0},
    {"null", "", 0, "", 0, 0},
    {"[]", "", 0, "", 0, 0},
    {"[1,2]", "", 0, "", 0, 0},
    {"{", "", 0, "", 0, 0},
    {"{\"id\":1", "", 0, "", 0, 0},
    {"\xff\xfe", "", 0, "", 0, 0},
    {"{\"name\":\"\xff\xc0\x80\"}", "", 0, "", 0, 0},
    {"{\"\xff\":1}", "", 0, "", 0, 0},
    {"{\"name\":\"\xed\xa0\x80\"}", "", 0, "", 0, 0},
    {"{\"id\":NaN}", "", 0, "", 0, 0},
    {"{\"id\":tru}", "", 0, "", 0, 0},
    {"{\"id\":\"x\"}", "", 0, "", 0, 300},
    {"{\"id\":[]}", "", 0, "", 0, 0},
    {"{\"name\":\"\\u12\"}", "", 0, "", 0, 0},
    {"{\"id\":", "9", 10000, "}", 0, 0},
    {"{\"id\":0.", "1", 10000, "}", 0, 0},
    {"", "[", 100000, "", 0, 0},
    {"", "{\"id\":", 100000, "1", 0, 0},
    {"{\"zz\":", "[", 100000, "}", 0, 0},
    {"{\"id\":1,\"zz\":\"", "x", 10 * MIB, "\"}", 0, 0},
    {"", "y", 10 * MIB, "", 0, 0},
    {"{\"id\":2}", "", 0, "", MIB, 0},
    {"{\"id\":3}", "", 0, "", 5, 500},
    {"{\"name\":\"", "\\u0041", MIB, "\"}", 0, 0},
    {"{\"id\":4,\"name\":\"last\"}", "", 0, "", 0, 0},
};

static int fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "bad_records: %s: %s\n", what, why);
    return 1;
}

static char *cook(const struct recipe *recipe, size_t *bytes)
{
    const size_t head = strlen(recipe->head);
    const size_t middle = strlen(recipe->middle);
    const size_t tail = strlen(recipe->tail);
    *bytes = head + middle * recipe->times + tail;
    char *out = malloc(*bytes + 1);
    if (out == NULL) {
        return NULL;
    }
    memcpy(out, recipe->head, head);
    for (uint32_t i = 0; i < recipe->times; i++) {
        memcpy(out + head + i * middle, recipe->middle, middle);
    }
    memcpy(out + head + middle * recipe->times, recipe->tail, tail);
    return out;
}

static rd_kafka_t *open_client(rd_kafka_type_t type, const char *bootstrap)
{
    char text[512] = "";
    static const char *const settings[][2] = {
        {"message.max.bytes", "33554432"},
        {"fetch.message.max.bytes", "33554432"},
        {"fetch.max.bytes", "67108864"},
        {"receive.message.max.bytes", "134217728"},
        {"auto.offset.reset", "earliest"},
        {"enable.partition.eof", "true"},
        {"group.id", "bad-records"},
        {"compression.codec", "zstd"},
        {"log_level", "0"},
    };
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    (void)rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, text, sizeof(text));
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        (void)rd_kafka_conf_set(conf, settings[i][0], settings[i][1], text, sizeof(text));
    }
    rd_kafka_t *client = rd_kafka_new(type, conf, text, sizeof(text));
    if (client == NULL) {
        (void)fail("client", text);
    }
    return client;
}

static rd_kafka_resp_err_t put_one(rd_kafka_t *client, const char *topic,
                                   const struct recipe *recipe)
{
    size_t bytes = 0;
    char *value = recipe == NULL ? NULL : cook(recipe, &bytes);
    const uint32_t key_bytes = recipe == NULL ? 0 : recipe->key_bytes;
    char *key = calloc(1, (size_t)key_bytes + 1);
    rd_kafka_headers_t *headers = rd_kafka_headers_new(8);
    for (uint32_t i = 0; recipe != NULL && i < recipe->headers; i++) {
        (void)rd_kafka_header_add(headers, "name", -1, "some value", -1);
    }
    memset(key, 'k', key_bytes);
    const rd_kafka_resp_err_t code = rd_kafka_producev(
        client, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE(value, bytes),
        RD_KAFKA_V_KEY(key_bytes == 0 ? NULL : key, key_bytes), RD_KAFKA_V_HEADERS(headers),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
    free(key);
    free(value);
    return code;
}

static int put(const char *bootstrap, const char *topic)
{
    rd_kafka_t *client = open_client(RD_KAFKA_PRODUCER, bootstrap);
    rd_kafka_resp_err_t code =
        client == NULL ? RD_KAFKA_RESP_ERR__FAIL : put_one(client, topic, NULL);
    for (size_t i = 0; i < COUNT_OF(recipes) && code == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
        code = put_one(client, topic, &recipes[i]);
    }
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        code = rd_kafka_flush(client, WAIT_MS);
    }
    if (client != NULL) {
        rd_kafka_destroy(client);
    }
    (void)printf("%zu\n", COUNT_OF(recipes) + 1);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : fail(topic, rd_kafka_err2str(code));
}

static void print_base64(FILE *into, const char *text, size_t bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes; i += 3) {
        const size_t left = bytes - i;
        const uint32_t word = (uint32_t)(uint8_t)text[i] << 16 |
                              (left > 1 ? (uint32_t)(uint8_t)text[i + 1] << 8 : 0) |
                              (left > 2 ? (uint32_t)(uint8_t)text[i + 2] : 0);
        (void)fprintf(into, "%c%c%c%c", digits[word >> 18], digits[word >> 12 & 63],
                      left > 1 ? digits[word >> 6 & 63] : '=', left > 2 ? digits[word & 63] : '=');
    }
}

static int write_file(const char *path)
{
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        return fail(path, "cannot be written");
    }
    (void)fputs("{\"v\":null}\n", file);
    for (size_t i = 0; i < COUNT_OF(recipes); i++) {
        size_t bytes = 0;
        char *value = cook(&recipes[i], &bytes);
        (void)fputs("{\"b64\":\"", file);
        print_base64(file, value, bytes);
        (void)fputs("\"}\n", file);
        free(value);
    }
    (void)printf("%zu\n", COUNT_OF(recipes) + 1);
    return fclose(file) == 0 ? 0 : fail(path, "cannot be written");
}

/* Reads partition 0 to its end.
 * returns  how many messages, each to be destroyed */
static uint32_t read_all(rd_kafka_t *client, const char *topic, rd_kafka_message_t **out)
{
    uint32_t count = 0;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
    (void)rd_kafka_assign(client, list);
    rd_kafka_topic_partition_list_destroy(list);
    for (;;) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(client, WAIT_MS);
        if (message == NULL || message->err != RD_KAFKA_RESP_ERR_NO_ERROR || count == RECORDS_MAX) {
            if (message == NULL || message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
                (void)fail(topic, message == NULL ? "no answer" : rd_kafka_err2str(message->err));
            }
            if (message != NULL) {
                rd_kafka_message_destroy(message);
            }
            return count;
        }
        out[count++] = message;
    }
}

static const char *header(const rd_kafka_message_t *message, const char *name)
{
    rd_kafka_headers_t *headers = NULL;
    const void *value = NULL;
    size_t bytes = 0;
    if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
        rd_kafka_header_get_last(headers, name, &value, &bytes) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return "";
    }
    return value;
}

static bool is_same(const rd_kafka_message_t *a, const rd_kafka_message_t *b)
{
    return a->len == b->len && a->key_len == b->key_len &&
           memcmp(a->payload, b->payload, a->len) == 0 &&
           (a->key_len == 0 || memcmp(a->key, b->key, a->key_len) == 0);
}

static int compare(const char *bootstrap, const char *topic, const char *dead)
{
    rd_kafka_message_t *sent[RECORDS_MAX];
    rd_kafka_message_t *letters[RECORDS_MAX];
    rd_kafka_t *client = open_client(RD_KAFKA_CONSUMER, bootstrap);
    if (client == NULL) {
        return 1;
    }
    (void)rd_kafka_poll_set_consumer(client);
    const uint32_t sent_count = read_all(client, topic, sent);
    const uint32_t letter_count = read_all(client, dead, letters);
    int status = sent_count == 0 ? fail(topic, "nothing in it") : 0;
    for (uint32_t i = 0; i < letter_count; i++) {
        const rd_kafka_message_t *letter = letters[i];
        const uint64_t offset = strtoull(header(letter, "penstock.offset"), NULL, 10);
        if (strncmp(header(letter, "penstock.topic"), topic, strlen(topic)) != 0 ||
            strcmp(header(letter, "penstock.partition"), "0") != 0 ||
            header(letter, "penstock.reason")[0] == '\0') {
            status = fail(dead, "a letter without its place or reason");
        } else if (offset >= sent_count || !is_same(letter, sent[offset])) {
            status = fail(header(letter, "penstock.offset"), "not the bytes that were sent");
        }
    }
    (void)printf("%u\n", letter_count);
    for (uint32_t i = 0; i < sent_count + letter_count; i++) {
        rd_kafka_message_destroy(i < sent_count ? sent[i] : letters[i - sent_count]);
    }
    (void)rd_kafka_consumer_close(client);
    rd_kafka_destroy(client);
    return status;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[2], "put") == 0) {
        return put(argv[1], argv[3]);
    }
    if (argc == 4 && strcmp(argv[2], "file") == 0) {
        return write_file(argv[3]);
    }
    if (argc == 5 && strcmp(argv[2], "compare") == 0) {
        return compare(argv[1], argv[3], argv[4]);
    }
    return fail("usage", "BOOTSTRAP put TOPIC | file PATH | compare TOPIC DEAD");
}
