/* SPDX-License-Identifier: Apache-2.0 */
/* Filling parcels and passing them on. A row is written where it stays; only when a parcel proves
 * too small in the middle of a row is that row moved to a fresh, larger one. */
#include "dataplane/output.h"

#include <errno.h>
#include <stdlib.h>

#define ROW_SLACK_BYTES 64 /* a parcel with less room than the fixed part and this is full */

struct output {
    struct output_config config;
    struct parcel *filling;
    uint32_t rows_per_parcel;
    uint32_t row_bytes_fixed;
    uint32_t reserve;
    uint32_t copy_count;   /* edges that copy rows */
    uint32_t link_parcels; /* half-filled parcels that those may hold */
    uint32_t direct_count;
    uint64_t row_count;
    bool starved;
    struct parcel stamps; /* header of the parcels to come; no data: it must stand last */
};

static void count_edges(struct output *output)
{
    const struct output_config *config = &output->config;
    for (uint32_t i = 0; i < config->edge_count; i++) {
        const struct exchange *edge = &config->edges[i];
        output->direct_count += edge->kind == EXCHANGE_DIRECT;
        output->copy_count += edge->kind != EXCHANGE_DIRECT;
        output->link_parcels += edge->kind == EXCHANGE_HASH ? edge->link_count : 0;
    }
    ASSERT(output->direct_count + output->copy_count == config->edge_count);
}

int output_create(const struct output_config *config, struct output **out, struct error *error)
{
    ASSERT(config != NULL);
    ASSERT(config->edge_count <= OUTPUT_EDGES_MAX);
    ASSERT(config->parcel_rows_max >= 1 && config->parcel_rows_max <= PARCEL_ROWS_MAX);
    struct output *output = calloc(1, sizeof(*output));
    if (output == NULL) {
        return error_set(error, -ENOMEM, "out of memory for an output");
    }
    output->config = *config;
    output->row_bytes_fixed = row_bytes_fixed(config->layout);
    const uint32_t row_bytes = output->row_bytes_fixed + OUTPUT_ROW_TAIL_BYTES;
    const uint32_t fits = parcel_pool_data_bytes(config->pool, false) / row_bytes;
    output->rows_per_parcel = fits < 1 ? 1 : fits;
    if (output->rows_per_parcel > config->parcel_rows_max) {
        output->rows_per_parcel = config->parcel_rows_max;
    }
    count_edges(output);
    *out = output;
    return 0;
}

void output_destroy(struct output *output)
{
    free(output);
}

void output_reserve(struct output *output, uint32_t parcels)
{
    output->reserve = parcels;
}

uint32_t output_parcels(const struct output *output, uint32_t row_count)
{
    const uint32_t parcels =
        (row_count + output->rows_per_parcel - 1) / output->rows_per_parcel + 1;
    return parcels * (1 + output->copy_count) + output->link_parcels;
}

bool output_room(const struct output *output, uint32_t row_count)
{
    const uint32_t needed = output->reserve + output_parcels(output, row_count);
    return parcel_pool_free(output->config.pool) >= needed;
}

bool output_has_room(const struct output *output)
{
    const uint32_t limit = output->config.queue_rows_max;
    const uint32_t filling = output->filling == NULL ? 0 : output->filling->row_count;
    for (uint32_t i = 0; i < output->config.edge_count; i++) {
        if (exchange_waiting_rows(&output->config.edges[i]) + filling >= limit) {
            return false;
        }
    }
    return output_room(output, 1);
}

void output_stamp(struct output *output, const struct parcel *from)
{
    ASSERT_SLOW(from->row_count <= PARCEL_ROWS_MAX);
    struct parcel *stamps = &output->stamps;
    if (output->filling != NULL && stamps->processing_ms != from->processing_ms) {
        output_pass(output);
    }
    stamps->processing_ms = from->processing_ms;
    stamps->decoded_ns = from->decoded_ns;
    stamps->routed_ns = from->routed_ns;
}

/* Starts a parcel with room for so many bytes; false when the pool has none. */
static bool open_parcel(struct output *output, uint32_t data_bytes)
{
    ASSERT(output != NULL);
    ASSERT(output->filling == NULL);
    struct parcel *parcel = parcel_acquire(output->config.pool, data_bytes);
    if (parcel == NULL) {
        output->starved = data_bytes <= parcel_pool_data_bytes(output->config.pool, true);
        return false;
    }
    parcel->processing_ms = output->stamps.processing_ms;
    parcel->decoded_ns = output->stamps.decoded_ns;
    parcel->routed_ns = output->stamps.routed_ns;
    output->filling = parcel;
    return true;
}

