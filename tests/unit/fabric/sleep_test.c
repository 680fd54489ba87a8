/* SPDX-License-Identifier: BSD-3-Clause */
/* A sleeping lcore with links, over every provider. Lcore 1 sleeps and echoes;
 * lcore 0 turns its loop, and so never sleeps. */
#include "fixture.h"

static struct plx_idle_stats idle_stats(void)
{
	struct plx_idle_stats stats;

	assert_int_equal(plx_idle_stats_read(1, &stats), 0);
	return stats;
}

/* And what the last link left in a queue does not wake its lcore again and again. */
PLX_TEST(each_provider_wakes_a_sleeping_lcore)
{
	static const char *const providers[] = {"tcp", "foreign", "shm"};
	const struct plx_idle_conf event = {.mode = PLX_IDLE_EVENT, .sleep_max_ns = UINT64_MAX};
	struct plx_listen_attr attr = {.spread = PLX_SPREAD_CALLBACK, .place = place_on_lcore_1};

	for (size_t i = 0; i < PLX_ARRAY_LEN(providers); i++) {
		struct plx_idle_stats stats;

		print_message("over %s\n", providers[i]);
		fixture_start(providers[i], true);
		assert_int_equal(plx_idle_set(1, &event), 0);
		worker_start();
		server.echo = true;
		fixture_connect(fixture_listen_as(here("0"), attr), NULL);
		for (unsigned k = 0; k < 50; k++) {
			pump_ms(2);
			expect_echo("", 1);
		}
		stats = idle_stats();
		assert_true(stats.wakes[PLX_WAKE_POLLER] >= 50);
		assert_int_equal(stats.naps, 0);
		assert_int_equal(stats.rescues, 0);
		assert_in_range(stats.spurious, 0, 500); /* it does not spin */

		plx_link_abort(client.link);
		expect_both_end();
		pump_ms(50);
		stats = idle_stats();
		pump_ms(200);
		assert_in_range(idle_stats().sleeps - stats.sleeps, 0, 20);
		worker_stop();
		fixture_stop();
	}
}

PLX_TEST_MAIN()
