/* SPDX-License-Identifier: BSD-3-Clause */
/* The measuring side. Stamps are raw TSC reads, immediately before the send and first thing in the
 * receive callback: the turn's own clock is older than the provider's work.
 * Closed loop: one message out, the next when it is back. The open loop's schedule is in
 * open_loop.c. */
#include "client.h"

#include "../echo/service.h"
#include "plx_app.h"
#include "plx_lcore.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HIGHEST_NS (10 * PLX_NS_PER_S) /* longest round trip that keeps its digits */
#define DIGITS     3
#define CLOSE_NS   PLX_NS_PER_S /* for the peer to agree to the end */
#define COPY_MAX   1024         /* longer messages are sent by reference */
/* Receive buffers longer than this: fewer, so that they stay in the cache. */
#define PAGE_LINK_BYTES 65536
#define TX_BUFS         16
#define SILENCE_S       10 /* without any answer: the peer is given up */

uint32_t ping_rx_buf_bytes(const struct ping_conf *conf)
{
	uint64_t fits = (conf->size_bytes + PLX_LINK_OVERHEAD + 63) & ~UINT64_C(63);

	if (conf->rx_buf_bytes)
		return (uint32_t)conf->rx_buf_bytes;
	if (fits > 16 << 20)
		fits = 16 << 20;
	return fits < 4096 ? 4096 : (uint32_t)fits;
}

uint32_t ping_rx_buf_count(const struct ping_conf *conf)
{
	/* 4: an echo sends a message back from its receive buffer, so that its credit comes with
	 * the answer after that one. */
	return ping_rx_buf_bytes(conf) > PAGE_LINK_BYTES ? 4 : ECHO_WINDOW;
}

/* Payload: every byte depends on the message's number and its place. */
static void fill(uint8_t *out, uint64_t size, uint64_t seq)
{
	for (uint64_t i = 0; i < size; i++)
		out[i] = (uint8_t)((seq + i) * 167 + (i >> 8));
}

static void fail(struct client *client, const char *text)
{
	if (!client->failed)
		snprintf(client->error, sizeof(client->error), "%s", text);
	client->failed = true;
	plx_loop_quit();
}

void client_stop(struct client *client)
{
	client->stopped = true;
	if (client->open && plx_link_close(client->link) == 0)
		return; /* on_close ends the loop */
	plx_loop_quit();
}

static bool is_measured(const struct client *client, uint64_t seq)
{
	return seq >= client->conf->warmup;
}

/* Whether no further message shall leave. */
bool client_is_enough(const struct client *client, uint64_t now_tsc)
{
	if (client->conf->count)
		return client->sent >= client->conf->warmup + client->conf->count;
	return client->stop_tsc && now_tsc >= client->stop_tsc;
}

static int send_by_reference(struct client *client)
{
	struct plx_buf *buf = plx_buf_get(client->pool);

	if (!buf)
		return -EAGAIN;

	uint8_t *data = plx_buf_append(buf, (uint32_t)client->conf->size_bytes);

	if (client->conf->verify)
		fill(data, client->conf->size_bytes, client->sent);

	int rc = plx_link_send_buf(client->link, buf, NULL, NULL);

	if (rc)
		plx_buf_unref(buf);
	return rc;
}

/* Send the next message. intended: 0 in a closed loop. Return: 0; -EAGAIN; other: failed. */
int client_send_next(struct client *client, uint64_t intended)
{
	struct flight *flight = &client->flights[client->sent % IN_FLIGHT_MAX];
	int rc;

	if (client->conf->size_bytes > COPY_MAX) {
		flight->sent = plx_tsc();
		rc = send_by_reference(client);
	} else {
		if (client->conf->verify)
			fill(client->payload, client->conf->size_bytes, client->sent);
		flight->sent = plx_tsc();
		rc = plx_link_send(client->link, client->payload, client->conf->size_bytes);
	}
	if (plx_unlikely(rc)) {
		if (rc != -EAGAIN)
			fail(client, plx_error());
		client->outcome->again += !client->blocked;
		client->blocked = true;
		return rc;
	}
	client->blocked = false;
	flight->intended = intended ? intended : flight->sent;
	client->last_intended = flight->intended;
	client->last_sent = flight->sent;
	if (plx_unlikely(client->sent == client->conf->warmup)) {
		client->first_tsc = flight->intended;
		client->stop_tsc = flight->intended + (uint64_t)((double)client->conf->duration_ns /
								 1e9 * plx_clock_info()->hz);
	}
	client->sent++;
	return 0;
}

static bool verified(struct client *client, const struct plx_buf *message)
{
	uint64_t size = client->conf->size_bytes;

	if (message->len != size)
		return false;
	if (!client->conf->verify)
		return true;
	fill(client->payload, size, client->answered);
	return memcmp(client->payload, message->data, size) == 0;
}

static void record(struct client *client, const struct flight *flight, uint64_t now_tsc)
{
	plx_hist_record(&client->outcome->rtt_ns, plx_tsc_to_ns(now_tsc - flight->intended));
	if (client->conf->rate)
		plx_hist_record(&client->outcome->service_ns,
				plx_tsc_to_ns(now_tsc - flight->sent));
	client->last_tsc = now_tsc;
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	uint64_t now_tsc = plx_tsc();
	struct client *client = user;
	uint64_t seq = client->answered;
	struct flight flight = client->flights[seq % IN_FLIGHT_MAX];

	if (plx_unlikely(seq == client->sent || !verified(client, message))) {
		char text[128];

		snprintf(text, sizeof(text), "message %" PRIu64 " came back changed", seq);
		fail(client, text);
		return;
	}
	client->answered++;
	if (!client->conf->rate && !client_is_enough(client, now_tsc) && !client->stopped)
		client_send_next(client, 0); /* on -EAGAIN, on_writable does */
	if (is_measured(client, seq))
		record(client, &flight, now_tsc);
	if (plx_unlikely(!client->conf->rate && client->answered == client->sent &&
			 !client->stopped && client_is_enough(client, now_tsc)))
		client_stop(client);
}

