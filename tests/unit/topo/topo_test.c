/* SPDX-License-Identifier: BSD-3-Clause */
#include "base_internal.h"
#include "mem/child.h"
#include "plx_topo.h"

#include <hwloc.h>
#include <sched.h>

static void assert_cpus(const struct plx_cpuset *set, const char *expected)
{
	char out[128];

	assert_string_equal(plx_cpuset_format(set, out, sizeof(out)), expected);
}

static struct plx_topo *open_topo(const char *source)
{
	struct plx_topo *topo;

	assert_works(plx_topo_open(source, &topo));
	return topo;
}

/* Other hosts ------------------------------------------------------------------------------ */

/* Append the CPUs that belong together, each group once. */
static void add_groups(const struct plx_topo *topo, struct plx_text *text,
		       int (*group_of)(const struct plx_topo *topo, unsigned cpu))
{
	PLX_CPUSET_FOREACH (cpu, plx_topo_cpus(topo)) {
		struct plx_cpuset group = {{0}};
		char cpus[64];

		PLX_CPUSET_FOREACH (other, plx_topo_cpus(topo)) {
			if (group_of(topo, other) == group_of(topo, cpu))
				plx_cpuset_add(&group, other);
		}
		if (plx_cpuset_next(&group, 0) == cpu)
			plx_text_add(text, " %s", plx_cpuset_format(&group, cpus, sizeof(cpus)));
	}
}

/* Its nodes in order, the CPUs nearest to one node, cores and packages. Valid until the next call
 * but one. */
static const char *describe(const struct plx_topo *topo)
{
	static char texts[2][1024];
	static unsigned calls;
	struct plx_text text = {.out = texts[calls++ % 2], .size = sizeof(texts[0])};

	plx_text_add(&text, "nodes");
	for (unsigned i = 0; i < plx_topo_node_count(topo); i++) {
		int id = plx_topo_node_id(topo, i);
		struct plx_cpuset cpus = plx_topo_node_cpus(topo, id);
		char list[64];

		plx_text_add(&text, " %d:%s", id, plx_cpuset_format(&cpus, list, sizeof(list)));
	}
	plx_text_add(&text, ", near");
	add_groups(topo, &text, plx_topo_cpu_node);
	plx_text_add(&text, ", cores");
	add_groups(topo, &text, plx_topo_cpu_core);
	plx_text_add(&text, ", packages");
	add_groups(topo, &text, plx_topo_cpu_package);
	return text.out;
}

static void assert_nodes_part_the_cpus(const struct plx_topo *topo)
{
	PLX_CPUSET_FOREACH (cpu, plx_topo_cpus(topo)) {
		struct plx_cpuset near = plx_topo_node_cpus(topo, plx_topo_cpu_node(topo, cpu));

		assert_true(plx_cpuset_has(&near, cpu));
	}
}

