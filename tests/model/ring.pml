/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPMC and MPSC rings of lib/ring/multi.c.
 *
 *   here                  in multi.c
 *   load                  claim(): the first load of the claim word (C2)
 *   follow                follow(): one look at one mark (M2)
 *   swap                  claim(): compare-and-swap, or a sole consumer's store (C1)
 *   UNMOVED, in claim     claim(): the second load, before a refusal
 *   copy                  plx_ring_copy_in, plx_ring_copy_out: a thread is in its slots from the
 *                         claim to here
 *   mark                  mark(): the store (M1), into the thread's store buffer
 *   memory                what empties those buffers, some time later
 *   stopped++             RING_STEP(claimed), RING_STEP(copied): a thread may stop there for ever
 *
 * A step is one access to shared memory. What else it does is private, or about ghosts: variables
 * that only the properties read. Words are packed as in multi.c, with 4 bits instead of 17 next to
 * the position. An element is the position that it was pushed to.
 *
 * A store buffer holds one mark, and the next one waits for it; its own thread reads it there. The
 * compare-and-swap does not empty it here, though x86's does: the ring needs no such order. The
 * elements need no buffer: their reader has seen the mark, which is stored after them.
 *
 * Parameters are CAPACITY, SLOTS, CONSUMERS, ITEMS (to be pushed by both producers together, or one
 * more) and SOLE for an MPSC ring. MODES_A are those of the first producer and the first consumer,
 * MODES_B of the second ones. A MUT_ macro removes a step; WITNESS names a place and claims that
 * it is never reached. mutate.sh expects a counterexample for each. */

#define PRODUCERS 2
#define THREADS   (PRODUCERS + CONSUMERS)
#define IS_PUSH   (me < PRODUCERS)
#define START     SLOTS /* the first position: none is below 0 */

#include "buffers.pml"

#define AT_MOVED_ON    1 /* the word had moved when it was looked at again */
#define AT_CARRIED     2 /* a claim out of the run in the word, no mark looked at */
#define AT_BULK_MISSED 3 /* there was something, but less than a bulk */
#define AT_FULL        4
#define AT_ALL_POPPED  5 /* nobody stopped, and all came to the end */
#define AT_LEFT_BEHIND 6 /* a push stopped: elements before it were popped, those after it were not */

#define ONE   1 /* modes of a push or pop: one element */
#define BURST 2 /* up to two */
#define BULK  4 /* two or none */
#define MIXED (ONE + BURST)
#define ANY   (ONE + BURST + BULK)

/* Words ------------------------------------------------------------------------------------- */

#define FILLED               0 /* kinds of mark */
#define EMPTY                8
#define LENGTH               7
#define WORD(position, rest) ((position) << 4 | (rest))
#define POSITION(word)       ((word) >> 4)
#define RUN(word)            ((word) & 15)
#define SLOT(position)       ((position) % SLOTS)

short push_claim = WORD(START, 0);
short pop_claim = WORD(START, 0);
short marks[SLOTS];
short buffer[THREADS]; /* a thread's mark that is not in memory yet; 0: none */
byte slots[SLOTS];     /* 0: nothing */

/* Ghosts. Bit n of a set: position n. */
bool busy[SLOTS]; /* a thread is in it */
int filled;       /* under a push's mark that is in memory */
int emptied;      /* the same of pops */
byte pushing;     /* producers that have neither ended nor stopped */
byte running;     /* threads that have not */
byte stopped;     /* between claim and mark */
byte ended;       /* consumers that found the ring empty after the last push, and ended */

#define BITS(from, n)     (((1 << (n)) - 1) << (from))
#define HAS(set, from, n) (((set) & BITS(from, n)) == BITS(from, n))

/* Mutations --------------------------------------------------------------------------------- */

#ifdef MUT_BEHIND_SLOTS /* the ring holds what it has slots for */
#define BEHIND SLOTS
#else
#define BEHIND CAPACITY
#endif

#if defined(MUT_NO_LAP) /* a mark of any lap will do */
#define SAYS(mark, at, kind) (((mark) & EMPTY) == kind)
#elif defined(MUT_NO_KIND) /* a mark of either kind */
#define SAYS(mark, at, kind) (POSITION(mark) == (at))
#else
#define SAYS(mark, at, kind) (((mark) & ~LENGTH) == WORD(at, kind))
#endif

#ifdef MUT_NO_FOLLOW /* claim what may not be there */
#define KNOWN count
#else
#define KNOWN RUN(old)
#endif

#ifdef MUT_LENGTH_ONE /* a mark counts only its slot */
#define LENGTH_OF(mark) 1
#else
#define LENGTH_OF(mark) ((mark) & LENGTH)
#endif

