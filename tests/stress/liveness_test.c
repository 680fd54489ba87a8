/* SPDX-License-Identifier: BSD-3-Clause */
/* Two processes of two lcores each, with short periods. Links open and close constantly on all
 * lcores, while one process is stopped now and then. Presences and peers are created, checked,
 * queried by other lcores and freed at any moment; none may be left at the end. */
#include "dice.h"
#include "fixture.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEARTBEAT_NS (10 * PLX_NS_PER_MS)
#define SLOTS        12 /* links per lcore */
#define STOPPED_MS   400
/* A host that was late itself tolerates silence longer, up to 20 s: see liveness.c. */
#define ROUNDS_MAX 50

static char address[PLX_ADDRESS_MAX];

static void echo(struct plx_link *link, struct plx_buf *message, void *user)
{
	plx_link_send(link, message->data, message->len);
}

static const struct plx_link_events echo_events = {.on_message = echo};

static void be_the_peer(int out)
{
	struct plx_listen_attr attr = {.link = {.events = &echo_events},
				       .spread = PLX_SPREAD_ROUND_ROBIN};
	struct plx_listener *listener;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* even if the test crashes */
	fixture_start_beating(HEARTBEAT_NS, 0, true);
	worker_start();
	if (plx_link_listen("127.0.0.1:0", &attr, &listener) != 0)
		_exit(1);
	snprintf(address, sizeof(address), "%s", plx_listener_address(listener));
	if (write(out, address, sizeof(address)) < 0)
		_exit(1);
	plx_loop_run();
	_exit(1);
}

static pid_t start_peer(void)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		be_the_peer(fds[1]);
	assert_int_equal(read(fds[0], address, sizeof(address)), sizeof(address));
	close(fds[0]);
	close(fds[1]);
	return pid;
}

struct slot {
	struct plx_link *link;
	struct plx_timer timer;
	uint64_t random;
};

static struct slot slots[2][SLOTS];
static _Atomic bool over;
static _Atomic unsigned live, ends[PLX_LINK_REASON_COUNT], suspects;

static void in_a_while(struct slot *slot)
{
	plx_timer_start(&slot->timer, dice_next(&slot->random) % (30 * PLX_NS_PER_MS));
}

static void on_open(struct plx_link *link, void *user)
{
	in_a_while(user);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct slot *slot = user;

	slot->link = NULL;
	ends[reason]++;
	live--;
	plx_timer_stop(&slot->timer);
	in_a_while(slot);
}

static const struct plx_link_events events = {.on_open = on_open, .on_close = on_close};

static void begin(struct slot *slot)
{
	struct plx_link_attr attr = {.events = &events, .user = slot};

	if (over)
		return;
	if (plx_link_connect(address, &attr, &slot->link) == 0)
		live++;
	else
		in_a_while(slot);
}

static void next(struct plx_timer *timer, void *arg)
{
	struct slot *slot = arg;

	if (!slot->link) {
		begin(slot);
		return;
	}
	suspects += plx_link_is_suspect(slot->link);
	switch (over ? 0 : dice_roll(&slot->random, 4)) {
	case 0:
		plx_link_abort(slot->link);
		break;
	case 1:
		plx_link_close(slot->link);
		break;
	case 2:
		plx_link_send(slot->link, "x", 1);
		in_a_while(slot);
		break;
	default:
		in_a_while(slot);
	}
}

static void begin_all(void *arg)
{
	struct slot *mine = arg;

	for (unsigned i = 0; i < SLOTS; i++) {
		mine[i].random = 88172645463325252u + (uint64_t)(&mine[i] - slots[0]);
		plx_timer_init(&mine[i].timer, next, &mine[i]);
		begin(&mine[i]);
	}
}

static void stop_timers(void *arg)
{
	struct slot *mine = arg;

	for (unsigned i = 0; i < SLOTS; i++)
		plx_timer_stop(&mine[i].timer);
}

PLX_TEST(links_come_and_go_and_their_process_stops)
{
	const char *soak = getenv("PLX_TEST_SOAK");
	unsigned rounds = soak ? 40 : 3;
	pid_t peer = start_peer();

	fixture_start_beating(HEARTBEAT_NS, 0, true);
	worker_start();
	begin_all(slots[0]);
	worker_call(begin_all, slots[1]);
	for (unsigned i = 0; i < rounds || (!ends[PLX_LINK_SILENT] && i < ROUNDS_MAX); i++) {
		pump_ms(500);
		kill(peer, SIGSTOP);
		pump_ms(STOPPED_MS);
		kill(peer, SIGCONT);
	}
	over = true;
	for (unsigned i = 0; i < 200 && live; i++)
		pump_ms(50);
	assert_int_equal(live, 0);
	stop_timers(slots[0]);
	worker_call(stop_timers, slots[1]);
	worker_stop();
	fixture_stop();
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
	print_message("%u closed, %u aborted, %u silent, %u peer down, suspect %u times\n",
		      ends[PLX_LINK_CLOSED], ends[PLX_LINK_ABORTED], ends[PLX_LINK_SILENT],
		      ends[PLX_LINK_PEER_DOWN], suspects);
	assert_true(ends[PLX_LINK_CLOSED] && ends[PLX_LINK_ABORTED] && ends[PLX_LINK_SILENT]);
}

PLX_TEST_MAIN()
