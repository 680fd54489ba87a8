#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# plx-perf: every mode runs and prints its figures; how fast anything is does not matter.
# Arguments: plx-perf, and plx-perf-dpdk if it was built.
set -uo pipefail

# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

program=$1 dpdk=${2-}

# Everything if the test may use two CPUs, otherwise what works on one.
read -ra cpus < <(taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' |
	awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) printf "%d ", i }')
one=0@${cpus[0]}
short=(--rounds 2 --duration 200us)

report()
{
	if (($1 == 0)); then
		echo "ok: $2"
	else
		fail "$2: ${3-}"
	fi
}

# run PROGRAM MODE OPTION...: it ends well; its JSON is in $temp/json.
run()
{
	local text

	rm -f "$temp/json"
	text=$(timeout 60 "$1" "$2" --log-level error "${@:3}" --json "$temp/json" 2>&1 </dev/null)
	report $? "${1##*/} ${*:2}" "$text"
}

# has TEXT FILTER: the filter is true of the JSON.
has()
{
	jq -e "$2" "$temp/json" >/dev/null 2>&1
	report $? "$1" "$(jq -c . "$temp/json" 2>&1 | head -c 600)"
}

# refuses STATUS WORDS OPTION...: that status, and a text with these words.
refuses()
{
	local text status

	text=$(timeout 60 "$program" "${@:3}" 2>&1 </dev/null)
	status=$?
	[[ $status == "$1" && $text == *"$2"* ]]
	report $? "plx-perf ${*:3} is refused" "status $status: $text"
}

