/* SPDX-License-Identifier: Apache-2.0 */
/* The running box's ear: a Unix socket that takes one request a connection, a line of words, and
 * answers with text. `penstock ctl` is its client. It is polled by the control loop and never
 * blocks it; what takes longer (a checkpoint, a stop) is asked for again at each poll until its
 * answer is ready.
 *
 * Limits: CONTROL_SOCKET_CLIENTS_MAX connections at once, requests of CONTROL_SOCKET_REQUEST_BYTES,
 * answers of CONTROL_SOCKET_ANSWER_BYTES. Only the owner of the process may connect (mode 0600). */
#pragma once

#include <stdio.h>

#include "base.h"

#define CONTROL_SOCKET_CLIENTS_MAX   8
#define CONTROL_SOCKET_REQUEST_BYTES 256
#define CONTROL_SOCKET_ANSWER_BYTES  65536
#define CONTROL_SOCKET_PATH_BYTES    104

struct control_socket;

/* Works on a request.
 * request  its words, without the end of line
 * ticket   0 at the first call of a request; the handler's to use until it is answered
 * answer   what the client gets; written only by the call that returns true
 * returns  true when it is answered, false to be called again at the next poll */
typedef bool control_socket_fn(void *context, const char *request, uint64_t *ticket, FILE *answer);

/* Listens at path. A socket there that nobody listens at any more is replaced; one of a living
 * process is an error.
 * out      closed by control_socket_close
 * returns  0 or -errno with the reason
 * threads  control */
int control_socket_open(const char *path, struct control_socket **out, struct error *error);

/* Closes connections and removes the socket. NULL is fine.
 * threads  control */
void control_socket_close(struct control_socket *socket);

/* Accepts, reads, works and answers, as far as that goes without waiting.
 * threads  control */
void control_socket_poll(struct control_socket *socket, control_socket_fn *handler, void *context);

/* Sends one request and prints the answer, for the client's side. An answer whose first word is
 * "error:" is a failure.
 * timeout_ms  how long the answer may take
 * returns     0, -EREMOTEIO for a failure that was told, or -errno with the reason */
int control_socket_ask(const char *path, const char *request, uint64_t timeout_ms, FILE *into,
                       struct error *error);
