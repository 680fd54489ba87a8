#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Any program of libfabric's loads the provider plx_shm from the folder that FI_PROVIDER_PATH names.
# tests/perf/raw_test.sh has messages go through it.
set -uo pipefail

sanitizer=$1 module_dir=$2
failed=0

if [[ $sanitizer != none ]]; then
	echo "fi_info cannot load a library with the sanitizer ($sanitizer)"
	exit 77
fi
command -v fi_info >/dev/null || {
	echo 'fi_info is missing; it is in libfabric-bin'
	exit 77
}

# shows PATTERN OPTION...: fi_info, given these options, ends well and prints such a line.
shows()
{
	local pattern=$1 said

	shift
	# What it prints of parameters may have a NUL in it.
	if said=$(FI_PROVIDER_PATH=$module_dir timeout 20 fi_info "$@" 2>&1 | tr -d '\0') &&
		grep -qE -- "$pattern" <<<"$said"; then
		echo "ok: fi_info $*: $pattern"
	else
		echo "FAILED: fi_info $* does not show $pattern, but: ${said:0:200}"
		failed=1
	fi
}

shows '^plx_shm:' -l
shows '^provider: plx_shm$' -p plx_shm
shows '^ +type: FI_EP_MSG$' -p plx_shm -t FI_EP_MSG
shows '^# FI_PLX_SHM_RING_BYTES: ' -e
exit $failed
