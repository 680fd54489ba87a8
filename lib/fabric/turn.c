/* SPDX-License-Identifier: BSD-3-Clause */
/* What the receivers of an lcore may do in a turn: doc/design/turns.md. */
#include "fabric_link.h"

/* Messages between two looks at the clock, each of which costs as much as a short message. If that
 * many would take longer than a turn may, every message is followed by a look. */
#define BURST_MAX 16

/* Messages with a look after a very slow burst, to find the next slow one: first and at most. */
#define OFTEN_MIN 16
#define OFTEN_MAX 4096

/* Receivers begin with a burst of one message for that many turns after a slow one: those that were
 * fast before them say nothing about them. Then, after each such number of turns that ends with one
 * without a message, the next burst is twice as long. */
#define CALM_TURNS 1024

static uint32_t turn_max;
uint64_t turn_budget_ns;
static uint64_t slow_ns; /* a message that takes longer is slow */
static uint32_t pace_max;

int turn_init(const struct plx_fabric_conf *conf)
{
	turn_max = conf->turn_max ?: PLX_TURN_MAX_DEFAULT;
	turn_budget_ns = conf->turn_ns ?: PLX_TURN_NS_DEFAULT;
	slow_ns = turn_budget_ns / BURST_MAX;
	pace_max = turn_max < BURST_MAX ? turn_max : BURST_MAX;
	return check_range("turn_ns", turn_budget_ns, PLX_TURN_NS_MIN, PLX_TURN_NS_MAX);
}

static struct plx_fabric_lcore *home_of(struct turn *turn)
{
	return plx_container_of(turn, struct plx_fabric_lcore, budget);
}

void turn_home_init(struct plx_fabric_lcore *home)
{
	TAILQ_INIT(&home->receivers);
	home->budget = (struct turn){.burst = 1,
				     .given = 1,
				     .pace = pace_max,
				     .over = UINT64_MAX,
				     .slow = -(uint64_t)CALM_TURNS,
				     .often_next = OFTEN_MIN};
}

struct turn *turn_of(const struct plx_link *link)
{
	return &link->home->budget;
}

static void begin(struct turn *turn, uint64_t now_ns)
{
	turn->number = home_of(turn)->turn;
	turn->looked_ns = now_ns;
	turn->end_ns = now_ns + turn_budget_ns;
	turn->left = turn_max;
}

static void stop(struct turn *turn)
{
	turn->over = turn->number;
	home_of(turn)->takes_turns = true;
}

static void give_burst(struct turn *turn)
{
	turn->given = turn->pace < turn->left ? turn->pace : turn->left;
	turn->burst = turn->given;
}

bool turn_is_over(const struct turn *turn)
{
	return turn->over == home_of((struct turn *)turn)->turn;
}

static PLX_NOINLINE void set_pace(struct turn *turn, bool is_slow)
{
	uint32_t twice = 2 * turn->pace < pace_max ? 2 * turn->pace : pace_max;

	turn->pace = is_slow || turn->often ? 1 : twice;
	turn->often -= turn->often > 0;
	if (is_slow)
		turn->slow = home_of(turn)->turn;
	home_of(turn)->takes_turns |= turn->pace < pace_max;
}

void turn_look_often(struct turn *turn)
{
	turn->often = turn->often_next;
	if (turn->often_next < OFTEN_MAX)
		turn->often_next *= 2;
	set_pace(turn, true);
}

bool turn_look(struct turn *turn)
{
	struct plx_fabric_lcore *home = home_of(turn);
	uint64_t now_ns, since_ns = turn->looked_ns;
	bool is_slow, is_exact = turn->number == home->turn;
	uint32_t done = turn->given;

	turn->burst = 1;
	if (plx_unlikely(turn->over == home->turn))
		return false;
	now_ns = plx_now_ns();
	if (!is_exact) { /* it began with a burst that was left before */
		since_ns = home->turn_ns;
		begin(turn, now_ns);
	}
	turn->looked_ns = now_ns;
	is_slow = plx_time_since(since_ns, now_ns) > done * slow_ns;
	if (plx_unlikely(is_slow || turn->pace < pace_max))
		set_pace(turn, is_slow);
	if (plx_unlikely(is_slow) && now_ns - since_ns >= LCORE_LONG_TURN_NS)
		slow_burst(home, now_ns - since_ns, is_exact ? done : 0);
	turn->left -= done; /* which is not more */
	if (plx_unlikely(turn->left == 0 || now_ns >= turn->end_ns)) {
		stop(turn);
		return false;
	}
	give_burst(turn);
	return true;
}

