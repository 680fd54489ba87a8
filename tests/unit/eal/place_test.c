/* SPDX-License-Identifier: BSD-3-Clause */
/* Claims are real names on this host, which other processes may hold too. Tests that need free CPUs
 * use those of a fake topology, beyond what hosts have. */
#include "eal_priv.h"
#include "folder.h"
#include "log_capture.h"
#include "plx_test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SMALL_CPUS 8

struct fixture {
	struct plx_topo *small;  /* CPUs 0 to 7 */
	struct plx_topo *large;  /* CPUs 0 to 511 */
	struct plx_topo *nodes;  /* CPUs 0 to 255 on node 0, 256 to 511 on node 1 */
	char root[FOLDER_BYTES]; /* stands for "/", initially without devices */
	struct plx_lcore_map map;
	struct eal_claims claims;
	int held[SMALL_CPUS];
	unsigned held_count;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(plx_topo_open("synthetic:core:8 pu:1", &f->small), 0);
	assert_int_equal(plx_topo_open("synthetic:core:512 pu:1", &f->large), 0);
	assert_int_equal(plx_topo_open("synthetic:numa:2 core:256 pu:1", &f->nodes), 0);
	folder_make(f->root);
	log_capture();
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	eal_claims_drop(&f->claims);
	plx_lcore_map_fini(&f->map);
	for (unsigned i = 0; i < f->held_count; i++)
		close(f->held[i]);
	plx_topo_close(f->small);
	plx_topo_close(f->large);
	plx_topo_close(f->nodes);
	folder_remove(f->root);
	plx_log_set_sink(NULL, NULL);
	free(f);
	return 0;
}

/* CPUs 0 to count - 1 now have a poller: this test, or whatever already holds them. */
static void occupy(struct fixture *f, unsigned count)
{
	for (unsigned cpu = 0; cpu < count; cpu++) {
		int fd;
		int rc = plx_cpu_claim(cpu, &fd, NULL);

		assert_true(rc == 0 || rc == -EBUSY);
		if (rc == 0)
			f->held[f->held_count++] = fd;
	}
}

