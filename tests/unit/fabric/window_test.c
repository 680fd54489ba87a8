/* SPDX-License-Identifier: BSD-3-Clause */
/* Many links share an lcore's receive resources. Both ends of each link are on one lcore here. */
#include "fabric_link.h"
#include "fixture.h"

#define MB        ((uint64_t)1 << 20)
#define MANY      500 /* connections: twice as many links */
#define FEW       25  /* for software devices in a guest */
#define LARGE     (128 * 1024)
#define LARGE_ASK ((uint64_t)(16 + LINK_RX_CONTROL) * LARGE)

static const struct plx_link_attr large = {.rx_buf_bytes = LARGE, .rx_buf_count = 16};

static struct side sides[MANY];

/* And listen for large links, or others. */
static struct plx_listener *start(uint64_t receive_bytes, const struct plx_link_attr *attr)
{
	const struct plx_fabric_conf conf = {.provider = provider_to_test(),
					     .receive_bytes = receive_bytes};

	more_descriptors();
	fixture_start_as(&conf, false);
	return fixture_listen(here("0"), attr);
}

static struct plx_link *open_one(struct plx_listener *listener, const struct plx_link_attr *attr,
				 unsigned number)
{
	memset(&sides[number], 0, sizeof(sides[number]));
	side_connect(&sides[number], plx_listener_address(listener), attr);
	assert_true(pump_until(&sides[number].opened, 1, 5000));
	return sides[number].link;
}

static bool is_whole(const struct plx_link *link)
{
	return link->rx_buf_bytes == large.rx_buf_bytes && link->rx_buf_count == large.rx_buf_count;
}

#define TEST(name) PLX_TEST_WITH(name, NULL, fixture_down)

TEST(requests_are_granted_in_full_up_to_half_of_the_memory)
{
	struct plx_listener *listener = start(31 * LARGE_ASK, &large);

	/* Each connection has two ends: eight connections use half of it, fewer over iWARP. */
	for (unsigned i = 0; i < 8; i++)
		assert_true(is_whole(open_one(listener, &large, i)) || i >= 6);

	const struct plx_link *next = open_one(listener, &large, 8);

	assert_in_range(next->rx_buf_count, LINK_RX_BUF_COUNT_MIN, 15);
	assert_int_equal(next->rx_buf_bytes, LARGE); /* there is room for that */
	assert_true((uint64_t)link_receives(next) * next->rx_buf_bytes <= LARGE_ASK);
	/* Closed links return it. */
	for (unsigned i = 0; i <= 8; i++)
		plx_link_abort(sides[i].link);
	for (unsigned i = 0; i <= 8; i++)
		assert_true(pump_until(&sides[i].closed, 1, 5000));
	expect_soon(plx_fabric_open_count() == 1);
	assert_true(is_whole(open_one(listener, &large, 0)));
}

/* A link with a small window is slower, but otherwise the same. */
TEST(long_messages_pass_through_the_smallest_window)
{
	struct plx_listener *listener = start(PLX_RECEIVE_BYTES_MIN, &large);
	uint8_t *message = fixture_pattern(300000, 0);

	open_one(listener, &large, 0); /* takes everything, because nothing was taken yet */
	fixture_connect(listener, &large);
	assert_int_equal(client.link->rx_buf_bytes, 1024);
	assert_int_equal(client.link->rx_buf_count, LINK_RX_BUF_COUNT_MIN);
	server.echo = true;
	for (unsigned round = 1; round <= 3; round++)
		expect_echo(message, 300000);
	free(message);
}

/* Their receives, and the operations of either direction. */
PLX_TEST(a_thousand_links_take_less_than_64_mib)
{
	const struct {
		uint64_t receive_bytes;
		const struct plx_link_attr *attr;
	} rows[] = {{0, NULL}, {48 * MB, &large}};
	unsigned count = is_provider_given() ? FEW : MANY;

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct plx_listener *listener = start(rows[i].receive_bytes, rows[i].attr);
		uint64_t before = zone_bytes_used();

		for (unsigned k = 0; k < count; k++)
			open_one(listener, rows[i].attr, k);
		assert_true(zone_bytes_used() - before < 64 * MB);
		fixture_stop();
	}
}

PLX_TEST(numbers_out_of_range_are_refused)
{
	static const struct {
		struct plx_fabric_conf conf;
		const char *error;
	} rows[] = {
		{{.receive_bytes = 1024}, "receive_bytes 1024: out of range; give 1048576 to"},
		{{.heartbeat_ns = PLX_HEARTBEAT_NS_MIN - 1},
		 "heartbeat_ns 9000000: out of range; give 10000000 to 3600000000000"},
		{{.heartbeat_ns = PLX_HEARTBEAT_NS_MAX + PLX_NS_PER_MS}, "heartbeat_ns"},
		{{.heartbeat_ns = PLX_HEARTBEAT_NS_MIN, .dead_after_ns = 39 * PLX_NS_PER_MS},
		 "dead_after_ns 39000000: out of range; give 40000000 to 86400000000000"},
		{{.dead_after_ns = PLX_DEAD_AFTER_NS_MAX + PLX_NS_PER_MS}, "dead_after_ns"},
		{{.dead_after_max_ns = 499 * PLX_NS_PER_MS},
		 "dead_after_max_ns 499000000: out of range; give 500000000 to 86400000000000"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct plx_fabric_conf conf = rows[i].conf;

		conf.drivers = plx_drivers;
		assert_fails(plx_fabric_init(&conf), -EINVAL, rows[i].error);
	}
}

PLX_TEST_MAIN()
