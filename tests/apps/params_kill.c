/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets parameters, many at a time, until their service has died, then prints the replies it got.
 * params_test.sh kills the service and compares them with what its successor knows. Every other set
 * waits for the disk. */
#include "app.h"
#include "bytes.h"
#include "plx_lcore.h"
#include "plx_rpc.h"
#include "wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PARAMETERS  2
#define IN_FLIGHT   64 /* a multiple of PARAMETERS: each call always sets the same one */
#define DEADLINE_NS (10 * PLX_NS_PER_S)

static struct plx_app_list services;

static const struct plx_option options[] = {
	PLX_LIST("connect", "ADDR", &services, "whose parameters load/0 and load/1 are set"),
	PLX_OPTIONS_END,
};

static const struct plx_app app = {.name = "params-kill",
				   .summary = "Set parameters until their service is gone.",
				   .options = options};

struct set {
	unsigned parameter;
	int64_t value;
	bool is_durable;
};

static struct plx_rpc_client *client;
static struct set sets[IN_FLIGHT];
static int64_t last_value;
static unsigned open_calls, unanswered;
static bool is_over;

/* Values from the replies. */
static int64_t durable_values[PARAMETERS];
static uint64_t highest_revision;

static void make_set(struct set *set);

static void note(const struct set *set, const struct plx_rpc_result *result)
{
	uint64_t revision = get64(result->data);

	if (revision > highest_revision)
		highest_revision = revision;
	if (set->is_durable && set->value > durable_values[set->parameter])
		durable_values[set->parameter] = set->value;
}

static void on_done(const struct plx_rpc_result *result, void *arg)
{
	struct set *set = arg;

	open_calls--;
	if (result->status == PLX_RPC_OK) {
		note(set, result);
		make_set(set);
		return;
	}
	unanswered++;
	is_over = true;
	if (open_calls == 0)
		plx_loop_quit();
}

static void make_set(struct set *set)
{
	uint8_t bytes[WIRE_ORDER_MAX];
	char name[16];
	struct order order = {
		.param =
			{
				.name = name,
				.name_length = (uint32_t)snprintf(name, sizeof(name), "load/%u",
								  set->parameter),
				.kind.type = PARAM_INT,
				.value = {PARAM_INT, .integer = ++last_value},
			},
	};
	struct plx_rpc_call call = {
		.method = PARAMS_SET, .deadline_ns = DEADLINE_NS, .done = on_done, .arg = set};

	set->value = last_value;
	set->is_durable = last_value % 2;
	order.flags = set->is_durable ? WIRE_DURABLE : 0;
	if (!is_over &&
	    plx_rpc_call_start(client, &call, bytes, order_write(&order, bytes), NULL) == 0)
		open_calls++;
	else if (open_calls == 0)
		plx_loop_quit();
}

static void tell(void)
{
	for (unsigned i = 0; i < PARAMETERS; i++)
		printf("load/%u %" PRId64 "\n", i, durable_values[i]);
	printf("revision %" PRIu64 "\nunanswered %u\n", highest_revision, unanswered);
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;
	if (plx_rpc_client_create(services.at, NULL, &client) != 0)
		return plx_app_finish(&app, plx_app_fail(&app));
	for (unsigned i = 0; i < IN_FLIGHT; i++) {
		sets[i].parameter = i % PARAMETERS;
		make_set(&sets[i]);
	}
	plx_loop_run();
	tell();
	plx_rpc_client_destroy(client);
	return plx_app_finish(&app, 0);
}
