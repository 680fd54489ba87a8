/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Lcores: threads pinned to CPUs. This header has their loop, what the loop calls (pollers,
 * timers, tasks, descriptors, signals), messages between lcores, and per-lcore variables. Includes
 * plx_timer.h (timers, tasks) and plx_idle.h (how long lcores poll before they sleep).
 *
 * One turn of the loop reads the clock once, takes messages from other threads, calls every
 * poller, then expired timers, then scheduled tasks. User code runs to completion inside those
 * calls and must not block. When turns find no work, plx_loop_run sleeps by its idle policy.
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
	const struct plx_topo *topo;     /**< for pinning; must outlive plx_lcores_fini */
	const struct plx_lcore_map *map; /**< the lcores to start; copied */
	uint32_t main_lcore;             /**< lcore id of the calling thread; PLX_LCORE_NONE: the
					      lowest */
	uint32_t lane_slots;             /**< messages per lane: a power of two, PLX_LANE_SLOTS_MIN
					      to _MAX; default _DEFAULT */
	struct plx_idle_conf adopted_idle; /**< the policy of threads that plx_lcore_adopt makes
					      lcores */
};

enum plx_lcore_state {
	PLX_LCORE_OFF,     /**< no such lcore, or its thread has left */
	PLX_LCORE_WAIT,    /**< sleeps on a futex until a launch */
	PLX_LCORE_RUNNING, /**< in the launched function */
	PLX_LCORE_DONE,    /**< the function returned; plx_lcore_join takes the result */
};

typedef int (*plx_lcore_fn)(void *arg);

/** Start the lcores: one pinned thread each, in state WAIT. The calling thread is pinned too and
 * becomes the main lcore. May be repeated after plx_lcores_fini.
 * Thread: setup.
 * Return: 0; -EALREADY; -EINVAL; -ENOMEM; -EPERM or -EIO pinning failed; -EAGAIN no thread. */
int plx_lcores_init(const struct plx_lcore_conf *conf);

/** Stop all loops, join the workers, and restore the calling thread's affinity. Waits up to
 * timeout_ns per running function, and for adopted threads to leave. Frees remaining pollers and
 * watched descriptors, stops timers, and drops messages with a log line.
 * Thread: main; any that is not an lcore, if the main lcore's thread has left.
 * Return: 0, also before init; -ETIMEDOUT an lcore (named in the error text) did not return: only
 * the stop took effect, call it again; -EPERM another thread, -EBUSY in a callback: nothing was
 * done.
 */
int plx_lcores_fini(uint64_t timeout_ns);

/** Make the calling thread an lcore, until plx_lcore_leave. It must call that before it ends, also
 * by pthread_exit: otherwise an error is logged, its id is never free again, and plx_eal_fini fails
 * with -ETIMEDOUT after 5 s. It gets the lcore, CPUs and idle policy
 * of a worker that was never launched, if any. Otherwise it is not pinned, and has the policy of
 * plx_lcore_conf: a thread that inherited the CPU of an lcore gets back those that the process had
 * before plx_lcores_init. An id is used again once its thread has left and every buffer of its
 * pools was returned; values of per-lcore variables stay.
 * Thread: any, between init and fini.
 * Return: 0; -EALREADY it is an lcore; -ENOENT before init; -ESHUTDOWN the lcores are being ended;
 * -ENOSPC PLX_LCORE_MAX lcores; -ENOMEM; -EMFILE; -EPERM in the child of a fork. */
int plx_lcore_adopt(void);

/** Make the calling thread an ordinary thread again, with the CPUs that it had. Links and listeners
 * of the lcore close in order, for up to 0.5 s; then they are aborted. Callbacks run meanwhile. Its
 * timers and tasks stop; its pollers and descriptors are removed. Destroy sockets, clients and
 * services of the lcore before, and stop sending to it from other threads: messages to it wait
 * for the next thread with that id. The main lcore may leave, too: then plx_eal_fini is called on
 * a thread that is not an lcore.
 * Thread: an adopted lcore, or the main one.
 * Return: 0; -ENOENT not an lcore; -EBUSY in a callback; -EPERM a worker, or in the child of a
 * fork. */
int plx_lcore_leave(void);

/** Whether this process was forked from one that had lcores, and has not called exec since. Such a
 * process has no lcores and cannot create any: calls that need them return -EPERM with a text that
 * names the fork. plx_eal_fini closes descriptors there and does not affect the parent. Forks
 * before plx_lcores_init or after plx_lcores_fini do not count.
 * Thread: any. */
