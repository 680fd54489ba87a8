#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# netio-throughput against netio-recv: each mode over tcp and shm gives figures, and wrong options are refused.
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

apps=$1

# serve PROVIDER: a netio-recv; sets `server` and `address`.
serve()
{
	start_server recv timeout -k 5 100 "$apps/netio-recv" --huge none --provider "$1" -- --listen 127.0.0.1:0
}

# measure STATUS PATTERN OPTION...
measure()
{
	gives "${*:3}" "$1" "$2" timeout 60 "$apps/netio-throughput" --huge none --provider "$provider" -- \
		--connect "$address" --duration 100ms "${@:3}"
}

for provider in tcp shm; do
	serve "$provider"
	for mode in buffered unbuffered reference ping; do
		measure 0 '*1048576 B *' --mode $mode --sizes 1,70000,1M --json "$temp/rows.json"
		check "$provider $mode: each row has figures" "jq -e 'map(.size_bytes) == [1, 70000, 1048576] and
			all(.[]; (.messages // .round_trips) > 0)' '$temp/rows.json' >'$temp/jq'"
	done
	stops_well netio-recv "$server"
	check "$provider: every connection ended in order" "(($(grep -c 'gone: closed; ' "$temp/recv") == 4))"
done

provider=tcp
serve tcp
measure 1 '*do not hold it*' --page 1K --pages 4 --sizes 64K
measure 2 '*for --mode buffered*' --mode ping --page 1K
measure 2 '*cannot be written: No such file*' --json "$temp/none/rows.json"
measure 2 '*--sizes*' --sizes 64,,0
stops_well netio-recv "$server"
measure 1 '*refused*'
exit $failed
