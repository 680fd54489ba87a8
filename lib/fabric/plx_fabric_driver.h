/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * For those who write a driver. A driver is a profile of facts about libfabric providers of one
 * kind, or brings a provider of its own through getinfo and fabric; it is never a second
 * abstraction beside libfabric. It registers by being in the table given to plx_fabric_init.
 */
#ifndef PLX_FABRIC_DRIVER_H
#define PLX_FABRIC_DRIVER_H

#include "plx_fabric.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <sys/socket.h>

PLX_BEGIN_DECLS

/** The libfabric objects that one lcore has open with one provider. */
struct plx_fabric_fids {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_wait *wait;       /**< NULL unless the driver opened a wait set */
	int wait_fd;                 /**< of the wait set, else of the CQ; -1: cannot be slept on */
	int eq_fd;                   /**< of the EQ; -1 where the wait set covers it */
	size_t cq_entries;           /**< of the CQ: asked for by lib/fabric, then what was got */
	enum fi_cq_format cq_format; /**< of the CQ, as lib/fabric reads it */
};

/** What a listener allows, for a provider that takes connections in before they ask for one
 * (FI_CONNREQ), and ends some of them without that. */
struct plx_fabric_guard {
	/** Connections that have not asked yet; one more ends one of them. May be PLX_NO_LIMIT. */
	uint32_t handshakes_max;
	/** One was ended, in a read of the EQ. peer: its address. why: a text that goes on "the
	 * peer's address did not complete the handshake: ...", valid during the call. evicted: it
	 * made room for another one. */
	void (*refused)(const struct sockaddr *peer, const char *why, bool evicted, void *arg);
	void *arg; /**< lives as long as the passive endpoint */
};

struct plx_fabric_driver {
	const char *name; /**< "tcp" */

	/** What it is for, one line. */
	const char *summary;

	/** The libfabric provider that `asked` stands for: the driver's own name, a provider's
	 * name, or NULL where it is not this driver's. "fi:" is taken off before, and exact is then
	 * true: only the very provider will do. version: fi_version(). */
	const char *(*provider)(const char *asked, bool exact, uint32_t version);

