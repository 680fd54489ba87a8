/* SPDX-License-Identifier: BSD-3-Clause */
/* Which connections a listener takes, keeps waiting and refuses, in virtual time. */
#include "dice.h"
#include "fabric_listen.h"
#include "plx_test.h"

#include <arpa/inet.h>
#include <stdio.h>

#define MILLI PLX_NS_PER_MS

static struct listener_shared *shared;
static uint64_t now_ns;
static int connections[8192]; /* addresses stand for a provider's connections */
static unsigned connection_count;

/* Those that have not left. */
static struct ticket *present[4096];
static bool is_kept[4096];
static unsigned present_count;

static void open_with(struct plx_admission limits)
{
	struct plx_listen_attr attr = {.link.connect_timeout_ns = 5 * PLX_NS_PER_S};

	assert_int_equal(admission_init_defaults(&(struct plx_admission){0}), 0);
	assert_int_equal(admission_check(&limits, &attr.admission), 0);
	shared = listener_shared_create(&attr);
	assert_non_null(shared);
	now_ns = 10 * PLX_NS_PER_S;
	connection_count = present_count = 0;
}

static const struct origin *root(void)
{
	return &shared->admission.origins.root;
}

static void forget(struct ticket *ticket)
{
	for (unsigned i = 0; i < present_count; i++) {
		if (present[i] != ticket)
			continue;
		present[i] = present[--present_count];
		is_kept[i] = is_kept[present_count];
		return;
	}
	fail_msg("an unknown connection");
}

static void leave(struct ticket *ticket)
{
	forget(ticket);
	admission_leave(ticket);
}

/* All leave: every reservation was given back. */
static void close_all(void)
{
	while (present_count)
		leave(present[present_count - 1]);
	assert_int_equal(root()->shares[ORIGIN_LINKS], 0);
	assert_int_equal(root()->shares[ORIGIN_HALF_OPEN], 0);
	assert_int_equal(root()->shares[ORIGIN_WAITING], 0);
	assert_int_equal(shared->admission.turns.waiting, 0);
	assert_null(shared->admission.origins.by_key);
	listener_unref(shared);
}

static const struct sockaddr *address(const char *text)
{
	static struct sockaddr_storage out;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&out;
	struct sockaddr_in *four = (struct sockaddr_in *)&out;

	out = (struct sockaddr_storage){0};
	out.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET;
	assert_int_equal(inet_pton(out.ss_family, text,
				   out.ss_family == AF_INET6 ? (void *)&six->sin6_addr
							     : (void *)&four->sin_addr),
			 1);
	return (const struct sockaddr *)&out;
}

/* Ask for a new connection, or again for one that was kept. */
static struct admission_answer ask(const char *from, struct ticket *ticket)
{
	struct plx_admit_request asked = {.peer = address(from), .ticket = ticket};
	struct admission_answer answer;

	if (ticket)
		forget(ticket);
	else
		asked.connection = &connections[connection_count++];
	admission_ask(shared, &asked, now_ns, &answer);
	if (!answer.ticket)
		return answer;
	assert_true(present_count < PLX_ARRAY_LEN(present));
	present[present_count] = answer.ticket;
	is_kept[present_count++] = answer.verdict == PLX_ADMIT_KEEP;
	return answer;
}

static struct ticket *take(const char *from)
{
	struct admission_answer answer = ask(from, NULL);

	assert_int_equal(answer.verdict, PLX_ADMIT_TAKE);
	assert_null(answer.victim);
	return answer.ticket;
}

static struct ticket *keep(const char *from)
{
	struct admission_answer answer = ask(from, NULL);

	assert_int_equal(answer.verdict, PLX_ADMIT_KEEP);
	assert_true(answer.wait_ns > 0);
	assert_null(answer.victim);
	return answer.ticket;
}

static void expect_refused(const char *from, enum admission_cause cause)
{
	struct admission_answer answer = ask(from, NULL);

	assert_int_equal(answer.verdict, PLX_ADMIT_REFUSE);
	assert_int_equal(answer.cause, cause);
	assert_null(answer.ticket);
	assert_true(answer.again_ns > 0);
}

/* What the provider does with a connection that made room. */
static void close_victim(const struct admission_answer *answer, struct ticket *victim)
{
	assert_ptr_equal(answer->victim, victim);
	assert_non_null(admission_holder(victim).connection);
	admission_unref(victim);
	leave(victim);
}

