/* SPDX-License-Identifier: BSD-3-Clause */
/* Claims are real names on this host, which other processes may hold too. Tests that need free CPUs
 * use those of a fake topology, beyond what hosts have. */
#include "eal_priv.h"
#include "folder.h"
#include "log_capture.h"
#include "own_network.h"

#include <unistd.h>

#define SMALL_CPUS 8

static struct plx_topo *small;  /* CPUs 0 to 7 */
static struct plx_topo *large;  /* CPUs 0 to 511 */
static struct plx_topo *nodes;  /* CPUs 0 to 255 on node 0, 256 to 511 on node 1 */
static char root[FOLDER_BYTES]; /* stands for "/", initially without devices */
static struct plx_lcore_map map;
static struct eal_claims claims;
static int held[SMALL_CPUS];
static unsigned held_count;

static int setup(void **state)
{
	assert_works(plx_topo_open("synthetic:core:8 pu:1", &small));
	assert_works(plx_topo_open("synthetic:core:512 pu:1", &large));
	assert_works(plx_topo_open("synthetic:numa:2 core:256 pu:1", &nodes));
	folder_make(root);
	log_capture();
	return 0;
}

static int teardown(void **state)
{
	eal_claims_drop(&claims);
	plx_lcore_map_fini(&map);
	while (held_count)
		close(held[--held_count]);
	plx_topo_close(small);
	plx_topo_close(large);
	plx_topo_close(nodes);
	plx_log_set_sink(NULL, NULL);
	return folder_remove(root);
}

/* CPUs 0 to count - 1 now have a poller: this test, or whatever already holds them. */
static void occupy(unsigned count)
{
	for (unsigned cpu = 0; cpu < count; cpu++) {
		int rc = plx_cpu_claim(cpu, &held[held_count], NULL);

		assert_true(rc == 0 || rc == -EBUSY);
		held_count += rc == 0;
	}
}

static int place(struct plx_topo *topo, const char *lcores, bool keep)
{
	return eal_place(&(struct plx_eal_conf){.lcores = lcores}, root, topo, keep, &map, &claims);
}

static bool is_claimed(unsigned cpu)
{
	int fd;

	if (plx_cpu_claim(cpu, &fd, NULL) != 0)
		return true;
	close(fd);
	return false;
}

#define TEST(name) PLX_TEST_WITH(name, setup, teardown)

TEST(a_lack_of_free_cpus_gives_one_warning_that_names_the_option)
{
	occupy(SMALL_CPUS);
	assert_int_equal(place(small, NULL, true), 0);
	assert_int_equal(plx_cpuset_next(&map.places[0].cpus, 0), 0);
	assert_int_equal(claims.count, 0);
	assert_int_equal(log_count("eal:1: "), 1);
	assert_non_null(
		strstr(log_text, "no CPU is free of other Pollux processes (allowed: 0-7)"));
	assert_non_null(strstr(
		log_text,
		"adaptive lcores sleep early there until this process ends, but one that polls"));
	assert_non_null(strstr(log_text, "with -l"));
}

/* A process in another network namespace claims the CPUs 0 to count - 1. */
static void occupy_elsewhere(unsigned count)
{
	char text[1024] = "Num\n";
	struct plx_text lines = {.out = text, .size = sizeof(text), .used = strlen(text)};

	for (unsigned cpu = 0; cpu < count; cpu++)
		plx_text_add(&lines, "1: 2 0 00010000 0001 01 %u @pollux/cpu/%u\n", 70 + cpu, cpu);
	folder_put(root, "/proc/net/unix", "Num\n");
	folder_put(root, "/proc/9/net/unix", text);
}

TEST(the_default_avoids_claims_of_other_network_namespaces)
{
	occupy_elsewhere(3);
	occupy(5);
	assert_int_equal(place(large, NULL, true), 0);
	assert_true(plx_cpuset_next(&map.places[0].cpus, 0) >= 5);
	assert_string_equal(log_text, "");
	assert_non_null(strstr(claims.why, " is the first free one of 0-511; other Pollux "
					   "processes claim 3-"));
	assert_non_null(strstr(claims.why, "; those of other network namespaces claim 0-2"));
	assert_false(eal_is_contested(&map.places[0], &claims));
}

