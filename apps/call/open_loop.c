/* SPDX-License-Identifier: BSD-3-Clause */
/* Open loop: calls are made on a schedule, whether earlier ones were answered or not. Each is
 * measured from the time when it was due, so a delay of the caller counts for every call that it
 * delays. */
#include "measure.h"

#include <stdlib.h>

#define BURST_MAX 16 /* calls per turn */

static void on_drained(struct plx_timer *timer, void *arg)
{
	measure_end(arg);
}

static void on_done(const struct plx_rpc_result *result, void *arg)
{
	uint64_t tsc = plx_tsc_after_loads();
	struct one *one = arg;
	struct measure *measure = one->measure;

	measure->open--;
	one->next_free = measure->free;
	measure->free = one;
	if (measure->ended)
		return;
	if (measure_is_over(measure, result, tsc))
		measure_end(measure);
	measure_note(measure, result, one, one->intended_tsc, tsc);
	if (one->is_measured && result->status == PLX_RPC_OK)
		plx_hist_record(&measure->service_ns, plx_tsc_to_ns(tsc - one->sent_tsc));
	if (!measure->ended && measure->open == 0 && plx_timer_running(&measure->drain))
		measure_end(measure);
}

static void begin_measuring(struct measure *measure, uint64_t now_tsc)
{
	measure->schedule.next_tsc = (double)now_tsc; /* any backlog belongs to the warm-up */
	measure->began_tsc = measure->ended_tsc = measure->first_tsc = now_tsc;
	measure_note_provider(measure);
	if (measure->conf->run.duration_ns)
		measure->stop_tsc = now_tsc + plx_measure_tsc(measure->conf->run.duration_ns);
}

static bool make_one(struct measure *measure)
{
	struct one *one = measure->free;

	one->intended_tsc = (uint64_t)measure->schedule.next_tsc;
	one->is_measured = measure->called >= measure->warmup;
	measure->free = one->next_free;
	if (measure_call(measure, one) != 0) {
		one->next_free = measure->free;
		measure->free = one;
		return false;
	}
	measure->last_intended_tsc = one->intended_tsc;
	measure->last_sent_tsc = one->sent_tsc;
	plx_schedule_advance(&measure->schedule);
	return true;
}

static bool waits(const struct measure *measure)
{
	return measure->ended || plx_timer_running(&measure->drain);
}

static int poll(void *arg, uint64_t now_ns)
{
	struct measure *measure = arg;
	int work = 0;

	for (; work < BURST_MAX && !waits(measure); work++) {
		uint64_t now_tsc = plx_tsc();

		if (measure_is_enough(measure, (uint64_t)measure->schedule.next_tsc) ||
		    plx_schedule_is_hopeless(measure->stop_tsc, now_tsc)) {
			if (measure->open == 0)
				measure_end(measure);
			else
				plx_timer_start(&measure->drain, PLX_SCHEDULE_DRAIN_NS);
			break;
		}
		if ((double)now_tsc < measure->schedule.next_tsc || !measure->free)
			break;
		if (measure->called == measure->warmup)
			begin_measuring(measure, now_tsc);
		if (!make_one(measure)) {
			if (measure->rc != -EAGAIN)
				measure_end(measure);
			break;
		}
	}
	return work;
}

/* The next call depends on its time only. */
static int arm(void *arg, struct plx_sleep *sleep)
{
	const struct measure *measure = arg;

	if (waits(measure) || !measure->free)
		return 0; /* a reply or a timer wakes the loop */
	plx_schedule_sleep(&measure->schedule, sleep);
	return 0;
}

static bool is_up_or_stopped(void *client)
{
	return plx_rpc_client_is_up(client) || plx_stop_signal();
}

/* Starting the schedule before a service is up would measure the wait for it. */
static int wait_for_service(const struct measure *measure)
{
	uint64_t deadline_ns = measure->conf->deadline_ns;

	if (plx_loop_until(is_up_or_stopped, measure->client, deadline_ns) != 0)
		return plx_fail(EIO, "no service within %.6g s: %s", (double)deadline_ns / 1e9,
				call_trouble(measure->client));
	if (plx_stop_signal())
		return plx_fail(EINTR, "interrupted before anything was measured");
	return 0;
}

static int run(struct measure *measure)
{
	const struct call_conf *conf = measure->conf;
	struct plx_poller *poller;
	int rc = wait_for_service(measure);

	if (rc)
		return rc;
	for (uint64_t i = measure->in_flight; i-- > 0;) {
		measure->ones[i].measure = measure;
		measure->ones[i].next_free = measure->free;
		measure->free = &measure->ones[i];
	}
	if (conf->run.rate < measure->warmup)
		measure->warmup = conf->run.rate; /* one second of calls is enough */
	measure->count = conf->run.count ? conf->run.count + measure->warmup : UINT64_MAX;
	measure->call.done = on_done;
	plx_timer_init(&measure->drain, on_drained, measure);
	plx_schedule_init(&measure->schedule, (enum plx_arrival)conf->run.arrival,
			  (double)conf->run.rate, conf->run.seed, plx_clock_info_read()->hz);
	measure->answered_tsc = plx_tsc();
	measure->schedule.next_tsc = (double)measure->answered_tsc;
	rc = plx_poller_add("open loop", poll, measure, &poller);
	if (rc)
		return rc;
	plx_poller_set_arm(poller, arm);
	plx_loop_run();
	plx_poller_remove(poller);
	plx_timer_stop(&measure->drain);
	return measure->rc == -EAGAIN ? 0 : measure->rc;
}

int open_loop_run(struct measure *measure)
{
	if (plx_hist_init(&measure->service_ns, measure->rtt_ns.highest, measure->rtt_ns.digits))
		return -ENOMEM;
	measure->rc = run(measure);
	return measure->rc;
}
