/* SPDX-License-Identifier: Apache-2.0 */
/* Says on stderr which seed a simulation was at when an assertion, a crash or a sanitizer ends it:
 * without that a failure among thousands of seeds is lost. The seed stands in a static cell since
 * a signal handler takes no argument. One simulation a process. */
#pragma once

#include <signal.h>
#include <stdint.h>
#include <unistd.h>

/* Of the sanitizers' runtime; absent in other builds. */
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

/* The cell that holds the seed in work.
 * threads  one */
static inline volatile uint64_t *seed_watch_cell(void)
{
    static volatile uint64_t seed;
    return &seed;
}

/* Writes "died at seed N"; calls nothing that a signal handler may not.
 * threads  one */
static inline void seed_watch_tell(void)
{
    char text[48] = "died at seed ";
    size_t length = sizeof("died at seed ") - 1;
    char digits[20];
    size_t count = 0;
    for (uint64_t rest = *seed_watch_cell(); count == 0 || rest > 0; rest /= 10) {
        digits[count++] = (char)('0' + rest % 10);
    }
    while (count > 0) {
        text[length++] = digits[--count];
    }
    text[length++] = '\n';
    ssize_t written = write(STDERR_FILENO, text, length);
    (void)written;
}

/* Tells, then lets the signal do what it does without a handler.
 * threads  one */
static inline void seed_watch_handle(int number)
{
    (void)number;
    seed_watch_tell();
}

/* Notes the seed that is about to run; the first call installs the handlers, but where a sanitizer
 * has its own.
 * threads  one */
static inline void seed_watch(uint64_t seed)
{
    static const int fatal[] = {SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE};
    *seed_watch_cell() = seed;
    struct sigaction ours = {.sa_handler = seed_watch_handle, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
        struct sigaction old;
        if (sigaction(fatal[i], NULL, &old) == 0 && (old.sa_flags & SA_SIGINFO) == 0 &&
            old.sa_handler == SIG_DFL) {
            (void)sigaction(fatal[i], &ours, NULL);
        }
    }
    if (__sanitizer_set_death_callback != NULL) {
        __sanitizer_set_death_callback(seed_watch_tell);
    }
}
