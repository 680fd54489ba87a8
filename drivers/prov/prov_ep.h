/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: bindings, attributes, posted receives, connection state and events. */
#ifndef PROV_EP_H
#define PROV_EP_H

#include "eq.h"
#include "plx_arrival.h"
#include "prov_cq.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define PROV_IOV_MAX     4
#define PROV_EP_SIZE     256 /* default queue size per direction */
#define PROV_EP_SIZE_MAX 4096

/* Flags of operations. A call with others gets -FI_EBADFLAGS. */
#define PROV_TX_FLAGS (FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE)
#define PROV_RX_FLAGS FI_COMPLETION
/* Of a single call, in addition. A receive always completes after its message was transmitted. */
#define PROV_SEND_FLAGS (FI_MORE | FI_REMOTE_CQ_DATA)
#define PROV_POST_FLAGS (FI_MORE | FI_TRANSMIT_COMPLETE)

struct prov_domain;
struct prov_request;

enum prov_ep_state {
	EP_IDLE,       /* opened, perhaps enabled; receives may be posted */
	EP_CONNECTING, /* our request was sent */
	EP_CONNECTED,
	EP_DRAINING, /* peer hung up or we shut down; received data is still delivered */
	EP_DEAD,     /* everything flushed */
};

/* A posted receive. Several pieces: in `pieces` of struct prov_receives, at the same index. */
struct prov_receive {
	void *buf; /* the first piece */
	size_t length;
	void *context;
	uint64_t flags; /* FI_COMPLETION: requested */
	size_t total;   /* of all pieces */
	uint32_t pieces;
	bool cancelled; /* its completion is already queued */
};

/* Posted receives in the order in which they are filled. head and tail are modulo 2^32. */
struct prov_receives {
	struct prov_receive *all;
	struct iovec *pieces; /* PROV_IOV_MAX each; NULL: none ever had two pieces */
	uint32_t head, tail, mask, size;
	uint32_t cancelled; /* between head and tail */
	bool filling;       /* the oldest holds part of a message: it cannot be cancelled */
	bool reuses;        /* long ones are filled newest first */
};

/* The list of its receiving queue that an endpoint is in. */
enum prov_listed {
	LISTED_NOT,
	LISTED_HOT,   /* looked at in every poll: it received something lately */
	LISTED_ASIDE, /* for the provider's purposes */
};

/* What a provider keeps of an endpoint that connects, if anything. */
struct prov_dial {
	struct prov_deadline deadline;
	struct prov_ep *ep;
	uint32_t length;
	uint8_t data[PROV_CM_DATA_MAX]; /* private data to send */
};

struct prov_ep {
	struct fid_ep fid;
	uint8_t state;  /* enum prov_ep_state */
	uint8_t listed; /* enum prov_listed */
	bool enabled, tx_selective, rx_selective;
	bool starved; /* data is waiting and no receive is posted */
	struct prov_receives rx;
	struct prov_cq *rx_cq, *tx_cq;
	uint64_t tx_flags, rx_flags; /* default operation flags */
	uint32_t tx_head, tx_tail;   /* sends in flight; modulo 2^32 */
	uint32_t tx_size;
	uint32_t idle_looks; /* see hot_age */
	TAILQ_ENTRY(prov_ep) link;
	struct prov_domain *domain;
	struct plx_watch source; /* its socket */
	struct prov_eq *eq;
	struct fi_info *info;
	struct prov_request *request; /* its origin, until fi_accept */
	struct prov_dial *dial;       /* or NULL */
	LIST_HEAD(, prov_mr) mrs;     /* registrations bound to it */
	struct sockaddr_storage local, peer;
	/* Reported events: FI_CONNECTED and FI_SHUTDOWN, or the error that prevented the
	 * connection. */
	struct prov_event events[2];
	uint32_t told;
	/* Received in parts of messages, and when the last of these began: see plx_arrival.h. */
	uint64_t part_bytes, part_begin;
};

