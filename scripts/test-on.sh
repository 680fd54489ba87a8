#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#| Build and test this tree on another Debian release, in a chroot that debootstrap makes from this host's apt mirror,
#| in separate mount and process namespaces. Nothing stays mounted.
#| Usage: scripts/test-on.sh [--fresh] RELEASE [COMMAND...]
#|        scripts/test-on.sh [--fresh] --arch arm64 RELEASE
#| Copy the tree into the chroot and run COMMAND at its top, by default scripts/test.sh --werror. The status is the
#| command's.
#|   --arch arm64  cross-compile instead, and run the fast tests under qemu-user. That cannot find
#|                 missing memory barriers: qemu keeps the order of the host's CPU.
#|   --fresh       recreate the chroot
#| The chroot is kept in ~/.cache/pollux-chroot (PLX_CHROOT_DIR). Needs root and debootstrap.
set -uo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cache=${PLX_CHROOT_DIR:-$HOME/.cache/pollux-chroot}
arch='' fresh=0

while (($#)); do
	case $1 in
	--arch)
		arch=${2-}
		[[ $arch == arm64 ]] || die "--arch '$arch': give arm64" 2
		shift
		;;
	--fresh) fresh=1 ;;
	-*) other_option "$1" ;;
	*) break ;;
	esac
	shift
done
(($#)) || die 'give a release; see --help' 2
release=$1
shift
[[ " $releases " == *" $release "* ]] ||
	die "unknown release '$release'; config/packages.debian has ${releases// /, }" 2
[[ -z $arch ]] || (($# == 0)) || die '--arch takes no command: it runs the fast tests' 2
((EUID == 0)) || die 'needs root, to mount and to change the root directory; run it with sudo'
for tool in debootstrap git unshare flock; do
	command -v "$tool" >/dev/null || die "$tool is missing; scripts/setup.sh installs it"
done

chroot=$cache/$release
mkdir -p "$cache" || die "cannot write to $cache; set PLX_CHROOT_DIR"
exec 9>"$cache/$release.lock"
flock --nonblock 9 || echo "test-on.sh: waiting for another test-on.sh, which is using $chroot"
flock 9

# An interrupted chroot never gets its final name.
make_chroot()
{
	local from part

	from=$(debian_registry)
	part=$(mktemp -d -p "$cache") || exit 1
	# shellcheck disable=SC2064 # expand the folder now
	trap "rm -rf --one-file-system '$part'" EXIT
	echo "test-on.sh: making a chroot with $release in $chroot"
	if ! debootstrap --variant=minbase "$release" "$part" "$from" >"$cache/$release.log" 2>&1; then
		tail -n 3 "$cache/$release.log" >&2
		die "debootstrap failed; is the mirror of apt, '$from', reachable? Its log: $cache/$release.log"
	fi
	chmod 755 "$part"
	mv "$part" "$chroot" || exit 1
	trap - EXIT
}

# Removes files that the tree no longer has; build folders stay for the next run.
copy_tree()
{
	local tree=$chroot/opt/pollux

	mkdir -p "$tree" && chmod 755 "$tree" && find "$tree" -mindepth 1 -maxdepth 1 ! -name 'build-*' -exec rm -rf {} + &&
		git ls-files -z --cached --others --exclude-standard --deduplicate |
		while IFS= read -r -d '' file; do [[ ! -e $file ]] || printf '%s\0' "$file"; done |
			tar --create --null --files-from=- | tar --extract --directory "$tree"
}

# inside COMMAND...: run it at the top of the copied tree, as the first process of its namespace, so that the kernel
# ends all leftover processes.
inside()
{
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount --propagation private --pid --fork --kill-child bash -c '
		root=$1
		shift
		mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" &&
			mount --rbind /dev "$root/dev" || exit 1
		exec chroot "$root" /usr/bin/env -i HOME=/root TERM="${TERM-dumb}" LANG=C.UTF-8 \
			PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
			bash -c '\''cd /opt/pollux && "$@"'\'' bash "$@"' bash "$chroot" "$@" </dev/null 9>&-
}

# The libraries for arm64, everything else as it is.
# shellcheck disable=SC2016 # for the shell in the chroot
cross='
set -euo pipefail
if [[ ! -e /var/lib/pollux-arm64 ]]; then
	dpkg --add-architecture arm64
	apt-get update
	scripts/setup.sh --list --for build,test | sed -e "s/^lib.*-dev$/&:arm64/" -e "/^lib[^:]*$/d" |
		xargs apt-get install --yes --no-install-recommends gcc-aarch64-linux-gnu qemu-user libc6-dev:arm64
	touch /var/lib/pollux-arm64
fi
[[ -f build-arm64/build.ninja ]] || meson setup build-arm64 --cross-file config/arm64.ini
PLX_SKIP_SETUP=1 scripts/test.sh --build build-arm64 --werror --fast
'

((!fresh)) || rm -rf --one-file-system "$chroot"
[[ -d $chroot ]] || make_chroot
for file in /etc/resolv.conf /etc/hosts; do
	[[ ! -r $file ]] || cp -L "$file" "$chroot/etc/"
done
copy_tree || die "cannot copy the tree to $chroot"
if [[ $arch ]]; then set -- bash -c "$cross"; fi
(($#)) || set -- scripts/test.sh --werror
inside "$@"
