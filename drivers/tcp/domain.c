/* SPDX-License-Identifier: BSD-3-Clause */
/* Domains: their connected endpoints, and memory for what waits. */
#include "tcp.h"

static void init(struct prov_domain *base)
{
	struct tcp_domain *domain = (struct tcp_domain *)base;

	TAILQ_INIT(&domain->queued);
	LIST_INIT(&domain->eps);
}

static void fini(struct prov_domain *base)
{
	block_pool_fini(&((struct tcp_domain *)base)->blocks);
}

const struct prov_domain_ops tcp_domain_ops = {
	.bytes = sizeof(struct tcp_domain),
	.init = init,
	.fini = fini,
	.mr_closing = tcp_mr_closing,
};
