#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The memory orders and the steps of lib/ring: see orders.sh.
#
#     tests/mutate/ring_orders.sh [TEXT]      only the mutants whose name has TEXT in it
# shellcheck source=tests/mutate/orders.sh
. "$(dirname "${BASH_SOURCE[0]}")/orders.sh"

subject lib/ring "$@"

# Those with threads have a copy of multi.c, with steps, in them. Given are how much to do, and
# seconds until the alarm.
threads='-fsanitize=thread -Itests/unit/ring @/ring.c lib/base/error.c'
plain='-Itests/unit/ring @/ring.c @/multi.c lib/base/error.c'
program stress/ring_stops_test.c 90 "$threads" '0 6'
program stress/rings_test.c 90 "$threads" '4000 60'
program unit/ring/moves_test.c 20 "$plain"
program unit/ring/ring_test.c 10 "$plain"

order_mutants plx_ring.h multi.c
spare 'multi.c claim 1 acquire to relaxed' 'the compare-and-swap acquires too; see: a claim acquires nothing'
spare 'multi.c claim 2 acquire to relaxed' 'the compare-and-swap acquires too; see: a claim acquires nothing'
spare 'multi.c claim 3 acq_rel to release' 'the loads before acquire too; see: a claim acquires nothing'
spare 'multi.c claim 4 acquire to relaxed' 'the compare-and-swap acquires too; see: a claim acquires nothing'

mutant 'a claim acquires nothing' multi.c '/^static inline struct claim claim(/,/^}/{
	s/memory_order_acquire/memory_order_relaxed/
	s/memory_order_acq_rel/memory_order_release/
}'
mutant 'a push marks before it copies' multi.c '/^\tplx_ring_copy_in(/{h;d};/^\tmark(ring, mine, 0)/G'
mutant 'a pop marks before it copies' multi.c '/^\tplx_ring_copy_out(/{h;d};/^\tmark(ring, mine, MARK_EMPTY)/G'
mutant 'claims are stored, not swapped' multi.c 's/if (sole)/if (true)/'
mutant 'what was found is not handed on' multi.c 's/taken, run - taken)/taken, 0)/'
mutant 'more is handed on than was found' multi.c 's/taken, run - taken)/taken, run - taken + 1)/'
mutant 'a bulk takes a part' multi.c 's/taken == 0 || (bulk && taken < count)/taken == 0/'
mutant 'nobody looks again' multi.c 's/if (now == old)/if (true)/'
mutant 'a mark of any lap counts' multi.c \
	's/(mark & ~MARK_LENGTH) != make_word(position + run, kind)/(mark \& MARK_EMPTY) != kind/'
mutant 'a mark of either kind counts' multi.c \
	's/(mark & ~MARK_LENGTH) != make_word(position + run, kind)/mark >> POSITION_SHIFT != ((position + run) \& POSITION_MASK)/'
mutant 'a mark counts one more' multi.c 's/kind | claim.count)/kind | (claim.count + 1))/'
mutant 'a mark counts one element only' multi.c 's/kind | claim.count)/kind | 1)/'
mutant 'the first lap has one element more' multi.c '/^void multi_init/,/^}/s/= ring->capacity;/= ring->capacity + 1;/
	s/&ring->push_claim, ring->capacity, MARK_EMPTY/\&ring->push_claim, ring->capacity + 1, MARK_EMPTY/'
mutant 'the first lap has one element less' multi.c \
	'/^void multi_init/,/^}/s/MARK_EMPTY | length)/MARK_EMPTY | (length - 1))/'
mutant 'unset marks are zero' multi.c 's/make_word(i ^ 1, 0)/0/'
mutant 'the depth is noted after the mark' multi.c \
	'/^\tmark(ring, mine, MARK_EMPTY);/d;s|^\t/\* Before the mark|\tmark(ring, mine, MARK_EMPTY);\n&|'
mutant 'bursts are not cut' multi.c 's/\*count - 1 < PLX_RING_BURST_MAX/*count != 0/'
mutant 'a long bulk is cut' multi.c 's/\*count == 0 || bulk/*count == 0/'
mutant 'MPMC: a refused push is not counted' multi.c 's/counter_add_shared(&ring->full, 1/counter_add_shared(\&ring->full, 0/'
mutant 'SPSC: a push shows what it did not copy yet' plx_ring.h \
	'/^\tplx_ring_copy_in(ring, words, tail/{h;d};/^\tplx_atomic_store(&ring->tail, tail + count/G'
mutant 'SPSC: a pop gives back what it did not copy yet' plx_ring.h \
	'/^\tplx_ring_copy_out(ring, words, head/{h;d};/^\tplx_atomic_store(&ring->head, head + count/G'
mutant 'SPSC: room for one more' plx_ring.h 's/PLX_ACQUIRE) + ring->capacity;/PLX_ACQUIRE) + ring->capacity + 1;/'
mutant 'SPSC: room for one less' plx_ring.h 's/PLX_ACQUIRE) + ring->capacity;/PLX_ACQUIRE) + ring->capacity - 1;/'
mutant 'SPSC: room for one more at first' ring.c 's/(uint32_t)start + attr->capacity/&+ 1/'
mutant 'SPSC: the tail is taken for one more' plx_ring.h 's/ring->tail_seen - head;/& + 1/;s/head; + 1/head + 1;/'
mutant 'SPSC: a bulk takes a part' ring.c 's/return bulk || /return /'
mutant 'SPSC: a refused push is not counted' ring.c 's/counter_add(&ring->full, 1/counter_add(\&ring->full, 0/'
mutant 'copies do not go round the end: in' plx_ring.h '/^\tmemcpy(ring->slots, from + part/d'
mutant 'copies do not go round the end: out' plx_ring.h '/^\tmemcpy(to + part/d'

mutant 'copies leave out the last' plx_ring.h 's/if (count & 1)/if (false)/'
mutant 'copies leave out a pair' plx_ring.h 's/if (count & 2)/if (false)/'
mutant 'spans do not go round the end' plx_ring.h 's/parts\[1\].count = count - .*/parts[1].count = 0;/'

try_all
