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
	comes sub subscribe "$port" -t 16-31 -t 37 -e "$2" --count "$4" "${@:5}" >"$temp/out"
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
check 'publisher and tag stand before messages' "printf '127.0.0.1:$port 0x12 %s\n' 000aff '' 6f6b | cmp - '$temp/out'"
head -c 1500000 /dev/zero | tr '\0' x >"$temp/long"
through text text "$temp/long" 1
check 'a line of 1.5 MB' "{ cat '$temp/long'; echo; } | cmp - '$temp/out'"

# Wrong input.
: >"$temp/out"
serve recv recv --stats --show-time --show-tag >>"$temp/out"
for bad in '2:6f 6g:no hex digit' '2:6 f:stands alone'; do
	IFS=: read -r line text why <<<"$bad"
	comes send send "$port" -e hex < <(printf '6161\n%s\n6262\n' "$text")
	ended send
	check "hex '$text' ends with 1" "(($? == 1)) && grep -q 'line $line, column .*$why' '$temp/send.err'"
	wait_until "[[ -s '$temp/out' ]]"
	check 'what came before the bad line was sent' "[[ \$(<'$temp/out') == *' 0x0 aa' ]]"
	: >"$temp/out"
done
comes send send "$port" < <(head -c 17000000 /dev/zero | tr '\0' x)
ended send
check 'a line of 17 MB ends with 1' "(($? == 1)) && grep -q 'line 1: longer than 16 MiB' '$temp/send.err'"

# Time stamps are this host's clock when the message came.
began=$EPOCHREALTIME
: >"$temp/out"
comes send send "$port" -t 7 <"$temp/few"
ended_well send
wait_until "((\$(wc -l <'$temp/out') == 4))"
check 'time, tag and message' "few_lines | sed 's/^/0x7 /' | cmp - <(sed -E 's/^[0-9]+\.[0-9]{9} //' '$temp/out')"
check 'the times are in order, from when the test ran' \
	"awk -v began=$began -v ended=$EPOCHREALTIME '\$1 < began || \$1 > ended || \$1 < last {bad = 1} {last = \$1} END {exit bad}' '$temp/out'"
stop recv
check 'recv counts without gaps' "grep -qx 'total: 6 messages, 35 bytes' '$temp/recv.err'"

# Two publishers, one of which starts after the subscriber, with the first and the last tag. The other one's end does not
# end its messages.
serve one publish -t 0 <"$temp/lines"
one=127.0.0.1:$port
serve two recv
stop two
two=127.0.0.1:$port
run sub subscribe --connect "$one" --connect "$two" -t all --show-tag --slow block --count 100000 >"$temp/out"
wait_until "grep -q '^$two refused the connection' '$temp/sub.err'"
ended_well one
run two publish --listen "$two" -t 0xffffffffffffffff <"$temp/lines"
ended_well sub two
check "each line names its publisher, then the tag" \
	"cmp <(sed 's/^/$one 0x0 /' '$temp/lines'; sed 's/^/$two 0xffffffffffffffff /' '$temp/lines') '$temp/out'"
check 'subscribe reports each publisher' "(($(grep -cE "^subscribed to all tags at ($one|$two)\$" "$temp/sub.err") == 2))"

# One reads slowly and allows losses; the other does not, and misses nothing.
serve pub publish -t 7 --subscribers 2 <"$temp/lines"
comes slow subscribe "$port" -t 7 --slow drop-new --backlog 16K --stats > >(slowly "$temp/slow")
comes fast subscribe "$port" -t 7 --slow block --count 50000 >"$temp/out"
ended_well fast pub
check "another reader than the slow one has all lines" "cmp '$temp/lines' '$temp/out'"
wait_until "grep -q 'trying again' '$temp/slow.err' && [[ -s '$temp/slow' ]] && grep -q '^rate: .*, gaps: [1-9]' '$temp/slow.err'"
check 'a second with gaps has its number' "(($? == 0))"
stop slow
read -r gaps missed < <(awk '/^missed/ {sum += $2; gaps++} END {print gaps + 0, sum + 0}' "$temp/slow.err")
wait_until "((\$(wc -l <'$temp/slow') + missed == 50000))"
check "a slow reader has all lines but $missed, in order, and knows of these" "(($? == 0 && missed > 1000)) && sort -nc '$temp/slow'"
check 'the sums count them' "grep -q '^total: .*, gaps: $gaps, missed: $missed\$' '$temp/slow.err'"
check 'publish reports the same number, and the subscriber' "grep -q '^$missed copies were not sent' '$temp/pub.err' &&
	grep -Eq '^127.0.0.1:[0-9]+ \(netio-cat, pid ${pid_of[slow]}\) missed $missed messages: ' '$temp/pub.err'"

# The default: a reader that reads nothing does not stop the publisher, and knows what it missed.
mkfifo "$temp/unread"
exec {unread}<>"$temp/unread"
serve pub publish -t 7 < <(seq 100000; touch "$temp/taken")
comes pager subscribe "$port" -t 7 --backlog 16K >"$temp/unread"
check 'a reader that reads nothing does not stop a publisher' "wait_until '[[ -e $temp/taken ]]'"
cat <&"$unread" >"$temp/slow" &
reader=$!
ended_well pub
check 'it knows that it missed old messages' "wait_until \"grep -q '^missed .*: dropped as old' '$temp/pager.err'\""
stop pager
kill "$reader"
exec {unread}<&-
exit $failed
