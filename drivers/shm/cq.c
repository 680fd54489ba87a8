/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: the queue itself, what it sleeps on, and the places of its endpoints. What
 * fills it is progress.c. */
#include "shm.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WOKEN_AT_ONCE 16 /* sockets that one look at the epoll brings */
#define BYTES_AT_ONCE 16 /* taken from one of them */

static struct shm_cq *cq_of(struct fid_cq *fid)
{
	return (struct shm_cq *)fid;
}

/* Reading ---------------------------------------------------------------------------------- */

/* The formats are prefixes of each other. */
static inline void *write_entry(enum fi_cq_format format, const struct shm_completion *from,
				void *out)
{
	struct fi_cq_tagged_entry *entry = out;

	entry->op_context = from->context;
	if (format == FI_CQ_FORMAT_CONTEXT)
		return (char *)out + sizeof(struct fi_cq_entry);
	entry->flags = from->flags;
	entry->len = from->length;
	if (format == FI_CQ_FORMAT_MSG)
		return (char *)out + sizeof(struct fi_cq_msg_entry);
	entry->buf = from->buf;
	entry->data = from->data;
	if (format == FI_CQ_FORMAT_DATA)
		return (char *)out + sizeof(struct fi_cq_data_entry);
	entry->tag = 0;
	return entry + 1;
}

/* Hot path. */
static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct shm_cq *cq = cq_of(fid);
	size_t done = 0;

	if (cq->tail - cq->head < count || count == 0)
		progress_poll(cq);
	while (done < count && cq->head != cq->tail) {
		const struct shm_completion *completion = &cq->queue[cq->head & cq->mask];

		if (plx_unlikely(completion->err))
			return done ? (ssize_t)done : -FI_EAVAIL;
		buf = write_entry(cq->format, completion, buf);
		cq->head++;
		done++;
	}
	return plx_likely(done) ? (ssize_t)done : -FI_EAGAIN;
}

static ssize_t cq_read_from(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source)
{
	ssize_t done = cq_read(fid, buf, count);

	for (ssize_t i = 0; source && i < done; i++)
		source[i] = FI_ADDR_NOTAVAIL;
	return done;
}

static ssize_t cq_read_error(struct fid_cq *fid, struct fi_cq_err_entry *entry, uint64_t flags)
{
	struct shm_cq *cq = cq_of(fid);
	const struct shm_completion *completion = &cq->queue[cq->head & cq->mask];

	if (cq->head == cq->tail || !completion->err)
		return -FI_EAGAIN;
	entry->op_context = completion->context;
	entry->flags = completion->flags;
	entry->len = completion->length;
	entry->buf = completion->buf;
	entry->data = completion->data;
	entry->tag = 0;
	entry->olen = completion->overlong;
	entry->err = completion->err;
	entry->prov_errno = completion->err;
	entry->err_data_size = 0;
	cq->head++;
	return 1;
}

static const char *cq_error_text(struct fid_cq *fid, int prov_errno, const void *err_data,
				 char *buf, size_t size)
{
	const char *text = fi_strerror(prov_errno);

	if (buf && size) {
		strncpy(buf, text, size - 1);
		buf[size - 1] = '\0';
	}
	return text;
}

/* Sleeping --------------------------------------------------------------------------------- */

static int cq_signal(struct fid_cq *fid)
{
	struct shm_cq *cq = cq_of(fid);
	uint64_t one = 1;

	if (!cq->can_sleep)
		return -FI_ENOSYS;
	return write(cq->signal_fd, &one, sizeof(one)) == sizeof(one) ? 0 : -errno;
}

