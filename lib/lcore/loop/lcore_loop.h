/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of an lcore. Written memory is in blocks of whole cache lines, one block per writer, so
 * that lcores do not slow each other down. In reading order:
 *
 *   loop.c     a turn, and running until the loop is stopped; per-lcore variables
 *   stop.c     stopping all loops, also by signals such as SIGTERM
 *   poller.c   functions called every turn
 *   timer.c    functions called at a time: a timing wheel
 *   task.c     functions called once at the end of a turn: a ring
 *   signal.c   functions called when another thread or a signal handler fires
 *   fd.c       functions called when a descriptor is ready */
#ifndef LCORE_LOOP_H
#define LCORE_LOOP_H

#include "idle.h"
#include "list.h"
#include "messages.h"
#include "plx_lcore.h"
#include "plx_watch.h"

#include <sys/epoll.h>

/* Pollers: poller.c ------------------------------------------------------------------------ */

struct pollers {
	struct plx_poller **list; /* in the order in which they were added */
	uint32_t count;
	bool running; /* inside pollers_run: the list must not be compacted */
	bool removed; /* some entries are marked as removed */
	uint32_t lcore_id;
};

/* Return: 0; -ENOMEM. */
int pollers_add(struct pollers *pollers, const struct plx_poller *model, struct plx_poller **out);
void pollers_fini(struct pollers *pollers);
/* Remove those that no library keeps. */
void pollers_park(struct pollers *pollers);

/* Arm each poller. anyway: continue if one refuses. Return:
 * whether all were asked. Sets `unsure` of each one: whether it refused, cannot be asked, or asked
 * for a nap. */
bool pollers_arm(struct pollers *pollers, struct plx_sleep *sleep, bool anyway);
/* Call when the loop returns. */
void pollers_leave(struct pollers *pollers);

struct plx_poller {
	/* On a separate line: written in every turn. */
	alignas(PLX_CACHE_LINE) plx_poller_fn fn;
	void *arg;
	uint64_t busy_calls;
	bool removed;
	const char *name;
	struct pollers *owner;
	bool unsure; /* could not be waited for when last asked */
	bool told;   /* logged that it cannot be armed */
	bool kept;   /* by pollers_park */
	plx_poller_arm_fn arm;
	plx_poller_leave_fn leave; /* NULL: nothing */
	uint64_t looked_busy;      /* idle_watch.c: busy_calls at its last check */
};

void pollers_compact(struct pollers *pollers);

static inline void pollers_ran(struct pollers *pollers)
{
	pollers->running = false;
	if (plx_unlikely(pollers->removed))
		pollers_compact(pollers);
}

/* Call each poller. Return: the sum of their work. Inlined: most of a turn. */
static inline PLX_ALWAYS_INLINE uint64_t pollers_run(struct pollers *pollers, uint64_t now_ns)
{
	uint32_t count = pollers->count; /* one added meanwhile waits for the next turn */
	uint64_t work = 0;

	pollers->running = true;
	for (uint32_t i = 0; i < count; i++) {
		struct plx_poller *poller = pollers->list[i];
		int done = plx_likely(!poller->removed) ? poller->fn(poller->arg, now_ns) : 0;

		if (done <= 0)
			continue;
		poller->busy_calls++;
		work += (uint64_t)done;
	}
	pollers_ran(pollers);
	return work;
}

/* Timers: timer.c -------------------------------------------------------------------------- */

#define WHEEL_TICK_SHIFT 10 /* 1 tick = 2^10 ns = 1.024 us */
#define WHEEL_SLOT_BITS  6
#define WHEEL_SLOTS      (1u << WHEEL_SLOT_BITS)
#define WHEEL_LEVELS     9  /* 9 * 6 + 10 = 64: every 64-bit time has a slot */
#define WHEEL_FIRED_MAX  64 /* timers fired per turn */
#define WHEEL_MOVED_MAX  32 /* timers moved per turn and level */

struct wheel_slot {
	struct plx_timer *first;
	struct plx_timer **moved_next; /* where the next one from a higher level is inserted */
	struct plx_timer **last_next;  /* where the next one that starts is appended */
};

struct plx_timer_wheel {
	uint64_t next_ns;                /* earliest work: an idle turn looks at nothing else */
	uint64_t tick;                   /* no slot with timers ends before it */
	uint32_t begun;                  /* bit n: level n's first slot is partly moved */
	uint32_t levels;                 /* bit n: level n has timers */
	uint64_t fired;                  /* total */
	uint64_t occupied[WHEEL_LEVELS]; /* bit n: slot n of the level has timers */
	struct wheel_slot slots[WHEEL_LEVELS * WHEEL_SLOTS];
	uint32_t lcore_id;
};

