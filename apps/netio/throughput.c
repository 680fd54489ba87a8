/* SPDX-License-Identifier: BSD-3-Clause */
/* netio-throughput: messages per second from a NetIO socket to netio-recv, by size. The figures are
 * the receiver's counts by the receiver's clock: a request follows the warm-up on the connection,
 * and another one the last message, so their answers count all messages before them. */
#include "throughput.h"

#include <string.h>

#define BURST       64 /* messages per turn */
#define WARMUP_NS   (50 * PLX_NS_PER_MS)
#define PATIENCE_NS (10 * PLX_NS_PER_S)

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

static unsigned send_burst(struct plx_load *load, unsigned most)
{
	unsigned count = 0;
	int rc = NETIO_STATUS_OK;

	while (count < most && plx_likely(rc == NETIO_STATUS_OK)) {
		rc = throughput_send(run.payload, load->size_bytes);
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
	rc = throughput_ask(BENCH_TAG_ECHO, run.payload, load->size_bytes);
	return rc == NETIO_STATUS_AGAIN ? -EAGAIN : rc;
}

/* If there is no room, throughput_available repeats it. */
static void ask(void)
{
	int rc = throughput_ask(BENCH_TAG_COUNT, "", 0);

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

static void on_count(const struct bench_count *count)
{
	struct bench_count sum;

	run.question_sent = false;
	if (run.load.state == PLX_LOAD_WARM) {
		run.first = *count;
		plx_load_begin(&run.load, plx_tsc());
		return;
	}
	sum = (struct bench_count){
		.messages = count->messages - run.first.messages,
		.bytes = count->bytes - run.first.bytes,
		.now_ns = count->now_ns - run.first.now_ns,
	};
	end_size(&sum);
}

void throughput_answered(const struct netio_msg *msg)
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
	on_count(&count);
}

/* Gives up a peer that stopped answering. */
static void on_watch(void *data)
{
	if (run.steps == run.steps_seen)
		fail("nothing came back for 10 s; is the peer netio-recv?");
	run.steps_seen = run.steps;
}

/* Socket callbacks ---------------------------------------------------------------------------- */

void throughput_established(void)
{
	begin_size();
}

void throughput_ended(const char *why)
{
	if (!run.done)
		fail(why);
}

void throughput_available(void)
{
	if (run.question_due)
		ask();
	plx_load_writable(&run.load, plx_tsc());
}

static int set_up(void)
{
	if (netio_init(&run.ctx) != 0)
		return -1;
	netio_timer_init(&run.ctx.evloop, &run.watch);
	run.watch.cb = on_watch;
	netio_timer_start_ns(&run.watch, PATIENCE_NS + throughput_conf.run.duration_ns);
	return throughput_connect(&run.ctx.evloop);
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