	/** How providers are found and opened: libfabric's fi_getinfo and fi_fabric unless the
	 * driver brings its own provider. NULL: libfabric's. */
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info_out);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric_out, void *context);

	/** The device that an info is for, where connections of one need its domain: each lcore
	 * opens its objects for each device apart then. Returns its name; NULL: an address that is
	 * no device's, to listen on. NULL for the function: one domain serves all. */
	const char *(*device)(const struct fi_info *info);

	/** Whether a frame that finds no receive ends the connection: links keep more of them then,
	 * and hold back frames that a peer which stands still does not need. NULL for the function:
	 * it waits for one. */
	bool (*needs_receives)(const struct fi_info *info);

	/** The user whose process asks for a connection (the info of FI_CONNREQ), for a driver that
	 * knows: limits for each remote address are for each user then. May be NULL. */
	uid_t (*peer_user)(const struct fi_info *request);

	/** It reaches this host alone. Where the choice is left to us it is tried first for an
	 * address of this host, and a listener listens on it besides. */
	bool same_host;

	/** It reaches other hosts by RDMA. Where the choice is left to us, and this host has it, it
	 * is tried before the default; the peer that refuses or does not answer is tried by that.
	 */
	bool rdma;

	/** Nothing that it opens is inherited across exec. Else lib/fabric looks for its
	 * descriptors among all that the process has, with each connection, and the driver for its
	 * sockets: listens, of a passive endpoint; requested, of a connection that nobody else has
	 * yet, which returns it, or -1; and before that is closed, closing. All three may be NULL.
	 */
	bool closes_on_exec;
	void (*listens)(struct fid_pep *pep);
	int (*requested)(struct fid_pep *pep, const struct fi_info *request);
	void (*closing)(int fd);

	/** A listener is closed whose passive endpoint the provider may still use: give its port
	 * back. Return: whether it has to stay for a while; else it is closed now. NULL for the
	 * function: it is closed. */
	bool (*outlives_close)(struct fid_pep *pep);

	/** A listener at :: takes connections of IPv4 too, whatever net.ipv6.bindv6only says. */
	bool takes_ipv4;

	/** Settings of its own: KEY=VALUE,... (plx_parse_settings), as `option` was given; NULL:
	 * as if there never were any. check: whether they can be, and nothing else. Return: 0;
	 * -EINVAL with plx_error(). NULL for the function: it has none. */
	int (*configure)(const char *option, const char *settings, bool check);

	/** Complete the hints that lib/fabric made (FI_EP_MSG, FI_MSG, FI_THREAD_DOMAIN, manual
	 * progress, provider's name, sizes below). May be NULL. */
	void (*hints)(struct fi_info *hints);

	/** Open fids->cq, in the format fids->cq_format, and fids->eq, with the wait object that
	 * this provider can really sleep on, and set wait, wait_fd, eq_fd, and cq_entries where it
	 * is another number than was asked for. fids->fabric and ->domain are open, by info.
	 * Return: 0 or a libfabric error; the caller closes what is open. NULL for the function:
	 * plx_fabric_open_queues. */
	int (*open_queues)(struct plx_fabric_fids *fids, const struct fi_info *info);

	/** Take over what a listener allows, before fi_listen. NULL: the provider ends no
	 * connections by itself. */
	void (*guard)(struct fid_pep *pep, const struct plx_fabric_guard *guard);

	/** It has remote memory (FI_RMA), so that links may have direct data placement. */
	bool direct;

	/** Whether memory of a registration that has been closed is not reached by operations that
	 * had begun before, either: they fail. Else lib/fabric asks the peer before it lets go of
	 * the memory. NULL for the function: no. */
	bool (*revokes_at_once)(const struct fi_info *info);

	/** Whether memory that remote memory is read into has to be writable for the peer: each is
	 * registered apart then, for as long as it is read into. NULL for the function: no. */
	bool (*peer_writes_reads)(const struct fi_info *info);

	/** What ended a connection, or kept it from being made: a text that goes on "the peer's
	 * address: ...", valid until the endpoint is closed, and the reason; NULL: what lib/fabric
	 * makes of every connection that breaks. prov_errno: the provider's own number of a
	 * completion in error; 0: there is none. NULL for the function: always that. */
	const char *(*failure)(const struct fid_ep *ep, int prov_errno,
			       enum plx_link_reason *reason_out);

	/** Prepare to sleep on the descriptors. Return: 0 may sleep; -FI_EAGAIN there is work. NULL
	 * for the function: plx_fabric_arm_queues. */
	int (*arm)(struct plx_fabric_fids *fids);

	/** Frames may wait, behind the first one of an endpoint since the last read of the queue,
	 * for the next read or arm: such a set is read in the next turn, however cold. This sends
	 * them now, for a loop that ends. NULL: none waits. */
	void (*flush)(struct plx_fabric_fids *fids);

	/** Its wait object is known to wake an lcore for what peers send alone: that it wakes it
	 * often, and that nothing whole has come, is not held against it. */
	bool wakes_only_for_work;

	/** A frame that is written where it is sent from, for a driver whose own provider can show
	 * where that is. claim: room for `bytes` on the endpoint, all of which is written before
	 * commit sends them, with nothing else sent between; NULL where there is none now, or never
	 * for so many, and the frame goes another way. No completion comes of it. What is claimed
	 * and not committed is as if it had not been. A peer that falls asleep at that very moment
	 * may be called only by the next read or arm of the queue: a turn of the loop later, or 16
	 * where nothing came to the queue for long. Both may be NULL. */
	void *(*claim)(struct fid_ep *ep, size_t bytes);
	void (*commit)(struct fid_ep *ep, size_t bytes);

	size_t tx_size;        /**< operations in flight per link */
	size_t direct_tx_size; /**< with direct data placement; 0: the same */
	size_t rx_size;        /**< receives posted per link at most */
	size_t cq_entries;     /**< completion queue */
	bool cq_overruns;      /**< it must never hold more: links have posted half of that at most,
				    the rest is for sends, and further links get another one */
	uint32_t signal_every; /**< at least every n-th frame asks for its completion, where the
				    provider queues injected ones without end, or hides that one
				    failed; 0: never */
	uint32_t eq_every_turns; /**< how often the EQ is read while nothing is expected from it */
	uint32_t eq_pending_turns; /**< ... and while a connection is being made */
	bool needs_mr;             /**< zones are registered, and their descriptors used */
	const char *unreachable;   /**< why an address may not be reached, a question that goes on
					"is the name right, and ..."; NULL: a missing route */
};

/** Open and arm queues as most providers can be slept on: each has a descriptor (FI_WAIT_FD), and
 * fi_trywait arms both. See open_queues and arm of struct plx_fabric_driver. Thread: owner. */
int plx_fabric_open_queues(struct plx_fabric_fids *fids, const struct fi_info *info);
int plx_fabric_arm_queues(struct plx_fabric_fids *fids);

/** Try out whether an lcore can sleep on that provider: a connection of the process to itself, and
 * a message, in well under a second. provider: libfabric's name. Thread: setup. Returns NULL where
 * it can; else what is wrong, a constant text that goes on "it ...". */
const char *plx_fabric_probe_sleep(const struct plx_fabric_driver *driver, const char *provider);

/** The drivers of this build, ended by NULL. The first one that reaches other hosts is the default
 * for them. */
extern const struct plx_fabric_driver *const plx_drivers[];

PLX_END_DECLS

#endif
