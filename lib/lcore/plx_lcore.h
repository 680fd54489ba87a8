/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Lcores: threads pinned to CPUs, the loop that each of them runs, what the loop calls (pollers,
 * timers, tasks, descriptors and signals), messages between them, and variables of which each has
 * its own. With it come plx_timer.h, timers and tasks, and plx_idle.h, how long lcores poll before
 * they sleep.
 *
 * One turn of the loop reads the clock once, takes messages from other threads, calls every poller,
 * then the timers that are due, and then the tasks that were scheduled. User code runs inside those
 * calls, to completion, and must not block. Where turns find nothing, plx_loop_run sleeps as its
 * idle policy says.
 */
#ifndef PLX_LCORE_H
#define PLX_LCORE_H

#include "plx_base.h"
#include "plx_idle.h"
#include "plx_timer.h"
#include "plx_topo.h"

PLX_BEGIN_DECLS

/* Launch ----------------------------------------------------------------------------------- */

struct plx_lcore_conf {
	const struct plx_topo *topo;     /**< to pin with; must outlive plx_lcores_fini */
	const struct plx_lcore_map *map; /**< which lcores; copied */
	uint32_t main_lcore;             /**< the calling thread's; PLX_LCORE_NONE: the least id */
	uint32_t lane_slots;             /**< messages that a lane holds: a power of two,
						PLX_LANE_SLOTS_MIN to _MAX; default _DEFAULT */
};

enum plx_lcore_state {
	PLX_LCORE_OFF,     /**< no such lcore */
	PLX_LCORE_WAIT,    /**< asleep on a futex until something is launched */
	PLX_LCORE_RUNNING, /**< inside the launched function */
	PLX_LCORE_DONE,    /**< the function returned; plx_lcore_join takes the result */
};

typedef int (*plx_lcore_fn)(void *arg);

/** Start the lcores: one pinned thread each, in state WAIT, and the calling thread, pinned too,
 * as the main lcore. May be repeated after plx_lcores_fini. Thread: setup.
 * Return: 0; -EALREADY; -EINVAL; -ENOMEM; -EPERM or -EIO pinning failed; -EAGAIN no thread. */
int plx_lcores_init(const struct plx_lcore_conf *conf);

/** Stop every loop, join and end the worker threads, give the calling thread its old affinity.
 * Waits for functions that run at most timeout_ns each.
 * What is left on the lcores ends: pollers are freed, timers stopped, messages dropped (and told of
 * in the log). Thread: main. Return: 0, also before init; -ETIMEDOUT an lcore did not come back (it
 * is named): all stays as it is but for the stop, and fini may be called again; -EPERM another
 * thread; -EBUSY inside the main lcore's loop. */
int plx_lcores_fini(uint64_t timeout_ns);

/** Whether this process was forked from one that had lcores, and has not called exec since. Such a
 * process has no lcores and cannot create any: each call of Pollux that needs them fails with
 * -EPERM and a text that names the fork. plx_eal_fini closes descriptors there, and nothing that
 * the parent uses is touched by it. Forks before plx_lcores_init or after plx_lcores_fini do not
 * count. Thread: any. */
bool plx_is_forked(void);

/** How many lcores there are, main included; 0 before init. Thread: any. */
uint32_t plx_lcore_count(void);

/** The main lcore's id. Thread: any. */
uint32_t plx_lcore_main(void);

/** The least lcore id >= from, or PLX_LCORE_NONE. Thread: any. */
uint32_t plx_lcore_next(uint32_t from);

/** Every lcore, main included. */
#define PLX_LCORE_FOREACH(id) \
	for (uint32_t id = plx_lcore_next(0); id != PLX_LCORE_NONE; id = plx_lcore_next(id + 1))

/** Every lcore but the main one. */
#define PLX_LCORE_FOREACH_WORKER(id) \
	PLX_LCORE_FOREACH (id)       \
		if (id != plx_lcore_main())

/** The first CPU of the lcore. Thread: any. Returns PLX_CPU_MAX for no such lcore. */
unsigned plx_lcore_cpu(uint32_t id);

/** The NUMA node of the lcore's first CPU. Thread: any. Returns PLX_NODE_ANY (-1) if unknown. */
int plx_lcore_node(uint32_t id);

/** The main lcore is RUNNING from init to fini. Thread: any. */
enum plx_lcore_state plx_lcore_state(uint32_t id);

