/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: how they come about, how they end, and what is refused on the way. */
#include "cm.h"

#include <poll.h>
#include <pthread.h>

static struct party server, client;
static struct fid_pep *pep;
static struct sockaddr_storage address; /* of pep */
static union cm_event event;
static int descriptors, mappings;

static void listen_at(const char *host)
{
	party_open(&server, cm_info(host, NULL, FI_SOURCE));
	party_open(&client, cm_info(host, "1", 0));
	pep = party_pep(&server);
	assert_int_equal(fi_listen(pep), 0);
	address = cm_name(&pep->fid);
}

static int setup(void **state)
{
	shm_params.ring_bytes = SEGMENT_RING_BYTES_MIN;
	shm_params.cma = true;
	descriptors = count_descriptors();
	mappings = count_mappings();
	listen_at("127.0.0.1");
	return 0;
}

static void close_all(void)
{
	if (pep)
		assert_int_equal(fi_close(&pep->fid), 0);
	pep = NULL;
	party_close(&client);
	party_close(&server);
}

static int teardown(void **state)
{
	close_all();
	assert_int_equal(count_descriptors(), descriptors);
	assert_int_equal(count_mappings(), mappings);
	return 0;
}

static struct fid_ep *dial(const void *data, size_t length)
{
	struct fid_ep *ep = party_ep(&client, client.info);

	assert_int_equal(fi_connect(ep, &address, data, length), 0);
	return ep;
}

static struct fi_info *next_request(void)
{
	assert_int_equal(cm_wait(server.eq, FI_CONNREQ, &event), 0);
	assert_ptr_equal(event.cm.fid, &pep->fid);
	return event.cm.info;
}

static struct fid_ep *accept_next(void)
{
	struct fi_info *info = next_request();
	struct fid_ep *ep = party_ep(&server, info);

	fi_freeinfo(info);
	assert_int_equal(fi_accept(ep, NULL, 0), 0);
	cm_wait(server.eq, FI_CONNECTED, &event);
	assert_ptr_equal(event.cm.fid, &ep->fid);
	return ep;
}

static void make_pair(struct fid_ep **client_ep, struct fid_ep **server_ep)
{
	*client_ep = dial(NULL, 0);
	*server_ep = accept_next();
	cm_wait(client.eq, FI_CONNECTED, &event);
	assert_ptr_equal(event.cm.fid, &(*client_ep)->fid);
}

static void close_ep(struct fid_ep *ep)
{
	assert_int_equal(fi_close(&ep->fid), 0);
}

static void expect_refused(struct fid_ep *ep)
{
	struct fi_eq_err_entry error = cm_wait_error(client.eq);

	assert_ptr_equal(error.fid, &ep->fid);
	assert_int_equal(error.err, FI_ECONNREFUSED);
}

/* Private data -------------------------------------------------------------------------------- */

static void exchange(size_t asked, size_t answered)
{
	uint8_t question[SHM_CM_DATA_MAX], answer[SHM_CM_DATA_MAX];
	struct fid_ep *one, *two;

	memset(question, 'q', sizeof(question));
	memset(answer, 'a', sizeof(answer));
	one = dial(question, asked);
	assert_int_equal(cm_wait(server.eq, FI_CONNREQ, &event), asked);
	assert_memory_equal(event.cm.data, question, asked);
	two = party_ep(&server, event.cm.info);
	fi_freeinfo(event.cm.info);
	assert_int_equal(fi_accept(two, answer, answered), 0);
	assert_int_equal(cm_wait(server.eq, FI_CONNECTED, &event), 0);
	assert_int_equal(cm_wait(client.eq, FI_CONNECTED, &event), answered);
	assert_memory_equal(event.cm.data, answer, answered);
	close_ep(one);
	close_ep(two);
}

static void both_sides_get_private_data(void **state)
{
	exchange(0, 0);
	exchange(1, SHM_CM_DATA_MAX);
	exchange(SHM_CM_DATA_MAX, 1);
}

