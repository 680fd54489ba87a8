/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trips and one-way messages over iceoryx, both ends polling. Each message is copied into a
 * chunk of shared memory and out of it, as it is where the sender may reuse its memory and the
 * receiver keeps what it got. RouDi, iceoryx's daemon, must run. The ends meet by a name, and have
 * the same --size and --one-way. A publisher waits for a subscriber whose queue is full. */
#include "raw_common.h"

#include <iceoryx_binding_c/publisher.h>
#include <iceoryx_binding_c/runtime.h>
#include <iceoryx_binding_c/subscriber.h>
#include <stdio.h>
#include <stdlib.h>

#define QUEUE_BYTES ((uint64_t)1 << 20)
#define QUEUE_LEAST 4
#define QUEUE_MOST  128
#define END         0 /* first byte of the message that ends round trips: others have none */

/* Messages and marks, in one direction each. */
struct side {
	iox_pub_t out, marks_out;
	iox_sub_t in, marks_in;
	iox_pub_storage_t pubs[2];
	iox_sub_storage_t subs[2];
	uint8_t *buffer; /* of every message */
	uint64_t size;
};

static bool all_connected(const struct side *side)
{
	return iox_pub_has_subscribers(side->out) && iox_pub_has_subscribers(side->marks_out) &&
	       iox_sub_get_subscription_state(side->in) == SubscribeState_SUBSCRIBED &&
	       iox_sub_get_subscription_state(side->marks_in) == SubscribeState_SUBSCRIBED;
}

static int open_side(const struct raw_options *options, struct side *side, uint8_t *buffer)
{
	const char *there = options->listen ? "back" : "there";
	const char *back = options->listen ? "there" : "back";
	uint64_t fit = QUEUE_BYTES / options->size;
	struct raw_wait wait = {0};
	iox_pub_options_t pub;
	iox_sub_options_t sub;
	char name[100]; /* the most that iceoryx allows */
	int rc = 0;

	*side = (struct side){.buffer = buffer, .size = options->size};
	if (!buffer)
		return -ENOMEM;
	snprintf(name, sizeof(name), "%.80s-%s", options->host, there);
	iox_runtime_init(name); /* ends the program if there is no RouDi */
	raw_catch_signals();
	iox_pub_options_init(&pub);
	pub.subscriberTooSlowPolicy = ConsumerTooSlowPolicy_WAIT_FOR_CONSUMER;
	iox_sub_options_init(&sub);
	sub.queueFullPolicy = QueueFullPolicy_BLOCK_PRODUCER;
	sub.queueCapacity = fit < QUEUE_LEAST ? QUEUE_LEAST : fit > QUEUE_MOST ? QUEUE_MOST : fit;
	side->out = iox_pub_init(&side->pubs[0], options->host, there, "message", &pub);
	side->marks_out = iox_pub_init(&side->pubs[1], options->host, there, "mark", &pub);
	side->in = iox_sub_init(&side->subs[0], options->host, back, "message", &sub);
	side->marks_in = iox_sub_init(&side->subs[1], options->host, back, "mark", &sub);
	if (options->listen)
		plx_app_say("listening on %s", options->host);
	while (!rc && !all_connected(side))
		rc = raw_wait_over(&wait, options->listen ? options->wait_ns : RAW_CONNECT_NS,
				   "the peer");
	return rc;
}

static int close_side(struct side *side, int rc)
{
	if (side->out) {
		iox_pub_deinit(side->out);
		iox_pub_deinit(side->marks_out);
		iox_sub_deinit(side->in);
		iox_sub_deinit(side->marks_in);
	}
	free(side->buffer);
	return rc;
}

static inline int put(iox_pub_t out, const void *message, uint64_t size)
{
	void *chunk;

	if (plx_unlikely(iox_pub_loan_chunk(out, &chunk, (uint32_t)size) !=
			 AllocationResult_SUCCESS))
		return plx_fail(ENOMEM, "iceoryx lends no chunk of %llu B",
				(unsigned long long)size);
	memcpy(chunk, message, size);
	iox_pub_publish_chunk(out, chunk);
	return 0;
}

static inline bool take(iox_sub_t in, void *message, uint64_t size)
{
	const void *chunk;

	if (iox_sub_take_chunk(in, &chunk) != ChunkReceiveResult_SUCCESS)
		return false;
	memcpy(message, chunk, size);
	iox_sub_release_chunk(in, chunk);
	return true;
}

