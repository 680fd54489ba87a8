/* SPDX-License-Identifier: BSD-3-Clause */
/* A service: methods that are fixed once it listens, and a part per lcore that only that lcore
 * writes.
 *
 *   service.c   create, listen, statistics; drain and destroy, on all lcores
 *   method.c    its methods
 *   peer.c      a client's link, from HELLO to disconnect
 *   turns.c     received batches, and fair turns between clients
 *   serve.c     a record of a batch: checks, the handler
 *   duplicate.c requests with a key that arrive again
 *   keys.c      what is remembered of those
 *   reply.c     replies, from any thread
 *   request.c   requests that are owed a reply
 *   selftest.c  built-in methods of every service */
#ifndef PLX_RPC_SERVICE_H
#define PLX_RPC_SERVICE_H

#include "counter.h"
#include "rpc_priv.h"
#include "session.h"

#define RPC_LISTENERS_MAX 16

/* Longer replies are allocated separately: an entry is two cache lines. */
#define KEY_REPLY_BYTES 48

/* Longer replies are not remembered, because they are copied under a lock. */
#define KEY_REPLY_MAX (UINT32_C(64) << 10)

struct rpc_keys;
struct key_entry;

/* Keys are per client: equal keys of two clients are different. */
struct rpc_key {
	uint64_t client, number;
};

enum key_state {
	KEY_NEW,     /* first use: run this request */
	KEY_RUNNING, /* its reply is not known yet */
	KEY_DONE,    /* it has run; this is its reply */
	KEY_OTHER,   /* used for another method */
	KEY_FULL,    /* no more keys can be remembered now */
};

struct key_answer {
	struct rpc_header header; /* of a reply, without a call */
	uint8_t *heap;            /* malloc'd, freed by the receiver; NULL: use the inline bytes */
	uint8_t bytes[KEY_REPLY_BYTES];
};

struct method {
	struct plx_rpc_method what; /* with defaults filled in */
	uint32_t index;
	uint32_t next; /* index + 1 of the next in its chain; 0: none */
};

#define METHOD_CHAINS 256

/* A method's state on an lcore. */
struct method_local {
	uint32_t open;          /* owed a reply after their handler returned */
	uint64_t median_ns;     /* median handler time */
	uint64_t median_at_ns;  /* when that was updated */
	uint64_t held, held_ns; /* how many requests were open, and their total time */
	struct plx_log_limit log_limit;
	_Atomic uint64_t requests, replies, refused, slow, handler_ns;
};

struct served {
	_Atomic uint64_t requests, cancelled, deferred, repeated, protocol, clients, open;
	_Atomic uint64_t refused[PLX_RPC_STATUS_COUNT];
};

SLIST_HEAD(request_chain, plx_rpc_request);

/* Requests that a timer checks; a checked request moves to the end. */
struct request_list {
	TAILQ_HEAD(, plx_rpc_request) requests;
	uint32_t count;
	struct plx_timer timer; /* runs while the list is not empty */
};

/* Requests allowed at as_of_ns. */
struct token_bucket {
	double tokens;
	uint64_t as_of_ns;
};

/* A service on one lcore. */
struct service_local {
	alignas(PLX_CACHE_LINE) struct plx_rpc_service *service;
	uint32_t lcore;
	struct plx_acceptor acceptor; /* of its peers */
	struct rpc_slabs requests;
	struct plx_buf *message; /* being served */
	uint32_t open;           /* as in `counts`, plus requests inside their handler */
	bool draining, ending;   /* handled on this lcore */

	struct request_list duplicates; /* waiting for the first request with their key */
	struct request_list orphans;    /* of ended links: request.c */
	struct plx_task notify;         /* of those that no client may ask for */

	struct plx_signal drain, end;
	struct token_bucket answer_tokens, record_tokens;

	struct plx_log_limit log_limit;
	struct served counts;
	/* Allocated when it starts to listen: */
	struct method_local *methods;
	struct request_chain *open_by_call; /* open requests that a client waits for */
};

struct plx_rpc_service {
	struct plx_rpc_service_attr attr;

	uint32_t lcore; /* that created it */
	uint64_t created_ns;

	struct rpc_keys *keys;
	uint64_t identity;    /* random; sent to clients */
	uint64_t multiplier;  /* random; secret */
	uint64_t chain_count; /* of an lcore's open requests */
	struct plx_listener *listeners[RPC_LISTENERS_MAX];
	uint32_t listener_count;
	bool listens;           /* its methods are fixed */
	bool self_test_remote;  /* also for clients on other hosts */
	bool is_self_test_only; /* the process' self-test: few clients, at a bounded cost */
	struct method *methods;
	uint32_t method_count;
	uint32_t chains[METHOD_CHAINS]; /* by id and version: index + 1 of the first; 0: none */
	PLX_ATOMIC(bool) draining;
	PLX_ATOMIC(uint32_t) refs; /* lcores that have not ended it, and the creator */
	struct service_local *local[PLX_LCORE_MAX]; /* in parts; NULL: a later lcore, or none */
	uint32_t part_count;
	struct service_local parts[];
};

