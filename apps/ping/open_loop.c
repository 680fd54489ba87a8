/* SPDX-License-Identifier: BSD-3-Clause */
/* Open loop: messages leave on a schedule that does not wait for answers, and each is measured from
 * its *intended* time, so that a stall is charged to every message that it delayed (no coordinated
 * omission). */
#include "client.h"

#include <math.h>

#define BURST_MAX 16 /* sends in one turn */

/* PING_BURST */
#define BURST_LENGTH 100
#define BURST_GAP_NS (10 * PLX_NS_PER_US)

static uint64_t next_random(struct client *client)
{
	/* splitmix64 (Steele, Lea, Flood 2014): fine for gaps, and a seed of 0 is too. */
	uint64_t z = client->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* So long a pause behind a burst that the rate is kept. */
static double burst_gap(const struct client *client)
{
	double inside = (double)BURST_GAP_NS / 1e9 * plx_clock_info()->hz;

	if (client->sent % BURST_LENGTH)
		return inside;
	return client->gap_tsc * BURST_LENGTH - inside * (BURST_LENGTH - 1);
}

static void schedule_next(struct client *client)
{
	double gap = client->gap_tsc;

	if (client->conf->arrival == PING_POISSON) {
		double uniform = ((double)(next_random(client) >> 11) + 0.5) / 9007199254740992.0;

		gap *= -log(uniform);
	} else if (client->conf->arrival == PING_BURST) {
		gap = burst_gap(client);
	}
	client->next_tsc += gap;
}

/* The host cannot keep the rate: what is still to be sent would take longer than anybody waits. */
static bool is_hopeless(const struct client *client, uint64_t now_tsc)
{
	return !client->conf->count && client->stop_tsc && now_tsc > client->stop_tsc &&
	       plx_tsc_to_ns(now_tsc - client->stop_tsc) > DRAIN_NS;
}

static void end_open_loop(struct client *client)
{
	if (client->answered == client->sent)
		client_stop(client);
	else if (!plx_timer_running(&client->deadline))
		plx_timer_start(&client->deadline, DRAIN_NS);
}

/* Open loop: whatever is due leaves now, with the time that it should have left as its stamp. The
 * end goes by the schedule too: what a stall delayed past the end is still sent, and measured. */
int open_loop_poll(void *arg, uint64_t now_ns)
{
	struct client *client = arg;
	int work = 0;

	if (!client->open || client->stopped)
		return 0;
	for (; work < BURST_MAX; work++) {
		uint64_t now_tsc = plx_tsc();

		if (client_is_enough(client, (uint64_t)client->next_tsc) ||
		    is_hopeless(client, now_tsc)) {
			end_open_loop(client);
			break;
		}
		if ((double)now_tsc < client->next_tsc ||
		    client->sent - client->answered >= IN_FLIGHT_MAX)
			break;
		/* A backlog of the warm-up is not the measurement's. */
		if (client->sent == client->conf->warmup && !client->blocked)
			client->next_tsc = (double)now_tsc;
		if (client_send_next(client, (uint64_t)client->next_tsc) != 0)
			break;
		schedule_next(client);
	}
	return work;
}

/* Nothing tells of the next one but its time; nothing is due before the link is open, or once the
 * end is waited for. */
int open_loop_arm(void *arg, struct plx_sleep *sleep)
{
	const struct client *client = arg;
	uint64_t tsc = plx_tsc();

	if (!client->open || client->stopped || plx_timer_running(&client->deadline))
		return 0;
	if (client->sent - client->answered >= IN_FLIGHT_MAX)
		return 0; /* an answer tells */
	if (client->next_tsc <= (double)tsc)
		plx_sleep_nap(sleep); /* it found no room */
	else
		plx_sleep_until(sleep, plx_tsc_to_ns((uint64_t)client->next_tsc));
	return 0;
}
