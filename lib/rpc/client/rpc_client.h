/* SPDX-License-Identifier: BSD-3-Clause */
/* A client: calls that are open, and a channel to each of its addresses.
 *
 *   client.c       its life, its figures
 *   channel.c      a session with one address, and what it says in its HELLO
 *   call.c         calls, from the first to the callback
 *   send_queue.c   requests that wait, and are sent once
 *   saved.c        those of which there is a copy: they may have to be sent again
 *   hedge.c        calls that are sent to a second service when the first one is slow
 *   receive.c      batches of replies
 *   wait.c         calls of threads that are no lcores */
#ifndef PLX_RPC_CLIENT_H
#define PLX_RPC_CLIENT_H

#include "rpc_priv.h"

#include "plx_stats.h"
#include "session.h"

#define RPC_CHANNELS_MAX 16

/* A call is in one state, and in one list at most. */
enum call_state {
	CALL_FREE,      /* in the list of those */
	CALL_WAITING,   /* for a channel: its request is in client->queue, or saved in a
			   list */
	CALL_SENT,      /* on a channel */
	CALL_COMPLETED, /* its callback follows: in client->completed */
};

TAILQ_HEAD(saved_list, saved_request);

/* A request that was not sent, or may have to be sent again. */
struct saved_request {
	union {
		TAILQ_ENTRY(saved_request) link;
		struct saved_request *next_unused;
	};
	struct saved_list *list; /* that it waits in; NULL: none */
	struct call *call;
	struct channel *second; /* it was sent there, too; NULL: it was not */
	uint64_t deadline_ns;
	uint64_t first_sent_ns; /* 0: it was not */
	uint32_t method, length;
	uint16_t version;
	bool has_key; /* the first of its bytes */
	bool retry, hedge;
	bool hedge_due;   /* the call's timer is for that */
	bool link_lost;   /* a link ended behind its being sent */
	bool was_refused; /* by a service that was full, and it was sent to another one */
	uint8_t bytes[];
};

static inline uint32_t saved_payload_bytes(const struct saved_request *request)
{
	return request->length - (request->has_key ? RPC_KEY_BYTES : 0);
}

/* Requests that wait to be sent once: all are older than those in a list. */
struct send_queue {
	struct send_queue_block *first, *last, *spare;
	uint64_t bytes;       /* of all records */
	uint64_t stale_bytes; /* of those whose calls have ended; the first one's has not */
	uint32_t count;       /* of the others */
};

/* How long calls take that may be sent to a second service. */
struct hedge {
	struct plx_hist times;
	uint64_t delay_ns; /* UINT64_MAX: not known yet */
	uint32_t budget;   /* for calls more, in thousandths */
};

struct call {
	struct plx_timer timer;
	plx_rpc_done_fn done;
	void *arg;
	struct channel *channel;     /* SENT */
	struct saved_request *saved; /* or NULL */
	struct call *next;           /* FREE, COMPLETED */
	uint32_t index, generation;
	uint8_t state;
	uint8_t status; /* COMPLETED */
	bool was_sent;  /* COMPLETED */
	bool is_queued; /* WAITING: its request is in client->queue */
	uint32_t queued_length;
} PLX_ALIGNED_LINE;

struct channel {
	struct plx_connector session; /* first */
	struct plx_rpc_client *client;
	char trouble[PLX_ADDRESS_MAX + 192]; /* why it is not up, as of the last attempt */
	bool draining;                       /* the service wants no new requests */
	uint64_t overloaded_until_ns; /* it said that it is overloaded: others first, until then */
	struct rpc_tx tx;
	uint32_t open;     /* calls that were sent and are not done */
	uint32_t open_max; /* that the service takes */
	uint64_t request_max;
	uint64_t identity;         /* of the service that was there last; 0: none was */
	uint64_t key_ns;           /* for which that remembers keys */
	struct saved_list retries; /* with keys, sent to that service on links that ended */
	uint64_t batches;          /* of links that have ended */
};

struct plx_rpc_client {
	struct plx_rpc_client_attr attr;
	struct plx_connector_attr session; /* of each channel */
	LIST_ENTRY(plx_rpc_client) link;   /* of its lcore's */
	uint32_t lcore;
	uint64_t identity;
	struct call **chunks;
	uint32_t chunk_count, open;
	struct call *free;
	struct send_queue queue;
	struct saved_list waiting;
	uint32_t waiting_count; /* these, and those of the channels */
	uint64_t request_bytes; /* of all requests that are saved or in the queue */
	struct saved_request *saved_unused;
	struct saved_slab *saved_slabs;
	struct hedge hedge;
	struct call *completed, **completed_end;
	struct plx_task deliver; /* tells of them */
	bool ending;             /* or in the child of a fork: takes no calls */
	struct plx_log_limit log_limit;
	struct plx_rpc_client_stats counts;
	uint32_t channel_count;
	struct channel channels[];
};

/* client.c */
/* As many of the requests that wait as there is room for. */
void client_send_waiting(struct plx_rpc_client *client);

/* channel.c */
void channel_init(struct channel *channel, struct plx_rpc_client *client);
/* Return: 0; -errno, and it is tried again. */
int channel_connect(struct channel *channel, const char *address);
void channel_end(struct channel *channel);

void channel_reject(struct channel *channel, const char *why);
void channel_check_drain(struct channel *channel);

/* The service has accepted it, and this side does not end it. */
static inline bool channel_is_up(const struct channel *channel)
{
	return channel->session.state == PLX_CONNECTOR_OPEN;
}

