/* SPDX-License-Identifier: BSD-3-Clause */
/* Forwarded messages: received on one lcore, passed by reference to another one, which sends them
 * on another link. Four link ends on two lcores:
 *
 *     source -> in | entry lcore | -> message -> | exit lcore | out -> sink
 *
 * Nothing is copied. Buffers, and with them the credit, return to where they came from: the source
 * may have six messages in flight, and sends thousands. */
#include "fabric_link.h"
#include "fixture.h"

#include <stdlib.h>

#define MESSAGES       1000
#define WINDOW         6
#define SIZE_MAX_BYTES 4000

static uint32_t entry, exit_lcore;

/* The entry lcore's. */
static struct plx_link *in;
static _Atomic unsigned in_opened, in_closed, in_errors;

/* The exit lcore's. Messages that cannot be sent yet wait: never more than the window of `in`. */
static struct plx_link *out;
static struct plx_buf *waiting[WINDOW];
static unsigned waiting_count;
static _Atomic unsigned out_opened, out_closed, out_errors, sent;

/* Lcore 0's. */
static struct plx_link *source;
static _Atomic unsigned source_opened, source_closed, sink_closed, received;
static unsigned wrong;
static enum plx_link_reason source_reason, sink_reason;

static uint8_t byte_of(unsigned number, unsigned at)
{
	return (uint8_t)(number * 7 + at);
}

static uint32_t size_of(unsigned number)
{
	return 8 + number * 37 % (SIZE_MAX_BYTES - 8);
}

/* Exit ---------------------------------------------------------------------------------------- */

/* The buffer that came in, referenced by this lcore only. */
static void on_sent(struct plx_link *link, struct plx_buf *buf, int status, void *arg)
{
	out_errors += status != 0 || buf != arg || buf->pool != in->rx_pool ||
		      buf->owner != entry || plx_lcore_id() != exit_lcore;
	sent++;
}

static void send_on(void)
{
	unsigned done = 0;

	while (done < waiting_count &&
	       plx_link_send_buf(out, waiting[done], on_sent, waiting[done]) == 0)
		done++;
	waiting_count -= done;
	memmove(waiting, waiting + done, waiting_count * sizeof(*waiting));
}

static void hand_out(void *arg)
{
	if (waiting_count == WINDOW) {
		out_errors++;
		return;
	}
	waiting[waiting_count++] = arg;
	if (waiting_count == 1)
		send_on();
}

static void on_out_open(struct plx_link *link, void *user)
{
	out_opened++;
}

static void on_out_writable(struct plx_link *link, void *user)
{
	send_on();
}

static void on_out_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
			 void *user)
{
	out_errors += reason != PLX_LINK_CLOSED;
	out_closed++;
}

static const struct plx_link_events out_events = {
	.on_open = on_out_open, .on_writable = on_out_writable, .on_close = on_out_close};

static void connect_out(void *address)
{
	struct plx_link_attr attr = {.events = &out_events};

	out_errors += plx_link_connect(address, &attr, &out) != 0;
}

static void close_out(void *arg)
{
	out_errors += plx_link_close(out) != 0;
}

/* Entry --------------------------------------------------------------------------------------- */

static void on_in_open(struct plx_link *link, void *user)
{
	in = link;
	in_opened++;
}

static void on_in_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	in_errors += plx_lcore_id() != entry ||
		     plx_lcore_send(exit_lcore, hand_out, plx_buf_ref(message)) != 0;
}

static void on_in_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
			void *user)
{
	in_errors += reason != PLX_LINK_CLOSED;
	in_closed++;
}

static const struct plx_link_events in_events = {
	.on_open = on_in_open, .on_message = on_in_message, .on_close = on_in_close};

struct inventory {
	struct plx_link_stats link;
	struct plx_pool_stats pool;
};

static void take_stock(void *arg)
{
	struct inventory *inventory = arg;

	plx_link_stats(in, &inventory->link);
	plx_pool_stats(in->rx_pool, &inventory->pool);
}

static void on_entry(plx_message_fn fn, void *arg)
{
	if (entry == 1)
		worker_call(fn, arg);
	else
		fn(arg);
}

static void on_exit_lcore(plx_message_fn fn, void *arg)
{
	if (exit_lcore == 1)
		worker_call(fn, arg);
	else
		fn(arg);
}

/* Source and sink ----------------------------------------------------------------------------- */

static void on_source_open(struct plx_link *link, void *user)
{
	source_opened++;
}

