/* SPDX-License-Identifier: BSD-3-Clause */
/* The zone table, and allocation from zones. One lock guards changes. Readers take no lock: the
 * count publishes a zone once, and it stays until fini. */
#include "base_internal.h"
#include "mem_priv.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

PLX_LOG_COMPONENT(log_component, "mem");
struct plx_log_component *const mem_log = &log_component;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Protected by the lock, except what zone_count covers. */
static bool ready;
static enum plx_huge huge;
static enum plx_numa numa;
static uint64_t node_fallbacks, page_fallbacks;
static struct mem_zone zones[PLX_ZONE_MAX];
static _Atomic uint32_t zone_count;

/* For lock holders. Relaxed: only they store it. */
static uint32_t count_locked(void)
{
	return atomic_load_explicit(&zone_count, memory_order_relaxed);
}

uint32_t plx_zone_count(void)
{
	/* Z2: see add_zone. */
	return atomic_load_explicit(&zone_count, memory_order_acquire);
}

const struct plx_zone *plx_zone_get(uint32_t index)
{
	return index < plx_zone_count() ? &zones[index].pub : NULL;
}

uint32_t mem_zone_index(const void *memory, size_t size_bytes)
{
	uint32_t count = plx_zone_count();

	for (uint32_t i = 0; i < count; i++) {
		size_t offset = (uintptr_t)memory - (uintptr_t)zones[i].pub.base;
		size_t size = zones[i].pub.size_bytes;

		if (memory >= zones[i].pub.base && offset <= size && size_bytes <= size - offset)
			return i;
	}
	return PLX_ZONE_NONE;
}

/* Nodes ------------------------------------------------------------------------------------ */

/* Choose the node to allocate on. */
static int choose_node(int asked, int *node_out)
{
	char usable[256];

	*node_out = PLX_NODE_ANY;
	if (asked == PLX_NODE_ANY || numa == PLX_NUMA_ANY)
		return 0;
	if (mem_node_usable(asked)) {
		*node_out = asked;
		return 0;
	}
	mem_nodes_format(usable, sizeof(usable));
	if (!mem_node_exists(asked))
		return plx_fail(
			EINVAL,
			"NUMA node %d is not on this host; give one that has memory for this "
			"process (%s), or PLX_NODE_ANY",
			asked, usable);
	if (numa == PLX_NUMA_STRICT)
		return plx_fail(ENOMEM,
				"--numa strict: NUMA node %d has no memory for this process "
				"(allowed: %s); ask for one of those, widen the cpuset "
				"(cpuset.mems), or use --numa prefer",
				asked, usable);
	return 0;
}

/* Memory requested on one node came from another. */
static void note_other_node(int asked, int node)
{
	static bool told;
	char usable[256];

	if (numa != PLX_NUMA_PREFER || asked == node)
		return;
	node_fallbacks++;
	if (!told)
		plx_log(mem_log, PLX_LOG_NOTICE,
			"NUMA node %d has no memory for this process (allowed: %s): the system "
			"places what is asked for there",
			asked, mem_nodes_format(usable, sizeof(usable)));
	told = true;
}

/* Growing ---------------------------------------------------------------------------------- */

/* first_bytes: what is needed now. */
static int add_zone(size_t size_bytes, size_t first_bytes, int node)
{
	struct mem_ask ask = {.size_bytes = size_bytes,
			      .first_bytes = first_bytes,
			      .huge = huge,
			      .numa = numa,
			      .node = node};
	uint32_t index = count_locked();
	struct mem_zone *zone = &zones[index];
	int err;

	if (index == PLX_ZONE_MAX)
		return plx_fail(ENOMEM,
				"all %d zones of memory are taken; have fewer, larger ones: take "
				"the memory at the start (--socket-mem)",
				PLX_ZONE_MAX);

	*zone = (struct mem_zone){.pub.node = node, .pub.index = index};
	err = mem_block_map(&ask, zone);
	if (err)
		return err;
	err = mem_extents_init(&zone->extents, zone->pub.base, zone->pub.size_bytes);
	if (err) {
		mem_block_unmap(zone);
		return err;
	}
	zone->clean = zone->pub.base;
	zone->populated = zone->clean + mem_round_up(first_bytes, mem_populate_step(huge));
	if (ask.size_bytes > ask.first_bytes) /* such zones are many, so check one */
		mem_block_learn(&zone->pub);
	node_fallbacks += zone->node_fallback;
	page_fallbacks += zone->page_fallback;
	/* Z1 -> Z2: a zone is filled in before the count covers it. */
	atomic_store_explicit(&zone_count, index + 1, memory_order_release);
	return 0;
}

static void remove_zones(void)
{
	uint32_t count = count_locked();

	/* Relaxed: fini runs at setup, when no other thread reads the table. */
	atomic_store_explicit(&zone_count, 0, memory_order_relaxed);
	mem_block_learn(NULL);
	for (uint32_t i = 0; i < count; i++) {
		mem_extents_fini(&zones[i].extents);
		mem_block_unmap(&zones[i]);
	}
}

