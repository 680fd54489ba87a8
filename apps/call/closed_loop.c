/* SPDX-License-Identifier: BSD-3-Clause */
/* Closed loop: a fixed number of calls in flight; each completed call is followed by the next. */
#include "measure.h"

#include <stdlib.h>

#define WARMUP_NS PLX_NS_PER_S /* at most */

static void call_now(struct measure *measure, struct one *one)
{
	if (measure_call(measure, one) != 0)
		measure_end(measure);
}

static void call_next(struct measure *measure, struct one *one)
{
	one->is_measured = measure->called >= measure->warmup;
	call_now(measure, one);
}

static void begin_measuring(struct measure *measure, uint64_t tsc)
{
	measure->began_tsc = measure->ended_tsc = tsc;
	measure_note_provider(measure);
	if (measure->conf->run.duration_ns)
		measure->stop_tsc = tsc + plx_measure_tsc(measure->conf->run.duration_ns);
}

/* If calls are slow or refused, the warm-up ends after a second. */
static void look_at_warmup(struct measure *measure, uint64_t tsc)
{
	if (measure->began_tsc)
		return;
	if (!measure->warm_until_tsc)
		measure->warm_until_tsc = tsc + plx_measure_tsc(WARMUP_NS);
	if (tsc >= measure->warm_until_tsc && measure->called < measure->warmup) {
		measure->warmup = measure->called;
		if (measure->conf->run.count)
			measure->count = measure->conf->run.count + measure->warmup;
	}
	if (measure->called >= measure->warmup)
		begin_measuring(measure, tsc);
}

/* Drop this call. */
static void give_up(struct measure *measure)
{
	measure->called--;
	if (--measure->open == 0)
		measure_end(measure);
}

static void on_pause_over(struct plx_timer *timer, void *arg)
{
	struct one *one = arg;
	struct measure *measure = one->measure;

	if (measure->ended)
		return;
	measure->called--;
	measure->open--;
	call_now(measure, one);
}

/* The service refuses calls for now. The wait is not call time: the call stays open until it is
 * repeated. */
static void wait_for_room(struct measure *measure, struct one *one, uint64_t retry_after_ns,
			  uint64_t tsc)
{
	uint64_t pause_ns = retry_after_ns ? retry_after_ns : PLX_NS_PER_MS;
	struct plx_timer *pause = &measure->pauses[one - measure->ones];

	measure->waits++;
	if (measure->stop_tsc && tsc + plx_measure_tsc(pause_ns) >= measure->stop_tsc) {
		give_up(measure);
		return;
	}
	plx_timer_init(pause, on_pause_over, one);
	plx_timer_start(pause, pause_ns);
}

/* A call is done; make the next one. */
static void on_done(const struct plx_rpc_result *result, void *arg)
{
	struct one *one = arg;
	struct measure *measure = one->measure;
	uint64_t tsc = plx_tsc_after_loads();

	if (measure->ended)
		return;
	if (plx_unlikely(!measure->began_tsc))
		look_at_warmup(measure, tsc);
	if (plx_unlikely(measure_is_over(measure, result, tsc)))
		measure_end(measure);
	if (plx_unlikely(result->status == PLX_RPC_BUSY)) {
		wait_for_room(measure, one, result->retry_after_ns, tsc);
		return;
	}
	measure->open--;
	if (result->status == PLX_RPC_PEER_DOWN && measure->done == 0 && !one->is_measured) {
		measure->rc = plx_fail(EIO, "no service answered: %s",
				       call_trouble(measure->client));
		measure_end(measure);
		return;
	}
	measure_note(measure, result, one, one->sent_tsc, tsc);
	if (measure->ended)
		return;
	if (!measure_is_enough(measure, tsc))
		call_next(measure, one);
	else if (measure->open == 0)
		measure_end(measure);
}

int closed_loop_run(struct measure *measure)
{
	const struct call_conf *conf = measure->conf;

	measure->pauses = calloc(conf->in_flight, sizeof(*measure->pauses));
	if (!measure->pauses)
		return plx_fail(ENOMEM, "out of memory");
	measure->call.done = on_done;
	measure->answered_tsc = plx_tsc();
	for (uint64_t i = 0;
	     i < conf->in_flight && measure->called < measure->count && !measure->rc; i++) {
		measure->ones[i].measure = measure;
		call_next(measure, &measure->ones[i]);
	}
	if (measure->rc == 0)
		plx_loop_run();
	for (uint64_t i = 0; measure->waits && i < conf->in_flight; i++)
		plx_timer_stop(&measure->pauses[i]);
	return measure->rc;
}
