/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Services and those who call them: requests and replies over links, with deadlines. A service
 * registers methods; a client calls them, and hears of every call exactly once: the reply, or why
 * there is none. Calls and replies of one turn share a message.
 */
#ifndef PLX_RPC_H
#define PLX_RPC_H

#include "plx_base.h"
#include "plx_fabric.h"
#include "plx_mem.h"

#include <sys/uio.h>

PLX_BEGIN_DECLS

/** How a call ended. */
enum plx_rpc_status {
	PLX_RPC_OK,         /**< a reply */
	PLX_RPC_ERROR,      /**< a reply that the handler called an error, with its code */
	PLX_RPC_DEADLINE,   /**< no reply in time, or the service saw that there would be none, as
				 the handler takes longer than that as a rule */
	PLX_RPC_CANCELLED,  /**< plx_rpc_cancel, or the client was destroyed */
	PLX_RPC_BUSY,       /**< the method, or what this client may have open, is full: try again,
				 after retry_after_ns */
	PLX_RPC_UNKNOWN,    /**< no such method there, or not in that version */
	PLX_RPC_OVERLOADED, /**< the service as a whole is full: try again, or elsewhere */
	PLX_RPC_DRAINING,   /**< the service is about to end */
	PLX_RPC_PEER_DOWN,  /**< the link ended, or there was none in time */
	PLX_RPC_TOO_BIG,    /**< the request is longer than the service accepts, or the reply longer
				 than the client does */
	PLX_RPC_DENIED,     /**< the service does not let this client call that */
	PLX_RPC_STATUS_COUNT,
};

/** "ok", "error", "deadline", ...; "?" for what is none. Thread: any. */
const char *plx_rpc_status_name(enum plx_rpc_status status);

#define PLX_RPC_DEADLINE_NS_DEFAULT PLX_NS_PER_S

/** Bytes of a request or a reply of the self-test of a process, and of what is generated, at most.
 */
#define PLX_RPC_SELF_TEST_MAX (UINT32_C(64) << 10)

/** Longest request and reply, whatever the two sides say. */
#define PLX_RPC_PAYLOAD_MAX ((UINT64_C(1) << 30) - 4096)

/* Services --------------------------------------------------------------------------------- */

struct plx_rpc_service;

/** One request. Whoever has it owes it one of the replies below, and loses it with that; every
 * other function takes it as it is. It is good until then, also when its client is gone. */
struct plx_rpc_request;

/** A request has come. Runs on the lcore that received it, to completion: it replies, or keeps
 * `request` and lets somebody reply later. data: `length` bytes where they were received, at a
 * multiple of 8; valid until the handler returns, or plx_rpc_request_keep. */
typedef void (*plx_rpc_handler_fn)(struct plx_rpc_request *request, const void *data,
				   uint32_t length, void *arg);

/** Nobody waits for the reply to a request that is still open: it was cancelled, its deadline has
 * passed as its client says, or the client is gone. Where the link of one with a key was lost, its
 * client may come back for the reply: that is told at the deadline. A reply is owed all the same,
 * and dropped. Runs on the request's lcore. */
typedef void (*plx_rpc_gone_fn)(struct plx_rpc_request *request, void *arg);

struct plx_rpc_method {
	uint32_t id;      /**< below PLX_RPC_SELF_TEST */
	uint16_t version; /**< of its meaning; several of one id may be there */
	const char *name; /**< for people; static, or alive as long as the service */
	plx_rpc_handler_fn handler;
	plx_rpc_gone_fn gone; /**< may be NULL */
	void *arg;
	uint32_t open_max;    /**< requests open at a time on an lcore, the rest is BUSY; default
				   the bounds of the service alone */
	uint64_t request_max; /**< bytes; default that of the service */
};

