/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of lib/lcore share. A loop is all that one lcore needs to take a turn; an lcore is
 * a thread that has one. Memory that is written is kept in blocks of whole cache lines, one block
 * per writer, so that no lcore slows another one down by what it writes for itself. */
#ifndef LCORE_PRIV_H
#define LCORE_PRIV_H

#include "idle.h"
#include "owner.h"
#include "plx_lcore.h"
#include "plx_ring.h"
#include "timer.h"

#include <assert.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

/* Between two steps of a protocol: tests/stress/sleep_test.c delays there. */
#ifndef LCORE_STEP
#define LCORE_STEP() ((void)0)
#endif

/* Pollers: poller.c ------------------------------------------------------------------------ */

struct pollers {
	struct plx_poller **list; /* in the order they were added */
	uint32_t count;
	uint32_t room;
	bool running; /* inside pollers_run: the list must not be compacted */
	bool removed; /* some of the list are marked as removed */
	uint32_t lcore_id;
};

/* Add one whose first call is due at due_ns. Return: 0; -EINVAL; -ENOMEM. */
int pollers_add(struct pollers *pollers, const struct plx_poller *model,
		struct plx_poller **poller_out);

void pollers_fini(struct pollers *pollers);

/* Ask each one without a period what an lcore that is about to sleep must wait for. anyway: go on
 * where one refuses. Returns whether all were asked. Those that refused, cannot be asked, or ask
 * for a nap are `unsure` from then on. */
bool pollers_arm(struct pollers *pollers, struct plx_sleep *sleep, bool anyway);

/* When the next one with a period is due; UINT64_MAX: there is none. */
uint64_t pollers_due_ns(const struct pollers *pollers);

/* Tell all that were armed that the sleep is over. */
void pollers_woke(struct pollers *pollers, const struct plx_sleep *sleep);

/* The loop returns. */
void pollers_leave(struct pollers *pollers);

struct plx_poller {
	plx_poller_fn fn;
	void *arg;
	uint64_t due_ns;    /* 0: every turn; POLLER_REMOVED */
	uint64_t period_ns; /* 0: none */
	uint64_t calls;
	uint64_t busy_calls; /* not beside work: gcc would add to both as a vector */
	uint64_t cycles;
	uint64_t work;
	const char *name;
	struct pollers *owner;
	uint64_t random;      /* for the distance between two calls that are timed */
	uint32_t until_timed; /* calls until one is timed */
	bool unsure;          /* cannot be waited for, when it was asked last */
	bool told;            /* in the log, that it never says */
	plx_poller_arm_fn arm;
	plx_poller_woke_fn woke;
	plx_poller_leave_fn leave;          /* NULL: nothing */
	uint64_t looked_calls, looked_busy; /* idle_watch.c: what calls and busy_calls were */
};

/* Never due: one comparison serves "not yet" and "not any more". */
#define POLLER_REMOVED UINT64_MAX

void poller_next(struct plx_poller *poller, uint64_t now_ns);
int poller_call_timed(struct plx_poller *poller, uint64_t now_ns);
void pollers_compact(struct pollers *pollers);

static inline uint64_t poller_call(struct plx_poller *poller, uint64_t now_ns)
{
	int work;

	poller->calls++;
	if (plx_unlikely(--poller->until_timed == 0))
		work = poller_call_timed(poller, now_ns);
	else
		work = poller->fn(poller->arg, now_ns);
	if (work <= 0)
		return 0;
	poller->busy_calls++;
	poller->work += (uint64_t)work;
	return (uint64_t)work;
}

/* Call each one that is due. Returns the work they did. Inlined: it is most of a turn. */
static inline __attribute__((always_inline)) uint64_t pollers_run(struct pollers *pollers,
								  uint64_t now_ns)
{
	uint32_t count = pollers->count; /* one that is added meanwhile waits for the next turn */
	uint64_t work = 0;

	pollers->running = true;
	for (uint32_t i = 0; i < count; i++) {
		struct plx_poller *poller = pollers->list[i];

		if (plx_unlikely(poller->due_ns)) {
			if (now_ns < poller->due_ns)
				continue;
			/* Before the call: it may be removed in that. */
			poller_next(poller, now_ns);
		}
		work += poller_call(poller, now_ns);
	}
	pollers->running = false;
	if (plx_unlikely(pollers->removed))
		pollers_compact(pollers);
	return work;
}

/* Messages: message.c, call.c, and lane.c -------------------------------------------------- */

#define MESSAGES_TURN_MAX 16 /* messages received in one turn */

/* Empty looks in a row after which a lane's bell is cleared; the stress test takes a few. */
#ifndef LANE_COLD_LOOKS
#define LANE_COLD_LOOKS 256
#endif

