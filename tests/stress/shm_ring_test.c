/* SPDX-License-Identifier: BSD-3-Clause */
/* Two threads at the ends of a small ring of records. Both sleep whenever they have nothing to do:
 * a missed wake-up for a record or for room stops the test forever. */
#include "stress.h"

#include <poll.h>
#include <sys/eventfd.h>

/* Between reading the other end's request to be called and clearing it: the other end may change it
 * there. */
static __thread uint64_t exchanges;

static inline uint32_t exchange_late(_Atomic uint32_t *word, uint32_t value, memory_order order)
{
	if (++exchanges % 8 == 0)
		sched_yield();
	return atomic_exchange_explicit(word, value, order);
}

#undef atomic_exchange_explicit
#define atomic_exchange_explicit(word, value, order) exchange_late(word, value, order)
#include "ring.h" /* with that step */

#define RING_BYTES 4096 /* the largest record is a quarter of it */
#define LOST_MS    3000

/* The sender pauses now and then, so that even a slow receiver runs out of work. */
#define DAWDLE_EVERY 500 /* records */
#define DAWDLE_US    200

struct end {
	int doorbell;
	uint64_t sleeps, random;
};

struct both {
	struct ring_writer writer;
	struct ring_reader reader;
	struct end sender, receiver;
	_Atomic bool bell;  /* of the receiver; relaxed: it then reads the ring */
	uint32_t looks_max; /* before an end sleeps: random, up to this */
	bool in_turn;       /* the sender waits for each read: a lost call stops all */
	uint32_t records;
};

static uint64_t looks(struct both *both, struct end *end)
{
	return dice_next(&end->random) % (both->looks_max + 1);
}

static void ring_doorbell(struct end *end)
{
	uint64_t one = 1;

	assert_int_equal(write(end->doorbell, &one, sizeof(one)), sizeof(one));
}

/* Return: whether the bell rang. */
static bool sleep_on(struct end *end)
{
	struct pollfd pollfd = {.fd = end->doorbell, .events = POLLIN};
	uint64_t value;

	end->sleeps++;
	if (poll(&pollfd, 1, LOST_MS) != 1)
		return false;
	return read(end->doorbell, &value, sizeof(value)) == sizeof(value);
}

static uint32_t length_of(uint64_t *random)
{
	uint64_t value = dice_next(random);

	return value % 16 ? (uint32_t)(value >> 8) % 120
			  : (uint32_t)(value >> 8) % (RING_BYTES / 4 - 16);
}

/* Call the way the receiver wanted when the request was cleared. */
static void call(struct both *both, uint32_t how)
{
	if (how & CALL_BELL)
		atomic_store_explicit(&both->bell, true, memory_order_relaxed);
	if (how & CALL_WAKE)
		ring_doorbell(&both->receiver);
}

/* Wait, as the sender, until `try` succeeds. */
static uint8_t *wait_for_room(struct both *both, uint8_t *(*try)(struct both *, uint32_t),
			      uint32_t bytes)
{
	_Atomic uint32_t *space_call = &both->writer.segment.control->space_call;
	uint8_t *at;

	for (;;) {
		for (uint64_t left = looks(both, &both->sender); left > 0; left--) {
			at = try(both, bytes);
			if (at)
				return at;
		}
		call(both, ring_call(&both->writer)); /* it may have checked too early */
		/* E3, E4 */
		atomic_store_explicit(space_call, CALL_WAKE, memory_order_seq_cst);
		at = try(both, bytes);
		if (at)
			return at;
		if (!sleep_on(&both->sender))
			fail_msg("there was room, and nobody reported it");
	}
}

static uint8_t *try_claim(struct both *both, uint32_t bytes)
{
	return ring_claim(&both->writer, bytes);
}

static uint8_t *try_read(struct both *both, uint32_t bytes)
{
	ring_refresh(&both->writer);
	return both->writer.head == both->writer.tail ? both->writer.segment.ring : NULL;
}

static void *send_all(void *arg)
{
	struct both *both = arg;
	uint64_t random = 1;

	for (uint32_t i = 0; i < both->records; i++) {
		uint32_t length = length_of(&random);
		uint8_t flags = (i % 7 == 0 ? RECORD_HAS_DATA : 0) |
				(both->in_turn || i % 11 == 0 ? RECORD_ACK : 0);
		uint32_t bytes = record_bytes(length, flags);
		uint8_t *at = wait_for_room(both, try_claim, bytes);

		memset(ring_payload(at, flags, i), (uint8_t)i, length);
		ring_commit(&both->writer, RECORD_MESSAGE, flags, length, bytes);
		if (i % 3 == 0 || ring_asks(&both->writer))
			call(both, ring_call(&both->writer));
		if (i % 4)
			ring_own_ahead(&both->writer, bytes);
		if (both->in_turn)
			wait_for_room(both, try_read, 0);
		if (dice_next(&both->sender.random) % 64 == 0)
			sched_yield();
		if (i % DAWDLE_EVERY == DAWDLE_EVERY - 1)
			usleep(DAWDLE_US);
	}
	call(both, ring_call(&both->writer));
	return NULL;
}

