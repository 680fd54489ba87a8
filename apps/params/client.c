/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of the commands, one at a time. */
#include "params.h"

#include "wire.h"

#include <stdio.h>
#include <string.h>

#define ERROR_MAX 250 /* bytes of a service's error text that are shown */

static const struct params_conf *conf;
static struct plx_rpc_client *client;
static int failed_rc;

/* The last call's. */
static struct plx_rpc_result reply;
static struct plx_buf *message;
static bool is_done;

int client_begin(const struct params_conf *its_conf)
{
	const char *addresses[] = {its_conf->service, NULL};

	conf = its_conf;
	failed_rc = 0;
	return plx_rpc_client_create(addresses, NULL, &client);
}

static void let_go(void)
{
	plx_buf_unref(message);
	message = NULL;
}

void client_end(void)
{
	let_go();
	plx_rpc_client_destroy(client);
	let_go(); /* of a call that this has ended */
	client = NULL;
}

void client_fail(int rc)
{
	failed_rc = failed_rc ? failed_rc : rc;
	plx_loop_quit();
}

int client_over(void)
{
	if (failed_rc)
		return failed_rc;
	return plx_stopping() ? plx_fail(EINTR, "interrupted") : 0;
}

/* One call ------------------------------------------------------------------------------------ */

static void on_done(const struct plx_rpc_result *result, void *arg)
{
	reply = *result;
	message = result->message ? plx_buf_ref(result->message) : NULL;
	is_done = true;
	plx_loop_quit();
}

/* Why no service is up; unknown during the first attempt. */
static const char *trouble(void)
{
	const char *text = plx_rpc_client_trouble(client);

	return text[0] ? text
		       : "it has not answered yet: is it a Pollux process, and not stopped? "
			 "--deadline gives it longer";
}

/* Return: 0; -EIO the service will always reply so; -EAGAIN. */
static int check_reply(const char *what)
{
	char text[ERROR_MAX + 1], shown[4 * ERROR_MAX + 1];
	bool is_final = reply.status == PLX_RPC_DENIED || reply.status == PLX_RPC_TOO_BIG;

	if (reply.status == PLX_RPC_OK)
		return 0;
	if (reply.status == PLX_RPC_ERROR) {
		/* Escaped for the terminal: it may contain other clients' units and values. */
		snprintf(text, sizeof(text), "%.*s", (int)reply.length, (const char *)reply.data);
		return plx_fail(EIO, "%s: %s", what, plx_app_printable(text, shown, sizeof(shown)));
	}
	if (reply.status == PLX_RPC_UNKNOWN)
		return plx_fail(EIO, "%s is a service, but no plx-params; check --connect",
				conf->service);
	if (reply.status == PLX_RPC_PEER_DOWN && !reply.may_have_run)
		return plx_fail(EAGAIN, "no service within %.6g s: %s",
				(double)conf->deadline_ns / 1e9, trouble());
	return plx_fail(is_final ? EIO : EAGAIN, "%s: the call ended with: %s; %s", what,
			plx_rpc_status_name(reply.status),
			reply.may_have_run ? "it may have been done" : "nothing was done");
}

int client_call(const char *what, uint32_t method, bool once, const void *data, size_t length,
		const struct plx_rpc_result **reply_out)
{
	struct plx_rpc_call call = {
		.method = method,
		.deadline_ns = conf->deadline_ns,
		.done = on_done,
		.key = once ? plx_random_id() : 0,
		.retry = true,
	};
	int rc;

	let_go();
	is_done = false;
	rc = plx_rpc_call_start(client, &call, data, length, NULL);
	if (rc)
		return rc;
	while (!is_done && (rc = client_over()) == 0)
		plx_loop_run();
	*reply_out = &reply;
	return rc ? rc : check_reply(what);
}

/* Lists --------------------------------------------------------------------------------------- */

static int take_page(const struct plx_rpc_result *page, struct snapshot *snapshot,
		     struct list_place *place, bool *more_out)
{
	struct param param;
	size_t offset;
	const char *wrong = page_read(page->data, page->length, place, more_out, &offset);
	int rc = 0;

	while (rc == 0 && !wrong && page_next(page->data, page->length, &offset, &param, &wrong))
		rc = snapshot_take(snapshot, &param);
	return wrong ? plx_fail(EPROTO, "the reply: %s", wrong) : rc;
}

int client_list(struct snapshot *snapshot, uint8_t flags, bool retries)
{
	uint8_t order[WIRE_LIST_BYTES + 2 * PARAM_NAME_MAX];
	struct list_place place = {.length = 0};
	unsigned losses = snapshot->losses;
	bool more = true;
	int rc = snapshot_begin(snapshot);

	while (rc == 0 && more) {
		struct list_order what = {
			.flags = flags,
			.prefix = conf->below,
			.prefix_length = conf->below ? (uint32_t)strlen(conf->below) : 0,
			.after = place.name,
			.after_length = place.length,
		};
		const struct plx_rpc_result *page;

		rc = client_call("--list", PARAMS_LIST, false, order, list_write(&what, order),
				 &page);
		if (snapshot->losses != losses) /* the page may be of the lost service */
			return -EAGAIN;
		if (rc == 0)
			rc = take_page(page, snapshot, &place, &more);
		else if (rc == -EAGAIN && retries)
			rc = 0;
	}
	if (rc == 0)
		snapshot_end(snapshot);
	return rc;
}
