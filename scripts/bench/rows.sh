# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The programs of the bench, the rows of the part rtt, and running one of them. Sourced by bench.sh, whose variables
# these functions use and set.
# shellcheck disable=SC2034,SC2154

declare -A program # by name: path of the executable
targets=()         # what ninja is to build
module_dir=''      # of the provider plx_shm, for programs of libfabric's
wanted=(raw-tcp raw-fi raw-fi-shm raw-bare raw-eventfd raw-zmq
	hiccup cache-line plx-ping many_links link-beside plx_shm-fi) # parts add theirs

# In the order of a round: compared rows are adjacent.
all_rows=(bare raw-fi-plxshm raw-fi-shm shm-poll ucx-shm shm-adaptive shm-poll-tcp raw-eventfd raw-fi-plxshm-event shm-event
	raw-fi-tcp raw-tcp tcp-poll tcp-beside ucx-tcp tcp-adaptive tcp-poll-idle raw-zmq raw-tcp-event tcp-event)
# The rows of a run without --full and --only.
main_rows=' raw-fi-shm shm-poll ucx-shm shm-adaptive shm-event raw-fi-tcp raw-tcp tcp-poll ucx-tcp tcp-adaptive raw-zmq raw-tcp-event tcp-event '
declare -A row_program=(
	[raw-tcp]=raw-tcp [raw-tcp-event]=raw-tcp [raw-fi-tcp]=raw-fi [raw-fi-shm]=raw-fi-shm [raw-zmq]=raw-zmq
	[bare]=raw-bare [raw-eventfd]=raw-eventfd
	[raw-fi-plxshm]=raw-fi [raw-fi-plxshm-event]=raw-fi
	[tcp-poll]=plx-ping [tcp-beside]=link-beside [tcp-poll-idle]=plx-ping [shm-poll]=plx-ping [shm-poll-tcp]=plx-ping
	[tcp-adaptive]=plx-ping [shm-adaptive]=plx-ping [tcp-event]=plx-ping [shm-event]=plx-ping [ucx-shm]=ucx_perftest [ucx-tcp]=ucx_perftest
)

# Like tcp-poll and shm-poll, while the server also has that many idle TCP links.
declare -A idle_links=([tcp-poll-idle]=1000 [shm-poll-tcp]=1)

# rtt_has ROW SIZE: some rows have one size only.
rtt_has()
{
	case $1 in
	*-adaptive | *-event | bare | raw-eventfd | tcp-beside | tcp-poll-idle | shm-poll-tcp) (($2 == 64)) ;;
	esac
}

is_of_one_host()
{
	[[ $1 == *shm* || $1 == bare || $1 == raw-eventfd || $1 == *-adaptive || $1 == *-event || $1 == tcp-beside || $1 == tcp-poll-idle || $1 == ucx-* ]]
}

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
	for name in ucx_perftest iperf3; do
		! command -v "$name" >/dev/null || program[$name]=$name
	done
	((${#targets[@]}))
}

# cpus_of LIST: each CPU of a kernel list such as 0-3,8.
cpus_of()
{
	local words word

	IFS=, read -ra words <<<"$1"
	for word in "${words[@]}"; do
		seq "${word%-*}" "${word#*-}"
	done
}

# The first two CPUs that this process may use.
choose_cpus()
{
	local cpus=()

	allowed_cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
	mapfile -t cpus < <(cpus_of "$allowed_cpus" | head -n 2)
	((${#cpus[@]} == 2)) || die "this process may use only one CPU ($allowed_cpus). Both ends of a round trip
  spin, so they need one each: on a shared one a round trip takes milliseconds. Widen the cpuset."
	cpu_server=${cpus[0]} cpu_client=${cpus[1]}

	local siblings=/sys/devices/system/cpu/cpu$cpu_server/topology/thread_siblings_list
	if [[ -r $siblings ]] && grep -Eqw "$cpu_client" <(tr ',-' '\n' <"$siblings"); then
		say "note: CPUs $cpu_server and $cpu_client are two threads of one core, so they slow each other"
	fi
}

# fi_provider: for libfabric's own rows; below version 1.18 net is the newer of two.
choose_provider()
{
	local old=1

	[[ $(printf '%s\n1.18\n' "$(libfabric_version)" | sort -V | head -n 1) != 1.18 ]] || old=0
	fi_provider=tcp
	((!old)) || fi_provider=net
}

choose_rows()
{
	local row name

	rows=()
	[[ $mode == local ]] || say 'note: rows that are for one host are left out'
	for row in "${all_rows[@]}"; do
		name=${row_program[$row]}
		if [[ $mode != local ]] && is_of_one_host "$row"; then
			:
		elif [[ $scope == main && $main_rows != *" $row "* ]]; then
			:
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
		leave_out 'ZeroMQ: libzmq3-dev was not there when the build folder was made'
	elif [[ $1 == ucx-* ]]; then
		leave_out "$1: ucx_perftest is not installed"
	else
		failures+=("$1: the build has no program $2")
	fi
}

# Warm-up round trips: fewer for large messages, which take longer.
warmup_for()
{
	by_size "$1" 5000 1000 100
}

# provider_of ROW SIDE: the --provider of a plx-ping row.
provider_of()
{
	case $1-$2 in
	shm-poll-tcp-server) echo auto ;; # listens on both
	shm-*) echo shm ;;
	*) echo tcp ;;
	esac
}

idle_of()
{
	case $1 in
	*-event) echo event ;;
	*-adaptive) echo adaptive ;;
	*) echo poll ;;
	esac
}

