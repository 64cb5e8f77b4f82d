/* SPDX-License-Identifier: Apache-2.0 */
/* Files as partitions. A topic is a list of records met one after the other, either lines of a
 * mapped file or envelopes decoded at the start. A batch is a run of records of one partition that
 * no other topic's record should precede. */
#include "dataplane/source_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataplane/source_envelope_internal.h"

struct partition {
    int64_t next_offset;
    int64_t start_offset; /* records before it are passed over */
    uint64_t left;        /* records to come; of a mapped file: 1 until its end */
    bool paused;
    bool ended;
};

struct topic {
    struct span file; /* mapped */
    struct envelopes envelopes;
    bool is_mapped_lines; /* .jsonl: next line starts at `at` */
    size_t at;
    uint64_t line; /* number of the next record */
    struct partition *partitions;
    uint32_t partition_count;
    /* The record that comes next, so that topics can be merged. */
    bool has_next;
    struct record next;
    uint32_t next_partition;
};

struct source_file {
    struct record_source base;
    struct topic *topics;
    uint32_t topic_count;
    uint32_t batch_records_max;
    struct record *records; /* batch_records_max */
};

static struct source_file *from_base(struct record_source *source)
{
    ASSERT(source != NULL);
    return (struct source_file *)(void *)source;
}

/* Cuts the next line of a mapped file into topic->next. */
static void next_line(struct topic *topic)
{
    ASSERT_SLOW(topic != NULL);
    ASSERT(topic->at <= topic->file.bytes);
    ASSERT(topic->partition_count == 1);
    if (topic->at == topic->file.bytes) {
        return;
    }
    const uint8_t *const start = topic->file.data + topic->at;
    const size_t left = topic->file.bytes - topic->at;
    const uint8_t *const end = memchr(start, '\n', left);
    size_t bytes = end == NULL ? left : (size_t)(end - start);
    topic->at += bytes + (end != NULL);
    if (bytes != 0 && start[bytes - 1] == '\r') {
        bytes--;
    }
    topic->has_next = true;
    topic->next_partition = 0;
    topic->next = (struct record){
        .timestamp_ms = SOURCE_FILE_TIME_MS + (int64_t)topic->line,
        .key_is_null = true,
        .value = {.data = start, .bytes = bytes},
    };
    topic->partitions[0].left = topic->at == topic->file.bytes ? 1 : 2;
}

/* Makes the record behind the current one the next. */
static void advance(struct topic *topic)
{
    ASSERT_SLOW(topic != NULL);
    ASSERT(topic->partitions != NULL);
    topic->has_next = false;
    if (topic->is_mapped_lines) {
        next_line(topic);
    } else if (topic->line < topic->envelopes.count) {
        const struct envelope *envelope = &topic->envelopes.list[topic->line];
        topic->has_next = true;
        topic->next = envelope->record;
        topic->next_partition = envelope->partition;
    }
    topic->line += topic->has_next;
    if (topic->has_next) {
        ASSERT(topic->next_partition < topic->partition_count);
        topic->next.offset = topic->partitions[topic->next_partition].next_offset++;
    }
}

/* Whether the record that comes next lies before the place where its partition starts. */
static bool next_is_before_start(const struct topic *topic)
{
    return topic->has_next &&
           topic->next.offset < topic->partitions[topic->next_partition].start_offset;
}

/* Takes topic->next away: it goes up, or is passed over, as are those behind it that lie before
 * their partition's start. */
static void take_next(struct topic *topic)
{
    ASSERT(topic->has_next);
    do {
        struct partition *partition = &topic->partitions[topic->next_partition];
        ASSERT(partition->left != 0);
        partition->left -= topic->is_mapped_lines && partition->left == 2 ? 0 : 1;
        advance(topic);
    } while (next_is_before_start(topic));
}

static int map_file(const char *path, struct span *out)
{
    ASSERT(path != NULL && out != NULL);
    struct stat status;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return -errno;
    }
    int result = fstat(file, &status) != 0 ? -errno : 0;
    *out = (struct span){.data = NULL, .bytes = 0};
    if (result == 0 && status.st_size != 0) {
        void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (data == MAP_FAILED) {
            result = -errno;
        } else {
            *out = (struct span){.data = data, .bytes = (size_t)status.st_size};
        }
    }
    (void)close(file);
    return result;
}

