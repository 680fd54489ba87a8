/* SPDX-License-Identifier: BSD-3-Clause */
/* A set: fabric, domain, CQ and EQ of one (lcore, provider), or of one link with direct data
 * placement if every connection of a domain can reach its registrations, as on verbs. Sets are
 * never shared between lcores: a shared fid_fabric costs 5 to 60 us a message on libfabric's net
 * (doc/design/links.md). */
#include "fabric_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

/* A set that failed to open is in no list. */
void set_close(struct plx_set *set)
{
	struct plx_watch_set *watches = set->home->watches;

	if (set->of_home.le_prev)
		LIST_REMOVE(set, of_home);
	for (uint32_t i = 0; i < PLX_ZONE_MAX; i++)
		driver_close_fid(set->mr[i] ? &set->mr[i]->fid : NULL, "memory registration");
	watches->remove(watches, &set->cq_watch);
	watches->remove(watches, &set->eq_watch);
	driver_close(&set->fids);
	turn_remove(&set->turn);
	free(set);
}

/* device: NULL: any. */
static struct plx_set *find(struct plx_fabric_lcore *home, const struct driver_choice *choice,
			    const char *device, uint32_t receives)
{
	struct plx_set *set;

	LIST_FOREACH (set, &home->sets, of_home) {
		bool has_room = !set->driver->cq_overruns ||
				set->rx_count + receives <= set->fids.cq_entries / 2;

		if (has_room && !set->direct && set->driver == choice->driver &&
		    (!device || strcmp(set->device, device) == 0))
			return set;
	}
	return NULL;
}

/* Links between two NUMA nodes are slower, and limited by their interconnect. */
static void warn_apart(const struct plx_set *set)
{
	int lcore = plx_lcore_node(set->home->id);
	int device = set->device[0] ? plx_device_node(set->device) : -1;

	if (lcore >= 0 && device >= 0 && lcore != device)
		log_warning(
			"lcore %u is on NUMA node %d, and device %s, which its links use, on node "
			"%d: each message crosses between them; give it a CPU of node %d with -l "
			"(plx-info lists them)",
			set->home->id, lcore, set->device, device, device);
}

static void eq_ready(struct plx_watch *watch, uint32_t events)
{
	plx_container_of(watch, struct plx_set, eq_watch)->eq_due = true;
}

/* From now on the lcore's epoll set knows when the queues have something. Return: 0 or a libfabric
 * error. */
static int watch_queues(struct plx_set *set)
{
	const struct plx_watch_ops *ops = set->fids.watch_ops;
	struct plx_watch_set *watches = set->home->watches;
	struct fid *cq = &set->fids.cq->fid, *eq = &set->fids.eq->fid;
	int rc;

	set->eq_watch.ready = eq_ready;
	if (ops) {
		rc = ops->join(cq, watches, NULL);
		return rc ? rc : ops->join(eq, watches, &set->eq_watch);
	}
	rc = fi_control(cq, FI_GETWAIT, &set->cq_watch.fd);
	rc = rc ? rc : fi_control(eq, FI_GETWAIT, &set->eq_watch.fd);
	rc = rc ? rc : watches->add(watches, &set->cq_watch, EPOLLIN);
	return rc ? rc : watches->add(watches, &set->eq_watch, EPOLLIN);
}

/* Return: NULL with an error text. */
static struct plx_set *set_open(struct plx_fabric_lcore *home, const struct driver_choice *choice,
				const struct fi_info *info, bool direct)
{
	const struct plx_fabric_driver *driver = choice->driver;
	const char *device = driver->device ? driver->device(info) : NULL;
	struct plx_set *set = calloc(1, sizeof(*set));

	if (!set) {
		plx_fail(ENOMEM, "out of memory");
		return NULL;
	}
	set->home = home;
	set->driver = driver;
	set->cq_watch.fd = set->eq_watch.fd = -1;
	set->direct = direct;
	set->fids.cq_entries = direct ? DIRECT_CQ_ENTRIES : driver->cq_entries;
	set->fids.cq_format = direct ? FI_CQ_FORMAT_DATA : FI_CQ_FORMAT_MSG;
	snprintf(set->device, sizeof(set->device), "%s", device ? device : "");
	snprintf(set->label, sizeof(set->label), "%s (libfabric %s%s%s)", driver->name,
		 driver->provider, device ? " on " : "", set->device);

	const char *step;
	int rc = driver_open(driver, info, set, &set->fids, &step);

	rc = rc ? rc : watch_queues(set);
	if (rc == -EFBIG) /* only from plx_shm, with a text */
		plx_fail_in(-EFBIG, "%s: opening the queues failed: ", set->label);
	else if (rc)
		plx_fail(EIO, "%s: opening %s failed: %s", set->label, step,
			 descriptors_strerror(rc));
	if (rc || (direct && direct_check_set(set) != 0)) {
		set_close(set);
		return NULL;
	}
	set_register_new_zones(set);
	LIST_INSERT_HEAD(&home->sets, set, of_home);
	set->turn.go_on = set_go_on;
	turn_add(home, &set->turn);
	log_info("lcore %u opened %s", home->id, set->label);
	warn_apart(set);
	return set;
}

