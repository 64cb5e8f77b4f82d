/* SPDX-License-Identifier: Apache-2.0 */
/* The step from bound statements to the plan; see plan.c. */
#pragma once

#include "control/sql/session.h"

/* Makes plan nodes of all INSERTs.
 * out      filled; lives in the session's memory
 * returns  0, -E2BIG or -ENOTSUP with error
 * threads  control */
int plan_build(struct session *session, struct plan *out);
