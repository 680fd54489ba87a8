#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Process 1 of guest.sh's guest: creates RDMA devices, runs the command, reports how it ended. The devices of $plx_net:
#   loop   rxe0 on net0 (10.77.0.1), siw0 on net1 (10.77.1.1)
#   pair   rxe0 and rxe1 on net0a and net0b (10.77.0.1 and .2), siw0 and siw1 on net1a and net1b (10.77.1.1
#          and .2); a wire joins each pair
#   numa   none
# siw is omitted if its module does not load.
set -uo pipefail

guest=/run/guest
out=$guest/out
net=${plx_net-} # in the environment, like every parameter unknown to the kernel
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# Without a status, the host assumes that the guest crashed.
die()
{
	echo "run.sh: $1" >/dev/console
	"$guest/busybox" sleep 1
	"$guest/busybox" reboot -f
}

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

# accept DEVICE: accept packets from this host's addresses; answer ARP only for its own address.
accept()
{
	local conf=/proc/sys/net/ipv4/conf/$1

	echo 0 >"$conf/rp_filter"
	echo 1 >"$conf/accept_local"
	echo 1 >"$conf/arp_ignore"
	echo 2 >"$conf/arp_announce"
}

# end DEVICE OWN FAR: one end of a wire. Packets to FAR leave by it; packets that arrive on it for OWN are local.
end()
{
	accept "$1"
	ip address add "$2" dev "$1" && ip link set "$1" up &&
		ip rule add pref 10 iif "$1" to "$2" lookup local &&
		ip route add "$3/32" dev "$1" src "$2" table 77
}

# pair KIND NUMBER
pair()
{
	local left=net${2}a right=net${2}b network=10.77.$2

	ip link add "$left" mtu $mtu type veth peer name "$right" mtu $mtu &&
		ip rule add pref 20 to "$network.0/30" lookup 77 &&
		end "$left" "$network.1" "$network.2" && end "$right" "$network.2" "$network.1" &&
		rdma link add "${1}0" type "$1" netdev "$left" && rdma link add "${1}1" type "$1" netdev "$right"
}

# Fails unless all devices are there. A new one reads DOWN briefly.
make_devices()
{
	local turn

	if [[ $net == pair ]]; then
		accept all
		# Both ends of a wire are in one network namespace, because rxe supports no other. The kernel would treat the
		# far address as local and send nothing over the wire. So the local table comes after table 77, which routes
		# each address to the other end; only packets that arrived there are local.
		ip rule add pref 30 lookup local && ip rule del pref 0 || return 1
	fi
	"$net" rxe 0 || return 1
	[[ ! -d /sys/module/siw ]] || "$net" siw 1 || return 1
	for ((turn = 0; turn < 50; turn++)); do
		rdma link | grep -qv 'state ACTIVE' || return 0
		sleep 0.1
	done
	return 1
}

ulimit -l unlimited
ulimit -n 65536
"$guest/busybox" hostname localhost
# Built for this kernel, but it may not load: the guest works without it.
[[ ! -e $guest/siw.ko ]] || "$guest/busybox" insmod "$guest/siw.ko" 2>>"$out/stderr"
ip link set lo up 2>/dev/console || die 'lo stays down; see above'
[[ $net == numa ]] || make_devices 2>/dev/console || die 'not all devices are there; see above'
# In its own session: a signal to its process group does not reach this script.
setsid env -i bash "$guest/command" </dev/null >>"$out/stdout" 2>>"$out/stderr"
echo $? >"$out/status"
"$guest/busybox" sync
"$guest/busybox" poweroff -f
