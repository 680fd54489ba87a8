/* SPDX-License-Identifier: BSD-3-Clause */
/* Which connections a listener takes, keeps waiting and refuses; by time that the test passes in.
 */
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

static void open_with(struct plx_admission limits)
{
	struct plx_listen_attr attr = {.link.connect_timeout_ns = 5 * PLX_NS_PER_S};

	assert_int_equal(admission_init_defaults(&(struct plx_admission){0}), 0);
	assert_int_equal(admission_check(&limits, &attr.admission), 0);
	shared = listener_shared_create(&attr);
	assert_non_null(shared);
	now_ns = 10 * PLX_NS_PER_S;
	connection_count = 0;
}

static const struct origin *root(void)
{
	return &shared->admission.origins.root;
}

/* Every reservation was given back. */
static void close_all(void)
{
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

	if (!ticket)
		asked.connection = &connections[connection_count++];
	admission_ask(shared, &asked, now_ns, &answer);
	return answer;
}

static void leave_all(struct ticket **tickets, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		admission_leave(tickets[i]);
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
	admission_leave(victim);
}

/* Limits of links ------------------------------------------------------------------------------ */

PLX_TEST(one_address_has_a_quarter_of_the_links)
{
	struct ticket *tickets[4];

	open_with((struct plx_admission){.links_max = 8});
	tickets[0] = take("192.0.2.1");
	tickets[1] = take("192.0.2.1");
	expect_refused("192.0.2.1", ADMISSION_HOST);
	tickets[2] = take("192.0.2.2");
	admission_leave(tickets[0]);
	tickets[0] = take("192.0.2.1");
	leave_all(tickets, 3);
	close_all();
}

