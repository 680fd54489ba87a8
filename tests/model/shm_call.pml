/* SPDX-License-Identifier: BSD-3-Clause */
/* The rings, wishes and bell of drivers/shm: nobody sleeps on a record, or on room for one.
 *
 *   here             in the source
 *   sender           send.c: commit; ring.h: ring_claim, ring_commit (W1, C1), ring_clear_ahead
 *   ring_call        ring.h: ring_call (C2); send.c: call
 *   wait_for_room    ring.c: ring_refresh (H2, E4); progress.c: arm_sends (E3)
 *   take             receive.c; ring.h: ring_advance; ring.c: ring_tell (H1, E1, E2)
 *   quieten          progress.c: quieten (C3, C4)
 *   take_bells       progress.c: take_bells, answer, progress_activate
 *   go_to_sleep      progress.c: progress_arm (C3, C4); cq_sleep.c
 *   memory           what empties the store buffers, some time later
 *
 * Differs from a lane: who takes a wish away calls, and by what it took, which the receiver may
 * have changed in between; a bell has two levels; and a word that is 0 is no record, so the one
 * behind a record must be cleared before that is shown.
 *
 * Store buffers are those of lane.pml: a plain store waits in one while its thread goes on to load,
 * and sequentially consistent stores, fences, read-modify-writes and system calls wait until it is
 * empty. A buffer holds one store. What a record holds needs none: it is stored before its word.
 *
 * A poll that finds nothing changes nothing and waits here. Left out are the sweep of progress.c,
 * which is there for peers that scribble, and that a poll answers no more than BELLS_MAX calls. So
 * a call that is lost ends in a state in which nobody goes on, and that is where `init` looks.
 *
 * Given are SENDERS (connections of one queue), BELL_WORDS that their bits lie in, SLOTS of each
 * ring (one of them for the word behind the last record), how many RECORDS each sends, and how
 * often the receiver may go to sleep (SLEEPS): from then on it polls. A MUT_ macro takes out a
 * step; WITNESS names a place and claims that it is never reached. mutate.sh expects a
 * counterexample for each. */

#define START    SLOTS /* the first position: none is below 0 */
#define RECEIVER SENDERS

#ifndef WITNESS
#define WITNESS 0
#endif
#define NEVER(place, is_here) assert(WITNESS != place || !(is_here))

#define AT_FULL     1 /* a sender slept, as there was no room */
#define AT_LATE     2 /* the look after the wish found a record */
#define AT_CHANGED  3 /* what was taken is not what was found */
#define AT_SLEPT    4 /* the receiver was woken */
#define AT_STALE    5 /* the bell rang for what was received already */
#define AT_RECEIVED 6 /* all came to the end */

#define CALL_NONE 0
#define CALL_BELL 1
#define CALL_WAKE 2

/* Memory ------------------------------------------------------------------------------------ */

#define WORD(ring, position) ((ring) * SLOTS + (position) % SLOTS)
#define HEAD(ring)           (SENDERS * SLOTS + (ring))
#define CALL(ring)           (HEAD(SENDERS) + (ring))
#define SPACE_CALL(ring)     (CALL(SENDERS) + (ring))
#define BELL(index)          (SPACE_CALL(SENDERS) + (index))
#define SUMMARY              BELL(BELL_WORDS)
#define BIT(ring)            (1 << (ring))
#define INDEX(ring)          ((ring) % BELL_WORDS)

byte cell[SUMMARY + 1];
byte stored_at[SENDERS + 1]; /* the cell of a store that is not in memory yet, + 1; 0: none */
byte stored[SENDERS + 1];
bool to_receiver[SENDERS]; /* there are bytes in the socket */
bool to_sender[SENDERS];

/* Ghosts. */
byte message[SENDERS * SLOTS]; /* in each slot: the position it was sent to; 0: none */
bool busy[SENDERS * SLOTS];    /* the receiver reads that slot */
bool wish[SENDERS];            /* to be called, and nobody was since */
byte received;

#define LOAD(at) (stored_at[me] == (at) + 1 -> stored[me] : cell[at])
#define DRAINED  (stored_at[me] == 0)

inline store(at, value)
{
	atomic { DRAINED -> stored_at[me] = at + 1; stored[me] = value }
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

/* Mutations --------------------------------------------------------------------------------- */

#ifdef MUT_NO_FENCE /* behind C1 */
#define FENCE true
#else
#define FENCE DRAINED
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
	:: cleared <= tail + 1 -> clear(tail + 1)
#endif
	:: else
	fi
}

