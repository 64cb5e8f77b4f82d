/* SPDX-License-Identifier: Apache-2.0 */
/* What every layer needs and nothing more: assert kinds, byte spans, wire byte order, the error
 * that control-path functions fill in, and the unit of time. Nothing here allocates or blocks. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Stops the process at a broken invariant, in every build. Never guards input from outside. */
#define ASSERT(condition)                                                                          \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0)) {                                                   \
            assert_failed(#condition, __FILE__, __LINE__);                                         \
        }                                                                                          \
    } while (0)

/* As ASSERT, for checks that cost: debug, fuzz and simulation builds only. */
#ifdef PENSTOCK_SLOW_ASSERTS
#define ASSERT_SLOW(condition) ASSERT(condition)
#else
#define ASSERT_SLOW(condition) ((void)sizeof(condition))
#endif

/* Prints the failed condition and its place to stderr, then aborts.
 * threads  any */
static inline __attribute__((noreturn, cold)) void assert_failed(const char *condition,
                                                                 const char *file, int line)
{
    extern int dprintf(int, const char *, ...);
    (void)dprintf(2, "%s:%d: assertion failed: %s\n", file, line, condition);
    __builtin_trap();
}

#define COUNT_OF(array)   (sizeof(array) / sizeof((array)[0]))
#define CACHE_LINE_BYTES  64
#define NANOSECONDS_PER_S UINT64_C(1000000000)
#define LIKELY(x)         __builtin_expect(!!(x), 1)
#define UNLIKELY(x)       __builtin_expect(!!(x), 0)

/* Bytes that somebody else owns, read only. data may be NULL when bytes is 0. */
struct span {
    const uint8_t *data;
    size_t bytes;
};

/* Bytes that somebody else owns, writable. */
struct span_mut {
    uint8_t *data;
    size_t bytes;
};

#define ERROR_TEXT_BYTES  512
#define ERROR_PLACE_BYTES 256

/* Why a control-path function failed, in words for the user. Filled by the callee beside its
 * -errno; place is a file name or a configuration key, line and column count from 1, 0 when they
 * do not apply. Zero-initialise before the call. */
struct error {
    char text[ERROR_TEXT_BYTES];
    char place[ERROR_PLACE_BYTES];
    uint32_t line;
    uint32_t column;
};

/* Fills out->text by printf rules, cutting what is too long; keeps place, line and column.
 * out      may be NULL: then nothing happens
 * returns  code, so that a caller can write: return error_set(out, -EINVAL, "…");
 * threads  any */
static inline __attribute__((format(printf, 3, 4))) int error_set(struct error *out, int code,
                                                                  const char *format, ...)
{
    extern int vsnprintf(char *, size_t, const char *, __builtin_va_list);
    if (out != NULL) {
        __builtin_va_list arguments;
        __builtin_va_start(arguments, format);
        (void)vsnprintf(out->text, sizeof(out->text), format, arguments);
        __builtin_va_end(arguments);
    }
    return code;
}

/* Loads big-endian integers from unaligned wire bytes.
 * from     at least as many readable bytes as the name says
 * threads  any */
static inline uint16_t load_be16(const uint8_t *from)
{
    uint16_t value;
    memcpy(&value, from, sizeof(value));
    return __builtin_bswap16(value);
}

/* As load_be16, 4 bytes. */
static inline uint32_t load_be32(const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof(value));
    return __builtin_bswap32(value);
}

/* As load_be16, 8 bytes. */
static inline uint64_t load_be64(const uint8_t *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof(value));
    return __builtin_bswap64(value);
}

/* Stores value big-endian at an unaligned place.
 * into     at least as many writable bytes as the name says
 * threads  any */
static inline void store_be16(uint8_t *into, uint16_t value)
{
    value = __builtin_bswap16(value);
    memcpy(into, &value, sizeof(value));
}

/* As store_be16, 4 bytes. */
static inline void store_be32(uint8_t *into, uint32_t value)
{
    value = __builtin_bswap32(value);
    memcpy(into, &value, sizeof(value));
}

/* As store_be16, 8 bytes. */
static inline void store_be64(uint8_t *into, uint64_t value)
{
    value = __builtin_bswap64(value);
    memcpy(into, &value, sizeof(value));
}

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "load_be and store_be assume it");
