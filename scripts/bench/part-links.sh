# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The part links: the cost of thousands of idle TCP links for the lcore that accepted them, measured by link-idle: a
# loop turn, memory, CPU time asleep, and the longest turn while they connect. Sourced by bench.sh.
# shellcheck disable=SC2016,SC2034,SC2154

wanted+=(link-idle)

# links-COUNT.
links_all_rows=(links-1 links-10000 links-15000)
links_sizes=(4)     # bytes of the one message that each link has
links_rounds_most=3  # as nothing of it is a matter of chance
links_spare_files=500
links_unlimited=(--links-max none --links-per-host none --accepts-per-s none --handshakes-max none)
# For the longest turn, memory is allocated at the start: clearing 2 MiB of new memory makes a long turn.
links_memory=(--socket-mem 512M)

links_begin()
{
	local row files

	links_duration=5
	((!quick)) || links_duration=2
	links_duration=${duration_given:-$links_duration}
	[[ -n ${program[link-idle]-} && -n ${program[many_links]-} ]] ||
		failures+=('links: the build lacks link-idle or many_links')
	files=$(ulimit -Hn)
	links_rows=()
	for row in "${links_all_rows[@]}"; do
		if [[ $files != unlimited ]] && ((files < ${row#links-} + links_spare_files)); then
			leave_out "links: $row, which needs ulimit -Hn $((${row#links-} + links_spare_files)), and it is $files"
		else
			links_rows+=("$row")
		fi
	done
	expect_rounds links $((links_duration + 10)) links_sizes links_rows
}

# The longest turn is measured once, with more links than the others.
links_has()
{
	((${3-1} == 1)) || [[ $1 != links-15000 && ${3-1} -le $links_rounds_most ]]
}

# links_measure ROW SIZE ROUND
links_measure()
{
	local row=$1 count=${1#links-} dir=$out/runs/$1-$3 address status=1 command=() memory=()

	mkdir -p "$dir"
	[[ $row != links-15000 ]] || memory=("${links_memory[@]}")
	command=("${program[link-idle]}" -l "0@$cpu_server" --idle event --provider tcp
		"${links_unlimited[@]}" "${memory[@]}" -- --listen 127.0.0.1:0 --links "$count" --duration "$links_duration" --out "$dir/$row.json")
	if run_server "$dir" 330; then
		command=("${program[many_links]}" -l "1@$cpu_client" --provider tcp --socket-mem 1G --receive-mem 4G
			-- --connect "$address" --links "$count")
		start_client "$dir" 330
		wait "${children[0]}"
		status=$?
	fi
	end_children
	keep_run links "$row" "$2" "$3" "$status" "$dir" '"    a turn \(.turn_ns | round) ns, the longest \(.longest_turn_ns / 1e6 * 100 | round / 100) ms, " +
		"\(.bytes_per_link / 1024 * 10 | round / 10) KiB a link, asleep \(.cpu_percent * 1000 | round / 1000) % of a CPU"'
}

links_run()
{
	in_rounds links links_sizes links_rows
}

# Sum, tables ----------------------------------------------------------------------------------

links_sum()
{
	sum_part links
}

links_plot()
{
	:
}

links_kib='def kib: if . then . / 1024 | short else "-" end;'

links_print()
{
	say
	say "Idle links over tcp to one lcore; medians over the rounds, the longest turn of all. Times of turns are CPU time."
	jq -r -L "$here" "include \"words\"; $links_kib"'
		(["CPUs", "links", "turn ns", "longest ms", "KiB a link", "CPU %", "wakes/s"] | @tsv),
		(.rows[] | [.state, .links, (.turn_ns | short), (.longest_turn_ns / 1e6 | short), (.bytes_per_link | kib),
			(.cpu_percent | short), (.wakes_per_s | short)] | @tsv)' "$out/links.json" | column -t -s $'\t'
}

links_html()
{
	jq -r -L "$here" "include \"words\"; $links_kib"'
		"<h2>Idle links</h2>",
		"<p>Of one lcore that accepted them, over tcp, with heartbeats. Times of turns are CPU time: <i>turn</i> with nothing to do, " +
		"<i>longest</i> while they came. Memory is that of the process for each link, with receive buffers of 256 B.</p>",
		"<div class=\"wide\"><table><tr><th>links</th><th>turn, ns</th><th>longest, ms</th><th>KiB a link</th><th>CPU % asleep</th><th>wakes/s</th></tr>",
		(.rows[] | "<tr class=\"own\">" + ([.links, (.turn_ns | short), (.longest_turn_ns / 1e6 | short), (.bytes_per_link | kib),
			(.cpu_percent | short), (.wakes_per_s | short)] | cells) + "</tr>"), "</table></div>"' "$out/links.json"
}
