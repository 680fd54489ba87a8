/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct data placement between two correct sides: puts and gets transfer exactly the targeted
 * bytes, in order with messages. */
#include "direct_fixture.h"

#include <limits.h>

/* Without a callback. */
static int put(const struct plx_remote *to, uint64_t offset, struct plx_buf *buf)
{
	return plx_link_put(client.link, to, offset, buf, NULL, NULL);
}

static int get(const struct plx_remote *from, uint64_t offset, uint32_t bytes, struct plx_buf *into)
{
	return plx_link_get(client.link, from, offset, bytes, into, NULL, NULL);
}

static int put_and_tell(const struct plx_remote *to, uint64_t offset, struct plx_buf *buf,
			uint32_t value)
{
	return plx_link_put_and_tell(client.link, to, offset, buf, value, NULL, NULL);
}

static void assert_all(const uint8_t *bytes, size_t count, uint8_t value)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(bytes[i], value);
}

/* The put is received between two margins, and the get appended. */
static void put_and_get(size_t size, bool in_zone)
{
	struct field field = field_make(server.link, size + 20, READ_WRITE);
	struct plx_buf *into = empty_buf(size + 3, in_zone);
	struct tally tally = {0};

	put_and_wait(client.link, &field.remote, 13, patterned(size, (unsigned)size, in_zone));
	wait_for_puts();
	assert_pattern(field.base + 13, size, (unsigned)size);
	assert_all(field.base, 13, 0xa5);
	assert_all(field.base + 13 + size, 7, 0xa5);
	memcpy(plx_buf_append(into, 3), "abc", 3);
	assert_works(plx_link_get(client.link, &field.remote, 13, (uint32_t)size, plx_buf_ref(into),
				  tally_one, &tally));
	assert_int_equal(into->len, 3);
	if (!pump_until(&tally.ok, 1, 10000))
		fail_msg("%zu bytes did not come: client '%s'", size, client.text);
	assert_int_equal(into->len, 3 + size);
	assert_memory_equal(into->data, "abc", 3);
	assert_pattern(into->data + 3, size, (unsigned)size);
	plx_buf_unref(into);
	field_revoke_and_free(&field);
}

DIRECT_TEST(puts_and_gets_of_every_size_transfer_exactly_their_bytes)
{
	static const size_t sizes[] = {1, 7, 64, 256, 257, 4096, 65536, 1 << 20, 8 << 20};

	for (size_t i = 0; i < 2 * PLX_ARRAY_LEN(sizes); i++)
		put_and_get(sizes[i / 2], i % 2);
}

DIRECT_TEST(a_chain_of_any_number_of_buffers_is_one_put)
{
	enum { PIECES = 9 };
	struct field field = field_make(server.link, 3000, PLX_REMOTE_WRITE);
	struct plx_buf *head = patterned(100, 0, true);

	for (unsigned i = 1; i < PIECES; i++)
		plx_buf_chain(head, patterned(100, i, i % 2));
	if (!is_provider_given())
		assert_int_equal(field.remote.address, 0); /* it is not revealed */
	put_and_wait(client.link, &field.remote, 5, head);
	wait_for_puts();
	for (unsigned i = 0; i < PIECES; i++)
		assert_pattern(field.base + 5 + (size_t)100 * i, 100, i);
	assert_int_equal(field.base[5 + 100 * PIECES], 0xa5);
	field_revoke_and_free(&field);
}

/* Order ---------------------------------------------------------------------------------------- */

static struct field *watched;
static uint32_t next_number;
static unsigned out_of_order, late;

/* Numbers come in turn as messages, as values of puts, and only as the data of puts. By the next
 * message or value the memory must contain the last one, from its first word to its last. */
static void expect_number(uint32_t number, uint32_t in_memory)
{
	uint32_t first, last;

	out_of_order += number != next_number;
	next_number = number + (number % 3 ? 2 : 1);
	memcpy(&first, watched->base, sizeof(first));
	memcpy(&last, watched->base + watched->bytes - sizeof(last), sizeof(last));
	late += first < in_memory || last < in_memory;
}

static void number_is_told(struct side *side, uint32_t value)
{
	expect_number(value, value);
}

static void number_is_sent(struct side *side, struct plx_buf *message)
{
	uint32_t number;

	memcpy(&number, message->data, sizeof(number));
	expect_number(number, number ? number - 1 : 0);
}

