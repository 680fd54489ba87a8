#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The main job: the cost of messages between two processes on this host, compared with other transports. Sets up
# everything automatically. Options run other parts: bench.sh --help.
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
# shellcheck source=scripts/bench/part-links.sh
. "$here/part-links.sh"
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
# shellcheck source=scripts/bench/compare.sh
. "$here/compare.sh"

all_parts=(rtt stream rings idle links netio services verbs)

usage()
{
	cat <<-'END'
	Usage: scripts/bench.sh [OPTION]...
	Measure round trips of 64 B between two processes of this host, polled and adaptive, over shared memory
	and TCP, and one-way message rates of links and NetIO's sockets. Compare with plain sockets, libfabric,
	ZeroMQ and UCX (if ucx_perftest is installed). Install what is missing, build, measure for about three
	minutes, and write a report.
	  --full                all parts with all rows, in long rounds: about 80 minutes; with --quick 22
	  --only PART           one part with all its rows: rtt (round trips), stream (one-way messages),
	                        rings (rings, pools, hops), idle (CPU against latency), links (thousands of
	                        idle links), netio (NetIO's sockets), services (calls) or verbs (round trips
	                        over RDMA devices)
	  --quick               short rounds, as without --full and --only
	  --rounds N, --duration S
	                        number of rounds, and seconds per run
	  --out DIR             folder for results (default: bench-out-DATE-TIME)
	  --provider P          with --live: provider of the links (default: auto)
	  --sizes N,N,...       message sizes, with K or M (default: 64, for stream and netio 64,1M; with --full
	                        and --only 64,1K,64K,1M, for stream 64,4K,64K,1M). Rows of other sizes are omitted
	  --device NAME         verbs: only that RDMA device (default: each with an active port and an IP address)
	  --strict              exit with status 3 if a gating threshold is missed
	  --compare A B         measure nothing: compare the results in folders A and B with their noise, as a
	                        table and as a page, B/compare.html (or --out DIR)
	  --soak                only NetIO's sockets at full load, ten minutes over tcp and ten over shm (or
	                        --duration S): no end may find the other one silent
	  --serve               run the servers for bench.sh --connect on another host, until Ctrl-C; of rtt,
	                        or with --only verbs of verbs
	  --connect HOST:PORT   measure against such servers; PORT is the first of several
	  --live HOST:PORT      only measure a running Pollux process that listens there, by its self-test;
	                        sizes up to 64K (default: 64,1K,16K)
	  --listen HOST:PORT    address of --serve (default 0.0.0.0:17300; verbs: the device's address)
	  -h, --help            print this text

	Rows of each part: doc/apps/bench.md; thresholds: doc/apps/thresholds.md. Server and client run on the
	first two CPUs that this process may use; for verbs on two of the device's NUMA node, if known.

	Exit status:
	  0  everything ran
	  1  set-up or a run failed
	  2  wrong usage
	  3  with --strict: everything ran, but a threshold was missed
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

quick=0 full=0 strict=0 soak=0 out='' provider='' sizes='64,1K,64K,1M' sizes_given=0 only='' compare=() mode=local
peer='' listen='0.0.0.0:17300' rounds='' duration='' device_given=''

# Convert 64, 1K, 1M to bytes.
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
	--full) full=1 ;;
	--strict) strict=1 ;;
	--compare)
		[[ -n ${2-} && -n ${3-} ]] || die '--compare needs two folders of results: --compare A B' 2
		compare=("$2" "$3")
		shift 2
		;;
	--soak) soak=1 ;;
	--serve) mode=serve ;;
	-h | --help)
		usage
		exit 0
		;;
	--out | --provider | --sizes | --only | --connect | --live | --listen | --rounds | --duration | --device)
		need_value "$1" "${2-}"
		case $1 in
		--out) out=$2 ;;
		--provider) provider=$2 ;;
		--sizes) sizes=$2 sizes_given=1 ;;
		--only) only=$2 ;;
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

# main: short runs, and some rows of some parts; full: all of those parts.
scope=full
parts=("${all_parts[@]}")
((!full)) || [[ -z $only ]] || die "--full and --only $only: --only already runs all of that part; leave one out" 2
if [[ -n $only ]]; then
	[[ " ${all_parts[*]} " == *" $only "* ]] ||
		die "--only $only: there is no such part; there are ${all_parts[*]}" 2
	parts=("$only")
