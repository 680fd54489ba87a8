/* SPDX-License-Identifier: BSD-3-Clause */
/* A service: methods that do not change any more once it listens, and for each lcore what that one
 * has of it, which no other writes to.
 *
 *   service.c   its life, its addresses, its figures
 *   method.c    its methods
 *   drain.c     its end, on all lcores
 *   peer.c      a client's link, from its HELLO to its end
 *   turns.c     the batches that come by it, and what waits for its turn
 *   serve.c     a record of a batch: checks, the handler
 *   duplicate.c requests that have a key, and come again
 *   keys.c      what is remembered of those: keys.h
 *   reply.c     replies, from wherever they come
 *   request.c   the requests that are owed one
 *   selftest.c  methods that every service has */
#ifndef PLX_RPC_SERVICE_H
#define PLX_RPC_SERVICE_H

#include "counter.h"
#include "keys.h"
#include "rpc_priv.h"
#include "session.h"

#define RPC_LISTENERS_MAX 16

struct method {
	struct plx_rpc_method what;
	uint64_t request_max;
	uint32_t index;
};

/* What an lcore knows of a method. */
struct method_local {
	uint32_t open;              /* requests that are owed a reply behind their handler */
	uint64_t median_ns;         /* its handler's time, as a rule */
	uint64_t median_at_ns;      /* as of then */
	uint64_t held, held_cycles; /* requests that were open, and for how long in all */
	struct plx_log_limit log_limit;
	_Atomic uint64_t requests, replies, refused, slow, cycles;
};

struct served {
	_Atomic uint64_t requests, unknown, late, cancelled, busy, overloaded, draining, too_big,
		deferred, repeated, protocol;
	_Atomic uint64_t clients, open;
};

/* Requests that a timer looks at; those that were looked at go to the end. */
struct request_list {
	TAILQ_HEAD(, plx_rpc_request) requests;
	uint32_t count;
	struct plx_timer timer; /* runs while there are some */
};

/* Requests that may come now, as of then. */
struct token_bucket {
	double tokens;
	uint64_t as_of_ns;
};

/* A service on one lcore. */
struct service_local {
	struct plx_rpc_service *service;
	uint32_t lcore;
	struct plx_acceptor acceptor; /* of its peers */
	struct plx_rpc_request *free; /* requests to be used again */
	struct request_slab *slabs;
	uint32_t open;         /* as in `counts`, and requests inside their handler */
	bool draining, ending; /* it has been seen to */

	struct request_list duplicates; /* wait for the first one of their key */
	struct request_list orphans;    /* links were lost, clients may come back: request.c */

	struct plx_signal wakeup;
	struct token_bucket answer_tokens, record_tokens;

	struct plx_log_limit log_limit;
	struct served counts;
	struct method_local *methods; /* from listening on */
};

struct plx_rpc_service {
	struct plx_rpc_service_attr attr;

	uint32_t lcore; /* that made it */
	uint64_t created_ns;

	struct rpc_keys *keys;
	uint64_t identity;   /* at random; clients know it */
	uint64_t multiplier; /* at random; nobody does */
	uint64_t slow_cycles, turn_cycles;
	struct plx_listener *listeners[RPC_LISTENERS_MAX];
	uint32_t listener_count;
	bool listens; /* its methods stay as they are */
	bool has_self_test;
	bool self_test_remote;  /* for clients on other hosts, too */
	bool is_self_test_only; /* that of the process: what it costs is bounded, and its clients
				   are few */
	struct method *methods;
	uint32_t method_count;
	uint32_t *table; /* index + 1 by id and version, open addressing; 0: free */
	uint32_t table_mask;
	PLX_ATOMIC(bool) draining, ending; /* set before each lcore is told by its signal */
	PLX_ATOMIC(uint32_t) refs;         /* lcores that have not ended it, and who made it */
	struct service_local *local[PLX_LCORE_MAX];
};

/* A message of which records wait for their turn. */
struct backlog {
	STAILQ_ENTRY(backlog) link;
	struct plx_buf *message;
	size_t offset;
	uint64_t arrived_ns;
};

/* Requests that are owed a reply behind their handler, by their calls. */
struct open_table {
	struct plx_rpc_request **buckets;
	uint64_t multiplier;
	uint32_t mask, count;
	uint32_t gone; /* of them, those that nobody waits for any more */
};

struct peer {
	struct plx_accepted session; /* first */
	struct service_local *local;
	struct rpc_tx tx;
	struct plx_task serve; /* what waits */
	bool is_same_host;
	bool paused; /* until its timer fires */
	struct plx_timer timer;
	uint64_t identity; /* of the client, as it says */
	uint64_t reply_max;
	uint64_t arrived_ns;           /* the batch that is being served */
	uint64_t answered_ns;          /* the last one that was open behind its handler */
	uint64_t turn_ns, turn_cycles; /* the turn that it had requests begun in, their time */
	uint32_t turn_count;           /* and how many */
	STAILQ_HEAD(, backlog) backlog;
	uint64_t backlog_bytes; /* of messages that are longer than a batch */
	struct open_table open;
};

enum request_state { REQUEST_FREE, REQUEST_RUNNING, REQUEST_OPEN };

