/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of drivers/shm share: the objects of the provider plx_shm.
 *
 *   shm_fabric    EQs and passive endpoints belong to it
 *   shm_domain    CQs and endpoints belong to it
 *   shm_cq        completions, the bell of its receiving endpoints, and what it sleeps on
 *   shm_eq        connection events, and the sockets they come from
 *   shm_pep       a listening socket, and the requests that were not answered yet
 *   shm_ep        one connection: two rings, a socket, posted receives, sends under way
 *
 * Threads: FI_THREAD_DOMAIN. Calls on a domain, on all that belongs to it, and on the EQs that its
 * endpoints are bound to are made by one thread at a time. Progress is manual: everything happens
 * inside fi_cq_read and fi_eq_read (or what waits for them). Nothing blocks. */
#ifndef SHM_H
#define SHM_H

#include "ring.h"

#include <netinet/in.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#define SHM_NAME         "plx_shm"
#define SHM_VERSION      FI_VERSION(0, 1)
#define SHM_API_VERSION  FI_VERSION(1, 5) /* the least that is understood */

#define SHM_CM_DATA_MAX  256 /* private data of connect, accept and reject */
#define SHM_IOV_MAX      4
#define SHM_TX_SIZE      256
#define SHM_TX_SIZE_MAX  4096
#define SHM_RX_SIZE      256
#define SHM_RX_SIZE_MAX  4096
#define SHM_INJECT_MAX   4096
#define SHM_MESSAGE_MAX  (UINT64_C(1) << 40)
#define SHM_CQ_SIZE      1024
#define SHM_CQ_SIZE_MAX  (1u << 20)
#define SHM_BACKLOG      1024 /* of a passive endpoint: requests in the kernel, and unanswered ones */

#define SHM_POLL_RECORDS 64 /* records taken in one poll, at most */
#define SHM_RING_BYTES   (UINT32_C(256) << 10)

struct shm_ep;
struct shm_eq;

/* Parameters, read once from the environment (FI_PLX_SHM_...) by prov.c. */
struct shm_params {
	uint32_t ring_bytes; /* of each receiving ring: a power of two */
	uint64_t inline_max; /* messages up to it go through the ring in one record */
	bool cma;            /* read large ones from the sender's memory */
	bool has_group;      /* members of this group may connect too */
	uint32_t group;      /* gid */
};
extern struct shm_params shm_params;
extern struct fi_provider shm_prov;
void shm_log(enum fi_log_level level, const char *format, ...) PLX_PRINTF(2, 3); /* prov.c */

/* Lists ------------------------------------------------------------------------------------ */

/* A ring of links, which its owner is one of. */
struct shm_list {
	struct shm_list *next, *prev;
};

static inline void list_init(struct shm_list *list)
{
	list->next = list->prev = list;
}

static inline bool list_is_empty(const struct shm_list *list)
{
	return list->next == list;
}

static inline void list_append(struct shm_list *list, struct shm_list *link)
{
	link->next = list;
	link->prev = list->prev;
	list->prev->next = link;
	list->prev = link;
}

static inline void list_remove(struct shm_list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
}

/* Objects ---------------------------------------------------------------------------------- */

struct shm_fabric {
	struct fid_fabric fid;
	/* Domains, EQs and PEPs, which threads of their own may open: fi_close is -FI_EBUSY while
	 * there are any. Relaxed throughout: nothing is read through it. */
	_Atomic uint32_t refs;
	uint32_t api_version;
};

static inline void fabric_ref(struct shm_fabric *fabric)
{
	atomic_fetch_add_explicit(&fabric->refs, 1, memory_order_relaxed);
}

static inline void fabric_unref(struct shm_fabric *fabric)
{
	atomic_fetch_sub_explicit(&fabric->refs, 1, memory_order_relaxed);
}

/* An EQ that endpoints of a domain are bound to: how many. */
struct shm_watch {
	struct shm_watch *next;
	struct shm_eq *eq;
	uint32_t endpoints;
};

struct shm_domain {
	struct fid_domain fid;
	struct shm_fabric *fabric;
	struct shm_list sending;   /* endpoints with sends under way */
	struct shm_list cqs;       /* all of its completion queues */
	struct shm_watch *watches; /* the EQs of its endpoints */
	uint32_t refs;             /* CQs, endpoints, MRs */
	void *mrs;                 /* registrations by key, for tsearch(3) */
	uint64_t next_key;         /* where chooses_keys */
	bool chooses_keys;         /* FI_MR_BASIC */
	uint64_t looked_ns;        /* when a poll last looked for peers that hung up */
};

