/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues. A read first sends queued bytes and checks sockets.
 * A poll costs the same with any number of idle connections. Sockets that received something lately
 * are hot and are read every poll. All sockets are in the queue's edge-triggered epoll set. The
 * others are read when the set reports them, and are hot from then on. A socket stops being hot
 * after a read that found nothing, so the set reports whatever arrives later. While sockets are
 * hot, the set is checked every few polls. A socket that stays hot leaves the set, because each
 * arriving segment costs more while it is in there: about 6 % of a round trip. */
#include "tcp.h"

#include <errno.h>
#include <unistd.h>

#define HOT_MAX     16   /* with more hot sockets, one empty read is enough to cool one */
#define LEAVE_AFTER 1024 /* polls that a socket is hot before it leaves the set */
#define SET_EVERY   16   /* polls between two checks of the set, while sockets are hot */
#define EVENTS_MAX  32   /* per check */
#define READS_MAX   8    /* hot sockets read per poll */
#define LAST_READS  16   /* of a socket that hung up, per check of the event queue */
#define WATCHED     (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

static struct tcp_domain *domain_of_cq(const struct tcp_cq *cq)
{
	return (struct tcp_domain *)cq->q.domain;
}

/* Lists -------------------------------------------------------------------------------------- */

/* Add to the queue's epoll set or remove. Adding reports whatever is pending. Return: whether it is
 * in the set. */
static bool enter_set(struct tcp_ep *ep)
{
	struct epoll_event event = {.events = WATCHED, .data.ptr = ep};

	if (!ep->in_set)
		ep->in_set = tcp_sys.epoll_ctl(rx_cq_of(ep)->q.wait.epoll_fd, EPOLL_CTL_ADD,
					       ep->base.source.fd, &event) == 0;
	return ep->in_set;
}

static void leave_set(struct tcp_ep *ep)
{
	if (ep->in_set)
		tcp_sys.epoll_ctl(rx_cq_of(ep)->q.wait.epoll_fd, EPOLL_CTL_DEL, ep->base.source.fd,
				  NULL);
	ep->in_set = false;
}

void poll_heat(struct tcp_ep *ep)
{
	ep->base.idle_looks = ep->hot_polls = 0;
	if (ep->base.listed != LISTED_HOT && !ep->is_stalled && ep->is_polled)
		ep_list(&ep->base, LISTED_HOT);
}

void poll_wait(struct tcp_ep *ep)
{
	/* Posting a receive brings a starved one back. */
	ep_list(&ep->base, ep->base.starved ? LISTED_NOT : LISTED_ASIDE);
}

bool poll_blocked(struct tcp_ep *ep)
{
	ep->hot_polls = 0;
	return enter_set(ep);
}

/* Its sends may use another queue, which wakes when there is room and when reads are answered. */
static int watch(struct tcp_ep *ep)
{
	struct tcp_cq *tx_cq = (struct tcp_cq *)ep->base.tx_cq;
	struct epoll_event event = {.events = WATCHED, .data.ptr = ep};

	if (!enter_set(ep))
		return -errno;
	if (tx_cq == rx_cq_of(ep))
		return 0;
	return tcp_sys.epoll_ctl(tx_cq->q.wait.epoll_fd, EPOLL_CTL_ADD, ep->base.source.fd, &event)
		     ? -errno
		     : 0;
}

/* The peer closed: first takes what arrived before that. */
static void hung_up(struct plx_watch *source, uint32_t events)
{
	struct tcp_ep *ep = plx_container_of(source, struct tcp_ep, base.source);

	for (int i = 0; i < LAST_READS && tcp_receive_read(ep); i++)
		;
	if (ep->is_stalled) /* its queue continues with it; reporting before that is useless */
		eq_unwatch(ep->base.eq, source);
}

int poll_begin(struct tcp_ep *ep)
{
	int rc = watch(ep);

	/* A thread that reads only the event queue also sees the closure. A gathering domain is
	 * polled as long as it has connections. */
	ep->base.source.ready = hung_up;
	if (rc == 0 && !domain_of(ep)->gathers)
		rc = eq_watch(ep->base.eq, &ep->base.source, EPOLLRDHUP);
	if (rc) {
		leave_set(ep);
		return rc;
	}
	ep->is_polled = true;
	ep->first_poll = domain_of(ep)->polls - 1; /* it has sent nothing in this poll */
	LIST_INSERT_HEAD(&domain_of(ep)->eps, ep, domain_link);
	poll_heat(ep);
	return 0;
}

