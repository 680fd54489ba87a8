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

serve pub publish -t 1 --count 3 <"$temp/lines"
run sub subscribe --connect "127.0.0.1:$port" -t 2 >"$temp/out"
ended pub
check 'messages without subscribers are reported' "(($? == 0)) && grep -qx '3 messages had no subscribers' '$temp/pub.err'"
stop sub

serve recv recv --count 20 >"$temp/out"
began=$(date +%s%N)
run send send --connect "127.0.0.1:$port" --rate 50 --count 20 <"$temp/lines"
ended send
check '--count ends send' "(($? == 0))"
took=$((($(date +%s%N) - began) / 1000000))
ended recv
check "20 messages at 50 a second took $took ms, 380 at least" \
	"((took >= 360)) && head -n 20 '$temp/lines' | cmp - '$temp/out'"

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
run send send --connect "127.0.0.1:$port" <"$temp/few"
ended send
check 'nobody there ends send with 1' "(($? == 1)) && grep -q 'refused' '$temp/send.err'"

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

serve pub publish <"$temp/lines"
run sub subscribe --connect "127.0.0.1:$port" -t 0 > >(head -n 3 >"$temp/out")
ended sub
check 'a reader that goes ends subscribe with 1' "(($? == 1)) && grep -q 'nobody reads it' '$temp/sub.err'"
ended pub
check 'and its publisher with 0 or 1' "(($? <= 1))"

# Peers that are stopped and continued, on every kind of socket at once.
heartbeat=200ms:6s
ones=() others=()
for kind in buffered unbuffered; do
	option=()
	[[ $kind == buffered ]] || option=(--unbuffered)
	serve "recv-$kind" recv >"$temp/out"
	ones+=("$pid")
	run "send-$kind" send --connect "127.0.0.1:$port" "${option[@]}" < <(stays_open)
	others+=("$pid")
	serve "pub-$kind" publish "${option[@]}" < <(stays_open)
	ones+=("$pid")
	run "sub-$kind" subscribe --connect "127.0.0.1:$port" -t 1 >"$temp/out"
	others+=("$pid")
	wait_until "grep -q connected '$temp/recv-$kind.err' && grep -q '^subscribed' '$temp/sub-$kind.err'"
	check "$kind: connected" "(($? == 0))"
done

# expect TEXT NAME...: each has printed it.
expect()
{
	local text=$1 name

	for name in "${@:2}"; do
		wait_until "grep -q '$text' '$temp/$name-buffered.err' && grep -q '$text' '$temp/$name-unbuffered.err'"
		check "$name: $text" "(($? == 0))"
	done
}

kill -STOP "${others[@]}"
expect 'is silent' recv pub
kill -CONT "${others[@]}"
expect 'is heard again' recv pub
kill -STOP "${ones[@]}"
expect 'is silent' send sub
kill -CONT "${ones[@]}"
expect 'is heard again' send sub
kill_off "${ones[@]}" "${others[@]}"
exit $failed
