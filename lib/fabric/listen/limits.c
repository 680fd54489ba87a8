/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits on connections, and the texts of refusals by them. */
#include "admission.h"

#include <stdio.h>

#define HOST_PART 4 /* of the links is the most that one address has */

static struct plx_admission defaults;

/* Only a limit that was asked for can be too high: a default is lowered. */
static int check(const struct plx_admission *asked, const struct plx_admission *otherwise,
		 struct plx_admission *out)
{
	struct plx_admission limits = {
		.links_max = asked->links_max ?: otherwise->links_max,
		.links_per_host_max = asked->links_per_host_max ?: otherwise->links_per_host_max,
		.accepts_per_s = asked->accepts_per_s ?: otherwise->accepts_per_s,
		.handshakes_max = asked->handshakes_max ?: otherwise->handshakes_max,
	};
	uint32_t part = limits.links_max == PLX_NO_LIMIT
			      ? PLX_NO_LIMIT
			      : (limits.links_max + HOST_PART - 1) / HOST_PART;

	if (!limits.links_per_host_max)
		limits.links_per_host_max = part;
	if (!asked->links_per_host_max && limits.links_per_host_max != PLX_NO_LIMIT)
		limits.links_per_host_max = (uint32_t)lesser(limits.links_per_host_max, part);
	if (limits.links_per_host_max > part && limits.links_per_host_max != PLX_NO_LIMIT)
		return plx_fail(EINVAL,
				"links_per_host_max %u (--links-per-host): one address may have a "
				"quarter of links_max %u (--links-max) at most; give 1 to %u, or "
				"none for no limit per address",
				limits.links_per_host_max, limits.links_max, part);
	*out = limits;
	return 0;
}

static const struct plx_admission built_in = {
	.links_max = 4096,
	.accepts_per_s = 1000,
	.handshakes_max = 256,
};

int plx_fabric_check_admission(const struct plx_admission *limits)
{
	struct plx_admission checked;

	return check(limits, &built_in, &checked);
}

int admission_init_defaults(const struct plx_admission *conf)
{
	return check(conf, &built_in, &defaults);
}

int admission_check(const struct plx_admission *asked, struct plx_admission *out)
{
	return check(asked, &defaults, out);
}

/* Texts ---------------------------------------------------------------------------------------- */

static void text_of(struct admission *admission, enum admission_cause cause,
		    const struct origin *origin, char *out, size_t size)
{
	const struct plx_admission *limits = &admission->limits;
	const struct {
		enum origin_share share;
		uint32_t limit;
		const char *before, *after;
	} texts[] =
		{
			[ADMISSION_LINKS] = {ORIGIN_LINKS, limits->links_max, "this listener has ",
					     " links, as many as it may (--links-max "},
			[ADMISSION_RATE] =
				{ORIGIN_WAITING, limits->accepts_per_s, "",
				 " connections wait for their turn already (--accepts-per-s "},
			[ADMISSION_HANDSHAKES] =
				{ORIGIN_HALF_OPEN, limits->handshakes_max, "",
				 " connections are being opened, as many as may be at a "
				 "time (--handshakes-max "},
		},
	  *text = &texts[cause == ADMISSION_EVICTED ? ADMISSION_HANDSHAKES : cause];
	uint32_t count = admission->origins.root.shares[text->share];
	const struct origin *most = origin_most(&admission->origins, text->share);
	uint32_t own_max = limits->links_per_host_max;
	char name[ORIGIN_TEXT_BYTES] = "nobody";

	if (cause == ADMISSION_HOST) {
		if (origin->shares[ORIGIN_LINKS] < own_max && origin->parent->parent) {
			origin = origin->parent;
			own_max *= NETWORK_TIMES;
		}
		snprintf(out, size,
			 "%s has %u links here, as many as it may (--links-per-host %u%s)",
			 origin_key_text(&origin->key, name), origin->shares[ORIGIN_LINKS], own_max,
			 limits->links_max == PLX_NO_LIMIT ? ""
							   : "; at most a quarter of --links-max");
		return;
	}
	if (text->share == ORIGIN_HALF_OPEN)
		count -= admission->closing;
	if (most)
		origin_key_text(&most->key, name);
	snprintf(out, size, "%s%u%s%u); %s has most of them, %u", text->before, count, text->after,
		 text->limit, name, most ? most->shares[text->share] : 0);
}

void admission_text(struct admission *admission, enum admission_cause cause,
		    const struct in6_addr *key, char *out, size_t size)
{
	struct origin *origin;

	snprintf(out, size, "out of memory");
	if (cause == ADMISSION_NONE)
		return;
	pthread_mutex_lock(&admission->lock);
	origin = origin_find(&admission->origins, key);
	if (origin) {
		text_of(admission, cause, origin, out, size);
		origin_release(&admission->origins, origin);
	}
	pthread_mutex_unlock(&admission->lock);
}
