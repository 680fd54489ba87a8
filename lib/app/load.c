/* SPDX-License-Identifier: BSD-3-Clause */
/* What is sent when, and what is recorded. An open loop measures each request from its intended
 * time, so a stall counts for every request that it delays (no coordinated omission). Its end
 * follows the schedule too: requests that a stall delayed past the end are still sent. */
#include "load.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#define HIGHEST_NS (100 * PLX_NS_PER_S) /* longest round trip with full resolution */
#define DIGITS     3
#define OPEN_BURST 16 /* sends of an open loop per turn */
#define ROUNDS_LEAST                                                                   \
	100 /* per request in flight: the start and the end, with fewer in flight, are \
	     * then less than 1 % of the run */

int plx_load_init(struct plx_load *load, const struct plx_measure *run, uint64_t size_bytes,
		  uint64_t in_flight_max)
{
	uint64_t room = 1;

	*load = (struct plx_load){
		.run = run,
		.kind = !in_flight_max ? PLX_LOAD_ONE_WAY
		      : run->rate      ? PLX_LOAD_OPEN
				       : PLX_LOAD_CLOSED,
		.size_bytes = size_bytes,
		.in_flight_max = in_flight_max,
		.warmup = PLX_LOAD_WARMUP_MESSAGES,
		/* What is sent by a schedule does not depend on the clock. */
		.warmup_ns = in_flight_max && run->rate ? 0 : PLX_NS_PER_S,
		.unit = in_flight_max ? "round trips" : "messages",
	};
	STAILQ_INIT(&load->free);
	if (load->kind == PLX_LOAD_CLOSED && in_flight_max > load->warmup)
		load->warmup = in_flight_max;
	if (run->rate && run->rate < load->warmup)
		load->warmup = run->rate;
	if (size_bytes && PLX_LOAD_WARMUP_MAX / size_bytes < load->warmup)
		load->warmup = PLX_LOAD_WARMUP_MAX / size_bytes;
	if (run->rate)
		plx_schedule_init(&load->schedule, (enum plx_arrival)run->arrival,
				  plx_measure_rate(run), run->seed, plx_clock_info_read()->hz);
	if (in_flight_max == 0)
		return 0;
	while (room < in_flight_max)
		room *= 2;
	load->flight_mask = room - 1;
	load->flights = calloc(room, sizeof(*load->flights));
	if (!load->flights || plx_hist_init(&load->rtt_ns, HIGHEST_NS, DIGITS) != 0 ||
	    (run->rate && plx_hist_init(&load->service_ns, HIGHEST_NS, DIGITS) != 0))
		return plx_fail(ENOMEM, "out of memory");
	for (uint64_t i = 0; i < room; i++) {
		load->flights[i].load = load;
		STAILQ_INSERT_TAIL(&load->free, &load->flights[i], next);
	}
	return 0;
}

void plx_load_fini(struct plx_load *load)
{
	free(load->flights);
	plx_hist_fini(&load->rtt_ns);
	plx_hist_fini(&load->service_ns);
	load->flights = NULL;
}

/* States ------------------------------------------------------------------------------------- */

static uint64_t in_flight(const struct plx_load *load)
{
	return load->sent - load->answered;
}

static void end(struct plx_load *load)
{
	load->state = PLX_LOAD_ENDED;
	if (load->on_end)
		load->on_end(load);
	else
		plx_loop_quit();
}

void plx_load_fail(struct plx_load *load, const char *text)
{
	if (load->state == PLX_LOAD_ENDED && load->failed)
		return;
	snprintf(load->error, sizeof(load->error), "%s", text);
	load->failed = true;
	end(load);
}

void plx_load_begin(struct plx_load *load, uint64_t now_tsc)
{
	load->state = PLX_LOAD_MEASURING;
	load->first_message = load->sent;
	load->limit = load->run->count ? load->sent + load->run->count : UINT64_MAX;
	if (!load->run->count)
		load->stop_tsc = now_tsc + plx_measure_tsc(load->run->duration_ns);
	load->schedule.next_tsc = (double)now_tsc; /* any backlog belongs to the warm-up */
}

