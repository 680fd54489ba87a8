#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 250 subscribe sockets that wait for a publisher on the same host take at most 5 % of a CPU, and find it soon after it
# starts.
#
#     waiting_test.sh PROGRAMS
set -uo pipefail
# shellcheck source=tests/apps/admission/admission.sh
. "$(dirname "${BASH_SOURCE[0]}")/admission.sh"

start_crowd 1 subscribers 127.0.0.1:7000 --count 250 --cpu 3s
wait_until "grep -q '^cpu ' '$temp/crowd1'"
grep '^cpu ' "$temp/crowd1"
check 'they take at most 5 % of a CPU' "awk '/^cpu/ { seen = 1; much = \$2 > 5 } END { exit !seen || much }' '$temp/crowd1'"
start_server publisher 127.0.0.1:7000 --expect 250
all_open 'the waiting sockets' 250
most_ms=1000
[[ -z ${PLX_TEST_SOAK-} ]] || most_ms=50 # on a quiet host
half=$(sed -n 's/^half after \([0-9]*\) ms/\1/p' "$temp/server")
echo "half of them after ${half:=999} ms"
check 'they are back soon' "(($half <= $most_ms))"
finish
