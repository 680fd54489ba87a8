# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The part soak, run only by --soak: two NetIO processes at full load for a long time; neither may report the other as
# silent. Runs rows of the part netio. Sourced by bench.sh.
# shellcheck disable=SC2016,SC2034,SC2154

soak_rows=(buffered-tcp buffered-shm)
soak_size=64

soak_begin()
{
	local name

	netio_duration=${duration_given:-600}
	choose_provider
	expect soak ${#soak_rows[@]} "$netio_duration"
	for name in netio-throughput netio-recv; do
		[[ -n ${program[$name]-} ]] || failures+=("soak: the build has no program $name")
	done
}

# soak_alarms DIR: how often either side of a run reported that it does not hear the other.
soak_alarms()
{
	cat "$1/server.log" "$1/client.log" | grep -c ' is silent$'
}

soak_measure()
{
	local row=$1 dir=$out/runs/soak-$1 status

	mkdir -p "$dir"
	netio_run_row "$row" $soak_size "$dir"
	status=$?
	end_children
	((status)) || netio_result "$row" $soak_size "$dir" || status=1
	if ((status)); then
		failures+=("soak, $row: $(last_words "$dir")")
		return
	fi
	jq -c --arg row "$row" --argjson seconds "$netio_duration" --argjson alarms "$(soak_alarms "$dir")" \
		'{row: $row, seconds: $seconds, alarms: $alarms} + .' "$dir/$row.json" >>"$out/runs/soak.ndjson"
}

soak_run()
{
	local row

	: >"$out/runs/soak.ndjson"
	for row in "${soak_rows[@]}"; do
		progress soak "soak, $row, for $netio_duration s"
		soak_measure "$row"
	done
}

soak_sum()
{
	jq -s -L "$here" 'include "sums"; {
		schema: "pollux-bench/2", part: "soak",
		unit: "messages and bits per second that the receiver has; alarms: how often one end reported that the other one is silent",
		rows: map(. + {key: .row, size_bytes: 64, state: "one", figure: "mmsg_per_s"}), states: [], changed: 0,
		thresholds: map(at_most("soak, \(.row), false alarms in \(.seconds) s"; .alarms; 0; true))}' \
		"$out/runs/soak.ndjson" >"$out/soak.json" &&
		add_to_summary soak
}

soak_plot()
{
	:
}

soak_print()
{
	say
	say 'NetIO, both ends at full load'
	jq -r '.rows[] | "  \(.row): \(.seconds) s, \(.mmsg_per_s * 1000 | round / 1000) Mmsg/s, \(.alarms) alarms"' \
		"$out/soak.json"
}

soak_html()
{
	jq -r -L "$here" 'include "words"; "<h2>NetIO at full load</h2>",
		"<div class=\"wide\"><table><tr><th>row</th><th>seconds</th><th>Mmsg/s</th><th>alarms</th></tr>",
		(.rows[] | "<tr class=\"own\">" + ([.row, .seconds, (.mmsg_per_s | short), .alarms] | cells) + "</tr>"),
		"</table></div>"' "$out/soak.json"
}
