/* SPDX-License-Identifier: BSD-3-Clause */
/* Uses each macro of the installed headers that is no number, and compiles in the languages of
 * alone.sh, which finds the numbers. */
#include "netio_compat.h"
#include "plx_address.h"
#include "plx_admit.h"
#include "plx_app.h"
#include "plx_arrival.h"
#include "plx_base.h"
#include "plx_direct.h"
#include "plx_eal.h"
#include "plx_fabric.h"
#include "plx_fabric_driver.h"
#include "plx_idle.h"
#include "plx_lcore.h"
#include "plx_mem.h"
#include "plx_peer.h"
#include "plx_ring.h"
#include "plx_rpc.h"
#include "plx_session.h"
#include "plx_stats.h"
#include "plx_timer.h"
#include "plx_topo.h"
#include "plx_watch.h"

PLX_BEGIN_DECLS
PLX_EXPORT PLX_NOINLINE int say(const char *format, ...) PLX_PRINTF(1, 2);
PLX_RING_NOPLT void begin(void);
PLX_END_DECLS

PLX_LOG_COMPONENT(log_macros, "macros");

PLX_INITIAL_EXEC static __thread uint64_t begun;

struct item {
	PLX_ALIGNED(16) uint32_t id;
	PLX_ALIGNED_LINE PLX_ATOMIC(uint32_t) count;
	PLX_RING_BLOCK char line[PLX_CACHE_LINE];
};

struct callbacks {
	NETIO_CONNECTION_CALLBACKS(struct item *item)
};

struct connect_callbacks {
	NETIO_CONNECT_CALLBACKS(struct item *item)
};

struct publish_callbacks {
	NETIO_PUBLISH_CALLBACKS(struct item *item)
};

PLX_ALWAYS_INLINE static inline uint32_t read_count(const uint32_t *id)
{
	const struct item *item = plx_container_of(id, const struct item, id);

	plx_prefetch_read(item);
	plx_prefetch_write(item);
	return plx_atomic_load(&item->count, PLX_ACQUIRE);
}

static void end(struct item *item)
{
	plx_atomic_store(&item->count, 1, PLX_RELAXED);
	plx_atomic_store(&item->count, 2, PLX_RELEASE);
}

static void end_item(struct item **item)
{
	end(*item);
}

PLX_CONSTRUCTOR void begin(void)
{
	begun++;
}

PLX_DESTRUCTOR static void finish(void)
{
	plx_log(&log_macros, PLX_LOG_NOTICE, "done");
	plx_log(&log_macros, PLX_LOG_NOTICE, "begun: %d", PLX_CAST(int, begun));
}

static void on_value(const void *data, size_t size_bytes)
{
	say("%p, %zu", data, size_bytes);
}

static void on_published(struct netio_unbuffered_publish_socket *socket, uint64_t key, int status)
{
	say("%p: %d %d", socket->data, key == 1, status);
}

static int on_lcores(const struct plx_cpuset *cpus)
{
	unsigned seen = 0;

	PLX_LCORE_FOREACH (id)
		seen += id;
	PLX_LCORE_FOREACH_WORKER (id)
		PLX_LCORE_SEND_VALUE(id, on_value, seen);
	PLX_LINK_FOREACH(link)
	seen += plx_link_is_open(link);
	PLX_CPUSET_FOREACH (cpu, cpus)
		seen += cpu;
	return plx_likely(seen) && !plx_unlikely(seen > 9) ? PLX_NODE_ANY : 0;
}

static const double shares[] = {PLX_IDLE_LATENCY, PLX_IDLE_BALANCED, PLX_IDLE_ECO};

static const char *const names[] = {PLX_ARRIVAL_OPS, PLX_WATCH_OPS};
static const char *const policies[] = NETIO_POLICY_NAMES;

static const struct netio_buffered_attr pages = NETIO_BUFFERED_ATTR_1M;

static bool flag;
static const char *text, *address;
static struct plx_app_list list;
static unsigned choice;
static uint64_t count, size, duration;

static const struct plx_option options[] = {
	PLX_FLAG("flag", &flag, "help"),
	PLX_TEXT("text", "TEXT", &text, "help", 't', true),
	PLX_ADDRESS("address", &address, "help"),
	PLX_LIST("list", "TEXT", &list, "help"),
	PLX_CHOICE("choice", "NAME", &choice, policies, "help"),
	PLX_UINT("count", "N", &count, 0, 9, "help"),
	PLX_SIZE("size", "SIZE", &size, 0, 9, "help"),
	PLX_TIME("duration", "TIME", &duration, 0, 9, "help"),
	PLX_OPTION(PLX_APP_UINT, uint64_t, "more", "N", &count, 1, 2, NULL, "help"),
	{PLX_OPTION_MEMBER(name, "least")},
	PLX_OPTIONS_END,
};

/* As the structures of options. */
struct zeroed {
	int member PLX_OPTION_ZERO;
};

int main(int argc, char **argv)
{
	struct netio_buffered_attr changed = NETIO_BUFFERED_ATTR_1M;
	struct plx_cpuset cpus = plx_cpuset_and(NULL, NULL);
	struct plx_app app = {PLX_OPTION_MEMBER(name, "macros")};
	struct zeroed PLX_UNUSED zeroed;
	struct item item;
	struct item *ended PLX_CLEANUP(end_item) = &item;
	struct netio_unbuffered_publish_socket publisher;
	struct callbacks PLX_UNUSED callbacks;
	struct connect_callbacks PLX_UNUSED connect_callbacks;
	struct publish_callbacks PLX_UNUSED publish_callbacks;

	app.options = options;
	if (plx_app_start(argc, argv, &app) != PLX_APP_RUN)
		return 1;
	publisher.msg_published = on_published;
	publisher.msg_published(&publisher, 1, 0);
	changed.page_count = 2;
	flag = NETIO_GAP_BIT(NETIO_GAP_LOST) > 1;
	if (plx_ring_is_one(PLX_ARRAY_LEN(names)))
		return 1;
	return say("%s %s %d %d", names[0], policies[0], names[1] == names[0], shares[0] > 1) +
	       on_lcores(&cpus) + (pages.pagesize > changed.pagesize) + (read_count(&item.id) > 1);
}
