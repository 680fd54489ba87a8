/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection to a malicious peer next to one to a good peer, on one completion queue. Whatever
 * the first does, the second loses nothing and never stalls, and every operation posted to the
 * first completes. */
#include "shm_scribbler.h"

#include "count.h"
#include "dice.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define LINES        8 /* connections to the scribbler that are still open */
#define POSTED       16
#define BAD_BYTES    3000
#define GOOD_BYTES   65536
#define GROWTH_BYTES (32 << 20)
#define LARGE        (200 << 10)
#define ENDLESS      (SIZE_MAX >> 30) /* 16 GiB: takes seconds to copy */

struct line;
struct operation {
	struct line *line;
	uint8_t in[BAD_BYTES];
};

/* A connection to the scribbler. */
struct line {
	struct fid_ep *ep;     /* NULL: none */
	bool is_open;          /* FI_CONNECTED was reported */
	uint64_t posted, back; /* operations */
	uint64_t turns;
	struct operation receives[POSTED], send;
};

/* The good connection is `pair`: b is also the scribbler's victim. */
static struct {
	struct line lines[LINES];
	uint64_t ended, messages, failures;
	_Atomic uint64_t *resized; /* see scribble_for_ever */
	int descriptors, mappings; /* counts without connections to the scribbler */
	size_t memory_bytes;
	uint8_t *large; /* the largest message sent to the scribbler */
	size_t large_bytes;
} test;

/* Messages that go back and forth, one at a time. */
static struct {
	bool waits, is_sent; /* for the answer; the message was sent */
	uint64_t trips, sent_ns, longest_ns, random;
	size_t bytes;
	uint8_t out[GOOD_BYTES], in[GOOD_BYTES], there[GOOD_BYTES];
} good;

/* The good peer ------------------------------------------------------------------------------ */

/* Send everything back. */
static void answer(void)
{
	struct fi_cq_data_entry entry;

	if (fi_cq_read(pair.a.rx_cq, &entry, 1) == 1 && entry.flags & FI_RECV)
		assert_int_equal(fi_send(pair.a.ep, good.there, entry.len, NULL, 0, NULL), 0);
}

static void send_good(void)
{
	uint64_t word = dice_next(&good.random);
	ssize_t rc;

	good.bytes = 8 + (dice_next(&good.random) % 8 ? dice_next(&good.random) % 200
						      : dice_next(&good.random) % 60000);
	for (size_t i = 0; i < good.bytes; i += sizeof(word), word = word * 5 + 1)
		memcpy(good.out + i, &word, sizeof(word));
	memset(good.in, 0, good.bytes);
	post(&pair.a, good.there, GOOD_BYTES, 0);
	post(&pair.b, good.in, GOOD_BYTES, (uintptr_t)&good);
	good.sent_ns = plx_now_ns();
	good.waits = true;
	good.is_sent = false;
	do {
		rc = fi_send(pair.b.ep, good.out, good.bytes, NULL, 0, &good);
	} while (rc == -FI_EAGAIN);
	assert_int_equal(rc, 0);
}

static void take_good(const struct fi_cq_data_entry *entry)
{
	uint64_t took_ns = plx_now_ns() - good.sent_ns;

	if (entry->flags & FI_SEND) {
		good.is_sent = true;
		return;
	}
	assert_int_equal(entry->len, good.bytes);
	assert_memory_equal(good.in, good.out, good.bytes);
	good.longest_ns = took_ns > good.longest_ns ? took_ns : good.longest_ns;
	good.trips++;
	good.waits = false;
}

static void go_on_with_good(void)
{
	if (!good.waits && good.is_sent)
		send_good();
	else
		assert_true(plx_now_ns() - good.sent_ns < PLX_NS_PER_S);
}

/* The scribbler's connections ------------------------------------------------------------------ */

static void post_one(struct line *line, struct operation *operation)
{
	line->posted += fi_recv(line->ep, operation->in, BAD_BYTES, NULL, 0, operation) == 0;
}

static void take_bad(const struct fi_cq_data_entry *entry)
{
	struct operation *operation = entry->op_context;
	struct line *line = operation->line;

	line->back++;
	if (operation == &line->send)
		return;
	test.messages++;
	assert_true(entry->len <= BAD_BYTES);
	post_one(line, operation);
}

static void take_failure(void)
{
	struct fi_cq_err_entry error = {0};
	struct operation *operation;

	assert_int_equal(fi_cq_readerr(pair.b.rx_cq, &error, 0), 1);
	assert_ptr_not_equal(error.op_context, &good);
	assert_true(error.err == FI_ECANCELED || error.err == FI_ETRUNC);
	operation = error.op_context;
	operation->line->back++;
	test.failures++;
	if (error.err == FI_ETRUNC && operation->line->ep)
		post_one(operation->line, operation);
}

