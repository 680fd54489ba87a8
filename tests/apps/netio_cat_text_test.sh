#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# netio-cat: what lines look like, of one publisher or several; encodings; slow subscribers that miss messages.
# shellcheck disable=SC2034 # check expands the conditions
set -uo pipefail
# shellcheck source=tests/apps/netio_cat.sh
. "$(dirname "${BASH_SOURCE[0]}")/netio_cat.sh"

# through IN OUT FILE COUNT [OPTION...]: publish reads encoding IN, subscribe prints encoding OUT.
through()
{
	serve pub publish -e "$1" -t 18 <"$3"
	run sub subscribe --connect "127.0.0.1:$port" -t 18 -e "$2" --count "$4" "${@:5}" >"$temp/out"
	ended sub
	ended pub
}

through text hex "$temp/few" 4
check 'hex of lines, the last of which needs no end' "printf '6f6e65\n\n2020746872656509\n%s\n' \
	\$(printf 'last, without an end' | od -An -v -tx1 | tr -d ' \n') | cmp - '$temp/out'"
printf '00 0aFF\n\n 6f6b \n' >"$temp/hex"
through hex raw "$temp/hex" 3
check 'bytes of hex' "printf '\0\n\377ok' | cmp - '$temp/out'"
through hex hex "$temp/hex" 3 --show-tag --show-publisher
check 'publisher and tag stand before messages' \
	"printf '127.0.0.1:$port 0x12 %s\n' 000aff '' 6f6b | cmp - '$temp/out'"
head -c 1500000 /dev/zero | tr '\0' x >"$temp/long"
through text text "$temp/long" 1
check 'a line of 1.5 MB' "{ cat '$temp/long'; echo; } | cmp - '$temp/out'"

for bad in '2:6f 6g:no hex digit' '2:6 f:stands alone'; do
	IFS=: read -r line text why <<<"$bad"
	serve recv recv -e hex >"$temp/out"
	run send send --connect "127.0.0.1:$port" -e hex < <(printf 'aa\n%s\nbb\n' "$text")
	ended send
	check "hex '$text' ends with 1" "(($? == 1)) && grep -q 'line $line, column .*$why' '$temp/send.err'"
	wait_until "[[ -s '$temp/out' ]]"
	check 'what came before the bad line was sent' "[[ \$(<'$temp/out') == aa ]]"
	stop recv
done
serve recv recv --stats --show-time --show-tag >"$temp/out"
run send send --connect "127.0.0.1:$port" < <(head -c 17000000 /dev/zero | tr '\0' x)
ended send
check 'a line of 17 MB ends with 1' "(($? == 1)) && grep -q 'line 1: longer than 16 MiB' '$temp/send.err'"

# Time stamps are this host's clock when the message came.
began=$EPOCHREALTIME
run send send --connect "127.0.0.1:$port" -t 7 <"$temp/few"
ends_well 'time stamps' send
wait_until "((\$(wc -l <'$temp/out') == 4))"
check 'time, tag and message' "few_lines | sed 's/^/0x7 /' | cmp - <(sed -E 's/^[0-9]+\.[0-9]{9} //' '$temp/out')"
check 'the times are in order, from when the test ran' \
	"awk -v began=$began -v ended=$EPOCHREALTIME '\$1 < began || \$1 > ended || \$1 < last {bad = 1} {last = \$1} END {exit bad}' '$temp/out'"
stop recv
check 'recv counts without gaps' "grep -qx 'total: 4 messages, 31 bytes' '$temp/recv.err'"

