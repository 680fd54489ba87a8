/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Links: connections between processes over libfabric.
 * One lcore owns a link. It carries whole messages in order, and reports to its owner through
 * callbacks on that lcore. A misbehaving peer can only end its own link.
 * Includes plx_address.h, and plx_peer.h: who the peer is. Direct data placement: plx_direct.h.
 */
#ifndef PLX_FABRIC_H
#define PLX_FABRIC_H

#include "plx_address.h"
#include "plx_base.h"
#include "plx_mem.h"
#include "plx_peer.h"
#include "plx_topo.h"

#include <sys/uio.h>

PLX_BEGIN_DECLS

struct plx_fabric_driver;
struct plx_link;
struct plx_listener;
struct sockaddr;
struct sockaddr_storage;

/* Set-up ----------------------------------------------------------------------------------- */

#define PLX_HEARTBEAT_NS_DEFAULT  (100 * PLX_NS_PER_MS)
#define PLX_HEARTBEAT_NS_MIN      (10 * PLX_NS_PER_MS)
#define PLX_HEARTBEAT_NS_MAX      (3600 * PLX_NS_PER_S)
#define PLX_DEAD_AFTER_DEFAULT    5 /**< heartbeats */
#define PLX_DEAD_AFTER_MIN        4 /**< heartbeats */
#define PLX_DEAD_AFTER_NS_MAX     (24 * 3600 * PLX_NS_PER_S)

#define PLX_RECEIVE_BYTES_DEFAULT (UINT64_C(256) << 20)
#define PLX_RECEIVE_BYTES_MIN     (UINT64_C(1) << 20)
#define PLX_RECEIVE_BYTES_MAX     (UINT64_C(1) << 40)

#define PLX_PARTIAL_BYTES_DEFAULT (UINT64_C(1) << 30)
#define PLX_PARTIAL_BYTES_MIN     (UINT64_C(1) << 20)
#define PLX_PARTIAL_BYTES_MAX     (UINT64_C(1) << 40)

#define PLX_TURN_MAX_DEFAULT      256 /**< messages */
#define PLX_TURN_NS_DEFAULT       (100 * PLX_NS_PER_US)
#define PLX_TURN_NS_MIN           PLX_NS_PER_US
#define PLX_TURN_NS_MAX           PLX_NS_PER_S

/** Limits of a listener. Over shm an address is a user; an IPv6 /64 is one address, and its /48 may
 * have as much as two. 0 means the process default (plx_fabric_conf), and there the default stated
 * below. PLX_NO_LIMIT turns a limit off. A peer that is refused for lack of room learns when to
 * come again (plx_link_busy_ns). An open link is never closed for a newcomer. */
struct plx_admission {
	uint32_t links_max;          /**< links of this listener; default 4096 */
	uint32_t links_per_host_max; /**< links from one remote address, at most a quarter of
					  links_max, which is the default */
	uint32_t accepts_per_s;      /**< default 1000, and a burst of a quarter of it. Faster
					  connections wait for up to 2.5 s, or half of
					  connect_timeout_ns if that is less. Addresses take turns.
					  Beyond that the address of which most wait loses its
					  newest one */
	uint32_t handshakes_max;     /**< connections taken that are not open yet; default 256, at
					  most a quarter of the descriptors. One more closes the
					  oldest silent one of the address that has most, or waits
					  if that is silent for less than 100 ms and the newcomer's
					  address has as many */
};

