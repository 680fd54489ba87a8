#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program of NetIO with several processes and lcores prints the right text. If the published documents on NetIO are at
# hand (in NETIO_SEEDS or ../shared/seeds), the programs in them build unchanged and print what the documents say.
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

sanitizer=${1:-none}
seeds=${NETIO_SEEDS:-$PLX_SOURCE_ROOT/../shared/seeds}
export NETIO_OPTIONS='--huge none --heartbeat 1s:20s'

# expect NAME TEXT: the program's output, in $temp/NAME.out.
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
	# Warnings about the host are not the program's output.
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

# Two lcores that publish, at two ports next to each other, and two that watch one each; then one that
# watches both.
cores()
{
	local first publisher status=0

	: >"$temp/cores.out"
	for lcores in 0@0,1@0 0@0; do
		for _ in {1..10}; do # a port may be somebody's
			first=$((20000 + RANDOM % 10000))
			NETIO_OPTIONS='--huge none --heartbeat 1s:20s --provider tcp -l 0@0,1@0' timeout 60 "$PLX_BUILD_ROOT/tests/apps/netio_cores" publish \
				$first 50000 >"$temp/cores" 2>"$temp/cores.err" </dev/null &
			publisher=$!
			sleep 0.5
			grep -q 'cannot listen\|in use' "$temp/cores.err" || break
			wait "$publisher"
		done
		for _ in {1..20}; do # until it listens
			NETIO_OPTIONS="--huge none --heartbeat 1s:20s --provider tcp -l $lcores" timeout 60 "$PLX_BUILD_ROOT/tests/apps/netio_cores" watch \
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