static void expect_victim(const char *newcomer, struct ticket *victim)
{
	struct admission_answer answer = ask(newcomer, NULL);

	assert_int_equal(answer.verdict, PLX_ADMIT_TAKE);
	close_victim(&answer, victim);
}

/* Limits of links ------------------------------------------------------------------------------ */

PLX_TEST(an_address_has_a_quarter_of_the_links)
{
	struct ticket *first;

	open_with((struct plx_admission){.links_max = 8});
	first = take("192.0.2.1");
	take("192.0.2.1");
	expect_refused("192.0.2.1", ADMISSION_HOST);
	leave(first);
	take("192.0.2.1");
	close_all();
	/* An IPv6 /64 counts as an address, and its /48 as two. */
	open_with((struct plx_admission){.links_max = 8});
	take("2001:db8:1:1::1");
	take("2001:db8:1:1::2");
	expect_refused("2001:db8:1:1:ffff::3", ADMISSION_HOST);
	take("2001:db8:1:2::1");
	take("2001:db8:1:3::1");
	expect_refused("2001:db8:1:4::1", ADMISSION_HOST);
	take("2001:db8:2::1");
	close_all();
}

PLX_TEST(the_limit_per_address_is_checked_against_the_limit_in_all)
{
	struct plx_admission limits = {.links_max = 100, .links_per_host_max = 26}, checked;

	assert_int_equal(admission_init_defaults(&(struct plx_admission){0}), 0);
	assert_int_equal(admission_check(&limits, &checked), -EINVAL);
	assert_non_null(strstr(plx_error(), "give 1 to 25, or none"));
	limits.links_per_host_max = PLX_NO_LIMIT;
	assert_int_equal(admission_check(&limits, &checked), 0);
	limits.links_per_host_max = 0;
	assert_int_equal(admission_check(&limits, &checked), 0);
	assert_int_equal(checked.links_per_host_max, 25);
	/* A default of the process is lowered. */
	limits.links_per_host_max = 1024;
	assert_int_equal(admission_init_defaults(&limits), -EINVAL);
	limits.links_max = 0;
	assert_int_equal(admission_init_defaults(&limits), 0);
	assert_int_equal(admission_check(&(struct plx_admission){.links_max = 100}, &checked), 0);
	assert_int_equal(checked.links_per_host_max, 25);
}

PLX_TEST(an_open_or_reported_link_is_never_closed_for_a_newcomer)
{
	for (int opens = 0; opens < 2; opens++) {
		open_with((struct plx_admission){.links_max = 4,
						 .links_per_host_max = PLX_NO_LIMIT,
						 .handshakes_max = opens ? 4 : 3});
		for (int i = 0; i < 3 + opens; i++) {
			struct ticket *ticket = take("192.0.2.1");

			admission_hold(ticket, (struct ticket_holder){0});
			if (opens)
				admission_opened(ticket);
		}
		expect_refused("192.0.2.2", opens ? ADMISSION_LINKS : ADMISSION_HANDSHAKES);
		close_all();
	}
}

PLX_TEST(a_refusal_names_the_limit_and_who_holds_most)
{
	struct in6_addr key = origin_key(&(struct plx_admit_request){.peer = address("192.0.2.2")});
	char why[ADMIT_WHY_BYTES];

	open_with((struct plx_admission){.links_max = 2, .links_per_host_max = PLX_NO_LIMIT});
	take("2001:db8:1:1::1");
	take("2001:db8:1:1::2");
	admission_text(&shared->admission, ADMISSION_LINKS, &key, why, sizeof(why));
	assert_string_equal(why, "this listener has 2 links, as many as it may (--links-max 2); "
				 "2001:db8:1:1::/64 has most of them, 2");
	admission_text(&shared->admission, ADMISSION_HANDSHAKES, &key, why, sizeof(why));
	assert_non_null(strstr(why, "(--handshakes-max 256); 2001:db8:1:1::/64 has most of them"));
	close_all();
}

/* Half-open connections ------------------------------------------------------------------------ */

static const struct plx_admission few_handshakes = {.handshakes_max = 4,
						    .accepts_per_s = PLX_NO_LIMIT};

/* The first of those with most, of an address or a network; or the oldest, if they come ms apart.
 */
