/* SPDX-License-Identifier: BSD-3-Clause */
/* The measuring side's messages: sending them, and its link's callbacks. Stamps are raw TSC reads,
 * immediately before the send and first thing in the receive callback; the loop's cached time is
 * older than the provider's work. Closed loop: one message in flight, and the next when it is back.
 * open_loop.c has the schedule of the open loop. */
#include "client.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void client_fail(struct client *client, const char *text)
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
	return seq >= client->warmup;
}

/* Whether sending is over. */
bool client_is_enough(const struct client *client, uint64_t now_tsc)
{
	if (client->conf->run.count)
		return client->sent >= client->warmup + client->conf->run.count;
	return client->stop_tsc && now_tsc >= client->stop_tsc;
}

static int send_by_reference(struct client *client)
{
	struct plx_buf *buf = plx_buf_get(client->pool);

	if (!buf)
		return -EAGAIN;

	uint8_t *data = plx_buf_append(buf, (uint32_t)client->conf->size_bytes);

	if (client->conf->verify)
		ping_fill(data, client->conf->size_bytes, client->sent);

	int rc = plx_link_send_buf(client->link, buf, NULL, NULL);

	if (rc)
		plx_buf_unref(buf);
	return rc;
}

/* In an open loop, the rate limits it. */
static void limit_warmup(struct client *client, uint64_t now_tsc)
{
	if (client->conf->warmup_given || client->conf->run.rate)
		return;
	if (client->sent == 0)
		client->warm_tsc = now_tsc + plx_measure_tsc(PING_WARMUP_NS);
	if (now_tsc >= client->warm_tsc)
		client->warmup = client->sent;
}

/* Send the next message. intended: 0 in a closed loop. Return: 0; -EAGAIN; other: failed. */
int client_send_next(struct client *client, uint64_t intended)
{
	struct flight *flight = &client->flights[client->sent % IN_FLIGHT_MAX];
	int rc;

	if (client->conf->size_bytes > PING_COPY_MAX) {
		flight->sent = plx_tsc();
		rc = send_by_reference(client);
	} else {
		if (client->conf->verify)
			ping_fill(client->payload, client->conf->size_bytes, client->sent);
		flight->sent = plx_tsc();
		rc = plx_link_send(client->link, client->payload, client->conf->size_bytes);
	}
	if (plx_unlikely(rc)) {
		if (rc != -EAGAIN && rc != -ENOTCONN) /* which on_close reports, with the reason */
			client_fail(client, plx_error());
		client->outcome->again += !client->blocked;
		client->blocked = true;
		return rc;
	}
	client->blocked = false;
	flight->intended = intended ? intended : flight->sent;
	client->last_intended = flight->intended;
	client->last_sent = flight->sent;
	if (plx_unlikely(client->sent < client->warmup))
		limit_warmup(client, flight->sent);
	if (plx_unlikely(client->sent == client->warmup)) {
		client->first_tsc = flight->intended;
		client->stop_tsc = flight->intended +
				   plx_measure_tsc(client->conf->run.duration_ns);
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
	ping_fill(client->payload, size, client->answered);
	return memcmp(client->payload, message->data, size) == 0;
}

static void record(struct client *client, const struct flight *flight, uint64_t now_tsc)
{
	plx_hist_record(&client->outcome->rtt_ns, plx_tsc_to_ns(now_tsc - flight->intended));
	if (client->conf->run.rate)
		plx_hist_record(&client->outcome->service_ns,
				plx_tsc_to_ns(now_tsc - flight->sent));
	client->last_tsc = now_tsc;
}

/* The next answer is expected after the smoothed round trip; an adaptive lcore does not sleep past
 * it. */
static void expect_answer(struct client *client, uint64_t trip_tsc)
{
	client->trip_tsc += ((int64_t)trip_tsc - client->trip_tsc) / 8;
	if (client->conf->run.rate == 0)
		plx_loop_expect(plx_loop_now_ns() + plx_tsc_to_ns((uint64_t)client->trip_tsc));
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	uint64_t now_tsc = plx_tsc_after_loads();
	struct client *client = user;
	uint64_t seq = client->answered;
	struct flight flight = client->flights[seq % IN_FLIGHT_MAX];

	if (plx_unlikely(seq == client->sent || !verified(client, message))) {
		char text[128];

		snprintf(text, sizeof(text), "message %" PRIu64 " came back changed", seq);
		client_fail(client, text);
		return;
	}
	client->answered++;
	expect_answer(client, now_tsc - flight.sent);
	if (!client->conf->run.rate && !client_is_enough(client, now_tsc) && !client->stopped)
		client_send_next(client, 0); /* on -EAGAIN, on_writable sends */
	if (is_measured(client, seq))
		record(client, &flight, now_tsc);
	if (plx_unlikely(!client->conf->run.rate && client->answered == client->sent &&
			 !client->stopped && client_is_enough(client, now_tsc)))
		client_stop(client);
}

static void on_open(struct plx_link *link, void *user)
{
	struct client *client = user;

	client->open = true;
	if (ping_meet(client->conf, client->outcome, link) != 0) {
		client_fail(client, plx_error());
		return;
	}
	if (isatty(STDERR_FILENO))
		plx_timer_start_periodic(&client->progress, PLX_NS_PER_S);
	plx_timer_start_periodic(&client->watch, PLX_NS_PER_S);
	client->schedule.next_tsc = (double)plx_tsc();
	if (!client->conf->run.rate)
		client_send_next(client, 0);
}

/* A blocked closed loop continues here; an open one retries each turn anyway. */
static void on_writable(struct plx_link *link, void *user)
{
	struct client *client = user;

	if (!client->conf->run.rate && !client->stopped && client->sent == client->answered)
		client_send_next(client, 0);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct client *client = user;

	client->link = NULL;
	client->open = false;
	if (!client->stopped)
		client_fail(client, reason == PLX_LINK_CLOSED ? "the peer closed the link" : text);
	plx_loop_quit();
}

const struct plx_link_events client_events = {
	.on_open = on_open,
	.on_message = on_message,
	.on_writable = on_writable,
	.on_close = on_close,
};
