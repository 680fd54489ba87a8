/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes mean the same in all structures: 0 is the default, and a field's maximum (PLX_NEVER,
 * PLX_NO_LIMIT, PLX_NONE) either works or is refused, as the table says. */
#include "attributes_fixture.h"

/* The table ------------------------------------------------------------------------------------ */

#define ROW(type, field, greatest)                                   \
	{#type "." #field, try_##type, offsetof(struct type, field), \
	 sizeof(((struct type *)0)->field), greatest}

#define WORKS   0
#define REFUSED -EINVAL

static const struct row {
	const char *name;
	try_fn try;
	size_t offset, bytes;
	int greatest; /* the result of the maximum */
} rows[] = {
	ROW(plx_admission, links_max, WORKS),
	ROW(plx_admission, links_per_host_max, WORKS),
	ROW(plx_admission, accepts_per_s, WORKS),
	ROW(plx_admission, handshakes_max, WORKS),
	ROW(plx_link_attr, rx_buf_bytes, REFUSED),
	ROW(plx_link_attr, rx_buf_count, REFUSED),
	ROW(plx_link_attr, message_max_bytes, REFUSED),
	ROW(plx_link_attr, connect_timeout_ns, WORKS),
	ROW(plx_link_attr, hello_timeout_ns, WORKS),
	ROW(plx_link_attr, close_timeout_ns, WORKS),
	ROW(plx_rpc_method, open_max, WORKS),
	ROW(plx_rpc_method, request_max, WORKS),
	ROW(plx_rpc_service_attr, request_max, REFUSED),
	ROW(plx_rpc_service_attr, open_max, WORKS),
	ROW(plx_rpc_service_attr, open_total, WORKS),
	ROW(plx_rpc_service_attr, waiting_max, WORKS),
	ROW(plx_rpc_service_attr, turn_max, WORKS),
	ROW(plx_rpc_service_attr, turn_ns, WORKS),
	ROW(plx_rpc_service_attr, self_test_rate, WORKS),
	ROW(plx_rpc_service_attr, keys_max, WORKS),
	ROW(plx_rpc_service_attr, key_bytes_max, WORKS),
	ROW(plx_rpc_service_attr, key_ns, REFUSED),
	ROW(plx_rpc_service_attr, clients_max, WORKS),
	ROW(plx_rpc_service_attr, slow_ns, WORKS),
	ROW(plx_rpc_client_attr, reply_max, REFUSED),
	ROW(plx_rpc_client_attr, deadline_ns, WORKS),
	ROW(plx_rpc_client_attr, calls_max, WORKS),
	ROW(plx_rpc_client_attr, waiting_max, WORKS),
	ROW(plx_rpc_client_attr, identity, WORKS), /* an ordinary number */
	ROW(plx_rpc_client_attr, reconnect_min_ns, WORKS),
	ROW(plx_rpc_client_attr, reconnect_max_ns, WORKS),
	ROW(plx_rpc_call, deadline_ns, WORKS),
	ROW(netio_connect_attr, connect_timeout_ns, WORKS),
	ROW(netio_connect_attr, reconnect_min_ns, WORKS),
	ROW(netio_connect_attr, reconnect_max_ns, WORKS),
	ROW(netio_connect_attr, message_max_bytes, REFUSED),
	ROW(netio_buffered_attr, page_bytes, REFUSED),
	ROW(netio_buffered_attr, page_count, REFUSED),
	ROW(netio_buffered_attr, watermark_bytes, REFUSED),
	ROW(netio_buffered_attr, timeout_ns, WORKS),
	ROW(netio_listen_attr, buffer_bytes, REFUSED),
	ROW(netio_listen_attr, buffer_count, REFUSED),
	ROW(netio_listen_attr, message_max_bytes, REFUSED),
	ROW(netio_listen_attr, queue_count, REFUSED),
	ROW(netio_publish_attr, page_bytes, REFUSED),
	ROW(netio_publish_attr, page_count, REFUSED),
	ROW(netio_publish_attr, watermark_bytes, REFUSED),
	ROW(netio_publish_attr, timeout_ns, WORKS),
	ROW(netio_publish_attr, subscribers_max, WORKS),
	ROW(netio_publish_attr, subscriptions_max, WORKS),
	ROW(netio_publish_attr, subscriber_subscriptions_max, WORKS),
	ROW(netio_publish_attr, block_max_ns, WORKS),
	ROW(netio_publish_attr, backlog_bytes, WORKS), /* truncated to the capacity of the pages */
	ROW(netio_subscribe_attr, buffer_bytes, REFUSED),
	ROW(netio_subscribe_attr, buffer_count, REFUSED),
};

