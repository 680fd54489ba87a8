/* SPDX-License-Identifier: BSD-3-Clause */
/* A context per thread, set up and ended in any order. */
#include "netio_fixture.h"

#include <pthread.h>
#include <sched.h>

#define THREADS  16
#define MESSAGES 100

/* Each thread sends to the next one. */
struct member {
	struct netio_context ctx;
	struct netio_listen_socket from;
	struct netio_buffered_send_socket to;
	struct member *next;
	unsigned port, received;
	bool sent;
};

static struct member members[THREADS];
static pthread_barrier_t barrier;

static void end_if_done(struct member *member)
{
	if (member->sent && member->received == MESSAGES)
		netio_terminate(&member->ctx.evloop);
}

static void on_message(struct netio_recv_socket *from, const struct netio_msg *msg)
{
	struct member *member = plx_container_of(from->listen_socket, struct member, from);

	assert_int_equal(*(const unsigned *)msg->data, member->received);
	member->received++;
	end_if_done(member);
}

static void on_established(struct netio_buffered_send_socket *socket)
{
	struct member *member = plx_container_of(socket, struct member, to);

	for (unsigned i = 0; i < MESSAGES; i++)
		assert_int_equal(netio_buffered_send(socket, &i, sizeof(i)), NETIO_STATUS_OK);
	assert_int_equal(netio_buffered_flush(socket), NETIO_STATUS_OK);
	member->sent = true;
	end_if_done(member);
}

static void *exchange(void *arg)
{
	struct member *member = arg;
	struct netio_eventloop *evloop = &member->ctx.evloop;

	assert_works(netio_init(&member->ctx));
	assert_works(netio_listen_socket_init(evloop, &member->from, NULL));
	assert_works(netio_buffered_send_socket_init(evloop, &member->to, NULL));
	member->from.cb_msg_received = on_message;
	member->to.cb_connection_established = on_established;
	assert_works(netio_listen(&member->from, test_host(), 0));
	member->port = netio_listen_socket_port(&member->from);
	pthread_barrier_wait(&barrier);
	assert_works(netio_buffered_connect(&member->to, test_host(), member->next->port));
	assert_works(netio_run(evloop));
	assert_works(netio_fini(&member->ctx));
	return NULL;
}

static void no_lcores(void)
{
	assert_int_equal(plx_lcore_count(), 0);
	plx_log_set_sink(NULL, NULL);
	unsetenv("NETIO_OPTIONS");
}

/* Whichever is first is the main lcore, and it may be the first one to end. */
PLX_TEST(sixteen_threads_set_up_run_and_end_their_contexts_at_once)
{
	netio_options_with("");
	pthread_barrier_init(&barrier, NULL, THREADS);
	memset(members, 0, sizeof(members));
	for (unsigned i = 0; i < THREADS; i++)
		members[i].next = &members[(i + 1) % THREADS];
	run_in_threads(THREADS, exchange, members, sizeof(members[0]));
	no_lcores();
}

/* Threads that run one step after the other. A small letter sets up a thread's context, a capital
 * one ends it. */
static const char *order;
static _Atomic unsigned at;

static void *take_steps(void *number)
{
	char own = (char)('a' + (uintptr_t)number), step;
	struct netio_context own_ctx;

	while ((step = order[at]) != '\0') {
		if (step == own) {
			assert_works(netio_init(&own_ctx));
			at++;
		} else if (step == own - 'a' + 'A') {
			assert_works(netio_fini(&own_ctx));
			at++;
		} else {
			sched_yield();
		}
	}
	return NULL;
}

PLX_TEST(contexts_end_in_any_order)
{
	static const char *const orders[] = {"abBA", "abAB", "abAaBA", "abBbAB", "abAaAB", "aAbB"};

	netio_options_with("");
	for (unsigned i = 0; i < PLX_ARRAY_LEN(orders); i++) {
		order = orders[i];
		at = 0;
		run_in_threads(2, take_steps, NULL, 1);
		assert_int_equal(plx_lcore_count(), 0);
	}
	no_lcores();
}

PLX_TEST_MAIN()
