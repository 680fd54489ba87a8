/* SPDX-License-Identifier: BSD-3-Clause */
/* --idle: one policy for all lcores, or "0:poll,1-3:adaptive:eco", or both. A policy without lcores
 * is for the lcores that are not named. */
#include "eal_priv.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parse {
	const char *option, *text;
	const struct plx_lcore_map *map;
	struct plx_idle_conf *policies; /* one per place of the map */
	struct plx_idle_conf *others;   /* of lcores that are not in the map */
	struct plx_cpuset all;          /* lcores */
	struct plx_cpuset named;        /* those with a policy */
	struct plx_cpuset pending;      /* lcores before the next ":" */
	bool has_default;
};

static int fail_form(const struct parse *parse, const char *at, size_t len)
{
	return plx_fail(
		EINVAL,
		"%s %s: '%.*s' has no policy; give one for all lcores, such as adaptive, or "
		"lcores in front of it: 0:poll,1-3:adaptive:eco",
		parse->option, parse->text, (int)len, at);
}

static int add_lcore(struct parse *parse, unsigned long id)
{
	char list[128];

	if (id >= PLX_LCORE_MAX || !plx_cpuset_has(&parse->all, (unsigned)id))
		return plx_fail(EINVAL,
				"%s %s: lcore %lu is not one of the lcores; give some of %s",
				parse->option, parse->text, id,
				plx_cpuset_format(&parse->all, list, sizeof(list)));
	if (plx_cpuset_has(&parse->named, (unsigned)id) ||
	    plx_cpuset_has(&parse->pending, (unsigned)id))
		return plx_fail(EINVAL, "%s %s: lcore %lu stands there twice; give each one policy",
				parse->option, parse->text, id);
	plx_cpuset_add(&parse->pending, (unsigned)id);
	return 0;
}

/* Parse "3" or "1-3" of length len. */
static int take_lcores(struct parse *parse, const char *at, size_t len)
{
	char *end;
	unsigned long first = strtoul(at, &end, 10), last = first;

	if (*end == '-' && isdigit((unsigned char)end[1]))
		last = strtoul(end + 1, &end, 10);
	if (end != at + len || last < first)
		return plx_fail(EINVAL,
				"%s %s: '%.*s' is no lcore, and no range of them; give such as 0 "
				"or 1-3",
				parse->option, parse->text, (int)len, at);
	for (unsigned long id = first;; id++) {
		int rc = add_lcore(parse, id); /* fails early on a long range */

		if (rc || id == last)
			return rc;
	}
}

static int take_policy(struct parse *parse, const char *at, size_t len)
{
	bool for_all = plx_cpuset_count(&parse->pending) == 0;
	struct plx_idle_conf policy;
	char copy[128] = "", where[256];
	int rc;

	if (len < sizeof(copy)) /* longer than any policy */
		memcpy(copy, at, len);
	/* With several policies, the text shows all and names the wrong one. */
	snprintf(where, sizeof(where), "%s %s:", parse->option, parse->text);
	rc = plx_idle_parse(strcmp(copy, parse->text) == 0 ? parse->option : where, copy, &policy);
	if (rc)
		return rc;
	if (for_all && parse->has_default)
		return plx_fail(EINVAL,
				"%s %s: there are two policies without lcores; give one, which "
				"is for all that are not named",
				parse->option, parse->text);
	for (uint32_t i = 0; i < parse->map->count; i++) {
		uint32_t id = parse->map->places[i].lcore_id;

		if (plx_cpuset_has(for_all ? &parse->all : &parse->pending, id) &&
		    !plx_cpuset_has(&parse->named, id))
			parse->policies[i] = policy;
	}
	parse->has_default |= for_all;
	if (for_all)
		*parse->others = policy;
	plx_cpuset_add_all(&parse->named, &parse->pending);
	parse->pending = (struct plx_cpuset){0};
	return 0;
}

static int take_all(struct parse *parse)
{
	int rc;

	for (const char *at = parse->text; at;) {
		size_t len = strcspn(at, ","), begin = 0; /* of the policy */

		if (isdigit((unsigned char)*at)) {
			begin = strcspn(at, ":,");
			rc = take_lcores(parse, at, begin);
			if (rc)
				return rc;
		} else if (plx_cpuset_count(&parse->pending)) {
			break;
		}
		if (!begin || at[begin] == ':') { /* the lcores of "0,2:poll" wait for it */
			begin += begin > 0;
			if (begin == len)
				return fail_form(parse, at, len);
			rc = take_policy(parse, at + begin, len - begin);
			if (rc)
				return rc;
		}
		at = at[len] ? at + len + 1 : NULL;
	}
	if (plx_cpuset_count(&parse->pending))
		return fail_form(parse, parse->text, strlen(parse->text));
	return 0;
}

int eal_idle_value(const struct plx_eal_conf *conf, const struct plx_lcore_map *map,
		   const struct eal_claims *claims, struct plx_idle_conf *idle_out,
		   struct plx_idle_conf *others_out)
{
	struct parse parse = {
		.option = eal_conf_origin(conf, OPT_IDLE),
		.text = conf->idle,
		.map = map,
		.policies = idle_out,
		.others = others_out,
	};
	int rc = 0;

	for (uint32_t i = 0; i < map->count; i++)
		plx_cpuset_add(&parse.all, map->places[i].lcore_id);
	if (conf->idle)
		rc = take_all(&parse);
	for (uint32_t i = 0; i < map->count; i++)
		idle_out[i].crowded = eal_is_contested(&map->places[i], claims);
	return rc;
}
