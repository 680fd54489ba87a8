# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The part netio: throughput and round trips of NetIO's sockets, and the cost of subscribers for a publisher, compared
# with ZeroMQ, iperf3, libfabric alone and plx-ping. Sourced by bench.sh.
# shellcheck disable=SC2016,SC2034,SC2154

wanted+=(raw-zmq-stream raw-fi-stream netio-throughput netio-recv netio-pubsub-bench)

# In the order of a round: compared rows are adjacent. publish-MODE-SUBSCRIBERS; beside-POLICY needs the result of
# publish-buffered-4.
netio_all_rows=(zmq-in-place zmq-push-pull buffered-tcp buffered-1M-tcp buffered-shm unbuffered-shm unbuffered-tcp
	raw-fi-tcp-bw reference-tcp iperf3 tcp-poll ping-tcp shm-poll ping-shm
	publish-buffered-{1,4} beside-{disconnect,drop-old,drop-new,conflate}
	publish-buffered-16 publish-unbuffered-{1,4,16})
netio_main_rows=' zmq-in-place zmq-push-pull buffered-tcp '
declare -A netio_program=([zmq-push-pull]=raw-zmq-stream [zmq-in-place]=raw-zmq-stream [raw-fi-tcp-bw]=raw-fi-stream
	[tcp-poll]=plx-ping [shm-poll]=plx-ping [iperf3]=iperf3) # of netio's own: see netio_program_of

netio_write_bytes=1048576 # of iperf3
netio_pages=256 netio_page_bytes=65536

netio_begin()
{
	netio_duration=1.5
	((!quick)) || netio_duration=0.25
	netio_duration=${duration_given:-$netio_duration}
	# A hundredth of it must exceed the interruptions of a quiet host.
	netio_beside_duration=1.5
	((!quick)) || netio_beside_duration=1
	netio_beside_duration=${duration_given:-$netio_beside_duration}
	choose_provider # of tcp, as rtt does
	netio_sizes=("${size_list[@]}")
	[[ $scope != main ]] || ((sizes_given)) || netio_sizes=(64 1048576)
	netio_choose_rows
	[[ $scope == main ]] || netio_tell_sizes
	expect_rounds netio "$netio_duration" netio_sizes netio_rows
}

netio_program_of()
{
	case $1 in
	publish-* | beside-*) echo netio-pubsub-bench ;;
	*) echo "${netio_program[$1]-netio-throughput}" ;;
	esac
}

netio_choose_rows()
{
	local row name missing=''

	netio_rows=()
	for row in "${netio_all_rows[@]}"; do
		name=$(netio_program_of "$row")
		if [[ $scope == main && $netio_main_rows != *" $row "* ]]; then
			:
		elif [[ -n ${program[$name]-} ]]; then
			netio_rows+=("$row")
		elif [[ $row == iperf3 ]]; then
			leave_out 'netio: iperf3, which is not installed'
		elif [[ $row == zmq-* ]]; then
			leave_out "netio: $row, as libzmq3-dev was not there when the build folder was made"
		else
			[[ $missing == *" $name "* ]] || failures+=("netio: the build has no program $name")
			missing+=" $name "
		fi
	done
	[[ -n ${program[netio-recv]-} ]] || failures+=('netio: the build has no program netio-recv')
}

# Sizes ----------------------------------------------------------------------------------------

# A row's sizes; nothing: all. Pages must hold the longest.
netio_sizes_of()
{
	case $1 in
	iperf3) echo $netio_write_bytes ;;
	*-poll | ping-* | beside-*) echo 64 ;;
	publish-*) echo 64 65536 ;;
	esac
}

netio_has()
{
	local sizes

	sizes=$(netio_sizes_of "$1")
	[[ -z $sizes || " $sizes " == *" $2 "* ]]
}

# Sizes excluded by --sizes.
netio_tell_sizes()
{
	local row size

	for row in iperf3 ping-tcp publish-buffered-1 beside-disconnect; do
		for size in $(netio_sizes_of "$row"); do
			[[ " ${netio_sizes[*]} " == *" $size "* ]] ||
				leave_out "netio: ${row%%-*} at $(size_words "$size"), which --sizes does not name"
		done
	done
}

# Measuring ------------------------------------------------------------------------------------

netio_provider()
{
	[[ $1 == *shm* ]] && echo shm || echo tcp
}

