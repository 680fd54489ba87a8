/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of drivers/tcp: the objects of the provider plx_tcp.
 *
 *   sys.h        system calls on sockets, which tests replace
 *   tcp_wire.h   the wire format: wire.c
 *   poll.c       completion queues, and the progress that a read makes                (hot path)
 *   ep.c         connections
 *   receive.c    from bytes of a socket to completions                                (hot path)
 *   send.c       from calls to bytes of a socket                                      (hot path)
 *   rma.c        one-sided reads and writes
 *   domain.c     owner of queues and endpoints; blocks; memory that peers may read or write
 *   cm/          connecting: pep.c a listening socket and its requests; connect.c
 *   provider.c   attributes, libfabric entry points, parameters
 *   driver.c     the driver for lib/fabric */
#ifndef TCP_H
#define TCP_H

#include "../prov/prov.h"
#include "sys.h"
#include "tcp_wire.h"

#define TCP_NAME "plx_tcp"

/* Parameters, from the environment (FI_PLX_TCP_...) or from lib/fabric. provider.c reads them
 * once. */
struct tcp_params {
	uint32_t send_bytes, receive_bytes; /* kernel buffers; 0: kernel default */
	uint32_t user_timeout_ms;           /* TCP_USER_TIMEOUT; 0: kernel default */
	uint32_t busy_poll_us;              /* SO_BUSY_POLL; 0: none */
	uint32_t dscp;                      /* for endpoints without a tclass; 0: best effort */
	uint32_t connect_ms;                /* to connect and receive the answer */
	uint32_t handshake_ms;              /* for a peer to send its HELLO */
	uint32_t handshakes_max;            /* peers without a HELLO, per passive endpoint */
};
extern struct tcp_params tcp_params;

/* The first setting is only for libfabric programs: in lib/fabric each listener has that limit. */
#define TCP_SETTINGS_OWN 1
extern const struct plx_setting tcp_settings[];

extern struct fi_provider tcp_prov;
extern const struct prov tcp_kind;
extern const struct prov_pep_ops tcp_pep_ops;
#define tcp_log(...) prov_log(&tcp_prov, __VA_ARGS__)

/* Objects ----------------------------------------------------------------------------------- */

/* Blocks of memory. A completion queue receives into one; an endpoint has one while bytes wait to
 * be sent or taken. Idle connections have none. */
#define BLOCK_BYTES (64u << 10)

struct block {
	struct block *next;  /* in its domain's list */
	uint32_t begin, end; /* the part in use */
	uint8_t bytes[] PLX_ALIGNED(64);
};

struct tcp_ep;
TAILQ_HEAD(tcp_eps, tcp_ep);

/* The sockets of hot endpoints are read each poll; only the epoll set watches the others. Those set
 * aside have bytes that were read but found no room in the queue. */
struct tcp_cq {
	struct prov_cq q;
	struct block *stage; /* receive buffer; NULL: there was no memory */
	uint32_t polls;      /* modulo 2^32 */
};

#define TCP_INJECT_MAX 8192
/* Of sends and accesses, in addition to the common ones: none. */
#define TCP_OP_FLAGS   UINT64_C(0)
#define TCP_QUEUED_MAX (1u << 20) /* bytes queued in an endpoint before it refuses more */

/* Why this side ended a connection after its handshake. */
enum tcp_breach {
	TCP_BREACH_NONE,
	TCP_BREACH_FRAME,     /* invalid header */
	TCP_BREACH_WRITE,     /* write outside granted memory */
	TCP_BREACH_READ,      /* read outside granted memory */
	TCP_BREACH_READS,     /* too many reads */
	TCP_BREACH_UNASKED,   /* an answer without a read */
	TCP_BREACH_ANSWER,    /* an answer of the wrong length */
	TCP_BREACH_WITHDRAWN, /* not the peer's fault: memory in use was deregistered */
	TCP_BREACH_COUNT,
};

/* With the flags of a completion, which has 32 bits for them: the operation completes only if it
 * fails. */
#define TCP_IF_FAILED (UINT64_C(1) << 63)

/* A send that the kernel does not have yet. Bytes of the endpoint's block come first. */
struct tcp_send {
	uint32_t staged; /* block bytes before the pieces: a header, and earlier frames */
	uint32_t piece_count, piece;
	struct iovec pieces[PROV_IOV_MAX];
	struct prov_mr *mr; /* owner of the memory; NULL: the caller */
	void *context;
	uint64_t flags; /* of its completion, perhaps with TCP_IF_FAILED; 0: none */
};

/* A read in flight: where its answer goes. */
struct tcp_read {
	struct iovec pieces[PROV_IOV_MAX];
	uint32_t piece_count;
	uint32_t length;
	void *context;
	uint64_t flags; /* of its completion, perhaps with TCP_IF_FAILED */
};

struct tcp_ep {
	struct prov_ep base;

