/* SPDX-License-Identifier: BSD-3-Clause */
/* The event loop: an lcore's loop with NetIO's init and fini. Checks of all functions. */
#include "accept.h"
#include "connection.h"

#include <stdio.h>
#include <stdlib.h>

/* netio_fini waits this long for connections. The rest of its time is for the EAL, which waits as
 * long for an lcore that is in netio_fini. */
#define CLOSING_NS (PLX_CLOSE_NS - PLX_NS_PER_S)

PLX_LOG_COMPONENT(log_component, "netio");
struct plx_log_component *const netio_log = &log_component;

int netio_logged(int rc)
{
	if (rc)
		plx_log(netio_log, PLX_LOG_ERROR, "%s", plx_error());
	return rc;
}

int netio_check(const struct netio_eventloop *evloop, const char *what)
{
	if (!evloop || !evloop->ready)
		return netio_fail(EINVAL,
				  "%s: the event loop is not set up; call netio_init, and "
				  "see whether it gives 0",
				  what);
	if (plx_is_forked())
		return netio_logged(plx_fail_forked(what));
	if (plx_lcore_id() != evloop->lcore_id)
		return netio_fail(EPERM,
				  "%s: the event loop is lcore %u's; call it on the "
				  "thread that has set it up, by netio_post if need be",
				  what, evloop->lcore_id);
	return 0;
}

/* Check that the loop may run or end here; log a failure. Return: as netio_check; -EBUSY in a
 * callback. */
static int check_outside(const struct netio_eventloop *evloop, const char *what)
{
	int rc = netio_check(evloop, what);

	if (rc || !plx_loop_in_turn())
		return rc;
	return netio_fail(EBUSY,
			  "%s: inside a callback; call plx_loop_quit, or netio_terminate in "
			  "netio_run, and make this call when the loop has returned",
			  what);
}

int netio_check_open(const struct netio_eventloop *evloop, const char *what)
{
	if (!evloop->draining)
		return 0;
	return netio_fail(ESHUTDOWN,
			  "%s: the connections of this loop are being closed; open new ones "
			  "when netio_drain has returned",
			  what);
}

void *netio_allocate(struct netio_eventloop *evloop, const char *what, size_t bytes, int *rc_out)
{
	void *state = NULL;

	*rc_out = netio_check(evloop, what);
	if (*rc_out == 0 && evloop->ending)
		*rc_out = netio_fail(ESHUTDOWN, "%s: netio_fini is ending this loop", what);
	if (*rc_out == 0 && posix_memalign(&state, PLX_CACHE_LINE, bytes) != 0)
		*rc_out = netio_fail(ENOMEM, "%s: out of memory", what);
	return *rc_out ? NULL : memset(state, 0, bytes);
}

int netio_check_range(const char *name, uint64_t value, uint64_t least, uint64_t most)
{
	if (value >= least && value <= most)
		return 0;
	return plx_fail(EINVAL, "%s %llu: give %llu to %llu", name, (unsigned long long)value,
			(unsigned long long)least, (unsigned long long)most);
}

int netio_check_enum(const char *name, unsigned value, unsigned count, const char *type)
{
	if (value < count)
		return 0;
	return plx_fail(EINVAL, "%s %d: give one of enum %s", name, (int)value, type);
}

int netio_fail_closed(void)
{
	if (plx_is_forked())
		return plx_fail_forked("the socket");
	return plx_fail(ENOTCONN, "the socket is not connected");
}

int netio_address(const char *what, const char *host, unsigned port, char out[PLX_ADDRESS_MAX])
{
	bool is_ipv6 = host && strchr(host, ':') && host[0] != '[' && !strstr(host, "://");

	if (!host || !*host)
		return plx_fail(EINVAL, "%s: no host; give an address or a name", what);
	if (port > 65535)
		return plx_fail(EINVAL, "%s %s: port %u; give 0 to 65535", what, host, port);
	if (snprintf(out, PLX_ADDRESS_MAX, is_ipv6 ? "[%s]:%u" : "%s:%u", host, port) >=
	    PLX_ADDRESS_MAX)
		return plx_fail(EINVAL, "%s: a host of %zu characters; at most %d", what,
				strlen(host), PLX_ADDRESS_MAX - 8);
	return plx_address_check(what, out);
}

/* Also runs after netio_terminate on another thread, and in signal handlers of this one. */
static void on_terminate(struct plx_signal *signal, uint64_t fires, void *arg)
{
	struct netio_eventloop *evloop = arg;

	plx_atomic_store(&evloop->terminated, true, PLX_RELAXED);
	/* Otherwise another loop runs on this lcore. */
	if (plx_atomic_load(&evloop->running, PLX_RELAXED))
		plx_loop_quit();
}

