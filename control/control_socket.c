/* SPDX-License-Identifier: Apache-2.0 */
/* See control_socket.h. A connection goes reading -> working -> writing -> closed; each poll moves
 * every connection as far as it can go without waiting. A client that says nothing is closed when
 * its place is wanted. */
#include "control/control_socket.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum client_state {
    CLIENT_FREE = 0,
    CLIENT_READING,
    CLIENT_WORKING,
    CLIENT_WRITING,
};

struct client {
    enum client_state state;
    int fd;
    uint64_t ticket;
    size_t request_bytes;
    char request[CONTROL_SOCKET_REQUEST_BYTES];
    char *answer; /* owned */
    size_t answer_bytes;
    size_t sent_bytes;
};

struct control_socket {
    int fd;
    char path[CONTROL_SOCKET_PATH_BYTES];
    uint32_t turn; /* whose place is taken next when all are busy reading */
    struct client clients[CONTROL_SOCKET_CLIENTS_MAX];
};

static int fill_address(const char *path, struct sockaddr_un *out, struct error *error)
{
    ASSERT(path != NULL);
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    static_assert(CONTROL_SOCKET_PATH_BYTES <= sizeof(out->sun_path), "the kernel's limit");
    if (strlen(path) >= CONTROL_SOCKET_PATH_BYTES) {
        return error_set(error, -ENAMETOOLONG, "%s is longer than %d bytes", path,
                         CONTROL_SOCKET_PATH_BYTES - 1);
    }
    memcpy(out->sun_path, path, strlen(path));
    return 0;
}

/* A socket file stays behind a process that was killed: connecting tells the living from the dead.
 * Anything but a socket is left alone. */
static int clear_stale(const char *path, const struct sockaddr_un *address, struct error *error)
{
    ASSERT(address->sun_family == AF_UNIX);
    struct stat status;
    if (lstat(path, &status) != 0) {
        return errno == ENOENT ? 0 : error_set(error, -errno, "%s: %s", path, strerror(errno));
    }
    if (!S_ISSOCK(status.st_mode)) {
        return error_set(error, -EEXIST, "%s is there and is no socket", path);
    }
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return error_set(error, -errno, "no socket: %s", strerror(errno));
    }
    const bool lives = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0;
    (void)close(fd);
    if (lives) {
        return error_set(error, -EADDRINUSE, "another process listens at %s", path);
    }
    return unlink(path) == 0 ? 0 : error_set(error, -errno, "%s: %s", path, strerror(errno));
}

/* The mask makes the socket the owner's from its first moment on. */
static int listen_at(int fd, const struct sockaddr_un *address)
{
    ASSERT(fd >= 0);
    const mode_t mask = umask(0177);
    const int status = bind(fd, (const struct sockaddr *)address, sizeof(*address));
    (void)umask(mask);
    return status == 0 && listen(fd, CONTROL_SOCKET_CLIENTS_MAX) == 0 ? 0 : -errno;
}

int control_socket_open(const char *path, struct control_socket **out, struct error *error)
{
    ASSERT(path != NULL && path[0] != '\0');
    ASSERT(out != NULL);
    struct sockaddr_un address;
    int status = fill_address(path, &address, error);
    if (status == 0) {
        status = clear_stale(path, &address, error);
    }
    if (status != 0) {
        return status;
    }
    struct control_socket *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return error_set(error, -ENOMEM, "out of memory");
    }
    self->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    status = self->fd < 0 ? -errno : listen_at(self->fd, &address);
    if (status != 0) {
        if (self->fd >= 0) {
            (void)close(self->fd);
        }
        free(self);
        return error_set(error, status, "cannot listen at %s: %s", path, strerror(-status));
    }
    memcpy(self->path, address.sun_path, sizeof(self->path));
    *out = self;
    return 0;
}

static void drop(struct client *client)
{
    ASSERT(client->state != CLIENT_FREE);
    (void)close(client->fd);
    free(client->answer);
    *client = (struct client){0};
}

void control_socket_close(struct control_socket *socket)
{
    if (socket == NULL) {
        return;
    }
    for (uint32_t i = 0; i < CONTROL_SOCKET_CLIENTS_MAX; i++) {
        if (socket->clients[i].state != CLIENT_FREE) {
            drop(&socket->clients[i]);
        }
    }
    (void)close(socket->fd);
    (void)unlink(socket->path);
    free(socket);
}

/* A free place, else that of a client that has not asked anything yet. */
static struct client *find_place(struct control_socket *self)
{
    ASSERT(self->fd >= 0);
    for (uint32_t i = 0; i < CONTROL_SOCKET_CLIENTS_MAX; i++) {
        if (self->clients[i].state == CLIENT_FREE) {
            return &self->clients[i];
        }
    }
    for (uint32_t i = 0; i < CONTROL_SOCKET_CLIENTS_MAX; i++) {
        struct client *client = &self->clients[self->turn++ % CONTROL_SOCKET_CLIENTS_MAX];
        if (client->state == CLIENT_READING) {
            drop(client);
            return client;
        }
    }
    return NULL;
}