static int count_partitions(struct topic *topic)
{
    ASSERT_SLOW(topic != NULL);
    topic->partition_count = 1;
    for (uint64_t i = 0; i < topic->envelopes.count; i++) {
        const uint32_t needed = topic->envelopes.list[i].partition + 1;
        topic->partition_count = needed > topic->partition_count ? needed : topic->partition_count;
    }
    ASSERT(topic->partition_count <= SOURCE_FILE_PARTITIONS_MAX);
    topic->partitions = calloc(topic->partition_count, sizeof(*topic->partitions));
    if (topic->partitions == NULL) {
        return -ENOMEM;
    }
    for (uint64_t i = 0; i < topic->envelopes.count; i++) {
        topic->partitions[topic->envelopes.list[i].partition].left++;
    }
    return 0;
}

static int open_topic(struct topic *topic, const struct source_file_config *config, uint32_t index,
                      struct error *error)
{
    ASSERT(topic != NULL);
    ASSERT(config != NULL);
    ASSERT(index < config->topic_count);
    ASSERT(config->topics[index] != NULL);
    char path[4096];
    const char *name = config->topics[index];
    (void)snprintf(path, sizeof(path), "%s/%s.jsonl", config->directory, name);
    int result = map_file(path, &topic->file);
    topic->is_mapped_lines = result == 0;
    if (result == -ENOENT) {
        (void)snprintf(path, sizeof(path), "%s/%s.records", config->directory, name);
        result = map_file(path, &topic->file);
        if (result == 0) {
            result = envelopes_read(topic->file, path, &topic->envelopes, error);
            return result != 0 ? result : count_partitions(topic);
        }
        if (result == -ENOENT && config->missing_is_empty) {
            result = 0;
        }
    }
    if (result == -ENOENT) {
        return error_set(error, result,
                         "no recording of topic '%s': neither %s/%s.jsonl nor .records", name,
                         config->directory, name);
    }
    if (result != 0) {
        return error_set(error, result, "cannot read %s: %s", path, strerror(-result));
    }
    return count_partitions(topic);
}

/* The topic whose next record comes first; NULL when none has one. */
static struct topic *first_topic(struct source_file *source)
{
    ASSERT_SLOW(source != NULL);
    ASSERT(source->topics != NULL);
    struct topic *first = NULL;
    for (uint32_t i = 0; i < source->topic_count; i++) {
        struct topic *topic = &source->topics[i];
        if (topic->has_next &&
            (first == NULL || topic->next.timestamp_ms < first->next.timestamp_ms)) {
            first = topic;
        }
    }
    return first;
}

/* Whether the topic's next record still comes before those of all other topics. */
static bool stays_first(const struct source_file *source, const struct topic *topic)
{
    ASSERT_SLOW(source != NULL);
    ASSERT(topic->has_next);
    for (uint32_t i = 0; i < source->topic_count; i++) {
        const struct topic *other = &source->topics[i];
        if (other == topic || !other->has_next) {
            continue;
        }
        const bool earlier = other < topic ? other->next.timestamp_ms <= topic->next.timestamp_ms
                                           : other->next.timestamp_ms < topic->next.timestamp_ms;
        if (earlier) {
            return false;
        }
    }
    return true;
}

/* Reports a partition that never had a record. */
static bool poll_empty(struct source_file *source, struct record_batch_view *out)
{
    ASSERT_SLOW(source != NULL);
    ASSERT(out != NULL);
    for (uint32_t i = 0; i < source->topic_count; i++) {
        struct topic *topic = &source->topics[i];
        for (uint32_t p = 0; p < topic->partition_count; p++) {
            struct partition *partition = &topic->partitions[p];
            if (partition->left == 0 && !partition->ended) {
                partition->ended = true;
                *out = (struct record_batch_view){
                    .topic = i,
                    .partition = p,
                    .records = source->records,
                    .caught_up = true,
                    .ended = true,
                };
                return true;
            }
        }
    }
    return false;
}

static bool poll(struct record_source *base, uint64_t now_ns, struct record_batch_view *out)
{
    ASSERT(out != NULL);
    struct source_file *source = from_base(base);
    if (poll_empty(source, out)) {
        return true;
    }
    struct topic *topic = first_topic(source);
    if (topic == NULL || topic->partitions[topic->next_partition].paused) {
        return false;
    }
    struct partition *partition = &topic->partitions[topic->next_partition];
    *out = (struct record_batch_view){
        .topic = (uint32_t)(topic - source->topics),
        .partition = topic->next_partition,
        .records = source->records,
    };
    do {
        struct record *record = &source->records[out->record_count++];
        *record = topic->next;
        record->arrival_ns = now_ns;
        take_next(topic);
    } while (out->record_count < source->batch_records_max && topic->has_next &&
             topic->next_partition == out->partition && stays_first(source, topic));
    partition->ended = partition->left == 0;
    out->ended = partition->ended;
    out->caught_up = partition->ended;
    return true;
}

