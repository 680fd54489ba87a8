/* SPDX-License-Identifier: BSD-3-Clause */
/* A session with all kinds of frames over system calls that transfer in parts or fail: each byte
 * arrives correctly, and each operation completes once. */
#include "faults.h"

#include "count.h"

#define MEMORY 4096 /* registered by each side */
#define KEY    5

/* The session ---------------------------------------------------------------------------------- */

enum kind {
	SEND,
	SEND_DATA,
	SEND_PIECES,
	INJECT,
	INJECT_DATA,
	WRITE,
	WRITE_DATA,
	READ,
};

struct operation {
	enum kind kind;
	size_t length;
	size_t receive; /* bytes of its receive, in pieces, if different */
	bool pieces;    /* of its receive */
};

/* All by `a`; writes and reads target the memory of b at 0. */
static const struct operation operations[] = {
	{SEND, 5, 0, false},       {SEND_DATA, 8, 0, false},     {INJECT, 0, 0, false},
	{SEND, 1500, 0, true},     {SEND_PIECES, 1100, 0, true}, {WRITE, 40, 0, false},
	{READ, 30, 0, false},      {WRITE_DATA, 1200, 0, false}, {READ, 1100, 0, false},
	{INJECT_DATA, 3, 0, true}, {SEND, 5000, 0, true},        {SEND, 300, 100, true},
	{SEND_DATA, 0, 0, false},  {SEND, 24, 0, false},
};

#define OPERATIONS PLX_ARRAY_LEN(operations)

static uint8_t *source, *sink[OPERATIONS]; /* what is sent, and its destination */
static uint8_t memory[MEMORY], expected_memory[MEMORY];
static struct fid_mr *mr;
static unsigned done_a[OPERATIONS], done_b[OPERATIONS]; /* completions of each */
static bool posted_a[OPERATIONS], posted_b[OPERATIONS];
static unsigned ends_a, ends_b, written; /* FI_SHUTDOWN; completions of WRITE_DATA */

static bool completes(const struct operation *op)
{
	return op->kind != INJECT && op->kind != INJECT_DATA;
}

static size_t room_of(const struct operation *op)
{
	return op->receive ? op->receive : op->length;
}

/* Each operation's data starts at a different place of the pattern. */
static uint8_t *bytes_of(unsigned i)
{
	return source + i * 13;
}

static unsigned split(uint8_t *bytes, size_t length, struct iovec *iov)
{
	size_t first = length / 7, second = length / 2 - first;

	iov[0] = (struct iovec){bytes, first};
	iov[1] = (struct iovec){bytes + first, second};
	iov[2] = (struct iovec){NULL, 0};
	iov[3] = (struct iovec){bytes + first + second, length - first - second};
	return 4;
}

static void post_receives(void)
{
	struct iovec iov[4];

	for (unsigned i = 0; i < OPERATIONS; i++) {
		const struct operation *op = &operations[i];
		unsigned count = split(sink[i], room_of(op), iov);

		if (op->kind > INJECT_DATA)
			continue;
		if (op->pieces)
			assert_int_equal(fi_recvv(b->ep, iov, NULL, count, 0, CONTEXT(i)), 0);
		else
			post(b, sink[i], room_of(op), i);
		posted_b[i] = true;
	}
}

static ssize_t start(unsigned i)
{
	const struct operation *op = &operations[i];
	struct iovec iov[4];
	unsigned count = split(bytes_of(i), op->length, iov);

	switch (op->kind) {
	case SEND:
		return fi_send(a->ep, bytes_of(i), op->length, NULL, 0, CONTEXT(i));
	case SEND_DATA:
		return fi_senddata(a->ep, bytes_of(i), op->length, NULL, 100 + i, 0, CONTEXT(i));
	case SEND_PIECES:
		return fi_sendv(a->ep, iov, NULL, count, 0, CONTEXT(i));
	case INJECT:
		return fi_inject(a->ep, bytes_of(i), op->length, 0);
	case INJECT_DATA:
		return fi_injectdata(a->ep, bytes_of(i), op->length, 100 + i, 0);
	case WRITE:
		return fi_write(a->ep, bytes_of(i), op->length, NULL, 0, 2000, KEY, CONTEXT(i));
	case WRITE_DATA:
		return fi_writedata(a->ep, bytes_of(i), op->length, NULL, 100 + i, 0, 2800, KEY,
				    CONTEXT(i));
	default:
		return fi_read(a->ep, sink[i], op->length, NULL, 0, 64, KEY, CONTEXT(i));
	}
}

