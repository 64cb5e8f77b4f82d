/* SPDX-License-Identifier: Apache-2.0 */
/* Proof that a poll core does nothing forbidden after start: the whole box works on payments, and
 * once it is warm its lane is sealed, from within:
 *
 *   - every function of malloc's family traps when the sealed thread calls it
 *   - a seccomp filter kills the process at any system call but getrusage, which this test makes
 *   - the thread's page faults, minor and major, must not grow
 *
 * With an argument the lane does one forbidden thing on purpose (malloc, free, syscall, fault), and
 * the program must fail: without one, it runs itself once for each and expects just that. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/box/rig.h"

#define PAYMENTS    60000
#define WARM        30000
#define FAULT_PAGES 8

static _Thread_local bool is_sealed;

/* ---- malloc's family; glibc's own functions stand behind it ---- */

extern void *__libc_malloc(size_t bytes);
extern void __libc_free(void *memory);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t align, size_t bytes);

static void check_seal(void)
{
    if (is_sealed) {
        __builtin_trap(); /* abort would need a system call, which says something else */
    }
}

__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
    check_seal();
    return __libc_malloc(bytes);
}

__attribute__((visibility("default"))) void free(void *memory)
{
    check_seal();
    __libc_free(memory);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes)
{
    check_seal();
    return __libc_calloc(count, bytes);
}

__attribute__((visibility("default"))) void *realloc(void *memory, size_t bytes)
{
    check_seal();
    return __libc_realloc(memory, bytes);
}

__attribute__((visibility("default"))) void *memalign(size_t align, size_t bytes)
{
    check_seal();
    return __libc_memalign(align, bytes);
}

__attribute__((visibility("default"))) void *aligned_alloc(size_t align, size_t bytes)
{
    check_seal();
    return __libc_memalign(align, bytes);
}

__attribute__((visibility("default"))) int posix_memalign(void **out, size_t align, size_t bytes)
{
    check_seal();
    *out = __libc_memalign(align, bytes);
    return *out == NULL ? ENOMEM : 0;
}

/* ---- On the lane ---- */

struct proof {
    struct rusage before;
    struct rusage after;
    const char *breach; /* what to do on purpose; NULL nothing */
    uint8_t *pages;     /* never touched so far */
    void *block;
    int sealed; /* what the filter's installation returned */
};

static int install_filter(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_getrusage, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog program = {.len = COUNT_OF(code), .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return -errno;
    }
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0 ? -errno : 0;
}

static void seal(void *context, int64_t lane)
{
    struct proof *proof = context;
    proof->sealed = install_filter();
    (void)getrusage(RUSAGE_THREAD, &proof->before);
    is_sealed = true;
}

static void breach(void *context, int64_t lane)
{
    struct proof *proof = context;
    if (strcmp(proof->breach, "malloc") == 0) {
        proof->block = malloc(64);
    } else if (strcmp(proof->breach, "free") == 0) {
        free(proof->block);
    } else if (strcmp(proof->breach, "syscall") == 0) {
        (void)syscall(SYS_sched_yield);
    } else {
        for (uint32_t i = 0; i < FAULT_PAGES; i++) {
            *(volatile uint8_t *)&proof->pages[(size_t)i * 4096] = 1;
        }
    }
}

static void look(void *context, int64_t lane)
{
    struct proof *proof = context;
    (void)getrusage(RUSAGE_THREAD, &proof->after);
}

/* ---- The run ---- */

static int run(const char *script, const char *forbidden)
{
    static const char *const topics[] = {"scores", "alerts", "merchant_minute", NULL};
    const struct rig_config config = {
        .script_path = script,
        .cores = "receive: [0], operate: [0], transmit: [0]",
        .idle = "spin",
        .broker_core = 1,
        .payment_count = PAYMENTS,
        .rate = 20000,
        .partitions = 1,
        .topics = topics,
    };
    struct proof proof = {.breach = forbidden, .block = malloc(64)};
    struct rig *rig = rig_start(&config);
    proof.pages =
        mmap(NULL, FAULT_PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)madvise(proof.pages, FAULT_PAGES * 4096, MADV_NOHUGEPAGE);
    rig_begin(rig);
    if (!rig_wait(rig, WARM, 20)) {
        (void)fprintf(stderr, "the box does not answer\n");
        return 1;
    }
    rig_call(rig, 0, seal, &proof);
    if (proof.sealed != 0) {
        (void)fprintf(stderr, "skipped: no seccomp filter: %s\n", strerror(-proof.sealed));
        _exit(77);
    }
    if (forbidden != NULL) {
        rig_call(rig, 0, breach, &proof);
    }
    const bool answered = rig_wait(rig, PAYMENTS, 20);
    rig_call(rig, 0, look, &proof);
    const long minor = proof.after.ru_minflt - proof.before.ru_minflt;
    const long major = proof.after.ru_majflt - proof.before.ru_majflt;
    (void)printf("%s: %u payments on a sealed lane: %s; page faults: %ld minor, %ld major\n",
                 script, PAYMENTS - WARM, answered ? "all answered" : "not all answered", minor,
                 major);
    (void)fflush(stdout);
    return answered && minor == 0 && major == 0 ? 0 : 1;
}

/* Runs this program; a signal counts as 128 and its number. */
static int run_apart(const char *script, const char *forbidden)
{
    int status = 1;
    const pid_t child = fork();
    if (child == 0) {
        (void)execl("/proc/self/exe", "lane_purity", script, forbidden, (char *)NULL);
        _exit(126);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        return 126;
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

struct expectation {
    const char *script;
    const char *forbidden;
    int code;
};

int main(int argc, char **argv)
{
    static const struct expectation expectations[] = {
        {"configs/fraud/job.sql", NULL, 0},
        {"tests/bench/stay_project.sql", "malloc", 128 + SIGILL},
        {"tests/bench/stay_project.sql", "free", 128 + SIGILL},
        {"tests/bench/stay_project.sql", "syscall", 128 + SIGSYS},
        {"tests/bench/stay_project.sql", "fault", 1},
    };
    if (argc > 1) {
        /* The lane's thread may not even end: that takes a system call. */
        _exit(run(argv[1], argc > 2 ? argv[2] : NULL));
    }
    for (size_t i = 0; i < COUNT_OF(expectations); i++) {
        const struct expectation *want = &expectations[i];
        const char *name = want->forbidden == NULL ? "nothing forbidden" : want->forbidden;
        const int code = run_apart(want->script, want->forbidden);
        (void)printf("%s: exit %d, wanted %d\n", name, code, want->code);
        (void)fflush(stdout);
        if (code != want->code) {
            return code == 77 ? 77 : 1;
        }
    }
    return 0;
}
