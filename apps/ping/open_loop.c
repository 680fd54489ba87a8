/* SPDX-License-Identifier: BSD-3-Clause */
/* Open loop: messages are sent on a schedule that does not wait for answers. Each is measured from
 * its *intended* time, so a stall counts for every message that it delayed (no coordinated
 * omission). */
#include "client.h"

#define BURST_MAX 16 /* sends per turn */

static void end_open_loop(struct client *client)
{
	if (client->answered == client->sent)
		client_stop(client);
	else if (!plx_timer_running(&client->deadline))
		plx_timer_start(&client->deadline, PLX_SCHEDULE_DRAIN_NS);
}

/* Send the due messages, stamped with their intended times. The end follows the schedule too:
 * messages that a stall delayed past the end are still sent and measured. */
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
		/* The measurement does not inherit the warm-up's backlog. */
		if (client->sent == client->warmup && !client->blocked)
			client->schedule.next_tsc = (double)now_tsc;
		if (client_send_next(client, (uint64_t)client->schedule.next_tsc) != 0)
			break;
		plx_schedule_advance(&client->schedule);
	}
	return work;
}

/* The next message depends on its time only; nothing is due before the link opens or once the run
 * waits for its end. */
int open_loop_arm(void *arg, struct plx_sleep *sleep)
{
	const struct client *client = arg;

	if (!client->open || client->stopped || plx_timer_running(&client->deadline))
		return 0;
	if (client->sent - client->answered >= IN_FLIGHT_MAX)
		return 0; /* an answer wakes the loop */
	plx_schedule_sleep(&client->schedule, sleep);
	return 0;
}