bool output_row_begin(struct output *output, struct row_writer *writer, const struct row *from)
{
    ASSERT_SLOW(output != NULL);
    ASSERT_SLOW(writer != NULL);
    const uint32_t bytes = output->row_bytes_fixed + ROW_SLACK_BYTES;
    struct parcel *filling = output->filling;
    if (filling != NULL && (filling->row_count >= output->config.parcel_rows_max ||
                            filling->bytes_max - filling->bytes_used < bytes)) {
        output_pass(output);
    }
    if (output->filling == NULL && !open_parcel(output, bytes)) {
        return false;
    }
    filling = output->filling;
    return row_begin(writer, output->config.layout, filling->data + filling->bytes_used,
                     filling->bytes_max - filling->bytes_used, from);
}

bool output_row_grow(struct output *output, struct row_writer *writer, uint32_t tail_bytes)
{
    ASSERT_SLOW(writer->used <= writer->capacity);
    struct parcel *old = output->filling;
    ASSERT(old != NULL);
    ASSERT((uint8_t *)writer->row == old->data + old->bytes_used);
    const uint64_t bytes = (uint64_t)writer->used + tail_bytes + ROW_SLACK_BYTES;
    if (bytes > parcel_pool_data_bytes(output->config.pool, true)) {
        return false;
    }
    output->filling = NULL;
    if (!open_parcel(output, (uint32_t)bytes)) {
        output->filling = old;
        return false;
    }
    struct parcel *fresh = output->filling;
    memcpy(fresh->data, writer->row, writer->used);
    writer->row = (struct row *)(void *)fresh->data;
    writer->capacity = fresh->bytes_max;
    if (old->row_count == 0) {
        parcel_release(old, output->config.pool);
        return true;
    }
    output->filling = old;
    output_pass(output);
    output->filling = fresh;
    return true;
}

void output_row_end(struct output *output, struct row_writer *writer)
{
    struct parcel *filling = output->filling;
    ASSERT(filling != NULL);
    ASSERT((uint8_t *)writer->row == filling->data + filling->bytes_used);
    filling->bytes_used += row_end(writer);
    filling->row_count++;
    output->row_count++;
}

bool output_row_copy(struct output *output, const struct row *row)
{
    struct parcel *filling = output->filling;
    if (filling != NULL && (filling->row_count >= output->config.parcel_rows_max ||
                            filling->bytes_max - filling->bytes_used < row->bytes)) {
        output_pass(output);
    }
    if (output->filling == NULL && !open_parcel(output, row->bytes)) {
        return false;
    }
    filling = output->filling;
    memcpy(filling->data + filling->bytes_used, row, row->bytes);
    filling->bytes_used += row->bytes;
    filling->row_count++;
    output->row_count++;
    return true;
}

/* Sends along all edges; the hold on the parcel goes with it. */
static void send_all(struct output *output, struct parcel *parcel)
{
    const struct output_config *config = &output->config;
    const bool give =
        config->edge_count == 1 && config->edges->kind == EXCHANGE_LANE && parcel->holders == 1;
    for (uint32_t i = 0; i < config->edge_count; i++) {
        if (!exchange_send(&config->edges[i], parcel, give)) {
            output->starved = true;
        }
    }
    if (!give) {
        parcel_release(parcel, config->pool);
    }
}

void output_pass(struct output *output)
{
    struct parcel *parcel = output->filling;
    output->filling = NULL;
    if (parcel == NULL) {
        return;
    }
    if (parcel->row_count == 0) {
        parcel_release(parcel, output->config.pool);
        return;
    }
    send_all(output, parcel);
}

void output_forward(struct output *output, struct parcel *parcel)
{
    ASSERT(output->filling == NULL);
    ASSERT(parcel->row_count > 0);
    output->row_count += parcel->row_count;
    send_all(output, parcel);
}

void output_control(struct output *output, enum parcel_kind kind, int64_t value)
{
    ASSERT(kind != PARCEL_ROWS);
    output_pass(output);
    for (uint32_t i = 0; i < output->config.edge_count; i++) {
        exchange_control(&output->config.edges[i], item_control(kind, value));
    }
}

uint32_t output_flush(struct output *output)
{
    uint32_t count = 0;
    output_pass(output);
    for (uint32_t i = 0; i < output->config.edge_count; i++) {
        count += exchange_flush(&output->config.edges[i]);
    }
    return count;
}

uint32_t output_backlog_rows(const struct output *output)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < output->config.edge_count; i++) {
        const struct exchange *edge = &output->config.edges[i];
        rows += edge->kind == EXCHANGE_DIRECT ? 0 : exchange_backlog_rows(edge);
    }
    return rows;
}

bool output_has_backlog(const struct output *output)
{
    for (uint32_t i = 0; i < output->config.edge_count; i++) {
        const struct exchange *edge = &output->config.edges[i];
        if (edge->kind != EXCHANGE_DIRECT && exchange_has_backlog(edge)) {
            return true;
        }
    }
    return output->filling != NULL;
}

bool output_is_starved(const struct output *output)
{
    return output->starved;
}

uint64_t output_row_count(const struct output *output)
{
    return output->row_count;
}

uint32_t output_row_bytes_max(const struct output *output)
{
    return parcel_pool_data_bytes(output->config.pool, true) - ROW_SLACK_BYTES;
}
