/* SPDX-License-Identifier: BSD-3-Clause */
/* The set of lcores: from a map to pinned threads with a loop each, and back. */
#include "lcore_priv.h"
#include "mem_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

PLX_LOG_COMPONENT(log_lcore, "lcore");

static struct lcore lcores[PLX_LCORE_MAX];

/* Relaxed throughout: they guard no other data; L1 publishes each lcore. */
static _Atomic uint32_t lcore_count;
static _Atomic uint32_t main_id = PLX_LCORE_NONE;

/* Written before there are other lcores. */
const struct plx_topo *lcore_topo;
struct plx_cpuset lcore_old_cpus;
uint32_t lcore_lane_slots;
struct plx_idle_conf lcore_adopted_idle;

/* One lcore -------------------------------------------------------------------------------- */

struct loop *lcore_loop(uint32_t id)
{
	if (id >= PLX_LCORE_MAX)
		return NULL;
	return atomic_load_explicit(&lcores[id].loop, memory_order_acquire); /* L2 <- L1 */
}

struct lcore *lcore_get(uint32_t id)
{
	return lcore_loop(id) ? &lcores[id] : NULL;
}

bool plx_lcore_is_worker(uint32_t id)
{
	const struct lcore *lcore = lcore_get(id);

	return lcore && atomic_load_explicit(&lcore->worker, memory_order_relaxed);
}

void lcore_become(struct loop *loop, uint32_t id)
{
	loop_self = loop;
	plx_lcore_vars_tls = loop ? loop->vars : NULL;
	plx_lcore_id_tls = id;
}

int plx_fail_no_lcore(const char *what)
{
	if (plx_is_forked())
		return plx_fail_forked(what);
	if (!plx_lcore_count())
		return plx_fail(ENOENT, "%s: " NOT_UP_TEXT, what);
	return plx_fail(
		ENOENT,
		"%s: this thread is not an lcore; call plx_lcore_adopt on it first, or make "
		"this call on the main lcore or on a worker",
		what);
}

int lcore_fail_unknown(const char *what, uint32_t id)
{
	if (plx_is_forked())
		return plx_fail_forked(what);
	return plx_fail(ENOENT, "%s: there is no lcore %u%s", what, id,
			plx_lcore_count() ? "" : ": " NOT_UP_TEXT);
}

/* The main thread may act for an lcore that runs nothing: see plx_fabric_fini. With no lcores left
 * any thread may. In the child of a fork, calls fail and report the fork themselves. */
static bool may_stand_in(uint32_t owner)
{
	if (plx_is_forked() || !plx_lcore_count())
		return true;
	return plx_lcore_id() == plx_lcore_main() && plx_lcore_state(owner) != PLX_LCORE_RUNNING;
}

const char *lcore_text(const struct lcore *lcore)
{
	static __thread char text[160];
	char cpus[80];

	if (plx_cpuset_count(&lcore->cpus))
		snprintf(text, sizeof(text), "lcore %u (CPU %s)", lcore->id,
			 plx_cpuset_format(&lcore->cpus, cpus, sizeof(cpus)));
	else
		snprintf(text, sizeof(text), "lcore %u (not pinned)", lcore->id);
	return text;
}

/* Remove an lcore whose thread has ended, or is the calling one. */
static void lcore_clear(struct lcore *lcore)
{
	/* Relaxed: this thread stored it, or has joined the thread that did. */
	struct loop *loop = atomic_load_explicit(&lcore->loop, memory_order_relaxed);
	uint64_t unread = messages_fini(loop);

	if (unread)
		plx_log(&log_lcore, PLX_LOG_WARNING,
			"lcore %u ended with %llu message%s that it never received", lcore->id,
			(unsigned long long)unread, unread == 1 ? "" : "s");
	atomic_store_explicit(&lcore->loop, NULL, memory_order_relaxed); /* publishes nothing */
	atomic_store_explicit(&lcore->state, PLX_LCORE_OFF, memory_order_relaxed);
	atomic_store_explicit(&lcore->worker, false, memory_order_relaxed);
	loop_destroy(loop);
}

/* The descriptors are shared with the parent: do not write to them or change them. */
static void forget(struct lcore *lcore)
{
	struct loop *loop = atomic_load_explicit(&lcore->loop, memory_order_relaxed);

	if (!loop)
		return;
	loop->bell.eventfd = -1;
	fds_forget(&loop->fds);
	/* Relaxed: there is one thread. */
	atomic_store_explicit(&lcore->loop, NULL, memory_order_relaxed);
	atomic_store_explicit(&lcore->state, PLX_LCORE_OFF, memory_order_relaxed);
}

