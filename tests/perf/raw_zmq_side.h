/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the ZeroMQ baselines: a socket with bounded waits, and its address. */
#ifndef RAW_ZMQ_SIDE_H
#define RAW_ZMQ_SIDE_H

#include "raw_common.h"

#include <zmq.h>

#define RAW_ZMQ_ENDPOINT (PLX_ADDRESS_MAX + 40)

struct raw_zmq_side {
	void *context;
	void *socket;
};

/* Set ZeroMQ's error with that text. Returns -errno. */
int raw_zmq_failed(const char *what);

/* A socket of that type in the side's context, which the first call creates. NULL on error, with a
 * text. */
void *raw_zmq_socket(struct raw_zmq_side *side, int type);

/* Open the side's socket, and listen or connect as the options say. Return: 0; -errno. */
int raw_zmq_open(const struct raw_options *options, int type, struct raw_zmq_side *side);
int raw_zmq_meet(const struct raw_options *options, void *socket);
void raw_zmq_close(struct raw_zmq_side *side);

/* tcp://HOST:PORT for that port; a listening socket also prints it after "listening on". */
void raw_zmq_endpoint(const struct raw_options *options, const char *port,
		      char endpoint[RAW_ZMQ_ENDPOINT]);
void raw_zmq_where(void *socket, char endpoint[RAW_ZMQ_ENDPOINT]);
void raw_zmq_say_listening(void *socket);

/* After a failed receive: whether to retry. Return: 0; -errno. */
int raw_zmq_wait(struct raw_wait *wait, uint64_t limit_ns, const char *what);

/* Returns the size of the message; -errno. */
int raw_zmq_receive(void *socket, void *buffer, size_t size, uint64_t limit_ns, const char *what);

/* Return: 0; -errno. */
int raw_zmq_send(void *socket, const void *buffer, size_t size);

#endif