/* The lcore's set for that provider and the device of info, with room for a link of attr (NULL: a
 * listener). Opens one if there is none. A link with direct data placement may get a separate one.
 * Return: the set; NULL with an error text. */
struct plx_set *set_get(struct plx_fabric_lcore *home, const struct driver_choice *choice,
			const struct fi_info *info, const struct plx_link_attr *attr)
{
	const struct plx_fabric_driver *driver = choice->driver;
	const char *device = driver->device ? driver->device(info) : NULL;
	struct plx_set *set;
	struct fi_info *any;

	if (attr && attr->direct && !driver->name_writes)
		return set_open(home, choice, info, true);
	set = find(home, choice, device,
		   attr ? attr->rx_buf_count + link_control_receives(driver, info, attr) : 0);
	if (set)
		return set;
	if (!driver->device || device)
		return set_open(home, choice, info, false);
	/* For a listener at every address, the event queue of any device will do. */
	if (driver_getinfo(choice, NULL, NULL, 0, &any) != 0)
		return NULL;
	set = set_open(home, choice, any, false);
	fi_freeinfo(any);
	return set;
}

/* A set that was opened for one link closes with it. */
void set_leave(struct plx_set *set)
{
	if (set->direct && !set->links)
		set_close(set);
}

/* Whether the link's memory in that zone is usable. Return: 0; -ENOMEM. */
int set_need_zone(struct plx_set *set, uint32_t zone_index)
{
	if (!set->driver->needs_mr || set_find_desc(set, zone_index))
		return 0;
	return plx_fail(
		ENOMEM,
		"%s: its memory is not registered with the device; the limit of locked memory "
		"(ulimit -l) must be as large as all memory of Pollux: ulimit -l unlimited",
		set->label);
}

/* Whether all of a message lies in registered memory. */
bool set_has_message(struct plx_set *set, const struct plx_buf *buf)
{
	for (; buf; buf = buf->next) {
		if (buf->len && !set_find_desc(set, buf->zone_index))
			return false;
	}
	return true;
}

static void register_zone(struct plx_set *set, const struct plx_zone *zone)
{
	/* A key must be unique in its domain, even if the provider ignores it. */
	int rc = fi_mr_reg(set->fids.domain, zone->base, zone->size_bytes, FI_SEND | FI_RECV, 0,
			   zone->index + 1, 0, &set->mr[zone->index], NULL);

	if (rc == 0)
		return;
	set->mr[zone->index] = NULL;
	log_warning("%s: registering %zu bytes of memory failed: %s; is the limit of locked memory "
		    "(ulimit -l) large enough?",
		    set->label, zone->size_bytes, fi_strerror(-rc));
}

/* Register zones added since the last call with the set's domain. */
void set_register_new_zones(struct plx_set *set)
{
	uint32_t count = plx_zone_count();

	if (!set->driver->needs_mr)
		return;
	for (; set->zones_registered < count; set->zones_registered++) {
		const struct plx_zone *zone = plx_zone_get(set->zones_registered);

		if (zone && !set->mr[zone->index])
			register_zone(set, zone);
	}
}

/* Registers a zone that is newer than the last set_register_new_zones. */
void *set_find_desc(struct plx_set *set, uint32_t zone_index)
{
	if (zone_index >= PLX_ZONE_MAX)
		return NULL;
	if (plx_unlikely(!set->mr[zone_index]))
		set_register_new_zones(set);
	return set->mr[zone_index] ? fi_mr_desc(set->mr[zone_index]) : NULL;
}
