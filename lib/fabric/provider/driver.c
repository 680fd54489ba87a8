/* SPDX-License-Identifier: BSD-3-Clause */
/* From a provider name to a driver and a libfabric provider, and from these to an fi_info; and the
 * queues of drivers without special needs. */
#include "base_internal.h"
#include "fabric_provider.h"
#include "plx_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define NO_RDMA_DRIVER                                                                          \
	"this program has no driver for RDMA; if Pollux was built without libibverbs, install " \
	"libibverbs-dev (Debian) or rdma-core-devel (Fedora), and build it again"

#define FABRIC_API_VERSION FI_VERSION(1, 17)

static const struct plx_fabric_driver *const *drivers;
static const char *default_name;
static bool require_rdma;
static const struct plx_fabric_driver *rdma; /* on this host; NULL: none */

/* Whether libfabric has it on this host. Return: as driver_getinfo. */
static int look_for(const struct plx_fabric_driver *driver)
{
	const struct driver_choice choice = {.driver = driver};
	struct fi_info *info;
	int rc = driver_getinfo(&choice, NULL, NULL, 0, &info);

	if (rc == 0)
		fi_freeinfo(info);
	return rc;
}

/* Common names for RDMA. */
static bool means_rdma(const char *name)
{
	static const char *const names[] = {"rdma",  "ib",    "infiniband", "roce",
					    "iwarp", "verbs", "fi:verbs"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(names); i++)
		if (strcasecmp(name, names[i]) == 0)
			return true;
	return false;
}

static const struct plx_fabric_driver *rdma_driver(const struct plx_fabric_driver *const *table)
{
	while (*table && !(*table)->rdma)
		table++;
	return *table;
}

static int fail_unknown(const struct plx_fabric_driver *const *table, const char *option,
			const char *name)
{
	const struct plx_fabric_driver *driver = rdma_driver(table);
	char known[128] = "";

	if (means_rdma(name))
		return driver ? plx_fail(EINVAL,
					 "%s %s: unknown provider; the driver for RDMA is %s",
					 option, name, driver->name)
			      : plx_fail(EINVAL, "%s %s: " NO_RDMA_DRIVER, option, name);
	if (strcmp(name, "fi:tcp") == 0 || strcmp(name, "fi:net") == 0)
		return plx_fail(EINVAL,
				"%s %s: links no longer use libfabric's own TCP; give tcp, "
				"Pollux's own (tests/perf/raw-fi measures libfabric's)",
				option, name);
	for (; *table; table++)
		plx_list_add(known, sizeof(known), (*table)->name);
	return plx_fail(EINVAL, "%s %s: unknown provider; give auto or a driver (%s)", option, name,
			known);
}

/* By its own name, or by libfabric's. */
static bool is_named(const struct plx_fabric_driver *driver, const char *name)
{
	const char *provider = strncmp(name, "fi:", 3) == 0 ? name + 3 : name;

	return strcmp(name, driver->name) == 0 || strcmp(provider, driver->provider) == 0;
}

static int find(const struct plx_fabric_driver *const *table, const char *option, const char *name,
		bool require, struct driver_choice *out)
{
	for (const struct plx_fabric_driver *const *d = table; *d; d++) {
		if (!is_named(*d, name))
			continue;
		if (require && !(*d)->rdma && !(*d)->same_host)
			return plx_fail(EINVAL,
					"%s %s: it is no RDMA, which is required; give auto or "
					"verbs, or do without --require rdma",
					option, name);
		*out = (struct driver_choice){*d, .asked = true};
		return 0;
	}
	return fail_unknown(table, option, name);
}

static int configure(const struct plx_fabric_driver *const *table, const char *option,
		     const char *settings, bool check)
{
	for (; table && *table; table++) {
		if (strcmp((*table)->name, "tcp") == 0 && (*table)->configure)
			return (*table)->configure(option, settings, check);
	}
	if (!settings)
		return 0;
	return plx_fail(EINVAL, "%s %s: this program has no driver tcp", option, settings);
}

int plx_fabric_check_tcp(const struct plx_fabric_driver *const *table, const char *option,
			 const char *settings)
{
	return configure(table, option, settings, true);
}

int plx_fabric_check_provider(const struct plx_fabric_driver *const *table, const char *option,
			      const char *name, bool require)
{
	struct driver_choice choice;

	return strcmp(name, "auto") == 0 ? 0 : find(table, option, name, require, &choice);
}

