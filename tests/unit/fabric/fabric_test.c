/* SPDX-License-Identifier: BSD-3-Clause */
/* The fabric as a whole: starting, stopping, and work in flight while it stops. */
#include "fixture.h"
#include "misuse.h"

#include "../../../drivers/tcp/sys.h"

#include <fcntl.h>
#include <sched.h>
#include <time.h>

static struct plx_listener *reconnect_to;
static unsigned reconnects;

static bool connect_again(struct plx_link **link_out);

static void reconnect(struct plx_link *link, enum plx_link_reason reason, const char *text,
		      void *user)
{
	struct plx_link *next;

	reconnects += connect_again(&next);
}

static bool connect_again(struct plx_link **link_out)
{
	static const struct plx_link_events again = {.on_close = reconnect};
	struct plx_link_attr attr = {.events = &again};

	return plx_link_connect(plx_listener_address(reconnect_to), &attr, link_out) == 0;
}

PLX_TEST(an_endlessly_reconnecting_link_does_not_block_the_drain)
{
	struct plx_link *link;

	fixture_start(NULL, false);
	reconnect_to = fixture_listen(here("0"), NULL);
	assert_true(connect_again(&link));
	assert_true(pump_until(&server.opened, 1, 2000));
	plx_link_abort(link);
	pump_ms(50);
	assert_true(reconnects > 0);
	reconnects = 0;
	reconnect_to = fixture_listen(here("0"), NULL);
	assert_int_equal(plx_fabric_drain(PLX_NS_PER_S), 0);
	assert_int_equal(reconnects, 0);
	fixture_stop();
}

#define SLOW_LINKS 30
#define CLOSE_NS   (50 * PLX_NS_PER_MS) /* all of them together take longer than one may */

static int close_slowly(int fd)
{
	nanosleep(&(struct timespec){.tv_nsec = CLOSE_NS}, NULL);
	return close(fd);
}

PLX_TEST(plx_fabric_fini_closes_all_links_even_slow_ones)
{
	struct plx_link_attr attr = {.rx_buf_bytes = 256, .rx_buf_count = 4};
	struct plx_listener *listener;

	fixture_start("tcp", false);
	listener = fixture_listen(here("0"), NULL);
	for (int i = 0; i < SLOW_LINKS; i++)
		client_connect(plx_listener_address(listener), &attr);
	assert_true(pump_until(&client.opened, SLOW_LINKS, 10000));
	tcp_sys.close = close_slowly;
	fixture_stop(); /* which fails if one was given up */
	tcp_sys.close = close;
	assert_int_equal(client.closed, SLOW_LINKS);
}

/* Stopping, with a buffer of one lcore on a link of the other --------------------------------- */

static struct side far;
static struct plx_buf *foreign; /* received on lcore 0, sent on lcore 1 */
static _Atomic bool is_sent;
static _Atomic int send_result, sent_status;

static void connect_far(void *arg)
{
	side_connect(&far, plx_listener_address(arg), NULL);
}

static void on_sent(struct plx_link *link, struct plx_buf *buf, int status, void *arg)
{
	sent_status = status;
}

/* Longer than the available credit, so that it stays until the end. */
static void send_foreign(void *arg)
{
	struct plx_buf *head = plx_buf_alloc(200000);

	plx_buf_append(head, 200000);
	plx_buf_chain(head, foreign);
	send_result = plx_link_send_buf(far.link, head, on_sent, NULL);
	is_sent = true;
}

PLX_TEST(fini_frees_a_buffer_queued_on_a_link_of_another_lcore)
{
	fixture_start(NULL, true);
	far = (struct side){.name = "far"};
	is_sent = false;
	sent_status = 1;

	struct plx_listener *listener = fixture_listen(here("0"), NULL);

	fixture_connect(listener, NULL);
	server.keep = 1;
	expect_arrival("of lcore 0", 10);
	foreign = plx_buf_ref(server.kept[0]);
	worker_start();
	worker_call(connect_far, listener);
	assert_true(pump_until(&far.opened, 1, 2000));
	assert_int_equal(plx_lcore_send(1, send_foreign, NULL), 0);
	wait_until(is_sent); /* this loop stands still, because it would grant more */
	assert_int_equal(send_result, 0);
	worker_stop();
	fixture_stop(); /* which checks memory */
	assert_int_equal(sent_status, -ECONNRESET);
	assert_int_equal(far.reason, PLX_LINK_ABORTED);
}

/* Child programs ------------------------------------------------------------------------------ */

#define FD_MAX 2048

static bool is_inheritable(int fd)
{
	int flags = fcntl(fd, F_GETFD);

	return flags >= 0 && !(flags & FD_CLOEXEC);
}

static unsigned inheritable(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < FD_MAX; fd++)
		count += is_inheritable(fd);
	return count;
}

static void expect_nothing_of_a_link_is_inherited(const char *provider)
{
	unsigned before = inheritable();
	struct plx_listener *listener;

	fixture_start(provider, true);
	worker_start();
	listener = fixture_listen("127.0.0.1:0", NULL);
	assert_int_equal(inheritable(), before);
	fixture_connect(listener, NULL);
	assert_int_equal(inheritable(), before);
	worker_stop();
	fixture_stop();
}

PLX_TEST(a_child_inherits_no_descriptors_of_a_link)
{
	expect_nothing_of_a_link_is_inherited("tcp");
	expect_nothing_of_a_link_is_inherited("shm");
}

/* Threads that are not lcores ------------------------------------------------------------------ */

static void *use_links(void *arg)
{
	struct plx_listen_attr listen_attr = {.link.events = &side_events};
	struct plx_listener *listener;
	struct plx_link *link;

	assert_fails(plx_link_connect("127.0.0.1:1", &listen_attr.link, &link), -ENOENT,
		     "plx_link_connect: this thread is not an lcore");
	assert_fails(plx_link_listen("127.0.0.1:0", &listen_attr, &listener), -ENOENT,
		     "plx_link_listen: this thread is not an lcore");
	return NULL;
}

PLX_TEST(calls_from_other_threads_fail_and_name_the_function)
{
	fixture_start(NULL, false);
	run_in_thread(use_links, NULL);
	fixture_stop();
}

/* Other lcores --------------------------------------------------------------------------------- */

static struct plx_listener *owned;

static void set_up(void)
{
	fixture_start("tcp", false);
	owned = fixture_pair(NULL);
}

MISUSE(plx_link_send, client.link, "x", 1)
MISUSE(plx_link_send_buf, client.link, plx_buf_alloc(1), NULL, NULL)
MISUSE(plx_link_buf, client.link, 1)
MISUSE(plx_link_credit, client.link)
MISUSE(plx_link_close, client.link)
MISUSE(plx_link_abort, client.link)
MISUSE(plx_listener_close, owned)

PLX_TEST(links_and_listeners_may_be_used_only_on_their_lcore)
{
	assert_misuses(set_up);
}

PLX_TEST_MAIN()
