#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# plx-call with the example service: requests and replies, errors, a measurement of each kind, and how it ends.
set -uo pipefail

# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

apps=$1

# expect STATUS PATTERN WORDS...: of plx-call. On a busy host a call may exceed the default deadline.
expect()
{
	local patience=(--deadline 20s)

	[[ " $* " != *' --deadline '* ]] || patience=()
	gives "${*:3}" "$1" "$2" "$apps/plx-call" --huge none -- --connect "$address" "${@:3}" "${patience[@]}"
}

# same TEXT EXPECTED WORDS...: what plx-call prints on standard output.
same()
{
	local got

	got=$("$apps/plx-call" --huge none -- --connect "$address" "${@:3}" --deadline 20s 2>/dev/null)
	[[ $got == "$2" ]] || fail "$1: $got"
}

# result NAME FILTER: the filter is true of that result.
result()
{
	jq -e "$2" "$temp/out/$1.json" >/dev/null || fail "$1.json: $(jq -c . "$temp/out/$1.json")"
}

# measures NAME WORDS...: in the background, until it is under way. Sets `pid`.
measures()
{
	start "$1" env --default-signal=INT "$apps/plx-call" --huge none --log-level info -- --connect "$address" \
		--method pollux.echo --out "$temp/out" --name "$1" "${@:2}"
	wait_until "grep -qs ' fabric: info: .* is open' '$temp/$1.err'" || fail "$1 is not under way"
	sleep 1.2 # past the warm-up
}

start_server service "$apps/examples/service" --huge none --heartbeat 1s:20s --self-test 1000000000 --listen 127.0.0.1:0

# Requests and replies.
same 'text' 'hello world' --method echo --data 'hello world'
same 'a number' 'hello' --method 3 --data hello
same 'escapes' $'gr\xc3\xbc\xc3\x9fe \\x1b[31m' --method echo --hex '67 72 c3bc c39f 65 20 1b 5b:33316d'
same 'a table of bytes' '00000000  00 01 02                                         ...' --method pollux.generate \
	--hex 03000000 --format hex
same 'JSON as it was given' ' {"n": 1e5, "u":18446744073709551615, "z":1e99} ' --method echo \
	--data-json ' {"n": 1e5, "u":18446744073709551615, "z":1e99} '
same 'JSON for people' $'{\n  "u": 18446744073709551615,\n  "nul": "a\\u0000b",\n  "deep": [\n    [],\n    {}\n  ]\n}' \
	--method echo --data-json '{"u":18446744073709551615,"nul":"a\u0000b","deep":[[],{}]}' --format json
head -c 100000 /dev/urandom >"$temp/random"
"$apps/plx-call" --huge none -- --connect "$address" --method echo --file "$temp/random" --format raw >"$temp/back" 2>/dev/null
check 'a file' "cmp -s '$temp/random' '$temp/back'"
expect 0 '*pollux.echo*' --list

# Errors.
expect 1 '*the reply is no JSON: *--format text or hex*' --method echo --data '{' --format json
expect 1 '*No such file*' --method echo --file "$temp/none"
expect 1 '*give 4 bytes*an error, with code 22*' --method pollux.generate --data abc
expect 1 '*has no such method; --list *' --method nope
expect 1 '*no such method and version*' --method echo --method-version 7
expect 1 '*ended with: unknown; it has not run; --list *' --method 99
expect 1 '*ended with: too big; it has not run; * 16 MiB*' --method pollux.echo --size 17M

# Measurements.
expect 0 '*2000 full round trips of 64 B*calls/s, 16 open at a time*' --method echo --size 64 --count 2000 --in-flight 16 \
	--out "$temp/out" --name closed
result closed '.count == 2000 and .size_bytes == 64 and .lost == 0 and .valid and .interrupted == null'
expect '[03]' '*as they were due*' --method echo --count 500 --rate 2000 --arrival poisson --out "$temp/out" --name open
result open '.count + .lost == 500 and .rate == 2000 and .arrival == "poisson" and .seed == 1'
expect 3 '*achieved * of *scheduled requests*' --method echo --count 20000 --rate 50000000
# The time of comparing contents between round trips raises no doubt.
gives 'plx-ping --process --size 64K' '[03]' '*full round trips of 65536 B*' timeout 30 "$apps/plx-ping" --huge none -- \
	--connect "$address" --process --verify --size 64K --count 300 --warmup 10 --out "$temp/out" --name verified
result verified '.note // "" | contains("mean x count") | not'
expect 1 '*error: 20 calls*no call brought a reply' --method pollux.generate --count 20
expect 1 '*does not know it; --list *' --method 777 --count 10 --rate 100
expect 1 '*cannot make directory /proc/*' --method echo --count 5 --out /proc/none

# A signal ends a measurement, which reports that it is incomplete.
measures cut --duration 30s --rate 1000
kill -INT "$pid"
ends "$pid"
check 'interrupted: status 0 or 3' "(($? % 3 == 0))"
result cut '.interrupted == "SIGINT" and .planned_ns == 30000000000 and .count > 0'
stops_well 'the service' "$server"

# The self-test service of a process that listens for another purpose; it allows 200 units a second, and a look-up
# costs 80 of them.
start_server echo "$apps/plx-echo" --huge none --heartbeat 1s:20s --self-test 200 -- --listen 127.0.0.1:0
expect 1 '*no service within 1 s: *speaks the echo of plx-ping*; --process calls *' --method pollux.echo --deadline 1s
for _ in {1..3}; do
	expect 0 '*pollux.describe*' --process --list
done
expect '[03]' '*calls were refused*' --process --method pollux.echo --duration 200ms --in-flight 64
gives 'plx-ping --process' '[03]' '*full round trips of 64 B*' timeout 30 "$apps/plx-ping" --huge none -- \
	--connect "$address" --process --verify --duration 200ms

# A service that is killed ends the measurement, which is not valid.
measures killed --process --count 100000000
kill_off "$server"
server=''
ends "$pid"
check 'killed: status 1' "(($? == 1)) && grep -q '^INTERRUPTED after .* of 100000000 calls: ' '$temp/killed'"
result killed '.interrupted != null and .valid == false and .lost > 0'
expect 1 '*no service within 0.3 s: *refused*' --method 1 --deadline 300ms --count 10
exit $failed
