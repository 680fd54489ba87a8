/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues that share an epoll set of their owner, as those of an lcore do. Here both sides share
 * one, which this thread polls. */
#include "count.h"
#include "pair.h"

#include <sys/epoll.h>

static struct owner {
	struct plx_watch_set set;
	int epoll;
} owner;

static int add(struct plx_watch_set *set, struct plx_watch *watch, uint32_t events)
{
	return plx_watch_in(owner.epoll, watch, events);
}

static void take_out(struct plx_watch_set *set, struct plx_watch *watch)
{
	epoll_ctl(owner.epoll, EPOLL_CTL_DEL, watch->fd, NULL);
}

/* One at a time: handling one may close another. */
static bool look_for(int timeout_ms)
{
	struct epoll_event event;
	struct plx_watch *watch;

	if (epoll_wait(owner.epoll, &event, 1, timeout_ms) != 1)
		return false;
	watch = event.data.ptr;
	if (watch->ready)
		watch->ready(watch, event.events);
	return true;
}

static void look(struct plx_watch_set *set)
{
	for (int i = 0; i < 16 && look_for(0); i++)
		;
}

static int share(void **state)
{
	owner = (struct owner){.set = {add, take_out, look}, .epoll = epoll_create1(0)};
	tested_set = &owner.set;
	return 0;
}

static int open_pair(void **state)
{
	share(state);
	return set_up(state);
}

static int own_again(void **state)
{
	tested_set = NULL;
	close(owner.epoll);
	return 0;
}

static int close_pair(void **state)
{
	tear_down(state);
	return own_again(state);
}

#define TEST(name) PLX_TEST_WITH(name, open_pair, close_pair)

static int arm(struct side *side)
{
	struct fid *both[] = {&side->rx_cq->fid, &side->eq->fid};

	return fi_trywait(side->fabric, both, 2);
}

/* Until nothing is left to do. Then only new events make the set ready. */
static void fall_asleep(void)
{
	until(!arm(&pair.a) && !arm(&pair.b) && !look_for(0), {
		fi_cq_read(pair.a.rx_cq, NULL, 0);
		fi_cq_read(pair.b.rx_cq, NULL, 0);
	});
}

TEST(a_message_wakes_the_owner_of_the_set)
{
	struct fi_cq_data_entry entry;
	char got[8];

	for (int i = 0; i < 100; i++) {
		assert_int_equal(fi_recv(pair.b.ep, got, sizeof(got), NULL, 0, NULL), 0);
		fall_asleep();
		assert_int_equal(fi_inject(pair.a.ep, "hello", 6, 0), 0);
		assert_true(look_for(PATIENCE_S * 1000));
		assert_int_equal(fi_cq_read(pair.b.rx_cq, &entry, 1), 1);
		assert_string_equal(got, "hello");
	}
}

TEST(a_disconnect_wakes_the_owner_of_the_set)
{
	union cm_event event;
	uint32_t number;

	fall_asleep();
	side_close_ep(&pair.a);
	assert_true(look_for(PATIENCE_S * 1000));
	fi_cq_read(pair.b.rx_cq, NULL, 0);
	assert_int_equal(fi_eq_read(pair.b.eq, &number, &event, sizeof(event), 0),
			 sizeof(event.cm));
	assert_int_equal(number, FI_SHUTDOWN);
	fall_asleep(); /* it is reported once */
}

TEST(an_endpoint_may_be_closed_after_it_woke_the_owner_of_the_set)
{
	fall_asleep();
	assert_int_equal(fi_inject(pair.a.ep, "hello", 6, 0), 0);
	assert_true(look_for(PATIENCE_S * 1000));
	side_close_ep(&pair.b);
	side_close_ep(&pair.a);
	pair_connect(&pair);
	fall_asleep();
}

/* Event queues ------------------------------------------------------------------------------- */

static unsigned events;

static void on_event(struct plx_watch *watch, uint32_t ready)
{
	events++;
}

static struct side alone;

