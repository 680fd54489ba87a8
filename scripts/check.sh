#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#| Checks beyond scripts/test.sh. Builds in build-test/ and build-check-*/.
#| Usage: scripts/check.sh [--slices MINUTES | --all | --only NAME]... [--no-rerun]
#|   Without options: the checks of every run
#|   --slices MINUTES  also nightly slices: one by the number of commits, and those whose folders the last
#|                     20 commits touched, while they fit into MINUTES since the start. The first is
#|                     reported but not counted if it fails and they did not touch its folders
#|   --all             also all nightly slices
#|   --only NAME       one check or slice; may be repeated
#|   --no-rerun        do not run failed tests again (scripts/test.sh --help)
set -uo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# The commits whose files count as touched.
recent=20
# In the folder of test.sh, which already contains most of the build.
build_gcc='build build-test gcc -Dwerror=true'

checks=() slices=()
declare -A about=() command=() seconds=() paths=()

# check NAME TEXT COMMANDS: a check that every run makes.
check()
{
	checks+=("$1") about[$1]=$2 command[$1]=$3
}

# slice NAME SECONDS PATHS TEXT COMMANDS: a nightly check, its duration on two CPUs including the build, and the
# folders that trigger it when they change.
slice()
{
	slices+=("$1") seconds[$1]=$2 paths[$1]=$3 about[$1]=$4 command[$1]=$5
}

check format 'layout of C files and Markdown, phrases' check_format
check static "shellcheck, cppcheck; clang-tidy on files that the last $recent commits touched" check_static
check gcc 'gcc, warnings are errors; each public header alone; the API reference' \
	"$build_gcc && headers_alone gcc build-test && meson compile -C build-test docs"
check clang 'clang, warnings are errors; each public header alone' \
	"build build-check-clang clang-$llvm -Dwerror=true && headers_alone clang-$llvm build-check-clang"
check optimized 'a release build without tests: warnings are errors, and its installed programs start' check_optimized
check asan 'the tier fast under AddressSanitizer and UndefinedBehaviorSanitizer' 'asan --suite fast'
check tsan 'the tier fast under ThreadSanitizer' 'tsan --suite fast'
check fuzz 'each fuzz target for 5 s' 'fuzz -max_total_time=5'

declare -A mutants_s=([lane]=280 [pool]=110 [ring]=270 [shm]=40 [sleep]=300)
for subject in lane pool ring shm sleep; do
	slice "mutants-$subject" "${mutants_s[$subject]}" "tests/mutate $(sed -n 's/^subject \([^ ]*\) .*/\1/p' tests/mutate/${subject}_orders.sh)" \
		"each memory order and step of $subject removed: a test must fail" "CC=clang-$llvm tests/mutate/${subject}_orders.sh"
done
slice model 170 'tests/model lib/ring lib/lcore drivers/shm' \
	'the Spin models, and each of their steps removed' tests/model/mutate.sh
slice tidy 300 'lib drivers apps' 'clang-tidy on all files' 'tidy lib drivers apps'
# One at a time: races need their threads to run at the same time.
slice stress 240 'tests/stress lib drivers' 'stress tests, plain and with both sanitizers' \
	'sanitizer_jobs=1; nightly_tests --num-processes 1 --suite stress && tsan --suite stress && asan --suite stress'
slice ends 2300 'tests/unit/ends lib/lcore lib/fabric lib/rpc lib/netio lib/session' \
	'each call that ends something, in each callback, under both sanitizers' 'asan --suite ends && tsan --suite ends'
slice storm 2500 'tests/stress lib/fabric drivers' \
	'500 000 messages on 100 000 links of each provider, whose callbacks do anything, under both sanitizers' \
	'export PLX_TEST_SOAK=1; sanitizer_jobs=1; asan stress/link_storm_{tcp,shm,auto} && tsan stress/link_storm_{tcp,shm,auto}'
slice sleeps 240 'drivers/prov drivers/shm drivers/tcp' '10^6 sleeps over plx_shm and over plx_tcp' \
	'export PLX_TEST_SOAK=1; timeout_multiplier=10; nightly_tests stress/prov_sleep'
