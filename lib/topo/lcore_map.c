/* SPDX-License-Identifier: BSD-3-Clause */
/* Lcore maps: create, print, and check against the CPUs this process may use. */
#include "topo_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int topo_map_alloc(struct plx_lcore_map *map, uint32_t count)
{
	struct plx_lcore_place *places = calloc(count, sizeof(*places));

	if (!places)
		return plx_fail(ENOMEM, "no memory for %u lcore places", count);
	*map = (struct plx_lcore_map){.places = places};
	return 0;
}

void plx_lcore_map_fini(struct plx_lcore_map *map)
{
	free(map->places);
	*map = (struct plx_lcore_map){0};
}

static void append(struct plx_lcore_map *map, uint32_t lcore_id, const struct plx_cpuset *cpus)
{
	map->places[map->count++] = (struct plx_lcore_place){.lcore_id = lcore_id, .cpus = *cpus};
}

static void append_single(struct plx_lcore_map *map, uint32_t lcore_id, unsigned cpu)
{
	struct plx_cpuset cpus = {{0}};

	plx_cpuset_add(&cpus, cpu);
	append(map, lcore_id, &cpus);
}

int topo_map_plain(const struct plx_cpuset *cpus, struct plx_lcore_map *map_out)
{
	int rc = topo_map_alloc(map_out, plx_cpuset_count(cpus));

	PLX_CPUSET_FOREACH (cpu, cpus) {
		if (rc == 0 && cpu < PLX_LCORE_MAX)
			append_single(map_out, cpu, cpu);
	}
	return rc;
}

int plx_lcore_map_single(unsigned cpu, struct plx_lcore_map *map_out)
{
	int rc;

	if (cpu >= PLX_CPU_MAX)
		return plx_fail(EINVAL, "CPU %u is out of range; CPU ids are 0 to %d", cpu,
				PLX_CPU_MAX - 1);
	rc = topo_map_alloc(map_out, 1);
	if (rc == 0)
		append_single(map_out, 0, cpu);
	return rc;
}

/* Writing ---------------------------------------------------------------------------------- */

static bool is_own(const struct plx_lcore_place *place)
{
	return plx_cpuset_has(&place->cpus, place->lcore_id) && plx_cpuset_count(&place->cpus) == 1;
}

/* Count the places from i on that use the same CPUs. */
static uint32_t sharing(const struct plx_lcore_map *map, uint32_t i)
{
	uint32_t n = 1;

	while (i + n < map->count &&
	       plx_cpuset_equal(&map->places[i].cpus, &map->places[i + n].cpus))
		n++;
	return n;
}

static void write_set(struct plx_text *text, const struct plx_cpuset *ids)
{
	bool one = plx_cpuset_count(ids) == 1;

	plx_text_add(text, one ? "" : "(");
	topo_text_ids(text, ids);
	plx_text_add(text, one ? "" : ")");
}

static void write_mapped(struct plx_text *text, const struct plx_lcore_place *places,
			 uint32_t count)
{
	struct plx_cpuset ids = {{0}};

	for (uint32_t i = 0; i < count; i++)
		plx_cpuset_add(&ids, places[i].lcore_id);
	topo_text_item(text);
	write_set(text, &ids);
	plx_text_add(text, "@");
	write_set(text, &places->cpus);
}

const char *plx_lcore_map_format(const struct plx_lcore_map *map, char *out, size_t size)
{
	struct plx_text text = {.out = out, .size = size};
	struct plx_cpuset own = {{0}};

	for (uint32_t i = 0, n; i < map->count; i += n) {
		n = sharing(map, i);
		if (n > 1 || !is_own(&map->places[i])) {
			topo_text_ids(&text, &own);
			own = (struct plx_cpuset){{0}};
			write_mapped(&text, &map->places[i], n);
		} else {
			plx_cpuset_add(&own, map->places[i].lcore_id);
		}
	}
	topo_text_ids(&text, &own);
	return topo_text_end(&text);
}

/* Checking --------------------------------------------------------------------------------- */

