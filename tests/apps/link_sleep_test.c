/* SPDX-License-Identifier: BSD-3-Clause */
/* A sleeping server: its cost without clients and with a silent peer, and what it survives. The
 * limits are generous: the bench measures. */
#include "process_fixture.h"

#include <signal.h>

#define QUIET_MS       2000
#define CPU_MS_MAX     40 /* in that time; a polling lcore uses all of it */
#define WAKES_MAX      27 /* without clients */
#define PEER_WAKES_MAX 50 /* an idle peer sends ten heartbeats a second */
#define STOPPED_MS     700

/* Of a process: CPU time of all threads, and number of sleeps. */
struct usage {
	double cpu_ms;
	long sleeps;
};

static struct usage usage_of(const struct process *process)
{
	/* The main thread is the only lcore. */
	return (struct usage){
		.cpu_ms = (double)proc_number(process, "schedstat", "", 10) / 1e6,
		.sleeps = (long)proc_number(process, "status", "voluntary_ctxt_switches:", 10),
	};
}

static void expect_quiet(const struct process *process, long wakes_max)
{
	/* Two of three, if the first is not quiet: a single disturbance by the host is not a
	 * failure. */
	unsigned quiet = 0, loud = 0;

	do {
		struct usage before = usage_of(process), after;

		nap_ms(QUIET_MS);
		after = usage_of(process);
		double cpu_ms = after.cpu_ms - before.cpu_ms;
		long sleeps = after.sleeps - before.sleeps;
		if (cpu_ms <= CPU_MS_MAX && sleeps <= wakes_max) {
			quiet++;
			continue;
		}
		loud++;
		print_message("%.1f ms of CPU time and %ld sleeps in %d ms\n", cpu_ms, sleeps,
			      QUIET_MS);
	} while (loud == 1 && quiet < 2);
	if (loud > 1)
		fail_msg("awake twice, with limits of %d ms and %ld sleeps", CPU_MS_MAX, wakes_max);
}

PROVIDER_TEST(an_idle_server_sleeps)
{
	struct server server = serve("apps/plx-ping", provider, "--listen 127.0.0.1:0");
	struct process *peer;

	nap_ms(500); /* it starts with some sleeps, to learn their cost */
	expect_quiet(server.process, WAKES_MAX);
	/* Long gaps, from which it learns to sleep at once. */
	ping(&server, provider, "--rate 100 --count 100 --warmup 0");
	peer = launch("apps/plx-ping -l 0@%u --huge none --idle poll --provider %s -- "
		      "--connect %s --interval 60s --count 1 --warmup 1",
		      client_cpu, provider, server.address);
	expect_out(server.process, "%s", connected_over(provider));
	nap_ms(200);
	expect_quiet(server.process, PEER_WAKES_MAX);
	process_signal(peer, SIGTERM);
	process_wait(peer, LIMIT_MS);
	/* And it still answers. */
	ping(&server, provider, "--count 1000 --verify");
	end_server(&server);
	expect_out(server.process, "lcore 0: slept ");
}

PROCESS_TEST(a_poller_does_not_sleep)
{
	struct server server = serve("apps/plx-ping --idle poll", "shm", "--listen 127.0.0.1:0");
	struct usage before = usage_of(server.process), after;

	nap_ms(1000);
	after = usage_of(server.process);
	assert_true(after.cpu_ms - before.cpu_ms > 200); /* of 1 000; the host may be busy */
	end_server(&server);
	assert_null(strstr(process_out(server.process), "slept"));
}

/* Stopped by SIGSTOP while sleeping and waking: nothing is lost. */
PROVIDER_TEST(a_stopped_sleeper_continues)
{
	struct server server = serve("apps/plx-echo --idle event --heartbeat off", provider,
				     "--listen 127.0.0.1:0");
	struct process *client = launch_ping(
		&server, provider, "--rate 500 --arrival poisson --duration 3 --warmup 10");

	for (unsigned i = 0; i < 2; i++) {
		nap_ms(400);
		process_signal(server.process, SIGSTOP);
		nap_ms(STOPPED_MS);
		process_signal(server.process, SIGCONT);
	}
	expect_figures(client);
	assert_null(strstr(process_out(client), "had no answer"));
	end_server(&server);
}

PLX_TEST_MAIN_WITH(group_set_up, NULL)