slice asan-unit 260 'tests/unit lib drivers' 'all unit tests under AddressSanitizer' 'asan --suite unit'
slice tsan-unit 320 'tests/unit lib drivers' 'all unit tests under ThreadSanitizer' 'tsan --suite unit'
slice numa 20 'tests/guest lib/mem lib/topo' 'memory placement, in a guest with NUMA nodes' 'guest numa/guest'
slice rdma 300 'tests/rdma drivers lib/fabric lib/netio' 'links, NetIO and programs over RDMA devices in software, in guests' \
	'guest rdma/loop rdma/pair'
slice release 330 'meson.build config scripts drivers' 'the tier fast on the other release of Debian' other_release
slice minimal 200 'meson.build meson_options.txt lib/eal drivers/drivers.c apps/info tests/unit/meson.build tests/apps/meson.build' \
	'the tier fast without libibverbs, libconfig and SQLite, and without the programs or with them' minimal
slice fuzz-long 360 'tests/fuzz lib/netio lib/rpc lib/topo apps/params drivers/tcp' 'each fuzz target for 40 s' 'fuzz -max_total_time=40'
slice nightly 400 'tests/apps tests/perf lib drivers apps' 'the tier nightly, without stress, ends and guests' \
	'nightly_tests --suite nightly --no-suite stress --no-suite guest --no-suite ends'

usage()
{
	local name

	sed -n 's/^#| \{0,1\}//p' scripts/check.sh
	echo 'Checks of every run, and nightly slices with their seconds:'
	for name in "${checks[@]}" "${slices[@]}"; do
		printf '    %-14s %s%s\n' "$name" "${about[$name]}" "${seconds[$name]+ (${seconds[$name]} s)}"
	done
}

# build DIR COMPILER [option...]: configure and build everything.
build()
{
	CC=$2 configure "$1" "${@:3}" && CC=$2 meson compile -C "$1"
}

# complain TEXT: report a failure, and go through the rest.
complain()
{
	echo "check.sh: $1"
	status=1
}

check_format()
{
	local status=0

	sources '*.c' '*.h' | xargs "clang-format-$llvm" --dry-run -Werror || complain "clang-format-$llvm -i FILE fixes the layout"
	scripts/phrases.sh || status=1
	# Tables, code, images and the tests that a line names may be wider.
	! sources '*.md' | LC_ALL=C.UTF-8 xargs grep -nP '^(?!\||    |\t|!\[)(?!.*<!--).{121,}' ||
		complain 'Markdown wraps at 120 columns'
	! grep -nvE '^(#|[a-z]+/[a-z0-9_]+ 20[0-9]{2}-[0-9]{2}-[0-9]{2} [^ ])' tests/unstable ||
		complain 'a line of tests/unstable is: TEST YYYY-MM-DD WHAT WAS SEEN'
	return $status
}