#define ADVICE_BYTES 128

/* A map that would work. It keeps the lcores that can run. Unless the list is plain (0-3,8), an
 * lcore whose CPUs are not allowed gets the first CPU that no lcore asked for, if any. */
static int find_fit(const struct plx_cpuset *allowed, const struct plx_lcore_map *asked, bool plain,
		    struct plx_lcore_map *fit)
{
	unsigned first = plx_cpuset_next(allowed, 0);
	struct plx_cpuset left = *allowed;
	int rc = topo_map_alloc(fit, asked->count);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < asked->count; i++)
		plx_cpuset_remove_all(&left, &asked->places[i].cpus);
	for (uint32_t i = 0; i < asked->count; i++) {
		struct plx_cpuset cpus = plx_cpuset_and(&asked->places[i].cpus, allowed);
		unsigned other = plx_cpuset_next(&left, 0);

		if (plx_cpuset_count(&cpus)) {
			append(fit, asked->places[i].lcore_id, &cpus);
		} else if (!plain && other < PLX_CPU_MAX) {
			append_single(fit, asked->places[i].lcore_id, other);
			plx_cpuset_remove(&left, other);
		}
	}
	if (!fit->count)
		append_single(fit, first < PLX_LCORE_MAX ? first : 0, first);
	return 0;
}

/* A core list that would work, quoted for a shell if needed. */
static int write_advice(const char *text, const struct plx_cpuset *allowed,
			const struct plx_lcore_map *asked, char out[ADVICE_BYTES])
{
	struct plx_lcore_map fit;
	char list[ADVICE_BYTES - 2];
	int rc = find_fit(allowed, asked, !strpbrk(text, "@("), &fit);

	if (rc)
		return rc;
	if (strstr(plx_lcore_map_format(&fit, list, sizeof(list)), "...")) {
		fit.count = 0;
		append_single(&fit, fit.places[0].lcore_id,
			      plx_cpuset_next(&fit.places[0].cpus, 0));
		plx_lcore_map_format(&fit, list, sizeof(list));
	}
	snprintf(out, ADVICE_BYTES, strchr(list, '(') ? "'%s'" : "%s", list);
	plx_lcore_map_fini(&fit);
	return 0;
}

static int fail_cpu(const char *option, const char *text, const struct plx_topo *topo,
		    const struct plx_lcore_map *map, unsigned cpu)
{
	const struct plx_cpuset *allowed = plx_topo_allowed(topo), *online = plx_topo_cpus(topo);
	char shown[TOPO_EXCERPT_BYTES], advice[ADVICE_BYTES], allowed_list[128], online_list[128],
		online_text[144] = "";
	int rc = write_advice(text, allowed, map, advice);

	if (rc)
		return rc;
	topo_excerpt(text, text, shown);
	plx_cpuset_format(allowed, allowed_list, sizeof(allowed_list));
	plx_cpuset_format(online, online_list, sizeof(online_list));
	if (plx_cpuset_has(online, cpu))
		return plx_fail(EINVAL,
				"%s %s: CPU %u is not available to this process (allowed: %s); "
				"give -l %s or widen the cpuset",
				option, shown, cpu, allowed_list, advice);
	if (!plx_cpuset_equal(online, allowed))
		snprintf(online_text, sizeof(online_text), "online: %s, ", online_list);
	return plx_fail(EINVAL,
			"%s %s: CPU %u does not exist or is offline (%sallowed: %s); give -l %s",
			option, shown, cpu, online_text, allowed_list, advice);
}

int plx_lcore_map_check(const char *option, const char *text, const struct plx_topo *topo,
			const struct plx_lcore_map *map)
{
	const struct plx_cpuset *allowed = plx_topo_allowed(topo);

	for (uint32_t i = 0; i < map->count; i++) {
		PLX_CPUSET_FOREACH (cpu, &map->places[i].cpus) {
			if (!plx_cpuset_has(allowed, cpu))
				return fail_cpu(option, text, topo, map, cpu);
		}
	}
	return 0;
}
