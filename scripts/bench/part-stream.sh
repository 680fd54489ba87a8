# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The part stream: one-way messages between two processes of this host at full speed. Sourced by bench.sh.
# shellcheck disable=SC2016,SC2034,SC2154

wanted+=(raw-fi-stream raw-fi-shm-stream)

# cma: the receiver reads large messages from the sender's memory; nocma: it does not, as on hosts that forbid that.
# single: one message per turn.
stream_all_rows=(raw-fi-plxshm raw-fi-plxshm-cma raw-fi-shm raw-fi-shm-nocma shm-stream ucx-shm raw-fi-tcp tcp-stream
	ucx-tcp ucx-tcp-am iperf3 tcp-single)
stream_main_rows=' raw-fi-shm shm-stream ucx-shm raw-fi-tcp tcp-stream ucx-tcp '
declare -A stream_program=(
	[raw-fi-plxshm]=raw-fi-stream [raw-fi-plxshm-cma]=raw-fi-stream [raw-fi-tcp]=raw-fi-stream
	[raw-fi-shm]=raw-fi-shm-stream [raw-fi-shm-nocma]=raw-fi-shm-stream [shm-stream]=plx-ping
	[tcp-stream]=plx-ping [tcp-single]=plx-ping
	[ucx-shm]=ucx_perftest [ucx-tcp]=ucx_perftest [ucx-tcp-am]=ucx_perftest [iperf3]=iperf3
)
stream_copied_bytes=16384 # messages up to it never are read by the other process
stream_am_bytes=8192      # the longest of UCX's am_bw over tcp

stream_begin()
{
	local name row

	stream_sizes=(64 4096 65536 1048576)
	[[ $scope != main ]] || stream_sizes=(64 1048576)
	((!sizes_given)) || stream_sizes=("${size_list[@]}")
	stream_duration=2
	((!quick)) || stream_duration=0.3
	stream_duration=${duration_given:-$stream_duration}
	for name in raw-fi-stream raw-fi-shm-stream plx-ping; do
		[[ -n ${program[$name]-} ]] || failures+=("stream: the build has no program $name")
	done
	stream_rows=()
	for row in "${stream_all_rows[@]}"; do
		name=${stream_program[$row]}
		if [[ $scope == main && $stream_main_rows != *" $row "* ]]; then
			:
		elif [[ -n ${program[$name]-} ]]; then
			stream_rows+=("$row")
		elif [[ $name == @(ucx_perftest|iperf3) ]]; then
			leave_out "stream: $row: $name is not installed"
		fi
	done
	choose_provider
	expect_rounds stream "$stream_duration" stream_sizes stream_rows
}

# Measuring ------------------------------------------------------------------------------------

stream_has()
{
	case $1 in
	*cma) (($2 > stream_copied_bytes)) ;;
	*-single) (($2 == 64)) ;;
	ucx-tcp-am) (($2 <= stream_am_bytes)) ;;
	iperf3) (($2 >= 65536)) ;; # of which messages one write has at least
	esac
}

# stream_command ROW LCORE CPU OPTION...: sets `command`, for either side.
stream_command()
{
	local row=$1 lcore=$2 cpu=$3 path=${program[${stream_program[$1]}]}

	shift 3
	case $row in
	shm-stream) command=("$path" -l "$lcore@$cpu" --idle poll --provider shm -- "$@") ;;
	tcp-*) command=("$path" -l "$lcore@$cpu" --idle poll --provider tcp -- "$@") ;;
	raw-fi-tcp) command=("$path" --provider "$fi_provider") ;;
	raw-fi-plxshm) command=(env "FI_PROVIDER_PATH=$module_dir" "$path" --provider plx_shm) ;;
	raw-fi-plxshm-cma)
		command=(env "FI_PROVIDER_PATH=$module_dir" "FI_PLX_SHM_COPY_MAX=$stream_copied_bytes"
			"$path" --provider plx_shm)
		;;
	raw-fi-shm) command=("$path") ;;
	raw-fi-shm-nocma) command=(env FI_SHM_DISABLE_CMA=1 "$path") ;;
	esac
	[[ ${stream_program[$row]} == plx-ping ]] || command+=("$@" --cpu "$cpu")
}

