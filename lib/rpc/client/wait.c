/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls from threads that are not lcores: the client's lcore calls while the thread sleeps.
 *
 * The lock guards the list and the state of each call. The lcore uses what the thread passed only
 * under the lock, and only until the thread leaves or the call ends. So a thread may leave at any
 * time: a queued call is removed from the list and never runs; a started one becomes CALLER_LEFT,
 * and the lcore frees it when the call ends. No thread sleeps with the lock. */
#include "base_internal.h"
#include "rpc_client.h"

#include <stdlib.h>
#include <time.h>

#define START_TURN_MAX 64 /* calls started at once */

/* How long after its deadline a thread waits for an lcore that is late. The lcore knows more about
 * how the call has ended. */
#define LATE_NS (200 * PLX_NS_PER_MS)

/* How often a waiting thread checks that its call was started. */
#define CHECK_NS PLX_NS_PER_S

enum caller_state {
	CALLER_QUEUED,
	CALLER_STARTED,
	CALLER_ENDED,
	CALLER_LEFT, /* the thread has stopped waiting; the lcore frees it */
};

struct caller {
	TAILQ_ENTRY(caller) link;
	struct plx_rpc_client *client;
	enum caller_state state;
	struct plx_rpc_call call;
	const void *data;
	size_t length;
	void *reply;
	size_t room;
	uint64_t until_ns; /* PLX_NEVER: no timeout */
	struct plx_rpc_result *result;
	int rc;
	char text[256]; /* error text */
	pthread_cond_t ended;
};

/* On the client's lcore ----------------------------------------------------------------------- */

static void caller_free(struct caller *caller)
{
	pthread_cond_destroy(&caller->ended);
	free(caller);
}

static void end(struct caller *caller, int rc)
{
	caller->rc = rc;
	caller->state = CALLER_ENDED;
	pthread_cond_signal(&caller->ended);
}

static void take_result(struct caller *caller, const struct plx_rpc_result *result)
{
	size_t copied = result->length < caller->room ? result->length : caller->room;

	if (copied)
		memcpy(caller->reply, result->data, copied);
	*caller->result = *result;
	caller->result->data = caller->reply;
	caller->result->message = NULL;
	end(caller, 0);
}

static void on_done(const struct plx_rpc_result *result, void *arg)
{
	struct caller *caller = arg;
	struct rpc_waiters *waiters = &caller->client->waiters;
	bool has_left;

	pthread_mutex_lock(&waiters->lock);
	has_left = caller->state == CALLER_LEFT;
	if (!has_left)
		take_result(caller, result);
	pthread_mutex_unlock(&waiters->lock);
	if (has_left)
		caller_free(caller);
}

static void start(struct caller *caller)
{
	uint64_t now_ns = plx_now_ns(); /* the turn may have started long ago */
	int rc = -EAGAIN;

	caller->call.deadline_ns = caller->until_ns - now_ns;
	caller->state = CALLER_STARTED;
	if (now_ns < caller->until_ns)
		rc = plx_rpc_call_start(caller->client, &caller->call, caller->data, caller->length,
					NULL);
	if (rc == 0)
		return;
	if (rc != -EAGAIN)
		strncpy(caller->text, plx_error(), sizeof(caller->text) - 1);
	end(caller, rc);
}

/* Return: whether there was one. */
static bool start_first(struct rpc_waiters *waiters)
{
	struct caller *first;

	pthread_mutex_lock(&waiters->lock);
	first = TAILQ_FIRST(&waiters->queued);
	if (first) {
		TAILQ_REMOVE(&waiters->queued, first, link);
		start(first);
	}
	pthread_mutex_unlock(&waiters->lock);
	return first != NULL;
}

static void on_queued(struct plx_signal *signal, uint64_t fires, void *arg)
{
	for (unsigned i = 0; i < START_TURN_MAX; i++) {
		if (!start_first(arg))
			return;
	}
	plx_signal_fire(signal); /* the rest in the next turn */
}

int waiters_init(struct rpc_waiters *waiters)
{
	TAILQ_INIT(&waiters->queued);
	pthread_mutex_init(&waiters->lock, NULL);
	return plx_signal_init(&waiters->arrived, plx_lcore_id(), on_queued, waiters);
}

/* On the waiting thread ----------------------------------------------------------------------- */

/* Under the lock. Return: false: that time is over. */
static bool sleep_for(struct caller *caller, uint64_t ns)
{
	uint64_t until_ns = plx_kernel_ns(CLOCK_MONOTONIC) + ns;
	const struct timespec until = {.tv_sec = (time_t)(until_ns / PLX_NS_PER_S),
				       .tv_nsec = (long)(until_ns % PLX_NS_PER_S)};

	return pthread_cond_timedwait(&caller->ended, &caller->client->waiters.lock, &until) == 0;
}