#define MESSAGE_ARG UINT32_MAX /* as a size: it is a function with one argument */

/* One line: a slot of a lane, or an element of the ring that other threads use. */
struct message {
	union {
		plx_message_fn arg;
		plx_message_data_fn data;
	} fn;
	union {
		void *arg;
		alignas(8) char data[PLX_MESSAGE_BYTES];
	};
	uint32_t size_bytes;       /* of data, or MESSAGE_ARG */
	_Atomic uint32_t sequence; /* lanes: position + 1 of the message that is in it */
};

static_assert(sizeof(struct message) == PLX_CACHE_LINE, "a hop moves one line");

/* All but the sequence. */
void message_copy(struct message *to, const struct message *from);
void message_deliver(const struct message *message);

/* Written by: */
struct lane {
	/* the sender */
	alignas(2 * PLX_CACHE_LINE) uint32_t tail; /* positions run freely */
	uint32_t limit;          /* of the tail, when the head was last looked at */
	uint32_t send_mask;      /* slots - 1: constant */
	bool asked;              /* for room, and not told yet */
	_Atomic uint64_t full;   /* messages that found no room */
	struct plx_task waiting; /* for room: a ring, as that of the loop */
	/* the receiver */
	alignas(2 * PLX_CACHE_LINE) _Atomic uint32_t head; /* slots before it may be used again */
	uint32_t next;                                     /* where the next message will be */
	uint32_t empty_looks;                              /* in a row */
	uint32_t receive_mask;                             /* as send_mask */
	/* whoever fires; only where the lane was full */
	alignas(2 * PLX_CACHE_LINE) struct plx_signal ask; /* heard by the receiver */
	struct plx_signal tell;                            /* heard by the sender */
	uint32_t tell_at;                                  /* the sender's: which head is enough */
	/* the sender */
	alignas(2 * PLX_CACHE_LINE) struct message slots[];
};

#define BELL_WORDS (PLX_LCORE_MAX / 64)

/* What an idle lcore looks at: one line, however many lcores there are. */
struct bell {
	alignas(PLX_CACHE_LINE) _Atomic uint64_t lanes[BELL_WORDS]; /* a bit for each sender's id */
	_Atomic uint64_t others;   /* OTHERS_RING, OTHERS_SIGNALS */
	_Atomic uint32_t sleeping; /* 1: whoever sends, and takes that away, writes the eventfd */
	int eventfd;               /* constant */
	_Atomic uint64_t rung_tsc; /* when it was written */
};

/* Some thread that is no lcore has sent something; has fired a signal. */
#define OTHERS_RING    1
#define OTHERS_SIGNALS 2

static_assert(sizeof(struct bell) == PLX_CACHE_LINE, "a bell is one line");

struct loop;
struct lcore;

size_t lane_bytes(uint32_t slots);
uint32_t lcore_lane_slots(void); /* as configured */

/* An empty lane whose next position is `start`. slots: a power of two. */
void lane_init(struct lane *lane, uint32_t slots, uint32_t start, struct loop *from,
	       struct loop *to);

/* The lane between two lcores, made if it is not there. Return: NULL with the error text. */
struct lane *lane_open(struct lcore *from, struct lcore *to);

/* How many messages there is room for: exact once it has been 0, at least that many else. Sender.
 */
uint32_t lane_room(struct lane *lane);

/* Call the task once there is room. Return: 0; -EINVAL no function. Sender. */
int lane_wait(const char *what, struct lane *lane, struct plx_task *task);

/* Return: 0; -EAGAIN, counted. Sender. */
int lane_send(struct lane *lane, struct bell *bell, uint32_t sender, const struct message *message);

/* Receive up to `max` messages. Returns how many. Receiver. */
unsigned lane_receive(struct lane *lane, unsigned max);

/* Receive up to `max` messages from all lanes whose bit is set. Returns how many. Receiver. */
unsigned lanes_receive(struct loop *loop, unsigned max);

/* Free the lanes to this loop. Returns how many messages were in them. */
uint64_t lanes_fini(struct loop *loop);

/* The ring of threads that are no lcores: how much memory it takes, and make it there. */
size_t others_size(uint32_t slots);
int others_init(struct loop *loop, uint32_t slots, void *memory);

static_assert(BELL_WORDS == 4, "bell_is_silent looks at as many");

/* Nothing to receive: all that an idle turn asks. Written out, as gcc makes a loop of a loop here.
 */
static inline bool bell_is_silent(const struct bell *bell)
{
	/* Relaxed: what a bit stands for is looked at with acquire where it is taken. */
	uint64_t any = atomic_load_explicit(&bell->others, memory_order_relaxed) |
		       atomic_load_explicit(&bell->lanes[0], memory_order_relaxed) |
		       atomic_load_explicit(&bell->lanes[1], memory_order_relaxed) |
		       atomic_load_explicit(&bell->lanes[2], memory_order_relaxed) |
		       atomic_load_explicit(&bell->lanes[3], memory_order_relaxed);

	return !any;
}

