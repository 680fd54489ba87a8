/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints. An endpoint is a connection or becomes one. */
#ifndef TCP_EP_H
#define TCP_EP_H

#include "../prov/prov.h"
#include "tcp_wire.h"

#define TCP_INJECT_MAX 8192
#define TCP_QUEUED_MAX (1u << 20) /* bytes queued in an endpoint before it refuses more */

struct block;
struct tcp_dial;

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

/* A send from the caller's memory, or one that completes. Bytes of the endpoint's block come
 * first. */
struct tcp_send {
	uint32_t staged; /* block bytes before the pieces: a header, and earlier frames */
	uint32_t piece_count, piece;
	struct iovec pieces[PROV_IOV_MAX];
	struct prov_mr *mr; /* owner of the memory; NULL: the caller */
	void *context;
	uint64_t flags; /* of its completion; 0: none */
};

/* A read in flight: where its answer goes. */
struct tcp_read {
	struct iovec pieces[PROV_IOV_MAX];
	uint32_t piece_count;
	uint32_t length;
	void *context;
	uint64_t flags; /* of its completion; 0: none */
};

struct tcp_ep {
	struct prov_ep base;

	/* Receiving: the incoming frame. */
	bool is_polled;          /* its queues watch its socket */
	bool in_set;             /* in the queue's epoll set: unless it is hot for long */
	bool is_hot, is_waiting; /* in that list of its queue */
	bool in_frame;           /* its header was read; its payload is arriving */
	bool pending;            /* a complete header or payload waits to be acted on */
	bool is_stalled;         /* ... for a receive, or for room */
	uint8_t breach;          /* enum tcp_breach; once set, nothing more is taken */
	uint8_t header_have;
	uint8_t header[WIRE_FRAME_MOST]; /* while incomplete */
	struct wire_frame frame;
	uint32_t frame_done;  /* payload bytes so far */
	uint8_t *target;      /* WIRE_WRITE */
	struct prov_mr *into; /* the same: its registration */
	struct block *unread; /* received bytes not taken yet */
	uint32_t idle_looks, hot_polls;
	TAILQ_ENTRY(tcp_ep) link; /* hot or waiting */

	/* Sending. */
	bool is_queued, is_blocked; /* in the domain's list; its socket had no room */
	bool send_failed;           /* ... and never will have */
	bool was_first;             /* first_poll is valid */
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
	struct tcp_dial *dial; /* while connecting */
	/* Why it closed or failed to connect: the text after "its address: ..."; NULL: nothing
	 * beyond the event. */
	const char *why;
	char *said; /* the same, if allocated; or NULL */
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
/* Nothing more arrives: flushes posted operations and reports to the application. */
void tcp_ep_finish(struct tcp_ep *ep);
/* Nothing more is taken from the peer; tcp_ep_finish comes next. */
void tcp_ep_break(struct tcp_ep *ep, enum tcp_breach breach);

/* cm/cm.c: connecting; see struct prov_ep_ops ------------------------------------------------ */

int tcp_ep_accept(struct prov_ep *base, const void *data, size_t length);
void tcp_ep_shutdown(struct prov_ep *base);
void tcp_ep_disconnect(struct prov_ep *base);
/* Both sides have sent a HELLO. Return: 0: it is EP_CONNECTED; -errno. */
int tcp_ep_begin(struct tcp_ep *ep);

/* cm/connect.c ------------------------------------------------------------------------------ */

int tcp_ep_connect(struct prov_ep *base, const void *data, size_t length);
void dial_free(struct tcp_ep *ep); /* accepts one that is not connecting */
/* Call for each socket of an endpoint or passive endpoint with that info. */
void tcp_set_options(int fd, const struct fi_info *info);
void tcp_set_option(int fd, int level, int name, int value); /* if the kernel allows it */

/* receive.c -------------------------------------------------------------------------------- */

/* Read the socket once and take the bytes. Return: whether there were any. */
bool tcp_receive_read(struct tcp_ep *ep);
/* Continue after a stall. */
void tcp_receive_resume(struct tcp_ep *ep);

/* send.c ----------------------------------------------------------------------------------- */

extern struct fi_ops_msg tcp_msg_ops;
/* Write queued bytes, as many as the socket takes. */
void tcp_send_queued(struct tcp_ep *ep);
void tcp_send_flush(struct tcp_ep *ep, int err);
void tcp_send_fini(struct tcp_ep *ep);
/* For Pollux's links: see claim and commit in plx_fabric_driver.h. */
void *tcp_send_claim(struct fid_ep *fid, size_t length);
void tcp_send_commit(struct fid_ep *fid, size_t length);

/* An operation to send. */
struct tcp_message {
	struct wire_frame frame;
	const struct iovec *iov;
	size_t count;
	uint64_t length;    /* of all pieces */
	struct prov_mr *mr; /* owner of the memory; NULL: the caller */
	void *context;
	uint64_t flags;      /* of the operation */
	uint64_t completion; /* its flags; 0: none wanted */
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
void rma_end_data(struct tcp_ep *ep);
void rma_flush(struct tcp_ep *ep, int err);

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
