/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection events. */
#include "fabric_link.h"
#include "fabric_listen.h"

#define EVENTS_MAX  16  /* per poll */
#define CM_DATA_MAX 256 /* private data of a connection request; unused, but needs room */

/* Links and listeners start with their kind, and are the contexts of their endpoints. */
static enum fid_kind event_source(struct fid *fid)
{
	return *(uint8_t *)fid->context;
}

/* The provider's error text, in addition to libfabric's error code. */
static const char *detail_of(struct plx_set *set, const struct fi_eq_err_entry *entry)
{
	if (!entry->prov_errno || entry->prov_errno == entry->err)
		return fi_strerror(entry->err);
	return fi_eq_strerror(set->fids.eq, entry->prov_errno, entry->err_data, NULL, 0);
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

		if (link->connected)
			close_on_shutdown(link, 0);
		else
			connection_failed(link, entry.err, detail_of(set, &entry));
	} else if (entry.err == FI_EMFILE) {
		listener_out_of_descriptors(set);
	} else if (plx_log_allowed(&set->log_limit, plx_loop_now_ns())) {
		plx_log(&fabric_log, PLX_LOG_WARNING, "%s: listening: %s", set->label,
			fi_strerror(entry.err));
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

/* For a closed listener. */
static void refuse_late(struct fid *fid, struct fi_info *info)
{
	fi_reject(plx_container_of(fid, struct fid_pep, fid), info->handle, NULL, 0);
	fi_freeinfo(info);
}

static void handle(struct plx_set *set, uint32_t event, const struct fi_eq_cm_entry *entry)
{
	if (event == FI_CONNREQ && entry->fid && !entry->fid->context)
		refuse_late(entry->fid, entry->info);
	if (!entry->fid || !entry->fid->context)
		return;
	if (event == FI_CONNREQ) {
		handover_request((struct plx_listener *)entry->fid->context, entry->info);
		return;
	}
	if (event_source(entry->fid) != FID_LINK)
		return;

	struct plx_link *link = (struct plx_link *)entry->fid->context;

	if (event == FI_CONNECTED)
		handshake_connected(link);
	else if (event == FI_SHUTDOWN && link->state != LINK_DEAD && close_settle(link))
		close_on_shutdown(link, 0);
}

/* Take connection events: at most EVENTS_MAX, for at most TURN_BUDGET_NS. Return: the number
 * taken. */
int eq_poll(struct plx_set *set)
{
	union {
		struct fi_eq_cm_entry cm;
		uint8_t room[sizeof(struct fi_eq_cm_entry) + CM_DATA_MAX];
	} entry;
	uint64_t end_ns = 0;
	ssize_t rc = 0;
	int count = 0;

	while (count < EVENTS_MAX && (!count || plx_now_ns() < end_ns)) {
		uint32_t event;
		rc = fi_eq_read(set->fids.eq, &event, &entry, sizeof(entry), 0);

		if (rc == -FI_EAVAIL)
			read_error(set);
		else if (rc >= (ssize_t)sizeof(entry.cm))
			handle(set, event, &entry.cm);
		else
			break;
		if (!count++)
			end_ns = plx_now_ns() + TURN_BUDGET_NS;
	}
	if (rc < 0 && rc != -FI_EAGAIN && rc != -FI_EAVAIL)
		connect_failed_at_once(set, (int)-rc);
	return count;
}
