/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop that every lcore runs. One turn:
 *
 *     now = clock                            read once, passed down
 *     work  = messages from other threads    at most MESSAGES_TURN_MAX
 *     work += every poller                   each bounds itself
 *     work += timers that are due            at most WHEEL_FIRED_MAX
 *     work += tasks                          those scheduled before, each once
 *     idle(work)                             no work for some time: idle.c, sleep.c
 *
 * An idle turn costs one clock reading, one read of the doorbell's line, one comparison for all
 * timers and one for all tasks, and two counters, however many lcores there are. It allocates
 * nothing, takes no lock, logs nothing and makes no system call. Exceptions: every 64th turn checks
 * the user's descriptors, if any; and idle_watch.c measures ten times a second how much of its CPU
 * the lcore had. */
#include "lcore_priv.h"

#include <limits.h>
#include <sys/mman.h>

#define LOOK_TURNS 4096 /* turns between checks whether idle_watch.c is due */

__thread struct loop *loop_self;

/* Keep the longest recent pause. */
void loop_note_pause(struct loop *loop, uint64_t still_ns, uint64_t end_ns)
{
	if (still_ns < loop->still_ns &&
	    plx_time_since(loop->still_end_ns, end_ns) <= PLX_STOOD_STILL_NS)
		return;
	loop->still_ns = still_ns;
	loop->still_end_ns = end_ns;
}

uint64_t plx_loop_stood_still_ns(void)
{
	struct loop *loop = loop_self;

	if (!loop || plx_time_since(loop->still_end_ns, plx_loop_now_ns()) > PLX_STOOD_STILL_NS)
		return 0;
	return loop->still_ns;
}

/* Called after a turn that is the longest so far or very long, or after which the counter stepped.
 * Return: the turn's length. */
static PLX_NOINLINE uint64_t note_turn(struct loop *loop, uint64_t tsc)
{
	uint64_t cycles = tsc - loop->turn_tsc, took_ns = plx_tsc_to_ns(cycles), passed_ns;
	bool back = tsc < loop->turn_tsc;

	if (back || took_ns >= LOOP_LONG_NS) {
		plx_clock_look(true);
		passed_ns = plx_time_since(loop->now_ns, plx_tsc_time_ns(tsc));
		if (back || took_ns > plx_time_add(passed_ns, LOOP_LONG_NS))
			return 0;
		loop_note_pause(loop, took_ns, plx_tsc_time_ns(tsc));
	} else if (took_ns < LCORE_LONG_TURN_NS) {
		loop->counts.noted_cycles = cycles;
	}
	if (took_ns >= LCORE_LONG_TURN_NS && loop->on_long_turn &&
	    atomic_load_explicit(&loop->running, memory_order_relaxed)) /* its own flag */
		loop->on_long_turn(loop->on_long_turn_arg, took_ns);
	if (cycles > counter_get(&loop->counts.longest_turn_cycles))
		counter_set(&loop->counts.longest_turn_cycles, cycles);
	return cycles;
}

void lcore_on_long_turn(uint32_t id, void (*fn)(void *arg, uint64_t took_ns), void *arg)
{
	struct loop *loop = lcore_loop(id);

	if (!loop)
		return;
	loop->on_long_turn = fn;
	loop->on_long_turn_arg = arg;
}

/* A turn lasts until the next one starts, so one clock reading per turn is enough. */
static void charge_last_turn(struct loop *loop, uint64_t tsc)
{
	uint64_t cycles = tsc - loop->turn_tsc;

	if (plx_unlikely(cycles > loop->counts.noted_cycles))
		cycles = note_turn(loop, tsc);
	counter_add(&loop->share->cycles, cycles);
}

/* Moving timers to a lower level is not work, so the idle period continues. If more are left to
 * move it is work, because the lcore must not sleep then. */
