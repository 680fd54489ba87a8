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

static void on_timer(struct plx_timer *one, void *arg)
{
	ends_in("timer", &timer);
}

static void on_task(struct plx_task *one, void *arg)
{
	ends_in("task", &task);
}

static int on_poll(void *arg, uint64_t now_ns)
{
	ends_in("poller", &poller);
	return 0;
}

static void on_fd(int fd, uint32_t events, void *arg)
{
	char byte;

	if (read(fd, &byte, 1) == 1)
		ends_in("descriptor", &watch);
}

static void on_signal(struct plx_signal *signal, uint64_t fires, void *arg)
{
	ends_in("signal", &fired);
}

static void on_sent(void *arg)
{
	ends_in("message", NULL);
}

static int on_call(struct plx_call *one, void *arg)
{
	ends_in("call", NULL);
	return 0;
}

static void on_done(struct plx_call *one, int result, void *arg)
{
	ends_in("call's done", NULL);
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

static int stop_timer(void)
{
	plx_timer_stop(&timer);
	ends_ended(&timer);
	return 0;
}

static int cancel_task(void)
{
	plx_task_cancel(&task);
	ends_ended(&task);
	return 0;
}

static int finish_signal(void)
{
	plx_signal_fini(&fired);
	ends_ended(&fired);
	return 0;
}

static int quit(void)
{
	plx_loop_quit();
	return 0;
}

static int stop(void)
{
	plx_stop();
	return 0;
}

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

static int mem_fini(void)
{
	plx_mem_fini();
	return 0;
}

ENDS_TAKE(plx_poller_remove, poller)
ENDS_TAKE(plx_fd_remove, watch)

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
	{"plx_loop_quit", ENDS_DEFERS, quit},
	{"plx_stop", ENDS_DEFERS, stop},
	{"plx_loop_run", ENDS_REFUSES, plx_loop_run},
	{"plx_loop_turn", ENDS_REFUSES, plx_loop_turn},
	{"plx_loop_until", ENDS_REFUSES, until},
	{"plx_lcores_fini", ENDS_REFUSES, lcores_fini},
	{"plx_eal_fini", ENDS_REFUSES, plx_eal_fini},
	{"plx_mem_fini", ENDS_LOGS, mem_fini},
};

static const struct ends_callback callbacks[] = {
	{"timer", ENDS_ALL},       {"task", ENDS_ALL},        {"poller", ENDS_ALL},
	{"descriptor", ENDS_RUNS}, {"signal", ENDS_ALL},      {"message", ENDS_ALL},
	{"call", ENDS_ALL},        {"call's done", ENDS_ALL},
};

const struct ends_part ends_lcore = {
	"lcore", up, kick, down, calls, PLX_ARRAY_LEN(calls), callbacks, PLX_ARRAY_LEN(callbacks),
};