/** 0 or NULL: the default. */
struct plx_rpc_service_attr {
	uint64_t request_max; /**< bytes of the longest request; default 16 MiB */
	uint32_t open_max;    /**< requests of one client that are owed a reply at a time, those
				   that it has given up included, the rest is BUSY; default 1024 */
	uint32_t open_total;  /**< requests open at a time on an lcore, the rest is OVERLOADED;
				   default 1 Mi */
	uint64_t waiting_max; /**< bytes of replies that a client does not take, after which its
				 link is ended; and of its long requests that wait for their turn,
				 the rest is BUSY; default 64 MiB */
	uint32_t turn_max;    /**< requests of one client that are begun in one turn; what else came
				   waits for the next one; default 64 */
	uint64_t turn_ns;     /**< time of its handlers in one turn, after which the same; default
				   100 us */
	uint32_t self_test_rate; /**< self-test requests a second on an lcore, 256 bytes in or out
				    count as one more, the rest is BUSY; default that of
				    the process (--self-test). Where it is given,
				    clients of other hosts may make them, too. PLX_NONE: there
				    are no self-test methods */
	uint32_t keys_max;       /**< requests with a key that are remembered, a 16th of them
				      for each 16th of the clients; what is more is BUSY; default
				      1 Mi */
	uint64_t key_bytes_max;  /**< of their replies beyond 48 bytes, a 16th of them for each
				      16th of the clients; what is more, and any one beyond 64
				      KiB, is remembered as OVERLOADED, that may
				      have run; default 64 MiB */
	uint64_t key_ns;         /**< for so long behind its reply; 1 ms to 24 h, default 10 s */
	uint32_t clients_max;    /**< clients of an lcore, what is more is turned away; default
				      PLX_NO_LIMIT */
	uint64_t slow_ns;        /**< a handler that ran longer is counted, and named in the log
				      unless it is the library's own; default 100 us;
				      PLX_NEVER */
};

/** Make a service without methods. Thread: an lcore. Return: 0; -ENOENT not an lcore; -EINVAL;
 * -ENOMEM. */
int plx_rpc_service_create(const struct plx_rpc_service_attr *attr,
			   struct plx_rpc_service **service_out);

/** Register a method: before plx_rpc_service_listen. The struct is copied. Thread: the lcore that
 * made it. Return: 0; -EINVAL no handler or name, or an id from PLX_RPC_SELF_TEST on; -EEXIST the
 * id has that version already; -EBUSY it listens; -ENOMEM. */
int plx_rpc_service_add(struct plx_rpc_service *service, const struct plx_rpc_method *method);

/* Every service has these methods, version 0, unless its attributes say otherwise: what it costs to
 * call it, and what there is to be called, can be asked of any that runs. */

/** Ids from here on are not for applications. */
#define PLX_RPC_SELF_TEST 0xffffff00u
/** The request back. */
#define PLX_RPC_ECHO 0xffffff00u
/** Nothing back. */
#define PLX_RPC_DISCARD 0xffffff01u
/** So many bytes as 4 bytes say, little-endian, to PLX_RPC_SELF_TEST_MAX: 0, 1, ... 255, 0, ... */
#define PLX_RPC_GENERATE 0xffffff02u
/** JSON: version, program, lcore, uptime_s, methods and their figures on all lcores. Counts as 20
 * requests for each method there is. */
#define PLX_RPC_DESCRIBE 0xffffff03u

/** Listen, at as many addresses as it is called for. listen: as for plx_link_listen, which lcores
 * the clients are spread over included; its link.events and link.user are the service's own. NULL:
 * defaults. Thread: the lcore that made it. Return: as plx_link_listen; -EINVAL also: 16 addresses
 * already; -EBUSY it is being drained; -ENOMEM. */
int plx_rpc_service_listen(struct plx_rpc_service *service, const char *address,
			   const struct plx_listen_attr *listen);

/** Where it listens; NULL beyond the last one. Valid until it is drained or destroyed. Thread: the
 * lcore that made it. */
const char *plx_rpc_service_address(const struct plx_rpc_service *service, uint32_t i);

/** Lame duck: stop listening, tell every client that it is to go elsewhere, answer what is open,
 * and refuse what is new with DRAINING. Clients close their links when they have their replies;
 * those that do not are closed from here, 2 s after they have nothing open. Thread: the lcore that
 * made it. */
void plx_rpc_service_drain(struct plx_rpc_service *service);

/** Whether no client is left on any lcore, and no reply is owed. Thread: any. */
bool plx_rpc_service_is_drained(const struct plx_rpc_service *service);

/** For lcores whose loop was stopped by a signal, all of them: drain the service, turning the loop
 * until no client is left, and no reply owed, on this lcore, on the one that made it: on any, or
 * the time is over. Thread: an lcore, outside its loop. Return: 0; -ETIMEDOUT; -EBUSY inside its
 * loop; -ENOENT not an lcore. */
int plx_rpc_service_finish(struct plx_rpc_service *service, uint64_t timeout_ns);