static void end_warmup(struct plx_load *load, uint64_t now_tsc)
{
	load->state = PLX_LOAD_WARM;
	if (load->on_warm)
		load->on_warm(load, now_tsc);
	else
		plx_load_begin(load, now_tsc);
}

static void look_at_warmup(struct plx_load *load, uint64_t now_tsc)
{
	bool is_late = load->warm_until_tsc && now_tsc >= load->warm_until_tsc;

	if (load->kind == PLX_LOAD_OPEN && (double)now_tsc < load->schedule.next_tsc)
		return;
	if (load->sent >= load->warmup || is_late)
		end_warmup(load, now_tsc);
}

static void end_if_drained(struct plx_load *load)
{
	if (plx_unlikely(load->state == PLX_LOAD_DRAINING && in_flight(load) == 0))
		end(load);
}

static void finish(struct plx_load *load, uint64_t now_tsc)
{
	load->state = PLX_LOAD_DRAINING;
	if (load->kind == PLX_LOAD_OPEN)
		load->drain_tsc = now_tsc + plx_measure_tsc(PLX_SCHEDULE_DRAIN_NS);
}

/* A closed loop has at least one message, however late its begin was. */
static bool is_over(const struct plx_load *load, uint64_t tsc)
{
	if (!load->stop_tsc || tsc < load->stop_tsc)
		return false;
	return load->kind != PLX_LOAD_CLOSED || load->sent > load->first_message;
}

/* Whether a message that is due at that time is sent. */
static bool may_send(struct plx_load *load, uint64_t due_tsc, uint64_t now_tsc)
{
	if (plx_unlikely(load->state == PLX_LOAD_WARMUP))
		look_at_warmup(load, now_tsc);
	if (load->state != PLX_LOAD_MEASURING)
		return load->state == PLX_LOAD_WARMUP;
	if (load->sent < load->limit && !is_over(load, due_tsc) &&
	    !plx_schedule_is_hopeless(load->stop_tsc, now_tsc))
		return true;
	finish(load, now_tsc);
	return false;
}

/* Round trips -------------------------------------------------------------------------------- */

static int send_one(struct plx_load *load, uint64_t intended_tsc)
{
	struct plx_flight *flight = STAILQ_FIRST(&load->free);
	int rc;

	flight->is_measured = load->state == PLX_LOAD_MEASURING;
	rc = load->send(load, flight);
	if (plx_unlikely(rc)) {
		if (rc != -EAGAIN)
			plx_load_fail(load, plx_error());
		else
			load->again += !load->blocked;
		load->blocked = true;
		return rc;
	}
	STAILQ_REMOVE_HEAD(&load->free, next);
	flight->intended_tsc = intended_tsc ? intended_tsc : flight->sent_tsc;
	load->last_intended_tsc = flight->intended_tsc;
	load->last_sent_tsc = flight->sent_tsc;
	if (plx_unlikely(load->sent == load->first_message && flight->is_measured))
		load->first_tsc = flight->intended_tsc;
	load->blocked = false;
	load->sent++;
	return 0;
}

static void keep_in_flight(struct plx_load *load, uint64_t now_tsc)
{
	while (in_flight(load) + load->dropped < load->in_flight_max &&
	       may_send(load, now_tsc, now_tsc))
		if (send_one(load, 0) != 0)
			break;
}

static int send_due(struct plx_load *load, uint64_t now_tsc)
{
	int count = 0;

	while (count < OPEN_BURST && may_send(load, (uint64_t)load->schedule.next_tsc, now_tsc)) {
		if ((double)now_tsc < load->schedule.next_tsc ||
		    in_flight(load) == load->in_flight_max ||
		    send_one(load, (uint64_t)load->schedule.next_tsc) != 0)
			break;
		now_tsc = load->last_sent_tsc;
		plx_schedule_advance(&load->schedule);
		count++;
	}
	if (load->state == PLX_LOAD_DRAINING &&
	    (in_flight(load) == 0 || now_tsc >= load->drain_tsc))
		end(load);
	return count;
}

