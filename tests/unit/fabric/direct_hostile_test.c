/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that access memory they were not granted, or report false operations: their link ends with
 * a reason, and nothing else happens. An honest link with direct data placement runs next to
 * them. */
#include "direct_fixture.h"
#include "fabric_link.h"
#include "rogue.h"

static struct side honest_client, honest_server;
static struct field field; /* granted to the honest client, for both accesses */

/* The honest pair first; its sides are set aside. */
static int start(void **state)
{
	direct_setup(state);
	honest_client = client;
	plx_link_set_user(client.link, &honest_client);
	client = (struct side){.name = "client"};
	field = field_make(server.link, 10000, READ_WRITE);
	server_set_aside(&honest_server);
	return 0;
}

static void assert_untouched(const struct field *at)
{
	for (size_t i = 0; i < at->bytes; i++)
		assert_int_equal(at->base[i], 0xa5);
}

static struct rogue *rogue;

static int stop(void **state)
{
	assert_untouched(&field);
	put_and_wait(honest_client.link, &field.remote, 0, patterned(100, 1, true));

	unsigned before = honest_server.messages;

	assert_int_equal(plx_link_send(honest_client.link, "well?", 5), 0);
	assert_true(pump_until(&honest_server.messages, before + 1, 5000));
	assert_pattern(field.base, 100, 1);
	assert_int_equal(honest_client.closed + honest_server.closed, 0);
	plx_link_abort(honest_client.link);
	assert_true(pump_until(&honest_server.closed, 1, 5000));
	fixture_stop();
	field_free(&field);
	free(honest_server.last);
	free(honest_client.last);
	return 0;
}

/* A put or get that plx_link_put would refuse. */
static void reach(const struct plx_remote *remote, uint64_t offset, size_t bytes, bool get)
{
	struct tally tally = {0};
	struct plx_buf *buf = get ? empty_buf(bytes, true) : patterned(bytes, 9, true);
	int rc = get ? plx_link_get(client.link, remote, offset, (uint32_t)bytes, buf, tally_one,
				    &tally)
		     : plx_link_put(client.link, remote, offset, buf, tally_one, &tally);

	if (rc)
		fail_msg("refused here: %s", plx_error());
	expect_both_end();
	assert_int_equal(tally.ok + tally.failed, 1);
	assert_true(tally.failed || !get);
}

#define TEST(name) PLX_TEST_WITH(name, start, stop)

TEST(a_grant_is_valid_only_on_its_link)
{
	for (unsigned get = 0; get < 2; get++) {
		direct_connect_again();
		reach(&field.remote, 0, 100, get);
	}
}

/* Separate memory, granted to the second client, which then requests more. Linux's soft iWARP (6.1)
 * does not check the read right: doc/design/direct-data.md. */
TEST(memory_cannot_be_reached_beyond_its_grant_or_rights)
{
	static const struct {
		unsigned access;
		uint64_t offset;
		size_t bytes;
		bool get;
	} rows[] = {
		{READ_WRITE, 4096, 1, false},     {READ_WRITE, 4096, 1, true},
		{READ_WRITE, 4000, 97, false},    {READ_WRITE, 4000, 97, true},
		{READ_WRITE, 1 << 19, 64, false}, {READ_WRITE, 1 << 19, 64, true},
		{PLX_REMOTE_READ, 0, 100, false}, {PLX_REMOTE_WRITE, 0, 100, true},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct plx_remote lie;
		struct field own;

		if (rows[i].access == PLX_REMOTE_WRITE && is_over_iwarp())
			continue;
		direct_connect_again();
		own = field_make(server.link, 4096, rows[i].access);
		lie = own.remote;
		lie.bytes = 1 << 20;
		lie.access = READ_WRITE;
		reach(&lie, rows[i].offset, rows[i].bytes, rows[i].get);
		assert_untouched(&own);
		field_free(&own);
	}
}

/* Rogue peers ---------------------------------------------------------------------------------- */

static struct rogue *open_rogue(void)
{
	struct frame_hello hello = rogue_good_hello();

	hello.features = FEATURE_DIRECT | 0x80000000; /* and an unknown one */
	return rogue_open(direct_listener, &hello);
}

PLX_FIXTURE(start_with_rogue, 0, (start(state), rogue = open_rogue()))

#define WITH_ROGUE(name) PLX_TEST_WITH(name, start_with_rogue, stop)

WITH_ROGUE(a_value_of_more_than_32_bits_ends_the_link)
{
	uint64_t data = UINT64_C(1) << 40;

	if (is_provider_given() || !rogue_write(rogue, &(struct rogue_write){.data = &data})) {
		rogue_close(rogue);
		assert_true(pump_until(&server.closed, 1, 5000));
		skip(); /* RDMA carries no more */
	}
	rogue_expect_end(PLX_LINK_PROTOCOL, "more than 32 bits");
}

TEST(a_put_notification_before_hello_ends_the_connection)
{
	uint64_t data = 1;

	rogue = rogue_connect(plx_listener_address(direct_listener));
	if (!rogue_write(rogue, &(struct rogue_write){.data = &data}))
		rogue_send_payload(rogue, FRAME_PUT, "abcd", 4);
	expect_soon(listener_stats_of(direct_listener).failed);
	assert_int_equal(listener_stats_of(direct_listener).failed, 1);
	assert_int_equal(server.opened, 0);
}

static _Atomic unsigned released;

static void on_released(void *base, size_t bytes, void *arg)
{
	released++;
	assert_int_equal(server.closed, 0); /* before the closure is reported */
}

/* When the peer is asked, a wrong answer frees nothing before the link has ended. Without an answer
 * the memory stays in use until the program gives up. */
WITH_ROGUE(a_false_or_missing_revoked_frame_frees_nothing_early)
{
	for (unsigned silent = 0; silent < 2; silent++) {
		bool at_once = server.link->direct->revokes_at_once;
		struct field own = field_make(server.link, 100, PLX_REMOTE_WRITE);

		released = 0;
		plx_region_revoke(own.region, on_released, NULL);
		pump_ms(50);
		assert_int_equal(released, at_once);
		if (silent)
			plx_link_abort(server.link);
		else
			rogue_send_payload(rogue, FRAME_REVOKED, "12345678", 8);
		assert_true(pump_until(&server.closed, 1, 5000));
		assert_int_equal(released, 1);
		rogue_close(rogue);
		field_free(&own);
		server = (struct side){.name = "server"};
		rogue = open_rogue();
	}
}

FIXTURE_MAIN("tcp", "foreign")
