/* SPDX-License-Identifier: BSD-3-Clause */
/* Watching: subscribes to changes first and lists everything after that, so none is missed in
 * between. A snapshot of what was shown orders the reports of both. Callbacks only note what to do;
 * `follow` does it. */
#include "params.h"

#include "bytes.h"
#include "netio.h"
#include "wire.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
	struct netio_context netio;
	struct netio_subscribe_socket socket;
	struct plx_fd *output; /* standard output, unless it is a file */
	struct snapshot shown;
	char host[PLX_ADDRESS_MAX];
	unsigned port;
	bool is_subscribed;
	bool lists;   /* list everything after subscribing */
	bool asks;    /* the port where changes are published may be another one */
	bool is_gone; /* and this was reported */
} seen;

/* Showing ------------------------------------------------------------------------------------- */

static void on_news(const struct param *param)
{
	int rc = show_param(param, true);

	if (rc)
		client_fail(rc);
}

static void on_message(struct netio_subscribe_socket *socket, const struct netio_msg *message)
{
	const char *below = params_asked->below ? params_asked->below : "";
	struct param param;
	const char *wrong = record_read(message->data, message->len, &param);
	int rc = 0;

	if (wrong)
		rc = plx_fail(EPROTO, "what is published: %s", wrong);
	else if (param_name_is_below(param.name, param.name_length, below, strlen(below)))
		rc = snapshot_take(&seen.shown, &param);
	if (rc)
		client_fail(rc);
}

/* The subscription ---------------------------------------------------------------------------- */

/* Report once per loss, however many attempts follow. On standard error: a program may read
 * standard output. */
static void say_gone(bool is_gone)
{
	if (client_over() || is_gone == seen.is_gone)
		return;
	seen.is_gone = is_gone;
	fprintf(stderr, "%s: the service is %s\n", params_app.name,
		is_gone ? "gone; waiting" : "back");
}

static void on_subscribed(struct netio_publisher *publisher,
			  const struct netio_subscription *subscription)
{
	say_gone(false);
	seen.is_subscribed = seen.lists = true;
	plx_loop_quit();
}

static void on_lost(struct netio_publisher *publisher,
		    const struct netio_subscription *subscription, const char *why)
{
	int rc = snapshot_lose(&seen.shown);

	seen.is_subscribed = false;
	if (rc)
		client_fail(rc);
}

static void on_gap(struct netio_publisher *publisher, const struct netio_gap *gap)
{
	if (gap->reasons == NETIO_GAP_BIT(NETIO_GAP_CONFLATED)) /* the newest arrived */
		return;
	seen.lists = true;
	plx_loop_quit();
}

static void on_refused(struct netio_publisher *publisher,
		       const struct netio_subscription *subscription, const char *why)
{
	client_fail(plx_fail(EIO, "the service does not let this one watch: %s", why));
}

static void on_away(struct netio_publisher *publisher, enum plx_link_reason reason, const char *why)
{
	say_gone(true);
	seen.asks = true;
	plx_loop_quit();
}

/* Subscribe to everything, because the set of ids below a name changes. */
static const struct netio_subscription everything = {
	.tag = 1, .last = UINT64_MAX, .policy = NETIO_POLICY_CONFLATE};

/* A restarted service may publish at another port. Return: 0; -errno. */
static int use_port(unsigned port)
{
	if (port == seen.port)
		return 0;
	if (seen.port)
		netio_unsubscribe_from(&seen.socket, seen.host, seen.port, &everything);
	seen.port = port;
	return netio_subscribe_to(&seen.socket, seen.host, port, &everything);
}

/* retries: without a reply, the next attempt to connect asks again. Return: 0; as client_call. */
static int ask_port(bool retries)
{
	const struct plx_rpc_result *reply;
	int rc;

	seen.asks = false;
	rc = client_call("--watch", PARAMS_WATCH, false, NULL, 0, &reply);
	if (rc)
		return retries ? client_over() : rc;
	if (reply->length != sizeof(uint16_t))
		return plx_fail(EPROTO, "the reply to --watch is no port");
	if (get16(reply->data) == 0)
		return plx_fail(EPROTO, "it does not publish");
	return use_port(get16(reply->data));
}

static int begin(void)
{
	unsigned of_service;
	int rc = plx_address_split("--connect", params_asked->service, seen.host, &of_service);

	rc = rc ? rc : netio_init(&seen.netio);
	rc = rc ? rc : netio_subscribe_socket_init(&seen.netio.evloop, &seen.socket, NULL);
	if (rc)
		return rc;
	seen.socket.cb_subscribed = on_subscribed;
	seen.socket.cb_subscription_resumed = on_subscribed;
	seen.socket.cb_subscription_lost = on_lost;
	seen.socket.cb_subscription_refused = on_refused;
	seen.socket.cb_connection_refused = on_away;
	seen.socket.cb_connection_closed = on_away;
	seen.socket.cb_gap = on_gap;
	seen.socket.cb_msg_received = on_message;
	return ask_port(false);
}

/* Return: 0; the error that ends the watch. */
static int list_again(void)
{
	int rc;

	seen.lists = false;
	rc = client_list(&seen.shown, 0, true);
	return rc == -EAGAIN ? 0 : rc; /* lost: the next subscription lists */
}

/* Return: 0 at a signal; -errno. */
static int follow(void)
{
	int rc;

	while ((rc = client_over()) == 0) {
		if (seen.asks)
			rc = ask_port(true);
		else if (seen.is_subscribed && seen.lists)
			rc = list_again();
		else
			plx_loop_run();
		if (rc)
			break;
	}
	return rc == -EINTR ? 0 : rc;
}

/* Output -------------------------------------------------------------------------------------- */

static void on_reader_left(int fd, uint32_t events, void *arg)
{
	plx_fd_remove(seen.output);
	seen.output = NULL;
	client_fail(plx_fail(EPIPE, "standard output: %s", plx_app_stream_error(EPIPE)));
}

/* Changes may be rare, so watch for a reader that leaves. A file has no reader.
 * Return: 0; -errno. */
static int watch_reader(void)
{
	int rc = plx_fd_add(STDOUT_FILENO, 0, on_reader_left, NULL, &seen.output);

	return rc == -EPERM ? 0 : rc;
}

int watch(void)
{
	int rc = snapshot_init(&seen.shown, on_news);

	if (rc)
		return rc;
	rc = watch_reader();
	rc = rc ? rc : begin();
	rc = rc ? rc : follow();
	client_fail(rc ? rc : -EINTR); /* report nothing more */
	plx_fd_remove(seen.output);
	if (seen.netio.evloop.ready) {
		netio_subscribe_socket_fini(&seen.socket);
		netio_fini(&seen.netio);
	}
	snapshot_fini(&seen.shown);
	return rc;
}
