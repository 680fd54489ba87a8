/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping on a completion queue: it is refused while there is work, and any later work wakes the
 * queue. And congestion control: connections within a host do not use BBR. */
#include "ends.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <unistd.h>

#define WAKE_MS 30000 /* at most; at once unless the host is busy */

static char in[4096];

static void speak(struct side *end)
{
	assert_int_equal(fi_inject(end->ep, "hear me", 8, 0), 0);
}

static void make_hot(struct side *end)
{
	poll_heat(tcp_of(end));
	assert_int_equal(tcp_of(end)->base.listed, LISTED_HOT);
}

/* Poll until its socket has left the set. */
static void leave(struct side *end)
{
	make_hot(end);
	for (int i = 0; i < 2000 && tcp_of(end)->in_set; i++)
		fi_cq_read(end->rx_cq, NULL, 0);
	assert_false(tcp_of(end)->in_set);
}

/* Poll until it is only read when the set reports it. */
static void cool_down(struct side *end)
{
	for (int i = 0; i < 20000 && tcp_of(end)->base.listed == LISTED_HOT; i++)
		fi_cq_read(end->rx_cq, NULL, 0);
	assert_int_not_equal(tcp_of(end)->base.listed, LISTED_HOT);
	assert_true(tcp_of(end)->in_set);
}

/* Messages ------------------------------------------------------------------------------------ */

static void heard_after(void (*prepare)(struct side *))
{
	post(b, in, sizeof(in), 1);
	prepare(b);
	go_to_sleep(b, b->rx_cq);
	assert_false(is_woken(&b->rx_cq->fid, 0));
	speak(a);
	assert_true(is_woken(&b->rx_cq->fid, WAKE_MS));
	expect_received(b, 1, 8);
}

#define TEST(name, up) PLX_TEST_WITH(name, up, tear_down)

TEST(a_message_wakes_the_receiver, set_up_to_wait)
{
	heard_after(make_hot);
	heard_after(leave);
	heard_after(cool_down);
	heard_after(leave);
	cool_down(b);
	heard_after(make_hot);
}
PLX_TEST_AGAIN(a_message_wakes_the_receiver, set_up_to_wait_two_cqs, tear_down)

/* It waits for a receive; nothing can be done before one is posted. */
TEST(a_message_without_a_receive_does_not_prevent_sleep, set_up_to_wait)
{
	speak(a);
	wait_doing(tcp_of(b)->base.starved, fi_cq_read(b->rx_cq, NULL, 0));
	go_to_sleep(b, b->rx_cq);
	assert_false(is_woken(&b->rx_cq->fid, 0));
	post(b, in, sizeof(in), 1);
	assert_int_equal(trywait(b, b->rx_cq), -FI_EAGAIN);
	expect_received(b, 1, 8);
}

/* Sends --------------------------------------------------------------------------------------- */

/* Until the socket has no room; each message is sent from the caller's memory. */
static unsigned fill(struct side *end)
{
	static uint8_t out[64 << 10];
	unsigned sent = 0;

	while (fi_send(end->ep, out, sizeof(out), NULL, 0, CONTEXT(sent)) == 0)
		sent++;
	assert_true(tcp_of(end)->is_blocked);
	return sent;
}

static unsigned posted, received;

/* Look for a message once, with a receive posted for it unless all have come. */
static void receive_up_to(unsigned sent)
{
	static uint8_t large[64 << 10];
	struct fi_cq_data_entry entry;

	if (posted == received && posted < sent)
		post(b, large, sizeof(large), posted++);
	received += fi_cq_read(b->rx_cq, &entry, 1) == 1;
}

/* The sleeping end sends all of it as its peer reads. */
static void room_to_send_wakes(struct fid_cq *cq)
{
	unsigned sent = fill(a), done = 0;
	struct fi_cq_data_entry entry;

	posted = received = 0;
	while (done < sent || received < sent) {
		receive_up_to(sent);
		if (fi_cq_read(a->tx_cq, &entry, 1) == 1)
			assert_ptr_equal(entry.op_context, CONTEXT(done++));
		else if (done < sent && trywait(a, cq) == 0)
			while (!is_woken(&cq->fid, 0) && received < sent)
				receive_up_to(sent);
	}
	assert_int_equal(done, sent);
	assert_int_equal(received, sent);
}

TEST(room_to_send_wakes_in_each_state_of_the_socket, set_up_to_wait)
{
	room_to_send_wakes(a->tx_cq);
	leave(a);
	room_to_send_wakes(a->tx_cq);
	cool_down(a);
	room_to_send_wakes(a->tx_cq);
}

/* Two queues ---------------------------------------------------------------------------------- */

static void wait_for_bytes(struct side *end)
{
	struct pollfd pollfd = {.fd = tcp_of(end)->base.source.fd, .events = POLLIN};

	wait_doing(poll(&pollfd, 1, 0) == 1, fi_cq_read(end == a ? b->rx_cq : a->rx_cq, NULL, 0));
}

