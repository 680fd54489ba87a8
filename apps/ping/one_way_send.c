/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender of a one-way run: a poller that sends in bursts, counts, and closes the link after the
 * last message. */
#include "one_way.h"

static int send_message(struct one_way *run)
{
	if (!run->message)
		return plx_link_send(run->link, run->payload, run->conf->size_bytes);

	int rc = plx_link_send_buf(run->link, plx_buf_ref(run->message), NULL, NULL);

	if (rc)
		plx_buf_unref(run->message);
	return rc;
}

/* Send up to conf->burst messages, but not past the end of the warm-up or the run. Return: how
 * many. */
static unsigned send_burst(struct one_way *run)
{
	uint64_t end = run->sent < run->conf->warmup ? run->conf->warmup : run->limit;
	uint64_t left = end - run->sent, burst = run->conf->burst;
	unsigned room = (unsigned)(left < burst ? left : burst), count = 0;
	int rc = 0;

	while (count < room && (rc = send_message(run)) == 0)
		count++;
	run->sent += count;
	if (rc) {
		run->blocked = true; /* until on_writable, or on_close if it is closing */
		if (rc != -EAGAIN && rc != -ENOTCONN)
			one_way_fail(run, plx_error());
	}
	return count;
}

static void start_clock(struct one_way *run, uint64_t now_ns)
{
	run->first_ns = now_ns;
	if (!run->conf->run.count)
		run->stop_ns = plx_time_add(now_ns, run->conf->run.duration_ns);
}

uint64_t one_way_refused(const struct one_way *run)
{
	struct plx_link_stats stats;

	plx_link_stats_read(run->link, &stats);
	return stats.again;
}

static unsigned send_measured(struct one_way *run)
{
	uint64_t begin_ns = run->first_ns ? 0 : plx_now_ns();
	uint64_t again = run->first_ns ? 0 : one_way_refused(run);
	unsigned count = send_burst(run);

	if (count && !run->first_ns) {
		start_clock(run, begin_ns);
		run->again_before = again;
	}
	if (count)
		run->last_ns = plx_now_ns();
	return count;
}

/* Close the link after the last message; on_close ends the loop. */
static void stop(struct one_way *run)
{
	run->stopped = true;
	plx_link_close(run->link);
}

/* A poller that runs after that of the links, so it uses the room they report in the same turn. */
static int send_in_bursts(void *arg, uint64_t now_ns)
{
	struct one_way *run = arg;
	unsigned count = 0;

	if (!run->open || run->stopped)
		return 0;
	if (!run->blocked && now_ns < run->stop_ns)
		count = run->sent < run->conf->warmup ? send_burst(run) : send_measured(run);
	if (run->open && !run->stopped && (run->sent == run->limit || now_ns >= run->stop_ns))
		stop(run);
	return (int)count;
}

/* The link reports that it is open, writable or closed. */
static int arm_sender(void *arg, struct plx_sleep *sleep)
{
	const struct one_way *run = arg;

	if (!run->open || run->stopped)
		return 0;
	plx_sleep_until(sleep, run->stop_ns);
	return run->blocked ? 0 : -EAGAIN;
}

int one_way_start_sender(struct one_way *run)
{
	int rc = plx_poller_add("one way", send_in_bursts, run, &run->sender);

	if (rc == 0)
		plx_poller_set_arm(run->sender, arm_sender);
	return rc;
}
