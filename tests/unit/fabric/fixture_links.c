/* SPDX-License-Identifier: BSD-3-Clause */
/* Lcore 1 of the fixture, and its links. */
#include "fixture.h"

/* Lcore 1 -------------------------------------------------------------------------------------- */

static int run_loop(void *arg)
{
	return plx_loop_run();
}

void worker_start(void)
{
	assert_int_equal(plx_lcore_launch(1, run_loop, NULL), 0);
	expect_soon(plx_loop_is_running(1));
}

static void quit(void *arg)
{
	plx_loop_quit();
}

void worker_stop(void)
{
	assert_int_equal(plx_lcore_send(1, quit, NULL), 0);
	assert_int_equal(plx_lcore_join(1, 5 * PLX_NS_PER_S, NULL), 0);
}

struct errand {
	plx_message_fn fn;
	void *arg;
	_Atomic unsigned done;
};

static void run_errand(void *arg)
{
	struct errand *errand = arg;

	errand->fn(errand->arg);
	errand->done = 1;
}

void worker_call(plx_message_fn fn, void *arg)
{
	struct errand errand = {.fn = fn, .arg = arg};

	assert_int_equal(plx_lcore_send(1, run_errand, &errand), 0);
	assert_true(pump_until(&errand.done, 1, 5000));
}

void worker_end_turn(void)
{
	struct plx_lcore_stats before, now;

	plx_lcore_stats_read(1, &before);
	do
		plx_lcore_stats_read(1, &now);
	while (now.turns < before.turns + 2);
}

/* Links ---------------------------------------------------------------------------------------- */

struct plx_listener *fixture_listen_as(const char *address, struct plx_listen_attr attr)
{
	struct plx_listener *listener;

	attr.link.events = &side_events;
	attr.link.user = &server;
	if (plx_link_listen(address, &attr, &listener) != 0)
		fail_msg("plx_link_listen: %s", plx_error());
	return listener;
}

struct plx_listener *fixture_listen(const char *address, const struct plx_link_attr *attr)
{
	return fixture_listen_as(
		address,
		(struct plx_listen_attr){.link = attr ? *attr : (struct plx_link_attr){0}});
}

bool has_request_on_its_way(const struct plx_listener *listener)
{
	const struct plx_listener_stats stats = listener_stats_of(listener);

	return stats.requests > stats.opened + stats.refused + stats.failed;
}

void server_set_aside(struct side *to)
{
	*to = server;
	plx_link_set_user(to->link, to);
	memset(&server, 0, sizeof(server));
}

void side_connect(struct side *side, const char *address, const struct plx_link_attr *attr)
{
	struct plx_link_attr connect = attr ? *attr : (struct plx_link_attr){0};

	connect.events = &side_events;
	connect.user = side;
	if (plx_link_connect(address, &connect, &side->link) != 0)
		fail_msg("plx_link_connect to %s: %s", address, plx_error());
}

void client_connect(const char *address, const struct plx_link_attr *attr)
{
	side_connect(&client, address, attr);
}

void fixture_connect(struct plx_listener *listener, const struct plx_link_attr *attr)
{
	client_connect(plx_listener_address(listener), attr);
	expect_open();
}

struct plx_listener *fixture_pair(const struct plx_link_attr *attr)
{
	struct plx_listener *listener = fixture_listen(here("0"), attr);

	fixture_connect(listener, attr);
	return listener;
}

void expect_open(void)
{
	if (!pump_until(&client.opened, 1, 5000) || !pump_until(&server.opened, 1, 5000))
		fail_msg("not open: client '%s', server '%s'", client.text, server.text);
}

void expect_end(struct side *side, enum plx_link_reason reason)
{
	if (!pump_until(&side->closed, 1, 5000))
		fail_msg("the link of %s has not ended", side->name);
	assert_int_equal(side->reason, reason);
}

void expect_both_end(void)
{
	if (!pump_until(&client.closed, 1, 10000) || !pump_until(&server.closed, 1, 10000))
		fail_msg("not ended: client '%s', server '%s'", client.text, server.text);
}

void expect_message(const struct side *side, unsigned count, const void *bytes, size_t length)
{
	if (!pump_until(&side->messages, count, 10000))
		fail_msg("%zu bytes did not come: client '%s', server '%s'", length, client.text,
			 server.text);
	assert_int_equal(side->last_len, length);
	assert_memory_equal(side->last, bytes, length);
}

void expect_arrival(const void *bytes, size_t length)
{
	unsigned before = server.messages;

	assert_works(plx_link_send(client.link, bytes, length));
	expect_message(&server, before + 1, bytes, length);
}

void expect_echo(const void *bytes, size_t length)
{
	unsigned before = client.messages;

	assert_works(plx_link_send(client.link, bytes, length));
	expect_message(&client, before + 1, bytes, length);
}

uint8_t *fixture_pattern(size_t size, unsigned seed)
{
	uint8_t *bytes = malloc(size + 1);

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)((i + seed) * 31 + (i >> 8));
	return bytes;
}

uint32_t place_on_lcore_1(struct plx_listener *at, const struct sockaddr *peer, void *arg)
{
	return 1;
}
