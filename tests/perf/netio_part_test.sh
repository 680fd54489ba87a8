#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The part netio of the bench: how it reads results, its judgement, the sizes of its rows, and how it runs and watches
# programs; on fake runs.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154,SC2317 # jq's $; the part's functions use what is set here
set -uo pipefail

# shellcheck source=tests/perf/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

# What programs write ---------------------------------------------------------------------------

# reads PROVIDER SUBSCRIBERS [LEAST]: standard input as a run. The sender had half a CPU, the receiver was seen
# for too short a time.
reads()
{
	jq --arg test t --arg provider "$1" --argjson size 64 --argjson subscribers "$2" --argjson least "${3-null}" --argjson usage \
		'{"sender": {"cpu_ns": 100000000, "watched_us": 200000}, "receiver": {"cpu_ns": 1, "watched_us": 49999}}' \
		-f "$here/netio-run.jq" 2>"$work/error"
}
got=$(reads '' null <<<'{"provider": "net", "messages_per_s": 2000000, "bytes_per_s": 128000000, "count": 9}')
check 'a stream' "$got" '.provider == "net" and .mmsg_per_s == 2 and .gbit_per_s == 1.024 and .count == 9'
check '... has no round trips, subscribers or cycles' "$got" \
	'.p50_ns == null and .subscribers == null and .cycles_per_copy == null and has("cycles_per_copy")'
check 'the CPU time of an end is per cent of one' "$got" '.cpu_percent_sender == 50'
check '... and nothing of too short a time' "$got" '.cpu_percent_receiver == null'
got=$(reads tcp null <<<'[{"mode": "buffered", "size_bytes": 64, "messages": 7, "mmsg_per_s": 3.5, "gbit_per_s": 1.75}]')
check 'a row of netio-throughput' "$got" \
	'.test == "t" and .provider == "tcp" and .mmsg_per_s == 3.5 and .gbit_per_s == 1.75 and .count == 7 and .size_bytes == 64'
got=$(reads tcp null <<<'[{"mode": "ping", "round_trips": 5, "p50_ns": 9000, "p99_ns": 9900}]')
check 'its round trips' "$got" '.p50_ns == 9000 and .p99_ns == 9900 and .mmsg_per_s == null and .count == 5'
got=$(reads shm null <<<'{"p50_ns": 400, "p99_ns": null, "count": 6}')
check 'plx-ping' "$got" '.p50_ns == 400 and .p99_ns == null and .count == 6'
got=$(reads tcp 4 <<<'{"subscribers": 4, "messages": 2, "copies": 8, "messages_per_s": 3.5e6, "rate_asked": null,
	"mmsg_per_s": 14, "gbit_per_s": 7.2, "cycles_per_copy": 177}')
check 'netio-pubsub-bench' "$got" '.subscribers == 4 and .mmsg_per_s == 14 and .cycles_per_copy == 177 and .count == 8 and .kept == null'
stopped='{"subscribers": 5, "messages": 1000, "copies": 4500, "messages_per_s": 1.98e6, "rate_asked": 2000000, "mmsg_per_s": 9,
	"gbit_per_s": 7.2, "cycles_per_copy": 177}'
check 'at a rate: what was published of it is kept, copies are those of the four' "$(reads tcp 4 2.1e6 <<<"$stopped")" \
	'.kept == 0.99 and .rate_asked == 2000000 and .subscribers == 4 and .mmsg_per_s == 7.92 and .count == 4000 and
		(.gbit_per_s | . > 4.055 and . < 4.0551) and .cycles_per_copy == null'
got=$(reads tcp 4 1.9e6 <<<"$stopped")
check '... and no more than what the slowest of them got' "$got" '.kept == 0.95 and .mmsg_per_s == 7.6'
reads tcp 4 null <<<"$stopped" >"$work/got"
check '... which must be known' "$(ended "$work/error")" \
	'.status != 0 and (.said | contains("the subscribers have measured nothing"))'
got=$(reads 'kernel tcp' null <<<'{"end": {"sum_sent": {"bits_per_second": 9e9}, "sum_received": {"bits_per_second": 2e10}}}')
check 'of iperf3 what was received, and no messages' "$got" \
	'.provider == "kernel tcp" and .gbit_per_s == 20 and .mmsg_per_s == null'
for empty in '[]' '{}' '{"error": "unable to connect"}'; do
	reads tcp null <<<"$empty" >"$work/got"
	check "$empty is no run, and that is said" "$(ended "$work/error")" '.status != 0 and (.said | contains("nothing was measured"))'
