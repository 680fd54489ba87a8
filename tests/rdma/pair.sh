#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# In the guest, between two devices that a wire joins: messages, loss on the wire, and a peer that is
# stopped.
#   pair.sh BUILD
set -uo pipefail
# shellcheck source=tests/rdma/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# both HOST NETDEV: there and back, over the wire.
both()
{
	local before after size

	echo_at "$1" || return 1
	before=$(cat "/sys/class/net/$2/statistics/tx_packets")
	for size in 0 64 4080 65536; do
		ping_it --connect "$address" --size $size --count 100 --verify || return 1
	done
	after=$(cat "/sys/class/net/$2/statistics/tx_packets")
	end_server
	echo "$((after - before)) packets"
	((after - before > 400))
}

lossy()
{
	echo_at 10.77.1.2 || return 1
	tc qdisc add dev net1a root netem loss 2% && tc qdisc add dev net1b root netem loss 2% || return 1
	ping_it --connect "$address" --size 1000 --count 1500 --verify
	local status=$?
	tc -s qdisc show dev net1a | grep dropped
	tc qdisc del dev net1a root
	tc qdisc del dev net1b root
	end_server
	return $status
}

# The silence of a peer that is stopped is reported.
stopped()
{
	local client echo beat=100ms:500ms

	echo_at "$1" || return 1
	echo=$server
	start "$log.ping" "$build/apps/plx-ping" -l 1@1 --heartbeat "$beat" --huge none --provider verbs -- --connect "$address" --count 100000000
	client=$server
	await "$log" connected || return 1
	sleep 1
	kill -STOP "$echo"
	wait "$client"
	kill -9 "$echo"
	grep 'has said nothing' "$log.ping" || { cat "$log.ping"; return 1; }
}

export_all
rxe()
{
	check 'rxe: over the wire' 60 bash -c 'both 10.77.0.2 net0a'
	check 'rxe: stopped' 40 bash -c 'stopped 10.77.0.2'
}

siw()
{
	check 'siw: over the wire' 60 bash -c 'both 10.77.1.2 net1a'
	check 'siw: 2 % loss' 90 bash -c lossy
	check 'siw: stopped' 40 bash -c 'stopped 10.77.1.2'
}

rxe &
! has_device siw1 || siw &
wait
finish