static struct plx_buf *all_words(uint32_t number, size_t bytes)
{
	struct plx_buf *buf = empty_buf(bytes, true);
	uint8_t *data = plx_buf_append(buf, (uint32_t)bytes);

	for (size_t i = 0; i < bytes; i += sizeof(number))
		memcpy(data + i, &number, sizeof(number));
	return buf;
}

DIRECT_TEST(messages_and_values_arrive_in_order_and_after_the_data_of_earlier_puts)
{
	struct field field = field_make(server.link, 20000, PLX_REMOTE_WRITE);
	unsigned rounds = is_provider_given() ? 300 : 6000;

	watched = &field;
	late = out_of_order = 0;
	next_number = 0;
	memset(field.base, 0, field.bytes);
	server.on_message = number_is_sent;
	server.on_put = number_is_told;
	for (uint32_t number = 0; number < rounds;) {
		unsigned before = client.writable;
		struct plx_buf *buf = number % 3 ? all_words(number, field.bytes) : NULL;
		int rc = number % 3 == 0 ? plx_link_send(client.link, &number, sizeof(number))
		       : number % 3 == 1 ? put_and_tell(&field.remote, 0, buf, number)
					 : put(&field.remote, 0, buf);

		if (rc == 0) {
			number++;
			continue;
		}
		plx_buf_unref(buf);
		assert_int_equal(rc, -EAGAIN);
		wait_for_room(before);
	}
	while (server.messages + server.puts < rounds / 3 * 2 && !server.closed)
		pump_ms(1);
	assert_int_equal(server.messages, rounds / 3);
	assert_int_equal(server.puts, rounds / 3);
	assert_int_equal(out_of_order + late, 0);
	server.on_message = NULL;
	server.on_put = NULL;
	field_revoke_and_free(&field);
}

DIRECT_TEST(a_put_may_carry_a_value_without_data)
{
	struct field field = field_make(server.link, 8, PLX_REMOTE_WRITE);

	for (unsigned i = 0; i < 40; i++) {
		assert_works(put_and_tell(&field.remote, 8, empty_buf(0, i % 2), UINT32_MAX - i));
		assert_true(pump_until(&server.puts, i + 1, 5000));
		assert_int_equal(server.value, UINT32_MAX - i);
	}
	assert_int_equal(stats_of(client.link).puts, 40);
	assert_int_equal(stats_of(server.link).puts_told, 40);
	field_revoke_and_free(&field);
}

/* A put with notification takes credit, so a busy peer is not flooded; other puts take none. */
DIRECT_TEST(a_lack_of_credit_refuses_only_puts_that_notify)
{
	struct field field = field_make(server.link, 64, PLX_REMOTE_WRITE);
	unsigned writable;

	server.keep = 6; /* the whole window */
	for (int i = 0; i < 200; i++) {
		plx_link_send(client.link, "keep", 4);
		plx_loop_turn();
	}
	assert_int_equal(server.kept_count, 6);
	for (int i = 0; i < 10; i++) {
		struct plx_buf *buf = patterned(64, 1, true);

		assert_int_equal(put_and_tell(&field.remote, 0, buf, 1), -EAGAIN);
		plx_buf_unref(buf);
	}
	writable = client.writable;
	put_and_wait(client.link, &field.remote, 0, patterned(64, 2, true));
	expect_soon(field.base[63] != 0xa5);
	assert_pattern(field.base, 64, 2);
	assert_int_equal(client.writable, writable);
	server.keep = 0;
	side_release(&server, 6);
	assert_true(pump_until(&client.writable, writable + 1, 5000));
	field_revoke_and_free(&field);
}

DIRECT_TEST(operations_beyond_the_limit_of_a_link_get_eagain)
{
	struct field field = field_make(server.link, 1 << 20, READ_WRITE);
	struct tally puts = {0}, gets = {0};
	unsigned put_count, get_count, writable = client.writable;

	put_count = start_puts(&field, UINT_MAX, &puts);
	assert_in_range(put_count, 2, 32);
	assert_true(pump_until(&client.writable, writable + 1, 10000));
	get_count = start_gets(&field, UINT_MAX, &gets);
	assert_int_equal(get_count, 8);
	assert_true(pump_until(&client.writable, writable + 2, 20000));
	assert_true(pump_until(&puts.ok, put_count, 20000));
	assert_true(pump_until(&gets.ok, get_count, 20000));
	assert_int_equal(client.writable, writable + 2);
	field_revoke_and_free(&field);
}

