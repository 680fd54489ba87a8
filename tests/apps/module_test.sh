#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# libfabric programs load plx_shm and plx_tcp from the folders in FI_PROVIDER_PATH, and fi_info shows their maximum
# attributes. tests/perf/raw_test.sh sends messages through plx_shm.
set -uo pipefail

sanitizer=$1 drivers=$2
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

if [[ $sanitizer != none ]]; then
	echo "fi_info cannot load a library with the sanitizer ($sanitizer)"
	exit 77
fi
command -v fi_info >/dev/null || {
	echo 'fi_info is missing; it is in libfabric-bin'
	exit 77
}

# info OPTION...: fi_info with the modules. Its text about parameters may contain a NUL.
info()
{
	FI_PROVIDER_PATH=$drivers/shm:$drivers/tcp timeout 20 fi_info "$@" 2>&1 | tr -d '\0'
}

# shows OPTIONS PATTERN...: fi_info OPTIONS succeeds and prints lines that match.
shows()
{
	local options pattern said

	read -ra options <<<"$1"
	shift
	said=$(info "${options[@]}") || {
		fail "fi_info ${options[*]} said: ${said:0:200}"
	}
	for pattern in "$@"; do
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
exit $failed