bool plx_is_forked(void);

/** Number of lcores, with the main one and those whose thread has left; 0 before init. Thread:
 * any. */
uint32_t plx_lcore_count(void);

/** The main lcore's id; PLX_LCORE_NONE: its thread has left. Thread: any. */
uint32_t plx_lcore_main(void);

/** The lowest lcore id >= from, or PLX_LCORE_NONE. Thread: any. */
uint32_t plx_lcore_next(uint32_t from);

/** Every lcore, main included. */
#define PLX_LCORE_FOREACH(id) \
	for (uint32_t id = plx_lcore_next(0); id != PLX_LCORE_NONE; id = plx_lcore_next(id + 1))

/** Whether the lcore's thread was started by plx_lcores_init. Thread: any. */
bool plx_lcore_is_worker(uint32_t id);

/** Every lcore that is a worker. */
#define PLX_LCORE_FOREACH_WORKER(id) \
	PLX_LCORE_FOREACH (id)       \
		if (plx_lcore_is_worker(id))

/** The first CPU of the lcore; PLX_CPU_MAX if unknown, or not pinned. Thread: any. */
unsigned plx_lcore_cpu(uint32_t id);

/** The NUMA node of the lcore's first CPU; PLX_NODE_ANY (-1) if unknown. Thread: any. */
int plx_lcore_node(uint32_t id);

/** The state of an lcore. The main lcore is RUNNING from init to fini, an adopted one until it
 * leaves. Thread: any. */
enum plx_lcore_state plx_lcore_state(uint32_t id);

/** Run fn(arg) on worker lcore id.
 * Thread: main.
 * Return: 0; -EBUSY not in state WAIT; -ENOENT no such lcore; -EINVAL the main lcore. */
int plx_lcore_launch(uint32_t id, plx_lcore_fn fn, void *arg);

/** Run fn(arg) on every worker, then call it on the main lcore. *result_out (may be NULL) is the
 * main lcore's result.
 * Thread: main.
 * Return: 0; -EBUSY a worker is busy, nothing was launched. */
int plx_lcore_launch_all(plx_lcore_fn fn, void *arg, int *result_out);

/** Wait for the worker's function, take its result, and return the worker to state WAIT.
 * result_out may be NULL. timeout_ns: PLX_NEVER waits forever.
 * Thread: main.
 * Return: 0; -ETIMEDOUT; -ENOENT; -EINVAL nothing was launched. */
int plx_lcore_join(uint32_t id, uint64_t timeout_ns, int *result_out);

/** Join every worker with a launched function; timeout_ns is the total. *result_out (may be NULL)
 * is the first result that is not 0, else 0.
 * Thread: main.
 * Return: 0, also if there are none; -ETIMEDOUT one (named in the error text) is still busy, those
 * before it are joined. */
int plx_lcore_join_all(uint64_t timeout_ns, int *result_out);

/** Make every loop return, now and until plx_lcores_fini. Thread: any + signal handlers. */
void plx_stop(void);

/** Make SIGINT and SIGTERM call plx_stop. For programs, not for libraries. A signal that is
 * ignored or has a handler is left alone. A second signal ends the process as if uncaught (by
 * _exit(128 + signal) if that has no effect, as for PID 1). Signals within 100 ms count as one. The
 * handlers stay until the process ends, with SA_RESTART and SA_ONSTACK; do not unload the library.
 * Thread: any, at any time. */
void plx_stop_on_signals(void);

/** Whether plx_stop was called, or a signal caught. Thread: any + signal handlers. */
bool plx_stopping(void);

/** The signal that stopped the loops (plx_stop_on_signals), or 0. Thread: any. */
int plx_stop_signal(void);

/* Loop ------------------------------------------------------------------------------------- */

/** Run the calling lcore's loop until plx_stop or plx_loop_quit. It sleeps when idle, by the
 * lcore's idle policy: see plx_idle_set.
 * Thread: an lcore.
 * Return: 0; -ENOENT not an lcore; -EBUSY inside a loop already. */
int plx_loop_run(void);

/** Whether lcore id is inside plx_loop_run, so that it takes messages soon. Thread: any. */
bool plx_loop_is_running(uint32_t id);

/** Make the calling lcore's loop return after this turn.
 * Thread: an lcore + signal handlers on it. */
void plx_loop_quit(void);