PLX_TEST(cpus_belong_to_nodes_cores_and_packages)
{
	static const struct {
		const char *source, *meaning;
	} cases[] = {
		{"synthetic:pack:1 core:2 pu:2",
		 "nodes 0:0-3, near 0-3, cores 0-1 2-3, packages 0-3"},
		{"synthetic:pack:2 core:2 pu:2",
		 "nodes 0:0-7, near 0-7, cores 0-1 2-3 4-5 6-7, packages 0-3 4-7"},
		/* A host without core numbers has one CPU per core. */
		{"synthetic:numa:2 pu:2",
		 "nodes 0:0-1 1:2-3, near 0-1 2-3, cores 0 1 2 3, packages 0-3"},
		{"synthetic:pack:2 numa:4 core:1 pu:2",
		 "nodes 0:0-1 1:2-3 2:4-5 3:6-7 4:8-9 5:10-11 6:12-13 7:14-15, "
		 "near 0-1 2-3 4-5 6-7 8-9 10-11 12-13 14-15, "
		 "cores 0-1 2-3 4-5 6-7 8-9 10-11 12-13 14-15, packages 0-7 8-15"},
		/* The system's ids, in ascending order. */
		{"synthetic:numa:3(indexes=5,2,9) core:1 pu:2",
		 "nodes 2:2-3 5:0-1 9:4-5, near 0-1 2-3 4-5, cores 0-1 2-3 4-5, packages 0-5"},
		/* A second node for all CPUs, as of fast or slow memory, is not the nearest. */
		{"synthetic:[numa] pack:2 [numa] core:2 pu:1",
		 "nodes 0:0-1 1:2-3 2:0-3, near 0-1 2-3, cores 0 1 2 3, packages 0-1 2-3"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		struct plx_topo *topo = open_topo(cases[i].source);

		assert_string_equal(describe(topo), cases[i].meaning);
		assert_true(plx_cpuset_equal(plx_topo_allowed(topo), plx_topo_cpus(topo)));
		assert_nodes_part_the_cpus(topo);
		plx_topo_close(topo);
	}
}

PLX_TEST(unknown_cpus_and_nodes_are_reported)
{
	struct plx_topo *topo = open_topo("synthetic:numa:2 core:1 pu:1");
	struct plx_cpuset cpus = plx_topo_node_cpus(topo, 100000);

	assert_int_equal(plx_cpuset_count(&cpus), 0);
	assert_int_equal(plx_topo_cpu_node(topo, 2), -1);
	assert_int_equal(plx_topo_cpu_package(topo, UINT32_MAX), -1);
	assert_int_equal(plx_topo_node_id(topo, 2), -1);
	plx_topo_close(topo);
}

PLX_TEST(the_topology_of_another_host_pins_nothing)
{
	struct plx_topo *topo = open_topo("synthetic:core:2 pu:1");
	struct plx_cpuset cpus = *plx_topo_cpus(topo);

	assert_fails(plx_topo_pin(topo, &cpus), -EINVAL,
		     "cannot pin: the topology is not this host's");
	plx_topo_close(topo);
	setenv("HWLOC_SYNTHETIC", "core:2 pu:1", 1);
	topo = open_topo(NULL);
	unsetenv("HWLOC_SYNTHETIC");
	assert_fails(plx_topo_pinned(topo, &cpus), -EIO,
		     "not this host's, as HWLOC_SYNTHETIC is set in the environment; unset it");
	plx_topo_close(topo);
}

static int pin_where_it_is_forbidden(void)
{
	struct plx_topo *topo;
	struct plx_cpuset first = {{0}};

	if (plx_topo_open(NULL, &topo) || child_deny(SYS_sched_setaffinity, -1, 0, EPERM))
		return 1;
	plx_cpuset_add(&first, plx_cpuset_next(plx_topo_allowed(topo), 0));
	if (plx_topo_pin(topo, &first) == -EPERM)
		fprintf(stderr, "%s\n", plx_error());
	plx_topo_close(topo);
	return 0;
}

PLX_TEST(the_error_names_a_filter_of_system_calls)
{
	struct child_end end;

	child_run(pin_where_it_is_forbidden, &end);
	if (end.status)
		skip();
	assert_child_said(&end, "sched_setaffinity is forbidden (Operation not permitted)");
	assert_child_said(&end, "seccomp filter of the container or service; allow that call");
}

/* hwloc's export of a description of which some CPUs are allowed, as the environment names it. */
static struct plx_topo *open_restricted(const char *description, const char *allowed)
{
	char path[] = "/tmp/plx-topo-XXXXXX";
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
	hwloc_topology_t hwloc;
	struct plx_topo *topo;

	close(mkstemp(path));
	assert_int_equal(hwloc_topology_init(&hwloc), 0);
	assert_int_equal(hwloc_topology_set_synthetic(hwloc, description), 0);
	assert_int_equal(hwloc_topology_set_flags(hwloc, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED),
			 0);
	assert_int_equal(hwloc_topology_load(hwloc), 0);
	hwloc_bitmap_list_sscanf(cpus, allowed);
	assert_int_equal(hwloc_topology_allow(hwloc, cpus, NULL, HWLOC_ALLOW_FLAG_CUSTOM), 0);
	hwloc_bitmap_free(cpus);
	assert_int_equal(hwloc_topology_export_xml(hwloc, path, 0), 0);
	hwloc_topology_destroy(hwloc);
	setenv("HWLOC_XMLFILE", path, 1);
	topo = open_topo(NULL);
	unsetenv("HWLOC_XMLFILE");
	unlink(path);
	return topo;
}

/* A host of 8 CPUs of which this process has 2, as in a container. */
PLX_TEST(a_forbidden_cpu_and_a_missing_cpu_have_different_errors)
{
	struct plx_topo *topo = open_restricted("numa:2 core:4 pu:1", "2,5");
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"0-7", "--lcores 0-7: CPU 0 is not available to this process (allowed: 2,5); "
			"give -l 2,5 or widen the cpuset"},
		{"2@0", "; give -l 2 or widen the cpuset"},
		{"0@2,1@3", "; give -l 0@2,1@5 or widen the cpuset"},
		{"2,8", "--lcores 2,8: CPU 8 does not exist or is offline (online: 0-7, allowed: "
			"2,5); give -l 2"},
	};

	assert_cpus(plx_topo_cpus(topo), "0-7");
	assert_cpus(plx_topo_allowed(topo), "2,5");
	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		struct plx_lcore_map map;

		assert_works(plx_lcore_map_parse_list("--lcores", cases[i].text, topo, &map));
		assert_fails(plx_lcore_map_check("--lcores", cases[i].text, topo, &map), -EINVAL,
			     cases[i].error);
		plx_lcore_map_fini(&map);
	}
	plx_topo_close(topo);
}

