#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The raw baselines do what the bench relies on: raw_test.sh FOLDER-OF-THE-PROGRAMS
# shellcheck disable=SC2016 # $name in single quotes is jq's
set -uo pipefail

programs=$1
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
	check "... and says so ($(tail -n 1 "$work/err"))" grep -qF -- "$words" "$work/err"
}

# exchange PROGRAM ADDRESS SIZE [option...]: a server and a client, 30 round trips.
exchange()
{
	local name=$1 address=$2 size=$3

	shift 3
	: >"$work/server"
	timeout 30 "$programs/$name" --listen "$address" "$@" >"$work/server" 2>&1 &
	server=$!
	for _ in {1..500}; do
		address=$(sed -n 's/^listening on //p' "$work/server")
		[[ -z $address ]] || break
		sleep 0.02
	done
	# Status 3 is a run whose figures do not add up, as on a busy host: not what is tested here.
	timeout 30 "$programs/$name" --connect "$address" --size "$size" --count 30 --warmup 2 \
		--out "$work/$size" --name "$name" "$@" >"$work/client" 2>&1
	check "$name $*: client, $size B" test $? = 0 -o $? = 3
	wait "$server"
	check "$name $*: the server ends well with its client" test $? = 0
	server=
	check "$name: 30 round trips are in the JSON" \
		jq -e --argjson size "$size" '.count == 30 and .size_bytes == $size and .p50_ns > 0' \
		"$work/$size/$name.json"
	check "$name: the .hgrm is there" grep -q 'Total count *= *30\]' "$work/$size/$name.hgrm"
}

for size in 1 65536 1048576; do
	exchange raw-tcp 127.0.0.1:0 $size
	exchange raw-fi 127.0.0.1:0 $size --provider net
	exchange raw-fi 127.0.0.1:0 $size --provider tcp --cq none
	FI_PROVIDER_PATH=$module_dir exchange raw-fi 127.0.0.1:0 $size --provider plx_shm
	exchange raw-fi-shm "pollux-test-$$" $size
	[[ ! -x $programs/raw-zmq ]] || exchange raw-zmq 127.0.0.1:0 $size
done
exchange raw-tcp '[::1]:0' 64
exchange raw-fi '[::1]:0' 64 --provider net
FI_PROVIDER_PATH=$module_dir exchange raw-fi '[::1]:0' 64 --provider plx_shm
check 'nothing stays in /dev/shm' test -z "$(find /dev/shm -name "*pollux-test-$$*")"

says 2 'give --listen HOST:PORT or --connect HOST:PORT' "$programs/raw-tcp"
says 2 'give one of --listen and --connect, once' "$programs/raw-tcp" --listen a:1 --connect b:2
says 2 'HOST:PORT is needed' "$programs/raw-tcp" --connect nowhere
says 2 '--size' "$programs/raw-tcp" --connect a:1 --size 0
says 2 'has no choice' "$programs/raw-tcp" --connect a:1 --provider net
says 2 'there are fd and none' "$programs/raw-fi" --connect a:1 --cq x
says 1 'cannot run there' "$programs/raw-tcp" --listen 127.0.0.1:0 --cpu 1023
says 1 'no client came to 127.0.0.1:0 within' "$programs/raw-tcp" --listen 127.0.0.1:0 --wait 200ms
says 1 'in vain for a client' "$programs/raw-fi" --listen 127.0.0.1:0 --wait 200ms
says 1 'in vain for a client' "$programs/raw-fi-shm" --listen "pollux-test-$$" --wait 200ms
says 1 'provider nosuch has no FI_EP_MSG endpoint' "$programs/raw-fi" --connect 127.0.0.1:1 --provider nosuch
says 2 '--cpus' "$programs/hiccup" --cpus x
check 'hiccup tells of every CPU' timeout 20 "$programs/hiccup" --duration 100ms --json "$work/h.json"
check '... in JSON too' jq -e --argjson cpus "$(nproc)" '.cpus | length == $cpus' "$work/h.json"

# A peer that vanishes ends a program within seconds.
for name in raw-tcp raw-fi; do
	"$programs/$name" --listen 127.0.0.1:0 >"$work/server" 2>&1 &
	server=$!
	until grep -q 'listening on' "$work/server" || ! kill -0 "$server"; do sleep 0.02; done
	address=$(sed -n 's/^listening on //p' "$work/server")
	timeout 20 "$programs/$name" --connect "$address" --duration 15 >"$work/out" 2>"$work/err" &
	client=$!
	sleep 0.7
	kill -KILL "$server"
	SECONDS=0
	wait "$client"
	check "$name: a killed server is a failure" test $? = 1
	check "$name: ... soon" test "$SECONDS" -le 6
	check "$name: ... and says so ($(cat "$work/err"))" test -s "$work/err"
	wait "$server" 2>/dev/null
	server=
done
exit $failed
