/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's topology from hwloc, and thread pinning. */
#include "topo_priv.h"

#include <hwloc.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#if HWLOC_API_VERSION >= 0x00020800
#define SKIP_EXTRAS                                                           \
	(HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | \
	 HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS)
#else
#define SKIP_EXTRAS 0
#endif

static struct plx_cpuset from_bitmap(hwloc_const_bitmap_t bitmap)
{
	struct plx_cpuset set = {{0}};

	for (int i = hwloc_bitmap_first(bitmap); i >= 0 && i < PLX_CPU_MAX;
	     i = hwloc_bitmap_next(bitmap, i))
		plx_cpuset_add(&set, (unsigned)i);
	return set;
}

/* Opening ---------------------------------------------------------------------------------- */

/* The environment variable that makes hwloc show another host or part of one; NULL: none set. */
static const char * override(void)
{
	static const char *const names[] = {"HWLOC_SYNTHETIC", "HWLOC_XMLFILE", "HWLOC_FSROOT",
					    "HWLOC_THISSYSTEM", "HWLOC_COMPONENTS"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(names); i++)
		if (getenv(names[i]))
			return names[i];
	return NULL;
}

static int fail_foreign(int err, const struct plx_topo *topo, const char *what)
{
	const char *name = topo->overridden_by;

	return plx_fail(err, "%s: the topology is not this host's%s%s%s", what, name ? ", as " : "",
			name ? name : "", name ? " is set in the environment; unset it" : "");
}

static int fail_hwloc(const char *what)
{
	if (errno == ENOMEM)
		return plx_fail(ENOMEM, "no memory for the topology");
	return plx_fail(EIO, "%s: hwloc: %s", what, strerror(errno));
}

static int set_source(hwloc_topology_t hwloc, const char *source)
{
	static const char synthetic[] = "synthetic:";

	if (strncmp(source, synthetic, sizeof(synthetic) - 1) == 0 &&
	    hwloc_topology_set_synthetic(hwloc, source + sizeof(synthetic) - 1) == 0)
		return 0;
	return plx_fail(EINVAL,
			"topology %s: unknown source, or hwloc does not understand the "
			"description; give one such as synthetic:numa:2 core:4 pu:1, or none for "
			"this host",
			source);
}

/* Discover less. hwloc's x86 back-end binds to every CPU in turn; without it loading takes a third
 * of the time, and sysfs has the same facts.
 * Small caches are dropped only for this host: in a loaded topology a NUMA node may hang below one
 * and would lose its CPUs with it. If hwloc refuses these settings, loading is only slower. */
