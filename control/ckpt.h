/* SPDX-License-Identifier: Apache-2.0 */
/* `penstock ckpt`: what is in a checkpoint file, for people. Control thread only; the file must not
 * be in use by a running box (ask that one by `penstock ctl`). */
#pragma once

/* Formats, lists, shows, verifies, prunes or exports.
 * argv     ckpt format | list | show | verify | prune | export PATH …
 * returns  an exit_code (appliance.h) */
int ckpt_command(int argc, char **argv);
