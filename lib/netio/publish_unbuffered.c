/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishing by reference: a message is sent from where it lies on the links of all who want it,
 * and its publisher hears when the last of them has let go of it. */
#include "publisher.h"

#include "message.h"

#include <stdlib.h>

/* A message on its way to subscribers. */
struct parcel {
	netio_tag_t tag;
	const struct iovec *iov; /* the user's header, and behind it the pieces */
	size_t count;
	uint64_t length;
	struct plx_buf *buf; /* the same for those that have it by reference; NULL: not made yet */
	struct publication *publication;
};

/* Publications -------------------------------------------------------------------------------- */

/* A callback may end the socket, and with it the core. */
static void tell_done(struct plx_task *task, void *arg)
{
	struct netio_publish_core *core = arg;

	core->telling = true;
	while (core->done) {
		struct publication *publication = core->done;
		uint64_t key = publication->key;
		int status = publication->status;

		core->done = publication->next;
		if (!core->done)
			core->done_end = &core->done;
		publication->next = core->unused;
		core->unused = publication;
		if (core->unbuffered && core->unbuffered->cb_msg_published)
			core->unbuffered->cb_msg_published(core->unbuffered, key, status);
	}
	core->telling = false;
	if (core->freed)
		publish_core_destroy(core);
}

void publish_start_telling(struct netio_publish_core *core)
{
	core->done_end = &core->done;
	plx_task_init(&core->tell, tell_done, core);
}

void publication_unref(struct publication *publication)
{
	struct netio_publish_core *core = publication->core;

	if (--publication->refs)
		return;
	publication->next = NULL;
	*core->done_end = publication;
	core->done_end = &publication->next;
	plx_task_schedule(&core->tell);
}

static void on_sent(struct plx_link *link, struct plx_buf *buf, int status, void *arg)
{
	struct publication *publication = arg;

	if (plx_unlikely(status) && publication->status != -ETIMEDOUT)
		publication->status = status;
	publication_unref(publication);
}

static struct publication *publication_create(struct netio_publish_core *core, uint64_t key)
{
	struct publication *publication = core->unused;

	if (plx_likely(publication))
		core->unused = publication->next;
	else
		publication = malloc(sizeof(*publication));
	if (publication)
		*publication = (struct publication){.core = core, .key = key, .refs = 1};
	return publication;
}

static void free_all(struct publication *publication)
{
	while (publication) {
		struct publication *next = publication->next;

		free(publication);
		publication = next;
	}
}

void publications_free(struct netio_publish_core *core)
{
	free_all(core->done);
	free_all(core->unused);
}

/* One message ---------------------------------------------------------------------------------- */

/* What is behind the user's header is sent from where it lies. */
static int make_buf(struct netio_publish_core *core, struct parcel *parcel)
{
	const struct iovec *header = &parcel->iov[0];

	return references_make(&core->references, parcel->tag, header->iov_base, header->iov_len,
			       parcel->iov + 1, parcel->count - 1, &parcel->buf);
}

static int send_reference(struct subscriber *subscriber, struct parcel *parcel)
{
	struct pages *pages = subscriber->pages;
	int rc;

	if (plx_unlikely(!subscriber_tell_gap(subscriber)))
		return -EAGAIN;
	if (!parcel->buf) {
		rc = make_buf(subscriber_core(subscriber), parcel);
		if (rc)
			return rc;
	}
	if (pages && pages->page) /* what was published before comes before it */
		pages_leave(pages);
	if (pages && pages->waiting_count)
		return -EAGAIN;
	if (pages && plx_unlikely(pages->gap.count || pages->behind_count)) /* the same */
		return pages_again(pages, 1);
	plx_buf_ref(parcel->buf);
	rc = plx_link_send_buf(subscriber->accepted.link, parcel->buf, on_sent,
			       parcel->publication);
	if (rc)
		plx_buf_unref(parcel->buf);
	else
		parcel->publication->refs++;
	return rc;
}

static int send_to(const struct match *match, struct parcel *parcel)
{
	struct subscriber *subscriber = match->subscriber;
	int rc;

	if (match->at_once && subscriber_is_there(subscriber) &&
	    parcel->length <= subscriber->accepted.message_max) {
		rc = send_reference(subscriber, parcel);
		if (plx_likely(rc != -EAGAIN) || match->policy == NETIO_POLICY_BLOCK)
			return rc;
	}
	return publish_copy_to(match, parcel->tag, parcel->iov, parcel->count, parcel->length);
}

/* Send it to those in matches. */
static void send_to_all(struct netio_publish_core *core, struct match *matches, uint32_t count,
			struct parcel *parcel, struct publish_outcome *outcome)
{
	for (uint32_t i = 0; i < count; i++)
		publish_note(outcome, matches, i, send_to(&matches[i], parcel));
	plx_buf_unref(parcel->buf);
	parcel->buf = NULL;
}

