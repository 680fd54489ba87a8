/* SPDX-License-Identifier: BSD-3-Clause */
/* A client: its open calls, and a channel to each address.
 *
 *   client.c       create, destroy, statistics
 *   balance.c      choice of a channel
 *   channel.c      a session with one address: its HELLO, and batches of replies
 *   call.c         calls, from the start to the callback
 *   send_queue.c   requests that wait to be sent once
 *   saved.c        requests with a copy, which may be sent again
 *   hedge.c        calls that are sent to a second service when the first is slow
 *   wait.c         calls from threads that are not lcores */
#ifndef PLX_RPC_CLIENT_H
#define PLX_RPC_CLIENT_H

#include "rpc_priv.h"

#include "plx_stats.h"
#include "session.h"

#include <pthread.h>

#define RPC_CHANNELS_MAX 16

/* A refused request waits as long as the service asks, plus a back-off. */
#define REFUSED_NS_MIN PLX_NS_PER_MS
#define REFUSED_NS_MAX (100 * PLX_NS_PER_MS)

/* A call is in one state, and in at most one list. */
enum call_state {
	CALL_FREE,      /* in the free list */
	CALL_WAITING,   /* for a channel; in client->queue, or saved in a list */
	CALL_SENT,      /* on a channel */
	CALL_COMPLETED, /* in client->completed; its callback runs soon */
};

TAILQ_HEAD(saved_list, saved_request);
STAILQ_HEAD(completed_list, call);

struct request {
	uint64_t deadline_ns;
	uint32_t method, length;
	uint16_t version;
	bool has_key; /* it starts with a key */
};

/* Without its key. */
static inline uint32_t request_bytes(const struct request *request)
{
	return request->length - (request->has_key ? RPC_KEY_BYTES : 0);
}

/* A request that was not sent, or may be sent again. */
struct saved_request {
	TAILQ_ENTRY(saved_request) link;
	struct saved_list *list; /* the list that it waits in; NULL: none */
	struct call *call;
	struct channel *second; /* also sent on this channel; NULL: not hedged */
	struct request what;
	uint64_t first_sent_ns; /* 0: not sent */
	bool retry, hedge;
	bool hedge_due;    /* the timer runs for the hedge */
	bool link_lost;    /* a link ended after the request was sent on it */
	bool was_refused;  /* a full service refused it, and another one has it */
	uint32_t refusals; /* after which it waited */
	uint8_t bytes[];
};

/* Requests that wait to be sent once. All are older than those in a list. */
struct send_queue {
	struct send_queue_block *first, *last; /* unused ones follow the last */
	uint64_t bytes;                        /* of all records */
	uint64_t stale_bytes; /* of completed calls; the first record is not stale */
	uint32_t count;       /* of open calls */
};

/* How long hedged calls take. */
struct hedge {
	struct plx_hist times;
	uint64_t delay_ns; /* UINT64_MAX: not known yet */
	uint32_t budget;   /* for extra requests, in tenths */
};

struct call {
	struct plx_timer timer;
	plx_rpc_done_fn done;
	void *arg;
	struct channel *channel;     /* SENT */
	struct saved_request *saved; /* or NULL */
	union {
		struct call *next; /* FREE */
		STAILQ_ENTRY(call) completed;
	};
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
	bool draining;                       /* the service accepts no new requests */
	uint32_t failed;                     /* share of recent calls: see balance.c */
	uint64_t failed_ns;                  /* time of the last failure */
	uint64_t overloaded_until_ns;        /* prefer other services until then */
	uint32_t open;                       /* sent and not completed */
	uint32_t open_max;                   /* limit set by the service */
	uint64_t request_max;
	uint64_t identity;         /* of the last service; 0: none yet */
	uint64_t key_ns;           /* how long that service remembers keys */
	struct saved_list retries; /* requests with keys, sent to that service on lost links */
	struct turn *turn;         /* of its lcore */
	struct turn_rest later;    /* delivers `rests` */
	STAILQ_HEAD(, rest) rests; /* of batches, oldest first */
	struct rpc_tx tx;          /* long, so last */
};

