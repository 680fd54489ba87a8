/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: one is a connection, or is to become one. */
#ifndef TCP_EP_H
#define TCP_EP_H

#include "../prov/prov.h"
#include "tcp_wire.h"

#define TCP_INJECT_MAX 8192
#define TCP_QUEUED_MAX (1u << 20) /* bytes that wait in an endpoint, before it refuses more */

struct block;
struct tcp_dial;

/* What ended a connection here after its handshake. */
enum tcp_breach {
	TCP_BREACH_NONE,
	TCP_BREACH_FRAME,     /* a header that cannot be */
	TCP_BREACH_WRITE,     /* memory that it may not write to */
	TCP_BREACH_READ,      /* memory that it may not read */
	TCP_BREACH_READS,     /* more of them than there may be */
	TCP_BREACH_UNASKED,   /* an answer to no read */
	TCP_BREACH_ANSWER,    /* one of another length */
	TCP_BREACH_WITHDRAWN, /* none of the peer's: memory that it uses is no longer registered */
	TCP_BREACH_COUNT,
};

/* What is sent from where it lies, and what completes: bytes of the endpoint's block come first. */
struct tcp_send {
	uint32_t staged; /* bytes of the block before the pieces: a header, and earlier frames */
	uint32_t piece_count, piece;
	struct iovec pieces[PROV_IOV_MAX];
	struct prov_mr *mr; /* whose memory it is; NULL: the caller's */
	void *context;
	uint64_t flags; /* of its completion; 0: it has none */
};

/* A read that was asked for: where the answer goes. */
struct tcp_read {
	struct iovec pieces[PROV_IOV_MAX];
	uint32_t piece_count;
	uint32_t length;
	void *context;
	uint64_t flags; /* of its completion; 0: it has none */
};

struct tcp_ep {
	struct prov_ep base;

	/* Receiving: the frame that is coming in. */
	bool is_polled;          /* its socket is watched by its queues */
	bool in_set;             /* the queue's epoll set: so unless it is hot for long */
	bool is_hot, is_waiting; /* in that list of its queue */
	bool in_frame;           /* its header is read, and its payload comes in */
	bool pending;            /* a header or a payload is whole, and waits to be acted on */
	bool is_stalled;         /* ... as there is no receive, or no room */
	uint8_t breach;          /* enum tcp_breach; where there is one nothing more is taken */
	uint8_t header_have;
	uint8_t header[WIRE_FRAME_MOST]; /* where only part of one is there */
	struct wire_frame frame;
	uint32_t frame_done;  /* bytes of its payload */
	uint8_t *target;      /* WIRE_WRITE */
	struct prov_mr *into; /* the same: whose memory that is */
	struct block *unread; /* bytes that were received and not taken yet */
	uint32_t idle_looks, hot_polls;
	TAILQ_ENTRY(tcp_ep) link; /* hot or waiting */

	/* Sending. */
	bool is_queued, is_blocked; /* in the domain's list; its socket had no room */
	bool send_failed;           /* ... and will never have */
	bool was_first;             /* first_poll is valid */
	uint32_t first_poll;        /* the domain's, when it last sent at once */
	uint32_t tail_staged;       /* bytes of `out` behind the last of `sends` */
	struct block *out;
	struct tcp_send *sends; /* base.tx_head to tx_tail; grows up to what may be posted */
	uint32_t sends_mask;
	uint64_t queued_bytes;
	TAILQ_ENTRY(tcp_ep) queued_link;

	/* Reads: asked for here, and not answered; asked for by the peer, in `sends`. */
	struct tcp_read *reads; /* WIRE_READS_MAX; NULL: there never was one */
	uint32_t reads_head, reads_tail;
	uint32_t answers; /* of `sends` */

	/* Connection. */
	LIST_ENTRY(tcp_ep) domain_link;
	struct tcp_dial *dial; /* while it connects */
	/* What is known of its end, or of why it is not connected: a text that goes on "its
	 * address: ..."; NULL: no more than the event says. */
	const char *why;
	char *said; /* the same, where it was put together; or NULL */
};

static inline struct tcp_cq *rx_cq_of(const struct tcp_ep *ep)
{
	return (struct tcp_cq *)ep->base.rx_cq;
}

