/* SPDX-License-Identifier: BSD-3-Clause */
/* The event queue: writing, reading, and waking waiting threads. */
#include "count.h"
#include "pair.h"

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_eq *eq;
static struct prov_eq *inner;
static struct fid source = {.fclass = FI_CLASS_EP, .context = &source};
static struct fid other = {.fclass = FI_CLASS_EP, .context = &other};
static struct prov_event events[8]; /* memory of endpoints */
static unsigned used;
static int descriptors;

static union {
	struct fi_eq_cm_entry cm;
	struct fi_eq_entry entry;
	uint8_t room[sizeof(struct fi_eq_cm_entry) + PROV_CM_DATA_MAX];
} buf;
static uint32_t event;

static void open_eq(enum fi_wait_obj wait_obj, uint64_t flags)
{
	struct fi_eq_attr attr = {.wait_obj = wait_obj, .flags = flags};

	assert_int_equal(fi_eq_open(fabric, &attr, &eq, &eq), 0);
	inner = (struct prov_eq *)eq;
}

static int setup(void **state)
{
	assert_int_equal(prov_getinfo(tested, FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info), 0);
	assert_int_equal(prov_fabric_open(tested, info->fabric_attr, &fabric, NULL), 0);
	descriptors = count_descriptors();
	eq = NULL;
	used = 0;
	memset(&buf, 0, sizeof(buf));
	event = UINT32_MAX;
	return 0;
}

