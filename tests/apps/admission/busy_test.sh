#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A peer that a full listener refuses learns when to come again, by whatever it connects; also on the listener's CPU,
# where the listener refuses before the peer has sent its request.
#
#     busy_test.sh PROGRAMS APPS
set -uo pipefail
# shellcheck source=tests/apps/admission/admission.sh
. "$(dirname "${BASH_SOURCE[0]}")/admission.sh"

apps=$2

start server "$apps/plx-echo" "${eal[@]}" -l 0@0 --idle event --links-max 1 --listen 127.0.0.1:7000
wait_until "grep -q listening '$temp/server' '$temp/server.err'"
start holder "$apps/plx-ping" "${eal[@]}" -l 0@0 --idle event -- --connect 127.0.0.1:7000 --rate 10 --warmup 0 --duration 60s
wait_until "grep -qE 'provider|connected' '$temp/holder' '$temp/holder.err'"
sleep 0.5
for provider in shm tcp auto; do
	for n in 1 2; do
		start "late$n" "$apps/plx-ping" "${eal[@]}" -l 0@0 --idle event --provider "$provider" -- --connect 127.0.0.1:7000 --count 1
		ends "$pid"
		check "$provider, peer $n: it is busy" "grep -q 'is busy: come again in 1000 ms' '$temp/late$n.err'"
	done
done
finish
