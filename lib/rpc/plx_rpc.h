/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Services and clients: requests and replies over links, with deadlines. A service registers
 * methods; a client calls them. Every call completes exactly once, with a reply or with the reason
 * why there is none. Calls and replies of one turn share a message.
 */
#ifndef PLX_RPC_H
#define PLX_RPC_H

#include "plx_base.h"
#include "plx_fabric.h"
#include "plx_mem.h"

PLX_BEGIN_DECLS

/** How a call ended. */
enum plx_rpc_status {
	PLX_RPC_OK,         /**< a reply */
	PLX_RPC_ERROR,      /**< a reply that the handler marked as an error, with its code */
	PLX_RPC_DEADLINE,   /**< no reply in time, or the service predicts that, because the median
				 time inside the handler, without a later reply, is longer */
	PLX_RPC_CANCELLED,  /**< plx_rpc_cancel, or the client was destroyed */
	PLX_RPC_BUSY,       /**< the method or this client's limit is full: retry after
				 retry_after_ns */
	PLX_RPC_UNKNOWN,    /**< the service has no such method or version */
	PLX_RPC_OVERLOADED, /**< the service as a whole is full: retry, or use another service */
	PLX_RPC_DRAINING,   /**< the service is shutting down */
	PLX_RPC_PEER_DOWN,  /**< the link ended, or no link came up in time */
	PLX_RPC_TOO_BIG,    /**< the request exceeds the service's maximum, or the reply the
				 client's */
	PLX_RPC_DENIED,     /**< the service does not allow this client to call that */
	PLX_RPC_STATUS_COUNT,
};

/** Name of a status: "ok", "error", "deadline", ...; "?" if unknown. Thread: any. */
const char *plx_rpc_status_name(enum plx_rpc_status status);

#define PLX_RPC_DEADLINE_NS_DEFAULT PLX_NS_PER_S

/** Maximum bytes of a self-test request or reply, and of PLX_RPC_GENERATE. */
#define PLX_RPC_SELF_TEST_MAX (UINT32_C(64) << 10)

/** Longest request and reply, in bytes: both are copied. Send longer data in several, or on a link
 * (plx_link_send_buf). */
#define PLX_RPC_PAYLOAD_MAX PLX_SEND_COPY_MAX

/* Services --------------------------------------------------------------------------------- */

struct plx_rpc_service;

/** One request. Its holder owes it exactly one of the replies below, which takes it; all other
 * functions leave it with the holder. It is valid until then, even if its client has disconnected,
 * the service was destroyed, or its handler threw a C++ exception.
 */
struct plx_rpc_request;

/** Handle a request. Runs to completion on the lcore that received it. Replies, or keeps `request`
 * for a later reply. This function and the next may make any call of this header, also
 * plx_rpc_service_destroy on the service's lcore; only plx_rpc_service_finish returns -EBUSY.
 * data: `length` bytes in the receive buffer, aligned to 8; valid until the handler returns, or
 * with plx_rpc_request_keep until the reply. */
typedef void (*plx_rpc_handler_fn)(struct plx_rpc_request *request, const void *data,
				   uint32_t length, void *arg);

/** Nobody waits for the reply to an open request any longer: it was cancelled, its client's
 * deadline passed, or the client disconnected. If the link of a request with a key is lost, its
 * client may reconnect for the reply. This is reported if it does not: at the deadline, or key_ns
 * after the loss if that is earlier. The reply is still owed, and is dropped. Not called once the
 * service is destroyed.
 * Runs on the request's lcore, from its loop. */
typedef void (*plx_rpc_gone_fn)(struct plx_rpc_request *request, void *arg);

struct plx_rpc_method {
	uint32_t id;      /**< below PLX_RPC_SELF_TEST */
	uint16_t version; /**< version of its meaning; an id may have several */
	const char *name; /**< for people; static, or outlives the service */
	plx_rpc_handler_fn handler;
	plx_rpc_gone_fn gone; /**< may be NULL */
	void *arg;
	uint32_t open_max;    /**< open requests per lcore, further ones get BUSY; default: only the
				   service's limits */
	uint64_t request_max; /**< bytes; default: the service's */
};

