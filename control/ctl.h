/* SPDX-License-Identifier: Apache-2.0 */
/* `penstock ctl`: talks to a running box through its control socket. Control thread only. */
#pragma once

/* Sends one request and prints the answer.
 * argv     ctl SOCKET|APPLIANCE.yaml status | checkpoint | savepoint | stop [--drain]
 * returns  an exit_code (appliance.h) */
int ctl_command(int argc, char **argv);
