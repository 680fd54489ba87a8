/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up, tear-down, and the poller that serves an lcore's links. */
#include "base_internal.h"
#include "fabric_link.h"
#include "fabric_listen.h"
#include "list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct plx_log_component fabric_log = {.name = "fabric", .level = PLX_LOG_NOTICE};

static bool ready;
static bool closing;                                   /* plx_fabric_fini runs: open nothing new */
static struct plx_fabric_lcore *lcores[PLX_LCORE_MAX]; /* each lcore writes its entry */

struct plx_fabric_lcore *fabric_home(void)
{
	uint32_t id = plx_lcore_id();

	return id == PLX_LCORE_NONE ? NULL : lcores[id];
}

int check_range(const char *name, uint64_t value, uint64_t min, uint64_t max)
{
	if (value >= min && value <= max)
		return 0;
	return plx_fail(EINVAL, "%s %" PRIu64 ": out of range; give %" PRIu64 " to %" PRIu64, name,
			value, min, max);
}

/* In the child of a fork, sending on a link or closing it would act for the parent. Only the links
 * of the thread that forked are taken away: the others were never its own. */
static void on_fork(void)
{
	struct plx_fabric_lcore *home = fabric_home();
	struct plx_set *set, *next;
	struct plx_link *link;

	if (!home)
		return;
	LIST_FOREACH (link, &home->links, of_home) {
		if (link->state != LINK_DEAD)
			link_go(link, LINK_DEAD);
		link->want = 0;
		link->settling = false;
	}
	/* If a callback of a link or listener forked, the rest of the turn must poll nothing. */
	home->scheduled = home->unserved = NULL;
	home->look_in = UINT32_MAX;
	LIST_FOREACH_SAFE (set, &home->sets, of_home, next) {
		set->of_home.le_next = NULL;
		set->links = set->listeners = 0;
		set->eq_due = false;
	}
	turn_forget(home);
}

static struct plx_fork_hook fork_hook = {.fn = on_fork};
static struct fabric_fini_hook *fini_hooks;

void fabric_fini_hook_add(struct fabric_fini_hook *hook)
{
	hook->next = fini_hooks;
	fini_hooks = hook;
}

PLX_CONSTRUCTOR static void register_all(void)
{
	plx_log_register(&fabric_log);
	plx_fork_hook_add(&fork_hook);
}

int plx_fabric_init(const struct plx_fabric_conf *conf)
{
	if (plx_is_forked())
		return plx_fail_forked("plx_fabric_init");
	if (ready)
		return plx_fail(EALREADY, "the fabric is set up already");
	plx_clock_init();
	signals_restore();
	/* libfabric reads this once, in its first call. A value set by the user stays.
	 *
	 * The verbs provider caches memory registrations by default. A cached one has all remote
	 * rights, whatever was requested, and stays valid after it is closed: the cache is turned
	 * off. */
	setenv("FI_MR_CACHE_MONITOR", "disabled", 0);

	int rc = liveness_init(conf);

	rc = rc ? rc : turn_init(conf);
	rc = rc ? rc : window_init(conf->receive_bytes);
	rc = rc ? rc : partial_init(conf->partial_bytes);
	rc = rc ? rc : admission_init_defaults(&conf->admission);
	if (rc)
		return rc;

	descriptors_mark();
	/* libfabric searches its providers in the first call: make it here, not inside a loop. */
	handshake_init();
	rc = driver_init(conf);
	descriptors_close_on_exec();
	if (rc)
		return rc;
	signals_restore();
	ready = true;
	return 0;
}

/* Measured by the set's own polls. After a long pause of the lcore, messages that arrived meanwhile
 * must not wait COLD_TURNS more. */
static bool is_cold(const struct plx_set *set)
{
	int64_t quiet_ns = (int64_t)(set->emptied_ns - set->last_work_ns);

	return quiet_ns > (int64_t)COLD_AFTER_NS && !set->tx_inflight &&
	       !(set->has_sent && set->driver->flush);
}

/* Update the time up to which all completions were taken. A read that takes less than a full burst
 * empties the queue at its time. Otherwise, after as many completions as there are operations, the
 * first of these reads. */
static inline void note_read(struct plx_set *set, size_t count, uint64_t read_ns)
{
	if (plx_likely(count < CQ_BURST)) {
		set->emptied_ns = read_ns;
		set->full_count = 0;
		return;
	}
	if (plx_unlikely(set->read.left))
		return;
	if (!set->full_count)
		set->full_since_ns = read_ns;
	set->full_count += (uint32_t)count;
	if (set->full_count < set->op_count)
		return;
	set->emptied_ns = set->full_since_ns;
	set->full_count = 0;
}

int completions_go_on(struct plx_set *set)
{
	const struct completions *read = &set->read;
	size_t bytes = (size_t)((const uint8_t *)read->end - (const uint8_t *)&read->entries);

	if (read->next != read->end) /* unless the callback of the last one has thrown */
		(void)(set->direct ? direct_completions(set, 0) : receive_completions(set, 0));
	if (read->next == read->end) {
		set->read.left = false;
		note_read(set, bytes / completion_bytes(set), read->read_ns);
	}
	return 1;
}