PLX_TEST(an_ipv6_64_counts_as_one_address_and_its_48_as_two)
{
	struct ticket *tickets[4];

	open_with((struct plx_admission){.links_max = 8});
	tickets[0] = take("2001:db8:1:1::1");
	tickets[1] = take("2001:db8:1:1::2");
	expect_refused("2001:db8:1:1:ffff::3", ADMISSION_HOST);
	tickets[2] = take("2001:db8:1:2::1");
	tickets[3] = take("2001:db8:1:3::1");
	expect_refused("2001:db8:1:4::1", ADMISSION_HOST);
	admission_leave(take("2001:db8:2::1"));
	leave_all(tickets, 4);
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

PLX_TEST(an_open_link_is_never_closed_for_a_newcomer)
{
	struct ticket *tickets[2];

	open_with((struct plx_admission){.links_max = 2, .links_per_host_max = PLX_NO_LIMIT});
	for (int i = 0; i < 2; i++) {
		tickets[i] = take("192.0.2.1");
		admission_hold(tickets[i], (struct ticket_holder){0});
		admission_opened(tickets[i]);
	}
	expect_refused("192.0.2.2", ADMISSION_LINKS);
	leave_all(tickets, 2);
	close_all();
}

PLX_TEST(a_refusal_names_the_limit_and_who_holds_most)
{
	struct in6_addr key = origin_key(&(struct plx_admit_request){.peer = address("192.0.2.2")});
	struct ticket *tickets[2];
	char why[ADMIT_WHY_BYTES];

	open_with((struct plx_admission){.links_max = 2, .links_per_host_max = PLX_NO_LIMIT});
	tickets[0] = take("2001:db8:1:1::1");
	tickets[1] = take("2001:db8:1:1::2");
	admission_text(&shared->admission, ADMISSION_LINKS, &key, why, sizeof(why));
	assert_string_equal(why, "this listener has 2 links, as many as it may (--links-max 2); "
				 "2001:db8:1:1::/64 has most of them, 2");
	admission_text(&shared->admission, ADMISSION_HANDSHAKES, &key, why, sizeof(why));
	assert_non_null(strstr(why, "(--handshakes-max 256); 2001:db8:1:1::/64 has most of them"));
	leave_all(tickets, 2);
	close_all();
}

/* Half-open connections ------------------------------------------------------------------------ */

static const struct plx_admission few_handshakes = {.handshakes_max = 4,
						    .accepts_per_s = PLX_NO_LIMIT};

PLX_TEST(the_address_with_most_loses_its_oldest_silent_one)
{
	struct ticket *crowd[3], *alone, *newcomer;
	struct admission_answer answer;

	open_with(few_handshakes);
	alone = take("192.0.2.2");
	for (int i = 0; i < 3; i++)
		crowd[i] = take("192.0.2.1");
	answer = ask("192.0.2.3", NULL);
	assert_int_equal(answer.verdict, PLX_ADMIT_TAKE);
	close_victim(&answer, crowd[0]);
	newcomer = answer.ticket;
	assert_int_equal(root()->shares[ORIGIN_HALF_OPEN], 4);
	admission_leave(newcomer);
	admission_leave(alone);
	admission_leave(crowd[1]);
	admission_leave(crowd[2]);
	close_all();
}

PLX_TEST(a_network_with_most_makes_room_however_many_64_it_uses)
{
	static const char *const from[] = {"2001:db8:1:1::1", "2001:db8:1:2::1", "2001:db8:1:3::1",
					   "2001:db8:1:4::1"};
	struct ticket *crowd[4];
	struct admission_answer answer;

	open_with(few_handshakes);
	for (int i = 0; i < 4; i++)
		crowd[i] = take(from[i]);
	now_ns += MILLI;
	answer = ask("2001:db8:2:1::1", NULL);
	assert_int_equal(answer.verdict, PLX_ADMIT_TAKE);
	close_victim(&answer, crowd[0]);
	admission_leave(answer.ticket);
	leave_all(crowd + 1, 3);
	close_all();
}

PLX_TEST(of_addresses_with_as_many_the_oldest_connection_makes_room)
{
	static const char *const from[] = {"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"};
	struct ticket *crowd[4];
	struct admission_answer answer;

	open_with(few_handshakes);
	for (int i = 0; i < 4; i++) {
		crowd[i] = take(from[i]);
		now_ns += 40 * MILLI;
	}
	answer = ask("192.0.2.5", NULL);
	assert_int_equal(answer.verdict, PLX_ADMIT_TAKE);
	close_victim(&answer, crowd[0]);
	admission_leave(answer.ticket);
	leave_all(crowd + 1, 3);
	close_all();
}

PLX_TEST(a_reported_connection_is_not_evicted)
{
	struct ticket *crowd[4];

	open_with(few_handshakes);
	for (int i = 0; i < 4; i++) {
		crowd[i] = take("192.0.2.1");
		admission_hold(crowd[i], (struct ticket_holder){0});
	}
	expect_refused("192.0.2.2", ADMISSION_HANDSHAKES);
	leave_all(crowd, 4);
	close_all();
}

PLX_TEST(connections_of_one_address_do_not_evict_each_other_at_once)
{
	struct ticket *crowd[4], *late;
	struct admission_answer answer;

	open_with(few_handshakes);
	for (int i = 0; i < 4; i++)
		crowd[i] = take("192.0.2.1");
	late = keep("192.0.2.1");
	now_ns += 50 * MILLI;
	answer = ask("192.0.2.1", late);
	assert_int_equal(answer.verdict, PLX_ADMIT_KEEP);
	/* One opens: its place is free. */
	admission_opened(crowd[1]);
	answer = ask("192.0.2.1", late);
	assert_int_equal(answer.verdict, PLX_ADMIT_TAKE);
	/* Nothing moves for 100 ms: the oldest has had its time. */
	now_ns += 50 * MILLI;
	answer = ask("192.0.2.1", NULL);
	assert_int_equal(answer.verdict, PLX_ADMIT_TAKE);
	close_victim(&answer, crowd[0]);
	admission_leave(answer.ticket);
	admission_leave(late);
	leave_all(crowd + 1, 3);
	close_all();
}

PLX_TEST(want_of_descriptors_closes_the_oldest_silent_one)
{
	struct ticket *crowd[2], *alone;

	open_with((struct plx_admission){0});
	assert_null(admission_descriptor(&shared->admission));
	alone = take("192.0.2.2");
	crowd[0] = take("192.0.2.1");
	crowd[1] = take("192.0.2.1");
	assert_ptr_equal(admission_descriptor(&shared->admission), &connections[1]);
	/* Only a provider can close one at once. */
	admission_hold(crowd[0], (struct ticket_holder){0});
	assert_ptr_equal(admission_descriptor(&shared->admission), &connections[2]);
	admission_hold(crowd[1], (struct ticket_holder){0});
	assert_ptr_equal(admission_descriptor(&shared->admission), &connections[0]);
	admission_leave(crowd[0]);
	admission_leave(crowd[1]);
	admission_leave(alone);
	close_all();
}

/* The rate ------------------------------------------------------------------------------------- */

/* 1 000 a second, of which 250 and one more come at once; n connections from that address. */
static unsigned fill_burst(const char *from, struct ticket **tickets)
{
	unsigned count = 0;

	open_with((struct plx_admission){.handshakes_max = PLX_NO_LIMIT});
	for (struct admission_answer answer; count < 251; count++) {
		answer = ask(from, NULL);
		assert_int_equal(answer.verdict, PLX_ADMIT_TAKE);
		tickets[count] = answer.ticket;
	}
	return count;
}

PLX_TEST(one_address_alone_has_the_whole_rate)
{
	enum { WAITING = 750 };
	static struct ticket *tickets[251 + WAITING];
	unsigned count = fill_burst("192.0.2.1", tickets);
	uint64_t begin_ns = now_ns, due_ns[WAITING];

	for (unsigned i = 0; i < WAITING; i++) {
		struct admission_answer answer = ask("192.0.2.1", NULL);

		assert_int_equal(answer.verdict, PLX_ADMIT_KEEP);
		due_ns[i] = now_ns + answer.wait_ns;
		tickets[count + i] = answer.ticket;
	}
	for (unsigned i = 0; i < WAITING; i++) {
		now_ns = due_ns[i];
		assert_int_equal(ask("192.0.2.1", tickets[count + i]).verdict, PLX_ADMIT_TAKE);
	}
	assert_int_equal(now_ns - begin_ns, WAITING * MILLI);
	leave_all(tickets, count + WAITING);
	close_all();
}

PLX_TEST(addresses_take_turns)
{
	static struct ticket *tickets[251 + 100];
	unsigned count = fill_burst("192.0.2.1", tickets);
	struct admission_answer answer;

	for (unsigned i = 0; i < 100; i++)
		tickets[count++] = keep("192.0.2.1");
	answer = ask("192.0.2.2", NULL); /* shares the first turn */
	assert_int_equal(answer.verdict, PLX_ADMIT_KEEP);
	assert_in_range(answer.wait_ns, 1, 2 * MILLI);
	now_ns += answer.wait_ns;
	assert_int_equal(ask("192.0.2.2", answer.ticket).verdict, PLX_ADMIT_TAKE);
	admission_leave(answer.ticket);
	leave_all(tickets, count);
	close_all();
}

PLX_TEST(a_48_has_one_turn_however_many_64_it_uses)
{
	static struct ticket *tickets[251 + 100];
	unsigned count = fill_burst("192.0.2.1", tickets);
	struct admission_answer answer;
	char from[40];

	for (unsigned i = 0; i < 100; i++) {
		snprintf(from, sizeof(from), "2001:db8:1:%x::1", i);
		tickets[count++] = keep(from);
	}
	answer = ask("192.0.2.2", NULL);
	assert_in_range(answer.wait_ns, 1, 2 * MILLI);
	admission_leave(answer.ticket);
	leave_all(tickets, count);
	close_all();
}

PLX_TEST(those_that_leave_give_their_turn_back)
{
	static struct ticket *tickets[251 + 100];
	unsigned count = fill_burst("192.0.2.1", tickets);
	struct ticket *last;

	for (unsigned i = 0; i < 100; i++)
		tickets[count++] = keep("192.0.2.1");
	last = keep("192.0.2.1");
	for (unsigned i = 251; i < count; i++)
		admission_leave(tickets[i]);
	now_ns += MILLI;
	assert_int_equal(ask("192.0.2.1", last).verdict, PLX_ADMIT_TAKE);
	admission_leave(last);
	leave_all(tickets, 251);
	close_all();
}

/* 2 500 wait at most: half of the 5 s for which a peer waits. */
PLX_TEST(the_address_of_which_most_wait_loses_its_newest_one)
{
	static struct ticket *tickets[251 + 2600];
	unsigned count = fill_burst("192.0.2.1", tickets);
	struct admission_answer answer;

	while (root()->shares[ORIGIN_WAITING] < shared->admission.waiting_max)
		tickets[count++] = keep("192.0.2.1");
	assert_in_range(count - 251, 2400, 2501);
	expect_refused("192.0.2.1", ADMISSION_RATE);
	answer = ask("192.0.2.2", NULL);
	assert_int_equal(answer.verdict, PLX_ADMIT_KEEP);
	assert_int_equal(answer.victim_cause, ADMISSION_RATE);
	close_victim(&answer, tickets[--count]);
	admission_leave(answer.ticket);
	leave_all(tickets, count);
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
	admission_leave(first);
	assert_int_equal(ask("192.0.2.2", answer.ticket).verdict, PLX_ADMIT_TAKE);
	admission_leave(answer.ticket);
	close_all();
}

PLX_TEST(nobody_waits_for_longer_than_half_of_its_time)
{
	static struct ticket *tickets[251];
	unsigned count = fill_burst("192.0.2.1", tickets);
	struct ticket *late = keep("192.0.2.1");

	/* No time passes for the rate while handshakes are full, say. */
	now_ns += 2501 * MILLI;
	shared->admission.turns.next_ns = now_ns + PLX_NS_PER_S;
	assert_int_equal(ask("192.0.2.1", late).cause, ADMISSION_RATE);
	leave_all(tickets, count);
	close_all();
}

/* All together --------------------------------------------------------------------------------- */

static uint64_t seed;

static uint32_t dice(uint32_t sides)
{
	return dice_roll(&seed, sides);
}

static void random_peer(char out[40])
{
	if (dice(2))
		snprintf(out, 40, "192.0.2.%u", dice(8) + 1);
	else
		snprintf(out, 40, "2001:db8:%x:%x::1", dice(3) + 1, dice(3));
}

static struct ticket *present[512];
static bool is_kept[512];
static unsigned present_count;

static void forget(struct ticket *ticket)
{
	for (unsigned i = 0; i < present_count; i++) {
		if (present[i] != ticket)
			continue;
		present[i] = present[--present_count];
		is_kept[i] = is_kept[present_count];
		return;
	}
	fail_msg("an unknown connection made room");
}

static void note(const struct admission_answer *answer)
{
	if (answer->victim) {
		forget(answer->victim);
		close_victim(answer, answer->victim);
	}
	if (!answer->ticket)
		return;
	present[present_count] = answer->ticket;
	is_kept[present_count++] = answer->verdict == PLX_ADMIT_KEEP;
}

static void act(unsigned i)
{
	struct ticket *ticket = present[i];
	struct admission_answer answer;
	bool was_kept = is_kept[i];

	present[i] = present[--present_count];
	is_kept[i] = is_kept[present_count];
	if (dice(3) == 0) {
		admission_leave(ticket);
		return;
	}
	if (was_kept) {
		answer = ask("192.0.2.1", ticket); /* its address is not looked at again */
		note(&answer);
		return;
	}
	admission_opened(ticket);
	admission_leave(ticket);
}

PLX_TEST(limits_hold_and_nothing_is_left_whatever_happens)
{
	char from[40];

	open_with((struct plx_admission){.links_max = 40,
					 .links_per_host_max = 8,
					 .handshakes_max = 10,
					 .accepts_per_s = 200});
	present_count = 0;
	for (int i = 0; i < 100000; i++) {
		now_ns += dice(10) * MILLI;
		if (present_count && dice(2)) {
			act(dice(present_count));
		} else {
			struct admission_answer answer;

			connection_count %= PLX_ARRAY_LEN(connections) - 1;
			random_peer(from);
			answer = ask(from, NULL);
			note(&answer);
		}
		assert_true(root()->shares[ORIGIN_LINKS] <= 40 &&
			    root()->shares[ORIGIN_HALF_OPEN] <= 10);
		assert_true(root()->shares[ORIGIN_WAITING] <= shared->admission.waiting_max);
		assert_true(present_count < PLX_ARRAY_LEN(present));
	}
	while (present_count)
		admission_leave(present[--present_count]);
	close_all();
}

PLX_TEST_MAIN()
