/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting on a completion queue: it ends when it should, and no peer can prolong it. */
#include "prov/pair.h"
#include "shm.h"

#include <sys/socket.h>
#include <unistd.h>

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

#define TEST(name) PLX_TEST_WITH(name, set_up_to_wait, tear_down)

/* Nothing initialized the clock of lib/base, as in a program that loads the module. */
TEST(a_read_waits_as_long_as_it_may)
{
	struct fi_cq_data_entry entry;
	pthread_t thread;
	uint64_t begin_ns;

	begin_ns = queue_now_ns();
	assert_int_equal(pthread_create(&thread, NULL, ring_later, &pair.a), 0);
	assert_int_equal(fi_cq_sread(pair.b.rx_cq, &entry, 1, NULL, 100), -FI_EAGAIN);
	assert_in_range((queue_now_ns() - begin_ns) / PLX_NS_PER_MS, 99, 2000);
	pthread_join(thread, NULL);
	assert_int_equal(fi_cq_sread(pair.b.rx_cq, &entry, 1, NULL, 0), -FI_EAGAIN);
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

TEST(a_peer_that_rings_on_is_answered_some_of_it)
{
	int rung = 0;

	while (send(socket_of(&pair.a), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		rung++;
	assert_true(rung > 100);
	trywait(&pair.b, pair.b.rx_cq);
	assert_true(bytes_left(socket_of(&pair.b)) > rung / 2);
}

/* The descriptor is readable until all of it was taken. */
TEST(what_it_rang_wakes_until_it_is_taken)
{
	struct fid *fid = &pair.b.rx_cq->fid;

	assert_int_equal(trywait(&pair.b, pair.b.rx_cq), 0);
	assert_false(is_woken(fid, 0));
	for (int i = 0; i < 100; i++)
		assert_int_equal(send(socket_of(&pair.a), "", 1, MSG_DONTWAIT), 1);
	assert_true(is_woken(fid, 0));
	for (int i = 0; i < 100 && is_woken(fid, 0); i++)
		assert_int_equal(trywait(&pair.b, pair.b.rx_cq), 0);
	assert_false(is_woken(fid, 0));
	assert_int_equal(bytes_left(socket_of(&pair.b)), 0);
}

/* However many endpoints it has room for. */
PLX_TEST_WITH(it_uses_few_lines_and_gives_room_back, NULL, tear_down)
{
	struct prov_cq *cq;
	char message[8] = "", got[8];

	open_with((struct pair_attr){.cq_size = 64});
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
}

PLX_TEST_MAIN()
