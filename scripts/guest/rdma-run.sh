#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Process 1 of rdma-vm.sh's guest: makes the devices, runs the command, says how it ended.
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

# Not said on the second serial line, the host takes it for the guest's death.
die()
{
	echo "rdma-run.sh: $1" >/dev/console
	"$guest/busybox" sleep 1
	"$guest/busybox" reboot -f
}

# The host takes a port for open by one program at a time, a pipe is for all that the command starts.
# Its session is its own: a signal to its process group reaches nothing here.
run_command()
{
	local status turn

	mkfifo "$guest/stdout" "$guest/stderr"
	cat "$guest/stdout" >"$stdout" &
	cat "$guest/stderr" >"$stderr" &
	setsid env -i bash "$guest/command" </dev/null >"$guest/stdout" 2>"$guest/stderr"
	status=$?
	# A program that the command has left behind would hold a pipe open for ever.
	for ((turn = 0; turn < 100; turn++)); do
		[[ -n $(jobs -r) ]] || break
		sleep 0.05
	done
	return $status
}

ulimit -l unlimited
ulimit -n 65536
"$guest/busybox" hostname localhost
# Built for this kernel, perhaps not quite: the guest is of use without.
[[ ! -e $guest/siw.ko ]] || "$guest/busybox" insmod "$guest/siw.ko" 2>"$stderr"
# plx_net is in the environment, as is every parameter that the kernel does not know.
bash "$guest/rdma-net.sh" "${plx_net-}" 2>/dev/console || die 'no network; see above'
run_command
end $?