/* A message to send: see send_calls.h. */
struct prov_message {
	const struct iovec *iov;
	size_t count;
	uint64_t length; /* of all pieces */
	uint64_t data;   /* if has_data */
	void *context;
	uint64_t flags; /* of the operation */
	bool has_data;
	bool wants_completion;
	bool is_inject; /* by fi_inject or fi_injectdata: nothing reports how it ends */
};

/* A provider's extension. Its endpoint starts with a struct prov_ep; the rest is zeroed. */
struct prov_ep_ops {
	size_t bytes; /* size of its endpoint */
	struct fi_ops_msg *msg;
	struct fi_ops_rma *rma;
	void (*init)(struct prov_ep *ep);   /* or NULL */
	int (*enable)(struct prov_ep *ep);  /* or NULL. Return: 0; -FI_ENOMEM; -errno */
	void (*posted)(struct prov_ep *ep); /* a receive was posted on a starved one */
	/* Whether a message is incomplete. *is_held_out: see plx_arrival.h. */
	bool (*is_in_parts)(const struct prov_ep *ep, bool *is_held_out);
	uint64_t (*in_flight)(const struct prov_ep *ep); /* the same, of a connected one; or NULL */
	/* Ask ep->peer for a connection. Return: 0: an event reports the result; on error nothing
	 * has changed. */
	int (*connect)(struct prov_ep *ep, const void *data, size_t length);
	/* Answer the request, whose socket it has taken over, and start. Return: 0: it is
	 * EP_CONNECTED; -FI_ECONNABORTED; -errno. */
	int (*accept)(struct prov_ep *ep, const void *data, size_t length);
	void (*shutdown)(struct prov_ep *ep);   /* fi_shutdown, when connected or draining */
	void (*disconnect)(struct prov_ep *ep); /* closes its socket, if any */
	void (*close)(struct prov_ep *ep);      /* in any state */
};

static inline struct prov_ep *prov_ep_of(struct fid *fid)
{
	return (struct prov_ep *)fid;
}

/* ep.c ------------------------------------------------------------------------------------- */

/* Entry of struct fi_ops_domain. */
int prov_ep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **ep_out,
		 void *context);
int prov_ep_enable(struct prov_ep *ep); /* if it is not enabled already */

/* cm.c ------------------------------------------------------------------------------------- */

extern struct fi_ops_cm prov_ep_cm_ops;
/* Report an event to the application. data: private data, or NULL. */
void prov_ep_tell(struct prov_ep *ep, uint32_t event, const void *data, uint32_t length);
/* Report that connecting failed. data: may be memory that `disconnect` frees. */
void prov_ep_fail(struct prov_ep *ep, int err, const void *data, uint32_t length);

/* bytes: of the provider's structure, which starts with a struct prov_dial; the rest is zeroed. The
 * deadline is not set. Return: 0; -FI_ENOMEM. */
int prov_dial_begin(struct prov_ep *ep, size_t bytes,
		    void (*passed)(struct prov_deadline *deadline), const void *data,
		    size_t length);
void prov_dial_end(struct prov_ep *ep); /* accepts one that has none */

/* Works for any endpoint. */
int prov_getopt(fid_t fid, int level, int name, void *value, size_t *bytes);
int prov_setopt(fid_t fid, int level, int name, const void *value, size_t bytes);

/* receive.c: posted receives ------------------------------------------------------------------ */

int receives_init(struct prov_receives *rx); /* rx->size must be set. Return: 0; -FI_ENOMEM */
void receives_fini(struct prov_receives *rx);
ssize_t receives_post(struct fid_ep *fid, void *buf, size_t length, void *desc, fi_addr_t source,
		      void *context);
ssize_t receives_postv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		       fi_addr_t source, void *context);
ssize_t receives_postmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags);
ssize_t receives_cancel(struct prov_ep *ep, void *context);
void receives_flush(struct prov_ep *ep, int err);
/* For Pollux's links: see reuse_receives in plx_fabric_driver.h. */
void prov_ep_reuse_receives(struct fid_ep *fid);
void receives_drop_cancelled(struct prov_receives *rx); /* from the front */
/* The oldest receive's pieces past `skip` bytes. out: PROV_IOV_MAX. Return: how many. */
int receives_pieces(const struct prov_receives *rx, uint64_t skip, struct iovec *out);
/* Copy bytes of a message into the oldest receive past `skip`. Drops what does not fit. */
void receives_copy(const struct prov_receives *rx, uint64_t skip, const void *from,
		   uint64_t length);

