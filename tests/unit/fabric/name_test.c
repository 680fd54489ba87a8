/* SPDX-License-Identifier: BSD-3-Clause */
/* Names with several addresses: a link tries each of them, and a listener listens on each. The test
 * replaces the resolver. */
#include "fixture.h"

#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

static const char *const *known; /* addresses of the name "several" */
static sem_t answer;             /* look-ups of "silent..." wait for it, then find this host */
static _Atomic unsigned asked;   /* look-ups of those */

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **out);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **out);

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **out)
{
	struct addrinfo **end = out;
	int rc = 0;

	if (node && strncmp(node, "silent", 6) == 0 && !(hints->ai_flags & AI_NUMERICHOST)) {
		asked++;
		while (sem_wait(&answer) != 0)
			continue;
		return __real_getaddrinfo("127.0.0.1", service, hints, out);
	}
	if (!node || strcmp(node, "several") != 0 || hints->ai_flags & AI_NUMERICHOST)
		return __real_getaddrinfo(node, service, hints, out);
	for (unsigned i = 0; known[i] && rc == 0; i++) {
		rc = __real_getaddrinfo(known[i], service, hints, end);
		end = &(*end)->ai_next;
	}
	return rc;
}

static bool no_threads; /* as at a limit of processes */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg)
{
	return no_threads ? EAGAIN : __real_pthread_create(thread, attr, fn, arg);
}

static void start(const char *provider, const char *const *addresses)
{
	known = addresses;
	fixture_start(provider, false);
}

#define TEST(name) PLX_TEST_WITH(name, NULL, fixture_down)

PLX_TEST(the_next_address_is_tried_if_one_refuses)
{
	static const char *const providers[] = {"tcp", "shm", "auto"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(providers); i++) {
		start(providers[i], (const char *const[]){"127.0.0.2", "::1", "127.0.0.1", NULL});
		client_connect(at_host("several", fixture_listen("127.0.0.1:0", NULL)), NULL);
		expect_open();
		assert_has(plx_link_peer(client.link), "127.0.0.1:");
		fixture_stop();
	}
}

TEST(the_error_names_all_addresses_that_were_tried)
{
	start("tcp", (const char *const[]){"127.0.0.2", "127.0.0.3", NULL});
	client_connect(at_host("several", fixture_listen("127.0.0.1:0", NULL)), NULL);
	expect_end(&client, PLX_LINK_REFUSED);
	assert_string_equal(client.text, "none of its addresses answers: 127.0.0.2: refused, "
					 "127.0.0.3: refused");
}

/* shm reaches no host of another network, which the call itself knows. */
TEST(a_connect_that_fails_at_once_names_all_addresses)
{
	struct plx_link_attr attr = {.events = &side_events, .user = &client};

	start("shm", (const char *const[]){"203.0.113.1", "203.0.113.2", NULL});
	assert_fails(plx_link_connect("several:7000", &attr, &client.link), -EHOSTUNREACH,
		     "connect to several:7000: none of its addresses can be connected to: "
		     "203.0.113.1: unreachable, 203.0.113.2: unreachable");
}

TEST(a_listener_listens_on_each_address)
{
	static const char *const hosts[] = {"127.0.0.2", "127.0.0.1", "127.0.0.3"};
	struct plx_listener *listener;

	/* The first does not exist here, and is skipped. */
	start("auto",
	      (const char *const[]){"203.0.113.1", "127.0.0.2", "127.0.0.1", "127.0.0.3", NULL});
	listener = fixture_listen("several:0", NULL);
	assert_int_equal(plx_fabric_open_count(), 1);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(hosts); i++) {
		client_connect(at_host(hosts[i], listener), NULL);
		expect_open();
		assert_string_equal(plx_link_driver(client.link), "shm");
		fixture_disconnect();
	}
	plx_listener_close(listener);
	assert_int_equal(plx_fabric_open_count(), 0);
}

TEST(listening_fails_if_the_port_is_taken_at_one_address)
{
	struct plx_listen_attr attr = {.link.events = &side_events};
	struct plx_listener *taken, *listener;

	start("tcp", (const char *const[]){"127.0.0.2", "127.0.0.1", NULL});
	taken = fixture_listen("127.0.0.1:0", NULL);
	assert_int_equal(plx_link_listen(at_host("several", taken), &attr, &listener), -EADDRINUSE);
	assert_int_equal(plx_fabric_open_count(), 1);
	/* The port is free at both. */
	client_connect(at_host("127.0.0.1", fixture_listen("several:0", NULL)), NULL);
	expect_open();
}

/* Look-ups ------------------------------------------------------------------------------------- */

static _Atomic unsigned looked_up;

PLX_COUNTS(note, looked_up, struct plx_lookup *lookup, void *arg)

