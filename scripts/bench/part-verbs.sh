# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The part verbs: round trips over RDMA devices, polling and sleeping, through Pollux, libfabric alone, and perftest's
# ib_send_lat; on each device alone, or to another host. Sourced by bench.sh.
# shellcheck disable=SC2016,SC2034,SC2154

wanted+=(plx-info)

# In the order of a round: compared rows are adjacent. A row runs as ROW@DEVICE.
verbs_all_rows=(ib-send-lat raw-fi-verbs verbs-poll ib-send-lat-event raw-fi-verbs-event verbs-event)
verbs_event_size=64 # the one size of rows that sleep

verbs_begin()
{
	local device

	verbs_duration=2
	((!quick)) || verbs_duration=0.5
	verbs_duration=${duration_given:-$verbs_duration}
	verbs_rows=() verbs_devices='[]'
	[[ -n ${program[raw-fi]-} && -n ${program[plx-ping]-} && -n ${program[plx-info]-} ]] || {
		failures+=('verbs: the build lacks raw-fi, plx-ping or plx-info')
		return
	}
	verbs_find_devices || return 0
	verbs_choose_devices
	verbs_find_perftest
	[[ $mode != connect ]] || verbs_meet_peer
	for device in $(verbs_names); do
		verbs_add_rows "$device"
	done
	[[ $mode == serve ]] || expect_rounds verbs "$verbs_duration" size_list verbs_rows
}

# Devices --------------------------------------------------------------------------------------

# verbs_devices: the usable devices here, from plx-info.
verbs_find_devices()
{
	local info why

	info=$(timeout --foreground 60 "${program[plx-info]}" --format json 2>/dev/null)
	verbs_devices=$(jq -c 'if .rdma_cm != "open" then [] else [.rdma[] | select(.usable) | . as $all
		| .ports[] | select(.active) | {
			device: $all.name, transport: (if $all.transport == "InfiniBand" and .link_layer == "Ethernet"
				then "RoCE" else $all.transport end),
			rate, mtu_bytes, netdevs: ([.netdev, .gids[].netdev] | unique - [null]),
			inline_max_bytes: $all.inline_max_bytes, node: $all.node, cpus: $all.cpus,
			address: ([(.addresses[]), (.gids[].gid | select(startswith("::ffff:")) | ltrimstr("::ffff:"))]
				| map(select(startswith("fe80:") | not)) | sort_by(contains(":"))[0])}
		| select(.address)] | unique_by(.device) end' <<<"${info:-null}" 2>/dev/null)
	[[ -z $verbs_devices || $verbs_devices == '[]' ]] || return 0
	verbs_devices='[]'
	why=$(jq -r 'if .rdma == [] then "this host has no RDMA device"
		else [.doctor[] | select(.id | startswith("rdma")) | .seen] | join("; ") end' \
		<<<"${info:-null}" 2>/dev/null)
	why="no RDMA device with an active port and an IP address: ${why:-plx-info shows none}"
	[[ ${parts[*]} != verbs ]] || die "verbs: $why"
	leave_out "verbs: $why"
	return 1
}

# verbs_field DEVICE FIELD: a field of a device; empty if unknown.
verbs_field()
{
	jq -r --arg device "$1" --arg field "$2" '.[] | select(.device == $device) | .[$field] // empty' \
		<<<"$verbs_devices"
}

verbs_names()
{
	jq -r '.[].device' <<<"$verbs_devices"
}

# Select the requested device, the listening one, or the one that leads to the peer.
verbs_choose_devices()
{
	local all wanted_device=$device_given netdev host=${listen%:*}

	all=$(verbs_names | paste -sd ' ')
	case $mode in
	serve)
		host=${host#[} host=${host%]}
		[[ -n $wanted_device ]] || wanted_device=$(jq -r --arg host "$host" \
			'.[] | select(.address == $host) | .device' <<<"$verbs_devices")
		;;
	connect)
		netdev=$(verbs_netdev_to "${peer%:*}")
		[[ -n $wanted_device ]] || wanted_device=$(jq -r --arg netdev "$netdev" --arg address "${peer%:*}" \
			'[.[] | select(.address == $address or any(.netdevs[]; . == $netdev)) | .device][0] // empty' \
			<<<"$verbs_devices")
		;;
	esac
	if [[ -n $wanted_device ]]; then
		[[ " $all " == *" $wanted_device "* ]] ||
			die "--device $wanted_device: that is none with an active port and an IP address; there are: $all" 2
		verbs_devices=$(jq -c --arg device "$wanted_device" 'map(select(.device == $device))' <<<"$verbs_devices")
	elif [[ $mode != local && $all == *' '* ]]; then
		die "there are several RDMA devices: $all; give --device, or to --serve an address of one by --listen" 2
	fi
	[[ $mode != serve || ! $host =~ ^(0\.0\.0\.0|::|\*)$ ]] ||
		listen=$(verbs_at "$(verbs_names)" "${listen##*:}")
}

