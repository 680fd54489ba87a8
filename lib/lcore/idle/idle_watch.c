/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of idle lcores, ten times a second while they are awake: whether another thread runs on
 * the CPU, so that polling slows both; and whether a poller always has work, or cannot be waited
 * for, so that the lcore never sleeps. */
#include "lcore_priv.h"

PLX_LOG_COMPONENT(log_idle, "idle");

#define LOOK_EVERY_NS (100 * PLX_NS_PER_MS)
#define NAME_EVERY_NS PLX_NS_PER_S

/* An lcore that is awake should have its CPU, except for what the kernel takes. If it has less than
 * CPU_SHARE_LEAST in CROWDED_LOOKS checks in a row, another thread runs there, or a quota throttles
 * it. */
#define CPU_SHARE_LEAST 0.75
#define CROWDED_LOOKS   3
#define AWAKE_LEAST_NS  (20 * PLX_NS_PER_MS) /* per check, to be evaluated */
#define CROWDED_NS      (30 * PLX_NS_PER_S)  /* then check again */

void idle_tell_unarmed(const struct plx_poller *poller)
{
	plx_log(&log_idle, PLX_LOG_NOTICE,
		"lcore %u: poller %s does not say what it waits for: the lcore naps, for up to 1 "
		"ms, where it could sleep. Say it with plx_poller_set_arm, or poll with --idle "
		"poll",
		plx_lcore_id(), poller->name);
}

static void set_crowded(struct loop *loop, bool crowded)
{
	loop->idle.crowded = crowded;
	idle_costs_changed(&loop->idle);
}

/* What changes for a crowded lcore, if anything. */
static const char *outcome_of(const struct idle *idle)
{
	if (idle->conf.mode == PLX_IDLE_POLL)
		return "; it polls on, as --idle poll says";
	if (idle->conf.mode == PLX_IDLE_ADAPTIVE && !idle->crowded &&
	    idle->conf.alpha < PLX_IDLE_ECO)
		return "; from now on it sleeps early";
	return "";
}

static void found_crowded(struct loop *loop, double share)
{
	struct idle_watch *watch = &loop->idle.watch;
	const char *outcome = outcome_of(&loop->idle);
	const struct lcore *lcore = lcore_get(plx_lcore_id());
	bool fixed = plx_cpuset_count(&lcore->cpus) == 1;

	watch->crowded_until_ns = loop->now_ns + CROWDED_NS;
	if (!loop->idle.crowded)
		set_crowded(loop, true);
	if (watch->told)
		return;
	watch->told = true;
	plx_log(&log_idle, PLX_LOG_WARNING,
		"%s has %s for only %.0f %% of the time that it is awake: %s, a CPU quota ends, a "
		"hypervisor takes it, or a callback sleeps%s. %s, and let no callback block",
		lcore_text(lcore), fixed ? "its CPU" : "a CPU", share * 100,
		fixed ? "another thread runs there" : "more threads run than there are CPUs",
		outcome,
		fixed ? "Let no other thread use its CPU (-l)"
		      : "Run fewer threads, or give it its own CPU (-l)");
}

/* The CPU time of its thread ---------------------------------------------------------------- */

#define NOTE_OLD_NS PLX_NS_PER_S

static struct cpu_note read_cpu(const struct loop *loop)
{
	const struct loop_counts *counts = &loop->counts;
	uint64_t turn_cycles = loop->turn_tsc ? plx_tsc() - loop->turn_tsc : 0;

	return (struct cpu_note){
		.cpu_ns = plx_kernel_ns(CLOCK_THREAD_CPUTIME_ID),
		.awake_cycles = counter_get(&counts->busy.cycles) +
				counter_get(&counts->idle.cycles) + turn_cycles,
	};
}

void lcore_note_cpu(void)
{
	if (loop_self)
		loop_self->idle.note = read_cpu(loop_self);
}