static void connect_where_it_is(struct plx_lookup *lookup, void *arg)
{
	client_connect(arg, NULL);
	looked_up++;
}

static struct plx_listener *start_silent(void)
{
	looked_up = asked = 0;
	no_threads = false;
	start("tcp", NULL);
	return fixture_listen("127.0.0.1:0", NULL);
}

/* Let that many look-ups of the resolver end. */
static void answer_all(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		sem_post(&answer);
}

static void expect_looked_up(unsigned count)
{
	assert_true(pump_until(&looked_up, count, 5000));
}

static void look_up(struct plx_lookup *lookup, const char *address)
{
	assert_int_equal(plx_lookup_start(lookup, address, note, NULL), 0);
}

TEST(links_keep_working_while_a_resolver_is_silent)
{
	struct plx_listener *listener = start_silent();
	char *address = strdup(at_host("silent-1", listener));
	struct plx_lookup lookup;

	fixture_connect(listener, NULL);
	assert_int_equal(plx_lookup_start(&lookup, address, connect_where_it_is, address), 0);
	for (unsigned i = 1; i <= 100 || !asked; i++)
		expect_arrival("hello", 5);
	assert_int_equal(looked_up, 0);
	fixture_disconnect();
	answer_all(1);
	expect_looked_up(1);
	expect_open();
	assert_int_equal(asked, 1); /* plx_link_connect has not asked again */
	free(address);
}

TEST(concurrent_look_ups_of_one_name_share_the_answer)
{
	struct plx_lookup lookups[3];

	start_silent();
	for (unsigned i = 0; i < 3; i++)
		look_up(&lookups[i], "silent-2:7");
	answer_all(1);
	expect_looked_up(3);
	assert_int_equal(asked, 1);
	assert_int_equal(plx_lookup_start(&lookups[0], "silent-2:8", note, NULL), 1);
}

#define MANY    200
#define THREADS 4

static struct plx_lookup many[MANY];

static const char *of_many(unsigned i)
{
	static char address[32];

	snprintf(address, sizeof(address), "silent-of-many-%u:7", i);
	return address;
}

TEST(a_cancelled_name_is_not_asked_for)
{
	start_silent();
	for (unsigned i = 0; i < THREADS; i++)
		look_up(&many[i], of_many(1000 + i));
	while (asked < THREADS)
		pump_ms(1);
	look_up(&many[THREADS], "silent-6:7");
	plx_lookup_cancel(&many[THREADS]);
	answer_all(THREADS);
	expect_looked_up(THREADS);
	assert_int_equal(asked, THREADS);
	/* It was forgotten. */
	look_up(&many[THREADS], "silent-6:7");
	answer_all(1);
	expect_looked_up(THREADS + 1);
}

/* Any number of names may wait for their look-up; after it the threads end. */
TEST(a_thread_that_cannot_be_started_leaves_no_wrong_result)
{
	struct plx_lookup lookup;

	start_silent();
	for (unsigned i = 0; i < MANY; i++)
		look_up(&many[i], of_many(i));
	answer_all(MANY);
	expect_looked_up(MANY);
	assert_int_equal(asked, MANY);
	no_threads = true;
	for (unsigned i = 0; i < 1000 && plx_lookup_start(&lookup, "silent-7:7", note, NULL) == 0;
	     i++) { /* a thread of before has not ended */
		plx_lookup_cancel(&lookup);
		usleep(1000);
	}
	assert_fails(plx_lookup_start(&lookup, "silent-7:7", note, NULL), -EAGAIN,
		     "look up silent-7: no thread can be started: ");
	no_threads = false;
	look_up(&lookup, "silent-7:7");
	answer_all(1);
	expect_looked_up(MANY + 1);
}

TEST(plx_fabric_fini_abandons_pending_look_ups)
{
	struct plx_lookup lookup;

	start_silent();
	look_up(&lookup, "silent-4:7");
	fixture_stop();
	answer_all(1);
	start("tcp", NULL);
	pump_ms(10);
	assert_int_equal(looked_up, 0);
}

TEST(a_numeric_address_needs_no_look_up_and_a_bad_one_is_refused)
{
	struct plx_lookup lookup;

	start_silent();
	assert_int_equal(plx_lookup_start(&lookup, "127.0.0.1:7", note, NULL), 1);
	assert_int_equal(plx_lookup_start(&lookup, "[::1]:7", note, NULL), 1);
	assert_int_equal(plx_lookup_start(&lookup, "*:7", note, NULL), 1); /* no host either */
	assert_int_equal(plx_lookup_start(&lookup, "127.0.0.1", note, NULL), -EINVAL);
}

int main(void)
{
	sem_init(&answer, 0, 0);
	return plx_test_run("tests", NULL, NULL);
}
