/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of exception_netio.cc in C: each callback of every NetIO object throws once. */
#include "exception_netio.h"

#include "../unit/netio/world.h"

static enum world_callback in;
static bool threw;

static void throw_in_callback(enum world_callback callback)
{
	if (callback != in || threw)
		return;
	threw = world.disturbed = true;
	throw_exception(world_names[callback]);
}

static void begin(void)
{
	threw = false;
	world_up();
	world.at = world_names[in];
}

/* All objects end as if nothing had been. */
static void end(void)
{
	world_hook = NULL;
	world_release_kept();
	world_end_callbacks();
	world_end_sockets();
	WORLD_MUST(0, netio_eventloop_fini(&world.loop));
	world_close_descriptors();
}

/* In loops that turn --------------------------------------------------------------------------- */

static void turn(void)
{
	plx_loop_turn();
}

static void stop(struct plx_task *task, void *arg)
{
	netio_terminate(&world.loop);
}

static void run(void)
{
	static struct plx_task stopper = {.fn = stop};

	plx_task_schedule(&stopper);
	WORLD_MUST(0, netio_run(&world.loop));
}

static void turn_catching(void)
{
	catch_exception(turn);
}

static void run_catching(void)
{
	catch_exception(run);
}

static void throw_while_it_turns(void (*turn_it)(void))
{
	for (in = 0; in < WORLD_CALLBACK_COUNT; in++) {
		begin();
		world_hook = throw_in_callback;
		world_run(WORLD_PHASES, turn_it);
		if (!threw)
			world_fail("it did not throw", 0);
		end();
	}
}

/* In calls that turn the loop ------------------------------------------------------------------ */

static void drain(void)
{
	WORLD_MUST(0, netio_drain(&world.loop, WORLD_LIMIT_NS));
}

static void fini(void)
{
	WORLD_MUST(0, netio_eventloop_fini(&world.loop));
}

/* After an exception it may be called again. */
static void throw_during(void (*call)(void), unsigned throws_min)
{
	unsigned throws = 0;

	for (in = 0; in < WORLD_CALLBACK_COUNT; in++) {
		begin();
		world_run(WORLD_OPEN_PHASES, turn);
		netio_signal_fire(&world.signal);
		netio_post(&world.loop, on_LOOP_posted, NULL);
		world_hook = throw_in_callback;
		catch_exception(call);
		throws += threw;
		call();
		end();
	}
	if (throws < throws_min)
		world_fail("exceptions", (int)throws);
}

void throw_in_each_callback(void)
{
	throw_while_it_turns(turn_catching);
	throw_while_it_turns(run_catching);
	throw_during(drain, 10);
	throw_during(fini, 2);
}
