/* SPDX-License-Identifier: Apache-2.0 */
/* Times as text. Years 1000 to 9999, which is all that generators make. */
#include "dataplane/expr/text_time.h"
#include "tools/generator_internal.h"

static void fill_cache(struct time_cache *cache, int64_t second)
{
    ASSERT(cache != NULL);
    const int64_t days = floor_divide(second, 86400);
    const uint32_t of_day = (uint32_t)floor_modulo(second, 86400);
    const struct civil date = civil_from_days(days);
    uint8_t *at = put_padded(cache->text, (uint32_t)date.year, 4);
    *at++ = '-';
    at = put_padded(at, (uint32_t)date.month, 2);
    *at++ = '-';
    at = put_padded(at, (uint32_t)date.day, 2);
    *at++ = ' ';
    at = put_padded(at, of_day / 3600, 2);
    *at++ = ':';
    at = put_padded(at, of_day / 60 % 60, 2);
    *at++ = ':';
    at = put_padded(at, of_day % 60, 2);
    ASSERT(at == cache->text + sizeof(cache->text));
    cache->second = second;
    cache->is_set = true;
}

uint8_t *put_time(struct time_cache *cache, int64_t ms, uint8_t *into)
{
    ASSERT(cache != NULL && into != NULL);
    const int64_t second = floor_divide(ms, MS_PER_SECOND);
    const uint32_t fraction = (uint32_t)floor_modulo(ms, MS_PER_SECOND);
    if (!cache->is_set || cache->second != second) {
        fill_cache(cache, second);
    }
    into = put_span(into, cache->text, sizeof(cache->text));
    if (fraction == 0) {
        return into;
    }
    *into++ = '.';
    into = put_padded(into, fraction, 3);
    while (into[-1] == '0') {
        into--;
    }
    return into;
}
