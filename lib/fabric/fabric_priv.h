/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of lib/fabric share. Everything here is owned by one lcore, except where said.
 *
 *   plx_fabric_lcore   one per lcore that uses links: its poller, sets and links
 *   plx_set            the libfabric objects of one (lcore, provider)
 *   plx_listener       a passive endpoint on a set
 *   plx_link           an endpoint on a set
 *   plx_op             one operation that the provider has and will complete
 */
#ifndef PLX_FABRIC_PRIV_H
#define PLX_FABRIC_PRIV_H

#include "assembly.h"
#include "direct.h"
#include "driver.h"
#include "fabric_address.h"
#include "frame.h"
#include "liveness.h"
#include "owner.h"
#include "plx_lcore.h"
#include "plx_mem.h"

#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/queue.h>
#include <sys/socket.h>

#define FABRIC_API_VERSION FI_VERSION(1, 17)

/* Completions read at once; 32 to 128 cost least on tcp, see doc/design/links.md. */
#define CQ_BURST 64

/* A set without a completion for this long, and with none due, is polled every COLD_TURNS-th turn
 * only. */
#define COLD_AFTER_NS             PLX_NS_PER_MS
#define COLD_TURNS                16

#define LINK_RX_BUF_BYTES_DEFAULT 4096
#define LINK_RX_BUF_BYTES_MIN     256
#define LINK_RX_BUF_BYTES_MAX     (16u << 20)
#define LINK_RX_BUF_COUNT_DEFAULT 6
#define LINK_RX_BUF_COUNT_MIN     2
#define LINK_RX_BUF_COUNT_MAX     200
#define LINK_RX_CONTROL           2 /* receive buffers kept for control frames, */
#define LINK_RX_CONTROL_ALL       6 /* where those may not wait: one for each that can be under way, */
#define LINK_RX_CONTROL_DIRECT    2 /* and with direct data placement. See control.c */
#define LINK_RX_CONTROL_MAX       (LINK_RX_CONTROL_ALL + LINK_RX_CONTROL_DIRECT)
#define LINK_MESSAGE_MAX_DEFAULT  (UINT64_C(16) << 20)
#define LINK_MESSAGE_MAX_LIMIT    ((UINT64_C(1) << 30) - 1)
#define LINK_TX_OPS               32 /* operations in flight per link, the local window */
#define LINK_TX_CONTROL           4  /* and those that only control frames may take */
#define LINK_IOV_MAX              4
#define LINK_WINDOW_FRAMES_MAX    65536
#define LINK_WINDOW_BYTES_MAX     (UINT32_C(1) << 30)

#define TX_BUF_BYTES              4096 /* of the lcore's own pool, for copies and control frames */
#define SPARE_COUNT               16   /* longer buffers that an lcore keeps for copies, and */
#define SPARE_BYTES_MAX           ((UINT32_C(8) << 20) + SPARE_COUNT * 4096) /* how long together */
#define TX_BUF_COUNT              512

/* Payloads up to this are put behind their header on the stack and injected. */
#define INJECT_COPY_MAX 496

/* Of a turn, for connections that come, and for links that go: the others wait for the next one. */
#define TURN_BUDGET_NS (100 * PLX_NS_PER_US)

#define LINGER_NS      (500 * PLX_NS_PER_MS)

struct plx_set;
struct plx_fabric_lcore;
struct request;
struct ticket;
struct plan;

enum op_kind { OP_RECV, OP_SEND, OP_GET };

struct plx_op {
	struct fi_context context; /* first: a completion's op_context is its op */
	struct plx_link *link;
	struct plx_buf *buf;
	struct plx_op *next;     /* in the link's free list */
	struct plx_buf *bounced; /* sent instead of buf, where the provider needs other memory */
	plx_link_sent_fn sent;   /* with the last frame of a message sent by reference */
	void *sent_arg;
	uint8_t kind;
	union {
		uint8_t header[FRAME_HEADER_BYTES + FRAME_TOTAL_BYTES];
		struct op_sink sink; /* of a get */
	};
};

