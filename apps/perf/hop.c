/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-perf hop: the round trip of a message from this lcore to another and back, through the lanes
 * of both running loops, compared with that of a bare cache line between the same CPUs.
 *
 *   hot       the next message is sent as soon as the previous one is back
 *   quiet     it is sent gap_us later, when the lanes have gone cold
 *   idle-tcp  hot, while both loops poll an idle TCP link */
#include "perf.h"

#define HIGHEST_NS  PLX_NS_PER_S
#define DIGITS      3
#define WARM_HOT    1000 /* trips that are not recorded */
#define TRIPS_LEAST 100  /* even if they take longer */
#define WARM_QUIET  10
#define LOST_NS     (5 * PLX_NS_PER_S)
#define COLD_NS     (3 * PLX_NS_PER_MS) /* until a set of links counts as cold */
#define TURNS       20000

struct hop {
	struct hop_results results;
	uint32_t round;
	/* The current run. */
	struct plx_hist hist;
	uint64_t sent_tsc, stop_tsc, next_ns, trips, warm;
	bool quiet, waiting, failed;
};

static void on_home(void *arg);

static void on_away(void *arg)
{
	/* There is room: no other message is in flight. Nothing past arg is read, where the other
	 * lcore writes; that would move one more line. */
	if (plx_unlikely(plx_lcore_send(plx_lcore_main(), on_home, arg) != 0))
		plx_stop();
}

static void send_next(struct hop *hop)
{
	hop->sent_tsc = plx_tsc();
	if (plx_unlikely(plx_lcore_send(hop->results.away, on_away, hop) != 0)) {
		hop->failed = true;
		plx_loop_quit();
	}
}

static void on_home(void *arg)
{
	uint64_t now_tsc = plx_tsc();
	struct hop *hop = arg;

	if (plx_likely(hop->trips++ >= hop->warm))
		plx_hist_record(&hop->hist, plx_tsc_to_ns(now_tsc - hop->sent_tsc));
	if (plx_unlikely(now_tsc >= hop->stop_tsc && hop->hist.count >= TRIPS_LEAST)) {
		plx_loop_quit();
		return;
	}
	hop->waiting = hop->quiet;
	hop->next_ns = plx_tsc_time_ns(now_tsc) + perf_conf.gap_us * PLX_NS_PER_US;
	if (!hop->quiet)
		send_next(hop);
}

static int send_after_gap(void *arg, uint64_t now_ns)
{
	struct hop *hop = arg;

	if (!hop->waiting || now_ns < hop->next_ns)
		return 0;
	hop->waiting = false;
	send_next(hop);
	return 1;
}

static void on_lost(struct plx_timer *timer, void *arg)
{
	((struct hop *)arg)->failed = true;
	plx_loop_quit();
}

static void quit_loop(void *arg)
{
	plx_loop_quit();
}

static int run_loop(void *arg)
{
	return plx_loop_run();
}

/* One run ------------------------------------------------------------------------------------- */

static void keep(struct hop *hop, struct hop_row *row)
{
	row->p50[hop->round] = (double)plx_hist_quantile(&hop->hist, 0.5);
	row->p99[hop->round] = (double)plx_hist_quantile(&hop->hist, 0.99);
	plx_hist_add(&row->all, &hop->hist);
}

static int bounce(struct hop *hop, struct hop_row *row, bool quiet)
{
	struct plx_poller *poller = NULL;
	struct plx_timer lost;
	int rc = quiet ? plx_poller_add("hop", send_after_gap, hop, &poller) : 0;

	if (rc)
		return rc;
	plx_hist_reset(&hop->hist);
	hop->quiet = quiet;
	hop->trips = 0;
	hop->warm = quiet ? WARM_QUIET : WARM_HOT;
	hop->stop_tsc = plx_tsc() + plx_measure_tsc(perf_conf.duration_ns);
	plx_timer_init(&lost, on_lost, hop);
	plx_timer_start(&lost, perf_conf.duration_ns + LOST_NS);
	send_next(hop);
	plx_loop_run();
	plx_timer_stop(&lost);
	plx_poller_remove(poller);
	if (plx_stopping() && !hop->failed)
		return plx_fail(EINTR, "interrupted");
	if (hop->failed)
		return plx_fail(EIO, "%s: a message did not come back, after %llu", row->name,
				(unsigned long long)hop->trips);
	keep(hop, row);
	return 0;
}

/* Nanoseconds of an idle loop turn. */
static double idle_turn_ns(void)
{
	uint64_t begin = plx_tsc();

	for (unsigned i = 0; i < TURNS; i++)
		plx_loop_turn();
	return (double)plx_tsc_to_ns(plx_tsc() - begin) / TURNS;
}

static void turn_for(uint64_t ns)
{
	for (uint64_t end_ns = plx_now_ns() + ns; plx_now_ns() < end_ns;)
		plx_loop_turn();
}

static int bounce_beside_tcp(struct hop *hop)
{
	int rc;

	hop->results.turn_ns[hop->round] = idle_turn_ns();
	rc = idle_tcp_open(hop->results.away);
	if (rc)
		return rc;
	turn_for(COLD_NS);
	hop->results.turn_idle_tcp_ns[hop->round] = idle_turn_ns();
	rc = bounce(hop, &hop->results.rows[HOP_IDLE_TCP], false);
	return rc ? rc : idle_tcp_close();
}

static int run_bare(struct hop *hop)
{
	struct hop_row *row = &hop->results.rows[HOP_BARE];
	double median_pair;
	int rc;

	plx_hist_reset(&hop->hist);
	rc = bare_run(hop->results.away, perf_conf.duration_ns, &hop->hist, &median_pair);
	if (rc)
		return rc;
	keep(hop, row);
	row->p50[hop->round] = median_pair;
	return 0;
}

static int run_round(struct hop *hop)
{
	int rc = run_bare(hop), joined;

	rc = rc ? rc : plx_lcore_launch(hop->results.away, run_loop, NULL);
	if (rc)
		return rc;
	rc = bounce(hop, &hop->results.rows[HOP_HOT], false);
	rc = rc ? rc : bounce(hop, &hop->results.rows[HOP_QUIET], true);
	if (rc == 0 && perf_conf.with_idle_tcp)
		rc = bounce_beside_tcp(hop);
	if (rc || plx_lcore_send(hop->results.away, quit_loop, NULL) != 0)
		plx_stop(); /* the other loop must end in any case */
	joined = plx_lcore_join(hop->results.away, PLX_NEVER, NULL);
	return rc ? rc : joined;
}

static int prepare(struct hop *hop)
{
	static const char *const names[HOP_ROWS] = {"bare", "hot", "quiet", "idle-tcp"};
	int rc = plx_hist_init(&hop->hist, HIGHEST_NS, DIGITS);

	for (unsigned i = 0; i < HOP_ROWS && rc == 0; i++) {
		hop->results.rows[i].name = names[i];
		rc = plx_hist_init(&hop->results.rows[i].all, HIGHEST_NS, DIGITS);
	}
	return rc ? plx_fail(ENOMEM, "out of memory") : 0;
}

int perf_hop_run(void)
{
	static struct hop hop;
	int rc = perf_second_lcore(&hop.results.away);

	rc = rc ? rc : prepare(&hop);
	for (; rc == 0 && hop.round < perf_conf.rounds; hop.round++)
		rc = run_round(&hop);
	rc = rc ? rc : hop_report(&hop.results);
	plx_hist_fini(&hop.hist);
	for (unsigned i = 0; i < HOP_ROWS; i++)
		plx_hist_fini(&hop.results.rows[i].all);
	return rc;
}
