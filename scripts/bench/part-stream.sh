# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The part stream: messages one way between two processes of this host, as fast as they are taken.
# Sourced by bench.sh.
# shellcheck disable=SC2034,SC2154

wanted+=(raw-fi-stream raw-fi-shm-stream)

# nocma: large messages go through the shared memory, as where no process may read another's.
stream_rows=(raw-fi-plxshm raw-fi-plxshm-nocma raw-fi-shm raw-fi-shm-nocma shm-stream)
declare -A stream_program=(
	[raw-fi-plxshm]=raw-fi-stream [raw-fi-plxshm-nocma]=raw-fi-stream
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
	[[ $1 != *-nocma ]] || (($2 > stream_copied_bytes))
}

# How many messages before the measured ones: for some 10 ms.
stream_warmup()
{
	if (($1 <= 4096)); then
		echo 20000
	elif (($1 <= 65536)); then
		echo 1000
	else
		echo 100
	fi
}

# stream_command ROW LCORE CPU OPTION...: sets `command`, for either side.
stream_command()
{
	local row=$1 lcore=$2 cpu=$3 path=${program[${stream_program[$1]}]}

	shift 3
	case $row in
	shm-stream) command=("$path" -l "$lcore@$cpu" --provider shm -- "$@") ;;
	raw-fi-plxshm) command=(env "FI_PROVIDER_PATH=$module_dir" "$path" --provider plx_shm) ;;
	raw-fi-plxshm-nocma)
		command=(env "FI_PROVIDER_PATH=$module_dir" FI_PLX_SHM_CMA=0 "$path" --provider plx_shm)
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
		--duration "$stream_duration" --warmup "$(stream_warmup "$size")" --out "$dir" --name "$row"
	run_client "$dir" "$limit"
}

stream_measure()
{
	local row=$1 size=$2 round=$3 dir=$out/runs/stream-$1-$2-$3 status

	mkdir -p "$dir"
	stream_run_row "$row" "$size" "$dir"
	status=$?
	end_children
	if ((status != 0)); then
		note_failure "stream, $row" "$size" "$round" "$status" "$dir"
		return
	fi
	jq -c --arg row "$row" --argjson round "$round" --arg run "runs/${dir##*/}" \
		'. + {row: $row, round: $round, run: $run}' "$dir/$row.json" >>"$out/runs/stream.ndjson"
	jq -r '"    \(.messages_per_s | round) messages/s, \(.bytes_per_s / 1e7 | round / 100) GB/s"' \
		"$dir/$row.json"
}

stream_run()
{
	local total=0 done=0 round size row

	: >"$out/runs/stream.ndjson"
	for size in "${stream_sizes[@]}"; do
		for row in "${stream_rows[@]}"; do
			! stream_has "$row" "$size" || total=$((total + rounds))
		done
	done
	for ((round = 1; round <= rounds; round++)); do
		for size in "${stream_sizes[@]}"; do
			for row in "${stream_rows[@]}"; do
				stream_has "$row" "$size" || continue
				done=$((done + 1))
				say "[$done/$total] stream, round $round, $size B, $row"
				stream_measure "$row" "$size" "$round"
			done
		done
	done
}

# Sum ------------------------------------------------------------------------------------------

# stream.json; the summary takes it whole but for the single runs, and its bars among the others.
stream_sum()
{
	jq -s -f "$here/stream.jq" "$out/runs/stream.ndjson" >"$out/stream.json" &&
		jq --slurpfile stream "$out/stream.json" '.stream = ($stream[0] | del(.every_run))
			| .bars += $stream[0].bars' "$out/summary.json" >"$out/summary.json.new" &&
		mv "$out/summary.json.new" "$out/summary.json"
}

# One picture: messages and bytes a second, by size.
stream_plot()
{
	local data=$out/plots/data row format status=0

	jq -e '.rows != []' "$out/stream.json" >/dev/null || return 0
	mkdir -p "$data"
	for row in "${stream_rows[@]}"; do
		jq -r --arg row "$row" '.rows[] | select(.name == $row)
			| "\(.size_bytes) \(.messages_per_s / 1e6) \(.bytes_per_s / 1e9)"' \
			"$out/stream.json" >"$data/$row"
	done
	for format in svg png; do
		timeout 60 gnuplot -e "data='$data'; format='$format'; target='$out/plots/stream.$format'" \
			"$here/stream.gp" </dev/null >>"$out/plots/gnuplot.log" 2>&1 || status=1
	done
	rm -rf "$data"
	return $status
}

# The terminal and the report ------------------------------------------------------------------

stream_print()
{
	local format='%-19s %12s %20s %9s %7s\n' last='' size row cells

	say
	say "One way; medians over $rounds rounds. x base: bytes/s over those of what the row is held against."
	while read -r size row cells; do
		if [[ $size != "$last" ]]; then
			say
			# shellcheck disable=SC2059
			printf "$format" "$(size_words "$size")" messages/s 'over rounds' GB/s 'x base'
			last=$size
		fi
		# shellcheck disable=SC2059,SC2086
		printf "$format" "$row" $cells
	done < <(jq -r '
		def short: . * 1000 | round / 1000;
		.rows[] | "\(.size_bytes) \(.name) \(.messages_per_s | round) " +
			"\(.messages_per_s_least | round)..\(.messages_per_s_greatest | round) " +
			"\(.bytes_per_s / 1e9 | short) \(.ratio // "-")"' "$out/stream.json")
}

# Messages a second of every row over those of an earlier run.
stream_compare()
{
	local format='%-19s %9s  %12s %12s %7s\n' row size cells

	jq -e '.stream' "$compare/summary.json" >/dev/null || return 0
	say
	say "Compared with $compare: one way, messages/s before and now"
	# shellcheck disable=SC2059
	printf "$format" row size 'then' now ratio
	while read -r row size cells; do
		# shellcheck disable=SC2059,SC2086
		printf "$format" "$row" "$(size_words "$size" | tr -d ' ')" $cells
	done < <(jq -r --slurpfile before "$compare/summary.json" '
		def short: . * 1000 | round / 1000;
		.rows[] | . as $now
		| $before[0].stream.rows[] | select(.name == $now.name and .size_bytes == $now.size_bytes)
		| "\(.name) \(.size_bytes) \(.messages_per_s | round) \($now.messages_per_s | round) " +
			"\($now.messages_per_s / .messages_per_s | short)"' "$out/stream.json")
}

stream_html()
{
	jq -r -f "$here/part-stream.jq" "$out/stream.json"
	inline_svg "$out/plots/stream.svg"
}
