/* SPDX-License-Identifier: Apache-2.0 */
/* A lane's facts from arbitrary bytes. What is accepted must come out the same when it is written
 * again: then nothing was read that is not there, and nothing was passed over. */
#include "dataplane/facts.h"

#define COPY_BYTES_MAX (UINT32_C(1) << 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool copy(void *context, const struct facts_item *item)
{
    struct facts_writer *writer = context;
    facts_put(writer, item);
    return !writer->is_full;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static _Alignas(8) uint8_t memory[COPY_BYTES_MAX];
    struct facts_writer writer;
    struct error error = {0};
    facts_begin(&writer, (struct span_mut){.data = memory, .bytes = sizeof(memory)});
    if (facts_read((struct span){.data = data, .bytes = size}, copy, &writer, &error) == 0) {
        const struct span written = facts_written(&writer);
        ASSERT(written.bytes == size);
    } else {
        ASSERT(error.text[0] != 0);
    }
    return 0;
}
