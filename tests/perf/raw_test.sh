#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The raw baselines do what the bench relies on: raw_test.sh FOLDER-OF-THE-PROGRAMS
# shellcheck disable=SC2016,SC2034,SC2154 # check expands the conditions; checks.sh sets `address`
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../apps/checks.sh"

programs=$1 many_links=$PLX_BUILD_ROOT/tests/apps/many_links
export FI_PROVIDER_PATH=$PLX_BUILD_ROOT/drivers/shm # of the provider plx_shm, which raw-fi has to load

# says STATUS WORDS PROGRAM [option...]: it ends with that status, and these words.
says()
{
	gives "${*:3}: '$2'" "$1" "*$2*" timeout 20 "$programs/$3" "${@:4}"
}

# listen PROGRAM ADDRESS [option...]: starts a server; sets `address` to where it listens.
listen()
{
	start server "$programs/$1" --listen "$2" "${@:3}"
	server=$pid
	listening "$temp/server" || check "$1 listens" false
}

# server_ends TEXT
server_ends()
{
	ends "$server"
	status=$?
	server=
	check "$1: its server ends well" '((status == 0))'
}

# figures CONDITION: of the result, for jq.
figures()
{
	check "... $1" "jq -e '$1' '$temp/it.json' >/dev/null"
}

# meet PROGRAM ADDRESS SIZE CONDITION [option...]: a server, and a client with these options too. Status 3 is a run whose
# figures do not add up, as on a busy host: not what is tested here.
meet()
{
	rm -f "$temp/it.json"
	listen "$1" "$2" "${@:5}"
	start client timeout 30 "$programs/$1" --connect "$address" --size "$3" --warmup 2 --count "$count" --out "$temp" \
		--name it "${@:5}"
	ends "$pid"
	status=$?
	check "$1 ${*:5}, $3 B" '((status == 0 || status == 3))'
	server_ends "$1"
	figures ".count == $count and .size_bytes == $3 and ($4)"
}

# libfabric's own providers over TCP: tcp, and below 1.18 its successor net.
own=(tcp)
[[ $(printf '%s\n1.18\n' "$(pkg-config --modversion libfabric)" | sort -V | head -n 1) == 1.18 ]] || own+=(net)
[[ -x $programs/raw-zmq ]] && zmq=1 || zmq=

count=30
for size in 1 1048576; do
	meet raw-tcp 127.0.0.1:0 $size .p50_ns
	meet raw-fi 127.0.0.1:0 $size .p50_ns --provider "${own[-1]}"
	meet raw-fi 127.0.0.1:0 $size .p50_ns --provider plx_shm
	meet raw-fi-shm "pollux-test-$$" $size .p50_ns
	[[ ! $zmq ]] || meet raw-zmq 127.0.0.1:0 $size .p50_ns
done
meet raw-fi 127.0.0.1:0 64 .p50_ns --provider tcp --cq none
meet raw-bare "pollux-test-$$" 64 .p50_ns
meet raw-eventfd "pollux-test-$$" 64 '.p50_ns and .idle == "event"'
for provider in "${own[@]}" plx_shm; do
	meet raw-fi 127.0.0.1:0 64 '.p50_ns and .idle == "event"' --provider "$provider" --idle event
done
meet raw-tcp '[::1]:0' 1048576 '.p50_ns and .idle == "event"' --idle event

# 8 bytes are what a mark has elsewhere; 64 KiB need completions of sends; without CMA a mark may
# overtake what it counts.
count=1000
rates='(.bytes_per_s / .messages_per_s / .size_bytes - 1 | fabs) < 0.01'
for size in 1 8 65536; do
	meet raw-fi-stream 127.0.0.1:0 $size "$rates" --provider plx_shm
	meet raw-fi-shm-stream "pollux-test-$$" $size "$rates"
	[[ ! $zmq ]] || meet raw-zmq-stream 127.0.0.1:0 $size "$rates"
done
[[ ! $zmq ]] || meet raw-zmq-stream '[::1]:0' 1048576 "$rates" --copy --window 3 --posted 2
FI_PLX_SHM_COPY_MAX=16k meet raw-fi-stream 127.0.0.1:0 65536 "$rates" --provider plx_shm
FI_SHM_DISABLE_CMA=1 meet raw-fi-shm-stream "pollux-test-$$" 65536 "$rates"
meet raw-fi-stream '[::1]:0' 65536 "$rates" --provider "${own[-1]}" --window 3 --posted 2
check 'nothing stays in /dev/shm' '[[ -z $(find /dev/shm -name "*pollux-test-$$*") ]]'