/* Take away the bytes that woke us, or some of them: the rest wakes us again. */
static void clear_doorbell(struct shm_ep *ep)
{
	char bytes[256];
	ssize_t got = 1;

	for (int i = 0; i < BYTES_AT_ONCE && got > 0; i++)
		got = recv(ep->source.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (got > 0 || (got < 0 && errno == EAGAIN))
		progress_activate(ep);
	else
		ep_incoming(ep);
}

/* See what has woken, or would wake, the queue. Returns whether it was fi_cq_signal. */
static bool clear_wakes(struct shm_cq *cq)
{
	struct epoll_event events[WOKEN_AT_ONCE];
	int count = epoll_wait(cq->epoll_fd, events, WOKEN_AT_ONCE, 0);
	bool signalled = false;
	uint64_t value;

	for (int i = 0; i < count; i++) {
		if (events[i].data.ptr)
			clear_doorbell(events[i].data.ptr);
		else
			signalled |= read(cq->signal_fd, &value, sizeof(value)) > 0;
	}
	return signalled;
}

int cq_arm(struct shm_cq *cq)
{
	if (!cq->can_sleep)
		return -FI_EINVAL;
	if (clear_wakes(cq) || cq->head != cq->tail)
		return -FI_EAGAIN;
	return progress_arm(cq) ? 0 : -FI_EAGAIN;
}

/* Not plx_now_ns(): nobody sets up that clock in a program that loads the module. */
static uint64_t slow_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * PLX_NS_PER_S + (uint64_t)now.tv_nsec;
}

static int left_ms(uint64_t end_ns)
{
	uint64_t now_ns;

	if (end_ns == UINT64_MAX)
		return -1;
	now_ns = slow_now_ns();
	return now_ns < end_ns ? (int)((end_ns - now_ns + PLX_NS_PER_MS - 1) / PLX_NS_PER_MS) : 0;
}

static ssize_t cq_sleep_read_from(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source,
				  const void *condition, int timeout_ms)
{
	struct shm_cq *cq = cq_of(fid);
	uint64_t end_ns = timeout_ms < 0 ? UINT64_MAX
					 : slow_now_ns() + (uint64_t)timeout_ms * PLX_NS_PER_MS;
	struct pollfd pollfd = {.fd = cq->epoll_fd, .events = POLLIN};

	if (!cq->can_sleep)
		return -FI_ENOSYS;
	for (;;) {
		ssize_t done = cq_read_from(fid, buf, count, source);
		int wait_ms = left_ms(end_ns);

		if (done != -FI_EAGAIN || wait_ms == 0)
			return done;
		if (clear_wakes(cq))
			return -FI_EAGAIN; /* fi_cq_signal */
		if (cq->head == cq->tail && progress_arm(cq) && poll(&pollfd, 1, wait_ms) < 0)
			return -errno;
	}
}

static ssize_t cq_sleep_read(struct fid_cq *fid, void *buf, size_t count, const void *condition,
			     int timeout_ms)
{
	return cq_sleep_read_from(fid, buf, count, NULL, condition, timeout_ms);
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct shm_cq *cq = (struct shm_cq *)fid;

	switch (command) {
	case FI_GETWAIT:
		if (!cq->can_sleep)
			return -FI_ENODATA;
		*(int *)arg = cq->epoll_fd;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = cq->can_sleep ? FI_WAIT_FD : FI_WAIT_NONE;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

/* Endpoints -------------------------------------------------------------------------------- */

static uint32_t power_of_two(uint32_t least)
{
	uint32_t power = 1;

	while (power < least)
		power *= 2;
	return power;
}

static int resize(struct shm_cq *cq, uint32_t capacity)
{
	struct shm_completion *queue = calloc(capacity, sizeof(*queue));
	uint32_t count = cq->tail - cq->head;

	if (!queue)
		return -FI_ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		queue[i] = cq->queue[(cq->head + i) & cq->mask];
	free(cq->queue);
	cq->queue = queue;
	cq->mask = capacity - 1;
	cq->head = 0;
	cq->tail = count;
	return 0;
}

/* What waits to be read may be of endpoints that are gone, and keeps its place too. */
int cq_reserve(struct shm_cq *cq, uint32_t count)
{
	uint32_t waiting = cq->tail - cq->head;
	uint32_t least = (waiting > cq->size ? waiting : cq->size) + cq->reserved + count;
	int rc = 0;

	if (power_of_two(least) > cq->mask + 1)
		rc = resize(cq, power_of_two(least));
	if (rc == 0)
		cq->reserved += count;
	return rc;
}

void cq_unreserve(struct shm_cq *cq, uint32_t count)
{
	cq->reserved -= count;
}

/* A free place, near where the last one was; or, where all are taken, one to be shared. */
static uint32_t find_slot(struct shm_cq *cq)
{
	for (uint32_t i = 0; i < BELL_BITS; i++) {
		uint32_t slot = (cq->next_slot + i) % BELL_BITS;

		if (!cq->slots[slot])
			return slot;
	}
	return cq->next_slot % BELL_BITS;
}

void cq_attach(struct shm_cq *cq, struct shm_ep *ep)
{
	ep->slot = find_slot(cq);
	ep->next_slot = cq->slots[ep->slot];
	cq->slots[ep->slot] = ep;
	cq->next_slot = ep->slot + 1;
	if (cq->slots_used <= ep->slot)
		cq->slots_used = ep->slot + 1;
}

void cq_detach(struct shm_cq *cq, struct shm_ep *ep)
{
	struct shm_ep **at = &cq->slots[ep->slot];

	while (*at && *at != ep)
		at = &(*at)->next_slot;
	if (*at)
		*at = ep->next_slot;
}

int cq_watch(struct shm_cq *cq, struct shm_ep *ep)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = ep};

	if (!cq->can_sleep)
		return 0;
	return epoll_ctl(cq->epoll_fd, EPOLL_CTL_ADD, ep->source.fd, &event) ? -errno : 0;
}

