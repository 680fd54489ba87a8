/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of a program that call a service: each becomes an lcore, and has many calls in flight.
 * Run it:  service_threads --connect 127.0.0.1:7000      while service runs */
#include <plx_app.h>
#include <plx_lcore.h>
#include <plx_rpc.h>
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4, IN_FLIGHT = 32, ECHO = 3 }; /* ECHO: as in service.c */
static const char *address;
static uint64_t calls = 10000;
static const struct plx_option options[] = {
	PLX_ADDRESS("connect", &address, "host:port of the service", .required = true),
	PLX_UINT("calls", "N", &calls, 1, UINT32_MAX, "calls of each thread (default 10000)"),
	PLX_OPTIONS_END,
};
static const struct plx_app app = {.summary = "Call it from threads.", .options = options};

struct caller { /* of one thread; main reads it after the join */
	pthread_t thread;
	struct plx_rpc_client *client;
	uint64_t to_start, in_flight, replies;
};

static atomic_uint running = THREADS;
static void on_reply(const struct plx_rpc_result *result, void *arg);

static void call_service(struct caller *caller)
{
	const struct plx_rpc_call call = {
		.method = ECHO, .retry = true, .done = on_reply, .arg = caller};

	while (caller->to_start && caller->in_flight < IN_FLIGHT) {
		bool started = !plx_rpc_call_start(caller->client, &call, "hello", 5, NULL);

		caller->to_start = started ? caller->to_start - 1 : 0;
		caller->in_flight += started;
		if (!started)
			plx_app_fail(&app);
	}
	if (!caller->in_flight)
		plx_loop_quit();
}

/* On the thread that made the call: in its loop, or in plx_rpc_client_destroy after a signal. */
static void on_reply(const struct plx_rpc_result *result, void *arg)
{
	struct caller *caller = arg;
	bool failed = result->status != PLX_RPC_OK;

	if (failed && caller->to_start && !plx_stopping())
		plx_app_say("a call failed: %s", plx_rpc_status_name(result->status));
	caller->to_start = failed ? 0 : caller->to_start;
	caller->replies += !failed;
	caller->in_flight--;
	call_service(caller);
}

static void *run(void *arg)
{
	const char *const addresses[] = {address, NULL};
	struct caller *caller = arg;

	if (plx_lcore_adopt() || plx_rpc_client_create(addresses, NULL, &caller->client)) {
		plx_app_fail(&app);
	} else {
		caller->to_start = calls;
		call_service(caller);
		if (caller->in_flight)
			plx_loop_run(); /* until the last reply, or a signal */
		plx_rpc_client_destroy(caller->client);
	}
	plx_lcore_leave();
	if (atomic_fetch_sub(&running, 1) == 1)
		plx_stop(); /* the last one ends the loop of main */
	return NULL;
}

int main(int argc, char **argv)
{
	static struct caller callers[THREADS];
	uint64_t replies = 0;
	int status = plx_app_start(argc, argv, &app), started = 0;

	if (status != PLX_APP_RUN)
		return status;
	while (started < THREADS &&
	       pthread_create(&callers[started].thread, NULL, run, &callers[started]) == 0)
		started++;
	if (started < THREADS)
		plx_stop(); /* the system has no thread left: end the others too */
	plx_loop_run();
	while (started-- > 0) {
		pthread_join(callers[started].thread, NULL);
		replies += callers[started].replies;
	}
	plx_app_say("%llu replies", (unsigned long long)replies);
	return plx_app_finish(&app, !plx_stop_signal() && replies < THREADS * calls);
}
