/* SPDX-License-Identifier: BSD-3-Clause */
/* What the strings of the options mean, each checked before anything is started. */
#include "eal_priv.h"
#include "plx_fabric.h"
#include "plx_rpc.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MB (UINT64_C(1) << 20)

/* The index of the option's value among count words; 0 where it is not set. */
static int word_value(const struct plx_eal_conf *conf, enum eal_option_id id,
		      const char *const *words, size_t count, const char *allowed)
{
	const char *text = eal_conf_get(conf, id);
	const char *nearest;

	if (!text)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (strcmp(text, words[i]) == 0)
			return (int)i;
	nearest = plx_suggest(text, words, count);
	return plx_fail(EINVAL, "%s %s: unknown value%s%s; give %s", eal_conf_origin(conf, id),
			text, nearest ? ", nearest is " : "", nearest ? nearest : "", allowed);
}

int eal_huge_value(const struct plx_eal_conf *conf, enum plx_huge *huge_out)
{
	static const char *const words[] = {
		[PLX_HUGE_2M] = "2M", [PLX_HUGE_1G] = "1G", [PLX_HUGE_NONE] = "none"};
	static_assert(PLX_HUGE_2M == 0, "the default comes first");
	int value = word_value(conf, OPT_HUGE, words, PLX_ARRAY_LEN(words), "2M, 1G or none");

	if (value < 0)
		return value;
	*huge_out = (enum plx_huge)value;
	return 0;
}

int eal_numa_value(const struct plx_eal_conf *conf, enum plx_numa *numa_out)
{
	static const char *const words[] = {
		[PLX_NUMA_PREFER] = "prefer", [PLX_NUMA_STRICT] = "strict", [PLX_NUMA_ANY] = "any"};
	static_assert(PLX_NUMA_PREFER == 0, "the default comes first");
	int value = word_value(conf, OPT_NUMA, words, PLX_ARRAY_LEN(words),
			       "strict, prefer or any");

	if (value < 0)
		return value;
	*numa_out = (enum plx_numa)value;
	return 0;
}

int eal_dump_memory_value(const struct plx_eal_conf *conf, bool *dump_out)
{
	static const char *const words[] = {"yes", "no"};
	int value = word_value(conf, OPT_DUMP_MEMORY, words, PLX_ARRAY_LEN(words), "yes or no");

	if (value < 0)
		return value;
	*dump_out = value == 0;
	return 0;
}

/* Links ------------------------------------------------------------------------------------ */

int eal_require_value(const struct plx_eal_conf *conf, bool *rdma_out)
{
	static const char *const words[] = {"none", "rdma"};
	int value = word_value(conf, OPT_REQUIRE, words, PLX_ARRAY_LEN(words), "rdma or none");

	if (value < 0)
		return value;
	*rdma_out = value == 1;
	return 0;
}

int eal_receive_mem_value(const struct plx_eal_conf *conf, uint64_t *bytes_out)
{
	*bytes_out = PLX_RECEIVE_BYTES_DEFAULT;
	if (!conf->receive_mem)
		return 0;
	return plx_parse_size(eal_conf_origin(conf, OPT_RECEIVE_MEM), conf->receive_mem,
			      PLX_RECEIVE_BYTES_MIN, PLX_RECEIVE_BYTES_MAX, bytes_out);
}

int eal_partial_mem_value(const struct plx_eal_conf *conf, uint64_t *bytes_out)
{
	*bytes_out = PLX_PARTIAL_BYTES_DEFAULT;
	if (!conf->partial_mem)
		return 0;
	return plx_parse_size(eal_conf_origin(conf, OPT_PARTIAL_MEM), conf->partial_mem,
			      PLX_PARTIAL_BYTES_MIN, PLX_PARTIAL_BYTES_MAX, bytes_out);
}

