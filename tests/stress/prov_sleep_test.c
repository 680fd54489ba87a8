/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends of a connection, each in a thread that sleeps on its completion queue after some empty
 * polls. So messages arrive while the other end is about to sleep, asleep, or waking. Over plx_tcp
 * they also arrive while its socket is hot, has left the epoll set, or has cooled. Half of the
 * messages are sent by the next poll, or on the way to sleep. A missed wake-up ends the test. */
#include "dice.h"
#include "prov/pair.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define LOST_MS 5000
#define BYTES   64
#define AWAKE   500000000 /* polls that take longer than any sleep */

/* From plx_shm and plx_tcp, for Pollux's links; their headers conflict. */
void *send_claim(struct fid_ep *fid, size_t length);
void send_commit(struct fid_ep *fid, size_t length);
void *tcp_send_claim(struct fid_ep *fid, size_t length);
void tcp_send_commit(struct fid_ep *fid, size_t length);

struct run {
	uint64_t looks_a, looks_b, trips;
};

struct way {
	const struct prov *prov;
	void *(*claim)(struct fid_ep *fid, size_t length);
	void (*commit)(struct fid_ep *fid, size_t length);
	uint64_t soak; /* this many times as many round trips have more than 10^6 sleeps */
	struct run runs[5];
};

static const struct way providers[] = {
	{&shm_kind,
	 send_claim,
	 send_commit,
	 5,
	 {{0, 0, 5000}, {30, 30, 5000}, {300, 300, 40000}, {AWAKE, 10, 60000}}},
	{&tcp_kind,
	 tcp_send_claim,
	 tcp_send_commit,
	 25,
	 {{0, 0, 5000},
	  {30, 30, 5000},
	  {2500, 2500, 3000},  /* the socket leaves the set */
	  {20000, 20000, 300}, /* ... and cools */
	  {AWAKE, 10, 10000}}},
};
static const struct way *current;

struct end {
	struct side *side;
	uint64_t trips, random, sleeps;
	uint64_t looks_max;
	bool descriptor; /* sleep by fi_trywait and poll(2), otherwise by fi_cq_sread */
	bool begins;
	const char *failed;
};

static cpu_set_t allowed;

/* Nothing woke it. Not a failure if the host itself paused for longer. */
static ssize_t not_woken(uint64_t begin_ns)
{
	return plx_now_ns() - begin_ns < (LOST_MS + 500) * PLX_NS_PER_MS ? -FI_ETIMEDOUT
									 : -FI_EAGAIN;
}

/* fi_trywait, then the descriptor. */
static ssize_t sleep_on_descriptor(struct end *end, struct fi_cq_data_entry *entry)
{
	struct fid *fid = &end->side->rx_cq->fid;
	struct pollfd pollfd = {.events = POLLIN};
	uint64_t begin_ns = plx_now_ns();
	int rc;

	fi_control(fid, FI_GETWAIT, &pollfd.fd);
	rc = fi_trywait(end->side->fabric, &fid, 1);
	if (rc == 0) {
		end->sleeps++;
		if (poll(&pollfd, 1, LOST_MS) == 0)
			return not_woken(begin_ns);
	} else if (rc != -FI_EAGAIN) {
		return rc;
	}
	return fi_cq_read(end->side->rx_cq, entry, 1);
}

static ssize_t sleep_in_read(struct end *end, struct fi_cq_data_entry *entry)
{
	uint64_t begin_ns = plx_now_ns();
	ssize_t got = fi_cq_sread(end->side->rx_cq, entry, 1, NULL, LOST_MS);

	end->sleeps++;
	return got == -FI_EAGAIN ? not_woken(begin_ns) : got;
}

static bool wait_for_one(struct end *end)
{
	struct fi_cq_data_entry entry;
	ssize_t got = -FI_EAGAIN;

	for (uint64_t left = end->looks_max == AWAKE
				   ? AWAKE
				   : dice_next(&end->random) % (end->looks_max + 1);
	     left > 0 && got == -FI_EAGAIN; left--)
		got = fi_cq_read(end->side->rx_cq, &entry, 1);
	while (got == -FI_EAGAIN)
		got = end->descriptor ? sleep_on_descriptor(end, &entry)
				      : sleep_in_read(end, &entry);
	if (got == 1 && entry.flags & FI_RECV)
		return true;
	end->failed = got == -FI_ETIMEDOUT ? "a message came and nobody was woken"
					   : "a read failed";
	return false;
}

