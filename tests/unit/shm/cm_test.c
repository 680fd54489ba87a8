/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: what is specific to plx_shm. */
#include "shm_meet.h"

#define TEST(name) PLX_TEST_WITH(name, setup_shm, teardown)

/* No listener --------------------------------------------------------------------------------- */

TEST(who_is_not_there_refuses_at_once)
{
	struct fid_ep *ep = party_ep(&client, client.info);
	struct fid_pep *later = party_pep(&server);
	struct sockaddr_storage wanted = address;

	address_set_port((struct sockaddr *)&wanted, 0);
	assert_int_equal(fi_setname(&later->fid, &wanted, sizeof(wanted)), 0);
	wanted = cm_name(&later->fid);
	assert_int_equal(fi_connect(ep, &wanted, NULL, 0), -FI_ECONNREFUSED);
	assert_int_equal(fi_listen(later), 0);
	assert_int_equal(fi_connect(ep, &wanted, NULL, 0), 0);
	cm_wait(server.eq, FI_CONNREQ, &event);
	two = party_ep(&server, event.cm.info);
	fi_freeinfo(event.cm.info);
	assert_int_equal(fi_accept(two, NULL, 0), 0);
	cm_wait(client.eq, FI_CONNECTED, &event);
	close_ep(ep);
	close_two();
	assert_int_equal(fi_close(&later->fid), 0);
}

TEST(a_connector_that_gave_up_cannot_be_accepted)
{
	struct fi_info *info;

	one = dial(NULL, 0);
	info = next_request();
	close_one();
	two = party_ep(&server, info);
	fi_freeinfo(info);
	assert_int_equal(fi_accept(two, NULL, 0), -FI_ECONNABORTED);
	close_two();
	cm_expect_nothing(server.eq);
}

/* Reading the peer's memory ------------------------------------------------------------------- */

static uint32_t can_read(struct fid_ep *ep)
{
	return atomic_load(&((struct shm_ep *)ep)->reader.segment.control->can_read);
}

TEST(each_side_finds_whether_it_can_read_the_other)
{
	skip_if_emulated();
	for (unsigned may = 0; may < 2; may++) {
		shm_params.cma = may;
		meet();
		assert_int_equal(can_read(one), may);
		assert_int_equal(can_read(two), may);
		part();
	}
}

static void as_another_process(struct shm_peer *peer)
{
	peer->probe_value ^= 1;
}

static void as_a_member_of_the_group(struct shm_peer *peer)
{
	peer->same_user = false;
}

static void expect_not_read(void (*change)(struct shm_peer *peer))
{
	struct fi_info *info;

	one = dial(NULL, 0);
	info = next_request();
	change(&((struct shm_request *)info->handle)->offer.peer);
	two = party_ep(&server, info);
	fi_freeinfo(info);
	assert_int_equal(fi_accept(two, NULL, 0), 0);
	assert_int_equal(can_read(two), 0);
}

TEST(a_peer_that_cannot_be_read_is_found_out)
{
	expect_not_read(as_another_process);
}

TEST(the_memory_of_another_user_is_not_read)
{
	expect_not_read(as_a_member_of_the_group);
}

PLX_TEST_MAIN()
