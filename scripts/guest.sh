#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#| Run a command as root in a small guest that sees this host's files at their paths: with software RDMA devices, rxe
#| (RoCE) and siw (iWARP), for hosts that have no RDMA card and cannot load a module; or with three NUMA nodes.
#| Usage: scripts/guest.sh [OPTION...] [--] COMMAND [ARGUMENT...]
#|        scripts/guest.sh [--no-siw] --prepare
#| Output, errors and status are the command's; it has no input and no network. The status is 77 if no guest can run
#| here, 124 after the time limit, 125 if the guest died.
#|   --net loop     an RDMA device of each kind that reaches itself: rxe0 10.77.0.1, siw0 10.77.1.1 (default)
#|   --net pair     two of each, connected: rxe0 and rxe1 10.77.0.1 and .2, siw0 and siw1 10.77.1.1 and .2
#|   --numa         no RDMA device, but two NUMA nodes that have memory and a third that has none
#|   --seconds N    time limit for boot and command (default 120)
#|   -w, --write DIR
#|                  the command may write there; what it writes elsewhere is lost with the guest
#|   --no-siw       only rxe
#|   --prepare      only fetch and build what the guest needs; tries siw again
#|   PLX_GUEST_SECONDS  as --seconds
#|   PLX_GUEST_ACCEL    QEMU's -accel (default tcg,thread=multi)
#| The command gets PATH HOME LANG LD_LIBRARY_PATH CI FI_* PLX_* RDMAV_* and the sanitizers' options from the environment.
#| It does not see this host's /dev, /proc, /run and /sys. The kernel is a Debian one, from /boot or downloaded; it,
#| modules and siw are kept in ~/.cache/pollux-guest.
set -uo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

inside=scripts/guest
PATH=$PATH:/usr/sbin:/sbin
# It is emulated even if /dev/kvm exists: it is the same everywhere, and needs no nested virtualization.
accel=${PLX_GUEST_ACCEL:-tcg,thread=multi}
limit_s=${PLX_GUEST_SECONDS:-120}
cache=${XDG_CACHE_HOME:-~/.cache}/pollux-guest

# The guest's clock is the TSC, which programs read without a system call.
parameters='tsc=reliable no_timer_check'
rdma=(-machine "q35,hpet=off" -smp 2 -m 2G)
# CPU n is on node n. Nodes 0 and 1 have huge pages of 2 MiB, and node 1 one of 1 GiB; node 2 has no memory.
# numa_balancing is off, because migrating misplaced pages would hide who placed them.
numa=(-machine pc -m 3G -smp 3
	-object "memory-backend-ram,id=ram0,size=512M" -numa "node,nodeid=0,cpus=0,memdev=ram0"
	-object "memory-backend-ram,id=ram1,size=2560M" -numa "node,nodeid=1,cpus=1,memdev=ram1"
	-numa "node,nodeid=2,cpus=2")
numa_parameters='numa_balancing=disable hugepagesz=1G hugepages=1:1 hugepagesz=2M hugepages=0:32,1:32'

# 9p and overlay for the host's files, virtio_console for the command's output; rxe needs crc32_generic, siw needs
# libcrc32c; sch_netem is for commands that drop packets.
modules='virtio_pci 9pnet_virtio 9p overlay virtio_console dummy veth sch_netem crc32_generic libcrc32c
	rdma_rxe rdma_ucm'

# Environment variables passed to the command.
environment='@(PATH|HOME|LANG|LD_LIBRARY_PATH|CI|@(A|L|UB|T)SAN_OPTIONS|@(FI|PLX|RDMAV)_*)'

net=''
writable=()
siw_wanted=1
prepare_only=0

# skip REASON: an error for callers that need the guest, hence a separate status.
skip()
{
	printf 'skipped: %s\n' "$1"
	exit 77
}

# For signal handlers: a folder, and the program that the script waits for, or -N, its process group.
work=
job=

# Kill the whole job, which may have started other programs.
end_job()
{
	local turn

	kill -- "$job" 2>/dev/null
	wait "${job#-}" 2>/dev/null
	for ((turn = 0; turn < 50; turn++)); do
		kill -0 -- "$job" 2>/dev/null || break
		sleep 0.1
	done
}

cleanup()
{
	# Some senders signal twice.
	trap '' INT TERM HUP
	[[ -z $job ]] || end_job
	[[ -z $work ]] || rm -rf "$work"
}

