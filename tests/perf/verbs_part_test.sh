#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The part verbs of the bench: which devices it takes, its rows and command lines, how it reads what ib_send_lat
# prints, and its judgement; on devices and runs that are made up.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154,SC2317 # jq's $; the part's functions use what is set here
set -uo pipefail

# shellcheck source=tests/perf/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

# What ib_send_lat prints -----------------------------------------------------------------------

# lat: standard input as a run.
lat()
{
	jq -Rn --arg name ib-send-lat --arg idle poll --argjson size 64 -f "$here/verbs-lat.jq" 2>"$work/error"
}
# COUNT times, half of 2, 4, 6, ... us, as it sorts them.
printed()
{
	echo ' #bytes #iterations    t_min[usec] ...'
	echo '#, usec'
	seq "$1" | awk '{ print NR ", " $1 }'
	echo ' 64      1000          1.00           1000.00      500.00'
}
got=$(printed 1000 | lat)
check 'half round trips are doubled' "$got" '.min_ns == 2000 and .max_ns == 2000000 and .count == 1000 and .mean_ns == 1001000'
check '... and percentiles are those of all' "$got" '.p50_ns == 1000000 and .p90_ns == 1800000 and .p99_ns == 1980000'
check '... that have ten round trips above them' "$got" '.p99_9_ns == null and .p99_99_ns == null'
check '... and no others' "$(printed 999 | lat)" '.p90_ns != null and .p99_ns == null'
check 'long ones have an exponent' "$(printf '1, 1.5\n2, 1.25e+06\n' | lat)" '.min_ns == 3000 and .max_ns == 2500000000'
lat <<<'Unexpected CM event bl blka 8' >/dev/null
check 'without times there is no run, and that is said' "$(ended "$work/error")" \
	'.status != 0 and (.said | contains("ib_send_lat has printed no times"))'

# The sum ---------------------------------------------------------------------------------------

# run ROW DEVICE SIZE ROUND P50_NS: a run as the part writes it down.
run()
{
	jq -nc --arg row "$1" --arg device "$2" --argjson size "$3" --argjson round "$4" --argjson p50 "$5" '{
		key: "\($row)@\($device)", row: $row, round: $round, run: "runs/\($row)-\($round)", name: $row, line_ns: [], device: $device, provider: "verbs",
		idle: "poll", size_bytes: $size, count: 100, min_ns: ($p50 - 10), p50_ns: $p50, p90_ns: ($p50 + 10),
		p99_ns: ($p50 + 20), p99_9_ns: (if $round == 1 then 9000 else null end), p99_99_ns: null, max_ns: ($p50 * 9),
		mean_ns: $p50, elapsed_ns: 1000}'
}
devices='[{"device": "d0", "transport": "RoCE", "rate": "100 Gb/sec", "mtu_bytes": 4096, "address": "10.0.0.1", "node": 0}]'
sums()
{
	jq -s -L "$here" --argjson between null --argjson pooled '[]' --argjson devices "$devices" --arg peer "${1-}" \
		-f "$here/verbs.jq"
}
sum=$({
	for round in 1 2 3; do
		run raw-fi-verbs d0 64 $round $((3000 + round))
		run verbs-poll d0 64 $round $((3300 + round * 10))
		run ib-send-lat d0 64 $round 2960
		run raw-fi-verbs d1 64 $round 1000
		run verbs-event d1 64 $round 9000
		run raw-fi-verbs d0 1024 $round 4000
	done
} | sums)
check 'the median of the rounds is the figure, with the least and the greatest' "$sum" \
	'.rows[] | select(.name == "verbs-poll") | .p50_ns == 3320 and .p50_ns_least == 3310 and .p50_ns_greatest == 3330 and
		.min_ns == 3300 and .rounds == 3 and .count == 300 and .p99_9_ns == null'
check 'devices, sizes and rows have their order' "$sum" '.rows | map([.device, .size_bytes, .name]) == [["d0", 64, "ib-send-lat"],
	["d0", 64, "raw-fi-verbs"], ["d0", 64, "verbs-poll"], ["d0", 1024, "raw-fi-verbs"], ["d1", 64, "raw-fi-verbs"], ["d1", 64, "verbs-event"]]'
check 'ratios are of one device and size' "$sum" \
	'(.rows[] | select(.name == "verbs-poll") | .base == "raw-fi-verbs" and .ratio == 1.106) and
		(.rows[] | select(.name == "raw-fi-verbs" and .device == "d0" and .size_bytes == 64) | .base == "ib-send-lat" and .ratio == 1.014)'
check '... and none over what was not measured' "$sum" \
	'all(.rows[] | select(.device == "d1" or .size_bytes == 1024); .base == null and .ratio == null) and (.thresholds | length == 1)'