/* The source of an event of an EQ: the context of the fid that it names. */
enum fid_kind { FID_LISTENER = 0x4c, FID_LINK = 0x6c };

enum link_state {
	LINK_CONNECTING, /* fi_connect or fi_accept called */
	LINK_HELLO,      /* connected; HELLOs are awaited: the peer's, then the answer to it */
	LINK_OPEN,
	LINK_CLOSING, /* no new sends; FIN and its answer are under way */
	LINK_LINGER,  /* closed for the user; waits for the peer to take the connection down */
	LINK_DEAD,    /* the endpoint is being closed; waits for its operations */
};

/* What the loop has to do for a link, in three groups: control frames that have to be sent, */
enum want_control {
	WANT_HELLO = 1 << 0, /* or REFUSE */
	WANT_CREDIT = 1 << 1,
	WANT_FIN = 1 << 2,
	WANT_FIN_ACK = 1 << 3,
	WANT_REVOKE = 1 << 4,  /* grants were taken back, which the peer must answer */
	WANT_REVOKED = 1 << 5, /* the peer has taken some back */
	WANT_CONTROL = WANT_HELLO | WANT_CREDIT | WANT_FIN | WANT_FIN_ACK | WANT_REVOKE |
		       WANT_REVOKED,
};

/* work, */
enum want_work {
	WANT_TX = 1 << 8,         /* a message is partly sent */
	WANT_REFILL = 1 << 9,     /* the user has receive buffers */
	WANT_DESTROY = 1 << 10,   /* the link is dead */
	WANT_AGREED = 1 << 11,    /* both sides have agreed to close */
	WANT_RELEASE = 1 << 12,   /* memory of revoked grants can go */
	WANT_MORE_TIME = 1 << 13, /* FIN waits for credit: a grant extends the time to close */
	WANT_EVERY_TURN = WANT_CONTROL | WANT_TX | WANT_REFILL | WANT_DESTROY,
};

/* and callbacks. */
enum want_callback {
	WANT_ON_WRITABLE = 1 << 16, /* the user saw -EAGAIN */
	WANT_ON_SUSPECT = 1 << 17,  /* whether the peer is silent has changed */
	WANT_ON_CREDIT = 1 << 18,
	WANT_GRANTS = 1 << 19, /* while it is open: each grant makes on_credit due */
};

/* A message sent by reference that needs more frames than could be sent so far. */
struct tx_message {
	struct plx_buf *bounced; /* see struct plx_op */
	struct plx_buf *head;    /* NULL: none */
	struct plx_buf *segment;
	uint32_t offset; /* in segment */
	uint64_t left, total;
	plx_link_sent_fn sent;
	void *sent_arg;
};

/* Hot are three cache lines: a message that leaves with the call touches lines 0 and 2; one that
 * arrives, and a turn that looks at the link, lines 0, 1 and 2. A message that is sent by reference
 * needs lines 4 and 5 besides. */
struct plx_link {
	/* Line 0: each message, sent or received. */
	alignas(PLX_CACHE_LINE) uint8_t kind; /* first: see event_source() */
	uint8_t state;
	bool attended; /* in the lcore's list of links to look at */
	bool settles;  /* see close_settle */
	uint32_t want; /* bits of the enums above */
	struct fid_ep *ep;
	struct plx_set *set;
	const struct plx_fabric_driver *driver; /* the set's */
	struct presence *presence; /* never NULL; nobody's where the link is not open */
	/* Counts of frames are cumulative, mod 2^32, as on the wire. */
	uint32_t tx_frames, tx_frames_granted;
	uint32_t rx_frames_granted, rx_frames_told; /* allowed by now; as last told to the peer */
	uint32_t at_once_end;  /* shorter messages may leave with the call; 0: look why not */
	uint32_t injects_left; /* until a frame has to ask for its completion */

