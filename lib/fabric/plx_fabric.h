/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Links: connections between processes over libfabric. A link belongs to one lcore, carries whole
 * messages in order, and tells its owner through callbacks that run on that lcore. Whatever a peer
 * does ends at most its own link. With it comes plx_address.h;
 * direct data placement is in plx_direct.h.
 */
#ifndef PLX_FABRIC_H
#define PLX_FABRIC_H

#include "plx_address.h"
#include "plx_base.h"
#include "plx_mem.h"
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

/** Which connections a listener takes. Over shm an address is a user. 0: the default of the process
 * (plx_fabric_conf), and there: as stated. Each may be PLX_NO_LIMIT. */
struct plx_admission {
	uint32_t links_max;          /**< links that it has; default 4096 */
	uint32_t links_per_host_max; /**< of those, from one remote address; default 1024 */
	uint32_t accepts_per_s;      /**< beyond a burst of a quarter of it connections wait, for
					  connect_timeout_ns at most; default 1000 */
	uint32_t handshakes_max;     /**< that are not open yet: one more ends the oldest of the
					  address that has most; default 256 */
};

struct plx_fabric_conf {
	/** The drivers there are, ended by NULL; plx_drivers is the product's own table. */
	const struct plx_fabric_driver *const *drivers;
	/** What links use that name none: a driver ("tcp", "shm"), or "fi:tcp", libfabric's own
	 * TCP, for trusted networks only. NULL or "auto": for each link the one that is best for
	 * its peer, which plx_link_choice tells: shm where the peer is on this host and offers it,
	 * verbs where an RDMA device with an active port routes to it and it answers there, else
	 * tcp. A listener listens on all of them at one address. */
	const char *provider;
	/** Links with other hosts go by RDMA or not at all: what would be tcp is refused. */
	bool require_rdma;
	/** A peer process that this one has links with hears from it at least once in 1.5
	 * times this, and the other way round: by heartbeats where there is nothing else to send,
	 * one for each peer and path to it however many links there are. 10 ms to 1 h; default
	 * 100 ms; PLX_NEVER: there are none. */
	uint64_t heartbeat_ns;
	/** Silence after which a peer is taken for dead, and its links end with PLX_LINK_SILENT: 4
	 * heartbeats to 24 h; default 5 heartbeats. After half of it the peer is suspect. Both
	 * sides of a link say what they want, and the longer time counts for both; where one wants
	 * no heartbeats there are none. The most that its lcores were late by in the last 10 to 20
	 * s, as the process was stopped or a callback took long, is added. */
	uint64_t dead_after_ns;
	/** Receive buffers of all links of an lcore, in bytes: 1 MiB to 1 TiB; default 256 MiB.
	 * Until half of that is taken each link gets what it asks for; from then on a new one gets
	 * no more than a 16th of what is left, in fewer and then shorter buffers, at least four of
	 * 1 KiB (or of what it asks for, if that is less). */
	uint64_t receive_bytes;
	/** Messages that come in parts, of all links of an lcore, in bytes that have come: 1 MiB to
	 * 1 TiB; default 1 GiB. Beyond that the link of one that stands still ends, or else of the
	 * one that wants more. */
	uint64_t partial_bytes;
	/** What listeners have that ask for nothing else. */
	struct plx_admission admission;
	/** Settings of the driver tcp, KEY=VALUE,...: see doc/guide/links.md. NULL: none. */
	const char *tcp;
};

/** Look for the drivers' providers (libfabric's own first look takes some 80 ms) and put right what
 * loading libfabric did to this process' signal handlers. Nothing else is opened until a link is.
 * Thread: setup. Return: 0; -EALREADY; -EINVAL unknown provider, one that is no RDMA where that is
 * required, a time or receive_bytes out of range; -ENODEV not on this host. */
int plx_fabric_init(const struct plx_fabric_conf *conf);

/** Close what is still open, on every lcore. Connection requests on their way between lcores are
 * refused.
 * Thread: main, after the lcores' functions returned; plx_lcores_fini follows, with no turn of any
 * loop in between. */
void plx_fabric_fini(void);

