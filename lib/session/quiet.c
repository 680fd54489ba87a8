/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of this host where nobody listens. Any number of an lcore's sessions may wait for a
 * process that is not up, and must find it soon. So one of them, the leader, retries for all that
 * wait for its address; once somebody answers there, the others try too. */
#include "plx_base.h"
#include "session.h"

#define SPREAD_NS (5 * PLX_NS_PER_MS) /* of the attempts of those that followed */
#define BUCKETS   16

/* By lcore and a hash of the address; a leader comes after those that follow it. Not in the
 * thread's memory: another one ends the sessions of an lcore that has ended. */
static LIST_HEAD(bucket, plx_connector) buckets[PLX_LCORE_MAX][BUCKETS];

static struct bucket *bucket_of(const struct plx_connector *connector)
{
	static const struct plx_siphash_key key;
	uint64_t hash = plx_siphash(&key, connector->address, strlen(connector->address));

	return &buckets[connector->quiet_lcore][hash % BUCKETS];
}

static bool is_same(const struct plx_connector *one, const struct plx_connector *other)
{
	return one != other && strcmp(one->address, other->address) == 0 &&
	       strcmp(one->provider, other->provider) == 0;
}

static void take_out(struct plx_connector *connector)
{
	LIST_REMOVE(connector, of_quiet);
	connector->quiet = PLX_QUIET_NOT;
}

bool quiet_join(struct plx_connector *connector)
{
	struct plx_connector *each;

	if (connector->quiet != PLX_QUIET_NOT)
		return connector->quiet == PLX_QUIET_LEADS;
	connector->quiet_lcore = plx_lcore_id();
	connector->quiet = PLX_QUIET_LEADS;
	LIST_FOREACH (each, bucket_of(connector), of_quiet) {
		if (is_same(each, connector)) {
			connector->quiet = PLX_QUIET_FOLLOWS;
			break;
		}
	}
	LIST_INSERT_HEAD(bucket_of(connector), connector, of_quiet);
	return connector->quiet == PLX_QUIET_LEADS;
}

void quiet_leave(struct plx_connector *connector, bool answered)
{
	bool led = connector->quiet == PLX_QUIET_LEADS;
	struct plx_connector *each, *next;

	if (connector->quiet == PLX_QUIET_NOT)
		return;
	take_out(connector);
	if (!led)
		return;
	LIST_FOREACH_SAFE (each, bucket_of(connector), of_quiet, next) {
		if (!is_same(each, connector))
			continue;
		plx_timer_start(&each->base.timer,
				plx_backoff_within_ns(&each->backoff, SPREAD_NS));
		if (answered) {
			take_out(each);
		} else {
			each->quiet = PLX_QUIET_LEADS;
			break;
		}
	}
}
