/* SPDX-License-Identifier: BSD-3-Clause */
/* plx_session.h: connecting to one of several addresses, and connecting again. */
#include "in_child.h"
#include "program.h"

TEST(a_session_reconnects_once_the_peer_is_up_again)
{
	program_connect(listened, (struct plx_session_attr){SOON});
	assert_null(plx_session_link(program.session));
	expect_opened(1);
	assert_string_equal(program.opened_at, listened);
	assert_int_equal(plx_link_send(plx_session_link(program.session), "to", 2), 0);
	assert_true(pump_until(&server.messages, 1, 5000));
	assert_int_equal(plx_link_send(server.link, "fro", 3), 0);
	assert_true(pump_until(&program.messages, 1, 5000));
	listen_no_more();
	plx_link_abort(server.link);
	assert_true(pump_until(&program.closed, 1, 5000));
	assert_int_equal(program.reason, PLX_LINK_PEER_DOWN);
	assert_true(pump_until(&program.refused, 3, 5000));
	assert_int_equal(program.reason, PLX_LINK_REFUSED);
	assert_string_equal(program.refused_at, listened);
	listen_again();
	expect_opened(2);
	assert_int_equal(program.closed, 1);
}

TEST(a_program_that_closes_or_aborts_the_link_gets_the_next_one)
{
	program_connect(listened, (struct plx_session_attr){SOON});
	expect_opened(1);
	assert_int_equal(plx_link_close(program.link), 0);
	assert_null(plx_session_link(program.session)); /* it accepts no messages */
	expect_opened(2);
	assert_int_equal(program.reason, PLX_LINK_CLOSED);
	plx_link_abort(program.link);
	expect_opened(3);
	assert_int_equal(program.reason, PLX_LINK_ABORTED);
	assert_int_equal(program.closed, 2);
	assert_int_equal(program.settles, 0);
}

/* The next back-off would take up to an hour. */
TEST(after_a_failed_attempt_the_next_address_follows_at_once_also_a_name)
{
	char name[64];

	snprintf(name, sizeof(name), "localhost:%u", plx_listener_port(listener));
	program_connect(list_of("no..body:7", name), (struct plx_session_attr){NEVER});
	assert_true(pump_until(&program.opened, 1, 60000));
	assert_int_equal(program.refused, 1);
	assert_string_equal(program.refused_at, "no..body:7");
	assert_string_equal(program.opened_at, name);
}

TEST(a_session_that_refuses_the_peer_tries_again)
{
	program.refuses = "that is no answer";
	program_connect(listened, (struct plx_session_attr){SOON});
	assert_true(pump_until(&program.refused, 2, 5000));
	assert_int_equal(program.reason, PLX_LINK_HELLO);
	assert_has(program.text, "was refused: that is no answer");
	expect_end(&server, PLX_LINK_HELLO); /* on its side the link was open */
	assert_has(server.text, "refused the link: that is no answer");
	assert_int_equal(program.opened, 0);
	program.refuses = NULL;
	expect_opened(1);
}

/* It asks to come again in a second. */
TEST(a_session_comes_again_when_a_busy_peer_asked_it_to)
{
	struct plx_listener *narrow = fixture_listen_as(
		here("0"), (struct plx_listen_attr){.admission.links_max = 1});
	uint64_t begin_ns;

	fixture_connect(narrow, NULL);
	begin_ns = plx_now_ns();
	program_connect(plx_listener_address(narrow), (struct plx_session_attr){SOON});
	assert_true(pump_until(&program.refused, 1, 5000));
	assert_int_equal(program.reason, PLX_LINK_REFUSED);
	assert_has(program.text, " is busy: come again in 1000 ms");
	plx_link_abort(client.link);
	expect_opened(1);
	assert_true(plx_now_ns() - begin_ns >= PLX_NS_PER_S);
	assert_int_equal(program.refused, 1);
	plx_listener_close(narrow);
}

