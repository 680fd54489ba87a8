# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the tests of netio-cat share. Sourced, with the program and the provider (default: tcp) as words.
# shellcheck disable=SC2034 # for those that source it
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

cat=$1
provider=${2:-tcp}
port=
# On a loaded machine a peer may say nothing for longer than by default.
heartbeat=1s:10s

# run NAME MODE WORD...: in the background, standard error in NAME.err; sets `pid`. Its input (not that
# of a job in the background, which is none) and
# output are the caller's.
run()
{
	local name=$1 mode=$2

	shift 2
	: >"$temp/$name.err"
	"$cat" "$mode" --huge none --provider "$provider" --heartbeat "$heartbeat" -- "$@" \
		<&0 2>"$temp/$name.err" &
	pid=$!
	pids+=("$pid")
}

# listening NAME: sets `port`.
listening()
{
	wait_until "port=\$(sed -n 's/^listening on .*://p' '$temp/$1.err'); [[ -n \$port ]]" && return
	check "$1 comes up" false
	exit 1
}

# slowly FILE: takes its input into FILE, after a while that is longer than closing waits for.
slowly()
{
	sleep 2.5
	cat >"$1"
}

seq 100000 >"$temp/lines"
printf 'one\n\n  three\t\nlast, without an end' >"$temp/few"
head -c 3000000 /dev/urandom >"$temp/bytes"