static PLX_NOINLINE uint64_t fire_timers(struct loop *loop)
{
	uint64_t before = loop->wheel.fired, work;

	wheel_expire(&loop->wheel, loop->now_ns);
	work = loop->wheel.fired - before + (loop->wheel.next_ns <= loop->now_ns);

	counter_set(&loop->counts.timers, loop->wheel.fired);
	return work;
}

static inline PLX_ALWAYS_INLINE uint64_t turn(struct loop *loop)
{
	uint64_t tsc = plx_tsc();
	uint64_t work = 0;

	charge_last_turn(loop, tsc);
	loop->turn_tsc = tsc;
	loop->now_ns = plx_tsc_time_ns(tsc);

	if (plx_unlikely(!bell_is_silent(&loop->bell)))
		work = messages_receive(loop);
	work += pollers_run(&loop->pollers, loop->now_ns);
	if (plx_unlikely(loop->now_ns >= loop->wheel.next_ns))
		work += fire_timers(loop);
	if (plx_unlikely(tasks_wait(&loop->tasks)))
		work += tasks_run(&loop->tasks);

	loop->share = work ? &loop->counts.busy : &loop->counts.idle;
	counter_add(&loop->share->turns, 1);
	return work;
}

uint64_t loop_turn(struct loop *loop)
{
	return turn(loop);
}

bool plx_loop_in_turn(void)
{
	return loop_self && loop_self->entered;
}

int plx_check_outside(const char *what)
{
	if (plx_is_forked())
		return plx_fail_forked(what);
	if (!loop_self)
		return plx_fail_no_lcore(what);
	if (!loop_self->entered)
		return 0;
	return plx_fail(EBUSY,
			"%s: a callback of lcore %u makes this call, inside its loop; make it when "
			"the loop has returned (plx_loop_quit, plx_stop)",
			what, plx_lcore_id());
}

static struct loop *enter(struct loop *loop)
{
	loop->entered = true;
	if (!loop->turn_tsc) { /* no previous turn: nothing to charge, nor to find a step with */
		plx_clock_look(true);
		loop->turn_tsc = plx_tsc();
	}
	return loop;
}

/* A C++ callback must not throw. If it does, this cleanup still runs, so that the loop can be
 * entered again and plx_eal_fini ends it. (-fexceptions, see meson.build.) */
static void leave_turn(struct loop **loop)
{
	(*loop)->entered = false;
}

static void leave_run(struct loop **loop)
{
	/* Relaxed: a hint for other threads. */
	atomic_store_explicit(&(*loop)->running, false, memory_order_relaxed);
	charge_last_turn(*loop, plx_tsc());
	(*loop)->turn_tsc = 0; /* the time until the next run belongs to no turn */
	(*loop)->entered = false;
}

void loop_skip_time(struct loop *loop, uint64_t from_tsc, uint64_t to_tsc)
{
	charge_last_turn(loop, from_tsc);
	loop->turn_tsc = to_tsc;
	loop->now_ns = plx_tsc_time_ns(to_tsc);
}

static bool has_quit(const struct loop *loop)
{
	/* Relaxed: set by this thread. */
	return atomic_load_explicit(&loop->quit, memory_order_relaxed);
}

bool loop_asked_to_stop(const struct loop *loop)
{
	/* S2 <- S1 of stop.c */
	return has_quit(loop) || atomic_load_explicit(&lcore_stop.asked, memory_order_acquire);
}

/* What it takes belongs to no turn. */
static void leave_inside(struct loop **loop)
{
	(*loop)->turn_tsc = 0;
	(*loop)->entered = false;
}

void plx_loop_run_inside(void (*fn)(void *arg), void *arg)
{
	if (!loop_self || loop_self->entered) {
		fn(arg);
		return;
	}

	struct loop *entered PLX_CLEANUP(leave_inside) = enter(loop_self);

	entered->now_ns = plx_now_ns();
	fn(arg);
}