# netio_server ROW SIZE DIR: sets `command`.
netio_server()
{
	local row=$1 size=$2 where=127.0.0.1:0 mode=${1#publish-} own=()

	case $row in
	zmq-*)
		command=("${program[raw-zmq-stream]}" --listen "$where" --size "$size" --cpu "$cpu_server")
		;;
	raw-fi-tcp-bw)
		command=("${program[raw-fi-stream]}" --listen "$where" --provider "$fi_provider"
			--cpu "$cpu_server")
		;;
	iperf3) iperf3_server ;;
	*-poll) server_command "$row" "$where" "$size" ;;
	publish-*)
		command=("${program[netio-pubsub-bench]}" -l "0@$cpu_server" --idle poll
			--provider tcp -- --listen "$where" --mode "${mode%-*}" --size "$size"
			--subscribers "${row##*-}" --duration "$netio_duration" --json "$3/result.json")
		;;
	beside-*)
		command=("${program[netio-pubsub-bench]}" -l "0@$cpu_server" --idle poll
			--provider tcp --heartbeat off -- --listen "$where" --mode buffered
			--size "$size" --subscribers 5 --rate "$netio_rate"
			--duration "$netio_beside_duration" --json "$3/result.json")
		;;
	*)
		# A buffer holds what arrives in one piece: a page, or an unbuffered message.
		if [[ $row == buffered-1M-* ]]; then
			own=(--rx-buf 1M)
		elif [[ $row != buffered-* ]] && ((size > netio_page_bytes)); then
			own=(--rx-buf $((size < 8 << 20 ? size : 8 << 20)))
		fi
		command=("${program[netio-recv]}" -l "0@$cpu_server" --idle poll
			--provider "$(netio_provider "$row")" -- --listen "$where" "${own[@]}")
		;;
	esac
}

# netio_client ROW SIZE DIR ADDRESS: sets `command`.
netio_client()
{
	local row=$1 size=$2 mode=${1%-*} raw own=()

	raw=(--connect "$4" --size "$size" --duration "$netio_duration"
		--warmup "$(one_way_warmup "$size")" --out "$3" --name result --cpu "$cpu_client")
	case $row in
	zmq-push-pull) command=("${program[raw-zmq-stream]}" "${raw[@]}" --copy) ;;
	zmq-in-place) command=("${program[raw-zmq-stream]}" "${raw[@]}") ;;
	raw-fi-tcp-bw) command=("${program[raw-fi-stream]}" "${raw[@]}" --provider "$fi_provider") ;;
	iperf3) iperf3_client "$4" "$netio_write_bytes" "$netio_duration" "$3/result.json" ;;
	*-poll) client_command "$row" "$4" "$size" "$3" ;;
	publish-*)
		command=("${program[netio-pubsub-bench]}" -l "1@$cpu_client" --idle poll
			--provider tcp -- --connect "$4" --subscribers "${row##*-}")
		;;
	beside-*)
		command=("${program[netio-pubsub-bench]}" -l "1@$cpu_client" --idle poll
			--provider tcp --heartbeat off -- --connect "$4" --subscribers 4
			--json "$3/subscribers.json")
		;;
	*)
		if [[ $row == buffered-1M-* ]]; then
			mode=buffered own=(--page 1M --pages 128)
		elif [[ $row == buffered-* ]]; then
			own=(--page "$netio_page_bytes" --pages "$netio_pages")
		fi
		command=("${program[netio-throughput]}" -l "1@$cpu_client" --idle poll
			--provider "$(netio_provider "$row")" -- --connect "$4" --mode "$mode" --sizes "$size"
			--duration "$netio_duration" "${own[@]}" --json "$3/result.json")
		;;
	esac
}

# netio_serve ROW SIZE DIR LIMIT: sets `address`.
netio_serve()
{
	local tries=1

	[[ $1 != iperf3 ]] || tries=5
	serve_trying $tries "$3" "$4" netio_server "$1" "$2" "$3"
}

# netio_hold_slow POLICY ADDRESS DIR LIMIT: a subscriber that is stopped once it has subscribed. Without heartbeats,
# because its publisher would drop it.
netio_hold_slow()
{
	local below holder

	: >"$3/slow.log"
	timeout -k 3 "$4" "${program[netio-pubsub-bench]}" -l "0@$cpu_client" \
		--provider tcp --heartbeat off -- --connect "$2" --slow "$1" \
		>"$3/slow.log" 2>&1 </dev/null &
	holder=$!
	children+=("$holder")
	for _ in {1..500}; do
		if grep -q '^subscribed' "$3/slow.log"; then
			pid_below "$holder" && stop_process "$holder" "$below"
			return
		fi
		kill -0 "$holder" 2>/dev/null || break
		sleep 0.02
	done
	tail -n 1 "$3/slow.log" >"$3/client.log"
	return 1
}