static int teardown(void **state)
{
	if (eq)
		assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(count_descriptors(), descriptors);
	assert_int_equal(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
	return 0;
}

static ssize_t read_event(size_t size, uint64_t flags)
{
	return fi_eq_read(eq, &event, &buf, size, flags);
}

/* Read an event without data. */
static void expect_event(uint32_t number, fid_t fid)
{
	assert_int_equal(read_event(sizeof(buf), 0), sizeof(buf.cm));
	assert_int_equal(event, number);
	assert_ptr_equal(buf.cm.fid, fid);
}

static void expect_none(void)
{
	assert_int_equal(read_event(sizeof(buf), 0), -FI_EAGAIN);
}

static struct prov_event *next_event(uint32_t number, bool is_error)
{
	assert_true(used < PLX_ARRAY_LEN(events));
	events[used] = (struct prov_event){.event = number, .is_error = is_error, .is_lent = true};
	return &events[used++];
}

static void push_data(uint32_t number, fid_t fid, const void *data, uint32_t length)
{
	eq_push(inner, next_event(number, false), fid, data, length);
}

static void push(uint32_t number, fid_t fid)
{
	push_data(number, fid, NULL, 0);
}

static void push_error(fid_t fid, int err, const void *data, uint32_t length)
{
	eq_push(inner, next_event((uint32_t)err, true), fid, data, length);
}

static bool is_readable(void)
{
	return is_woken(&eq->fid, 0);
}

static int arm(void)
{
	struct fid *fids[] = {&eq->fid};

	return fi_trywait(fabric, fids, 1);
}

#define TEST(name) PLX_TEST_WITH(name, setup, teardown)

/* Reading ------------------------------------------------------------------------------------- */

TEST(events_arrive_in_order_with_their_data)
{
	open_eq(FI_WAIT_NONE, 0);
	push_data(FI_CONNECTED, &source, "abc", 3);
	push(FI_SHUTDOWN, &other);
	assert_int_equal(read_event(sizeof(buf), 0), sizeof(buf.cm) + 3);
	assert_int_equal(event, FI_CONNECTED);
	assert_ptr_equal(buf.cm.fid, &source);
	assert_null(buf.cm.info);
	assert_memory_equal(buf.cm.data, "abc", 3);
	expect_event(FI_SHUTDOWN, &other);
	expect_none();
}

TEST(data_is_cut_to_the_buffer)
{
	uint8_t data[PROV_CM_DATA_MAX];

	memset(data, 'd', sizeof(data));
	open_eq(FI_WAIT_NONE, 0);
	push_data(FI_CONNECTED, &source, data, sizeof(data));
	for (size_t size = sizeof(buf.cm); size <= sizeof(buf.cm) + sizeof(data); size++) {
		memset(&buf, 0, sizeof(buf));
		assert_int_equal(read_event(size, FI_PEEK), size);
		assert_memory_equal(buf.cm.data, data, size - sizeof(buf.cm));
		if (size < sizeof(buf))
			assert_int_equal(buf.room[size], 0);
	}
	assert_int_equal(read_event(sizeof(buf.cm) + 1, 0), sizeof(buf.cm) + 1);
	expect_none();
}

TEST(forgotten_events_are_not_delivered)
{
	open_eq(FI_WAIT_FD, 0);
	push(FI_CONNECTED, &source);
	push(FI_CONNECTED, &other);
	push_error(&source, FI_ECONNREFUSED, NULL, 0);
	push(FI_SHUTDOWN, &source);
	eq_forget(inner, &source);
	expect_event(FI_CONNECTED, &other);
	expect_none();
	push(FI_SHUTDOWN, &source);
	eq_forget(inner, &source);
	assert_false(is_readable());
	push(FI_SHUTDOWN, &other); /* the end of the queue is still right */
	assert_int_equal(read_event(sizeof(buf), 0), sizeof(buf.cm));
}

TEST(unread_events_are_freed_with_the_queue)
{
	open_eq(FI_WAIT_FD, 0);
	push(FI_SHUTDOWN, &source);
	assert_int_equal(eq_push_request(inner, &other, fi_dupinfo(info), NULL, 0), 0);
	push_error(&source, FI_EIO, NULL, 0);
}

/* Errors -------------------------------------------------------------------------------------- */

TEST(an_error_is_read_separately_and_in_order)
{
	struct fi_eq_err_entry error = {0};
	char text[4];

	open_eq(FI_WAIT_FD, 0);
	push(FI_CONNECTED, &other);
	push_error(&source, FI_ECONNREFUSED, "no", 2);
	assert_int_equal(fi_eq_readerr(eq, &error, 0), -FI_EAGAIN);
	assert_int_equal(read_event(sizeof(buf), 0), sizeof(buf.cm));
	assert_int_equal(read_event(sizeof(buf), 0), -FI_EAVAIL);
	assert_int_equal(read_event(sizeof(buf), 0), -FI_EAVAIL);
	assert_true(is_readable());
	assert_int_equal(fi_eq_readerr(eq, &error, 0), sizeof(error));
	assert_ptr_equal(error.fid, &source);
	assert_ptr_equal(error.context, &source);
	assert_int_equal(error.err, FI_ECONNREFUSED);
	assert_int_equal(error.err_data_size, 2);
	assert_memory_equal(error.err_data, "no", 2);
	assert_false(is_readable());
	expect_none();
	fi_eq_strerror(eq, error.err, NULL, text, sizeof(text));
	assert_string_equal(text, "Con");
	push_error(&source, FI_ECONNREFUSED, "never", 5);
	error = (struct fi_eq_err_entry){.err_data = text, .err_data_size = 4};
	assert_int_equal(fi_eq_readerr(eq, &error, 0), sizeof(error));
	assert_int_equal(error.err_data_size, 4);
	assert_memory_equal(text, "neve", 4); /* cut to the caller's buffer */
	push_error(&source, FI_ECONNREFUSED, "no", 2);
	assert_int_equal(fi_eq_readerr(eq, &error, 0), sizeof(error));
	assert_int_equal(error.err_data_size, 2);
}

/* Writing ------------------------------------------------------------------------------------- */

TEST(a_written_event_is_read_as_it_was)
{
	struct fi_eq_entry entry = {.fid = &source, .context = &other, .data = 77};

	open_eq(FI_WAIT_FD, FI_WRITE);
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
	assert_true(is_readable());
	eq_forget(inner, &eq->fid); /* it belongs to no endpoint */
	assert_int_equal(read_event(sizeof(entry) - 1, 0), -FI_ETOOSMALL);
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &buf, PROV_CM_DATA_MAX + 1, 0), -FI_EINVAL);
	assert_int_equal(read_event(sizeof(buf), 0), sizeof(entry));
	assert_int_equal(event, FI_NOTIFY);
	assert_memory_equal(&buf.entry, &entry, sizeof(entry));
	assert_false(is_readable());
}

