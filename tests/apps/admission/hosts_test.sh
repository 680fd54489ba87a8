#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Nine hundred clients on each of three other hosts, which wait for a publisher, all get in at the default rate, 1 000 a
# second. The hosts are network namespaces, which end with their processes.
#
#     hosts_test.sh PROGRAMS
set -uo pipefail
# shellcheck source=tests/apps/admission/admission.sh
. "$(dirname "${BASH_SOURCE[0]}")/admission.sh"

within=${PLX_TEST_SOAK:+8s} # on a quiet host

# start_host H: a namespace with an address in the network of the server; `prefix` runs a command there.
start_host()
{
	start "host$1" unshare -n "$BASH" -c 'echo ready; exec sleep 120'
	prefix=(nsenter -t "$pid" -n)
	wait_until "grep -q ready '$temp/host$1'"
	ip link add "host$1" type veth peer name eth0 netns "$pid" && ip link set "host$1" master hosts up &&
		"${prefix[@]}" ip link set lo up && "${prefix[@]}" ip address add "10.77.0.$((10 + $1))/24" dev eth0 &&
		"${prefix[@]}" ip link set eth0 up
}

ip link add hosts type bridge && ip address add 10.77.0.1/24 dev hosts && ip link set hosts up || exit 77
for h in 1 2 3; do
	start_host $h || exit 77
	for n in $((3 * h - 2)) $((3 * h - 1)) $((3 * h)); do
		start_crowd $n subscribers 10.77.0.1:7000 --count 300
	done
done
crowds_wait 9
start_server publisher 10.77.0.1:7000 --expect 2700 --within "${within:-14s}"
all_open 'three hosts' 2700
finish