static void set_scope(hwloc_topology_t hwloc, bool live)
{
	hwloc_topology_set_components(hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
	if (!live)
		return;
	hwloc_topology_set_type_filter(hwloc, HWLOC_OBJ_L1CACHE, HWLOC_TYPE_FILTER_KEEP_NONE);
	hwloc_topology_set_type_filter(hwloc, HWLOC_OBJ_L2CACHE, HWLOC_TYPE_FILTER_KEEP_NONE);
}

static int load(const struct plx_topo *topo, const char *source)
{
	hwloc_topology_t hwloc = topo->hwloc;
	int rc = source ? set_source(hwloc, source) : 0;

	if (rc)
		return rc;
	set_scope(hwloc, !source && !topo->overridden_by);
	/* Keep disallowed CPUs, to tell them from CPUs that do not exist. */
	if (hwloc_topology_set_flags(hwloc, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | SKIP_EXTRAS))
		return fail_hwloc("topology flags");
	return hwloc_topology_load(hwloc) ? fail_hwloc(source ? source : "topology of this host")
					  : 0;
}

static int read_binding(struct plx_cpuset *out)
{
	if (sched_getaffinity(0, sizeof(out->words), (cpu_set_t *)out->words) == 0)
		return 0;
	return plx_fail(EIO, "the CPUs that this thread is bound to: %s", strerror(errno));
}

static int find_cpus(struct plx_topo *topo, const char *source)
{
	int rc;

	topo->this_host = hwloc_topology_is_thissystem(topo->hwloc);
	topo->cpus = from_bitmap(hwloc_topology_get_topology_cpuset(topo->hwloc));
	topo->allowed = from_bitmap(hwloc_topology_get_allowed_cpuset(topo->hwloc));
	/* On this host, the binding is within what the control groups allow. */
	rc = topo->this_host ? read_binding(&topo->allowed) : 0;
	if (rc)
		return rc;
	topo->allowed = plx_cpuset_and(&topo->allowed, &topo->cpus);
	if (plx_cpuset_count(&topo->allowed))
		return 0;
	return plx_fail(EINVAL, "topology %s: none of its CPUs is both online and allowed",
			source ? source : "of this host");
}

int plx_topo_open(const char *source, struct plx_topo **topo_out)
{
	struct plx_topo *topo = calloc(1, sizeof(*topo));
	int rc;

	if (!topo)
		return plx_fail(ENOMEM, "no memory for the topology");
	if (hwloc_topology_init(&topo->hwloc)) {
		rc = fail_hwloc("topology");
		free(topo);
		return rc;
	}
	topo->overridden_by = source ? NULL : override();
	topo->root = "";
	rc = load(topo, source) ?: find_cpus(topo, source);
	if (rc && topo->overridden_by)
		plx_fail_in(rc, "with %s of the environment: ", topo->overridden_by);
	if (rc)
		plx_topo_close(topo);
	else
		*topo_out = topo;
	return rc;
}

void plx_topo_close(struct plx_topo *topo)
{
	if (!topo)
		return;
	hwloc_topology_destroy(topo->hwloc);
	free(topo);
}

const struct plx_cpuset *plx_topo_cpus(const struct plx_topo *topo)
{
	return &topo->cpus;
}

const struct plx_cpuset *plx_topo_allowed(const struct plx_topo *topo)
{
	return &topo->allowed;
}

unsigned plx_topo_node_count(const struct plx_topo *topo)
{
	int count = hwloc_bitmap_weight(hwloc_topology_get_topology_nodeset(topo->hwloc));

	return count > 0 ? (unsigned)count : 1;
}

int plx_topo_node_id(const struct plx_topo *topo, unsigned i)
{
	hwloc_const_nodeset_t nodes = hwloc_topology_get_topology_nodeset(topo->hwloc);
	int id = hwloc_bitmap_first(nodes);

	while (i-- && id >= 0)
		id = hwloc_bitmap_next(nodes, id);
	return id;
}

struct plx_cpuset plx_topo_node_cpus(const struct plx_topo *topo, int node_id)
{
	hwloc_obj_t node = NULL;

	if (node_id >= 0)
		node = hwloc_get_numanode_obj_by_os_index(topo->hwloc, (unsigned)node_id);
	return node ? from_bitmap(node->cpuset) : (struct plx_cpuset){{0}};
}

/* Memory shared by a larger part of the host may be a separate node (slow or fast memory). A CPU
 * belongs to the node with the fewest CPUs; ties go to the lowest id. */
int plx_topo_cpu_node(const struct plx_topo *topo, unsigned cpu)
{
	int best = -1, best_weight = 0;
	hwloc_obj_t node = NULL;

	if (!plx_cpuset_has(&topo->cpus, cpu))
		return -1;
	while ((node = hwloc_get_next_obj_by_type(topo->hwloc, HWLOC_OBJ_NUMANODE, node))) {
		int weight = hwloc_bitmap_weight(node->cpuset);
		int id = (int)node->os_index;

		if (!hwloc_bitmap_isset(node->cpuset, cpu))
			continue;
		if (best < 0 || weight < best_weight || (weight == best_weight && id < best)) {
			best = id;
			best_weight = weight;
		}
	}
	return best;
}

/* If hwloc reports no cores, each CPU is a core; if no packages, the host is one package. */
static int index_of(const struct plx_topo *topo, unsigned cpu, hwloc_obj_type_t type, int without)
{
	hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(topo->hwloc, cpu);
	hwloc_obj_t part = pu ? hwloc_get_ancestor_obj_by_type(topo->hwloc, type, pu) : NULL;

	if (!plx_cpuset_has(&topo->cpus, cpu))
		return -1;
	return part ? (int)part->logical_index : without;
}

int plx_topo_cpu_core(const struct plx_topo *topo, unsigned cpu)
{
	return index_of(topo, cpu, HWLOC_OBJ_CORE, (int)cpu);
}

int plx_topo_cpu_package(const struct plx_topo *topo, unsigned cpu)
{
	return index_of(topo, cpu, HWLOC_OBJ_PACKAGE, 0);
}

/* Pinning ---------------------------------------------------------------------------------- */

static int bind_thread(const struct plx_cpuset *cpus)
{
	return sched_setaffinity(0, sizeof(cpus->words), (const cpu_set_t *)cpus->words);
}

static int fail_bind(const struct plx_topo *topo, const struct plx_cpuset *cpus, int err)
{
	struct plx_cpuset usable = plx_cpuset_and(cpus, &topo->allowed);
	char asked[128], allowed[128];

	plx_cpuset_format(cpus, asked, sizeof(asked));
	plx_cpuset_format(&topo->allowed, allowed, sizeof(allowed));
	if ((err == EPERM || err == EACCES || err == ENOSYS) && plx_cpuset_equal(&usable, cpus))
		return plx_fail(EPERM,
				"cannot pin to CPUs %s: sched_setaffinity is forbidden (%s), most "
				"likely by a seccomp filter of the container or service; allow "
				"that call",
				asked, strerror(err));
	if (err == EPERM || err == EINVAL)
		return plx_fail(EPERM,
				"cannot pin to CPUs %s: not available to this process "
				"(allowed: %s)",
				asked, allowed);
	return plx_fail(EIO, "cannot pin to CPUs %s: %s", asked, strerror(err));
}

/* The kernel silently drops CPUs that the process may not use. */
static int check_binding(const struct plx_cpuset *cpus)
{
	struct plx_cpuset got;
	char got_list[128], asked[128];
	int rc = read_binding(&got);

	if (rc || plx_cpuset_equal(cpus, &got))
		return rc;
	return plx_fail(EIO,
			"pinned to CPUs %s, but the system bound the thread to %s; "
			"give CPUs that are online and allowed",
			plx_cpuset_format(cpus, asked, sizeof(asked)),
			plx_cpuset_format(&got, got_list, sizeof(got_list)));
}

int plx_topo_pin(const struct plx_topo *topo, const struct plx_cpuset *cpus)
{
	struct plx_cpuset before;
	int rc;

	if (!topo->this_host)
		return fail_foreign(EINVAL, topo, "cannot pin");
	if (!plx_cpuset_count(cpus))
		return plx_fail(EINVAL, "cannot pin to no CPU at all");
	rc = read_binding(&before);
	if (rc)
		return rc;
	if (bind_thread(cpus))
		return fail_bind(topo, cpus, errno);
	rc = check_binding(cpus);
	if (rc)
		bind_thread(&before);
	return rc;
}

int plx_topo_pinned(const struct plx_topo *topo, struct plx_cpuset *cpus_out)
{
	if (!topo->this_host)
		return fail_foreign(EIO, topo, "no thread is bound");
	return read_binding(cpus_out);
}
