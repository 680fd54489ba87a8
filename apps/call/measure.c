/* SPDX-License-Identifier: BSD-3-Clause */
/* Many calls, so many open at a time: each that is done is followed by another one. */
#include "call.h"

#include "plx_lcore.h"
#include "plx_stats.h"

#include <inttypes.h>
#include <stdlib.h>

#define RTT_NS_MAX (100 * PLX_NS_PER_S)
#define WARMUP     1000

struct measure {
	struct plx_rpc_client *client;
	struct plx_rpc_call call;
	const void *data;
	size_t length;
	uint64_t count, warmup; /* to be called; of them, not measured */
	uint64_t called, done;
	uint64_t began_tsc, stop_tsc, ended_tsc; /* measured part; 0: no end but count */
	uint64_t statuses[PLX_RPC_STATUS_COUNT];
	uint64_t handler_ns;
	uint32_t open;
	bool ended; /* what is still open is not followed by another one */
	int rc;     /* of the last one that was called */
	struct plx_hist rtt_ns;
	struct one *ones;
};

/* One that is open, and then the next. */
struct one {
	struct measure *measure;
	uint64_t sent_tsc;
};

static void call_one(struct one *one);

static bool is_enough(const struct measure *measure, uint64_t tsc)
{
	if (measure->stop_tsc && tsc >= measure->stop_tsc && measure->called > measure->warmup)
		return true;
	return measure->called >= measure->count;
}

static void on_done(const struct plx_rpc_result *result, void *arg)
{
	struct one *one = arg;
	struct measure *measure = one->measure;
	uint64_t tsc = plx_tsc_after_loads();

	measure->open--;
	if (measure->ended)
		return;
	if (result->status == PLX_RPC_PEER_DOWN && measure->done == 0) {
		measure->rc = plx_fail(EIO, "no service answered: %s",
				       plx_rpc_client_trouble(measure->client));
		plx_loop_quit();
		return;
	}
	if (measure->done++ >= measure->warmup) {
		measure->statuses[result->status]++;
		measure->handler_ns += result->handler_ns;
		measure->ended_tsc = tsc;
		if (result->status == PLX_RPC_OK)
			plx_hist_record(&measure->rtt_ns, plx_tsc_to_ns(tsc - one->sent_tsc));
	}
	if (measure->done == measure->warmup)
		measure->began_tsc = tsc;
	if (!is_enough(measure, tsc))
		call_one(one);
	else if (measure->open == 0)
		plx_loop_quit();
}

static void call_one(struct one *one)
{
	struct measure *measure = one->measure;

	one->sent_tsc = plx_tsc();
	measure->call.arg = one;
	measure->rc = plx_rpc_call(measure->client, &measure->call, measure->data, measure->length,
				   NULL);
	if (measure->rc) {
		plx_loop_quit();
		return;
	}
	measure->called++;
	measure->open++;
}

static void say_statuses(const struct measure *measure)
{
	for (int i = PLX_RPC_OK + 1; i < PLX_RPC_STATUS_COUNT; i++) {
		if (measure->statuses[i])
			plx_app_say("%s: %" PRIu64 " calls", plx_rpc_status_name(i),
				    measure->statuses[i]);
	}
}

static int report(const struct call_conf *conf, const struct measure *measure)
{
	uint64_t elapsed_ns = plx_tsc_to_ns(measure->ended_tsc - measure->began_tsc);
	uint64_t measured = measure->done - measure->warmup;
	char idle_text[64] = "";
	struct plx_idle_conf idle;

	struct plx_result result = {
		.name = conf->name,
		.provider = plx_rpc_client_provider(measure->client),
		.idle = idle_text,

		.size_bytes = measure->length,
		.elapsed_ns = elapsed_ns,
		.in_flight = conf->in_flight,
		.lost = measured - measure->statuses[PLX_RPC_OK],
		.rtt_ns = &measure->rtt_ns,
	};

	if (plx_idle_get(plx_lcore_id(), &idle) == 0)
		plx_idle_format(&idle, idle_text, sizeof(idle_text));
	plx_result_print(&result, stdout, 0);

	plx_app_say("%.0f calls/s, %" PRIu64 " open at a time; handler %.0f ns on average",
		    (double)measured * 1e9 / (double)elapsed_ns, conf->in_flight,
		    (double)measure->handler_ns / (double)measured);
	say_statuses(measure);
	if (measure->statuses[PLX_RPC_OK] == 0)
		return plx_fail(EIO, "no call brought a reply");
	return conf->out_dir ? plx_result_write(&result, conf->out_dir) : 0;
}

int call_measure(const struct call_conf *conf, struct plx_rpc_client *client,
		 const struct plx_rpc_call *what, const void *data, size_t length)
{
	struct measure measure = {
		.client = client,
		.call = *what,
		.data = data,
		.length = length,
		.warmup = WARMUP,
		.count = conf->count ? conf->count + WARMUP : UINT64_MAX,
	};
	int rc;

	if (plx_hist_init(&measure.rtt_ns, RTT_NS_MAX, 3) != 0)
		return -ENOMEM;
	measure.ones = calloc(conf->in_flight, sizeof(*measure.ones));
	if (!measure.ones) {
		plx_hist_fini(&measure.rtt_ns);
		return plx_fail(ENOMEM, "out of memory");
	}
	if (conf->duration_ns)
		measure.stop_tsc = plx_tsc() + (uint64_t)((double)conf->duration_ns / 1e9 *
							  plx_clock_info()->hz);
	measure.call.done = on_done;
	measure.began_tsc = plx_tsc();
	for (uint64_t i = 0; i < conf->in_flight && measure.called < measure.count && !measure.rc;
	     i++) {
		measure.ones[i].measure = &measure;
		call_one(&measure.ones[i]);
	}
	if (measure.rc == 0)
		plx_loop_run();
	measure.ended = true;
	if (measure.rc)
		rc = measure.rc;
	else if (measure.done > measure.warmup)
		rc = report(conf, &measure);
	else
		rc = plx_fail(EINTR, "interrupted before anything was measured");
	/* What is still open is told of while `measure` is there. */
	plx_rpc_client_destroy(client);
	free(measure.ones);
	plx_hist_fini(&measure.rtt_ns);
	return rc;
}
