/* SPDX-License-Identifier: BSD-3-Clause */
/* An idle TCP link between two lcores of this process, which makes both poll the provider. The main
 * lcore owns struct idle_tcp; the other lcore notifies it by messages. */
#include "perf.h"

#include <string.h>

#define PATIENCE_NS (5 * PLX_NS_PER_S)

/* Thread: the main lcore. */
static void told_open(void *arg)
{
	((struct idle_tcp *)arg)->open++;
}

static void told_closed(void *arg)
{
	((struct idle_tcp *)arg)->closed++;
}

static void told_failed(void *arg)
{
	((struct idle_tcp *)arg)->failed = true;
}

/* Either end of the link ---------------------------------------------------------------------- */

static void on_open(struct plx_link *link, void *user)
{
	plx_lcore_send(plx_lcore_main(), told_open, user);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct idle_tcp *tcp = user;
	bool is_away = plx_lcore_id() == tcp->away;

	if (is_away)
		tcp->link = NULL;
	if (is_away && reason != PLX_LINK_CLOSED) {
		snprintf(tcp->error, sizeof(tcp->error), "%s", text);
		plx_lcore_send(plx_lcore_main(), told_failed, tcp);
	}
	plx_lcore_send(plx_lcore_main(), told_closed, tcp);
}

static const struct plx_link_events events = {.on_open = on_open, .on_close = on_close};

/* The connecting side: lcore `away` ----------------------------------------------------------- */

static void do_connect(void *arg)
{
	struct idle_tcp *tcp = arg;
	struct plx_link_attr attr = {.events = &events, .user = tcp};

	if (plx_link_connect(plx_listener_address(tcp->listener), &attr, &tcp->link) == 0)
		return;
	snprintf(tcp->error, sizeof(tcp->error), "%s", plx_error());
	plx_lcore_send(plx_lcore_main(), told_failed, tcp);
}

static void do_close(void *arg)
{
	struct idle_tcp *tcp = arg;

	if (tcp->link)
		plx_link_close(tcp->link);
}

/* The listening side: the main lcore ---------------------------------------------------------- */

static bool is_open(void *arg)
{
	const struct idle_tcp *tcp = arg;

	return tcp->open == 2 || tcp->failed || plx_stopping();
}

static bool is_closed(void *arg)
{
	const struct idle_tcp *tcp = arg;

	return tcp->closed == 2 || tcp->failed || plx_stopping();
}

static int turn_until(struct idle_tcp *tcp, bool (*is_done)(void *tcp))
{
	if (plx_loop_until(is_done, tcp, PATIENCE_NS) != 0)
		return plx_fail(ETIMEDOUT, "the idle link did not open or close in time");
	if (plx_stopping())
		return plx_fail(EINTR, "interrupted");
	return tcp->failed ? plx_fail(EIO, "the idle link failed: %s", tcp->error) : 0;
}

int idle_tcp_open(struct idle_tcp *tcp, uint32_t away)
{
	struct plx_listen_attr attr = {.link = {.events = &events, .user = tcp, .provider = "tcp"}};
	int rc;

	*tcp = (struct idle_tcp){.away = away};
	rc = plx_link_listen("127.0.0.1:0", &attr, &tcp->listener);
	if (rc == 0)
		rc = plx_lcore_send(away, do_connect, tcp);
	return rc ? rc : turn_until(tcp, is_open);
}

int idle_tcp_close(struct idle_tcp *tcp)
{
	int rc = plx_lcore_send(tcp->away, do_close, tcp);

	if (rc == 0)
		rc = turn_until(tcp, is_closed);
	plx_listener_close(tcp->listener);
	tcp->listener = NULL;
	return rc;
}
