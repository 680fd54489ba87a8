/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues. All sockets that a connection is made or lost by are in the queue's epoll
 * descriptor, which is its wait object too. Events that are queued and not read make signal_fd
 * readable, so that the descriptor wakes whoever waits for them, however they came to be queued. */
#include "shm.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define HANDLED_MAX 16 /* sockets in one progress */

static struct shm_eq *eq_of(struct fid_eq *fid)
{
	return (struct shm_eq *)fid;
}

/* Signal ----------------------------------------------------------------------------------- */

static void signal_as_queued(struct shm_eq *eq)
{
	uint64_t value = 1;
	bool queued = eq->first != NULL;

	if (eq->signal_fd < 0 || eq->reading || eq->signalled == queued)
		return;
	if (queued)
		eq->signalled = write(eq->signal_fd, &value, sizeof(value)) == sizeof(value);
	else
		eq->signalled = read(eq->signal_fd, &value, sizeof(value)) != sizeof(value);
}

/* Queueing --------------------------------------------------------------------------------- */

static struct shm_event *append(struct shm_eq *eq, uint32_t number, fid_t fid, const void *data,
				uint32_t length)
{
	struct shm_event *event = calloc(1, sizeof(*event));

	if (!event) {
		shm_log(FI_LOG_WARN, "event %u is lost: out of memory", number);
		return NULL;
	}
	event->event = number;
	event->fid = fid;
	event->context = fid->context;
	event->length = length;
	if (length)
		memcpy(event->data, data, length);
	*eq->last = event;
	eq->last = &event->next;
	signal_as_queued(eq);
	return event;
}

int eq_push(struct shm_eq *eq, uint32_t event, fid_t fid, struct fi_info *info, const void *data,
	    uint32_t length)
{
	struct shm_event *queued = append(eq, event, fid, data, length);

	if (!queued)
		return -FI_ENOMEM;
	queued->info = info;
	return 0;
}

int eq_push_error(struct shm_eq *eq, fid_t fid, int err, const void *data, uint32_t length)
{
	struct shm_event *queued = append(eq, (uint32_t)err, fid, data, length);

	if (!queued)
		return -FI_ENOMEM;
	queued->is_error = true;
	return 0;
}

static void drop(struct shm_eq *eq, struct shm_event **at)
{
	struct shm_event *event = *at;

	*at = event->next;
	if (!*at)
		eq->last = at;
	if (event->info)
		fi_freeinfo(event->info);
	free(event);
}

void eq_forget(struct shm_eq *eq, fid_t fid)
{
	for (struct shm_event **at = &eq->first; *at;) {
		if ((*at)->fid == fid && !(*at)->is_user)
			drop(eq, at);
		else
			at = &(*at)->next;
	}
	signal_as_queued(eq);
}

/* Sockets ---------------------------------------------------------------------------------- */

int eq_watch(struct shm_eq *eq, struct shm_source *source, uint32_t epoll_events)
{
	struct epoll_event event = {.events = epoll_events, .data.ptr = source};

	if (epoll_ctl(eq->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) == 0)
		return 0;
	if (errno == EEXIST && epoll_ctl(eq->epoll_fd, EPOLL_CTL_MOD, source->fd, &event) == 0)
		return 0;
	return -errno;
}

