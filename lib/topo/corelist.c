/* SPDX-License-Identifier: BSD-3-Clause */
/* The core list parser: recursive descent over the grammar in plx_topo.h. Whether a number is an
 * lcore id or a CPU id depends on its side of '@', so ranges are checked when their item is
 * complete. */
#include "topo_priv.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct number {
	const char *at; /* its first digit; NULL: not a number */
	size_t digits;
	unsigned value; /* values above PLX_CPU_MAX are stored as PLX_CPU_MAX */
};

/* One set of an item. It may hold lcore ids or CPU ids. For later errors, the parser keeps the
 * first invalid lcore id, the first invalid CPU id and the first repeated lcore id. */
struct id_set {
	struct plx_cpuset ids;
	bool grouped;
	const char *name_at; /* the first name, such as "all" or "node:1"; NULL: none */
	struct number no_lcore, no_cpu;
	const char *repeat_at;
	unsigned repeat;
};

struct parser {
	struct topo_given given;
	const char *at;
	const struct plx_topo *topo;
	struct plx_lcore_map *map; /* while parsing, places[id] belongs to lcore `id` */
	bool single;               /* the last thing read is one number, so '-' may follow */
	struct plx_cpuset taken;   /* lcore ids so far */
	struct number stray;       /* first CPU without '@' that is no valid lcore id */
};

static bool accept(struct parser *p, char c)
{
	p->at = topo_skip_blanks(p->at);
	if (*p->at != c)
		return false;
	p->at++;
	return true;
}

static int fail_expected(struct parser *p, const char *expected, const char *hint)
{
	p->at = topo_skip_blanks(p->at);
	if (*p->at == '[' || *p->at == ']')
		hint = "groups are written in ( ), as in (4-7)@0";
	return topo_fail_expected(&p->given, p->at, expected, hint);
}

static int parse_number(struct parser *p, const char *expected, struct number *out)
{
	p->at = topo_skip_blanks(p->at);
	*out = (struct number){.at = p->at};
	for (; *p->at >= '0' && *p->at <= '9'; p->at++) {
		out->value = out->value * 10 + (unsigned)(*p->at - '0');
		if (out->value > PLX_CPU_MAX)
			out->value = PLX_CPU_MAX;
	}
	out->digits = (size_t)(p->at - out->at);
	if (out->digits)
		return 0;
	return fail_expected(p, expected,
			     *p->at == '(' ? "groups do not nest"
			     : isalpha((unsigned char)*p->at)
				     ? "names are all, node:N and near:DEVICE"
				     : "");
}

static void note_number(struct id_set *set, const struct number *number)
{
	if (number->value >= PLX_LCORE_MAX && !set->no_lcore.at)
		set->no_lcore = *number;
	if (number->value >= PLX_CPU_MAX && !set->no_cpu.at)
		set->no_cpu = *number;
}

static void note_repeat(struct parser *p, struct id_set *set, const char *at, unsigned first,
			unsigned last)
{
	for (unsigned id = first; id <= last && id < PLX_LCORE_MAX && !set->repeat_at; id++) {
		if (plx_cpuset_has(&set->ids, id) || plx_cpuset_has(&p->taken, id)) {
			set->repeat_at = at;
			set->repeat = id;
		}
	}
}

/* Names of CPUs: "all", "node:1", "near:eth0" ------------------------------------------------ */

static bool accept_word(struct parser *p, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(p->at, word, len) != 0)
		return false;
	p->at += len;
	return true;
}

/* The allowed CPUs of the node; at: its name. Return: 1; -EINVAL. */
static int node_cpus(struct parser *p, const char *at, int node, struct plx_cpuset *cpus_out)
{
	const struct plx_cpuset *allowed = plx_topo_allowed(p->topo);
	struct plx_cpuset all = plx_topo_node_cpus(p->topo, node);
	char list[128], allowed_list[128];

	*cpus_out = topo_cpuset_and(&all, allowed);
	if (plx_cpuset_count(cpus_out))
		return 1;
	return topo_fail_at(
		&p->given, at,
		"there is no CPU on NUMA node %d that this process may use (CPUs there: "
		"%s; allowed: %s); take another node, or widen the cpuset",
		node, plx_cpuset_format(&all, list, sizeof(list)),
		plx_cpuset_format(allowed, allowed_list, sizeof(allowed_list)));
}

static int parse_node(struct parser *p, const char *at, struct plx_cpuset *cpus_out)
{
	size_t digits = strspn(p->at, "0123456789");
	unsigned long node = strtoul(p->at, NULL, 10); /* ULONG_MAX on overflow */

	if (!digits)
		return topo_fail_expected(&p->given, p->at, "the number of a NUMA node",
					  "as in node:0");
	p->at += digits;
	return node_cpus(p, at, node < INT_MAX ? (int)node : INT_MAX, cpus_out);
}

