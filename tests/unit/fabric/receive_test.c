/* SPDX-License-Identifier: BSD-3-Clause */
/* Forwarded messages: received on one lcore, passed by reference to another one, which sends them
 * on another link. Four link ends on two lcores:
 *
 *     source -> in | lcore 1 | -> message -> | lcore 0 | out -> sink
 *
 * Nothing is copied. Buffers, and with them the credit, return to where they came from: the source
 * may have six messages in flight, and sends thousands. */
#include "fabric_link.h"
#include "fixture.h"

#define MESSAGES       1000
#define WINDOW         6
#define SIZE_MAX_BYTES 4000

static struct side in;                /* lcore 1's */
static struct side out, source, sink; /* lcore 0's */
static _Atomic unsigned in_errors, out_errors, sent;

/* Messages that cannot be sent yet wait: never more than the window of `in`. */
static struct plx_buf *waiting[WINDOW];
static unsigned waiting_count;

static uint32_t size_of(unsigned number)
{
	return 8 + number * 37 % (SIZE_MAX_BYTES - 8);
}

/* Lcore 0 ------------------------------------------------------------------------------------- */

/* The buffer that came in, referenced by this lcore only. */
static void on_sent(struct plx_link *link, struct plx_buf *buf, int status, void *arg)
{
	out_errors += status != 0 || buf != arg || buf->pool != in.link->rx_pool ||
		      buf->owner != 1 || plx_lcore_id() != 0;
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

/* Lcore 1 ------------------------------------------------------------------------------------- */

static void hand_over(struct side *side, struct plx_buf *message)
{
	in_errors += plx_lcore_id() != 1 || plx_lcore_send(0, hand_out, plx_buf_ref(message)) != 0;
}

/* Source and sink ----------------------------------------------------------------------------- */

static struct plx_listener *listen_for(struct side *side, bool placed)
{
	struct plx_listen_attr attr = {
		.link = {.events = &side_events, .user = side, .rx_buf_count = WINDOW},
		.spread = placed ? PLX_SPREAD_CALLBACK : PLX_SPREAD_NONE,
		.place = place_on_lcore_1,
	};
	struct plx_listener *listener;

	assert_int_equal(plx_link_listen(here("0"), &attr, &listener), 0);
	return listener;
}

static void send_number(unsigned number)
{
	uint8_t bytes[SIZE_MAX_BYTES] = {0};
	uint32_t size = size_of(number);
	uint64_t limit_ns = plx_now_ns() + 5 * PLX_NS_PER_S;
	int rc;

	memcpy(bytes, &(uint64_t){number}, sizeof(uint64_t));
	while ((rc = plx_link_send(source.link, bytes, size)) == -EAGAIN && plx_now_ns() < limit_ns)
		plx_loop_turn();
	if (rc)
		fail_msg("message %u of %u is stuck: no credit comes back", number, MESSAGES);
}

PLX_TEST(messages_travel_from_a_worker_to_the_main_lcore)
{
	in = (struct side){.name = "in", .on_message = hand_over};
	out = (struct side){.name = "out", .on_writable = send_on};
	source = (struct side){.name = "source"};
	sink = (struct side){.name = "sink", .sequenced = true};
	fixture_start(NULL, true);
	worker_start();
	side_connect(&out, plx_listener_address(listen_for(&sink, false)), NULL);
	side_connect(&source, plx_listener_address(listen_for(&in, true)), NULL);
	expect_soon(out.opened && sink.opened && source.opened && in.opened);
	for (unsigned i = 0; i < MESSAGES; i++)
		send_number(i);
	assert_true(pump_until(&sink.messages, MESSAGES, 10000));
	assert_true(pump_until(&sent, MESSAGES, 5000));
	assert_int_equal(sink.sequence_errors, 0);
	assert_int_equal(sink.bytes, in.bytes);
	assert_works(plx_link_close(source.link));
	assert_works(plx_link_close(out.link));
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

PLX_TEST_MAIN()
