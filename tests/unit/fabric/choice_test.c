/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider of a link when the library chooses, and listeners that offer several providers and
 * still act as one. */
#include "../foreign_socket.h"
#include "fixture.h"

#include "shm.h"

#include <arpa/inet.h>
#include <rdma/fi_errno.h>

static const struct plx_link_attr on_tcp = {.provider = "tcp"};
static const struct plx_link_attr on_shm = {.provider = "shm"};

static bool is_by(const struct plx_link *link, const char *driver)
{
	return strcmp(plx_link_driver(link), driver) == 0;
}

/* Both sides must use that driver, and messages pass. */
static void expect_driver(const char *driver)
{
	assert_true(is_by(client.link, driver));
	assert_true(is_by(server.link, driver));
	expect_arrival("ping", 4);
	assert_int_equal(server.last_len, 4);
}

static void connect_by(struct plx_listener *listener, const struct plx_link_attr *attr,
		       const char *driver)
{
	fixture_connect(listener, attr);
	expect_driver(driver);
}

static void expect_choice(const char *part)
{
	assert_has(plx_link_choice(client.link), part);
}

#define TEST(test) PLX_TEST_WITH(test, fixture_up, fixture_down)

/* Choosing ------------------------------------------------------------------------------------- */

TEST(a_listener_on_this_host_is_reached_over_shared_memory)
{
	connect_by(fixture_listen("127.0.0.1:0", NULL), NULL, "shm");
	expect_choice("on this host and offers it");
	assert_string_equal(plx_link_choice(server.link), "the peer chose it");
}

TEST(a_local_listener_that_offers_only_tcp_is_reached_over_tcp)
{
	connect_by(fixture_listen("127.0.0.1:0", &on_tcp), NULL, "tcp");
	expect_choice("on this host, but offers nothing quicker");
	assert_has(plx_link_choice(server.link), "but shm is not offered here");
}

TEST(a_requested_provider_is_used)
{
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", NULL);

	connect_by(listener, &on_tcp, "tcp");
	expect_choice("asked for");
	assert_has(plx_link_choice(server.link), "chose it, although shm is offered");
	fixture_disconnect();
	connect_by(listener, &on_shm, "shm");
	expect_choice("asked for");
	assert_string_equal(plx_link_choice(server.link), "the peer chose it");
}

TEST(a_requested_provider_that_the_listener_lacks_is_refused)
{
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", &on_tcp);
	struct plx_link_attr attr = on_shm;

	attr.events = &side_events;
	attr.user = &client;
	assert_int_equal(plx_link_connect(plx_listener_address(listener), &attr, &client.link), 0);
	assert_int_equal(client.closed, 0); /* from the loop, not from the call */
	expect_end(&client, PLX_LINK_REFUSED);
	assert_has(client.text, plx_listener_address(listener));
	assert_int_equal(client.opened, 0);
}

TEST(another_host_is_reached_over_tcp)
{
	struct plx_link_attr attr = {.events = &side_events, .user = &client};

	if (plx_link_connect("192.0.2.1:7000", &attr, &client.link) != 0) {
		print_message("skipped: no route to another host (%s)\n", plx_error());
		skip();
	}
	assert_true(is_by(client.link, "tcp"));
	expect_choice("on another host");
	plx_link_abort(client.link);
	expect_soon(client.closed);
}

/* Addresses ------------------------------------------------------------------------------------ */

TEST(a_listener_is_reached_over_shm_at_every_local_address)
{
	static const struct {
		const char *listens, *hosts[4];
	} rows[] = {
		{"*:0", {"127.0.0.1", "[::1]", "localhost", "127.1.2.3"}},
		{"[::1]:0", {"[::1]"}},
		{"localhost:0", {"localhost"}},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct plx_listener *listener = fixture_listen(rows[i].listens, NULL);

		for (unsigned k = 0; k < 4 && rows[i].hosts[k]; k++) {
			client_connect(at_host(rows[i].hosts[k], listener), NULL);
			expect_open();
			expect_driver("shm");
			fixture_disconnect();
		}
		connect_by(listener, &on_tcp, "tcp");
		fixture_disconnect();
	}
}

/* One listener --------------------------------------------------------------------------------- */

TEST(a_listener_with_several_providers_counts_as_one)
{
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", NULL);
	struct plx_listener_stats stats;

	assert_int_equal(plx_fabric_open_count(), 1);
	connect_by(listener, NULL, "shm");
	fixture_disconnect();
	connect_by(listener, &on_tcp, "tcp");
	stats = listener_stats_of(listener);
	assert_int_equal(stats.requests, 2);
	assert_int_equal(stats.opened, 2);
	assert_int_equal(stats.refused + stats.failed, 0);
	assert_int_equal(plx_fabric_open_count(), 3);
	plx_listener_close(listener);
	assert_int_equal(plx_fabric_open_count(), 2);
	plx_link_abort(client.link);
	expect_soon(plx_fabric_open_count() == 0);
}

