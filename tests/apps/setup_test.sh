#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What setup.sh and test-on.sh say where they cannot do what was asked, and that they change nothing then.
# Other systems are made by a mount over /etc/os-release, which needs root.
set -uo pipefail
cd "$PLX_SOURCE_ROOT" || exit 1
if ((EUID != 0)) || ! unshare --mount true 2>/dev/null; then
	echo 'skipped: needs root and mount namespaces'
	exit 77
fi
unset PLX_SKIP_SETUP
# shellcheck source=tests/apps/checks.sh
. tests/apps/checks.sh

# expect STATUS TEXT COMMAND...: the command ends with that status, and its output has that text.
expect()
{
	gives "${*:3}" "$1" "*$2*" "${@:3}"
}

# on SYSTEM COMMAND...: run it where /etc/os-release is that text.
# shellcheck disable=SC2016,SC2317 # for the inner shell; called by expect
on()
{
	printf '%b' "$1" >"$temp/os-release"
	shift
	unshare --mount bash -c 'mount --bind "$1" /etc/os-release && shift && exec "$@"' bash "$temp/os-release" "$@"
}

fedora='ID=fedora\nVERSION_ID=43\nPRETTY_NAME="Fedora Linux 43"\n'
expect 1 "this system is 'Fedora Linux 43'" on "$fedora" scripts/setup.sh
expect 1 'Nothing was changed' on "$fedora" scripts/setup.sh
expect 1 'libfabric-dev' on "$fedora" scripts/setup.sh --for build
expect 1 "this system is 'Debian 14'" on 'ID=debian\nVERSION_CODENAME=forky\nPRETTY_NAME="Debian 14"\n' scripts/setup.sh
expect 1 "this system is 'unknown'" on '' scripts/setup.sh --check
expect 2 "unknown group 'nothing'; there are run, lib, build, test, bench, check and peers" scripts/setup.sh --for nothing

expect 2 'give a release' scripts/test-on.sh
expect 2 "unknown release 'sarge'; config/packages.debian has bookworm, trixie" scripts/test-on.sh sarge

# A registry that cannot be reached, half way.
export PLX_CHROOT_DIR=$temp/chroots
mkdir "$temp/bin"
cat >"$temp/bin/debootstrap" <<'END'
#!/bin/sh
mkdir "$3/etc"
echo "E: Failed getting release file $4"
exit 1
END
chmod +x "$temp/bin/debootstrap"
expect 1 'debootstrap failed' env PATH="$temp/bin:$PATH" scripts/test-on.sh trixie
check 'no part of a chroot is left' "[[ -z \$(find '$temp/chroots' -mindepth 1 -type d) ]]"

# Without debootstrap: everything else on PATH.
mkdir "$temp/tools"
for tool in bash sed git unshare flock dirname; do ln -s "$(command -v $tool)" "$temp/tools/"; done
expect 1 'debootstrap is missing' env PATH="$temp/tools" bash scripts/test-on.sh trixie
other_user=(setpriv --reuid=65534 --clear-groups)
if "${other_user[@]}" test -r scripts/test-on.sh; then
	expect 1 'needs root' "${other_user[@]}" bash scripts/test-on.sh trixie
fi
exit $failed
