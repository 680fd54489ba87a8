/* SPDX-License-Identifier: BSD-3-Clause */
/* Each call that ends something, in each callback of every object: of the one that ends, and of its
 * neighbours. It works, or returns -EBUSY and does nothing. */
#include "netio_fixture.h"
#include "world.h"

/* What may be ended ---------------------------------------------------------------------------- */

/* They end with their socket, and that with its loop. */
static void close_receivers(void)
{
	if (!world.listen.listener)
		return;
	for (unsigned i = 0; i < PLX_ARRAY_LEN(world.from); i++) {
		if (world.from[i])
			netio_recv_socket_close(world.from[i]);
	}
}

static void end_listen(void)
{
	netio_listen_socket_fini(&world.listen);
	memset(world.from, 0, sizeof(world.from));
}

static void end_sends(void)
{
	netio_send_socket_fini(&world.send);
	netio_send_socket_fini(&world.lone_send);
	netio_send_socket_fini(&world.to_queue);
}

static void end_buffered(void)
{
	netio_buffered_send_socket_fini(&world.buffered);
	netio_buffered_send_socket_fini(&world.lone_buffered);
}

static void end_queue(void)
{
	netio_listen_socket_fini(&world.queue);
}

static void end_publish(void)
{
	netio_publish_socket_fini(&world.publish);
	world.subscriber = NULL;
}

static void end_unbuffered(void)
{
	netio_unbuffered_publish_socket_fini(&world.unbuffered);
	world.unbuffered_subscriber = NULL;
}

static void end_subscribe(void)
{
	netio_subscribe_socket_fini(&world.subscribe);
}

static void end_push(void)
{
	netio_push_socket_fini(&world.push);
}

static void end_signal(void)
{
	netio_signal_fini(&world.signal);
}

static void end_timer(void)
{
	netio_timer_stop(&world.timer);
}

static void end_fds(void)
{
	netio_fd_fini(&world.watch);
	netio_fd_fini(&world.other_watch);
}

static void disconnect_sends(void)
{
	netio_disconnect(&world.send);
	netio_disconnect(&world.lone_send);
	netio_disconnect(&world.to_queue);
}

static void disconnect_buffered(void)
{
	netio_buffered_disconnect(&world.buffered);
	netio_buffered_disconnect(&world.lone_buffered);
}

static void disconnect_push(void)
{
	netio_push_disconnect(&world.push, WORLD_HOST, world_port());
	netio_push_disconnect(&world.push, WORLD_HOST, 1);
}

static void close_subscribers(void)
{
	if (world.subscriber && world.publish.core)
		netio_subscriber_close(world.subscriber);
	if (world.unbuffered_subscriber && world.unbuffered.core)
		netio_subscriber_close(world.unbuffered_subscriber);
}

static void unsubscribe_all(void)
{
	unsigned ports[] = {netio_publish_socket_port(&world.publish),
			    netio_unbuffered_publish_socket_port(&world.unbuffered), 1};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(ports); i++)
		for (netio_tag_t tag = 1; tag <= 3; tag++)
			netio_unsubscribe(&world.subscribe, WORLD_HOST, ports[i], tag);
}

static void mask_fds(void)
{
	netio_fd_modify(&world.watch, 0);
	netio_fd_modify(&world.other_watch, 0);
}

/* Its memory is used again at once. */
static void renew_send(void)
{
	netio_send_socket_fini(&world.send);
	if (world_send_up(&world.send) == 0)
		netio_connect(&world.send, WORLD_HOST, world_port());
	else
		assert_non_null(strstr(plx_error(), "netio_fini is ending this loop"));
}

static void end_all(void)
{
	world_end_sockets();
	world_end_callbacks();
	world.subscriber = world.unbuffered_subscriber = NULL;
	memset(world.from, 0, sizeof(world.from));
	for (unsigned i = 0; i < LOOP; i++)
		world.ended[i] = true;
}

/* What may not: the loop, and what waits for it. */
static void run_again(void)
{
	assert_fails(netio_run(&world.loop), -EBUSY,
		     "netio_run: inside a callback; call plx_loop_quit, or");
}

static void drain(void)
{
	assert_fails(netio_drain(&world.loop, PLX_NEVER), -EBUSY, "netio_drain: inside a callback");
}

static void end_loops(void)
{
	assert_fails(netio_eventloop_fini(&world.loop), -EBUSY,
		     "netio_eventloop_fini: inside a callback");
	assert_fails(netio_fini(&ctx), -EBUSY, "netio_fini: inside a callback");
}

struct ending {
	const char *name;
	void (*end)(void);
	enum world_thing thing; /* whose callbacks end; LOOP: none */
	bool does_nothing;
};