/* Let the lcore's epoll set handle what is ready. Other providers may need reads to make a
 * connection. */
static PLX_NOINLINE void look(struct plx_fabric_lcore *home)
{
	home->look_in = LOOK_EVERY_TURNS;
	home->look_ns = home->turn_ns;
	home->watches->look(home->watches);
	for (struct plx_set *set = LIST_FIRST(&home->sets); set; set = LIST_NEXT(set, of_home)) {
		set_register_new_zones(set);
		set->eq_due |= set->connecting || set->fids.watch_ops;
		if (set->connecting)
			home->look_in = LOOK_PENDING_TURNS;
	}
}

/* While none are left. */
static inline PLX_ALWAYS_INLINE int take_completions(struct plx_set *set, uint64_t now_ns)
{
	int done = cq_read(set);

	if (done)
		set->last_work_ns = now_ns;
	note_read(set, (size_t)done, now_ns);
	return done;
}

static inline PLX_ALWAYS_INLINE int poll_set(struct plx_set *set, uint64_t now_ns)
{
	int done = 0;

	set->has_sent = false; /* sends from callbacks count for the next poll */
	if (set->links)
		done = take_completions(set, now_ns);
	if (plx_unlikely(set->eq_due))
		done += eq_poll(set);
	return done;
}

static inline bool is_used(const struct plx_set *set)
{
	return plx_likely(set->links) || set->listeners || set->eq_due;
}

static inline int poll_if_due(struct plx_fabric_lcore *home, struct plx_set *set, uint64_t now_ns)
{
	bool is_due = is_used(set) && (!is_cold(set) || home->turn % COLD_TURNS == 0);

	return is_due ? poll_set(set, now_ns) : 0;
}

/* Its turn, among receivers that take turns: the next one may be far. Completions are left only
 * while receivers do so; poll_if_due need not ask. */
int set_go_on(struct turn_rest *turn)
{
	struct plx_set *set = plx_container_of(turn, struct plx_set, turn);

	if (plx_unlikely(set->read.left)) {
		set->last_work_ns = set->home->turn_ns;
		return completions_go_on(set) + (set->eq_due ? eq_poll(set) : 0);
	}
	return is_used(set) ? poll_set(set, set->home->turn_ns) : 0;
}

/* Receivers that take turns may keep a set from being read for long. What it has sent, heartbeats
 * too, leaves now: providers send in reads, and in one of no completions. */
static PLX_NOINLINE void continue_sends(struct plx_fabric_lcore *home)
{
	for (struct plx_set *set = LIST_FIRST(&home->sets); set; set = LIST_NEXT(set, of_home)) {
		if (set->has_sent || set->tx_inflight)
			(void)fi_cq_read(set->fids.cq, NULL, 0);
		set->has_sent = false;
	}
}

/* Hot path: one call a turn. */
static int poll_sets(void *arg, uint64_t now_ns)
{
	struct plx_fabric_lcore *home = arg;
	int work = 0;

	home->turn++;
	home->turn_ns = now_ns;
	if (plx_unlikely(home->look_in-- <= 1))
		look(home);
	if (plx_unlikely(home->takes_turns)) {
		continue_sends(home);
		work = turn_run(home);
	} else {
		struct plx_set *set = LIST_FIRST(&home->sets);

		while (set) {
			work += poll_if_due(home, set, now_ns);
			set = LIST_NEXT(set, of_home);
			if (set && home->takes_turns) /* maybe this turn is over */
				break;
		}
	}
	if (home->scheduled || plx_unlikely(home->chores))
		work += link_run_scheduled(home);
	return work;
}

/* The loop returns, and may not run again. */
static void flush_sets(void *arg)
{
	struct plx_fabric_lcore *home = arg;

	release_all(home);
	for (struct plx_set *set = LIST_FIRST(&home->sets); set; set = LIST_NEXT(set, of_home)) {
		if (set->has_sent && set->driver->flush)
			set->driver->flush(&set->fids);
		set->has_sent = false;
	}
}

static struct plx_fabric_lcore *open_here(uint32_t id)
{
	struct plx_fabric_lcore *home = aligned_alloc(PLX_CACHE_LINE, sizeof(*home));
	struct plx_pool_attr attr = {
		.name = "fabric tx",
		.object_count = TX_BUF_COUNT,
		.node = plx_lcore_node(id),
		.owner = id,
	};

	if (!home) {
		plx_fail(ENOMEM, "out of memory");
		return NULL;
	}
	*home = (struct plx_fabric_lcore){.id = id, .watches = lcore_watch_set()};
	TAILQ_INIT(&home->kept_pools);
	TAILQ_INIT(&home->requests);
	turn_home_init(home);
	liveness_home_init(home);
	assembly_home_init(home);
	arrival_home_init(home);
	release_home_init(home);
	if (plx_buf_pool_create(&attr, TX_BUF_BYTES, &home->tx_pool) != 0 ||
	    lookup_home_init(home) != 0 ||
	    plx_poller_add("fabric", poll_sets, home, &home->poller) != 0) {
		lookup_home_fini(home);
		plx_pool_destroy(home->tx_pool);
		free(home);
		return NULL;
	}
	plx_poller_set_arm(home->poller, sleep_arm);
	plx_poller_set_leave(home->poller, flush_sets);
	lcore_poller_keep(home->poller);
	slow_home_init(home);
	lcores[id] = home;
	return home;
}

