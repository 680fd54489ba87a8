#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# libfabric's own fi_pingpong runs over the modules plx_shm and plx_tcp, as any other program of FI_EP_MSG would.
set -uo pipefail

sanitizer=$1 drivers=$2
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

if [[ $sanitizer != none ]]; then
	echo "fi_pingpong cannot load a library with the sanitizer ($sanitizer)"
	exit 77
fi
for program in fi_pingpong ss; do
	command -v $program >/dev/null || {
		echo "$program is missing; scripts/setup.sh installs it"
		exit 77
	}
done
export FI_PROVIDER_PATH=$drivers/shm:$drivers/tcp

# serve OPTION...: start the server. A separate connection, at a fixed port, compares settings: choose a port that is
# free. Sets `pid` and `port`.
serve()
{
	for _ in {1..20}; do
		port=$((RANDOM % 12000 + 20000))
		start server timeout 100 fi_pingpong "$@" -B "$port"
		wait_until "! kill -0 $pid 2>/dev/null || [[ -n \$(ss -Htln 'sport = :$port') ]]"
		kill -0 "$pid" 2>/dev/null && return
	done
	check 'the server finds a port' false
}

# runs PROVIDER ROWS OPTION...: both sides end with 0, and both tables have rows for these sizes, separated by blanks.
runs()
{
	local provider=$1 rows=$2 text="fi_pingpong over $1 ${*:3}" side size

	shift 2
	serve -p "$provider" -e msg "$@"
	timeout 100 fi_pingpong -p "$provider" -e msg "$@" -P "$port" 127.0.0.1 >"$temp/client" 2>"$temp/client.err"
	check "$text: the client ends with 0" "(($? == 0))"
	ends_well "$text: the server" "$pid"
	for side in client server; do
		for size in $rows; do
			check "$text: the $side measures $size" "grep -qE '^$size +[0-9]+k? +=[0-9]+k? ' '$temp/$side'"
		done
	done
}

for provider in plx_shm plx_tcp; do
	runs $provider 64 -c -I 1000 -S 64
	runs $provider 64k -c -I 200 -S 65536
	runs $provider '0 1 64 4k 64k 1m' -c -I 10 -S all
done
exit $failed
