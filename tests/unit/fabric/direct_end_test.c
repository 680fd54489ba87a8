/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of direct data placement: revoked grants, and links that close or break with operations
 * in flight. Each operation completes once, released memory is not accessed, and nothing stays
 * registered or open. */
#include "direct_fixture.h"

#include "fabric_link.h"

#define LARGE (4u << 20)

static unsigned rounds(unsigned many)
{
	return is_provider_given() || PLX_TEST_SANITIZED ? many / 4 : many;
}

static void end_both(void)
{
	if (client.link)
		plx_link_abort(client.link);
	expect_both_end();
}

/* Links that break ----------------------------------------------------------------------------- */

/* At different points, so that some are in the middle of an answer. */
DIRECT_TEST(every_operation_completes_once_when_its_link_is_aborted)
{
	bool shares = client.link->driver->name_writes;
	unsigned sets = open_sets() - (shares ? 0 : 2), in_the_middle = 0;

	for (unsigned round = 0; round < rounds(30); round++) {
		struct field field = field_make(server.link, LARGE, READ_WRITE);
		struct tally puts = {0}, gets = {0};
		unsigned put_count = start_puts(&field, round % 4, &puts);
		unsigned get_count = start_gets(&field, 1 + round % 8, &gets);

		for (unsigned i = 0; i < round * 4; i++)
			plx_loop_turn();
		in_the_middle += puts.ok + gets.ok < put_count + get_count;
		plx_link_abort(round % 2 && server.link ? server.link : client.link);
		expect_both_end();
		pump_ms(2);
		assert_int_equal(puts.ok + puts.failed, put_count);
		assert_int_equal(gets.ok + gets.failed, get_count);
		field_free(&field);
		assert_int_equal(open_sets(), sets);
		direct_connect_again();
	}
	assert_true(in_the_middle > 0);
}

/* Links that close ----------------------------------------------------------------------------- */

DIRECT_TEST(a_close_waits_for_puts_and_gets)
{
	for (unsigned round = 0; round < rounds(12); round++) {
		struct field field = field_make(server.link, LARGE, READ_WRITE);
		struct tally puts = {0}, gets = {0};
		unsigned put_count = start_puts(&field, round % 3, &puts);
		unsigned get_count = start_gets(&field, round % 4, &gets);

		assert_int_equal(plx_link_close(round % 2 ? server.link : client.link), 0);
		expect_both_end();
		assert_int_equal(client.reason, PLX_LINK_CLOSED);
		assert_int_equal(server.reason, PLX_LINK_CLOSED);
		assert_int_equal(puts.ok, put_count);
		assert_int_equal(gets.ok, get_count);
		if (put_count)
			assert_pattern(field.base, LARGE, 1);
		field_free(&field); /* not revoked: closing did it */
		direct_connect_again();
	}
}

/* Revoked grants ------------------------------------------------------------------------------- */

static _Atomic unsigned released;
static unsigned released_late;

static void on_released(void *base, size_t bytes, void *arg)
{
	struct field *field = arg;

	assert_ptr_equal(base, field->base);
	assert_int_equal(bytes, field->bytes);
	released++;
	released_late += server.closed;
	memset(base, 0xee, bytes); /* it is reused for something else */
}

/* Their link stays open. */
DIRECT_TEST(many_grants_can_be_revoked_at_once)
{
	struct field fields[50];

	released = 0;
	for (unsigned i = 0; i < 50; i++) {
		fields[i] = field_make(server.link, 100 + i, PLX_REMOTE_READ);
		if (i % 3) /* the others while the peer is being asked about some */
			continue;
		plx_region_revoke(fields[i].region, on_released, &fields[i]);
		assert_int_equal(released, 0); /* not inside the call */
	}
	plx_loop_turn();
	for (unsigned i = 0; i < 50; i++) {
		if (i % 3)
			plx_region_revoke(fields[i].region, i == 49 ? NULL : on_released,
					  &fields[i]);
	}
	assert_true(pump_until(&released, 49, 2000));
	wait_for_puts();
	for (unsigned i = 0; i < 50; i++)
		field_free(&fields[i]);
	assert_int_equal(client.closed + server.closed, 0);
}

DIRECT_TEST(revoked_memory_cannot_be_reached)
{
	for (unsigned get = 0; get < 2; get++) {
		struct field field = field_make(server.link, 1000, READ_WRITE);
		struct tally tally = {0};

		plx_region_revoke(field.region, NULL, NULL);
		if (get)
			start_gets(&field, 1, &tally);
		else
			start_puts(&field, 1, &tally);
		expect_both_end();
		assert_int_equal(tally.ok + tally.failed, 1);
		if (get)
			assert_int_equal(tally.failed, 1);
		assert_int_equal(field.base[0], 0xa5);
		assert_int_equal(field.base[999], 0xa5);
		field_free(&field);
		direct_connect_again();
	}
}

static bool is_all(const uint8_t *bytes, size_t count, uint8_t value)
{
	return bytes[0] == value && memcmp(bytes, bytes + 1, count - 1) == 0;
}

static void look_at_what_came(struct plx_link *link, struct plx_buf *buf, int status, void *arg)
{
	tally_one(link, buf, status, arg);
	assert_true(status || is_all(buf->data, buf->len, 0xa5));
}

/* At different points. Whatever happens to the operation, the memory is reused after its release.
 */
DIRECT_TEST(released_memory_is_neither_written_nor_read)
{
	for (unsigned round = 0; round < rounds(40); round++) {
		struct field field = field_make(server.link, LARGE, READ_WRITE);
		struct plx_buf *into = empty_buf(LARGE, true);
		struct tally tally = {0};
		unsigned count = start_puts(&field, round % 2 ? 0 : 1 + round % 3, &tally);

		if (round % 2)
			count += plx_link_get(client.link, &field.remote, 0, LARGE,
					      plx_buf_ref(into), look_at_what_came, &tally) == 0;
		released = released_late = 0;
		for (unsigned i = 0; i < round * 2; i++)
			plx_loop_turn();
		if (server.link)
			plx_region_revoke(field.region, on_released, &field);
		assert_true(pump_until(&released, 1, 5000));
		assert_int_equal(released_late, 0);
		pump_ms(10);
		assert_true(is_all(field.base, field.bytes, 0xee));
		end_both();
		assert_int_equal(tally.ok + tally.failed, count);
		plx_buf_unref(into);
		field_free(&field);
		direct_connect_again();
	}
}

FIXTURE_MAIN("tcp", "foreign")
