# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The part stream: messages one way between two processes of this host, as fast as they are taken.
# Sourced by bench.sh.
# shellcheck disable=SC2016,SC2034,SC2154

wanted+=(raw-fi-stream raw-fi-shm-stream)

# cma: the receiver reads large messages out of the sender's memory; nocma: it does not, as where no
# process may read another's.
stream_rows=(raw-fi-plxshm raw-fi-plxshm-cma raw-fi-shm raw-fi-shm-nocma shm-stream)
declare -A stream_program=(
	[raw-fi-plxshm]=raw-fi-stream [raw-fi-plxshm-cma]=raw-fi-stream
	[raw-fi-shm]=raw-fi-shm-stream [raw-fi-shm-nocma]=raw-fi-shm-stream [shm-stream]=plx-ping
)
stream_copied_bytes=16384 # messages up to it never are read by the other process

stream_begin()
{
	local name

	stream_sizes=(64 4096 65536 1048576)
	((!sizes_given)) || stream_sizes=("${size_list[@]}")
	stream_duration=2
	((!quick)) || stream_duration=0.3
	stream_duration=${duration_given:-$stream_duration}
	for name in raw-fi-stream raw-fi-shm-stream plx-ping; do
		[[ -n ${program[$name]-} ]] || failures+=("stream: the build has no program $name")
	done
}

# Measuring ------------------------------------------------------------------------------------

stream_has()
{
	[[ -n ${program[${stream_program[$1]}]-} ]] || return 1
	[[ $1 != *cma ]] || (($2 > stream_copied_bytes))
}

# stream_command ROW LCORE CPU OPTION...: sets `command`, for either side.
stream_command()
{
	local row=$1 lcore=$2 cpu=$3 path=${program[${stream_program[$1]}]}

	shift 3
	case $row in
	shm-stream) command=("$path" -l "$lcore@$cpu" --idle poll --provider shm -- "$@") ;;
	raw-fi-plxshm) command=(env "FI_PROVIDER_PATH=$module_dir" "$path" --provider plx_shm) ;;
	raw-fi-plxshm-cma)
		command=(env "FI_PROVIDER_PATH=$module_dir" "FI_PLX_SHM_COPY_MAX=$stream_copied_bytes"
			"$path" --provider plx_shm)
		;;
	raw-fi-shm) command=("$path") ;;
	raw-fi-shm-nocma) command=(env FI_SHM_DISABLE_CMA=1 "$path") ;;
	esac
	[[ $row == shm-stream ]] || command+=("$@" --cpu "$cpu")
}

# stream_run_row ROW SIZE DIR: returns the client's status; 1 where the server does not come up.
stream_run_row()
{
	local row=$1 size=$2 dir=$3 address limit command=() own=()

	limit=$(client_limit "$stream_duration")
	[[ $row != shm-stream ]] || own=(--sink --size "$size")
	stream_command "$row" 0 "$cpu_server" --listen "$(where_to_listen "$row")" "${own[@]}"
	run_server "$dir" "$limit" || return 1

	own=()
	[[ $row != shm-stream ]] || own=(--one-way)
	stream_command "$row" 1 "$cpu_client" --connect "$address" "${own[@]}" --size "$size" \
		--duration "$stream_duration" --warmup "$(one_way_warmup "$size")" --out "$dir" --name "$row"
	run_client "$dir" "$limit"
}

stream_measure()
{
	local row=$1 size=$2 round=$3 dir=$out/runs/stream-$1-$2-$3 status

	mkdir -p "$dir"
	stream_run_row "$row" "$size" "$dir"
	status=$?
	end_children
	keep_run 'stream, ' "$row" "$size" "$round" "$status" "$dir" "$out/runs/stream.ndjson" \
		'"    \(.messages_per_s | round) messages/s, \(.bytes_per_s / 1e7 | round / 100) GB/s"'
}

stream_run()
{
	: >"$out/runs/stream.ndjson"
	in_rounds stream 'stream, ' stream_sizes stream_rows
}

# Sum ------------------------------------------------------------------------------------------

# stream.json; the summary takes it whole but for the single runs, and its bars among the others.
stream_sum()
{
	jq -s -L "$here" -f "$here/stream.jq" "$out/runs/stream.ndjson" >"$out/stream.json" &&
		add_to_summary stream '.stream = ($part | del(.every_run)) | .bars += $part.bars'
}

# One picture: messages and bytes a second, by size.
stream_plot()
{
	local data=$out/plots/data row status=0

	jq -e '.rows != []' "$out/stream.json" >/dev/null || return 0
	mkdir -p "$data"
	for row in "${stream_rows[@]}"; do
		jq -r --arg row "$row" '.rows[] | select(.name == $row)
			| "\(.size_bytes) \(.messages_per_s / 1e6) \(.bytes_per_s / 1e9)"' \
			"$out/stream.json" >"$data/$row"
	done
	draw stream stream '' || status=1
	rm -rf "$data"
	return $status
}

# The terminal and the report ------------------------------------------------------------------

stream_print()
{
	say
	say "One way; medians over $rounds rounds. x base: bytes/s over those of what the row is held against."
	table_of_sizes '%-19s %12s %20s %9s %7s\n' messages/s 'over rounds' GB/s 'x base' < <(
		jq -r -L "$here" 'include "words";
			.rows[] | "\(.size_bytes) \(.name) \(.messages_per_s | round) " +
				"\(.messages_per_s_least | round)..\(.messages_per_s_greatest | round) " +
				"\(.bytes_per_s / 1e9 | short) \(.ratio // "-")"' "$out/stream.json")
}

# Messages a second of every row over those of an earlier run.
stream_compare()
{
	jq -e '.stream' "$compare/summary.json" >/dev/null || return 0
	table_beside '%-19s %9s  %12s %12s %7s\n' 'one way, messages/s before and now' 'then' now ratio < <(
		jq -r -L "$here" --slurpfile before "$compare/summary.json" 'include "words";
			.rows[] | . as $now
			| $before[0].stream.rows[] | select(.name == $now.name and .size_bytes == $now.size_bytes)
			| .messages_per_s as $was
			| "\(.name) \(.size_bytes) \($was | round) \($now.messages_per_s | round) " +
				"\($now.messages_per_s | over($was))"' "$out/stream.json")
}

stream_html()
{
	jq -r -L "$here" -f "$here/part-stream.jq" "$out/stream.json"
	inline_svg "$out/plots/stream.svg"
}
