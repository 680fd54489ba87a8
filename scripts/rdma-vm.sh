#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Run a command in a small guest whose kernel has software RDMA devices: rxe (RoCE) and siw (iWARP). For hosts that
# have no RDMA card and cannot load a module.
#
# The guest sees the host's files at their paths: the command needs no copy and no installation. Files that it writes
# are in the guest's memory and are lost, except in the folders of --write. There is no network. It is emulated even if
# /dev/kvm exists, like the guest of numa-vm.sh.
set -uo pipefail
# shellcheck source=scripts/guest.sh
. "$(dirname "${BASH_SOURCE[0]}")/guest.sh"

inside=$(realpath "$(dirname "${BASH_SOURCE[0]}")/guest")
PATH=$PATH:/usr/sbin:/sbin

# Its clock is the TSC, which programs read without a system call.
machine=(-machine "q35,hpet=off" -smp 2 -m 2G)
parameters='hugepages=64 tsc=reliable no_timer_check'

# 9p and overlay for the host's files, virtio_console for the command's output; rxe needs crc32_generic, siw needs
# libcrc32c; sch_netem is for commands that drop packets.
modules='virtio_pci 9pnet_virtio 9p overlay virtio_console dummy veth sch_netem crc32_generic libcrc32c
	rdma_rxe rdma_ucm'

# Environment variables passed to the command.
environment='@(PATH|HOME|LANG|LD_LIBRARY_PATH|CI|@(A|L|UB|T)SAN_OPTIONS|@(FI|PLX|RDMAV)_*)'

net=loop
writable=()
siw_wanted=1
prepare_only=0

usage()
{
	cat <<-END
	Usage: scripts/rdma-vm.sh [OPTION...] [--] COMMAND [ARGUMENT...]
	       scripts/rdma-vm.sh [--no-siw] --prepare
	Run the command as root in a guest with software RDMA devices and this host's files. Output, errors and status are the
	command's; it has no input. The status is 77 if no guest can run here, 124 after the time limit, 125 if the guest died.
	  --net loop     a device of each kind that reaches itself: rxe0 10.77.0.1, siw0 10.77.1.1 (default)
	  --net pair     two of each, connected: rxe0 and rxe1 10.77.0.1 and .2, siw0 and siw1 10.77.1.1 and .2
	  --seconds N    time limit for boot and command (default $limit_s)
	  -w, --write DIR
	                 the command may write there; what it writes elsewhere is lost with the guest
	  --no-siw       only rxe
	  --prepare      only fetch and build what the guest needs; tries siw again
	  PLX_GUEST_KERNEL   ROOT/boot/vmlinuz-VERSION, with modules in ROOT/lib/modules/VERSION; default: a Debian kernel in
	                     /boot, or downloaded
	  PLX_GUEST_SECONDS  as --seconds
	  PLX_GUEST_ACCEL    QEMU's -accel (default $accel)
	The command gets PATH HOME LANG LD_LIBRARY_PATH CI FI_* PLX_* RDMAV_* and the sanitizers' options from the environment. It
	does not see this host's /dev, /proc, /run and /sys. Kernel, modules and siw are kept in $cache.
	END
}

note()
{
	printf 'rdma-vm.sh: %s\n' "$1" >&2
}

# Kernel ---------------------------------------------------------------------------------------

# header KERNEL OFFSET SIZE [FORMAT]: a number of the kernel's header, or bytes in od's FORMAT.
header()
{
	od -An -t "${4-u$3}" -j "$2" -N "$3" "$1" | tr -d ' '
}

# unpack_kernel KERNEL: extract the kernel from its self-extracting file, which would take the guest 5 s. The header
# has its position (setup_sects, payload_offset and payload_length in the kernel's Documentation/x86/boot.rst); the
# last 4 bytes are its size.
unpack_kernel()
{
	local start length unpack

	start=$((($(header "$1" 497 1) + 1) * 512 + $(header "$1" 584 4)))
	length=$(($(header "$1" 588 4) - 4))
	case $(header "$1" $start 4 x1) in
	fd377a58) unpack=xz ;;
	28b52ffd) unpack=zstd ;;
	*) return 1 ;;
	esac
	dd if="$1" bs=1M iflag=skip_bytes,count_bytes skip=$start count=$length status=none | $unpack -dc
}

# copy_module FILE COPY
copy_module()
{
	case $1 in
	*.xz) xz -dc "$1" >"$2" ;;
	*.zst) zstd -dc "$1" >"$2" ;;
	*) cp "$1" "$2" ;;
	esac
}

# module_insmods ROOT VERSION: the commands that load the modules, as `insmod FILE` each.
module_insmods()
{
	local module

	for module in $modules; do
		modprobe -C /dev/null -d "$1" -S "$2" --show-depends "$module" || return 1
	done
}