TEST(a_port_can_be_reused_after_its_listener_closed)
{
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", NULL), *second;
	struct plx_listen_attr attr = {.link = {.events = &side_events}};
	char address[PLX_ADDRESS_MAX];

	strcpy(address, plx_listener_address(listener));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(plx_link_listen(address, &attr, &second), -EADDRINUSE);
		connect_by(listener, NULL, "shm");
		fixture_disconnect();
		plx_listener_close(listener);
		listener = fixture_listen(address, NULL);
	}
}

/* Close a listener. Return: the name that a listener at its address has for shared memory. */
static struct plx_unix_name close_and_name(struct plx_listener *listener, char *address_out)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct plx_unix_name names[3];

	strcpy(address_out, plx_listener_address(listener));
	in.sin_port = htons((uint16_t)plx_listener_port(listener));
	plx_listener_close(listener);
	shm_address_names((struct sockaddr *)&in, names);
	return names[0];
}

/* A process that holds the socket's name blocks shared memory at that address, and nothing else. */
TEST(a_taken_socket_name_leaves_only_tcp)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char address[PLX_ADDRESS_MAX];
	struct plx_unix_name name = close_and_name(fixture_listen("127.0.0.1:0", &on_tcp), address);

	assert_int_equal(bind(fd, (struct sockaddr *)&name.address, name.length), 0);
	connect_by(fixture_listen(address, NULL), NULL, "tcp");
	expect_choice("offers nothing quicker");
	assert_int_equal(plx_fabric_open_count(), 3);
	close(fd);
}

/* Names held by other users, listening, full or not listening, do not separate processes of this
 * user. */
TEST(a_socket_name_held_by_another_user_does_not_block_shm)
{
	if (geteuid() != 0)
		skip(); /* to be another user */
	for (int listens = 0; listens < 2; listens++) {
		struct plx_listen_attr shm_alone = {
			.link = {.provider = "shm", .events = &side_events}};
		struct plx_listener *listener, *second;
		char address[PLX_ADDRESS_MAX];
		struct plx_unix_name name;
		struct foreign other;

		name = close_and_name(fixture_listen("127.0.0.1:0", &on_tcp), address);
		other = foreign_bind(&name.address, name.length, SOCK_SEQPACKET, listens);
		listener = fixture_listen(address, NULL);
		connect_by(listener, NULL, "shm");
		fixture_disconnect();
		foreign_end(&other);
		/* Its name is free now, but the address is still taken. */
		assert_int_equal(plx_link_listen(address, &shm_alone, &second), -EADDRINUSE);
		connect_by(listener, NULL, "shm");
		fixture_disconnect();
		plx_listener_close(listener);
	}
}

/* Spreading ------------------------------------------------------------------------------------ */

static struct {
	struct plx_listener *listener; /* passed to the callback */
	unsigned calls;
	bool closes;
} placed;

static uint32_t place_here(struct plx_listener *listener, const struct sockaddr *peer, void *arg)
{
	placed.listener = listener;
	placed.calls++;
	assert_ptr_equal(arg, &placed);
	assert_int_equal(((const struct sockaddr_in *)peer)->sin_addr.s_addr,
			 htonl(INADDR_LOOPBACK));
	if (placed.closes)
		plx_listener_close(listener);
	return 0;
}

static struct plx_listener *listen_placed(bool closes)
{
	struct plx_listen_attr attr = {
		.spread = PLX_SPREAD_CALLBACK, .place = place_here, .place_arg = &placed};

	memset(&placed, 0, sizeof(placed));
	placed.closes = closes;
	return fixture_listen_as("127.0.0.1:0", attr);
}

TEST(the_place_callback_gets_the_listener_that_the_user_opened)
{
	static const struct plx_link_attr *const ways[] = {&on_shm, &on_tcp, &on_shm};
	struct plx_listener *listener = listen_placed(false);

	for (unsigned i = 0; i < PLX_ARRAY_LEN(ways); i++) {
		placed.listener = NULL;
		fixture_connect(listener, ways[i]);
		assert_ptr_equal(placed.listener, listener);
		assert_int_equal(placed.calls, i + 1);
		fixture_disconnect();
	}
}