/* Hot endpoints ------------------------------------------------------------------------------- */

/* An endpoint stays hot until the queue's looks at hot endpoints found nothing HOT_IDLE_LOOKS
 * times. Alone it stays for that many polls; the more there are, the sooner it cools. */
#define HOT_IDLE_LOOKS 8192
#define HOT_AWAKE_MAX  4 /* endpoints that stay hot during a sleep: a few; not measured */

/* ep.c: move it to the end of a list; LISTED_NOT: out of its list. */
void ep_list(struct prov_ep *ep, enum prov_listed listed);

/* The next to look at, of at least one. */
static inline struct prov_ep *hot_next(struct prov_cq *cq)
{
	struct prov_ep *first = TAILQ_FIRST(&cq->hot);

	if (plx_unlikely(TAILQ_NEXT(first, link))) { /* the next poll starts with another */
		TAILQ_REMOVE(&cq->hot, first, link);
		TAILQ_INSERT_TAIL(&cq->hot, first, link);
	}
	return first;
}

/* A look at a hot one found nothing. Return: whether it must cool. */
static inline bool hot_age(struct prov_ep *ep)
{
	ep->idle_looks += ep->rx_cq->hot_count;
	return ep->idle_looks > HOT_IDLE_LOOKS;
}

/* Pieces of memory -------------------------------------------------------------------------- */

/* The pieces past `skip` bytes. out: room for count. Return: how many. */
int iov_after(const struct iovec *iov, uint32_t count, uint64_t skip, struct iovec *out);
/* Copy bytes into the pieces. Drops what does not fit. */
void iov_fill(const struct iovec *iov, int count, const void *from, uint64_t length);

static inline uint64_t iov_bytes(const struct iovec *iov, size_t count)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

/* Truncate to the first `bytes`. Return: how many pieces remain; 0: there are fewer bytes. */
static inline int iov_first(struct iovec *iov, int count, uint64_t bytes)
{
	for (int i = 0; i < count; i++) {
		if (iov[i].iov_len >= bytes) {
			iov[i].iov_len = bytes;
			return i + 1;
		}
		bytes -= iov[i].iov_len;
	}
	return 0;
}

/* Copy all pieces into contiguous memory. */
static inline void iov_copy(uint8_t *to, const struct iovec *iov, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (plx_likely(iov[i].iov_len))
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
}

/* ------------------------------------------------------------------------------------------ */

/* Why it refuses: a send while not connected, a post when dead. */
static inline ssize_t ep_refuses(const struct prov_ep *ep)
{
	return ep->enabled ? -FI_ENOTCONN : -FI_EOPBADSTATE;
}

static inline struct prov_receive *receives_first(const struct prov_receives *rx)
{
	return &rx->all[rx->head & rx->mask];
}

static inline bool receives_is_empty(const struct prov_receives *rx)
{
	return rx->head == rx->tail;
}

/* Complete the oldest receive. data: valid if has_data. */
static inline void receives_complete(struct prov_ep *ep, uint64_t length, bool has_data,
				     uint64_t data)
{
	const struct prov_receive *receive = receives_first(&ep->rx);
	bool fits = length <= receive->total;
	struct prov_completion *completion;

	ep->rx.head++;
	if (plx_unlikely(!receive->flags && fits))
		return;
	completion = cq_push(ep->rx_cq);
	completion->context = receive->context;
	completion->flags = FI_RECV | FI_MSG | (has_data ? FI_REMOTE_CQ_DATA : 0);
	completion->err = fits ? 0 : FI_ETRUNC;
	completion->length = fits ? length : receive->total;
	completion->buf = receive->buf;
	completion->data = data;
	completion->overlong = fits ? 0 : length - receive->total;
}

#endif
