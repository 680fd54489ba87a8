/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends of a connection in one process and thread, each with a separate fabric, as in two
 * processes: opening and closing them, and waiting for their events and completions. */
#ifndef PAIR_H
#define PAIR_H

#include "tested.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

/* How a connection is opened. */
struct pair_attr {
	size_t cq_size, tx_size, rx_size; /* 0: default */
	bool two_cqs, rx_selective, tx_selective;
	enum fi_cq_format format;  /* 0: DATA */
	enum fi_wait_obj wait_obj; /* of the CQs; 0: FI_WAIT_NONE */
	uint64_t op_flags;
	int mr_mode;
	void (*prepare)(struct fid_domain *domain); /* called once it is open; or NULL */
};

static inline struct fi_info *pair_info(const char *node, const char *service, uint64_t flags,
					const struct pair_attr *attr)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	hints->caps = FI_MSG | (tested_has_rma() ? FI_RMA : 0);
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = attr->mr_mode;
	hints->tx_attr->size = attr->tx_size;
	hints->rx_attr->size = attr->rx_size;
	hints->tx_attr->op_flags = attr->op_flags;
	assert_fi_works(tested_getinfo(node, service, flags, hints, &info));
	fi_freeinfo(hints);
	assert_non_null(info);
	return info;
}

/* An event and its private data. */
union cm_event {
	struct fi_eq_cm_entry cm;
	uint8_t room[sizeof(struct fi_eq_cm_entry) + PROV_CM_DATA_MAX];
};

/* Whether the other side closed that connection. */
static inline bool socket_has_ended(int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLRDHUP};

	return poll(&pollfd, 1, 0) == 1;
}

/* Whether a queue's descriptor wakes a waiting thread within that time. */
static inline bool is_woken(struct fid *queue, int timeout_ms)
{
	struct pollfd pollfd = {.events = POLLIN};

	assert_int_equal(fi_control(queue, FI_GETWAIT, &pollfd.fd), 0);
	return poll(&pollfd, 1, timeout_ms) == 1;
}

/* Return: as fi_eq_read, once there is an event. */
static inline ssize_t cm_next(struct fid_eq *eq, uint32_t *number_out, union cm_event *event)
{
	ssize_t got;

	tested_progress();
	wait_doing((got = fi_eq_read(eq, number_out, event, sizeof(*event), 0)) != -FI_EAGAIN,
		   tested_progress());
	return got;
}

/* Return: the length of the private data of an event of that kind. */
static inline size_t cm_wait(struct fid_eq *eq, uint32_t wanted, union cm_event *event)
{
	uint32_t number = 0;
	ssize_t got = cm_next(eq, &number, event);

	assert_true(got >= (ssize_t)sizeof(event->cm));
	assert_int_equal(number, wanted);
	return (size_t)got - sizeof(event->cm);
}

static inline struct fi_eq_err_entry cm_wait_error(struct fid_eq *eq)
{
	struct fi_eq_err_entry error = {0};
	union cm_event event;
	uint32_t number;

	assert_int_equal(cm_next(eq, &number, &event), -FI_EAVAIL);
	assert_int_equal(fi_eq_readerr(eq, &error, 0), sizeof(error));
	return error;
}

/* The next completion of a queue is a cancelled operation. */
static inline void expect_cancelled(struct fid_cq *cq, const void *context)
{
	struct fi_cq_err_entry error = {0};
	struct fi_cq_data_entry entry;

	assert_int_equal(fi_cq_read(cq, &entry, 1), -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(cq, &error, 0), 1);
	assert_int_equal(error.err, FI_ECANCELED);
	assert_ptr_equal(error.op_context, context);
}

static inline void cm_expect_nothing(struct fid_eq *eq)
{
	union cm_event event;
	uint32_t number;

	for (int i = 0; i < 100; i++) {
		tested_progress();
		assert_int_equal(fi_eq_read(eq, &number, &event, sizeof(event), 0), -FI_EAGAIN);
	}
}

/* Sides -------------------------------------------------------------------------------------- */

#define CONTEXT(n) ((void *)(uintptr_t)(n))

struct side {
	struct side *peer; /* NULL: in another process */
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *rx_cq, *tx_cq; /* the same one unless two are requested */
	struct fid_ep *ep;
};

struct pair {
	struct pair_attr attr;
	struct fid_pep *pep;
	struct side a, b; /* a connects, b accepts */
};

/* Opening ------------------------------------------------------------------------------------ */

static inline void side_open_fabric(struct side *side)
{
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};

	plx_clock_init(); /* for wait_doing */
	side->fabric = tested_fabric(side->info);
	assert_int_equal(fi_eq_open(side->fabric, &eq_attr, &side->eq, NULL), 0);
}

