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

/* As lib/fabric configures its domains. */
static void gather(struct fid_domain *domain)
{
	((struct tcp_domain *)domain)->gathers = true;
}

static int setup_gathering(void **state)
{
	return open_with((struct pair_attr){.wait_obj = FI_WAIT_FD, .prepare = gather});
}

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

TEST(a_message_that_has_arrived_prevents_sleep, set_up_to_wait)
{
	static void (*const ways[])(struct side *) = {make_hot, leave, cool_down};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(ways); i++) {
		post(b, in, sizeof(in), 1);
		ways[i](b);
		speak(a);
		while (trywait(b, b->rx_cq) == 0) /* until it has passed through the kernel */
			assert_true(is_woken(&b->rx_cq->fid, WAKE_MS));
		expect_received(b, 1, 8);
	}
}
PLX_TEST_AGAIN(a_message_that_has_arrived_prevents_sleep, set_up_to_wait_two_cqs, tear_down)

/* Each part of a message wakes the queue, and it sleeps again afterwards. */
TEST(the_rest_of_a_message_wakes_the_receiver, set_up_to_wait)
{
	uint64_t word = wire_word(WIRE_MESSAGE, 0, 8);
	int fd = tcp_of(a)->base.source.fd;
	uint8_t frame[16] = "........hear me";

	memcpy(frame, &word, sizeof(word));
	post(b, in, sizeof(in), 1);
	for (size_t i = 0; i < sizeof(frame); i++) {
		go_to_sleep(b, b->rx_cq);
		assert_int_equal(send(fd, frame + i, 1, 0), 1);
		assert_true(is_woken(&b->rx_cq->fid, WAKE_MS));
	}
	expect_received(b, 1, 8);
	assert_string_equal(in, "hear me");
}

/* It waits for a receive; nothing can be done before one is posted. */
TEST(a_message_without_a_receive_does_not_prevent_sleep, set_up_to_wait)
{
	speak(a);
	until(tcp_of(b)->base.starved, fi_cq_read(b->rx_cq, NULL, 0));
	go_to_sleep(b, b->rx_cq);
	assert_false(is_woken(&b->rx_cq->fid, 0));
	post(b, in, sizeof(in), 1);
	assert_int_equal(trywait(b, b->rx_cq), -FI_EAGAIN);
	expect_received(b, 1, 8);
}

TEST(a_disconnect_wakes_the_receiver, set_up_to_wait)
{
	union cm_event event;

	post(b, in, sizeof(in), 1);
	leave(b);
	go_to_sleep(b, b->rx_cq);
	side_close_ep(a);
	assert_true(is_woken(&b->rx_cq->fid, WAKE_MS));
	cm_wait(b->eq, FI_SHUTDOWN, &event);
	assert_int_equal(end_complete(b->rx_cq).err, FI_ECANCELED);
	cm_expect_nothing(b->eq);
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

TEST(room_to_send_wakes_either_queue, set_up_to_wait_two_cqs)
{
	room_to_send_wakes(a->tx_cq);
	leave(a);
	room_to_send_wakes(a->rx_cq);
}

TEST(queued_bytes_are_sent_before_a_sleep, setup_gathering)
{
	struct iovec iov = {"hear me", 8};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1};

	for (int i = 0; i < 4; i++) {
		post(b, in, sizeof(in), 1);
		assert_int_equal(fi_sendmsg(a->ep, &msg, i & 1 ? FI_MORE | FI_INJECT : FI_MORE), 0);
		assert_int_equal(tcp_of(a)->queued_bytes, WIRE_FRAME_BYTES + 8);
		trywait(a, a->rx_cq);
		assert_int_equal(tcp_of(a)->queued_bytes, 0);
		expect_received(b, 1, 8);
		expect_sent(a, 0);
	}
}

/* Two queues ---------------------------------------------------------------------------------- */

