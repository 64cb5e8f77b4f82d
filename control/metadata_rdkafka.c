/* SPDX-License-Identifier: Apache-2.0 */
/* See metadata_rdkafka.h. Commits are those of a consumer that is no member of its group: the
 * engine assigns partitions by itself, and the group is only a place to look at progress. */
#include "control/metadata_rdkafka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <librdkafka/rdkafka.h>

#define REASON_BYTES 256

struct metadata {
    rd_kafka_t *client;
    char bootstrap[256];
};

static bool set(rd_kafka_conf_t *conf, const char *key, const char *value, struct error *error)
{
    char reason[REASON_BYTES];
    if (rd_kafka_conf_set(conf, key, value, reason, sizeof(reason)) == RD_KAFKA_CONF_OK) {
        return true;
    }
    (void)error_set(error, -EINVAL, "%s", reason);
    return false;
}

int metadata_open(const char *bootstrap, const char *client_id, const char *group,
                  struct metadata **out, struct error *error)
{
    ASSERT(out != NULL);
    ASSERT(bootstrap != NULL && client_id != NULL);
    char reason[REASON_BYTES] = "";
    struct metadata *metadata = calloc(1, sizeof(*metadata));
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    *out = NULL;
    if (metadata == NULL) {
        rd_kafka_conf_destroy(conf);
        return error_set(error, -ENOMEM, "out of memory");
    }
    if (!set(conf, "bootstrap.servers", bootstrap, error) ||
        !set(conf, "client.id", client_id, error) || !set(conf, "log_level", "0", error) ||
        !set(conf, "enable.auto.commit", "false", error) ||
        !set(conf, "socket.nagle.disable", "true", error) ||
        !set(conf, "group.id", group == NULL ? client_id : group, error)) {
        rd_kafka_conf_destroy(conf);
        free(metadata);
        return -EINVAL;
    }
    metadata->client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, reason, sizeof(reason));
    if (metadata->client == NULL) {
        rd_kafka_conf_destroy(conf);
        free(metadata);
        return error_set(error, -EINVAL, "%s", reason);
    }
    (void)snprintf(metadata->bootstrap, sizeof(metadata->bootstrap), "%s", bootstrap);
    *out = metadata;
    return 0;
}

void metadata_close(struct metadata *metadata)
{
    if (metadata == NULL) {
        return;
    }
    rd_kafka_destroy(metadata->client);
    free(metadata);
}

/* Reads the one topic of an answer. */
static int read_topic(const struct rd_kafka_metadata *answer, const char *topic,
                      uint32_t *partition_count, struct error *error)
{
    ASSERT(answer != NULL);
    ASSERT(answer->topic_cnt == 1);
    const struct rd_kafka_metadata_topic *found = &answer->topics[0];
    if (found->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
        found->err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC) {
        return error_set(error, -ENOENT, "topic %s does not exist on the cluster; create it first",
                         topic);
    }
    if (found->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return error_set(error, -EIO, "topic %s: %s", topic, rd_kafka_err2str(found->err));
    }
    if (found->partition_cnt <= 0 || found->partition_cnt > METADATA_PARTITIONS_MAX) {
        return error_set(error, -EIO, "topic %s has %d partitions, want 1 to %d", topic,
                         found->partition_cnt, METADATA_PARTITIONS_MAX);
    }
    *partition_count = (uint32_t)found->partition_cnt;
    return 0;
}

int metadata_topic(struct metadata *metadata, const char *topic, uint32_t *partition_count,
                   struct error *error)
{
    ASSERT(metadata != NULL && topic != NULL);
    const struct rd_kafka_metadata *answer = NULL;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(metadata->client, topic, NULL);
    if (handle == NULL) {
        return error_set(error, -EINVAL, "topic %s: %s", topic,
                         rd_kafka_err2str(rd_kafka_last_error()));
    }
    const rd_kafka_resp_err_t code =
        rd_kafka_metadata(metadata->client, 0, handle, &answer, METADATA_TIMEOUT_MS);
    int status = 0;
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        status = error_set(error, -ETIMEDOUT,
                           "no broker answers at %s (%s); is kafka.control_bootstrap right?",
                           metadata->bootstrap, rd_kafka_err2str(code));
    } else {
        status = read_topic(answer, topic, partition_count, error);
        rd_kafka_metadata_destroy(answer);
    }
    rd_kafka_topic_destroy(handle);
    return status;
}

static rd_kafka_topic_partition_list_t *list_of(const struct metadata_offset *offsets,
                                                uint32_t count, bool only_known)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)count);
    for (uint32_t i = 0; i < count; i++) {
        if (only_known && offsets[i].offset < 0) {
            continue;
        }
        rd_kafka_topic_partition_list_add(list, offsets[i].topic, offsets[i].partition)->offset =
            offsets[i].offset;
    }
    return list;
}

int metadata_committed(struct metadata *metadata, struct metadata_offset *offsets, uint32_t count,
                       struct error *error)
{
    ASSERT(metadata != NULL);
    rd_kafka_topic_partition_list_t *list = list_of(offsets, count, false);
    const rd_kafka_resp_err_t code =
        rd_kafka_committed(metadata->client, list, METADATA_TIMEOUT_MS);
    ASSERT(list->cnt == (int)count);
    for (uint32_t i = 0; i < count; i++) {
        offsets[i].offset = list->elems[i].offset < 0 ? -1 : list->elems[i].offset;
    }
    rd_kafka_topic_partition_list_destroy(list);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return error_set(error, -EIO, "committed offsets at %s: %s", metadata->bootstrap,
                         rd_kafka_err2str(code));
    }
    return 0;
}

/* librdkafka's own waiting commit has no limit. */
static rd_kafka_resp_err_t commit_and_wait(struct metadata *metadata,
                                           rd_kafka_topic_partition_list_t *list)
{
    ASSERT(list->cnt > 0);
    rd_kafka_queue_t *answers = rd_kafka_queue_new(metadata->client);
    rd_kafka_resp_err_t code = rd_kafka_commit_queue(metadata->client, list, answers, NULL, NULL);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_event_t *answer = rd_kafka_queue_poll(answers, METADATA_TIMEOUT_MS);
        code = answer == NULL ? RD_KAFKA_RESP_ERR__TIMED_OUT : rd_kafka_event_error(answer);
        rd_kafka_event_destroy(answer);
    }
    rd_kafka_queue_destroy(answers);
    return code;
}

int metadata_commit(struct metadata *metadata, const struct metadata_offset *offsets,
                    uint32_t count, bool wait, struct error *error)
{
    ASSERT(metadata != NULL);
    rd_kafka_topic_partition_list_t *list = list_of(offsets, count, true);
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (list->cnt > 0) {
        code = wait ? commit_and_wait(metadata, list) : rd_kafka_commit(metadata->client, list, 1);
    }
    rd_kafka_topic_partition_list_destroy(list);
    /* Serves the callbacks of commits that were not waited for. */
    rd_kafka_message_t *message = rd_kafka_consumer_poll(metadata->client, 0);
    if (message != NULL) {
        rd_kafka_message_destroy(message);
    }
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return error_set(error, -EIO, "commit at %s: %s", metadata->bootstrap,
                         rd_kafka_err2str(code));
    }
    return 0;
}