static void reject(const void *data, size_t length)
{
	struct fid_ep *ep = dial(NULL, 0);
	struct fi_info *info = next_request();
	struct fi_eq_err_entry error;

	assert_int_equal(fi_reject(pep, info->handle, data, length), 0);
	fi_freeinfo(info);
	error = cm_wait_error(client.eq);
	assert_ptr_equal(error.fid, &ep->fid);
	assert_int_equal(error.err, FI_ECONNREFUSED);
	assert_int_equal(error.err_data_size, length);
	if (length)
		assert_memory_equal(error.err_data, data, length);
	close_ep(ep);
}

static void a_refusal_brings_its_data(void **state)
{
	uint8_t data[SHM_CM_DATA_MAX];

	memset(data, 'r', sizeof(data));
	reject(NULL, 0);
	reject(data, 1);
	reject(data, sizeof(data));
}

static void too_much_private_data_is_refused(void **state)
{
	uint8_t data[SHM_CM_DATA_MAX + 1] = {0};
	struct fid_ep *ep = party_ep(&client, client.info), *one, *two;
	struct fi_info *info;

	assert_int_equal(fi_connect(ep, &address, data, sizeof(data)), -FI_EINVAL);
	close_ep(ep);
	one = dial(NULL, 0);
	info = next_request();
	assert_int_equal(fi_reject(pep, info->handle, data, sizeof(data)), -FI_EINVAL);
	two = party_ep(&server, info);
	fi_freeinfo(info);
	assert_int_equal(fi_accept(two, data, sizeof(data)), -FI_EINVAL);
	assert_int_equal(fi_accept(two, data, sizeof(data) - 1), 0);
	close_ep(one);
	close_ep(two);
}

/* Names --------------------------------------------------------------------------------------- */

static void assert_same(const void *one, const void *two)
{
	assert_memory_equal(one, two, shm_address_bytes(two));
}

static void both_sides_know_their_peer(void **state)
{
	struct sockaddr_storage name = {0}, local;
	size_t bytes = sizeof(name);
	struct fid_ep *one, *two;

	make_pair(&one, &two);
	assert_int_equal(fi_getpeer(one, &name, &bytes), 0);
	assert_same(&name, &address);
	local = cm_name(&one->fid);
	assert_int_equal(fi_getpeer(two, &name, &bytes), 0);
	assert_same(&name, &local);
	local = cm_name(&two->fid);
	assert_same(&local, &address);
	close_ep(one);
	close_ep(two);
}

static void a_request_tells_both_addresses(void **state)
{
	struct fid_ep *ep = dial(NULL, 0);
	struct fi_info *info = next_request();
	struct sockaddr_storage local = cm_name(&ep->fid);

	assert_same(info->src_addr, &address);
	assert_same(info->dest_addr, &local);
	fi_freeinfo(info);
	close_ep(ep);
}

static void a_buffer_too_small_for_a_name_is_told_the_length(void **state)
{
	struct sockaddr_in name;
	size_t bytes = 4;

	memset(&name, 0xee, sizeof(name));
	assert_int_equal(fi_getname(&pep->fid, &name, &bytes), -FI_ETOOSMALL);
	assert_int_equal(bytes, sizeof(name));
	assert_memory_equal(&name, &address, 4);
	assert_int_equal(name.sin_addr.s_addr, 0xeeeeeeee);
	bytes = 0;
	assert_int_equal(fi_getname(&pep->fid, NULL, &bytes), -FI_ETOOSMALL);
	assert_int_equal(bytes, sizeof(name));
}

static void a_port_is_found_for_who_gives_none(void **state)
{
	struct sockaddr_storage other, wanted = address;
	struct fid_pep *second = party_pep(&server);

	assert_int_not_equal(shm_address_port((struct sockaddr *)&address), 0);
	shm_address_set_port((struct sockaddr *)&wanted, 0);
	assert_int_equal(fi_setname(&second->fid, &wanted, sizeof(wanted)), 0);
	other = cm_name(&second->fid);
	assert_int_not_equal(shm_address_port((struct sockaddr *)&other), 0);
	assert_int_not_equal(shm_address_port((struct sockaddr *)&other),
			     shm_address_port((struct sockaddr *)&address));
	assert_int_equal(fi_listen(second), 0);
	wanted = cm_name(&second->fid);
	assert_same(&wanted, &other);
	assert_int_equal(fi_close(&second->fid), 0);
}