/* Under the lock: whether to warn, once per client. An lcore that runs its loop is only late. */
static bool must_warn(struct plx_rpc_client *client)
{
	if (client->waiters.warned || plx_loop_is_running(client->lcore))
		return false;
	client->waiters.warned = true;
	return true;
}

/* Not under the lock: the log may block, or call the program. */
static void warn(const struct plx_rpc_client *client)
{
	plx_log(rpc_log, PLX_LOG_WARNING,
		"plx_rpc_call_wait: lcore %u, which owns the client, does not run its loop; call "
		"plx_loop_run there while threads wait",
		client->lcore);
}

/* Under the lock. Return: false: the lcore has not ended the call in time. */
static bool sleep_until_ended(struct caller *caller)
{
	uint64_t limit_ns = plx_time_add(caller->until_ns, LATE_NS);

	while (caller->state != CALLER_ENDED) {
		uint64_t left_ns = plx_time_since(plx_now_ns(), limit_ns);

		if (left_ns == 0)
			return false;
		if (!sleep_for(caller, left_ns < CHECK_NS ? left_ns : CHECK_NS) &&
		    caller->state == CALLER_QUEUED && must_warn(caller->client)) {
			pthread_mutex_unlock(&caller->client->waiters.lock);
			warn(caller->client);
			pthread_mutex_lock(&caller->client->waiters.lock);
		}
	}
	return true;
}

/* Under the lock: the call ends with DEADLINE, as prepared in its result. */
static void leave(struct caller *caller)
{
	if (caller->state == CALLER_QUEUED) {
		TAILQ_REMOVE(&caller->client->waiters.queued, caller, link);
		caller->state = CALLER_ENDED;
	} else {
		caller->result->may_have_run = true;
		caller->state = CALLER_LEFT;
	}
}

/* Return: 0 there is a result; -EAGAIN the client is full; another -errno, with a text. *caller_io
 * becomes NULL if the lcore keeps it. */
static int call_there(struct caller **caller_io)
{
	struct caller *caller = *caller_io;
	struct plx_rpc_client *client = caller->client;
	struct rpc_waiters *waiters = &client->waiters;
	bool is_late;
	int rc;

	pthread_mutex_lock(&waiters->lock);
	caller->state = CALLER_QUEUED;
	TAILQ_INSERT_TAIL(&waiters->queued, caller, link);
	plx_signal_fire(&waiters->arrived);
	is_late = !sleep_until_ended(caller);
	if (is_late)
		leave(caller);
	rc = caller->rc;
	if (caller->state == CALLER_LEFT) {
		*caller_io = NULL;
		rc = 0;
	}
	is_late = is_late && must_warn(client);
	pthread_mutex_unlock(&waiters->lock);
	if (is_late)
		warn(client);
	return rc;
}

/* Retry while the client is full. Return: 0 there is a result; another -errno, with a text. */
static int call_and_free(struct caller *caller)
{
	const struct timespec nap = {.tv_nsec = 50 * PLX_NS_PER_US};
	uint64_t until_ns = caller->until_ns;
	int rc;

	while ((rc = call_there(&caller)) == -EAGAIN && plx_now_ns() < until_ns)
		nanosleep(&nap, NULL);
	if (rc == -EAGAIN)
		rc = 0;
	else if (rc)
		plx_fail(-rc, "%s", caller->text);
	if (caller)
		caller_free(caller);
	return rc;
}

static void init_ended(struct caller *caller)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&caller->ended, &attr);
	pthread_condattr_destroy(&attr);
}

int plx_rpc_call_wait(struct plx_rpc_client *client, const struct plx_rpc_call *call,
		      const void *data, size_t length, void *reply, size_t room,
		      struct plx_rpc_result *result_out)
{
	struct plx_rpc_result result = {.status = PLX_RPC_DEADLINE}; /* unless it ends otherwise */
	struct caller *caller;
	int rc;

	if (plx_is_forked())
		return plx_fail_forked("plx_rpc_call_wait");
	if (!plx_lcore_count())
		return plx_fail(ENOENT, "plx_rpc_call_wait: " NOT_UP_TEXT);
	if (plx_lcore_id() != PLX_LCORE_NONE)
		return plx_fail(EDEADLK, "an lcore cannot wait for a call; give it a callback");
	if (!result_out || (room && !reply))
		return plx_fail(EINVAL, "a call is waited for with a result_out, and a reply of "
					"`room` bytes");
	caller = calloc(1, sizeof(*caller));
	if (!caller)
		return plx_fail(ENOMEM, "out of memory");
	*caller = (struct caller){
		.client = client,
		.call = *call,
		.data = data,
		.length = length,
		.reply = reply,
		.room = room,
		.until_ns = plx_time_add(plx_now_ns(),
					 call->deadline_ns ?: client->attr.deadline_ns),
		.result = &result,
	};
	caller->call.done = on_done;
	caller->call.arg = caller;
	init_ended(caller);
	rc = call_and_free(caller);
	if (rc == 0)
		*result_out = result;
	return rc;
}
