/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that speaks libfabric but need not follow our protocol: it sends any bytes that a test
 * chooses. */
#ifndef FABRIC_ROGUE_H
#define FABRIC_ROGUE_H

#include "frame.h"
#include "plx_fabric.h"

struct rogue;

/** Connect to host:port by the provider of the test, with the opening of a valid HELLO, or with
 * this private data; turns our loop meanwhile. Fails the test if that does not work. */
struct rogue *rogue_connect(const char *address);
struct rogue *rogue_connect_with(const char *address, const void *data, size_t length);

/** The same, and fail the test unless it is rejected with a HELLO. */
void rogue_expect_rejection(const char *address, const void *data, size_t length,
			    struct frame_hello *answer_out);

/** The HELLO, or its opening, with which it was accepted. */
struct frame_hello rogue_answer(const struct rogue *rogue);

/** Frames that have arrived, at most 8, and the whole HELLO if the first one is its rest. */
unsigned rogue_frames(struct rogue *rogue);
struct frame_hello rogue_whole_answer(const struct rogue *rogue);

/** Connect and say HELLO (NULL: a valid one), and wait until `server` is open. */
struct rogue *rogue_greet(const struct plx_listener *listener, const struct frame_hello *hello);
struct rogue *rogue_open(const struct plx_listener *listener, const struct frame_hello *hello);

/** Wait until the link of `server` has ended, for that reason, with that text. */
void rogue_expect_end(enum plx_link_reason reason, const char *part);

/** Send bytes as one libfabric message. */
void rogue_send(struct rogue *rogue, const void *bytes, size_t size);

/** Write bytes to its socket, as they are: only for Pollux's TCP provider. */
void rogue_write_raw(struct rogue *rogue, const void *bytes, size_t size);

/** Send a frame with that header, followed by `header.length` zero bytes. */
void rogue_send_frame(struct rogue *rogue, struct frame_header header);

/** Send a frame of that type that grants 8 frames, with this payload. */
void rogue_send_payload(struct rogue *rogue, uint8_t type, const void *payload, uint32_t length);

/** Start a message of `total` bytes with `length` zero bytes. */
void rogue_send_first(struct rogue *rogue, uint64_t total, uint32_t length);

/** Send the rest of a HELLO that grants 8 frames; NULL: a valid one. */
void rogue_send_hello(struct rogue *rogue, const struct frame_hello *hello);
struct frame_hello rogue_good_hello(void);

/** The same, with these heartbeat times. */
struct frame_hello rogue_beating_hello(uint32_t heartbeat_ms, uint32_t dead_after_ms);

/** Send a heartbeat. */
void rogue_beat(struct rogue *rogue);

/** Write remote memory; data, if not NULL, is sent along and reported to the other side. claimed:
 * the requested length, if a test lies about it. */
struct rogue_write {
	const void *bytes;
	size_t size;
	uint64_t address, key;
	const uint64_t *data;
	uint64_t claimed; /* 0: size */
};

/** Return: whether the provider supports it: some have no data with a write. */
bool rogue_write(struct rogue *rogue, const struct rogue_write *write);

/** Let the rogue's side make progress. */
void rogue_progress(struct rogue *rogue);

/** A plain socket connected to an IPv4 address. */
int rogue_socket(const char *address);

/** A plain socket that listens on a free port of the loopback address. */
#define ROGUE_ADDRESS_MAX 32
int rogue_listener(char address_out[ROGUE_ADDRESS_MAX]);

/** Drop the connection and free it. fixture_stop closes those that are left. */
void rogue_close(struct rogue *rogue);
void rogue_close_all(void);

#endif
