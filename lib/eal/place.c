/* SPDX-License-Identifier: BSD-3-Clause */
/* Choose the lcores and their CPUs, and check that no other process has claimed them. Two lcores
 * that never sleep take turns of milliseconds on one CPU, while a message takes microseconds. */
#include "eal_priv.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEVICES_MAX 32   /* checked for an active port */
#define CLAIMS_MAX  1024 /* of a host */

PLX_LOG_COMPONENT(eal_log, "eal");

void eal_claims_drop(struct eal_claims *claims)
{
	while (claims->count)
		close(claims->fds[--claims->count]);
}

#define WHO_BYTES 64

/* Of the lcores on a CPU that several use: the policy stays crowded, see plx_idle_conf. */
#define WHILE_SHARED                                                                              \
	"adaptive lcores sleep early there until this process ends, but one that polls lets the " \
	"others wait for milliseconds at a time"

/* Claim a CPU and hold it. who: the process that claims it, if any.
 * Return: 0; -EBUSY another process has it; -errno it stays unclaimed. */
static int claim(unsigned cpu, struct eal_claims *claims, char who[WHO_BYTES])
{
	struct plx_cpu_holder holder;
	int fd, rc = plx_cpu_claim(cpu, &fd, &holder);

	snprintf(who, WHO_BYTES, holder.pid > 0 ? "process %ld" : "another process",
		 (long)holder.pid);
	/* Any user can claim a CPU, so most claims of other users are not trusted. */
	if (holder.other_user)
		plx_log(&eal_log, PLX_LOG_WARNING,
			"CPU %u: %s of another user claims it, which is not believed; if it does "
			"poll there, give this process other CPUs with -l",
			cpu, who);
	if (rc == 0)
		claims->fds[claims->count++] = fd;
	/* A claim is a courtesy to other processes: without one, start anyway. */
	if (rc && rc != -EBUSY)
		plx_log(&eal_log, PLX_LOG_WARNING,
			"%s; CPUs from %u on stay unclaimed, and another Pollux process may poll "
			"there too",
			plx_error(), cpu);
	return rc;
}

/* Without options ---------------------------------------------------------------------------- */

static void warn_none_free(const struct plx_cpuset *allowed, unsigned cpu, const char *who)
{
	char list[128];

	plx_log(&eal_log, PLX_LOG_WARNING,
		"no CPU is free of other Pollux processes (allowed: %s), so lcore 0 shares CPU %u "
		"with %s; " WHILE_SHARED ": give each process its own CPUs with -l",
		plx_cpuset_format(allowed, list, sizeof(list)), cpu, who);
}

/* The allowed CPUs near an RDMA device, on a host with more than one node: the first device, by
 * name, with an active port and a known node. */
static struct plx_cpuset find_near_cpus(const char *root, const struct plx_topo *topo)
{
	struct plx_rdma_device devices[DEVICES_MAX];
	unsigned count = plx_rdma_devices(root, devices, DEVICES_MAX);
	struct plx_cpuset near = {0};
	char list[128];

	for (unsigned i = 0; i < count && i < DEVICES_MAX && plx_topo_node_count(topo) > 1; i++) {
		const struct plx_rdma_device *device = &devices[i];

		if (!plx_rdma_is_active(device) || device->node < 0)
			continue;
		near = plx_topo_node_cpus(topo, device->node);
		near = plx_cpuset_and(&near, plx_topo_allowed(topo));
		plx_log(&eal_log, PLX_LOG_INFO,
			"RDMA device %s is on NUMA node %d: lcore 0 goes to a CPU there if one is "
			"free (allowed there: %s)",
			device->name, device->node, plx_cpuset_format(&near, list, sizeof(list)));
		break;
	}
	return near;
}

/* CPUs in the order of the search for a free one. */
struct order {
	unsigned cpus[PLX_CPU_MAX], count;
};

/* Append a set, from the CPU on where the search in it starts. */
static void append(struct order *order, const char *root, const struct plx_cpuset *set)
{
	unsigned first = plx_cpu_first(root, set);

	PLX_CPUSET_FOREACH (cpu, set)
		if (cpu >= first)
			order->cpus[order->count++] = cpu;
	PLX_CPUSET_FOREACH (cpu, set)
		if (cpu < first)
			order->cpus[order->count++] = cpu;
}

static struct plx_cpuset claimed_elsewhere(const char *root)
{
	struct plx_cpu_claimed claims[CLAIMS_MAX];
	unsigned count = plx_cpu_claims(root, claims, CLAIMS_MAX);
	struct plx_cpuset elsewhere = {0};