uint64_t lcore_away_ns(uint64_t took_ns)
{
	struct loop *loop = loop_self;
	struct cpu_note before, now;
	uint64_t had_ns, awake_ns, away_ns;

	if (!loop)
		return 0;
	before = loop->idle.note;
	now = read_cpu(loop);
	awake_ns = plx_tsc_to_ns(now.awake_cycles - before.awake_cycles);
	if (!before.cpu_ns || awake_ns > plx_time_add(took_ns, NOTE_OLD_NS)) {
		loop->idle.note = now;
		return 0;
	}
	had_ns = now.cpu_ns - before.cpu_ns;
	away_ns = awake_ns > had_ns ? awake_ns - had_ns : 0;
	return away_ns < took_ns ? away_ns : took_ns;
}

static void look_for_crowd(struct loop *loop)
{
	struct idle_watch *watch = &loop->idle.watch;
	const struct loop_counts *counts = &loop->counts;
	uint64_t cycles = counter_get(&counts->busy.cycles) + counter_get(&counts->idle.cycles);
	uint64_t cpu_ns = plx_kernel_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t had_ns = cpu_ns - watch->cpu_ns;
	uint64_t awake_ns = plx_tsc_to_ns(cycles - watch->awake_cycles);
	bool first = watch->cpu_ns == 0;

	lcore_note_cpu();
	watch->cpu_ns = cpu_ns;
	watch->awake_cycles = cycles;
	if (loop->idle.crowded && !loop->idle.conf.crowded &&
	    loop->now_ns >= watch->crowded_until_ns)
		set_crowded(loop, false);
	if (first || awake_ns < AWAKE_LEAST_NS)
		return;
	if ((double)had_ns >= CPU_SHARE_LEAST * (double)awake_ns)
		watch->crowded_looks = 0;
	else if (++watch->crowded_looks >= CROWDED_LOOKS)
		found_crowded(loop, (double)had_ns / (double)awake_ns);
}

/* A poller that cannot be waited for; otherwise the one that had work in most calls. */
static const struct plx_poller *find_who_keeps_awake(struct pollers *pollers)
{
	const struct plx_poller *most = NULL, *unsure = NULL;
	uint64_t most_busy = 0;

	for (uint32_t i = 0; i < pollers->count; i++) {
		struct plx_poller *poller = pollers->list[i];
		uint64_t busy = poller->busy_calls - poller->looked_busy;

		poller->looked_busy = poller->busy_calls;
		if (poller->unsure && !poller->removed)
			unsure = poller;
		poller->unsure = false; /* until it is asked again */
		if (poller->removed || busy <= most_busy)
			continue;
		most = poller;
		most_busy = busy;
	}
	return unsure ? unsure : most;
}

static void name_who_keeps_awake(struct loop *loop)
{
	struct idle *idle = &loop->idle;
	uint64_t sleeps = counter_get(&idle->counts.sleeps) - counter_get(&idle->counts.naps);
	const struct plx_poller *poller = find_who_keeps_awake(&loop->pollers);

	if (sleeps != idle->watch.sleeps || idle->conf.mode == PLX_IDLE_POLL)
		poller = NULL;
	idle->watch.sleeps = sleeps;
	/* Relaxed: see plx_idle_stats. */
	counter_set(&idle->counts.awake_by, poller ? poller->name : NULL);
}

/* Whether *at_ns has come; then it is set to the next time. */
static bool is_due(uint64_t *at_ns, uint64_t now_ns, uint64_t every_ns)
{
	uint64_t left_ns = plx_time_since(now_ns, *at_ns);

	if (left_ns && left_ns <= every_ns) /* more: the clock stepped back */
		return false;
	*at_ns = now_ns + every_ns;
	return true;
}

void idle_look(struct loop *loop)
{
	if (!is_due(&loop->idle.look_at_ns, loop->now_ns, LOOK_EVERY_NS))
		return;
	plx_clock_look(false);
	look_for_crowd(loop);
	if (is_due(&loop->idle.watch.named_at_ns, loop->now_ns, NAME_EVERY_NS))
		name_who_keeps_awake(loop);
}
