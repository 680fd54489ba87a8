#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#| Run a command as root in a small guest that sees this host's files at their paths: with software RDMA devices, rxe
#| (RoCE) and siw (iWARP), for hosts that have no RDMA card and cannot load a module; or with three NUMA nodes.
#| Usage: scripts/guest.sh [OPTION...] COMMAND [ARGUMENT...]
#| Output, errors and status are the command's; it has no input and no network, and what it writes to files is lost.
#| The status is 77 if no guest can run here, 124 after the time limit, 125 if the guest died.
#|   --net loop     an RDMA device of each kind that reaches itself: rxe0 10.77.0.1, siw0 10.77.1.1 (default)
#|   --net pair     two of each, connected: rxe0 and rxe1 10.77.0.1 and .2, siw0 and siw1 10.77.1.1 and .2
#|   --numa         no RDMA device, but two NUMA nodes that have memory and a third that has none
#|   --seconds N    time limit for boot and command (default 120)
#| The command gets PATH HOME LANG LD_LIBRARY_PATH CI FI_* PLX_* RDMAV_* and the sanitizers' options from the environment.
#| It does not see this host's /dev, /proc, /run and /sys. The kernel is Debian's; it, its modules and siw are kept in
#| ~/.cache/pollux-guest.
set -uo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

PATH=$PATH:/usr/sbin:/sbin
cache=${XDG_CACHE_HOME:-~/.cache}/pollux-guest

# The guest's clock is the TSC, which programs read without a system call.
parameters='console=ttyS0 loglevel=4 panic=-1 nokaslr mitigations=off tsc=reliable no_timer_check'
rdma=(-machine "q35,hpet=off" -smp 2 -m 2G)
# CPU n is on node n. Nodes 0 and 1 have huge pages of 2 MiB, and node 1 one of 1 GiB; node 2 has no memory.
# numa_balancing is off, because migrating misplaced pages would hide who placed them.
numa=(-machine pc -m 3G -smp 3
	-object "memory-backend-ram,id=ram0,size=512M" -numa "node,nodeid=0,cpus=0,memdev=ram0"
	-object "memory-backend-ram,id=ram1,size=2560M" -numa "node,nodeid=1,cpus=1,memdev=ram1"
	-numa "node,nodeid=2,cpus=2")
numa_parameters='numa_balancing=disable hugepagesz=1G hugepages=1:1 hugepagesz=2M hugepages=0:32,1:32'

# 9p and overlay for the host's files; rxe needs crc32_generic, siw needs libcrc32c; sch_netem is for commands that
# drop packets.
modules='virtio_pci 9pnet_virtio 9p overlay dummy veth sch_netem crc32_generic libcrc32c rdma_rxe rdma_ucm'

# skip REASON: an error for callers that need the guest, hence a separate status.
skip()
{
	printf 'skipped: %s\n' "$1"
	exit 77
}

work='' # a folder that exists until the script ends
job=''  # the running guest

cleanup()
{
	# Some senders signal twice.
	trap '' INT TERM HUP
	[[ -z $job ]] || { kill "$job"; wait "$job"; } 2>/dev/null
	[[ -z $work ]] || rm -rf "$work"
}

# Kernel and modules -------------------------------------------------------------------------------

# Fails soon without a network.
hurry=(-o Acquire::Retries=0 -o Acquire::http::Timeout=15 -o Acquire::https::Timeout=15)

# depends PACKAGE PATTERN: its dependencies with such names.
depends()
{
	apt-cache depends "$1" 2>/dev/null | sed -nE "s/^ *Depends: ($2)\$/\1/p"
}

# download PACKAGE...: as .deb to $work; of a metapackage, the kernel that it stands for.
download()
{
	local package packages=()

	for package in "$@"; do
		packages+=("$(depends "$package" 'linux-image-[0-9].*' | grep . || echo "$package")")
	done
	env -C "$work" apt-get download -q -o APT::Sandbox::User=root "${hurry[@]}" "${packages[@]}" >&2
}

