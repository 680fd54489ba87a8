/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends of a connection in one process and one thread, each with a fabric of its own, as two
 * processes would have. */
#ifndef TCP_TEST_ENDS_H
#define TCP_TEST_ENDS_H

#include "plx_test.h"
#include "tcp.h"

#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>

#define CONTEXT(n) ((void *)(uintptr_t)(n))
#define PATIENCE_S 30 /* for what comes at once unless the host is busy */

struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *rx_cq, *tx_cq; /* the same one unless asked for two */
	struct fid_ep *ep;
};

struct ends_attr {
	size_t cq_size, tx_size, rx_size; /* 0: default */
	bool two_cqs, rx_selective, tx_selective;
	bool gathers;              /* as lib/fabric's domains do */
	enum fi_cq_format format;  /* 0: DATA */
	enum fi_wait_obj wait_obj; /* of the CQs; 0: FI_WAIT_NONE */
	uint64_t op_flags;
	int mr_mode;
};

static struct ends_attr ends_attr; /* of those that are open */
static struct end a, b;            /* a connects, b accepts */
static struct fid_pep *pep;        /* of b */

/* An event and its private data. */
union ends_event {
	struct fi_eq_cm_entry cm;
	uint8_t room[sizeof(struct fi_eq_cm_entry) + PROV_CM_DATA_MAX];
};

static inline struct fi_info *ends_info(const char *node, const char *service, uint64_t flags)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = ends_attr.mr_mode;
	hints->tx_attr->size = ends_attr.tx_size;
	hints->rx_attr->size = ends_attr.rx_size;
	hints->tx_attr->op_flags = ends_attr.op_flags;
	assert_int_equal(tcp_getinfo(FI_VERSION(1, 17), node, service, flags, hints, &info), 0);
	fi_freeinfo(hints);
	assert_non_null(info);
	return info;
}

static inline void end_open_fabric(struct end *end)
{
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};

	assert_int_equal(tcp_fabric_open(end->info->fabric_attr, &end->fabric, NULL), 0);
	end->fabric->api_version = FI_VERSION(1, 17); /* as fi_fabric does */
	assert_int_equal(fi_eq_open(end->fabric, &eq_attr, &end->eq, NULL), 0);
}

static inline void end_open_domain(struct end *end)
{
	struct fi_cq_attr cq_attr = {
		.size = ends_attr.cq_size,
		.format = ends_attr.format ? ends_attr.format : FI_CQ_FORMAT_DATA,
		.wait_obj = ends_attr.wait_obj ? ends_attr.wait_obj : FI_WAIT_NONE,
	};

	assert_int_equal(fi_domain(end->fabric, end->info, &end->domain, NULL), 0);
	((struct tcp_domain *)end->domain)->gathers = ends_attr.gathers;
	if (ends_attr.two_cqs)
		assert_int_equal(fi_cq_open(end->domain, &cq_attr, &end->tx_cq, NULL), 0);
	assert_int_equal(fi_cq_open(end->domain, &cq_attr, &end->rx_cq, NULL), 0);
	if (!ends_attr.two_cqs)
		end->tx_cq = end->rx_cq;
}

/* An endpoint that is bound to all that the end has. */
static inline struct fid_ep *end_make_ep(struct end *end, struct fi_info *info)
{
	uint64_t rx_flags = FI_RECV | (ends_attr.rx_selective ? FI_SELECTIVE_COMPLETION : 0);
	uint64_t tx_flags = FI_TRANSMIT | (ends_attr.tx_selective ? FI_SELECTIVE_COMPLETION : 0);
	struct fid_ep *ep;

	assert_int_equal(fi_endpoint(end->domain, info, &ep, end), 0);
	assert_int_equal(fi_ep_bind(ep, &end->eq->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &end->rx_cq->fid, rx_flags), 0);
	assert_int_equal(fi_ep_bind(ep, &end->tx_cq->fid, tx_flags), 0);
	assert_int_equal(fi_enable(ep), 0);
	return ep;
}

