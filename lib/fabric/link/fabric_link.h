/* SPDX-License-Identifier: BSD-3-Clause */
/* Links: an endpoint on a set, and the protocol on it.
 *
 *   link.c          memory and attributes
 *   connect.c       which addresses and providers to try
 *   handshake.c     HELLO: how a link opens, and how it is refused
 *   frame.c         encode and decode frames (frame.h)
 *   send.c          send by copy (hot path)
 *   send_buf.c      send by reference (hot path)
 *   tx.c            what all sends share (hot path; tx.h)
 *   control.c       send control frames
 *   receive.c       received frames (hot path; receive.h)
 *   receive_slow.c  received frames that are not a whole message
 *   assembly.c      messages in several frames
 *   arrival.c       frames that are not complete
 *   partial.c       their memory: which address holds how much, which messages wait for more
 *   schedule.c      per-turn work of links
 *   query.c         getters
 *   close.c         how a link ends
 *   memory.c        receive windows, buffers for copies, receive pools of ended links
 *   release.c       free long buffers in slices
 */
#ifndef FABRIC_LINK_H
#define FABRIC_LINK_H

#include "fabric_lcore.h"
#include "fabric_provider.h"
#include "frame.h"
#include "owner.h"
#include "plx_arrival.h"

#include <assert.h>
#include <stdalign.h>
#include <stddef.h>

#define LINK_RX_BUF_BYTES_DEFAULT 4096
#define LINK_RX_BUF_BYTES_MIN     256
#define LINK_RX_BUF_BYTES_MAX     (16u << 20)
#define LINK_RX_BUF_COUNT_DEFAULT 6
#define LINK_RX_BUF_COUNT_MIN     2
#define LINK_RX_BUF_COUNT_MAX     200
#define LINK_RX_CONTROL           2 /* receives reserved for control frames; */
#define LINK_RX_CONTROL_ALL       6 /* instead, if each frame needs one: see control.c; */
#define LINK_RX_CONTROL_DIRECT    2 /* more, with direct data placement */
#define LINK_RX_CONTROL_MAX       (LINK_RX_CONTROL_ALL + LINK_RX_CONTROL_DIRECT)
#define LINK_MESSAGE_MAX_DEFAULT  (UINT64_C(16) << 20)
#define LINK_MESSAGE_MAX_LIMIT    ((UINT64_C(1) << 30) - 1)
#define LINK_TX_OPS               32 /* operations in flight per link, the local window */
#define LINK_TX_CONTROL           4  /* of these, reserved for control frames */
#define LINK_IOV_MAX              4
#define LINK_WINDOW_FRAMES_MAX    65536
#define LINK_WINDOW_BYTES_MAX     (UINT32_C(1) << 30)

/* Payloads up to this are copied with their header to the stack and injected. */
#define INJECT_COPY_MAX 496

/* What a header of a protocol on top may have in addition to PLX_SEND_COPY_MAX. */
#define COPY_HEADER_MAX 64

/* How long a closed link waits for the peer to shut the connection down. */
#define LINGER_NS (500 * PLX_NS_PER_MS)

struct ticket;
struct plan;

enum op_kind { OP_RECV, OP_SEND, OP_GET, OP_PUT /* of the peer */ };

struct plx_op {
	struct fi_context context; /* first: a completion's op_context is its op */
	struct plx_link *link;
	struct plx_buf *buf;
	struct plx_op *next;     /* in the link's free list */
	struct plx_buf *bounced; /* sent instead of buf, if the provider needs registered memory */
	plx_link_sent_fn sent;   /* called after the last frame of a message sent by reference */
	void *sent_arg;
	uint8_t kind;
	union {
		uint8_t header[FRAME_HEADER_BYTES + FRAME_TOTAL_BYTES];
		struct op_sink sink; /* if OP_GET */
		size_t early_bytes;  /* in the link's list `early` */
	};
};

enum link_state {
	LINK_CONNECTING, /* fi_connect or fi_accept called, or about to be */
	LINK_HELLO,      /* connected; the rest of the peer's HELLO may follow */
	LINK_OPEN,
	LINK_CLOSING,  /* no new sends; FIN and its acknowledgement are in flight */
	LINK_LINGER,   /* closed for the user; waits for the peer to shut the connection down */
	LINK_REFUSING, /* the same, with the reason for the peer under way */
	LINK_DEAD,     /* endpoint closed; waits for its operations */
};

