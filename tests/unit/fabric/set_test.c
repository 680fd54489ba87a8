/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets, as drivers define them. Memory registration is tested with a driver that requires it, over
 * the same TCP provider; how sets sleep is in sleep_test.c. */
#include "fabric_link.h"
#include "fixture.h"

#include <unistd.h>

/* As when thousands of links close at once: the turn that sees a closure has no time for all
 * completions, and the next one takes the rest. */
static void end_in_a_turn_without_time(const char *provider)
{
	fixture_start(provider, false);
	fixture_pair(NULL);
	server.link->home->budget.over = server.link->home->turn;
	assert_false(close_settle(server.link));
	expect_end(&server, PLX_LINK_PEER_DOWN);
	assert_true(pump_until(&client.closed, 1, 10000));
	pump_ms(5);
	fixture_stop();
}

PLX_TEST(links_end_even_if_a_turn_has_no_time_left)
{
	end_in_a_turn_without_time("shm");
	end_in_a_turn_without_time("tcp");
}

/* The rest is not over the provider to test: over RDMA, libfabric's first query opens descriptors
 * for good, which only the first fixture of a program may do. */

static int start_with_registration(void **state)
{
	static struct plx_fabric_driver registering;
	static const struct plx_fabric_driver *table[] = {&registering, NULL};

	registering = plx_driver_tcp;
	registering.claim = NULL; /* it can send from any memory */
	registering.needs_mr = true;
	fixture_start_as(&(struct plx_fabric_conf){.drivers = table}, false);
	fixture_pair(NULL);
	return 0;
}

#define TEST(name)        PLX_TEST_WITH(name, NULL, fixture_down)
#define REGISTERING(name) PLX_TEST_WITH(name, start_with_registration, fixture_down)

static unsigned registered(const struct plx_set *set)
{
	unsigned count = 0;

	for (unsigned i = 0; i < PLX_ZONE_MAX; i++)
		count += set->mr[i] != NULL;
	return count;
}

REGISTERING(new_zones_are_registered_on_first_use_or_by_the_loop)
{
	struct plx_set *set = client.link->set;
	uint32_t before = plx_zone_count();
	const struct plx_zone *zone;
	void *large[2];

	assert_int_equal(registered(set), before);
	large[0] = plx_mem_alloc(64 << 20, 0, PLX_NODE_ANY, NULL);
	assert_true(plx_zone_count() > before);
	expect_soon(registered(set) == plx_zone_count());
	large[1] = plx_mem_alloc(64 << 20, 0, PLX_NODE_ANY, &zone);
	assert_null(set->mr[zone->index]);
	assert_non_null(set_desc(set, zone->index));
	assert_non_null(set->mr[zone->index]);
	plx_mem_free(large[0]);
	plx_mem_free(large[1]);
}

static _Atomic unsigned completions;

static void count(struct plx_link *link, struct plx_buf *buf, int status, void *arg)
{
	assert_ptr_equal(buf, arg);
	assert_int_equal(status, 0);
	completions++;
}

REGISTERING(memory_outside_the_zones_is_copied_before_it_is_sent)
{
	struct plx_buf *buf = plx_buf_alloc(20000); /* from the heap */
	static uint8_t bytes[20000];

	assert_int_equal(buf->zone_index, PLX_ZONE_NONE);
	memset(plx_buf_append(buf, 20000), 0x5a, 20000);
	completions = 0;
	assert_int_equal(plx_link_send_buf(client.link, buf, count, buf), 0);
	assert_true(pump_until(&completions, 1, 2000));
	memset(bytes, 0x5a, sizeof(bytes));
	expect_message(&server, 1, bytes, sizeof(bytes));
	buf = plx_link_buf(client.link, 20000); /* needs no copy */
	assert_int_not_equal(buf->zone_index, PLX_ZONE_NONE);
	plx_buf_unref(buf);
}

static int getinfo_of_short_messages(uint32_t version, const char *node, const char *service,
				     uint64_t flags, const struct fi_info *hints,
				     struct fi_info **info_out)
{
	int rc = plx_driver_tcp.getinfo(version, node, service, flags, hints, info_out);

	for (struct fi_info *info = rc ? NULL : *info_out; info; info = info->next)
		info->ep_attr->max_msg_size = 1016;
	return rc;
}