check 'figures of other hosts follow, with their source' "$sum" \
	'(.references | map([.name, .ns]) == [["netio-talk-poll", 3200], ["netio-talk-event", 8000]]) and
		all(.references[]; (.source | length > 20) and (.what | contains("ib_send_lat")))'
check 'what is known of devices is kept, and every run' "$sum" \
	'.devices[0].device == "d0" and (.every_run | length == 18) and .peer == null'
check 'a peer is named' "$(run verbs-poll d0 64 1 5 | sums host:1)" '.peer == "host:1"'
check 'no run, no row' "$(sums </dev/null)" '.rows == [] and .thresholds == []'
for row in verbs-poll/raw-fi-verbs verbs-event/raw-fi-verbs-event; do
	good=$({ run "${row#*/}" d0 64 1 10000; run "${row%/*}" d0 64 1 11500; } | sums)
	bad=$({ run "${row#*/}" d0 64 1 10000; run "${row%/*}" d0 64 1 11501; } | sums)
	check "${row%/*} has a threshold, which does not gate" "$(jq -n --argjson good "$good" --argjson bad "$bad" '{$good, $bad}')" \
		'(.good.thresholds[0] | .ok and .limit == 1.15 and (.gates | not) and (.what | startswith("verbs on d0, ") and endswith(", 64 B, p50"))) and (.bad.thresholds[0].ok | not)'
done

html=$(jq -r -L "$here" -f "$here/part-verbs.jq" <<<"$sum" | jq -Rs .)
check 'the report has devices, rows, and figures of other hosts' "$html" \
	'contains("<td>d0</td><td>RoCE</td>") and contains("<td>verbs-poll</td><td>3.30</td><td>3.32</td>") and contains("<td>1.106</td>") and
		contains("<td>netio-talk-poll</td><td></td><td>3.20</td>")'
html=$(sums </dev/null | jq -r -L "$here" -f "$here/part-verbs.jq" | jq -Rs .)
check '... and no table of nothing' "$html" 'contains("<table>") | not'

# Devices and rows ------------------------------------------------------------------------------

# port NETDEV ADDRESSES [GID NETDEV]: of a device, active.
port()
{
	jq -nc --arg netdev "$1" --argjson addresses "$2" --arg gid "${3-}" --arg of "${4-}" '{active: true, link_layer: "Ethernet",
		rate: "r", mtu_bytes: 4096, netdev: $netdev, $addresses, gids: [{gid: $gid, netdev: $of} | select(.gid != "")]}'
}
# device NAME TRANSPORT CPUS USABLE PORT
device()
{
	jq -nc --arg name "$1" --arg transport "$2" --argjson cpus "$3" --argjson usable "$4" --argjson port "$5" '{
		$name, $transport, $cpus, $usable, node: 0, inline_max_bytes: 220, ports: [$port]}'
}
info=$({
	device a0 InfiniBand '"2-3,9"' true "$(port ens1 '["fe80::1", "2001:db8::1", "10.0.0.1"]')"
	device b0 iWARP null true "$(port ens2 '["10.0.1.1"]')"
	device vlan0 InfiniBand null true "$(port ens3 '[]' ::ffff:10.0.2.1 ens3.7)"
	device down0 InfiniBand null true "$(port ens4 '["10.0.3.1"]' | jq -c '.active = false')"
	device bare0 InfiniBand null true "$(port ens5 '["fe80::2"]')"
	device dead0 InfiniBand null false "$(port ens6 '["10.0.4.1"]')"
} | jq -sc '{rdma_cm: "open", rdma: ., doctor: [{id: "rdma-port", seen: "no port of it"}, {id: "smt", seen: "x"}]}')

# part [COMMAND...]: with the part's functions, and programs that are all there but those in `lacking`; `mode`,
# `listen`, `peer`, `device_given`, `sizes` and `info` may be set.
part()
(
	out=$work quick=1 duration_given='' rounds=1 failures=() children=() lacking=${lacking-}
	said_by_plx_info=${info-}
	cpu_server=17 cpu_client=18 wanted=() allowed_cpus=${allowed-0-7} build=$work
	mode=${mode-local} listen=${listen-0.0.0.0:17300} peer=${peer-} device_given=${device_given-}
	read -ra parts <<<"${parts-verbs}"
	IFS=, read -ra size_list <<<"${sizes-64,1024}"
	declare -A program=([raw-fi]=/bin/raw-fi [plx-ping]=/bin/plx-ping [plx-info]=plx_info)
	say() { printf '%s\n' "$*"; }
	die() { printf 'died: %s\n' "$*"; exit "${2:-1}"; }
	timeout() { "${@:$([[ $1 == --foreground ]] && echo 3 || echo 2)}"; }
	plx_info() { echo "$said_by_plx_info"; }
	ip() { echo '[{"dev": "ens2"}]'; }
	command() { [[ " $lacking " != *" $2 "* ]]; } # -v
	verbs_meet_peer() { :; }
	for name in $lacking; do unset "program[$name]"; done
	for name in common rows part-verbs; do
		# shellcheck source=/dev/null
		. "$here/$name.sh"
	done
	program=([raw-fi]=/bin/raw-fi [plx-ping]=/bin/plx-ping [plx-info]=plx_info)
	verbs_meet_peer() { :; }
	verbs_begin >"$work/notes"
	"$@"
)

