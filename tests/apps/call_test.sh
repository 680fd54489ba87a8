#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# plx-call with the example service: output, errors and measurements.
set -uo pipefail

# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

apps=$1
# On a busy host a call may exceed the default deadline.
patience=(--deadline 20s)

# expect STATUS PATTERN WORDS...: of plx-call.
expect()
{
	local wait=("${patience[@]}")

	[[ " $* " != *' --deadline '* ]] || wait=()
	gives "${*:3}" "$1" "$2" "$apps/plx-call" --huge none -- --connect "$address" "${@:3}" "${wait[@]}"
}

# ping STATUS PATTERN WORDS...: of plx-ping.
ping()
{
	gives "plx-ping ${*:3}" "$1" "$2" timeout 30 "$apps/plx-ping" --huge none -- --connect "$address" "${@:3}"
}

# under_way FILE: wait until the program that logs to FILE, at level info, catches signals and connects.
under_way()
{
	wait_until "grep -qs '^[^ ]* fabric: info: lcore 0 opened' '$1'" || fail "$1: not under way: $(<"$1")"
}

single=("$apps/plx-call" --dry-run --log-level error --connect 127.0.0.1:1)
cpu=$(taskset -cp $$ | sed 's/.*[ ,-]//')
gives 'a single call sleeps, on any CPU' 0 'lcore 0: CPU *idle event*claims none*' "${single[@]}" --list
gives 'unless the user decides' 0 "lcore 0: CPU $cpu,*idle poll*" "${single[@]}" --list --idle poll -l "0@$cpu"
gives 'measured calls poll' 0 '*idle poll*' "${single[@]}" --method 1 --count 1

start service "$apps/examples/service" --huge none --heartbeat 1s:20s --listen 127.0.0.1:0
server=$pid
listening "$temp/service" || fail "the service did not start: $(<"$temp/service.err")"

expect 0 '*pollux.echo*' --list
expect 0 '*hello world' --method echo --data 'hello world'
expect 0 '*hello world' --method 3 --data 'hello world'
expect 0 '*\\x1b[31m*' --method echo --hex '1b 5b:33316d'
expect 0 $'*gr\xc3\xbc\xc3\x9fe \\\\x9b31m\\\\x80' --method echo --hex '67 72 c3bc c39f 65 20 9b 33 31 6d 80'
expect 0 '*00000000  00 01 02 *0e 0f  ................*' --method pollux.generate --hex 10000000 --format hex
expect 0 '*' --method pollux.discard --size 1M
expect 1 '*give 4 bytes*an error, with code 22*' --method pollux.generate --data abc
expect 1 '*--list shows what it has' --method nope
expect 1 '*no such method and version*' --method echo --method-version 7
expect 1 '*ended with: too big; it has not run; the service takes no more: *16 MiB' --method pollux.echo --size 17M --deadline 10s
expect 2 '*no hexadecimal digit*' --method echo --hex 0g
expect 2 '*give pairs of them*' --method echo --hex 012
expect 2 '*give one of them*' --method echo --hex 01 --data x
expect 2 '*--method NAME is missing*' --data x
# JSON is sent as given, and any valid JSON is shown.
expect 0 '* {"price":0.1, "n": 1e5, "u":18446744073709551615, "z":1e999} ' \
	--method echo --json ' {"price":0.1, "n": 1e5, "u":18446744073709551615, "z":1e999} '
expect 0 $'*\n  "u": 18446744073709551615,\n  "p": 0.1,\n  "n": 1e5,\n  "nul": "a\\\\u0000b",\n  "deep": \[\n    \[],\n    {}\n  ]\n}' \
	--method echo --json '{"u":18446744073709551615,"p":0.1,"n":1e5,"nul":"a\u0000b","deep":[[],{}]}' --format json
expect 0 '*"\\u0000"' --method echo --json '"\u0000"' --format json
for wrong in '1.' '"a' '[1,]' '{"a" 1}' 'nul' '"\x"' '[1 2]' '"\u12"' '-' $'"\n"'; do
	expect 2 '*--json: expected * at byte *' --method echo --json "$wrong"
	expect 1 '*the reply is no JSON: *' --method echo --data "$wrong" --format json
