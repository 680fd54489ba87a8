# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Shared checks of program tests. Sourced; tests end with `failed`. `temp` is a folder. At EXIT it is removed, and the
# processes `server` and `pids` are ended.
# shellcheck disable=SC2034,SC2154

failed=0
temp=$(mktemp -d)
server=''
pids=()
trap clean_up EXIT

fail()
{
	echo "FAILED: $1"
	failed=1
}

# check TEXT CONDITION: on failure shows the last lines of standard error, temp/NAME.err, of every program run.
check()
{
	if eval "$2"; then
		echo "ok: $1"
	else
		fail "$1"
		tail -n 5 "$temp"/*.err 2>/dev/null
	fi
}

# gives TEXT STATUS PATTERN COMMAND...: its exit status and what it prints, on either output, match the patterns.
gives()
{
	local text=$1 status=$2 pattern=$3 got its

	shift 3
	got=$("$@" 2>&1 </dev/null)
	its=$?
	# shellcheck disable=SC2053
	if [[ $its == $status && $got == $pattern ]]; then
		echo "ok: $text"
	else
		fail "$text: status $its: $got"
	fi
}

# Called by the trap, which bash also runs in a child that a signal ends before it has become its program.
# shellcheck disable=SC2317
clean_up()
{
	((BASHPID == $$)) || return
	((${#pids[@]} == 0)) || kill -KILL "${pids[@]}" 2>/dev/null
	[[ -z $server ]] || { kill "$server" 2>/dev/null && kill -CONT "$server" && ends "$server"; }
	rm -rf "$temp"
}

# wait_until CONDITION: for 30 s; returns whether it became true. Waits without a process: read has nothing to read.
exec {never}<> <(:)
wait_until()
{
	for _ in {1..750}; do
		eval "$1" && return 0
		read -rt 0.04 -u "$never" _
	done
	return 1
}

# listening FILE [PID]: wait until the server that prints there, or in FILE.err (default: the last one started), prints
# its address, or has ended; sets `address` and `port`. Returns whether it listens.
listening()
{
	local said pid=${2:-$!}

	wait_until "said=\$(sed -n 's/^listening on //p' '$1' '$1.err' 2>/dev/null); [[ -n \$said ]] || ! kill -0 $pid 2>/dev/null"
	[[ -n $said ]] || return 1
	address=$said port=${said##*:}
}

# ends PID: wait for a child, up to 60 s; returns its status.
ends()
{
	wait_until "! kill -0 $1 2>/dev/null" || wait_until "! kill -0 $1 2>/dev/null"
	kill_off "$1"
}

# listens_again COMMAND...: run it, which starts a server and waits until it listens, again while the server logs to
# temp/server.err that its port is in use: after a restart, another program's connection may have it for a moment.
listens_again()
{
	for _ in {1..20}; do
		"$@" && return
		grep -q 'the port is in use' "$temp/server.err" || break
		sleep 0.5
	done
	check 'it starts' false
}

# kill_off PID...: by SIGKILL; returns the status of the last one.
kill_off()
{
	kill -KILL "$@" 2>/dev/null
	wait "$@" 2>/dev/null
}

# ends_well TEXT PID, stops_well TEXT PID: it ends with 0; the second after SIGTERM.
ends_well()
{
	ends "$2"
	check "$1 ends with 0" "(($? == 0))"
}

stops_well()
{
	kill "$2"
	ends_well "$@"
}

# start NAME COMMAND...: in the background, its output in temp/NAME and temp/NAME.err; sets `pid`.
start()
{
	: >"$temp/$1"
	: >"$temp/$1.err"
	"${@:2}" >"$temp/$1" 2>"$temp/$1.err" </dev/null &
	pid=$!
	pids+=("$pid")
}

# start_server NAME COMMAND...: the same, until it listens; also sets `server`, `address` and `port`.
start_server()
{
	start "$@"
	server=$pid
	listening "$temp/$1" || check "$1 listens" false
}
