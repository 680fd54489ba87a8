/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of drivers/shm: the objects of the provider plx_shm, and an index of files.
 *
 *   ring/        memory of two processes: segment.h its layout, segment.c sharing it,
 *                ring.h its records                                     (hot path)
 *   cq.c         completion queues, and the bell of their receiving endpoints
 *   ep.c         a connection: two rings, a socket, posted receives, sends in flight;
 *                domains, which own queues and endpoints
 *   progress.c   reading a completion queue                             (hot path)
 *   receive.c    from records to completions                            (hot path)
 *   send.c       from calls to records                                  (hot path)
 *   cm/          connecting: pep.c a listening socket and its requests; connect.c;
 *                shm_wire.h, wire.c the handshake; peer.c the peer process
 *   provider.c   attributes, libfabric entry points, parameters
 *   driver.c     the driver for lib/fabric */
#ifndef SHM_H
#define SHM_H

#include "../prov/prov.h"
#include "base_internal.h"
#include "cm/shm_wire.h"
#include "ring/ring.h"

#define SHM_NAME       PROV_SHM_NAME
#define SHM_RING_BYTES (UINT32_C(256) << 10)

/* Parameters, read once from the environment (FI_PLX_SHM_...) by prov.c. */
struct shm_params {
	uint32_t ring_bytes; /* of each receiving ring: a power of two */
	uint64_t inline_max; /* up to this, a message is one record in the ring */
	uint64_t copy_max;   /* up to this, in parts; beyond it the peer reads, if it can */
	bool cma;            /* read senders' memory */
	bool has_group;      /* members of this group may connect too */
	uint32_t group;      /* gid */
};
extern struct shm_params shm_params;
extern struct fi_provider shm_prov;
extern const struct prov shm_kind;
extern const struct prov_pep_ops shm_pep_ops;
#define shm_log(...) prov_log(&shm_prov, __VA_ARGS__)

/* Objects --------------------------------------------------------------------------- */

struct shm_ep;
TAILQ_HEAD(shm_eps, shm_ep);

struct shm_cq {
	struct prov_cq q;

	/* Receiving endpoints, by bell bit; past BELL_BITS they follow next_slot. */
	struct shm_ep **slots;
	uint32_t next_slot;  /* where to start looking for a free one */
	uint32_t slots_used; /* slots from here on were never used */
	uint32_t sweep;      /* the slot to check next */
	uint32_t polls;      /* free-running */
	struct bell *bell;
	int bell_fd; /* passed to peers */
	/* In a shared set: endpoints with wake-up bytes to take before the next sleep. */
	LIST_HEAD(, shm_ep) rung;
};

#define SHM_INJECT_MAX   4096
#define SHM_OP_FLAGS     FI_DELIVERY_COMPLETE /* of sends, in addition to the common ones */
#define SHM_MESSAGE_MAX  (UINT64_C(1) << 40)
#define SHM_POLL_RECORDS 64 /* max records per poll */
#define SHM_POLL_PARTS   8  /* max parts of large messages written per poll */

/* A send not done when fi_send returns: parts remain to be written, or the peer must read it. */
struct shm_send {
	struct prov_message message;
	struct iovec pieces[PROV_IOV_MAX]; /* of the message */
	uint64_t written;                  /* if it is all of the message, it only waits for head */
	uint64_t end;                      /* it is done when head reaches this */
};

/* How it asks to be called follows from the list of its queue that it is in:
 *   LISTED_HOT     not at all; CALL_WAKE if is_armed
 *   LISTED_ASIDE   CALL_BELL
 *   LISTED_NOT     CALL_BELL and CALL_WAKE; or it is starved, or not connected */
struct shm_ep {
	struct prov_ep base; /* its tx_head and tx_tail index sends */
	bool shut_down;      /* fi_shutdown was called here */
	bool is_armed;       /* if hot: asked to be woken; nothing has arrived since */
	bool broken;         /* the peer wrote garbage: nothing more is read */
	bool is_sending;     /* in the domain's list */
	bool calls_later;    /* in the domain's list of callers */
	bool has_rung;       /* in its queue's list */
	bool owes_call;      /* records were published without a reliable check (ring_call) */

	/* Receiving. */
	struct ring_reader reader;
	uint64_t drain_end; /* upper bound of head once the peer hung up */
	/* A message arriving in parts, by records or by reads. */
	struct record part; /* its first: RECORD_FIRST or RECORD_READ; kind 0: none */
	uint64_t part_total, part_done;
	struct iovec sources[PROV_IOV_MAX]; /* of RECORD_READ: in the peer's memory */
	uint32_t source_count;
	uint64_t source_start; /* bytes of the message that were in the record */
	struct shm_peer peer_process;
	bool may_read; /* the peer's memory */
	uint32_t slot; /* in its queue */
	struct shm_ep *next_slot;