static int open_eq(void **state)
{
	static struct plx_watch event = {-1, on_event};
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_NONE, .flags = FI_WRITE};

	share(state);
	events = 0;
	alone = (struct side){
		.info = pair_info("127.0.0.1", "0", FI_SOURCE, &(struct pair_attr){0})};
	assert_int_equal(prov_fabric_open(tested, alone.info->fabric_attr, &alone.fabric, NULL), 0);
	assert_int_equal(fi_eq_open(alone.fabric, &attr, &alone.eq, NULL), 0);
	assert_int_equal(side_watch_ops(&alone)->join(&alone.eq->fid, tested_set, &event), 0);
	return 0;
}

static int close_eq(void **state)
{
	side_close(&alone);
	return own_again(state);
}

#define EQ_TEST(name) PLX_TEST_WITH(name, open_eq, close_eq)

EQ_TEST(an_event_is_announced_and_prevents_sleep)
{
	struct fid *queue = &alone.eq->fid;
	uint32_t number;
	char data[8];

	assert_int_equal(fi_trywait(alone.fabric, &queue, 1), 0);
	assert_int_equal(fi_eq_write(alone.eq, 7, "data", 4, 0), 4);
	assert_int_equal(events, 1);
	assert_int_equal(fi_trywait(alone.fabric, &queue, 1), -FI_EAGAIN);
	assert_int_equal(fi_eq_read(alone.eq, &number, data, sizeof(data), 0), 4);
	assert_int_equal(fi_trywait(alone.fabric, &queue, 1), 0);
}

static unsigned passed;

static void count(struct prov_deadline *deadline)
{
	passed++;
}

EQ_TEST(deadlines_need_no_descriptor_and_limit_the_sleep)
{
	const struct plx_watch_ops *ops = side_watch_ops(&alone);
	struct prov_deadline deadline = {.passed = count};
	struct prov_eq *eq = (struct prov_eq *)alone.eq;
	int descriptors = count_descriptors();
	uint32_t number;
	char data[8];

	passed = 0;
	assert_int_equal(ops->left_ns(alone.eq), UINT64_MAX);
	assert_int_equal(eq_set_deadline(eq, &deadline, queue_now_ns() + 3600 * PLX_NS_PER_S), 0);
	assert_in_range(ops->left_ns(alone.eq), 3000 * PLX_NS_PER_S, 3600 * PLX_NS_PER_S);
	assert_int_equal(fi_eq_read(alone.eq, &number, data, sizeof(data), 0), -FI_EAGAIN);
	assert_int_equal(passed, 0);
	eq_clear_deadline(eq, &deadline);
	assert_int_equal(eq_set_deadline(eq, &deadline, queue_now_ns()), 0);
	assert_int_equal(ops->left_ns(alone.eq), 0);
	assert_int_equal(fi_eq_read(alone.eq, &number, data, sizeof(data), 0), -FI_EAGAIN);
	assert_int_equal(passed, 1);
	assert_int_equal(ops->left_ns(alone.eq), UINT64_MAX);
	assert_int_equal(count_descriptors(), descriptors);
}

EQ_TEST(only_an_unused_queue_without_a_wait_object_joins)
{
	const struct plx_watch_ops *ops = side_watch_ops(&alone);
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_FD};
	struct fid_eq *waiting;
	void *none;

	assert_int_equal(ops->join(&alone.eq->fid, tested_set, NULL), -FI_EINVAL);
	assert_int_equal(ops->join(&alone.fabric->fid, tested_set, NULL), -FI_EINVAL);
	assert_int_equal(fi_eq_open(alone.fabric, &attr, &waiting, NULL), 0);
	assert_int_equal(ops->join(&waiting->fid, tested_set, NULL), -FI_EINVAL);
	assert_int_equal(fi_close(&waiting->fid), 0);
	assert_int_equal(fi_open_ops(&alone.fabric->fid, "plx_watch/0", 0, &none, NULL),
			 -FI_ENOSYS);
	assert_int_equal(fi_open_ops(&alone.fabric->fid, PLX_WATCH_OPS, 1, &none, NULL),
			 -FI_ENOSYS);
}

TESTED_MAIN()
