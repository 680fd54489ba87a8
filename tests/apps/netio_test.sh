#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The examples of NetIO say what they should. And where NETIO_SEEDS is a folder that has the published
# documents on NetIO (or they lie beside the tree, in ../shared/seeds), the programs printed there
# build as they are, and say what the text says.
set -uo pipefail

sanitizer=${1:-none}
seeds=${NETIO_SEEDS:-$PLX_SOURCE_ROOT/../shared/seeds}
failed=0
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
export NETIO_OPTIONS='--huge none'

# expect NAME TEXT: what the program of that name has said, in $temp/NAME.out.
expect()
{
	local said

	said=$(cat "$temp/$1.out")
	if [[ $said == "$2" ]]; then
		echo "ok: $1"
	else
		printf 'FAILED: %s said:\n%s\n' "$1" "$said"
		failed=1
	fi
}

# run NAME PROGRAM
run()
{
	# What the host is warned of is not what the program says.
	timeout 60 "$2" >"$temp/$1.out" 2>"$temp/$1.err" </dev/null ||
		{ echo "status $?" && cat "$temp/$1.err"; } >>"$temp/$1.out"
}

# numbered FILE N: the N-th of the programs whose lines have numbers in front.
numbered()
{
	awk -v wanted="$2" '
		match($0, /^ *[0-9]+/) && (substr($0, 1, RLENGTH) + 0 == line + 1 || substr($0, 1, RLENGTH) + 0 == 1) {
			line = substr($0, 1, RLENGTH) + 0
			program += line == 1
			if (program == wanted)
				print substr($0, RLENGTH + 1)
		}' "$1"
}

# first_program FILE: from its first include to the end of main.
first_program()
{
	awk '/^#include/ { inside = 1 }
		inside { print }
		inside && /^int main/ { in_main = 1 }
		in_main && /^}/ { exit }' "$1"
}