/* Refusals ------------------------------------------------------------------------------------- */

DIRECT_TEST(bounds_and_rights_are_checked_before_anything_is_sent)
{
	struct field writable = field_make(server.link, 100, PLX_REMOTE_WRITE);
	struct field readable = field_make(server.link, 100, PLX_REMOTE_READ);
	struct plx_buf *buf = patterned(10, 0, true), *into = empty_buf(200, true);
	struct plx_remote bad = writable.remote;
	static const uint64_t offsets[] = {91, 100, UINT64_MAX, UINT64_MAX - 4};

	for (size_t i = 0; i < PLX_ARRAY_LEN(offsets); i++) {
		assert_fails(put(&writable.remote, offsets[i], buf), -ERANGE,
			     "has granted 100 bytes");
		assert_int_equal(get(&readable.remote, offsets[i], 10, into), -ERANGE);
	}
	assert_fails(put(&readable.remote, 0, buf), -EACCES, "for writing");
	assert_fails(get(&writable.remote, 0, 10, into), -EACCES, "for reading");
	assert_int_equal(get(&readable.remote, 0, 0, into), -EINVAL);
	plx_buf_append(into, 195);
	assert_fails(get(&readable.remote, 0, 10, into), -EINVAL, "with room for");
	bad.bytes = 0;
	assert_int_equal(put(&bad, 0, buf), -EINVAL);
	bad.bytes = 100;
	bad.address = UINT64_MAX - 50;
	assert_fails(put(&bad, 0, buf), -EINVAL, "beyond the end of all memory");
	bad = writable.remote;
	bad.access = 8;
	assert_int_equal(put(&bad, 0, buf), -EINVAL);
	plx_buf_unref(buf);
	plx_buf_unref(into);
	wait_for_puts(); /* nothing has happened */
	assert_int_equal(client.closed + server.closed, 0);
	field_revoke_and_free(&writable);
	field_revoke_and_free(&readable);
}

/* Messages and heartbeats after puts must not wait long. */
DIRECT_TEST(puts_have_a_maximum_length_and_at_most_three_long_ones_are_in_flight)
{
	uint64_t max = plx_link_direct_max(client.link);
	struct field field = field_make(server.link, max + 1, READ_WRITE);
	struct plx_buf *buf = patterned(max + 1, 7, true);
	unsigned out = 0, writable = client.writable;

	assert_in_range(max, 8 << 20, 16 << 20);
	assert_fails(put(&field.remote, 0, buf), -EMSGSIZE, "carries at most");
	buf->len = (uint32_t)max;
	for (; out < 32 && put(&field.remote, 0, plx_buf_ref(buf)) == 0; out++)
		continue;
	plx_buf_unref(buf);
	assert_in_range(out, 1, 3);
	assert_true(pump_until(&client.writable, writable + 1, 10000));
	assert_works(put(&field.remote, 0, buf));
	wait_for_puts();
	assert_pattern(field.base, max, 7);
	buf = empty_buf(max + 1, false);
	assert_int_equal(get(&field.remote, 0, (uint32_t)max + 1, buf), -EMSGSIZE);
	plx_buf_unref(buf);
	field_revoke_and_free(&field);
}

DIRECT_TEST(an_empty_grant_is_refused)
{
	struct plx_region *region;
	char byte;

	assert_int_equal(plx_link_grant(server.link, &byte, 0, PLX_REMOTE_READ, &region), -EINVAL);
	assert_int_equal(plx_link_grant(server.link, NULL, 5, PLX_REMOTE_READ, &region), -EINVAL);
	assert_int_equal(plx_link_grant(server.link, &byte, SIZE_MAX, PLX_REMOTE_READ, &region),
			 -EINVAL);
	assert_fails(plx_link_grant(server.link, &byte, 1, 0, &region), -EINVAL, "PLX_REMOTE_READ");
	assert_int_equal(plx_link_grant(server.link, &byte, 1, 4, &region), -EINVAL);
	plx_link_abort(server.link);
	assert_int_equal(plx_link_grant(server.link, &byte, 1, PLX_REMOTE_READ, &region),
			 -ENOTCONN);
}