void lcore_forget_all(void)
{
	for (uint32_t id = 0; id < PLX_LCORE_MAX; id++)
		forget(&lcores[id]);
	lcore_become(NULL, PLX_LCORE_NONE);
	atomic_store_explicit(&main_id, PLX_LCORE_NONE, memory_order_relaxed);
	atomic_store_explicit(&lcore_count, 0, memory_order_relaxed);
}

PLX_CONSTRUCTOR static void let_main_stand_in(void)
{
	owner_may_stand_in = may_stand_in;
}

/* All lcores ------------------------------------------------------------------------------- */

static int check(const struct plx_lcore_conf *conf, uint32_t *main_out)
{
	const struct plx_lcore_map *map = conf->map;
	bool has_main = false;

	if (!conf->topo || !map || !map->count)
		return plx_fail(EINVAL, "plx_lcores_init: %s; give a topology and at least 1 lcore",
				conf->topo ? "no lcores" : "no topology");
	for (uint32_t i = 0; i < map->count; i++) {
		uint32_t id = map->places[i].lcore_id;

		if (id >= PLX_LCORE_MAX)
			return plx_fail(EINVAL, "lcore %u: ids are 0 to %u", id, PLX_LCORE_MAX - 1);
		if (i > 0 && id <= map->places[i - 1].lcore_id)
			return plx_fail(EINVAL,
					"lcore %u follows lcore %u in the map; ids must "
					"ascend, each once",
					id, map->places[i - 1].lcore_id);
		has_main |= id == conf->main_lcore;
	}
	if (conf->main_lcore != PLX_LCORE_NONE && !has_main) {
		char list[256];

		return plx_fail(EINVAL,
				"main lcore %u is not one of the lcores %s; give one of them",
				conf->main_lcore, plx_lcore_map_format(map, list, sizeof(list)));
	}
	if (conf->lane_slots &&
	    (conf->lane_slots & (conf->lane_slots - 1) || conf->lane_slots < PLX_LANE_SLOTS_MIN ||
	     conf->lane_slots > PLX_LANE_SLOTS_MAX))
		return plx_fail(EINVAL,
				"lane_slots %u: give a power of two from %d to %d, or 0 for %d",
				conf->lane_slots, PLX_LANE_SLOTS_MIN, PLX_LANE_SLOTS_MAX,
				PLX_LANE_SLOTS_DEFAULT);
	*main_out = has_main ? conf->main_lcore : map->places[0].lcore_id;
	return idle_check(&conf->adopted_idle);
}

/* Whether it is the main lcore's or an adopted one. */
static void free_thread(const struct lcore *lcore)
{
	if (lcore->id == plx_lcore_main())
		atomic_store_explicit(&main_id, PLX_LCORE_NONE, memory_order_relaxed);
	lcore_become(NULL, PLX_LCORE_NONE);
	prctl(PR_SET_TIMERSLACK, lcore->slack_ns);
	if (plx_topo_pin(lcore_topo, &lcore->old_cpus))
		plx_log(&log_lcore, PLX_LOG_WARNING,
			"the thread of lcore %u did not get its old CPUs back: %s", lcore->id,
			plx_error());
}

/* Whether the thread inherited the CPU of the pinned lcore that has started it. */
static bool has_inherited(const struct plx_cpuset *cpus)
{
	PLX_LCORE_FOREACH (id) {
		if (plx_cpuset_equal(&lcores[id].cpus, cpus))
			return true;
	}
	return false;
}

void lcore_unpin(const struct lcore *lcore)
{
	if (plx_cpuset_count(&lcore->cpus) || !has_inherited(&lcore->old_cpus))
		return;
	if (plx_topo_pin(lcore_topo, &lcore_old_cpus))
		plx_log(&log_lcore, PLX_LOG_WARNING, "lcore %u keeps the CPU of another one: %s",
			lcore->id, plx_error());
}

void lcore_leave(struct lcore *lcore)
{
	loop_park(loop_self);
	free_thread(lcore);
	lcore_set_state(lcore, LCORE_PARKED); /* P1 -> P2 of adopt.c, as W1 -> W2 */
}