struct plx_fabric_conf {
	/** Known drivers, terminated by NULL; plx_drivers is the built-in table. */
	const struct plx_fabric_driver *const *drivers;
	/** Provider of links that do not name one: a driver ("tcp", "shm").
	 * NULL or "auto" selects per link: shm if the peer is on this host and offers it, verbs if
	 * an RDMA device with an active port routes to the peer and the peer answers there, else
	 * tcp. plx_link_choice reports why. A listener listens on all of them at one address. */
	const char *provider;
	/** Refuse links to other hosts that would use tcp. */
	bool require_rdma;
	/** Heartbeat interval: 10 ms to 1 h; default 100 ms; PLX_NEVER: no heartbeats. Two
	 * processes with links hear from each other at least once in 1.5 intervals. An idle process
	 * sends one heartbeat per peer and path, however many links there are. */
	uint64_t heartbeat_ns;
	/** Silence after which the peer is dead and its links end with PLX_LINK_SILENT: 4
	 * heartbeats to 24 h; default 5 heartbeats. The peer is suspect after half of it.
	 * Both sides state their times; the longer one applies to both, up to the limit of a
	 * listener (dead_after_max_ns). If one side wants no heartbeats there are none. A frame
	 * ends the silence; over tcp and shm each byte does, also inside a frame. The longest delay
	 * of this process's lcores in the last 10 to 20 s (process stopped, long callback) is
	 * added; over tcp also dead_after_ns again if, since the peer was heard, 16 KiB or more
	 * that were sent to it were unacknowledged. */
	uint64_t dead_after_ns;
	/** What listeners take of the peer's dead_after_ns: dead_after_ns to 24 h; default 60 s, or
	 * dead_after_ns if that is longer. A peer whose interval is longer than a quarter of it is
	 * refused. A peer without heartbeats gets half of it over tcp, if this side wants them: its
	 * link ends if its host does not answer, or if it leaves data unread, for that long. */
	uint64_t dead_after_max_ns;
	/** Receive buffers of all links of an lcore, in bytes: 1 MiB to 1 TiB; default 256 MiB.
	 * Up to half of it each link gets what it asks for. Beyond that a new link gets at most a
	 * 16th of the rest, in fewer and then shorter buffers, but at least four of 1 KiB (or of
	 * its own size if smaller). */
	uint64_t receive_bytes;
	/** Bytes of partly received messages of all links of an lcore: 1 MiB to 1 TiB; default 1
	 * GiB. Beyond it messages wait for room: their peers get no credit. The peer address
	 * (IPv6: a /64, in the /48) that holds most loses a link if a message of another address
	 * waits. At any time, a message that comes by less than 4 KiB/s for 10 s ends its link;
	 * over tcp and shm also one in a single frame. */
	uint64_t partial_bytes;
	/** What the receivers of an lcore may do in one turn: links, sockets and services together.
	 * Then the rest waits for the next turn, which begins with the next receiver; timers, tasks
	 * and heartbeats run in every turn. turn_ns: 1 us to 1 s; default 100 us. A callback is not
	 * interrupted. The clock is read after at most 16 messages, and after each one while 16
	 * of them would take longer than turn_ns. turn_max: messages, 1 or more; default 256. */
	uint64_t turn_ns;
	uint32_t turn_max;
	/** Default limits of listeners. */
	struct plx_admission admission;
	/** Settings of the driver tcp, KEY=VALUE,... (doc/guide/links.md). NULL: none. */
	const char *tcp;
};

/** Find the drivers' providers, and undo what loading libfabric changed in this process's signal
 * handlers. The first look takes libfabric about 80 ms. Nothing else is opened before the first
 * link or listener.
 * Thread: setup.
 * Return: 0; -EALREADY; -EINVAL unknown provider, provider without RDMA although required, time or
 * bytes out of range; limits that contradict each other; -ENODEV not on this host. */
int plx_fabric_init(const struct plx_fabric_conf *conf);

/** Abort what is still open, on every lcore, and refuse connection requests between lcores. In a
 * callback it only logs that it must not be called there.
 * Thread: main, after the lcores' functions returned; plx_lcores_fini comes next. */
void plx_fabric_fini(void);

/** Close the calling lcore's listeners, and its links without loss (plx_link_close), turning the
 * loop until they are gone. For an lcore whose loop has stopped. Callbacks run meanwhile. Handles
 * of listeners stay valid until plx_listener_close. plx_eal_fini calls it for the main lcore.
 * Thread: an lcore, outside its loop.
 * Return: 0; -EBUSY in a callback, nothing was done; -ETIMEDOUT links are left, plx_fabric_fini
 * will abort them; -ENOENT not an lcore. */
