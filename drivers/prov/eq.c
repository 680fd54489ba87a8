/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues. The queue's epoll descriptor, which is also its wait object, contains all sockets
 * that make or lose connections (eq_watch.c); or a set that it shares does (plx_watch.h). Unread
 * queued events make signal_fd readable, so the descriptor wakes waiting threads whatever queued
 * the events. */
#include "prov.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

static struct prov_eq *eq_of(struct fid_eq *fid)
{
	return (struct prov_eq *)fid;
}

/* Signal ----------------------------------------------------------------------------------- */

static void signal_as_queued(struct prov_eq *eq)
{
	uint64_t value = 1;
	bool queued = !TAILQ_EMPTY(&eq->events);

	if (!queue_can_sleep(&eq->wait) || eq->reading || eq->signalled == queued)
		return;
	if (queued)
		eq->signalled = write(eq->wait.signal_fd, &value, sizeof(value)) == sizeof(value);
	else
		eq->signalled = read(eq->wait.signal_fd, &value, sizeof(value)) != sizeof(value);
}

/* Queueing --------------------------------------------------------------------------------- */

void eq_push(struct prov_eq *eq, struct prov_event *event, fid_t fid, const void *data,
	     uint32_t length)
{
	event->fid = fid;
	event->context = fid->context;
	event->length = length;
	if (length)
		memcpy(event->data, data, length);
	event->is_queued = true;
	TAILQ_INSERT_TAIL(&eq->events, event, link);
	signal_as_queued(eq);
	if (eq->event)
		eq->event->ready(eq->event, EPOLLIN);
}

int eq_push_request(struct prov_eq *eq, fid_t pep, struct fi_info *info, const void *data,
		    uint32_t length)
{
	struct prov_event *event = calloc(1, sizeof(*event));

	if (!event)
		return -FI_ENOMEM;
	event->event = FI_CONNREQ;
	event->info = info;
	eq_push(eq, event, pep, data, length);
	return 0;
}

static void take_out(struct prov_eq *eq, struct prov_event *event)
{
	TAILQ_REMOVE(&eq->events, event, link);
	event->is_queued = false;
	if (event->info)
		fi_freeinfo(event->info);
}

static void drop(struct prov_eq *eq, struct prov_event *event)
{
	take_out(eq, event);
	if (!event->is_lent)
		free(event);
}

void eq_take_back(struct prov_eq *eq, struct prov_event *event)
{
	if (!event->is_queued)
		return;
	take_out(eq, event);
	signal_as_queued(eq);
}

void eq_forget(struct prov_eq *eq, fid_t pep)
{
	struct prov_event *event, *after;

	TAILQ_FOREACH_SAFE (event, &eq->events, link, after) {
		if (event->fid != pep || event->is_user)
			continue;
		if (event->info)
			prov_request_free((struct prov_request *)event->info->handle);
		drop(eq, event);
	}
	signal_as_queued(eq);
}

/* Reading ---------------------------------------------------------------------------------- */

/* Private data is cut to the caller's room (fi_eq(3)), since the peer chooses its length. Return:
 * the bytes written; -FI_ETOOSMALL: there is no room for the event itself. */
static ssize_t write_event(const struct prov_event *event, void *buf, size_t size)
{
	struct fi_eq_cm_entry *entry = buf;
	size_t head = event->is_user ? event->length : sizeof(*entry), cut;

	if (size < head)
		return -FI_ETOOSMALL;
	if (event->is_user) {
		memcpy(buf, event->data, event->length);
		return (ssize_t)head;
	}
	cut = size - head < event->length ? size - head : event->length;
	entry->fid = event->fid;
	entry->info = event->info;
	memcpy(entry->data, event->data, cut);
	return (ssize_t)(head + cut);
}

static ssize_t give_first(struct prov_eq *eq, uint32_t *event_out, void *buf, size_t size,
			  uint64_t flags)
{
	struct prov_event *event = TAILQ_FIRST(&eq->events);
	ssize_t bytes;

	if (!event)
		return -FI_EAGAIN;
	if (event->is_error)
		return -FI_EAVAIL;
	bytes = write_event(event, buf, size);
	if (bytes < 0)
		return bytes;
	*event_out = event->event;
	if (!(flags & FI_PEEK)) {
		event->info = NULL; /* now owned by the reader */
		drop(eq, event);
	}
	return bytes;
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event_out, void *buf, size_t size,
		       uint64_t flags)
{
	struct prov_eq *eq = eq_of(fid);
	ssize_t rc;

	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	eq->reading = true;
	if (TAILQ_EMPTY(&eq->events))
		eq_progress(eq);
	eq->reading = false;
	rc = give_first(eq, event_out, buf, size, flags);
	signal_as_queued(eq);
	return rc;
}