/** Close all listeners of the calling lcore, and all its links without loss (plx_link_close),
 * turning the loop until they are gone: for an lcore whose loop was stopped. Their callbacks run
 * meanwhile. plx_eal_fini does it for the main lcore. Thread: an lcore, outside its loop. Return:
 * 0; -ETIMEDOUT some links are left, and plx_fabric_fini will abort them; -ENOENT. */
int plx_fabric_drain(uint64_t timeout_ns);

/** Check settings of the driver tcp. option: how the user named them. Return: 0; -EINVAL with what
 * there is. */
int plx_fabric_check_tcp(const struct plx_fabric_driver *const *table, const char *option,
			 const char *settings);

/** Check a provider's name against a table of drivers. require_rdma: as in plx_fabric_conf. Return:
 * 0; -EINVAL with the names there are, or as it is no RDMA where that is required. */
int plx_fabric_check_provider(const struct plx_fabric_driver *const *table, const char *option,
			      const char *name, bool require_rdma);

/** Accept links whose peer wants the self-test service, at all listeners of the process: they get
 * events, user and private data of HELLO from attr, and the rest from their listener. attr: copied,
 * its events must outlive the links; NULL: none is accepted. remote: those of other hosts, too.
 * Thread: setup, while no link is open. */
struct plx_link_attr;
void plx_fabric_set_self_test(const struct plx_link_attr *attr, bool remote);

/* Links ------------------------------------------------------------------------------------ */

/** Why a link ended. */
enum plx_link_reason {
	PLX_LINK_CLOSED,      /**< both sides agreed; everything sent was delivered */
	PLX_LINK_REFUSED,     /**< nobody listens there, or the listener said no */
	PLX_LINK_UNREACHABLE, /**< no route, or no answer */
	PLX_LINK_HELLO,       /**< the peer's first frame was missing, late, broken or too new, or
				   one side refused the link for what the other one said in it */
	PLX_LINK_PROTOCOL,    /**< the peer broke the protocol later */
	PLX_LINK_PEER_DOWN,   /**< the peer went away without closing, or gave this process up */
	PLX_LINK_SILENT,      /**< nothing was heard of the peer's process for too long */
	PLX_LINK_ABORTED,     /**< plx_link_abort, or the process is shutting down */
	PLX_LINK_TIMEOUT,     /**< the peer did not answer plx_link_close in time */
	PLX_LINK_LOCAL,       /**< a failure on this side: memory, descriptors, the provider */
	PLX_LINK_REASON_COUNT,
	PLX_LINK_REASON_NONE = PLX_LINK_REASON_COUNT, /**< it has not ended */
};

/** One word or two for people: "closed", "refused", ... */
const char *plx_link_reason_name(enum plx_link_reason reason);

/** Callbacks, each on the link's lcore, none inside another call into the link. Any may be NULL.
 * Links that are still open at plx_fabric_fini end there, on the main thread. */
struct plx_link_events {
	/** The peer's HELLO has come: plx_link_hello is its private data. Called before on_open.
	 * The link must not be closed here. Return: NULL; or constant text, up to 120 characters of
	 * ASCII: this side refuses the link, which ends with PLX_LINK_HELLO and that text on both
	 * sides. The side that accepted decides first. If the one that connected refuses, the other
	 * one was open already. */
	const char *(*on_hello)(struct plx_link *link, void *user);

	/** Both sides have said HELLO: messages may be sent. */
	void (*on_open)(struct plx_link *link, void *user);

	/** A whole message. It is the library's again when the callback returns, unless it took a
	 * reference (plx_buf_ref); a kept buffer takes its place out of the link's receive window
	 * until it is dropped. */
	void (*on_message)(struct plx_link *link, struct plx_buf *message, void *user);

	/** After -EAGAIN: there is room again. Once per -EAGAIN. */
	void (*on_writable)(struct plx_link *link, void *user);

	/** The link ended; also one that never opened. Called exactly once for every link that
	 * plx_link_connect returned or that on_open told of; link is invalid when it returns.
	 * text: the reason as a sentence for people, which begins with the peer's address if it is
	 * about the peer: see plx_link_without_peer. */
	void (*on_close)(struct plx_link *link, enum plx_link_reason reason, const char *text,
			 void *user);