/* Completions ---------------------------------------------------------------------------------- */

static void check_received(const struct fi_cq_err_entry *done, unsigned i)
{
	const struct operation *op = &operations[i];
	bool has_data = op->kind == SEND_DATA || op->kind == INJECT_DATA;

	assert_int_equal(done->flags, FI_RECV | FI_MSG | (has_data ? FI_REMOTE_CQ_DATA : 0));
	assert_int_equal(done->err, op->receive ? FI_ETRUNC : 0);
	assert_int_equal(done->len, room_of(op));
	assert_int_equal(done->olen, op->receive ? op->length - op->receive : 0);
	if (has_data)
		assert_int_equal(done->data, 100 + i);
	assert_memory_equal(sink[i], bytes_of(i), room_of(op));
}

/* Of either end, if any. Failures caused by the closing connection are only counted. */
static void take_one(struct side *end)
{
	struct fi_cq_err_entry done = {0};
	struct fi_cq_data_entry entry;
	ssize_t got = fi_cq_read(end->rx_cq, &entry, 1);
	unsigned i;

	if (got == -FI_EAGAIN)
		return;
	if (got == 1)
		done = (struct fi_cq_err_entry){.op_context = entry.op_context,
						.flags = entry.flags,
						.len = entry.len,
						.data = entry.data};
	else
		assert_int_equal(fi_cq_readerr(end->rx_cq, &done, 0), 1);
	i = (unsigned)(uintptr_t)done.op_context;
	if (done.flags & FI_REMOTE_WRITE) {
		assert_in_range(done.data, 100, 100 + OPERATIONS - 1);
		written++;
		return;
	}
	assert_in_range(i, 0, OPERATIONS - 1);
	if (end == b && done.err != FI_ECANCELED)
		check_received(&done, i);
	if (end == a && !done.err && operations[i].kind == READ)
		assert_memory_equal(sink[i], memory + 64, operations[i].length);
	(end == a ? done_a : done_b)[i]++;
}

static void count_end(struct side *end, unsigned *ends)
{
	union cm_event event;
	uint32_t number;

	if (fi_eq_read(end->eq, &number, &event, sizeof(event), 0) < 0)
		return;
	assert_int_equal(number, FI_SHUTDOWN);
	++*ends;
}

static void step(void)
{
	take_one(a);
	take_one(b);
	count_end(a, &ends_a);
	count_end(b, &ends_b);
}

/* All expected completions. */
static bool is_complete(void)
{
	for (unsigned i = 0; i < OPERATIONS; i++) {
		if ((posted_a[i] && completes(&operations[i]) && !done_a[i]) ||
		    (posted_b[i] && !done_b[i]))
			return false;
	}
	return true;
}

static void check_once(void)
{
	for (unsigned i = 0; i < OPERATIONS; i++) {
		assert_int_equal(done_a[i], posted_a[i] && completes(&operations[i]));
		assert_int_equal(done_b[i], posted_b[i]);
	}
}

static void check_memory(void)
{
	for (unsigned i = 0; i < OPERATIONS; i++) {
		if (operations[i].kind == WRITE)
			memcpy(expected_memory + 2000, bytes_of(i), operations[i].length);
		if (operations[i].kind == WRITE_DATA)
			memcpy(expected_memory + 2800, bytes_of(i), operations[i].length);
	}
	assert_memory_equal(memory, expected_memory, MEMORY);
}

/* The run -------------------------------------------------------------------------------------- */

static void begin_session(void)
{
	memset(done_a, 0, sizeof(done_a));
	memset(done_b, 0, sizeof(done_b));
	memset(posted_a, 0, sizeof(posted_a));
	memset(posted_b, 0, sizeof(posted_b));
	for (unsigned i = 0; i < OPERATIONS; i++)
		memset(sink[i], 0xee, operations[i].length);
	ends_a = ends_b = written = 0;
	memset(memory + 2000, 0, MEMORY - 2000);
	post_receives();
}

/* Until all of them are in flight, or the connection ended. */
static void start_all(void)
{
	for (unsigned i = 0; i < OPERATIONS; i++) {
		ssize_t rc;

		wait_doing((rc = start(i)) != -FI_EAGAIN, step());
		if (rc == -FI_ENOTCONN)
			return;
		assert_int_equal(rc, 0);
		posted_a[i] = true;
	}
}

