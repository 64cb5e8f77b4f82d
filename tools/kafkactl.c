/* SPDX-License-Identifier: Apache-2.0 */
/* What the quick start and the tests need of a Kafka cluster besides Penstock itself, over kernel
 * sockets and librdkafka:
 *
 *     kafkactl BOOTSTRAP wait SECONDS            until the cluster answers
 *     kafkactl BOOTSTRAP create TOPIC[:PARTITIONS]…
 *     kafkactl BOOTSTRAP ends TOPIC              the number of records: sum of end offsets
 *     kafkactl BOOTSTRAP fill TOPIC PARTITIONS   lines of stdin; line n goes to partition n % P
 *     kafkactl BOOTSTRAP fill TOPIC key MEMBER   lines of stdin, keyed by a text member of the JSON
 *     kafkactl BOOTSTRAP dump TOPIC              values, a line each, partition after partition
 *
 * Exit code 0, or 1 with the reason on stderr. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <librdkafka/rdkafka.h>

#include "base.h"

#define CALL_TIMEOUT_MS 10000
#define PARTITIONS_MAX  1024
#define FILL_TIME_MS    INT64_C(1700000000000) /* record time of line 0, one ms a line */

static int fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "kafkactl: %s: %s\n", what, why);
    return 1;
}

static rd_kafka_t *open_client(rd_kafka_type_t type, const char *bootstrap)
{
    char text[512] = "";
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    static const char *const settings[][2] = {
        {"log_level", "0"},
        {"enable.auto.commit", "false"},
        {"group.id", "kafkactl"},
        {"enable.partition.eof", "true"},
        {"isolation.level", "read_committed"},
        {"auto.offset.reset", "earliest"},
    };
    static const char *const producer[][2] = {
        {"enable.idempotence", "true"},
        {"linger.ms", "5"},
        {"queue.buffering.max.messages", "2000000"},
        {"queue.buffering.max.kbytes", "2000000"},
    };
    rd_kafka_conf_res_t status =
        rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, text, sizeof(text));
    for (size_t i = 0; i < COUNT_OF(settings) && status == RD_KAFKA_CONF_OK; i++) {
        if (type == RD_KAFKA_CONSUMER || i == 0) {
            status = rd_kafka_conf_set(conf, settings[i][0], settings[i][1], text, sizeof(text));
        }
    }
    for (size_t i = 0; i < COUNT_OF(producer) && type == RD_KAFKA_PRODUCER; i++) {
        (void)rd_kafka_conf_set(conf, producer[i][0], producer[i][1], text, sizeof(text));
    }
    rd_kafka_t *client = NULL;
    if (status == RD_KAFKA_CONF_OK) {
        client = rd_kafka_new(type, conf, text, sizeof(text));
    }
    if (client == NULL) {
        (void)fail(bootstrap, text);
    }
    return client;
}

static int wait_for(const char *bootstrap, int seconds)
{
    rd_kafka_t *client = open_client(RD_KAFKA_PRODUCER, bootstrap);
    const time_t deadline = time(NULL) + seconds;
    int status = 1;
    while (client != NULL && status != 0 && time(NULL) <= deadline) {
        const struct rd_kafka_metadata *metadata = NULL;
        if (rd_kafka_metadata(client, 0, NULL, &metadata, 500) == RD_KAFKA_RESP_ERR_NO_ERROR) {
            status = metadata->broker_cnt > 0 ? 0 : 1;
            rd_kafka_metadata_destroy(metadata);
        }
    }
    if (client != NULL) {
        rd_kafka_destroy(client);
    }
    return status == 0 ? 0 : fail(bootstrap, "does not answer");
}

static int check_created(rd_kafka_event_t *event)
{
    if (event == NULL || rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return fail("create", event == NULL ? "no answer" : rd_kafka_event_error_string(event));
    }
    size_t count = 0;
    const rd_kafka_topic_result_t **results =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    for (size_t i = 0; i < count; i++) {
        if (rd_kafka_topic_result_error(results[i]) != RD_KAFKA_RESP_ERR_NO_ERROR) {
            return fail(rd_kafka_topic_result_name(results[i]),
                        rd_kafka_topic_result_error_string(results[i]));
        }
    }
    return 0;
}

