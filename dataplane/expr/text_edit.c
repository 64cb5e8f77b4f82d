/* SPDX-License-Identifier: Apache-2.0 */
/* Text kernels that write new text. LPAD, RPAD and OVERLAY count UTF-16 units, as Java does: a
 * character beyond the basic plane is two of them, and one cut in half becomes a question mark. */
#include <errno.h>

#include "dataplane/expr/kernel_internal.h"
#include "dataplane/expr/text_internal.h"

/* Counts as unit_offset steps: a stray byte is one unit, so that no text but '' has none. */
static uint64_t count_units(struct span text)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    uint64_t units = 0;
    for (size_t at = 0; at < text.bytes;) {
        units += text.data[at] >= 0xf0 ? 2 : 1;
        at += text_step(text.data + at, text.bytes - at);
    }
    return units;
}

/* Finds the byte where the unit-th UTF-16 unit begins.
 * half     set when that unit is the second one of a character, whose first byte is answered */
static size_t unit_offset(struct span text, uint64_t unit, bool *half)
{
    ASSERT_SLOW(half != NULL);
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    size_t at = 0;
    *half = false;
    while (unit > 0 && at < text.bytes) {
        const uint64_t units = text.data[at] >= 0xf0 ? 2 : 1;
        if (units > unit) {
            *half = true;
            return at;
        }
        unit -= units;
        at += text_step(text.data + at, text.bytes - at);
    }
    return at;
}

/* Room for one text being written. */
struct writer {
    uint8_t *start;
    uint8_t *at;
};

static bool begin(struct kernel_run *run, struct writer *writer, size_t bytes)
{
    ASSERT_SLOW(run != NULL);
    ASSERT_SLOW(writer != NULL);
    writer->start = kernel_text(run, bytes);
    writer->at = writer->start;
    return writer->start != NULL;
}

static void put(struct writer *writer, const uint8_t *data, size_t bytes)
{
    if (bytes != 0) {
        memcpy(writer->at, data, bytes);
        writer->at += bytes;
    }
}

static void end(struct kernel_run *run, const struct writer *writer, uint32_t row)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    const size_t bytes = (size_t)(writer->at - writer->start);
    kernel_text_trim(run, writer->start, bytes);
    run->out->text[row] = (struct span){.data = writer->start, .bytes = bytes};
}

/* Writes the first `units` UTF-16 units of a text. */
static void put_units(struct writer *writer, struct span text, uint64_t units)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    bool half;
    const size_t bytes = unit_offset(text, units, &half);
    put(writer, text.data, bytes);
    if (half) {
        put(writer, (const uint8_t *)"?", 1);
    }
}

static void put_padding(struct writer *writer, struct span pad, uint64_t pad_units, uint64_t units)
{
    ASSERT_SLOW(pad.data != NULL || pad.bytes == 0);
    for (; units >= pad_units; units -= pad_units) {
        put(writer, pad.data, pad.bytes);
    }
    put_units(writer, pad, units);
}

static void pad_row(struct kernel_run *run, uint32_t row, bool at_left)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(run->count <= PARCEL_ROWS_MAX);
    ASSERT_SLOW(run->failure != NULL);
    const struct span text = run->in[0]->text[row];
    const struct span pad = run->in[2]->text[row];
    const int64_t wanted = run->in[1]->i64[row];
    if (wanted < 0 || pad.bytes == 0) {
        kernel_null(run, row);
        return;
    }
    const uint64_t units = count_units(text);
    const uint64_t pad_units = count_units(pad);
    const uint64_t padding = (uint64_t)wanted > units ? (uint64_t)wanted - units : 0;
    struct writer writer;
    if (padding > run->scratch->bytes) {
        run->failure->scratch_full = true;
        return;
    }
    if (!begin(run, &writer, text.bytes + (padding / pad_units + 1) * pad.bytes + 2)) {
        return;
    }
    if (at_left) {
        put_padding(&writer, pad, pad_units, padding);
    }
    put_units(&writer, text, (uint64_t)wanted);
    if (!at_left) {
        put_padding(&writer, pad, pad_units, padding);
    }
    end(run, &writer, row);
}