static int init(struct netio_eventloop *evloop, const struct plx_eal_conf *conf)
{
	int rc;

	*evloop = (struct netio_eventloop){.lcore_id = PLX_LCORE_NONE};
	rc = netio_logged(netio_process_enter(conf));
	if (rc)
		return rc;
	evloop->lcore_id = plx_lcore_id();
	/* Cannot fail: the lcore is this one. */
	plx_signal_init(&evloop->terminate, evloop->lcore_id, on_terminate, evloop);
	netio_exit_watch(evloop);
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

/* Also closes this lcore's connections of other loops' sockets, including new ones. */
static bool is_closed(void *evloop)
{
	return !acceptor_close_all(evloop) && !session_closing();
}

/* Subscribers close last, because their peers may be in this loop too. */
static bool are_all_closed(void *evloop)
{
	bool is_sending = connection_close_all(evloop, WIRE_SENDER);

	return is_closed(evloop) && !is_sending && !connection_close_all(evloop, WIRE_SUBSCRIBER);
}

/* Also if a C++ callback throws: see lib/lcore/loop/loop.c. */
static void stop_draining(struct netio_eventloop **evloop)
{
	(*evloop)->draining = false;
}

/* All are closed. before: session_late_count(). Return: -ETIMEDOUT if some were given up. */
static int check_late(const char *what, uint64_t before)
{
	uint64_t count = session_late_count() - before;

	if (count == 0)
		return 0;
	return plx_fail(ETIMEDOUT, "%s: %llu peer%s " SESSION_LATE, what, (unsigned long long)count,
			count == 1 ? "" : "s");
}

int netio_drain(struct netio_eventloop *evloop, uint64_t timeout_ns)
{
	uint64_t late_before = session_late_count();
	int rc = check_outside(evloop, "netio_drain");

	if (rc)
		return rc;

	struct netio_eventloop *draining PLX_CLEANUP(stop_draining) = evloop;

	evloop->draining = true;
	rc = plx_loop_until(are_all_closed, evloop, timeout_ns);
	if (rc == -ETIMEDOUT)
		plx_fail(ETIMEDOUT, "netio_drain: some connections do not close");
	return netio_logged(rc ?: check_late("netio_drain", late_before));
}

/* Each step may be repeated: C++ callbacks may throw. */
int netio_close_all(struct netio_eventloop *evloop, const char *what, uint64_t timeout_ns)
{
	uint64_t began_ns = plx_now_ns(), late_before = session_late_count();
	int rc;

	plx_signal_fini(&evloop->terminate);
	evloop->ending = true;
	connection_release_all(evloop);
	acceptor_release_all(evloop);
	rc = plx_loop_until(is_closed, evloop, timeout_ns); /* it takes turns of the loop */
	if (rc != -ETIMEDOUT) /* some may have begun to close long before */
		return netio_logged(check_late(what, late_before));
	return netio_fail(ETIMEDOUT,
			  "%s: %s, and perhaps others, did not agree to close within %.1f s; what "
			  "they had not taken is lost",
			  what, session_closing() ?: "another loop's peer",
			  (double)(plx_now_ns() - began_ns) / 1e9);
}

/* Each step may be repeated: netio_process_leave may fail. */
static int fini(struct netio_eventloop *evloop, const char *what)
{
	char lost[PLX_ADDRESS_MAX + 200];
	int rc, closing;

	if (!evloop->ready)
		return 0;
	if (plx_is_forked()) {
		evloop->ready = false;
		return netio_process_leave();
	}
	rc = check_outside(evloop, what);
	if (rc)
		return rc;
	closing = netio_close_all(evloop, what, CLOSING_NS);
	snprintf(lost, sizeof(lost), "%s", plx_error());
	rc = netio_logged(netio_process_leave());
	evloop->ready = rc != 0 && plx_lcore_id() == evloop->lcore_id;
	if (!evloop->ready)
		netio_exit_forget(evloop);
	return rc || !closing ? rc : plx_fail(-closing, "%s", lost);
}

int netio_eventloop_fini(struct netio_eventloop *evloop)
{
	return fini(evloop, "netio_eventloop_fini");
}

int netio_fini(struct netio_context *ctx)
{
	return fini(&ctx->evloop, "netio_fini");
}

/* As stop_draining. */
static void leave_run(struct netio_eventloop **evloop)
{
	plx_atomic_store(&(*evloop)->running, false, PLX_RELAXED);
	plx_atomic_store(&(*evloop)->terminated, false, PLX_RELAXED);
}

static void call_init(void *arg)
{
	struct netio_eventloop *evloop = arg;

	evloop->cb_init();
}

int netio_run(struct netio_eventloop *evloop)
{
	int rc = check_outside(evloop, "netio_run");

	if (rc)
		return rc;

	struct netio_eventloop *running PLX_CLEANUP(leave_run) = evloop;

	plx_atomic_store(&evloop->running, true, PLX_RELAXED);
	if (evloop->cb_init)
		plx_loop_run_inside(call_init, evloop);
	rc = netio_logged(lcore_loop_begin());
	/* netio_terminate in a signal handler: before this look, or noticed by the run. */
	if (rc || plx_atomic_load(&evloop->terminated, PLX_RELAXED))
		return rc;
	return netio_logged(lcore_loop_run());
}

void netio_terminate(struct netio_eventloop *evloop)
{
	if (!evloop->ready || plx_is_forked())
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
	return rc == -EAGAIN ? rc : netio_logged(rc);
}
