/* SPDX-License-Identifier: Apache-2.0 */
/* The yardstick through a real broker: a hand-written librdkafka consume and produce loop that
 * copies every value and parses nothing, tuned for latency.
 *
 *     rdkafka_echo BOOTSTRAP IN OUT      until SIGTERM */
#include <signal.h>
#include <stdio.h>

#include <librdkafka/rdkafka.h>

#include "base.h"

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
    stopped = signal;
}

static rd_kafka_t *open_client(rd_kafka_type_t type, const char *bootstrap)
{
    char text[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    (void)rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, text, sizeof(text));
    (void)rd_kafka_conf_set(conf, "socket.nagle.disable", "true", text, sizeof(text));
    (void)rd_kafka_conf_set(conf, "log_level", "0", text, sizeof(text));
    if (type == RD_KAFKA_PRODUCER) {
        (void)rd_kafka_conf_set(conf, "linger.ms", "0", text, sizeof(text));
        (void)rd_kafka_conf_set(conf, "enable.idempotence", "true", text, sizeof(text));
    } else {
        (void)rd_kafka_conf_set(conf, "group.id", "echo", text, sizeof(text));
        (void)rd_kafka_conf_set(conf, "enable.auto.commit", "false", text, sizeof(text));
        (void)rd_kafka_conf_set(conf, "fetch.wait.max.ms", "5000", text, sizeof(text));
    }
    return rd_kafka_new(type, conf, text, sizeof(text));
}

static int partition_count(rd_kafka_t *client, const char *topic)
{
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);
    int count = 0;
    if (rd_kafka_metadata(client, 0, handle, &metadata, 10000) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        count = metadata->topic_cnt == 1 ? metadata->topics[0].partition_cnt : 0;
        rd_kafka_metadata_destroy(metadata);
    }
    rd_kafka_topic_destroy(handle);
    return count;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        (void)fprintf(stderr, "usage: rdkafka_echo BOOTSTRAP IN OUT\n");
        return 2;
    }
    (void)signal(SIGTERM, stop);
    rd_kafka_t *consumer = open_client(RD_KAFKA_CONSUMER, argv[1]);
    rd_kafka_t *producer = open_client(RD_KAFKA_PRODUCER, argv[1]);
    if (consumer == NULL || producer == NULL) {
        return 1;
    }
    (void)rd_kafka_poll_set_consumer(consumer);
    const int count = partition_count(consumer, argv[2]);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count);
    for (int i = 0; i < count; i++) {
        rd_kafka_topic_partition_list_add(list, argv[2], i)->offset = RD_KAFKA_OFFSET_END;
    }
    (void)rd_kafka_assign(consumer, list);
    rd_kafka_topic_partition_list_destroy(list);
    while (stopped == 0) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, 100);
        if (message == NULL) {
            continue;
        }
        if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            (void)rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(argv[3]),
                                    RD_KAFKA_V_PARTITION(message->partition),
                                    RD_KAFKA_V_VALUE(message->payload, message->len),
                                    RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
        }
        rd_kafka_message_destroy(message);
        (void)rd_kafka_poll(producer, 0);
    }
    (void)rd_kafka_flush(producer, 5000);
    (void)rd_kafka_consumer_close(consumer);
    rd_kafka_destroy(consumer);
    rd_kafka_destroy(producer);
    return 0;
}
