/* SPDX-License-Identifier: BSD-3-Clause */
/* The core list parser: recursive descent over the grammar in plx_topo.h. Whether a number is an
 * lcore id or a CPU id depends on its side of '@', so each item first looks for one. */
#include "topo_priv.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static_assert(PLX_LCORE_MAX == 256 && PLX_CPU_MAX == 4096, "two texts below name the limits");
#define LCORE_IDS "lcore ids are 0 to 255"
#define CPU_IDS   "CPU ids are 0 to 4095"

#define DIGITS    "0123456789"

/* What the numbers of a set are: without '@' both. */
enum role { LCORES, CPUS, BOTH };

struct number {
	const char *at; /* its first digit, or the name that stands for it */
	size_t digits;
	unsigned value; /* values above PLX_CPU_MAX are stored as PLX_CPU_MAX */
};

/* One set of an item. */
struct id_set {
	enum role role;
	struct plx_cpuset ids;
};

struct parser {
	struct topo_given given;
	const char *at;
	const struct plx_topo *topo;
	struct plx_lcore_map *map; /* while parsing, places[id] belongs to lcore `id` */
	bool single;               /* the last thing read is one number, so '-' may follow */
	struct plx_cpuset taken;   /* lcore ids so far */
};

static bool take_char(struct parser *p, char c)
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
	unsigned long value;

	p->at = topo_skip_blanks(p->at);
	*out = (struct number){.at = p->at, .digits = strspn(p->at, DIGITS)};
	if (!out->digits)
		return fail_expected(p, expected,
				     *p->at == '(' ? "groups do not nest"
				     : isalpha((unsigned char)*p->at)
					     ? "names are all, node:N and near:DEVICE"
					     : "");
	value = strtoul(p->at, NULL, 10); /* ULONG_MAX on overflow */
	out->value = value < PLX_CPU_MAX ? (unsigned)value : PLX_CPU_MAX;
	p->at += out->digits;
	return 0;
}

static int fail_number(struct parser *p, const struct number *number, const char *what,
		       const char *allowed)
{
	int shown = number->digits > 20 ? 20 : (int)number->digits;

	return topo_fail_at(&p->given, number->at, "%s%.*s%s is out of range; %s", what, shown,
			    number->at, number->digits > 20 ? "..." : "", allowed);
}

static int check_number(struct parser *p, const struct number *number, enum role role)
{
	if (role == LCORES && number->value >= PLX_LCORE_MAX)
		return fail_number(p, number, "lcore ", LCORE_IDS);
	if (number->value >= PLX_CPU_MAX)
		return fail_number(p, number, role == CPUS ? "CPU " : "",
				   role == CPUS ? CPU_IDS : LCORE_IDS ", " CPU_IDS);
	if (role == BOTH && number->value >= PLX_LCORE_MAX)
		return topo_fail_no_lcore(&p->given, number->at, "", number->value, "write");
	return 0;
}

/* Add first to last to the set; at: where they were given. */
static int add_range(struct parser *p, const char *at, unsigned first, unsigned last,
		     struct id_set *set)
{
	for (unsigned id = first; id <= last; id++) {
		if (set->role != CPUS &&
		    (plx_cpuset_has(&set->ids, id) || plx_cpuset_has(&p->taken, id)))
			return topo_fail_at(&p->given, at,
					    "lcore %u is given twice; give each lcore id once", id);
		plx_cpuset_add(&set->ids, id);
	}
	return 0;
}

/* Names of CPUs: "all", "node:1", "near:eth0" ------------------------------------------------ */

