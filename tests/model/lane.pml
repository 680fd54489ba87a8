/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes and the doorbell of lib/lcore: no message stays in a lane whose bell is silent.
 *
 *   here             in the source
 *   sender           lane.c: lane_room (H2), lane_send (A1, D1), ring (D2)
 *   wait_for_room    lane.c: ask, on_room; signal.c: plx_signal_fire (G1), signals_run (G4)
 *   hear_asks        lane.c: on_ask
 *   lane_receive     lane.c: lane_receive (A2, H1)
 *   grow_cold        lane.c: grow_cold (D3, D4)
 *   other            message.c: others_send (B1); a push is a claim and a mark: see ring.pml
 *   others_receive   message.c: others_receive (B2)
 *   receiver         message.c: messages_receive; lane.c: receive_word
 *   memory           what empties the store buffers, some time later
 *
 * Spin runs accesses in program order; processors do not. Here a plain store waits in a store buffer,
 * where only its thread sees it, while the thread continues to load. A sequentially consistent store
 * and a read-modify-write wait until the buffer is empty, and go to memory at once. A buffer holds
 * one store, and the next one waits for it. The content of a message needs no buffer: its reader has
 * seen the sequence, which is stored after it.
 *
 * A look at a silent bell changes nothing, nor does a send that finds the lane full: both wait here
 * until something changes. With ROOM a sender does not look again: it asks for room by a signal, and
 * continues when the receiver reports it. So a forgotten message, or unreported room, ends in a
 * state in which no thread can run, and `init` checks that. Of a signal the model has the count and
 * the bell; signal.c proves separately that a thread that fires it pushes it.
 *
 * Parameters are SENDERS (lcores, each with its lane), OTHERS (threads that are not lcores) and
 * MESSAGES of each. A MUT_ macro removes a step; WITNESS names a place and claims that it is never
 * reached. mutate.sh expects a counterexample for each. */

#define SLOTS      2 /* of a lane */
#define START      SLOTS /* the first position: none is below 0 */
#define COLD_LOOKS 2
#define TURN_MAX   2 /* messages taken from one lane, or from the others, in one turn */
#define RECEIVER   (SENDERS + OTHERS)

#define AT_FULL      1 /* a lane was full */
#define AT_LATE      2 /* the look after the clearing found a message */
#define AT_COLD      3 /* it found none, and more was sent later */
#define AT_MORE      4 /* the others had sent more than one turn takes */
#define AT_STALLED   5 /* a push had no mark yet, but the next one had */
#define AT_RECEIVED  6 /* all came to the end */
#define AT_ASKED     7 /* a sender asked for room before there was enough */

/* Memory ------------------------------------------------------------------------------------ */

#define SEQUENCE(lane, position) ((lane) * SLOTS + (position) % SLOTS)
#define HEAD(lane)               (SENDERS * SLOTS + (lane))
#define MARK(position)           (SENDERS * SLOTS + SENDERS + (position))
#define BELL                     MARK(OTHERS * MESSAGES + 2)
#define OTHERS_BELL              (BELL + 1)
#define SIGNALS_BELL             (BELL + 2)
#define ASK(lane)                (BELL + 3 + (lane))
#define TELL(lane)               (BELL + 3 + SENDERS + (lane))
#define TELL_AT(lane)            (BELL + 3 + 2 * SENDERS + (lane))
#define BIT(lane)                (1 << (lane))

byte cell[BELL + 3 + 3 * SENDERS + 1];
byte others_claim;

/* Ghosts. */
byte message[SENDERS * SLOTS + 1]; /* in each slot: the position it was sent to; 0: none */
bool busy[SENDERS * SLOTS + 1];    /* the receiver reads that slot */
byte received;

#define BUFFERS (RECEIVER + 1)
#include "buffers.pml"

/* Mutations --------------------------------------------------------------------------------- */

#ifdef MUT_PLAIN_STORE
#define STORE_SEQUENCE(at, value) store(at, value)
#else
#define STORE_SEQUENCE(at, value) store_now(at, value)
#endif

#if defined(MUT_NO_RING)
#define IS_TO_RING(word) false
#else
#define IS_TO_RING(word) (!(word & BIT(me)))
#endif

#ifdef MUT_RING_NOT_ATOMIC /* a load and a store */
#define RING(word) store_now(BELL, word | BIT(me))
#else
#define RING(word) store_now(BELL, cell[BELL] | BIT(me))
#endif

#if defined(MUT_PLAIN_CLEAR)
#define CLEAR(word, lane) store(BELL, word & ~BIT(lane))
#elif defined(MUT_CLEAR_NOT_ATOMIC)
#define CLEAR(word, lane) store_now(BELL, word & ~BIT(lane))
#else
#define CLEAR(word, lane) store_now(BELL, cell[BELL] & ~BIT(lane))
#endif

