# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Shared by numa-vm.sh and rdma-vm.sh: what a guest needs from the host, its start and its end. Source it; begin,
# start_guest and wait_guest are the steps of such a script.

limit_s=${PLX_GUEST_SECONDS:-120}
accel=${PLX_GUEST_ACCEL:-tcg,thread=multi}
# shellcheck disable=SC2034
cache=${XDG_CACHE_HOME:-~/.cache}/pollux-guest

# fail TEXT [STATUS]
fail()
{
	printf '%s: %s\n' "${0##*/}" "$1" >&2
	exit "${2:-1}"
}

# skip REASON: an error for callers that need the guest, hence a separate status.
skip()
{
	printf 'skipped: %s\n' "$1"
	exit 77
}

# need PROGRAM PACKAGE
need()
{
	command -v "$1" >/dev/null || skip "$1 is not there: install $2"
}

# Sets busybox.
find_busybox()
{
	need busybox busybox-static
	busybox=$(command -v busybox)
	if ldd "$busybox" >/dev/null 2>&1; then skip 'busybox needs libraries: install busybox-static'; fi
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
	[[ $limit_s =~ ^[1-9][0-9]*$ ]] ||
		fail "PLX_GUEST_SECONDS=$limit_s: give a number from 1 on" 2
	[[ $(uname -m) == x86_64 ]] || skip "the guest is an x86-64 one, and runs this host's programs"
	need qemu-system-x86_64 qemu-system-x86
	find_busybox
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

# kernel_package PACKAGE: the versioned package that a metapackage stands for.
kernel_package()
{
	apt-cache depends "$1" 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1
}

# download PACKAGE...
download()
{
	local package real packages=()

	for package in "$@"; do
		real=$(kernel_package "$package")
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

# Guest ------------------------------------------------------------------------------------------

# pack_initramfs FOLDER
pack_initramfs()
{
	(cd "$1" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >"$work/initramfs" ||
		fail 'cannot make the initramfs'
}

# start_guest KERNEL PARAMETERS [QEMU-OPTION...]: boot with the initramfs of $work. Its first serial line is the
# console; on the second it prints `status N` when it is done.
start_guest()
{
	local kernel=$1 parameters="console=ttyS0 loglevel=4 panic=-1 nokaslr mitigations=off $2"

	shift 2
	began=$SECONDS
	# It ends with this script, even if that cannot clean up.
	setpriv --pdeathsig TERM \
		timeout --foreground --kill-after=5 "$limit_s" qemu-system-x86_64 -nodefaults -no-user-config \
		-display none -no-reboot -cpu max -accel "$accel" -kernel "$kernel" \
		-initrd "$work/initramfs" -append "$parameters" \
		-serial "file:$work/console" -serial "file:$work/status" "$@" </dev/null 2>"$work/qemu" &
	job=$!
}

# Sets guest_status, empty if the guest printed none, and ended, QEMU's status.
wait_guest()
{
	wait "$job"
	ended=$?
	job=
	guest_status=$(sed -n 's/^status \([0-9]\+\).*/\1/p' "$work/status" 2>/dev/null)
}

# Ends the script if the guest printed no status.
check_guest()
{
	[[ -z $guest_status ]] || return 0
	tail -n 50 "$work/console" >&2 2>/dev/null
	if ((ended == 124 || (ended == 137 && SECONDS - began >= limit_s))); then
		fail "the guest was not done after $limit_s s; its console's end is above" 124
	fi
	cat "$work/qemu" >&2
	fail "the guest died (QEMU's status: $ended); its console's end is above" 125
}