elif ((!full)); then
	scope=main quick=1
	parts=(rtt stream netio)
fi
if ((soak)); then
	[[ -z $only && $mode == local ]] || die '--soak runs alone, on one host; leave --only, --serve and --connect out' 2
	parts=(soak)
fi
if [[ $mode == live ]]; then
	[[ -z $only ]] || die "--only $only: --live runs alone" 2
	parts=(live)
elif [[ $mode != local ]]; then
	[[ -z $only || $only == rtt || $only == verbs ]] ||
		die "--only $only: that part is of one host; leave --$mode out" 2
	parts=("${only:-rtt}") scope=full
fi
[[ -z $device_given || ${parts[*]} == *verbs* ]] || die "--device $device_given: that is for the part verbs" 2
[[ -z $provider || $mode == live ]] || die "--provider $provider: that is for --live" 2
[[ -z $provider || $provider =~ ^(auto|tcp|shm|verbs)$ ]] ||
	die "--provider $provider: there are auto, tcp, shm and verbs" 2
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

# Ending ---------------------------------------------------------------------------------------

children=() # by process id; nothing else is ever signalled
stopped='' # one of them, or what one has started: see stop_process
grace=60   # times 50 ms

# End running children, with a short grace period. Called by the trap and by parts.
# shellcheck disable=SC2317
end_children()
{
	local pid tries=$grace

	kill_stopped
	for pid in "${children[@]}"; do
		kill -TERM "$pid" 2>/dev/null
	done
	for pid in "${children[@]}"; do
		while kill -0 "$pid" 2>/dev/null && ((tries-- > 0)); do
			sleep 0.05
		done
		# A `timeout` leads a process group with everything that it started.
		kill -KILL -- "-$pid" 2>/dev/null
		kill -KILL "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	children=()
}

trap 'trap "" HUP INT TERM; grace=20 end_children' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Arguments ------------------------------------------------------------------------------------