done

# The sum ---------------------------------------------------------------------------------------

# run ROW SIZE ROUND FIGURE VALUE [TEST SUBSCRIBERS]: a run as the part writes it down.
run()
{
	jq -nc --arg row "$1" --argjson size "$2" --argjson round "$3" --arg figure "$4" --argjson value "$5" \
		--arg test "${6-t}" --argjson subscribers "${7-null}" '{
		key: $row, row: $row, round: $round, line_ns: [], test: $test, provider: "p", size_bytes: $size, subscribers: $subscribers,
		mmsg_per_s: null, gbit_per_s: null, p50_ns: null, p99_ns: null, cycles_per_copy: null,
		cpu_percent_sender: ($round * 10), cpu_percent_receiver: null, count: 100} + {($figure): $value}'
}
sums()
{
	jq -s -L "$here" --argjson between null -f "$here/netio.jq"
}
sum=$({
	for round in 1 2 3; do
		run zmq-push-pull 65536 $round gbit_per_s 10
		run buffered-tcp 65536 $round gbit_per_s $((10 * round))
		run ping-tcp 64 $round p50_ns $((9000 + round))
		run publish-buffered-16 64 $round cycles_per_copy 160 publish-buffered 16
	done
} | sums)
check 'the median of the rounds is the figure, with the least and the greatest' "$sum" \
	'.rows[] | select(.name == "buffered-tcp") | .gbit_per_s == 20 and .gbit_per_s_least == 10 and
		.gbit_per_s_greatest == 30 and .rounds == 3 and .count == 300 and .test == "t" and .provider == "p"'
check 'CPU time too, if it is known' "$sum" \
	'.rows[] | select(.name == "buffered-tcp") | .cpu_percent_sender == 20 and .cpu_percent_receiver == null'
check 'a row is held against its peer' "$sum" \
	'.rows[] | select(.name == "buffered-tcp") | .peer == "zmq-push-pull" and .ratio == 2 and .ratio_of == "gbit_per_s"'
check '... and against none where that was not measured' "$sum" \
	'all(.rows[] | select(.name != "buffered-tcp"); .peer == null and .ratio == null)'
stopped=$({ run publish-buffered-4 64 1 cycles_per_copy 160 publish-buffered 4
	for round in 1 2 3; do
		run beside-drop-old 64 $round kept "0.99$round" beside-drop-old 4 | jq -c '. + {rate_asked: (.round * 1000)}'
	done; } | sums)
check 'the kept share is relative to the requested rate' "$stopped" \
	'.rows[] | select(.kept) | .test == "beside-drop-old" and .provider == "p" and .subscribers == 4 and .kept == 0.992 and
		.kept_least == 0.991 and .kept_greatest == 0.993 and .rate_asked == 2000 and
		.peer == "publish-buffered-4" and .ratio == 0.992 and .ratio_of == "kept"'
check 'every row has what is asked of it' "$sum" \
	'all(.rows[]; has("test") and has("provider") and has("size_bytes") and has("subscribers") and has("mmsg_per_s") and
		has("gbit_per_s") and has("p50_ns") and has("cycles_per_copy") and has("rounds"))'
check 'sizes have their order, and rows that in which they were run' "$sum" \
	'.rows | map(.name) == ["ping-tcp", "publish-buffered-16", "zmq-push-pull", "buffered-tcp"]'
check 'every single run is kept' "$sum" '(.every_run | length == 12)'
check 'thresholds over what was not measured are left out' "$sum" '.thresholds | map(.what) == ["netio, buffered-tcp over zmq-push-pull, 64 KiB"]'
check 'no run, no row' "$(sums </dev/null)" '.rows == [] and .thresholds == []'

