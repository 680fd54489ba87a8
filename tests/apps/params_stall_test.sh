#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A burst of changes while plx-params --watch stands still: more than may wait for it, so that gaps of several reasons
# meet. In the end it has shown the last value of every parameter.
# shellcheck disable=SC2016,SC2317 # check expands the conditions
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

program=$1
load=$2

ask()
{
	"$program" --huge none --log-level error -- --connect "$address" "$@"
}

start_server server "$program" --huge none --heartbeat 1s:60s -- --serve "$temp/store.db" --listen 127.0.0.1:0
ask --define first --type int --value 1 >/dev/null || check 'it is defined' false
start watch "$program" --huge none --log-level error -- --connect "$address" --watch
watcher=$pid
wait_until "grep -q '^first = 1' '$temp/watch'"

kill -STOP "$watcher"
"$load" --huge none --log-level error -- --connect "$address" --parameters 20000 --watchers 0 --rate 50000 --duration 2s >"$temp/load" 2>&1
# A busy service refuses some.
check 'there is a burst' "head -n 1 '$temp/load' | jq -e '.count - .lost > 20000' >/dev/null || ! cat '$temp/load'"
kill -CONT "$watcher"
ask --list | sed 's/ *(.*//' | sort >"$temp/list"
check 'of many parameters' "((\$(wc -l <'$temp/list') == 20001))"

# The last value shown of each.
shown()
{
	tac "$temp/watch" | awk '!seen[$1]++' | sed 's/ *(.*//' | sort
}
wait_until 'diff <(shown) "$temp/list" >"$temp/diff"'
check 'it has shown the last value of each' "diff <(shown) '$temp/list' >'$temp/diff' || ! head -3 '$temp/diff'"
exit $failed