static int place(struct fixture *f, struct plx_topo *topo, const char *lcores, bool keep)
{
	struct plx_eal_conf conf = {.lcores = lcores};

	return eal_place(&conf, f->root, topo, keep, &f->map, &f->claims);
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

TEST(default_is_one_lcore_on_a_free_cpu)
{
	struct fixture *f = *state;
	unsigned cpu;

	occupy(f, 3);
	assert_int_equal(place(f, f->large, NULL, true), 0);
	assert_int_equal(f->map.count, 1);
	assert_int_equal(f->map.places[0].lcore_id, 0);
	assert_int_equal(plx_cpuset_count(&f->map.places[0].cpus), 1);
	cpu = plx_cpuset_next(&f->map.places[0].cpus, 0);
	assert_true(cpu >= 3);
	assert_int_equal(f->claims.count, 1);
	assert_true(is_claimed(cpu));
	assert_string_equal(log_text, "");
	eal_claims_drop(&f->claims);
	assert_false(is_claimed(cpu));
}

TEST(without_a_free_cpu_one_warning_names_the_option)
{
	struct fixture *f = *state;

	occupy(f, SMALL_CPUS);
	assert_int_equal(place(f, f->small, NULL, true), 0);
	assert_int_equal(plx_cpuset_next(&f->map.places[0].cpus, 0), 0);
	assert_int_equal(f->claims.count, 0);
	assert_int_equal(log_count("eal:1: "), 1);
	assert_non_null(
		strstr(log_text, "no CPU is free of other Pollux processes (allowed: 0-7)"));
	assert_non_null(strstr(log_text, "the other waits, for milliseconds at a time"));
	assert_non_null(strstr(log_text, "with -l"));
}

/* Write a device file of the fake host: put(f, "mlx5_0/device", "numa_node", "1"). */
static void put(struct fixture *f, const char *folder, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s", folder, name);
	folder_put(f->root, path, text);
}

static void put_device(struct fixture *f, const char *name, const char *node, const char *state)
{
	char folder[64];

	snprintf(folder, sizeof(folder), "%s/device", name);
	put(f, folder, "numa_node", node);
	snprintf(folder, sizeof(folder), "%s/ports/1", name);
	put(f, folder, "state", state);
}

TEST(the_near_node_is_of_the_first_active_device_that_tells)
{
	struct fixture *f = *state;
	char name[PLX_RDMA_NAME_BYTES];

	assert_int_equal(eal_find_near(f->root, name), -1);
	put_device(f, "mlx5_0", "0", "1: DOWN\n");
	put_device(f, "mlx5_1", "-1", "4: ACTIVE\n");
	assert_int_equal(eal_find_near(f->root, name), -1);
	put_device(f, "mlx5_10", "0", "4: ACTIVE\n");
	put_device(f, "mlx5_2", "1", "4: ACTIVE\n");
	assert_int_equal(eal_find_near(f->root, name), 1);
	assert_string_equal(name, "mlx5_2");
}

TEST(default_is_near_an_rdma_device)
{
	struct fixture *f = *state;
	enum plx_log_level level = eal_log.level;

	put_device(f, "mlx5_0", "1", "4: ACTIVE\n");
	eal_log.level = PLX_LOG_INFO;
	assert_int_equal(place(f, f->nodes, NULL, true), 0);
	eal_log.level = level;
	assert_int_equal(f->map.count, 1);
	assert_int_equal(plx_cpuset_next(&f->map.places[0].cpus, 0), 256);
	assert_true(is_claimed(256));
	assert_int_equal(log_count("RDMA device mlx5_0 is on NUMA node 1: lcore 0 goes to a CPU "
				   "there if one is free (allowed there: 256-511)"),
			 1);
}

TEST(default_leaves_a_cpu_near_a_device_that_is_taken)
{
	struct fixture *f = *state;

	put_device(f, "mlx5_0", "1", "4: ACTIVE\n");
	for (unsigned cpu = 256; cpu < 259; cpu++)
		assert_int_equal(plx_cpu_claim(cpu, &f->held[f->held_count++], NULL), 0);
	assert_int_equal(place(f, f->nodes, NULL, true), 0);
	assert_int_equal(plx_cpuset_next(&f->map.places[0].cpus, 0), 259);
	assert_string_equal(log_text, "");
}

TEST(default_goes_elsewhere_where_no_cpu_near_a_device_is_free)
{
	struct fixture *f = *state;
	struct plx_topo *topo;

	assert_int_equal(plx_topo_open("synthetic:numa:2(indexes=1,0) core:2 "
				       "pu:1(indexes=470,471,472,473)",
				       &topo),
			 0);
	for (unsigned cpu = 470; cpu < 472; cpu++)
		assert_int_equal(plx_cpu_claim(cpu, &f->held[f->held_count++], NULL), 0);
	put_device(f, "mlx5_0", "1", "4: ACTIVE\n");
	assert_int_equal(place(f, topo, NULL, true), 0);
	assert_int_equal(plx_cpuset_next(&f->map.places[0].cpus, 0), 472);
	plx_topo_close(topo);
}

TEST(a_node_without_cpus_or_a_host_with_one_node_changes_nothing)
{
	struct fixture *f = *state;

	put_device(f, "mlx5_0", "7", "4: ACTIVE\n");
	assert_int_equal(place(f, f->nodes, NULL, true), 0);
	assert_true(plx_cpuset_next(&f->map.places[0].cpus, 0) < 256);
	plx_lcore_map_fini(&f->map);
	eal_claims_drop(&f->claims);
	put_device(f, "mlx5_0", "1", "4: ACTIVE\n");
	assert_int_equal(place(f, f->large, NULL, true), 0);
	assert_true(plx_cpuset_next(&f->map.places[0].cpus, 0) < 256);
}

TEST(a_list_stays_as_given_beside_a_device)
{
	struct fixture *f = *state;

	put_device(f, "mlx5_0", "1", "4: ACTIVE\n");
	assert_int_equal(place(f, f->nodes, "0@200", true), 0);
	assert_int_equal(plx_cpuset_next(&f->map.places[0].cpus, 0), 200);
	assert_string_equal(log_text, "");
}

TEST(list_is_claimed_and_given_back)
{
	struct fixture *f = *state;

	assert_int_equal(place(f, f->large, "0@401,1@(402-404)", true), 0);
	assert_int_equal(f->map.count, 2);
	assert_int_equal(f->claims.count, 4);
	for (unsigned cpu = 401; cpu <= 404; cpu++)
		assert_true(is_claimed(cpu));
	eal_claims_drop(&f->claims);
	assert_false(is_claimed(401));
	assert_string_equal(log_text, "");
}

TEST(held_cpu_of_a_list_is_a_warning_with_the_pid)
{
	struct fixture *f = *state;
	char wanted[128];
	int fd;

	assert_int_equal(plx_cpu_claim(410, &fd, NULL), 0);
	assert_int_equal(place(f, f->large, "0@410,1@411", true), 0);
	close(fd);
	assert_int_equal(f->claims.count, 1);
	snprintf(wanted, sizeof(wanted), "eal:1: CPU 410 is polled by process %ld too; ",
		 (long)getpid());
	assert_int_equal(log_count(wanted), 1);
	assert_int_equal(log_count("eal:1:"), 1);
}

TEST(dry_run_keeps_no_claim)
{
	struct fixture *f = *state;

	assert_int_equal(place(f, f->large, "0@420", false), 0);
	assert_int_equal(f->claims.count, 0);
	assert_false(is_claimed(420));
}

TEST(lcores_on_one_cpu_are_one_warning)
{
	struct fixture *f = *state;

	assert_int_equal(place(f, f->large, "(0-2)@430,3@431", true), 0);
	assert_int_equal(log_count("eal:1:"), 1);
	assert_non_null(strstr(log_text, "lcores 0-2 share CPU 430: while one polls the others "
					 "wait"));
}

TEST(lcores_with_room_do_not_share)
{
	struct fixture *f = *state;

	assert_int_equal(place(f, f->large, "(0-1)@(440-441),2@442", true), 0);
	assert_string_equal(log_text, "");
}

TEST(more_lcores_than_their_cpus_share)
{
	struct fixture *f = *state;

	assert_int_equal(place(f, f->large, "(0-1)@(450-451),2@451", true), 0);
	assert_int_equal(log_count("lcores 0-2 share CPU 450-451"), 1);
}

TEST(mask_is_lcores_on_their_own_cpus)
{
	struct fixture *f = *state;
	struct plx_eal_conf conf = {.coremask = "0x12"};

	assert_int_equal(eal_place(&conf, f->root, f->small, false, &f->map, &f->claims), 0);
	assert_int_equal(f->map.count, 2);
	assert_int_equal(f->map.places[0].lcore_id, 1);
	assert_int_equal(f->map.places[1].lcore_id, 4);
}

TEST(wrong_lists_are_refused_and_claim_nothing)
{
	struct fixture *f = *state;

	assert_fails(place(f, f->small, "0,8", true), -EINVAL, "lcores 0,8: CPU 8 ");
	assert_error_has("allowed: 0-7");
	assert_fails(place(f, f->large, "0@460,x", true), -EINVAL, "lcores 0@460,x: column 7:");
	assert_false(is_claimed(460));
	assert_int_equal(f->map.count, 0);
}

PLX_TEST_MAIN()
