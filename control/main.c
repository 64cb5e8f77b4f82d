/* SPDX-License-Identifier: Apache-2.0 */
/* The program: a table of commands. Each has its own file and prints its own help. */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "control/appliance.h"
#include "control/ckpt.h"
#include "control/ctl.h"
#include "control/replay.h"
#include "control/replay_options.h"
#include "tools/lat.h"
#include "tools/load.h"

struct command {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
    const char *doc;
    const char *help; /* printed for --help; NULL: the command looks for that itself */
};

static const struct command commands[] = {
    {"check", check_command, "APPLIANCE.yaml JOB.sql   validate, print plan, cores and memory",
     check_help},
    {"run", run_command, "APPLIANCE.yaml JOB.sql   run the job on this box", run_help},
    {"replay", replay_command, "JOB.sql --in DIR --out DIR   run it over recorded files",
     replay_help},
    {"ctl", ctl_command, "SOCKET|APPLIANCE.yaml REQUEST   ask a running box, or stop it", NULL},
    {"ckpt", ckpt_command,
     "list | show | verify | prune | export | adopt | format PATH …   look into a checkpoint file"},
    {"load", load_command, "payments | nexmark …   make records at a set rate"},
    {"lat", lat_command, "--bootstrap … --in … --out …   measure latency from the outside"},
};

static void usage(FILE *into)
{
    (void)fprintf(into, "Penstock runs Flink SQL over Kafka on one box.\n\n");
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        (void)fprintf(into, "  penstock %-7s %s\n", commands[i].name, commands[i].doc);
    }
    (void)fprintf(into, "\nExit codes: 0 done, 1 the run failed, 2 usage, file or device, 3 the "
                        "script is refused, 4 the job failed on its data.\n");
}

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        usage(argc < 2 ? stderr : stdout);
        return argc < 2 ? EXIT_USAGE : EXIT_DONE;
    }
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            const char *help = commands[i].help;
            if (help != NULL && argc == 3 && strcmp(argv[2], "--help") == 0) {
                (void)fputs(help, stdout);
                return EXIT_DONE;
            }
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    (void)fprintf(stderr, "penstock: %s is no command\n\n", argv[1]);
    usage(stderr);
    return EXIT_USAGE;
}
