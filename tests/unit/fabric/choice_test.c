/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider of a link when the library chooses, and listeners that offer several providers and
 * still act as one. */
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
}

static void connect_by(struct plx_listener *listener, const struct plx_link_attr *attr,
		       const char *driver)
{
	fixture_connect(listener, attr);
	expect_driver(driver);
}

#define TEST(test) PLX_TEST_WITH(test, fixture_up, fixture_down)

/* Choosing ------------------------------------------------------------------------------------- */

TEST(a_link_uses_the_requested_provider_else_the_quickest_that_is_offered)
{
	static const struct {
		const char *offered, *requested, *driver, *choice, *server_choice;
	} rows[] = {
		{NULL, NULL, "shm", "on this host and offers it", "the peer chose it"},
		{"tcp", NULL, "tcp", "on this host, but offers nothing quicker",
		 "but shm is not offered here"},
		{NULL, "tcp", "tcp", "asked for", "chose it, although shm is offered"},
		{NULL, "shm", "shm", "asked for", "the peer chose it"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		const struct plx_link_attr offered = {.provider = rows[i].offered};
		const struct plx_link_attr requested = {.provider = rows[i].requested};

		connect_by(fixture_listen("127.0.0.1:0", &offered), &requested, rows[i].driver);
		assert_has(plx_link_choice(client.link), rows[i].choice);
		assert_has(plx_link_choice(server.link), rows[i].server_choice);
		fixture_disconnect();
	}
}

TEST(a_requested_provider_that_the_listener_lacks_is_refused)
{
	client_connect(plx_listener_address(fixture_listen("127.0.0.1:0", &on_tcp)), &on_shm);
	assert_int_equal(client.closed, 0); /* from the loop, not from the call */
	expect_end(&client, PLX_LINK_REFUSED);
}

TEST(another_host_is_reached_over_tcp)
{
	struct plx_link_attr attr = {.events = &side_events, .user = &client};

	if (plx_link_connect("192.0.2.1:7000", &attr, &client.link) != 0) {
		print_message("skipped: no route to another host (%s)\n", plx_error());
		skip();
	}
	assert_true(is_by(client.link, "tcp"));
	assert_has(plx_link_choice(client.link), "on another host");
	plx_link_abort(client.link);
	expect_soon(client.closed);
}

/* Addresses ------------------------------------------------------------------------------------ */

TEST(a_listener_is_reached_over_shm_at_every_local_address)
{
	static const struct {
		const char *listens, *host;
	} rows[] = {
		{"*:0", "127.0.0.1"}, {"*:0", "[::1]"},     {"*:0", "localhost"},
		{"*:0", "127.1.2.3"}, {"[::1]:0", "[::1]"}, {"localhost:0", "localhost"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct plx_listener *listener = fixture_listen(rows[i].listens, NULL);

		client_connect(at_host(rows[i].host, listener), NULL);
		expect_open();
		expect_driver("shm");
		fixture_disconnect();
	}
}

/* One listener --------------------------------------------------------------------------------- */

TEST(a_listener_with_several_providers_counts_as_one)
{
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", NULL);

	assert_int_equal(plx_fabric_open_count(), 1);
	connect_by(listener, NULL, "shm");
	fixture_disconnect();
	connect_by(listener, &on_tcp, "tcp");
	assert_int_equal(listener_stats_of(listener).requests, 2);
	assert_int_equal(listener_stats_of(listener).opened, 2);
	assert_int_equal(plx_fabric_open_count(), 3);
	plx_listener_close(listener);
	assert_int_equal(plx_fabric_open_count(), 2);
}

/* A process that holds the socket's name blocks shared memory at that address, and nothing else. */
TEST(a_taken_socket_name_leaves_only_tcp)
{
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", &on_tcp);
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct plx_unix_name names[3];
	char address[PLX_ADDRESS_MAX];

	strcpy(address, plx_listener_address(listener));
	in.sin_port = htons((uint16_t)plx_listener_port(listener));
	plx_listener_close(listener);
	shm_address_names((struct sockaddr *)&in, names);
	assert_int_equal(bind(fd, (struct sockaddr *)&names[0].address, names[0].length), 0);
	connect_by(fixture_listen(address, NULL), NULL, "tcp");
	assert_int_equal(plx_fabric_open_count(), 3);
	close(fd);
}

/* Spreading ------------------------------------------------------------------------------------ */

static struct {
	struct plx_listener *listener; /* passed to the callback */
	unsigned calls;
} placed;

static uint32_t place_and_close(struct plx_listener *listener, const struct sockaddr *peer,
				void *arg)
{
	placed.listener = listener;
	placed.calls++;
	assert_ptr_equal(arg, &placed);
	assert_int_equal(((const struct sockaddr_in *)peer)->sin_addr.s_addr,
			 htonl(INADDR_LOOPBACK));
	plx_listener_close(listener);
	return 0;
}

TEST(the_place_callback_gets_the_users_listener_and_may_close_it)
{
	static const struct plx_link_attr *const ways[] = {&on_shm, &on_tcp};
	struct plx_listen_attr attr = {
		.spread = PLX_SPREAD_CALLBACK, .place = place_and_close, .place_arg = &placed};

	for (size_t i = 0; i < PLX_ARRAY_LEN(ways); i++) {
		struct plx_listener *listener = fixture_listen_as("127.0.0.1:0", attr);

		placed.calls = 0;
		client_connect(plx_listener_address(listener), ways[i]);
		expect_end(&client, PLX_LINK_REFUSED);
		assert_int_equal(placed.calls, 1);
		assert_ptr_equal(placed.listener, listener);
		assert_int_equal(server.opened, 0);
		fixture_renew_sides();
		expect_soon(plx_fabric_open_count() == 0);
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
	conf.drivers = table;
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

RDMA(a_refused_link_is_reported_once_and_a_requested_provider_has_no_fallback)
{
	static const char *const requested[] = {NULL, "fake"};

	rdma = REFUSES;
	for (size_t i = 0; i < PLX_ARRAY_LEN(requested); i++) {
		client_connect("127.0.0.1:1", &(struct plx_link_attr){.provider = requested[i]});
		expect_end(&client, PLX_LINK_REFUSED);
		assert_has(client.text, "127.0.0.1:1");
		pump_ms(20);
		assert_int_equal(client.closed, 1);
		assert_int_equal(plx_fabric_open_count(), 0);
		fixture_renew_sides();
	}
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
	conf.provider = "verbs";
	assert_fails(plx_fabric_init(&conf), -EINVAL, "the driver for RDMA is fake");
	conf.provider = "tcp";
	conf.require_rdma = false;
	assert_int_equal(plx_fabric_init(&conf), 0);
	plx_fabric_fini();
}

/* As in a build without libibverbs. And what an upgraded configuration may still name. */
PLX_TEST(the_error_for_a_missing_driver_names_what_to_do)
{
	static const struct plx_fabric_driver *const only_tcp[] = {&plx_driver_tcp, NULL};
	static const struct {
		const char *name, *error;
	} rows[] = {
		{"verbs", "no driver for RDMA; if Pollux was built without libibverbs, install "
			  "libibverbs-dev (Debian)"},
		{"fi:verbs", "this program has no driver for RDMA"},
		{"rdma", "this program has no driver for RDMA"},
		{"fi:tcp", "links no longer use libfabric's own TCP; give tcp"},
		{"fi:net", "links no longer use libfabric's own TCP; give tcp"},
	};
	struct plx_fabric_conf conf = {.drivers = only_tcp};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		conf.provider = rows[i].name;
		assert_fails(plx_fabric_init(&conf), -EINVAL, rows[i].error);
	}
	conf = (struct plx_fabric_conf){.drivers = only_tcp, .require_rdma = true};
	assert_fails(plx_fabric_init(&conf), -ENODEV,
		     "RDMA is required (--require rdma): this program has no driver for RDMA");
}

FIXTURE_MAIN("auto")
