# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The programs of the bench, the rows of the part rtt, and how one run of them is made. Sourced by
# bench.sh, whose variables these functions use and set.
# shellcheck disable=SC2034,SC2154

declare -A program # by name: path of the executable
targets=()         # what ninja is to build
module_dir=''      # of the provider plx_shm, for programs of libfabric's
wanted=(raw-tcp raw-fi raw-fi-shm raw-zmq hiccup plx-ping many_links plx_shm-fi) # parts add theirs

# name of the program of each row, in the order of a round
all_rows=(raw-tcp raw-fi-tcp raw-fi-shm raw-fi-plxshm raw-zmq tcp-poll tcp-poll-idle shm-poll)
declare -A row_program=(
	[raw-tcp]=raw-tcp [raw-fi-tcp]=raw-fi [raw-fi-shm]=raw-fi-shm [raw-zmq]=raw-zmq
	[tcp-poll]=plx-ping [tcp-poll-idle]=plx-ping
	[raw-fi-plxshm]=raw-fi [shm-poll]=plx-ping
)

# tcp-poll-idle is tcp-poll while the server has that many more links on which nothing happens.
idle_links=1000
idle_size=64

find_programs()
{
	local name path

	targets=()
	program=()
	while read -r name path; do
		program[$name]=$path
		targets+=("${path#"$PWD/$build/"}")
	done < <(meson introspect --targets "$build" 2>>"$build/bench-build.log" |
		jq -r '.[] | select(.type == "executable" or .type == "shared module") |
			select(.name | IN($ARGS.positional[])) |
			"\(.name) \(.filename[0])"' --args "${wanted[@]}")
	module_dir=$(dirname "${program[plx_shm-fi]-}")
	((${#targets[@]}))
}

# The first two CPUs that this process may use.
choose_cpus()
{
	local list word low high cpus=()

	list=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
	IFS=, read -ra words <<<"$list"
	for word in "${words[@]}"; do
		low=${word%-*} high=${word#*-}
		for ((; low <= high && ${#cpus[@]} < 2; low++)); do
			cpus+=("$low")
		done
	done
	((${#cpus[@]} == 2)) || die "this process may use only one CPU ($list). Both ends of a round trip
  spin, so they need one each: on a shared one a round trip takes milliseconds. Widen the cpuset."
	cpu_server=${cpus[0]} cpu_client=${cpus[1]}

	local siblings=/sys/devices/system/cpu/cpu$cpu_server/topology/thread_siblings_list
	if [[ -r $siblings ]] && grep -Eqw "$cpu_client" <(tr ',-' '\n' <"$siblings"); then
		say "note: CPUs $cpu_server and $cpu_client are two threads of one core, so they slow each other"
	fi
}

# eal_provider: for plx-ping. fi_provider: libfabric's name for the raw-fi-tcp row. The driver tcp
# takes libfabric's net where there is one, below version 1.18.
choose_provider()
{
	local version

	version=$(libfabric_version)
	eal_provider=${provider:-tcp}
	case $eal_provider in
	fi:*) fi_provider=${eal_provider#fi:} ;;
	net) fi_provider=net ;;
	*)
		fi_provider=tcp
		[[ $(printf '%s\n1.18\n' "$version" | sort -V | head -n 1) == 1.18 ]] || fi_provider=net
		;;
	esac
	# The leaner completion queue of each, for one link: on net they are equal, and from 1.18 on.
	fi_cq=fd
	[[ $fi_provider == tcp && $(printf '%s\n1.18\n' "$version" | sort -V | head -n 1) != 1.18 ]] &&
		fi_cq=none
	return 0
}

choose_rows()
{
	local row name

	rows=()
	for row in "${all_rows[@]}"; do
		name=${row_program[$row]}
		if [[ $mode != local && $row == *shm* ]]; then
			say "note: $row is for one host; left out"
		elif [[ $mode != local && $row == tcp-poll-idle ]]; then
			: # its links come from this host
		elif [[ -z ${program[$name]-} ]]; then
			missing_row "$row" "$name"
		else
			rows+=("$row")
		fi
	done
}

missing_row()
{
	if [[ $1 == raw-zmq ]]; then
		say 'note: no raw-zmq row, as libzmq3-dev was not there when the build folder was made'
	else
		failures+=("$1: the build has no program $2")
	fi
}

# How many round trips before the measured ones: fewer of large messages, which take longer.
warmup_for()
{
	if (($1 <= 4096)); then
		echo 5000
	elif (($1 <= 65536)); then
		echo 1000
	else
		echo 100
	fi
}

# provider_of ROW: what a row of plx-ping gives as its --provider.
provider_of()
{
	[[ $1 == shm-poll ]] && echo shm || echo "$eal_provider"
}

# server_command ROW ADDRESS SIZE: sets `command`.
server_command()
{
	local path=${program[${row_program[$1]}]}

	case $1 in
	tcp-poll* | shm-poll)
		command=("$path" -l "0@$cpu_plx_server" --provider "$(provider_of "$1")"
			-- --listen "$2" --size "$3")
		;;
	raw-fi-plxshm)
		command=(env "FI_PROVIDER_PATH=$module_dir" "$path" --listen "$2" --provider plx_shm
			--cpu "$cpu_server")
		;;
	raw-fi-tcp)
		command=("$path" --listen "$2" --provider "$fi_provider" --cq "$fi_cq" --cpu "$cpu_server")
		;;
	*) command=("$path" --listen "$2" --cpu "$cpu_server") ;;
	esac
}

# client_command ROW ADDRESS SIZE DIR: sets `command`.
client_command()
{
	local path=${program[${row_program[$1]}]} tail

	tail=(--connect "$2" --size "$3" --duration "$duration" --warmup "$(warmup_for "$3")"
		--out "$4" --name "$1")
	case $1 in
	tcp-poll* | shm-poll)
		command=("$path" -l "1@$cpu_client" --provider "$(provider_of "$1")" -- "${tail[@]}")
		;;
	raw-fi-plxshm)
		command=(env "FI_PROVIDER_PATH=$module_dir" "$path" "${tail[@]}" --provider plx_shm
			--cpu "$cpu_client")
		;;
	raw-fi-tcp)
		command=("$path" "${tail[@]}" --provider "$fi_provider" --cq "$fi_cq" --cpu "$cpu_client")
		;;
	*) command=("$path" "${tail[@]}" --cpu "$cpu_client") ;;
	esac
}

# wait_listening LOG PID: print the address that the server says it listens on, within 10 s.
wait_listening()
{
	local address

	for _ in {1..500}; do
		address=$(sed -n 's/.*listening on \([^ ]*\).*/\1/p' "$1" 2>/dev/null | head -n 1)
		if [[ -n $address ]]; then
			echo "$address"
			return 0
		fi
		kill -0 "$2" 2>/dev/null || return 1
		sleep 0.02
	done
	return 1
}

# Where the server of a row is, on another host: ports one after the other.
declare -A port_offset=([raw-tcp]=0 [raw-fi-tcp]=1 [raw-zmq]=2 [tcp-poll]=3)

address_of()
{
	echo "${2%:*}:$((${2##*:} + port_offset[$1]))"
}

# Whole seconds that a client may take at most: its warm-up, the measurement, its own limits.
client_limit()
{
	echo $((${duration%.*} + 40))
}

# hold_idle_links ADDRESS DIR: open them, and stop the process that holds them, so that it costs no CPU.
hold_idle_links()
{
	local holder

	"${program[many_links]}" -l "0@$cpu_client" --provider "$eal_provider" \
		-- --connect "$1" --links "$idle_links" >"$2/idle.log" 2>&1 </dev/null &
	holder=$!
	children+=("$holder")
	for _ in {1..300}; do
		if grep -q "^echoed $idle_links" "$2/idle.log"; then
			kill -STOP "$holder"
			idle_holder=$holder
			return 0
		fi
		kill -0 "$holder" 2>/dev/null || break
		sleep 0.1
	done
	return 1
}

# run_row ROW SIZE DIR: returns the client's status; 1 where the server does not come up.
run_row()
{
	local row=$1 size=$2 dir=$3 address limit command=()

	limit=$(client_limit)
	cpu_plx_server=$cpu_server
	if [[ $mode == connect ]]; then
		address=$(address_of "$row" "$peer")
	else
		address=127.0.0.1:0
		[[ $row != raw-fi-shm ]] || address=pollux-bench-$$
		server_command "$row" "$address" "$size"
		timeout -k 3 $((limit + 15)) "${command[@]}" >"$dir/server.log" 2>&1 </dev/null &
		children+=($!)
		address=$(wait_listening "$dir/server.log" $!) || return 1
	fi
	[[ $row != tcp-poll-idle ]] || hold_idle_links "$address" "$dir" || return 1
	client_command "$row" "$address" "$size" "$dir"
	printf '%q ' "${command[@]}" >"$dir/command"
	timeout -k 3 "$limit" "${command[@]}" >"$dir/client.log" 2>&1 </dev/null &
	local client=$!
	children+=("$client")
	wait "$client"
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
