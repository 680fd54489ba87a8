/* SPDX-License-Identifier: BSD-3-Clause */
/* The event loop: an lcore's loop with NetIO's init and fini. */
#include "accept.h"
#include "connection.h"
#include "pubsub_priv.h"
#include "push.h"

#define CLOSING_NS (4 * PLX_NS_PER_S) /* below the 5 s that the EAL waits for an lcore to stop */

struct plx_log_component netio_log = {.name = "netio", .level = PLX_LOG_NOTICE};

PLX_CONSTRUCTOR static void register_log(void)
{
	plx_log_register(&netio_log);
}

int netio_fail(int rc)
{
	plx_log(&netio_log, PLX_LOG_ERROR, "%s", plx_error());
	return rc;
}

int netio_check(const struct netio_eventloop *evloop, const char *what)
{
	if (!evloop || !evloop->ready)
		return netio_fail(plx_fail(EINVAL,
					   "%s: the event loop is not set up; call netio_init, and "
					   "see whether it gives 0",
					   what));
	if (plx_is_forked())
		return netio_fail(plx_fail_forked(what));
	if (plx_lcore_id() != evloop->lcore_id)
		return netio_fail(plx_fail(EPERM,
					   "%s: the event loop is lcore %u's; call it on the "
					   "thread that has set it up, by netio_post if need be",
					   what, evloop->lcore_id));
	return 0;
}

int netio_fail_closed(void)
{
	if (plx_is_forked())
		return plx_fail_forked("the socket");
	return plx_fail(ENOTCONN, "the socket is not connected");
}

/* Also runs after netio_terminate on another thread. */
static void on_terminate(struct plx_signal *signal, uint64_t fires, void *arg)
{
	struct netio_eventloop *evloop = arg;

	evloop->terminated = true;
	if (evloop->running) /* otherwise another loop runs on this lcore */
		plx_loop_quit();
}

static int init(struct netio_eventloop *evloop, const struct plx_eal_conf *conf)
{
	int rc;

	*evloop = (struct netio_eventloop){.lcore_id = PLX_LCORE_NONE};
	rc = netio_process_enter(conf);
	if (rc)
		return netio_fail(rc);
	evloop->lcore_id = plx_lcore_id();
	/* Cannot fail: the lcore is this one. */
	plx_signal_init(&evloop->terminate, evloop->lcore_id, on_terminate, evloop);
	evloop->ready = true;
	return 0;
}

int netio_eventloop_init(struct netio_eventloop *evloop)
{
	return init(evloop, NULL);
}

int netio_init(struct netio_context *ctx)
{
	return init(&ctx->evloop, NULL);
}

int netio_init_conf(struct netio_context *ctx, const struct plx_eal_conf *conf)
{
	return init(&ctx->evloop, conf);
}

/* First closes this lcore's connections of other loops' sockets, including new ones. */
static bool is_closing(struct netio_eventloop *evloop)
{
	acceptor_close_all(evloop);
	return acceptor_any_open(evloop) || plx_session_any_closing();
}

/* Released sockets close without loss, which takes turns of the loop. Continue while they make
 * progress; if the process is stopping, for at most CLOSING_NS. */
static void finish_closing(struct netio_eventloop *evloop)
{
	uint64_t limit_ns = plx_now_ns() + CLOSING_NS, seen = plx_session_progress();

	while (is_closing(evloop) && plx_now_ns() < limit_ns && plx_loop_turn() >= 0) {
		if (plx_session_progress() == seen || plx_stopping())
			continue;
		seen = plx_session_progress();
		limit_ns = plx_now_ns() + CLOSING_NS;
	}
	if (is_closing(evloop))
		plx_log(&netio_log, PLX_LOG_WARNING,
			"netio_fini: some connections do not close; what they had still to send "
			"may be lost");
}

