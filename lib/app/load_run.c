/* SPDX-License-Identifier: BSD-3-Clause */
/* A load in the loop of an lcore. */
#include "load.h"
#include "plx_topo.h"

#include <inttypes.h>
#include <sched.h>
#include <unistd.h>

static int turn(void *arg, uint64_t now_ns)
{
	return plx_load_turn(arg, plx_tsc());
}

static int arm(void *arg, struct plx_sleep *sleep)
{
	return plx_load_sleep(arg, sleep);
}

static void on_watch(struct plx_timer *timer, void *arg)
{
	struct plx_load *load = arg;

	if (plx_load_is_silent(load))
		load->on_silence(load);
}

static void on_progress(struct plx_timer *timer, void *arg)
{
	struct plx_load *load = arg;
	char p50[PLX_HIST_TEXT_BYTES], p99[PLX_HIST_TEXT_BYTES];

	if (load->state == PLX_LOAD_IDLE)
		return;
	load->shows_progress = true;
	if (load->kind == PLX_LOAD_ONE_WAY)
		fprintf(stderr, "\r%" PRIu64 " %s sent   ", load->sent, load->unit);
	else
		fprintf(stderr, "\r%" PRIu64 " %s, p50 %s us, p99 %s us   ", load->rtt_ns.count,
			load->unit,
			plx_hist_quantile_format(&load->rtt_ns, 0.5, PLX_NS_PER_US, p50),
			plx_hist_quantile_format(&load->rtt_ns, 0.99, PLX_NS_PER_US, p99));
}

static void start_timer(struct plx_load *load, struct plx_timer *timer, plx_timer_fn on_timer)
{
	plx_timer_init(timer, on_timer, load);
	plx_timer_set_lax(timer, true);
	plx_timer_start_periodic(timer, PLX_NS_PER_S);
}

int plx_load_enter(struct plx_load *load)
{
	int rc = 0;

	if (load->kind != PLX_LOAD_CLOSED)
		rc = plx_poller_add("load", turn, load, &load->poller);
	if (rc)
		return rc;
	if (load->poller)
		plx_poller_set_arm(load->poller, arm);
	if (load->on_silence)
		start_timer(load, &load->watch, on_watch);
	return 0;
}

void plx_load_leave(struct plx_load *load)
{
	plx_timer_stop(&load->watch);
	plx_poller_remove(load->poller);
	load->poller = NULL;
	load->signalled = load->state != PLX_LOAD_ENDED;
	load->state = PLX_LOAD_ENDED;
}

int plx_load_run(struct plx_load *load)
{
	int rc = plx_load_enter(load);

	if (rc)
		return rc;
	if (isatty(STDERR_FILENO))
		start_timer(load, &load->progress, on_progress);
	plx_loop_run();
	plx_timer_stop(&load->progress);
	if (load->shows_progress)
		fputc('\n', stderr);
	plx_load_leave(load);
	return 0;
}

void plx_load_note_provider(struct plx_load *load, const char *provider, const char *choice)
{
	snprintf(load->provider, sizeof(load->provider), "%s", provider);
	snprintf(load->provider_choice, sizeof(load->provider_choice), "%s", choice);
	plx_measure_idle(load->idle);
}

static void warn(struct plx_load *load, unsigned cpu, pid_t holder)
{
	char who[64] = "another process";

	if (load->warning_count == PLX_LOAD_WARNINGS)
		return;
	if (holder > 0)
		snprintf(who, sizeof(who), "process %ld", (long)holder);
	snprintf(load->warnings[load->warning_count++], sizeof(load->warnings[0]),
		 "CPU %u is already claimed by %s: each waits while the other runs, up to "
		 "milliseconds if it polls, and these figures measure that, too; give each process "
		 "its own CPUs with -l",
		 cpu, who);
}

/* Checks the claim, not the EAL's warning, which --log-level may hide. */
void plx_load_look_for_pollers(struct plx_load *load)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		return;
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		struct plx_cpu_holder holder;
		int fd;

		if (!CPU_ISSET(cpu, &cpus))
			continue;
		int rc = plx_cpu_claim(cpu, &fd, &holder);

		if (rc == 0)
			close(fd);
		else if (rc == -EBUSY && holder.pid != getpid())
			warn(load, cpu, holder.pid);
	}
}
