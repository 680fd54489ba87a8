/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Publish sockets, and the socket that subscribes to them by tag. Part of netio.h.
 */
#ifndef NETIO_PUBSUB_H
#define NETIO_PUBSUB_H

#include "netio_socket.h"

PLX_BEGIN_DECLS

struct netio_subscribe_core;
struct netio_publish_core;
struct netio_subscribe_socket;

/* A publish socket listens. A subscribe socket connects to any number of them, requests messages
 * by tag, and receives them on the same connection. Messages without a subscription are not sent. A
 * subscriber gets a message once, even if several of its subscriptions match. Messages of one
 * publisher arrive in the order in which they were published. */

/** When messages of a subscription leave the publisher. */
enum netio_delivery {
	NETIO_DELIVERY_DEFAULT,  /**< buffered or at once, by the type of the publish socket */
	NETIO_DELIVERY_AT_ONCE,  /**< low latency. If any matching subscription of a subscriber has
				      this, the message leaves at once */
	NETIO_DELIVERY_BUFFERED, /**< high throughput: many messages in a page */
};

/** What happens to messages for a slow subscriber. While its link has no room they wait at the
 * publisher, up to netio_subscription.backlog_bytes; then the policy applies. If several
 * subscriptions of a subscriber match a message, the policy that is first in this enum applies,
 * with the largest bound among those subscriptions. A message published by reference that is too
 * long for the pages cannot wait: its policy applies at once, and those that drop drop it. */
enum netio_policy {
	NETIO_POLICY_DEFAULT, /**< the publish socket's (netio_publish_attr) */
	NETIO_POLICY_BLOCK,   /**< nothing is lost while it is connected: publishing returns AGAIN
				   or PARTIAL, up to the publisher's block_max_ns. A subscriber
				   without room for 1 s is logged, and the end of that */
	NETIO_POLICY_DISCONNECT, /**< its connection closes. Waiting messages are lost, and reported
				      if it takes anything within 5 s */
	NETIO_POLICY_DROP_OLD,   /**< drops the oldest waiting page. Pages with messages of the
				      above policies are skipped; if there is no other page, drops
				      the new message */
	NETIO_POLICY_DROP_NEW,   /**< drops the new message */
	NETIO_POLICY_CONFLATE,   /**< only the newest message of each tag waits. It replaces the
				      previous one, so it may overtake messages of other tags. At
				      the bound, new messages are dropped */
	NETIO_POLICY_COUNT,
};

/** Names of the policies, for options: an array terminated by NULL. */
#define NETIO_POLICY_NAMES \
	{"default", "block", "disconnect", "drop-old", "drop-new", "conflate", NULL}

/** Why a subscriber misses messages. */
enum netio_gap_reason {
	NETIO_GAP_DROPPED_NEW = 1, /**< by policy; also if DROP_OLD or CONFLATE finds no room */
	NETIO_GAP_DROPPED_OLD,
	NETIO_GAP_CONFLATED,    /**< replaced by newer ones of their tags */
	NETIO_GAP_DISCONNECTED, /**< by policy or block_max_ns: the connection closes */
	NETIO_GAP_TOO_BIG,      /**< above the subscriber's maximum, or too long for the pages */
	NETIO_GAP_GIVEN_UP,     /**< it had no room, and they were not published again */
	NETIO_GAP_LOST,         /**< its connection was lost: what was under way, and what was
				     published until it was back */
	NETIO_GAP_UNKNOWN,      /**< the publisher does not know what it missed: it has restarted,
				     or the subscriber was away for too long. Never with others */
	NETIO_GAP_REASON_COUNT,
};

/** A reason as a bit of a set. */
#define NETIO_GAP_BIT(reason) (1u << (reason))

/** "dropped as new", "dropped as old", "conflated", ... */
const char *netio_gap_reason_name(enum netio_gap_reason reason);

#define NETIO_GAP_TEXT_BYTES 128 /**< room for the names of all reasons */

