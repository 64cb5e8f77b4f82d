/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that can and cannot be a disk, and what an identity is made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "state/disk_file.h"

#define FILE_BYTES (UINT64_C(1) << 20)

static void expect(const char *path, uint64_t bytes, int expected, const char *words)
{
    struct disk_file file;
    struct error error = {0};
    assert_int_equal(disk_file_open(path, bytes, &file, &error), expected);
    assert_int_equal(file.fd, -1);
    if (strstr(error.text, words) == NULL) {
        fail_msg("'%s' does not say '%s'", error.text, words);
    }
}

static int make_folder(void **state)
{
    char name[] = "disk_file.XXXXXX";
    assert_non_null(mkdtemp(name));
    assert_int_equal(chdir(name), 0);
    *state = strdup(name);
    return 0;
}

static int remove_folder(void **state)
{
    (void)unlink("file");
    (void)unlink("copy");
    assert_int_equal(chdir(".."), 0);
    assert_int_equal(rmdir(*state), 0);
    free(*state);
    return 0;
}

static void test_open_when_absent_then_made_whole(void **state)
{
    (void)state;
    struct disk_file file;
    struct error error = {0};
    assert_int_equal(disk_file_open("file", FILE_BYTES, &file, &error), 0);
    assert_int_equal(file.bytes, FILE_BYTES);
    assert_false(file.is_block);
    struct stat about;
    assert_int_equal(stat("file", &about), 0);
    assert_int_equal(about.st_size, FILE_BYTES);
    assert_true(about.st_blocks * 512 >= (off_t)FILE_BYTES); /* no hole is left to be filled */
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(close(file.fd), 0);
}

static void test_open_when_there_then_keeps_its_size_and_identity(void **state)
{
    (void)state;
    struct disk_file file, again, copy;
    assert_int_equal(disk_file_open("file", FILE_BYTES, &file, NULL), 0);
    assert_int_equal(close(file.fd), 0);
    assert_int_equal(disk_file_open("file", 2 * FILE_BYTES, &again, NULL), 0);
    assert_int_equal(again.bytes, FILE_BYTES);
    assert_int_equal(again.identity, file.identity);
    assert_int_equal(disk_file_open("copy", FILE_BYTES, &copy, NULL), 0);
    assert_true(copy.identity != file.identity);
    assert_int_equal(close(again.fd), 0);
    assert_int_equal(close(copy.fd), 0);
}

static void test_open_when_empty_then_given_its_bytes(void **state)
{
    (void)state;
    struct disk_file file;
    assert_int_equal(close(open("file", O_CREAT | O_WRONLY, 0600)), 0);
    assert_int_equal(disk_file_open("file", FILE_BYTES, &file, NULL), 0);
    assert_int_equal(file.bytes, FILE_BYTES);
    assert_int_equal(close(file.fd), 0);
}

static void test_open_when_no_disk_then_says_why(void **state)
{
    (void)state;
    expect(".", FILE_BYTES, -EISDIR, "folder");
    expect("file", 0, -ENOENT, "there is no");
    expect("none/file", FILE_BYTES, -ENOENT, "cannot make");
    expect("/dev/null", FILE_BYTES, -EINVAL, "neither");
    expect("", FILE_BYTES, -EINVAL, "empty");
    expect("file", FILE_BYTES + 1, -EINVAL, "multiple");
    assert_int_equal(close(open("file", O_CREAT | O_WRONLY, 0600)), 0);
    expect("file", 0, -EINVAL, "too small");
}

static void test_open_when_no_room_then_leaves_no_file(void **state)
{
    (void)state;
    expect("file", UINT64_C(1) << 50, -ENOSPC, "no room");
    assert_int_equal(access("file", F_OK), -1);
}

static void test_open_when_open_twice_then_busy(void **state)
{
    (void)state;
    struct disk_file file;
    assert_int_equal(disk_file_open("file", FILE_BYTES, &file, NULL), 0);
    expect("file", FILE_BYTES, -EBUSY, "another process");
    assert_int_equal(close(file.fd), 0);
    assert_int_equal(disk_file_open("file", FILE_BYTES, &file, NULL), 0);
    assert_int_equal(close(file.fd), 0);
}

/* A file as a loop device; skipped where that is not allowed.
 * returns  the descriptor that keeps it */
static int make_loop(char *path, size_t bytes)
{
    const int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    const int number = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);
    if (control >= 0) {
        (void)close(control);
    }
    (void)snprintf(path, bytes, "/dev/loop%d", number);
    const int loop = number < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
    struct disk_file file;
    if (loop < 0 || disk_file_open("file", FILE_BYTES, &file, NULL) != 0) {
        return -1;
    }
    const int status = ioctl(loop, LOOP_SET_FD, file.fd);
    (void)close(file.fd);
    if (status != 0) {
        (void)close(loop);
        return -1;
    }
    return loop;
}

static void test_open_when_a_block_device_then_whole_and_held_alone(void **state)
{
    (void)state;
    char path[64];
    const int loop = make_loop(path, sizeof(path));
    if (loop < 0) {
        skip();
    }
    struct disk_file file, again;
    struct error error = {0};
    const int status = disk_file_open(path, 0, &file, &error);
    if (status == 0) {
        expect(path, 0, -EBUSY, "mounted or used");
        assert_true(file.is_block);
        assert_int_equal(file.bytes, FILE_BYTES);
        assert_int_equal(close(file.fd), 0);
        assert_int_equal(disk_file_open(path, FILE_BYTES * 4, &again, NULL), 0);
        assert_int_equal(again.bytes, FILE_BYTES); /* a device has the size it has */
        assert_int_equal(again.identity, file.identity);
        assert_int_equal(close(again.fd), 0);
    }
    (void)ioctl(loop, LOOP_CLR_FD);
    (void)close(loop);
    assert_int_equal(status, 0);
}

/* The device under the root folder is mounted; skipped where that cannot be seen. */
static void test_open_when_mounted_then_busy(void **state)
{
    (void)state;
    struct stat about;
    char path[64], name[128], device[160];
    assert_int_equal(stat("/", &about), 0);
    (void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(about.st_dev),
                   minor(about.st_dev));
    const ssize_t length = readlink(path, name, sizeof(name) - 1);
    if (length <= 0 || geteuid() != 0) {
        skip();
    }
    name[length] = '\0';
    (void)snprintf(device, sizeof(device), "/dev/%s", strrchr(name, '/') + 1);
    const int fd = open(device, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        skip();
    }
    assert_int_equal(close(fd), 0);
    expect(device, 0, -EBUSY, "mounted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_open_when_absent_then_made_whole, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_open_when_there_then_keeps_its_size_and_identity,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_open_when_empty_then_given_its_bytes, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_open_when_no_disk_then_says_why, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_open_when_no_room_then_leaves_no_file, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_open_when_open_twice_then_busy, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_open_when_a_block_device_then_whole_and_held_alone,
                                        make_folder, remove_folder),
        cmocka_unit_test(test_open_when_mounted_then_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
