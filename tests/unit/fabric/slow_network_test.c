/* SPDX-License-Identifier: BSD-3-Clause */
/* A frame that takes longer than the allowed silence, to another process: over a slow network, and
 * over shared memory from a process that is slow. */
#include "fixture.h"
#include "own_network.h"

#include <signal.h>
#include <sys/wait.h>

static pid_t peer;
static char peer_address[PLX_ADDRESS_MAX];

struct slow {
	const char *provider, *rate;
	uint32_t bytes;
	unsigned own_us; /* a turn takes that much longer */
};

static void answer(struct plx_link *link, struct plx_buf *message, void *user)
{
	if (message->len > 1)
		plx_link_send(link, "!", 1);
}

static void be_the_peer(const struct slow *slow, int out)
{
	static const struct plx_link_events events = {.on_message = answer};
	struct plx_listen_attr attr = {
		.link = {.events = &events, .rx_buf_bytes = slow->bytes + 64, .rx_buf_count = 2}};
	struct plx_listener *listener;

	fixture_start(slow->provider, false);
	if (plx_link_listen("127.0.0.1:0", &attr, &listener) != 0)
		_exit(1);

	const char *address = plx_listener_address(listener);

	if (write(out, address, strlen(address) + 1) < 0)
		_exit(1);
	while (plx_loop_turn() >= 0)
		continue;
	_exit(1);
}

static void start_peer(const struct slow *slow)
{
	int pipe_fds[2];

	assert_int_equal(pipe(pipe_fds), 0);
	peer = fork();
	assert_true(peer >= 0);
	if (peer == 0)
		be_the_peer(slow, pipe_fds[1]);
	close(pipe_fds[1]);
	assert_true(read(pipe_fds[0], peer_address, sizeof(peer_address)) > 0);
	close(pipe_fds[0]);
}

static void send_slowly(struct slow slow)
{
	uint64_t begin_ns, end_ns;
	uint8_t *message = calloc(1, slow.bytes);

	skip_if_provider_given();
	if (slow.rate)
		own_slow_network(slow.rate);
	start_peer(&slow);
	fixture_start(slow.provider, false);
	client_connect(peer_address, NULL);
	assert_true(pump_until(&client.opened, 1, 5000));
	assert_int_equal(plx_link_send(client.link, message, slow.bytes), 0);
	begin_ns = plx_now_ns();
	end_ns = begin_ns + 60 * PLX_NS_PER_S;
	while (!client.messages && !client.closed && plx_now_ns() < end_ns) {
		plx_loop_turn();
		usleep(slow.own_us);
	}
	if (client.closed || !client.messages)
		fail_msg("after %llu ms: '%s'", (plx_now_ns() - begin_ns) / 1000000ull,
			 client.text);
	/* Otherwise this test proves nothing. */
	assert_true(plx_now_ns() - begin_ns > 500 * PLX_NS_PER_MS);
	free(message);
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
	fixture_stop();
}

PLX_TEST(a_frame_of_1_mib_arrives_over_8_megabits_per_second)
{
	send_slowly((struct slow){"tcp", "8mbit", 1 << 20, 0});
}

PLX_TEST(a_long_frame_over_shared_memory_arrives_from_a_process_that_is_slow)
{
	send_slowly((struct slow){"shm", NULL, 8 << 20, 50000});
}

PLX_TEST_MAIN()