	/* Receiving: the incoming frame. */
	bool is_polled;  /* its queues watch its socket */
	bool in_set;     /* in the queue's epoll set: unless it is hot for long */
	bool in_frame;   /* its header was read; its payload is arriving */
	bool pending;    /* a complete header or payload waits to be acted on */
	bool is_stalled; /* ... for a receive, or for room */
	uint8_t breach;  /* enum tcp_breach; once set, nothing more is taken */
	uint8_t header_have;
	uint8_t header[WIRE_FRAME_MOST]; /* while incomplete */
	struct wire_frame frame;
	uint32_t frame_done;  /* payload bytes so far */
	uint8_t *target;      /* WIRE_WRITE */
	struct prov_mr *into; /* the same: its registration */
	void *write_context;  /* see name_writes in plx_fabric_driver.h; NULL: as libfabric says */
	struct block *unread; /* received bytes not taken yet */
	uint32_t hot_polls;

	/* Sending. */
	bool is_queued, is_blocked; /* in the domain's list; its socket had no room */
	bool send_failed;           /* ... and never will have */
	bool has_injected;          /* messages whose loss nothing reports */
	uint32_t first_poll;        /* the domain's `polls` when it last sent at once */
	uint32_t tail_staged;       /* bytes of `out` after the last of `sends` */
	struct block *out;
	struct tcp_send *sends; /* base.tx_head to tx_tail; grows up to the queue size */
	uint32_t sends_mask;
	uint64_t queued_bytes;
	TAILQ_ENTRY(tcp_ep) queued_link;

	/* Reads in flight; and answers to the peer's reads, in `sends`. */
	struct tcp_read *reads; /* WIRE_READS_MAX; NULL: no read was ever posted */
	uint32_t reads_head, reads_tail;
	uint32_t answers; /* of `sends` */

	/* Connection. */
	LIST_ENTRY(tcp_ep) domain_link;
	/* Why it closed or failed to connect: the text after "its address: ..."; NULL: nothing
	 * beyond the event. */
	const char *why;
	char *said; /* the same, if allocated; or NULL */
};

#define TCP_BACKLOG 4096 /* pending in the kernel; and waiting for fi_accept or fi_reject */

struct tcp_request {
	struct prov_request base;
	struct wire_hello hello;
};

struct tcp_pep {
	struct prov_pep base;
	bool left_bbr; /* accepted sockets may return to BBR */
};

struct tcp_domain {
	struct prov_domain base;
	struct block *free; /* a few blocks */
	uint32_t free_count;
	struct tcp_eps queued;              /* endpoints with bytes that the next poll sends */
	LIST_HEAD(tcp_all_eps, tcp_ep) eps; /* connected endpoints */
	uint32_t polls;                     /* modulo 2^32 */
	uint32_t blocked_count;             /* endpoints whose socket has no room */
	uint64_t lingered_ns;               /* when a closing endpoint began to wait; 0: never */
	struct plx_log_limit log_limit;
	uint64_t breaches[TCP_BREACH_COUNT]; /* connections closed for each breach */
	/* For lib/fabric, which polls each turn, sends many messages per turn, and closes a link
	 * only once both sides agree: sends after the first since a poll wait for the next poll, as
	 * if each had FI_MORE. Copied messages are complete although the kernel does not have them,
	 * and closing waits for nothing. */
	bool gathers;
};

static inline struct tcp_cq *rx_cq_of(const struct tcp_ep *ep)
{
	return (struct tcp_cq *)ep->base.rx_cq;
}

static inline struct tcp_domain *domain_of(const struct tcp_ep *ep)
{
	return (struct tcp_domain *)ep->base.domain;
}

/* provider.c ----------------------------------------------------------------------- */

int tcp_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info_out);
int tcp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric_out, void *context);

/* domain.c ---------------------------------------------------------------------------------- */

struct block *block_get(struct prov_domain *base); /* an empty block; NULL: out of memory */
void block_put(struct prov_domain *base, struct block *block); /* accepts NULL */

extern const struct prov_domain_ops tcp_domain_ops;

/* Find the registration with that key that covers the bytes and allows the endpoint's peer the
 * access (FI_REMOTE_READ or FI_REMOTE_WRITE). Return: their address, and the registration; NULL:
 * not found. */
uint8_t *tcp_mr_find(const struct tcp_ep *ep, uint64_t key, uint64_t address, uint64_t length,
		     uint64_t access, struct prov_mr **mr_out);

/* poll.c ------------------------------------------------------------------------------------ */

extern const struct prov_cq_ops tcp_cq_ops;
void poll_sends(struct tcp_cq *cq); /* first step of each read of the queue */
int poll_begin(struct tcp_ep *ep);  /* connected: polled from now on; or -errno */
void poll_end(struct tcp_ep *ep);   /* closed or hung up: accepts one that is not polled */
void poll_heat(struct tcp_ep *ep);  /* read it each poll, from the next one on */
/* Its socket has no room. Return: whether the set reports when it has. */
bool poll_blocked(struct tcp_ep *ep);
void poll_wait(struct tcp_ep *ep); /* it stalled: continue once there is a receive or room */

