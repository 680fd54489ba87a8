/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between more lcores than CPUs, and from other threads, at full speed. lane.c is built
 * with a small LANE_COLD_LOOKS, so that bells are cleared constantly, even during a send. An
 * unnoticed message shows as a stall. */
#include "lcores.h"
#include "stress.h"

#define LCORES  6
#define THREADS 4

static uint32_t messages_each; /* from each sender to each lcore */

static _Atomic uint32_t unfinished; /* parts of the test; the last one stops the loops */
static uint32_t stops;              /* written before plx_stop, so visible after the stop */

static void finish(void)
{
	if (atomic_fetch_sub_explicit(&unfinished, 1, memory_order_relaxed) != 1)
		return;
	stops++;
	plx_stop();
}

/* Run all lcores and threads until the last part is finished. */
static void run_all(uint32_t lcore_count, uint32_t parts, plx_lcore_fn on_lcore,
		    void *(*on_thread)(void *))
{
	pthread_t threads[THREADS];
	int result = -1;

	messages_each = (uint32_t)stress_amount;
	lcores_up(lcore_count);
	atomic_store(&unfinished, parts);
	threads_start(threads, THREADS, on_thread, NULL, 1);
	assert_int_equal(plx_lcore_launch_all(on_lcore, NULL, &result), 0);
	assert_int_equal(result, 0);
	threads_join(threads, THREADS);
	assert_int_equal(plx_lcore_join_all(10 * PLX_NS_PER_S, &result), 0);
	assert_int_equal(result, 0);
}

/* Every message once and in order ------------------------------------------------------------ */

#define SENDERS (THREADS + LCORES)

/* Received and done by one lcore; private to it. */
struct mine {
	PLX_ALIGNED_LINE uint32_t next[SENDERS]; /* next sequence of each sender */
	uint64_t received;
	uint64_t random;
	uint32_t pause_turns;
	uint32_t sent[LCORES];
};

static struct mine all[LCORES];

static struct mine *mine(void)
{
	return &all[plx_lcore_id() / 10];
}

/* Each sender sends `messages_each`. */
static uint64_t expected(void)
{
	return (uint64_t)SENDERS * messages_each;
}

static void check(uint32_t stream, uint32_t sequence, bool right)
{
	struct mine *me = mine();

	assert_true(right);
	assert_int_equal(sequence, me->next[stream]);
	me->next[stream] = sequence + 1;
	stress_went_on();
	if (++me->received == expected())
		finish();
}

struct data {
	uint32_t to, stream, sequence, check[9];
};

static void receive_data(const void *arg, size_t size_bytes)
{
	const struct data *data = arg;

	check(data->stream, data->sequence,
	      size_bytes == sizeof(*data) && data->to == plx_lcore_id() &&
		      data->check[0] == ~data->sequence && data->check[8] == data->sequence * 7);
}

static void receive_word(void *arg)
{
	uint64_t word = (uintptr_t)arg;

	check(word >> 32 & 0xff, (uint32_t)word, word >> 40 == plx_lcore_id());
}

/* Every third message has a payload. */
static bool send_to(uint32_t to, uint32_t stream, uint32_t sequence)
{
	uint64_t word = (uint64_t)to << 40 | (uint64_t)stream << 32 | sequence;
	struct data data = {to, stream, sequence, {~sequence}};

	data.check[8] = sequence * 7;
	if (sequence % 3 == 0)
		return PLX_LCORE_SEND_VALUE(to, receive_data, data) == 0;
	return plx_lcore_send(to, receive_word, (void *)(uintptr_t)word) == 0;
}

static void *send_from_thread(void *arg)
{
	uint32_t thread = (uint32_t)(uintptr_t)arg;

	for (uint32_t i = 0; i < messages_each; i++) {
		for (uint32_t to = 0; to < LCORES * 10; to += 10) {
			while (!send_to(to, thread, i) && !plx_stopping())
				sched_yield();
		}
	}
	return NULL;
}

static int make_bursts(struct mine *me)
{
	int work = 0;

	for (uint32_t to = 0; to < LCORES; to++) {
		for (unsigned i = dice_roll(&me->random, 16); i; i--) {
			if (me->sent[to] == messages_each ||
			    !send_to(to * 10, THREADS + plx_lcore_id() / 10, me->sent[to]))
				break;
			me->sent[to]++;
			work++;
		}
	}
	return work;
}

