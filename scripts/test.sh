#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#| Install missing packages, build, and run the tests of the tiers fast and slow.
#| Usage: scripts/test.sh [--fast | --all | --soak] [--build DIR] [--werror] [--coverage] [--no-rerun]
#|                        [--list] [TEST...]
#|   --fast       only the tier fast: at most 60 s after the build
#|   --all        also the tier nightly
#|   --soak       the same with long variants of tests (PLX_TEST_SOAK), without a time limit
#|   --build DIR  the build folder (default: build-test)
#|   --werror     treat compiler warnings as errors
#|   --coverage   also print the share of lines of lib and drivers that the tests reach, and each file below 90 %;
#|                in its own build folder, build-coverage
#|   --no-rerun   do not run a failed test again. By default it runs again, alone, up to twice; one that then
#|                passes counts as passed and is listed as unstable: see tests/unstable
#|   --list       only print the names, with their suites
#|   TEST         a name (topo/corelist), a pattern ('fabric/*') or a suite (netio), of any tier.
#|                Builds only what these tests need.
set -uo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build='' # build-test
coverage=0
tiers=(fast slow)
limit_s=$((24 * 60))
list=0
options=()
patterns=()

while (($#)); do
	case $1 in
	--fast) tiers=(fast) ;;
	--all) tiers=(fast slow nightly) limit_s=$((60 * 60)) ;;
	--soak)
		tiers=(fast slow nightly) limit_s=0
		export PLX_TEST_SOAK=1
		;;
	--build)
		[[ -n ${2-} ]] || die '--build needs a value' 2
		build=$2
		shift
		;;
	--werror) options+=(-Dwerror=true) ;;
	--coverage) coverage=1 ;;
	--no-rerun) rerun=0 ;;
	--list) list=1 ;;
	-*) other_option "$1" ;;
	*) patterns+=("$1") ;;
	esac
	shift
done

packages='build,test'
if ((coverage)); then
	[[ -z $build ]] || die '--coverage has its own build folder; leave out --build' 2
	build='build-coverage'
	options+=(-Db_coverage=true)
	packages+=',check' # gcovr
fi
build=${build:-build-test}

# finish TEXT: for a run that ended before testing.
finish()
{
	report counts 0 1
	report failed test.sh
	die "$1"
}

scripts/setup.sh --for "$packages" || finish 'packages are missing; see above'
log=$(configure "$build" "${options[@]}" 2>&1) || { printf '%s\n' "$log" | tail -n 20 && finish "meson could not configure $build"; }

# Names and suites of the tests, one test per line.
known=$(meson introspect --tests "$build" | jq -r '.[] | .name + " " + (.suite | map(sub(".*:"; "")) | join(" "))') ||
	finish "meson cannot list the tests of $build"

# The tests of the tiers, or those that match the patterns.
declare -A chosen=()
((${#patterns[@]})) || patterns=("${tiers[@]}")
for pattern in "${patterns[@]}"; do
	found=0
	while read -r name suites; do
		# It is a pattern.
		# shellcheck disable=SC2053
		[[ $name == $pattern || " $suites " == *" $pattern "* ]] || continue
		found=1 chosen[$name]=$suites
	done <<<"$known"
	((found)) || die "no test and no suite matches '$pattern'; scripts/test.sh --list shows them" 2
done

# meson starts them in this order: those with the highest priority first.
mapfile -t names < <(while read -r name _; do [[ -z ${chosen[$name]+x} ]] || echo "$name"; done <<<"$known")
if ((list)); then
	for name in "${names[@]}"; do printf '%-31s %s\n' "$name" "${chosen[$name]}"; done | sort
	exit 0
fi

# Shortens meson's lines as they arrive: [37/210] fabric/credit 1.23s OK. meson first builds what the selected tests
# depend on; that output is ninja's.
progress()
{
	sed -uE 's|^ *([0-9]+/[0-9]+) .* / ([^ ]+) +([A-Z]+) +([0-9.]+s).*|[\1] \2 \4 \3|; t
		/^\[[0-9]+\/[0-9]+\]|^ninja: build|error:|^FAILED: /!d'
}

show_coverage()
{
	# Tests compile some files once more; the library's own objects count.
	gcovr --root . --filter lib/ --filter drivers/ --json-summary-pretty --sort-uncovered "$build"/libplx_*.a.p |
		jq -r '(.files[] | select(.line_percent < 90) | "  \(.filename): \(.line_percent) %"),
			"coverage: \(.line_percent) % of \(.line_total) lines"'
}

# Counters of earlier runs.
((!coverage)) || find "$build" -name '*.gcda' -delete
# If the build fails, meson leaves the results of the previous run.
rm -f "$build"/meson-logs/testlog.{json,txt}
meson_test $limit_s "$build" --num-processes $((2 * $(nproc))) "${names[@]}" | progress
status=${PIPESTATUS[0]}

if ((status == 124 || status == 137)); then
	finish "not done after $((limit_s / 60)) minutes, stopped; the output so far is in $build/meson-logs/testlog.txt"
fi
count_tests "$build" || finish "no test ran; see above"
if ((failed)); then
	rerun_failed "$build"
	count_tests "$build"
elif ((status)); then
	failed=1
fi

printf '\nThe slowest, in s:\n'
jq -r "$test_log"' "  \(.duration) \(test_name)"' "$build/meson-logs/testlog.json" | sort -rn | head
show_results "$build"
if ((coverage)) && ! show_coverage; then
	echo 'test.sh: the coverage is unknown; see above' >&2
	report failed test.sh
	failed=$((failed + 1))
fi
report counts "$passed" "$failed"
echo "test.sh: $passed passed, $failed failed, $skipped skipped"
((failed == 0))
