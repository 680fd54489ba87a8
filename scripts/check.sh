#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The checks that go beyond scripts/test.sh: layout, static analysis, both compilers with warnings as
# errors, sanitizers, fuzzing. Builds in build-check-*/.
set -uo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

stages=(format static gcc clang numa rdma model asan tsan mutants fuzz)
fuzz_s=${PLX_FUZZ_SECONDS:-10}

usage()
{
	cat <<-END
	Usage: scripts/check.sh [--only STAGE]...
	  format  clang-format on every C file, groff on the man pages
	  static  shellcheck, cppcheck, clang-tidy
	  gcc     everything built with gcc, warnings are errors; each public header alone; the API reference
	  clang   the same with clang
	  numa    the tests of where memory lies, in a guest that has NUMA nodes
	  rdma    links, NetIO and programs over RDMA, in guests that have devices in software (3 minutes)
	  model   the Spin models of rings, lanes, calls and sleep, and each of their steps taken out in turn
	  asan    unit, stress, command-line tests under AddressSanitizer and UndefinedBehaviorSanitizer
	  tsan    unit and stress tests under ThreadSanitizer
	  mutants each memory order and step of rings, lanes, sleep, pools, shm taken away: tests must notice
	  fuzz    each fuzz target for $fuzz_s s (PLX_FUZZ_SECONDS)
	END
}

# sources PATTERN...: the files of the tree that git tracks or would track.
sources()
{
	git ls-files --cached --others --exclude-standard --deduplicate -- "$@" |
		while read -r file; do [[ -f $file ]] && printf '%s\n' "$file"; done
	return 0
}

# build DIR COMPILER [option...]: configure and build everything.
build()
{
	local dir=$1

	export CC=$2
	shift 2
	configure "$dir" "$@" && meson compile -C "$dir"
}

stage_format()
{
	local files pages page said status=0

	mapfile -t files < <(sources '*.c' '*.h')
	clang-format --dry-run -Werror "${files[@]}" || status=1
	mapfile -t pages < <(sources 'doc/man/*.[1-9]')
	for page in "${pages[@]}"; do
		said=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
		[[ -z $said ]] || status=1
		printf '%s' "${said:+$said$'\n'}"
	done
	((status == 0)) || echo 'check.sh: clang-format -i FILE puts the layout right'
	return $status
}

stage_static()
{
	local scripts includes status=0

	mapfile -t scripts < <(sources '*.sh' .ci/run)
	shellcheck -x "${scripts[@]}" || status=1

	mapfile -t includes < <(printf -- '-I%s\n' lib/*/ lib drivers)
	# What it does not know of C11 or cmocka it would guess wrong; the product is what counts.
	cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 --library=posix,gnu \
		--enable=warning,portability --suppress=missingIncludeSystem \
		--suppressions-list=tests/sanitizers/cppcheck.txt -D_GNU_SOURCE -D__x86_64__ \
		-j "$(nproc)" "${includes[@]}" lib drivers apps || status=1

	CC=clang configure build-check-clang -Dwerror=true >/dev/null || return 1
	# Colours, which it insists on, are for terminals; and what it runs is of no interest.
	run-clang-tidy -quiet -p build-check-clang -j "$(nproc)" \
		-extra-arg=-include -extra-arg="$PWD/tests/sanitizers/tidy.h" \
		"^$PWD/(lib|drivers|apps)/(?!base/error\\.c)" 2>/dev/null | sed -e 's/\x1b\[[0-9;]*m//g' -e '/^clang-tidy-14 /d' || status=1
	return $status
}

# headers_alone COMPILER: each public header must compile with nothing before it.
headers_alone()
{
	local header includes status=0

	mapfile -t includes < <(printf -- '-I%s\n' lib/*/)
	while read -r header; do
		"$1" -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Werror "${includes[@]}" \
			-include "$header" -fsyntax-only -x c /dev/null || status=1
	done < <(sources 'lib/*/*.h' | grep -E '/(plx_[a-z]+(_driver)?|netio)\.h$')
	return $status
}

stage_gcc()
{
	build build-check-gcc gcc -Dwerror=true && headers_alone gcc && meson compile -C build-check-gcc docs
}

stage_clang()
{
	build build-check-clang clang -Dwerror=true && headers_alone clang
}

# What test.sh skips where there can be no guest is an error here: not to look is not to pass.
stage_numa()
{
	CC=gcc configure build-check-gcc -Dwerror=true || return 1
	# It builds what its tests need.
	meson test -C build-check-gcc --verbose --suite guest </dev/null || return 1
	count_tests build-check-gcc && ((passed && !skipped)) && return 0
	echo 'check.sh: the guest did not run; its reason is above'
	return 1
}

# Here, too, a guest that cannot be is an error.
stage_rdma()
{
	scripts/test-rdma.sh
}