/* A completion that waits to be read. err: 0, or it is one for fi_cq_readerr. */
struct shm_completion {
	void *context;
	uint64_t flags;
	size_t length;
	void *buf;
	uint64_t data;
	size_t overlong; /* olen */
	int err;
};

enum shm_listed { LISTED_NOT, LISTED_ACTIVE, LISTED_BELLED };

struct shm_cq {
	struct fid_cq fid;
	struct shm_list link; /* in the domain's list */
	struct shm_domain *domain;
	enum fi_cq_format format;
	/* Free-running. Receives and sends stop at `size`; what failed or was cancelled comes on
	 * top, and has room as each endpoint brought as much as it can have posted. */
	struct shm_completion *queue;
	uint32_t head, tail, mask, size;
	uint32_t reserved; /* by endpoints */
	uint32_t refs;     /* bound endpoints */
	bool can_sleep;

	/* Receiving endpoints: those that are looked at every poll, and all. */
	struct shm_list active; /* those that are looked at every poll: CALL_NONE */
	struct shm_list belled; /* CALL_BELL; endpoints in neither have CALL_WAKE, or are starved */
	uint32_t active_count;
	struct shm_ep **slots; /* by bell bit; those beyond BELL_BITS by next_slot */
	uint32_t next_slot;    /* where to look for a free one */
	uint32_t slots_used;   /* those from there on were never used */
	uint32_t sweep;        /* the slot to look at next */
	uint32_t polls;        /* free-running */
	struct bell *bell;
	int bell_fd; /* given to peers */

	int epoll_fd;  /* FI_WAIT_FD: sockets of its endpoints, and signal_fd; else -1 */
	int signal_fd; /* fi_cq_signal, and completions that come from outside a read */
};

struct shm_event {
	struct shm_event *next;
	uint32_t event; /* FI_CONNREQ ...; of an error: its err */
	bool is_error;
	bool is_user; /* by fi_eq_write: data is all of it */
	fid_t fid;
	void *context;
	struct fi_info *info; /* of a request, until it is read */
	uint32_t length;      /* of data */
	uint8_t data[SHM_CM_DATA_MAX];
};

struct shm_eq {
	struct fid_eq fid;
	struct shm_fabric *fabric;
	struct shm_event *first, **last;
	uint8_t err_data[SHM_CM_DATA_MAX]; /* valid until the next read */
	uint32_t refs;
	enum fi_wait_obj wait_obj;
	bool can_write; /* FI_WRITE was asked for */
	bool reading;   /* inside a read of it: who reads needs no signal */
	bool signalled; /* signal_fd is readable: so while events are queued, between reads */
	int epoll_fd;   /* listening sockets, handshakes, hang-ups; always there */
	int signal_fd;  /* in epoll_fd; -1 for FI_WAIT_NONE */
};

/* What epoll_event.data.ptr of an EQ points to; NULL for its signal_fd. */
enum shm_source_kind { SOURCE_PEP, SOURCE_PEP_TIMER, SOURCE_REQUEST, SOURCE_EP };
struct shm_source {
	enum shm_source_kind kind;
	int fd; /* -1: none */
};

/* The other side's half of a connection, as its message told and checks let it pass. Owns what it
 * holds until the endpoint takes it over. */
struct shm_offer {
	struct segment segment; /* we send into it */
	struct bell *bell;
	uint32_t bell_bit;
	uint64_t probe_address, probe_value; /* for trying to read its memory */
	pid_t pid;
	struct sockaddr_storage address; /* the peer's own */
};

/* A connection that came in, until fi_accept or fi_reject: info->handle. It is its passive
 * endpoint's, and an endpoint's that is made from it: that one may be of another thread. */
struct shm_request {
	struct fid fid; /* FI_CLASS_CONNREQ */
	struct shm_source source;
	struct shm_pep *pep; /* NULL: an endpoint's */
	struct shm_request *next;
	bool told;      /* FI_CONNREQ was queued */
	uint32_t ticks; /* of the passive endpoint's timer, without a first message */
	struct shm_offer offer;
};

struct shm_pep {
	struct fid_pep fid;
	struct shm_fabric *fabric;
	struct shm_eq *eq;
	struct fi_info *info;
	struct shm_source source;
	struct sockaddr_storage address; /* port 0 until it listens, or fi_setname */
	bool listening;
	struct shm_source timer; /* a timerfd: requests that say nothing, and `paused` */
	bool ticking;            /* it runs */
	uint32_t backlog;
	/* An endpoint may be made from a request on a thread of its own. */
	pthread_mutex_t lock;
	struct shm_request *requests;
	uint32_t request_count;
	bool paused; /* no more is accepted: backlog is reached, or descriptors ran out */
};

