#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The memory orders and the steps of drivers/shm/ring/ring.h and ring.c: see orders.sh. The bell, requests to be called
# (progress.c) and later calls (send.c) are in ../model/shm_call.pml.
#
#     tests/mutate/shm_orders.sh [TEXT]      only the mutants whose name has TEXT in it
# shellcheck source=tests/mutate/orders.sh
. "$(dirname "${BASH_SOURCE[0]}")/orders.sh"

subject drivers/shm/ring "$@"

program unit/shm/ring_test.c 10 '@/ring.c'
program stress/shm_ring_test.c 60 '-fsanitize=thread @/ring.c' 20000

order_mutants ring.h ring.c
modelled 'ring.h ring_call 1 seq_cst to acq_rel' shm_call MUT_NO_FENCE
modelled 'ring.h ring_call 1 seq_cst to relaxed' shm_call MUT_NO_FENCE
modelled 'ring.h ring_call 2 seq_cst to acquire' shm_call MUT_LOOK_FIRST
modelled 'ring.h ring_call 2 seq_cst to relaxed' shm_call MUT_LOOK_FIRST
modelled 'ring.h ring_look 1 seq_cst to acquire' shm_call MUT_SECOND_LOOK_FIRST
modelled 'ring.h ring_look 1 seq_cst to relaxed' shm_call MUT_SECOND_LOOK_FIRST
modelled 'ring.c ring_refresh 1 seq_cst to acquire' shm_call MUT_SPACE_LOOK_FIRST
modelled 'ring.c ring_tell 1 seq_cst to release' shm_call MUT_PLAIN_HEAD
modelled 'ring.c ring_tell 2 seq_cst to acquire' shm_call MUT_SPACE_CALL_FIRST
modelled 'ring.c ring_tell 2 seq_cst to relaxed' shm_call MUT_SPACE_CALL_FIRST
# Stress sees it most times, but not each time.
modelled 'the request for room is read before the head is published' shm_call MUT_SPACE_CALL_FIRST
for order in acq_rel relaxed; do
	spare "ring.h ring_call 3 seq_cst to $order" 'the look is C2; this only removes the request'
	spare "ring.c ring_tell 3 seq_cst to $order" 'the look is E2; this only removes the request'
done

# Writing
mutant 'the word after a record is not cleared' ring.h 's/writer->cleared <= next/false/'
mutant 'what follows a record counts as cleared' ring.h 's/writer->cleared <= next/writer->cleared < next/'
mutant 'the word after a record is cleared after the record is published' ring.h \
	'/^\tif (plx_unlikely(writer->cleared <= next)) {/,/^\t}/d
	/^\twriter->tail = next;/a\	if (writer->cleared <= next) usleep(1), writer->cleared = next, ring_clear(writer, next + RECORD_UNIT);'
mutant 'a record itself is cleared' ring.h '/^\t\twriter->cleared = next;/d'
mutant 'what was not read is cleared ahead' ring.h 's/end < room ? end : room/end/'
mutant 'a record has no word after it' ring.h 's/left + bytes) + RECORD_UNIT;/left + bytes);/'
mutant 'a skip takes no room' ring.h 's/bytes <= left ? bytes : left + bytes/bytes/'
mutant 'room for one more' ring.h \
	's/writer->head + segment->ring_bytes)/writer->head + segment->ring_bytes + RECORD_UNIT)/'
mutant 'the head is not read again' ring.h '/^\t\tring_refresh(writer);/d'
mutant 'the head is believed' ring.c 's/if (head - writer->head > .*/if (false)/'
mutant 'a head may be between records' ring.c 's/ || head % RECORD_UNIT//'

# Calling
mutant 'nobody is called' ring.h 's/seq_cst) == CALL_NONE))/seq_cst) != UINT32_MAX))/'
mutant 'a request is kept' ring.h 's/atomic_exchange_explicit(call, CALL_NONE, /atomic_load_explicit(call, /'
mutant 'a request counts as it was found' ring.h \
	'/^\treturn atomic_exchange_explicit(call/{s/return/enum shm_call found = atomic_load(call);/;s/$/ return found;/}'
mutant 'a sleeping receiver gets only the bell' ring.h 's/^\treturn atomic_exchange_explicit(call, .*)/& \& CALL_BELL/'

# Reading
mutant 'the head is published before it has moved' ring.h '/^\treader->head += record->bytes;/{h;d};/^\treturn ring_tell/{s/return/bool wake =/;G;s/$/\n\treturn wake;/};/^\t\treturn false;/{s/.*/\t\treturn reader->head += record->bytes, false;/}'
mutant 'the head is published before the copy' ring.h \
	'/^\t\*record_out = (struct record){/i\	atomic_store(\&segment->control->head, reader->head + bytes);'
mutant 'the head is published only on request' ring.h 's|ring_bytes / 8|ring_bytes * 8|'
mutant 'an ack is not heeded' ring.h 's/ *!(record->flags & RECORD_ACK)))/true))/'
mutant 'each head is published' ring.c '/^\treader->head_told = reader->head;/d'
mutant 'a sender that waits for room is not woken' ring.c 's/CALL_WAKE;/CALL_BELL;/'
mutant 'a request for room is kept' ring.c \
	's/atomic_exchange_explicit(&control->space_call, CALL_NONE, /atomic_load_explicit(\&control->space_call, /'
mutant 'the request for room is read before the head is published' ring.c \
	'/H1 -> H2; E1/{N;h;d};/^\t\treturn false;/{x;s/^/&/;x;s/.*/\t\treturn atomic_store(\&control->head, reader->head), false;/};/^\treturn atomic_exchange_explicit(&control->space_call/{x;p;x}'
mutant 'a skip is a record' ring.c 's/if (kind == RECORD_SKIP)/if (false)/'
mutant 'skips may go round' ring.c 's/if (offset == 0)/if (false)/'
mutant 'a length is believed' ring.h 's/(uint32_t)word > ring_payload_max(segment)/false/;s/bytes > segment->ring_bytes - offset/false/'
mutant 'a length of another kind is believed' ring.c 's/if (length > ring_payload_max(segment) ||/if (false \&\&/'
mutant 'any kind is known' ring.c 's/return kind >= RECORD_MESSAGE && kind <= RECORD_NEXT/return true/'

try_all