	/* Line 1: each message received, and the look of a turn. */
	uint32_t rx_frames;
	uint32_t rx_whole_end; /* whole messages below it are welcome; 0: look why not */
	uint32_t rx_buf_bytes;
	uint32_t rx_posted, rx_kept; /* buffers that the provider has, and that the user has */
	uint32_t tx_inflight;
	struct plx_fabric_lcore *home; /* the set's */
	void (*on_message)(struct plx_link *link, struct plx_buf *message, void *user);
	void *user;
	struct plx_link *next_attended;
	struct plx_op *rx_idle; /* those without a buffer */

	/* Line 2: each message counts here. */
	struct plx_link_stats stats;

	/* Lines 4 and 5: messages sent by reference. */
	struct plx_op *tx_free;
	uint32_t tx_free_count;
	uint32_t peer_frame_max; /* payload bytes that one frame may carry */
	uint64_t peer_message_max;
	uint32_t inject_max; /* frame bytes that are injected */
	uint32_t iov_max;
	uint32_t ops_zone;
	struct tx_message tx_current;

	/* Cold from here on. Its life. */
	bool told; /* on_open was called, or plx_link_connect returned it: on_close is due */
	bool connector;
	bool connected;      /* FI_CONNECTED was seen */
	bool needs_receives; /* see struct plx_fabric_driver */
	bool hello_received;
	bool is_judged; /* what the peer said in it */
	bool declined;  /* for that: see link_decline */
	bool shut_down, ep_closed;
	bool gone; /* the connection, while the link closes */
	bool told_suspect;
	bool fin_sent, fin_acked, peer_fin, fin_carried_ack, peer_fin_carried_ack;
	bool tx_cut; /* the link ended inside a message */
	int fd;      /* of an accepted connection, for the driver's `closing`; -1: not known */
	struct plx_link *next, **prev_next; /* in the lcore's list of all links */
	const struct plx_link_events *events;
	struct plx_timer timer;       /* connect, HELLO, close or linger: one at a time */
	struct listener_shared *from; /* counters of the listener that accepted it */
	struct ticket *ticket;        /* by which that took it */
	struct plan *plan;            /* where else it may be connected; NULL: nowhere */
	uint64_t close_began_ns, ended_ns;

	/* Its memory. */
	struct plx_op *ops; /* all of them, receives first */
	struct plx_pool *rx_pool;
	struct plx_buf **rx_long; /* long messages that the user has; room for rx_buf_count */
	uint32_t rx_long_kept;
	uint32_t rx_buf_count;
	uint32_t rx_control; /* buffers for control frames, besides */
	uint32_t frame_max;  /* frame bytes that the provider takes at all */
	uint64_t message_max;
	struct assembly partial;
	struct direct *direct; /* NULL: it has no direct data placement */

	/* Control frames and heartbeats. */
	uint32_t tx_window;       /* frames that were granted at first */
	uint32_t tx_fin_frames;   /* granted when the peer began to close */
	uint64_t rx_when_control; /* frames received when the last of this side's left */
	struct liveness live;
	struct plx_link *group_next, **group_prev_next; /* in presence->links */

	/* Attributes and texts. */
	struct plx_link_attr attr;
	uint32_t peer_features; /* of its HELLO, and its private data */
	uint32_t peer_hello_length;
	uint8_t peer_hello[HELLO_DATA_MAX];
	enum plx_link_reason reason;
	const char *choice;  /* why that provider; constant text */
	const char *refusal; /* what the peer is told of that; NULL: it is not refused */
	char text[192];      /* why it ended */
	char peer[PLX_ADDRESS_MAX];
};

