/* SPDX-License-Identifier: BSD-3-Clause */
/* See ends.h. Arguments: the provider, and perhaps a place, a callback and a call ("-": all), to
 * run these alone, and N, to run one in N of the pairs. --table prints what doc/guide/loop.md has
 * of it.
 */
#include "ends.h"
#include "floating.h"

#include <unwind.h>

#define TURNS_MAX  20000                /* in which a callback has run, or does not, */
#define RUN_NS     (10 * PLX_NS_PER_MS) /* and this long: longer than the back-off to reconnect */
#define TURNS_MORE 30                   /* after the call */

static const struct ends_part *const parts[] = {&ends_lcore, &ends_link, &ends_rpc, &ends_netio};
#define PARTS PLX_ARRAY_LEN(parts)

static const char *const places[] = {
	[ENDS_IN_RUN] = "plx_loop_run",       [ENDS_IN_NETIO_RUN] = "netio_run",
	[ENDS_IN_DRAIN] = "plx_fabric_drain", [ENDS_IN_NETIO_DRAIN] = "netio_drain",
	[ENDS_IN_FINI] = "plx_eal_fini",      [ENDS_IN_NETIO_FINI] = "netio_fini",
};

struct netio_context ends_context;

/* The pair that is tried. */
static struct {
	uint64_t end_ns; /* of the run, at the earliest */
	enum ends_place place;
	const struct ends_callback *callback;
	const struct ends_call *call;
	const struct ends_part
		*parts[2]; /* whose callback, and whose call: the others have no objects */
	bool is_armed, has_run, in_call;
	const void *ended[16];
	unsigned ended_count;
	int result;
	unsigned turns, ran_at;
} now;

static unsigned tried, ran;
static bool runs_here; /* the callback, in this place */

static bool has_netio(void)
{
	return now.place != ENDS_IN_FINI;
}

void ends_ended(const void *object)
{
	if (!now.is_armed)
		return;
	assert_true(now.ended_count < PLX_ARRAY_LEN(now.ended));
	now.ended[now.ended_count++] = object;
}

static void check_alive(const char *callback, const void *object)
{
	if (now.in_call && now.call->outcome != ENDS_CALLS)
		fail_msg("%s runs inside %s", callback, now.call->name);
	for (unsigned i = 0; i < now.ended_count; i++) {
		if (object && now.ended[i] == object)
			fail_msg("%s runs after %s", callback, now.call->name);
	}
}

/* What the call ends has ended already; netio_fini ends all sockets at once. */
static bool is_gone(int result)
{
	return result == 1 || result == -EALREADY || result == -ENOTCONN || result == -ENOENT ||
	       (result == -EINVAL && now.place == ENDS_IN_NETIO_FINI);
}

void ends_in(const char *callback, const void *object)
{
	if (!now.is_armed)
		return;
	check_alive(callback, object);
	if (now.has_run || strcmp(callback, now.callback->name) != 0)
		return;
	now.has_run = true;
	now.ran_at = now.turns;
	assert_true(plx_loop_in_turn());
	now.in_call = true;
	now.result = now.call->make();
	now.in_call = false;
	if (now.call->outcome == ENDS_REFUSES && now.result != 1)
		assert_int_equal(now.result, -EBUSY);
	else if (!is_gone(now.result))
		assert_int_equal(now.result, 0);
}

/* Exceptions of C++, as the library sees them: its frames are unwound, with their clean-ups. */
static struct {
	struct _Unwind_Exception exception;
	jmp_buf catcher;
	uintptr_t frame; /* of the function that catches it */
} thrown;

static _Unwind_Reason_Code stop_unwinding(int version, _Unwind_Action actions,
					  _Unwind_Exception_Class kind,
					  struct _Unwind_Exception *exception,
					  struct _Unwind_Context *context, void *arg)
{
	if (_Unwind_GetCFA(context) >= thrown.frame)
		longjmp(thrown.catcher, 1);
	return _URC_NO_REASON;
}

static int throw_exception(void)
{
	now.in_call = false;
	_Unwind_ForcedUnwind(&thrown.exception, stop_unwinding, NULL);
	return -EFAULT;
}

static const struct ends_call throwing = {"an exception", ENDS_CALLS, throw_exception};