	/* Sending. */
	struct ring_writer writer;
	uint64_t inline_max; /* longer messages take more than one record */
	struct bell *peer_bell;
	uint32_t peer_bell_bit;
	struct shm_send *sends;
	uint32_t tx_mask;
	TAILQ_ENTRY(shm_ep) send_link;
	struct shm_ep *next_caller; /* in the domain's list, if calls_later */

	/* Connection. */
	struct plx_watch doorbell; /* its socket, once connected; base.source: until then */
	LIST_ENTRY(shm_ep) rung_link;
	int segment_fd; /* of the receiving ring, until sent; else -1 */
	/* A word that the peer reads after each message that it reads from our memory. Cleared
	 * before the first message comes back unread. Alone in its line: a line that we write would
	 * delay each read by a cache miss. */
	uint8_t before_probe[PLX_CACHE_LINE];
	_Atomic uint64_t probe;
	uint8_t after_probe[PLX_CACHE_LINE];
};

struct shm_domain {
	struct prov_domain base;
	struct shm_eps sending; /* endpoints with sends in flight */
	struct shm_ep *callers; /* endpoints that call their peers in the next poll, if needed */
	uint64_t looked_ns;     /* when a poll last checked for hang-ups */
};

static inline struct shm_cq *rx_cq_of(const struct shm_ep *ep)
{
	return (struct shm_cq *)ep->base.rx_cq;
}

static inline struct shm_domain *domain_of(const struct shm_ep *ep)
{
	return (struct shm_domain *)ep->base.domain;
}

/* provider.c ----------------------------------------------------------------------- */

int shm_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info_out);
int shm_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric_out, void *context);

/* cq.c ------------------------------------------------------------------------------------- */

extern const struct prov_cq_ops shm_cq_ops;
/* Give a receiving endpoint its bell bit, in ep->slot. */
void cq_attach(struct shm_cq *cq, struct shm_ep *ep);
void cq_detach(struct shm_cq *cq, struct shm_ep *ep);
void cq_clear_wakes(struct shm_cq *cq); /* clear what woke the queue or would wake it */
void cq_doorbell_rang(struct plx_watch *doorbell, uint32_t events);
void cq_forget_doorbell(struct shm_ep *ep); /* before its socket is closed */

/* ep.c ------------------------------------------------------------------------------------- */

extern const struct prov_ep_ops shm_ep_ops;
extern const struct prov_domain_ops shm_domain_ops;

/* For Pollux's links: see plx_fabric_driver.h. */
pid_t ep_peer_pid(const struct fid_ep *fid);

/* connect.c: see struct prov_ep_ops --------------------------------------------------------- */

int shm_ep_connect(struct prov_ep *base, const void *data, size_t length);
int shm_ep_accept(struct prov_ep *base, const void *data, size_t length);
void shm_ep_shutdown(struct prov_ep *base);
void shm_ep_disconnect(struct prov_ep *base);
/* The socket of a connecting endpoint is readable; that of a connected one hung up. */
void ep_incoming(struct plx_watch *socket, uint32_t events);

/* progress.c ------------------------------------------------------------------------------- */

void progress_begin(struct shm_ep *ep);   /* connected: polled from now on */
void progress_end(struct shm_ep *ep);     /* closed */
void progress_hang_up(struct shm_ep *ep); /* the peer left: deliver, flush, report */
void progress_broken(struct shm_ep *ep);  /* the peer or its data is unusable */
bool progress_peer_is_there(const struct shm_ep *ep);
void progress_send_later(struct shm_ep *ep); /* it has sends in flight */
void progress_poll(struct shm_cq *cq);       /* first step of a read of the queue */
void progress_activate(struct shm_ep *ep);
void progress_posted(struct prov_ep *ep);
bool progress_arm(struct shm_cq *cq); /* returns whether it is idle and may sleep */

/* send.c ----------------------------------------------------------------------------------- */

extern struct fi_ops_msg shm_msg_ops;
/* Writes at most *parts parts and decrements it. Returns whether it wrote or completed anything. */
bool send_go_on(struct shm_ep *ep, uint32_t *parts);
void send_flush(struct shm_ep *ep, int err);
void ep_wake_peer(struct shm_ep *ep);            /* one byte on the socket */
void send_call_peers(struct shm_domain *domain); /* call the peers of endpoints in callers */
/* For Pollux's links: see claim, commit and send_copy in plx_fabric_driver.h. */
void *send_claim(struct fid_ep *fid, size_t length);
void send_commit(struct fid_ep *fid, size_t length);
ssize_t send_copy(struct fid_ep *fid, const struct iovec *iov, size_t count, void *room,
		  void *context);

/* receive.c -------------------------------------------------------------------------------- */

uint32_t receive_poll(struct shm_ep *ep, uint32_t max); /* returns records taken */
/* See struct prov_ep_ops. */
bool receive_is_in_parts(const struct prov_ep *base, bool *is_held_out);

#endif
