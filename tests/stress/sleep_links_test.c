/* SPDX-License-Identifier: BSD-3-Clause */
/* A sleeping lcore misses nothing that arrives on a link, over any provider. */
#include "plx_fabric.h"
#include "plx_fabric_driver.h"
#include "sleepers.h"

static char address[PLX_ADDRESS_MAX];

static void send_on(struct plx_link *link)
{
	static const char bytes[64];

	assert_works(plx_link_send(link, bytes, sizeof(bytes)));
}

static void link_open(struct plx_link *link, void *user)
{
	if (user)
		send_on(link);
}

/* Pause now and then, long enough for the peer to start or finish going to sleep. Over shared
 * memory, with a CPU each, two ends would otherwise always answer within SPIN_MAX_NS. */
static void dawdle(void)
{
	if (dice(4) == 0)
		usleep(dice(64));
}

static void link_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	stress_went_on();
	dawdle();
	if (is_last())
		plx_stop();
	else
		send_on(link);
}

static const struct plx_link_events events = {.on_open = link_open, .on_message = link_message};

static void connect_there(void *arg)
{
	struct plx_link_attr attr = {.events = &events, .user = address};
	struct plx_link *link;

	assert_works(plx_link_connect(address, &attr, &link));
}

static void nothing_on_a_link_is_slept_through(const char *provider)
{
	const struct plx_fabric_conf fabric = {.drivers = plx_drivers, .provider = provider};
	struct plx_listen_attr attr = {.link = {.events = &events}};
	struct plx_listener *listener;

	assert_works(plx_fabric_init(&fabric));
	assert_works(plx_link_listen("127.0.0.1:0", &attr, &listener));
	snprintf(address, sizeof(address), "%s", plx_listener_address(listener));
	assert_int_equal(plx_lcore_send(10, connect_there, NULL), 0);
	run_all(NULL);
	plx_fabric_fini();
}

SLEEPERS_TEST(nothing_on_tcp_is_slept_through)
{
	nothing_on_a_link_is_slept_through("tcp");
}

SLEEPERS_TEST(nothing_on_shm_is_slept_through)
{
	nothing_on_a_link_is_slept_through("shm");
}

STRESS_MAIN(20000, 3000000)
