/* SPDX-License-Identifier: Apache-2.0 */
/* Files and block devices for checkpoints. The identity is meant to survive a restart of the
 * machine and to change when the content is copied elsewhere: for a file its file system's id and
 * its inode, for a device its world-wide or partition id where the kernel tells one. */
#include "state/disk_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "state/checksum.h"
#include "state/disk.h"

#define PATH_BYTES_MAX 4096U
#define TEXT_BYTES_MAX 256U
#define LOCK_TRIES     100U
#define LOCK_PAUSE_NS  20000000

/* Syncs the folder that a path is in, so that the file's name is durable. */
static int sync_folder(const char *path, struct error *error)
{
    char folder[PATH_BYTES_MAX];
    const char *slash = strrchr(path, '/');
    const size_t length = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    ASSERT(length < sizeof(folder));
    memcpy(folder, path, length);
    folder[length] = '\0';
    const int fd = open(length == 0 ? "." : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0) {
        const int code = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        return error_set(error, -code, "cannot sync the folder of %s: %s", path, strerror(code));
    }
    (void)close(fd);
    return 0;
}

/* Gives an empty file all of its bytes now, so that writing never has to. */
static int allocate(int fd, const char *path, uint64_t bytes, struct error *error)
{
    ASSERT(bytes != 0);
    int code = fallocate(fd, 0, 0, (off_t)bytes) == 0 ? 0 : errno;
    if (code == EOPNOTSUPP) { /* formatting writes every byte, which allocates as well */
        code = ftruncate(fd, (off_t)bytes) == 0 ? 0 : errno;
    }
    if (code == ENOSPC || code == EDQUOT || code == EFBIG) {
        return error_set(error, -ENOSPC, "there is no room for the %llu bytes of %s",
                         (unsigned long long)bytes, path);
    }
    if (code != 0 || fsync(fd) != 0) {
        code = code != 0 ? code : errno;
        return error_set(error, -code, "cannot allocate %llu bytes for %s: %s",
                         (unsigned long long)bytes, path, strerror(code));
    }
    return 0;
}

static void pause_for_lock(void)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
    (void)nanosleep(&pause, NULL);
}

/* A killed process's ring holds its files, and with them the lock, until its last request is done,
 * which is what makes the lock safe: so a lock that is held is waited for, for a moment. */
static int lock(int fd, const char *path, struct error *error)
{
    int code = EWOULDBLOCK;
    for (uint32_t tries = 0; tries < LOCK_TRIES && code == EWOULDBLOCK; tries++) {
        if (tries != 0) {
            pause_for_lock();
        }
        code = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    }
    if (code != 0) {
        return error_set(error, code == EWOULDBLOCK ? -EBUSY : -code,
                         code == EWOULDBLOCK ? "another process uses %s" : "cannot lock %s", path);
    }
    return 0;
}

/* Opens what is there.
 * returns  the descriptor, or -errno: -ENOENT without a reason */
static int open_existing(const char *path, bool *is_block, struct error *error)
{
    struct stat about;
    if (stat(path, &about) != 0) {
        const int code = errno;
        return code == ENOENT
                   ? -ENOENT
                   : error_set(error, -code, "cannot look at %s: %s", path, strerror(code));
    }
    *is_block = S_ISBLK(about.st_mode);
    if (S_ISDIR(about.st_mode)) {
        return error_set(error, -EISDIR, "%s is a folder; a file or a block device is wanted",
                         path);
    }
    if (!S_ISREG(about.st_mode) && !*is_block) {
        return error_set(error, -EINVAL, "%s is neither a file nor a block device", path);
    }
    int fd = -1, code = EBUSY;
    for (uint32_t tries = 0; tries < LOCK_TRIES && code == EBUSY; tries++) {
        if (tries != 0) {
            pause_for_lock();
        }
        fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC | (*is_block ? O_EXCL : 0));
        code = fd >= 0 ? 0 : errno;
    }
    if (fd < 0 && code == EBUSY) {
        return error_set(error, -EBUSY, "%s is mounted or used by another program", path);
    }
    if (fd < 0 && code == EINVAL) {
        return error_set(error, -EINVAL, "the file system of %s cannot do direct I/O", path);
    }
    return fd >= 0 ? fd : error_set(error, -code, "cannot open %s: %s", path, strerror(code));
}

/* Makes a file. One that could not get its bytes is taken away again. */
static int create(const char *path, uint64_t bytes, struct error *error)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0600);
    if (fd < 0) {
        const int code = errno;
        return error_set(error, -code, "cannot make %s: %s", path,
                         code == EINVAL ? "its file system cannot do direct I/O" : strerror(code));
    }
    int status = lock(fd, path, error);
    status = status != 0 ? status : allocate(fd, path, bytes, error);
    status = status != 0 ? status : sync_folder(path, error);
    if (status != 0) {
        (void)unlink(path);
        (void)close(fd);
        return status;
    }
    return fd;
}

static int measure_block(int fd, const char *path, uint64_t *bytes, struct error *error)
{
    int sector_bytes = 0, is_read_only = 0;
    if (ioctl(fd, BLKGETSIZE64, bytes) != 0 || ioctl(fd, BLKSSZGET, &sector_bytes) != 0 ||
        ioctl(fd, BLKROGET, &is_read_only) != 0) {
        const int code = errno;
        return error_set(error, -code, "cannot measure %s: %s", path, strerror(code));
    }
    if (is_read_only != 0) {
        return error_set(error, -EROFS, "%s is read only", path);
    }
    if (sector_bytes > (int)DISK_ALIGN_BYTES) {
        return error_set(error, -EINVAL, "%s has sectors of %d bytes, at most %u can be used", path,
                         sector_bytes, DISK_ALIGN_BYTES);
    }
    return 0;
}

