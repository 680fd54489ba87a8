/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls from threads that are not lcores: the client's lcore calls while the thread sleeps. */
#include "rpc_client.h"

#include <semaphore.h>
#include <time.h>

/* On the stack of the waiting thread. */
struct waiting_call {
	struct plx_rpc_client *client;
	struct plx_rpc_call call;
	const void *data;
	size_t length;
	void *reply;
	size_t room;
	uint64_t until_ns; /* PLX_NEVER: no timeout */
	struct plx_rpc_result result;
	int rc;
	char text[256]; /* error text */
	sem_t done;
};

static void on_done(const struct plx_rpc_result *result, void *arg)
{
	struct waiting_call *waiting = arg;
	size_t copied = result->length < waiting->room ? result->length : waiting->room;

	if (copied)
		memcpy(waiting->reply, result->data, copied);
	waiting->result = *result;
	waiting->result.data = waiting->reply;
	waiting->result.message = NULL;
	sem_post(&waiting->done);
}

static void start(void *arg)
{
	struct waiting_call *waiting = arg;
	uint64_t now_ns = plx_now_ns(); /* the turn may have started long ago */

	waiting->call.deadline_ns = waiting->until_ns - now_ns;
	waiting->rc = -EAGAIN;
	if (now_ns < waiting->until_ns)
		waiting->rc = plx_rpc_call_start(waiting->client, &waiting->call, waiting->data,
						 waiting->length, NULL);
	if (waiting->rc == 0)
		return;
	if (waiting->rc != -EAGAIN)
		strncpy(waiting->text, plx_error(), sizeof(waiting->text) - 1);
	sem_post(&waiting->done);
}

/* Retry while a lane or the client is full. Return: 0; -EAGAIN timeout; another -errno. */
static int start_there(struct waiting_call *waiting)
{
	const struct timespec nap = {.tv_nsec = 50 * PLX_NS_PER_US};
	int rc;

	for (;;) {
		rc = plx_lcore_send(waiting->client->lcore, start, waiting);
		if (rc == 0) {
			while (sem_wait(&waiting->done) != 0) /* interrupted by a signal */
				;
			rc = waiting->rc;
		}
		if (rc != -EAGAIN || plx_now_ns() >= waiting->until_ns)
			return rc;
		nanosleep(&nap, NULL);
	}
}

int plx_rpc_call_wait(struct plx_rpc_client *client, const struct plx_rpc_call *call,
		      const void *data, size_t length, void *reply, size_t room,
		      struct plx_rpc_result *result_out)
{
	uint64_t delay_ns = call->deadline_ns ?: client->attr.deadline_ns;
	struct waiting_call waiting = {
		.client = client,
		.call = *call,
		.data = data,
		.length = length,
		.reply = reply,
		.room = room,
		.until_ns = plx_time_add(plx_now_ns(), delay_ns),
		.result.status = PLX_RPC_DEADLINE, /* -EAGAIN until then */
	};
	int rc;

	if (plx_lcore_id() != PLX_LCORE_NONE)
		return plx_fail(EDEADLK, "an lcore cannot wait for a call; give it a callback");
	if (!result_out || (room && !reply))
		return plx_fail(EINVAL, "a call is waited for with a result_out, and a reply of "
					"`room` bytes");
	waiting.call.done = on_done;
	waiting.call.arg = &waiting;
	sem_init(&waiting.done, 0, 0);
	rc = start_there(&waiting);
	sem_destroy(&waiting.done);
	if (rc && waiting.text[0])
		return plx_fail(-rc, "%s", waiting.text);
	if (rc && rc != -EAGAIN)
		return rc;
	*result_out = waiting.result;
	return 0;
}