# verbs_netdev_to HOST: the network interface on the route.
verbs_netdev_to()
{
	local host=${1#[} address

	host=${host%]}
	read -r address _ < <(getent ahostsv4 "$host" || getent ahosts "$host")
	ip -j route get "${address:-$host}" 2>/dev/null | jq -r '.[0].dev // empty'
}

# verbs_at DEVICE PORT: HOST:PORT of its address.
verbs_at()
{
	local address

	address=$(verbs_field "$1" address)
	[[ $address != *:* ]] || address="[$address]"
	echo "$address:$2"
}

# verbs_choose_cpus DEVICE: sets verbs_cpu_server and verbs_cpu_client: two CPUs near it, if this process may use two
# there.
verbs_choose_cpus()
{
	local near cpus=()

	verbs_cpu_server=$cpu_server verbs_cpu_client=$cpu_client
	near=$(verbs_field "$1" cpus)
	[[ -z $near ]] || mapfile -t cpus < <(comm -12 <(cpus_of "$near" | sort) <(cpus_of "$allowed_cpus" | sort) |
		sort -n)
	((${#cpus[@]} < 2)) || verbs_cpu_server=${cpus[0]} verbs_cpu_client=${cpus[1]}
}

# Rows -----------------------------------------------------------------------------------------

verbs_find_perftest()
{
	verbs_perftest=''
	if ! command -v ib_send_lat >/dev/null; then
		leave_out 'verbs: ib-send-lat, as perftest is not installed'
	elif [[ $mode == connect && $peer == \[* ]]; then
		leave_out 'verbs: ib-send-lat, which is given IPv4 addresses alone'
	else
		verbs_perftest=1
	fi
}

verbs_add_rows()
{
	local row

	verbs_choose_cpus "$1"
	case $mode in
	local)
		say "verbs on $1 ($(verbs_field "$1" transport)): CPU $verbs_cpu_server serves, CPU $verbs_cpu_client measures"
		;;
	connect) say "verbs from $1 ($(verbs_field "$1" transport)) to $peer, on CPU $verbs_cpu_client" ;;
	esac
	for row in "${verbs_all_rows[@]}"; do
		[[ $row == ib-* && -z $verbs_perftest ]] || verbs_rows+=("$row@$1")
	done
}

# verbs_has ROW@DEVICE SIZE
verbs_has()
{
	[[ $1 != *-event@* ]] || (($2 == verbs_event_size))
}

# Warm-up round trips.
verbs_warmup()
{
	by_size "$1" 1000 50 50
}

# verbs_iterations ROW SIZE: of ib_send_lat. Both sides need the count; the duration cannot be set.
verbs_iterations()
{
	if [[ $1 == *-event ]]; then
		echo 2000
	else
		by_size "$2" 10000 1000 200
	fi
}

# verbs_lat_command ROW DEVICE PORT SIZE CPU [HOST]: sets `command`.
verbs_lat_command()
{
	command=(taskset -c "$5" ib_send_lat -R -F -H -d "$2" -p "$3" -s "$4" -n "$(verbs_iterations "$1" "$4")")
	[[ $1 != *-event ]] || command+=(-e)
	command+=("${@:6}")
}

# verbs_server ROW DEVICE HOST:PORT SIZE CPU: sets `command`.
verbs_server()
{
	case $1 in
	ib-*) verbs_lat_command "$1" "$2" "${3##*:}" "$4" "$5" ;;
	raw-*)
		command=("${program[raw-fi]}" --listen "$3" --provider verbs --idle "$(idle_of "$1")" --cpu "$5")
		;;
	*)
		command=("${program[plx-ping]}" -l "0@$5" --idle "$(idle_of "$1")" --provider verbs
			-- --listen "$3" --size "$4")
		;;
	esac
}

