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

/* Whether each lcore runs only on the CPU of the same number. */
static bool is_plain(const struct plx_lcore_map *map)
{
	for (uint32_t i = 0; i < map->count; i++) {
		if (!is_own(&map->places[i]))
			return false;
	}
	return true;
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

static void write_set(struct topo_text *text, const struct plx_cpuset *ids)
{
	bool one = plx_cpuset_count(ids) == 1;

	if (!one)
		topo_text_add(text, "(");
	topo_text_ids(text, ids);
	if (!one)
		topo_text_add(text, ")");
}

static void write_mapped(struct topo_text *text, const struct plx_lcore_place *places,
			 uint32_t count)
{
	struct plx_cpuset ids = {{0}};

	for (uint32_t i = 0; i < count; i++)
		plx_cpuset_add(&ids, places[i].lcore_id);
	topo_text_item(text);
	text->nested = true;
	write_set(text, &ids);
	topo_text_add(text, "@");
	write_set(text, &places->cpus);
	text->nested = false;
}

const char *plx_lcore_map_format(const struct plx_lcore_map *map, char *out, size_t size)
{
	struct plx_cpuset own = {{0}};
	struct topo_text text;

	topo_text_start(&text, out, size);
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

#define ADVICE_BYTES 256

/* State for the check's advice. */
struct fit {
	const struct plx_cpuset *allowed;
	const struct plx_lcore_map *asked;
	struct plx_lcore_map map; /* a map that would work */
};

static void remove_all(struct plx_cpuset *cpus, const struct plx_lcore_map *map)
{
	for (uint32_t i = 0; i < map->count; i++) {
		PLX_CPUSET_FOREACH (cpu, &map->places[i].cpus)
			plx_cpuset_remove(cpus, cpu);
	}
}

/* The CPUs chosen for an earlier lcore that asked for exactly these; NULL: none. */
static const struct plx_cpuset *shared_with(const struct fit *fit, const struct plx_cpuset *cpus)
{
	uint32_t j = 0;

	for (uint32_t i = 0; i < fit->map.count; i++) {
		while (fit->asked->places[j].lcore_id != fit->map.places[i].lcore_id)
			j++;
		if (plx_cpuset_equal(&fit->asked->places[j].cpus, cpus))
			return &fit->map.places[i].cpus;
	}
	return NULL;
}

/* The CPUs that would work for a place that asked for these; empty if none are left. */
static struct plx_cpuset fit_cpus(const struct fit *fit, const struct plx_cpuset *asked, bool plain)
{
	struct plx_cpuset cpus = topo_cpuset_and(asked, fit->allowed), free = *fit->allowed;
	const struct plx_cpuset *shared = shared_with(fit, asked);
	unsigned cpu;

	if (plain || plx_cpuset_count(&cpus))
		return cpus;
	if (shared)
		return *shared;
	remove_all(&free, fit->asked);
	remove_all(&free, &fit->map);
	cpu = plx_cpuset_next(&free, 0);
	if (cpu < PLX_CPU_MAX)
		plx_cpuset_add(&cpus, cpu);
	return cpus;
}

/* A plain list keeps the lcores that can run. A map keeps all lcores if possible: an lcore whose
 * CPUs are not allowed gets the first CPU that no lcore asked for. */
static int fit_make(struct fit *fit, const struct plx_cpuset *allowed,
		    const struct plx_lcore_map *asked, bool plain)
{
	unsigned first = plx_cpuset_next(allowed, 0);

	*fit = (struct fit){.allowed = allowed, .asked = asked};
	int rc = topo_map_alloc(&fit->map, asked->count);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < asked->count; i++) {
		struct plx_cpuset cpus = fit_cpus(fit, &asked->places[i].cpus, plain);

		if (plx_cpuset_count(&cpus))
			append(&fit->map, asked->places[i].lcore_id, &cpus);
	}
	if (!fit->map.count)
		append_single(&fit->map, first < PLX_LCORE_MAX ? first : 0, first);
	return 0;
}

static void write_mask(const struct plx_lcore_map *plain, char *out, size_t size)
{
	unsigned digit = plain->places[plain->count - 1].lcore_id / 4;
	int n = snprintf(out, size, "0x");
	uint8_t digits[PLX_LCORE_MAX / 4] = {0};

	for (uint32_t i = 0; i < plain->count; i++) {
		uint32_t id = plain->places[i].lcore_id;

		digits[id / 4] |= (uint8_t)(1 << id % 4);
	}
	do {
		n += snprintf(out + n, size - (size_t)n, "%x", digits[digit]);
	} while (digit--);
}

/* No text is a list and a mask of the same map: "1" is lcore 1 as a list, 0 as a mask. */
static bool was_mask(const char *text, const struct plx_lcore_map *map)
{
	struct plx_lcore_map masked;

	if (plx_lcore_map_parse_mask("", text, &masked))
		return false;
	bool same = masked.count == map->count && is_plain(map);

	for (uint32_t i = 0; same && i < map->count; i++)
		same = masked.places[i].lcore_id == map->places[i].lcore_id;
	plx_lcore_map_fini(&masked);
	return same;
}

/* The option text that would work, quoted for a shell if needed. */
static void write_advice(struct fit *fit, const char *option, bool mask, char out[ADVICE_BYTES])
{
	struct plx_lcore_map *map = &fit->map;
	char list[ADVICE_BYTES / 2];
	bool shell = option[0] == '-';

	if (mask && is_plain(map)) {
		write_mask(map, list, sizeof(list));
	} else if (strstr(plx_lcore_map_format(map, list, sizeof(list)), "...")) {
		map->count = 0;
		append_single(map, map->places[0].lcore_id,
			      plx_cpuset_next(&map->places[0].cpus, 0));
		plx_lcore_map_format(map, list, sizeof(list));
	}
	const char *quote = shell && strchr(list, '(') ? "'" : "";

	if (mask && !is_plain(map))
		snprintf(out, ADVICE_BYTES, "the core list %s%s%s", quote, list, quote);
	else
		snprintf(out, ADVICE_BYTES, "%s%s%s%s%s", shell ? option : "", shell ? " " : "",
			 quote, list, quote);
}

static int fail_cpu(const char *option, const char *text, const struct plx_topo *topo,
		    const struct plx_lcore_map *map, unsigned cpu)
{
	const struct plx_cpuset *allowed = plx_topo_allowed(topo), *online = plx_topo_cpus(topo);
	char shown[TOPO_EXCERPT_BYTES], advice[ADVICE_BYTES], allowed_list[128], online_list[128],
		online_text[144];
	struct fit fit;
	bool mask = was_mask(text, map);
	bool plain = is_plain(map) && !strpbrk(text, "@(");
	int rc = fit_make(&fit, allowed, map, plain);

	if (rc)
		return rc;
	write_advice(&fit, option, mask, advice);
	plx_lcore_map_fini(&fit.map);
	topo_excerpt(text, text, shown);
	plx_cpuset_format(allowed, allowed_list, sizeof(allowed_list));
	if (plx_cpuset_has(online, cpu))
		return plx_fail(EINVAL,
				"%s %s: CPU %u is not available to this process (allowed: %s); "
				"give %s or widen the cpuset",
				option, shown, cpu, allowed_list, advice);
	snprintf(online_text, sizeof(online_text), "online: %s, ",
		 plx_cpuset_format(online, online_list, sizeof(online_list)));
	return plx_fail(EINVAL,
			"%s %s: CPU %u does not exist or is offline (%sallowed: %s); give %s",
			option, shown, cpu, plx_cpuset_equal(online, allowed) ? "" : online_text,
			allowed_list, advice);
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
