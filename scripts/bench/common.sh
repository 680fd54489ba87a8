# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Shared by the parts: rounds, results of single runs, tables and pictures. Sourced by bench.sh.
# shellcheck disable=SC2034,SC2154

# Numbers need decimal points: in some locales awk and printf would write commas.
export LC_ALL=C

# Progress -------------------------------------------------------------------------------------

steps_all=0 steps_done=0 ms_all=0 ms_done=0 measuring_since_ms=0
declare -A step_ms # of each part: how long one step takes, by estimate

# expect PART STEPS SECONDS: STEPS steps will follow, each of about SECONDS.
expect()
{
	step_ms[$1]=$(awk -v s="$3" 'BEGIN { printf "%d", s * 1000 }')
	((steps_all += $2, ms_all += $2 * step_ms[$1]))
	return 0
}

now_ms()
{
	local us=${EPOCHREALTIME/[.,]/}

	echo "${us%???}"
}

# Format milliseconds as text.
time_words()
{
	if (($1 >= 60000)); then
		echo "$(($1 / 60000)) min $(($1 % 60000 / 1000)) s"
	else
		echo "$((($1 + 999) / 1000)) s"
	fi
}

# progress PART TEXT: a step starts. The time left is estimated from earlier steps.
progress()
{
	local left=$((ms_all - ms_done)) passed

	((measuring_since_ms)) || measuring_since_ms=$(now_ms)
	passed=$(($(now_ms) - measuring_since_ms))
	((ms_done < 5000)) || left=$((left * passed / ms_done))
	((steps_done += 1, ms_done += step_ms[$1]))
	say "[$steps_done/$steps_all, $(time_words $((left > 0 ? left : 0))) left] $2"
}

# What is not measured, and why: for the terminal and the report.
left_out=()
leave_out()
{
	left_out+=("$1")
	say "note: left out: $1"
}

# The state of the CPUs ------------------------------------------------------------------------

# A virtual machine's CPUs move between near and distant cores within minutes. Comparing runs across such a move is
# meaningless. So each run measures the round trip of a cache line before and after it, and PART.jq only compares runs
# of one state (states.jq).

line_ns=null # the last one
state_changed=0
run_key='' # ROW of in_rounds that runs now

probe_line()
{
	line_ns=null
	[[ $mode == local && -n ${program[cache-line]-} ]] || return 0
	line_ns=$(timeout --foreground 10 "${program[cache-line]}" "$cpu_server" "$cpu_client") || line_ns=null
	echo "$line_ns" >>"$out/runs/lines"
}

# line_between: the threshold between the two states; null if there is only one.
line_between()
{
	[[ -e $out/runs/lines ]] || { echo null; return; }
	jq -s -L "$here" 'include "states"; between' "$out/runs/lines"
}

# keep PART ROUND: append the run on standard input to the part's file, with the state of the CPUs.
keep()
{
	local before=$line_ns

	probe_line
	state_changed=$(jq -n -L "$here" --argjson a "$before" --argjson b "$line_ns" \
		'include "states"; if differ($a; $b) then 1 else 0 end')
	jq -c --arg key "$run_key" --argjson round "$2" --argjson a "$before" --argjson b "$line_ns" \
		'. + {key: $key, round: $round, line_ns: ([$a, $b] | map(values))}' >>"$out/runs/$1.ndjson"
}

# Measuring ------------------------------------------------------------------------------------

# count_runs PART SIZES ROWS: per round.
count_runs()
{
	local size row count=0
	local -n sizes_counted=$2 rows_counted=$3

	for size in "${sizes_counted[@]}"; do
		for row in "${rows_counted[@]}"; do
			! "${1}_has" "$row" "$size" || ((++count))
		done
	done
	echo $count
}

# expect_rounds PART SECONDS SIZES ROWS: estimate in_rounds for runs of SECONDS.
expect_rounds()
{
	local seconds

	seconds=$(awk -v s="$2" 'BEGIN { print s + 0.6 }') # starting both ends, and warming up
	expect "$1" $((rounds * $(count_runs "$1" "$3" "$4"))) "$seconds"
}

