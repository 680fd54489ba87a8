/* SPDX-License-Identifier: BSD-3-Clause */
/* The link of a measuring client: it opens, carries the load, and closes after the last message. */
#include "ping.h"

#include <inttypes.h>
#include <stdlib.h>

/* For the peer to agree to a close. With --self the run ends within a second, also if the server is
 * stopped and heartbeats are off. */
#define CLOSE_NS      (500 * PLX_NS_PER_MS)
#define DRAIN_MORE_NS (100 * PLX_NS_PER_MS) /* the link's own time limit has the better text */
#define SILENCE_NS    (PLX_LOAD_SILENCE_S * PLX_NS_PER_S)
/* With longer receive buffers use fewer, so that they stay in the cache. */
#define PAGE_LINK_BYTES 65536
#define TX_BUFS         16
/* For a server that only drops: few large buffers, so that they stay in a cache. */
#define SINK_BYTES (UINT32_C(8) << 20)
#define SINK_MIN   4
#define SINK_MAX   128

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

void ping_fill(uint8_t *out, uint64_t size, uint64_t seq)
{
	for (uint64_t i = 0; i < size; i++)
		out[i] = (uint8_t)((seq + i) * 167 + (i >> 8));
}

int ping_load_init(struct plx_load *load, const struct ping_conf *conf, uint64_t in_flight_max)
{
	int rc = plx_load_init(load, &conf->run, conf->size_bytes, in_flight_max);

	load->burst_max = (unsigned)conf->burst;
	load->has_gaps = conf->verify; /* contents are compared between round trips */
	if (conf->warmup_given) {
		load->warmup = conf->warmup;
		load->warmup_ns = 0;
	}
	plx_load_look_for_pollers(load);
	return rc;
}

/* The link ----------------------------------------------------------------------------------- */

static void on_open(struct plx_link *link, void *user)
{
	struct ping_client *client = user;
	char text[128];

	client->is_open = true;
	plx_load_note_provider(&client->load, plx_link_fi_provider(link), plx_link_choice(link));
	if (client->conf->size_bytes <= plx_link_message_max(link)) {
		plx_load_start(&client->load, plx_tsc());
		return;
	}
	snprintf(text, sizeof(text), "--size %" PRIu64 ": the peer accepts at most %" PRIu64,
		 client->conf->size_bytes, plx_link_message_max(link));
	plx_load_fail(&client->load, text);
}

static void on_writable(struct plx_link *link, void *user)
{
	struct ping_client *client = user;

	plx_load_writable(&client->load, plx_tsc());
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	uint64_t now_tsc = plx_tsc();
	struct ping_client *client = user;

	if (client->conf->one_way)
		ping_one_way_closed(client, reason, now_tsc);
	if (client->load.state != PLX_LOAD_ENDED)
		plx_load_fail(&client->load,
			      reason == PLX_LINK_CLOSED ? "the peer closed the link" : text);
	else if (client->conf->one_way && client->is_open && reason != PLX_LINK_CLOSED)
		plx_load_fail(&client->load, text);
	client->link = NULL;
	client->is_open = false;
	plx_loop_quit();
}

/* After a good end the link closes in order, and then the loop ends. */
static void on_end(struct plx_load *load)
{
	struct ping_client *client = (struct ping_client *)load;

	if (load->failed || !client->is_open || plx_link_close(client->link) != 0)
		plx_loop_quit();
}

static void on_silence(struct plx_load *load)
{
	struct ping_client *client = (struct ping_client *)load;

	plx_load_fail(load, client->conf->one_way ? "the peer has taken no message for 10 s"
			    : load->answered      ? "the peer has not answered for 10 s"
						  : "the peer has not answered for 10 s; a server "
						    "with --sink never does");
	plx_link_abort(client->link); /* it would not answer a close either */
}

void ping_settle(void)
{
	for (int i = 0; i < 1000 && plx_fabric_open_count(); i++)
		plx_loop_turn();
}

/* The run ------------------------------------------------------------------------------------ */

static int prepare(struct ping_client *client)
{
	uint64_t size = client->conf->size_bytes;
	struct plx_pool_attr attr = {
		.name = "ping messages",
		.object_count = client->conf->one_way ? 1 : TX_BUFS,
		.node = plx_lcore_node(plx_lcore_id()),
		.owner = plx_lcore_id(),
	};

	client->payload = malloc(size + 1);
	if (!client->payload)
		return plx_fail(ENOMEM, "out of memory");
	ping_fill(client->payload, size, 0);
	if (size <= PING_COPY_MAX)
		return 0;
	if (plx_buf_pool_create(&attr, size, &client->pool) != 0)
		return -ENOMEM;
	if (!client->conf->one_way)
		return 0;
	client->message = plx_buf_get(client->pool);
	if (!client->message)
		return plx_fail(ENOMEM, "out of memory");
	memcpy(plx_buf_append(client->message, (uint32_t)size), client->payload, size);
	return 0;
}

/* One way, the peer first takes a whole window. */
static uint64_t close_ns(const struct ping_conf *conf)
{
	return conf->one_way && !conf->self ? SILENCE_NS : CLOSE_NS;
}

static int run(struct ping_client *client)
{
	static struct plx_link_events events = {
		.on_open = on_open, .on_writable = on_writable, .on_close = on_close};
	const struct ping_conf *conf = client->conf;
	struct plx_link_attr attr = {
		.events = &events,
		.user = client,
		.rx_buf_bytes = conf->one_way ? 0 : ping_rx_buf_bytes(conf),
		.rx_buf_count = conf->one_way ? 0 : ping_rx_buf_count(conf),
		.close_timeout_ns = close_ns(conf),
		.protocol = PLX_PROTOCOL_ECHO,
	};
	int rc;

	client->load.on_end = on_end;
	client->load.on_silence = on_silence;
	ping_set_load(client, &events);
	rc = prepare(client);
	rc = rc ? rc : plx_link_connect(conf->connect, &attr, &client->link);
	return rc ? rc : plx_load_run(&client->load);
}

static void say_more(const struct plx_load *load)
{
	plx_app_say_idle(plx_lcore_id());
	if (load->again)
		plx_app_say("%" PRIu64 " sends found no room and waited", load->again);
	if (((const struct ping_client *)load)->conf->explain)
		ping_explain(load);
}

int ping_measure(const struct ping_conf *conf)
{
	static struct ping_client client;
	uint64_t in_flight_max = conf->one_way ? 0 : conf->run.rate ? PLX_LOAD_OPEN_MAX : 1;
	int rc = ping_load_init(&client.load, conf, in_flight_max), drained, status;

	client.conf = conf;
	rc = rc ? rc : run(&client);
	drained = plx_fabric_drain(close_ns(conf) + DRAIN_MORE_NS);
	if (rc == 0 && drained != 0 && conf->one_way)
		plx_load_fail(&client.load, plx_error());
	if (client.link)
		plx_link_abort(client.link);
	ping_settle();
	status = rc ? plx_app_fail(&ping_app)
		    : plx_load_report(&client.load, &ping_app, conf->one_way ? NULL : say_more);
	plx_buf_unref(client.message);
	plx_pool_destroy(client.pool);
	free(client.payload);
	plx_load_fini(&client.load);
	return status;
}
