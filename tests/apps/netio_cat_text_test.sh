#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# netio-cat: slow subscribers that allow losses, and encodings.
set -uo pipefail
# shellcheck source=tests/apps/netio_cat.sh
. "$(dirname "${BASH_SOURCE[0]}")/netio_cat.sh"

# One reads slowly and allows losses; the other does not, and misses nothing.
for policy in drop-old drop-new conflate; do
	rm -f "$temp/slow"
	serve pub publish -t 7 --subscribers 2 <"$temp/lines"
	run slow subscribe --connect "127.0.0.1:$port" -t 7 --slow "$policy" --backlog 16K > >(slowly "$temp/slow")
	run fast subscribe --connect "127.0.0.1:$port" -t 7 --slow block --count 100000 >"$temp/out"
	ended fast
	check "$policy: another reader than the slow one has all lines" "cmp '$temp/lines' '$temp/out'"
	ends_well "$policy" pub
	wait_until "grep -q 'trying again' '$temp/slow.err' && [[ -s '$temp/slow' ]]"
	stop slow
	missed=$(awk '/^missed/ {sum += $2} END {print sum + 0}' "$temp/slow.err")
	wait_until "((\$(wc -l <'$temp/slow') + missed == 100000))"
	check "$policy: a slow reader has all lines but $missed, and knows of these" "(($? == 0 && missed > 1000))"
	check "$policy: publish reports the same number" "grep -q '^$missed copies were not sent' '$temp/pub.err'"
	check "$policy: publish names the subscriber" \
		"grep -Eq '^127.0.0.1:[0-9]+ \(netio-cat, pid ${pid_of[slow]}\) missed $missed messages: ' '$temp/pub.err'"
	check "$policy: the lines are in order" "sort -nc '$temp/slow'"
done

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

# through IN OUT FILE: publish reads encoding IN, subscribe prints encoding OUT.
through()
{
	serve pub publish -e "$1" -t 18 <"$3"
	run sub subscribe --connect "127.0.0.1:$port" -t 18 -e "$2" --count "$4" "${@:5}" >"$temp/out"
	ended sub
	ended pub
}

through text text "$temp/few" 4
check 'the last line needs no end' "few_lines | cmp - '$temp/out'"
through text hex "$temp/few" 4
check 'hex of lines' "printf '6f6e65\n\n2020746872656509\n%s\n' \
	\$(printf 'last, without an end' | od -An -v -tx1 | tr -d ' \n') | cmp - '$temp/out'"
printf '00 0aFF\n\n 6f6b \n' >"$temp/hex"
through hex raw "$temp/hex" 3
check 'bytes of hex' "printf '\0\n\377ok' | cmp - '$temp/out'"
through hex hex "$temp/hex" 3 --show-tag
check 'tags stand before messages' "printf '0x12 000aff\n0x12 \n0x12 6f6b\n' | cmp - '$temp/out'"
head -c 1500000 /dev/zero | tr '\0' x >"$temp/long"
through text text "$temp/long" 1
check 'a line of 1.5 MB' "{ cat '$temp/long'; echo; } | cmp - '$temp/out'"

for bad in '2:6f 6g:no hex digit' '2:6f 6:stands alone' '2:6 f:stands alone' '2:-:no hex digit'; do
	IFS=: read -r line text why <<<"$bad"
	serve recv recv -e hex >"$temp/out"
	run send send --connect "127.0.0.1:$port" -e hex < <(printf 'aa\n%s\nbb\n' "$text")
	ended send
	check "hex '$text' ends with 1" "(($? == 1)) && grep -q 'line $line, column .*$why' '$temp/send.err'"
	wait_until "[[ -s '$temp/out' ]]"
	check 'what came before the bad line was sent' "[[ \$(<'$temp/out') == aa ]]"
	stop recv
done

serve recv recv >"$temp/out"
run send send --connect "127.0.0.1:$port" < <(head -c 17000000 /dev/zero | tr '\0' x)
ended send
check 'a line of 17 MB ends with 1' "(($? == 1)) && grep -q 'line 1: longer than 16 MiB' '$temp/send.err'"
stop recv
exit $failed
