#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The main job: what messages cost, in parts. rtt: to another process and back, through Pollux and
# through what it stands on. stream: to another process, as fast as it takes them. rings: between
# lcores, beside DPDK's own. idle: what a server costs that has little to do. netio: what NetIO's sockets
# carry. services: what calls cost. Does all set-up by itself.
set -uo pipefail

started_in=$PWD
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
here=$root/scripts/bench
# shellcheck source=scripts/bench/environment.sh
. "$here/environment.sh"
# shellcheck source=scripts/bench/common.sh
. "$here/common.sh"
# shellcheck source=scripts/bench/rows.sh
. "$here/rows.sh"
# shellcheck source=scripts/bench/serve.sh
. "$here/serve.sh"
# shellcheck source=scripts/bench/part-rtt.sh
. "$here/part-rtt.sh"
# shellcheck source=scripts/bench/part-stream.sh
. "$here/part-stream.sh"
# shellcheck source=scripts/bench/part-rings.sh
. "$here/part-rings.sh"
# shellcheck source=scripts/bench/part-idle.sh
. "$here/part-idle.sh"
# shellcheck source=scripts/bench/part-netio.sh
. "$here/part-netio.sh"
# shellcheck source=scripts/bench/part-verbs.sh
. "$here/part-verbs.sh"
# shellcheck source=scripts/bench/part-services.sh
. "$here/part-services.sh"
# shellcheck source=scripts/bench/part-soak.sh
. "$here/part-soak.sh"
# shellcheck source=scripts/bench/part-live.sh
. "$here/part-live.sh"
# shellcheck source=scripts/bench/report.sh
. "$here/report.sh"

all_parts=(rtt stream rings idle netio services verbs)

usage()
{
	cat <<-'END'
	Usage: scripts/bench.sh [OPTION]...
	Measure full round trips of messages between two processes, how many go one way, what rings,
	pools and messages between lcores cost, what a server costs that has little to do, what NetIO's
	sockets carry, what calls of services cost, and round trips over RDMA devices; write tables, plots and a report.
	  --quick               short rounds, about fifteen minutes (default: more and longer
	                        ones, about 70 minutes)
	  --rounds N, --duration S
	                        other figures than those: rounds, and seconds of each run of rtt,
	                        stream, idle, netio, services and verbs
	  --out DIR             where results go (default: bench-out-DATE-TIME)
	  --provider P          for Pollux and the raw-fi-tcp row: tcp, net or fi:tcp (default: tcp, the
	                        driver's own choice of libfabric's two)
	  --sizes N,N,...       message sizes, with K or M (default: 64,1K,64K,1M; stream: 64,4K,64K,1M).
	                        Rows that are of certain sizes are left out where those are not named
	  --only PART           run one part: rtt (round trips), stream (messages one way), rings
	                        (rings, pools, hops), idle (CPU against latency), netio (NetIO's
	                        sockets), services (calls) or verbs (round trips over RDMA devices; a whole run leaves it
	                        out where there is none)
	  --device NAME         of verbs: that RDMA device alone (default: each one that has an active
	                        port and an IP address)
	  --soak                run nothing but NetIO's sockets over tcp and over shm at full load, for ten
	                        minutes each (or --duration S): neither end may take the other for silent
	  --compare DIR         print the ratio of each row to that of an earlier run in DIR
	  --serve               run the servers, for a bench.sh --connect on another host; until Ctrl-C.
	                        Of rtt, or with --only verbs of verbs
	  --connect HOST:PORT   measure against such servers; PORT is the first of several
	  --live HOST:PORT      measure nothing but a Pollux process that runs, whatever it listens for
	                        there, by its self-test; sizes up to 64K (default: 64,1K,16K)
	  --listen HOST:PORT    where --serve listens (default 0.0.0.0:17300; verbs: the device's address)
	  -h, --help            this text

	Rows of rtt: raw-tcp (plain sockets), raw-fi-tcp (libfabric alone), raw-fi-shm (libfabric's shared
	memory), raw-fi-plxshm (libfabric alone over Pollux' provider plx_shm), raw-zmq (ZeroMQ),
	tcp-poll (Pollux: plx-ping), shm-poll (plx-ping over shm). At 64 B also: bare (a cache line
	between two processes), raw-eventfd (two processes that sleep), raw-fi-plxshm-event (plx_shm slept
	on), tcp-poll-idle (tcp-poll while the server has 1000 more links that are idle), shm-poll-tcp
	(shm-poll while the server has an idle link over tcp).
	Rows of stream: raw-fi-plxshm, raw-fi-plxshm-cma (the receiver reads large messages out of the
	sender's memory), raw-fi-shm (it reads too), raw-fi-shm-nocma (it does not), shm-stream (plx-ping
	--one-way over shm).
	Rows of idle: idle policies of a server (poll, event; adaptive: latency, balanced, and fixed), over
	tcp and shm, with nobody there, an idle peer, and messages at several rates; raw-fi-event and
	event-closed (libfabric alone, and plx-ping, both ends asleep over libfabric's tcp).
	Rows of netio: buffered, buffered-1M (pages of 1 MiB), unbuffered, reference (without a copy) and
	ping, over tcp, and shm where it is in the name; publish-buffered and -unbuffered with 1, 4 and 16
	subscribers, 64 B and 64 KiB; beside-POLICY (four subscribers at half of their top rate beside one
	that is stopped), 64 B. Beside them: zmq-push-pull, zmq-in-place (the same without a copy),
	iperf3, raw-fi-tcp-bw (libfabric alone), tcp-poll and shm-poll as in rtt.
	Rows of services, over tcp and shm: ping (plx-ping), call-1, call-64, call-100 and call-100000 (so
	many calls of 64 B open at a time), quiet (10000 calls/s at random) and half (half of the rate
	of call-64).
	Rows of verbs: ib-send-lat (perftest's ib_send_lat -R, doubled), raw-fi-verbs (libfabric alone),
	verbs-poll (plx-ping); at 64 B also each with -event: both ends sleep for every message.
	Server and client run on the first two CPUs that this process may use; of verbs on two of the
	device's NUMA node, where that is known.

	Exit status:
	  0  everything ran and reached its bars
	  1  something failed: set-up, or a run
	  2  usage
	  3  slow: every run is good, but a bar was missed
	  4  invalid: raw-fi-tcp took more than 1.30 times raw-tcp at 64 B, so it flatters what is
	     compared with it
	END
}

die()
{
	printf 'bench.sh: %s\n' "$1" >&2
	exit "${2:-1}"
}

say()
{
	printf '%s\n' "$*"
}

# Options --------------------------------------------------------------------------------------

quick=0 soak=0 out='' provider='' sizes='64,1K,64K,1M' sizes_given=0 only='' compare='' mode=local
peer='' listen='0.0.0.0:17300' rounds='' duration='' device_given=''

# 64, 1K, 1M as bytes.
to_bytes()
{
	[[ $1 =~ ^([1-9][0-9]{0,8})([KkMm]?)$ ]] || return 1
	case ${BASH_REMATCH[2]} in
	K | k) echo $((BASH_REMATCH[1] << 10)) ;;
	M | m) echo $((BASH_REMATCH[1] << 20)) ;;
	*) echo "${BASH_REMATCH[1]}" ;;
	esac
}

need_value()
{
	[[ -n ${2-} ]] || die "$1 needs a value; see --help" 2
}

while (($#)); do
	case $1 in
	--quick) quick=1 ;;
	--soak) soak=1 ;;
	--serve) mode=serve ;;
	-h | --help)
		usage
		exit 0
		;;
	--out | --provider | --sizes | --only | --compare | --connect | --live | --listen | --rounds | --duration | --device)
		need_value "$1" "${2-}"
		case $1 in
		--out) out=$2 ;;
		--provider) provider=$2 ;;
		--sizes) sizes=$2 sizes_given=1 ;;
		--only) only=$2 ;;
		--compare) compare=$2 ;;
		--connect) mode=connect peer=$2 ;;
		--live) mode=live peer=$2 ;;
		--listen) listen=$2 ;;
		--rounds) rounds=$2 ;;
		--duration) duration=$2 ;;
		--device) device_given=$2 ;;
		esac
		shift
		;;
	*) die "unknown option '$1'; see --help" 2 ;;
	esac
	shift
