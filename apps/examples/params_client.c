/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints a parameter of plx-params, which runs in another terminal, and each change of it.
 * Run it:  params_client --connect 127.0.0.1:7100 --name hv/rack1/voltage */
#include <netio/netio.h>
#include <plx_app.h>
#include <plx_rpc.h>
#include <string.h>

static const char *address, *name;
static const struct plx_option options[] = {
	PLX_ADDRESS("connect", &address, "host:port of plx-params", .required = true),
	PLX_TEXT("name", "NAME", &name, "of the parameter", .required = true),
	PLX_OPTIONS_END,
};
static const struct plx_app app = {.name = "params_client", .options = options};

/* apps/params/wire.h describes all methods, and records, which are little-endian. */
enum { GET = 0x70617201, WATCH = 0x70617207, REMOVED = 0x100, REAL = 3, TEXT = 4 };
static struct record {
	uint64_t revision, id, alarm_since_ns;
	uint8_t type, alarm_state, alarm_level, unit_length;
	uint16_t name_length, text_length, flags, zero[3];
	int64_t number; /* limits, unit and name follow; a text is at the end */
} last;

static struct plx_rpc_client *client;
static struct netio_subscribe_socket changes;
static int status;

static void show(const char *data, size_t length)
{
	struct record now = {0};
	double real;

	memcpy(&now, data, length < sizeof(now) ? length : sizeof(now));
	memcpy(&real, &now.number, sizeof(real));
	data += length - now.text_length; /* the name is before the text */
	if (now.revision <= last.revision || now.name_length != strlen(name) ||
	    memcmp(data - now.name_length, name, now.name_length) != 0)
		return; /* another one, or older: replies and publications overtake each other */
	last = now;
	if (now.flags & REMOVED)
		plx_app_say("%s is removed", name);
	else if (now.type == TEXT)
		plx_app_say("%s = %.*s", name, now.text_length, data);
	else if (now.type == REAL)
		plx_app_say("%s = %.15g", name, real);
	else
		plx_app_say("%s = %lld", name, (long long)now.number);
}

static void on_reply(const struct plx_rpc_result *reply, void *is_get)
{
	const struct netio_subscription all = {.tag = 1, .last = UINT64_MAX};
	char host[PLX_ADDRESS_MAX];
	unsigned port;

	if (reply->status != PLX_RPC_OK) {
		plx_fail(EIO, "%s: %s", name, plx_rpc_status_name(reply->status));
		status = plx_app_fail(&app);
		plx_loop_quit();
	} else if (is_get) {
		show(reply->data, reply->length);
	} else if (plx_address_split("--connect", address, host, &port) == 0) {
		netio_subscribe_to(&changes, host, *(const uint16_t *)reply->data, &all);
	}
}

static void on_subscribed(struct netio_publisher *publisher, const struct netio_subscription *what)
{
	const struct plx_rpc_call get = {.method = GET, .done = on_reply, .arg = &last};

	last.revision = 0; /* a restarted service may have lower ones */
	plx_rpc_call_start(client, &get, name, strlen(name), NULL); /* after subscribing */
}

static void on_message(struct netio_subscribe_socket *socket, const struct netio_msg *message)
{
	show(message->data, message->len);
}

int main(int argc, char **argv)
{
	const struct plx_rpc_call watch = {.method = WATCH, .done = on_reply};
	static struct netio_context netio;

	status = plx_app_start(argc, argv, &app);
	if (status != PLX_APP_RUN)
		return status;
	if (plx_rpc_client_create((const char *const[]){address, NULL}, NULL, &client) ||
	    netio_init(&netio) || netio_subscribe_socket_init(&netio.evloop, &changes, NULL) ||
	    plx_rpc_call_start(client, &watch, NULL, 0, NULL))
		return plx_app_finish(&app, plx_app_fail(&app));
	changes.cb_subscribed = changes.cb_subscription_resumed = on_subscribed;
	changes.cb_msg_received = on_message;
	plx_loop_run();
	netio_fini(&netio);
	plx_rpc_client_destroy(client);
	return plx_app_finish(&app, status != PLX_APP_RUN);
}
