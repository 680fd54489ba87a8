/* SPDX-License-Identifier: BSD-3-Clause */
/* Store buffers of one store for each of BUFFERS threads, in front of `cell`; and places that are
 * claimed to be never reached. */

#ifndef WITNESS
#define WITNESS 0
#endif
#define NEVER(place, is_here) assert(WITNESS != place || !(is_here))

#ifdef BUFFERS
byte stored_at[BUFFERS]; /* the cell of a store that is not in memory yet, + 1; 0: none */
byte stored[BUFFERS];

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
#endif