#ifdef MUT_FOLLOW_AGAIN /* from the position on, though a run is known */
#define NEXT(lag) (POSITION(old) - lag)
#else
#define NEXT(lag) (POSITION(old) - lag + found)
#endif

#if defined(MUT_RUN_NOT_CARRIED)
#define REST 0
#elif defined(MUT_RUN_KEPT_WHOLE)
#define REST found
#else
#define REST (found - taken)
#endif

#ifdef MUT_NO_RECHECK /* refuse at once */
#define UNMOVED(word) true
#else
#define UNMOVED(word) (word == old)
#endif

#ifdef SOLE /* the consumer's store, which waits for nothing */
#define IS_SOLE (!IS_PUSH)
#else
#define IS_SOLE false
#endif

#ifdef MUT_CLAIM_NOT_ATOMIC /* a load and a store */
#define SWAPPABLE(word) true
#else
#define SWAPPABLE(word) (IS_SOLE || word == old)
#endif

#if defined(MUT_PUSH_MARK_FIRST) /* before the copy */
#define IS_EARLY(kind) (kind == FILLED)
#elif defined(MUT_POP_MARK_FIRST)
#define IS_EARLY(kind) (kind == EMPTY)
#else
#define IS_EARLY(kind) false
#endif

#ifdef MUT_NO_COPY /* of a push */
#define COPIED(position) 0
#else
#define COPIED(position) position
#endif

#if defined(MUT_NO_PUSH_MARK)
#define IS_MARKED(kind) (kind == EMPTY)
#elif defined(MUT_NO_POP_MARK)
#define IS_MARKED(kind) (kind == FILLED)
#else
#define IS_MARKED(kind) true
#endif

#if defined(MUT_PUSH_IN_ORDER) /* wait for those before, as where a common tail is published */
#define MY_TURN(kind) (kind == EMPTY || HAS(filled, START, position - START))
#elif defined(MUT_POP_IN_ORDER)
#define MY_TURN(kind) (kind == FILLED || HAS(emptied, START, position - START))
#else
#define MY_TURN(kind) true
#endif

/* Memory ------------------------------------------------------------------------------------ */

/* What a thread reads there: its own store first. */
#define SEEN(slot) \
	(buffer[me] != 0 && SLOT(POSITION(buffer[me])) == slot -> buffer[me] : marks[slot])

#define NOTE(mark) \
	if \
	:: mark & EMPTY -> emptied = emptied | BITS(POSITION(mark), mark & LENGTH) \
	:: else -> filled = filled | BITS(POSITION(mark), mark & LENGTH) \
	fi

#define DRAIN(thread) \
	d_step { \
		buffer[thread] != 0 -> \
		marks[SLOT(POSITION(buffer[thread]))] = buffer[thread]; \
		NOTE(buffer[thread]); \
		buffer[thread] = 0 \
	}

active proctype memory()
{
end:
	do
	:: DRAIN(0)
	:: DRAIN(1)
	:: DRAIN(2)
#if CONSUMERS > 1
	:: DRAIN(3)
#endif
	od
}

/* Push and pop ------------------------------------------------------------------------------ */

/* What private variables still hold would only make more states. */
inline forget()
{
	old = 0;
	found = 0;
	is_over = false;
	lacking = false;
	count = 0;
	least = 0;
	position = 0;
	taken = 0
}

inline load(word)
{
	old = word;
	found = KNOWN;
	is_over = false
}

inline begin(word)
{
	if
	:: modes & ONE -> count = 1; least = 1
	:: modes & BURST -> count = 2; least = 1
	:: modes & BULK -> count = 2; least = 2
	fi;
	load(word)
}

/* One look at one mark. truth: the positions whose marks are in memory. */
inline follow(word, lag, kind, truth)
{
	if
	:: SAYS(SEEN(SLOT(NEXT(lag))), NEXT(lag), kind) ->
		found = found + LENGTH_OF(SEEN(SLOT(NEXT(lag))))
	:: else ->
		is_over = true;
		/* Were there really too few, just now? */
		lacking = !HAS(truth, POSITION(word) - lag, least)
	fi
}

inline enter(slot)
{
	assert(!busy[slot]); /* one thread in a slot */
	busy[slot] = true
}

/* What makes a position this thread's. */
inline swap(word)
{
	position = POSITION(old);
	taken = (found < count -> found : count);
	NEVER(AT_CARRIED, RUN(old) >= taken);
	assert(position + taken > POSITION(word)); /* it only grows: a thread's elements are in order */
	word = WORD(position + taken, REST);
	assert(POSITION(pop_claim) <= POSITION(push_claim)); /* no pop before its push */
	assert(POSITION(push_claim) - POSITION(pop_claim) <= CAPACITY); /* no more than fit */
	enter(SLOT(position));
	if
	:: taken == 2 -> enter(SLOT(position + 1))
	:: else
	fi
}

