/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trips and one-way messages over Open MPI, both ends polling. mpirun starts the two ends as
 * two programs of one job, with the same --size and --one-way: see scripts/bench/parts/peers.py. If
 * one of them ends early, mpirun ends the other one.
 * As in the OSU benchmarks, each end uses one buffer for all messages, which stays in its cache. */
#include "raw_common.h"

#include <mpi.h>
#include <stdlib.h>

/* As Open MPI defines its constants; the checker does not follow requests of two functions.
 * NOLINTBEGIN(bugprone-casting-through-void,clang-analyzer-optin.mpi.MPI-Checker) */

#define SLOTS       64 /* sends and receives in flight, as in the OSU benchmarks */
#define TAG_MESSAGE 1
#define TAG_MARK    2
#define SERVER      0 /* ranks, in the order of mpirun's command line */
#define CLIENT      1
#define END         0 /* first byte of the message that ends round trips: others have none */

struct side {
	uint8_t *buffer; /* of every message */
	int size;
	MPI_Request slots[SLOTS];
	unsigned next; /* slot */
};

static int open_side(const struct raw_options *options, struct side *side, uint8_t *buffer)
{
	int size = 0;

	*side = (struct side){.buffer = buffer, .size = (int)options->size};
	for (unsigned i = 0; i < SLOTS; i++)
		side->slots[i] = MPI_REQUEST_NULL;
	if (!buffer)
		return -ENOMEM;
	MPI_Init(NULL, NULL); /* MPI ends the job at each error */
	raw_catch_signals();
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size == 2)
		return 0;
	MPI_Finalize();
	return plx_fail(EINVAL, "a job of %d processes: start both ends with one mpirun", size);
}

/* Wait until a slot is free. Return: 0; -errno. */
static inline int free_slot(MPI_Request *slot)
{
	struct raw_wait wait = {0};
	int done = 0, rc = 0;

	for (;;) {
		MPI_Test(slot, &done, MPI_STATUS_IGNORE);
		if (plx_likely(done || rc))
			return rc;
		rc = raw_wait_over(&wait, RAW_PEER_NS, "the peer");
	}
}

/* Receiving -------------------------------------------------------------------------------- */

static void post(struct side *side, MPI_Request *slot)
{
	MPI_Irecv(side->buffer, side->size, MPI_BYTE, CLIENT, TAG_MESSAGE, MPI_COMM_WORLD, slot);
}

/* A mark may overtake messages: it is answered when all that it counts are here. */
static int receive_all(struct side *side)
{
	struct raw_wait wait = {0};
	uint64_t got = 0, expected = 0;
	MPI_Request mark;
	int done, marked = 0, rc = 0;

	for (unsigned i = 0; i < SLOTS; i++)
		post(side, &side->slots[i]);
	MPI_Irecv(&expected, 1, MPI_UINT64_T, CLIENT, TAG_MARK, MPI_COMM_WORLD, &mark);
	while (!rc && !(marked && expected == RAW_MARK_END)) {
		MPI_Test(&side->slots[side->next], &done, MPI_STATUS_IGNORE);
		if (plx_likely(done)) {
			post(side, &side->slots[side->next]);
			side->next = (side->next + 1) % SLOTS;
			got++;
			wait = (struct raw_wait){0};
			continue;
		}
		if (!marked)
			MPI_Test(&mark, &marked, MPI_STATUS_IGNORE);
		if (marked && got == expected) {
			MPI_Send(&got, 1, MPI_UINT64_T, CLIENT, TAG_MARK, MPI_COMM_WORLD);
			MPI_Irecv(&expected, 1, MPI_UINT64_T, CLIENT, TAG_MARK, MPI_COMM_WORLD,
				  &mark);
			got = 0;
			marked = 0;
		}
		rc = raw_wait_over(&wait, RAW_PEER_NS, "a message from the peer");
	}
	for (unsigned i = 0; i < SLOTS; i++) {
		MPI_Cancel(&side->slots[i]);
		MPI_Wait(&side->slots[i], MPI_STATUS_IGNORE);
	}
	return rc;
}