static int parse_near(struct parser *p, const char *at, struct plx_cpuset *cpus_out)
{
	const char *device = p->at;
	size_t len = strcspn(device, ",()@ \t\n\v\f\r");
	char name[PLX_RDMA_NAME_BYTES];
	int node = -ENODEV;

	if (!len)
		return topo_fail_expected(&p->given, device, "a device",
					  "as in near:eth0, near:mlx5_0 or near:0000:3b:00.0");
	p->at += len;
	if (len < sizeof(name)) {
		snprintf(name, sizeof(name), "%.*s", (int)len, device);
		node = plx_topo_device_node(p->topo, name);
	}
	if (node == -ENODEV)
		return topo_fail_at(&p->given, device,
				    "there is no such device; give a network interface, an RDMA "
				    "device, or a PCI address with its domain, as in 0000:3b:00.0");
	if (node < 0 && plx_topo_node_count(p->topo) == 1)
		node = plx_topo_node_id(p->topo, 0);
	if (node >= 0)
		return node_cpus(p, at, node, cpus_out);
	return topo_fail_at(&p->given, device,
			    "the system does not know which NUMA node the device is near; give "
			    "node:N, or CPUs");
}

/* Return: 1; 0 no name here; -EINVAL. */
static int parse_name(struct parser *p, struct id_set *set)
{
	const char *at = p->at = topo_skip_blanks(p->at);
	struct plx_cpuset cpus = *plx_topo_allowed(p->topo);
	int rc = accept_word(p, "all")   ? 1
	       : accept_word(p, "node:") ? parse_node(p, at, &cpus)
	       : accept_word(p, "near:") ? parse_near(p, at, &cpus)
					 : 0;

	if (rc <= 0)
		return rc;
	p->single = false;
	set->name_at = set->name_at ? set->name_at : at;
	PLX_CPUSET_FOREACH (cpu, &cpus) {
		note_number(set, &(struct number){.at = at, .value = cpu});
		note_repeat(p, set, at, cpu, cpu);
		plx_cpuset_add(&set->ids, cpu);
	}
	return 1;
}

/* The grammar -------------------------------------------------------------------------------- */

static int parse_range(struct parser *p, const char *expected, struct id_set *set)
{
	struct number a, b;
	int rc = parse_name(p, set);

	if (rc)
		return rc < 0 ? rc : 0;
	rc = parse_number(p, expected, &a);
	if (rc)
		return rc;
	b = a;
	p->single = !accept(p, '-');
	if (!p->single) {
		rc = parse_number(p, "the number that ends the range", &b);
		if (rc)
			return rc;
	}
	unsigned first = a.value < b.value ? a.value : b.value;
	unsigned last = a.value < b.value ? b.value : a.value;

	note_number(set, &a);
	note_number(set, &b);
	note_repeat(p, set, a.at, first, last);
	topo_cpuset_add_range(&set->ids, first, last);
	return 0;
}

static int parse_group(struct parser *p, const char *open, struct id_set *set)
{
	set->grouped = true;
	do {
		int rc = parse_range(p, "a number", set);

		if (rc)
			return rc;
	} while (accept(p, ','));
	char hint[64];
	const char *expected = p->single ? "',', '-' or ')'" : "',' or ')'";

	p->single = false;
	if (accept(p, ')'))
		return 0;
	snprintf(hint, sizeof(hint), "the '(' of column %zu is not closed",
		 (size_t)(open - p->given.text) + 1);
	return fail_expected(p, expected, hint);
}

static int parse_set(struct parser *p, struct id_set *set)
{
	if (accept(p, '('))
		return parse_group(p, p->at - 1, set);
	return parse_range(p, "a number or '('", set);
}

static_assert(PLX_LCORE_MAX == 256 && PLX_CPU_MAX == 4096, "two texts below name the limits");
#define LCORE_IDS "lcore ids are 0 to 255"
#define CPU_IDS   "CPU ids are 0 to 4095"

static int fail_number(struct parser *p, const struct number *number, const char *what,
		       const char *allowed)
{
	int shown = number->digits > 20 ? 20 : (int)number->digits;

	return topo_fail_at(&p->given, number->at, "%s%.*s%s is out of range; %s", what, shown,
			    number->at, number->digits > 20 ? "..." : "", allowed);
}

static int fail_repeat(struct parser *p, const struct id_set *lcores)
{
	return topo_fail_at(&p->given, lcores->repeat_at,
			    "lcore %u is given twice; give each lcore id once", lcores->repeat);
}

