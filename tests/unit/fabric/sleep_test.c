/* SPDX-License-Identifier: BSD-3-Clause */
/* A sleeping lcore with links: every provider, and broken wait objects. Lcore 1 sleeps and echoes;
 * lcore 0 turns its loop, and so never sleeps. */
#include "fixture.h"
#include "log_capture.h"

#include "shm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#define CAP_NS (20 * PLX_NS_PER_MS)

/* libfabric's tcp, with another wait descriptor. */
static struct plx_fabric_driver broken;
static const struct plx_fabric_driver *broken_drivers[] = {&broken, NULL};
static const struct plx_fabric_driver *honest;
static int broken_fd; /* the descriptor */

static int open_queues(struct plx_fabric_fids *fids, const struct fi_info *info)
{
	int rc = honest->open_queues(fids, info);

	fids->wait_fd = broken_fd;
	fids->eq_fd = -1;
	return rc;
}

static int arm_always(struct plx_fabric_fids *fids)
{
	return 0;
}

static int arm_never(struct plx_fabric_fids *fids)
{
	return -EAGAIN;
}

static void make_broken(int (*arm)(struct plx_fabric_fids *fids), bool readable)
{
	for (unsigned i = 0; plx_drivers[i]; i++) {
		if (strcmp(plx_drivers[i]->name, "tcp") == 0)
			honest = plx_drivers[i];
	}
	broken = *honest;
	broken.open_queues = open_queues;
	broken.arm = arm;
	broken.wakes_only_for_work = false;
	broken_fd = eventfd(readable, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(broken_fd >= 0);
}

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

	assert_int_equal(plx_idle_stats(1, &stats), 0);
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

/* Links whose sets have such a descriptor. */
static void begin_broken(int (*arm)(struct plx_fabric_fids *fids), bool readable)
{
	make_broken(arm, readable);
	fixture_start_as(&(struct plx_fabric_conf){.drivers = broken_drivers}, true);
	log_capture();
	begin(CAP_NS);
}

static int end_broken(void **state)
{
	end();
	close(broken_fd);
	return 0;
}

#define BROKEN(name) PLX_TEST_WITH(name, NULL, end_broken)

/* One round trip. Returns its duration. */
static uint64_t one_trip(void)
{
	uint64_t begin_ns = plx_now_ns();

	expect_echo("", 1);
	return plx_now_ns() - begin_ns;
}

PLX_TEST(each_provider_wakes_a_sleeping_lcore)
{
	static const char *const providers[] = {"tcp", "fi:tcp", "shm"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(providers); i++) {
		struct plx_idle_stats stats;

		print_message("over %s\n", providers[i]);
		fixture_start(providers[i], true);
		begin(UINT64_MAX); /* without a cap */
		for (unsigned k = 0; k < 50; k++) {
			pump_ms(2);
			one_trip();
		}
		stats = idle_stats();
		assert_true(stats.wakes[PLX_WAKE_POLLER] >= 50);
		assert_int_equal(stats.naps, 0);
		assert_int_equal(stats.rescues, 0);
		end();
	}
}

BROKEN(a_wait_descriptor_that_stays_silent_is_detected)
{
	uint64_t longest_ns = 0;

	begin_broken(arm_always, false);
	for (unsigned i = 0; i < 12; i++) {
		pump_ms(CAP_NS / PLX_NS_PER_MS / 4);
		one_trip();
	}
	assert_int_equal(
		log_count("it does not wake the lcore for what is there; for the next 1 s"), 1);
	assert_int_not_equal(idle_stats().rescues, 0);
	for (unsigned i = 0; i < 5; i++) {
		uint64_t trip_ns;

		pump_ms(10);
		trip_ns = one_trip();
		longest_ns = i == 0 || trip_ns < longest_ns ? trip_ns : longest_ns;
	}
	assert_true(longest_ns < CAP_NS / 2); /* it naps, and does not wait for the cap */
	assert_int_not_equal(idle_stats().naps, 0);
}

/* Hardly any nap: a busy host may cause some, and another loss of trust. */
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

/* One nap per ms, fewer while other processes have the CPU. */
static void expect_naps(void)
{
	uint64_t naps = idle_stats().naps, begin_ns = plx_now_ns();

	pump_ms(100);
	assert_in_range(idle_stats().naps - naps, 10,
			(plx_now_ns() - begin_ns) / PLX_NS_PER_MS + 30);
}

BROKEN(a_wait_descriptor_that_always_wakes_is_detected)
{
	begin_broken(arm_always, false);
	assert_int_equal(eventfd_write(broken_fd, 1), 0);
	pump_ms(500);
	assert_int_equal(log_count("it wakes the lcore for nothing; for the next 1 s"), 1);
	assert_true(idle_stats().spurious >= 1000);
	expect_naps();
	one_trip();
	/* A distrusted descriptor is tried again a second later. */
	eventfd_t value;

	assert_int_equal(eventfd_read(broken_fd, &value), 0);
	pump_ms(1100);
	expect_sleep();
}

BROKEN(a_wait_descriptor_ready_at_the_start_is_not_used)
{
	begin_broken(arm_always, true);
	assert_int_equal(log_count("it is ready where nothing has come; for the next 1 s"),
			 2); /* one per lcore */
	pump_ms(100);
	assert_int_equal(idle_stats().spurious, 0);
	assert_int_not_equal(idle_stats().naps, 0);
	one_trip();
}

static void expect_probed(int (*arm)(struct plx_fabric_fids *fids), bool readable, const char *text)
{
	make_broken(arm, readable);
	assert_string_equal(plx_fabric_probe_sleep(&broken, fi_name_of_tcp()), text);
	close(broken_fd);
}

/* As plx-info shows it. */
PLX_TEST(the_sleep_of_each_provider_is_probed)
{
	fixture_start("tcp", false);
	for (unsigned i = 0; plx_drivers[i]; i++) {
		const char *provider = plx_drivers[i]->provider(plx_drivers[i]->name, false,
								fi_version());

		if (!provider)
			continue;
		if (strcmp(provider, "verbs") != 0 || getenv("PLX_TEST_PROVIDER"))
			assert_null(plx_fabric_probe_sleep(plx_drivers[i], provider));
	}
	expect_probed(arm_always, true, "it wakes for nothing");
	expect_probed(arm_always, false, "a message does not wake");
	expect_probed(arm_never, false, "it does not let itself be armed");
	assert_string_equal(plx_fabric_probe_sleep(honest, "nosuch"), "it cannot be opened");
	fixture_stop();
}

/* libfabric's net before 1.18 as its documentation describes it: with fi_trywait. */
static int open_queues_by_the_book(struct plx_fabric_fids *fids, const struct fi_info *info)
{
	struct fi_fabric_attr fabric = {.prov_name = "tcp"};
	struct fi_info tcp = {.fabric_attr = &fabric};

	return plx_driver_fi_tcp.open_queues(fids, &tcp);
}

PLX_TEST(provider_net_wakes_without_cause_after_fi_trywait)
{
	if (FI_VERSION_GE(fi_version(), FI_VERSION(1, 18)))
		skip();
	fixture_start("fi:net", false);
	make_broken(NULL, false);
	broken = plx_driver_fi_tcp;
	broken.open_queues = open_queues_by_the_book;
	/* After the first message, or already after the connection. */
	assert_has(plx_fabric_probe_sleep(&broken, "net"), "it wakes for nothing");
	close(broken_fd);
	fixture_stop();
}

/* As libfabric's tcp does while receive buffers are withheld. */
BROKEN(an_lcore_naps_if_its_wait_descriptor_is_never_armed)
{
	begin_broken(arm_never, false);
	pump_ms(50);
	expect_naps();
	assert_int_equal(log_count("cannot be waited for"), 0);
	one_trip();
}

/* Peer behaviour --------------------------------------------------------------------------- */

/* As when parts of messages arrive: reading them clears the descriptor. */
static int arm_and_clear(struct plx_fabric_fids *fids)
{
	eventfd_t value;

	return eventfd_read(broken_fd, &value) == 0 || errno == EAGAIN ? 0 : -errno;
}

BROKEN(wake_ups_by_parts_of_messages_do_not_disable_sleep)
{
	uint64_t end_ns;

	begin_broken(arm_and_clear, false);
	end_ns = plx_now_ns() + 30 * PLX_NS_PER_S;
	while (idle_stats().spurious < 1200 && plx_now_ns() < end_ns) {
		eventfd_write(broken_fd, 1);
		plx_loop_turn();
	}
	assert_true(idle_stats().spurious >= 1200);
	assert_int_equal(log_count("cannot be waited for"), 0);
	one_trip();
}

/* A raw connection that cannot be accepted, because it needs a descriptor and there is none. */
static void descriptors_that_run_out_are_named(int family, int type, const struct sockaddr *to,
					       socklen_t len)
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
	/* One log line per second. */
	assert_int_not_equal(log_count("`ulimit -n` raises the limit"), 0);
	close(fd);
	pump_ms(1500);
	assert_int_equal(log_count("cannot be waited for"), 0);
	one_trip();
	expect_sleep();
	end();
}