static int create(const char *bootstrap, int count, char **topics)
{
    char text[256];
    rd_kafka_NewTopic_t *wanted[64];
    if (count > (int)COUNT_OF(wanted)) {
        return fail("create", "at most 64 topics a call");
    }
    for (int i = 0; i < count; i++) {
        char name[250] = "";
        int partitions = 1;
        (void)sscanf(topics[i], "%249[^:]:%d", name, &partitions);
        wanted[i] = rd_kafka_NewTopic_new(name, partitions, 1, text, sizeof(text));
        if (wanted[i] == NULL) {
            return fail(topics[i], text);
        }
    }
    rd_kafka_t *client = open_client(RD_KAFKA_PRODUCER, bootstrap);
    if (client == NULL) {
        return 1;
    }
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_CreateTopics(client, wanted, (size_t)count, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, CALL_TIMEOUT_MS);
    const int status = check_created(event);
    if (event != NULL) {
        rd_kafka_event_destroy(event);
    }
    rd_kafka_NewTopic_destroy_array(wanted, (size_t)count);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(client);
    return status;
}

static int partition_count(rd_kafka_t *client, const char *topic)
{
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);
    int count = 0;
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

static int ends(const char *bootstrap, const char *topic)
{
    rd_kafka_t *client = open_client(RD_KAFKA_CONSUMER, bootstrap);
    if (client == NULL) {
        return 1;
    }
    int64_t sum = 0;
    const int count = partition_count(client, topic);
    int status = count == 0 ? fail(topic, "unknown") : 0;
    for (int i = 0; i < count && status == 0; i++) {
        int64_t low = 0;
        int64_t high = 0;
        if (rd_kafka_query_watermark_offsets(client, topic, i, &low, &high, CALL_TIMEOUT_MS) !=
            RD_KAFKA_RESP_ERR_NO_ERROR) {
            status = fail(topic, "no offsets");
        }
        sum += high - low;
    }
    if (status == 0) {
        (void)printf("%" PRId64 "\n", sum);
    }
    rd_kafka_destroy(client);
    return status;
}

/* Where the lines go: round the partitions, or by a member of each line as the key. */
struct filling {
    rd_kafka_t *client;
    const char *topic;
    int partitions;     /* 0: by key */
    const char *member; /* "name":" as it stands in front of the key's text */
};

static struct span find_key(const struct filling *filling, struct span line)
{
    if (filling->partitions != 0) {
        return (struct span){0};
    }
    const size_t name_bytes = strlen(filling->member);
    const uint8_t *at = memmem(line.data, line.bytes, filling->member, name_bytes);
    if (at == NULL) {
        return (struct span){0};
    }
    const uint8_t *text = at + name_bytes;
    const uint8_t *end = memchr(text, '"', (size_t)(line.data + line.bytes - text));
    return (struct span){.data = text, .bytes = end == NULL ? 0 : (size_t)(end - text)};
}

static void produce_line(const struct filling *filling, int64_t number, struct span line)
{
    const struct span key = find_key(filling, line);
    const int32_t partition =
        filling->partitions == 0 ? RD_KAFKA_PARTITION_UA : (int32_t)(number % filling->partitions);
    for (;;) {
        const rd_kafka_resp_err_t code = rd_kafka_producev(
            filling->client, RD_KAFKA_V_TOPIC(filling->topic), RD_KAFKA_V_PARTITION(partition),
            RD_KAFKA_V_KEY((void *)(uintptr_t)key.data, key.bytes),
            RD_KAFKA_V_VALUE((void *)(uintptr_t)line.data, line.bytes),
            RD_KAFKA_V_TIMESTAMP(FILL_TIME_MS + number), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
            RD_KAFKA_V_END);
        if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            return;
        }
        (void)rd_kafka_poll(filling->client, 50);
    }
}