# verbs_client ROW DEVICE HOST:PORT SIZE DIR: sets `command`.
verbs_client()
{
	local tail=(--connect "$3" --size "$4" --duration "$verbs_duration" --warmup "$(verbs_warmup "$4")"
		--out "$5" --name "$1")

	case $1 in
	ib-*) verbs_lat_command "$1" "$2" "${3##*:}" "$4" "$verbs_cpu_client" "${3%:*}" ;;
	raw-*)
		command=("${program[raw-fi]}" "${tail[@]}" --provider verbs --idle "$(idle_of "$1")"
			--cpu "$verbs_cpu_client")
		;;
	*)
		command=("${program[plx-ping]}" -l "1@$verbs_cpu_client" --idle "$(idle_of "$1")" --provider verbs
			-- "${tail[@]}")
		;;
	esac
}

# Measuring ------------------------------------------------------------------------------------

# verbs_wait_lat DEVICE PORT PID: wait until an ib_send_lat listens there; it prints nothing.
verbs_wait_lat()
{
	for _ in {1..100}; do
		kill -0 "$3" 2>/dev/null || return 1
		if ! command -v rdma >/dev/null; then
			sleep 1
			return
		fi
		! rdma resource show cm_id 2>/dev/null | grep -q "^link $1/.* LISTEN .*:$2 " || return 0
		sleep 0.1
	done
	return 1
}

# verbs_serve_row ROW DEVICE SIZE DIR LIMIT: sets `address`.
verbs_serve_row()
{
	local port=0

	[[ $1 != ib-* ]] || port=$((20000 + RANDOM % 10000)) # it does not choose a free one
	address=$(verbs_at "$2" $port)
	verbs_server "$1" "$2" "$address" "$3" "$verbs_cpu_server"
	if [[ $1 != ib-* ]]; then
		run_server "$4" "$5"
		return
	fi
	timeout -k 3 $(($5 + 15)) "${command[@]}" >"$4/server.log" 2>&1 </dev/null &
	children+=($!)
	verbs_wait_lat "$2" $port $!
}

# verbs_run_row ROW DEVICE SIZE DIR: returns the client's status; 1 if the server does not start.
verbs_run_row()
{
	local row=$1 device=$2 size=$3 dir=$4 address limit command=() status

	limit=$(client_limit "$verbs_duration")
	if [[ $mode == connect ]]; then
		address=$(verbs_address_of "$row" "$size" "$peer")
	else
		verbs_serve_row "$row" "$device" "$size" "$dir" "$limit" || return 1
	fi
	verbs_client "$row" "$device" "$address" "$size" "$dir"
	for _ in {1..5}; do
		run_client "$dir" "$limit" 2>/dev/null # the shell would report a crash
		status=$?
		# The others wait for a server that is not up yet; this one fails or crashes.
		[[ $row == ib-* && $status =~ ^(1|139)$ ]] || break
		[[ $mode == connect ]] || kill -0 "${children[0]}" 2>/dev/null || break
		sleep 0.5
	done
	if [[ $row == ib-* ]] && ((!status)); then
		verbs_lat_result "$row" "$size" "$dir"
		status=$?
	fi
	return $status
}

