#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The memory orders and the steps of lanes, their doorbell, and what else hands something from one
# lcore to another: see orders.sh.
#
#     tests/mutate/lane_orders.sh [TEXT]      only the mutants whose name has TEXT in it
# shellcheck source=tests/mutate/orders.sh
. "$(dirname "${BASH_SOURCE[0]}")/orders.sh"

subject lib/lcore "$@"

includes='-Ilib/ring -Ilib/topo -Ilib/mem'
# shellcheck disable=SC2086 # words are meant to be split
archive below -fsanitize=thread '-DPLX_VERSION=""' $includes -Ilib/lcore{,/loop,/idle,/messages} \
	lib/base/*.c lib/ring/*.c lib/topo/*.c lib/mem/*.c lib/lcore/{,*/}*.c

with="-fsanitize=thread $includes -Itests/unit/lcore @@ %below -lnuma -lhwloc"
program unit/lcore/lane_test.c 30 "$with"
program stress/messages_test.c 120 "-DLANE_COLD_LOOKS=3 @/lane.c $with" '1500 4'
program unit/lcore/message_test.c 20 "$with"
program unit/lcore/sleep_test.c 60 "$with"

order_mutants lane.c message.c loop.c stop.c launch.c

for name in 'lane.c lane_open' 'message.c message_send'; do
	spare "$name 1 acquire to relaxed" 'lcore_get has acquired the loop'
done
modelled 'lane.c ring 1 seq_cst to acquire' lane MUT_LOOK_FIRST
modelled 'lane.c ring 1 seq_cst to relaxed' lane MUT_LOOK_FIRST
modelled 'lane.c lane_send 1 seq_cst to release' lane MUT_PLAIN_STORE
modelled 'lane.c grow_cold 1 seq_cst to acq_rel' lane MUT_PLAIN_CLEAR
modelled 'lane.c grow_cold 1 seq_cst to relaxed' lane MUT_PLAIN_CLEAR
modelled 'lane.c grow_cold 2 seq_cst to acquire' lane MUT_SECOND_LOOK_FIRST
modelled 'lane.c grow_cold 2 seq_cst to relaxed' lane MUT_SECOND_LOOK_FIRST
modelled 'message.c others_send 1 seq_cst to relaxed' lane MUT_OTHERS_RING_FIRST
modelled 'message.c others_send 1 seq_cst to acq_rel' sleep MUT_OTHERS_PLAIN_RING
modelled 'message.c receive_others 1 acquire to relaxed' lane MUT_OTHERS_PLAIN_CLEAR
# The second look of an lcore that goes to sleep.
for name in 'message.c messages_wait 1' 'lane.c lanes_wait 1' 'lane.c lanes_wait 3'; do
	modelled "$name seq_cst to acquire" sleep MUT_SECOND_LOOK_FIRST
	modelled "$name seq_cst to relaxed" sleep MUT_SECOND_LOOK_FIRST
done
spare 'lane.c lanes_wait 2 acquire to relaxed' 'the bit is acquired before'
spare 'launch.c leave_wait 1 acq_rel to release' 'plx_lcore_launch has acquired the state, and lcore_retire joins the thread'
spare 'stop.c plx_stop 1 seq_cst to release' 'the eventfds of all lcores are written to, and each one looks after that'
spare 'lane.c ring 2 seq_cst to acq_rel' 'the load before it is D2; this one sets the bit'
spare 'lane.c grow_cold 3 seq_cst to acq_rel' 'who puts the bit back is who looks at it next'
spare 'lane.c grow_cold 3 seq_cst to relaxed' 'who puts the bit back is who looks at it next'
spare 'lane.c receive_word 2 acquire to relaxed' 'the bit is acquired before; see: a lane is found without acquiring it'
# That who finds the bit set finds a lane at all: x86 shows stores in the order they were made in.
unseen 'launch.c lcore_enter 1 release to relaxed' \
	'only a thread that sends while the lcores start needs it: the end of the start is acquired, too'
for weaker in release relaxed; do
	unseen "loop.c plx_loop_quit 1 seq_cst to $weaker" \
		'only compilers could move it: a signal handler runs on the thread that looks'
done
unseen 'lane.c ring 2 seq_cst to relaxed' 'the lane is stored before its bit, on x86 anyway'
unseen 'lane.c receive_word 1 acquire to relaxed' 'the lane is loaded after its bit, on x86 anyway'

# Sending
mutant 'a message is shown before it is copied' lane.c \
	'/^\tmessage_copy(slot, message);/{h;d};/&slot->sequence, lane->tail, memory/G'
mutant 'nobody rings' lane.c '/^\tring(bell, sender);/d'
mutant 'the bell is looked at before the message is shown' lane.c \
	'/^\tring(bell, sender);/d;s/^\tlane->tail++;/&\n\tring(bell, sender);/'