#ifdef MUT_NO_ROOM_CHECK
#define IS_FULL false
#else
#define IS_FULL (tail == limit)
#endif

#ifdef MUT_NO_LAP /* any sequence is that of a message */
#define IS_THERE(lane) true
#else
#define IS_THERE(lane) (LOAD(SEQUENCE(lane, next[lane])) == next[lane] + 1)
#endif

#ifdef MUT_OTHERS_STICKY /* as the lanes do it, but with a plain store before it */
#define OTHERS_IS_TO_RING (LOAD(OTHERS_BELL) == 0)
#else
#define OTHERS_IS_TO_RING true
#endif

#ifdef MUT_OTHERS_PLAIN_CLEAR
#define OTHERS_CLEAR store(OTHERS_BELL, 0)
#else
#define OTHERS_CLEAR store_now(OTHERS_BELL, 0)
#endif

#ifdef MUT_TELL_ALWAYS
#define IS_ROOM(lane) true
#else
#define IS_ROOM(lane) (next[lane] >= LOAD(TELL_AT(lane)))
#endif

/* Senders ----------------------------------------------------------------------------------- */

inline copy_message()
{
	atomic {
		assert(!busy[SEQUENCE(me, tail)] && message[SEQUENCE(me, tail)] == 0);
		message[SEQUENCE(me, tail)] = tail
	}
}

inline look_at_bell()
{
	word = LOAD(BELL)
}

inline ring()
{
	if
	:: IS_TO_RING(word) -> RING(word)
	:: else
	fi;
	word = 0
}

inline ask()
{
	store_now(ASK(me), cell[ASK(me)] + 1);
	store_now(SIGNALS_BELL, 1)
}

inline wait_for_room()
{
#ifdef MUT_ASK_FIRST
	ask();
	store(TELL_AT(me), tail - SLOTS / 2);
#else
	store(TELL_AT(me), tail - SLOTS / 2);
	ask();
#endif
	atomic { DRAINED && cell[TELL(me)] != 0 -> cell[TELL(me)] = 0 };
	atomic {
		limit = LOAD(HEAD(me)) + SLOTS;
		assert(tail < limit) /* only available room is reported */
	}
}

proctype sender(byte me)
{
	byte tail = START, limit = START + SLOTS, word;

	do
	:: tail < START + MESSAGES ->
		if
		:: !IS_FULL
		:: atomic {
			IS_FULL && LOAD(HEAD(me)) + SLOTS != limit ->
			limit = LOAD(HEAD(me)) + SLOTS;
			NEVER(AT_FULL, true)
		}
#ifdef ROOM
		:: IS_FULL && LOAD(HEAD(me)) + SLOTS == limit -> wait_for_room()
#endif
		fi;
#if defined(MUT_SEQUENCE_FIRST)
		STORE_SEQUENCE(SEQUENCE(me, tail), tail + 1);
		copy_message();
		look_at_bell();
#elif defined(MUT_LOOK_FIRST)
		copy_message();
		look_at_bell();
		STORE_SEQUENCE(SEQUENCE(me, tail), tail + 1);
#else
		copy_message();
		STORE_SEQUENCE(SEQUENCE(me, tail), tail + 1);
		look_at_bell();
#endif
		tail++;
		ring()
	:: tail == START + MESSAGES -> break
	od
}

inline others_ring()
{
	if
	:: OTHERS_IS_TO_RING -> store_now(OTHERS_BELL, 1)
	:: else
	fi
}

proctype other(byte me)
{
	byte sent, position;

	do
	:: sent < MESSAGES ->
		atomic { DRAINED -> position = others_claim; others_claim++ };
#ifdef MUT_OTHERS_RING_FIRST
		others_ring();
		store(MARK(position), 1);
#else
		store(MARK(position), 1);
		others_ring();
#endif
		sent++;
		position = 0
	:: sent == MESSAGES -> break
	od
}

/* The receiver ------------------------------------------------------------------------------ */

inline others_empty()
{
	do
	:: atomic {
		count < TURN_MAX && LOAD(MARK(others_next)) == 1 ->
		others_next++;
		count++;
		received++
	}
	:: atomic {
		count < TURN_MAX && LOAD(MARK(others_next)) == 0 ->
		NEVER(AT_STALLED, LOAD(MARK(others_next + 1)) == 1);
		break
	}
	:: count == TURN_MAX -> break
	od
}

inline others_receive()
{
#ifdef MUT_OTHERS_CLEAR_LAST
	others_empty();
	OTHERS_CLEAR;
#else
	OTHERS_CLEAR;
	others_empty();
#endif
	if
#ifndef MUT_OTHERS_NOT_AGAIN
	:: count == TURN_MAX ->
		NEVER(AT_MORE, LOAD(MARK(others_next)) == 1);
		store_now(OTHERS_BELL, 1)
#endif
	:: else
	fi;
	count = 0
}