/** 0 or NULL: the default. */
struct plx_rpc_service_attr {
	uint64_t request_max; /**< longest request in bytes: up to PLX_RPC_PAYLOAD_MAX; default 16
				   MiB */
	uint32_t open_max;    /**< unanswered requests of one client, including those it gave up;
				   further ones get BUSY; default 1024 */
	uint32_t open_total;  /**< open requests per lcore, more get OVERLOADED; default 1 Mi */
	uint64_t waiting_max; /**< bytes of replies that a client does not take, then its link ends;
				   also bytes of its long requests that wait for their turn, then
				   BUSY; default 64 MiB */
	uint32_t turn_max;    /**< requests of one client started per turn, the rest waits for the
				   next turn; default 64 */
	uint64_t turn_ns;     /**< handler time per turn, then the rest waits for the next turn;
				   default 100 us */
	uint32_t self_test_rate; /**< self-test requests per second and lcore, further ones get
				      BUSY; each 256 bytes in or out count as one more. Default:
				      that of the process (--self-test). If set here, clients of
				      other hosts may call them too. PLX_NONE: no such methods */
	uint32_t keys_max;       /**< remembered requests with a key, further ones get BUSY; default
				      1 Mi. Each 16th of the clients shares a 16th, so one client
				      has at most 65536 of these */
	uint64_t key_bytes_max;  /**< bytes of their replies above 48 bytes each; default 64 MiB,
				      shared likewise. Replies beyond that, or above 64 KiB, are
				      remembered as OVERLOADED that may have run */
	uint64_t key_ns;         /**< how long a key is remembered after its reply: 1 ms to 24 h;
				      default 10 s */
	uint32_t clients_max;    /**< clients per lcore, further ones are refused; default
				      PLX_NO_LIMIT */
	uint64_t slow_ns;        /**< handlers that take longer are counted, and logged by name
				      unless they are the library's, or that the thread was without
				      its CPU for most of that; default 100 us; PLX_NEVER */
};

/** Create a service without methods.
 * Thread: an lcore.
 * Return: 0; -ENOENT not an lcore; -EINVAL; -ENOMEM. */
int plx_rpc_service_create(const struct plx_rpc_service_attr *attr,
			   struct plx_rpc_service **service_out);

/** Register a method, before plx_rpc_service_listen. Copies the struct.
 * Thread: the lcore that created the service.
 * Return: 0; -EINVAL no handler or name, or an id from PLX_RPC_SELF_TEST on; -EEXIST that id and
 * version exist; -EBUSY it listens already; -ENOMEM. */
int plx_rpc_service_add(struct plx_rpc_service *service, const struct plx_rpc_method *method);

/* Self-test methods. Every service has them in version 0 unless its attributes disable them. They
 * show what a call costs and which methods a running service has. */

/** Ids from here on are reserved. */
#define PLX_RPC_SELF_TEST 0xffffff00u
/** Returns the request. */
#define PLX_RPC_ECHO 0xffffff00u
/** Returns nothing. */
#define PLX_RPC_DISCARD 0xffffff01u
/** Returns as many bytes as the request's 4 bytes say (little-endian), up to
 * PLX_RPC_SELF_TEST_MAX: 0, 1, ... 255, 0, ... */
#define PLX_RPC_GENERATE 0xffffff02u
/** Returns JSON: version, program, pid, lcore, uptime_s, the client that asks as the service sees
 * it (address, program, pid, provider, choice), and methods with their figures on all lcores.
 * Counts as 20 requests per method. */
#define PLX_RPC_DESCRIBE 0xffffff03u

/** Listen; may be called for up to 16 addresses. listen: as for plx_link_listen, including the
 * spread of clients over lcores; the service sets link.events and link.user. NULL: defaults.
 * Thread: the lcore that created the service.
 * Return: as plx_link_listen; -EINVAL also: 16 addresses already; -EBUSY it is draining; -ENOMEM.
 */
