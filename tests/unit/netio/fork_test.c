/* SPDX-License-Identifier: BSD-3-Clause */
/* A forked child: every call of the EAL, lcores, links, services and NetIO is refused with a text
 * that names the fork, and the parent is unaffected. */
#include "floating.h"
#include "in_child.h"
#include "netio.h"
#include "plx_eal.h"
#include "plx_fabric.h"
#include "plx_lcore.h"
#include "plx_rpc.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>

#define WORKER 5

static struct plx_link *client, *server;
static struct plx_listener *listener;
static struct plx_rpc_service *service;
static struct plx_rpc_client *caller;
static struct netio_context netio;
static struct netio_listen_socket inbox, unused;
static struct netio_buffered_send_socket buffered;
static struct plx_fd *watch;
static struct plx_timer timer;
static struct plx_signal wake;
static unsigned messages, replies, fires, established, received;
static bool client_closed;

/* A call refused in the child. */
#define REFUSED(call)                                                               \
	do {                                                                        \
		int got_ = (call);                                                  \
		if (got_ != -EPERM || !strstr(plx_error(), "forked")) {             \
			fprintf(stderr, #call " gave %d, %s\n", got_, plx_error()); \
			_exit(1);                                                   \
		}                                                                   \
	} while (0)

/* The parent ------------------------------------------------------------------------------- */

static void on_open(struct plx_link *link, void *user)
{
	if (link != client)
		server = link;
}

PLX_COUNTS(on_message, messages, struct plx_link *link, struct plx_buf *message, void *user)

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	client_closed |= link == client;
}

static const struct plx_link_events events = {
	.on_open = on_open, .on_message = on_message, .on_close = on_close};

PLX_COUNTS(on_timer, fires, struct plx_timer *which, void *arg)
PLX_COUNTS(on_fire, fires, struct plx_signal *signal, uint64_t count, void *arg)

PLX_COUNTS(on_fd, fires, int fd, uint32_t ready, void *arg)

static void handle(struct plx_rpc_request *request, const void *data, uint32_t length, void *arg)
{
	plx_rpc_reply(request, data, length);
}

static void on_reply(const struct plx_rpc_result *result, void *arg)
{
	replies += result->status == PLX_RPC_OK;
}

static int run_loop(void *arg)
{
	return plx_loop_run();
}

#define TURN_UNTIL(condition) wait_doing(condition, plx_loop_turn())

/* Everything in the parent, which the child must not have changed. */
static void assert_all_works(void)
{
	const struct plx_rpc_call call = {.method = 1, .done = on_reply};

	messages = replies = fires = received = 0;
	assert_int_equal(plx_link_send(client, "x", 1), 0);
	assert_int_equal(plx_link_send(server, "x", 1), 0);
	assert_works(plx_rpc_call_start(caller, &call, "x", 1, NULL));
	plx_signal_fire(&wake);
	assert_int_equal(netio_buffered_send(&buffered, "x", 1), NETIO_STATUS_OK);
	assert_int_equal(netio_buffered_flush(&buffered), NETIO_STATUS_OK);
	TURN_UNTIL(messages == 2 && replies == 1 && fires && received == 1);
	assert_int_equal(plx_fd_modify(watch, EPOLLIN), 0);
	assert_int_equal(plx_lcore_state(WORKER), PLX_LCORE_RUNNING);
	assert_false(plx_stopping());
	assert_false(plx_is_forked());
	assert_false(client_closed);
}

static void open_link(void)
{
	struct plx_listen_attr listen_attr = {.link.events = &events};
	struct plx_link_attr attr = {.events = &events};

	assert_int_equal(plx_link_listen("127.0.0.1:0", &listen_attr, &listener), 0);
	assert_int_equal(plx_link_connect(plx_listener_address(listener), &attr, &client), 0);
	TURN_UNTIL(server && plx_link_is_open(client));
}

static void open_service(void)
{
	const struct plx_rpc_method method = {.id = 1, .name = "echo", .handler = handle};
	const char *addresses[2] = {NULL, NULL};

	assert_int_equal(plx_rpc_service_create(NULL, &service), 0);
	assert_int_equal(plx_rpc_service_add(service, &method), 0);
	assert_int_equal(plx_rpc_service_listen(service, "127.0.0.1:0", NULL), 0);
	addresses[0] = plx_rpc_service_address(service, 0);
	assert_int_equal(plx_rpc_client_create(addresses, NULL, &caller), 0);
	TURN_UNTIL(plx_rpc_client_is_up(caller));
}

PLX_COUNTS(on_established, established, struct netio_buffered_send_socket *socket)
PLX_COUNTS(on_received, received, struct netio_recv_socket *socket, const struct netio_msg *msg)