/* Same-host drivers, RDMA, and the first of the others. */
static int choose_all(struct driver_choice *choices)
{
	const struct plx_fabric_driver *other = NULL;
	int count = 0;

	for (const struct plx_fabric_driver *const *d = drivers; *d; d++) {
		if ((*d)->same_host && count < DRIVER_CHOICES_MAX - 2)
			choices[count++] = (struct driver_choice){.driver = *d};
		else if (!(*d)->same_host && !(*d)->rdma && !other)
			other = *d;
	}
	if (rdma)
		choices[count++] = (struct driver_choice){.driver = rdma};
	if (other && !require_rdma)
		choices[count++] = (struct driver_choice){.driver = other};
	return count;
}

/* The drivers for `name`, in the order to try them. A name gives one. Without a name: same-host
 * drivers, RDMA if this host has any, then the default. Return: their number; -EINVAL; -ENODEV
 * there are none. */
static int choose(const char *option, const char *name, struct driver_choice *choices)
{
	int count, rc;

	if (!drivers)
		return plx_fail(EINVAL, "%s: " NOT_UP_TEXT, option);
	name = name ?: default_name ?: "auto";
	if (strcmp(name, "auto") != 0) {
		rc = find(drivers, option, name, require_rdma, &choices[0]);
		return rc ?: 1;
	}
	if (require_rdma && !rdma_driver(drivers))
		return plx_fail(ENODEV, "RDMA is required (--require rdma): " NO_RDMA_DRIVER);
	if (require_rdma && !rdma)
		return plx_fail(ENODEV, "RDMA is required (--require rdma), and this host has no "
					"RDMA device that links can use; plx-info lists devices, "
					"and with --doctor what is wrong with them");
	count = choose_all(choices);
	return count ?: plx_fail(ENODEV, "%s: no driver was given to plx_fabric_init", option);
}

int driver_init(const struct plx_fabric_conf *conf)
{
	struct driver_choice choices[DRIVER_CHOICES_MAX];
	int rc;

	drivers = conf->drivers;
	default_name = conf->provider;
	require_rdma = conf->require_rdma;
	rdma = NULL;
	for (const struct plx_fabric_driver *const *d = drivers; d && *d && !rdma; d++) {
		if ((*d)->rdma && look_for(*d) == 0)
			rdma = *d;
	}
	rc = configure(drivers, "tcp", conf->tcp, false);
	rc = rc ?: choose("--provider", NULL, choices);
	return rc < 1 ? rc : look_for(choices[rc - 1].driver); /* that for remote peers */
}

void driver_fini(void)
{
	drivers = NULL;
}

int driver_choose(const struct plx_link_attr *attr, struct driver_choice *choices)
{
	int count = choose("provider", attr->provider, choices);
	int kept = 0;

	if (count < 1 || !attr->direct)
		return count;
	for (int i = 0; i < count; i++) {
		if (!choices[i].driver->direct)
			continue;
		choices[kept] = choices[i];
		choices[kept++].direct = true;
	}
	if (kept)
		return kept;
	return plx_fail(EOPNOTSUPP,
			"provider %s: it has no remote memory, which direct data placement needs; "
			"give tcp or verbs, or send messages",
			choices[0].driver->name);
}

static struct fi_info *make_hints(const struct driver_choice *choice)
{
	const struct plx_fabric_driver *driver = choice->driver;
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = FI_MSG | (choice->direct ? FI_RMA : 0);
	hints->mode = FI_CONTEXT | FI_RX_CQ_DATA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->addr_format = FI_FORMAT_UNSPEC;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	hints->tx_attr->size = driver->tx_size;
	if (choice->direct && driver->direct_tx_size)
		hints->tx_attr->size = driver->direct_tx_size;
	hints->rx_attr->size = driver->rx_size;
	hints->fabric_attr->prov_name = strdup(driver->provider);
	if (!hints->fabric_attr->prov_name) {
		fi_freeinfo(hints);
		return NULL;
	}
	if (driver->hints)
		driver->hints(hints);
	return hints;
}

static int fail_missing(const struct driver_choice *choice)
{
	const struct plx_fabric_driver *driver = choice->driver;
	const char *only = getenv("FI_PROVIDER"); /* libfabric then hides all others */

	if (only && !driver->getinfo)
		return plx_fail(
			ENODEV,
			"driver %s: libfabric shows no provider '%s': FI_PROVIDER is '%s' in the "
			"environment, and hides others; unset it, or add ',%s' to it",
			driver->name, driver->provider, only, driver->provider);
	return plx_fail(ENODEV,
			"driver %s: libfabric has no provider '%s' on this host; `plx-info` shows "
			"what there is",
			driver->name, driver->provider);
}