/* Each ask is looked at once in a turn. */
inline hear_asks()
{
	store_now(SIGNALS_BELL, 0);
	lane = 0;
	do
	:: lane < SENDERS && cell[ASK(lane)] != 0 ->
		store_now(ASK(lane), 0);
		if
		:: IS_ROOM(lane) -> store_now(TELL(lane), 1)
		:: !IS_ROOM(lane) ->
			NEVER(AT_ASKED, true);
#ifndef MUT_ASK_ONCE
			store_now(ASK(lane), cell[ASK(lane)] + 1);
			store_now(SIGNALS_BELL, 1)
#endif
		fi;
		lane++
	:: lane < SENDERS && cell[ASK(lane)] == 0 -> lane++
	:: lane == SENDERS -> break
	od
}

inline lane_take()
{
	atomic {
		assert(message[SEQUENCE(lane, next[lane])] == next[lane]); /* once, whole, in order */
		message[SEQUENCE(lane, next[lane])] = 0;
		busy[SEQUENCE(lane, next[lane])] = false;
		next[lane]++;
		count++;
		received++
	}
}

inline lane_receive()
{
	do
	:: atomic {
		count < TURN_MAX && IS_THERE(lane) ->
		busy[SEQUENCE(lane, next[lane])] = true
	};
#ifdef MUT_HEAD_FIRST
		store(HEAD(lane), next[lane] + 1);
#endif
		lane_take()
	:: count == TURN_MAX || !IS_THERE(lane) -> break
	od
}

inline look_again()
{
	atomic {
		late = IS_THERE(lane);
		NEVER(AT_LATE, late);
		NEVER(AT_COLD, !late && next[lane] < START + MESSAGES)
	}
}

inline grow_cold()
{
	empty_looks[lane]++;
	if
	:: empty_looks[lane] < COLD_LOOKS
	:: empty_looks[lane] == COLD_LOOKS ->
		empty_looks[lane] = 0;
#if defined(MUT_NO_SECOND_LOOK)
		CLEAR(bits, lane);
#elif defined(MUT_SECOND_LOOK_FIRST)
		look_again();
		CLEAR(bits, lane);
#else
		CLEAR(bits, lane);
		look_again();
#endif
		if
#ifndef MUT_NOT_SET_AGAIN
		:: late -> store_now(BELL, cell[BELL] | BIT(lane)); late = false
#endif
		:: else
		fi
	fi
}

proctype receiver(byte me)
{
	byte next[SENDERS + 1] = START, empty_looks[SENDERS + 1];
	byte others_next, bits, lane, count;
	bool late;

end:
	do
	:: LOAD(BELL) != 0 || LOAD(OTHERS_BELL) != 0 || LOAD(SIGNALS_BELL) != 0 ->
#ifdef ROOM
		if
		:: LOAD(SIGNALS_BELL) != 0 -> hear_asks()
		:: LOAD(SIGNALS_BELL) == 0
		fi;
#endif
		if
		:: LOAD(OTHERS_BELL) != 0 -> others_receive()
		:: LOAD(OTHERS_BELL) == 0
		fi;
		bits = LOAD(BELL);
		lane = 0;
		do
		:: lane < SENDERS && bits & BIT(lane) ->
			lane_receive();
			if
#ifndef MUT_NO_HEAD
			:: count > 0 ->
				store(HEAD(lane), next[lane]);
				empty_looks[lane] = 0
#endif
			:: count == 0 -> grow_cold()
			:: else
			fi;
			count = 0;
			lane++
		:: lane < SENDERS && !(bits & BIT(lane)) -> lane++
		:: lane == SENDERS -> lane = 0; bits = 0; break
		od
	od
}

/* As lane_init leaves it. */
inline lane_init(lane)
{
	cell[SEQUENCE(lane, START)] = START + 1 - SLOTS;
	cell[SEQUENCE(lane, START + 1)] = START + 2 - SLOTS;
	cell[HEAD(lane)] = START
}

init {
	byte i;

	atomic {
		for (i : 0 .. RECEIVER) {
			if
			:: i < SENDERS -> lane_init(i); run sender(i)
			:: i >= SENDERS && i < RECEIVER -> run other(i)
			:: i == RECEIVER -> run receiver(i)
			fi;
			run memory(i)
		}
		i = 0
	};
	/* No thread can run. */
	timeout -> assert(received == (SENDERS + OTHERS) * MESSAGES); /* no message is forgotten */
	NEVER(AT_RECEIVED, true)
}
