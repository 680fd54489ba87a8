#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# netio-cat subscribe: several publishers, all tags, time stamps and rates.
# shellcheck disable=SC2016,SC2034 # check expands the conditions
set -uo pipefail
# shellcheck source=tests/apps/netio_cat.sh
. "$(dirname "${BASH_SOURCE[0]}")/netio_cat.sh"

# of PUBLISHER: the lines of its messages, without it.
# shellcheck disable=SC2317 # check evaluates it
of()
{
	sed -n "s/^$1 //p" "$temp/out"
}

# Two publishers, one of which starts after the subscriber, with the first and the last tag.
serve one publish -t 0 <"$temp/lines"
one=127.0.0.1:$port
serve two recv
stop two
two=127.0.0.1:$port
run sub subscribe --connect "$one" --connect "$two" -t all --show-tag --slow block --count 200000 >"$temp/out"
wait_until "grep -q '^$two refused the connection' '$temp/sub.err'"
run two publish --listen "$two" -t 0xffffffffffffffff <"$temp/lines"
for name in sub one two; do
	ends_well 'two publishers' $name
done
check "each line names its publisher, then the tag" \
	"of '$one 0x0' | cmp - '$temp/lines' && of '$two 0xffffffffffffffff' | cmp - '$temp/lines'"
check 'subscribe reports each publisher' \
	"(($(grep -cE "^subscribed to all tags at ($one|$two)\$" "$temp/sub.err") == 2))"
check 'and each reason of the missing one once' "((\$(grep -c refused '$temp/sub.err') <= 2))"

# A publisher that ends does not end the messages of the other.
serve first publish -t 1 <"$temp/few"
first=127.0.0.1:$port
serve other publish -t 1 < <(stays_open few_lines)
other=127.0.0.1:$port
run sub subscribe --connect "$first" --connect "$other" -t 1 >"$temp/out"
ends_well 'one of two' first
wait_until "grep -q '^subscription to 0x1 at $first lost' '$temp/sub.err' && (( \$(wc -l <'$temp/out') == 8))"
check 'a publisher that ends leaves the other' \
	"(($? == 0)) && of '$other' | cmp - <(few_lines) && ! grep -q '$other lost' '$temp/sub.err'"
stop sub
check 'subscribe of two ends with 0 by SIGTERM' "(($? == 0))"
stop other

# One publisher is shown on request only.
for shown in '' --show-publisher; do
	serve one publish -t 7 <"$temp/few"
	run sub subscribe --connect "127.0.0.1:$port" -t all ${shown:+"$shown"} --count 4 >"$temp/out"
	ends_well 'one publisher' sub
	ends_well 'one publisher' one
	before=${shown:+127.0.0.1:$port }
	check "one publisher ${shown:-without an option}" "few_lines | sed 's/^/$before/' | cmp - '$temp/out'"
done

# Time stamps: this host's clock when the message came.
began=$EPOCHREALTIME
serve recv recv --show-time --show-tag --count 4 >"$temp/out"
run send send --connect "127.0.0.1:$port" -t 7 <"$temp/few"
ends_well 'time stamps' recv
ends_well 'time stamps' send
check 'time, tag and message' "few_lines | sed 's/^/0x7 /' | cmp - <(sed -E 's/^[0-9]+\.[0-9]{9} //' '$temp/out')"
check 'the times are in order, from when the test ran' \
	"awk -v began=$began -v ended=$EPOCHREALTIME '\$1 < began || \$1 > ended || \$1 < last {bad = 1} {last = \$1} END {exit bad}' '$temp/out'"

# Rates while messages come, and sums at the end.
# shellcheck disable=SC2317 # stays_open calls it
ten_bytes()
{
	yes 'ten bytes.' | head -n 150
}

serve pub publish -t 7 --rate 100 < <(stays_open ten_bytes)
run sub subscribe --connect "127.0.0.1:$port" -t 7 --stats >"$temp/out"
line='^rate: [0-9]+ messages/s, [0-9]+ bytes/s, gaps: 0, missed: 0$'
wait_until "((\$(grep -cE '$line' '$temp/sub.err') >= 2 && \$(wc -l <'$temp/out') == 150))"
check 'a line of rates each second' "(($? == 0))"
check 'of what comes in it' "awk '/^rate:/ && \$2 > 0 && \$4 >= 9.9 * \$2 && \$4 <= 10.1 * \$2 {good = 1} END {exit !good}' '$temp/sub.err'"
stop sub
check 'sums at the end' "(($? == 0)) && grep -qx 'total: 150 messages, 1500 bytes, gaps: 0, missed: 0' '$temp/sub.err'"
stop pub
serve recv recv --stats --count 4 >"$temp/out"
run send send --connect "127.0.0.1:$port" <"$temp/few"
ends_well 'sums of recv' recv
check 'recv has no gaps' "grep -qx 'total: 4 messages, 31 bytes' '$temp/recv.err'"
ended send

# What a subscriber missed is in the rates and sums, too.
serve pub publish -t 7 <"$temp/lines"
run slow subscribe --connect "127.0.0.1:$port" -t 7 --slow drop-new --backlog 16K --stats > >(slowly "$temp/slow")
ends_well 'gaps' pub
wait_until "grep -q 'trying again' '$temp/slow.err' && grep -q '^rate: .*, gaps: [1-9]' '$temp/slow.err'"
check 'a second with gaps has its number' "(($? == 0))"
stop slow
missed=$(awk '/^missed/ {sum += $2; gaps++} END {print "gaps: " gaps + 0 ", missed: " sum + 0}' "$temp/slow.err")
check "the sums count $missed" "grep -q '^total: .*, $missed\$' '$temp/slow.err' && [[ '$missed' != *' 0' ]]"
exit $failed
