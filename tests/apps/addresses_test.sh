#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# In a separate network namespace: a link-local address printed by plx-echo can be connected to, and the wildcard means
# IPv4 and IPv6, even if IPv6 sockets exclude IPv4 by default.
set -uo pipefail

apps=$1
if [[ ${2-} != inside ]]; then
	unshare -rn ip link set lo up 2>/dev/null || exit 77
	exec unshare -rn "$BASH" "$0" "$apps" inside
fi
ip link set lo up && ip address add fe80::7/64 dev lo nodad || exit 77

# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

# serve PROVIDER ADDRESS: plx-echo; sets `pid`, `address` and `port`.
serve()
{
	start_server server "$apps/plx-echo" --huge none --provider "$1" -- --listen "$2"
}

# ping PROVIDER ADDRESS: 3 means that a busy host makes the figures invalid, but the address was reached.
ping()
{
	timeout -s KILL 60 "$apps/plx-ping" --huge none --provider "$1" -- --connect "$2" --count 10 >"$temp/ping.err" 2>&1
	(($? == 0 || $? == 3))
}

for provider in tcp auto; do
	serve "$provider" '[fe80::7%lo]:0'
	check "$provider: the address has its interface" "[[ '$address' == '[fe80::7%lo]:'* ]]"
	ping "$provider" "$address"
	check "$provider: it is reached there" "(($? == 0))"
	check "$provider: the client is printed with it, too" "grep -q '^\[fe80::7%lo\]:[0-9]* .*connected' '$temp/server'"
	stops_well "$provider: plx-echo" "$pid"
done

for provider in tcp auto; do
	serve "$provider" '[::ffff:127.0.0.1]:0'
	check "$provider: IPv4 in IPv6 form is IPv4" "[[ '$address' == 127.0.0.1:* ]]"
	ping "$provider" "[::ffff:127.0.0.1]:$port"
	check "$provider: it is reached in that form" "(($? == 0))"
	stops_well "$provider: plx-echo" "$pid"
done

echo 1 >/proc/sys/net/ipv6/bindv6only && grep -q 00000001 /proc/net/if_inet6 || exit 77

# serve_and_ping ONLY SERVER_PROVIDER PROVIDER...
serve_and_ping()
{
	local only=$1 served=$2 host provider

	shift 2
	echo "$only" >/proc/sys/net/ipv6/bindv6only
	serve "$served" '*:0'
	for host in 127.0.0.1 '[::1]'; do
		for provider; do
			ping "$provider" "$host:$port"
			check "bindv6only=$only: $host is reached by $provider" "(($? == 0))"
		done
	done
	check "bindv6only=$only, $served: every provider is offered" "! grep -q 'not offered' '$temp/server.err'"
	stops_well "bindv6only=$only, $served: plx-echo" "$pid"
}

for only in 1 0; do
	serve_and_ping "$only" auto tcp auto
done
exit $failed
