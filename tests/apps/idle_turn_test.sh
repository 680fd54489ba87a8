#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# An idle turn takes as many instructions with 64 lcores as with 1, counted by callgrind.
#
#     idle_turn_test.sh PROGRAM SANITIZER
set -euo pipefail

# shellcheck source=tests/valgrind.sh
. "$(dirname "${BASH_SOURCE[0]}")/../valgrind.sh"

program=$1
sanitizer=$2
turns=5000
slack=100 # a count may differ by one part in as many

need_valgrind "$program" "$sanitizer"
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

status=0
base=0 # with 1 lcore
for lcores in 1 64; do
	count=$(instructions count_turns "$program" "$lcores" "$turns")
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