# fetch PACKAGE...: unpack them in $work/image. Outdated package lists name files that no longer exist.
fetch()
{
	local as_root=() package

	((EUID == 0)) || as_root=(sudo -n)
	download "$@" || { "${as_root[@]}" apt-get update -q "${hurry[@]}" >&2 && download "$@"; } || return 1
	for package in "$work"/*.deb; do
		dpkg-deb -x "$package" "$work/image" && rm "$package" || return 1
	done
}

# copy_modules VERSION FOLDER: copy them with their dependencies, named in loading order.
copy_modules()
{
	local insmods='' module file n=100

	for module in $modules; do
		insmods+=$(modprobe -C /dev/null -d "$work/image" -S "$1" --show-depends "$module")$'\n' || return 1
	done
	while read -r file; do
		if [[ $file == *.xz ]]; then xz -dc "$file"; else cat "$file"; fi >"$2/$((n++)).ko" || return 1
	done < <(awk '$1 == "insmod" && !seen[$2]++ { print $2 }' <<<"$insmods")
}

# Sets store: the folder of the newest kernel that an earlier run kept, or else of a downloaded one. It is renamed
# into place when complete.
find_kernel()
{
	local kernel version new=$cache/.new

	store=$(printf '%s\n' "$cache"/rdma-* | sort -V | tail -n 1)
	[[ ! -d $store ]] || return 0
	fetch linux-image-amd64 || skip 'cannot download linux-image-amd64, the kernel of the guest:
  look at the network and at /etc/apt/sources.list'
	kernel=$(printf '%s\n' "$work"/image/boot/vmlinuz-*) version=${kernel##*/vmlinuz-}
	depmod -b "$work/image" "$version"
	rm -rf "$new"
	{ mkdir -p "$new/modules" && cp "$kernel" "$new/kernel" && echo "$version" >"$new/version"; } ||
		die "cannot write to $cache"
	copy_modules "$version" "$new/modules" || die "the kernel $version lacks modules that the guest needs; see above"
	store=$cache/rdma-$version
	mv -T "$new" "$store" || die "cannot write to $cache"
}

# make_siw VERSION: the module that Debian omits. The headers are not installed, so their Makefile gets their path.
make_siw()
{
	local from=$work/image/usr/src siw=drivers/infiniband/sw/siw release needed

	release=linux-source-$(cut -d . -f 1,2 <<<"${1%%-*}")
	fetch "$release" "linux-headers-$1" || return
	mapfile -t needed < <(depends "linux-headers-$1" 'linux-(headers|kbuild)-.*')
	fetch "${needed[@]}" &&
		tar -x -C "$work" --strip-components=1 -f "$from/$release.tar.xz" "$release/$siw" &&
		sed -i "s|/usr/src|$from|" "$from/linux-headers-$1/Makefile" &&
		make -s -j2 -C "$from/linux-headers-$1" CONFIG_RDMA_SIW=m "M=$work/$siw" modules &&
		strip -g -o "$cache/.siw.ko" "$work/$siw/siw.ko" && mv "$cache/.siw.ko" "$store/siw.ko"
}

# Sets store, which has everything that a guest needs. One script at a time, so that nothing is made twice. The build of
# siw is not retried once it failed with its sources there: the guest works without it.
prepare()
{
	local lock

	{ mkdir -p "$cache" && exec {lock}>"$cache/.lock"; } || die "cannot write to $cache"
	flock "$lock" &
	wait $! # unlike flock, this handles signals at once
	find_kernel
	if [[ $net != numa && ! -e $store/siw.ko ]]; then
		if [[ -e $store/siw.log ]]; then
			echo "guest.sh: no siw: see $store/siw.log, and remove it to try again" >&2
		elif ! make_siw "$(<"$store/version")" >"$work/siw.log" 2>&1; then
			tail -n 5 "$work/siw.log" >&2
			echo 'guest.sh: no siw: see above' >&2
			[[ ! -d $work/drivers ]] || mv "$work/siw.log" "$store"
		fi
	fi
	exec {lock}>&-
}

# Guest ------------------------------------------------------------------------------------------

# write_command COMMAND [ARGUMENT...]: a script that runs it in its folder and environment.
write_command()
{
	printf 'cd -- %q || exit 125\n' "$folder"
	export -p | grep -E '^declare -x (PATH|HOME|LANG|LD_LIBRARY_PATH|CI|(A|L|UB|T)SAN_OPTIONS|(FI|PLX|RDMAV)_[A-Z0-9_]*)='
	printf 'exec --'
	printf ' %q' "$@"
}