int plx_rpc_service_listen(struct plx_rpc_service *service, const char *address,
			   const struct plx_listen_attr *listen);

/** The service's i-th listening address; NULL past the last. Valid until it is drained or
 * destroyed.
 * Thread: the lcore that created the service. */
const char *plx_rpc_service_address(const struct plx_rpc_service *service, uint32_t i);

/** Lame duck: stop listening, ask every client to use another service, answer open requests, and
 * refuse with DRAINING those whose handler has not started. Clients close their links once they
 * have their replies. The service closes the others 2 s after their last open request if they took
 * their replies, and drops them after PLX_CLOSE_NS (5 s) if not. Works in any callback; the rest
 * follows from the loop.
 * Thread: the lcore that created the service. */
void plx_rpc_service_drain(struct plx_rpc_service *service);

/** Whether no lcore has a client left, and no reply is owed. Thread: any. */
bool plx_rpc_service_is_drained(const struct plx_rpc_service *service);

/** Drain the service on an lcore whose loop was stopped by a signal; call it on all lcores. Turns
 * the loop until this lcore has no client and owes no reply. On the lcore that created the service
 * it waits for all lcores. Returns after timeout_ns at the latest. Callbacks run meanwhile, and may
 * destroy the service.
 * Thread: an lcore, outside its loop.
 * Return: 0; -ETIMEDOUT; -EBUSY in a callback, -ENOENT not an lcore: nothing was done. */
int plx_rpc_service_finish(struct plx_rpc_service *service, uint64_t timeout_ns);

/** Destroy the service and abort its links. Accepts NULL. Works in any callback: no handler starts
 * on this lcore after it. Requests still held may be replied to, without effect; the last reply
 * frees the service's memory.
 * Lcores with a running function end their part when they next turn their loop, and call handlers
 * until then: methods' data must stay until then. The parts of other lcores end here. So join the
 * workers first, above all those inside plx_rpc_service_finish.
 * Call this before plx_fabric_fini or plx_eal_fini.
 * Thread: the lcore that created the service. */
void plx_rpc_service_destroy(struct plx_rpc_service *service);

/** Reply with a copy of the bytes. Dropped if nobody waits for it.
 * Thread: any; from another thread than the request's lcore, a copy is sent there.
 * Return: 0; -EMSGSIZE above PLX_RPC_PAYLOAD_MAX, the client gets TOO_BIG. On the request's lcore
 * also -EMSGSIZE above the client's maximum, it gets TOO_BIG; -ENOMEM, it gets OVERLOADED. On other
 * threads also -EAGAIN the lane is full, or -ENOMEM: the caller keeps the request and may retry. */
int plx_rpc_reply(struct plx_rpc_request *request, const void *data, size_t length);

/** plx_rpc_reply marked as an error; code is the application's. */
int plx_rpc_reply_error(struct plx_rpc_request *request, uint32_t code, const void *data,
			size_t length);

/** Refuse a request with BUSY, OVERLOADED, DENIED, UNKNOWN, TOO_BIG, DRAINING, DEADLINE or
 * CANCELLED. BUSY and OVERLOADED state that nothing was done, so the client may try another
 * service, and carry retry_after_ns, a hint in ns; 0: none.
 * Return: as plx_rpc_reply; -EINVAL another status, the caller keeps the request. */
int plx_rpc_refuse(struct plx_rpc_request *request, enum plx_rpc_status status,
		   uint64_t retry_after_ns);

/** Build the reply in the send buffer: `room` bytes at *at_out, aligned to 8, at most 2048. Write
 * them before calling anything else, then call plx_rpc_reply_commit.
 * Thread: the request's lcore, inside the handler.
 * Return: 0; -EINVAL; -ENOMEM use plx_rpc_reply. */
int plx_rpc_reply_begin(struct plx_rpc_request *request, uint32_t room, void **at_out);

