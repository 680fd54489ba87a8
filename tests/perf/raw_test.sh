#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The raw baselines do what the bench relies on: raw_test.sh FOLDER-OF-THE-PROGRAMS
# shellcheck disable=SC2016 # $name in single quotes is jq's
set -uo pipefail

programs=$1 many_links=$PLX_BUILD_ROOT/tests/apps/many_links
module_dir=$PLX_BUILD_ROOT/drivers/shm # of the provider plx_shm, which raw-fi has to load
work=$(mktemp -d)
server=
failed=0

# shellcheck disable=SC2317 # called by the trap
finish()
{
	[[ -z $server ]] || kill "$server" 2>/dev/null
	rm -rf "$work"
}
trap finish EXIT

# check TEXT COMMAND...: the command must succeed.
check()
{
	local text=$1

	shift
	if "$@"; then
		echo "ok: $text"
	else
		echo "FAILED: $text"
		failed=1
	fi
}

# says STATUS WORDS COMMAND...: the command ends with that status, and with these words on stderr.
says()
{
	local status=$1 words=$2 got

	shift 2
	timeout 20 "$@" >"$work/out" 2>"$work/err"
	got=$?
	check "'$words', status $status: ${*##*/}" test "$got" = "$status"
	check "... and reports it ($(tail -n 1 "$work/err"))" grep -qF -- "$words" "$work/err"
}

# start_server PROGRAM ADDRESS [option...]: sets `address` to where it listens.
start_server()
{
	local name=$1

	: >"$work/server"
	"$programs/$name" --listen "$2" "${@:3}" >"$work/server" 2>&1 &
	server=$!
	wait_listening
}

# Sets `address` to where the server says that it listens.
wait_listening()
{
	for _ in {1..500}; do
		address=$(sed -n 's/^listening on //p' "$work/server")
		[[ -z $address ]] || break
		sleep 0.02
	done
}

# meet PROGRAM ADDRESS SIZE [option...]: a server, and a client with these options too; results go to
# $work/SIZE/PROGRAM.*.
meet()
{
	local name=$1 size=$3 address status

	start_server "$name" "$2" "${@:4}"
	# Status 3 is a run whose figures do not add up, as on a busy host: not what is tested here.
	timeout 30 "$programs/$name" --connect "$address" --size "$size" --warmup 2 --out "$work/$size" \
		--name "$name" "${client[@]}" "${@:4}" >"$work/client" 2>&1
	check "$name ${*:4}: client, $size B" test $? = 0 -o $? = 3
	wait "$server"
	status=$?
	check "$name ${*:4}: the server ends well with its client ($(tail -n 1 "$work/server"))" test $status = 0
	server=
}

# exchange PROGRAM ADDRESS SIZE [option...]: a server and a client, 30 round trips.
exchange()
{
	local client=(--count 30)

	meet "$@"
	check "$1: 30 round trips are in the JSON" \
		jq -e --argjson size "$3" '.count == 30 and .size_bytes == $size and .p50_ns > 0' "$work/$3/$1.json"
	check "$1: the .hgrm is there" grep -q 'Total count *= *30\]' "$work/$3/$1.hgrm"
}

# stream PROGRAM ADDRESS SIZE [option...]: 1000 messages one way.
stream()
{
	local client=(--count 1000)

	meet "$@"
	check "$1: 1000 messages, and their rates, are in the JSON" \
		jq -e --argjson size "$3" '.count == 1000 and .size_bytes == $size and .messages_per_s > 0
			and (.bytes_per_s / .messages_per_s / $size - 1 | fabs) < 0.01' "$work/$3/$1.json"
}

# libfabric's own providers over TCP: tcp, and below 1.18 its successor net.
own=(tcp)
[[ $(printf '%s\n1.18\n' "$(pkg-config --modversion libfabric)" | sort -V | head -n 1) == 1.18 ]] || own+=(net)