	/** What plx_link_is_suspect says has changed: the peer is silent, or is heard again. That
	 * it is given up is told by on_close, with PLX_LINK_SILENT. */
	void (*on_suspect)(struct plx_link *link, bool suspect, void *user);

	/** The peer has granted more: what plx_link_credit and plx_link_unfinished say has changed.
	 * At most once a turn, and only while the link is open. */
	void (*on_credit)(struct plx_link *link, void *user);

	/** The peer's plx_link_put_and_tell: what it put before is in the memory. value is the
	 * peer's: it may have put nothing, or something else. In order with messages. */
	void (*on_put)(struct plx_link *link, uint32_t value, void *user);
};

/** What is spoken on a link, above its messages. Programs may use other numbers, from
 * PLX_PROTOCOL_OWN to 255, for protocols of their own. */
enum plx_protocol {
	PLX_PROTOCOL_NONE, /**< unspecified; compatible with every protocol */
	PLX_PROTOCOL_NETIO,
	PLX_PROTOCOL_RPC,
	PLX_PROTOCOL_ECHO, /**< of plx-ping and plx-echo */
	PLX_PROTOCOL_OWN = 16,
};

#define PLX_LINK_HELLO_MAX 64 /**< bytes of private data in a HELLO */

/** 0 or NULL: the default. */
struct plx_link_attr {
	const struct plx_link_events *events; /**< must outlive the link */
	void *user;                           /**< given to the callbacks */
	const char *provider;                 /**< as in plx_fabric_conf */
	uint32_t rx_buf_bytes; /**< longest message that arrives in one frame, in a receive buffer
				    of its own: 256 to 16 MiB; default 4 KiB. The frame's header
				    has room besides. */
	uint32_t rx_buf_count; /**< receive buffers for messages: 2 to 200; default 6. Two more
				    are kept for control frames, over iWARP six, or eight with
				    `direct`. */
	uint64_t message_max_bytes;  /**< longest message accepted from the peer; default 16 MiB,
					limit  1 GiB - 1 */
	uint64_t connect_timeout_ns; /**< default 5 s; of a listener: from the request on.
					  It may be PLX_NEVER, as the next two */
	uint64_t hello_timeout_ns;   /**< for the peer's HELLO once connected; default 2 s */
	uint64_t close_timeout_ns;   /**< for the peer's answer to a close; default 2 s. Begins anew
					  while the peer takes what was sent before; at most 30
					  times that for all of it */
	bool direct; /**< direct data placement, where the peer has it too: see plx_link_grant. Such
			  a link has libfabric objects of its own, which are polled each turn and
			  register all memory again (verbs): for few links. Drivers without it are
			  left out */
	bool self_test;   /**< of who connects: the peer's self-test service is wanted, whatever it
			       listens for there. Where it has none the link ends with
			       PLX_LINK_HELLO */
	uint8_t protocol; /**< enum plx_protocol: if the two sides specify different protocols, the
			       link ends with PLX_LINK_HELLO, before on_open */
	uint8_t hello_length;              /**< of what follows; default 0 */
	uint8_t hello[PLX_LINK_HELLO_MAX]; /**< what the protocol above says first: the peer sees it
						in on_hello, with no message sent yet */
};

/** Bytes of a frame's header. plx_link_send_buf writes it into the headroom of the first buffer. */
#define PLX_LINK_OVERHEAD 16

/** Connect to "host:port" ("[::1]:port" for IPv6). Returns at once; on_open or on_close follows.
 * A host name (not a number) that plx_lookup_start has not looked up is looked up here, which may
 * block for seconds: set-up work. Where it stands for
 * several addresses, up to 8 are tried in the resolver's order, each for connect_timeout_ns.
 * Ownership: the link is the library's; the pointer is valid until on_close returns.
 * Thread: an lcore. Return: 0; -EINVAL address or attribute; -ENODEV no such provider here;
 * -ENOENT not an lcore; -EHOSTUNREACH; -EACCES shm to another user; -EOPNOTSUPP `direct`,
 * and the provider has none; -ENOMEM; ... */
int plx_link_connect(const char *address, const struct plx_link_attr *attr,
		     struct plx_link **link_out);

