/* SPDX-License-Identifier: Apache-2.0 */
/* `penstock lat`: measures a running job from the outside. See lat.c. */
#pragma once

/* Runs the command with its own arguments.
 * returns  0 when nothing was lost or doubled, 1 when something was, 2 for a usage or broker error
 * threads  control */
int lat_command(int argc, char **argv);