#define LINK_LINE(field) (offsetof(struct plx_link, field) / PLX_CACHE_LINE)
static_assert(LINK_LINE(injects_left) == 0 && LINK_LINE(rx_frames) == 1, "each message: line 0");
static_assert(LINK_LINE(rx_idle) == 1, "received, and looked at: line 1");
static_assert(LINK_LINE(stats) == 2 && LINK_LINE(stats.again) == 2, "counted: line 2");
static_assert(LINK_LINE(tx_free) == 4 && LINK_LINE(tx_current.sent_arg) == 5, "by reference");

/* What ended a sleep, as one set sees it. */
enum set_woke { WOKE_NOT, WOKE_BY_IT, WOKE_AT_ONCE, WOKE_BY_TIME, WOKE_OTHERWISE };

struct plx_set {
	struct plx_set *next;
	struct plx_fabric_lcore *home;
	const struct plx_fabric_driver *driver;
	bool direct; /* it was opened for one link, which has direct data placement */
	struct plx_fabric_fids fids;
	uint32_t links, listeners, connecting;
	uint32_t op_count;    /* of all its links: no more completions can wait */
	uint32_t rx_count;    /* receives of all its links */
	uint32_t tx_inflight; /* of all its links */
	uint32_t eq_in_polls; /* that many polls from now the EQ is read */
	bool has_sent;        /* since the last poll, for which frames may wait: see flush */
	uint64_t last_work_ns;
	uint64_t emptied_ns; /* completions of all that had come until then were taken */
	uint64_t drain_turn, drain_end_ns; /* see cq_drain */
	uint64_t full_since_ns;            /* polls have given CQ_BURST since; how much that was */
	uint32_t full_count;
	enum set_woke woke;           /* sleep.c: how the last sleep ended, not judged yet */
	bool armed;                   /* the lcore sleeps on it */
	struct plx_link *only;        /* of a set with `direct`: its link */
	uint64_t distrusted_until_ns; /* until then its wait object is not believed; see sleep.c */
	uint64_t distrust_ns;         /* how long it was not the last time */
	uint32_t rescues;             /* in a row: there was work, and it did not wake the lcore */
	uint32_t
		spurious; /* in a row: it woke the lcore at once for nothing, and was still ready */
	bool in_doubt;    /* the last sleep ended at once for nothing */
	struct retired *retired; /* counted in listeners, too */
	struct plx_log_limit log_limit;
	uint32_t zones_registered; /* zones below this index were looked at */
	struct fid_mr *mr[PLX_ZONE_MAX];
	char provider[32]; /* libfabric's name */
	char device[64];   /* "": it is for all of them */
	char label[128];
};

struct plx_fabric_lcore {
	uint32_t id;
	bool draining; /* its links are being closed: no new ones */
	bool told_windows;
	uint64_t turn;
	uint64_t turn_ns;  /* the present turn's clock */
	uint64_t rx_bytes; /* of the receive buffers of its links */
	struct plx_set *sets;
	struct plx_link *links;
	struct plx_link *attended;
	struct plx_listener *listeners;
	struct request *given_up;   /* still in another lcore's lane: see handover.c */
	struct plx_buf *delivering; /* inside on_message: that message */
	struct plx_pool *tx_pool;
	struct plx_buf *spares[SPARE_COUNT];        /* of spare.c; NULL: no buffer */
	uint32_t spare_bytes;                       /* in all of them */
	LIST_HEAD(assemblies, assembly) assemblies; /* those that have a buffer */
	uint64_t assembly_bytes;                    /* that count, of all of them */
	struct plx_timer sweep;                     /* of those */
	struct plx_poller *poller;
	struct plx_pool *
		*orphans; /* receive pools of gone links whose buffers the user still has */
	uint32_t orphan_count, orphan_room, orphan_next;
	struct plx_lookup *looked_up; /* of lookup.c, and under its lock */
	struct plx_signal looked_up_signal;
	struct pulse pulse;
};

/* fabric.c */
extern struct plx_log_component fabric_log;
/* Opens it. what: the public function, for the error text. Return: NULL with that text. */
struct plx_fabric_lcore *fabric_here(const char *what);
int fabric_missing(void);

