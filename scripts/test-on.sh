#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#| Build and test this tree on another Debian release, in a chroot that debootstrap makes from this host's apt mirror,
#| in separate mount and process namespaces. Nothing stays mounted.
#| Usage: scripts/test-on.sh RELEASE [COMMAND...]
#| Copy the tree into the chroot and run COMMAND at its top, by default scripts/test.sh --werror. The status is the
#| command's. The chroot is kept in ~/.cache/pollux-chroot (PLX_CHROOT_DIR). Needs root and debootstrap.
set -uo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cache=${PLX_CHROOT_DIR:-$HOME/.cache/pollux-chroot}
release=${1-}
[[ -n $release ]] || die 'give a release; see --help' 2
[[ $release != -* ]] || other_option "$release"
shift
[[ " $releases " == *" $release "* ]] ||
	die "unknown release '$release'; config/packages.debian has ${releases// /, }" 2
((EUID == 0)) || die 'needs root, to mount and to change the root directory; run it with sudo'
for tool in debootstrap git unshare flock; do
	command -v "$tool" >/dev/null || die "$tool is missing; scripts/setup.sh installs it"
done

chroot=$cache/$release
mkdir -p "$cache" || die "cannot write to $cache; set PLX_CHROOT_DIR"
exec 9>"$cache/$release.lock"
flock --nonblock 9 || echo "test-on.sh: waiting for another test-on.sh, which is using $chroot"
flock 9

if [[ ! -d $chroot ]]; then
	echo "test-on.sh: making a chroot with $release in $chroot"
	# An interrupted chroot never gets its final name.
	part=$(mktemp -d -p "$cache") || exit 1
	trap 'rm -rf --one-file-system "$part"' EXIT
	from=$(debian_registry)
	[[ -n $from ]] || die 'apt has no registry of Debian configured; look at /etc/apt/sources.list.d'
	if ! debootstrap --variant=minbase "$release" "$part" "$from" >"$cache/$release.log" 2>&1; then
		tail -n 3 "$cache/$release.log" >&2
		die "debootstrap failed; is the mirror of apt, '$from', reachable? Its log: $cache/$release.log"
	fi
	chmod 755 "$part"
	mv "$part" "$chroot" || exit 1
	trap - EXIT
fi
for file in /etc/resolv.conf /etc/hosts; do
	[[ ! -r $file ]] || cp -L "$file" "$chroot/etc/"
done

# Removes files that the tree no longer has; build folders stay for the next run.
tree=$chroot/opt/pollux
{ mkdir -p "$tree" && chmod 755 "$tree" && find "$tree" -mindepth 1 -maxdepth 1 ! -name 'build-*' -exec rm -rf {} + &&
	sources . | tar --create --files-from=- | tar --extract --directory "$tree"; } || die "cannot copy the tree to $chroot"

# At the top of the copied tree, as the first process of its namespace, so that the kernel ends all leftover processes.
(($#)) || set -- scripts/test.sh --werror
# shellcheck disable=SC2016 # for the inner shell
unshare --mount --propagation private --pid --fork --kill-child bash -c '
	root=$1
	shift
	mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" &&
		mount --rbind /dev "$root/dev" || exit 1
	exec chroot "$root" /usr/bin/env -i HOME=/root TERM="${TERM-dumb}" LANG=C.UTF-8 \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
		bash -c '\''cd /opt/pollux && "$@"'\'' bash "$@"' bash "$chroot" "$@" </dev/null 9>&-
