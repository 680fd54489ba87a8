/* SPDX-License-Identifier: BSD-3-Clause */
/* One way: messages are sent as fast as the link takes them, and nothing is answered.
 * The result counts what the peer has received. A link takes only messages that its receiver
 * granted room for, so the sender is at most a window ahead. The clock stops when the link has
 * closed in order: its FIN follows the last message, and the peer's FIN acknowledges all of them.
 * An answer to a marked last message would do the same, but a message of 0 bytes has no room for a
 * mark.
 * The clock starts with the first message after the warm-up. The receiver may still have a window
 * of warm-up messages to read, and the close takes a round trip: the figures err to the low side by
 * that. */
#include "one_way.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Without room for a message for this long, the peer is given up. The close, which waits until a
 * whole window is read, has the same limit. */
#define SILENCE_S 10

/* Ends --------------------------------------------------------------------------------------- */

void one_way_fail(struct one_way *run, const char *text)
{
	if (!run->failed)
		snprintf(run->error, sizeof(run->error), "%s", text);
	run->failed = run->stopped = true;
	plx_loop_quit();
}

/* The link ----------------------------------------------------------------------------------- */

static void on_open(struct plx_link *link, void *user)
{
	struct one_way *run = user;

	run->open = true;
	if (ping_meet(run->conf, run->outcome, link) != 0) {
		one_way_fail(run, plx_error());
		return;
	}
	if (isatty(STDERR_FILENO))
		plx_timer_start_periodic(&run->progress, PLX_NS_PER_S);
	plx_timer_start_periodic(&run->watch, PLX_NS_PER_S);
}

static void on_writable(struct plx_link *link, void *user)
{
	struct one_way *run = user;

	run->blocked = false;
}

/* Answering takes time, so this would not be a one-way figure. */
static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	struct one_way *run = user;

	one_way_fail(run, "--one-way: the server sends messages back; start it as "
			  "plx-ping --listen ADDR --sink");
	run->first_ns = 0;
	plx_link_abort(link);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	uint64_t now_ns = plx_now_ns();
	struct one_way *run = user;

	if (run->first_ns) {
		run->outcome->again = one_way_refused(run) - run->again_before;
		if (reason == PLX_LINK_CLOSED) /* everything has arrived by now */
			run->last_ns = now_ns;
	}
	if (!run->stopped)
		one_way_fail(run, reason == PLX_LINK_CLOSED ? "the peer closed the link" : text);
	else if (run->open && reason != PLX_LINK_CLOSED)
		one_way_fail(run, text);
	run->link = NULL;
	run->open = false;
	plx_loop_quit();
}

static const struct plx_link_events events = {
	.on_open = on_open,
	.on_message = on_message,
	.on_writable = on_writable,
	.on_close = on_close,
};

/* Timers ------------------------------------------------------------------------------------- */

static void on_watch(struct plx_timer *timer, void *arg)
{
	struct one_way *run = arg;
	bool moved = run->sent != run->sent_before;

	run->sent_before = run->sent;
	run->silent_s = moved || run->stopped ? 0 : run->silent_s + 1;
	if (run->silent_s < SILENCE_S)
		return;
	one_way_fail(run, "the peer has taken no message for 10 s");
	plx_link_abort(run->link); /* it would not answer a close either */
}

static void on_progress(struct plx_timer *timer, void *arg)
{
	const struct one_way *run = arg;

	fprintf(stderr, "\r%" PRIu64 " messages sent   ", run->sent);
}

/* The run ------------------------------------------------------------------------------------ */

static int prepare(struct one_way *run)
{
	uint64_t size = run->conf->size_bytes;
	struct plx_pool_attr attr = {
		.name = "ping message",
		.object_count = 1,
		.node = plx_lcore_node(plx_lcore_id()),
		.owner = plx_lcore_id(),
	};

	if (size <= PING_COPY_MAX) {
		run->payload = malloc(size + 1);
		if (!run->payload)
			return plx_fail(ENOMEM, "out of memory");
		ping_fill(run->payload, size, 0);
		return 0;
	}
	if (plx_buf_pool_create(&attr, size, &run->pool) != 0)
		return -ENOMEM;
	run->message = plx_buf_get(run->pool);
	if (!run->message)
		return plx_fail(ENOMEM, "out of memory");
	ping_fill(plx_buf_append(run->message, (uint32_t)size), size, 0);
	return 0;
}

/* Until the peer has taken all messages. */
static uint64_t close_ns(const struct ping_conf *conf)
{
	return conf->self ? PING_CLOSE_NS : SILENCE_S * PLX_NS_PER_S;
}

static int measure(struct one_way *run)
{
	struct plx_link_attr attr = {
		.events = &events,
		.user = run,
		.close_timeout_ns = close_ns(run->conf),
		.protocol = PLX_PROTOCOL_ECHO,
	};
	int rc = plx_link_connect(run->conf->connect, &attr, &run->link);

	if (rc == 0)
		rc = one_way_start_sender(run);
	if (rc)
		return rc;
	plx_timer_init(&run->progress, on_progress, run);
	plx_timer_init(&run->watch, on_watch, run);
	plx_timer_set_lax(&run->progress, true);
	plx_timer_set_lax(&run->watch, true);
	plx_loop_run();
	plx_timer_stop(&run->watch);
	if (plx_timer_running(&run->progress))
		fputc('\n', stderr);
	plx_timer_stop(&run->progress);
	run->signalled = !run->stopped;
	run->stopped = true;
	return 0;
}

static int end(struct one_way *run)
{
	struct ping_outcome *outcome = run->outcome;

	if (run->first_ns) {
		outcome->one_way_count = run->sent - run->conf->warmup;
		outcome->elapsed_ns = run->last_ns - run->first_ns;
	}
	return ping_end(outcome, outcome->one_way_count, run->failed ? run->error : NULL,
			run->signalled);
}

int ping_run_one_way(const struct ping_conf *conf, struct ping_outcome *outcome)
{
	struct one_way run = {
		.conf = conf,
		.outcome = outcome,
		.limit = conf->run.count ? conf->warmup + conf->run.count : UINT64_MAX,
		.stop_ns = UINT64_MAX,
	};
	int rc = prepare(&run);

	if (rc == 0) {
		ping_look_for_pollers(outcome);
		rc = measure(&run);
	}
	/* Longer than the link's own time limit, whose text says more. */
	if (plx_fabric_drain(close_ns(conf) + 100 * PLX_NS_PER_MS) != 0)
		one_way_fail(&run, plx_error());
	ping_abort(run.link);
	plx_poller_remove(run.sender);
	if (rc == 0)
		rc = end(&run);
	plx_buf_unref(run.message);
	plx_pool_destroy(run.pool);
	free(run.payload);
	return rc;
}