void poll_end(struct tcp_ep *ep)
{
	struct tcp_cq *tx_cq = (struct tcp_cq *)ep->base.tx_cq;

	if (!ep->is_polled)
		return;
	ep->is_polled = false;
	LIST_REMOVE(ep, domain_link);
	ep_list(&ep->base, LISTED_NOT);
	leave_set(ep);
	if (!domain_of(ep)->gathers)
		eq_unwatch(ep->base.eq, &ep->base.source);
	if (tx_cq != rx_cq_of(ep))
		tcp_sys.epoll_ctl(tx_cq->q.wait.epoll_fd, EPOLL_CTL_DEL, ep->base.source.fd, NULL);
}

/* Polling ------------------------------------------------------------------------------------ */

static PLX_NOINLINE void send_all(struct tcp_domain *domain)
{
	struct tcp_ep *last = TAILQ_LAST(&domain->queued, tcp_eps), *first;

	while ((first = TAILQ_FIRST(&domain->queued))) {
		tcp_send_queued(first);
		if (first == last) /* whatever was queued again is for the next poll */
			break;
	}
}

void poll_sends(struct tcp_cq *cq)
{
	struct tcp_domain *domain = domain_of_cq(cq);

	domain->polls++;
	if (plx_unlikely(!TAILQ_EMPTY(&domain->queued)))
		send_all(domain);
}

/* Edge-triggered: reported once. */
static void handle(struct tcp_ep *ep, uint32_t events)
{
	if (ep->is_blocked && events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
		tcp_send_queued(ep);
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
		if (ep->base.listed == LISTED_HOT)
			ep->base.idle_looks = 0;
		else if (!ep->is_stalled && tcp_receive_read(ep))
			poll_heat(ep);
	}
}

/* Return: the number of events. */
static int look_at_set(struct tcp_cq *cq)
{
	struct epoll_event events[EVENTS_MAX];
	int count = tcp_sys.epoll_wait(cq->q.wait.epoll_fd, events, EVENTS_MAX, 0);
	uint64_t value;

	for (int i = 0; i < count; i++) {
		if (events[i].data.ptr)
			handle(events[i].data.ptr, events[i].events);
		else
			cq->q.is_signalled |= read(cq->q.wait.signal_fd, &value, sizeof(value)) > 0;
	}
	return count;
}

static PLX_NOINLINE void hot_for_long(struct tcp_ep *ep)
{
	if (ep->is_blocked)
		ep->hot_polls = 0; /* the set must report when there is room */
	else
		leave_set(ep);
}

/* A read found nothing. Once it is no longer hot, the set reports it. */
static inline void found_nothing(struct tcp_cq *cq, struct tcp_ep *ep)
{
	bool is_old = hot_age(&ep->base);

	if (plx_unlikely(ep->base.listed != LISTED_HOT))
		return;
	if (plx_unlikely(is_old || cq->q.hot_count > HOT_MAX)) {
		if (enter_set(ep))
			ep_list(&ep->base, LISTED_NOT);
	} else if (plx_unlikely(++ep->hot_polls == LEAVE_AFTER)) {
		hot_for_long(ep);
	}
}

static inline void read_hot(struct tcp_cq *cq)
{
	uint32_t count = cq->q.hot_count < READS_MAX ? cq->q.hot_count : READS_MAX;

	for (uint32_t i = 0; i < count && !TAILQ_EMPTY(&cq->q.hot); i++) {
		struct tcp_ep *ep = (struct tcp_ep *)hot_next(&cq->q);

		if (tcp_receive_read(ep))
			ep->base.idle_looks = 0;
		else
			found_nothing(cq, ep);
	}
}

static PLX_NOINLINE void resume_waiting(struct prov_cq *q)
{
	struct prov_ep *last = TAILQ_LAST(&q->aside, prov_eps), *first;

	while ((first = TAILQ_FIRST(&q->aside))) {
		ep_list(first, LISTED_NOT);
		tcp_receive_resume((struct tcp_ep *)first);
		if (first == last)
			break;
	}
}

static inline void poll_one(struct tcp_cq *cq)
{
	if (plx_unlikely(!TAILQ_EMPTY(&cq->q.aside)))
		resume_waiting(&cq->q);
	read_hot(cq);
	if (TAILQ_EMPTY(&cq->q.hot) || ++cq->polls % SET_EVERY == 0 ||
	    plx_unlikely(domain_of_cq(cq)->blocked_count))
		look_at_set(cq);
}

/* A read of one queue progresses the whole domain: a thread waiting for a send may only read its
 * send queue, and its peer may do the same. */