/** The greatest length that one plx_link_send can take just now without -EAGAIN is not told: send
 * and see. This is the longest message that the peer accepts at all. Valid from on_hello on. */
uint64_t plx_link_message_max(const struct plx_link *link);

/** Longest message that plx_link_send copies, in bytes. An lcore that copies sends no heartbeats,
 * and by default its peers give it up after 500 ms of silence. Copying 64 MiB into new memory took
 * 310 ms in a busy virtual machine, most of it page faults. */
#define PLX_SEND_COPY_MAX (UINT64_C(32) << 20)

/** Send a copy of len bytes (0 is a message too). Small ones leave with this call; over tcp, those
 * that follow another one of the same turn leave together, with the next turn or when plx_loop_run
 * returns. Beyond 4 KiB plx_link_send_buf spares the copy. The lcore keeps up to 16 buffers and
 * 8 MiB for such copies; with more under way they are made into memory from the heap.
 *
 * Ownership: data stays the caller's and may be reused on return. Thread: owner.
 *
 * Return: 0; -EAGAIN no credit or no room in the queue, on_writable follows; -EMSGSIZE longer than
 * the peer accepts, or than PLX_SEND_COPY_MAX; -ENOTCONN not open, or closing; -ENOMEM. */
int plx_link_send(struct plx_link *link, const void *data, size_t len);

/** The same for data in pieces; count at most 64, else -EINVAL. */
int plx_link_sendv(struct plx_link *link, const struct iovec *iov, int count);

/** status: 0 the transport has taken it (which is not delivery: see plx_link_close); -ETIMEDOUT:
 * the provider did not give it back, and may still read it, so it must stay as it is for good;
 * another -errno: the link has ended. The library's reference to the buffer is dropped after the
 * callback, but with -ETIMEDOUT never. */
typedef void (*plx_link_sent_fn)(struct plx_link *link, struct plx_buf *buf, int status, void *arg);

/** Send a buffer, or a chain, by reference: nothing is copied, and a first buffer that is unshared
 * and has headroom carries the frame header in it. sent (may be NULL) is called exactly once for
 * every accepted buffer, also when the link dies. Inside plx_link_send_buf it is never called.
 * Ownership: the caller's reference moves to the library on success, and stays on error; the bytes
 * must not be changed until `sent`. Thread: owner. Return: as plx_link_send, but a message may be
 * longer than PLX_SEND_COPY_MAX. */
int plx_link_send_buf(struct plx_link *link, struct plx_buf *buf, plx_link_sent_fn sent, void *arg);

/** A buffer to build a message in (claim), then send with plx_link_send_buf (commit) or drop with
 * plx_buf_unref. From the lcore's own pool up to 4 KiB. Thread: owner.
 * Return: the buffer; NULL when the pool is empty. */
struct plx_buf *plx_link_buf(struct plx_link *link, uint32_t room_bytes);

/** Close without loss: what was accepted is sent, the peer answers, then on_close(CLOSED). Messages
 * from the peer arrive until then. Sends fail with -ENOTCONN from here on.
 * Thread: owner. Return: 0; -EALREADY. A link that is not open yet is aborted. */
int plx_link_close(struct plx_link *link);

/** Drop the link now. on_close(ABORTED) follows from the loop. Thread: owner. */
void plx_link_abort(struct plx_link *link);

void plx_link_set_user(struct plx_link *link, void *user);
void *plx_link_user(const struct plx_link *link);
bool plx_link_is_open(const struct plx_link *link);

/** Whether the peer's process was not heard, by this link's path, for half of the time after which
 * it is given up, as of the lcore's last look; false where there are no heartbeats. Thread: owner.
 */
bool plx_link_is_suspect(const struct plx_link *link);

/** Frames that the peer has room for just now, as far as it has told: of the buffers that it
 * receives in (its rx_buf_count, at most 200 where it is Pollux), those that hold nothing that it
 * is not done with. A message takes one, or several where it is longer than such a buffer. It says
 * how busy the peer is; a send may get -EAGAIN all the same, as this side has room for no more.
 * 0: none, or the link is not open. Thread: owner. */
uint32_t plx_link_credit(const struct plx_link *link);

