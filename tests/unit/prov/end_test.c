/* SPDX-License-Identifier: BSD-3-Clause */
/* How connections end, without leaving anything allocated. */
#include "prov_meet.h"

#define TEST(name) PLX_TEST_WITH(name, setup_met, teardown)

TEST(a_closed_peer_is_reported_once)
{
	close_two();
	cm_wait(client.eq, FI_SHUTDOWN, &event);
	assert_ptr_equal(event.cm.fid, &one->fid);
	cm_expect_nothing(client.eq);
}

/* Its socket has ended, and would wake forever. */
TEST(a_disconnect_wakes_once)
{
	close_two();
	assert_true(is_woken(&client.eq->fid, 0));
	cm_wait(client.eq, FI_SHUTDOWN, &event);
	assert_false(is_woken(&client.eq->fid, 0));
	assert_false(is_woken(&client.cq->fid, 0));
}

TEST(both_sides_get_one_shutdown_event)
{
	assert_int_equal(fi_shutdown(one, 1), -FI_EBADFLAGS);
	assert_int_equal(fi_shutdown(one, 0), 0);
	cm_wait(client.eq, FI_SHUTDOWN, &event);
	assert_ptr_equal(event.cm.fid, &one->fid);
	cm_wait(server.eq, FI_SHUTDOWN, &event);
	assert_ptr_equal(event.cm.fid, &two->fid);
	assert_int_equal(fi_shutdown(one, 0), 0);
	assert_int_equal(fi_shutdown(two, 0), 0);
	cm_expect_nothing(client.eq);
	cm_expect_nothing(server.eq);
}

/* Flushed operations are visible when fi_shutdown returns (fi_cm.3). */
TEST(a_shutdown_flushes_receives_before_it_returns)
{
	char room[8];

	assert_int_equal(fi_recv(one, room, sizeof(room), NULL, 0, room), 0);
	assert_int_equal(fi_shutdown(one, 0), 0);
	expect_cancelled(client.cq, room);
}

static void read_for(struct fid_cq *cq, uint64_t ns)
{
	uint64_t begin_ns = queue_now_ns();

	while (queue_now_ns() - begin_ns < ns)
		assert_int_equal(fi_cq_read(cq, NULL, 0), 0);
}

/* A read of one queue progresses its domain. The client's queue itself is read too seldom for that:
 * a read looks for closed peers only now and then. */
TEST(reading_another_queue_of_the_domain_flushes_receives_of_a_closed_peer)
{
	struct fi_cq_attr attr = {.wait_obj = FI_WAIT_NONE};
	struct fid_cq *other;
	ssize_t got = -FI_EAGAIN;
	char room[8];

	assert_int_equal(fi_cq_open(client.domain, &attr, &other, NULL), 0);
	assert_int_equal(fi_recv(one, room, sizeof(room), NULL, 0, room), 0);
	close_two();
	for (int i = 0; i < 10 && got == -FI_EAGAIN; i++) {
		struct fi_cq_data_entry entry;

		read_for(other, 20 * PLX_NS_PER_MS);
		got = fi_cq_read(client.cq, &entry, 1);
	}
	assert_int_equal(got, -FI_EAVAIL);
	expect_cancelled(client.cq, room);
	assert_int_equal(fi_close(&other->fid), 0);
}

TEST(events_of_a_closed_endpoint_are_dropped)
{
	close_two();
	for (int i = 0; TAILQ_EMPTY(&((struct prov_eq *)client.eq)->events); i++) {
		assert_true(i < 10000000);
		eq_progress((struct prov_eq *)client.eq);
	}
	close_one();
	cm_expect_nothing(client.eq);
}

PLX_TEST_WITH(many_connections_leak_no_memory, setup, teardown)
{
	int fds, maps;

	for (int i = 0; i < 100; i++)
		meet_once();
	fds = count_descriptors();
	maps = count_mappings();
	for (int i = 0; i < 10000; i++)
		meet_once();
	assert_int_equal(count_descriptors(), fds);
	assert_int_equal(count_mappings(), maps);
}

TESTED_MAIN()
