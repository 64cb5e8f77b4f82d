/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an appliance file: read or refused, never a crash, a leak or an unnamed error. */
#include "control/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct appliance_config config;
    struct error error = {0};
    const int status = config_parse("fuzz", (const char *)data, bytes, &config, &error);
    ASSERT((status == 0) == (error.text[0] == '\0'));
    config_free(&config);
    return 0;
}
