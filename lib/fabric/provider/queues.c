/* SPDX-License-Identifier: BSD-3-Clause */
/* A set's queues: failed completions and draining, and connection events. */
#include "fabric_link.h"
#include "fabric_listen.h"
#include "tx.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ERRORS_MAX 64 /* failed operations per poll */
#define EVENTS_MAX 16 /* connection events per poll */

/* Completions --------------------------------------------------------------------------------- */

/* An operation failed. On a live link this is the first sign of a broken connection, before the
 * EQ's event: tcp cancels all posted receives, verbs fails the send. */
static void operation_failed(const struct fi_cq_err_entry *entry)
{
	struct plx_op *op = entry->op_context;
	struct plx_link *link;

	if (!op) /* an injected frame: the link's failure shows elsewhere */
		return;
	link = op->link;
	if (op->kind == OP_RECV)
		receive_take_back(op);
	else if (op->kind == OP_SEND)
		tx_done(op, entry->err ? -entry->err : -EIO);
	if (entry->err == FI_ETRUNC)
		close_now(link, PLX_LINK_PROTOCOL, "the peer sent a frame longer than %u bytes",
			  link_frame_bytes(link));
	else if (link->state != LINK_CONNECTING) /* else the EQ reports why it failed */
		close_on_shutdown(link, entry->prov_errno);
	if (op->kind == OP_GET) /* last, so that its callback cannot start another one */
		get_done(op, entry->err ? -entry->err : -EIO);
}

int cq_read_errors(struct plx_set *set)
{
	int count = 0;

	while (count < ERRORS_MAX) {
		struct fi_cq_err_entry entry = {0};

		if (fi_cq_readerr(set->fids.cq, &entry, 0) != 1)
			break;
		operation_failed(&entry);
		count++;
	}
	return count;
}

PLX_NOINLINE int completions_keep(struct plx_set *set, ssize_t count)
{
	if (set->read.next == set->read.end)
		return (int)count;
	if (!set->read.left)
		set->read.read_ns = set->home->turn_ns;
	set->read.left = true;
	set->home->takes_turns = true;
	return CQ_BURST;
}

PLX_NOINLINE void completions_cut(struct plx_set *set)
{
	const uint8_t *entry = (const uint8_t *)set->read.next - completion_bytes(set);
	struct plx_op *op = *(struct plx_op *const *)entry;

	if (op && op->kind == OP_RECV)
		receive_cut(op);
	else if (op)
		tx_completed(op->link);
	(void)completions_keep(set, 0);
}

bool cq_drain(struct plx_set *set)
{
	while (turn_has_time(&set->home->budget)) {
		if (set->read.left)
			completions_go_on(set);
		else if (cq_read(set) == 0)
			return true;
	}
	return false;
}

/* Connection events ---------------------------------------------------------------------------- */

/* Links and listeners start with their kind, and are the contexts of their endpoints. */
static enum fid_kind event_source(struct fid *fid)
{
	return *(uint8_t *)fid->context;
}

static void connection_failed(struct plx_link *link, int err, const char *detail)
{
	switch (err) {
	case FI_ECONNREFUSED:
	case FI_ECONNRESET:
	case FI_ECONNABORTED:
		close_not_connected(link);
		break;
	case FI_ETIMEDOUT:
	case FI_EHOSTUNREACH:
	case FI_ENETUNREACH:
	case FI_EHOSTDOWN:
		close_now(link, PLX_LINK_UNREACHABLE, "%s cannot be reached: %s", link->peer,
			  detail);
		break;
	default:
		close_now(link, PLX_LINK_LOCAL, "connecting to %s failed: %s", link->peer,
			  fi_strerror(err));
	}
}