/* Claim up to `count` positions, at least `least`; or be refused, and go to `again` or `halt`. */
inline claim(word, lag, kind, truth)
{
	do
	:: atomic {
		!is_over && found < count ->
		follow(word, lag, kind, truth)
	}
	:: atomic {
		(is_over || found >= count) && found >= least ->
		if
		:: SWAPPABLE(word) -> swap(word); break
		:: else -> load(word)
		fi
	}
	:: atomic {
		is_over && found < least ->
		if
		:: UNMOVED(word) ->
			assert(lacking); /* no refusal without its reason */
			NEVER(AT_FULL, kind == EMPTY);
			NEVER(AT_BULK_MISSED, found > 0);
			if
			:: forget(); goto again
			:: least == 1 -> ended = ended + is_last; goto halt
			fi
		:: else -> load(word); NEVER(AT_MOVED_ON, true)
		fi
	}
	od
}

/* Leave slot position + i, where `there` must be, and `here` will. */
inline leave(i, there, here)
{
	if
	:: i < taken ->
		assert(slots[SLOT(position + i)] == there); /* nothing lost, nothing twice */
		slots[SLOT(position + i)] = here;
		busy[SLOT(position + i)] = false
	:: else
	fi
}

inline copy(kind)
{
	if
	:: kind == FILLED -> leave(0, 0, COPIED(position)); leave(1, 0, COPIED(position + 1))
	:: else -> leave(0, position, 0); leave(1, position + 1, 0)
	fi
}

inline mark(kind)
{
	if
	:: IS_MARKED(kind) -> buffer[me] = WORD(position, kind | taken)
	:: else -> NOTE(WORD(position, kind | taken))
	fi
}

/* Copy, then mark: one step, as nobody sees what is between them. The other way round, all do. */
inline copy_and_mark(kind)
{
	if
	:: atomic {
		!IS_EARLY(kind) && buffer[me] == 0 ->
		copy(kind);
		MY_TURN(kind) -> mark(kind);
		forget();
		goto again
	}
	:: atomic { IS_EARLY(kind) && buffer[me] == 0 -> mark(kind) };
		atomic { copy(kind); forget(); goto again }
	:: stopped++; goto halt
	fi
}

/* Threads ----------------------------------------------------------------------------------- */

proctype producer(byte me, modes)
{
	short old;
	byte found, count, least, position, taken;
	bool is_over, lacking, is_last;

again:
	if
	:: atomic { POSITION(push_claim) < START + ITEMS -> begin(push_claim) }
	:: POSITION(push_claim) >= START + ITEMS -> goto halt
	fi;
	claim(push_claim, BEHIND, EMPTY, emptied);
	copy_and_mark(FILLED);
halt:
	atomic { buffer[me] == 0 -> forget(); pushing--; running-- }
}

proctype consumer(byte me, modes)
{
	short old;
	byte found, count, least, position, taken;
	bool is_over, lacking, is_last;

again:
	atomic { begin(pop_claim); is_last = (pushing == 0) };
	claim(pop_claim, 0, FILLED, filled);
	copy_and_mark(EMPTY);
halt:
	atomic { buffer[me] == 0 -> forget(); is_last = false; running-- }
}

/* As multi_init leaves them. */
inline multi_init()
{
	i = 0;
	do
	:: i < SLOTS -> marks[i] = WORD(i ^ 1, FILLED); i++
	:: else -> break
	od;
	marks[SLOT(START - BEHIND)] = WORD(START - BEHIND, EMPTY | BEHIND);
	emptied = BITS(START - BEHIND, BEHIND);
	i = 0
}

/* That nobody waits for one that stopped needs no words here: it would be an invalid end state. */
init {
	byte i;

	d_step { multi_init(); pushing = PRODUCERS; running = THREADS };
	atomic {
		run producer(0, MODES_A);
		run producer(1, MODES_B);
		run consumer(2, MODES_A);
#if CONSUMERS > 1
		run consumer(3, MODES_B);
#endif
	};
	running == 0;
	if
	:: ended > 0 ->
		/* The threads that continued popped everything before the first stop. */
		assert(!HAS(filled, POSITION(pop_claim), 1));
		if
		:: stopped == 0 ->
			assert(POSITION(pop_claim) == POSITION(push_claim));
			NEVER(AT_ALL_POPPED, POSITION(pop_claim) >= START + ITEMS)
		:: else ->
			NEVER(AT_LEFT_BEHIND,
			      POSITION(pop_claim) > START && filled >> POSITION(pop_claim))
		fi
	:: else
	fi
}
