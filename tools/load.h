/* SPDX-License-Identifier: Apache-2.0 */
/* `penstock load`: makes payments or Nexmark events at a set rate, into a file, a pipe or a broker.
 * Open loop: record n is due at start + n / rate, however slow the receiver is. */
#pragma once

/* Runs the command.
 * argv     "load", then payments or nexmark and options; --help prints them
 * returns  the exit code: 0, 1 (writing or sending failed), 2 (wrong arguments)
 * threads  main; librdkafka has its own */
int load_command(int argc, char **argv);
