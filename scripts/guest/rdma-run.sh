#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Process 1 of guest.sh's guest: creates the devices, runs the command, reports how it ended.
guest=/run/guest
stdout=$(echo /dev/vport*p1)
stderr=$(echo /dev/vport*p2)
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# end STATUS
end()
{
	stty -F /dev/ttyS1 raw
	echo "status $1" >/dev/ttyS1
	"$guest/busybox" sync
	"$guest/busybox" poweroff -f
}

# Without a line on the second serial line, the host assumes that the guest crashed.
die()
{
	echo "rdma-run.sh: $1" >/dev/console
	"$guest/busybox" sleep 1
	"$guest/busybox" reboot -f
}

# Only one program at a time can open a port, so a pipe serves everything that the command starts. It runs in its own
# session: a signal to its process group does not reach this script.
run_command()
{
	local status turn

	mkfifo "$guest/stdout" "$guest/stderr"
	cat "$guest/stdout" >"$stdout" &
	cat "$guest/stderr" >"$stderr" &
	setsid env -i bash "$guest/command" </dev/null >"$guest/stdout" 2>"$guest/stderr"
	status=$?
	# A leftover process of the command would keep a pipe open forever.
	for ((turn = 0; turn < 100; turn++)); do
		[[ -n $(jobs -r) ]] || break
		sleep 0.05
	done
	return $status
}

ulimit -l unlimited
ulimit -n 65536
"$guest/busybox" hostname localhost
# Built for this kernel, but it may not load: the guest works without it.
[[ ! -e $guest/siw.ko ]] || "$guest/busybox" insmod "$guest/siw.ko" 2>"$stderr"
ip link set lo up 2>/dev/console || die 'lo stays down; see above'
# plx_net is in the environment, like every parameter unknown to the kernel.
[[ ${plx_net-} == numa ]] || bash "$guest/rdma-net.sh" "${plx_net-}" 2>/dev/console || die 'no network; see above'
run_command
end $?
