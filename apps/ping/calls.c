/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trips as calls of the self-test service of every Pollux process: the measured process need
 * not run plx-ping. One call at a time. */
#include "ping.h"
#include "rpc_load.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define UP_NS (5 * PLX_NS_PER_S)

static const struct ping_conf *asked;
static uint8_t *payload;

static void fill(struct plx_rpc_load *rpc)
{
	ping_fill(payload, rpc->length, rpc->load.sent);
}

static const char *check(struct plx_rpc_load *rpc, const struct plx_rpc_result *result)
{
	static char text[512];
	bool is_right = result->length == rpc->length &&
			(!asked->verify || memcmp(payload, result->data, rpc->length) == 0);

	if (result->status == PLX_RPC_OK && is_right)
		return NULL;
	snprintf(text, sizeof(text), "a call ended with: %s; %s",
		 result->status == PLX_RPC_OK ? "other bytes" : plx_rpc_status_name(result->status),
		 plx_rpc_client_trouble(rpc->client));
	return text;
}

static const char *trouble(const struct plx_rpc_client *client)
{
	static char text[512];
	const char *known = plx_rpc_client_trouble(client);

	if (known[0])
		return known;
	snprintf(text, sizeof(text),
		 "%s has not answered yet: is it a Pollux process, and not stopped?",
		 asked->connect);
	return text;
}

static void say_more(const struct plx_load *load)
{
	const struct plx_rpc_load *rpc = (const struct plx_rpc_load *)load;

	plx_app_say_idle(plx_lcore_id());
	if (rpc->refused)
		plx_app_say("%" PRIu64 " calls were refused: the service there takes no more a "
			    "second (--self-test)",
			    rpc->refused);
	if (asked->explain)
		ping_explain(load);
}

int ping_measure_calls(const struct ping_conf *conf)
{
	static struct plx_rpc_load rpc;
	const char *const addresses[] = {conf->connect, NULL};
	struct plx_rpc_client_attr attr = {.link = {.self_test = true}};
	int rc = ping_load_init(&rpc.load, conf, 1), status;

	asked = conf;
	payload = malloc(conf->size_bytes + 1);
	rpc.call.method = PLX_RPC_ECHO;
	rpc.data = payload;
	rpc.length = conf->size_bytes;
	rpc.fill = conf->verify ? fill : NULL;
	rpc.check = check;
	rpc.trouble = trouble;
	if (rc == 0 && !payload)
		rc = plx_fail(ENOMEM, "out of memory");
	if (rc == 0) {
		ping_fill(payload, conf->size_bytes, 0);
		rc = plx_rpc_client_create(addresses, &attr, &rpc.client);
	}
	rc = rc ? rc : plx_rpc_load_run(&rpc, UP_NS);
	status = rc ? plx_app_fail(&ping_app) : plx_load_report(&rpc.load, &ping_app, say_more);
	plx_rpc_load_fini(&rpc);
	ping_settle();
	free(payload);
	return status;
}
