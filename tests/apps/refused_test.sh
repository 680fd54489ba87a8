#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs without a listener: they fail with a message, and no line names the address twice.
set -uo pipefail

apps=$1
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

address=127.0.0.1:1

# refused NAME WORDS...: that program with these.
refused()
{
	local name=$1 its

	shift
	timeout -s KILL 60 "$@" >"$temp/$name.err" 2>&1 </dev/null
	its=$?
	check "$name fails" "(($its != 0 && $its != 137))"
	check "$name says that it was refused" "grep -q '$address.* refused' '$temp/$name.err'"
	check "$name names the address once" "! grep -qE '127.0.0.1:[0-9]+.*127.0.0.1:[0-9]+' '$temp/$name.err'"
}

refused ping "$apps/plx-ping" --huge none -- --connect "$address"
refused ping_one_way "$apps/plx-ping" --huge none -- --one-way --connect "$address"
refused ping_service "$apps/plx-ping" --huge none -- --process --connect "$address"
refused call "$apps/plx-call" --huge none -- --connect "$address" --method 1 --deadline 10s
refused params "$apps/plx-params" --huge none -- --connect "$address" --deadline 10s --list
refused throughput "$apps/netio-throughput" --huge none -- --connect "$address"
refused bench "$apps/netio-pubsub-bench" --huge none -- --connect "$address"
refused cat_send "$apps/netio-cat" send --huge none -- --connect 127.0.0.1:1
refused link_client "$apps/examples/link_client" --huge none -- --connect "$address" --send hello
refused direct_client "$apps/examples/direct_client" --huge none -- --connect "$address" --put hello
refused service_client "$apps/examples/service_client" --huge none -- --connect "$address" --limit 20
exit $failed
