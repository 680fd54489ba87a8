/* SPDX-License-Identifier: BSD-3-Clause */
/* What libfabric programs expect of any provider with one-sided access. */
#define TESTED tcp_kind

#include "prov/pair.h"
#include "tcp.h"

#include <rdma/fi_rma.h>

#define KEY 4711

static uint8_t memory[64]; /* of b; a writes to it */
static struct fid_mr *mr;
static size_t piece_bytes; /* the most that one socket read returns */

static ssize_t receive_piece(int fd, void *buf, size_t length, int flags)
{
	return recv(fd, buf, length < piece_bytes ? length : piece_bytes, flags);
}

static int set_up_memory(void **state)
{
	set_up(state);
	memset(memory, 0, sizeof(memory));
	return fi_mr_reg(pair.b.domain, memory, sizeof(memory), FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
			 KEY, 0, &mr, NULL);
}

static int tear_down_memory(void **state)
{
	tcp_sys.recv = recv;
	assert_int_equal(fi_close(&mr->fid), 0);
	return tear_down(state);
}

/* One-sided access --------------------------------------------------------------------------- */

#define TEST(name) PLX_TEST_WITH(name, set_up_memory, tear_down_memory)

/* The longest headers, in pieces of each length. */
TEST(a_header_may_come_in_any_pieces)
{
	tcp_sys.recv = receive_piece;
	for (piece_bytes = 1; piece_bytes <= WIRE_FRAME_MOST; piece_bytes++) {
		struct fi_cq_err_entry entry;

		assert_int_equal(fi_writedata(pair.a.ep, "written", 8, NULL, piece_bytes, 0, 1, KEY,
					      CONTEXT(1)),
				 0);
		entry = cq_wait(pair.b.rx_cq, pair.a.tx_cq);
		assert_int_equal(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
		assert_int_equal(entry.data, piece_bytes);
		assert_int_equal(entry.len, 8);
		assert_memory_equal(memory + 1, "written", 8);
		memset(memory, 0, sizeof(memory));
		assert_int_equal(cq_wait(pair.a.tx_cq, pair.b.rx_cq).flags, FI_RMA | FI_WRITE);
	}
}

TEST(memory_of_the_peer_is_read)
{
	char got[8] = "";

	memcpy(memory + 5, "to read", 8);
	assert_int_equal(fi_read(pair.a.ep, got, 8, NULL, 0, 5, KEY, CONTEXT(2)), 0);
	assert_int_equal(cq_wait(pair.a.tx_cq, pair.b.rx_cq).flags, FI_RMA | FI_READ);
	assert_string_equal(got, "to read");
}

/* As fi_getinfo reported. */
TEST(limits_of_one_sided_access_are_kept)
{
	struct fi_rma_iov to[2] = {{.len = 8, .key = KEY}, {.addr = 8, .len = 8, .key = KEY}};
	struct iovec from[PROV_IOV_MAX + 1] = {{memory, 8}, {memory, 8}};
	struct fi_msg_rma msg = {
		.msg_iov = from, .iov_count = 2, .rma_iov = to, .rma_iov_count = 2};
	static uint8_t bytes[TCP_INJECT_MAX + 1];

	assert_int_equal(fi_writemsg(pair.a.ep, &msg, 0), -FI_EINVAL);
	assert_int_equal(fi_readmsg(pair.a.ep, &msg, 0), -FI_EINVAL);
	assert_int_equal(fi_writev(pair.a.ep, from, NULL, PROV_IOV_MAX + 1, 0, 0, KEY, CONTEXT(1)),
			 -FI_EINVAL);
	assert_int_equal(fi_inject_write(pair.a.ep, bytes, sizeof(bytes), 0, 0, KEY), -FI_EINVAL);
	assert_int_equal(fi_read(pair.a.ep, bytes, WIRE_LENGTH_MAX + 1, NULL, 0, 0, KEY, NULL),
			 -FI_EMSGSIZE);
	assert_int_equal(fi_write(pair.a.ep, bytes, WIRE_LENGTH_MAX + 1, NULL, 0, 0, KEY, NULL),
			 -FI_EMSGSIZE);
}

/* Closing ------------------------------------------------------------------------------------ */

TEST(the_event_queue_alone_hears_of_the_end_and_what_came_before_is_received)
{
	union cm_event event;
	char got[8] = "";

	assert_int_equal(fi_recv(pair.a.ep, got, sizeof(got), NULL, 0, CONTEXT(1)), 0);
	assert_int_equal(fi_inject(pair.b.ep, "last", 5, 0), 0);
	side_close_ep(&pair.b);
	cm_wait(pair.a.eq, FI_SHUTDOWN, &event);
	assert_ptr_equal(event.cm.fid, &pair.a.ep->fid);
	expect_received(&pair.a, 1, 5);
	assert_string_equal(got, "last");
	assert_false(is_woken(&pair.a.eq->fid, 0));
}

/* A thread waiting for events is not woken repeatedly while it lacks a receive. */
TEST(an_end_waits_for_receives_and_wakes_once)
{
	union cm_event event;
	char got[8];
	uint32_t number;

	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_inject(pair.b.ep, "last", 5, 0), 0);
	side_close_ep(&pair.b);
	for (int i = 0; i < 10; i++)
		assert_int_equal(fi_eq_read(pair.a.eq, &number, &event, sizeof(event), 0),
				 -FI_EAGAIN);
	assert_false(is_woken(&pair.a.eq->fid, 0));
	for (uintptr_t i = 1; i <= 2; i++) {
		assert_int_equal(fi_recv(pair.a.ep, got, sizeof(got), NULL, 0, CONTEXT(i)), 0);
		expect_received(&pair.a, i, 5);
	}
	assert_empty(pair.a.rx_cq);
	cm_wait(pair.a.eq, FI_SHUTDOWN, &event);
}

PLX_TEST_MAIN()