struct plx_rpc_request {
	enum request_state state;
	uint32_t method;   /* index */
	struct peer *peer; /* NULL: it has gone */
	struct service_local *local;
	uint64_t call;
	uint64_t started; /* plx_tsc() */
	uint64_t deadline_ns;
	struct plx_buf *message; /* that is kept, or the one of a running handler */
	bool kept;
	bool gone;      /* nobody waits for it; peer: NULL only where the link has ended, too */
	uint8_t *begun; /* of plx_rpc_reply_begin */
	uint32_t begun_bytes;
	struct plx_rpc_request *next; /* in the free list, or of its bucket */
	struct key_entry *entry;      /* it is the first one of its key */
	uint64_t key;                 /* of one that waits for the first */
	struct request_list *list;    /* duplicates, or orphans; NULL: none */
	TAILQ_ENTRY(plx_rpc_request) link;
};

/* service.c */
void service_free(struct plx_rpc_service *service);
/* From here on its methods stay. Return: 0; -ENOMEM. */
int service_freeze(struct plx_rpc_service *service);

/* method.c */
/* Room for `count`, at least. */
bool method_make_table(struct plx_rpc_service *service, uint32_t count);
const struct method *method_find(const struct plx_rpc_service *service, uint32_t id,
				 uint16_t version);

/* Without a look at who may have which ids. */
int method_add(struct plx_rpc_service *service, const struct plx_rpc_method *method);

/* selftest.c. Return: 0; -ENOMEM. */
int selftest_add(struct plx_rpc_service *service);
/* So many records came to that of the process. Return: 0; for how long none is to be served. */
uint64_t selftest_charge(struct service_local *local, uint32_t records);
/* Requests a second on an lcore, where a service does not say; 0: none. */
extern uint32_t selftest_rate;
extern bool selftest_is_remote; /* for clients on other hosts, too */

/* drain.c */
void service_on_signal(struct plx_signal *signal, uint64_t fires, void *arg);
void service_end_if_idle(struct service_local *local);

/* peer.c */
extern const struct plx_acceptor_owner peer_owner;
/* The events of links, and what the service says of itself in HELLO. */
void peer_describe_link(const struct plx_rpc_service *service, struct plx_link_attr *attr);
void peer_reject(struct peer *peer, const char *why);
void peer_drain(struct peer *peer);

/* turns.c */
/* A message has come: it is served, as far as this turn goes. */
void turns_receive(struct peer *peer, struct plx_buf *message);
/* Serve what waits, as far as this turn goes. */
void turns_serve(struct plx_task *task, void *arg);
/* Nothing holds it up any more, or that is seen here. */
void turns_resume(struct peer *peer);
/* What waits is not served any more. */
void turns_clear(struct peer *peer);

/* serve.c */
/* Return: false, with the reason at *wrong_out, where the client breaks the rules. */
bool serve_record(struct peer *peer, const struct rpc_record *record, struct plx_buf *message,
		  const char **wrong_out);

/* request.c */
void request_list_init(struct request_list *list, plx_timer_fn on_timer,
		       struct service_local *local);
void request_list_add(struct request_list *list, struct plx_rpc_request *request);
void request_list_remove(struct plx_rpc_request *request);
/* A request that was not taken up yet. Return: NULL: no memory. */
struct plx_rpc_request *rpc_request_take(struct peer *peer, uint64_t call, uint32_t method);
void rpc_request_free(struct plx_rpc_request *request);
int open_add(struct peer *peer, struct plx_rpc_request *request);
struct plx_rpc_request *open_find(struct peer *peer, uint64_t call);
void open_remove(struct peer *peer, struct plx_rpc_request *request);
void rpc_request_gone(struct plx_rpc_request *request);
/* Its link has ended. may_come_back: it was lost, so that the client may ask for replies by key. */
void open_abandon(struct peer *peer, bool may_come_back);
/* Nobody comes back for them any more. */
void orphans_abandon(struct service_local *local);
void orphans_on_timer(struct plx_timer *timer, void *arg);
/* One that was open is no more. */
void open_end(struct plx_rpc_request *request);
void rpc_request_free_all(struct service_local *local);

/* duplicate.c */
/* A request with a key: what is to be done with it. NEW: *entry_out is the request's when it runs;
 * else it has been seen to, and *rc_out is 0, or -ENOMEM as below. */
enum key_state duplicate_claim(struct peer *peer, const struct rpc_record *record,
			       const struct method *method, uint64_t key,
			       struct key_entry **entry_out, int *rc_out);
void duplicate_done(struct plx_rpc_request *request, const struct key_answer *answer,
		    const struct iovec *iov, int count);
/* Nobody waits for it any more. */
void duplicate_gone(struct plx_rpc_request *request);
void duplicate_on_timer(struct plx_timer *timer, void *arg);

/* reply.c: answers that need no request. Return: 0; -ENOMEM. */
int reply_refusal(struct peer *peer, uint64_t call, enum plx_rpc_status status,
		  uint64_t retry_after_ns);
int reply_remembered(struct peer *peer, uint64_t call, const struct key_answer *answer);

#endif
