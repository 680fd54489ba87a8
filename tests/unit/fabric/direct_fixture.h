/* SPDX-License-Identifier: BSD-3-Clause */
/* Two links with direct data placement on one lcore: the server's memory is granted to the client.
 */
#ifndef DIRECT_FIXTURE_H
#define DIRECT_FIXTURE_H

#include "fixture.h"
#include "plx_direct.h"

/** The server's memory: what is granted lies between two margins. */
#define MARGIN 64

struct field {
	uint8_t *base; /* of what is granted */
	size_t bytes;
	struct plx_region *region;
	struct plx_remote remote; /* as the client has it */
	uint8_t *memory;
};

extern const char *direct_provider; /* "tcp" unless a test wants another one */

/** The provider that is tested, a listener, and client and server with direct data placement. */
struct plx_listener *direct_start(void);

/** The same for a test, and its end. */
extern struct plx_listener *direct_listener;
int direct_setup(void **state);
int direct_stop(void **state);

/** Memory of the heap, all 0xa5, granted on link with these rights. */
struct field field_make(struct plx_link *link, size_t bytes, unsigned access);

/** Fails the test where the margins were written to. Frees the memory. */
void field_free(struct field *field);

/** A buffer with bytes that depend on seed: in memory of the lcore's zones, or of the heap. */
struct plx_buf *patterned(size_t bytes, unsigned seed, bool in_zone);
void assert_pattern(const uint8_t *bytes, size_t count, unsigned seed);

/** An empty buffer with that room. */
struct plx_buf *empty_buf(size_t room, bool in_zone);

/** What is called at the end of operations: how many have succeeded and failed. */
struct tally {
	_Atomic unsigned ok, failed;
	int status; /* of the last one that failed */
};

void tally_one(struct plx_link *link, struct plx_buf *buf, int status, void *tally);

/** Put and wait until it has left; fails the test where that does not work. */
void put_and_wait(struct plx_link *link, const struct plx_remote *to, uint64_t offset,
		  struct plx_buf *buf);

/** Wait until the client was told on_writable once more than `before`. */
void wait_for_room(unsigned before);

/** A message from client to server, as soon as there is room for it. */
void send_with_room(const void *bytes, size_t length);

/** A message from client to server, and wait for it: what was put before it is there. */
void wait_behind(void);

/** Sets that this lcore has open. */
unsigned open_sets(void);

#endif
