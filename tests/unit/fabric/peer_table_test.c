/* SPDX-License-Identifier: BSD-3-Clause */
/* What a peer learns about this process, or chooses, must not help it elsewhere. */
#include "fabric_link.h"
#include "frame.h"
#include "plx_fabric_driver.h"
#include "plx_test.h"

#include <stdio.h>
#include <time.h>

static const struct plx_fabric_driver tcp = {.name = "tcp"}, shm = {.name = "plx_shm"};
static struct plx_fabric_lcore home;

static int setup(void **state)
{
	static const struct plx_fabric_conf conf;

	assert_int_equal(liveness_init(&conf), 0);
	liveness_home_init(&home);
	return 0;
}

static struct frame_hello offered(const struct plx_fabric_driver *driver, const char *peer)
{
	struct plx_link link = {.driver = driver, .connector = true};
	struct frame_hello hello = {0};

	snprintf(link.peer, sizeof(link.peer), "%s", peer);
	liveness_offer(&link, &hello);
	return hello;
}

/* V has links with S and M. M and S must see different incarnations, or M could impersonate V. */
PLX_TEST(each_host_is_offered_a_different_incarnation_and_path)
{
	struct frame_hello told = offered(&tcp, "10.0.0.1:5000");

	assert_int_equal(told.incarnation, offered(&tcp, "10.0.0.1:6000").incarnation);
	assert_int_equal(told.path, offered(&tcp, "10.0.0.1:6000").path);
	assert_int_not_equal(told.path, offered(&tcp, "10.0.0.2:5000").path);
	assert_int_not_equal(told.incarnation, offered(&tcp, "10.0.0.2:5000").incarnation);
	assert_int_not_equal(told.incarnation, offered(&tcp, "[fd00::1]:5000").incarnation);
	assert_int_not_equal(told.incarnation, offered(&shm, "10.0.0.1:5000").incarnation);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * PLX_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Incarnations that collide in the lowest 16 bits. Return: CPU time of joining and leaving. */
static uint64_t join_and_leave_ns(size_t count)
{
	struct plx_link *links = aligned_alloc(PLX_CACHE_LINE, count * sizeof(*links));
	uint64_t begin_ns = cpu_ns();

	assert_non_null(links);
	for (size_t i = 0; i < count; i++) {
		links[i].home = &home;
		links[i].live = (struct liveness){
			.incarnation = i << 16, .heartbeat_ms = 1000, .dead_after_ms = 5000};
		assert_int_equal(peer_join(&links[i], 1), 0);
	}
	for (size_t i = 0; i < count; i++)
		peer_leave(&links[i]);
	free(links);
	return cpu_ns() - begin_ns;
}

PLX_TEST(a_peer_cannot_choose_its_slot_in_the_peer_table)
{
	uint64_t few_ns = join_and_leave_ns(1000), many_ns = join_and_leave_ns(16000);

	if (many_ns > 4 * 16 * few_ns)
		fail_msg("16 times the peers took %.0f times the time",
			 (double)many_ns / (double)few_ns);
}

/* The verdict ---------------------------------------------------------------------------------- */

#define DEAD_NS (5 * PLX_NS_PER_S)

static struct plx_link link_to_peer;

/* A link that was heard at 1 ns. */
static int join(void **state)
{
	link_to_peer = (struct plx_link){
		.home = &home,
		.live = {.incarnation = 7, .heartbeat_ms = 1000, .dead_after_ms = 5000},
	};
	return peer_join(&link_to_peer, 1);
}

PLX_FIXTURE(leave, 0, peer_leave(&link_to_peer))

static struct silence ask_at(uint64_t now_ns)
{
	atomic_store_explicit(&home.watch.looked_ns, now_ns, memory_order_relaxed);
	return peer_ask(link_to_peer.presence->peer, &home, now_ns);
}

PLX_TEST_WITH(silence_is_known_up_to_the_time_when_links_were_asked_for_bytes, join, leave)
{
	struct presence *presence = link_to_peer.presence;

	peer_asked(presence, DEAD_NS, false);
	assert_int_equal(ask_at(2 * DEAD_NS).ns, DEAD_NS - 1);
	assert_int_equal(peer_silent_ns(presence->peer), 0);
	peer_asked(presence, 2 * DEAD_NS, false);
	assert_int_equal(ask_at(2 * DEAD_NS).ns, 2 * DEAD_NS - 1);
	assert_int_equal(peer_silent_ns(presence->peer), 2 * DEAD_NS - 1);
}

PLX_TEST_WITH(a_peer_that_has_yet_to_acknowledge_much_has_twice_the_time, join, leave)
{
	struct presence *presence = link_to_peer.presence;

	peer_asked(presence, 2 * DEAD_NS, true);
	assert_int_equal(ask_at(2 * DEAD_NS).margin_ns, DEAD_NS);
	assert_int_equal(peer_silent_ns(presence->peer), 0);
	peer_asked(presence, 2 * DEAD_NS + 1, false); /* acknowledged, but not heard yet */
	assert_int_equal(ask_at(2 * DEAD_NS + 1).ns, 2 * DEAD_NS);
	assert_int_equal(peer_silent_ns(presence->peer), 2 * DEAD_NS);
	/* That time ends when the peer is heard. */
	time_raise(&presence->peer->heard_ns, 2 * DEAD_NS + 2);
	peer_asked(presence, 3 * DEAD_NS, false);
	assert_int_equal(ask_at(3 * DEAD_NS).margin_ns, 0);
}

PLX_TEST_WITH(an_lcore_that_has_not_looked_for_long_is_named, join, leave)
{
	static struct plx_fabric_lcore asking;

	home.id = 3;
	ask_at(DEAD_NS);
	assert_int_equal(peer_ask(link_to_peer.presence->peer, &asking, 100 * DEAD_NS).stuck, 3);
}

PLX_TEST_MAIN_WITH(setup, NULL)