/* The main lcore, if its thread is the calling one, and those without a thread. */
static void clear_rest(void)
{
	if (plx_lcore_main() != PLX_LCORE_NONE)
		free_thread(&lcores[plx_lcore_main()]);
	PLX_LCORE_FOREACH (id)
		lcore_clear(&lcores[id]);
}

static int enter_main(uint32_t id)
{
	int err = lcore_enter(&lcores[id]);

	if (err) {
		char text[512];

		/* It may be pinned already; keep the text of the first error. */
		snprintf(text, sizeof(text), "%s", plx_error());
		plx_topo_pin(lcore_topo, &lcore_old_cpus);
		prctl(PR_SET_TIMERSLACK, lcores[id].slack_ns);
		return plx_fail(-err, "%s", text);
	}
	atomic_store_explicit(&lcores[id].state, PLX_LCORE_RUNNING, memory_order_relaxed);
	atomic_store_explicit(&main_id, id, memory_order_relaxed);
	return 0;
}

static void end_workers(void)
{
	PLX_LCORE_FOREACH_WORKER (id) {
		lcore_thread_end(&lcores[id]);
		lcore_clear(&lcores[id]);
	}
}

static int start_workers(const struct plx_lcore_map *map)
{
	for (uint32_t i = 0; i < map->count; i++) {
		uint32_t id = map->places[i].lcore_id;
		bool is_main = id == plx_lcore_main();
		int err = is_main ? 0 : lcore_thread_start(&lcores[id]);

		atomic_store_explicit(&lcores[id].worker, !err && !is_main, memory_order_relaxed);
		atomic_store_explicit(&lcores[id].launched, false, memory_order_relaxed);

		if (err) {
			end_workers();
			return err;
		}
	}
	return 0;
}

static void set_count(uint32_t count)
{
	atomic_store_explicit(&lcore_count, count, memory_order_relaxed);
	mem_has_lcores = count;
}

static int init(const struct plx_lcore_conf *conf)
{
	uint32_t id;
	int err;

	if (plx_lcore_count())
		return plx_fail(EALREADY,
				"plx_lcores_init: there are %u lcores already; call "
				"plx_lcores_fini first",
				plx_lcore_count());
	err = check(conf, &id);
	if (err)
		return err;
	plx_clock_init();
	stop_begin();
	lcore_topo = conf->topo;
	lcore_lane_slots = conf->lane_slots ?: PLX_LANE_SLOTS_DEFAULT;
	lcore_adopted_idle = conf->adopted_idle;
	err = plx_topo_pinned(lcore_topo, &lcore_old_cpus);
	if (err)
		return err;
	lcores[id].old_cpus = lcore_old_cpus;
	lcores[id].slack_ns = (unsigned long)prctl(PR_GET_TIMERSLACK);
	for (uint32_t i = 0; i < conf->map->count; i++) {
		const struct plx_lcore_place *place = &conf->map->places[i];
		struct lcore *lcore = &lcores[place->lcore_id];

		lcore->id = place->lcore_id;
		lcore->placed = true;
		lcore->cpus = place->cpus;
		/* Any CPU: a thread that continues with it may be pinned by its program. */
		if (plx_cpuset_count(&place->cpus) > 1 &&
		    plx_cpuset_equal(&place->cpus, &lcore_old_cpus))
			lcore->cpus = (struct plx_cpuset){0};
		lcore->node = plx_topo_cpu_node(lcore_topo, plx_cpuset_next(&place->cpus, 0));
	}
	err = enter_main(id);
	if (err)
		return err;
	err = start_workers(conf->map);
	if (err)
		clear_rest();
	else
		set_count(conf->map->count);
	return err;
}

int lcore_create(uint32_t id)
{
	int rc;

	lcores[id].id = id;
	lcores[id].node = -1; /* any */
	lcores[id].placed = false;
	lcores[id].cpus = (struct plx_cpuset){0};
	rc = lcore_enter(&lcores[id]);
	if (rc == 0)
		set_count(plx_lcore_count() + 1);
	return rc;
}

int plx_lcores_init(const struct plx_lcore_conf *conf)
{
	int rc;

	if (plx_is_forked())
		return plx_fail_forked("plx_lcores_init");
	pthread_mutex_lock(&lcore_set_lock);
	rc = init(conf);
	pthread_mutex_unlock(&lcore_set_lock);
	if (rc == 0)
		lcore_allow_adopting(true);
	return rc;
}