# Those with which the part peers compares, if they are installed.
if [[ -x $programs/peer-mpi ]]; then
	for ends in '' --one-way; do
		rm -f "$temp/it.json"
		start mpirun timeout 60 mpirun --allow-run-as-root --bind-to none --host localhost:2 --mca pml ob1 --mca btl vader,self \
			-np 1 "$programs/peer-mpi" --listen x --size 65536 $ends : \
			-np 1 "$programs/peer-mpi" --connect x --size 65536 $ends --warmup 2 --count 1000 --out "$temp" --name it
		ends "$pid"
		status=$?
		check "peer-mpi $ends" '((status == 0 || status == 3))'
		figures ".count == 1000 and .size_bytes == 65536 and .provider == \"mpi\" and (.p50_ns or $rates)"
	done
fi
if [[ -x $programs/peer-iceoryx ]] && command -v iox-roudi >/dev/null; then
	start roudi iox-roudi --monitoring-mode off
	roudi=$pid
	check 'RouDi is ready' 'wait_until "grep -q \"ready for clients\" $temp/roudi"'
	meet peer-iceoryx "pollux-test-$$" 64 .p50_ns
	meet peer-iceoryx "pollux-test-$$" 64 "$rates" --one-way
	stops_well RouDi "$roudi"
fi

# Of a lcore with more links: what the bench takes from these two must be there.
listen link-beside 127.0.0.1:0 --provider tcp --idle poll
start client timeout 60 "$programs/link-beside" --provider tcp --idle poll --connect "$address" --duration 300ms --warmup 10 \
	--out "$temp" --name it
ends "$pid"
status=$?
check 'link-beside' '((status == 0 || status == 3))'
server_ends link-beside
check '... the other link streamed' 'grep -qE "^streamed [1-9][0-9]* messages" "$temp/client"'
figures '.provider == "plx_tcp" and .count > 0 and .p50_ns > 0'
listen link-idle 127.0.0.1:0 --provider tcp --idle event --links 20 --duration 200ms --out "$temp/it.json"
start client "$many_links" --provider tcp --connect "$address" --links 20
server_ends link-idle
kill_off "$pid"
figures '.links == 20 and .size_bytes == 4 and .turn_ns > 0 and .longest_turn_ns > 0 and .bytes_per_link > 0 and
	.cpu_percent >= 0'

says 2 'give --listen and --out' link-idle --links 3
says 2 'give one of --listen ADDR and --connect ADDR' link-beside
says 2 'give one of --listen ADDR and --connect ADDR' raw-tcp
says 2 '--connect nowhere' raw-tcp --connect nowhere
says 2 '--cq: unknown option' raw-tcp --connect a:1 --cq none
says 2 '--idle event needs --cq fd' raw-fi --connect a:1 --idle event --cq none
says 2 'only messages of 64 B' raw-bare --connect a --size 65
says 1 'cannot run there' raw-tcp --listen 127.0.0.1:0 --cpu 1023
says 1 'no client came to' raw-bare --listen "pollux-test-$$" --wait 200ms
says 1 'in vain for a client' raw-fi --listen 127.0.0.1:0 --wait 200ms
says 1 'in vain for a client' raw-fi-shm --listen "pollux-test-$$" --wait 200ms
says 1 "cannot connect to pollux-test-$$" raw-bare --connect "pollux-test-$$"
says 1 'provider nosuch has no FI_EP_MSG endpoint' raw-fi --connect 127.0.0.1:1 --provider nosuch
# Of 192.0.2.0/24 (RFC 5737) no host has an address, so no RDMA device has either.
says 1 'an address of an RDMA device is needed' raw-fi --provider verbs --listen 192.0.2.1:7000
says 2 '--cpus' hiccup --cpus x

read -ra cpus < <(taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' |
	awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) printf "%d ", i }')
gives 'hiccup reports a CPU' 0 '' timeout 20 "$programs/hiccup" --cpus "${cpus[0]}" --duration 100ms --json "$temp/it.json"
figures '.cpus | length == 1 and .[0].gap_total_ns >= 0'
((${#cpus[@]} < 2)) || gives 'cache-line prints a time' 0 '[1-9]*' "$programs/cache-line" "${cpus[0]}" "${cpus[1]}"
says 2 'CPU 0 twice' cache-line 0 0

# A peer that vanishes ends a program within seconds: at most the time for which it tries to connect, on a busy host.
vanish()
{
	listen "$1" "$2" "${@:3}"
	start client timeout 20 "$programs/$1" --connect "$address" --duration 15 "${@:3}"
	sleep 0.7
	kill_off "$server"
	server=
	SECONDS=0
	ends "$pid"
	status=$?
	check "$1 ${*:3}: a killed server is a failure, soon, with a text" \
		'((status == 1 && SECONDS <= 12)) && [[ -s $temp/client.err ]]'
}

vanish raw-tcp 127.0.0.1:0
vanish raw-fi 127.0.0.1:0
vanish raw-fi 127.0.0.1:0 --provider plx_shm --idle event
vanish raw-fi-stream 127.0.0.1:0 --provider plx_shm
[[ ! $zmq ]] || vanish raw-zmq-stream 127.0.0.1:0
vanish raw-bare "pollux-test-$$"
vanish raw-eventfd "pollux-test-$$"
exit $failed