PLX_TEST(of_the_address_with_most_the_oldest_silent_connection_makes_room)
{
	static const struct {
		const char *from[4], *newcomer;
		unsigned apart_ms, victim;
	} rows[] = {
		{{"192.0.2.2", "192.0.2.1", "192.0.2.1", "192.0.2.1"}, "192.0.2.3", 0, 1},
		{{"2001:db8:1:1::1", "2001:db8:1:2::1", "2001:db8:1:3::1", "2001:db8:1:4::1"},
		 "2001:db8:2:1::1",
		 0,
		 0},
		{{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"}, "192.0.2.5", 40, 0},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct ticket *crowd[4];

		open_with(few_handshakes);
		for (int k = 0; k < 4; k++) {
			crowd[k] = take(rows[i].from[k]);
			now_ns += rows[i].apart_ms * MILLI;
		}
		expect_victim(rows[i].newcomer, crowd[rows[i].victim]);
		assert_int_equal(root()->shares[ORIGIN_HALF_OPEN], 4);
		close_all();
	}
}

PLX_TEST(connections_of_one_address_do_not_evict_each_other_at_once)
{
	struct ticket *crowd[4], *late;

	open_with(few_handshakes);
	for (int i = 0; i < 4; i++)
		crowd[i] = take("192.0.2.1");
	late = keep("192.0.2.1");
	now_ns += 50 * MILLI;
	assert_int_equal(ask("192.0.2.1", late).verdict, PLX_ADMIT_KEEP);
	/* One opens: its place is free. */
	admission_opened(crowd[1]);
	assert_int_equal(ask("192.0.2.1", late).verdict, PLX_ADMIT_TAKE);
	/* Nothing moves for 100 ms: the oldest has had its time. */
	now_ns += 50 * MILLI;
	expect_victim("192.0.2.1", crowd[0]);
	close_all();
}

PLX_TEST(want_of_descriptors_closes_the_oldest_silent_one)
{
	struct ticket *crowd[2];

	open_with((struct plx_admission){0});
	assert_null(admission_descriptor(&shared->admission));
	take("192.0.2.2");
	crowd[0] = take("192.0.2.1");
	crowd[1] = take("192.0.2.1");
	assert_ptr_equal(admission_descriptor(&shared->admission), &connections[1]);
	/* Only a provider can close one at once. */
	admission_hold(crowd[0], (struct ticket_holder){0});
	assert_ptr_equal(admission_descriptor(&shared->admission), &connections[2]);
	admission_hold(crowd[1], (struct ticket_holder){0});
	assert_ptr_equal(admission_descriptor(&shared->admission), &connections[0]);
	close_all();
}

/* The rate ------------------------------------------------------------------------------------- */

/* 1 000 a second, of which 250 and one more come at once; then this many wait. */
static void fill_burst(unsigned waiting)
{
	open_with((struct plx_admission){.handshakes_max = PLX_NO_LIMIT});
	for (unsigned i = 0; i < 251; i++)
		take("192.0.2.1");
	for (unsigned i = 0; i < waiting; i++)
		keep("192.0.2.1");
}

PLX_TEST(one_address_alone_has_the_whole_rate)
{
	enum { WAITING = 750 };
	struct ticket *waiting[WAITING];
	uint64_t begin_ns, due_ns[WAITING];

	fill_burst(0);
	begin_ns = now_ns;
	for (unsigned i = 0; i < WAITING; i++) {
		struct admission_answer answer = ask("192.0.2.1", NULL);

		assert_int_equal(answer.verdict, PLX_ADMIT_KEEP);
		due_ns[i] = now_ns + answer.wait_ns;
		waiting[i] = answer.ticket;
	}
	for (unsigned i = 0; i < WAITING; i++) {
		now_ns = due_ns[i];
		assert_int_equal(ask("192.0.2.1", waiting[i]).verdict, PLX_ADMIT_TAKE);
	}
	assert_int_equal(now_ns - begin_ns, WAITING * MILLI);
	close_all();
}

/* A newcomer shares the first turn with those that wait. */
static void expect_soon(const char *from)
{
	struct admission_answer answer = ask(from, NULL);

	assert_int_equal(answer.verdict, PLX_ADMIT_KEEP);
	assert_in_range(answer.wait_ns, 1, 2 * MILLI);
	now_ns += answer.wait_ns;
	assert_int_equal(ask(from, answer.ticket).verdict, PLX_ADMIT_TAKE);
	close_all();
}

PLX_TEST(addresses_take_turns_and_a_48_has_one_however_many_64_it_uses)
{
	char from[40];

	fill_burst(100);
	expect_soon("192.0.2.2");
	fill_burst(0);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(from, sizeof(from), "2001:db8:1:%x::1", i);
		keep(from);
	}
	expect_soon("192.0.2.2");
}

/* 2 500 wait at most: half of the 5 s for which a peer waits. */
PLX_TEST(the_address_of_which_most_wait_loses_its_newest_one)
{
	struct admission_answer answer;
	struct ticket *newest = NULL;

	fill_burst(0);
	while (root()->shares[ORIGIN_WAITING] < shared->admission.waiting_max)
		newest = keep("192.0.2.1");
	assert_in_range(present_count - 251, 2400, 2501);
	expect_refused("192.0.2.1", ADMISSION_RATE);
	answer = ask("192.0.2.2", NULL);
	assert_int_equal(answer.verdict, PLX_ADMIT_KEEP);
	assert_int_equal(answer.victim_cause, ADMISSION_RATE);
	close_victim(&answer, newest);
	close_all();
}

/* Its lcore needs a moment. The newcomer waits, and nobody else makes room for it. */
PLX_TEST(a_link_that_makes_room_counts_until_it_is_closed)
{
	struct admission_answer answer, again;
	struct ticket *first;

	open_with((struct plx_admission){.handshakes_max = 1});
	first = take("192.0.2.1");
	admission_hold(first, (struct ticket_holder){0});
	assert_true(admission_hold(first,
				   (struct ticket_holder){.link = (struct plx_link *)connections}));
	now_ns += 101 * MILLI;
	answer = ask("192.0.2.2", NULL);
	assert_int_equal(answer.verdict, PLX_ADMIT_KEEP);
	assert_ptr_equal(answer.victim, first);
	assert_int_equal(root()->shares[ORIGIN_HALF_OPEN], 1);
	now_ns += answer.wait_ns;
	again = ask("192.0.2.2", answer.ticket);
	assert_int_equal(again.verdict, PLX_ADMIT_KEEP);
	assert_null(again.victim);
	admission_unref(first);
	leave(first);
	assert_int_equal(ask("192.0.2.2", answer.ticket).verdict, PLX_ADMIT_TAKE);
	close_all();
}

PLX_TEST(nobody_waits_for_longer_than_half_of_its_time)
{
	fill_burst(1);
	/* No time passes for the rate while handshakes are full, say. */
	now_ns += 2501 * MILLI;
	shared->admission.turns.next_ns = now_ns + PLX_NS_PER_S;
	assert_int_equal(ask("192.0.2.1", present[present_count - 1]).cause, ADMISSION_RATE);
	close_all();
}

/* All together --------------------------------------------------------------------------------- */

static uint64_t seed;

static const char *random_peer(void)
{
	static char text[40];

	if (dice_roll(&seed, 2))
		snprintf(text, sizeof(text), "192.0.2.%u", dice_roll(&seed, 8) + 1);
	else
		snprintf(text, sizeof(text), "2001:db8:%x:%x::1", dice_roll(&seed, 3) + 1,
			 dice_roll(&seed, 3));
	return text;
}

static void ask_and_close_victim(const char *from, struct ticket *ticket)
{
	struct admission_answer answer = ask(from, ticket);

	if (answer.victim)
		close_victim(&answer, answer.victim);
}

static void act(unsigned i)
{
	struct ticket *ticket = present[i];

	if (dice_roll(&seed, 3) == 0) {
		leave(ticket);
	} else if (is_kept[i]) {
		ask_and_close_victim("192.0.2.1", ticket); /* its address is not looked at again */
	} else {
		admission_opened(ticket);
		leave(ticket);
	}
}

PLX_TEST(limits_hold_and_nothing_is_left_whatever_happens)
{
	open_with((struct plx_admission){.links_max = 40,
					 .links_per_host_max = 8,
					 .handshakes_max = 10,
					 .accepts_per_s = 200});
	for (int i = 0; i < 100000; i++) {
		now_ns += dice_roll(&seed, 10) * MILLI;
		if (present_count && dice_roll(&seed, 2)) {
			act(dice_roll(&seed, present_count));
		} else {
			connection_count %= PLX_ARRAY_LEN(connections) - 1;
			ask_and_close_victim(random_peer(), NULL);
		}
		assert_true(root()->shares[ORIGIN_LINKS] <= 40 &&
			    root()->shares[ORIGIN_HALF_OPEN] <= 10);
		assert_true(root()->shares[ORIGIN_WAITING] <= shared->admission.waiting_max);
	}
	close_all();
}

PLX_TEST_MAIN()