/** At most so many of the messages that were accepted from here are not finished: the peer has not
 * received them, or its user has them still. Where it is done with messages in the order in which
 * they came, those are the newest ones, and where each was one frame there are exactly so many, as
 * far as the peer has told: it tells late while it has much room. A long message under way may
 * count as several.
 * Of a link that the peer closes, as of when it began to: what it did with messages behind that is
 * not known. 0 where it was asked to close from here, and has agreed: all of them have arrived.
 * Valid from on_open until on_close returns. Thread: owner. */
uint32_t plx_link_unfinished(const struct plx_link *link);

/** Whether the peer is on this host: over shm, from a loopback address, or from the address that
 * the link has here. false of an open link may also mean that the provider does not tell. In
 * on_close: whether the peer's address is one of this host. Thread: owner. */
bool plx_link_is_same_host(const struct plx_link *link);

/** The private data of the peer's HELLO, which may be anything; *length_out: 0 to
 * PLX_LINK_HELLO_MAX. Valid from on_hello on, as long as the link. Thread: owner. */
const uint8_t *plx_link_hello(const struct plx_link *link, uint32_t *length_out);

/** Why it ended: what on_close gets, from when sends fail for it. PLX_LINK_REASON_NONE: it has not.
 * Thread: owner. */
enum plx_link_reason plx_link_reason(const struct plx_link *link);

/** The peer's address, "192.0.2.1:7000"; valid as long as the link. */
const char *plx_link_peer(const struct plx_link *link);

/** The same as a value: AF_INET or AF_INET6. Thread: owner. Return: 0; -EINVAL the provider did not
 * tell the address. */
int plx_link_peer_sockaddr(const struct plx_link *link, struct sockaddr_storage *peer_out);

/** The text of on_close for a line that names the peer already: what follows the peer's address,
 * such as "went away without closing"; else all of it. Thread: owner. */
const char *plx_link_without_peer(const struct plx_link *link, const char *text);

/** The driver, "tcp", as plx_link_attr.provider takes it: constant text. Until the link is open it
 * may change. */
const char *plx_link_driver(const struct plx_link *link);

/** "tcp (libfabric plx_tcp)": driver and provider, for people. Until the link is open it may
 * change, and the text go; from on_open on it is valid as long as the link. */
const char *plx_link_provider(const struct plx_link *link);

/** Why it is that one, as text: "the peer is on this host and offers it". It may change until the
 * link is open, as the provider does. */
const char *plx_link_choice(const struct plx_link *link);

/** libfabric's name of the provider alone, "plx_tcp"; valid as long as the link. */
const char *plx_link_fi_provider(const struct plx_link *link);

struct plx_link_stats {
	uint64_t messages_sent, messages_received;
	uint64_t bytes_sent, bytes_received; /**< of messages */
	uint64_t frames_sent, frames_received;
	uint64_t again;                                /**< sends refused with -EAGAIN */
	uint64_t credit_frames;                        /**< frames sent only to grant credit */
	uint64_t heartbeats_sent, heartbeats_received; /**< frames that only say: I am alive */
	uint64_t puts, gets;                           /**< accepted */
	uint64_t bytes_put, bytes_got;                 /**< got: that have come */
	uint64_t puts_told;                            /**< of the peer: on_put */
	uint32_t tx_queued;   /**< messages accepted and not yet given to the provider */
	uint32_t tx_inflight; /**< operations that the provider has and will complete */
	uint32_t rx_posted;   /**< receive buffers that the provider has */
	uint32_t rx_kept;     /**< receive buffers that the user has */
};

void plx_link_stats(const struct plx_link *link, struct plx_link_stats *stats_out);

/** The next one of the calling lcore's links; after NULL: the first. Those of NetIO and of services
 * are among them, to be looked at alone. All for which on_close is due; plx_link_connect, close and
 * abort may be called meanwhile. Valid until the callback returns, outside of callbacks until the
 * loop turns. For all of the process ask each lcore (plx_lcore_broadcast). Thread: an lcore;
 * elsewhere there are none. */
struct plx_link *plx_link_next(const struct plx_link *link);