done
expect 2 '*--json: unexpected text after the value at byte 2*' --method echo --json 01
expect 2 '*--json: unexpected text after the value at byte 8*' --method echo --json '{"a":1}x'
expect 2 '*--json: nested deeper than 1000 at byte 1002*' --method echo --json "$(printf '%01001d' 0 | tr 0 '[')"
expect 0 $'*{\n  "a": 1\n}' --method echo --json '{"a":1}' --format json
expect 2 '*--json: duplicate object key*' --method echo --json '{"a":1,"a":2}'
expect 1 '*the reply is no JSON: *--format text or hex shows it*' --method echo --data '{' --format json
expect 2 '*give one of them*' --method echo --json 1 --data x
expect 1 '*No such file*' --method echo --file "$temp/none"
expect 2 '*give one of them*' --list --method echo
expect 1 '*error: 20 calls*no call brought a reply' --method pollux.generate --count 20
expect 1 '*--method 777: the service does not know it; --list shows what there is' --method 777 --count 10
expect 1 '*--method 777: the service does not know it; *' --method 777 --count 10 --rate 100
expect 1 '*no call brought a reply; the service takes no more: *' --method echo --size 17M --count 2 --deadline 5s
expect 2 '*--out is for measuring*' --method echo --out "$temp"
expect 1 '*cannot make directory /proc/*' --method echo --count 5 --out /proc/none
expect 2 '*result name*' --method echo --count 5 --out "$temp" --name a/b
expect 0 '*' --method echo --data ''
expect 1 '*ended with: unknown; it has not run; --list shows what there is' --method 99

head -c 100000 /dev/urandom >"$temp/random"
"$apps/plx-call" --huge none -- --connect "$address" --method echo --file "$temp/random" --format raw >"$temp/back" 2>/dev/null
cmp -s "$temp/random" "$temp/back" || fail 'a file does not come back as it was'

expect 0 '*2000 full round trips of 64 B*calls/s, 16 open at a time*' \
	--method echo --size 64 --count 2000 --in-flight 16 --out "$temp/out" --name few
jq -e '.count == 2000 and .size_bytes == 64 and .lost == 0 and .valid and .interrupted == null' "$temp/out/few.json" >/dev/null ||
	fail "few.json: $(<"$temp/out/few.json")"
expect 0 '*calls/s*' --method pollux.echo --duration 200ms
# A few calls are not compared with their schedule.
for ((i = 0; i < 20; i++)); do
	expect 0 '*: 5 full round trips*' --method echo --count 5
done

for arrival in fixed poisson burst; do
	# A busy host may miss the schedule or lose calls at their deadline, and reports that.
	"$apps/plx-call" --huge none -- --connect "$address" --method echo --count 2000 --rate 2000 --arrival $arrival \
		--out "$temp/out" --name $arrival >"$temp/open" 2>&1
	[[ $? == [03] ]] || fail "an open loop: $(<"$temp/open")"
	jq -e ".count + .lost == 2000 and .rate == 2000 and .arrival == \"$arrival\" and .elapsed_ns > 700000000" \
		"$temp/out/$arrival.json" >/dev/null || fail "$arrival.json: $(<"$temp/out/$arrival.json")"
done
expect 3 '*achieved * of *scheduled requests*' --method echo --count 500000 --rate 50000000
expect 2 '*give --rate R too*' --method echo --count 10 --arrival poisson
expect 2 '*give --count or --duration*' --method echo --rate 10
expect 2 '*give --rate up to that*' --method echo --rate 200000 --arrival burst --count 5
expect 2 '*--rate*0*' --method echo --rate 0 --count 5

of_service=$address
address=127.0.0.1:1
expect 1 '*no service within 0.3 s: *127.0.0.1:1*refused*' --method 1 --deadline 300ms
expect 1 '*no service answered: *' --method 1 --deadline 300ms --count 10

# other EAL-OPTIONS...: a plx-echo, whose only service is its self-test.
other()
{
	start live "$apps/plx-echo" --huge none --heartbeat 1s:20s "$@" -- --listen 127.0.0.1:0
	its=$pid
	listening "$temp/live"
}

# The self-test service of processes that listen for another purpose: plx-echo's links, and NetIO's sockets.
live()
{
	start live "$@"
	listening "$temp/live"
	expect 0 '*pollux.describe*' --process --list
	expect 0 '*\"program\"*' --process --method pollux.describe --format json
	ping 0 '*plx-ping: 2000 full round trips of 64 B*' --process --verify --count 2000
	kill "$pid"
	ends "$pid"
}
live "$apps/plx-echo" --huge none --heartbeat 1s:20s -- --listen 127.0.0.1:0
NETIO_OPTIONS='--huge none' live "$apps/examples/netio_recv" 0 1
other --self-test off
expect 1 '*has no self-test service: it was started with --self-test off*' --process --list --deadline 2s
ping 2 '*one call after the other*' --process --rate 5
ping 2 '*0 to 65536 bytes*' --process --size 65537
stops_well plx-echo "$its"

other --self-test 200
begin=$SECONDS
expect 1 '*speaks the echo of plx-ping, not Pollux RPC; check the port*; --process calls the self-test of any Pollux process' --method pollux.echo --deadline 1s
# It has retried several times, and plx-echo logs one line a second about that, unlike for a crash.
got=$(cat "$temp/live" "$temp/live.err")
lines=$(grep -c 'did not complete the handshake: it speaks Pollux RPC' <<<"$got")
((lines >= 1 && lines <= SECONDS - begin + 2)) || fail "a call of an echo: $lines lines: $got"
[[ $got != *connected* && $got != *gone* ]] || fail "a call of an echo looks as a link that was open: $got"
# A look-up costs 80 of the 200 per second: consecutive ones wait for that, within their deadline.
expect 0 '*hello' --process --method pollux.echo --data hello
for ((i = 0; i < 4; i++)); do
	expect 0 '*pollux.describe*' --process --list --deadline 10s
