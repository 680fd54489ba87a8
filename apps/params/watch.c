/* SPDX-License-Identifier: BSD-3-Clause */
/* Watching: subscribes to changes first and lists everything after that, so none is missed in
 * between. A mirror of what was shown orders the updates of both paths. */
#include "watch.h"

#include "listing.h"
#include "mirror.h"
#include "netio.h"
#include "plx_lcore.h"
#include "wire.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
	const struct params_conf *conf;
	struct plx_rpc_client *client;
	struct netio_context netio;
	struct netio_subscribe_socket socket;
	struct plx_fd *output; /* standard output, unless it is a file */
	struct mirror *mirror; /* of what was shown */
	struct listing listing;
	const char *below;
	char host[PLX_ADDRESS_MAX];
	unsigned port;
	bool asks;    /* asking for the port it publishes at */
	bool is_gone; /* and this was reported */
	bool ends;    /* report nothing more */
	int rc;
} seen;

static void fail(int rc)
{
	seen.rc = rc;
	listing_stop(&seen.listing);
	plx_loop_quit();
}

/* Showing ----------------------------------------------------------------------------------------
 */

static void show(const struct param *param, bool removed)
{
	int rc = show_change(param, removed);

	if (rc)
		fail(rc);
}

static void take(const struct param *param, bool removed)
{
	int rc;

	if (!param_name_is_below(param->name, param->name_length, seen.below, strlen(seen.below)))
		return;
	rc = mirror_take(seen.mirror, param, removed);
	if (rc > 0)
		show(param, removed);
	else if (rc < 0)
		fail(rc);
}

static void on_begun(void *arg)
{
	mirror_begin(seen.mirror);
}

static void on_found(const struct param *param, void *arg)
{
	take(param, false);
}

static void on_gone(const struct param *param, void *arg)
{
	show(param, true);
}

static void on_ended(void *arg)
{
	mirror_end(seen.mirror, on_gone, NULL);
}

static void on_failed(int rc, void *arg)
{
	fail(rc);
}

/* The subscription -------------------------------------------------------------------------------
 */

/* Report once per loss, however many attempts follow. On standard error: a program may read
 * standard output. */
static void say_gone(bool is_gone)
{
	if (seen.ends || is_gone == seen.is_gone)
		return;
	seen.is_gone = is_gone;
	fprintf(stderr, "%s: the service is %s\n", params_app.name,
		is_gone ? "gone; waiting" : "back");
}

static void on_subscribed(struct netio_publisher *publisher,
			  const struct netio_subscription *subscription)
{
	say_gone(false);
	listing_begin(&seen.listing);
}

static void on_lost(struct netio_publisher *publisher,
		    const struct netio_subscription *subscription, const char *why)
{
	listing_stop(&seen.listing);
	mirror_lose(seen.mirror);
}

static void on_gap(struct netio_publisher *publisher, const struct netio_gap *gap)
{
	if (gap->reasons != NETIO_GAP_BIT(NETIO_GAP_CONFLATED)) /* otherwise the newest arrived */
		listing_once_more(&seen.listing);
}

static void on_refused(struct netio_publisher *publisher,
		       const struct netio_subscription *subscription, const char *why)
{
	fail(plx_fail(EIO, "the service does not let this one watch: %s", why));
}

static void on_message(struct netio_subscribe_socket *socket, const struct netio_msg *message)
{
	struct param param;
	bool removed;
	const char *wrong = record_read(message->data, message->len, &param, &removed);

	if (wrong)
		fail(plx_fail(EPROTO, "what is published: %s", wrong));
	else
		take(&param, removed);
}

/* Subscribe to everything, because the set of ids below a name changes. */
static const struct netio_subscription everything = {
	.tag = 1, .last = UINT64_MAX, .policy = NETIO_POLICY_CONFLATE};

/* A restarted service may publish at another port. */
static void use_port(unsigned port)
{
	if (port == seen.port)
		return;
	if (seen.port)
		netio_unsubscribe_from(&seen.socket, seen.host, seen.port, &everything);
	seen.port = port;
	if (netio_subscribe_to(&seen.socket, seen.host, port, &everything) != 0)
		fail(-EIO);
}

static const char *read_port(const uint8_t *data, size_t length, unsigned *port_out)
{
	uint16_t port;

	if (length != sizeof(port))
		return "the reply to --watch is no port";
	memcpy(&port, data, sizeof(port));
	*port_out = le16toh(port);
	return *port_out ? NULL : "it does not publish";
}

static void on_port(const struct plx_rpc_result *result, void *arg)
{
	const char *wrong;
	unsigned port = 0;

	seen.asks = false;
	if (result->status != PLX_RPC_OK) /* the next connection attempt asks again */
		return;
	wrong = read_port(result->data, result->length, &port);
	if (wrong)
		fail(plx_fail(EPROTO, "%s", wrong));
	else
		use_port(port);
}

static void on_away(struct netio_publisher *publisher, enum plx_link_reason reason, const char *why)
{
	struct plx_rpc_call call = {
		.method = PARAMS_WATCH,
		.deadline_ns = seen.conf->deadline_ns,
		.done = on_port,
	};

	say_gone(true);
	if (!seen.asks)
		seen.asks = plx_rpc_call_start(seen.client, &call, NULL, 0, NULL) == 0;
}

/* Return: 0; -errno. */
static int ask_port(unsigned *port_out)
{
	struct answer answer;
	const char *wrong;
	int rc = params_call(seen.client, "--watch", PARAMS_WATCH, false, NULL, 0, &answer);

	if (rc)
		return rc;
	wrong = read_port(answer.data, answer.length, port_out);
	answer_let_go(&answer);
	return wrong ? plx_fail(EPROTO, "%s", wrong) : 0;
}

static int subscribe(void)
{
	unsigned port = 0, of_service;
	int rc = ask_port(&port);

	rc = rc ? rc : plx_address_split("--connect", seen.conf->service, seen.host, &of_service);
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
	use_port(port);
	return seen.rc;
}

static void prepare(const struct params_conf *conf, struct plx_rpc_client *client)
{
	seen.conf = conf;
	seen.client = client;
	seen.below = conf->below ? conf->below : "";
	seen.listing = (struct listing){
		.client = client,
		.below = seen.below,
		.deadline_ns = conf->deadline_ns,
		.begun = on_begun,
		.found = on_found,
		.ended = on_ended,
		.failed = on_failed,
	};
}

static void on_reader_left(int fd, uint32_t events, void *arg)
{
	plx_fd_remove(seen.output);
	seen.output = NULL;
	fail(plx_fail(EPIPE, "standard output: %s", plx_app_stream_error(EPIPE)));
}

/* Changes may be rare, so watch for a reader that leaves. A file has no reader.
 * Return: 0; -errno. */
static int watch_reader(void)
{
	int rc = plx_fd_add(STDOUT_FILENO, 0, on_reader_left, NULL, &seen.output);

	return rc == -EPERM ? 0 : rc;
}

int watch(const struct params_conf *conf, struct plx_rpc_client *client)
{
	int rc = mirror_create(&seen.mirror);

	if (rc)
		return rc;
	prepare(conf, client);
	rc = watch_reader();
	rc = rc ? rc : subscribe();
	if (rc == 0) {
		plx_loop_run();
		rc = seen.rc;
	}
	seen.ends = true;
	plx_fd_remove(seen.output);
	if (seen.netio.evloop.ready) {
		netio_subscribe_socket_fini(&seen.socket);
		netio_fini(&seen.netio);
	}
	listing_stop(&seen.listing);
	mirror_destroy(seen.mirror);
	return rc;
}
