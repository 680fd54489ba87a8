/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * For authors of drivers. A driver describes a class of libfabric providers, or adds its own
 * provider through getinfo and fabric; it is not a second abstraction next to libfabric.
 * plx_fabric_init takes the table of drivers.
 */
#ifndef PLX_FABRIC_DRIVER_H
#define PLX_FABRIC_DRIVER_H

#include "plx_admit.h"
#include "plx_fabric.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <sys/socket.h>

PLX_BEGIN_DECLS

struct plx_watch_ops; /* plx_watch.h */

/** libfabric objects that one lcore has open with one provider. */
struct plx_fabric_fids {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_eq *eq;
	/** How to share the lcore's epoll set; NULL: the queues have a descriptor each. */
	const struct plx_watch_ops *watch_ops;
	size_t cq_entries;           /**< size of the CQ: requested by lib/fabric, then the actual
					  one */
	enum fi_cq_format cq_format; /**< of the CQ, as lib/fabric reads it */
};

/** Descriptors that the provider opens for a link must be close-on-exec. Its endpoints may report
 * how far an incomplete frame has arrived (fi_open_ops, plx_arrival.h): all of them or none.
 * Otherwise a peer is heard only when a frame is complete. */
struct plx_fabric_driver {
	const char *name; /**< "tcp" */

	/** Purpose, one line. */
	const char *summary;

	/** libfabric's name of its provider: "plx_tcp". Users may give either name. */
	const char *provider;