inline clear_ahead()
{
	if
	:: cleared == tail + 1 && ROOM_AHEAD -> clear(tail + 1)
	:: else
	fi
}

inline publish()
{
	store(WORD(me, tail), 1);
	FENCE
}

inline call()
{
#ifdef MUT_SUMMARY_FIRST
	store_now(SUMMARY, cell[SUMMARY] | BIT(INDEX(me)));
#endif
#ifdef MUT_WAKE_IS_NO_BELL
	if
	:: how == CALL_WAKE
	:: else ->
#endif
#ifdef MUT_BELL_NOT_ATOMIC
	how = how | LOAD(BELL(INDEX(me))) << 2;
	store_now(BELL(INDEX(me)), how >> 2 | BIT(me));
	how = how & 3;
#else
	store_now(BELL(INDEX(me)), cell[BELL(INDEX(me))] | BIT(me));
#endif
#ifndef MUT_SUMMARY_FIRST
	store_now(SUMMARY, cell[SUMMARY] | BIT(INDEX(me)));
#endif
#ifdef MUT_WAKE_IS_NO_BELL
	fi;
#endif
	if
#ifndef MUT_NO_WAKE
	:: how == CALL_WAKE -> atomic { DRAINED -> to_receiver[me] = true }
#endif
	:: else
	fi
}

/* Nobody is called for a wish that was taken before. */
inline note_taken()
{
	NEVER(AT_CHANGED, taken != how);
	assert(wish[me] || taken == CALL_NONE);
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

inline ring_call()
{
	if
#ifndef MUT_NO_CALL
	:: how != CALL_NONE ->
		take_wish();
		if
		:: how != CALL_NONE -> call()
		:: else
		fi
#endif
	:: else
	fi;
	how = 0
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
	/* It looks by itself. */
	:: !HAS_ROOM && LOAD(HEAD(me)) != head -> refresh()
	/* It goes to sleep. */
	:: !HAS_ROOM ->
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

	do
	:: tail < START + RECORDS ->
		wait_for_room();
#ifdef MUT_WORD_FIRST
		publish();
		copy_message();
		clear_behind();
		how = LOAD(CALL(me));
#elif defined(MUT_CLEAR_LAST)
		copy_message();
		publish();
		clear_behind();
		how = LOAD(CALL(me));
#elif defined(MUT_LOOK_FIRST)
		copy_message();
		clear_behind();
		how = LOAD(CALL(me));
		publish();
#else
		copy_message();
		clear_behind();
		publish();
		how = LOAD(CALL(me));
#endif
		tail++;
		ring_call();
		clear_ahead()
	:: tail == START + RECORDS -> break
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
		fi
#endif
	:: else
	fi;
	how = 0
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
	atomic {
		STORE_WISH(CALL(ring), value);
		wish[ring] = true;
		is_active[ring] = false
	}
}

inline activate(ring)
{
	if
	:: !is_active[ring] ->
		store_now(CALL(ring), CALL_NONE);
		atomic { is_active[ring] = true; is_asleep[ring] = false }
	:: else
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
	:: is_late -> activate(ring)
	:: else
	fi
}

inline poll_active()
{
	ring = 0;
	do
	:: ring < SENDERS && is_active[ring] ->
		if
		:: atomic { IS_THERE(ring) -> busy[WORD(ring, next[ring])] = true };
			take(ring)
		:: !IS_THERE(ring) -> ask_for(ring, CALL_BELL); is_late = false
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
	:: ring < SENDERS && to_receiver[ring] ->
		atomic { DRAINED -> to_receiver[ring] = false };
		activate(ring);
		ring++
	:: ring < SENDERS && !to_receiver[ring] -> ring++
	:: ring == SENDERS -> ring = 0; break
	od
}

/* Those that are asleep already stay so. */
inline arm()
{
	ring = 0;
	do
	:: ring < SENDERS && !is_asleep[ring] && !is_late ->
		is_asleep[ring] = true;
		ask_for(ring, CALL_WAKE);
		ring++
	:: ring < SENDERS && (is_asleep[ring] || is_late) -> ring++
	:: ring == SENDERS -> ring = 0; break
	od
}

#define IS_WOKEN (to_receiver[0] || to_receiver[SENDERS - 1])

proctype receiver(byte me)
{
	byte next[SENDERS] = START;
	bool is_active[SENDERS] = true, is_asleep[SENDERS];
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
end_asleep:
			IS_WOKEN;
			NEVER(AT_SLEPT, true)
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
	/* Nobody can go on. */
	timeout -> assert(received == SENDERS * RECORDS); /* no record is forgotten */
	NEVER(AT_RECEIVED, true)
}