TEST(a_cpu_claimed_in_another_network_namespace_is_shared_if_no_other_is_left)
{
	struct plx_topo *two;

	assert_works(plx_topo_open("synthetic:core:2 pu:1(indexes=480,481)", &two));
	folder_put(root, "/proc/net/unix", "Num\n");
	folder_put(root, "/proc/9/net/unix", "Num\n1: 2 0 00010000 0001 01 7 @pollux/cpu/481\n");
	assert_int_equal(plx_cpu_claim(480, &held[held_count++], NULL), 0);
	assert_int_equal(place(two, NULL, true), 0);
	plx_topo_close(two);
	assert_int_equal(plx_cpuset_next(&map.places[0].cpus, 0), 481);
	assert_int_equal(claims.count, 1);
	assert_true(eal_is_contested(&map.places[0], &claims));
	assert_int_equal(log_count("lcore 0 shares CPU 481 with a process in another network "
				   "namespace"),
			 1);
	assert_non_null(strstr(claims.why, "CPU 481 is shared: no CPU is free of 480-481"));
}

TEST(the_default_in_a_pid_namespace_depends_on_the_network_namespace)
{
	folder_put(root, "/proc/self/ns/pid", "");
	folder_put(root, "/proc/self/ns/net", "");
	for (unsigned i = 0; i < 3; i++) {
		unsigned first = plx_cpu_first(root, plx_topo_allowed(large)), cpu;

		assert_int_equal(place(large, NULL, true), 0);
		cpu = plx_cpuset_next(&map.places[0].cpus, 0);
		assert_int_equal(cpu, (first + i) % 512);
		held[held_count++] = claims.fds[0];
		claims.count = 0;
		plx_lcore_map_fini(&map);
	}
	assert_non_null(strstr(claims.why, "; this PID namespace hides other containers"));
}

/* Of the fake host. */
static void put_device(const char *name, const char *node, const char *state)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/numa_node", name);
	folder_put(root, path, node);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/state", name);
	folder_put(root, path, state);
}

TEST(the_default_cpu_is_near_an_rdma_device)
{
	static const struct {
		const char *device, *node, *state;
		unsigned cpu;
	} rows[] = {
		{"mlx5_3", "7", "4: ACTIVE\n", 0}, /* a node without CPUs */
		{"mlx5_0", "1", "1: DOWN\n", 0},
		{"mlx5_1", "-1", "4: ACTIVE\n", 0},
		{"mlx5_2", "1", "4: ACTIVE\n", 256},
		{"mlx5_10", "0", "4: ACTIVE\n", 257}, /* not before mlx5_2; 256 is claimed */
	};

	assert_works(plx_log_configure("log-level", "eal:info"));
	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		unsigned cpu;

		put_device(rows[i].device, rows[i].node, rows[i].state);
		assert_works(place(nodes, NULL, true));
		cpu = plx_cpuset_next(&map.places[0].cpus, 0);
		assert_int_equal(cpu >= 256 ? cpu : 0, rows[i].cpu);
		plx_lcore_map_fini(&map);
		if (rows[i].cpu) {
			held[held_count++] = claims.fds[0];
			claims.count = 0;
		}
		eal_claims_drop(&claims);
	}
	assert_works(plx_log_configure("log-level", "eal:notice"));
	assert_int_equal(log_count("RDMA device mlx5_2 is on NUMA node 1: lcore 0 goes to a CPU "
				   "there if one is free (allowed there: 256-511)"),
			 2);
}

