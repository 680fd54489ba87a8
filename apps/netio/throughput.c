/* SPDX-License-Identifier: BSD-3-Clause */
/* netio-throughput: messages per second from a NetIO socket to netio-recv, by size. The figures are
 * the receiver's counts by the receiver's clock: a request follows the warm-up on the connection,
 * and another one the last message, so their answers count all messages before them. */
#include "throughput.h"

#include <string.h>

#define BURST       64 /* messages per turn */
#define WARMUP_NS   (50 * PLX_NS_PER_MS)
#define PATIENCE_NS (10 * PLX_NS_PER_S)

static struct netio_send_socket unbuffered;
static struct netio_buffered_send_socket buffered;

static struct run {
	struct netio_context ctx;
	struct netio_timer watch;
	struct plx_load load; /* of the current size */
	unsigned next_size;
	uint8_t *payload;
	bool question_due, question_sent;
	bool done;
	uint64_t steps, steps_seen;
	struct bench_count first;
	int status;
} run;

static void fail(const char *text)
{
	if (run.status == 0)
		fprintf(stderr, "netio-throughput: %s\n", text);
	run.status = 1;
	netio_terminate(&run.ctx.evloop);
}

/* Sending ------------------------------------------------------------------------------------- */

static int send_counted(const void *data, size_t len)
{
	switch (throughput_conf.mode) {
	case MODE_BUFFERED:
		return netio_buffered_send(&buffered, data, len);
	case MODE_UNBUFFERED:
		return netio_send(&unbuffered, data, len);
	default:
		return netio_sendv_ref(&unbuffered, 0, &(struct iovec){(void *)data, len}, 1, 0);
	}
}

static int send_request(netio_tag_t tag, const void *data, size_t len)
{
	struct iovec iov = {(void *)data, len};
	int rc;

	if (throughput_conf.mode != MODE_BUFFERED)
		return netio_sendv_tagged(&unbuffered, tag, &iov, 1);
	rc = netio_buffered_sendv_tagged(&buffered, tag, &iov, 1);
	return rc ? rc : netio_buffered_flush(&buffered);
}

static unsigned send_burst(struct plx_load *load, unsigned most)
{
	unsigned count = 0;
	int rc = NETIO_STATUS_OK;

	while (count < most && plx_likely(rc == NETIO_STATUS_OK)) {
		rc = send_counted(run.payload, load->size_bytes);
		count += rc == NETIO_STATUS_OK;
	}
	load->blocked = rc == NETIO_STATUS_AGAIN;
	if (plx_unlikely(rc != NETIO_STATUS_OK && !load->blocked))
		fail(plx_error());
	return count;
}

static int send_echo(struct plx_load *load, struct plx_flight *flight)
{
	int rc;

	flight->sent_tsc = plx_tsc();
	rc = send_request(BENCH_TAG_ECHO, run.payload, load->size_bytes);
	return rc == NETIO_STATUS_AGAIN ? -EAGAIN : rc;
}

/* If there is no room, available() repeats it. */
static void ask(void)
{
	int rc = send_request(BENCH_TAG_COUNT, "", 0);

	run.question_sent = rc == NETIO_STATUS_OK;
	run.question_due = rc == NETIO_STATUS_AGAIN;
	if (rc != NETIO_STATUS_OK && rc != NETIO_STATUS_AGAIN)
		fail(plx_error());
}

/* Rows ---------------------------------------------------------------------------------------- */

static void begin_size(void);

static void end_size(const struct bench_count *count)
{
	throughput_print(run.load.size_bytes, count, &run.load.rtt_ns);
	plx_load_leave(&run.load);
	plx_load_fini(&run.load);
	begin_size();
}

static void on_warm(struct plx_load *load, uint64_t now_tsc)
{
	run.steps++;
	ask();
}

static void on_end(struct plx_load *load)
{
	run.steps++;
	if (load->failed)
		fail(load->error);
	else if (load->kind == PLX_LOAD_ONE_WAY)
		ask();
	else
		end_size(&(struct bench_count){0});
}

static void begin_size(void)
{
	bool is_ping = throughput_conf.mode == MODE_PING;
	struct plx_load *load = &run.load;

	if (run.next_size == throughput_conf.size_count) {
		run.done = true;
		netio_terminate(&run.ctx.evloop);
		return;
	}
	if (plx_load_init(load, &throughput_conf.run, throughput_conf.sizes[run.next_size++],
			  is_ping) != 0 ||
	    plx_load_enter(load) != 0) {
		fail(plx_error());
		return;
	}
	load->warmup = UINT64_MAX;
	load->warmup_ns = WARMUP_NS;
	load->burst_max = BURST;
	load->send = send_echo;
	load->send_burst = send_burst;
	load->on_warm = is_ping ? NULL : on_warm;
	load->on_end = on_end;
	plx_load_start(load, plx_tsc());
}

