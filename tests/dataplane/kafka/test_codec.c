/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs: what the real libraries write comes back, damaged input and bombs are verdicts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lz4frame.h>
#include <stdlib.h>

#include "dataplane/kafka/codec.h"
#include "tests/sim/broker.h"
#include "tests/sim/broker_feed.h"

#define PLAIN_BYTES 300000

struct fixture {
    uint8_t *memory;
    struct kafka_codec *codec;
    uint8_t plain[PLAIN_BYTES];
    uint8_t into[PLAIN_BYTES + 64];
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    fixture->memory = aligned_alloc(64, (kafka_codec_bytes() + 63) & ~(size_t)63);
    fixture->codec = kafka_codec_init(fixture->memory);
    uint32_t noise = 1;
    for (size_t i = 0; i < PLAIN_BYTES; i++) {
        noise = noise * 1664525 + 1013904223;
        fixture->plain[i] = i / 1000 % 3 == 0 ? (uint8_t)(noise >> 24) : (uint8_t)(i / 50);
    }
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    free(fixture->memory);
    free(fixture);
    return 0;
}

static enum kafka_codec_verdict expand(struct fixture *fixture, int codec, struct bytes *in,
                                       size_t cap, size_t *out)
{
    return kafka_codec_decompress(fixture->codec, (uint8_t)codec,
                                  (struct span){in->data, in->count},
                                  (struct span_mut){fixture->into, cap}, out);
}

static void test_decompress_when_made_by_the_library_then_equal(void **state)
{
    struct fixture *fixture = *state;
    static const size_t sizes[] = {0, 1, 13, 1000, 65535, 65536, 65537, PLAIN_BYTES};
    for (int codec = 0; codec <= 4; codec++) {
        for (size_t i = 0; i < COUNT_OF(sizes) * 2; i++) {
            size_t bytes = sizes[i / 2];
            struct bytes in = {0};
            feed_compress(codec, i % 2, (struct span){fixture->plain, bytes}, &in);
            size_t made = 12345;
            assert_int_equal(expand(fixture, codec, &in, PLAIN_BYTES, &made), KAFKA_CODEC_OK);
            assert_int_equal(made, bytes);
            assert_memory_equal(fixture->into, fixture->plain, bytes);
            bytes_free(&in);
        }
    }
}

static void test_decompress_when_several_frames_then_joined(void **state)
{
    struct fixture *fixture = *state;
    static const int codecs[] = {1, 3, 4};
    for (size_t i = 0; i < COUNT_OF(codecs); i++) {
        struct bytes in = {0};
        feed_compress(codecs[i], false, (struct span){fixture->plain, 5000}, &in);
        feed_compress(codecs[i], false, (struct span){fixture->plain + 5000, 70000}, &in);
        size_t made;
        assert_int_equal(expand(fixture, codecs[i], &in, PLAIN_BYTES, &made), KAFKA_CODEC_OK);
        assert_int_equal(made, 75000);
        assert_memory_equal(fixture->into, fixture->plain, made);
        bytes_free(&in);
    }
}

static void test_decompress_when_above_the_cap_then_too_large(void **state)
{
    struct fixture *fixture = *state;
    memset(fixture->plain, 'a', PLAIN_BYTES);
    for (int codec = 0; codec <= 4; codec++) {
        struct bytes in = {0};
        feed_compress(codec, true, (struct span){fixture->plain, PLAIN_BYTES}, &in);
        size_t made;
        fixture->into[1000] = 0xA5;
        assert_int_equal(expand(fixture, codec, &in, 1000, &made), KAFKA_CODEC_TOO_LARGE);
        assert_int_equal(fixture->into[1000], 0xA5);
        bytes_free(&in);
    }
}

