/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers and signals: ticks every 100 ms, reports when SIGUSR1 comes, and ends after SECONDS.
 * Run it:  timers 10      and in another terminal  kill -USR1 its process */
#include <plx_eal.h>
#include <plx_lcore.h>
#include <signal.h>
#include <stdio.h>

struct program {
	struct plx_timer tick, end;
	struct plx_signal report;
	unsigned ticks;
};

static struct plx_signal *to_report; /* a signal handler gets no argument */

/* A signal handler may call plx_signal_fire, and nearly nothing else. */
static void on_sigusr1(int number)
{
	plx_signal_fire(to_report); /* NOLINT(bugprone-signal-handler) */
}

/* In the loop: once for one or more fires. */
static void on_report(struct plx_signal *report, uint64_t fires, void *arg)
{
	struct program *program = arg;

	printf("report: %u ticks\n", program->ticks);
}

static void on_tick(struct plx_timer *timer, void *arg)
{
	struct program *program = arg;

	printf("tick %u\n", ++program->ticks);
}

static void on_end(struct plx_timer *timer, void *arg)
{
	plx_loop_quit();
}

static int start(struct program *program, uint64_t end_ns)
{
	int rc = plx_signal_init(&program->report, plx_lcore_id(), on_report, program);

	if (rc != 0)
		return rc;
	to_report = &program->report;
	if (signal(SIGUSR1, on_sigusr1) == SIG_ERR)
		return plx_fail(errno, "SIGUSR1 cannot be caught");
	plx_timer_init(&program->tick, on_tick, program);
	plx_timer_init(&program->end, on_end, program);
	rc = plx_timer_start_periodic(&program->tick, 100 * PLX_NS_PER_MS);
	return rc ? rc : plx_timer_start(&program->end, end_ns);
}

int main(int argc, char **argv)
{
	struct program program = {0};
	struct plx_eal_conf conf = {0};
	int used = plx_eal_parse(argc, argv, &conf), rc;
	uint64_t end_ns;

	if (used < 0)
		fprintf(stderr, "timers: %s\n", plx_error());
	if (used < 0 || argc - used != 2 ||
	    plx_parse_duration("SECONDS", argv[1 + used], 0, 0, &end_ns) != 0) {
		fprintf(stderr, "usage: timers [EAL options] SECONDS\n");
		plx_eal_conf_fini(&conf);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	rc = plx_eal_init(&conf);
	plx_stop_on_signals();
	if (rc == 0)
		rc = start(&program, end_ns);
	if (rc == 0)
		rc = plx_loop_run();
	if (rc != 0)
		fprintf(stderr, "timers: %s\n", plx_error());
	signal(SIGUSR1, SIG_IGN); /* a signal must not fire after plx_signal_fini */
	plx_timer_stop(&program.tick);
	plx_timer_stop(&program.end);
	plx_signal_fini(&program.report);
	if (plx_eal_fini() != 0)
		rc = -1;
	plx_eal_conf_fini(&conf);
	return rc != 0;
}