enum shm_ep_state {
	EP_IDLE,       /* made, maybe enabled; receives may be posted */
	EP_CONNECTING, /* our half was sent */
	EP_CONNECTED,
	EP_DRAINING, /* the peer hung up or we shut down: what it sent is still delivered */
	EP_DEAD,     /* all flushed */
};

/* A posted receive. More pieces than one: in the endpoint's `pieces`, at its own index. */
struct shm_receive {
	void *buf; /* the first piece */
	size_t length;
	void *context;
	uint64_t flags; /* FI_COMPLETION: wanted */
	size_t total;   /* of all pieces */
	uint32_t pieces;
	bool cancelled; /* its completion was queued already */
};

/* A send that is not done when fi_send returns: parts are still to be written, or the peer still
 * has to read it. */
struct shm_send {
	void *context;
	uint64_t flags; /* of the operation */
	uint64_t data;
	uint64_t total, written; /* written == total: only waits for the head */
	uint64_t end;            /* it is done when the head is here */
	struct iovec pieces[SHM_IOV_MAX];
	uint32_t piece_count, piece;
	size_t offset; /* in that piece */
	bool has_data, wants_completion;
};

struct shm_ep {
	struct fid_ep fid;
	uint8_t state;  /* enum shm_ep_state */
	uint8_t listed; /* enum shm_listed: in which list of rx_cq */
	bool enabled, tx_selective, rx_selective;
	bool shut_down;  /* by fi_shutdown here */
	bool starved;    /* a record is there, and no receive posted for it */
	bool broken;     /* the peer wrote what cannot be: nothing more is read */
	bool is_sending; /* in the domain's list */
	struct shm_cq *rx_cq, *tx_cq;
	struct shm_domain *domain;

	/* Receiving. */
	struct ring_reader reader;
	uint64_t drain_end; /* where the head can be at most, once the peer hung up */
	struct shm_receive *receives;
	uint32_t rx_head, rx_tail, rx_mask, rx_size; /* free-running */
	uint32_t idle_looks;
	uint64_t rx_flags; /* default operation flags */
	struct shm_list link;
	/* A message that comes in parts, by records or by reads; part_kind 0: none. */
	uint8_t part_kind; /* RECORD_FIRST or RECORD_READ */
	bool part_has_data;
	uint64_t part_total, part_done, part_data;
	struct record_piece sources[SHM_IOV_MAX]; /* of RECORD_READ: in the peer's memory */
	uint32_t source_count;
	pid_t peer_pid;
	struct iovec *pieces; /* SHM_IOV_MAX for each posted receive; NULL: none ever had two */
	uint32_t slot;        /* in rx_cq->slots */
	struct shm_ep *next_slot;

	/* Sending. */
	struct ring_writer writer;
	uint64_t inline_max; /* longer messages do not go through the ring in one record */
	struct bell *peer_bell;
	uint32_t peer_bell_bit;
	struct shm_send *sends;
	uint32_t tx_head, tx_tail, tx_mask, tx_size; /* free-running */
	uint64_t tx_flags;
	struct shm_list send_link;

	/* Connection. */
	struct shm_source source; /* the socket */
	struct shm_eq *eq;
	struct fi_info *info;
	struct shm_request *request; /* it was made from, until fi_accept */
	struct shm_later *later; /* the peer's backlog is full: source is a timer, to try again */
	int segment_fd;          /* of the receiving ring, until it is sent; else -1 */
	struct sockaddr_storage local, peer;
	uint64_t probe; /* a word that the peer reads to see whether it can */
};

/* prov.c, attr.c, info.c ------------------------------------------------------------------- */

/* To be called first by whatever may be an application's first call: reads the parameters. */
void shm_begin(void);
/* The same for the module, while libfabric loads it and none of its own calls may be made. */
void shm_begin_loading(void);

/* What the provider has at most; copies of it are what fi_getinfo answers. */
extern const struct fi_info shm_info_most;
/* Whether that is enough for the hints; where not, the reason is in the log (FI_LOG_INFO). */
bool shm_hints_fit(const struct fi_info *hints);
bool shm_domain_attr_fits(const struct fi_domain_attr *attr);
/* Turn a copy of shm_info_most into an answer to hints, which fit; NULL: to none. */
void shm_info_narrow(struct fi_info *info, const struct fi_info *hints);

int shm_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info_out);
int shm_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric_out, void *context);

