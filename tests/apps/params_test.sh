#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# plx-params: its commands, a kill -9, and a disk that fails or a file that moves while it is served.
# shellcheck disable=SC2016,SC2034,SC2317 # check expands the conditions; listens_again calls serve_once
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

program=$1
kills=$((${PLX_TEST_SOAK:+48} + 2))

# serve [ADDRESS [EAL OPTIONS]]. SIGXFSZ is ignored, so a file-size limit acts as a failing disk.
serve_once()
{
	start server env --ignore-signal=XFSZ "$program" --huge none --heartbeat 1s:20s "${@:2}" -- --serve "$temp/store.db" --listen "${1-127.0.0.1:0}"
	server=$pid
	listening "$temp/server"
}

serve()
{
	listens_again serve_once "$@"
}

# end_server TEXT CONDITION: by SIGTERM; the condition is true of its status and what it has printed.
end_server()
{
	kill "$server"
	ends "$server"
	check "$@"
	server=''
}

# expect STATUS PATTERN WORDS...: of a client.
expect()
{
	gives "${*:3}" "$1" "$2" "$program" --huge none --log-level error -- --connect "$address" "${@:3}"
}

# refused TEXT STATUS PATTERN FILE: a service that does not start.
refused()
{
	gives "$1" "$2" "$3" "$program" --huge none -- --serve "$4" --listen 127.0.0.1:0
}

serve
expect 0 'revision 1' --define hv/voltage --type real --value 1500 --unit V --min 0 --max 2000 --alarm-high 1800 --latch
expect 0 'revision 2' --define run/title --type text --value 'first "light"' --fast
expect 0 'revision 3' --set hv/voltage --value 1900.5 --expect 1
expect 0 'hv/voltage = 1900.5 V  (real, revision 3, high alarm active since *-*T*:*:*.*Z)' --alarms
expect 0 'revision 4' --ack hv/voltage
expect 0 '\[*"name": "hv/voltage",*"max": 2000.0,*"latch": true,*"alarm": "acknowledged",*"severity": "alarm",*\]' --list --below hv --format json
expect 1 '*hv/voltage: 2000.5 is beyond 0 to 2000 V' --set hv/voltage --value 2000.5

# Another service, whose methods must not run: the example's is number 1.
params_address=$address
start other "${1%/*}/examples/service" --huge none --heartbeat 1s:20s --listen 127.0.0.1:0
listening "$temp/other"
expect 1 "*$address is a service, but no plx-params; check --connect" --watch
address=$params_address
kill_off "$pid"

# Two services may not write to one file.
refused 'another process has the file' 1 '*another process has it; end that one*' "$temp/store.db"

# Acknowledged changes persist, and no revision is used twice, although the service is killed while it is changed.
for i in 0 1; do
	expect 0 'revision *' --define "load/$i" --type int --value 0 --fast
done

# set_all NAME: to 1, 2 and so on, until the service is gone; prints each value that was acknowledged, and its revision.
set_all()
{
	local value said

	for ((value = 1; ; value++)); do
		said=$("$program" --huge none -- --connect "$address" --deadline 1s --set "$1" --value "$value" 2>"$temp/set.err") || return
		echo "$value ${said#revision }"
	done
}

for ((i = 1; i <= kills; i++)); do
	start told0 set_all load/0
	clients=("$pid")
	start told1 set_all load/1
	clients+=("$pid")
	wait_until '[[ -s $temp/told0 && -s $temp/told1 ]]'
	sleep "0.$((RANDOM % 5))"
	kill_off "$server"
	wait "${clients[@]}"
	serve "$address"
	for client in 0 1; do
		read -r value _ < <(tail -n 1 "$temp/told$client")
		got=$("$program" --huge none -- --connect "$address" --get load/$client 2>"$temp/get.err" | sed 's/.* = //; s/ .*//')
		check "kill $i: $value was acknowledged, and $got is on the disk" '((got >= value))'
	done
	told=$(cut -d' ' -f2 "$temp/told0" "$temp/told1" | sort -n | tail -n 1)
	next=$("$program" --huge none -- --connect "$address" --set hv/voltage --value $((1000 + i)) 2>"$temp/set.err")
	check "kill $i: revisions continue after $told: $next" '((${next#revision } > told))'
done

# An orderly end.
expect 0 'revision *' --set run/title --value last --fast
kill -STOP "$server"
expect 1 '*no service within 0.3 s: it has not answered yet: *' --deadline 300ms --list
kill -CONT "$server"
end_server 'it ends in order' '(($? == 0)) && grep -q "^2 changes were written in [12] commit" "$temp/server" && ! grep -q lost "$temp/server"'
got=$(sqlite3 "$temp/store.db" "SELECT name, type, value, unit, min, max, alarm_low IS NULL, alarm_high, latch, alarm FROM params
	WHERE name NOT LIKE 'load/%' ORDER BY name; SELECT name, typeof(value) FROM counters ORDER BY name")
check 'its columns are as the page says' \
	'[[ $got == $'"'hv/voltage|real|'"$((1000 + kills))"$'.0|V|0.0|2000.0|1|1800.0|1|none\nrun/title|text|last||||1||0|none\nid|integer\nrevision|integer'"' ]] || ! echo "$got"'

# A disk that fails and recovers; then one that fails until the end.
serve "$address" --provider tcp
prlimit --fsize=4096: --pid "$server"
start set "$program" --huge none --provider tcp -- --connect "$address" --deadline 20s --set run/title --value 'it waits'
client=$pid
wait_until 'grep -q "trying again in 1 s" "$temp/server.err"'
check 'the service retries a failing disk, and the client waits' 'kill -0 "$client" && [[ ! -s $temp/set ]]'
prlimit --fsize=unlimited: --pid "$server"
ends "$client"
check '... until it takes it' "(($? == 0)) && grep -q '^revision ' '$temp/set'"
tries=$(grep -c 'trying again in 1 s' "$temp/server.err")
prlimit --fsize=4096: --pid "$server"
start set "$program" --huge none --provider tcp -- --connect "$address" --deadline 20s --set run/title --value 'it is lost'
client=$pid
wait_until '(($(grep -c "trying again in 1 s" "$temp/server.err") > tries))'
kill "$server"
ends "$client"
check 'a client that waits at the end learns that its change is lost' '(($? == 1)) && grep -q "it was changed, and is not on the disk" "$temp/set.err"'
ends "$server"
check '... and the service reports it' '(($? == 1)) && grep -q "^1 change was written in 1 commit$" "$temp/server" && grep -q "^1 change is lost$" "$temp/server" && grep -q "store.db: 1 change is not in it" "$temp/server.err"'
server=''
check '... and the acknowledged change is there' '[[ $(sqlite3 "$temp/store.db" "SELECT value FROM params WHERE name = '"'run/title'"'") == "it waits" ]]'

# A file that is moved away while it is served.
serve "$address"
mv "$temp/store.db" "$temp/moved.db"
expect 1 '*it was changed, and is not on the disk*' --set run/title --value 'after the move'
check 'a file that was moved is reported' 'grep -q "store.db: it was moved, removed or replaced .*keeps changes in memory only" "$temp/server.err"'
refused '... no other service takes its path' 1 '*another process has it; end that one*' "$temp/store.db"
end_server '... and the service ends with status 1' '(($? == 1)) && grep -q "store.db: 1 change is not in it" "$temp/server.err"'

refused 'a folder that does not exist' 1 "*folder $temp/none does not exist; make it*" "$temp/none/store.db"
gives 'an address is needed' 2 '*--listen ADDR is missing*' "$program" --huge none -- --serve "$temp/other.db"
exit $failed