/** Format a set: "dropped as new, conflated". Return: out. */
const char *netio_gap_reasons_format(uint32_t reasons, char out[NETIO_GAP_TEXT_BYTES]);

/** Selects messages by one tag, by a range of tags, or by some bits of the tag. The range from 0 to
 * UINT64_MAX selects all. */
struct netio_subscription {
	netio_tag_t tag;  /**< the tag; or the first of the range; or the bits under the mask */
	netio_tag_t last; /**< the last of the range; 0: no range */
	netio_tag_t mask; /**< bits to compare; 0: no mask. A mask of leading ones is as fast as a
			       range; a publisher takes up to 64 different other masks */
	enum netio_delivery delivery;
	enum netio_policy policy; /**< if the subscriber is slow. In callbacks: what it asked for,
				       so maybe the default */
	uint64_t backlog_bytes;   /**< bytes of messages that may wait at the publisher for this
				       subscriber while its link has no room, plus up to one page.
				       0: all that its pages hold, which is also the maximum; with
				       POLICY_DEFAULT: as the publish socket */
};

/** Callbacks of both kinds of publish socket.
 * cb_subscribed: matching messages are sent from now on.
 * cb_connection_closed: runs after cb_unsubscribed of each remaining subscription. */
#define NETIO_PUBLISH_CALLBACKS(subscriber)                                               \
	NETIO_CONNECTION_CALLBACKS(subscriber)                                            \
	void (*cb_subscribed)(subscriber, const struct netio_subscription *subscription); \
	void (*cb_unsubscribed)(subscriber, const struct netio_subscription *subscription);

/** One subscriber of a publish socket. Valid from cb_connection_established until
 * cb_connection_closed returns. */
struct netio_subscriber {
	void *socket;         /**< the publish socket */
	uint64_t id;          /**< counts from 1 */
	const char *peer;     /**< the subscriber's address */
	const char *provider; /**< this and the next three: as in netio_recv_socket */
	const char *choice;
	const char *program;
	pid_t pid;
	void *data; /**< the user's */
};

/** Counts of one subscriber. */
struct netio_subscriber_stats {
	uint64_t missed[NETIO_GAP_REASON_COUNT]; /**< messages, by enum netio_gap_reason */
	uint64_t backlog_bytes;                  /**< waiting for its link or for a full page */
	uint32_t pages_under_way;                /**< begun, waiting, or in flight */
	bool is_slow;                            /**< some messages wait for its link */
	uint64_t blocked_ns; /**< in all, from AGAIN or PARTIAL until it had room */
	uint64_t lost; /**< messages in pages not sent when its connection ended; not in `missed`.
			    Set before cb_unsubscribed and cb_connection_closed run */
};

void netio_subscriber_stats_read(const struct netio_subscriber *subscriber,
				 struct netio_subscriber_stats *stats_out);

/** Close the connection of a subscriber. Published messages are sent first, except those that the
 * peer does not take within PLX_CLOSE_NS (5 s); cb_connection_closed follows. */
void netio_subscriber_close(struct netio_subscriber *subscriber);

#define NETIO_PUBLISH_PAGE_COUNT_DEFAULT       32
#define NETIO_SUBSCRIBERS_DEFAULT              4096
#define NETIO_SUBSCRIPTIONS_DEFAULT            (1u << 20)
#define NETIO_SUBSCRIBER_SUBSCRIPTIONS_DEFAULT (1u << 17)

