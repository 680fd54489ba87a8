/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory from the system: reserved huge pages by memfd, else private memory with transparent huge
 * pages, else ordinary pages. All memory is bound to its node and populated before use, so a
 * shortage is an error here and not a SIGBUS later. */
#include "base_internal.h"
#include "mem_priv.h"

#include <fcntl.h>
#include <numaif.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define REASON_BYTES 320
#define SAMPLES      16
#define NO_FD        (-1)
#define LONG_BITS    (8 * sizeof(unsigned long))

/* Must precede the first touch: existing pages would not move. */
static int bind_to_node(void *base, const struct mem_ask *ask, size_t size_bytes)
{
	static bool told; /* protected by the lock of zone.c, like everything here */
	unsigned long nodes[MEM_NODE_MAX / LONG_BITS] = {0};
	int mode = ask->numa == PLX_NUMA_STRICT ? MPOL_BIND : MPOL_PREFERRED;

	nodes[(unsigned)ask->node / LONG_BITS] |= 1ul << ((unsigned)ask->node % LONG_BITS);
	if (mbind(base, size_bytes, mode, nodes, MEM_NODE_MAX + 1, 0) == 0)
		return 0;
	if (ask->numa == PLX_NUMA_STRICT)
		return plx_fail(
			ENOMEM,
			"--numa strict: memory cannot be bound to node %d (mbind: %s); allow the "
			"mbind system call (in a container: CAP_SYS_NICE), or use --numa prefer",
			ask->node, strerror(errno));
	if (!told && mem_node_count() > 1)
		plx_log(mem_log, PLX_LOG_NOTICE,
			"memory is not bound to node %d (mbind: %s): the system places it; in a "
			"container, CAP_SYS_NICE allows it",
			ask->node, strerror(errno));
	told = true;
	return 0;
}

bool mem_lies_on(const void *base, size_t size_bytes, int node)
{
	void *pages[SAMPLES];
	int status[SAMPLES];
	size_t last = (size_bytes - 1) / MEM_4K;

	/* Sample the last page too: pages that do not fit on a node are at the end of a zone. */
	for (size_t i = 0; i < SAMPLES; i++) {
		pages[i] = (char *)base + last * i / (SAMPLES - 1) * MEM_4K;
		status[i] = node;
	}
	if (move_pages(0, SAMPLES, pages, NULL, status, 0) != 0)
		return true;
	for (size_t i = 0; i < SAMPLES; i++) {
		/* A negative status is an errno: the page's node is unknown. */
		if (status[i] >= 0 && status[i] != node)
			return false;
	}
	return true;
}

static int check_node(const struct mem_ask *ask, struct mem_zone *zone)
{
	zone->node_fallback = !mem_lies_on(zone->pub.base, ask->first_bytes, ask->node);
	if (!zone->node_fallback || ask->numa != PLX_NUMA_STRICT)
		return 0;
	return plx_fail(ENOMEM,
			"--numa strict: node %d has no room, the system put pages on another node; "
			"free memory there, or use --numa prefer",
			ask->node);
}

static int fail_to_populate(size_t size_bytes, int memfd)
{
	if (memfd != NO_FD)
		return plx_fail(errno, "they cannot be had here (node, or limit of the cgroup): %s",
				strerror(errno));
	return plx_fail(ENOMEM, "populating %zu bytes of memory: %s", size_bytes, strerror(errno));
}

/* Populate every page now. memfd: of huge pages, or NO_FD. */
static int populate(void *base, size_t size_bytes, int memfd)
{
	int result;

	do {
		result = madvise(base, size_bytes, MADV_POPULATE_WRITE);
	} while (result != 0 && (errno == EINTR || errno == EAGAIN));
	if (result == 0)
		return 0;
	if (errno != EINVAL)
		return fail_to_populate(size_bytes, memfd);
	/* An older kernel. fallocate takes huge pages by the mapping's policy and fails if there
	 * are too few. After that, and in private memory, a touch raises no SIGBUS. */
	if (memfd != NO_FD && fallocate(memfd, 0, 0, (off_t)size_bytes) != 0)
		return fail_to_populate(size_bytes, memfd);
	memset(base, 0, size_bytes);
	return 0;
}

/* Pages are reserved or private, so older kernels need no file here. */
int mem_block_populate(void *from, size_t size_bytes)
{
	return populate(from, size_bytes, NO_FD);
}