/* Receive up to MESSAGES_TURN_MAX messages and signals. Returns how many. Not inlined: an idle turn
 * is short without it. */
__attribute__((noinline)) unsigned messages_receive(struct loop *loop);

/* Whether there is a message in some lane whose bit is set, or the others' bell was rung: what an
 * lcore that has said that it sleeps looks at once more. */
bool messages_wait(struct loop *loop);
bool lanes_wait(struct loop *loop);

/* Free what messages_receive receives from. Returns how many messages were left. */
uint64_t messages_fini(struct loop *loop);

/* The lane from the calling lcore. Return: NULL with the error text. */
struct lane *lane_to(struct lcore *to);

/* Send from the calling thread. Return: 0; -EAGAIN, counted; -ENOMEM no lane. */
int message_send(struct lcore *lcore, const struct message *message);

/* Signals: signal.c ------------------------------------------------------------------------ */

#define SIGNALS_TURN_MAX 16

struct signals {
	_Atomic(struct plx_signal *) fired; /* a stack; whoever fires pushes */
	struct plx_signal *first;           /* the lcore's own: taken from it, in order */
};

/* Call the functions of up to SIGNALS_TURN_MAX signals. Returns how many. */
unsigned signals_run(struct loop *loop);

/* The loop: loop.c ------------------------------------------------------------------------- */

/* Turns of one kind. */
struct loop_share {
	_Atomic uint64_t turns;
	_Atomic uint64_t cycles;
};

/* After a turn this long, or a sleep that overran by this much, check the clock for a step. Without
 * a step, the lcore was not running. */
#define LOOP_LONG_NS (50 * PLX_NS_PER_MS)

struct loop_counts {
	struct loop_share busy;
	struct loop_share idle;
	_Atomic uint64_t messages;
	_Atomic uint64_t timers;
	_Atomic uint64_t longest_turn_cycles;
	uint64_t noted_cycles; /* the lcore's own: a longer turn is looked at */
};

/* One turn: loop.c. */
uint64_t loop_turn(struct loop *loop);
/* The time between the two belongs to no turn: the lcore slept. */
void loop_skip_time(struct loop *loop, uint64_t from_tsc, uint64_t to_tsc);
/* The lcore did not run for so long, until end_ns. */
void loop_note_pause(struct loop *loop, uint64_t still_ns, uint64_t end_ns);
bool loop_asked_to_stop(const struct loop *loop);

/* wake.c: eventfds are of the process, and stay. Return: the one of lcore id; -errno with text. */
int wake_open(uint32_t id);
void wake_clear(int eventfd);
void wake_all(void);       /* Thread: any + signal handlers */
void wake_close_all(void); /* when nobody can call wake_all any more */
void wake_write(struct bell *bell);

/* Behind a message: S2 of sleep.c. */
static inline void wake_if_asleep(struct bell *bell)
{
	LCORE_STEP();
	if (plx_unlikely(atomic_load_explicit(&bell->sleeping, memory_order_seq_cst)))
		wake_write(bell);
}

struct loop {
	/* Written and read by the lcore alone. */
	alignas(PLX_CACHE_LINE) uint64_t turn_tsc; /* when the turn began; 0: none did */
	uint64_t now_ns;                           /* the same in ns */
	uint64_t sleep_at_ns;     /* of this idle period; 0: there is none; PLX_NEVER: poll */
	struct loop_share *share; /* that the turn before is charged to: busy or idle */
	struct pollers pollers;
	uint32_t first_lane; /* where the next look into the lanes begins */
	bool entered;        /* a turn is running: user code finds itself inside the loop */
	bool quit;
	/* Written by the lcore, read by any thread. */
	alignas(PLX_CACHE_LINE) struct loop_counts counts;
	struct bell bell; /* written by senders, and seldom by the lcore */
	/* Written when a lane is made. */
	alignas(PLX_CACHE_LINE) _Atomic(struct lane *) in[PLX_LCORE_MAX]; /* by the sender's id */
	struct plx_ring *others; /* of threads that are no lcores */
	struct fds *fds;         /* NULL: none yet */
	_Atomic bool running;    /* inside plx_loop_run */
	/* Written by whoever fires one. */
	alignas(PLX_CACHE_LINE) struct signals signals;
	/* The lcore's own. */
	struct idle idle;
	struct sleep_set *sleep_set;                   /* NULL: none yet */
	uint64_t still_ns, still_end_ns;               /* its last pause: plx_loop_stood_still_ns */
	alignas(PLX_CACHE_LINE) struct plx_task tasks; /* each turn looks at its next, ... */
	struct plx_timer_wheel wheel;                  /* ... and at next_ns */
	struct lane *out[PLX_LCORE_MAX]; /* by the receiver's id: what this lcore sends on */
	alignas(4096) char vars[PLX_LCORE_VAR_BYTES]; /* plx_lcore_var: not touched before it is
							 used */
};