/** 0 or NULL: the default. */
struct netio_publish_attr {
	const char *provider;     /**< as plx_link_attr.provider; copied */
	uint32_t page_bytes;      /**< as in netio_buffered_attr */
	uint32_t page_count;      /**< for each subscriber: 2 to 65536; default 32 */
	uint32_t watermark_bytes; /**< as in netio_buffered_attr; also the next */
	uint64_t timeout_ns;
	uint32_t subscribers_max;   /**< further connections are refused; default 4096. PLX_NO_LIMIT
					 is allowed here and in the next two */
	uint32_t subscriptions_max; /**< of all subscribers; further ones are refused; default 2^20.
					 A range counts as its blocks, at most 126 */
	uint32_t subscriber_subscriptions_max; /**< the same per subscriber; default 2^17 */
	enum netio_policy policy; /**< of subscriptions that name none; default: block */
	uint64_t backlog_bytes;   /**< of these, as in netio_subscription */
	uint64_t block_max_ns;    /**< a subscriber without room for that long under POLICY_BLOCK is
				       disconnected, as under POLICY_DISCONNECT. 0 or PLX_NEVER: no
				       limit */
	bool refuse_block; /**< refuse subscriptions that ask to block; needs another policy */
};

/** Caches the last lookup of a publisher, for callers that publish one tag repeatedly. The
 * subscriptions are searched again only after they changed, or for another tag. Use one per socket
 * and tag. Zero it first, then the library owns its content. It needs no fini. */
struct netio_subscription_cache {
	/* Private. */
	uint64_t version;
	netio_tag_t tag;
	uint32_t count;
	uint64_t to[8][3];
};

#define NETIO_ABSENT_NS           (60 * PLX_NS_PER_S)
#define NETIO_ABSENT_MAX          1024
#define NETIO_ABSENT_PER_HOST_MAX 256 /**< so that no host makes it forget those of others */

/** Flag for publishing: this is the message that last got AGAIN or PARTIAL. It goes to the
 * subscribers that missed it and still want it. One that the socket forgot is published as new. */
#define NETIO_REENTRY 1

/** Maximum pending messages of a buffered publish socket; beyond it, the oldest is given up. */
#define NETIO_REENTRY_MAX 4096

/** Copies messages into a page for each subscriber. */
struct netio_publish_socket {
	NETIO_PUBLISH_CALLBACKS(struct netio_subscriber *subscriber)
	/** Once after NETIO_STATUS_AGAIN: a subscriber without room has some, or disconnected.
	 * Publish that message again with NETIO_REENTRY; another subscriber may cause AGAIN. */
	void (*cb_buffers_available)(struct netio_publish_socket *socket);
	void *data;                      /**< the user's */
	struct netio_publish_core *core; /**< private */
};

/** As netio_send_socket_init. */
int netio_publish_socket_init(struct netio_eventloop *evloop, struct netio_publish_socket *socket,
			      const struct netio_publish_attr *attr);

/** Listen for subscribers; as netio_listen. */
int netio_publish_listen(struct netio_publish_socket *socket, const char *host, unsigned port);

/** The port; 0 if the socket does not listen. */
unsigned netio_publish_socket_port(const struct netio_publish_socket *socket);

/** No callbacks run after this returns. Connections close without loss of published messages, as
 * by netio_send_socket_fini. Accepts a zeroed socket. */
void netio_publish_socket_fini(struct netio_publish_socket *socket);

/** Publish a copy of a message. flags: 0 or NETIO_REENTRY. cache: may be NULL.
 * Return:
 * NETIO_STATUS_OK: every subscriber has it, sent or in a page.
 * NETIO_STATUS_AGAIN: one has no room; others may have it. Wait for cb_buffers_available and
 * publish it again with NETIO_REENTRY, which reaches the subscribers that missed it and are still
 * connected. Publishing another message of that tag without the flag gives this one up.
 * NETIO_STATUS_TOO_BIG: above PLX_SEND_COPY_MAX, or too long for every subscriber, or for the
 * pages. If the message_max_bytes of only some accept it, it is OK and the others count as too_big.
 * NETIO_STATUS_NO_SUBSCRIBERS; -EINVAL.
 * -ENOMEM: some missed it, which counts as given up. */
int netio_buffered_publish(struct netio_publish_socket *socket, netio_tag_t tag, void *data,
			   size_t len, int flags, struct netio_subscription_cache *cache);

/** netio_buffered_publish of a message in pieces. */
int netio_buffered_publishv(struct netio_publish_socket *socket, netio_tag_t tag,
			    const struct iovec *iov, size_t count, int flags,
			    struct netio_subscription_cache *cache);

