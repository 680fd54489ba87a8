/* SPDX-License-Identifier: BSD-3-Clause */
/* Who the peer is: its program and process id, over each provider. Both ends are in this process.
 */
#include "fixture.h"
#include "log_capture.h"
#include "rogue.h"

#include <errno.h>
#include <unistd.h>

#define LIE 4711 /* a process id that is not this process's */

static struct plx_listener *listener;
static struct rogue *rogue;

static bool is_over_shm(void)
{
	return strcmp(fixture_provider, "shm") == 0;
}

static bool is_private(void)
{
	return strcmp(fixture_provider, "foreign") != 0 && !is_provider_given();
}

static int start(void **state)
{
	fixture_up(state);
	log_capture();
	assert_works(plx_log_configure("log-level", "fabric:info"));
	return 0;
}

static int stop(void **state)
{
	assert_works(plx_log_configure("log-level", "fabric:notice"));
	plx_log_set_sink(NULL, NULL);
	return fixture_down(state);
}

#define TEST(name) PLX_TEST_WITH(name, start, stop)

/* The first 15 bytes. */
static const char *own_program(void)
{
	static char name[HELLO_PROGRAM_MAX + 1];

	memcpy(name, program_invocation_short_name, HELLO_PROGRAM_MAX);
	assert_true(strlen(program_invocation_short_name) > HELLO_PROGRAM_MAX);
	return name;
}

static void expect_peer(const struct plx_link *link, const char *program, pid_t pid)
{
	assert_string_equal(plx_link_peer_program(link), program);
	assert_int_equal(plx_link_peer_pid(link), pid);
}

TEST(both_sides_know_the_program_and_the_process_of_the_other_one)
{
	char text[PLX_PEER_BYTES], expected[PLX_PEER_BYTES];

	listener = fixture_listen(here("0"), NULL);
	client_connect(plx_listener_address(listener), NULL);
	expect_peer(client.link, "", 0);
	expect_open();
	expect_peer(client.link, own_program(), getpid());
	expect_peer(server.link, own_program(), getpid());
	snprintf(expected, sizeof(expected), "%s (%s, pid %d)", plx_link_peer(server.link),
		 own_program(), (int)getpid());
	assert_string_equal(plx_link_peer_format(server.link, text), expected);
	assert_true(log_count(expected) >= 1); /* that it is open */
}

static void open_rogue(const struct frame_hello *hello)
{
	listener = fixture_listen(here("0"), NULL);
	rogue = rogue_open(listener, hello);
}

/* An older peer has no name. */
TEST(over_shm_the_kernel_gives_the_process_id_elsewhere_the_peer)
{
	struct frame_hello hello = rogue_good_hello();

	hello.pid = LIE;
	open_rogue(&hello);
	expect_peer(server.link, "", is_over_shm() ? getpid() : LIE);
}

static void expect_shown(const char *raw, const char *shown)
{
	struct frame_hello hello = rogue_good_hello();

	log_text[0] = '\0';
	memcpy(hello.program, raw, 1 + (size_t)raw[0]); /* it starts with its length */
	open_rogue(&hello);
	assert_string_equal(plx_link_peer_program(server.link), shown);
	assert_int_equal(log_count(shown), 1);
	assert_int_equal(log_count("\x1b") + log_count("\r"), 0);
	rogue_close(rogue);
	expect_end(&server, PLX_LINK_PEER_DOWN);
	fixture_renew_sides();
}

TEST(a_hostile_name_is_escaped_wherever_it_is_shown)
{
	expect_shown("\xf\x1b]0;owned\a\x1b[2J\xff", "\\x1b]0;owned\\x07\\x1b[2J\\xff");
	expect_shown("\xe"
		     "evil\r\n[notice]",
		     "evil\\x0d\\x0a[notice]");
	expect_shown("\x9"
		     "half\0rest!",
		     "half");
}

/* The HELLO of an accepting side. */
static void expect_answer(const struct frame_hello *answer, bool told)
{
	const char *own = own_program();

	assert_int_equal(answer->program[0], told ? HELLO_PROGRAM_MAX : 0);
	if (told)
		assert_memory_equal(answer->program + 1, own, HELLO_PROGRAM_MAX);
	assert_int_equal(answer->pid, told ? getpid() : 0);
}

/* Over our providers all of it is private data, over others the rest is a frame. */
static void expect_answer_to(const struct frame_hello *hello, bool told)
{
	const char *address = plx_listener_address(listener);
	uint8_t data[HELLO_BYTES_MAX];
	uint32_t length = hello_write(data, hello, 0, HELLO_TYPES);
	struct frame_hello answer;

	if (!is_private()) {
		rogue = rogue_greet(listener, hello);
		expect_soon(rogue_frames(rogue));
		answer = rogue_whole_answer(rogue);
	} else if (told) {
		rogue = rogue_connect_with(address, data, length);
		answer = rogue_answer(rogue);
	} else {
		rogue_expect_rejection(address, data, length, &answer);
	}
	expect_answer(&answer, told);
}

TEST(a_listener_names_itself_only_to_a_peer_that_it_accepts)
{
	struct plx_link_attr attr = {.protocol = PLX_PROTOCOL_ECHO};
	struct frame_hello hello = rogue_good_hello(), answer;

	listener = fixture_listen(here("0"), &attr);
	/* With only an opening, it has not said enough to be accepted. */
	rogue = rogue_connect(plx_listener_address(listener));
	answer = rogue_answer(rogue);
	expect_answer(&answer, false);
	rogue_close(rogue);
	hello.protocol = PLX_PROTOCOL_RPC;
	expect_answer_to(&hello, false);
	hello.protocol = PLX_PROTOCOL_ECHO;
	expect_answer_to(&hello, true);
	if (!is_private())
		return;
	hello.features = FEATURE_SELF_TEST; /* there is no such service */
	expect_answer_to(&hello, false);
	hello.features = 0;
	hello.rx_buf_count = 1; /* it gets a reason */
	expect_answer_to(&hello, false);
}

TEST(a_peer_is_formatted_without_what_is_unknown)
{
	char out[PLX_PEER_BYTES];

	assert_string_equal(plx_peer_format("a:1", "", 0, out), "a:1");
	assert_string_equal(plx_peer_format("a:1", "cat", 0, out), "a:1 (cat)");
	assert_string_equal(plx_peer_format("a:1", "", 7, out), "a:1 (pid 7)");
	assert_string_equal(plx_peer_format("a:1", "cat", INT32_MAX, out),
			    "a:1 (cat, pid 2147483647)");
}

FIXTURE_MAIN("tcp", "shm", "foreign")
