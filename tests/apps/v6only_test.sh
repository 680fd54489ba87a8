#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The wildcard means IPv4 and IPv6, even if IPv6 sockets exclude IPv4 by default. In a separate network namespace.
set -uo pipefail

apps=$1
if [[ ${2-} != inside ]]; then
	unshare -rn ip link set lo up 2>/dev/null || exit 77
	exec unshare -rn "$BASH" "$0" "$apps" inside
fi
ip link set lo up && echo 1 >/proc/sys/net/ipv6/bindv6only && grep -q 00000001 /proc/net/if_inet6 || exit 77

# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

# serve_and_ping ONLY SERVER_PROVIDER PROVIDER...
serve_and_ping()
{
	local only=$1 served=$2 port host provider

	shift 2
	echo "$only" >/proc/sys/net/ipv6/bindv6only
	: >"$temp/server.out"
	"$apps/plx-echo" --huge none --provider "$served" -- --listen '*:0' >"$temp/server.out" 2>"$temp/server.err" &
	server=$!
	wait_until "grep -q '^listening on ' '$temp/server.out'"
	port=$(sed -n 's/^listening on .*://p' "$temp/server.out")
	for host in 127.0.0.1 '[::1]'; do
		for provider; do
			timeout -s KILL 60 "$apps/plx-ping" --huge none --provider "$provider" -- --connect "$host:$port" --count 10 >"$temp/ping.err" 2>&1
			check "bindv6only=$only: $host is reached by $provider" "(($? == 0))"
		done
	done
	check "bindv6only=$only, $served: nothing is left out" "! grep -q 'not offered' '$temp/server.err'"
	kill "$server"
	ends "$server"
	check "bindv6only=$only, $served: plx-echo ends with 0" "(($? == 0))"
	server=''
}

for only in 1 0; do
	serve_and_ping "$only" auto tcp auto
	serve_and_ping "$only" fi:tcp fi:tcp
done
exit $failed