/** Send the pages of all subscribers, each as soon as its link has taken those before it. */
void netio_buffered_publish_flush(struct netio_publish_socket *socket);

/** Publishes each message at once, without a copy. */
struct netio_unbuffered_publish_socket {
	NETIO_PUBLISH_CALLBACKS(struct netio_subscriber *subscriber)
	/** Once after NETIO_STATUS_AGAIN or NETIO_STATUS_PARTIAL; as in netio_publish_socket. */
	void (*cb_buffers_available)(struct netio_unbuffered_publish_socket *socket);
	/** The library is done with the message published with that key. Once per message that was
	 * finally OK or given up, in any order. status:
	 * 0: it went to all, or a copy waits for a slow one.
	 * -ECANCELED: it was given up.
	 * -ETIMEDOUT: a provider did not return it and may still read it; never change or free it.
	 * Another -errno: a subscriber's connection ended; all others have it. */
	void (*cb_msg_published)(struct netio_unbuffered_publish_socket *socket, uint64_t key,
				 int status);
	void *data;                      /**< the user's */
	struct netio_publish_core *core; /**< private */
};

int netio_unbuffered_publish_socket_init(struct netio_eventloop *evloop,
					 struct netio_unbuffered_publish_socket *socket,
					 const struct netio_publish_attr *attr);
int netio_unbuffered_publish_listen(struct netio_unbuffered_publish_socket *socket,
				    const char *host, unsigned port);
unsigned netio_unbuffered_publish_socket_port(const struct netio_unbuffered_publish_socket *socket);
void netio_unbuffered_publish_socket_fini(struct netio_unbuffered_publish_socket *socket);

/** Publish a message without copying it. It must not change until cb_msg_published returns *key.
 * (Subscriptions with buffered delivery get a copy if the pages hold it and PLX_SEND_COPY_MAX
 * permits it; otherwise it leaves at once. So do slow subscribers: under POLICY_BLOCK of messages
 * up to 1 KiB, in two pages, which are allocated then. With all defaults, at least 128 messages of
 * 64 bytes find room.) *key is only read and may be reused on return; with NETIO_REENTRY it must be
 * the same.
 * Return:
 * NETIO_STATUS_OK: each subscriber's transport has it, or will have it.
 * NETIO_STATUS_AGAIN: no subscriber had room. Nothing was taken and no callback follows. Publish
 * it again after cb_buffers_available, with or without NETIO_REENTRY.
 * NETIO_STATUS_PARTIAL: some subscribers had room. Keep the message. After cb_buffers_available
 * publish it again with NETIO_REENTRY and the same tag and key, until it is no longer PARTIAL or
 * is given up. It reaches the subscribers that missed it and are still connected.
 * NETIO_STATUS_TOO_BIG: too long for every subscriber; if only some accept it, the others count as
 * too_big. NETIO_STATUS_NO_SUBSCRIBERS; -EINVAL.
 * -EALREADY: it is PARTIAL, and NETIO_REENTRY is missing.
 * -ENOMEM: no subscriber has it. */
int netio_unbuffered_publishv(struct netio_unbuffered_publish_socket *socket, netio_tag_t tag,
			      struct iovec *iov, size_t count, uint64_t *key, int flags,
			      struct netio_subscription_cache *cache);

/** Give up a message that was PARTIAL: subscribers that missed it never get it. cb_msg_published
 * follows with -ECANCELED when the other subscribers' transports are done with it.
 * Return: 0; -ENOENT. */
int netio_unbuffered_publish_give_up(struct netio_unbuffered_publish_socket *socket,
				     netio_tag_t tag, uint64_t key);

/** netio_unbuffered_publishv with a header before the message: the first usr_size bytes of usr, 0
 * to 8, in memory order. The header is copied; subscribers see it as the start of the message. */