static void run_session(void)
{
	unsigned writes = 0;

	begin_session();
	start_all();
	for (unsigned i = 0; i < OPERATIONS; i++)
		writes += operations[i].kind == WRITE_DATA;
	wait_doing(is_complete() && written >= writes, step());
	for (int i = 0; i < 3; i++)
		step();
	check_once();
	assert_int_equal(written, writes);
	assert_int_equal(ends_a + ends_b, 0);
	check_memory();
}

static int setup(void **state)
{
	faults_begin();
	source = make_bytes(6000, 3);
	for (size_t i = 0; i < MEMORY; i++)
		memory[i] = expected_memory[i] = i < 2000 ? (uint8_t)(i * 17 + i / 100) : 0;
	pair_open(&pair, &(struct pair_attr){0});
	assert_fi_works(fi_mr_reg(b->domain, memory, MEMORY, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
				  KEY, 0, &mr, NULL));
	for (unsigned i = 0; i < OPERATIONS; i++)
		sink[i] = make_bytes(operations[i].length, 0);
	return 0;
}

static int teardown(void **state)
{
	set_fault((struct fault){0});
	assert_int_equal(fi_close(&mr->fid), 0);
	pair_close(&pair);
	for (unsigned i = 0; i < OPERATIONS; i++)
		free(sink[i]);
	free(source);
	faults_end();
	return 0;
}

/* In parts ------------------------------------------------------------------------------------- */

/* The reads and the writes of both ends. */
static void set_fault_of(unsigned side)
{
	set_fault((struct fault){.end = side & 1 ? b : a, .writes = side & 2});
}

/* Return: the bytes of a session in that direction. */
static size_t bytes_there(unsigned side)
{
	set_fault_of(side);
	run_session();
	return faulty.passed;
}

static void cut_at(unsigned side, size_t cut)
{
	set_fault_of(side);
	fault.cut = cut;
	run_session();
	assert_true(faulty.cut_done);
}

#define TEST(name) PLX_TEST_WITH(name, setup, teardown)

TEST(a_session_may_block_at_each_byte)
{
	for (unsigned side = 0; side < 4; side++) {
		size_t bytes = bytes_there(side);

		assert_true(bytes > 1000);
		for (size_t cut = 1; cut < bytes; cut += PLX_TEST_SANITIZED ? 7 : 1)
			cut_at(side, cut);
	}
}

/* Failing calls -------------------------------------------------------------------------------- */

static void set_failing_call(unsigned side, unsigned at_call, int err)
{
	set_fault_of(side);
	fault.at_call = at_call;
	fault.err = err;
}

/* A session without failures makes this many calls, so each one fails once. */
static void each_call_may_fail_with(int err)
{
	for (unsigned side = 0; side < 4; side++) {
		unsigned at_call = 0;

		do {
			set_failing_call(side, ++at_call, err);
			run_session();
		} while (faulty.fired);
		assert_true(at_call > 1);
	}
}

TEST(a_transient_error_does_not_fail_a_connection)
{
	each_call_may_fail_with(EINTR);
	each_call_may_fail_with(EAGAIN);
	each_call_may_fail_with(ENOBUFS);
	each_call_may_fail_with(ENOMEM);
}

/* The end whose call failed notices; the other one when that closes. */
static void end_session(struct side *failed)
{
	struct side *other = failed == a ? b : a;
	unsigned *ends = failed == a ? &ends_a : &ends_b;

	wait_doing(*ends, step());
	assert_int_equal(*ends, 1);
	set_fault((struct fault){0});
	side_close_ep(failed);
	wait_doing(ends_a && ends_b && is_complete(), step());
	for (int i = 0; i < 3; i++)
		step();
	check_once();
	assert_int_equal(ends_a, 1);
	assert_int_equal(ends_b, 1);
	side_close_ep(other);
}

static void each_call_may_break_the_connection_with(int err)
{
	int descriptors = count_descriptors();

	for (unsigned side = 0; side < 4; side++) {
		unsigned at_call = 0;
		bool fired;

		do {
			set_failing_call(side, ++at_call, err);
			begin_session();
			start_all();
			wait_doing(is_complete() || faulty.fired, step());
			fired = faulty.fired;
			if (fired) {
				end_session(fault.end);
				pair_connect(&pair);
			}
		} while (fired && at_call < 100);
		assert_true(at_call > 1);
	}
	assert_int_equal(count_descriptors(), descriptors);
}

TEST(a_broken_connection_completes_each_operation_once)
{
	each_call_may_break_the_connection_with(ECONNRESET);
	each_call_may_break_the_connection_with(EPIPE);
	each_call_may_break_the_connection_with(ETIMEDOUT);
}

PLX_TEST_MAIN()
