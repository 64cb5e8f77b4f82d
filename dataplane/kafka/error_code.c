/* SPDX-License-Identifier: Apache-2.0 */
/* One table of codes; the list is short, so a walk is fast enough for the error path. */
#include "dataplane/kafka/error_code.h"

#define RETRY   1
#define REFRESH 2

struct row {
    int16_t code;
    uint8_t flags;
    const char *name;
};

static const struct row rows[] = {
    {-1, 0, "UNKNOWN_SERVER_ERROR"},
    {0, 0, "NONE"},
    {1, 0, "OFFSET_OUT_OF_RANGE"},
    {2, RETRY, "CORRUPT_MESSAGE"},
    {3, RETRY | REFRESH, "UNKNOWN_TOPIC_OR_PARTITION"},
    {5, RETRY | REFRESH, "LEADER_NOT_AVAILABLE"},
    {6, RETRY | REFRESH, "NOT_LEADER_OR_FOLLOWER"},
    {7, RETRY, "REQUEST_TIMED_OUT"},
    {9, RETRY | REFRESH, "REPLICA_NOT_AVAILABLE"},
    {10, 0, "MESSAGE_TOO_LARGE"},
    {13, RETRY | REFRESH, "NETWORK_EXCEPTION"},
    {14, RETRY, "COORDINATOR_LOAD_IN_PROGRESS"},
    {15, RETRY, "COORDINATOR_NOT_AVAILABLE"},
    {16, RETRY, "NOT_COORDINATOR"},
    {17, 0, "INVALID_TOPIC_EXCEPTION"},
    {18, 0, "RECORD_LIST_TOO_LARGE"},
    {19, RETRY, "NOT_ENOUGH_REPLICAS"},
    {20, RETRY, "NOT_ENOUGH_REPLICAS_AFTER_APPEND"},
    {21, 0, "INVALID_REQUIRED_ACKS"},
    {29, 0, "TOPIC_AUTHORIZATION_FAILED"},
    {31, 0, "CLUSTER_AUTHORIZATION_FAILED"},
    {32, 0, "INVALID_TIMESTAMP"},
    {35, 0, "UNSUPPORTED_VERSION"},
    {41, RETRY, "NOT_CONTROLLER"},
    {43, 0, "UNSUPPORTED_FOR_MESSAGE_FORMAT"},
    {45, 0, "OUT_OF_ORDER_SEQUENCE_NUMBER"},
    {46, 0, "DUPLICATE_SEQUENCE_NUMBER"},
    {47, 0, "INVALID_PRODUCER_EPOCH"},
    {48, 0, "INVALID_TXN_STATE"},
    {49, 0, "INVALID_PRODUCER_ID_MAPPING"},
    {50, 0, "INVALID_TRANSACTION_TIMEOUT"},
    {51, RETRY, "CONCURRENT_TRANSACTIONS"},
    {53, 0, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"},
    {55, 0, "OPERATION_NOT_ATTEMPTED"},
    {56, RETRY | REFRESH, "KAFKA_STORAGE_ERROR"},
    {59, 0, "UNKNOWN_PRODUCER_ID"},
    {70, RETRY, "FETCH_SESSION_ID_NOT_FOUND"},
    {71, RETRY, "INVALID_FETCH_SESSION_EPOCH"},
    {72, RETRY | REFRESH, "LISTENER_NOT_FOUND"},
    {74, RETRY | REFRESH, "FENCED_LEADER_EPOCH"},
    {75, RETRY, "UNKNOWN_LEADER_EPOCH"},
    {76, 0, "UNSUPPORTED_COMPRESSION_TYPE"},
    {78, RETRY, "OFFSET_NOT_AVAILABLE"},
    {80, RETRY | REFRESH, "PREFERRED_LEADER_NOT_AVAILABLE"},
    {83, RETRY | REFRESH, "ELIGIBLE_LEADERS_NOT_AVAILABLE"},
    {84, RETRY | REFRESH, "ELECTION_NOT_NEEDED"},
    {87, 0, "INVALID_RECORD"},
    {88, RETRY, "UNSTABLE_OFFSET_COMMIT"},
    {89, RETRY, "THROTTLING_QUOTA_EXCEEDED"},
    {90, 0, "PRODUCER_FENCED"},
    {100, RETRY | REFRESH, "UNKNOWN_TOPIC_ID"},
    {103, RETRY | REFRESH, "INCONSISTENT_TOPIC_ID"},
    {105, 0, "TRANSACTIONAL_ID_NOT_FOUND"},
    {106, RETRY, "FETCH_SESSION_TOPIC_ID_ERROR"},
};

static const struct row *find(int16_t code)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rows[i].code == code) {
            return &rows[i];
        }
    }
    return NULL;
}

const char *kafka_error_name(int16_t code)
{
    const struct row *row = find(code);
    return row == NULL ? "UNLISTED" : row->name;
}

bool kafka_error_is_retriable(int16_t code)
{
    const struct row *row = find(code);
    return row != NULL && (row->flags & RETRY) != 0;
}

bool kafka_error_wants_metadata(int16_t code)
{
    const struct row *row = find(code);
    return row != NULL && (row->flags & REFRESH) != 0;
}