int plx_fabric_drain(uint64_t timeout_ns);

/** Check settings of the driver tcp. option: the name the user gave, for the error text.
 * Return: 0; -EINVAL, the error text lists the settings. */
int plx_fabric_check_tcp(const struct plx_fabric_driver *const *table, const char *option,
			 const char *settings);

/** Check a provider's name against a table of drivers. require_rdma: as in plx_fabric_conf.
 * Return: 0; -EINVAL unknown (the error text lists the names), or not RDMA although required. */
int plx_fabric_check_provider(const struct plx_fabric_driver *const *table, const char *option,
			      const char *name, bool require_rdma);

/** Check the limits of listeners of a process.
 * Return: 0; -EINVAL they contradict each other. */
int plx_fabric_check_admission(const struct plx_admission *limits);

/** Accept links that ask for the self-test service, at all listeners of the process. Such links
 * take events, user and private HELLO data from attr, everything else from their listener.
 * attr: copied; its events must outlive the links. NULL: accept none. remote: also from other
 * hosts.
 * Thread: setup, while no link is open. */
struct plx_link_attr;
void plx_fabric_set_self_test(const struct plx_link_attr *attr, bool remote);

/* Links ------------------------------------------------------------------------------------ */

/** Why a link ended. */
enum plx_link_reason {
	PLX_LINK_CLOSED,      /**< both sides agreed; everything sent was delivered */
	PLX_LINK_REFUSED,     /**< no listener there, or it refused */
	PLX_LINK_UNREACHABLE, /**< no route, or no answer */
	PLX_LINK_HELLO,       /**< the peer's HELLO was missing, late, broken or too new, or one
				   side refused the other's */
	PLX_LINK_PROTOCOL,    /**< the peer broke the protocol after the handshake */
	PLX_LINK_PEER_DOWN,   /**< the peer disconnected without closing, or gave this process up */
	PLX_LINK_SILENT,      /**< no sign of life from the peer's process for too long */
	PLX_LINK_ABORTED,     /**< plx_link_abort, or the process shuts down */
	PLX_LINK_TIMEOUT,     /**< the peer did not answer plx_link_close in time */
	PLX_LINK_LOCAL,       /**< failure on this side: memory, descriptors, provider */
	PLX_LINK_REASON_COUNT,
	PLX_LINK_REASON_NONE = PLX_LINK_REASON_COUNT, /**< not ended */
};

/** Short text: "closed", "refused", ... */
const char *plx_link_reason_name(enum plx_link_reason reason);

/** Callbacks. They run on the link's lcore and never inside another call into the link. Any may be
 * NULL. Links still open in plx_fabric_fini end there, on the main thread. */
struct plx_link_events {
	/** The peer's HELLO arrived; plx_link_hello is its private data. Runs before on_open.
	 * Closing or aborting the link here refuses it.
	 * The accepting side decides first. If the connecting side then refuses, the accepting
	 * side has already run on_open.
	 * Return: NULL to accept; or a constant ASCII text of at most 120 characters to refuse.
	 * The link then ends with PLX_LINK_HELLO and that text on both sides. */
	const char *(*on_hello)(struct plx_link *link, void *user);

	/** The handshake is complete: sending is allowed. */
	void (*on_open)(struct plx_link *link, void *user);

	/** A whole message. The library takes it back on return unless the callback took a
	 * reference (plx_buf_ref). A kept buffer occupies a place in the link's receive window
	 * until it is dropped. */
	void (*on_message)(struct plx_link *link, struct plx_buf *message, void *user);

	/** There is room again. Once after one or more -EAGAIN. */
	void (*on_writable)(struct plx_link *link, void *user);