/* As with RDMA devices, which limit messages. The listener's side has its provider's limit. */
TEST(no_frame_is_longer_than_the_provider_accepts)
{
	static struct plx_fabric_driver brief;
	static const struct plx_fabric_driver *table[] = {&brief, NULL};
	uint8_t *bytes = fixture_pattern(3000, 0);

	brief = plx_driver_tcp;
	brief.getinfo = getinfo_of_short_messages;
	fixture_start_as(&(struct plx_fabric_conf){.drivers = table}, false);
	fixture_pair(NULL);
	expect_arrival(bytes, 3000);
	free(bytes);
	assert_int_equal(stats_of(client.link).frames_sent, 4); /* 1 000 bytes each */
}

/* The copy would silence the lcore. */
REGISTERING(a_message_too_long_to_copy_into_the_zones_is_refused)
{
	struct plx_link_attr large = {.message_max_bytes = 3 * PLX_SEND_COPY_MAX};
	uint32_t length = 2 * PLX_SEND_COPY_MAX;
	struct plx_buf *outside = plx_buf_alloc(length);

	fixture_connect(fixture_listen(here("0"), &large), NULL);
	assert_true(pump_until(&client.opened, 2, 5000));
	plx_buf_append(outside, length);
	assert_fails(plx_link_send_buf(client.link, outside, NULL, NULL), -EMSGSIZE, "33554432");
	assert_error_has("plx_mem_alloc");
	assert_fails(plx_link_send(client.link, outside->data, length), -EMSGSIZE,
		     "send longer messages by plx_link_send_buf");
	plx_buf_unref(outside);
	assert_int_equal(server.closed, 0);
}

/* Such a provider would get no descriptor, and dereference it. */
REGISTERING(a_message_that_cannot_be_registered_is_refused)
{
	struct plx_set *set = client.link->set;
	struct plx_buf *buf = plx_buf_alloc(20000);

	for (unsigned i = 0; i < PLX_ZONE_MAX; i++) {
		if (set->mr[i])
			fi_close(&set->mr[i]->fid);
		set->mr[i] = NULL;
	}
	set->zones_registered = plx_zone_count(); /* as if none could be registered */
	plx_buf_append(buf, 20000);
	assert_fails(plx_link_send_buf(client.link, buf, NULL, NULL), -ENOMEM, "ulimit -l");
	plx_buf_unref(buf);
	assert_fails(plx_link_connect("127.0.0.1:1",
				      &(struct plx_link_attr){.events = &side_events},
				      &client.link),
		     -ENOMEM, "ulimit -l");
	assert_int_equal(server.closed, 0);
}

/* Connections that fail on this side, through a driver whose provider takes few receives ------- */

#define FEW 4

static struct side other_server, other_client;
static bool inside, nested;
static int result;

static void connect_in_vain(struct side *side, struct plx_buf *message)
{
	struct plx_link_attr attr = {.events = &side_events, .user = &client, .rx_buf_count = FEW};
	struct plx_link *link;

	inside = true;
	assert_int_equal(plx_link_send(other_client.link, "x", 1), 0); /* it may arrive at once */
	result = plx_link_connect(here("1"), &attr, &link);
	inside = false;
}

static void note_nesting(struct side *side, struct plx_buf *message)
{
	nested |= inside;
}

PLX_TEST(a_connect_that_fails_in_a_callback_runs_no_other_callback)
{
	static struct plx_fabric_driver sparing;
	static const struct plx_fabric_driver *table[] = {&sparing, NULL};
	struct plx_link_attr few = {.rx_buf_count = FEW - 2};
	struct plx_listener *listener;
	uint32_t open;

	sparing = plx_driver_tcp;
	sparing.rx_size = FEW;
	fixture_start_as(&(struct plx_fabric_conf){.drivers = table}, false);
	listener = fixture_pair(&few);
	server_set_aside(&other_server);
	other_client = client;
	plx_link_set_user(client.link, &other_client);
	client = (struct side){.name = "client"};
	fixture_connect(listener, &few);
	other_server.on_message = note_nesting;
	server.on_message = connect_in_vain;
	open = plx_fabric_open_count();
	expect_arrival("go", 2);
	assert_fails(result, -EIO, "posting receives failed");
	assert_true(pump_until(&other_server.messages, 1, 2000));
	assert_false(nested);
	expect_soon(plx_fabric_open_count() == open); /* nothing remains of it */
	assert_int_equal(client.closed, 0);           /* and no callback ran */
	fixture_stop();
	free(other_server.last);
}

PLX_TEST_MAIN()
