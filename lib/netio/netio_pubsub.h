/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Publish and subscribe: publish sockets, and the socket that subscribes to them by tag. Part of
 * netio.h.
 */
#ifndef NETIO_PUBSUB_H
#define NETIO_PUBSUB_H

#include "netio_socket.h"

PLX_BEGIN_DECLS

struct netio_subscribe_core;
struct netio_publish_core;
struct netio_subscribe_socket;

/* A publish socket listens; a subscribe socket connects to as many of them as it likes, says what
 * it wants by tags, and gets it on the same connection. What nobody wants is not sent. A message
 * goes once to each subscriber, however many of its subscriptions match. What the publisher sends
 * to one subscriber arrives in the order in which it was published. */

/** When messages of a subscription leave the publisher. */
enum netio_delivery {
	NETIO_DELIVERY_DEFAULT,  /**< as the publish socket does: buffered, or at once */
	NETIO_DELIVERY_AT_ONCE,  /**< low latency. Where several subscriptions of a subscriber match
				      a message, and one of them is such, it leaves at once */
	NETIO_DELIVERY_BUFFERED, /**< high throughput: many in a page */
};

/** What becomes of messages for a subscriber that takes them more slowly than they are published:
 * where its link has no room, they wait at the publisher (netio_subscription.backlog_bytes), and
 * then ... Where several subscriptions of a subscriber match a message, the one whose policy stands
 * first here decides, and of several such the greatest bound. */
enum netio_policy {
	NETIO_POLICY_DEFAULT,    /**< as the publish socket says (netio_publish_attr) */
	NETIO_POLICY_BLOCK,      /**< nothing is lost: publishing gives AGAIN or PARTIAL */
	NETIO_POLICY_DISCONNECT, /**< its connection is closed: what waits is lost, and told, if it
				      takes anything within 2 s */
	NETIO_POLICY_DROP_OLD,   /**< the oldest page that waits is dropped; if it has messages of
				      the above, the next one; if there is none, the new message */
	NETIO_POLICY_DROP_NEW,   /**< the new message is */
	NETIO_POLICY_CONFLATE,   /**< of each tag only the newest message waits. It takes the place
				      of the one before, so that it may come before older ones of
				      other tags. Where too many wait, new ones are dropped */
	NETIO_POLICY_COUNT,
};

/** Their names, for options: an array that ends with NULL. */
#define NETIO_POLICY_NAMES \
	{"default", "block", "disconnect", "drop-old", "drop-new", "conflate", NULL}

/** Why a subscriber misses messages. */
enum netio_gap_reason {
	NETIO_GAP_DROPPED_NEW = 1, /**< by policy; also where DROP_OLD, CONFLATE find no room */
	NETIO_GAP_DROPPED_OLD,
	NETIO_GAP_CONFLATED,    /**< newer ones of their tags came */
	NETIO_GAP_DISCONNECTED, /**< by policy: the connection closes */
	NETIO_GAP_TOO_BIG,      /**< longer than it accepts, or than the publisher's pages hold */
	NETIO_GAP_GIVEN_UP,     /**< it had no room, and they were not published again */
	NETIO_GAP_REASON_COUNT,
};

/** A reason in a set of them. */
#define NETIO_GAP_BIT(reason) (1u << (reason))

/** "dropped as new", "dropped as old", "conflated", ... */
const char *netio_gap_reason_name(enum netio_gap_reason reason);

#define NETIO_GAP_TEXT_BYTES 96 /**< room for the names of all */

/** The names of a set: "dropped as new, conflated". Returns out. */
const char *netio_gap_reasons_format(uint32_t reasons, char out[NETIO_GAP_TEXT_BYTES]);

/** Which messages a subscriber wants: those with one tag, or with one of a range, or with some bits
 * as they are here. */