static void lpad(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, { pad_row(run, i, true); });
}

static void rpad(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, { pad_row(run, i, false); });
}

static void repeat(struct kernel_run *run)
{
    ASSERT(run->in_count > 1);
    ASSERT(run->out != NULL);
    ASSERT(run->in_count <= KERNEL_ARGUMENTS_MAX);
    KERNEL_ROWS(run, {
        const struct span text = run->in[0]->text[i];
        const uint64_t times =
            run->in[1]->i64[i] > 0 && text.bytes != 0 ? (uint64_t)run->in[1]->i64[i] : 0;
        struct writer writer;
        if (!begin(run, &writer, times * text.bytes)) {
            return;
        }
        for (uint64_t time = 0; time < times; time++) {
            put(&writer, text.data, text.bytes);
        }
        end(run, &writer, i);
    });
}

/* An empty search text stands before each character and at the end. */
static void insert_between(struct kernel_run *run, uint32_t row)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(run->count <= PARCEL_ROWS_MAX);
    const struct span text = run->in[0]->text[row];
    const struct span by = run->in[2]->text[row];
    struct writer writer;
    if (!begin(run, &writer, text.bytes + ((size_t)text_count(text) + 1) * by.bytes)) {
        return;
    }
    for (size_t at = 0; at < text.bytes;) {
        const size_t step = text_step(text.data + at, text.bytes - at);
        put(&writer, by.data, by.bytes);
        put(&writer, text.data + at, step);
        at += step;
    }
    put(&writer, by.data, by.bytes);
    end(run, &writer, row);
}

static size_t count_found(struct span text, struct span search)
{
    ASSERT_SLOW(text.data != NULL || text.bytes == 0);
    ASSERT_SLOW(search.data != NULL || search.bytes == 0);
    size_t count = 0;
    const uint8_t *at = text.data;
    const uint8_t *const stop = text.data + text.bytes;
    while (at != stop &&
           (at = memmem(at, (size_t)(stop - at), search.data, search.bytes)) != NULL) {
        count++;
        at += search.bytes;
    }
    return count;
}

static void replace_row(struct kernel_run *run, uint32_t row)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(run->count <= PARCEL_ROWS_MAX);
    ASSERT_SLOW(run->failure != NULL);
    const struct span text = run->in[0]->text[row];
    const struct span search = run->in[1]->text[row];
    const struct span by = run->in[2]->text[row];
    const size_t count = text.bytes == 0 ? 0 : count_found(text, search);
    if (count == 0) {
        run->out->text[row] = text;
        return;
    }
    struct writer writer;
    if (!begin(run, &writer, text.bytes - count * search.bytes + count * by.bytes)) {
        return;
    }
    const uint8_t *from = text.data;
    const uint8_t *const stop = text.data + text.bytes;
    for (size_t k = 0; k < count; k++) {
        const uint8_t *at = memmem(from, (size_t)(stop - from), search.data, search.bytes);
        put(&writer, from, (size_t)(at - from));
        put(&writer, by.data, by.bytes);
        from = at + search.bytes;
    }
    put(&writer, from, (size_t)(stop - from));
    end(run, &writer, row);
}

static void replace(struct kernel_run *run)
{
    ASSERT(run->in_count > 1);
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, {
        if (run->in[1]->text[i].bytes == 0) {
            insert_between(run, i);
        } else {
            replace_row(run, i);
        }
    });
}

/* Finds which character of `from` stands at data; its first place counts.
 * returns  false when none does */
static bool find_character(struct span from, const uint8_t *data, size_t step, uint64_t *index)
{
    ASSERT_SLOW(from.data != NULL || from.bytes == 0);
    uint64_t at_index = 0;
    for (size_t at = 0; at < from.bytes; at_index++) {
        const size_t next = text_step(from.data + at, from.bytes - at);
        if (next == step && memcmp(from.data + at, data, step) == 0) {
            *index = at_index;
            return true;
        }
        at += next;
    }
    return false;
}