static void test_decompress_when_cut_or_flipped_then_never_crashes(void **state)
{
    struct fixture *fixture = *state;
    for (int codec = 1; codec <= 4; codec++) {
        for (int is_xerial = 0; is_xerial < 2; is_xerial++) {
            struct bytes in = {0};
            feed_compress(codec, is_xerial, (struct span){fixture->plain, 3000}, &in);
            size_t made;
            struct bytes cut = in;
            for (cut.count = 0; cut.count < in.count; cut.count++) {
                enum kafka_codec_verdict verdict = expand(fixture, codec, &cut, 4000, &made);
                assert_true(verdict != KAFKA_CODEC_OK || made < 3000);
            }
            for (size_t i = 0; i < in.count; i++) {
                in.data[i] ^= 0x10;
                (void)expand(fixture, codec, &in, 4000, &made);
                in.data[i] ^= 0x10;
            }
            bytes_free(&in);
        }
    }
}

static void test_gzip_when_checksum_is_wrong_then_bad(void **state)
{
    struct fixture *fixture = *state;
    struct bytes in = {0};
    feed_compress(1, false, (struct span){fixture->plain, 3000}, &in);
    in.data[in.count - 6] ^= 1;
    size_t made;
    assert_int_equal(expand(fixture, 1, &in, 4000, &made), KAFKA_CODEC_BAD);
    bytes_free(&in);
}

static void test_zstd_when_legacy_magic_then_bad(void **state)
{
    struct fixture *fixture = *state;
    uint8_t old[32] = {0x27, 0xB5, 0x2F, 0xFD}; /* v0.7: its decoder would allocate */
    struct bytes in = {.data = old, .count = sizeof(old)};
    size_t made;
    assert_int_equal(expand(fixture, 4, &in, 4000, &made), KAFKA_CODEC_BAD);
}

static void test_decompress_when_codec_is_undefined_then_unknown(void **state)
{
    struct fixture *fixture = *state;
    struct bytes in = {.data = fixture->plain, .count = 10};
    size_t made;
    assert_int_equal(expand(fixture, 5, &in, 4000, &made), KAFKA_CODEC_UNKNOWN);
    assert_int_equal(expand(fixture, 7, &in, 4000, &made), KAFKA_CODEC_UNKNOWN);
}

static void test_lz4_compress_when_read_by_the_library_then_equal(void **state)
{
    struct fixture *fixture = *state;
    static const size_t sizes[] = {0, 1, 100, 65536, 65537, PLAIN_BYTES};
    size_t bound = kafka_codec_lz4_bytes_max(PLAIN_BYTES);
    uint8_t *frame = malloc(bound);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        size_t bytes =
            kafka_codec_lz4_compress(fixture->codec, (struct span){fixture->plain, sizes[i]},
                                     (struct span_mut){frame, bound});
        assert_true(bytes > 0 && bytes <= kafka_codec_lz4_bytes_max(sizes[i]));
        LZ4F_dctx *context;
        assert_false(LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)));
        size_t in_bytes = bytes;
        size_t out_bytes = sizeof(fixture->into);
        assert_int_equal(
            LZ4F_decompress(context, fixture->into, &out_bytes, frame, &in_bytes, NULL), 0);
        assert_int_equal(out_bytes, sizes[i]);
        assert_memory_equal(fixture->into, fixture->plain, sizes[i]);
        (void)LZ4F_freeDecompressionContext(context);
        assert_int_equal(kafka_codec_lz4_compress(fixture->codec,
                                                  (struct span){fixture->plain, sizes[i]},
                                                  (struct span_mut){frame, 10}),
                         0);
    }
    free(frame);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_decompress_when_made_by_the_library_then_equal, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_decompress_when_several_frames_then_joined, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_decompress_when_above_the_cap_then_too_large, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_decompress_when_cut_or_flipped_then_never_crashes,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_gzip_when_checksum_is_wrong_then_bad, setup, teardown),
        cmocka_unit_test_setup_teardown(test_zstd_when_legacy_magic_then_bad, setup, teardown),
        cmocka_unit_test_setup_teardown(test_decompress_when_codec_is_undefined_then_unknown, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_lz4_compress_when_read_by_the_library_then_equal,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
