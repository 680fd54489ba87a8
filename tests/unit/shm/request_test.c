/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests waiting for an answer: their limit, and the threads that answer them. */
#include "shm_meet.h"

#include <pthread.h>

/* Backlog ------------------------------------------------------------------------------------- */

static void set_backlog(int backlog)
{
	assert_int_equal(fi_control(&pep->fid, FI_BACKLOG, &backlog), 0);
}

#define TEST(name) PLX_TEST_WITH(name, setup_shm, teardown)

TEST(connectors_beyond_the_backlog_wait_for_their_turn)
{
	struct fid_ep *eps[12];
	int none = 0;

	assert_int_equal(fi_control(&pep->fid, FI_BACKLOG, &none), -FI_EINVAL);
	set_backlog(2);
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++)
		eps[i] = dial("data", 4);
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++) {
		while (TAILQ_EMPTY(
			&((struct prov_eq *)server.eq)->events)) { /* a waiting connector retries */
			eq_progress((struct prov_eq *)server.eq);
			eq_progress((struct prov_eq *)client.eq);
		}
		assert_int_equal(cm_wait(server.eq, FI_CONNREQ, &event), 4);
		assert_true(cm_requests(pep) <= 2);
		reject(event.cm.info, NULL, 0);
		assert_int_equal(cm_wait_error(client.eq).err, FI_ECONNREFUSED);
	}
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++)
		close_ep(eps[i]);
}

TEST(unanswered_requests_are_limited_by_the_backlog)
{
	struct fid_ep *eps[5];
	struct fi_info *infos[3];

	set_backlog(2);
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++)
		eps[i] = dial(NULL, 0);
	for (size_t i = 0; i < 2; i++)
		infos[i] = next_request();
	cm_expect_nothing(server.eq);
	set_backlog(3);
	infos[2] = next_request();
	cm_expect_nothing(server.eq);
	for (size_t i = 0; i < PLX_ARRAY_LEN(infos); i++)
		reject(infos[i], NULL, 0);
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++)
		close_ep(eps[i]);
}

/* Fill the kernel's queue of a listener, so that the next connectors must wait. */
static void fill_backlog(struct fid_ep **eps, size_t count)
{
	set_backlog(1);
	for (size_t i = 0; i < count; i++)
		eps[i] = dial(NULL, 0);
	assert_non_null(((struct shm_ep *)eps[count - 1])->base.dial);
}

TEST(a_waiting_connector_can_be_closed)
{
	struct fid_ep *eps[6];

	fill_backlog(eps, PLX_ARRAY_LEN(eps));
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++)
		close_ep(eps[i]);
}

TEST(a_waiting_connector_is_refused_when_the_listener_closes)
{
	struct fid_ep *eps[6];

	fill_backlog(eps, PLX_ARRAY_LEN(eps));
	close_pep();
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++)
		assert_int_equal(cm_wait_error(client.eq).err, FI_ECONNREFUSED);
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++)
		close_ep(eps[i]);
}

/* Threads ------------------------------------------------------------------------------------- */

#define HANDED 300

static struct side worker;
static _Atomic(struct fi_info *) handed;

static void *accept_handed(void *arg)
{
	union cm_event own;

	for (int i = 0; i < HANDED; i++) {
		struct fi_info *info;
		struct fid_ep *ep;

		while (!(info = atomic_exchange(&handed, NULL)))
			;
		ep = side_ep(&worker, info);
		fi_freeinfo(info);
		if (i % 3) {
			assert_int_equal(fi_accept(ep, NULL, 0), 0);
			cm_wait(worker.eq, FI_CONNECTED, &own);
		}
		close_ep(ep);
	}
	return NULL;
}

/* While its passive endpoint continues here, with more than the backlog waiting. */
TEST(a_request_may_be_accepted_on_another_thread)
{
	pthread_t thread;

	set_backlog(2);
	side_open(&worker, side_info("127.0.0.1", NULL, FI_SOURCE));
	assert_int_equal(pthread_create(&thread, NULL, accept_handed, NULL), 0);
	for (int i = 0; i < HANDED; i++) {
		struct fid_ep *ep = dial(NULL, 0);
		struct fi_info *info = next_request();
		struct fi_info *taken;

		do {
			taken = NULL;
		} while (!atomic_compare_exchange_weak(&handed, &taken, info));
		if (i % 3) {
			cm_wait(client.eq, FI_CONNECTED, &event);
			cm_wait(client.eq, FI_SHUTDOWN, &event);
		} else {
			expect_refused(ep);
		}
		close_ep(ep);
	}
	pthread_join(thread, NULL);
	side_close(&worker);
}

PLX_TEST_MAIN()