static void on_source_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
			    void *user)
{
	source_reason = reason;
	source_closed++;
}

static const struct plx_link_events source_events = {.on_open = on_source_open,
						     .on_close = on_source_close};

static void on_sink_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	wrong += message->len != size_of(received);
	for (unsigned i = 0; i < message->len; i++)
		wrong += message->data[i] != byte_of(received, i);
	received++;
}

static void on_sink_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
			  void *user)
{
	sink_reason = reason;
	sink_closed++;
}

static const struct plx_link_events sink_events = {.on_message = on_sink_message,
						   .on_close = on_sink_close};

static uint32_t at_entry(struct plx_listener *listener, const struct sockaddr *peer, void *arg)
{
	return entry;
}

static struct plx_listener *listen_for(const struct plx_link_events *events, bool placed)
{
	struct plx_listen_attr attr = {
		.link = {.events = events, .rx_buf_count = WINDOW},
		.spread = placed ? PLX_SPREAD_CALLBACK : PLX_SPREAD_NONE,
		.place = at_entry,
	};
	struct plx_listener *listener;

	assert_int_equal(plx_link_listen(here("0"), &attr, &listener), 0);
	return listener;
}

static void connect_all(void)
{
	struct plx_listener *to_in = listen_for(&in_events, true);
	struct plx_listener *to_sink = listen_for(&sink_events, false);
	struct plx_link_attr attr = {.events = &source_events};

	on_exit_lcore(connect_out, (void *)plx_listener_address(to_sink));
	assert_true(pump_until(&out_opened, 1, 3000));
	assert_int_equal(plx_link_connect(plx_listener_address(to_in), &attr, &source), 0);
	assert_true(pump_until(&source_opened, 1, 3000));
	assert_true(pump_until(&in_opened, 1, 3000));
}

static void send_number(unsigned number)
{
	uint8_t bytes[SIZE_MAX_BYTES];
	uint32_t size = size_of(number);
	uint64_t limit_ns = plx_now_ns() + 5 * PLX_NS_PER_S;
	int rc;

	for (unsigned i = 0; i < size; i++)
		bytes[i] = byte_of(number, i);
	while ((rc = plx_link_send(source, bytes, size)) == -EAGAIN && plx_now_ns() < limit_ns)
		plx_loop_turn();
	if (rc)
		fail_msg("message %u of %u is stuck: no credit comes back", number, MESSAGES);
}

static void expect_a_whole_pool(void)
{
	struct inventory stock = {0};
	int tries = 0;

	do {
		pump_ms(1);
		on_entry(take_stock, &stock);
	} while (stock.link.rx_posted < stock.pool.object_count && ++tries < 2000);
	assert_int_equal(stock.link.rx_kept, 0);
	assert_true(stock.pool.object_count >= WINDOW + LINK_RX_CONTROL);
	assert_int_equal(stock.link.rx_posted, stock.pool.object_count);
	assert_int_equal(stock.pool.available, 0); /* the others are posted */
}

static void travel(uint32_t from, uint32_t to)
{
	entry = from;
	exit_lcore = to;
	in_opened = in_closed = in_errors = out_opened = out_closed = out_errors = sent = 0;
	source_opened = source_closed = sink_closed = received = wrong = 0;
	fixture_start(NULL, true);
	worker_start();
	connect_all();
	for (unsigned i = 0; i < MESSAGES; i++)
		send_number(i);
	assert_true(pump_until(&received, MESSAGES, 10000));
	assert_true(pump_until(&sent, MESSAGES, 5000));
	assert_int_equal(wrong, 0);
	expect_a_whole_pool();
	assert_int_equal(plx_link_close(source), 0);
	on_exit_lcore(close_out, NULL);
	assert_true(pump_until(&source_closed, 1, 3000));
	assert_true(pump_until(&in_closed, 1, 3000));
	assert_true(pump_until(&out_closed, 1, 3000));
	assert_true(pump_until(&sink_closed, 1, 3000));
	assert_int_equal(source_reason, PLX_LINK_CLOSED);
	assert_int_equal(sink_reason, PLX_LINK_CLOSED);
	assert_int_equal(in_errors, 0);
	assert_int_equal(out_errors, 0);
	worker_stop();
	fixture_stop();
}

PLX_TEST(messages_travel_from_the_main_lcore_to_a_worker)
{
	travel(0, 1);
}

PLX_TEST(messages_travel_from_a_worker_to_the_main_lcore)
{
	travel(1, 0);
}

PLX_TEST_MAIN()
