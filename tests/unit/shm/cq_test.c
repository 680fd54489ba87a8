/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting on a completion queue: it ends when it should, and no peer can prolong it. */
#include "prov/pair.h"
#include "shm.h"

#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int socket_of(const struct side *side)
{
	return ((struct shm_ep *)side->ep)->base.source.fd;
}

static void *ring_later(void *side)
{
	usleep(40000);
	send(socket_of(side), "", 1, MSG_DONTWAIT);
	return NULL;
}

/* Nothing initialized the clock of lib/base, as in a program that loads the module. */
PLX_TEST(a_read_waits_as_long_as_it_may)
{
	struct pair_attr attr = {.wait_obj = FI_WAIT_FD};
	struct fi_cq_data_entry entry;
	struct pair pair;
	pthread_t thread;
	int64_t begin_ms;

	pair_open(&pair, &attr);
	begin_ms = now_ms();
	assert_int_equal(pthread_create(&thread, NULL, ring_later, &pair.a), 0);
	assert_int_equal(fi_cq_sread(pair.b.rx_cq, &entry, 1, NULL, 100), -FI_EAGAIN);
	assert_in_range(now_ms() - begin_ms, 99, 2000);
	pthread_join(thread, NULL);
	assert_int_equal(fi_cq_sread(pair.b.rx_cq, &entry, 1, NULL, 0), -FI_EAGAIN);
	pair_close(&pair);
}

/* Bytes sent but not taken. */
static int bytes_left(int fd)
{
	char byte;
	int count = 0;

	while (recv(fd, &byte, 1, MSG_DONTWAIT) > 0)
		count++;
	return count;
}

PLX_TEST(a_peer_that_rings_on_is_answered_some_of_it)
{
	struct pair_attr attr = {.wait_obj = FI_WAIT_FD};
	struct pair pair;
	struct fid *fid;
	int rung = 0;

	pair_open(&pair, &attr);
	fid = &pair.b.rx_cq->fid;
	while (send(socket_of(&pair.a), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		rung++;
	assert_true(rung > 100);
	fi_trywait(pair.b.fabric, &fid, 1);
	assert_true(bytes_left(socket_of(&pair.b)) > rung / 2);
	pair_close(&pair);
}

/* The descriptor is readable until all of it was taken. */
PLX_TEST(what_it_rang_wakes_until_it_is_taken)
{
	struct pair_attr attr = {.wait_obj = FI_WAIT_FD};
	struct pollfd pollfd = {.events = POLLIN};
	struct pair pair;
	struct fid *fid;

	pair_open(&pair, &attr);
	fid = &pair.b.rx_cq->fid;
	assert_int_equal(fi_control(fid, FI_GETWAIT, &pollfd.fd), 0);
	assert_int_equal(fi_trywait(pair.b.fabric, &fid, 1), 0);
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(send(socket_of(&pair.a), "", 1, MSG_DONTWAIT), 1);
	assert_int_equal(poll(&pollfd, 1, 0), 1);
	for (int i = 0; i < 100 && poll(&pollfd, 1, 0); i++)
		assert_int_equal(fi_trywait(pair.b.fabric, &fid, 1), 0);
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	assert_int_equal(bytes_left(socket_of(&pair.b)), 0);
	pair_close(&pair);
}

/* However many endpoints it has room for. */
PLX_TEST(it_uses_few_lines_and_gives_room_back)
{
	struct pair_attr attr = {.cq_size = 64};
	struct pair pair;
	struct prov_cq *cq;
	char message[8] = "", got[8];

	pair_open(&pair, &attr);
	cq = (struct prov_cq *)pair.b.rx_cq;
	assert_int_equal(cq_reserve(cq, 100000), 0);
	assert_true(cq->mask >= 100000);
	for (int i = 0; i < 1000; i++) {
		struct fi_cq_data_entry entry;

		assert_int_equal(fi_recv(pair.b.ep, got, sizeof(got), NULL, 0, NULL), 0);
		assert_int_equal(fi_inject(pair.a.ep, message, sizeof(message), 0), 0);
		while (fi_cq_read(pair.b.rx_cq, &entry, 1) == -FI_EAGAIN)
			;
		assert_true(cq->tail <= 2);
	}
	cq_unreserve(cq, 100000);
	assert_true(cq->mask < 4 * (cq->size + cq->reserved));
	pair_close(&pair);
}

PLX_TEST_MAIN()
