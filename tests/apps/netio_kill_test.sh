#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# NetIO senders and receivers killed at random points, over tcp and shm. A receiver has the beginning of what a dead
# sender sent, without a gap; a sender whose receiver died continues with the next one.
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

examples=$PLX_BUILD_ROOT/apps/examples

# start_receiver PORT SOURCES: sets `port` and `receiver`.
start_receiver()
{
	start recv "$examples/netio_recv" "$1" "$2"
	receiver=$pid
	listening "$temp/recv" && return
	check 'a receiver comes up' false
	exit 1
}

# About a tenth of a second after the sender connected: perhaps before its first message, which has its number.
sleep_at_random()
{
	wait_until "grep -q ' connected\$' '$temp/recv'"
	sleep "0.$(printf %03d $((RANDOM % 200)))"
}

for provider in tcp shm; do
	export NETIO_OPTIONS="--huge none --provider $provider"
	for round in 1 2 3; do
		start_receiver 0 1
		start send "$examples/netio_send" 127.0.0.1 "$port" "$round" 1000000000
		sleep_at_random
		kill_off "$pid"
		ends "$receiver"
		check "$provider $round: a killed sender's messages have no gap" \
			"(($? == 0)) && grep -qE '^source ($round|0): [0-9]+ fragments, 0 missing' '$temp/recv'"
		check "$provider $round: and the receiver reports why" "grep -q 'went away' '$temp/recv'"
	done

	start_receiver 0 1
	start send "$examples/netio_send" 127.0.0.1 "$port" 9 1000000000
	sender=$pid
	sleep_at_random
	kill_off "$receiver"
	start_receiver "$port" 1
	sleep_at_random
	kill_off "$sender"
	ends "$receiver"
	check "$provider: a sender continues with the next receiver" \
		"grep -qE '^source (9|0): [0-9]+ fragments' '$temp/recv' && grep -q 'trying again' '$temp/send.err'"
done
exit $failed