static int send_from_lcore(void *arg, uint64_t now_ns)
{
	struct mine *me = mine();
	int work = 0;

	if (me->pause_turns) {
		me->pause_turns--;
	} else {
		work = make_bursts(me);
		if (dice_roll(&me->random, 16) == 0)
			me->pause_turns = dice_roll(&me->random, 32);
	}
	if (!work)
		sched_yield(); /* there may be more lcores than CPUs */
	return work;
}

static int run_mix(void *arg)
{
	struct mine *me = mine();

	assert_works(plx_poller_add("send", send_from_lcore, NULL, NULL));
	me->random = 1 + plx_lcore_id();
	return plx_loop_run();
}

PLX_TEST(all_messages_arrive_once_and_in_order)
{
	run_all(LCORES, LCORES, run_mix, send_from_thread);
	for (uint32_t i = 0; i < LCORES; i++)
		assert_int_equal(all[i].received, expected());
	lcores_down();
}

/* No message unnoticed ----------------------------------------------------------------------- */

/* Each lcore calls every lcore with a greater id, one call at a time. Threads send one message at a
 * time, each to a different lcore. So every lane holds one message, and nothing else rings its
 * bell. */
#define PAIRED THREADS

struct pair {
	PLX_ALIGNED_LINE struct plx_call call;
	uint32_t from, to;
	uint32_t calls;
	uint64_t random;
	uint32_t wait_turns;
	bool in_flight;
};

static struct pair pairs[PAIRED * (PAIRED - 1) / 2];
static _Atomic uint32_t heard[PAIRED];

static void jitter(uint64_t *random, uint32_t most)
{
	for (uint32_t i = dice_roll(random, most); i; i--)
		atomic_signal_fence(memory_order_seq_cst); /* spend time */
}

static int nothing(struct plx_call *call, void *arg)
{
	return 0;
}

static void call_again(struct plx_call *call, int result, void *arg)
{
	struct pair *pair = arg;

	pair->in_flight = false;
	/* Long enough for the bell to be cleared, or not, or just about. */
	pair->wait_turns = dice_roll(&pair->random, 8);
	stress_went_on();
	if (++pair->calls == messages_each)
		finish();
}

static int call_pairs(void *arg, uint64_t now_ns)
{
	for (unsigned i = 0; i < PLX_ARRAY_LEN(pairs); i++) {
		struct pair *pair = &pairs[i];

		if (pair->from != plx_lcore_id() || pair->in_flight || pair->calls == messages_each)
			continue;
		if (pair->wait_turns) {
			pair->wait_turns--;
			continue;
		}
		jitter(&pair->random, 64);
		pair->in_flight = plx_lcore_call(pair->to, &pair->call) == 0;
	}
	if (dice(64) == 0)
		sched_yield();
	return 0;
}

static int run_pairs(void *arg)
{
	assert_works(plx_poller_add("pairs", call_pairs, NULL, NULL));
	return plx_loop_run();
}

static void hear(void *arg)
{
	atomic_fetch_add_explicit(&heard[(uintptr_t)arg], 1, memory_order_relaxed);
	stress_went_on();
	jitter(&stress_dice, 512); /* the next one may arrive before this one is done */
}

static void *send_one_at_a_time(void *arg)
{
	uint32_t thread = (uint32_t)(uintptr_t)arg;

	for (uint32_t i = 0; i < messages_each; i++) {
		jitter(&stress_dice, 512);
		plx_lcore_send(thread * 10, hear, arg);
		while (atomic_load_explicit(&heard[thread], memory_order_relaxed) == i) {
			if (plx_stopping())
				return NULL;
			if (dice(64) == 0)
				sched_yield();
		}
	}
	finish();
	return NULL;
}

PLX_TEST(no_message_is_left_unheard)
{
	unsigned count = 0;

	for (uint32_t from = 0; from < PAIRED; from++) {
		for (uint32_t to = from + 1; to < PAIRED; to++) {
			pairs[count] = (struct pair){
				.call = {.fn = nothing, .done = call_again, .arg = &pairs[count]},
				.from = from * 10,
				.to = to * 10,
				.random = count + 1,
			};
			count++;
		}
	}
	run_all(PAIRED, THREADS + count, run_pairs, send_one_at_a_time);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(pairs[i].calls, messages_each);
	lcores_down();
}

/* Lanes requested by both sides --------------------------------------------------------------- */

/* All lcores start at the same moment, without lanes. Each calls all others, so a lane between two
 * is created by its sender or by the responder. With two lcores, one comes late: it finds both
 * lanes, and only the lanes tell it that they are set up. */