static void read_queue(void)
{
	struct fi_cq_data_entry entries[16];
	ssize_t got = fi_cq_read(pair.b.rx_cq, entries, PLX_ARRAY_LEN(entries));

	for (ssize_t i = 0; i < got; i++) {
		if (entries[i].op_context == &good)
			take_good(&entries[i]);
		else
			take_bad(&entries[i]);
	}
	if (got == -FI_EAVAIL)
		take_failure();
	else
		assert_true(got > 0 || got == -FI_EAGAIN);
}

/* Send something now and then: small, large, or awaiting an answer. */
static void send_bad(struct line *line)
{
	uint8_t *bytes = test.large;
	struct iovec iov = {bytes, 100};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = &line->send};

	shm_params.copy_max = dice_next(&good.random) % 2
				    ? 0
				    : UINT64_MAX; /* read by the peer, or in parts */
	fi_inject(line->ep, bytes, dice_next(&good.random) % 4000, 0);
	if (line->turns % 64 == 0)
		line->posted += fi_send(line->ep, bytes, test.large_bytes, NULL, 0, &line->send) ==
				0;
	else if (line->turns % 32 == 0)
		line->posted += fi_sendmsg(line->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE) ==
				0;
}

/* Read everything that has arrived. */
static void drain(void)
{
	const struct prov_cq *cq = (struct prov_cq *)pair.b.rx_cq;
	uint32_t end = cq->tail;

	while ((int32_t)(end - cq->head) > 0)
		read_queue();
}

static void close_line(struct line *line)
{
	assert_int_equal(fi_close(&line->ep->fid), 0);
	line->ep = NULL;
	drain();
	assert_int_equal(line->back, line->posted);
	test.ended++;
}

/* When it is reported, everything is in the queue. */
static void line_ended(struct line *line)
{
	drain();
	assert_int_equal(line->back, line->posted);
	close_line(line);
}

static struct fid_ep *make_ep(struct fi_info *info, void *context)
{
	struct fid_ep *ep;

	assert_int_equal(fi_endpoint(pair.b.domain, info, &ep, context), 0);
	assert_int_equal(fi_ep_bind(ep, &pair.b.eq->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &pair.b.rx_cq->fid, FI_SEND | FI_RECV), 0);
	assert_int_equal(fi_enable(ep), 0);
	return ep;
}

static struct line *free_line(void)
{
	for (struct line *line = test.lines; line < test.lines + LINES; line++) {
		if (!line->ep)
			return line;
	}
	return NULL;
}

static void turn(void);

/* It connects faster than a slow host handles what it leaves, so wait as long as the last ones take
 * to end. */
static struct line *wait_for_line(void)
{
	uint64_t end_ns = plx_now_ns() + PLX_NS_PER_S;
	struct line *line = free_line();

	for (; !line && plx_now_ns() < end_ns; line = free_line()) {
		turn();
		go_on_with_good();
	}
	if (!line)
		fail_msg("the connections to the scribbler do not end");
	return line;
}

static void accept_line(struct fi_info *info)
{
	struct line *line = wait_for_line();

	*line = (struct line){.send.line = line};
	line->ep = make_ep(info, line);
	for (int i = 0; i < POSTED; i++) {
		line->receives[i].line = line;
		post_one(line, &line->receives[i]);
	}
	if (fi_accept(line->ep, NULL, 0))
		close_line(line);
}

/* Connection events -------------------------------------------------------------------------- */

static void read_events(void)
{
	uint8_t buf[sizeof(struct fi_eq_cm_entry) + 256];
	struct fi_eq_cm_entry *entry = (struct fi_eq_cm_entry *)buf;
	struct line *line;
	uint32_t event;
	ssize_t got = fi_eq_read(pair.b.eq, &event, buf, sizeof(buf), 0);

	if (got == -FI_EAGAIN)
		return;
	assert_true(got > 0);
	if (event == FI_CONNREQ) {
		accept_line(entry->info);
		fi_freeinfo(entry->info);
		return;
	}
	line = entry->fid->context;
	assert_ptr_not_equal(line, &pair.b); /* the good one stays connected */
	if (event == FI_CONNECTED)
		line->is_open = true;
	else if (event == FI_SHUTDOWN)
		line_ended(line);
}

static void sleep_a_little(void)
{
	struct fid *fids[] = {&pair.b.rx_cq->fid, &pair.b.eq->fid};
	struct pollfd pollfds[2] = {{.events = POLLIN}, {.events = POLLIN}};

	fi_control(fids[0], FI_GETWAIT, &pollfds[0].fd);
	fi_control(fids[1], FI_GETWAIT, &pollfds[1].fd);
	if (fi_trywait(pair.b.fabric, fids, 2) == 0)
		poll(pollfds, 2, 1);
}