/* ep.c ------------------------------------------------------------------------------------- */

extern const struct prov_ep_ops tcp_ep_ops;
/* Call before its socket is shut down: sends what is queued, as far as closing may wait for it. */
void tcp_ep_send_rest(struct tcp_ep *ep);
/* Nothing more arrives: flushes posted operations and reports to the application. */
void tcp_ep_finish(struct tcp_ep *ep);
/* Nothing more is taken from the peer; tcp_ep_finish comes next. */
void tcp_ep_break(struct tcp_ep *ep, enum tcp_breach breach);

/* cm/connect.c: connecting; see struct prov_ep_ops ------------------------------------------- */

int tcp_ep_accept(struct prov_ep *base, const void *data, size_t length);
void tcp_ep_shutdown(struct prov_ep *base);
void tcp_ep_disconnect(struct prov_ep *base);
int tcp_ep_connect(struct prov_ep *base, const void *data, size_t length);
/* Call for each socket of an endpoint or passive endpoint with that info. */
void tcp_set_options(int fd, const struct fi_info *info);
void tcp_set_option(int fd, int level, int name, int value); /* if the kernel allows it */
/* Probe an idle peer's host. unanswered_ms: also give up a peer that leaves data unacknowledged or
 * unread for that long, unless tcp_params set another time; 0: as long as the kernel does. */
void tcp_set_keepalive(int fd, uint32_t unanswered_ms);
/* Call before the socket connects or listens. Return: whether it had BBR; if so, call
 * congestion_return_to_bbr for it, or for each socket that it accepts. */
bool congestion_leave_bbr(int fd);
/* Does nothing if the peer is on this host. */
void congestion_return_to_bbr(int fd, const struct sockaddr_storage *peer);

/* receive.c -------------------------------------------------------------------------------- */

/* Read the socket once and take the bytes. Return: whether there were any. */
bool tcp_receive_read(struct tcp_ep *ep);
/* See struct prov_ep_ops. */
bool tcp_receive_is_in_parts(const struct prov_ep *base, bool *is_held_out);
/* Continue after a stall. */
void tcp_receive_resume(struct tcp_ep *ep);

/* send.c ----------------------------------------------------------------------------------- */

extern struct fi_ops_msg tcp_msg_ops;
/* Write queued bytes, as many as the socket takes. */
void tcp_send_queued(struct tcp_ep *ep);
void tcp_send_flush(struct tcp_ep *ep, int err);
/* For Pollux's links: see claim and commit in plx_fabric_driver.h. */
void *tcp_send_claim(struct fid_ep *fid, size_t length);
void tcp_send_commit(struct fid_ep *fid, size_t length);
ssize_t tcp_send_copy(struct fid_ep *fid, const struct iovec *iov, size_t count, void *room,
		      void *context);

/* An operation to send. */
struct tcp_message {
	struct wire_frame frame;
	const struct iovec *iov;
	size_t count;
	uint64_t length;    /* of all pieces */
	struct prov_mr *mr; /* owner of the memory; NULL: the caller */
	void *context;
	uint64_t flags;      /* of the operation */
	uint64_t completion; /* its flags, perhaps with TCP_IF_FAILED; 0: none */
};

/* Return: 0; -FI_EAGAIN; -FI_ENOTCONN; -FI_ENOMEM; -FI_EMSGSIZE. */
ssize_t tcp_send_message(struct tcp_ep *ep, const struct tcp_message *message);

/* rma.c ------------------------------------------------------------------------------------ */

extern struct fi_ops_rma tcp_rma_ops;
/* The header of a WIRE_WRITE or WIRE_READ_DATA arrived. Return: TCP_BREACH_NONE: it is valid. */
enum tcp_breach rma_begin_write(struct tcp_ep *ep);
enum tcp_breach rma_begin_data(struct tcp_ep *ep);
/* The same for a WIRE_READ. *stalled_out: there is no room for the answer now. */
enum tcp_breach rma_answer(struct tcp_ep *ep, bool *stalled_out);
/* All of it has arrived, and the queue has room for its completion. */
void rma_end_write(struct tcp_ep *ep);
void rma_end_data(struct tcp_ep *ep, int err); /* err: of its completion; or 0 */
void rma_flush(struct tcp_ep *ep, int err);

/* The end of a send or a read. flags: of its completion; or 0. err: 0, or why it failed. */
static inline void tcp_report(struct tcp_ep *ep, void *context, uint64_t flags, int err)
{
	if (flags && (err || !(flags & TCP_IF_FAILED)))
		cq_push_done(ep->base.tx_cq, context, flags, err);
}

/* Sends and reads in flight; all of them may complete in error at once. */
static inline uint32_t under_way(const struct tcp_ep *ep)
{
	return ep->base.tx_tail - ep->base.tx_head - ep->answers + ep->reads_tail - ep->reads_head;
}

static inline struct tcp_read *rma_oldest(const struct tcp_ep *ep)
{
	return &ep->reads[ep->reads_head % WIRE_READS_MAX];
}

#endif