static struct plx_call meetings[PAIRED][PAIRED];
static _Atomic uint32_t arrived; /* two per pair; relaxed: it must order nothing */
static uint32_t meeting_count, present;

static void on_met(struct plx_call *call, int result, void *arg)
{
	stress_went_on();
	finish();
}

static void greet(void *arg)
{
	stress_went_on();
}

static int give_way(void *arg, uint64_t now_ns)
{
	sched_yield(); /* there may be more lcores than CPUs */
	return 0;
}

static void wait_for(uint32_t count)
{
	while (atomic_load_explicit(&arrived, memory_order_relaxed) < count)
		sched_yield();
}

static int meet(void *arg)
{
	uint32_t me = plx_lcore_id() / 10;
	bool is_late = present == 2 && me == 1;

	assert_works(plx_poller_add("give way", give_way, NULL, NULL));
	atomic_fetch_add_explicit(&arrived, 1, memory_order_relaxed);
	wait_for(is_late ? present + 1 : present);
	if (is_late)
		assert_works(plx_lcore_send(0, greet, NULL));
	for (uint32_t i = 1; i < present; i++) {
		uint32_t to = (me + i) % present;

		meetings[me][to] = (struct plx_call){.fn = nothing, .done = on_met};
		assert_works(plx_lcore_call(to * 10, &meetings[me][to]));
	}
	atomic_fetch_add_explicit(&arrived, 1, memory_order_relaxed);
	assert_works(plx_loop_run());
	assert_int_equal(stops, meeting_count);
	return 0;
}

static void *wait_for_stop(void *arg)
{
	while (arg == NULL && !plx_stopping())
		sched_yield();
	assert_true(arg || stops == meeting_count);
	return NULL;
}

PLX_TEST(a_lane_that_two_want_at_once_is_one)
{
	stops = 0;
	for (meeting_count = 1; meeting_count <= 12; meeting_count++) {
		present = meeting_count % 2 ? 2 : PAIRED;
		atomic_store(&arrived, 0);
		run_all(present, present * (present - 1), meet, wait_for_stop);
		lcores_down();
	}
}

/* Room --------------------------------------------------------------------------------------- */

/* Each lcore has two streams to each lcore, itself included, through lanes of two slots. A stream
 * sends until the lane is full, and continues when it is notified of room. Nothing polls meanwhile,
 * and the lcores sleep. A missed notification shows as a stall. */
#define FLOWS (PAIRED * PAIRED * 2)

struct flow {
	PLX_ALIGNED_LINE struct plx_task task; /* the sender's */
	uint32_t to, sent;
	PLX_ALIGNED_LINE uint32_t received; /* the receiver's */
};

static struct flow flows[FLOWS];

static void flow_in(const void *data, size_t size_bytes)
{
	const uint32_t *word = data;
	struct flow *flow = &flows[word[0]];

	assert_int_equal(size_bytes, 8);
	assert_int_equal(word[1], flow->received);
	assert_int_equal(flow->to, plx_lcore_id());
	stress_went_on();
	if (++flow->received == messages_each)
		finish();
}

static void flow_out(struct plx_task *task, void *arg)
{
	struct flow *flow = arg;
	uint32_t word[2] = {(uint32_t)(flow - flows)};

	for (; flow->sent < messages_each; flow->sent++) {
		word[1] = flow->sent;
		if (PLX_LCORE_SEND_VALUE(flow->to, flow_in, word) == 0)
			continue;
		assert_works(plx_lcore_on_room(flow->to, task));
		if (flow->sent % 3 == 0) { /* add and cancel the request, twice */
			plx_task_cancel(task);
			plx_lcore_on_room(flow->to, task);
		}
		return;
	}
}

static int run_flows(void *arg)
{
	uint32_t me = plx_lcore_id() / 10;

	for (uint32_t i = 0; i < FLOWS / PAIRED; i++) {
		struct flow *flow = &flows[me * (FLOWS / PAIRED) + i];

		flow->to = i / 2 * 10;
		plx_task_init(&flow->task, flow_out, flow);
		assert_works(plx_task_schedule(&flow->task));
	}
	return plx_loop_run();
}

static void *no_thread(void *arg)
{
	return NULL;
}

PLX_TEST(every_sender_hears_of_room)
{
	lcores_lane_slots = 2;
	run_all(PAIRED, FLOWS, run_flows, no_thread);
	lcores_lane_slots = 0;
	for (unsigned i = 0; i < FLOWS; i++)
		assert_int_equal(flows[i].received, messages_each);
	lcores_down();
}

STRESS_MAIN(20000, 20000)