/* Work that the loop has to do for a link, in three groups: control frames to send, by type, */
enum want_control {
	WANT_HELLO = 1 << FRAME_HELLO,
	WANT_CREDIT = 1 << FRAME_CREDIT,
	WANT_FIN = 1 << FRAME_FIN,
	WANT_FIN_ACK = 1 << FRAME_FIN_ACK,
	WANT_REVOKE = 1 << FRAME_REVOKE,   /* this side revoked grants; the peer must acknowledge */
	WANT_REVOKED = 1 << FRAME_REVOKED, /* the peer revoked grants */
	WANT_CONTROL = WANT_HELLO | WANT_CREDIT | WANT_FIN | WANT_FIN_ACK | WANT_REVOKE |
		       WANT_REVOKED,
};

/* other work, */
enum want_work {
	WANT_TX = 1 << 16,      /* a message is partly sent */
	WANT_REFILL = 1 << 17,  /* the user has receive buffers */
	WANT_DESTROY = 1 << 18, /* the link is dead */
	WANT_AGREED = 1 << 19,  /* both sides have agreed to close */
	WANT_RELEASE = 1 << 20, /* memory of revoked grants can be released */
	WANT_EARLY = 1 << 21,   /* a C++ callback threw: early frames are left */
	WANT_EVERY_TURN = WANT_CONTROL | WANT_TX | WANT_REFILL | WANT_DESTROY,
};

/* and callbacks. */
enum want_callback {
	WANT_ON_WRITABLE = 1 << 24, /* the user saw -EAGAIN */
	WANT_ON_SUSPECT = 1 << 25,  /* the peer became suspect, or is no longer */
	WANT_ON_CREDIT = 1 << 26,
	WANT_GRANTS = 1 << 27, /* set while open: each grant makes on_credit due */
};

/* A message sent by reference that is partly sent. */
struct tx_message {
	struct plx_buf *bounced; /* see struct plx_op */
	struct plx_buf *head;    /* NULL: none */
	struct plx_buf *segment;
	uint32_t offset; /* in segment */
	uint64_t left, total;
	plx_link_sent_fn sent;
	void *sent_arg;
	bool written; /* see link_send_written */
};

/* How fast a message comes. */
struct pace {
	uint64_t counted_ns; /* time in which the peer could send */
	uint32_t from_bytes; /* that had come before */
};

/* The frame that arrives. Of a link that was never open: zeroed. */
struct arrival {
	const struct plx_arrival_ops *ops; /* NULL: the provider does not tell */
	uint64_t heard_bytes;              /* plx_arrival.bytes when liveness.c asked last */
	uint64_t begin;                    /* plx_arrival.begin as of the last look */
	uint64_t looked_ns;
	struct pace pace;
};

/* A message that arrives in several frames and is assembled in heap memory. Zeroed: none. The bytes
 * of all assemblies of an lcore are bounded by plx_fabric_conf.partial_bytes: see partial.c. A
 * message that is too slow ends its link. */
struct assembly {
	struct plx_buf *buf;   /* the bytes so far, or an empty buffer for the next message */
	uint64_t total;        /* length of the current message; 0: none */
	struct plx_link *link; /* NULL: in no list, not charged */
	struct holder *holder; /* the peer's address */
	uint64_t looked_ns;    /* last look at it; or since when the buffer is idle */
	struct pace pace;
	uint32_t charged;  /* bytes */
	uint32_t withheld; /* frames to grant again once there is room; 0: does not wait */
	bool begun;        /* in the list `begun`, else `idle` */
	bool continued;    /* after it waited */
	uint8_t rank;      /* among those that wait */
	TAILQ_ENTRY(assembly) of_home, of_waiters;
	LIST_ENTRY(assembly) of_holder;
};

/* Three cache lines are hot. A message sent inline touches lines 0 and 2; a received message, or a
 * turn that serves the link, touches lines 0, 1 and 2. A message sent by reference also touches
 * lines 4 and 5. */
struct plx_link {
	/* Line 0: each message, sent or received. */
	alignas(PLX_CACHE_LINE) uint8_t kind; /* first: see event_source() */
	uint8_t state;
	bool scheduled; /* in the lcore's list of links to serve */
	bool settling;  /* see close_settle */
	uint32_t want;  /* bits of the enums above */
	struct fid_ep *ep;
	struct plx_set *set;
	const struct plx_fabric_driver *driver; /* the set's */
	struct presence *presence; /* never NULL; that without a peer if the link is not open */
	/* Frame counts are cumulative, mod 2^32, as on the wire. */
	uint32_t tx_frames, tx_frames_granted;
	uint32_t rx_frames_granted,
		rx_frames_advertised; /* the current grant; the one last sent to the peer */
	uint32_t tx_inline_end;       /* shorter messages may be sent inline; 0: none */
	uint32_t injects_left;        /* until a frame must request its completion */

