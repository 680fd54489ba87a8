/* SPDX-License-Identifier: BSD-3-Clause */
/* Hedging: send a call to a second service when the first takes longer than most calls did. The
 * first reply wins, and the other service gets a CANCEL (Dean and Barroso, "The Tail at Scale",
 * Communications of the ACM 56/2, 2013: past the 95th percentile it costs about 5 % more
 * requests). */
#include "rpc_client.h"

#define HIGHEST_NS  (10 * PLX_NS_PER_S)
#define DIGITS      1
#define FIRST_TIMES 100  /* samples before the first estimate */
#define TIMES       1000 /* samples per new estimate */
#define QUANTILE    0.95

/* A service that becomes slow would double every call. The budget allows one hedge in ten calls,
 * which is twice what the quantile predicts, and ten in a row. In tenths of a hedge. */
#define BUDGET_ONE 10
#define BUDGET_MAX (10 * BUDGET_ONE)

int hedge_init(struct plx_rpc_client *client)
{
	client->hedge.delay_ns = UINT64_MAX;
	client->hedge.budget = BUDGET_MAX;
	return plx_hist_init(&client->hedge.times, HIGHEST_NS, DIGITS);
}

uint64_t hedge_start(struct plx_rpc_client *client, struct call *call, uint64_t delay_ns)
{
	struct hedge *hedge = &client->hedge;

	if (hedge->budget < BUDGET_MAX)
		hedge->budget++;
	if (hedge->delay_ns >= delay_ns)
		return delay_ns;
	call->saved->hedge_due = true;
	return hedge->delay_ns;
}

bool hedge_on_timer(struct plx_rpc_client *client, struct call *call)
{
	struct saved_request *saved = call->saved;
	uint64_t now_ns = plx_loop_now_ns();
	struct channel *second;

	if (!saved->hedge_due || now_ns >= saved->what.deadline_ns)
		return false;
	saved->hedge_due = false;
	second = channel_choose(client, call->channel, request_bytes(&saved->what));
	if (call->state == CALL_SENT && second && client->hedge.budget >= BUDGET_ONE &&
	    saved_send_second(second, call)) {
		client->hedge.budget -= BUDGET_ONE;
		client->counts.hedged++;
	}
	if (saved->what.deadline_ns != UINT64_MAX)
		plx_timer_start(&call->timer, saved->what.deadline_ns - now_ns);
	return true;
}

static void record_time(struct plx_rpc_client *client, uint64_t time_ns)
{
	struct hedge *hedge = &client->hedge;
	uint64_t enough = hedge->delay_ns == UINT64_MAX ? FIRST_TIMES : TIMES;

	plx_hist_record(&hedge->times, time_ns);
	if (hedge->times.count < enough)
		return;
	hedge->delay_ns = plx_hist_quantile(&hedge->times, QUANTILE) + 1;
	plx_hist_reset(&hedge->times);
}

/* The call stays on its first channel. */
void hedge_cancel(struct call *call)
{
	struct channel *second = call->saved->second;

	if (!second)
		return;
	call->saved->second = NULL;
	second->open--;
	if (second->tx.link)
		call_send_cancel(second, call);
	channel_check_drain(second);
}

void hedge_on_reply(struct channel *channel, struct call *call)
{
	struct plx_rpc_client *client = channel->client;

	if (call->channel != channel) {
		call->saved->second = call->channel;
		call->channel = channel;
		client->counts.hedges_won++;
	}
	if (call->saved->hedge)
		record_time(client, plx_time_since(call->saved->first_sent_ns, plx_loop_now_ns()));
	hedge_cancel(call);
}

bool hedge_continues(struct channel *channel, struct call *call)
{
	if (!call->saved->second)
		return false;
	if (call->channel == channel)
		call->channel = call->saved->second;
	call->saved->second = NULL;
	channel->open--;
	return true;
}
