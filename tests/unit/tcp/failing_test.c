/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of the kernel that fail while connections are made, and while sockets enter epoll sets. */
#include "faults.h"

static char in[16];

static int setup(void **state)
{
	faults_begin();
	pair_open(&pair, &(struct pair_attr){.wait_obj = FI_WAIT_FD});
	return 0;
}

static int teardown(void **state)
{
	faults_end();
	pair_close(&pair);
	return 0;
}

static void one_message(void)
{
	post(b, in, sizeof(in), 1);
	assert_int_equal(fi_inject(a->ep, "hear me", 8, 0), 0);
	expect_received(b, 1, 8);
}

static void an_endpoint_that_could_not_connect_may_try_again(void **state)
{
	static const int errors[] = {EINTR, ENOBUFS, ECONNREFUSED, EADDRNOTAVAIL};
	struct fid_ep *ep = side_make_ep(a, a->info, &pair.attr);

	for (unsigned i = 0; i < PLX_ARRAY_LEN(errors); i++) {
		connect_errno = errors[i];
		assert_int_equal(fi_connect(ep, a->info->dest_addr, NULL, 0), -errors[i]);
	}
	connect_errno = 0;
	assert_int_equal(fi_connect(ep, a->info->dest_addr, NULL, 0), 0);
	assert_int_equal(fi_close(&ep->fid), 0);
	one_message();
}

static void a_listener_without_descriptors_pauses_and_others_go_on(void **state)
{
	struct fid_ep *first = a->ep;
	struct fi_eq_err_entry error;
	union cm_event event;
	uint64_t begin_ns;

	a->ep = side_make_ep(a, a->info, &pair.attr);
	accept_errno = EMFILE;
	accepts = 0;
	begin_ns = queue_now_ns();
	assert_int_equal(fi_connect(a->ep, a->info->dest_addr, NULL, 0), 0);
	error = cm_wait_error(b->eq);
	assert_int_equal(error.err, EMFILE);
	assert_ptr_equal(error.fid, &pair.pep->fid);
	assert_int_equal(fi_inject(first, "hear me", 8, 0), 0);
	post(b, in, sizeof(in), 1);
	expect_received(b, 1, 8);
	assert_int_equal(accepts, 1);
	accept_errno = 0;
	cm_wait(b->eq, FI_CONNREQ, &event);
	assert_true(queue_now_ns() - begin_ns >= 900 * PLX_NS_PER_MS);
	assert_int_equal(fi_reject(pair.pep, event.cm.info->handle, NULL, 0), 0);
	fi_freeinfo(event.cm.info);
	assert_int_equal(fi_close(&first->fid), 0);
}

/* A blocked socket that is in no set is tried each poll, and nobody sleeps over it. */
static void a_socket_that_cannot_enter_the_set_is_polled(void **state)
{
	static uint8_t out[64 << 10], into[sizeof(out)];
	unsigned sent = 0;

	poll_heat(tcp_of(a));
	read_until(a->rx_cq, !tcp_of(a)->in_set);
	set_errno = ENOSPC;
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
	set_errno = 0;
	go_to_sleep(a, a->rx_cq);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_endpoint_that_could_not_connect_may_try_again),
		TEST(a_listener_without_descriptors_pauses_and_others_go_on),
		TEST(a_socket_that_cannot_enter_the_set_is_polled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
