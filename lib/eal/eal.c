/* SPDX-License-Identifier: BSD-3-Clause */
/* Start all parts in order, and stop them in reverse order. */
#include "eal_priv.h"
#include "eal_self_test.h"
#include "lcore_internal.h"
#include "plx_fabric.h"
#include "plx_fabric_driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define DRAIN_NS (500 * PLX_NS_PER_MS)

/* The state of plx_eal_init. There is one set of lcores per process. */
static struct eal {
	struct plx_topo *topo; /* NULL: not initialized */
	struct plx_lcore_map map;
	struct eal_claims claims;
	uint32_t main_lcore;
	struct plx_idle_conf idle[PLX_LCORE_MAX]; /* by place of the map */
	struct plx_idle_conf adopted_idle;
	char *provider;           /* NULL: the default */
	char *tcp;                /* NULL: none */
	struct plx_eal_conf conf; /* only its numbers are used */
	unsigned node_count;      /* entries of node_bytes in use */
} eal;

static const struct eal_self_test *self_test; /* NULL: not linked */

void eal_register_self_test(const struct eal_self_test *service)
{
	self_test = service;
}

/* Checks ----------------------------------------------------------------------------------- */

static int set_log_levels(const struct plx_eal_conf *conf)
{
	for (uint32_t i = 0; i < conf->log_level_count; i++) {
		const char *origin = conf->level_origins[i];
		int rc = plx_log_configure(origin ? origin : plx_eal_options[OPT_LOG_LEVEL].name,
					   conf->log_levels[i]);

		if (rc)
			return rc;
	}
	return 0;
}

static uint64_t dead_after_ns(const struct plx_eal_conf *conf)
{
	uint64_t heartbeat_ns = conf->heartbeat_ns ?: PLX_HEARTBEAT_NS_DEFAULT;

	if (heartbeat_ns == PLX_NEVER)
		return PLX_NEVER;
	return conf->dead_after_ns ?: PLX_DEAD_AFTER_DEFAULT * heartbeat_ns;
}

static int check_silence(const struct plx_eal_conf *conf)
{
	uint64_t max_ns = conf->dead_after_max_ns, own_ns = dead_after_ns(conf);

	if (!max_ns || own_ns == PLX_NEVER || max_ns >= own_ns)
		return 0;
	return plx_fail(EINVAL, "%s %llu ms: give at least the silence of %s, %llu ms",
			eal_conf_origin(conf, OPT_DEAD_AFTER_MAX),
			(unsigned long long)(max_ns / PLX_NS_PER_MS),
			eal_conf_origin(conf, OPT_HEARTBEAT),
			(unsigned long long)(own_ns / PLX_NS_PER_MS));
}

static int check_links(const struct plx_eal_conf *conf)
{
	int rc = check_silence(conf);

	if (rc == 0 && conf->provider)
		rc = plx_fabric_check_provider(plx_drivers, eal_conf_origin(conf, OPT_PROVIDER),
					       conf->provider, conf->require_rdma);
	rc = rc ? rc : plx_fabric_check_admission(&conf->admission);
	if (rc == 0 && conf->tcp)
		rc = plx_fabric_check_tcp(plx_drivers, eal_conf_origin(conf, OPT_TCP), conf->tcp);
	if (rc)
		return rc;
	eal.provider = conf->provider ? strdup(conf->provider) : NULL;
	eal.tcp = conf->tcp ? strdup(conf->tcp) : NULL;
	if ((conf->provider && !eal.provider) || (conf->tcp && !eal.tcp))
		return plx_fail(ENOMEM, "out of memory");
	return 0;
}

/* A program that does not look at them would start instead of printing the help. */
static int check_questions(const struct plx_eal_conf *conf)
{
	if (!conf->show_help && !conf->show_version)
		return 0;
	return plx_fail(EINVAL, "%s: not handled by this program, which must print %s and end",
			eal_conf_origin(conf, conf->show_help ? OPT_HELP : OPT_VERSION),
			conf->show_help ? "plx_eal_options_help()" : "plx_version()");
}

/* Find every error before anything starts. */
static int check_all(const struct plx_eal_conf *conf)
{
	return check_links(conf) ?: eal_check_memory(conf, eal.topo, &eal.node_count)
	    ?: eal_place(conf, NULL, eal.topo, !conf->dry_run, &eal.map, &eal.claims)
	    ?: eal_check_main_lcore(conf, &eal.map, &eal.main_lcore)
	    ?: eal_idle_value(conf, &eal.map, &eal.claims, eal.idle, &eal.adopted_idle);
}