/* Mixes a line of sysfs into a sum.
 * returns  whether there was one */
static bool mix_line(const char *path, uint8_t *text, size_t *length)
{
    ASSERT(*length <= TEXT_BYTES_MAX);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    const size_t got = fread(text + *length, 1, TEXT_BYTES_MAX - *length, file);
    (void)fclose(file);
    *length += got;
    return got > 1;
}

static uint64_t identify_block(const struct stat *about, uint64_t bytes)
{
    static const char *const names[] = {"wwid", "device/wwid", "device/serial", "serial"};
    uint8_t text[TEXT_BYTES_MAX];
    char path[PATH_BYTES_MAX];
    size_t length = sizeof(bytes);
    memcpy(text, &bytes, sizeof(bytes));
    bool is_found = false;
    for (size_t index = 0; index < 2 * COUNT_OF(names) && !is_found; index++) {
        /* A partition has its device's names one folder up, and its own start below. */
        (void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s%s", major(about->st_rdev),
                       minor(about->st_rdev), index < COUNT_OF(names) ? "" : "../",
                       names[index % COUNT_OF(names)]);
        is_found = mix_line(path, text, &length);
    }
    if (is_found) {
        (void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/start", major(about->st_rdev),
                       minor(about->st_rdev));
        (void)mix_line(path, text, &length);
    } else {
        const uint64_t number = about->st_rdev;
        memcpy(text + sizeof(bytes), &number, sizeof(number));
        length = sizeof(bytes) + sizeof(number);
    }
    return checksum_of(text, length).low;
}

static uint64_t identify_file(int fd, const struct stat *about)
{
    struct statfs system;
    uint64_t words[3] = {about->st_dev, about->st_ino, 0};
    /* ext4 and Btrfs make this of the file system's UUID; where it is zero the device must do. */
    static_assert(sizeof(system.f_fsid) == sizeof(words[0]), "two ints");
    if (fstatfs(fd, &system) == 0) {
        uint64_t id;
        memcpy(&id, &system.f_fsid, sizeof(id));
        words[0] = id != 0 ? id : words[0];
    }
    int generation = 0;
    if (ioctl(fd, FS_IOC_GETVERSION, &generation) == 0) {
        words[2] = (uint64_t)(uint32_t)generation;
    }
    return checksum_of(words, sizeof(words)).low;
}

static int measure(struct disk_file *file, const char *path, struct error *error)
{
    struct stat about;
    if (fstat(file->fd, &about) != 0) {
        const int code = errno;
        return error_set(error, -code, "cannot look at %s: %s", path, strerror(code));
    }
    int status = 0;
    file->bytes = (uint64_t)about.st_size;
    if (file->is_block) {
        status = measure_block(file->fd, path, &file->bytes, error);
    }
    file->bytes -= file->bytes % DISK_ALIGN_BYTES;
    if (status == 0 && file->bytes == 0) {
        status = error_set(error, -EINVAL, "%s is too small: it has not one block of %u bytes",
                           path, DISK_ALIGN_BYTES);
    }
    file->identity =
        file->is_block ? identify_block(&about, file->bytes) : identify_file(file->fd, &about);
    return status;
}

/* Opens what is there, or makes it; gives a file of no bytes its bytes. */
static int acquire(struct disk_file *file, const char *path, uint64_t bytes, struct error *error)
{
    file->fd = open_existing(path, &file->is_block, error);
    if (file->fd == -ENOENT) {
        file->fd = bytes != 0 ? create(path, bytes, error)
                              : error_set(error, -ENOENT, "there is no %s", path);
        return file->fd < 0 ? file->fd : 0;
    }
    if (file->fd < 0) {
        return file->fd;
    }
    int status = lock(file->fd, path, error);
    struct stat about;
    if (status == 0 && !file->is_block && bytes != 0 && fstat(file->fd, &about) == 0 &&
        about.st_size == 0) {
        status = allocate(file->fd, path, bytes, error);
    }
    /* A predecessor that crashed may have left name and content undurable. */
    if (status == 0 && fsync(file->fd) != 0) {
        const int code = errno;
        status = error_set(error, -code, "cannot sync %s: %s", path, strerror(code));
    }
    return status != 0 || file->is_block ? status : sync_folder(path, error);
}

int disk_file_open(const char *path, uint64_t bytes, struct disk_file *out, struct error *error)
{
    ASSERT(path != NULL && out != NULL);
    *out = (struct disk_file){.fd = -1};
    if (path[0] == '\0' || strlen(path) >= PATH_BYTES_MAX) {
        return error_set(error, -EINVAL, "the path of the checkpoint disk is empty or too long");
    }
    if (bytes % DISK_ALIGN_BYTES != 0) {
        return error_set(error, -EINVAL, "%s: a size of %llu bytes is no multiple of %u", path,
                         (unsigned long long)bytes, DISK_ALIGN_BYTES);
    }
    int status = acquire(out, path, bytes, error);
    status = status != 0 ? status : measure(out, path, error);
    if (status != 0) {
        if (out->fd >= 0) {
            (void)close(out->fd);
        }
        out->fd = -1;
    }
    return status;
}
