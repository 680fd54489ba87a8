#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program of NetIO with several processes and lcores prints the right text.
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

export NETIO_OPTIONS='--huge none --heartbeat 1s:20s'

# expect NAME TEXT: the program's output, in $temp/NAME.out.
expect()
{
	local said

	said=$(cat "$temp/$1.out")
	if [[ $said == "$2" ]]; then
		echo "ok: $1"
	else
		printf 'FAILED: %s said:\n%s\n' "$1" "$said"
		failed=1
	fi
}

# Two lcores that publish, at two ports next to each other, and two that watch one each; then one that
# watches both.
cores()
{
	local first publisher status=0

	: >"$temp/cores.out"
	for lcores in 0@0,1@0 0@0; do
		for _ in {1..10}; do # a port may be somebody's
			first=$((20000 + RANDOM % 10000))
			NETIO_OPTIONS='--huge none --heartbeat 1s:20s --provider tcp -l 0@0,1@0' timeout 60 "$PLX_BUILD_ROOT/tests/apps/netio_cores" publish \
				$first 50000 >"$temp/cores" 2>"$temp/cores.err" </dev/null &
			publisher=$!
			sleep 0.5
			grep -q 'cannot listen\|in use' "$temp/cores.err" || break
			wait "$publisher"
		done
		for _ in {1..20}; do # until it listens
			NETIO_OPTIONS="--huge none --heartbeat 1s:20s --provider tcp -l $lcores" timeout 60 "$PLX_BUILD_ROOT/tests/apps/netio_cores" watch \
				$first 2 >"$temp/cores.watch" 2>"$temp/cores.watch.err" </dev/null
			status=$?
			grep -q '^0 readings' "$temp/cores.watch" || break
			sleep 0.2
		done
		wait "$publisher" || status=1
		echo "status $status" >>"$temp/cores.out"
		cat "$temp/cores" "$temp/cores.watch" >>"$temp/cores.out"
	done
}

cores
expect cores 'status 0
100000 readings on 2 lcores, 0 wrong
100000 readings on 2 lcores, 0 wrong
status 0
100000 readings on 2 lcores, 0 wrong
100000 readings on 1 lcores, 0 wrong'

exit $failed