/** Each link of the calling lcore; see plx_link_next. */
#define PLX_LINK_FOREACH(link) \
	for (struct plx_link *link = plx_link_next(NULL); link; link = plx_link_next(link))

/* Listeners -------------------------------------------------------------------------------- */

/** Which lcore gets the next link of a listener; its callbacks run there. Round-robin and hash
 * choose among lcores that run their loop (plx_loop_is_running) and, if it is among those named,
 * the listener's own; where there is none it is the listener's own all the same. */
enum plx_spread {
	PLX_SPREAD_NONE,        /**< the listener's own */
	PLX_SPREAD_ROUND_ROBIN, /**< each in turn, by ascending id */
	PLX_SPREAD_HASH,     /**< by the peer's IP address: all links of a host meet on one lcore */
	PLX_SPREAD_CALLBACK, /**< the one that `place` returns */
};

struct plx_listen_attr {
	struct plx_link_attr link; /**< of every link it accepts */
	struct plx_admission admission;
	enum plx_spread spread;
	/** For round-robin and hash: the lcores to choose from, bit id % 64 of word id / 64. All
	 * zero: every lcore. */
	uint64_t lcores[PLX_LCORE_MAX / 64];
	/** For PLX_SPREAD_CALLBACK: called on the listener's lcore. peer: AF_INET or AF_INET6;
	 * NULL where the provider does not tell. An id that is no lcore refuses the connection. So
	 * does the listener's lcore where the one that was returned has not taken it after
	 * link.connect_timeout_ns, as it does not run its loop or its lane is full. */
	uint32_t (*place)(struct plx_listener *listener, const struct sockaddr *peer, void *arg);
	void *place_arg;
};

/** Listen on "host:port"; "*:port" is every address; port 0 takes a free one. On a name it listens
 * at each of up to 8 addresses that this host has, at the same port.
 * Ownership: close with plx_listener_close. Thread: an lcore.
 * Return: 0; -EADDRINUSE; -EADDRNOTAVAIL; -EINVAL address or attribute, or an lcore was named that
 * does not exist; -EOPNOTSUPP as plx_link_connect; ... */
int plx_link_listen(const char *address, const struct plx_listen_attr *attr,
		    struct plx_listener **listener_out);

/** Where it listens, with the real port; valid as long as the listener. */
const char *plx_listener_address(const struct plx_listener *listener);

/** That port; 0: of NULL. Thread: any. */
unsigned plx_listener_port(const struct plx_listener *listener);

struct plx_listener_stats {
	uint64_t requests;      /**< connection requests */
	uint64_t opened;        /**< links that reached on_open */
	uint64_t refused;       /**< refused here, and of those: */
	uint64_t refused_links; /**< at links_max */
	uint64_t refused_host;  /**< at links_per_host_max */
	uint64_t refused_rate;  /**< waited too long by accepts_per_s */
	uint64_t evicted;       /**< ended before they were open, at handshakes_max; those that were
				     links already are in `failed` too. Over tcp connections that
				     have sent nothing yet are apart: so many may be there besides */
	uint64_t failed;        /**< that ended before on_open: bad HELLO, time out */
	uint64_t no_handshake;  /**< peers that did not complete a handshake: of these, most; and
				     over tcp those that speak something else, or nothing, which are
				     no `requests` */
	uint64_t protocol_broken; /**< links that ended with PLX_LINK_PROTOCOL: of `failed` those
				       before on_open, and `opened` ones later */
	char last_failure[160];   /**< the newest of `failed` as text */
};

void plx_listener_stats(const struct plx_listener *listener, struct plx_listener_stats *stats_out);

/** Stop listening; links stay, and requests that another lcore has been asked to take still become
 * links. Port and memory are released when these are answered or refused: at once if there
 * are none, and link.connect_timeout_ns after the last one came at the latest, if the loop turns; a
 * descriptor 10 s behind that;
 * new requests are refused meanwhile. Allowed inside `place`. Thread: owner. Accepts NULL. */
void plx_listener_close(struct plx_listener *listener);

/** The links and listeners of the calling lcore; closed ones count until all that they hold is
 * released. Thread: an lcore. */
uint32_t plx_fabric_open_count(void);

PLX_END_DECLS

#endif
