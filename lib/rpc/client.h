/* SPDX-License-Identifier: BSD-3-Clause */
/* A client: calls that are open, and a channel to each of its addresses.
 *
 *   client.c    its life, its figures
 *   channel.c   a link and its greetings; the one that is made when it ends
 *   call.c      calls, from the first to the callback
 *   answer.c    batches of replies
 *   wait.c      calls of threads that are no lcores */
#ifndef PLX_RPC_CLIENT_H
#define PLX_RPC_CLIENT_H

#include "out.h"

#define RPC_CHANNELS_MAX 16

/* A call is in one state, and in one list at most. */
enum call_state {
	CALL_FREE,    /* in the list of those */
	CALL_WAITING, /* for a channel: its request is in client->waiting */
	CALL_SENT,    /* on a channel */
	CALL_TOLD,    /* how it ended is known, and the callback follows: in client->told */
};

/* A request that was not sent, or may have to be sent again. */
struct kept_request {
	struct kept_request *next, **prev_next; /* in client->waiting; prev_next NULL: it is not */
	struct call *call;
	uint64_t deadline_ns;
	uint32_t method, length;
	uint16_t version;
	uint8_t bytes[];
};

struct call {
	struct plx_timer timer;
	plx_rpc_done_fn done;
	void *arg;
	struct channel *channel;   /* SENT */
	struct kept_request *kept; /* or NULL */
	struct call *next;         /* FREE, TOLD */
	uint32_t index, generation;
	uint8_t state;
	uint8_t status; /* TOLD */
	bool was_sent;  /* TOLD */

} PLX_ALIGNED_LINE;

enum channel_state {
	CHANNEL_DOWN,       /* its timer tries again */
	CHANNEL_CONNECTING, /* a link is being made */
	CHANNEL_GREETING,   /* it is there, and the service has not greeted */
	CHANNEL_UP,
	CHANNEL_ENDING, /* closed, or thrown out: its end will be told */
};

struct channel {
	struct plx_rpc_client *client;
	char address[PLX_ADDRESS_MAX];
	char trouble[PLX_ADDRESS_MAX + 192]; /* why it is not up, as of the last attempt */
	enum channel_state state;
	bool draining; /* the service wants no new requests */
	struct plx_link *link;
	struct rpc_out out;
	uint32_t open;     /* calls that were sent and are not done */
	uint32_t open_max; /* that the service takes */
	uint64_t request_max;
	uint64_t batches; /* of links that have ended */
	uint64_t up_ns;   /* since when it is; 0: it is not */
	struct plx_timer timer;
	struct plx_backoff backoff;
};

struct plx_rpc_client {
	struct plx_rpc_client_attr attr;
	char provider[64]; /* of attr.link */
	struct rpc_home *home;
	uint32_t lcore;
	uint64_t identity;
	struct channel *channels;
	uint32_t channel_count;

	struct call **chunks;
	uint32_t chunk_count, open;
	struct call *free;
	struct kept_request *waiting, **waiting_end;
	uint32_t waiting_count;
	uint64_t waiting_bytes;
	struct call *told, **told_end;
	struct rpc_turns turns; /* while there are any */
	bool ending;
	struct plx_log_limit log_limit;
	struct plx_rpc_client_stats counts;
};

/* channel.c */
/* Return: 0; -errno, and it is tried again. */
int channel_connect(struct channel *channel);
void channel_on_timer(struct plx_timer *timer, void *arg);
void channel_end(struct channel *channel);

void channel_throw_out(struct channel *channel, const char *why);
void channel_look_at_drain(struct channel *channel);

static inline bool channel_has_room(const struct channel *channel)
{
	return channel->state == CHANNEL_UP && !channel->draining &&
	       channel->open < channel->open_max && !rpc_out_is_full(&channel->out);
}

/* call.c */
int client_deliver(struct rpc_turns *turns, uint64_t now_ns);
void client_send_waiting(struct plx_rpc_client *client);
void client_channel_down(struct channel *channel);
void client_cancel_all(struct plx_rpc_client *client);
void client_free_calls(struct plx_rpc_client *client);
struct call *call_find(struct plx_rpc_client *client, plx_rpc_call_id id);

/* Soon it will be looked for. */
void call_prefetch(struct plx_rpc_client *client, plx_rpc_call_id id);

/* It is done: the callback runs. */
void call_finish(struct plx_rpc_client *client, struct call *call,
		 const struct plx_rpc_result *result);

/* The service did not take it, as it drains: another one may. Return: whether it goes on. */
bool call_again(struct plx_rpc_client *client, struct call *call);

/* answer.c */
void answer_batch(struct channel *channel, struct plx_buf *message);

#endif
