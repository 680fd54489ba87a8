/* SPDX-License-Identifier: BSD-3-Clause */
/* Fabrics, which event queues and passive endpoints belong to; domains, and their memory
 * registrations. */
#include "prov.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_LINE_MAX 512

PLX_LOG_COMPONENT(prov_component, "prov");

/* Whether this process needs libfabric's own initialization: it loaded the module, or its log was
 * asked for. It takes 0.1 s, in which the verbs provider reads /proc/kallsyms. */
static bool uses_libfabric;

/* Refused parameters are warnings of Pollux, too. Others are for --log-level prov:debug, because
 * peers cause them. */
static _Thread_local bool reads_params;

/* libfabric's log writes nothing until the first libfabric call has read FI_LOG_LEVEL. Without it,
 * warnings go to Pollux's. */
void prov_log(const struct fi_provider *provider, enum fi_log_level level, const char *format, ...)
{
	char line[LOG_LINE_MAX];
	int saved_errno = errno;
	va_list args;

	if (uses_libfabric ? !fi_log_enabled(provider, level, FI_LOG_CORE) : level != FI_LOG_WARN)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (uses_libfabric)
		fi_log(provider, level, FI_LOG_CORE, "prov_log", __LINE__, "%s\n", line);
	else
		plx_log(&prov_component, reads_params ? PLX_LOG_WARNING : PLX_LOG_DEBUG, "%s: %s",
			provider->name, line);
	errno = saved_errno;
}

static void start_libfabric(void)
{
	struct fi_param *params = NULL;
	int count;

	if (fi_getparams(&params, &count) == 0 && params)
		fi_freeparams(params);
}

void prov_begin(const struct prov *prov, bool loading)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	if (!*prov->has_begun) {
		if (!loading && getenv("FI_LOG_LEVEL"))
			start_libfabric();
		if (loading || getenv("FI_LOG_LEVEL"))
			uses_libfabric = true;
		reads_params = true;
		prov->read_params(loading);
		reads_params = false;
		*prov->has_begun = true;
	}
	pthread_mutex_unlock(&lock);
}

const char *prov_param_name(const struct fi_provider *provider, const char *key,
			    char out[PROV_PARAM_NAME_MAX])
{
	snprintf(out, PROV_PARAM_NAME_MAX, "FI_%s_%s", provider->name, key);
	for (char *at = out; *at; at++)
		*at = (char)toupper(*at);
	return out;
}

const char *prov_param(const struct fi_provider *provider, bool loading, const char *key,
		       const char *help)
{
	char name[PROV_PARAM_NAME_MAX], *text = NULL;

	if (loading) {
		fi_param_define(provider, key, FI_PARAM_STRING, "%s", help);
		return fi_param_get_str((struct fi_provider *)provider, key, &text) ? NULL : text;
	}
	return getenv(prov_param_name(provider, key, name));
}

/* Unsupported calls: fi_getinfo does not offer them. */
#define REFUSED(type)                                                                      \
	{                                                                                  \
		.all = { sizeof(struct type), {[0 ... PROV_CALLS_MAX - 1] = prov_refuse} } \
	}

union prov_calls prov_no_rma = REFUSED(fi_ops_rma);
union prov_calls prov_no_tagged = REFUSED(fi_ops_tagged);
union prov_calls prov_no_atomic = REFUSED(fi_ops_atomic);
union prov_calls prov_no_collective = REFUSED(fi_ops_collective);

/* A sanitizer would report that callers pass it arguments. */
__attribute__((no_sanitize("undefined"))) ssize_t prov_refuse(void)
{
	return -FI_ENOSYS;
}

/* Memory registration ------------------------------------------------------------------------ */

/* Regions of a domain, by key, and perhaps bound to an endpoint. Sends and receives need no
 * registration. */
static int compare_keys(const void *left, const void *right)
{
	uint64_t a = ((const struct prov_mr *)left)->fid.key;
	uint64_t b = ((const struct prov_mr *)right)->fid.key;

	return (a > b) - (a < b);
}

struct prov_mr *prov_mr_find(const struct prov_domain *domain, uint64_t key)
{
	struct prov_mr wanted = {.fid.key = key};
	struct prov_mr **found = tfind(&wanted, &domain->mrs, compare_keys);

	return found ? *found : NULL;
}

