#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Run programs in a small guest that has two NUMA nodes with memory, and one without, for hosts that
# have one.
#
# The guest is a kernel and an initramfs made for the occasion: busybox, the programs and the
# libraries they need; no disk, no network, no kernel module. It is emulated, also where /dev/kvm
# is: that boots in 4 s, is the same everywhere, and needs no virtualization inside one.
set -uo pipefail

limit_s=${PLX_GUEST_SECONDS:-120}
accel=${PLX_GUEST_ACCEL:-tcg,thread=multi}
cache=${XDG_CACHE_HOME:-~/.cache}/pollux-guest

# CPU n is on node n. Nodes 0 and 1 have huge pages of 2 MiB, and node 1 one of 1 GiB; node 2 has no
# memory at all. What the kernel does later about pages on the wrong node would hide who put them
# there: numa_balancing is off.
nodes=(-m 3G -smp 3
	-object "memory-backend-ram,id=ram0,size=512M" -numa "node,nodeid=0,cpus=0,memdev=ram0"
	-object "memory-backend-ram,id=ram1,size=2560M" -numa "node,nodeid=1,cpus=1,memdev=ram1"
	-numa "node,nodeid=2,cpus=2")
append='console=ttyS0 loglevel=4 panic=-1 nokaslr mitigations=off numa_balancing=disable
	hugepagesz=1G hugepages=1:1 hugepagesz=2M hugepages=0:32,1:32'

usage()
{
	cat <<-END
	Usage: scripts/numa-vm.sh PROGRAM...
	Runs each program in a guest of two NUMA nodes and a third without memory; status 0 if all ended with 0, 77 if there can
	be no guest here.
	  PLX_GUEST_KERNEL   the kernel; default: a Debian one of /boot, or else downloaded
	  PLX_GUEST_SECONDS  for all (default $limit_s)
	  PLX_GUEST_ACCEL    QEMU's -accel (default $accel)
	The download is kept in $cache.
	END
}

fail()
{
	printf 'numa-vm.sh: %s\n' "$1" >&2
	exit "${2:-1}"
}

# skip REASON: also an error to who wants the guest, hence a status of its own.
skip()
{
	printf 'skipped: %s\n' "$1"
	exit 77
}

work=
vm=
cleanup()
{
	[[ -z $vm ]] || kill "$vm" 2>/dev/null
	[[ -z $work ]] || rm -rf "$work"
}

# Kernel ---------------------------------------------------------------------------------------

# The package's name has the kernel's version in it.
kernel_package()
{
	apt-cache depends linux-image-cloud-amd64 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1
}

# Without a network it is soon known.
hurry=(-o Acquire::Retries=0 -o Acquire::http::Timeout=15 -o Acquire::https::Timeout=15)

download()
{
	local package

	package=$(kernel_package)
	[[ -n $package ]] || return 1
	(cd "$work" && apt-get download -q -o APT::Sandbox::User=root "${hurry[@]}" "$package") >&2
}

# Old package lists name files that are gone.
download_or_update()
{
	local as_root=()

	((EUID == 0)) || as_root=(sudo -n)
	download || { "${as_root[@]}" apt-get update -q "${hurry[@]}" </dev/null >&2 && download; }
}

# Sets kernel.
fetch_kernel()
{
	command -v apt-get >/dev/null || skip 'no kernel for the guest: give one with PLX_GUEST_KERNEL'
	download_or_update || skip 'the package linux-image-cloud-amd64 cannot be had, whose kernel the guest runs:
  look at the network and at /etc/apt/sources.list, or give a kernel with PLX_GUEST_KERNEL'
	dpkg-deb --fsys-tarfile "$work"/linux-image-*.deb |
		tar -x -O --wildcards './boot/vmlinuz-*' >"$work/vmlinuz"
	[[ -s $work/vmlinuz ]] || fail 'there is no kernel in the package linux-image-cloud-amd64'
	# Moved in as a whole, for those who start a guest at the same time.
	mkdir -p "$cache" && mv "$work/vmlinuz" "$cache/.vmlinuz.$$" &&
		mv "$cache/.vmlinuz.$$" "$cache/vmlinuz"
	[[ -r $cache/vmlinuz ]] || fail "cannot write to $cache"
	rm "$work"/linux-image-*.deb
	kernel=$cache/vmlinuz
}

# Sets kernel: the one that is given, or the newest of /boot, or that of an earlier download.
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

# The libraries of a program, and the loader: each by its path.
libraries()
{
	ldd "$1" | grep -o '/[^ ]*'
}

# The serial lines: the kernel's console, what the programs print, the result.
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
		"$program" </dev/null >/dev/ttyS1 2>&1 || status=1
	done
	echo "status $status" >/dev/ttyS2
	poweroff -f
	END
}

# make_initramfs PROGRAM...
make_initramfs()
{
	local root=$work/root busybox program library n=0

	busybox=$(command -v busybox) || skip 'busybox is not there: install busybox-static'
	ldd "$busybox" >/dev/null 2>&1 && skip 'busybox needs libraries: install busybox-static'
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
	(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null) >"$work/initramfs" ||
		fail 'cannot make the initramfs'
}

# Guest ------------------------------------------------------------------------------------------

run_guest()
{
	# In the background, so that a signal to this script is heard at once.
	timeout --foreground --kill-after=5 "$limit_s" qemu-system-x86_64 -nodefaults -no-user-config \
		-display none -no-reboot -machine pc -cpu max -accel "$accel" "${nodes[@]}" \
		-kernel "$kernel" -initrd "$work/initramfs" -append "${append//[$'\n\t']/ }" \
		-serial "file:$work/console" -serial "file:$work/output" -serial "file:$work/status" \
		</dev/null &
	vm=$!
	wait "$vm"
	local status=$?
	vm=

	cat "$work/output"
	case $(cat "$work/status") in
	'status 0') return 0 ;;
	'status '*) return 1 ;;
	esac
	tail -n 20 "$work/console" >&2
	((status != 124 && status != 137)) ||
		fail "the guest was not done after $limit_s s; its console's end is above"
	fail "the guest died (QEMU's status: $status); its console's end is above"
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

[[ $(uname -m) == x86_64 ]] || skip "the guest is an x86-64 one, and runs this host's programs"
command -v qemu-system-x86_64 >/dev/null || skip 'QEMU is not there: install qemu-system-x86'
trap cleanup EXIT
trap 'exit 130' INT TERM HUP
work=$(mktemp -d) || exit 1
find_kernel
make_initramfs "$@"
run_guest