done

parts=("${all_parts[@]}")
if [[ -n $only ]]; then
	[[ " ${all_parts[*]} " == *" $only "* ]] ||
		die "--only $only: there is no such part; there are ${all_parts[*]}" 2
	parts=("$only")
fi
if ((soak)); then
	[[ -z $only && $mode == local ]] || die '--soak runs by itself, on one host; leave --only, --serve and --connect out' 2
	parts=(soak)
fi
if [[ $mode == live ]]; then
	[[ -z $only ]] || die "--only $only: --live runs by itself" 2
	parts=(live)
elif [[ $mode != local ]]; then
	[[ -z $only || $only == rtt || $only == verbs ]] ||
		die "--only $only: that part is of one host; leave --$mode out" 2
	parts=("${only:-rtt}")
fi
[[ -z $device_given || ${parts[*]} == *verbs* ]] || die "--device $device_given: that is for the part verbs" 2
[[ -z $provider || $provider =~ ^(tcp|net|fi:tcp|fi:net)$ ]] ||
	die "--provider $provider: there are tcp, net and fi:tcp" 2
size_list=()
IFS=, read -ra words <<<"$sizes"
for word in "${words[@]}"; do
	bytes=$(to_bytes "$word") || bytes=0
	((bytes >= 1 && bytes <= 16 << 20)) ||
		die "--sizes $sizes: '$word' is no size from 1 to 16M; give sizes such as 64,1K,64K,1M" 2
	size_list+=("$bytes")