/* Threads that are not lcores, in plx_rpc_call_wait. */
struct rpc_waiters {
	pthread_mutex_t lock;
	TAILQ_HEAD(, caller) queued; /* calls that the lcore has not started, oldest first */
	struct plx_signal arrived;   /* fired for each */
	bool warned;                 /* the log has that the lcore does not run its loop */
};

struct plx_rpc_client {
	struct plx_rpc_client_attr attr;
	uint32_t lcore;
	struct call **chunks;
	uint32_t chunk_count, open;
	struct call *free;
	struct send_queue queue;
	struct saved_list waiting;
	struct saved_list refused;  /* by full services: each waits for its timer */
	struct plx_backoff backoff; /* for how long */
	uint32_t waiting_count;     /* in these lists and those of the channels */
	uint64_t request_bytes;     /* of all saved and queued requests */
	struct rpc_slabs saved_blocks;
	struct hedge hedge;
	struct completed_list completed;
	struct plx_task deliver; /* runs their callbacks */
	bool ending;             /* accepts no calls */
	bool ended;              /* its links too */
	uint32_t holds;          /* the program's, and functions that use it after a callback */
	struct plx_log_limit log_limit;
	struct plx_rpc_client_stats counts;
	struct rpc_waiters waiters;
	uint32_t channel_count;
	struct channel channels[];
};

static inline void fetch_lines(const void *from, int bytes)
{
	for (int i = 0; i < bytes; i += PLX_CACHE_LINE)
		plx_prefetch_write((const char *)from + i);
}

/* client.c */
void client_free(struct plx_rpc_client *client);

/* Keep its memory while callbacks may destroy it. A cleanup ends the hold, in case a C++ callback
 * throws:
 *     struct plx_rpc_client *held PLX_CLEANUP(client_unhold) = client_hold(client); */
static inline struct plx_rpc_client *client_hold(struct plx_rpc_client *held)
{
	held->holds++;
	return held;
}

static inline void client_unhold(struct plx_rpc_client **held)
{
	if (plx_unlikely(--(*held)->holds == 0))
		client_free(*held);
}

/* Send waiting requests while there is room. */
void client_send_waiting(struct plx_rpc_client *client);

/* balance.c */
/* Choose a channel for a request of this length, excluding its key. Prefers services that accept
 * the length, then those not overloaded, then the fewest open calls per success. Never returns
 * `other`. If no connected service accepts the length, returns one that does not. NULL: none has
 * room. */
struct channel *channel_choose(struct plx_rpc_client *client, const struct channel *other,
			       uint64_t length);
/* Whether the next call should go to `channel` rather than to `other`, if both have room. */
bool channel_is_better(const struct channel *channel, const struct channel *other, uint64_t now_ns);
/* A reply with a status other than OK. */
void channel_note_failure(struct channel *channel, const struct rpc_header *header,
			  uint64_t now_ns);
void channel_note_success(struct channel *channel);

/* channel.c */
/* Return: as plx_connector_open; it has one more channel in any case. */
int client_add_channel(struct plx_rpc_client *client, const struct plx_connector_attr *session,
		       const char *address);
void channel_check_drain(struct channel *channel);
/* Drop what was received and not delivered. */
void channel_drop_rests(struct channel *channel);

/* The service has accepted the link, and this side is not closing it. */
static inline bool channel_is_up(const struct channel *channel)
{
	return channel->session.state == PLX_CONNECTOR_OPEN;
}

/* A closing link takes no new batch, so this asks the link for the first record of each batch. */
static inline bool channel_has_room(const struct channel *channel)
{
	return channel_is_up(channel) && !channel->draining && channel->open < channel->open_max &&
	       !rpc_tx_is_full(&channel->tx) &&
	       (channel->tx.bytes || plx_link_is_open(channel->session.link));
}

