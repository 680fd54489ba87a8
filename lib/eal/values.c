/* SPDX-License-Identifier: BSD-3-Clause */
/* The option table: convert texts to numbers of struct plx_eal_conf. Checks that need topology or
 * lcores. */
#include "eal_priv.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MB             (UINT64_C(1) << 20)
#define NODE_BYTES_MAX (UINT64_C(1) << 50)

static_assert(sizeof(enum plx_huge) == sizeof(unsigned) &&
		      sizeof(enum plx_numa) == sizeof(unsigned),
	      "plx_option_choice stores both");

const char *const eal_numa_words[] = {
	[PLX_NUMA_PREFER] = "prefer", [PLX_NUMA_STRICT] = "strict", [PLX_NUMA_ANY] = "any", NULL};

static int parse_flag(const char *given, const char *text, const char *no, const char *yes,
		      bool *out)
{
	const char *const words[] = {no, yes, NULL};
	unsigned value = *out;
	int rc = plx_option_choice(given, text, words, &value);

	*out = value == 1;
	return rc;
}

static int parse_number(const char *given, const char *text, uint64_t min, uint64_t max,
			uint32_t *out)
{
	uint64_t number;
	int rc = plx_parse_uint(given, text, min, max, &number);

	if (rc == 0)
		*out = (uint32_t)number;
	return rc;
}

/* The same for a number, or a word that stands for `other`. */
static int parse_number_or(const char *given, const char *text, const char *word, uint32_t other,
			   uint64_t max, uint32_t *out)
{
	if (strcmp(text, word) == 0) {
		*out = other;
		return 0;
	}
	if (parse_number(given, text, 1, max, out) != 0)
		return plx_fail(EINVAL, "%s, or %s", plx_error(), word);
	return 0;
}

/* Lcores ----------------------------------------------------------------------------------- */

static int parse_main_lcore(const char *given, const char *text, void *field)
{
	return parse_number(given, text, 0, PLX_LCORE_MAX - 1, field);
}

static int parse_lane_slots(const char *given, const char *text, void *field)
{
	uint32_t *slots = field;
	int rc = parse_number(given, text, PLX_LANE_SLOTS_MIN, PLX_LANE_SLOTS_MAX, slots);

	if (rc == 0 && *slots & (*slots - 1))
		return plx_fail(EINVAL, "%s %s: not a power of two; give one from %d to %d", given,
				text, PLX_LANE_SLOTS_MIN, PLX_LANE_SLOTS_MAX);
	return rc;
}

int eal_check_main_lcore(const struct plx_eal_conf *conf, const struct plx_lcore_map *map,
			 uint32_t *lcore_out)
{
	struct plx_cpuset ids = {0};
	char allowed[128];

	*lcore_out = map->places[0].lcore_id;
	if (!conf->main_lcore && !conf->origin[OPT_MAIN_LCORE])
		return 0;
	for (uint32_t i = 0; i < map->count; i++)
		plx_cpuset_add(&ids, map->places[i].lcore_id);
	if (!plx_cpuset_has(&ids, conf->main_lcore))
		return plx_fail(EINVAL,
				"%s %u: not one of the lcores (%s); give one of them, or add it to "
				"-l",
				eal_conf_origin(conf, OPT_MAIN_LCORE), conf->main_lcore,
				plx_cpuset_format(&ids, allowed, sizeof(allowed)));
	*lcore_out = conf->main_lcore;
	return 0;
}

/* Memory ----------------------------------------------------------------------------------- */

static int parse_huge(const char *given, const char *text, void *field)
{
	static const char *const words[] = {
		[PLX_HUGE_2M] = "2M", [PLX_HUGE_1G] = "1G", [PLX_HUGE_NONE] = "none", NULL};

	return plx_option_choice(given, text, words, field);
}

static int parse_numa(const char *given, const char *text, void *field)
{
	return plx_option_choice(given, text, eal_numa_words, field);
}

static int parse_no_dump(const char *given, const char *text, void *field)
{
	return parse_flag(given, text, "yes", "no", field);
}