done
((${#size_list[@]})) || die "--sizes $sizes: give sizes such as 64,1K,64K,1M" 2
[[ -z $rounds || $rounds =~ ^[1-9][0-9]{0,3}$ ]] ||
	die "--rounds $rounds: a whole number from 1 to 9999 is needed" 2
[[ -z $duration || $duration =~ ^[0-9]{1,5}(\.[0-9]{1,3})?$ ]] ||
	die "--duration $duration: seconds are needed, such as 5 or 0.7" 2
[[ $mode == local || $mode == serve || $peer =~ ^.+:[0-9]+$ ]] || die "--$mode $peer: HOST:PORT is needed" 2
[[ $listen =~ ^.+:[0-9]+$ ]] || die "--listen $listen: HOST:PORT is needed" 2

# Paths that were given are relative to where the user stands.
out=${out:-bench-out-$(date +%Y%m%d-%H%M%S)}
[[ $out == /* ]] || out=$started_in/$out
if [[ -n $compare ]]; then
	[[ $compare == /* ]] || compare=$started_in/$compare
	[[ -r $compare/summary.json ]] || die "--compare $compare: there is no summary.json" 2
fi
cd "$root" || die "cannot go to $root"

rounds_given=$rounds duration_given=$duration
if ((quick)); then
	rounds=${rounds:-3} duration=${duration:-0.7}
else
	rounds=${rounds:-5} duration=${duration:-5}
fi

# Ending ---------------------------------------------------------------------------------------

children=() # by process id; nothing else is ever signalled
stopped='' # one of them, or what one has started: see stop_process

# End the children that are there, with a moment of grace. By the trap, and by the parts.
# shellcheck disable=SC2317
end_children()
{
	local pid

	kill_stopped
	for pid in "${children[@]}"; do
		kill -TERM "$pid" 2>/dev/null
	done
	for pid in "${children[@]}"; do
		for _ in {1..60}; do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.05
		done
		kill -KILL "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	children=()
}

trap end_children EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Setting up -----------------------------------------------------------------------------------

build='build-bench'
# Much of a message's way are small functions of several files: link-time optimization joins them.
build_options=(-Dbuildtype=release -Db_lto=true)

set_up()
{
	local groups=build,test,bench

	if ! scripts/setup.sh --check --for $groups >/dev/null; then
		timeout 1800 scripts/setup.sh --for $groups ||
			die 'packages are missing and could not be installed; see above'
	fi
	for tool in jq gnuplot meson ninja timeout; do
		command -v $tool >/dev/null || die "$tool is not there; run scripts/setup.sh"
	done

	mkdir -p "$build"
	local log=$build/bench-build.log
	say "building in $build ..."
	local configure=setup
	[[ ! -f $build/build.ninja ]] || configure=configure
	timeout 300 meson $configure "$build" "${build_options[@]}" >"$log" 2>&1 ||
		{ tail -20 "$log" >&2; die "meson cannot set up $build; the whole of it is in $log"; }
	# The tree may have changed since the folder was made, and with it what there is to build.
	timeout 300 ninja -C "$build" build.ninja >"$log" 2>&1 ||
		{ tail -20 "$log" >&2; die "meson cannot set the folder up again; see $log"; }
	find_programs || die "meson does not tell its programs; see $log"
	# What was installed since the folder was made.
	if [[ -z ${program[plx-perf-dpdk]-} ]] && pkg-config --exists libdpdk; then
		timeout 300 meson setup --reconfigure "$build" >"$log" 2>&1 && find_programs
	fi
	timeout 1500 ninja -C "$build" "${targets[@]}" >"$log" 2>&1 ||
		{ tail -30 "$log" >&2; die "the build failed; the whole of it is in $log"; }
}

# Measuring ------------------------------------------------------------------------------------

failures=()

watch_platform()
{
	say "watching the platform alone for 2 s ..."
	timeout 30 "${program[hiccup]}" --cpus "$cpu_server,$cpu_client" --duration 2 \
		--json "$out/hiccups.json" >"$out/hiccups.txt" 2>&1 ||
		failures+=("hiccup: $(tail -n 1 "$out/hiccups.txt")")
	[[ -s $out/hiccups.json ]] || echo null >"$out/hiccups.json"
}

# Main -----------------------------------------------------------------------------------------

choose_cpus
set_up
in_parts begin

if [[ $mode == serve ]]; then
	"${parts[0]}_serve"
	exit $?
fi

mkdir -p "$out/runs" || die "cannot make $out"
: >"$out/runs/all.ndjson"
environment_begin
watch_platform
in_parts run
environment_end >"$out/environment.json"

printf '%s\n' "${failures[@]}" | jq -Rs 'split("\n") | map(select(. != ""))' >"$out/failures.json"
summarize || die "cannot sum up the runs in $out/runs"
late=()
plot_all || late+=("plots: see $out/plots/gnuplot.log")
write_report || late+=('the report could not be written')
rm -f "$out/environment.json" "$out/failures.json"
print_summary
[[ -z $compare ]] || in_parts compare
say
say "report: $out/report.html"

for text in "${late[@]}"; do
	say "FAILED: $text"
done

((${#failures[@]} + ${#late[@]} == 0)) || exit 1
jq -e '.valid' "$out/summary.json" >/dev/null || exit 4
jq -e 'all(.bars[]; .ok or (.gates | not))' "$out/summary.json" >/dev/null || exit 3
exit 0
