#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Links between processes, over tcp and shm: processes that are killed, stopped or ended; a limit or a filter that
# forbids shared memory; two users; what a link costs in system calls and memory.
#
#     link_test.sh APPS MANY-LINKS TEST     TEST: a function below
# shellcheck disable=SC2016,SC2034,SC2317 # check expands the conditions; the tests are called by name
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

apps=$1 many_links=$2
provider=auto
heartbeat=1s:20s # on a busy host no process runs every 500 ms
idle=event
prefix=() # of commands that start a server

# serve [OPTION...]: plx-echo, with options of the EAL; sets `server` and `address`.
serve()
{
	start_server server "${prefix[@]}" "$apps/plx-echo" --huge none --idle "$idle" --heartbeat "$heartbeat" --provider "$provider" "$@" \
		-- --listen 127.0.0.1:0
}

# ping OPTION...: plx-ping to its end. 3: on a busy host its figures do not add up.
ping()
{
	timeout -s KILL 60 "$apps/plx-ping" --huge none --idle "$idle" --provider "$provider" -- --connect "$address" --warmup 0 "$@" \
		>"$temp/ping.out" 2>"$temp/ping.err" </dev/null
	(($? % 3 == 0)) && grep -q ' full round trips of ' "$temp/ping.out"
}

# runs NAME: plx-ping in the middle of its run, of `duration`; sets `client`.
duration=60s
runs()
{
	# By default, background jobs of a shell ignore SIGINT.
	start "$1" env --default-signal=INT "$apps/plx-ping" --huge none --idle "$idle" --provider "$provider" -- \
		--connect "$address" --duration "$duration" --rate 1000 --warmup 0 --out "$temp" --name "$1"
	client=$pid
	wait_until 'grep -q "(plx-ping, pid $client) connected over" "$temp/server"'
	sleep 0.2
}

# gone WHY: the server says that of the last client.
gone()
{
	wait_until "tail -n 1 '$temp/server' | grep -q ' gone: $1'"
	check "$provider: the server says: $1" "(($? == 0))"
}

# gives_up NAME SECONDS WHY: the client ends in time, with 1 and the reason, and keeps its figures.
gives_up()
{
	local began=$SECONDS

	ends "$client"
	check "$provider: a client whose server is $1 ends with 1" "(($? == 1 && SECONDS - began <= $2)) && grep -q '$3' '$temp/$1.err'"
	check '... after the figures of what was measured' "grep -q '^INTERRUPTED after .* of 60.00 s: .*$3' '$temp/$1' &&
		jq -e '.valid == false and .planned_ns == 60000000000 and (.interrupted | contains(\"$3\"))' '$temp/$1.json' >'$temp/jq'"
}

death()
{
	for provider in tcp shm; do
		serve
		runs killed
		kill_off "$client"
		gone 'went away without closing'
		runs interrupted
		kill -INT "$client"
		gone 'closed'
		ends "$client"
		check "$provider: an interrupted client keeps its figures" \
			'(($? % 3 == 0)) && jq -e ".interrupted == \"SIGINT\"" "$temp/interrupted.json" >"$temp/jq"'

		# Silence that is shorter than the limit.
		duration=1s runs patient
		kill -STOP "$server"
		sleep 0.5
		kill -CONT "$server"
		ends "$client"
		check "$provider: a server that is stopped for a moment loses nothing" '(($? % 3 == 0)) && ! grep "had no answer" "$temp/patient"'

		runs ended
		kill "$server"
		gives_up ended 5 'the peer closed the link'
		ends_well "$provider: the server" "$server"
		serve
		runs killed
		kill_off "$server"
		gives_up killed 2 'went away without closing'

		heartbeat=100ms:500ms serve
		runs frozen
		kill -STOP "$server"
		gives_up frozen 3 'has said nothing for'
		kill -CONT "$server"
		gone 'this process stood still for '
		check "$provider: a frozen server is found dead, and serves again once it continues" 'ping --count 20 --verify'
		stops_well "$provider: the server" "$server"
	done
}