stage_model()
{
	tests/model/mutate.sh
}

# sanitized DIR TEST...: run tests of a build with a sanitizer; a report fails its test.
sanitized()
{
	local dir=$1

	shift
	"${personality[@]}" meson test -C "$dir" --no-rebuild --print-errorlogs --timeout-multiplier 4 \
		--no-suite soak "$@" </dev/null
}

# ThreadSanitizer's shadow memory leaves no room for some layouts that the kernel chooses at random.
personality=()
setarch "$(uname -m)" -R true 2>/dev/null && personality=(setarch "$(uname -m)" -R)

# Debian's package has its version in the program's name, which the sanitizers do not look for.
symbolizer=$(command -v llvm-symbolizer || command -v llvm-symbolizer-14)

stage_asan()
{
	local symbols=external_symbolizer_path=$symbolizer supp=$PWD/tests/sanitizers

	export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1:$symbols
	# Libraries without frame pointers are walked through too, and small functions stay functions, so
	# that a suppression can name the one call that leaks.
	ASAN_OPTIONS+=:fast_unwind_on_malloc=0
	export LSAN_OPTIONS=suppressions=$supp/lsan.supp:print_suppressions=0
	export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:$symbols
	build build-check-asan clang -Dwerror=true -Db_sanitize=address,undefined -Db_lundef=false \
		"-Dc_args=-fno-inline -fno-optimize-sibling-calls" &&
		sanitized build-check-asan --suite unit --suite stress --suite fuzz &&
		sanitized build-check-asan cli info
}

stage_tsan()
{
	export TSAN_OPTIONS=suppressions=$PWD/tests/sanitizers/tsan.supp:halt_on_error=1
	TSAN_OPTIONS+=:second_deadlock_stack=1:external_symbolizer_path=$symbolizer
	build build-check-tsan clang -Dwerror=true -Db_sanitize=thread -Db_lundef=false &&
		sanitized build-check-tsan --suite unit --suite stress
}

stage_mutants()
{
	local subject status=0

	for subject in tests/mutate/*_orders.sh; do
		CC=clang "$subject" || status=1
	done
	return $status
}

# A target is an executable tests/fuzz/fuzz_NAME; its corpus, if it has one, tests/fuzz/corpus/NAME.
stage_fuzz()
{
	local target name corpus work names status=0

	CC=clang configure build-check-fuzz -Dwerror=true -Dfuzz=true -Db_lundef=false || return 1
	mapfile -t names < <(meson introspect --targets build-check-fuzz |
		jq -r '.[].name | select(startswith("fuzz_"))')
	((${#names[@]} == 0)) || meson compile -C build-check-fuzz "${names[@]}" || return 1
	work=$(mktemp -d) || return 1
	for name in "${names[@]}"; do
		target=build-check-fuzz/tests/fuzz/$name
		name=${name#fuzz_}
		mkdir "$work/$name"
		corpus=tests/fuzz/corpus/$name
		# What it finds new goes to the first folder; only a crash is kept, in build-check-fuzz.
		"$target" -max_total_time="$fuzz_s" -timeout=5 -rss_limit_mb=2048 -print_final_stats=1 \
			-verbosity=0 -artifact_prefix="build-check-fuzz/$name-" \
			"$work/$name" ${corpus:+$([[ -d $corpus ]] && echo "$corpus")} </dev/null || status=1
	done
	rm -rf "$work"
	echo "fuzz: ${#names[@]} targets, $fuzz_s s each"
	return $status
}

only=()
while (($#)); do
	case $1 in
	--only)
		[[ " ${stages[*]} " == *" ${2:-?} "* ]] ||
			die check.sh "--only ${2-}: give one of ${stages[*]}" 2
		only+=("$2")
		shift
		;;
	-h | --help)
		usage
		exit 0
		;;
	*)
		usage >&2
		die check.sh "unknown option '$1'" 2
		;;
	esac
	shift
done
((${#only[@]})) && stages=("${only[@]}")

scripts/setup.sh || die check.sh 'the packages are not there; see above'

good=() bad=()
for stage in "${stages[@]}"; do
	echo "== check.sh: $stage"
	began=$SECONDS
	# In a shell of its own, so that what one stage exports does not reach the next.
	if ("stage_$stage"); then
		good+=("$stage")
		echo "== check.sh: $stage passed in $((SECONDS - began)) s"
	else
		bad+=("$stage")
		echo "== check.sh: $stage FAILED after $((SECONDS - began)) s; alone: scripts/check.sh --only $stage"
	fi
done
add_counts ${#good[@]} ${#bad[@]}
echo "check.sh: ${#good[@]} checks passed, ${#bad[@]} failed${bad[*]:+: ${bad[*]}}"
((${#bad[@]} == 0))
