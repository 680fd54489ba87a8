#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# In the guest, each device alone: unit tests, programs, and what goes wrong.
#   loop.sh BUILD
set -uo pipefail
# shellcheck source=tests/rdma/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

round_trips()
{
	local size

	echo_at "$1" || return 1
	for size in 0 1 64 4080 4081 65536; do
		ping_it --connect "$address" --size $size --count 100 --verify || return 1
	done
	ping_it --connect "$address" --size 1M --count 3 --verify || return 1
	end_server && cat "$log"
}

# An lcore for each link, whichever device it came by.
spread_from_every_address()
{
	local host

	echo_at '*' || return 1
	for host in "$@"; do
		ping_it --connect "$host:${address##*:}" --count 50 --verify || return 1
	done
	end_server
}

asleep()
{
	log=$work/asleep-$1
	start "$log" "$build/apps/plx-ping" -l 0@0 --heartbeat "$beat" --huge none --idle event --provider verbs -- --listen "$1:0"
	await "$log" 'listening on' || return 1
	address=$(sed -n 's/^listening on //p' "$log")
	"$build/apps/plx-ping" -l 1@1 --heartbeat "$beat" --huge none --idle event --provider verbs -- --connect "$address" --count 200 --verify ||
		return 1
	end_server && grep 'slept [1-9]' "$log"
}

# netio PROVIDER HOST: a file goes through, whole.
netio()
{
	local file=$work/netio-$2 got=$work/netio-$2.got i

	head -c 3000000 /dev/urandom >"$file"
	log=$work/netio-$2.log
	"$build/apps/netio-cat" recv -l 0@0 --heartbeat "$beat" --huge none --provider "$1" -- --listen "$2:0" -e raw >"$got" 2>"$log" &
	server=$!
	await "$log" 'listening' || return 1
	"$build/apps/netio-cat" send -l 1@1 --heartbeat "$beat" --huge none --provider "$1" -- \
		--connect "$2:$(sed -n 's/.*:\([0-9]*\)$/\1/p' "$log" | head -n 1)" -e raw <"$file" || return 1
	for ((i = 0; i < 200; i++)); do # what is sent may still be on its way
		(($(stat -c %s "$got") < 3000000)) || break
		sleep 0.05
	done
	end_server
	cmp "$file" "$got"
}

# says TEXT COMMAND...: it fails, with that in its words.
says()
{
	local text=$1 output status

	shift
	output=$("$@" 2>&1)
	status=$?
	echo "$output"
	((status != 0 && status < 124)) && [[ $output == *"$text"* ]]
}

echo_verbs()
{
	"$build/apps/plx-echo" -l 0@0 --heartbeat "$beat" --huge none --provider verbs -- --listen "$1"
}

nobody_listens() { says 'refused the connection' ping_it --connect "$1:1" --count 1; }
in_use()
{
	echo_at "$1" || return 1
	says 'in use' echo_verbs "$address" && end_server
}

# As a user with little memory to lock.
memlock_too_small()
{
	chmod 777 "$work"
	says 'ulimit -l' setpriv --reuid=65534 --regid=65534 --clear-groups bash -c "ulimit -l 64 &&
		exec $build/apps/plx-ping -l 1@1 --huge none --provider verbs -- --connect $1:7000 --count 1"
}

# chosen DRIVER HOST TEXT: of a peer that listens by that driver, with auto here.
chosen()
{
	local server_by=$1 host=$2 why=$3

	log=$(mktemp "$work/echo.XXXXXX")
	start "$log" "$build/apps/plx-echo" -l 0@0 --heartbeat "$beat" --huge none --provider "$server_by" -- --listen "$host:0"
	await "$log" 'listening on' || return 1
	address=$(sed -n 's/^listening on //p' "$log")
	"$build/apps/plx-ping" -l 1@1 --heartbeat "$beat" --huge none -- --connect "$address" --count 20 --verify | tee "$log.ping" &&
		grep -q -- "$why" "$log.ping" && end_server
}

