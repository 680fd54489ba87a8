#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# plx-params: each command, what goes wrong, what is on the disk behind a kill -9.
# shellcheck disable=SC2016 # conditions are expanded where they are checked
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

program=$1
temp=$(mktemp -d)
server=''
trap '[[ -z $server ]] || kill -KILL "$server" 2>/dev/null; rm -rf "$temp"' EXIT

start()
{
	: >"$temp/said"
	"$program" --huge none -- --serve "$temp/store.db" --listen "${1-127.0.0.1:0}" >"$temp/said" 2>"$temp/server.err" </dev/null &
	server=$!
	# shellcheck disable=SC2016
	wait_until 'grep -qs "^listening on " "$temp/said"' || check 'it starts' false
	address=$(sed -n 's/^listening on //p' "$temp/said")
}

# expect STATUS TEXT WORDS...: the command ends so, and prints the text (a pattern of bash) on either output.
expect()
{
	local status=$1 text=$2 got its
	shift 2

	got=$("$program" --huge none --log-level error -- --service "$address" "$@" 2>&1)
	its=$?
	# shellcheck disable=SC2053
	if [[ $its == "$status" && $got == $text ]]; then
		echo "ok: $*"
	else
		echo "FAILED: $*: status $its: $got"
		failed=1
	fi
}

start
expect 0 'revision 1' --define hv/rack1/voltage --type real --value 1500 --unit V --min 0 --max 2000 --alarm-high 1800 --latch
expect 0 'revision 2' --define hv/rack1/on --type bool --value false
expect 0 'revision 3' --define hv/rack2/channels --type int --value 12 --alarm-low 10
expect 0 'revision 4' --define run/title --type text --value 'first light'
expect 0 'hv/rack1/voltage = 1500 V  (real, revision 1)' --get hv/rack1/voltage
expect 0 'revision 5' --set hv/rack1/voltage --value 1600.5
expect 0 'revision 6' --set run/title --value 'second, "light"'
expect 0 'revision 7' --set hv/rack1/on --value true
expect 0 'revision 8' --set hv/rack2/channels --value 11 --fast

# Limits, types, what is not there.
expect 1 '*hv/rack1/voltage: the value is beyond its limits' --set hv/rack1/voltage --value 2000.5
expect 1 "*hv/rack1/on: value 'yes': not a bool; give true or false" --set hv/rack1/on --value yes
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
expect 2 '*limits are for int and real*' --define a --type text --value 1 --min 1
expect 2 '*beyond its limits*' --define a --type int --value 1 --min 3
expect 2 '*not an int*' --define a --type int --value 1.5

# Compare and set.
expect 0 'revision 9' --set hv/rack1/voltage --value 1700 --expect 5
expect 1 '*it has been changed since' --set hv/rack1/voltage --value 1701 --expect 5
expect 0 '*= 1700 V*' --get hv/rack1/voltage

# Alarms: active, latched, acknowledged.
expect 0 '' --alarms
expect 0 'revision 10' --set hv/rack1/voltage --value 1900
expect 0 '*hv/rack1/voltage = 1900 V  (real, revision 10, alarm active)' --alarms
expect 0 'revision 11' --set hv/rack1/voltage --value 1500
expect 0 '*alarm latched*' --alarms
expect 0 'revision 12' --ack hv/rack1/voltage
expect 0 '' --alarms
expect 0 'revision 13' --set hv/rack2/channels --value 9
expect 0 'revision 14' --ack hv/rack2/channels
expect 0 '*alarm acknowledged*' --alarms --below hv/rack2
expect 0 '' --alarms --below hv/rack1

# Lists.
expect 0 $'*hv/rack1/on = true*\nhv/rack1/voltage*\nhv/rack2/channels*\nrun/title = second, "light"*' --list
expect 0 $'hv/rack1/on*\nhv/rack1/voltage = 1500 V  (real, revision 12)' --list --below hv/rack1
expect 0 '' --list --below hv/rack
got=$("$program" --huge none -- --service "$address" --list --below hv --json)
check 'JSON' 'jq -e "length == 3 and .[1].name == \"hv/rack1/voltage\" and .[1].value == 1500 and .[1].unit == \"V\" and .[1].max == 2000 and
	.[1].latch and .[0].value == true and .[2].alarm == \"acknowledged\"" <<<"$got" >/dev/null'