# measure_steadily PART ROW SIZE ROUND: a run, and up to two more if the CPUs changed state meanwhile.
measure_steadily()
{
	local try

	for try in 1 2 3; do
		state_changed=0 run_key=$2
		"${1}_measure" "$2" "$3" "$4"
		((state_changed)) || break
		((try == 3)) || say "    the state of the CPUs changed; once more"
	done
}

# in_rounds PART SIZES ROWS: call PART_measure ROW SIZE ROUND for each round, size and row for which PART_has ROW SIZE
# ROUND succeeds. SIZES and ROWS are array names.
in_rounds()
{
	local part=$1 round size row extra
	local -n sizes_of=$2 rows_of=$3

	: >"$out/runs/$part.ndjson"
	probe_line
	for ((round = 1; round <= rounds; round++)); do
		for size in "${sizes_of[@]}"; do
			for row in "${rows_of[@]}"; do
				"${part}_has" "$row" "$size" "$round" || continue
				progress "$part" "$part, round $round of $rounds, $(size_words "$size"), $row"
				measure_steadily "$part" "$row" "$size" "$round"
			done
		done
	done
	for extra in 1 2 3; do
		while read -r size row; do
			say "$part, extra round $extra, $(size_words "$size"), $row: the others ran in another state of the CPUs"
			measure_steadily "$part" "$row" "$size" $((rounds + extra))
		done < <(lacking "$part")
	done
}

# lacking PART: lines "SIZE ROW" of rows without a run in the most common state of that size.
lacking()
{
	jq -rs -L "$here" --argjson between "$(line_between)" 'include "states"; lacking($between)' \
		"$out/runs/$1.ndjson"
}

# once_or_twice COMMAND...: a run, and a second one if the first did not account for its time. Returns the status.
once_or_twice()
{
	local try status

	for try in 1 2; do
		"$@"
		status=$?
		end_children
		((status == 3 && try == 1)) || break
		say "    did not account for its time; once more"
	done
	return $status
}

last_words()
{
	local log

	for log in "$1"/client.log "$1"/server.log; do
		[[ -s $log ]] && tail -n 1 "$log" && return
	done
	echo 'it said nothing'
}

# keep_run PART ROW SIZE ROUND STATUS DIR WORDS: keep the row's files in DIR, and print the output of the filter WORDS,
# or the failure.
keep_run()
{
	local part=$1 row=$2 size=$3 round=$4 status=$5 dir=$6 words=$7

	if ((status == 0)); then
		keep "$part" "$round" < <(jq -c --arg row "$row" --arg run "runs/${dir##*/}" \
			'. + {row: $row, run: $run}' "$dir/$row.json")
		jq -r "$words" "$dir/$row.json"
		return
	fi
	fail_run "$part, ${run_key:-$row}, $size B, round $round" "$status" "$dir"
}

# fail_run WHAT STATUS DIR
fail_run()
{
	local status=$2

	((status != 124)) || status='124 (took too long)'
	failures+=("$1: status $status: $(last_words "$3")")
	say "    FAILED: ${failures[-1]}"
}

# by_size SIZE SMALL MEDIUM LARGE: the one for messages of up to 4 KiB, up to 64 KiB, or more.
by_size()
{
	if (($1 <= 4096)); then
		echo "$2"
	elif (($1 <= 65536)); then
		echo "$3"
	else
		echo "$4"
	fi
}

# One-way warm-up messages: for about 10 ms.
one_way_warmup()
{
	by_size "$1" 20000 1000 100
}

# iperf3 ---------------------------------------------------------------------------------------

# Both set `command`. The server cannot choose a free port; see serve_trying.
iperf3_server()
{
	command=(iperf3 --server --one-off --bind 127.0.0.1 --port $((20000 + RANDOM % 10000)) --affinity "$cpu_server" --forceflush)
}

