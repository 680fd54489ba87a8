/* SPDX-License-Identifier: BSD-3-Clause */
/* Very many connections on one completion queue: idle ones are still heard. */
#include "shm_meet.h"

#include <sys/resource.h>

#define SWEEP_EVERY 64  /* polls per check that no call requested: see progress.c */
#define SHARING     100 /* connections past the bits of a bell */
#define MOST        (BELL_BITS + SHARING)

/* The server's endpoints and the client's; equal indexes are pairs. */
static struct fid_ep *server_eps[MOST], *client_eps[MOST];
static unsigned heard[MOST]; /* messages from each */
static unsigned count, heard_all;

static void post_one(unsigned i)
{
	assert_int_equal(fi_recv(server_eps[i], NULL, 0, NULL, 0, &heard[i]), 0);
}

static void connect_one(unsigned i)
{
	make_pair(&client_eps[i], &server_eps[i]);
	post_one(i);
}

static void connect_up_to(unsigned wanted)
{
	while (count < wanted)
		connect_one(count++);
}

static void close_pair(unsigned i)
{
	if (!server_eps[i])
		return;
	close_ep(server_eps[i]);
	close_ep(client_eps[i]);
	server_eps[i] = client_eps[i] = NULL;
}

static int close_many(void **state)
{
	for (unsigned i = 0; i < count; i++)
		close_pair(i);
	count = 0;
	return teardown(state);
}

/* Polling -------------------------------------------------------------------------------------- */

/* Of a closed connection. */
static void take_error(void)
{
	struct fi_cq_err_entry error = {0};

	assert_int_equal(fi_cq_readerr(server.rx_cq, &error, 0), 1);
	assert_int_equal(error.err, FI_ECANCELED);
}

static void poll_server(void)
{
	struct fi_cq_data_entry entries[64];
	ssize_t got = fi_cq_read(server.rx_cq, entries, PLX_ARRAY_LEN(entries));

	for (ssize_t i = 0; i < got; i++) {
		unsigned *from = entries[i].op_context;

		++*from;
		heard_all++;
		if (server_eps[from - heard])
			post_one((unsigned)(from - heard));
	}
	if (got == -FI_EAVAIL)
		take_error();
	else
		assert_true(got > 0 || got == -FI_EAGAIN);
}

static bool all_call(void)
{
	for (unsigned i = 0; i < count; i++) {
		if (server_eps[i] && ((struct prov_ep *)server_eps[i])->listed != LISTED_ASIDE)
			return false;
	}
	return true;
}

/* Until nothing is checked without a call. */
static void grow_quiet(void)
{
	for (int i = 0; i < 10 && !all_call(); i++) {
		for (int k = 0; k < 10000; k++)
			poll_server();
	}
	assert_true(all_call());
	memset(heard, 0, sizeof(heard));
	heard_all = 0;
}

static unsigned speak_all(void)
{
	unsigned spoke = 0;

	for (unsigned i = 0; i < count; i++) {
		if (client_eps[i]) {
			assert_int_equal(fi_inject(client_eps[i], NULL, 0, 0), 0);
			spoke++;
		}
	}
	return spoke;
}

/* Returns the number of polls. */
static unsigned hear_all(unsigned wanted, unsigned polls_max)
{
	unsigned polls = 0;

	while (heard_all < wanted && polls < polls_max) {
		poll_server();
		polls++;
	}
	assert_int_equal(heard_all, wanted);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(heard[i], server_eps[i] != NULL);
	return polls;
}

#define TEST(name) PLX_TEST_WITH(name, setup_shm, close_many)

static void erase_bell(void)
{
	struct bell *bell = ((struct shm_cq *)server.rx_cq)->bell;

	for (unsigned i = 0; i < PLX_ARRAY_LEN(bell->words); i++)
		atomic_store(&bell->words[i], 0);
	atomic_store(&bell->summary, 0);
}

TEST(endpoints_whose_call_was_lost_are_checked_in_turn)
{
	unsigned spoke, polls;

	connect_up_to(1000);
	grow_quiet();
	spoke = speak_all();
	erase_bell();
	polls = hear_all(spoke, SWEEP_EVERY * (1000 + 2));
	assert_true(polls > SWEEP_EVERY * 900);
	grow_quiet();
	hear_all(speak_all(), 200); /* and their next call is heard */
}

static void raise_descriptors(unsigned wanted)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur >= wanted)
		return;
	if (limit.rlim_max < wanted) {
		print_message("skipped: needs %u descriptors\n", wanted);
		skip();
	}
	limit.rlim_cur = wanted;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(connections_beyond_the_number_of_bell_bits_share_them)
{
	raise_descriptors(2 * MOST + 100);
	connect_up_to(MOST);
	grow_quiet();
	hear_all(speak_all(), 1000);
	for (unsigned i = 0; i < MOST; i += 1 + i % 2)
		close_pair(i);
	grow_quiet();
	hear_all(speak_all(), 1000);
}

PLX_TEST_MAIN()