static void accept_one(struct control_socket *self)
{
    ASSERT(self->fd >= 0);
    const int fd = accept4(self->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return;
    }
    struct client *client = find_place(self);
    if (client == NULL) {
        (void)close(fd);
        return;
    }
    *client = (struct client){.state = CLIENT_READING, .fd = fd};
}

static void read_request(struct client *client)
{
    ASSERT(client->request_bytes < sizeof(client->request));
    const ssize_t bytes = recv(client->fd, client->request + client->request_bytes,
                               sizeof(client->request) - client->request_bytes, 0);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (bytes <= 0) {
        drop(client);
        return;
    }
    client->request_bytes += (size_t)bytes;
    char *end = memchr(client->request, '\n', client->request_bytes);
    if (end != NULL) {
        *end = '\0';
        client->state = CLIENT_WORKING;
    } else if (client->request_bytes == sizeof(client->request)) {
        drop(client);
    }
}

/* The answer is cut at its limit: it is for people. */
static void work(struct client *client, control_socket_fn *handler, void *context)
{
    ASSERT(client->answer == NULL);
    char *answer = NULL;
    size_t bytes = 0;
    FILE *into = open_memstream(&answer, &bytes);
    if (into == NULL) {
        drop(client);
        return;
    }
    const bool is_answered = handler(context, client->request, &client->ticket, into);
    (void)fclose(into);
    if (!is_answered) {
        free(answer);
        return;
    }
    client->answer = answer;
    client->answer_bytes =
        bytes < CONTROL_SOCKET_ANSWER_BYTES ? bytes : CONTROL_SOCKET_ANSWER_BYTES;
    client->state = CLIENT_WRITING;
}

static void write_answer(struct client *client)
{
    ASSERT(client->sent_bytes <= client->answer_bytes);
    const size_t left = client->answer_bytes - client->sent_bytes;
    const ssize_t bytes =
        left == 0 ? 0 : send(client->fd, client->answer + client->sent_bytes, left, MSG_NOSIGNAL);
    if (bytes < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            drop(client);
        }
        return;
    }
    client->sent_bytes += (size_t)bytes;
    if (client->sent_bytes == client->answer_bytes) {
        drop(client);
    }
}

void control_socket_poll(struct control_socket *socket, control_socket_fn *handler, void *context)
{
    ASSERT(socket != NULL && handler != NULL);
    accept_one(socket);
    for (uint32_t i = 0; i < CONTROL_SOCKET_CLIENTS_MAX; i++) {
        struct client *client = &socket->clients[i];
        if (client->state == CLIENT_READING) {
            read_request(client);
        }
        if (client->state == CLIENT_WORKING) {
            work(client, handler, context);
        }
        if (client->state == CLIENT_WRITING) {
            write_answer(client);
        }
    }
}

/* Copies the answer to into as it comes. failed tells whether it begins with "error:". */
static int copy_answer(int fd, uint64_t timeout_ms, FILE *into, bool *failed)
{
    ASSERT(fd >= 0);
    static const char mark[] = "error:";
    char bytes[4096];
    size_t total = 0;
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        const int ready = poll(&wait, 1, (int)timeout_ms);
        if (ready <= 0) {
            return ready == 0 ? -ETIMEDOUT : -errno;
        }
        const ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
        if (got <= 0) {
            return got == 0 && total > 0 ? 0 : -ECONNRESET;
        }
        if (total == 0) {
            *failed = (size_t)got >= strlen(mark) && memcmp(bytes, mark, strlen(mark)) == 0;
        }
        total += (size_t)got;
        (void)fwrite(bytes, 1, (size_t)got, into);
    }
}

int control_socket_ask(const char *path, const char *request, uint64_t timeout_ms, FILE *into,
                       struct error *error)
{
    ASSERT(path != NULL && request != NULL);
    ASSERT(timeout_ms <= INT32_MAX);
    struct sockaddr_un address;
    bool failed = false;
    int status = fill_address(path, &address, error);
    if (status != 0) {
        return status;
    }
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        status = error_set(error, -errno, "nobody listens at %s: %s", path, strerror(errno));
    } else if (dprintf(fd, "%s\n", request) < 0) {
        status = error_set(error, -errno, "%s: %s", path, strerror(errno));
    } else {
        status = copy_answer(fd, timeout_ms, into, &failed);
        if (status != 0) {
            status = error_set(error, status, "no answer at %s: %s", path, strerror(-status));
        } else if (failed) {
            status = -EREMOTEIO;
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}
