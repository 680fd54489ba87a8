/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * For those who write a driver. A driver is a profile of facts about libfabric providers of one
 * kind, or brings a provider of its own through getinfo and fabric; it is never a second
 * abstraction beside libfabric. It registers by being in the table given to plx_fabric_init.
 */
#ifndef PLX_FABRIC_DRIVER_H
#define PLX_FABRIC_DRIVER_H

#include "plx_base.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

PLX_BEGIN_DECLS

/** The libfabric objects that one lcore has open with one provider. */
struct plx_fabric_fids {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_wait *wait; /**< NULL unless the driver opened a wait set */
	int wait_fd;           /**< of the wait set, else of the CQ; -1: cannot be slept on */
	int eq_fd;             /**< of the EQ; -1 where the wait set covers it */
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

	/** It reaches this host alone. Where the choice is left to us it is tried first for an
	 * address of this host, and a listener listens on it besides. */
	bool same_host;

	/** Nothing that it opens is inherited across exec. */
	bool closes_on_exec;

	/** Complete the hints that lib/fabric made (FI_EP_MSG, FI_MSG, FI_THREAD_DOMAIN, manual
	 * progress, provider's name, sizes below). May be NULL. */
	void (*hints)(struct fi_info *hints);

	/** Open fids->cq (FI_CQ_FORMAT_MSG) and fids->eq, with the wait object that this provider
	 * can really sleep on, and set wait, wait_fd and eq_fd. fids->fabric and ->domain are open.
	 * provider: libfabric's name. Return: 0 or a libfabric error; the caller closes what is
	 * open. */
	int (*open_queues)(struct plx_fabric_fids *fids, const char *provider, size_t cq_entries);

	/** Prepare to sleep on the descriptors. Return: 0 may sleep; -FI_EAGAIN there is work. */
	int (*arm)(struct plx_fabric_fids *fids);

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
	size_t rx_size;        /**< receives posted per link at most */
	size_t cq_entries;     /**< completion queue; at least what all links can have posted where
				    the provider can overrun it */
	uint32_t signal_every; /**< at least every n-th frame asks for its completion, where the
				    provider queues injected ones without end, or hides that one
				    failed; 0: never */
	uint32_t eq_every_turns; /**< how often the EQ is read while nothing is expected from it */
	uint32_t eq_pending_turns; /**< ... and while a connection is being made */
	bool needs_mr;             /**< zones are registered, and their descriptors used */
};

/** Try out whether an lcore can sleep on that provider: a connection of the process to itself, and
 * a message, in well under a second. provider: libfabric's name. Thread: setup. Returns NULL where
 * it can; else what is wrong, a constant text that goes on "it ...". */
const char *plx_fabric_probe_sleep(const struct plx_fabric_driver *driver, const char *provider);

/** The drivers of this build, ended by NULL. The first one that reaches other hosts is the default
 * for them. */
extern const struct plx_fabric_driver *const plx_drivers[];

PLX_END_DECLS

#endif
