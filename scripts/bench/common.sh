# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the parts have in common: rounds, the results of single runs, tables and pictures. Sourced by
# bench.sh.
# shellcheck disable=SC2034,SC2154

# Measuring ------------------------------------------------------------------------------------

# in_rounds PART LABEL SIZES ROWS: PART_measure ROW SIZE ROUND for each round, size and row, as far as
# PART_has ROW SIZE. SIZES and ROWS are names of arrays.
in_rounds()
{
	local part=$1 label=$2 total=0 done=0 round size row
	local -n sizes_of=$3 rows_of=$4

	for size in "${sizes_of[@]}"; do
		for row in "${rows_of[@]}"; do
			! "${part}_has" "$row" "$size" || total=$((total + rounds))
		done
	done
	for ((round = 1; round <= rounds; round++)); do
		for size in "${sizes_of[@]}"; do
			for row in "${rows_of[@]}"; do
				"${part}_has" "$row" "$size" || continue
				done=$((done + 1))
				say "[$done/$total] ${label}round $round, $size B, $row"
				"${part}_measure" "$row" "$size" "$round"
			done
		done
	done
}

# once_or_twice COMMAND...: a run, and a second one where the first did not account for its time. Returns
# the status.
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

# keep_run LABEL ROW SIZE ROUND STATUS DIR FILE WORDS: what the row wrote into DIR goes into FILE, and
# what the filter WORDS makes of it to the terminal; or its failure does.
keep_run()
{
	local label=$1 row=$2 size=$3 round=$4 status=$5 dir=$6 file=$7 words=$8

	if ((status == 0)); then
		jq -c --arg row "$row" --argjson round "$round" --arg run "runs/${dir##*/}" \
			'. + {row: $row, round: $round, run: $run}' "$dir/$row.json" >>"$file"
		jq -r "$words" "$dir/$row.json"
		return
	fi
	((status != 124)) || status='124 (took too long)'
	failures+=("$label$row, $size B, round $round: status $status: $(last_words "$dir")")
	say "    FAILED: ${failures[-1]}"
}

# How many messages one way before the measured ones: for some 10 ms.
one_way_warmup()
{
	if (($1 <= 4096)); then
		echo 20000
	elif (($1 <= 65536)); then
		echo 1000
	else
		echo 100
	fi
}

# Stopping -------------------------------------------------------------------------------------

# stop_process CHILD PID: that child, or what it, a `timeout`, has started. It is remembered before, so
# that it is ended in any case.
stop_process()
{
	stopped_child=$1 stopped=$2
	kill -STOP "$2"
}

# What is stopped heeds no other signal. A `timeout` ends as what it has started.
kill_stopped()
{
	[[ -n $stopped ]] || return 0
	{
		kill -KILL "$stopped"
		wait "$stopped_child"
	} 2>/dev/null # where the shell would tell of it
	stopped=''
}

# Watching -------------------------------------------------------------------------------------

# Of each process that is watched, by what it is called here: its CPU time and how often it slept,
# in so much time.
declare -A cpu_ns wakes watched_us
declare -A watch_pid watch_begin_us watch_ns watch_sleeps

# Forks nothing, as it happens on the CPUs that are measured.
exec {nap_fd}<> <(:)
nap()
{
	read -rt "$1" -u "$nap_fd" || return 0
}

# usage_of PID: sets usage_ns, its CPU time so far, and usage_sleeps, how often it went to sleep. Forks
# nothing either.
usage_of()
{
	local task fields found ns=0 sleeps=0

	for task in "/proc/$1/task"/*; do
		# What ends meanwhile reads as empty.
		read -r -a fields <"$task/schedstat" && [[ ${fields[0]-} ]] || return
		((ns += fields[0], found = 0))
		while read -r -a fields; do
			[[ ${fields[0]-} != voluntary_ctxt_switches: ]] || ((sleeps += fields[1], ++found))
		done <"$task/status"
		((found)) || return
	done 2>/dev/null
	usage_ns=$ns usage_sleeps=$sleeps
}

# pid_below PID: sets `below` to the process that a `timeout` has started.
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

# watch_process WHO PID: from now on, until it is looked at for the last time.
watch_process()
{
	watch_pid[$1]=$2 watch_begin_us[$1]=${EPOCHREALTIME/[.,]/} watch_ns[$1]=0 watch_sleeps[$1]=0
	cpu_ns[$1]=0 wakes[$1]=0 watched_us[$1]=1
	usage_of "$2" || return
	watch_ns[$1]=$usage_ns watch_sleeps[$1]=$usage_sleeps
}

# watch_look WHO...: of a process that has ended what was seen last stands.
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

# watch_to_the_end PID SECONDS WHO...: look at them so often until that child ends; returns its status.
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

# add_to_summary PART FILTER: FILTER makes the new summary of the old one and $part, the PART's file.
add_to_summary()
{
	jq --slurpfile parts "$out/$1.json" "\$parts[0] as \$part | $2" "$out/summary.json" \
		>"$out/summary.json.new" && mv "$out/summary.json.new" "$out/summary.json"
}

# Pictures -------------------------------------------------------------------------------------

# draw NAME SCRIPT SETTINGS: plots/NAME.svg and .png, by SCRIPT.gp, of the points in plots/data.
draw()
{
	local format status=0

	for format in svg png; do
		timeout 60 gnuplot -e "here='$here/'; data='$out/plots/data'; format='$format'" \
			-e "target='$out/plots/$1.$format'; $3" "$here/$2.gp" \
			</dev/null >>"$out/plots/gnuplot.log" 2>&1 || status=1
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

# table_of_sizes FORMAT HEAD...: of lines "SIZE ROW CELL...", with the size and HEAD above each size.
table_of_sizes()
{
	local format=$1 last='' size row cells

	shift
	while read -r size row cells; do
		if [[ $size != "$last" ]]; then
			say
			# shellcheck disable=SC2059
			printf "$format" "$(size_words "$size")" "$@"
			last=$size
		fi
		# shellcheck disable=SC2059,SC2086
		printf "$format" "$row" $cells
	done
}

# table_beside FORMAT WHAT HEAD...: of lines "ROW SIZE CELL...", this run beside an earlier one.
table_beside()
{
	local format=$1 row size cells

	say
	say "Compared with $compare: $2"
	shift 2
	# shellcheck disable=SC2059
	printf "$format" row size "$@"
	while read -r row size cells; do
		# shellcheck disable=SC2059,SC2086
		printf "$format" "$row" "$(size_words "$size" | tr -d ' ')" $cells
	done
}

# A plot's SVG without the lines that only a file of its own has.
inline_svg()
{
	[[ -r $1 ]] || return 0
	sed -e '/^<?xml/d' -e '/^<!DOCTYPE/,/>$/d' "$1"
}
