/* SPDX-License-Identifier: BSD-3-Clause */
/* What a read of a completion queue does first: send what is queued, and look at sockets.
 *
 * A poll costs the same with any number of idle connections. Sockets that received something lately
 * are hot, and read each poll. All sockets are in the queue's epoll set, edge-triggered: the others
 * are read once the set tells of them, and are hot from there on. A socket leaves the hot ones
 * after a read that found nothing, so whatever comes after that is told of. While there are hot
 * ones the set is looked at every few polls. A socket that is hot for long leaves the set, as each
 * segment that arrives costs more while it is in there: some 6 % of a round trip. */
#include "tcp.h"

#include <errno.h>
#include <unistd.h>

/* A socket is hot until so many looks at the queue's hot ones found nothing: alone it is for that
 * many polls, and the more there are the sooner it is not. */
#define IDLE_LOOKS  8192
#define HOT_MAX     16   /* of more than these, one read that finds nothing is enough */
#define AWAKE_MAX   4    /* that stay hot in a sleep */
#define LEAVE_AFTER 1024 /* polls that a socket is hot, and then leaves the set */
#define SET_EVERY   16   /* polls between two looks at the set, while there are hot sockets */
#define EVENTS_MAX  32   /* of one look */
#define READS_MAX   8    /* hot sockets read in one poll */
#define LAST_READS  16   /* of a socket that hung up, in one look at the event queue */
#define WATCHED     (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

static struct tcp_domain *domain_of_cq(const struct tcp_cq *cq)
{
	return (struct tcp_domain *)cq->q.domain;
}

/* Lists -------------------------------------------------------------------------------------- */

static void unlist(struct tcp_ep *ep)
{
	struct tcp_cq *cq = rx_cq_of(ep);

	if (ep->is_hot || ep->is_waiting)
		TAILQ_REMOVE(ep->is_hot ? &cq->hot : &cq->waiting, ep, link);
	cq->hot_count -= ep->is_hot;
	ep->is_hot = ep->is_waiting = false;
}

/* In the epoll set of its queue or not. To enter it tells of what is there already. Return: whether
 * it is in. */
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

/* No longer hot: from here on the set tells. Return: whether it could enter that. */
static bool cool(struct tcp_ep *ep)
{
	if (!enter_set(ep))
		return false;
	unlist(ep);
	return true;
}

void poll_heat(struct tcp_ep *ep)
{
	ep->idle_looks = ep->hot_polls = 0;
	if (ep->is_hot || ep->is_stalled || !ep->is_polled)
		return;
	unlist(ep);
	TAILQ_INSERT_TAIL(&rx_cq_of(ep)->hot, ep, link);
	rx_cq_of(ep)->hot_count++;
	ep->is_hot = true;
}

void poll_wait(struct tcp_ep *ep)
{
	unlist(ep);
	if (ep->base.starved)
		return; /* a posted receive brings it back, and then it is hot */
	TAILQ_INSERT_TAIL(&rx_cq_of(ep)->waiting, ep, link);
	ep->is_waiting = true;
}

bool poll_blocked(struct tcp_ep *ep)
{
	ep->hot_polls = 0;
	return enter_set(ep);
}

/* What it sends through may be another queue, whose sleep ends when there is room, and by answers
 * to reads. */
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

/* The peer closed: what came before that is taken first. */
static void hung_up(struct prov_source *source)
{
	struct tcp_ep *ep = plx_container_of(source, struct tcp_ep, base.source);

	for (int i = 0; i < LAST_READS && tcp_receive_read(ep); i++)
		;
	if (ep->is_stalled) /* its queue goes on with it, and would be told in vain till then */
		eq_unwatch(ep->base.eq, source);
}

/* Whoever reads the event queue alone hears of the end too. A domain that gathers is polled for as
 * long as it has connections. */
static int watch_end(struct tcp_ep *ep)
{
	ep->base.source.ready = hung_up;
	return domain_of(ep)->gathers ? 0 : eq_watch(ep->base.eq, &ep->base.source, EPOLLRDHUP);
}

int poll_begin(struct tcp_ep *ep)
{
	int rc = watch(ep);

	rc = rc ? rc : watch_end(ep);
	if (rc) {
		leave_set(ep);
		return rc;
	}
	ep->is_polled = true;
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
	unlist(ep);
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
		if (first == last) /* what was queued again is for the next poll */
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

/* Edge: what was reported is not reported again. */
static void handle(struct tcp_ep *ep, uint32_t events)
{
	if (ep->is_blocked && events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
		tcp_send_queued(ep);
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
		if (ep->is_hot)
			ep->idle_looks = 0;
		else if (!ep->is_stalled && tcp_receive_read(ep))
			poll_heat(ep);
	}
}

/* Return: how many events. */
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
		ep->hot_polls = 0; /* the set is to tell when there is room */
	else
		leave_set(ep);
}

