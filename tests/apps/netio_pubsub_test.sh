#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# netio-pubsub-bench: each mode over tcp and shm, and wrong options.
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

apps=$1
heartbeat=1s:20s # on a busy host no process runs every 500 ms

bench()
{
	timeout -k 5 60 "$apps/netio-pubsub-bench" --huge none --heartbeat "$heartbeat" "$@" </dev/null
}

# publish PROVIDER OPTION...: in the background; sets `publisher` and `address`.
publish()
{
	start_server out bench --provider "$1" -- --listen 127.0.0.1:0 "${@:2}"
	publisher=$pid
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

gives 'neither --listen nor --connect' 2 '*give --listen ADDR*' bench -- --subscribers 2
gives '--size with --connect' 2 '*leave them out with --connect*' bench -- --connect 127.0.0.1:1 --size 64
gives '--pages with unbuffered' 2 '*leave them out*' bench -- --listen 127.0.0.1:0 --mode unbuffered --pages 4
gives 'nobody there' 1 '*refused*' bench --provider tcp -- --connect 127.0.0.1:1
exit $failed
