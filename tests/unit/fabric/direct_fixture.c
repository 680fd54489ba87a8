/* SPDX-License-Identifier: BSD-3-Clause */
#include "direct_fixture.h"

#include "fabric_link.h"

static const struct plx_link_attr direct_link = {.direct = true};

struct plx_listener *direct_listener;

int direct_setup(void **state)
{
	fixture_up(state);
	direct_listener = fixture_pair(&direct_link);
	return 0;
}

void direct_connect_again(void)
{
	fixture_renew_sides();
	fixture_connect(direct_listener, &direct_link);
}

static void free_memory(void *memory, void *arg)
{
	plx_mem_free(memory);
}

struct plx_buf *empty_buf(size_t room, bool in_zone)
{
	if (!in_zone)
		return plx_buf_alloc((uint32_t)room + 1);

	uint8_t *memory = plx_mem_alloc(room + 1, 0, PLX_NODE_ANY, NULL);

	assert_non_null(memory);

	struct plx_buf *buf = plx_buf_wrap(memory, 0, (uint32_t)room + 1, free_memory, NULL);

	plx_buf_reset(buf);
	return buf;
}

struct plx_buf *patterned(size_t bytes, unsigned seed, bool in_zone)
{
	struct plx_buf *buf = empty_buf(bytes, in_zone);
	uint8_t *pattern = fixture_pattern(bytes, seed);

	memcpy(plx_buf_append(buf, (uint32_t)bytes), pattern, bytes);
	free(pattern);
	return buf;
}

void assert_pattern(const uint8_t *bytes, size_t count, unsigned seed)
{
	uint8_t *pattern = fixture_pattern(count, seed);

	assert_memory_equal(bytes, pattern, count);
	free(pattern);
}

struct field field_make(struct plx_link *link, size_t bytes, unsigned access)
{
	struct field field = {.bytes = bytes, .memory = malloc(bytes + (size_t)2 * MARGIN)};
	struct plx_remote remote;
	uint8_t token[PLX_REMOTE_BYTES];

	memset(field.memory, 0xa5, bytes + (size_t)2 * MARGIN);
	field.base = field.memory + MARGIN;
	if (plx_link_grant(link, field.base, bytes, access, &field.region) != 0)
		fail_msg("plx_link_grant: %s", plx_error());
	plx_region_remote(field.region, &remote);
	plx_remote_encode(&remote, token);
	assert_int_equal(plx_remote_decode(token, sizeof(token), &field.remote), 0);
	return field;
}

void field_free(struct field *field)
{
	for (size_t i = 0; i < MARGIN; i++) {
		assert_int_equal(field->memory[i], 0xa5);
		assert_int_equal(field->base[field->bytes + i], 0xa5);
	}
	free(field->memory);
}

void field_revoke_and_free(struct field *field)
{
	plx_region_revoke(field->region, NULL, NULL);
	wait_for_puts();
	field_free(field);
}

void tally_one(struct plx_link *link, struct plx_buf *buf, int status, void *tally)
{
	struct tally *all = tally;

	all->ok += status == 0;
	all->failed += status != 0;
	if (status)
		all->status = status;
}

static unsigned start_operations(struct field *field, unsigned count, struct tally *tally, bool get)
{
	for (unsigned i = 0; i < count; i++) {
		struct plx_buf *buf = get ? empty_buf(field->bytes, i % 2)
					  : patterned(field->bytes, 1, true);
		int rc = get ? plx_link_get(client.link, &field->remote, 0, (uint32_t)field->bytes,
					    buf, tally_one, tally)
			     : plx_link_put(client.link, &field->remote, 0, buf, tally_one, tally);

		if (rc) {
			plx_buf_unref(buf);
			return i;
		}
	}
	return count;
}

unsigned start_puts(struct field *field, unsigned count, struct tally *tally)
{
	return start_operations(field, count, tally, false);
}

unsigned start_gets(struct field *field, unsigned count, struct tally *tally)
{
	return start_operations(field, count, tally, true);
}

void put_and_wait(struct plx_link *link, const struct plx_remote *to, uint64_t offset,
		  struct plx_buf *buf)
{
	struct tally tally = {0};

	if (plx_link_put(link, to, offset, buf, tally_one, &tally) != 0)
		fail_msg("plx_link_put: %s", plx_error());
	if (!pump_until(&tally.ok, 1, 10000))
		fail_msg("a put did not leave: client '%s', server '%s'", client.text, server.text);
}

void wait_for_room(unsigned before)
{
	if (!pump_until(&client.writable, before + 1, 10000))
		fail_msg("not writable: client '%s', server '%s'", client.text, server.text);
}

void send_with_room(const void *bytes, size_t length)
{
	unsigned writable = client.writable;
	int rc;

	while ((rc = plx_link_send(client.link, bytes, length)) == -EAGAIN) {
		wait_for_room(writable);
		writable = client.writable;
	}
	assert_int_equal(rc, 0);
}

void wait_for_puts(void)
{
	unsigned before = server.messages;

	send_with_room("after", 5);
	if (!pump_until(&server.messages, before + 1, 10000))
		fail_msg("a message did not arrive: client '%s', server '%s'", client.text,
			 server.text);
}

unsigned open_sets(void)
{
	unsigned count = 0;

	for (struct plx_set *set = LIST_FIRST(&fabric_home()->sets); set;
	     set = LIST_NEXT(set, of_home))
		count++;
	return count;
}