/* Ownership: free *info_out with fi_freeinfo. Return: 0; -ENODEV; -EHOSTUNREACH; -ENOMEM. */
int driver_getinfo(const struct driver_choice *choice, const char *node, const char *service,
		   uint64_t flags, struct fi_info **info_out)
{
	const struct plx_fabric_driver *driver = choice->driver;
	struct fi_info *hints = make_hints(choice);
	int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *,
		       struct fi_info **) = driver->getinfo ?: fi_getinfo;

	if (!hints)
		return plx_fail(ENOMEM, "out of memory");

	int rc = getinfo(FABRIC_API_VERSION, node, service, flags, hints, info_out);

	fi_freeinfo(hints);
	if (rc == 0)
		return 0;
	if (rc == -FI_ENODATA && node)
		return plx_fail(EHOSTUNREACH,
				strchr(node, ':') ? "[%s]:%s: libfabric's %s cannot %s; %s?"
						  : "%s:%s: libfabric's %s cannot %s; %s?",
				node, service, driver->provider,
				flags & FI_SOURCE ? "listen there"
						  : "reach that address from this host",
				driver->unreachable ?: "does an interface have a route to it");
	if (rc == -FI_ENODATA || rc == -FI_ENOSYS)
		return fail_missing(choice);
	return plx_fail(EIO, "driver %s: fi_getinfo failed: %s", driver->name,
			descriptors_strerror(rc));
}

/* Queues -------------------------------------------------------------------------------------- */

int plx_fabric_open_queues(struct plx_fabric_fids *fids, const struct fi_info *info)
{
	bool shares = fi_open_ops(&fids->fabric->fid, PLX_WATCH_OPS, 0, (void **)&fids->watch_ops,
				  NULL) == 0;
	enum fi_wait_obj wait_obj = shares ? FI_WAIT_NONE : FI_WAIT_FD;
	struct fi_cq_attr cq_attr = {
		.size = fids->cq_entries,
		.format = fids->cq_format,
		.wait_obj = wait_obj,
	};
	struct fi_eq_attr eq_attr = {.wait_obj = wait_obj};
	int rc = fi_cq_open(fids->domain, &cq_attr, &fids->cq, NULL);

	return rc ? rc : fi_eq_open(fids->fabric, &eq_attr, &fids->eq, NULL);
}

int driver_open(const struct plx_fabric_driver *driver, const struct fi_info *info, void *context,
		struct plx_fabric_fids *fids, const char **step_out)
{
	int rc;

	*step_out = "the fabric";
	rc = driver->fabric ? driver->fabric(info->fabric_attr, &fids->fabric, context)
			    : fi_fabric(info->fabric_attr, &fids->fabric, context);
	if (rc)
		return rc;
	*step_out = "the domain";
	rc = fi_domain(fids->fabric, (struct fi_info *)info, &fids->domain, context);
	if (rc)
		return rc;
	*step_out = "the queues";
	return driver->open_queues ? driver->open_queues(fids, info)
				   : plx_fabric_open_queues(fids, info);
}

/* A request whose endpoint is open must not be rejected afterwards. Bind transmit and receive
 * separately: selective completion on both would hide receives. */
int driver_open_endpoint(const struct plx_fabric_fids *fids, struct fi_info *info, void *context,
			 struct fid_ep **ep_out)
{
	struct fid_ep *ep;
	int rc = fi_endpoint(fids->domain, info, &ep, context);

	if (rc)
		return rc;
	*ep_out = ep;
	info->handle = NULL;
	rc = fi_ep_bind(ep, &fids->eq->fid, 0);
	rc = rc ? rc : fi_ep_bind(ep, &fids->cq->fid, FI_TRANSMIT);
	rc = rc ? rc : fi_ep_bind(ep, &fids->cq->fid, FI_RECV);
	return rc ? rc : fi_enable(ep);
}

void driver_close_fid(struct fid *fid, const char *what)
{
	int rc = fid ? fi_close(fid) : 0;

	if (rc)
		plx_log(&fabric_log, PLX_LOG_ERROR, "closing a %s failed: %s", what,
			fi_strerror(-rc));
}

/* In this order no provider of 1.17 returns -FI_EBUSY. */
void driver_close(struct plx_fabric_fids *fids)
{
	driver_close_fid(fids->cq ? &fids->cq->fid : NULL, "completion queue");
	driver_close_fid(fids->domain ? &fids->domain->fid : NULL, "domain");
	driver_close_fid(fids->eq ? &fids->eq->fid : NULL, "event queue");
	driver_close_fid(fids->fabric ? &fids->fabric->fid : NULL, "fabric");
}