static void release(struct record_source *base)
{
    (void)base; /* batches point into the files, which stay */
}

static void pause_partition(struct record_source *base, uint32_t topic, uint32_t partition,
                            bool paused)
{
    struct source_file *source = from_base(base);
    ASSERT(topic < source->topic_count && partition < source->topics[topic].partition_count);
    source->topics[topic].partitions[partition].paused = paused;
}

static bool position_of(struct record_source *base, uint32_t topic_index, uint32_t partition_index,
                        struct record_position *out)
{
    const struct source_file *source = from_base(base);
    ASSERT(topic_index < source->topic_count);
    const struct topic *topic = &source->topics[topic_index];
    ASSERT(partition_index < topic->partition_count);
    const struct partition *partition = &topic->partitions[partition_index];
    /* The record that comes next has its offset already. */
    const bool is_ahead = topic->has_next && topic->next_partition == partition_index;
    *out = (struct record_position){
        .topic = topic_index,
        .partition = partition_index,
        .next_offset = partition->next_offset - is_ahead,
        .end_offset = -1,
        .leader_epoch = -1,
        .has_ended = partition->ended,
    };
    return true;
}

static int start_at(struct record_source *base, const struct record_position *positions,
                    uint32_t count, struct error *error)
{
    struct source_file *source = from_base(base);
    ASSERT(positions != NULL || count == 0);
    for (uint32_t i = 0; i < count; i++) {
        const struct record_position *position = &positions[i];
        if (position->partition == RECORD_PARTITION_OTHERS) {
            continue; /* all begin at their first record */
        }
        if (position->topic >= source->topic_count ||
            position->partition >= source->topics[position->topic].partition_count) {
            return error_set(error, -EINVAL, "the recording has no partition %u of that topic",
                             position->partition);
        }
        struct partition *partition =
            &source->topics[position->topic].partitions[position->partition];
        if (position->next_offset > partition->start_offset) {
            partition->start_offset = position->next_offset;
        }
    }
    for (uint32_t i = 0; i < source->topic_count; i++) {
        struct topic *topic = &source->topics[i];
        if (next_is_before_start(topic)) {
            take_next(topic);
        }
    }
    return 0;
}

int source_file_create(const struct source_file_config *config, struct record_source **out,
                       struct error *error)
{
    static const struct record_source_ops OPS = {
        .poll = poll,
        .release = release,
        .pause = pause_partition,
        .position = position_of,
        .start_at = start_at,
    };
    ASSERT(config != NULL && config->directory != NULL && out != NULL);
    struct source_file *source = calloc(1, sizeof(*source));
    *out = NULL;
    if (source == NULL) {
        return error_set(error, -ENOMEM, "no memory to read %s", config->directory);
    }
    source->base.ops = &OPS;
    source->batch_records_max =
        config->batch_records_max != 0 ? config->batch_records_max : SOURCE_FILE_BATCH_DEFAULT;
    source->records = calloc(source->batch_records_max, sizeof(*source->records));
    source->topics = calloc(config->topic_count + 1, sizeof(*source->topics));
    int result = source->records == NULL || source->topics == NULL ? -ENOMEM : 0;
    for (uint32_t i = 0; result == 0 && i < config->topic_count; i++) {
        source->topic_count++;
        result = open_topic(&source->topics[i], config, i, error);
        if (result == 0) {
            advance(&source->topics[i]);
        }
    }
    if (result != 0) {
        source_file_destroy(&source->base);
        return result;
    }
    *out = &source->base;
    return 0;
}

void source_file_destroy(struct record_source *base)
{
    if (base == NULL) {
        return;
    }
    struct source_file *source = from_base(base);
    for (uint32_t i = 0; i < source->topic_count; i++) {
        struct topic *topic = &source->topics[i];
        envelopes_free(&topic->envelopes);
        free(topic->partitions);
        if (topic->file.bytes != 0) {
            (void)munmap((void *)(uintptr_t)topic->file.data, topic->file.bytes);
        }
    }
    free(source->topics);
    free(source->records);
    free(source);
}

uint32_t source_file_partition_count(const struct record_source *base, uint32_t topic)
{
    const struct source_file *source = (const struct source_file *)(const void *)base;
    ASSERT(topic < source->topic_count);
    return source->topics[topic].partition_count;
}