/** End it: its links are aborted. Requests that somebody still has may be replied to, for nothing;
 * its memory goes when the last of these was. Lcores that run something end their parts when they
 * turn their loops, and call handlers until then, so what methods use has to stay as long; the
 * others' parts end here. So join the workers first, those in plx_rpc_service_finish in any case.
 * Before plx_fabric_drain, which frees its listeners, unless it was drained. Thread: the lcore that
 * made it. Accepts NULL. */
void plx_rpc_service_destroy(struct plx_rpc_service *service);

/** Reply with a copy of the bytes. Where nobody waits any more it goes nowhere. Thread: any; from
 * another one than the request's lcore a copy travels there. Return: 0; on the request's lcore also
 * -EMSGSIZE the client does not accept so much, and hears TOO_BIG, and -ENOMEM it hears OVERLOADED;
 * on another one, where the request stays: -EAGAIN the lane there is full, try again, and -ENOMEM.
 */
int plx_rpc_reply(struct plx_rpc_request *request, const void *data, size_t length);

/** The same of pieces. */
int plx_rpc_replyv(struct plx_rpc_request *request, const struct iovec *iov, int count);

/** The same, called an error: code is the application's own. */
int plx_rpc_reply_error(struct plx_rpc_request *request, uint32_t code, const void *data,
			size_t length);

/** Refuse it: with BUSY, OVERLOADED, DENIED, UNKNOWN, TOO_BIG, DRAINING, DEADLINE, or CANCELLED.
 * retry_after_ns: a hint, which BUSY and OVERLOADED carry; 0: none. With these two it says that it
 * has done nothing, so the client hears that it did not run, and may try another service. Return:
 * as plx_rpc_reply; -EINVAL any other status: the request stays. */
int plx_rpc_refuse(struct plx_rpc_request *request, enum plx_rpc_status status,
		   uint64_t retry_after_ns);

/** Build the reply where it will be sent from: `room` bytes at *at_out, at a multiple of 8, to be
 * written before anything else is called, and plx_rpc_reply_commit. Up to 2048 bytes, and inside
 * the handler only. Return: 0; -EINVAL; -ENOMEM: reply otherwise. */
int plx_rpc_reply_begin(struct plx_rpc_request *request, uint32_t room, void **at_out);

/** Nothing of what was begun is sent, and the request is as before plx_rpc_reply_begin. So it is
 * where the handler begins again, replies or refuses otherwise, or returns without a commit.
 * Does nothing where nothing was begun. Thread: as plx_rpc_reply_begin. */
void plx_rpc_reply_abandon(struct plx_rpc_request *request);

/** Send so many of them, room at most. Thread: as plx_rpc_reply_begin. */
void plx_rpc_reply_commit(struct plx_rpc_request *request, uint32_t length);

/** Let the bytes stay until the reply. They take their place out of the client's receive window
 * until then: a few of them, not for long. Thread: the request's lcore, in the handler. */
void plx_rpc_request_keep(struct plx_rpc_request *request);

/** Whether nobody waits for it any more; see plx_rpc_gone_fn. Thread: the request's lcore. */
bool plx_rpc_request_is_gone(const struct plx_rpc_request *request);

/** When nobody waits for it any more: a time of plx_now_ns, or PLX_NEVER. Thread: who has it.
 */
uint64_t plx_rpc_request_deadline_ns(const struct plx_rpc_request *request);

/** The client's address; valid in the handler. Thread: the request's lcore. */
const char *plx_rpc_request_peer(const struct plx_rpc_request *request);

/** Of all lcores, in the order in which they were registered. */
struct plx_rpc_method_stats {
	uint32_t id;
	uint16_t version;
	const char *name;
	uint64_t requests;   /**< that its handler got */
	uint64_t replies;    /**< of them, however they say it went */
	uint64_t refused;    /**< by the service, before the handler: full, too long, too late */
	uint64_t slow;       /**< handlers that ran longer than slow_ns */
	uint64_t handler_ns; /**< all of its handlers' time */
};

/** Thread: any. Return: 0; -ENOENT there is no i-th. */
int plx_rpc_method_stats(const struct plx_rpc_service *service, uint32_t i,
			 struct plx_rpc_method_stats *stats_out);

