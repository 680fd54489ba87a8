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

#define MESSAGES       1000
#define WINDOW         6
#define SIZE_MAX_BYTES 4000

static uint32_t entry, exit_lcore;

static struct side in;           /* the entry lcore's */
static struct side out;          /* the exit lcore's */
static struct side source, sink; /* lcore 0's */
static _Atomic unsigned in_errors, out_errors, sent;
static unsigned wrong;

/* Messages that cannot be sent yet wait: never more than the window of `in`. */
static struct plx_buf *waiting[WINDOW];
static unsigned waiting_count;

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
	out_errors += status != 0 || buf != arg || buf->pool != in.link->rx_pool ||
		      buf->owner != entry || plx_lcore_id() != exit_lcore;
	sent++;
}

static void send_on(struct side *side)
{
	unsigned done = 0;

	while (done < waiting_count &&
	       plx_link_send_buf(out.link, waiting[done], on_sent, waiting[done]) == 0)
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
		send_on(&out);
}

static void connect_out(void *address)
{
	side_connect(&out, address, NULL);
}

static void close_out(void *arg)
{
	out_errors += plx_link_close(out.link) != 0;
}

/* Entry --------------------------------------------------------------------------------------- */

static void hand_over(struct side *side, struct plx_buf *message)
{
	in_errors += plx_lcore_id() != entry ||
		     plx_lcore_send(exit_lcore, hand_out, plx_buf_ref(message)) != 0;
}

struct inventory {
	struct plx_link_stats link;
	struct plx_pool_stats pool;
};

static void take_stock(void *arg)
{
	struct inventory *inventory = arg;

	plx_link_stats_read(in.link, &inventory->link);
	plx_pool_stats_read(in.link->rx_pool, &inventory->pool);
}

static void on_lcore(uint32_t lcore, plx_message_fn fn, void *arg)
{
	if (lcore == 1)
		worker_call(fn, arg);
	else
		fn(arg);
}

/* Source and sink ----------------------------------------------------------------------------- */

static void check(struct side *side, struct plx_buf *message)
{
	unsigned number = side->messages - 1;

	wrong += message->len != size_of(number);
	for (unsigned i = 0; i < message->len; i++)
		wrong += message->data[i] != byte_of(number, i);
}

static uint32_t at_entry(struct plx_listener *listener, const struct sockaddr *peer, void *arg)
{
	return entry;
}

static struct plx_listener *listen_for(struct side *side, bool placed)
{
	struct plx_listen_attr attr = {
		.link = {.events = &side_events, .user = side, .rx_buf_count = WINDOW},
		.spread = placed ? PLX_SPREAD_CALLBACK : PLX_SPREAD_NONE,
		.place = at_entry,
	};
	struct plx_listener *listener;

	assert_int_equal(plx_link_listen(here("0"), &attr, &listener), 0);
	return listener;
}

static void connect_all(void)
{
	struct plx_listener *to_in = listen_for(&in, true);
	struct plx_listener *to_sink = listen_for(&sink, false);

	on_lcore(exit_lcore, connect_out, (void *)plx_listener_address(to_sink));
	assert_true(pump_until(&out.opened, 1, 3000));
	side_connect(&source, plx_listener_address(to_in), NULL);
	assert_true(pump_until(&source.opened, 1, 3000));
	assert_true(pump_until(&in.opened, 1, 3000));
}

static void send_number(unsigned number)
{
	uint8_t bytes[SIZE_MAX_BYTES];
	uint32_t size = size_of(number);
	uint64_t limit_ns = plx_now_ns() + 5 * PLX_NS_PER_S;
	int rc;

	for (unsigned i = 0; i < size; i++)
		bytes[i] = byte_of(number, i);
	while ((rc = plx_link_send(source.link, bytes, size)) == -EAGAIN && plx_now_ns() < limit_ns)
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
		on_lcore(entry, take_stock, &stock);
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
	in = (struct side){.name = "in", .on_message = hand_over};
	out = (struct side){.name = "out", .on_writable = send_on};
	source = (struct side){.name = "source"};
	sink = (struct side){.name = "sink", .on_message = check};
	in_errors = out_errors = sent = wrong = 0;
	fixture_start(NULL, true);
	worker_start();
	connect_all();
	for (unsigned i = 0; i < MESSAGES; i++)
		send_number(i);
	assert_true(pump_until(&sink.messages, MESSAGES, 10000));
	assert_true(pump_until(&sent, MESSAGES, 5000));
	assert_int_equal(wrong, 0);
	expect_a_whole_pool();
	assert_works(plx_link_close(source.link));
	on_lcore(exit_lcore, close_out, NULL);
	expect_end(&source, PLX_LINK_CLOSED);
	expect_end(&in, PLX_LINK_CLOSED);
	expect_end(&out, PLX_LINK_CLOSED);
	expect_end(&sink, PLX_LINK_CLOSED);
	assert_int_equal(in_errors, 0);
	assert_int_equal(out_errors, 0);
	worker_stop();
	fixture_stop();
	free(in.last);
	free(sink.last);
}

PLX_TEST(messages_travel_between_the_main_lcore_and_a_worker)
{
	travel(0, 1);
	travel(1, 0);
}

PLX_TEST_MAIN()
