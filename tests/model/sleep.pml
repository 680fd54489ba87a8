/* SPDX-License-Identifier: BSD-3-Clause */
/* An lcore that goes to sleep: nothing that was sent to it, and no timer, is slept through.
 *
 *   here        what it stands for
 *   sender      an lcore that sends into its lane, whose bit in the doorbell stands (lane.pml has the
 *               rest of that): D1, and the look at `sleeping`
 *   other       a thread that is no lcore: it marks its message, rings the others' bell, and looks
 *   peer        events of the provider's wait object: a completion, and a signal on its descriptor if
 *               it is armed
 *   sleeper     the loop: turns, and what it does when one found nothing
 *   clock       time, which passes when it likes
 *   memory      what empties the store buffers, some time later
 *
 * The lcore announces its sleep, and looks again at what no event reports. It arms the provider,
 * which refuses if something has arrived. It sleeps until its eventfd, the provider's descriptor, or
 * the next timer:
 *
 *     the sender                             the sleeper
 *     S1 publish the message                 S3 announce the sleep
 *     S2 look whether the lcore sleeps:      S4 look for messages once more
 *        clear that, write its eventfd
 *
 * All four are sequentially consistent: either S2 sees S3, or S4 sees S1. Store buffers are those of
 * lane.pml. Descriptors are the kernel's: a write to one is seen at once.
 *
 * A turn that finds nothing changes nothing, so the lcore goes to sleep after the first one. A sleep
 * that nothing ends is a state in which no thread can run, and `init` checks that.
 *
 * With WAITER the sender and the sleeper are those of a NetIO queue (queue.c): S1 is a plain store, S2
 * takes `sleeping` away without a look, and S3 is a read-modify-write, too. The eventfd is read before
 * S3, and `sleeping` stays after a sleep.
 *
 * Parameters are SENDERS, OTHERS, PEERS (0 or 1), and MESSAGES of each of them. Each message that
 * comes through a lane starts a timer. A MUT_ macro removes a step; WITNESS names a
 * place and claims that it is never reached. mutate.sh expects a counterexample for each. */

#define SLEEPER (SENDERS + OTHERS + PEERS)
#define ALL     (SLEEPER * MESSAGES)

#define AT_LATE     1 /* the second look found something */
#define AT_REFUSED  2 /* the provider did */
#define AT_WOKEN    3 /* the eventfd ended a sleep */
#define AT_SIGNAL   4 /* the provider's descriptor did */
#define AT_TIMER    5 /* a timer did */
#define AT_STALE    6 /* the eventfd was written for a sleep that had ended already */
#define AT_RECEIVED 7 /* all came to the end */

/* Memory ------------------------------------------------------------------------------------ */

#define SENT(who)   (who) /* messages of each thread */
#define OTHERS_BELL SLEEPER
#define SLEEPING    (SLEEPER + 1)
#define ARMED       (SLEEPER + 2)

byte cell[SLEEPER + 3];

/* The kernel's. */
bool eventfd, signalled;

/* Ghosts, and what is the sleeper's own. */
byte heard;
bool timer, expired; /* one runs; it is due */
bool blocked;

#define BUFFERS (SLEEPER + 1)
#include "buffers.pml"

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

/* What no event reports: lanes, and the others' bell. */
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
	/* No thread can run. */
	timeout -> assert(heard == ALL && !timer); /* nothing is slept through */
	NEVER(AT_RECEIVED, true)
}
