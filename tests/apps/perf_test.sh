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

# run PROGRAM MODE OPTION...: it ends well; its JSON is in $temp/json.
run()
{
	rm -f "$temp/json"
	gives "${1##*/} ${*:2}" 0 '*' timeout 60 "$1" "$2" --log-level error "${@:3}" --json "$temp/json"
}

# has TEXT FILTER: the filter is true of the JSON.
has()
{
	jq -e "$2" "$temp/json" >/dev/null 2>&1 || fail "$1: $(jq -c . "$temp/json" 2>&1 | head -c 600)"
}

# refuses TEXT OPTION...: before anything is measured, and leaves no file.
refuses()
{
	gives "${*:2}" 2 "*$1*try plx-perf --help" timeout 60 "$program" "${@:2}"
}

refuses 'what to do is missing; give ring, pool or hop' --rounds 1
refuses 'rings: unknown word; give ring, pool or hop; did you mean ring?' rings
refuses '--kinds spmc: unknown value; give one of: spsc, mpsc, mpmc' ring --kinds spsc,spmc
refuses '--bursts : unknown value' ring --bursts 8,
refuses 'a burst of 256 needs more' ring --capacity 256
refuses '--kinds: not for hop' hop --kinds spsc
refuses 'install libdpdk-dev' ring --compare dpdk
refuses 'two lcores are needed' hop -l "$one" --json "$temp/early" --histogram "$temp/early"
refuses 'or --on one' ring -l "$one"
refuses "are both on CPU ${cpus[0]}" ring -l "$one,1@${cpus[0]}"
((${#cpus[@]} == 1)) || refuses 'is not pinned' pool -l "0@($(IFS=, && echo "${cpus[*]}"))"
refuses '--json /nonexistent/x: cannot be written: No such file' pool --json /nonexistent/x
check 'what measures nothing leaves no file' "[[ ! -e '$temp/early' ]]"

# One lcore.
run "$program" ring -l "$one" --on one --kinds mpmc --bursts 8,256 --capacity 300 "${short[@]}"
has 'there are the rows that were asked for, and the environment' \
	'(.rows | map([.name, .variant, .lcores, .burst]) == [["ring", "mpmc", 1, 8], ["ring", "mpmc", 1, 256]]) and
	(.environment | .capacity == 300 and .rounds == 2 and .clock_hz > 0)'
run "$program" pool -l "$one" "${short[@]}"
has 'pools of both kinds, at bursts 1 and 32' \
	'.rows | map("\(.variant) \(.burst)") == ["shared 1", "shared 32", "owned 1", "owned 32"]'
has 'every figure is positive, and none is compared' 'all(.rows[]; .cycles_least > 0 and .cycles_per_elem >= .cycles_least and
	.cycles_greatest >= .cycles_per_elem and .rounds == 2 and (has("peer") | not))'
has 'caches are weighed' '.caches | .lcores == 1 and .bytes > 0 and .objects > 0'

if ((${#cpus[@]} >= 2)); then
	run "$program" ring "${short[@]}"
	# One more for each state of the CPUs, where that changed.
	has 'every kind, burst and place has a row' '.rows | (map("\(.variant) \(.burst) \(.lcores)") | unique | length) == 24'
	has 'rows of two lcores have the state of the CPUs' '.rows | all(.[]; (.state | IN("one", "near", "far")) and has("line_ns") == (.lcores == 2))'
	run "$program" hop --rounds 2 --duration 2ms --with-idle-tcp --histogram "$temp/hgrm"
	has 'each row has its round trips' '.hop | [.bare, .hot, .quiet, .["idle-tcp"]] |
		all(.[]; .count >= 200 and .p50_ns >= .min_ns and .p50_ns <= .max_ns and .ratio > 0)'
	has 'a bare line and a cold poll are priced' \
		'.hop | .bare_ns == .bare.p50_ns and .["idle-tcp"].turn_ns > 0 and .["idle-tcp"].cold_poll_ns != null'
	check 'the histogram has its percentiles' "(($(grep -c '^ *[0-9]' "$temp/hgrm") > 5))"

	start text "$program" ring --log-level error --rounds 101 --duration 50ms
	# A library that it loads catches SIGTERM too, together with SIGILL.
	wait_until "(((0x\$(sed -n 's/^SigCgt:[[:space:]]*//p' /proc/$pid/status) & (1 << 14 | 1 << 3)) == 1 << 14))"
	kill "$pid"
	ends "$pid"
	check 'it can be interrupted' "grep -q 'plx-perf: interrupted' '$temp/text.err'"
fi

# DPDK's rows, and that nothing which is installed needs them.
if [[ -n $dpdk ]]; then
	run "$dpdk" ring -l "$one" --on one --compare dpdk --bursts 1,32 "${short[@]}"
	has 'every ring has its peer' '.rows | length == 6 and all(.[]; .peer_cycles_per_elem > 0 and
		.ratio >= .cycles_least / .peer_cycles_greatest * 0.999 and
		.ratio <= .cycles_greatest / .peer_cycles_least * 1.001) and
		(map(.peer) | unique) == ["rte_ring MP/MC", "rte_ring MP/SC", "rte_ring SP/SC"]'
	run "$dpdk" pool -l "$one" --compare dpdk "${short[@]}"
	has 'every pool has its peer' 'all(.rows[]; .peer == "rte_mempool" and .peer_cycles_per_elem > 0) and
		.caches.peer_bytes > 0 and (.environment.peer_version | startswith("DPDK"))'
fi
check 'plx-perf itself does not load DPDK' "! ldd '$program' | grep librte"
exit $failed