/* A link that has begun to close takes no batch any more; it is asked with the first record of one.
 */
static inline bool channel_has_room(const struct channel *channel)
{
	return channel_is_up(channel) && !channel->draining && channel->open < channel->open_max &&
	       !rpc_tx_is_full(&channel->tx) &&
	       (channel->tx.bytes || plx_link_is_open(channel->session.link));
}

/* For a request of that length, without its key: the channel with the least open calls of those
 * whose service takes it, and of those that have not said that they are overloaded, where there is
 * one; `other` excepted. One that does not take it where none that is up does. NULL: none has room.
 */
struct channel *channel_choose(struct plx_rpc_client *client, const struct channel *other,
			       uint64_t length);

/* call.c */
void client_deliver(struct plx_task *task, void *arg);
void client_channel_down(struct channel *channel);
void client_cancel_all(struct plx_rpc_client *client);
void client_free_calls(struct plx_rpc_client *client);
struct call *call_find(const struct plx_rpc_client *client, plx_rpc_call_id id);
/* Soon it will be looked for. */
void call_prefetch(const struct plx_rpc_client *client, plx_rpc_call_id id);
plx_rpc_call_id call_id(const struct call *call);
/* It is done: the callback runs. */
void call_finish(struct plx_rpc_client *client, struct call *call,
		 const struct plx_rpc_result *result);
/* How it ends is known inside a call of the user's: the callback comes from the loop. */
void call_complete_later(struct plx_rpc_client *client, struct call *call,
			 enum plx_rpc_status status);
/* The service need not go on with it. */
void call_send_cancel(struct channel *channel, const struct call *call);
/* Return: 0, it was sent, or is to end; -ENOMEM. */
int call_send(struct plx_rpc_client *client, struct channel *channel, struct call *call,
	      const struct rpc_header *header, const struct iovec *iov, int count);

/* Time that is left, rounded up: who gives 1 ns does not ask for none. */
static inline uint32_t rpc_remaining_us(uint64_t deadline_ns)
{
	uint64_t now_ns = plx_loop_now_ns();
	uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;

	if (left_ns >= RPC_NO_DEADLINE_US * PLX_NS_PER_US)
		return RPC_NO_DEADLINE_US;
	return (uint32_t)((left_ns + PLX_NS_PER_US - 1) / PLX_NS_PER_US);
}

/* send_queue.c */
/* Whether it takes a request of that length: short, and not too many behind the first are stale. */
bool send_queue_accepts(const struct plx_rpc_client *client, size_t length);
/* Return: 0; -EAGAIN too many bytes wait; -EMSGSIZE; -ENOMEM. */
int send_queue_add(struct plx_rpc_client *client, struct call *call,
		   const struct plx_rpc_call *what, uint64_t deadline_ns, const struct iovec *iov,
		   int count, uint32_t length);
/* The call has ended. */
void send_queue_remove(struct plx_rpc_client *client, struct call *call);
/* As many as there is room for. */
void send_queue_flush(struct plx_rpc_client *client);
void send_queue_free(struct plx_rpc_client *client);

/* saved.c */
/* Return: 0; -EAGAIN too many bytes wait, or are saved; -EMSGSIZE. */
int saved_check_room(const struct plx_rpc_client *client, size_t length);
/* Return: 0; -EAGAIN too many bytes are saved; -EMSGSIZE; -ENOMEM. */
int saved_create(struct plx_rpc_client *client, struct call *call, const struct plx_rpc_call *what,
		 uint64_t deadline_ns, const struct iovec *iov, int count, size_t length);
void saved_free(struct plx_rpc_client *client, struct call *call);
void saved_free_all(struct plx_rpc_client *client);
void saved_enqueue(struct plx_rpc_client *client, struct call *call, struct saved_list *list);
int saved_send(struct plx_rpc_client *client, struct channel *channel, struct call *call);
/* A copy to a second channel. Return: whether it was sent. */
bool saved_send_second(struct plx_rpc_client *client, struct channel *channel, struct call *call);
/* Its link has ended. Return: whether it goes on all the same. */
bool saved_on_link_end(struct channel *channel, struct call *call);
/* The service that answers here now remembers no keys of the one before. */
void saved_fail_retries(struct channel *channel);
/* The service did not take it, as it drains: another one may. Return: whether it goes on. */
bool saved_requeue(struct plx_rpc_client *client, struct call *call);
/* The service did not take it, as it is full: another one may, once. Return: whether it goes on. */
bool saved_redirect(struct channel *channel, struct call *call);
/* Those of `retries` that the channel takes; those of client->waiting that any does. */
void saved_send_retries(struct plx_rpc_client *client, struct channel *channel);
void saved_send_waiting(struct plx_rpc_client *client);

/* hedge.c */
int hedge_init(struct plx_rpc_client *client);
/* A call begins. Return: when its timer is to fire, from now on. */
uint64_t hedge_start(struct plx_rpc_client *client, struct call *call, uint64_t delay_ns);
/* The timer has fired. Return: whether for that, and not for the deadline. */
bool hedge_on_timer(struct plx_rpc_client *client, struct call *call);
/* The reply has come on that channel. */
void hedge_on_reply(struct channel *channel, struct call *call);
/* That channel says no, or has ended. Return: whether the other one goes on. */
bool hedge_continues(struct channel *channel, struct call *call);
/* The second channel need not go on with it. */
void hedge_cancel(struct call *call);

/* receive.c */
void receive_batch(struct channel *channel, struct plx_buf *message);

#endif