static const struct ending endings[] = {
	{"end sends", end_sends, SEND, false},
	{"end buffered", end_buffered, BUFFERED, false},
	{"end listen", end_listen, LISTEN, false},
	{"end queue", end_queue, QUEUE, false},
	{"end publish", end_publish, PUBLISH, false},
	{"end unbuffered", end_unbuffered, UNBUFFERED, false},
	{"end subscribe", end_subscribe, SUBSCRIBE, false},
	{"end push", end_push, PUSH, false},
	{"end signal", end_signal, SIGNAL, false},
	{"end timer", end_timer, TIMER, false},
	{"end fds", end_fds, FD, false},
	{"end all", end_all, LOOP, false},
	{"renew send", renew_send, LOOP, false},
	{"disconnect sends", disconnect_sends, LOOP, false},
	{"disconnect buffered", disconnect_buffered, LOOP, false},
	{"disconnect push", disconnect_push, LOOP, false},
	{"close receivers", close_receivers, LOOP, false},
	{"close subscribers", close_subscribers, LOOP, false},
	{"unsubscribe", unsubscribe_all, LOOP, false},
	{"mask fds", mask_fds, LOOP, false},
	{"netio_run", run_again, LOOP, true},
	{"netio_drain", drain, LOOP, true},
	{"netio_fini", end_loops, LOOP, true},
};

/* Ways to turn the loop ------------------------------------------------------------------------ */

static void by_turn(void)
{
	plx_loop_turn();
}

static void stop_netio(struct plx_task *task, void *arg)
{
	netio_terminate(&world.loop);
}

static void by_netio_run(void)
{
	static struct plx_task stop = {.fn = stop_netio};

	plx_task_schedule(&stop);
	WORLD_MUST(0, netio_run(&world.loop));
}

static void stop_lcore(struct plx_task *task, void *arg)
{
	plx_loop_quit();
}

static void by_loop_run(void)
{
	static struct plx_task stop = {.fn = stop_lcore};

	plx_task_schedule(&stop);
	WORLD_MUST(0, plx_loop_run());
}

static bool has_turned(void *arg)
{
	return (*(unsigned *)arg)++;
}

static void by_until(void)
{
	unsigned turns = 0;

	WORLD_MUST(0, plx_loop_until(has_turned, &turns, PLX_NEVER));
}

/* Running -------------------------------------------------------------------------------------- */

static const struct ending *ending;
static enum world_callback in;

static void end_in_callback(enum world_callback callback)
{
	static char at[128];

	if (callback != in || world.at)
		return;
	snprintf(at, sizeof(at), "%s in %s", ending->name, world_names[callback]);
	world.at = at;
	ending->end();
	world.ended[ending->thing] |= ending->thing != LOOP;
	world.disturbed = !ending->does_nothing;
}

/* Both orders are allowed. */
static void world_down(bool sockets_first)
{
	world_hook = NULL;
	world_release_kept();
	world_end_callbacks();
	if (sockets_first)
		world_end_sockets();
	WORLD_MUST(0, netio_eventloop_fini(&world.loop));
	world_end_sockets();
	world_close_descriptors();
}

/* The callbacks that run meanwhile. */
static void note_callbacks(void (*during)(void), bool runs[WORLD_CALLBACK_COUNT])
{
	world_up();
	world_run(WORLD_OPEN_PHASES, by_turn);
	memset(world.counts, 0, sizeof(world.counts));
	during();
	for (unsigned i = 0; i < WORLD_CALLBACK_COUNT; i++)
		runs[i] = world.counts[i] > 0;
	world_down(true);
}

static void check_during(void (*during)(void))
{
	bool runs[WORLD_CALLBACK_COUNT];

	note_callbacks(during, runs);
	for (ending = endings; ending < endings + PLX_ARRAY_LEN(endings); ending++) {
		for (in = 0; in < WORLD_CALLBACK_COUNT; in++) {
			if (!runs[in])
				continue;
			world_up();
			world_run(WORLD_OPEN_PHASES, by_turn);
			world_hook = end_in_callback;
			during();
			world_down(in % 2 == 0);
		}
	}
}

/* Each ending meets each way to turn. */
NETIO_TEST(in_every_callback_of_a_loop_that_turns)
{
	static void (*const turns[])(void) = {by_turn, by_netio_run, by_loop_run, by_until};
	unsigned number = 0;

	for (ending = endings; ending < endings + PLX_ARRAY_LEN(endings); ending++) {
		for (in = 0; in < WORLD_CALLBACK_COUNT; in++, number++) {
			world_up();
			world_hook = end_in_callback;
			world_run(WORLD_PHASES, turns[number % PLX_ARRAY_LEN(turns)]);
			assert_non_null(world.at);
			world_down(number % 3 == 0);
		}
	}
}

/* Everything has something to do. */
static void rouse(void)
{
	uint64_t one = 1;

	netio_signal_fire(&world.signal);
	netio_post(&world.loop, on_LOOP_posted, NULL);
	WORLD_MUST(8, write(world.fd, &one, sizeof(one)));
	WORLD_MUST(8, write(world.other_fd, &one, sizeof(one)));
}

static void by_netio_drain(void)
{
	rouse();
	WORLD_MUST(0, netio_drain(&world.loop, WORLD_LIMIT_NS));
}

NETIO_TEST(in_every_callback_of_netio_drain)
{
	check_during(by_netio_drain);
}

static void by_fabric_drain(void)
{
	rouse();
	WORLD_MUST(0, plx_fabric_drain(WORLD_LIMIT_NS));
}

NETIO_TEST(in_every_callback_of_plx_fabric_drain)
{
	check_during(by_fabric_drain);
}

static void by_netio_fini(void)
{
	rouse();
	WORLD_MUST(0, netio_eventloop_fini(&world.loop));
}

NETIO_TEST(in_every_callback_of_netio_fini)
{
	check_during(by_netio_fini);
}

PLX_TEST_MAIN()