TEST(the_place_callback_may_close_the_listener_over_any_provider)
{
	static const struct plx_link_attr *const ways[] = {&on_shm, &on_tcp};

	for (size_t i = 0; i < PLX_ARRAY_LEN(ways); i++) {
		struct plx_listener *listener = listen_placed(true);

		client_connect(plx_listener_address(listener), ways[i]);
		assert_true(pump_until(&client.closed, 1, 2000));
		assert_int_equal(placed.calls, 1);
		assert_int_equal(server.opened, 0);
		fixture_renew_sides();
		expect_soon(plx_fabric_open_count() == 0);
	}
}

PLX_TEST_WITH(round_robin_counts_links_of_all_providers_together, fixture_up_with_worker,
	      fixture_down_with_worker)
{
	struct plx_listen_attr attr = {.spread = PLX_SPREAD_ROUND_ROBIN};
	struct plx_listener *listener = fixture_listen_as("127.0.0.1:0", attr);

	for (unsigned i = 1; i <= 8; i++) {
		client_connect(plx_listener_address(listener), i % 2 ? &on_shm : &on_tcp);
		assert_true(pump_until(&client.opened, i, 3000));
		assert_true(pump_until(&server.opened, i, 3000));
		assert_int_equal(server.lcore, (i - 1) % 2);
	}
}

/* RDMA is chosen if available, and the next provider if the peer is not there. No device is needed:
 * the RDMA driver here is tcp, with a getinfo that returns what a test needs. -------------------
 */

/* The simulated RDMA. */
static enum { WORKS, NO_DEVICE, NO_ROUTE, REFUSES, SILENT } rdma;

static int fake_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
			const struct fi_info *hints, struct fi_info **info_out)
{
	if (rdma == NO_DEVICE || (rdma == NO_ROUTE && node) || flags & FI_SOURCE)
		return -FI_ENODATA;
	if (rdma == REFUSES && node)
		service = "1";
	if (rdma == SILENT && node)
		node = "192.0.2.1"; /* for documentation: no such host */
	return plx_driver_tcp.getinfo(version, node, service, flags, hints, info_out);
}

static struct plx_fabric_driver fake;
static const struct plx_fabric_driver *table[] = {&plx_driver_tcp, &fake, NULL};

static void start_as(struct plx_fabric_conf conf)
{
	fake = plx_driver_tcp;
	fake.name = "fake";
	fake.getinfo = fake_getinfo;
	fake.rdma = true;
	conf.drivers = conf.drivers ?: table;
	fixture_start_as(&conf, false);
}

PLX_FIXTURE(start, 0, (rdma = WORKS, start_as((struct plx_fabric_conf){0})))
PLX_FIXTURE(start_required, 0,
	    (rdma = WORKS, start_as((struct plx_fabric_conf){.require_rdma = true})))

static void expect_link(const char *driver, const char *choice)
{
	assert_string_equal(plx_link_driver(client.link), driver);
	assert_string_equal(plx_link_choice(client.link), choice);
	assert_int_equal(client.opened, 1);
	assert_int_equal(client.closed, 0);
	server.echo = true;
	expect_echo("hello", 5);
}

static bool yes(const struct fi_info *info)
{
	return true;
}

/* The same, but tcp behaves like iWARP, where links have more receives. */
static int start_over_iwarp(void **state)
{
	static struct plx_fabric_driver strict;
	static const struct plx_fabric_driver *const drivers[] = {&strict, &fake, NULL};

	strict = plx_driver_tcp;
	strict.is_iwarp = yes;
	start_as((struct plx_fabric_conf){.drivers = drivers});
	return 0;
}

#define RDMA(test) PLX_TEST_WITH(test, start, fixture_down)

RDMA(rdma_is_chosen_if_the_peer_answers_by_it)
{
	static const struct {
		int rdma;
		const char *driver, *choice;
	} rows[] = {
		{WORKS, "fake", "an RDMA device routes to the peer"},
		{NO_ROUTE, "tcp", "no RDMA device routes to the peer"},
		{REFUSES, "tcp", "the peer did not answer by RDMA"},
		{REFUSES, "tcp", "the peer did not answer by RDMA"}, /* again */
		{SILENT, "tcp", "the peer did not answer by RDMA"},
	};
	struct plx_link_attr attr = {.connect_timeout_ns = 100 * PLX_NS_PER_MS};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		rdma = rows[i].rdma;
		fixture_connect(fixture_listen("127.0.0.1:0", NULL), rdma == SILENT ? &attr : NULL);
		expect_link(rows[i].driver, rows[i].choice);
		fixture_disconnect();
	}
}

PLX_TEST_WITH(a_link_gets_the_receives_of_the_provider_it_moves_to, start_over_iwarp, fixture_down)
{
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", NULL);
	uint64_t bytes[2];

	for (unsigned i = 0; i < PLX_ARRAY_LEN(bytes); i++) {
		rdma = i ? REFUSES : NO_ROUTE; /* moves, or starts there */
		fixture_connect(listener, NULL);
		assert_true(is_by(client.link, "tcp"));
		bytes[i] = zone_bytes_used();
		fixture_disconnect();
	}
	assert_int_equal(bytes[0], bytes[1]);
}

