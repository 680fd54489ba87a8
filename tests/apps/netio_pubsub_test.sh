#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# netio-pubsub-bench: each mode over tcp and shm, with one killed subscriber, and with wrong options.
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

apps=$1
heartbeat=1s:20s # on a busy host no process runs every 500 ms

bench()
{
	timeout -k 5 60 "$apps/netio-pubsub-bench" --huge none ${heartbeat:+--heartbeat "$heartbeat"} "$@" </dev/null
}

# publish PROVIDER OPTION...: in the background; sets `publisher` and `address`.
publish()
{
	start out bench --provider "$1" -- --listen 127.0.0.1:0 "${@:2}"
	publisher=$pid
	listening "$temp/out" && return
	cat "$temp/out.err"
	exit 1
}

# subscribes TEXT COUNT OPTION...: they get all in sequence, and both sides end with 0.
subscribes()
{
	bench -- --connect "$address" --subscribers "$2" "${@:3}" >"$temp/sub" 2>"$temp/sub.err"
	check "$1: the subscribers end with 0" "(($? == 0))"
	ends_well "$1: the publisher" "$publisher"
	check "$1: all in sequence" "grep -q '^$2 subscribers got [1-9].*; 0 out of sequence' '$temp/sub' &&
		! grep -q missed '$temp/sub'"
}

for provider in tcp shm; do
	for mode in buffered at-once unbuffered; do
		publish "$provider" --subscribers 4 --tags 3 --mode "$mode" --duration 200ms --json "$temp/row.json"
		subscribes "$provider $mode" 4 --tags 3
		check "$provider $mode: has figures" \
			"jq -e '.subscribers == 4 and .copies > 4 and .cycles_per_copy > 0 and .messages_per_s > 0 and .rate_asked == null' '$temp/row.json' >'$temp/jq'"
	done
done

# One of three dies after it has connected; the others miss nothing.
publish tcp --subscribers 3 --duration 3s
start victim "$apps/netio-pubsub-bench" --huge none --heartbeat 1s:20s -- --connect "$address"
victim=$pid
start sub bench -- --connect "$address" --subscribers 2
others=$pid
wait_until "grep -q '^subscribed' '$temp/victim' && grep -q '^subscribed' '$temp/sub'"
kill_off "$victim"
ends_well 'the others, although one is killed' "$others"
check 'they miss nothing' "grep -q '^2 subscribers got [1-9].*; 0 out of sequence' '$temp/sub'"
ends "$publisher"
check 'the publisher reports it' "(($? == 1)) && grep -q 'cycles/copy' '$temp/out' && grep -q 'went away' '$temp/out.err'"
pids=()

# One of five allows losses and is stopped until its publisher is done. The others miss nothing, and it learns of
# everything that it missed.
heartbeat=off
for policy in disconnect drop-old; do # the others: tests/unit/netio/slow_test.c
	duration=3
	[[ $policy == disconnect ]] && duration=9 # closing takes 5 s
	publish tcp --subscribers 5 --rate 100000 --duration ${duration}s --json "$temp/row.json"
	start slow "$apps/netio-pubsub-bench" --huge none --provider tcp --heartbeat off -- --connect "$address" --slow "$policy"
	slow=$pid
	wait_until "grep -q '^subscribed' '$temp/slow'"
	kill -STOP "$slow"
	start sub bench --provider tcp -- --connect "$address" --subscribers 4 --json "$temp/others.json"
	others=$pid
	[[ $policy == disconnect ]] || { sleep 4; kill -CONT "$slow"; }
	ends_well "$policy: the publisher" "$publisher"
	kill -CONT "$slow" 2>/dev/null
	ends_well "$policy: the others" "$others"
	check "$policy: they miss nothing" \
		"grep -q '^4 subscribers got [1-9].*; 0 out of sequence' '$temp/sub' && ! grep missed '$temp/sub'"
	wait "$slow"
	status=$?
	each=$(sed -n 's/^4 subscribers got \([0-9]*\) .*/\1/p' "$temp/sub")
	each=$((each / 4))
	got=$(sed -n 's/^1 subscribers got \([0-9]*\) .*/\1/p' "$temp/slow")
	missed=$(sed -n 's/ were missed, and told$//p' "$temp/slow")
	if [[ $policy == disconnect ]]; then
		check "$policy: it was disconnected, and reports it" "grep -q 'too slow' '$temp/out' && (($status))"
	else
		check "$policy: $each, got $got, missed ${missed:-0}" "(($status == 0 && got + missed == each))"
	fi
	check "$policy: the rate that was reached is in both files" \
		"jq -es '.[0].rate_asked == 100000 and (map(.messages_per_s // .messages_per_s_least) |
			all(.[]; . > 50000 and . < 150000))' '$temp/row.json' '$temp/others.json' >'$temp/jq'"
	check "$policy: nobody holds up the publisher: $each in $duration.1 s, at 100000 a second" \
		"((each >= duration * 50000))"
done
heartbeat=1s:20s
pids=()

gives 'neither --listen nor --connect' 2 '*give --listen ADDR*' bench -- --subscribers 2
gives '--size with --connect' 2 '*leave them out with --connect*' bench -- --connect 127.0.0.1:1 --size 64
gives '--pages with unbuffered' 2 '*leave them out*' bench -- --listen 127.0.0.1:0 --mode unbuffered --pages 4
gives 'nobody there' 1 '*refused*' bench --provider tcp -- --connect 127.0.0.1:1
exit $failed