/* An answer arrives on the receive queue, and completes in the send queue. */
TEST(an_answer_to_a_read_wakes_the_send_queue, set_up_to_wait_two_cqs)
{
	static char memory[8] = "source", into[8];
	struct fid_mr *mr;
	struct fi_cq_data_entry entry;

	assert_int_equal(fi_mr_reg(b->domain, memory, 8, FI_REMOTE_READ, 0, 7, 0, &mr, NULL), 0);
	cool_down(a);
	assert_int_equal(fi_read(a->ep, into, 8, NULL, 0, 0, 7, CONTEXT(3)), 0);
	go_to_sleep(a, a->tx_cq);
	for (int i = 0; i < 100; i++)
		fi_cq_read(b->rx_cq, NULL, 0);
	assert_true(is_woken(&a->tx_cq->fid, WAKE_MS));
	assert_int_equal(fi_cq_sread(a->tx_cq, &entry, 1, NULL, WAKE_MS), 1);
	assert_ptr_equal(entry.op_context, CONTEXT(3));
	assert_string_equal(into, "source");
	assert_int_equal(fi_close(&mr->fid), 0);
}

static void wait_for_bytes(struct side *end)
{
	struct pollfd pollfd = {.fd = tcp_of(end)->base.source.fd, .events = POLLIN};

	until(poll(&pollfd, 1, 0) == 1, fi_cq_read(end == a ? b->rx_cq : a->rx_cq, NULL, 0));
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

TEST(unread_send_completions_do_not_keep_a_receiver_awake, set_up_to_wait_two_cqs)
{
	struct fi_cq_data_entry entry;

	post(b, in, sizeof(in), 1);
	assert_int_equal(fi_send(a->ep, "hear me", 8, NULL, 0, CONTEXT(5)), 0);
	go_to_sleep(a, a->rx_cq);
	assert_int_equal(trywait(a, a->tx_cq), -FI_EAGAIN);
	assert_int_equal(fi_cq_read(a->tx_cq, &entry, 1), 1);
	go_to_sleep(a, a->tx_cq);
	expect_received(b, 1, 8);
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

TEST(a_signal_prevents_one_sleep, set_up_to_wait)
{
	make_hot(b);
	go_to_sleep(b, b->rx_cq);
	assert_int_equal(fi_cq_signal(b->rx_cq), 0);
	assert_true(is_woken(&b->rx_cq->fid, 0));
	assert_int_equal(trywait(b, b->rx_cq), -FI_EAGAIN);
	go_to_sleep(b, b->rx_cq);
	assert_false(is_woken(&b->rx_cq->fid, 0));
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

static void *signal_later(void *arg)
{
	poll(NULL, 0, 20);
	fi_cq_signal(arg);
	return NULL;
}

TEST(a_signal_wakes_a_sleeper, set_up_to_wait)
{
	struct fi_cq_data_entry entry;
	pthread_t thread;

	make_hot(b);
	assert_int_equal(pthread_create(&thread, NULL, signal_later, b->rx_cq), 0);
	assert_int_equal(fi_cq_sread(b->rx_cq, &entry, 1, NULL, -1), -FI_EAGAIN);
	pthread_join(thread, NULL);
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
static int make_socket(void)
{
	int fd = socket_with_bbr(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!congestion_leave_bbr(fd)) {
		close(fd);
		skip();
	}
	expect_congestion(fd, "reno");
	return fd;
}

PLX_TEST_WITH(connections_within_a_host_use_reno_instead_of_bbr, setup_bbr, teardown_bbr)
{
	close(make_socket());
	pair_open(&pair, &(struct pair_attr){0});
	expect_congestion(tcp_of(a)->base.source.fd, "reno");
	expect_congestion(tcp_of(b)->base.source.fd, "reno");
	pair_close(&pair);
}

PLX_TEST_WITH(a_connection_to_another_host_keeps_bbr, setup_bbr, teardown_bbr)
{
	struct sockaddr_storage peer = {0};
	struct sockaddr_in *four = (struct sockaddr_in *)&peer;
	int fd = make_socket();

	four->sin_family = AF_INET;
	inet_pton(AF_INET, "192.0.2.1", &four->sin_addr);
	congestion_return_to_bbr(fd, &peer);
	expect_congestion(fd, "bbr");
	close(fd);
}

PLX_TEST(other_congestion_controls_stay)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
	assert_false(congestion_leave_bbr(fd));
	expect_congestion(fd, "reno");
	close(fd);
}

PLX_TEST_MAIN()
