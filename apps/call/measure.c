/* SPDX-License-Identifier: BSD-3-Clause */
/* Measuring many calls: shared by both loops, and the result. */
#include "measure.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define RTT_NS_MAX (100 * PLX_NS_PER_S)
#define WARMUP     1000         /* calls; or --in-flight if larger */
#define GONE_NS    PLX_NS_PER_S /* without an answer after the link closed: the service has left */
/* Calls per call in flight. Then the start and the end, with fewer in flight, are less than 1 % of
 * the calls. */
#define ROUNDS_CHECKED 100

bool measure_is_enough(const struct measure *measure, uint64_t tsc)
{
	if (measure->stop_tsc && tsc >= measure->stop_tsc && measure->called > measure->warmup)
		return true;
	return measure->called >= measure->count;
}

int measure_call(struct measure *measure, struct one *one)
{
	one->sent_tsc = plx_tsc();
	measure->call.arg = one;
	measure->rc = plx_rpc_call_start(measure->client, &measure->call, measure->data,
					 measure->length, NULL);
	if (measure->rc)
		return measure->rc;
	measure->called++;
	measure->open++;
	return 0;
}

void measure_note(struct measure *measure, const struct plx_rpc_result *result,
		  const struct one *one, uint64_t from_tsc, uint64_t tsc)
{
	if (!one->is_measured)
		return;
	measure->done++;
	measure->statuses[result->status]++;
	measure->handler_ns += result->status <= PLX_RPC_ERROR ? result->handler_ns : 0;
	if (result->status != PLX_RPC_PEER_DOWN)
		measure->ended_tsc = tsc; /* time without a service is not measured */
	if (result->status == PLX_RPC_OK)
		plx_hist_record(&measure->rtt_ns, plx_tsc_to_ns(tsc - from_tsc));
}

void measure_end(struct measure *measure)
{
	measure->ended = true;
	plx_loop_quit();
}

void measure_note_provider(struct measure *measure)
{
	const struct plx_link *link = plx_rpc_client_link(measure->client);

	if (!link)
		return;
	snprintf(measure->provider, sizeof(measure->provider), "%s", plx_link_fi_provider(link));
	measure->choice = plx_link_choice(link);
}

static void fail_unknown(struct measure *measure)
{
	char version[32] = "";

	if (measure->conf->version_given)
		snprintf(version, sizeof(version), ", version %" PRIu64, measure->conf->version);
	measure->rc = plx_fail(ENOENT, "--method %s%s: the service does not know it%s",
			       measure->conf->method, version, call_hint(PLX_RPC_UNKNOWN, false));
}

bool measure_is_over(struct measure *measure, const struct plx_rpc_result *result, uint64_t tsc)
{
	if (result->status == PLX_RPC_UNKNOWN) {
		fail_unknown(measure);
		return true;
	}
	if (result->status == PLX_RPC_PEER_DOWN) {
		if (tsc - measure->answered_tsc < plx_measure_tsc(GONE_NS))
			return false;
		snprintf(measure->failure, sizeof(measure->failure), "%s",
			 call_trouble(measure->client));
		return true;
	}
	if (result->status != PLX_RPC_DEADLINE)
		measure->answered_tsc = tsc;
	return false;
}

/* Result
 * ----------------------------------------------------------------------------------------- */

static uint64_t replies_of(const struct measure *measure)
{
	return measure->statuses[PLX_RPC_OK] + measure->statuses[PLX_RPC_ERROR];
}

static void say_statuses(const struct measure *measure)
{
	for (int i = PLX_RPC_OK + 1; i < PLX_RPC_STATUS_COUNT; i++) {
		if (measure->statuses[i])
			plx_app_say("%s: %" PRIu64 " calls", plx_rpc_status_name(i),
				    measure->statuses[i]);
	}
}

static void say_rate(const struct measure *measure, uint64_t elapsed_ns)
{
	double replies = (double)replies_of(measure);
	double rate = replies * 1e9 / (double)elapsed_ns;

	if (replies > 0 && measure->conf->run.rate)
		plx_app_say("%.0f calls/s, as they were due; handler %.0f ns on average", rate,
			    (double)measure->handler_ns / replies);
	else if (replies > 0)
		plx_app_say("%.0f calls/s, %" PRIu64 " open at a time; handler %.0f ns on average",
			    rate, measure->conf->in_flight, (double)measure->handler_ns / replies);
	if (measure->waits)
		plx_app_say("%" PRIu64 " calls were refused and repeated: the service "
			    "takes no more for a time",
			    measure->waits);
}

static const char *interrupted_by(const struct measure *measure)
{
	if (measure->failure[0])
		return measure->failure;
	return measure->signalled ? plx_measure_signal() : NULL;
}

