/* SPDX-License-Identifier: BSD-3-Clause */
#include "session.h"

#include <pthread.h>

/* All acceptors of the process. A link stores its acceptor's number and looks the acceptor up when
 * it opens: until then the acceptor may be freed, and the link may be on another lcore than its
 * listener. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(acceptors, plx_acceptor) acceptors;
static uintptr_t last_number;

void plx_acceptor_init(struct plx_acceptor *acceptor, const struct plx_acceptor_owner *owner,
		       uintptr_t number, uint32_t lcore)
{
	acceptor->owner = owner;
	acceptor->lcore = lcore;
	pthread_mutex_lock(&lock);
	acceptor->number = number ?: ++last_number;
	LIST_INSERT_HEAD(&acceptors, acceptor, all);
	pthread_mutex_unlock(&lock);
}

void plx_acceptor_fini(struct plx_acceptor *acceptor)
{
	pthread_mutex_lock(&lock);
	LIST_REMOVE(acceptor, all);
	pthread_mutex_unlock(&lock);
}

/* The result stays valid: no other lcore frees it. */
struct plx_acceptor *plx_acceptor_next(const struct plx_acceptor *after)
{
	uint32_t lcore = plx_lcore_id();
	struct plx_acceptor *acceptor;

	pthread_mutex_lock(&lock);
	acceptor = after ? LIST_NEXT(after, all) : LIST_FIRST(&acceptors);
	while (acceptor && acceptor->lcore != lcore)
		acceptor = LIST_NEXT(acceptor, all);
	pthread_mutex_unlock(&lock);
	return acceptor;
}

static struct plx_acceptor *find(uintptr_t number)
{
	struct plx_acceptor *acceptor = plx_acceptor_next(NULL);

	while (acceptor && acceptor->number != number)
		acceptor = plx_acceptor_next(acceptor);
	return acceptor && !acceptor->released ? acceptor : NULL;
}

const char *session_closing(void)
{
	const struct plx_acceptor *acceptor = plx_acceptor_next(NULL);

	while (acceptor && !acceptor->released)
		acceptor = plx_acceptor_next(acceptor);
	return acceptor ? plx_link_peer(LIST_FIRST(&acceptor->links)->link) : connector_closing();
}

static void free_acceptor(struct plx_acceptor *acceptor)
{
	plx_acceptor_fini(acceptor);
	acceptor->owner->free_acceptor(acceptor);
}

/* free may release an acceptor that was not released. */
static void destroy(struct session_link *accepted)
{
	struct plx_acceptor *acceptor = accepted->acceptor;
	bool is_last;

	plx_timer_stop(&accepted->timer);
	LIST_REMOVE(accepted, links);
	is_last = acceptor->released && LIST_EMPTY(&acceptor->links);
	acceptor->owner->free(accepted);
	if (is_last)
		free_acceptor(acceptor);
}

/* Also if a C++ callback throws. */
static void destroy_finished(struct session_link **finished)
{
	if (*finished)
		destroy(*finished);
}

bool plx_accepted_finish(struct session_link *accepted)
{
	struct session_link *finished PLX_CLEANUP(destroy_finished) = accepted;
	const struct plx_acceptor *acceptor = accepted->acceptor;

	accepted->finishing = true; /* a callback may release the acceptor */
	if (!acceptor->released && acceptor->owner->closed)
		acceptor->owner->closed(accepted);
	return !acceptor->released;
}

void plx_accepted_on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
			   void *user)
{
	struct session_link *accepted = user, *finished PLX_CLEANUP(destroy_finished) = accepted;
	const struct plx_acceptor_owner *owner;
	bool is_all;

	if (!accepted)
		return;
	if (accepted->late) {
		reason = PLX_LINK_TIMEOUT;
		text = "it " SESSION_LATE;
	} else if (reason == PLX_LINK_TIMEOUT) {
		session_note_late();
	}
	owner = accepted->acceptor->owner;
	plx_timer_stop(&accepted->timer);
	accepted->link = NULL;
	accepted->finishing = true; /* as above */
	is_all = !owner->ended || owner->ended(accepted, link, reason, text) ||
		 accepted->acceptor->released;
	finished = NULL;
	if (is_all)
		plx_accepted_finish(accepted);
	else
		accepted->finishing = false;
}

static void on_timer(struct plx_timer *timer, void *arg)
{
	struct session_link *accepted = arg;
	char peer[PLX_PEER_BYTES];

	session_log_late(plx_link_peer_format(accepted->link, peer));
	session_note_late();
	accepted->late = true;
	plx_link_abort(accepted->link);
}

/* No callback runs in this loop, so the list does not change. */
void plx_acceptor_close_all(struct plx_acceptor *acceptor)
{
	struct session_link *accepted;

	LIST_FOREACH (accepted, &acceptor->links, links)
		session_link_close(accepted);
}

void plx_acceptor_release(struct plx_acceptor *acceptor)
{
	struct session_link *accepted, *after;
	bool is_last = LIST_EMPTY(&acceptor->links);

	acceptor->released = true;
	LIST_FOREACH_SAFE (accepted, &acceptor->links, links, after) {
		if (accepted->owner->failed)
			accepted->owner->failed(accepted);
		if (accepted->link)
			session_link_close(accepted);
		else if (!accepted->finishing)
			destroy(accepted);
	}
	if (is_last)
		free_acceptor(acceptor);
}

const char *plx_accepted_on_hello(struct plx_link *link, void *user)
{
	struct plx_acceptor *acceptor = find((uintptr_t)user);

	return acceptor ? acceptor->owner->hello(acceptor, link) : "the port is being closed";
}

void plx_accepted_on_open(struct plx_link *link, void *user)
{
	struct plx_acceptor *acceptor = find((uintptr_t)user);
	struct session_link *accepted = acceptor ? acceptor->owner->create(acceptor) : NULL;

	plx_link_set_user(link, accepted);
	if (!accepted) {
		plx_link_abort(link);
		return;
	}
	accepted->link = link;
	accepted->owner = &acceptor->owner->base;
	accepted->acceptor = acceptor;
	LIST_INSERT_HEAD(&acceptor->links, accepted, links);
	plx_timer_init(&accepted->timer, on_timer, accepted);
	plx_timer_set_lax(&accepted->timer, true);
	acceptor->owner->opened(accepted);
}

int plx_acceptor_listen(const struct plx_acceptor *acceptor, const char *address,
			const struct plx_listen_attr *attr, struct plx_listener **listener_out)
{
	struct plx_listen_attr checked = *attr;

	checked.link.user = (void *)acceptor->number;
	return plx_link_listen(address, &checked, listener_out);
}