# Sets work, a folder that exists until the script ends.
begin()
{
	local tool

	[[ $limit_s =~ ^[1-9][0-9]*$ ]] ||
		die "PLX_GUEST_SECONDS=$limit_s: give a number from 1 on" 2
	[[ $(uname -m) == x86_64 ]] || skip "the guest is an x86-64 one, and runs this host's programs"
	for tool in qemu-system-x86_64:qemu-system-x86 modprobe:kmod rdma:iproute2 xz:xz-utils busybox:busybox-static; do
		command -v "${tool%:*}" >/dev/null || skip "${tool%:*} is not there: install ${tool#*:}"
	done
	busybox=$(command -v busybox)
	! ldd "$busybox" >/dev/null 2>&1 || skip 'busybox needs libraries: install busybox-static'
	trap cleanup EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	work=$(mktemp -d) || exit 1
}

# await COMMAND...: in the background, so that this script handles signals at once.
await()
{
	local status

	set -m
	"$@" </dev/null &
	job=-$!
	set +m
	wait "${job#-}"
	status=$?
	job=
	return $status
}

# Packages ---------------------------------------------------------------------------------------

# Fails soon without a network.
hurry=(-o Acquire::Retries=0 -o Acquire::http::Timeout=15 -o Acquire::https::Timeout=15)

# download PACKAGE...: of a metapackage, the kernel that it stands for.
download()
{
	local package real packages=()

	for package in "$@"; do
		real=$(apt-cache depends "$package" 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1)
		packages+=("${real:-$package}")
	done
	await env -C "$work" apt-get download -q -o APT::Sandbox::User=root "${hurry[@]}" "${packages[@]}" >&2
}

# fetch PACKAGE...: as .deb to $work. Outdated package lists name files that no longer exist.
fetch()
{
	local as_root=()

	((EUID == 0)) || as_root=(sudo -n)
	command -v apt-get >/dev/null || return 1
	download "$@" || { await "${as_root[@]}" apt-get update -q "${hurry[@]}" >&2 && download "$@"; }
}

# Kernel ---------------------------------------------------------------------------------------

# copy_module FILE COPY
copy_module()
{
	case $1 in
	*.xz) xz -dc "$1" >"$2" ;;
	*.zst) zstd -dc "$1" >"$2" ;;
	*) cp "$1" "$2" ;;
	esac
}

# copy_modules ROOT VERSION FOLDER: copy them with their dependencies, named in loading order; siw, which Debian omits,
# as siw.ko if available.
copy_modules()
{
	local insmods='' module file n=100

	for module in $modules; do
		insmods+=$(modprobe -C /dev/null -d "$1" -S "$2" --show-depends "$module")$'\n' || return 1
	done
	mkdir "$3/modules"
	while read -r file; do
		copy_module "$file" "$3/modules/$((n++)).ko" || return 1
	done < <(awk '$1 == "insmod" && !seen[$2]++ { print $2 }' <<<"$insmods")
	file=$(modinfo -b "$1" -k "$2" -n siw 2>/dev/null) || return 0
	copy_module "$file" "$3/siw.ko"
}

# has_rxe KERNEL
has_rxe()
{
	local root=${1%/boot/*}

	[[ -r $1 ]] && modinfo -b "${root:-/}" -k "${1##*/vmlinuz-}" -n rdma_rxe >/dev/null 2>&1
}

# keep_kernel KERNEL: fill $store from it atomically, because other scripts may use it at once.
keep_kernel()
{
	local root=${1%/boot/*} version=${1##*/vmlinuz-} new=$cache/.new

	rm -rf "$new"
	mkdir "$new" || die "cannot write to $cache"
	cp "$1" "$new/kernel" || die "cannot write to $cache"
	copy_modules "${root:-/}" "$version" "$new" ||
		die "the kernel $1 has not all the modules that the guest needs; see above"
	echo "$version" >"$new/version"
	mv -T "$new" "$store" || die "cannot write to $cache"
}