/* Returns whether there is something already. */
static bool ask_for(struct both *both, uint32_t how)
{
	/* C3, C4 */
	atomic_store_explicit(&both->reader.segment.control->call, how, memory_order_seq_cst);
	return ring_look(&both->reader);
}

/* Wait for the bell briefly: sleeping after that changes the request. */
static bool wait_for_bell(struct both *both)
{
	atomic_store_explicit(&both->bell, false, memory_order_relaxed);
	if (ask_for(both, CALL_BELL))
		return true;
	for (uint64_t left = looks(both, &both->receiver); left > 0; left--) {
		if (atomic_load_explicit(&both->bell, memory_order_relaxed) &&
		    ring_look(&both->reader))
			return true;
	}
	return false;
}

static void wait_for_record(struct both *both)
{
	for (;;) {
		for (uint64_t left = looks(both, &both->receiver); left > 0; left--) {
			if (ring_look(&both->reader))
				return;
		}
		if (dice_next(&both->receiver.random) % 2 && wait_for_bell(both))
			return;
		if (ask_for(both, dice_next(&both->receiver.random) % 2 ? CALL_WAKE
									: CALL_BELL | CALL_WAKE))
			return;
		if (!sleep_on(&both->receiver))
			fail_msg("there was a record, and nobody reported it");
	}
}

static void check(const struct record *record, uint32_t i, uint64_t *random)
{
	assert_int_equal(record->length, length_of(random));
	if (record->flags & RECORD_HAS_DATA)
		assert_int_equal(record->data, i);
	for (uint32_t j = 0; j < record->length; j++) {
		if (record->payload[j] != (uint8_t)i)
			fail_msg("another payload");
	}
}

static void receive_all(struct both *both)
{
	uint64_t random = 1;

	for (uint32_t i = 0; i < both->records; i++) {
		struct record record;

		wait_for_record(both);
		stress_went_on();
		if (ring_peek(&both->reader, &record) == 0) {
			i--; /* it was a skip */
			continue;
		}
		check(&record, i, &random);
		if (ring_advance(&both->reader, &record))
			ring_doorbell(&both->sender);
		if (dice_next(&both->receiver.random) % 64 == 0)
			sched_yield();
	}
}

static void run(uint64_t records, bool in_turn, uint32_t looks_max)
{
	struct segment segment = {.ring_bytes = RING_BYTES};
	struct both both = {
		.records = (uint32_t)records, .in_turn = in_turn, .looks_max = looks_max};
	pthread_t thread;

	segment.control = aligned_alloc(4096, SEGMENT_CONTROL_BYTES + RING_BYTES);
	memset(segment.control, 0, SEGMENT_CONTROL_BYTES + RING_BYTES);
	segment.ring = (uint8_t *)segment.control + SEGMENT_CONTROL_BYTES;
	both.writer.segment = both.reader.segment = segment;
	both.sender = (struct end){.doorbell = eventfd(0, EFD_CLOEXEC), .random = 77};
	both.receiver = (struct end){.doorbell = eventfd(0, EFD_CLOEXEC), .random = 99};

	threads_start(&thread, 1, send_all, &both, 0);
	receive_all(&both);
	threads_join(&thread, 1);
	assert_false(both.writer.broken);
	assert_true(both.receiver.sleeps > 0);
	print_message("%s, up to %u looks: %llu and %llu sleeps\n", in_turn ? "in turn" : "at once",
		      looks_max, (unsigned long long)both.sender.sleeps,
		      (unsigned long long)both.receiver.sleeps);
	close(both.sender.doorbell);
	close(both.receiver.doorbell);
	free(segment.control);
}

PLX_TEST(nothing_is_lost_or_torn_by_ends_that_sleep_at_once)
{
	run(stress_amount, false, 0);
}

PLX_TEST(nothing_is_lost_or_torn_by_ends_that_spin_a_little)
{
	run(stress_amount, false, 20);
}

/* About as many checks as take one turn of the other end, so that one end sleeps while the other
 * publishes. */
PLX_TEST(no_call_is_lost_where_nothing_follows)
{
	run(stress_amount / 8, true, 0);
	run(stress_amount, true, 100);
	run(stress_amount, true, 1000);
}

STRESS_MAIN(400000, 400000)