/** Undo plx_rpc_reply_begin; does nothing without one. Beginning again, another reply or refusal,
 * and a return from the handler without a commit do the same.
 * Thread: as plx_rpc_reply_begin. */
void plx_rpc_reply_abandon(struct plx_rpc_request *request);

/** Send the first `length` bytes as the reply; at most `room`.
 * Thread: as plx_rpc_reply_begin. */
void plx_rpc_reply_commit(struct plx_rpc_request *request, uint32_t length);

/** Keep the request's data until the reply. They occupy the client's receive window until then, so
 * keep few and only briefly.
 * Thread: the request's lcore, in the handler. */
void plx_rpc_request_keep(struct plx_rpc_request *request);

/** Whether nobody waits for the reply: see plx_rpc_gone_fn. Thread: the request's lcore. */
bool plx_rpc_request_is_gone(const struct plx_rpc_request *request);

/** When the client stops waiting, as a time of plx_now_ns; PLX_NEVER: no deadline. Thread: the
 * holder's. */
uint64_t plx_rpc_request_deadline_ns(const struct plx_rpc_request *request);

/** The client's link. The getters of plx_peer.h give the client's address, program and process id.
 * NULL: the link has ended. Valid until the handler returns, or the loop's next turn.
 * Thread: the request's lcore. */
const struct plx_link *plx_rpc_request_link(const struct plx_rpc_request *request);

/** Sums over all lcores. Methods are in the order of registration. */
struct plx_rpc_method_stats {
	uint32_t id;
	uint16_t version;
	const char *name;
	uint64_t requests;   /**< handler calls */
	uint64_t replies;    /**< requests that were answered: by a reply, an error or
				  plx_rpc_refuse, also if nobody waited for it */
	uint64_t refused;    /**< refused before the handler: full, too long, too late, or for their
				  key. Not counted: DRAINING; in a full service, long requests that
				  wait for their turn and repeated keys */
	uint64_t slow;       /**< handler calls longer than slow_ns */
	uint64_t handler_ns; /**< total time inside the handler: to its return, so without the time
				  to a later reply */
};

/** Statistics of the i-th method.
 * Thread: any.
 * Return: 0; -ENOENT no i-th method. */
int plx_rpc_method_stats_read(const struct plx_rpc_service *service, uint32_t i,
			      struct plx_rpc_method_stats *stats_out);

struct plx_rpc_service_stats {
	uint32_t clients; /**< connected now */
	uint32_t open;    /**< unanswered requests now */
	uint64_t requests, unknown;
	uint64_t late; /**< refused with DEADLINE: the time was over, or shorter than the median
			    time inside the handler */
	uint64_t cancelled; /**< open requests that the client gave up, by deadline or otherwise */
	uint64_t busy, overloaded, draining, too_big; /**< refused with that status */
	uint64_t repeated; /**< requests with a key that had run, answered from memory */
	uint64_t deferred; /**< messages, or parts of one, that waited for another turn */
	uint64_t protocol; /**< clients disconnected for breaking the protocol */
};

/** Statistics of a service; approximate while it runs. Thread: any. */
void plx_rpc_service_stats_read(const struct plx_rpc_service *service,
				struct plx_rpc_service_stats *stats_out);

/* Clients ---------------------------------------------------------------------------------- */

struct plx_rpc_client;

/** 0 or NULL: the default. */
struct plx_rpc_client_attr {
	struct plx_link_attr link; /**< of its links; the client sets events and user */
	uint64_t reply_max;        /**< longest reply in bytes: up to PLX_RPC_PAYLOAD_MAX; default
					16 MiB */
	uint64_t deadline_ns;      /**< of calls without one; default 1 s; PLX_NEVER */
	uint32_t calls_max;        /**< open calls, including waiting ones; default 128 Ki */
	uint64_t waiting_max;      /**< bytes of copied requests; default 64 MiB. Requests are
					copied while the service is disconnected or has no room, and
					if they may be sent again, as all requests of a client with
					several addresses */
	uint64_t identity;         /**< namespace of its keys: clients with the same number count as
					one, also across processes; default: random */
	uint64_t reconnect_min_ns; /**< first back-off; default 10 ms; PLX_NEVER: no reconnect */
	uint64_t reconnect_max_ns; /**< maximum back-off; default 1 s. After a refusal on the same
					host PLX_RECONNECT_SAME_HOST_NS */
};