# Shared memory is for one user, or a group that each side allows to the other. Only root can act as two users.
users()
{
	local other=(setpriv --reuid=65534 --regid=65534 --clear-groups) groups over

	if ((EUID != 0)) || ! "${other[@]}" test -x "$apps/plx-ping" 2>/dev/null; then
		echo 'skipped: needs root, and a build folder that other users can reach'
		exit 77
	fi
	for groups in '1 1 tcp' '65534 0 shm'; do
		read -r theirs ours over <<<"$groups"
		FI_PLX_SHM_GROUP=$theirs serve
		FI_PLX_SHM_GROUP=$ours timeout 60 "${other[@]}" "$apps/plx-ping" --huge none -- --connect "$address" --count 20 >"$temp/ping.out" \
			2>"$temp/ping.err"
		check "two users meet over $over with groups $theirs and $ours" \
			'(($? % 3 == 0)) && grep -q "connected over $over " "$temp/server"'
		stops_well 'the server' "$server"
	done
}

# If a process may not share memory, its links use TCP, and both sides log why. FORBID: the program.
forbidden()
{
	local forbid=$1 call

	"$forbid" fstatfs "$BASH" -c true
	[[ $? != 77 ]] || exit 77
	for call in memfd_create fstatfs; do
		prefix=("$forbid" "$call")
		serve
		check "$call: the server does not offer shared memory, and says why" \
			"grep -qE 'shm is not offered: .*(cannot share memory; check that seccomp allows memfd_create and fstatfs|Operation not permitted)' '$temp/server.err'"
		check '... and its client uses TCP' 'ping --count 100 && grep -q "offers nothing quicker there" "$temp/ping.out"'
		stops_well 'the server' "$server"
	done
	prefix=()
	serve
	for call in memfd_create fstatfs; do
		start ping "$forbid" "$call" "$apps/plx-ping" --huge none -- --connect "$address" --count 100
		ends "$pid"
		check "$call: a client without it uses TCP" '(($? % 3 == 0)) && grep -q "but what is quicker failed" "$temp/ping"'
	done
}

# A limit on the size of files (ulimit -f) ends no process: links use TCP, and the limit is named.
file_size()
{
	local few='this process may create files of at most 102400; raise the limit with ulimit -f'
	local limited=("$BASH" -c 'ulimit -f 100 && exec "$@"' limited)

	prefix=("${limited[@]}")
	serve
	check 'a server with the limit is reached over TCP, and names the limit' \
		"ping --count 50 && grep -q 'shm is not offered: .*$few' '$temp/server.err'"
	stops_well 'it' "$server"
	prefix=()
	serve
	start limited "${limited[@]}" "$apps/plx-ping" -- --connect "$address" --count 50
	ends "$pid"
	check 'a client with the limit uses TCP, and names the limit once' \
		"((\$? % 3 == 0 && \$(grep -c 'shm is not used for links: .*$few' '$temp/limited.err') == 1))"
	start limited "${limited[@]}" "$apps/plx-ping" --provider shm -- --connect "$address" --count 50
	ends "$pid"
	check 'shm alone fails, without a signal' "(($? == 1)) && grep -q '$few' '$temp/limited.err'"
	stops_well 'it' "$server"
}

# A start that lacks a descriptor names the remedy. SANITIZER: it needs more descriptors.
resources()
{
	local n listens

	[[ $1 == none ]] || return
	for ((n = 6; n < 64; n++)); do
		start few "$BASH" -c 'ulimit -n "$1" && exec "${@:2}"' few "$n" "$apps/plx-echo" --huge none --log-level error --provider tcp \
			--listen 127.0.0.1:0
		listening "$temp/few"
		listens=$?
		kill_off "$pid"
		((listens != 0)) || break
		check "$n descriptors are too few: $(<"$temp/few.err")" "grep -q 'descriptors.*ulimit -n' '$temp/few.err'"
	done
	check "$n descriptors are enough" '((n > 6 && n < 64))'
}

