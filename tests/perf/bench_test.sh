#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench.sh without its parts: a signal ends it with all that it started, only one of a checkout runs at a time, it refuses
# folders that it cannot write before it builds, and accepts any path. The build and the measured programs are fakes.
# shellcheck disable=SC2016,SC2034 # check expands the conditions
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../apps/checks.sh"

temp=$(mktemp -d)
trap 'end_blocked; rm -rf "$temp"' EXIT
tree="$temp/it's \\a tree" results="$temp/it's \\results"
mkdir -p "$tree" "$temp/bin" "$temp/blocked"
cp -r "$PLX_SOURCE_ROOT/scripts" "$PLX_SOURCE_ROOT/meson.build" "$tree"
export TMPDIR=$temp # of the lock

# made_up FILE: a program from standard input. If `blocks` names it, it starts a process, and neither ends at SIGTERM.
export blocks='' blocked=$temp/blocked
made_up()
{
	{
		echo '#!/bin/bash'
		echo 'if [[ ${0##*/} == "$blocks" ]]; then
			trap "" TERM
			sleep 1000 &
			echo $! >"$blocked/child"
			echo $$ >"$blocked/pid"
			wait
		fi'
		cat
	} >"$1"
	chmod +x "$1"
}
made_up "$tree/scripts/setup.sh" <<<'exit 0'
made_up "$temp/bin/ninja" <<<'exit 0'
made_up "$temp/bin/meson" <<<'[[ $1 != introspect ]] || for name in hiccup plx-perf; do
	printf "%s" "{\"name\": \"$name\", \"type\": \"executable\", \"filename\": [\"$bin/$name\"]}"
done | jq -s .'
made_up "$temp/bin/hiccup" <<<'echo quiet'
made_up "$temp/bin/plx-perf" <<<'[[ $1 != ring ]] || for row in {spsc,mpsc,mpmc}\",\"lcores\":{1,2},\"burst\":{1,8}; do
	echo "{\"name\": \"ring\", \"variant\": \"$row, \"state\": \"one\", \"rounds\": 3, \"cycles_per_elem\": $((RANDOM + 1)).5,
		\"cycles_least\": 1.25, \"cycles_greatest\": 2.75}"
done | jq -s "{rows: .}" >"${@: -1}"'
export bin=$temp/bin PATH=$temp/bin:$PATH
bench=("$tree/scripts/bench.sh" --only rings --quick --out "$results")

# shellcheck disable=SC2317 # wait_until calls both
# has_ended PID: a process that nobody waits for stays a zombie if init reaps none.
has_ended()
{
	[[ ! -e /proc/$1 ]] || grep -qs ') Z ' "/proc/$1/stat"
}

# shellcheck disable=SC2317
both_have_ended()
{
	[[ -s $blocked/pid ]] && has_ended "$(<"$blocked/pid")" && has_ended "$(<"$blocked/child")"
}

end_blocked()
{
	cat "$blocked"/* 2>/dev/null | xargs -r kill -KILL 2>/dev/null
	rm -f "$blocked"/*
}

# interrupt PROGRAM SIGNAL STATUS: while that program runs. Only bench.sh gets the signal: `timeout` puts its programs into
# another process group.
interrupt()
{
	local pid

	blocks=$1 env --default-signal=INT "${bench[@]}" >"$temp/said" 2>"$temp/bench.err" &
	pid=$!
	wait_until '[[ -s $blocked/pid ]]'
	kill "-$2" "$pid"
	ends "$pid"
	check "SIG$2 while $1 runs ends bench.sh and all that it has started" "(($? == $3)) && wait_until both_have_ended"
	end_blocked
}
interrupt meson INT 130
interrupt ninja TERM 143
interrupt plx-perf TERM 143

blocks=hiccup "${bench[@]}" >"$temp/first" 2>"$temp/first.err" &
first=$!
wait_until '[[ -s $blocked/pid ]]'
echo kept >"$results/runs/lines"
got=$("${bench[@]}" 2>&1)
check "a second one is refused, and its error names the first: $got" \
	'(($? == 1)) && [[ $got == *"another bench.sh runs in this checkout (process $first, since 20"*"wait for it, or end it" ]]'
check '... leaves the results of the first alone' '[[ $(<"$results/runs/lines") == kept ]]'
got=$("${bench[@]}" --out "$temp/other" 2>&1)
check '... and makes no folder' '(($? == 1)) && [[ $got == *"another bench.sh runs"* && ! -e $temp/other ]]'
got=$("$tree/scripts/bench.sh" --serve 2>&1)
check '... so is --serve, which would build' '(($? == 1)) && [[ $got == *"another bench.sh runs"* ]]'
got=$("${bench[@]}" --out /dev/null/x 2>&1)
check '... wrong arguments are refused at any time' '(($? == 2)) && [[ $got == *"--out /dev/null/x: cannot be made"* ]]'
mkdir "$temp/other tree"
cp -r "$tree/scripts" "$tree/meson.build" "$temp/other tree"
got=$("$temp/other tree/scripts/bench.sh" --only rings --quick --out "$temp/others results" 2>&1)
check 'one of another checkout runs, and reports it' '(($? == 0)) && [[ $got == *"another bench.sh runs on this host"*"Report: "* ]]'
kill_off "$first"
end_blocked
check 'a killed one blocks no other' '"${bench[@]}" >"$temp/said" 2>"$temp/bench.err" && ! grep "another bench" "$temp/said"'

check 'it measures with a path that has an apostrophe' '[[ -s $results/plots/rings.svg && ! -e $results/plots/gnuplot.log ]] &&
	grep -qF "Report: $results/report.html" "$temp/said" && ! grep FAILED "$temp/said"'
# refuses TEXT: before anything is built.
refuses()
{
	local text=$1 got

	got=$("${bench[@]}" 2>&1)
	check "it is refused: $text" "(($? > 0)) && [[ \$got == *\"\$text\"* && \$got != *set-up* ]]"
}
bench+=(--out "$temp/said")
refuses "--out $temp/said: cannot be made"
bench+=(--out "$results")
mv "$tree/build-bench" "$temp/old"
: >"$tree/build-bench"
refuses "$tree/build-bench: cannot be written, and bench.sh builds there"
exit $failed
