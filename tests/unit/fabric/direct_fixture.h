/* SPDX-License-Identifier: BSD-3-Clause */
/* Two links with direct data placement on one lcore: the server's memory is granted to the
 * client. */
#ifndef DIRECT_FIXTURE_H
#define DIRECT_FIXTURE_H

#include "fixture.h"
#include "plx_direct.h"

/** The server's memory: the granted bytes lie between two margins. */
#define MARGIN 64

struct field {
	uint8_t *base; /* of the granted bytes */
	size_t bytes;
	struct plx_region *region;
	struct plx_remote remote; /* as the client sees it */
	uint8_t *memory;
};

#define READ_WRITE (PLX_REMOTE_READ | PLX_REMOTE_WRITE)

/** Set-up: the tested provider, a listener, and client and server with direct data placement. */
extern struct plx_listener *direct_listener;
int direct_setup(void **state);

#define DIRECT_TEST(name) PLX_TEST_WITH(name, direct_setup, fixture_down)

/** Fresh sides, and another pair of links. */
void direct_connect_again(void);

/** Heap memory, all 0xa5, granted on link with these rights. */
struct field field_make(struct plx_link *link, size_t bytes, unsigned access);

/** Fail if the margins were written. Frees the memory. */
void field_free(struct field *field);

/** Revoke the grant of the server's memory first. */
void field_revoke_and_free(struct field *field);

/** A buffer filled from seed: in the lcore's zones, or on the heap. */
struct plx_buf *patterned(size_t bytes, unsigned seed, bool in_zone);
void assert_pattern(const uint8_t *bytes, size_t count, unsigned seed);

/** An empty buffer with that room. */
struct plx_buf *empty_buf(size_t room, bool in_zone);

/** The callback of operations: counts successes and failures. */
struct tally {
	_Atomic unsigned ok, failed;
	int status; /* of the last failed one */
};

void tally_one(struct plx_link *link, struct plx_buf *buf, int status, void *tally);

/** Start up to that many puts or gets of the whole field, until one is refused. Return: how many.
 */
unsigned start_puts(struct field *field, unsigned count, struct tally *tally);
unsigned start_gets(struct field *field, unsigned count, struct tally *tally);

/** Put and wait until it was sent; fail the test if that does not work. */
void put_and_wait(struct plx_link *link, const struct plx_remote *to, uint64_t offset,
		  struct plx_buf *buf);

/** After -EAGAIN: wait for one more on_writable of the client than `before`. */
void wait_for_room(unsigned before);

/** Send a message from client to server, as soon as there is room. */
void send_with_room(const void *bytes, size_t length);

/** Send a message from client to server and wait for it: earlier puts have arrived then. */
void wait_for_puts(void);

/** Open sets of this lcore. */
unsigned open_sets(void);

#endif