static int open_hugetlb(size_t page_bytes, size_t size_bytes)
{
	unsigned shift = (unsigned)__builtin_ctzll(page_bytes);
	int memfd = memfd_create("plx-zone", MFD_CLOEXEC | MFD_HUGETLB | shift << MAP_HUGE_SHIFT);

	if (memfd < 0)
		return plx_fail(errno, "memfd_create: %s", strerror(errno));

	int err = plx_file_resize(memfd, size_bytes);
	if (err) {
		close(memfd);
		return err;
	}
	return memfd;
}

/* Bind the mapping to its node and populate its first bytes; unmap it on failure. */
static int fill(const struct mem_ask *ask, struct mem_zone *zone, size_t first_bytes, int memfd)
{
	bool is_bound = ask->node != PLX_NODE_ANY; /* false with --numa any */
	int err = is_bound ? bind_to_node(zone->pub.base, ask, zone->pub.size_bytes) : 0;

	err = err ?: populate(zone->pub.base, first_bytes, memfd);
	if (err == 0 && is_bound)
		err = check_node(ask, zone);
	if (err)
		mem_block_unmap(zone);
	else
		plx_dump_mark(zone->pub.base, zone->pub.size_bytes);
	return err;
}

static int map_hugetlb(const struct mem_ask *ask, struct mem_zone *zone)
{
	size_t page_bytes = ask->huge == PLX_HUGE_1G ? MEM_1G : MEM_2M;
	size_t size_bytes = mem_round_up(ask->size_bytes, page_bytes);
	int memfd = open_hugetlb(page_bytes, size_bytes), err;

	if (memfd < 0)
		return memfd;
	zone->pub.backing = PLX_BACKING_HUGETLB;
	zone->pub.page_bytes = page_bytes;
	zone->pub.size_bytes = zone->map_bytes = size_bytes;
	/* Shared, without MAP_NORESERVE: mmap reserves the pages or fails. */
	zone->map = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	zone->pub.base = zone->map;
	if (zone->map == MAP_FAILED)
		err = plx_fail(errno, "%llu pages free, %zu needed",
			       (unsigned long long)mem_hugepages(page_bytes, "free_hugepages"),
			       size_bytes / page_bytes);
	else
		err = fill(ask, zone, mem_round_up(ask->first_bytes, page_bytes), memfd);
	close(memfd);
	return err;
}

/* Populating more than is available would not fail but trigger the kernel's OOM killer. */
static int check_available(const struct mem_ask *ask, size_t size_bytes)
{
	bool strict = ask->numa == PLX_NUMA_STRICT && ask->node != PLX_NODE_ANY;
	uint64_t available = mem_available(strict ? ask->node : PLX_NODE_ANY);
	char where[32] = "this host", wanted[32], had[32];

	if (size_bytes <= available)
		return 0;
	if (ask->node != PLX_NODE_ANY)
		snprintf(where, sizeof(where), "node %d", ask->node);
	return plx_fail(
		ENOMEM,
		"not enough memory on %s: %s asked for, %s available; ask for less (--socket-mem, "
		"or smaller pools)%s",
		where, mem_format_bytes(wanted, sizeof(wanted), size_bytes),
		mem_format_bytes(had, sizeof(had), available),
		strict ? ", or use --numa prefer" : "");
}

/* The guard areas around the memory stay inaccessible. They catch overruns and keep the mapping
 * separate, so that smaps reports it alone. */
static int map_private(const struct mem_ask *ask, struct mem_zone *zone)
{
	size_t size_bytes = mem_round_up(ask->size_bytes, MEM_2M);
	int advice = ask->huge == PLX_HUGE_NONE ? MADV_NOHUGEPAGE : MADV_HUGEPAGE;
	size_t first_bytes = mem_round_up(ask->first_bytes, mem_populate_step(ask->huge));
	int err = check_available(ask, first_bytes);

	if (err)
		return err;
	zone->pub.size_bytes = size_bytes;
	zone->map_bytes = size_bytes + 2 * MEM_2M;
	zone->map = mmap(NULL, zone->map_bytes, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, NO_FD, 0);
	if (zone->map == MAP_FAILED)
		return plx_fail(ENOMEM, "mmap of %zu bytes: %s", zone->map_bytes, strerror(errno));
	zone->pub.base = (void *)mem_round_up((uintptr_t)zone->map + MEM_4K, MEM_2M);
	if (mprotect(zone->pub.base, size_bytes, PROT_READ | PROT_WRITE) != 0) {
		err = plx_fail(ENOMEM, "the system refuses %zu bytes of memory: %s", size_bytes,
			       strerror(errno));
		mem_block_unmap(zone);
		return err;
	}
	madvise(zone->pub.base, size_bytes, advice); /* best effort: old kernels refuse it */
	return fill(ask, zone, first_bytes, NO_FD);
}