int netio_unbuffered_publishv_usr(struct netio_unbuffered_publish_socket *socket, netio_tag_t tag,
				  struct iovec *iov, size_t count, uint64_t *key, int flags,
				  struct netio_subscription_cache *cache, uint64_t usr,
				  uint8_t usr_size);

struct netio_publish_stats {
	uint64_t messages;       /**< published: OK, or missed by some subscribers */
	uint64_t copies;         /**< accepted for subscribers, including those later dropped as
				      old, conflated, disconnected or lost */
	uint64_t pages;          /**< sent */
	uint64_t again;          /**< AGAIN and PARTIAL */
	uint64_t no_subscribers; /**< messages without a subscription */
	uint64_t too_big;        /**< copies missed because they exceed the subscriber's maximum */
	uint64_t given_up;       /**< copies that subscribers missed because the message was not
				      published again, they went away first, or memory was short */
	uint64_t lost;           /**< copies in pages not sent when a connection ended */
	uint64_t dropped_new, dropped_old, conflated; /**< copies, by policy */
	uint64_t disconnected; /**< copies lost with subscribers, by policy or block_max_ns */
	uint64_t lost_told;    /**< messages that came in gaps to subscribers whose connection had
				    been lost: some of them count as lost, too */
	uint32_t absent;       /**< subscribers whose connection was lost, and for which the
				    publisher still counts what they miss */
	uint64_t requests;     /**< to subscribe and unsubscribe */
	uint64_t refused;      /**< refused requests */
	uint32_t subscribers, subscriptions;
	uint32_t pages_under_way; /**< of all subscribers: begun, waiting, or in flight */
};

void netio_publish_stats_read(const struct netio_publish_socket *socket,
			      struct netio_publish_stats *stats_out);
void netio_unbuffered_publish_stats_read(const struct netio_unbuffered_publish_socket *socket,
					 struct netio_publish_stats *stats_out);

/** 0 or NULL: the default. */
struct netio_subscribe_attr {
	struct netio_connect_attr connect; /**< message_max_bytes: longest message; more than
						PLX_SEND_COPY_MAX comes from publishers by
						reference */
	uint32_t buffer_bytes;             /**< as in netio_listen_attr, for each publisher */
	uint32_t buffer_count;             /**< as in netio_listen_attr */
};

/** One publisher of a subscribe socket. Valid from the first subscription to it until it has none
 * and cb_connection_closed returned. */
struct netio_publisher {
	struct netio_subscribe_socket *subscribe_socket;
	uint64_t id;          /**< counts from 1; netio_msg.source of its messages */
	const char *address;  /**< "host:port", as the user gave it */
	const char *provider; /**< this and the next three: as in netio_recv_socket; "" and 0
				   while not connected, once the callbacks have returned */
	const char *choice;
	const char *program;
	pid_t pid;
	uint64_t incarnation; /**< random; another one after the publisher has restarted. 0: it has
				   not been connected, or is of an older version */
	uint64_t started_ns;  /**< when its publish socket was set up: CLOCK_REALTIME of its host */
	void *data;           /**< the user's */
};

/** Messages that a subscriber misses. Numbers count messages received and missed, in publishing
 * order, from 1 with each incarnation of the publisher, over all connections to it. For conflated
 * messages only the count has a meaning.
 *
 * A publisher remembers a subscriber whose connection was lost for NETIO_ABSENT_NS, and the last
 * NETIO_ABSENT_PER_HOST_MAX of an address (IPv6: of a /64), NETIO_ABSENT_MAX in all. If it comes
 * back, a gap (NETIO_GAP_LOST) says exactly what it missed; otherwise one gap is NETIO_GAP_UNKNOWN,
 * before the first message. */
struct netio_gap {
	uint64_t first, last;
	uint64_t count;   /**< last - first + 1; NETIO_GAP_UNKNOWN: all three are 0 */
	uint32_t reasons; /**< NETIO_GAP_BIT of each reason; adjacent gaps are merged */
};