static inline struct tcp_domain *domain_of(const struct tcp_ep *ep)
{
	return (struct tcp_domain *)ep->base.domain;
}

/* ep.c ------------------------------------------------------------------------------------- */

extern const struct prov_ep_ops tcp_ep_ops;
/* Nothing more comes: what is posted is flushed, and the application told. */
void tcp_ep_finish(struct tcp_ep *ep);
/* Nothing more is taken from the peer, and tcp_ep_finish comes next. */
void tcp_ep_break(struct tcp_ep *ep, enum tcp_breach breach);

/* cm/cm.c: being connected; see struct prov_ep_ops ------------------------------------------- */

int tcp_ep_accept(struct prov_ep *base, const void *data, size_t length);
void tcp_ep_shutdown(struct prov_ep *base);
void tcp_ep_disconnect(struct prov_ep *base);
/* Both sides have said HELLO. Return: 0: it is EP_CONNECTED; -errno. */
int tcp_ep_begin(struct tcp_ep *ep);

/* cm/connect.c ------------------------------------------------------------------------------ */

int tcp_ep_connect(struct prov_ep *base, const void *data, size_t length);
void dial_free(struct tcp_ep *ep); /* accepts one that does not connect */
/* Of each socket: for an endpoint or a passive endpoint of that info. */
void tcp_set_options(int fd, const struct fi_info *info);
void tcp_set_option(int fd, int level, int name, int value); /* if the kernel lets it be */

/* receive.c -------------------------------------------------------------------------------- */

/* Read the socket once, and take what is there. Return: whether something was. */
bool tcp_receive_read(struct tcp_ep *ep);
/* Go on where it stalled. */
void tcp_receive_resume(struct tcp_ep *ep);

/* send.c ----------------------------------------------------------------------------------- */

extern struct fi_ops_msg tcp_msg_ops;
/* Write what is queued, as much as the socket takes. */
void tcp_send_queued(struct tcp_ep *ep);
void tcp_send_flush(struct tcp_ep *ep, int err);
void tcp_send_fini(struct tcp_ep *ep);
/* For Pollux' own links: see claim and commit in plx_fabric_driver.h. */
void *tcp_send_claim(struct fid_ep *fid, size_t length);
void tcp_send_commit(struct fid_ep *fid, size_t length);

/* An operation to be sent. */
struct tcp_message {
	struct wire_frame frame;
	const struct iovec *iov;
	size_t count;
	uint64_t length;    /* of all pieces */
	struct prov_mr *mr; /* whose memory it is; NULL: the caller's */
	void *context;
	uint64_t flags;      /* of the operation */
	uint64_t completion; /* its flags; 0: none is wanted */
};

/* Return: 0; -FI_EAGAIN; -FI_ENOTCONN; -FI_ENOMEM; -FI_EMSGSIZE. */
ssize_t tcp_send_message(struct tcp_ep *ep, const struct tcp_message *message);

/* rma.c ------------------------------------------------------------------------------------ */

extern struct fi_ops_rma tcp_rma_ops;
/* The header of a WIRE_WRITE or WIRE_READ_DATA came in. Return: TCP_BREACH_NONE: it may be. */
enum tcp_breach rma_begin_write(struct tcp_ep *ep);
enum tcp_breach rma_begin_data(struct tcp_ep *ep);
/* The same of a WIRE_READ. *stalled_out: there is no room for the answer now. */
enum tcp_breach rma_answer(struct tcp_ep *ep, bool *stalled_out);
/* All of it is there, and the queue has room for its completion. */
void rma_end_write(struct tcp_ep *ep);
void rma_end_data(struct tcp_ep *ep);
void rma_flush(struct tcp_ep *ep, int err);

/* Sends and reads under way; all of them may complete in error at once. */
static inline uint32_t under_way(const struct tcp_ep *ep)
{
	return ep->base.tx_tail - ep->base.tx_head - ep->answers + ep->reads_tail - ep->reads_head;
}

static inline struct tcp_read *rma_oldest(const struct tcp_ep *ep)
{
	return &ep->reads[ep->reads_head % WIRE_READS_MAX];
}

#endif
