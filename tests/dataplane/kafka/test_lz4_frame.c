/* SPDX-License-Identifier: Apache-2.0 */
/* LZ4 frames of every shape that the library writes, and xxHash-32's vectors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lz4frame.h>
#include <stdlib.h>

#include "dataplane/kafka/lz4_frame.h"
#include "dataplane/kafka/wire.h"

#define PLAIN_BYTES 200000

static void test_xxh32_when_vectors_then_value(void **state)
{
    assert_int_equal(lz4_frame_xxh32((struct span){0}), 0x02CC5D05);
    assert_int_equal(lz4_frame_xxh32(kafka_span_of("a")), 0x550D7456);
    assert_int_equal(lz4_frame_xxh32(kafka_span_of("abc")), 0x32D153FF);
    assert_int_equal(lz4_frame_xxh32(kafka_span_of("Nobody inspects the spammish repetition")),
                     0xE2293B2F);
}

static void test_decompress_when_any_frame_option_then_equal(void **state)
{
    uint8_t *plain = malloc(PLAIN_BYTES);
    uint8_t *into = malloc(PLAIN_BYTES);
    for (size_t i = 0; i < PLAIN_BYTES; i++) {
        plain[i] = (uint8_t)(i * i >> 7);
    }
    for (uint32_t options = 0; options < 32; options++) {
        LZ4F_preferences_t preferences = {0};
        preferences.frameInfo.blockMode = options & 1 ? LZ4F_blockLinked : LZ4F_blockIndependent;
        preferences.frameInfo.blockSizeID = options & 2 ? LZ4F_max256KB : LZ4F_max64KB;
        preferences.frameInfo.blockChecksumFlag = (options & 4) != 0;
        preferences.frameInfo.contentChecksumFlag = (options & 8) != 0;
        preferences.frameInfo.contentSize = options & 16 ? PLAIN_BYTES : 0;
        size_t bound = LZ4F_compressFrameBound(PLAIN_BYTES, &preferences);
        uint8_t *frame = malloc(bound);
        size_t bytes = LZ4F_compressFrame(frame, bound, plain, PLAIN_BYTES, &preferences);
        size_t made;
        assert_int_equal(lz4_frame_decompress((struct span){frame, bytes},
                                              (struct span_mut){into, PLAIN_BYTES}, &made),
                         KAFKA_CODEC_OK);
        assert_int_equal(made, PLAIN_BYTES);
        assert_memory_equal(into, plain, PLAIN_BYTES);
        frame[6] ^= 1; /* somewhere in the descriptor or its checksum */
        assert_int_equal(lz4_frame_decompress((struct span){frame, bytes},
                                              (struct span_mut){into, PLAIN_BYTES}, &made),
                         KAFKA_CODEC_BAD);
        frame[6] ^= 1;
        if (options & 8) {
            frame[bytes - 1] ^= 1;
            assert_int_equal(lz4_frame_decompress((struct span){frame, bytes},
                                                  (struct span_mut){into, PLAIN_BYTES}, &made),
                             KAFKA_CODEC_BAD);
        }
        free(frame);
    }
    free(plain);
    free(into);
}

static void test_decompress_when_a_dictionary_is_wanted_then_bad(void **state)
{
    uint8_t frame[] = {0x04, 0x22, 0x4D, 0x18, 0x61, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    frame[10] = (uint8_t)(lz4_frame_xxh32((struct span){frame + 4, 6}) >> 8);
    uint8_t into[64];
    size_t made;
    assert_int_equal(lz4_frame_decompress((struct span){frame, sizeof(frame)},
                                          (struct span_mut){into, sizeof(into)}, &made),
                     KAFKA_CODEC_BAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_xxh32_when_vectors_then_value),
        cmocka_unit_test(test_decompress_when_any_frame_option_then_equal),
        cmocka_unit_test(test_decompress_when_a_dictionary_is_wanted_then_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