# Half of the latest rate of publish-buffered-4, at 64 B.
netio_half_rate()
{
	jq -ser 'map(select(.row == "publish-buffered-4" and .size_bytes == 64)) | last | .mmsg_per_s * 1e6 / 4 / 2 | round' \
		"$out/runs/netio.ndjson" 2>/dev/null
}

# netio_run_row ROW SIZE DIR: returns the status of a failed process; 1 if the server does not start.
netio_run_row()
{
	local row=$1 size=$2 dir=$3 address limit client below command=() duration=$netio_duration
	local cpu_plx_server=$cpu_server at_server=receiver at_client=sender status

	[[ $row != publish-* && $row != beside-* ]] || at_server=sender at_client=receiver
	limit=$(client_limit "$netio_duration")
	netio_serve "$row" "$size" "$dir" "$limit" || return 1
	[[ $row != beside-* ]] || netio_hold_slow "${row#*-}" "$address" "$dir" "$limit" || return 1
	netio_client "$row" "$size" "$dir" "$address"
	start_client "$dir" "$limit"
	nap 0.1 # until both are at work
	pid_below "${children[0]}"
	watch_process $at_server "$below"
	pid_below "$client"
	watch_process $at_client "$below"
	watch_to_the_end "$client" 0.1 sender receiver
	status=$?
	kill_stopped # for which the publisher would wait
	# The publisher has the figures.
	[[ $at_server != sender ]] || wait "${children[0]}" || status=$?
	[[ $row != *-poll || ! -s $dir/$row.json ]] || mv "$dir/$row.json" "$dir/result.json"
	[[ $row != iperf3 ]] || ((!status)) || jq -r '.error' "$dir/result.json" >>"$dir/client.log"
	return $status
}

# netio_result ROW SIZE DIR: the row's output as a run of this part.
netio_result()
{
	local row=$1 test=${1%-*} provider subscribers=null least=''

	provider=$(netio_provider "$row")
	case $row in
	zmq-* | raw-fi-tcp-bw) test=$row provider='' ;;
	iperf3) provider='kernel tcp' ;;
	*-poll) test=plx-ping ;;
	publish-*) test=${row%-*} subscribers=${row##*-} ;;
	beside-*)
		test=$row subscribers=4
		least=$(jq .messages_per_s_least "$3/subscribers.json" 2>>"$3/client.log")
		;;
	esac
	jq --arg test "$test" --arg provider "$provider" --argjson size "$2" \
		--argjson subscribers "$subscribers" --argjson least "${least:-null}" \
		--argjson usage "$(netio_usage)" \
		-f "$here/netio-run.jq" "$3/result.json" >"$3/$row.json" 2>>"$3/client.log"
}

netio_usage()
{
	local side

	for side in sender receiver; do
		printf '{"%s": {"cpu_ns": %d, "watched_us": %d}}' $side "${cpu_ns[$side]}" "${watched_us[$side]}"
	done | jq -sc add
}

netio_measure()
{
	local row=$1 size=$2 round=$3 dir=$out/runs/netio-$1-$2-$3 status netio_rate=''

	if [[ $row == beside-* ]] && ! netio_rate=$(netio_half_rate); then
		leave_out "netio: $row in round $round, as publish-buffered-4 failed"
		return
	fi
	mkdir -p "$dir"
	once_or_twice netio_run_row "$row" "$size" "$dir"
	status=$?
	((status)) || netio_result "$row" "$size" "$dir" || status=1
	keep_run netio "$row" "$size" "$round" "$status" "$dir" '"    " + ([
		(.mmsg_per_s | values | "\(. * 1e6 | round) messages/s"),
		(.gbit_per_s | values | "\(. * 1e2 | round / 1e2) Gb/s"),
		(.p50_ns | values | "p50 \(. / 10 | round / 100) us"),
		(.cycles_per_copy | values | "\(round) cycles/copy"),
		(select(.kept) | "kept \(.kept * 1e4 | round / 1e4) of \(.rate_asked) messages/s")] | join(", "))'
}

netio_run()
{
	in_rounds netio netio_sizes netio_rows
}

# Sum, plots, tables ---------------------------------------------------------------------------

