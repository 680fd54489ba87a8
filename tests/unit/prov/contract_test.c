/* SPDX-License-Identifier: BSD-3-Clause */
/* What libfabric's man pages promise to every program: fi_eq(3), fi_cq(3). It
 * runs for libfabric's own provider too (tested.h). */
#include "pair.h"
#include "prov_meet.h"

#define MEET(name) PLX_TEST_WITH(name, setup, teardown)
#define PAIR(name) PLX_TEST_WITH(name, set_up_to_wait, tear_down)

/* fi_eq(3): private data is limited to the caller's buffer ------------------------------------ */

#define HEAD sizeof(struct fi_eq_cm_entry)

/* Read an event with room for that many bytes of its data. */
static void next_cut(struct fid_eq *eq, uint32_t wanted, size_t room, uint64_t flags)
{
	uint64_t begin_ns = queue_now_ns();
	uint32_t number = 0;
	ssize_t got;

	memset(&event, 0, sizeof(event));
	do {
		tested_progress();
		got = fi_eq_read(eq, &number, &event, HEAD + room, flags);
	} while (got == -FI_EAGAIN && !is_late(begin_ns));
	assert_int_equal(got, HEAD + room);
	assert_int_equal(number, wanted);
	assert_int_equal(event.room[HEAD + room], 0);
}

static void accept_it(const void *data, size_t length)
{
	two = request_ep();
	assert_fi_works(fi_accept(two, data, length));
	cm_wait(server.eq, FI_CONNECTED, &event);
}

MEET(a_listener_without_room_for_private_data_hears_every_request)
{
	for (int i = 0; i < 3; i++) {
		one = dial("any peer may send this", 22);
		next_cut(server.eq, FI_CONNREQ, 0, 0);
		assert_ptr_equal(event.cm.fid, &pep->fid);
		accept_it(NULL, 0);
		cm_wait(client.eq, FI_CONNECTED, &event);
		part();
	}
}

MEET(a_peek_with_less_room_leaves_the_data_whole)
{
	one = dial("abcdefgh", 8);
	next_cut(server.eq, FI_CONNREQ, 0, FI_PEEK);
	next_cut(server.eq, FI_CONNREQ, 3, FI_PEEK);
	assert_memory_equal(event.cm.data, "abc", 3);
	next_cut(server.eq, FI_CONNREQ, 8, 0);
	assert_memory_equal(event.cm.data, "abcdefgh", 8);
	accept_it(NULL, 0);
	cm_wait(client.eq, FI_CONNECTED, &event);
}

MEET(the_answer_is_cut_too)
{
	one = dial(NULL, 0);
	next_request();
	accept_it("answer", 6);
	next_cut(client.eq, FI_CONNECTED, 2, 0);
	assert_memory_equal(event.cm.data, "an", 2);
}

MEET(a_sleeping_reader_gets_cut_data)
{
	uint64_t begin_ns = queue_now_ns();
	uint32_t number = 0;
	ssize_t got;

	one = dial("request", 7);
	memset(&event, 0, sizeof(event));
	do {
		tested_progress();
		got = fi_eq_sread(server.eq, &number, &event, HEAD + 1, 10, 0);
	} while (got == -FI_EAGAIN && !is_late(begin_ns));
	assert_int_equal(got, HEAD + 1);
	assert_int_equal(number, FI_CONNREQ);
	assert_memory_equal(event.room + HEAD, "r\0", 2);
	accept_it(NULL, 0);
	cm_wait(client.eq, FI_CONNECTED, &event);
}

static struct fi_eq_err_entry next_rejection(void *data, size_t room)
{
	struct fi_eq_err_entry error = {.err_data = data, .err_data_size = room};
	uint32_t number;

	reject_next("too busy", 8);
	assert_int_equal(cm_next(client.eq, &number, &event), -FI_EAVAIL);
	assert_int_equal(fi_eq_readerr(client.eq, &error, 0), sizeof(error));
	assert_int_equal(error.err, FI_ECONNREFUSED);
	return error;
}

/* Without a buffer of the caller, the provider's. */
MEET(data_of_a_rejection_is_cut_to_the_callers_buffer)
{
	char data[8] = "";
	struct fi_eq_err_entry error;

	one = dial(NULL, 0);
	error = next_rejection(data, 3);
	assert_ptr_equal(error.err_data, data);
	assert_int_equal(error.err_data_size, 3);
	assert_string_equal(data, "too");
	close_one();

	one = dial(NULL, 0);
	error = next_rejection(NULL, 0);
	assert_int_equal(error.err_data_size, 8);
	assert_memory_equal(error.err_data, "too busy", 8);
}

/* fi_cq(3): a read with count 0 --------------------------------------------------------------- */

static void expect_each_read_of_none(ssize_t wanted)
{
	uint64_t begin_ns = queue_now_ns();
	fi_addr_t source;

	assert_int_equal(fi_cq_read(pair.b.rx_cq, NULL, 0), wanted);
	assert_int_equal(fi_cq_readfrom(pair.b.rx_cq, NULL, 0, &source), wanted);
	assert_int_equal(fi_cq_sread(pair.b.rx_cq, NULL, 0, NULL, 20000), wanted);
	assert_int_equal(fi_cq_sreadfrom(pair.b.rx_cq, NULL, 0, &source, NULL, 20000), wanted);
	assert_true(queue_now_ns() - begin_ns < 10 * PLX_NS_PER_S);
}

PAIR(reading_none_of_an_empty_queue_returns_0_at_once)
{
	skip_libfabric("returns -FI_EAGAIN, and sleeps in fi_cq_sread");
	expect_each_read_of_none(0);
}

PAIR(reading_none_leaves_the_completion)
{
	uint64_t begin_ns = queue_now_ns();
	char room[8];

	post(&pair.b, room, sizeof(room), 7);
	assert_fi_works(fi_send(pair.a.ep, "hello", 6, NULL, 0, CONTEXT(9)));
	expect_sent(&pair.a, 9);
	while (trywait(&pair.b, pair.b.rx_cq) == 0)
		assert_false(is_late(begin_ns));
	expect_each_read_of_none(0);
	expect_received(&pair.b, 7, 6);
}

PAIR(reading_none_reports_an_error_that_is_first)
{
	char room[4];

	skip_libfabric("returns 0 if the first completion is an error");
	post(&pair.b, room, sizeof(room), 7);
	assert_fi_works(fi_cancel(&pair.b.ep->fid, CONTEXT(7)));
	expect_each_read_of_none(-FI_EAVAIL);
	assert_int_equal(cq_wait_error(pair.b.rx_cq, NULL).err, FI_ECANCELED);
	expect_each_read_of_none(0);
}

TESTED_MAIN()
