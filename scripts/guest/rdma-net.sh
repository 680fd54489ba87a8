#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# In the guest of guest.sh: creates network interfaces with RDMA devices on them.
#   rdma-net.sh loop   rxe0 on net0 (10.77.0.1), siw0 on net1 (10.77.1.1)
#   rdma-net.sh pair   rxe0 and rxe1 on net0a and net0b (10.77.0.1 and .2), siw0 and siw1 on net1a and
#                      net1b (10.77.1.1 and .2); a wire joins each pair
# siw is omitted if its module is not loaded.
set -uo pipefail

# With an MTU of 9000 rxe has its largest path MTU, 4096 bytes. libfabric's verbs provider skips lo.
mtu=9000

# loop KIND NUMBER
loop()
{
	ip link add "net$2" mtu $mtu type dummy &&
		ip address add "10.77.$2.1/24" dev "net$2" &&
		ip link set "net$2" up &&
		rdma link add "${1}0" type "$1" netdev "net$2"
}

# through DEVICE OWN FAR: packets to FAR leave by DEVICE; packets that arrive on it for OWN are local.
through()
{
	ip rule add pref 10 iif "$1" to "$2" lookup local &&
		ip route add "$3/32" dev "$1" src "$2" table 77
}

# accept DEVICE: accept packets from this host's addresses; answer ARP only for its own address.
accept()
{
	local conf=/proc/sys/net/ipv4/conf/$1

	echo 0 >"$conf/rp_filter"
	echo 1 >"$conf/accept_local"
	echo 1 >"$conf/arp_ignore"
	echo 2 >"$conf/arp_announce"
}

# pair KIND NUMBER
pair()
{
	local left=net${2}a right=net${2}b network=10.77.$2

	ip link add "$left" mtu $mtu type veth peer name "$right" mtu $mtu || return 1
	accept "$left"
	accept "$right"
	ip address add "$network.1/32" dev "$left" && ip address add "$network.2/32" dev "$right" &&
		ip link set "$left" up && ip link set "$right" up &&
		through "$left" "$network.1" "$network.2" &&
		through "$right" "$network.2" "$network.1" &&
		ip rule add pref 20 to "$network.0/30" lookup 77 &&
		rdma link add "${1}0" type "$1" netdev "$left" &&
		rdma link add "${1}1" type "$1" netdev "$right"
}

# A new device reads DOWN briefly.
wait_active()
{
	local turn

	for ((turn = 0; turn < 50; turn++)); do
		rdma link | grep -qv 'state ACTIVE' || return 0
		sleep 0.1
	done
	return 1
}

kinds=(rxe)
[[ ! -d /sys/module/siw ]] || kinds+=(siw)
status=0

if [[ $1 == pair ]]; then
	accept all
	# Both ends of a wire are in one network namespace, because rxe supports no other. The kernel would treat the far
	# address as local and send nothing over the wire. So the local table comes after table 77, which routes each
	# address to the other end; only packets that arrived there are local.
	ip rule add pref 30 lookup local && ip rule del pref 0 || status=1
fi
for number in "${!kinds[@]}"; do
	if [[ $1 == pair ]]; then pair "${kinds[number]}" "$number"; else loop "${kinds[number]}" "$number"; fi || status=1
done
wait_active || status=1
((status == 0)) || echo 'rdma-net.sh: not all devices are there' >&2
exit $status
