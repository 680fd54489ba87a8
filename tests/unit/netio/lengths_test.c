/* SPDX-License-Identifier: BSD-3-Clause */
/* One limit for copies, of all functions and on idle and busy links: PLX_SEND_COPY_MAX. */
#include "lengths_fixture.h"

static const struct api copying[] = {
	{"netio_send", send_copy, 1, "netio_sendv_ref"},
	{"netio_buffered_send", send_buffered, 1, "netio_sendv_ref"},
	{"netio_reply", reply_copy, 1, "netio_replyv_ref"},
	{"netio_push", push_copy, 1, "netio_sendv_ref"},
	{"netio_buffered_publish", publish_copy, 2, "netio_unbuffered_publishv"},
	{"plx_rpc_call_start", call_service, 1, "plx_link_send_buf"},
	{"plx_rpc_reply", answer_call, 1, "plx_link_send_buf"},
};

static void fill_link(const struct api *api)
{
	for (unsigned i = 0; i < 40 && api->send(FILLER) == 0; i++)
		continue;
}

static void expect_refusal(const struct api *api, size_t len)
{
	char length[32];
	int rc = api->send(len);

	if (rc != -EMSGSIZE)
		fail_msg("%s, %zu bytes: %d", api->name, len, rc);
	snprintf(length, sizeof(length), "%zu bytes", len);
	assert_error_has(length);
	assert_error_has("33554432");
	assert_error_has(api->instead);
}

LENGTHS_TEST(copies_above_the_limit_are_refused)
{
	static const size_t lengths[] = {PLX_SEND_COPY_MAX + 1, MIB(40), MIB(512), MIB(1024) - 1};

	all_up(provider);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(copying); i++) {
		for (unsigned j = 0; j < PLX_ARRAY_LEN(lengths); j++)
			expect_refusal(&copying[i], lengths[j]);
		fill_link(&copying[i]);
		for (unsigned j = 0; j < PLX_ARRAY_LEN(lengths); j++)
			expect_refusal(&copying[i], lengths[j]);
	}
	turn_ms(20);
	assert_int_equal(arrived, 0);
	expect_no_loss();
}

LENGTHS_TEST(copies_up_to_the_limit_arrive)
{
	all_up(provider);
	set_tail(PLX_SEND_COPY_MAX);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(copying); i++) {
		unsigned before = arrived;

		assert_works(copying[i].send(PLX_SEND_COPY_MAX));
		TURN_UNTIL(arrived == before + copying[i].copies);
		assert_int_equal(arrived_len, PLX_SEND_COPY_MAX);
	}
	expect_no_loss();
}

/* With buffered delivery, too: the pages of this publisher hold 2 MiB. */
LENGTHS_TEST(longer_messages_arrive_by_reference)
{
	all_up(provider);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(by_reference); i++) {
		const struct api *api = &by_reference[i];

		refer(api, MIB(3));
		expect_references(api->copies, MIB(3));
		refer(api, MIB(33));
		refer(api, MIB(33)); /* the link is busy */
		expect_references(2 * api->copies, MIB(33));
	}
	expect_no_loss();
}

PLX_TEST_MAIN()