NETIO_TEST(the_largest_numbers_mean_what_the_table_says)
{
	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		uint64_t attr[256] = {0};

		memset((char *)attr + rows[i].offset, 0xff, rows[i].bytes);
		int rc = rows[i].try(attr);
		if (rc != rows[i].greatest)
			fail_msg("%s: %d instead of %d: %s", rows[i].name, rc, rows[i].greatest,
				 rc ? plx_error() : "");
	}
}

#define REFUSES(type, error, ...) {try_##type, &(const struct type){__VA_ARGS__}, error}
static const struct {
	try_fn try;
	const void *attr;
	const char *error;
} refusals[] = {
	REFUSES(plx_link_attr, "more than 1073741824 bytes in all", .rx_buf_bytes = 8 << 20,
		.rx_buf_count = 200),
	REFUSES(netio_listen_attr, "more than 1073741824 bytes in all", .buffer_bytes = 8 << 20,
		.buffer_count = 200),
	REFUSES(netio_listen_attr, "buffer_count 1: give 2 to", .buffer_count = 1),
	REFUSES(netio_listen_attr, "buffer_bytes 1: give", .buffer_bytes = 1),
	REFUSES(netio_listen_attr, "spread and queue_count", .spread = NETIO_SPREAD_ROUND_ROBIN,
		.queue_count = 1),
	REFUSES(netio_listen_attr, "spread 9: give one of enum netio_spread", .spread = 9),
	REFUSES(netio_subscribe_attr, "more than 1073741824 bytes in all", .buffer_bytes = 8 << 20,
		.buffer_count = 200),
	REFUSES(netio_subscribe_attr, "buffer_count 1: give 2 to 200", .buffer_count = 1),
	REFUSES(netio_connect_attr, "message_max_bytes", .message_max_bytes = 1),
	REFUSES(netio_buffered_attr, "page_bytes 255: give", .page_bytes = 255),
	REFUSES(netio_buffered_attr, "page_count 1: give 2 to", .page_count = 1),
	REFUSES(netio_buffered_attr, "watermark_bytes 1025: give at most page_bytes, 1024",
		.page_bytes = 1024, .watermark_bytes = 1025),
	REFUSES(netio_buffered_attr, "message_max_bytes", .connect.message_max_bytes = 1),
	REFUSES(netio_publish_attr, "page_count 1: give 2 to", .page_count = 1),
	REFUSES(netio_publish_attr, "policy 99", .policy = 99),
	REFUSES(netio_publish_attr, "refuse_block", .refuse_block = true),
	REFUSES(plx_rpc_service_attr, "request_max", .request_max = PLX_RPC_PAYLOAD_MAX + 1),
	REFUSES(plx_rpc_service_attr, "key_ns 1: give 1 ms to 24 h", .key_ns = 1),
	REFUSES(plx_rpc_client_attr, "reply_max", .reply_max = PLX_RPC_PAYLOAD_MAX + 1),
};

/* Each refusal names the field, what was given, and what is allowed. */
NETIO_TEST(values_out_of_range_are_refused_with_the_reason)
{
	for (unsigned i = 0; i < PLX_ARRAY_LEN(refusals); i++)
		assert_fails(refusals[i].try(refusals[i].attr), -EINVAL, refusals[i].error);
}

PLX_TEST_MAIN()