/* Return: 0; -ETIMEDOUT; -EBUSY. */
static int turn_until_closed(struct netio_eventloop *evloop, enum wire_role role, uint64_t limit_ns)
{
	while (is_closing(evloop) || connection_any_open(evloop, role)) {
		if (plx_now_ns() >= limit_ns)
			return plx_fail(ETIMEDOUT, "netio_drain: some connections do not close");
		if (plx_loop_turn() < 0)
			return plx_fail(EBUSY, "netio_drain: inside the loop of the lcore");
	}
	return 0;
}

/* Receivers close last, because their peers may be in this loop too. */
static int drain(struct netio_eventloop *evloop, uint64_t limit_ns)
{
	int rc;

	connection_close_all(evloop, WIRE_SENDER);
	rc = turn_until_closed(evloop, WIRE_SENDER, limit_ns);
	if (rc)
		return rc;
	connection_close_all(evloop, WIRE_SUBSCRIBER);
	return turn_until_closed(evloop, WIRE_SUBSCRIBER, limit_ns);
}

int netio_drain(struct netio_eventloop *evloop, uint64_t timeout_ns)
{
	int rc = netio_check(evloop, "netio_drain");

	if (rc)
		return rc;
	if (evloop->running || evloop->draining)
		return netio_fail(plx_fail(EBUSY, "netio_drain: inside the loop; call "
						  "netio_terminate, and do it after netio_run"));
	evloop->draining = true;
	rc = drain(evloop, plx_time_add(plx_now_ns(), timeout_ns));
	evloop->draining = false;
	return rc ? netio_fail(rc) : 0;
}

int netio_eventloop_fini(struct netio_eventloop *evloop)
{
	int rc;

	if (!evloop->ready)
		return 0;
	if (plx_is_forked()) {
		evloop->ready = false;
		return netio_process_leave();
	}
	rc = netio_check(evloop, "netio_fini");
	if (rc)
		return rc;
	if (evloop->running)
		return netio_fail(plx_fail(EBUSY, "netio_fini: inside netio_run; call "
						  "netio_terminate, and do it after netio_run"));
	plx_signal_fini(&evloop->terminate);
	subscribe_release_all(evloop);
	push_release_all(evloop);
	connection_release_all(evloop);
	acceptor_release_all(evloop);
	finish_closing(evloop);
	rc = netio_process_leave();
	if (rc)
		return netio_fail(rc);
	evloop->ready = false;
	return 0;
}

int netio_fini(struct netio_context *ctx)
{
	return netio_eventloop_fini(&ctx->evloop);
}

/* Runs even if a C++ callback throws: see lib/lcore/loop/loop.c. */
static void leave_run(struct netio_eventloop **evloop)
{
	(*evloop)->running = false;
	(*evloop)->terminated = false;
}

int netio_run(struct netio_eventloop *evloop)
{
	int rc = netio_check(evloop, "netio_run");

	if (rc)
		return rc;
	if (evloop->running)
		return netio_fail(plx_fail(EBUSY, "netio_run: it runs already; return from the "
						  "callback instead"));

	struct netio_eventloop *running PLX_CLEANUP(leave_run) = evloop;

	evloop->running = true;
	if (evloop->cb_init)
		evloop->cb_init();
	if (!evloop->terminated) {
		rc = plx_loop_run();
		if (rc)
			netio_fail(rc);
	}
	return rc;
}

void netio_terminate(struct netio_eventloop *evloop)
{
	if (!evloop->ready)
		return;
	if (plx_is_forked())
		return;
	if (plx_lcore_id() == evloop->lcore_id)
		on_terminate(NULL, 1, evloop);
	else
		plx_signal_fire(&evloop->terminate);
}

int netio_post(struct netio_eventloop *evloop, void (*fn)(void *arg), void *arg)
{
	int rc;

	if (!evloop || !evloop->ready)
		return netio_check(evloop, "netio_post");
	rc = plx_lcore_send(evloop->lcore_id, fn, arg);
	return rc && rc != -EAGAIN ? netio_fail(rc) : rc;
}
