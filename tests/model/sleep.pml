/* SPDX-License-Identifier: BSD-3-Clause */
/* An lcore that goes to sleep: nothing that was sent to it, and no timer, is slept through.
 *
 *   here        what it stands for
 *   sender      an lcore that sends into its lane, whose bit in the doorbell stands (lane.pml has the
 *               rest of that): D1, and the look at `sleeping`
 *   other       a thread that is no lcore: it marks its message, rings the others' bell, and looks
 *   peer        what the provider's wait object hears of: a completion, and a signal on its
 *               descriptor where somebody has armed it
 *   sleeper     the loop: turns, and what it does when one found nothing
 *   clock       time, which passes when it likes
 *   memory      what empties the store buffers, some time later
 *
 * The lcore says that it sleeps, and looks again at what nobody else will tell of; it arms the
 * provider, which refuses where something is there; it sleeps until its eventfd, the provider's
 * descriptor, or the next timer:
 *
 *     who sends                              who sleeps
 *     S1 publish the message                 S3 say that it sleeps
 *     S2 look whether the lcore sleeps:      S4 look for messages once more
 *        take that away, write its eventfd
 *
 * All four are sequentially consistent: either S2 sees S3, or S4 sees S1. Store buffers are those of
 * lane.pml. Descriptors are the kernel's: a write to one is seen at once.
 *
 * A turn that finds nothing changes nothing, so the lcore goes to sleep as soon as one did, and a
 * sleep that nothing ends is a state in which nobody goes on: there `init` looks.
 *
 * With WAITER the sender and the sleeper are those of a NetIO queue (queue.c): S1 is a plain store, S2
 * takes `sleeping` away without a look, and S3 is a read-modify-write, too. The eventfd is read before
 * S3, and `sleeping` stays after a sleep.
 *
 * SENDERS, OTHERS and PEERS (0 or 1) are given, and how many MESSAGES each of them sends. Each
 * message that comes through a lane starts a timer. A MUT_ macro takes out a step; WITNESS names a
 * place and claims that it is never reached. mutate.sh expects a counterexample for each. */

#define SLEEPER (SENDERS + OTHERS + PEERS)
#define ALL     (SLEEPER * MESSAGES)

#ifndef WITNESS
#define WITNESS 0
#endif
#define NEVER(place, is_here) assert(WITNESS != place || !(is_here))

#define AT_LATE     1 /* the second look found something */
#define AT_REFUSED  2 /* the provider did */
#define AT_WOKEN    3 /* the eventfd ended a sleep */
#define AT_SIGNAL   4 /* the provider's descriptor did */
#define AT_TIMER    5 /* a timer did */
#define AT_STALE    6 /* the eventfd was written for a sleep that had ended already */
#define AT_RECEIVED 7 /* all came to the end */

/* Memory ------------------------------------------------------------------------------------ */

#define SENT(who)   (who) /* so many messages, of each thread */
#define OTHERS_BELL SLEEPER
#define SLEEPING    (SLEEPER + 1)
#define ARMED       (SLEEPER + 2)

byte cell[SLEEPER + 3];
byte stored_at[SLEEPER + 1]; /* the cell of a store that is not in memory yet, + 1; 0: none */
byte stored[SLEEPER + 1];

/* The kernel's. */
bool eventfd, signalled;

/* Ghosts, and what is the sleeper's own. */
byte heard;
bool timer, expired; /* one runs; it is due */
bool blocked;

#define LOAD(at) (stored_at[me] == (at) + 1 -> stored[me] : cell[at])
#define DRAINED  (stored_at[me] == 0)

inline store(at, value)
{
	atomic { DRAINED -> stored_at[me] = at + 1; stored[me] = value }
}

/* A sequentially consistent store, or a read-modify-write with that result. */
inline store_now(at, value)
{
	atomic { DRAINED -> cell[at] = value }
}

proctype memory(byte thread)
{
end:
	do
	:: d_step {
		stored_at[thread] != 0 ->
		cell[stored_at[thread] - 1] = stored[thread];
		stored_at[thread] = 0;
		stored[thread] = 0
	}
	od
}

/* Who sends --------------------------------------------------------------------------------- */

#if defined(MUT_PLAIN_PUBLISH) || defined(WAITER)
#define PUBLISH(at, value) store(at, value)
#else
#define PUBLISH(at, value) store_now(at, value)
#endif

#ifdef MUT_OTHERS_PLAIN_RING
#define RING store(OTHERS_BELL, 1)
#else
#define RING store_now(OTHERS_BELL, 1)
#endif

/* S2. Only who takes `sleeping` away writes. */
inline wake()
{
#if defined(MUT_WRITE_FIRST) /* and then a plain store, for an exchange */
	if
	:: LOAD(SLEEPING) == 1 -> eventfd = true; store_now(SLEEPING, 0)
	:: else
	fi
#else
	if
#ifdef WAITER
	:: sleeps = true
#else
	:: atomic { LOAD(SLEEPING) == 1 -> sleeps = true }
	:: LOAD(SLEEPING) == 0
#endif
	fi;
	if
	:: sleeps ->
		sleeps = false;
		atomic { DRAINED -> sleeps = (cell[SLEEPING] == 1); cell[SLEEPING] = 0 };
		if
#ifndef MUT_NO_WRITE
		:: sleeps ->
			NEVER(AT_STALE, !blocked);
			eventfd = true;
			sleeps = false
#endif
		:: else -> sleeps = false
		fi
	:: else
	fi
#endif
}