	/** The link ended, or never opened. Runs exactly once for every link that plx_link_connect
	 * returned or on_open reported. link is invalid afterwards.
	 * text: the reason for people. It starts with the peer's address if it is about the peer;
	 * see plx_link_without_peer. */
	void (*on_close)(struct plx_link *link, enum plx_link_reason reason, const char *text,
			 void *user);

	/** plx_link_is_suspect changed: the peer is silent, or is heard again. A dead peer is
	 * reported by on_close with PLX_LINK_SILENT. */
	void (*on_suspect)(struct plx_link *link, bool suspect, void *user);

	/** The peer granted credit: plx_link_credit and plx_link_unfinished changed. At most once
	 * a turn, while the link is open. */
	void (*on_credit)(struct plx_link *link, void *user);

	/** The peer called plx_link_put_and_tell: its earlier puts are in memory. value comes from
	 * the peer, so do not trust it. In order with messages. */
	void (*on_put)(struct plx_link *link, uint32_t value, void *user);
};

/** The protocol above the link. Programs may use PLX_PROTOCOL_OWN to 255 for their own. */
enum plx_protocol {
	PLX_PROTOCOL_NONE, /**< unspecified; compatible with every protocol */
	PLX_PROTOCOL_NETIO,
	PLX_PROTOCOL_RPC,
	PLX_PROTOCOL_ECHO, /**< plx-ping and plx-echo */
	PLX_PROTOCOL_OWN = 16,
};

#define PLX_LINK_HELLO_MAX 64 /**< bytes of private data in a HELLO */

/** 0 or NULL: the default. */
struct plx_link_attr {
	const struct plx_link_events *events; /**< must outlive the link */
	void *user;                           /**< passed to the callbacks */
	const char *provider;                 /**< as in plx_fabric_conf */
	uint32_t rx_buf_bytes; /**< longest message that arrives in one frame, without the frame
				    header: 256 to 16 MiB; default 4 KiB */
	uint32_t rx_buf_count; /**< receive buffers for messages: 2 to 200, up to 1 GiB; default 6.
				    Control frames get 2 more, on iWARP 6, or 8 with `direct` */
	uint64_t message_max_bytes;  /**< longest message accepted from the peer; default 16 MiB,
					  limit 1 GiB - 1 */
	uint64_t connect_timeout_ns; /**< default 5 s; on a listener, since the request. May be
					  PLX_NEVER, as the next two */
	uint64_t hello_timeout_ns;   /**< from connected to the peer's HELLO, over providers where
					that is a frame; default 2 s */
	uint64_t close_timeout_ns;   /**< for a close in all: until the peer has taken all that was
					  accepted here, and agreed; default PLX_CLOSE_NS */
	bool direct;    /**< direct data placement, if the peer asks for it too: see plx_link_grant.
			     Drivers without it are not used. Such a link has its own libfabric
			     objects, which are polled each turn and on verbs register all memory
			     again: use few */
	bool self_test; /**< connecting side: use the peer's self-test service, whatever it
			     listens for. Without one the link ends with PLX_LINK_HELLO */
	uint8_t protocol; /**< enum plx_protocol. If the sides name different ones, the link ends
			       with PLX_LINK_HELLO before on_open */
	uint8_t hello_length;              /**< bytes of `hello`; default 0 */
	uint8_t hello[PLX_LINK_HELLO_MAX]; /**< private data for the peer's on_hello */
};

/** Bytes of the frame header. plx_link_send_buf writes it into the headroom of the first buffer. */
#define PLX_LINK_OVERHEAD 16

/** Connect to "host:port" ("[::1]:port" for IPv6). Returns at once; on_open or on_close follows.
 * A host name is resolved inside this call, which may block for seconds, unless plx_lookup_start
 * has resolved it. Up to 8 addresses of a name are tried in the resolver's order, each by the
 * providers that may reach it, each for connect_timeout_ns.
 * Ownership: the library owns the link; the pointer is valid until on_close returns.
 * Thread: an lcore.
 * Return: 0; -EINVAL address or attribute; -ENODEV provider not on this host; -ENOENT not an
 * lcore; -EHOSTUNREACH; -EACCES shm to another user; -EOPNOTSUPP the provider has no `direct`;
 * -ENOMEM; ... */
