/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs and threads that end without netio_fini. Each test's sender is a child process. */
#include "netio_fixture.h"

#include <pthread.h>
#include <sys/wait.h>

#define MESSAGES 1000

static struct netio_buffered_send_socket sender;
static struct netio_timer timer;
static int port_pipe[2];
static unsigned port;

/* The child ---------------------------------------------------------------------------------- */

static void on_established(struct netio_buffered_send_socket *socket)
{
	for (unsigned i = 0; i < MESSAGES; i++)
		netio_buffered_send(socket, &i, sizeof(i));
	plx_loop_quit();
}

static void on_established_exit(struct netio_buffered_send_socket *socket)
{
	on_established(socket);
	exit(0);
}

static bool has_run;

static void on_timer(void *data)
{
	if (has_run)
		_exit(9);
}

/* Return: after the messages were accepted; none has left, since no page is full. */
static void send_all(struct netio_context *context, struct netio_buffered_send_socket *socket,
		     void (*established)(struct netio_buffered_send_socket *))
{
	if (netio_init(context) || netio_buffered_send_socket_init(&context->evloop, socket, NULL))
		_exit(8);
	netio_timer_init(&context->evloop, &timer);
	timer.cb = on_timer;
	netio_timer_start_ms(&timer, 1);
	socket->cb_connection_established = established;
	if (netio_buffered_connect(socket, test_host(), port) || netio_run(&context->evloop))
		_exit(7);
	has_run = true;
}

static void return_from_main(void)
{
	send_all(&ctx, &sender, on_established);
}

static void exit_in_a_callback(void)
{
	send_all(&ctx, &sender, on_established_exit);
}

static void fork_and_return(void)
{
	return_from_main();
	if (fork() == 0)
		exit(0); /* must not close the parent's connection */
	wait(NULL);
}

static void *thread_returns(void *arg)
{
	send_all(&ctx, &sender, on_established);
	return NULL;
}

static void end_a_thread(void)
{
	run_in_thread(thread_returns, NULL);
	if (plx_lcore_count() != 0) /* it was the last one */
		_exit(6);
}

static void end_a_thread_before_another(void)
{
	static struct netio_context other;

	if (netio_init(&other))
		_exit(5);
	run_in_thread(thread_returns, NULL);
	if (plx_lcore_count() != 2 || netio_fini(&other) || plx_lcore_count() != 0)
		_exit(4);
}

static void expect_warning(enum plx_log_level level, const char *component, const char *line,
			   void *arg)
{
	if (strstr(line, "was on the stack"))
		_exit(0);
}

/* AddressSanitizer would move these variables to the heap. */
#define ON_THE_STACK PLX_NOINLINE __attribute__((no_sanitize("address")))

ON_THE_STACK static void exit_with_a_socket_on_the_stack(void)
{
	struct netio_buffered_send_socket on_stack;

	plx_log_set_sink(expect_warning, NULL);
	send_all(&ctx, &on_stack, on_established);
	exit(3);
}

ON_THE_STACK static void use_the_stack(void)
{
	struct netio_context on_stack;

	send_all(&on_stack, &sender, on_established);
}

static PLX_NOINLINE void fill_the_stack(void)
{
	volatile char bytes[16384];

	memset((char *)bytes, 0xee, sizeof(bytes));
}

/* What was its memory has other contents when the process ends. */
static void return_with_a_context_on_the_stack(void)
{
	use_the_stack();
	fill_the_stack();
}

/* The receiver ------------------------------------------------------------------------------- */

static struct netio_listen_socket receiver;
static unsigned received;
static enum plx_link_reason reason_of_end;

static void on_message(struct netio_recv_socket *from, const struct netio_msg *msg)
{
	assert_int_equal(*(const unsigned *)msg->data, received);
	received++;
}

static void on_closed(struct netio_recv_socket *from, enum plx_link_reason reason, const char *why)
{
	reason_of_end = reason;
	terminate(NULL);
}

/* Of LeakSanitizer, if it is there: these programs end without netio_fini. */
__attribute__((weak)) void __lsan_disable(void);

static void be_child(void (*body)(void))
{
	alarm(30);
	if (__lsan_disable)
		__lsan_disable();
	netio_options_with("");
	if (read(port_pipe[0], &port, sizeof(port)) != sizeof(port))
		_exit(2);
	body();
	exit(0);
}

/* Return: how many messages came from a child that runs body and returns from main. */
static unsigned receive_from(void (*body)(void))
{
	int status = -1;
	pid_t child;

	assert_int_equal(pipe(port_pipe), 0);
	child = fork(); /* before Pollux starts in either */
	if (child == 0)
		be_child(body);
	netio_up(NULL);
	received = 0;
	assert_works(netio_listen_socket_init(&ctx.evloop, &receiver, NULL));
	receiver.cb_msg_received = on_message;
	receiver.cb_connection_closed = on_closed;
	assert_works(netio_listen(&receiver, test_host(), 0));
	port = netio_listen_socket_port(&receiver);
	assert_int_equal(write(port_pipe[1], &port, sizeof(port)), sizeof(port));
	run();
	netio_down(NULL);
	close(port_pipe[0]);
	close(port_pipe[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return received;
}

PLX_TEST(what_was_accepted_leaves_when_a_program_or_a_thread_returns)
{
	static void (*const bodies[])(void) = {return_from_main, end_a_thread,
					       end_a_thread_before_another, fork_and_return};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(bodies); i++) {
		assert_int_equal(receive_from(bodies[i]), MESSAGES);
		assert_int_equal(reason_of_end, PLX_LINK_CLOSED);
	}
}

PLX_TEST(exit_in_a_callback_sends_nothing_more)
{
	assert_int_equal(receive_from(exit_in_a_callback), 0);
}

PLX_TEST(memory_of_a_function_that_has_returned_is_not_touched)
{
	assert_int_equal(receive_from(exit_with_a_socket_on_the_stack), 0);
	assert_int_equal(receive_from(return_with_a_context_on_the_stack), 0);
}

PLX_TEST_MAIN()