void cq_unwatch(struct shm_cq *cq, struct shm_ep *ep)
{
	if (cq->can_sleep && ep->source.fd >= 0)
		epoll_ctl(cq->epoll_fd, EPOLL_CTL_DEL, ep->source.fd, NULL);
}

/* Opening and closing ---------------------------------------------------------------------- */

static void cq_free(struct shm_cq *cq)
{
	if (cq->epoll_fd >= 0)
		close(cq->epoll_fd);
	if (cq->signal_fd >= 0)
		close(cq->signal_fd);
	if (cq->bell_fd >= 0)
		close(cq->bell_fd);
	bell_unmap(cq->bell);
	free(cq->slots);
	free(cq->queue);
	free(cq);
}

static int cq_close(struct fid *fid)
{
	struct shm_cq *cq = (struct shm_cq *)fid;

	if (cq->refs)
		return -FI_EBUSY;
	cq->domain->refs--;
	list_remove(&cq->link);
	cq_free(cq);
	return 0;
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = shm_no_bind,
	.control = cq_control,
	.ops_open = shm_no_ops_open,
};

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_read_from,
	.readerr = cq_read_error,
	.sread = cq_sleep_read,
	.sreadfrom = cq_sleep_read_from,
	.signal = cq_signal,
	.strerror = cq_error_text,
};

static int open_wait(struct shm_cq *cq)
{
	struct epoll_event event = {.events = EPOLLIN};

	cq->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	cq->signal_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cq->epoll_fd < 0 || cq->signal_fd < 0 ||
	    epoll_ctl(cq->epoll_fd, EPOLL_CTL_ADD, cq->signal_fd, &event))
		return -errno;
	cq->can_sleep = true;
	return 0;
}

static int check_attr(const struct fi_cq_attr *attr)
{
	if (attr->size > SHM_CQ_SIZE_MAX || attr->format > FI_CQ_FORMAT_TAGGED)
		return -FI_EINVAL;
	switch (attr->wait_obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_UNSPEC:
	case FI_WAIT_FD:
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static int cq_init(struct shm_cq *cq, const struct fi_cq_attr *attr)
{
	uint32_t size = attr->size ? (uint32_t)attr->size : SHM_CQ_SIZE;
	int rc;

	cq->format = attr->format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_CONTEXT : attr->format;
	cq->size = size;
	cq->epoll_fd = cq->signal_fd = cq->bell_fd = -1;
	list_init(&cq->active);
	list_init(&cq->belled);
	cq->slots = calloc(BELL_BITS, sizeof(struct shm_ep *));
	rc = cq->slots ? resize(cq, power_of_two(size)) : -FI_ENOMEM;
	rc = rc ? rc : bell_create(&cq->bell, &cq->bell_fd);
	if (rc == 0 && attr->wait_obj != FI_WAIT_NONE)
		rc = open_wait(cq);
	return rc;
}

int shm_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq_out,
		void *context)
{
	struct shm_cq *cq;
	int rc = check_attr(attr);

	if (rc)
		return rc;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	rc = cq_init(cq, attr);
	if (rc) {
		cq_free(cq);
		return rc;
	}
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = &cq_fid_ops;
	cq->fid.ops = &cq_ops;
	cq->domain = (struct shm_domain *)domain;
	cq->domain->refs++;
	list_append(&cq->domain->cqs, &cq->link);
	*cq_out = &cq->fid;
	return 0;
}
