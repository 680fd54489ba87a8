/* SPDX-License-Identifier: BSD-3-Clause */
/* Connecting, refusals on the way, and how connections end, without leaving anything allocated. */
#include "prov_meet.h"

/* Private data -------------------------------------------------------------------------------- */

static void exchange(size_t asked, size_t answered)
{
	uint8_t question[PROV_CM_DATA_MAX], answer[PROV_CM_DATA_MAX];

	memset(question, 'q', sizeof(question));
	memset(answer, 'a', sizeof(answer));
	one = dial(question, asked);
	assert_int_equal(cm_wait(server.eq, FI_CONNREQ, &event), asked);
	assert_memory_equal(event.cm.data, question, asked);
	two = request_ep();
	assert_int_equal(fi_accept(two, answer, answered), 0);
	assert_int_equal(cm_wait(server.eq, FI_CONNECTED, &event), 0);
	assert_int_equal(cm_wait(client.eq, FI_CONNECTED, &event), answered);
	assert_memory_equal(event.cm.data, answer, answered);
	part();
}

#define TEST(name) PLX_TEST_WITH(name, setup, teardown)

TEST(both_sides_get_private_data)
{
	exchange(0, 0);
	exchange(1, PROV_CM_DATA_MAX);
	exchange(PROV_CM_DATA_MAX, 1);
}

static void reject_with(const void *data, size_t length)
{
	struct fid_ep *ep = dial(NULL, 0);
	struct fi_eq_err_entry error;

	reject_next(data, length);
	error = cm_wait_error(client.eq);
	assert_ptr_equal(error.fid, &ep->fid);
	assert_int_equal(error.err, FI_ECONNREFUSED);
	assert_int_equal(error.err_data_size, length);
	if (length)
		assert_memory_equal(error.err_data, data, length);
	close_ep(ep);
}

TEST(a_refusal_carries_its_data)
{
	uint8_t data[PROV_CM_DATA_MAX];

	memset(data, 'r', sizeof(data));
	reject_with(NULL, 0);
	reject_with(data, 1);
	reject_with(data, sizeof(data));
}

TEST(too_much_private_data_is_refused)
{
	uint8_t data[PROV_CM_DATA_MAX + 1] = {0};
	struct fid_ep *ep = side_ep(&client, client.info);

	assert_int_equal(fi_connect(ep, &address, data, sizeof(data)), -FI_EINVAL);
	close_ep(ep);
	one = dial(NULL, 0);
	assert_int_equal(fi_reject(pep, next_request()->handle, data, sizeof(data)), -FI_EINVAL);
	two = request_ep();
	assert_int_equal(fi_accept(two, data, sizeof(data)), -FI_EINVAL);
	assert_int_equal(fi_accept(two, data, sizeof(data) - 1), 0);
}

/* No listener --------------------------------------------------------------------------------- */

TEST(a_listener_that_closes_refuses_the_requests_that_were_not_read)
{
	struct fid_ep *queued = dial(NULL, 0), *waiting;

	eq_progress((struct prov_eq *)server.eq); /* so that one event is queued */
	waiting = dial(NULL, 0);
	close_pep();
	for (int i = 0; i < 2; i++)
		assert_int_equal(cm_wait_error(client.eq).err, FI_ECONNREFUSED);
	cm_expect_nothing(server.eq);
	close_ep(queued);
	close_ep(waiting);
}

/* Whether its endpoint is opened before or after. */
TEST(a_request_that_was_read_outlives_its_listener)
{
	for (int before = 0; before < 2; before++) {
		one = dial(NULL, 0);
		next_request();
		if (before)
			two = request_ep();
		close_pep();
		cm_expect_nothing(client.eq);
		if (!before)
			two = request_ep();
		assert_int_equal(fi_accept(two, "yes", 3), 0);
		assert_int_equal(cm_wait(client.eq, FI_CONNECTED, &event), 3);
		assert_int_equal(cm_wait(server.eq, FI_CONNECTED, &event), 0);
		close_all();
		listen_at("127.0.0.1");
	}
}

TEST(a_request_whose_endpoint_is_closed_is_refused)
{
	struct fid_ep *ep = dial(NULL, 0);

	next_request();
	two = request_ep();
	close_two();
	expect_refused(ep);
	close_ep(ep);
}

TEST(posted_receives_of_a_refused_endpoint_are_cancelled)
{
	struct fid_ep *ep = side_ep(&client, client.info);
	char room[8];

	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_recv(ep, room, sizeof(room), NULL, 0, room), 0);
	assert_int_equal(fi_connect(ep, &address, NULL, 0), 0);
	reject_next(NULL, 0);
	expect_refused(ep);
	expect_cancelled(client.rx_cq, room);
	close_ep(ep);
}

/* Ends ---------------------------------------------------------------------------------------- */

#define MET(name) PLX_TEST_WITH(name, setup_met, teardown)

/* Its socket has ended, and would wake forever. */
MET(a_closed_peer_is_reported_once_and_wakes_once)
{
	close_two();
	assert_true(is_woken(&client.eq->fid, 0));
	cm_wait(client.eq, FI_SHUTDOWN, &event);
	assert_ptr_equal(event.cm.fid, &one->fid);
	assert_false(is_woken(&client.eq->fid, 0));
	assert_false(is_woken(&client.rx_cq->fid, 0));
	cm_expect_nothing(client.eq);
}

MET(both_sides_get_one_shutdown_event)
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

TEST(many_connections_leak_no_memory)
{
	size_t heap_bytes;
	int fds, maps;

	for (int i = 0; i < 100; i++)
		meet_once();
	fds = count_descriptors();
	maps = count_mappings();
	heap_bytes = count_heap_bytes();
	for (int i = 0; i < 1000; i++)
		meet_once();
	assert_int_equal(count_descriptors(), fds);
	assert_int_equal(count_mappings(), maps);
	assert_true(count_heap_bytes() < heap_bytes + 4096);
}

TESTED_MAIN()