#define FOREACH_PART(local, service)                         \
	for (struct service_local *local = (service)->parts; \
	     local < (service)->parts + (service)->part_count; local++)

/* A message with records that wait for a turn. */
struct backlog {
	STAILQ_ENTRY(backlog) link;
	struct plx_buf *message;
	size_t offset;
	uint64_t arrived_ns;
};

struct peer {
	struct session_link session; /* first */
	struct service_local *local;
	struct turn *turn;     /* of its lcore */
	struct turn_rest rest; /* the backlog, unless it is held up */
	bool paused;           /* until its timer fires */
	struct plx_timer timer;
	uint64_t identity; /* of the client, from its HELLO */
	uint64_t reply_max;
	uint64_t arrived_ns;          /* of the batch being served */
	uint64_t answered_ns;         /* when the last open request was answered */
	uint64_t turn_at_ns, turn_ns; /* its current turn, and handler time in it */
	uint32_t turn_count;          /* records served in it */
	STAILQ_HEAD(, backlog) backlog;
	uint64_t backlog_bytes;            /* of messages longer than a batch */
	LIST_HEAD(, plx_rpc_request) open; /* owed a reply after their handler returned */
	uint32_t open_count;
	uint32_t gone_count; /* of those, requests that no client waits for */
	struct rpc_tx tx;    /* long, so last */
};

enum request_state { REQUEST_FREE, REQUEST_RUNNING, REQUEST_OPEN };

struct plx_rpc_request {
	SLIST_ENTRY(plx_rpc_request) chain; /* in open_by_call */
	LIST_ENTRY(plx_rpc_request) open;   /* of its peer */
	struct peer *peer;                  /* NULL: disconnected */
	struct service_local *local;
	uint64_t call;
	uint64_t started; /* plx_tsc() */
	uint64_t deadline_ns;
	struct plx_buf *kept; /* its message; NULL: not kept */
	uint8_t state;
	bool gone;               /* no client waits; peer is NULL only if the link has ended too */
	uint32_t method;         /* index */
	uint8_t *begun;          /* from plx_rpc_reply_begin */
	struct key_entry *entry; /* set for the first request with its key */
	struct request_list *list; /* duplicates or orphans; NULL: none */
	union {
		uint64_t key;     /* of a duplicate that waits for the first */
		uint64_t lost_ns; /* when an orphan's link ended; 0: its client does not return */
	};
	TAILQ_ENTRY(plx_rpc_request) link;
} PLX_ALIGNED_LINE;

/* service.c */
/* Its methods are fixed from here on. Return: 0; -ENOMEM. */
int service_freeze(struct plx_rpc_service *service);
/* The lcore has lost a client or a request, or the service ends. */
void service_end_if_idle(struct service_local *local);

/* method.c */
struct method *method_find(const struct plx_rpc_service *service, uint32_t id, uint16_t version);
/* Does not check reserved ids. */
int method_add(struct plx_rpc_service *service, const struct plx_rpc_method *method);

/* selftest.c. Adds those that an earlier attempt did not. Return: 0; -ENOMEM. */
int selftest_add(struct plx_rpc_service *service);
/* Charge records of any kind to the process' self-test. A client that sends too many pauses, and
 * its window fills up. */
void selftest_charge(struct peer *peer, uint32_t records);
/* Requests per second on an lcore, default of a service; 0: none. */
extern uint32_t selftest_rate;
extern bool selftest_is_remote; /* also for clients on other hosts */
/* struct eal_self_test of lib/eal: a service with only the built-in methods, for links that ask for
 * the self-test of this process (self_test of struct plx_link_attr) at any address where it
 * listens. Each lcore serves up to 16 such clients, with requests of up to PLX_RPC_SELF_TEST_MAX
 * and smaller turns than other services. A client that requests nothing for 10 s is disconnected.
 * Refusals cost time too: beyond twice the rate plus 10000 records a second, input is delayed.
 * rate: also the default for services created later; PLX_NONE: disable it, also in those. remote:
 * serve peers on other hosts (not plx_link_is_same_host); otherwise they get PLX_LINK_HELLO, and
 * PLX_RPC_DENIED from services. Return: 0; -EALREADY; -ENOENT not an lcore; -ENOMEM. */