struct netio_subscribe_socket {
	/* Each new connection requests all subscriptions again. */
	NETIO_CONNECT_CALLBACKS(struct netio_publisher *publisher)
	/** The publisher accepted the subscription and sends what it publishes from now on.
	 * Messages may arrive before this callback. */
	void (*cb_subscribed)(struct netio_publisher *publisher,
			      const struct netio_subscription *subscription);
	/** The publisher refused the subscription; why is for people. Without this callback each
	 * reason is logged, once a connection. The publisher may have room later: it is asked again
	 * after a random wait, as after cb_connection_refused, until netio_unsubscribe. Only
	 * refuse_block, or reconnect_min_ns of PLX_NEVER, end the subscription: cb_unsubscribed
	 * follows. */
	void (*cb_subscription_refused)(struct netio_publisher *publisher,
					const struct netio_subscription *subscription,
					const char *why);
	/** The connection ended; cb_connection_closed follows. Messages are missed until
	 * cb_subscription_resumed. */
	void (*cb_subscription_lost)(struct netio_publisher *publisher,
				     const struct netio_subscription *subscription,
				     const char *why);
	/** The publisher accepted a lost subscription again. */
	void (*cb_subscription_resumed)(struct netio_publisher *publisher,
					const struct netio_subscription *subscription);
	/** After netio_unsubscribe, or a refusal that ends the subscription: no further messages
	 * for it. */
	void (*cb_unsubscribed)(struct netio_publisher *publisher,
				const struct netio_subscription *subscription);
	/** Messages are missing between those received before and those received from now on. */
	void (*cb_gap)(struct netio_publisher *publisher, const struct netio_gap *gap);
	/** A message; valid until this returns, unless it is kept (netio_msg_keep). */
	void (*cb_msg_received)(struct netio_subscribe_socket *socket, const struct netio_msg *msg);
	void *data;                        /**< the user's */
	struct netio_subscribe_core *core; /**< private */
};

/** As netio_send_socket_init. */
int netio_subscribe_socket_init(struct netio_eventloop *evloop,
				struct netio_subscribe_socket *socket,
				const struct netio_subscribe_attr *attr);

struct netio_subscribe_stats {
	uint64_t messages; /**< received */
	uint64_t gaps;
	uint64_t missed[NETIO_GAP_REASON_COUNT]; /**< messages in gaps, by enum netio_gap_reason; a
						      gap with several reasons counts under its
						      first */
};

void netio_subscribe_stats_read(const struct netio_subscribe_socket *socket,
				struct netio_subscribe_stats *stats_out);

/** No callbacks run after this returns. Kept messages stay valid. Accepts a zeroed socket. */
void netio_subscribe_socket_fini(struct netio_subscribe_socket *socket);

/** Subscribe to a tag of the publisher at that address. The first subscription connects. Returns
 * at once; cb_subscribed or cb_subscription_refused follows, or cb_connection_refused for each
 * failed attempt to connect. Subscriptions with the same host and port share a connection.
 * If the publisher is not tried again (reconnect_min_ns), subscribing again to the same tag
 * connects anew.
 * Return: 0; -EEXIST already, with any delivery or policy; -EINVAL; -ENOMEM; as netio_connect. */
int netio_subscribe(struct netio_subscribe_socket *socket, const char *host, unsigned port,
		    netio_tag_t tag);

/** netio_subscribe for any kind of subscription. */
int netio_subscribe_to(struct netio_subscribe_socket *socket, const char *host, unsigned port,
		       const struct netio_subscription *subscription);

/** End a subscription: cb_unsubscribed follows. Ending the last one of a publisher closes its
 * connection.
 * Return: 0; -ENOENT no such subscription; -EINVAL. */
int netio_unsubscribe(struct netio_subscribe_socket *socket, const char *host, unsigned port,
		      netio_tag_t tag);
int netio_unsubscribe_from(struct netio_subscribe_socket *socket, const char *host, unsigned port,
			   const struct netio_subscription *subscription);

PLX_END_DECLS

#endif
