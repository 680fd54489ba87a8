#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# netio-cat: a reader that is slow or leaves, two processes with one output, and closed streams.
# shellcheck disable=SC2016,SC2034 # check expands the conditions
set -uo pipefail
# shellcheck source=tests/apps/netio_cat.sh
. "$(dirname "${BASH_SOURCE[0]}")/netio_cat.sh"

mkfifo "$temp/fifo"

# waits FILE: copies its input to FILE once $temp/go exists.
waits()
{
	until [[ -e $temp/go ]]; do sleep 0.02; done
	cat >"$1"
}

# shellcheck disable=SC2317 # wait_until calls it
# waits_for_reader PID: whether it has written something, and is blocked by a full pipe.
waits_for_reader()
{
	local before after

	before=$(grep wchar "/proc/$1/io")
	sleep 0.2
	after=$(grep wchar "/proc/$1/io")
	[[ $before == "$after" ]] && ((${after#*: } >= 32768))
}

# Messages that a receiver has taken are written after a signal: the first lines, because the sender waits for them. If the
# host stops this script, the reader may be later than netio-cat's 2 s: then repeat.
for _ in {1..5}; do
	rm -f "$temp/go" "$temp/slow"
	serve recv recv > >(waits "$temp/slow")
	taker=$pid
	run send send --connect "127.0.0.1:$port" <"$temp/lines"
	giver=$pid
	wait_until 'waits_for_reader "$taker"'
	begin=${EPOCHREALTIME/./}
	kill -TERM "$taker"
	sleep 0.3
	touch "$temp/go"
	took_us=$((${EPOCHREALTIME/./} - begin))
	ends "$taker"
	status=$?
	kill_off "$giver"
	((took_us > 1500000)) || break
done
wait_until "[[ -s '$temp/slow' && -z \$(tail -c 1 '$temp/slow') ]]"
check "what it has taken is written: status $status" \
	"((status == 0)) && cmp -n \$(stat -c %s '$temp/slow') '$temp/lines' '$temp/slow'"

# sips: reads a little now and then.
sips()
{
	while (($(head -c 4096 | wc -c) > 0)); do sleep 0.5; done
}

# A slow reader does not delay the end for long.
serve send publish -t 7 <"$temp/lines"
giver=$pid
run sub subscribe --connect "127.0.0.1:$port" -t 7 --slow block > >(sips)
reader=$!
taker=$pid
wait_until "grep -q subscribed '$temp/sub.err'"
wait_until 'waits_for_reader "$taker"'
began=$SECONDS
kill "$taker"
ends "$taker"
check 'a slow reader ends subscribe with 1, soon' \
	"(($? == 1 && SECONDS - began < 20)) && grep -q 'standard output did not take all within 5 s: ' '$temp/sub.err'"
kill_off "$reader"
kill_off "$giver"

# A reader that leaves is noticed while no messages arrive.
head -n 1 <"$temp/fifo" >"$temp/out" &
head=$!
run recv recv --listen 127.0.0.1:0 >"$temp/fifo"
recv=$pid
listening recv
run send send --connect "127.0.0.1:$port" <<<'one'
ends "$pid"
wait "$head"
ends "$recv"
check 'recv ends when its reader leaves' \
	"(($? == 1)) && [[ \$(<'$temp/out') == one ]] && grep -q 'standard output: nobody reads it' '$temp/recv.err'"

# lines LENGTH LETTER: print 1000 such lines.
lines()
{
	yes "$(head -c "$1" /dev/zero | tr '\0' "$2")" | head -n 1000
}

# share NAME LENGTH: two receivers write lines of that length to descriptor 3.
share()
{
	local pair=() ports=() letter

	for letter in a b; do
		run "recv-$letter" recv --listen 127.0.0.1:0 --count 1000 >&3
		pair+=("$pid")
		listening "recv-$letter"
		ports+=("$port")
	done
	exec 3>&-
	run send-a send --connect "127.0.0.1:${ports[0]}" < <(lines "$2" a)
	run send-b send --connect "127.0.0.1:${ports[1]}" < <(lines "$2" b)
	for pid in "${pair[@]}"; do
		ends "$pid"
		check "$1: a receiver ends with 0" "(($? == 0))"
	done
}

# whole NAME LENGTH: no line of either is split.
whole()
{
	check "$1: lines of $2 bytes are whole" \
		"[[ \$(LC_ALL=C awk 'length() != $2 || !/^(a+|b+)\$/ {bad++} END {print bad + 0, NR}' '$temp/both') == '0 2000' ]]"
}

exec 3> >(sleep 1 && cat >"$temp/both") # until both are held up
reader=$!
share pipe 4095
wait "$reader"
whole pipe 4095
: >"$temp/both"
exec 3>>"$temp/both"
share file 20000
whole file 20000

# A closed stream; apps/output has the other.
: >"$temp/recv.err"
"$cat" recv --huge none -- --listen 127.0.0.1:0 2>"$temp/recv.err" >&- &
recv=$!
pids+=("$recv")
listening recv
run send send --connect "127.0.0.1:$port" <<<'one'
ends "$recv"
check 'recv without an output ends with 1' "(($? == 1)) && grep -q '^netio-cat: standard output: it is closed$' '$temp/recv.err'"
kill_off "$pid"
exit $failed