# make_initramfs COMMAND [ARGUMENT...]
make_initramfs()
{
	local root=$work/root

	mkdir -p "$root"/{bin,proc,sys,dev,guest}
	cp "$busybox" "$root/bin/busybox"
	cp -r "$store/modules" "$root/modules"
	cp scripts/guest/init.sh "$root/init"
	chmod 755 "$root/init"
	cp scripts/guest/run.sh "$root/guest"
	[[ $net == numa ]] || cp "$store/siw.ko" "$root/guest" 2>/dev/null
	write_command "$@" >"$root/guest/command"
	(cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >"$work/initramfs" ||
		die 'cannot make the initramfs'
}

# run_guest: boot. The guest writes the command's output and at its end its status to files in $work/out.
run_guest()
{
	local out=$work/out tails=() options=("${rdma[@]}") more=hugepages=64 began=$SECONDS ended
	local share=security_model=none,multidevs=remap

	[[ $net != numa ]] || options=("${numa[@]}") more=$numa_parameters
	mkdir "$out"
	touch "$out/stdout" "$out/stderr"
	# It is emulated even if /dev/kvm exists: it is the same everywhere, and needs no nested virtualization. It ends
	# with this script, even if that cannot clean up.
	setpriv --pdeathsig TERM \
		timeout --foreground --kill-after=5 "$limit_s" qemu-system-x86_64 -nodefaults -no-user-config \
		-display none -no-reboot -cpu max -accel tcg,thread=multi -kernel "$store/kernel" \
		-initrd "$work/initramfs" -append "$parameters $more plx_net=$net" \
		-serial "file:$work/console" "${options[@]}" -virtfs "local,path=/,mount_tag=host,readonly=on,$share" \
		-virtfs "local,path=$out,mount_tag=out,$share" </dev/null 2>"$work/qemu" &
	job=$!
	tail -f -s 0.1 -c +1 --pid="$job" "$out/stdout" &
	tails+=($!)
	tail -f -s 0.1 -c +1 --pid="$job" "$out/stderr" >&2 &
	tails+=($!)
	wait "$job"
	ended=$?
	job=
	wait "${tails[@]}"
	[[ ! -s $out/status ]] || return "$(<"$out/status")"
	tail -n 50 "$work/console" >&2 2>/dev/null
	if ((ended == 124 || (ended == 137 && SECONDS - began >= limit_s))); then
		die "the guest was not done after $limit_s s; its console's end is above" 124
	fi
	cat "$work/qemu" >&2
	die "the guest died (QEMU's status: $ended); its console's end is above" 125
}

net='' limit_s=120
while (($#)); do
	case $1 in
	--net)
		[[ ${2-} =~ ^(loop|pair)$ ]] || die "--net ${2-}: give loop or pair" 2
		net+=$2
		shift
		;;
	--numa) net+=numa ;;
	--seconds)
		[[ ${2-} =~ ^[1-9][0-9]*$ ]] || die "--seconds ${2-}: give a number from 1 on" 2
		limit_s=$2
		shift
		;;
	--)
		shift
		break
		;;
	-*) other_option "$1" ;;
	*) break ;;
	esac
	shift
done
net=${net:-loop}
[[ $net =~ ^(loop|pair|numa)$ ]] || die '--numa, --net loop, --net pair: give one of them' 2
(($#)) || die 'give a command to run' 2
[[ $net != numa ]] || export PLX_GUEST_NODES=2 PLX_GUEST_BARE_NODE=2 # for tests/guest

[[ $(uname -m) == x86_64 ]] || skip "the guest is an x86-64 one, and runs this host's programs"
for tool in qemu-system-x86_64:qemu-system-x86 modprobe:kmod rdma:iproute2 xz:xz-utils busybox:busybox-static; do
	command -v "${tool%:*}" >/dev/null || skip "${tool%:*} is missing: install ${tool#*:}"
done
busybox=$(command -v busybox)
! ldd "$busybox" >/dev/null 2>&1 || skip 'busybox needs libraries: install busybox-static'
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
work=$(mktemp -d) || exit 1
prepare
make_initramfs "$@"
run_guest