static inline bool ends_are_late(uint64_t begin_ns)
{
	return queue_now_ns() - begin_ns > PATIENCE_S * PLX_NS_PER_S;
}

/* Read a queue until the condition holds. */
#define read_until(cq, condition)                                     \
	do {                                                          \
		uint64_t begin_ns_ = queue_now_ns();                  \
		while (!(condition)) {                                \
			if (ends_are_late(begin_ns_))                 \
				fail_msg("never so: %s", #condition); \
			fi_cq_read((cq), NULL, 0);                    \
		}                                                     \
	} while (0)

/* Both sides' event queues are read, as one may wait for the other. Return: the length of what came
 * for this one; negative: an error of that number. */
static inline ssize_t end_next_event(struct end *end, uint32_t *number, union ends_event *event,
				     struct fi_eq_err_entry *error)
{
	struct end *other = end == &a ? &b : &a;
	uint64_t begin_ns = queue_now_ns();

	while (!ends_are_late(begin_ns)) {
		ssize_t got = fi_eq_read(end->eq, number, event, sizeof(*event), 0);

		if (got == -FI_EAVAIL) {
			assert_int_equal(fi_eq_readerr(end->eq, error, 0), sizeof(*error));
			return -error->err;
		}
		if (got != -FI_EAGAIN)
			return got;
		if (other->eq)
			eq_progress((struct prov_eq *)other->eq);
		if (end->rx_cq)
			fi_cq_read(end->rx_cq, NULL, 0);
		if (other->rx_cq)
			fi_cq_read(other->rx_cq, NULL, 0);
	}
	fail_msg("no event");
	return 0;
}

/* Return: the length of its private data. */
static inline size_t end_event(struct end *end, uint32_t wanted, union ends_event *event)
{
	struct fi_eq_err_entry error = {0};
	uint32_t number;
	ssize_t got = end_next_event(end, &number, event, &error);

	assert_true(got >= (ssize_t)sizeof(event->cm));
	assert_int_equal(number, wanted);
	return (size_t)got - sizeof(event->cm);
}

static inline void end_no_event(struct end *end)
{
	union ends_event event;
	uint32_t number;

	for (int i = 0; i < 20; i++) {
		assert_int_equal(fi_eq_read(end->eq, &number, &event, sizeof(event), 0),
				 -FI_EAGAIN);
		fi_cq_read(end->rx_cq, NULL, 0);
	}
}

/* Both ends are open, and b listens. */
static inline void ends_listen(struct ends_attr attr)
{
	struct sockaddr_in name;
	size_t size = sizeof(name);
	char port[8];

	ends_attr = attr;
	a = b = (struct end){0};
	b.info = ends_info("127.0.0.1", "0", FI_SOURCE);
	end_open_fabric(&b);
	end_open_domain(&b);
	assert_int_equal(fi_passive_ep(b.fabric, b.info, &pep, NULL), 0);
	assert_int_equal(fi_pep_bind(pep, &b.eq->fid, 0), 0);
	assert_int_equal(fi_listen(pep), 0);
	assert_int_equal(fi_getname(&pep->fid, &name, &size), 0);
	sprintf(port, "%u", ntohs(name.sin_port));
	a.info = ends_info("127.0.0.1", port, 0);
	end_open_fabric(&a);
	end_open_domain(&a);
}

static inline void ends_connect(void)
{
	union ends_event event;

	a.ep = end_make_ep(&a, a.info);
	assert_int_equal(fi_connect(a.ep, a.info->dest_addr, NULL, 0), 0);
	end_event(&b, FI_CONNREQ, &event);
	b.ep = end_make_ep(&b, event.cm.info);
	fi_freeinfo(event.cm.info);
	assert_int_equal(fi_accept(b.ep, NULL, 0), 0);
	end_event(&b, FI_CONNECTED, &event);
	end_event(&a, FI_CONNECTED, &event);
}

static inline void ends_open(struct ends_attr attr)
{
	ends_listen(attr);
	ends_connect();
}

static inline void end_close_ep(struct end *end)
{
	if (end->ep)
		assert_int_equal(fi_close(&end->ep->fid), 0);
	end->ep = NULL;
}

static inline void end_close(struct end *end)
{
	end_close_ep(end);
	if (end->tx_cq != end->rx_cq)
		assert_int_equal(fi_close(&end->tx_cq->fid), 0);
	assert_int_equal(fi_close(&end->rx_cq->fid), 0);
	assert_int_equal(fi_close(&end->domain->fid), 0);
	assert_int_equal(fi_close(&end->eq->fid), 0);
	assert_int_equal(fi_close(&end->fabric->fid), 0);
	fi_freeinfo(end->info);
}

static inline void ends_close(void)
{
	end_close(&a);
	assert_int_equal(fi_close(&pep->fid), 0);
	end_close(&b);
}

/* Wait for one completion of this queue, while the other end goes on too. Return: its error; 0: it
 * has none, and is in entry. */
static inline struct fi_cq_err_entry end_complete(struct fid_cq *cq)
{
	struct fi_cq_err_entry error = {0};
	struct fi_cq_data_entry entry = {0};
	uint64_t begin_ns = queue_now_ns();

	while (!ends_are_late(begin_ns)) {
		ssize_t got = fi_cq_read(cq, &entry, 1);

		if (got == 1)
			return (struct fi_cq_err_entry){
				.op_context = entry.op_context,
				.flags = entry.flags,
				.len = entry.len,
				.buf = entry.buf,
				.data = entry.data,
			};
		if (got == -FI_EAVAIL) {
			assert_int_equal(fi_cq_readerr(cq, &error, 0), 1);
			return error;
		}
		assert_int_equal(got, -FI_EAGAIN);
		fi_cq_read(a.rx_cq, NULL, 0);
		fi_cq_read(b.rx_cq, NULL, 0);
	}
	fail_msg("no completion");
	return error;
}

static inline void expect_sent(struct end *end, uintptr_t context)
{
	struct fi_cq_err_entry done = end_complete(end->tx_cq);

	assert_int_equal(done.err, 0);
	assert_ptr_equal(done.op_context, CONTEXT(context));
	assert_int_equal(done.flags, FI_SEND | FI_MSG);
}

static inline void expect_received(struct end *end, uintptr_t context, size_t length)
{
	struct fi_cq_err_entry done = end_complete(end->rx_cq);

	assert_int_equal(done.err, 0);
	assert_ptr_equal(done.op_context, CONTEXT(context));
	assert_int_equal(done.flags, FI_RECV | FI_MSG);
	assert_int_equal(done.len, length);
}

/* Also after some polls of both ends. */
static inline void expect_nothing(struct fid_cq *cq)
{
	struct fi_cq_data_entry entry;

	for (int i = 0; i < 20; i++) {
		fi_cq_read(a.rx_cq, NULL, 0);
		fi_cq_read(b.rx_cq, NULL, 0);
		assert_int_equal(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
	}
}

static inline void post(struct end *end, void *buf, size_t length, uintptr_t context)
{
	assert_int_equal(fi_recv(end->ep, buf, length, NULL, 0, CONTEXT(context)), 0);
}

/* Bytes that differ by seed. */
static inline uint8_t *make_bytes(size_t length, uint64_t seed)
{
	uint8_t *bytes = malloc(length ? length : 1);

	assert_non_null(bytes);
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)(seed * 7 + i * 31 + i / 251);
	return bytes;
}

static inline struct tcp_ep *tcp_of(struct end *end)
{
	return (struct tcp_ep *)end->ep;
}

static inline int trywait(struct end *end, struct fid_cq *cq)
{
	struct fid *fid = &cq->fid;

	return fi_trywait(end->fabric, &fid, 1);
}

/* Prepare to sleep on that queue, as often as it takes. */
static inline void go_to_sleep(struct end *end, struct fid_cq *cq)
{
	uint64_t begin_ns = queue_now_ns();
	int rc = trywait(end, cq);

	while (rc == -FI_EAGAIN && !ends_are_late(begin_ns)) {
		fi_cq_read(cq, NULL, 0);
		rc = trywait(end, cq);
	}
	assert_int_equal(rc, 0);
}

#endif
