/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that speaks libfabric but need not speak our protocol: it sends whatever bytes a test
 * likes. */
#ifndef FABRIC_ROGUE_H
#define FABRIC_ROGUE_H

#include "frame.h"

struct rogue;

/** One of libfabric's own; NULL: plx_tcp, or the one that the tests were given. */
extern const char *rogue_provider;

/** Connect to host:port by that provider; turns our
 * loop meanwhile. Fails the test where that does not work. */
struct rogue *rogue_connect(const char *address);

/** Send bytes as one libfabric message. */
void rogue_send(struct rogue *rogue, const void *bytes, size_t size);

/** Send a frame with that header and `header.length` bytes of zeros behind it. */
void rogue_send_frame(struct rogue *rogue, struct frame_header header);

/** Begin a message of total bytes with that many of zeros. */
void rogue_send_first(struct rogue *rogue, uint64_t total, uint32_t length);

/** Send a good HELLO that grants 8 frames. */
void rogue_send_hello(struct rogue *rogue);

/** A HELLO as a test wants it. */
void rogue_send_hello_like(struct rogue *rogue, const struct frame_hello *hello);
struct frame_hello rogue_good_hello(void);

/** Write remote memory; data, if not NULL, goes with it and is told to the other side.
 * claimed: the length that is asked for, where a test lies about it. */
struct rogue_write {
	const void *bytes;
	size_t size;
	uint64_t address, key;
	const uint64_t *data;
	uint64_t claimed; /* 0: size */
};

/** Return: whether the provider takes it: some have no data with a write. */
bool rogue_write(struct rogue *rogue, const struct rogue_write *write);

/** The first frame that came, after HELLO of the other side was waited for; valid until it is
 * closed. */
const uint8_t *rogue_first_frame(struct rogue *rogue);

/** Let the rogue's side make progress. */
void rogue_progress(struct rogue *rogue);

/** A plain socket that is connected to the address, an IPv4 one. */
int rogue_socket(const char *address);

/** Drop the connection and free it. */
void rogue_close(struct rogue *rogue);

#endif
