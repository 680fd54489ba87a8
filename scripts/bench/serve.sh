# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Two hosts: keeping servers up, and their addresses for the part rtt. Sourced by bench.sh.
# shellcheck disable=SC2034,SC2154

# The server address of an rtt row on another host: consecutive ports.
declare -A port_offset=([raw-tcp]=0 [raw-fi-tcp]=1 [raw-zmq]=2 [tcp-poll]=3)

address_of()
{
	echo "${2%:*}:$((${2##*:} + port_offset[$1]))"
}

# keep_serving NAME...: servers for a bench.sh --connect elsewhere. Each restarts when its client has disconnected, by
# PART_serve_one NAME, which sets `pid`, or returns 1 with `serve_trouble`.
keep_serving()
{
	local name pid child kept serve_trouble=''
	declare -A name_of

	mkdir -p "$build/serve"
	((${#failures[@]} == 0)) || die "${failures[0]}"
	for name; do
		"${parts[0]}_serve_one" "$name" || die "$serve_trouble"
		name_of[$pid]=$name
	done
	while wait -n -p pid; [[ -n ${pid-} ]]; do
		name=${name_of[$pid]}
		unset "name_of[$pid]"
		kept=()
		for child in "${children[@]}"; do
			[[ $child == "$pid" ]] || kept+=("$child")
		done
		children=("${kept[@]}")
		sleep 0.2 # a server that cannot start is not started in a spin
		"${parts[0]}_serve_one" "$name" || say "$serve_trouble"
		name_of[$pid]=$name
	done
}

# Raw servers sleep until a client connects; plx-ping's spins, so it has the other CPU.
rtt_serve()
{
	cpu_plx_server=$cpu_client
	say "serving on ${listen%:*}, ports ${listen##*:} to $((${listen##*:} + 3)); end with Ctrl-C"
	keep_serving "${rows[@]}"
}

rtt_serve_one()
{
	local log=$build/serve/$1.log address largest command=()

	largest=$(printf '%s\n' "${size_list[@]}" | sort -n | tail -n 1)
	server_command "$1" "$(address_of "$1" "$listen")" "$largest"
	[[ $1 == tcp-poll ]] || command+=(--wait 86400)
	: >"$log"
	"${command[@]}" >"$log" 2>&1 </dev/null &
	pid=$!
	children+=("$pid")
	wait_listening "$log" "$pid" || {
		serve_trouble="$1: not up: $(tail -n 1 "$log")"
		return 1
	}
}
