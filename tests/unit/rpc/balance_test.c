/* SPDX-License-Identifier: BSD-3-Clause */
/* How a client shares calls among services of which some fail, in virtual time. */
#include "../dice.h"
#include "../plx_test.h"

#include "rpc_client.h"

#define SERVICES   2
#define STEP_NS    (10 * PLX_NS_PER_US)
#define STEPS_OF_S (PLX_NS_PER_S / STEP_NS)
#define STEPS_MAX  128

static struct service {
	struct channel channel;
	unsigned took_steps;     /* from a call to its reply */
	unsigned errors_in_100;  /* of its replies */
	unsigned due[STEPS_MAX]; /* replies, by step */
	unsigned calls, failed;
} services[SERVICES];

static uint64_t now_ns, dice;
static uint8_t failure = PLX_RPC_ERROR;

static void start(unsigned i, unsigned took_steps, unsigned errors_in_100)
{
	now_ns = 3600 * PLX_NS_PER_S;
	services[i] = (struct service){.took_steps = took_steps, .errors_in_100 = errors_in_100};
}

static void take_reply(struct service *it)
{
	const struct rpc_header error = {.status = failure, .handler_ns = 1};

	it->channel.open--;
	if (dice_roll(&dice, 100) >= it->errors_in_100) {
		channel_note_success(&it->channel);
		return;
	}
	channel_note_failure(&it->channel, &error, now_ns);
	it->failed++;
}

static void call(unsigned step)
{
	struct service *best = &services[0];

	for (unsigned i = 1; i < SERVICES; i++) {
		if (channel_is_better(&services[i].channel, &best->channel, now_ns))
			best = &services[i];
	}
	best->channel.open++;
	best->calls++;
	best->due[(step + best->took_steps) % STEPS_MAX]++;
}

/* Calls at a constant rate. Counts those of this time. */
static void run(double seconds)
{
	for (unsigned i = 0; i < SERVICES; i++)
		services[i].calls = services[i].failed = 0;
	for (unsigned step = 0; step < seconds * STEPS_OF_S; step++, now_ns += STEP_NS) {
		for (unsigned i = 0; i < SERVICES; i++) {
			struct service *it = &services[i];

			for (; it->due[step % STEPS_MAX]; it->due[step % STEPS_MAX]--)
				take_reply(it);
		}
		call(step);
	}
}

/* 100 calls are open at a service that takes 1 ms, if it gets all. */
PLX_TEST(a_service_that_fails_at_once_does_not_attract_calls)
{
	static const uint8_t failures[] = {PLX_RPC_OVERLOADED, PLX_RPC_ERROR};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(failures); i++) {
		failure = failures[i];
		start(0, 1, 100);
		start(1, 100, 0);
		run(5);
		assert_in_range(services[0].calls, 1, 500);
		assert_in_range(services[1].calls, 499500, 500000);
	}
}

PLX_TEST(a_repaired_service_gets_its_share_again)
{
	start(0, 1, 100);
	start(1, 100, 0);
	run(5);
	services[0].took_steps = 100;
	services[0].errors_in_100 = 0;
	run(2); /* it is tried once a second */
	run(1);
	assert_in_range(services[0].calls, 40000, 60000);
	assert_int_equal(services[0].failed, 0);
}

PLX_TEST_MAIN()