static_assert(offsetof(struct loop, counts) == PLX_CACHE_LINE, "the lcore's own block: one line");
static_assert(sizeof(struct loop_counts) <= PLX_CACHE_LINE, "statistics: one line");
static_assert(offsetof(struct loop, bell) == 2 * PLX_CACHE_LINE, "senders write elsewhere");
static_assert(offsetof(struct loop, wheel.next_ns) / PLX_CACHE_LINE ==
		      offsetof(struct loop, tasks.next) / PLX_CACHE_LINE,
	      "what a turn looks at: one line");
static_assert(sizeof(struct loop) % PLX_CACHE_LINE == 0, "loops do not share lines");

/* The calling lcore's loop; NULL on any other thread. */
extern __thread struct loop *loop_self __attribute__((tls_model("initial-exec")));

/* Add to a counter that only the caller writes. A load and a store instead of one locked addition:
 * with one writer nothing is lost between them. Relaxed: other threads want a number that is whole,
 * and nothing else depends on it. */
static inline void counter_add(_Atomic uint64_t *counter, uint64_t n)
{
	uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, old + n, memory_order_relaxed);
}

static inline uint64_t counter_get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed); /* relaxed: see counter_add */
}

/* Lcores: lcore.c, and launch.c for their threads ------------------------------------------ */

/* States that nobody else sees: plx_lcore_state() says OFF. */
enum {
	LCORE_STARTING = PLX_LCORE_DONE + 1, /* the thread sets itself up */
	LCORE_FAILED,                        /* it could not */
	LCORE_ENDING,                        /* it shall end */
};

struct lcore {
	/* Set by plx_lcores_init. */
	uint32_t id;
	int node;
	pthread_t thread;
	struct plx_cpuset cpus;
	_Atomic(struct loop *) loop; /* NULL: no such lcore */
	/* Written by the main thread and the lcore in turn: who may, the state tells. */
	alignas(PLX_CACHE_LINE) _Atomic uint32_t state; /* a futex */
	int result;
	plx_lcore_fn fn;
	void *arg;
};

/* The lcore of that id, or NULL. */
struct lcore *lcore_get(uint32_t id);

/* "lcore 2 (CPU 5)" for error texts. Returns out. */
#define LCORE_TEXT_BYTES 160
const char *lcore_text(const struct lcore *lcore, char out[LCORE_TEXT_BYTES]);

/* Make the calling thread that lcore: pin it, and give it a loop. Return: 0; -errno. */
int lcore_enter(struct lcore *lcore, const struct plx_topo *on);

/* Move what the calling thread has used so far of its stack and its thread-local variables to the
 * node; -1: nowhere. */
void lcore_settle(int node);

/* Let wake_cost_get tell what was measured: once in a process, some milliseconds of the calling
 * lcore's. */
void lcore_know_wake_cost(void);

/* Become a process without lcores, as the child of a fork. Thread: that of the fork. */
void lcores_forget(void);

/* fork.c: call it before there are lcores; later calls do nothing. */
void fork_watch(void);

/* Fail as there is no lcore of that id. Return: -ENOENT; -EPERM in the child of a fork. */
int lcore_fail_unknown(const char *what, uint32_t id);

/* Start the lcore's thread, and wait until it is in state WAIT. Return: 0; -errno. */
int lcore_thread_start(struct lcore *lcore, const struct plx_topo *topo);

/* End and join the thread of an lcore that runs nothing. */
void lcore_thread_end(struct lcore *lcore);

/* Wait until the lcore is not in state RUNNING. deadline: of CLOCK_MONOTONIC; NULL: for ever.
 * Return: 0; -ETIMEDOUT. */
int lcore_wait_idle(struct lcore *lcore, const struct timespec *deadline);

/* timeout_ns from now on. Returns deadline_out, or NULL for one that never comes. */
const struct timespec *lcore_deadline(uint64_t timeout_ns, struct timespec *deadline_out);

/* Stopping: stop.c ------------------------------------------------------------------------- */

/* Written once or twice in all, and read by every loop in every turn: a line of its own. */
extern struct stop_line {
	alignas(PLX_CACHE_LINE) _Atomic bool asked;
	_Atomic int signal;
} lcore_stop;

/* Lcores start, or have ended. */
void stop_begin(void);
void stop_forget(void);
void stop_give_back(void);

#endif