static int fail_without_reply(const struct measure *measure)
{
	return plx_fail(EIO, "no call brought a reply%s%s", measure->failure[0] ? ": " : "",
			measure->failure[0]                  ? measure->failure
			: measure->statuses[PLX_RPC_TOO_BIG] ? call_hint(PLX_RPC_TOO_BIG, false)
			: measure->waits ? "; all were refused: the service takes no more"
					 : "");
}

static void set_schedule(struct plx_result *result, const struct measure *measure)
{
	const struct call_conf *conf = measure->conf;

	if (!conf->run.rate)
		return;
	result->in_flight = 0;
	result->rate = (double)conf->run.rate;
	result->arrival = plx_arrivals[conf->run.arrival];
	result->seed = conf->run.seed;
	result->service_ns = &measure->service_ns;
	result->scheduled_ns = plx_tsc_to_ns(measure->last_intended_tsc - measure->first_tsc);
	result->sending_ns = plx_tsc_to_ns(measure->last_sent_tsc - measure->first_tsc);
}

static int report(const struct measure *measure)
{
	const struct call_conf *conf = measure->conf;
	uint64_t elapsed_ns = plx_tsc_to_ns(measure->ended_tsc - measure->began_tsc);
	char idle[PLX_MEASURE_IDLE_BYTES];
	struct plx_result result = {
		.name = conf->run.name,
		.provider = measure->provider,
		.idle = plx_measure_idle(idle),
		.size_bytes = measure->length,
		.elapsed_ns = elapsed_ns,
		.in_flight = conf->in_flight,
		.has_gaps = measure->waits || measure->done < ROUNDS_CHECKED * conf->in_flight,
		.interrupted = interrupted_by(measure),
		.failed = measure->failure[0] != '\0',
		.planned_count = conf->run.count,
		.planned_ns = conf->run.duration_ns,
		.lost = measure->done - measure->statuses[PLX_RPC_OK] + measure->open,
		.rtt_ns = &measure->rtt_ns,
	};
	int rc;

	if (!conf->run.rate)
		result.lost -= measure->open; /* they arrived after the end */
	set_schedule(&result, measure);
	if (result.interrupted)
		plx_measure_say_interrupted(&conf->run, result.interrupted, result.rtt_ns->count,
					    "calls", elapsed_ns);
	plx_result_print(&result, stdout, 0);
	if (measure->choice)
		plx_app_say("provider %s: %s", measure->provider, measure->choice);
	say_rate(measure, elapsed_ns);
	say_statuses(measure);
	if (measure->statuses[PLX_RPC_OK] == 0)
		return fail_without_reply(measure);
	rc = conf->run.out_dir ? plx_result_write(&result, conf->run.out_dir) : 0;
	if (rc == 0 && result.failed)
		return plx_fail(EIO, "%s", measure->failure);
	return rc ? rc : plx_result_check(&result);
}

static int end(struct measure *measure)
{
	if (measure->done)
		return report(measure);
	if (measure->signalled)
		return plx_fail(EINTR, "interrupted before anything was measured");
	return fail_without_reply(measure);
}

int call_measure(const struct call_conf *conf, struct plx_rpc_client *client,
		 const struct plx_rpc_call *what, const void *data, size_t length)
{
	uint64_t warmup = !conf->run.rate && conf->in_flight > WARMUP ? conf->in_flight : WARMUP;
	struct measure measure = {
		.conf = conf,
		.client = client,
		.call = *what,
		.data = data,
		.length = length,
		.warmup = warmup,
		.in_flight = conf->in_flight,
		.count = conf->run.count ? conf->run.count + warmup : UINT64_MAX,
	};
	int rc = -ENOMEM;

	if (plx_hist_init(&measure.rtt_ns, RTT_NS_MAX, 3) != 0)
		goto destroy_client;
	measure.ones = calloc(conf->in_flight, sizeof(*measure.ones));
	if (!measure.ones) {
		rc = plx_fail(ENOMEM, "out of memory");
		goto fini_hist;
	}
	rc = conf->run.rate ? open_loop_run(&measure) : closed_loop_run(&measure);
	measure.signalled = !measure.ended;
	measure.ended = true;
	rc = rc ? rc : end(&measure);
	/* Ends calls in flight, which use `measure`. */
	plx_rpc_client_destroy(client);
	client = NULL;
	free(measure.ones);
	free(measure.pauses);
	plx_hist_fini(&measure.service_ns);
fini_hist:
	plx_hist_fini(&measure.rtt_ns);
destroy_client:
	plx_rpc_client_destroy(client);
	return rc;
}