void ends_turn_until(bool (*done)(void))
{
	uint64_t limit_ns = plx_now_ns() + 10 * PLX_NS_PER_S;

	while (!done()) {
		if (plx_now_ns() >= limit_ns) {
			PLX_LINK_FOREACH(link)
			print_error("a link to %s is left\n", plx_link_peer(link));
			fail_msg("not ready after 10 s; %u links and listeners are open",
				 plx_fabric_open_count());
		}
		assert_true(plx_loop_turn() >= 0);
	}
}

/* Ends the loop when the callback has run and its call had time to do harm. */
static int count_turn(void *arg, uint64_t now_ns)
{
	now.turns++;
	if ((now.turns >= TURNS_MAX && now_ns >= now.end_ns) ||
	    (now.has_run && now.turns >= now.ran_at + TURNS_MORE)) {
		plx_loop_quit();
		if (has_netio())
			netio_terminate(&ends_context.evloop);
	}
	return 0;
}

static bool exists(const struct ends_part *part)
{
	return part != &ends_netio || has_netio();
}

/* Whether it has objects in this pair. What waits for closures has some to wait for. */
static bool is_up(const struct ends_part *part)
{
	bool is_waited_for = !(ENDS_RUNS & 1u << now.place) &&
			     (part == &ends_link || (part == &ends_netio && has_netio()));

	return is_waited_for || part == now.parts[0] || part == now.parts[1];
}

static const char *provider;

static int run_once(void)
{
	switch (now.place) {
	case ENDS_IN_RUN:
		return plx_loop_run();
	case ENDS_IN_NETIO_RUN:
		return netio_run(&ends_context.evloop);
	case ENDS_IN_DRAIN:
		return plx_fabric_drain(10 * PLX_NS_PER_S);
	case ENDS_IN_NETIO_DRAIN:
		return netio_drain(&ends_context.evloop, 10 * PLX_NS_PER_S);
	case ENDS_IN_FINI:
		return plx_eal_fini();
	default:
		return netio_fini(&ends_context);
	}
}

/* Again after an exception. */
static void run_in_place(void)
{
	if (is_up(&ends_rpc) && (now.place == ENDS_IN_FINI || now.place == ENDS_IN_NETIO_FINI)) {
		now.is_armed =
			false; /* clients and services end before the lcores: see plx_rpc.h */
		ends_rpc.down(true);
		now.end_ns = plx_now_ns() + RUN_NS;
		now.is_armed = true;
	}
	thrown.frame = (uintptr_t)__builtin_frame_address(0);
	if (setjmp(thrown.catcher))
		assert_false(plx_loop_is_running(plx_lcore_id()));
	assert_works(run_once());
}

static void init(void)
{
	char lcores[FLOATING_BYTES];
	struct plx_eal_conf conf = {.lcores = floating("0", lcores),
				    .huge = PLX_HUGE_NONE,
				    .idle = "poll",
				    .log_levels = {"error"},
				    .log_level_count = 1};

	if (plx_lcore_count())
		return;
	ends_context = (struct netio_context){0};
	if (has_netio())
		assert_works(netio_init_conf(&ends_context, &conf));
	else
		assert_works(plx_eal_init(&conf));
}

static void fini(void)
{
	if (has_netio())
		assert_works(netio_fini(&ends_context));
	else
		assert_works(plx_eal_fini());
	assert_int_equal(plx_lcore_count(), 0);
}

static bool is_nothing_open(void)
{
	return plx_fabric_open_count() == 0;
}

/* The lcores stay up for the next pair, unless this one has stopped them. */
static void clear(void)
{
	for (unsigned i = 0; i < PARTS; i++) {
		if (is_up(parts[i]))
			parts[i]->down(plx_lcore_count() != 0);
	}
	if (plx_lcore_count() && !plx_stopping())
		ends_turn_until(is_nothing_open);
	else
		fini();
}

/* plx_shm has no direct data placement. */
static bool is_possible(void)
{
	return strcmp(provider, "shm") != 0 || strcmp(now.call->name, "plx_region_revoke") != 0;
}

