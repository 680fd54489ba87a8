/* SPDX-License-Identifier: BSD-3-Clause */
/* Very many messages of all sizes, by copy and by reference, each checked byte by byte. */
#include "fixture.h"

#define MESSAGES       100000
#define SIZE_MAX_BYTES (1u << 20)

/* A mixture in which every size occurs, and the total is not too long for a slow host. */
static uint32_t next_size(uint64_t *random)
{
	static const struct {
		uint32_t one_in, at_most;
	} classes[] = {
		{5000, SIZE_MAX_BYTES}, {500, 65536}, {40, 9000}, {10, 4200}, {1, 256},
	};
	uint32_t pick, i = 0;

	*random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	pick = (uint32_t)(*random >> 33);
	while (pick % classes[i].one_in)
		i++;
	return (pick / classes[i].one_in) % (classes[i].at_most + 1);
}

static uint8_t pattern[SIZE_MAX_BYTES + 256];

/* Message n is a piece of the pattern, starting at n % 251. */
static const uint8_t *bytes_of(unsigned n)
{
	return pattern + n % 251;
}

static struct {
	uint64_t random;
	unsigned wrong;
} expected;

static void look_at(struct side *side, struct plx_buf *message)
{
	unsigned n = side->messages - 1;
	uint32_t size = next_size(&expected.random);

	expected.wrong += message->len != size || memcmp(message->data, bytes_of(n), size) != 0;
}

static int send_by_reference(const uint8_t *bytes, uint32_t size)
{
	struct plx_buf *buf = plx_link_buf(client.link, size);
	int rc;

	if (!buf)
		return -EAGAIN;
	memcpy(plx_buf_append(buf, size), bytes, size);
	rc = plx_link_send_buf(client.link, buf, NULL, NULL);
	if (rc)
		plx_buf_unref(buf);
	return rc;
}

static void run(const char *provider)
{
	uint64_t random = 1;
	uint32_t size = next_size(&random);
	unsigned sent = 0;

	fixture_start(provider, false);
	fixture_connect(fixture_listen(here("0"), NULL), NULL);
	server.on_message = look_at;
	expected.random = 1;
	expected.wrong = 0;
	while (sent < MESSAGES && !client.closed) {
		const uint8_t *bytes = bytes_of(sent);
		int rc = sent % 3 ? plx_link_send(client.link, bytes, size)
				  : send_by_reference(bytes, size);

		if (rc == -EAGAIN) {
			plx_loop_turn();
			continue;
		}
		if (rc)
			fail_msg("message %u of %u bytes: %s", sent, size, plx_error());
		size = next_size(&random);
		sent++;
	}
	if (!pump_until(&server.messages, MESSAGES, 20000))
		fail_msg("%s: %u of %u came; client '%s', server '%s'", provider, server.messages,
			 MESSAGES, client.text, server.text);
	assert_int_equal(expected.wrong, 0);
	print_message("%s: %u messages, %llu bytes\n", provider, server.messages,
		      (unsigned long long)server.bytes);
	fixture_stop();
}

PLX_TEST(messages_of_mixed_sizes_arrive_whole_and_in_order)
{
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 31 + (i >> 8) * 7 + (i >> 16));
	run("tcp");
	if (!is_provider_given())
		run("shm");
}

PLX_TEST_MAIN()
