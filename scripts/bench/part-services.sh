# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The part services: the cost of a method call compared with a message and its echo: one at a time, many in flight, and
# on a schedule. Sourced by bench.sh.
# shellcheck disable=SC2016,SC2034,SC2154

wanted+=(plx-call service plx-params params-load)

# In the order of a round: compared rows are adjacent. call-N: N calls in flight; quiet and half: an open loop with
# random gaps, at 10000 calls a second, and at half of the rate of call-64 in the same round. params-echo and
# params-get: plx-params, one call of its self-test or of a parameter at a time. params-load: 100000 parameters, 100
# watchers, and 10000 random sets a second, none of which may be lost. Rows are ROW@PROVIDER.
services_rows=({ping,call-1,call-64,call-100,call-100000,quiet,half,params-echo,params-get,params-load}@{tcp,shm})
services_size=64
services_sizes=("$services_size")
services_parameter=hv/rack1/voltage

services_begin()
{
	services_duration=2
	((!quick)) || services_duration=0.7
	services_duration=${duration_given:-$services_duration}
	local name
	for name in plx-ping plx-call service plx-params params-load; do
		[[ -n ${program[$name]-} ]] || failures+=("services: the build has no program $name")
	done
	expect_rounds services "$services_duration" services_sizes services_rows
}

services_has()
{
	:
}

# Measuring ------------------------------------------------------------------------------------

# Half of the latest rate of call-64.
services_half()
{
	jq -r --arg provider "$1" 'select(.row == "call-64" and .provider == $provider) | .rate_per_s / 2 | floor' \
		"$out/runs/services.ndjson" | tail -n 1
}

# services_client ROW ADDRESS DIR PROVIDER: sets `command`.
services_client()
{
	local each=(--size "$services_size" --duration "$services_duration" --out "$3" --name client)
	local call=("${program[plx-call]}" -l "1@$cpu_client" --idle poll --provider "$4" -- --connect "$2")
	local echo=("${call[@]}" --method echo "${each[@]}")
	local params=("${call[@]}" --data "$services_parameter" "${each[@]:2}")

	case $1 in
	ping) command=("${program[plx-ping]}" -l "1@$cpu_client" --idle poll --provider "$4"
		-- --connect "$2" "${each[@]}") ;;
	quiet) command=("${echo[@]}" --rate 10000 --arrival poisson) ;;
	params-echo) command=("${params[@]}" --method pollux.echo) ;;
	params-get) command=("${params[@]}" --method params.get) ;;
	params-load) command=("${program[params-load]}" -l "1@$cpu_client" --idle poll --provider "$4"
		-- --connect "$2" --duration "$services_duration" --out "$3/client.json") ;;
	half) command=("${echo[@]}" --rate "$(services_half "$4")" --arrival poisson) ;;
	*) command=("${echo[@]}" --in-flight "${1#call-}") ;;
	esac
}

# services_server ROW PROVIDER DIR: sets `command`.
services_server()
{
	local eal=(-l "0@$cpu_server" --idle poll --provider "$2")

	case $1 in
	ping) command=("${program[plx-ping]}" "${eal[@]}" -- --listen 127.0.0.1:0) ;;
	params-*)
		rm -f "$3"/params.db*
		command=("${program[plx-params]}" "${eal[@]}" --self-test 10000000 -- --serve "$3/params.db" --listen 127.0.0.1:0)
		;;
	*) command=("${program[service]}" "${eal[@]}" 127.0.0.1:0) ;;
	esac
}

# services_define ADDRESS PROVIDER: define the parameter of params-get.
services_define()
{
	run_limited 20 "${program[plx-params]}" -l "1@$cpu_client" --provider "$2" -- --connect "$1" \
		--define "$services_parameter" --type real --value 1500 --unit V --max 2000 --alarm-high 1800 >/dev/null
}

# services_measure ROW@PROVIDER SIZE ROUND
services_measure()
{
	local row=${1%@*} provider=${1#*@} round=$3 dir address status=1 client
	local command=()

	dir=$out/runs/services-$row-$provider-$round
	mkdir -p "$dir"
	services_server "$row" "$provider" "$dir"
	if run_server "$dir" 60 && { [[ $row != params-get ]] || services_define "$address" "$provider"; }; then
		services_client "$row" "$address" "$dir" "$provider"
		start_client "$dir" 60
		wait "$client"
		status=$?
	fi
	end_children
	rm -f "$dir"/params.db*
	# 3: the host delayed the client past its schedule, or plx-ping doubts its figures.
	if ((status != 0 && status != 3)) || [[ ! -s $dir/client.json ]]; then
		fail_run "services, $row, $provider, round $round" "$status" "$dir"
		return
	fi
	keep services "$round" < <(jq -c --arg row "$row" --arg provider "$provider" --argjson doubted $((status == 3)) \
		'{row: $row, provider: $provider, fi_provider: .provider, size_bytes, count, lost: (.lost // 0),
		rate_per_s: (.count * 1e9 / .elapsed_ns), scheduled_per_s: (.rate // null), doubted: ($doubted == 1),
		p50_ns, p90_ns, p99_ns, p99_9_ns, max_ns, watch_p50_ns, watch_p99_ns}' "$dir/client.json")
	tail -n 1 "$out/runs/services.ndjson" | jq -r '"    p50 \(.p50_ns / 10 | round / 100) us, p99 " +
		"\((.p99_ns // 0) / 10 | round / 100) us, \(.rate_per_s / 1e4 | round / 100) M/s"'
}

services_run()
{
	in_rounds services services_sizes services_rows
}

# Sum, tables ----------------------------------------------------------------------------------

services_sum()
{
	sum_part services --slurpfile hiccups "$out/hiccups.json"
}

services_plot()
{
	return 0
}

services_print()
{
	say
	say "Calls of a service and round trips of plx-ping, $services_size B; medians over $rounds rounds. Both ends poll."
	jq -r -L "$here" 'include "words";
		(["CPUs", "provider", "row", "p50 us", "p99 us", "p99.9 us", "M/s", "ns each"] | @tsv),
		(.rows[] | [.state, .provider, .name, (.p50_ns | us), (.p99_ns | us), (.p99_9_ns | us),
			(.rate_per_s / 1e6 | short), (1e9 / .rate_per_s | round)] | @tsv)' \
		"$out/services.json" | column -t -s $'\t'
	jq -r '.rows[] | select(.watch_p50_ns) | "\(.provider): a change reached 100 watchers in \(.watch_p50_ns / 1e3 | round) us " +
		"at the median; p99 \(.watch_p99_ns / 1e3 | round) us; lost: \(.lost)."' "$out/services.json"
	jq -r '.platform | values | "The platform alone holds up a CPU for \(.held_up_percent) % of the time, up to " +
		"\(.longest_ns / 1e3 | round) us: at half of the greatest rate \(.met_percent) % of the calls meet such a gap, or what queued up in it."' "$out/services.json"
}

services_html()
{
	jq -r -L "$here" -f "$here/part-services.jq" "$out/services.json"
}
