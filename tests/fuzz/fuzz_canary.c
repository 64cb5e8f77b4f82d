/* SPDX-License-Identifier: Apache-2.0 */
/* Proves the harness: this one must fail. It traps on the input "bird", which only coverage
 * guidance finds in seconds; a run that finds nothing means that fuzzing is blind. */
#include "base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 4 && data[0] == 'b' && data[1] == 'i' && data[2] == 'r' && data[3] == 'd') {
        __builtin_trap();
    }
    return 0;
}
