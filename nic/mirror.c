/* SPDX-License-Identifier: Apache-2.0 */
/* One memfd, mapped twice over a reserved stretch of addresses. The file is closed once mapped, so
 * the memory goes with the process and nothing is left in a file system. */
#include "nic/mirror.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* Reserve first, then map both halves over it: nobody else can get the second half in between. */
static int map_halves(struct mirror *mirror, int file, size_t alignment)
{
    ASSERT(mirror != NULL);
    size_t bytes = mirror->bytes;
    size_t reserve = bytes * 2 + alignment;
    uint8_t *base = mmap(NULL, reserve, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        return -errno;
    }
    size_t skip = (alignment - (uintptr_t)base % alignment) % alignment;
    mirror->data = base + skip;
    if (skip > 0) {
        (void)munmap(base, skip);
    }
    if (alignment > skip) {
        (void)munmap(base + skip + bytes * 2, alignment - skip);
    }
    for (int half = 0; half < 2; half++) {
        void *at = mmap(mirror->data + (size_t)half * bytes, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED | MAP_POPULATE, file, 0);
        if (at == MAP_FAILED) {
            return -errno;
        }
    }
    return 0;
}

static void touch(struct mirror *mirror)
{
    ASSERT(mirror != NULL);
    ASSERT(mirror->data != NULL);
    memset(mirror->data, 0, mirror->bytes);
    /* Both mappings, so that no first access on a poll core faults. */
    for (size_t at = 0; at < mirror->bytes * 2; at += 4096) {
        *(volatile uint8_t *)(mirror->data + at) = 0;
    }
}

int mirror_init(struct mirror *mirror, size_t bytes, bool huge_pages, struct error *error)
{
    ASSERT(mirror != NULL);
    ASSERT(bytes > 0 && (bytes & (bytes - 1)) == 0);
    *mirror = (struct mirror){.bytes = bytes};
    size_t page = huge_pages ? MIRROR_HUGE_BYTES : (size_t)sysconf(_SC_PAGESIZE);
    if (bytes % page != 0) {
        return error_set(error, -EINVAL,
                         "a buffer of %zu bytes is no multiple of the %zu byte page", bytes, page);
    }
    int file = memfd_create("penstock-buffer", MFD_CLOEXEC | (huge_pages ? MFD_HUGETLB : 0u));
    if (file < 0) {
        return error_set(error, -errno, "cannot create a buffer of %zu bytes: %s", bytes,
                         strerror(errno));
    }
    int status = ftruncate(file, (off_t)bytes) == 0 ? 0 : -errno;
    if (status == 0) {
        status = map_halves(mirror, file, page);
    }
    (void)close(file);
    if (status != 0) {
        mirror_fini(mirror);
        return error_set(error, status, "cannot map a buffer of %zu bytes%s: %s", bytes,
                         huge_pages ? " in 2 MiB hugepages (reserve more of them)" : "",
                         strerror(-status));
    }
    touch(mirror);
    return 0;
}

void mirror_fini(struct mirror *mirror)
{
    ASSERT(mirror != NULL);
    if (mirror->data != NULL) {
        (void)munmap(mirror->data, mirror->bytes * 2);
    }
    *mirror = (struct mirror){0};
}
