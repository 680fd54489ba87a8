/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers and signals: ticks every 100 ms, reports when SIGUSR1 comes, and ends after a time.
 * Run it:  timers --for 10s      and in another terminal  kill -USR1 its process */
#include <plx_app.h>
#include <plx_lcore.h>
#include <signal.h>

static uint64_t end_ns = 10 * PLX_NS_PER_S;
static const struct plx_option options[] = {
	PLX_TIME("for", "TIME", &end_ns, PLX_NS_PER_MS, 0, "how long to run (default 10s)"),
	PLX_OPTIONS_END,
};
static const struct plx_app app = {
	.name = "timers",
	.summary = "Tick every 100 ms, and report when SIGUSR1 comes.",
	.options = options,
};

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

	plx_app_say("report: %u ticks", program->ticks);
}

static void on_tick(struct plx_timer *timer, void *arg)
{
	struct program *program = arg;

	plx_app_say("tick %u", ++program->ticks);
}

static void on_end(struct plx_timer *timer, void *arg)
{
	plx_loop_quit();
}

static int start(struct program *program)
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
	int status = plx_app_start(argc, argv, &app), rc;

	if (status != PLX_APP_RUN)
		return status;
	rc = start(&program);
	if (rc == 0)
		rc = plx_loop_run();
	if (rc != 0)
		plx_app_fail(&app);
	signal(SIGUSR1, SIG_IGN); /* a signal must not fire after plx_signal_fini */
	plx_timer_stop(&program.tick);
	plx_timer_stop(&program.end);
	plx_signal_fini(&program.report);
	return plx_app_finish(&app, rc != 0);
}