static inline void side_open_domain(struct side *side, struct fi_info *info,
				    const struct pair_attr *attr)
{
	struct fi_cq_attr cq_attr = {
		.size = attr->cq_size,
		.format = attr->format ? attr->format : FI_CQ_FORMAT_DATA,
		.wait_obj = attr->wait_obj ? attr->wait_obj : FI_WAIT_NONE,
	};

	assert_int_equal(fi_domain(side->fabric, info, &side->domain, NULL), 0);
	if (attr->prepare)
		attr->prepare(side->domain);
	assert_int_equal(fi_cq_open(side->domain, &cq_attr, &side->rx_cq, NULL), 0);
	side->tx_cq = side->rx_cq;
	if (attr->two_cqs)
		assert_int_equal(fi_cq_open(side->domain, &cq_attr, &side->tx_cq, NULL), 0);
}

/* An endpoint bound to everything that the side has, not enabled. */
static inline struct fid_ep *side_bind_ep(struct side *side, struct fi_info *info,
					  const struct pair_attr *attr)
{
	uint64_t rx_flags = FI_RECV | (attr->rx_selective ? FI_SELECTIVE_COMPLETION : 0);
	uint64_t tx_flags = FI_TRANSMIT | (attr->tx_selective ? FI_SELECTIVE_COMPLETION : 0);
	struct fid_ep *ep;

	assert_int_equal(fi_endpoint(side->domain, info, &ep, side), 0);
	assert_int_equal(fi_ep_bind(ep, &side->eq->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &side->rx_cq->fid, rx_flags), 0);
	assert_int_equal(fi_ep_bind(ep, &side->tx_cq->fid, tx_flags), 0);
	return ep;
}

static inline struct fid_ep *side_make_ep(struct side *side, struct fi_info *info,
					  const struct pair_attr *attr)
{
	struct fid_ep *ep = side_bind_ep(side, info, attr);

	assert_int_equal(fi_enable(ep), 0);
	return ep;
}

/* Opens its domain too, if necessary. */
static inline void side_open_ep(struct side *side, struct fi_info *info,
				const struct pair_attr *attr)
{
	if (!side->domain)
		side_open_domain(side, info, attr);
	side->ep = side_make_ep(side, info, attr);
}

/* Sides that tests connect in their own ways: their queues have descriptors, and their endpoints
 * are not enabled. */

static inline struct fi_info *side_info(const char *host, const char *port, uint64_t flags)
{
	return pair_info(host, port, flags, &(struct pair_attr){.tx_size = 16, .rx_size = 16});
}

/* The side takes over info. */
static inline void side_open(struct side *side, struct fi_info *info)
{
	*side = (struct side){.info = info};
	side_open_fabric(side);
	side_open_domain(side, info, &(struct pair_attr){.wait_obj = FI_WAIT_FD});
}

static inline struct fid_ep *side_ep(struct side *side, struct fi_info *info)
{
	return side_bind_ep(side, info, &(struct pair_attr){0});
}

/* A passive endpoint that does not listen yet. */
static inline struct fid_pep *side_pep(struct side *side)
{
	struct fid_pep *pep;

	assert_int_equal(fi_passive_ep(side->fabric, side->info, &pep, NULL), 0);
	assert_int_equal(fi_pep_bind(pep, &side->eq->fid, 0), 0);
	return pep;
}

static inline struct sockaddr_storage name_of(struct fid *fid)
{
	struct sockaddr_storage name = {0};
	size_t bytes = sizeof(name);

	assert_int_equal(fi_getname(fid, &name, &bytes), 0);
	assert_int_equal(bytes, address_bytes((struct sockaddr *)&name));
	return name;
}

/* Pairs -------------------------------------------------------------------------------------- */

static inline void pair_listen(struct pair *pair, char *port_out)
{
	struct sockaddr_storage name;

	pair->b.info = pair_info("127.0.0.1", "0", FI_SOURCE, &pair->attr);
	side_open_fabric(&pair->b);
	pair->pep = side_pep(&pair->b);
	assert_int_equal(fi_listen(pair->pep), 0);
	name = name_of(&pair->pep->fid);
	sprintf(port_out, "%u", address_port((struct sockaddr *)&name));
}

/* Reconnect after both endpoints were closed. */
static inline void pair_connect(struct pair *pair)
{
	union cm_event event;

	side_open_ep(&pair->a, pair->a.info, &pair->attr);
	assert_int_equal(fi_connect(pair->a.ep, pair->a.info->dest_addr, NULL, 0), 0);
	cm_wait(pair->b.eq, FI_CONNREQ, &event);
	side_open_ep(&pair->b, event.cm.info, &pair->attr);
	fi_freeinfo(event.cm.info);
	assert_int_equal(fi_accept(pair->b.ep, NULL, 0), 0);
	cm_wait(pair->b.eq, FI_CONNECTED, &event);
	cm_wait(pair->a.eq, FI_CONNECTED, &event);
}

static inline void pair_open(struct pair *pair, const struct pair_attr *attr)
{
	char port[8];

	*pair = (struct pair){.attr = *attr, .a.peer = &pair->b, .b.peer = &pair->a};
	pair_listen(pair, port);
	pair->a.info = pair_info("127.0.0.1", port, 0, attr);
	side_open_fabric(&pair->a);
	tested_eqs[0] = pair->a.eq;
	tested_eqs[1] = pair->b.eq;
	pair_connect(pair);
}