static inline int await(iox_sub_t in, void *message, uint64_t size)
{
	struct raw_wait wait = {0};
	int rc = 0;

	while (!rc && !take(in, message, size))
		rc = raw_wait_over(&wait, RAW_PEER_NS, "a message from the peer");
	return rc;
}

/* Receiving -------------------------------------------------------------------------------- */

/* A mark may overtake messages: it is answered when all that it counts are here. */
static int receive_all(struct side *side)
{
	struct raw_wait wait = {0};
	uint64_t got = 0, expected = 0;
	bool marked = false;
	int rc = 0;

	while (!rc && !(marked && expected == RAW_MARK_END)) {
		if (plx_likely(take(side->in, side->buffer, side->size))) {
			got++;
			wait = (struct raw_wait){0};
			continue;
		}
		marked = marked || take(side->marks_in, &expected, sizeof(expected));
		if (marked && got == expected) {
			rc = put(side->marks_out, &got, sizeof(got));
			got = 0;
			marked = false;
		}
		rc = rc ? rc : raw_wait_over(&wait, RAW_PEER_NS, "a message from the peer");
	}
	return rc;
}

static int echo(struct side *side)
{
	int rc;

	do {
		rc = await(side->in, side->buffer, side->size);
		rc = rc ? rc : put(side->out, side->buffer, side->size);
	} while (!rc && side->buffer[0] != END);
	/* Until the client has the last answer. */
	return rc ? rc : await(side->marks_in, side->buffer, 1);
}

static int serve(const struct raw_options *options)
{
	struct side side;
	int rc = open_side(options, &side, raw_buffer(options->size));

	if (!rc)
		rc = options->one_way ? receive_all(&side) : echo(&side);
	return close_side(&side, rc);
}

/* Sending ---------------------------------------------------------------------------------- */

static int trips(struct side *side, const uint8_t *message, struct raw_run *run)
{
	bool more;

	do {
		uint64_t sent = plx_tsc();
		int rc = put(side->out, message, side->size);
		rc = plx_likely(!rc) ? await(side->in, side->buffer, side->size) : rc;
		uint64_t seen = plx_tsc_after_loads();
		if (plx_unlikely(rc))
			return rc;
		more = raw_run_add(run, sent, seen);
	} while (more);
	return raw_check_message(message, side->buffer, side->size, "the last answer");
}

static int ping(const struct raw_options *options, uint8_t *message, struct raw_run *run)
{
	struct side side;
	int rc = open_side(options, &side, raw_buffer(options->size));

	rc = rc ? rc : trips(&side, message, run);
	message[0] = END;
	rc = rc ? rc : put(side.out, message, side.size);
	rc = rc ? rc : await(side.in, side.buffer, side.size);
	rc = rc ? rc : put(side.marks_out, message, 1);
	return close_side(&side, rc);
}

static int send_some(void *arg, uint64_t count)
{
	const struct side *side = arg;
	int rc = 0;

	for (uint64_t i = 0; i < count && plx_likely(!rc); i++)
		rc = put(side->out, side->buffer, side->size);
	/* Relaxed: see raw_run_add. */
	if (!rc && atomic_load_explicit(&raw_stop, memory_order_relaxed))
		return plx_fail(EINTR, "stopped while sending");
	return rc;
}

/* Until the server has all of them. */
static int settle(void *arg, uint64_t count)
{
	const struct side *side = arg;
	uint64_t got = 0;
	int rc = put(side->marks_out, &count, sizeof(count));

	rc = rc ? rc : await(side->marks_in, &got, sizeof(got));
	return rc || got == count ? rc
				  : plx_fail(EBADMSG, "the server got %llu messages of %llu",
					     (unsigned long long)got, (unsigned long long)count);
}

static int stream(const struct raw_options *options, struct raw_flow *flow)
{
	const uint64_t end = RAW_MARK_END;
	struct side side;
	int rc = open_side(options, &side, raw_message(options->size));

	rc = rc ? rc : raw_flow_send(options, flow, send_some, settle, &side);
	rc = rc ? rc : put(side.marks_out, &end, sizeof(end));
	return close_side(&side, rc);
}

const struct raw_program raw_program = {
	.provider = "iceoryx",
	.idle = "poll",
	.choices = "one-way",
	.address_is_a_name = true,
	.serve = serve,
	.ping = ping,
	.stream = stream,
};