int plx_link_connect(const char *address, const struct plx_link_attr *attr,
		     struct plx_link **link_out);

/** Longest message that the peer accepts. A send may still return -EAGAIN. Valid from on_hello. */
uint64_t plx_link_message_max(const struct plx_link *link);

/** The longest message that any function sends as a copy, in bytes, without the headers of NetIO
 * and services: on an idle and on a busy link. Longer ones go by reference. An lcore that copies
 * sends no heartbeats, and its peers give it up after 500 ms of silence by default. Copying 64 MiB
 * into new memory took 310 ms in a busy virtual machine, most of it page faults. */
#define PLX_SEND_COPY_MAX (UINT64_C(32) << 20)

/** Send a copy of len bytes; 0 is a message too. Small messages leave in this call. Over tcp,
 * further ones of the same turn leave together, in the next turn or when plx_loop_run returns.
 * Above 4 KiB use plx_link_send_buf, which does not copy. The lcore keeps up to 16 buffers and 8
 * MiB for long copies; beyond that they come from the heap.
 * Ownership: the caller keeps data and may reuse it on return.
 * Thread: owner.
 * Return: 0; -EAGAIN no credit or queue full, on_writable follows; -EMSGSIZE above the peer's
 * maximum or PLX_SEND_COPY_MAX; -ENOTCONN not open, or closing; -ENOMEM. */
int plx_link_send(struct plx_link *link, const void *data, size_t len);

/** plx_link_send from `count` pieces: at most 64, else -EINVAL. The first of several pieces counts
 * as a header if it has at most 64 bytes: PLX_SEND_COPY_MAX applies to the rest. */
int plx_link_sendv(struct plx_link *link, const struct iovec *iov, int count);

/** Completion of a sent buffer. status:
 * 0: the transport took it. That is not delivery: see plx_link_close.
 * -ETIMEDOUT: the provider did not return it and may still read it; never change or free it.
 * Another -errno: the link ended.
 * The library drops its reference after the callback, except after -ETIMEDOUT. */
typedef void (*plx_link_sent_fn)(struct plx_link *link, struct plx_buf *buf, int status, void *arg);

/** Send a buffer or chain by reference, without a copy. If the first buffer is unshared and has
 * headroom, the frame header goes there. sent (may be NULL) runs exactly once per accepted buffer,
 * even if the link fails, and never inside this call.
 * Ownership: on success the caller's reference moves to the library; on error the caller keeps it.
 * Do not change the bytes until `sent`.
 * Thread: owner.
 * Return: as plx_link_send. PLX_SEND_COPY_MAX applies only over verbs to bytes outside the memory
 * of plx_mem_alloc and pools, which are copied. */
int plx_link_send_buf(struct plx_link *link, struct plx_buf *buf, plx_link_sent_fn sent, void *arg);

/** Get a buffer to build a message in. Then send it with plx_link_send_buf or drop it with
 * plx_buf_unref. Up to 4 KiB it comes from the lcore's pool.
 * Thread: owner.
 * Return: the buffer; NULL if the pool is empty. */
struct plx_buf *plx_link_buf(struct plx_link *link, uint32_t room_bytes);

/** Close without loss: accepted messages are sent, the peer answers, then on_close(CLOSED) runs.
 * Messages from the peer arrive until then; sends return -ENOTCONN. Aborts a link that is not open
 * yet.
 * Thread: owner.
 * Return: 0; -EALREADY. */
int plx_link_close(struct plx_link *link);

/** Drop the link now. on_close(ABORTED) follows from the loop. Thread: owner. */
void plx_link_abort(struct plx_link *link);