/* It is hot, and a read found nothing. */
static inline void found_nothing(struct tcp_cq *cq, struct tcp_ep *ep)
{
	ep->idle_looks += cq->hot_count;
	if (plx_unlikely(!ep->is_hot))
		return;
	if (plx_unlikely(ep->idle_looks > IDLE_LOOKS || cq->hot_count > HOT_MAX))
		cool(ep);
	else if (plx_unlikely(++ep->hot_polls == LEAVE_AFTER))
		hot_for_long(ep);
}

static inline void read_hot(struct tcp_cq *cq)
{
	uint32_t count = cq->hot_count < READS_MAX ? cq->hot_count : READS_MAX;

	for (uint32_t i = 0; i < count && !TAILQ_EMPTY(&cq->hot); i++) {
		struct tcp_ep *ep = TAILQ_FIRST(&cq->hot);

		if (plx_unlikely(cq->hot_count > 1)) { /* the next poll begins with another */
			TAILQ_REMOVE(&cq->hot, ep, link);
			TAILQ_INSERT_TAIL(&cq->hot, ep, link);
		}
		if (tcp_receive_read(ep))
			ep->idle_looks = 0;
		else
			found_nothing(cq, ep);
	}
}

static PLX_NOINLINE void resume_waiting(struct tcp_cq *cq)
{
	struct tcp_ep *last = TAILQ_LAST(&cq->waiting, tcp_eps), *first;

	while ((first = TAILQ_FIRST(&cq->waiting))) {
		unlist(first);
		tcp_receive_resume(first);
		if (first == last)
			break;
	}
}

static inline void poll_one(struct tcp_cq *cq)
{
	if (plx_unlikely(!TAILQ_EMPTY(&cq->waiting)))
		resume_waiting(cq);
	read_hot(cq);
	if (TAILQ_EMPTY(&cq->hot) || ++cq->polls % SET_EVERY == 0 ||
	    plx_unlikely(domain_of_cq(cq)->blocked_count))
		look_at_set(cq);
}

/* A read of one queue moves all of its domain: who waits for a send to be done may read the queue
 * of its sends alone, and its peer waits for the same. */
void poll_cq(struct tcp_cq *cq)
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

/* Going to sleep ----------------------------------------------------------------------------- */

/* Before what the set tells is looked at, as to enter it tells something. */
static bool enter_all(struct tcp_cq *cq)
{
	struct tcp_ep *ep;
	bool all = true;

	TAILQ_FOREACH (ep, &cq->hot, link) {
		ep->hot_polls = 0;
		all &= enter_set(ep);
	}
	return all;
}

/* Take what its set tells. Return: whether that was all, and no signal. */
static bool drain_set(struct tcp_cq *cq)
{
	bool was_signalled = cq->q.is_signalled;
	int count = look_at_set(cq);

	return count < EVENTS_MAX && cq->q.is_signalled == was_signalled;
}

/* All of its hot sockets are read until there is nothing; what they get after that the set tells
 * of. A few stay hot: they are read first after the sleep. */
static bool cool_all(struct tcp_cq *cq)
{
	struct tcp_ep *ep, *after;

	TAILQ_FOREACH_SAFE (ep, &cq->hot, link, after) {
		if (tcp_receive_read(ep))
			return false;
		if (ep->is_hot && cq->hot_count > AWAKE_MAX)
			unlist(ep);
	}
	return true;
}

/* How many completions the domain's queues ever got, modulo 2^32: no queue is rewound meanwhile. */
static uint32_t pushed(const struct tcp_domain *domain)
{
	const struct prov_cq *q;
	uint32_t sum = 0;

	LIST_FOREACH (q, &domain->base.cqs, link)
		sum += q->tail;
	return sum;
}

/* Sockets of all queues are read, as what one of them gets may complete in another. What comes of
 * that keeps this one awake whose ever it is: another may be slept on together with it, and have
 * been armed before it. What was in another already does not. */
bool poll_is_idle(struct prov_cq *q)
{
	struct tcp_cq *cq = (struct tcp_cq *)q;
	struct tcp_domain *domain = domain_of_cq(cq);
	struct prov_cq *each;
	uint32_t before = pushed(domain);

	poll_sends(cq);
	LIST_FOREACH (each, &domain->base.cqs, link) {
		if (!enter_all((struct tcp_cq *)each) || !drain_set((struct tcp_cq *)each))
			return false;
	}
	LIST_FOREACH (each, &domain->base.cqs, link) {
		if (!TAILQ_EMPTY(&((struct tcp_cq *)each)->waiting) ||
		    !cool_all((struct tcp_cq *)each))
			return false;
	}
	return TAILQ_EMPTY(&domain->queued) && pushed(domain) == before &&
	       cq->q.head == cq->q.tail && !cq->q.is_signalled;
}