/** Run one turn, for an lcore with its own loop. Never sleeps. After a turn with work call it
 * again at once, because sends of one turn may leave in the next.
 * Thread: an lcore.
 * Return: amount of work; 0 idle; -ENOENT not an lcore; -EBUSY inside a turn already. */
int plx_loop_turn(void);

/** Whether the caller is inside a turn: in a callback, which must not run the loop or end what runs
 * it: such calls return -EBUSY. Thread: any; false: not an lcore. */
bool plx_loop_in_turn(void);

/** Run turns, without sleep, until is_done(arg) or until the time is up. is_done is called before
 * each turn. plx_stop and plx_loop_quit do not end it, because programs drain after them: to end
 * then, is_done tests plx_stopping(). Thread: an lcore.
 * Return: 0 it is done; -ETIMEDOUT; -ENOENT not an lcore, also once is_done has ended the lcores;
 * -EBUSY inside a turn already; -EPERM in a child forked meanwhile. */
int plx_loop_until(bool (*is_done)(void *arg), void *arg, uint64_t timeout_ns);

/** Clock of the current turn, read once at its start. Between turns, and on other threads,
 * plx_now_ns(). Thread: any. */
uint64_t plx_loop_now_ns(void);

/** How long plx_loop_stood_still_ns() reports a pause after its end. */
#define PLX_STOOD_STILL_NS PLX_NS_PER_S

/** The longest pause of the calling lcore that was at least 50 ms and ended less than
 * PLX_STOOD_STILL_NS ago. A pause is a long turn or an overlong sleep: the process was stopped, had
 * no CPU, or a callback did not return.
 * Thread: any.
 * Return: ns; 0: no such pause, or not an lcore. */
uint64_t plx_loop_stood_still_ns(void);

/** Does a bounded amount of work each turn. Returns how much: 0 if and only if there was none.
 * Busy time and sleeping depend on it: a poller that wrongly reports work keeps its lcore awake,
 * and struct plx_idle_stats names it. */
typedef int (*plx_poller_fn)(void *arg, uint64_t now_ns);

struct plx_poller;

/** Call fn in each turn of the calling lcore's loop. Pollers run in the order in which they were
 * added; one added inside a turn runs from the next turn on. name: static, or alive until
 * plx_lcores_fini. poller_out may be NULL. Thread: the lcore (or the main thread before launch, for
 * itself). Return: 0; -ENOENT not an lcore; -EINVAL no name or function; -ENOMEM. */
int plx_poller_add(const char *name, plx_poller_fn fn, void *arg, struct plx_poller **poller_out);

/** Remove a poller. Allowed inside any poller, itself included. Accepts NULL.
 * Thread: its lcore, or the main thread while that lcore runs nothing. */
void plx_poller_remove(struct plx_poller *poller);

/* Sleeping with pollers. A poller must state what announces its work. Otherwise its lcore only
 * naps: it sleeps 50 us to 1 ms, longer the less work there is. */

struct plx_sleep;

/** Prepare to sleep: look once more for work, also where the poller looks rarely. Make sure that
 * all work from now on ends the sleep: a descriptor of plx_fd_add becomes ready, a message or a
 * signal arrives, or plx_sleep_until's time has come. Return: 0; -EAGAIN there is work, or sleeping
 * is not safe. After several refusals without work the lcore naps. */
typedef int (*plx_poller_arm_fn)(void *arg, struct plx_sleep *sleep);

/** plx_loop_run returns: the loop calls nothing until it runs again. */
typedef void (*plx_poller_leave_fn)(void *arg);

/** Let the lcore sleep while this poller is idle. Thread: its lcore. */
void plx_poller_set_arm(struct plx_poller *poller, plx_poller_arm_fn arm);

/** Set a function that finishes work which the poller deferred to its next call. Not called in the
 * child of a fork, nor after plx_loop_turn, whose return value says whether to call it again at
 * once.
 * Thread: its lcore. */
void plx_poller_set_leave(struct plx_poller *poller, plx_poller_leave_fn leave);

/** Make the lcore nap, because some work is not announced. In arm. */
void plx_sleep_nap(struct plx_sleep *sleep);

/** End the sleep at time_ns, or earlier so that an adaptive lcore is awake then. In arm. */
void plx_sleep_until(struct plx_sleep *sleep, uint64_t time_ns);

/* Descriptors ------------------------------------------------------------------------------ */

struct plx_fd;

/** Most descriptors that one check of the loop handles. The others follow in the next one. */
#define PLX_FD_BURST_MAX 32

