# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The part rtt between two hosts: where its servers are, and how they are kept up. Sourced by
# bench.sh.
# shellcheck disable=SC2034,SC2154

# Where the server of a row is, on another host: ports one after the other.
declare -A port_offset=([raw-tcp]=0 [raw-fi-tcp]=1 [raw-zmq]=2 [tcp-poll]=3)

address_of()
{
	echo "${2%:*}:$((${2##*:} + port_offset[$1]))"
}

# Servers for a bench.sh --connect elsewhere, each started again when its client has gone. Those of
# the raw rows sleep until one comes; plx-ping's spins, and so has the other CPU.
serve_rows()
{
	local row pid largest=0 size command=()
	declare -A row_of

	cpu_plx_server=$cpu_client
	for size in "${size_list[@]}"; do
		((size <= largest)) || largest=$size
	done
	mkdir -p "$build/serve"
	((${#failures[@]} == 0)) || die "${failures[0]}"
	say "serving on ${listen%:*}, ports ${listen##*:} to $((${listen##*:} + 3)); end with Ctrl-C"
	for row in "${rows[@]}"; do
		serve_one "$row" "$largest"
		row_of[$pid]=$row
	done
	while wait -n -p pid; [[ -n ${pid-} ]]; do
		row=${row_of[$pid]}
		unset "row_of[$pid]"
		kept=()
		for child in "${children[@]}"; do
			[[ $child == "$pid" ]] || kept+=("$child")
		done
		children=("${kept[@]}")
		sleep 0.2 # a server that cannot start is not started in a spin
		serve_one "$row" "$largest"
		row_of[$pid]=$row
	done
}

# serve_one ROW SIZE: sets `pid`.
serve_one()
{
	local log=$build/serve/$1.log

	server_command "$1" "$(address_of "$1" "$listen")" "$2"
	[[ $1 == tcp-poll ]] || command+=(--wait 86400)
	"${command[@]}" >"$log" 2>&1 </dev/null &
	pid=$!
	children+=("$pid")
	wait_listening "$log" "$pid" >/dev/null || say "$1: not up: $(tail -n 1 "$log")"
}