for size in 1 1048576; do
	exchange raw-tcp 127.0.0.1:0 $size
	exchange raw-fi 127.0.0.1:0 $size --provider "${own[-1]}"
	exchange raw-fi 127.0.0.1:0 $size --provider tcp --cq none
	FI_PROVIDER_PATH=$module_dir exchange raw-fi 127.0.0.1:0 $size --provider plx_shm
	exchange raw-fi-shm "pollux-test-$$" $size
	[[ ! -x $programs/raw-zmq ]] || exchange raw-zmq 127.0.0.1:0 $size
done
exchange raw-bare "pollux-test-$$" 64
exchange raw-eventfd "pollux-test-$$" 64
for provider in "${own[@]}" plx_shm; do
	FI_PROVIDER_PATH=$module_dir exchange raw-fi 127.0.0.1:0 64 --provider "$provider" --idle event
done
check '... and the JSON reports that it slept' jq -e '.idle == "event"' "$work/64/raw-fi.json"
for size in 64 1048576; do
	exchange raw-tcp 127.0.0.1:0 $size --idle event
	check '... asleep' jq -e '.idle == "event"' "$work/$size/raw-tcp.json"
done

# 8 bytes are what a mark has elsewhere; 64 KiB need completions of sends; without CMA a mark may
# overtake what it counts.
for size in 1 8 64 4096 65536; do
	FI_PROVIDER_PATH=$module_dir stream raw-fi-stream 127.0.0.1:0 $size --provider plx_shm
	stream raw-fi-shm-stream "pollux-test-$$" $size
	[[ ! -x $programs/raw-zmq-stream ]] || stream raw-zmq-stream 127.0.0.1:0 $size
	[[ ! -x $programs/raw-zmq-stream ]] || stream raw-zmq-stream 127.0.0.1:0 $size --copy
done
[[ ! -x $programs/raw-zmq-stream ]] || stream raw-zmq-stream '[::1]:0' 1048576 --window 3 --posted 2
FI_PROVIDER_PATH=$module_dir FI_PLX_SHM_COPY_MAX=16k stream raw-fi-stream 127.0.0.1:0 65536 --provider plx_shm
FI_SHM_DISABLE_CMA=1 stream raw-fi-shm-stream "pollux-test-$$" 65536
stream raw-fi-stream 127.0.0.1:0 65536 --provider "${own[-1]}" --window 3 --posted 2
stream raw-fi-stream 127.0.0.1:0 64 --provider tcp --window 1 --posted 1
exchange raw-tcp '[::1]:0' 64
exchange raw-fi '[::1]:0' 64 --provider "${own[-1]}"
[[ ! -x $programs/raw-zmq ]] || exchange raw-zmq '[::1]:0' 64
FI_PROVIDER_PATH=$module_dir exchange raw-fi '[::1]:0' 64 --provider plx_shm
check 'nothing stays in /dev/shm' test -z "$(find /dev/shm -name "*pollux-test-$$*")"

# Of a lcore with more links: what the bench takes from these two must be there.
start_server link-beside 127.0.0.1:0 --provider tcp --idle poll
timeout 60 "$programs/link-beside" --provider tcp --idle poll --connect "$address" --duration 300ms --warmup 10 \
	--out "$work" --name two-links >"$work/client" 2>&1
status=$?
check "link-beside: client ($(tail -n 1 "$work/client"))" test $status = 0 -o $status = 3
wait "$server"
check 'link-beside: the server ends well with its client' test $? = 0
check 'link-beside: the other link streamed' grep -qE '^streamed [1-9][0-9]* messages' "$work/client"
check 'link-beside: the round trips are in the JSON' jq -e '.provider == "plx_tcp" and .count > 0 and .p50_ns > 0' "$work/two-links.json"
start_server link-idle 127.0.0.1:0 --provider tcp --idle event --links 20 --duration 200ms --out "$work/idle.json"
timeout 60 "$many_links" --provider tcp --connect "$address" --links 20 >"$work/client" 2>&1 &
peer=$!
wait "$server"
check "link-idle: it ends well ($(tail -n 1 "$work/server"))" test $? = 0
server=
kill "$peer"
wait "$peer"
check 'link-idle: the figures are in the JSON' jq -e '.links == 20 and .size_bytes == 4 and .turn_ns > 0 and
	.longest_turn_ns > 0 and .bytes_per_link > 0 and .cpu_percent >= 0' "$work/idle.json"
