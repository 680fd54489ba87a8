/* SPDX-License-Identifier: BSD-3-Clause */
/* Open loop: messages leave on a schedule that does not wait for answers, and each is measured from
 * its *intended* time, so that a stall is charged to every message that it delayed (no coordinated
 * omission). */
#include "client.h"

#define BURST_MAX 16 /* sends in one turn */

static void end_open_loop(struct client *client)
{
	if (client->answered == client->sent)
		client_stop(client);
	else if (!plx_timer_running(&client->deadline))
		plx_timer_start(&client->deadline, PLX_SCHEDULE_DRAIN_NS);
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

		if (client_is_enough(client, (uint64_t)client->schedule.next_tsc) ||
		    (!client->conf->run.count &&
		     plx_schedule_is_hopeless(client->stop_tsc, now_tsc))) {
			end_open_loop(client);
			break;
		}
		if ((double)now_tsc < client->schedule.next_tsc ||
		    client->sent - client->answered >= IN_FLIGHT_MAX)
			break;
		/* A backlog of the warm-up is not the measurement's. */
		if (client->sent == client->conf->warmup && !client->blocked)
			client->schedule.next_tsc = (double)now_tsc;
		if (client_send_next(client, (uint64_t)client->schedule.next_tsc) != 0)
			break;
		plx_schedule_advance(&client->schedule);
	}
	return work;
}

/* The next one is due by its time alone; nothing is due before the link is open, or once the
 * end is waited for. */
int open_loop_arm(void *arg, struct plx_sleep *sleep)
{
	const struct client *client = arg;

	if (!client->open || client->stopped || plx_timer_running(&client->deadline))
		return 0;
	if (client->sent - client->answered >= IN_FLIGHT_MAX)
		return 0; /* an answer tells */
	plx_schedule_sleep(&client->schedule, sleep);
	return 0;
}
