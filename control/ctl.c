/* SPDX-License-Identifier: Apache-2.0 */
/* See ctl.h. The socket is named itself, or by the appliance file of the running box. */
#include "control/ctl.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "control/appliance.h"
#include "control/config.h"
#include "control/control_socket.h"
#include "control/job_file.h"

#define ANSWER_MS_MAX 600000

static const char usage[] =
    "usage: penstock ctl SOCKET|APPLIANCE.yaml REQUEST\n"
    "  status         lanes, state memory, checkpoints\n"
    "  checkpoint     make one now; answers when it is durable\n"
    "  savepoint      the same, kept until `penstock ckpt prune` drops it\n"
    "  stop           stop reading, answer what was read, make a checkpoint, end\n"
    "  stop --drain   the same, and before that fire all windows and timers (no going on from it)\n"
    "exit codes: 0 done, 1 the box says no, 2 arguments, or no box there\n";

static bool is_request(const char *text)
{
    static const char *const requests[] = {"status", "checkpoint", "savepoint", "stop",
                                           "stop --drain"};
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        if (strcmp(text, requests[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* The path of the socket: the argument itself, or what the appliance file says. */
static int find_socket(const char *argument, char *into, size_t bytes, struct error *error)
{
    ASSERT(argument != NULL && into != NULL);
    struct stat status;
    if (stat(argument, &status) == 0 && S_ISSOCK(status.st_mode)) {
        (void)snprintf(into, bytes, "%s", argument);
        return 0;
    }
    struct appliance_config config;
    int code = config_load(argument, &config, error);
    if (code == 0 && config.run.control_socket[0] == '\0') {
        (void)snprintf(error->place, sizeof(error->place), "%s", argument);
        code = error_set(error, -EINVAL, "run.control_socket is not set");
    } else if (code == 0) {
        (void)snprintf(into, bytes, "%s", config.run.control_socket);
    }
    config_free(&config);
    return code;
}

int ctl_command(int argc, char **argv)
{
    char request[CONTROL_SOCKET_REQUEST_BYTES];
    char path[4096];
    struct error error = {0};
    const bool has_words = argc == 3 || argc == 4;
    if (has_words) {
        (void)snprintf(request, sizeof(request), "%s%s%s", argv[2], argc == 4 ? " " : "",
                       argc == 4 ? argv[3] : "");
    }
    if (!has_words || !is_request(request)) {
        const bool wants_help = argc == 2 && strcmp(argv[1], "--help") == 0;
        (void)fputs(usage, wants_help ? stdout : stderr);
        return wants_help ? EXIT_DONE : EXIT_USAGE;
    }
    int status = find_socket(argv[1], path, sizeof(path), &error);
    if (status == 0) {
        status = control_socket_ask(path, request, ANSWER_MS_MAX, stdout, &error);
    }
    if (status == -EREMOTEIO) {
        return EXIT_RUN_FAILED;
    }
    if (status != 0) {
        error_print(stderr, &error);
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}