static int mr_close(struct fid *fid)
{
	struct prov_mr *mr = (struct prov_mr *)fid;
	struct prov_domain *domain = mr->domain;
	const struct prov_domain_ops *ops = domain->fabric->prov->domain_ops;

	if (ops->mr_closing)
		ops->mr_closing(mr);
	if (mr->ep)
		LIST_REMOVE(mr, of_ep);
	tdelete(mr, &domain->mrs, compare_keys);
	domain->refs--;
	free(mr);
	return 0;
}

static int mr_bind(struct fid *fid, struct fid *bound, uint64_t flags)
{
	struct prov_mr *mr = (struct prov_mr *)fid;
	struct prov_ep *ep = (struct prov_ep *)bound;

	if (bound->fclass != FI_CLASS_EP || ep->domain != mr->domain || mr->ep)
		return -FI_EINVAL;
	mr->ep = ep;
	LIST_INSERT_HEAD(&ep->mrs, mr, of_ep);
	return 0;
}

void prov_mr_orphan_all(struct prov_ep *ep)
{
	struct prov_mr *mr, *next;

	LIST_FOREACH_SAFE (mr, &ep->mrs, of_ep, next) {
		mr->ep = NULL;
		mr->access = 0;
	}
}

static struct fi_ops mr_fid_ops = PROV_FID_OPS(mr_close, mr_bind, PROV_REFUSED);

/* Assign the key and insert the region. */
static int enter(struct prov_mr *mr, uint64_t requested_key)
{
	struct prov_domain *domain = mr->domain;
	struct prov_mr **place;

	mr->fid.key = domain->chooses_keys ? plx_random_id() : requested_key;
	place = tsearch(mr, &domain->mrs, compare_keys);
	if (!place)
		return -FI_ENOMEM;
	return *place == mr ? 0 : -FI_ENOKEY;
}

/* Remote access allows one piece only. attr->iface is for callers with FI_HMEM. */
static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		      struct fid_mr **mr_out)
{
	struct prov_domain *domain = (struct prov_domain *)fid;
	struct prov_mr *mr;
	int rc;

	if (flags)
		return -FI_EBADFLAGS;
	if (fid->fclass != FI_CLASS_DOMAIN ||
	    attr->iov_count > domain->fabric->prov->most->domain_attr->mr_iov_limit)
		return -FI_EINVAL;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->domain = domain;
	mr->access = attr->access;
	if (attr->iov_count)
		mr->memory = attr->mr_iov[0];
	mr->address = domain->by_address ? (uintptr_t)mr->memory.iov_base : 0;
	rc = enter(mr, attr->requested_key);
	if (rc) {
		free(mr);
		return rc;
	}
	fid_init(&mr->fid.fid, FI_CLASS_MR, attr->context, &mr_fid_ops);
	mr->fid.mem_desc = mr; /* unused, but not NULL */
	domain->refs++;
	*mr_out = &mr->fid;
	return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		   uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr_out,
		   void *context)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.requested_key = requested_key,
		.context = context,
	};

	return mr_regattr(fid, &attr, flags, mr_out);
}

static int mr_reg(struct fid *fid, const void *buf, size_t length, uint64_t access, uint64_t offset,
		  uint64_t requested_key, uint64_t flags, struct fid_mr **mr_out, void *context)
{
	struct iovec iov = {(void *)(uintptr_t)buf, length};

	return mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr_out, context);
}

static struct fi_ops_mr mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};

/* Domains ------------------------------------------------------------------------------------ */

static int domain_close(struct fid *fid)
{
	struct prov_domain *domain = (struct prov_domain *)fid;
	const struct prov_domain_ops *ops = domain->fabric->prov->domain_ops;

	if (domain->refs)
		return -FI_EBUSY;
	if (ops->fini)
		ops->fini(domain);
	fabric_unref(domain->fabric);
	free(domain);
	return 0;
}

static struct fi_ops domain_fid_ops = PROV_FID_OPS(domain_close, PROV_REFUSED, PROV_REFUSED);

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = PROV_REFUSED,
	.cq_open = prov_cq_open,
	.endpoint = prov_ep_open,
	.scalable_ep = PROV_REFUSED,
	.cntr_open = PROV_REFUSED,
	.poll_open = PROV_REFUSED,
	.stx_ctx = PROV_REFUSED,
	.srx_ctx = PROV_REFUSED,
};

bool prov_is_domain(const struct prov *prov, const struct fid_domain *fid)
{
	return fid->ops == &domain_ops && ((const struct prov_domain *)fid)->fabric->prov == prov;
}