/* sleep.c */
int fabric_arm(void *arg, struct plx_sleep *sleep);
void fabric_woke(void *arg, const struct plx_sleep *sleep);
void fabric_judge(struct plx_set *set, int found);
void fabric_first_look(struct plx_set *set);

/* spare.c: a buffer for a copy that is longer than TX_BUF_BYTES, which the caller refers to;
 * in_zone: in memory that can be registered. Return: NULL with an error text. */
struct plx_buf *spare_get(struct plx_fabric_lcore *home, uint32_t length, bool in_zone);
void spare_free_all(struct plx_fabric_lcore *home);

/* orphan.c */
int orphan_adopt(struct plx_fabric_lcore *home, struct plx_pool *pool);
void orphan_reap(struct plx_fabric_lcore *home);
void orphan_reap_all(struct plx_fabric_lcore *home);

/* set.c */
struct plx_set *set_get(struct plx_fabric_lcore *home, const struct plx_fabric_driver *driver,
			const char *provider, const struct fi_info *info,
			const struct plx_link_attr *attr);
void set_close(struct plx_set *set);
void set_leave(struct plx_set *set);

void *set_find_desc(struct plx_set *set, uint32_t zone_index);

/* The descriptor that the provider wants for memory in that zone: NULL where it wants none, or
 * where the zone could not be registered. */
static inline void *set_desc(struct plx_set *set, uint32_t zone_index)
{
	return set->driver->needs_mr ? set_find_desc(set, zone_index) : NULL;
}

void set_register_new_zones(struct plx_set *set);
int set_need_zone(struct plx_set *set, uint32_t zone_index);
bool set_has_message(struct plx_set *set, const struct plx_buf *buf);

/* retire.c */
void retire_pep(struct plx_set *set, struct fid_pep *pep);
void retire_reap(struct plx_set *set, uint64_t now_ns);
void retire_reap_all(struct plx_set *set);

/* cq.c, eq.c, and cq_take of receive.c */
int cq_take(struct plx_set *set, const struct fi_cq_msg_entry *entries, ssize_t count);
int cq_read_errors(struct plx_set *set);

/* Take completions, at most CQ_BURST. Return: how many. */
static inline __attribute__((always_inline)) int cq_poll(struct plx_set *set)
{
	struct fi_cq_msg_entry entries[CQ_BURST];
	ssize_t count;

	if (plx_unlikely(set->direct))
		return direct_poll(set);
	count = fi_cq_read(set->fids.cq, entries, CQ_BURST);
	return plx_likely(count == -FI_EAGAIN) ? 0 : cq_take(set, entries, count);
}

int eq_poll(struct plx_set *set);
bool cq_drain(struct plx_set *set);

/* link.c */
int link_check_attr(const struct plx_link_attr *attr, struct plx_link_attr *out);
uint32_t link_control_receives(const struct plx_fabric_driver *driver, const struct fi_info *info,
			       const struct plx_link_attr *attr);

/* Longest frame that it receives. */
static inline uint32_t link_frame_bytes(const struct plx_link *link)
{
	return FRAME_HEADER_BYTES + link->rx_buf_bytes;
}

static inline uint32_t link_receives(const struct plx_link *link)
{
	return link->rx_buf_count + link->rx_control;
}

/* Before it is open. */
void link_set_events(struct plx_link *link, const struct plx_link_events *events);
int link_create(struct plx_set *set, const struct plx_link_attr *attr, struct fi_info *info,
		struct plx_link **link_out);
int link_move(struct plx_link *link, struct plx_set *set, struct fi_info *info);
void link_destroy(struct plx_link *link);
void link_abandon(struct plx_link *link);
void link_connected(struct plx_link *link);
void link_opened(struct plx_link *link);
void link_try_open(struct plx_link *link);
void link_say_hello(struct plx_link *link); /* or REFUSE */