static void poll_cq(struct tcp_cq *cq)
{
	struct prov_cq *each;

	poll_one(cq);
	if (plx_likely(cq->q.domain->cq_count == 1))
		return;
	LIST_FOREACH (each, &cq->q.domain->cqs, link) {
		if (each != &cq->q)
			poll_one((struct tcp_cq *)each);
	}
}

/* Hot path. */
static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct tcp_cq *cq = (struct tcp_cq *)fid;

	cq_rewind(&cq->q);
	poll_sends(cq);
	if (cq->q.tail - cq->q.head < count || count == 0)
		poll_cq(cq);
	if (plx_unlikely(count == 0))
		return cq_take_none(&cq->q);
	return cq_take(&cq->q, buf, count);
}

/* Going to sleep ----------------------------------------------------------------------------- */

/* Before the set is checked, because entering it reports pending data. */
static bool enter_all(struct prov_cq *q)
{
	struct prov_ep *base;
	bool all = true;

	TAILQ_FOREACH (base, &q->hot, link) {
		struct tcp_ep *ep = (struct tcp_ep *)base;

		ep->hot_polls = 0;
		all &= enter_set(ep);
	}
	return all;
}

/* Handle what the set reports. Return: whether that was all, and there was no signal. */
static bool drain_set(struct tcp_cq *cq)
{
	bool was_signalled = cq->q.is_signalled;
	int count = look_at_set(cq);

	return count < EVENTS_MAX && cq->q.is_signalled == was_signalled;
}

/* Read all hot sockets until they are empty; the set reports what arrives later. A few stay hot:
 * they are read first after the sleep. */
static bool cool_all(struct prov_cq *q)
{
	struct prov_ep *ep, *after;

	TAILQ_FOREACH_SAFE (ep, &q->hot, link, after) {
		if (tcp_receive_read((struct tcp_ep *)ep))
			return false;
		if (ep->listed == LISTED_HOT && q->hot_count > HOT_AWAKE_MAX)
			ep_list(ep, LISTED_NOT);
	}
	return true;
}

/* Completions that the domain's queues ever got, modulo 2^32. No queue is rewound between two
 * calls. */
static uint32_t pushed(const struct tcp_domain *domain)
{
	const struct prov_cq *q;
	uint32_t sum = 0;

	LIST_FOREACH (q, &domain->base.cqs, link)
		sum += q->tail;
	return sum;
}

/* Sockets of all queues are read, because data on one may complete in another. New completions in
 * any queue keep this one awake: a thread may sleep on several queues, and have armed the other one
 * first. Completions queued earlier do not. */
static bool is_idle(struct prov_cq *q)
{
	struct tcp_cq *cq = (struct tcp_cq *)q;
	struct tcp_domain *domain = domain_of_cq(cq);
	struct prov_cq *each;
	uint32_t before = pushed(domain);

	poll_sends(cq);
	LIST_FOREACH (each, &domain->base.cqs, link) {
		if (!enter_all(each) || !drain_set((struct tcp_cq *)each))
			return false;
	}
	LIST_FOREACH (each, &domain->base.cqs, link) {
		if (!TAILQ_EMPTY(&each->aside) || !cool_all(each))
			return false;
	}
	return TAILQ_EMPTY(&domain->queued) && pushed(domain) == before &&
	       cq->q.head == cq->q.tail && !cq->q.is_signalled;
}

/* Opening and closing ---------------------------------------------------------------------- */

/* The shared set found something in this one. The next poll checks it: an owner with much to do
 * between two polls would take long for SET_EVERY of them. */
static void nested_ready(struct plx_watch *nested, uint32_t events)
{
	plx_container_of(nested, struct tcp_cq, q.wait.nested)->polls = SET_EVERY - 1;
}

/* The epoll descriptor finds ready sockets even if the queue has no wait object. */
static int init(struct prov_cq *base)
{
	struct tcp_cq *cq = (struct tcp_cq *)base;

	cq->stage = block_get(base->domain);
	base->wait.nested.ready = nested_ready;
	if (!cq->stage)
		return -FI_ENOMEM;
	return base->wait.epoll_fd < 0 ? queue_open_wait(&base->wait, false) : 0;
}

static void fini(struct prov_cq *base)
{
	block_put(base->domain, ((struct tcp_cq *)base)->stage);
}

const struct prov_cq_ops tcp_cq_ops = {
	.bytes = sizeof(struct tcp_cq),
	.nests = true,
	.read = cq_read,
	.init = init,
	.fini = fini,
	.is_idle = is_idle,
};