/** Run fn(arg) on worker lcore id. Thread: main.
 * Return: 0; -EBUSY it is not in state WAIT; -ENOENT no such lcore; -EINVAL the main lcore. */
int plx_lcore_launch(uint32_t id, plx_lcore_fn fn, void *arg);

/** Run fn(arg) on every worker, and then on the main lcore, by calling it; refuses all if one is
 * busy. Thread: main. Return: 0; -EBUSY. *result_out (may be NULL) is the main lcore's result. */
int plx_lcore_launch_all(plx_lcore_fn fn, void *arg, int *result_out);

/** Wait until the worker's function has returned, take its result, and go back to state WAIT.
 * timeout_ns: PLX_NEVER waits for ever. Thread: main.
 * Return: 0; -ETIMEDOUT; -ENOENT; -EINVAL nothing was launched. result_out may be NULL. */
int plx_lcore_join(uint32_t id, uint64_t timeout_ns, int *result_out);

/** Join every worker that something was launched on; timeout_ns is for all of them together.
 * Thread: main. Return: 0, also if there is none, and *result_out (may be NULL) is the first result
 * that is not 0, else 0; -ETIMEDOUT one is still busy (it is named): those before it are joined. */
int plx_lcore_join_all(uint64_t timeout_ns, int *result_out);

/** Ask every loop to return. Sticky until plx_lcores_fini. Thread: any + signal handlers. */
void plx_stop(void);

/** Let SIGINT and SIGTERM call plx_stop: for programs, as a library has no business with them. Each
 * of the two is left alone if it is ignored or has a handler. A second signal ends the process as
 * if it were not caught (with _exit(128 + signal) where that has no effect, as for PID 1); signals
 * within 100 ms count as one, until the process ends. The handlers stay, with SA_RESTART and
 * SA_ONSTACK; the library must not be unloaded. Thread: any, at any time. */
void plx_stop_on_signals(void);

/** Whether plx_stop was called, or a caught signal did. Thread: any + signal handlers. */
bool plx_stopping(void);

/** The signal that stopped the loops (see plx_stop_on_signals), or 0. Thread: any. */
int plx_stop_signal(void);

/* Loop ------------------------------------------------------------------------------------- */

/** Run the calling lcore's loop until plx_stop or plx_loop_quit. It sleeps where there is nothing
 * to do, if the lcore's idle policy says so: see plx_idle_set. Thread: an lcore.
 * Return: 0; -ENOENT not an lcore; -EBUSY inside a loop already. */
int plx_loop_run(void);

/** Whether lcore id is inside plx_loop_run, so that messages to it are taken soon. Thread: any. */
bool plx_loop_is_running(uint32_t id);

/** Let the calling lcore's loop return after this turn. Thread: an lcore. */
void plx_loop_quit(void);

/** One turn, for an lcore that has a loop of its own. Never sleeps. After a turn that did work call
 * it again at once: what was sent in that one may leave with the next. Thread: an lcore.
 * Return: how much work was done; 0 idle; -ENOENT not an lcore; -EBUSY inside a turn already. */
int plx_loop_turn(void);

/** The clock of the turn that runs now: read once at its start. Between turns, and on other
 * threads, plx_now_ns(). Thread: any. */
uint64_t plx_loop_now_ns(void);

/** How long plx_loop_stood_still_ns() tells of a pause after its end. */
#define PLX_STOOD_STILL_NS PLX_NS_PER_S

/** How long the calling lcore last stood still for 50 ms or more, if that ended less than
 * PLX_STOOD_STILL_NS ago: a turn took so long, or a sleep did beyond its end, as the process was
 * stopped, had no CPU, or a callback did not return. Of several such pauses the longest.
 * Thread: any. Return: ns; 0: it did not, or this is no lcore. */
uint64_t plx_loop_stood_still_ns(void);

/** Called each turn. Does a bounded amount of work and returns how much: 0 if, and only if, there
 * was none, as the busy time and sleeping depend on it. One that says that it worked where it did
 * not keeps its lcore awake; plx_idle_stats names it. */
typedef int (*plx_poller_fn)(void *arg, uint64_t now_ns);

struct plx_poller;

/** Let the calling lcore's loop call fn every turn, or every period_ns where that is not 0, the
 * first time one period from now. Pollers are called in the order they were added; one that is
 * added inside a turn, from the next on. name: static, or alive until plx_lcores_fini. Thread: the
 * lcore (or the main thread before launch, for itself). Return: 0; -ENOENT not an lcore; -EINVAL no
 * name or function; -ENOMEM. poller_out may be NULL. */