# bar NAME PEER SIZE FIGURE PEERS-VALUE REACHED MISSED LIMIT GATES: the one value reaches it, the other
# does not.
bar()
{
	local good bad

	good=$({ run "$2" "$3" 1 "$4" "$5"; run "$1" "$3" 1 "$4" "$6"; } | sums)
	bad=$({ run "$2" "$3" 1 "$4" "$5"; run "$1" "$3" 1 "$4" "$7"; } | sums)
	check "$1 over $2, $3 B: $6 over $5 reaches its bar, $7 misses it" "$(jq -n --argjson good "$good" --argjson bad "$bad" \
		--arg what "netio, $1 over $2" --argjson size "$3" --argjson limit "$8" --argjson gates "$9" \
		'{$good, $bad, $what, $size, $limit, $gates}')" 'include "words";
		. as $all
		| def same: .limit == $all.limit and .gates == $all.gates and (.what | startswith("\($all.what), \($all.size | size)"));
		(.good.thresholds | length == 1 and all(.[]; .ok and same)) and (.bad.thresholds | length == 1 and all(.[]; (.ok | not) and same))'
}
bar ping-tcp tcp-poll 64 p50_ns 10000 10500 10501 1.05 false
bar ping-shm shm-poll 64 p50_ns 400 500 501 1.25 false
bar buffered-tcp zmq-push-pull 64 gbit_per_s 2 10 9.99 5 false
bar buffered-shm buffered-tcp 64 gbit_per_s 10 20 19.9 2 false
bar reference-tcp raw-fi-tcp-bw 1048576 gbit_per_s 30 27 26.9 0.9 false
bar reference-tcp iperf3 1048576 gbit_per_s 20 32 31.9 1.6 false
bar buffered-tcp zmq-push-pull 65536 gbit_per_s 10 18 17.9 1.8 false
bar buffered-1M-tcp zmq-push-pull 65536 gbit_per_s 10 30 29.9 3 false
bar publish-buffered-16 publish-buffered-1 64 cycles_per_copy 400 460 461 1.15 true
bar publish-buffered-16 publish-buffered-1 65536 cycles_per_copy 10000 11500 11501 1.15 false
bar publish-unbuffered-16 publish-unbuffered-4 64 cycles_per_copy 10000 11000 11001 1.1 false
bar publish-unbuffered-16 publish-unbuffered-4 65536 cycles_per_copy 10000 11000 11001 1.1 false
for policy in disconnect drop-old drop-new conflate; do
	bar beside-$policy publish-buffered-4 64 kept null 0.99 0.9899 0.99 false
done

# The report ------------------------------------------------------------------------------------

html=$(jq -r -L "$here" -f "$here/part-netio.jq" <<<"$sum" | jq -Rs .)
check 'the report has a row of each kind' "$html" \
	'contains("<td>buffered-tcp</td>") and contains("<td>ping-tcp</td><td>p</td><td>9.00</td>") and
		contains("<td>publish-buffered-16</td><td>16</td>") and contains("<td>160</td>")'
check '... and sizes as text' "$html" 'contains("<th colspan=\"9\">64 KiB</th>")'

html=$(jq -r -L "$here" -f "$here/part-netio.jq" <<<"$(jq '.rows[1] += {mmsg_per_s: 0.00793}' <<<"$stopped")" | jq -Rs .)
check '... and one of the kept share, if there are stopped subscribers' "$html" \
	'contains("<td>beside-drop-old</td><td>4</td><td>0.00793</td><td>0.008</td><td>0.992</td><td>0.991 – 0.993</td>") and
		(split("beside-drop-old") | length == 2)'

# Rows and sizes --------------------------------------------------------------------------------

# part [COMMAND...]: with the part's functions, and programs that are all there but those in `lacking`.
part()
(
	out=$work quick=1 duration_given='' rounds=1 failures=() children=()
	cpu_server=17 cpu_client=18 wanted=() scope=full lacking=${lacking-} mode=local
	IFS=, read -ra size_list <<<"${sizes-64,1024,65536,1048576}"
	declare -A program
	say() { printf '%s\n' "$*"; }
	choose_provider() { fi_provider=net; }
	server_command() { command=(plx-ping -l "0@$cpu_plx_server" --idle poll); }
	client_command() { command=(plx-ping -l "1@$cpu_client" --idle poll); }
	end_children() { children=(); }
	# shellcheck source=scripts/bench/common.sh
	. "$here/common.sh"
	# shellcheck source=scripts/bench/part-netio.sh
	. "$here/part-netio.sh"
	for name in raw-zmq-stream raw-fi-stream netio-throughput netio-recv netio-pubsub-bench plx-ping iperf3; do
		[[ " $lacking " == *" $name "* ]] || program[$name]=/bin/$name
	done
	netio_begin >"$work/notes"
	"$@"
)

