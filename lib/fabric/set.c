/* SPDX-License-Identifier: BSD-3-Clause */
/* A set: fid_fabric, domain, CQ and EQ of one (lcore, provider). Never shared between lcores, as
 * one shared fid_fabric costs 5 to 60 us a message on libfabric's net (doc/design/links.md). */
#include "fabric_priv.h"

#include <stdio.h>
#include <stdlib.h>

static void close_fid(struct fid *fid, const char *what)
{
	int rc = fid ? fi_close(fid) : 0;

	if (rc)
		plx_log(&fabric_log, PLX_LOG_ERROR, "closing a %s failed: %s", what,
			fi_strerror(-rc));
}

void set_close(struct plx_set *set)
{
	retire_reap_all(set);
	for (uint32_t i = 0; i < PLX_ZONE_MAX; i++)
		close_fid(set->mr[i] ? &set->mr[i]->fid : NULL, "memory registration");
	/* The order that every provider of 1.17 closes in without -FI_EBUSY. */
	close_fid(set->fids.cq ? &set->fids.cq->fid : NULL, "completion queue");
	close_fid(set->fids.domain ? &set->fids.domain->fid : NULL, "domain");
	close_fid(set->fids.eq ? &set->fids.eq->fid : NULL, "event queue");
	close_fid(set->fids.wait ? &set->fids.wait->fid : NULL, "wait set");
	close_fid(set->fids.fabric ? &set->fids.fabric->fid : NULL, "fabric");
	free(set);
}

static int open_fids(struct plx_set *set, const struct fi_info *info)
{
	const struct plx_fabric_driver *driver = set->driver;
	int rc = driver->fabric ? driver->fabric(info->fabric_attr, &set->fids.fabric, set)
				: fi_fabric(info->fabric_attr, &set->fids.fabric, set);

	if (rc)
		return plx_fail(EIO, "%s: opening the fabric failed: %s", set->label,
				fi_strerror(-rc));
	rc = fi_domain(set->fids.fabric, (struct fi_info *)info, &set->fids.domain, set);
	if (rc)
		return plx_fail(EIO, "%s: opening the domain failed: %s", set->label,
				fi_strerror(-rc));
	rc = driver->open_queues(&set->fids, set->provider, driver->cq_entries);
	if (rc)
		return plx_fail(EIO, "%s: opening the queues failed: %s", set->label,
				fi_strerror(-rc));
	return 0;
}

static int set_open(struct plx_fabric_lcore *home, const struct plx_fabric_driver *driver,
		    const char *provider, const struct fi_info *info, struct plx_set **set_out)
{
	struct plx_set *set = calloc(1, sizeof(*set));

	if (!set)
		return plx_fail(ENOMEM, "out of memory");
	set->home = home;
	set->driver = driver;
	set->fids.wait_fd = set->fids.eq_fd = -1;
	snprintf(set->provider, sizeof(set->provider), "%s", provider);
	snprintf(set->label, sizeof(set->label), "%s (libfabric %s)", driver->name, provider);

	struct fd_mark *mark = hygiene_mark();
	int rc = open_fids(set, info);

	hygiene_close_on_exec_since(mark);
	if (rc) {
		set_close(set);
		return rc;
	}
	fabric_first_look(set);
	set_register_new_zones(set);
	*set_out = set;
	return 0;
}

/* The lcore's set for that provider, opened now if it is not. info: any of the provider's.
 * Return: the set; NULL with an error text. */
struct plx_set *set_get(struct plx_fabric_lcore *home, const struct plx_fabric_driver *driver,
			const char *provider, const struct fi_info *info)
{
	struct plx_set *set;

	for (set = home->sets; set; set = set->next) {
		if (set->driver == driver && strcmp(set->provider, provider) == 0)
			return set;
	}
	if (set_open(home, driver, provider, info, &set) != 0)
		return NULL;
	set->next = home->sets;
	home->sets = set;
	plx_log(&fabric_log, PLX_LOG_INFO, "lcore %u opened %s", home->id, set->label);
	return set;
}

static int register_zone(struct plx_set *set, const struct plx_zone *zone)
{
	/* A key must be unique in its domain, also where the provider ignores it. */
	int rc = fi_mr_reg(set->fids.domain, zone->base, zone->size_bytes, FI_SEND | FI_RECV, 0,
			   zone->index + 1, 0, &set->mr[zone->index], NULL);

	if (rc) {
		set->mr[zone->index] = NULL;
		return plx_fail(ENOMEM,
				"%s: registering %zu bytes of memory failed: %s; is the memlock "
				"limit (ulimit -l) large enough?",
				set->label, zone->size_bytes, fi_strerror(-rc));
	}
	return 0;
}

/* Zones that were added since this set looked last reach its domain. */
void set_register_new_zones(struct plx_set *set)
{
	uint32_t count = plx_zone_count();

	if (!set->driver->needs_mr)
		return;
	for (; set->zones_registered < count; set->zones_registered++) {
		const struct plx_zone *zone = plx_zone_get(set->zones_registered);

		if (zone && !set->mr[zone->index] && register_zone(set, zone) != 0)
			plx_log(&fabric_log, PLX_LOG_WARNING, "%s", plx_error());
	}
}

/* A zone so new that the set has not seen it is registered here. */
void *set_find_desc(struct plx_set *set, uint32_t zone_index)
{
	if (zone_index >= PLX_ZONE_MAX)
		return NULL;
	if (plx_unlikely(!set->mr[zone_index]))
		set_register_new_zones(set);
	return set->mr[zone_index] ? fi_mr_desc(set->mr[zone_index]) : NULL;
}
