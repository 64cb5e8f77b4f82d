/* SPDX-License-Identifier: Apache-2.0 */
/* What a run says about itself: tables at its end or on SIGUSR1, JSON for `penstock ctl status`. */
#include <errno.h>
#include <inttypes.h>

#include "control/appliance_internal.h"
#include "dataplane/ledger.h"
#include "dataplane/stage.h"
#include "dataplane/table_source.h"

#define MIB_BYTES (UINT64_C(1) << 20)

/* What came in and could not be used, a line a table: nothing is dropped in silence. */
static void print_sources(const struct box *box)
{
    for (uint32_t i = 0; i < box->plan->node_count; i++) {
        struct table_source_counters sum = {0};
        const struct plan_node *node = box->plan->nodes[i];
        for (uint32_t l = 0; l < box->lane_count && node->operator== PLAN_SOURCE; l++) {
            const struct stage *stage = job_stage(box->job, l, i);
            if (stage == NULL || stage->source == NULL) {
                continue;
            }
            const struct table_source_counters *counters = table_source_counters(stage->source);
            sum.records += counters->records;
            sum.rows += counters->rows;
            sum.bad += counters->bad;
            sum.dead_letters += counters->dead_letters;
        }
        if (node->operator== PLAN_SOURCE) {
            (void)printf("table %s: %" PRIu64 " records in, %" PRIu64 " rows, %" PRIu64
                         " bad records, %" PRIu64 " of them to the dead-letter topic\n",
                         node->source.table, sum.records, sum.rows, sum.bad, sum.dead_letters);
        }
    }
}

void report_print(struct appliance *appliance)
{
    ASSERT(appliance != NULL);
    struct box *box = &appliance->box;
    struct ledger *sum = job_lane_ledger(box->job, 0);
    struct ledger *total = NULL;
    const char *names[LEDGER_SINKS_MAX];
    if (sum == NULL) {
        return;
    }
    for (uint32_t i = 0; i < sum->sink_count; i++) {
        names[i] = sum->sinks[i].name;
    }
    if (ledger_create(names, sum->sink_count, &total, &appliance->error) != 0) {
        return;
    }
    for (uint32_t i = 0; i < box->lane_count; i++) {
        if (job_lane_ledger(box->job, i) != NULL) {
            ledger_merge(total, job_lane_ledger(box->job, i));
        }
    }
    job_print(box->job, stdout);
    print_sources(box);
    network_print(box->network, stdout);
    ledger_print(total, stdout);
    const char *path = appliance->config.run.ledger_json;
    FILE *json = path[0] == '\0' ? NULL : fopen(path, "we");
    if (json != NULL) {
        ledger_print_json(total, json);
        (void)fclose(json);
    } else if (path[0] != '\0') {
        (void)fprintf(stderr, "penstock: run.ledger_json: %s: %s\n", path, strerror(errno));
    }
    ledger_destroy(total);
    (void)fflush(stdout);
}

/* Written by lanes, read here as a mix of moments. */
static void print_lane_status(const struct box_lane *lane, FILE *into)
{
    ASSERT(lane->box != NULL);
    const struct lane_counters *counters = lane_counters(lane->lane);
    (void)fprintf(into, "{\"lane\":%u,\"core\":%u,\"turns\":%" PRIu64 ",\"idle_turns\":%" PRIu64,
                  lane->number, lane->core, counters->turns, counters->idle_turns);
    if (lane->arena != NULL) {
        const struct arena_counters *pages = &lane->arena->counters;
        (void)fprintf(into, ",\"state_mib\":%" PRIu64 ",\"state_used_mib\":%" PRIu64,
                      (uint64_t)lane->arena->page_count * ARENA_PAGE_BYTES / MIB_BYTES,
                      pages->pages_used * ARENA_PAGE_BYTES / MIB_BYTES);
    }
    (void)fprintf(into, ",\"has_ended\":%s}", lane->has_ended ? "true" : "false");
}

static void print_checkpoint_status(struct appliance *appliance, FILE *into)
{
    ASSERT(appliance->storage != NULL);
    const struct checkpoint_report *last = &appliance->report;
    const struct checkpoint_counters *counters =
        checkpoint_counters(storage_checkpoint(appliance->storage));
    (void)fprintf(
        into,
        ",\"checkpoints\":{\"resumed_from\":%" PRIu64 ",\"complete\":%" PRIu64
        ",\"failed\":%" PRIu64 ",\"last_complete\":%" PRIu64 ",\"last_complete_age_ms\":%" PRIu64
        ",\"bytes\":%" PRIu64 ",\"scrubbed_extents\":%" PRIu64 ",\"scrub_faults\":%" PRIu64,
        storage_resumed_id(appliance->storage), counters->complete, counters->failed,
        counters->last_complete_id,
        counters->last_complete_ns == 0 ? 0
                                        : (box_clock(NULL) - counters->last_complete_ns) / 1000000,
        counters->bytes, counters->scrubbed_extents, counters->scrub_faults);
    (void)fprintf(into,
                  ",\"last\":{\"id\":%" PRIu64 ",\"base\":%" PRIu64 ",\"alignment_us\":%" PRIu64
                  ",\"staging_us\":%" PRIu64 ",\"duration_us\":%" PRIu64 ",\"preimages\":%" PRIu64
                  ",\"pages\":%" PRIu64 ",\"bytes\":%" PRIu64 "}}",
                  last->id, last->base_id, last->alignment_ns / 1000, last->staging_ns / 1000,
                  last->duration_ns / 1000, last->preimages, last->pages, last->bytes);
}

void report_status(struct appliance *appliance, FILE *into)
{
    ASSERT(appliance != NULL);
    static const char *const phases[] = {"running", "draining", "checkpointing", "stopped"};
    const struct box *box = &appliance->box;
    ASSERT((size_t)appliance->phase < COUNT_OF(phases));
    (void)fprintf(into, "{\"job\":\"%s\",\"phase\":\"%s\",\"lanes\":[", appliance->script_path,
                  phases[appliance->phase]);
    for (uint32_t i = 0; i < box->lane_count; i++) {
        (void)fputs(i == 0 ? "" : ",", into);
        print_lane_status(&box->lanes[i], into);
    }
    (void)fputs("]", into);
    if (appliance->storage != NULL) {
        print_checkpoint_status(appliance, into);
    }
    (void)fputs("}\n", into);
}