static void an_address_is_used_once(void **state)
{
	struct fid_pep *second = party_pep(&server);

	assert_int_equal(fi_setname(&second->fid, &address, sizeof(address)), -FI_EADDRINUSE);
	assert_int_equal(fi_close(&pep->fid), 0);
	pep = NULL;
	assert_int_equal(fi_setname(&second->fid, &address, sizeof(address)), 0);
	assert_int_equal(fi_setname(&second->fid, &address, sizeof(address)), 0);
	assert_int_equal(fi_close(&second->fid), 0);
}

static void a_name_that_cannot_be_is_refused(void **state)
{
	struct sockaddr_in far = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x08080808)};
	struct sockaddr_un path = {.sun_family = AF_UNIX};
	struct fid_pep *second = party_pep(&server);

	assert_int_equal(fi_setname(&second->fid, &path, sizeof(path)), -FI_EINVAL);
	assert_int_equal(fi_setname(&second->fid, &address, 4), -FI_EINVAL);
	assert_int_equal(fi_setname(&second->fid, &far, sizeof(far)), -FI_EADDRNOTAVAIL);
	far.sin_port = htons(7000);
	assert_int_equal(fi_setname(&second->fid, &far, sizeof(far)), -FI_EADDRNOTAVAIL);
	assert_int_equal(fi_close(&second->fid), 0);
	assert_int_equal(fi_setname(&pep->fid, &address, sizeof(address)), -FI_EOPBADSTATE);
}

/* A listener at one address, a connector at another, and both meet. */
static void meet(const char *listener, const char *connector)
{
	struct fid_ep *one, *two;
	uint16_t port;

	close_all();
	listen_at(listener);
	port = shm_address_port((struct sockaddr *)&address);
	fi_freeinfo(client.info);
	client.info = cm_info(connector, "1", 0);
	memcpy(&address, client.info->dest_addr, client.info->dest_addrlen);
	shm_address_set_port((struct sockaddr *)&address, port);
	make_pair(&one, &two);
	close_ep(one);
	close_ep(two);
}

static void wildcards_are_met_at_every_address(void **state)
{
	meet("0.0.0.0", "127.0.0.1");
	meet("0.0.0.0", "127.1.2.3");
	meet("127.1.2.3", "127.1.2.3");
}

static void ipv6_is_met_too(void **state)
{
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	bool there = fd >= 0 && bind(fd, (struct sockaddr *)&loopback, sizeof(loopback)) == 0;

	if (fd >= 0)
		close(fd);
	if (!there)
		skip();
	meet("::1", "::1");
	meet("::", "::1");
	meet("::", "127.0.0.1");
}

static void an_endpoint_may_take_the_name_of_a_passive_one(void **state)
{
	struct fi_info *info = fi_dupinfo(client.info);
	struct sockaddr_storage name;
	struct fid_ep *ep;

	info->handle = &pep->fid;
	ep = party_ep(&client, info);
	fi_freeinfo(info);
	name = cm_name(&ep->fid);
	assert_same(&name, &address);
	close_ep(ep);
}

/* Nobody there -------------------------------------------------------------------------------- */

static void who_is_not_there_refuses_at_once(void **state)
{
	struct fid_ep *ep = party_ep(&client, client.info), *two;
	struct fid_pep *later = party_pep(&server);
	struct sockaddr_storage wanted = address;

	shm_address_set_port((struct sockaddr *)&wanted, 0);
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
	close_ep(two);
	assert_int_equal(fi_close(&later->fid), 0);
}

static void a_listener_that_goes_refuses(void **state)
{
	struct fid_ep *read = dial(NULL, 0), *queued = dial(NULL, 0), *waiting;

	fi_freeinfo(next_request());
	eq_progress((struct shm_eq *)server.eq); /* so that one event is queued */
	waiting = dial(NULL, 0);
	assert_int_equal(fi_close(&pep->fid), 0);
	pep = NULL;
	for (int i = 0; i < 3; i++)
		assert_int_equal(cm_wait_error(client.eq).err, FI_ECONNREFUSED);
	cm_expect_nothing(server.eq);
	close_ep(read);
	close_ep(queued);
	close_ep(waiting);
}