# killed HOST server|client: the survivor reports it. The aim is one second; a guest gets three.
killed()
{
	local host=$1 victim=$2 began client echo

	echo_at "$host" || return 1
	echo=$server
	start "$log.ping" "$build/apps/plx-ping" -l 1@1 --heartbeat "$beat" --huge none --provider verbs -- --connect "$address" --count 100000000
	client=$!
	await "$log" connected || return 1
	sleep 1
	began=${EPOCHREALTIME/./}
	if [[ $victim == server ]]; then
		kill -9 "$echo"
		wait "$client"
		grep -E 'went away|is gone|acknowledged nothing' "$log.ping" || { cat "$log.ping"; return 1; }
	else
		kill -9 "$client"
		await "$log" 'gone:' 5 || return 1
		kill "$echo" && wait "$echo"
	fi
	echo "after $(((${EPOCHREALTIME/./} - began) / 1000)) ms"
	((${EPOCHREALTIME/./} - began < 3000000))
}

# stands_still HOST: for many more heartbeats than a peer has receives for. The link stays up: over iWARP, a frame without a
# receive would end it.
stands_still()
{
	local beat=50ms:30s echo client status

	echo_at "$1" || return 1
	echo=$server
	start "$log.ping" "$build/apps/plx-ping" -l 1@1 --heartbeat "$beat" --huge none --provider verbs -- --connect "$address" \
		--count 40 --interval 100ms
	client=$!
	await "$log" connected || return 1
	sleep 0.5
	kill -STOP "$echo"
	sleep 1.5
	kill -CONT "$echo"
	wait "$client"
	status=$?
	cat "$log.ping"
	kill "$echo" && wait "$echo" && return $status
}

port_down()
{
	ip link set net0 down
	says 'cannot' ping_it --connect 10.77.0.1:7000 --count 1
	local status=$?
	ip link set net0 up
	return $status
}

no_device()
{
	rdma link delete rxe0
	rdma link delete siw0 2>/dev/null
	says "has no provider 'verbs'" echo_verbs '*:0' && says 'no RDMA device' "$build/apps/plx-echo" -l 0@0 \
		--huge none --require rdma -- --listen '*:0'
}

export_all
# each DEVICE HOST TEST...: all that is looked at on each device.
each()
{
	local device=$1 host=$2

	unit "$@"
	check "$device round trips" 60 bash -c "round_trips $host"
	check "$device asleep" 60 bash -c "asleep $host"
	check "$device netio" 60 bash -c "netio verbs $host"
	check "$device nobody listens" 20 bash -c "nobody_listens $host"
	check "$device kill -9 server" 40 bash -c "killed $host server"
	check "$device kill -9 client" 40 bash -c "killed $host client"
	check "$device stands still" 40 bash -c "stands_still $host"
}

# What is the same on all devices.
once()
{
	check 'every address' 60 bash -c "spread_from_every_address ${hosts[*]}"
	check 'port in use' 20 bash -c 'in_use 10.77.0.1'
	check 'memlock' 20 bash -c 'memlock_too_small 10.77.0.1'
	check 'chosen: verbs' 20 bash -c "chosen verbs 10.77.0.1 'an RDMA device routes to the peer'"
	check 'chosen: tcp' 20 bash -c "chosen tcp 10.77.0.1 'the peer did not answer by RDMA'"
	check 'chosen: shm' 20 bash -c "chosen auto 10.77.0.1 'on this host and offers it'"
}

export_all
hosts=(10.77.0.1)
! has_device siw0 || hosts+=(10.77.1.1)
links='fabric/link fabric/flood fabric/credit fabric/receive fabric/set fabric/spread fabric/handover
	fabric/window fabric/direct netio/buffered'
# Side by side: much of the time goes into the starts of programs, each on one CPU.
# On siw a connection that breaks now and then leaves libfabric with receives that it does not give
# back; the link's memory is given up then, which fabric/hostile and fabric/direct_end take for a leak.
# shellcheck disable=SC2086
each rxe0 "${hosts[0]}" $links fabric/hostile &
if ((${#hosts[@]} > 1)); then
	# shellcheck disable=SC2086
	each siw0 "${hosts[1]}" $links &
fi
once
unit rxe0 "${hosts[0]}" fabric/direct_end
wait
# It counts what happens in a time, and is alone.
check 'sleep is tried out' 60 "$build/tests/unit/unit_fabric_sleep"
check 'port down' 20 bash -c port_down
check 'no device' 20 bash -c no_device
finish