# unpack_packages FOLDER: all fetched packages.
unpack_packages()
{
	local package

	mkdir -p "$1"
	for package in "$work"/*.deb; do
		await dpkg-deb -x "$package" "$1" || return 1
		rm "$package"
	done
}

# Sets store: the folder of the newest kernel that an earlier run kept, else of the newest in /boot, else of a
# downloaded one.
find_kernel()
{
	local kernel='' candidate

	store=$(printf '%s\n' "$cache"/rdma-* | sort -V | tail -n 1)
	[[ ! -d $store ]] || return 0
	while read -r candidate; do
		! has_rxe "$candidate" || kernel=$candidate
	done < <(printf '%s\n' /boot/vmlinuz-*-amd64 | sort -V)
	if [[ -z $kernel ]]; then
		fetch linux-image-amd64 || skip 'the package linux-image-amd64 cannot be had, whose kernel the guest runs:
  look at the network and at /etc/apt/sources.list'
		unpack_packages "$work/image"
		kernel=$(printf '%s\n' "$work"/image/boot/vmlinuz-*)
		depmod -b "$work/image" "${kernel##*/vmlinuz-}"
	fi
	store=$cache/rdma-${kernel##*/vmlinuz-}
	keep_kernel "$kernel"
}

# siw --------------------------------------------------------------------------------------------

# fetch_siw VERSION: the driver's source, and the module build files of this kernel, to $work/siw.
fetch_siw()
{
	local needed release

	release=linux-source-$(cut -d . -f 1,2 <<<"${1%%-*}")
	fetch "$release" "linux-headers-$1" || return 1
	mapfile -t needed < <(apt-cache depends "linux-headers-$1" |
		sed -n 's/^ *Depends: \(linux-\(headers\|kbuild\)-.*\)$/\1/p')
	fetch "${needed[@]}" && unpack_packages "$work/siw" || return 1
	await tar -x -C "$work/siw" --strip-components=1 -f "$work/siw/usr/src/$release.tar.xz" \
		"$release/drivers/infiniband/sw/siw"
}

# compile_siw VERSION: to $cache/.siw.ko. The headers are not installed, so their Makefile gets their path.
compile_siw()
{
	local source=$work/siw/drivers/infiniband/sw/siw headers=$work/siw/usr/src/linux-headers-$1

	sed -i "s|/usr/src|$work/siw/usr/src|" "$headers/Makefile" &&
		await make -s -j2 -C "$headers" CONFIG_RDMA_SIW=m "M=$source" modules &&
		strip -g -o "$cache/.siw.ko" "$source/siw.ko"
}

# Makes $store/siw.ko, or continues without siw. A failed build is not retried in each run.
find_siw()
{
	local version why_not

	[[ ! -e $store/siw.ko ]] || return 0
	if ((prepare_only)) || [[ ! -e $store/no-siw ]]; then
		version=$(<"$store/version")
		why_not="it does not compile, see $store/siw.log"
		if ! command -v gcc >/dev/null || ! command -v make >/dev/null; then
			why_not='no compiler to build it with: install build-essential'
		elif ! fetch_siw "$version"; then
			why_not="linux-headers-$version or the kernel's source cannot be had"
		elif compile_siw "$version" >"$store/siw.log" 2>&1; then
			rm -f "$store/no-siw"
			mv "$cache/.siw.ko" "$store/siw.ko"
			return
		fi
		echo "$why_not" >"$store/no-siw"
	fi
	echo "guest.sh: no siw: $(<"$store/no-siw"); scripts/guest.sh --prepare tries again" >&2
}

# Sets store, which has everything that a guest needs. One script at a time, so that nothing is made twice.
prepare()
{
	local lock

	{ mkdir -p "$cache" && exec {lock}>"$cache/.lock"; } || die "cannot write to $cache"
	await flock "$lock"
	find_kernel
	((!siw_wanted)) || find_siw
	exec {lock}>&-
}

# Guest ------------------------------------------------------------------------------------------

# write_command COMMAND [ARGUMENT...]: a script that runs it in its folder and environment.
write_command()
{
	local name

	printf 'cd -- %q || exit 125\n' "$folder"
	for name in $(compgen -e); do
		# shellcheck disable=SC2053
		[[ $name != $environment ]] || printf 'export %s=%q\n' "$name" "${!name}"
	done
	printf 'exec --'
	printf ' %q' "$@"
	echo
}

