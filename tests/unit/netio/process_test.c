/* SPDX-License-Identifier: BSD-3-Clause */
/* Lcores of a process that has none, and of one that already has some. */
#include "misuse.h"
#include "netio_fixture.h"
#include "plx_eal.h"

static int options(const char *value)
{
	log_capture();
	setenv("NETIO_OPTIONS", value, 1);
	return 0;
}

static enum plx_idle_mode idle_mode(void)
{
	struct plx_idle_conf conf;

	assert_int_equal(plx_idle_get(plx_lcore_id(), &conf), 0);
	return conf.mode;
}

PLX_TEST(the_environment_configures_netio)
{
	options(" --huge none\t-l 3@0,7@0  --idle 3:event,poll\n");
	assert_int_equal(netio_init(&ctx), 0);
	assert_int_equal(plx_lcore_count(), 2);
	assert_int_equal(plx_lcore_id(), 3);
	assert_int_equal(idle_mode(), PLX_IDLE_EVENT);
	netio_down(NULL);
}

PLX_TEST(the_environment_overrides_options_of_the_program)
{
	char *argv[] = {"test", "--huge", "none", "--idle", "event"};
	struct plx_eal_conf conf = {0};

	assert_int_equal(plx_eal_parse(5, argv, &conf), 4);
	options("--idle poll");
	assert_int_equal(netio_init_conf(&ctx, &conf), 0);
	assert_int_equal(idle_mode(), PLX_IDLE_POLL);
	netio_down(NULL);
	plx_eal_conf_fini(&conf);
}

#define WORDS_16 "-l 0 -l 0 -l 0 -l 0 -l 0 -l 0 -l 0 -l 0 "

PLX_TEST(wrong_options_are_refused)
{
	static const struct {
		const char *options, *error;
	} rows[] = {
		{"--lcore-s 1", "NETIO_OPTIONS='--lcore-s 1': "},
		{"--idle sometimes", "'sometimes' is no way to be idle"},
		{"-l", "-l"},
		{"--huge none fast", "'fast' is no option"},
		{"--huge none -- fast", "'fast' is no option"},
		{"--help", "--help"},
		{"--huge none --huge 2M", "--huge"},
		{WORDS_16 WORDS_16 WORDS_16 WORDS_16, "more than 63 words"},
	};

	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		options(rows[i].options);
		assert_fails(netio_init(&ctx), -EINVAL, rows[i].error);
		assert_int_equal(log_count("netio:0: NETIO_OPTIONS"), 1);
		assert_int_equal(plx_lcore_count(), 0);
		/* Like a program that ignores the error. */
		assert_int_equal(netio_run(&ctx.evloop), -EINVAL);
		assert_int_equal(netio_fini(&ctx), 0);
	}
}

static int netio_on_worker(void *arg)
{
	struct netio_eventloop evloop;

	assert_int_equal(netio_eventloop_init(&evloop), 0);
	assert_int_equal(evloop.lcore_id, plx_lcore_id());
	netio_terminate(&evloop);
	assert_int_equal(netio_run(&evloop), 0);
	assert_int_equal(netio_eventloop_fini(&evloop), 0);
	return 0;
}

static void *init_here(void *arg)
{
	struct netio_context here;

	*(int *)arg = netio_init(&here) ?: netio_fini(&here);
	return NULL;
}

/* One loop per lcore; NetIO does not end these lcores. */
PLX_TEST(netio_init_uses_existing_lcores)
{
	struct plx_eal_conf conf = {.lcores = "0@0,1@0", .huge = PLX_HUGE_NONE};
	int result = -1, rc = -1;

	options("--idle no-such"); /* ignored: the lcores are up */
	assert_int_equal(plx_eal_init(&conf), 0);
	assert_int_equal(plx_lcore_launch(1, netio_on_worker, NULL), 0);
	assert_int_equal(plx_lcore_join(1, 10 * PLX_NS_PER_S, &result), 0);
	assert_int_equal(result, 0);
	assert_int_equal(netio_init(&ctx), 0);
	assert_int_equal(netio_fini(&ctx), 0);
	assert_int_equal(plx_lcore_count(), 2);
	run_in_thread(init_here, &rc); /* another thread is adopted */
	assert_int_equal(rc, 0);
	assert_int_equal(plx_eal_fini(), 0);
	plx_eal_conf_fini(&conf);
}

static struct netio_send_socket sender;
static struct netio_buffered_send_socket buffered;
static struct netio_listen_socket listener;
static struct netio_push_socket pusher;
static struct netio_publish_socket publisher;
static struct netio_unbuffered_publish_socket at_once;
static struct netio_subscribe_socket subscriber;

static void set_up(void)
{
	netio_up(NULL);
	netio_send_socket_init(&ctx.evloop, &sender, NULL);
	netio_buffered_send_socket_init(&ctx.evloop, &buffered, NULL);
	netio_listen_socket_init(&ctx.evloop, &listener, NULL);
	netio_push_socket_init(&ctx.evloop, &pusher, NULL);
	netio_publish_socket_init(&ctx.evloop, &publisher, NULL);
	netio_unbuffered_publish_socket_init(&ctx.evloop, &at_once, NULL);
	netio_subscribe_socket_init(&ctx.evloop, &subscriber, NULL);
}

static uint64_t key;

MISUSE(netio_connect, &sender, "127.0.0.1", 1)
MISUSE(netio_sendv_tagged, &sender, 0, NULL, 0)
MISUSE(netio_buffered_send, &buffered, "x", 1)
MISUSE(netio_buffered_flush, &buffered)
MISUSE(netio_listen, &listener, "127.0.0.1", 0)
MISUSE(netio_listen_socket_fini, &listener)
MISUSE(netio_pushv_tagged, &pusher, 0, NULL, 0)
MISUSE(netio_buffered_publishv, &publisher, 0, NULL, 0, 0, NULL)
MISUSE(netio_unbuffered_publishv_usr, &at_once, 0, NULL, 0, &key, 0, NULL, 0, 0)
MISUSE(netio_subscribe_to, &subscriber, "127.0.0.1", 1, &(struct netio_subscription){.tag = 1})
MISUSE(netio_subscribe_socket_fini, &subscriber)

PLX_TEST(sockets_may_be_used_only_on_the_lcore_of_their_loop)
{
	assert_misuses(set_up);
}

PLX_TEST_MAIN()