static int parse_limit(const struct plx_eal_conf *conf, enum eal_option_id id, const char *text,
		       uint32_t *out)
{
	uint64_t limit;

	*out = !text ? 0 : PLX_NO_LIMIT;
	if (!text || strcmp(text, "none") == 0)
		return 0;
	if (plx_parse_uint(eal_conf_origin(conf, id), text, 1, PLX_NO_LIMIT - 1, &limit) != 0)
		return plx_fail(EINVAL, "%s, or none", plx_error());
	*out = (uint32_t)limit;
	return 0;
}

int eal_admission_value(const struct plx_eal_conf *conf, struct plx_admission *out)
{
	int rc = parse_limit(conf, OPT_LINKS_MAX, conf->links_max, &out->links_max);

	rc = rc ? rc
		: parse_limit(conf, OPT_LINKS_PER_HOST, conf->links_per_host,
			      &out->links_per_host_max);
	rc = rc ? rc
		: parse_limit(conf, OPT_ACCEPTS_PER_S, conf->accepts_per_s, &out->accepts_per_s);
	return rc ? rc
		  : parse_limit(conf, OPT_HANDSHAKES_MAX, conf->handshakes_max,
				&out->handshakes_max);
}

#define SELF_TEST_RATE_MAX 1000000000

int eal_self_test_value(const struct plx_eal_conf *conf, uint32_t *rate_out, bool *remote_out)
{
	const char *text = conf->self_test, *origin = eal_conf_origin(conf, OPT_SELF_TEST);
	uint64_t rate = text ? PLX_NONE : PLX_RPC_SELF_TEST_RATE_DEFAULT;

	if (text && strcmp(text, "off") != 0 &&
	    plx_parse_uint(origin, text, 1, SELF_TEST_RATE_MAX, &rate) != 0)
		return plx_fail(EINVAL, "%s, or off", plx_error());
	*rate_out = (uint32_t)rate;
	*remote_out = text && rate != PLX_NONE;
	return 0;
}

int eal_heartbeat_value(const struct plx_eal_conf *conf, uint64_t *heartbeat_ns_out,
			uint64_t *dead_after_ns_out)
{
	const char *text = conf->heartbeat, *origin = eal_conf_origin(conf, OPT_HEARTBEAT);
	const char *colon = text ? strchr(text, ':') : NULL;
	uint64_t period_ns = PLX_HEARTBEAT_NS_DEFAULT, dead_ns = 0;
	char what[128], *period;
	int rc = 0;

	if (text && strcmp(text, "off") == 0) {
		*heartbeat_ns_out = *dead_after_ns_out = PLX_NEVER;
		return 0;
	}
	if (text) {
		period = strndup(text, colon ? (size_t)(colon - text) : strlen(text));
		if (!period)
			return plx_fail(ENOMEM, "out of memory");
		rc = plx_parse_duration(origin, period, PLX_HEARTBEAT_NS_MIN, PLX_HEARTBEAT_NS_MAX,
					&period_ns);
		free(period);
	}
	if (rc == -EINVAL) {
		char error[256];

		snprintf(error, sizeof(error), "%s", plx_error());
		return plx_fail(EINVAL, "%s, or off", error);
	}
	snprintf(what, sizeof(what), "%s, silence", origin);
	if (rc == 0 && colon)
		rc = plx_parse_duration(what, colon + 1, PLX_DEAD_AFTER_MIN * period_ns,
					PLX_DEAD_AFTER_NS_MAX, &dead_ns);
	*heartbeat_ns_out = period_ns;
	*dead_after_ns_out = dead_ns ? dead_ns : PLX_DEAD_AFTER_DEFAULT * period_ns;
	return rc;
}

/* Memory ----------------------------------------------------------------------------------- */

