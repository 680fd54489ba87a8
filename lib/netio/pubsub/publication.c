/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages published by reference: sent from the caller's memory on the links of all subscribers.
 * The publisher is notified when the last link has released it. */
#include "pubsub_priv.h"

#include <assert.h>

static_assert(sizeof(struct publication) + PLX_LINK_OVERHEAD <= PLX_BUF_HEADROOM, "both fit");

/* Also if a C++ callback throws. */
static void stop_reporting(struct netio_publish_core **reporting)
{
	struct netio_publish_core *core = *reporting;

	core->reporting = false;
	if (core->freed)
		publish_core_destroy(&core->acceptor.session);
	else if (!STAILQ_EMPTY(&core->done))
		plx_task_schedule(&core->report_task);
}

/* A callback may release the socket, and with it the core. */
static void report_done(struct plx_task *task, void *arg)
{
	struct netio_publish_core *core PLX_CLEANUP(stop_reporting) = arg;
	struct publication *publication;

	core->reporting = true;
	while ((publication = STAILQ_FIRST(&core->done))) {
		uint64_t key = publication->key;
		int status = publication->status;

		STAILQ_REMOVE_HEAD(&core->done, link);
		publication_drop(publication);
		CALL_USER(core->unbuffered, cb_msg_published, core->unbuffered, key, status);
	}
}

void publications_init(struct netio_publish_core *core)
{
	STAILQ_INIT(&core->done);
	plx_task_init(&core->report_task, report_done, core);
}

void publications_free(struct netio_publish_core *core)
{
	struct publication *publication;

	plx_task_cancel(&core->report_task);
	while ((publication = STAILQ_FIRST(&core->done))) {
		STAILQ_REMOVE_HEAD(&core->done, link);
		publication_drop(publication);
	}
	references_fini(&core->references);
}

struct publication *publication_create(struct netio_publish_core *core, uint64_t key,
				       const struct message *message)
{
	const struct iovec *header = &message->iov[0];
	struct publication *publication;
	struct plx_buf *buf;

	if (references_make(&core->references, message->tag, header->iov_base, header->iov_len,
			    message->iov + 1, message->count - 1, &buf) != 0)
		return NULL;
	publication = (struct publication *)buf->base;
	*publication = (struct publication){.core = core, .buf = buf, .key = key, .refs = 1};
	return publication;
}

void publication_drop(struct publication *publication)
{
	plx_buf_unref(publication->buf);
}

void publication_unref(struct publication *publication)
{
	struct netio_publish_core *core = publication->core;

	if (--publication->refs)
		return;
	STAILQ_INSERT_TAIL(&core->done, publication, link);
	plx_task_schedule(&core->report_task);
}

static void on_sent(struct plx_link *link, struct plx_buf *buf, int status, void *arg)
{
	struct publication *publication = arg;

	if (plx_unlikely(status) && publication->status != -ETIMEDOUT)
		publication->status = status;
	publication_unref(publication);
}

int publication_send(struct publication *publication, struct outbox *outbox)
{
	int rc = plx_likely(outbox_is_clear(outbox)) ? 0 : outbox_flush_before(outbox);

	if (plx_unlikely(rc))
		return rc;
	rc = plx_link_send_buf(outbox->link, plx_buf_ref(publication->buf), on_sent, publication);
	if (rc) {
		plx_buf_unref(publication->buf);
		return rc;
	}
	publication->refs++;
	outbox->alone++;
	return 0;
}
