/* SPDX-License-Identifier: BSD-3-Clause */
/* The rings, wishes and bell of drivers/shm: nobody sleeps on a record, or on room for one.
 *
 *   here             in the source
 *   sender           send.c: commit, commit_early; ring.h: ring_claim, ring_commit (W1, C1),
 *                    ring_own_ahead
 *   ring_call        ring.h: ring_asks, ring_call (C2); send.c: call
 *   call_later       send.c: send_call_peers, of one connection
 *   wait_for_room    ring.c: ring_refresh (H2, E4); progress.c: progress_arm, arm_sends (E3)
 *   take             receive.c; ring.h: ring_advance; ring.c: ring_tell (H1, E1, E2)
 *   quieten          progress.c: quieten, ask_for_call (C3, C4)
 *   take_bells       progress.c: take_bells, answer, progress_activate
 *   clear_wakes      cq.c: take_bytes; progress.c: progress_activate
 *   arm              progress.c: progress_arm, arm, ask_for_call (C3, C4)
 *   is_active        prov_ep.h: LISTED_HOT
 *   is_armed         shm.h: is_armed, of one that is hot; or LISTED_NOT
 *   memory           what empties the store buffers, some time later
 *
 * Differs from a lane: the thread that clears a request calls, in the way it found, which the
 * receiver may have changed in between; a bell has two levels; and a word that is 0 is no record, so
 * the word after a record must be cleared before the record is published.
 *
 * Store buffers are those of lane.pml: a plain store waits in one while its thread continues to load,
 * and sequentially consistent stores, fences, read-modify-writes and system calls wait until it is
 * empty. A buffer holds three stores in order: two words without a fence between them, and the one
 * cleared for the second. The content of a record needs none: it is stored before its word.
 *
 * After each record the sender looks whether to call: after a fence, or early, without one. Then it
 * owes a look after a fence, at any time, at the latest before it sleeps or after its last record.
 *
 * A poll that finds nothing leaves a connection active, or asks for the bell. With none active it
 * changes nothing, and waits here. A sleep may also end like a timeout. Omitted are the sweep of
 * progress.c, which is for hostile peers, and the limit of BELLS_MAX calls per poll. So a lost call
 * ends in a state in which no thread can run, and `init` checks that.
 *
 * Parameters are SENDERS (connections of one queue), BELL_WORDS that their bits lie in, SLOTS of each
 * ring (one of them for the word after the last record), RECORDS of each sender, how many senders may
 * look early (EARLY), and how often the receiver may go to sleep (SLEEPS) before it only polls. A
 * MUT_ macro removes a step; WITNESS names a place and claims that it is never reached. mutate.sh
 * expects a counterexample for each. */

#define START    SLOTS /* the first position: none is below 0 */
#define RECEIVER SENDERS

#include "buffers.pml"

#define AT_FULL     1 /* a sender slept, as there was no room */
#define AT_LATE     2 /* the look after the wish found a record */
#define AT_CHANGED  3 /* what was taken is not what was found */
#define AT_SLEPT    4 /* the receiver was woken */
#define AT_STALE    5 /* the bell rang for what was received already */
#define AT_RECEIVED 6 /* all came to the end */
#define AT_OWED     7 /* an early look missed the wish; the one after a fence found it */
#define AT_ARMED    8 /* an active connection slept again, and did not ask again */
#define AT_TWO      9 /* the looks after two records came before either was in memory */

#define CALL_NONE 0
#define CALL_BELL 1
#define CALL_WAKE 2 /* a bit, as CALL_BELL */

/* Memory ------------------------------------------------------------------------------------ */

#define WORD(ring, position) ((ring) * SLOTS + (position) % SLOTS)
#define HEAD(ring)           (SENDERS * SLOTS + (ring))
#define CALL(ring)           (HEAD(SENDERS) + (ring))
#define SPACE_CALL(ring)     (CALL(SENDERS) + (ring))
#define BELL(index)          (SPACE_CALL(SENDERS) + (index))
#define SUMMARY              BELL(BELL_WORDS)
#define STORES               3 /* in a buffer */
#define BIT(ring)            (1 << (ring))
#define INDEX(ring)          ((ring) % BELL_WORDS)