struct netio_subscription {
	netio_tag_t tag;  /**< the tag; or the first one of the range; or the bits under the mask */
	netio_tag_t last; /**< the last one of the range; 0: no range */
	netio_tag_t mask; /**< which bits are looked at; 0: no mask. One that is all ones from the
			       top down is as good as a range; of others a publisher takes 64
			       different ones at a time */
	enum netio_delivery delivery;
	enum netio_policy policy; /**< where the subscriber is slow */
	uint64_t backlog_bytes; /**< so much may wait for this subscriber at the publisher while its
				     link has no room, and a page more. 0: what its pages hold
				     (netio_publish_attr), to which more is cut; with
				   POLICY_DEFAULT: as the publish socket says */
};

/** Callbacks of both publish sockets.
 * cb_connection_closed: cb_unsubscribed came before for each subscription that was left.
 * cb_subscribed: from here on messages that match go there. */
#define NETIO_PUBLISH_CALLBACKS(subscriber)                                               \
	NETIO_CONNECTION_CALLBACKS(subscriber)                                            \
	void (*cb_subscribed)(subscriber, const struct netio_subscription *subscription); \
	void (*cb_unsubscribed)(subscriber, const struct netio_subscription *subscription);

/** One subscriber of a publish socket; from cb_connection_established until cb_connection_closed
 * returns. */
struct netio_subscriber {
	void *socket;         /**< the publish socket */
	uint64_t id;          /**< counts up from 1 */
	const char *peer;     /**< its address */
	const char *provider; /**< as netio_recv_socket.provider */
	void *data;           /**< the user's */
};

/** What one subscriber has cost. */
struct netio_subscriber_stats {
	uint64_t missed[NETIO_GAP_REASON_COUNT]; /**< messages, by enum netio_gap_reason */
	uint64_t backlog_bytes;   /**< that wait for its link, or for a page to be full */
	uint32_t pages_under_way; /**< begun, waiting, or with the transport */
	bool is_slow;             /**< some wait for its link */
};

void netio_subscriber_stats(const struct netio_subscriber *subscriber,
			    struct netio_subscriber_stats *stats_out);

/** Close its connection; cb_connection_closed follows. What was published is sent before, but for
 * what the peer does not take for 2 s. */
void netio_subscriber_close(struct netio_subscriber *subscriber);

#define NETIO_PUBLISH_PAGE_COUNT_DEFAULT       32
#define NETIO_SUBSCRIBERS_DEFAULT              1024
#define NETIO_SUBSCRIPTIONS_DEFAULT            (1u << 20)
#define NETIO_SUBSCRIBER_SUBSCRIPTIONS_DEFAULT (1u << 17)

/** 0 or NULL: the default. */
struct netio_publish_attr {
	const char *provider;     /**< as plx_link_attr.provider; copied */
	uint32_t page_bytes;      /**< as in netio_buffered_attr */
	uint32_t page_count;      /**< for each subscriber: 2 to 65536; default 32 */
	uint32_t watermark_bytes; /**< as in netio_buffered_attr, as the next */
	uint64_t timeout_ns;
	uint32_t subscribers_max;   /**< more connections are refused; default 1024. This and
					 the next two may be PLX_NO_LIMIT */
	uint32_t subscriptions_max; /**< of all subscribers; more are refused; default 2^20. A range
					 counts as the blocks that it is made of, 126 at most */
	uint32_t subscriber_subscriptions_max; /**< the same of one of them; default 2^17 */
	enum netio_policy policy; /**< of subscriptions that name none; default: to block */
	uint64_t backlog_bytes;   /**< of these, as in netio_subscription */
	bool refuse_block; /**< who asks to block is refused; needs another policy as the default */
};

/** The newest lookup of a publisher, for who publishes the same tag again and again: the
 * subscriptions are searched when they have changed, or with another tag. Zeroed at first, then the
 * library's; of one socket, and worth having for one tag. It needs no end. */
struct netio_subscription_cache {
	/* Private. */
	uint64_t version;
	netio_tag_t tag;
	uint32_t count;
	struct {
		void *subscriber;
		uint64_t backlog_bytes;
		uint8_t policy;
		bool at_once;
	} to[8];
};