/* Wait for every launched function. Return: 0; -ETIMEDOUT. */
static int wait_workers(uint64_t timeout_ns)
{
	uint64_t deadline_ns = lcore_deadline_ns(timeout_ns);
	char late[256] = "";

	PLX_LCORE_FOREACH_WORKER (id) {
		if (lcore_wait_idle(&lcores[id], deadline_ns))
			plx_list_add(late, sizeof(late), lcore_text(&lcores[id]));
	}
	if (!late[0])
		return 0;
	return plx_fail(ETIMEDOUT,
			"%s did not come back within %.3f s of plx_stop: the function launched "
			"there must return when its loop does, or when plx_stopping() is true",
			late, (double)timeout_ns / 1e9);
}

int plx_check_may_end(const char *what)
{
	if (plx_lcore_main() == PLX_LCORE_NONE && plx_lcore_id() == PLX_LCORE_NONE)
		return plx_is_forked() ? plx_fail_forked(what) : 0;
	if (plx_lcore_main() == PLX_LCORE_NONE && !plx_is_forked())
		return plx_fail(EPERM,
				"%s: the main lcore's thread has left; call it on a thread that is "
				"not an lcore, after plx_lcore_leave",
				what);
	if (plx_lcore_id() != plx_lcore_main() && !plx_is_forked())
		return plx_fail(EPERM,
				"%s: call it on the main lcore, %u, whose thread has started the "
				"others; plx_stop makes its loop return",
				what, plx_lcore_main());
	return plx_check_outside(what);
}

int plx_lcores_fini(uint64_t timeout_ns)
{
	int err;

	if (!plx_lcore_count())
		return 0;
	err = plx_check_may_end("plx_lcores_fini");
	if (err)
		return err;
	lcore_allow_adopting(false);
	plx_stop();
	err = wait_workers(timeout_ns) ?: lcore_wait_adopted("plx_lcores_fini", timeout_ns);
	if (err) {
		lcore_allow_adopting(true);
		return err;
	}
	pthread_mutex_lock(&lcore_set_lock);
	end_workers();
	clear_rest();
	stop_forget();
	set_count(0);
	pthread_mutex_unlock(&lcore_set_lock);
	return 0;
}

/* Getters ---------------------------------------------------------------------------------- */

uint32_t plx_lcore_count(void)
{
	return atomic_load_explicit(&lcore_count, memory_order_relaxed);
}

uint32_t plx_lcore_main(void)
{
	return atomic_load_explicit(&main_id, memory_order_relaxed);
}

uint32_t plx_lcore_next(uint32_t from)
{
	for (uint32_t id = from; id < PLX_LCORE_MAX; id++) {
		if (lcore_get(id))
			return id;
	}
	return PLX_LCORE_NONE;
}

unsigned plx_lcore_cpu(uint32_t id)
{
	struct lcore *lcore = lcore_get(id);

	return lcore ? plx_cpuset_next(&lcore->cpus, 0) : PLX_CPU_MAX;
}

int plx_lcore_node(uint32_t id)
{
	struct lcore *lcore = lcore_get(id);

	return lcore ? lcore->node : -1;
}

int plx_lcore_stats_read(uint32_t id, struct plx_lcore_stats *stats_out)
{
	const struct loop *loop = lcore_loop(id);
	struct plx_ring_stats others;

	if (!loop)
		return lcore_fail_unknown("plx_lcore_stats_read", id);

	const struct loop_counts *counts = &loop->counts;
	uint64_t idle_turns = counter_get(&counts->idle.turns);

	*stats_out = (struct plx_lcore_stats){
		.turns = idle_turns + counter_get(&counts->busy.turns),
		.idle_turns = idle_turns,
		.busy_cycles = counter_get(&counts->busy.cycles),
		.idle_cycles = counter_get(&counts->idle.cycles),
		.messages = counter_get(&counts->messages),
		.timers = counter_get(&counts->timers),
		.longest_turn_cycles = counter_get(&counts->longest_turn_cycles),
	};
	plx_ring_stats_read(loop->others, &others);
	stats_out->messages_full = others.full;
	for (uint32_t sender = 0; sender < PLX_LCORE_MAX; sender++) {
		/* N2 of lane.c */
		const struct lane *lane = atomic_load_explicit(&loop->in[sender],
							       memory_order_acquire);

		if (!lane)
			continue;
		stats_out->lanes++;
		stats_out->messages_full += counter_get(&lane->full);
	}
	return 0;
}
