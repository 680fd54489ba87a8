#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# libfabric programs load plx_shm and plx_tcp from the folders in FI_PROVIDER_PATH: fi_info shows their maximum
# attributes, and libfabric's own fi_pingpong runs over them, as any other program of FI_EP_MSG would.
set -uo pipefail

sanitizer=$1 drivers=$2
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

if [[ $sanitizer != none ]]; then
	echo "programs of libfabric cannot load a library with the sanitizer ($sanitizer)"
	exit 77
fi
for program in fi_info fi_pingpong ss; do
	command -v $program >/dev/null || {
		echo "$program is missing; scripts/setup.sh installs it"
		exit 77
	}
done
export FI_PROVIDER_PATH=$drivers/shm:$drivers/tcp

# shows OPTIONS PATTERN...: fi_info OPTIONS succeeds and prints lines that match. Its text about parameters may contain
# a NUL.
shows()
{
	local options pattern said

	read -ra options <<<"$1"
	shift
	said=$(timeout 20 fi_info "${options[@]}" 2>&1 | tr -d '\0') || fail "fi_info ${options[*]} said: ${said:0:200}"
	for pattern; do
		if grep -qE -- "$pattern" <<<"$said"; then
			echo "ok: fi_info ${options[*]}: $pattern"
		else
			fail "fi_info ${options[*]} does not show $pattern, but: ${said:0:3000}"
		fi
	done
}

shows -l '^plx_shm:' '^plx_tcp:'
shows -e '^# FI_PLX_SHM_RING_BYTES: ' '^# FI_PLX_TCP_HANDSHAKES_MAX: '
for name in shm tcp; do
	shows "-p plx_$name -t FI_EP_MSG" "^provider: plx_$name\$" '^ +type: FI_EP_MSG$'
	shows "-p plx_$name -v" ' iov_limit: 4$' 'max_err_data: 256$' 'cntr_cnt: 0$' 'cq_data_size: 8$' \
		'threading: FI_THREAD_DOMAIN$' 'max_ep_srx_ctx: 0$'
done
shows '-p plx_shm -v' ' caps: \[ FI_MSG, FI_RECV, FI_SEND, FI_LOCAL_COMM \]$' 'inject_size: 4096$' \
	'max_msg_size: 1099511627776$' 'rma_iov_limit: 0$' 'mr_mode: \[  \]$'
shows '-p plx_tcp -v' ' caps: \[ FI_MSG, FI_RMA, .*FI_REMOTE_WRITE, FI_LOCAL_COMM, FI_REMOTE_COMM \]$' \
	'inject_size: 8192$' 'max_msg_size: 2147483647$' 'rma_iov_limit: 1$' 'mr_iov_limit: 1$' \
	'mr_mode: \[ FI_MR_VIRT_ADDR, FI_MR_PROV_KEY \]$'

# serve OPTION...: start the server of fi_pingpong. A separate connection, at a fixed port, compares settings: choose a
# port that is free. Sets `pid` and `port`.
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
	runs $provider '0 1 64 4k 64k 1m' -c -I 10 -S all
done
exit $failed