done
# Those that are measured wait too, and so does the warm-up, which is over in a second.
expect 0 '*calls/s*calls were refused*' --process --method pollux.echo --duration 1s
expect 0 '*calls/s, 8 open at a time*calls were refused*' --process --method pollux.echo --count 100 --in-flight 8
kill -STOP "$its"
patience=()
expect 1 "*no service within 1 s: $address has not answered yet: *--deadline gives it longer" --process --method pollux.echo
patience=(--deadline 20s)
# Background jobs of a shell ignore SIGINT by default.
env --default-signal=INT "$apps/plx-call" --huge none --log-level info -- --connect "$address" --process --method pollux.echo --deadline 30s >"$temp/stopped" 2>&1 &
call=$!
under_way "$temp/stopped"
kill -INT "$call"
wait "$call" && fail 'an interrupted call: status 0'
grep -q 'interrupted; the call may have run' "$temp/stopped" || fail "an interrupted call: $(<"$temp/stopped")"
kill -CONT "$its"
stops_well plx-echo "$its"
address=$of_service

# Waits beyond the deadline, here 8 s, are reported.
other --self-test 10
expect 0 '*pollux.describe*' --process --list --deadline 5s
expect 1 '*ended with: busy; it has not run, and may be tried again*' --process --list --deadline 3s
# Its warm-up ends after a second, although it has not made a thousand calls by then.
ping '[03]' '*calls were refused*' --process --duration 2s
kill -STOP "$its"
ping 1 "*no self-test service: $address*" --process --duration 1s
kill_off "$its"
address=$of_service

# A signal ends a measurement, which reports that it is incomplete.
for rate in '' '--rate 1000'; do
	rm -f "$temp/out/cut.json"
	# Words, or none.
	# shellcheck disable=SC2086
	env --default-signal=INT "$apps/plx-call" --huge none --log-level info -- --connect "$address" --method echo --duration 30s $rate \
		--out "$temp/out" --name cut >"$temp/cut" 2>&1 &
	call=$!
	under_way "$temp/cut"
	sleep 3
	kill -INT "$call"
	wait "$call"
	its=$?
	[[ $its == [03] ]] || fail "an interrupted measurement: status $its: $(<"$temp/cut")"
	grep -q '^INTERRUPTED after [1-9.]*.* of 30.00 s: SIGINT' "$temp/cut" || fail "an interrupted measurement: $(<"$temp/cut")"
	jq -e '.interrupted == "SIGINT" and .planned_ns == 30000000000 and .count > 0' "$temp/out/cut.json" >/dev/null ||
		fail "cut.json: $(<"$temp/out/cut.json")"
done

# If the service is killed, the measurement ends, and is not valid.
for rate in '' '--rate 1000'; do
	other
	# shellcheck disable=SC2086
	timeout 30 "$apps/plx-call" --huge none -- --connect "$address" --process --method pollux.echo --count 100000000 $rate \
		--out "$temp/out" --name gone >"$temp/gone" 2>&1 &
	call=$!
	sleep 3
	kill_off "$its"
	wait "$call"
	its=$?
	[[ $its == 1 ]] || fail "a service that was killed: status $its: $(<"$temp/gone")"
	grep -q '^INTERRUPTED after [1-9][0-9]* of 100000000 calls: ' "$temp/gone" || fail "a service that was killed: $(<"$temp/gone")"
	grep -Eq '^gone: .* provider [a-z_]+,' "$temp/gone" || fail "its provider: $(<"$temp/gone")"
	jq -e '.interrupted != null and .valid == false and .lost > 0' "$temp/out/gone.json" >/dev/null ||
		fail "gone.json: $(<"$temp/out/gone.json")"
done

# A service that restarts loses calls: the rest is not valid, and the text says why.
other
"$apps/plx-call" --huge none -- --connect "$address" --process --method pollux.echo --duration 4s --deadline 100ms >"$temp/lost" 2>&1 &
call=$!
sleep 3
kill -STOP "$its"
sleep 0.3
kill -CONT "$its"
wait "$call"
status=$?
[[ $status == 3 ]] || fail "lost calls: status $status: $(<"$temp/lost")"
grep -q '^NOT VALID: .* had no answer' "$temp/lost" || fail "lost calls: $(<"$temp/lost")"
stops_well plx-echo "$its"
address=$of_service

stops_well 'the service' "$server"
exit $failed