/** events: those of epoll(7) that occurred. Runs on the lcore. */
typedef void (*plx_fd_fn)(int fd, uint32_t events, void *arg);

/** Call fn in the calling lcore's loop when fd has one of `events`: EPOLLIN, EPOLLOUT, EPOLLRDHUP,
 * EPOLLPRI; with EPOLLET only on a change, with EPOLLONESHOT once. EPOLLERR and EPOLLHUP are always
 * included; 0 means only those. An awake loop checks every 64 turns; a sleeping one wakes.
 * Ownership: the caller keeps fd, and keeps it open until plx_fd_remove.
 * Thread: an lcore.
 * Return: 0; -ENOENT not an lcore; -EINVAL no function, or other events; -EEXIST; -EPERM epoll
 * cannot watch it, such as a file; -EBADF; -ENOMEM; -ENOSPC; -EMFILE. */
int plx_fd_add(int fd, uint32_t events, plx_fd_fn fn, void *arg, struct plx_fd **fd_out);

/** Change the events; also re-arms EPOLLONESHOT.
 * Thread: its lcore.
 * Return: 0; -EINVAL; -ENOMEM. */
int plx_fd_modify(struct plx_fd *fd, uint32_t events);

/** Stop watching: fn does not run after this. Allowed inside fn. Accepts NULL.
 * Thread: its lcore, or the main thread while that lcore runs nothing. */
void plx_fd_remove(struct plx_fd *fd);

/* Signals ---------------------------------------------------------------------------------- */

struct plx_signal;

/** fires: number of fires since the last call; at least 1. */
typedef void (*plx_signal_fn)(struct plx_signal *signal, uint64_t fires, void *arg);

/** A call on one lcore that any thread and any signal handler can trigger. Firing needs no memory
 * and never fails. Embedded in the user's struct; the fields are private. */
struct plx_signal {
	plx_signal_fn fn;
	void *arg;
	void *loop;
	struct plx_signal *next;
	uint64_t fired; /* atomic */
};

/** Set up a signal whose fn runs on lcore id. Between plx_lcores_init and plx_lcores_fini.
 * Thread: main, or any lcore.
 * Return: 0; -ENOENT no such lcore; -EINVAL no function. */
int plx_signal_init(struct plx_signal *signal, uint32_t id, plx_signal_fn fn, void *arg);

/** Make the lcore's loop call fn, once for this and all earlier fires. Between plx_signal_init and
 * plx_signal_fini.
 * Thread: any + signal handlers. */
void plx_signal_fire(struct plx_signal *signal);

/** fn does not run after this, even if the signal was fired. No thread may fire it from now on.
 * Call it before plx_lcores_fini.
 * Thread: the lcore, or the main thread while that lcore runs nothing. */
void plx_signal_fini(struct plx_signal *signal);

/* Messages --------------------------------------------------------------------------------- */

/* Each ordered pair of lcores has a lane: a ring of lane_slots messages (struct plx_lcore_conf)
 * with one sender and one receiver. Its first use creates it on the receiver's NUMA node, which
 * requires plx_mem_init and takes a lock. All other threads share one lane of the same size per
 * receiver. A doorbell of one cache line tells an lcore which lanes to check. */

#define PLX_LANE_SLOTS_DEFAULT 256
#define PLX_LANE_SLOTS_MIN     2
#define PLX_LANE_SLOTS_MAX     65536 /**< 4 MiB per lane */
#define PLX_MESSAGE_BYTES      48    /**< payload of a message */

typedef void (*plx_message_fn)(void *arg);

/** Call fn(arg) in the loop of lcore id, which may be the calling one; fn never runs inside this
 * function. Messages of one sender keep their order. A loop that does not run keeps them.
 * Thread: any, between init and fini.
 * Return: 0; -EAGAIN lane full (counted, no error text): see plx_lcore_on_room, other threads
 * retry later; -ENOENT no such lcore; -EINVAL no function; -ENOMEM no memory for the lane. */
int plx_lcore_send(uint32_t id, plx_message_fn fn, void *arg);

/** After -EAGAIN: run the task once in this lcore's loop when its lane to lcore id is half free.
 * Tasks waiting for a lane run in order, each only while there is room for one message; a task that
 * finds none may wait again. Waiting needs no polling: this lcore may sleep. plx_task_cancel ends
 * the wait. Does nothing if the task is scheduled or waiting.
 * Thread: an lcore.
 * Return: 0; -ENOENT no such lcore, or not an lcore; -EINVAL no function; -ENOMEM no memory for
 * the lane. */