	/* Line 1: each message received, and each turn that serves the link. */
	uint32_t rx_frames;
	uint32_t rx_whole_end; /* shorter whole messages take the fast path; 0: none */
	uint32_t rx_buf_bytes;
	uint32_t rx_posted, rx_kept; /* buffers that the provider has, and that the user has */
	uint32_t tx_inflight;
	struct plx_fabric_lcore *home; /* the set's */
	void (*on_message)(struct plx_link *link, struct plx_buf *message, void *user);
	void *user;
	struct plx_link *next_scheduled;
	struct plx_op *rx_idle; /* receives without a buffer */

	/* Line 2: counters of each message. */
	struct plx_link_stats stats;

	/* Lines 4 and 5: messages sent by reference. */
	struct plx_op *tx_free;
	uint32_t tx_free_count;
	uint32_t peer_frame_max; /* max. payload bytes of a frame */
	uint64_t peer_message_max;
	uint32_t inject_max; /* frames up to this are injected */
	uint32_t iov_max;
	uint32_t ops_zone;
	struct tx_message tx_current;

	/* Cold from here on: state. */
	bool was_open;                 /* on_close ran */
	bool in_hello, ended_in_hello; /* on_hello runs, and the user has closed the link in it */
	bool close_due; /* on_open ran, or plx_link_connect returned the link: on_close is due */
	bool connector;
	bool is_iwarp; /* see struct plx_fabric_driver */
	bool shut_down, ep_closed;
	bool disconnected; /* connection lost while the link closes */
	bool has_rest;     /* its receiver has a rest, which on_close follows: turn_wait */
	bool suspect_reported;
	bool fin_sent, fin_acked, peer_fin, fin_carried_ack, peer_fin_carried_ack;
	bool tx_cut;                  /* the link ended inside a message */
	LIST_ENTRY(plx_link) of_home; /* le_prev NULL: in no list */
	const struct plx_link_events *events;
	struct plx_timer timer;       /* connect, HELLO, close or linger: one at a time */
	struct listener_shared *from; /* counters of the listener that accepted it */
	struct ticket *ticket;        /* that listener's admission */
	struct plan *plan;            /* other providers and addresses to try; NULL: none */
	uint64_t ended_ns;
	uint64_t busy_ns; /* when the peer, which had no room, has some again; 0: it did not say */

	/* Memory. */
	struct plx_op *ops; /* all of them, receives first */
	struct plx_pool *rx_pool;
	struct plx_op *early;     /* received before it was connected, oldest first */
	struct plx_buf **rx_long; /* long messages that the user has; room for rx_buf_count */
	uint32_t rx_long_kept;
	uint32_t rx_buf_count;
	uint32_t rx_control; /* additional buffers for control frames */
	uint32_t frame_max;  /* max. frame bytes of the provider */
	uint64_t message_max;
	struct assembly partial;
	struct arrival arrival;
	struct direct *direct; /* NULL: no direct data placement */

	/* Control frames and heartbeats. */
	uint32_t tx_window;       /* frames in the peer's first grant */
	uint32_t tx_fin_frames;   /* frames granted when the peer sent FIN */
	uint64_t rx_when_control; /* frames received when this side's last control frame left */
	struct liveness live;
	LIST_ENTRY(plx_link) of_group; /* in presence->links */

	/* Attributes and texts. */
	struct plx_link_attr attr;
	struct frame_hello hello; /* the peer's */
	enum plx_link_reason reason;
	const char *choice;  /* why that provider; constant text */
	const char *refusal; /* why this side refuses it; NULL: its HELLO shows that */
	char text[192];      /* why it ended */
	char peer[PLX_ADDRESS_MAX];
	pid_t peer_pid; /* this and the next: once it is open */
	char peer_program[PLX_PROGRAM_BYTES];
};

#define LINK_LINE(field) (offsetof(struct plx_link, field) / PLX_CACHE_LINE)
static_assert(LINK_LINE(injects_left) == 0 && LINK_LINE(rx_frames) == 1, "each message: line 0");
static_assert(LINK_LINE(rx_idle) == 1, "received, and looked at: line 1");
static_assert(LINK_LINE(stats) == 2 && LINK_LINE(stats.again) == 2, "counted: line 2");
static_assert(LINK_LINE(tx_free) == 4 && LINK_LINE(tx_current.sent_arg) == 5, "by reference");

/* link.c */
uint32_t link_control_receives(const struct plx_fabric_driver *driver, const struct fi_info *info,
			       const struct plx_link_attr *attr);

