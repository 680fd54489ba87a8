/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric objects of lib/fabric, and the choice of a link's provider.
 *
 *   driver.c   from a provider name to a driver and an fi_info; queues
 *   set.c      a set: the libfabric objects of one (lcore, provider)
 *   queues.c   failed completions, draining, connection events
 *   sleep.c    how an lcore sleeps on its sets
 *   signals.c, descriptors.c  undo libfabric's side effects on the process
 */
#ifndef FABRIC_PROVIDER_H
#define FABRIC_PROVIDER_H

#include "fabric_direct.h"
#include "fabric_lcore.h"
#include "plx_fabric_driver.h"

/* Drivers -------------------------------------------------------------------------------------- */

struct driver_choice {
	const struct plx_fabric_driver *driver;
	bool asked;  /* requested by name */
	bool direct; /* with remote memory */
};

/* driver.c */
int driver_init(const struct plx_fabric_conf *conf);
void driver_fini(void);

#define DRIVER_CHOICES_MAX 4

/* The drivers for a link with attr, in the order to try them. Return: their number; -EINVAL;
 * -ENODEV there are none; -EOPNOTSUPP none supports such a link. */
int driver_choose(const struct plx_link_attr *attr, struct driver_choice *choices);
int driver_getinfo(const struct driver_choice *choice, const char *node, const char *service,
		   uint64_t flags, struct fi_info **info_out);

/* Open all of *fids for info. context: of the fabric and the domain. step_out: what failed. Return:
 * 0 or a libfabric error; then the caller closes what is open. */
int driver_open(const struct plx_fabric_driver *driver, const struct fi_info *info, void *context,
		struct plx_fabric_fids *fids, const char **step_out);
void driver_close(struct plx_fabric_fids *fids);
void driver_close_fid(struct fid *fid, const char *what); /* accepts NULL */

/* Open and enable an endpoint. Return: 0 or a libfabric error. *ep_out: the caller must close it if
 * set, also after an error. */
int driver_open_endpoint(const struct plx_fabric_fids *fids, struct fi_info *info, void *context,
			 struct fid_ep **ep_out);

/* signals.c */
void signals_restore(void);

/* descriptors.c */
/* The text of a libfabric error, -rc. If the process has no descriptors left it names that limit,
 * whatever error the provider returned. Valid until the thread's next call. */
const char *descriptors_strerror(int rc);
uint64_t descriptors_limit(void);
/* Note which descriptors are open. */
void descriptors_mark(void);
/* Make descriptors opened since the mark close-on-exec, including those of other threads. */
void descriptors_close_on_exec(void);

/* Sets ----------------------------------------------------------------------------------------- */

/* Completions per read; 32 to 128 cost least on tcp, see doc/design/links.md. */
#define CQ_BURST 64

/* A batch of completions, which callbacks take in turn. What the turn's budget does not allow, or
 * follows a C++ callback that has thrown, waits here; no more are read meanwhile. */
struct completions {
	const void *next, *end; /* in entries */
	bool left;              /* these wait, and were read at: */
	uint64_t read_ns;
	union {
		struct fi_cq_msg_entry msg[CQ_BURST];
		struct fi_cq_data_entry data[CQ_BURST]; /* of a `direct` set */
	} entries;
};

struct plx_set {
	LIST_ENTRY(plx_set) of_home;
	struct plx_fabric_lcore *home;
	const struct plx_fabric_driver *driver;
	bool direct; /* opened for one link with direct data placement */
	struct plx_fabric_fids fids;
	struct plx_watch cq_watch, eq_watch; /* of their descriptors; eq_watch: or of events */
	uint32_t links, listeners, connecting;
	uint32_t op_count;    /* operations of all its links: upper bound on completions */
	uint32_t rx_count;    /* receives of all its links */
	uint32_t tx_inflight; /* of all its links */
	bool eq_due;          /* the next poll reads the EQ */
	bool has_sent;        /* since the last poll: frames may wait for `flush` */
	uint64_t last_work_ns;
	uint64_t emptied_ns;    /* all completions that had arrived by then were taken */
	uint64_t full_since_ns; /* start of consecutive full polls; completions */
	uint32_t full_count;
	struct turn_rest turn; /* always waits, while the set is open */
	struct completions read;
	struct plx_link *only; /* of a `direct` set: its link */
	struct plx_log_limit log_limit;
	uint32_t zones_registered; /* zones below this index are done */
	struct fid_mr *mr[PLX_ZONE_MAX];
	char device[64]; /* "": any */
	char label[128];
};

/* fabric.c */
int set_go_on(struct turn_rest *turn);

/* set.c */
struct plx_set *set_get(struct plx_fabric_lcore *home, const struct driver_choice *choice,
			const struct fi_info *info, const struct plx_link_attr *attr);
void set_close(struct plx_set *set);
void set_leave(struct plx_set *set);
void set_register_new_zones(struct plx_set *set);
int set_need_zone(struct plx_set *set, uint32_t zone_index);
bool set_has_message(struct plx_set *set, const struct plx_buf *buf);
void *set_find_desc(struct plx_set *set, uint32_t zone_index);

/* The provider's descriptor for memory in that zone. NULL: not needed, or the zone is not
 * registered. */
static inline void *set_desc(struct plx_set *set, uint32_t zone_index)
{
	return set->driver->needs_mr ? set_find_desc(set, zone_index) : NULL;
}

/* queues.c: the turn is over: keep those from set->read.next on, if any; receivers take turns then.
 * Return: CQ_BURST, as for a read that may not have emptied the queue; count if none are left. */
int completions_keep(struct plx_set *set, ssize_t count);
/* The same, because a C++ callback has thrown: finish the operation of the entry before. */
void completions_cut(struct plx_set *set);

/* The cleanup of a dispatch: *set is NULL after its end. */
static inline PLX_ALWAYS_INLINE void completions_end(struct plx_set **set)
{
	if (plx_unlikely(*set != NULL))
		completions_cut(*set);
}

static inline size_t completion_bytes(const struct plx_set *set)
{
	return set->direct ? sizeof(struct fi_cq_data_entry) : sizeof(struct fi_cq_msg_entry);
}

/* link/receive.c, direct.c: dispatch completions, as far as the turn's budget allows. count: what
 * reading them has returned; 0: some are left of an earlier read. Return: the same; at least 1.
 * CQ_BURST if some are left. */
int receive_completions(struct plx_set *set, ssize_t count);
int direct_completions(struct plx_set *set, ssize_t count);
/* fabric.c: those that were left. Return: at least 1. */
int completions_go_on(struct plx_set *set);
int cq_read_errors(struct plx_set *set);

/* Read and take up to CQ_BURST completions, while none are left. Return: the number read. */
static inline PLX_ALWAYS_INLINE int cq_read(struct plx_set *set)
{
	ssize_t count = fi_cq_read(set->fids.cq, &set->read.entries, CQ_BURST);

	if (plx_likely(count == -FI_EAGAIN))
		return 0;
	return plx_unlikely(set->direct) ? direct_completions(set, count)
					 : receive_completions(set, count);
}

/* The source of an EQ event: the context of its fid. */
enum fid_kind { FID_LISTENER = 0x4c, FID_LINK = 0x6c };

int eq_poll(struct plx_set *set);
/* Take all completions that this turn has time for: those of thousands of links are left for the
 * next turns. Return: whether none are left. */
bool cq_drain(struct plx_set *set);

/* sleep.c */
int sleep_arm(void *arg, struct plx_sleep *sleep);

#endif
