/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls that fail while connections are made, and while sockets enter epoll sets. */
#include "faults.h"

#include "count.h"

static char in[16];

static int setup(void **state)
{
	faults_begin();
	return set_up_to_wait(state);
}

static int setup_two_cqs(void **state)
{
	faults_begin();
	return set_up_to_wait_two_cqs(state);
}

static int teardown(void **state)
{
	faults_end();
	return tear_down(state);
}

static void one_message(void)
{
	post(b, in, sizeof(in), 1);
	assert_int_equal(fi_inject(a->ep, "hear me", 8, 0), 0);
	expect_received(b, 1, 8);
}

#define TEST(name) PLX_TEST_WITH(name, setup, teardown)

TEST(an_endpoint_may_connect_again_after_a_failure)
{
	static const int errors[] = {EINTR, ENOBUFS, ECONNREFUSED, EADDRNOTAVAIL};
	struct fid_ep *ep = side_make_ep(a, a->info, &pair.attr);

	for (unsigned i = 0; i < PLX_ARRAY_LEN(errors); i++) {
		fail_call(SYS_CONNECT, errors[i], 0);
		assert_int_equal(fi_connect(ep, a->info->dest_addr, NULL, 0), -errors[i]);
	}
	fail_call(SYS_NONE, 0, 0);
	assert_int_equal(fi_connect(ep, a->info->dest_addr, NULL, 0), 0);
	assert_int_equal(fi_close(&ep->fid), 0);
	one_message();
}

TEST(a_listener_without_descriptors_closes_its_oldest_silent_connection)
{
	const struct prov_pep *pep = (struct prov_pep *)pair.pep;
	int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct fid_ep *second = side_make_ep(a, a->info, &pair.attr);
	union cm_event event;
	char byte;

	assert_int_equal(connect(silent, a->info->dest_addr, (socklen_t)a->info->dest_addrlen), 0);
	while (!pep->silent_count)
		cm_expect_nothing(b->eq);
	fail_call(SYS_ACCEPT, EMFILE, 1);
	assert_int_equal(fi_connect(second, a->info->dest_addr, NULL, 0), 0);
	cm_wait(b->eq, FI_CONNREQ, &event);
	assert_true(failing.fired);
	assert_int_equal(pep->ended[PLX_ADMIT_EVICTED], 1);
	assert_int_equal(recv(silent, &byte, 1, 0), 0);
	assert_int_equal(fi_reject(pair.pep, event.cm.info->handle, NULL, 0), 0);
	fi_freeinfo(event.cm.info);
	fail_call(SYS_NONE, 0, 0);
	close(silent);
	assert_int_equal(fi_close(&second->fid), 0);
	one_message();
}

/* A blocked socket that is in no set is retried each poll, and prevents sleeping. */
TEST(a_socket_that_cannot_enter_the_epoll_set_is_polled)
{
	static uint8_t out[64 << 10], into[sizeof(out)];
	unsigned sent = 0;

	poll_heat(tcp_of(a));
	wait_doing(!tcp_of(a)->in_set, fi_cq_read(a->rx_cq, NULL, 0));
	fail_call(SYS_ADD, ENOSPC, 0);
	while (fi_send(a->ep, out, sizeof(out), NULL, 0, CONTEXT(sent)) == 0)
		sent++;
	assert_true(tcp_of(a)->is_blocked && !tcp_of(a)->in_set);
	assert_int_equal(trywait(a, a->rx_cq), -FI_EAGAIN);
	for (unsigned i = 0; i < sent; i++) {
		post(b, into, sizeof(into), i);
		expect_received(b, i, sizeof(into));
		expect_sent(a, i);
	}
	assert_int_equal(trywait(a, a->rx_cq), -FI_EAGAIN);
	fail_call(SYS_NONE, 0, 0);
	go_to_sleep(a, a->rx_cq);
}

/* The kernel has no memory until then. */
static uint64_t memory_at_ns;
static unsigned refused_count;

static ssize_t send_without_memory(int fd, const void *buf, size_t length, int flags)
{
	if (queue_now_ns() >= memory_at_ns)
		return usual.send(fd, buf, length, flags);
	refused_count++;
	errno = ENOBUFS;
	return -1;
}

TEST(a_closing_endpoint_does_not_spin_while_the_kernel_has_no_memory)
{
	static const unsigned wait_ms = 20;

	memory_at_ns = queue_now_ns() + wait_ms * PLX_NS_PER_MS;
	refused_count = 0;
	tcp_sys.send = send_without_memory;
	post(b, in, sizeof(in), 1);
	assert_int_equal(fi_inject(a->ep, "hear me", 8, 0), 0);
	side_close_ep(a);
	assert_in_range(refused_count, 1, wait_ms + 3);
	expect_received(b, 1, 8);
}

/* Each call of a handshake fails once --------------------------------------------------------- */

/* A second connection, and the events of its ends. */
static struct {
	struct fid_ep *one, *two;
	bool one_connected, two_connected;
	bool one_ended, two_ended; /* or never was */
} second;

static void one_hears(void)
{
	struct fi_eq_err_entry error = {0};
	union cm_event event;
	uint32_t number;
	ssize_t got = fi_eq_read(a->eq, &number, &event, sizeof(event), 0);

	if (got == -FI_EAGAIN)
		return;
	if (got == -FI_EAVAIL) {
		assert_true(fi_eq_readerr(a->eq, &error, 0) > 0);
		assert_false(second.one_connected);
	}
	assert_ptr_equal(got == -FI_EAVAIL ? error.fid : event.cm.fid, &second.one->fid);
	second.one_connected |= got > 0 && number == FI_CONNECTED;
	second.one_ended |= got < 0 || number == FI_SHUTDOWN;
}

