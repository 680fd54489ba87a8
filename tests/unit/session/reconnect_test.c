/* SPDX-License-Identifier: BSD-3-Clause */
/* plx_session.h: connecting to one of several addresses, and connecting again. */
#include "in_child.h"
#include "program.h"

#include <pthread.h>

static bool no_threads; /* as at a limit of processes */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg)
{
	return no_threads ? EAGAIN : __real_pthread_create(thread, attr, fn, arg);
}

TEST(a_session_is_a_link_with_the_callbacks_of_the_program)
{
	program_connect(listened, (struct plx_session_attr){0});
	assert_null(plx_session_link(program.session));
	expect_opened(1);
	assert_string_equal(program.opened_at, listened);
	assert_int_equal(plx_link_send(plx_session_link(program.session), "to", 2), 0);
	assert_true(pump_until(&server.messages, 1, 5000));
	assert_int_equal(plx_link_send(server.link, "fro", 3), 0);
	assert_true(pump_until(&program.messages, 1, 5000));
}

TEST(a_session_reconnects_once_the_peer_is_up_again)
{
	program_connect(listened, (struct plx_session_attr){SOON});
	expect_opened(1);
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
TEST(after_a_failed_attempt_the_next_address_follows_at_once)
{
	program_connect(list_of(here("1"), listened), (struct plx_session_attr){NEVER});
	expect_opened(1);
	assert_int_equal(program.refused, 1);
	assert_string_equal(program.refused_at, here("1"));
	assert_string_equal(program.opened_at, listened);
}

TEST(an_address_of_the_list_may_be_a_name)
{
	char name[64];

	snprintf(name, sizeof(name), "localhost:%u", plx_listener_port(listener));
	program_connect(list_of("no..body:7", name), (struct plx_session_attr){NEVER});
	assert_true(pump_until(&program.opened, 1, 60000));
	assert_has(program.text, "no..body");
	assert_string_equal(program.opened_at, name);
}

TEST(a_look_up_without_a_thread_is_reported_and_retried)
{
	char name[64];

	snprintf(name, sizeof(name), "lOCALHOST:%u", plx_listener_port(listener));
	no_threads = true;
	program_connect(name, (struct plx_session_attr){SOON});
	assert_true(pump_until(&program.refused, 3, 5000));
	assert_has(program.text, "no thread can be started");
	no_threads = false;
	assert_true(pump_until(&program.opened, 1, 30000));
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

TEST(a_back_off_follows_when_all_addresses_have_failed)
{
	program_connect(list_of(here("1"), here("2")), (struct plx_session_attr){NEVER});
	assert_true(pump_until(&program.refused, 2, 5000));
	pump_ms(30);
	assert_int_equal(program.refused, 2);
}

TEST(all_addresses_are_tried_again_after_the_back_off)
{
	program_connect(list_of(here("1"), here("2")), (struct plx_session_attr){SOON});
	for (unsigned i = 1; i <= 6; i++) {
		assert_true(pump_until(&program.refused, i, 5000));
		assert_string_equal(program.refused_at, here(i % 2 ? "1" : "2"));
	}
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

/* Those of one address share their attempts: see quiet.c. */
TEST(a_session_waits_for_no_other_one_if_it_has_several_addresses)
{
	static struct plx_session *many[4];
	struct plx_session_attr attr = {.link.events = &side_events, .link.user = &client, SOON};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(many); i++)
		assert_works(plx_session_connect(here("1"), &attr, &many[i]));
	pump_ms(20);
	program_connect(list_of(here("1"), listened), (struct plx_session_attr){SOON});
	expect_opened(1);
	plx_link_abort(server.link);
	expect_opened(2);
	assert_int_equal(client.opened, 0);
}

TEST(a_session_without_reconnect_tries_each_address_once)
{
	program_connect(list_of(here("1"), here("2")),
			(struct plx_session_attr){.reconnect_min_ns = PLX_NEVER});
	assert_true(pump_until(&program.ended, 1, 5000));
	assert_int_equal(program.refused, 2);
}

TEST(a_session_without_reconnect_ends_with_its_link)
{
	program_connect(listened, (struct plx_session_attr){.reconnect_min_ns = PLX_NEVER});
	expect_opened(1);
	plx_link_abort(server.link);
	assert_true(pump_until(&program.ended, 1, 5000));
	assert_int_equal(program.closed, 1);
}

static const struct plx_session_events only_end = {.on_end = program_on_end};

TEST(without_on_refused_the_log_has_each_address_once)
{
	char line[80];

	program_connect(list_of(here("1"), here("2")),
			(struct plx_session_attr){.events = &only_end, SOON});
	pump_ms(60);
	for (const char *port = "1"; port; port = *port == '1' ? "2" : NULL) {
		snprintf(line, sizeof(line), "%s refused the connection", here(port));
		assert_int_equal(log_count(line), 1);
	}
}

TEST(a_failure_is_logged_again_after_a_successful_attempt)
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

PLX_COUNTS(on_other, (*(_Atomic unsigned *)user), struct plx_link *link, struct plx_buf *message,
	   void *user)

TEST(a_link_may_have_another_user_until_it_ends)
{
	static const struct plx_link_events events = {.on_message = on_other};
	static _Atomic unsigned first, second;
	struct plx_session_attr attr = {.link.events = &events, .link.user = &first, SOON};
	struct plx_session *session;

	first = second = 0;
	assert_works(plx_session_connect(listened, &attr, &session));
	expect_soon(plx_session_link(session));
	plx_link_set_user(plx_session_link(session), (void *)&second);
	assert_true(pump_until(&server.opened, 1, 5000));
	assert_int_equal(plx_link_send(server.link, "x", 1), 0);
	assert_true(pump_until(&second, 1, 5000));
	plx_link_abort(server.link);
	assert_true(pump_until(&server.opened, 2, 5000));
	assert_int_equal(plx_link_send(server.link, "x", 1), 0);
	assert_true(pump_until(&first, 1, 5000));
}

/* Many that wait for one process -------------------------------------------------------------- */

#define CROWD 8

static struct member {
	struct plx_session *session;
	unsigned refused, opened, ended;
} crowd[CROWD];

static struct member crowd_sum(void)
{
	struct member sum = {0};

	for (unsigned i = 0; i < CROWD; i++) {
		sum.refused += crowd[i].refused;
		sum.opened += crowd[i].opened;
	}
	return sum;
}

PLX_COUNTS(member_opened, ((struct member *)user)->opened, struct plx_link *link, void *user)

PLX_COUNTS(member_refused, ((struct member *)user)->refused, struct plx_session *session,
	   enum plx_link_reason reason, const char *text, void *user)

PLX_COUNTS(member_ended, ((struct member *)user)->ended, struct plx_session *session, void *user)

/* All are refused at the address where nobody listens now. Return: the one that retries for all,
 * after some attempts. */
static struct member *crowd_waits(void)
{
	static const struct plx_link_events link_events = {.on_open = member_opened};
	static const struct plx_session_events events = {.on_refused = member_refused,
							 .on_end = member_ended};
	struct plx_session_attr attr = {.link.events = &link_events, .events = &events};
	struct member *leader = NULL;

	memset(crowd, 0, sizeof(crowd));
	listen_no_more();
	for (unsigned i = 0; i < CROWD; i++) {
		attr.link.user = &crowd[i];
		assert_works(plx_session_connect(listened, &attr, &crowd[i].session));
	}
	expect_soon(crowd_sum().refused >= CROWD + 5);
	for (unsigned i = 0; i < CROWD; i++) {
		if (crowd[i].refused == 1)
			continue;
		assert_null(leader);
		leader = &crowd[i];
	}
	return leader;
}

TEST(one_of_many_that_wait_for_a_process_of_this_host_retries_for_all)
{
	crowd_waits();
	listen_again();
	expect_soon(crowd_sum().opened == CROWD);
}

TEST(another_one_retries_after_the_one_that_did_ends)
{
	struct member *leader = crowd_waits();
	unsigned before;

	plx_session_close(leader->session);
	expect_soon(leader->ended);
	before = crowd_sum().refused;
	expect_soon(crowd_sum().refused > before + 2);
	assert_int_equal(crowd_sum().opened, 0);
}

TEST(one_that_waits_for_another_can_be_closed)
{
	struct member *follower = crowd_waits() == crowd ? crowd + 1 : crowd;

	plx_session_close(follower->session);
	expect_soon(follower->ended);
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
		{",a:1", "one of them is empty"},
		{"a:1,,b:2", "one of them is empty"},
		{"a:1,  ", "one of them is empty"},
		{"a:1,b", "there is no port"},
		{"a:1,b:", "bad port"},
		{"a:1 ,b:2", "bad port"},
		{"a:1,b:65536", "bad port"},
		{"a:1,b:0", "port 0 is nobody's"},
		{"a:1,*:7", "has no host"},
		{"a:1,:7", "has no host"},
		{"a:1,::1:7", "an IPv6 address needs brackets"},
		{"tcp://a:1", "it needs no scheme"},
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
	assert_null(none);
}

static void *connect_elsewhere(void *arg)
{
	*(int *)arg = program_try(listened, (struct plx_session_attr){0});
	return NULL;
}

TEST(a_thread_that_is_no_lcore_gets_no_session)
{
	int rc = 0;

	run_in_thread(connect_elsewhere, &rc);
	assert_int_equal(rc, -ENOENT);
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