static void an_endpoint_that_is_closed_unaccepted_refuses(void **state)
{
	struct fid_ep *ep = dial(NULL, 0);
	struct fi_info *info = next_request();
	struct fid_ep *two = party_ep(&server, info);

	fi_freeinfo(info);
	close_ep(two);
	expect_refused(ep);
	close_ep(ep);
}

static void a_connector_that_gave_up_cannot_be_accepted(void **state)
{
	struct fid_ep *one = dial(NULL, 0), *two;
	struct fi_info *info = next_request();

	close_ep(one);
	two = party_ep(&server, info);
	fi_freeinfo(info);
	assert_int_equal(fi_accept(two, NULL, 0), -FI_ECONNABORTED);
	close_ep(two);
	cm_expect_nothing(server.eq);
}

static void posted_receives_come_back_from_who_was_refused(void **state)
{
	struct fid_ep *ep = party_ep(&client, client.info);
	struct fi_cq_err_entry error = {0};
	struct fi_cq_data_entry entry;
	struct fi_info *info;
	char room[8];

	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_recv(ep, room, sizeof(room), NULL, 0, room), 0);
	assert_int_equal(fi_connect(ep, &address, NULL, 0), 0);
	info = next_request();
	assert_int_equal(fi_reject(pep, info->handle, NULL, 0), 0);
	fi_freeinfo(info);
	expect_refused(ep);
	assert_int_equal(fi_cq_read(client.cq, &entry, 1), -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(client.cq, &error, 0), 1);
	assert_int_equal(error.err, FI_ECANCELED);
	assert_ptr_equal(error.op_context, room);
	close_ep(ep);
}

/* Backlog ------------------------------------------------------------------------------------- */

static void set_backlog(int backlog)
{
	assert_int_equal(fi_control(&pep->fid, FI_BACKLOG, &backlog), 0);
}

static void more_than_the_backlog_wait_for_their_turn(void **state)
{
	struct fid_ep *eps[12];
	int none = 0;

	assert_int_equal(fi_control(&pep->fid, FI_BACKLOG, &none), -FI_EINVAL);
	set_backlog(2);
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++)
		eps[i] = dial("data", 4);
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++) {
		while (!((struct shm_eq *)server.eq)->first) { /* who waits tries again */
			eq_progress((struct shm_eq *)server.eq);
			eq_progress((struct shm_eq *)client.eq);
		}
		assert_int_equal(cm_wait(server.eq, FI_CONNREQ, &event), 4);
		assert_true(((struct shm_pep *)pep)->request_count <= 2);
		assert_int_equal(fi_reject(pep, event.cm.info->handle, NULL, 0), 0);
		fi_freeinfo(event.cm.info);
		assert_int_equal(cm_wait_error(client.eq).err, FI_ECONNREFUSED);
	}
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++)
		close_ep(eps[i]);
}

static void unanswered_requests_stop_at_the_backlog(void **state)
{
	struct fid_ep *eps[5];
	struct fi_info *infos[2];

	set_backlog(2);
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++)
		eps[i] = dial(NULL, 0);
	for (size_t i = 0; i < PLX_ARRAY_LEN(infos); i++)
		infos[i] = next_request();
	cm_expect_nothing(server.eq);
	set_backlog(3);
	fi_freeinfo(next_request());
	cm_expect_nothing(server.eq);
	for (size_t i = 0; i < PLX_ARRAY_LEN(infos); i++)
		fi_freeinfo(infos[i]);
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++)
		close_ep(eps[i]);
}

/* Fill what the kernel keeps for a listener, so that the next ones must wait. */
static void fill_backlog(struct fid_ep **eps, size_t count)
{
	set_backlog(1);
	for (size_t i = 0; i < count; i++)
		eps[i] = dial(NULL, 0);
	assert_non_null(((struct shm_ep *)eps[count - 1])->later);
}

static void who_waits_for_a_backlog_can_be_closed(void **state)
{
	struct fid_ep *eps[6];

	fill_backlog(eps, PLX_ARRAY_LEN(eps));
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++)
		close_ep(eps[i]);
}

static void who_waits_for_a_backlog_hears_that_the_listener_went(void **state)
{
	struct fid_ep *eps[6];

	fill_backlog(eps, PLX_ARRAY_LEN(eps));
	assert_int_equal(fi_close(&pep->fid), 0);
	pep = NULL;
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++)
		assert_int_equal(cm_wait_error(client.eq).err, FI_ECONNREFUSED);
	for (size_t i = 0; i < PLX_ARRAY_LEN(eps); i++)
		close_ep(eps[i]);
}

