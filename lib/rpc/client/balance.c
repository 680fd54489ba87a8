/* SPDX-License-Identifier: BSD-3-Clause */
/* Which service gets a call: the one with the fewest open calls. One that fails calls answers them
 * sooner than others do, so it has few open calls and would attract most of them. So open calls are
 * divided by the share of recent calls that succeeded. Services that fail alike, because of what
 * the client asks, still share the calls. */
#include "rpc_client.h"

#define OVERLOAD_NS_MIN PLX_NS_PER_MS
#define OVERLOAD_NS_MAX (100 * PLX_NS_PER_MS)

/* The share of failures is a moving average over about the last 16 replies. Without calls it would
 * stay as it is, so it counts only for a while after the last failure. */
#define ALL_CALLS     65536
#define AVERAGE_SHIFT 4
#define FAILURE_NS    PLX_NS_PER_S

/* The service is overloaded: prefer others until its hint ends, for 1 ms at least. */
static void note_overload(struct channel *channel, const struct rpc_header *header, uint64_t now_ns)
{
	uint64_t hint_ns = header->retry_us * PLX_NS_PER_US;

	if (hint_ns < OVERLOAD_NS_MIN)
		hint_ns = OVERLOAD_NS_MIN;
	channel->overloaded_until_ns = now_ns +
				       (hint_ns < OVERLOAD_NS_MAX ? hint_ns : OVERLOAD_NS_MAX);
}

void channel_note_failure(struct channel *channel, const struct rpc_header *header, uint64_t now_ns)
{
	channel->failed += (ALL_CALLS - channel->failed) >> AVERAGE_SHIFT;
	channel->failed_ns = now_ns;
	if (header->handler_ns)
		return;
	if (header->status == PLX_RPC_DRAINING)
		channel->draining = true; /* the status applies to the whole service */
	if (header->status == PLX_RPC_OVERLOADED)
		note_overload(channel, header, now_ns);
}

void channel_note_success(struct channel *channel)
{
	channel->failed -= (channel->failed + (1 << AVERAGE_SHIFT) - 1) >> AVERAGE_SHIFT; /* to 0 */
}

static uint64_t succeeded(const struct channel *channel, uint64_t now_ns)
{
	bool is_recent = plx_time_since(channel->failed_ns, now_ns) < FAILURE_NS;

	return ALL_CALLS - (is_recent ? channel->failed : 0);
}

bool channel_is_better(const struct channel *channel, const struct channel *other, uint64_t now_ns)
{
	bool is_full = channel->overloaded_until_ns > now_ns;
	bool other_full = other->overloaded_until_ns > now_ns;
	uint64_t load, other_load;

	if (is_full != other_full)
		return other_full;
	load = (channel->open + UINT64_C(1)) * succeeded(other, now_ns);
	other_load = (other->open + UINT64_C(1)) * succeeded(channel, now_ns);
	return load != other_load ? load < other_load : channel->failed < other->failed;
}

struct channel *channel_choose(struct plx_rpc_client *client, const struct channel *other,
			       uint64_t length)
{
	struct channel *best = NULL;
	bool one_accepts = false;

	for (uint32_t i = 0; i < client->channel_count; i++) {
		struct channel *channel = &client->channels[i];
		bool accepts = length <= channel->request_max;

		if (channel == other || !channel_is_up(channel) || accepts < one_accepts)
			continue;
		if (accepts > one_accepts)
			best = NULL; /* those before do not accept it */
		one_accepts = accepts;
		if (channel_has_room(channel) &&
		    (!best || channel_is_better(channel, best, plx_loop_now_ns())))
			best = channel;
	}
	return best;
}
