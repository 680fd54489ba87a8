/* SPDX-License-Identifier: BSD-3-Clause */
/* Links choose RDMA if available, and fall back to the next provider if the peer is not there. No
 * device is needed: the RDMA driver here is tcp, with a getinfo that returns what a test needs. */
#include "fixture.h"

#include <rdma/fi_errno.h>

/* The simulated RDMA. */
static enum { WORKS, NO_DEVICE, NO_ROUTE, REFUSES, SILENT } rdma;

static const char *fake_provider(const char *asked, bool exact, uint32_t version)
{
	return strcmp(asked, "fake") == 0 ? fi_name_of_tcp() : NULL;
}

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
	fake.provider = fake_provider;
	fake.getinfo = fake_getinfo;
	fake.rdma = true;
	conf.drivers = table;
	fixture_start_as(&conf, false);
}

static int start(void **state)
{
	rdma = WORKS;
	start_as((struct plx_fabric_conf){0});
	return 0;
}

static void expect_link(const char *driver, const char *choice)
{
	assert_string_equal(plx_link_driver(client.link), driver);
	assert_string_equal(plx_link_choice(client.link), choice);
	assert_int_equal(client.opened, 1);
	assert_int_equal(client.closed, 0);
	server.echo = true;
	expect_echo("hello", 5);
}

static int start_required(void **state)
{
	rdma = WORKS;
	start_as((struct plx_fabric_conf){.require_rdma = true});
	return 0;
}

#define TEST(test)     PLX_TEST_WITH(test, start, fixture_down)
#define REQUIRED(test) PLX_TEST_WITH(test, start_required, fixture_down)

TEST(rdma_comes_before_tcp)
{
	fixture_pair(NULL);
	expect_link("fake", "an RDMA device routes to the peer");
}

TEST(without_a_route_it_is_tcp)
{
	rdma = NO_ROUTE;
	fixture_pair(NULL);
	expect_link("tcp", "no RDMA device routes to the peer");
}

TEST(who_refuses_rdma_is_met_on_tcp)
{
	rdma = REFUSES;
	for (int i = 0; i < 3; i++) {
		fixture_pair(NULL);
		expect_link("tcp", "the peer did not answer by RDMA");
		fixture_disconnect();
	}
}

TEST(who_does_not_answer_by_rdma_is_met_on_tcp)
{
	struct plx_link_attr attr = {.connect_timeout_ns = 100 * PLX_NS_PER_MS};

	rdma = SILENT;
	fixture_connect(fixture_listen("127.0.0.1:0", NULL), &attr);
	expect_link("tcp", "the peer did not answer by RDMA");
}

TEST(who_is_not_there_at_all_is_told_of_once)
{
	rdma = REFUSES;
	client_connect("127.0.0.1:1", NULL);
	expect_end(&client, PLX_LINK_REFUSED);
	pump_ms(50);
	assert_int_equal(client.closed, 1);
	assert_int_equal(client.opened, 0);
	assert_int_equal(plx_fabric_open_count(), 0);
}

TEST(a_link_that_is_given_up_goes_nowhere_else)
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
TEST(the_process_may_end_while_it_goes_over)
{
	struct plx_listener *listener = fixture_listen("127.0.0.1:0", NULL);

	rdma = REFUSES;
	client_connect(plx_listener_address(listener), NULL);
}

TEST(what_is_asked_for_stays)
{
	rdma = REFUSES;
	client_connect("127.0.0.1:1", &(struct plx_link_attr){.provider = "fake"});
	assert_string_equal(plx_link_choice(client.link), "it was asked for");
	expect_end(&client, PLX_LINK_REFUSED);
	assert_has(client.text, "127.0.0.1:1");
}

/* Required ------------------------------------------------------------------------------------- */

REQUIRED(required_rdma_is_never_tcp)
{
	struct plx_link_attr attr = {.events = &side_events, .user = &client};

	rdma = REFUSES;
	client_connect("127.0.0.1:1", NULL);
	assert_string_equal(plx_link_choice(client.link), "an RDMA device routes to the peer");
	expect_end(&client, PLX_LINK_REFUSED);
	rdma = NO_ROUTE;
	assert_int_equal(plx_link_connect("127.0.0.1:1", &attr, &client.link), -EHOSTUNREACH);
}

REQUIRED(required_rdma_does_not_let_tcp_be_asked_for)
{
	struct plx_link_attr attr = {.events = &side_events, .user = &client, .provider = "tcp"};

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
PLX_TEST(without_a_driver_for_rdma_the_text_says_how_to_get_it)
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

PLX_TEST_MAIN()
