#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# plx-params --watch while the service comes back with an older state or another file; and its output: text that would
# control a terminal, and outputs that cannot be written.
# shellcheck disable=SC2016,SC2034,SC2317 # check expands the conditions; listens_again calls serve_once
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

program=$1
address=127.0.0.1:0

# serve FILE: the service, where it was before.
serve_once()
{
	start server "$program" --huge none --heartbeat 1s:20s -- --serve "$1" --listen "$address"
	server=$pid
	listening "$temp/server"
}

serve()
{
	listens_again serve_once "$1"
}

# stop SIGNAL: the service, by that.
stop()
{
	kill -"$1" "$server"
	wait "$server" 2>/dev/null
	server=''
}

ask()
{
	"$program" --huge none --log-level error -- --connect "$address" "$@"
}

# asks TEXT STATUS PATTERN WORDS...
asks()
{
	gives "$1" "$2" "$3" ask "${@:4}"
}

# json TEXT FILTER WORDS...: the filter is true of it.
json()
{
	ask "${@:3}" --format json | jq -e "$2" >/dev/null
	check "$1" "(($? == 0))"
}

define()
{
	ask --define "$1" --type int --value "$2" >/dev/null 2>"$temp/define.err" || check "--define $1" false
}

# start_watch [WORDS...]
start_watch()
{
	: >"$temp/watch"
	# By default, background jobs of a shell ignore SIGINT.
	env --default-signal=INT "$program" --huge none --log-level error -- --connect "$address" --watch "$@" >>"$temp/watch" 2>"$temp/watch.err" </dev/null &
	watcher=$!
	pids+=("$watcher")
}

stop_watch()
{
	kill -INT "$watcher"
	ends_well 'watching by Ctrl-C' "$watcher"
}

# wait_shown LINE
wait_shown()
{
	wait_until "grep -q '^$1' '$temp/watch'"
	check "it shows: $1" "grep -q '^$1' '$temp/watch'"
}

# An earlier backup is restored.
serve "$temp/store.db"
define x 1
define y 1
define z 1
stop TERM
cp "$temp/store.db" "$temp/backup.db"
serve "$temp/store.db"
start_watch
wait_shown 'z = 1'
ask --set y --value 6 >/dev/null
ask --remove z >/dev/null
define w 1
wait_shown 'w = 1'
check 'it has shown what the backup does not have' "grep -q '^y = 6' '$temp/watch' && grep -q '^z removed' '$temp/watch'"
: >"$temp/watch"
stop KILL
serve "$temp/backup.db"
wait_shown 'w removed'
check 'it reports once that the service is gone, and that it is back' "diff '$temp/watch.err' - <<<'plx-params: the service is gone; waiting
plx-params: the service is back'"
check 'it shows what the backup has, and nothing else' "diff <(sort '$temp/watch' | sed 's/ *(.*//') - <<<'w removed
y = 1
z = 1'"

# Later changes have lower revisions than before, and are shown all the same.
ask --set x --value 2 >/dev/null
wait_shown 'x = 2'
stop_watch

start_watch --below z --format json
wait_shown '{"name": *"z"'
check 'only what is below its name' "[[ \$(wc -l <'$temp/watch') == 1 ]]"
stop_watch

# Texts.
ask --define t --type text --value $'gr\xc3\xbc\xc3\x9f \xc2\x9b31m\x9b31m \\x0a' >/dev/null
asks 'a text does not control the terminal' 0 \
	$'t = gr\xc3\xbc\xc3\x9f \\\\xc2\\\\x9b31m\\\\x9b31m \\\\\\\\x0a  (*' --get t

# Numbers are as short as they can be, and a text that JSON cannot say is there in hex.
ask --define r --type real --value 0.1 --min=-0.3 --max 0.30000000000000004 >/dev/null
asks 'numbers in JSON' 0 '*"value": 0.1,*"max": 0.30000000000000004,*' --get r --format json
asks '... and of none' 0 '\[]' --list --below nothing --format json
ask --set t --value $'a\xff"b' >/dev/null
json 'a text that is no UTF-8' '.[] | select(.name == "t") | .value == null and .value_hex == "61ff2262"' --list

# A full disk.
timeout -s KILL 60 "$program" --huge none --log-level error -- --connect "$address" --watch >/dev/full 2>"$temp/full.err"
check '--watch reports that nothing could be written' "(($? == 1)) && grep -q 'standard output: ' '$temp/full.err'"

# A reader that leaves while nothing changes.
mkfifo "$temp/fifo"
"$program" --huge none --log-level error -- --connect "$address" --watch >"$temp/fifo" 2>"$temp/left.err" &
watcher=$!
pids+=("$watcher")
head -n 1 <"$temp/fifo" >"$temp/first"
ends "$watcher"
check 'watching ends when its reader leaves' \
	"(($? == 1)) && [[ -s '$temp/first' ]] && grep -q 'standard output: nobody reads it' '$temp/left.err'"

"$program" --huge none --log-level error -- --serve "$temp/other.db" --listen 127.0.0.1:0 --publish-port "${address##*:}" \
	>/dev/null 2>"$temp/port.err" </dev/null
check 'it publishes at the port that is given' '(($? == 1)) && grep -q "the port is in use" "$temp/port.err"'
stop TERM
exit $failed
