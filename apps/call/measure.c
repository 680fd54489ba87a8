/* SPDX-License-Identifier: BSD-3-Clause */
/* Many calls that are measured. In a closed loop so many are open at a time: each that is done is
 * followed by another one. */
#include "measure.h"

#include <inttypes.h>
#include <stdlib.h>

#define RTT_NS_MAX (100 * PLX_NS_PER_S)
#define WARMUP     1000 /* calls; as many as are open at a time, where that is more */

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
	measure->rc = plx_rpc_call(measure->client, &measure->call, measure->data, measure->length,
				   NULL);
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
	measure->handler_ns += result->handler_ns;
	measure->ended_tsc = tsc;
	if (result->status == PLX_RPC_OK)
		plx_hist_record(&measure->rtt_ns, plx_tsc_to_ns(tsc - from_tsc));
}

/* Closed loop ------------------------------------------------------------------------------------
 */

static void call_next(struct measure *measure, struct one *one)
{
	one->is_measured = measure->called >= measure->warmup;
	if (measure_call(measure, one) != 0)
		plx_loop_quit();
}

/* One is done, and then the next. */
static void on_done(const struct plx_rpc_result *result, void *arg)
{
	struct one *one = arg;
	struct measure *measure = one->measure;
	uint64_t tsc = plx_tsc_after_loads();

	measure->open--;
	if (measure->ended)
		return;
	if (result->status == PLX_RPC_PEER_DOWN && measure->done == 0 && !one->is_measured) {
		measure->rc = plx_fail(EIO, "no service answered: %s",
				       call_trouble(measure->client));
		plx_loop_quit();
		return;
	}
	measure_note(measure, result, one, one->sent_tsc, tsc);
	if (plx_unlikely(measure->called == measure->warmup))
		measure->began_tsc = tsc;
	if (!measure_is_enough(measure, tsc))
		call_next(measure, one);
	else if (measure->open == 0)
		plx_loop_quit();
}

static int closed_loop_run(struct measure *measure)
{
	const struct call_conf *conf = measure->conf;

	if (conf->duration_ns)
		measure->stop_tsc = plx_tsc() + (uint64_t)((double)conf->duration_ns / 1e9 *
							   plx_clock_info()->hz);
	measure->call.done = on_done;
	measure->began_tsc = plx_tsc();
	for (uint64_t i = 0;
	     i < conf->in_flight && measure->called < measure->count && !measure->rc; i++) {
		measure->ones[i].measure = measure;
		call_next(measure, &measure->ones[i]);
	}
	if (measure->rc == 0)
		plx_loop_run();
	return measure->rc;
}

/* What came of it --------------------------------------------------------------------------------
 */

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
	double done = (double)measure->done;

	if (measure->conf->rate)
		plx_app_say("%.0f calls/s, as they were due; handler %.0f ns on average",
			    done * 1e9 / (double)elapsed_ns, (double)measure->handler_ns / done);
	else
		plx_app_say("%.0f calls/s, %" PRIu64 " open at a time; handler %.0f ns on average",
			    done * 1e9 / (double)elapsed_ns, measure->conf->in_flight,
			    (double)measure->handler_ns / done);
}

static void set_schedule(struct plx_result *result, const struct measure *measure)
{
	const struct call_conf *conf = measure->conf;

	if (!conf->rate)
		return;
	result->in_flight = 0;
	result->rate = (double)conf->rate;
	result->arrival = plx_arrivals[conf->arrival];
	result->seed = conf->seed;
	result->service_ns = &measure->service_ns;
	result->scheduled_ns = plx_tsc_to_ns(measure->last_intended_tsc - measure->first_tsc);
	result->sending_ns = plx_tsc_to_ns(measure->last_sent_tsc - measure->first_tsc);
}

static int report(const struct measure *measure)
{
	const struct call_conf *conf = measure->conf;
	uint64_t elapsed_ns = plx_tsc_to_ns(measure->ended_tsc - measure->began_tsc);
	char idle_text[64] = "";
	struct plx_idle_conf idle;
	struct plx_result result = {
		.name = conf->name,
		.provider = plx_rpc_client_provider(measure->client),
		.idle = idle_text,
		.size_bytes = measure->length,
		.elapsed_ns = elapsed_ns,
		.in_flight = conf->in_flight,
		.lost = measure->done - measure->statuses[PLX_RPC_OK] + measure->open,
		.rtt_ns = &measure->rtt_ns,
	};
	int rc;

	if (!conf->rate)
		result.lost -= measure->open; /* they came behind the end */
	set_schedule(&result, measure);
	if (plx_idle_get(plx_lcore_id(), &idle) == 0)
		plx_idle_format(&idle, idle_text, sizeof(idle_text));
	plx_result_print(&result, stdout, 0);
	say_rate(measure, elapsed_ns);
	say_statuses(measure);
	if (measure->statuses[PLX_RPC_OK] == 0)
		return plx_fail(EIO, "no call brought a reply");
	rc = conf->out_dir ? plx_result_write(&result, conf->out_dir) : 0;
	return rc || !conf->rate ? rc : plx_result_check(&result);
}

int call_measure(const struct call_conf *conf, struct plx_rpc_client *client,
		 const struct plx_rpc_call *what, const void *data, size_t length)
{
	uint64_t warmup = !conf->rate && conf->in_flight > WARMUP ? conf->in_flight : WARMUP;
	struct measure measure = {
		.conf = conf,
		.client = client,
		.call = *what,
		.data = data,
		.length = length,
		.warmup = warmup,
		.in_flight = conf->in_flight,
		.count = conf->count ? conf->count + warmup : UINT64_MAX,
	};
	int rc = -ENOMEM;

	if (plx_hist_init(&measure.rtt_ns, RTT_NS_MAX, 3) != 0)
		goto destroy_client;
	measure.ones = calloc(conf->in_flight, sizeof(*measure.ones));
	if (!measure.ones) {
		rc = plx_fail(ENOMEM, "out of memory");
		goto fini_hist;
	}
	rc = conf->rate ? open_loop_run(&measure) : closed_loop_run(&measure);
	measure.ended = true;
	if (rc == 0)
		rc = measure.done ? report(&measure)
				  : plx_fail(EINTR, "interrupted before anything was measured");
	/* What is still open is told of while `measure` is there. */
	plx_rpc_client_destroy(client);
	client = NULL;
	free(measure.ones);
	plx_hist_fini(&measure.service_ns);
fini_hist:
	plx_hist_fini(&measure.rtt_ns);
destroy_client:
	plx_rpc_client_destroy(client);
	return rc;
}
