/* SPDX-License-Identifier: Apache-2.0 */
/* The minimum is searched only when the sender that held it moves, so a record of a partition that
 * is ahead costs one comparison. */
#include "dataplane/watermark.h"

void watermark_init(struct watermark *watermark, struct watermark_sender *storage,
                    uint32_t sender_count_max)
{
    ASSERT(watermark != NULL);
    ASSERT(storage != NULL || sender_count_max == 0);
    *watermark = (struct watermark){
        .senders = storage,
        .sender_count_max = sender_count_max,
        .value_ms = WATERMARK_MIN,
    };
}

uint32_t watermark_add(struct watermark *watermark)
{
    ASSERT_SLOW(watermark->sender_count <= watermark->sender_count_max);
    ASSERT(watermark->sender_count < watermark->sender_count_max);
    const uint32_t sender = watermark->sender_count++;
    watermark->senders[sender] = (struct watermark_sender){.value_ms = WATERMARK_MIN};
    return sender;
}

static bool take_minimum(struct watermark *watermark)
{
    if (watermark_is_idle(watermark)) {
        return false;
    }
    int64_t minimum = WATERMARK_MAX;
    for (uint32_t i = 0; i < watermark->sender_count; i++) {
        const struct watermark_sender *sender = &watermark->senders[i];
        if (!sender->idle && sender->value_ms < minimum) {
            minimum = sender->value_ms;
        }
    }
    if (minimum <= watermark->value_ms) {
        return false;
    }
    watermark->value_ms = minimum;
    return true;
}

bool watermark_move(struct watermark *watermark, uint32_t sender, int64_t value_ms)
{
    ASSERT_SLOW(watermark->sender_count <= watermark->sender_count_max);
    ASSERT_SLOW(watermark->idle_count <= watermark->sender_count);
    ASSERT(sender < watermark->sender_count);
    struct watermark_sender *moved = &watermark->senders[sender];
    const bool was_idle = moved->idle;
    const int64_t before = moved->value_ms;
    if (was_idle) {
        moved->idle = false;
        watermark->idle_count--;
    }
    if (value_ms > before) {
        moved->value_ms = value_ms;
    }
    /* A sender ahead of the minimum did not hold it, unless it was left out until now. */
    if (!was_idle && before > watermark->value_ms) {
        return false;
    }
    return take_minimum(watermark);
}

void watermark_recount(struct watermark *watermark, int64_t told_ms)
{
    ASSERT(watermark->idle_count <= watermark->sender_count);
    watermark->value_ms = told_ms;
    (void)take_minimum(watermark);
    ASSERT(watermark->value_ms >= told_ms);
}

bool watermark_idle(struct watermark *watermark, uint32_t sender, bool idle)
{
    ASSERT(sender < watermark->sender_count);
    struct watermark_sender *changed = &watermark->senders[sender];
    if (changed->idle == idle) {
        return false;
    }
    changed->idle = idle;
    watermark->idle_count = idle ? watermark->idle_count + 1 : watermark->idle_count - 1;
    ASSERT(watermark->idle_count <= watermark->sender_count);
    return take_minimum(watermark);
}
