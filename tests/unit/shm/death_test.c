/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that are killed, stopped, or leave: every posted receive completes, after everything that
 * was sent, and before the closure is reported. */
#include "prov/pair.h"
#include "shm.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define POSTED   32
#define BYTES    1000
#define LIMIT_NS (5 * PLX_NS_PER_S) /* for what takes milliseconds */

/* This process is b of the pair, which listens. */
static uint8_t in[POSTED][BYTES];

/* The peer: connects, runs `fn`, then waits to be killed. */
static void be_peer(const char *port, void (*fn)(struct side *side))
{
	union cm_event event;
	struct side side = {0};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	side.info = pair_info("127.0.0.1", port, 0, &pair.attr);
	side_open_fabric(&side);
	side_open_ep(&side, side.info, &pair.attr);
	fi_connect(side.ep, side.info->dest_addr, NULL, 0);
	cm_wait(side.eq, FI_CONNECTED, &event);
	fn(&side);
	for (;;)
		pause();
}

static pid_t start_peer(void (*fn)(struct side *side))
{
	union cm_event event;
	char port[8];
	pid_t pid;

	pair = (struct pair){.attr = pair.attr};
	pair_listen(&pair, port);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		be_peer(port, fn);
	cm_wait(pair.b.eq, FI_CONNREQ, &event);
	side_open_ep(&pair.b, event.cm.info, &pair.attr);
	fi_freeinfo(event.cm.info);
	for (uintptr_t i = 0; i < POSTED; i++)
		assert_int_equal(fi_recv(pair.b.ep, in[i], BYTES, NULL, 0, (void *)i), 0);
	assert_int_equal(fi_accept(pair.b.ep, NULL, 0), 0);
	cm_wait(pair.b.eq, FI_CONNECTED, &event);
	return pid;
}

static void kill_peer(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void close_here(void)
{
	side_close_ep(&pair.b);
	assert_int_equal(fi_close(&pair.pep->fid), 0);
	side_close(&pair.b);
}

struct account {
	unsigned posted, received, flushed;
	uint64_t ended_ns; /* FI_SHUTDOWN */
};

/* Take all completions. Each received one is posted again, which is refused at the latest after the
 * closure was reported. */
static void read_queue(struct account *account)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry error = {0};
	ssize_t got;

	while ((got = fi_cq_read(pair.b.rx_cq, &entry, 1)) != -FI_EAGAIN) {
		if (got == 1) {
			assert_int_equal(account->flushed, 0); /* messages come first, in order */
			assert_ptr_equal(entry.op_context,
					 (void *)(uintptr_t)(account->received % POSTED));
			account->received++;
			account->posted += fi_recv(pair.b.ep, in[(uintptr_t)entry.op_context],
						   BYTES, NULL, 0, entry.op_context) == 0;
		} else {
			assert_int_equal(got, -FI_EAVAIL);
			assert_int_equal(fi_cq_readerr(pair.b.rx_cq, &error, 0), 1);
			assert_int_equal(error.err, FI_ECANCELED);
			account->flushed++;
		}
	}
}

/* Read until the closure is reported; everything before it is in the queue by then. */
static struct account read_to_the_end(void)
{
	struct account account = {.posted = POSTED};
	uint64_t limit_ns = plx_now_ns() + LIMIT_NS;
	struct fi_eq_cm_entry cm;
	uint32_t event;

	do {
		read_queue(&account);
		assert_true(plx_now_ns() < limit_ns);
	} while (fi_eq_read(pair.b.eq, &event, &cm, sizeof(cm), 0) == -FI_EAGAIN);
	assert_int_equal(event, FI_SHUTDOWN);
	assert_ptr_equal(cm.fid, &pair.b.ep->fid);
	account.ended_ns = plx_now_ns();
	read_queue(&account);
	return account;
}

/* The receiver can no longer read this when it gets to it. */
static void die_having_sent_a_large_one(struct side *side)
{
	static uint8_t large[1 << 20];

	for (int i = 0; i < 10; i++)
		fi_inject(side->ep, large, BYTES, 0);
	fi_send(side->ep, large, sizeof(large), NULL, 0, NULL);
	kill(getpid(), SIGKILL);
}

static uint64_t copy_max;

/* The receiver reads large messages instead of receiving parts. */
static int read_large_ones(void **state)
{
	copy_max = shm_params.copy_max;
	shm_params.copy_max = 0;
	return 0;
}

static int read_as_usual(void **state)
{
	shm_params.copy_max = copy_max;
	return 0;
}

/* What came before it arrives. */
PLX_TEST(an_incomplete_large_message_of_a_killed_peer_is_dropped)
{
	pid_t pid = start_peer(die_having_sent_a_large_one);
	struct account account;

	usleep(20000);
	account = read_to_the_end();
	assert_int_equal(account.received, 10);
	assert_int_equal(account.received + account.flushed, account.posted);
	kill_peer(pid);
	close_here();
}
PLX_TEST_AGAIN(an_incomplete_large_message_of_a_killed_peer_is_dropped, read_large_ones,
	       read_as_usual)

static void send_for_ever(struct side *side)
{
	char text[BYTES] = "";

	for (;;)
		fi_inject(side->ep, text, (size_t)rand() % BYTES, 0);
}

PLX_TEST(every_receive_completes_wherever_the_peer_is_killed)
{
	uint64_t received = 0;

	for (int round = 0; round < 40; round++) {
		pid_t pid = start_peer(send_for_ever);
		struct account account;

		usleep((useconds_t)(rand() % 3000));
		if (round % 2)
			kill(pid, SIGSTOP);
		kill_peer(pid);
		account = read_to_the_end();
		assert_int_equal(account.received + account.flushed, account.posted);
		received += account.received;
		close_here();
	}
	assert_true(received > 1000);
}

int main(void)
{
	plx_clock_init();
	return plx_test_run("tests", NULL, NULL);
}