RDMA(a_peer_missing_over_all_providers_is_reported_once)
{
	rdma = REFUSES;
	client_connect("127.0.0.1:1", NULL);
	expect_end(&client, PLX_LINK_REFUSED);
	pump_ms(50);
	assert_int_equal(client.closed, 1);
	assert_int_equal(client.opened, 0);
	assert_int_equal(plx_fabric_open_count(), 0);
}

RDMA(an_aborted_connect_does_not_try_the_next_provider)
{
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", NULL);

	rdma = SILENT;
	client_connect(plx_listener_address(listener), NULL);
	plx_link_abort(client.link);
	expect_end(&client, PLX_LINK_ABORTED);
	pump_ms(50);
	assert_int_equal(client.closed, 1);
	assert_int_equal(server.opened, 0);
}

/* The fixture checks memory and descriptors. */
RDMA(the_process_may_end_during_the_change_to_tcp)
{
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", NULL);

	rdma = REFUSES;
	client_connect(plx_listener_address(listener), NULL);
}

RDMA(a_requested_provider_has_no_fallback)
{
	rdma = REFUSES;
	client_connect("127.0.0.1:1", &(struct plx_link_attr){.provider = "fake"});
	assert_string_equal(plx_link_choice(client.link), "it was asked for");
	expect_end(&client, PLX_LINK_REFUSED);
	assert_has(client.text, "127.0.0.1:1");
}

/* Required ------------------------------------------------------------------------------------- */

PLX_TEST_WITH(required_rdma_excludes_tcp, start_required, fixture_down)
{
	struct plx_link_attr attr = {.events = &side_events, .user = &client};

	rdma = REFUSES;
	client_connect("127.0.0.1:1", NULL);
	assert_string_equal(plx_link_choice(client.link), "an RDMA device routes to the peer");
	expect_end(&client, PLX_LINK_REFUSED);
	rdma = NO_ROUTE;
	assert_int_equal(plx_link_connect("127.0.0.1:1", &attr, &client.link), -EHOSTUNREACH);
	attr.provider = "tcp";
	assert_fails(plx_link_connect("127.0.0.1:1", &attr, &client.link), -EINVAL,
		     "provider tcp: it is no RDMA, which is required");
}

PLX_TEST(required_rdma_needs_a_device)
{
	struct plx_fabric_conf conf = {.drivers = table, .require_rdma = true};

	rdma = NO_DEVICE;
	assert_fails(plx_fabric_init(&conf), -ENODEV, "this host has no RDMA device");
	conf.provider = "tcp";
	assert_fails(plx_fabric_init(&conf), -EINVAL,
		     "--provider tcp: it is no RDMA, which is required");
	conf.require_rdma = false;
	assert_int_equal(plx_fabric_init(&conf), 0);
	plx_fabric_fini();
}

/* As in a build without libibverbs. */
PLX_TEST(the_error_without_an_rdma_driver_says_how_to_get_one)
{
	static const struct plx_fabric_driver *const only_tcp[] = {&plx_driver_tcp, NULL};
	static const char *const names[] = {"verbs", "fi:verbs", "rdma"};
	struct plx_fabric_conf conf = {.drivers = only_tcp, .require_rdma = true};

	for (size_t i = 0; i < PLX_ARRAY_LEN(names); i++) {
		assert_fails(plx_fabric_check_provider(only_tcp, "--provider", names[i], false),
			     -EINVAL,
			     ": this program has no driver for RDMA; if Pollux was built "
			     "without libibverbs, install libibverbs-dev (Debian)");
	}
	assert_fails(plx_fabric_init(&conf), -ENODEV,
		     "RDMA is required (--require rdma): this program has no driver for RDMA");
}

/* What an upgraded command line or configuration may still name. */
PLX_TEST(the_former_driver_of_libfabrics_tcp_is_refused_with_what_replaced_it)
{
	static const char *const names[] = {"fi:tcp", "fi:net"};
	struct plx_fabric_conf conf = {.drivers = plx_drivers};

	for (size_t i = 0; i < PLX_ARRAY_LEN(names); i++) {
		conf.provider = names[i];
		assert_fails(plx_fabric_check_provider(plx_drivers, "--provider", names[i], false),
			     -EINVAL, "links no longer use libfabric's own TCP; give tcp");
		assert_fails(plx_fabric_init(&conf), -EINVAL, names[i]);
	}
}

FIXTURE_MAIN("auto")