static void open_sockets(void)
{
	established = 0;
	netio_listen_socket_init(&netio.evloop, &inbox, NULL);
	inbox.cb_msg_received = on_received;
	netio_listen_socket_init(&netio.evloop, &unused, NULL);
	assert_int_equal(netio_listen(&inbox, "127.0.0.1", 0), 0);
	netio_buffered_send_socket_init(&netio.evloop, &buffered, NULL);
	buffered.cb_connection_established = on_established;
	assert_works(
		netio_buffered_connect(&buffered, "127.0.0.1", netio_listen_socket_port(&inbox)));
	TURN_UNTIL(established == 1);
}

static int set_up_over(const char *provider)
{
	char lcores[FLOATING_BYTES];
	struct plx_eal_conf conf = {
		.lcores = floating("0,5", lcores), .huge = PLX_HUGE_NONE, .provider = provider};
	int fds[2];

	client_closed = false;
	server = NULL;
	assert_works(plx_eal_init(&conf));
	assert_int_equal(plx_lcore_launch(WORKER, run_loop, NULL), 0);
	assert_int_equal(netio_init(&netio), 0);
	open_link();
	open_service();
	open_sockets();
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(plx_fd_add(fds[0], EPOLLIN, on_fd, NULL, &watch), 0);
	plx_timer_init(&timer, on_timer, NULL);
	assert_int_equal(plx_signal_init(&wake, plx_lcore_id(), on_fire, NULL), 0);
	assert_all_works();
	return 0;
}

PLX_FIXTURE(set_up, set_up_over(NULL))
PLX_FIXTURE(set_up_tcp, set_up_over("tcp"))

static int tear_down(void **state)
{
	plx_rpc_client_destroy(caller);
	plx_rpc_service_destroy(service);
	netio_buffered_send_socket_fini(&buffered);
	netio_listen_socket_fini(&inbox);
	netio_listen_socket_fini(&unused);
	assert_int_equal(netio_fini(&netio), 0);
	assert_int_equal(plx_eal_fini(), 0);
	return 0;
}

/* Children --------------------------------------------------------------------------------- */

static void use_lcores(void)
{
	struct plx_call call = {0};

	REFUSED(plx_lcores_init(&(struct plx_lcore_conf){0}));
	REFUSED(plx_lcore_launch(WORKER, run_loop, NULL));
	REFUSED(plx_lcore_launch_all(run_loop, NULL, NULL));
	REFUSED(plx_lcore_join(WORKER, PLX_NEVER, NULL));
	REFUSED(plx_loop_run());
	REFUSED(plx_loop_turn());
	REFUSED(plx_lcore_send(WORKER, NULL, NULL));
	REFUSED(plx_lcore_send_data(WORKER, NULL, NULL, 0));
	REFUSED(plx_lcore_call(WORKER, &call));
	REFUSED(plx_poller_add("x", NULL, NULL, NULL));
	REFUSED(plx_timer_start(&timer, 1));
	REFUSED(plx_fd_add(0, EPOLLIN, on_fd, NULL, NULL));
	REFUSED(plx_fd_modify(watch, EPOLLIN));
	REFUSED(plx_signal_init(&wake, WORKER, on_fire, NULL));
	REFUSED(plx_idle_set(0, &(struct plx_idle_conf){0}));
	REFUSED(plx_lcore_stats_read(WORKER, &(struct plx_lcore_stats){0}));
	check(plx_lcore_count() == 0);
	check(plx_lcore_id() == PLX_LCORE_NONE);
	check(plx_lcores_fini(UINT64_MAX) == 0);
	plx_signal_fire(&wake);
	plx_fd_remove(watch);
	plx_stop();
}

static void use_links(void)
{
	struct plx_listen_attr listen_attr = {.link.events = &events};
	struct plx_link_attr attr = {.events = &events};
	struct plx_listener *other;
	struct plx_link *link;

	REFUSED(plx_link_send(client, "x", 1));
	REFUSED(plx_link_send(server, "x", 1));
	REFUSED(plx_link_close(client));
	REFUSED(plx_link_listen("127.0.0.1:0", &listen_attr, &other));
	REFUSED(plx_link_connect(plx_listener_address(listener), &attr, &link));
	REFUSED(plx_fabric_drain(1));
	check(!plx_link_is_open(client));
	plx_link_abort(client);
	plx_listener_close(listener);
	plx_fabric_fini();
}

static void use_services(void)
{
	struct plx_rpc_call call = {.method = 1, .done = on_reply};
	const char *addresses[2] = {"127.0.0.1:1", NULL};
	struct plx_rpc_result answer;
	struct plx_rpc_service *other;
	struct plx_rpc_client *another;

	REFUSED(plx_rpc_call_start(caller, &call, "x", 1, NULL));
	REFUSED(plx_rpc_call_wait(caller, &call, "x", 1, NULL, 0, &answer));
	REFUSED(plx_rpc_cancel(caller, 1));
	REFUSED(plx_rpc_client_create(addresses, NULL, &another));
	REFUSED(plx_rpc_service_create(NULL, &other));
	REFUSED(plx_rpc_service_listen(service, "127.0.0.1:0", NULL));
	REFUSED(plx_rpc_service_finish(service, 0));
	plx_rpc_client_destroy(caller);
	plx_rpc_service_destroy(service);
}