static int take_at_init(const struct plx_mem_conf *conf)
{
	for (unsigned i = 0; i < conf->node_count; i++) {
		size_t size_bytes = conf->node_bytes[i];
		int node, err;

		if (!size_bytes)
			continue;
		err = choose_node((int)i, &node);
		err = err ? err : add_zone(size_bytes, size_bytes, node);
		if (err)
			return err;
		note_other_node((int)i, node);
	}
	return 0;
}

static int init_locked(const struct plx_mem_conf *conf)
{
	if (ready)
		return plx_fail(EALREADY, "plx_mem_init: memory is set up already; call "
					  "plx_mem_fini first");
	if ((unsigned)conf->huge > PLX_HUGE_NONE || (unsigned)conf->numa > PLX_NUMA_ANY)
		return plx_fail(EINVAL,
				"plx_mem_init: huge %d, numa %d: give one of enum plx_huge and of "
				"enum plx_numa",
				(int)conf->huge, (int)conf->numa);
	huge = conf->huge;
	numa = conf->numa;
	node_fallbacks = page_fallbacks = 0;

	int err = conf->node_bytes ? take_at_init(conf) : 0;
	if (err)
		remove_zones();
	ready = !err;
	return err;
}

int plx_mem_init(const struct plx_mem_conf *conf)
{
	static const struct plx_mem_conf defaults = {PLX_HUGE_2M, PLX_NUMA_PREFER, NULL, 0};

	plx_clock_init();
	pthread_mutex_lock(&lock);
	int err = init_locked(conf ? conf : &defaults);
	pthread_mutex_unlock(&lock);
	return err;
}

bool mem_has_lcores;

void plx_mem_fini(void)
{
	if (mem_has_lcores) {
		plx_log(mem_log, PLX_LOG_ERROR,
			"plx_mem_fini: the lcores use the memory; call plx_lcores_fini first, or "
			"plx_eal_fini for both");
		return;
	}
	mem_pools_forget();
	pthread_mutex_lock(&lock);
	remove_zones();
	ready = false;
	pthread_mutex_unlock(&lock);
}

/* Allocation ------------------------------------------------------------------------------- */

/* An allocation, and the work to do on it without the lock. */
struct taken {
	char *memory;
	size_t dirty_bytes; /* from the start: must be zeroed */
	char *populate;     /* start of pages without memory */
	size_t populate_bytes;
};

static bool take_from(struct mem_zone *zone, size_t size_bytes, size_t align_bytes,
		      struct taken *taken)
{
	char *memory = mem_extents_take(&zone->extents, size_bytes, align_bytes);

	if (!memory)
		return false;
	zone->used_bytes += size_bytes;

	char *end = memory + size_bytes;
	char *dirty_end = zone->clean < end ? zone->clean : end;
	*taken = (struct taken){
		.memory = memory,
		.dirty_bytes = dirty_end > memory ? (size_t)(dirty_end - memory) : 0,
	};
	if (end > zone->clean)
		zone->clean = end;
	if (end <= zone->populated)
		return true;

	char *populated = (char *)mem_round_up((uintptr_t)end, mem_populate_step(huge));
	taken->populate = zone->populated;
	taken->populate_bytes = (size_t)(populated - zone->populated);
	zone->populated = populated;
	return true;
}

/* In proportion to the total, so there are few zones. They are populated as they are used, so a
 * large one costs no time. */
#define GROWTH_PART 8
size_t mem_growth_max = 64 * MEM_1M;

static size_t grown(size_t size_bytes)
{
	size_t total = 0, more;

	for (uint32_t i = 0; i < count_locked(); i++)
		total += zones[i].pub.size_bytes;
	more = mem_round_up(total / GROWTH_PART, MEM_2M);
	if (more > mem_growth_max)
		more = mem_growth_max;
	/* Leave huge pages for others; more ordinary pages bring no gain. */
	if (huge != PLX_HUGE_NONE && mem_hugepages(MEM_2M, "free_hugepages") * MEM_2M < 2 * more)
		return size_bytes;
	return more > size_bytes ? more : size_bytes;
}

static int alloc_locked(size_t size_bytes, size_t align_bytes, int asked, struct taken *taken)
{
	int node;

	if (!ready)
		return plx_fail(EINVAL, NOT_UP_TEXT);

	int err = choose_node(asked, &node);
	if (err)
		return err;

	bool found = false;
	for (uint32_t i = 0; !found && i < count_locked(); i++) {
		if (node == PLX_NODE_ANY || zones[i].pub.node == node)
			found = take_from(&zones[i], size_bytes, align_bytes, taken);
	}
	if (!found) {
		/* A zone starts at a 2 MiB boundary at least. */
		size_t first_bytes = size_bytes + (align_bytes > MEM_2M ? align_bytes : 0);

		err = add_zone(grown(first_bytes), first_bytes, node);
		if (err)
			return err;
		found = take_from(&zones[count_locked() - 1], size_bytes, align_bytes, taken);
	}
	if (!found)
		return plx_fail(ENOMEM, "no heap memory to keep account of a zone");
	note_other_node(asked, node);
	return 0;
}