# make_initramfs COMMAND [ARGUMENT...]
make_initramfs()
{
	local root=$work/root

	mkdir -p "$root"/{bin,proc,sys,dev,guest}
	cp "$busybox" "$root/bin/busybox"
	cp -r "$store/modules" "$root/modules"
	cp "$inside/rdma-init.sh" "$root/init"
	chmod 755 "$root/init"
	cp "$inside"/rdma-{net,run}.sh "$root/guest"
	((!siw_wanted)) || cp "$store/siw.ko" "$root/guest" 2>/dev/null
	printf '%s\n' "${writable[@]}" | sed '/^$/d' >"$root/guest/writable"
	write_command "$@" >"$root/guest/command"
	(cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >"$work/initramfs" ||
		die 'cannot make the initramfs'
}

# Sets shares: QEMU's options for the host's files. A comma in a path must be doubled.
find_shares()
{
	local path n=0 options=security_model=none,multidevs=remap

	shares=(-virtfs "local,path=/,mount_tag=host,readonly=on,$options")
	for path in "${writable[@]}"; do
		shares+=(-virtfs "local,path=${path//,/,,},mount_tag=write$((n++)),$options")
	done
}

# start_guest PARAMETERS QEMU-OPTION...: boot. The first serial line is the console; on the second the guest prints
# `status N` when it is done.
start_guest()
{
	local fixed='console=ttyS0 loglevel=4 panic=-1 nokaslr mitigations=off'

	began=$SECONDS
	# It ends with this script, even if that cannot clean up.
	setpriv --pdeathsig TERM \
		timeout --foreground --kill-after=5 "$limit_s" qemu-system-x86_64 -nodefaults -no-user-config \
		-display none -no-reboot -cpu max -accel "$accel" -kernel "$store/kernel" \
		-initrd "$work/initramfs" -append "$fixed $parameters $1" \
		-serial "file:$work/console" -serial "file:$work/status" "${@:2}" </dev/null 2>"$work/qemu" &
	job=$!
}

# The command's output goes through files, because QEMU does not wait for slow readers when it exits.
run_guest()
{
	local port=virtserialport tails=() ended options=("${rdma[@]}") more="hugepages=64 plx_net=$net"

	[[ $net != numa ]] || options=("${numa[@]}") more="$numa_parameters plx_net=$net"
	find_shares
	touch "$work/stdout" "$work/stderr"
	start_guest "$more" "${options[@]}" "${shares[@]}" -device virtio-serial-pci \
		-chardev "file,id=stdout,path=$work/stdout" -device "$port,nr=1,chardev=stdout" \
		-chardev "file,id=stderr,path=$work/stderr" -device "$port,nr=2,chardev=stderr"
	tail -f -s 0.1 -c +1 --pid="$job" "$work/stdout" &
	tails+=($!)
	tail -f -s 0.1 -c +1 --pid="$job" "$work/stderr" >&2 &
	tails+=($!)
	wait "$job"
	ended=$?
	job=
	guest_status=$(sed -n 's/^status \([0-9]\+\).*/\1/p' "$work/status" 2>/dev/null)
	wait "${tails[@]}"
	[[ -z $guest_status ]] || return "$guest_status"
	tail -n 50 "$work/console" >&2 2>/dev/null
	if ((ended == 124 || (ended == 137 && SECONDS - began >= limit_s))); then
		die "the guest was not done after $limit_s s; its console's end is above" 124
	fi
	cat "$work/qemu" >&2
	die "the guest died (QEMU's status: $ended); its console's end is above" 125
}

numa_or_net='--numa and --net: give one of them'
while (($#)); do
	case $1 in
	--net)
		[[ ${2-} =~ ^(loop|pair)$ ]] || die "--net ${2-}: give loop or pair" 2
		[[ $net != numa ]] || die "$numa_or_net" 2
		net=$2
		shift
		;;
	--numa)
		[[ $net != @(loop|pair) ]] || die "$numa_or_net" 2
		net=numa siw_wanted=0
		export PLX_GUEST_NODES=2 PLX_GUEST_BARE_NODE=2 # for tests/guest
		;;
	--seconds)
		[[ ${2-} =~ ^[1-9][0-9]*$ ]] || die "--seconds ${2-}: give a number from 1 on" 2
		limit_s=$2
		shift
		;;
	-w | --write)
		writable+=("$(cd "$folder" && realpath -e "${2-}")") || die "$1 ${2-}: give a folder that is there" 2
		shift
		;;
	--no-siw) siw_wanted=0 ;;
	--prepare) prepare_only=1 ;;
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
((prepare_only == ($# == 0))) || die 'give a command to run, or --prepare' 2

begin
prepare
if ((prepare_only)); then
	die "all that the guest needs is in $store" 0
fi
make_initramfs "$@"
run_guest