static int fill(const char *bootstrap, struct filling *filling)
{
    char *line = NULL;
    size_t room = 0;
    int64_t number = 0;
    filling->client = open_client(RD_KAFKA_PRODUCER, bootstrap);
    if (filling->client == NULL) {
        return 1;
    }
    for (ssize_t bytes = getline(&line, &room, stdin); bytes > 0;
         bytes = getline(&line, &room, stdin)) {
        const size_t length = (size_t)bytes - (line[bytes - 1] == '\n' ? 1 : 0);
        produce_line(filling, number,
                     (struct span){.data = (const uint8_t *)line, .bytes = length});
        number++;
        (void)rd_kafka_poll(filling->client, 0);
    }
    free(line);
    const rd_kafka_resp_err_t code = rd_kafka_flush(filling->client, 60000);
    rd_kafka_destroy(filling->client);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : fail(filling->topic, rd_kafka_err2str(code));
}

static int fill_command(const char *bootstrap, int count, char **words)
{
    char member[256];
    struct filling filling = {.topic = words[0]};
    if (count == 3 && strcmp(words[1], "key") == 0) {
        (void)snprintf(member, sizeof(member), "\"%s\":\"", words[2]);
        filling.member = member;
    } else {
        filling.partitions = count == 2 ? atoi(words[1]) : 0;
        if (filling.partitions < 1) {
            return fail(words[0], "want PARTITIONS, or key MEMBER");
        }
    }
    return fill(bootstrap, &filling);
}

/* Prints the value of one message; true when it was the end of a partition. */
static bool print_message(const rd_kafka_message_t *message)
{
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        return true;
    }
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        if (message->payload == NULL) {
            (void)fputs("null", stdout);
        } else {
            (void)fwrite(message->payload, 1, message->len, stdout);
        }
        (void)fputc('\n', stdout);
    }
    return false;
}

static int dump(const char *bootstrap, const char *topic)
{
    rd_kafka_t *client = open_client(RD_KAFKA_CONSUMER, bootstrap);
    if (client == NULL) {
        return 1;
    }
    (void)rd_kafka_poll_set_consumer(client);
    const int count = partition_count(client, topic);
    int status = count == 0 ? fail(topic, "unknown") : 0;
    for (int i = 0; i < count && status == 0; i++) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
        (void)rd_kafka_assign(client, list);
        rd_kafka_topic_partition_list_destroy(list);
        bool ended = false;
        while (!ended && status == 0) {
            rd_kafka_message_t *message = rd_kafka_consumer_poll(client, CALL_TIMEOUT_MS);
            status = message == NULL ? fail(topic, "no answer") : 0;
            ended = message != NULL && print_message(message);
            if (message != NULL) {
                rd_kafka_message_destroy(message);
            }
        }
    }
    (void)rd_kafka_consumer_close(client);
    rd_kafka_destroy(client);
    return status;
}

int main(int argc, char **argv)
{
    if (argc >= 4) {
        const char *verb = argv[2];
        if (strcmp(verb, "wait") == 0) {
            return wait_for(argv[1], atoi(argv[3]));
        }
        if (strcmp(verb, "create") == 0) {
            return create(argv[1], argc - 3, argv + 3);
        }
        if (strcmp(verb, "ends") == 0) {
            return ends(argv[1], argv[3]);
        }
        if (strcmp(verb, "dump") == 0) {
            return dump(argv[1], argv[3]);
        }
        if (strcmp(verb, "fill") == 0) {
            return fill_command(argv[1], argc - 3, argv + 3);
        }
    }
    (void)fprintf(stderr,
                  "usage: kafkactl BOOTSTRAP wait SECONDS | create TOPIC[:PARTITIONS]... |"
                  " ends TOPIC | fill TOPIC PARTITIONS | fill TOPIC key MEMBER | dump TOPIC\n");
    return 2;
}
