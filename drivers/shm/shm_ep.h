/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: one is a connection, or is to become one. */
#ifndef SHM_EP_H
#define SHM_EP_H

#include "../prov/prov.h"
#include "cm/shm_wire.h"
#include "ring/ring.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

#define SHM_INJECT_MAX   4096
#define SHM_MESSAGE_MAX  (UINT64_C(1) << 40)
#define SHM_POLL_RECORDS 64 /* records taken in one poll, at most */
#define SHM_POLL_PARTS   8  /* of large messages, written in one poll, at most */

struct shm_cq;
struct shm_domain;

/* In which list of its queue an endpoint is, and so how it asks to be called. */
enum shm_listed {
	LISTED_NOT,    /* CALL_BELL and CALL_WAKE; or starved, or not connected */
	LISTED_ACTIVE, /* looked at every poll; CALL_WAKE where is_armed */
	LISTED_BELLED, /* CALL_BELL */
};

/* A send that is not done when fi_send returns: parts are still to be written, or the peer still
 * has to read it. */
struct shm_send {
	void *context;
	uint64_t flags; /* of the operation */
	uint64_t data;
	uint64_t total, written; /* written == total: only waits for the head */
	uint64_t end;            /* it is done when the head is here */
	struct iovec pieces[PROV_IOV_MAX];
	uint32_t piece_count;
	bool has_data, wants_completion;
};

struct shm_ep {
	struct prov_ep base; /* its tx_head and tx_tail are of sends */
	uint8_t listed;      /* enum shm_listed: in which list of its queue */
	bool shut_down;      /* by fi_shutdown here */
	bool is_armed;       /* active, and asked to be woken; nothing has come since */
	bool broken;         /* the peer wrote what cannot be: nothing more is read */
	bool is_sending;     /* in the domain's list */
	bool calls_later;    /* in the domain's list of callers */
	bool owes_call;      /* records were published without a look that is sure (ring_call) */

	/* Receiving. */
	struct ring_reader reader;
	uint64_t drain_end; /* where the head can be at most, once the peer hung up */
	uint32_t idle_looks;
	TAILQ_ENTRY(shm_ep) link;
	/* A message that comes in parts, by records or by reads; part_kind 0: none. */
	uint8_t part_kind; /* RECORD_FIRST or RECORD_READ */
	bool part_has_data;
	uint64_t part_total, part_done, part_data;
	struct iovec sources[PROV_IOV_MAX]; /* of RECORD_READ: in the peer's memory */
	uint32_t source_count;
	struct shm_peer peer_process;
	int peer_pidfd; /* held while a message is read from its memory; else -1 */
	bool may_read;  /* its memory */
	uint32_t slot;  /* in its queue's slots */
	struct shm_ep *next_slot;

	/* Sending. */
	struct ring_writer writer;
	uint64_t inline_max; /* longer messages do not go through the ring in one record */
	struct bell *peer_bell;
	uint32_t peer_bell_bit;
	struct shm_send *sends;
	uint32_t tx_mask;
	TAILQ_ENTRY(shm_ep) send_link;
	struct shm_ep *next_caller; /* in the domain's list, where calls_later */

	/* Connection. */
	struct shm_later *later; /* the peer's backlog is full: to try again */
	int segment_fd;          /* of the receiving ring, until it is sent; else -1 */
	uint64_t probe;          /* a word that the peer reads to see whether it can */
};

static inline struct shm_cq *rx_cq_of(const struct shm_ep *ep)
{
	return (struct shm_cq *)ep->base.rx_cq;
}

static inline struct shm_cq *tx_cq_of(const struct shm_ep *ep)
{
	return (struct shm_cq *)ep->base.tx_cq;
}

static inline struct shm_domain *domain_of(const struct shm_ep *ep)
{
	return (struct shm_domain *)ep->base.domain;
}

/* ep.c ------------------------------------------------------------------------------------- */

extern const struct prov_ep_ops shm_ep_ops;

/* cm.c: being connected; see struct prov_ep_ops ----------------------------------------------- */

int shm_ep_accept(struct prov_ep *base, const void *data, size_t length);
void shm_ep_shutdown(struct prov_ep *base);
void shm_ep_disconnect(struct prov_ep *base);
int ep_send_half(struct shm_ep *ep, enum wire_kind kind, const void *data, size_t length);
/* Both halves are there: rings and bell are set, the data path may begin. */
int ep_take_offer(struct shm_ep *ep, struct shm_offer *offer);
void ep_incoming(struct prov_source *source); /* its socket has something, or hung up */

/* connect.c: the way there, for the side that asks ------------------------------------------- */

int shm_ep_connect(struct prov_ep *base, const void *data, size_t length);
void later_free(struct shm_ep *ep);  /* accepts one that does not wait for room */
void ep_answered(struct shm_ep *ep); /* the listener said something, or hung up */

/* progress.c ------------------------------------------------------------------------------- */

void progress_begin(struct shm_ep *ep);   /* connected: from here on it is polled */
void progress_end(struct shm_ep *ep);     /* closed */
void progress_hang_up(struct shm_ep *ep); /* the peer is gone: deliver, flush, tell */
void progress_broken(struct shm_ep *ep);  /* the peer, or what it wrote, is of no use */
bool progress_peer_is_there(const struct shm_ep *ep);
void progress_send_later(struct shm_ep *ep); /* it has sends under way */
void progress_poll(struct shm_cq *cq);       /* what one read of the queue does before it looks */
void progress_activate(struct shm_ep *ep);
void progress_posted(struct prov_ep *ep);
bool progress_arm(struct shm_cq *cq); /* returns whether there is nothing to do: it may sleep */

/* send.c ----------------------------------------------------------------------------------- */

extern struct fi_ops_msg shm_msg_ops;
int send_init(struct shm_ep *ep);
void send_fini(struct shm_ep *ep);
/* Writes at most *parts, which it counts down. Returns whether something was written or completed.
 */
bool send_go_on(struct shm_ep *ep, uint32_t *parts);
void send_flush(struct shm_ep *ep, int err);
void ep_wake_peer(struct shm_ep *ep);            /* one byte on the socket */
void send_call_peers(struct shm_domain *domain); /* those whose endpoints are to call later */
/* For Pollux' own links: see claim and commit in plx_fabric_driver.h. */
void *send_claim(struct fid_ep *fid, size_t length);
void send_commit(struct fid_ep *fid, size_t length);

/* receive.c -------------------------------------------------------------------------------- */

uint32_t receive_poll(struct shm_ep *ep, uint32_t max); /* records taken */

#endif