byte cell[SUMMARY + 1];
/* Stores that are not in memory yet, the oldest first: the cell, + 1; 0: none. */
byte stored_at[(SENDERS + 1) * STORES];
byte stored[(SENDERS + 1) * STORES];
bool to_receiver[SENDERS]; /* there are bytes in the socket */
bool to_sender[SENDERS];

/* Ghosts. */
byte message[SENDERS * SLOTS]; /* in each slot: the position it was sent to; 0: none */
bool busy[SENDERS * SLOTS];    /* the receiver reads that slot */
bool wish[SENDERS];            /* to be called, and nobody was since */
byte received;

#define STORE(nth) (me * STORES + (nth))
#define OF(nth)    stored_at[STORE(nth)]
#define DRAINED    (OF(0) == 0)

/* A thread sees its latest store. */
#define FIRST(at)  (OF(0) == (at) + 1 -> stored[STORE(0)] : cell[at])
#define SECOND(at) (OF(1) == (at) + 1 -> stored[STORE(1)] : FIRST(at))
#define LOAD(at)   (OF(2) == (at) + 1 -> stored[STORE(2)] : SECOND(at))

inline store_as(nth, at, value)
{
	OF(nth) = at + 1;
	stored[STORE(nth)] = value
}

inline store(at, value)
{
	atomic {
		if
		:: OF(0) == 0 -> store_as(0, at, value)
		:: OF(0) != 0 && OF(1) == 0 -> store_as(1, at, value)
		:: OF(1) != 0 && OF(2) == 0 -> store_as(2, at, value)
		fi
	}
}

/* A read-modify-write, whose result is `value`, or a sequentially consistent store of it. */
inline store_now(at, value)
{
	atomic { DRAINED -> cell[at] = value }
}

/* A read-modify-write of which the old value counts. */
inline exchange(at, value, old)
{
	atomic { DRAINED -> old = cell[at]; cell[at] = value }
}

inline follow(nth, before)
{
	OF(before) = OF(nth);
	stored[STORE(before)] = stored[STORE(nth)];
	OF(nth) = 0;
	stored[STORE(nth)] = 0
}

proctype memory(byte me)
{
end:
	do
	:: d_step {
		!DRAINED ->
		cell[OF(0) - 1] = stored[STORE(0)];
		follow(1, 0);
		follow(2, 1)
	}
	od
}

/* Mutations --------------------------------------------------------------------------------- */

#ifdef MUT_NO_FENCE /* between C1 and C2 */
#define FENCE true
#else
#define FENCE DRAINED
#endif

#if defined(MUT_NO_FENCE) || defined(MUT_NO_LATER_FENCE)
#define LATER_FENCE true
#else
#define LATER_FENCE DRAINED
#endif

#ifdef MUT_PLAIN_WISH /* C3 */
#define STORE_WISH(at, value) store(at, value)
#else
#define STORE_WISH(at, value) store_now(at, value)
#endif

#ifdef MUT_PLAIN_HEAD /* E1 */
#define STORE_HEAD(at, value) store(at, value)
#else
#define STORE_HEAD(at, value) store_now(at, value)
#endif

#ifdef MUT_PLAIN_SPACE_WISH /* E3 */
#define STORE_SPACE_WISH(at) store(at, CALL_WAKE)
#else
#define STORE_SPACE_WISH(at) store_now(at, CALL_WAKE)
#endif

#ifdef MUT_NO_WORD_BEHIND /* room for the record alone */
#define NEED 1
#else
#define NEED 2
#endif

#ifdef MUT_CLEAR_TOO_FAR /* ahead, over what was not read */
#define ROOM_AHEAD true
#else
#define ROOM_AHEAD (cleared < head + SLOTS)
#endif

/* Senders ----------------------------------------------------------------------------------- */

/* What was not read is not written over, nor cleared: there is more to a record than its word. */
inline touch(position)
{
	assert(!busy[WORD(me, position)] && message[WORD(me, position)] == 0)
}

inline copy_message()
{
	atomic { touch(tail); message[WORD(me, tail)] = tail }
}

inline clear(position)
{
	atomic {
		store(WORD(me, position), 0);
		touch(position);
		cleared = position + 1
	}
}

inline clear_behind()
{
	if
#ifndef MUT_NO_CLEAR
	:: atomic { cleared <= tail + 1 -> clear(tail + 1) }
#endif
	:: else
	fi
}

inline clear_ahead()
{
	if
	:: atomic { cleared == tail + 1 && ROOM_AHEAD -> clear(tail + 1) }
	:: else
	fi
}

