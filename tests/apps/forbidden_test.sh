#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# If a process may not share memory, same-host links use TCP, and the reason is logged.
set -uo pipefail

forbid=$1
apps=$2
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

"$forbid" fstatfs "$BASH" -c true
[[ $? != 77 ]] || exit 77

# serve WORDS...: plx-echo, started by WORDS; sets address.
serve()
{
	start server "$@" "$apps/plx-echo" --huge none -- --listen 127.0.0.1:0
	listening "$temp/server"
}

# ping WORDS...: plx-ping, started by WORDS, on auto.
ping()
{
	timeout -s KILL 60 "$@" "$apps/plx-ping" --huge none -- --connect "$address" --count 100 >"$temp/ping.err" 2>&1
}

for call in memfd_create fstatfs; do
	serve "$forbid" "$call"
	check "$call: the server does not offer shared memory, and says why" \
		"grep -qE 'shm is not offered: .*(cannot share memory; check that seccomp allows memfd_create and fstatfs|Operation not permitted)' '$temp/server.err'"
	ping env
	check "$call: its client goes by TCP" \
		"(($? == 0)) && grep -q 'the peer is on this host, but offers nothing quicker there' '$temp/ping.err'"
done
serve env
for call in memfd_create fstatfs; do
	ping "$forbid" "$call"
	check "$call: a client without it goes by TCP" \
		"(($? == 0)) && grep -q 'the peer is on this host, but what is quicker failed' '$temp/ping.err'"
done
exit $failed