static ssize_t send_with_more(struct end *end, uint8_t *bytes)
{
	struct iovec iov = {bytes, BYTES};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1};

	return fi_sendmsg(end->side->ep, &msg, FI_MORE);
}

static ssize_t send_in_place(struct end *end, const uint8_t *bytes)
{
	void *place = current->claim(end->side->ep, BYTES);

	if (!place)
		return -FI_EAGAIN;
	memcpy(place, bytes, BYTES);
	current->commit(end->side->ep, BYTES);
	return 0;
}

/* Poll long enough, now and then, for the other end to fall asleep after its longest polling. */
static void linger(struct end *end)
{
	uint64_t looks = 0;

	if (end->looks_max != AWAKE && dice_next(&end->random) % 8 == 0)
		looks = dice_next(&end->random) % (2 * end->looks_max + 1);
	while (looks--)
		fi_cq_read(end->side->rx_cq, NULL, 0);
}

static bool send_one(struct end *end, uint8_t *bytes)
{
	uint64_t way = dice_next(&end->random) >> 32 & 3;
	ssize_t rc = way == 0 ? send_with_more(end, bytes)
		   : way == 1 ? send_in_place(end, bytes)
			      : fi_inject(end->side->ep, bytes, BYTES, 0);

	if (rc)
		end->failed = "a send failed";
	return rc == 0;
}

/* Move to separate CPUs, if there are two: on one CPU neither sees the other midway. */
static void go_apart(bool second)
{
	int pass = second && CPU_COUNT(&allowed) > 1, cpu = 0;
	cpu_set_t own;

	while (!CPU_ISSET(cpu, &allowed) || pass-- > 0)
		cpu++;
	CPU_ZERO(&own);
	CPU_SET(cpu, &own);
	pthread_setaffinity_np(pthread_self(), sizeof(own), &own);
}

static void *run_end(void *arg)
{
	struct end *end = arg;
	static uint8_t in[2][BYTES];
	uint8_t *mine = in[end->begins], out[BYTES] = {0};

	go_apart(!end->begins);
	for (uint64_t i = 0; i < end->trips; i++) {
		fi_recv(end->side->ep, mine, BYTES, NULL, 0, NULL);
		if (end->begins)
			linger(end);
		if (end->begins && !send_one(end, out))
			break;
		if (!wait_for_one(end))
			break;
		if (!end->begins)
			linger(end);
		if (!end->begins && !send_one(end, out))
			break;
	}
	fi_cq_read(end->side->rx_cq, NULL, 0); /* the last poll may have been too early */
	return NULL;
}

static uint64_t trips_of(uint64_t usual)
{
	return getenv("PLX_TEST_SOAK") ? current->soak * usual : usual;
}

static void run(bool descriptor, const struct run *run)
{
	struct pair_attr attr = {.wait_obj = FI_WAIT_FD, .tx_selective = true};
	pthread_t thread;

	pair_open(&pair, &attr);

	struct end a = {.side = &pair.a, .random = 3, .begins = true},
		   b = {.side = &pair.b, .random = 5};

	a.trips = b.trips = trips_of(run->trips);
	a.looks_max = run->looks_a;
	b.looks_max = run->looks_b;
	a.descriptor = b.descriptor = descriptor;
	assert_int_equal(pthread_create(&thread, NULL, run_end, &b), 0);
	run_end(&a);
	pthread_join(thread, NULL);
	if (a.failed || b.failed)
		fail_msg("%s", a.failed ? a.failed : b.failed);
	assert_true(b.sleeps > 0);
	print_message("up to %llu and %llu looks: %llu and %llu sleeps\n",
		      (unsigned long long)run->looks_a, (unsigned long long)run->looks_b,
		      (unsigned long long)a.sleeps, (unsigned long long)b.sleeps);
	pair_close(&pair);
}

static void run_all(bool descriptor)
{
	current = tested == providers[0].prov ? &providers[0] : &providers[1];
	for (size_t i = 0; i < PLX_ARRAY_LEN(current->runs) && current->runs[i].trips; i++)
		run(descriptor, &current->runs[i]);
}

PLX_TEST(no_message_is_slept_through_on_the_descriptor)
{
	run_all(true);
}

PLX_TEST(no_message_is_slept_through_in_a_read)
{
	run_all(false);
}

int main(void)
{
	plx_clock_init();
	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return 1;
	return tested_run();
}