int plx_poller_add(const char *name, plx_poller_fn fn, void *arg, uint64_t period_ns,
		   struct plx_poller **poller_out);

/** Take a poller out; allowed inside any poller, itself included. Thread: its lcore, or the main
 * thread while that lcore runs nothing. Accepts NULL. */
void plx_poller_remove(struct plx_poller *poller);

struct plx_poller_stats {
	const char *name;
	uint64_t period_ns;
	uint64_t calls;
	uint64_t busy_calls; /**< that returned more than 0 */
	uint64_t work;       /**< sum of what they returned */
	uint64_t cycles;     /**< estimate: one call in 64, at random, is timed */
};

/* A poller and an lcore that sleeps. One without a period has to say what its work will be told
 * by; where it says nothing the lcore only takes naps: sleeps of 50 us to 1 ms, the longer the less
 * there is to do. One with a period needs nothing: the lcore wakes when it is due. */

struct plx_sleep;

/** The lcore is about to sleep. Say with plx_sleep_on and plx_sleep_until what ends the sleep, and
 * make sure that it will: what comes from now on must do so. Return: 0; -EAGAIN there is work, or
 * sleeping is not safe. After several such refusals without any work the lcore naps. */
typedef int (*plx_poller_arm_fn)(void *arg, struct plx_sleep *sleep);

/** The sleep that arm was asked for is over; the poller is called next. */
typedef void (*plx_poller_woke_fn)(void *arg, const struct plx_sleep *sleep);

/** plx_loop_run returns: nothing of the loop is called until it is run again. */
typedef void (*plx_poller_leave_fn)(void *arg);

/** Whether the sleep ended since it was time, and no descriptor was ready. In woke. */
bool plx_sleep_ended_by_time(const struct plx_sleep *sleep);

/** How long it was slept; 0: it was time already. In woke. */
uint64_t plx_sleep_lasted_ns(const struct plx_sleep *sleep);

/** Let the lcore sleep when that poller has nothing to do. woke may be NULL. Thread: its lcore. */
void plx_poller_set_arm(struct plx_poller *poller, plx_poller_arm_fn arm, plx_poller_woke_fn woke);

/** Let leave finish what the poller has put off until its next call. Not called in the child of a
 * fork, nor after plx_loop_turn, which says by its return whether to call it again at once. Thread:
 * its lcore. */
void plx_poller_set_leave(struct plx_poller *poller, plx_poller_leave_fn leave);

/** Set by lib/lcore alone. */
extern __thread bool plx_loop_falls_asleep_tls PLX_INITIAL_EXEC;

/** Whether this turn is the last one before the lcore sleeps, if nothing is found: a poller that
 * looks into some places only now and then looks into all of them. Thread: an lcore. */
static inline bool plx_loop_falls_asleep(void)
{
	return plx_loop_falls_asleep_tls;
}

/** There is something that nothing will tell of: let the lcore nap. In arm. */
void plx_sleep_nap(struct plx_sleep *sleep);

/** End the sleep when fd is readable. Any number; above 30 of all pollers they stay in an epoll
 * set, so call plx_sleep_forget before you close one. In arm. Return: whether it will; no: it
 * cannot be watched, or no memory, and the lcore naps. */
bool plx_sleep_on(struct plx_sleep *sleep, int fd);

/** fd, which plx_sleep_on was called for, will be closed now. Thread: the same lcore; does nothing
 * on other threads. */
void plx_sleep_forget(int fd);

/** End the sleep at that time, or so much earlier that an adaptive lcore is awake then. In arm. */
void plx_sleep_until(struct plx_sleep *sleep, uint64_t time_ns);

/** Whether fd ended the sleep, or was ready when it ended. In woke. */
bool plx_sleep_ended_by(const struct plx_sleep *sleep, int fd);

/** Statistics of the calling lcore's i-th poller. Return: 0; -ENOENT. Thread: the lcore. */
int plx_poller_stats(uint32_t i, struct plx_poller_stats *stats_out);

/* Descriptors ------------------------------------------------------------------------------ */

struct plx_fd;

/** events: of epoll(7), those that are there. Runs on the lcore. */
typedef void (*plx_fd_fn)(int fd, uint32_t events, void *arg);