static void echo(struct side *side)
{
	do {
		MPI_Recv(side->buffer, side->size, MPI_BYTE, CLIENT, TAG_MESSAGE, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		MPI_Send(side->buffer, side->size, MPI_BYTE, CLIENT, TAG_MESSAGE, MPI_COMM_WORLD);
	} while (side->buffer[0] != END);
}

static int serve(const struct raw_options *options)
{
	struct side side;
	int rc = open_side(options, &side, raw_buffer(options->size));

	if (!rc) {
		if (options->one_way)
			rc = receive_all(&side);
		else
			echo(&side);
		MPI_Finalize();
	}
	free(side.buffer);
	return rc;
}

/* Sending ---------------------------------------------------------------------------------- */

static void trips(struct side *side, const uint8_t *message, struct raw_run *run)
{
	bool more;

	do {
		uint64_t sent = plx_tsc();
		MPI_Send(message, side->size, MPI_BYTE, SERVER, TAG_MESSAGE, MPI_COMM_WORLD);
		MPI_Recv(side->buffer, side->size, MPI_BYTE, SERVER, TAG_MESSAGE, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		more = raw_run_add(run, sent, plx_tsc_after_loads());
	} while (more);
}

static int ping(const struct raw_options *options, uint8_t *message, struct raw_run *run)
{
	struct side side;
	int rc = open_side(options, &side, raw_buffer(options->size));

	if (!rc) {
		trips(&side, message, run);
		rc = raw_check_message(message, side.buffer, options->size, "the last answer");
		message[0] = END;
		MPI_Sendrecv(message, side.size, MPI_BYTE, SERVER, TAG_MESSAGE, side.buffer,
			     side.size, MPI_BYTE, SERVER, TAG_MESSAGE, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		MPI_Finalize();
	}
	free(side.buffer);
	return rc;
}

static int send_some(void *arg, uint64_t count)
{
	struct side *side = arg;
	int rc = 0;

	for (uint64_t i = 0; i < count && plx_likely(!rc); i++) {
		MPI_Request *slot = &side->slots[side->next];

		rc = free_slot(slot);
		if (plx_likely(!rc))
			MPI_Isend(side->buffer, side->size, MPI_BYTE, SERVER, TAG_MESSAGE,
				  MPI_COMM_WORLD, slot);
		side->next = (side->next + 1) % SLOTS;
	}
	return rc;
}

/* Until the server has all of them. */
static int settle(void *arg, uint64_t count)
{
	struct side *side = arg;
	uint64_t got = 0;

	MPI_Waitall(SLOTS, side->slots, MPI_STATUSES_IGNORE);
	MPI_Sendrecv(&count, 1, MPI_UINT64_T, SERVER, TAG_MARK, &got, 1, MPI_UINT64_T, SERVER,
		     TAG_MARK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return got == count ? 0
			    : plx_fail(EBADMSG, "the server got %llu messages of %llu",
				       (unsigned long long)got, (unsigned long long)count);
}

static int stream(const struct raw_options *options, struct raw_flow *flow)
{
	const uint64_t end = RAW_MARK_END;
	struct side side;
	int rc = open_side(options, &side, raw_message(options->size));

	if (!rc) {
		rc = raw_flow_send(options, flow, send_some, settle, &side);
		MPI_Send(&end, 1, MPI_UINT64_T, SERVER, TAG_MARK, MPI_COMM_WORLD);
		MPI_Finalize();
	}
	free(side.buffer);
	return rc;
}

const struct raw_program raw_program = {
	.provider = "mpi",
	.idle = "poll",
	.choices = "one-way",
	.address_is_a_name = true,
	.serve = serve,
	.ping = ping,
	.stream = stream,
};
/* NOLINTEND(bugprone-casting-through-void,clang-analyzer-optin.mpi.MPI-Checker) */
