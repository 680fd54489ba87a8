/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: what they are bound to, their attributes, their posted receives, how they are
 * connected, and what they tell. */
#ifndef PROV_EP_H
#define PROV_EP_H

#include "eq.h"
#include "prov_cq.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define PROV_IOV_MAX     4
#define PROV_EP_SIZE     256 /* operations of each direction, where nothing is asked */
#define PROV_EP_SIZE_MAX 4096

struct prov_domain;
struct prov_request;

enum prov_ep_state {
	EP_IDLE,       /* made, maybe enabled; receives may be posted */
	EP_CONNECTING, /* our request is on its way */
	EP_CONNECTED,
	EP_DRAINING, /* the peer hung up or we shut down: what it sent is still delivered */
	EP_DEAD,     /* all flushed */
};

/* A posted receive. More pieces than one: in `pieces` of struct prov_receives, at its own index. */
struct prov_receive {
	void *buf; /* the first piece */
	size_t length;
	void *context;
	uint64_t flags; /* FI_COMPLETION: wanted */
	size_t total;   /* of all pieces */
	uint32_t pieces;
	bool cancelled; /* its completion was queued already */
};

/* Posted receives, oldest first. head and tail are modulo 2^32. */
struct prov_receives {
	struct prov_receive *all;
	struct iovec *pieces; /* PROV_IOV_MAX for each; NULL: none ever had two */
	uint32_t head, tail, mask, size;
	uint32_t cancelled; /* of those between head and tail */
	bool filling;       /* part of a message is in the oldest one: it cannot be cancelled */
};

struct prov_ep {
	struct fid_ep fid;
	uint8_t state; /* enum prov_ep_state */
	bool enabled, tx_selective, rx_selective;
	bool starved; /* something is there, and no receive posted for it */
	struct prov_receives rx;
	struct prov_cq *rx_cq, *tx_cq;
	uint64_t tx_flags, rx_flags; /* default operation flags */
	uint32_t tx_head, tx_tail;   /* sends under way; modulo 2^32 */
	uint32_t tx_size;
	struct prov_domain *domain;
	struct prov_source source; /* its socket */
	struct prov_eq *eq;
	struct fi_info *info;
	struct prov_request *request; /* it was made from, until fi_accept */
	struct sockaddr_storage local, peer;
	/* What it has told: FI_CONNECTED and FI_SHUTDOWN, or why it is not connected. */
	struct prov_event events[2];
	uint32_t told;
};

/* A message to be sent: see send_calls.h. */
struct prov_message {
	const struct iovec *iov;
	size_t count;
	uint64_t length; /* of all pieces */
	uint64_t data;   /* where has_data */
	void *context;
	uint64_t flags; /* of the operation */
	bool has_data;
	bool wants_completion;
};

/* What a provider adds. Its endpoint begins with a struct prov_ep; its other bytes are zero. */
struct prov_ep_ops {
	size_t bytes; /* of its endpoint */
	struct fi_ops_msg *msg;
	struct fi_ops_rma *rma;
	void (*init)(struct prov_ep *ep);   /* or NULL */
	int (*enable)(struct prov_ep *ep);  /* or NULL. Return: 0; -FI_ENOMEM; -errno */
	void (*posted)(struct prov_ep *ep); /* a receive, on one that was starved */
	/* Ask ep->peer for a connection. Return: 0: what comes of it is told; else it is as if
	 * nobody had asked. */
	int (*connect)(struct prov_ep *ep, const void *data, size_t length);
	/* Answer the request, whose socket it has taken over, and begin. Return: 0: it is
	 * EP_CONNECTED; -FI_ECONNABORTED; -errno. */
	int (*accept)(struct prov_ep *ep, const void *data, size_t length);
	void (*shutdown)(struct prov_ep *ep); /* fi_shutdown, of one that is connected or drains */
	void (*disconnect)(struct prov_ep *ep); /* closes its socket; accepts one that has none */
	void (*close)(struct prov_ep *ep);      /* in whatever state it is */
};

static inline struct prov_ep *prov_ep_of(struct fid *fid)
{
	return (struct prov_ep *)fid;
}

/* ep.c ------------------------------------------------------------------------------------- */

/* Entry of struct fi_ops_domain. */
int prov_ep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **ep_out,
		 void *context);
int prov_ep_enable(struct prov_ep *ep); /* unless it is enabled already */

/* cm.c ------------------------------------------------------------------------------------- */

extern struct fi_ops_cm prov_ep_cm_ops;
/* Tell the application. data: private data, or NULL. */
void prov_ep_tell(struct prov_ep *ep, uint32_t event, const void *data, uint32_t length);
/* It connects, and cannot: tell so. data: also of what `disconnect` frees. */
void prov_ep_fail(struct prov_ep *ep, int err, const void *data, uint32_t length);

/* Of any endpoint. */
int prov_getopt(fid_t fid, int level, int name, void *value, size_t *bytes);
int prov_setopt(fid_t fid, int level, int name, const void *value, size_t bytes);

/* receive.c: posted receives ------------------------------------------------------------------ */

int receives_init(struct prov_receives *rx); /* of rx->size. Return: 0; -FI_ENOMEM */
void receives_fini(struct prov_receives *rx);
ssize_t receives_post(struct fid_ep *fid, void *buf, size_t length, void *desc, fi_addr_t source,
		      void *context);
ssize_t receives_postv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		       fi_addr_t source, void *context);
ssize_t receives_postmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags);
ssize_t receives_cancel(struct prov_ep *ep, void *context);
void receives_flush(struct prov_ep *ep, int err);
void receives_drop_cancelled(struct prov_receives *rx); /* from the front */
/* What of the oldest one's pieces comes after `skip` bytes. out: PROV_IOV_MAX. Return: how many. */
int receives_pieces(const struct prov_receives *rx, uint64_t skip, struct iovec *out);
/* Bytes of a message go into the oldest one, after `skip`; what does not fit is left out. */
void receives_copy(const struct prov_receives *rx, uint64_t skip, const void *from,
		   uint64_t length);

/* Pieces of memory -------------------------------------------------------------------------- */

/* What of them comes after `skip` bytes. out: room for count. Return: how many. */
int iov_after(const struct iovec *iov, uint32_t count, uint64_t skip, struct iovec *out);
/* Bytes go into them; what does not fit is left out. */
void iov_fill(const struct iovec *iov, int count, const void *from, uint64_t length);

static inline uint64_t iov_bytes(const struct iovec *iov, size_t count)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

/* Cut them to their first bytes. Return: how many are left; 0: there are fewer bytes. */
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

/* All of their bytes, one piece after the other. */
static inline void iov_copy(uint8_t *to, const struct iovec *iov, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (plx_likely(iov[i].iov_len))
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
}

/* ------------------------------------------------------------------------------------------ */

/* Why nothing is sent by one that is not connected, or posted to one that is dead. */
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

/* The oldest one has got its message. data: where has_data. */
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
