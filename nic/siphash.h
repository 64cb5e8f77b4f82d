/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-2-4: the keyed hash behind initial sequence numbers, so that nobody off the path can
 * guess them from another connection's. */
#pragma once

#include "base.h"

#define SIPHASH_KEY_BYTES 16

/* Hashes data under a secret key.
 * key      SIPHASH_KEY_BYTES bytes
 * threads  any
 * source   SipHash: a fast short-input PRF (Aumasson, Bernstein), appendix A */
uint64_t siphash(const uint8_t *key, const uint8_t *data, size_t bytes);
