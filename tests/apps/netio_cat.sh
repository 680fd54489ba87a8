# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Shared by the tests of netio-cat. Sourced, with the program as argument.
# shellcheck disable=SC2034 # for those that source it
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

cat=$1
provider=auto
port=
# On a busy host a peer may be silent for longer than the default.
heartbeat=1s:10s

# run NAME MODE WORD...: in the background, standard error in NAME.err; sets `pid` and pid_of[NAME]. Uses the caller's
# input (not a background job's empty one) and output.
declare -A pid_of
run()
{
	local name=$1 mode=$2

	shift 2
	: >"$temp/$name.err"
	"$cat" "$mode" --huge none --idle event --provider "$provider" --heartbeat "$heartbeat" -- "$@" <&0 2>"$temp/$name.err" &
	pid=$!
	pid_of[$name]=$pid
	pids+=("$pid")
}

# comes NAME MODE ADDRESS WORD...: subscribe, send or push to it.
comes()
{
	run "$1" "$2" --connect "127.0.0.1:$3" "${@:4}"
}

# up NAME: sets `port`.
up()
{
	wait_until "port=\$(sed -n 's/^listening on .*://p' '$temp/$1.err'); [[ -n \$port ]]" && return
	check "$1 comes up" false
	exit 1
}

# serve NAME MODE WORD...: run, at a free port; sets `port`.
serve()
{
	run "$1" "$2" --listen 127.0.0.1:0 "${@:3}"
	up "$1"
}

# ended NAME: wait for its end; returns its status.
ended()
{
	ends "${pid_of[$1]}"
}

# stop NAME: by SIGTERM; returns its status.
stop()
{
	kill "${pid_of[$1]}"
	ended "$1"
}

# ended_well NAME...: with 0.
ended_well()
{
	local name

	for name; do
		ended "$name"
		check "$name ends with 0" "(($? == 0))"
	done
}

# slowly FILE: copies its input to FILE after a delay longer than closing waits.
slowly()
{
	sleep 2.5
	cat >"$1"
}

# few_lines: the file `few`, with an end.
few_lines()
{
	cat "$temp/few"
	echo
}

# stays_open [COMMAND...]: its output, which then has no end for a minute. Lets go of standard error, so that readers
# of the test's output need not wait for it.
stays_open()
{
	exec 2>/dev/null
	"$@"
	exec sleep 60
}

seq 50000 >"$temp/lines"
printf 'one\n\n  three\t\nlast, without an end' >"$temp/few"