if ((${#compare[@]})); then
	cd "$started_in" || exit 1
	compare_results
	exit
fi
# Given paths are relative to the user's working directory.
out=${out:-bench-out-$(date +%Y%m%d-%H%M%S)}
[[ $out == /* ]] || out=$started_in/$out
cd "$root" || die "cannot go to $root"

rounds_given=$rounds duration_given=$duration
if [[ $scope == main ]]; then
	rounds=${rounds:-5} duration=${duration:-0.5}
elif ((quick)); then
	rounds=${rounds:-3} duration=${duration:-0.7}
else
	rounds=${rounds:-5} duration=${duration:-5}
fi

# Setting up -----------------------------------------------------------------------------------

build='build-bench'
# A message passes many small functions of several files: link-time optimization inlines them.
build_options=(-Dbuildtype=release -Db_lto=true -Dtests=false -Dbench=true)

# Before the lock, so that wrong arguments are refused at any time; creates nothing.
check_out()
{
	local folder=$out

	[[ $mode != serve ]] || return 0
	while [[ ! -e $folder ]]; do
		folder=${folder%/*}
		folder=${folder:-/}
	done
	[[ -d $folder ]] || die "--out $out: cannot be made: $folder is not a folder" 2
	[[ -w $folder && (! -e $out/runs || -w $out/runs) ]] || die "--out $out: cannot be written" 2
}

# Two runs of one checkout would share a build folder. The file names the run.
be_alone()
{
	mkdir -p "$build" 2>/dev/null
	[[ -d $build && -w $build ]] ||
		die "$root/$build: cannot be written, and bench.sh builds there; copy the tree to where you may write"
	exec {lock_fd}>>"$build/bench.lock" || die "$root/$build/bench.lock: cannot be written"
	flock -n "$lock_fd" ||
		die "another bench.sh runs in this checkout ($(<"$build/bench.lock")): they would share $build; wait for it, or end it"
	echo "process $$, since $(date '+%F %T')" >"$build/bench.lock"
	[[ $mode == serve ]] || mkdir -p "$out/runs" || die "--out $out: cannot be made" 2
}

# Runs of other checkouts are possible. Locking only needs read permission, if the file belongs to another user.
note_others()
{
	local file=${TMPDIR:-/tmp}/pollux-bench.lock

	[[ -e $file ]] || (umask 022 && : >"$file")
	exec {host_fd}<"$file" || return 0
	flock -n "$host_fd" || say 'another bench.sh runs on this host: the two measure each other; compare within this run only'
	flock -n --shared "$host_fd"
}

# set_up_step NUMBER TEXT
set_up_step()
{
	say "set-up, step $1 of 3: $2"
}

# Run ninja and print progress every few seconds. Its output goes to the log.
build_programs()
{
	local ninja last='' now naps=0

	NINJA_STATUS='[%f/%t] ' timeout -k 3 1500 ninja -C "$build" "${targets[@]}" >"$1" 2>&1 &
	ninja=$!
	children+=("$ninja")
	while kill -0 "$ninja" 2>/dev/null; do
		nap 0.5
		((++naps % 10 == 0)) || continue
		now=$(grep -o '^\[[0-9]*/[0-9]*\]' "$1" | tail -n 1)
		[[ -z $now || $now == "$last" ]] || say "    $now"
		last=$now
	done
	wait "$ninja"
}

set_up()
{
	local groups=run,build,bench log=$build/bench-build.log configure=setup

	set_up_step 1 'packages'
	if ! run_limited 60 scripts/setup.sh --check --for $groups >/dev/null; then
		run_limited 1800 scripts/setup.sh --for $groups ||
			die 'packages are missing and could not be installed; see above'
	fi
	for tool in jq gnuplot meson ninja timeout; do
		command -v $tool >/dev/null || die "$tool is not there; run scripts/setup.sh"
	done

	set_up_step 2 "meson configures $build"
	[[ ! -f $build/build.ninja ]] || configure=configure
	run_limited 300 meson $configure "$build" "${build_options[@]}" >"$log" 2>&1 ||
		{ tail -20 "$log" >&2; die "meson cannot set up $build; the whole of it is in $log"; }
	# The tree, and thus the list of targets, may have changed since the folder was made.
	run_limited 300 ninja -C "$build" build.ninja >"$log" 2>&1 ||
		{ tail -20 "$log" >&2; die "meson cannot set the folder up again; see $log"; }
	find_programs || die "meson does not tell its programs; see $log"
	# Packages installed since the folder was made.
	if [[ -z ${program[plx-perf-dpdk]-} ]] && pkg-config --exists libdpdk; then
		run_limited 300 meson setup --reconfigure "$build" >"$log" 2>&1 && find_programs
	fi
	set_up_step 3 'ninja builds (about two minutes the first time)'
	build_programs "$log" ||
		{ tail -30 "$log" >&2; die "the build failed; the whole of it is in $log"; }
	children=()
}

# Measuring ------------------------------------------------------------------------------------

failures=()

watch_platform()
{
	progress platform 'the platform alone: who else takes the CPUs'
	run_limited 30 "${program[hiccup]}" --cpus "$cpu_server,$cpu_client" --duration 2 \
		--json "$out/hiccups.json" >"$out/hiccups.txt" 2>&1 ||
		failures+=("hiccup: $(tail -n 1 "$out/hiccups.txt")")
	[[ -s $out/hiccups.json ]] || echo null >"$out/hiccups.json"
}

# Main -----------------------------------------------------------------------------------------

choose_cpus
check_out
be_alone
note_others
set_up
# The client of a waiting server may be on this host.
if [[ $mode == serve ]]; then
	exec {lock_fd}<&-
	[[ -z ${host_fd-} ]] || exec {host_fd}<&-
fi
[[ $mode == serve ]] || : >"$out/runs/lines"
in_parts begin

if [[ $mode == serve ]]; then
	"${parts[0]}_serve"
	exit $?
fi
((${#failures[@]} == 0)) || die "${failures[0]}"

environment_begin
expect platform 1 2
expect report 1 $((5 * ${#parts[@]}))
say "$steps_all steps, about $(time_words "$ms_all"); results go to $out"
watch_platform
in_parts run
progress report 'tables, plots, report'
environment_end >"$out/environment.json"
late=()
summarize || die "cannot sum up the runs in $out/runs"
plot_all || late+=("plots: see $out/plots/gnuplot.log")
write_report || late+=('the report could not be written')
rm -f "$out/environment.json"
print_summary
for text in "${failures[@]}" "${late[@]}"; do
	say "FAILED: $text"
done
print_end

((${#failures[@]} + ${#late[@]} == 0)) || exit 1
((!strict)) || jq -e 'all(.thresholds[]; .ok != false or (.gates | not))' "$out/summary.json" >/dev/null || exit 3
exit 0
