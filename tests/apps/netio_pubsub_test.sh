#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# netio-pubsub-bench: each mode over tcp and shm, with one killed subscriber, and with wrong options.
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

apps=$1
heartbeat=

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

for provider in tcp shm; do
	for mode in buffered at-once unbuffered; do
		publish "$provider" --subscribers 4 --tags 3 --mode "$mode" --duration 200ms --json "$temp/row.json"
		bench --provider "$provider" -- --connect "$address" --subscribers 4 --tags 3 >"$temp/sub" 2>"$temp/sub.err"
		check "$provider $mode: the subscribers end with 0" "(($? == 0))"
		ends_well "$provider $mode: the publisher" "$publisher"
		grep -h 'bench: ' "$temp/out.err" "$temp/sub.err"
		check "$provider $mode: in sequence" "grep -q '^4 subscribers got [1-9].*; 0 out of sequence' '$temp/sub'"
		check "$provider $mode: nothing is missed" "! grep -q 'were missed' '$temp/sub'"
		check "$provider $mode: has figures" \
			"jq -e '.subscribers == 4 and .copies > 4 and .cycles_per_copy > 0 and .messages_per_s > 0 and .rate_asked == null' '$temp/row.json' >'$temp/jq'"
	done
	# One of three dies after it has connected; the others miss nothing.
	for mode in buffered unbuffered; do
		publish "$provider" --subscribers 3 --mode "$mode" --duration 3s
		"$apps/netio-pubsub-bench" --huge none --provider "$provider" -- --connect "$address" \
			>"$temp/victim" 2>"$temp/victim.err" </dev/null &
		victim=$!
		pids+=("$victim")
		bench --provider "$provider" -- --connect "$address" --subscribers 2 >"$temp/sub" 2>"$temp/sub.err" &
		others=$!
		pids+=("$others")
		sleep "0.$((RANDOM % 9 + 1))"
		# On a slow host it may not have connected yet: then the publisher waits for it.
		kill_off "$victim"
		start next bench --provider "$provider" -- --connect "$address"
		next=$pid
		wait "$publisher"
		check "$provider $mode: the publisher continues" "grep -q 'cycles/copy' '$temp/out'"
		wait "$others"
		check "$provider $mode: the others end with 0 although one is killed" "(($? == 0))"
		check "$provider $mode: they miss nothing" \
			"grep -q '^2 subscribers got [1-9].*; 0 out of sequence' '$temp/sub'"
		ends_well "$provider $mode: one that comes late" "$next"
	done
done
pids=()

# One of five allows losses and is stopped until its publisher is done. The others miss nothing, and it learns of
# everything that it missed.
heartbeat=off
for policy in disconnect drop-old drop-new conflate; do
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
heartbeat=
pids=()

bench -- --subscribers 2 2>"$temp/err"
check 'neither --listen nor --connect ends with 2' "(($? == 2)) && grep -q 'give --listen ADDR' '$temp/err'"
bench -- --connect 127.0.0.1:1 --size 64 2>"$temp/err"
check '--size with --connect ends with 2' "(($? == 2)) && grep -q 'leave them out with --connect' '$temp/err'"
bench --provider tcp -- --connect 127.0.0.1:1 2>"$temp/err" >"$temp/sub"
check 'nobody there ends with 1' "(($? == 1)) && grep -q 'refused' '$temp/err'"
bench -- --listen 127.0.0.1:0 --mode unbuffered --pages 4 2>"$temp/err"
check '--pages with unbuffered ends with 2' "(($? == 2)) && grep -q 'leave them out' '$temp/err'"
exit $failed