bool turn_has_time(struct turn *turn)
{
	struct plx_fabric_lcore *home = home_of(turn);
	uint64_t now_ns = plx_now_ns();

	if (turn->number != home->turn)
		begin(turn, now_ns);
	if (now_ns >= turn->end_ns)
		stop(turn);
	return !turn_is_over(turn);
}

/* Receivers in turn ---------------------------------------------------------------------------- */

void turn_add(struct plx_fabric_lcore *home, struct turn_rest *receiver)
{
	TAILQ_INSERT_TAIL(&home->receivers, receiver, of_home);
	home->receiver_count++;
	receiver->home = home;
}

void turn_remove(struct turn_rest *receiver)
{
	struct plx_fabric_lcore *home = receiver->home;

	if (!home)
		return;
	if (home->running == receiver)
		home->running = NULL;
	TAILQ_REMOVE(&home->receivers, receiver, of_home);
	home->receiver_count--;
	receiver->home = NULL;
}

void turn_wait(struct turn_rest *rest, struct plx_link *link, bool keeps_link)
{
	if (rest->home)
		return;
	turn_add(link->home, rest);
	link->home->rest_count++;
	link->home->takes_turns = true;
	if (keeps_link) {
		rest->link = link;
		link->has_rest = true;
	}
}

void turn_end(struct turn_rest *rest)
{
	if (!rest->home)
		return;
	rest->home->rest_count--;
	turn_remove(rest);
	if (rest->link)
		rest->link->has_rest = false;
	rest->link = NULL;
}

/* The next receiver's messages. */
static void begin_receiver(struct turn *turn)
{
	if (home_of(turn)->turn - turn->slow >= CALM_TURNS)
		return;
	turn->left -= turn->given - turn->burst;
	turn->pace = 1;
	give_burst(turn);
}

/* A receiver goes to the end of the list before it runs: so the next turn begins with the one after
 * it, also if a C++ callback throws. One that has only what a set left of the turn goes before that
 * set: the next time it is another one. */
static struct turn_rest *rotate(struct plx_fabric_lcore *home, struct turn_rest *set)
{
	struct turn_rest *first = TAILQ_FIRST(&home->receivers);

	if (!first)
		return NULL;
	TAILQ_REMOVE(&home->receivers, first, of_home);
	if (set && set->home && set != first) /* not after a fork */
		TAILQ_INSERT_BEFORE(set, first, of_home);
	else
		TAILQ_INSERT_TAIL(&home->receivers, first, of_home);
	return first;
}

/* Each receiver once, the first of the list first. */
PLX_NOINLINE int turn_run(struct plx_fabric_lcore *home)
{
	struct turn *turn = &home->budget;
	struct turn_rest *set = NULL;
	int work = 0;

	begin(turn, plx_now_ns());
	give_burst(turn);
	if (plx_time_since(home->look_ns, home->turn_ns) >= LOOK_EVERY_NS)
		home->look_in = 1;
	for (uint32_t count = home->receiver_count; count && !turn_is_over(turn); count--) {
		struct turn_rest *first = rotate(home, set);

		if (!first)
			break;
		begin_receiver(turn);
		set = first->go_on == set_go_on ? first : NULL; /* callbacks end no sets */
		home->running = first;
		work += first->go_on(first);
	}
	home->running = NULL;
	home->takes_turns = home->rest_count || turn_is_over(turn);
	if (turn->pace < pace_max) {
		bool is_calm = turn->burst == turn->given && home->turn % CALM_TURNS == 0;

		home->takes_turns = true;
		if (is_calm)
			set_pace(turn, false);
	}
	return work;
}

void turn_forget(struct plx_fabric_lcore *home)
{
	struct turn_rest *each;

	while ((each = TAILQ_FIRST(&home->receivers))) {
		if (each->link)
			each->link->has_rest = false;
		each->link = NULL;
		turn_remove(each);
	}
	home->rest_count = 0;
	home->takes_turns = false;
}