# Each row with its sizes; then notes and failures.
show_rows()
{
	local row size

	for row in "${netio_rows[@]}"; do
		for size in "${size_list[@]}"; do
			! netio_has "$row" "$size" || printf '%s %s\n' "$row" "$size"
		done
	done | jq -Rn '[inputs | split(" ")] | group_by(.[0]) | map({key: .[0][0], value: map(.[1] | tonumber)}) | from_entries' |
		jq --rawfile notes "$work/notes" --arg failures "${failures[*]}" '{rows: ., $notes, $failures}'
}
got=$(part show_rows)
check 'rows have their sizes' "$got" \
	'.rows | .["buffered-tcp"] == [64, 1024, 65536, 1048576] and .["zmq-push-pull"] == [64, 1024, 65536, 1048576] and
		.["ping-shm"] == [64] and .["tcp-poll"] == [64] and .iperf3 == [1048576] and .["publish-buffered-1"] == [64, 65536] and
		.["publish-unbuffered-16"] == [64, 65536] and length == 24 and
		(to_entries | map(select(.key | startswith("beside-"))) | length == 4 and all(.[]; .value == [64]))'
check '... of the usual ones nothing is left out' "$got" '.notes == "" and .failures == ""'
got=$(sizes=1024,16777216 part show_rows)
check 'other sizes are those of the rows that have any' "$got" \
	'.rows | .["buffered-tcp"] == [1024, 16777216] and .["zmq-push-pull"] == [1024, 16777216] and length == 9'
check 'rows of other sizes than requested are left out, with a note' "$got" \
	'(.rows | has("ping-tcp") or has("iperf3") or has("publish-buffered-1") or has("beside-conflate") | not) and (.notes |
		contains("ping at 64 B, which --sizes") and contains("publish at 64 KiB, which") and contains("beside at 64 B, which") and contains("iperf3 at 1 MiB, which"))'
check 'rows of missing optional programs are left out with a note' "$(lacking='iperf3 raw-zmq-stream' part show_rows)" \
	'(.rows | has("iperf3") or has("zmq-push-pull") or has("zmq-in-place") | not) and .failures == "" and (.notes |
		contains("iperf3, which is not installed") and contains("zmq-push-pull, as libzmq3-dev"))'
check 'a missing required program is one failure' "$(lacking='netio-throughput' part show_rows)" \
	'.failures == "netio: the build has no program netio-throughput"'

# Command lines: of each row and size, both ends.
show_commands()
{
	local row size command cpu_plx_server=$cpu_server netio_rate=1234

	for row in "${netio_rows[@]}"; do
		for size in "${size_list[@]}"; do
			netio_has "$row" "$size" || continue
			netio_server "$row" "$size" DIR
			printf '%s %s server %s\n' "$row" "$size" "${command[*]}"
			netio_client "$row" "$size" DIR ADDRESS
			printf '%s %s client %s\n' "$row" "$size" "${command[*]}"
		done
	done | jq -Rn '[inputs | capture("^(?<row>[^ ]+) (?<size>[0-9]+) (?<side>[^ ]+) (?<line>.*)$")]'
}
got=$(part show_commands)
check 'each end of every row is on its own CPU' "$got" \
	'length == 114 and all(.[]; .line | test("(@|--cpu |--affinity )(17|18)( |$)")) and
		all(.[]; (.side == "server") == (.line | test("(@|--cpu |--affinity )17( |$)")))'
check 'NetIO'"'"'s programs poll, and plx-ping' "$got" \
	'all(.[] | select(.line | test("/netio-|plx-ping")); .line | contains("--idle poll"))'
check 'shm rows request shm, all others tcp' "$got" \
	'all(.[] | select(.line | contains("/netio-")); (.row | contains("shm")) == (.line | contains("--provider shm")) and
		(.row | contains("shm") | not) == (.line | contains("--provider tcp")))'
check 'what arrives in one piece has a buffer as long' "$got" \
	'def line($row; $size): [.[] | select(.row == $row and .size == $size and .side == "server") | .line][0];
	(line("buffered-1M-tcp"; "64") | contains("--rx-buf 1M")) and (line("reference-tcp"; "1048576") | contains("--rx-buf 1048576")) and
		(line("buffered-tcp"; "1048576") | contains("--buffer") | not) and (line("unbuffered-shm"; "64") | contains("--buffer") | not)'