# iperf3_client PORT BYTES SECONDS FILE: writes of BYTES, for whole seconds.
iperf3_client()
{
	local whole=${3%.*}

	command=(iperf3 --client 127.0.0.1 --port "$1" --time $((10#${whole:-0} + 1)) --length "$2"
		--affinity "$cpu_client" --json --logfile "$4")
}

# serve_trying TRIES DIR LIMIT SET_COMMAND...: run_server with the command that SET_COMMAND sets; its port may be in
# use.
serve_trying()
{
	local try

	for ((try = 1; try <= $1; try++)); do
		"${@:4}"
		run_server "$2" "$3" && return 0
		end_children
	done
	return 1
}

# run_limited SECONDS COMMAND...: returns its status. In the background, because a signal would wait for a foreground
# command.
run_limited()
{
	local status

	timeout -k 3 "$@" &
	children+=("$!")
	wait "$!"
	status=$?
	unset 'children[-1]'
	return $status
}

# Stopping -------------------------------------------------------------------------------------

# stop_process CHILD PID: stop that child, or the process that a `timeout` child started. It is recorded first, so that
# it is ended in any case.
stop_process()
{
	stopped_child=$1 stopped=$2
	kill -STOP "$2"
}

# A stopped process reacts to no other signal. A `timeout` ends with the process that it started.
kill_stopped()
{
	[[ -n $stopped ]] || return 0
	{
		kill -KILL "$stopped"
		wait "$stopped_child"
	} 2>/dev/null # the shell would report it
	stopped=''
}

# Watching -------------------------------------------------------------------------------------

# For each watched process, by its label: its CPU time, its number of sleeps, and the time watched.
declare -A cpu_ns wakes watched_us
declare -A watch_pid watch_begin_us watch_ns watch_sleeps

# Forks nothing, because it runs on the measured CPUs.
exec {nap_fd}<> <(:)
nap()
{
	read -rt "$1" -u "$nap_fd" || return 0
}

# usage_of PID: sets usage_ns, its CPU time so far, and usage_sleeps, its number of sleeps. Forks nothing either.
usage_of()
{
	local task fields found ns=0 sleeps=0

	for task in "/proc/$1/task"/*; do
		# Processes that end meanwhile read as empty.
		read -r -a fields <"$task/schedstat" && [[ ${fields[0]-} ]] || return
		((ns += fields[0], found = 0))
		while read -r -a fields; do
			[[ ${fields[0]-} != voluntary_ctxt_switches: ]] || ((sleeps += fields[1], ++found))
		done <"$task/status"
		((found)) || return
	done 2>/dev/null
	usage_ns=$ns usage_sleeps=$sleeps
}

# pid_below PID: sets `below` to the process that a `timeout` started.
pid_below()
{
	for _ in {1..50}; do
		below=''
		[[ -d /proc/$1 ]] || return 1
		read -r below _ <"/proc/$1/task/$1/children"
		[[ -z $below ]] || return 0
		nap 0.01
	done 2>/dev/null
	return 1
}

# watch_process WHO PID: from now until the last watch_look.
watch_process()
{
	watch_pid[$1]=$2 watch_begin_us[$1]=${EPOCHREALTIME/[.,]/} watch_ns[$1]=0 watch_sleeps[$1]=0
	cpu_ns[$1]=0 wakes[$1]=0 watched_us[$1]=1
	usage_of "$2" || return
	watch_ns[$1]=$usage_ns watch_sleeps[$1]=$usage_sleeps
}

# watch_look WHO...: after a process has ended, its last values remain.
watch_look()
{
	local who now

	for who; do
		now=${EPOCHREALTIME/[.,]/}
		usage_of "${watch_pid[$who]}" || continue
		cpu_ns[$who]=$((usage_ns - watch_ns[$who]))
		wakes[$who]=$((usage_sleeps - watch_sleeps[$who]))
		watched_us[$who]=$((now - watch_begin_us[$who]))
	done
}

# watch_to_the_end PID SECONDS WHO...: look every SECONDS until that child ends; returns its status.
watch_to_the_end()
{
	local child=$1 seconds=$2

	shift 2
	while kill -0 "$child" 2>/dev/null; do
		watch_look "$@" # the last time shortly before it ends
		nap "$seconds"
	done
	wait "$child"
}

# Sums -----------------------------------------------------------------------------------------

# sum_part PART OPTION...: make PART.json from all its runs by PART.jq with these jq options. The summary includes it
# without single runs, and adds its thresholds to the others.
sum_part()
{
	local part=$1

	shift
	jq -s -L "$here" --argjson between "$(line_between)" "$@" -f "$here/$part.jq" "$out/runs/$part.ndjson" \
		>"$out/$part.json" &&
		add_to_summary "$part"
}

add_to_summary()
{
	jq --arg name "$1" --slurpfile part "$out/$1.json" \
		'.parts[$name] = ($part[0] | del(.every_run)) | .thresholds += $part[0].thresholds' \
		"$out/summary.json" >"$out/summary.json.new" && mv "$out/summary.json.new" "$out/summary.json"
}

# Histograms -----------------------------------------------------------------------------------

# pool_runs PART: merge the histograms of all runs of a row, size and state into pooled/PART-KEY-SIZE-STATE.csv, the
# source of the percentiles in tables and plots. Prints a line of JSON for each.
pool_runs()
{
	local key size state least greatest file run row files

	mkdir -p "$out/pooled"
	while read -r key size state least greatest row runs; do
		files=()
		for run in $runs; do
			[[ ! -s $out/$run/$row.csv ]] || files+=("$out/$run/$row.csv")
		done
		((${#files[@]})) || continue
		file=pooled/$1-$key-$size-$state.csv
		sort -t, -k1,1n "${files[@]}" |
			(cd "$out" && awk -v key="$key" -v size="$size" -v state="$state" -v file="$file" -v least="$least" \
				-v greatest="$greatest" -v out="$file" -f "$here/pool.awk") # whose -v reads backslashes
	done < <(jq -rs -L "$here" --argjson between "$(line_between)" 'include "states";
		with_states($between) | group_by([.key, .size_bytes, .state])[]
		| "\(.[0].key) \(.[0].size_bytes) \(.[0].state) \(map(.min_ns | values) | min) \(map(.max_ns | values) | max) " +
			"\(.[0].row) \(map(.run) | join(" "))"' "$out/runs/$1.ndjson")
}

# sum_pooled PART OPTION...: sum_part, with the pooled percentiles as $pooled.
sum_pooled()
{
	pool_runs "$1" >"$out/runs/$1.pooled" &&
		sum_part "$@" --slurpfile pooled "$out/runs/$1.pooled"
}

# The points of a pooled histogram: 1/(1-p) and microseconds.
percentile_points()
{
	awk -F, 'NR > 1 { high[NR] = $2; count[NR] = $3; total += $3 }
		END {
			for (i = 2; i <= NR; i++) {
				sum += count[i]
				print (sum < total ? total / (total - sum) : total), high[i] / 1000
			}
		}' "$1"
}

# Rebin a histogram to bins 2 % wide, so that all bucket sizes look alike: a bin's middle in microseconds, and its
# share of the largest bin. Omits the last 0.5 %, which may lie a thousand times further out; the percentile plot has
# it.
histogram_points()
{
	awk -F, 'NR > 1 {
			bin = int(log(($1 + $2) / 2 + 1) / log(1.02))
			sum[bin] += $3
			total += $3
			if (least == "" || bin < least) least = bin
			if (bin > greatest) greatest = bin
		}
		END {
			for (bin in sum) if (sum[bin] > most) most = sum[bin]
			for (bin = least - 1; bin <= greatest + 1 && seen <= total * 0.995; bin++) {
				print exp((bin + 0.5) * log(1.02)) / 1000, sum[bin] / most
				seen += sum[bin]
			}
			print exp((bin + 0.5) * log(1.02)) / 1000, 0
		}' "$1"
}

# plot_pooled PART: the histograms and percentiles of each size and state, plots/KIND-PART-SIZE-STATE.svg.
plot_pooled()
{
	local data=$out/plots/data size state status=0 kind file label p50 colour n

	while read -r size state; do
		rm -rf "$data"
		mkdir -p "$data"
		n=0
		while IFS=$'\t' read -r file label p50 colour; do
			((++n))
			histogram_points "$out/$file" >"$data/$n.histogram"
			percentile_points "$out/$file" >"$data/$n.percentiles"
			printf '%s\n' "$label" >>"$data/labels"
			printf '%s\n' "$p50" >>"$data/p50"
			printf '%s\n' "$colour" >>"$data/colours"
		done < <(jq -r -L "$here" --argjson size "$size" --arg state "$state" 'include "words";
			.rows[] | select(.size_bytes == $size and .state == $state and .histogram)
			| [.histogram, (.key | row_label), (.p50_ns | us), (.key | colour)] | @tsv' "$out/$1.json")
		for kind in histogram percentiles; do
			draw "$kind-$1-$size-$state" "$kind" "size='$(size_words "$size")'; state='$state'; n=$n" || status=1
		done
	done < <(pictures "$1")
	rm -rf "$data"
	return $status
}

# pictures PART: lines "SIZE STATE" for which there are histograms.
pictures()
{
	jq -r '[.rows[] | select(.histogram) | [.size_bytes, .state]] | unique[] | "\(.[0]) \(.[1])"' "$out/$1.json"
}

# html_pooled PART TITLE: for the report.
html_pooled()
{
	local size state kind

	printf '<h2>%s</h2>\n' "$2"
	while read -r size state; do
		printf '<h3>%s</h3>\n' "$(state_words "$(size_words "$size")" "$state")"
		for kind in histogram percentiles; do
			inline_svg "$out/plots/$kind-$1-$size-$state.svg"
		done
	done < <(pictures "$1")
}

# state_words TEXT STATE: with the state, if there is more than one.
state_words()
{
	if [[ $2 == one ]]; then
		echo "$1"
	else
		echo "$1, CPUs $2"
	fi
}

# Pictures -------------------------------------------------------------------------------------

# draw NAME SCRIPT SETTINGS: draw plots/NAME.svg and .png by SCRIPT.gp from the points in plots/data. Runs inside the
# folder, whose name may contain any character.
draw()
{
	local format status=0

	for format in svg png; do
		run_limited 60 env -C "$out/plots" "GNUPLOT_LIB=$here" gnuplot -e "data='data'; format='$format'" \
			-e "target='$1.$format'; frame='${1//[^a-zA-Z0-9]/_}'; $3" "$here/$2.gp" \
			>>"$out/plots/gnuplot.log" 2>&1 || status=1
	done
	return $status
}

# Tables ---------------------------------------------------------------------------------------

# 65536 -> 64 KiB
size_words()
{
	if (($1 >= 1 << 20 && $1 % (1 << 20) == 0)); then
		echo "$(($1 >> 20)) MiB"
	elif (($1 >= 1024 && $1 % 1024 == 0)); then
		echo "$(($1 >> 10)) KiB"
	else
		echo "$1 B"
	fi
}

# table_of_sizes FORMAT HEAD...: prints lines "SIZE STATE ROW CELL...", with the size, the state and HEAD above each
# group.
table_of_sizes()
{
	local format=$1 last='' size state row cells

	shift
	while read -r size state row cells; do
		if [[ $size-$state != "$last" ]]; then
			say
			[[ $state == one ]] || say "CPUs $state"
			# shellcheck disable=SC2059
			printf "$format" "$(size_words "$size")" "$@"
			last=$size-$state
		fi
		# shellcheck disable=SC2059,SC2086
		printf "$format" "$row" $cells
	done
}

# A plot's SVG for the report: without the XML header, and in the page's colours.
inline_svg()
{
	[[ -r $1 ]] || return 0
	printf '<div class="wide plot">\n'
	sed -e '/^<?xml/d' -e '/^<!DOCTYPE/,/>$/d' -e 's/fill="#ffffff"/fill="none"/' -e 's/\(fill\|color\)="black"/\1="currentColor"/g' \
		-e "s/rgb( *85, *85, *85)/var(--soft)/g; s/rgb( *221, *221, *221)/var(--line)/g" \
		-e 's/\(fill\|stroke\)=\(.\)var(\([^)]*\))./style=\2\1: var(\3)\2/g' "$1"
	printf '</div>\n'
}