static void answered(const struct netio_msg *msg)
{
	uint64_t now_tsc = plx_tsc();
	struct bench_count count;

	if (run.load.kind == PLX_LOAD_CLOSED && run.load.sent > run.load.answered) {
		plx_load_reply(&run.load, plx_load_oldest(&run.load), now_tsc, PLX_REPLY_GOOD);
		return;
	}
	if (msg->len != sizeof(count) || !run.question_sent) {
		fail("the peer answered what was not asked: is it netio-recv?");
		return;
	}
	memcpy(&count, msg->data, sizeof(count));
	run.question_sent = false;
	if (run.load.state == PLX_LOAD_WARM) {
		run.first = count;
		plx_load_begin(&run.load, plx_tsc());
		return;
	}
	count.messages -= run.first.messages;
	count.bytes -= run.first.bytes;
	count.now_ns -= run.first.now_ns;
	end_size(&count);
}

/* Gives up a peer that stopped answering. */
static void on_watch(void *data)
{
	if (run.steps == run.steps_seen)
		fail("nothing came back for 10 s; is the peer netio-recv?");
	run.steps_seen = run.steps;
}

/* Socket callbacks ---------------------------------------------------------------------------- */

static void ended(const char *why)
{
	if (!run.done)
		fail(why);
}

static void available(void)
{
	if (run.question_due)
		ask();
	plx_load_writable(&run.load, plx_tsc());
}

/* The callbacks of a socket, which differ in its type only; `name`_set sets them. */
#define SOCKET_CALLBACKS(name, type)                                                 \
	static void name##_established(struct type *socket)                          \
	{                                                                            \
		begin_size();                                                        \
	}                                                                            \
	static void name##_ended(struct type *socket, enum plx_link_reason reason,   \
				 const char *why)                                    \
	{                                                                            \
		ended(why);                                                          \
	}                                                                            \
	static void name##_available(struct type *socket)                            \
	{                                                                            \
		available();                                                         \
	}                                                                            \
	static void name##_message(struct type *socket, const struct netio_msg *msg) \
	{                                                                            \
		answered(msg);                                                       \
	}                                                                            \
	static void name##_set(struct type *socket)                                  \
	{                                                                            \
		socket->cb_connection_established = name##_established;              \
		socket->cb_connection_refused = name##_ended;                        \
		socket->cb_connection_closed = name##_ended;                         \
		socket->cb_buffers_available = name##_available;                     \
		socket->cb_msg_received = name##_message;                            \
	}

SOCKET_CALLBACKS(unbuffered, netio_send_socket)
SOCKET_CALLBACKS(buffered, netio_buffered_send_socket)

static int connect_socket(void)
{
	struct netio_buffered_attr attr = {
		.page_bytes = (uint32_t)throughput_conf.page_bytes,
		.page_count = (uint32_t)throughput_conf.page_count,
	};
	char host[PLX_ADDRESS_MAX];
	unsigned port;
	int rc = plx_address_split("--connect", throughput_conf.connect, host, &port);

	if (rc)
		return rc;
	if (throughput_conf.mode == MODE_BUFFERED) {
		rc = netio_buffered_send_socket_init(&run.ctx.evloop, &buffered, &attr);
		buffered_set(&buffered);
		return rc ? rc : netio_buffered_connect(&buffered, host, port);
	}
	rc = netio_send_socket_init(&run.ctx.evloop, &unbuffered, NULL);
	unbuffered_set(&unbuffered);
	return rc ? rc : netio_connect(&unbuffered, host, port);
}

static int set_up(void)
{
	if (netio_init(&run.ctx) != 0)
		return -1;
	netio_timer_init(&run.ctx.evloop, &run.watch);
	run.watch.cb = on_watch;
	netio_timer_start_ns(&run.watch, PATIENCE_NS + throughput_conf.run.duration_ns);
	return connect_socket();
}

static int measure(void)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < throughput_conf.size_count; i++)
		most = throughput_conf.sizes[i] > most ? throughput_conf.sizes[i] : most;
	/* Memory that every provider can send from. */
	run.payload = plx_mem_alloc(most + 1, 0, PLX_NODE_ANY, NULL);
	if (!run.payload || set_up() != 0) {
		fail(plx_error());
	} else {
		netio_run(&run.ctx.evloop);
		run.status |= !run.done;
	}
	if (throughput_write() != 0)
		fail(plx_error());
	plx_load_leave(&run.load);
	plx_load_fini(&run.load);
	netio_fini(&run.ctx);
	plx_mem_free(run.payload);
	return run.status;
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &throughput_app);

	return status == PLX_APP_RUN ? plx_app_finish(&throughput_app, measure()) : status;
}