# server_command ROW ADDRESS SIZE: sets `command`.
server_command()
{
	local path=${program[${row_program[$1]}]}

	case $1 in
	tcp-beside)
		command=("$path" -l "0@$cpu_plx_server" --idle poll --provider tcp -- --listen "$2")
		;;
	tcp-* | shm-*)
		command=("$path" -l "0@$cpu_plx_server" --idle "$(idle_of "$1")" --provider "$(provider_of "$1" server)"
			-- --listen "$2" --size "$3")
		;;
	raw-fi-plxshm*)
		command=(env "FI_PROVIDER_PATH=$module_dir" "$path" --listen "$2" --provider plx_shm
			--idle "$(idle_of "$1")" --cpu "$cpu_server")
		;;
	raw-tcp*) command=("$path" --listen "$2" --idle "$(idle_of "$1")" --cpu "$cpu_server") ;;
	raw-fi-tcp)
		command=("$path" --listen "$2" --provider "$fi_provider" --cpu "$cpu_server")
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
	tcp-beside) # of one size
		command=("$path" -l "1@$cpu_client" --idle poll --provider tcp
			-- --connect "$2" "${tail[@]:4}")
		;;
	tcp-* | shm-*)
		command=("$path" -l "1@$cpu_client" --idle "$(idle_of "$1")" --provider "$(provider_of "$1" client)"
			-- "${tail[@]}")
		;;
	raw-fi-plxshm*)
		command=(env "FI_PROVIDER_PATH=$module_dir" "$path" "${tail[@]}" --provider plx_shm
			--idle "$(idle_of "$1")" --cpu "$cpu_client")
		;;
	raw-tcp*) command=("$path" "${tail[@]}" --idle "$(idle_of "$1")" --cpu "$cpu_client") ;;
	raw-fi-tcp)
		command=("$path" "${tail[@]}" --provider "$fi_provider" --cpu "$cpu_client")
		;;
	*) command=("$path" "${tail[@]}" --cpu "$cpu_client") ;;
	esac
}

# wait_listening LOG PID: set `address` to the address that the server prints within 10 s.
wait_listening()
{
	for _ in {1..500}; do
		address=$(sed -n 's/.*listening on \([^ ]*\).*/\1/p' "$1" 2>/dev/null | head -n 1)
		[[ -z $address ]] || return 0
		kill -0 "$2" 2>/dev/null || return 1
		sleep 0.02
	done
	return 1
}

