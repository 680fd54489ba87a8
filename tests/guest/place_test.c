/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of an lcore is on the lcore's node, whatever thread allocates it. Trivially true on a host
 * with one node; scripts/guest.sh --numa runs it on several. */
#include "lcore_priv.h"
#include "lcores.h"
#include "mem_priv.h"
#include "pages.h"

#include <sched.h>

#define WORKER       10 /* lcores.h: ids 0 and 10, in the guest on CPUs 0 and 1 */
#define DEEP_BYTES   ((size_t)512 << 10)
#define OBJECTS      3000
#define OBJECT_BYTES 200
#define VAR_BYTES    10000

/* One lcore per node, as far as there are nodes; main_lcore is the main one. */
static void up(uint32_t main_lcore)
{
	assert_int_equal(plx_mem_init(NULL), 0);
	lcores_prepare(2);
	lcores.conf.main_lcore = main_lcore;
	assert_works(plx_lcores_init(&lcores.conf));
	if (guest_nodes())
		assert_int_not_equal(plx_lcore_node(0), plx_lcore_node(WORKER));
}

static int teardown(void **state)
{
	if (plx_lcore_count())
		lcores_down();
	plx_mem_fini();
	return 0;
}

/* Run fn(arg) on both lcores in turn: the worker sleeps while pages are checked. */
static void on_each(plx_lcore_fn fn, void *arg)
{
	fn(arg);
	PLX_LCORE_FOREACH_WORKER (id)
		run_on(id, fn, arg);
}

static struct loop *loop_of(uint32_t id)
{
	return atomic_load_explicit(&lcore_get(id)->loop, memory_order_acquire);
}

#define TEST(name) PLX_TEST_WITH(name, NULL, teardown)

/* Compared with libnuma, which reads it elsewhere. */
TEST(cpus_and_lcores_have_the_nodes_that_the_system_says)
{
	struct plx_topo *topo;

	assert_int_equal(plx_topo_open(NULL, &topo), 0);
	PLX_CPUSET_FOREACH (cpu, plx_topo_cpus(topo))
		assert_int_equal(plx_topo_cpu_node(topo, cpu), numa_node_of_cpu((int)cpu));
	if (guest_nodes()) {
		assert_int_equal(plx_topo_node_count(topo), numa_max_node() + 1);
		assert_int_equal(plx_topo_cpu_node(topo, 0), 0);
		assert_int_equal(plx_topo_cpu_node(topo, 1), 1);
		assert_int_equal(plx_topo_cpu_node(topo, 2), guest_bare_node());
	}
	plx_topo_close(topo);
	up(0);
	PLX_LCORE_FOREACH (id)
		assert_int_equal(plx_lcore_node(id), numa_node_of_cpu((int)plx_lcore_cpu(id)));
}

struct own {
	const void *stack;
	size_t stack_bytes;
	const void *tls;
};

/* By lcore id. */
static struct own owns[WORKER + 1];

static PLX_NOINLINE void go_deep(void)
{
	_Alignas(PLX_CACHE_LINE) char frame[DEEP_BYTES];

	memset(frame, 1, sizeof(frame));
	__asm__ volatile("" : : "r"(frame) : "memory");
}

static int tell_own(void *arg)
{
	struct own *own = &owns[plx_lcore_id()];
	pthread_attr_t attr;
	void *stack;

	go_deep();
	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &stack, &own->stack_bytes);
	pthread_attr_destroy(&attr);
	own->stack = stack;
	own->tls = &loop_self;
	return 0;
}

/* The process started on the other lcore's CPU. */
TEST(stacks_and_loops_lie_on_the_lcores_nodes)
{
	cpu_set_t before, first;

	CPU_ZERO(&first);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	for (size_t cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&first); cpu++) {
		if (CPU_ISSET(cpu, &before))
			CPU_SET(cpu, &first);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(first), &first), 0);
	go_deep();
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	up(WORKER);
	on_each(tell_own, NULL);
	PLX_LCORE_FOREACH (id) {
		const struct own *own = &owns[id];
		int node = plx_lcore_node(id);

		assert_lies_on("the loop", loop_of(id), sizeof(struct loop), node);
		assert_lies_on("the stack", own->stack, own->stack_bytes, node);
		assert_lies_on("thread-local memory", own->tls, sizeof(loop_self), node);
	}
}

TEST(pools_lie_on_the_node_of_their_attribute)
{
	up(0);
	PLX_LCORE_FOREACH (id) {
		struct plx_pool_attr attr = {.name = "owned",
					     .object_bytes = OBJECT_BYTES,
					     .object_count = OBJECTS,
					     .node = plx_lcore_node(id),
					     .owner = id};
		const char *first, *last;
		struct plx_pool *pool;

		assert_int_equal(plx_pool_create(&attr, &pool), 0);
		first = mem_pool_object(pool, 0);
		last = mem_pool_object(pool, OBJECTS - 1);
		assert_populated_on("the pool", pool, 2 * PLX_CACHE_LINE, attr.node);
		assert_populated_on("its objects", first, (size_t)(last - first) + OBJECT_BYTES,
				    attr.node);
		plx_pool_destroy(pool);
	}
}