show()
{
	local row size

	for row in "${verbs_rows[@]}"; do
		for size in "${size_list[@]}"; do
			! verbs_has "$row" "$size" || printf '%s %s\n' "$row" "$size"
		done
	done | jq -Rn '[inputs]' | jq --rawfile notes "$work/notes" --arg failures "${failures[*]}" --arg listen "$listen" \
		--argjson devices "$verbs_devices" --arg left_out "${left_out[*]}" '{rows: ., $notes, $failures, $devices, $left_out, $listen}'
}
got=$(part show)
check 'devices with an active port and an address are taken, by a VLAN too' "$got" \
	'.devices | map([.device, .transport, .address]) == [["a0", "RoCE", "10.0.0.1"], ["b0", "iWARP", "10.0.1.1"], ["vlan0", "RoCE", "10.0.2.1"]]'
check 'each has every row, and rows that sleep have one size' "$got" \
	'(.rows | length == 27) and (.rows | map(select(endswith("@b0 64"))) | length == 6) and
		(.rows | map(select(endswith("@b0 1024"))) == ["ib-send-lat@b0 1024", "raw-fi-verbs@b0 1024", "verbs-poll@b0 1024"])'
check 'both ends are near the device, if that is known' "$got" \
	'.notes | contains("verbs on a0 (RoCE): CPU 2 serves, CPU 3 measures") and contains("verbs on b0 (iWARP): CPU 17 serves, CPU 18 measures")'
check '... and may be used' "$(allowed=0-2,8 part show)" '.notes | contains("verbs on a0 (RoCE): CPU 17 serves, CPU 18 measures")'
check 'one can be chosen' "$(device_given=b0 part show)" '.rows | length == 9 and all(.[]; contains("@b0 "))'
(device_given=down0 part show) >/dev/null
check '... that is one of them' "$(ended "$work/notes")" \
	'.status == 2 and (.said | contains("--device down0: that is none with an active port and an IP address; there are: a0 b0 vlan0"))'
check 'without perftest its rows are left out, with a note' "$(lacking=ib_send_lat part show)" \
	'(.rows | length == 18 and all(.[]; startswith("ib-") | not)) and (.left_out | contains("perftest is not installed")) and .failures == ""'

none=$(jq -c '.rdma = .rdma[3:4]' <<<"$info")
check 'a whole run without a device leaves it out, with the reason' "$(info=$none parts='rtt verbs' part show)" \
	'.rows == [] and .failures == "" and .left_out == "verbs: no RDMA device with an active port and an IP address: no port of it"'
got=$(info='{"rdma_cm": "missing", "rdma": [], "doctor": []}' parts='rtt verbs' part show)
check '... also without any device' "$got" '.left_out | endswith(": this host has no RDMA device")'
check '... or nothing is known' "$(info='' parts='rtt verbs' part show)" '.left_out | endswith(": plx-info shows none")'
(info=$none part show) >/dev/null
check '... and --only verbs fails' "$(ended "$work/notes")" \
	'.status == 1 and (.said | contains("died: verbs: no RDMA device with an active port"))'

# Two hosts -------------------------------------------------------------------------------------

got=$(mode=connect peer=10.0.1.7:5000 part show)
check 'to a peer the device is the one that leads there' "$got" '.rows | all(.[]; contains("@b0 "))'
got=$(mode=serve listen=10.0.2.1:5000 part show)
check 'a server is on the device whose address it has' "$got" '(.devices | map(.device) == ["vlan0"]) and .listen == "10.0.2.1:5000"'
got=$(mode=serve device_given=b0 part show)
check '... or has the address of the one that was asked for' "$got" '.listen == "10.0.1.1:17300"'
(mode=serve part show) >/dev/null
check '... and must be given one of several' "$(ended "$work/notes")" \
	'.status == 2 and (.said | contains("several RDMA devices: a0 b0 vlan0; give --device"))'

