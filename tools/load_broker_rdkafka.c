/* SPDX-License-Identifier: Apache-2.0 */
/* Records to a broker with librdkafka. A full queue is waited for: the due times of later records
 * go on counting, so a slow broker shows as lag and not as a lower rate asked for. */
#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/load_internal.h"

#define FLUSH_MS_MAX 60000
#define WAIT_MS      10

struct load_broker {
    struct load_target base;
    rd_kafka_t *producer;
    rd_kafka_topic_t *topic;
    uint64_t put_count;
    uint64_t lost_count;
    char reason[256]; /* of the first loss */
};

static struct load_broker *from_base(struct load_target *target)
{
    ASSERT(target != NULL);
    return (struct load_broker *)(void *)target;
}

static void delivered(rd_kafka_t *producer, const rd_kafka_message_t *message, void *opaque)
{
    struct load_broker *broker = opaque;
    ASSERT(broker != NULL && message != NULL);
    (void)producer;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR && broker->lost_count++ == 0) {
        (void)snprintf(broker->reason, sizeof(broker->reason), "%s",
                       rd_kafka_err2str(message->err));
    }
}

static int put(struct load_target *target, const struct load_record *record)
{
    ASSERT(record->value.data != NULL);
    struct load_broker *broker = from_base(target);
    for (;;) {
        const int result = rd_kafka_produce(
            broker->topic, record->partition < 0 ? RD_KAFKA_PARTITION_UA : record->partition,
            RD_KAFKA_MSG_F_COPY, (void *)(uintptr_t)record->value.data, record->value.bytes,
            record->key.data, record->key.bytes, NULL);
        if (result == 0) {
            break;
        }
        const rd_kafka_resp_err_t code = rd_kafka_last_error();
        if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            broker->lost_count++;
            (void)snprintf(broker->reason, sizeof(broker->reason), "%s", rd_kafka_err2str(code));
            return -EIO;
        }
        (void)rd_kafka_poll(broker->producer, WAIT_MS);
    }
    if ((++broker->put_count & 255) == 0) {
        (void)rd_kafka_poll(broker->producer, 0);
    }
    return 0;
}

static int finish(struct load_target *target, struct error *error)
{
    struct load_broker *broker = from_base(target);
    ASSERT(broker->producer != NULL);
    int result = 0;
    (void)rd_kafka_flush(broker->producer, FLUSH_MS_MAX);
    const int left = rd_kafka_outq_len(broker->producer);
    if (broker->lost_count != 0 || left != 0) {
        result = error_set(error, -EIO, "%llu records not written, %d unanswered: %s",
                           (unsigned long long)broker->lost_count, left, broker->reason);
    }
    (void)rd_kafka_purge(broker->producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    (void)rd_kafka_poll(broker->producer, 0);
    rd_kafka_topic_destroy(broker->topic);
    rd_kafka_destroy(broker->producer);
    free(broker);
    return result;
}

static rd_kafka_conf_t *make_conf(struct load_broker *broker, const char *brokers, char *text,
                                  size_t bytes)
{
    ASSERT(brokers != NULL && text != NULL);
    static const char *const SETTINGS[][2] = {
        {"queue.buffering.max.messages", "1000000"},
        {"linger.ms", "1"},
        {"enable.idempotence", "true"},
        {"log_level", "3"},
    };
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    bool good =
        rd_kafka_conf_set(conf, "bootstrap.servers", brokers, text, bytes) == RD_KAFKA_CONF_OK;
    for (size_t i = 0; i < COUNT_OF(SETTINGS); i++) {
        good = good && rd_kafka_conf_set(conf, SETTINGS[i][0], SETTINGS[i][1], text, bytes) ==
                           RD_KAFKA_CONF_OK;
    }
    rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    rd_kafka_conf_set_opaque(conf, broker);
    if (!good) {
        rd_kafka_conf_destroy(conf);
        return NULL;
    }
    return conf;
}

int load_broker_open(const char *brokers, const char *topic, struct load_target **out,
                     struct error *error)
{
    static const struct load_target_ops OPS = {put, finish};
    ASSERT(brokers != NULL && topic != NULL && out != NULL);
    char text[256] = "";
    struct load_broker *broker = calloc(1, sizeof(*broker));
    *out = NULL;
    if (broker == NULL) {
        return error_set(error, -ENOMEM, "no memory for a producer");
    }
    broker->base.ops = &OPS;
    rd_kafka_conf_t *conf = make_conf(broker, brokers, text, sizeof(text));
    if (conf != NULL) {
        broker->producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
        if (broker->producer == NULL) {
            rd_kafka_conf_destroy(conf);
        }
    }
    if (broker->producer == NULL) {
        free(broker);
        return error_set(error, -EINVAL, "cannot make a producer for %s: %s", brokers, text);
    }
    broker->topic = rd_kafka_topic_new(broker->producer, topic, NULL);
    *out = &broker->base;
    return 0;
}