/** Let the calling lcore's loop call fn when one of `events` (EPOLLIN, EPOLLOUT, EPOLLRDHUP,
 * EPOLLPRI; with EPOLLET only when it comes up, with EPOLLONESHOT once) is there; 0: EPOLLERR and
 * EPOLLHUP, which always count, alone. A loop that is
 * awake looks every 64 turns; one that sleeps is woken. fd stays the caller's, and must stay open
 * until plx_fd_remove. Thread: an lcore. Return: 0; -ENOENT not an lcore; -EINVAL no function, or
 * other events; -EEXIST; -EPERM a descriptor that epoll cannot watch, such as a file; -EBADF;
 * -ENOMEM; -ENOSPC; -EMFILE. */
int plx_fd_add(int fd, uint32_t events, plx_fd_fn fn, void *arg, struct plx_fd **fd_out);

/** Other events; also arms a EPOLLONESHOT one again. Thread: its lcore. Return: 0; -EINVAL;
 * -ENOMEM.
 */
int plx_fd_modify(struct plx_fd *fd, uint32_t events);

/** fn is not called any more. Allowed inside fn. Accepts NULL. Thread: its lcore, or the main
 * thread while that one runs nothing. */
void plx_fd_remove(struct plx_fd *fd);

/* Signals ---------------------------------------------------------------------------------- */

struct plx_signal;

/** fires: how often it was fired since the last call; at least 1. */
typedef void (*plx_signal_fn)(struct plx_signal *signal, uint64_t fires, void *arg);

/** Something that any thread, and a signal handler, may fire without memory or room, and that is
 * heard on one lcore. Embedded in its user's struct; the fields are private. */
struct plx_signal {
	plx_signal_fn fn;
	void *arg;
	void *loop;
	struct plx_signal *next;
	uint64_t fired; /* atomic */
};

/** fn runs on lcore id. Between plx_lcores_init and plx_lcores_fini. Thread: main, or any lcore.
 * Return: 0; -ENOENT no such lcore; -EINVAL no function. */
int plx_signal_init(struct plx_signal *signal, uint32_t id, plx_signal_fn fn, void *arg);

/** Let fn be called in the lcore's loop, once for this call and all others before it. Between
 * plx_signal_init and plx_signal_fini. Thread: any + signal handlers. */
void plx_signal_fire(struct plx_signal *signal);

/** fn is not called any more, also for what was fired before. Nobody may fire any more. Thread: the
 * lcore, or the main thread while that one runs nothing. Also before plx_lcores_fini. */
void plx_signal_fini(struct plx_signal *signal);

/* Messages --------------------------------------------------------------------------------- */

/* Each ordered pair of lcores has a lane: a ring of lane_slots messages (struct plx_lcore_conf)
 * with one sender and one receiver, made on the receiver's NUMA node when it is first used (which
 * needs plx_mem_init before, and takes a lock). All threads that are no lcores share one lane more
 * to each receiver, with as many slots. A doorbell of one cache line tells an lcore which of its
 * lanes to look into.
 */

#define PLX_LANE_SLOTS_DEFAULT 256
#define PLX_LANE_SLOTS_MIN     2
#define PLX_LANE_SLOTS_MAX     65536 /**< 4 MiB a lane */
#define PLX_MESSAGE_BYTES      48    /**< that a message carries itself */

typedef void (*plx_message_fn)(void *arg);

/** Call fn(arg) on lcore id, from inside its loop; it may be the calling one, and is called by its
 * loop then, too, never by this function. Messages of one sender keep their order; a loop that is
 * not running keeps them until it does. Thread: any, between init and fini. Return: 0; -EAGAIN the
 * lane is full (counted, no error text): see plx_lcore_on_room, and other threads try later;
 * -ENOENT no such lcore; -EINVAL no function; -ENOMEM no memory for the lane. */
int plx_lcore_send(uint32_t id, plx_message_fn fn, void *arg);

/** Call the task once, in this lcore's loop, when its lane to lcore id has room: for a sender that
 * got -EAGAIN. A full lane has room again once half of it is free. Tasks that wait for one lane are
 * called in their order while there is room for one message; a task that finds none left may wait
 * again. Nothing polls meanwhile: this lcore may sleep. plx_task_cancel ends the wait. Does nothing
 * to a task that is scheduled or waits. Thread: an lcore. Return: 0; -ENOENT no such lcore, or not
 * an lcore; -EINVAL no function; -ENOMEM no memory for the lane. */
int plx_lcore_on_room(uint32_t id, struct plx_task *task);

/** data: a copy of what was sent, aligned to 8 bytes; valid during the call only. */
typedef void (*plx_message_data_fn)(const void *data, size_t size_bytes);

