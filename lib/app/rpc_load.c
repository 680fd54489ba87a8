/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of a service as a load. */
#include "rpc_load.h"

#include <stdlib.h>

#define PAUSE_NS PLX_NS_PER_MS /* before the next try, if the service gives no time */
#define GONE_NS  PLX_NS_PER_S  /* without an answer after the link closed: the service has left */

static struct plx_rpc_load *rpc_of(struct plx_load *load)
{
	return (struct plx_rpc_load *)load;
}

static int send_call(struct plx_load *load, struct plx_flight *flight)
{
	struct plx_rpc_load *rpc = rpc_of(load);
	int rc;

	if (rpc->fill)
		rpc->fill(rpc);
	flight->sent_tsc = plx_tsc();
	rpc->call.arg = flight;
	rc = plx_rpc_call_start(rpc->client, &rpc->call, rpc->data, rpc->length, NULL);
	if (rc == -EAGAIN && load->kind == PLX_LOAD_CLOSED) /* nothing would report room to it */
		return plx_fail(ENOBUFS, "too many calls are open, or too many bytes wait to be "
					 "sent: give fewer calls in flight");
	return rc;
}

static void on_pause_over(struct plx_timer *timer, void *arg)
{
	struct plx_flight *flight = arg;

	if (plx_load_is_on(flight->load))
		plx_load_repeat(flight->load, flight);
}

/* The service refuses calls for now: the call stays in flight until it is repeated. */
static void wait_for_room(struct plx_rpc_load *rpc, struct plx_flight *flight,
			  uint64_t retry_after_ns, uint64_t now_tsc)
{
	uint64_t pause_ns = retry_after_ns ? retry_after_ns : PAUSE_NS;
	struct plx_timer *pause = &rpc->pauses[flight - rpc->load.flights];

	rpc->refused++;
	rpc->answered_tsc = now_tsc;
	if (!plx_load_refused(&rpc->load, flight, now_tsc, now_tsc + plx_measure_tsc(pause_ns)))
		return;
	plx_timer_init(pause, on_pause_over, flight);
	plx_timer_start(pause, pause_ns);
}

static void count(struct plx_rpc_load *rpc, const struct plx_rpc_result *result)
{
	rpc->statuses[result->status]++;
	if (result->status <= PLX_RPC_ERROR)
		rpc->handler_ns += result->handler_ns;
}

/* Whether the service itself has ended the call. */
static bool is_answer(enum plx_rpc_status status)
{
	return status != PLX_RPC_DEADLINE && status != PLX_RPC_CANCELLED &&
	       status != PLX_RPC_PEER_DOWN;
}

static enum plx_reply reply_of(enum plx_rpc_status status, bool is_right)
{
	if (status == PLX_RPC_OK && is_right)
		return PLX_REPLY_GOOD;
	return is_answer(status) ? PLX_REPLY_BAD : PLX_REPLY_NONE;
}

/* Return: whether the service has left: its link has closed, and for a while nothing is answered.
 */
static bool is_gone(struct plx_rpc_load *rpc, enum plx_rpc_status status, uint64_t now_tsc)
{
	if (status == PLX_RPC_PEER_DOWN)
		return now_tsc - rpc->answered_tsc >= plx_measure_tsc(GONE_NS);
	if (is_answer(status))
		rpc->answered_tsc = now_tsc;
	return false;
}

static void on_done(const struct plx_rpc_result *result, void *arg)
{
	uint64_t now_tsc = plx_tsc_after_loads();
	struct plx_flight *flight = arg;
	struct plx_load *load = flight->load;
	struct plx_rpc_load *rpc = rpc_of(load);
	const char *failure;

	if (!plx_load_is_on(load))
		return;
	if (plx_unlikely(result->status == PLX_RPC_BUSY && load->kind == PLX_LOAD_CLOSED)) {
		wait_for_room(rpc, flight, result->retry_after_ns, now_tsc);
		return;
	}
	failure = rpc->check(rpc, result);
	if (plx_unlikely(is_gone(rpc, result->status, now_tsc) && !failure))
		failure = rpc->trouble(rpc->client);
	if (flight->is_measured)
		count(rpc, result);
	plx_load_reply(load, flight, now_tsc, reply_of(result->status, !failure));
	if (plx_unlikely(failure))
		plx_load_fail(load, failure);
}

static bool is_up_or_stopped(void *client)
{
	return plx_rpc_client_is_up(client) || plx_stop_signal();
}

int plx_rpc_load_run(struct plx_rpc_load *rpc, uint64_t timeout_ns)
{
	const struct plx_link *link;

	rpc->load.send = send_call;
	rpc->load.any_order = true;
	rpc->call.done = on_done;
	if (rpc->load.kind == PLX_LOAD_CLOSED)
		rpc->pauses = calloc(rpc->load.flight_mask + 1, sizeof(*rpc->pauses));
	if (rpc->load.kind == PLX_LOAD_CLOSED && !rpc->pauses)
		return plx_fail(ENOMEM, "out of memory");
	/* Otherwise the warm-up or the schedule would begin with the wait for a service. */
	if (plx_loop_until(is_up_or_stopped, rpc->client, timeout_ns) != 0)
		return plx_fail(EIO, "no service within %.6g s: %s", (double)timeout_ns / 1e9,
				rpc->trouble(rpc->client));
	rpc->load.signalled = plx_stop_signal();
	link = plx_rpc_client_link(rpc->client);
	if (rpc->load.signalled || !link)
		return 0;
	plx_load_note_provider(&rpc->load, plx_link_fi_provider(link), plx_link_choice(link));
	rpc->answered_tsc = plx_tsc();
	plx_load_start(&rpc->load, rpc->answered_tsc);
	/* If the first call failed, the loop has not seen the quit. */
	return plx_load_is_on(&rpc->load) ? plx_load_run(&rpc->load) : 0;
}

void plx_rpc_load_fini(struct plx_rpc_load *rpc)
{
	rpc->load.state = PLX_LOAD_ENDED;
	for (uint64_t i = 0; rpc->pauses && i <= rpc->load.flight_mask; i++)
		plx_timer_stop(&rpc->pauses[i]);
	plx_rpc_client_destroy(rpc->client); /* ends calls in flight */
	free(rpc->pauses);
	plx_load_fini(&rpc->load);
}
