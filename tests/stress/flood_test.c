/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that send more than their receiver takes, among many that are idle: each gets its
 * share, and timers are on time. Argument: the provider. */
#include "on_time.h"
#include "socket_fixture.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#define FLOODERS     50
#define IDLE         1000

#define TICKS_LEAST  100
#define TICKS_ENOUGH 20 /* in the longest time */
#define LONGEST_NS   (20 * PLX_NS_PER_S)

static const char *provider;

#define NO_LIMITS                                                      \
	"--links-max none --links-per-host none --accepts-per-s none " \
	"--handshakes-max none "

/* The process that floods --------------------------------------------------------------------- */

static struct netio_buffered_send_socket flooders[FLOODERS];
static struct netio_send_socket idle[IDLE];

/* It sleeps meanwhile: the receiver needs the CPU more. */
static void flood(void *data)
{
	static const uint8_t message[64];

	for (unsigned i = 0; i < FLOODERS; i++) {
		while (netio_buffered_send(&flooders[i], message, sizeof(message)) == 0)
			;
	}
}

static void flood_until_killed(int from_parent)
{
	struct netio_buffered_attr small = {.page_bytes = 4096, .page_count = 8};
	struct netio_timer ticker;
	unsigned port;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(from_parent, &port, sizeof(port)) != sizeof(port))
		_exit(1);
	netio_up_with(NO_LIMITS "--idle event -l 1@1");
	for (unsigned i = 0; i < IDLE; i++) {
		assert_works(netio_send_socket_init(&ctx.evloop, &idle[i], NULL));
		assert_works(netio_connect(&idle[i], "127.0.0.1", port));
	}
	for (unsigned i = 0; i < FLOODERS; i++) {
		assert_works(netio_buffered_send_socket_init(&ctx.evloop, &flooders[i], &small));
		assert_works(netio_buffered_connect(&flooders[i], "127.0.0.1", port));
	}
	netio_timer_init(&ctx.evloop, &ticker);
	ticker.cb = flood;
	netio_timer_start_us(&ticker, 500);
	run();
}

static pid_t start_to_flood(int *to_child_out)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(ends[1]);
		flood_until_killed(ends[0]);
		_exit(1);
	}
	close(ends[0]);
	*to_child_out = ends[1];
	return pid;
}

/* The receiver --------------------------------------------------------------------------------- */

static uint64_t callback_ns;
static uint64_t counts[IDLE + FLOODERS + 1]; /* by source */
static unsigned connections, sources, lost;

static void on_connection(struct netio_recv_socket *socket)
{
	connections++;
}

static void on_lost(struct netio_recv_socket *socket, enum plx_link_reason reason, const char *why)
{
	print_error("a connection ended: %s\n", why);
	lost++;
}

static struct on_time on_time;

static void on_message(struct netio_recv_socket *socket, const struct netio_msg *msg)
{
	uint64_t began_ns = plx_now_ns();

	assert_true(msg->source < PLX_ARRAY_LEN(counts));
	sources += counts[msg->source]++ == 0;
	on_time_look(&on_time, began_ns);
	while (plx_now_ns() < began_ns + callback_ns)
		;
}

/* Enough messages of each to compare their counts. */
static bool has_enough(uint64_t began_ns)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < PLX_ARRAY_LEN(counts); i++)
		sum += counts[i];
	if (sum < FLOODERS * 200)
		return false;
	return on_time.ticks >= TICKS_LEAST || plx_time_since(began_ns, plx_now_ns()) >= LONGEST_NS;
}

static void check_shares(void)
{
	uint64_t sum = 0, least = UINT64_MAX, most = 0;

	for (unsigned i = 0; i < PLX_ARRAY_LEN(counts); i++) {
		if (!counts[i])
			continue;
		sum += counts[i];
		least = counts[i] < least ? counts[i] : least;
		most = counts[i] > most ? counts[i] : most;
	}
	print_message("%s, %llu us: %llu messages of %u, from %llu to %llu; %u ticks, %u late, up "
		      "to %llu us, and %u without the CPU\n",
		      provider, (unsigned long long)callback_ns / 1000, (unsigned long long)sum,
		      sources, (unsigned long long)least, (unsigned long long)most, on_time.ticks,
		      on_time.late, (unsigned long long)on_time.latest_ns / 1000, on_time.away);
	assert_int_equal(sources, FLOODERS);
	assert_true(least * FLOODERS >= sum - sum / 5);
	assert_true(most * FLOODERS <= sum + sum / 5);
}

static void flood_with(uint64_t takes_ns)
{
	struct netio_listen_attr attr = {.buffer_bytes = 4096, .buffer_count = 4};
	struct netio_listen_socket socket;
	int to_child, status;
	uint64_t began_ns;
	unsigned port;
	pid_t child = start_to_flood(&to_child);

	netio_up_with(NO_LIMITS "--idle poll -l 0@0");
	callback_ns = takes_ns;
	assert_works(netio_listen_socket_init(&ctx.evloop, &socket, &attr));
	socket.cb_connection_established = on_connection;
	socket.cb_connection_closed = on_lost;
	socket.cb_msg_received = on_message;
	assert_works(netio_listen(&socket, "127.0.0.1", 0));
	port = netio_listen_socket_port(&socket);
	memset(counts, 0, sizeof(counts));
	connections = sources = lost = 0;
	assert_int_equal(write(to_child, &port, sizeof(port)), sizeof(port));
	TURN_UNTIL(connections == IDLE + FLOODERS && sources == FLOODERS);
	turn_ms(200); /* no page is the first one now */

	memset(counts, 0, sizeof(counts));
	sources = 0;
	began_ns = plx_now_ns();
	on_time_start(&on_time, takes_ns + PLX_NS_PER_MS);
	while (!has_enough(began_ns))
		plx_loop_turn();
	plx_timer_stop(&on_time.timer);
	check_shares();
	assert_int_equal(lost, 0);
	if (on_time.ticks < TICKS_ENOUGH)
		print_message("this host has no CPU for it: the ticks say nothing\n");
	else
		assert_int_equal(on_time.late, 0);

	socket.cb_connection_closed = NULL;
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	close(to_child);
	netio_listen_socket_fini(&socket);
	netio_down(NULL);
}

PLX_TEST(fast_receivers_are_fair_and_on_time)
{
	flood_with(20 * PLX_NS_PER_US);
}

PLX_TEST(slow_receivers_are_fair_and_on_time)
{
	flood_with(250 * PLX_NS_PER_US);
}

int main(int argc, char **argv)
{
	provider = argc > 1 ? argv[1] : "tcp";
	setenv("PLX_TEST_PROVIDER", provider, 1);
	return plx_test_run("flood", NULL, NULL);
}