/** The same with a copy of up to PLX_MESSAGE_BYTES bytes in the message itself: nobody has to keep
 * or free anything. Thread and return: as plx_lcore_send; -EMSGSIZE longer. */
int plx_lcore_send_data(uint32_t id, plx_message_data_fn fn, const void *data, size_t size_bytes);

/** plx_lcore_send_data of one value: one that does not fit does not compile (an array of a negative
 * size). value: an lvalue. */
#define PLX_LCORE_SEND_VALUE(id, fn, value)       \
	plx_lcore_send_data((id), (fn), &(value), \
			    sizeof(value) *       \
				    sizeof(char[sizeof(value) <= PLX_MESSAGE_BYTES ? 1 : -1]))

/** Call fn(arg) on every lcore but the calling one: all of them or, where a lane is full, none.
 * Thread: an lcore. Return: 0; -EAGAIN; -ENOENT not an lcore; -EINVAL no function; -ENOMEM. */
int plx_lcore_broadcast(plx_message_fn fn, void *arg);

struct plx_call;

/** Runs on the lcore that was called. Returns the result. */
typedef int (*plx_call_fn)(struct plx_call *call, void *arg);

/** Runs on the lcore that called, once. */
typedef void (*plx_call_done_fn)(struct plx_call *call, int result, void *arg);

/** A request to another lcore and its response, embedded in its user's struct. Set fn, done and
 * arg; the rest is private. It must stay untouched until done is called, which may use it again. */
struct plx_call {
	plx_call_fn fn;
	plx_call_done_fn done;
	void *arg;
	int result;
	uint32_t from;
	struct plx_task response; /* that waits for room */
};

/** Run call->fn on lcore id, and then call->done here with its result. A response is never lost for
 * want of room: it waits on the lcore that was called. If the lcores end first, done is not
 * called, and *call must stay until they have ended. Thread: an lcore. Return: as plx_lcore_send;
 * -ENOENT also: not an lcore. */
int plx_lcore_call(uint32_t id, struct plx_call *call);

/* Per-lcore variables ---------------------------------------------------------------------- */

/** A variable of which every lcore has a copy of its own, zeroed at plx_lcores_init, in memory that
 * no other lcore's copies share a line with, on the node of the lcore that first writes to it. */
struct plx_lcore_var {
	uint32_t offset; /* private; 0: none */
};

#define PLX_LCORE_VAR_BYTES 32768 /**< for the variables of one lcore, all together */

/** Reserve size_bytes (aligned to align_bytes, a power of two up to 64; 0: 8) on every lcore. There
 * is no giving back. Thread: setup, before or after plx_lcores_init. Return: 0; -EINVAL; -ENOMEM
 * all PLX_LCORE_VAR_BYTES are taken. */
int plx_lcore_var_create(size_t size_bytes, size_t align_bytes, struct plx_lcore_var *var_out);

/** The copy of lcore id, between init and fini. Thread: any; what it holds is between the lcores.
 * Return: NULL no such lcore. */
void *plx_lcore_var_of(struct plx_lcore_var var, uint32_t id);

/** Where this lcore's copies begin; NULL on other threads. Set by lib/lcore alone. */
extern __thread char *plx_lcore_vars_tls PLX_INITIAL_EXEC;

/** The calling lcore's copy. Thread: an lcore. */
static inline void *plx_lcore_var_mine(struct plx_lcore_var var)
{
	return plx_lcore_vars_tls + var.offset;
}

/* Statistics ------------------------------------------------------------------------------- */

/** Always on. Times are in counts of plx_tsc(). A turn lasts until the next one begins, or
 * plx_loop_run returns; the one that runs now is not in the times yet. */
struct plx_lcore_stats {
	uint64_t turns;
	uint64_t idle_turns;    /**< in which nothing was done */
	uint64_t busy_cycles;   /**< spent in turns that did something */
	uint64_t idle_cycles;   /**< spent in turns that did nothing */
	uint64_t messages;      /**< received */
	uint64_t messages_full; /**< to this lcore that found their lane full; a response that had
				     to wait counts once */
	uint32_t lanes;         /**< to this lcore, of other lcores and itself */
	uint64_t timers;        /**< fired */
	uint64_t longest_turn_cycles;
};

/** A snapshot, exact on the lcore itself and nearly so from elsewhere. Thread: any.
 * Return: 0; -ENOENT. */
int plx_lcore_stats(uint32_t id, struct plx_lcore_stats *stats_out);

PLX_END_DECLS

#endif