/* Ends ---------------------------------------------------------------------------------------- */

static void a_closed_peer_is_told_once(void **state)
{
	struct fid_ep *one, *two;

	make_pair(&one, &two);
	close_ep(two);
	cm_wait(client.eq, FI_SHUTDOWN, &event);
	assert_ptr_equal(event.cm.fid, &one->fid);
	cm_expect_nothing(client.eq);
	close_ep(one);
}

static bool is_readable(struct fid *fid)
{
	struct pollfd pollfd = {.events = POLLIN};

	assert_int_equal(fi_control(fid, FI_GETWAIT, &pollfd.fd), 0);
	return poll(&pollfd, 1, 0) != 0;
}

/* Its socket has ended for good, and would wake for ever. */
static void an_end_wakes_once(void **state)
{
	struct fid_ep *one, *two;

	make_pair(&one, &two);
	close_ep(two);
	assert_true(is_readable(&client.eq->fid));
	cm_wait(client.eq, FI_SHUTDOWN, &event);
	assert_false(is_readable(&client.eq->fid));
	assert_false(is_readable(&client.cq->fid));
	close_ep(one);
}

static void both_sides_hear_of_a_shutdown_once(void **state)
{
	struct fid_ep *one, *two;

	make_pair(&one, &two);
	assert_int_equal(fi_shutdown(one, 1), -FI_EBADFLAGS);
	assert_int_equal(fi_shutdown(one, 0), 0);
	cm_wait(client.eq, FI_SHUTDOWN, &event);
	assert_ptr_equal(event.cm.fid, &one->fid);
	cm_wait(server.eq, FI_SHUTDOWN, &event);
	assert_ptr_equal(event.cm.fid, &two->fid);
	assert_int_equal(fi_shutdown(one, 0), 0);
	assert_int_equal(fi_shutdown(two, 0), 0);
	cm_expect_nothing(client.eq);
	cm_expect_nothing(server.eq);
	close_ep(one);
	close_ep(two);
}

/* What is flushed is seen when fi_shutdown returns (fi_cm.3). */
static void a_shutdown_flushes_before_it_returns(void **state)
{
	struct fi_cq_err_entry error = {0};
	struct fid_ep *one, *two;
	char room[8];

	make_pair(&one, &two);
	assert_int_equal(fi_recv(one, room, sizeof(room), NULL, 0, room), 0);
	assert_int_equal(fi_shutdown(one, 0), 0);
	assert_int_equal(fi_cq_readerr(client.cq, &error, 0), 1);
	assert_int_equal(error.err, FI_ECANCELED);
	close_ep(one);
	close_ep(two);
}

static void events_of_a_closed_endpoint_do_not_come(void **state)
{
	struct fid_ep *one, *two;

	make_pair(&one, &two);
	close_ep(two);
	while (!((struct shm_eq *)client.eq)->first)
		eq_progress((struct shm_eq *)client.eq);
	close_ep(one);
	cm_expect_nothing(client.eq);
}

static void a_pair(void)
{
	struct fid_ep *one, *two;

	make_pair(&one, &two);
	close_ep(one);
	cm_wait(server.eq, FI_SHUTDOWN, &event);
	close_ep(two);
}

static void many_connections_leave_nothing_behind(void **state)
{
	int fds, maps;

	for (int i = 0; i < 100; i++)
		a_pair();
	fds = count_descriptors();
	maps = count_mappings();
	for (int i = 0; i < 10000; i++)
		a_pair();
	assert_int_equal(count_descriptors(), fds);
	assert_int_equal(count_mappings(), maps);
}

/* Reading the peer's memory ------------------------------------------------------------------- */

static uint32_t can_read(struct fid_ep *ep)
{
	return atomic_load(&((struct shm_ep *)ep)->reader.segment.control->can_read);
}

