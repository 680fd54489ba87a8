#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Run programs in a small guest with two NUMA nodes that have memory and one that has none, for hosts with a single
# node.
#
# The guest is a kernel and a temporary initramfs: busybox, the programs and the libraries they need; no disk, no
# network, no kernel module. It is emulated even if /dev/kvm exists: it boots in 4 s, is the same everywhere, and needs
# no nested virtualization.
set -uo pipefail
# shellcheck source=scripts/guest.sh
. "$(dirname "${BASH_SOURCE[0]}")/guest.sh"

# CPU n is on node n. Nodes 0 and 1 have huge pages of 2 MiB, and node 1 one of 1 GiB; node 2 has no memory.
# numa_balancing is off, because migrating misplaced pages would hide who placed them.
nodes=(-m 3G -smp 3
	-object "memory-backend-ram,id=ram0,size=512M" -numa "node,nodeid=0,cpus=0,memdev=ram0"
	-object "memory-backend-ram,id=ram1,size=2560M" -numa "node,nodeid=1,cpus=1,memdev=ram1"
	-numa "node,nodeid=2,cpus=2")
parameters='numa_balancing=disable hugepagesz=1G hugepages=1:1 hugepagesz=2M hugepages=0:32,1:32'

usage()
{
	cat <<-END
	Usage: scripts/numa-vm.sh PROGRAM...
	Run each program in a guest with two NUMA nodes and a third without memory. The status is 0 if all programs returned 0,
	77 if no guest can run here, 124 after the time limit, 125 if the guest died.
	  PLX_GUEST_KERNEL   the kernel; default: a Debian kernel in /boot, or downloaded
	  PLX_GUEST_SECONDS  time limit for all (default $limit_s)
	  PLX_GUEST_ACCEL    QEMU's -accel (default $accel)
	The download is kept in $cache.
	END
}

# Kernel ---------------------------------------------------------------------------------------

# Sets kernel.
fetch_kernel()
{
	command -v apt-get >/dev/null || skip 'no kernel for the guest: give one with PLX_GUEST_KERNEL'
	fetch linux-image-cloud-amd64 || skip 'the package linux-image-cloud-amd64 cannot be had, whose kernel the guest runs:
  look at the network and at /etc/apt/sources.list, or give a kernel with PLX_GUEST_KERNEL'
	dpkg-deb --fsys-tarfile "$work"/linux-image-*.deb |
		tar -x -O --wildcards './boot/vmlinuz-*' >"$work/vmlinuz"
	[[ -s $work/vmlinuz ]] || fail 'there is no kernel in the package linux-image-cloud-amd64'
	# Renamed into place, in case several guests start at the same time.
	mkdir -p "$cache" && mv "$work/vmlinuz" "$cache/.vmlinuz.$$" &&
		mv "$cache/.vmlinuz.$$" "$cache/vmlinuz"
	[[ -r $cache/vmlinuz ]] || fail "cannot write to $cache"
	rm "$work"/linux-image-*.deb
	kernel=$cache/vmlinuz
}

# Sets kernel: the given one, else the newest in /boot, else an earlier download.
find_kernel()
{
	local candidate

	kernel=${PLX_GUEST_KERNEL-}
	if [[ -n $kernel ]]; then
		[[ -r $kernel ]] || fail "PLX_GUEST_KERNEL=$kernel: no such file" 2
		return
	fi
	for candidate in "$cache/vmlinuz" /boot/vmlinuz-*-amd64; do
		[[ ! -r $candidate ]] || kernel=$candidate
	done
	[[ -n $kernel ]] || fetch_kernel
}

# Initramfs --------------------------------------------------------------------------------------

# A program's libraries and loader, by path.
libraries()
{
	ldd "$1" | grep -o '/[^ ]*'
}

# The serial lines: the kernel's console, the result, the programs' output.
write_init()
{
	cat <<-'END'
	#!/bin/busybox sh
	export PATH=/bin PLX_GUEST_NODES=2 PLX_GUEST_BARE_NODE=2
	/bin/busybox --install -s /bin
	mount -t proc proc /proc
	mount -t sysfs sys /sys
	mount -t devtmpfs dev /dev
	mkdir /dev/shm
	mount -t tmpfs shm /dev/shm
	stty -F /dev/ttyS1 raw
	stty -F /dev/ttyS2 raw
	status=0
	cd /tmp
	for program in /programs/*; do
		"$program" </dev/null >/dev/ttyS2 2>&1 || status=1
	done
	echo "status $status" >/dev/ttyS1
	poweroff -f
	END
}

# make_initramfs PROGRAM...
make_initramfs()
{
	local root=$work/root program library n=0

	mkdir -p "$root"/{bin,proc,sys,dev,tmp,programs}
	cp "$busybox" "$root/bin/busybox"
	write_init >"$root/init"
	chmod 755 "$root/init"
	for program in "$@"; do
		[[ -x $program ]] || fail "$program: no such program; build it first" 2
		cp "$program" "$root/programs/$((n++))-${program##*/}"
		while read -r library; do
			mkdir -p "$root${library%/*}"
			cp -L "$library" "$root$library"
		done < <(libraries "$program")
	done
	pack_initramfs "$root"
}

# Guest ------------------------------------------------------------------------------------------

run_guest()
{
	start_guest "$kernel" "$parameters" -machine pc "${nodes[@]}" -serial "file:$work/output"
	wait_guest
	cat "$work/output" 2>/dev/null
	check_guest
	return "$guest_status"
}

case ${1-} in
-h | --help)
	usage
	exit 0
	;;
'' | -*)
	usage >&2
	fail "'${1-}': give the programs to run" 2
	;;
esac

begin
find_kernel
make_initramfs "$@"
run_guest
