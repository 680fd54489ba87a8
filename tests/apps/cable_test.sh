#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The cable to a host is cut whose processes have no heartbeats: a server gives up its links within 60 s, idle ones and
# ones with unacknowledged data, and then serves new clients. The hosts are two network namespaces.
set -uo pipefail

apps=$1 many_links=$2
if [[ ${3-} != inside ]]; then
	unshare -rn unshare -n true 2>/dev/null && command -v ip ss >/dev/null || exit 77
	exec unshare -rn "$BASH" "$0" "$apps" "$many_links" inside
fi

# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

unshare -n sleep 600 &
host=$!
pids+=("$host")
wait_until "! [[ /proc/$host/ns/net -ef /proc/self/ns/net ]]"

# on_host COMMAND...
on_host()
{
	nsenter --net="/proc/$host/ns/net" -- "$@"
}

ip link add cable type veth peer name cable netns "$host" && ip address add 192.0.2.1/24 dev cable &&
	ip link set cable up && on_host ip address add 192.0.2.2/24 dev cable && on_host ip link set cable up || exit 77

# links PORT: how many of a server's connections are open.
links()
{
	ss -Htn state established sport = ":$1" | wc -l
}

clients=(--huge none --provider tcp --heartbeat off)
start_server idle "$apps/plx-echo" --huge none --provider tcp --idle event -- --listen 192.0.2.1:0
idle=$port
start client on_host "$many_links" "${clients[@]}" --idle event --connect "192.0.2.1:$idle" --links 10
first=$pid
start_server busy "$apps/netio-pubsub-bench" --huge none --provider tcp --idle event -- --listen 192.0.2.1:0 --subscribers 10 \
	--rate 100 --duration 300s
busy=$port
start subscribers on_host "$apps/netio-pubsub-bench" "${clients[@]}" --idle event -- --connect "192.0.2.1:$busy" \
	--subscribers 10 --slow drop-new
check 'idle and busy links are open' "wait_until '((\$(links $idle) == 10 && \$(links $busy) == 10))'"
sleep 1

on_host ip link set cable down
SECONDS=0
while ((SECONDS < 60 && $(links "$idle") + $(links "$busy") > 0)); do
	sleep 0.2
done
echo "$SECONDS s"
check 'idle links are given up within 60 s' "(($(links "$idle") == 0))"
check 'and busy ones' "(($(links "$busy") == 0))"
kill_off "$first"

on_host ip link set cable up
start again on_host "$many_links" "${clients[@]}" --idle event --connect "192.0.2.1:$idle" --links 10
check 'new clients are served' "wait_until 'grep -q \"echoed 10\" $temp/again $temp/again.err'"
exit "$failed"