/** For publishing: that is the message for which it was AGAIN or PARTIAL the last time: it goes to
 * those that missed it and want it still. One that the socket does not know (any more) is published
 * as a new one. */
#define NETIO_REENTRY 1

/** So many messages at once a buffered publish socket remembers to have been AGAIN; with more, the
 * oldest is given up. */
#define NETIO_REENTRY_MAX 4096

/** Copies messages into a page for each subscriber. */
struct netio_publish_socket {
	NETIO_PUBLISH_CALLBACKS(struct netio_subscriber *subscriber)
	/** After NETIO_STATUS_AGAIN, once: a subscriber that had no room has some, or is gone.
	 * Publish again what was refused, with NETIO_REENTRY; it may be AGAIN for another one. */
	void (*cb_buffers_available)(struct netio_publish_socket *socket);
	void *data;                      /**< the user's */
	struct netio_publish_core *core; /**< private */
};

/** As netio_send_socket_init. */
int netio_publish_socket_init(struct netio_eventloop *evloop, struct netio_publish_socket *socket,
			      const struct netio_publish_attr *attr);

/** Take subscribers at that address; as netio_listen. */
int netio_publish_listen(struct netio_publish_socket *socket, const char *host, unsigned port);

/** The port that it listens at; 0: it does not. */
unsigned netio_publish_socket_port(const struct netio_publish_socket *socket);

/** No callback comes any more. Connections are closed without loss of what was published, as by
 * netio_send_socket_fini. Accepts a socket that is zeroed. */
void netio_publish_socket_fini(struct netio_publish_socket *socket);

/** Publish a copy of a message. flags: 0 or NETIO_REENTRY; cache: may be NULL.
 * Return: NETIO_STATUS_OK every subscriber has it, in a page or sent;
 * NETIO_STATUS_AGAIN one has no room, and others may have the message: wait for
 * cb_buffers_available and publish it again with NETIO_REENTRY, when it goes to those that have
 * missed it and are still there. Publishing another message of that tag without it gives this one
 * up;
 * NETIO_STATUS_TOO_BIG no subscriber accepts a message of that length, or the pages do not hold it;
 * where some do, it is OK, and the others count as too_big;
 * NETIO_STATUS_NO_SUBSCRIBERS; -EINVAL; -ENOMEM: some miss it, which counts as given up. */
int netio_buffered_publish(struct netio_publish_socket *socket, netio_tag_t tag, void *data,
			   size_t len, int flags, struct netio_subscription_cache *cache);

/** The same for a message in pieces. */
int netio_buffered_publishv(struct netio_publish_socket *socket, netio_tag_t tag,
			    const struct iovec *iov, size_t count, int flags,
			    struct netio_subscription_cache *cache);

/** Let the pages of all subscribers leave. */
void netio_buffered_publish_flush(struct netio_publish_socket *socket);

