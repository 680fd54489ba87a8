#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Install what is missing, build in build-test/, and run all tests.
set -uo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build='build-test'
limit_s=$((24 * 60))
select=(--no-suite soak)
names=()

usage()
{
	cat <<-END
	Usage: scripts/test.sh [--soak] [TEST...]
	  --soak  the long tests too; no limit of 24 minutes
	  TEST    only tests of that name, such as topo/corelist, or suite, such as pollux:unit
	END
}

while (($#)); do
	case $1 in
	--soak)
		limit_s=0
		select=()
		export PLX_TEST_SOAK=1
		;;
	-h | --help)
		usage
		exit 0
		;;
	-*)
		usage >&2
		die test.sh "unknown option '$1'" 2
		;;
	*) names+=("$1") ;;
	esac
	shift
done

# finish TEXT: the end of a run that did not get as far as testing.
finish()
{
	add_counts 0 1
	die test.sh "$1"
}

scripts/setup.sh || finish 'the packages are not there; see above'
configure "$build" || finish "meson could not configure $build; see above"
meson compile -C "$build" || finish 'the build failed; see above'

# A suite of no test is an error to meson when it is asked for, but not when it is left out.
timeout --foreground --kill-after=15 $limit_s meson test -C "$build" --no-rebuild --print-errorlogs \
	"${select[@]}" "${names[@]}" </dev/null
status=$?

if ((status == 124 || status == 137)); then
	finish "not done after $((limit_s / 60)) minutes, stopped; what ran is in $build/meson-logs/testlog.txt"
fi
count_tests "$build" || finish "no test ran; the names there are: meson test -C $build --list"
((failed || status == 0)) || failed=1
((failed == 0)) || echo "test.sh: the failed tests' output is above, and in $build/meson-logs/testlog.txt"
add_counts "$passed" "$failed"
echo "test.sh: $passed tests passed, $failed failed, $skipped skipped"
((failed == 0))