	for (unsigned i = 0; i < count; i++)
		if (claims[i].elsewhere)
			plx_cpuset_add(&elsewhere, claims[i].cpu);
	return elsewhere;
}

/* CPUs near an RDMA device first; those with a claim in another network namespace last. */
static void find_order(const char *root, const struct plx_topo *topo,
		       const struct plx_cpuset *elsewhere, struct order *order)
{
	struct plx_cpuset near = find_near_cpus(root, topo), far = *plx_topo_allowed(topo);
	struct plx_cpuset last = plx_cpuset_and(&far, elsewhere);

	plx_cpuset_remove_all(&near, elsewhere);
	plx_cpuset_remove_all(&far, &near);
	plx_cpuset_remove_all(&far, &last);
	append(order, root, &near);
	append(order, root, &far);
	append(order, root, &last);
}

/* For --dry-run. busy: the CPUs that another process of this network namespace claims. */
static void explain(const char *root, const struct plx_topo *topo, unsigned cpu,
		    const struct plx_cpuset *busy, const struct plx_cpuset *elsewhere,
		    struct eal_claims *claims)
{
	struct plx_text why = {.out = claims->why, .size = sizeof(claims->why)};
	struct plx_cpuset others = plx_cpuset_and(plx_topo_allowed(topo), elsewhere);
	char list[64];

	plx_text_add(&why, "CPU %u is %s of %s", cpu,
		     plx_cpuset_has(&claims->contested, cpu) ? "shared: no CPU is free"
							     : "the first free one",
		     plx_cpuset_format(plx_topo_allowed(topo), list, sizeof(list)));
	if (plx_cpuset_count(busy))
		plx_text_add(&why, "; other Pollux processes claim %s",
			     plx_cpuset_format(busy, list, sizeof(list)));
	if (plx_cpuset_count(&others))
		plx_text_add(&why, "; those of other network namespaces claim %s",
			     plx_cpuset_format(&others, list, sizeof(list)));
	if (plx_cpu_claims_hidden(root))
		plx_text_add(&why, "; this PID namespace hides other containers, so a hash of the "
				   "network namespace chose where the search starts");
}

/* Place one lcore on the first CPU that can be claimed; on the first CPU if none can. */
static int place_one(const char *root, const struct plx_topo *topo, struct plx_lcore_map *map_out,
		     struct eal_claims *claims)
{
	struct plx_cpuset elsewhere = claimed_elsewhere(root), busy = {0};
	char who[WHO_BYTES], first_by[WHO_BYTES];
	struct order order = {0};
	unsigned i = 0, cpu;

	find_order(root, topo, &elsewhere, &order);
	for (; i < order.count && claim(order.cpus[i], claims, who) == -EBUSY; i++) {
		plx_cpuset_add(&busy, order.cpus[i]);
		if (i == 0)
			memcpy(first_by, who, sizeof(who));
	}
	cpu = order.cpus[i < order.count ? i : 0];
	if (i == order.count || plx_cpuset_has(&elsewhere, cpu)) {
		warn_none_free(plx_topo_allowed(topo), cpu,
			       i == order.count ? first_by
						: "a process in another network namespace");
		plx_cpuset_add(&claims->contested, cpu);
	}
	explain(root, topo, cpu, &busy, &elsewhere, claims);
	return plx_lcore_map_single(cpu, map_out);
}

/* The kernel may move it, and others need not keep off a CPU that it seldom uses. */
static int place_anywhere(const struct plx_topo *topo, struct plx_lcore_map *map_out,
			  struct eal_claims *claims)
{
	const struct plx_cpuset *allowed = plx_topo_allowed(topo);
	int rc = plx_lcore_map_single(plx_cpuset_next(allowed, 0), map_out);

	if (rc)
		return rc;
	map_out->places[0].cpus = *allowed;
	snprintf(claims->why, sizeof(claims->why),
		 "the program lets its lcore use any CPU, so it claims none");
	return 0;
}

/* With a list or a mask ---------------------------------------------------------------------- */

static int parse_map(const struct plx_eal_conf *conf, const struct plx_topo *topo,
		     struct plx_lcore_map *map_out)
{
	const char *text = conf->lcores ? conf->lcores : conf->coremask;
	const char *option = eal_conf_origin(conf, conf->lcores ? OPT_LCORES : OPT_COREMASK);
	int rc = eal_conf_check_pair(conf);

