/* SPDX-License-Identifier: BSD-3-Clause */
/* Domains: what polls check in addition to their queues. */
#include "shm.h"

#include <stdlib.h>

static struct shm_watch **find_watch(struct shm_domain *domain, const struct prov_eq *eq)
{
	struct shm_watch **at = &domain->watches;

	while (*at && (*at)->eq != eq)
		at = &(*at)->next;
	return at;
}

int domain_watch(struct shm_domain *domain, struct prov_eq *eq)
{
	struct shm_watch **at = find_watch(domain, eq);

	if (!*at)
		*at = calloc(1, sizeof(**at));
	if (!*at)
		return -FI_ENOMEM;
	(*at)->eq = eq;
	(*at)->endpoints++;
	return 0;
}

void domain_unwatch(struct shm_domain *domain, struct prov_eq *eq)
{
	struct shm_watch **at = find_watch(domain, eq);
	struct shm_watch *watch = *at;

	if (!watch || --watch->endpoints)
		return;
	*at = watch->next;
	free(watch);
}

static void init(struct prov_domain *domain)
{
	TAILQ_INIT(&((struct shm_domain *)domain)->sending);
}

const struct prov_domain_ops shm_domain_ops = {
	.bytes = sizeof(struct shm_domain),
	.init = init,
};
