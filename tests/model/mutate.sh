#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Verifies the models of this folder with Spin. Then removes their steps one at a time: without a step, the property
# that needs it must have a counterexample. So must each claim that some place of a model is never reached. Needs spin
# and gcc, up to 4 GiB, and two to three minutes.
#   tests/model/mutate.sh [WORD]    only searches whose name contains WORD
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 1
word=${1-}
at_once=2      # searches
memory_mb=1900 # of each, at most
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
: >"$work/results"

# Search options of each model: independent steps need one order only (Spin's default), except where `timeout` counts.
declare -A options=([ring]=REDUCE [lane]=NOREDUCE [shm_call]=NOREDUCE [sleep]=NOREDUCE)

# The properties, as named by a search that finds a counterexample.
declare -A names=(
	[refusal]='violated lacking'           # full or empty is said only when it is so
	[slot]='violated  !(busy['             # one thread in a slot
	[element]='(slots['                    # no element is lost, overwritten, or popped twice
	[order]='(position+taken)>'            # a claim never goes back
	[early]='(pop_claim>>4)<='             # no pop before its push
	[capacity]='(pop_claim>>4))<='         # no more elements than fit
	[waits]='invalid end state'            # no thread waits for one that stopped
	[forgotten]='received=='               # all are idle: then all messages were received
	[slept]='heard=='                      # nothing is slept through, and no timer
	[told]='(tail<limit)'                  # the receiver reports room only if there is some
	[message]='message['                   # no message is torn, overwritten, or received twice
	[called]='wish['                       # nobody is called for a wish that was taken before
	[witness]='|| !('                      # that place is never reached
)

# verdict LOG: the result of a search.
verdict()
{
	local name

	if grep -q 'errors: 0$' "$1" && grep -q '^Full statespace search' "$1" &&
		! grep -qiE 'not completed|too small|out of memory|MEMLIM|truncated' "$1"; then
		echo verified
		return
	fi
	for name in "${!names[@]}"; do
		grep -q 'errors: 1$' "$1" && grep '^pan:1:' "$1" | grep -qF -- "${names[$name]}" &&
			echo "$name" && return
	done
	echo 'no result'
}

# search WANTED MODEL MACRO...: one search, one line.
search()
{
	local wanted=$1 model=$2 dir got states optimize=-O0 # for most are short

	shift 2
	[[ $wanted != verified ]] || optimize=-O2
	dir=$(mktemp -d "$work/XXXXXX") || return
	(
		cd "$dir" && spin -a "${@/#/-D}" "$here/$model.pml" &&
			gcc -w $optimize -DSAFETY -DMEMLIM=$memory_mb "-D${options[$model]}" -o pan pan.c &&
			./pan -n -m50000
	) >"$dir/log" 2>&1
	got=$(verdict "$dir/log")
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$dir/log")
	if [[ $got == "$wanted" ]]; then
		printf '%s\n' good >>"$work/results"
		printf '%-9s %s %s (%s states)\n' "$got" "$model" "$*" "$states"
	else
		printf '%s\n' bad >>"$work/results"
		printf 'WRONG     %s %s: %s, expected %s\n' "$model" "$*" "$got" "$wanted"
		grep -E '^(pan|spin|.*rror)' "$dir/log" | head -5
	fi
	rm -rf "$dir"
}

# expect WANTED MODEL MACRO...: the same in the background, a few at once.
expect()
{
	[[ "$*" == *"$word"* ]] || return 0
	(($(jobs -rp | wc -l) < at_once)) || wait -n
	search "$@" &
}

# expect_each WANTED ARRAY MACRO...: the search of that array, with each of these macros.
expect_each()
{
	local wanted=$1 macro
	local -n model_and_macros=$2

	shift 2
	for macro; do
		expect "$wanted" "${model_and_macros[@]}" "$macro"
	done
}

# MPMC rings. The modes are those of the first and the second thread of each side.
exact=(ring CONSUMERS=2 MODES_A=ONE MODES_B=BURST CAPACITY=3 SLOTS=4 ITEMS=4)
bursts=(ring CONSUMERS=2 MODES_A=BURST MODES_B=BURST CAPACITY=3 SLOTS=4 ITEMS=4)
two=(ring CONSUMERS=2 MODES_A=ONE MODES_B=BURST CAPACITY=2 SLOTS=2 ITEMS=4)
bulks=(ring CONSUMERS=2 MODES_A=ONE MODES_B=ANY CAPACITY=2 SLOTS=2 ITEMS=3)
one=(ring CONSUMERS=2 MODES_A=ONE MODES_B=MIXED CAPACITY=1 SLOTS=1 ITEMS=4)
# MPSC rings. (To one consumer the two kinds are the same: its compare-and-swap never fails.)
mpsc=(ring CONSUMERS=1 MODES_A=ANY MODES_B=ANY CAPACITY=2 SLOTS=2 ITEMS=4 SOLE)
long=(ring CONSUMERS=1 MODES_A=MIXED MODES_B=MIXED CAPACITY=3 SLOTS=4 ITEMS=5 SOLE)