void wheel_init(struct plx_timer_wheel *wheel, uint64_t now_ns);
void wheel_fini(struct plx_timer_wheel *wheel);
/* Start or move a timer: due at expiry_ns, but no earlier than the next tick. */
void wheel_start(struct plx_timer_wheel *wheel, struct plx_timer *timer, uint64_t now_ns,
		 uint64_t expiry_ns);

/* Fire timers that are due, in the order of expiry. Timers overtake those in a slot with more than
 * WHEEL_MOVED_MAX. Work above the bounds is left for the next call (next_ns stays <= now_ns).
 * Return: timers fired or moved. */
unsigned wheel_expire(struct plx_timer_wheel *wheel, uint64_t now_ns);

static inline uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* For a sleep. UINT64_MAX: never. */
struct due {
	uint64_t next_ns;  /* earliest timer or other work */
	uint64_t exact_ns; /* earliest one that must not be late */
	uint64_t early_ns; /* how long to wake before that */
	unsigned looks;    /* timers that were looked at */
};

/* When the next timers fire, ignoring moves between levels, which wheel->next_ns includes. If many
 * are close together, it may return the start of their slot. */
struct due wheel_due(const struct plx_timer_wheel *wheel);

/* Tasks: task.c ---------------------------------------------------------------------------- */

/* ring: the head, a task without a function. */
void tasks_init(struct plx_task *ring, uint32_t lcore_id);
/* Cancel all. */
void tasks_fini(struct plx_task *ring);
/* Append a task; does nothing if it is scheduled. Return: 0; -EINVAL no function. */
int task_append(const char *what, struct plx_task *ring, struct plx_task *task);
/* Run the first task scheduled before ring->run was raised. Return: false: none. */
bool task_run_next(struct plx_task *ring);
/* Run the tasks scheduled before the call. Return: their number. */
uint64_t tasks_run(struct plx_task *ring);

static inline bool tasks_wait(const struct plx_task *ring)
{
	return ring->next != ring;
}

/* Signals: signal.c ------------------------------------------------------------------------ */

#define SIGNALS_TURN_MAX 16

struct signals {
	_Atomic(struct plx_signal *) fired; /* a stack; firing threads push */
	struct plx_signal *first;           /* the lcore's: taken from `fired`, in order */
};

/* Call the functions of up to SIGNALS_TURN_MAX signals. Return: their number. */
unsigned signals_run(struct loop *loop);

/* Descriptors: fd.c ------------------------------------------------------------------------ */

struct fds {
	struct plx_watch_set set; /* for libraries */
	struct plx_watch bell;    /* the lcore's eventfd */
	bool rang;
	int epoll;
	uint32_t until_look;       /* turns */
	struct plx_poller *poller; /* NULL: the program has added no descriptor yet */
	LIST_HEAD(, plx_fd) list;
	struct epoll_event
		events[PLX_FD_BURST_MAX]; /* data.ptr: a struct plx_watch; NULL: removed */
	unsigned next, count;             /* those from next on are not handled yet */
};

/* Return: 0; -errno: call fds_fini. */
int fds_init(struct fds *fds, int eventfd);
void fds_fini(struct fds *fds);
/* Remove the program's descriptors. */
void fds_park(struct fds *fds);
/* Block until there are events, for wait_ns. Return: their number; 0: the time is over; -1: a
 * signal handler ran. */
int fds_wait(struct fds *fds, uint64_t wait_ns);
/* Handle the events. Sets `rang` if one is the bell's. Return: how many are of the program's
 * descriptors. */
unsigned fds_handle(struct fds *fds);
void fds_forget(struct fds *fds); /* in the child of a fork: close the shared descriptor */

/* The loop: loop.c ------------------------------------------------------------------------- */

/* Turns with work, or without. */
struct loop_share {
	_Atomic uint64_t turns;
	_Atomic uint64_t cycles;
};

/* After a turn this long, or a sleep that overran by this much, check for a clock step. Without
 * one, the lcore did not run. */
#define LOOP_LONG_NS (50 * PLX_NS_PER_MS)

