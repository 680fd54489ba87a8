/* SPDX-License-Identifier: BSD-3-Clause */
/* What libfabric's man pages promise to every program: fi_eq(3), fi_cq(3), fi_msg(3), fi_rma(3). It
 * runs for libfabric's own provider too (tested.h). */
#include "pair.h"
#include "prov_meet.h"

#include <rdma/fi_rma.h>
#include <time.h>

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
	while (trywait(&pair.b, pair.b.rx_cq) == 0) {
		(void)fi_cq_read(pair.b.rx_cq, NULL, 0); /* libfabric 1.17 takes data in reads */
		assert_false(is_late(begin_ns));
	}
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

/* A signal ends a wait ------------------------------------------------------------------------ */

static void on_signal(int number)
{
}

/* Signals this process every 20 ms, since the first may come before the wait. */
static timer_t signal_often(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct sigevent signal = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec often = {.it_value.tv_nsec = 20 * PLX_NS_PER_MS,
				   .it_interval.tv_nsec = 20 * PLX_NS_PER_MS};
	timer_t timer;

	sigaction(SIGUSR1, &action, NULL);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &signal, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
	return timer;
}

PAIR(a_signal_ends_a_wait_for_completions)
{
	struct fi_cq_data_entry entry;
	fi_addr_t source;
	timer_t timer;

	skip_libfabric("returns -FI_EINTR");
	timer = signal_often();
	assert_int_equal(fi_cq_sread(pair.b.rx_cq, &entry, 1, NULL, -1), -FI_EAGAIN);
	assert_int_equal(fi_cq_sreadfrom(pair.b.rx_cq, &entry, 1, &source, NULL, -1), -FI_EAGAIN);
	timer_delete(timer);
}

PAIR(a_signal_ends_a_wait_for_events)
{
	uint32_t number;
	timer_t timer;

	skip_libfabric("returns -FI_EINTR");
	timer = signal_often();
	assert_int_equal(fi_eq_sread(pair.a.eq, &number, &event, sizeof(event), -1, 0), -FI_EAGAIN);
	timer_delete(timer);
}

/* Flags that a call lacks --------------------------------------------------------------------- */

static const uint64_t no_flags_of_an_operation[] = {
	FI_MULTI_RECV,      FI_PEEK,           FI_TRIGGER,        FI_FENCE,
	FI_COMMIT_COMPLETE, FI_MATCH_COMPLETE, FI_MULTICAST,      FI_CLAIM,
	FI_DISCARD,         UINT64_C(1) << 22, UINT64_C(1) << 32, UINT64_C(1) << 63,
};

static struct iovec piece = {(char[8]){0}, 8};

static void expect_nothing_was_sent(void)
{
	char room[8];

	post(&pair.b, room, sizeof(room), 1);
	assert_fi_works(fi_send(pair.a.ep, "last", 5, NULL, 0, CONTEXT(2)));
	expect_received(&pair.b, 1, 5);
	expect_sent(&pair.a, 2);
}