expect verified "${exact[@]}"
expect verified "${bulks[@]}"
expect verified "${bursts[@]}"
expect verified "${two[@]}"
expect verified "${one[@]}"
expect verified "${mpsc[@]}"
expect verified "${long[@]}"

expect_each capacity exact MUT_BEHIND_SLOTS MUT_NO_LAP MUT_NO_KIND MUT_FOLLOW_AGAIN MUT_RUN_KEPT_WHOLE
expect_each early exact MUT_NO_FOLLOW
expect_each refusal exact MUT_LENGTH_ONE MUT_RUN_NOT_CARRIED MUT_NO_RECHECK MUT_NO_PUSH_MARK MUT_NO_POP_MARK
expect_each order exact MUT_CLAIM_NOT_ATOMIC
expect order "${two[@]}" SOLE # an MPSC ring with two consumers
expect_each element exact MUT_NO_COPY
expect_each slot exact MUT_PUSH_MARK_FIRST MUT_POP_MARK_FIRST
expect_each waits exact MUT_PUSH_IN_ORDER
expect_each waits two MUT_POP_IN_ORDER

expect_each witness mpsc WITNESS=AT_MOVED_ON WITNESS=AT_CARRIED WITNESS=AT_BULK_MISSED WITNESS=AT_FULL \
	WITNESS=AT_ALL_POPPED WITNESS=AT_LEFT_BEHIND

# Lanes and the others' ring, each alone, and together.
lanes=(lane SENDERS=2 OTHERS=0 MESSAGES=3)
others=(lane SENDERS=0 OTHERS=2 MESSAGES=3)
both=(lane SENDERS=1 OTHERS=2 MESSAGES=2)

expect verified "${lanes[@]}"
expect verified "${others[@]}"
expect verified "${both[@]}"
expect verified lane SENDERS=1 OTHERS=0 MESSAGES=6

expect_each forgotten lanes MUT_PLAIN_STORE MUT_LOOK_FIRST MUT_NO_RING MUT_RING_NOT_ATOMIC MUT_CLEAR_NOT_ATOMIC \
	MUT_NO_SECOND_LOOK MUT_SECOND_LOOK_FIRST MUT_NOT_SET_AGAIN MUT_NO_HEAD
expect forgotten lane SENDERS=1 OTHERS=0 MESSAGES=3 MUT_PLAIN_CLEAR
expect_each message lanes MUT_SEQUENCE_FIRST MUT_HEAD_FIRST MUT_NO_ROOM_CHECK MUT_NO_LAP
expect_each forgotten others MUT_OTHERS_STICKY MUT_OTHERS_RING_FIRST MUT_OTHERS_CLEAR_LAST MUT_OTHERS_PLAIN_CLEAR \
	MUT_OTHERS_NOT_AGAIN

expect_each witness lanes WITNESS=AT_FULL WITNESS=AT_LATE WITNESS=AT_COLD WITNESS=AT_RECEIVED

# A sender that waits for room.
room=(lane SENDERS=1 OTHERS=0 MESSAGES=6 ROOM)

expect verified "${room[@]}"
expect verified lane SENDERS=2 OTHERS=0 MESSAGES=3 ROOM

expect_each told room MUT_ASK_FIRST MUT_TELL_ALWAYS
expect_each forgotten room MUT_ASK_ONCE
expect_each witness room WITNESS=AT_ASKED WITNESS=AT_RECEIVED
expect_each witness others WITNESS=AT_MORE WITNESS=AT_STALLED

# Rings of two records, and of one record, whose sender waits until each is read; and two connections, whose bits share
# a word of the bell or not. The latter have many more states, so at most one sender checks early.
ring_of_two=(shm_call SENDERS=1 BELL_WORDS=1 SLOTS=3 RECORDS=4 EARLY=1 SLEEPS=3)
in_turn=(shm_call SENDERS=1 BELL_WORDS=1 SLOTS=2 RECORDS=4 EARLY=1 SLEEPS=2)
shared=(shm_call SENDERS=2 BELL_WORDS=1 SLOTS=2 RECORDS=1 EARLY=0 SLEEPS=2)
apart=(shm_call SENDERS=2 BELL_WORDS=2 SLOTS=2 RECORDS=1 EARLY=1 SLEEPS=1)

