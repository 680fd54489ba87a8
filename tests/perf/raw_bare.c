/* SPDX-License-Identifier: BSD-3-Clause */
/* The round trip of a bare cache line between two processes. The other side writes 56 bytes and
 * then a sequence word into one line of shared memory, and this side spins on that word. No message
 * between these two CPUs can be faster.
 * The cost of a line depends on its address, so the trips use many lines. The waiting side pauses
 * between polls: without a pause it also requests the line while the other side is about to write
 * it, and a trip takes longer. */
#include "raw_local.h"

#include <assert.h>

#define PAIRS         16
#define TRIPS_A_PAIR  512 /* before moving to the next pair */
#define APART         (RAW_LOCAL_BYTES / PAIRS / 2)
#define PAYLOAD_BYTES (RAW_LOCAL_SIZE - sizeof(uint64_t))

struct line {
	_Alignas(RAW_LOCAL_SIZE) uint8_t payload[PAYLOAD_BYTES];
	_Atomic uint64_t number; /* of the message; 0: none yet */
};

static_assert(sizeof(struct line) == RAW_LOCAL_SIZE, "a message is one cache line");

/* Lines of the two directions are pages apart, at different places in their pages. */
static struct line *line_of(const struct raw_local *local, uint64_t trip, unsigned back)
{
	uint64_t which = trip / TRIPS_A_PAIR % PAIRS * 2 + back;

	return (struct line *)(local->shared + which * APART + which * 2 * RAW_LOCAL_SIZE);
}

/* Release and acquire: a reader that sees the number sees the payload. */
static inline void write_line(struct line *line, const uint8_t *payload, uint64_t number)
{
	memcpy(line->payload, payload, PAYLOAD_BYTES);
	atomic_store_explicit(&line->number, number, memory_order_release);
}

/* Returns its number; 0, with an error text, if none came. */
static inline uint64_t read_line(struct line *line, uint64_t before, uint8_t *payload)
{
	struct raw_wait wait = {0};
	uint64_t number;

	while ((number = atomic_load_explicit(&line->number, memory_order_acquire)) == before) {
		if (raw_wait_over(&wait, RAW_PEER_NS, "a message from the peer"))
			return 0;
		plx_pause();
	}
	memcpy(payload, line->payload, PAYLOAD_BYTES);
	return number;
}

/* The previous number in that trip's line. */
static uint64_t number_before(uint64_t trip)
{
	uint64_t round = (uint64_t)TRIPS_A_PAIR * PAIRS;

	if (trip % TRIPS_A_PAIR)
		return trip;
	return trip >= round ? trip - round + TRIPS_A_PAIR : 0;
}

static int serve(const struct raw_options *options)
{
	uint8_t payload[PAYLOAD_BYTES];
	struct raw_local local;
	uint64_t number = 0;
	int rc = raw_local_listen(options, &local);

	for (uint64_t trip = 0; !rc && number != RAW_LOCAL_END; trip++) {
		number = read_line(line_of(&local, trip, 0), number_before(trip), payload);
		if (plx_likely(number))
			write_line(line_of(&local, trip, 1), payload, number);
		else
			rc = -ETIMEDOUT;
	}
	raw_local_close(&local);
	return rc;
}

static int trips(const struct raw_local *local, const uint8_t *message, struct raw_run *run)
{
	uint8_t answer[PAYLOAD_BYTES] = {0};
	uint64_t trip = 0;
	bool more;

	do {
		struct line *there = line_of(local, trip, 0), *back = line_of(local, trip, 1);
		uint64_t before = number_before(trip++);

		uint64_t sent = plx_tsc();
		write_line(there, message, trip);
		uint64_t number = read_line(back, before, answer);
		uint64_t seen = plx_tsc_after_loads();
		if (plx_unlikely(number != trip))
			return number ? plx_fail(EPROTO, "an answer came twice") : -ETIMEDOUT;
		more = raw_run_add(run, sent, seen);
	} while (more);
	write_line(line_of(local, trip, 0), message, RAW_LOCAL_END);
	return raw_check_message(message, answer, PAYLOAD_BYTES, "the last answer");
}

static int ping(const struct raw_options *options, uint8_t *message, struct raw_run *run)
{
	struct raw_local local;
	int rc = raw_local_connect(options, &local);

	rc = rc ? rc : trips(&local, message, run);
	raw_local_close(&local);
	return rc;
}

RAW_ROUND_TRIPS("raw-bare", "memory", .address_is_a_name = true, .fixed_size = RAW_LOCAL_SIZE);