void plx_link_set_user(struct plx_link *link, void *user);
bool plx_link_is_open(const struct plx_link *link);

/** Whether the peer's process has been silent on this link's path for half of the agreed
 * dead_after_ns, at the lcore's last check. Always false without heartbeats.
 * Thread: owner. */
bool plx_link_is_suspect(const struct plx_link *link);

/** Frames that the peer has room for, as last reported: its free receive buffers (rx_buf_count; at
 * most 200 for a Pollux peer). A message takes one, or several if it is longer than such a buffer.
 * It measures how busy the peer is; a send may still return -EAGAIN if this side has no room. 0:
 * none, or not open.
 * Thread: owner. */
uint32_t plx_link_credit(const struct plx_link *link);

/** Upper bound on the messages sent but not yet released by the peer. It may lag: the peer defers
 * credit updates while most of its window is free. A long message in flight may count several
 * times. If the peer releases messages in order, these are the newest ones. If each was also one
 * frame, the number is exact as of the last update.
 * If the peer closes the link, it is the number when the close began. If this side closed and the
 * peer agreed, it is 0: everything arrived.
 * Valid from on_open until on_close returns.
 * Thread: owner. */
uint32_t plx_link_unfinished(const struct plx_link *link);

/** Private data of the peer's HELLO: *length_out is 0 to PLX_LINK_HELLO_MAX bytes of any content.
 * Valid from on_hello until on_close returns.
 * Thread: owner. */
const uint8_t *plx_link_hello(const struct plx_link *link, uint32_t *length_out);

/** Why the link ended, as in on_close. Valid as soon as sends fail for that reason.
 * PLX_LINK_REASON_NONE: not ended.
 * Thread: owner. */
enum plx_link_reason plx_link_reason(const struct plx_link *link);

/** In on_close with PLX_LINK_REFUSED: the listener had no room, and asks to come again after this
 * time, at most 10 s. Add jitter: others were refused too. 0: it was refused for another reason.
 * Thread: owner. */
uint64_t plx_link_busy_ns(const struct plx_link *link);

struct plx_link_stats {
	uint64_t messages_sent, messages_received;
	uint64_t bytes_sent, bytes_received; /**< of messages */
	uint64_t frames_sent, frames_received;
	uint64_t again;                                /**< sends refused with -EAGAIN */
	uint64_t credit_frames;                        /**< frames that only grant credit */
	uint64_t heartbeats_sent, heartbeats_received; /**< liveness frames */
	uint64_t puts, gets;                           /**< accepted */
	uint64_t bytes_put, bytes_got;                 /**< got: received */
	uint64_t puts_told;                            /**< on_put calls */
	uint64_t slow; /**< times that callbacks for its messages took 20 ms or longer, or turn_ns
			  if that is longer, as far as it is known that it was this link; logged */
	uint32_t tx_queued;   /**< messages accepted and not yet passed to the provider */
	uint32_t tx_inflight; /**< operations in flight at the provider */
	uint32_t rx_posted;   /**< receive buffers posted to the provider */
	uint32_t rx_kept;     /**< receive buffers that the user keeps */
};

void plx_link_stats_read(const struct plx_link *link, struct plx_link_stats *stats_out);

/** The next of the calling lcore's links; NULL gives the first. Includes links of NetIO and
 * services: only read those. A link is listed until its on_close. plx_link_connect, close and abort
 * are allowed meanwhile. For the whole process ask each lcore (plx_lcore_send).
 * Valid until the callback returns; outside callbacks, until the loop turns.
 * Thread: an lcore; NULL on other threads. */
struct plx_link *plx_link_next(const struct plx_link *link);

/** Every link of the calling lcore; see plx_link_next. */
#define PLX_LINK_FOREACH(link) \
	for (struct plx_link *link = plx_link_next(NULL); link; link = plx_link_next(link))

/* Listeners -------------------------------------------------------------------------------- */