/* The time after which nothing more is waited for. */
static void on_deadline(struct plx_timer *timer, void *arg)
{
	struct client *client = arg;

	if (client->conf->rate)
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
	fail(client, "the peer has not answered for 10 s");
	plx_link_abort(client->link); /* it would not answer a close either */
}

static void on_progress(struct plx_timer *timer, void *arg)
{
	struct client *client = arg;
	const struct plx_hist *hist = &client->outcome->rtt_ns;

	fprintf(stderr, "\r%" PRIu64 " round trips, p50 %.2f us, p99 %.2f us   ", hist->count,
		(double)plx_hist_quantile(hist, 0.5) / 1e3,
		(double)plx_hist_quantile(hist, 0.99) / 1e3);
}

static void on_open(struct plx_link *link, void *user)
{
	struct client *client = user;

	client->open = true;
	snprintf(client->outcome->provider, sizeof(client->outcome->provider), "%s",
		 plx_link_fi_provider(link));
	if (client->conf->size_bytes > plx_link_message_max(link)) {
		char text[128];

		snprintf(text, sizeof(text),
			 "--size %" PRIu64 ": the peer accepts at most %" PRIu64,
			 client->conf->size_bytes, plx_link_message_max(link));
		fail(client, text);
		return;
	}
	if (isatty(STDERR_FILENO))
		plx_timer_start_periodic(&client->progress, PLX_NS_PER_S);
	plx_timer_start_periodic(&client->watch, PLX_NS_PER_S);
	client->next_tsc = (double)plx_tsc();
	if (!client->conf->rate)
		client_send_next(client, 0);
}

/* A closed loop that found no room goes on; an open one tries again each turn anyway. */
static void on_writable(struct plx_link *link, void *user)
{
	struct client *client = user;

	if (!client->conf->rate && !client->stopped && client->sent == client->answered)
		client_send_next(client, 0);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct client *client = user;

	client->link = NULL;
	client->open = false;
	if (!client->stopped)
		fail(client, reason == PLX_LINK_CLOSED ? "the peer closed the link" : text);
	plx_loop_quit();
}

static const struct plx_link_events events = {
	.on_open = on_open,
	.on_message = on_message,
	.on_writable = on_writable,
	.on_close = on_close,
};

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
	fill(client->payload, conf->size_bytes, 0);
	memset(client->flights, 0, IN_FLIGHT_MAX * sizeof(*client->flights));
	if (conf->size_bytes > COPY_MAX)
		return plx_buf_pool_create(&attr, conf->size_bytes, &client->pool);
	return 0;
}

static int run(struct client *client)
{
	const struct ping_conf *conf = client->conf;
	struct plx_link_attr attr = {
		.events = &events,
		.user = client,
		.rx_buf_bytes = ping_rx_buf_bytes(conf),
		.rx_buf_count = ping_rx_buf_count(conf),
	};
	struct plx_poller *sender = NULL;
	int rc = plx_link_connect(conf->connect, &attr, &client->link);

	if (rc)
		return rc;
	plx_timer_init(&client->deadline, on_deadline, client);
	plx_timer_init(&client->progress, on_progress, client);
	plx_timer_init(&client->watch, on_watch, client);
	if (conf->rate) {
		client->gap_tsc = plx_clock_info()->hz / (double)conf->rate;
		rc = plx_poller_add("open loop", open_loop_poll, client, 0, &sender);
		if (rc)
			return rc;
	}
	plx_loop_run();
	plx_timer_stop(&client->deadline);
	plx_timer_stop(&client->watch);
	if (plx_timer_running(&client->progress))
		fputc('\n', stderr);
	plx_timer_stop(&client->progress);
	plx_poller_remove(sender);
	client->stopped = true; /* also by a signal */
	if (client->last_tsc) {
		client->outcome->elapsed_ns = plx_tsc_to_ns(client->last_tsc - client->first_tsc);
		client->outcome->scheduled_ns = plx_tsc_to_ns(client->last_intended -
							      client->first_tsc);
		client->outcome->sending_ns = plx_tsc_to_ns(client->last_sent - client->first_tsc);
	}
	return 0;
}

int ping_run(const struct ping_conf *conf, struct ping_outcome *outcome)
{
	struct client client = {.conf = conf, .outcome = outcome, .random = conf->seed};
	int rc = prepare(&client);

	if (rc == 0)
		rc = run(&client);
	/* In order, where the peer agrees; whatever is left then may not call a client that is
	 * gone. */
	if (plx_fabric_drain(CLOSE_NS) != 0 && client.link)
		plx_link_abort(client.link);
	for (int i = 0; i < 1000 && plx_fabric_open_count(); i++)
		plx_loop_turn();
	if (rc == 0 && client.failed) /* the first cause, whatever went wrong after it */
		rc = plx_fail(EIO, "%s", client.error);
	plx_pool_destroy(client.pool);
	free(client.payload);
	free(client.flights);
	return rc;
}