static void translate_row(struct kernel_run *run, uint32_t row)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(run->count <= PARCEL_ROWS_MAX);
    ASSERT_SLOW(run->failure != NULL);
    const struct span text = run->in[0]->text[row];
    const struct span from = run->in[1]->text[row];
    const struct span to = run->in[2]->text[row];
    struct writer writer;
    if (!begin(run, &writer, text.bytes * 4)) {
        return;
    }
    for (size_t at = 0; at < text.bytes;) {
        const size_t step = text_step(text.data + at, text.bytes - at);
        uint64_t index;
        if (!find_character(from, text.data + at, step, &index)) {
            put(&writer, text.data + at, step);
        } else {
            const size_t offset = text_offset(to, index);
            if (offset < to.bytes) {
                put(&writer, to.data + offset, text_step(to.data + offset, to.bytes - offset));
            }
        }
        at += step;
    }
    end(run, &writer, row);
}

static void translate(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, { translate_row(run, i); });
}

static void overlay_row(struct kernel_run *run, uint32_t row)
{
    ASSERT_SLOW(run->out != NULL);
    ASSERT_SLOW(run->in_count <= KERNEL_ARGUMENTS_MAX);
    ASSERT_SLOW(run->count <= PARCEL_ROWS_MAX);
    ASSERT_SLOW(run->failure != NULL);
    const struct span text = run->in[0]->text[row];
    const struct span by = run->in[1]->text[row];
    const int64_t start = run->in[2]->i64[row];
    const int64_t units = (int64_t)count_units(text);
    const int64_t length = run->in_count > 3 ? run->in[3]->i64[row] : (int64_t)count_units(by);
    if (start <= 0 || start > units) {
        run->out->text[row] = text;
        return;
    }
    struct writer writer;
    if (!begin(run, &writer, text.bytes * 2 + by.bytes + 2)) {
        return;
    }
    put_units(&writer, text, (uint64_t)(start - 1));
    put(&writer, by.data, by.bytes);
    if (length > 0 && start + length <= units) {
        bool half;
        const size_t from = unit_offset(text, (uint64_t)(start - 1 + length), &half);
        const size_t skip = half ? text_step(text.data + from, text.bytes - from) : 0;
        put(&writer, (const uint8_t *)"?", half ? 1 : 0);
        put(&writer, text.data + from + skip, text.bytes - from - skip);
    }
    end(run, &writer, row);
}

static void overlay(struct kernel_run *run)
{
    ASSERT(run->out != NULL);
    KERNEL_ROWS(run, { overlay_row(run, i); });
}

static void reverse(struct kernel_run *run)
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
        for (size_t at = 0; at < text.bytes;) {
            const size_t step = text_step(text.data + at, text.bytes - at);
            memcpy(into + text.bytes - at - step, text.data + at, step);
            at += step;
        }
        run->out->text[i] = (struct span){.data = into, .bytes = text.bytes};
    });
}

int text_edit_kernel(const struct kernel_call *call, struct kernel_choice *out, struct error *error)
{
    ASSERT(call->expr->kind == EXPR_CALL);
    ASSERT(call->expr->argument_count <= EXPR_ARGUMENTS_MAX);
    ASSERT(out != NULL);
    static kernel_function *const kernels[EXPR_FUNCTION_COUNT] = {
        [EXPR_LPAD] = lpad,        [EXPR_RPAD] = rpad,
        [EXPR_REPEAT] = repeat,    [EXPR_REPLACE] = replace,
        [EXPR_OVERLAY] = overlay,  [EXPR_TRANSLATE] = translate,
        [EXPR_REVERSE] = reverse,  [EXPR_UPPER] = text_upper,
        [EXPR_LOWER] = text_lower, [EXPR_INITCAP] = text_initcap,
    };
    if (kernels[call->expr->function] == NULL) {
        return -ENOENT;
    }
    *out = (struct kernel_choice){.function = kernels[call->expr->function], .mode = KERNEL_STRICT};
    return 0;
}