/* Without the lock, since it takes time. If two callers share a page, the first may use it before
 * the second populates it: then the kernel populates it. */
static int make_ready(const struct taken *taken)
{
	int err = 0;

	if (taken->populate_bytes)
		err = mem_block_populate(taken->populate, taken->populate_bytes);
	if (err)
		plx_mem_free(taken->memory);
	else
		memset(taken->memory, 0, taken->dirty_bytes);
	return err;
}

int mem_alloc(size_t size_bytes, size_t align_bytes, int node, void **memory_out)
{
	struct taken taken = {0};

	if (size_bytes == 0 || size_bytes > SIZE_MAX / 4)
		return plx_fail(EINVAL, "%zu bytes of memory: give 1 to %zu", size_bytes,
				SIZE_MAX / 4);
	if ((align_bytes & (align_bytes - 1)) || align_bytes > MEM_1G)
		return plx_fail(EINVAL,
				"alignment of %zu bytes: give a power of two up to 1 GiB, or 0",
				align_bytes);
	/* At least a line, so that neighbours never share one. */
	if (align_bytes < PLX_CACHE_LINE)
		align_bytes = PLX_CACHE_LINE;
	size_bytes = mem_round_up(size_bytes, PLX_CACHE_LINE);

	pthread_mutex_lock(&lock);
	int err = alloc_locked(size_bytes, align_bytes, node, &taken);
	pthread_mutex_unlock(&lock);
	err = err ? err : make_ready(&taken);
	if (err)
		return err;
	*memory_out = taken.memory;
	return 0;
}

void *plx_mem_alloc(size_t size_bytes, size_t align_bytes, int node,
		    const struct plx_zone **zone_out)
{
	void *memory;

	if (mem_alloc(size_bytes, align_bytes, node, &memory))
		return NULL;
	if (zone_out)
		*zone_out = plx_zone_get(mem_zone_index(memory, 1));
	return memory;
}

void plx_mem_free(void *memory)
{
	size_t size_bytes = 0;

	if (!memory)
		return;
	pthread_mutex_lock(&lock);
	uint32_t index = mem_zone_index(memory, 1);
	if (index != PLX_ZONE_NONE) {
		size_bytes = mem_extents_give(&zones[index].extents, memory);
		zones[index].used_bytes -= size_bytes;
	}
	pthread_mutex_unlock(&lock);
	assert(size_bytes && "not memory of plx_mem_alloc, or freed twice");
	(void)size_bytes;
}

void plx_mem_stats_read(struct plx_mem_stats *stats_out)
{
	pthread_mutex_lock(&lock);
	*stats_out = (struct plx_mem_stats){
		.node_fallbacks = node_fallbacks,
		.page_fallbacks = page_fallbacks,
	};
	for (uint32_t i = 0; i < count_locked(); i++) {
		stats_out->bytes += zones[i].pub.size_bytes;
		stats_out->bytes_used += zones[i].used_bytes;
	}
	pthread_mutex_unlock(&lock);
}

/* Bytes of all zones from `index` on of the same kind; 0 if an earlier zone has this kind. */
static uint64_t bytes_of_kind(uint32_t index, uint32_t count)
{
	const struct plx_zone *zone = &zones[index].pub;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct plx_zone *each = &zones[i].pub;

		if (each->backing != zone->backing || each->page_bytes != zone->page_bytes ||
		    each->node != zone->node)
			continue;
		if (i < index)
			return 0;
		bytes += each->size_bytes;
	}
	return bytes;
}

static void describe_kind(char *out, size_t size, const struct plx_zone *zone, uint64_t bytes)
{
	static const char *const kinds[] = {" hugetlb", " transparent huge", ""};
	bool mixed = zone->backing == PLX_BACKING_THP && zone->page_bytes < MEM_2M;
	char total[32], page[32], node[32] = "any node";

	if (zone->node != PLX_NODE_ANY)
		snprintf(node, sizeof(node), "node %d", zone->node);
	mem_format_bytes(total, sizeof(total), bytes);
	mem_format_bytes(page, sizeof(page), zone->page_bytes);
	snprintf(out, size, "%s in %s%s pages on %s", total, page,
		 mixed ? " and transparent huge" : kinds[zone->backing], node);
}

const char *plx_mem_describe(char *out, size_t size)
{
	uint32_t count = plx_zone_count();
	char kind[160];

	snprintf(out, size, "%s", count ? "" : "no memory taken yet");
	for (uint32_t i = 0; size && i < count; i++) {
		uint64_t bytes = bytes_of_kind(i, count);

		if (!bytes)
			continue;
		describe_kind(kind, sizeof(kind), &zones[i].pub, bytes);
		plx_list_add(out, size, kind);
	}
	return out;
}