/* call.c */
void client_deliver(struct plx_task *task, void *arg);
void client_channel_down(struct channel *channel);
/* Complete all calls: runs their callbacks. */
void client_cancel_all(struct plx_rpc_client *client);
void client_free_calls(struct plx_rpc_client *client);
struct call *call_find(const struct plx_rpc_client *client, plx_rpc_call_id id);
/* Call call_find for it soon. */
void call_prefetch(const struct plx_rpc_client *client, plx_rpc_call_id id);
plx_rpc_call_id call_id(const struct call *call);
/* Complete it with the reply that was received: runs the callback. */
void call_finish(struct plx_rpc_client *client, struct call *call,
		 const struct plx_rpc_result *result);
/* Complete it otherwise: the callback runs from the loop, where nothing else uses the client. */
void call_finish_later(struct plx_rpc_client *client, struct call *call,
		       enum plx_rpc_status status);
/* Tell the service to stop working on it. */
void call_send_cancel(struct channel *channel, const struct call *call);
/* Return: 0 it was sent or will be completed; -ENOMEM. */
int call_send(struct channel *channel, struct call *call, const struct request *request,
	      const void *payload);

/* Return whether a link ended after the request was sent on it: its fate is unknown. */
static inline bool call_link_lost(const struct call *call)
{
	return call->saved && call->saved->link_lost;
}

/* send_queue.c */
/* Whether the queue takes a request of that length: it is short, and few records are stale. */
bool send_queue_accepts(const struct plx_rpc_client *client, size_t length);
/* Return: 0; -EAGAIN too many bytes wait; -EMSGSIZE; -ENOMEM. */
int send_queue_add(struct plx_rpc_client *client, struct call *call, const struct request *request,
		   const void *data);
/* The call has completed. */
void send_queue_remove(struct plx_rpc_client *client, struct call *call);
/* Send while there is room. */
void send_queue_flush(struct plx_rpc_client *client);
void send_queue_free(struct plx_rpc_client *client);

/* saved.c */
/* Return: 0; -EAGAIN too many bytes wait or are saved; -EMSGSIZE. */
int saved_check_room(const struct plx_rpc_client *client, size_t length);
/* Return: 0; -EAGAIN too many bytes are saved; -EMSGSIZE; -ENOMEM. */
int saved_create(struct plx_rpc_client *client, struct call *call, const struct plx_rpc_call *what,
		 const struct request *request, const void *data);
void saved_free(struct plx_rpc_client *client, struct call *call);
void saved_enqueue(struct plx_rpc_client *client, struct call *call, struct saved_list *list);
int saved_send(struct channel *channel, struct call *call);
/* Send a copy on a second channel. Return: whether it was sent. */
bool saved_send_second(struct channel *channel, struct call *call);
/* The timer fired. Return: whether for a refused request, and not the deadline. */
bool saved_on_timer(struct plx_rpc_client *client, struct call *call);
/* The link has ended. Return: whether the call continues. */
bool saved_on_link_end(struct channel *channel, struct call *call);
/* Another service answers at this address and does not know the keys of the previous one. */
void saved_fail_retries(struct channel *channel);
/* Return: whether the call continues elsewhere despite this reply. */
bool saved_continues(struct channel *channel, struct call *call, const struct rpc_header *header);
/* Send the `retries` that the channel takes, and the client->waiting that any channel takes. */
void saved_send_retries(struct channel *channel);
void saved_send_waiting(struct plx_rpc_client *client);

/* hedge.c */
int hedge_init(struct plx_rpc_client *client);
/* A call starts. Return: the timer's delay from now. */
uint64_t hedge_start(struct plx_rpc_client *client, struct call *call, uint64_t delay_ns);
/* The timer fired. Return: whether for the hedge, and not the deadline. */
bool hedge_on_timer(struct plx_rpc_client *client, struct call *call);
/* The reply arrived on that channel. */
void hedge_on_reply(struct channel *channel, struct call *call);
/* The channel refused it or closed. Return: whether the other channel continues. */
bool hedge_continues(struct channel *channel, struct call *call);
/* Cancel the copy on the second channel. */
void hedge_cancel(struct call *call);

/* wait.c */
/* Return: as plx_signal_init. */
int waiters_init(struct rpc_waiters *waiters);

#endif