int lcore_loop_begin(void)
{
	if (plx_unlikely(!loop_self || loop_self->entered))
		return plx_check_outside("plx_loop_run");
	atomic_store_explicit(&loop_self->quit, false, memory_order_relaxed); /* as has_quit */
	return 0;
}

int lcore_loop_run(void)
{
	struct loop *loop = loop_self;

	idle_start(loop);

	struct loop *entered PLX_CLEANUP(leave_run) = enter(loop);
	/* Relaxed: a hint for other threads. */
	atomic_store_explicit(&loop->running, true, memory_order_relaxed);
	for (uint32_t turns = 1; !loop_asked_to_stop(loop); turns++) {
		bool worked = turn(loop) > 0;

		if (plx_unlikely(turns % LOOK_TURNS == 0))
			idle_look(loop);
		if (worked && loop->sleep_at_ns && loop->sleep_at_ns != PLX_NEVER)
			idle_end(loop);
		if (!worked && plx_unlikely(loop->now_ns >= loop->sleep_at_ns) && !has_quit(loop))
			idle_turn(loop);
	}
	if (plx_is_forked())
		return plx_fail_forked("plx_loop_run");
	pollers_leave(&loop->pollers);
	return 0;
}

int plx_loop_run(void)
{
	int rc = lcore_loop_begin();

	return rc ? rc : lcore_loop_run();
}

bool plx_loop_is_running(uint32_t id)
{
	const struct loop *loop = lcore_loop(id);

	/* Relaxed: may change at any time. */
	return loop && atomic_load_explicit(&loop->running, memory_order_relaxed);
}

int plx_loop_turn(void)
{
	struct loop *loop = loop_self;

	if (plx_unlikely(!loop || loop->entered))
		return plx_check_outside("plx_loop_turn");

	struct loop *entered PLX_CLEANUP(leave_turn) = enter(loop);
	uint64_t work = loop_turn(loop);

	return work > INT_MAX ? INT_MAX : (int)work;
}

int plx_loop_until(bool (*is_done)(void *arg), void *arg, uint64_t timeout_ns)
{
	uint64_t limit_ns = plx_time_add(plx_now_ns(), timeout_ns);
	int rc = plx_check_outside("plx_loop_until");

	if (rc)
		return rc;
	while (!is_done(arg)) {
		if (plx_now_ns() >= limit_ns)
			return plx_fail(ETIMEDOUT, "lcore %u: not done in %.6g s", plx_lcore_id(),
					(double)timeout_ns / 1e9);
		rc = plx_loop_turn();
		if (rc < 0)
			return rc;
	}
	return 0;
}

void plx_loop_quit(void)
{
	if (!loop_self)
		return;
	/* A signal handler may run between the last look of sleep_until_work and the sleep: as S1
	 * of a message, the store comes before wake_if_asleep looks. */
	atomic_store_explicit(&loop_self->quit, true, memory_order_seq_cst);
	wake_if_asleep(&loop_self->bell);
}

uint64_t plx_loop_now_ns(void)
{
	/* Between turns the last turn's clock is old: a timer started from it would be early. */
	if (!loop_self || !loop_self->entered)
		return plx_now_ns();
	return loop_self->now_ns;
}

/* Creating a loop --------------------------------------------------------------------------- */

/* Fresh pages are placed on the NUMA node of the lcore that first writes them (the kernel's default
 * policy, set_mempolicy(2)). */
size_t loop_bytes(void)
{
	return sizeof(struct loop) + others_size();
}