static int send_anew(struct netio_publish_core *core, struct parcel *parcel, uint64_t key,
		     struct netio_subscription_cache *cache)
{
	struct publish_outcome outcome = {0};
	struct publication *publication;
	struct pending *pending = NULL;

	publish_match(core, parcel->tag, cache);
	if (core->match_count == 0)
		return publish_finish(core, &outcome, 0);
	publication = publication_create(core, key);
	if (!publication)
		return plx_fail(ENOMEM, "out of memory to publish");
	parcel->publication = publication;
	send_to_all(core, core->matches, core->match_count, parcel, &outcome);
	if (!outcome.taken && outcome.missing && !outcome.missed)
		outcome.too_big = 0; /* they will be counted when it is published */
	publish_tell_too_big(&outcome, core->matches);
	if (!outcome.taken && !outcome.missed) { /* nobody has it */
		publication->next = core->unused;
		core->unused = publication;
		return publish_finish(core, &outcome, 0);
	}
	if (plx_unlikely(outcome.missing)) {
		pending = pending_create(core, parcel->tag, key, outcome.missing);
		if (pending) {
			pending->publication = publication;
			pending->count = outcome.missing;
			memcpy(pending->missing, core->matches,
			       outcome.missing * sizeof(struct match));
		} else {
			publish_fail_missing(&outcome, core->matches);
		}
	}
	if (!pending)
		publication_unref(publication);
	return publish_finish(core, &outcome, 0) == NETIO_STATUS_AGAIN ? NETIO_STATUS_PARTIAL
								       : NETIO_STATUS_OK;
}

static int send_again(struct netio_publish_core *core, struct pending *pending,
		      struct parcel *parcel)
{
	struct publish_outcome outcome = {0};
	struct publication *publication = pending->publication;

	parcel->publication = publication;
	publish_match_again(core, pending);
	send_to_all(core, pending->missing, pending->count, parcel, &outcome);
	publish_tell_too_big(&outcome, pending->missing);
	core->stats.lost += outcome.gone;
	if (outcome.gone && !publication->status)
		publication->status = -ECONNRESET;
	pending->count = outcome.missing;
	if (!outcome.missing) {
		pending_destroy(core, pending);
		publication_unref(publication);
	}
	return publish_finish(core, &outcome, 1) == NETIO_STATUS_AGAIN ? NETIO_STATUS_PARTIAL
								       : NETIO_STATUS_OK;
}

int netio_unbuffered_publishv_usr(struct netio_unbuffered_publish_socket *socket, netio_tag_t tag,
				  struct iovec *iov, size_t count, uint64_t *key, int flags,
				  struct netio_subscription_cache *cache, uint64_t usr,
				  uint8_t usr_size)
{
	struct netio_publish_core *core = socket->core;
	struct iovec pieces[1 + NETIO_IOV_MAX];
	struct parcel parcel = {.tag = tag, .iov = pieces, .count = 1 + count};
	struct pending *pending;
	int rc;

	if (plx_unlikely(!core))
		return plx_fail(EINVAL, "the socket is not set up");
	if (plx_unlikely(flags & ~NETIO_REENTRY))
		return plx_fail(EINVAL, "flags %d: give 0 or NETIO_REENTRY", flags);
	if (plx_unlikely(usr_size > sizeof(usr)))
		return plx_fail(EINVAL, "usr_size %u: give 0 to 8", usr_size);
	rc = message_measure(iov, count, WIRE_MESSAGE_MAX_LIMIT - usr_size, &parcel.length);
	if (plx_unlikely(rc))
		return rc;
	parcel.length += usr_size;
	pieces[0] = (struct iovec){&usr, usr_size};
	for (size_t i = 0; i < count; i++)
		pieces[1 + i] = iov[i];
	pending = pending_find(core, tag, *key);
	if (plx_likely(!pending))
		return send_anew(core, &parcel, *key, cache);
	if (flags & NETIO_REENTRY)
		return send_again(core, pending, &parcel);
	return plx_fail(EALREADY,
			"a message of that tag and key is PARTIAL; give NETIO_REENTRY, or "
			"give it up");
}

int netio_unbuffered_publish_give_up(struct netio_unbuffered_publish_socket *socket,
				     netio_tag_t tag, uint64_t key)
{
	struct pending *pending = socket->core ? pending_find(socket->core, tag, key) : NULL;

	if (!pending)
		return plx_fail(ENOENT, "no message of that tag and key is PARTIAL");
	pending_give_up(socket->core, pending);
	return 0;
}

int netio_unbuffered_publishv(struct netio_unbuffered_publish_socket *socket, netio_tag_t tag,
			      struct iovec *iov, size_t count, uint64_t *key, int flags,
			      struct netio_subscription_cache *cache)
{
	return netio_unbuffered_publishv_usr(socket, tag, iov, count, key, flags, cache, 0, 0);
}
