/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections and names of endpoints: what is specific to plx_shm. */
#include "foreign_socket.h"
#include "shm_meet.h"

static void assert_same(const void *name, const void *expected)
{
	assert_memory_equal(name, expected, address_bytes(expected));
}

#define TEST(name) PLX_TEST_WITH(name, setup_shm, teardown)

/* No listener --------------------------------------------------------------------------------- */

TEST(a_missing_listener_refuses_at_once)
{
	struct fid_ep *ep = side_ep(&client, client.info);
	struct fid_pep *later = side_pep(&server);
	struct sockaddr_storage wanted = address;

	address_set_port((struct sockaddr *)&wanted, 0);
	assert_int_equal(fi_setname(&later->fid, &wanted, sizeof(wanted)), 0);
	wanted = name_of(&later->fid);
	assert_int_equal(fi_connect(ep, &wanted, NULL, 0), -FI_ECONNREFUSED);
	assert_int_equal(fi_listen(later), 0);
	assert_int_equal(fi_connect(ep, &wanted, NULL, 0), 0); /* it may try again */
	close_ep(ep);
	assert_int_equal(fi_close(&later->fid), 0);
}

TEST(a_connector_that_closed_cannot_be_accepted)
{
	one = dial(NULL, 0);
	next_request();
	close_one();
	two = request_ep();
	assert_int_equal(fi_accept(two, NULL, 0), -FI_ECONNABORTED);
	close_two();
	cm_expect_nothing(server.eq);
}

/* Reading the peer's memory ------------------------------------------------------------------- */

static uint32_t can_read(struct fid_ep *ep)
{
	return atomic_load(&((struct shm_ep *)ep)->reader.segment.control->can_read);
}

TEST(each_side_probes_whether_it_can_read_the_other)
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

TEST(memory_of_another_user_or_process_is_not_read)
{
	for (int is_user = 0; is_user < 2; is_user++) {
		struct shm_peer *peer;

		one = dial(NULL, 0);
		peer = &((struct shm_request *)next_request()->handle)->offer.peer;
		if (is_user)
			peer->same_user = false;
		else
			peer->probe_value ^= 1;
		two = request_ep();
		assert_int_equal(fi_accept(two, NULL, 0), 0);
		assert_int_equal(can_read(two), 0);
		cm_wait(client.eq, FI_CONNECTED, &event);
		cm_wait(server.eq, FI_CONNECTED, &event);
		part();
	}
}

/* Names: which belong to whom, which connect, and which are invalid ---------------------------- */

TEST(a_request_and_both_sides_have_the_addresses)
{
	struct sockaddr_storage name = {0}, local;
	size_t bytes = sizeof(name);
	struct fi_info *info;

	one = side_ep(&client, client.info);
	local = address;
	address_set_port((struct sockaddr *)&local, 4321);
	assert_int_equal(fi_setname(&one->fid, &local, sizeof(local)), 0);
	assert_int_equal(fi_connect(one, &address, NULL, 0), 0);
	info = next_request();
	assert_same(info->src_addr, &address);
	assert_same(info->dest_addr, &local);
	two = request_ep();
	assert_int_equal(fi_accept(two, NULL, 0), 0);
	cm_wait(client.eq, FI_CONNECTED, &event);
	assert_int_equal(fi_getpeer(one, &name, &bytes), 0);
	assert_same(&name, &address);
	assert_int_equal(fi_getpeer(two, &name, &bytes), 0);
	assert_same(&name, &local);
	local = name_of(&two->fid);
	assert_same(&local, &address);
	bytes = 4;
	assert_int_equal(fi_getname(&pep->fid, &name, &bytes), -FI_ETOOSMALL);
	assert_int_equal(bytes, sizeof(struct sockaddr_in));
}

TEST(an_address_cannot_be_used_twice)
{
	struct fid_pep *second = side_pep(&server);

	assert_int_equal(fi_setname(&second->fid, &address, sizeof(address)), -FI_EADDRINUSE);
	close_pep();
	assert_int_equal(fi_setname(&second->fid, &address, sizeof(address)), 0);
	assert_int_equal(fi_setname(&second->fid, &address, sizeof(address)), 0);
	address_set_port((struct sockaddr *)&address, 0); /* and another one instead */
	assert_int_equal(fi_setname(&second->fid, &address, sizeof(address)), 0);
	assert_int_equal(fi_close(&second->fid), 0);
}

/* Its own listener has a substitute of the name, also after the other user has left. */
TEST(an_address_whose_name_another_user_took_cannot_be_used_twice)
{
	struct fid_pep *second = side_pep(&server);
	struct sockaddr_un name;
	struct foreign other;

	close_pep();
	if (geteuid() == 0) {
		other = foreign_bind(&name, cm_socket_name(&name), SOCK_SEQPACKET, true);
		pep = side_pep(&server);
		assert_int_equal(fi_setname(&pep->fid, &address, sizeof(address)), 0);
		assert_int_equal(fi_listen(pep), 0);
		foreign_end(&other);
		assert_int_equal(fi_setname(&second->fid, &address, sizeof(address)),
				 -FI_EADDRINUSE);
	}
	assert_int_equal(fi_close(&second->fid), 0);
}

TEST(an_invalid_name_is_refused)
{
	struct sockaddr_in far = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x08080808)};
	struct sockaddr_un path = {.sun_family = AF_UNIX};
	struct fid_pep *second = side_pep(&server);

	assert_int_equal(fi_setname(&second->fid, &path, sizeof(path)), -FI_EINVAL);
	assert_int_equal(fi_setname(&second->fid, &address, 4), -FI_EINVAL);
	assert_int_equal(fi_setname(&second->fid, &far, sizeof(far)), -FI_EADDRNOTAVAIL);
	far.sin_port = htons(7000);
	assert_int_equal(fi_setname(&second->fid, &far, sizeof(far)), -FI_EADDRNOTAVAIL);
	assert_int_equal(fi_close(&second->fid), 0);
	assert_int_equal(fi_setname(&pep->fid, &address, sizeof(address)), -FI_EOPBADSTATE);
}

/* A listener at one address and a connector at another must connect. */
static void meet_at(const char *listener, const char *connector)
{
	uint16_t port;

	close_all();
	listen_at(listener);
	port = address_port((struct sockaddr *)&address);
	fi_freeinfo(client.info);
	client.info = side_info(connector, "1", 0);
	memcpy(&address, client.info->dest_addr, client.info->dest_addrlen);
	address_set_port((struct sockaddr *)&address, port);
	meet();
}

TEST(a_wildcard_listener_is_reached_at_every_address)
{
	meet_at("0.0.0.0", "127.0.0.1");
	meet_at("0.0.0.0", "127.1.2.3");
	meet_at("127.1.2.3", "127.1.2.3");
	if (!tested_has_ipv6())
		return;
	meet_at("::1", "::1");
	meet_at("::", "::1");
	meet_at("::", "127.0.0.1");
}

PLX_TEST_MAIN()