# client_limit DURATION: upper bound of a client's time in whole seconds: its warm-up, the measurement, its own limits.
client_limit()
{
	local whole=${1%.*}

	echo $((10#${whole:-0} + 40))
}

# hold_idle_links ROW ADDRESS DIR: open them, and stop the process that holds them, so that it uses no CPU. Without
# heartbeats, because the server would drop it.
hold_idle_links()
{
	local count=${idle_links[$1]} holder

	: >"$3/idle.log"
	"${program[many_links]}" -l "0@$cpu_client" --provider tcp \
		--heartbeat off -- --connect "$2" --links "$count" >"$3/idle.log" 2>&1 </dev/null &
	holder=$!
	children+=("$holder")
	for _ in {1..300}; do
		if grep -q "^echoed $count" "$3/idle.log"; then
			stop_process "$holder" "$holder"
			return 0
		fi
		kill -0 "$holder" 2>/dev/null || break
		sleep 0.1
	done
	return 1
}

# run_server DIR LIMIT: start `command`, and set `address` to its listening address.
run_server()
{
	: >"$1/server.log" # that of a run before is not read
	timeout -k 3 $(($2 + 15)) "${command[@]}" >"$1/server.log" 2>&1 </dev/null &
	children+=($!)
	wait_listening "$1/server.log" $!
}

# start_client DIR LIMIT: start `command`, and set `client`.
start_client()
{
	printf '%q ' "${command[@]}" >"$1/command"
	timeout -k 3 "$2" "${command[@]}" >"$1/client.log" 2>&1 </dev/null &
	client=$!
	children+=("$client")
}

# run_client DIR LIMIT: run `command` to its end; returns its status.
run_client()
{
	local client

	start_client "$1" "$2"
	wait "$client"
}

# The listening address of a row's server: names for providers without addresses.
where_to_listen()
{
	case $1 in
	raw-fi-shm* | bare | raw-eventfd) echo "pollux-bench-$$" ;;
	*) echo 127.0.0.1:0 ;;
	esac
}

# ucx_run ROW SIZE DIR TEST COUNT: ucx_perftest between two processes, over the row's transport. am_bw tests the layer
# below and takes the device as an option.
ucx_run()
{
	local port=$((20000 + RANDOM % 10000)) tls=${1#ucx-} layer=() try status

	tls=${tls%-am}
	[[ $4 != am_bw ]] || layer=(-x "$tls" -d lo -D bcopy)

	# A build with MPI expects to be started by mpirun, and leaves Open MPI files in /dev/shm.
	command=(env "UCX_TLS=$tls,self" OMPI_MCA_btl=self ucx_perftest -p "$port")
	[[ $(OMPI_MCA_btl=self ucx_perftest -h 2>&1 </dev/null) != *'MPI mode'* ]] || command+=(-P 0)
	timeout -k 3 60 "${command[@]}" -c "$cpu_server" >"$3/server.log" 2>&1 </dev/null &
	children+=($!)
	for try in {1..50}; do
		nap 0.05
		run_limited 60 "${command[@]}" 127.0.0.1 -t "$4" -s "$2" -n "$5" -w $(($5 / 10 + 1)) -c "$cpu_client" -f -v \
			"${layer[@]}" >"$3/client.log" 2>&1
		status=$?
		# The server may not be listening yet.
		((status)) || break
		grep -q refused "$3/client.log" || break
	done
	((status)) || jq -Rn --arg name "$1" --arg test "$4" --argjson size "$2" -f "$here/ucx.jq" "$3/client.log" \
		>"$3/$1.json" 2>"$3/server.log" || status=1
	return $status
}

# ucx_count ROW SIZE PER_SECOND_SHM PER_SECOND_TCP SECONDS: messages that take about that time.
ucx_count()
{
	local each=$4

	[[ $1 != *-shm ]] || each=$3
	awk -v each="$each" -v size="$2" -v seconds="$5" 'BEGIN {
		n = each * seconds / (1 + size / 4096)
		printf "%d", n < 100 ? 100 : n
	}'
}

# run_row ROW SIZE DIR: returns the client's status; 1 if the server does not start.
run_row()
{
	local row=$1 size=$2 dir=$3 address limit command=()

	if [[ $row == ucx-* ]]; then
		ucx_run "$row" "$size" "$dir" tag_lat "$(ucx_count "$row" "$size" 2000000 50000 "$duration")"
		return
	fi

	limit=$(client_limit "$duration")
	cpu_plx_server=$cpu_server
	if [[ $mode == connect ]]; then
		address=$(address_of "$row" "$peer")
	else
		server_command "$row" "$(where_to_listen "$row")" "$size"
		run_server "$dir" "$limit" || return 1
	fi
	[[ -z ${idle_links[$row]-} ]] || hold_idle_links "$row" "$address" "$dir" || return 1
	client_command "$row" "$address" "$size" "$dir"
	run_client "$dir" "$limit"
}