/* The info that a connection request carries: the passive endpoint's, with addresses and handle. */
struct fi_info *shm_info_of_request(const struct shm_pep *pep, const struct sockaddr *peer,
				    struct fid *handle);

/* address.c -------------------------------------------------------------------------------- */

/* Whether it is an address of this host. */
bool shm_address_is_local(const struct sockaddr *address);
socklen_t shm_address_bytes(const struct sockaddr *address);
uint16_t shm_address_port(const struct sockaddr *address);
void shm_address_set_port(struct sockaddr *address, uint16_t port);

/* The abstract UNIX socket names behind an address, in the order to be tried by a connector: the
 * address itself, then the wildcards that cover it. A listener uses the first alone. Returns how
 * many, at most 3. */
struct sockaddr_un;
int shm_address_names(const struct sockaddr *address, struct sockaddr_un *names_out,
		      socklen_t *lengths_out);

/* For fi_getname and its like: -FI_ETOOSMALL and what fits, where it does not. (connect.c) */
int address_give(const struct sockaddr_storage *address, void *out, size_t *bytes);
/* Check an address of a caller, and copy it: -FI_EINVAL. (connect.c) */
int address_take(const void *address, size_t bytes, struct sockaddr_storage *out);

/* fabric.c, domain.c, mr.c ----------------------------------------------------------------- */

/* Whether the object is one of this copy of the provider. */
bool shm_is_fabric(const struct fid_fabric *fid);
bool shm_is_domain(const struct fid_domain *fid);
int shm_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain_out,
		    void *context);
/* An endpoint of the domain is, or is no longer, bound to that EQ. */
int domain_watch(struct shm_domain *domain, struct shm_eq *eq);
void domain_unwatch(struct shm_domain *domain, struct shm_eq *eq);
extern struct fi_ops_mr shm_mr_ops;

/* Entries for what the provider does not have. */
int shm_no_bind(struct fid *fid, struct fid *bound, uint64_t flags);
int shm_no_control(struct fid *fid, int command, void *arg);
int shm_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops_out,
		    void *context);

/* segment.c: memory shared with a peer ------------------------------------------------------ */

/* A new ring, on the calling thread's NUMA node, sealed. fd: to be sent and closed by the caller.
 */
int segment_create(uint32_t ring_bytes, struct segment *segment_out, int *fd_out);
/* Check and map what a peer gave: -FI_EINVAL with a reason in the log. Does not close fd. */
int segment_map(int fd, uint32_t ring_bytes, struct segment *segment_out);
void segment_unmap(struct segment *segment); /* accepts one that is all zero */
int bell_create(struct bell **bell_out, int *fd_out);
int bell_map(int fd, struct bell **bell_out);
void bell_unmap(struct bell *bell);

/* wire.c: messages of the handshake ---------------------------------------------------------- */

enum wire_kind { WIRE_CONNECT = 1, WIRE_ACCEPT = 2, WIRE_REJECT = 3 };

/* Our half, to be sent. */
struct wire_half {
	uint32_t ring_bytes, bell_bit;
	uint64_t probe_address, probe_value;
	struct sockaddr_storage address;
	int segment_fd, bell_fd; /* stay the caller's */
};

/* Send one message. half: NULL for WIRE_REJECT. Return: 0; -FI_EAGAIN; -FI_ENOTCONN ... */
int wire_send(int fd, enum wire_kind kind, const struct wire_half *half, const void *data,
	      size_t length);

/* Receive one, check all of it and who sent it, and map what it brings. data_out has room for
 * SHM_CM_DATA_MAX. Return: 0; -FI_EAGAIN nothing there; else the connection is of no use:
 * -FI_EACCES another user; -FI_ENOTCONN hung up; -FI_EINVAL broken. */
int wire_receive(int fd, enum wire_kind *kind_out, struct shm_offer *offer_out, void *data_out,
		 uint32_t *length_out);
void offer_release(struct shm_offer *offer);
/* Whether the process at the other end of the socket may be talked to. */
bool wire_peer_allowed(int fd, pid_t *pid_out);

/* eq.c ------------------------------------------------------------------------------------- */

int shm_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq_out,
		void *context);
/* Queue an event. data: private data, or NULL. outside: not inside a read of this EQ, so that a
 * sleeper is woken. info: becomes the event's. */
int eq_push(struct shm_eq *eq, uint32_t event, fid_t fid, struct fi_info *info, const void *data,
	    uint32_t length);