static void accept_it(struct fi_info *info)
{
	assert_null(second.two);
	second.two = side_make_ep(b, info, &pair.attr);
	fi_freeinfo(info);
	if (fi_accept(second.two, NULL, 0) == 0)
		return;
	assert_int_equal(fi_close(&second.two->fid), 0);
	second.two = NULL;
}

/* It accepts nothing for a second: pretend that has passed. */
static void end_pause(void)
{
	struct prov_deadline *resume = &((struct prov_pep *)pair.pep)->resume;

	assert_true(resume->at_ns);
	eq_clear_deadline((struct prov_eq *)b->eq, resume);
	resume->passed(resume);
}

static void two_hears(void)
{
	struct fi_eq_err_entry error = {0};
	union cm_event event;
	uint32_t number;
	ssize_t got = fi_eq_read(b->eq, &number, &event, sizeof(event), 0);

	if (got == -FI_EAGAIN)
		return;
	if (got == -FI_EAVAIL) {
		assert_true(fi_eq_readerr(b->eq, &error, 0) > 0);
		assert_ptr_equal(error.fid, &pair.pep->fid);
		end_pause();
	} else if (number == FI_CONNREQ) {
		accept_it(event.cm.info);
	} else {
		assert_ptr_equal(event.cm.fid, &second.two->fid);
		second.two_connected |= number == FI_CONNECTED;
		second.two_ended |= number == FI_SHUTDOWN;
	}
}

static bool is_listener_calm(void)
{
	const struct prov_pep *pep = (struct prov_pep *)pair.pep;
	struct pollfd pollfd = {.fd = pep->source.fd, .events = POLLIN};

	return poll(&pollfd, 1, 0) == 0 && !pep->silent_count && !pep->told_count;
}

static bool are_connected(void)
{
	return second.one_connected && second.two_connected && !second.one_ended &&
	       !second.two_ended;
}

static bool has_second_ended(void)
{
	return second.one_ended && (!second.two || second.two_ended);
}

static void connect_second(void)
{
	memset(&second, 0, sizeof(second));
	second.one = side_make_ep(a, a->info, &pair.attr);
	if (fi_connect(second.one, a->info->dest_addr, NULL, 0))
		second.one_ended = true;
	wait_doing(is_listener_calm() && (are_connected() || has_second_ended()), {
		one_hears();
		two_hears();
	});
}

static void talk_and_close_second(void)
{
	struct fid_ep *first_a = a->ep, *first_b = b->ep;

	a->ep = second.one;
	b->ep = second.two;
	if (are_connected())
		one_message();
	side_close_ep(a);
	side_close_ep(b);
	a->ep = first_a;
	b->ep = first_b;
}

/* Whether the connection succeeds although that call fails; the first connection lives, and another
 * one can be made. */
static void each_one_fails(enum sys_call call, int err, bool connects)
{
	int descriptors = count_descriptors();
	bool fired = true;

	for (unsigned at_call = 1; fired; at_call++) {
		fail_call(call, err, at_call);
		connect_second();
		fired = failing.fired;
		if (failing.call != SYS_SHUTDOWN && failing.call != SYS_CLOSE)
			fail_call(SYS_NONE, 0, 0);
		assert_int_equal(are_connected(), connects || !fired);
		talk_and_close_second();
		fired |= failing.fired;
		fail_call(SYS_NONE, 0, 0);
		assert_int_equal(count_descriptors(), descriptors);
		one_message();
		assert_true(fired || at_call > 1);
	}
}

TEST(each_call_of_a_handshake_may_fail)
{
	static const struct {
		enum sys_call call;
		int passes[9], ends[9]; /* errors after which it connects, and does not */
	} rows[] = {
		{SYS_SOCKET, {0}, {EMFILE, ENFILE, ENOBUFS, ENOMEM, EACCES}},
		{SYS_CONNECT, {0}, {EINTR, EAGAIN, ECONNREFUSED, ENETUNREACH, EADDRNOTAVAIL}},
		{SYS_ACCEPT,
		 {EINTR, EAGAIN, ECONNABORTED, EPROTO, EMFILE, ENFILE, ENOBUFS, ENOMEM},
		 {0}},
		{SYS_SEND, {0}, {EINTR, EAGAIN, ECONNRESET, EPIPE, ENOBUFS, ENOMEM, ETIMEDOUT}},
		{SYS_RECV, {EINTR, EAGAIN}, {ECONNRESET, ENOBUFS, ENOMEM, ETIMEDOUT, EHOSTUNREACH}},
		{SYS_ADD, {0}, {ENOSPC, ENOMEM}},
		{SYS_SHUTDOWN, {ENOTCONN}, {0}},
		{SYS_CLOSE, {EINTR, EIO}, {0}},
	};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		for (const int *err = rows[i].passes; *err; err++)
			each_one_fails(rows[i].call, *err, true);
		for (const int *err = rows[i].ends; *err; err++)
			each_one_fails(rows[i].call, *err, false);
	}
}
PLX_TEST_AGAIN(each_call_of_a_handshake_may_fail, setup_two_cqs, teardown)

PLX_TEST_MAIN()