struct loop *loop_create(uint32_t lcore_id, int eventfd)
{
	struct loop *loop = mmap(NULL, loop_bytes(), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (loop == MAP_FAILED)
		return NULL;
	/* Adjacent loops must not share a huge page on one node. Fails on kernels without huge
	 * pages. */
	madvise(loop, loop_bytes(), MADV_NOHUGEPAGE);
	loop->share = &loop->counts.idle;
	others_init(loop, loop + 1);
	/* A wheel never goes back. It must not begin at a time that a look corrects later. */
	plx_clock_look(true);
	wheel_init(&loop->wheel, plx_now_ns());
	tasks_init(&loop->tasks, lcore_id);
	loop->pollers.lcore_id = loop->wheel.lcore_id = lcore_id;
	loop->bell.eventfd = eventfd;
	idle_apply(loop, &(struct plx_idle_conf){0});
	if (fds_init(&loop->fds, eventfd) == 0)
		return loop;
	loop_destroy(loop); /* keeps errno */
	return NULL;
}

void loop_destroy(struct loop *loop)
{
	fds_fini(&loop->fds);
	pollers_fini(&loop->pollers);
	wheel_fini(&loop->wheel);
	tasks_fini(&loop->tasks);
	munmap(loop, loop_bytes());
}

/* Also removes what waits for room in lanes. */
static void cancel_tasks(struct loop *loop)
{
	tasks_fini(&loop->tasks);
	for (uint32_t id = 0; id < PLX_LCORE_MAX; id++) {
		if (loop->out[id])
			tasks_fini(&loop->out[id]->waiting);
	}
}

bool loop_owes(const struct loop *loop)
{
	for (uint32_t id = 0; id < PLX_LCORE_MAX; id++) {
		if (loop->out[id] && tasks_wait(&loop->out[id]->waiting))
			return true;
	}
	return false;
}

void loop_park(struct loop *loop)
{
	wheel_fini(&loop->wheel);
	cancel_tasks(loop);
	fds_park(&loop->fds);
	pollers_park(&loop->pollers);
}

void loop_begin_again(struct loop *loop)
{
	loop->turn_tsc = 0;
	loop->idle.watch = (struct idle_watch){0};
	loop->idle.note = (struct cpu_note){0};
	atomic_store_explicit(&loop->quit, false, memory_order_relaxed); /* as has_quit */
}

/* A callback may fork, and the child return from it: the child must run no more timers, tasks,
 * descriptors or pollers in this turn, and no other turn. */
void loop_end_turns(struct loop *loop)
{
	atomic_store_explicit(&loop->quit, true, memory_order_relaxed); /* as has_quit */
	loop->fds.next = loop->fds.count;
	wheel_fini(&loop->wheel);
	loop->wheel.next_ns = UINT64_MAX;
	cancel_tasks(loop);
	for (uint32_t i = 0; i < loop->pollers.count; i++)
		loop->pollers.list[i]->removed = true;
}

/* Per-lcore variables ------------------------------------------------------------------------ */

/* An offset into a block in each loop's mapping. Nothing else touches the block's pages, so
 * variables are on the NUMA node of the lcore that first writes them. */

__thread char *plx_lcore_vars_tls;

static size_t used = PLX_CACHE_LINE; /* offset 0 means "none" */

int plx_lcore_var_create(size_t size_bytes, size_t align_bytes, struct plx_lcore_var *var_out)
{
	size_t align = align_bytes ? align_bytes : 8;
	size_t offset = (used + align - 1) & ~(align - 1);

	if (align & (align - 1) || align > PLX_CACHE_LINE || size_bytes == 0)
		return plx_fail(EINVAL,
				"plx_lcore_var_create: %zu bytes aligned to %zu: give at least 1, "
				"and a power of two up to %d",
				size_bytes, align, PLX_CACHE_LINE);
	if (offset > PLX_LCORE_VAR_BYTES || size_bytes > PLX_LCORE_VAR_BYTES - offset)
		return plx_fail(ENOMEM,
				"plx_lcore_var_create: %zu bytes: %zu of %d are taken; keep a "
				"pointer to the larger things instead",
				size_bytes, used, PLX_LCORE_VAR_BYTES);
	used = offset + size_bytes;
	var_out->offset = (uint32_t)offset;
	return 0;
}

void *plx_lcore_var_of(struct plx_lcore_var var, uint32_t id)
{
	struct loop *loop = lcore_loop(id);

	return loop ? loop->vars + var.offset : NULL;
}
