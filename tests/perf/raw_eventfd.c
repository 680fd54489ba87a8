/* SPDX-License-Identifier: BSD-3-Clause */
/* The round trip between two sleeping processes: each waits in epoll_wait for its eventfd, which
 * the other writes when a message is in shared memory. This is the cost of waking a process, and
 * the floor for every transport that supports sleeping.
 * The epoll is edge-triggered: each write is an edge, so eventfds are never read. */
#include "raw_local.h"

#include <unistd.h>

struct message {
	_Alignas(2 * RAW_LOCAL_SIZE) uint8_t payload[RAW_LOCAL_SIZE];
	_Atomic uint64_t number; /* 0: none yet */
};

struct side {
	struct raw_local local;
	struct message *out, *in;
	int epoll;
};

static int open_side(struct side *side, bool server)
{
	struct message *messages = (struct message *)side->local.shared;

	side->out = &messages[server];
	side->in = &messages[!server];
	return raw_open_epoll(side->local.own_event, EPOLLIN | EPOLLET, "an eventfd", &side->epoll);
}

static void close_side(struct side *side)
{
	if (side->epoll >= 0)
		close(side->epoll);
	raw_local_close(&side->local);
}

/* Release and acquire: a reader that sees the number sees the payload. */
static int transmit(struct side *side, const uint8_t *payload, uint64_t number)
{
	const uint64_t one = 1;

	memcpy(side->out->payload, payload, RAW_LOCAL_SIZE);
	atomic_store_explicit(&side->out->number, number, memory_order_release);
	if (plx_likely(write(side->local.peer_event, &one, sizeof(one)) == sizeof(one)))
		return 0;
	return plx_fail(errno, "cannot wake the peer: %s", strerror(errno));
}

static int receive(struct side *side, uint64_t before, uint8_t *payload, uint64_t *number_out)
{
	struct epoll_event event;

	while ((*number_out = atomic_load_explicit(&side->in->number, memory_order_acquire)) ==
	       before) {
		int rc = raw_sleep(side->epoll, &event);
		if (plx_unlikely(rc))
			return rc;
	}
	memcpy(payload, side->in->payload, RAW_LOCAL_SIZE);
	return 0;
}

static int echo(struct side *side)
{
	uint8_t payload[RAW_LOCAL_SIZE];
	uint64_t number = 0;
	int rc;

	do {
		rc = receive(side, number, payload, &number);
		if (!rc)
			rc = transmit(side, payload, number);
	} while (!rc && number != RAW_LOCAL_END);
	return rc;
}

static int serve(const struct raw_options *options)
{
	struct side side = {.epoll = -1};
	int rc = raw_local_listen(options, &side.local);

	rc = rc ? rc : open_side(&side, true);
	rc = rc ? rc : echo(&side);
	close_side(&side);
	return rc;
}

static int trips(struct side *side, const uint8_t *message, struct raw_run *run)
{
	uint8_t answer[RAW_LOCAL_SIZE] = {0};
	uint64_t number = 0, got;
	bool more;

	do {
		uint64_t sent = plx_tsc();
		int rc = transmit(side, message, number + 1);
		if (plx_likely(!rc))
			rc = receive(side, number, answer, &got);
		uint64_t seen = plx_tsc_after_loads();
		if (plx_unlikely(rc))
			return rc;
		if (plx_unlikely(got != ++number))
			return plx_fail(EPROTO, "an answer was lost");
		more = raw_run_add(run, sent, seen);
	} while (more);
	return raw_check_message(message, answer, RAW_LOCAL_SIZE, "the last answer");
}

static int ping(const struct raw_options *options, uint8_t *message, struct raw_run *run)
{
	struct side side = {.epoll = -1};
	int rc = raw_local_connect(options, &side.local);

	rc = rc ? rc : open_side(&side, false);
	rc = rc ? rc : trips(&side, message, run);
	rc = rc ? rc : transmit(&side, message, RAW_LOCAL_END);
	close_side(&side);
	return rc;
}

RAW_ROUND_TRIPS("raw-eventfd", "memory", .idle = "event", .address_is_a_name = true,
		.fixed_size = RAW_LOCAL_SIZE);
