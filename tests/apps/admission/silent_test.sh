#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Links open at the first try although many connections say nothing, or only plx_tcp's HELLO. The server may close such
# connections, and others may replace them. WHAT: prefix (256, each from another address of one IPv6 network), links (the
# same, and the server takes only 200 links), or descriptors (more than the server has).
#
#     silent_test.sh PROGRAMS WHAT
set -uo pipefail
# shellcheck source=tests/apps/admission/admission.sh
. "$(dirname "${BASH_SOURCE[0]}")/admission.sh"

if [[ $2 == descriptors ]]; then
	address=127.0.0.1:7000 silent=(--from 127.0.0.2 --count 400) count=400
	descriptors=256 # also the hard limit
else
	use_ipv6
	address='[fd00:1::1]:7000' silent=(--from fd00:2::100 --addresses 256 --count 256) count=200
	[[ $2 != links ]] || eal+=(--links-max 200)
fi
start_server links "$address"
listening "$temp/server" || check 'the server starts' false
find_usual "$address"
for how in '' --again --hello '--hello --again'; do
	# shellcheck disable=SC2086 # words
	start_strangers 1 --connect "$address" --for 30s "${silent[@]}" $how
	made 1 $count
	served "$2, silent${how:+ with $how}" "$address" 3
	kill_off "$strangers"
done
finish
