/* SPDX-License-Identifier: BSD-3-Clause */
/* Claims are real names of this host, which other processes may hold too: where a test needs CPUs
 * that are free it takes those of a made-up topology, beyond what hosts have. */
#include "eal_priv.h"
#include "log_capture.h"
#include "plx_test.h"

#include <stdlib.h>
#include <unistd.h>

#define SMALL_CPUS 8

struct fixture {
	struct plx_topo *small; /* CPUs 0 to 7 */
	struct plx_topo *large; /* CPUs 0 to 511 */
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
	plx_log_set_sink(NULL, NULL);
	free(f);
	return 0;
}

/* From here on CPUs 0 to count - 1 have a poller: this test, or whoever has them already. */
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

	return eal_place(&conf, topo, keep, &f->map, &f->claims);
}

static bool is_claimed(unsigned cpu)
{
	int fd;

	if (plx_cpu_claim(cpu, &fd, NULL) != 0)
		return true;
	close(fd);
	return false;
}

static void default_is_one_lcore_on_a_free_cpu(void **state)
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

static void without_a_free_cpu_one_warning_names_the_option(void **state)
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

static void list_is_claimed_and_given_back(void **state)
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

static void held_cpu_of_a_list_is_a_warning_with_the_pid(void **state)
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

static void dry_run_keeps_no_claim(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(place(f, f->large, "0@420", false), 0);
	assert_int_equal(f->claims.count, 0);
	assert_false(is_claimed(420));
}

static void lcores_on_one_cpu_are_one_warning(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(place(f, f->large, "(0-2)@430,3@431", true), 0);
	assert_int_equal(log_count("eal:1:"), 1);
	assert_non_null(strstr(log_text, "lcores 0-2 share CPU 430: while one polls the others "
					 "wait"));
}

static void lcores_with_room_do_not_share(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(place(f, f->large, "(0-1)@(440-441),2@442", true), 0);
	assert_string_equal(log_text, "");
}

static void more_lcores_than_their_cpus_share(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(place(f, f->large, "(0-1)@(450-451),2@451", true), 0);
	assert_int_equal(log_count("lcores 0-2 share CPU 450-451"), 1);
}

static void mask_is_lcores_on_their_own_cpus(void **state)
{
	struct fixture *f = *state;
	struct plx_eal_conf conf = {.coremask = "0x12"};

	assert_int_equal(eal_place(&conf, f->small, false, &f->map, &f->claims), 0);
	assert_int_equal(f->map.count, 2);
	assert_int_equal(f->map.places[0].lcore_id, 1);
	assert_int_equal(f->map.places[1].lcore_id, 4);
}

static void wrong_lists_are_refused_and_claim_nothing(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(place(f, f->small, "0,8", true), -EINVAL);
	assert_error_has("lcores 0,8: CPU 8 ");
	assert_error_has("allowed: 0-7");
	assert_int_equal(place(f, f->large, "0@460,x", true), -EINVAL);
	assert_error_has("lcores 0@460,x: column 7:");
	assert_false(is_claimed(460));
	assert_int_equal(f->map.count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(default_is_one_lcore_on_a_free_cpu),
		TEST(without_a_free_cpu_one_warning_names_the_option),
		TEST(list_is_claimed_and_given_back),
		TEST(held_cpu_of_a_list_is_a_warning_with_the_pid),
		TEST(dry_run_keeps_no_claim),
		TEST(lcores_on_one_cpu_are_one_warning),
		TEST(lcores_with_room_do_not_share),
		TEST(more_lcores_than_their_cpus_share),
		TEST(mask_is_lcores_on_their_own_cpus),
		TEST(wrong_lists_are_refused_and_claim_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
