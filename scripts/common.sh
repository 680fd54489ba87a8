# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What test.sh and check.sh share. Source it; it goes to the top of the source tree.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

# die SCRIPT TEXT [STATUS]
die()
{
	printf '%s: %s\n' "$1" "$2" >&2
	exit "${3:-1}"
}

# configure DIR [meson option...]: set up a build folder, or bring an old one up to date.
configure()
{
	local dir=$1
	shift

	if [[ -f $dir/build.ninja ]]; then
		# What changed in the tree the build sees by itself. A folder that another version of
		# meson left behind cannot be used.
		(($# == 0)) || meson configure "$dir" "$@" || rm -rf "$dir"
	fi
	[[ -f $dir/build.ninja ]] || meson setup "$dir" "$@"
}

# count_tests DIR: set passed, failed and skipped from the log of DIR's last `meson test`.
count_tests()
{
	local counts

	passed=0 failed=0 skipped=0
	counts=$(jq -rs '
		[ ([.[] | select(.result == "OK" or .result == "EXPECTEDFAIL")] | length),
		  ([.[] | select(.result == "SKIP")] | length),
		  length ] | map(tostring) | join(" ")' "$1/meson-logs/testlog.json" 2>/dev/null) || return 1
	read -r passed skipped failed <<<"$counts"
	failed=$((failed - passed - skipped))
}

# add_counts PASSED FAILED: for the one that runs several scripts and adds up.
add_counts()
{
	[[ -z ${PLX_COUNTS_FILE-} ]] || printf '%s %s\n' "$1" "$2" >>"$PLX_COUNTS_FILE"
}
