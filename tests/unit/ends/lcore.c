/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends.h"

#include <sys/epoll.h>
#include <unistd.h>

static struct plx_timer timer;
static struct plx_task task;
static struct plx_poller *poller;
static struct plx_fd *watch;
static struct plx_signal fired;
static struct plx_call call;
static int ends[2];

ENDS_RUN(on_timer, "timer", &timer, struct plx_timer *one, void *arg)
ENDS_RUN(on_task, "task", &task, struct plx_task *one, void *arg)
ENDS_RUN(on_signal, "signal", &fired, struct plx_signal *signal, uint64_t fires, void *arg)
ENDS_RUN(on_sent, "message", NULL, void *arg)
ENDS_RUN(on_done, "call's done", NULL, struct plx_call *one, int result, void *arg)

static int on_poll(void *arg, uint64_t now_ns)
{
	ends_in("poller", &poller);
	return 0;
}

static int on_call(struct plx_call *one, void *arg)
{
	ends_in("call", NULL);
	return 0;
}

static void on_fd(int fd, uint32_t events, void *arg)
{
	char byte;

	if (read(fd, &byte, 1) == 1)
		ends_in("descriptor", &watch);
}

static void up(const char *provider)
{
	plx_timer_init(&timer, on_timer, NULL);
	plx_task_init(&task, on_task, NULL);
	assert_works(plx_poller_add("ends", on_poll, NULL, &poller));
	assert_int_equal(pipe(ends), 0);
	assert_works(plx_fd_add(ends[0], EPOLLIN, on_fd, NULL, &watch));
	assert_works(plx_signal_init(&fired, plx_lcore_id(), on_signal, NULL));
	call = (struct plx_call){.fn = on_call, .done = on_done};
}

static void kick(void)
{
	assert_works(plx_timer_start_periodic(&timer, 1));
	assert_works(plx_task_schedule(&task));
	assert_int_equal(write(ends[1], "", 1), 1);
	plx_signal_fire(&fired);
	assert_works(plx_lcore_send(plx_lcore_id(), on_sent, NULL));
	assert_works(plx_lcore_call(plx_lcore_id(), &call));
}

ENDS_FINISH(stop_timer, plx_timer_stop, timer)
ENDS_FINISH(cancel_task, plx_task_cancel, task)
ENDS_FINISH(finish_signal, plx_signal_fini, fired)
ENDS_TAKE(plx_poller_remove, poller)
ENDS_TAKE(plx_fd_remove, watch)
ENDS_CALL(plx_loop_quit)
ENDS_CALL(plx_stop)
ENDS_CALL(plx_mem_fini)

static bool is_done(void *arg)
{
	return true;
}

static int until(void)
{
	return plx_loop_until(is_done, NULL, PLX_NEVER);
}

static int lcores_fini(void)
{
	return plx_lcores_fini(0);
}

static void down(bool is_up)
{
	if (is_up) {
		stop_timer();
		cancel_task();
		finish_signal();
		take_poller();
		take_watch();
	}
	poller = NULL;
	watch = NULL;
	close(ends[0]);
	close(ends[1]);
}

static const struct ends_call calls[] = {
	{"plx_timer_stop", ENDS_WORKS, stop_timer},
	{"plx_task_cancel", ENDS_WORKS, cancel_task},
	{"plx_poller_remove", ENDS_WORKS, take_poller},
	{"plx_fd_remove", ENDS_WORKS, take_watch},
	{"plx_signal_fini", ENDS_WORKS, finish_signal},
	{"plx_loop_quit", ENDS_DEFERS, call_plx_loop_quit},
	{"plx_stop", ENDS_DEFERS, call_plx_stop},
	{"plx_loop_run", ENDS_REFUSES, plx_loop_run},
	{"plx_loop_turn", ENDS_REFUSES, plx_loop_turn},
	{"plx_loop_until", ENDS_REFUSES, until},
	{"plx_lcores_fini", ENDS_REFUSES, lcores_fini},
	{"plx_eal_fini", ENDS_REFUSES, plx_eal_fini},
	{"plx_mem_fini", ENDS_LOGS, call_plx_mem_fini},
};

static const struct ends_callback callbacks[] = {
	{"timer", ENDS_ALL},       {"task", ENDS_ALL},        {"poller", ENDS_ALL},
	{"descriptor", ENDS_RUNS}, {"signal", ENDS_ALL},      {"message", ENDS_ALL},
	{"call", ENDS_ALL},        {"call's done", ENDS_ALL},
};

ENDS_PART(ends_lcore, "lcore");
