#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# .ci/run, test.sh and check.sh run a failed test again, alone, and count it as the rule of tests/unstable says; a slice
# whose folders were not touched does not count. The tests are fakes: meson is a script.
# shellcheck disable=SC2016,SC2034,SC2317 # check expands the conditions, which call functions
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

if ! command -v git >/dev/null; then
	echo 'check.sh needs git: apt-get install git'
	exit 77
fi

tree=$temp/tree
mkdir -p "$tree/.ci" "$tree/tests" "$tree/build-test" "$temp/bin"
cp -r "$PLX_SOURCE_ROOT/scripts" "$PLX_SOURCE_ROOT/config" "$tree"
cp "$PLX_SOURCE_ROOT/.ci/run" "$tree/.ci"
: >"$tree/build-test/build.ninja"

fake()
{
	{ echo '#!/bin/bash' && cat; } >"$1"
	chmod +x "$1"
}
fake "$tree/scripts/setup.sh" <<<'exit 0'
fake "$temp/bin/ninja" <<<'exit 0'
# A test b/N passes when it runs for the N+1st time; b/0 always. `runs` has a line per run.
fake "$temp/bin/meson" <<'END'
[[ $1 != introspect ]] || exec printf '[%s]' "$(sed 's|.*|{"name": "&", "suite": ["fast", "slow"]}|' "$fakes/tests" | paste -sd ,)"
[[ $1 == test ]] || exit 0
logs=$3/meson-logs/testlog.json bad=0
shift 3
names=()
while (($#)); do
	case $1 in
	--logbase) logs=${logs%/*}/$2.json && shift ;;
	--timeout-multiplier | --num-processes | --suite) shift ;;
	--*) ;;
	*) names+=("$1") ;;
	esac
	shift
done
((${#names[@]})) || mapfile -t names <"$fakes/tests"
mkdir -p "${logs%/*}"
: >"$logs"
for name in "${names[@]}"; do
	echo "$name" >>"$fakes/runs"
	result=OK
	if (($(grep -c "^$name\$" "$fakes/runs") <= ${name#*/})); then
		result=FAIL bad=1
	fi
	echo "{\"name\": \"pollux:fast / $name\", \"result\": \"$result\", \"duration\": 1.5, \"stdout\": \"$name says $result\"}" >>"$logs"
done
exit $bad
END
export fakes=$temp PATH=$temp/bin:$PATH

# run TESTS COMMAND...: sets `got` and `status`; PLX_RESULTS of a .ci/run around this test is not for the fakes.
run()
{
	tr ' ' '\n' <<<"$1" >"$temp/tests"
	: >"$temp/runs"
	got=$(cd "$tree" && env -u PLX_RESULTS "${@:2}" 2>&1 </dev/null)
	status=$?
	echo "$got" >"$temp/run.err"
}
lists() { grep -qxF -- "$1" <<<"$got"; }
runs_of() { grep -c "^$1\$" "$temp/runs"; }

: >"$tree/tests/unstable"
run 'b/0 b/1 b/2' scripts/test.sh
check 'a test that passes when run again, the first or the second time, counts as passed' \
	'((status == 0)) && lists "test.sh: 3 passed, 0 failed, 0 skipped" && (($(runs_of b/0) == 1 && $(runs_of b/2) == 3))'
check '... and is listed with the output of its failure' '[[ $got == *"--- b/2: "*"b/2 says FAIL"*"unstable: b/1 b/2;"* ]]'
run 'b/0 b/3' scripts/test.sh
check 'one that fails three times has failed' \
	'((status == 1)) && lists "test.sh: 1 passed, 1 failed, 0 skipped" && (($(runs_of b/3) == 3)) && [[ $got == *"failed: b/3;"* ]]'
run 'b/0 b/1' scripts/test.sh --no-rerun
check '--no-rerun runs none again' '((status == 1 && $(runs_of b/1) == 1)) && lists "test.sh: 1 passed, 1 failed, 0 skipped"'
run "b/1 $(printf 'x%s/1 ' {1..10})" scripts/test.sh
check 'after 11 failures none is run again' '((status == 1 && $(runs_of b/1) == 1)) && [[ $got == *"11 tests failed: more than 10"* ]]'

printf 'b/1 2026-01-0%d slow\n' 1 2 >"$tree/tests/unstable"
run 'b/1' scripts/test.sh
check 'a test with two lines in tests/unstable is run again' '((status == 0))'
printf 'b/1 2026-01-0%d slow\n' 1 2 3 >"$tree/tests/unstable"
run 'b/1 b/2' scripts/test.sh
check '... with three lines it is not' \
	'((status == 1 && $(runs_of b/1) == 1 && $(runs_of b/2) == 3)) && lists "not run again: b/1 stands in tests/unstable three times; fix it"'

# All checks but these pass at once.
sed -i '/^good=() bad=()/i check_format() { :; }; check_static() { :; }; check_optimized() { :; }; build() { :; }; headers_alone() { :; }; fuzz() { :; }' \
	"$tree/scripts/check.sh"
git -C "$tree" init -q
git -C "$tree" -c user.name=x -c user.email=x@x commit -q --allow-empty -m 'x: begin'
echo '/*' >"$tree/.gitignore"
: >"$tree/tests/unstable"
run 'b/0 b/1' scripts/check.sh --only asan
check 'check.sh runs tests again too' '((status == 0 && $(runs_of b/1) == 2))'
run 'b/3' scripts/check.sh --only asan --no-rerun
check '... not with --no-rerun' '((status == 1 && $(runs_of b/3) == 1))'

# Its only slice fails; the slice's folder is scripts/.
sed -i -e '/^slice()/,/^}/d' -e '/^check()/i slice() { :; }' \
	-e '/^usage()/i slices=(fails) about[fails]=it command[fails]=false seconds[fails]=1 paths[fails]=scripts' "$tree/scripts/check.sh"
run 'b/0 b/1' .ci/run
check 'a slice whose folders no commit touched does not count' '((status == 0)) && lists "uncounted: check.sh fails" && lists "failed: none"'
check '.ci/run lists what is unstable, and counts it as passed' \
	'lists "unstable: b/1" && [[ $got == *"unstable: b/1"*"b/1 says FAIL"*"failed: none"* ]] &&
		[[ $(tail -n 1 <<<"$got") == "10 passed, 0 failed" ]]'
git -C "$tree" add -f scripts
git -C "$tree" -c user.name=x -c user.email=x@x commit -q -m 'x: touch'
run 'b/0' .ci/run
check '... one whose folders a commit touched counts' '((status == 1)) && lists "failed: check.sh fails" && [[ $got == *", 1 failed" ]]'
run 'b/0 b/1' .ci/run --no-rerun
check '.ci/run passes --no-rerun on' '((status == 1)) && lists "unstable: none" && [[ $got == *"failed: b/1"* ]]'
run 'b/0' .ci/run --bogus
check 'its usage' '((status == 2)) && [[ $got == *"the only option is --no-rerun"* ]]'
exit $failed