check 'modes, pages and subscribers are those of the row' "$got" \
	'def line($row; $side): [.[] | select(.row == $row and .size == "64" and .side == $side) | .line][0];
	(line("zmq-push-pull"; "client") | endswith(" --copy")) and (line("zmq-in-place"; "client") | contains("--copy") | not) and
		(line("buffered-1M-tcp"; "client") | contains("--mode buffered") and contains("--page 1M --pages 128")) and
		(line("reference-tcp"; "client") | contains("--mode reference")) and (line("ping-shm"; "client") | contains("--mode ping")) and
		(line("publish-unbuffered-16"; "server") | contains("--mode unbuffered --size 64 --subscribers 16 ")) and
		(line("publish-unbuffered-16"; "client") | endswith("--subscribers 16")) and
		(line("beside-conflate"; "server") | contains("--heartbeat off -- ") and contains("--mode buffered --size 64 --subscribers 5 --rate 1234 --duration 1 ")) and
		(line("beside-conflate"; "client") | contains("--heartbeat off -- ") and contains("--subscribers 4 "))'

# Runs ------------------------------------------------------------------------------------------

# measure STATUS RESULT: a run that ends so, having written that.
measure()
{
	local ends=$1 result=$2

	netio_run_row()
	{
		echo x >>"$work/tries"
		printf '%s' "$result" >"$3/result.json"
		echo 'last words' >"$3/client.log"
		return "$ends"
	}
	watch_process sender $$
	watch_process receiver $$
	: >"$work/tries"
	mkdir -p "$work/runs"
	: >"$work/runs/netio.ndjson"
	netio_measure publish-buffered-4 64 2 >"$work/said"
	jq -n --slurpfile runs "$work/runs/netio.ndjson" --rawfile tries "$work/tries" --arg failures "${failures[*]}" \
		'{$runs, tries: ($tries | length / 2), $failures}'
}
row='{"mmsg_per_s": 14, "gbit_per_s": 7.2, "cycles_per_copy": 177, "copies": 8}'
check 'a good run is kept, with its description' "$(part measure 0 "$row")" \
	'.failures == "" and .tries == 1 and (.runs | length == 1) and (.runs[0] | .row == "publish-buffered-4" and .round == 2 and
		.test == "publish-buffered" and .subscribers == 4 and .provider == "tcp" and .size_bytes == 64 and .cycles_per_copy == 177 and
		.run == "runs/netio-publish-buffered-4-64-2")'
check 'a failed one is named' "$(part measure 1 "$row")" \
	'.runs == [] and .failures == "netio, publish-buffered-4, 64 B, round 2: status 1: last words"'
check 'so is one that measured nothing' "$(part measure 0 '[]')" \
	'.runs == [] and (.failures | startswith("netio, publish-buffered-4, 64 B, round 2: status 1: ") and contains("nothing was measured"))'
got=$(part measure 3 "$row")
check 'one whose time does not add up is run once more' "$got" '.tries == 2 and (.failures | contains("status 3"))'

# Half of what the base has reached last; without that there is nothing to ask for.
measure_beside()
{
	netio_run_row()
	{
		echo "$1 $netio_rate" >>"$work/tries"
		printf '{"messages_per_s": 300, "rate_asked": %d, "messages": 9, "cycles_per_copy": 1}' "$netio_rate" >"$3/result.json"
		printf '{"messages_per_s_least": 290}' >"$3/subscribers.json"
	}
	watch_process sender $$
	watch_process receiver $$
	: >"$work/tries"
	mkdir -p "$work/runs"
	{
		run publish-buffered-4 64 1 mmsg_per_s 4
		run publish-buffered-4 65536 2 mmsg_per_s 1
		run publish-buffered-4 64 2 mmsg_per_s 0.0032
	} >"$work/runs/netio.ndjson"
	netio_measure beside-drop-new 64 2 >"$work/said"
	cp "$work/runs/netio.ndjson" "$work/kept"
	: >"$work/runs/netio.ndjson"
	netio_measure beside-drop-new 64 3 >>"$work/said"
	jq -n --slurpfile runs "$work/kept" --rawfile tries "$work/tries" --arg failures "${failures[*]}" \
		--arg left_out "${left_out[*]}" --rawfile said "$work/said" \
		'{runs: $runs[3:], $tries, $failures, $left_out, $said}'
}
got=$(part measure_beside)
check 'the rate is half of what publish-buffered-4 has reached, of one subscriber' "$got" \
	'.tries == "beside-drop-new 400\n" and (.runs | length == 1 and all(.[]; .round == 2 and .test == "beside-drop-new" and
		.subscribers == 4 and .rate_asked == 400 and .kept == 0.725 and .provider == "tcp"))'
check '... and without it the row is left out, which is no failure' "$got" \
	'.failures == "" and .left_out == "netio: beside-drop-new in round 3, as publish-buffered-4 failed" and
		(.said | contains("kept 0.725 of 400 messages/s") and contains("left out: netio: beside-drop-new in round 3"))'

