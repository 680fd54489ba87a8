/* SPDX-License-Identifier: BSD-3-Clause */
/* A service that logs what it runs, or a client that makes all kinds of calls and logs how each
 * ended. rpc_kill_test.sh kills them and compares the logs. A written line survives the process. */
#include "app.h"
#include "plx_lcore.h"
#include "plx_rpc.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOW         1
#define LATER       2
#define LATER_MAX   UINT64_C(3000) /* us */
#define A_TURN      4              /* calls made per ms */
#define CALLS_MAX   200000
#define DEADLINE_NS (400 * PLX_NS_PER_MS)

static const char *listen_address, *log_path;
static struct plx_app_list services;
static uint64_t identity;
static int log_fd = -1;

static const struct plx_option options[] = {
	PLX_TEXT("listen", "ADDR", &listen_address, "be a service"),
	PLX_LIST("connect", "ADDR", &services, "be a client of it"),
	PLX_UINT("identity", "N", &identity, 0, 0, "the client's number"),
	PLX_TEXT("log", "FILE", &log_path, "where to write to"),
	PLX_OPTIONS_END,
};

static const struct plx_app app = {.name = "rpc-kill",
				   .summary = "a service, or a client of it, to be killed",
				   .options = options};

static void write_line(const char *line, int length)
{
	if (write(log_fd, line, (size_t)length) != length)
		plx_app_say("%s: a line is lost", log_path);
}

/* The service ---------------------------------------------------------------------------------- */

/* What a call asks for. */
struct order {
	uint64_t client, number;
};

struct later {
	struct plx_timer timer;
	struct plx_rpc_request *request;
	struct order order;
};

static void note_run(const struct order *order)
{
	char line[64];

	write_line(line, snprintf(line, sizeof(line), "%" PRIu64 ".%" PRIu64 "\n", order->client,
				  order->number));
}

static void on_time(struct plx_timer *timer, void *arg)
{
	struct later *later = arg;

	plx_rpc_reply(later->request, &later->order, sizeof(later->order));
	free(later);
}

static void on_request(struct plx_rpc_request *request, const void *data, uint32_t length,
		       void *arg)
{
	struct later *later = arg ? malloc(sizeof(*later)) : NULL;
	struct order order;

	if (length != sizeof(order)) {
		plx_rpc_refuse(request, PLX_RPC_DENIED, 0);
		free(later);
		return;
	}
	memcpy(&order, data, sizeof(order));
	note_run(&order);
	if (!later) {
		plx_rpc_reply(request, &order, sizeof(order));
		return;
	}
	later->request = request;
	later->order = order;
	plx_timer_init(&later->timer, on_time, later);
	plx_timer_start(&later->timer, order.number % LATER_MAX * PLX_NS_PER_US);
}

static int serve(void)
{
	struct plx_rpc_method now = {.id = NOW, .name = "now", .handler = on_request};
	struct plx_rpc_method later = {
		.id = LATER, .name = "later", .handler = on_request, .arg = &log_fd};
	struct plx_rpc_service *service;

	if (plx_rpc_service_create(NULL, &service) != 0 || plx_rpc_service_add(service, &now) ||
	    plx_rpc_service_add(service, &later) ||
	    plx_rpc_service_listen(service, listen_address, NULL))
		return plx_app_fail(&app);
	printf("listening on %s\n", plx_rpc_service_address(service, 0));
	fflush(stdout);
	plx_loop_run();
	plx_rpc_service_finish(service, 2 * PLX_NS_PER_S);
	plx_rpc_service_destroy(service);
	return 0;
}

/* The client ----------------------------------------------------------------------------------- */

static struct plx_rpc_client *client;
static struct plx_timer turn;
static struct order orders[CALLS_MAX];
static uint8_t done_count[CALLS_MAX];
static uint64_t made, open_calls;

/* Of ten calls: with a key, and retried if the link ends; with one of these; with neither. */
static bool has_key(uint64_t number)
{
	return number % 10 < 7;
}

static bool is_tried_again(uint64_t number)
{
	return number % 10 < 5 || number % 10 == 9;
}

static void on_done(const struct plx_rpc_result *result, void *arg)
{
	const struct order *order = arg;
	bool is_right = result->status != PLX_RPC_OK ||
			(result->length == sizeof(*order) &&
			 memcmp(result->data, order, sizeof(*order)) == 0);
	char line[128];

	done_count[order->number]++;
	open_calls--;
	write_line(line,
		   snprintf(line, sizeof(line), "%" PRIu64 ".%" PRIu64 " %s %s %s %s\n",
			    order->client, order->number, has_key(order->number) ? "key" : "-",
			    is_tried_again(order->number) ? "retry" : "-",
			    is_right ? plx_rpc_status_name(result->status) : "wrong",
			    result->may_have_run ? "perhaps" : "no"));
}

static void make_call(void)
{
	struct order *order = &orders[made];
	struct plx_rpc_call call = {
		.method = made % 3 ? NOW : LATER,
		.deadline_ns = DEADLINE_NS,
		.done = on_done,
		.arg = order,
		.key = has_key(made) ? made + 1 : 0,
		.retry = is_tried_again(made),
	};
	plx_rpc_call_id id;

	*order = (struct order){identity, made};
	if (plx_rpc_call_start(client, &call, order, sizeof(*order), &id) != 0)
		return;
	made++;
	open_calls++;
	if (order->number % 101 == 0)
		plx_rpc_cancel(client, id);
}

static void on_turn(struct plx_timer *timer, void *arg)
{
	for (int i = 0; i < A_TURN && made < CALLS_MAX; i++)
		make_call();
}

static int call(void)
{
	struct plx_rpc_client_attr attr = {.identity = identity};
	uint64_t until_ns;

	if (plx_rpc_client_create(services.at, &attr, &client) != 0)
		return plx_app_fail(&app);
	plx_timer_init(&turn, on_turn, NULL);
	plx_timer_start_periodic(&turn, PLX_NS_PER_MS);
	plx_loop_run();
	plx_timer_stop(&turn);
	until_ns = plx_now_ns() + 2 * DEADLINE_NS;
	while (open_calls && plx_now_ns() < until_ns)
		plx_loop_turn();
	for (uint64_t i = 0; i < made; i++) {
		if (done_count[i] != 1)
			plx_app_say("call %" PRIu64 ": done %u times", i, done_count[i]);
	}
	plx_app_say("made %" PRIu64 " calls, %" PRIu64 " are open", made, open_calls);
	plx_rpc_client_destroy(client);
	return 0;
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;
	log_fd = log_path ? open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (log_fd < 0) {
		plx_app_say("--log: give a file that can be written");
		return plx_app_finish(&app, 1);
	}
	return plx_app_finish(&app, listen_address ? serve() : call());
}
