/* SPDX-License-Identifier: BSD-3-Clause */
/* A sleeping lcore with links, over every provider. Lcore 1 sleeps and echoes;
 * lcore 0 turns its loop, and so never sleeps. */
#include "count.h"
#include "fixture.h"
#include "log_capture.h"

#include "shm.h"

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#define CAP_NS (20 * PLX_NS_PER_MS)

static struct plx_listener *listener;

static void listen_there(void *arg)
{
	listener = fixture_listen(here("0"), NULL);
}

static void close_there(void *arg)
{
	plx_listener_close(listener);
	if (server.link)
		plx_link_abort(server.link);
}

static struct plx_idle_stats idle_stats(void)
{
	struct plx_idle_stats stats;

	assert_int_equal(plx_idle_stats_read(1, &stats), 0);
	return stats;
}

static void begin(uint64_t cap_ns)
{
	const struct plx_idle_conf event = {.mode = PLX_IDLE_EVENT, .sleep_max_ns = cap_ns};

	assert_int_equal(plx_idle_set(1, &event), 0);
	server.echo = true;
	worker_start();
	worker_call(listen_there, NULL);
	fixture_connect(listener, NULL);
}

static void end(void)
{
	plx_link_abort(client.link);
	worker_call(close_there, NULL);
	pump_ms(20);
	worker_stop();
	fixture_stop();
}

/* And what the last link left in a queue does not wake its lcore again and again. */
PLX_TEST(each_provider_wakes_a_sleeping_lcore)
{
	static const char *const providers[] = {"tcp", "foreign", "shm"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(providers); i++) {
		struct plx_idle_stats stats;

		print_message("over %s\n", providers[i]);
		fixture_start(providers[i], true);
		begin(UINT64_MAX); /* without a cap */
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
		worker_call(close_there, NULL);
		pump_ms(50);
		stats = idle_stats();
		pump_ms(200);
		assert_in_range(idle_stats().sleeps - stats.sleeps, 0, 20);
		worker_stop();
		fixture_stop();
	}
}

/* Hardly any nap: a busy host may cause some. */
static void expect_sleep(void)
{
	uint64_t naps, count = 0;

	for (unsigned i = 0; i < 50 && (i == 0 || count > 5); i++) {
		naps = idle_stats().naps;
		pump_ms(100);
		count = idle_stats().naps - naps;
	}
	assert_in_range(count, 0, 5);
}

static void run_out_of_descriptors(int family, int type, const struct sockaddr *to, socklen_t len)
{
	struct rlimit before, none;
	int fd = socket(family, type, 0), lowest = dup(fd);

	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(connect(fd, to, len), 0);
	pump_ms(200);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	close(fd);
}

/* A raw connection cannot be accepted, because it needs a descriptor and there is none. */
PLX_TEST(running_out_of_descriptors_is_logged)
{
	static const char *const providers[] = {"shm", "tcp"};

	for (unsigned tcp = 0; tcp < (is_provider_given() ? 1 : 2); tcp++) {
		struct sockaddr_in in = {.sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		struct plx_unix_name names[3];

		fixture_start(providers[tcp], true);
		log_capture();
		begin(CAP_NS);
		in.sin_port = htons((uint16_t)plx_listener_port(listener));
		shm_address_names((struct sockaddr *)&in, names);
		if (tcp)
			run_out_of_descriptors(AF_INET, SOCK_STREAM, (struct sockaddr *)&in,
					       sizeof(in));
		else
			run_out_of_descriptors(AF_UNIX, SOCK_SEQPACKET,
					       (struct sockaddr *)&names[0].address,
					       names[0].length);
		/* One log line per second. */
		assert_int_not_equal(log_count("`ulimit -n` raises the limit"), 0);
		pump_ms(1500);
		expect_echo("", 1);
		expect_sleep();
		end();
	}
}

#define DIRECT_LINKS 200
#define OWN_FDS      8 /* of an lcore, whatever the number of its links */

static void quit_after(struct plx_timer *timer, void *arg)
{
	plx_loop_quit();
}

/* Both ends are here: each has a socket, and nothing else. */
PLX_TEST(an_lcore_sleeps_on_many_direct_links)
{
	const struct plx_idle_conf event = {.mode = PLX_IDLE_EVENT};
	const struct plx_link_attr direct = {.direct = true};
	struct plx_link *links[DIRECT_LINKS];
	struct plx_idle_stats before, after;
	struct plx_timer timer;
	int descriptors = count_descriptors();

	fixture_start("tcp", false);
	listener = fixture_listen(here("0"), &direct);
	for (unsigned i = 0; i < DIRECT_LINKS; i++) {
		client.opened = server.opened = 0;
		fixture_connect(listener, &direct);
		links[i] = client.link;
	}
	assert_in_range(count_descriptors() - descriptors, 2 * DIRECT_LINKS,
			2 * DIRECT_LINKS + OWN_FDS);
	assert_int_equal(plx_idle_set(plx_lcore_id(), &event), 0);
	pump_ms(50);
	assert_int_equal(plx_idle_stats_read(plx_lcore_id(), &before), 0);
	plx_timer_init(&timer, quit_after, NULL);
	plx_timer_start(&timer, 300 * PLX_NS_PER_MS);
	assert_int_equal(plx_loop_run(), 0);
	assert_int_equal(plx_idle_stats_read(plx_lcore_id(), &after), 0);
	assert_int_equal(after.naps, before.naps);
	assert_true(after.asleep_ns - before.asleep_ns >= 100 * PLX_NS_PER_MS);
	for (unsigned i = 0; i < DIRECT_LINKS; i++)
		plx_link_abort(links[i]);
	assert_true(pump_until(&client.closed, DIRECT_LINKS, 5000));
	assert_true(pump_until(&server.closed, DIRECT_LINKS, 5000));
	plx_listener_close(listener);
	pump_ms(20);
	fixture_stop();
}

PLX_TEST_MAIN()
