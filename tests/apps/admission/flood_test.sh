#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Links open at the first try while another address makes 2 000 connections a second that stop after plx_tcp's HELLO,
# and after it. Then the server keeps nothing of them. WHAT: stay, leave (they close at once), patient (the listener lets
# connections take any time), prefix (from 256 addresses of one IPv6 network, /64), or networks (from 256 networks of one
# /48).
#
#     flood_test.sh PROGRAMS WHAT
set -uo pipefail
# shellcheck source=tests/apps/admission/admission.sh
. "$(dirname "${BASH_SOURCE[0]}")/admission.sh"

address=127.0.0.1:7000 flood=(--from 127.0.0.2) listener=()
case $2 in
leave) flood+=(--leave) ;;
patient) listener=(--patient) ;;
prefix | networks)
	use_ipv6
	address='[fd00:1::1]:7000' flood=(--from fd00:2::100 --addresses 256)
	[[ $2 == prefix ]] || flood+=(--networks)
	;;
esac

start_server links "$address" "${listener[@]}"
listening "$temp/server" || check 'the server starts' false
find_usual "$address"
before=$(server_descriptors)
start_strangers 1 --connect "$address" --rate 2000 --count 20000 --for 30s --hello "${flood[@]}"
made 1 1000
served "during the flood, $2" "$address" 4
during=$(server_descriptors)
kill_off "$strangers"
echo "$(tail -n 1 "$temp/strangers1"); the server's descriptors: $before, then $during"
[[ $2 != leave ]] || check 'connections that have left wait for nothing' "((during < before + 500))"
served "after the flood, $2" "$address" 2
for _ in {1..100}; do
	after=$(server_descriptors)
	((after >= before + 10)) || break
	sleep 0.02
done
check 'the server keeps none' "((after < before + 10))"
finish