/** Which lcore gets a listener's next link and runs its callbacks. Round-robin and hash choose
 * among lcores that run their loop (plx_loop_is_running), plus the listener's own if `lcores`
 * includes it. If there are none, the listener's own lcore takes the link. */
enum plx_spread {
	PLX_SPREAD_NONE,        /**< the listener's own */
	PLX_SPREAD_ROUND_ROBIN, /**< each in turn, by ascending id */
	PLX_SPREAD_HASH,     /**< by the peer's IP address: all links of a host share one lcore */
	PLX_SPREAD_CALLBACK, /**< the lcore that `place` returns */
};

struct plx_listen_attr {
	struct plx_link_attr link; /**< for every accepted link */
	struct plx_admission admission;
	enum plx_spread spread;
	/** Candidates for round-robin and hash: bit id % 64 of word id / 64. All zero: all. */
	uint64_t lcores[PLX_LCORE_MAX / 64];
	/** For PLX_SPREAD_CALLBACK; runs on the listener's lcore. peer: AF_INET or AF_INET6; NULL
	 * if the provider does not report it.
	 * Return: an lcore id; anything else refuses the connection. The listener also refuses it
	 * if that lcore does not take it within link.connect_timeout_ns, because its loop does not
	 * run or its lane is full. */
	uint32_t (*place)(struct plx_listener *listener, const struct sockaddr *peer, void *arg);
	void *place_arg;
};

/** Listen on "host:port"; "*:port" is every address; port 0 takes a free one. A name stands for up
 * to 8 addresses of this host, all at the same port.
 * Ownership: close with plx_listener_close.
 * Thread: an lcore.
 * Return: 0; -EADDRINUSE; -EADDRNOTAVAIL; -EINVAL address or attribute, or a named lcore does not
 * exist; -EOPNOTSUPP as plx_link_connect; ... */
int plx_link_listen(const char *address, const struct plx_listen_attr *attr,
		    struct plx_listener **listener_out);

/** The address with the actual port; valid until plx_listener_close. */
const char *plx_listener_address(const struct plx_listener *listener);

/** The port; 0 for NULL. Thread: any. */
unsigned plx_listener_port(const struct plx_listener *listener);

struct plx_listener_stats {
	uint64_t requests;           /**< connection requests */
	uint64_t opened;             /**< links that reached on_open */
	uint64_t refused;            /**< by the limits below or otherwise */
	uint64_t refused_links;      /**< at links_max */
	uint64_t refused_host;       /**< at links_per_host_max */
	uint64_t refused_rate;       /**< too many wait for accepts_per_s, or it waited too long */
	uint64_t refused_handshakes; /**< at handshakes_max, when none could be evicted */
	uint64_t evicted;      /**< ended at handshakes_max, or for want of descriptors, before
				    they were open; those that were links also count in
				    `failed`, and requests in `refused` */
	uint64_t failed;       /**< links that ended before on_open: bad HELLO, timeout */
	uint64_t no_handshake; /**< peers that completed no handshake: most of the above, and over
				    tcp peers that sent nothing or another protocol, which are no
				    `requests` */
	uint64_t protocol_broken; /**< links that ended with PLX_LINK_PROTOCOL, before on_open (also
				       in `failed`) or later */
	char last_failure[160];   /**< newest of `failed` as text */
	char last_refused[256];   /**< newest refusal or eviction by a limit in the log (one a
				       second and limit): peer, limit, its largest holder */
};

void plx_listener_stats_read(const struct plx_listener *listener,
			     struct plx_listener_stats *stats_out);

/** Stop listening, and release port and memory. Links stay. Requests already passed to other lcores
 * still become links, except on RDMA: there they are refused, since a refusal needs the listener.
 * Allowed inside `place`. Accepts NULL.
 * Thread: owner. */
void plx_listener_close(struct plx_listener *listener);

/** Links and listeners of the calling lcore, including closed ones that still hold resources.
 * Thread: an lcore. */
uint32_t plx_fabric_open_count(void);

PLX_END_DECLS

#endif