/* No route: shm reaches no other host. */
TEST(a_first_address_without_a_route_is_reported_from_the_loop)
{
	program_connect("203.0.113.1:7,203.0.113.2:7",
			(struct plx_session_attr){.link.provider = "shm", NEVER});
	assert_int_equal(program.refused, 0);
	assert_true(pump_until(&program.refused, 2, 5000));
	assert_string_equal(program.refused_at, "203.0.113.2:7");
}

/* Also one that accepts, and closes at once. */
TEST(after_a_lost_link_the_next_address_has_its_turn)
{
	struct plx_listener *other = fixture_listen(here("0"), NULL);
	char second[64];

	snprintf(second, sizeof(second), "%s", plx_listener_address(other));
	program_connect(list_of(listened, second), (struct plx_session_attr){SOON});
	for (unsigned i = 1; i <= 4; i++) {
		expect_opened(i);
		assert_string_equal(program.opened_at, i % 2 ? listened : second);
		plx_link_abort(program.link);
	}
	assert_true(pump_until(&program.closed, 4, 5000));
	plx_session_close(program.session);
	assert_true(pump_until(&program.ended, 1, 5000));
	plx_listener_close(other);
}

TEST(a_lost_link_is_followed_by_a_back_off_although_there_is_another_address)
{
	program_connect(list_of(listened, here("1")), (struct plx_session_attr){NEVER});
	expect_opened(1);
	plx_link_abort(server.link);
	assert_true(pump_until(&program.closed, 1, 5000));
	pump_ms(30);
	assert_int_equal(program.refused, 0);
}

TEST(a_session_without_reconnect_ends_after_one_round_or_with_its_link)
{
	program_connect(list_of(here("1"), listened),
			(struct plx_session_attr){.reconnect_min_ns = PLX_NEVER});
	expect_opened(1);
	plx_link_abort(server.link);
	assert_true(pump_until(&program.ended, 1, 5000));
	assert_int_equal(program.closed, 1);
	assert_int_equal(program.refused, 1);
	memset(&program, 0, sizeof(program));
	program_connect(list_of(here("1"), here("2")),
			(struct plx_session_attr){.reconnect_min_ns = PLX_NEVER});
	assert_true(pump_until(&program.ended, 1, 5000));
	assert_int_equal(program.refused, 2);
}

static const struct plx_session_events only_end = {.on_end = program_on_end};

TEST(without_on_refused_the_log_has_each_failure_once)
{
	program_connect(listened, (struct plx_session_attr){.events = &only_end, SOON});
	for (unsigned i = 1; i <= 2; i++) {
		expect_opened(i);
		listen_no_more();
		plx_link_abort(server.link);
		assert_true(pump_until(&program.closed, i, 5000));
		pump_ms(60); /* several attempts */
		assert_int_equal(log_count("is anything listening there?; trying again"), i);
		listen_again();
	}
}

/* Many that wait for one process -------------------------------------------------------------- */

#define CROWD 8

static struct member {
	struct plx_session *session;
	unsigned refused, ended;
} crowd[CROWD];

static unsigned crowd_opened, crowd_refused;

PLX_COUNTS(member_opened, crowd_opened, struct plx_link *link, void *user)

static void member_refused(struct plx_session *session, enum plx_link_reason reason,
			   const char *text, void *user)
{
	((struct member *)user)->refused++;
	crowd_refused++;
}

PLX_COUNTS(member_ended, ((struct member *)user)->ended, struct plx_session *session, void *user)

/* At an address where nobody listens; after the end of that one another one does. */
TEST(one_of_many_that_wait_for_a_process_of_this_host_retries_for_all)
{
	static const struct plx_link_events link_events = {.on_open = member_opened};
	static const struct plx_session_events events = {.on_refused = member_refused,
							 .on_end = member_ended};
	struct plx_session_attr attr = {.link.events = &link_events, .events = &events};
	struct member *leader = NULL;
	unsigned before;

	listen_no_more();
	for (unsigned i = 0; i < CROWD; i++) {
		attr.link.user = &crowd[i];
		assert_works(plx_session_connect(listened, &attr, &crowd[i].session));
	}
	expect_soon(crowd_refused >= CROWD + 5);
	for (unsigned i = 0; i < CROWD; i++) {
		if (crowd[i].refused == 1)
			continue;
		assert_null(leader);
		leader = &crowd[i];
	}
	plx_session_close(leader->session);
	expect_soon(leader->ended);
	before = crowd_refused;
	expect_soon(crowd_refused > before + 2);
	assert_int_equal(crowd_opened, 0);
	listen_again();
	expect_soon(crowd_opened == CROWD - 1);
}