# copy_modules ROOT VERSION FOLDER: copy them with their dependencies, named in loading order; siw, which Debian omits,
# as siw.ko if available.
copy_modules()
{
	local insmods file n=100

	insmods=$(module_insmods "$1" "$2") || return 1
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
	mkdir "$new" || fail "cannot write to $cache"
	unpack_kernel "$1" >"$new/kernel" || cp "$1" "$new/kernel" || fail "cannot write to $cache"
	copy_modules "${root:-/}" "$version" "$new" ||
		fail "the kernel $1 has not all the modules that the guest needs; see above"
	echo "$version" >"$new/version"
	mv -T "$new" "$store" || fail "cannot write to $cache"
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

# Sets kernel.
fetch_kernel()
{
	fetch linux-image-amd64 || skip 'the package linux-image-amd64 cannot be had, whose kernel the guest runs:
  look at the network and at /etc/apt/sources.list, or give a kernel with PLX_GUEST_KERNEL'
	unpack_packages "$work/image"
	kernel=$(printf '%s\n' "$work"/image/boot/vmlinuz-*)
	depmod -b "$work/image" "${kernel##*/vmlinuz-}"
	has_rxe "$kernel" || fail 'there is no kernel that has rxe in the package linux-image-amd64'
}

# Sets store: the folder of the given kernel.
given_kernel()
{
	local kernel

	kernel=$(realpath "$PLX_GUEST_KERNEL")
	has_rxe "$kernel" || fail "PLX_GUEST_KERNEL=$PLX_GUEST_KERNEL: give a file ROOT/boot/vmlinuz-VERSION that has rxe,
  with its modules, and their modules.dep, in ROOT/lib/modules/VERSION" 2
	store=$cache/given-rdma-${kernel##*/vmlinuz-}
	[[ -d $store ]] || keep_kernel "$kernel"
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
	[[ -n $kernel ]] || fetch_kernel
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

# build_siw: makes $store/siw.ko, or sets why_not.
build_siw()
{
	local version

	version=$(<"$store/version")
	if ! command -v gcc >/dev/null || ! command -v make >/dev/null; then
		why_not='no compiler to build it with: install build-essential'
	elif ! fetch_siw "$version"; then
		why_not="linux-headers-$version or the kernel's source cannot be had"
	elif ! compile_siw "$version" >"$store/siw.log" 2>&1; then
		why_not="it does not compile, see $store/siw.log"
	else
		mv "$cache/.siw.ko" "$store/siw.ko"
		return
	fi
	return 1
}

# Continues without siw if need be. A failed build is not retried in each run.
find_siw()
{
	[[ ! -e $store/siw.ko ]] || return 0
	if ((prepare_only)) || [[ ! -e $store/no-siw ]]; then
		if build_siw; then
			rm -f "$store/no-siw"
			return
		fi
		echo "$why_not" >"$store/no-siw"
	fi
	note "no siw: $(<"$store/no-siw"); scripts/rdma-vm.sh --prepare tries again"
}

# Sets store, which has everything that a guest needs. One script at a time, so that nothing is made twice.
prepare()
{
	local lock

	{ mkdir -p "$cache" && exec {lock}>"$cache/.lock"; } || fail "cannot write to $cache"
	await flock "$lock"
	if [[ -n ${PLX_GUEST_KERNEL-} ]]; then given_kernel; else find_kernel; fi
	((!siw_wanted)) || find_siw
	exec {lock}>&-
}

# Guest ------------------------------------------------------------------------------------------

# write_command COMMAND [ARGUMENT...]: a script that runs it in its folder and environment.
write_command()
{
	local name

	printf 'cd -- %q || exit 125\n' "$PWD"
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
	pack_initramfs "$root"
}

# Sets shares: QEMU's options for the host's files. A comma in a path must be doubled.
find_shares()
{
	local folder n=0 options=security_model=none,multidevs=remap

	shares=(-virtfs "local,path=/,mount_tag=host,readonly=on,$options")
	for folder in "${writable[@]}"; do
		shares+=(-virtfs "local,path=${folder//,/,,},mount_tag=write$((n++)),$options")
	done
}

# The command's output goes through files, because QEMU does not wait for slow readers when it exits.
run_guest()
{
	local port=virtserialport tails=()

	find_shares
	touch "$work/stdout" "$work/stderr"
	start_guest "$store/kernel" "$parameters plx_net=$net" "${machine[@]}" "${shares[@]}" \
		-device virtio-serial-pci \
		-chardev "file,id=stdout,path=$work/stdout" -device "$port,nr=1,chardev=stdout" \
		-chardev "file,id=stderr,path=$work/stderr" -device "$port,nr=2,chardev=stderr"
	tail -f -s 0.1 -c +1 --pid="$job" "$work/stdout" &
	tails+=($!)
	tail -f -s 0.1 -c +1 --pid="$job" "$work/stderr" >&2 &
	tails+=($!)
	wait_guest
	wait "${tails[@]}"
	check_guest
	return "$guest_status"
}

while (($#)); do
	case $1 in
	--net)
		[[ ${2-} =~ ^(loop|pair)$ ]] || fail "--net ${2-}: give loop or pair" 2
		net=$2
		shift
		;;
	--seconds)
		[[ ${2-} =~ ^[1-9][0-9]*$ ]] || fail "--seconds ${2-}: give a number from 1 on" 2
		limit_s=$2
		shift
		;;
	-w | --write)
		[[ -d ${2-} ]] || fail "$1 ${2-}: give a folder that is there" 2
		writable+=("$(realpath "$2")")
		shift
		;;
	--no-siw) siw_wanted=0 ;;
	--prepare) prepare_only=1 ;;
	-h | --help)
		usage
		exit 0
		;;
	--)
		shift
		break
		;;
	-*)
		usage >&2
		fail "unknown option '$1'" 2
		;;
	*) break ;;
	esac
	shift
done
((prepare_only == ($# == 0))) || fail 'give a command to run, or --prepare' 2

need modprobe kmod
need ip iproute2
need rdma iproute2
need xz xz-utils
begin
prepare
if ((prepare_only)); then
	note "all that the guest needs is in $store"
	exit 0
fi
make_initramfs "$@"
run_guest