int eq_push_error(struct shm_eq *eq, fid_t fid, int err, const void *data, uint32_t length);
void eq_forget(struct shm_eq *eq, fid_t fid); /* its events that were not read */
int eq_watch(struct shm_eq *eq, struct shm_source *source, uint32_t epoll_events);
void eq_unwatch(struct shm_eq *eq, struct shm_source *source);
/* Handle what sockets have: at most 16 of them. Returns how many. */
int eq_progress(struct shm_eq *eq);
int eq_arm(struct shm_eq *eq); /* fi_trywait */

/* pep.c ------------------------------------------------------------------------------------ */

int shm_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep_out,
		 void *context);
void pep_incoming(struct shm_pep *pep);             /* its listening socket is readable */
void request_incoming(struct shm_request *request); /* so is that of a request, or it hung up */
void pep_tick(struct shm_pep *pep);                 /* its timer expired */
void request_take(struct shm_request *request);     /* from its passive endpoint */
void request_free(struct shm_request *request);

/* ep.c: making, binding, options; connect.c: connect, accept, shutdown, hang-up -------------- */

int shm_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep_out,
		void *context);
extern struct fi_ops_cm shm_ep_cm_ops;
int ep_enable(struct shm_ep *ep);      /* unless it is enabled already */
void ep_disconnect(struct shm_ep *ep); /* closes its socket; accepts one that has none */
void ep_incoming(struct shm_ep *ep);   /* its socket has something, or hung up */
/* Both halves are there: rings and bell are set, the data path may begin. */
int ep_take_offer(struct shm_ep *ep, struct shm_offer *offer);

/* cq.c ------------------------------------------------------------------------------------- */

int shm_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq_out,
		void *context);
/* Room for so many completions more that cannot be put off. Return: 0; -FI_ENOMEM. */
int cq_reserve(struct shm_cq *cq, uint32_t count);
void cq_unreserve(struct shm_cq *cq, uint32_t count);
/* A receiving endpoint gets its bell bit, in ep->slot. */
void cq_attach(struct shm_cq *cq, struct shm_ep *ep);
void cq_detach(struct shm_cq *cq, struct shm_ep *ep);
/* Its socket is what the queue is woken by, from connected to hung up. */
int cq_watch(struct shm_cq *cq, struct shm_ep *ep);
void cq_unwatch(struct shm_cq *cq, struct shm_ep *ep);
int cq_arm(struct shm_cq *cq); /* fi_trywait */

static inline bool cq_has_room(const struct shm_cq *cq)
{
	return cq->tail - cq->head < cq->size;
}

/* Also beyond the size, for what was reserved. */
static inline void cq_push(struct shm_cq *cq, const struct shm_completion *completion)
{
	cq->queue[cq->tail++ & cq->mask] = *completion;
}

/* progress.c ------------------------------------------------------------------------------- */

void progress_begin(struct shm_ep *ep);   /* connected: from here on it is polled */
void progress_end(struct shm_ep *ep);     /* closed */
void progress_hang_up(struct shm_ep *ep); /* the peer is gone: deliver, flush, tell */
void progress_broken(struct shm_ep *ep);  /* the peer, or what it wrote, is of no use */
bool progress_peer_is_there(const struct shm_ep *ep);
void progress_send_later(struct shm_ep *ep); /* it has sends under way */
void progress_poll(struct shm_cq *cq);       /* what one read of the queue does before it looks */
void progress_activate(struct shm_ep *ep);
bool progress_arm(struct shm_cq *cq); /* returns whether there is nothing to do: it may sleep */

/* send.c, receive.c ------------------------------------------------------------------------ */

extern struct fi_ops_msg shm_msg_ops;
int send_init(struct shm_ep *ep);
void send_fini(struct shm_ep *ep);
bool send_go_on(struct shm_ep *ep); /* returns whether something was written or completed */
void send_flush(struct shm_ep *ep, int err);
int receive_init(struct shm_ep *ep);
void receive_fini(struct shm_ep *ep);
uint32_t receive_poll(struct shm_ep *ep, uint32_t max); /* records taken */
void receive_flush(struct shm_ep *ep, int err);
void ep_wake_peer(struct shm_ep *ep); /* one byte on the socket */
ssize_t shm_receive_postv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t source, void *context);
ssize_t shm_receive_postmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags);
ssize_t shm_receive_post(struct fid_ep *fid, void *buf, size_t length, void *desc, fi_addr_t source,
			 void *context);
ssize_t receive_cancel(struct shm_ep *ep, void *context);

/* refuse.c: what endpoints do not have ------------------------------------------------------ */

extern struct fi_ops_rma shm_no_rma;
extern struct fi_ops_tagged shm_no_tagged;
extern struct fi_ops_atomic shm_no_atomic;
extern struct fi_ops_collective shm_no_collective;

#endif