int selftest_start(uint32_t rate, bool remote);
void selftest_stop(void);

/* peer.c */
extern const struct plx_acceptor_owner peer_owner;
/* Fill in the link's events and the service's HELLO. */
void peer_describe_link(const struct plx_rpc_service *service, struct plx_link_attr *attr);
void peer_reject(struct peer *peer, const char *why);
void peer_drain(struct peer *peer);

/* turns.c */
/* A message arrived: serve it within this turn's limits. */
void turns_receive(struct peer *peer, struct plx_buf *message);
/* Serve the backlog within this turn's limits. */
int turns_go_on(struct turn_rest *rest);
/* Serve the backlog in the next turns if nothing holds it up. */
void turns_resume(struct peer *peer);
/* Drop the backlog. */
void turns_clear(struct peer *peer);

/* serve.c */
/* Return: NULL; how the client violates the protocol. */
const char *serve_record(struct peer *peer, const struct rpc_record *record);

/* request.c */
void request_list_init(struct request_list *list, plx_timer_fn fn, struct service_local *local);
/* Also checks it after poll_ns, unless the timer runs. */
void request_list_add(struct request_list *list, struct plx_rpc_request *request, uint64_t poll_ns);
/* Check each about every poll_ns, a bounded number per call. is_over: the request leaves the list,
 * and may be freed. */
void request_list_poll(struct request_list *list, uint64_t poll_ns,
		       bool (*is_over)(struct plx_rpc_request *request));
/* Take a new request. Return: NULL: no memory. */
struct plx_rpc_request *rpc_request_take(struct peer *peer, uint64_t call, uint32_t method);
void rpc_request_free(struct plx_rpc_request *request);
/* Leave it open. Return: false: the peer was rejected. */
bool open_add(struct peer *peer, struct plx_rpc_request *request);
struct plx_rpc_request *open_find(struct peer *peer, uint64_t call);
void open_remove(struct peer *peer, struct plx_rpc_request *request);
void rpc_request_gone(struct plx_rpc_request *request);
/* The link has ended. may_come_back: it was lost, so the client may ask for replies by key. */
void open_abandon(struct peer *peer, bool may_come_back);
/* Notify those that no client may ask for. */
void orphans_notify(struct plx_task *task, void *arg);
/* And those that no client has asked for in time. */
void orphans_on_timer(struct plx_timer *timer, void *arg);

/* duplicate.c */
/* Claim the key of a request. Return: whether to run it, with *entry_out; else it was handled. */
bool duplicate_claim(struct peer *peer, const struct rpc_record *record,
		     const struct method *method, uint64_t key, struct key_entry **entry_out);
/* No client waits for it. */
void duplicate_gone(struct plx_rpc_request *request);
void duplicate_on_timer(struct plx_timer *timer, void *arg);

/* keys.c: what a service remembers of requests with a key, so that none runs twice. All its lcores
 * share it, because a reconnecting client may get another lcore. It is the only part of a service
 * with locks: one per shard of clients, taken only for requests with keys. */
/* Return: NULL: no memory. */
struct rpc_keys *rpc_keys_create(uint64_t secret, const struct plx_rpc_service_attr *attr);
void rpc_keys_destroy(struct rpc_keys *keys);

/* Claim the key of a new request. NEW: pass *entry_out to rpc_keys_done or rpc_keys_forget. DONE:
 * *out is the reply. FULL: *retry_ns_out is a hint. entry_out NULL: only look it up, for a client
 * that waits for its reply; NEW: it was forgotten. */
enum key_state rpc_keys_claim(struct rpc_keys *keys, struct rpc_key key, uint32_t method,
			      uint64_t now_ns, struct key_entry **entry_out, struct key_answer *out,
			      uint64_t *retry_ns_out);

/* When a client last waited for the reply to a request that runs, since the first one; 0: never. */
uint64_t rpc_keys_waited_ns(const struct key_entry *entry);

/* The request has run: this is its reply. Remembers OVERLOADED if the bytes cannot be allocated. */
void rpc_keys_done(struct rpc_keys *keys, struct key_entry *entry, const struct rpc_header *header,
		   const void *data, uint64_t now_ns);
/* It has not run and may be tried again. */
void rpc_keys_forget(struct rpc_keys *keys, struct key_entry *entry);

/* reply.c: replies that need no request. Without memory for one, the peer is rejected. */
void reply_refusal(struct peer *peer, uint64_t call, enum plx_rpc_status status, uint64_t retry_ns);
/* Frees its bytes. */
void reply_remembered(struct peer *peer, uint64_t call, struct key_answer *answer);

#endif