TEST(the_cpus_of_a_list_are_claimed_and_released)
{
	assert_int_equal(place(large, "0@401,1@(402-404)", true), 0);
	assert_int_equal(map.count, 2);
	assert_int_equal(claims.count, 4);
	for (unsigned cpu = 401; cpu <= 404; cpu++)
		assert_true(is_claimed(cpu));
	eal_claims_drop(&claims);
	assert_false(is_claimed(401));
	assert_string_equal(log_text, "");
	plx_lcore_map_fini(&map);
	assert_int_equal(place(large, "0@420", false), 0); /* a dry run */
	assert_int_equal(claims.count, 0);
	assert_false(is_claimed(420));
}

TEST(a_claimed_cpu_in_a_list_gives_a_warning_with_the_pid)
{
	char wanted[128];
	int fd;

	assert_int_equal(plx_cpu_claim(410, &fd, NULL), 0);
	assert_int_equal(place(large, "0@410,1@411", true), 0);
	close(fd);
	assert_int_equal(claims.count, 1);
	snprintf(wanted, sizeof(wanted), "eal:1: CPU 410 is already claimed by process %ld; ",
		 (long)getpid());
	assert_int_equal(log_count(wanted), 1);
	assert_int_equal(log_count("eal:1:"), 1);
}

TEST(lcores_that_share_cpus_give_one_warning)
{
	static const struct {
		const char *lcores, *warning; /* warning: NULL: none */
	} rows[] = {
		{"(0-2)@430,3@431", "lcores 0-2 share CPU 430: adaptive lcores sleep early there"},
		{"(0-1)@(450-451),2@451", "lcores 0-2 share CPU 450-451"},
		{"(0-1)@(440-441),2@442", NULL},
	};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		log_capture();
		assert_works(place(large, rows[i].lcores, true));
		assert_int_equal(log_count("eal:1:"), rows[i].warning ? 1 : 0);
		if (rows[i].warning)
			assert_int_equal(log_count(rows[i].warning), 1);
		plx_lcore_map_fini(&map);
		eal_claims_drop(&claims);
	}
}

TEST(a_quota_smaller_than_the_lcores_gives_one_warning)
{
	folder_put(root, "/proc/self/cgroup", "0::/a\n");
	folder_put(root, "/sys/fs/cgroup/a/cpu.max", "100000 100000\n");
	assert_works(place(large, "0@470", true));
	assert_string_equal(log_text, "");
	plx_lcore_map_fini(&map);
	eal_claims_drop(&claims);
	assert_works(place(large, "0@470,1@471", true));
	assert_int_equal(log_count("/sys/fs/cgroup/a/cpu.max grants 1.00 CPUs in every 100 ms, "
				   "which is less than 2 lcores that poll;"),
			 1);
	assert_true(eal_is_contested(&map.places[1], &claims));
}

TEST(a_short_run_may_use_every_cpu_and_claims_none)
{
	struct plx_eal_conf conf = {.any_cpu = true};

	occupy(SMALL_CPUS);
	assert_int_equal(eal_place(&conf, root, small, true, &map, &claims), 0);
	assert_int_equal(map.count, 1);
	assert_true(plx_cpuset_equal(&map.places[0].cpus, plx_topo_allowed(small)));
	assert_int_equal(claims.count, 0);
	assert_string_equal(log_text, "");
	plx_lcore_map_fini(&map);
	conf.lcores = "0@425"; /* a list overrides it */
	assert_int_equal(eal_place(&conf, root, large, true, &map, &claims), 0);
	assert_int_equal(plx_cpuset_count(&map.places[0].cpus), 1);
	assert_true(is_claimed(425));
}

TEST(bad_lists_are_refused_and_claim_nothing)
{
	assert_fails(place(small, "0,8", true), -EINVAL, "lcores 0,8: CPU 8 ");
	assert_error_has("allowed: 0-7");
	assert_fails(place(large, "0@460,x", true), -EINVAL, "lcores 0@460,x: column 7:");
	assert_false(is_claimed(460));
	assert_int_equal(map.count, 0);
}

PLX_TEST_MAIN_WITH(own_network, NULL)
