# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the tests rdma/loop and rdma/pair share. They run in a guest that has RDMA devices in software,
# as root, from the top of the source tree; $build is the build folder. Figures of a guest say little:
# limits are generous.

build=$1
work=$(mktemp -d)
counts=$work/counts
: >"$counts"
export PLX_SOURCE_ROOT=$PWD PLX_BUILD_ROOT=$build

# Both sides share two emulated CPUs with all else, and a lost packet may take a second.
export beat=1s:30s

has_device()
{
	rdma link | grep -q "^link $1/1 state ACTIVE"
}

# check NAME SECONDS COMMAND...: it must end with status 0 within the time. Some run side by side, so each has separate files.
check()
{
	local name=$1 limit=$2 output=$work/$1.out began=$SECONDS group status

	shift 2
	output=${output// /-}
	mkdir -p "${output%/*}"
	timeout --kill-after=5 "$limit" "$@" >"$output" 2>&1 &
	group=$! # timeout leads one
	wait "$group"
	status=$?
	if ((status == 0)); then
		printf 'ok    %s (%d s)\n' "$name" $((SECONDS - began))
		echo passed >>"$counts"
		return 0
	fi
	# What it started and did not end would hold ports, and CPUs, of those that come next.
	kill -KILL -- "-$group" 2>/dev/null
	printf 'FAIL  %s (status %d after %d s)\n' "$name" $status $((SECONDS - began))
	# What failed first, and how it ended.
	grep -v '^\[       OK\|^\[ RUN' "$output" | sed -n '1,15p' | sed 's/^/      /'
	echo '      ...'
	tail -n 15 "$output" | sed 's/^/      /'
	echo failed >>"$counts"
	return 1
}

# unit DEVICE HOST TEST...: the unit tests of links and NetIO, over verbs at that host.
unit()
{
	local device=$1 name

	export PLX_TEST_PROVIDER=verbs PLX_TEST_HOST=$2
	shift 2
	for name in "$@"; do
		check "$device $name" 150 "$build/tests/unit/unit_${name/\//_}"
	done
	unset PLX_TEST_PROVIDER PLX_TEST_HOST
}

# The functions of a test file run in separate shells, under `timeout`.
export_all()
{
	local name

	for name in $(compgen -A function); do
		export -f "${name?}"
	done
	export build work
}

# Servers of one check -------------------------------------------------------------------------

# start FILE COMMAND...: in the background, what it prints in FILE; sets server.
start()
{
	local file=$1

	shift
	"$@" >"$file" 2>&1 &
	server=$!
}

# await FILE TEXT [SECONDS]: until it is there.
await()
{
	local i

	for ((i = 0; i < ${3:-20} * 20; i++)); do
		grep -q -- "$2" "$1" && return 0
		sleep 0.05
	done
	echo "'$2' did not come; there is:"
	cat "$1"
	return 1
}

# echo_at HOST [option...]: plx-echo over verbs on lcore 0; sets server, address and log.
echo_at()
{
	local host=$1

	shift
	log=$(mktemp "$work/echo.XXXXXX")
	start "$log" "$build/apps/plx-echo" -l 0@0 --heartbeat "$beat" --huge none --provider verbs "$@" -- --listen "$host:0"
	await "$log" 'listening on' || return 1
	address=$(sed -n 's/^listening on //p' "$log" | head -n 1)
	export address # to functions that other shells run
}

# ping_it [option...]: plx-ping over verbs; the options are its own.
ping_it()
{
	"$build/apps/plx-ping" -l 1@1 --heartbeat "$beat" --huge none --provider verbs -- --warmup 5 "$@"
}

end_server()
{
	kill "$server" && wait "$server"
}

finish()
{
	local passed failed

	passed=$(grep -c passed "$counts")
	failed=$(grep -c failed "$counts")
	rm -rf "$work"
	echo "rdma: $passed passed, $failed failed"
	((failed == 0))
}