check_static()
{
	local includes queue touched status=0

	sources '*.sh' .ci/run | xargs shellcheck -x || status=1

	# Other versions report other findings.
	if ! cppcheck --version | grep -q 'Cppcheck 2\.10'; then
		echo "check.sh: cppcheck skipped: not version 2.10, but $(cppcheck --version)"
	else
		mapfile -t includes < <(printf -- '-I%s\n' lib/*/ lib/*/*/ lib drivers drivers/*/ drivers/*/*/)
		# It reads no system headers, but must know the list macros, which assign.
		queue=$(echo '#include <sys/queue.h>' | cc -E -x c - | sed -n 's/^# 1 "\(.*queue\.h\)".*/\1/p' | head -n 1)
		# It would misread what it does not know of C11 or cmocka; the product is what counts.
		cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 --library=posix,gnu \
			--enable=warning,portability --suppress=missingIncludeSystem \
			--suppressions-list=tests/sanitizers/cppcheck.txt -D_GNU_SOURCE -D__x86_64__ \
			--include="$queue" -j "$(nproc)" "${includes[@]}" lib drivers apps || status=1
	fi

	mapfile -t touched < <(touched_paths | grep -E '^(lib|drivers|apps)/.*\.c$')
	((${#touched[@]} == 0)) || tidy "${touched[@]}" || status=1
	return $status
}

# tidy PATH...: clang-tidy on files or folders.
tidy()
{
	local any

	CC=clang-$llvm configure build-check-clang -Dwerror=true >/dev/null || return 1
	any=$(printf '|%s' "$@")
	# Remove its colours and command lines from the output.
	"run-clang-tidy-$llvm" -quiet -p build-check-clang -j "$(nproc)" \
		-extra-arg=-include -extra-arg="$PWD/tests/sanitizers/tidy.h" \
		"^$PWD/(?!lib/base/error\\.c)(${any#|})" 2>/dev/null |
		sed -e 's/\x1b\[[0-9;]*m//g' -e '/clang-tidy-'"$llvm"' -/d' -e '/^[0-9]* warnings* generated\.$/d' -e '/^$/d'
}

# headers_alone COMPILER BUILD: each installed header and macro, in strict C and C++.
headers_alone()
{
	meson introspect --installed "$2" | jq -r 'keys[] | select(endswith(".h"))' | xargs tests/headers/alone.sh "$1"
}

# Optimizers warn about more. Installed below a prefix that the loader does not search.
check_optimized()
{
	local prefix=$PWD/build-check-optimized/installed program

	build build-check-optimized gcc -Dwerror=true -Dbuildtype=release -Dtests=false "-Dprefix=$prefix" &&
		meson install -C build-check-optimized --no-rebuild --quiet || return 1
	for program in "$prefix"/bin/*; do
		env -u LD_LIBRARY_PATH "$program" --version </dev/null || return 1
	done
}

# run_tests DIR OPTION...: meson test, then the failures again.
run_tests()
{
	rm -f "$1"/meson-logs/testlog.{json,txt}
	meson_test 0 "$@" && return 0
	count_tests "$1" && ((failed)) || return 1
	rerun_failed "$1"
	show_results "$1"
	count_tests "$1" && ((failed == 0))
}

# nightly_tests SUITE...: tests of the build that check gcc makes.
nightly_tests()
{
	$build_gcc && run_tests build-test --no-rebuild "$@"
}

# guest TEST...: a test that is skipped elsewhere fails here: without its guest nothing was tested.
guest()
{
	nightly_tests "$@" || return 1
	count_tests build-test && ((passed && !skipped)) && return 0
	echo 'check.sh: the guest did not run; its reason is above'
	return 1
}

# ThreadSanitizer's shadow memory does not fit with some random memory layouts of the kernel.
setarch "$(uname -m)" -R true 2>/dev/null && personality=(setarch "$(uname -m)" -R)

# The sanitizers do not look up versioned symbols.
symbols=external_symbolizer_path=$(command -v "llvm-symbolizer-$llvm")

sanitizer_jobs=$((2 * $(nproc)))

# sanitized NAME SANITIZERS C_ARGS SUITE...: build and run these suites; a report fails its test.
sanitized()
{
	timeout_multiplier=4
	CC=clang-$llvm configure "build-check-$1" -Dwerror=true -Db_lundef=false "-Db_sanitize=$2" "-Dc_args=$3" &&
		run_tests "build-check-$1" --num-processes "$sanitizer_jobs" "${@:4}"
}

# Unwinds through libraries without frame pointers too, and keeps small functions, so that a suppression can name the one
# call that leaks.
asan()
{
	export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1:fast_unwind_on_malloc=0:$symbols
	export LSAN_OPTIONS=suppressions=$PWD/tests/sanitizers/lsan.supp:print_suppressions=0
	export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:$symbols
	sanitized asan address,undefined '-fno-inline -fno-optimize-sibling-calls' "$@"
}

tsan()
{
	export TSAN_OPTIONS=suppressions=$PWD/tests/sanitizers/tsan.supp:halt_on_error=1:second_deadlock_stack=1:$symbols
	sanitized tsan thread '' "$@"
}

other_release()
{
	local other

	other=$(tr ' ' '\n' <<<"$releases" | grep -vx "$(. /etc/os-release && echo "${VERSION_CODENAME-}")" | head -n 1)
	scripts/test-on.sh "$other" scripts/test.sh --werror --fast
}

# Without optional parts: first with the programs, then without.
minimal()
{
	local apps

	for apps in enabled disabled; do
		build build-check-minimal gcc -Dwerror=true -Dauto_features=disabled -Dapps=$apps &&
			run_tests build-check-minimal --suite fast || return 1
	done
	run_tests build-check-minimal apps/install apps/examples
}

# A target is an executable tests/fuzz/fuzz_NAME; its corpus, if any, tests/fuzz/corpus/NAME. fuzz LIMIT: run each one up to
# a libFuzzer limit.
fuzz()
{
	local limit=$1 name folders work names status=0

	CC=clang-$llvm configure build-check-fuzz -Dwerror=true -Dfuzz=true -Db_lundef=false || return 1
	mapfile -t names < <(meson introspect --targets build-check-fuzz |
		jq -r '.[].name | select(startswith("fuzz_")) | ltrimstr("fuzz_")')
	meson compile -C build-check-fuzz "${names[@]/#/fuzz_}" || return 1
	work=$(mktemp -d) || return 1
	for name in "${names[@]}"; do
		# New inputs go to the first folder; only crashes are kept, in build-check-fuzz.
		folders=("$work/$name")
		mkdir "${folders[0]}"
		[[ ! -d tests/fuzz/corpus/$name ]] || folders+=("tests/fuzz/corpus/$name")
		"build-check-fuzz/tests/fuzz/fuzz_$name" "$limit" -timeout=5 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
			-artifact_prefix="build-check-fuzz/$name-" "${folders[@]}" </dev/null || status=1
	done
	rm -rf "$work"
	echo "fuzz: ${#names[@]} targets, each with $limit"
	return $status
}

# touched_paths: files changed by recent commits and in the working tree.
touched_paths()
{
	{ git log -$recent --format= --name-only; git status --porcelain | cut -c4-; } | sort -u
}

good=() bad=() uncounted=()

# run NAME [GATES]: its failure counts, unless GATES is 0.
run()
{
	local name=$1 gates=${2-1} began=$SECONDS ended

	echo "== check.sh: $name: ${about[$name]}"
	# In a subshell, so that exports of one check do not reach the next. This script reports whether it passed.
	if (
		((gates)) || unset PLX_RESULTS
		eval "${command[$name]}"
	); then
		good+=("$name") ended=passed
	elif ((gates)); then
		bad+=("$name") ended="FAILED, alone: scripts/check.sh --only $name"
	else
		uncounted+=("$name") ended="failed, and does not count: the last $recent commits touched none of its folders"
	fi
	echo "== check.sh: $name: $((SECONDS - began)) s, $ended"
}

# run_slices MINUTES: the next slice in rotation, so that each one runs eventually; then the touched ones, starting
# from the next.
run_slices()
{
	local limit_s=$((60 * $1)) count name i gates done=() late=()

	count=$(git rev-list --count HEAD) || die 'not in a git repository'
	for ((i = 0; i < ${#slices[@]}; i++)); do
		name=${slices[(count + i) % ${#slices[@]}]} gates=1
		touched_paths | grep -qE "^(${paths[$name]// /|})(/|\$)" || gates=0
		((i == 0 || gates)) || continue
		if ((SECONDS + seconds[$name] > limit_s)); then
			late+=("$name")
			continue
		fi
		rerun_until=$((limit_s + 60))
		run "$name" $gates
		done+=("$name")
	done
	echo "check.sh: slices that ran: ${done[*]:-none}; that $1 minutes left no time for: ${late[*]:-none}"
}

minutes='' all=0 only=()
while (($#)); do
	case $1 in
	--slices)
		[[ ${2-} =~ ^[1-9][0-9]{0,3}$ ]] || die "--slices '${2-}': give minutes, 1 to 9999" 2
		minutes=$2
		shift
		;;
	--all) all=1 ;;
	--no-rerun) rerun=0 ;;
	--only)
		[[ -n ${2-} && -n ${about[$2]-} ]] ||
			die "--only '${2-}': give one of ${checks[*]} ${slices[*]}" 2
		only+=("$2")
		shift
		;;
	*) other_option "$1" ;;
	esac
	shift
done

git rev-parse --is-inside-work-tree >/dev/null 2>&1 ||
	die 'needs git, and the tree in a git repository, to list the files to check'
scripts/setup.sh || die 'packages are missing; see above'

((${#only[@]})) || only=("${checks[@]}")
((!all)) || only=("${checks[@]}" "${slices[@]}")
for name in "${only[@]}"; do
	run "$name"
done
[[ -z $minutes ]] || run_slices "$minutes"
report counts ${#good[@]} ${#bad[@]}
((${#bad[@]} == 0)) || report failed "${bad[@]/#/check.sh }"
((${#uncounted[@]} == 0)) || report uncounted "${uncounted[@]/#/check.sh }"
echo "check.sh: ${#good[@]} checks passed, ${#bad[@]} failed${bad[*]:+: ${bad[*]}}${uncounted[*]:+; not counted: ${uncounted[*]}}"
((${#bad[@]} == 0))
