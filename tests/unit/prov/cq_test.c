/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: what fi_cq(3) promises about reads and waits, and flags that calls lack. */
#include "pair.h"

#include <rdma/fi_rma.h>
#include <signal.h>
#include <time.h>

#define TEST(name) PLX_TEST_WITH(name, set_up_to_wait, tear_down)

/* A read with count 0 -------------------------------------------------------------------------- */

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

TEST(reading_none_returns_at_once_and_leaves_the_completion)
{
	char room[8];

	expect_each_read_of_none(0);
	post(&pair.b, room, sizeof(room), 7);
	assert_fi_works(fi_send(pair.a.ep, "hello", 6, NULL, 0, CONTEXT(9)));
	expect_sent(&pair.a, 9);
	expect_each_read_of_none(0);
	expect_received(&pair.b, 7, 6);
	post(&pair.b, room, sizeof(room), 7);
	assert_fi_works(fi_cancel(&pair.b.ep->fid, CONTEXT(7)));
	expect_each_read_of_none(-FI_EAVAIL); /* nor are errors taken */
	expect_cancelled(pair.b.rx_cq, CONTEXT(7));
}

/* Waits ---------------------------------------------------------------------------------------- */

#define WAKE_MS 30000 /* at most; at once unless the host is busy */

TEST(a_blocking_read_waits_for_its_timeout)
{
	uint64_t begin_ns = queue_now_ns();
	struct fi_cq_data_entry entry;

	assert_int_equal(fi_cq_sread(pair.b.rx_cq, &entry, 1, NULL, 30), -FI_EAGAIN);
	assert_true(queue_now_ns() - begin_ns >= 29 * PLX_NS_PER_MS);
	assert_int_equal(fi_cq_sread(pair.b.rx_cq, &entry, 1, NULL, 0), -FI_EAGAIN);
}

TEST(a_blocking_read_returns_what_has_completed)
{
	struct fi_cq_data_entry entry;
	char room[8];

	post(&pair.b, room, sizeof(room), 1);
	assert_fi_works(fi_inject(pair.a.ep, "hear me", 8, 0));
	assert_int_equal(fi_cq_sread(pair.b.rx_cq, &entry, 1, NULL, WAKE_MS), 1);
	assert_ptr_equal(entry.op_context, CONTEXT(1));
	post(&pair.b, room, sizeof(room), 2);
	assert_fi_works(fi_cancel(&pair.b.ep->fid, CONTEXT(2)));
	assert_int_equal(fi_cq_sread(pair.b.rx_cq, &entry, 1, NULL, WAKE_MS), -FI_EAVAIL);
	expect_cancelled(pair.b.rx_cq, CONTEXT(2));
}

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

TEST(a_signal_ends_a_wait)
{
	timer_t timer = signal_often();
	struct fi_cq_data_entry entry;
	union cm_event event;
	uint32_t number;
	fi_addr_t source;

	assert_int_equal(fi_cq_sread(pair.b.rx_cq, &entry, 1, NULL, -1), -FI_EAGAIN);
	assert_int_equal(fi_cq_sreadfrom(pair.b.rx_cq, &entry, 1, &source, NULL, -1), -FI_EAGAIN);
	assert_int_equal(fi_eq_sread(pair.a.eq, &number, &event, sizeof(event), -1, 0), -FI_EAGAIN);
	timer_delete(timer);
}

/* Flags that a call lacks --------------------------------------------------------------------- */

TEST(operations_refuse_unknown_flags)
{
	static const uint64_t unknown[] = {FI_MULTI_RECV, FI_FENCE, FI_COMMIT_COMPLETE,
					   UINT64_C(1) << 63};
	struct iovec piece = {(char[8]){0}, 8};
	struct fi_rma_iov remote = {.len = 8};
	struct fi_msg msg = {.msg_iov = &piece, .iov_count = 1};
	struct fi_msg_rma access = {
		.msg_iov = &piece, .iov_count = 1, .rma_iov = &remote, .rma_iov_count = 1};

	for (size_t i = 0; i < PLX_ARRAY_LEN(unknown); i++) {
		uint64_t flags = unknown[i] | FI_COMPLETION;

		assert_int_equal(fi_sendmsg(pair.a.ep, &msg, flags), -FI_EBADFLAGS);
		assert_int_equal(fi_recvmsg(pair.b.ep, &msg, flags), -FI_EBADFLAGS);
		if (!tested_has_rma())
			continue;
		assert_int_equal(fi_writemsg(pair.a.ep, &access, flags), -FI_EBADFLAGS);
		assert_int_equal(fi_readmsg(pair.a.ep, &access, flags), -FI_EBADFLAGS);
	}
	assert_int_equal(fi_recvmsg(pair.b.ep, &msg, FI_INJECT), -FI_EBADFLAGS);
}

TEST(reads_of_queues_refuse_unknown_flags)
{
	struct fi_eq_err_entry event_error = {0};
	struct fi_cq_err_entry error = {0};
	union cm_event event;
	uint32_t number;

	assert_int_equal(fi_eq_read(pair.a.eq, &number, &event, sizeof(event), FI_MORE),
			 -FI_EBADFLAGS);
	assert_int_equal(fi_eq_sread(pair.a.eq, &number, &event, sizeof(event), -1, FI_MORE),
			 -FI_EBADFLAGS);
	assert_int_equal(fi_eq_readerr(pair.a.eq, &event_error, FI_MORE), -FI_EBADFLAGS);
	assert_int_equal(fi_eq_write(pair.a.eq, FI_NOTIFY, &error, 1, FI_MORE), -FI_EBADFLAGS);
	assert_int_equal(fi_cq_readerr(pair.a.rx_cq, &error, FI_PEEK), -FI_EBADFLAGS);
}

TEST(a_completion_queue_refuses_unknown_flags_and_conditions)
{
	enum fi_cq_wait_cond none = (enum fi_cq_wait_cond)99;
	const struct {
		struct fi_cq_attr attr;
		int rc;
	} rows[] = {
		{{.flags = FI_WRITE}, -FI_EBADFLAGS},
		{{.flags = UINT64_C(1) << 40}, -FI_EBADFLAGS},
		{{.flags = FI_AFFINITY}, 0},
		{{.wait_obj = FI_WAIT_FD, .wait_cond = none}, -FI_EINVAL},
		{{.wait_obj = FI_WAIT_FD, .wait_cond = FI_CQ_COND_THRESHOLD}, 0},
		{{.wait_obj = FI_WAIT_NONE, .wait_cond = none}, 0},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct fi_cq_attr attr = rows[i].attr;
		struct fid_cq *cq;

		assert_int_equal(fi_cq_open(pair.a.domain, &attr, &cq, NULL), rows[i].rc);
		if (rows[i].rc == 0)
			assert_fi_works(fi_close(&cq->fid));
	}
}

TESTED_MAIN()