# Two publishers, one of which starts after the subscriber, with the first and the last tag. The other one's end does not
# end its messages.
serve one publish -t 0 <"$temp/lines"
one=127.0.0.1:$port
serve two recv
stop two
two=127.0.0.1:$port
run sub subscribe --connect "$one" --connect "$two" -t all --show-tag --slow block --count 200000 >"$temp/out"
wait_until "grep -q '^$two refused the connection' '$temp/sub.err'"
ends_well 'the first publisher' one
run two publish --listen "$two" -t 0xffffffffffffffff <"$temp/lines"
ends_well 'two publishers' sub
ends_well 'two publishers' two
check "each line names its publisher, then the tag" \
	"cmp <(sed 's/^/$one 0x0 /' '$temp/lines'; sed 's/^/$two 0xffffffffffffffff /' '$temp/lines') '$temp/out'"
check 'subscribe reports each publisher' \
	"(($(grep -cE "^subscribed to all tags at ($one|$two)\$" "$temp/sub.err") == 2))"
check 'and each reason of the missing one once' "((\$(grep -c refused '$temp/sub.err') <= 2))"

# Rates while messages come, and sums at the end.
serve pub publish -t 7 --rate 100 < <(stays_open seq -f %09g 150)
run sub subscribe --connect "127.0.0.1:$port" -t 7 --stats >"$temp/out"
line='^rate: [1-9][0-9]* messages/s, [0-9]+ bytes/s, gaps: 0, missed: 0$'
wait_until "grep -qE '$line' '$temp/sub.err' && ((\$(wc -l <'$temp/out') == 150))"
check 'a line of rates each second' "(($? == 0))"
stop sub
check 'sums at the end' "(($? == 0)) && grep -qx 'total: 150 messages, 1350 bytes, gaps: 0, missed: 0' '$temp/sub.err'"
stop pub

# One reads slowly and allows losses; the other does not, and misses nothing.
rm -f "$temp/slow"
serve pub publish -t 7 --subscribers 2 <"$temp/lines"
run slow subscribe --connect "127.0.0.1:$port" -t 7 --slow drop-new --backlog 16K --stats > >(slowly "$temp/slow")
run fast subscribe --connect "127.0.0.1:$port" -t 7 --slow block --count 100000 >"$temp/out"
ended fast
check "another reader than the slow one has all lines" "cmp '$temp/lines' '$temp/out'"
ends_well 'a slow reader' pub
wait_until "grep -q 'trying again' '$temp/slow.err' && [[ -s '$temp/slow' ]] && grep -q '^rate: .*, gaps: [1-9]' '$temp/slow.err'"
check 'a second with gaps has its number' "(($? == 0))"
stop slow
read -r gaps missed < <(awk '/^missed/ {sum += $2; gaps++} END {print gaps + 0, sum + 0}' "$temp/slow.err")
wait_until "((\$(wc -l <'$temp/slow') + missed == 100000))"
check "a slow reader has all lines but $missed, and knows of these" "(($? == 0 && missed > 1000))"
check "the sums count them" "grep -q '^total: .*, gaps: $gaps, missed: $missed\$' '$temp/slow.err'"
check "publish reports the same number" "grep -q '^$missed copies were not sent' '$temp/pub.err'"
check "publish names the subscriber" \
	"grep -Eq '^127.0.0.1:[0-9]+ \(netio-cat, pid ${pid_of[slow]}\) missed $missed messages: ' '$temp/pub.err'"
check "the lines are in order" "sort -nc '$temp/slow'"

# The default: a reader that reads nothing does not stop the publisher, and knows what it missed.
mkfifo "$temp/unread"
exec {unread}<>"$temp/unread"
serve pub publish -t 7 < <(seq 500000; touch "$temp/taken")
run pager subscribe --connect "127.0.0.1:$port" -t 7 --backlog 16K >"$temp/unread"
wait_until "[[ -e '$temp/taken' ]]"
check 'a reader that reads nothing does not stop a publisher' "(($? == 0))"
cat <&"$unread" >"$temp/slow" &
reader=$!
ends_well 'default policy' pub
wait_until "grep -q '^missed .*: dropped as old' '$temp/pager.err'"
check 'it knows that it missed old messages' "(($? == 0))"
stop pager
kill "$reader"
exec {unread}<&-
exit $failed
