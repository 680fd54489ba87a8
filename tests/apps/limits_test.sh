#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that lacks a resource names the cause, and the variable or limit to change.
#
#     limits_test.sh PLX-ECHO SANITIZER
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
echo_program=$1
if [[ $2 != none ]]; then
	echo "a sanitizer ($2) needs further descriptors"
	exit 77
fi

# Descriptors: each step that lacks one, until there are enough.
for ((n = 6; n < 64; n++)); do
	(
		ulimit -n "$n"
		exec "$echo_program" --huge none --log-level error --provider tcp --listen 127.0.0.1:0
	) >"$temp/out" 2>"$temp/err" </dev/null &
	pid=$!
	listening "$temp/out"
	listens=$?
	kill -KILL "$pid" 2>"$temp/none"
	wait "$pid" 2>"$temp/none"
	((listens != 0)) || break
	check "$n descriptors: $(<"$temp/err")" "grep -q 'descriptors.*ulimit -n' '$temp/err'"
done
check "$n descriptors are enough" '((n > 6 && n < 64))'

HWLOC_SYNTHETIC='core:2 pu:1' timeout 20 "$echo_program" --listen 127.0.0.1:0 >"$temp/out" 2>"$temp/err" </dev/null
check 'a variable that shows another host is named' \
	"(($? == 1)) && grep -q 'HWLOC_SYNTHETIC is set in the environment; unset it' '$temp/err'"
exit "$failed"
