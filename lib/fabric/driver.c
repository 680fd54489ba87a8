/* SPDX-License-Identifier: BSD-3-Clause */
/* From a name that a user gave to a driver and one of libfabric's providers, and from those to an
 * fi_info. */
#include "fabric_priv.h"

#include <stdio.h>
#include <stdlib.h>

static const struct plx_fabric_driver *const *drivers;
static const char *default_name;

void driver_set_table(const struct plx_fabric_driver *const *table, const char *provider)
{
	drivers = table;
	default_name = provider;
}

static void list_names(const struct plx_fabric_driver *const *table, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (; *table && used < size; table++) {
		int n = snprintf(out + used, size - used, "%s%s", used ? ", " : "", (*table)->name);

		used += n > 0 ? (size_t)n : 0;
	}
}

static int find(const struct plx_fabric_driver *const *table, const char *option, const char *name,
		const struct plx_fabric_driver **driver_out, const char **provider_out)
{
	bool exact = strncmp(name, "fi:", 3) == 0;
	char known[128];

	for (const struct plx_fabric_driver *const *d = table; *d; d++) {
		const char *provider = (*d)->provider(exact ? name + 3 : name, exact, fi_version());

		if (provider) {
			*driver_out = *d;
			*provider_out = provider;
			return 0;
		}
	}
	list_names(table, known, sizeof(known));
	return plx_fail(EINVAL,
			"%s %s: unknown provider; give auto, a driver (%s), or fi:NAME for one of "
			"libfabric's providers that a driver covers",
			option, name, known);
}

static bool is_auto(const char *name)
{
	return strcmp(name, "auto") == 0;
}

int plx_fabric_check_provider(const struct plx_fabric_driver *const *table, const char *option,
			      const char *name)
{
	const struct plx_fabric_driver *driver;
	const char *provider;

	return is_auto(name) ? 0 : find(table, option, name, &driver, &provider);
}

static int choose_all(struct driver_choice *choices)
{
	const struct plx_fabric_driver *other = NULL;
	int count = 0;

	for (const struct plx_fabric_driver *const *d = drivers; *d; d++) {
		if (!(*d)->same_host)
			other = other ? other : *d;
		else if (count < DRIVER_CHOICES_MAX - 1)
			choices[count++].driver = *d;
	}
	if (other)
		choices[count++].driver = other;
	for (int i = 0; i < count; i++)
		choices[i].provider = choices[i].driver->provider(choices[i].driver->name, false,
								  fi_version());
	return count;
}

int driver_choose(const char *option, const char *name, struct driver_choice *choices)
{
	int rc;

	if (!drivers)
		return plx_fail(EINVAL, "%s: the fabric is not set up; call plx_fabric_init first",
				option);
	if (!name)
		name = default_name ? default_name : "auto";
	if (!is_auto(name)) {
		rc = find(drivers, option, name, &choices[0].driver, &choices[0].provider);
		return rc ? rc : 1;
	}
	rc = choose_all(choices);
	return rc ? rc : plx_fail(ENODEV, "%s: no driver was given to plx_fabric_init", option);
}

static struct fi_info *make_hints(const struct driver_choice *choice)
{
	const struct plx_fabric_driver *driver = choice->driver;
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT | FI_RX_CQ_DATA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->addr_format = FI_FORMAT_UNSPEC;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	hints->tx_attr->size = driver->tx_size;
	hints->rx_attr->size = driver->rx_size;
	hints->fabric_attr->prov_name = strdup(choice->provider);
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
	const char *only = getenv("FI_PROVIDER"); /* libfabric's own: it hides all others */

	if (only && !choice->driver->getinfo)
		return plx_fail(ENODEV,
				"driver %s: libfabric shows no provider '%s': FI_PROVIDER is '%s' "
				"in the environment, and hides others; unset it, or add "
				"',%s' to it",
				choice->driver->name, choice->provider, only, choice->provider);
	return plx_fail(ENODEV,
			"driver %s: libfabric has no provider '%s' on this host; `plx-info` "
			"shows what there is",
			choice->driver->name, choice->provider);
}

/* Ownership: free *info_out with fi_freeinfo. Return: 0; -ENODEV; -EHOSTUNREACH; -ENOMEM. */
int driver_getinfo(const struct driver_choice *choice, const char *node, const char *service,
		   uint64_t flags, struct fi_info **info_out)
{
	const struct plx_fabric_driver *driver = choice->driver;
	struct fi_info *hints = make_hints(choice);
	int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *,
		       struct fi_info **) = driver->getinfo ? driver->getinfo : fi_getinfo;

	if (!hints)
		return plx_fail(ENOMEM, "out of memory");

	int rc = getinfo(FABRIC_API_VERSION, node, service, flags, hints, info_out);

	fi_freeinfo(hints);
	if (rc == 0)
		return 0;
	if (rc == -FI_ENODATA && node)
		return plx_fail(
			EHOSTUNREACH,
			"%s:%s: libfabric's %s cannot reach that address from this host; is "
			"the name right, and does an interface have a route to it?",
			node, service, choice->provider);
	if (rc == -FI_ENODATA || rc == -FI_ENOSYS)
		return fail_missing(choice);
	return plx_fail(EIO, "driver %s: fi_getinfo failed: %s", driver->name, fi_strerror(-rc));
}
