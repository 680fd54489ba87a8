/* SPDX-License-Identifier: BSD-3-Clause */
/* What has completed arrives, although its sender closes or exits before the peer reads it. */
#include "pair.h"

#include <sys/wait.h>

#define BYTES_MAX  (16 << 20) /* sent at most */
#define LENGTH_MIN 64
#define LENGTH_MAX 20000
#define WORDS_MAX  (BYTES_MAX / LENGTH_MIN + LENGTH_MAX)
#define VAIN_MAX   200 /* polls in a row after which nothing more is accepted */
#define SETTLE_MS  50  /* longer than an acknowledgement is delayed */
#define PEERS      4
#define BOUND_NS   (3 * PLX_NS_PER_S) /* to close all of them; each may take 1 s alone */

static struct side *const a = &pair.a, *const b = &pair.b; /* a sends */

/* Message i starts at word i, which contains i. So each differs, and stays unchanged. */
static uint64_t words[WORDS_MAX];

/* With small buffers of the kernel, plx_tcp soon has messages that the kernel has no room for. */
PLX_CONSTRUCTOR static void prepare(void)
{
	setenv("FI_PLX_TCP_SEND_BYTES", "32768", 1);
	setenv("FI_PLX_TCP_RECEIVE_BYTES", "32768", 1);
	for (uint64_t i = 0; i < WORDS_MAX; i++)
		words[i] = i;
}

/* Sending ------------------------------------------------------------------------------------ */

#define INJECTED UINT64_MAX

/* How messages are sent. */
struct way {
	size_t length;
	uint64_t flags; /* of fi_sendmsg; INJECTED: fi_inject */
};

static const struct way ways[] = {
	{LENGTH_MIN, FI_MORE},
	{1000, 0},
	{1000, FI_INJECT},
	{LENGTH_MAX, 0},
	{LENGTH_MAX, FI_TRANSMIT_COMPLETE},
};

struct account {
	unsigned accepted, completed;
};

static ssize_t send_one(struct side *side, const struct way *way, unsigned i)
{
	struct iovec iov = {&words[i], way->length};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = CONTEXT(i)};

	return way->flags == INJECTED ? fi_inject(side->ep, iov.iov_base, iov.iov_len, 0)
				      : fi_sendmsg(side->ep, &msg, way->flags);
}

/* Send until nothing more is accepted: the peer reads nothing. first: number of the message. */
static struct account fill(struct side *side, const struct way *way, unsigned first)
{
	struct account account = {0};

	for (int vain = 0; vain < VAIN_MAX && account.accepted < BYTES_MAX / way->length; vain++) {
		ssize_t rc = send_one(side, way, first + account.accepted);
		struct fi_cq_data_entry entry;

		assert_true(rc == 0 || rc == -FI_EAGAIN);
		if (rc == 0) {
			account.accepted++;
			vain = 0;
		}
		while (fi_cq_read(side->tx_cq, &entry, 1) == 1)
			assert_ptr_equal(entry.op_context, CONTEXT(account.completed++));
	}
	return account;
}

/* Fill it for good: the kernel moves bytes to the peer's socket for some time. Return: messages. */
static unsigned fill_up(struct side *side, const struct way *way)
{
	unsigned accepted = 0, more;

	do {
		more = fill(side, way, accepted).accepted;
		accepted += more;
		poll(NULL, 0, SETTLE_MS);
	} while (more);
	return accepted;
}

/* Receiving ---------------------------------------------------------------------------------- */

/* Another thread may use the sender. */
static void receive(size_t length, unsigned count)
{
	static uint64_t in[LENGTH_MAX / sizeof(uint64_t)];

	for (unsigned i = 0; i < count; i++) {
		post(b, in, sizeof(in), i);
		assert_int_equal(cq_wait(b->rx_cq, NULL).len, length);
		assert_memory_equal(in, &words[i], length);
	}
}

/* Closing ------------------------------------------------------------------------------------ */

static void open_pair(void)
{
	open_with((struct pair_attr){0});
}

static void close_only(void)
{
	side_close(a);
}

static void with_each_way(void (*check)(const struct way *way, void (*close)(void)),
			  void (*close)(void))
{
	for (size_t i = 0; i < PLX_ARRAY_LEN(ways); i++)
		check(&ways[i], close);
}