/* The longest frame that it receives. */
static inline uint32_t link_frame_bytes(const struct plx_link *link)
{
	return FRAME_HEADER_BYTES + link->rx_buf_bytes;
}

static inline uint32_t link_receives(const struct plx_link *link)
{
	return link->rx_buf_count + link->rx_control;
}

/* Call before it is open. */
void link_set_events(struct plx_link *link, const struct plx_link_events *events);
/* A link without an endpoint, for info. attr was checked. Return: 0; -errno with a text. */
int link_create(struct plx_set *set, const struct plx_link_attr *attr, const struct fi_info *info,
		struct plx_link **link_out);
/* Open its endpoint and post receives. Return: 0; -errno with a text: the caller closes it. */
int link_start(struct plx_link *link, struct fi_info *info);
/* Every change of its state. */
void link_go(struct plx_link *link, enum link_state to);
int link_move(struct plx_link *link, struct plx_set *set, struct fi_info *info);
void link_destroy(struct plx_link *link);
void link_abandon(struct plx_link *link);
/* The error of calls on a link that is not open. Return: -ENOTCONN; -EPERM in the child of a
 * fork. */
int link_fail_closed(const struct plx_link *link);

/* handshake.c */
/* Read this process's name and id. */
void handshake_init(void);
/* Whether private data has both HELLOs. */
bool handshake_is_private(const struct plx_link *link);
/* Write this side's HELLO, as private data: first 0, or as a frame: HELLO_REFUSED. out has room for
 * HELLO_BYTES_MAX. Return: its length. */
uint32_t handshake_write(const struct plx_link *link, uint8_t first, uint8_t *out);
/* The peer's HELLO, or its opening. whole: the rest must be there. Return: false: this side refuses
 * it; the caller rejects a link without an endpoint. */
bool handshake_hear(struct plx_link *link, const uint8_t *in, size_t length, bool whole);
/* Private data of FI_CONNECTED; or fi_accept has succeeded, and both HELLOs are private data. */
void handshake_connected(struct plx_link *link, const uint8_t *in, size_t length);
/* Private data of a rejection. Return: whether it says why: then the link has ended. */
bool handshake_rejected(struct plx_link *link, const uint8_t *in, size_t length);
void handshake_on_hello(struct plx_link *link, const uint8_t *payload, uint32_t length);
void handshake_try_open(struct plx_link *link);

/* memory.c */
int window_init(uint64_t receive_bytes);
void window_take(struct plx_link *link);
void window_give(struct plx_link *link);

/* A buffer for a copy longer than TX_BUF_BYTES; the caller gets a reference. in_zone:
 * in memory that can be registered. Return: NULL with an error text. */
struct plx_buf *link_buf_get(struct plx_fabric_lcore *home, uint32_t length, bool in_zone);
void link_buf_free_all(struct plx_fabric_lcore *home);
int kept_pool_add(struct plx_fabric_lcore *home, struct plx_pool *pool);
void kept_pool_reap(struct plx_fabric_lcore *home);

/* release.c */
void release_home_init(struct plx_fabric_lcore *home);
/* Whether memory of a long buffer is freed later; else plx_buf_unref frees it at once. */
bool release_has_room(const struct plx_fabric_lcore *home);
void release_all(struct plx_fabric_lcore *home);

/* schedule.c */
void link_schedule(struct plx_link *link, uint32_t want);
int link_run_scheduled(struct plx_fabric_lcore *home);

/* connect.c */
bool connect_next(struct plx_link *link);

/* receive.c */
int receive_post_all(struct plx_link *link);
void receive_set_whole_end(struct plx_link *link);
void receive_done(struct plx_op *op, size_t length);
void receive_refill(struct plx_link *link);
void receive_take_back(struct plx_op *op);

/* arrival.c */
void arrival_home_init(struct plx_fabric_lcore *home);
void arrival_home_fini(struct plx_fabric_lcore *home);
/* The link opens, and leaves the lcore's list. */
void arrival_begin(struct plx_link *link);
void arrival_end(const struct plx_link *link);
/* Whether the provider tells. */
bool arrival_is_told(const struct plx_link *link);
/* If it does: whether an incomplete frame has more bytes than at the last call, or has begun since;
 * and whether the many bytes that this side has sent may delay the peer's frames. */
bool arrival_has_moved(struct plx_link *link);
bool arrival_is_delayed(const struct plx_link *link);
/* Bytes of the incomplete frame; 0: none, or unknown. *is_held_out: see plx_arrival.h. */
uint32_t arrival_bytes(const struct plx_link *link, bool *is_held_out);

