/* SPDX-License-Identifier: BSD-3-Clause */
/* The server creates the memory and an eventfd for each side, and passes them over a UNIX socket;
 * nothing has a name in a file system. A message is 56 bytes and then a sequence word in one cache
 * line, which the other side waits for: it spins, or sleeps until its eventfd is written.
 * The cost of a line depends on its address, so the trips use many lines. A spinning side pauses
 * between polls: without a pause it also requests the line while the other side is about to write
 * it, and a trip takes longer. */
#include "raw_local.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FDS           3 /* handed over: memory, the client's eventfd, the server's */
#define SHARED_BYTES  ((size_t)256 << 10)
#define END           UINT64_MAX /* number of the message that ends the server */
#define PAIRS         16
#define TRIPS_A_PAIR  512 /* before moving to the next pair */
#define APART         (SHARED_BYTES / PAIRS / 2)
#define PAYLOAD_BYTES (RAW_LOCAL_SIZE - sizeof(uint64_t))

struct line {
	_Alignas(RAW_LOCAL_SIZE) uint8_t payload[PAYLOAD_BYTES];
	_Atomic uint64_t number; /* of the message; 0: none yet */
};

static_assert(sizeof(struct line) == RAW_LOCAL_SIZE, "a message is one cache line");

struct side {
	int socket;
	int memory;
	int own_event, peer_event;
	int epoll;       /* -1: it spins */
	uint8_t *shared; /* touched and initially zero */
};

union control {
	struct cmsghdr header;
	uint8_t room[CMSG_SPACE(FDS * sizeof(int))];
};

/* The server listens at an abstract name, which vanishes with its socket, and accepts one client.
 */
static int open_socket(const struct raw_options *options, int *fd_out)
{
	const struct timeval patience = {.tv_sec = RAW_PEER_NS / PLX_NS_PER_S};
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	const struct sockaddr *at = (const struct sockaddr *)&name;
	int length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "plx-raw/%s",
			      options->host);
	socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);

	if (length >= (int)sizeof(name.sun_path) - 1)
		return plx_fail(EINVAL, "%.40s...: the name is too long", options->host);
	raw_catch_signals();
	*fd_out = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (*fd_out < 0 ||
	    setsockopt(*fd_out, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    (options->listen ? bind(*fd_out, at, bytes) || listen(*fd_out, 1)
			     : connect(*fd_out, at, bytes)))
		return plx_fail(errno, "cannot %s %s: %s",
				options->listen ? "listen as" : "connect to", options->address,
				strerror(errno));
	return 0;
}

static int map(struct side *side)
{
	void *shared = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, side->memory,
			    0);

	if (shared == MAP_FAILED)
		return plx_fail(errno, "cannot map the shared memory: %s", strerror(errno));
	side->shared = shared;
	return 0;
}

