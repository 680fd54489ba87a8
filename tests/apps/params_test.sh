#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# plx-params: each command, errors, and the disk's contents after a kill -9.
# shellcheck disable=SC2016,SC2034,SC2317 # check expands the conditions; listens_again calls serve_once
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

program=$1 setter=$2 call=${1%/*}/plx-call

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
expect 0 'revision 1' --define hv/rack1/voltage --type real --value 1500 --unit V --min 0 --max 2000 --alarm-high 1800 --latch
expect 0 'revision 2' --define hv/rack1/on --type bool --value false
expect 0 'revision 3' --define hv/rack2/channels --type int --value 12 --alarm-low 10
expect 0 'revision 4' --define run/title --type text --value 'first light'
expect 0 'hv/rack1/voltage = 1500 V  (real, revision 1)' --get hv/rack1/voltage
expect 0 'revision 5' --set hv/rack1/voltage --value 1600.5
expect 0 'revision 6' --set run/title --value 'second, "light"'
expect 0 'revision 7' --set hv/rack1/on --value true
expect 0 'revision 8' --set hv/rack2/channels --value 11 --fast

# Limits, types, missing parameters.
expect 1 '*hv/rack1/voltage: 2000.5 is beyond 0 to 2000 V' --set hv/rack1/voltage --value 2000.5
expect 1 "*hv/rack1/on: value 'yes': not a bool; give true, false, 1 or 0" --set hv/rack1/on --value yes
expect 1 "*voltage: value '1e999': too large for a real; give one from -1.79769e+308 to 1.79769e+308" --set hv/rack1/voltage --value 1e999
expect 1 '*nope: there is no such parameter' --get nope
expect 1 '*there is no such parameter' --remove nope
expect 2 '*empty segment*' --get a//b
expect 2 '*other characters*' --get 'a b'
expect 2 '*--value VALUE is missing*' --set a
expect 2 '*--type is missing*' --define a --value 1
expect 2 '*are for --define*' --get a --latch
expect 2 '*give one of*' --get a --list
expect 2 '*--below is for*' --get a --below b
expect 2 '*a lower limit is above the upper one*' --define a --type int --value 1 --min 3 --max 2
expect 2 '*--define a: the high alarm is not below the maximum: no value that is taken raises it*' --define a --type int --value 1 --max 10 --alarm-high 20
expect 2 '*limits are for int and real*' --define a --type text --value 1 --min 1
expect 2 '*--value: 1 is below 3 mm, the least that is taken*' --define a --type int --value 1 --min 3 --unit mm
expect 2 '*not an int*' --define a --type int --value 1.5
expect 2 '*a unit has control characters*' --define a --type int --value 1 --unit $'m\e[2J'

# Another service, whose methods must not run: the example's is number 1.
params_address=$address
start other "${1%/*}/examples/service" --huge none --heartbeat 1s:20s --listen 127.0.0.1:0
listening "$temp/other"
for words in '--get a' '--set a --value 1' --list --watch; do
	# shellcheck disable=SC2086
	expect 1 "*$address is a service, but no plx-params; check --connect" $words
done
address=$params_address
kill "$pid"
ends "$pid"

# raw CODE TEXT METHOD HEX: the answer to a foreign client's request.
raw()
{
	gives "$3 $4" 1 "*$2*with code $1*" "$call" --huge none --log-level error -- --connect "$address" --method "params.$3" --hex "$4"
}

# A record of "x", an int that is 1 and may be 0 at most; one that was removed; orders with what is zero otherwise.
zeros='0000000000000000'
limits="$zeros $zeros $zeros 02 00 00 00 0100 0000 0200 000000000000 0100000000000000 $zeros 78"
raw 3 '1 is above 0, the most that is taken' define "0000000000000000 $limits"
raw 2 'the high alarm is not below the maximum' define "$zeros $zeros $zeros $zeros 02 00 00 00 0100 0000 0a00 000000000000 $zeros 0a00000000000000 1400000000000000 78"
raw 2 'what is defined is not removed' define "0000000000000000 ${limits/0200 000000000000/0201 000000000000}"
raw 2 'the order has flags that nobody knows' define "0000000000000001 $limits"
raw 2 'the order has flags that nobody knows' ack '0001000000000000 72756e'
raw 2 'the order has a revision, and does not expect it' set '00 00 0300 00000000 0100000000000000 0000000000000000 72756e'

# Compare and set.
expect 0 'revision 9' --set hv/rack1/voltage --value 1700 --expect 5
expect 1 '*voltage: it has revision 9, not 5; --get shows it' --set hv/rack1/voltage --value 1701 --expect 5
expect 0 '*= 1700 V*' --get hv/rack1/voltage

# Alarms: active, latched, acknowledged.
expect 0 '' --alarms
expect 0 'revision 10' --set hv/rack1/voltage --value 1900
expect 0 '*hv/rack1/voltage = 1900 V  (real, revision 10, high alarm active since *-*T*:*:*.*Z)' --alarms
expect 0 'revision 11' --set hv/rack1/voltage --value 1500
expect 0 '*alarm latched*' --alarms
expect 0 'revision 12' --ack hv/rack1/voltage
expect 0 '' --alarms
expect 0 'revision 13' --set hv/rack2/channels --value 9
expect 0 'revision 14' --ack hv/rack2/channels
expect 0 '*alarm acknowledged*' --alarms --below hv/rack2
expect 0 '' --alarms --below hv/rack1

# Two severities, and a hysteresis. It is taken away again, with an id that comes to nobody else.
expect 0 'revision 15' --define t/water --type real --value 20 --warn-high 80 --alarm-high 90 --hysteresis 5 --fast
expect 0 'revision 16' --set t/water --value 81 --fast
expect 0 '*high warning active since *Z)' --get t/water
expect 0 'revision 17' --set t/water --value 91 --fast
expect 0 '*high alarm active since *' --get t/water
expect 0 'revision 18' --set t/water --value 79 --fast
expect 0 '*high warning active since *' --get t/water
expect 0 'revision 19' --set t/water --value 75 --fast
expect 0 't/water = 75  (real, revision 19)' --get t/water
expect 0 'revision 20' --remove t/water
expect 2 '*--define a: the hysteresis is too large: an alarm could not end*' --define a --type int --value 1 --alarm-high 9 --alarm-low 7 --hysteresis 3

# Lists.
expect 0 $'*hv/rack1/on = true*\nhv/rack1/voltage*\nhv/rack2/channels*\nrun/title = second, "light"*' --list
expect 0 $'hv/rack1/on*\nhv/rack1/voltage = 1500 V  (real, revision 12)' --list --below hv/rack1
expect 0 '' --list --below hv/rack
got=$("$program" --huge none -- --connect "$address" --list --below hv --json)
check 'JSON' 'jq -e "length == 3 and .[1].name == \"hv/rack1/voltage\" and .[1].value == 1500 and .[1].unit == \"V\" and .[1].max == 2000 and
	.[1].latch and .[0].value == true and .[2].alarm == \"acknowledged\" and .[2].severity == \"alarm\" and .[2].side == \"low\" and
	(.[2].alarm_since | test(\"^2.*T.*[.][0-9]{3}Z\"))" <<<"$got" >/dev/null'
expect 0 'revision 21' --remove hv/rack1/on
expect 1 '*no such parameter' --get hv/rack1/on

# Watching.
# By default, background jobs of a shell ignore SIGINT.
start watch env --default-signal=INT "$program" --huge none -- --connect "$address" --watch --below hv
watcher=$pid
wait_until "[[ \$(wc -l <'$temp/watch') == 2 ]]"
check 'a watch shows the existing parameters' "grep -q '^hv/rack1/voltage = 1500 V' '$temp/watch' && grep -q '^hv/rack2/channels = 9' '$temp/watch'"
expect 0 'revision 22' --set hv/rack1/voltage --value 1950
expect 0 'revision 23' --set run/title --value 'not watched'
expect 0 'revision 24' --define hv/rack3/on --type bool --value 0
expect 0 'revision 25' --remove hv/rack3/on
wait_until "grep -q 'hv/rack3/on removed' '$temp/watch'"
check 'and each change below the name' "diff <(tail -n +3 '$temp/watch' | sed 's/ since [^)]*//') - <<<'hv/rack1/voltage = 1950 V  (real, revision 22, high alarm active)
hv/rack3/on = false  (bool, revision 24)
hv/rack3/on removed  (revision 25)'"

# Two services may not write to one file.
refused 'another process has the file' 1 '*another process has it; end that one*' "$temp/store.db"

# Acknowledged changes persist, and no revision is used twice, although the service is killed while many sets are on their way
# to the disk.
for i in {0..7}; do
	expect 0 'revision *' --define "load/$i" --type int --value 0 --fast
done

# is_there: each value that was acknowledged as being on the disk is listed, or a later one.
is_there()
{
	local name value now

	while read -r name value; do
		now=$(sed -n "s|^$name = \([0-9]*\) .*|\1|p" "$temp/listed")
		[[ $name != load/* ]] || ((${now:--1} >= value)) || return 1
	done <"$temp/told"
}

unanswered=0
for i in {1..4}; do
	start told "$setter" --huge none -- --connect "$address"
	client=$pid
	before=$("$program" --huge none -- --connect "$address" --get load/7 2>"$temp/get.err")
	wait_until '[[ $("$program" --huge none -- --connect "$address" --get load/7 2>"$temp/get.err") != "$before" ]]'
	sleep "0.$((RANDOM % 9))"
	kill_off "$server"
	ends "$client"
	serve "$address"
	"$program" --huge none -- --connect "$address" --list --below load >"$temp/listed" 2>"$temp/list.err"
	is_there
	check "kill $i: what was acknowledged is on the disk" "(($? == 0)) && ((\$(wc -l <'$temp/told') == 10))"
	told=$(sed -n 's/^revision //p' "$temp/told")
	next=$("$program" --huge none -- --connect "$address" --set hv/rack1/voltage --value $((1000 + i)) 2>"$temp/set.err")
	check "kill $i: revisions continue after $told: $next" '((${next#revision } > told))'
	unanswered=$((unanswered + $(sed -n 's/^unanswered //p' "$temp/told")))
done
check "sets were on their way: $unanswered" '((unanswered > 0))'
expect 0 '*= 1004 V*' --get hv/rack1/voltage
expect 0 '*alarm acknowledged*' --get hv/rack2/channels
expect 1 '*no such parameter' --get hv/rack1/on
expect 0 'revision *' --define hv/rack1/on --type bool --value 1

wait_until "grep -q '= 1004 V' '$temp/watch'"
check 'a watch continues after the service was killed' "grep -q '= 1004 V' '$temp/watch'"
kill -INT "$watcher"
ends_well 'watching by Ctrl-C' "$watcher"

# An orderly end.
expect 0 'revision *' --set run/title --value last --fast
kill -STOP "$server"
expect 1 '*no service within 0.3 s: it has not answered yet: *' --deadline 300ms --list
kill -CONT "$server"
end_server 'it ends in order' '(($? == 0)) && grep -q "^3 changes were written in [1-3] commit" "$temp/server" && ! grep -q lost "$temp/server"'
check 'the file can be read by SQLite' '[[ $(sqlite3 "$temp/store.db" "SELECT value FROM params WHERE name = '"'run/title'"'") == last ]]'
got=$(sqlite3 "$temp/store.db" "SELECT type, value, unit, min, max IS NULL, alarm_low, alarm_high IS NULL, latch, alarm FROM params
	WHERE name IN ('hv/rack1/on', 'hv/rack2/channels') ORDER BY name; SELECT name, typeof(value) FROM counters ORDER BY name")
check 'its columns are as the page says' '[[ $got == $'"'bool|1|||1||1|0|none\nint|9|||1|10|1|0|acknowledged\nid|integer\nrevision|integer'"' ]]'
expect 1 '*no service within*' --deadline 300ms --list

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
expect 0 'revision *' --set run/title --value 'before the move'
mv "$temp/store.db" "$temp/moved.db"
expect 1 '*it was changed, and is not on the disk*' --set run/title --value 'after the move'
check 'a file that was moved is reported' 'grep -q "store.db: it was moved, removed or replaced .*keeps changes in memory only" "$temp/server.err"'
refused '... no other service takes its path' 1 '*another process has it; end that one*' "$temp/store.db"
check '... nor makes a file there' '[[ ! -e $temp/store.db ]]'
end_server '... and the service ends with status 1' '(($? == 1)) && grep -q "store.db: 1 change is not in it" "$temp/server.err"'
mv "$temp/moved.db" "$temp/store.db"
serve "$address"
expect 0 '* = * the move*' --get run/title
mv "$temp/store.db" "$temp/moved.db"
end_server 'it is noticed at the end, too' '(($? == 1)) && grep -q "store.db: it, or its -wal, was moved" "$temp/server.err"'
mv "$temp/moved.db" "$temp/store.db"

# Files that are no store, and stay unchanged.
echo 'this is no database, and it is long enough to be looked at as one ..............................................' >"$temp/text"
cp "$temp/text" "$temp/text.before"
refused 'a file of something else is named' 1 "*$temp/text: it is no store of plx-params*" "$temp/text"
check '... and stays' "cmp -s '$temp/text' '$temp/text.before'"
refused 'a folder that does not exist' 1 "*folder $temp/none does not exist; make it*" "$temp/none/store.db"
refused 'a folder' 1 "*$temp: it is a folder; give a file*" "$temp"
refused 'a name that is not of a file' 1 '*give the path of a file*' :memory:
sqlite3 "$temp/store.db" 'UPDATE params SET id = -1 WHERE name = "run/title"'
refused 'a file that was edited badly' 1 \
	"*parameter 'run/title': its id is no whole number*mend it with sqlite3*" "$temp/store.db"
gives 'an address is needed' 2 '*--listen ADDR is missing*' "$program" --huge none -- --serve "$temp/other.db"
exit $failed