/* A zone that shows what private memory turns out to be. smaps is read once: a process with
 * thousands of links has enough mappings that a read takes milliseconds. */
static const struct plx_zone *private_kind;

static void classify_private(const struct mem_ask *ask, struct mem_zone *zone, size_t huge_bytes)
{
	bool some_huge = ask->huge != PLX_HUGE_NONE && huge_bytes > 0;
	bool all_huge = some_huge && huge_bytes >= mem_round_up(ask->first_bytes, MEM_2M);

	zone->pub.backing = some_huge ? PLX_BACKING_THP : PLX_BACKING_4K;
	zone->pub.page_bytes = all_huge ? MEM_2M : MEM_4K;
}

#define REMEDY_2M_PAGES 256 /* 512 MiB, the amount that plx-info advises */

/* Format the command that makes reserved pages available next time. err: why there are none now. */
static void format_remedy(const struct mem_ask *ask, int err, char *out, size_t size)
{
	size_t page_bytes = ask->huge == PLX_HUGE_1G ? MEM_1G : MEM_2M;
	unsigned long long target = mem_hugepages(page_bytes, "nr_hugepages") +
				    mem_round_up(ask->size_bytes, page_bytes) / page_bytes;

	if (err == -EFBIG) {
		snprintf(out, size, "ulimit -f unlimited");
		return;
	}
	if (page_bytes == MEM_2M && target < REMEDY_2M_PAGES)
		target = REMEDY_2M_PAGES; /* for more processes and for pools that grow */
	if (page_bytes == MEM_2M)
		snprintf(out, size, "sysctl vm.nr_hugepages=%llu", target);
	else
		snprintf(out, size,
			 "echo %llu > /sys/kernel/mm/hugepages/hugepages-%zukB/nr_hugepages",
			 target, page_bytes >> 10);
}

/* Transparent huge pages of the requested size are as fast as reserved ones: plx-info reports them
 * and nothing is logged. */
static void tell_fallback(const struct mem_ask *ask, const struct mem_zone *zone, size_t huge_bytes,
			  int err, const char *reason)
{
	static bool told;
	size_t first_bytes = mem_round_up(ask->first_bytes, mem_populate_step(ask->huge));
	char size[32], huge[32], rest[32], remedy[128];

	if (told || (ask->huge == PLX_HUGE_2M && zone->pub.page_bytes == MEM_2M))
		return;
	told = true;
	huge_bytes = huge_bytes < first_bytes ? huge_bytes : first_bytes;
	format_remedy(ask, err, remedy, sizeof(remedy));
	plx_log(mem_log, PLX_LOG_NOTICE,
		"%s of memory: asked for %s hugetlb pages (%s), got %s in transparent huge pages, "
		"%s in 4 KiB pages (smaps); for reserved pages: %s; to ask for none: --huge none",
		mem_format_bytes(size, sizeof(size), first_bytes),
		ask->huge == PLX_HUGE_1G ? "1 GiB" : "2 MiB", reason,
		mem_format_bytes(huge, sizeof(huge), huge_bytes),
		mem_format_bytes(rest, sizeof(rest), first_bytes - huge_bytes), remedy);
}

int mem_block_map(const struct mem_ask *ask, struct mem_zone *zone)
{
	size_t huge_bytes;
	char reason[REASON_BYTES] = "";
	int why = 0, err;

	if (ask->huge != PLX_HUGE_NONE) {
		why = map_hugetlb(ask, zone);
		if (why == 0)
			return 0;
		snprintf(reason, sizeof(reason), "%s", plx_error());
		zone->page_fallback = true;
	}
	err = map_private(ask, zone);
	if (err)
		return err;
	if (private_kind) {
		zone->pub.backing = private_kind->backing;
		zone->pub.page_bytes = private_kind->page_bytes;
		return 0;
	}
	huge_bytes = mem_huge_bytes(zone->pub.base);
	classify_private(ask, zone, huge_bytes);
	if (zone->page_fallback)
		tell_fallback(ask, zone, huge_bytes, why, reason);
	return 0;
}

void mem_block_learn(const struct plx_zone *zone)
{
	private_kind = zone && zone->backing != PLX_BACKING_HUGETLB ? zone : NULL;
}

void mem_block_unmap(struct mem_zone *zone)
{
	/* Addresses are reused by other mappings, which must not inherit the poison of pools. */
	mem_unpoison(zone->pub.base, zone->pub.size_bytes);
	munmap(zone->map, zone->map_bytes);
}