# interrupt PID: SIGTERM, once the program catches it. One that is still starting, as on a busy host, is
# this shell; or has only the handlers of a library that it loads, which catches SIGABRT too.
interrupt()
{
	local caught abort=$((1 << ($(kill -l ABRT) - 1))) term=$((1 << ($(kill -l TERM) - 1)))

	for _ in {1..1000}; do
		if [[ /proc/$1/exe -ef $program ]]; then
			caught=$(awk '$1 == "SigCgt:" { print $2 }' "/proc/$1/status")
			if (((16#${caught:-0} & (abort | term)) == term)); then
				kill -s TERM "$1"
				return
			fi
		fi
		sleep 0.01
	done
	kill -s KILL "$1"
}

# The command line.
refuses 2 'what to measure comes first' --rounds 1
for word in rings rnig RING; do
	refuses 2 "$word: nothing that plx-perf measures; did you mean ring? (give ring, pool or hop)" "$word"
done
refuses 2 'did you mean hop? (give ring, pool or hop)' hpo --rounds 1
refuses 2 'latency: nothing that plx-perf measures; give ring, pool or hop' latency
refuses 2 "'spmc' is none of spsc, mpsc, mpmc" ring --kinds spsc,spmc
refuses 2 "'2' is none of 1, 8, 32, 256" ring --bursts 2
refuses 2 "'' is none of" ring --bursts 8,
refuses 2 'a burst of 256 needs more' ring --capacity 256
refuses 2 '--kinds: not for plx-perf hop' hop --kinds spsc
refuses 2 '--histogram: not for plx-perf ring' ring --histogram x
refuses 2 'out of range; give 1 to 101' ring --rounds 0
refuses 2 'unknown value; give one of: dpdk' ring --compare spdk
refuses 2 'install libdpdk-dev' ring --compare dpdk
refuses 2 'two lcores are needed' hop -l "$one"
refuses 2 'or --on one' ring -l "$one"
refuses 2 "are both on CPU ${cpus[0]}" ring -l "$one,1@${cpus[0]}"
((${#cpus[@]} == 1)) || refuses 2 'is not pinned' pool -l "0@($(IFS=, && echo "${cpus[*]}"))"
# Files are looked at before anything is measured: an hour is not over within the limit of refuses.
refuses 2 '--json /nonexistent/x: cannot be written: No such file' pool --json /nonexistent/x --rounds 101 --duration 10s
refuses 2 '--histogram /nonexistent/x: cannot be written: No such file' hop --histogram /nonexistent/x \
	--rounds 101 --duration 10s
refuses 2 '--histogram /: cannot be written: Is a directory' hop --histogram /
refuses 2 'two lcores are needed' hop -l "$one" --json "$temp/early" --histogram "$temp/early"
[[ ! -e $temp/early ]]
report $? 'what measures nothing leaves no file' "$(ls -l "$temp")"
echo kept >"$temp/kept"
refuses 2 'two lcores are needed' hop -l "$one" --json "$temp/kept"
[[ $(<"$temp/kept") == kept ]]
report $? 'what measures nothing leaves a file as it is' "$(cat "$temp/kept")"

# One lcore.
run "$program" ring -l "$one" --on one --kinds mpmc --bursts 8,256 --capacity 300 "${short[@]}"
has 'there are the rows that were asked for' \
	'.rows | map([.name, .variant, .lcores, .burst]) == [["ring", "mpmc", 1, 8], ["ring", "mpmc", 1, 256]]'
has 'the JSON has environment and capacity' '.environment | .capacity == 300 and .rounds == 2 and .clock_hz > 0'
run "$program" pool -l "$one" "${short[@]}"
has 'pools of both kinds, at bursts 1 and 32' \
	'.rows | map("\(.variant) \(.burst)") == ["shared 1", "shared 32", "owned 1", "owned 32"]'
has 'every figure is positive' 'all(.rows[]; .cycles_least > 0 and .cycles_per_elem >= .cycles_least and
	.cycles_greatest >= .cycles_per_elem and .rounds == 2)'
has 'caches are weighed' '.caches | .lcores == 1 and .bytes > 0 and .objects > 0'
has 'nothing is compared' 'all(.rows[]; has("peer") or has("ratio") | not)'

if ((${#cpus[@]} >= 2)); then
	run "$program" ring "${short[@]}"
	# One more for each state of the CPUs, where that changed.
	has 'every kind, burst and place has a row' '.rows | (map("\(.variant) \(.burst) \(.lcores)") | unique | length) == 24'
	has 'rows of two lcores have the state of the CPUs' '.rows | all(.[]; (.state | IN("one", "near", "far")) and has("line_ns") == (.lcores == 2))'
	has 'every figure is positive' 'all(.rows[]; .cycles_least > 0)'
	run "$program" hop --rounds 2 --duration 2ms --with-idle-tcp --histogram "$temp/hgrm"
	has 'each row has its round trips' '.hop | [.bare, .hot, .quiet, .["idle-tcp"]] |
		all(.[]; .count >= 200 and .p50_ns >= .min_ns and .p50_ns <= .max_ns)'
	has 'ratios are over the bare line' \
		'.hop | .bare_ns == .bare.p50_ns and .bare.ratio == 1 and all(.hot, .quiet, .["idle-tcp"]; .ratio > 0)'
	has 'a cold poll is priced' '.hop["idle-tcp"] | .turn_ns > 0 and .cold_poll_ns != null'
	[[ $(grep -c '^ *[0-9]' "$temp/hgrm") -gt 5 ]]
	report $? 'the histogram has its percentiles' "$(cat "$temp/hgrm" 2>&1)"

	"$program" ring --log-level error --rounds 101 --duration 50ms >"$temp/text" 2>&1 &
	interrupt $!
	wait $!
	grep -q 'plx-perf: interrupted' "$temp/text"
	report $? 'it can be interrupted' "$(cat "$temp/text")"
fi

# DPDK's rows, and that nothing which is installed needs them.
if [[ -n $dpdk ]]; then
	run "$dpdk" ring -l "$one" --on one --compare dpdk --bursts 1,32 "${short[@]}"
	has 'every ring has its peer' '.rows | length == 6 and all(.[]; .peer_cycles_per_elem > 0 and
		.ratio >= .cycles_least / .peer_cycles_greatest * 0.999 and
		.ratio <= .cycles_greatest / .peer_cycles_least * 1.001)'
	has 'each kind has its own' '.rows | map(.peer) | unique ==
		["rte_ring MP/MC", "rte_ring MP/SC", "rte_ring SP/SC"]'
	run "$dpdk" pool -l "$one" --compare dpdk "${short[@]}"
	has 'every pool has its peer' 'all(.rows[]; .peer == "rte_mempool" and .peer_cycles_per_elem > 0) and
		.caches.peer_bytes > 0 and (.environment.peer_version | startswith("DPDK"))'
fi
! ldd "$program" | grep librte
report $? 'plx-perf itself does not load DPDK' 'see above'

exit $failed