static void expect_refusal(const char *text)
{
	struct plx_remote remote = {.key = 1, .bytes = 100, .access = PLX_REMOTE_WRITE};
	struct plx_buf *buf = patterned(10, 0, true);
	struct plx_region *region;
	char byte;

	assert_fails(put(&remote, 0, buf), -EOPNOTSUPP, text);
	assert_fails(plx_link_grant(client.link, &byte, 1, PLX_REMOTE_READ, &region), -EOPNOTSUPP,
		     text);
	assert_int_equal(plx_link_direct_max(client.link), 0);
	plx_buf_unref(buf);
}

PLX_TEST(a_link_has_direct_data_placement_only_if_both_sides_ask)
{
	struct plx_link_attr direct = {.direct = true}, ordinary = {0};

	for (unsigned i = 0; i < 3; i++) {
		fixture_start(fixture_provider, false);
		fixture_connect(fixture_listen(here("0"), i == 1 ? &direct : &ordinary),
				i == 2 ? &direct : &ordinary);
		server.echo = true;
		expect_echo("ping", 4);
		expect_refusal(i == 2 ? "the peer did not ask for it" : "this side did not ask");
		fixture_stop();
	}
}

PLX_TEST(a_provider_without_direct_data_placement_refuses_it_and_is_not_chosen)
{
	struct plx_link_attr attr = {.events = &side_events, .direct = true, .provider = "shm"};
	struct plx_listen_attr listen = {.link = attr};
	struct plx_listener *none;
	struct plx_link *link;

	skip_if_provider_given(); /* auto is TCP, and needs no device address */
	fixture_start(NULL, false);
	assert_fails(plx_link_connect("127.0.0.1:7000", &attr, &link), -EOPNOTSUPP, "shm");
	assert_error_has("give tcp or verbs");
	assert_int_equal(plx_link_listen("127.0.0.1:0", &listen, &none), -EOPNOTSUPP);
	attr.provider = "auto";
	fixture_pair(&attr);
	assert_string_equal(plx_link_driver(client.link), "tcp");
	assert_true(plx_link_direct_max(client.link) > 0);
	fixture_stop();
}

/* Tokens --------------------------------------------------------------------------------------- */

PLX_TEST(an_encoded_token_decodes_to_itself)
{
	static const uint8_t golden[PLX_REMOTE_BYTES] = {
		8,    7,    6,    5, 4,    3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14,
		0x13, 0x12, 0x11, 0, 0x10, 0, 0, 0, 0,    0,    0,    3};
	struct plx_remote in = {0x0102030405060708, 0x1112131415161718, 4096, 3}, out = {0};
	uint8_t token[PLX_REMOTE_BYTES];

	plx_remote_encode(&in, token);
	assert_memory_equal(token, golden, sizeof(golden));
	assert_int_equal(plx_remote_decode(token, sizeof(token), &out), 0);
	assert_memory_equal(&out, &in, offsetof(struct plx_remote, access) + sizeof(in.access));
}

PLX_TEST(broken_tokens_are_refused)
{
	static const struct plx_remote rows[] = {
		{0, 1, 0, 1},    {1, 1, UINT64_MAX, 1},    {UINT64_MAX - 4095, 1, 4096, 1},
		{0, 1, 4096, 0}, {0, 1, 4096, 0x80000001},
	};
	uint8_t token[PLX_REMOTE_BYTES + 1] = {0};
	struct plx_remote out;

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		plx_remote_encode(&rows[i], token);
		assert_fails(plx_remote_decode(token, PLX_REMOTE_BYTES, &out), -EINVAL,
			     "remote memory");
	}
	plx_remote_encode(&(struct plx_remote){1, 1, 1, 1}, token);
	assert_int_equal(plx_remote_decode(token, PLX_REMOTE_BYTES, &out), 0);
	assert_int_equal(plx_remote_decode(token, PLX_REMOTE_BYTES - 1, &out), -EINVAL);
	assert_int_equal(plx_remote_decode(token, PLX_REMOTE_BYTES + 1, &out), -EINVAL);
	token[PLX_REMOTE_BYTES - 1] = 1;
	assert_fails(plx_remote_decode(token, PLX_REMOTE_BYTES, &out), -EINVAL, "reserved");
}

FIXTURE_MAIN("tcp", "foreign")
