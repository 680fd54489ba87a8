#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Install the Debian packages that Pollux needs: those that config/packages.debian lists.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
list=$root/config/packages.debian
groups=(run build test bench check)

usage()
{
	cat <<-END
	Usage: scripts/setup.sh [--check] [--for GROUP,...]
	  --check      install nothing: say what is missing and how to install it; status 1 if anything is
	  --for GROUP  only packages for run, build, test, bench or check (default: all of them)
	Packages and groups: config/packages.debian. Needs root, or sudo.
	PLX_SKIP_SETUP=1 in the environment makes it do nothing: for other systems than Debian.
	END
}

fail()
{
	printf 'setup.sh: %s\n' "$1" >&2
	exit "${2:-1}"
}

# The packages of the wanted groups, one per line.
wanted_packages()
{
	local package needed group rest

	while read -r package needed rest; do
		[[ -z $package || $package == \#* ]] && continue
		for group in ${needed//,/ }; do
			[[ " ${groups[*]} " == *" $group "* ]] || continue
			printf '%s\n' "$package"
			break
		done
	done <"$list"
}

is_installed()
{
	[[ $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) == 'install ok installed' ]]
}

if [[ -n ${PLX_SKIP_SETUP-} ]]; then
	echo 'setup.sh: nothing looked at, as PLX_SKIP_SETUP says'
	exit 0
fi

check_only=0
while (($#)); do
	case $1 in
	--check) check_only=1 ;;
	--for)
		[[ -n ${2-} ]] || fail '--for needs a group: run, build, test, bench or check' 2
		IFS=, read -ra groups <<<"$2"
		for group in "${groups[@]}"; do
			[[ $group =~ ^(run|build|test|bench|check)$ ]] ||
				fail "--for $2: unknown group '$group'; there are run, build, test, bench and check" 2
		done
		shift
		;;
	-h | --help)
		usage
		exit 0
		;;
	*)
		usage >&2
		fail "unknown option '$1'" 2
		;;
	esac
	shift
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
	fail 'this is not a Debian system (no apt-get); install what config/packages.debian names with
  your own package manager, then set PLX_SKIP_SETUP=1 for the scripts'
fi

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
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
	apt-get install --yes --no-install-recommends "${missing[@]}")

if ((check_only)); then
	echo "setup.sh: ${#missing[@]} of ${#packages[@]} packages are missing: ${missing[*]}"
	echo "setup.sh: to install them: ${as_root[*]:+${as_root[*]} }apt-get install --no-install-recommends ${missing[*]}"
	exit 1
fi

if ((EUID != 0)) && ! command -v sudo >/dev/null; then
	fail "cannot install packages: not root, and sudo is not there; as root run
  apt-get install --no-install-recommends ${missing[*]}"
fi

echo "setup.sh: installing ${#missing[@]} packages: ${missing[*]}"
# Old lists are good enough when every package can be had from them; so a failing update is told
# of, and the installation decides.
"${as_root[@]}" apt-get update </dev/null ||
	echo 'setup.sh: apt-get update failed; going on with the package lists that are there' >&2
"${install[@]}" </dev/null ||
	fail "apt-get could not install the packages; its own message is above. Check the network and
  /etc/apt/sources.list, then run scripts/setup.sh again"

for package in "${missing[@]}"; do
	is_installed "$package" || fail "apt-get ended well, but $package is not installed"
done
echo 'setup.sh: done'