proctype sender(byte me)
{
	byte sent;
	bool sleeps;

	do
	:: sent < MESSAGES ->
		sent++;
#ifdef MUT_LOOK_FIRST
		wake();
		PUBLISH(SENT(me), sent)
#else
		PUBLISH(SENT(me), sent); /* S1 */
		wake()
#endif
	:: sent == MESSAGES -> break
	od
}

proctype other(byte me)
{
	byte sent;
	bool sleeps;

	do
	:: sent < MESSAGES ->
		sent++;
		store(SENT(me), sent);
		RING; /* S1: and what was stored before is seen with it */
		wake()
	:: sent == MESSAGES -> break
	od
}

/* A provider's own protocol, as a good one has it. */
proctype peer(byte me)
{
	byte sent;

	do
	:: sent < MESSAGES ->
		sent++;
		store_now(SENT(me), sent);
		if
		:: LOAD(ARMED) == 1 -> store_now(ARMED, 0); signalled = true
		:: LOAD(ARMED) == 0
		fi
	:: sent == MESSAGES -> break
	od
}

proctype clock()
{
end:
	do
	:: atomic { timer && !expired -> expired = true }
	od
}

/* Who sleeps -------------------------------------------------------------------------------- */

#define IS_LANE(who)  (who < SENDERS)
#define IS_OTHER(who) (who >= SENDERS && who < SENDERS + OTHERS)
#define IS_PEER(who)  (who >= SENDERS + OTHERS)
#define HAS(who)      (LOAD(SENT(who)) != taken[who])

/* What nobody else tells of: lanes, and the others' bell. */
inline look()
{
	found = LOAD(OTHERS_BELL) == 1;
	for (who : 0 .. SLEEPER - 1) {
		if
		:: IS_LANE(who) && HAS(who) -> found = true
		:: else
		fi
	}
	who = 0
}

inline take(who)
{
	atomic {
		taken[who]++;
		heard++;
		if
		:: IS_LANE(who) -> timer = true; expired = false
		:: else
		fi
	}
}

/* One message of each, at most: the next turn has the rest. */
inline turn()
{
	worked = false;
	if
	:: LOAD(OTHERS_BELL) == 1 ->
		store_now(OTHERS_BELL, 0);
		worked = true;
		for (who : 0 .. SLEEPER - 1) {
			do
			:: IS_OTHER(who) && HAS(who) -> take(who)
			:: else -> break
			od
		}
	:: LOAD(OTHERS_BELL) == 0
	fi;
	for (who : 0 .. SLEEPER - 1) {
		if
		:: !IS_OTHER(who) && HAS(who) -> take(who); worked = true
		:: else
		fi
	}
	who = 0;
	if
	:: timer && expired -> timer = false; expired = false; worked = true
	:: else
	fi
}

inline say_that_it_sleeps()
{
#ifdef MUT_PLAIN_SLEEPING
	store(SLEEPING, 1)
#else
	store_now(SLEEPING, 1) /* S3 */
#endif
}

/* fi_trywait: refused where something is there. */
inline arm()
{
#ifndef MUT_NO_ARM
	store_now(ARMED, 1);
#endif
	found = false;
#ifndef MUT_REFUSAL_IGNORED
	if
	:: PEERS > 0 && HAS(SENDERS + OTHERS) -> found = true; NEVER(AT_REFUSED, true)
	:: else
	fi
#endif
}

#ifdef MUT_NO_TIMER
#define IS_DUE false
#else
#define IS_DUE (timer && expired)
#endif

#ifdef MUT_NO_EVENTFD
#define IS_WRITTEN false
#else
#define IS_WRITTEN eventfd
#endif

inline block()
{
	blocked = true;
end_block:
	if
	:: IS_WRITTEN -> NEVER(AT_WOKEN, true)
	:: signalled -> NEVER(AT_SIGNAL, !eventfd)
	:: IS_DUE -> NEVER(AT_TIMER, !eventfd && !signalled)
	fi;
	blocked = false;
	signalled = false
}

inline read_eventfd()
{
	eventfd = false
}

inline sleep()
{
#ifdef WAITER
	read_eventfd();
#endif
#ifdef MUT_SECOND_LOOK_FIRST
	look();
	say_that_it_sleeps();
#else
	say_that_it_sleeps();
#ifdef MUT_NO_SECOND_LOOK
	found = false;
#else
	look(); /* S4 */
#endif
#endif
	NEVER(AT_LATE, found);
#ifdef MUT_READ_BEHIND_LOOK
	read_eventfd();
#endif
	if
	:: !found -> arm()
	:: else
	fi;
	if
	:: !found -> block()
	:: else
	fi;
	found = false;
#if !defined(MUT_READ_BEHIND_LOOK) && !defined(WAITER)
	read_eventfd();
#endif
#ifndef WAITER
	store_now(SLEEPING, 0)
#endif
}

proctype sleeper(byte me)
{
	byte taken[SLEEPER], who;
	bool worked, found;

end:
	do
	:: turn();
		if
		:: worked
		:: else -> sleep()
		fi
	od
}

init {
	byte i;

	atomic {
		for (i : 0 .. SLEEPER) {
			if
			:: i < SENDERS -> run sender(i)
			:: i >= SENDERS && i < SENDERS + OTHERS -> run other(i)
			:: i >= SENDERS + OTHERS && i < SLEEPER -> run peer(i)
			:: i == SLEEPER -> run sleeper(i)
			fi;
			run memory(i)
		}
		run clock();
		i = 0
	};
	/* Nobody can go on. */
	timeout -> assert(heard == ALL && !timer); /* nothing is slept through */
	NEVER(AT_RECEIVED, true)
}
