#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A link-local address printed by plx-echo can be connected to. In a separate network namespace.
set -uo pipefail

apps=$1
if [[ ${2-} != inside ]]; then
	unshare -rn ip link set lo up 2>/dev/null || exit 77
	exec unshare -rn "$BASH" "$0" "$apps" inside
fi
ip link set lo up && ip address add fe80::7/64 dev lo nodad || exit 77

# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

for provider in tcp auto; do
	: >"$temp/server.out"
	"$apps/plx-echo" --huge none --provider "$provider" -- --listen '[fe80::7%lo]:0' >"$temp/server.out" 2>"$temp/server.err" &
	server=$!
	listening "$temp/server.out"
	check "$provider: the address has its interface" "[[ '$address' == '[fe80::7%lo]:'* ]]"
	timeout -s KILL 60 "$apps/plx-ping" --huge none --provider "$provider" -- --connect "$address" --count 10 >"$temp/ping.err" 2>&1
	check "$provider: it is reached there" "(($? == 0))"
	check "$provider: the client is printed with it, too" "grep -q '^\[fe80::7%lo\]:[0-9]* connected' '$temp/server.out'"
	kill "$server"
	ends "$server"
	server=''
done
exit $failed
