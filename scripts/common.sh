# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Shared by test.sh and check.sh. Source it; it changes to the top of the source tree.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

# One version of clang and its tools everywhere, so that layout and findings do not depend on the host.
# shellcheck disable=SC2034 # used by scripts that source this
llvm=19
# Supported Debian releases, by code name.
# shellcheck disable=SC2034
releases=$(sed -n 's/^releases //p' config/packages.debian)

# die SCRIPT TEXT [STATUS]
die()
{
	printf '%s: %s\n' "$1" "$2" >&2
	exit "${3:-1}"
}

# configure DIR [meson option...]: set up or update a build folder.
configure()
{
	local dir=$1
	shift

	if [[ -f $dir/build.ninja ]]; then
		# Folders of another version of meson are unusable.
		(($# == 0)) || meson configure "$dir" "$@" || rm -rf "$dir"
	fi
	if [[ -f $dir/build.ninja ]]; then
		# Updates meson's list of tests and programs.
		ninja -C "$dir" build.ninja
	else
		meson setup "$dir" "$@"
	fi
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

# failed_tests DIR: their names, in one line.
failed_tests()
{
	jq -r 'select(.result | IN("OK", "EXPECTEDFAIL", "SKIP") | not) | .name | sub(".* / "; "")' \
		"$1/meson-logs/testlog.json" | paste -sd ' '
}

# show_failures DIR: failed tests of DIR's last `meson test`, each with the end of its output.
show_failures()
{
	local results=$1/meson-logs/testlog.json

	jq -r 'select(.result | IN("OK", "EXPECTEDFAIL", "SKIP") | not) |
		"\n--- \(.name | sub(".* / "; "")): \(.result) after \(.duration * 10 | round / 10) s",
		(((.stdout // "") + (.stderr // "")) | split("\n") | .[-60:] | join("\n"))' "$results" |
		tee -a "${PLX_FAILURES_FILE:-/dev/null}"
	echo "failed: $(failed_tests "$1")"
	echo "their whole output is in $1/meson-logs/testlog.txt"
}

# add_counts PASSED FAILED [NAME...]: for a caller that runs several scripts and adds up; the names of failures.
add_counts()
{
	[[ -z ${PLX_COUNTS_FILE-} ]] || echo "$@" >>"$PLX_COUNTS_FILE"
}