static void use_netio(void)
{
	struct netio_context other;

	REFUSED(netio_run(&netio.evloop));
	REFUSED(netio_post(&netio.evloop, NULL, NULL));
	REFUSED(netio_drain(&netio.evloop, 0));
	REFUSED(netio_buffered_send(&buffered, "x", 1));
	REFUSED(netio_buffered_flush(&buffered));
	REFUSED(netio_listen(&unused, "127.0.0.1", 0));
	REFUSED(netio_init(&other));
	netio_terminate(&netio.evloop);
	check(netio_fini(&netio) == 0);
}

static void use_everything(void)
{
	struct plx_eal_conf conf = {0};

	check(plx_is_forked());
	REFUSED(plx_eal_init(&conf));
	use_lcores();
	use_links();
	use_services();
	use_netio();
	check(plx_eal_fini() == 0);
	REFUSED(plx_eal_init(&conf));
}

static void only_end(void)
{
	check(plx_eal_fini() == 0);
	check(plx_eal_fini() == 0);
}

static void turn(void)
{
	REFUSED(plx_loop_turn());
}

static void fork_again(void)
{
	assert_passes(turn);
}

static int signal_to_raise;

static void die_by_signal(void)
{
	raise(signal_to_raise);
}

/* Tests ------------------------------------------------------------------------------------ */

#define TEST(name) PLX_TEST_WITH(name, set_up, tear_down)

TEST(every_call_is_refused_in_the_child)
{
	assert_passes(use_everything);
	assert_all_works();
}
PLX_TEST_AGAIN(every_call_is_refused_in_the_child, set_up_tcp, tear_down)

TEST(fini_in_the_child_leaves_the_parent_alone)
{
	assert_passes(only_end);
	assert_passes(fork_again);
	assert_all_works();
}

TEST(the_child_restores_the_signals_of_the_program)
{
	static const int caught[] = {SIGTERM, SIGINT};
	struct sigaction before[2];

	for (unsigned i = 0; i < PLX_ARRAY_LEN(caught); i++)
		sigaction(caught[i], &(struct sigaction){.sa_handler = SIG_DFL}, &before[i]);
	plx_stop_on_signals();
	for (unsigned i = 0; i < PLX_ARRAY_LEN(caught); i++) {
		signal_to_raise = caught[i];
		assert_dies(die_by_signal, caught[i]);
	}
	assert_all_works();
	for (unsigned i = 0; i < PLX_ARRAY_LEN(caught); i++)
		sigaction(caught[i], &before[i], NULL);
}

static unsigned polls;
static pid_t forked_by_timer;

static void fork_in_callback(struct plx_timer *which, void *arg)
{
	fflush(NULL);
	forked_by_timer = fork();
	polls = 0;
	if (forked_by_timer)
		plx_loop_quit();
	else
		alarm(60);
}

static int count_polls(void *arg, uint64_t now_ns)
{
	polls++;
	return 0;
}

TEST(a_child_that_returns_from_a_callback_leaves_the_loop)
{
	struct plx_poller *poller;
	struct plx_timer once;
	int status = -1, rc;

	assert_int_equal(plx_poller_add("count", count_polls, NULL, &poller), 0);
	plx_timer_init(&once, fork_in_callback, NULL);
	assert_int_equal(plx_timer_start(&once, 1), 0);
	rc = plx_loop_run();
	if (forked_by_timer == 0) {
		check(rc == -EPERM && strstr(plx_error(), "forked"));
		check(polls == 0);
		_exit(0);
	}
	assert_int_equal(rc, 0);
	assert_int_equal(waitpid(forked_by_timer, &status, 0), forked_by_timer);
	assert_int_equal(status, 0);
	plx_poller_remove(poller);
	assert_all_works();
}

static int eal_up_and_down(void)
{
	struct plx_eal_conf conf = {.huge = PLX_HUGE_NONE};

	if (plx_is_forked() || plx_eal_init(&conf))
		return 1;
	if (plx_loop_turn() < 0)
		return 2;
	return plx_eal_fini() ? 3 : 0;
}

static void init_in_child(void)
{
	int rc = eal_up_and_down();

	if (rc)
		fprintf(stderr, "%d: %s\n", rc, plx_error());
	_exit(rc);
}

PLX_TEST(forks_before_init_and_after_fini_do_not_restrict_the_child)
{
	assert_passes(init_in_child);
	assert_int_equal(eal_up_and_down(), 0);
	assert_passes(init_in_child);
}

PLX_TEST_MAIN()
