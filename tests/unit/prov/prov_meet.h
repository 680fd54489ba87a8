/* SPDX-License-Identifier: BSD-3-Clause */
/* Each test gets a listener and a connector. Everything that they hold must be released. */
#ifndef PROV_TEST_MEET_H
#define PROV_TEST_MEET_H

#include "count.h"
#include "pair.h"

static struct side server, client;
static struct fid_pep *pep;
static struct sockaddr_storage address; /* of pep */
static union cm_event event;
static int descriptors, mappings;

/* Incoming connections that were not answered. */
static inline uint32_t cm_requests(const struct fid_pep *fid)
{
	const struct prov_pep *it = (const struct prov_pep *)fid;

	return it->silent_count + it->told_count;
}

static inline void listen_at(const char *host)
{
	side_open(&server, side_info(host, NULL, FI_SOURCE));
	side_open(&client, side_info(host, "1", 0));
	tested_eqs[0] = server.eq;
	tested_eqs[1] = client.eq;
	pep = side_pep(&server);
	assert_int_equal(fi_listen(pep), 0);
	address = name_of(&pep->fid);
}

static inline int setup(void **state)
{
	descriptors = count_descriptors();
	mappings = count_mappings();
	listen_at("127.0.0.1");
	return 0;
}

static inline void close_pep(void)
{
	if (pep)
		assert_int_equal(fi_close(&pep->fid), 0);
	pep = NULL;
}

static inline void close_ep(struct fid_ep *ep)
{
	assert_int_equal(fi_close(&ep->fid), 0);
}

/* A connection of a test: the client's end, and the server's; NULL: closed. The end of the test
 * closes them. */
static struct fid_ep *one, *two;

static inline void close_one(void)
{
	if (one)
		close_ep(one);
	one = NULL;
}

static inline void close_two(void)
{
	if (two)
		close_ep(two);
	two = NULL;
}

static inline void part(void)
{
	close_one();
	close_two();
}

static inline void close_all(void)
{
	part();
	close_pep();
	tested_eqs[0] = tested_eqs[1] = NULL;
	side_close(&client);
	side_close(&server);
}

static inline int teardown(void **state)
{
	close_all();
	assert_int_equal(count_descriptors(), descriptors);
	assert_int_equal(count_mappings(), mappings);
	return 0;
}

static inline struct fid_ep *dial(const void *data, size_t length)
{
	struct fid_ep *ep = side_ep(&client, client.info);

	assert_int_equal(fi_connect(ep, &address, data, length), 0);
	return ep;
}

static inline struct fi_info *next_request(void)
{
	assert_int_equal(cm_wait(server.eq, FI_CONNREQ, &event), 0);
	assert_ptr_equal(event.cm.fid, &pep->fid);
	return event.cm.info;
}

/* The server's endpoint for the request just reported. */
static inline struct fid_ep *request_ep(void)
{
	struct fid_ep *ep = side_ep(&server, event.cm.info);

	fi_freeinfo(event.cm.info);
	return ep;
}

static inline struct fid_ep *accept_next(void)
{
	struct fid_ep *ep;

	next_request();
	ep = request_ep();
	assert_int_equal(fi_accept(ep, NULL, 0), 0);
	cm_wait(server.eq, FI_CONNECTED, &event);
	assert_ptr_equal(event.cm.fid, &ep->fid);
	return ep;
}

static inline void make_pair(struct fid_ep **client_ep, struct fid_ep **server_ep)
{
	*client_ep = dial(NULL, 0);
	*server_ep = accept_next();
	cm_wait(client.eq, FI_CONNECTED, &event);
	assert_ptr_equal(event.cm.fid, &(*client_ep)->fid);
}

static inline void meet(void)
{
	make_pair(&one, &two);
}

/* Connect and close. */
static inline void meet_once(void)
{
	meet();
	close_one();
	cm_wait(server.eq, FI_SHUTDOWN, &event);
	close_two();
}

static inline int setup_met(void **state)
{
	setup(state);
	meet();
	return 0;
}

static inline void expect_refused(struct fid_ep *ep)
{
	struct fi_eq_err_entry error = cm_wait_error(client.eq);

	assert_ptr_equal(error.fid, &ep->fid);
	assert_int_equal(error.err, FI_ECONNREFUSED);
}

static inline void reject(struct fi_info *info, const void *data, size_t length)
{
	assert_int_equal(fi_reject(pep, info->handle, data, length), 0);
	fi_freeinfo(info);
}

static inline void reject_next(const void *data, size_t length)
{
	reject(next_request(), data, length);
}

#endif