inline publish()
{
	store(WORD(me, tail), 1)
}

inline ring_bell()
{
#ifdef MUT_SUMMARY_FIRST
	store_now(SUMMARY, cell[SUMMARY] | BIT(INDEX(me)));
#endif
#ifdef MUT_BELL_NOT_ATOMIC
	how = how | LOAD(BELL(INDEX(me))) << 2;
	store_now(BELL(INDEX(me)), how >> 2 | BIT(me));
	how = how & 3;
#else
	store_now(BELL(INDEX(me)), cell[BELL(INDEX(me))] | BIT(me));
#endif
#ifndef MUT_SUMMARY_FIRST
	store_now(SUMMARY, cell[SUMMARY] | BIT(INDEX(me)))
#endif
}

#ifdef MUT_WAKE_IS_NO_BELL
#define IS_RUNG (how == CALL_BELL)
#else
#define IS_RUNG (how & CALL_BELL)
#endif

#if defined(MUT_NO_WAKE)
#define IS_WAKE false
#elif defined(MUT_BELL_IS_NO_WAKE)
#define IS_WAKE (how == CALL_WAKE)
#else
#define IS_WAKE (how & CALL_WAKE)
#endif

inline call()
{
	if
	:: IS_RUNG -> ring_bell()
	:: else
	fi;
	if
	:: IS_WAKE -> atomic { DRAINED -> to_receiver[me] = true }
	:: else
	fi
}

/* Nobody is called for a wish that was taken before. */
inline note_taken()
{
	NEVER(AT_CHANGED, taken != how);
#ifndef MUT_PLAIN_WISH /* then a request may be taken before it reaches memory */
	assert(wish[me] || taken == CALL_NONE);
#endif
	wish[me] = false
}

inline take_wish()
{
#if defined(MUT_WISH_KEPT)
	atomic { taken = how; note_taken() };
#elif defined(MUT_WISH_NOT_ATOMIC) /* a load and a store */
	atomic { taken = how; store_now(CALL(me), CALL_NONE); note_taken() };
#else
	atomic { exchange(CALL(me), CALL_NONE, taken); note_taken() };
#endif
#ifndef MUT_AS_FOUND
	how = taken;
#endif
	taken = 0
}

/* Once `sure` holds. */
inline look_and_call(sure)
{
	if
	:: sure && LOAD(CALL(me)) == CALL_NONE
#ifdef MUT_NO_CALL
	:: sure && LOAD(CALL(me)) != CALL_NONE
#else
	:: atomic { sure && LOAD(CALL(me)) != CALL_NONE -> how = LOAD(CALL(me)) };
		take_wish();
		if
		:: how != CALL_NONE -> call()
		:: else
		fi;
		how = 0
#endif
	fi
}

/* For one record. */
inline ring_call()
{
	if
	:: me < EARLY ->
		if
		:: LOAD(CALL(me)) == CALL_NONE -> owes = true
#ifdef MUT_EARLY_UNCALLED
		:: LOAD(CALL(me)) != CALL_NONE
#else
		:: LOAD(CALL(me)) != CALL_NONE -> look_and_call(FENCE); owes = false
#endif
		fi;
		NEVER(AT_TWO, OF(2) != 0 && stored[STORE(0)] == 1 && stored[STORE(2)] == 1)
	:: look_and_call(FENCE); owes = false
	fi
}

/* For all before. */
inline call_later()
{
	if
	:: owes ->
#ifndef MUT_NO_LATER_LOOK
		NEVER(AT_OWED, LATER_FENCE && LOAD(CALL(me)) != CALL_NONE);
		look_and_call(LATER_FENCE);
#endif
		owes = false
	:: else
	fi
}

#define HAS_ROOM (tail + NEED <= head + SLOTS)

inline refresh()
{
	head = LOAD(HEAD(me))
}

inline wait_for_room()
{
	do
	:: HAS_ROOM -> break
	/* It looks without a call. */
	:: !HAS_ROOM && LOAD(HEAD(me)) != head -> refresh()
	/* It goes to sleep. */
	:: !HAS_ROOM ->
#ifndef MUT_SLEEPS_OWING
		call_later();
#endif
#if defined(MUT_NO_SPACE_LOOK)
		STORE_SPACE_WISH(SPACE_CALL(me));
#elif defined(MUT_SPACE_LOOK_FIRST)
		refresh();
		STORE_SPACE_WISH(SPACE_CALL(me));
#else
		STORE_SPACE_WISH(SPACE_CALL(me));
		refresh();
#endif
		if
		:: HAS_ROOM
		:: !HAS_ROOM ->
			atomic { to_sender[me] && DRAINED -> to_sender[me] = false };
			NEVER(AT_FULL, true);
			refresh()
		fi
	od
}

