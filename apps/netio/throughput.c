/* SPDX-License-Identifier: BSD-3-Clause */
/* netio-throughput: messages per second from a NetIO socket to netio-recv, by size. The figures are
 * the receiver's counts by the receiver's clock. */
#include "throughput.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BURST       64 /* messages per turn */
#define WARMUP_NS   (50 * PLX_NS_PER_MS)
#define PATIENCE_NS (10 * PLX_NS_PER_S)

/* What the run waits for. */
enum step { STEP_CONNECT, STEP_WARMUP, STEP_FIRST_COUNT, STEP_SEND, STEP_LAST_COUNT, STEP_DONE };

static struct run {
	struct netio_context ctx;
	struct plx_poller *poller;
	struct netio_timer step_timer, watch;
	enum step step;
	unsigned next_size;
	uint64_t size;
	uint8_t *payload;
	bool blocked;      /* no room until a callback reports some */
	bool question_due; /* the next request for the count is due */
	bool in_flight;    /* an echo */
	uint64_t steps, steps_seen;
	uint64_t sent_ns; /* of the echo in flight */
	struct bench_count first;
	struct throughput_row row;
	struct plx_hist rtt_ns;
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

/* Return: whether it was sent. */
static bool took(int rc)
{
	if (plx_likely(rc == NETIO_STATUS_OK))
		return true;
	if (rc == NETIO_STATUS_AGAIN)
		run.blocked = true;
	else
		fail(plx_error());
	return false;
}

/* The request follows the messages on the connection, so its answer counts all of them. */
static int ask(void)
{
	if (!took(throughput_ask(BENCH_TAG_COUNT, "", 0)))
		return 0;
	run.question_due = false;
	return 1;
}

static int ping(void)
{
	if (run.in_flight)
		return 0;
	run.sent_ns = plx_now_ns();
	if (!took(throughput_ask(BENCH_TAG_ECHO, run.payload, run.size)))
		return 0;
	run.in_flight = true;
	return 1;
}

static int send_some(void *arg, uint64_t now_ns)
{
	int sent = 0;

	if (run.blocked || run.step == STEP_CONNECT || run.step == STEP_DONE)
		return 0;
	if (run.question_due)
		return ask();
	if (run.step != STEP_WARMUP && run.step != STEP_SEND)
		return 0;
	if (throughput_conf.mode == MODE_PING)
		return ping();
	while (sent < BURST && took(throughput_send(run.payload, run.size)))
		sent++;
	return sent;
}

/* The link reports room and answers, and timers advance steps: both wake the lcore. */
static int arm(void *arg, struct plx_sleep *sleep)
{
	bool may_send = run.question_due || run.step == STEP_WARMUP || run.step == STEP_SEND;
	bool waits = run.blocked || (throughput_conf.mode == MODE_PING && run.in_flight);

	return may_send && !waits ? -EAGAIN : 0;
}

/* Steps --------------------------------------------------------------------------------------- */

static void go_to(enum step step)
{
	run.step = step;
	run.steps++;
	run.question_due = step == STEP_FIRST_COUNT || step == STEP_LAST_COUNT;
	if (step == STEP_WARMUP)
		netio_timer_start_ns(&run.step_timer, WARMUP_NS);
	else if (step == STEP_SEND)
		netio_timer_start_ns(&run.step_timer, throughput_conf.duration_ns);
}

static void begin_size(void)
{
	if (run.next_size == throughput_conf.size_count) {
		go_to(STEP_DONE);
		netio_terminate(&run.ctx.evloop);
		return;
	}
	run.size = throughput_conf.sizes[run.next_size++];
	plx_hist_reset(&run.rtt_ns);
	go_to(STEP_WARMUP);
}

static void on_step_over(void *data)
{
	netio_timer_stop(&run.step_timer);
	if (run.step == STEP_WARMUP)
		go_to(STEP_FIRST_COUNT);
	else if (run.step == STEP_SEND)
		go_to(STEP_LAST_COUNT);
}

static void on_count(const struct bench_count *count)
{
	if (run.step == STEP_FIRST_COUNT) {
		run.first = *count;
		go_to(STEP_SEND);
		return;
	}
	run.row = (struct throughput_row){
		.size_bytes = run.size,
		.messages = count->messages - run.first.messages,
		.bytes = count->bytes - run.first.bytes,
		.elapsed_ns = count->now_ns - run.first.now_ns,
		.rtt_ns = &run.rtt_ns,
	};
	throughput_print(&run.row);
	begin_size();
}

void throughput_answered(const struct netio_msg *msg)
{
	struct bench_count count;

	if (run.in_flight && throughput_conf.mode == MODE_PING) {
		run.in_flight = false;
		if (run.step == STEP_SEND)
			plx_hist_record(&run.rtt_ns, plx_now_ns() - run.sent_ns);
		if (run.step == STEP_SEND || run.step == STEP_WARMUP)
			ping();
		return;
	}
	if (msg->len != sizeof(count) || run.question_due ||
	    (run.step != STEP_FIRST_COUNT && run.step != STEP_LAST_COUNT)) {
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

void throughput_refused(const char *why)
{
	fail(why);
}

void throughput_closed(const char *why)
{
	if (run.step != STEP_DONE)
		fail(why);
}

void throughput_available(void)
{
	run.blocked = false;
}

static int set_up(void)
{
	if (netio_init(&run.ctx) != 0)
		return -1;
	netio_timer_init(&run.ctx.evloop, &run.step_timer);
	run.step_timer.cb = on_step_over;
	netio_timer_init(&run.ctx.evloop, &run.watch);
	run.watch.cb = on_watch;
	netio_timer_start_ns(&run.watch, PATIENCE_NS + throughput_conf.duration_ns);
	if (plx_poller_add("send", send_some, NULL, &run.poller) != 0)
		return -1;
	plx_poller_set_arm(run.poller, arm);
	return throughput_connect(&run.ctx.evloop);
}

static int measure(void)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < throughput_conf.size_count; i++)
		most = throughput_conf.sizes[i] > most ? throughput_conf.sizes[i] : most;
	/* Memory that every provider can send from. */
	run.payload = plx_mem_alloc(most + 1, 0, PLX_NODE_ANY, NULL);
	if (throughput_open() != 0 || !run.payload ||
	    plx_hist_init(&run.rtt_ns, 10 * PLX_NS_PER_S, 3) != 0 || set_up() != 0) {
		fprintf(stderr, "netio-throughput: %s\n", plx_error());
		run.status = 1;
	} else {
		netio_run(&run.ctx.evloop);
		if (run.step != STEP_DONE)
			run.status = 1;
	}
	if (throughput_write() != 0) {
		fprintf(stderr, "netio-throughput: %s\n", plx_error());
		run.status = 1;
	}
	netio_fini(&run.ctx);
	plx_hist_fini(&run.rtt_ns);
	plx_mem_free(run.payload);
	return run.status;
}

int main(int argc, char **argv)
{
	int status = plx_app_start(argc, argv, &throughput_app);

	return status == PLX_APP_RUN ? plx_app_finish(&throughput_app, measure()) : status;
}