static void try_pair(void)
{
	struct plx_poller *counter;

	now.is_armed = now.has_run = now.in_call = false;
	now.turns = now.ended_count = 0;
	init();
	for (unsigned i = 0; i < PARTS; i++) {
		if (is_up(parts[i]))
			parts[i]->up(provider);
	}
	assert_works(plx_poller_add("count", count_turn, NULL, &counter));
	now.end_ns = plx_now_ns() + RUN_NS;
	now.is_armed = true;
	for (unsigned i = 0; i < PARTS; i++) {
		if (is_up(parts[i]))
			parts[i]->kick();
	}
	run_in_place();
	if (plx_lcore_count())
		plx_poller_remove(counter);
	now.is_armed = false;
	clear();
	tried++;
	runs_here |= now.has_run;
	ran += now.has_run && now.result != 1;
	if (now.has_run && now.result == 1 && ENDS_RUNS & 1u << now.place && is_possible())
		fail_msg("%s was not made in %s in %s", now.call->name, now.callback->name,
			 places[now.place]);
	if (!now.has_run && now.callback->places & 1u << now.place)
		fail_msg("%s has not run in %s", now.callback->name, places[now.place]);
}

static const char *only[3]; /* a place, a callback, a call; NULL: all */
static unsigned one_in = 1;

static bool is_wanted(unsigned i, const char *name)
{
	return !only[i] || strcmp(only[i], name) == 0;
}

/* In a place where a callback need not run, and has not in this number of pairs, it is left out. */
#define SKIPS_AFTER 3

static bool is_skipped(unsigned tried_of_it)
{
	return tried_of_it >= SKIPS_AFTER && !runs_here &&
	       !(now.callback->places & 1u << now.place);
}

static void try_call(const struct ends_call *call, unsigned tried_before)
{
	now.call = call;
	if (is_wanted(2, call->name) && !is_skipped(tried - tried_before))
		try_pair();
}

static void try_callback(const struct ends_callback *callback, unsigned number)
{
	unsigned tried_before = tried;

	now.callback = callback;
	runs_here = false;
	now.parts[1] = now.parts[0];
	try_call(&throwing, tried_before);
	for (unsigned i = 0; i < PARTS; i++) {
		now.parts[1] = parts[i];
		for (unsigned j = 0; exists(parts[i]) && j < parts[i]->call_count; j++) {
			if (number++ % one_in == 0)
				try_call(&parts[i]->calls[j], tried_before);
		}
	}
}

static void try_place(enum ends_place place)
{
	unsigned number = 0;

	now.place = place;
	tried = ran = 0;
	for (unsigned i = 0; i < PARTS; i++) {
		now.parts[0] = parts[i];
		for (unsigned j = 0; exists(parts[i]) && j < parts[i]->callback_count; j++) {
			if (is_wanted(1, parts[i]->callbacks[j].name))
				try_callback(&parts[i]->callbacks[j], number++);
		}
	}
	fini();
	print_message("%s: %u pairs of a call and a callback, of which %u were made\n",
		      places[place], tried, ran);
	assert_true(ran > 0);
}

PLX_TEST(each_callback_may_make_each_call_that_ends_something)
{
	for (unsigned place = 0; place < ENDS_PLACES; place++) {
		if (is_wanted(0, places[place]))
			try_place(place);
	}
}

static int print_table(void)
{
	static const char *const outcomes[] = {
		[ENDS_WORKS] = "works",        [ENDS_CALLS] = "works, and runs callbacks",
		[ENDS_DEFERS] = "deferred",    [ENDS_REFUSES] = "`-EBUSY`",
		[ENDS_LOGS] = "logs an error",
	};

	printf("| library | call | in a callback |\n|---|---|---|\n");
	for (unsigned i = 0; i < PARTS; i++) {
		const struct ends_call *calls = parts[i]->calls;

		for (unsigned j = 0; j < parts[i]->call_count; j++) {
			bool is_function = !strchr(calls[j].name, ' ');

			if (is_function &&
			    (j == 0 || strcmp(calls[j].name, calls[j - 1].name) != 0))
				printf("| %s | `%s` | %s |\n", parts[i]->name, calls[j].name,
				       outcomes[calls[j].outcome]);
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--table") == 0)
		return print_table();
	provider = argc > 1 ? argv[1] : "shm";
	for (int i = 2; i < argc && i < 5; i++)
		only[i - 2] = strcmp(argv[i], "-") == 0 ? NULL : argv[i];
	if (argc > 5)
		one_in = (unsigned)atoi(argv[5]);
	return plx_test_run("ends", NULL, NULL);
}