proctype sender(byte me)
{
	byte tail = START, head = START, cleared = START, how, taken;
	bool owes;

	do
	:: tail < START + RECORDS ->
		wait_for_room();
#ifdef MUT_WORD_FIRST
		publish();
		copy_message();
		clear_behind();
		ring_call();
#elif defined(MUT_CLEAR_LAST)
		copy_message();
		publish();
		clear_behind();
		ring_call();
#elif defined(MUT_LOOK_FIRST)
		copy_message();
		clear_behind();
		ring_call();
		publish();
#else
		copy_message();
		clear_behind();
		publish();
		ring_call();
#endif
		tail++;
		clear_ahead()
	/* A poll. */
	:: owes -> call_later()
	:: tail == START + RECORDS && !owes -> break
	od
}

/* The receiver ------------------------------------------------------------------------------ */

#define IS_THERE(ring) (LOAD(WORD(ring, next[ring])) != 0)

inline tell(ring)
{
#ifdef MUT_SPACE_CALL_FIRST
	how = LOAD(SPACE_CALL(ring));
	STORE_HEAD(HEAD(ring), next[ring]);
#else
	STORE_HEAD(HEAD(ring), next[ring]);
	how = LOAD(SPACE_CALL(ring));
#endif
	if
#ifndef MUT_NO_SPACE_CALL
	:: how != CALL_NONE ->
		exchange(SPACE_CALL(ring), CALL_NONE, how);
		if
		:: how == CALL_WAKE -> atomic { DRAINED -> to_sender[ring] = true }
		:: else
		fi;
		how = 0
#endif
	:: else
	fi
}

inline copy_out(ring)
{
	atomic {
		assert(message[WORD(ring, next[ring])] == next[ring]); /* once, whole, in order */
		message[WORD(ring, next[ring])] = 0;
		busy[WORD(ring, next[ring])] = false;
		next[ring]++;
		received++
	}
}

inline take(ring)
{
#ifdef MUT_HEAD_FIRST
	STORE_HEAD(HEAD(ring), next[ring] + 1);
#endif
	copy_out(ring);
	tell(ring)
}

inline wish_for(ring, value)
{
	atomic { STORE_WISH(CALL(ring), value); wish[ring] = true }
}

inline unlist(ring)
{
	is_active[ring] = false;
	is_armed[ring] = false
}

inline activate(ring)
{
	if
	:: !is_active[ring] ->
		store_now(CALL(ring), CALL_NONE);
		atomic { is_active[ring] = true; is_armed[ring] = false }
	:: else
#ifndef MUT_ARMED_BEHIND_BYTE
		-> is_armed[ring] = false
#endif
	fi
}

inline look_again(ring)
{
	atomic {
		is_late = IS_THERE(ring);
		NEVER(AT_LATE, is_late)
	}
}

/* Whether there is something after all is in `is_late`. */
inline ask_for(ring, value)
{
#if defined(MUT_NO_SECOND_LOOK)
	wish_for(ring, value);
#elif defined(MUT_SECOND_LOOK_FIRST)
	look_again(ring);
	wish_for(ring, value);
#else
	wish_for(ring, value);
	look_again(ring);
#endif
	if
	:: is_late -> unlist(ring); activate(ring)
	:: else
	fi
}

inline quieten()
{
#ifdef MUT_ARMED_AND_BELLED
	is_active[ring] = false;
#else
	unlist(ring);
#endif
	ask_for(ring, CALL_BELL);
	is_late = false
}

inline poll_active()
{
	ring = 0;
	do
	:: ring < SENDERS && is_active[ring] ->
		if
		:: atomic { IS_THERE(ring) -> busy[WORD(ring, next[ring])] = true };
			take(ring);
			is_armed[ring] = false
		:: !IS_THERE(ring) /* it stays active */
		:: !IS_THERE(ring) -> quieten()
		fi;
		ring++
	:: ring < SENDERS && !is_active[ring] -> ring++
	:: ring == SENDERS -> ring = 0; break
	od
}