# stream_server ROW SIZE: sets `command`.
stream_server()
{
	local own=()

	[[ $1 != iperf3 ]] || { iperf3_server; return; }
	[[ ${stream_program[$1]} != plx-ping ]] || own=(--sink --size "$2")
	stream_command "$1" 0 "$cpu_server" --listen "$(where_to_listen "$1")" "${own[@]}"
}

# stream_client ROW SIZE DIR ADDRESS: sets `command`.
stream_client()
{
	local own=()

	[[ $1 != iperf3 ]] || { iperf3_client "$4" "$2" "$stream_duration" "$3/result.json"; return; }
	[[ ${stream_program[$1]} != plx-ping ]] || own=(--one-way)
	[[ $1 != *-single ]] || own+=(--burst 1)
	stream_command "$1" 1 "$cpu_client" --connect "$4" "${own[@]}" --size "$2" --duration "$stream_duration" \
		--warmup "$(one_way_warmup "$2")" --out "$3" --name "$1"
}

# stream_run_row ROW SIZE DIR: returns the client's status; 1 if the server does not start.
stream_run_row()
{
	local row=$1 size=$2 dir=$3 test=tag_bw tries=1 address limit command=() status

	if [[ $row == ucx-* ]]; then
		[[ $row != ucx-tcp-am ]] || test=am_bw
		ucx_run "$row" "$size" "$dir" $test "$(ucx_count "$row" "$size" 8000000 500000 "$stream_duration")"
		return
	fi
	limit=$(client_limit "$stream_duration")
	[[ $row != iperf3 ]] || tries=5
	serve_trying $tries "$dir" "$limit" stream_server "$row" "$size" || return 1
	stream_client "$row" "$size" "$dir" "$address"
	run_client "$dir" "$limit"
	status=$?
	((!status)) && [[ $row == iperf3 ]] || return $status
	stream_iperf3 "$size" "$dir"/{result,iperf3}.json
}

# stream_iperf3 SIZE FROM TO: convert its result to a run of this part.
stream_iperf3()
{
	jq --argjson size "$1" '.end.sum_received | {provider: "kernel", size_bytes: $size, count: (.bytes / $size | round),
		messages_per_s: (.bits_per_second / 8 / $size), bytes_per_s: (.bits_per_second / 8)}' "$2" >"$3"
}

stream_measure()
{
	local row=$1 size=$2 round=$3 dir=$out/runs/stream-$1-$2-$3 status

	mkdir -p "$dir"
	stream_run_row "$row" "$size" "$dir"
	status=$?
	end_children
	keep_run stream "$row" "$size" "$round" "$status" "$dir" \
		'"    \(.messages_per_s | round) messages/s, \(.bytes_per_s / 1e7 | round / 100) GB/s"'
}

stream_run()
{
	in_rounds stream stream_sizes stream_rows
}

# Sum, plots, tables ---------------------------------------------------------------------------

stream_sum()
{
	sum_part stream
}

# One picture: messages and bytes per second, by size.
stream_plot()
{
	local data=$out/plots/data row status=0

	jq -e '.rows != []' "$out/stream.json" >/dev/null || return 0
	mkdir -p "$data"
	for row in "${stream_rows[@]}"; do
		jq -r --arg row "$row" '.states[0].state as $state | .rows[] | select(.key == $row and .state == $state)
			| "\(.size_bytes) \(.messages_per_s / 1e6) \(.bytes_per_s / 1e9)"' \
			"$out/stream.json" >"$data/$row"
	done
	draw stream stream '' || status=1
	rm -rf "$data"
	return $status
}

stream_print()
{
	say
	say "One way; medians over $rounds rounds. x base: messages/s over those of base, by pairs of one round."
	table_of_sizes '%-19s %12s %20s %9s %7s %s\n' messages/s 'over rounds' GB/s 'x' base < <(
		jq -r -L "$here" 'include "words";
			.rows[] | "\(.size_bytes) \(.state) \(.key) \(.messages_per_s | round) " +
				"\(.messages_per_s_least | round)..\(.messages_per_s_greatest | round) " +
				"\(.bytes_per_s / 1e9 | short) \(.ratio // "-") \(.base // "-")"' "$out/stream.json")
}

stream_html()
{
	jq -r -L "$here" -f "$here/part-stream.jq" "$out/stream.json"
	inline_svg "$out/plots/stream.svg"
}
