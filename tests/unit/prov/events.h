/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of connections ask for, and waiting for events of event queues. */
#ifndef PROV_TEST_EVENTS_H
#define PROV_TEST_EVENTS_H

#include "tested.h"

#include <poll.h>

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

#define PATIENCE_S 30 /* for events that come at once unless the host is busy */

/* An event and its private data. */
union cm_event {
	struct fi_eq_cm_entry cm;
	uint8_t room[sizeof(struct fi_eq_cm_entry) + PROV_CM_DATA_MAX];
};

/* Whether a queue's descriptor wakes a waiting thread within that time. */
static inline bool is_woken(struct fid *queue, int timeout_ms)
{
	struct pollfd pollfd = {.events = POLLIN};

	assert_int_equal(fi_control(queue, FI_GETWAIT, &pollfd.fd), 0);
	return poll(&pollfd, 1, timeout_ms) == 1;
}

static inline bool is_late(uint64_t begin_ns)
{
	return queue_now_ns() - begin_ns > PATIENCE_S * PLX_NS_PER_S;
}

/* Return: as fi_eq_read, once there is an event; or -FI_EAGAIN. */
static inline ssize_t cm_next(struct fid_eq *eq, uint32_t *number_out, union cm_event *event)
{
	uint64_t begin_ns = queue_now_ns();
	ssize_t got;

	do {
		tested_progress();
		got = fi_eq_read(eq, number_out, event, sizeof(*event), 0);
	} while (got == -FI_EAGAIN && !is_late(begin_ns));
	return got;
}

/* Return: the length of the private data of an event of that kind. */
static inline size_t cm_wait(struct fid_eq *eq, uint32_t wanted, union cm_event *event)
{
	uint32_t number = 0;
	ssize_t got = cm_next(eq, &number, event);

	if (got == -FI_EAGAIN)
		fail_msg("no event %u", wanted);
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

#endif