void eq_unwatch(struct shm_eq *eq, struct shm_source *source)
{
	if (source->fd >= 0)
		epoll_ctl(eq->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
}

static void handle(struct shm_source *source)
{
	switch (source->kind) {
	case SOURCE_PEP:
		pep_incoming(plx_container_of(source, struct shm_pep, source));
		break;
	case SOURCE_PEP_TIMER:
		pep_tick(plx_container_of(source, struct shm_pep, timer));
		break;
	case SOURCE_REQUEST:
		request_incoming(plx_container_of(source, struct shm_request, source));
		break;
	case SOURCE_EP:
		ep_incoming(plx_container_of(source, struct shm_ep, source));
		break;
	}
}

/* One at a time: to handle one may be the end of another. The kernel takes those that are ready in
 * turn, so when signal_fd comes for the second time all others were seen. */
int eq_progress(struct shm_eq *eq)
{
	struct epoll_event event;
	bool signal_seen = false;
	int count = 0;

	while (count < HANDLED_MAX && epoll_wait(eq->epoll_fd, &event, 1, 0) == 1) {
		if (event.data.ptr) {
			handle(event.data.ptr);
			count++;
		} else if (signal_seen) {
			break;
		} else {
			signal_seen = true;
		}
	}
	return count;
}

int eq_arm(struct shm_eq *eq)
{
	if (eq->wait_obj == FI_WAIT_NONE)
		return -FI_EINVAL;
	if (!eq->first)
		eq_progress(eq);
	return eq->first ? -FI_EAGAIN : 0;
}

/* Reading ---------------------------------------------------------------------------------- */

static void refill(struct shm_eq *eq)
{
	if (eq->first)
		return;
	eq->reading = true;
	eq_progress(eq);
	eq->reading = false;
}

static size_t event_bytes(const struct shm_event *event)
{
	return (event->is_user ? 0 : sizeof(struct fi_eq_cm_entry)) + event->length;
}

static void write_event(const struct shm_event *event, void *buf)
{
	struct fi_eq_cm_entry *entry = buf;

	if (event->is_user) {
		memcpy(buf, event->data, event->length);
		return;
	}
	entry->fid = event->fid;
	entry->info = event->info;
	memcpy(entry->data, event->data, event->length);
}

static ssize_t give_first(struct shm_eq *eq, uint32_t *event_out, void *buf, size_t size,
			  uint64_t flags)
{
	struct shm_event *event = eq->first;
	ssize_t bytes;

	if (!event)
		return -FI_EAGAIN;
	if (event->is_error)
		return -FI_EAVAIL;
	bytes = (ssize_t)event_bytes(event);
	if (size < (size_t)bytes)
		return -FI_ETOOSMALL;
	write_event(event, buf);
	*event_out = event->event;
	if (!(flags & FI_PEEK)) {
		event->info = NULL; /* the reader's */
		drop(eq, &eq->first);
	}
	return bytes;
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event_out, void *buf, size_t size,
		       uint64_t flags)
{
	struct shm_eq *eq = eq_of(fid);
	ssize_t rc;

	refill(eq);
	rc = give_first(eq, event_out, buf, size, flags);
	signal_as_queued(eq);
	return rc;
}

/* Into the caller's own buffer, or, where it gave none, by reference to the queue's. */
static void give_error_data(struct shm_eq *eq, const struct shm_event *event,
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
	struct shm_eq *eq = eq_of(fid);
	struct shm_event *event = eq->first;

	if (!event || !event->is_error)
		return -FI_EAGAIN;
	entry->fid = event->fid;
	entry->context = event->context;
	entry->data = 0;
	entry->err = (int)event->event;
	entry->prov_errno = (int)event->event;
	give_error_data(eq, event, entry);
	if (!(flags & FI_PEEK))
		drop(eq, &eq->first);
	signal_as_queued(eq);
	return sizeof(*entry);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static ssize_t eq_sleep_read(struct fid_eq *fid, uint32_t *event_out, void *buf, size_t size,
			     int timeout_ms, uint64_t flags)
{
	struct shm_eq *eq = eq_of(fid);
	struct pollfd pollfd = {.fd = eq->epoll_fd, .events = POLLIN};
	int64_t end_ms = now_ms() + timeout_ms;

	if (eq->wait_obj == FI_WAIT_NONE)
		return -FI_EINVAL;
	for (;;) {
		ssize_t rc = eq_read(fid, event_out, buf, size, flags);
		int64_t left_ms = timeout_ms < 0 ? -1 : end_ms - now_ms();

		if (rc != -FI_EAGAIN || (timeout_ms >= 0 && left_ms <= 0))
			return rc;
		if (poll(&pollfd, 1, (int)left_ms) < 0)
			return errno == EINTR ? -FI_EAGAIN : -errno;
	}
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t number, const void *buf, size_t size,
			uint64_t flags)
{
	struct shm_eq *eq = eq_of(fid);
	struct shm_event *event;

	if (!eq->can_write || size > sizeof(event->data))
		return -FI_EINVAL;
	event = append(eq, number, &fid->fid, buf, (uint32_t)size);
	if (!event)
		return -FI_ENOMEM;
	event->is_user = true;
	return (ssize_t)size;
}

static const char *eq_error_text(struct fid_eq *fid, int prov_errno, const void *err_data,
				 char *buf, size_t size)
{
	const char *text = fi_strerror(prov_errno);

	if (buf && size) {
		strncpy(buf, text, size - 1);
		buf[size - 1] = '\0';
	}
	return text;
}

/* Opening and closing ---------------------------------------------------------------------- */

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct shm_eq *eq = (struct shm_eq *)fid;

	switch (command) {
	case FI_GETWAIT:
		if (eq->wait_obj == FI_WAIT_NONE)
			return -FI_ENODATA;
		*(int *)arg = eq->epoll_fd;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = eq->wait_obj;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static void eq_free(struct shm_eq *eq)
{
	while (eq->first)
		drop(eq, &eq->first);
	if (eq->signal_fd >= 0)
		close(eq->signal_fd);
	if (eq->epoll_fd >= 0)
		close(eq->epoll_fd);
	free(eq);
}

static int eq_close(struct fid *fid)
{
	struct shm_eq *eq = (struct shm_eq *)fid;

	if (eq->refs)
		return -FI_EBUSY;
	fabric_unref(eq->fabric);
	eq_free(eq);
	return 0;
}

static struct fi_ops eq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = shm_no_bind,
	.control = eq_control,
	.ops_open = shm_no_ops_open,
};

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_read_error,
	.write = eq_write,
	.sread = eq_sleep_read,
	.strerror = eq_error_text,
};

static int open_wait(struct shm_eq *eq)
{
	struct epoll_event event = {.events = EPOLLIN};

	eq->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (eq->epoll_fd < 0)
		return -errno;
	if (eq->wait_obj == FI_WAIT_NONE)
		return 0;
	eq->signal_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (eq->signal_fd < 0 || epoll_ctl(eq->epoll_fd, EPOLL_CTL_ADD, eq->signal_fd, &event) < 0)
		return -errno;
	return 0;
}

static int check_attr(const struct fi_eq_attr *attr)
{
	switch (attr->wait_obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_UNSPEC:
	case FI_WAIT_FD:
		break;
	default:
		return -FI_ENOSYS;
	}
	return attr->flags & ~(FI_WRITE | FI_AFFINITY) ? -FI_EBADFLAGS : 0;
}

static void eq_init(struct shm_eq *eq, struct shm_fabric *fabric, const struct fi_eq_attr *attr,
		    void *context)
{
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = &eq_fid_ops;
	eq->fid.ops = &eq_ops;
	eq->last = &eq->first;
	eq->wait_obj = attr->wait_obj == FI_WAIT_UNSPEC ? FI_WAIT_FD : attr->wait_obj;
	eq->can_write = attr->flags & FI_WRITE;
	eq->epoll_fd = eq->signal_fd = -1;
	eq->fabric = fabric;
}

/* The queue grows as it must, so attr->size says nothing. */
int shm_eq_open(struct fid_fabric *fabric_fid, struct fi_eq_attr *attr, struct fid_eq **eq_out,
		void *context)
{
	struct shm_fabric *fabric = (struct shm_fabric *)fabric_fid;
	struct shm_eq *eq;
	int rc = check_attr(attr);

	if (rc)
		return rc;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	eq_init(eq, fabric, attr, context);
	rc = open_wait(eq);
	if (rc) {
		eq_free(eq);
		return rc;
	}
	fabric_ref(fabric);
	*eq_out = &eq->fid;
	return 0;
}
