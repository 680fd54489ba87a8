#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Services and clients of them that are killed and stopped at random points. What the services say that they ran, and what the
# clients say of each call, must agree: a key ran once at most, what was answered ran, what surely did not run did not,
# and each call ended once.
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

program=$1
seconds=${PLX_TEST_SOAK:+120}
seconds=${seconds:-8}

# start_service I ADDRESS: sets services[I] and addresses[I].
start_service()
{
	start "service$1" "$program" --huge none --provider "$provider" -- --listen "$2" --log "$temp/ran"
	services[$1]=$pid
	if ! listening "$temp/service$1"; then
		check "$provider: a service starts" false
		exit 1
	fi
	addresses[$1]=$address
}

start_client()
{
	((++identity))
	start "client$identity" "$program" --huge none --provider "$provider" -- --connect "${addresses[0]}" --connect "${addresses[1]}" \
		--identity $identity --log "$temp/ended"
	client=$pid
}

# Kill a service, stop it for longer than its peers wait for it, or kill a client; whichever it is comes again.
disturb()
{
	local which=$((RANDOM % 2))

	case $((RANDOM % 4)) in
	0)
		kill -STOP "${services[which]}"
		sleep 0.7
		kill -CONT "${services[which]}"
		;;
	1)
		kill_off "$client"
		start_client
		;;
	*)
		kill_off "${services[which]}"
		start_service $which "${addresses[which]}"
		;;
	esac
}

for provider in tcp shm; do
	rm -f "$temp"/*
	touch "$temp/ran" "$temp/ended"
	identity=0
	start_service 0 127.0.0.1:0
	start_service 1 127.0.0.1:0
	start_client
	steady=$client
	start_client # this one is killed, too
	disturbed=0
	for ((end = SECONDS + seconds; SECONDS < end; disturbed++)); do
		sleep "0.$(printf %03d $((RANDOM % 300)))"
		disturb
	done
	# Where one was made just now: who is ended while it starts does not end in order.
	wait_until "grep -q '^$identity\\.' '$temp/ended'"
	kill -TERM "$steady" "$client"
	ends_well "$provider: a client" "$steady"
	ends_well "$provider: the other one" "$client"
	kill -TERM "${services[@]}"
	for service in "${services[@]}"; do
		ends "$service"
	done

	sort "$temp/ran" >"$temp/ran.sorted"
	sort "$temp/ended" >"$temp/ended.sorted"
	# Calls with a key, by their numbers, also those of clients that were killed before they could tell.
	awk -F. '$2 % 10 < 7' "$temp/ran.sorted" | uniq -d >"$temp/twice"
	check "$provider: no key ran twice" "[[ ! -s $temp/twice ]]"
	cut -d' ' -f1 "$temp/ended.sorted" | uniq -d >"$temp/ended.twice"
	check "$provider: no call ended twice" "[[ ! -s $temp/ended.twice ]]"
	check "$provider: each call ended" "! grep -h 'done [^1]* times' $temp/client*.err && ! grep -hE ' [1-9][0-9]* are open' $temp/client*.err"
	awk '$4 == "ok" { print $1 }' "$temp/ended.sorted" | join -v1 - <(uniq "$temp/ran.sorted") >"$temp/never"
	check "$provider: what was answered ran" "[[ ! -s $temp/never ]]"
	awk '$NF == "no" { print $1 }' "$temp/ended.sorted" | join - <(uniq "$temp/ran.sorted") >"$temp/ran.after.all"
	check "$provider: calls that were reported as not run did not run" "[[ ! -s $temp/ran.after.all ]]"
	check "$provider: no answer is another call's" "! grep -q wrong '$temp/ended'"
	check "$provider: calls ended with replies, and links ended under others" \
		"(($(grep -c ' ok ' "$temp/ended") > 1000)) && grep -q 'peer down perhaps' '$temp/ended'"
	echo "$provider: $disturbed disturbances, $(wc -l <"$temp/ended") calls ended, $(wc -l <"$temp/ran") ran:" \
		"$(awk '{ print $4 }' "$temp/ended" | sort | uniq -c | tr -s ' \n' ' ')"
done
exit $failed