inline answer()
{
	ring = 0;
	do
	:: ring < SENDERS && bits & BIT(ring) ->
		NEVER(AT_STALE, !is_active[ring] && !IS_THERE(ring));
		activate(ring);
		ring++
	:: ring < SENDERS && !(bits & BIT(ring)) -> ring++
	:: ring == SENDERS -> ring = 0; bits = 0; break
	od
}

inline take_bells()
{
#ifdef MUT_SUMMARY_NOT_ATOMIC
	summary = LOAD(SUMMARY);
	store_now(SUMMARY, 0);
#elif defined(MUT_SUMMARY_LAST)
	summary = LOAD(SUMMARY);
#else
	exchange(SUMMARY, 0, summary);
#endif
	index = 0;
	do
	:: index < BELL_WORDS && summary & BIT(index) ->
#ifdef MUT_WORD_NOT_ATOMIC
		bits = LOAD(BELL(index));
		store_now(BELL(index), 0);
#else
		exchange(BELL(index), 0, bits);
#endif
		answer();
		index++
	:: index < BELL_WORDS && !(summary & BIT(index)) -> index++
	:: index == BELL_WORDS -> index = 0; break
	od;
#ifdef MUT_SUMMARY_LAST
	store_now(SUMMARY, cell[SUMMARY] & ~summary);
#endif
	summary = 0
}

inline clear_wakes()
{
	ring = 0;
	do
	:: atomic { ring < SENDERS && to_receiver[ring] && DRAINED -> to_receiver[ring] = false };
		activate(ring);
		ring++
	:: ring < SENDERS && !to_receiver[ring] -> ring++
	:: ring == SENDERS -> ring = 0; break
	od
}

#ifdef MUT_NO_BELL_ASLEEP
#define CALL_ASLEEP CALL_WAKE
#else
#define CALL_ASLEEP (CALL_BELL | CALL_WAKE)
#endif

inline ask_to_be_woken()
{
#ifndef MUT_ARMED_LAST
	is_armed[ring] = true;
#endif
	if
	:: is_active[ring]
	:: is_active[ring] = false /* there are too many */
	fi;
	how = (is_active[ring] -> CALL_WAKE : CALL_ASLEEP);
#ifdef MUT_WAKE_UNLISTED
	is_active[ring] = false;
#endif
	ask_for(ring, how);
#ifdef MUT_ARMED_LAST
	is_armed[ring] = true;
#endif
	how = 0
}

/* Those that are armed already stay so. */
inline arm()
{
	ring = 0;
	do
	:: ring < SENDERS && !is_armed[ring] && !is_late -> ask_to_be_woken(); ring++
	:: ring < SENDERS && (is_armed[ring] || is_late) ->
		NEVER(AT_ARMED, is_active[ring] && is_armed[ring]);
		ring++
	:: ring == SENDERS -> ring = 0; break
	od
}

#define IS_WOKEN (to_receiver[0] || to_receiver[SENDERS - 1])

proctype receiver(byte me)
{
	byte next[SENDERS] = START;
	bool is_active[SENDERS] = true, is_armed[SENDERS];
	byte ring, index, summary, bits, how, sleeps;
	bool is_late;

end:
	do
	:: is_active[0] || is_active[SENDERS - 1] || LOAD(SUMMARY) != 0 ->
		poll_active();
		if
		:: LOAD(SUMMARY) != 0 -> take_bells()
		:: LOAD(SUMMARY) == 0
		fi
	:: sleeps < SLEEPS ->
		sleeps++;
		clear_wakes();
		arm();
		if
		:: is_late -> is_late = false
		:: !is_late ->
			if
			:: true ->
end_asleep:
				IS_WOKEN;
				NEVER(AT_SLEPT, true)
			:: true /* something else wakes it */
			fi
		fi
	od
}

init {
	byte i;

	atomic {
		for (i : 0 .. SENDERS) {
			if
			:: i < SENDERS -> cell[HEAD(i)] = START; run sender(i)
			:: i == SENDERS -> run receiver(i)
			fi;
			run memory(i)
		}
		i = 0
	};
	/* No thread can run. */
	timeout -> assert(received == SENDERS * RECORDS); /* no record is forgotten */
	NEVER(AT_RECEIVED, true)
}
