/* SPDX-License-Identifier: BSD-3-Clause */
/* One run of the measuring side: resources, timers, the loop, and the end. */
#include "client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HIGHEST_NS (10 * PLX_NS_PER_S) /* longest round trip with full resolution */
#define DIGITS     3
/* With longer receive buffers use fewer, so that they stay in the cache. */
#define PAGE_LINK_BYTES 65536
#define TX_BUFS         16
/* For a server that only drops: few large buffers, so that they stay in a cache. */
#define SINK_BYTES (UINT32_C(8) << 20)
#define SINK_MIN   4
#define SINK_MAX   128
#define SILENCE_S  10 /* without an answer, before the peer is given up */

uint32_t ping_rx_buf_bytes(const struct ping_conf *conf)
{
	uint64_t fits = (conf->size_bytes + 63) & ~UINT64_C(63);

	if (conf->rx_buf_bytes)
		return (uint32_t)conf->rx_buf_bytes;
	if (fits > 16 << 20)
		fits = 16 << 20;
	return fits < 4096 ? 4096 : (uint32_t)fits;
}

/* The sender gets new credit when half of the window is used: 128 small buffers make bursts of 64
 * messages, with one credit frame each. */
static uint32_t sink_window(uint32_t rx_buf_bytes)
{
	uint32_t fit = SINK_BYTES / rx_buf_bytes;

	return fit < SINK_MIN ? SINK_MIN : fit > SINK_MAX ? SINK_MAX : fit;
}

uint32_t ping_rx_buf_count(const struct ping_conf *conf)
{
	if (conf->sink)
		return conf->rx_bufs ? (uint32_t)conf->rx_bufs
				     : sink_window(ping_rx_buf_bytes(conf));
	/* 4: an echo sends a message back from its receive buffer, so its credit comes with the
	 * following answer. */
	return ping_rx_buf_bytes(conf) > PAGE_LINK_BYTES ? 4 : PING_WINDOW;
}

double ping_rate(const struct ping_conf *conf)
{
	return conf->interval_ns ? 1e9 / (double)conf->interval_ns : (double)conf->run.rate;
}

/* The deadline for answers has passed. */
static void on_deadline(struct plx_timer *timer, void *arg)
{
	struct client *client = arg;

	if (client->conf->run.rate)
		client->outcome->lost = client->sent - client->answered;
	client_stop(client);
}

static void on_watch(struct plx_timer *timer, void *arg)
{
	struct client *client = arg;
	bool moved = client->answered != client->answered_before;

	client->answered_before = client->answered;
	client->silent_s = moved || client->answered == client->sent ? 0 : client->silent_s + 1;
	if (client->silent_s < SILENCE_S)
		return;
	client_fail(client, client->answered ? "the peer has not answered for 10 s"
					     : "the peer has not answered for 10 s; a server with "
					       "--sink never does");
	plx_link_abort(client->link); /* it would not answer a close either */
}

static void on_progress(struct plx_timer *timer, void *arg)
{
	struct client *client = arg;
	const struct plx_hist *hist = &client->outcome->rtt_ns;
	char p50[PLX_HIST_TEXT_BYTES], p99[PLX_HIST_TEXT_BYTES];

	fprintf(stderr, "\r%" PRIu64 " round trips, p50 %s us, p99 %s us   ", hist->count,
		plx_hist_quantile_format(hist, 0.5, PLX_NS_PER_US, p50),
		plx_hist_quantile_format(hist, 0.99, PLX_NS_PER_US, p99));
}

