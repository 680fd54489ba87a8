/* SPDX-License-Identifier: BSD-3-Clause */
/* Connecting, and refusals on the way. */
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
	struct fid_ep *ep = party_ep(&client, client.info);

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

TEST(a_request_that_was_read_outlives_its_listener)
{
	one = dial(NULL, 0);
	next_request();
	close_pep();
	cm_expect_nothing(client.eq);
	two = request_ep();
	assert_int_equal(fi_accept(two, "yes", 3), 0);
	assert_int_equal(cm_wait(client.eq, FI_CONNECTED, &event), 3);
	assert_int_equal(cm_wait(server.eq, FI_CONNECTED, &event), 0);
}

TEST(an_endpoint_of_a_closed_listeners_request_opened_before_is_accepted)
{
	one = dial(NULL, 0);
	next_request();
	two = request_ep();
	close_pep();
	assert_int_equal(fi_accept(two, NULL, 0), 0);
	cm_wait(client.eq, FI_CONNECTED, &event);
	cm_wait(server.eq, FI_CONNECTED, &event);
}

TEST(an_owner_rejects_a_request_without_its_listener)
{
	struct fid_ep *ep = dial(NULL, 0);
	struct fi_info *info = next_request();
	uint8_t data[PROV_CM_DATA_MAX + 1] = "no";
	struct fi_eq_err_entry error;

	close_pep();
	assert_int_equal(prov_request_reject(info->handle, data, sizeof(data)), -FI_EINVAL);
	assert_int_equal(prov_request_reject(info->handle, data, 2), 0);
	fi_freeinfo(info);
	error = cm_wait_error(client.eq);
	assert_int_equal(error.err, FI_ECONNREFUSED);
	assert_int_equal(error.err_data_size, 2);
	assert_memory_equal(error.err_data, "no", 2);
	close_ep(ep);
}

TEST(a_request_whose_endpoint_is_closed_cannot_be_rejected)
{
	struct fid_ep *ep = dial(NULL, 0);
	fid_t handle = next_request()->handle;

	two = request_ep();
	close_two();
	assert_int_equal(fi_reject(pep, handle, NULL, 0), -FI_EINVAL);
	expect_refused(ep);
	close_ep(ep);
}

TEST(closing_an_unaccepted_endpoint_refuses_the_request)
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
	struct fid_ep *ep = party_ep(&client, client.info);
	char room[8];

	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_recv(ep, room, sizeof(room), NULL, 0, room), 0);
	assert_int_equal(fi_connect(ep, &address, NULL, 0), 0);
	reject_next(NULL, 0);
	expect_refused(ep);
	expect_cancelled(client.cq, room);
	close_ep(ep);
}

TESTED_MAIN()