# build NAME: $temp/NAME.c, with an empty header of a program that is none of NetIO's.
build()
{
	local headers=("$PLX_SOURCE_ROOT"/lib/ "$PLX_SOURCE_ROOT"/lib/*/ "$temp")

	: >"$temp/felixtag.h"
	# A compiler may come with options.
	# shellcheck disable=SC2086
	${CC:-cc} -Wall "${headers[@]/#/-I}" "$temp/$1.c" "$PLX_BUILD_ROOT/libpollux.so" \
		"-Wl,-rpath,$PLX_BUILD_ROOT" -o "$temp/$1" 2>&1
}

examples=$PLX_BUILD_ROOT/apps/examples
run hello "$examples/netio_hello"
if [[ ! $(cat "$temp/hello.out") =~ ^the\ loop\ runs\ on\ lcore\ 0,\ CPU\ [0-9]+$ ]]; then
	expect hello 'the loop runs on lcore 0, CPU ...'
fi
run signal "$examples/netio_signal"
expect signal $'piece 0: 0\npiece 1: 1\npiece 2: 4\npiece 3: 9\npiece 4: 16'
run timer "$examples/netio_timer"
expect timer "$(printf 'reading %d\n' {1..10})"

# Three sources and one receiver; one of them comes by TCP.
fan_in()
{
	local receiver senders=() pid port='' status=0

	timeout 60 "$examples/netio_fan_in" recv 0 3 >"$temp/fan_in" 2>"$temp/fan_in.err" </dev/null &
	receiver=$!
	for _ in {1..200}; do
		port=$(sed -n 's/^listening on //p' "$temp/fan_in")
		[[ -z $port ]] || break
		sleep 0.05
	done
	NETIO_OPTIONS='--huge none --provider tcp' timeout 60 \
		"$examples/netio_fan_in" send 127.0.0.1 "$port" 1 30000 2>/dev/null </dev/null &
	senders+=($!)
	timeout 60 "$examples/netio_fan_in" send 127.0.0.1 "$port" 2 20000 2>/dev/null </dev/null &
	senders+=($!)
	timeout 60 "$examples/netio_fan_in" send 127.0.0.1 "$port" 3 10000 2>/dev/null </dev/null || status=1
	for pid in "${senders[@]}" "$receiver"; do
		wait "$pid" || status=1
	done
	grep '^source' "$temp/fan_in" | sort >"$temp/fan_in.out"
	((status == 0)) || echo "status $status" >>"$temp/fan_in.out"
}

fan_in
expect fan_in 'source 1: 30000 fragments, 0 missing, 3600000 bytes; closed
source 2: 20000 fragments, 0 missing, 2400000 bytes; closed
source 3: 10000 fragments, 0 missing, 1200000 bytes; closed'

# Alarms by severity and by device. A watcher that comes late misses the first ones.
alarm()
{
	local service watchers=() pid port='' status=0

	: >"$temp/alarm"
	timeout 60 "$examples/netio_alarm" raise 0 60 >"$temp/alarm" 2>"$temp/alarm.err" </dev/null &
	service=$!
	for _ in {1..200}; do
		port=$(sed -n 's/^listening on 127.0.0.1://p' "$temp/alarm")
		[[ -z $port ]] || break
		sleep 0.05
	done
	timeout 60 "$examples/netio_alarm" watch "$port" >"$temp/alarm.all" 2>/dev/null </dev/null &
	watchers+=($!)
	timeout 60 "$examples/netio_alarm" watch "$port" severity 2 >"$temp/alarm.severity" 2>/dev/null </dev/null &
	watchers+=($!)
	NETIO_OPTIONS='--huge none --provider tcp' timeout 60 "$examples/netio_alarm" watch "$port" device 7 \
		>"$temp/alarm.device" 2>/dev/null </dev/null &
	watchers+=($!)
	for pid in "$service" "${watchers[@]}"; do
		wait "$pid" || status=1
	done
	{
		echo "status $status"
		tail -qn 1 "$temp/alarm.all" "$temp/alarm.severity" "$temp/alarm.device" | sed 's/.*: //'
		grep -h '^alarm' "$temp/alarm.all" | tail -n 1
		grep -h '^alarm' "$temp/alarm.severity" | tail -n 1
		grep -h '^alarm' "$temp/alarm.device" | tail -n 1
		grep '^alarm' "$temp/alarm.severity" | grep -cv 'severity 2$'
		grep '^alarm' "$temp/alarm.device" | grep -cv 'device 7,'
	} >"$temp/alarm.out"
}

alarm
expect alarm 'status 0
closed
closed
closed
alarm 59: device 9, severity 2
alarm 59: device 9, severity 2
alarm 57: device 7, severity 0
0
0'

# Images without a copy, to two.
images()
{
	local service watchers=() pid port='' status=0

	: >"$temp/images"
	timeout 60 "$examples/netio_images" serve 0 1000 2 >"$temp/images" 2>"$temp/images.err" </dev/null &
	service=$!
	for _ in {1..200}; do
		port=$(sed -n 's/^listening on 127.0.0.1://p' "$temp/images")
		[[ -z $port ]] || break
		sleep 0.05
	done
	timeout 60 "$examples/netio_images" watch "$port" >"$temp/images.one" 2>/dev/null </dev/null &
	watchers+=($!)
	NETIO_OPTIONS='--huge none --provider tcp' timeout 60 "$examples/netio_images" watch "$port" \
		>"$temp/images.two" 2>/dev/null </dev/null &
	watchers+=($!)
	for pid in "$service" "${watchers[@]}"; do
		wait "$pid" || status=1
	done
	{
		echo "status $status"
		cat "$temp/images.one" "$temp/images.two"
	} >"$temp/images.out"
}

images
expect images 'status 0
1000 images, the last one 999, 0 wrong
1000 images, the last one 999, 0 wrong'

# Two lcores that publish, at two ports next to each other, and two that watch one each; then one that
# watches both.
cores()
{
	local first publisher status=0

	: >"$temp/cores.out"
	for lcores in 0@0,1@0 0@0; do
		for _ in {1..10}; do # a port may be somebody's
			first=$((20000 + RANDOM % 10000))
			NETIO_OPTIONS='--huge none --provider tcp -l 0@0,1@0' timeout 60 "$examples/netio_cores" publish \
				$first 50000 >"$temp/cores" 2>"$temp/cores.err" </dev/null &
			publisher=$!
			sleep 0.5
			grep -q 'cannot listen\|in use' "$temp/cores.err" || break
			wait "$publisher"
		done
		for _ in {1..20}; do # until it listens
			NETIO_OPTIONS="--huge none --provider tcp -l $lcores" timeout 60 "$examples/netio_cores" watch \
				$first 2 >"$temp/cores.watch" 2>"$temp/cores.watch.err" </dev/null
			status=$?
			grep -q '^0 readings' "$temp/cores.watch" || break
			sleep 0.2
		done
		wait "$publisher" || status=1
		echo "status $status" >>"$temp/cores.out"
		cat "$temp/cores" "$temp/cores.watch" >>"$temp/cores.out"
	done
}

cores
expect cores 'status 0
100000 readings on 2 lcores, 0 wrong
100000 readings on 2 lcores, 0 wrong
status 0
100000 readings on 2 lcores, 0 wrong
100000 readings on 1 lcores, 0 wrong'

# A farm of two workers, of which one is faster.
farm()
{
	local workers=() pid us ports=() status=0

	for us in 100 300; do
		: >"$temp/farm.$us.err"
		timeout 60 "$examples/netio_farm" work 0 $us >"$temp/farm.$us" 2>"$temp/farm.$us.err" </dev/null &
		workers+=($!)
		for _ in {1..200}; do
			port=$(sed -n 's/^listening on //p' "$temp/farm.$us.err")
			[[ -z $port ]] || break
			sleep 0.05
		done
		ports+=("$port")
	done
	timeout 60 "$examples/netio_farm" give 5000 "${ports[@]}" >"$temp/farm" 2>"$temp/farm.err" </dev/null || status=1
	kill "${workers[@]}"
	for pid in "${workers[@]}"; do
		wait "$pid" || status=1
	done
	{
		echo "status $status"
		tail -n 1 "$temp/farm"
		(($(wc -l <"$temp/farm.100") > $(wc -l <"$temp/farm.300"))) && echo 'the faster one did more'
		cat "$temp/farm.100" "$temp/farm.300" | sort -n | cmp - <(seq 0 4999) && echo 'each was done once'
	} >"$temp/farm.out"
}

farm
expect farm 'status 0
5000 of 5000 jobs done, 0 of them twice
the faster one did more
each was done once'

if [[ $sanitizer != none || ! -f $seeds/netio-next-architecture.txt || ! -f $seeds/netio-talk.txt ]]; then
	echo 'the published programs are not at hand, or this build has a sanitizer: left out'
	exit $failed
fi
for i in 1 2 3; do
	numbered "$seeds/netio-next-architecture.txt" $i >"$temp/next$i.c"
done
first_program "$seeds/netio-talk.txt" >"$temp/talk.c"
for name in next1 next2 next3 talk; do
	said=$(build $name)
	if [[ $said ]]; then
		printf 'FAILED: %s does not build without a word:\n%s\n' $name "$said"
		failed=1
	fi
	[[ ! -x $temp/$name ]] || run $name "$temp/$name" &
done
wait
expect next1 'Hello, NetIO!'
expect next2 $'on_init()\non_signal()\nthe signal has been fired'
expect next3 "$(printf '%d\n' {10..1})"
expect talk "$(printf '%d\n' {10..1})"
exit $failed