	if (rc)
		return rc;
	rc = conf->lcores ? plx_lcore_map_parse_list(option, text, topo, map_out)
			  : plx_lcore_map_parse_mask(option, text, map_out);
	return rc ?: plx_lcore_map_check(option, text, topo, map_out);
}

static void claim_map(const struct plx_lcore_map *map, struct eal_claims *claims)
{
	struct plx_cpuset all = {0};

	for (uint32_t i = 0; i < map->count; i++)
		plx_cpuset_add_all(&all, &map->places[i].cpus);
	PLX_CPUSET_FOREACH (cpu, &all) {
		char who[WHO_BYTES];
		int rc = claim(cpu, claims, who);

		if (rc && rc != -EBUSY)
			return;
		if (rc == 0)
			continue;
		plx_log(&eal_log, PLX_LOG_WARNING,
			"CPU %u is already claimed by %s; " WHILE_SHARED
			": give each process its own CPUs with -l",
			cpu, who);
		plx_cpuset_add(&claims->contested, cpu);
	}
}

static bool is_within(const struct plx_cpuset *part, const struct plx_cpuset *whole)
{
	struct plx_cpuset both = plx_cpuset_and(part, whole);

	return plx_cpuset_equal(&both, part);
}

bool eal_is_contested(const struct plx_lcore_place *place, const struct eal_claims *claims)
{
	return is_within(&place->cpus, &claims->contested);
}

/* Lcores share CPUs if a place has fewer CPUs than lcores confined to them. */
static void warn_shared(const struct plx_lcore_map *map, struct plx_cpuset *contested)
{
	bool told = false;

	for (uint32_t i = 0; i < map->count; i++) {
		const struct plx_cpuset *cpus = &map->places[i].cpus;
		struct plx_cpuset ids = {0};
		char lcores[128], list[128];

		for (uint32_t j = 0; j < map->count; j++)
			if (is_within(&map->places[j].cpus, cpus))
				plx_cpuset_add(&ids, map->places[j].lcore_id);
		if (plx_cpuset_count(&ids) <= plx_cpuset_count(cpus))
			continue;
		plx_cpuset_add_all(contested, cpus);
		if (told)
			continue;
		told = true;
		plx_log(&eal_log, PLX_LOG_WARNING,
			"lcores %s share CPU %s: " WHILE_SHARED "; give each lcore its own CPU",
			plx_cpuset_format(&ids, lcores, sizeof(lcores)),
			plx_cpuset_format(cpus, list, sizeof(list)));
	}
}

/* A polling lcore uses a whole CPU. If the quota is too small for all of them, the kernel stops
 * them at any point until the period ends. */
static void warn_quota(const char *root, const struct plx_lcore_map *map,
		       struct plx_cpuset *contested)
{
	struct plx_cpu_quota quota;

	plx_cpu_quota_read(root, &quota);
	if (quota.cpus <= 0 || quota.cpus >= map->count)
		return;
	for (uint32_t i = 0; i < map->count; i++)
		plx_cpuset_add_all(contested, &map->places[i].cpus);
	plx_log(&eal_log, PLX_LOG_WARNING,
		"%s grants %.2f CPUs in every %.0f ms, which is less than %u lcore%s that poll%s; "
		"adaptive ones sleep early, and a process that uses it up stands still for the "
		"rest of the period. Raise the quota, or give fewer lcores",
		quota.path, quota.cpus, quota.period_ms, map->count, map->count == 1 ? "" : "s",
		map->count == 1 ? "s" : "");
}

int eal_place(const struct plx_eal_conf *conf, const char *root, const struct plx_topo *topo,
	      bool keep, struct plx_lcore_map *map_out, struct eal_claims *claims_out)
{
	bool is_given = conf->lcores || conf->coremask;
	struct plx_lcore_map map = {0};
	struct eal_claims claims = {0};
	int rc;

	if (is_given) {
		rc = parse_map(conf, topo, &map);
		if (rc == 0)
			claim_map(&map, &claims);
	} else if (conf->any_cpu) {
		rc = place_anywhere(topo, &map, &claims);
	} else {
		rc = place_one(root, topo, &map, &claims);
	}
	if (rc || !keep)
		eal_claims_drop(&claims);
	if (rc) {
		plx_lcore_map_fini(&map);
		return rc;
	}
	warn_shared(&map, &claims.contested);
	if (is_given || !conf->any_cpu)
		warn_quota(root, &map, &claims.contested);
	*map_out = map;
	*claims_out = claims;
	return 0;
}