static void forget_all(void)
{
	eal_claims_drop(&eal.claims);
	plx_lcore_map_fini(&eal.map);
	plx_topo_close(eal.topo);
	free(eal.provider);
	free(eal.tcp);
	eal = (struct eal){0};
}

/* Each link takes a descriptor. If a filter of system calls forbids this, the limit stays, and the
 * error of a link names it. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (eal.conf.keep_descriptors || getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int start_memory(void)
{
	const struct plx_mem_conf conf = {
		.huge = eal.conf.huge,
		.numa = eal.conf.numa,
		.node_bytes = eal.node_count ? eal.conf.node_bytes : NULL,
		.node_count = eal.node_count,
	};

	plx_dump_leave_out(eal.conf.no_dump);
	return plx_mem_init(&conf);
}

static int start_lcores(void)
{
	const struct plx_lcore_conf conf = {
		.topo = eal.topo,
		.map = &eal.map,
		.main_lcore = eal.main_lcore,
		.lane_slots = eal.conf.lane_slots,
		.adopted_idle = eal.adopted_idle,
	};

	int rc = plx_lcores_init(&conf);

	/* The policies were checked, so setting them cannot fail. */
	for (uint32_t i = 0; rc == 0 && i < eal.map.count; i++)
		plx_idle_set(eal.map.places[i].lcore_id, &eal.idle[i]);
	return rc;
}

static int start_fabric(void)
{
	const struct plx_fabric_conf conf = {
		.drivers = plx_drivers,
		.provider = eal.provider,
		.tcp = eal.tcp,
		.require_rdma = eal.conf.require_rdma,
		.receive_bytes = eal.conf.receive_bytes,
		.partial_bytes = eal.conf.partial_bytes,
		.turn_ns = eal.conf.turn_ns,
		.turn_max = eal.conf.turn_max,
		.admission = eal.conf.admission,
		.heartbeat_ns = eal.conf.heartbeat_ns,
		.dead_after_ns = eal.conf.dead_after_ns,
		.dead_after_max_ns = eal.conf.dead_after_max_ns,
	};

	return plx_fabric_init(&conf);
}

/* An explicit self-test rate also serves other hosts. */
static bool is_self_test_remote(void)
{
	return eal.conf.self_test_rate && eal.conf.self_test_rate != PLX_NONE;
}

static int start_self_test(void)
{
	return self_test ? self_test->start(eal.conf.self_test_rate, is_self_test_remote()) : 0;
}

int plx_eal_init(struct plx_eal_conf *conf)
{
	int rc;

	if (plx_is_forked())
		return plx_fail_forked("plx_eal_init");
	if (eal.topo)
		return plx_fail(EALREADY, "Pollux is up already; call plx_eal_fini first");
	plx_hold_stdio();
	plx_clock_init();
	rc = check_questions(conf) ?: plx_eal_conf_file(conf) ?: set_log_levels(conf)
	  ?: plx_topo_open(NULL, &eal.topo) ?: check_all(conf);
	if (rc)
		goto forget;
	eal.conf = *conf;
	if (conf->dry_run)
		return 0;

	raise_descriptors();
	rc = start_memory();
	if (rc)
		goto forget;
	rc = start_fabric();
	if (rc)
		goto stop_memory;
	rc = start_lcores();
	if (rc)
		goto stop_fabric;
	rc = start_self_test();
	if (rc == 0)
		return 0;
	plx_lcores_fini(PLX_CLOSE_NS);
stop_fabric:
	plx_fabric_fini();
stop_memory:
	plx_mem_fini();
forget:
	forget_all();
	return rc;
}

