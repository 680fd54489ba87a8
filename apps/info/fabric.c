/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric's providers on this host, and which of them each driver would use. */
#include "compat.h"
#include "info.h"
#include "plx_fabric_driver.h"

#include <string.h>

#define API_VERSION FI_VERSION(1, 14)

static struct info_provider *provider_named(struct info_fabric *fabric, const char *name)
{
	for (unsigned i = 0; i < fabric->provider_count; i++)
		if (strcmp(fabric->providers[i].name, name) == 0)
			return &fabric->providers[i];
	if (fabric->provider_count == INFO_PROVIDERS_MAX)
		return NULL;
	struct info_provider *provider = &fabric->providers[fabric->provider_count++];
	snprintf(provider->name, sizeof(provider->name), "%s", name);
	return provider;
}

static void add_provider(struct info_fabric *fabric, const struct fi_info *info)
{
	struct info_provider *provider = provider_named(fabric, info->fabric_attr->prov_name);

	if (!provider)
		return;
	provider->msg |= info->ep_attr->type == FI_EP_MSG;
	provider->rdm |= info->ep_attr->type == FI_EP_RDM;
	provider->dgram |= info->ep_attr->type == FI_EP_DGRAM;
	if (info->domain_attr->name)
		info_add_word(provider->domains, sizeof(provider->domains), " ",
			      info->domain_attr->name);
}

static void gather_providers(struct info_fabric *fabric)
{
	struct fi_info *list = NULL;

	if (fi_getinfo(API_VERSION, NULL, NULL, 0, NULL, &list) != 0)
		return;
	for (const struct fi_info *info = list; info; info = info->next)
		add_provider(fabric, info);
	fi_freeinfo(list);
}

/* Query what a link needs: connected endpoints of exactly that provider. */
static void look_for_endpoints(const struct plx_fabric_driver *driver, struct info_driver *entry)
{
	struct fi_info *list = NULL, *hints = fi_allocinfo();

	if (!hints)
		return;
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG;
	hints->mode = ~UINT64_C(0);
	hints->domain_attr->mr_mode = ~(COMPAT_MR_BASIC | COMPAT_MR_SCALABLE);
	hints->fabric_attr->prov_name = strdup(entry->provider);
	if ((driver->getinfo ? driver->getinfo : fi_getinfo)(API_VERSION, NULL, NULL, 0, hints,
							     &list) == 0) {
		entry->available = list != NULL;
		for (const struct fi_info *info = list; info; info = info->next)
			info_add_word(entry->domains, sizeof(entry->domains), " ",
				      info->domain_attr->name);
		fi_freeinfo(list);
	}
	fi_freeinfo(hints);
}

static void gather_driver(const struct plx_fabric_driver *driver, struct info_fabric *fabric)
{
	struct info_driver *entry = &fabric->drivers[fabric->driver_count++];

	entry->name = driver->name;
	entry->summary = driver->summary;
	entry->same_host = driver->same_host;
	snprintf(entry->provider, sizeof(entry->provider), "%s", driver->provider);
	look_for_endpoints(driver, entry);
}

void info_gather_fabric(const struct plx_fabric_driver *const *drivers, struct info_fabric *fabric)
{
	memset(fabric, 0, sizeof(*fabric));
	fabric->version = fi_version();
	gather_providers(fabric);
	for (; *drivers && fabric->driver_count < INFO_DRIVERS_MAX; drivers++)
		gather_driver(*drivers, fabric);
}
