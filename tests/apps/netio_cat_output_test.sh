#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# netio-cat: a reader that is slow or leaves, two processes with one output, and closed streams.
# shellcheck disable=SC2016,SC2034 # check expands the conditions
set -uo pipefail
# shellcheck source=tests/apps/netio_cat.sh
. "$(dirname "${BASH_SOURCE[0]}")/netio_cat.sh"

# waits FILE: copies its input to FILE once $temp/go exists.
waits()
{
	until [[ -e $temp/go ]]; do sleep 0.02; done
	cat >"$1"
}

# shellcheck disable=SC2317 # wait_until calls it
# waits_for_reader NAME: whether it has written something, and is blocked by a full pipe.
waits_for_reader()
{
	local before after io=/proc/${pid_of[$1]}/io

	before=$(grep wchar "$io")
	sleep 0.2
	after=$(grep wchar "$io")
	[[ $before == "$after" ]] && ((${after#*: } >= 32768))
}

# Messages that a receiver has taken are written after a signal: the first lines, because the sender waits for them. If
# the host stops this script, the reader may be later than netio-cat's 2 s: then repeat.
for _ in {1..5}; do
	rm -f "$temp/go" "$temp/slow"
	serve recv recv > >(waits "$temp/slow")
	comes send send "$port" <"$temp/lines"
	wait_until 'waits_for_reader recv'
	begin=${EPOCHREALTIME/./}
	kill -TERM "${pid_of[recv]}"
	sleep 0.3
	touch "$temp/go"
	took_us=$((${EPOCHREALTIME/./} - begin))
	ended recv
	status=$?
	kill_off "${pid_of[send]}"
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
serve pub publish -t 7 <"$temp/lines"
comes sub subscribe "$port" -t 7 --slow block > >(sips)
reader=$!
wait_until 'waits_for_reader sub'
began=$SECONDS
stop sub
check 'a slow reader ends subscribe with 1, soon' \
	"(($? == 1 && SECONDS - began < 20)) && grep -q 'standard output did not take all within 5 s: ' '$temp/sub.err'"
kill_off "$reader" "${pid_of[pub]}"

# A reader that leaves is noticed while no messages arrive.
mkfifo "$temp/fifo"
head -n 1 <"$temp/fifo" >"$temp/out" &
run recv recv --listen 127.0.0.1:0 >"$temp/fifo"
up recv
comes send send "$port" <<<'one'
ended recv
check 'recv ends when its reader leaves' \
	"(($? == 1)) && [[ \$(<'$temp/out') == one ]] && grep -q 'standard output: nobody reads it' '$temp/recv.err'"

# share NAME LENGTH: no line of that length is split, which two receivers write to descriptor 3.
share()
{
	local letter

	for letter in a b; do
		serve "recv-$letter" recv --count 1000 >&3
		comes "send-$letter" send "$port" < <(yes "$(head -c "$2" /dev/zero | tr '\0' $letter)" | head -n 1000)
	done
	exec 3>&-
	ended_well recv-a recv-b
	[[ -z ${reader-} ]] || wait "$reader"
	check "$1: lines of $2 bytes are whole" \
		"[[ \$(LC_ALL=C awk 'length() != $2 || !/^(a+|b+)\$/ {bad++} END {print bad + 0, NR}' '$temp/both') == '0 2000' ]]"
}

exec 3> >(sleep 1 && cat >"$temp/both") # until both are held up
reader=$!
share pipe 4095
reader=''
: >"$temp/both"
exec 3>>"$temp/both"
share file 20000

# A closed stream; apps/output has the other.
: >"$temp/recv.err"
"$cat" recv --huge none -- --listen 127.0.0.1:0 2>"$temp/recv.err" >&- &
pid_of[recv]=$!
up recv
comes send send "$port" <<<'one'
ended recv
check 'recv without an output ends with 1' "(($? == 1)) && grep -q '^netio-cat: standard output: it is closed$' '$temp/recv.err'"
kill_off "${pid_of[send]}"
exit $failed
