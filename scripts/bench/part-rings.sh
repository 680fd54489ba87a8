# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The part rings: the cost of rings, pools and messages between lcores, by plx-perf, compared with DPDK's if the build
# found it. Sourced by bench.sh.
# shellcheck disable=SC2016,SC2154

wanted+=(plx-perf plx-perf-dpdk)

rings_begin()
{
	rings_lcores=0@$cpu_server,1@$cpu_client
	# Cache memory is measured with four lcores; the last two use the pool once, and sleep.
	pool_lcores=$rings_lcores,2@$cpu_server,3@$cpu_client
	local few=5 many=15 # rounds

	if [[ -n $rounds_given ]]; then
		few=$((rounds_given < 101 ? rounds_given : 101)) many=$few
	fi
	if ((quick)); then
		rings_options=(--rounds "$few" --duration 10ms)
		hop_options=(--rounds "$few" --duration 100ms)
	else
		rings_options=(--rounds "$many" --duration 40ms)
		hop_options=(--rounds "$many" --duration 500ms)
	fi
	perf_program=${program[plx-perf-dpdk]-} peers=(--compare dpdk)
	if [[ -z $perf_program ]]; then
		perf_program=${program[plx-perf]-} peers=()
		leave_out "rings: DPDK's own: libdpdk-dev was not there when the build folder was made"
	fi
	[[ -n $perf_program ]] || failures+=('rings: the build has no program plx-perf')
	expect rings 3 $((quick ? 6 : 40))
}

# run_perf MODE LCORES OPTION...
run_perf()
{
	local mode=$1 lcores=$2 log=$out/runs/rings-$1.log pid

	shift 2
	progress rings "rings, plx-perf $mode"
	# Lcores share a CPU on purpose: no warning.
	timeout -k 3 300 "$perf_program" "$mode" -l "$lcores" --log-level error -- "$@" \
		--json "$out/runs/$mode.json" >"$log" 2>&1 </dev/null &
	pid=$!
	children+=("$pid")
	if ! wait "$pid"; then
		failures+=("plx-perf $mode: $(tail -n 1 "$log")")
		say "    FAILED: ${failures[-1]}"
	fi
	children=()
}

rings_run()
{
	rm -f "$out"/runs/{ring,pool,hop}.json
	[[ -n $perf_program ]] || return 0
	run_perf ring "$rings_lcores" "${peers[@]}" "${rings_options[@]}"
	run_perf pool "$pool_lcores" "${peers[@]}" "${rings_options[@]}"
	run_perf hop "$rings_lcores" "${hop_options[@]}" --with-idle-tcp --histogram "$out/runs/hop.hgrm"
}

# Each mode either wrote a file or failed.
rings_sum()
{
	local file found=()

	for file in "$out"/runs/{ring,pool,hop}.json; do
		[[ ! -s $file ]] || found+=("$file")
	done
	jq -n -L "$here" -f "$here/rings.jq" "${found[@]}" >"$out/rings.json" &&
		add_to_summary rings
}

# One picture: cycles by burst, on one lcore and between two.
rings_plot()
{
	local data=$out/plots/data lcores variant status=0

	jq -e '[.rows[] | select(.name == "ring")] != []' "$out/rings.json" >/dev/null || return 0
	mkdir -p "$data"
	for lcores in 1 2; do
		for variant in spsc mpsc mpmc; do
			jq -r --argjson lcores $lcores --arg variant $variant '.rows
				| group_by([.name, .variant, .lcores, .burst])[] | max_by(.rounds)
				| select(.name == "ring" and .lcores == $lcores and .variant == $variant)
				| "\(.burst) \(.cycles_per_elem) \(.peer_cycles_per_elem // "NaN")"' \
				"$out/rings.json" >"$data/$variant.$lcores"
		done
	done
	draw rings rings '' || status=1
	rm -rf "$data"
	return $status
}

rings_print()
{
	local mode

	for mode in ring pool hop; do
		[[ -s $out/runs/$mode.json ]] || continue
		say
		cat "$out/runs/rings-$mode.log"
	done
}

rings_html()
{
	jq -r -L "$here" -f "$here/part-rings.jq" "$out/rings.json"
	inline_svg "$out/plots/rings.svg"
}
