/* SPDX-License-Identifier: BSD-3-Clause */
/* An idle TCP link between two lcores of this process, which makes both poll the provider. The main
 * lcore listens and waits; the other lcore connects, and reports by messages. */
#include "perf.h"

#define PATIENCE_NS (5 * PLX_NS_PER_S)

static struct {
	uint32_t away;
	struct plx_listener *listener;
	struct plx_link *link; /* of lcore `away` */
	int ends;              /* that are open */
	bool failed;
	char error[256]; /* written by lcore `away`, before the message */
} tcp;

/* Messages to the main lcore. */
static void told_ends(void *change)
{
	tcp.ends += (int)(intptr_t)change;
}

static void told_failed(void *arg)
{
	tcp.failed = true;
}

/* Thread: lcore `away`. */
static void fail(const char *why)
{
	snprintf(tcp.error, sizeof(tcp.error), "%s", why);
	plx_lcore_send(plx_lcore_main(), told_failed, NULL);
}

/* Either end of the link ---------------------------------------------------------------------- */

static void on_open(struct plx_link *link, void *user)
{
	plx_lcore_send(plx_lcore_main(), told_ends, (void *)1);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	if (plx_lcore_id() == tcp.away) {
		tcp.link = NULL;
		if (reason != PLX_LINK_CLOSED)
			fail(text);
	}
	plx_lcore_send(plx_lcore_main(), told_ends, (void *)-1);
}

static const struct plx_link_events events = {.on_open = on_open, .on_close = on_close};

/* The connecting side: lcore `away` ----------------------------------------------------------- */

static void do_connect(void *arg)
{
	struct plx_link_attr attr = {.events = &events};

	if (plx_link_connect(plx_listener_address(tcp.listener), &attr, &tcp.link) != 0)
		fail(plx_error());
}

static void do_close(void *arg)
{
	if (tcp.link)
		plx_link_close(tcp.link);
}

/* The listening side: the main lcore ---------------------------------------------------------- */

static bool is_done(void *ends)
{
	return tcp.ends == *(int *)ends || tcp.failed || plx_stopping();
}

/* Let the other lcore do that, and wait until `ends` ends are open. */
static int await(void (*step)(void *arg), int ends)
{
	int rc = plx_lcore_send(tcp.away, step, NULL);

	if (rc)
		return rc;
	if (plx_loop_until(is_done, &ends, PATIENCE_NS) != 0)
		return plx_fail(ETIMEDOUT, "the idle link did not open or close in time");
	if (plx_stopping())
		return plx_fail(EINTR, "interrupted");
	return tcp.failed ? plx_fail(EIO, "the idle link failed: %s", tcp.error) : 0;
}

int idle_tcp_open(uint32_t away)
{
	struct plx_listen_attr attr = {.link = {.events = &events, .provider = "tcp"}};
	int rc = plx_link_listen("127.0.0.1:0", &attr, &tcp.listener);

	tcp.away = away;
	return rc ? rc : await(do_connect, 2);
}

int idle_tcp_close(void)
{
	int rc = await(do_close, 0);

	plx_listener_close(tcp.listener);
	return rc;
}