# verbs_lat_result ROW SIZE DIR: convert the output of ib_send_lat to the others' format.
verbs_lat_result()
{
	local status

	jq -Rn --arg name "$1" --arg idle "$(idle_of "$1")" --argjson size "$2" -f "$here/verbs-lat.jq" \
		"$3/client.log" >"$3/$1.json" 2>"$3/jq.log"
	status=$?
	cat "$3/jq.log" >>"$3/client.log"
	return $status
}

# verbs_measure ROW@DEVICE SIZE ROUND: one run.
verbs_measure()
{
	local row=${1%@*} device=${1#*@} size=$2 round=$3 dir status

	dir=$out/runs/verbs-$device-$row-$size-$round
	mkdir -p "$dir"
	verbs_choose_cpus "$device"
	once_or_twice verbs_run_row "$row" "$device" "$size" "$dir"
	status=$?
	if ((!status)); then
		jq --arg device "$device" '. + {$device}' "$dir/$row.json" >"$dir/new.json" &&
			mv "$dir/new.json" "$dir/$row.json" || status=1
	fi
	keep_run verbs "$row" "$size" "$round" "$status" "$dir" \
		'"    p50 \(if .p50_ns then .p50_ns / 1000 else "n/a" end) us, \(.count) round trips"'
}

verbs_run()
{
	in_rounds verbs size_list verbs_rows
}

# Two hosts ------------------------------------------------------------------------------------

# verbs_address_of ROW SIZE HOST:PORT: the server address of a row, PORT being the first of all ports. perftest's
# servers serve one size each.
verbs_address_of()
{
	local offset=4 size

	case $1 in
	raw-fi-verbs) offset=0 ;;
	raw-fi-verbs-event) offset=1 ;;
	verbs-poll) offset=2 ;;
	verbs-event) offset=3 ;;
	ib-send-lat)
		for size in "${size_list[@]}"; do
			((size != $2)) || break
			((offset++))
		done
		;;
	ib-send-lat-event) ((offset += ${#size_list[@]})) ;;
	esac
	echo "${3%:*}:$((${3##*:} + offset))"
}

# A server must be up; reported now instead of by every row.
verbs_meet_peer()
{
	say "meeting $peer ..."
	run_limited 40 "${program[raw-fi]}" --connect "$peer" --provider verbs --count 1 --warmup 0 >"$out/runs/meet.log" 2>&1
	# 3: it was up, but slow
	(($? == 0 || $? == 3)) || die "--connect $peer: $(tail -n 1 "$out/runs/meet.log")
  Is 'scripts/bench.sh --only verbs --serve --listen $peer' running there?"
}

verbs_serve()
{
	local row size keys=() first=${listen##*:}

	verbs_choose_cpus "$(verbs_names)"
	for row in "${verbs_rows[@]%@*}"; do
		if [[ $row != ib-* ]]; then
			keys+=("$row/0")
			continue
		fi
		for size in "${size_list[@]}"; do # perftest's servers need it
			! verbs_has "$row@" "$size" || keys+=("$row/$size")
		done
	done
	say "serving verbs on $(verbs_names), ${listen%:*}, ports $first to $((first + 4 + ${#size_list[@]})); end with Ctrl-C"
	keep_serving "${keys[@]}"
}

# verbs_serve_one ROW/SIZE: sets `pid`. Size 0: any size. Returns 1 if it does not start. The polling server has its
# own CPU.
verbs_serve_one()
{
	local row=${1%/*} size=${1#*/} address cpu=$verbs_cpu_server log=$build/serve/verbs-${1/\//-}.log largest

	address=$(verbs_address_of "$row" "$size" "$listen")
	largest=$(printf '%s\n' "${size_list[@]}" | sort -n | tail -n 1)
	((size)) || size=$largest
	[[ $row != verbs-poll ]] || cpu=$verbs_cpu_client
	verbs_server "$row" "$(verbs_names)" "$address" "$size" "$cpu"
	[[ $row != raw-* ]] || command+=(--wait 86400)
	: >"$log"
	"${command[@]}" >"$log" 2>&1 </dev/null &
	pid=$!
	children+=("$pid")
	if [[ $row == ib-* ]]; then
		verbs_wait_lat "$(verbs_names)" "${address##*:}" "$pid"
	else
		wait_listening "$log" "$pid"
	fi || {
		serve_trouble="$row: $(tail -n 1 "$log")"
		return 1
	}
}

# Sum ------------------------------------------------------------------------------------------

verbs_sum()
{
	sum_pooled verbs --argjson devices "$verbs_devices" --arg peer "$peer"
}

# Plots ----------------------------------------------------------------------------------------

# Points from the output of some runs of ib_send_lat: 1/(1-p) and microseconds.
verbs_lat_points()
{
	awk -F', ' '/^[0-9]+, [0-9.e+]+$/ { print $2 * 2 }' "$@" | sort -g |
		awk '{ all[n++] = $1 } END { for (i = 0; i < n; i++) print n / (n - i), all[i] }'
}

# verbs_plot_one DEVICE SIZE: percentiles.
verbs_plot_one()
{
	local data=$out/plots/data row file status=0 references=0

	mkdir -p "$data"
	while read -r row file; do
		if [[ $row == ib-* ]]; then
			verbs_lat_points "$out/runs/verbs-$1-$row-$2"-*/client.log >"$data/$row"
		else
			percentile_points "$out/$file" >"$data/$row"
		fi
	done < <(jq -r --arg device "$1" --argjson size "$2" '.states[0].state as $state | .rows[]
		| select(.device == $device and .size_bytes == $size and .state == $state) | "\(.name) \(.histogram)"' "$out/verbs.json")
	(($2 != verbs_event_size)) || references=1
	draw "verbs-$1-$2" verbs "device='$1'; size='$(size_words "$2")'; bytes='$2'; references=$references" || status=1
	rm -rf "$data"
	return $status
}

# Lines "DEVICE SIZE" for all measurements.
verbs_pictures()
{
	jq -r '[.rows[] | [.device, .size_bytes]] | unique[] | "\(.[0]) \(.[1])"' "$out/verbs.json"
}

verbs_plot()
{
	local device size status=0

	while read -r device size; do
		verbs_plot_one "$device" "$size" || status=1
	done < <(verbs_pictures)
	return $status
}

# The terminal and the report ------------------------------------------------------------------

verbs_print()
{
	local device

	for device in $(jq -r '[.rows[].device] | unique[]' "$out/verbs.json"); do
		say
		say "Verbs on $device, full round trips, us; medians over $rounds rounds. x base: p50 over that of base."
		table_of_sizes '%-19s %9s %9s %9s %9s %9s  %-17s %-18s %6s\n' \
			min p50 p90 p99 p99.9 'p50 over rounds' base 'x base' < <(
			jq -r -L "$here" --arg device "$device" 'include "words";
				.references as $references
				| .rows | map(select(.device == $device)) | group_by([.size_bytes, .state])[] | (.[]
					| "\(.size_bytes) \(.state) \(.name) \(.min_ns | us) \(.p50_ns | us) \(.p90_ns | us) \(.p99_ns | us) " +
					"\(.p99_9_ns | us) \(.p50_ns_least | us)..\(.p50_ns_greatest | us) \(.base // "-") \(.ratio // "-")"),
				(.[0] | select(.size_bytes == 64) | . as $first | $references[]
					| "\($first.size_bytes) \($first.state) \(.name) - \(.ns | us) - - - - - -")' "$out/verbs.json")
	done
	jq -r 'if .rows == [] then empty else .references[] | "\(.name), of other hosts: \(.what); \(.source)" end' \
		"$out/verbs.json"
}

verbs_html()
{
	local device size

	jq -r -L "$here" -f "$here/part-verbs.jq" "$out/verbs.json"
	while read -r device size; do
		inline_svg "$out/plots/verbs-$device-$size.svg"
	done < <(verbs_pictures)
}
