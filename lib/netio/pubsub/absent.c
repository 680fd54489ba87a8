/* SPDX-License-Identifier: BSD-3-Clause */
/* Subscribers whose connection was lost. Each leaves a copy of itself without a connection, which
 * has its subscriptions and counts what it misses, until it is back or the time is over. Both sides
 * count the same messages, so the difference of the two numbers is the gap. */
#include "pubsub_priv.h"

#include <sockaddr.h>
#include <stdlib.h>
#include <string.h>

bool match_make_room(struct netio_publish_core *core)
{
	size_t count = core->stats.subscribers + core->stats.absent + 1;
	struct match *matches = realloc(core->matches, count * sizeof(*matches));

	if (matches)
		core->matches = matches;
	return matches;
}

/* The subscriber that has left it, or that takes over from it, no longer refers to it. */
static void part(struct subscriber *absent)
{
	if (absent->other)
		absent->other->other = NULL;
	absent->other = NULL;
	absent->is_back = false;
}

static void destroy(struct netio_publish_core *core, struct subscriber *absent)
{
	part(absent);
	requests_drop(absent, true);
	TAILQ_REMOVE(&core->absents, absent, of_absents);
	core->stats.absent--;
	free(absent);
}

bool absent_drop_oldest(struct netio_publish_core *core)
{
	struct subscriber *oldest = TAILQ_FIRST(&core->absents);

	if (oldest)
		destroy(core, oldest);
	return oldest;
}

void absent_drop_all(struct netio_publish_core *core)
{
	struct subscriber *each, *next;

	plx_timer_stop(&core->absent_timer);
	TAILQ_FOREACH_SAFE (each, &core->absents, of_absents, next)
		destroy(core, each);
}

static void on_timer(struct plx_timer *timer, void *arg)
{
	struct netio_publish_core *core = arg;
	uint64_t now_ns = plx_loop_now_ns();
	struct subscriber *each, *next;

	TAILQ_FOREACH_SAFE (each, &core->absents, of_absents, next) {
		if (each->absent_until_ns > now_ns) {
			plx_timer_start(timer, each->absent_until_ns - now_ns);
			return;
		}
		destroy(core, each);
	}
}

void absents_init(struct netio_publish_core *core)
{
	TAILQ_INIT(&core->absents);
	plx_timer_init(&core->absent_timer, on_timer, core);
	plx_timer_set_lax(&core->absent_timer, true);
}

/* Going --------------------------------------------------------------------------------------- */

static bool is_same_host(const struct subscriber *one, const struct subscriber *other)
{
	return memcmp(&one->host, &other->host, sizeof(one->host)) == 0;
}

/* Its host's oldest one gives way, before those of others. */
static void make_room_for(const struct subscriber *subscriber)
{
	struct netio_publish_core *core = subscriber_core(subscriber);
	struct subscriber *each, *oldest = NULL;
	unsigned count = 0;

	TAILQ_FOREACH (each, &core->absents, of_absents) {
		if (!is_same_host(each, subscriber))
			continue;
		oldest = oldest ?: each;
		count++;
	}
	if (count >= NETIO_ABSENT_PER_HOST_MAX)
		destroy(core, oldest);
	else if (core->stats.absent == NETIO_ABSENT_MAX)
		absent_drop_oldest(core);
}

/* Return: NULL: no memory, so what it misses will be unknown. */
static struct subscriber *create(const struct subscriber *subscriber)
{
	struct netio_publish_core *core = subscriber_core(subscriber);
	struct subscriber *absent;

	make_room_for(subscriber);
	absent = aligned_alloc(PLX_CACHE_LINE, sizeof(*absent));
	if (!absent || !match_make_room(core)) {
		free(absent);
		return NULL;
	}
	memset(absent, 0, sizeof(*absent));
	absent->accepted.session.acceptor = subscriber->accepted.session.acceptor;
	absent->key = subscriber->key;
	absent->host = subscriber->host;
	absent->outbox.not_taken = outbox_total(&subscriber->outbox);
	absent->absent_until_ns = plx_time_add(plx_loop_now_ns(), NETIO_ABSENT_NS);
	TAILQ_INSERT_TAIL(&core->absents, absent, of_absents);
	core->stats.absent++;
	if (!plx_timer_running(&core->absent_timer))
		plx_timer_start(&core->absent_timer, NETIO_ABSENT_NS);
	return absent;
}

