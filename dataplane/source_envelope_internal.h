/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a .records file, read at once into memory. */
#pragma once

#include "base.h"
#include "dataplane/record.h"

struct envelope {
    struct record record; /* offset not set */
    uint32_t partition;
};

struct envelopes {
    struct envelope *list;
    uint64_t count;
    uint64_t capacity;
    uint8_t *bytes; /* decoded texts */
    size_t bytes_used;
    struct record_header *headers; /* all records' */
    size_t header_count;
    size_t header_capacity;
};

/* Reads all envelopes of a file.
 * file     borrowed only for the call
 * path     for error messages
 * out      freed by envelopes_free, also after a failure
 * returns  0, -ENOMEM, or -EINVAL with the line in error
 * threads  control */
int envelopes_read(struct span file, const char *path, struct envelopes *out, struct error *error);

/* Frees what envelopes_read took.
 * threads  control */
void envelopes_free(struct envelopes *envelopes);
