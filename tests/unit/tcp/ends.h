/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends of a plx_tcp connection, with access to its internals. */
#ifndef TCP_TEST_ENDS_H
#define TCP_TEST_ENDS_H

#define TESTED tcp_kind

#include "prov/pair.h"
#include "tcp.h"

static struct side *const a = &pair.a, *const b = &pair.b; /* a connects, b accepts */

static inline struct tcp_ep *tcp_of(const struct side *side)
{
	return (struct tcp_ep *)side->ep;
}

/* Read a queue until the condition holds. */
#define read_until(cq, condition)                                     \
	do {                                                          \
		uint64_t begin_ns_ = queue_now_ns();                  \
		while (!(condition)) {                                \
			if (is_late(begin_ns_))                       \
				fail_msg("never so: %s", #condition); \
			fi_cq_read((cq), NULL, 0);                    \
		}                                                     \
	} while (0)

/* The next completion of one of their queues, while the other end progresses too. */
static inline struct fi_cq_err_entry end_complete(struct fid_cq *cq)
{
	return cq_next(cq, cq == a->rx_cq || cq == a->tx_cq ? b->rx_cq : a->rx_cq);
}

/* Even after some polls of both ends. */
static inline void expect_nothing(struct fid_cq *cq)
{
	for (int i = 0; i < 20; i++) {
		fi_cq_read(a->rx_cq, NULL, 0);
		fi_cq_read(b->rx_cq, NULL, 0);
		assert_empty(cq);
	}
}

/* Prepare to sleep on that queue, as often as needed. */
static inline void go_to_sleep(struct side *side, struct fid_cq *cq)
{
	uint64_t begin_ns = queue_now_ns();
	int rc = trywait(side, cq);

	while (rc == -FI_EAGAIN && !is_late(begin_ns)) {
		fi_cq_read(cq, NULL, 0);
		rc = trywait(side, cq);
	}
	assert_int_equal(rc, 0);
}

#endif