static int open_domain(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **domain_out,
		       void *context)
{
	struct prov_fabric *fabric = (struct prov_fabric *)fid;
	const struct prov_domain_ops *ops = fabric->prov->domain_ops;
	struct prov_domain *domain;

	if (!info || !info->domain_attr || !prov_domain_attr_fits(fabric->prov, info->domain_attr))
		return -FI_EINVAL;
	domain = calloc(1, ops->bytes);
	if (!domain)
		return -FI_ENOMEM;
	fid_init(&domain->fid.fid, FI_CLASS_DOMAIN, context, &domain_fid_ops);
	domain->fid.ops = &domain_ops;
	domain->fid.mr = &mr_ops;
	domain->chooses_keys = info->domain_attr->mr_mode & (COMPAT_MR_BASIC | FI_MR_PROV_KEY);
	domain->by_address = info->domain_attr->mr_mode & (COMPAT_MR_BASIC | FI_MR_VIRT_ADDR);
	domain->fabric = fabric;
	fabric_ref(fabric);
	ops->init(domain);
	*domain_out = &domain->fid;
	return 0;
}

/* Fabrics ------------------------------------------------------------------------------------ */

/* The caller's thread does not drive queues of another fabric. */
static int arm(struct fid_fabric *fabric, struct fid *fid)
{
	struct prov_cq *cq = (struct prov_cq *)fid;
	struct prov_eq *eq = (struct prov_eq *)fid;

	if (fid->fclass == FI_CLASS_CQ && &cq->domain->fabric->fid == fabric)
		return cq_arm(cq);
	if (fid->fclass == FI_CLASS_EQ && &eq->fabric->fid == fabric)
		return eq_arm(eq);
	return -FI_EINVAL;
}

static int fabric_trywait(struct fid_fabric *fid, struct fid **fids, int count)
{
	int rc = 0;

	for (int i = 0; i < count && rc == 0; i++)
		rc = arm(fid, fids[i]);
	return rc;
}

/* Shared sets -------------------------------------------------------------------------------- */

static int join(struct fid *fid, struct plx_watch_set *set, struct plx_watch *event)
{
	struct prov_cq *cq = (struct prov_cq *)fid;
	struct prov_eq *eq = (struct prov_eq *)fid;

	if (fid->fclass == FI_CLASS_CQ && !cq->refs)
		return queue_join(&cq->wait, set, cq->domain->fabric->prov->cq_ops->nests);
	if (fid->fclass != FI_CLASS_EQ || eq->refs)
		return -FI_EINVAL;
	eq->event = event;
	return queue_join(&eq->wait, set, false);
}

static int open_ops(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	static const struct plx_watch_ops watch_ops = {join, eq_left_ns};

	if (flags || strcmp(name, PLX_WATCH_OPS) != 0)
		return -FI_ENOSYS;
	*ops = (void *)&watch_ops;
	return 0;
}

static int fabric_close(struct fid *fid)
{
	struct prov_fabric *fabric = (struct prov_fabric *)fid;

	if (atomic_load_explicit(&fabric->refs, memory_order_relaxed))
		return -FI_EBUSY;
	free(fabric);
	return 0;
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = PROV_REFUSED,
	.control = PROV_REFUSED,
	.ops_open = open_ops,
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = open_domain,
	.passive_ep = prov_pep_open,
	.eq_open = prov_eq_open,
	.wait_open = PROV_REFUSED,
	.trywait = fabric_trywait,
};

bool prov_is_fabric(const struct prov *prov, const struct fid_fabric *fid)
{
	return fid->ops == &fabric_ops && ((const struct prov_fabric *)fid)->prov == prov;
}

int prov_fabric_open(const struct prov *prov, const struct fi_fabric_attr *attr,
		     struct fid_fabric **fabric_out, void *context)
{
	struct prov_fabric *fabric;

	prov_begin(prov, false);
	if (!attr || !attr->name || strcmp(attr->name, prov->libfabric->name) != 0)
		return -FI_EINVAL;
	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		return -FI_ENOMEM;
	fid_init(&fabric->fid.fid, FI_CLASS_FABRIC, context, &fabric_fid_ops);
	fabric->fid.ops = &fabric_ops;
	fabric->fid.api_version = attr->api_version;
	fabric->prov = prov;
	*fabric_out = &fabric->fid;
	return 0;
}
