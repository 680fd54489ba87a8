#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# An idle turn is as many instructions with 64 lcores as with 1, counted by callgrind.
#
#     idle_turn_test.sh PROGRAM SANITIZER
set -euo pipefail

program=$1
sanitizer=$2
turns=20000
slack=100 # a count may differ by one part in as many

if [[ $sanitizer != none ]]; then
	echo "valgrind does not run programs with a sanitizer ($sanitizer)"
	exit 77
fi
if ! command -v valgrind >/dev/null; then
	echo 'there is no valgrind here: apt-get install valgrind'
	exit 77
fi

temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

# instructions LCORES: in all its idle turns together.
instructions()
{
	if ! valgrind --tool=callgrind --callgrind-out-file="$temp/$1.out" \
		--collect-atstart=no --toggle-collect=count_turns "$program" "$1" "$turns" \
		>"$temp/$1.log" 2>&1; then
		cat "$temp/$1.log" >&2
		return 1
	fi
	# One thread alone has made turns.
	sed -n 's/^totals: //p' "$temp/$1.out"
}

status=0
base=0 # with 1 lcore
for lcores in 1 8 64; do
	count=$(instructions "$lcores")
	((base)) || base=$count
	awk -v n="$lcores" -v c="$count" -v t="$turns" \
		'BEGIN { printf "%2d lcores: %.2f instructions per idle turn\n", n, c / t }'
	if ((count < turns * 10)); then
		echo "  those are too few: they were not counted"
		status=1
	elif ((count * slack > base * (slack + 1) || count * slack < base * (slack - 1))); then
		echo "  more than 1 part in $slack away from 1 lcore"
		status=1
	fi
done
exit $status
