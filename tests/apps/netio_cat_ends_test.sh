#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# netio-cat: what goes in comes out, however slowly it is read, over tcp and shm; and peers that are late, missing,
# killed or stopped.
set -uo pipefail
# shellcheck source=tests/apps/netio_cat.sh
. "$(dirname "${BASH_SOURCE[0]}")/netio_cat.sh"

head -c 3000000 /dev/urandom >"$temp/bytes"
for kind in '' --unbuffered; do
	# Two subscribers, one of them over TCP.
	provider=auto serve pub publish -t 7 --subscribers 2 ${kind:+"$kind"} <"$temp/lines"
	provider=shm comes sub subscribe "$port" -t 7 --slow block --count 50000 >"$temp/out"
	provider=tcp comes sub_tcp subscribe "$port" -t 7 --slow block --count 50000 >"$temp/out.tcp"
	ended_well sub sub_tcp pub
	check "${kind:-buffered}: all lines come by shm and tcp" "cmp '$temp/lines' '$temp/out' && cmp '$temp/lines' '$temp/out.tcp'"
done

# A late reader blocks the sender, and nothing is lost.
serve recv recv -e raw > >(slowly "$temp/slow")
comes send send "$port" -e raw --block 10K <"$temp/bytes"
ended_well send
check 'a slow reader has all that was sent' "wait_until 'cmp -s $temp/bytes $temp/slow'"
stop recv
check 'recv ends with 0 by SIGTERM' "(($? == 0))"

# Three receivers: one starts late, and one reads late and only blocks itself.
rm -f "$temp/slow"
serve a recv --show-tag >"$temp/a.out"
to=(--connect "127.0.0.1:$port")
serve b recv --show-tag > >(slowly "$temp/slow")
to+=(--connect "127.0.0.1:$port")
serve c recv
missing=$port
stop c
comes push push "$missing" "${to[@]}" -t 7 <"$temp/lines"
wait_until "[[ -s '$temp/a.out' ]]"
run c recv --listen "127.0.0.1:$missing" --show-tag >"$temp/c.out"
ended_well push
check 'push reports the receiver that is missing' "grep -q ':$missing refused .*trying again' '$temp/push.err'"
for name in a b c; do
	stop $name
done
wait_until "command cat '$temp/a.out' '$temp/c.out' '$temp/slow' | sed 's/^0x7 //' | sort -n | cmp -s - '$temp/lines'"
check 'each line was pushed to one of three, with its tag' "(($? == 0))"

# Without subscribers, and at a rate.
began=${EPOCHREALTIME/./}
serve pub publish --count 20 --rate 50 --subscribers 0 <"$temp/lines"
ended pub
took_ms=$(((${EPOCHREALTIME/./} - began) / 1000))
check "20 messages at 50 a second took $took_ms ms, 380 at least; no subscribers are reported" \
	"(($? == 0 && took_ms >= 360)) && grep -qx '20 messages had no subscribers' '$temp/pub.err'"

# A pause of the input leaves no message unsent.
serve recv recv >"$temp/out"
comes send send "$port" < <(
	for line in one two three; do
		echo "$line"
		wait_until "[[ \$(tail -n 1 '$temp/out') == $line ]]" && echo "$line" >>"$temp/seen"
	done
)
ended send
check 'each line comes while the input pauses, and its end is taken' "(($? == 0)) && cmp '$temp/seen' '$temp/out'"

# Ends that are not in order.
comes send send "$port" < <(stays_open)
wait_until "((\$(grep -c connected '$temp/recv.err') == 2))"
kill_off "${pid_of[recv]}"
ended send
check 'a receiver that is killed ends send with 1' "(($? == 1)) && grep -q 'ended before all was sent' '$temp/send.err'"

comes sub subscribe "$port" -t 5 --count 8 >"$temp/out"
wait_until "grep -q 'trying again' '$temp/sub.err'"
for round in 1 2; do
	run pub publish --listen "127.0.0.1:$port" -t 5 < <(stays_open few_lines)
	wait_until "((\$(wc -l <'$temp/out') == 4 * $round ))"
	check "round $round: four lines more" "(($? == 0))"
	((round == 2)) || kill_off "${pid_of[pub]}"
done
ended_well sub
check 'subscribe reports each new state' "grep -q '^subscribed to 0x5 at' '$temp/sub.err' && \
	grep -q '^subscription to 0x5 at .* lost' '$temp/sub.err' && grep -q '^subscription to 0x5 at .* resumed' '$temp/sub.err'"
# Two outages, each of several attempts.
check '... and each reason once' "((\$(grep -c refused '$temp/sub.err') <= 4))"
stop pub
check 'publish that is stopped before the end of its input ends with 1' "(($? == 1))"

# Peers that are stopped and continued.
heartbeat=200ms:6s
serve recv recv >"$temp/out"
comes send send "$port" < <(stays_open)
serve pub publish --unbuffered < <(stays_open)
comes sub subscribe "$port" -t 1 >"$temp/out"
wait_until "grep -q connected '$temp/recv.err' && grep -q '^subscribed' '$temp/sub.err'"

kill -STOP "${pid_of[recv]}" "${pid_of[pub]}"
for text in 'is silent' 'is heard again'; do
	for name in send sub; do
		check "$name: $text" "wait_until \"grep -q '$text' '$temp/$name.err'\""
	done
	kill -CONT "${pid_of[recv]}" "${pid_of[pub]}"
done
exit $failed