int plx_eal_fini(void)
{
	int rc;

	if (!eal.topo)
		return 0;
	if (!eal.conf.dry_run && !plx_is_forked()) {
		uint64_t end_ns = plx_now_ns() + PLX_CLOSE_NS;

		rc = plx_lcore_count() ? plx_check_may_end("plx_eal_fini") : 0;
		if (rc)
			return rc;
		lcore_allow_adopting(false);
		plx_stop();
		if (plx_lcore_id() != PLX_LCORE_NONE) /* otherwise the main lcore has left */
			plx_fabric_drain(DRAIN_NS);   /* let peers see an orderly close */
		rc = plx_lcore_join_all(plx_time_since(plx_now_ns(), end_ns), NULL)
			   ?: lcore_wait_adopted("plx_eal_fini",
						 plx_time_since(plx_now_ns(), end_ns));
		if (rc) {
			lcore_allow_adopting(true);
			return rc;
		}
		if (self_test)
			self_test->stop();
		plx_fabric_fini();
		rc = plx_lcores_fini(PLX_CLOSE_NS); /* no lcore has anything left to do */
		if (rc)
			return rc;
		plx_mem_fini();
	}
	forget_all();
	return 0;
}

const struct plx_topo *plx_eal_topo(void)
{
	return eal.topo;
}

static void add_lcores(struct plx_text *text)
{
	for (uint32_t i = 0; i < eal.map.count; i++) {
		const struct plx_lcore_place *place = &eal.map.places[i];
		char cpus[128], policy[64];

		plx_text_add(text, "lcore %u: CPU %s, NUMA node %d%s, idle %s\n", place->lcore_id,
			     plx_cpuset_format(&place->cpus, cpus, sizeof(cpus)),
			     plx_topo_cpu_node(eal.topo, plx_cpuset_next(&place->cpus, 0)),
			     place->lcore_id == eal.main_lcore ? ", main" : "",
			     plx_idle_format(&eal.idle[i], policy, sizeof(policy)));
	}
	if (eal.claims.why[0])
		plx_text_add(text, "%s\n", eal.claims.why);
}

static void add_memory(struct plx_text *text)
{
	static const char *const huge[] = {[PLX_HUGE_2M] = "2M pages",
					   [PLX_HUGE_1G] = "1G pages",
					   [PLX_HUGE_NONE] = "ordinary pages"};
	char got[256];

	plx_text_add(text, "memory: %s, numa %s", huge[eal.conf.huge],
		     eal_numa_words[eal.conf.numa]);
	for (unsigned i = 0; i < eal.node_count; i++)
		plx_text_add(text, ", %zu KiB at start on node %u", eal.conf.node_bytes[i] / 1024,
			     i);
	plx_text_add(text, "%s%s\n", eal.node_count ? "" : ", taken when needed",
		     eal.conf.no_dump ? ", not in core dumps" : "");
	if (!eal.conf.dry_run)
		plx_text_add(text, "memory taken: %s\n", plx_mem_describe(got, sizeof(got)));
}

static void add_links(struct plx_text *text)
{
	const struct plx_eal_conf *conf = &eal.conf;
	uint64_t heartbeat_ns = conf->heartbeat_ns ?: PLX_HEARTBEAT_NS_DEFAULT;
	uint64_t receive_mib = (conf->receive_bytes ?: PLX_RECEIVE_BYTES_DEFAULT) >> 20;

	plx_text_add(text, "links: provider %s, ", eal.provider ? eal.provider : "auto");
	if (eal.tcp)
		plx_text_add(text, "tcp %s, ", eal.tcp);
	plx_text_add(text, "%sreceive buffers %llu MiB, ",
		     conf->require_rdma ? "RDMA required, " : "", (unsigned long long)receive_mib);
	if (heartbeat_ns == PLX_NEVER)
		plx_text_add(text, "no heartbeats\n");
	else
		plx_text_add(text, "heartbeat %llu ms, dead after %llu ms\n",
			     (unsigned long long)(heartbeat_ns / PLX_NS_PER_MS),
			     (unsigned long long)(dead_after_ns(conf) / PLX_NS_PER_MS));
	if (conf->self_test_rate == PLX_NONE)
		plx_text_add(text, "self-test: off\n");
	else
		plx_text_add(text, "self-test: up to %u calls a second on each lcore, of %s\n",
			     conf->self_test_rate ?: EAL_SELF_TEST_RATE_DEFAULT,
			     is_self_test_remote() ? "any host" : "this host alone");
}

const char *plx_eal_describe(char *out, size_t size)
{
	struct plx_text text = {.out = out, .size = size};

	if (size)
		out[0] = '\0';
	if (!eal.topo) {
		plx_text_add(&text, "Pollux is not up\n");
		return out;
	}
	add_lcores(&text);
	add_memory(&text);
	add_links(&text);
	return out;
}