void absent_begin(struct subscriber *subscriber)
{
	struct subscriber *former = subscriber->other, *absent = create(subscriber);

	former = former ? subscriber->other : NULL; /* maybe it was the oldest */
	if (former && absent)
		requests_hand_over(former, absent);
	if (former)
		destroy(subscriber_core(subscriber), former);
	if (!absent)
		return;
	subscriber->other = absent;
	absent->other = subscriber;
}

void absent_begun(struct subscriber *subscriber)
{
	if (subscriber->other)
		part(subscriber->other);
}

/* Coming back --------------------------------------------------------------------------------- */

static struct subscriber *find_absent(const struct netio_publish_core *core, uint64_t key)
{
	struct subscriber *absent;

	TAILQ_FOREACH (absent, &core->absents, of_absents)
		if (absent->key == key)
			break;
	return absent;
}

/* The subscriber has noticed the end of its connection before this side. */
static void lose_other_of(const struct subscriber *subscriber)
{
	const struct session_link *it;

	LIST_FOREACH (it, &subscriber_core(subscriber)->acceptor.session.links, links) {
		struct subscriber *other = (struct subscriber *)it;

		if (other == subscriber || other->key != subscriber->key || !it->link)
			continue;
		other->accepted.closed_why = "its subscriber has connected again";
		other->key = 0;
		plx_link_abort(it->link);
		subscriber_lose(other, subscriber->key);
		return;
	}
}

void absent_return(struct subscriber *subscriber, const struct wire_greeting *hello)
{
	struct netio_publish_core *core = subscriber_core(subscriber);
	struct sockaddr_storage peer = {0};
	struct subscriber *absent;
	uint64_t missed;

	(void)plx_link_peer_sockaddr(subscriber->accepted.session.link, &peer);
	subscriber->host = address_host((const struct sockaddr *)&peer);
	subscriber->host = address_group(&subscriber->host);
	subscriber->key = hello->id;
	if (!hello->id || hello->incarnation != core->acceptor.incarnation)
		return;
	subscriber->outbox.not_taken = hello->number; /* count on from there */
	lose_other_of(subscriber);
	absent = find_absent(core, hello->id);
	if (!absent)
		return;
	missed = absent->outbox.not_taken - hello->number;
	if (hello->number > absent->outbox.not_taken) { /* more than there were */
		destroy(core, absent);
		return;
	}
	absent->is_back = true;
	absent->other = subscriber;
	subscriber->other = absent;
	if (missed)
		outbox_miss(&subscriber->outbox, missed, NETIO_GAP_LOST);
}

bool absent_resume(struct subscriber *subscriber, const struct netio_subscription *what)
{
	return subscriber->other && requests_end(subscriber->other, what);
}

void absent_end(struct subscriber *subscriber)
{
	if (subscriber->other)
		destroy(subscriber_core(subscriber), subscriber->other);
}

static bool has_subscribed_to(struct netio_publish_core *core, const struct subscriber *subscriber,
			      netio_tag_t tag)
{
	struct table_search search = {.tag = tag};
	const struct subscription *found;

	do
		found = table_next(&core->table, &search);
	while (found && found->subscriber != subscriber);
	return found;
}

void absent_miss(struct subscriber *subscriber, netio_tag_t tag)
{
	if (!subscriber->is_back)
		subscriber->outbox.not_taken++;
	else if (!has_subscribed_to(subscriber_core(subscriber), subscriber->other, tag))
		outbox_miss(&subscriber->other->outbox, 1, NETIO_GAP_LOST);
}
