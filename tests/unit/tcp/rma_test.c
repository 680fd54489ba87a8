/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided reads and writes: accessible memory, limits, and how they end; and how a connection
 * ends. */
#include "ends.h"

#define KEY   7
#define BYTES 65536

static uint8_t memory_a[BYTES], memory_b[BYTES], local[BYTES];
static struct fid_mr *mr_a, *mr_b;

static struct fid_mr *grant(struct side *end, void *bytes)
{
	struct fid_mr *mr;

	assert_fi_works(fi_mr_reg(end->domain, bytes, BYTES, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
				  KEY, 0, &mr, NULL));
	return mr;
}

static int open_granted(struct pair_attr attr)
{
	open_with(attr);
	mr_a = grant(a, memory_a);
	mr_b = grant(b, memory_b);
	for (size_t i = 0; i < BYTES; i++) {
		memory_b[i] = (uint8_t)(i * 31 + i / 251);
		local[i] = 0;
	}
	return 0;
}

static int setup(void **state)
{
	return open_granted((struct pair_attr){0});
}

static int setup_by_address(void **state)
{
	return open_granted((struct pair_attr){.mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY});
}

/* Its queue has room for the operations in flight, and not one completion more. */
static int setup_exact(void **state)
{
	return open_granted((struct pair_attr){.cq_size = 128, .tx_size = 64, .rx_size = 64});
}

static int teardown(void **state)
{
	assert_int_equal(fi_close(&mr_a->fid), 0);
	assert_int_equal(fi_close(&mr_b->fid), 0);
	return tear_down(state);
}

static uint64_t at(size_t offset)
{
	return pair.attr.mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)memory_b + offset : offset;
}

static void expect_done(uintptr_t context, uint64_t kind)
{
	struct fi_cq_err_entry done = end_complete(a->tx_cq);

	assert_int_equal(done.err, 0);
	assert_ptr_equal(done.op_context, CONTEXT(context));
	assert_int_equal(done.flags, FI_RMA | kind);
}

#define TEST(name, up) PLX_TEST_WITH(name, up, teardown)

TEST(reads_and_writes_may_have_any_length, setup)
{
	static const size_t lengths[] = {0, 1, 8, 1024, 1025, 4096, 65000};
	uint64_t key = fi_mr_key(mr_b);

	for (unsigned i = 0; i < PLX_ARRAY_LEN(lengths); i++) {
		size_t length = lengths[i];
		struct iovec iov[2] = {{local, length / 3}, {local + 40000, length - length / 3}};

		iov[1].iov_base = local + length / 3;
		assert_int_equal(fi_read(a->ep, local, length, NULL, 0, at(9), key, CONTEXT(i)), 0);
		expect_done(i, FI_READ);
		assert_memory_equal(local, memory_b + 9, length);
		memset(local, (int)i + 1, length);
		assert_int_equal(fi_writev(a->ep, iov, NULL, 2, 0, at(5), key, CONTEXT(i)), 0);
		expect_done(i, FI_WRITE);
		assert_int_equal(fi_readv(a->ep, iov, NULL, 2, 0, at(5), key, CONTEXT(i)), 0);
		expect_done(i, FI_READ);
		for (size_t j = 0; j < length; j++)
			assert_int_equal(memory_b[5 + j], i + 1);
	}
	assert_int_equal(fi_inject_write(a->ep, "injected", 8, 0, at(100), key), 0);
	assert_fi_works(fi_writedata(a->ep, "with data", 9, NULL, 77, 0, at(200), key, CONTEXT(1)));
	expect_done(1, FI_WRITE);
	assert_int_equal(end_complete(b->rx_cq).data, 77);
	assert_memory_equal(memory_b + 100, "injected", 8);
	assert_memory_equal(memory_b + 200, "with data", 9);
}
PLX_TEST_AGAIN(reads_and_writes_may_have_any_length, setup_by_address, teardown)

static ssize_t read_one(unsigned i)
{
	return fi_read(a->ep, local + 8 * i, 8, NULL, 0, at(8 * i), fi_mr_key(mr_b), CONTEXT(i));
}

static void fill(struct side *end)
{
	static const uint8_t message[1000];

	while (fi_inject(end->ep, message, sizeof(message), 0) == 0)
		;
}

/* Both must answer a read before they read what makes room for the answer. */
TEST(two_sides_with_full_sockets_answer_each_others_reads, setup)
{
	static uint8_t in_a[1000], in_b[1000], from_b[1000], from_a[1000];
	unsigned reads_left = 2;

	assert_fi_works(fi_read(a->ep, from_b, sizeof(from_b), NULL, 0, at(0), fi_mr_key(mr_b),
				CONTEXT(1)));
	assert_fi_works(fi_read(b->ep, from_a, sizeof(from_a), NULL, 0, at(0), fi_mr_key(mr_a),
				CONTEXT(1)));
	fill(a);
	fill(b);
	while (reads_left) {
		struct fi_cq_data_entry entry;

		while (fi_recv(a->ep, in_a, sizeof(in_a), NULL, 0, NULL) == 0)
			;
		while (fi_recv(b->ep, in_b, sizeof(in_b), NULL, 0, NULL) == 0)
			;
		reads_left -= fi_cq_read(a->rx_cq, &entry, 1) == 1 && entry.flags & FI_READ;
		reads_left -= fi_cq_read(b->rx_cq, &entry, 1) == 1 && entry.flags & FI_READ;
	}
	assert_memory_equal(from_b, memory_b, sizeof(from_b));
}

