# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The part idle: the cost of a mostly idle server by idle policy, provider and load: its CPU time, its wake-ups, and
# the round trips of a polling client. Sourced by bench.sh.
# shellcheck disable=SC2016,SC2034,SC2154

# policy name: --idle of the server
declare -A idle_policy=(
	[poll]=poll [event]=event [latency]=adaptive:latency:learned
	[balanced]=adaptive:balanced:learned [fixed]=adaptive:balanced:fixed
)
idle_policies=(poll event latency balanced fixed)
idle_providers=(tcp shm)

# Loads: none (no client), peer (a silent client), silence (a message now and then), or ARRIVAL-RATE.
idle_loads=(none peer silence fixed-100 poisson-1000 poisson-10000 burst-1000 fixed-50000 fixed-100000)

# Needed for the thresholds: everything that a quick run measures.
idle_needed=(
	none/balanced peer/balanced silence/event silence/balanced poisson-1000/event
	poisson-1000/balanced poisson-1000/poll burst-1000/poll burst-1000/balanced fixed-50000/poll
	fixed-50000/latency fixed-100000/poll fixed-100000/latency
)

idle_begin()
{
	idle_seconds=2.5 idle_silence=10s idle_silences=9
	if ((quick)); then
		idle_seconds=1.1 idle_silence=1s idle_silences=3
	fi
	idle_seconds=${duration_given:-$idle_seconds}
	[[ -n ${program[plx-ping]-} && -n ${program[many_links]-} ]] ||
		failures+=('idle: the build lacks plx-ping or many_links')
	idle_choose_rows
	expect_rounds idle "$idle_seconds" idle_sizes idle_rows
}

# Rows are LOAD/POLICY@PROVIDER.
idle_choose_rows()
{
	local load policy provider

	idle_sizes=(64) idle_rows=()
	for load in "${idle_loads[@]}"; do
		for policy in "${idle_policies[@]}"; do
			idle_wants "$load" "$policy" || continue
			for provider in "${idle_providers[@]}"; do
				[[ $load == fixed-50000 && $provider != tcp ]] || idle_rows+=("$load/$policy@$provider")
			done
		done
	done
}