/* The last one used is still in the cache. */
static void put_back(struct plx_load *load, struct plx_flight *flight)
{
	if (load->any_order)
		STAILQ_INSERT_HEAD(&load->free, flight, next);
	else
		STAILQ_INSERT_TAIL(&load->free, flight, next);
}

static void record(struct plx_load *load, const struct plx_flight *flight, uint64_t now_tsc,
		   enum plx_reply reply)
{
	load->done++;
	if (reply != PLX_REPLY_NONE)
		load->last_tsc = now_tsc;
	if (reply != PLX_REPLY_GOOD) {
		load->lost++;
		return;
	}
	plx_hist_record(&load->rtt_ns, plx_tsc_to_ns(now_tsc - flight->intended_tsc));
	if (load->kind == PLX_LOAD_OPEN)
		plx_hist_record(&load->service_ns, plx_tsc_to_ns(now_tsc - flight->sent_tsc));
}

void plx_load_reply(struct plx_load *load, struct plx_flight *flight, uint64_t now_tsc,
		    enum plx_reply reply)
{
	struct plx_flight was = *flight;

	load->answered++;
	put_back(load, flight);
	if (plx_unlikely(load->state == PLX_LOAD_ENDED))
		return;
	if (load->kind == PLX_LOAD_CLOSED)
		keep_in_flight(load, now_tsc);
	if (was.is_measured)
		record(load, &was, now_tsc, reply);
	end_if_drained(load);
}

/* The others continue with one fewer in flight; the last one ends the run. */
static void drop(struct plx_load *load, struct plx_flight *flight, uint64_t now_tsc)
{
	load->answered++;
	load->dropped++;
	put_back(load, flight);
	if (load->dropped == load->in_flight_max)
		finish(load, now_tsc);
	end_if_drained(load);
}

bool plx_load_refused(struct plx_load *load, struct plx_flight *flight, uint64_t now_tsc,
		      uint64_t again_tsc)
{
	load->has_gaps = true;
	if (load->state == PLX_LOAD_WARMUP) /* no reply may end it, if all are refused */
		look_at_warmup(load, now_tsc);
	if (!load->stop_tsc || again_tsc < load->stop_tsc)
		return true;
	drop(load, flight, now_tsc);
	return false;
}

void plx_load_repeat(struct plx_load *load, struct plx_flight *flight)
{
	if (load->send(load, flight) != 0)
		plx_load_fail(load, plx_error());
	else
		flight->intended_tsc = flight->sent_tsc; /* the wait is not time of the request */
}

/* One way ------------------------------------------------------------------------------------ */

/* By the rate, what is late is caught up. */
static unsigned due_now(const struct plx_load *load, uint64_t now_tsc)
{
	uint64_t end = load->state == PLX_LOAD_WARMUP ? load->warmup : load->limit;
	uint64_t most = end - load->sent, due;

	if (load->run->rate) {
		due = (uint64_t)(((double)now_tsc - load->schedule.next_tsc) /
				 load->schedule.gap_tsc);
		due -= load->sent - load->first_message;
		most = most < due ? most : due;
	}
	return (unsigned)(most < load->burst_max ? most : load->burst_max);
}

static int send_some(struct plx_load *load, uint64_t now_tsc)
{
	int count = 0;
	unsigned most;

	if (may_send(load, now_tsc, now_tsc) && !load->blocked) {
		most = due_now(load, now_tsc);
		count = most ? (int)load->send_burst(load, most) : 0;
		load->sent += (uint64_t)count;
	}
	if (plx_unlikely(count && load->state == PLX_LOAD_MEASURING && !load->first_tsc))
		load->first_tsc = now_tsc;
	if (load->state == PLX_LOAD_DRAINING ||
	    (load->state == PLX_LOAD_MEASURING && load->sent == load->limit))
		end(load);
	return count;
}

int plx_load_turn(struct plx_load *load, uint64_t now_tsc)
{
	if (!plx_load_is_on(load) || load->kind == PLX_LOAD_CLOSED)
		return 0;
	return load->kind == PLX_LOAD_OPEN ? send_due(load, now_tsc) : send_some(load, now_tsc);
}