/* window.c */
int window_init(uint64_t receive_bytes);
void window_take(struct plx_link *link);
void window_give(struct plx_link *link);

/* attend.c */
void link_attend(struct plx_link *link, uint32_t want);
int link_look_after(struct plx_fabric_lcore *home);

/* connect.c */
bool connect_otherwise(struct plx_link *link);
void connect_forget_plan(struct plx_link *link);

/* receive.c */
int receive_post_all(struct plx_link *link);
void receive_welcome(struct plx_link *link);
void receive_done(struct plx_op *op, size_t length);
void receive_refill(struct plx_link *link);
void receive_take_back(struct plx_op *op);
void receive_put(struct plx_link *link, struct plx_op *op, uint64_t value);

/* liveness.c: what is called with each frame. Relaxed: V1 orders it where that matters. */
static inline void liveness_heard(const struct plx_link *link)
{
	struct presence *presence = link->presence;

	atomic_store_explicit(&presence->heard_ns, presence->home->turn_ns, memory_order_relaxed);
}

static inline void liveness_sent(const struct plx_link *link)
{
	struct presence *presence = link->presence;

	presence->sent_ns = presence->home->turn_ns;
}

/* tx.c; what else is there is in tx.h */
void send_done(struct plx_op *op, int status);
void send_fail_op(struct plx_op *op);

/* control.c */
int send_small(struct plx_link *link, const uint8_t *frame, uint32_t length, bool signalled);
int send_control(struct plx_link *link); /* what link->want asks for; 0 or -EAGAIN */
int send_heartbeat(struct plx_link *link);
bool control_can_wait(const struct plx_link *link);

/* send.c */
struct plx_buf *send_bounce(struct plx_link *link, const struct plx_buf *buf, uint64_t total);
void send_continue(struct plx_link *link);
void send_fail_current(struct plx_link *link);
void send_abandon_current(struct plx_link *link);
bool send_has_room(const struct plx_link *link);

/* self_test.c: the bit of this side's HELLO; and what the peer's says. Return: whether the link
 * goes on. */
uint32_t self_test_feature(const struct plx_link *link);
bool self_test_agree(struct plx_link *link);

/* protocol.c: the same of what is spoken above, and its name. */
#define PROTOCOL_NAME_BYTES 32
const char *protocol_name(uint8_t protocol, char out[PROTOCOL_NAME_BYTES]);
uint32_t protocol_feature(const struct plx_link *link);
bool protocol_agree(struct plx_link *link);

/* close.c */
void link_end(struct plx_link *link, enum plx_link_reason reason, const char *format, ...)
	PLX_PRINTF(3, 4);
/* The peer's HELLO is not what this side wants. refusal: constant text that the peer gets; NULL: it
 * sees why in this side's HELLO, which leaves if it has not yet. The link ends when the peer has
 * taken it down, or after a moment, so that it gets that. */
void link_decline(struct plx_link *link, const char *refusal, const char *format, ...)
	PLX_PRINTF(3, 4);
void close_refused(struct plx_link *link);
/* What is asked of a link that is not open. Return: -ENOTCONN; -EPERM in the child of a fork. */
int link_fail_closed(const struct plx_link *link);
/* It was refused, or, if it is an accepted one, it is gone. */
void close_not_connected(struct plx_link *link);
void close_timer_init(struct plx_link *link);
void close_tell(struct plx_link *link);
void close_agreed(struct plx_link *link);
void close_on_fin(struct plx_link *link, bool carries_ack);
void close_on_fin_ack(struct plx_link *link);
bool close_settle(struct plx_link *link);
void close_settled(struct plx_link *link);
/* The connection has ended. prov_errno: as plx_fabric_driver.failure takes it. */
void close_on_shutdown(struct plx_link *link, int prov_errno);
void close_step(struct plx_link *link);
void close_extend(struct plx_link *link);
bool close_bury(struct plx_link *link, uint64_t now_ns);

#endif