# Nine silences of ten seconds are enough for a median, and ten idle seconds are always alike.
idle_has()
{
	[[ $1 != @(silence|none|peer)/* || ${3-1} == 1 ]]
}

# Measuring ------------------------------------------------------------------------------------

# The watched figures of a row.
idle_rates='cpu_percent: ($cpu_ns / 10 / $watched_us), wakes_per_s: ($wakes * 1e6 / $watched_us)'

# Seconds to watch a load: long enough for sleeps of a second.
idle_quiet_seconds()
{
	((quick)) && echo 3 || echo 10
}

# idle_client LOAD ADDRESS DIR PROVIDER: sets `command`.
idle_client()
{
	local ping=("${program[plx-ping]}" -l "1@$cpu_client" --idle poll --provider "$4"
		-- --connect "$2" --out "$3" --name client)

	case $1 in
	peer)
		command=("${program[many_links]}" -l "1@$cpu_client" --provider "$4"
			-- --connect "$2" --links 1)
		;;
	silence) # of heartbeats, too
		ping=("${program[plx-ping]}" --heartbeat off "${ping[@]:1}")
		command=("${ping[@]}" --interval "$idle_silence" --count "$idle_silences" --warmup 1)
		;;
	*)
		command=("${ping[@]}" --rate "${1#*-}" --arrival "${1%-*}" --duration "$idle_seconds"
			--warmup $((${1#*-} / 2)))
		;;
	esac
}

# The median of a few round trips, for which plx-ping prints no percentile. CSV: low, high, count.
idle_median()
{
	awk -F, 'NR > 1 { for (i = 0; i < $3; i++) all[n++] = ($1 + $2) / 2 }
		END { if (n) print all[int((n - 1) / 2)]; else print "null" }' "$1"
}

# The client is past its warm-up; watch until it ends, or for idle_quiet_seconds.
idle_load()
{
	local load=$1 address=$2 dir=$3 provider=$4 server below client command=()

	pid_below "${children[0]}"
	server=$below
	if [[ $load == none ]]; then
		nap 0.5 # an adaptive lcore begins with measuring what sleeps cost
		watch_process server "$server"
		nap "$(idle_quiet_seconds)"
		watch_look server
		return 0
	fi
	idle_client "$load" "$address" "$dir" "$provider"
	printf '%q ' "${command[@]}" >"$dir/command"
	timeout -k 3 300 "${command[@]}" >"$dir/client.log" 2>&1 </dev/null &
	client=$!
	children+=("$client")
	case $load in
	peer) nap 8 ;; # 64 idle periods, a tenth of a second each, teach it that polling is vain
	silence) nap 0.5 ;;
	*) nap 0.8 ;; # half a second of warm-up
	esac
	watch_process server "$server"
	if [[ $load == peer ]]; then
		nap "$(idle_quiet_seconds)"
		watch_look server
		kill -0 "$client"
		return
	fi
	watch_to_the_end "$client" 0.1 server
}

# idle_measure LOAD/POLICY@PROVIDER SIZE ROUND
idle_measure()
{
	local load=${1%/*} policy=${1#*/} provider=${1#*@} round=$3 dir address status=1
	local command median=null tries

	policy=${policy%@*}
	dir=$out/runs/idle-$load-$policy-$provider-$round
	mkdir -p "$dir"
	# 3: the host delayed the client below its rate. After three tries, accept the result.
	for tries in 1 2 3; do
		command=("${program[plx-ping]}" -l "0@$cpu_server" --idle "${idle_policy[$policy]}"
			--provider "$provider" -- --listen 127.0.0.1:0)
		if run_server "$dir" 400; then
			idle_load "$load" "$address" "$dir" "$provider"
			status=$?
		fi
		end_children
		((status == 3)) || break
	done
	[[ -s $dir/client.json || $status != 3 ]] || status=1
	if ((status != 0 && status != 3)); then
		fail_run "idle, $policy, $provider, $load, round $round" "$status" "$dir"
		return
	fi
	[[ -s $dir/client.json ]] || echo '{}' >"$dir/client.json"
	[[ $load != silence ]] || median=$(idle_median "$dir/client.csv")
	keep idle "$round" < <(jq -c --argjson median "$median" --argjson doubted $((status == 3)) --arg policy "$policy" --arg provider "$provider" --arg load "$load" \
		--argjson cpu_ns "${cpu_ns[server]}" --argjson wakes "${wakes[server]}" \
		--argjson watched_us "${watched_us[server]}" \
		'{policy: $policy, provider: $provider, arrival: ($load | split("-")[0]),
		rate: ($load | split("-")[1] // "0" | tonumber), size_bytes: 64, '"$idle_rates"',
		p50_ns: (.p50_ns // $median), p99_ns, count,
		doubted: ($doubted == 1)}' "$dir/client.json")
	tail -n 1 "$out/runs/idle.ndjson" | jq -r '"    \(.cpu_percent * 100 | round / 100) % of a CPU, " +
		"\(.wakes_per_s | round) wakes/s, p50 \((.p50_ns // 0) / 10 | round / 100) us"'
}

idle_wants()
{
	local pair

	((quick)) || [[ $1 == silence ]] || return 0
	for pair in "${idle_needed[@]}"; do
		[[ $pair != "$1/$2" ]] || return 0
	done
	return 1
}

idle_run()
{
	in_rounds idle idle_sizes idle_rows
}

# Sum, plots, tables ---------------------------------------------------------------------------

idle_sum()
{
	sum_part idle
}

# One picture per provider: CPU and round trip by rate, a line for each policy.
idle_plot()
{
	local data=$out/plots/data provider policy status=0

	for provider in "${idle_providers[@]}"; do
		mkdir -p "$data"
		for policy in "${idle_policies[@]}"; do
			jq -r --arg policy "$policy" --arg provider "$provider" '.states[0].state as $state | [.rows[]
				| select(.state == $state and .policy == $policy and .provider == $provider and .rate > 0
					and .arrival != "burst" and .p50_ns)] | sort_by(.rate)[]
				| [.rate, .cpu_percent // "-", .p50_ns / 1e3,
					(if .p99_ns then .p99_ns / 1e3 else "-" end)] | map(tostring) | join(" ")' \
				"$out/idle.json" >"$data/$policy"
		done
		if [[ -n $(cat "$data"/* 2>/dev/null) ]]; then
			draw "idle-$provider" idle "provider='$provider'" || status=1
		fi
		rm -rf "$data"
	done
	return $status
}

# The terminal and the report ------------------------------------------------------------------

idle_print()
{
	say
	say "A server with little to do; medians over $rounds rounds. The client polls."
	jq -r -L "$here" 'include "words";
		def figure: if . == null then "n/a" else short end;
		(["CPUs", "provider", "load", "policy", "CPU %", "wakes/s", "p50 us", "p99 us"] | @tsv),
		(.rows[] | [.state, .provider, "\(.arrival)\(if .rate > 0 then " \(.rate)" else "" end)", .policy,
			(.cpu_percent | figure), (.wakes_per_s | figure), (.p50_ns | us), (.p99_ns | us)] | @tsv)' \
		"$out/idle.json" | column -t -s $'\t'
}

idle_html()
{
	local provider

	jq -r -L "$here" -f "$here/part-idle.jq" "$out/idle.json"
	for provider in "${idle_providers[@]}"; do
		inline_svg "$out/plots/idle-$provider.svg"
	done
}