int fabric_here(const char *what, struct plx_fabric_lcore **home_out)
{
	struct plx_fabric_lcore *home = fabric_home();

	if (plx_is_forked())
		return plx_fail_forked(what);
	if (!ready)
		return plx_fail(EINVAL, "%s: " NOT_UP_TEXT, what);
	if (closing || (home && home->draining))
		return plx_fail(ESHUTDOWN, "%s: the links of this lcore are being closed", what);
	if (plx_lcore_id() == PLX_LCORE_NONE)
		return plx_fail_no_lcore(what);
	*home_out = home ? home : open_here(plx_lcore_id());
	return *home_out ? 0 : -ENOMEM;
}

uint32_t plx_fabric_open_count(void)
{
	struct plx_fabric_lcore *home = fabric_home();
	struct plx_listener *listener;
	uint32_t count;

	if (!home)
		return 0;
	count = home->link_count;
	LIST_FOREACH (listener, &home->listeners, of_home)
		count += listener->front == listener;
	return count;
}

/* Down ---------------------------------------------------------------------------------------- */

/* Only here may another thread, the main one, touch an lcore's state: no lcore runs. Each step runs
 * on all lcores before the next one: a link of one lcore may be sending a buffer of another, and a
 * request of one may have become a link of another. */
static void each_home(void (*step)(struct plx_fabric_lcore *home))
{
	for (uint32_t id = 0; id < PLX_LCORE_MAX; id++) {
		if (lcores[id])
			step(lcores[id]);
	}
}

static void end_links(struct plx_fabric_lcore *home)
{
	struct plx_link *link;

	handover_fini(home);
	fabric_end_listeners(home);
	turn_forget(home);
	LIST_FOREACH (link, &home->links, of_home)
		close_now(link, PLX_LINK_ABORTED, "the process is shutting down");
}

static void reap_links(struct plx_fabric_lcore *home)
{
	home->turn++;
	home->turn_ns = plx_now_ns();
	for (struct plx_set *set = LIST_FIRST(&home->sets); set; set = LIST_NEXT(set, of_home))
		(void)(set->read.left ? completions_go_on(set)
				      : take_completions(set, home->turn_ns));
	link_run_scheduled(home);
}

/* The provider still has operations: only leaking them is safe. */
static void abandon_links(struct plx_fabric_lcore *home)
{
	while (!LIST_EMPTY(&home->links))
		link_abandon(LIST_FIRST(&home->links));
}

static uint32_t count_all_links(void)
{
	uint32_t count = 0;

	for (uint32_t id = 0; id < PLX_LCORE_MAX; id++)
		count += lcores[id] ? lcores[id]->link_count : 0;
	return count;
}

/* Reap while links disappear, and for one second after the last one. */
static void reap_all_links(void)
{
	uint64_t limit_ns = 0;

	for (uint32_t before = 0, left; (left = count_all_links()) != 0; before = left) {
		if (left != before)
			limit_ns = plx_now_ns() + PLX_NS_PER_S;
		else if (plx_now_ns() >= limit_ns)
			break;
		each_home(reap_links);
	}
	each_home(abandon_links);
}

/* Callbacks run. */
static void end_all_links(void *arg)
{
	each_home(end_links);
	reap_all_links();
	for (const struct fabric_fini_hook *hook = fini_hooks; hook; hook = hook->next)
		hook->fn();
}

static void close_sets(struct plx_fabric_lcore *home)
{
	while (!LIST_EMPTY(&home->sets))
		set_close(LIST_FIRST(&home->sets));
	plx_poller_remove(home->poller);
	slow_home_fini(home);
	lookup_home_fini(home);
}

static void free_home(struct plx_fabric_lcore *home)
{
	for (uint32_t left = home->kept_pool_count; left > 0; left--)
		kept_pool_reap(home);
	if (home->kept_pool_count)
		log_warning("lcore %u: buffers of %u closed links are still referenced", home->id,
			    home->kept_pool_count);
	lcores[home->id] = NULL; /* from here on nothing is freed later */
	while (!LIST_EMPTY(&home->ended))
		listener_free(LIST_FIRST(&home->ended));
	link_buf_free_all(home);
	release_all(home);
	assembly_home_fini(home);
	arrival_home_fini(home);
	plx_pool_destroy(home->tx_pool);
	free(home);
}

void plx_fabric_fini(void)
{
	if (!ready || plx_is_forked())
		return;
	if (plx_loop_in_turn()) { /* otherwise the error text of a failed plx_eal_init stays */
		plx_check_outside("plx_fabric_fini");
		plx_log(&fabric_log, PLX_LOG_ERROR, "%s", plx_error());
		return;
	}
	closing = true;
	plx_loop_run_inside(end_all_links, NULL);
	each_home(close_sets);
	each_home(free_home);
	driver_fini();
	closing = false;
	ready = false;
}
