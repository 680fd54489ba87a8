# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Shared by scripts. Source it; it changes to the top of the source tree.

# shellcheck disable=SC2034
folder=$PWD # in which the script was started
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
script=${0##*/}

# One version of clang and its tools everywhere, so that layout and findings do not depend on the host.
# shellcheck disable=SC2034 # used by scripts that source this
llvm=19
# Supported Debian releases, by code name.
# shellcheck disable=SC2034
releases=$(sed -n 's/^releases //p' config/packages.debian)

# die TEXT [STATUS]
die()
{
	printf '%s: %s\n' "$script" "$1" >&2
	exit "${2:-1}"
}

# The help of a script: its lines that begin with #|
usage()
{
	sed -n 's/^#| \{0,1\}//p' "scripts/$script"
}

# other_option OPTION: --help, or an unknown one.
other_option()
{
	if [[ $1 == -h || $1 == --help ]]; then
		usage
		exit 0
	fi
	usage >&2
	die "unknown option '$1'" 2
}

# The mirror from which this host's apt takes Debian's main component.
debian_registry()
{
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL) $(COMPONENT)' 'Created-By: Packages' |
		awk '$2 == "Debian" && $3 == "Debian" && $4 == "main" { print $1; exit }'
}

# sources [PATTERN...]: files that git tracks or would track.
sources()
{
	git ls-files --cached --others --exclude-standard --deduplicate -- "$@" |
		while read -r file; do [[ ! -f $file ]] || printf '%s\n' "$file"; done
}

# configure DIR [meson option...]: set up or update a build folder.
configure()
{
	local dir=$1
	shift

	# Folders of another version of meson are unusable. Other files in the folder, such as locks, stay.
	if [[ -f $dir/build.ninja ]] && (($#)) && ! meson configure "$dir" "$@"; then
		rm -rf "$dir"/build.ninja "$dir"/meson-*
	fi
	if [[ -f $dir/build.ninja ]]; then
		# Updates meson's list of tests and programs.
		ninja -C "$dir" build.ninja
	else
		meson setup "$dir" "$@"
	fi
}

# In front of `meson test`; and what the time limits of tests are multiplied by.
personality=()
timeout_multiplier=1

# meson_test LIMIT_S DIR [option...]: `meson test` without input, for that time (0: without a limit).
meson_test()
{
	PLX_TEST_TIMEOUT_MULTIPLIER=$timeout_multiplier timeout --foreground --kill-after=15 "$1" \
		"${personality[@]}" meson test -C "$2" --timeout-multiplier "$timeout_multiplier" "${@:3}" </dev/null 2>&1
}

# In front of jq filters of a log of `meson test`. Only rerun_failed makes a result UNSTABLE.
test_log='
	def test_name: .name | sub(".* / "; "");
	def passed: .result | IN("OK", "EXPECTEDFAIL", "UNSTABLE");
	def failed: (passed or .result == "SKIP") | not;
	def unstable: .result == "UNSTABLE";'

# count_tests DIR: set passed, failed and skipped from the log of DIR's last `meson test`.
count_tests()
{
	passed=0 failed=0 skipped=0
	[[ -e $1/meson-logs/testlog.json ]] || return 1
	passed=$(tests_that passed "$1" | wc -l) failed=$(tests_that failed "$1" | wc -l)
	skipped=$(tests_that '.result == "SKIP"' "$1" | wc -l)
}

# tests_that STATE DIR: the names of tests that failed, or that are unstable.
tests_that()
{
	jq -r "$test_log select($1) | test_name" "$2/meson-logs/testlog.json"
}

# 0 after --no-rerun.
rerun=1
# More failures have a common cause, which is no test's fault.
rerun_max=10
# The reruns after one `meson test` end then, in SECONDS of the script. Default: after 3 minutes.
rerun_until=''

# rerun_failed DIR: run each failed test of DIR's last `meson test` again, alone, up to twice. The log then has the result
# UNSTABLE for one that passes.
rerun_failed()
{
	local log=$1/meson-logs/testlog.json until_s=${rerun_until:-$((SECONDS + 180))} names name attempt result

	((rerun)) || return 0
	mapfile -t names < <(tests_that failed "$1")
	if ((${#names[@]} > rerun_max)); then
		echo "${#names[@]} tests failed: more than $rerun_max are not run again"
		return 0
	fi
	for name in "${names[@]}"; do
		if (($(grep -c "^$name " tests/unstable) >= 3)); then
			echo "not run again: $name stands in tests/unstable three times; fix it"
			continue
		fi
		for attempt in 1 2; do
			if ((SECONDS >= until_s)); then
				echo "not run again: $name, as no time is left"
				break
			fi
			rm -f "$1/meson-logs/rerun.json"
			meson_test $((until_s - SECONDS)) "$1" --no-rebuild --logbase rerun --num-processes 1 "$name" >/dev/null
			result=$(jq -r .result "$1/meson-logs/rerun.json" 2>/dev/null)
			echo "run again, alone ($attempt of 2): $name ${result:-TIMEOUT}"
			[[ $result == OK || $result == EXPECTEDFAIL ]] || continue
			jq -c --arg name "$name" "$test_log"'if test_name == $name then .result = "UNSTABLE" else . end' "$log" >"$log.new" &&
				mv "$log.new" "$log"
			break
		done
	done
}

# show_results DIR: of DIR's last `meson test`, the unstable and the failed tests, each with the end of its output.
show_results()
{
	local state names

	for state in unstable failed; do
		names=$(tests_that $state "$1" | paste -sd ' ')
		[[ -n $names ]] || continue
		jq -r "$test_log select($state)"' |
			"\n--- \(test_name): \(if unstable then "passed when run again, alone; before that failed" else .result end)" +
				" after \(.duration * 10 | round / 10) s",
			(((.stdout // "") + (.stderr // "")) | split("\n") | .[-60:] | join("\n"))' "$1/meson-logs/testlog.json" |
			tee -a ${PLX_RESULTS:+"$PLX_RESULTS/$state-output"}
		echo "$state: $names; the whole output is in $1/meson-logs/testlog.txt"
		report "$state" "$names"
	done
}

# report FILE TEXT...: a line for a caller that runs several scripts and adds up, in the folder PLX_RESULTS. In `counts`:
# passed, failed; in the others names.
report()
{
	[[ -z ${PLX_RESULTS-} ]] || echo "${@:2}" >>"$PLX_RESULTS/$1"
}