/* Copied into the caller's buffer; without one, the caller gets a reference to the queue's. */
static void give_error_data(struct prov_eq *eq, const struct prov_event *event,
			    struct fi_eq_err_entry *entry)
{
	if (!entry->err_data_size || !entry->err_data) {
		memcpy(eq->err_data, event->data, event->length);
		entry->err_data = event->length ? eq->err_data : NULL;
		entry->err_data_size = event->length;
		return;
	}
	if (entry->err_data_size > event->length)
		entry->err_data_size = event->length;
	memcpy(entry->err_data, event->data, entry->err_data_size);
}

static ssize_t eq_read_error(struct fid_eq *fid, struct fi_eq_err_entry *entry, uint64_t flags)
{
	struct prov_eq *eq = eq_of(fid);
	struct prov_event *event = TAILQ_FIRST(&eq->events);

	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	if (!event || !event->is_error)
		return -FI_EAGAIN;
	entry->fid = event->fid;
	entry->context = event->context;
	entry->data = 0;
	entry->err = (int)event->event;
	entry->prov_errno = (int)event->event;
	give_error_data(eq, event, entry);
	if (!(flags & FI_PEEK))
		drop(eq, event);
	signal_as_queued(eq);
	return sizeof(*entry);
}

static ssize_t eq_sleep_read(struct fid_eq *fid, uint32_t *event_out, void *buf, size_t size,
			     int timeout_ms, uint64_t flags)
{
	struct prov_eq *eq = eq_of(fid);
	struct pollfd pollfd = {.fd = eq->wait.epoll_fd, .events = POLLIN};
	uint64_t end_ns = queue_end_ns(timeout_ms);

	if (!queue_can_sleep(&eq->wait))
		return -FI_EINVAL;
	for (;;) {
		ssize_t rc = eq_read(fid, event_out, buf, size, flags);
		int left_ms = queue_left_ms(end_ns);

		if (rc != -FI_EAGAIN || left_ms == 0)
			return rc;
		if (poll(&pollfd, 1, left_ms) < 0)
			return errno == EINTR ? -FI_EAGAIN : -errno;
	}
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t number, const void *buf, size_t size,
			uint64_t flags)
{
	struct prov_eq *eq = eq_of(fid);
	struct prov_event *event;

	if (flags)
		return -FI_EBADFLAGS;
	if (!eq->can_write || size > sizeof(event->data))
		return -FI_EINVAL;
	event = calloc(1, sizeof(*event));
	if (!event)
		return -FI_ENOMEM;
	event->event = number;
	event->is_user = true;
	eq_push(eq, event, &fid->fid, buf, (uint32_t)size);
	return (ssize_t)size;
}

static const char *eq_error_text(struct fid_eq *fid, int prov_errno, const void *err_data,
				 char *buf, size_t size)
{
	return queue_error_text(prov_errno, buf, size);
}

/* Opening and closing ---------------------------------------------------------------------- */

static int eq_control(struct fid *fid, int command, void *arg)
{
	return queue_control(&((struct prov_eq *)fid)->wait, command, arg);
}

static void eq_free(struct prov_eq *eq)
{
	struct prov_event *event, *next;

	TAILQ_FOREACH_SAFE (event, &eq->events, link, next)
		drop(eq, event);
	if (eq->timer.fd >= 0)
		close(eq->timer.fd);
	queue_close_wait(&eq->wait);
	free(eq);
}

static int eq_close(struct fid *fid)
{
	struct prov_eq *eq = (struct prov_eq *)fid;

	if (eq->refs)
		return -FI_EBUSY;
	fabric_unref(eq->fabric);
	eq_free(eq);
	return 0;
}

static struct fi_ops eq_fid_ops = PROV_FID_OPS(eq_close, PROV_REFUSED, eq_control);

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_read_error,
	.write = eq_write,
	.sread = eq_sleep_read,
	.strerror = eq_error_text,
};

static void eq_init(struct prov_eq *eq, struct prov_fabric *fabric, const struct fi_eq_attr *attr,
		    void *context)
{
	fid_init(&eq->fid.fid, FI_CLASS_EQ, context, &eq_fid_ops);
	eq->fid.ops = &eq_ops;
	TAILQ_INIT(&eq->events);
	TAILQ_INIT(&eq->deadlines);
	eq->timer.fd = -1;
	eq->can_write = attr->flags & FI_WRITE;
	eq->wait = QUEUE_WAIT_NONE;
	eq->fabric = fabric;
}

/* The queue grows as needed, so attr->size is ignored. */
int prov_eq_open(struct fid_fabric *fabric_fid, struct fi_eq_attr *attr, struct fid_eq **eq_out,
		 void *context)
{
	struct prov_fabric *fabric = (struct prov_fabric *)fabric_fid;
	struct prov_eq *eq;
	int rc = queue_check_wait(attr->wait_obj);

	if (rc)
		return rc;
	if (attr->flags & ~(FI_WRITE | FI_AFFINITY))
		return -FI_EBADFLAGS;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	eq_init(eq, fabric, attr, context);
	rc = queue_open_wait(&eq->wait, attr->wait_obj != FI_WAIT_NONE);
	if (rc) {
		eq_free(eq);
		return rc;
	}
	fabric_ref(fabric);
	*eq_out = &eq->fid;
	return 0;
}