/** Result of a call. Valid during the callback. */
struct plx_rpc_result {
	enum plx_rpc_status status;
	uint32_t code;    /**< with ERROR: the application's code */
	const void *data; /**< with OK and ERROR: the reply in the receive buffer, aligned to 8 */
	uint32_t length;
	struct plx_buf *message; /**< holds data; keep it with plx_buf_ref. NULL: data cannot be
				      kept */
	uint64_t handler_ns;     /**< time from the handler's start to the reply, also a later one,
				      as the service reports it: at most 4.3 s. 0: no handler ran, or
				      it refused with BUSY or OVERLOADED */
	uint64_t retry_after_ns; /**< hint of a refusal, mainly BUSY and OVERLOADED; 0: none */
	bool may_have_run; /**< the request was sent, and no answer states that it did not run */
};

/** The call completed. Runs once, on the client's lcore, from its loop or inside
 * plx_rpc_client_destroy: never inside plx_rpc_call_start or plx_rpc_cancel. May make any call of
 * this header, also destroy its client; only plx_rpc_service_finish returns -EBUSY. */
typedef void (*plx_rpc_done_fn)(const struct plx_rpc_result *result, void *arg);

/** Create a client of one service at several addresses, terminated by NULL. It connects to all and
 * keeps reconnecting. Each call goes to the address with the fewest open calls, ties to the first
 * in the list. An address whose recent replies were not OK counts as having more, until 1 s after
 * the last such reply, and loses ties.
 * Host names are resolved on another thread, per link, at most once a second.
 * Thread: an lcore, which owns the client.
 * Return: 0; -ENOENT not an lcore; -EINVAL; -ENODEV, -EOPNOTSUPP, -EACCES and -ESHUTDOWN as
 * plx_link_connect; -ENOMEM. */
int plx_rpc_client_create(const char *const *addresses, const struct plx_rpc_client_attr *attr,
			  struct plx_rpc_client **client_out);

/** Destroy the client: closes its links and completes open calls in here, with CANCELLED unless
 * their result is known. Works in any callback; those that it runs may call it again, without
 * effect. If a C++ callback throws out of it, call it again. Before plx_fabric_fini or
 * plx_eal_fini. Accepts NULL.
 * Thread: owner. */
void plx_rpc_client_destroy(struct plx_rpc_client *client);

/** Whether any service is connected now. Thread: owner. */
bool plx_rpc_client_is_up(const struct plx_rpc_client *client);

/** Last connect error of the first address that is down, as text; "" if unknown or all are up.
 * Valid until the loop's next turn.
 * Thread: owner. */
const char *plx_rpc_client_trouble(const struct plx_rpc_client *client);

/** libfabric's provider name of the first link that is up, "plx_tcp"; "" if none is. Valid until
 * that link ends.
 * Thread: owner. */
const char *plx_rpc_client_provider(const struct plx_rpc_client *client);

/** The first link that is up. The getters of plx_peer.h give the service's address, program and
 * process id, and why this provider was chosen. NULL: none is up. Valid until that link ends.
 * Thread: owner. */
const struct plx_link *plx_rpc_client_link(const struct plx_rpc_client *client);

struct plx_rpc_call {
	uint32_t method;
	uint16_t version;
	uint64_t deadline_ns; /**< from now; default the client's; PLX_NEVER */
	plx_rpc_done_fn done; /**< NULL: result not wanted */
	void *arg;