mutant 'a sender that rings overwrites the others' lane.c \
	'/^static void ring(/,/^}/s/atomic_fetch_or_explicit(word, \(.*\), memory_order_seq_cst);/atomic_store(word, \1);/'
mutant 'ringing is a load and a store' lane.c \
	'/^static void ring(/,/^}/s/atomic_fetch_or_explicit(word, \(.*\), memory_order_seq_cst);/atomic_store(word, atomic_load(word) | \1);/'
mutant 'room for one more' lane.c 's/lane->send_mask + 1;$/lane->send_mask + 2;/'
mutant 'the head is not looked at again' lane.c '/^\t\tlane->limit = atomic_load/d'

# Receiving
mutant 'what was sent a lap ago counts' lane.c \
	'/A2 <- A1/{n;s/!= lane->next + 1/- lane->next - 1 \& lane->receive_mask/}'
mutant 'the head is not published' lane.c '/H1 -> H2/{n;d}'
mutant 'the head is published before a message is delivered' lane.c \
	's/^\t\tmessage_deliver(slot);/\t\tatomic_store(\&lane->head, lane->next);\n&/'
mutant 'the bell is cleared by a load and a store' lane.c \
	's/atomic_fetch_and_explicit(word, ~bit, .*/atomic_store(word, atomic_load(word) \& ~bit);/'
mutant 'nobody looks again' lane.c '/^\t\/\* D4;/,/^}/{/D4/n;s/if (.*/if (false)/}'
mutant 'the second look comes first' lane.c \
	'/^\tatomic_fetch_and_explicit(word/d;/^\t\/\* D4;/i\	bool late = atomic_load(\&slot->sequence) == lane->next + 1; atomic_fetch_and(word, ~bit);
	/^\tif (atomic_load_explicit(&slot->sequence, memory_order_seq_cst)/s/(.*/(late)/'
mutant 'what the second look finds is not rung for' lane.c \
	'/^static void grow_cold/,/^}/s/atomic_fetch_or_explicit(.*/;/'
mutant 'an empty look is not forgotten' lane.c '/^\t\tlane->empty_looks = 0;/d'
mutant 'the first lane is always the first' lane.c 's/loop->first_lane = .*/loop->first_lane = 0;/'
mutant 'the word begun with is not looked at again' lane.c 's/i <= BELL_WORDS/i < BELL_WORDS/'

# Room
mutant 'the receiver checks once for the room that a sender asked for' lane.c '/^static void on_ask/,/^}/s/^\t\tplx_signal_fire(signal);/\t\t;/'
mutant 'the receiver reports room in a full lane' lane.c 's/^\tif ((int32_t)(lane->next - lane->tell_at) >= 0)/\tif (true)/'
mutant 'a sender asks before it stores how much room it needs' lane.c '/^\tlane->tell_at = /{h;d};/^\tplx_signal_fire(&lane->ask);/G'
mutant 'a sender that got room never asks again' lane.c '/^\tlane->asked = false;/d'
mutant 'a sender asks again while it waits' lane.c '/^\tif (lane->asked)/,+1d'
mutant 'available room is not reported at once' lane.c \
	'/^static void ask(/,/^}/s/^\tif (lane_room(lane)) {/\tif (false) {/'
mutant 'all that wait are called, for room or none' lane.c 's/lane_room(lane) && task_run_next/task_run_next/'
mutant 'those left over are forgotten' lane.c '/^static void on_room/,/^}/s/^\t\task(lane);/\t\t;/'

# Lanes
mutant 'a lane is found without acquiring it' lane.c '/^static unsigned receive_word/,/^}/s/order_acquire/order_relaxed/'
mutant 'a lane is shown before it is set up' lane.c \
	'/^\t\t\tlane_init(lane, lcore_lane_slots,/{h;d};/^\t\t\tatomic_store_explicit(&receiver->in/G'
mutant 'two make the same lane' lane.c 's/^\tif (!lane) {/\tif (true) {/'

# Other threads
mutant 'others do not ring' message.c '/^\t\/\* B1 -> B2/{n;d}'
mutant 'others ring before they push' message.c \
	's/^\tif (!plx_ring_push(loop->others, message))/\tatomic_fetch_or(\&loop->bell.others, 1);\n&/;/^\t\/\* B1 -> B2/{n;d}'
mutant 'the bell of others is cleared last' message.c \
	's/uint64_t others = atomic_exchange_explicit(&loop->bell.others, 0, /uint64_t others = atomic_load_explicit(\&loop->bell.others, /;/^\trung.others = 0;/i\	atomic_store(\&loop->bell.others, 0);
'
mutant 'others wake nobody' message.c '/^\twake_if_asleep(&loop->bell);/d'
mutant 'senders wake nobody' lane.c '/^\twake_if_asleep(bell);/d'
mutant 'what others sent beyond a turn is not rung for' message.c '/^\tif (received == max)/,/;/d'

try_all
