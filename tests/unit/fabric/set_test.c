/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets, as drivers define them. Memory registration is tested with a driver that requires it, over
 * the same TCP provider; how sets sleep is in sleep_test.c. */
#include "fabric_link.h"
#include "fixture.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

static int start_with_registration(void **state)
{
	static struct plx_fabric_driver registering;
	static const struct plx_fabric_driver *table[] = {&registering, NULL};

	registering = plx_driver_tcp;
	registering.claim = NULL; /* it can send from any memory */
	registering.needs_mr = true;
	registering.signal_every = 4;
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

REGISTERING(zones_are_registered_even_if_created_after_the_set)
{
	struct plx_set *set = client.link->set;
	uint32_t before = plx_zone_count();
	void *large;

	assert_int_equal(registered(set), before);
	large = plx_mem_alloc(64 << 20, 0, PLX_NODE_ANY, NULL);
	assert_non_null(large);
	assert_true(plx_zone_count() > before);
	expect_soon(registered(set) == plx_zone_count()); /* the loop gets to it */
	plx_mem_free(large);
}

REGISTERING(a_new_zone_is_registered_on_first_use)
{
	const struct plx_zone *zone;
	void *large = plx_mem_alloc(64 << 20, 0, PLX_NODE_ANY, &zone), *desc;
	struct plx_set *set = client.link->set;

	assert_null(set->mr[zone->index]);
	desc = set_desc(set, zone->index);
	assert_non_null(set->mr[zone->index]);
	assert_ptr_equal(desc, fi_mr_desc(set->mr[zone->index]));
	plx_mem_free(large);
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
}

REGISTERING(every_nth_small_message_requests_a_completion)
{
	struct plx_link_stats stats;
	unsigned asked = 0;

	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(plx_link_send(client.link, "x", 1), 0);
		plx_link_stats_read(client.link, &stats);
		asked += stats.tx_inflight > 0;
		assert_true(pump_until(&server.messages, i + 1, 2000));
		for (int k = 0; k < 2000 && stats.tx_inflight; k++) {
			pump_ms(1);
			plx_link_stats_read(client.link, &stats);
		}
	}
	assert_int_equal(asked, 2); /* of 9 frames with the HELLO, the 4th and the 8th */
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

TEST(a_cold_set_notices_a_message_at_once)
{
	fixture_start(NULL, false);
	fixture_pair(NULL);
	server.echo = true;
	for (int i = 1; i <= 5; i++) {
		pump_ms(20); /* far past COLD_AFTER_NS */
		expect_echo("x", 1);
	}
}

#define CROWD     1000
#define COOL_DOWN 20000 /* turns after which sockets are no longer hot */

static void ignore(int fd, uint32_t events, void *arg)
{
}

/* The most that a message takes on a connection that was quiet. */
static unsigned turns_to_notice(void)
{
	unsigned most = 0;

	for (unsigned round = 0; round < 5; round++) {
		unsigned before = server.messages, turns = 0;

		for (unsigned i = 0; i < COOL_DOWN; i++)
			plx_loop_turn();
		assert_works(plx_link_send(client.link, "x", 1));
		while (server.messages == before && turns < 100000) {
			plx_loop_turn();
			turns++;
		}
		most = turns > most ? turns : most;
	}
	return most;
}

/* Otherwise each look at the lcore's set would take a few of them, and the link's socket have its
 * turn after all others. */
TEST(a_crowd_of_readable_descriptors_does_not_delay_a_link)
{
	struct plx_fd *added[CROWD];
	int numbers[CROWD], readable;
	struct rlimit limit;
	unsigned alone;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < 2 * CROWD)
		skip();
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	fixture_start("tcp", false);
	fixture_pair(NULL);
	readable = eventfd(1, EFD_CLOEXEC);
	alone = turns_to_notice();
	for (unsigned i = 0; i < CROWD; i++) {
		numbers[i] = dup(readable);
		assert_true(numbers[i] >= 0);
		assert_works(plx_fd_add(numbers[i], EPOLLIN, ignore, NULL, &added[i]));
	}
	assert_in_range(turns_to_notice(), 1, 2 * alone + COLD_TURNS);
	for (unsigned i = 0; i < CROWD; i++) {
		plx_fd_remove(added[i]);
		close(numbers[i]);
	}
	close(readable);
}

static void send_and_wait(struct plx_buf *buf, unsigned count)
{
	memset(plx_buf_append(buf, 20000), (int)count, 20000);
	assert_works(plx_link_send_buf(client.link, buf, NULL, NULL));
	assert_true(pump_until(&server.messages, count, 2000));
	assert_int_equal(server.last_len, 20000);
	assert_int_equal(server.last[19999], count);
}

/* Otherwise each message would take new memory from the zones, and new ones be registered. */
REGISTERING(copies_into_the_zones_reuse_their_memory)
{
	send_and_wait(plx_buf_alloc(20000), 1);

	uint64_t used = zone_bytes_used();

	for (unsigned i = 2; i < 10; i += 2) {
		send_and_wait(plx_buf_alloc(20000), i);
		pump_ms(2);
		send_and_wait(plx_link_buf(client.link, 20000), i + 1);
		pump_ms(2);
	}
	assert_int_equal(zone_bytes_used(), used);
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
	plx_buf_unref(outside);
	assert_int_equal(server.closed, 0);
}

/* Such a provider would get no descriptor, and dereference it. */
REGISTERING(a_message_that_cannot_be_registered_is_refused)
{
	struct plx_set *set = client.link->set;
	struct plx_buf *buf = plx_buf_alloc(20000);

	send_and_wait(plx_buf_alloc(20000), 1);
	pump_ms(10);
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

/* Data that arrived while the lcore was busy elsewhere is there at the first poll. Not if the turn
 * before was too short for all that it had read. */
TEST(an_lcore_polls_its_sets_right_after_a_long_callback)
{
	fixture_start_as(&(struct plx_fabric_conf){.provider = "shm", .turn_ns = PLX_TURN_NS_MAX},
			 false);
	fixture_pair(NULL);
	for (unsigned i = 0; i < 2 * COLD_TURNS; i++) {
		expect_arrival("x", 1);
		usleep(3 * COLD_AFTER_NS / PLX_NS_PER_US);
		assert_int_equal(plx_link_send(client.link, "y", 1), 0);
		plx_loop_turn();
		assert_int_equal(server.messages, 2 * i + 2);
	}
}

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