/* Closing ------------------------------------------------------------------------------------ */

static inline void side_close_ep(struct side *side)
{
	if (side->ep)
		assert_int_equal(fi_close(&side->ep->fid), 0);
	side->ep = NULL;
}

/* Accepts one that is closed. */
static inline void side_close(struct side *side)
{
	struct side *peer = side->peer;

	if (!side->fabric)
		return;
	side_close_ep(side);
	if (side->tx_cq != side->rx_cq)
		assert_int_equal(fi_close(&side->tx_cq->fid), 0);
	if (side->rx_cq)
		assert_int_equal(fi_close(&side->rx_cq->fid), 0);
	if (side->domain)
		assert_int_equal(fi_close(&side->domain->fid), 0);
	assert_int_equal(fi_close(&side->eq->fid), 0);
	assert_int_equal(fi_close(&side->fabric->fid), 0);
	fi_freeinfo(side->info);
	*side = (struct side){.peer = peer};
}

static inline void pair_close(struct pair *pair)
{
	tested_eqs[0] = tested_eqs[1] = NULL;
	side_close(&pair->a);
	if (pair->pep)
		assert_int_equal(fi_close(&pair->pep->fid), 0);
	side_close(&pair->b);
}

/* A test's pair, in set-ups and teardowns. */
static struct pair pair;

static inline int open_with(struct pair_attr attr)
{
	pair_open(&pair, &attr);
	return 0;
}

static inline int set_up(void **state)
{
	return open_with((struct pair_attr){0});
}

static inline int set_up_to_wait(void **state)
{
	return open_with((struct pair_attr){.wait_obj = FI_WAIT_FD});
}

static inline int set_up_to_wait_two_cqs(void **state)
{
	return open_with((struct pair_attr){.wait_obj = FI_WAIT_FD, .two_cqs = true});
}

static inline int tear_down(void **state)
{
	pair_close(&pair);
	return 0;
}

/* Completions -------------------------------------------------------------------------------- */

/* Wait for one of this queue, while the other queue progresses too, unless it is NULL. Return: its
 * error; err 0: none. */
static inline struct fi_cq_err_entry cq_next(struct fid_cq *cq, struct fid_cq *other)
{
	struct fi_cq_data_entry entry = {0};
	struct fi_cq_err_entry error = {0};
	ssize_t got;

	wait_doing((got = fi_cq_read(cq, &entry, 1)) != -FI_EAGAIN,
		   other ? fi_cq_read(other, NULL, 0) : 0);
	if (got == 1)
		return (struct fi_cq_err_entry){
			.op_context = entry.op_context,
			.flags = entry.flags,
			.len = entry.len,
			.buf = entry.buf,
			.data = entry.data,
		};
	assert_int_equal(got, -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(cq, &error, 0), 1);
	return error;
}

static inline struct fi_cq_err_entry cq_wait(struct fid_cq *cq, struct fid_cq *other)
{
	struct fi_cq_err_entry entry = cq_next(cq, other);

	assert_int_equal(entry.err, 0);
	return entry;
}

static inline struct fi_cq_err_entry cq_wait_error(struct fid_cq *cq, struct fid_cq *other)
{
	struct fi_cq_err_entry error = cq_next(cq, other);

	assert_int_not_equal(error.err, 0);
	return error;
}

static inline int trywait(struct side *side, struct fid_cq *cq)
{
	struct fid *fid = &cq->fid;

	return fi_trywait(side->fabric, &fid, 1);
}

static inline void assert_empty(struct fid_cq *cq)
{
	struct fi_cq_data_entry entry;

	assert_int_equal(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
}

/* Messages ----------------------------------------------------------------------------------- */

/* Bytes that depend on seed. */
static inline uint8_t *make_bytes(size_t length, uint64_t seed)
{
	uint8_t *bytes = malloc(length ? length : 1);

	assert_non_null(bytes);
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)(seed + i * 31 + i / 251);
	return bytes;
}

static inline void post(struct side *side, void *buf, size_t length, uintptr_t context)
{
	assert_int_equal(fi_recv(side->ep, buf, length, NULL, 0, CONTEXT(context)), 0);
}

static inline void expect_sent(struct side *side, uintptr_t context)
{
	struct fi_cq_err_entry entry = cq_wait(side->tx_cq, side->peer->rx_cq);

	assert_ptr_equal(entry.op_context, CONTEXT(context));
	assert_int_equal(entry.flags, FI_SEND | FI_MSG);
}

static inline void expect_received(struct side *side, uintptr_t context, size_t length)
{
	struct fi_cq_err_entry entry = cq_wait(side->rx_cq, side->peer->tx_cq);

	assert_ptr_equal(entry.op_context, CONTEXT(context));
	assert_int_equal(entry.flags, FI_RECV | FI_MSG);
	assert_int_equal(entry.len, length);
}

#endif