struct plx_rpc_service_stats {
	uint32_t clients; /**< connected now */
	uint32_t open;    /**< requests that are owed a reply now */
	uint64_t requests, unknown;
	uint64_t late;      /**< refused: the time that was left is less than their handlers take,
			       in the median */
	uint64_t cancelled; /**< open ones that the client gave up: their time was over, or another
			       reason */
	uint64_t busy, overloaded, draining, too_big; /**< that were refused so */
	uint64_t repeated; /**< requests that had run, by their keys, and were answered again */
	uint64_t deferred; /**< messages, or the rest of one, that waited for another turn */
	uint64_t protocol; /**< clients that were thrown out */
};

/** Thread: any; nearly exact. */
void plx_rpc_service_stats(const struct plx_rpc_service *service,
			   struct plx_rpc_service_stats *stats_out);

/* Clients ---------------------------------------------------------------------------------- */

struct plx_rpc_client;

/** 0 or NULL: the default. */
struct plx_rpc_client_attr {
	struct plx_link_attr link; /**< of its links; events and user are the client's own */
	uint64_t reply_max;        /**< bytes of the longest reply; default 16 MiB */
	uint64_t deadline_ns;      /**< of a call that names none; default 1 s; PLX_NEVER */
	uint32_t calls_max;        /**< open at a time, those that wait included; default 128 Ki */
	uint64_t waiting_max;      /**< bytes of requests of which there is a copy: those that wait
				for a service that is away or takes no more just now, and those
				that may have to be sent again, as all of a client with several
				addresses do; default 64 MiB */
	uint64_t identity;         /**< whose keys its calls' are: of one number they are the same
				clients, also in another process; default: at random */
	uint32_t hedge_per_mille;  /**< of recent hedged calls' replies that came in time, before
				the second service is called; 500 to 999, default 950 */
	uint64_t reconnect_min_ns; /**< back-off: at first; default 10 ms; PLX_NEVER: no next
					attempt */
	uint64_t reconnect_max_ns; /**< at last; default 1 s; after a refusal on the same host
					PLX_RECONNECT_SAME_HOST_NS */
};

/** How a call went. Valid during the callback. */
struct plx_rpc_result {
	enum plx_rpc_status status;
	uint32_t code;    /**< with ERROR: the application's */
	const void *data; /**< with OK and ERROR: the reply, where it was received, at a
			       multiple of 8 */
	uint32_t length;
	struct plx_buf *message; /**< that holds data, to be kept by plx_buf_ref; or NULL */
	uint64_t handler_ns;     /**< from the handler's begin to the reply, as the service says */
	uint64_t retry_after_ns; /**< with a refusal, BUSY and OVERLOADED above all: the service's
				      hint, or 0 */
	bool may_have_run; /**< the request was sent, and no answer says that it did not run */
};

/** Runs on the client's lcore, from its loop: never inside plx_rpc_call or plx_rpc_cancel. Once. */
typedef void (*plx_rpc_done_fn)(const struct plx_rpc_result *result, void *arg);

/** A client of one service at the addresses, a list ended by NULL: connects to all of them, and
 * goes on trying where one is away. A call goes to the one with the least open calls, by the order
 * of the list where they have equally many. Host names are looked up on another thread, for each
 * link, and at most once a second. Thread: an lcore, whose the client is. Return: 0; -ENOENT not an
 * lcore; -EINVAL; -ENODEV, -EOPNOTSUPP and -EACCES as plx_link_connect; -ENOMEM. */
int plx_rpc_client_create(const char *const *addresses, const struct plx_rpc_client_attr *attr,
			  struct plx_rpc_client **client_out);

/** End it: links are closed, and calls that are open are done, with CANCELLED, in here. Not inside
 * one of its callbacks, and before plx_fabric_fini or plx_eal_fini. Thread: owner. Accepts NULL. */
void plx_rpc_client_destroy(struct plx_rpc_client *client);

/** Whether a service is there to be called at this moment. Thread: owner. */
bool plx_rpc_client_is_up(const struct plx_rpc_client *client);

/** Why the first of the addresses where no service is up has none, as of the last attempt, in
 * words;
 * "" where it is not known, or all are up. Valid until the loop's next turn. Thread: owner. */
const char *plx_rpc_client_trouble(const struct plx_rpc_client *client);

/** libfabric's name of the provider of the first link that is up, "plx_tcp"; "" where there is
 * none. Valid as long as that link. Thread: owner. */
const char *plx_rpc_client_provider(const struct plx_rpc_client *client);

struct plx_rpc_call {

