/* SPDX-License-Identifier: BSD-3-Clause */
/* A context per thread, set up and ended in any order. */
#include "netio_fixture.h"

#include <pthread.h>
#include <sched.h>

#define THREADS  16
#define MESSAGES 100

/* Each thread sends to the next one, and subscribes to its publisher. */
struct member {
	struct netio_context ctx;
	struct netio_listen_socket from;
	struct netio_buffered_send_socket to;
	struct netio_publish_socket publisher;
	struct netio_subscribe_socket subscriber;
	struct member *next;
	unsigned port, publish_port, received, heard;
	bool sent, published;
	pthread_t thread;
};

static struct member members[THREADS];
static pthread_barrier_t barrier;

static void end_if_done(struct member *member)
{
	if (member->sent && member->published && member->received == MESSAGES &&
	    member->heard == MESSAGES)
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

static void on_subscribed(struct netio_subscriber *who, const struct netio_subscription *what)
{
	struct member *member = plx_container_of(who->socket, struct member, publisher);

	for (unsigned i = 0; i < MESSAGES; i++)
		assert_int_equal(
			netio_buffered_publish(&member->publisher, 7, &i, sizeof(i), 0, NULL),
			NETIO_STATUS_OK);
	netio_buffered_publish_flush(&member->publisher);
	member->published = true;
	end_if_done(member);
}

static void on_published(struct netio_subscribe_socket *socket, const struct netio_msg *msg)
{
	struct member *member = plx_container_of(socket, struct member, subscriber);

	assert_int_equal(*(const unsigned *)msg->data, member->heard);
	member->heard++;
	end_if_done(member);
}

static void open_sockets(struct member *member)
{
	struct netio_eventloop *evloop = &member->ctx.evloop;

	assert_works(netio_listen_socket_init(evloop, &member->from, NULL));
	assert_works(netio_buffered_send_socket_init(evloop, &member->to, NULL));
	member->from.cb_msg_received = on_message;
	member->to.cb_connection_established = on_established;
	assert_works(netio_listen(&member->from, test_host(), 0));
	member->port = netio_listen_socket_port(&member->from);
	assert_works(netio_publish_socket_init(evloop, &member->publisher, NULL));
	assert_works(netio_subscribe_socket_init(evloop, &member->subscriber, NULL));
	member->publisher.cb_subscribed = on_subscribed;
	member->subscriber.cb_msg_received = on_published;
	assert_works(netio_publish_listen(&member->publisher, test_host(), 0));
	member->publish_port = netio_publish_socket_port(&member->publisher);
}

static void *exchange(void *arg)
{
	struct member *member = arg;

	assert_works(netio_init(&member->ctx));
	open_sockets(member);
	pthread_barrier_wait(&barrier);
	assert_works(netio_buffered_connect(&member->to, test_host(), member->next->port));
	assert_works(
		netio_subscribe(&member->subscriber, test_host(), member->next->publish_port, 7));
	assert_works(netio_run(&member->ctx.evloop));
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
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&members[i].thread, NULL, exchange, &members[i]);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(members[i].thread, NULL);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(members[i].received, MESSAGES);
	no_lcores();
}

/* Threads that run one step after the other. */
struct steps {
	const char *order; /* a small letter sets up a thread's context, a capital one ends it */
	_Atomic unsigned at;
};

static void take_steps(struct steps *steps, char own)
{
	struct netio_context own_ctx;

	for (;;) {
		char step = steps->order[atomic_load(&steps->at)];

		if (step == '\0')
			return;
		if (step != own && step != own - 'a' + 'A') {
			sched_yield();
			continue;
		}
		if (step == own)
			assert_works(netio_init(&own_ctx));
		else
			assert_works(netio_fini(&own_ctx));
		atomic_fetch_add(&steps->at, 1);
	}
}

static void *thread_a(void *arg)
{
	take_steps(arg, 'a');
	return NULL;
}

static void *thread_b(void *arg)
{
	take_steps(arg, 'b');
	return NULL;
}

PLX_TEST(contexts_end_in_any_order)
{
	static const char *const orders[] = {"abBA", "abAB", "abAaBA", "abBbAB", "abAaAB", "aAbB"};

	netio_options_with("");
	for (unsigned i = 0; i < PLX_ARRAY_LEN(orders); i++) {
		struct steps steps = {.order = orders[i]};
		pthread_t a, b;

		pthread_create(&a, NULL, thread_a, &steps);
		pthread_create(&b, NULL, thread_b, &steps);
		pthread_join(a, NULL);
		pthread_join(b, NULL);
		assert_int_equal(plx_lcore_count(), 0);
	}
	no_lcores();
}

PLX_TEST_MAIN()