	/** How to find and open providers. NULL: libfabric's fi_getinfo and fi_fabric; otherwise
	 * the driver's own provider. */
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info_out);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric_out, void *context);

	/** The device of an info, if connections of a device need its own domain: each lcore then
	 * opens its objects per device. Return: its name; NULL: a listening address of no single
	 * device. NULL for the function: one domain serves all. */
	const char *(*device)(const struct fi_info *info);

	/** Whether connections of an info follow iWARP's rules. NULL for the function: no.
	 * - A frame without a posted receive ends the connection; elsewhere it waits. So links post
	 *   more receives, and hold back frames that a stalled peer does not need.
	 * - The target of a remote read must be writable for the peer. So each target is registered
	 *   separately for the duration of the read. */
	bool (*is_iwarp)(const struct fi_info *info);

	/** It reaches only this host. With automatic selection it is tried first for addresses of
	 * this host, and listeners also listen on it. */
	bool same_host;

	/** It reaches other hosts by RDMA. With automatic selection, and if this host has it, it
	 * is tried before the default driver. If the peer refuses or does not answer, the default
	 * follows. */
	bool rdma;

	/** A listener at :: accepts IPv4 connections too, whatever net.ipv6.bindv6only is. */
	bool takes_ipv4;

	/** Apply the driver's settings, KEY=VALUE,... (plx_parse_settings). option: the name the
	 * user gave. settings NULL: restore the defaults. check: only validate. Return: 0; -EINVAL
	 * with plx_error(). NULL for the function: no settings. */
	int (*configure)(const char *option, const char *settings, bool check);

	/** Complete lib/fabric's hints (FI_EP_MSG, FI_MSG, FI_THREAD_DOMAIN, manual progress,
	 * provider's name, sizes below). May be NULL. */
	void (*hints)(struct fi_info *hints);

	/** Open fids->cq, in the format fids->cq_format, and fids->eq, as plx_fabric_open_queues
	 * does, and set cq_entries if it differs from the request. fids->fabric and ->domain are
	 * open, by info. Return: 0 or a libfabric error; the caller closes what is open. NULL for
	 * the function: plx_fabric_open_queues. */
	int (*open_queues)(struct plx_fabric_fids *fids, const struct fi_info *info);

	/** The provider accepts connections before they send a request (FI_CONNREQ), and asks these
	 * calls which to take; set before fi_listen. ticket: of the connection that sent this
	 * request, and the caller's from now on. Both NULL: a connection begins with FI_CONNREQ. */
	void (*admit)(struct fid_pep *pep, const struct plx_admit_calls *calls);
	void *(*ticket)(const struct fi_info *request);

	/** Reject a connection request that was read, on any lcore, also after its passive endpoint
	 * is closed. handle: of its info. Return: 0; -FI_EINVAL too much data. NULL: fi_reject, on
	 * the lcore of the passive endpoint. */
	int (*reject)(fid_t handle, const void *data, size_t length);

	/** Private data of fi_connect, fi_accept and fi_reject may have 256 bytes and arrives with
	 * its event, and an endpoint may send once fi_accept has returned. Otherwise it has 40
	 * bytes of a link's HELLO, and the rest of that is a frame. */
	bool long_private_data;

	/** It supports remote memory (FI_RMA), so links may have direct data placement. */
	bool direct;

	/** Links with direct data placement may share a domain and a queue with others: fi_mr_bind
	 * binds a registration to an endpoint, whose peer alone may then reach it. And completions
	 * of remote writes with data to this endpoint have that context, and the data as their
	 * length. Call before it connects. NULL: each such link gets a separate domain. */
	void (*name_writes)(struct fid_ep *ep, void *context);

	/** Whether closing a registration also stops operations in flight: they fail and no longer
	 * reach the memory. Otherwise lib/fabric asks the peer before it releases the memory. NULL
	 * for the function: no. */
	bool (*revokes_at_once)(const struct fi_info *info);

	/** Why fi_listen failed: text after "listen on ADDRESS: ", valid until the passive endpoint
	 * is closed. Return NULL for lib/fabric's text for the error. NULL for the function:
	 * always. */
	const char *(*listen_failure)(const struct fid_pep *pep);

	/** Why a connection broke or could not be made: text after "the peer's address: ", valid
	 * until the endpoint is closed, and the reason. Return NULL for lib/fabric's default text.
	 * prov_errno: the provider's error number of a completion; 0: none. NULL for the function:
	 * always the default. */
	const char *(*failure)(const struct fid_ep *ep, int prov_errno,
			       enum plx_link_reason *reason_out);

	/** The process of a connected endpoint's peer, as the kernel names it; 0: it is not in this
	 * PID namespace. NULL for the function: only the peer knows. */
	pid_t (*peer_pid)(const struct fid_ep *ep);

	/** Detect that the host of a connected endpoint's peer is lost, although nothing is sent:
	 * the link has no heartbeats. unanswered_ns: also give up a peer that leaves data
	 * unacknowledged or unread for that long; 0: as long as the provider does. NULL for the
	 * function: nothing detects it. */
	void (*keep_alive)(struct fid_ep *ep, uint64_t unanswered_ns);

	/** Send frames that wait for the next read or arm of the queue. Providers may delay all
	 * frames of an endpoint after its first one since the last read; such queues are read in
	 * the next turn, however idle. For a loop that ends. NULL: no frames wait. */
	void (*flush)(struct plx_fabric_fids *fids);

	/** Write a frame in the provider's send buffer. claim: `bytes` bytes of space on the
	 * endpoint. All of it must be written before commit sends it, with no other send in
	 * between. Return: NULL if there is none now, or never for that size; the frame is then
	 * sent normally. No completion follows. An uncommitted claim has no effect.
	 * A peer that falls asleep at that moment may be woken only by the next read or arm of the
	 * queue: a turn later, or 16 if the queue was idle for long. Both may be NULL. */
	void *(*claim)(struct fid_ep *ep, size_t bytes);
	void (*commit)(struct fid_ep *ep, size_t bytes);

	/** Send a frame from memory that the caller may reuse at once: the provider sends what it
	 * can, and copies the rest to `room`, which has as many bytes as the frame and is the
	 * provider's until the completion of `context`. count: 1 to 4. Return: 0; or an error, as
	 * fi_sendv. NULL: lib/fabric copies the frame first. */
	ssize_t (*send_copy)(struct fid_ep *ep, const struct iovec *iov, size_t count, void *room,
			     void *context);

	/** Fill the receive that was posted last first, if it is long: its buffer is still in the
	 * cache. Each completion names its receive, so a link does not need their order. NULL:
	 * they are filled in the order in which they were posted. */
	void (*reuse_receives)(struct fid_ep *ep);

	size_t tx_size;        /**< operations in flight per link */
	size_t direct_tx_size; /**< with direct data placement; 0: as tx_size */
	size_t rx_size;        /**< maximum receives posted per link */
	size_t cq_entries;     /**< size of the completion queue */
	bool cq_overruns;      /**< the queue must never hold more: links post receives for at most
				    half of it, the rest is for sends, and further links get another
				    queue */
	uint32_t signal_every; /**< at least every n-th frame requests a completion, for providers
				    that queue injected frames without limit or hide their failures;
				    0: never */
	bool needs_mr;         /**< register zones and use their descriptors */
	const char *unreachable; /**< why an address may be unreachable: a question after "is the
				      name right, and "; NULL: a missing route */
};

/** Open queues that share the lcore's epoll set if the provider can; otherwise with a descriptor
 * each (FI_WAIT_FD). fi_trywait arms both before every sleep. See open_queues of struct
 * plx_fabric_driver.
 * Thread: owner. Return: 0 or a libfabric error. */
int plx_fabric_open_queues(struct plx_fabric_fids *fids, const struct fi_info *info);

/** Drivers of this build, terminated by NULL. The first one that reaches other hosts is their
 * default. */
extern const struct plx_fabric_driver *const plx_drivers[];

PLX_END_DECLS

#endif
