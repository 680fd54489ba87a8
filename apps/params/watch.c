/* SPDX-License-Identifier: BSD-3-Clause */
/* Watching: changes are subscribed to first, and then all is listed, so that none is missed
 * between. What comes by the two ways is put in order by its revisions: for each parameter they
 * only rise. */
#include "watch.h"

#include "address.h"
#include "netio.h"
#include "plx_lcore.h"
#include "store.h"
#include "wire.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#define ID_REMOVED 0 /* in the mirror: one that is no more */

static struct {
	const struct params_conf *conf;
	struct plx_rpc_client *client;
	struct netio_context netio;
	struct netio_subscribe_socket socket;
	struct store *mirror; /* what was shown */
	bool lists, again;    /* while it lists: something was missed, so once more */
	char after[PARAM_NAME_MAX];
	uint32_t after_length;
	char host[PLX_ADDRESS_MAX];
	unsigned port;
	bool asks; /* where it publishes now */
	int rc;
} seen;

static void fail(int rc)
{
	seen.rc = rc;
	plx_loop_quit();
}

static bool is_watched(const struct param *param)
{
	const char *below = seen.conf->below ? seen.conf->below : "";

	return param_name_is_below(param->name, param->name_length, below, strlen(below));
}

/* Return: whether it is news. */
static bool mirror(const struct param *param, bool removed)
{
	const struct param *known = store_find(seen.mirror, param->name, param->name_length);
	struct param copy = *param;
	bool was_there = known && known->id != ID_REMOVED;

	if (known && known->revision >= param->revision)
		return false;
	if (known)
		store_remove(seen.mirror, known);
	if (removed)
		copy.id = ID_REMOVED;
	if (store_restore(seen.mirror, &copy) != 0)
		fail(-ENOMEM);
	return !removed || was_there;
}

static void take(const struct param *param, bool removed)
{
	if (is_watched(param) && mirror(param, removed))
		show_change(param, removed);
}

/* Listing ----------------------------------------------------------------------------------------
 */

static void list_next(void);

static void list_anew(void)
{
	seen.again = seen.lists;
	if (seen.lists)
		return;
	seen.after_length = 0;
	list_next();
}

static const char *take_page(const struct plx_rpc_result *result, bool *more_out)
{
	const char *after, *wrong;
	struct param param;
	size_t offset;

	wrong = page_read(result->data, result->length, more_out, &after, &seen.after_length,
			  &offset);
	if (wrong)
		return wrong;
	memcpy(seen.after, after, seen.after_length);
	while (page_next(result->data, result->length, &offset, &param, &wrong))
		take(&param, false);
	return wrong;
}

static void on_page(const struct plx_rpc_result *result, void *arg)
{
	const char *wrong;
	bool more = false;

	seen.lists = false;
	if (result->status == PLX_RPC_CANCELLED)
		return;
	if (result->status != PLX_RPC_OK) { /* it is away: the subscription tells when it is back */
		seen.again = false;
		return;
	}
	wrong = take_page(result, &more);
	if (wrong) {
		fail(plx_fail(EPROTO, "the reply: %s", wrong));
	} else if (seen.again) {
		seen.again = false;
		list_anew();
	} else if (more) {
		list_next();
	}
}

static void list_next(void)
{
	const char *below = seen.conf->below ? seen.conf->below : "";
	uint8_t order[WIRE_LIST_BYTES + 2 * PARAM_NAME_MAX];
	struct list_order what = {
		.prefix = below,
		.prefix_length = (uint32_t)strlen(below),
		.after = seen.after,
		.after_length = seen.after_length,
	};
	struct plx_rpc_call call = {
		.method = PARAMS_LIST,
		.deadline_ns = seen.conf->deadline_ns,
		.retry = true,
		.done = on_page,
	};
	int rc = plx_rpc_call(seen.client, &call, order, list_write(&what, order), NULL);

	seen.lists = rc == 0;
	if (rc)
		fail(rc);
}

/* The subscription -------------------------------------------------------------------------------
 */

static void on_subscribed(struct netio_publisher *publisher,
			  const struct netio_subscription *subscription)
{
	list_anew();
}

static void on_gap(struct netio_publisher *publisher, const struct netio_gap *gap)
{
	if (gap->reason != NETIO_GAP_CONFLATED) /* else the newest came */
		list_anew();
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

/* Of all, whatever is watched: which ids are below a name changes. */
static const struct netio_subscription everything = {
	.tag = 1, .last = UINT32_MAX, .policy = NETIO_POLICY_CONFLATE};

/* A service that was started anew may publish at another port. */
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
	if (result->status != PLX_RPC_OK) /* the next attempt to connect asks again */
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

	if (!seen.asks)
		seen.asks = plx_rpc_call(seen.client, &call, NULL, 0, NULL) == 0;
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
	unsigned port = 0;
	int rc = ask_port(&port);

	if (rc)
		return rc;
	address_split(seen.conf->services.at[0], seen.host);
	rc = netio_init(&seen.netio);
	rc = rc ? rc : netio_subscribe_socket_init(&seen.netio.evloop, &seen.socket, NULL);
	if (rc)
		return rc;
	seen.socket.cb_subscribed = on_subscribed;
	seen.socket.cb_subscription_resumed = on_subscribed;
	seen.socket.cb_subscription_refused = on_refused;
	seen.socket.cb_connection_refused = on_away;
	seen.socket.cb_connection_closed = on_away;
	seen.socket.cb_gap = on_gap;
	seen.socket.cb_msg_received = on_message;
	use_port(port);
	return seen.rc;
}

int watch(const struct params_conf *conf, struct plx_rpc_client *client)
{
	int rc;

	seen.conf = conf;
	seen.client = client;
	rc = store_create(&seen.mirror);
	rc = rc ? rc : subscribe();
	if (rc == 0) {
		plx_loop_run();
		rc = seen.rc;
	}
	if (seen.netio.evloop.ready) {
		netio_subscribe_socket_fini(&seen.socket);
		netio_fini(&seen.netio);
	}
	return rc;
}
