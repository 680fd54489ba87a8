/* SPDX-License-Identifier: BSD-3-Clause */
/* Domains: their blocks, and the memory that peers may read or write. */
#include "tcp.h"

#include <stdlib.h>

#define FREE_MAX 16 /* kept blocks; more go back to malloc(3) */

struct block *block_get(struct prov_domain *base)
{
	struct tcp_domain *domain = (struct tcp_domain *)base;
	struct block *block = domain->free;

	if (block) {
		domain->free = block->next;
		domain->free_count--;
	} else {
		block = aligned_alloc(64, sizeof(*block) + BLOCK_BYTES);
	}
	if (block)
		block->begin = block->end = 0;
	return block;
}

void block_put(struct prov_domain *base, struct block *block)
{
	struct tcp_domain *domain = (struct tcp_domain *)base;

	if (!block)
		return;
	if (domain->free_count >= FREE_MAX) {
		free(block);
		return;
	}
	block->next = domain->free;
	domain->free = block;
	domain->free_count++;
}

/* Memory: once a registration is closed, no peer can reach it. A peer in the middle of an access
 * loses its connection. */

uint8_t *tcp_mr_find(const struct tcp_ep *ep, uint64_t key, uint64_t address, uint64_t length,
		     uint64_t access, struct prov_mr **mr_out)
{
	struct prov_mr *mr = prov_mr_find(ep->base.domain, key);

	if (!mr || (mr->ep && mr->ep != &ep->base) || !(mr->access & access) ||
	    address < mr->address || address - mr->address > mr->memory.iov_len ||
	    length > mr->memory.iov_len - (address - mr->address))
		return NULL;
	*mr_out = mr;
	return (uint8_t *)mr->memory.iov_base + (address - mr->address);
}

static bool is_used_by(const struct prov_mr *mr, const struct tcp_ep *ep)
{
	if (ep->into == mr)
		return true;
	for (uint32_t i = ep->base.tx_head; ep->answers && i != ep->base.tx_tail; i++) {
		if (ep->sends[i & ep->sends_mask].mr == mr)
			return true;
	}
	return false;
}

static void withdraw(const struct prov_mr *mr, struct tcp_ep *ep)
{
	if (!is_used_by(mr, ep))
		return;
	tcp_ep_break(ep, TCP_BREACH_WITHDRAWN);
	tcp_ep_finish(ep);
}

static void mr_closing(struct prov_mr *mr)
{
	struct tcp_domain *domain = (struct tcp_domain *)mr->domain;
	struct tcp_ep *ep, *after;

	if (mr->ep) {
		withdraw(mr, (struct tcp_ep *)mr->ep);
		return;
	}
	LIST_FOREACH_SAFE (ep, &domain->eps, domain_link, after)
		withdraw(mr, ep);
}

static void init(struct prov_domain *base)
{
	TAILQ_INIT(&((struct tcp_domain *)base)->queued);
}

static void fini(struct prov_domain *base)
{
	struct tcp_domain *domain = (struct tcp_domain *)base;

	while (domain->free)
		free(block_get(base));
}

const struct prov_domain_ops tcp_domain_ops = {
	.bytes = sizeof(struct tcp_domain),
	.init = init,
	.fini = fini,
	.mr_closing = mr_closing,
};
