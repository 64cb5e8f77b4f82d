/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON decoder over any bytes: the first byte chooses the table and the options, the rest is
 * the document. What the quick walker answers, the exact one must answer too; short buffers must
 * not change the rows; every row must be whole. The document is an exact allocation, so a read past
 * its end is seen. */
#include <stdlib.h>

#include "dataplane/format/json_internal.h"
#include "tests/dataplane/format/table.h"

#define RECORD_BYTES_MAX 8192
#define ROW_BYTES_SPACE  65536
#define TABLE_COUNT      5

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct fuzz_target {
    struct table table;
    struct json_decoder *decoder;
};

/* A row as its bytes, or how the document ended. */
struct answer {
    size_t used;
    bool bad;
    uint8_t bytes[ROW_BYTES_SPACE];
};

static void create_target(struct fuzz_target *target, uint8_t choice)
{
    static const char *const TABLES[TABLE_COUNT] = {
        "i INT, s STRING, f FLOAT, r.q INT, r.t STRING, b BOOLEAN",
        "t TINYINT, sm SMALLINT, l BIGINT, d DOUBLE, p DECIMAL(10,2), w DECIMAL(38,4), by BYTES",
        "d DATE, tm TIME, ts TIMESTAMP, z TIMESTAMP_LTZ, s STRING",
        "a.b.c.d INT, a.b.e STRING, -a.f INT, g STRING",
        "-x INT",
    };
    table_init(&target->table, TABLES[choice % TABLE_COUNT]);
    struct plan_format_options *format = &target->table.source.value_format;
    format->ignore_parse_errors = (choice & 64) != 0;
    format->fail_on_missing_field = (choice & 192) == 128;
    format->timestamp_format = (choice & 32) != 0 ? PLAN_TIMESTAMP_ISO_8601 : PLAN_TIMESTAMP_SQL;
    if (json_decoder_create(&target->table.source, PLAN_FIELD_VALUE, RECORD_BYTES_MAX,
                            &target->decoder, NULL) != 0) {
        abort();
    }
}

/* Text may stand in another order behind the slots, so rows are compared column by column. */
static void add_row(struct answer *answer, const struct row_layout *layout, const struct row *row)
{
    for (uint32_t i = 0; i < layout->column_count; i++) {
        const struct value value = row_value(layout, row, i);
        const bool is_text = type_is_text(&layout->types[i]) && !value.is_null;
        const struct span bytes =
            is_text ? value.text
                    : (struct span){row_slot(layout, row, i),
                                    8 * (size_t)type_slot_count(&layout->types[i])};
        if (answer->used + bytes.bytes + 9 > ROW_BYTES_SPACE) {
            return;
        }
        answer->bytes[answer->used++] = value.is_null;
        memcpy(answer->bytes + answer->used, &bytes.bytes, sizeof(bytes.bytes));
        answer->used += sizeof(bytes.bytes);
        if (bytes.bytes != 0) {
            memcpy(answer->bytes + answer->used, bytes.data, bytes.bytes);
        }
        answer->used += bytes.bytes;
    }
}

/* Reads all rows; false when the quick walker gave up. */
static bool read_all(struct json_decoder *decoder, struct span document, size_t space,
                     struct answer *answer)
{
    uint64_t buffer[ROW_BYTES_SPACE / 8];
    enum json_step step;
    answer->used = 0;
    json_decoder_begin(decoder, document);
    do {
        struct row_writer writer;
        const struct span_mut into = {(uint8_t *)buffer, space};
        step = json_decoder_next(decoder, into, NULL, &writer);
        if (step == JSON_STEP_FULL) {
            space = space * 2 > ROW_BYTES_SPACE ? ROW_BYTES_SPACE : space * 2;
        }
        if (step == JSON_STEP_ROW) {
            const uint32_t row_bytes = row_end(&writer);
            if (!row_check(decoder->layout, writer.row, row_bytes)) {
                abort();
            }
            add_row(answer, decoder->layout, writer.row);
        }
    } while (step == JSON_STEP_ROW || step == JSON_STEP_FULL);
    answer->bad = step == JSON_STEP_BAD;
    return step != JSON_STEP_GIVE_UP;
}

static void check_same(const struct answer *a, const struct answer *b)
{
    if (a->bad != b->bad || a->used != b->used || memcmp(a->bytes, b->bytes, a->used) != 0) {
        abort();
    }
}

static void check_document(struct json_decoder *decoder, struct span document)
{
    struct answer exact;
    struct answer other;
    decoder->exact_only = true;
    (void)read_all(decoder, document, ROW_BYTES_SPACE, &exact);
    decoder->exact_only = false;
    decoder->quick_only = true;
    for (uint32_t i = 0; i < 2; i++) { /* the second time by the remembered names */
        if (read_all(decoder, document, ROW_BYTES_SPACE, &other)) {
            check_same(&exact, &other);
        }
    }
    decoder->quick_only = false;
    (void)read_all(decoder, document, 8, &other);
    check_same(&exact, &other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_target target;
    if (bytes < 2 || bytes > RECORD_BYTES_MAX) {
        return 0;
    }
    create_target(&target, data[0]);
    uint8_t *copy = malloc(bytes - 1);
    memcpy(copy, data + 1, bytes - 1);
    check_document(target.decoder, (struct span){copy, bytes - 1});
    free(copy);
    json_decoder_destroy(target.decoder);
    table_fini(&target.table);
    return 0;
}