# calls MESSAGES: the system calls of plx-ping, each with its number, in temp/calls.MESSAGES; sets `turns`, of its loop.
calls()
{
	serve -l 0@0
	strace -f -c -o "$temp/strace" "$apps/plx-ping" --huge none --idle poll --provider "$provider" -- --connect "$address" --warmup 0 \
		--count "$1" --out "$temp" >"$temp/ping.out" 2>"$temp/ping.err"
	check "$provider: plx-ping runs under strace" '(($? % 3 == 0)) && grep -q " full round trips of " "$temp/ping.out"'
	kill_off "$server"
	awk '$1 ~ /^[0-9]/ && $NF != "total" { print $NF, $4 }' "$temp/strace" | sort >"$temp/calls.$1"
	turns=$(jq .lcore.turns "$temp/plx-ping.json")
}

# SANITIZER. Five times the messages cause no more system calls, except the provider's; and no memory is allocated. Some
# calls depend on the time that a run takes. shm looks for events once in 512 turns.
cost()
{
	local its

	[[ $1 == none ]] && strace -o /dev/null true || exit 77
	idle=poll # a sleeper needs calls to wake it
	for provider in tcp shm; do
		its='^epoll_'
		[[ $provider == shm ]] || its='^(epoll_.*|send(to|msg)|recv(from|msg)|poll)$'
		calls 300
		for _ in 1 2 3; do
			calls 1500
			join -a 2 -e 0 -o 0,1.2,2.2 "$temp/calls.300" "$temp/calls.1500" | awk -v provider="$provider" -v its="$its" -v turns="$turns" '
				BEGIN { spare["clock_gettime"] = 500; spare["clock_nanosleep"] = 1000 }
				/^send/ { sends += $3 }
				/^epoll/ { looks += $3 - $2 }
				/^(brk|mmap|munmap) / { memory += $3 - $2 }
				$1 !~ its && $3 - $2 > ($1 in spare ? spare[$1] : 100) { print; wrong = 1 }
				END {
					print provider ": " sends + 0 " sends, " looks + 0 " looks for events in " turns " turns, " memory + 0 " calls for memory"
					exit wrong || memory > 2 || (provider == "tcp" ? sends < 1500 : looks * 50 > turns)
				}' && break
		done
		check "$provider: messages cause no system calls of Pollux" "(($? == 0))"
	done
}

# Links take little memory and give it back. SANITIZER: it keeps memory for each allocation.
memory()
{
	local count=200 before descriptors kib

	resident() { sed -n 's/^VmRSS: *\t* *\([0-9]*\) kB/\1/p' "/proc/$server/status"; }
	descriptors() { find "/proc/$server/fd" -mindepth 1 | wc -l; }
	for provider in tcp shm; do
		kib=$([[ $provider == tcp ]] && echo 100 || echo 180) # of one link; shared memory counts for both sides
		serve
		ping --count 20 # now all is open that stays open
		gone closed
		descriptors=$(descriptors) before=$(resident)
		for round in 1 2; do
			start many "$many_links" --huge none --idle event --provider "$provider" -- --connect "$address" --links "$count"
			wait_until "grep -q 'echoed $count' '$temp/many' '$temp/many.err'"
			echo "$provider, round $round: $((($(resident) - before) / count)) KiB a link"
			check "$provider: $count links take at most $kib KiB each" "[[ $1 != none ]] || (($(resident) - before < count * kib + 2048))"
			kill "$pid"
			ends_well "$provider: many_links" "$pid"
			wait_until '(($(descriptors) <= descriptors))'
			check "$provider: they leave no descriptor" "(($? == 0))"
		done
		stops_well "$provider: the server" "$server"
	done
}

"${@:3}"
exit $failed
