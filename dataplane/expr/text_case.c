/* SPDX-License-Identifier: Apache-2.0 */
/* UPPER and LOWER by full case mapping of the root locale (ß becomes SS, a sigma at a word's end
 * keeps its own form), INITCAP by Flink's rule: only ASCII letters change, and every character that
 * is no ASCII letter or digit ends a word. */
#include "dataplane/expr/text_case_internal.h"

#include "dataplane/expr/kernel_internal.h"
#include "dataplane/expr/text_internal.h"

#define SIGMA         0x3a3
#define SIGMA_SMALL   0x3c3
#define SIGMA_FINAL   0x3c2
#define CAPITAL_I_DOT 0x130
#define COMBINING_DOT 0x307
#define GROWTH        3 /* bytes out per byte in, at most */

static uint32_t map_run(const struct case_run *runs, size_t count, uint32_t character)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (runs[middle].last < character) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == count || character < runs[low].first ||
        (character - runs[low].first) % runs[low].step != 0) {
        return character;
    }
    return (uint32_t)((int32_t)character + runs[low].delta);
}

static size_t put_upper(uint32_t character, uint8_t *into)
{
    size_t low = 0;
    size_t high = COUNT_OF(case_upper_special);
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (case_upper_special[middle].from < character) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == COUNT_OF(case_upper_special) || case_upper_special[low].from != character) {
        return text_encode(map_run(case_upper, COUNT_OF(case_upper), character), into);
    }
    size_t bytes = 0;
    for (uint32_t k = 0; k < 3 && case_upper_special[low].into[k] != 0; k++) {
        bytes += text_encode(case_upper_special[low].into[k], into + bytes);
    }
    return bytes;
}

static bool is_cased(uint32_t character)
{
    return map_run(case_upper, COUNT_OF(case_upper), character) != character ||
           map_run(case_lower, COUNT_OF(case_lower), character) != character;
}

/* A sigma is final behind a letter and before none. */
static bool sigma_is_final(struct span text, size_t at)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    if (at == 0) {
        return false;
    }
    size_t before = at - 1;
    while (before > 0 && text_is_rest(text.data[before])) {
        before--;
    }
    size_t step;
    if (!is_cased(text_decode(text.data + before, text.bytes - before, &step))) {
        return false;
    }
    const size_t next = at + 2;
    return next >= text.bytes || !is_cased(text_decode(text.data + next, text.bytes - next, &step));
}

static size_t put_lower(struct span text, size_t at, uint32_t character, uint8_t *into)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    if (character == SIGMA) {
        return text_encode(sigma_is_final(text, at) ? SIGMA_FINAL : SIGMA_SMALL, into);
    }
    if (character == CAPITAL_I_DOT) {
        into[0] = 'i';
        return 1 + text_encode(COMBINING_DOT, into + 1);
    }
    return text_encode(map_run(case_lower, COUNT_OF(case_lower), character), into);
}

/* Maps ASCII and tells whether all of it was.
 * returns  bytes mapped */
static size_t map_ascii(struct span text, uint8_t first, uint8_t last, uint8_t *restrict into)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    size_t at = 0;
    for (; at < text.bytes && text.data[at] < 0x80; at++) {
        const uint8_t c = text.data[at];
        into[at] = c >= first && c <= last ? c ^ 0x20 : c;
    }
    return at;
}

static void map_row(struct kernel_run *run, uint32_t row, bool upper)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(run->count <= PARCEL_ROWS_MAX);
    ASSERT_SLOW(run->failure != NULL);
    const struct span text = run->in[0]->text[row];
    uint8_t *into = kernel_text(run, text.bytes * GROWTH + 4);
    if (into == NULL) {
        return;
    }
    size_t at = map_ascii(text, upper ? 'a' : 'A', upper ? 'z' : 'Z', into);
    size_t bytes = at;
    while (at < text.bytes) {
        size_t step;
        const uint32_t character = text_decode(text.data + at, text.bytes - at, &step);
        if (step == 1 && character >= 0x80) {
            into[bytes++] = (uint8_t)character;
        } else {
            bytes += upper ? put_upper(character, into + bytes)
                           : put_lower(text, at, character, into + bytes);
        }
        at += step;
    }
    kernel_text_trim(run, into, bytes);
    run->out->text[row] = (struct span){.data = into, .bytes = bytes};
}

void text_upper(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, { map_row(run, i, true); });
}

void text_lower(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, { map_row(run, i, false); });
}

void text_initcap(struct kernel_run *run)
{
    ASSERT(run->in_count > 0);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    KERNEL_ROWS(run, {
        const struct span text = run->in[0]->text[i];
        uint8_t *into = kernel_text(run, text.bytes);
        if (into == NULL) {
            return;
        }
        bool start = true;
        for (size_t at = 0; at < text.bytes; at++) {
            const uint8_t c = text.data[at];
            const bool small = c >= 'a' && c <= 'z';
            const bool capital = c >= 'A' && c <= 'Z';
            into[at] = (start && small) || (!start && capital) ? c ^ 0x20 : c;
            start = !small && !capital && !(c >= '0' && c <= '9');
        }
        run->out->text[i] = (struct span){.data = into, .bytes = text.bytes};
    });
}