static void completed_messages_arrive(const struct way *way, void (*close)(void))
{
	struct account account;

	open_pair();
	account = fill(a, way, 0);
	assert_true(account.completed > 0);
	close();
	receive(way->length, account.completed);
	tear_down(NULL);
}

PLX_TEST(what_has_completed_arrives_after_a_close)
{
	with_each_way(completed_messages_arrive, close_only);
}

/* TCP resets a connection that is closed before everything received was read. */
static void close_with_unread_messages(void)
{
	assert_int_equal(fi_inject(b->ep, words, 8, 0), 0);
	assert_int_equal(fi_shutdown(a->ep, 0), 0);
	fi_inject(b->ep, words, 8, 0); /* it may have noticed */
	side_close(a);
}

PLX_TEST(what_has_completed_arrives_although_its_sender_leaves_messages_unread)
{
	with_each_way(completed_messages_arrive, close_with_unread_messages);
}

/* Injected messages have no completion that would report their loss --------------------------- */

static void *close_in_thread(void *arg)
{
	close_only();
	return NULL;
}

static void injected_messages_arrive(size_t length)
{
	struct way way = {length, INJECTED};
	unsigned accepted;
	pthread_t thread;

	open_pair();
	accepted = fill_up(a, &way);
	assert_int_equal(pthread_create(&thread, NULL, close_in_thread, NULL), 0);
	receive(length, accepted);
	pthread_join(thread, NULL);
	tear_down(NULL);
}

PLX_TEST(injected_messages_arrive_if_the_peer_reads_soon)
{
	injected_messages_arrive(LENGTH_MIN);
	injected_messages_arrive(1000);
}

PLX_TEST(peers_that_never_read_delay_closing_by_a_bounded_time)
{
	static const struct way way = {1000, INJECTED};
	struct fid_ep *eps_a[PEERS], *eps_b[PEERS];
	uint64_t begin_ns;

	open_pair();
	for (int i = 0; i < PEERS; i++) {
		if (i)
			pair_connect(&pair);
		fill_up(a, &way);
		eps_a[i] = a->ep;
		eps_b[i] = b->ep;
	}
	begin_ns = queue_now_ns();
	for (int i = 0; i < PEERS; i++)
		assert_int_equal(fi_close(&eps_a[i]->fid), 0);
	assert_true(queue_now_ns() - begin_ns < BOUND_NS);
	for (int i = 0; i < PEERS; i++)
		assert_int_equal(fi_close(&eps_b[i]->fid), 0);
	a->ep = b->ep = NULL;
	tear_down(NULL);
}

/* Exit --------------------------------------------------------------------------------------- */

/* The peer: sends, reports how much has completed, and exits without closing anything. */
static _Noreturn void send_and_exit(const char *port, const struct way *way, int report)
{
	struct side side = {.info = pair_info("127.0.0.1", port, 0, &pair.attr)};
	struct account account;
	union cm_event event;

	side_open_fabric(&side);
	side_open_ep(&side, side.info, &pair.attr);
	assert_int_equal(fi_connect(side.ep, side.info->dest_addr, NULL, 0), 0);
	cm_wait(side.eq, FI_CONNECTED, &event);
	account = fill(&side, way, 0);
	assert_int_equal(write(report, &account, sizeof(account)), sizeof(account));
	_exit(0);
}

static void completed_messages_survive_exit(const struct way *way, void (*unused)(void))
{
	struct account account;
	union cm_event event;
	char port[8];
	int report[2];
	pid_t pid;

	pair = (struct pair){.b.peer = a};
	pair_listen(&pair, port);
	assert_int_equal(pipe(report), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		send_and_exit(port, way, report[1]);
	cm_wait(b->eq, FI_CONNREQ, &event);
	side_open_ep(b, event.cm.info, &pair.attr);
	fi_freeinfo(event.cm.info);
	assert_int_equal(fi_accept(b->ep, NULL, 0), 0);
	cm_wait(b->eq, FI_CONNECTED, &event);
	assert_int_equal(read(report[0], &account, sizeof(account)), sizeof(account));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(account.completed > 0);
	receive(way->length, account.completed);
	close(report[0]);
	close(report[1]);
	tear_down(NULL);
}

PLX_TEST(what_has_completed_arrives_after_an_exit)
{
	with_each_way(completed_messages_survive_exit, NULL);
}

TESTED_MAIN()