/* Waiting ------------------------------------------------------------------------------------- */

TEST(a_queued_event_wakes_until_all_are_read)
{
	enum fi_wait_obj wait_obj = FI_WAIT_NONE;

	open_eq(FI_WAIT_FD, 0);
	assert_int_equal(fi_control(&eq->fid, FI_GETWAITOBJ, &wait_obj), 0);
	assert_int_equal(wait_obj, FI_WAIT_FD);
	assert_int_equal(arm(), 0);
	assert_false(is_readable());
	push(FI_CONNECTED, &source);
	push(FI_SHUTDOWN, &source);
	assert_int_equal(arm(), -FI_EAGAIN);
	assert_true(is_readable());
	assert_int_equal(eq_progress(inner), 0); /* for a completion queue: consumes no wake-up */
	read_event(sizeof(buf), 0);
	assert_true(is_readable());
	read_event(sizeof(buf), 0);
	assert_false(is_readable());
	assert_int_equal(arm(), 0);
}

TEST(a_queue_without_a_wait_object_cannot_block)
{
	int fd;

	open_eq(FI_WAIT_NONE, 0);
	push(FI_SHUTDOWN, &source);
	assert_int_equal(fi_eq_sread(eq, &event, &buf, sizeof(buf), 0, 0), -FI_EINVAL);
	assert_int_equal(fi_control(&eq->fid, FI_GETWAIT, &fd), -FI_ENODATA);
	assert_int_equal(arm(), -FI_EINVAL);
	assert_int_equal(read_event(sizeof(buf), 0), sizeof(buf.cm));
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &buf, sizeof(buf.entry), 0), -FI_EINVAL);
}

/* Opening ------------------------------------------------------------------------------------- */

TEST(unsupported_wait_objects_are_refused)
{
	static const enum fi_wait_obj none[] = {FI_WAIT_SET, FI_WAIT_MUTEX_COND, FI_WAIT_YIELD,
						FI_WAIT_POLLFD};
	struct fi_eq_attr attr = {0};

	for (size_t i = 0; i < PLX_ARRAY_LEN(none); i++) {
		attr.wait_obj = none[i];
		assert_int_equal(fi_eq_open(fabric, &attr, &eq, NULL), -FI_ENOSYS);
	}
	attr = (struct fi_eq_attr){.flags = FI_SEND};
	assert_int_equal(fi_eq_open(fabric, &attr, &eq, NULL), -FI_EBADFLAGS);
	assert_null(eq);
	open_eq(FI_WAIT_FD, FI_WRITE | FI_AFFINITY);
}

#define DEADLINES 40
#define READ_MAX  16 /* of them per read */

static struct prov_deadline deadlines[DEADLINES];
static unsigned passed_count;

static void pass(struct prov_deadline *deadline)
{
	assert_ptr_equal(deadline, &deadlines[passed_count % DEADLINES]);
	passed_count++;
}

TEST(deadlines_that_expire_together_pass_in_several_reads)
{
	unsigned reads = 0;

	open_eq(FI_WAIT_FD, 0);
	passed_count = 0;
	for (unsigned i = 0; i < DEADLINES; i++) {
		deadlines[i] = (struct prov_deadline){.passed = pass};
		assert_int_equal(eq_set_deadline(inner, &deadlines[i], i + 1), 0);
	}
	for (unsigned before = 0; before < DEADLINES; before = passed_count, reads++) {
		expect_none();
		assert_in_range(passed_count - before, 1, READ_MAX);
	}
	assert_in_range(reads, DEADLINES / READ_MAX + 1, DEADLINES);
	/* The timer serves later ones. */
	assert_int_equal(eq_set_deadline(inner, &deadlines[0], 1), 0);
	expect_none();
	assert_int_equal(passed_count, DEADLINES + 1);
}

TESTED_MAIN()