PLX_TEST(bad_sources_are_errors)
{
	static const struct {
		const char *source, *error;
	} cases[] = {
		{"synthetic:numa:x",
		 "hwloc does not understand the description; give one such as synthetic:numa:2 "
		 "core:4 pu:1, or none for this host"},
		{"numa:2", "topology numa:2: unknown source"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		struct plx_topo *topo;

		assert_fails(plx_topo_open(cases[i].source, &topo), -EINVAL, cases[i].error);
	}
}

/* This host -------------------------------------------------------------------------------- */

static struct plx_cpuset affinity(void)
{
	struct plx_cpuset set = {{0}};
	cpu_set_t cpus;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &cpus))
			plx_cpuset_add(&set, cpu);
	}
	return set;
}

PLX_TEST(this_host_allows_what_the_affinity_mask_allows)
{
	struct plx_topo *topo = open_topo(NULL);
	struct plx_cpuset mine = affinity(), pinned;

	assert_true(plx_cpuset_equal(plx_topo_allowed(topo), &mine));
	assert_int_equal(plx_topo_pinned(topo, &pinned), 0);
	assert_true(plx_cpuset_equal(&pinned, &mine));
	assert_int_equal(plx_cpuset_count(plx_topo_cpus(topo)), sysconf(_SC_NPROCESSORS_ONLN));
	assert_nodes_part_the_cpus(topo);
	plx_topo_close(topo);
}

struct pin {
	struct plx_topo *topo;
	struct plx_cpuset want, got;
	int rc;
	char error[256];
};

static void *pin_here(void *arg)
{
	struct pin *pin = arg;

	pin->rc = plx_topo_pin(pin->topo, &pin->want);
	strncpy(pin->error, plx_error(), sizeof(pin->error) - 1);
	pin->got = affinity();
	return NULL;
}

PLX_TEST(pin_binds_only_the_calling_thread)
{
	struct pin pin = {.topo = open_topo(NULL)};
	struct plx_cpuset before = affinity(), after;

	PLX_CPUSET_FOREACH (cpu, plx_topo_allowed(pin.topo)) {
		memset(&pin.want, 0, sizeof(pin.want));
		plx_cpuset_add(&pin.want, cpu);
		run_in_thread(pin_here, &pin);
		assert_int_equal(pin.rc, 0);
		assert_true(plx_cpuset_equal(&pin.got, &pin.want));
	}
	after = affinity();
	assert_true(plx_cpuset_equal(&before, &after));
	plx_topo_close(pin.topo);
}

PLX_TEST(a_refused_pin_changes_nothing)
{
	struct pin pin = {.topo = open_topo(NULL)};
	struct plx_cpuset before = affinity();

	run_in_thread(pin_here, &pin);
	assert_int_equal(pin.rc, -EINVAL);
	assert_non_null(strstr(pin.error, "cannot pin to no CPU at all"));
	plx_cpuset_add(&pin.want, PLX_CPU_MAX - 1); /* no host of ours is that large */
	run_in_thread(pin_here, &pin);
	assert_int_equal(pin.rc, -EPERM);
	assert_non_null(strstr(pin.error, "cannot pin to CPUs 4095: not available"));
	assert_true(plx_cpuset_equal(&pin.got, &before));
	plx_cpuset_add(&pin.want, plx_cpuset_next(&before, 0)); /* one of them is available */
	run_in_thread(pin_here, &pin);
	assert_true(pin.rc == -EPERM || pin.rc == -EIO);
	assert_true(plx_cpuset_equal(&pin.got, &before));
	plx_topo_close(pin.topo);
}

PLX_TEST_MAIN()
