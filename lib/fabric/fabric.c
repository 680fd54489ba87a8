/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up, and what each lcore's loop does for its links. */
#include "fabric_priv.h"

#include <stdlib.h>
#include <sys/random.h>

struct plx_log_component fabric_log = {.name = "fabric", .level = PLX_LOG_NOTICE};
uint64_t fabric_incarnation;

static bool ready;
static bool closing; /* plx_fabric_fini is under way: nothing new is opened */
static struct plx_fabric_lcore *lcores[PLX_LCORE_MAX]; /* each entry: its lcore's; fini: main's */

__attribute__((constructor)) static void register_log(void)
{
	plx_log_register(&fabric_log);
}

int plx_fabric_init(const struct plx_fabric_conf *conf)
{
	const struct plx_fabric_driver *driver;
	const char *provider;
	struct fi_info *info;

	if (ready)
		return plx_fail(EALREADY, "the fabric is set up already");
	plx_clock_init();
	hygiene_signals();
	driver_set_table(conf->drivers, conf->provider);

	int rc = driver_find("--provider", NULL, &driver, &provider);
	if (rc)
		return rc;

	struct fd_mark *mark = hygiene_mark();

	/* libfabric looks for all its providers at the first call; not later, inside a loop. */
	rc = driver_getinfo(driver, provider, NULL, NULL, 0, &info);
	hygiene_close_on_exec_since(mark);
	if (rc)
		return rc;
	fi_freeinfo(info);
	hygiene_signals();
	if (getrandom(&fabric_incarnation, sizeof(fabric_incarnation), 0) < 0)
		fabric_incarnation = plx_tsc();
	ready = true;
	return 0;
}

/* Hot path: one call a turn. */
static int poll_sets(void *arg, uint64_t now_ns)
{
	struct plx_fabric_lcore *home = arg;
	int work = 0;

	home->turn++;
	for (struct plx_set *set = home->sets; set; set = set->next) {
		if (set->links + set->listeners == 0)
			continue;
		if (now_ns - set->last_work_ns > COLD_AFTER_NS && home->turn % COLD_TURNS)
			continue;

		int done = set->links ? cq_poll(set) : 0;
		uint32_t every = set->connecting ? set->driver->eq_pending_turns
						 : set->driver->eq_every_turns;

		if (++set->polls >= every) {
			set->polls = 0;
			done += eq_poll(set);
			set_register_new_zones(set);
		}
		if (done)
			set->last_work_ns = now_ns;
		work += done;
	}
	if (home->attended || plx_unlikely(home->orphan_count))
		work += link_look_after(home);
	return work;
}

static struct plx_fabric_lcore *open_here(uint32_t id)
{
	struct plx_fabric_lcore *home = calloc(1, sizeof(*home));
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
	home->id = id;
	if (plx_buf_pool_create(&attr, TX_BUF_BYTES, &home->tx_pool) != 0)
		goto free_home;
	if (plx_poller_add("fabric", poll_sets, home, 0, &home->poller) != 0)
		goto destroy_pool;
	lcores[id] = home;
	return home;

destroy_pool:
	plx_pool_destroy(home->tx_pool);
free_home:
	free(home);
	return NULL;
}

struct plx_fabric_lcore *fabric_here(void)
{
	uint32_t id = plx_lcore_id();

	if (!ready) {
		plx_fail(EINVAL, "the fabric is not set up; call plx_fabric_init first");
		return NULL;
	}
	if (closing || (id != PLX_LCORE_NONE && lcores[id] && lcores[id]->draining)) {
		plx_fail(ESHUTDOWN, "the links of this lcore are being closed");
		return NULL;
	}
	if (id == PLX_LCORE_NONE) {
		plx_fail(ENOENT, "links belong to lcores, and this thread is none");
		return NULL;
	}
	return lcores[id] ? lcores[id] : open_here(id);
}

/* Why fabric_here gave nothing, as an error. */
int fabric_missing(void)
{
	uint32_t id = plx_lcore_id();

	if (id == PLX_LCORE_NONE)
		return -ENOENT;
	return closing || (lcores[id] && lcores[id]->draining) ? -ESHUTDOWN : -ENOMEM;
}

/* A link has gone, but the user still holds buffers of its pool: remember the pool until they are
 * back. Return: 0; -ENOMEM. */