/* Whether the send queue is armed alone, first, or last. */
TEST(the_completion_of_a_read_prevents_sleep, set_up_to_wait_two_cqs)
{
	static char memory[8] = "source", into[8];
	struct fid *fids[] = {&a->rx_cq->fid, &a->tx_cq->fid, &a->rx_cq->fid};
	struct fid_mr *mr;
	struct fi_cq_data_entry entry;

	assert_int_equal(fi_mr_reg(b->domain, memory, 8, FI_REMOTE_READ, 0, 7, 0, &mr, NULL), 0);
	for (int i = 0; i < 6; i++) {
		cool_down(a);
		if (i & 1)
			leave(a);
		assert_int_equal(fi_read(a->ep, into, 8, NULL, 0, 0, 7, CONTEXT(i)), 0);
		wait_for_bytes(a);
		for (int j = 0; j < 4; j++)
			assert_int_equal(fi_trywait(a->fabric, fids + (i > 1), i < 4 ? 2 : 1),
					 -FI_EAGAIN);
		assert_int_equal(fi_cq_read(a->tx_cq, &entry, 1), 1);
		assert_ptr_equal(entry.op_context, CONTEXT(i));
	}
	assert_int_equal(fi_close(&mr->fid), 0);
}

/* fi_cq_signal -------------------------------------------------------------------------------- */

static void a_signal_ends_a_sleep_that_begins_after_it(struct side *end)
{
	uint64_t begin_ns = queue_now_ns();
	struct fi_cq_data_entry entry;

	assert_int_equal(fi_cq_signal(end->rx_cq), 0);
	assert_int_equal(fi_cq_sread(end->rx_cq, &entry, 1, NULL, 2 * WAKE_MS), -FI_EAGAIN);
	assert_true(queue_now_ns() - begin_ns < WAKE_MS * PLX_NS_PER_MS);
}

TEST(a_signal_ends_one_sleep, set_up_to_wait)
{
	struct fi_cq_data_entry entry;
	uint64_t begin_ns;

	make_hot(b);
	for (int i = 0; i < 20; i++) /* whether or not that poll checks the set */
		a_signal_ends_a_sleep_that_begins_after_it(b);
	cool_down(b);
	a_signal_ends_a_sleep_that_begins_after_it(b);
	begin_ns = queue_now_ns();
	assert_int_equal(fi_cq_sread(b->rx_cq, &entry, 1, NULL, 20), -FI_EAGAIN);
	assert_true(queue_now_ns() - begin_ns >= 20 * PLX_NS_PER_MS);
}

/* Arming the other queue takes the signal out of the first one's descriptor. */
TEST(a_signal_of_one_queue_is_not_lost_to_another, set_up_to_wait_two_cqs)
{
	struct fid *both[] = {&b->rx_cq->fid, &b->tx_cq->fid};

	go_to_sleep(b, b->tx_cq);
	go_to_sleep(b, b->rx_cq);
	assert_int_equal(fi_cq_signal(b->rx_cq), 0);
	assert_int_equal(trywait(b, b->tx_cq), -FI_EAGAIN);
	assert_int_equal(trywait(b, b->tx_cq), 0); /* the signal is not its own */
	assert_int_equal(fi_trywait(b->fabric, both, 2), -FI_EAGAIN);
	assert_int_equal(fi_trywait(b->fabric, both, 2), 0);
}

/* Congestion control ----------------------------------------------------------------------------
 */

/* As on a host that defaults to BBR. */
static int socket_with_bbr(int family, int type, int protocol)
{
	int fd = socket(family, type, protocol);

	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "bbr", 3);
	return fd;
}

static void expect_congestion(int fd, const char *expected)
{
	char name[16 + 1] = "";
	socklen_t length = 16;

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length), 0);
	assert_string_equal(name, expected);
}

static int setup_bbr(void **state)
{
	tcp_sys.socket = socket_with_bbr;
	return 0;
}

static int teardown_bbr(void **state)
{
	tcp_sys.socket = socket;
	return 0;
}

/* This kernel may lack BBR. */
PLX_TEST_WITH(only_connections_within_a_host_leave_bbr_for_reno, setup_bbr, teardown_bbr)
{
	int fd = socket_with_bbr(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201)};
	struct sockaddr_storage peer = {0};
	bool has_bbr = congestion_leave_bbr(fd);

	if (has_bbr) {
		expect_congestion(fd, "reno");
		memcpy(&peer, &four, sizeof(four));
		congestion_return_to_bbr(fd, &peer);
		expect_congestion(fd, "bbr");
	}
	close(fd);
	if (!has_bbr)
		skip();
	pair_open(&pair, &(struct pair_attr){0});
	expect_congestion(tcp_of(a)->base.source.fd, "reno");
	expect_congestion(tcp_of(b)->base.source.fd, "reno");
	pair_close(&pair);
}

PLX_TEST_MAIN()