static void turn(void)
{
	static uint64_t turns;

	if (++turns % 50 == 0)
		sleep_a_little();
	answer();
	read_queue();
	read_events();
	for (int i = 0; i < LINES; i++) {
		if (test.lines[i].is_open && test.lines[i].ep && ++test.lines[i].turns % 8 == 0)
			send_bad(&test.lines[i]);
	}
}

/* Running it ----------------------------------------------------------------------------------- */

/* Zero pages, which take no memory. */
static void make_large(size_t bytes)
{
	test.large_bytes = bytes;
	test.large = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			  0);
	assert_ptr_not_equal(test.large, MAP_FAILED);
}

static int setup(void **state)
{
	static char port[8];
	struct sockaddr_storage name;

	open_with((struct pair_attr){.wait_obj = FI_WAIT_FD});
	name = name_of(&pair.pep->fid);
	sprintf(port, "%u", address_port((struct sockaddr *)&name));
	*state = port;
	memset(&test, 0, sizeof(test));
	memset(&good, 0, sizeof(good));
	good.random = 7;
	test.resized = mmap(NULL, sizeof(*test.resized), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(test.resized, MAP_FAILED);
	make_large(LARGE);
	test.descriptors = count_descriptors();
	test.mappings = count_mappings();
	send_good();
	return 0;
}

/* Including connections still being made. */
static bool all_ended(void)
{
	if (count_descriptors() > test.descriptors)
		return false;
	for (int i = 0; i < LINES; i++) {
		if (test.lines[i].ep)
			return false;
	}
	return true;
}

static void run(const char *port, scribble_fn fn, uint64_t ns)
{
	uint64_t end_ns = plx_now_ns() + ns;
	pid_t scribbler = fork();

	assert_true(scribbler >= 0);
	if (scribbler == 0)
		scribble_for_ever(port, fn, test.resized);
	while (plx_now_ns() < end_ns) {
		turn();
		go_on_with_good();
		if (test.ended == 20 && !test.memory_bytes)
			test.memory_bytes = count_memory().resident_bytes;
	}
	assert_int_equal(waitpid(scribbler, NULL, WNOHANG), 0); /* it did not crash itself */
	assert_int_equal(kill(scribbler, SIGKILL), 0);
	assert_int_equal(waitpid(scribbler, NULL, 0), scribbler);
	for (end_ns = plx_now_ns() + PLX_NS_PER_S; !all_ended() && plx_now_ns() < end_ns;) {
		turn();
		go_on_with_good();
	}
	assert_true(all_ended());
	print_message("%llu connections, %llu messages of theirs, %llu failures; %llu good round "
		      "trips, the longest %.1f ms\n",
		      (unsigned long long)test.ended, (unsigned long long)test.messages,
		      (unsigned long long)test.failures, (unsigned long long)good.trips,
		      (double)good.longest_ns / 1e6);
	assert_true(good.longest_ns < PLX_NS_PER_S);
	assert_int_equal(*test.resized, 0);
	assert_int_equal(count_descriptors(), test.descriptors);
	assert_int_equal(count_mappings(), test.mappings);
}

static int teardown(void **state)
{
	pair_close(&pair);
	munmap(test.large, test.large_bytes);
	munmap(test.resized, sizeof(*test.resized));
	return 0;
}

#define TEST(name) PLX_TEST_WITH(name, setup, teardown)

TEST(whatever_a_peer_writes_hurts_itself_alone)
{
	run(*state, scribble_at_random,
	    getenv("PLX_TEST_SOAK") ? 120 * PLX_NS_PER_S : 2 * PLX_NS_PER_S);
	assert_true(good.trips > 100);
	assert_true(test.ended > 20 && test.messages > 1000);
	assert_true(PLX_TEST_SANITIZED || /* sanitizers keep freed memory */
		    count_memory().resident_bytes < test.memory_bytes + GROWTH_BYTES);
}

TEST(a_message_without_end_ends_with_its_sender)
{
	run(*state, scribble_without_end, PLX_NS_PER_S / 2);
	assert_true(test.ended > 5);
}

TEST(messages_without_end_end_with_their_sender)
{
	run(*state, scribble_round_and_round, PLX_NS_PER_S / 2);
	assert_true(test.ended > 5);
}

TEST(who_rings_all_the_time_keeps_nobody_awake_for_long)
{
	run(*state, scribble_on_the_socket, PLX_NS_PER_S);
}

TEST(a_head_that_runs_with_the_tail_stops_nobody)
{
	munmap(test.large, test.large_bytes);
	make_large(ENDLESS);
	run(*state, scribble_on_the_head, PLX_NS_PER_S);
}

int main(void)
{
	plx_clock_init();
	return plx_test_run("tests", NULL, NULL);
}
