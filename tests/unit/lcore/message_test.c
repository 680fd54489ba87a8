/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcore_priv.h"
#include "lcores.h"

#include <stdio.h>

static struct mailbox box;
static uintptr_t received[2 * MAILBOX_SLOTS];
static unsigned received_count;

static void take(void *arg)
{
	assert_true(received_count < PLX_ARRAY_LEN(received));
	received[received_count++] = (uintptr_t)arg;
}

static int set_up(void **state)
{
	received_count = 0;
	mailbox_init(&box);
	return 0;
}

static void keeps_order_over_many_laps(void **state)
{
	uintptr_t sent = 0;

	for (unsigned lap = 0; lap < 5 * MAILBOX_SLOTS / 700; lap++) {
		received_count = 0;
		for (unsigned i = 0; i < 700; i++)
			assert_int_equal(mailbox_send(&box, take, (void *)sent++), 0);
		while (mailbox_receive(&box, 16))
			continue;
		assert_int_equal(received_count, 700);
		for (unsigned i = 0; i < 700; i++)
			assert_int_equal(received[i], sent - 700 + i);
	}
}

static void full_is_refused_and_counted(void **state)
{
	for (uintptr_t i = 0; i < MAILBOX_SLOTS; i++)
		assert_int_equal(mailbox_send(&box, take, (void *)i), 0);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(mailbox_send(&box, take, NULL), -EAGAIN);
		assert_int_equal(counter_get(&box.full), i);
	}
	assert_int_equal(mailbox_receive(&box, 1), 1);
	assert_int_equal(mailbox_send(&box, take, (void *)MAILBOX_SLOTS), 0);
	assert_int_equal(mailbox_send(&box, take, NULL), -EAGAIN);
	while (mailbox_receive(&box, 16))
		continue;
	for (uintptr_t i = 0; i <= MAILBOX_SLOTS; i++)
		assert_int_equal(received[i], i);
}

static void receives_no_more_than_asked_for(void **state)
{
	for (uintptr_t i = 0; i < 20; i++)
		mailbox_send(&box, take, (void *)i);
	assert_int_equal(mailbox_receive(&box, 16), 16);
	assert_int_equal(mailbox_receive(&box, 16), 4);
	assert_int_equal(mailbox_receive(&box, 16), 0);
}

static void send_again(void *arg)
{
	received_count++;
	mailbox_send(&box, send_again, NULL);
}

static void one_that_sends_to_itself_does_not_keep_the_turn(void **state)
{
	mailbox_send(&box, send_again, NULL);
	assert_int_equal(mailbox_receive(&box, 16), 16);
	assert_int_equal(received_count, 16);
}

static void errors_name_the_lcore(void **state)
{
	struct lcores lcores;

	assert_int_equal(plx_lcore_send(0, take, NULL), -ENOENT);
	assert_error_has("there is no lcore 0");
	lcores_up(&lcores, 1);
	assert_int_equal(plx_lcore_send(7, take, NULL), -ENOENT);
	assert_error_has("there is no lcore 7");
	assert_int_equal(plx_lcore_send(PLX_LCORE_NONE, take, NULL), -ENOENT);
	lcores_down(&lcores);
}

static _Atomic uint32_t ran_on;

static void stop_there(void *arg)
{
	atomic_store(&ran_on, plx_lcore_id());
	plx_loop_quit();
}

static int run_loop(void *arg)
{
	return plx_loop_run();
}

static void waits_for_a_loop_that_does_not_run_yet(void **state)
{
	struct plx_lcore_stats stats;
	struct lcores lcores;
	int result = -1;

	lcores_up(&lcores, 2);
	atomic_store(&ran_on, PLX_LCORE_NONE);
	assert_int_equal(plx_lcore_send(10, stop_there, NULL), 0);
	assert_int_equal(plx_lcore_launch(10, run_loop, NULL), 0);
	assert_int_equal(plx_lcore_join(10, UINT64_MAX, &result), 0);
	assert_int_equal(result, 0);
	assert_int_equal(atomic_load(&ran_on), 10);
	assert_int_equal(plx_lcore_stats(10, &stats), 0);
	assert_int_equal(stats.messages, 1);
	assert_int_equal(stats.messages_full, 0);
	lcores_down(&lcores);
}

static char logged[256];

static void keep_log(enum plx_log_level level, const char *component, const char *line, void *arg)
{
	snprintf(logged, sizeof(logged), "%s: %s", component, line);
}

static void those_never_received_are_told_of(void **state)
{
	struct lcores lcores;

	logged[0] = '\0';
	plx_log_set_sink(keep_log, NULL);
	lcores_up(&lcores, 2);
	plx_lcore_send(10, take, NULL);
	plx_lcore_send(10, take, NULL);
	lcores_down(&lcores);
	plx_log_set_sink(NULL, NULL);
	assert_int_equal(received_count, 0);
	assert_string_equal(logged, "lcore: lcore 10 ended with 2 messages that it never received");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(keeps_order_over_many_laps, set_up),
		cmocka_unit_test_setup(full_is_refused_and_counted, set_up),
		cmocka_unit_test_setup(receives_no_more_than_asked_for, set_up),
		cmocka_unit_test_setup(one_that_sends_to_itself_does_not_keep_the_turn, set_up),
		cmocka_unit_test(errors_name_the_lcore),
		cmocka_unit_test(waits_for_a_loop_that_does_not_run_yet),
		cmocka_unit_test_setup(those_never_received_are_told_of, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