# One that is stopped as soon as it is subscribed, below a timeout, is ended.
hold_and_end()
{
	local held

	printf '#!/bin/bash\nsleep 0.3\necho subscribed\nexec sleep 30\n' >"$work/subscriber"
	chmod +x "$work/subscriber"
	program[netio-pubsub-bench]=$work/subscriber
	stopped=''
	netio_hold_slow disconnect ADDRESS "$work" 20
	local status=$? state
	held=$stopped
	for _ in {1..100}; do
		read -r _ _ state _ <"/proc/$held/stat"
		[[ $state != T ]] || break
		sleep 0.05
	done
	kill_stopped
	jq -n --argjson status "$status" --arg state "$state" --arg stopped "$stopped" \
		--arg there "$(kill -0 "$held" 2>&1 && echo yes)" --arg child "$(kill -0 "${children[0]}" 2>&1 && echo yes)" --rawfile said "$work/error" \
		'{$status, $state, $stopped, $there, $child, $said}'
}
got=$(part hold_and_end 2>"$work/error")
check 'a subscriber is stopped when it says that it is one' "$got" '.status == 0 and .state == "T"'
check '... and ended though it is stopped' "$got" '.stopped == "" and .there != "yes" and .child != "yes" and .said == ""'

# Watching: one that spins, and one that sleeps, both below a timeout.
watch_two()
{
	local below

	timeout 1.5 bash -c 'while :; do :; done' &
	children+=($!)
	timeout 20 sleep 10 &
	children+=($!)
	pid_below "${children[0]}"
	watch_process spins "$below"
	pid_below "${children[1]}"
	watch_process sleeps "$below"
	watch_to_the_end "${children[0]}" 0.05 spins sleeps
	local status=$?
	kill "${children[1]}"
	wait "${children[1]}"
	pid_below "${children[0]}"
	jq -n --argjson status "$status" --argjson gone $? --argjson spins "${cpu_ns[spins]}" --argjson sleeps "${cpu_ns[sleeps]}" \
		--argjson spins_us "${watched_us[spins]}" --argjson sleeps_us "${watched_us[sleeps]}" \
		'{$status, $gone, $spins, $sleeps, $spins_us, $sleeps_us}'
}
got=$(part watch_two)
# On a busy host it has little, but no more than there is: a spin of 1.5 s.
check 'CPU time of watched processes is measured' "$got" '.spins > 50e6 and .spins < 2e9 and .sleeps < 20e6'
check '... of nearly all that it ran' "$got" '.spins_us > 800000 and .sleeps_us >= .spins_us - 100000'
check '... and how it ended' "$got" '.status == 124 and .gone == 1'

# The soak --------------------------------------------------------------------------------------

# soaked SAID...: soak.json of runs in which the client has said that, one each.
soaked()
(
	# shellcheck source=scripts/bench/part-soak.sh
	. "$here/part-soak.sh"
	soak_begin
	mkdir -p "$out/runs"
	# shellcheck disable=SC2317
	netio_run_row()
	{
		echo 'listening on 127.0.0.1:1' >"$3/server.log"
		printf '%b' "$1" >"$3/client.log"
		[[ $1 != fails ]]
	}
	# shellcheck disable=SC2317
	netio_result()
	{
		reads tcp null <<<'[{"size_bytes": 64, "messages": 7, "mmsg_per_s": 3.5, "gbit_per_s": 1.75}]' >"$3/$1.json"
	}
	soak_rows=("$@")
	soak_run >/dev/null
	echo '{"thresholds": []}' >"$out/summary.json"
	soak_sum && jq --argjson failures ${#failures[@]} '. + {$failures}' "$out/summary.json"
)
got=$(part soaked 'all well')
check 'no alarm reaches the threshold' "$got" '.failures == 0 and .parts.soak.rows[0].mmsg_per_s == 3.5 and .parts.soak.rows[0].seconds == 600 and
	(.thresholds | length == 1 and .[0].ok and .[0].gates)'
got=$(part soaked 'the receiver is silent\nthe receiver is heard again\n')
check 'one alarm misses it' "$got" '.parts.soak.rows[0].alarms == 1 and (.thresholds[0].ok | not)'
check 'a run that fails is no row' "$(part soaked fails)" '.failures == 1 and .parts.soak.rows == [] and .thresholds == []'
exit $failed