int fabric_adopt_orphan(struct plx_fabric_lcore *home, struct plx_pool *pool)
{
	if (home->orphan_count == home->orphan_room) {
		uint32_t room = home->orphan_room ? 2 * home->orphan_room : 8;
		struct plx_pool **more = realloc(home->orphans, room * sizeof(*more));

		if (!more)
			return plx_fail(ENOMEM, "out of memory");
		home->orphans = more;
		home->orphan_room = room;
	}
	home->orphans[home->orphan_count++] = pool;
	return 0;
}

/* Whether all objects are back: each is taken in hand, as a count may run ahead of an object that
 * another thread is still putting. */
static bool pool_is_whole(const struct plx_fabric_lcore *home, struct plx_pool *pool)
{
	void *objects[LINK_RX_BUF_COUNT_MAX + LINK_RX_CONTROL];
	struct plx_pool_stats stats;
	uint32_t count = 0;

	plx_pool_stats(pool, &stats);
	if (stats.available < stats.object_count)
		return false;
	if (plx_lcore_id() != home->id) /* plx_fabric_fini, when no lcore runs any more */
		return true;
	while (count < stats.object_count && (objects[count] = plx_pool_get(pool)) != NULL)
		count++;
	for (uint32_t i = count; i > 0; i--)
		plx_pool_put(pool, objects[i - 1]);
	return count == stats.object_count;
}

void fabric_reap_orphans(struct plx_fabric_lcore *home)
{
	for (uint32_t i = 0; i < home->orphan_count;) {
		if (pool_is_whole(home, home->orphans[i])) {
			plx_pool_destroy(home->orphans[i]);
			home->orphans[i] = home->orphans[--home->orphan_count];
		} else {
			i++;
		}
	}
}

uint32_t plx_fabric_open_count(void)
{
	uint32_t id = plx_lcore_id();
	uint32_t count = 0;

	if (id == PLX_LCORE_NONE || !lcores[id])
		return 0;
	for (struct plx_set *set = lcores[id]->sets; set; set = set->next)
		count += set->links + set->listeners;
	return count;
}

int plx_fabric_drain(uint64_t timeout_ns)
{
	uint32_t id = plx_lcore_id();
	uint64_t limit_ns = plx_now_ns() + timeout_ns;

	if (id == PLX_LCORE_NONE)
		return plx_fail(ENOENT, "links belong to lcores, and this thread is none");
	if (!lcores[id])
		return 0;
	while (lcores[id]->listeners)
		plx_listener_close(lcores[id]->listeners);
	lcores[id]->draining = true;
	for (struct plx_link *link = lcores[id]->links; link; link = link->next) {
		if (link->state < LINK_CLOSING)
			plx_link_close(link);
	}
	int rc = 0;

	while (lcores[id]->links && rc == 0) {
		if (plx_now_ns() >= limit_ns)
			rc = plx_fail(ETIMEDOUT, "lcore %u: some peers did not agree to close", id);
		else if (plx_loop_turn() < 0)
			rc = plx_fail(EBUSY, "lcore %u is inside its loop", id);
	}
	lcores[id]->draining = false;
	return rc;
}

static void close_here(struct plx_fabric_lcore *home)
{
	uint64_t limit_ns = plx_now_ns() + PLX_NS_PER_S;

	while (home->listeners)
		plx_listener_close(home->listeners);
	for (struct plx_link *link = home->links; link; link = link->next)
		link_end(link, PLX_LINK_ABORTED, "the process is shutting down");
	while (home->links && plx_now_ns() < limit_ns) {
		for (struct plx_set *set = home->sets; set; set = set->next)
			cq_drain(set);
		link_look_after(home);
	}
	while (home->links) /* the provider kept operations: only leaking them is safe */
		link_abandon(home->links);
	while (home->sets) {
		struct plx_set *set = home->sets;

		home->sets = set->next;
		set_close(set);
	}
	plx_poller_remove(home->poller);
	fabric_reap_orphans(home);
	if (home->orphan_count)
		plx_log(&fabric_log, PLX_LOG_WARNING,
			"lcore %u: buffers of %u closed links are still referenced", home->id,
			home->orphan_count);
	plx_pool_destroy(home->tx_pool);
	free(home->orphans);
	free(home);
}

void plx_fabric_fini(void)
{
	if (!ready)
		return;
	closing = true;
	for (uint32_t id = 0; id < PLX_LCORE_MAX; id++) {
		if (lcores[id])
			close_here(lcores[id]);
		lcores[id] = NULL;
	}
	driver_set_table(NULL, NULL);
	closing = false;
	ready = false;
}