static void close_side(const struct side *side)
{
	const int fds[] = {side->socket, side->memory, side->own_event, side->peer_event,
			   side->epoll};

	if (side->shared)
		munmap(side->shared, SHARED_BYTES);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int make_shared(struct side *side)
{
	side->memory = memfd_create("plx-raw", MFD_CLOEXEC);
	side->own_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	side->peer_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (side->memory < 0 || side->own_event < 0 || side->peer_event < 0 ||
	    ftruncate(side->memory, (off_t)SHARED_BYTES))
		return plx_fail(errno, "cannot make what is shared: %s", strerror(errno));
	int rc = map(side);
	if (!rc)
		memset(side->shared, 0, SHARED_BYTES);
	return rc;
}

static struct msghdr message_of(union control *control)
{
	static uint8_t byte;
	static struct iovec iov = {&byte, 1};

	return (struct msghdr){
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(*control),
	};
}

static int hand_over(const struct side *side)
{
	const int fds[FDS] = {side->memory, side->peer_event, side->own_event};
	union control control = {0};
	struct msghdr message = message_of(&control);

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
	if (sendmsg(side->socket, &message, MSG_NOSIGNAL) != 1)
		return plx_fail(errno, "cannot hand over what is shared: %s", strerror(errno));
	return 0;
}

static int listen_for_one(const struct raw_options *options, struct side *side)
{
	int listener = -1;
	int rc = open_socket(options, &listener);

	rc = rc ? rc : make_shared(side);
	if (!rc) {
		plx_app_say("listening on %s", options->host);
		side->socket = raw_accept(options, listener);
		rc = side->socket < 0 ? side->socket : hand_over(side);
	}
	if (listener >= 0)
		close(listener);
	return rc;
}

static int take_over(struct side *side)
{
	union control control = {0};
	struct msghdr message = message_of(&control);
	int fds[FDS];

	if (recvmsg(side->socket, &message, MSG_CMSG_CLOEXEC) != 1)
		return plx_fail(EPIPE, "the server is gone");
	if (control.header.cmsg_len != CMSG_LEN(sizeof(fds)))
		return plx_fail(EPROTO, "the server handed over nothing to share");
	memcpy(fds, CMSG_DATA(&control.header), sizeof(fds));
	side->memory = fds[0];
	side->own_event = fds[1];
	side->peer_event = fds[2];
	return map(side);
}

/* The epoll is edge-triggered: each write is an edge, so eventfds are never read. */
static int open_side(const struct raw_options *options, struct side *side)
{
	*side = (struct side){
		.socket = -1, .memory = -1, .own_event = -1, .peer_event = -1, .epoll = -1};
	int rc = options->listen ? listen_for_one(options, side)
				 : open_socket(options, &side->socket) ?: take_over(side);

	return rc || !raw_program.idle ? rc
				       : raw_open_epoll(side->own_event, EPOLLIN | EPOLLET,
							"an eventfd", &side->epoll);
}

/* Messages --------------------------------------------------------------------------------- */

/* Lines of the two directions are pages apart, at different places in their pages. */
static struct line *line_of(const struct side *side, uint64_t trip, unsigned back)
{
	uint64_t which = trip / TRIPS_A_PAIR % PAIRS * 2 + back;

	return (struct line *)(side->shared + which * APART + which * 2 * RAW_LOCAL_SIZE);
}

/* Release and acquire: a reader that sees the number sees the payload. */
static inline int transmit(const struct side *side, struct line *line, const uint8_t *payload,
			   uint64_t number)
{
	const uint64_t one = 1;

	memcpy(line->payload, payload, PAYLOAD_BYTES);
	atomic_store_explicit(&line->number, number, memory_order_release);
	if (side->epoll >= 0 && write(side->peer_event, &one, sizeof(one)) != sizeof(one))
		return plx_fail(errno, "cannot wake the peer: %s", strerror(errno));
	return 0;
}

static inline int receive(const struct side *side, struct line *line, uint64_t before,
			  uint8_t *payload, uint64_t *number_out)
{
	struct raw_wait wait = {0};
	struct epoll_event event;

	while ((*number_out = atomic_load_explicit(&line->number, memory_order_acquire)) ==
	       before) {
		int rc = side->epoll >= 0
			       ? raw_sleep(side->epoll, &event)
			       : raw_wait_over(&wait, RAW_PEER_NS, "a message from the peer");
		if (plx_unlikely(rc))
			return rc;
		if (side->epoll < 0)
			plx_pause();
	}
	memcpy(payload, line->payload, PAYLOAD_BYTES);
	return 0;
}

/* The previous number in that trip's line. */
static uint64_t number_before(uint64_t trip)
{
	uint64_t round = (uint64_t)TRIPS_A_PAIR * PAIRS;

	if (trip % TRIPS_A_PAIR)
		return trip;
	return trip >= round ? trip - round + TRIPS_A_PAIR : 0;
}

int raw_local_serve(const struct raw_options *options)
{
	uint8_t payload[PAYLOAD_BYTES];
	uint64_t number = 0;
	struct side side;
	int rc = open_side(options, &side);

	for (uint64_t trip = 0; !rc && number != END; trip++) {
		rc = receive(&side, line_of(&side, trip, 0), number_before(trip), payload, &number);
		rc = rc ? rc : transmit(&side, line_of(&side, trip, 1), payload, number);
	}
	close_side(&side);
	return rc;
}

static int trips(const struct side *side, const uint8_t *message, struct raw_run *run)
{
	uint8_t answer[PAYLOAD_BYTES] = {0};
	uint64_t trip = 0, number = 0;
	bool more;

	do {
		struct line *there = line_of(side, trip, 0), *back = line_of(side, trip, 1);
		uint64_t before = number_before(trip++);

		uint64_t sent = plx_tsc();
		int rc = transmit(side, there, message, trip);
		rc = plx_likely(!rc) ? receive(side, back, before, answer, &number) : rc;
		uint64_t seen = plx_tsc_after_loads();
		if (plx_unlikely(rc))
			return rc;
		if (plx_unlikely(number != trip))
			return plx_fail(EPROTO, "the answer to message %llu is that to %llu",
					(unsigned long long)trip, (unsigned long long)number);
		more = raw_run_add(run, sent, seen);
	} while (more);
	transmit(side, line_of(side, trip, 0), message, END);
	return raw_check_message(message, answer, PAYLOAD_BYTES, "the last answer");
}

int raw_local_ping(const struct raw_options *options, uint8_t *message, struct raw_run *run)
{
	struct side side;
	int rc = open_side(options, &side);

	rc = rc ? rc : trips(&side, message, run);
	close_side(&side);
	return rc;
}