/* With a listener's address. */
static struct sockaddr_in start_with_address(const char *provider)
{
	fixture_start(provider, true);
	log_capture();
	begin(CAP_NS);
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)plx_listener_port(listener)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

PLX_TEST(running_out_of_descriptors_over_tcp_is_logged)
{
	struct sockaddr_in to;

	skip_if_provider_given();
	to = start_with_address("tcp");
	descriptors_that_run_out_are_named(AF_INET, SOCK_STREAM, (struct sockaddr *)&to,
					   sizeof(to));
}

PLX_TEST(running_out_of_descriptors_over_shm_is_logged)
{
	struct sockaddr_in of = start_with_address("shm");
	struct plx_unix_name names[3];

	shm_address_names((struct sockaddr *)&of, names);
	descriptors_that_run_out_are_named(AF_UNIX, SOCK_SEQPACKET,
					   (struct sockaddr *)&names[0].address, names[0].length);
}

#define DIRECT_LINKS 40

static void quit_after(struct plx_timer *timer, void *arg)
{
	plx_loop_quit();
}

/* Each has a separate domain and descriptors at both ends, which are both here. */
PLX_TEST(an_lcore_sleeps_on_many_direct_links)
{
	const struct plx_idle_conf event = {.mode = PLX_IDLE_EVENT};
	const struct plx_link_attr direct = {.direct = true};
	struct plx_link *links[DIRECT_LINKS];
	struct plx_idle_stats before, after;
	struct plx_timer timer;

	fixture_start("tcp", false);
	listener = fixture_listen(here("0"), &direct);
	for (unsigned i = 0; i < DIRECT_LINKS; i++) {
		client.opened = server.opened = 0;
		fixture_connect(listener, &direct);
		links[i] = client.link;
	}
	assert_int_equal(plx_idle_set(plx_lcore_id(), &event), 0);
	pump_ms(50);
	assert_int_equal(plx_idle_stats(plx_lcore_id(), &before), 0);
	plx_timer_init(&timer, quit_after, NULL);
	plx_timer_start(&timer, 300 * PLX_NS_PER_MS);
	assert_int_equal(plx_loop_run(), 0);
	assert_int_equal(plx_idle_stats(plx_lcore_id(), &after), 0);
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