/** Publishes each message at once, without copying it. */
struct netio_unbuffered_publish_socket {
	NETIO_PUBLISH_CALLBACKS(struct netio_subscriber *subscriber)
	/** After NETIO_STATUS_AGAIN or NETIO_STATUS_PARTIAL, once; as there. */
	void (*cb_buffers_available)(struct netio_unbuffered_publish_socket *socket);
	/** What was published with that key is not needed any more; once for each message that was
	 * OK in the end, or given up, in any order. status: 0 it went to all; -ECANCELED it was
	 * given up; -ETIMEDOUT: a provider did not give it back, and may read it for good; another
	 * -errno: the connection of a subscriber ended, and all others have it. */
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

/** Publish a message without copying it: it must stay as it is until cb_msg_published gives *key.
 * (Subscribers that want it buffered get a copy.) *key is only read, and may be reused on return,
 * but with REENTRY it must be the same.
 * Return: NETIO_STATUS_OK each subscriber's transport has it, or will have;
 * NETIO_STATUS_AGAIN nobody had room, and nothing was taken: there is no callback for it, and
 * NETIO_REENTRY makes no difference the next time;
 * NETIO_STATUS_PARTIAL some had: the message must stay, and be published again with NETIO_REENTRY,
 * tag and key as before, until it is not PARTIAL any more, or given up: it goes to those that have
 * missed it and are still there. In both cases after cb_buffers_available;
 * NETIO_STATUS_TOO_BIG as netio_buffered_publish; NETIO_STATUS_NO_SUBSCRIBERS; -EINVAL; -EALREADY
 * it is PARTIAL, and NETIO_REENTRY is missing; -ENOMEM: nobody has it. */
int netio_unbuffered_publishv(struct netio_unbuffered_publish_socket *socket, netio_tag_t tag,
			      struct iovec *iov, size_t count, uint64_t *key, int flags,
			      struct netio_subscription_cache *cache);

/** Give up a message that was PARTIAL: those that have missed it never get it, and cb_msg_published
 * follows, with -ECANCELED, when the others' transports have let go of it. Return: 0; -ENOENT. */
int netio_unbuffered_publish_give_up(struct netio_unbuffered_publish_socket *socket,
				     netio_tag_t tag, uint64_t key);

/** The same with a header of usr_size bytes, 0 to 8, before the message: the first ones of usr as
 * it lies in memory. It is copied; subscribers see it as the beginning of the message. */
int netio_unbuffered_publishv_usr(struct netio_unbuffered_publish_socket *socket, netio_tag_t tag,
				  struct iovec *iov, size_t count, uint64_t *key, int flags,
				  struct netio_subscription_cache *cache, uint64_t usr,
				  uint8_t usr_size);

struct netio_publish_stats {
	uint64_t messages;       /**< published: OK, or with some subscribers that missed them */
	uint64_t copies;         /**< taken for subscribers, of all messages; those that are dropped
				      as old, conflated, disconnected or lost later among them */
	uint64_t pages;          /**< that left */
	uint64_t again;          /**< AGAIN and PARTIAL */
	uint64_t no_subscribers; /**< messages that nobody wanted */
	uint64_t too_big;        /**< copies that subscribers missed, as they accept none so long */
	uint64_t given_up;       /**< copies that subscribers missed, as the message was not
				      published again, or there was no memory */
	uint64_t lost;           /**< copies in pages that were not sent when a connection ended */
	uint64_t dropped_new, dropped_old, conflated; /**< copies that were, by policy */
	uint64_t disconnected; /**< copies that were, with their subscribers */
	uint64_t requests;     /**< to subscribe and unsubscribe */
	uint64_t refused;      /**< of these */
	uint32_t subscribers, subscriptions;
	uint32_t pages_under_way; /**< of all subscribers: begun, waiting, or with a transport */
};

void netio_publish_stats(const struct netio_publish_socket *socket,
			 struct netio_publish_stats *stats_out);
void netio_unbuffered_publish_stats(const struct netio_unbuffered_publish_socket *socket,
				    struct netio_publish_stats *stats_out);

/** 0 or NULL: the default. */
struct netio_subscribe_attr {
	struct netio_connect_attr
		connect;       /**< message_max_bytes: longest message, default 16 MiB */
	uint32_t buffer_bytes; /**< as in netio_listen_attr, of each publisher */
	uint32_t buffer_count; /**< as there */
};

/** One publisher of a subscribe socket: from the first subscription to it until it has none, and
 * cb_connection_closed returned. */
struct netio_publisher {
	struct netio_subscribe_socket *subscribe_socket;
	uint64_t id;          /**< counts up from 1; netio_msg.source of what comes from it */
	const char *address;  /**< "host:port", as the user gave it */
	const char *provider; /**< as netio_recv_socket.provider; "" while it is not connected */
	void *data;           /**< the user's */
};

/** Messages that a publisher did not send. They are numbered from 1 with each connection, those
 * that come and those that do not, in the order in which they would have come; of conflated ones
 * only how many they are has a meaning. */
struct netio_gap {
	uint64_t first, last;
	uint32_t reasons; /**< NETIO_GAP_BIT of each reason: gaps that meet become one */
};

struct netio_subscribe_socket {
	/* What was subscribed to is asked for anew with each connection. */
	NETIO_CONNECT_CALLBACKS(struct netio_publisher *publisher)
	/** The publisher has it: what it publishes from now on comes. Messages may come before
	 * this, from when it took the subscription. */
	void (*cb_subscribed)(struct netio_publisher *publisher,
			      const struct netio_subscription *subscription);
	/** It does not take it, which ends the subscription; why: for people. */
	void (*cb_subscription_refused)(struct netio_publisher *publisher,
					const struct netio_subscription *subscription,
					const char *why);
	/** The connection ended, which cb_connection_closed tells behind it: messages are missed
	 * until cb_subscription_resumed. */
	void (*cb_subscription_lost)(struct netio_publisher *publisher,
				     const struct netio_subscription *subscription,
				     const char *why);
	/** As cb_subscribed, for one that was lost. */
	void (*cb_subscription_resumed)(struct netio_publisher *publisher,
					const struct netio_subscription *subscription);
	/** After netio_unsubscribe: no message comes for it any more. */
	void (*cb_unsubscribed)(struct netio_publisher *publisher,
				const struct netio_subscription *subscription);
	/** Messages are missed, between those that came before and those that come now. */
	void (*cb_gap)(struct netio_publisher *publisher, const struct netio_gap *gap);
	/** A message; valid until it returns, unless it is kept (netio_msg_keep). */
	void (*cb_msg_received)(struct netio_subscribe_socket *socket, const struct netio_msg *msg);
	void *data;                        /**< the user's */
	struct netio_subscribe_core *core; /**< private */
};

/** As netio_send_socket_init. */
int netio_subscribe_socket_init(struct netio_eventloop *evloop,
				struct netio_subscribe_socket *socket,
				const struct netio_subscribe_attr *attr);

struct netio_subscribe_stats {
	uint64_t messages; /**< that came */
	uint64_t gaps;
	uint64_t missed[NETIO_GAP_REASON_COUNT]; /**< messages in gaps, by enum netio_gap_reason; of
						      one with several, by its first */
};

void netio_subscribe_stats(const struct netio_subscribe_socket *socket,
			   struct netio_subscribe_stats *stats_out);

/** No callback comes any more. Messages that were kept stay. Accepts a socket that is zeroed. */
void netio_subscribe_socket_fini(struct netio_subscribe_socket *socket);

/** Subscribe to a tag of the publisher at that address, which is connected to with the first
 * subscription. Returns at once; cb_subscribed or cb_subscription_refused follows, or, while there
 * is no connection, cb_connection_refused for each attempt. Publishers that are named alike share a
 * connection. Return: 0; -EEXIST it is subscribed to, with whatever delivery
 * and policy; -EINVAL; -ENOMEM; or as netio_connect. Of a publisher whose connection is not tried
 * again (reconnect_min_ns), what is subscribed to may be subscribed to again: that connects anew.
 */
int netio_subscribe(struct netio_subscribe_socket *socket, const char *host, unsigned port,
		    netio_tag_t tag);

/** The same for anything. */
int netio_subscribe_to(struct netio_subscribe_socket *socket, const char *host, unsigned port,
		       const struct netio_subscription *subscription);

/** End a subscription: cb_unsubscribed follows. With the last one of a publisher its connection is
 * closed. Return: 0; -ENOENT there is no such; -EINVAL. */
int netio_unsubscribe(struct netio_subscribe_socket *socket, const char *host, unsigned port,
		      netio_tag_t tag);
int netio_unsubscribe_from(struct netio_subscribe_socket *socket, const char *host, unsigned port,
			   const struct netio_subscription *subscription);

PLX_END_DECLS

#endif
