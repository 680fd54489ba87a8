/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trips as calls of the self-test service of every Pollux process: the measured process need
 * not run plx-ping. One call at a time. */
#include "ping.h"
#include "plx_lcore.h"
#include "plx_rpc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define HIGHEST_NS (10 * PLX_NS_PER_S)
#define DIGITS     3
#define UP_NS      (5 * PLX_NS_PER_S)

struct calls {
	const struct ping_conf *conf;
	struct ping_outcome *outcome;
	struct plx_rpc_client *client;
	struct plx_timer pause;
	uint8_t *payload;
	uint64_t sent_tsc, first_tsc, last_tsc, stop_tsc;
	uint64_t pause_tsc, paused_tsc; /* start of a pause; all pauses of the measured part */
	uint64_t done;                  /* including the warm-up */
	uint64_t warmup, warm_tsc;      /* its calls; when they end at the latest, 0: no limit */
	bool ended;
	char failure[512];
};

static void end(struct calls *calls)
{
	calls->ended = true;
	plx_loop_quit();
}

static void call_next(struct calls *calls);

static void on_pause_over(struct plx_timer *timer, void *arg)
{
	struct calls *calls = arg;

	calls->paused_tsc += plx_tsc() - calls->pause_tsc;
	call_next(calls);
}

/* The service refuses calls for now. The wait is not round-trip time. */
static void wait_for_room(struct calls *calls, uint64_t retry_after_ns)
{
	calls->outcome->again++;
	calls->pause_tsc = calls->sent_tsc;
	plx_timer_start(&calls->pause, retry_after_ns ? retry_after_ns : PLX_NS_PER_US);
}

static bool is_enough(const struct calls *calls, uint64_t tsc)
{
	uint64_t measured = calls->done > calls->warmup ? calls->done - calls->warmup : 0;

	return calls->conf->run.count ? measured >= calls->conf->run.count
				      : calls->stop_tsc && tsc >= calls->stop_tsc && measured;
}

static void begin_measuring(struct calls *calls, uint64_t tsc)
{
	calls->first_tsc = tsc;
	calls->paused_tsc = 0;
	if (!calls->conf->run.count)
		calls->stop_tsc = tsc + plx_measure_tsc(calls->conf->run.duration_ns);
}

static bool is_right(const struct calls *calls, const struct plx_rpc_result *result)
{
	uint64_t size = calls->conf->size_bytes;

	if (result->length != size)
		return false;
	return !calls->conf->verify || memcmp(calls->payload, result->data, size) == 0;
}

static void on_done(const struct plx_rpc_result *result, void *arg)
{
	uint64_t tsc = plx_tsc_after_loads();
	struct calls *calls = arg;

	if (calls->ended)
		return;
	if (result->status == PLX_RPC_BUSY) {
		wait_for_room(calls, result->retry_after_ns);
		return;
	}
	if (result->status != PLX_RPC_OK || !is_right(calls, result)) {
		snprintf(calls->failure, sizeof(calls->failure), "a call ended with: %s; %s",
			 result->status == PLX_RPC_OK ? "other bytes"
						      : plx_rpc_status_name(result->status),
			 plx_rpc_client_trouble(calls->client));
		end(calls);
		return;
	}
	if (calls->done++ >= calls->warmup) {
		plx_hist_record(&calls->outcome->rtt_ns, plx_tsc_to_ns(tsc - calls->sent_tsc));
		calls->last_tsc = tsc;
	}
	if (calls->warm_tsc && tsc >= calls->warm_tsc && calls->done < calls->warmup)
		calls->warmup = calls->done;
	if (is_enough(calls, tsc))
		end(calls);
	else
		call_next(calls);
}

static void call_next(struct calls *calls)
{
	const struct plx_rpc_call call = {.method = PLX_RPC_ECHO, .done = on_done, .arg = calls};

	if (calls->conf->verify)
		ping_fill(calls->payload, calls->conf->size_bytes, calls->done);
	calls->sent_tsc = plx_tsc();
	if (calls->done == calls->warmup && !calls->first_tsc)
		begin_measuring(calls, calls->sent_tsc);
	if (plx_rpc_call_start(calls->client, &call, calls->payload, calls->conf->size_bytes,
			       NULL) == 0)
		return;
	snprintf(calls->failure, sizeof(calls->failure), "%s", plx_error());
	end(calls);
}

static int fail_without_service(const struct calls *calls)
{
	const char *trouble = plx_rpc_client_trouble(calls->client);

	if (trouble[0])
		return plx_fail(ETIMEDOUT, "no self-test service: %s", trouble);
	return plx_fail(ETIMEDOUT,
			"no self-test service: %s has not answered yet: is it a Pollux process, "
			"and not stopped?",
			calls->conf->connect);
}

static bool is_up_or_stopped(void *client)
{
	return plx_rpc_client_is_up(client) || plx_stop_signal();
}

static int connect_to(struct calls *calls)
{
	const char *const addresses[] = {calls->conf->connect, NULL};
	struct plx_rpc_client_attr attr = {.link = {.self_test = true}};
	int rc = plx_rpc_client_create(addresses, &attr, &calls->client);

	if (rc)
		return rc;
	if (plx_loop_until(is_up_or_stopped, calls->client, UP_NS) != 0)
		return fail_without_service(calls);
	return plx_stop_signal() ? ping_end(calls->outcome, 0, NULL, true) : 0;
}

static void note_way(struct calls *calls)
{
	struct ping_outcome *outcome = calls->outcome;

	snprintf(outcome->provider, sizeof(outcome->provider), "%s",
		 plx_rpc_client_provider(calls->client));
	snprintf(outcome->provider_choice, sizeof(outcome->provider_choice),
		 "calls of the self-test service there");
	plx_measure_idle(outcome->idle);
}

static int run(struct calls *calls)
{
	int rc = connect_to(calls);

	if (rc)
		return rc;
	note_way(calls);
	if (!calls->conf->warmup_given)
		calls->warm_tsc = plx_tsc() + plx_measure_tsc(PING_WARMUP_NS);
	plx_timer_init(&calls->pause, on_pause_over, calls);
	call_next(calls);
	plx_loop_run();
	plx_timer_stop(&calls->pause);
	if (calls->last_tsc)
		calls->outcome->elapsed_ns = plx_tsc_to_ns(calls->last_tsc - calls->first_tsc -
							   calls->paused_tsc);
	return ping_end(calls->outcome, calls->outcome->rtt_ns.count,
			calls->failure[0] ? calls->failure : NULL, !calls->ended);
}

int ping_run_calls(const struct ping_conf *conf, struct ping_outcome *outcome)
{
	struct calls calls = {.conf = conf, .outcome = outcome, .warmup = conf->warmup};
	int rc;

	if (plx_hist_init(&outcome->rtt_ns, HIGHEST_NS, DIGITS) != 0)
		return plx_fail(ENOMEM, "out of memory");
	calls.payload = malloc(conf->size_bytes + 1);
	if (!calls.payload)
		return plx_fail(ENOMEM, "out of memory");
	ping_fill(calls.payload, conf->size_bytes, 0);
	ping_look_for_pollers(outcome);
	rc = run(&calls);
	calls.ended = true; /* on_done still runs for open calls */
	plx_rpc_client_destroy(calls.client);
	ping_abort(NULL);
	free(calls.payload);
	return rc;
}