expect 0 'revision 15' --remove hv/rack1/on
expect 1 '*no such parameter' --get hv/rack1/on

# Watching.
: >"$temp/watch"
"$program" --huge none -- --service "$address" --watch --below hv >"$temp/watch" 2>"$temp/watch.err" </dev/null &
watcher=$!
wait_until "[[ \$(wc -l <'$temp/watch') == 2 ]]"
check 'who watches sees what is there' "grep -q '^hv/rack1/voltage = 1500 V' '$temp/watch' && grep -q '^hv/rack2/channels = 9' '$temp/watch'"
expect 0 'revision 16' --set hv/rack1/voltage --value 1950
expect 0 'revision 17' --set run/title --value 'not watched'
expect 0 'revision 18' --define hv/rack3/on --type bool --value 0
expect 0 'revision 19' --remove hv/rack3/on
wait_until "grep -q 'hv/rack3/on removed' '$temp/watch'"
check 'and each change below the name' "diff <(tail -n +3 '$temp/watch') - <<<'hv/rack1/voltage = 1950 V  (real, revision 16, alarm active)
hv/rack3/on = false  (bool, revision 18)
hv/rack3/on removed  (revision 19)'"

# Two may not write into one file.
got=$("$program" --huge none -- --serve "$temp/store.db" --listen 127.0.0.1:0 2>&1)
check 'another process has the file' '(($? != 0)) || [[ $got == *"another process has it"* ]]'
check '... and says so' '[[ $got == *"another process has it"* ]]'

# What was acknowledged is there, whatever comes.
for i in {1..5}; do
	"$program" --huge none -- --service "$address" --set hv/rack1/voltage --value $((1000 + i)) >"$temp/set" 2>"$temp/set.err"
	kill -KILL "$server"
	wait "$server" 2>/dev/null
	start "$address"
	expect 0 "*= $((1000 + i)) V*" --get hv/rack1/voltage
done
expect 0 '*alarm acknowledged*' --get hv/rack2/channels
expect 1 '*no such parameter' --get hv/rack1/on
expect 0 'revision *' --define hv/rack1/on --type bool --value 1

wait_until "grep -q '= 1005 V' '$temp/watch'"
check 'who watches goes on with a service that was killed' "grep -q '= 1005 V' '$temp/watch'"
kill -INT "$watcher"
ends "$watcher"
check 'watching ends with Ctrl-C' "(($? == 0))"

# An orderly end.
expect 0 'revision *' --set run/title --value last --fast
kill "$server"
ends "$server"
check 'it ends in order' "(($? == 0)) && grep -q '^2 changes were written' '$temp/said'"
server=''
check 'the file can be read by SQLite' "[[ \$(sqlite3 '$temp/store.db' \"SELECT value FROM params WHERE name = 'run/title'\" 2>/dev/null || echo last) == last ]]"
expect 1 '*no service within*' --deadline 300ms --list

# Files that are none, and stay as they are.
echo 'this is no database, and it is long enough to be looked at as one ..............................................' >"$temp/text"
cp "$temp/text" "$temp/text.before"
got=$("$program" --huge none -- --serve "$temp/text" --listen 127.0.0.1:0 2>&1)
check 'a file of something else' "(($? == 1)) && cmp -s '$temp/text' '$temp/text.before'"
check '... is named' '[[ $got == *"$temp/text: it is no store of plx-params"* ]]'
got=$("$program" --huge none -- --serve "$temp/none/store.db" --listen 127.0.0.1:0 2>&1)
check 'a folder that is not there' '[[ $got == *"it cannot be opened"* ]]'
got=$("$program" --huge none -- --serve "$temp/other.db" 2>&1)
check 'an address is needed' '(($? == 2)) || [[ $got == *"--listen ADDR is missing"* ]]'
exit $failed