/* Failing all at once, they fit in the queue in addition to earlier completions. */
TEST(failing_reads_and_sends_fit_into_the_completion_queue, setup_exact)
{
	static uint8_t large[1 << 20];
	unsigned reads = 0, sends = 0, done = 0, receives = 0;
	struct prov_cq *cq = (struct prov_cq *)a->tx_cq;

	while (fi_recv(a->ep, local, 8, NULL, 0, NULL) == 0)
		receives++;
	while (read_one(reads) == 0)
		reads++;
	while (fi_send(a->ep, large, sends ? 1 : sizeof(large), NULL, 0, NULL) == 0)
		sends++;
	assert_int_equal(reads, 64);
	assert_int_equal(fi_shutdown(a->ep, 0), 0);
	assert_true(cq->tail - cq->head <= cq->size + receives + 64);
	assert_int_equal(cq->tail - cq->head, receives + reads + sends);
	for (; done < receives + reads + sends; done++)
		end_complete(a->tx_cq);
	assert_true(reads + sends <= 64);
}

/* With the key of b's memory. Return: the error of its completion. */
static int read_of_a(void)
{
	assert_int_equal(fi_read(a->ep, local, 8, NULL, 0, 0, KEY, CONTEXT(1)), 0);
	return end_complete(a->tx_cq).err;
}

/* Nor if that is closed: a new endpoint may have its address. Bound to its own, it is. */
TEST(a_bound_registration_is_reached_only_through_its_endpoint, setup)
{
	for (int closes = 0; closes < 2; closes++) {
		struct fid_ep *other;

		assert_fi_works(fi_endpoint(b->domain, b->info, &other, NULL));
		assert_fi_works(fi_mr_bind(mr_b, &other->fid, 0));
		if (closes)
			assert_int_equal(fi_close(&other->fid), 0);
		assert_int_equal(read_of_a(), FI_ECANCELED);
		if (!closes)
			assert_int_equal(fi_close(&other->fid), 0);
		teardown(NULL);
		setup(NULL);
	}
	assert_fi_works(fi_mr_bind(mr_b, &b->ep->fid, 0));
	assert_int_equal(fi_mr_bind(mr_b, &b->ep->fid, 0), -FI_EINVAL);
	assert_int_equal(read_of_a(), 0);
}

/* As fi_getinfo reported. */
TEST(limits_of_one_sided_access_are_enforced, setup)
{
	struct fi_rma_iov to[2] = {{.len = 8, .key = KEY}, {.addr = 8, .len = 8, .key = KEY}};
	struct iovec from[PROV_IOV_MAX + 1] = {{memory_b, 8}, {memory_b, 8}};
	struct fi_msg_rma msg = {
		.msg_iov = from, .iov_count = 2, .rma_iov = to, .rma_iov_count = 2};
	static uint8_t bytes[TCP_INJECT_MAX + 1];

	assert_int_equal(fi_writemsg(a->ep, &msg, 0), -FI_EINVAL);
	assert_int_equal(fi_readmsg(a->ep, &msg, 0), -FI_EINVAL);
	assert_int_equal(fi_writev(a->ep, from, NULL, PROV_IOV_MAX + 1, 0, 0, KEY, CONTEXT(1)),
			 -FI_EINVAL);
	assert_int_equal(fi_inject_write(a->ep, bytes, sizeof(bytes), 0, 0, KEY), -FI_EINVAL);
	assert_int_equal(fi_read(a->ep, bytes, WIRE_LENGTH_MAX + 1, NULL, 0, 0, KEY, NULL),
			 -FI_EMSGSIZE);
	assert_int_equal(fi_write(a->ep, bytes, WIRE_LENGTH_MAX + 1, NULL, 0, 0, KEY, NULL),
			 -FI_EMSGSIZE);
}

/* Closing ------------------------------------------------------------------------------------ */

/* A thread waiting for events is not woken repeatedly while it lacks a receive. */
TEST(a_disconnect_waits_for_receives_and_wakes_once, setup)
{
	union cm_event event;
	char got[8];
	uint32_t number;

	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_inject(b->ep, "last", 5, 0), 0);
	side_close_ep(b);
	for (int i = 0; i < 10; i++)
		assert_int_equal(fi_eq_read(a->eq, &number, &event, sizeof(event), 0), -FI_EAGAIN);
	assert_false(is_woken(&a->eq->fid, 0));
	for (uintptr_t i = 1; i <= 2; i++) {
		assert_int_equal(fi_recv(a->ep, got, sizeof(got), NULL, 0, CONTEXT(i)), 0);
		expect_received(a, i, 5);
	}
	assert_empty(a->rx_cq);
	cm_wait(a->eq, FI_SHUTDOWN, &event);
}

PLX_TEST_MAIN()
