/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the command line of penstock replay. */
#include "control/replay_options.h"

#include <stdio.h>
#include <stdlib.h>

#include "dataplane/parcel.h"

const char replay_help[] =
    "usage: penstock replay JOB.sql --in DIR --out DIR [options]\n"
    "  --in DIR          TOPIC.jsonl or TOPIC.records for each topic that the job reads\n"
    "  --out DIR         the same for each topic that it writes; the folder exists\n"
    "  --parcel-rows N   rows in a parcel, 1 to 256 (answers do not depend on it)\n"
    "  --lanes N         operate lanes, 1 to 16, polled in turn\n"
    "  --state-mib N     limit of a lane's state, 64 to 65536 (4096; with restarts 256)\n"
    "  --restart-every N a checkpoint, a crash and a restart each N records (answers do not "
    "depend\n"
    "                    on it)\n"
    "  --restart-lanes L,M,...\n"
    "                    operate lanes after the first restart, the second, ..., in turn\n"
    "  --nodes           print rows in and out of each node\n"
    "  --quiet           no line of counts\n"
    "exit codes: 0 done, 2 arguments or files, 3 the script is refused, 4 the job failed\n";

static bool read_number(const char *name, const char *text, uint32_t min, uint32_t max,
                        uint32_t *out)
{
    ASSERT(out != NULL);
    char *end = NULL;
    const unsigned long value = text == NULL ? 0 : strtoul(text, &end, 10);
    if (text == NULL || end == text || *end != 0 || value < min || value > max) {
        fprintf(stderr, "penstock replay: %s wants a number from %u to %u, found %s\n", name, min,
                max, text == NULL ? "nothing" : text);
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

static bool read_text(const char *name, const char *text, const char **out)
{
    ASSERT(out != NULL);
    if (text == NULL) {
        fprintf(stderr, "penstock replay: %s wants a folder\n", name);
        return false;
    }
    *out = text;
    return true;
}

/* Numbers of lanes, with commas between. */
static bool read_lanes(const char *text, struct replay_options *out)
{
    ASSERT(out != NULL);
    const char *at = text;
    out->restart_lane_count = 0;
    while (at != NULL && out->restart_lane_count < COUNT_OF(out->restart_lanes)) {
        char *end = NULL;
        const unsigned long lanes = strtoul(at, &end, 10);
        if (end == at || lanes < 1 || lanes > REPLAY_LANES_MAX || (*end != 0 && *end != ',')) {
            break;
        }
        out->restart_lanes[out->restart_lane_count++] = (uint32_t)lanes;
        if (*end == 0) {
            return true;
        }
        at = end + 1;
    }
    fprintf(stderr,
            "penstock replay: --restart-lanes wants up to %d numbers from 1 to %d, such as "
            "2,1,4\n",
            REPLAY_LANES_MAX, REPLAY_LANES_MAX);
    return false;
}

/* Reads one option and its value; used says how many arguments that were. */
static bool read_option(const char *name, const char *value, struct replay_options *out, int *used)
{
    ASSERT(used != NULL);
    *used = 2;
    if (strcmp(name, "--in") == 0) {
        return read_text(name, value, &out->input);
    }
    if (strcmp(name, "--out") == 0) {
        return read_text(name, value, &out->output);
    }
    if (strcmp(name, "--parcel-rows") == 0) {
        return read_number(name, value, 1, PARCEL_ROWS_MAX, &out->parcel_rows);
    }
    if (strcmp(name, "--lanes") == 0) {
        return read_number(name, value, 1, REPLAY_LANES_MAX, &out->lanes);
    }
    if (strcmp(name, "--state-mib") == 0) {
        return read_number(name, value, 64, 65536, &out->state_mib);
    }
    if (strcmp(name, "--restart-every") == 0) {
        return read_number(name, value, 1, UINT32_MAX, &out->restart_every);
    }
    if (strcmp(name, "--restart-lanes") == 0) {
        return read_lanes(value, out);
    }
    *used = 1;
    if (strcmp(name, "--quiet") == 0) {
        out->is_quiet = true;
        return true;
    }
    if (strcmp(name, "--nodes") == 0) {
        out->prints_nodes = true;
        return true;
    }
    if (name[0] == '-' || out->script != NULL) {
        fprintf(stderr, "penstock replay: what is %s?\n", name);
        return false;
    }
    out->script = name;
    return true;
}

bool replay_options_read(int argc, char **argv, struct replay_options *out)
{
    ASSERT(out != NULL);
    ASSERT(argc >= 1);
    *out = (struct replay_options){
        .parcel_rows = PARCEL_ROWS_MAX,
        .lanes = 1,
    };
    int used = 0;
    for (int i = 1; i < argc; i += used) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!read_option(argv[i], value, out, &used)) {
            fputs(replay_help, stderr);
            return false;
        }
    }
    if (out->state_mib == 0) {
        /* What there is room for is noted down for each page, for each life anew. */
        out->state_mib = out->restart_every == 0 ? 4096 : 256;
    }
    if (out->script == NULL || out->input == NULL || out->output == NULL) {
        fputs(replay_help, stderr);
        return false;
    }
    return true;
}