says 2 'give --listen and --out' "$programs/link-idle" --links 3
says 2 'give one of --listen ADDR and --connect ADDR' "$programs/link-beside"

says 2 'give --listen HOST:PORT or --connect HOST:PORT' "$programs/raw-tcp"
says 2 'give one of --listen and --connect, once' "$programs/raw-tcp" --listen a:1 --connect b:2
says 2 'HOST:PORT is needed' "$programs/raw-tcp" --connect nowhere
says 2 '--cq: unknown option' "$programs/raw-tcp" --connect a:1 --cq none
says 2 '--idle event needs --cq fd' "$programs/raw-fi" --connect a:1 --idle event --cq none
says 2 'has messages of 64 B alone' "$programs/raw-bare" --connect a --size 65
says 1 'cannot run there' "$programs/raw-tcp" --listen 127.0.0.1:0 --cpu 1023
says 1 'no client came to' "$programs/raw-bare" --listen "pollux-test-$$" --wait 200ms
says 1 'in vain for a client' "$programs/raw-fi" --listen 127.0.0.1:0 --wait 200ms
says 1 'in vain for a client' "$programs/raw-fi-shm" --listen "pollux-test-$$" --wait 200ms
says 1 "cannot connect to pollux-test-$$" "$programs/raw-bare" --connect "pollux-test-$$"
says 1 'provider nosuch has no FI_EP_MSG endpoint' "$programs/raw-fi" --connect 127.0.0.1:1 --provider nosuch
# Of 192.0.2.0/24 (RFC 5737) no host has an address, so no RDMA device has either.
says 1 'an address of an RDMA device is needed' "$programs/raw-fi" --provider verbs --listen 192.0.2.1:7000
says 2 '--cpus' "$programs/hiccup" --cpus x
check 'hiccup reports every CPU' timeout 20 "$programs/hiccup" --duration 100ms --json "$work/h.json"
check '... in JSON too' jq -e --argjson cpus "$(nproc)" '.cpus | length == $cpus' "$work/h.json"

read -ra cpus < <(taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' |
	awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) printf "%d ", i }')
((${#cpus[@]} < 2)) ||
	check 'cache-line prints a time' grep -qxE '[1-9][0-9]+' <("$programs/cache-line" "${cpus[0]}" "${cpus[1]}")
says 2 'CPU 0 twice' "$programs/cache-line" 0 0

# A peer that vanishes ends a program within seconds.
vanish()
{
	local name=$1 where=$2 address client

	start_server "$name" "$where" "${@:3}"
	timeout 20 "$programs/$name" --connect "$address" --duration 15 "${@:3}" >"$work/out" 2>"$work/err" &
	client=$!
	sleep 0.7
	kill -KILL "$server"
	SECONDS=0
	wait "$client"
	check "$name ${*:3}: a killed server is a failure" test $? = 1
	check "$name: ... soon" test "$SECONDS" -le 12 # as long as it tries to connect, on a busy host
	check "$name: ... and reports it ($(cat "$work/err"))" test -s "$work/err"
	wait "$server" 2>/dev/null
	server=
}

vanish raw-tcp 127.0.0.1:0
vanish raw-tcp 127.0.0.1:0 --idle event
vanish raw-fi 127.0.0.1:0
FI_PROVIDER_PATH=$module_dir vanish raw-fi 127.0.0.1:0 --provider plx_shm --idle event
FI_PROVIDER_PATH=$module_dir vanish raw-fi-stream 127.0.0.1:0 --provider plx_shm
[[ ! -x $programs/raw-zmq-stream ]] || vanish raw-zmq-stream 127.0.0.1:0
vanish raw-bare "pollux-test-$$"
vanish raw-eventfd "pollux-test-$$"
exit $failed