# Each row and size with its port, of both sides.
show_ports()
{
	local row size

	keep_serving()
	{
		for key; do
			verbs_address_of "${key%/*}" "${key#*/}" "$listen"
		done | jq -R . | jq -sc . >"$work/served"
	}
	verbs_serve >"$work/said"
	for row in "${verbs_rows[@]}"; do
		for size in "${size_list[@]}"; do
			! verbs_has "$row" "$size" || verbs_address_of "${row%@*}" "$size" "$listen"
		done
	done | jq -R . | jq -s --slurpfile served "$work/served" --rawfile said "$work/said" '{asked: ., served: $served[0], $said}'
}
got=$(mode=serve device_given=b0 sizes=64,1024,65536 part show_ports)
check 'a client asks where servers are' "$got" '(.asked | unique) == (.served | sort) and (.served | length == 8)'
check '... and the server prints them' "$got" '.said | contains("serving verbs on b0, 10.0.1.1, ports 17300 to 17307")'

# Command lines: of each row and size, both ends.
show_commands()
{
	local row size command

	verbs_choose_cpus a0
	for row in "${verbs_rows[@]%@*}"; do
		for size in "${size_list[@]}"; do
			verbs_has "$row@" "$size" || continue
			verbs_server "$row" a0 10.0.0.1:7 "$size" "$verbs_cpu_server"
			printf '%s %s server %s\n' "$row" "$size" "${command[*]}"
			verbs_client "$row" a0 10.0.0.1:7 "$size" DIR
			printf '%s %s client %s\n' "$row" "$size" "${command[*]}"
		done
	done | jq -Rn '[inputs | capture("^(?<row>[^ ]+) (?<size>[0-9]+) (?<side>[^ ]+) (?<line>.*)$")]'
}
got=$(device_given=a0 part show_commands)
check 'each end of every row is on its own CPU' "$got" \
	'length == 18 and all(.[]; (.side == "server") == (.line | test("(@|--cpu |-c )2( |$)"))) and
		all(.[]; (.side == "client") == (.line | test("(@|--cpu |-c )3( |$)")))'
check 'only rows that sleep have the option' "$got" \
	'all(.[]; (.row | endswith("-event")) == (.line | test(" --idle event| -e( |$)"))) and
		all(.[] | select(.row | endswith("-event") | not); .line | test("--idle poll|ib_send_lat"))'
check 'all but perftest are given the provider, and it the device' "$got" \
	'all(.[]; . as $one | .line | contains("--provider verbs") or contains("ib_send_lat -R -F -H -d a0 -p 7 -s \($one.size) -n "))'
check 'both ends of ib_send_lat know the same number' "$got" \
	'[.[] | select(.row | startswith("ib-")) | [.row, .size, (.line | capture("-n (?<n>[0-9]+)").n)]] | unique | length == 3'

# Runs ------------------------------------------------------------------------------------------

# measure ROW STATUS CLIENT-SAID [RESULT]: a run that ends so.
measure()
{
	local ends=$2 said=$3 result=${4-}

	verbs_serve_row() { address=10.0.0.1:7; }
	run_client()
	{
		printf '%b' "$said" >"$1/client.log"
		[[ -z $result ]] || printf '%s' "$result" >"$1/raw-fi-verbs.json"
		return "$ends"
	}
	end_children() { :; }
	rm -rf "$work/runs"
	mkdir -p "$work/runs"
	: >"$work/runs/verbs.ndjson"
	run_key=$1@a0
	verbs_measure "$1@a0" 64 2 >"$work/said"
	jq -n --slurpfile runs "$work/runs/verbs.ndjson" --arg failures "${failures[*]}" '{$runs, $failures}'
}
check 'a good run is kept, with its device' "$(part measure raw-fi-verbs 0 '' '{"p50_ns": 5, "count": 7}')" \
	'.failures == "" and (.runs[0] | .row == "raw-fi-verbs" and .device == "a0" and .round == 2 and .p50_ns == 5 and
		.run == "runs/verbs-a0-raw-fi-verbs-64-2")'
got=$(part measure ib-send-lat 0 '#, usec\n1, 2\n2, 3\n')
check 'so is one of ib_send_lat' "$got" '.failures == "" and (.runs[0] | .row == "ib-send-lat" and .device == "a0" and .min_ns == 4000)'
got=$(part measure ib-send-lat 0 'nothing\n')
check '... unless it has measured nothing' "$got" '.runs == [] and (.failures | contains("ib_send_lat has printed no times"))'
got=$(part measure raw-fi-verbs 1 'refused\n')
check 'a bad one is a failure with a name' "$got" '.runs == [] and .failures == "verbs, raw-fi-verbs@a0, 64 B, round 2: status 1: refused"'
exit $failed