/* assembly.c: see pace_is_slow. PACE_TEXT is followed by PACE_NUMBERS. */
#define PACE_NS    (10 * PLX_NS_PER_S)
#define PACE_BYTES (10 * 4096)
#define PACE_TEXT  "in the last %d s less than %d KiB/s"
#define PACE_NUMBERS \
	(int)(PACE_NS / PLX_NS_PER_S), (int)(PACE_BYTES / (PACE_NS / PLX_NS_PER_S) >> 10)
bool pace_is_slow(struct pace *pace, uint64_t look_ns, uint64_t passed_ns, uint32_t bytes);
void assembly_home_init(struct plx_fabric_lcore *home);
void assembly_home_fini(struct plx_fabric_lcore *home);

/* Start a message of total bytes, whose first frame has first_bytes. Return: whether the link
 * continues. */
bool assembly_begin(struct plx_link *link, uint64_t total, uint32_t first_bytes);

/* Append a frame's payload. Return: whether to grant its credit again: the link continues, and the
 * message need not wait. */
bool assembly_add(struct plx_link *link, const void *data, uint32_t length);

/* The message was delivered: a user that keeps it holds a reference to buf. An unshared buffer is
 * reused, or freed after 0.1 s. */
void assembly_done(struct assembly *assembly);

/* The link ends: its message is no longer charged. */
void assembly_forget(struct assembly *assembly);

/* Discard the bytes so far. Accepts a zeroed assembly. */
void assembly_drop(struct assembly *assembly);

/* partial.c */
int partial_init(uint64_t partial_bytes);
void partial_home_init(struct plx_fabric_lcore *home);
bool partial_is_full(const struct plx_fabric_lcore *home);
/* Charge the assembly to its peer's address. Return: 0; -ENOMEM. */
int partial_join(struct assembly *assembly, struct plx_link *link);
void partial_leave(struct assembly *assembly);
/* Messages that wait may continue. */
void partial_schedule_room(struct plx_fabric_lcore *home);
void partial_charge(struct assembly *assembly, uint32_t bytes);
/* Return: true: the newest frame will be granted again later. */
bool partial_must_wait(struct assembly *assembly);
/* The message no longer waits. Return: how many frames to grant again. */
uint32_t partial_stop_waiting(struct assembly *assembly);

/* receive_slow.c */
void receive_slow_put(struct plx_link *link, struct plx_op *op, uint64_t value);
void receive_early(struct plx_link *link);
void receive_cut(struct plx_op *op);

/* tx.c; see also tx.h */
void tx_done(struct plx_op *op, int status);
void tx_fail_op(struct plx_op *op);
bool tx_has_room(const struct plx_link *link);

/* control.c */
void control_send(struct plx_link *link, uint32_t want);
int control_send_heartbeat(struct plx_link *link);
bool control_can_wait(const struct plx_link *link);

/* send_buf.c */
struct plx_buf *send_buf_bounce(struct plx_link *link, const struct plx_buf *buf, uint64_t total);
void send_buf_continue(struct plx_link *link);
void send_buf_fail(struct plx_link *link, bool keeps);

/* close.c */
/* End the link now. The first reason counts. The loop runs its callbacks later, never this call.
 * Return: false, for callers that return whether the link continues. */
bool close_now(struct plx_link *link, enum plx_link_reason reason, const char *format, ...)
	PLX_PRINTF(3, 4);
void close_refused(struct plx_link *link);
/* The link was refused; an accepted one was disconnected. */
void close_not_connected(struct plx_link *link);
void close_on_timer(struct plx_timer *timer, void *arg);
void close_notify(struct plx_link *link);
void close_agreed(struct plx_link *link);
void close_on_fin(struct plx_link *link, bool carries_ack);
void close_on_fin_ack(struct plx_link *link);
bool close_settle(struct plx_link *link);
void close_settled(struct plx_link *link);
/* The connection has ended. prov_errno: as in plx_fabric_driver.failure. */
void close_on_shutdown(struct plx_link *link, int prov_errno);
void close_step(struct plx_link *link);
void close_begin_reap(struct plx_link *link);
bool close_reap(struct plx_link *link, uint64_t now_ns);

/* liveness.c: called for each frame. Relaxed: V1 orders it when needed. */
static inline void liveness_heard(const struct plx_link *link, uint64_t turn_ns)
{
	atomic_store_explicit(&link->presence->heard_ns, turn_ns, memory_order_relaxed);
}

static inline void liveness_sent(const struct plx_link *link)
{
	struct presence *presence = link->presence;

	presence->sent_ns = presence->home->turn_ns;
}

#endif
