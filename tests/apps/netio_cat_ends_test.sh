#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# netio-cat: tags, counts and rates; peers that end, are killed or are stopped.
set -uo pipefail
# shellcheck source=tests/apps/netio_cat.sh
. "$(dirname "${BASH_SOURCE[0]}")/netio_cat.sh"

# Two subscribers with matching, overlapping subscriptions, and one that gets nothing.
serve pub publish -t 0x25 --subscribers 3 <"$temp/few"
run a subscribe --connect "127.0.0.1:$port" -t 0x20-0x2f -t 37 --count 4 >"$temp/a.out"
run b subscribe --connect "127.0.0.1:$port" -t 1 -t 0x5/0xf --at-once --count 4 >"$temp/b.out"
run c subscribe --connect "127.0.0.1:$port" -t 0x26-0xffffffffffffffff -t 0x4/0xf >"$temp/c.out"
ended a
check 'a range' "(($? == 0)) && few_lines | cmp - '$temp/a.out'"
ended b
check 'a mask' "(($? == 0)) && few_lines | cmp - '$temp/b.out'"
ended pub
check 'publish ends with 0' "(($? == 0)) && ! grep -q 'no subscribers' '$temp/pub.err'"
stop c
check 'what does not match does not come' "(($? == 0)) && [[ ! -s '$temp/c.out' ]]"

# Without subscribers, and at a rate.
began=$(date +%s%N)
serve pub publish --count 20 --rate 50 --subscribers 0 <"$temp/lines"
ended pub
took=$((($(date +%s%N) - began) / 1000000))
check "20 messages at 50 a second took $took ms, 380 at least; no subscribers are reported" \
	"(($? == 0 && took >= 360)) && grep -qx '20 messages had no subscribers' '$temp/pub.err'"

# A pause of the input leaves no message unsent.
serve recv recv >"$temp/out"
run send send --connect "127.0.0.1:$port" < <(
	for line in one two three; do
		echo "$line"
		wait_until "[[ \$(tail -n 1 '$temp/out') == $line ]]" && echo "$line" >>"$temp/seen"
	done
)
ended send
check 'each line comes while the input pauses, and its end is taken' "(($? == 0)) && cmp '$temp/seen' '$temp/out'"

# Abnormal ends.
run send send --connect "127.0.0.1:$port" < <(stays_open)
wait_until "((\$(grep -c connected '$temp/recv.err') == 2))"
kill_off "${pid_of[recv]}"
ended send
check 'a receiver that is killed ends send with 1' "(($? == 1)) && grep -q 'ended before all was sent' '$temp/send.err'"

run sub subscribe --connect "127.0.0.1:$port" -t 5 --count 8 >"$temp/out"
wait_until "grep -q 'trying again' '$temp/sub.err'"
check 'subscribe keeps trying' "kill -0 ${pid_of[sub]}"
for round in 1 2; do
	run pub publish --listen "127.0.0.1:$port" -t 5 < <(stays_open few_lines)
	wait_until "((\$(wc -l <'$temp/out') == 4 * $round ))"
	check "round $round: four lines more" "(($? == 0))"
	((round == 2)) || kill_off "${pid_of[pub]}"
done
ended sub
check 'subscribe ends with the eighth' "(($? == 0))"
check 'it reported each new state' "grep -q '^subscribed to 0x5 at' '$temp/sub.err' && \
	grep -q '^subscription to 0x5 at .* lost' '$temp/sub.err' && \
	grep -q '^subscription to 0x5 at .* resumed' '$temp/sub.err'"
# Two outages, each of several attempts.
check 'and each reason once' "((\$(grep -c refused '$temp/sub.err') <= 4))"
stop pub
check 'publish that is stopped before the end of its input ends with 1' "(($? == 1))"

# Peers that are stopped and continued.
heartbeat=200ms:6s
serve recv recv >"$temp/out"
run send send --connect "127.0.0.1:$port" < <(stays_open)
serve pub publish --unbuffered < <(stays_open)
run sub subscribe --connect "127.0.0.1:$port" -t 1 >"$temp/out"
wait_until "grep -q connected '$temp/recv.err' && grep -q '^subscribed' '$temp/sub.err'"
check 'all are connected' "(($? == 0))"

# expect TEXT NAME...: each has printed it.
expect()
{
	local name

	for name in "${@:2}"; do
		wait_until "grep -q '$1' '$temp/$name.err'"
		check "$name: $1" "(($? == 0))"
	done
}

kill -STOP "${pid_of[send]}" "${pid_of[sub]}"
expect 'is silent' recv pub
kill -CONT "${pid_of[send]}" "${pid_of[sub]}"
expect 'is heard again' recv pub
kill -STOP "${pid_of[recv]}" "${pid_of[pub]}"
expect 'is silent' send sub
kill -CONT "${pid_of[recv]}" "${pid_of[pub]}"
expect 'is heard again' send sub
exit $failed