PAIR(a_message_with_unknown_flags_is_refused)
{
	struct fi_msg msg = {.msg_iov = &piece, .iov_count = 1};

	skip_libfabric("ignores flags that it lacks");
	for (size_t i = 0; i < PLX_ARRAY_LEN(no_flags_of_an_operation); i++) {
		uint64_t flags = no_flags_of_an_operation[i] | FI_COMPLETION;

		assert_int_equal(fi_sendmsg(pair.a.ep, &msg, flags), -FI_EBADFLAGS);
		assert_int_equal(fi_recvmsg(pair.b.ep, &msg, flags), -FI_EBADFLAGS);
	}
	assert_int_equal(fi_recvmsg(pair.b.ep, &msg, FI_INJECT), -FI_EBADFLAGS);
	assert_int_equal(fi_recvmsg(pair.b.ep, &msg, FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
	if (!(pair.a.info->tx_attr->op_flags & FI_DELIVERY_COMPLETE) && tested_has_rma())
		assert_int_equal(fi_sendmsg(pair.a.ep, &msg, FI_DELIVERY_COMPLETE), -FI_EBADFLAGS);
	expect_nothing_was_sent();
}

PAIR(an_access_with_unknown_flags_is_refused)
{
	struct fi_rma_iov remote = {.len = 8};
	struct fi_msg_rma msg = {
		.msg_iov = &piece, .iov_count = 1, .rma_iov = &remote, .rma_iov_count = 1};

	skip_libfabric("ignores flags that it lacks");
	if (!tested_has_rma())
		skip();
	for (size_t i = 0; i < PLX_ARRAY_LEN(no_flags_of_an_operation); i++) {
		uint64_t flags = no_flags_of_an_operation[i] | FI_COMPLETION;

		assert_int_equal(fi_writemsg(pair.a.ep, &msg, flags), -FI_EBADFLAGS);
		assert_int_equal(fi_readmsg(pair.a.ep, &msg, flags), -FI_EBADFLAGS);
	}
	assert_int_equal(fi_readmsg(pair.a.ep, &msg, FI_INJECT), -FI_EBADFLAGS);
	assert_int_equal(fi_readmsg(pair.a.ep, &msg, FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
	expect_nothing_was_sent();
}

PAIR(messages_take_the_flags_of_the_man_page)
{
	char room[8];
	struct iovec to = {room, sizeof(room)};
	struct fi_msg send = {.msg_iov = &piece, .iov_count = 1, .context = CONTEXT(2), .data = 77};
	struct fi_msg receive = {.msg_iov = &to, .iov_count = 1, .context = CONTEXT(1)};
	uint64_t completion[] = {0, FI_INJECT, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE};

	for (size_t i = 0; i < PLX_ARRAY_LEN(completion); i++) {
		assert_fi_works(fi_recvmsg(pair.b.ep, &receive, FI_COMPLETION));
		assert_fi_works(fi_sendmsg(pair.a.ep, &send,
					   FI_COMPLETION | FI_REMOTE_CQ_DATA | completion[i]));
		assert_int_equal(cq_wait(pair.b.rx_cq, pair.a.tx_cq).data, 77);
		assert_ptr_equal(cq_wait(pair.a.tx_cq, pair.b.rx_cq).op_context, CONTEXT(2));
	}
	for (int i = 0; i < 2; i++)
		assert_fi_works(fi_recvmsg(pair.b.ep, &receive, FI_MORE | FI_TRANSMIT_COMPLETE));
	assert_fi_works(fi_sendmsg(pair.a.ep, &send, FI_MORE));
	assert_fi_works(fi_sendmsg(pair.a.ep, &send, 0));
	for (int i = 0; i < 2; i++)
		expect_received(&pair.b, 1, 8);
	for (int i = 0; i < 2; i++)
		expect_sent(&pair.a, 2);
}

PAIR(reads_of_queues_refuse_unknown_flags)
{
	struct fi_eq_err_entry event_error = {0};
	struct fi_cq_err_entry error = {0};
	uint32_t number;

	skip_libfabric("ignores flags that it lacks");
	assert_int_equal(fi_eq_read(pair.a.eq, &number, &event, sizeof(event), FI_MORE),
			 -FI_EBADFLAGS);
	assert_int_equal(fi_eq_sread(pair.a.eq, &number, &event, sizeof(event), -1, FI_MORE),
			 -FI_EBADFLAGS);
	assert_int_equal(fi_eq_readerr(pair.a.eq, &event_error, FI_MORE), -FI_EBADFLAGS);
	assert_int_equal(fi_eq_write(pair.a.eq, FI_NOTIFY, &error, 1, FI_MORE), -FI_EBADFLAGS);
	assert_int_equal(fi_cq_readerr(pair.a.rx_cq, &error, FI_PEEK), -FI_EBADFLAGS);
}

/* Opening ------------------------------------------------------------------------------------- */

/* libfabric's own provider gives -FI_EINVAL for flags. */
static void expect_bad_flags(int rc)
{
	assert_int_equal(rc, tested_is_ours() ? -FI_EBADFLAGS : -FI_EINVAL);
}

static int open_cq(struct fi_cq_attr attr)
{
	struct fid_cq *cq;
	int rc = fi_cq_open(client.domain, &attr, &cq, NULL);

	if (rc == 0)
		assert_fi_works(fi_close(&cq->fid));
	return rc;
}

MEET(a_completion_queue_refuses_unknown_flags_and_conditions)
{
	enum fi_cq_wait_cond none = (enum fi_cq_wait_cond)99;

	expect_bad_flags(open_cq((struct fi_cq_attr){.flags = FI_WRITE}));
	expect_bad_flags(open_cq((struct fi_cq_attr){.flags = UINT64_C(1) << 40}));
	assert_fi_works(open_cq((struct fi_cq_attr){.flags = FI_AFFINITY}));
	assert_int_equal(open_cq((struct fi_cq_attr){.wait_obj = FI_WAIT_FD, .wait_cond = none}),
			 -FI_EINVAL);
	assert_fi_works(open_cq(
		(struct fi_cq_attr){.wait_obj = FI_WAIT_FD, .wait_cond = FI_CQ_COND_THRESHOLD}));
	skip_libfabric("checks the condition without a wait object too");
	assert_fi_works(open_cq((struct fi_cq_attr){.wait_obj = FI_WAIT_NONE, .wait_cond = none}));
}

MEET(an_event_queue_refuses_unknown_flags)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_FD, .flags = FI_SEND};
	struct fid_eq *eq;

	expect_bad_flags(fi_eq_open(client.fabric, &attr, &eq, NULL));
	attr.flags = FI_WRITE | (tested_is_ours() ? FI_AFFINITY : 0);
	assert_fi_works(fi_eq_open(client.fabric, &attr, &eq, NULL));
	assert_fi_works(fi_close(&eq->fid));
}

MEET(domains_and_endpoints_refuse_unknown_flags)
{
	struct fid_domain *domain;
	struct fid_ep *ep;

	assert_int_not_equal(fi_domain2(client.fabric, client.info, &domain, FI_MORE, NULL), 0);
	assert_int_not_equal(fi_endpoint2(client.domain, client.info, &ep, FI_MORE, NULL), 0);
	assert_fi_works(fi_endpoint(client.domain, client.info, &ep, NULL));
	assert_int_not_equal(fi_ep_bind(ep, &client.eq->fid, FI_SEND), 0);
	assert_int_not_equal(fi_ep_bind(ep, &client.cq->fid, FI_TRANSMIT | FI_MORE), 0);
	assert_fi_works(fi_close(&ep->fid));
}

TESTED_MAIN()