static void read_error(struct plx_set *set)
{
	struct fi_eq_err_entry entry = {0};

	if (fi_eq_readerr(set->fids.eq, &entry, 0) < 0 || !entry.fid || !entry.fid->context)
		return;
	if (event_source(entry.fid) == FID_LINK) {
		struct plx_link *link = (struct plx_link *)entry.fid->context;
		const char *detail = fi_strerror(entry.err);

		if (entry.prov_errno && entry.prov_errno != entry.err) /* the provider knows more */
			detail = fi_eq_strerror(set->fids.eq, entry.prov_errno, entry.err_data,
						NULL, 0);
		if (link->state != LINK_CONNECTING)
			close_on_shutdown(link, 0);
		else if (entry.err != FI_ECONNREFUSED ||
			 !handshake_rejected(link, entry.err_data, entry.err_data_size))
			connection_failed(link, entry.err, detail);
	} else if (entry.err == FI_EMFILE) {
		log_warning("lcore %u: %s: a connection cannot be accepted, as this process has "
			    "used up its %" PRIu64
			    " descriptors; trying again in 1 s. `ulimit -n` raises the limit",
			    set->home->id, set->label, descriptors_limit());
	} else if (plx_log_allowed(&set->log_limit, plx_loop_now_ns())) {
		log_warning("%s: listening: %s", set->label, fi_strerror(entry.err));
	}
}

/* The provider failed inside fi_eq_read, without the link: siw connects synchronously. If several
 * links are connecting, their timers end them. */
static void connect_failed_at_once(struct plx_set *set, int err)
{
	struct plx_link *found = NULL, *link;

	LIST_FOREACH (link, &set->home->links, of_home) {
		if (link->set != set || link->state != LINK_CONNECTING || !link->connector)
			continue;
		if (found)
			return;
		found = link;
	}
	if (found)
		connection_failed(found, err, fi_strerror(err));
}

/* length: of its private data. */
static void handle(struct plx_set *set, uint32_t event, const struct fi_eq_cm_entry *entry,
		   size_t length)
{
	if (!entry->fid || !entry->fid->context)
		return;
	if (event == FI_CONNREQ) {
		handover_request((struct plx_listener *)entry->fid->context, entry->info,
				 entry->data, length);
		return;
	}
	if (event_source(entry->fid) != FID_LINK)
		return;

	struct plx_link *link = (struct plx_link *)entry->fid->context;

	if (event == FI_CONNECTED)
		handshake_connected(link, entry->data, length);
	else if (event == FI_SHUTDOWN && link->state != LINK_DEAD && close_settle(link))
		close_on_shutdown(link, 0);
}

/* If a C++ callback has thrown, the next poll reads on. */
static void read_again(struct plx_set **unread)
{
	if (*unread)
		(*unread)->eq_due = true;
}

/* Take connection events: at most EVENTS_MAX, for turn_budget_ns.
 * Return: the number taken. */
PLX_NOINLINE int eq_poll(struct plx_set *set)
{
	union {
		struct fi_eq_cm_entry cm;
		uint8_t room[sizeof(struct fi_eq_cm_entry) + HELLO_BYTES_MAX];
	} entry;
	struct plx_set *unread PLX_CLEANUP(read_again) = set;
	uint64_t end_ns = 0;
	ssize_t rc = 0;
	int count = 0;

	set->eq_due = false;
	while (count < EVENTS_MAX && (!count || plx_now_ns() < end_ns)) {
		uint32_t event;
		rc = fi_eq_read(set->fids.eq, &event, &entry, sizeof(entry), 0);

		if (rc == -FI_EAVAIL)
			read_error(set);
		else if (rc >= (ssize_t)sizeof(entry.cm))
			handle(set, event, &entry.cm, (size_t)rc - sizeof(entry.cm));
		else
			break;
		if (!count++)
			end_ns = plx_now_ns() + turn_budget_ns;
	}
	if (rc < 0 && rc != -FI_EAGAIN && rc != -FI_EAVAIL)
		connect_failed_at_once(set, (int)-rc);
	unread = NULL;
	return count;
}