static bool take_word(struct parser *p, const char *word)
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

	*cpus_out = plx_cpuset_and(&all, allowed);
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
	size_t digits = strspn(p->at, DIGITS);
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
		node = topo_kernel_node(p->topo->root, name);
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
	int rc = take_word(p, "all")   ? 1
	       : take_word(p, "node:") ? parse_node(p, at, &cpus)
	       : take_word(p, "near:") ? parse_near(p, at, &cpus)
				       : 0;

	if (rc <= 0)
		return rc;
	if (set->role == LCORES)
		return topo_fail_at(
			&p->given, at,
			"found the name of CPUs where lcore ids stand; names stand after "
			"'@', as in 0@node:0, or alone");
	p->single = false;
	PLX_CPUSET_FOREACH (cpu, &cpus) {
		rc = check_number(p, &(struct number){.at = at, .value = cpu}, set->role)
			   ?: add_range(p, at, cpu, cpu, set);
		if (rc)
			return rc;
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
	p->single = !take_char(p, '-');
	if (!p->single) {
		rc = parse_number(p, "the number that ends the range", &b);
		if (rc)
			return rc;
	}
	rc = check_number(p, &a, set->role) ?: check_number(p, &b, set->role);
	if (rc == 0 && a.value > b.value)
		return topo_fail_at(&p->given, a.at,
				    "the range ends below its start; write the lower number first, "
				    "as in %u-%u",
				    b.value, a.value);
	return rc ?: add_range(p, a.at, a.value, b.value, set);
}

static int parse_group(struct parser *p, const char *open, struct id_set *set)
{
	do {
		int rc = parse_range(p, "a number", set);

		if (rc)
			return rc;
	} while (take_char(p, ','));
	char hint[64];
	const char *expected = p->single ? "',', '-' or ')'" : "',' or ')'";

	p->single = false;
	if (take_char(p, ')'))
		return 0;
	snprintf(hint, sizeof(hint), "the '(' of column %zu is not closed",
		 (size_t)(open - p->given.text) + 1);
	return fail_expected(p, expected, hint);
}

static int parse_set(struct parser *p, struct id_set *set)
{
	if (take_char(p, '('))
		return parse_group(p, p->at - 1, set);
	return parse_range(p, "a number or '('", set);
}

static void place(struct parser *p, unsigned lcore_id, const struct plx_cpuset *cpus)
{
	struct plx_lcore_place *to = &p->map->places[lcore_id];

	to->lcore_id = lcore_id;
	if (cpus)
		to->cpus = *cpus;
	else
		plx_cpuset_add(&to->cpus, lcore_id);
	plx_cpuset_add(&p->taken, lcore_id);
}

static int parse_item(struct parser *p, bool *mapped)
{
	const char *at = topo_skip_blanks(p->at);
	bool grouped = *at == '(';

	at += grouped ? strcspn(at, ")") : 0;
	*mapped = at[strcspn(at, "@,")] == '@';

	struct id_set first = {.role = *mapped ? LCORES : BOTH}, cpus = {.role = CPUS};
	int rc = parse_set(p, &first);

	if (rc == 0 && *mapped && take_char(p, '@'))
		rc = parse_set(p, &cpus);
	else
		*mapped = false;
	if (rc)
		return rc;
	PLX_CPUSET_FOREACH (id, &first.ids)
		place(p, id, *mapped ? &cpus.ids : grouped ? &first.ids : NULL);
	return 0;
}

static const char *next_allowed(bool mapped, bool single)
{
	if (mapped)
		return single ? "',', '-' or the end" : "',' or the end";
	return single ? "',', '-', '@' or the end" : "',', '@' or the end";
}

static int parse_items(struct parser *p)
{
	bool mapped;

	do {
		int rc = parse_item(p, &mapped);

		if (rc)
			return rc;
	} while (take_char(p, ','));
	if (*p->at)
		return fail_expected(p, next_allowed(mapped, p->single),
				     *p->at == '@'   ? "an item has one '@', as in 2@5"
				     : *p->at == ')' ? "there is no '(' for it"
						     : "");
	return 0;
}

int plx_lcore_map_parse_list(const char *option, const char *text, const struct plx_topo *topo,
			     struct plx_lcore_map *map_out)
{
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
	*map_out = map;
	return 0;
}