netio_sum()
{
	sum_part netio
}

# Two pictures: messages and bits per second by size; cycles per copy by subscribers.
netio_plot()
{
	local data=$out/plots/data row status=0

	mkdir -p "$data"
	for row in "${netio_rows[@]}"; do
		jq -r --arg row "$row" '.states[0].state as $state
			| .rows[] | select(.name == $row and .state == $state and .gbit_per_s and .subscribers == null)
			| "\(.size_bytes) \(.mmsg_per_s // "NaN") \(.gbit_per_s)"' "$out/netio.json" >"$data/$row"
	done
	[[ -z $(cat "$data"/*) ]] || draw netio netio '' || status=1
	rm -rf "$data"

	mkdir -p "$data"
	for row in publish-{un,}buffered-{64,65536}; do
		jq -r --arg test "${row%-*}" --argjson size "${row##*-}" \
			'.states[0].state as $state | [.rows[] | select(.test == $test and .size_bytes == $size and .state == $state)] | sort_by(.subscribers)[]
			| "\(.subscribers) \(.cycles_per_copy)"' "$out/netio.json" >"$data/$row"
	done
	[[ -z $(cat "$data"/*) ]] || draw netio-publish publish '' || status=1
	rm -rf "$data"
	return $status
}

# netio_table TITLE FORMAT FILTER HEAD...: FILTER prints a line "SIZE STATE ROW CELL..." for each row that it selects.
netio_table()
{
	local title=$1 format=$2 filter=$3 lines

	shift 3
	lines=$(jq -r -L "$here" 'include "words";
		def cell: if . == null then "-" else short end;
		def whole: if . == null then "-" else round end;
		def kept: . * 1e4 | round / 1e4;
		def cpus: "\(.cpu_percent_sender | whole) \(.cpu_percent_receiver | whole)";
		.rows[] | '"$filter" "$out/netio.json")
	[[ -n $lines ]] || return 0
	say
	say "$title"
	table_of_sizes "$format" "$@" <<<"$lines"
}

netio_print()
{
	netio_table "NetIO; medians over $rounds rounds. x peer: over what the row is held against." \
		'%-19s %9s %9s %17s %6s %6s  %-14s %7s\n' 'select(.gbit_per_s and .subscribers == null) |
		"\(.size_bytes) \(.state) \(.name) \(.mmsg_per_s | digits // "-") \(.gbit_per_s | cell) " +
		"\(.gbit_per_s_least | cell)..\(.gbit_per_s_greatest | cell) \(cpus) \(.peer // "-") \(.ratio // "-")"' \
		Mmsg/s Gb/s 'over rounds' 'send%' 'recv%' peer 'x peer'
	netio_table 'NetIO, round trips, us' '%-19s %9s %9s %17s  %-14s %7s\n' 'select(.p50_ns) |
		"\(.size_bytes) \(.state) \(.name) \(.p50_ns | us) \(.p99_ns | us) " +
		"\(.p50_ns_least | us)..\(.p50_ns_greatest | us) \(.peer // "-") \(.ratio // "-")"' \
		p50 p99 'p50 over rounds' peer 'x peer'
	netio_table 'NetIO, publish and subscribe; cycles are those of the publisher' \
		'%-22s %9s %9s %11s %17s  %-21s %7s\n' 'select(.cycles_per_copy) |
		"\(.size_bytes) \(.state) \(.name) \(.mmsg_per_s | digits // "-") \(.gbit_per_s | cell) \(.cycles_per_copy | whole) " +
		"\(.cycles_per_copy_least | whole)..\(.cycles_per_copy_greatest | whole) \(.peer // "-") \(.ratio // "-")"' \
		Mcopies/s Gb/s cycles/copy 'over rounds' peer 'x peer'
	netio_table "NetIO, four subscribers and one that is stopped; kept: of half the rate of publish-buffered-4" \
		'%-22s %9s %9s %9s %17s\n' 'select(.kept) |
		"\(.size_bytes) \(.state) \(.name) \(.mmsg_per_s | digits) \(.rate_asked * .subscribers / 1e6 | digits) \(.kept | kept) " +
		"\(.kept_least | kept)..\(.kept_greatest | kept)"' \
		Mcopies/s asked kept 'over rounds'
}

netio_html()
{
	jq -r -L "$here" -f "$here/part-netio.jq" "$out/netio.json"
	inline_svg "$out/plots/netio.svg"
	inline_svg "$out/plots/netio-publish.svg"
}