static int use_pool(void *arg)
{
	void *object = plx_pool_get(arg);

	if (object)
		plx_pool_put(arg, object);
	return 0;
}

/* Wherever the pool is. */
TEST(caches_lie_with_their_lcores)
{
	struct plx_pool_attr attr = {.name = "shared",
				     .object_bytes = OBJECT_BYTES,
				     .object_count = OBJECTS,
				     .owner = PLX_LCORE_NONE};
	struct plx_pool *pool;

	up(0);
	assert_int_equal(plx_pool_create(&attr, &pool), 0);
	on_each(use_pool, pool);
	PLX_LCORE_FOREACH (id)
		assert_populated_on("the cache", pool->caches[id - pool->lcore_first],
				    pool_cache_bytes(pool_of(pool)->cache_count),
				    plx_lcore_node(id));
	plx_pool_destroy(pool);
}

static void ignore(void *arg)
{
}

static int send_to_all(void *arg)
{
	PLX_LCORE_FOREACH (id) {
		if (plx_lcore_send(id, ignore, NULL))
			return 1;
	}
	return 0;
}

/* Fills every slot, so that every page is present. */
static void *fill_from_outside(void *arg)
{
	for (int i = 0; i < PLX_LANE_SLOTS_DEFAULT; i++)
		send_to_all(NULL);
	return NULL;
}

/* The first sender creates a lane, on the receiver's node. */
TEST(lanes_lie_with_their_receivers)
{
	up(0);
	on_each(send_to_all, NULL);
	PLX_LCORE_FOREACH (to) {
		PLX_LCORE_FOREACH (from) {
			struct lane *lane = loop_of(to)->in[from];

			assert_non_null(lane);
			assert_populated_on("the lane", lane, sizeof(*lane), plx_lcore_node(to));
		}
	}
	on_each(turns_until_idle, NULL);
}

/* The thread runs on the main lcore's CPU, and sends to the worker first. */
TEST(the_lane_of_other_threads_lies_with_its_receiver)
{
	up(0);
	run_in_thread(fill_from_outside, NULL);
	PLX_LCORE_FOREACH (id) {
		struct plx_ring *ring = loop_of(id)->others;
		int node = plx_lcore_node(id);

		assert_non_null(ring);
		assert_populated_on("the ring", ring, sizeof(*ring), node);
		assert_populated_on("its slots", ring->slots,
				    PLX_LANE_SLOTS_DEFAULT * 8 * ring->words, node);
	}
	on_each(turns_until_idle, NULL);
}

static int write_var(void *arg)
{
	memset(plx_lcore_var_mine(*(struct plx_lcore_var *)arg), 1, VAR_BYTES);
	return 0;
}

TEST(variables_lie_with_the_lcore_that_writes_them)
{
	struct plx_lcore_var var;

	up(0);
	assert_int_equal(plx_lcore_var_create(VAR_BYTES, 0, &var), 0);
	on_each(write_var, &var);
	PLX_LCORE_FOREACH (id)
		assert_populated_on("the variable", plx_lcore_var_of(var, id), VAR_BYTES,
				    plx_lcore_node(id));
}

#define BARE 20 /* lcores.h: in the guest on CPU 2 */

static unsigned answers;

static void answered(void *arg)
{
	answers++;
}

static int use_it_all(void *arg)
{
	void *memory = plx_mem_alloc(DEEP_BYTES, 0, plx_lcore_node(plx_lcore_id()), NULL);
	void *object = plx_pool_get(arg);

	if (!memory || !object)
		return 1;
	plx_mem_free(memory);
	plx_pool_put(arg, object);
	return plx_lcore_send(0, answered, NULL);
}

TEST(an_lcore_runs_on_a_node_without_memory)
{
	struct plx_pool_attr attr = {.name = "shared",
				     .object_bytes = OBJECT_BYTES,
				     .object_count = OBJECTS,
				     .node = guest_bare_node(),
				     .owner = PLX_LCORE_NONE};
	struct plx_pool *pool;

	if (guest_bare_node() < 0)
		skip();
	lcores_up(3);
	assert_int_equal(plx_lcore_node(BARE), guest_bare_node());
	assert_int_equal(plx_pool_create(&attr, &pool), 0);
	assert_int_equal(run_on(BARE, use_it_all, pool), 0);
	turns_until_idle(NULL);
	assert_int_equal(answers, 1);
	assert_true(mem_stats().node_fallbacks > 0);
	plx_pool_destroy(pool);
}

int main(void)
{
	if (numa_available() < 0 || !pages_can_be_seen()) {
		puts("skipped: this host does not tell where pages lie");
		return guest_nodes() ? 1 : SKIP_STATUS;
	}
	return plx_test_run("numa/place", NULL, NULL);
}