expect verified "${ring_of_two[@]}"
expect verified "${in_turn[@]}"
expect verified "${shared[@]}"
expect verified "${apart[@]}"

expect_each forgotten ring_of_two MUT_NO_FENCE MUT_NO_LATER_FENCE MUT_NO_LATER_LOOK MUT_EARLY_UNCALLED MUT_LOOK_FIRST \
	MUT_NO_CALL MUT_PLAIN_WISH MUT_NO_SECOND_LOOK MUT_SECOND_LOOK_FIRST MUT_WISH_NOT_ATOMIC MUT_AS_FOUND \
	MUT_SUMMARY_FIRST MUT_SUMMARY_LAST MUT_WORD_NOT_ATOMIC MUT_NO_WAKE MUT_WAKE_IS_NO_BELL MUT_BELL_IS_NO_WAKE \
	MUT_NO_BELL_ASLEEP MUT_ARMED_BEHIND_BYTE MUT_ARMED_AND_BELLED MUT_ARMED_LAST
expect_each forgotten in_turn MUT_SLEEPS_OWING MUT_WAKE_UNLISTED MUT_PLAIN_HEAD MUT_SPACE_CALL_FIRST MUT_NO_SPACE_CALL \
	MUT_PLAIN_SPACE_WISH MUT_NO_SPACE_LOOK MUT_SPACE_LOOK_FIRST
expect_each called ring_of_two MUT_WISH_KEPT
expect_each forgotten shared MUT_BELL_NOT_ATOMIC
expect_each forgotten apart MUT_SUMMARY_NOT_ATOMIC
expect_each message ring_of_two MUT_WORD_FIRST MUT_CLEAR_LAST MUT_NO_CLEAR MUT_CLEAR_TOO_FAR MUT_NO_WORD_BEHIND \
	MUT_HEAD_FIRST

expect witness "${in_turn[@]}" WITNESS=AT_FULL
expect_each witness ring_of_two WITNESS=AT_LATE WITNESS=AT_CHANGED WITNESS=AT_SLEPT WITNESS=AT_STALE \
	WITNESS=AT_RECEIVED WITNESS=AT_OWED WITNESS=AT_ARMED WITNESS=AT_TWO

# A sleeping lcore: two lanes; a lane and a thread that is not an lcore; a lane and a provider.
lanes=(sleep SENDERS=2 OTHERS=0 PEERS=0 MESSAGES=2)
thread=(sleep SENDERS=1 OTHERS=1 PEERS=0 MESSAGES=2)
provider=(sleep SENDERS=1 OTHERS=0 PEERS=1 MESSAGES=2)

expect verified "${lanes[@]}"
expect verified "${thread[@]}"
expect verified "${provider[@]}"
expect verified sleep SENDERS=1 OTHERS=0 PEERS=0 MESSAGES=5

expect_each slept lanes MUT_PLAIN_PUBLISH MUT_LOOK_FIRST MUT_NO_WRITE MUT_WRITE_FIRST MUT_PLAIN_SLEEPING \
	MUT_NO_SECOND_LOOK MUT_SECOND_LOOK_FIRST MUT_READ_BEHIND_LOOK MUT_NO_EVENTFD MUT_NO_TIMER
expect_each slept thread MUT_OTHERS_PLAIN_RING
expect_each slept provider MUT_NO_ARM MUT_REFUSAL_IGNORED

expect_each witness lanes WITNESS=AT_LATE WITNESS=AT_WOKEN WITNESS=AT_TIMER WITNESS=AT_STALE WITNESS=AT_RECEIVED
expect_each witness provider WITNESS=AT_REFUSED WITNESS=AT_SIGNAL

# A thread that waits for a NetIO queue.
waiter=(sleep SENDERS=1 OTHERS=0 PEERS=0 MESSAGES=4 WAITER)

expect verified "${waiter[@]}"
expect_each slept waiter MUT_LOOK_FIRST MUT_NO_WRITE MUT_PLAIN_SLEEPING MUT_NO_SECOND_LOOK MUT_SECOND_LOOK_FIRST \
	MUT_READ_BEHIND_LOOK MUT_NO_EVENTFD
expect_each witness waiter WITNESS=AT_LATE WITNESS=AT_WOKEN WITNESS=AT_STALE WITNESS=AT_RECEIVED

wait
good=$(grep -c good "$work/results") bad=$(grep -c bad "$work/results")
echo "models: $good searches ended as expected, $bad did not"
((good > 0 && bad == 0))