/* "64", "512K", "1G" up to end. Return: whether it is one; what is too large gives UINT64_MAX. */
static bool parse_amount(const char *at, const char *end, uint64_t *bytes_out)
{
	uint64_t value = 0, unit = MB;

	if (at == end || !isdigit((unsigned char)*at))
		return false;
	for (; at < end && isdigit((unsigned char)*at); at++) {
		if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
			value = UINT64_MAX;
	}
	if (at < end) {
		static const char letters[] = "KMG";
		const char *letter = memchr(letters, toupper((unsigned char)*at), 3);

		if (!letter || at + 1 < end)
			return false;
		unit = UINT64_C(1024) << (10 * (letter - letters));
	}
	if (__builtin_mul_overflow(value, unit, bytes_out))
		*bytes_out = UINT64_MAX;
	return true;
}

static bool node_exists(const struct plx_topo *topo, unsigned node)
{
	for (unsigned i = 0; i < plx_topo_node_count(topo); i++)
		if (plx_topo_node_id(topo, i) == (int)node)
			return true;
	return false;
}

static uint64_t host_bytes(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* One of the amounts, for this node; total grows by it. */
static int check_amount(const struct plx_eal_conf *conf, const struct plx_topo *topo, unsigned node,
			uint64_t bytes, uint64_t *total)
{
	const char *option = eal_conf_origin(conf, OPT_SOCKET_MEM), *text = conf->socket_mem;

	if (bytes && !node_exists(topo, node))
		return plx_fail(EINVAL,
				"%s %s: there is no NUMA node %u to take memory on; this host has "
				"%u, the first is node %d",
				option, text, node, plx_topo_node_count(topo),
				plx_topo_node_id(topo, 0));
	if (__builtin_add_overflow(*total, bytes, total) || *total > host_bytes())
		return plx_fail(EINVAL, "%s %s: more memory than this host has (%llu MB)", option,
				text, (unsigned long long)(host_bytes() / MB));
	return 0;
}

int eal_socket_mem_value(const struct plx_eal_conf *conf, const struct plx_topo *topo,
			 size_t bytes[PLX_EAL_NODES_MAX], unsigned *count_out)
{
	const char *option = eal_conf_origin(conf, OPT_SOCKET_MEM), *at = conf->socket_mem;
	uint64_t total = 0;
	unsigned node = 0;

	for (; at; node++) {
		const char *end = at + strcspn(at, ",");
		uint64_t amount;
		int rc;

		if (node == PLX_EAL_NODES_MAX)
			return plx_fail(EINVAL, "%s %s: more than %d NUMA nodes", option,
					conf->socket_mem, PLX_EAL_NODES_MAX);
		if (!parse_amount(at, end, &amount))
			return plx_fail(EINVAL,
					"%s %s: '%.*s' is no amount of memory; give MB per NUMA "
					"node, such as 64 or 64,64, or with a unit, K, M or G: 1G",
					option, conf->socket_mem, (int)(end - at), at);
		rc = check_amount(conf, topo, node, amount, &total);
		if (rc)
			return rc;
		bytes[node] = amount;
		at = *end ? end + 1 : NULL;
	}
	*count_out = node;
	return 0;
}

/* The main lcore --------------------------------------------------------------------------- */

int eal_main_lcore_value(const struct plx_eal_conf *conf, const struct plx_lcore_map *map,
			 uint32_t *lcore_out)
{
	const char *option = eal_conf_origin(conf, OPT_MAIN_LCORE), *text = conf->main_lcore;
	struct plx_cpuset ids = {0};
	char allowed[128], *end;
	unsigned long id;

	*lcore_out = map->places[0].lcore_id;
	if (!text)
		return 0;
	for (uint32_t i = 0; i < map->count; i++)
		plx_cpuset_add(&ids, map->places[i].lcore_id);
	plx_cpuset_format(&ids, allowed, sizeof(allowed));
	errno = 0;
	id = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || errno)
		return plx_fail(EINVAL, "%s %s: not an lcore id; give one of the lcores (%s)",
				option, text, allowed);
	if (id >= PLX_CPU_MAX || !plx_cpuset_has(&ids, (unsigned)id))
		return plx_fail(EINVAL,
				"%s %s: not one of the lcores (%s); give one of them, or add it to "
				"-l",
				option, text, allowed);
	*lcore_out = (uint32_t)id;
	return 0;
}