static void each_side_finds_whether_it_can_read_the_other(void **state)
{
	struct fid_ep *one, *two;

	make_pair(&one, &two);
	assert_int_equal(can_read(one), 1);
	assert_int_equal(can_read(two), 1);
	close_ep(one);
	close_ep(two);
	shm_params.cma = false;
	make_pair(&one, &two);
	assert_int_equal(can_read(one), 0);
	assert_int_equal(can_read(two), 0);
	close_ep(one);
	close_ep(two);
}

static void a_peer_that_cannot_be_read_is_found_out(void **state)
{
	struct fid_ep *one = dial(NULL, 0), *two;
	struct fi_info *info = next_request();

	/* As if the process there was another one. */
	((struct shm_request *)info->handle)->offer.probe_value ^= 1;
	two = party_ep(&server, info);
	fi_freeinfo(info);
	assert_int_equal(fi_accept(two, NULL, 0), 0);
	assert_int_equal(can_read(two), 0);
	close_ep(one);
	close_ep(two);
}

/* Threads ------------------------------------------------------------------------------------- */

#define HANDED 300

static struct party worker;
static _Atomic(struct fi_info *) handed;

static void *accept_handed(void *arg)
{
	union cm_event own;

	for (int i = 0; i < HANDED; i++) {
		struct fi_info *info;
		struct fid_ep *ep;

		while (!(info = atomic_exchange(&handed, NULL)))
			;
		ep = party_ep(&worker, info);
		fi_freeinfo(info);
		if (i % 3) {
			assert_int_equal(fi_accept(ep, NULL, 0), 0);
			cm_wait(worker.eq, FI_CONNECTED, &own);
		}
		close_ep(ep);
	}
	return NULL;
}

/* While its passive endpoint goes on here, with more than the backlog waiting. */
static void a_request_may_be_accepted_on_another_thread(void **state)
{
	pthread_t thread;

	set_backlog(2);
	party_open(&worker, cm_info("127.0.0.1", NULL, FI_SOURCE));
	assert_int_equal(pthread_create(&thread, NULL, accept_handed, NULL), 0);
	for (int i = 0; i < HANDED; i++) {
		struct fid_ep *ep = dial(NULL, 0);
		struct fi_info *info = next_request();
		struct fi_info *taken;

		do {
			taken = NULL;
		} while (!atomic_compare_exchange_weak(&handed, &taken, info));
		if (i % 3) {
			cm_wait(client.eq, FI_CONNECTED, &event);
			cm_wait(client.eq, FI_SHUTDOWN, &event);
		} else {
			expect_refused(ep);
		}
		close_ep(ep);
	}
	pthread_join(thread, NULL);
	party_close(&worker);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(both_sides_get_private_data),
		TEST(a_refusal_brings_its_data),
		TEST(too_much_private_data_is_refused),
		TEST(both_sides_know_their_peer),
		TEST(a_request_tells_both_addresses),
		TEST(a_buffer_too_small_for_a_name_is_told_the_length),
		TEST(a_port_is_found_for_who_gives_none),
		TEST(an_address_is_used_once),
		TEST(a_name_that_cannot_be_is_refused),
		TEST(wildcards_are_met_at_every_address),
		TEST(ipv6_is_met_too),
		TEST(an_endpoint_may_take_the_name_of_a_passive_one),
		TEST(who_is_not_there_refuses_at_once),
		TEST(a_listener_that_goes_refuses),
		TEST(an_endpoint_that_is_closed_unaccepted_refuses),
		TEST(a_connector_that_gave_up_cannot_be_accepted),
		TEST(posted_receives_come_back_from_who_was_refused),
		TEST(more_than_the_backlog_wait_for_their_turn),
		TEST(unanswered_requests_stop_at_the_backlog),
		TEST(who_waits_for_a_backlog_can_be_closed),
		TEST(who_waits_for_a_backlog_hears_that_the_listener_went),
		TEST(a_closed_peer_is_told_once),
		TEST(an_end_wakes_once),
		TEST(both_sides_hear_of_a_shutdown_once),
		TEST(a_shutdown_flushes_before_it_returns),
		TEST(events_of_a_closed_endpoint_do_not_come),
		TEST(many_connections_leave_nothing_behind),
		TEST(each_side_finds_whether_it_can_read_the_other),
		TEST(a_peer_that_cannot_be_read_is_found_out),
		TEST(a_request_may_be_accepted_on_another_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