/* Mistakes of the caller ----------------------------------------------------------------------- */

static const char *repeated(const char *address, unsigned count)
{
	static char list[64 * PLX_ADDRESS_MAX];

	list[0] = '\0';
	for (unsigned i = 0; i < count; i++)
		strcat(strcat(list, i ? "," : ""), address);
	return list;
}

static const char *long_address(void)
{
	static char address[PLX_ADDRESS_MAX + 10];

	memset(address, 'x', PLX_ADDRESS_MAX);
	strcpy(address + PLX_ADDRESS_MAX, ":7");
	return address;
}

TEST(a_list_with_a_bad_address_is_refused)
{
	const struct {
		const char *list, *error;
	} rows[] = {
		{NULL, "there are none"},
		{"", "one of them is empty"},
		{"a:1,", "one of them is empty"},
		{"a:1,b:65536", "bad port"},
		{"a:1,b:0", "port 0 is nobody's"},
		{"a:1,*:7", "has no host"},
		{"a:1,::1:7", "an IPv6 address needs brackets"},
		{long_address(), "one of them is too long"},
		{repeated("a:1", PLX_SESSION_ADDRESSES_MAX + 1), "they are too many"},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++)
		assert_fails(program_try(rows[i].list, (struct plx_session_attr){0}), -EINVAL,
			     rows[i].error);
	assert_null(program.session);
}

TEST(the_longest_list_works_with_blanks_after_its_commas)
{
	char item[80];

	snprintf(item, sizeof(item), " %s", listened);
	program_connect(repeated(item, PLX_SESSION_ADDRESSES_MAX), (struct plx_session_attr){SOON});
	expect_opened(1);
	assert_string_equal(program.opened_at, listened);
}

TEST(attributes_are_checked_before_the_first_attempt)
{
	struct plx_session *none = NULL;
	const struct plx_session_attr no_events = {SOON};

	assert_fails(plx_session_connect("a:1", NULL, &none), -EINVAL, "needs events");
	assert_fails(plx_session_connect("a:1", &no_events, &none), -EINVAL, "needs events");
	assert_fails(program_try("a:1", (struct plx_session_attr){.link.rx_buf_bytes = 1}), -EINVAL,
		     "rx_buf_bytes 1: out of range");
	assert_fails(program_try("a:1", (struct plx_session_attr){.reconnect_min_ns = 2,
								  .reconnect_max_ns = 1}),
		     -EINVAL, "reconnect_min_ns 2 is more than reconnect_max_ns 1");
	assert_fails(program_try(listened, (struct plx_session_attr){.link.provider = "pigeon"}),
		     -EINVAL, "unknown provider");
	assert_fails(
		program_try(listened, (struct plx_session_attr){.link.provider = long_address()}),
		-EINVAL, "unknown provider 'xxx");
	assert_null(none);
}

static void use_after_fork(void)
{
	check(program_try(listened, (struct plx_session_attr){0}) == -EPERM);
	check(strstr(plx_error(), "plx_session_connect"));
	check(plx_session_drain(0) == -EPERM);
	check(!plx_session_link(program.session));
	plx_session_settled(program.session);
	plx_session_close(program.session);
}

TEST(the_child_of_a_fork_cannot_use_sessions)
{
	program_connect(listened, (struct plx_session_attr){SOON});
	expect_opened(1);
	assert_passes(use_after_fork);
	assert_int_equal(plx_link_send(plx_session_link(program.session), "x", 1), 0);
	assert_true(pump_until(&server.messages, 1, 5000));
	assert_int_equal(program.closed, 0);
}

PLX_TEST_MAIN()
