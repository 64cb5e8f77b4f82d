/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket: one request a connection, answers that come at once or later, and clients
 * that say nothing, too much, or go away. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/control_socket.h"

struct rig {
    char path[64];
    struct control_socket *socket;
    pthread_t thread;
    _Atomic bool stops;
    uint32_t calls;
};

/* "later" is answered at its third call, "no" is refused, all else is repeated. */
static bool handle(void *context, const char *request, uint64_t *ticket, FILE *answer)
{
    struct rig *rig = context;
    rig->calls++;
    if (strcmp(request, "later") == 0) {
        (*ticket)++;
        if (*ticket < 3) {
            return false;
        }
        (void)fprintf(answer, "at last %llu\n", (unsigned long long)*ticket);
        return true;
    }
    (void)fprintf(answer, strcmp(request, "no") == 0 ? "error: no\n" : "you said %s\n", request);
    return true;
}

static void *poll_it(void *argument)
{
    struct rig *rig = argument;
    while (!atomic_load(&rig->stops)) {
        control_socket_poll(rig->socket, handle, rig);
        (void)usleep(1000);
    }
    return NULL;
}

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    struct error error = {0};
    (void)snprintf(rig->path, sizeof(rig->path), "/tmp/penstock-test-%d.sock", getpid());
    assert_int_equal(control_socket_open(rig->path, &rig->socket, &error), 0);
    assert_int_equal(pthread_create(&rig->thread, NULL, poll_it, rig), 0);
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;
    atomic_store(&rig->stops, true);
    (void)pthread_join(rig->thread, NULL);
    control_socket_close(rig->socket);
    assert_int_not_equal(access(rig->path, F_OK), 0);
    free(rig);
    return 0;
}

static int ask(struct rig *rig, const char *request, char *into, size_t bytes)
{
    struct error error = {0};
    FILE *file = fmemopen(into, bytes, "w");
    const int status = control_socket_ask(rig->path, request, 5000, file, &error);
    (void)fclose(file);
    return status;
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void test_ask_when_answered_at_once_then_text(void **state)
{
    char text[128] = {0};
    assert_int_equal(ask(*state, "hello box", text, sizeof(text)), 0);
    assert_string_equal(text, "you said hello box\n");
}

static void test_ask_when_answered_later_then_called_again_with_its_ticket(void **state)
{
    char text[128] = {0};
    assert_int_equal(ask(*state, "later", text, sizeof(text)), 0);
    assert_string_equal(text, "at last 3\n");
}

static void test_ask_when_refused_then_eremoteio(void **state)
{
    char text[128] = {0};
    assert_int_equal(ask(*state, "no", text, sizeof(text)), -EREMOTEIO);
    assert_string_equal(text, "error: no\n");
}

static void test_poll_when_silent_clients_fill_all_places_then_the_next_is_served(void **state)
{
    struct rig *rig = *state;
    int fds[CONTROL_SOCKET_CLIENTS_MAX + 4];
    char text[128] = {0};
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = connect_to(rig->path);
        (void)usleep(3000);
    }
    assert_int_equal(ask(rig, "x", text, sizeof(text)), 0);
    assert_string_equal(text, "you said x\n");
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        (void)close(fds[i]);
    }
}

static void test_poll_when_a_request_is_too_long_then_it_is_hung_up_on(void **state)
{
    struct rig *rig = *state;
    char flood[CONTROL_SOCKET_REQUEST_BYTES];
    char byte = 0;
    memset(flood, 'x', sizeof(flood));
    const int fd = connect_to(rig->path);
    assert_int_equal(send(fd, flood, sizeof(flood), MSG_NOSIGNAL), sizeof(flood));
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    (void)close(fd);
    assert_int_equal(rig->calls, 0);
}

static void test_open_when_another_listens_then_in_use(void **state)
{
    struct rig *rig = *state;
    struct control_socket *second = NULL;
    struct error error = {0};
    assert_int_equal(control_socket_open(rig->path, &second, &error), -EADDRINUSE);
    assert_non_null(strstr(error.text, "another process listens"));
}

static void test_open_when_the_file_is_no_socket_then_it_is_left_alone(void **state)
{
    struct control_socket *socket = NULL;
    struct error error = {0};
    char path[] = "/tmp/penstock-test-XXXXXX";
    (void)state;
    const int fd = mkstemp(path);
    assert_int_equal(control_socket_open(path, &socket, &error), -EEXIST);
    assert_int_equal(access(path, F_OK), 0);
    (void)close(fd);
    (void)unlink(path);
}

static void test_open_when_its_process_was_killed_then_the_file_is_replaced(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct control_socket *socket_of_ours = NULL;
    struct error error = {0};
    struct stat status;
    (void)state;
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/penstock-stale-%d", getpid());
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    (void)close(fd);
    assert_int_equal(control_socket_open(address.sun_path, &socket_of_ours, &error), 0);
    assert_int_equal(stat(address.sun_path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    control_socket_close(socket_of_ours);
}

static void test_ask_when_nobody_listens_then_the_error_says_so(void **state)
{
    struct error error = {0};
    (void)state;
    assert_true(control_socket_ask("/tmp/penstock-nobody", "status", 100, stdout, &error) < 0);
    assert_non_null(strstr(error.text, "nobody listens"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ask_when_answered_at_once_then_text, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_ask_when_answered_later_then_called_again_with_its_ticket, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ask_when_refused_then_eremoteio, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_poll_when_silent_clients_fill_all_places_then_the_next_is_served, setup, teardown),
        cmocka_unit_test_setup_teardown(test_poll_when_a_request_is_too_long_then_it_is_hung_up_on,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_open_when_another_listens_then_in_use, setup,
                                        teardown),
        cmocka_unit_test(test_open_when_the_file_is_no_socket_then_it_is_left_alone),
        cmocka_unit_test(test_open_when_its_process_was_killed_then_the_file_is_replaced),
        cmocka_unit_test(test_ask_when_nobody_listens_then_the_error_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