static void place(struct parser *p, unsigned lcore_id, const struct plx_cpuset *cpus)
{
	struct plx_lcore_place *to = &p->map->places[lcore_id];

	to->lcore_id = lcore_id;
	to->cpus = *cpus;
	plx_cpuset_add(&p->taken, lcore_id);
}

static int place_mapped(struct parser *p, const struct id_set *lcores, const struct id_set *cpus)
{
	if (lcores->name_at)
		return topo_fail_at(
			&p->given, lcores->name_at,
			"found the name of CPUs where lcore ids stand; names stand after "
			"'@', as in 0@node:0, or alone");
	if (lcores->no_lcore.at)
		return fail_number(p, &lcores->no_lcore, "lcore ", LCORE_IDS);
	if (lcores->repeat_at)
		return fail_repeat(p, lcores);
	if (cpus->no_cpu.at)
		return fail_number(p, &cpus->no_cpu, "CPU ", CPU_IDS);
	PLX_CPUSET_FOREACH (id, &lcores->ids)
		place(p, id, &cpus->ids);
	return 0;
}

/* An item without '@': each number is both the lcore id and the CPU id. */
static int place_plain(struct parser *p, const struct id_set *both)
{
	if (both->no_cpu.at)
		return fail_number(p, &both->no_cpu, "", LCORE_IDS ", " CPU_IDS);
	if (both->repeat_at)
		return fail_repeat(p, both);
	if (both->no_lcore.at && !p->stray.at)
		p->stray = both->no_lcore;
	PLX_CPUSET_FOREACH (id, &both->ids) {
		struct plx_cpuset own = {{0}};

		plx_cpuset_add(&own, id);
		if (id < PLX_LCORE_MAX)
			place(p, id, both->grouped ? &both->ids : &own);
	}
	return 0;
}

static int parse_item(struct parser *p, bool *mapped)
{
	struct id_set first = {.ids = {{0}}}, second = {.ids = {{0}}};
	int rc = parse_set(p, &first);

	if (rc)
		return rc;
	*mapped = accept(p, '@');
	if (*mapped) {
		rc = parse_set(p, &second);
		return rc ? rc : place_mapped(p, &first, &second);
	}
	return place_plain(p, &first);
}

static const char *next_allowed(bool mapped, bool single)
{
	if (mapped)
		return single ? "',', '-' or the end" : "',' or the end";
	return single ? "',', '-', '@' or the end" : "',', '@' or the end";
}

/* Reported last, because only now is a free lcore id known for the advice. */
static int fail_stray(struct parser *p)
{
	unsigned cpu = p->stray.value, id = 0;

	while (plx_cpuset_has(&p->taken, id))
		id++;
	if (id >= PLX_LCORE_MAX)
		return topo_fail_at(&p->given, p->stray.at,
				    "%u is no lcore id (" LCORE_IDS "); a process has %d "
				    "lcores at most",
				    cpu, PLX_LCORE_MAX);
	return topo_fail_at(&p->given, p->stray.at,
			    "%u is no lcore id (" LCORE_IDS
			    "); to run an lcore on CPU %u write %u@%u",
			    cpu, cpu, id, cpu);
}

static int parse_items(struct parser *p)
{
	bool mapped;

	do {
		int rc = parse_item(p, &mapped);

		if (rc)
			return rc;
	} while (accept(p, ','));
	if (*p->at)
		return fail_expected(p, next_allowed(mapped, p->single),
				     *p->at == '@'   ? "an item has one '@', as in 2@5"
				     : *p->at == ')' ? "there is no '(' for it"
						     : "");
	return p->stray.at ? fail_stray(p) : 0;
}

int plx_lcore_map_parse_list(const char *option, const char *text, const struct plx_topo *topo,
			     struct plx_lcore_map *map_out)
{
	struct plx_lcore_place *less;
	struct plx_lcore_map map;
	struct parser p = {.given = {option, text}, .at = text, .topo = topo, .map = &map};

	if (!*topo_skip_blanks(text))
		return topo_fail_at(&p.given, text,
				    "the list is empty; give lcores such as 0-3,8 or 2@5");
	int rc = topo_map_alloc(&map, PLX_LCORE_MAX);

	if (rc)
		return rc;
	rc = parse_items(&p);
	if (rc) {
		plx_lcore_map_fini(&map);
		return rc;
	}
	/* Move the used places to the front, in order of their ids. */
	PLX_CPUSET_FOREACH (id, &p.taken)
		map.places[map.count++] = map.places[id];
	less = realloc(map.places, map.count * sizeof(*less));
	if (less)
		map.places = less;
	*map_out = map;
	return 0;
}
