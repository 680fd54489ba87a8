/* SPDX-License-Identifier: BSD-3-Clause */
/* struct plx_eal_conf: set its fields by the option table, and record where each came from. */
#include "eal_priv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static_assert(OPT_COUNT <= sizeof(((struct plx_eal_conf *)0)->origin) / sizeof(char *),
	      "each option has a place for its origin");
static_assert(2 * (OPT_COUNT + PLX_EAL_LEVELS_MAX) <
		      sizeof(((struct plx_eal_conf *)0)->owned) / sizeof(char *),
	      "a file can give every option: its value and origin");

const char *eal_conf_origin(const struct plx_eal_conf *conf, enum eal_option_id id)
{
	return conf->origin[id] ? conf->origin[id] : plx_eal_options[id].name;
}

const char *eal_conf_own(struct plx_eal_conf *conf, const char *text)
{
	char *copy = conf->owned_count < PLX_ARRAY_LEN(conf->owned) ? strdup(text) : NULL;

	if (copy)
		conf->owned[conf->owned_count++] = copy;
	else
		plx_fail(ENOMEM, "out of memory");
	return copy;
}

int eal_conf_add_level(struct plx_eal_conf *conf, const char *value, const char *origin)
{
	uint32_t n = conf->log_level_count;

	if (n == PLX_EAL_LEVELS_MAX)
		return plx_fail(EINVAL, "%s %s: too many log levels; at most %d are allowed",
				origin ?: "log-level", value, PLX_EAL_LEVELS_MAX);
	conf->level_origins[n] = origin;
	conf->log_levels[n] = value;
	conf->log_level_count++;
	return 0;
}

static int fail_twice(const char *given, const char *value, const char *before)
{
	if (!value)
		return plx_fail(EINVAL, "%s: given twice; give it once", given);
	return plx_fail(EINVAL, "%s %s: given before as %s; give one of them", given, value,
			before);
}

int eal_conf_set(struct plx_eal_conf *conf, enum eal_option_id id, const char *value,
		 const char *given)
{
	const char *origin;
	int rc = value ? plx_option_check_text(given, value) : 0;

	if (rc)
		return rc;
	if (conf->origin[id])
		return fail_twice(given, value, conf->origin[id]);
	origin = eal_conf_own(conf, given);
	if (!origin)
		return -ENOMEM;
	if (id == OPT_LOG_LEVEL)
		return eal_conf_add_level(conf, value, origin);
	conf->origin[id] = origin;
	/* Between --lcores and --coremask, the user's choice replaces the program's. */
	if (id == OPT_LCORES && !conf->origin[OPT_COREMASK])
		conf->coremask = NULL;
	if (id == OPT_COREMASK && !conf->origin[OPT_LCORES])
		conf->lcores = NULL;
	return plx_option_store(&plx_eal_options[id], given, value, eal_option_field(conf, id));
}

int eal_conf_check_pair(const struct plx_eal_conf *conf)
{
	if (!conf->lcores || !conf->coremask)
		return 0;
	return plx_fail(EINVAL, "%s %s and %s %s: give one of them, a list or a mask, not both",
			eal_conf_origin(conf, OPT_LCORES), conf->lcores,
			eal_conf_origin(conf, OPT_COREMASK), conf->coremask);
}

void plx_eal_conf_fini(struct plx_eal_conf *conf)
{
	for (size_t i = 0; i < conf->owned_count; i++)
		free(conf->owned[i]);
	*conf = (struct plx_eal_conf){0};
}