void plx_load_writable(struct plx_load *load, uint64_t now_tsc)
{
	if (load->kind == PLX_LOAD_ONE_WAY)
		load->blocked = false;
	if (load->kind != PLX_LOAD_CLOSED || !plx_load_is_on(load))
		return;
	keep_in_flight(load, now_tsc);
	end_if_drained(load); /* room may come after the end */
}

void plx_load_start(struct plx_load *load, uint64_t now_tsc)
{
	assert(!load->on_warm || load->kind == PLX_LOAD_ONE_WAY);
	load->state = PLX_LOAD_WARMUP;
	load->schedule.next_tsc = (double)now_tsc;
	if (load->warmup_ns)
		load->warm_until_tsc = now_tsc + plx_measure_tsc(load->warmup_ns);
	if (load->kind == PLX_LOAD_CLOSED)
		keep_in_flight(load, now_tsc);
}

/* Around it ---------------------------------------------------------------------------------- */

bool plx_load_is_silent(struct plx_load *load)
{
	uint64_t moved = load->kind == PLX_LOAD_ONE_WAY ? load->sent : load->answered;
	bool waits = load->kind == PLX_LOAD_ONE_WAY ? plx_load_is_on(load) : in_flight(load) > 0;

	load->silent_s = moved != load->moved_before || !waits ? 0 : load->silent_s + 1;
	load->moved_before = moved;
	return load->silent_s >= PLX_LOAD_SILENCE_S;
}

static int sleep_until_tsc(struct plx_sleep *sleep, uint64_t tsc)
{
	if (tsc)
		plx_sleep_until(sleep, plx_tsc_time_ns(tsc));
	return 0;
}

int plx_load_sleep(const struct plx_load *load, struct plx_sleep *sleep)
{
	if (!plx_load_is_on(load) || load->state == PLX_LOAD_WARM || load->kind == PLX_LOAD_CLOSED)
		return 0;
	if (load->kind == PLX_LOAD_ONE_WAY)
		return load->blocked ? sleep_until_tsc(sleep, load->state == PLX_LOAD_WARMUP
								      ? load->warm_until_tsc
								      : load->stop_tsc)
				     : -EAGAIN;
	if (load->state == PLX_LOAD_DRAINING)
		return sleep_until_tsc(sleep, load->drain_tsc);
	if (in_flight(load) < load->in_flight_max) /* otherwise a reply wakes the loop */
		plx_schedule_sleep(&load->schedule, sleep);
	return 0;
}

void plx_load_result(const struct plx_load *load, struct plx_result *result)
{
	bool is_open = load->kind == PLX_LOAD_OPEN, is_one_way = load->kind == PLX_LOAD_ONE_WAY;

	*result = (struct plx_result){
		.name = load->run->name,
		.provider = load->provider,
		.idle = load->idle,
		.size_bytes = load->size_bytes,
		.one_way = is_one_way,
		.count = is_one_way && load->first_tsc ? load->sent - load->first_message : 0,
		.again = load->again,
		.in_flight = is_open ? 0 : load->in_flight_max,
		.has_gaps = load->has_gaps || load->done < ROUNDS_LEAST * load->in_flight_max,
		.lost = load->lost + (is_open && load->done ? in_flight(load) : 0),
		.interrupted = load->failed    ? load->error
			     : load->signalled ? plx_measure_signal()
					       : NULL,
		.failed = load->failed,
		.planned_count = load->run->count,
		.planned_ns = load->run->duration_ns,
		.clock_drift_ppm = plx_clock_drift_ppm(),
		.rtt_ns = &load->rtt_ns,
	};
	if (load->last_tsc > load->first_tsc)
		result->elapsed_ns = plx_tsc_to_ns(load->last_tsc - load->first_tsc);
	if (!is_open)
		return;
	result->rate = plx_measure_rate(load->run);
	result->arrival = plx_arrivals[load->run->arrival];
	result->seed = load->run->seed;
	result->service_ns = &load->service_ns;
	result->scheduled_ns = plx_tsc_to_ns(load->last_intended_tsc - load->first_tsc);
	result->sending_ns = plx_tsc_to_ns(load->last_sent_tsc - load->first_tsc);
}