	/** Idempotency key chosen by the application; 0: none. A service runs at most one request
	 * per client and key, and answers repetitions with the first answer for its key_ns. Only
	 * within one process: with several addresses a repeated call may reach a service that does
	 * not know the key. A request that the handler refused with BUSY, OVERLOADED or DRAINING
	 * did nothing, so the next one runs. A key used with another method is DENIED. Self-test
	 * methods ignore keys. */
	uint64_t key;
	/** Send the request again within the deadline. If the link ends before the reply: without
	 * a key any address may get it, and it may run more than once; with a key only the same
	 * service gets it, and the call is PEER_DOWN if that ended or half of its key_ns is over.
	 * If all services refuse it as BUSY or OVERLOADED: after retry_after_ns and a random
	 * back-off, at most 1 ms at first and 100 ms later. The refusal is the result if half of
	 * the time left is shorter, or after a lost link with a key. If the service refuses it as
	 * DRAINING: when another one is reachable, or this one after its restart; with several
	 * addresses also without retry. */
	bool retry;
	/** Send the request to a second service too if the reply takes longer than 95 % of recent
	 * hedged calls. The first reply counts. Both may run it, so not with a key. */
	bool hedge;
};

/** Id of an open call, unique in its client. */
typedef uint64_t plx_rpc_call_id;

/** Call a method with a copy of the bytes. The request leaves at the end of this turn, with all
 * others to the same service; inside a client's callback, at the end of that callback. Without a
 * connected service it waits until its deadline. id_out may be NULL.
 * Thread: owner.
 * Return: 0; on error done does not run: -EAGAIN calls_max calls are open or waiting_max bytes are
 * copied; -EMSGSIZE above PLX_RPC_PAYLOAD_MAX, or must be kept and exceeds waiting_max; -EINVAL a
 * key with hedge; -ENOMEM; -ENOTCONN the client is being destroyed. */
int plx_rpc_call_start(struct plx_rpc_client *client, const struct plx_rpc_call *call,
		       const void *data, size_t length, plx_rpc_call_id *id_out);

/** Cancel a call: done follows with CANCELLED, and the service is notified.
 * Thread: owner.
 * Return: 0; -ENOENT completed, or about to run done. */
int plx_rpc_cancel(struct plx_rpc_client *client, plx_rpc_call_id id);

/** Call a method and wait for the answer, on a thread that is not an lcore. Ignores call->done and
 * arg. Copies up to `room` bytes of the reply to `reply`; result_out->length is that of the whole
 * reply, and its data and message are `reply` and NULL. The client must stay until this returns,
 * and its lcore must run its loop: on shutdown, turn it until such threads have returned. If the
 * lcore does not, the call ends with DEADLINE 200 ms after its deadline, if it has one. Then a call
 * that the lcore has not taken is withdrawn, and has not run. The log names an lcore that does not
 * run its loop, once per client.
 * Thread: any except lcores.
 * Return: 0, see result_out->status; -ENOENT the lcores have ended; -EDEADLK on an lcore; -EINVAL
 * and -EMSGSIZE as plx_rpc_call_start, or no result_out, or room without reply; -ENOMEM. */
int plx_rpc_call_wait(struct plx_rpc_client *client, const struct plx_rpc_call *call,
		      const void *data, size_t length, void *reply, size_t room,
		      struct plx_rpc_result *result_out);

struct plx_rpc_client_stats {
	uint32_t open;    /**< calls not completed */
	uint32_t waiting; /**< of these, waiting to be sent */
	uint32_t links;   /**< links that are up */
	uint64_t calls;
	uint64_t done[PLX_RPC_STATUS_COUNT]; /**< completed calls by status */
	uint64_t retried;    /**< requests to send again: the link ended, or it was refused */
	uint64_t hedged;     /**< calls also sent to a second service */
	uint64_t hedges_won; /**< of these, answered first by the second service */
	uint64_t strays;     /**< replies without a call: late, repeated or invented */
	uint64_t batches;    /**< messages that carried requests */
	uint64_t protocol;   /**< links ended because the service broke the protocol */
};

/** Statistics of a client. Thread: owner. */
void plx_rpc_client_stats_read(const struct plx_rpc_client *client,
			       struct plx_rpc_client_stats *stats_out);

PLX_END_DECLS

#endif