int plx_lcore_on_room(uint32_t id, struct plx_task *task);

/** data: a copy of what was sent, aligned to 8 bytes; valid during the call. */
typedef void (*plx_message_data_fn)(const void *data, size_t size_bytes);

/** plx_lcore_send with a copy of up to PLX_MESSAGE_BYTES bytes inside the message, which nobody
 * frees.
 * Thread and return: as plx_lcore_send; -EMSGSIZE longer. */
int plx_lcore_send_data(uint32_t id, plx_message_data_fn fn, const void *data, size_t size_bytes);

/** plx_lcore_send_data of one value, an lvalue. A value above PLX_MESSAGE_BYTES does not compile
 * (array of negative size). */
#define PLX_LCORE_SEND_VALUE(id, fn, value)       \
	plx_lcore_send_data((id), (fn), &(value), \
			    sizeof(value) *       \
				    sizeof(char[sizeof(value) <= PLX_MESSAGE_BYTES ? 1 : -1]))

struct plx_call;

/** Runs on the called lcore. Returns the result. */
typedef int (*plx_call_fn)(struct plx_call *call, void *arg);

/** Runs once on the calling lcore. */
typedef void (*plx_call_done_fn)(struct plx_call *call, int result, void *arg);

/** A request to another lcore and its response, embedded in the user's struct. Set fn, done and
 * arg; the rest is private. Leave it unchanged until done runs, which may reuse it. */
struct plx_call {
	plx_call_fn fn;
	plx_call_done_fn done;
	void *arg;
	int result;
	uint32_t from;
	struct plx_task response; /* waits for room */
};

/** Run call->fn on lcore id, then call->done here with its result. The response is never lost: if
 * the lane is full, it waits on the called lcore. If the lcores end first, done does not run, and
 * *call must stay until they have ended.
 * Thread: an lcore.
 * Return: as plx_lcore_send; -ENOENT also: not an lcore. */
int plx_lcore_call(uint32_t id, struct plx_call *call);

/* Per-lcore variables ---------------------------------------------------------------------- */

/** A variable with one copy per lcore, zeroed at plx_lcores_init. Copies share no cache lines, and
 * lie on the NUMA node of the lcore that first writes to them. */
struct plx_lcore_var {
	uint32_t offset; /* private; 0: none */
};

#define PLX_LCORE_VAR_BYTES 32768 /**< for all variables of one lcore */

/** Reserve size_bytes on every lcore, aligned to align_bytes: a power of two up to 64; 0: 8. It
 * cannot be released.
 * Thread: setup, before or after plx_lcores_init.
 * Return: 0; -EINVAL; -ENOMEM PLX_LCORE_VAR_BYTES are used up. */
int plx_lcore_var_create(size_t size_bytes, size_t align_bytes, struct plx_lcore_var *var_out);

/** The copy of lcore id, between init and fini; NULL: no such lcore. The caller orders accesses by
 * several threads.
 * Thread: any. */
void *plx_lcore_var_of(struct plx_lcore_var var, uint32_t id);

/** Start of this lcore's copies; NULL on other threads. Set by lib/lcore alone. */
extern __thread char *plx_lcore_vars_tls PLX_INITIAL_EXEC;

/** The calling lcore's copy. Thread: an lcore. */
static inline void *plx_lcore_var_mine(struct plx_lcore_var var)
{
	return plx_lcore_vars_tls + var.offset;
}

/* Statistics ------------------------------------------------------------------------------- */

/** Always counted. Times are counts of plx_tsc(). A turn lasts until the next one begins or
 * plx_loop_run returns; the current turn is not included. */
struct plx_lcore_stats {
	uint64_t turns;
	uint64_t idle_turns;    /**< turns without work */
	uint64_t busy_cycles;   /**< time in turns with work */
	uint64_t idle_cycles;   /**< time in turns without work */
	uint64_t messages;      /**< received */
	uint64_t messages_full; /**< messages to this lcore that found their lane full; a response
				     that had to wait counts once */
	uint32_t lanes;         /**< lanes to this lcore, its own included */
	uint64_t timers;        /**< expired timers */
	uint64_t longest_turn_cycles;
};

/** A snapshot: exact on the lcore itself, approximate from other threads.
 * Thread: any.
 * Return: 0; -ENOENT. */
int plx_lcore_stats_read(uint32_t id, struct plx_lcore_stats *stats_out);

PLX_END_DECLS

#endif
