#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#| Install the packages that Pollux needs on this Debian release.
#| Usage: scripts/setup.sh [--check] [--for GROUP,...]
#|   --check      install nothing: print what is missing and how to install it; status 1 if anything is
#|   --for GROUP  only packages for run, lib, build, test, bench, check or peers (default: all but peers)
#| Packages, groups and releases: config/packages.debian. Installing needs root, or sudo.
#| PLX_SKIP_SETUP=1 in the environment makes it do nothing, for systems other than Debian.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

list=config/packages.debian
system=/etc/os-release
groups=(run build test bench check)

# Sets release: this Debian's code name, if packages.debian has it.
find_release()
{
	local id codename name

	# shellcheck disable=SC1090 # the file that os-release(5) describes
	{ id=$(. "$system" && echo "${ID-}") && codename=$(. "$system" && echo "${VERSION_CODENAME-}") &&
		name=$(. "$system" && echo "${PRETTY_NAME-}"); } 2>/dev/null || true
	release=${codename-}
	[[ ${id-} == debian && -n $release && " $releases " == *" $release "* ]] && return
	# Look for Debian's names; those of any release will do.
	release=${releases%% *}
	die "this system is '${name:-unknown}' ($system); packages are known for Debian ${releases// /, }.
  Nothing was changed. Install the equivalents of these, then set PLX_SKIP_SETUP=1 for the scripts
  (config/packages.debian has the reason for each):
$(wanted_packages | fmt -w 100 | sed 's/^/    /')"
}

# The packages of the selected groups on this release, one per line. A package NAME@RELEASE is of that release only.
wanted_packages()
{
	local group_of=${groups[*]}

	sed -nE "/^(#|releases )/d; s/^([^ @]+)(@$release)? +([a-z]+,)*(${group_of// /|})(,[a-z]+)*( .*)?\$/\1/p" "$list"
}

# On multiarch hosts, a package may be installed for each architecture.
is_installed()
{
	dpkg-query -W -f '${Architecture} ${Status}\n' "$1" 2>/dev/null |
		grep -qxE "(all|$(dpkg --print-architecture)) install ok installed"
}

if [[ -n ${PLX_SKIP_SETUP-} ]]; then
	echo 'setup.sh: skipped, because PLX_SKIP_SETUP is set'
	exit 0
fi

check_only=0
while (($#)); do
	case $1 in
	--check) check_only=1 ;;
	--for)
		[[ ${2-} =~ ^((run|lib|build|test|bench|check|peers)(,|$))+$ ]] ||
			die "--for: unknown group '${2-}'; there are run, lib, build, test, bench, check and peers" 2
		IFS=, read -ra groups <<<"$2"
		shift
		;;
	*) other_option "$1" ;;
	esac
	shift
done

find_release
mapfile -t packages < <(wanted_packages)

missing=()
for package in "${packages[@]}"; do
	is_installed "$package" || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
	echo "setup.sh: all ${#packages[@]} packages are installed"
	exit 0
fi

as_root=()
((EUID == 0)) || as_root=(sudo)
by_hand="apt-get install --no-install-recommends ${missing[*]}"
if ((check_only)); then
	echo "setup.sh: ${#missing[@]} of ${#packages[@]} packages are missing; to install them: ${as_root[*]} $by_hand"
	exit 1
fi
((EUID == 0)) || command -v sudo >/dev/null || die "cannot install packages: not root, and there is no sudo; as root run
  $by_hand"

echo "setup.sh: installing ${#missing[@]} packages: ${missing[*]}"
# Outdated lists may suffice, so a failing update is reported and the installation decides.
"${as_root[@]}" apt-get update </dev/null ||
	echo 'setup.sh: apt-get update failed; using the package lists of the last update' >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${missing[@]}" </dev/null ||
	die "apt-get could not install the packages; its own message is above. Check the network and
  /etc/apt/sources.list, then run scripts/setup.sh again"
echo 'setup.sh: done'
