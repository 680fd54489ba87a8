#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs whose output is full, closed or without a reader; and early signals.
# shellcheck disable=SC2016,SC2034 # check expands the conditions
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

apps=$1
quiet=(--huge none --log-level error)
mkfifo "$temp/fifo"

# serves: a server in the background with the caller's output. Sets `server`.
serves()
{
	"$apps/plx-echo" "${quiet[@]}" --listen 127.0.0.1:0 2>"$temp/server.err" </dev/null &
	server=$!
	pids+=("$server")
}

# catches PID: wait until it has its own SIGTERM handler. A library that libfabric loads installs one too, together
# with SIGILL.
catches()
{
	wait_until "(((0x\$(sed -n 's/^SigCgt:[[:space:]]*//p' /proc/$1/status) & (1 << 14 | 1 << 3)) == 1 << 14))"
}

# What cannot be written ends with 1 and the reason: with the EAL and without.
for program in plx-echo plx-info; do
	got=$("$apps/$program" --help 2>&1 >/dev/full)
	check "$program --help on a full device" '(($? == 1)) && [[ $got == "$program: standard output: No space left on device" ]]'
	got=$("$apps/$program" --version 2>&1 >&-)
	check "$program --version without an output" '(($? == 1)) && [[ $got == "$program: standard output: it is closed" ]]'
done
got=$("$apps/plx-info" --format json 2>&1 >/dev/full)
check 'plx-info --format json on a full device' '(($? == 1)) && [[ $got == *"standard output: No space left on device" ]]'
"$apps/plx-info" >/dev/null 2>"$temp/info.err" <&- && [[ ! -s $temp/info.err ]]
check 'a closed input disturbs nobody who does not read it' "(($? == 0))"

# Results do not go into a socket that got the number of a closed descriptor.
"$apps/plx-ping" "${quiet[@]}" --self --count 200 <&- >&- 2>"$temp/ping.err"
check 'plx-ping without an output' "(($? == 1)) && grep -q '^plx-ping: standard output: it is closed$' '$temp/ping.err'"
got=$("$apps/plx-call" "${quiet[@]}" -- --connect 127.0.0.1:1 --method echo --file - --deadline 1s 2>&1 <&-)
check 'plx-call without an input' '(($? == 1)) && [[ $got == "plx-call: --file -: it is closed" ]]'
got=$("$apps/netio-cat" publish "${quiet[@]}" -- --listen 127.0.0.1:0 --subscribers 0 2>&1 <&-)
check 'netio-cat without an input' '(($? == 1)) && [[ $got == *"netio-cat: standard input: it is closed" ]]'

serves >/dev/full
catches "$server"
kill -TERM "$server"
ends "$server"
check 'a server on a full device reports it at its end' \
	"(($? == 1)) && grep -q '^plx-echo: standard output: No space left on device$' '$temp/server.err'"

# A reader that leaves ends no other process.
"$apps/plx-echo" --huge none --log-level debug --listen 127.0.0.1:0 >"$temp/fifo" 2>&1 </dev/null &
server=$!
pids+=("$server")
grep -m 1 '^listening on' <"$temp/fifo" >"$temp/said"
listening "$temp/said" || check 'a server comes up' false
"$apps/plx-ping" "${quiet[@]}" --connect "$address" --count 100 >"$temp/out" 2>"$temp/ping.err"
check 'a server whose output and log have no reader continues' "(($? == 0)) && kill -0 $server"
stops_well '... and' "$server"
"$apps/plx-info" 2>"$temp/info.err" | true
check 'a report without a reader fails, or was read before' "((${PIPESTATUS[0]} <= 1))"

# Ended before it catches them, a program ends as by the signal, and not by what a library of libfabric's does.
for ((i = 0; i < 8; i++)); do
	env --default-signal=TERM "$apps/plx-echo" "${quiet[@]}" --listen 127.0.0.1:0 >"$temp/out" 2>"$temp/early.err" </dev/null &
	pid=$!
	pids+=("$pid")
	sleep "0.$(printf %02d $((2 * i)))"
	kill -TERM "$pid"
	ends "$pid"
	status=$?
	((status == 0 || status == 143)) || break
	[[ ! -s $temp/early.err ]] || break
done
check "a signal after $((i * 20)) ms: status $status" '((i == 8))'
exit $failed