static int prepare(struct client *client)
{
	const struct ping_conf *conf = client->conf;
	struct plx_pool_attr attr = {
		.name = "ping messages",
		.object_count = TX_BUFS,
		.node = plx_lcore_node(plx_lcore_id()),
		.owner = plx_lcore_id(),
	};
	int rc = plx_hist_init(&client->outcome->rtt_ns, HIGHEST_NS, DIGITS);

	if (rc == 0)
		rc = plx_hist_init(&client->outcome->service_ns, HIGHEST_NS, DIGITS);
	if (rc)
		return plx_fail(ENOMEM, "out of memory");
	client->payload = malloc(conf->size_bytes + 1);
	client->flights = calloc(IN_FLIGHT_MAX, sizeof(*client->flights));
	if (!client->payload || !client->flights)
		return plx_fail(ENOMEM, "out of memory");
	ping_fill(client->payload, conf->size_bytes, 0);
	memset(client->flights, 0, IN_FLIGHT_MAX * sizeof(*client->flights));
	if (conf->size_bytes > PING_COPY_MAX)
		return plx_buf_pool_create(&attr, conf->size_bytes, &client->pool);
	return 0;
}

/* Compute the times of the measured part. */
static void sum_up(struct client *client)
{
	struct ping_outcome *outcome = client->outcome;

	if (!client->last_tsc)
		return;
	outcome->elapsed_ns = plx_tsc_to_ns(client->last_tsc - client->first_tsc);
	outcome->scheduled_ns = plx_tsc_to_ns(client->last_intended - client->first_tsc);
	outcome->sending_ns = plx_tsc_to_ns(client->last_sent - client->first_tsc);
}

static int run(struct client *client)
{
	const struct ping_conf *conf = client->conf;
	struct plx_link_attr attr = {
		.events = &client_events,
		.user = client,
		.rx_buf_bytes = ping_rx_buf_bytes(conf),
		.rx_buf_count = ping_rx_buf_count(conf),
		.close_timeout_ns = PING_CLOSE_NS,
		.protocol = PLX_PROTOCOL_ECHO,
	};
	struct plx_poller *sender = NULL;
	int rc = plx_link_connect(conf->connect, &attr, &client->link);

	if (rc)
		return rc;
	plx_timer_init(&client->deadline, on_deadline, client);
	plx_timer_init(&client->progress, on_progress, client);
	plx_timer_init(&client->watch, on_watch, client);
	plx_timer_set_lax(&client->deadline, true);
	plx_timer_set_lax(&client->progress, true);
	plx_timer_set_lax(&client->watch, true);
	if (conf->run.rate) {
		plx_schedule_init(&client->schedule, (enum plx_arrival)conf->run.arrival,
				  ping_rate(conf), conf->run.seed, plx_clock_info_read()->hz);
		rc = plx_poller_add("open loop", open_loop_poll, client, &sender);
		if (rc)
			return rc;
		plx_poller_set_arm(sender, open_loop_arm);
	}
	plx_loop_run();
	plx_timer_stop(&client->deadline);
	plx_timer_stop(&client->watch);
	if (plx_timer_running(&client->progress))
		fputc('\n', stderr);
	plx_timer_stop(&client->progress);
	plx_poller_remove(sender);
	client->signalled = !client->stopped && !client->failed;
	client->stopped = true;
	sum_up(client);
	return 0;
}

/* The first cause counts, whatever fails after it. */
static int end(struct client *client)
{
	struct ping_outcome *outcome = client->outcome;

	if ((client->failed || client->signalled) && client->conf->run.rate &&
	    outcome->rtt_ns.count)
		outcome->lost = client->sent - client->answered;
	return ping_end(outcome, outcome->rtt_ns.count, client->failed ? client->error : NULL,
			client->signalled);
}

int ping_run(const struct ping_conf *conf, struct ping_outcome *outcome)
{
	struct client client = {.conf = conf, .outcome = outcome, .warmup = conf->warmup};
	int rc = prepare(&client);

	if (rc == 0) {
		ping_look_for_pollers(outcome);
		rc = run(&client);
	}
	plx_fabric_drain(PING_CLOSE_NS); /* in order, if the peer agrees */
	ping_abort(client.link);
	if (rc == 0)
		rc = end(&client);
	plx_pool_destroy(client.pool);
	free(client.payload);
	free(client.flights);
	return rc;
}