	uint32_t method;
	uint16_t version;
	uint64_t deadline_ns; /**< from now on; default the client's; PLX_NEVER */
	plx_rpc_done_fn done; /**< NULL: nobody wants to know */
	void *arg;

	/** A number of the application's, not 0, for this one thing to be done: a service runs at
	 * most one request of a client with that key, and answers what comes later as it has
	 * answered that, for key_ns of its attributes and in the same process: with several
	 * addresses a call that is made anew may come to another one, which does not know of it. A
	 * key of another method's is DENIED, and those of the self-test do not look at keys. Where
	 * the handler refused with BUSY, OVERLOADED or DRAINING it did nothing, and the next one
	 * runs. 0: none. */
	uint64_t key;
	/** Where the link ends before the reply, send it again, within the deadline: without a key
	 * to any of the addresses, so it may run more than once; with one to the same service, and
	 * where that has ended, or half of its key_ns is over, the call is PEER_DOWN. */
	bool retry;
	/** Where there is no reply in the time that most took (hedge_per_mille), send it to a
	 * second service as well; the first reply counts. It may run on both: not with a key. */
	bool hedge;
};

/** The number of a call that is open, unique in its client. */
typedef uint64_t plx_rpc_call_id;

/** Call a method with a copy of the bytes. It leaves at the end of this turn, with all others to
 * the same service; inside a callback of the client, with the end of that. While no service is
 * there it waits for one, until its deadline. id_out may be NULL. Thread: owner. Return: 0;
 * otherwise done is not called: -EAGAIN as many calls as there may be are open, or too many bytes
 * are kept; -EMSGSIZE longer than waiting_max, where it has to wait or be kept; -EINVAL longer than
 * PLX_RPC_PAYLOAD_MAX, or a key and hedge; -ENOMEM; -ENOTCONN the client is being destroyed. */
int plx_rpc_call(struct plx_rpc_client *client, const struct plx_rpc_call *call, const void *data,
		 size_t length, plx_rpc_call_id *id_out);

/** The same of pieces. */
int plx_rpc_callv(struct plx_rpc_client *client, const struct plx_rpc_call *call,
		  const struct iovec *iov, int count, plx_rpc_call_id *id_out);

/** Give a call up: done follows, with CANCELLED, and the service is told. Thread: owner. Return: 0;
 * -ENOENT it is done, or is about to be told. */
int plx_rpc_cancel(struct plx_rpc_client *client, plx_rpc_call_id id);

/** What plx_rpc_call_wait brings. */
struct plx_rpc_answer {
	enum plx_rpc_status status;
	uint32_t code;
	uint64_t handler_ns, retry_after_ns;
	bool may_have_run;
	size_t length; /**< of the reply: what is beyond `room` was cut off */
};

/** Call, and wait for the answer: for threads that are no lcores. call->done and arg are not used.
 * Up to `room` bytes of the reply are copied to `reply`. The client's lcore must turn its
 * loop, and the client be there, until this returns: a program that ends turns it until its threads
 * are back. Thread: any that is no lcore. Return: 0, as answer tells; -EDEADLK on an lcore; -EINVAL
 * and -EMSGSIZE as plx_rpc_call, or no answer_out, or no reply but room for one; -ENOMEM. */
int plx_rpc_call_wait(struct plx_rpc_client *client, const struct plx_rpc_call *call,
		      const void *data, size_t length, void *reply, size_t room,
		      struct plx_rpc_answer *answer_out);

struct plx_rpc_client_stats {
	uint32_t open;    /**< calls that are not done */
	uint32_t waiting; /**< of them, those that were not sent yet */
	uint32_t links;   /**< that are up */
	uint64_t calls;
	uint64_t done[PLX_RPC_STATUS_COUNT]; /**< calls, by how they ended */
	uint64_t retried;    /**< calls that were to be sent again, as their link ended */
	uint64_t hedged;     /**< calls that were sent to a second service, too */
	uint64_t hedges_won; /**< of them, those that the second one answered first */
	uint64_t strays;     /**< replies to no call: late, twice, or made up */
	uint64_t batches;    /**< messages that took the requests along */
	uint64_t protocol;   /**< links that were ended, as the service broke rules */
};

/** Thread: owner. */
void plx_rpc_client_stats(const struct plx_rpc_client *client,
			  struct plx_rpc_client_stats *stats_out);

PLX_END_DECLS

#endif