struct loop_counts {
	struct loop_share busy;
	struct loop_share idle;
	_Atomic uint64_t messages;
	_Atomic uint64_t timers;
	_Atomic uint64_t longest_turn_cycles;
	uint64_t noted_cycles; /* the lcore's: longer turns are examined */
};

/* Call on that lcore. Return: NULL, with errno: no memory for loop_bytes, or no descriptor. */
struct loop *loop_create(uint32_t lcore_id, int eventfd);
void loop_destroy(struct loop *loop);
/* Whether messages, such as responses, wait for room at other lcores. */
bool loop_owes(const struct loop *loop);
/* Its thread leaves: stop or remove what its users have in it. */
void loop_park(struct loop *loop);
/* The calling thread continues with a parked one. */
void loop_begin_again(struct loop *loop);
size_t loop_bytes(void);
/* In the child of a fork: no more turns, and nothing more in this one. */
void loop_end_turns(struct loop *loop);

uint64_t loop_turn(struct loop *loop);
/* The lcore slept between the two times: charge them to no turn. */
void loop_skip_time(struct loop *loop, uint64_t from_tsc, uint64_t to_tsc);
/* The lcore did not run for still_ns until end_ns. */
void loop_note_pause(struct loop *loop, uint64_t still_ns, uint64_t end_ns);
bool loop_asked_to_stop(const struct loop *loop);

struct loop {
	/* Written and read only by the lcore. */
	alignas(PLX_CACHE_LINE) uint64_t turn_tsc; /* start of the turn; 0: none yet */
	uint64_t now_ns;                           /* the same in ns */
	uint64_t sleep_at_ns;     /* of this idle period; 0: none; PLX_NEVER: poll */
	struct loop_share *share; /* busy or idle: where the last turn is charged */
	struct pollers pollers;
	uint32_t first_lane; /* where the next check of the lanes starts */
	bool entered;        /* a turn is running: user code is inside the loop */
	_Atomic bool quit;   /* signal handlers of its thread may set it */
	/* Written by the lcore, read by any thread. */
	alignas(PLX_CACHE_LINE) struct loop_counts counts;
	struct bell bell; /* written by senders, rarely by the lcore */
	/* Written when a lane is created. */
	alignas(PLX_CACHE_LINE) _Atomic(struct lane *) in[PLX_LCORE_MAX]; /* by the sender's id */
	struct plx_ring *others; /* for threads that are not lcores */
	_Atomic bool running;    /* inside plx_loop_run */
	/* Written by firing threads. */
	alignas(PLX_CACHE_LINE) struct signals signals;
	/* Private to the lcore. */
	struct idle idle;
	struct fds fds;
	uint64_t still_ns, still_end_ns; /* the last pause: plx_loop_stood_still_ns */
	void (*on_long_turn)(void *arg, uint64_t took_ns); /* NULL: none */
	void *on_long_turn_arg;
	alignas(PLX_CACHE_LINE) struct plx_task tasks; /* each turn reads its next, ... */
	struct plx_timer_wheel wheel;                  /* ... and next_ns */
	struct lane *out[PLX_LCORE_MAX]; /* by the receiver's id: lanes that this lcore sends on */
	alignas(4096) char vars[PLX_LCORE_VAR_BYTES]; /* plx_lcore_var: first touched by users */
};

static_assert(offsetof(struct loop, counts) == PLX_CACHE_LINE, "the lcore's own block: one line");
static_assert(sizeof(struct loop_counts) <= PLX_CACHE_LINE, "statistics: one line");
static_assert(offsetof(struct loop, bell) == 2 * PLX_CACHE_LINE, "senders write elsewhere");
static_assert(offsetof(struct loop, wheel.next_ns) / PLX_CACHE_LINE ==
		      offsetof(struct loop, tasks.next) / PLX_CACHE_LINE,
	      "what a turn looks at: one line");
static_assert(sizeof(struct loop) % PLX_CACHE_LINE == 0, "loops do not share lines");

/* The calling lcore's loop; NULL on any other thread. */
extern __thread struct loop *loop_self PLX_INITIAL_EXEC;

/* Stopping: stop.c ------------------------------------------------------------------------- */

/* Rarely written, and read by every loop in every turn: on a separate line. */
extern struct stop_line {
	alignas(PLX_CACHE_LINE) _Atomic bool asked;
	_Atomic int signal;
} lcore_stop;

/* Lcores start; lcores have ended. */
void stop_begin(void);
void stop_forget(void);
void stop_give_back(void);

#endif