static int parse_node_bytes(const char *given, const char *text, void *field)
{
	size_t *bytes = field;
	char what[256];
	uint64_t value;

	memset(bytes, 0, PLX_EAL_NODES_MAX * sizeof(*bytes));
	for (unsigned node = 0; text; node++) {
		size_t len = strcspn(text, ",");
		char amount[32] = ""; /* none if it is longer than any valid one */

		if (node == PLX_EAL_NODES_MAX)
			return plx_fail(EINVAL, "%s: more than %d NUMA nodes", given,
					PLX_EAL_NODES_MAX);
		snprintf(what, sizeof(what), "%s, node %u:", given, node);
		if (len < sizeof(amount))
			memcpy(amount, text, len);
		if (plx_parse_mib(what, amount, NODE_BYTES_MAX, &value) != 0)
			return -EINVAL;
		bytes[node] = value;
		text = text[len] ? text + len + 1 : NULL;
	}
	return 0;
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

int eal_check_memory(const struct plx_eal_conf *conf, const struct plx_topo *topo,
		     unsigned *count_out)
{
	const char *option = eal_conf_origin(conf, OPT_SOCKET_MEM);
	uint64_t total = 0;

	*count_out = 0;
	for (unsigned node = 0; node < PLX_EAL_NODES_MAX; node++) {
		if (!conf->node_bytes[node])
			continue;
		if (!node_exists(topo, node))
			return plx_fail(EINVAL,
					"%s: there is no NUMA node %u to take memory on; this host "
					"has %u, the first is node %d",
					option, node, plx_topo_node_count(topo),
					plx_topo_node_id(topo, 0));
		if (__builtin_add_overflow(total, conf->node_bytes[node], &total) ||
		    total > host_bytes())
			return plx_fail(EINVAL, "%s: more memory than this host has (%llu MB)",
					option, (unsigned long long)(host_bytes() / MB));
		*count_out = node + 1;
	}
	return 0;
}

/* Links ------------------------------------------------------------------------------------ */

static int parse_require_rdma(const char *given, const char *text, void *field)
{
	return parse_flag(given, text, "none", "rdma", field);
}

/* NOLINTBEGIN(misc-redundant-expression): they are equal by choice. */
static_assert(PLX_RECEIVE_BYTES_MIN == PLX_PARTIAL_BYTES_MIN &&
		      PLX_RECEIVE_BYTES_MAX == PLX_PARTIAL_BYTES_MAX,
	      "one parser serves both");
/* NOLINTEND(misc-redundant-expression) */

static int parse_size(const char *given, const char *text, void *field)
{
	return plx_parse_size(given, text, PLX_RECEIVE_BYTES_MIN, PLX_RECEIVE_BYTES_MAX, field);
}

static int parse_limit(const char *given, const char *text, void *field)
{
	return parse_number_or(given, text, "none", PLX_NO_LIMIT, PLX_NO_LIMIT - 1, field);
}

#define SELF_TEST_RATE_MAX 1000000000

static int parse_self_test_rate(const char *given, const char *text, void *field)
{
	return parse_number_or(given, text, "off", PLX_NONE, SELF_TEST_RATE_MAX, field);
}

static int parse_heartbeat_ns(const char *given, const char *text, void *field)
{
	struct plx_eal_conf *conf = plx_container_of(field, struct plx_eal_conf, heartbeat_ns);
	const char *colon = strchr(text, ':');
	char what[256], period[64];
	int rc;

	if (strcmp(text, "off") == 0) {
		conf->heartbeat_ns = conf->dead_after_ns = PLX_NEVER;
		return 0;
	}
	conf->dead_after_ns = 0;
	snprintf(period, sizeof(period), "%.*s", (int)strcspn(text, ":"), text);
	rc = plx_parse_duration(given, period, PLX_HEARTBEAT_NS_MIN, PLX_HEARTBEAT_NS_MAX,
				&conf->heartbeat_ns);
	if (rc)
		return plx_fail(EINVAL, "%s, or off", plx_error());
	if (!colon)
		return 0;
	snprintf(what, sizeof(what), "%s, silence", given);
	return plx_parse_duration(what, colon + 1, PLX_DEAD_AFTER_MIN * conf->heartbeat_ns,
				  PLX_DEAD_AFTER_NS_MAX, &conf->dead_after_ns);
}

static int parse_turn_max(const char *given, const char *text, void *field)
{
	return parse_number(given, text, 1, UINT32_MAX, field);
}

static int parse_turn_ns(const char *given, const char *text, void *field)
{
	return plx_parse_duration(given, text, PLX_TURN_NS_MIN, PLX_TURN_NS_MAX, field);
}

static int parse_dead_after_max_ns(const char *given, const char *text, void *field)
{
	return plx_parse_duration(given, text, PLX_DEAD_AFTER_MIN * PLX_HEARTBEAT_NS_MIN,
				  PLX_DEAD_AFTER_NS_MAX, field);
}

/* Process ---------------------------------------------------------------------------------- */

static int parse_keep_descriptors(const char *given, const char *text, void *field)
{
	return parse_flag(given, text, "raise", "keep", field);
}

/* The table ------------------------------------------------------------------------------- */

#define PARSE_STRING(field_) NULL
#define PARSE_LEVELS(field_) NULL
#define PARSE_FLAG(field_)   NULL
#define PARSE_SIZE(field_)   parse_size
#define PARSE_LIMIT(field_)  parse_limit
#define PARSE_VALUE(field_)  parse_##field_

#define AS_OPTION(kind_, id_, letter_, name_, placeholder_, field_, key_, group_, help_) \
	[OPT_##id_] = {                                                                  \
		.kind = EAL_##kind_,                                                     \
		.offset = offsetof(struct plx_eal_conf, field_),                         \
		.parse = PARSE_##kind_(field_),                                          \
		.key = (key_),                                                           \
		.group = #group_,                                                        \
	},

const struct eal_option eal_options[OPT_COUNT] = {EAL_OPTIONS(AS_OPTION)};
